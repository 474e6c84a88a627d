/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_MAGAZINE_H
#define IBMR_MAGAZINE_H

#include <linux/bitmap.h>
#include <linux/kcsan-checks.h>
#include <linux/local_lock.h>
#include <linux/percpu.h>
#include <linux/scatterlist.h>
#include <linux/workqueue.h>

#include "base/compat.h"
#include "base/core.h"
#include "base/fault.h"
#include "base/trace.h"

#define IBMR_LIVE_PAGES	512	/* pages that a live map takes from the shared scratch list */

/**
 * struct ibmr_armed - an armed MR
 * @keyed: what dev->keys points to
 * @drv: the driver's MR; NULL once its device is gone
 * @mag: magazine it belongs to
 * @next: in the one list it is in, if any
 * @key: its key of today. Changed by the worker, who has the MR in hand then; who came from
 *       dev->keys may read it at that moment
 * @window: the window that it is bound for, if any; under mag->lock
 * @tag: what it was last mapped for, to fence by; compared only. Under mag->lock
 * @invalidated: a work request of somebody's turned it FREE; likewise
 * @uses: maps of this key, for who keeps keys
 * @keys_left: variants not used yet
 * @spent: variants that were used
 * @sgl: its own scatterlist, with IBMR_MAG_OWN_SGL
 * @rcu: readers of dev->keys
 */
struct ibmr_armed {
	struct ibmr_keyed keyed;
	struct ib_mr *drv;
	struct ibmr_mag *mag;
	struct ibmr_armed *next;
	u32 key;
	struct ibmr_window *window;
	const void *tag;
	bool invalidated;
	unsigned int uses;
	unsigned int keys_left;
	DECLARE_BITMAP(spent, 256);
	struct scatterlist *sgl;
	struct rcu_head rcu;
};

#define IBMR_MAG_AT_ONCE	BIT(0)	/* re-key without quarantine */
#define IBMR_MAG_OWN_SGL	BIT(1)	/* a scatterlist of the whole capacity with each MR */
#define IBMR_MAG_NO_MARGIN	BIT(2)	/* just what was promised; more when it was not enough */

struct ibmr_stack {
	struct ibmr_armed *head;
	unsigned int nr;
};

/**
 * struct ibmr_mag - armed MRs of one set of rights and one capacity
 * @lock: guards what follows it, and the objects of whoever owns the magazine. Taken with
 *        interrupts off in any context
 * @stock: ready for use
 * @low: when @stock falls below this the worker is called
 * @kicked: it is
 * @gone: the device was removed, and @stock is empty and stays so; set under @lock, asked without
 *        it where only a reason hangs on it
 * @dying: being destroyed; set under @lock. The worker asks without it: what it queues too late is
 *         cancelled after it was waited for
 * @tagged: some MR was ever given a tag; set under @lock. A fence asks without it: it comes after
 *          the bindings that it is to wait for
 * @spoiled: some MR in @stock is said to be invalidated; under @lock
 * @in_use: taken
 * @created: all there are; == @stock + @in_use + @retired + @quarantine + @due, unless the worker
 *           has some in hand
 * @retired: withdrawn, not waiting yet
 * @quarantine: waiting for the grace period under way
 * @due: may be armed again
 * @waiting: a grace period is under way
 * @promised: how many may be in use at one time, as users were told
 * @target: how many there should be
 * @batch: retired ones that are worth calling the worker for
 * @takes: ever taken
 * @empties: ever found empty
 * @empties_seen: @empties at the worker's last look
 * @peak: most in use
 * @rekeyed: ever armed anew
 * @replaced: ever exchanged for a new MR
 * @hand: held while the worker, or a flush, has MRs in hand that were not fenced
 * @refs: owners, the worker, a grace period
 * @dev: device
 * @park: PD that MRs not in use are in; the device's
 * @access: rights every MR is armed with
 * @capacity: pages of PAGE_SIZE in each
 * @flags: IBMR_MAG_*
 * @shared_node: in dev->shared_mags, where all find it, if it is shared
 * @shared: users, if it is. Changed under mag_lock; read without it
 *          to size the stock, where one more or less does no harm
 * @listed: in dev->mags; its number there is what people know it by
 * @work: worker
 * @shrink: looks now and then whether there are too many
 * @seen_takes: @takes at its last look
 * @grace: end of the quarantine
 */
