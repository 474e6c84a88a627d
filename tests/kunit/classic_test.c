// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the classic header needs of the core: completion handlers that poll their own CQ, whatever
 * lock the driver holds when it calls; and a device that says it has no FMRs.
 *
 * Completions are made by flushing receives: a queue pair that goes to error has them all.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/slab.h>
#include "base/fault.h"
#include "fmr_helpers.h"

#define RECVS	32

struct poller {
	spinlock_t lock;
	unsigned int calls, seen, flushed, not_softirq, nested;
	bool gone, late, running;
	struct completion all;
	unsigned long hold;		/* the first call takes this long, in jiffies */
};

static struct poller *poller_new(struct kunit *test)
{
	struct poller *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	spin_lock_init(&p->lock);
	init_completion(&p->all);
	return p;
}

/* As classic handlers do it, under the ULP's lock, which is not taken with interrupts off. */
static void poller_handler(struct ib_cq *cq, void *context)
{
	struct poller *p = context;
	unsigned long end = jiffies + p->hold;
	struct ib_wc wc;

	p->late |= p->gone;
	p->not_softirq += !in_serving_softirq();
	p->nested += p->running;
	p->running = true;
	spin_lock(&p->lock);
	p->calls++;
	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	while (ib_mr_poll_cq(cq, 1, &wc) > 0) {
		p->seen++;
		p->flushed += wc.status == IB_WC_WR_FLUSH_ERR;
	}
	spin_unlock(&p->lock);
	while (p->hold && time_before(jiffies, end))
		udelay(10);	/* which lets a virtual clock go on, too */
	p->running = false;
	if (p->seen == RECVS)
		complete(&p->all);
}

static struct ib_qp *poller_qp(struct kunit *test, struct ib_pd *pd, struct ib_cq *cq)
{
	struct ib_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IB_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = RECVS,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = ibt_of(test)->port,
	};
	struct ib_recv_wr wr = {};
	struct ib_qp *qp = ib_create_qp(pd, &init);
	int i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(qp));
	KUNIT_EXPECT_EQ(test, ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
					   IB_QP_ACCESS_FLAGS), 0);
	for (i = 0; i < RECVS; i++)
		KUNIT_EXPECT_EQ(test, ib_post_recv(qp, &wr, NULL), 0);
	return qp;
}

static struct ib_cq *poller_cq(struct kunit *test, struct poller *p)
{
	struct ib_cq_init_attr attr = { .cqe = 2 * RECVS };
	struct ib_cq *cq;

	cq = ib_mr_create_cq(ibt_dev(test), p ? poller_handler : NULL, NULL, p, &attr,
			     KBUILD_MODNAME);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cq));
	return cq;
}

static void classic_handler_polls(struct kunit *test)
{
	struct ib_qp_attr error = { .qp_state = IB_QPS_ERR };
	struct poller *p = poller_new(test);
	struct ib_pd *pd = ibt_pd(test);
	struct ib_cq *cq = poller_cq(test, p);
	struct ib_qp *qp = poller_qp(test, pd, cq);

	KUNIT_EXPECT_EQ(test, ib_req_notify_cq(cq, IB_CQ_NEXT_COMP), 0);
	KUNIT_EXPECT_EQ(test, ib_modify_qp(qp, &error, IB_QP_STATE), 0);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&p->all, 10 * HZ), 0UL);
	KUNIT_EXPECT_EQ(test, p->flushed, RECVS);
	KUNIT_EXPECT_EQ(test, p->not_softirq, 0);
	KUNIT_EXPECT_EQ(test, p->nested, 0);

	/* In use it stays, with its handler. */
	KUNIT_EXPECT_EQ(test, ib_mr_destroy_cq(cq), -EBUSY);
	synchronize_rcu_expedited();
	KUNIT_EXPECT_EQ(test, ib_destroy_qp(qp), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_destroy_cq(cq), 0);
	p->gone = true;
	synchronize_rcu();
	KUNIT_EXPECT_FALSE(test, p->late);
}

/* Destroyed while the handler is at work: it has ended then. */
static void classic_destroy_waits(struct kunit *test)
{
	struct ib_qp_attr error = { .qp_state = IB_QPS_ERR };
	struct ib_pd *pd = ibt_pd(test);
	int i;

	for (i = 0; i < 8; i++) {
		struct poller *p = poller_new(test);
		struct ib_cq *cq = poller_cq(test, p);
		struct ib_qp *qp = poller_qp(test, pd, cq);

		p->hold = HZ / 50;
		KUNIT_EXPECT_EQ(test, ib_req_notify_cq(cq, IB_CQ_NEXT_COMP), 0);
		KUNIT_EXPECT_EQ(test, ib_modify_qp(qp, &error, IB_QP_STATE), 0);
		synchronize_rcu_expedited();
		KUNIT_EXPECT_EQ(test, ib_destroy_qp(qp), 0);
		KUNIT_EXPECT_EQ(test, ib_mr_destroy_cq(cq), 0);
		KUNIT_EXPECT_FALSE(test, p->running);
		p->gone = true;
		synchronize_rcu();
		KUNIT_EXPECT_FALSE(test, p->late);
	}
}

