// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA helpers: coherent memory, and which calls go through the checker.
 *
 * The inlines of <rdma/ib_dma.h> come here only while a device is checked (or still has mappings
 * from when it was). Each call then finds its device's state; a device that is not checked gets
 * what the inline would have done, and the same count.
 */

#include <linux/gfp.h>
#include <linux/module.h>
#include <linux/sizes.h>

#include "base/compat.h"
#include "base/fault.h"
#include "dma/check.h"

DEFINE_STATIC_KEY_FALSE(ib_mr_dma_checking);
EXPORT_SYMBOL(ib_mr_dma_checking);

/*
 * The calls. What the classic names promise is said with them in
 * Documentation/core-api/dma-api.rst; what is added here is that a map may fail on a virtual-DMA
 * device, too.
 */

/* Made while this device is not checked; one that failed is none. */
static void ibmr_dma_missed(struct ib_device *dev, const struct module *of, u64 addr)
{
	if (ib_uses_virt_dma(dev) || addr != DMA_MAPPING_ERROR)
		ibmr_dma_unseen_add(dev, IBMR_DMA_STREAMING, of, 1);
}

/**
 * __ib_mr_dma_map_single() - ib_dma_map_single() while a device is checked
 * @dev: device
 * @cpu_addr: buffer
 * @size: bytes
 * @dir: direction
 * @attrs: DMA_ATTR_*
 * @of: module that asks
 *
 * Context: any.
 * Return: the device address, or one for which ib_dma_mapping_error() says so.
 */
u64 __ib_mr_dma_map_single(struct ib_device *dev, void *cpu_addr, size_t size,
			   enum dma_data_direction dir, unsigned long attrs, struct module *of)
{
	struct ibmr_dma_req req = {
		.call = "ib_dma_map_single", .ip = _RET_IP_, .of = of,
		.cpu = cpu_addr, .size = size, .dir = dir, .attrs = attrs,
	};
	struct ibmr_dma_dev *dd;
	u64 addr;

	rcu_read_lock();
	dd = ibmr_dma_checked(dev);
	if (dd) {
		addr = ibmr_dma_check_map(dd, &req);
	} else {
		addr = ib_mr_dma_plain_map(dev, cpu_addr, size, dir, attrs);
		ibmr_dma_missed(dev, of, addr);
	}
	rcu_read_unlock();
	return addr;
}
EXPORT_SYMBOL(__ib_mr_dma_map_single);

/**
 * __ib_mr_dma_map_page() - ib_dma_map_page() while a device is checked
 * @dev: device
 * @page: page the buffer begins in
 * @offset: of its first byte there
 * @size: bytes
 * @dir: direction
 * @attrs: DMA_ATTR_*
 * @of: module that asks
 *
 * Context: any.
 * Return: the device address, or one for which ib_dma_mapping_error() says so.
 */
u64 __ib_mr_dma_map_page(struct ib_device *dev, struct page *page, unsigned long offset,
			 size_t size, enum dma_data_direction dir, unsigned long attrs,
			 struct module *of)
{
	struct ibmr_dma_req req = {
		.call = "ib_dma_map_page", .ip = _RET_IP_, .of = of, .page = page, .offset = offset,
		.cpu = page_address(page) + offset, .size = size, .dir = dir, .attrs = attrs,
	};
	struct ibmr_dma_dev *dd;
	u64 addr;

	rcu_read_lock();
	dd = ibmr_dma_checked(dev);
	if (dd) {
		addr = ibmr_dma_check_map(dd, &req);
	} else {
		addr = ib_mr_dma_plain_map_page(dev, page, offset, size, dir, attrs);
		ibmr_dma_missed(dev, of, addr);
	}
	rcu_read_unlock();
	return addr;
}
EXPORT_SYMBOL(__ib_mr_dma_map_page);

/* The checker's half of an unmap. */
static void ibmr_dma_unmap(struct ib_device *dev, struct ibmr_dma_req *req)
{
	struct ibmr_dma_dev *dd;

	rcu_read_lock();
	dd = ibmr_dma_known(dev);
	if (dd)
		ibmr_dma_check_unmap(dd, req);
	else if (ib_uses_virt_dma(dev) || req->addr != DMA_MAPPING_ERROR)
		ibmr_dma_unseen_add(dev, IBMR_DMA_STREAMING, req->of, -1);
	rcu_read_unlock();
}

