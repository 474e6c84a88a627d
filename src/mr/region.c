// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions: from memory to keys, and back.
 *
 * The owner's handle is a struct ib_mr of ours, not the driver's. That makes re-registration
 * what its name says: a second driver MR is built whole, beside the one in use, and only when the
 * device has taken it are the keys in the handle exchanged and the old one withdrawn. A failure at
 * any point leaves the old one as it was, because it was never touched. It also makes a handle
 * safe that outlived its device.
 *
 * What the device was told is one immutable struct ibmr_reg. Readers (translation, window binding)
 * find it by key under RCU; whoever touches the memory takes a user of it, and deregistration
 * waits for those.
 *
 * Teardown is always: the driver's MR is gone (which makes the key dead and waits for packets that
 * passed the check), no key leads to it, its users are gone, the memory is released (DMA unmap,
 * unpin), the structures are freed after a grace period. The driver comes first because it may
 * refuse, and then nothing has changed.
 *
 * A handle that was deregistered stays known for a while, so that using it again is answered with
 * a reason. base/handle.c keeps that table.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/fault.h"
#include "base/keys.h"
#include "mr/access.h"
#include "mr/handle.h"
#include "mr/pin.h"
#include "mr/region.h"
#include "mr/regqp.h"

#include <trace/events/ib_mr.h>

/* A driver MR over the linear map as a whole. What ib_alloc_pd() does for its own, done for us. */
static enum ib_mr_reason reg_dma(struct ibmr_reg *reg)
{
	struct ib_pd *pd = reg->ipd->pd;
	struct ib_mr *drv;

	drv = ibmr_should_fail(IBMR_FAULT_DEVICE) ? ERR_PTR(-ENOMEM) :
		pd->device->ops.get_dma_mr(pd, ibmr_access_driver(reg->access));
	if (IS_ERR(drv))
		return IB_MR_WHY_NO_MEMORY;
	drv->device = pd->device;
	drv->pd = pd;
	drv->type = IB_MR_TYPE_DMA;
	drv->uobject = NULL;
	drv->need_inval = false;
	atomic_inc(&pd->usecnt);

	reg->drv = drv;
	reg->lkey = drv->lkey;
	/* Some drivers say one without the right to use it; it would be refused there. */
	reg->rkey = reg->access & IBMR_REMOTE_RIGHTS ? drv->rkey : 0;
	if (reg->access & IBMR_REMOTE_RIGHTS)
		pr_warn_once("%s: a DMA MR with remote rights lets a peer reach any address it names\n",
			     reg->ipd->dev->name);
	return IB_MR_WHY_OK;
}

/*
 * From the list that the core mapped, without another one being made of it. The ends are cut to the
 * memory meanwhile: the list is the region's own, and nobody else looks at it.
 */
static enum ib_mr_reason reg_map_mapped(struct ibmr_reg *reg, unsigned int shift)
{
	struct ibmr_mem *mem = reg->mem;
	struct sg_table *sgt = mem->mapped;
	struct scatterlist *first = sgt->sgl, *last = mem->end.last;
	int n;

	sg_dma_address(first) += mem->skip;
	sg_dma_len(first) -= mem->skip;
	sg_dma_len(last) -= mem->end.over;
	n = ib_map_mr_sg(reg->drv, first, sgt->nents, NULL, 1U << shift);
	sg_dma_len(last) += mem->end.over;
	sg_dma_len(first) += mem->skip;
	sg_dma_address(first) -= mem->skip;
	return n == sgt->nents && reg->drv->length == reg->length ? IB_MR_WHY_OK :
								     IB_MR_WHY_DEVICE_PAGES;
}

/* Give the runs to the driver's MR. */
static enum ib_mr_reason reg_map(struct ibmr_reg *reg, unsigned int shift)
{
	struct scatterlist one;
	struct sg_table sgt = { .sgl = &one };
	unsigned int nents;
	bool fits;
	int n;

