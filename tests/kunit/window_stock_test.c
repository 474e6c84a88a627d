// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What windows are bound from: which stocks there are and when they are made, and the slots of
 * signalled binds, which come back also from queue pairs that were destroyed unpolled.
 */

#include <linux/delay.h>

#include "window.h"

#include "stock/magazine.h"

#define REGION	(LW | MWB)
#define TRIES	5000	/* of a millisecond */

/* How many magazines the device has, and how many MRs are in those of single regions. */
struct stocks {
	unsigned int mags, armed;
};

static struct stocks stocks(struct kunit *test)
{
	struct ibmr_dev *dev = ibmr_dev_get(ibt_dev(test));
	struct stocks s = {};
	struct ibmr_mag *mag;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	mutex_lock(&dev->mag_lock);
	list_for_each_entry(mag, &dev->mags, listed.entry) {
		s.mags++;
		if (mag->flags & IBMR_MAG_NO_MARGIN)
			s.armed += READ_ONCE(mag->created);
	}
	mutex_unlock(&dev->mag_lock);
	ibmr_dev_put(dev);
	return s;
}

/* Refused while it is made, and for no other reason; then it works. */
static void provided(struct ibt_win *w, size_t off, u64 len, int access)
{
	struct kunit *test = w->test;
	int err = -ENOMEM, tries;
	u64 making, others;

	ibt_expect_refused(test, MW_PROVIDING, ibt_bind(w, off, len, access, 0));
	making = ib_mr_refusals(ibt_dev(test), IB_MR_WHY_MW_PROVIDING);
	others = ib_mr_refusals(ibt_dev(test), IB_MR_WHY_NO_MEMORY);
	for (tries = 0; tries < TRIES && err == -ENOMEM; tries++) {
		usleep_range(1000, 2000);
		err = ibt_bind(w, off, len, access, 0);
	}
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_EXPECT_EQ(test, ib_mr_refusals(ibt_dev(test), IB_MR_WHY_NO_MEMORY), others);
	kunit_info(test, "ready after %llu more refusals\n",
		   ib_mr_refusals(ibt_dev(test), IB_MR_WHY_MW_PROVIDING) - making);
	ibt_expect_window(w, w->mw->rkey, off, len, access);
}

/* The right to bind windows costs nothing until it is used; then one MR for each set of rights. */
static void right_costs_nothing(struct kunit *test)
{
	const size_t size = 700 * PAGE_SIZE;
	struct scatterlist *sgl;
	struct stocks s, with;
	struct ibt_win w;
	struct ib_mr *mr;
	int nents;

	ibt_win(&w, test, IBT_SCATTER, size, REGION);
	s = stocks(test);
	sgl = ibt_sg(test, w.b, 0, size, &nents);
	mr = ibt_mr(test, ib_mr_reg_sg(w.pd, sgl, nents, REGION, NULL));
	with = stocks(test);
	KUNIT_EXPECT_EQ(test, with.mags, s.mags);
	KUNIT_EXPECT_EQ(test, with.armed, s.armed);
	/* Small windows need nothing of the region's. */
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 3, 200 * PAGE_SIZE, RR, 0), 0);
	KUNIT_EXPECT_EQ(test, stocks(test).mags, s.mags);

	provided(&w, 5, size - 10, RR);
	with = stocks(test);
	KUNIT_EXPECT_EQ(test, with.mags, s.mags + 1);
	KUNIT_EXPECT_EQ(test, with.armed, s.armed + 1);
	provided(&w, 0, size - 4096, RR | RW);
	KUNIT_EXPECT_EQ(test, stocks(test).mags, s.mags + 2);

	/* Of a region of the same size the stock is there already, but its own use of it is not. */
	w.mr = mr;
	w.base = mr->iova;
	provided(&w, 1, size - 1, RR);
	KUNIT_EXPECT_EQ(test, stocks(test).mags, s.mags + 2);
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 0, 0, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
}

/* Registered anew with other memory, it is provided for anew. */
static void provided_anew(struct kunit *test)
{
	struct ib_phys_buf *list;
	struct ibt_win w;
	int n;

	ibt_win(&w, test, IBT_SCATTER, 700 * PAGE_SIZE, REGION);
	provided(&w, 0, 650 * PAGE_SIZE, RR);
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 0, 0, 0, 0), 0);
	list = ibt_phys(test, w.b, 0, 600 * PAGE_SIZE, &n);
	KUNIT_ASSERT_EQ(test, ib_rereg_phys_mr(w.mr, IB_MR_REREG_TRANS, NULL, list, n, 0,
					       &w.base), 0);
	ibt_expect_refused(test, MW_RANGE, ibt_bind(&w, 0, 650 * PAGE_SIZE, RR, 0));
	provided(&w, 7, 600 * PAGE_SIZE - 7, RR);
}

/* A window is deallocated while what it wanted is being made. */
static void dealloc_while_provided(struct kunit *test)
{
	struct ibt_win w;
	int i;

	ibt_win(&w, test, IBT_SCATTER, 700 * PAGE_SIZE, REGION);
	for (i = 0; i < 20; i++) {
		int err;

		w.mw = ib_alloc_mw(w.pd, IB_MW_TYPE_1);
		KUNIT_ASSERT_FALSE(test, IS_ERR(w.mw));
		err = ibt_bind(&w, 0, 700 * PAGE_SIZE, i & 1 ? RR : RW | RA, 0);
		KUNIT_EXPECT_TRUE_MSG(test, !err || err == -ENOMEM, "%d", err);
		if (i & 2)
			usleep_range(500, 1500);
		KUNIT_EXPECT_EQ(test, ib_dealloc_mw(w.mw), 0);
	}
}

