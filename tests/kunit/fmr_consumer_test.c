// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The consumers of the classic calls, replayed: their parameters, sequences and contexts, from
 * classic-verbs.md 7. What each of them relied on has to hold for it.
 */
#include <linux/delay.h>
#include <linux/workqueue.h>
#include "fmr_helpers.h"

#define PG	PAGE_SIZE

struct call {
	struct ib_fmr_pool *pool;
	struct ib_pool_fmr *fmr;
	u64 *list;
	int n, err;
	u64 iova;
};

static void do_map(void *arg)
{
	struct call *c = arg;

	c->fmr = ib_fmr_pool_map_phys(c->pool, c->list, c->n, c->iova);
}

static void do_unmap(void *arg)
{
	struct call *c = arg;

	c->err = ib_fmr_pool_unmap(c->fmr);
}

/*
 * SRP: the largest pool that can be had, halving on any error; cache; iova 0; mapped in
 * queuecommand with interrupts off, released by the completion's softirq or hardirq.
 */
static void consumer_srp(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 64 * PG, 1);
	struct ib_fmr_pool *pool = ERR_PTR(-EINVAL);
	struct call c[16] = {};
	u64 *list = ibt_page_list(test, b);
	int max_pages, i, round;

	for (max_pages = 1024; max_pages >= 128 && IS_ERR(pool); max_pages /= 2) {
		struct ib_fmr_pool_param param = {
			.max_pages_per_fmr = max_pages, .page_shift = 12, .access = LW | RW | RR,
			.pool_size = 64, .dirty_watermark = 16, .cache = 1,
		};

		pool = ib_create_fmr_pool(pd, &param);
	}
	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	KUNIT_EXPECT_EQ(test, max_pages, 256);	/* 512 it was */
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 16; i++) {
			c[i] = (struct call){ .pool = pool, .list = list + 4 * i, .n = 1 + i % 4 };
			ibt_in_context(test, i % 2 ? IBT_IRQ_OFF : IBT_SPINLOCK, do_map, &c[i]);
			KUNIT_ASSERT_FALSE(test, IS_ERR(c[i].fmr));
			ibt_expect_key(p, c[i].fmr->fmr->rkey, 0, b, 4 * i * PG, c[i].n * PG);
			/* From the second round on these are hits. */
			KUNIT_EXPECT_EQ(test, c[i].fmr->remap_count, 1);
		}
		for (i = 0; i < 16; i++)
			ibt_in_context(test, i % 2 ? IBT_TASKLET : IBT_HARDIRQ, do_unmap, &c[i]);
	}
	ib_destroy_fmr_pool(pool);
}

/*
 * iSER: no cache; mapped under spin_lock_bh at the first page's address, both keys used; released
 * in a tasklet under the session's lock, the return value tested; -EAGAIN without a log.
 */
static void consumer_iser(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 16 * PG, 1);
	struct ib_fmr_pool *pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){
		.max_pages_per_fmr = 129, .page_shift = 12, .access = LW | RW | RR,
		.pool_size = 8, .dirty_watermark = 4 });
	u64 *list = ibt_page_list(test, b);
	struct call c[9] = {};
	int i;

	for (i = 0; i < 9; i++) {
		c[i] = (struct call){ .pool = pool, .list = list + i, .n = 2, .iova = list[i] };
		ibt_in_context(test, IBT_SPINLOCK, do_map, &c[i]);
		if (i == 8) {
			KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(c[i].fmr), -EAGAIN);
			break;
		}
		KUNIT_ASSERT_FALSE(test, IS_ERR(c[i].fmr));
		ibt_expect_key(p, c[i].fmr->fmr->rkey, c[i].iova, b, i * PG, 2 * PG);
		KUNIT_EXPECT_EQ(test, ibt_local(p, IBT_SEND, c[i].fmr->fmr->lkey, c[i].iova + 100,
						2 * PG - 100), IB_WC_SUCCESS);
	}
	for (i = 0; i < 8; i++) {
		ibt_in_context(test, IBT_TASKLET, do_unmap, &c[i]);
		KUNIT_EXPECT_EQ(test, c[i].err, 0);
		KUNIT_EXPECT_FALSE(test, ibt_can_read(p, c[i].fmr->fmr->rkey, c[i].iova));
	}
}

/*
 * RDS: raw FMRs, remapped without unmap up to max_maps, iova 0, the cookie is the rkey; unmapped by
 * a worker in a list of many, and the pages are given away right after; those that were mapped
 * max_maps times by RDS's own count, which no unmap resets, are deallocated.
 */
struct rds {
	struct work_struct work;
	struct list_head list;
	int err;
};

static void rds_flush(struct work_struct *work)
{
	struct rds *r = container_of(work, struct rds, work);

	r->err = ib_unmap_fmr(&r->list);
}

