// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * User memory: pinned, accounted, and watched.
 *
 * The kernel's own ib_umem_get() pins, accounts the pages against RLIMIT_MEMLOCK and maps them for
 * the device; what it made becomes a page vector like any other memory, with neighbouring pages
 * merged, so a huge page is one run. From there on a user's region is a region (region.c).
 *
 * Rights come first: the mappings are walked before anything is pinned, and each must give what the
 * device is to do. 6.1 pins memory that is only read with FOLL_FORCE, so it would pin a mapping
 * that its owner cannot read; we do not.
 *
 * The owner may unmap the memory, or die, while the device still has it. The pages stay pinned, so
 * nothing is harmed, but what a peer writes is seen by nobody. A notifier, placed before the pages
 * are pinned so that no unmapping is missed, marks the memory stale. A process that exits is no
 * mistake: files are closed after its memory went, and that is where a ULP deregisters. The
 * notifier cannot tell mremap() from an unmapping, after which the owner sees the pages at another
 * address; nor MADV_DONTNEED from harmless events: the addresses stay mapped, to other pages.
 *
 * Locks. The memory is looked at and pinned before the device is entered, so mmap_lock and page
 * faults come before everything of ours. The end may be in a notifier of the ULP's own, as caches
 * of registrations have them: whoever unmaps waits for it, perhaps with mmap_lock and the lock of a
 * page. So letting go waits for neither. Our notifier, whose removal waits until no invalidation is
 * under way, goes later, in a worker; so do the pages if one of them, which has to be marked as
 * written to, is locked now.
 *
 * A device without registration queue pair (iWARP) is given user memory by its driver's own call,
 * which pins it; the pages are then known to the driver only, and what needs them is refused.
 *
 * fork() does not part the owner from the device: pages pinned for long are copied for the child.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/dma-mapping.h>
#include <linux/fs.h>
#include <linux/hugetlb_inline.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/ratelimit.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/fault.h"
#include "base/late.h"
#include "mr/access.h"
#include "mr/handle.h"
#include "mr/pin.h"
#include "mr/region.h"

#include <trace/events/ib_mr.h>

/* Must not sleep when the range says so; it never does. */
static bool umem_invalidate(struct mmu_interval_notifier *watch,
			    const struct mmu_notifier_range *range, unsigned long seq)
{
	struct ibmr_umem *um = container_of(watch, struct ibmr_umem, watch);
	bool died = range->event == MMU_NOTIFY_RELEASE;

	if (range->event != MMU_NOTIFY_UNMAP && !died)
		return true;
	/* Two threads may unmap parts of it at one time; the first is told of, once. */
	if (atomic_xchg(&um->told, 1))
		return true;
	um->stale_at = ktime_get();
	smp_store_release(&um->mem.stale, true);	/* after @stale_at, for explain */
	atomic64_inc(&um->dev->went_stale);
	trace_ib_mr_stale(um->dev->name, um->comm, um->owner, um->start, um->length, died);
	if (!died)
		pr_warn_ratelimited("%s: process %s (%d) unmapped or moved registered memory (%zu bytes at %#lx): deregister before you free\n",
				    um->dev->name, um->comm, um->owner, um->length, um->start);
	return true;
}

static const struct mmu_interval_notifier_ops umem_watch_ops = {
	.invalidate = umem_invalidate,
};

/*
 * The pages were written to by the device: they are marked, so that giving them back need not do
 * it, for which the kernel locks each. False when one is locked by somebody else.
 */
static bool umem_mark_written(struct ib_umem *umem)
{
	struct sg_table *sgt = &umem->sgt_append.sgt;
	struct scatterlist *sg;
	unsigned int i, n;

	if (!umem->writable)
		return true;
	/* What is still in a bounce buffer has to be there before the mark. */
	if (!ib_uses_virt_dma(umem->ibdev))
		dma_sync_sgtable_for_cpu(umem->ibdev->dma_device, sgt, DMA_BIDIRECTIONAL);
	for_each_sgtable_sg(sgt, sg, i) {
		for (n = 0; n < PFN_UP(sg->offset + sg->length); n++) {
			struct folio *folio = page_folio(sg_page(sg) + n);

			if (folio_test_dirty(folio))
				continue;
			if (!folio_trylock(folio))
				return false;
			folio_mark_dirty(folio);
			folio_unlock(folio);
		}
	}
	umem->writable = 0;
	return true;
}