	if (reg->mem->mapped)
		return reg_map_mapped(reg, shift);
	nents = ibmr_pagevec_sg_nents(&reg->mem->pv);
	if (nents == 1)
		sg_init_table(&one, 1);
	else if (ibmr_should_fail(IBMR_FAULT_ALLOC) || sg_alloc_table(&sgt, nents, GFP_KERNEL))
		return IB_MR_WHY_NO_MEMORY;
	ibmr_pagevec_to_sg(&reg->mem->pv, sgt.sgl);
	n = ib_map_mr_sg(reg->drv, sgt.sgl, nents, NULL, 1U << shift);
	fits = n == nents && reg->drv->length == reg->length;
	if (nents > 1)
		sg_free_table(&sgt);
	return fits ? IB_MR_WHY_OK : IB_MR_WHY_DEVICE_PAGES;
}

/* A fast-registration MR over reg->mem, made valid through the PD's registration queue pair. */
static enum ib_mr_reason reg_fast(struct ibmr_reg *reg)
{
	struct ib_device *ibdev = reg->ipd->dev->ibdev;
	struct ibmr_regop op = { .kind = IBMR_OP_REG };
	struct ib_mr *drv;
	enum ib_mr_reason why;
	unsigned int shift;
	u64 blocks;
	int err;

	why = ibmr_pagevec_block(&reg->mem->pv, reg->iova, ibmr_block_sizes(ibdev), &shift);
	if (why)
		return why;
	blocks = ibmr_pagevec_blocks(&reg->mem->pv, shift);
	if (blocks > ibmr_list_max(ibdev))
		return IB_MR_WHY_DEVICE_PAGES;
	/* A soft device says a limit that it does not have; a real one means it. */
	if (!ib_uses_virt_dma(ibdev) && blocks > ibdev->attrs.max_fast_reg_page_list_len)
		return IB_MR_WHY_DEVICE_PAGES;

	drv = ibmr_should_fail(IBMR_FAULT_DEVICE) ? ERR_PTR(-ENOMEM) :
		ibmr_alloc_mr(reg->ipd->pd, blocks);
	if (IS_ERR(drv))
		return blocks > ibdev->attrs.max_fast_reg_page_list_len ? IB_MR_WHY_DEVICE_PAGES :
									 IB_MR_WHY_NO_MEMORY;
	reg->drv = drv;
	why = reg_map(reg, shift);
	if (why)
		goto err;
	drv->iova = reg->iova;

	op.mr = drv;
	op.key = drv->lkey;
	op.access = ibmr_access_driver(reg->access);
	err = ibmr_regqp_exec(reg->ipd, &op, 1);
	if (err) {
		why = err == -EOPNOTSUPP ? IB_MR_WHY_NO_REGQP :
		      err == -ENOMEM ? IB_MR_WHY_NO_MEMORY : IB_MR_WHY_REGQP_FAILED;
		goto err;
	}
	reg->lkey = op.key;
	reg->rkey = reg->access & IBMR_REMOTE_RIGHTS ? op.key : 0;
	reg->blocks = blocks;
	atomic64_add(blocks, &reg->ipd->dev->blocks);
	return IB_MR_WHY_OK;

err:
	ib_dereg_mr_user(drv, NULL);
	reg->drv = NULL;
	return why;
}

/* User memory on a device without registration queue pair: the driver pins and registers it. */
static enum ib_mr_reason reg_user(struct ibmr_reg *reg)
{
	struct ibmr_dev *dev = reg->ipd->dev;
	struct ib_mr *drv;

	drv = ibmr_should_fail(IBMR_FAULT_DEVICE) ? ERR_PTR(-ENOMEM) :
		ib_reg_user_mr(reg->ipd->pd, reg->iova, reg->length, reg->iova,
			       ibmr_access_driver(reg->access));
	if (IS_ERR(drv))
		return ibmr_pin_refused(dev, PTR_ERR(drv), reg->iova, reg->length, reg->access);
	reg->drv = drv;
	reg->lkey = drv->lkey;
	reg->rkey = reg->access & IBMR_REMOTE_RIGHTS ? drv->rkey : 0;
	return IB_MR_WHY_OK;
}