/**
 * __ib_mr_dma_unmap_single() - ib_dma_unmap_single() while a device is checked
 * @dev: device
 * @addr: device address from the map
 * @size: bytes, as at the map
 * @dir: direction, as at the map
 * @attrs: DMA_ATTR_*
 * @of: module that asks
 *
 * Context: any.
 */
void __ib_mr_dma_unmap_single(struct ib_device *dev, u64 addr, size_t size,
			      enum dma_data_direction dir, unsigned long attrs, struct module *of)
{
	struct ibmr_dma_req req = {
		.call = "ib_dma_unmap_single", .ip = _RET_IP_, .of = of,
		.addr = addr, .size = size, .dir = dir, .attrs = attrs,
	};

	ibmr_dma_unmap(dev, &req);
	ib_mr_dma_plain_unmap(dev, addr, size, dir, attrs);
}
EXPORT_SYMBOL(__ib_mr_dma_unmap_single);

/**
 * __ib_mr_dma_unmap_page() - ib_dma_unmap_page() while a device is checked
 * @dev: device
 * @addr: device address from the map
 * @size: bytes, as at the map
 * @dir: direction, as at the map
 * @attrs: DMA_ATTR_*
 * @of: module that asks
 *
 * Context: any.
 */
void __ib_mr_dma_unmap_page(struct ib_device *dev, u64 addr, size_t size,
			    enum dma_data_direction dir, unsigned long attrs, struct module *of)
{
	struct ibmr_dma_req req = {
		.call = "ib_dma_unmap_page", .ip = _RET_IP_, .of = of,
		.addr = addr, .size = size, .dir = dir, .attrs = attrs,
	};

	ibmr_dma_unmap(dev, &req);
	ib_mr_dma_plain_unmap_page(dev, addr, size, dir, attrs);
}
EXPORT_SYMBOL(__ib_mr_dma_unmap_page);

/**
 * __ib_mr_dma_map_sg() - ib_dma_map_sg() while a device is checked
 * @dev: device
 * @sg: list
 * @nents: its entries
 * @dir: direction
 * @attrs: DMA_ATTR_*
 * @of: module that asks
 *
 * Context: any.
 * Return: how many entries hold device addresses (a device with a real DMA path may merge some), or
 * 0 when the list could not be mapped; it is as it was then.
 */
int __ib_mr_dma_map_sg(struct ib_device *dev, struct scatterlist *sg, int nents,
		       enum dma_data_direction dir, unsigned long attrs, struct module *of)
{
	struct ibmr_dma_req req = {
		.how = IBMR_DMA_SG, .call = "ib_dma_map_sg", .ip = _RET_IP_, .of = of,
		.sg = sg, .nents = nents, .dir = dir, .attrs = attrs,
	};
	struct ibmr_dma_dev *dd;
	int n;

	rcu_read_lock();
	dd = nents > 0 ? ibmr_dma_checked(dev) : NULL;
	if (dd) {
		n = ibmr_dma_check_map_sg(dd, &req);
	} else {
		n = ib_dma_map_sg_attrs(dev, sg, nents, dir, attrs);
		if (n > 0)
			ibmr_dma_unseen_add(dev, IBMR_DMA_STREAMING, of, 1);
	}
	rcu_read_unlock();
	return n;
}
EXPORT_SYMBOL(__ib_mr_dma_map_sg);

/**
 * __ib_mr_dma_unmap_sg() - ib_dma_unmap_sg() while a device is checked
 * @dev: device
 * @sg: list
 * @nents: as given to the map, not as returned by it
 * @dir: direction, as at the map
 * @attrs: DMA_ATTR_*
 * @of: module that asks
 *
 * Context: any.
 */
void __ib_mr_dma_unmap_sg(struct ib_device *dev, struct scatterlist *sg, int nents,
			  enum dma_data_direction dir, unsigned long attrs, struct module *of)
{
	struct ibmr_dma_req req = {
		.how = IBMR_DMA_SG, .call = "ib_dma_unmap_sg", .ip = _RET_IP_, .of = of,
		.sg = sg, .nents = nents, .dir = dir, .attrs = attrs,
	};

	/* There is no mapping of no entries. */
	if (nents > 0) {
		req.addr = sg_dma_address(sg);
		ibmr_dma_unmap(dev, &req);
	}
	ib_dma_unmap_sg_attrs(dev, sg, nents, dir, attrs);
}
EXPORT_SYMBOL(__ib_mr_dma_unmap_sg);

