// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Carriers: completions of binds, in order with the queue pair's other work.
 *
 * A bind is done by the call and needs no work request. One that is to be signalled needs a
 * completion that comes when all that was posted before has completed. So a harmless local
 * operation takes its place in the send queue: LOCAL_INV of an MR that was never registered (the
 * device's carrier, in the parking PD). Its completion is made to read as the bind's.
 *
 * On a CQ from ib_alloc_cq() a completion calls a function, which is ours first and then the
 * caller's. On a CQ that is polled, the caller polls through ib_mr_poll_cq() (the classic header
 * makes ib_poll_cq() that), which knows our work requests by their ids in a table.
 *
 * Slots are allocated with the window, since a bind may not allocate. They outlive it until the
 * last completion was seen; those whose queue pair was destroyed unpolled are freed when the
 * module goes.
 */

#include <linux/hashtable.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/fault.h"
#include "mw/window.h"

#define SLOTS	4

struct slot {
	struct ib_cqe cqe;
	struct ibmr_carriers *carriers;
	struct hlist_node node;		/* in the table while posted to a CQ that is polled */
	u64 id;				/* ours there */
	const struct ib_qp *qp;		/* for comparison only */
	u64 wr_id;			/* the caller's; or his cqe */
	u64 bind;
	bool busy;
};

/* @window is NULL when it was deallocated. @lock guards it and the slots. */
struct ibmr_carriers {
	spinlock_t lock;
	struct ibmr_window *window;
	unsigned int busy;
	struct list_head entry;
	struct slot slot[SLOTS];
};

static DEFINE_SPINLOCK(table_lock);
static DEFINE_HASHTABLE(table, 10);
static LIST_HEAD(all);
static atomic_t polled = ATOMIC_INIT(0);
static atomic64_t ids = ATOMIC64_INIT(0);

/*
 * Ids that no caller has: neither a small number nor an address, not even the stale one of memory
 * that is ours by now, and never the same twice.
 */
static u64 new_id(void)
{
	return 0x5ab1ULL << 48 | (atomic64_inc_return(&ids) & GENMASK_ULL(47, 0));
}

struct ibmr_carriers *ibmr_carriers_new(struct ibmr_window *window)
{
	struct ibmr_carriers *c = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL :
		kzalloc(sizeof(*c), GFP_KERNEL);
	unsigned int i;

	if (!c)
		return NULL;
	spin_lock_init(&c->lock);
	c->window = window;
	for (i = 0; i < SLOTS; i++)
		c->slot[i].carriers = c;
	spin_lock_irq(&table_lock);
	list_add_tail(&c->entry, &all);
	spin_unlock_irq(&table_lock);
	return c;
}

static void carriers_free(struct ibmr_carriers *c)
{
	unsigned long flags;

	spin_lock_irqsave(&table_lock, flags);
	list_del(&c->entry);
	spin_unlock_irqrestore(&table_lock, flags);
	kfree(c);
}

/* The window goes; completions may still come. */
void ibmr_carriers_part(struct ibmr_carriers *c)
{
	bool last;

	spin_lock_irq(&c->lock);
	c->window = NULL;
	last = !c->busy;
	spin_unlock_irq(&c->lock);
	if (last)
		carriers_free(c);
}

/* What the caller is to see, and the end of the slot. Any context. */
static void carrier_completed(struct slot *s, struct ib_wc *wc)
{
	struct ibmr_carriers *c = s->carriers;
	struct ibmr_window *window;
	unsigned long flags;
	bool last;
	u64 bind;

	wc->wr_id = s->wr_id;
	wc->opcode = IB_WC_BIND_MW;
	if (wc->status != IB_WC_SUCCESS && wc->status != IB_WC_WR_FLUSH_ERR)
		wc->status = IB_WC_MW_BIND_ERR;

	rcu_read_lock();	/* keeps the window's memory; its lock comes before ours */
	spin_lock_irqsave(&c->lock, flags);
	bind = s->bind;
	s->busy = false;
	c->busy--;
	window = c->window;
	last = !window && !c->busy;
	spin_unlock_irqrestore(&c->lock, flags);
	if (window)
		ibmr_window_completed(window, bind, wc->status != IB_WC_SUCCESS);
	rcu_read_unlock();
	if (last)
		carriers_free(c);
}

