// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What classic sources need beyond the memory verbs: completion handlers that may poll, and the
 * device's limits. include/classic/rdma/ib_verbs.h sends ib_create_cq(), ib_destroy_cq() and
 * ib_query_device() here.
 *
 * A classic completion handler polls and re-arms its CQ, posts, and maps and unmaps FMRs; drivers
 * called it in interrupt context with none of their locks held, and never out of a verb call.
 * Today's rxe (since 6.4) calls it under the CQ's own lock, out of whatever posted the completion,
 * so that the first poll in it would deadlock. So the driver is given a handler that only schedules
 * a tasklet, and the ULP's is run by that: in softirq, one at a time for a CQ, again when another
 * event came meanwhile. The same is done on every device and kernel, so that a ULP is always tested
 * in the one context it was written for.
 *
 * A handler that runs when its CQ is destroyed has returned when ib_destroy_cq() does, and none
 * comes after it, as ever.
 */

#include <linux/interrupt.h>
#include <linux/slab.h>
#include <rdma/ib_fmr_pool.h>

#include "base/compat.h"
#include "base/core.h"
#include "base/fault.h"

/* What ib_cq.cq_context points to. */
struct classic_cq {
	struct tasklet_struct tasklet;
	struct ib_cq *cq;
	ib_comp_handler comp_handler;
	void (*event_handler)(struct ib_event *event, void *context);
	void *context;
	bool closed;
};

static void cq_run(struct tasklet_struct *t)
{
	struct classic_cq *c = from_tasklet(c, t, tasklet);

	if (!READ_ONCE(c->closed))
		c->comp_handler(c->cq, c->context);
}

/* Any context, the CQ's lock held or not. */
static void cq_completed(struct ib_cq *cq, void *context)
{
	struct classic_cq *c = context;

	if (READ_ONCE(c->closed))
		return;
	/* Here, since the first event may come before __ib_create_cq() has returned. */
	WRITE_ONCE(c->cq, cq);
	tasklet_schedule(&c->tasklet);
}

static void cq_event(struct ib_event *event, void *context)
{
	struct classic_cq *c = context;

	if (c->event_handler)
		c->event_handler(event, c->context);
}

/**
 * ib_mr_create_cq() - ib_create_cq() for a handler that polls
 * @device: device
 * @comp_handler: called in softirq, with no lock held, after a completion that was asked for by
 *	ib_req_notify_cq(); NULL for a CQ that is only polled
 * @event_handler: asynchronous events of the CQ; may be NULL
 * @cq_context: second argument of both (ib_cq.cq_context itself is not the caller's)
 * @cq_attr: see there
 * @caller: name of the module
 *
 * Context: process, may sleep.
 * Return: the CQ, to be given to ib_mr_destroy_cq(), or an error.
 */
struct ib_cq *ib_mr_create_cq(struct ib_device *device, ib_comp_handler comp_handler,
			      void (*event_handler)(struct ib_event *event, void *context),
			      void *cq_context, const struct ib_cq_init_attr *cq_attr,
			      const char *caller)
{
	struct classic_cq *c;
	struct ib_cq *cq;

	might_sleep();
	if (IS_ERR_OR_NULL(device) || !cq_attr)
		return ERR_PTR(ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__));
	if (!comp_handler)
		return __ib_create_cq(device, NULL, event_handler, cq_context, cq_attr, caller);
	c = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kzalloc(sizeof(*c), GFP_KERNEL);
	if (!c)
		return ERR_PTR(-ENOMEM);
	tasklet_setup(&c->tasklet, cq_run);
	c->comp_handler = comp_handler;
	c->event_handler = event_handler;
	c->context = cq_context;
	cq = ibmr_should_fail(IBMR_FAULT_DEVICE) ? ERR_PTR(-ENOMEM) :
		__ib_create_cq(device, cq_completed, cq_event, c, cq_attr, caller);
	if (IS_ERR(cq))
		kfree(c);
	return cq;
}
EXPORT_SYMBOL(ib_mr_create_cq);

/**
 * ib_mr_destroy_cq() - destroy a CQ
 * @cq: CQ from ib_mr_create_cq() or __ib_create_cq()
 *
 * Its handler is not running when this returns 0, and does not run again.
 *
 * Context: process, may sleep; not the handler itself.
 * Return: 0; -EBUSY while queue pairs use it, and then its handler may be called once without
 * need; what the driver says.
 */
int ib_mr_destroy_cq(struct ib_cq *cq)
{
	struct classic_cq *c;
	int err;

	might_sleep();
	if (IS_ERR_OR_NULL(cq))
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	c = cq->comp_handler == cq_completed ? cq->cq_context : NULL;
	if (c) {
		/* First, or a handler that is due would be given a CQ that is gone. */
		WRITE_ONCE(c->closed, true);
		tasklet_kill(&c->tasklet);
	}
	err = ib_destroy_cq_user(cq, NULL);
	if (!c)
		return err;
	if (err) {
		/* What it was not told of meanwhile it finds by polling. */
		WRITE_ONCE(c->cq, cq);
		WRITE_ONCE(c->closed, false);
		tasklet_schedule(&c->tasklet);
		return err;
	}
	/*
	 * A driver may still be in cq_completed(): in a tasklet of its own, or with a spinlock
	 * held. Both are RCU readers.
	 */
	synchronize_rcu();
	tasklet_kill(&c->tasklet);
	kfree(c);
	return 0;
}
EXPORT_SYMBOL(ib_mr_destroy_cq);
