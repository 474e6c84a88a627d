// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * FMR pools: the rules of the classic calls, with RDMA as the judge.
 */

#include "helpers.h"

#include <rdma/ib_fmr_pool.h>

#define RIGHTS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

static void destroy_pool(struct kunit *test, void *arg)
{
	ib_destroy_fmr_pool(arg);
}

static struct ib_fmr_pool *make_pool(struct kunit *test, struct ib_pd *pd, int size, bool cache)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = 16, .page_shift = PAGE_SHIFT, .access = RIGHTS,
		.pool_size = size, .dirty_watermark = size / 2, .cache = cache,
	};
	struct ib_fmr_pool *pool = ib_create_fmr_pool(pd, &param);

	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR(pool), "ib_create_fmr_pool: %ld", PTR_ERR(pool));
	ibt_defer(test, destroy_pool, pool);
	return pool;
}

static void pool_uncached(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PAGE_SIZE, 1);
	struct ib_fmr_pool *pool = make_pool(test, pd, 8, false);
	struct ib_pool_fmr *fmr[8], *one;
	u64 page = (uintptr_t)ibt_ptr(b, 0);
	int i;

	for (i = 0; i < 8; i++) {
		fmr[i] = ib_fmr_pool_map_phys(pool, &page, 1, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[i]));
	}
	one = ib_fmr_pool_map_phys(pool, &page, 1, 0);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(one), -EAGAIN);
	for (i = 0; i < 8; i++) {
		u32 key = fmr[i]->fmr->rkey;

		KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, key, 0, 64),
				IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, ib_fmr_pool_unmap(fmr[i]), 0);
		KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, key, 0, 64),
				IB_WC_REM_ACCESS_ERR);
	}
	KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(pool), 0);
}

static void pool_cached(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 2 * PAGE_SIZE, 1);
	struct ib_fmr_pool *pool = make_pool(test, pd, 2, true);
	u64 page[2] = { (uintptr_t)ibt_ptr(b, 0), (uintptr_t)ibt_ptr(b, PAGE_SIZE) };
	struct ib_pool_fmr *a, *c;
	u32 key;

	a = ib_fmr_pool_map_phys(pool, page, 2, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(a));
	key = a->fmr->rkey;
	c = ib_fmr_pool_map_phys(pool, page, 2, 0);
	KUNIT_EXPECT_PTR_EQ(test, a, c);
	KUNIT_EXPECT_EQ(test, a->ref_count, 2);
	ib_fmr_pool_unmap(c);
	ib_fmr_pool_unmap(a);
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, key, 0, 64), IB_WC_SUCCESS);
	a = ib_fmr_pool_map_phys(pool, page, 2, 0);
	KUNIT_EXPECT_EQ(test, a->fmr->rkey, key);
	ib_fmr_pool_unmap(a);
	KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(pool), 0);
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, key, 0, 64),
			IB_WC_REM_ACCESS_ERR);
}

static struct kunit_case fmr_pool_cases[] = {
	KUNIT_CASE(pool_uncached),
	KUNIT_CASE(pool_cached),
	{}
};

IBT_SUITE(fmr_pool, fmr_pool_cases);