/* What can be said before any memory is looked at. @first: address, or offset in a page, of it. */
enum ib_mr_reason ibmr_reg_allowed(struct ibmr_dev *dev, int access, u64 iova, u64 first,
				   u64 length)
{
	enum ib_mr_reason why = ibmr_access_check(dev->ibdev, access);

	if (!why)
		why = ibmr_access_range(iova, length);
	if (!why)
		why = ibmr_access_iova(access, iova, first);
	if (!why && length > dev->ibdev->attrs.max_mr_size)
		why = IB_MR_WHY_TOO_LONG;
	return why;
}

/**
 * ibmr_reg_create() - register memory with the driver
 * @ipd: PD
 * @mem: memory, or NULL for all of it; a reference is taken on success
 * @iova: address of its first byte
 * @access: rights
 * @why: why not
 *
 * The keys lead nowhere yet.
 *
 * Context: process, may sleep.
 * Return: the registration, or NULL and *@why.
 */
struct ibmr_reg *ibmr_reg_create(struct ibmr_pd *ipd, struct ibmr_mem *mem, u64 iova, int access,
				 enum ib_mr_reason *why)
{
	struct ibmr_reg *reg;

	if (mem) {
		*why = ibmr_reg_allowed(ipd->dev, access, iova, mem->pv.runs[0].addr,
					mem->pv.length);
		/* Re-registration may ask for more than the memory was pinned for. */
		if (!*why && mem->readonly && ib_access_writable(access))
			*why = IB_MR_WHY_NOT_MAPPED;
	} else {
		*why = ibmr_access_check(ipd->dev->ibdev, access);
		if (!*why && access & IB_ZERO_BASED)
			*why = IB_MR_WHY_WRONG_KIND;
	}
	if (*why)
		return NULL;

	reg = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kzalloc(sizeof(*reg), GFP_KERNEL);
	if (!reg) {
		*why = IB_MR_WHY_NO_MEMORY;
		return NULL;
	}
	reg->keyed.kind = IBMR_KEYED_REG;
	reg->ipd = ipd;
	reg->pd = ipd->pd;
	reg->pdn = ipd->pd->res.id;
	reg->mem = mem;
	reg->iova = iova;
	reg->length = mem ? mem->pv.length : U64_MAX;
	reg->access = access;
	refcount_set(&reg->users, 1);
	init_completion(&reg->idle);

	*why = !mem ? reg_dma(reg) : mem->by_driver ? reg_user(reg) : reg_fast(reg);
	if (*why) {
		kfree(reg);
		return NULL;
	}
	if (mem)
		refcount_inc(&mem->refs);
	return reg;
}

/* Let its key lead to @reg. Fails without memory only, and then changes nothing. */
int ibmr_reg_publish(struct ibmr_reg *reg)
{
	if (ibmr_should_fail(IBMR_FAULT_ALLOC))
		return -ENOMEM;
	reg->keyed.lkey = reg->mem && !reg->mem->by_driver ? reg->lkey : ~reg->lkey;
	return ibmr_key_add(reg->ipd->dev, reg->lkey, &reg->keyed);
}

/* Perhaps in a notifier: whatever the driver allocates, nothing is reclaimed for it. */
static int drv_dereg(struct ib_mr *drv)
{
	unsigned int reserves = memalloc_noreclaim_save();
	int err = ib_dereg_mr_user(drv, NULL);

	memalloc_noreclaim_restore(reserves);
	return err;
}

/*
 * The device lets go of it: its keys are dead, no packet uses the memory any more. On an error it
 * has not, and nothing is changed.
 */