/* Three stocks with the first window; sets with atomics are made when they are asked for. */
static void three_sets(struct kunit *test)
{
	struct stocks before, with;
	struct ib_mw *other;
	struct ibt_win w;
	struct ib_pd *pd = ibt_pd(test);

	before = stocks(test);
	other = ibt_mw(test, pd, IB_MW_TYPE_1);
	with = stocks(test);
	KUNIT_EXPECT_LE(test, with.mags, before.mags + 3);
	ibt_win(&w, test, IBT_VMALLOC, 4 * PAGE_SIZE, REGION);
	KUNIT_EXPECT_EQ(test, stocks(test).mags, with.mags);
	provided(&w, 64, 64, RR | RA);
	KUNIT_EXPECT_EQ(test, stocks(test).mags, with.mags + 1);
	/* Who comes later has it from the beginning. */
	w.mw = ibt_mw(test, w.pd, IB_MW_TYPE_1);
	KUNIT_EXPECT_EQ(test, ibt_bind(&w, 8, 16, RR | RA, 0), 0);
	KUNIT_EXPECT_EQ(test, stocks(test).mags, with.mags + 1);
	KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(ibt_dev(test)));
	KUNIT_EXPECT_NOT_NULL(test, other);
}

/* --- slots --- */

struct lost {
	struct ib_cqe cqe;
	struct ib_cq *cq;
	struct ib_qp *qp;
};

static void never_done(struct ib_cq *cq, struct ib_wc *wc)
{
}

static void lost_free(struct kunit *test, void *arg)
{
	struct lost *l = arg;

	if (!IS_ERR_OR_NULL(l->qp))
		ib_destroy_qp(l->qp);
	if (!IS_ERR_OR_NULL(l->cq))
		ib_free_cq(l->cq);
}

/*
 * A queue pair in error, whose CQ nobody polls: what is posted has a completion, which is never
 * seen. The flush unbinds only when it is seen.
 */
static void new_qp(struct ibt_win *w, struct lost *l)
{
	struct kunit *test = w->test;
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = 8, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.send_cq = l->cq, .recv_cq = l->cq,
	};
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = ibt_of(test)->port };

	l->qp = ib_create_qp(w->pd, &init);
	KUNIT_ASSERT_FALSE(test, IS_ERR(l->qp));
	KUNIT_ASSERT_EQ(test, ib_modify_qp(l->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
					   IB_QP_PORT | IB_QP_ACCESS_FLAGS), 0);
	attr.qp_state = IB_QPS_ERR;
	KUNIT_ASSERT_EQ(test, ib_modify_qp(l->qp, &attr, IB_QP_STATE), 0);
}

static int bind_on(struct ibt_win *w, struct lost *l)
{
	struct ib_mw_bind bind = {
		.wr_cqe = &l->cqe, .send_flags = IB_SEND_SIGNALED,
		.bind_info = {
			.mr = w->mr, .addr = w->base, .length = 10, .mw_access_flags = RR,
		},
	};
	int err = -ENOMEM, tries;

	/* The stock of armed MRs, and the worker that looks for lost ones, may be behind. */
	for (tries = 0; tries < TRIES; tries++) {
		err = ib_bind_mw(l->qp, w->mw, &bind);
		if (err != -ENOMEM)
			break;
		usleep_range(1000, 2000);
	}
	return err;
}

/* One window, on one queue pair after another, none of which is polled before it is destroyed. */
static void slots_come_back(struct kunit *test)
{
	const int rounds = 400;	/* some times as many as there are slots */
	struct lost *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);
	struct ibt_win w;
	struct ib_wc wc;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, l);
	ibt_win(&w, test, IBT_VMALLOC, 4 * PAGE_SIZE, REGION);
	ibt_defer(test, lost_free, l);
	l->cqe.done = never_done;
	l->cq = ib_alloc_cq(ibt_dev(test), NULL, 4096, 0, IB_POLL_DIRECT);
	KUNIT_ASSERT_FALSE(test, IS_ERR(l->cq));
	for (i = 0; i < rounds; i++) {
		new_qp(&w, l);
		KUNIT_ASSERT_EQ_MSG(test, bind_on(&w, l), 0, "round %d", i);
		ib_destroy_qp(l->qp);
		l->qp = NULL;
	}
	/* And the window is as good as new. */
	for (i = 0; i < 10; i++) {
		int err, tries;

		for (tries = 0; tries < TRIES; tries++) {
			err = ibt_bind(&w, i, 100, RR, IB_SEND_SIGNALED);
			if (err != -ENOMEM)
				break;
			usleep_range(1000, 2000);
		}
		KUNIT_ASSERT_EQ(test, err, 0);
		ibt_next_wc(&w, &wc);
		KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_BIND_MW);
		KUNIT_EXPECT_EQ(test, wc.wr_id, 0x1d);
	}
	ibt_expect_window(&w, w.mw->rkey, 9, 100, RR);
}

static struct kunit_case window_stock_cases[] = {
	KUNIT_CASE(right_costs_nothing),
	KUNIT_CASE(provided_anew),
	KUNIT_CASE(dealloc_while_provided),
	KUNIT_CASE(three_sets),
	KUNIT_CASE(slots_come_back),
	{}
};

IBT_SUITE(window_stock, window_stock_cases);
