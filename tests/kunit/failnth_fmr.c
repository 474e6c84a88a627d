// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fail-nth rows: fast memory regions, their pools, memory windows.
 *
 * What promises a fence cannot fail: the faults that it meets cost stock, which comes back.
 */
#include <linux/delay.h>

#include "failnth.h"

#ifdef CONFIG_IB_MR_DEBUG

#define PG	SZ_4K
#define LEN	(FN_PAGES * PG)
#define HALF	(FN_PAGES / 2)

/* --- FMRs --- */

static int alloc_fmr(struct fn_room *r)
{
	struct ib_fmr_attr attr = {
		.max_pages = FN_PAGES, .max_maps = 1000, .page_shift = PAGE_SHIFT,
	};

	r->fmr = ib_alloc_fmr(r->pd, FMR_ALL, &attr);
	return PTR_ERR_OR_ZERO(r->fmr);
}

/* Mapped to one half of the pages or the other. */
static u64 half_iova(const struct fn_room *r)
{
	return FN_IOVA + (r->turn ? 0x100000 : 0);
}

static void fmr_works(struct fn_room *r)
{
	fn_reads(r, r->p, r->b, r->fmr->rkey, half_iova(r), r->turn * HALF * PG, HALF * PG);
}

static int map_half(struct fn_room *r, bool turn)
{
	int err;

	swap(r->turn, turn);
	err = ib_map_phys_fmr(r->fmr, r->list + r->turn * HALF, HALF, half_iova(r));
	if (err)
		swap(r->turn, turn);
	return err;
}

static int run_map(struct fn_room *r)
{
	return map_half(r, !r->turn);
}

static void before_unmap(struct fn_room *r)
{
	KUNIT_ASSERT_EQ(r->test, ibt_map(r->fmr, r->list + r->turn * HALF, HALF, half_iova(r)), 0);
	fmr_works(r);
	r->key = r->fmr->rkey;
}

static int run_unmap(struct fn_room *r)
{
	return ibt_unmap(r->fmr);
}

static void done_unmap(struct fn_room *r)
{
	fn_dead(r, r->p, r->key, half_iova(r));
}

static void set_up_fmr(struct fn_room *r)
{
	r->fmr = ibt_fmr(r->test, r->pd, FMR_ALL, FN_PAGES, 30000);
	KUNIT_ASSERT_EQ(r->test, ibt_map(r->fmr, r->list, HALF, half_iova(r)), 0);
}

/* Stock for what the next round takes. */
static void done_map(struct fn_room *r)
{
	fmr_works(r);
	KUNIT_EXPECT_TRUE(r->test, ibt_mag_settles(ibmr_fmr_mag(r->fmr), 1, 10000));
}

static int run_dealloc_fmr(struct fn_room *r)
{
	return ib_dealloc_fmr(r->fmr);
}

static void before_dealloc_fmr(struct fn_room *r)
{
	KUNIT_ASSERT_EQ(r->test, alloc_fmr(r), 0);
}

static void done_alloc_fmr(struct fn_room *r)
{
	KUNIT_EXPECT_EQ(r->test, ibt_map(r->fmr, r->list, HALF, half_iova(r)), 0);
	if (r->p)
		fmr_works(r);
	KUNIT_EXPECT_EQ(r->test, ibt_unmap(r->fmr), 0);
	KUNIT_EXPECT_EQ(r->test, ib_dealloc_fmr(r->fmr), 0);
}

/* --- pools --- */

static int create_pool(struct fn_room *r, bool cache)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = FN_PAGES, .page_shift = PAGE_SHIFT, .access = FMR_ALL,
		.pool_size = 4, .dirty_watermark = 2, .cache = cache,
	};

	r->pool = ib_create_fmr_pool(r->pd, &param);
	return PTR_ERR_OR_ZERO(r->pool);
}

static int run_create(struct fn_room *r)
{
	return create_pool(r, false);
}

static int run_create_cached(struct fn_room *r)
{
	return create_pool(r, true);
}

static void pool_fmr_works(struct fn_room *r, struct ib_pool_fmr *pf, unsigned int page)
{
	fn_reads(r, r->p, r->b, pf->fmr->rkey, FN_IOVA, page * PG, PG);
}

