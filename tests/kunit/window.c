// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * See window.h.
 */

#include <linux/delay.h>

#include "window.h"

static void dealloc_mw(struct kunit *test, void *arg)
{
	KUNIT_EXPECT_EQ(test, ib_dealloc_mw(arg), 0);
}

struct ib_mw *ibt_mw(struct kunit *test, struct ib_pd *pd, enum ib_mw_type type)
{
	struct ib_mw *mw = ib_alloc_mw(pd, type);

	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR(mw), "ib_alloc_mw: %ld", PTR_ERR(mw));
	ibt_defer(test, dealloc_mw, mw);
	return mw;
}

void ibt_win(struct ibt_win *w, struct kunit *test, enum ibt_mem kind, size_t size, int access)
{
	struct scatterlist *sgl;
	int nents;

	w->test = test;
	w->pd = ibt_pd(test);
	w->p = ibt_pair(test, w->pd);
	w->b = ibt_buf(test, kind, size, 7);
	w->base = 0x7000000000ULL;
	if (w->b->addr) {
		w->base += offset_in_page(w->b->addr);
		w->mr = ibt_mr(test, ib_mr_reg_kernel(w->pd, w->b->addr, size, access, &w->base));
	} else {
		sgl = ibt_sg(test, w->b, 0, size, &nents);
		w->mr = ibt_mr(test, ib_mr_reg_sg(w->pd, sgl, nents, access, &w->base));
	}
	w->mw = ibt_mw(test, w->pd, IB_MW_TYPE_1);
}

int ibt_bind(struct ibt_win *w, size_t off, u64 len, int access, int send_flags)
{
	struct ib_mw_bind bind = {
		.wr_id = 0x1d,
		.send_flags = send_flags,
		.bind_info = {
			.mr = w->mr, .addr = w->base + off, .length = len,
			.mw_access_flags = access,
		},
	};

	return ib_bind_mw(w->p->tgt.qp, w->mw, &bind);
}

int ibt_bind_patiently(struct ibt_win *w, size_t off, u64 len, int access)
{
	int err, tries;

	for (tries = 0; tries < 5000; tries++) {
		err = ibt_bind(w, off, len, access, 0);
		if (err != -ENOMEM)
			break;
		usleep_range(1000, 2000);
	}
	return err;
}

int ibt_bind_2(struct ibt_win *w, struct ib_mw *mw, size_t off, u64 len, int access)
{
	struct ib_bind_mw_wr wr = {
		.mw = mw,
		.bind_info = {
			.mr = w->mr, .addr = w->base + off, .length = len,
			.mw_access_flags = access,
		},
	};
	int err = ib_mr_post_bind_mw(w->p->tgt.qp, &wr);

	if (!err)
		KUNIT_EXPECT_EQ(w->test, wr.rkey, mw->rkey);
	return err;
}

void ibt_next_wc(struct ibt_win *w, struct ib_wc *wc)
{
	int i;

	memset(wc, 0, sizeof(*wc));
	for (i = 0; i < 20000; i++) {
		if (ib_mr_poll_cq(w->p->tgt.cq, 1, wc) == 1)
			return;
		usleep_range(50, 100);
	}
	KUNIT_FAIL(w->test, "no completion");
}

static void expect_op(struct ibt_win *w, enum ibt_op op, u32 key, u64 iova, u32 len, bool allowed)
{
	enum ib_wc_status status = ibt_rdma(w->p, op, w->p->req.buf, key, iova, len);

	KUNIT_EXPECT_EQ_MSG(w->test, status, allowed ? IB_WC_SUCCESS : IB_WC_REM_ACCESS_ERR,
			    "%s of %u bytes at %llu", ibt_op_name(op), len, iova - w->base);
}

void ibt_expect_window(struct ibt_win *w, u32 key, size_t off, size_t len, int access)
{
	u64 iova = w->base + off;
	u32 n = min_t(size_t, len, IBT_LOCAL);

	expect_op(w, IBT_READ, key, iova, n, access & RR);
	if (access & RR)
		KUNIT_EXPECT_EQ(w->test, ibt_diff_copy(w->b, off, n, w->p->req.buf), off + n);
	/* The last bytes, one past them, one before the first. */
	expect_op(w, IBT_READ, key, iova + len - 1, 1, access & RR);
	expect_op(w, IBT_READ, key, iova + len - 1, 2, false);
	expect_op(w, IBT_READ, key, iova - 1, 1, false);
	expect_op(w, IBT_READ, key, iova - 1, 2, false);

	/* What is written is what was there, so that the buffer keeps its pattern. */
	memcpy(w->p->req.buf, ibt_ptr(w->b, off), 1);
	expect_op(w, IBT_WRITE, key, iova, 1, access & RW);
	expect_op(w, IBT_WRITE, key, iova - 1, 1, false);
	expect_op(w, IBT_WRITE, key, iova + len, 1, false);
	if (IS_ALIGNED(iova, 8) && len >= 8) {
		w->p->add = 0;
		expect_op(w, IBT_FETCH_ADD, key, iova, 8, access & RA);
	}
	KUNIT_EXPECT_TRUE(w->test, ibt_intact(w->b));
}

void ibt_expect_no_window(struct ibt_win *w, u32 key, size_t off)
{
	expect_op(w, IBT_READ, key, w->base + off, 1, false);
	expect_op(w, IBT_WRITE, key, w->base + off, 1, false);
	KUNIT_EXPECT_TRUE(w->test, ibt_intact(w->b));
}