static void umem_late(struct work_struct *work)
{
	struct ibmr_umem *um = container_of(work, struct ibmr_umem, work);
	struct ibmr_dev *dev = um->dev;

	if (um->umem)
		ib_umem_release(um->umem);
	mmu_interval_notifier_remove(&um->watch);
	ibmr_mem_free(&um->mem);
	ibmr_dev_put(dev);
}

/* The device cannot reach it any more. Perhaps in a notifier, see above. */
static void umem_release(struct ibmr_mem *mem)
{
	struct ibmr_umem *um = container_of(mem, struct ibmr_umem, mem);

	atomic_set(&um->told, 1);	/* what happens to it now is nobody's mistake */
	if (um->umem && umem_mark_written(um->umem)) {
		ib_umem_release(um->umem);
		um->umem = NULL;
	}
	atomic64_sub(mem->pinned, &um->dev->pinned);
	INIT_WORK(&um->work, umem_late);
	queue_work(ibmr_late_wq, &um->work);
}

/* NULL when it is memory of another kind. */
const struct ibmr_umem *ibmr_mem_user(const struct ibmr_mem *mem)
{
	return mem && mem->release == umem_release ? container_of(mem, struct ibmr_umem, mem) :
						     NULL;
}

static u64 pages_of(unsigned long start, size_t length)
{
	return ((start + length - 1) >> PAGE_SHIFT) - (start >> PAGE_SHIFT) + 1;
}

/* Why might the kernel not pin [@at, @last] of a mapping that gives the right? */
static enum ib_mr_reason mapping_unpinnable(struct vm_area_struct *vma, unsigned long at,
					    unsigned long last)
{
	u64 end;

	if (vma->vm_flags & (VM_IO | VM_PFNMAP))
		return IB_MR_WHY_NOT_PINNABLE;
	if (!vma->vm_file)
		return IB_MR_WHY_OK;
	end = (u64)(min(last, vma->vm_end - 1) - vma->vm_start) +
	      ((u64)vma->vm_pgoff << PAGE_SHIFT);
	if (!is_vm_hugetlb_page(vma) &&
	    end >= PAGE_ALIGN(i_size_read(file_inode(vma->vm_file))))
		return IB_MR_WHY_NOT_MAPPED;
	/* Of a file that is not open for writing the kernel keeps this one of the two marks. */
	if ((vma->vm_flags & (VM_MAYSHARE | VM_WRITE)) == VM_MAYSHARE)
		return IB_MR_WHY_SHARED_READONLY;
	return IB_MR_WHY_NOT_PINNABLE;
}

/*
 * Does every mapping in [@start, @start + @length) give what the device is to do? @failed: the
 * kernel did not pin it, and it is asked what may have been in the way.
 */
static enum ib_mr_reason mappings_allow(struct mm_struct *mm, unsigned long start, size_t length,
					int access, bool failed)
{
	unsigned long need = 0, at = start, last = start + length - 1;
	enum ib_mr_reason why = IB_MR_WHY_OK;

	if (ib_access_writable(access))
		need |= VM_WRITE;
	if (!need || access & IB_ACCESS_REMOTE_READ)
		need |= VM_READ;

	mmap_read_lock(mm);
	for (;;) {
		struct vm_area_struct *vma = find_vma(mm, at);

		if (!vma || vma->vm_start > at || (vma->vm_flags & need) != need)
			why = IB_MR_WHY_NOT_MAPPED;
		else if (failed)
			why = mapping_unpinnable(vma, at, last);
		if (why || last < vma->vm_end)
			break;
		at = vma->vm_end;
	}
	mmap_read_unlock(mm);
	return why;
}

/*
 * Why did the kernel not pin? Its errno alone does not tell a limit from lack of memory, nor what
 * is not there from what it does not want to pin.
 */
enum ib_mr_reason ibmr_pin_refused(struct ibmr_dev *dev, int err, unsigned long start,
				   size_t length, int access)
{
	u64 pages = pages_of(start, length);
	enum ib_mr_reason why;
	unsigned long limit = rlimit(RLIMIT_MEMLOCK) >> PAGE_SHIFT;
	u64 pinned = atomic64_read(&current->mm->pinned_vm);

	switch (err) {
	case -ENOMEM:
		if (pinned + pages <= limit || capable(CAP_IPC_LOCK))
			return IB_MR_WHY_NO_MEMORY;
		fallthrough;
	case -EPERM:
		pr_warn_once("%s: RLIMIT_MEMLOCK lets process %s (%d) pin %lu KiB, and it needs %llu KiB (%llu KiB of them pinned before); raise it (ulimit -l) or grant CAP_IPC_LOCK\n",
			     dev->name, current->comm, task_tgid_nr(current),
			     limit << (PAGE_SHIFT - 10), (pinned + pages) << (PAGE_SHIFT - 10),
			     pinned << (PAGE_SHIFT - 10));
		return IB_MR_WHY_MEMLOCK;
	case -EINVAL:
		return IB_MR_WHY_TOO_LONG;
	case -EOPNOTSUPP:
		return IB_MR_WHY_NOT_PINNABLE;
	default:
		why = mappings_allow(current->mm, start, length, access, true);
		return why ?: IB_MR_WHY_NOT_MAPPED;
	}
}