static void done_create(struct fn_room *r)
{
	r->pf = ibt_pool_map(r->pool, r->list + 1, 1, FN_IOVA);
	KUNIT_ASSERT_FALSE(r->test, IS_ERR(r->pf));
	pool_fmr_works(r, r->pf, 1);
	KUNIT_EXPECT_EQ(r->test, ib_fmr_pool_unmap(r->pf), 0);
	ib_destroy_fmr_pool(r->pool);
	KUNIT_EXPECT_TRUE(r->test, ibt_pd_idle(r->pd));
}

static void end_pool(struct kunit *test, void *arg)
{
	struct fn_room *r = arg;

	ib_fmr_pool_unmap(r->held);
	ib_destroy_fmr_pool(r->pool);
}

/* Another entry is in use all the while. */
static void hold_one(struct fn_room *r)
{
	r->held = ibt_pool_map(r->pool, r->list, 1, FN_IOVA);
	KUNIT_ASSERT_FALSE(r->test, IS_ERR(r->held));
	ibt_defer(r->test, end_pool, r);
}

static void set_up_pool(struct fn_room *r)
{
	KUNIT_ASSERT_EQ(r->test, create_pool(r, false), 0);
	hold_one(r);
}

static void set_up_cached(struct fn_room *r)
{
	KUNIT_ASSERT_EQ(r->test, create_pool(r, true), 0);
	hold_one(r);
	r->sgl = ibt_sg(r->test, r->b, 2 * PG, PG, &r->nents);
}

static void held_works(struct fn_room *r)
{
	pool_fmr_works(r, r->held, 0);
}

static int take_pf(struct fn_room *r, struct ib_pool_fmr *pf)
{
	r->pf = IS_ERR(pf) ? NULL : pf;
	return PTR_ERR_OR_ZERO(pf);
}

static int run_pool_map(struct fn_room *r)
{
	return take_pf(r, ib_fmr_pool_map_phys(r->pool, r->list + 2, 1, FN_IOVA));
}

static void set_up_pool_sg(struct fn_room *r)
{
	set_up_pool(r);
	r->sgl = ibt_sg(r->test, r->b, 2 * PG, PG, &r->nents);
}

static int run_pool_map_sg(struct fn_room *r)
{
	return take_pf(r, ib_fmr_pool_map_sg(r->pool, r->sgl, r->nents, 0, PG, FN_IOVA));
}

/* A cached mapping that stayed would be hit the next time; a flush ends it. */
static void done_pool_map(struct fn_room *r)
{
	held_works(r);
	pool_fmr_works(r, r->pf, 2);
	KUNIT_EXPECT_EQ(r->test, ib_fmr_pool_unmap(r->pf), 0);
	KUNIT_EXPECT_EQ(r->test, ib_flush_fmr_pool(r->pool), 0);
	KUNIT_EXPECT_TRUE(r->test, ibt_mag_settles(ibmr_pool_mag(r->pool), 1, 10000));
}

static void before_pool_unmap(struct fn_room *r)
{
	r->pf = ibt_pool_map(r->pool, r->list + 2, 1, FN_IOVA);
	KUNIT_ASSERT_FALSE(r->test, IS_ERR(r->pf));
	pool_fmr_works(r, r->pf, 2);
	r->key = r->pf->fmr->rkey;
}

static int run_pool_unmap(struct fn_room *r)
{
	return ib_fmr_pool_unmap(r->pf);
}

static void done_pool_unmap(struct fn_room *r)
{
	held_works(r);
	fn_dead(r, r->p, r->key, FN_IOVA);
}

static void before_flush(struct fn_room *r)
{
	before_pool_unmap(r);
	KUNIT_ASSERT_EQ(r->test, ib_fmr_pool_unmap(r->pf), 0);
}

static int run_flush(struct fn_room *r)
{
	return ib_flush_fmr_pool(r->pool);
}

static void done_flush(struct fn_room *r)
{
	done_pool_unmap(r);
	KUNIT_EXPECT_TRUE(r->test, ibt_mag_settles(ibmr_pool_mag(r->pool), 1, 10000));
}

/* Destroyed with an entry in use: what was released is fenced, and the entry lives on. */
static void before_destroy(struct fn_room *r)
{
	KUNIT_ASSERT_EQ(r->test, create_pool(r, false), 0);
	r->held = ibt_pool_map(r->pool, r->list, 1, FN_IOVA);
	KUNIT_ASSERT_FALSE(r->test, IS_ERR(r->held));
	before_flush(r);
}

