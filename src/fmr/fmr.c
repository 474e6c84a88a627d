// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fast memory regions on their own.
 *
 * An FMR is a place for one armed MR at a time, drawn from the magazine of its rights and size.
 * Mapping takes a fresh MR, so there is a new key each time, and the old mapping stands until the
 * new one is complete: when anything is refused the old one still works. Unmapping is a fence,
 * which RDS and the NFS client rely on (they give the pages away right after): it exchanges the
 * MRs for new ones, and the driver's deregistration waits for packets that were let in before.
 *
 * The rules for arguments are mthca's, the driver that the consumers were written against. Access
 * flags of FMRs were never checked: remote write without local write is fine, and what means
 * nothing here (MW_BIND, ZERO_BASED, hints) is taken and does nothing.
 *
 * Pages larger than PAGE_SIZE are one block each where the driver takes such blocks live; where it
 * keeps pages, each is as many blocks as it has pages.
 *
 * Calls on one FMR may come from several CPUs; the magazine's lock orders them.
 */

#include <linux/slab.h>

#include "base/compat.h"
#include "base/fault.h"
#include "dma/dma.h"
#include "fmr/fmr.h"
#include "mr/access.h"

/* Maps without an unmap between: what Sinai promised, and as many as a key has variants. */
#define FMR_MAX_MAPS	32767

/* What says nothing of an FMR was taken by classic drivers all the same. */
#define FMR_MEANINGLESS	(IB_ACCESS_MW_BIND | IB_ZERO_BASED | IB_ACCESS_ON_DEMAND | \
			 IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL)

struct ibmr_fmr {
	struct ib_fmr fmr;
	struct ibmr_mag *mag;
	struct ibmr_armed *armed;	/* mapped; under mag->lock, as are the next two */
	int maps;
	bool remapped;			/* mapped over a mapping, since the last unmap */
	int max_pages;
	int max_maps;
	u8 page_shift;
	struct ibmr_pd *ipd;
};

static struct ibmr_fmr *to_fmr(struct ib_fmr *fmr)
{
	return container_of(fmr, struct ibmr_fmr, fmr);
}

struct ibmr_mag *ibmr_fmr_mag(struct ib_fmr *fmr)
{
	return to_fmr(fmr)->mag;
}
IBMR_EXPORT_INTERNAL(ibmr_fmr_mag);

/* What an FMR or a pool may be asked for. */
enum ib_mr_reason ibmr_fmr_args(int max_pages, int page_shift, int access)
{
	if (max_pages < 1 || max_pages > IBMR_FMR_MAX_PAGES || page_shift < PAGE_SHIFT ||
	    page_shift > 30)
		return IB_MR_WHY_FMR_ARGS;
	if (access & ~(IBMR_RIGHTS | FMR_MEANINGLESS))
		return IB_MR_WHY_BAD_ACCESS;
	return IB_MR_WHY_OK;
}

/**
 * ib_alloc_fmr() - make a fast memory region
 * @pd: kernel PD
 * @mr_access_flags: rights of every mapping; not checked against each other
 * @fmr_attr: sizes
 *
 * The first FMR on a device tests whether the device can have them.
 *
 * Context: process, may sleep.
 * Return: the FMR, to be given to ib_dealloc_fmr(); ERR_PTR(-ENOSYS) on a device that cannot,
 * -EINVAL for attributes, -EPERM for a user's PD, -ENODEV, -ENOMEM, -EIO when the test could not
 * be made.
 */
struct ib_fmr *ib_alloc_fmr(struct ib_pd *pd, int mr_access_flags, struct ib_fmr_attr *fmr_attr)
{
	struct ibmr_mag *mag = NULL;
	enum ib_mr_reason why;
	struct ibmr_fmr *fmr;
	struct ibmr_pd *ipd;
	unsigned int noio;
	int err;

	might_sleep();
	ipd = ibmr_enter(pd, __func__, &noio);
	if (IS_ERR(ipd))
		return ERR_CAST(ipd);

	why = IB_MR_WHY_NULL_ARG;
	if (!fmr_attr)
		goto refuse;
	why = ibmr_fmr_args(fmr_attr->max_pages, fmr_attr->page_shift, mr_access_flags);
	if (!why && (fmr_attr->max_maps < 1 || fmr_attr->max_maps > FMR_MAX_MAPS))
		why = IB_MR_WHY_FMR_ARGS;
	if (!why && (u64)fmr_attr->max_pages << (fmr_attr->page_shift - PAGE_SHIFT) > U16_MAX + 1)
		why = IB_MR_WHY_FMR_ARGS;
	if (!why)
		why = ibmr_mag_qualify(ipd->dev);
	if (why)
		goto refuse;

