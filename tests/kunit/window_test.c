// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows: what is granted, to the byte, and every rule of a bind with a case that passes
 * and one that is refused. RDMA is the judge.
 */

#include "window.h"

#define REGION	(LW | MWB)

static void window_moves(struct kunit *test)
{
	struct ibt_win w;
	u32 old;
	int i;

	ibt_win(&w, test, IBT_VMALLOC, 8 * PAGE_SIZE, REGION);
	ibt_expect_no_window(&w, w.mw->rkey, 0);
	old = w.mw->rkey;
	for (i = 0; i < 6; i++) {
		size_t off = 1000 * i + 3, len = 5000 + 11 * i;

		KUNIT_ASSERT_EQ(test, ibt_bind(&w, off, len, RR, 0), 0);
		KUNIT_EXPECT_NE(test, w.mw->rkey, old);
		ibt_expect_window(&w, w.mw->rkey, off, len, RR);
		ibt_expect_no_window(&w, old, off);
		old = w.mw->rkey;
	}
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 0, 0, 0, 0), 0);
	ibt_expect_no_window(&w, old, 5003);
}

static void window_rights(struct kunit *test)
{
	static const int sets[] = { RR, RW, RA, RR | RW, RR | RA, RW | RA, RR | RW | RA };
	struct ibt_win w;
	unsigned int i;

	ibt_win(&w, test, IBT_SCATTER, 4 * PAGE_SIZE, REGION);
	for (i = 0; i < ARRAY_SIZE(sets); i++) {
		KUNIT_ASSERT_EQ(test, ibt_bind_patiently(&w, 4000, 200, sets[i]), 0);
		ibt_expect_window(&w, w.mw->rkey, 4000, 200, sets[i]);
	}
}

/* Field fault 4: bounds and rights were looked up in the region only. */
static void window_field_fault_4(struct kunit *test)
{
	struct ibt_win w;

	ibt_win(&w, test, IBT_VMALLOC, 4 * PAGE_SIZE, REGION | RR | RW);
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 100, 100, RR, 0), 0);
	/* The region may be written all over by its own key; the window's grants what it says. */
	ibt_expect_window(&w, w.mw->rkey, 100, 100, RR);
	ibt_expect_refused(test, WINDOWS_BOUND, ib_dereg_mr(w.mr));
	ibt_expect_refused(test, WINDOWS_BOUND,
			   ib_rereg_phys_mr(w.mr, IB_MR_REREG_ACCESS, NULL, NULL, 0, LW, NULL));
	ibt_expect_window(&w, w.mw->rkey, 100, 100, RR);
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 0, 0, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, w.mr), 0);
	w.mr = NULL;
}

