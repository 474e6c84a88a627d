// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows at work: completions in order, contexts, peers in turn, storms, failures of every
 * step, and revocation under a peer in full flow.
 */

#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>

#include "window.h"

#define REGION	(LW | MWB)

static void signalled_polled(struct kunit *test)
{
	struct ibt_win w;
	struct ib_wc wc;

	ibt_win(&w, test, IBT_VMALLOC, 4 * PAGE_SIZE, REGION);
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 10, 20, RR, IB_SEND_SIGNALED), 0);
	ibt_expect_window(&w, w.mw->rkey, 10, 20, RR);
	ibt_next_wc(&w, &wc);
	KUNIT_EXPECT_EQ(test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_BIND_MW);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 0x1d);
	/* Unbinding is signalled as well. */
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 0, 0, 0, IB_SEND_SIGNALED), 0);
	ibt_next_wc(&w, &wc);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_BIND_MW);
	KUNIT_EXPECT_EQ(test, ib_mr_poll_cq(w.p->tgt.cq, 1, &wc), 0);
}

struct cqe_ulp {
	struct ib_cqe cqe;
	struct completion done;
	struct ib_wc wc;
	struct ib_cq *cq;
	struct ib_qp *qp;
};

static void cqe_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct cqe_ulp *u = container_of(wc->wr_cqe, struct cqe_ulp, cqe);

	u->wc = *wc;
	complete(&u->done);
}

static void cqe_free(struct kunit *test, void *arg)
{
	struct cqe_ulp *u = arg;

	if (!IS_ERR_OR_NULL(u->qp))
		ib_destroy_qp(u->qp);
	if (!IS_ERR_OR_NULL(u->cq))
		ib_free_cq(u->cq);
}

/* On a CQ that calls back, with a queue pair that breaks: the flush unbinds the window. */
static void signalled_cqe_flushed(struct kunit *test)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = 8, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ib_qp_attr attr = {};
	struct cqe_ulp *u = kunit_kzalloc(test, sizeof(*u), GFP_KERNEL);
	struct ib_mw_bind bind = {};
	struct ibt_win w;

	KUNIT_ASSERT_NOT_NULL(test, u);
	ibt_win(&w, test, IBT_VMALLOC, 4 * PAGE_SIZE, REGION);
	ibt_defer(test, cqe_free, u);
	init_completion(&u->done);
	u->cqe.done = cqe_done;
	u->cq = ib_alloc_cq(ibt_dev(test), NULL, 16, 0, IB_POLL_WORKQUEUE);
	KUNIT_ASSERT_FALSE(test, IS_ERR(u->cq));
	init.send_cq = u->cq;
	init.recv_cq = u->cq;
	u->qp = ib_create_qp(w.pd, &init);
	KUNIT_ASSERT_FALSE(test, IS_ERR(u->qp));

	bind.wr_cqe = &u->cqe;
	bind.send_flags = IB_SEND_SIGNALED;
	bind.bind_info.mr = w.mr;
	bind.bind_info.addr = w.base;
	bind.bind_info.length = 10;
	bind.bind_info.mw_access_flags = RR;
	/* A queue pair that was never connected is known not to be ready, signalled or not. */
	ibt_expect_refused(test, MW_QP_STATE, ib_bind_mw(u->qp, w.mw, &bind));
	bind.send_flags = 0;
	ibt_expect_refused(test, MW_QP_STATE, ib_bind_mw(u->qp, w.mw, &bind));

	attr.qp_state = IB_QPS_INIT;
	attr.port_num = ibt_of(test)->port;
	KUNIT_ASSERT_EQ(test, ib_modify_qp(u->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
					   IB_QP_PORT | IB_QP_ACCESS_FLAGS), 0);
	attr.qp_state = IB_QPS_ERR;
	KUNIT_ASSERT_EQ(test, ib_modify_qp(u->qp, &attr, IB_QP_STATE), 0);
	bind.send_flags = IB_SEND_SIGNALED;
	KUNIT_ASSERT_EQ(test, ib_bind_mw(u->qp, w.mw, &bind), 0);
	KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&u->done, 10 * HZ), 0);
	KUNIT_EXPECT_EQ(test, u->wc.status, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_PTR_EQ(test, u->wc.wr_cqe, &u->cqe);
	ibt_expect_no_window(&w, w.mw->rkey, 0);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, w.mr), 0);
}