struct ibmr_mag {
	spinlock_t lock;
	struct ibmr_stack stock;
	unsigned int low;
	bool kicked;
	bool gone;
	bool dying;
	bool tagged;
	bool spoiled;
	unsigned int in_use;
	unsigned int created;
	struct ibmr_stack retired;
	struct ibmr_stack quarantine;
	struct ibmr_stack due;
	bool waiting;
	unsigned int promised;
	unsigned int target;
	unsigned int batch;
	u64 takes;
	u64 empties;
	u64 empties_seen;
	u64 rekeyed;
	u64 replaced;
	unsigned int peak;

	struct mutex hand;
	refcount_t refs;
	struct ibmr_dev *dev;
	struct ib_pd *park;
	int access;
	unsigned int capacity;
	unsigned int flags;
	struct hlist_node shared_node;
	unsigned int shared;
	struct ibmr_listed listed;
	struct work_struct work;
	struct delayed_work shrink;
	u64 seen_takes;
	struct rcu_head grace;
};

static inline void ibmr_stack_push(struct ibmr_stack *s, struct ibmr_armed *a)
{
	a->next = s->head;
	s->head = a;
	s->nr++;
}

static inline struct ibmr_armed *ibmr_stack_pop(struct ibmr_stack *s)
{
	struct ibmr_armed *a = s->head;

	if (a) {
		s->head = a->next;
		s->nr--;
	}
	return a;
}

static inline struct ibmr_stack ibmr_stack_steal(struct ibmr_stack *s)
{
	struct ibmr_stack all = *s;

	*s = (struct ibmr_stack){};
	return all;
}

/* magazine.c: what users call. Those that sleep say so. */
enum ib_mr_reason ibmr_mag_qualify(struct ibmr_dev *dev);			/* sleeps */
struct ibmr_mag *ibmr_mag_create(struct ibmr_dev *dev, int access, unsigned int capacity,
				 unsigned int flags);				/* sleeps */
void ibmr_mag_destroy(struct ibmr_mag *mag);					/* sleeps */
struct ibmr_mag *ibmr_mag_get_shared(struct ibmr_dev *dev, int access, unsigned int capacity,
				     unsigned int flags);			/* sleeps */
struct ibmr_mag *ibmr_mag_find_shared(struct ibmr_dev *dev, int access, unsigned int capacity,
				      unsigned int flags);
void ibmr_mag_put_shared(struct ibmr_mag *mag);					/* sleeps */
int ibmr_mag_promise(struct ibmr_mag *mag, unsigned int more);			/* sleeps */
void ibmr_mag_unpromise(struct ibmr_mag *mag, unsigned int fewer);
void ibmr_mag_fence(struct ibmr_mag *mag, struct ibmr_stack *withdrawn);	/* sleeps */
void ibmr_mag_flush(struct ibmr_mag *mag);					/* sleeps */
void ibmr_mags_fence(struct ibmr_dev *dev, const void *tag);			/* sleeps */
void ibmr_mag_drop(struct ibmr_mag *mag);
void ibmr_mag_empty(struct ibmr_mag *mag);
void ibmr_mag_kick(struct ibmr_mag *mag);
void ibmr_mag_spoiled(struct ibmr_mag *mag);
void ibmr_mag_bury(struct ibmr_mag *mag, struct ibmr_armed *a);

void ibmr_mags_remove(struct ibmr_dev *dev);
bool ibmr_mags_agree(struct ibmr_dev *dev);
int ibmr_mags_init(void);
void ibmr_mags_exit(void);

