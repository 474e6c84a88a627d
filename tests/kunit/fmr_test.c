// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fast memory regions: the rules of the classic calls, with RDMA as the judge.
 */

#include "helpers.h"

#include <rdma/ib_fmr_pool.h>

#define RIGHTS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

static void dealloc_fmr(struct kunit *test, void *arg)
{
	struct ib_fmr *fmr = arg;
	LIST_HEAD(list);

	list_add(&fmr->list, &list);
	KUNIT_EXPECT_EQ(test, ib_unmap_fmr(&list), 0);
	KUNIT_EXPECT_EQ(test, ib_dealloc_fmr(fmr), 0);
}

static struct ib_fmr *alloc_fmr(struct kunit *test, struct ib_pd *pd, int access, int max_pages,
				int max_maps)
{
	struct ib_fmr_attr attr = {
		.max_pages = max_pages, .max_maps = max_maps, .page_shift = PAGE_SHIFT,
	};
	struct ib_fmr *fmr = ib_alloc_fmr(pd, access, &attr);

	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR(fmr), "ib_alloc_fmr: %ld", PTR_ERR(fmr));
	ibt_defer(test, dealloc_fmr, fmr);
	return fmr;
}

static u64 *pages_of(struct kunit *test, const struct ibt_buf *b)
{
	u64 *list = kunit_kcalloc(test, b->npages, sizeof(*list), GFP_KERNEL);
	unsigned int i;

	KUNIT_ASSERT_NOT_NULL(test, list);
	for (i = 0; i < b->npages; i++)
		list[i] = (uintptr_t)ibt_ptr(b, (size_t)i * PAGE_SIZE);
	return list;
}

static void fmr_maps(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PAGE_SIZE, 1);
	struct ib_fmr *fmr = alloc_fmr(test, pd, RIGHTS, 8, 4);
	u64 *list = pages_of(test, b);
	u32 old = 0;
	int i;

	for (i = 0; i < 4; i++) {
		unsigned long flags;
		int err;

		local_irq_save(flags);
		err = ib_map_phys_fmr(fmr, list, 4, 0);
		local_irq_restore(flags);
		KUNIT_ASSERT_EQ(test, err, 0);
		KUNIT_EXPECT_EQ(test, fmr->lkey, fmr->rkey);
		KUNIT_EXPECT_NE(test, fmr->rkey, old);
		KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, fmr->rkey, 0, b->size),
				IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, ibt_diff_copy(b, 0, b->size, p->req.buf), b->size);
		KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, fmr->rkey, 1, b->size),
				IB_WC_REM_ACCESS_ERR);
		if (old)
			KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, old, 0, 8),
					IB_WC_REM_ACCESS_ERR);
		old = fmr->rkey;
	}
	ibt_expect_refused(test, MAX_MAPS, ib_map_phys_fmr(fmr, list, 4, 0));
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, old, 0, 8), IB_WC_SUCCESS);
	ibt_expect_refused(test, FMR_MAPPED, ib_dealloc_fmr(fmr));
}

static void fmr_many(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PAGE_SIZE, 1);
	struct ib_fmr *fmr = alloc_fmr(test, pd, RIGHTS, 1, 32767);
	u64 *list = pages_of(test, b);
	int i, again = 0;

	for (i = 0; i < 2000; i++) {
		int err = ib_map_phys_fmr(fmr, list, 1, 0);

		if (err == -EAGAIN) {
			again++;
			msleep(20);
			continue;
		}
		KUNIT_ASSERT_EQ(test, err, 0);
		if (i % 100 == 0)
			KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, fmr->rkey, 0, 8),
					IB_WC_SUCCESS);
	}
	kunit_info(test, "2000 maps, %d times -EAGAIN\n", again);
}

static struct kunit_case fmr_cases[] = {
	KUNIT_CASE(fmr_maps),
	KUNIT_CASE(fmr_many),
	{}
};

IBT_SUITE(fmr, fmr_cases);
