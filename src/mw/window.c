// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows.
 *
 * A window is an armed MR, live-mapped to just the bytes it is bound to. The device's own windows
 * cannot be bound by the kernel, and do not enforce a window's bounds but its region's; an MR's
 * bounds are enforced. Rights are fixed when an MR is armed and chosen when a window is bound, so
 * there is a stock for each set of remote rights; all windows of a device share them.
 *
 * Bind: everything is checked first. An MR of the right stock is mapped while it is parked,
 * published, and the carrier posted where a completion is wanted; only then is the binding before
 * withdrawn. Until the caller is told the new key nobody knows it, so it does no harm if it is
 * taken back because the send queue was full; the old binding stands then.
 *
 * A bound window counts in its region, which thereby cannot be deregistered or re-registered: that
 * is also why the registration may be read here without the region's lock. Taking a binding back
 * is immediate. What was let in before is waited for by ib_dealloc_mw(), which is a fence, and by
 * deregistering or re-registering the region, whose memory may be given away then.
 *
 * Stocks carry windows of 256 blocks. How long that is depends on the memory: contiguous memory
 * comes in large blocks, on kernels whose driver takes those live. What is larger, or of rights
 * that nobody asked for before, is refused once and made meanwhile (provide.c).
 */

#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/fault.h"
#include "mr/access.h"
#include "mr/handle.h"
#include "mr/regqp.h"
#include "mw/window.h"

static bool bind_without_right;
module_param(bind_without_right, bool, 0644);
MODULE_PARM_DESC(bind_without_right,
		 "let windows be bound to regions without MW_BIND, as iWARP hardware did");

/* What a bind has worked out. */
struct binding {
	struct ibmr_region *region;
	struct ibmr_reg *reg;
	u64 addr;
	u64 length;
	u64 iova;
	unsigned int set;
	unsigned int nents;
	unsigned int shift;
	u64 blocks;
};

static struct ibmr_window *to_window(struct ib_mw *mw)
{
	return container_of(mw, struct ibmr_window, mw);
}

/* --- rules --- */

static enum ib_mr_reason check_rights(const struct ibmr_window *w, const struct ibmr_reg *reg,
				      int access)
{
	if (access & ~(IBMR_REMOTE_RIGHTS | IB_ZERO_BASED) || !(access & IBMR_REMOTE_RIGHTS))
		return IB_MR_WHY_BAD_ACCESS;
	if (!(reg->access & IB_ACCESS_MW_BIND) && !READ_ONCE(bind_without_right))
		return IB_MR_WHY_MW_NO_BIND;		/* C10-73 */
	if (access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	    !(reg->access & IB_ACCESS_LOCAL_WRITE))
		return IB_MR_WHY_MW_ACCESS;		/* C10-74 */
	if (reg->access & IB_ZERO_BASED)
		return IB_MR_WHY_MW_ZERO_BASED;
	if (access & IB_ZERO_BASED && w->mw.type == IB_MW_TYPE_1)
		return IB_MR_WHY_MW_ZERO_BASED;		/* o10-36.2.2 */
	return IB_MR_WHY_OK;
}

static enum ib_mr_reason check_range(const struct ibmr_reg *reg, const struct ib_mw_bind_info *info)
{
	enum ib_mr_reason why;

	why = ibmr_access_range(info->addr, info->length);
	if (why)
		return why;
	if (!reg->mem) {	/* a DMA MR: no bounds but the memory there is */
		if (!virt_addr_valid((void *)(uintptr_t)info->addr) ||
		    !virt_addr_valid((void *)(uintptr_t)(info->addr + info->length - 1)))
			return IB_MR_WHY_MW_RANGE;
		return IB_MR_WHY_OK;
	}
	if (ibmr_access_bounds(reg->iova, reg->length, info->addr, info->length))
		return IB_MR_WHY_MW_RANGE;		/* C10-75 */
	return IB_MR_WHY_OK;
}

