// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Keys that a work request of somebody else's made dead. Soft RoCE looks at the key alone, so a
 * peer reaches into other protection domains, and by guessing into the stock of armed MRs. The
 * fuzzer found the first.
 */
#include <linux/delay.h>
#include "fmr_helpers.h"
#include "window.h"

#define PG	PAGE_SIZE
#define IOVA	0x40000000ULL

/* By the queue pair of @p's target, whatever is behind the key. Nothing was refused on it. */
static void invalidate(struct ibt_pair *p, u32 key)
{
	struct ib_send_wr wr = {
		.wr_id = 0x17f, .opcode = IB_WR_LOCAL_INV, .send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = key,
	};
	struct ib_wc wc = {};
	int i;

	KUNIT_ASSERT_EQ(p->test, ib_post_send(p->tgt.qp, &wr, NULL), 0);
	for (i = 0; i < 20000 && wc.wr_id != wr.wr_id; i++)
		if (ib_poll_cq(p->tgt.cq, 1, &wc) != 1)
			usleep_range(50, 100);
	KUNIT_ASSERT_EQ(p->test, wc.wr_id, wr.wr_id);
	KUNIT_ASSERT_EQ(p->test, wc.status, IB_WC_SUCCESS);
}

/* A region, an FMR and windows, from another PD: dead for the device, so dead for ib_mr_check(). */
static void invalidated_from_outside(struct kunit *test)
{
	struct ib_pd *outside = ibt_pd(test);
	struct ibt_pair *other = ibt_pair(test, outside);
	struct ib_mw *mw;
	struct ib_fmr *fmr;
	struct ibt_win w;
	u64 *list;
	u32 key;

	ibt_win(&w, test, IBT_SCATTER, 4 * PG, LW | RR | RW | MWB);
	list = ibt_page_list(test, w.b);
	mw = ibt_mw(test, w.pd, IB_MW_TYPE_2);
	fmr = ibt_fmr(test, w.pd, FMR_ALL, 4, 4);

	KUNIT_ASSERT_EQ(test, ibt_map(fmr, list, 2, IOVA), 0);
	key = fmr->rkey;
	invalidate(other, key);
	ibt_expect_refused(test, OTHER_PD, ib_mr_invalidated(outside, key));
	KUNIT_EXPECT_EQ(test, ib_mr_check(w.pd, key, IOVA, 8, RR, true), IB_MR_WHY_INVALIDATED);
	ibt_expect_shut(w.p, key, IOVA);
	/* Mapped anew it is as good as ever. */
	KUNIT_ASSERT_EQ(test, ibt_map(fmr, list, 2, IOVA), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_check(w.pd, fmr->rkey, IOVA, 8, RR, true), IB_MR_WHY_OK);
	ibt_expect_key(w.p, fmr->rkey, IOVA, w.b, 0, 2 * PG);
	KUNIT_EXPECT_EQ(test, ibt_unmap(fmr), 0);

	/* The window stays its owner's: bound, until the owner lets go of it. */
	KUNIT_ASSERT_EQ(test, ibt_bind_2(&w, mw, 50, 100, RR), 0);
	key = mw->rkey;
	invalidate(other, key);
	ibt_expect_refused(test, OTHER_PD, ib_mr_invalidated(outside, key));
	KUNIT_EXPECT_EQ(test, ib_mr_check(w.pd, key, w.base + 50, 8, RR, true),
			IB_MR_WHY_INVALIDATED);
	ibt_expect_no_window(&w, key, 50);
	ibt_expect_refused(test, MW_NOT_FREE, ibt_bind_2(&w, mw, 0, 10, RR));
	KUNIT_EXPECT_EQ(test, ib_mr_invalidated(w.pd, key), 0);
	KUNIT_ASSERT_EQ(test, ibt_bind_2(&w, mw, 60, 100, RR), 0);
	ibt_expect_window(&w, mw->rkey, 60, 100, RR);
	KUNIT_EXPECT_EQ(test, ib_mr_invalidated(w.pd, mw->rkey), 0);

	key = w.mr->rkey;
	invalidate(other, key);
	ibt_expect_refused(test, OTHER_PD, ib_mr_invalidated(outside, key));
	KUNIT_EXPECT_EQ(test, ib_mr_check(w.pd, key, w.base, 8, RR, true), IB_MR_WHY_INVALIDATED);
	ibt_expect_shut(w.p, key, w.base);
}