/* Every refusal leaves the old binding as it was. */
static void window_rules(struct kunit *test)
{
	const size_t size = 4 * PAGE_SIZE;
	struct ib_pd *other = ibt_pd(test);
	struct ib_mr *mr, *no_bind, *no_local, *zero, *foreign;
	struct ib_mw *mw2;
	struct ibt_win w;
	u64 iova = 0;

	ibt_win(&w, test, IBT_VMALLOC, size, REGION);
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 100, 100, RR, 0), 0);
	mr = w.mr;
	no_bind = ibt_mr(test, ib_mr_reg_kernel(w.pd, w.b->addr, size, LW | RR, &w.base));
	no_local = ibt_mr(test, ib_mr_reg_kernel(w.pd, w.b->addr, size, MWB, &w.base));
	zero = ibt_mr(test, ib_mr_reg_kernel(w.pd, w.b->addr, size, REGION | IB_ZERO_BASED, &iova));
	foreign = ibt_mr(test, ib_mr_reg_kernel(other, w.b->addr, size, REGION, &w.base));
	mw2 = ibt_mw(test, other, IB_MW_TYPE_1);

	w.mr = foreign;
	ibt_expect_refused(test, MW_PD, ibt_bind(&w, 0, 10, RR, 0));
	w.mr = no_bind;
	ibt_expect_refused(test, MW_NO_BIND, ibt_bind(&w, 0, 10, RR, 0));
	w.mr = no_local;
	ibt_expect_refused(test, MW_ACCESS, ibt_bind(&w, 0, 10, RW, 0));
	ibt_expect_refused(test, MW_ACCESS, ibt_bind(&w, 0, 10, RA, 0));
	w.mr = zero;
	ibt_expect_refused(test, MW_ZERO_BASED, ibt_bind(&w, 0, 10, RR, 0));
	w.mr = mr;
	ibt_expect_refused(test, MW_ZERO_BASED, ibt_bind(&w, 0, 10, RR | IB_ZERO_BASED, 0));
	ibt_expect_refused(test, BAD_ACCESS, ibt_bind(&w, 0, 10, RR | LW, 0));
	ibt_expect_refused(test, BAD_ACCESS, ibt_bind(&w, 0, 10, 0, 0));
	ibt_expect_refused(test, MW_RANGE, ibt_bind(&w, size, 1, RR, 0));
	ibt_expect_refused(test, MW_RANGE, ibt_bind(&w, 0, size + 1, RR, 0));
	ibt_expect_refused(test, MW_RANGE, ibt_bind(&w, -1, 2, RR, 0));
	ibt_expect_refused(test, WRAP, ibt_bind(&w, 8, -1, RR, 0));
	w.mw = mw2;
	ibt_expect_refused(test, MW_PD, ibt_bind(&w, 0, 10, RR, 0));
	ibt_expect_refused(test, MW_PD, ibt_bind(&w, 0, 0, 0, 0));
	ibt_expect_refused(test, MW_TYPE, ibt_bind_2(&w, mw2, 0, 10, RR));
	w.mr = NULL;
	ibt_expect_refused(test, NULL_ARG, ibt_bind(&w, 0, 10, RR, 0));
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(ib_alloc_mw(w.pd, 3)), -EINVAL);

	/* What passes: a read of a region without local write; the very whole of it. */
	w.mw = ibt_mw(test, w.pd, IB_MW_TYPE_1);
	w.mr = no_local;
	KUNIT_EXPECT_EQ(test, ibt_bind(&w, 8, 10, RR, 0), 0);
	ibt_expect_window(&w, w.mw->rkey, 8, 10, RR);
	w.mr = mr;
	KUNIT_EXPECT_EQ(test, ibt_bind(&w, 0, size, RR, 0), 0);
	ibt_expect_window(&w, w.mw->rkey, 0, size, RR);
}

static void window_old_binding_stays(struct kunit *test)
{
	struct ibt_win w;
	u32 key;

	ibt_win(&w, test, IBT_VMALLOC, 4 * PAGE_SIZE, REGION);
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 4090, 100, RR | RW, 0), 0);
	key = w.mw->rkey;
	ibt_expect_refused(test, MW_RANGE, ibt_bind(&w, 4 * PAGE_SIZE, 1, RR, 0));
	KUNIT_EXPECT_EQ(test, w.mw->rkey, key);
	ibt_expect_window(&w, key, 4090, 100, RR | RW);
}