	why = IB_MR_WHY_NO_MEMORY;
	fmr = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kzalloc(sizeof(*fmr), GFP_KERNEL);
	if (!fmr)
		goto refuse;
	mag = ibmr_mag_get_shared(ipd->dev, ibmr_access_driver(mr_access_flags),
				  ibmr_fmr_blocks(fmr_attr->max_pages, fmr_attr->page_shift), 0);
	if (!mag || ibmr_mag_promise(mag, 1)) {
		kfree(fmr);
		goto refuse;
	}
	fmr->fmr.device = pd->device;
	fmr->fmr.pd = pd;
	INIT_LIST_HEAD(&fmr->fmr.list);
	fmr->mag = mag;
	fmr->max_pages = fmr_attr->max_pages;
	fmr->max_maps = fmr_attr->max_maps;
	fmr->page_shift = fmr_attr->page_shift;
	fmr->ipd = ipd;		/* with the user that ibmr_enter() counted */
	ibmr_dev_exit(ipd->dev, noio);
	return &fmr->fmr;

refuse:
	if (fmr_attr)
		err = ibmr_refuse(ipd->dev, why,
				  "%s(access %#x, max_pages %d of 1 to %d, max_maps %d of 1 to %d, page_shift %d of %d to 30, at most %u KiB in all)",
				  __func__, mr_access_flags, fmr_attr->max_pages,
				  IBMR_FMR_MAX_PAGES, fmr_attr->max_maps, FMR_MAX_MAPS,
				  fmr_attr->page_shift, PAGE_SHIFT,
				  IBMR_FMR_MAX_KIB);
	else
		err = ibmr_refuse(ipd->dev, why, "%s(fmr_attr NULL)", __func__);
	ibmr_exit(ipd, noio);
	if (mag)
		ibmr_mag_put_shared(mag);
	return ERR_PTR(err);
}
EXPORT_SYMBOL(ib_alloc_fmr);

static enum ib_mr_reason fmr_map(struct ibmr_fmr *fmr, const u64 *page_list, int list_len, u64 iova)
{
	struct ibmr_mag *mag = fmr->mag;
	struct ibmr_armed *a = NULL;
	enum ib_mr_reason why;
	unsigned long flags;

	ibmr_live_begin(&flags);
	spin_lock(&mag->lock);
	if (mag->gone)
		why = IB_MR_WHY_NO_DEVICE;
	else if (fmr->maps >= fmr->max_maps)
		why = IB_MR_WHY_MAX_MAPS;
	else
		why = (a = ibmr_mag_take(mag)) ? IB_MR_WHY_OK : IB_MR_WHY_POOL_EMPTY;
	spin_unlock(&mag->lock);
	if (why)
		goto out;

	if (unlikely(!ibmr_fmr_live_map(a->drv, page_list, list_len, iova, fmr->page_shift)))
		why = ibmr_fmr_why();

	spin_lock(&mag->lock);
	/* Another CPU may have mapped it meanwhile. */
	if (unlikely(!why && fmr->maps >= fmr->max_maps))
		why = IB_MR_WHY_MAX_MAPS;
	if (unlikely(why)) {
		ibmr_mag_untake(mag, a);
		spin_unlock(&mag->lock);
		goto out;
	}
	if (fmr->armed) {
		ibmr_mag_retire(mag, fmr->armed);
		fmr->remapped = true;
	}
	fmr->armed = a;
	fmr->maps++;
	/* The owner reads them without the lock, perhaps on another CPU. */
	WRITE_ONCE(fmr->fmr.lkey, a->key);
	WRITE_ONCE(fmr->fmr.rkey, a->key);
	ibmr_publish(a->drv, fmr->fmr.pd);
	if (tracepoint_enabled(ib_mr_mapped))
		ibmr_trace_mapped(a->drv, mag, a->key);
	spin_unlock(&mag->lock);
out:
	ibmr_live_end(flags);
	return why;
}

/**
 * ib_map_phys_fmr() - map an FMR to pages
 * @fmr: FMR
 * @page_list: DMA addresses of pages of the FMR's page size; the offset in a page is ignored
 * @list_len: entries
 * @iova: address of the first byte, a multiple of the page size; need not be unique
 *
 * The new keys are in @fmr, and valid, when the call returns; those of the mapping before are dead
 * then, whether or not it was unmapped. A refused call leaves it as it was.
 *
 * Context: any, interrupts off included; does not sleep or allocate.
 * Return: 0; -EINVAL for arguments, an address outside the linear map among them, or when @fmr was
 * mapped max_maps times since its last unmap;
 * -EAGAIN when no armed MR is left at this moment; -ENODEV.
 */
int ib_map_phys_fmr(struct ib_fmr *fmr, u64 *page_list, int list_len, u64 iova)
{
	struct ibmr_fmr *f = to_fmr(fmr);
	enum ib_mr_reason why;

	if (IS_ERR_OR_NULL(fmr) || !page_list)
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	if (list_len < 1 || list_len > f->max_pages)
		why = IB_MR_WHY_FMR_ARGS;
	else if (iova & ((1ULL << f->page_shift) - 1))
		why = IB_MR_WHY_IOVA_ALIGN;
	else if (READ_ONCE(ibmr_fail_map) && ibmr_map_fails())
		why = IB_MR_WHY_POOL_EMPTY;
	else
		why = ibmr_access_range(iova, (u64)list_len << f->page_shift);
	if (!why) {
		ibmr_dma_used_pages(f->mag->dev->ibdev, page_list, list_len, f->page_shift);
		why = fmr_map(f, page_list, list_len, iova);
	}
	if (unlikely(why))
		return ibmr_refuse(f->mag->dev, why,
				   "%s(%d pages of %d, %u bytes each, iova %#llx)",
				   __func__, list_len, f->max_pages, 1U << f->page_shift, iova);
	return 0;
}
EXPORT_SYMBOL(ib_map_phys_fmr);