int ibmr_reg_withdraw(struct ibmr_reg *reg)
{
	int err = ibmr_should_fail(IBMR_FAULT_DEVICE) ? -EIO : drv_dereg(reg->drv);

	if (!err)
		reg->drv = NULL;
	return err;
}

/*
 * Nobody finds it by its key any more. False when the device, which is asked now if it was not
 * before, keeps it: memory that it may still reach is nobody else's.
 */
static bool reg_revoke(struct ibmr_reg *reg)
{
	struct ibmr_dev *dev = reg->ipd->dev;

	ibmr_key_remove(dev, reg->lkey, &reg->keyed);
	atomic64_sub(reg->blocks, &dev->blocks);
	if (reg->drv && drv_dereg(reg->drv)) {
		pr_err("%s: the driver did not let go of an MR (key %#x); its memory is left to it\n",
		       dev->name, reg->lkey);
		return false;
	}
	ibmr_reg_put(reg);
	wait_for_completion(&reg->idle);
	return true;
}

static void reg_free(struct ibmr_reg *reg)
{
	ibmr_mem_put(reg->mem);
	kfree_rcu(reg, rcu);
}

void ibmr_reg_destroy(struct ibmr_reg *reg)
{
	if (reg_revoke(reg))
		reg_free(reg);
}

/* For who touches the memory: any context. */
bool ibmr_reg_get(struct ibmr_reg *reg)
{
	return refcount_inc_not_zero(&reg->users);
}

void ibmr_reg_put(struct ibmr_reg *reg)
{
	if (refcount_dec_and_test(&reg->users))
		complete(&reg->idle);
}

/*
 * No window is bound, none can be. A packet that was let in by a window may still be on its way:
 * what waits for those of the region's own keys does not know of it.
 */
void ibmr_region_fence(struct ibmr_region *region)
{
	if (!region->windowed)
		return;
	ibmr_windows_fence(region);
	region->windowed = false;
}

/*
 * What the owner sees. Under the region's lock, or before anyone else knows it. The owner reads it
 * without, and may be on another CPU than who re-registers: a key is the old one or the new one.
 */
void ibmr_region_show(struct ibmr_region *region)
{
	const struct ibmr_reg *reg = region->reg;
	struct ib_mr *mr = &region->mr;

	mr->device = reg->ipd->dev->ibdev;
	WRITE_ONCE(mr->pd, reg->ipd->pd);
	WRITE_ONCE(mr->lkey, reg->lkey);
	WRITE_ONCE(mr->rkey, reg->rkey);
	WRITE_ONCE(mr->iova, reg->iova);
	WRITE_ONCE(mr->length, reg->mem ? reg->length : 0);
	mr->page_size = reg->drv->page_size;
	mr->type = reg->drv->type;
}

/**
 * ibmr_region_create() - register memory and make the handle for it
 * @ipd: PD, entered
 * @mem: memory, or NULL for a DMA MR; the caller's reference is taken over, also on failure
 * @iova: address of the first byte
 * @access: rights
 * @call: name of the exported call, for the log
 *
 * Context: process, may sleep.
 * Return: the handle or an error.
 */
