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
 * A bind may not allocate, so what a carrier remembers has a slot from a stock that all windows
 * share: four for each window and some more, so that one window may have many binds under way.
 * When few are left, a worker makes more, as many as are in use or not.
 *
 * A queue pair that is destroyed unpolled takes its completions along, and their slots would be in
 * use for ever. Nobody tells us, so the worker looks: a slot whose queue pair the core does not
 * know any more goes to the graves, and another one is made for it. It may be wrong, or the
 * completion may still lie in a CQ that is polled one day: a slot in the graves is as good as it
 * was, and its completion is told as any other. Only when GRAVES more have come behind it is it
 * used again, and then a completion that does not fit it is told to nobody.
 *
 * Only the worker frees slots, so it may look at one without the lock.
 */

#include <linux/hashtable.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/restrack.h>

#include "base/compat.h"
#include "base/fault.h"
#include "mw/window.h"

#define PER_WINDOW	4
#define READY		64	/* idle ones that there should be, at least */
#define GRAVES		1024

enum slot_state { IDLE, BUSY, BURIED };

/**
 * struct slot - what is kept of one signalled bind
 * @cqe: what the core calls, on a CQ from ib_alloc_cq()
 * @entry: in the list of its state
 * @of_window: in @window->carriers
 * @node: in the table while posted to a CQ that is polled
 * @state: where it is
 * @polled: it is in the table
 * @stays: it came out of the graves, so it may be called again, and is never freed
 * @id: of this use of the slot, never the same twice; and of the work request there
 * @look: the worker's look that saw it last
 * @window: whose bind it is; NULL when that was deallocated
 * @dev: its device; a reference is ours
 * @qp: queue pair, for comparison only
 * @qp_num: its number
 * @wr_id: the caller's; or his cqe
 * @bind: number of the bind
 */
struct slot {
	struct ib_cqe cqe;
	struct list_head entry;
	struct list_head of_window;
	struct hlist_node node;
	enum slot_state state;
	bool polled;
	bool stays;
	u64 id;
	u64 look;
	struct ibmr_window *window;
	struct ibmr_dev *dev;
	const struct ib_qp *qp;
	u32 qp_num;
	u64 wr_id;
	u64 bind;
};

/* Guards all that follows, and the slots. Taken in any context. */
static DEFINE_SPINLOCK(slots_lock);
static LIST_HEAD(idle);
static LIST_HEAD(busy);
static LIST_HEAD(graves);
static unsigned int nr_idle, nr_busy, nr_graves;
static unsigned int promised;	/* to windows */
static DEFINE_HASHTABLE(table, 10);
static u64 ids;

static atomic_t polled = ATOMIC_INIT(0);

/*
 * Ids that no caller has: neither a small number nor an address, not even the stale one of memory
 * that is ours by now.
 */
static u64 new_id(void)
{
	return 0x5ab1ULL << 48 | (++ids & GENMASK_ULL(47, 0));
}

/* --- the stock --- */

/* How many idle ones are wanted beyond those there are? Under the lock. */
static int missing(void)
{
	int want = max_t(int, READY, (int)(READY + promised) - (int)nr_busy);

	return want - (int)nr_idle;
}

/* Make as many as are missing. Process context. */
static int top_up(void)
{
	struct slot *s;

	for (;;) {
		spin_lock_irq(&slots_lock);
		if (missing() <= 0) {
			spin_unlock_irq(&slots_lock);
			return 0;
		}
		spin_unlock_irq(&slots_lock);
		s = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kzalloc(sizeof(*s), GFP_KERNEL);
		if (!s)
			return -ENOMEM;
		INIT_LIST_HEAD(&s->of_window);
		spin_lock_irq(&slots_lock);
		list_add_tail(&s->entry, &idle);
		nr_idle++;
		spin_unlock_irq(&slots_lock);
	}
}

/* The worker: free what is far more than is wanted. */
static void trim(void)
{
	unsigned int left = READ_ONCE(nr_idle);
	struct slot *s = NULL;

	for (; left; left--, kfree(s)) {
		spin_lock_irq(&slots_lock);
		if (missing() >= -2 * READY)
			left = 1;	/* enough */
		s = left > 1 ? list_first_entry(&idle, struct slot, entry) : NULL;
		if (s && s->stays) {
			list_move_tail(&s->entry, &idle);
			s = NULL;
		}
		if (s) {
			list_del(&s->entry);
			nr_idle--;
		}
		spin_unlock_irq(&slots_lock);
	}
}

/* Its completion is seen, or will not be. Under the lock. */
static void make_idle(struct slot *s)
{
	if (s->polled) {
		hash_del(&s->node);
		atomic_dec(&polled);
		s->polled = false;
	}
	list_del_init(&s->of_window);
	s->window = NULL;
	if (s->state == BUSY)
		nr_busy--;
	else
		nr_graves--;
	s->state = IDLE;
	list_move_tail(&s->entry, &idle);
	nr_idle++;
}