/**
 * ib_unmap_fmr() - unmap FMRs, all those of a list
 * @fmr_list: linked by ib_fmr.list, all of one device; may be empty
 *
 * A fence: when it returns the device cannot touch the pages any more, not even in the middle of a
 * message; that goes for the pages of mappings that were mapped over as well. FMRs that are not
 * mapped are passed over. The list is left as it is. There is an armed MR in stock for each FMR
 * afterwards, memory permitting.
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL when the FMRs are not of one device, with none of them unmapped.
 */
int ib_unmap_fmr(struct list_head *fmr_list)
{
	struct ibmr_stack withdrawn = {};
	struct ibmr_dev *dev = NULL;
	struct ib_fmr *fmr, *next;
	struct ibmr_mag *mag;
	unsigned int noio;
	bool older = false;

	might_sleep();
	if (!fmr_list)
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	list_for_each_entry(fmr, fmr_list, list) {
		if (!dev)
			dev = to_fmr(fmr)->mag->dev;
		if (to_fmr(fmr)->mag->dev != dev)
			return ibmr_refuse(dev, IB_MR_WHY_OTHER_DEVICE, "%s", __func__);
	}
	if (!dev)
		return 0;

	noio = ibmr_dev_hold(dev);
	list_for_each_entry(fmr, fmr_list, list) {
		struct ibmr_fmr *f = to_fmr(fmr);

		mag = f->mag;
		spin_lock_irq(&mag->lock);
		if (f->armed)
			ibmr_mag_retire_to(mag, f->armed, &withdrawn);
		f->armed = NULL;
		f->maps = 0;
		older |= f->remapped;
		f->remapped = false;
		spin_unlock_irq(&mag->lock);

		/* Neighbours mostly share a magazine, and then one fence. */
		next = list_next_entry(fmr, list);
		if (!list_entry_is_head(next, fmr_list, list) && to_fmr(next)->mag == mag)
			continue;
		ibmr_mag_fence(mag, &withdrawn);
		/* They were retired when they were mapped over, so their MRs may be anywhere. */
		if (older)
			ibmr_mag_flush(mag);
		older = false;
	}
	ibmr_dev_exit(dev, noio);
	return 0;
}
EXPORT_SYMBOL(ib_unmap_fmr);

/**
 * ib_dealloc_fmr() - free an FMR
 * @fmr: FMR, not mapped
 *
 * Context: process, may sleep.
 * Return: 0; -EBUSY while it is mapped, with nothing changed; -EINVAL for what ib_alloc_fmr()
 * failed with.
 */
int ib_dealloc_fmr(struct ib_fmr *fmr)
{
	struct ibmr_fmr *f = to_fmr(fmr);
	struct ibmr_mag *mag;
	unsigned int noio;
	bool mapped;

	might_sleep();
	if (IS_ERR_OR_NULL(fmr))
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	mag = f->mag;
	spin_lock_irq(&mag->lock);
	mapped = f->armed && f->armed->drv;
	if (f->armed && !mapped)
		ibmr_mag_retire(mag, f->armed);
	spin_unlock_irq(&mag->lock);
	if (mapped)
		return ibmr_refuse(mag->dev, IB_MR_WHY_FMR_MAPPED, "%s", __func__);

	noio = ibmr_dev_hold(mag->dev);
	ibmr_pd_put(f->ipd);
	ibmr_dev_exit(mag->dev, noio);
	ibmr_mag_unpromise(mag, 1);
	ibmr_mag_put_shared(mag);
	kfree(f);
	return 0;
}
EXPORT_SYMBOL(ib_dealloc_fmr);

/**
 * ib_mr_max_fmr() - how many FMRs, or windows, a device may have
 * @device: device
 *
 * What the classic struct ib_device_attr called max_fmr. The first call tests whether the device
 * can have any, by RDMA.
 *
 * Context: process, may sleep.
 * Return: the number; 0 when it cannot, or when that could not be tested now.
 */
int ib_mr_max_fmr(struct ib_device *device)
{
	struct ibmr_dev *dev;
	unsigned int noio;
	int max = 0;

	might_sleep();
	dev = ibmr_dev_get(device);
	if (!dev)
		return 0;
	if (ibmr_dev_enter(dev, &noio)) {
		/* Each is a driver MR, and half as many again wait to be used. */
		if (!ibmr_mag_qualify(dev))
			max = device->attrs.max_mr / 2;
		ibmr_dev_exit(dev, noio);
	}
	ibmr_dev_put(dev);
	return max;
}
EXPORT_SYMBOL(ib_mr_max_fmr);