static enum ib_mr_reason check_bind(struct ibmr_window *w, struct ib_qp *qp,
				    const struct ib_mw_bind_info *info, struct binding *b)
{
	struct ibmr_reg *reg = b->reg;
	enum ib_mr_reason why;

	if (reg->ipd != w->ipd || qp->pd != w->mw.pd)
		return IB_MR_WHY_MW_PD;			/* C10-72 */
	why = check_rights(w, reg, info->mw_access_flags);
	if (!why)
		why = check_range(reg, info);
	if (why)
		return why;
	b->addr = info->addr;
	b->length = info->length;
	b->iova = info->mw_access_flags & IB_ZERO_BASED ? 0 : info->addr;
	/* The region's own iova is congruent to its memory. */
	if (offset_in_page(b->iova ^ b->addr))
		return IB_MR_WHY_ZERO_BASED_ALIGN;
	b->set = ibmr_window_set(info->mw_access_flags);
	return IB_MR_WHY_OK;
}

/* --- mapping; with interrupts off --- */

static u64 count_blocks(const struct scatterlist *sgl, unsigned int nents, unsigned int shift)
{
	u64 n = 0;
	unsigned int i;

	for (i = 0; i < nents; i++) {
		u64 addr = sg_dma_address(&sgl[i]);

		n += ((addr + sg_dma_len(&sgl[i]) - 1) >> shift) - (addr >> shift) + 1;
	}
	return n;
}

/* The window's memory as a list of at most @max entries. False: there are more. */
static bool window_sg(struct binding *b, struct scatterlist *sgl, unsigned int max)
{
	struct ibmr_pagevec all = { .length = b->length, .nr = 1, .runs = &all.one };
	const struct ibmr_pagevec *pv = &all;
	u64 inner, off = 0;

	all.one.addr = b->addr;
	if (b->reg->mem) {
		pv = &b->reg->mem->pv;
		off = b->addr - b->reg->iova;
	}
	b->nents = ibmr_pagevec_slice(pv, off, b->length, sgl, max, &inner);
	if (!b->nents)
		return false;
	b->shift = ibmr_live_block(inner | (b->iova ^ sg_dma_address(sgl)));
	b->blocks = count_blocks(sgl, b->nents, b->shift);
	return true;
}

/* The stock that carries it; @large: the common one does not. NULL: why not is in *@why. */
static struct ibmr_mag *stock_for(struct ibmr_window *w, struct binding *b, bool large,
				  enum ib_mr_reason *why)
{
	const struct ibmr_provision *own = NULL;
	struct ibmr_mag *const *at = &w->mag[b->set];
	struct ibmr_mag *mag = NULL;

	if (large) {
		/* Pairs with the store in provide.c, which comes when what is in it is ready. */
		own = smp_load_acquire(&b->region->provision);
		at = own ? &own->mag[b->set] : NULL;
	}
	if (at)
		mag = smp_load_acquire(at);	/* the same */
	if (mag)
		return mag;
	*why = IB_MR_WHY_TOO_MANY_PAGES;
	if (large && (!b->reg->mem || !(b->reg->access & IB_ACCESS_MW_BIND) ||
		      (own && !own->blocks)))
		return NULL;
	ibmr_window_want(w, large ? b->region : NULL, b->set);
	*why = IB_MR_WHY_MW_PROVIDING;
	return NULL;
}

/* An MR mapped to what was worked out, parked; in *@armed. */
static enum ib_mr_reason map_window(struct ibmr_window *w, struct binding *b,
				    struct scatterlist *scratch, struct ibmr_armed **armed)
{
	enum ib_mr_reason why = IB_MR_WHY_OK;
	struct scatterlist *sgl = scratch;
	struct ibmr_armed *a;
	struct ibmr_mag *mag;
	bool fits;

	fits = window_sg(b, scratch, IBMR_LIVE_PAGES);
	mag = stock_for(w, b, !fits || b->blocks > IBMR_WINDOW_PAGES, &why);
	if (!mag)
		return why;
	if (fits && b->blocks > mag->capacity)
		return IB_MR_WHY_TOO_MANY_PAGES;

	spin_lock(&mag->lock);
	a = mag->gone ? NULL : ibmr_mag_take(mag);
	spin_unlock(&mag->lock);
	if (!a)
		return READ_ONCE(mag->gone) ? IB_MR_WHY_NO_DEVICE : IB_MR_WHY_NO_MEMORY;
	if (!fits) {
		sgl = a->sgl;
		fits = sgl && window_sg(b, sgl, mag->capacity);
		if (!fits || b->blocks > mag->capacity)
			why = IB_MR_WHY_TOO_MANY_PAGES;
	}
	if (!why && !ibmr_should_fail(IBMR_FAULT_DEVICE) &&
	    ibmr_live_map(a->drv, sgl, b->nents, b->length, b->iova, b->shift)) {
		*armed = a;
		return IB_MR_WHY_OK;
	}
	spin_lock(&mag->lock);
	ibmr_mag_untake(mag, a);
	spin_unlock(&mag->lock);
	return why ? why : IB_MR_WHY_NO_MEMORY;
}

