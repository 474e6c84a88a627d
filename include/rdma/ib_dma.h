/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * DMA for in-kernel RDMA users: the classic ib_dma_*() helpers, and the checker behind them.
 *
 * Include this instead of (or after) <rdma/ib_verbs.h>. The helpers keep their names and
 * prototypes; macros at the end send them through the inlines below, and those through the checker
 * when a device is being checked. What today's <rdma/ib_verbs.h> has lost is here again:
 * ib_dma_map_single_attrs(), ib_dma_map_page_attrs(), their unmaps, ib_dma_alloc_coherent(),
 * ib_dma_free_coherent(), ib_sg_dma_address() and ib_sg_dma_len().
 *
 * With no device checked (the default) a call costs up to four instructions more than the
 * kernel's own: a patched-out branch, and either one per-CPU count or one comparison.
 *
 * Every call here but ib_dma_alloc_coherent() (which obeys its gfp) and ib_mr_dma_check_set() may
 * be made in any context, hard interrupts included. On PREEMPT_RT that is so while no device is
 * checked: the checker allocates, which is no matter for sections that disable interrupts there.
 *
 * What the checker cannot see: mappings that ib_core makes for itself (rdma_rw, the MAD layer, user
 * memory), and sources that were not compiled with this header.
 */
#ifndef _RDMA_IB_DMA_H
#define _RDMA_IB_DMA_H

#include <linux/dma-mapping.h>
#include <linux/jump_label.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>

/**
 * enum ib_mr_dma_check_mode - how closely the DMA of a device is watched
 * @IB_MR_DMA_OFF: not at all (the default)
 * @IB_MR_DMA_TRACK: every mapping is remembered; calls that do not fit it are reported
 * @IB_MR_DMA_BOUNCE: as TRACK, and the device is given a poisoned copy of the buffer; data cross
 *	only in map, sync and unmap, as on a machine whose caches are not coherent. Virtual-DMA
 *	devices (rxe, siw) only.
 * @IB_MR_DMA_BOUNCE_STRICT: as BOUNCE, and what only the device is to fill holds a pattern until it
 *	is synced or unmapped, so that a CPU that reads too early reads no old data
 */
enum ib_mr_dma_check_mode {
	IB_MR_DMA_OFF,
	IB_MR_DMA_TRACK,
	IB_MR_DMA_BOUNCE,
	IB_MR_DMA_BOUNCE_STRICT,
};

/*
 * What the checker reports: X(NAME, name, "sentence"). The names are what the log, debugfs and the
 * tests call them. NO_SYNC_CPU, NO_SYNC_DEV and NOT_MAPPED are hints: only the ULP knows whether
 * they are faults, so they are counted apart and are in dma_hints instead of dma_reports.
 */
#define IB_MR_DMA_FAULTS(X) \
	X(UNMAP_SIZE,   unmap_size,   "unmapped with another size than it was mapped with") \
	X(UNMAP_DIR,    unmap_dir,    "unmapped with another direction than it was mapped with") \
	X(UNMAP_CALL,   unmap_call,   "unmapped by another kind of call than it was mapped by") \
	X(UNMAP_TWICE,  unmap_twice,  "unmapped a second time") \
	X(NEVER_MAPPED, never_mapped, "unmap of an address that was never mapped") \
	X(SYNC_OUTSIDE, sync_outside, "sync of a range that no mapping contains") \
	X(SYNC_DIR,     sync_dir,     "sync in a direction the mapping does not have") \
	X(UNCHECKED,    unchecked,    "mapping used without a look at ib_dma_mapping_error()") \
	X(ON_STACK,     on_stack,     "the buffer is on a stack") \
	X(NOT_LINEAR,   not_linear,   "the buffer is not in the linear map (vmalloc memory?)") \
	X(LEAK,         leak,         "mapping still alive") \
	X(CPU_WRITE,    cpu_write,    "the CPU wrote to the buffer while the device owned it") \
	X(NO_SYNC_CPU,  no_sync_cpu,  "the device wrote, and no sync_for_cpu fetched it") \
	X(NO_SYNC_DEV,  no_sync_dev,  "the CPU wrote, and no sync_for_device sent it") \
	X(DEV_OUTSIDE,  dev_outside,  "the device wrote outside the mapping") \
	X(DEV_LATE,     dev_late,     "the device wrote after the unmap") \
	X(DEV_WRITE,    dev_write,    "the device wrote to memory that is mapped for it to read") \
	X(NOT_MAPPED,   not_mapped,   "a region is made of memory that no mapping contains")