extern struct workqueue_struct *ibmr_pool_wq;
extern bool ibmr_force_replace;
extern unsigned int ibmr_fail_map;
extern u64 ibmr_short_iova;
extern bool ibmr_no_fmr;
extern unsigned int ibmr_stock_limit;
bool ibmr_map_fails(void);
#ifdef CONFIG_IB_MR_DEBUG
enum ib_mr_reason ibmr_mag_verdict(struct ib_device *device, enum ib_mr_reason why);
#endif

/* arming.c: MRs in batches. */
#define IBMR_ARM_BATCH	128	/* two work requests an MR, in one chain */

struct ibmr_arm *ibmr_arm_alloc(void);
unsigned int ibmr_arm_grow(struct ibmr_mag *mag, unsigned int nr);
void ibmr_arm_rekey(struct ibmr_mag *mag, struct ibmr_stack *list);
void ibmr_arm_replace(struct ibmr_mag *mag, struct ibmr_stack *list);
void ibmr_arm_discard(struct ibmr_mag *mag, struct ibmr_stack *list);
void ibmr_armed_free(struct ibmr_armed *a);

/* live.c: the MR itself. */
enum ib_mr_reason ibmr_probe(struct ibmr_dev *dev);
int ibmr_live_init(void);
void ibmr_live_exit(void);

/* One entry more than is ever used: for_each_sg() looks at what follows the last one. */
struct ibmr_scratch {
	local_lock_t lock;
	struct scatterlist sgl[IBMR_LIVE_PAGES + 1];
};

/* The same for single pages: every length is PAGE_SIZE and stays so. */
struct ibmr_plain {
	struct scatterlist sgl[IBMR_LIVE_PAGES + 1];
	bool not_linear;	/* why the last map failed */
};

/*
 * Where the linear map is. Soft RDMA copies to the address it is given, so an address elsewhere
 * (NULL, a physical one, what a failed map returned) would be the kernel's end at the peer's first
 * READ. The span is a power of two: then offsets can be joined, and compared once.
 */
struct ibmr_linear {
	u64 base;
	u64 span;
};

extern struct ibmr_linear ibmr_linear;

extern struct ibmr_scratch __percpu *ibmr_scratch;
extern struct ibmr_plain __percpu *ibmr_plain;

/**
 * ibmr_live_begin() - this CPU's scatterlists are ours, interrupts are off
 * @flags: for ibmr_live_end()
 *
 * The section is an RCU reader: removal of the device waits for it.
 *
 * Context: any.
 * Return: the scatterlist to fill.
 */
static __always_inline struct scatterlist *ibmr_live_begin(unsigned long *flags)
{
	unsigned long f;

	local_lock_irqsave(&ibmr_scratch->lock, f);
	*flags = f;
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		rcu_read_lock();
	return this_cpu_ptr(ibmr_scratch)->sgl;
}

static __always_inline void ibmr_live_end(unsigned long flags)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		rcu_read_unlock();
	local_unlock_irqrestore(&ibmr_scratch->lock, flags);
}

/*
 * A store to a field of a driver MR that the driver reads, with plain loads, whenever a packet
 * comes (live.c): no lock of ours can keep it out, and none is needed. Each is one aligned word,
 * and the order is what counts: pages and iova before the PD, the parking PD before the length.
 * Our half is marked, the driver's is not ours to mark, so KCSAN is told not to look. Readers of
 * our own hold mag->lock and look at no more than the PD until they have seen that it is
 * published.
 */
#define ibmr_driver_reads(store)	\
do {					\
	kcsan_disable_current();	\
	store;				\
	kcsan_enable_current();		\
} while (0)

/**
 * ibmr_live_map() - map an armed, parked MR
 * @drv: the MR
 * @sgl: DMA addresses and lengths; inner boundaries on blocks
 * @nents: entries; in blocks not above the MR's capacity
 * @length: sum of the lengths
 * @iova: address of the first byte, congruent to it modulo the block size
 * @shift: log2 of the block size, at most IBMR_LIVE_MAX_SHIFT
 *
 * Context: between ibmr_live_begin() and ibmr_live_end().
 * Return: false when the driver did not take all of it; the MR maps nothing then.
 */
