// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Re-registration: another PD, other memory or other rights under the same handle.
 *
 * Everything is checked, and the new registration built and accepted by the device, before the
 * old one is touched. The last thing that can fail is that the driver lets go of the old one; the
 * exchange itself cannot. So a failed call leaves the old region working, byte for byte. The keys
 * change (a classic driver was free to do so as well): peers have to be told.
 *
 * Building takes memory, and so may wait for a notifier, which may want to deregister this very
 * region. So it is built without the region's lock. Who deregisters meanwhile wins: the new one is
 * then dropped, and nobody ever saw it.
 */

#include "base/compat.h"
#include "mr/access.h"
#include "mr/handle.h"
#include "mr/region.h"

#include <trace/events/ib_mr.h>

struct rereg {
	int mask;
	struct ib_pd *pd;
	const struct ib_phys_buf *buf;
	int nr;
	int access;
	const u64 *iova;
};

/**
 * struct want - what the new registration is to be
 * @ipd: PD, with a user of ours; NULL until there is one
 * @moves: it is another PD than now
 * @mem: memory that is kept, with a reference of ours; NULL where there is none or it is new
 * @iova: address of the first byte
 * @access: rights
 */
struct want {
	struct ibmr_pd *ipd;
	bool moves;
	struct ibmr_mem *mem;
	u64 iova;
	int access;
};

static enum ib_mr_reason rereg_args(const struct rereg *r)
{
	if (!r->mask || r->mask & ~IB_MR_REREG_SUPPORTED)
		return IB_MR_WHY_BAD_MASK;
	/*
	 * The core looked at the flags whether or not they were asked for. A caller that leaves
	 * them out passes 0, which is fine.
	 */
	if (ibmr_access_wants_local(r->access))
		return IB_MR_WHY_ACCESS_NO_LOCAL;
	if (r->mask & IB_MR_REREG_PD && IS_ERR_OR_NULL(r->pd))
		return IB_MR_WHY_NULL_ARG;
	if (r->mask & IB_MR_REREG_PD && r->pd->uobject)
		return IB_MR_WHY_USER_PD;
	if (r->mask & IB_MR_REREG_TRANS && !r->iova)
		return IB_MR_WHY_NULL_ARG;
	return IB_MR_WHY_OK;
}

/* Exchange the registrations; cannot fail. The region is in its new PD; it was in @old_ipd. */
static void commit(struct ibmr_region *region, struct ibmr_pd *old_ipd, struct ibmr_reg *new)
{
	struct ibmr_pd *ipd = region->ipd;
	struct ibmr_reg *old = region->reg;
	u32 old_lkey = old->lkey, old_rkey = old->rkey;

	region->reg = new;
	if (ipd != old_ipd)
		ibmr_limit_uncharge(old_ipd, ibmr_reg_pinned(old));
	else
		atomic64_sub(ibmr_reg_pinned(old) - ibmr_reg_pinned(new), &ipd->pinned);
	if (ipd != old_ipd) {
		spin_lock(&old_ipd->list_lock);
		list_del_init(&region->entry);
		spin_unlock(&old_ipd->list_lock);
		spin_lock(&ipd->list_lock);
		list_add_tail(&region->entry, &ipd->regions);
		spin_unlock(&ipd->list_lock);
	}
	ibmr_region_show(region);
	ibmr_reg_destroy(old);
	trace_ib_mr_reregistered(region->dev->name, new, old_lkey, old_rkey);
}

/*
 * The registration that is to be: built and taken by the device, and its key leads to it. The
 * region's lock is not held; the old one may be deregistered meanwhile, so all of it that is
 * needed is in @w.
 */
static struct ibmr_reg *build(struct ibmr_region *region, const struct rereg *r, struct want *w,
			      enum ib_mr_reason *why)
{
	struct ibmr_mem *mem = w->mem;
	struct ibmr_reg *new = NULL;

	w->mem = NULL;
	if (r->mask & IB_MR_REREG_TRANS) {
		mem = ibmr_mem_phys(region->dev, r->buf, r->nr, why);
		if (!mem)
			return NULL;
	}
	if (!w->ipd)
		w->ipd = ibmr_pd_get(region->dev, r->pd);
	*why = !w->ipd ? IB_MR_WHY_NO_MEMORY :
	       w->moves ? ibmr_limit_charge(w->ipd, mem ? mem->pinned : 0) : IB_MR_WHY_OK;
	if (*why)
		goto out;
	new = ibmr_reg_create(w->ipd, mem, w->iova, w->access, why);
	if (!new) {
		if (w->moves)
			ibmr_limit_uncharge(w->ipd, mem ? mem->pinned : 0);
		goto out;
	}
	/* It has to be there before a reader can find it. */
	new->region = region;
	if (ibmr_reg_publish(new))
		*why = IB_MR_WHY_NO_MEMORY;
out:
	ibmr_mem_put(mem);	/* the registration has its own */
	return new;
}

/* What is asked of a live region, for build(). Under its lock. */
static enum ib_mr_reason begin(struct ibmr_region *region, const struct rereg *r, struct want *w)
{
	const struct ibmr_reg *old = region->reg;