/* Its queue pair is gone. Under the lock. Return: a device to put, if any. */
static struct ibmr_dev *bury(struct slot *s)
{
	struct slot *oldest;

	s->state = BURIED;
	nr_busy--;
	list_move_tail(&s->entry, &graves);
	if (nr_graves++ < GRAVES)
		return NULL;
	oldest = list_first_entry(&graves, struct slot, entry);
	make_idle(oldest);
	oldest->stays = true;
	return oldest->dev;
}

/* A queue pair of this number and address: does the core know it? */
static bool qp_lives(struct ibmr_dev *dev, const struct ib_qp *qp, u32 qp_num)
{
	struct rdma_restrack_entry *res;
	unsigned int noio;
	bool lives;

	if (!ibmr_dev_enter(dev, &noio))
		return false;
	res = rdma_restrack_get_byid(dev->ibdev, RDMA_RESTRACK_QP, qp_num);
	lives = !IS_ERR(res) && container_of(res, struct ib_qp, res) == qp;
	if (!IS_ERR(res))
		rdma_restrack_put(res);
	ibmr_dev_exit(dev, noio);
	return lives;
}

/* Find those that wait for nothing. */
static void look_for_lost(void)
{
	static u64 looks;

	looks++;
	for (;;) {
		struct ibmr_dev *dev, *put = NULL;
		const struct ib_qp *qp;
		struct slot *s;
		u32 qp_num;
		u64 id;

		spin_lock_irq(&slots_lock);
		s = list_first_entry_or_null(&busy, struct slot, entry);
		if (!s || s->look == looks) {
			spin_unlock_irq(&slots_lock);
			return;
		}
		s->look = looks;
		list_move_tail(&s->entry, &busy);
		id = s->id;
		qp = s->qp;
		qp_num = s->qp_num;
		dev = s->dev;
		refcount_inc(&dev->refs);
		spin_unlock_irq(&slots_lock);

		if (!qp_lives(dev, qp, qp_num)) {
			spin_lock_irq(&slots_lock);
			if (s->state == BUSY && s->id == id)
				put = bury(s);
			spin_unlock_irq(&slots_lock);
		}
		ibmr_dev_put(dev);
		if (put)
			ibmr_dev_put(put);
		cond_resched();
	}
}

static void look_after(struct work_struct *work)
{
	unsigned int noio = memalloc_noio_save();

	look_for_lost();
	top_up();
	trim();
	memalloc_noio_restore(noio);
}

static DECLARE_WORK(worker, look_after);

/* A window comes, with slots of its own. Process context. */
int ibmr_carriers_join(struct ibmr_window *window)
{
	INIT_LIST_HEAD(&window->carriers);
	spin_lock_irq(&slots_lock);
	promised += PER_WINDOW;
	spin_unlock_irq(&slots_lock);
	if (!top_up())
		return 0;
	ibmr_carriers_part(window);
	return -ENOMEM;
}

/* The window goes; completions may still come. */
void ibmr_carriers_part(struct ibmr_window *window)
{
	struct slot *s, *next;

	spin_lock_irq(&slots_lock);
	list_for_each_entry_safe(s, next, &window->carriers, of_window) {
		list_del_init(&s->of_window);
		s->window = NULL;
	}
	promised -= PER_WINDOW;
	if (missing() < -2 * READY)
		queue_work(ibmr_pool_wq, &worker);
	spin_unlock_irq(&slots_lock);
}

/* --- completions --- */

/* The slot of a completion that was polled. Under the lock. */
static struct slot *find_slot(const struct ib_wc *wc)
{
	struct slot *s;

	hash_for_each_possible(table, s, node, wc->wr_id)
		if (s->id == wc->wr_id && s->qp == wc->qp)
			return s;
	return NULL;
}

/*
 * What the caller is to see, and the end of the slot, which is looked up when @s is NULL. False:
 * none of ours, or one that was waited for too long and that nobody is to see. Any context.
 */
static bool carrier_completed(struct slot *s, struct ib_wc *wc)
{
	struct ibmr_window *window;
	struct ibmr_dev *dev;
	unsigned long flags;
	u64 bind;

	rcu_read_lock();	/* keeps the window's memory; its lock comes before ours */
	spin_lock_irqsave(&slots_lock, flags);
	if (!s)
		s = find_slot(wc);
	if (!s || s->state == IDLE || s->qp != wc->qp) {
		spin_unlock_irqrestore(&slots_lock, flags);
		rcu_read_unlock();
		return false;
	}
	wc->wr_id = s->wr_id;
	wc->opcode = IB_WC_BIND_MW;
	if (wc->status != IB_WC_SUCCESS && wc->status != IB_WC_WR_FLUSH_ERR)
		wc->status = IB_WC_MW_BIND_ERR;
	bind = s->bind;
	window = s->window;
	dev = s->dev;
	make_idle(s);
	spin_unlock_irqrestore(&slots_lock, flags);
	if (window)
		ibmr_window_completed(window, bind, wc->status != IB_WC_SUCCESS);
	rcu_read_unlock();
	ibmr_dev_put(dev);
	return true;
}

