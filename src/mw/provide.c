// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The stocks that windows are bound from, and what is made of them only when it is asked for.
 *
 * All windows of a device share a stock for each set of remote rights. The usual three (read,
 * write, both) are there from the first window on. Sets with the atomic right are rare, and so are
 * windows of more blocks than those stocks carry, whose MRs are as large as the region. A region
 * is registered with MW_BIND by many who never bind a window to all of it, so nothing is made for
 * that ahead of time: a bind that finds its stock missing is refused, and leaves with its window
 * what it wanted. A worker makes it, one MR and no margin, and the next bind finds it. What is made
 * for a region is shared with regions of the same size, and goes with the last of them.
 *
 * A region's provision is changed under the region's lock and read by binds, which are counted in
 * region->windows: while one is, the region is neither deregistered nor re-registered, and the
 * provision stays.
 */

#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/fault.h"
#include "mr/handle.h"
#include "mw/window.h"

/* --- of windows --- */

/*
 * A window may be bound with any set of rights, but only one at a time. Every window has an MR that
 * can be read and written, and every other one an MR for each right alone: two for a window, and
 * demand does the rest. Rarer sets are joined where somebody had them made before.
 */
int ibmr_window_get_stocks(struct ibmr_window *w, unsigned int nth)
{
	struct ibmr_dev *dev = w->ipd->dev;
	unsigned int set;

	for (set = 1; set < IBMR_WINDOW_SETS; set++) {
		int rights = ibmr_window_rights(set);
		bool mine = set == 3 || set == 1 + (nth & 1);

		if (set > 3) {
			w->mag[set] = ibmr_mag_find_shared(dev, rights, IBMR_WINDOW_PAGES, 0);
			continue;
		}
		w->mag[set] = ibmr_mag_get_shared(dev, rights, IBMR_WINDOW_PAGES, 0);
		if (!w->mag[set] || ibmr_mag_promise(w->mag[set], mine))
			return -ENOMEM;
		w->promised |= mine ? BIT(set) : 0;
	}
	return 0;
}

/* The device is NOT entered. */
void ibmr_window_put_stocks(struct ibmr_window *w)
{
	unsigned int set;

	for (set = 1; set < IBMR_WINDOW_SETS; set++)
		if (w->mag[set]) {
			ibmr_mag_unpromise(w->mag[set], w->promised & BIT(set) ? 1 : 0);
			ibmr_mag_put_shared(w->mag[set]);
		}
}

static void provide_window(struct ibmr_window *w, unsigned int set)
{
	struct ibmr_dev *dev = w->ipd->dev;
	struct ibmr_mag *mag = NULL;
	unsigned int noio;

	if (!ibmr_dev_enter(dev, &noio))
		return;
	if (!w->mag[set]) {
		mag = ibmr_mag_get_shared(dev, ibmr_window_rights(set), IBMR_WINDOW_PAGES, 0);
		/* Nobody is promised any; there are some, and demand does the rest. */
		if (mag && !ibmr_mag_promise(mag, 0)) {
			/* Pairs with the bind's, which takes from it then. */
			smp_store_release(&w->mag[set], mag);
			mag = NULL;
		}
	}
	ibmr_dev_exit(dev, noio);
	if (mag)
		ibmr_mag_put_shared(mag);
}

/* --- of regions --- */

/* Blocks that a window on the whole of it has; 0 when the driver does not take as many. */
static u64 blocks_of(const struct ibmr_reg *reg)
{
	unsigned int shift;
	u64 blocks;

	if (ibmr_pagevec_block(&reg->mem->pv, reg->iova,
			       GENMASK_ULL(IBMR_LIVE_MAX_SHIFT, PAGE_SHIFT), &shift))
		return 0;
	blocks = ibmr_pagevec_blocks(&reg->mem->pv, shift);
	return blocks > ibmr_list_max(reg->pd->device) ? 0 : blocks;
}

/* A stock that has one ready; NULL when there is none to be had. */
static struct ibmr_mag *make_stock(struct ibmr_dev *dev, unsigned int set, u64 blocks)
{
	unsigned int flags = IBMR_MAG_NO_MARGIN;
	struct ibmr_mag *mag, *failed = NULL;
	unsigned int noio;