/* A cache gives out no mapping whose key is dead, idle or in use. */
static void invalidated_in_cache(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd), *own = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 2 * PG, 1);
	struct ib_fmr_pool *pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){ .cache = 1 });
	u64 *list = ibt_page_list(test, b);
	struct ib_pool_fmr *fmr, *again;

	fmr = ibt_pool_map(pool, list, 2, IOVA);
	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(fmr), 0);
	invalidate(own, fmr->fmr->rkey);
	KUNIT_EXPECT_EQ(test, ib_mr_invalidated(pd, fmr->fmr->rkey), 0);
	again = ibt_pool_map(pool, list, 2, IOVA);
	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(again), 0);
	KUNIT_EXPECT_PTR_NE(test, again, fmr);
	ibt_expect_key(p, again->fmr->rkey, IOVA, b, 0, 2 * PG);
	ib_fmr_pool_unmap(fmr);
	KUNIT_EXPECT_EQ(test, ibt_mag(ibmr_pool_mag(pool)).in_use, 1U);

	/* Idle: it is cached, and then dies. */
	ib_fmr_pool_unmap(again);
	KUNIT_EXPECT_EQ(test, ibt_mag(ibmr_pool_mag(pool)).in_use, 1U);
	invalidate(own, again->fmr->rkey);
	KUNIT_EXPECT_EQ(test, ib_mr_invalidated(pd, again->fmr->rkey), 0);
	fmr = ibt_pool_map(pool, list, 2, IOVA);
	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(fmr), 0);
	ibt_expect_key(p, fmr->fmr->rkey, IOVA, b, 0, 2 * PG);
	ib_fmr_pool_unmap(fmr);
}

/* A guess hit an MR in stock: once that is told, nobody is given it as it is. */
static void invalidated_in_stock(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PG, 1);
	struct ib_fmr_pool *pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){});
	struct ibmr_mag *mag = ibmr_pool_mag(pool);
	struct ib_pool_fmr *fmr[8];
	struct ibt_mag before;
	struct ibmr_armed *a;
	u32 key[4];
	int i;

	KUNIT_ASSERT_TRUE(test, ibt_mag_settles(mag, 0, 5000));
	before = ibt_mag(mag);
	spin_lock_irq(&mag->lock);
	for (i = 0, a = mag->stock.head; i < 4; i++, a = a->next)
		key[i] = a->key;
	spin_unlock_irq(&mag->lock);
	for (i = 0; i < 4; i++) {
		invalidate(p, key[i]);
		ibt_expect_refused(test, STALE_KEY, ib_mr_invalidated(pd, key[i]));
	}
	for (i = 0; i < 5000 && (ibt_mag(mag).rekeyed < before.rekeyed + 4 ||
				 ibt_mag(mag).stock < before.stock); i++)
		usleep_range(1000, 2000);
	KUNIT_EXPECT_EQ(test, ibt_mag(mag).rekeyed, before.rekeyed + 4);

	for (i = 0; i < 8; i++) {
		fmr[i] = ibt_pool_map(pool, ibt_page_list(test, b), 1, IOVA);
		KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(fmr[i]), 0);
		ibt_expect_key(p, fmr[i]->fmr->rkey, IOVA, b, 0, PG);
	}
	for (i = 0; i < 8; i++)
		ib_fmr_pool_unmap(fmr[i]);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(invalidated_from_outside),
	KUNIT_CASE(invalidated_in_cache),
	KUNIT_CASE(invalidated_in_stock),
	{}
};

IBT_SUITE(invalidate, cases);