/**
 * __ib_mr_dma_mapping_error() - ib_dma_mapping_error() while a device is checked
 * @dev: device
 * @addr: device address from a map
 *
 * Context: any.
 * Return: 0 when the mapping was made, else an errno.
 */
int __ib_mr_dma_mapping_error(struct ib_device *dev, u64 addr)
{
	struct ibmr_dma_dev *dd;

	if (addr == DMA_MAPPING_ERROR)
		return -ENOMEM;
	rcu_read_lock();
	dd = ibmr_dma_checked(dev);
	if (dd)
		ibmr_dma_check_error(dd, addr);
	rcu_read_unlock();
	return ib_dma_mapping_error(dev, addr);
}
EXPORT_SYMBOL(__ib_mr_dma_mapping_error);

/**
 * __ib_mr_dma_sync_for_cpu() - ib_dma_sync_single_for_cpu() while a device is checked
 * @dev: device
 * @addr: device address in a mapping
 * @size: bytes, all in the mapping
 * @dir: direction of the mapping
 *
 * Context: any.
 */
void __ib_mr_dma_sync_for_cpu(struct ib_device *dev, u64 addr, size_t size,
			      enum dma_data_direction dir)
{
	struct ibmr_dma_req req = {
		.call = "ib_dma_sync_single_for_cpu", .ip = _RET_IP_,
		.addr = addr, .size = size, .dir = dir,
	};
	struct ibmr_dma_dev *dd;

	ib_dma_sync_single_for_cpu(dev, addr, size, dir);
	rcu_read_lock();
	dd = ibmr_dma_known(dev);
	if (dd)
		ibmr_dma_check_sync(dd, &req, true);
	rcu_read_unlock();
}
EXPORT_SYMBOL(__ib_mr_dma_sync_for_cpu);

/**
 * __ib_mr_dma_sync_for_device() - ib_dma_sync_single_for_device() while a device is checked
 * @dev: device
 * @addr: device address in a mapping
 * @size: bytes, all in the mapping
 * @dir: direction of the mapping
 *
 * Context: any.
 */
void __ib_mr_dma_sync_for_device(struct ib_device *dev, u64 addr, size_t size,
				 enum dma_data_direction dir)
{
	struct ibmr_dma_req req = {
		.call = "ib_dma_sync_single_for_device", .ip = _RET_IP_,
		.addr = addr, .size = size, .dir = dir,
	};
	struct ibmr_dma_dev *dd;

	rcu_read_lock();
	dd = ibmr_dma_known(dev);
	if (dd)
		ibmr_dma_check_sync(dd, &req, false);
	rcu_read_unlock();
	ib_dma_sync_single_for_device(dev, addr, size, dir);
}
EXPORT_SYMBOL(__ib_mr_dma_sync_for_device);

/* Pages are handed out whole, so that a region may be made of them by page. */
#define IBMR_DMA_COHERENT_MAX	SZ_4M

/* What makes no sense for memory that has a kernel address and is split into pages. */
#define IBMR_DMA_GFP_NOT	(__GFP_DMA | __GFP_DMA32 | __GFP_HIGHMEM | __GFP_COMP)

/**
 * __ib_mr_dma_alloc_coherent() - ib_dma_alloc_coherent(): memory that CPU and device share
 * @dev: device
 * @size: bytes, 1 to 4 MiB (a device with a real DMA path: as its DMA path allows)
 * @dma_handle: where the device address goes
 * @gfp: how to allocate; GFP_ATOMIC from atomic context. Zone modifiers are ignored
 * @of: module that asks
 *
 * The memory is zeroed, begins on a page and needs no sync. On a virtual-DMA device the device
 * address is the kernel address, as everywhere there. The checker watches it for leaks and wrong
 * frees, but gives the device no shadow of it: coherent is what it is.
 *
 * Context: as @gfp allows.
 * Return: kernel address, or NULL; *@dma_handle is not touched then.
 */
void *__ib_mr_dma_alloc_coherent(struct ib_device *dev, size_t size, u64 *dma_handle, gfp_t gfp,
				 struct module *of)
{
	struct ibmr_dma_req req = {
		.how = IBMR_DMA_COHERENT, .call = "ib_dma_alloc_coherent", .ip = _RET_IP_, .of = of,
		.size = size, .dir = DMA_BIDIRECTIONAL,
	};
	struct ibmr_dma_dev *dd = NULL;