	if (blocks > IBMR_LIVE_PAGES)
		flags |= IBMR_MAG_OWN_SGL;
	if (!ibmr_dev_enter(dev, &noio))
		return NULL;
	mag = ibmr_mag_get_shared(dev, ibmr_window_rights(set), blocks, flags);
	if (mag && ibmr_mag_promise(mag, 1)) {
		failed = mag;
		mag = NULL;
	}
	ibmr_dev_exit(dev, noio);
	if (failed)
		ibmr_mag_put_shared(failed);
	return mag;
}

/*
 * Nothing is allocated under the region's lock, so it is looked at first, and shown what was made
 * if it still lives. Nobody else provides for it, or registers it anew, meanwhile.
 */
static void provide_region(struct ibmr_region *region, unsigned int set)
{
	struct ibmr_provision *p, *fresh = NULL;
	struct ibmr_mag *mag = NULL;
	enum ib_mr_reason why;
	u64 blocks = 0;
	bool wanted;

	mutex_lock(&region->change);
	if (!ibmr_region_lock(&region->mr, &why))
		goto out;
	p = region->provision;
	wanted = region->state == IBMR_LIVE && region->reg->mem && !(p && p->mag[set]);
	if (wanted)
		blocks = p ? p->blocks : blocks_of(region->reg);
	ibmr_region_unlock(region);
	if (!wanted)
		goto out;

	if (!p) {
		fresh = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL :
			kzalloc(sizeof(*fresh), GFP_KERNEL);
		if (!fresh)
			goto out;
		fresh->blocks = blocks;
	}
	if (blocks) {
		mag = make_stock(region->dev, set, blocks);
		if (!mag)
			goto out;
	}
	if (!ibmr_region_lock(&region->mr, &why))
		goto out;
	if (region->state == IBMR_LIVE) {
		if (fresh) {
			p = fresh;
			fresh = NULL;
			/* Pairs with the bind's, which looks into it then. */
			smp_store_release(&region->provision, p);
		}
		if (mag) {
			p->promised |= BIT(set);
			/* The same. */
			smp_store_release(&p->mag[set], mag);
			mag = NULL;
		}
	}
	ibmr_region_unlock(region);
out:
	mutex_unlock(&region->change);
	kfree(fresh);
	if (mag) {
		ibmr_mag_unpromise(mag, 1);
		ibmr_mag_put_shared(mag);
	}
}

/* The device is NOT entered. */
void ibmr_window_unprovision(struct ibmr_provision *p)
{
	unsigned int set;

	if (!p)
		return;
	for (set = 1; set < IBMR_WINDOW_SETS; set++)
		if (p->mag[set]) {
			ibmr_mag_unpromise(p->mag[set], p->promised & BIT(set) ? 1 : 0);
			ibmr_mag_put_shared(p->mag[set]);
		}
	kfree(p);
}

/* --- on demand --- */

/**
 * ibmr_window_want() - a bind found a stock missing
 * @w: window, locked
 * @region: region whose own stock it is; NULL for one of the windows'
 * @set: set of rights
 *
 * One at a time: who is refused while another one is made, asks again.
 * Context: any.
 */
void ibmr_window_want(struct ibmr_window *w, struct ibmr_region *region, unsigned int set)
{
	if (!w->wanted_set) {
		if (region)
			refcount_inc(&region->refs);
		w->wanted = region;
		w->wanted_set = set;
	}
	queue_work(ibmr_pool_wq, &w->provide);
}

void ibmr_window_provide(struct work_struct *work)
{
	struct ibmr_window *w = container_of(work, struct ibmr_window, provide);
	unsigned int noio = memalloc_noio_save();
	struct ibmr_region *region;
	unsigned int set;

	spin_lock_irq(&w->lock);
	region = w->wanted;
	set = w->wanted_set;
	w->wanted = NULL;
	w->wanted_set = 0;
	spin_unlock_irq(&w->lock);
	if (region) {
		provide_region(region, set);
		ibmr_region_put(region);
	} else if (set) {
		provide_window(w, set);
	}
	memalloc_noio_restore(noio);
}

/* The window goes, nobody binds it any more. The device is NOT entered. */
void ibmr_window_want_no_more(struct ibmr_window *w)
{
	cancel_work_sync(&w->provide);
	if (w->wanted)
		ibmr_region_put(w->wanted);
	w->wanted = NULL;
}