static int run_destroy(struct fn_room *r)
{
	ib_destroy_fmr_pool(r->pool);
	return 0;
}

static void done_destroy(struct fn_room *r)
{
	done_pool_unmap(r);
	KUNIT_EXPECT_EQ(r->test, ib_fmr_pool_unmap(r->held), 0);
	KUNIT_EXPECT_TRUE(r->test, ibt_pd_idle(r->pd));
}

static const struct fn_row fmrs[] = {
	{ "ib_alloc_fmr", NULL, F_ALLOC | F_DEVICE | F_REGQP,
	  .run = alloc_fmr, .done = done_alloc_fmr },
	{ "ib_alloc_fmr", "the device's first, memory", F_ALLOC, FN_FIRST,
	  .run = alloc_fmr, .done = done_alloc_fmr },
	{ "ib_alloc_fmr", "the device's first, device", F_DEVICE, FN_FIRST,
	  .run = alloc_fmr, .done = done_alloc_fmr },
	{ "ib_alloc_fmr", "the device's first, refused", F_WC, FN_FIRST,
	  .run = alloc_fmr, .done = done_alloc_fmr },
	{ "ib_alloc_fmr", "the device's first, time-out", F_TIMEOUT, FN_FIRST,
	  .run = alloc_fmr, .done = done_alloc_fmr },
	{ "ib_map_phys_fmr", NULL, F_ALLOC | F_DEVICE, FN_STOCK | FN_EINVAL,
	  .set_up = set_up_fmr, .run = run_map, .failed = fmr_works, .done = done_map },
	{ "ib_unmap_fmr", NULL, F_ALLOC | F_DEVICE | F_REGQP, FN_STOCK, .set_up = set_up_fmr,
	  .before = before_unmap, .run = run_unmap, .done = done_unmap },
	{ "ib_dealloc_fmr", .before = before_dealloc_fmr, .run = run_dealloc_fmr },
	{ "ib_create_fmr_pool", NULL, F_ALLOC | F_DEVICE | F_REGQP,
	  .run = run_create, .done = done_create },
	{ "ib_create_fmr_pool", "with cache", F_ALLOC | F_DEVICE | F_REGQP,
	  .run = run_create_cached, .done = done_create },
	{ "ib_fmr_pool_map_phys", NULL, F_ALLOC | F_DEVICE, FN_STOCK | FN_EINVAL,
	  .set_up = set_up_pool, .run = run_pool_map, .failed = held_works,
	  .done = done_pool_map },
	{ "ib_fmr_pool_map_phys", "with cache", F_ALLOC | F_DEVICE, FN_STOCK | FN_EINVAL,
	  .set_up = set_up_cached, .run = run_pool_map, .failed = held_works,
	  .done = done_pool_map },
	{ "ib_fmr_pool_map_sg", NULL, F_ALLOC | F_DEVICE, FN_STOCK | FN_EINVAL,
	  .set_up = set_up_pool_sg, .run = run_pool_map_sg, .failed = held_works,
	  .done = done_pool_map },
	{ "ib_fmr_pool_map_sg", "with cache", F_ALLOC | F_DEVICE, FN_STOCK | FN_EINVAL,
	  .set_up = set_up_cached, .run = run_pool_map_sg, .failed = held_works,
	  .done = done_pool_map },
	{ "ib_fmr_pool_unmap", .flags = FN_STOCK, .set_up = set_up_pool,
	  .before = before_pool_unmap, .run = run_pool_unmap, .done = done_pool_unmap },
	{ "ib_flush_fmr_pool", NULL, F_ALLOC | F_DEVICE | F_REGQP, FN_STOCK | FN_ANYONE,
	  .set_up = set_up_pool, .before = before_flush, .run = run_flush, .done = done_flush },
	{ "ib_flush_fmr_pool", "with cache", F_ALLOC | F_DEVICE | F_REGQP, FN_STOCK | FN_ANYONE,
	  .set_up = set_up_cached, .before = before_flush, .run = run_flush, .done = done_flush },
	{ "ib_destroy_fmr_pool", NULL, F_ALLOC | F_DEVICE | F_REGQP,
	  .before = before_destroy, .run = run_destroy, .done = done_destroy },
};