enum ib_mr_dma_fault {
#define IB_MR_DMA_FAULT_ENUM(NAME, name, text) IB_MR_DMA_##NAME,
	IB_MR_DMA_FAULTS(IB_MR_DMA_FAULT_ENUM)
#undef IB_MR_DMA_FAULT_ENUM
	IB_MR_DMA_FAULT_COUNT
};

int ib_mr_dma_check_set(struct ib_device *device, enum ib_mr_dma_check_mode mode);
int ib_mr_dma_check_get(struct ib_device *device);
u64 ib_mr_dma_reports(struct ib_device *device, enum ib_mr_dma_fault fault);
struct ib_device *ib_mr_soft_device(const struct device *dev);

/*
 * From here to the macros: how the helpers work. True while any device is checked, or still has
 * mappings that were made under the checker.
 */
DECLARE_STATIC_KEY_FALSE(ib_mr_dma_checking);

/*
 * Mappings that live but that the checker did not see made, as a sum over all CPUs, of this module,
 * by device (a few share a count when there are many). An unmap of an unknown address is a fault
 * only when it cannot belong to one of those. Each module has one such count, whatever it is
 * compiled from. The parameter, which is in no file and cannot be set, tells ib_mr where it is.
 */
struct ib_mr_dma_unseen {
	long nr[4];
};

DECLARE_PER_CPU(struct ib_mr_dma_unseen, ib_mr_dma_unseen_here);
extern const struct kernel_param_ops ib_mr_dma_param_ops;

#ifndef IB_MR_DMA_PLAIN_NAMES
__weak DEFINE_PER_CPU(struct ib_mr_dma_unseen, ib_mr_dma_unseen_here);
module_param_cb(ib_mr_dma, &ib_mr_dma_param_ops, (void __force *)&ib_mr_dma_unseen_here, 0);
#endif

static __always_inline unsigned int ib_mr_dma_slot(const struct ib_device *dev)
{
	return dev->index % 4;
}

/* The last argument is the module that asks: for leaks, and for the count above. */
u64 __ib_mr_dma_map_single(struct ib_device *dev, void *cpu_addr, size_t size,
			   enum dma_data_direction dir, unsigned long attrs, struct module *of);
u64 __ib_mr_dma_map_page(struct ib_device *dev, struct page *page, unsigned long offset,
			 size_t size, enum dma_data_direction dir, unsigned long attrs,
			 struct module *of);
void __ib_mr_dma_unmap_single(struct ib_device *dev, u64 addr, size_t size,
			      enum dma_data_direction dir, unsigned long attrs, struct module *of);
void __ib_mr_dma_unmap_page(struct ib_device *dev, u64 addr, size_t size,
			    enum dma_data_direction dir, unsigned long attrs, struct module *of);
int __ib_mr_dma_map_sg(struct ib_device *dev, struct scatterlist *sg, int nents,
		       enum dma_data_direction dir, unsigned long attrs, struct module *of);
void __ib_mr_dma_unmap_sg(struct ib_device *dev, struct scatterlist *sg, int nents,
			  enum dma_data_direction dir, unsigned long attrs, struct module *of);
int __ib_mr_dma_mapping_error(struct ib_device *dev, u64 addr);
void __ib_mr_dma_sync_for_cpu(struct ib_device *dev, u64 addr, size_t size,
			      enum dma_data_direction dir);
void __ib_mr_dma_sync_for_device(struct ib_device *dev, u64 addr, size_t size,
				 enum dma_data_direction dir);
void *__ib_mr_dma_alloc_coherent(struct ib_device *dev, size_t size, u64 *dma_handle, gfp_t gfp,
				 struct module *of);
void ib_mr_dma_free_coherent(struct ib_device *dev, size_t size, void *cpu_addr, u64 dma_handle);

