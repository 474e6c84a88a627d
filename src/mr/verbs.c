// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The exported calls that make and query regions: what the classic contract says of arguments.
 *
 * Each names memory in its own way and hands it to region.c as one. iova_start is read and never
 * written, the caller's buffer list neither.
 */

#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "mr/handle.h"
#include "mr/region.h"

/* Give @mem, or the reason why there is none, to a new region. */
static struct ib_mr *reg_mem(struct ibmr_pd *ipd, unsigned int noio, struct ibmr_mem *mem,
			     enum ib_mr_reason why, const u64 *iova, u64 def_iova, int access,
			     const char *call)
{
	struct ib_mr *mr;

	if (!mem)
		mr = ERR_PTR(ibmr_refuse(ipd->dev, why, "%s(access %#x)", call, access));
	else if (access & IB_ZERO_BASED)
		mr = ibmr_region_create(ipd, mem, iova ? *iova : 0, access, call);
	else
		mr = ibmr_region_create(ipd, mem, iova ? *iova : def_iova, access, call);
	ibmr_exit(ipd, noio);
	return mr;
}

/**
 * ib_get_dma_mr() - a region of all memory
 * @pd: kernel PD
 * @mr_access_flags: rights
 *
 * The addresses used with its keys are DMA addresses (ib_dma_map_*()); on soft RDMA since 6.3
 * these reach the linear map only. With remote rights a peer may name any address: the log says so
 * once.
 *
 * Context: process, may sleep.
 * Return: the handle, to be given to ib_dereg_mr(); or
 * ERR_PTR(-EINVAL) for flags (remote write or atomic without local write among them), -EPERM for a
 * user's PD, -ENODEV, -ENOMEM.
 */
struct ib_mr *ib_get_dma_mr(struct ib_pd *pd, int mr_access_flags)
{
	struct ibmr_pd *ipd;
	unsigned int noio;
	struct ib_mr *mr;

	might_sleep();
	ipd = ibmr_enter(pd, __func__, &noio);
	if (IS_ERR(ipd))
		return ERR_CAST(ipd);
	mr = ibmr_region_create(ipd, NULL, 0, mr_access_flags, __func__);
	ibmr_exit(ipd, noio);
	return mr;
}
EXPORT_SYMBOL(ib_get_dma_mr);

/**
 * ib_reg_phys_mr() - register a list of physical buffers
 * @pd: kernel PD
 * @phys_buf_array: buffers, by DMA address (on soft RDMA: kernel virtual address)
 * @num_phys_buf: how many
 * @mr_access_flags: rights
 * @iova_start: address the first byte is to have for users of the keys
 *
 * Later buffers begin, and all but the last end, at a page boundary; *@iova_start and the first
 * address have the same offset in a page. Neither array nor iova is written to. The device gets
 * the largest blocks that these boundaries allow. The caller keeps the memory mapped and in place
 * until ib_dereg_mr().
 *
 * Context: process, may sleep.
 * Return: the handle; ERR_PTR(-EINVAL) for arguments, -EPERM for a user's PD, -ENODEV, -ENOMEM,
 * -EOPNOTSUPP where the device cannot carry it (iWARP; zero-based inside a page), -EIO when the
 * device failed.
 */
struct ib_mr *ib_reg_phys_mr(struct ib_pd *pd, struct ib_phys_buf *phys_buf_array,
			     int num_phys_buf, int mr_access_flags, u64 *iova_start)
{
	enum ib_mr_reason why = IB_MR_WHY_NULL_ARG;
	struct ibmr_mem *mem = NULL;
	struct ibmr_pd *ipd;
	unsigned int noio;

	might_sleep();
	ipd = ibmr_enter(pd, __func__, &noio);
	if (IS_ERR(ipd))
		return ERR_CAST(ipd);
	if (iova_start)
		mem = ibmr_mem_phys(ipd->dev, phys_buf_array, num_phys_buf, &why);
	return reg_mem(ipd, noio, mem, why, iova_start, 0, mr_access_flags, __func__);
}
EXPORT_SYMBOL(ib_reg_phys_mr);

/**
 * ib_mr_reg_kernel() - register kernel memory by its virtual address
 * @pd: kernel PD
 * @addr: first byte: kmalloc, page or vmalloc memory
 * @length: bytes
 * @access: rights
 * @iova: address the first byte is to have, congruent to @addr modulo the page size; NULL for @addr
 *        itself (0 for a zero-based region)
 *
 * Unlike ib_reg_phys_mr() the DMA mapping is made, and undone, here. The caller keeps the memory
 * allocated until ib_dereg_mr().
 *
 * Context: process, may sleep.
 * Return: as ib_reg_phys_mr(); -EINVAL also for an address that is no such memory.
 */