/* --- bindings; w->lock held, interrupts off --- */

/* What the window held of its region. It may go now, and its stocks with it. */
static void let_go(struct ibmr_region *region)
{
	atomic_fetch_dec_release(&region->windows);
	ibmr_region_put(region);
}

/*
 * Take the binding back. With @fence the MR is put there instead of being retired. Return: the
 * region, to be released when the MR was let go of; NULL when there was no binding.
 */
static struct ibmr_region *withdraw(struct ibmr_window *w, struct ibmr_stack *fence)
{
	struct ibmr_region *region = w->region;
	struct ibmr_armed *a = w->armed;
	struct ibmr_mag *mag;
	u32 key;

	if (!region)
		return NULL;
	mag = a->mag;
	spin_lock(&mag->lock);
	key = a->key;		/* the MR may be freed, or have another one, without the lock */
	a->window = NULL;
	if (fence)
		ibmr_mag_retire_to(mag, a, fence);
	else
		ibmr_mag_retire(mag, a);
	spin_unlock(&mag->lock);
	w->region = NULL;
	w->armed = NULL;
	if (tracepoint_enabled(ib_mr_unbound))
		ibmr_trace_unbound(w, region, key);
	return region;
}

static void unbind(struct ibmr_window *w)
{
	struct ibmr_region *region = withdraw(w, NULL);

	if (region)
		let_go(region);
}

/*
 * The bind's place in the send queue, where a completion is wanted. Otherwise nothing is posted; a
 * queue pair that neither the window nor its PD saw last is asked whether it is ready, which is
 * dear.
 */
static enum ib_mr_reason announce(struct ibmr_window *w, struct ib_qp *qp, u64 wr_id,
				  int send_flags)
{
	if (send_flags & IB_SEND_SIGNALED)
		return ibmr_carrier_post(w, qp, wr_id, send_flags);
	if (qp == w->ready_qp)
		return IB_MR_WHY_OK;
	if (qp != READ_ONCE(w->ipd->ready_qp) && !ibmr_qp_ready(qp))
		return IB_MR_WHY_MW_QP_STATE;
	w->ready_qp = qp;
	WRITE_ONCE(w->ipd->ready_qp, qp);
	return IB_MR_WHY_OK;
}

static enum ib_mr_reason bind(struct ibmr_window *w, struct ib_qp *qp, struct binding *b,
			      struct scatterlist *scratch, u64 wr_id, int send_flags)
{
	u32 old_key = w->mw.rkey;
	struct ibmr_armed *a;
	enum ib_mr_reason why;

	why = map_window(w, b, scratch, &a);
	if (why)
		return why;
	spin_lock(&a->mag->lock);
	if (a->drv) {
		a->window = w;
		a->tag = b->region;
		WRITE_ONCE(a->mag->tagged, true);
		ibmr_publish(a->drv, w->mw.pd);
	}
	spin_unlock(&a->mag->lock);
	WRITE_ONCE(b->region->windowed, true);

	WRITE_ONCE(w->mw.rkey, a->key);
	w->binds++;
	why = announce(w, qp, wr_id, send_flags);
	if (why) {
		w->binds--;
		WRITE_ONCE(w->mw.rkey, old_key);
		spin_lock(&a->mag->lock);
		a->window = NULL;
		ibmr_mag_retire(a->mag, a);
		spin_unlock(&a->mag->lock);
		return why;
	}

	unbind(w);
	w->region = b->region;	/* with the reference and the count that the caller took */
	w->armed = a;
	if (tracepoint_enabled(ib_mr_bound))
		ibmr_trace_bound(w, b->region, a);
	return IB_MR_WHY_OK;
}