struct ib_mr *ibmr_region_create(struct ibmr_pd *ipd, struct ibmr_mem *mem, u64 iova, int access,
				 const char *call)
{
	struct ibmr_dev *dev = ipd->dev;
	struct ibmr_region *region;
	enum ib_mr_reason why;
	u64 length = mem ? mem->pv.length : 0, pinned = mem ? mem->pinned : 0;
	u64 first = mem ? mem->pv.runs[0].addr : 0;

	why = ibmr_limit_charge(ipd, pinned);
	if (why) {
		ibmr_mem_put(mem);
		goto refuse;
	}
	region = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kzalloc(sizeof(*region), GFP_KERNEL);
	if (!region) {
		ibmr_mem_put(mem);
		why = IB_MR_WHY_NO_MEMORY;
		goto uncharge;
	}
	refcount_set(&region->refs, 1);
	mutex_init(&region->change);
	mutex_init(&region->lock);
	INIT_LIST_HEAD(&region->entry);

	region->reg = ibmr_reg_create(ipd, mem, iova, access, &why);
	if (!region->reg) {
		ibmr_mem_put(mem);
		goto err_free;
	}
	ibmr_mem_put(mem);	/* the registration has its own */
	region->reg->region = region;
	region->ipd = ipd;
	region->dev = dev;
	refcount_inc(&dev->refs);
	ibmr_region_show(region);

	why = IB_MR_WHY_NO_MEMORY;
	if (ibmr_reg_publish(region->reg))
		goto err_reg;
	if (ibmr_handle_add(region))
		goto err_reg;

	mutex_lock(&dev->pd_lock);
	ipd->users++;
	mutex_unlock(&dev->pd_lock);
	spin_lock(&ipd->list_lock);
	list_add_tail(&region->entry, &ipd->regions);
	spin_unlock(&ipd->list_lock);
	trace_ib_mr_registered(dev->name, region->reg);
	return &region->mr;

err_reg:
	ibmr_reg_destroy(region->reg);
	ibmr_dev_put(dev);
err_free:
	kfree_rcu(region, rcu);		/* whoever guessed its key may have found it */
uncharge:
	ibmr_limit_uncharge(ipd, pinned);
refuse:
	return ERR_PTR(ibmr_refuse(dev, why,
				   "%s(iova %#llx, first byte at %#llx of its page, length %llu, access %#x)",
				   call, iova, first & ~PAGE_MASK, length, access));
}

/*
 * Find the region of a handle from the caller, enter its device, lock it. On success the state is
 * live or orphan. The counterpart is ibmr_region_unlock().
 */
struct ibmr_region *ibmr_region_lock(struct ib_mr *mr, enum ib_mr_reason *why)
{
	struct ibmr_region *region = ibmr_handle_find(mr);
	unsigned int noio;

	*why = IB_MR_WHY_FOREIGN_MR;
	if (!region)
		return NULL;
	noio = ibmr_dev_hold(region->dev);
	mutex_lock(&region->lock);
	if (region->state != IBMR_DEAD) {
		region->noio = noio;
		*why = IB_MR_WHY_OK;
		return region;
	}
	mutex_unlock(&region->lock);
	ibmr_dev_exit(region->dev, noio);
	ibmr_region_put(region);
	*why = IB_MR_WHY_DEREG_TWICE;
	return NULL;
}

void ibmr_region_unlock(struct ibmr_region *region)
{
	unsigned int noio = region->noio;

	mutex_unlock(&region->lock);
	ibmr_dev_exit(region->dev, noio);
	ibmr_region_put(region);
}

/* Take a live region out of its PD. Under its lock, or in removal. */
static void region_unlink(struct ibmr_region *region)
{
	spin_lock(&region->ipd->list_lock);
	list_del_init(&region->entry);
	spin_unlock(&region->ipd->list_lock);
	ibmr_limit_uncharge(region->ipd, ibmr_reg_pinned(region->reg));
}

/* The end of a live region's registration. Under its lock, or in removal. */
static void reg_deregister(struct ibmr_region *region)
{
	struct ibmr_reg *reg = region->reg;
	bool gone;

	gone = reg_revoke(reg);
	trace_ib_mr_deregistered(region->dev->name, reg);
	WRITE_ONCE(region->reg, NULL);
	if (gone)
		reg_free(reg);
}