/* As many as the send queue holds may be under way; one more is refused and changes nothing. */
static void send_queue_full(struct kunit *test)
{
	struct ibt_win w;
	struct ib_wc wc;
	bool was_full;
	u64 full;
	int i, n, err, tries;
	u32 key = 0;

	ibt_win(&w, test, IBT_VMALLOC, 4 * PAGE_SIZE, REGION);
	full = ib_mr_refusals(ibt_dev(test), IB_MR_WHY_MW_SQ_FULL);
	/*
	 * Where another CPU completes them meanwhile, the queue need not become full; and the CQ is
	 * not to run over, as its owner sees to.
	 */
	for (n = 0, tries = 0; tries < 5000 && n < w.p->tgt.cq->cqe - 4; tries++) {
		err = ibt_bind(&w, n, 10, RR, IB_SEND_SIGNALED);
		if (!err) {
			key = w.mw->rkey;
			n++;
			continue;
		}
		KUNIT_ASSERT_EQ(test, err, -ENOMEM);
		if (ib_mr_refusals(ibt_dev(test), IB_MR_WHY_MW_SQ_FULL) > full)
			break;
		usleep_range(1000, 2000);	/* the stocks follow */
	}
	kunit_info(test, "%d signalled binds of one window under way\n", n);
	KUNIT_EXPECT_GT(test, n, 4);
	was_full = ib_mr_refusals(ibt_dev(test), IB_MR_WHY_MW_SQ_FULL) == full + 1;
	KUNIT_EXPECT_TRUE(test, was_full || n == w.p->tgt.cq->cqe - 4);
	KUNIT_EXPECT_EQ(test, w.mw->rkey, key);
	for (i = 0; i < n; i++) {
		ibt_next_wc(&w, &wc);
		KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_BIND_MW);
	}
	ibt_expect_window(&w, key, n - 1, 10, RR);
	for (tries = 0; tries < 5000; tries++) {
		err = ibt_bind(&w, 100, 10, RR, IB_SEND_SIGNALED);
		if (err != -ENOMEM)
			break;
		usleep_range(1000, 2000);
	}
	KUNIT_EXPECT_EQ(test, err, 0);
	ibt_next_wc(&w, &wc);
}

struct in_context {
	struct ibt_win *w;
	struct irq_work irq;
	struct tasklet_struct soft;
	struct completion done;
	int err;
};

static void bind_in_context(struct in_context *c)
{
	c->err = ibt_bind(c->w, 32, 100, RR, 0);
	complete(&c->done);
}

static void bind_hardirq(struct irq_work *work)
{
	bind_in_context(container_of(work, struct in_context, irq));
}

static void bind_softirq(struct tasklet_struct *t)
{
	bind_in_context(container_of(t, struct in_context, soft));
}

static void contexts(struct kunit *test)
{
	struct in_context *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	unsigned long flags;
	struct ibt_win w;

	KUNIT_ASSERT_NOT_NULL(test, c);
	ibt_win(&w, test, IBT_VMALLOC, 4 * PAGE_SIZE, REGION);
	c->w = &w;
	init_completion(&c->done);

	local_irq_save(flags);
	c->err = ibt_bind(&w, 1, 100, RR, 0);
	local_irq_restore(flags);
	KUNIT_EXPECT_EQ(test, c->err, 0);
	ibt_expect_window(&w, w.mw->rkey, 1, 100, RR);

	tasklet_setup(&c->soft, bind_softirq);
	tasklet_schedule(&c->soft);
	wait_for_completion(&c->done);
	tasklet_kill(&c->soft);
	KUNIT_EXPECT_EQ(test, c->err, 0);
	ibt_expect_window(&w, w.mw->rkey, 32, 100, RR);

	reinit_completion(&c->done);
	init_irq_work(&c->irq, bind_hardirq);
	irq_work_queue(&c->irq);
	wait_for_completion(&c->done);
	irq_work_sync(&c->irq);
	KUNIT_EXPECT_EQ(test, c->err, 0);
	ibt_expect_window(&w, w.mw->rkey, 32, 100, RR);
}

/* A may, then only B may: each peer has the key it was given. */
static void peers_in_turn(struct kunit *test)
{
	struct ibt_pair *peer[2];
	struct ibt_win w;
	u32 key, old = 0;
	int i;

	ibt_win(&w, test, IBT_VMALLOC, 4 * PAGE_SIZE, REGION);
	peer[0] = w.p;
	peer[1] = ibt_pair(test, w.pd);
	for (i = 0; i < 10; i++) {
		KUNIT_ASSERT_EQ(test, ibt_bind(&w, 8 * i, 64, RR, 0), 0);
		key = w.mw->rkey;
		KUNIT_EXPECT_EQ(test, ibt_rdma(peer[i & 1], IBT_READ, peer[i & 1]->req.buf, key,
					       w.base + 8 * i, 64), IB_WC_SUCCESS);
		if (old)
			KUNIT_EXPECT_EQ(test, ibt_rdma(peer[~i & 1], IBT_READ,
						       peer[~i & 1]->req.buf, old,
						       w.base + 8 * i, 8), IB_WC_REM_ACCESS_ERR);
		old = key;
	}
}

