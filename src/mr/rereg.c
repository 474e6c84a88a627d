// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Re-registration: another PD, other memory or other rights under the same handle.
 *
 * Everything is checked, and the new registration built and accepted by the device, before the
 * old one is touched. The last thing that can fail is that the driver lets go of the old one; the
 * exchange itself cannot. So a failed call leaves the old region working, byte for byte. The keys
 * change (a classic driver was free to do so as well): peers have to be told.
 */

#include "base/compat.h"
#include "mr/access.h"
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

/* Exchange the registrations; cannot fail. */
static void commit(struct ibmr_region *region, struct ibmr_pd *ipd, struct ibmr_reg *new)
{
	struct ibmr_pd *old_ipd = region->ipd;
	struct ibmr_reg *old = region->reg;
	u32 old_lkey = old->lkey, old_rkey = old->rkey;

	region->reg = new;
	if (ipd != old_ipd)
		ibmr_limit_uncharge(old_ipd, ibmr_reg_pinned(old));
	else
		atomic64_sub(ibmr_reg_pinned(old) - ibmr_reg_pinned(new), &ipd->pinned);
	if (ipd != old_ipd) {
		mutex_lock(&old_ipd->lock);
		list_del_init(&region->entry);
		mutex_unlock(&old_ipd->lock);
		region->ipd = ipd;
		mutex_lock(&ipd->lock);
		list_add_tail(&region->entry, &ipd->regions);
		mutex_unlock(&ipd->lock);
	}
	ibmr_region_show(region);
	ibmr_reg_destroy(old);
	trace_ib_mr_reregistered(region->dev->name, new, old_lkey, old_rkey);
}

/* Of a live region without windows. Takes over @ipd's user on success. */
static enum ib_mr_reason rereg_live(struct ibmr_region *region, struct ibmr_pd *ipd,
				    const struct rereg *r)
{
	const struct ibmr_reg *old = region->reg;
	int access = r->mask & IB_MR_REREG_ACCESS ? r->access : old->access;
	struct ibmr_mem *mem = old->mem;
	u64 iova = old->iova;
	enum ib_mr_reason why;
	struct ibmr_reg *new;

	if (r->mask & IB_MR_REREG_TRANS) {
		if (!mem)
			return IB_MR_WHY_WRONG_KIND;
		mem = ibmr_mem_phys(region->dev, r->buf, r->nr, &why);
		if (!mem)
			return why;
		iova = *r->iova;
	} else if (mem && mem->by_driver) {
		return IB_MR_WHY_NO_REGQP;
	} else if (mem) {
		refcount_inc(&mem->refs);
	}

	why = ipd != region->ipd ? ibmr_limit_charge(ipd, mem ? mem->pinned : 0) : IB_MR_WHY_OK;
	if (why) {
		ibmr_mem_put(mem);
		return why;
	}
	new = ibmr_reg_create(ipd, mem, iova, access, &why);
	if (!new) {
		if (ipd != region->ipd)
			ibmr_limit_uncharge(ipd, mem ? mem->pinned : 0);
		ibmr_mem_put(mem);
		return why;
	}
	ibmr_mem_put(mem);	/* the registration has its own */
	/*
	 * From here its key leads to the new one; the region pointer has to be there before a
	 * reader can find it.
	 */
	new->region = region;
	why = ibmr_reg_publish(new) ? IB_MR_WHY_NO_MEMORY : IB_MR_WHY_OK;
	if (!why) {
		ibmr_region_fence(region);
		why = ibmr_reg_withdraw(region->reg) ? IB_MR_WHY_DEREG_FAILED : IB_MR_WHY_OK;
	}
	if (why) {
		if (ipd != region->ipd)
			ibmr_limit_uncharge(ipd, ibmr_reg_pinned(new));
		ibmr_reg_destroy(new);
		return why;
	}
	commit(region, ipd, new);
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
	struct ibmr_pd *ipd = NULL, *old_ipd;
	struct ibmr_region *region;
	enum ib_mr_reason why;
	struct ibmr_dev *dev;

	might_sleep();
	if (IS_ERR_OR_NULL(mr))
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	region = ibmr_region_lock(mr, &why);
	if (!region)
		return ibmr_refuse(NULL, why, "%s", __func__);
	dev = region->dev;

	why = region->state == IBMR_LIVE ? rereg_args(&r) : IB_MR_WHY_NO_DEVICE;
	if (!why && r.mask & IB_MR_REREG_PD && r.pd->device != dev->ibdev)
		why = IB_MR_WHY_OTHER_DEVICE;
	if (why)
		goto out;
	if (atomic_cmpxchg(&region->windows, 0, IBMR_NO_WINDOWS)) {
		why = IB_MR_WHY_WINDOWS_BOUND;
		goto out;
	}

	old_ipd = region->ipd;
	ipd = ibmr_pd_get(dev, r.mask & IB_MR_REREG_PD ? r.pd : old_ipd->pd);
	why = ipd ? rereg_live(region, ipd, &r) : IB_MR_WHY_NO_MEMORY;
	if (ipd)
		ibmr_pd_put(why ? ipd : old_ipd);
	if (!why)
		old_provision = ibmr_window_provision(region);
	atomic_set_release(&region->windows, 0);	/* who counts itself in finds the new one */
out:
	ibmr_region_unlock(region);
	ibmr_window_unprovision(old_provision);
	if (why)
		return ibmr_refuse(dev, why, "%s(mask %#x, access %#x)", __func__, r.mask,
				   r.access);
	return 0;
}
EXPORT_SYMBOL(ib_rereg_phys_mr);