static void window_type2(struct kunit *test)
{
	struct ib_mw *mw;
	struct ibt_win w;
	u32 key;

	ibt_win(&w, test, IBT_VMALLOC, 4 * PAGE_SIZE, REGION);
	mw = ibt_mw(test, w.pd, IB_MW_TYPE_2);
	w.mw = mw;
	ibt_expect_refused(test, MW_TYPE, ibt_bind(&w, 0, 10, RR, 0));
	ibt_expect_refused(test, MW_EMPTY, ibt_bind_2(&w, mw, 0, 0, RR));
	KUNIT_ASSERT_EQ(test, ibt_bind_2(&w, mw, 50, 100, RR | RW), 0);
	key = mw->rkey;
	ibt_expect_window(&w, key, 50, 100, RR | RW);
	ibt_expect_refused(test, MW_NOT_FREE, ibt_bind_2(&w, mw, 0, 10, RR));

	/* A bogus key changes nothing. */
	ibt_expect_refused(test, STALE_KEY, ib_mr_invalidated(w.pd, key ^ 1));
	ibt_expect_refused(test, UNKNOWN_KEY, ib_mr_invalidated(w.pd, 0xfffffe00));
	ibt_expect_refused(test, OTHER_PD, ib_mr_invalidated(ibt_pd(test), key));
	ibt_expect_refused(test, MW_NOT_FREE, ibt_bind_2(&w, mw, 0, 10, RR));
	ibt_expect_window(&w, key, 50, 100, RR | RW);

	KUNIT_EXPECT_EQ(test, ib_mr_invalidated(w.pd, key), 0);
	ibt_expect_refused(test, STALE_KEY, ib_mr_invalidated(w.pd, key));
	ibt_expect_no_window(&w, key, 50);
	KUNIT_ASSERT_EQ(test, ibt_bind_2(&w, mw, 0, 10, RR), 0);
	KUNIT_EXPECT_NE(test, mw->rkey, key);
	ibt_expect_window(&w, mw->rkey, 0, 10, RR);
	KUNIT_EXPECT_EQ(test, ib_mr_invalidated(w.pd, mw->rkey), 0);

	/* A zero-based one: addresses are offsets. */
	KUNIT_ASSERT_EQ(test, ibt_bind_2(&w, mw, PAGE_SIZE, 10, RR | IB_ZERO_BASED), 0);
	KUNIT_EXPECT_EQ(test, ibt_rdma(w.p, IBT_READ, w.p->req.buf, mw->rkey, 0, 10),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_diff_copy(w.b, PAGE_SIZE, 10, w.p->req.buf), PAGE_SIZE + 10);
	KUNIT_EXPECT_EQ(test, ibt_rdma(w.p, IBT_READ, w.p->req.buf, mw->rkey, 1, 10),
			IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, ib_mr_invalidated(w.pd, mw->rkey), 0);
	ibt_expect_refused(test, ZERO_BASED_ALIGN,
			   ibt_bind_2(&w, mw, 8, 10, RR | IB_ZERO_BASED));

	/* o10-37.2.26: type 1 is not to be invalidated. */
	w.mw = ibt_mw(test, w.pd, IB_MW_TYPE_1);
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 0, 10, RR, 0), 0);
	ibt_expect_refused(test, MW_TYPE1_INV, ib_mr_invalidated(w.pd, w.mw->rkey));
	ibt_expect_no_window(&w, w.mw->rkey, 0);
}

/* xprtrdma binds to the DMA MR. */
static void window_on_dma_mr(struct kunit *test)
{
	struct ibt_win w;

	ibt_win(&w, test, IBT_KMALLOC, 2 * PAGE_SIZE, REGION);
	w.mr = ibt_mr(test, ib_get_dma_mr(w.pd, REGION));
	w.base = (uintptr_t)w.b->addr;
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 13, 4999, RR | RW, 0), 0);
	ibt_expect_window(&w, w.mw->rkey, 13, 4999, RR | RW);
	w.base = 0x1000;
	ibt_expect_refused(test, MW_RANGE, ibt_bind(&w, 0, 10, RR, 0));
	w.base = (uintptr_t)w.b->addr;
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 0, 0, 0, 0), 0);
}

/* More blocks than the common stocks carry. */
static void window_large(struct kunit *test)
{
	const size_t size = 600 * PAGE_SIZE;
	struct ibt_win w;

	ibt_win(&w, test, IBT_SCATTER, size, REGION);
	KUNIT_ASSERT_EQ(test, ibt_bind_patiently(&w, 5, size - 10, RR), 0);
	ibt_expect_window(&w, w.mw->rkey, 5, size - 10, RR);
	KUNIT_ASSERT_EQ(test, ibt_bind_patiently(&w, 300 * PAGE_SIZE + 1, 290 * PAGE_SIZE,
						 RR | RW), 0);
	ibt_expect_window(&w, w.mw->rkey, 300 * PAGE_SIZE + 1, 290 * PAGE_SIZE, RR | RW);
}

static struct kunit_case window_cases[] = {
	KUNIT_CASE(window_moves),
	KUNIT_CASE(window_rights),
	KUNIT_CASE(window_field_fault_4),
	KUNIT_CASE(window_rules),
	KUNIT_CASE(window_old_binding_stays),
	KUNIT_CASE(window_type2),
	KUNIT_CASE(window_on_dma_mr),
	KUNIT_CASE(window_large),
	{}
};

IBT_SUITE(window, window_cases);