	if (!size || ibmr_should_fail(IBMR_FAULT_ALLOC))
		return NULL;
	if (static_branch_unlikely(&ib_mr_dma_checking)) {
		rcu_read_lock();
		dd = ibmr_dma_checked(dev);
		if (dd && ibmr_dma_should_fail(size)) {
			ibmr_dma_add_count(dd, IBMR_DMA_N_FAILED, 1);
			rcu_read_unlock();
			return NULL;
		}
		rcu_read_unlock();
	}

	gfp = (gfp & ~IBMR_DMA_GFP_NOT) | __GFP_ZERO;
	if (!ib_uses_virt_dma(dev)) {
		dma_addr_t handle;

		req.cpu = dma_alloc_coherent(dev->dma_device, size, &handle, gfp);
		req.addr = handle;
	} else {
		/* The page allocator would complain at length. */
		if (size > IBMR_DMA_COHERENT_MAX)
			return NULL;
		req.cpu = alloc_pages_exact(size, gfp);
		req.addr = (uintptr_t)req.cpu;
	}
	if (!req.cpu)
		return NULL;

	if (static_branch_unlikely(&ib_mr_dma_checking)) {
		rcu_read_lock();
		dd = ibmr_dma_checked(dev);
		if (dd)
			ibmr_dma_check_coherent(dd, &req);
		rcu_read_unlock();
	}
	if (!dd)
		ibmr_dma_unseen_add(dev, IBMR_DMA_MEMORY, of, 1);
	*dma_handle = req.addr;
	return req.cpu;
}
EXPORT_SYMBOL(__ib_mr_dma_alloc_coherent);

/**
 * ib_mr_dma_free_coherent() - ib_dma_free_coherent()
 * @dev: device
 * @size: bytes, as allocated
 * @cpu_addr: from ib_dma_alloc_coherent(), or NULL
 * @dma_handle: the device address that came with it
 *
 * Under the checker memory that was allocated with another size is freed by that, and memory that
 * is free already, or was never allocated, is not freed.
 *
 * Context: any on a virtual-DMA device, interrupts enabled on others.
 */
void ib_mr_dma_free_coherent(struct ib_device *dev, size_t size, void *cpu_addr, u64 dma_handle)
{
	struct ibmr_dma_req req = {
		.how = IBMR_DMA_COHERENT, .call = "ib_dma_free_coherent", .ip = _RET_IP_,
		.addr = dma_handle, .size = size, .dir = DMA_BIDIRECTIONAL,
	};

	if (!cpu_addr)
		return;
	if (static_branch_unlikely(&ib_mr_dma_checking)) {
		struct ibmr_dma_dev *dd;
		bool known = true;

		rcu_read_lock();
		dd = ibmr_dma_known(dev);
		if (dd)
			known = ibmr_dma_check_free(dd, &req);
		else
			ibmr_dma_unseen_add(dev, IBMR_DMA_MEMORY, NULL, -1);
		rcu_read_unlock();
		/* Reported: it may be somebody else's by now. */
		if (!known)
			return;
	} else {
		ibmr_dma_unseen_add(dev, IBMR_DMA_MEMORY, NULL, -1);
	}
	if (ib_uses_virt_dma(dev))
		free_pages_exact(cpu_addr, req.size);
	else
		dma_free_coherent(dev->dma_device, req.size, cpu_addr, dma_handle);
}
EXPORT_SYMBOL(ib_mr_dma_free_coherent);

void __ibmr_dma_used(struct ib_device *device, u64 addr, u64 len)
{
	struct ibmr_dma_dev *dd;

	rcu_read_lock();
	dd = ibmr_dma_checked(device);
	if (dd && len)
		ibmr_dma_check_used(dd, addr, len);
	rcu_read_unlock();
}
IBMR_EXPORT_INTERNAL(__ibmr_dma_used);

void __ibmr_dma_used_pages(struct ib_device *device, const u64 *pages, unsigned int nr,
			   unsigned int page_shift)
{
	const u64 size = 1ULL << page_shift;
	struct ibmr_dma_dev *dd;
	unsigned int i;

	rcu_read_lock();
	dd = ibmr_dma_checked(device);
	for (i = 0; dd && i < nr; i++)
		ibmr_dma_check_used(dd, pages[i] & ~(size - 1), size);
	rcu_read_unlock();
}
