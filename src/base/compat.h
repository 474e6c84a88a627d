/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Every difference between the kernels we serve (6.1, 6.12, 7.x).
 *
 * Nothing else in the module looks at LINUX_VERSION_CODE. Where a difference can be asked of the
 * compiler (#ifdef of a macro), it is, because stable kernels and distributions take things back;
 * only what is no macro is told by version. Each entry says what differs.
 */
#ifndef IBMR_COMPAT_H
#define IBMR_COMPAT_H

#include <linux/debugfs.h>
#include <linux/lockdep.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>

/* Exports for our own test module only; the namespace became a string literal in 6.13. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
#define IBMR_EXPORT_INTERNAL(sym)	EXPORT_SYMBOL_NS_GPL(sym, "IB_MR_INTERNAL")
#define IBMR_IMPORT_INTERNAL()		MODULE_IMPORT_NS("IB_MR_INTERNAL")
#else
#define IBMR_EXPORT_INTERNAL(sym)	EXPORT_SYMBOL_NS_GPL(sym, IB_MR_INTERNAL)
#define IBMR_IMPORT_INTERNAL()		MODULE_IMPORT_NS(IB_MR_INTERNAL)
#endif

/* The name came in 6.3 and in late 6.1; before, it was kvfree_rcu() with one argument. */
#ifndef kvfree_rcu_mightsleep
#define kvfree_rcu_mightsleep(ptr)	kvfree_rcu(ptr)
#endif

/*
 * Grace periods in which every task has left the CPU by itself. Without the option 6.1 does not
 * link; from 6.5 on call_rcu_tasks() would quietly be call_rcu(), which is too short where tasks
 * are preempted.
 */
#ifndef CONFIG_TASKS_RCU
#error "ib_mr needs CONFIG_TASKS_RCU (since 6.8: CONFIG_NEED_TASKS_RCU and PREEMPTION)"
#endif

/*
 * What a module was loaded with, while the kernel has not parsed it yet: on 6.1 KUnit runs a
 * module's suites that early. NULL once it is parsed, as it is elsewhere, and where @mod is NULL,
 * since the caller is built in; 7.3 does not keep it.
 */
static inline const char *ibmr_unparsed_args(const struct module *mod)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
	return mod && mod->state == MODULE_STATE_COMING ? mod->args : NULL;
#else
	return NULL;
#endif
}

/* Another name for a file of debugfs, in its folder; before 6.15 by way of a general rename. */
static inline void ibmr_debugfs_change_name(struct dentry *dentry, struct dentry *parent,
					    const char *name)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	debugfs_change_name(dentry, "%s", name);
#else
	debugfs_rename(parent, dentry, parent, name);
#endif
}

/* __assign_str() takes the source from __string() alone since 6.10. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 10, 0)
#define ibmr_assign_str(dst, src)	__assign_str(dst)
#else
#define ibmr_assign_str(dst, src)	__assign_str(dst, src)
#endif

/*
 * Pinning by virtual address got a name of its own when other kinds of memory came. Debian's 7.2
 * has it, and its neighbours are no macros either.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0)
#define ibmr_umem_get(dev, addr, size, access)	ib_umem_get_va(dev, addr, size, access)
#else
#define ibmr_umem_get(dev, addr, size, access)	ib_umem_get(dev, addr, size, access)
#endif

/*
 * How soft RoCE keeps the pages of an MR: up to 6.2 as addresses, one for each block; from 6.3 on
 * as pages in an xarray; from 7.0 on in one array, which is made anew for blocks above a page, one
 * entry for each page of the block. Stable kernels took that over (6.12.117 has it, 6.12.95 had
 * not), and which it is cannot be asked, so all that keep pages are treated as the last.
 */
#define IBMR_DRIVER_KEEPS_PAGES		(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0))

/* Live maps with larger blocks would make such a driver allocate where it must not. */
#define IBMR_LIVE_MAX_SHIFT		(IBMR_DRIVER_KEEPS_PAGES ? PAGE_SHIFT : 30)

/* log2 of the largest block for a live map that divides all that was ored to @bits. */
static inline unsigned int ibmr_live_block(u64 bits)
{
	return __ffs64(bits | BIT_ULL(IBMR_LIVE_MAX_SHIFT));
}

/* Soft RoCE works in tasklets up to 6.4, on the CPU that asks for it; then in a workqueue. */
#define IBMR_DRIVER_WORKQUEUE		(LINUX_VERSION_CODE >= KERNEL_VERSION(6, 5, 0))

/*
 * It stops a queue pair whose request it refuses. In a workqueue, the request may be flushed by
 * that before its own status is told.
 */
#define IBMR_REFUSAL_MAY_FLUSH		IBMR_DRIVER_WORKQUEUE

/*
 * From 6.3 to 6.x the driver's page list is an xarray whose plain lock is taken with interrupts on
 * when the MR is allocated, and by a live map with them off. No deadlock: nobody else uses that
 * instance at that time. Lockdep knows the class only.
 */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0) && LINUX_VERSION_CODE < KERNEL_VERSION(7, 0, 0)
#define ibmr_lockdep_off()		lockdep_off()
#define ibmr_lockdep_on()		lockdep_on()
#else
#define ibmr_lockdep_off()		do { } while (0)
#define ibmr_lockdep_on()		do { } while (0)
#endif

/*
 * Block sizes worth giving to a device. Where the driver keeps pages a large block costs as much as
 * all its pages, those included that lie in the block beside the memory.
 */
static inline u64 ibmr_block_sizes(const struct ib_device *device)
{
	if (IBMR_DRIVER_KEEPS_PAGES && ib_uses_virt_dma((struct ib_device *)device))
		return PAGE_SIZE;
	return device->attrs.page_size_cap;
}

/*
 * Most blocks in a fast-registration MR. An array of pages is one allocation, 16 bytes a page, and
 * the kernel warns when it is asked for more than the allocator ever gives.
 */
static inline u32 ibmr_list_max(const struct ib_device *device)
{
	if (IBMR_DRIVER_KEEPS_PAGES && ib_uses_virt_dma((struct ib_device *)device))
		return KMALLOC_MAX_SIZE / 16;
	return U32_MAX - 1;
}

/*
 * A fast-registration MR with room for @blocks. Up to 6.2 soft RoCE keeps an MR's pages in parts of
 * PAGE_SIZE / 16 entries. A copy that ends where the last part does reads the pointer to the next
 * one, which is beyond the array; one entry more than is ever mapped makes a part for it.
 */
static inline struct ib_mr *ibmr_alloc_mr(struct ib_pd *pd, u32 blocks)
{
	if (blocks > ibmr_list_max(pd->device))
		return ERR_PTR(-ENOMEM);
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
	if (ib_uses_virt_dma(pd->device) && blocks % (PAGE_SIZE / 16) == 0)
		blocks++;
#endif
	return ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, blocks);
}

/*
 * ib_map_mr_sg() without the call, as it stands in 6.1 and 6.12; later kernels are asked by the
 * call. The device passed the test of live mapping, so it has the operation.
 */
static inline int ibmr_map_mr_sg(struct ib_mr *mr, struct scatterlist *sgl, unsigned int nents,
				 unsigned int page_size)
{
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 13, 0)
	mr->page_size = page_size;
	return mr->device->ops.map_mr_sg(mr, sgl, nents, NULL);
#else
	return ib_map_mr_sg(mr, sgl, nents, NULL, page_size);
#endif
}

#endif /* IBMR_COMPAT_H */