/* What is done when nobody watches; the attributes mean nothing to a virtual-DMA device. */
static __always_inline u64 ib_mr_dma_plain_map(struct ib_device *dev, void *cpu_addr, size_t size,
					       enum dma_data_direction dir, unsigned long attrs)
{
	if (ib_uses_virt_dma(dev))
		return (uintptr_t)cpu_addr;
	return dma_map_single_attrs(dev->dma_device, cpu_addr, size, dir, attrs);
}

static __always_inline u64 ib_mr_dma_plain_map_page(struct ib_device *dev, struct page *page,
						    unsigned long offset, size_t size,
						    enum dma_data_direction dir,
						    unsigned long attrs)
{
	if (ib_uses_virt_dma(dev))
		return (uintptr_t)(page_address(page) + offset);
	return dma_map_page_attrs(dev->dma_device, page, offset, size, dir, attrs);
}

static __always_inline void ib_mr_dma_plain_unmap(struct ib_device *dev, u64 addr, size_t size,
						  enum dma_data_direction dir, unsigned long attrs)
{
	if (!ib_uses_virt_dma(dev))
		dma_unmap_single_attrs(dev->dma_device, addr, size, dir, attrs);
}

static __always_inline void ib_mr_dma_plain_unmap_page(struct ib_device *dev, u64 addr,
						       size_t size, enum dma_data_direction dir,
						       unsigned long attrs)
{
	if (!ib_uses_virt_dma(dev))
		dma_unmap_page_attrs(dev->dma_device, addr, size, dir, attrs);
}

#define ib_mr_dma_count(dev, n)	\
	this_cpu_add(ib_mr_dma_unseen_here.nr[ib_mr_dma_slot(dev)], n)

/* With a real DMA path a map may fail, and then there is nothing to count. */
static __always_inline u64 ib_mr_dma_counted(struct ib_device *dev, u64 addr)
{
	if (ib_uses_virt_dma(dev) || addr != DMA_MAPPING_ERROR)
		ib_mr_dma_count(dev, 1);
	return addr;
}

/*
 * The barriers below keep the compiler from leaving the ULP's function by a jump to the checker,
 * which would take it out of the call chain that a report shows.
 */
#define ib_mr_dma_watched(call) ({			\
	__auto_type _ret = call;			\
							\
	barrier();					\
	_ret;						\
})

static __always_inline u64 ib_mr_dma_map_single(struct ib_device *dev, void *cpu_addr, size_t size,
						enum dma_data_direction dir, unsigned long attrs)
{
	if (static_branch_unlikely(&ib_mr_dma_checking))
		return ib_mr_dma_watched(__ib_mr_dma_map_single(dev, cpu_addr, size, dir, attrs,
								THIS_MODULE));
	return ib_mr_dma_counted(dev, ib_mr_dma_plain_map(dev, cpu_addr, size, dir, attrs));
}

static __always_inline void ib_mr_dma_unmap_single(struct ib_device *dev, u64 addr, size_t size,
						   enum dma_data_direction dir, unsigned long attrs)
{
	if (static_branch_unlikely(&ib_mr_dma_checking)) {
		__ib_mr_dma_unmap_single(dev, addr, size, dir, attrs, THIS_MODULE);
		barrier();
		return;
	}
	ib_mr_dma_count(dev, -1);
	ib_mr_dma_plain_unmap(dev, addr, size, dir, attrs);
}

static __always_inline u64 ib_mr_dma_map_page(struct ib_device *dev, struct page *page,
					      unsigned long offset, size_t size,
					      enum dma_data_direction dir, unsigned long attrs)
{
	if (static_branch_unlikely(&ib_mr_dma_checking))
		return ib_mr_dma_watched(__ib_mr_dma_map_page(dev, page, offset, size, dir, attrs,
							      THIS_MODULE));
	return ib_mr_dma_counted(dev, ib_mr_dma_plain_map_page(dev, page, offset, size, dir,
							       attrs));
}

