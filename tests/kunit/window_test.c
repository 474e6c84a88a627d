// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows: grants to the byte, moved and taken back, with RDMA as the judge.
 */

#include "helpers.h"

#include <rdma/ib_mr_mw.h>

#define REGION	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND)
#define R	IB_ACCESS_REMOTE_READ
#define W	IB_ACCESS_REMOTE_WRITE

static void dealloc_mw(struct kunit *test, void *arg)
{
	KUNIT_EXPECT_EQ(test, ib_dealloc_mw(arg), 0);
}

static struct ib_mw *alloc_mw(struct kunit *test, struct ib_pd *pd, enum ib_mw_type type)
{
	struct ib_mw *mw = ib_alloc_mw(pd, type);

	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR(mw), "ib_alloc_mw: %ld", PTR_ERR(mw));
	ibt_defer(test, dealloc_mw, mw);
	return mw;
}

static void window_moves(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_VMALLOC, 8 * PAGE_SIZE, 1);
	struct ib_mr *mr = ibt_mr(test, ib_mr_reg_kernel(pd, b->addr, b->size, REGION, NULL));
	struct ib_mw *mw = alloc_mw(test, pd, IB_MW_TYPE_1);
	u64 base = (uintptr_t)b->addr;
	struct ib_mw_bind bind = {
		.bind_info = { .mr = mr, .mw_access_flags = R },
	};
	u32 old = mw->rkey;
	int i;

	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, mw->rkey, base, 8),
			IB_WC_REM_ACCESS_ERR);
	for (i = 0; i < 8; i++) {
		size_t off = 1000 * i + 3, len = 5000 + 11 * i;

		bind.bind_info.addr = base + off;
		bind.bind_info.length = len;
		KUNIT_ASSERT_EQ(test, ib_bind_mw(p->tgt.qp, mw, &bind), 0);
		KUNIT_EXPECT_NE(test, mw->rkey, old);
		KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, mw->rkey, base + off, len),
				IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, ibt_diff_copy(b, off, len, p->req.buf), off + len);
		KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, mw->rkey, base + off - 1,
					       1), IB_WC_REM_ACCESS_ERR);
		KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, mw->rkey, base + off,
					       len + 1), IB_WC_REM_ACCESS_ERR);
		KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_WRITE, p->req.buf, mw->rkey, base + off, 1),
				IB_WC_REM_ACCESS_ERR);
		KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, old, base + off, 1),
				IB_WC_REM_ACCESS_ERR);
		old = mw->rkey;
	}
	ibt_expect_refused(test, WINDOWS_BOUND, ib_dereg_mr(mr));
	bind.bind_info.length = 0;
	KUNIT_ASSERT_EQ(test, ib_bind_mw(p->tgt.qp, mw, &bind), 0);
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, old, base + 7003, 1),
			IB_WC_REM_ACCESS_ERR);
}

static void window_type2(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_KMALLOC, 2 * PAGE_SIZE, 1);
	struct ib_mr *mr = ibt_mr(test, ib_mr_reg_kernel(pd, b->addr, b->size, REGION, NULL));
	struct ib_mw *mw = alloc_mw(test, pd, IB_MW_TYPE_2);
	struct ib_bind_mw_wr wr = {
		.mw = mw,
		.bind_info = {
			.mr = mr, .addr = (uintptr_t)b->addr, .length = 100,
			.mw_access_flags = R | W,
		},
	};

	KUNIT_ASSERT_EQ(test, ib_mr_post_bind_mw(p->tgt.qp, &wr), 0);
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_WRITE, p->req.buf, wr.rkey, wr.bind_info.addr, 100),
			IB_WC_SUCCESS);
	ibt_expect_refused(test, MW_NOT_FREE, ib_mr_post_bind_mw(p->tgt.qp, &wr));
	KUNIT_EXPECT_EQ(test, ib_mr_invalidated(pd, wr.rkey ^ 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, ib_mr_invalidated(pd, wr.rkey), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_post_bind_mw(p->tgt.qp, &wr), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_invalidated(pd, wr.rkey), 0);
}

static struct kunit_case window_cases[] = {
	KUNIT_CASE(window_moves),
	KUNIT_CASE(window_type2),
	{}
};

IBT_SUITE(window, window_cases);