struct ib_mr *ib_mr_reg_kernel(struct ib_pd *pd, void *addr, size_t length, int access,
			       const u64 *iova)
{
	enum ib_mr_reason why;
	struct ibmr_mem *mem;
	struct ibmr_pd *ipd;
	unsigned int noio;

	might_sleep();
	ipd = ibmr_enter(pd, __func__, &noio);
	if (IS_ERR(ipd))
		return ERR_CAST(ipd);
	mem = ibmr_mem_kernel(ipd->dev, addr, length, &why);	/* before @why is read */
	return reg_mem(ipd, noio, mem, why, iova, (uintptr_t)addr, access, __func__);
}
EXPORT_SYMBOL(ib_mr_reg_kernel);

/**
 * ib_mr_reg_sg() - register a DMA-mapped scatterlist
 * @pd: kernel PD
 * @sgl: list
 * @nents: entries that ib_dma_map_sg() returned
 * @access: rights
 * @iova: address the first byte is to have; NULL for its DMA address (0 for a zero-based region)
 *
 * Entries that touch are merged; what is left must begin and end at page boundaries, the outer ends
 * apart. The list itself may be freed after the call; the mapping stays the caller's and has to
 * last until ib_dereg_mr().
 *
 * Context: process, may sleep.
 * Return: as ib_reg_phys_mr().
 */
struct ib_mr *ib_mr_reg_sg(struct ib_pd *pd, struct scatterlist *sgl, int nents, int access,
			   const u64 *iova)
{
	enum ib_mr_reason why;
	struct ibmr_mem *mem;
	struct ibmr_pd *ipd;
	unsigned int noio;

	might_sleep();
	ipd = ibmr_enter(pd, __func__, &noio);
	if (IS_ERR(ipd))
		return ERR_CAST(ipd);
	mem = ibmr_mem_sg(ipd->dev, sgl, nents, &why);
	return reg_mem(ipd, noio, mem, why, iova, mem ? mem->pv.runs[0].addr : 0, access, __func__);
}
EXPORT_SYMBOL(ib_mr_reg_sg);

/**
 * ib_query_mr() - what a region is
 * @mr: handle
 * @mr_attr: filled in on success, zeroed first
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL for a handle that is not ours or was deregistered; -ENODEV when its device is
 * gone.
 */
int ib_query_mr(struct ib_mr *mr, struct ib_mr_attr *mr_attr)
{
	struct ibmr_region *region;
	enum ib_mr_reason why;
	int err = 0;

	might_sleep();
	if (IS_ERR_OR_NULL(mr) || !mr_attr)
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	region = ibmr_region_lock(mr, &why);
	if (!region)
		return ibmr_refuse(NULL, why, "%s", __func__);
	memset(mr_attr, 0, sizeof(*mr_attr));
	if (region->state == IBMR_LIVE) {
		const struct ibmr_reg *reg = region->reg;

		mr_attr->pd = reg->ipd->pd;
		mr_attr->device_virt_addr = reg->iova;
		mr_attr->size = reg->length;
		mr_attr->mr_access_flags = reg->access;
		mr_attr->lkey = reg->lkey;
		mr_attr->rkey = reg->rkey;
		mr_attr->stale = ibmr_reg_stale(reg);
	} else {
		err = ibmr_refuse(region->dev, IB_MR_WHY_NO_DEVICE, "%s", __func__);
	}
	ibmr_region_unlock(region);
	return err;
}
EXPORT_SYMBOL(ib_query_mr);

/**
 * ib_mr_not_ours() - may this handle go to a function of the core?
 * @mr: handle
 * @call: the function's name, for the log
 *
 * Context: any.
 * Return: 0; -EINVAL for a handle of ib_mr's, live or deregistered, and for no handle.
 */
int ib_mr_not_ours(struct ib_mr *mr, const char *call)
{
	struct ibmr_region *region;
	int err;

	if (IS_ERR_OR_NULL(mr))
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", call);
	region = ibmr_handle_find(mr);
	if (likely(!region))
		return 0;
	err = ibmr_refuse(region->dev, IB_MR_WHY_OUR_MR, "%s(key %#x)", call, mr->lkey);
	ibmr_region_put(region);
	return err;
}
EXPORT_SYMBOL(ib_mr_not_ours);

/**
 * ib_mr_fence() - wait for packets that were let in under keys that are dead by now
 *
 * Taking a window's binding back and ib_fmr_pool_unmap() let nobody in any more as they return, but
 * do not sleep, so a packet that was let in just before may still be copying. When this returns
 * there is none. It takes a grace period of RCU tasks, 150 ms or so, for any number of keys; for
 * one window or pool ib_dealloc_mw() and ib_flush_fmr_pool() are the quicker fences.
 *
 * Context: process, may sleep.
 */
void ib_mr_fence(void)
{
	might_sleep();
	synchronize_rcu_tasks();
}
EXPORT_SYMBOL(ib_mr_fence);