/*
 * The runs of what was pinned. Sg entries begin at pages; the memory may begin inside one. Pages
 * that can be pinned for long are pages of the linear map (not secretmem, not a device's own), so a
 * soft device that addresses them as the CPU does finds them.
 */
static enum ib_mr_reason umem_runs(struct ibmr_umem *um)
{
	struct sg_table *sgt = &um->umem->sgt_append.sgt;
	struct ibmr_sg_list list = {
		.sgl = sgt->sgl, .nr = sgt->nents, .skip = offset_in_page(um->start),
		.length = um->length, .end = &um->mem.end,
	};
	enum ib_mr_reason why = ibmr_pagevec_build_sg(&um->mem.pv, &list);

	if (!why && !um->mem.end.last)
		why = IB_MR_WHY_NOT_MAPPED;	/* an entry too many, or too few */
	um->mem.mapped = sgt;
	um->mem.skip = list.skip;
	return why;
}

/* Left to the driver, when it is registered. */
static void umem_by_driver(struct ibmr_umem *um)
{
	struct ibmr_pagevec *pv = &um->mem.pv;

	um->mem.by_driver = true;
	pv->one.addr = um->start;
	pv->runs = &pv->one;
	pv->nr = 1;
	pv->length = um->length;
}

/* The device is not entered: @ipd keeps its memory, and the caller's PD the device. */
static struct ibmr_mem *mem_user(struct ibmr_pd *ipd, unsigned long start, size_t length,
				 int access, enum ib_mr_reason *why)
{
	struct ib_device *ibdev = ipd->pd->device;
	u64 pages = pages_of(start, length);
	struct ibmr_dev *dev = ipd->dev;
	struct ibmr_umem *um;
	struct ib_umem *umem;
	struct ibmr_mem *mem;
	int err;

	*why = ibmr_limit_pages(ipd, pages);
	if (!*why)
		*why = mappings_allow(current->mm, start, length, access, false);
	if (*why)
		return NULL;

	*why = IB_MR_WHY_NO_MEMORY;
	mem = ibmr_mem_alloc(sizeof(*um));
	if (!mem)
		return NULL;
	um = container_of(mem, struct ibmr_umem, mem);
	um->dev = dev;
	um->start = start;
	um->length = length;
	um->owner = task_tgid_nr(current);
	get_task_comm(um->comm, current);
	mem->readonly = !ib_access_writable(access);
	err = ibmr_should_fail(IBMR_FAULT_ALLOC) ? -ENOMEM :
		mmu_interval_notifier_insert(&um->watch, current->mm, start, length,
					     &umem_watch_ops);
	if (err)
		goto err;
	mem->release = umem_release;	/* from here on it has something to undo */
	refcount_inc(&dev->refs);

	if (ibmr_should_fail(IBMR_FAULT_DEVICE)) {
		umem = ERR_PTR(-ENOMEM);
	} else if (ibmr_has_regqp(ibdev)) {
		umem = ibmr_umem_get(ibdev, start, length,
				     access & ~(IB_ACCESS_HUGETLB | IB_ACCESS_ON_DEMAND));
	} else {
		umem_by_driver(um);
		umem = NULL;
	}
	if (IS_ERR(umem)) {
		*why = ibmr_pin_refused(dev, PTR_ERR(umem), start, length, access);
		goto err;
	}
	um->umem = umem;
	mem->pinned = pages;
	atomic64_add(pages, &dev->pinned);
	*why = umem ? umem_runs(um) : IB_MR_WHY_OK;
	if (*why)
		goto err;
	return mem;
err:
	ibmr_mem_put(mem);
	return NULL;
}