static void consumer_rds(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 16 * PG, 1);
	u64 *list = ibt_page_list(test, b);
	struct ib_fmr *fmr[16];
	u32 cookie[16][3];
	struct rds r;
	int i, j, round, left = 0;

	for (i = 0; i < 16; i++)
		fmr[i] = ibt_fmr(test, pd, LW | RR | RW | RA, i % 2 ? 257 : 2, 32);
	INIT_WORK_ONSTACK(&r.work, rds_flush);
	for (round = 0; round < 3; round++) {
		INIT_LIST_HEAD(&r.list);
		for (i = 0; i < 16; i++) {
			for (j = 0; j < 3; j++) {
				KUNIT_ASSERT_EQ(test, ibt_map(fmr[i], list + i, 1, 0), 0);
				cookie[i][j] = fmr[i]->rkey;
			}
			ibt_expect_key(p, cookie[i][2], 0, b, i * PG, PG);
			list_add_tail(&fmr[i]->list, &r.list);
		}
		schedule_work(&r.work);
		flush_work(&r.work);
		KUNIT_EXPECT_EQ(test, r.err, 0);
		ibt_fill(b, 0, b->size, 77);		/* somebody else's now */
		for (i = 0; i < 16; i++) {
			for (j = 0; j < 3; j++)
				left += ibt_can_read(p, cookie[i][j], 0);
			list_del_init(&fmr[i]->list);
		}
		ibt_fill(b, 0, b->size, b->seed);
	}
	KUNIT_EXPECT_EQ(test, left, 0);
	for (i = 0; i < 8; i++)
		ibt_fmr_free(test, fmr[i]);
	destroy_work_on_stack(&r.work);
}

/*
 * xprtrdma: remote rights without LOCAL_WRITE, max_maps 1, iova is the first page's address, the
 * key goes out with the next send; unmapped one at a time. A second map is refused.
 */
static void consumer_xprtrdma(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 64 * PG, 1);
	struct ib_fmr *fmr = ibt_fmr(test, pd, RW | RR, 64, 1);
	u64 *list = ibt_page_list(test, b);
	u32 key;
	int i;

	for (i = 1; i <= 64; i *= 2) {
		KUNIT_ASSERT_EQ(test, ib_map_phys_fmr(fmr, list, i, list[0]), 0);
		key = fmr->rkey;
		ibt_expect_refused(test, MAX_MAPS, ib_map_phys_fmr(fmr, list, i, list[0]));
		ibt_expect_key(p, key, list[0], b, 0, i * PG);
		KUNIT_EXPECT_EQ(test, ibt_unmap(fmr), 0);
		KUNIT_EXPECT_FALSE(test, ibt_can_read(p, key, list[0]));
	}
}

/*
 * Lustre: no remote read; -EAGAIN makes it allocate another pool; on an error of the transfer
 * unmap, then flush, which has to return 0.
 */
static void consumer_lustre(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 64 * PG, 1);
	u64 *list = ibt_page_list(test, b);
	struct ib_fmr_pool *pool[4];
	struct ib_pool_fmr *fmr[16];
	int i, pools = 0, cache;

	for (cache = 0; cache < 2; cache++) {
		for (i = 0, pools = 0; i < 16; i++) {
			fmr[i] = pools ? ib_fmr_pool_map_phys(pool[pools - 1], list + i, 32, 0) :
					 ERR_PTR(-EAGAIN);
			if (fmr[i] == ERR_PTR(-EAGAIN)) {
				KUNIT_ASSERT_LT(test, pools, 4);
				pool[pools++] = ibt_pool(test, pd, (struct ib_fmr_pool_param){
					.max_pages_per_fmr = 256, .access = LW | RW,
					.pool_size = 4, .dirty_watermark = 1, .cache = cache });
				fmr[i] = ib_fmr_pool_map_phys(pool[pools - 1], list + i, 32, 0);
			}
			KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[i]));
			KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_WRITE, p->req.buf,
						       fmr[i]->fmr->rkey, 32 * PG - 8, 8),
					IB_WC_SUCCESS);
			KUNIT_EXPECT_FALSE(test, ibt_can_read(p, fmr[i]->fmr->rkey, 0));
		}
		KUNIT_EXPECT_EQ(test, pools, 4);
		for (i = 0; i < 16; i++) {
			u32 key = fmr[i]->fmr->rkey;

			ib_fmr_pool_unmap(fmr[i]);
			KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(pool[i / 4]), 0);
			KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_WRITE, p->req.buf, key, 0, 8),
					IB_WC_REM_ACCESS_ERR);
		}
	}
}

/* SDP: cache, read only, and what goes out as the rkey is the lkey. */
static void consumer_sdp(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 32 * PG, 1);
	struct ib_fmr_pool *pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){
		.max_pages_per_fmr = 32, .access = LW | RR, .pool_size = 8, .cache = 1 });
	u64 *list = ibt_page_list(test, b);
	struct ib_pool_fmr *fmr;
	int i;

	for (i = 0; i < 10; i++) {
		fmr = ibt_pool_map(pool, list, 32 - i % 3, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
		KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, fmr->fmr->lkey, 0, SZ_64K),
				IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, ibt_diff_copy(b, 0, SZ_64K, p->req.buf), (size_t)SZ_64K);
		KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_WRITE, p->req.buf, fmr->fmr->lkey, 0, 8),
				IB_WC_REM_ACCESS_ERR);
		ib_fmr_pool_unmap(fmr);
	}
}

static struct kunit_case fmr_consumer_cases[] = {
	KUNIT_CASE(consumer_srp),
	KUNIT_CASE(consumer_iser),
	KUNIT_CASE(consumer_rds),
	KUNIT_CASE(consumer_xprtrdma),
	KUNIT_CASE(consumer_lustre),
	KUNIT_CASE(consumer_sdp),
	{}
};

IBT_SUITE(fmr_consumer, fmr_consumer_cases);