static void carrier_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct slot *s = container_of(wc->wr_cqe, struct slot, cqe);

	if (carrier_completed(s, wc) && wc->wr_cqe)
		wc->wr_cqe->done(cq, wc);
}

/**
 * ib_mr_poll_cq() - ib_poll_cq() for a CQ that signalled binds complete on
 * @cq: CQ from ib_create_cq()
 * @num_entries: room in @wc
 * @wc: completions
 *
 * Context: any.
 * Return: as ib_poll_cq(); -EINVAL for no CQ or no room.
 */
int ib_mr_poll_cq(struct ib_cq *cq, int num_entries, struct ib_wc *wc)
{
	int i, n;

	if (IS_ERR_OR_NULL(cq) || !wc)
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	n = ib_poll_cq(cq, num_entries, wc);
	for (i = 0; i < n && atomic_read(&polled); i++)
		carrier_completed(NULL, &wc[i]);
	return n;
}
EXPORT_SYMBOL(ib_mr_poll_cq);

/* --- posting --- */

/* Posting nothing asks a queue pair whether it may be posted to. */
bool ibmr_qp_ready(struct ib_qp *qp)
{
	return !ib_post_send(qp, NULL, NULL);
}

/* One from the stock, for the window's current bind. Interrupts are off. */
static struct slot *take_slot(struct ibmr_window *window, struct ib_qp *qp, u64 wr_id)
{
	struct slot *s;

	spin_lock(&slots_lock);
	s = list_first_entry_or_null(&idle, struct slot, entry);
	if (s) {
		s->state = BUSY;
		list_move_tail(&s->entry, &busy);
		nr_idle--;
		nr_busy++;
		s->id = new_id();
		s->window = window;
		list_add(&s->of_window, &window->carriers);
		s->dev = window->ipd->dev;
		refcount_inc(&s->dev->refs);
		s->qp = qp;
		s->qp_num = qp->qp_num;
		s->wr_id = wr_id;
		s->bind = window->binds;
		s->polled = !qp->send_cq->wc;	/* the others are made by ib_alloc_cq() */
		if (s->polled) {
			hash_add(table, &s->node, s->id);
			atomic_inc(&polled);
		}
	}
	if (nr_idle < READY / 2)
		queue_work(ibmr_pool_wq, &worker);
	spin_unlock(&slots_lock);
	return s;
}

/**
 * ibmr_carrier_post() - have the window's current bind completed
 * @window: window, locked
 * @qp: caller's queue pair
 * @wr_id: caller's id, or his struct ib_cqe
 * @send_flags: caller's flags
 *
 * Return: IB_MR_WHY_OK; MW_SQ_FULL when the send queue is full; MW_NO_SLOT when more binds are
 * under way than there are slots for at this moment; MW_QP_STATE.
 */
enum ib_mr_reason ibmr_carrier_post(struct ibmr_window *window, struct ib_qp *qp, u64 wr_id,
				    int send_flags)
{
	const struct ib_mr *carrier = READ_ONCE(window->ipd->dev->carrier);
	struct ib_send_wr wr = {
		.opcode			= IB_WR_LOCAL_INV,
		.send_flags		= send_flags & (IB_SEND_SIGNALED | IB_SEND_FENCE),
	};
	struct ibmr_dev *dev;
	struct slot *s;
	int err;

	if (!carrier)
		return IB_MR_WHY_NO_DEVICE;
	wr.ex.invalidate_rkey = carrier->lkey;
	s = take_slot(window, qp, wr_id);
	if (!s)
		return IB_MR_WHY_MW_NO_SLOT;
	if (s->polled) {
		wr.wr_id = s->id;
	} else {
		s->cqe.done = carrier_done;
		wr.wr_cqe = &s->cqe;
	}
	err = ibmr_should_fail(IBMR_FAULT_POST) ? -ENOMEM : ib_post_send(qp, &wr, NULL);
	if (!err)
		return IB_MR_WHY_OK;

	spin_lock(&slots_lock);
	dev = s->dev;
	make_idle(s);
	spin_unlock(&slots_lock);
	ibmr_dev_put(dev);
	return err == -ENOMEM ? IB_MR_WHY_MW_SQ_FULL : IB_MR_WHY_MW_QP_STATE;
}

static void free_all(struct list_head *list)
{
	struct slot *s, *next;

	list_for_each_entry_safe(s, next, list, entry) {
		if (s->state != IDLE)
			ibmr_dev_put(s->dev);
		kfree(s);
	}
}

/* No ULP is left, so nobody polls what was lost. */
void ibmr_carriers_exit(void)
{
	cancel_work_sync(&worker);
	free_all(&idle);
	free_all(&busy);
	free_all(&graves);
}