	if (r->mask & IB_MR_REREG_TRANS && !old->mem)
		return IB_MR_WHY_WRONG_KIND;
	if (!(r->mask & IB_MR_REREG_TRANS) && old->mem && old->mem->by_driver)
		return IB_MR_WHY_NO_REGQP;
	if (atomic_cmpxchg(&region->windows, 0, IBMR_NO_WINDOWS))
		return IB_MR_WHY_WINDOWS_BOUND;
	region->changing = true;

	w->access = r->mask & IB_MR_REREG_ACCESS ? r->access : old->access;
	w->iova = old->iova;
	w->moves = r->mask & IB_MR_REREG_PD && r->pd != old->pd;
	if (!w->moves)
		w->ipd = ibmr_pd_get(region->dev, old->pd);	/* it is there */
	if (r->mask & IB_MR_REREG_TRANS) {
		w->iova = *r->iova;
	} else if (old->mem) {
		w->mem = old->mem;
		refcount_inc(&w->mem->refs);
	}
	return IB_MR_WHY_OK;
}

/**
 * ib_rereg_phys_mr() - change a region's memory, PD or rights
 * @mr: handle
 * @mr_rereg_mask: IB_MR_REREG_TRANS, _PD, _ACCESS, one or more
 * @pd: new PD, with IB_MR_REREG_PD; of the same device
 * @phys_buf_array: new memory, with IB_MR_REREG_TRANS, under the rules of ib_reg_phys_mr()
 * @num_phys_buf: how many buffers
 * @mr_access_flags: new rights, with IB_MR_REREG_ACCESS
 * @iova_start: address of the first byte, with IB_MR_REREG_TRANS
 *
 * On success the keys in the handle are new and the old ones dead, and the device cannot touch the
 * old memory any more. On failure nothing has changed. A DMA MR has no memory to change.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for arguments; -EBUSY while windows are bound; -EPERM for a user's PD;
 * -ENODEV; -ENOMEM; -EIO.
 */
int ib_rereg_phys_mr(struct ib_mr *mr, int mr_rereg_mask, struct ib_pd *pd,
		     struct ib_phys_buf *phys_buf_array, int num_phys_buf,
		     int mr_access_flags, u64 *iova_start)
{
	const struct rereg r = {
		.mask = mr_rereg_mask, .pd = pd, .buf = phys_buf_array, .nr = num_phys_buf,
		.access = mr_access_flags, .iova = iova_start,
	};
	struct ibmr_provision *old_provision = NULL;
	struct ibmr_region *region;
	struct ibmr_reg *new = NULL;
	enum ib_mr_reason why;
	struct want w = {};
	struct ibmr_dev *dev;
	unsigned int noio;
	int err = 0;

	might_sleep();
	if (IS_ERR_OR_NULL(mr))
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	region = ibmr_handle_find(mr);
	if (!region)
		return ibmr_refuse(NULL, IB_MR_WHY_FOREIGN_MR, "%s", __func__);
	dev = region->dev;
	mutex_lock(&region->change);
	if (!ibmr_region_lock(mr, &why))
		goto out;

	why = region->state == IBMR_LIVE ? rereg_args(&r) : IB_MR_WHY_NO_DEVICE;
	if (!why && r.mask & IB_MR_REREG_PD && r.pd->device != dev->ibdev)
		why = IB_MR_WHY_OTHER_DEVICE;
	if (!why)
		why = begin(region, &r, &w);
	if (why) {
		ibmr_region_unlock(region);
		goto out;
	}
	noio = region->noio;
	mutex_unlock(&region->lock);

	new = build(region, &r, &w, &why);

	mutex_lock(&region->lock);
	region->noio = noio;
	region->changing = false;
	if (!why && region->state != IBMR_LIVE)
		why = IB_MR_WHY_DEREG_TWICE;	/* meanwhile, and that was that */
	if (!why) {
		ibmr_region_fence(region);
		why = ibmr_reg_withdraw(region->reg) ? IB_MR_WHY_DEREG_FAILED : IB_MR_WHY_OK;
	}
	if (!why) {
		swap(w.ipd, region->ipd);
		commit(region, w.ipd, new);
		old_provision = ibmr_region_take_provision(region);
	} else if (new) {
		if (w.moves)
			ibmr_limit_uncharge(w.ipd, ibmr_reg_pinned(new));
		ibmr_reg_destroy(new);
	}
	if (w.ipd)
		ibmr_pd_put(w.ipd);
	/* Who counts itself in finds the new one. */
	if (region->state == IBMR_LIVE)
		atomic_set_release(&region->windows, 0);
	ibmr_region_unlock(region);
	ibmr_window_unprovision(old_provision);
out:
	mutex_unlock(&region->change);
	refcount_inc(&dev->refs);
	ibmr_region_put(region);
	if (why)
		err = ibmr_refuse(dev, why, "%s(mask %#x, access %#x)", __func__, r.mask, r.access);
	ibmr_dev_put(dev);
	return err;
}
EXPORT_SYMBOL(ib_rereg_phys_mr);