FN_SUITE(fmrs, fmrs);

/* --- windows --- */

static int alloc_mw(struct fn_room *r)
{
	r->mw = ib_alloc_mw(r->pd, IB_MW_TYPE_1);
	return PTR_ERR_OR_ZERO(r->mw);
}

/* There is none before, so the stocks are made and go with it. */
static void done_alloc_mw(struct fn_room *r)
{
	u64 iova = FN_IOVA;
	struct ib_mw_bind bind = {
		.bind_info = { .addr = FN_IOVA + 10, .length = 100, .mw_access_flags = RR },
	};
	struct ib_mr *mr = ib_reg_phys_mr(r->pd, r->phys, r->nphys, FMR_ALL | MWB, &iova);

	KUNIT_ASSERT_FALSE(r->test, IS_ERR(mr));
	bind.bind_info.mr = mr;
	KUNIT_EXPECT_EQ(r->test, ib_bind_mw(r->p->tgt.qp, r->mw, &bind), 0);
	fn_reads(r, r->p, r->b, r->mw->rkey, FN_IOVA + 10, 10, 100);
	KUNIT_EXPECT_EQ(r->test, ib_dealloc_mw(r->mw), 0);
	KUNIT_EXPECT_EQ(r->test, ib_dereg_mr(mr), 0);
}

static void set_up_win(struct fn_room *r)
{
	ibt_win(&r->w, r->test, IBT_SCATTER, LEN, FMR_ALL | MWB);
}

/* So large that it takes the region's own stock, and a list of the MR's own. */
static void set_up_large_win(struct fn_room *r)
{
	ibt_win(&r->w, r->test, IBT_SCATTER, 600 * PG, FMR_ALL | MWB);
}

static size_t win_off(const struct fn_room *r)
{
	return r->turn ? 700 : 100;
}

static void win_works(struct fn_room *r)
{
	if (r->key)
		fn_reads(r, r->w.p, r->w.b, r->w.mw->rkey, r->w.base + win_off(r), win_off(r),
			 500);
}

static int bind_next(struct fn_room *r, size_t len)
{
	int err;

	r->turn ^= 1;
	err = ibt_bind(&r->w, win_off(r), len, RR, IB_SEND_SIGNALED);
	if (err)
		r->turn ^= 1;
	else
		r->key = r->w.mw->rkey;
	return err;
}

static int run_bind(struct fn_room *r)
{
	return bind_next(r, 500);
}

static int run_bind_large(struct fn_room *r)
{
	return bind_next(r, 590 * PG);
}