static int rebind_storm(void *arg, int i)
{
	struct ibt_win w = *(struct ibt_win *)arg;
	int n, again = 0, err = 0;

	w.mw = ib_alloc_mw(w.pd, IB_MW_TYPE_1);
	if (IS_ERR(w.mw))
		return PTR_ERR(w.mw);
	for (n = 0; n < 500 && !err; n++) {
		err = ibt_bind(&w, 16 * i + n, 50, n & 1 ? RR : RW, 0);
		if (err == -ENOMEM && again++ < 5000) {	/* the stock follows */
			err = 0;
			usleep_range(1000, 2000);
		}
	}
	ib_dealloc_mw(w.mw);
	return err;
}

static void storm(struct kunit *test)
{
	struct ibt_win w;

	ibt_win(&w, test, IBT_VMALLOC, 4 * PAGE_SIZE, REGION);
	ibt_parallel(test, 4, rebind_storm, &w);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, w.mr), 0);
}

/* The owner binds on a queue pair of its own: the peer's is made anew after each refusal. */
struct hammer {
	struct ibt_win *w;
	struct ibt_win owner;
	u32 key;
	bool stop;
	u64 ok;
};

static int hammering(void *arg, int i)
{
	struct hammer *h = arg;
	struct ibt_win *w = h->w, *o = &h->owner;
	unsigned int round, tries;
	int bad = 0;
	u64 let_in;

	if (i) {	/* the peer */
		while (!READ_ONCE(h->stop)) {
			memset(w->p->req.buf, 0xee, 4096);
			if (ibt_rdma(w->p, IBT_WRITE, w->p->req.buf, READ_ONCE(h->key), w->base,
				     4096) == IB_WC_SUCCESS)
				WRITE_ONCE(h->ok, h->ok + 1);
		}
		return 0;
	}
	for (round = 0; round < 60; round++) {	/* the owner */
		u8 *mem = ibt_ptr(w->b, 0);

		while (ibt_bind(o, 0, PAGE_SIZE, RW, 0))
			usleep_range(1000, 2000);
		let_in = READ_ONCE(h->ok);
		WRITE_ONCE(h->key, o->mw->rkey);
		/* On a slow machine the peer takes its time to come, and some have to be let in. */
		for (tries = 0; round < 10 && READ_ONCE(h->ok) == let_in && tries < 5000; tries++)
			usleep_range(500, 1000);
		usleep_range(2000, 6000);
		ib_dealloc_mw(o->mw);
		memset(mem, 0x11, PAGE_SIZE);	/* nothing may be written any more */
		usleep_range(500, 1000);
		if (memchr_inv(mem, 0x11, PAGE_SIZE))
			bad++;
		o->mw = ib_alloc_mw(w->pd, IB_MW_TYPE_1);
		if (IS_ERR(o->mw)) {
			WRITE_ONCE(h->stop, true);
			return PTR_ERR(o->mw);
		}
	}
	WRITE_ONCE(h->stop, true);
	ib_dealloc_mw(o->mw);
	return bad;
}

/* ib_dealloc_mw() is a fence, with the peer in full flow. */
static void revoked_in_flow(struct kunit *test)
{
	struct ibt_win w;
	struct hammer h = { .w = &w };

	ibt_win(&w, test, IBT_PAGES, 4 * PAGE_SIZE, REGION);
	h.owner = w;
	h.owner.p = ibt_pair(test, w.pd);
	h.owner.mw = ib_alloc_mw(w.pd, IB_MW_TYPE_1);
	KUNIT_ASSERT_FALSE(test, IS_ERR(h.owner.mw));
	ibt_parallel(test, 2, hammering, &h);
	KUNIT_EXPECT_GT(test, h.ok, 0);
	kunit_info(test, "%llu writes were let in, none after the fence\n", h.ok);
}

static struct kunit_case window_flow_cases[] = {
	KUNIT_CASE(signalled_polled),
	KUNIT_CASE(signalled_cqe_flushed),
	KUNIT_CASE(send_queue_full),
	KUNIT_CASE(contexts),
	KUNIT_CASE(peers_in_turn),
	KUNIT_CASE(storm),
	KUNIT_CASE(revoked_in_flow),
	{}
};

IBT_SUITE(window_flow, window_flow_cases);