/**
 * ib_mr_dereg() - deregister a region
 * @mr: handle from here, or an MR of the core's, which is handed on to it
 *
 * ib_dereg_mr() is a macro for this. When it returns 0 the device cannot touch the memory any
 * more, packets under way included; keys are dead, and the memory is the owner's again. A region
 * with bound windows is refused (IBA 10.6.7.2.6). A handle whose device is gone is released.
 *
 * Context: process, may sleep; waits for packets under way. Also in an MMU notifier that may sleep,
 * for a region to which no window was bound: it takes no memory and waits for no invalidation. (It
 * may not be called from where the region's own registration is waited for.)
 * Return: 0; -EBUSY with windows bound; -EINVAL when it was deregistered before; -EIO when the
 * driver did not let go of it; nothing is changed then.
 */
int ib_mr_dereg(struct ib_mr *mr)
{
	struct ibmr_region *region;
	struct ibmr_provision *provision;
	enum ib_mr_reason why;
	struct ibmr_pd *ipd;

	might_sleep();
	if (IS_ERR_OR_NULL(mr))
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	region = ibmr_region_lock(mr, &why);
	if (!region)
		return why == IB_MR_WHY_FOREIGN_MR ? ib_dereg_mr_user(mr, NULL) :
						     ibmr_refuse(NULL, why, "%s", __func__);
	if (region->state == IBMR_LIVE) {
		if (!region->changing && atomic_cmpxchg(&region->windows, 0, IBMR_NO_WINDOWS)) {
			int err = ibmr_refuse(region->dev, IB_MR_WHY_WINDOWS_BOUND, "%s", __func__);

			ibmr_region_unlock(region);
			return err;
		}
		ibmr_region_fence(region);
		if (ibmr_reg_withdraw(region->reg)) {
			int err = ibmr_refuse(region->dev, IB_MR_WHY_DEREG_FAILED, "%s", __func__);

			if (!region->changing)
				atomic_set_release(&region->windows, 0);
			ibmr_region_unlock(region);
			return err;
		}
		region_unlink(region);
		reg_deregister(region);
	}
	WRITE_ONCE(region->state, IBMR_DEAD);
	region->died = ktime_get();
	ipd = region->ipd;
	region->ipd = NULL;
	provision = ibmr_region_take_provision(region);
	ibmr_handle_bury(region);
	ibmr_pd_put(ipd);
	ibmr_region_unlock(region);
	ibmr_window_unprovision(provision);
	return 0;
}
EXPORT_SYMBOL(ib_mr_dereg);

/* The device goes: every region of the PD loses its registration, and keeps its handle. */
void ibmr_regions_orphan(struct ibmr_pd *ipd)
{
	struct ibmr_region *region, *next;

	list_for_each_entry_safe(region, next, &ipd->regions, entry) {
		atomic_set(&region->windows, IBMR_NO_WINDOWS);
		region_unlink(region);
		reg_deregister(region);
		WRITE_ONCE(region->state, IBMR_ORPHAN);
	}
}

/* Alone on the device (its gate is shut). */
bool ibmr_regions_agree(struct ibmr_dev *dev)
{
	struct ibmr_region *region;
	struct ibmr_pd *ipd;
	u64 blocks = 0, pinned = 0;
	int bkt, n = 0;

	hash_for_each(dev->pds, bkt, ipd, node) {
		unsigned int users = ipd->holds;
		u64 pd_pinned = 0;
		int pd_regions = 0;

		list_for_each_entry(region, &ipd->regions, entry) {
			struct ibmr_reg *reg = region->reg;
			bool found;

			pd_regions++;
			users++;
			blocks += reg->blocks;
			pd_pinned += ibmr_reg_pinned(reg);
			rcu_read_lock();
			found = ibmr_key_find(dev, reg->lkey) == &reg->keyed;
			rcu_read_unlock();
			if (!found)
				return false;
		}
		if (users > ipd->users || pd_regions != atomic_read(&ipd->nr_regions) ||
		    pd_pinned != atomic64_read(&ipd->pinned))
			return false;
		n += pd_regions;
		pinned += pd_pinned;
	}
	return n == atomic_read(&dev->regions) && blocks == atomic64_read(&dev->blocks) &&
	       pinned == atomic64_read(&dev->pinned);
}