static void done_bind(struct fn_room *r)
{
	struct ib_wc wc;

	ibt_next_wc(&r->w, &wc);
	KUNIT_EXPECT_EQ(r->test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(r->test, wc.opcode, IB_WC_BIND_MW);
	win_works(r);
}

/* Of each region a window of its size is the first one, so a worker makes what it takes. */
static void before_provided(struct fn_room *r)
{
	int n;
	struct scatterlist *sgl = ibt_sg(r->test, r->w.b, 0, 600 * PG, &n);

	r->mr = ib_mr_reg_sg(r->w.pd, sgl, n, FMR_ALL | MWB, NULL);
	KUNIT_ASSERT_FALSE(r->test, IS_ERR(r->mr));
}

static int run_provided(struct fn_room *r)
{
	struct ib_mw_bind_info info = {
		.mr = r->mr, .addr = r->mr->iova, .length = 600 * PG, .mw_access_flags = RR,
	};
	int err = -ENOMEM, tries;

	for (tries = 0; tries < 200 && err == -ENOMEM; tries++) {
		if (tries)
			usleep_range(1000, 2000);
		err = ib_mr_bind_mw(r->w.p->tgt.qp, r->w.mw, &info, 0, 0);
	}
	return err;
}

static void done_provided(struct fn_room *r)
{
	fn_reads(r, r->w.p, r->w.b, r->w.mw->rkey, r->mr->iova + 100 * PG, 100 * PG, 500);
	KUNIT_EXPECT_EQ(r->test, ibt_bind(&r->w, 0, 0, 0, 0), 0);
	KUNIT_EXPECT_EQ(r->test, ib_dereg_mr(r->mr), 0);
}

static void before_bind_2(struct fn_room *r)
{
	r->mw = ib_alloc_mw(r->w.pd, IB_MW_TYPE_2);
	KUNIT_ASSERT_FALSE(r->test, IS_ERR(r->mw));
}

static int run_bind_2(struct fn_room *r)
{
	struct ib_bind_mw_wr wr = {
		.wr.send_flags = IB_SEND_SIGNALED,
		.mw = r->mw,
		.bind_info = {
			.mr = r->w.mr, .addr = r->w.base + 30, .length = 400,
			.mw_access_flags = RR,
		},
	};

	return ib_mr_post_bind_mw(r->w.p->tgt.qp, &wr);
}

static void done_bind_2(struct fn_room *r)
{
	struct ib_wc wc;

	ibt_next_wc(&r->w, &wc);
	KUNIT_EXPECT_EQ(r->test, wc.status, IB_WC_SUCCESS);
	fn_reads(r, r->w.p, r->w.b, r->mw->rkey, r->w.base + 30, 30, 400);
	KUNIT_EXPECT_EQ(r->test, ib_dealloc_mw(r->mw), 0);
}

/* Refused, it has granted nothing: another window can be bound, and the region let go of. */
static void before_dealloc_mw(struct fn_room *r)
{
	int tries, err = -ENOMEM;
	struct ib_wc wc;

	before_bind_2(r);
	/* On a queue pair that the last look at a dead key did not break. */
	fn_reads(r, r->w.p, r->w.b, r->w.mr->rkey, r->w.base, 0, 1);
	for (tries = 0; tries < 500 && err == -ENOMEM; tries++) {
		if (tries)
			msleep(20);
		err = run_bind_2(r);
	}
	KUNIT_ASSERT_EQ(r->test, err, 0);
	ibt_next_wc(&r->w, &wc);
	fn_reads(r, r->w.p, r->w.b, r->mw->rkey, r->w.base + 30, 30, 400);
	r->key = r->mw->rkey;
}

static int run_dealloc_mw(struct fn_room *r)
{
	return ib_dealloc_mw(r->mw);
}

static void done_dealloc_mw(struct fn_room *r)
{
	fn_dead(r, r->w.p, r->key, r->w.base + 30);
}

static int run_poll(struct fn_room *r)
{
	struct ib_wc wc;

	return ib_mr_poll_cq(r->p->tgt.cq, 1, &wc);
}

static const struct fn_row windows[] = {
	{ "ib_alloc_mw", "the first", F_ALLOC | F_DEVICE | F_REGQP, FN_SAMPLE,
	  .run = alloc_mw, .done = done_alloc_mw },
	{ "ib_alloc_mw", "beside another", F_ALLOC, FN_STOCK,
	  .set_up = set_up_win, .run = alloc_mw, .done = done_alloc_mw },
	{ "ib_mr_bind_mw", NULL, F_ALLOC | F_DEVICE | F_POST, FN_STOCK, .set_up = set_up_win,
	  .run = run_bind, .failed = win_works, .done = done_bind },
	{ "ib_mr_bind_mw", "large", F_ALLOC | F_DEVICE | F_POST, FN_STOCK,
	  .set_up = set_up_large_win, .run = run_bind_large, .failed = win_works,
	  .done = done_bind },
	{ "ib_mr_bind_mw", "provided", F_ALLOC | F_DEVICE | F_REGQP,
	  FN_STOCK | FN_ANYONE | FN_SAMPLE, .set_up = set_up_large_win,
	  .before = before_provided, .run = run_provided, .done = done_provided },
	{ "ib_mr_post_bind_mw", NULL, F_ALLOC | F_DEVICE | F_POST, FN_STOCK,
	  .set_up = set_up_win, .before = before_bind_2, .run = run_bind_2,
	  .done = done_bind_2 },
	{ "ib_dealloc_mw", NULL, F_ALLOC | F_DEVICE | F_REGQP, FN_STOCK, .set_up = set_up_win,
	  .before = before_dealloc_mw, .run = run_dealloc_mw, .done = done_dealloc_mw },
	{ "ib_mr_poll_cq", .run = run_poll },
};

FN_SUITE(windows, windows);

#endif /* CONFIG_IB_MR_DEBUG */