static __always_inline bool ibmr_live_map(struct ib_mr *drv, struct scatterlist *sgl,
					  unsigned int nents, u64 length, u64 iova,
					  unsigned int shift)
{
	int n;

	ibmr_lockdep_off();
	n = ibmr_map_mr_sg(drv, sgl, nents, 1U << shift);
	ibmr_lockdep_on();
	if (unlikely(n != nents || drv->length != length)) {
		ibmr_driver_reads(WRITE_ONCE(drv->length, 0));
		return false;
	}
	ibmr_driver_reads(WRITE_ONCE(drv->iova, iova));
	return true;
}

/* Let the mapping be reached. It was made before anyone can see the PD. */
static inline void ibmr_publish(struct ib_mr *drv, struct ib_pd *pd)
{
	/* Pairs with the driver's comparison of PDs, on which its reading of the rest depends. */
	ibmr_driver_reads(smp_store_release(&drv->pd, pd));
}

/*
 * Nobody is let in any more from here on. A packet that was let in may still be copying: the pages
 * may be given away, but not yet to anybody to whom that copy could do harm (ibmr_mag_fence()).
 */
static inline void ibmr_withdraw_drv(struct ibmr_armed *a, struct ib_mr *drv, struct ib_pd *park)
{
	if (tracepoint_enabled(ib_mr_cut_off)) {
		ibmr_withdraw_traced(a, drv, park);
		return;
	}
	ibmr_driver_reads(WRITE_ONCE(drv->pd, park));
	ibmr_driver_reads(WRITE_ONCE(drv->length, 0));
}

static inline void ibmr_withdraw(struct ibmr_armed *a, struct ibmr_dev *dev)
{
	ibmr_withdraw_drv(a, a->drv, dev->park);
}

/* Under mag->lock, as are the next two. NULL when there is none; the worker is called then. */
static inline struct ibmr_armed *ibmr_mag_take(struct ibmr_mag *mag)
{
	struct ibmr_armed *a = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL :
		ibmr_stack_pop(&mag->stock);

	if (unlikely(!a)) {
		ibmr_mag_empty(mag);
		return NULL;
	}
	mag->in_use++;
	mag->takes++;
	if (unlikely(mag->stock.nr < mag->low))
		ibmr_mag_kick(mag);
	return a;
}

/* Back to the stock, unless that was closed meanwhile: it was taken and never published. */
static inline void ibmr_mag_untake(struct ibmr_mag *mag, struct ibmr_armed *a)
{
	mag->in_use--;
	ibmr_stack_push(mag->gone ? &mag->due : &mag->stock, a);
}

/* The user is done with it: nobody is let in any more. */
static inline void ibmr_mag_retire(struct ibmr_mag *mag, struct ibmr_armed *a)
{
	struct ib_mr *drv = a->drv;

	if (unlikely(!drv)) {
		ibmr_mag_bury(mag, a);
		return;
	}
	ibmr_withdraw_drv(a, drv, mag->park);
	mag->in_use--;
	ibmr_stack_push(&mag->retired, a);
	/* The end of a grace period under way calls the worker anyway. */
	if (unlikely(mag->retired.nr >= mag->batch && !mag->waiting))
		ibmr_mag_kick(mag);
}

/* The same, but into the caller's hand, for ibmr_mag_fence(). */
static inline void ibmr_mag_retire_to(struct ibmr_mag *mag, struct ibmr_armed *a,
				      struct ibmr_stack *list)
{
	if (unlikely(!a->drv)) {
		ibmr_mag_bury(mag, a);
		return;
	}
	ibmr_withdraw(a, mag->dev);
	mag->in_use--;
	ibmr_stack_push(list, a);
}

#endif /* IBMR_MAGAZINE_H */