/* Zero length: type 1's way to take it back. */
static enum ib_mr_reason bind_nothing(struct ibmr_window *w, struct ib_qp *qp, u64 wr_id,
				      int send_flags)
{
	enum ib_mr_reason why = IB_MR_WHY_OK;

	if (w->mw.type != IB_MW_TYPE_1)
		return IB_MR_WHY_MW_EMPTY;		/* o10-37.2.40 */
	if (qp->pd != w->mw.pd)
		return IB_MR_WHY_MW_PD;
	w->binds++;
	why = announce(w, qp, wr_id, send_flags);
	if (why)
		w->binds--;
	else
		unbind(w);
	return why;
}

/*
 * The carrier of bind number @bind completed, or was flushed: the caller's queue pair broke before
 * its turn. A completion may overtake the call that posted its carrier, which has yet to withdraw
 * the binding before: whoever is told of it, and then gives the memory away, must find that done.
 * The call has the lock until it is.
 */
void ibmr_window_completed(struct ibmr_window *w, u64 bind, bool flushed)
{
	unsigned long flags;

	spin_lock_irqsave(&w->lock, flags);
	if (flushed && w->binds == bind)
		unbind(w);
	spin_unlock_irqrestore(&w->lock, flags);
}

/* The region of a caller's handle, kept from being deregistered. NULL: none, or not bindable. */
static struct ibmr_region *region_for_window(struct ib_mr *mr, enum ib_mr_reason *why)
{
	struct ibmr_region *region = IS_ERR_OR_NULL(mr) ? NULL : ibmr_handle_find(mr);

	*why = mr ? IB_MR_WHY_FOREIGN_MR : IB_MR_WHY_NULL_ARG;
	if (!region)
		return NULL;
	if (atomic_inc_unless_negative(&region->windows))
		return region;
	*why = READ_ONCE(region->state) == IBMR_ORPHAN ? IB_MR_WHY_NO_DEVICE :
							 IB_MR_WHY_DEREG_TWICE;
	ibmr_region_put(region);
	return NULL;
}

/* @key: the new one, also when another CPU binds the window again right after */
static int do_bind(struct ib_qp *qp, struct ib_mw *mw, const struct ib_mw_bind_info *info,
		   u64 wr_id, int send_flags, enum ib_mw_type type, u32 *key)
{
	struct ibmr_window *w = to_window(mw);
	struct binding b = {};
	struct scatterlist *scratch;
	enum ib_mr_reason why;
	unsigned long flags;

	if (IS_ERR_OR_NULL(qp) || IS_ERR_OR_NULL(mw) || !info)
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "bind of a window");
	scratch = ibmr_live_begin(&flags);
	spin_lock(&w->lock);
	if (READ_ONCE(w->ipd->dev->gone)) {	/* removal waits for us if it is not */
		why = IB_MR_WHY_NO_DEVICE;
	} else if (mw->type != type) {
		why = IB_MR_WHY_MW_TYPE;
	} else if (!info->length) {
		why = bind_nothing(w, qp, wr_id, send_flags);
	} else if (type == IB_MW_TYPE_2 && w->region) {
		why = IB_MR_WHY_MW_NOT_FREE;		/* o10-37.2.30 */
	} else {
		b.region = region_for_window(info->mr, &why);
		b.reg = b.region ? b.region->reg : NULL;
		if (b.reg) {
			why = check_bind(w, qp, info, &b);
			if (!why)
				why = bind(w, qp, &b, scratch, wr_id, send_flags);
		} else if (b.region) {
			why = IB_MR_WHY_NO_DEVICE;
		}
		if (why && b.region)
			let_go(b.region);
	}
	if (!why && key)
		*key = mw->rkey;
	spin_unlock(&w->lock);
	ibmr_live_end(flags);
	if (why)
		return ibmr_refuse(w->ipd->dev, why,
				   "bind of a window(addr %#llx, length %llu, access %#x)",
				   info->addr, info->length, info->mw_access_flags);
	return 0;
}