static void carrier_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct slot *s = container_of(wc->wr_cqe, struct slot, cqe);

	carrier_completed(s, wc);
	if (wc->wr_cqe)
		wc->wr_cqe->done(cq, wc);
}

/**
 * ib_mr_poll_cq() - ib_poll_cq() for a CQ that signalled binds complete on
 * @cq: CQ from ib_create_cq()
 * @num_entries: room in @wc
 * @wc: completions
 *
 * Context: any.
 * Return: as ib_poll_cq().
 */
int ib_mr_poll_cq(struct ib_cq *cq, int num_entries, struct ib_wc *wc)
{
	int i, n = ib_poll_cq(cq, num_entries, wc);

	for (i = 0; i < n && atomic_read(&polled); i++) {
		struct slot *s, *found = NULL;
		unsigned long flags;

		spin_lock_irqsave(&table_lock, flags);
		hash_for_each_possible(table, s, node, wc[i].wr_id)
			if (s->id == wc[i].wr_id && s->qp == wc[i].qp) {
				hash_del(&s->node);
				atomic_dec(&polled);
				found = s;
				break;
			}
		spin_unlock_irqrestore(&table_lock, flags);
		if (found)
			carrier_completed(found, &wc[i]);
	}
	return n;
}
EXPORT_SYMBOL(ib_mr_poll_cq);

/* Posting nothing asks a queue pair whether it may be posted to. */
bool ibmr_qp_ready(struct ib_qp *qp)
{
	return !ib_post_send(qp, NULL, NULL);
}

/**
 * ibmr_carrier_post() - have the window's current bind completed
 * @window: window, locked
 * @qp: caller's queue pair
 * @wr_id: caller's id, or his struct ib_cqe
 * @send_flags: caller's flags
 *
 * Return: IB_MR_WHY_OK; MW_SQ_FULL when the send queue or the window's slots are full; MW_QP_STATE.
 */
enum ib_mr_reason ibmr_carrier_post(struct ibmr_window *window, struct ib_qp *qp, u64 wr_id,
				    int send_flags)
{
	struct ibmr_carriers *c = window->carriers;
	const struct ib_mr *carrier = READ_ONCE(window->ipd->dev->carrier);
	bool by_cqe = qp->send_cq->wc;	/* ib_alloc_cq() made it */
	struct ib_send_wr wr = {
		.opcode			= IB_WR_LOCAL_INV,
		.send_flags		= send_flags & (IB_SEND_SIGNALED | IB_SEND_FENCE),
	};
	struct slot *s = NULL;
	unsigned int i;
	int err;

	if (!carrier)
		return IB_MR_WHY_NO_DEVICE;
	wr.ex.invalidate_rkey = carrier->lkey;
	spin_lock(&c->lock);
	for (i = 0; i < SLOTS && !s; i++)
		if (!c->slot[i].busy)
			s = &c->slot[i];
	if (s) {
		s->busy = true;
		c->busy++;
		s->wr_id = wr_id;
		s->bind = window->binds;
	}
	spin_unlock(&c->lock);
	if (!s)
		return IB_MR_WHY_MW_SQ_FULL;

	if (by_cqe) {
		s->cqe.done = carrier_done;
		wr.wr_cqe = &s->cqe;
	} else {
		s->id = new_id();
		s->qp = qp;
		wr.wr_id = s->id;
		spin_lock(&table_lock);
		hash_add(table, &s->node, wr.wr_id);
		spin_unlock(&table_lock);
		atomic_inc(&polled);
	}
	err = ibmr_should_fail(IBMR_FAULT_POST) ? -ENOMEM : ib_post_send(qp, &wr, NULL);
	if (!err)
		return IB_MR_WHY_OK;

	if (!by_cqe) {
		spin_lock(&table_lock);
		hash_del(&s->node);
		spin_unlock(&table_lock);
		atomic_dec(&polled);
	}
	spin_lock(&c->lock);
	s->busy = false;
	c->busy--;
	spin_unlock(&c->lock);
	return err == -ENOMEM ? IB_MR_WHY_MW_SQ_FULL : IB_MR_WHY_MW_QP_STATE;
}

/* Carriers whose completions nobody saw; their queue pairs are long gone. */
void ibmr_carriers_exit(void)
{
	struct ibmr_carriers *c, *next;

	list_for_each_entry_safe(c, next, &all, entry)
		carriers_free(c);
}