/**
 * ib_mr_reg_user() - register memory of the calling process
 * @pd: kernel PD
 * @start: user address of the first byte, at any offset in a page
 * @length: bytes, at least 1
 * @access: rights
 * @iova: address the first byte is to have, congruent to @start modulo the page size; NULL for
 *        @start itself (0 for a zero-based region)
 *
 * Anonymous, shared, file-backed, hugetlb and THP memory are taken as far as the kernel pins them
 * for long. Each mapping must be readable for local use and remote read, and writable where
 * @access lets anyone write. The pages are pinned and accounted against RLIMIT_MEMLOCK until
 * ib_dereg_mr(), which any process or thread may call, also after the owner has died. The region is
 * the caller's; the memory stays its process's, which sees at once what a peer writes, also after a
 * fork(). Memory that is unmapped while it is registered makes the region stale
 * (ib_mr_is_stale()). IB_ACCESS_ON_DEMAND, on a device that has it, is taken for a hint: the
 * memory is pinned. On iWARP the driver registers it: @iova must be @start, and the region can be
 * neither translated nor re-registered.
 *
 * Context: process, may sleep; takes the mmap lock of current->mm and may fault its pages in, so
 * not with that lock held, nor in an MMU notifier or a page fault. It is the one call of which that
 * is true.
 * Return: the handle, to be given to ib_dereg_mr(); ERR_PTR(-EINVAL) for arguments and in a thread
 * without an address space; -EFAULT where memory is not mapped, does not give the right, or
 * is there and not pinned by the kernel for long (its reason tells which);
 * -ENOMEM at RLIMIT_MEMLOCK (the log says so once), at the device's max_mr, at the module
 * parameters max_regions_per_pd and max_pinned_per_pd, past what the driver can hold, or without
 * memory; -EPERM for a user's PD; -ENODEV; -EOPNOTSUPP and -EIO as ib_reg_phys_mr().
 * ib_mr_refusals() tells which.
 */
struct ib_mr *ib_mr_reg_user(struct ib_pd *pd, unsigned long start, size_t length, int access,
			     const u64 *iova)
{
	u64 addr = iova ? *iova : access & IB_ZERO_BASED ? 0 : start;
	struct ibmr_mem *mem = NULL;
	enum ib_mr_reason why;
	struct ibmr_dev *dev;
	struct ibmr_pd *ipd;
	unsigned int noio;
	struct ib_mr *mr;

	might_sleep();
	if (current->mm)
		might_lock_read(&current->mm->mmap_lock);
	ipd = ibmr_enter(pd, __func__, &noio);
	if (IS_ERR(ipd))
		return ERR_CAST(ipd);
	dev = ipd->dev;

	if (!current->mm)
		why = IB_MR_WHY_NO_MM;
	else if (!length)
		why = IB_MR_WHY_EMPTY;
	else if (length - 1 > ULONG_MAX - start)
		why = IB_MR_WHY_WRAP;
	else
		why = ibmr_reg_allowed(dev, access, addr, start, length);
	/* siw takes the user's address, whatever it is told. */
	if (!why && addr != start && !ibmr_has_regqp(dev->ibdev))
		why = IB_MR_WHY_NO_REGQP;

	/* The PD's state stays; the device may go meanwhile, which is asked again after. */
	ibmr_dev_exit(dev, noio);
	if (!why)
		mem = mem_user(ipd, start, length, access, &why);
	noio = ibmr_dev_hold(dev);
	if (mem && (dev->leaving || dev->gone)) {
		ibmr_mem_put(mem);
		mem = NULL;
		why = IB_MR_WHY_NO_DEVICE;
	}
	if (mem)
		mr = ibmr_region_create(ipd, mem, addr, access, __func__);
	else
		mr = ERR_PTR(ibmr_refuse(dev, why, "%s(%#lx, %zu bytes, iova %#llx, access %#x)",
					 __func__, start, length, addr, access));
	ibmr_exit(ipd, noio);
	return mr;
}
EXPORT_SYMBOL(ib_mr_reg_user);

/**
 * ib_mr_is_stale() - did the owner unmap or move the memory of a region?
 * @mr: handle
 *
 * ib_query_mr() says it too, in @stale. A stale region still works and harms nobody, since its
 * pages stay pinned, but at its addresses no process sees them (after mremap() the owner sees them
 * elsewhere). It ends with ib_dereg_mr() as any other.
 *
 * Context: process, may sleep.
 * Return: true for user memory that was unmapped or moved, in part or whole, or whose process has
 * exited.
 */
bool ib_mr_is_stale(struct ib_mr *mr)
{
	struct ibmr_region *region;
	enum ib_mr_reason why;
	bool stale;

	might_sleep();
	region = IS_ERR_OR_NULL(mr) ? NULL : ibmr_region_lock(mr, &why);
	if (!region)
		return false;
	stale = region->reg && ibmr_reg_stale(region->reg);
	ibmr_region_unlock(region);
	return stale;
}
EXPORT_SYMBOL(ib_mr_is_stale);