/* Without a handler, and of the core's own making: handed through. */
static void classic_cq_plain(struct kunit *test)
{
	struct ib_cq_init_attr attr = { .cqe = 4 }, many = { .cqe = INT_MAX };
	struct ib_cq *cq = poller_cq(test, NULL);

	KUNIT_EXPECT_EQ(test, ib_mr_destroy_cq(cq), 0);
	cq = ib_create_cq(ibt_dev(test), NULL, NULL, NULL, &attr);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cq));
	KUNIT_EXPECT_EQ(test, ib_mr_destroy_cq(cq), 0);

	cq = ib_mr_create_cq(ibt_dev(test), poller_handler, NULL, NULL, &many, KBUILD_MODNAME);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(cq), -EINVAL);
	ibmr_fault_arm(BIT(IBMR_FAULT_ALLOC), 1, current);
	cq = ib_mr_create_cq(ibt_dev(test), poller_handler, NULL, NULL, &attr, KBUILD_MODNAME);
	KUNIT_EXPECT_TRUE(test, ibmr_fault_disarm());
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(cq), -ENOMEM);
}

struct overrun {
	struct completion done;
	struct ib_event event;
};

static void overrun_event(struct ib_event *event, void *context)
{
	struct overrun *o = context;

	o->event = *event;
	complete(&o->done);
}

/* The driver's events come with the caller's own context, though the CQ's is ours. */
static void classic_cq_overrun(struct kunit *test)
{
	struct overrun *o = kunit_kzalloc(test, sizeof(*o), GFP_KERNEL);
	struct ib_qp_attr error = { .qp_state = IB_QPS_ERR };
	struct ib_cq_init_attr attr = { .cqe = 4 };
	struct ib_cq *cq;
	struct ib_qp *qp;

	KUNIT_ASSERT_NOT_NULL(test, o);
	init_completion(&o->done);
	cq = ib_mr_create_cq(ibt_dev(test), poller_handler, overrun_event, o, &attr,
			     KBUILD_MODNAME);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cq));
	KUNIT_ASSERT_LT(test, cq->cqe, RECVS);
	qp = poller_qp(test, ibt_pd(test), cq);
	/* All receives are flushed, which are more than it has room for. */
	KUNIT_EXPECT_EQ(test, ib_modify_qp(qp, &error, IB_QP_STATE), 0);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&o->done, 60 * HZ), 0UL);
	KUNIT_EXPECT_EQ(test, (int)o->event.event, (int)IB_EVENT_CQ_ERR);
	KUNIT_EXPECT_PTR_EQ(test, o->event.element.cq, cq);
	KUNIT_EXPECT_EQ(test, ib_destroy_qp(qp), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_destroy_cq(cq), 0);
}

static void classic_fmrs_back(struct kunit *test, void *arg)
{
	WRITE_ONCE(ibmr_no_fmr, false);
}

/* What is there goes on working; nothing new is had, as on a device that never could. */
static void classic_no_fmr(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PAGE_SIZE, 1);
	struct ib_fmr *fmr = ibt_fmr(test, pd, FMR_ALL, 4, 8);
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = 4, .page_shift = PAGE_SHIFT, .access = FMR_ALL,
		.pool_size = 4,
	};
	struct ib_fmr_attr attr = { .max_pages = 4, .max_maps = 8, .page_shift = PAGE_SHIFT };
	u64 *list = ibt_page_list(test, b);

	KUNIT_EXPECT_GT(test, ib_mr_max_fmr(ibt_dev(test)), 1024);
	ibt_defer(test, classic_fmrs_back, NULL);
	WRITE_ONCE(ibmr_no_fmr, true);
	KUNIT_EXPECT_EQ(test, ib_mr_max_fmr(ibt_dev(test)), 0);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(ib_create_fmr_pool(pd, &param)), -ENOSYS);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(ib_alloc_fmr(pd, FMR_ALL, &attr)), -ENOSYS);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(ib_alloc_mw(pd, IB_MW_TYPE_1)), -ENOSYS);
	KUNIT_ASSERT_EQ(test, ibt_map(fmr, list, 4, 0), 0);
	ibt_expect_key(p, fmr->rkey, 0, b, 0, 4 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, ibt_unmap(fmr), 0);
}

static struct kunit_case classic_cases[] = {
	KUNIT_CASE(classic_handler_polls),
	KUNIT_CASE(classic_destroy_waits),
	KUNIT_CASE(classic_cq_plain),
	KUNIT_CASE(classic_cq_overrun),
	KUNIT_CASE(classic_no_fmr),
	{}
};

IBT_SUITE(classic, classic_cases);