/**
 * ib_mr_bind_mw() - bind a type 1 window, or take its binding back
 * @qp: queue pair of the window's PD
 * @mw: type 1 window
 * @info: the binding; length 0 for none
 * @wr_id: for the completion: an id, or on a CQ from ib_alloc_cq() a struct ib_cqe
 * @send_flags: IB_SEND_SIGNALED, IB_SEND_FENCE
 *
 * When it returns 0, @mw->rkey is the new key and works at once, for just these bytes, and the
 * binding before, if any, is dead. Otherwise nothing has changed and @qp lives on: the rules
 * (C10-72 to C10-75, o10-36.2.2) are checked here and not by the device later. A signalled bind
 * takes a place in the send queue and completes in order, as IB_WC_BIND_MW; when it is flushed the
 * window is unbound. One that is not signalled posts nothing, so on a queue pair made with
 * IB_SIGNAL_ALL_WR the flag has to be given where a completion is waited for.
 *
 * Context: any, interrupts off included; does not sleep or allocate.
 * Return: 0; -EINVAL for a rule (its reason is counted) or a NULL; -ENOMEM when the send queue is
 * full, when at this moment no armed MR of these rights is left (NO_MEMORY) or no more completions
 * can be carried (MW_NO_SLOT), and once for what is made on first use (MW_PROVIDING, see
 * ib_alloc_mw()); -EMSGSIZE for more pages than any stock carries; -ENODEV.
 */
int ib_mr_bind_mw(struct ib_qp *qp, struct ib_mw *mw, const struct ib_mw_bind_info *info,
		  u64 wr_id, int send_flags)
{
	return do_bind(qp, mw, info, wr_id, send_flags, IB_MW_TYPE_1, NULL);
}
EXPORT_SYMBOL(ib_mr_bind_mw);

/**
 * ib_mr_post_bind_mw() - bind a type 2 window
 * @qp: queue pair of the window's PD
 * @wr: see there; @wr->rkey is the new key on return
 *
 * As ib_mr_bind_mw(), but the window has to be free (o10-37.2.30): it is freed by an invalidation,
 * IB_WR_LOCAL_INV of its key by the owner or SEND_WITH_INV by the peer, of which the core is told
 * with ib_mr_invalidated().
 *
 * Context: any, interrupts off included.
 * Return: as ib_mr_bind_mw().
 */
int ib_mr_post_bind_mw(struct ib_qp *qp, struct ib_bind_mw_wr *wr)
{
	if (unlikely(!wr))
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	return do_bind(qp, wr->mw, &wr->bind_info, wr->wr.wr_id, wr->wr.send_flags, IB_MW_TYPE_2,
		       &wr->rkey);
}
EXPORT_SYMBOL(ib_mr_post_bind_mw);

/* The MR behind a bound window was invalidated: it is free. Any context, under RCU. */
bool ibmr_window_freed(struct ibmr_window *w, const struct ibmr_armed *a)
{
	unsigned long flags;
	bool was_bound;

	spin_lock_irqsave(&w->lock, flags);
	was_bound = w->armed == a;
	if (was_bound)
		unbind(w);
	spin_unlock_irqrestore(&w->lock, flags);
	return was_bound;
}

/* --- life; process context --- */

/**
 * ib_alloc_mw() - make a memory window
 * @pd: kernel PD
 * @type: IB_MW_TYPE_1 or IB_MW_TYPE_2
 *
 * It has a key, and grants nothing until it is bound. It can be bound to 256 blocks, or to the
 * whole of a region that was registered with IB_ACCESS_MW_BIND. Blocks are as large as the memory
 * allows, and pages where it is not congruent to the address, as in a zero-based window, and on
 * kernels from 6.3. What the first bind to more blocks, or the first with atomic rights, needs is
 * not there yet: that bind is refused (IB_MR_WHY_MW_PROVIDING), and may be made again.
 *
 * Context: process, may sleep.
 * Return: the window, to be given to ib_dealloc_mw(); ERR_PTR(-ENOSYS) on a device that cannot,
 * -EINVAL for the type, -EPERM for a user's PD, -ENODEV, -ENOMEM, -EIO when the device could not be
 * tested.
 */
struct ib_mw *ib_alloc_mw(struct ib_pd *pd, enum ib_mw_type type)
{
	struct ibmr_window *w = NULL;
	enum ib_mr_reason why;
	struct ibmr_pd *ipd;
	struct ibmr_dev *dev;
	unsigned int noio;
	bool joined = false;
	int err;

	might_sleep();
	ipd = ibmr_enter(pd, __func__, &noio);
	if (IS_ERR(ipd))
		return ERR_CAST(ipd);
	dev = ipd->dev;
	why = IB_MR_WHY_MW_TYPE;
	if (type == IB_MW_TYPE_1 || type == IB_MW_TYPE_2)
		why = ibmr_mag_qualify(dev);
	if (why)
		goto refuse;