static __always_inline void ib_mr_dma_unmap_page(struct ib_device *dev, u64 addr, size_t size,
						 enum dma_data_direction dir, unsigned long attrs)
{
	if (static_branch_unlikely(&ib_mr_dma_checking)) {
		__ib_mr_dma_unmap_page(dev, addr, size, dir, attrs, THIS_MODULE);
		barrier();
		return;
	}
	ib_mr_dma_count(dev, -1);
	ib_mr_dma_plain_unmap_page(dev, addr, size, dir, attrs);
}

static __always_inline int ib_mr_dma_map_sg(struct ib_device *dev, struct scatterlist *sg,
					    int nents, enum dma_data_direction dir,
					    unsigned long attrs)
{
	int n;

	if (static_branch_unlikely(&ib_mr_dma_checking))
		return ib_mr_dma_watched(__ib_mr_dma_map_sg(dev, sg, nents, dir, attrs,
							    THIS_MODULE));
	if (ib_uses_virt_dma(dev)) {	/* cannot fail, but for a list of no entries */
		if (nents)
			ib_mr_dma_count(dev, 1);
		return ib_dma_virt_map_sg(dev, sg, nents);
	}
	n = ib_dma_map_sg_attrs(dev, sg, nents, dir, attrs);
	if (n > 0)
		ib_mr_dma_count(dev, 1);
	return n;
}

static __always_inline void ib_mr_dma_unmap_sg(struct ib_device *dev, struct scatterlist *sg,
					       int nents, enum dma_data_direction dir,
					       unsigned long attrs)
{
	if (static_branch_unlikely(&ib_mr_dma_checking)) {
		__ib_mr_dma_unmap_sg(dev, sg, nents, dir, attrs, THIS_MODULE);
		barrier();
		return;
	}
	if (nents)
		ib_mr_dma_count(dev, -1);
	ib_dma_unmap_sg_attrs(dev, sg, nents, dir, attrs);
}

static __always_inline int ib_mr_dma_map_sgtable(struct ib_device *dev, struct sg_table *sgt,
						 enum dma_data_direction dir, unsigned long attrs)
{
	int nents, err;

	if (static_branch_unlikely(&ib_mr_dma_checking)) {
		nents = __ib_mr_dma_map_sg(dev, sgt->sgl, sgt->orig_nents, dir, attrs,
					   THIS_MODULE);
		if (nents <= 0)
			return -EIO;
		sgt->nents = nents;
		return 0;
	}
	err = ib_dma_map_sgtable_attrs(dev, sgt, dir, attrs);
	if (!err)
		ib_mr_dma_count(dev, 1);
	return err;
}

static __always_inline void ib_mr_dma_unmap_sgtable(struct ib_device *dev, struct sg_table *sgt,
						    enum dma_data_direction dir,
						    unsigned long attrs)
{
	ib_mr_dma_unmap_sg(dev, sgt->sgl, sgt->orig_nents, dir, attrs);
}

/* The kernel's own says 0 for every virtual-DMA address; but under the checker a map can fail. */
static __always_inline int ib_mr_dma_mapping_error(struct ib_device *dev, u64 addr)
{
	if (static_branch_unlikely(&ib_mr_dma_checking))
		return ib_mr_dma_watched(__ib_mr_dma_mapping_error(dev, addr));
	if (unlikely(addr == DMA_MAPPING_ERROR))
		return -ENOMEM;
	return ib_dma_mapping_error(dev, addr);
}

static __always_inline void ib_mr_dma_sync_for_cpu(struct ib_device *dev, u64 addr, size_t size,
						   enum dma_data_direction dir)
{
	if (static_branch_unlikely(&ib_mr_dma_checking)) {
		__ib_mr_dma_sync_for_cpu(dev, addr, size, dir);
		barrier();
		return;
	}
	ib_dma_sync_single_for_cpu(dev, addr, size, dir);
}

static __always_inline void ib_mr_dma_sync_for_device(struct ib_device *dev, u64 addr, size_t size,
						      enum dma_data_direction dir)
{
	if (static_branch_unlikely(&ib_mr_dma_checking)) {
		__ib_mr_dma_sync_for_device(dev, addr, size, dir);
		barrier();
		return;
	}
	ib_dma_sync_single_for_device(dev, addr, size, dir);
}

static inline u64 ib_mr_sg_dma_address(struct ib_device *dev, struct scatterlist *sg)
{
	return sg_dma_address(sg);
}

static inline unsigned int ib_mr_sg_dma_len(struct ib_device *dev, struct scatterlist *sg)
{
	return sg_dma_len(sg);
}

/*
 * The classic names. attrs was a pointer up to 4.7 and is a word of flags since. NULL is taken as
 * no flags; what else a pointer leads to is known where <linux/dma-attrs.h> is (include/classic).
 */
#ifndef ib_mr_dma_attrs
#define ib_mr_dma_attrs(attrs)	((unsigned long)(attrs))
#endif
#ifndef IB_MR_DMA_PLAIN_NAMES
#define ib_dma_map_single(dev, cpu_addr, size, dir) \
	ib_mr_dma_map_single(dev, cpu_addr, size, dir, 0)
#define ib_dma_map_single_attrs(dev, cpu_addr, size, dir, attrs) \
	ib_mr_dma_map_single(dev, cpu_addr, size, dir, ib_mr_dma_attrs(attrs))
#define ib_dma_unmap_single(dev, addr, size, dir) \
	ib_mr_dma_unmap_single(dev, addr, size, dir, 0)
#define ib_dma_unmap_single_attrs(dev, addr, size, dir, attrs) \
	ib_mr_dma_unmap_single(dev, addr, size, dir, ib_mr_dma_attrs(attrs))
#define ib_dma_map_page(dev, page, offset, size, dir) \
	ib_mr_dma_map_page(dev, page, offset, size, dir, 0)
#define ib_dma_map_page_attrs(dev, page, offset, size, dir, attrs) \
	ib_mr_dma_map_page(dev, page, offset, size, dir, ib_mr_dma_attrs(attrs))
#define ib_dma_unmap_page(dev, addr, size, dir) \
	ib_mr_dma_unmap_page(dev, addr, size, dir, 0)
#define ib_dma_unmap_page_attrs(dev, addr, size, dir, attrs) \
	ib_mr_dma_unmap_page(dev, addr, size, dir, ib_mr_dma_attrs(attrs))
#define ib_dma_map_sg(dev, sg, nents, dir) \
	ib_mr_dma_map_sg(dev, sg, nents, dir, 0)
#define ib_dma_map_sg_attrs(dev, sg, nents, dir, attrs) \
	ib_mr_dma_map_sg(dev, sg, nents, dir, ib_mr_dma_attrs(attrs))
#define ib_dma_unmap_sg(dev, sg, nents, dir) \
	ib_mr_dma_unmap_sg(dev, sg, nents, dir, 0)
#define ib_dma_unmap_sg_attrs(dev, sg, nents, dir, attrs) \
	ib_mr_dma_unmap_sg(dev, sg, nents, dir, ib_mr_dma_attrs(attrs))
#define ib_dma_map_sgtable_attrs(dev, sgt, dir, attrs) \
	ib_mr_dma_map_sgtable(dev, sgt, dir, attrs)
#define ib_dma_unmap_sgtable_attrs(dev, sgt, dir, attrs) \
	ib_mr_dma_unmap_sgtable(dev, sgt, dir, attrs)
#define ib_dma_mapping_error(dev, addr)		ib_mr_dma_mapping_error(dev, addr)
#define ib_dma_sync_single_for_cpu(dev, addr, size, dir) \
	ib_mr_dma_sync_for_cpu(dev, addr, size, dir)
#define ib_dma_sync_single_for_device(dev, addr, size, dir) \
	ib_mr_dma_sync_for_device(dev, addr, size, dir)
#define ib_dma_alloc_coherent(dev, size, dma_handle, gfp) \
	__ib_mr_dma_alloc_coherent(dev, size, dma_handle, gfp, THIS_MODULE)
#define ib_dma_free_coherent(dev, size, cpu_addr, dma_handle) \
	ib_mr_dma_free_coherent(dev, size, cpu_addr, dma_handle)
#define ib_sg_dma_address(dev, sg)		ib_mr_sg_dma_address(dev, sg)
#define ib_sg_dma_len(dev, sg)			ib_mr_sg_dma_len(dev, sg)
#endif

#endif /* _RDMA_IB_DMA_H */