	why = IB_MR_WHY_NO_MEMORY;
	w = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kzalloc(sizeof(*w), GFP_KERNEL);
	if (!w)
		goto refuse;
	w->mw.device = pd->device;
	w->mw.pd = pd;
	w->pdn = pd->res.id;
	w->mw.type = type;
	spin_lock_init(&w->lock);
	w->ipd = ipd;		/* with the user that ibmr_enter() counted */
	INIT_WORK(&w->provide, ibmr_window_provide);
	joined = !ibmr_carriers_join(w);
	if (!joined || ibmr_window_get_stocks(w, atomic_read(&dev->nr_windows)))
		goto refuse;
	/* Until it is bound, a key that is nobody's: the carrier is never registered. */
	w->mw.rkey = dev->carrier->rkey;
	atomic_inc(&dev->nr_windows);
	mutex_lock(&dev->mag_lock);
	ibmr_list_add(dev, &w->listed, &dev->windows);
	mutex_unlock(&dev->mag_lock);
	ibmr_dev_exit(dev, noio);
	return &w->mw;

refuse:
	err = ibmr_refuse(dev, why, "%s(type %d)", __func__, type);
	ibmr_exit(ipd, noio);
	if (w) {
		ibmr_window_put_stocks(w);
		if (joined)
			ibmr_carriers_part(w);
		kfree(w);
	}
	return ERR_PTR(err);
}
EXPORT_SYMBOL(ib_alloc_mw);

/**
 * ib_dealloc_mw() - free a window
 * @mw: window, bound or not
 *
 * Of a bound window it is a fence: when it returns the device cannot touch the bytes by the
 * window's key any more, not even in the middle of a message. A binding that was taken back or
 * replaced before is fenced when its region is deregistered.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for what ib_alloc_mw() failed with.
 */
int ib_dealloc_mw(struct ib_mw *mw)
{
	struct ibmr_stack withdrawn = {};
	struct ibmr_mag *mag = NULL;
	struct ibmr_region *region;
	struct ibmr_window *w;
	struct ibmr_dev *dev;
	unsigned int noio;

	might_sleep();
	if (IS_ERR_OR_NULL(mw))
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	w = to_window(mw);
	dev = w->ipd->dev;
	ibmr_window_want_no_more(w);
	noio = ibmr_dev_hold(dev);
	spin_lock_irq(&w->lock);
	if (w->armed)
		mag = w->armed->mag;
	region = withdraw(w, &withdrawn);
	spin_unlock_irq(&w->lock);
	/* Until then the region cannot be deregistered: its memory and its stocks are in use. */
	if (withdrawn.nr)
		ibmr_mag_fence(mag, &withdrawn);
	if (region)
		let_go(region);
	mutex_lock(&dev->mag_lock);
	list_del(&w->listed.entry);
	mutex_unlock(&dev->mag_lock);
	atomic_dec(&dev->nr_windows);
	ibmr_pd_put(w->ipd);
	ibmr_dev_exit(dev, noio);

	ibmr_carriers_part(w);
	ibmr_window_put_stocks(w);	/* holds the device's memory until here */
	kfree_rcu(w, rcu);
	return 0;
}
EXPORT_SYMBOL(ib_dealloc_mw);

/* Packets that were let in through windows on it are gone when this returns. */
void ibmr_windows_fence(struct ibmr_region *region)
{
	ibmr_mags_fence(region->dev, region);
}

/* Alone on the device: do regions and windows agree on what is bound? */
bool ibmr_windows_agree(struct ibmr_dev *dev)
{
	struct ibmr_region *region;
	struct ibmr_window *w;
	struct ibmr_pd *ipd;
	int bkt, bound = 0, counted = 0;

	list_for_each_entry(w, &dev->windows, listed.entry) {
		spin_lock_irq(&w->lock);
		bound += w->region ? 1 : 0;
		spin_unlock_irq(&w->lock);
	}
	hash_for_each(dev->pds, bkt, ipd, node)
		list_for_each_entry(region, &ipd->regions, entry)
			counted += max(0, atomic_read(&region->windows));
	return bound == counted;
}
