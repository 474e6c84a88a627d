/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The kernel's own DMA calls on a soft device. Only <rdma/ib_verbs.h> of this folder includes this.
 *
 * Old ULPs mapped by dma_map_single(ibdev->dma_device, ...), or by pci_map_single() of what they
 * took for the device around it. On soft RDMA dma_device is NULL since 5.11, and no DMA address
 * exists: the address is the kernel's own. So the calls are told NULL, and a soft device's own
 * struct device, from all others. Those two go the way of ib_dma_*(), through the checker when it
 * is on; every other device goes to the kernel's call as before. Where several soft devices are
 * there, NULL stands for the oldest of them.
 *
 * dev_to_node() and dma_get_max_seg_size() are asked of dma_device, too, and know of NULL here.
 */
#ifndef _CLASSIC_IB_MR_DMA_H
#define _CLASSIC_IB_MR_DMA_H

#if IB_MR_WRITTEN_FOR < 511

#include <linux/pci.h>

static inline dma_addr_t ib_mr_bare_map_single(struct device *dev, void *ptr, size_t size,
					       enum dma_data_direction dir, unsigned long attrs)
{
	struct ib_device *soft = ib_mr_soft_device(dev);

	if (soft)
		return ib_mr_dma_map_single(soft, ptr, size, dir, attrs);
	return dev ? dma_map_single_attrs(dev, ptr, size, dir, attrs) : DMA_MAPPING_ERROR;
}

static inline void ib_mr_bare_unmap_single(struct device *dev, dma_addr_t addr, size_t size,
					   enum dma_data_direction dir, unsigned long attrs)
{
	struct ib_device *soft = ib_mr_soft_device(dev);

	if (soft)
		ib_mr_dma_unmap_single(soft, addr, size, dir, attrs);
	else if (dev)
		dma_unmap_single_attrs(dev, addr, size, dir, attrs);
}

static inline dma_addr_t ib_mr_bare_map_page(struct device *dev, struct page *page, size_t offset,
					     size_t size, enum dma_data_direction dir,
					     unsigned long attrs)
{
	struct ib_device *soft = ib_mr_soft_device(dev);

	if (soft)
		return ib_mr_dma_map_page(soft, page, offset, size, dir, attrs);
	return dev ? dma_map_page_attrs(dev, page, offset, size, dir, attrs) : DMA_MAPPING_ERROR;
}

static inline void ib_mr_bare_unmap_page(struct device *dev, dma_addr_t addr, size_t size,
					 enum dma_data_direction dir, unsigned long attrs)
{
	struct ib_device *soft = ib_mr_soft_device(dev);

	if (soft)
		ib_mr_dma_unmap_page(soft, addr, size, dir, attrs);
	else if (dev)
		dma_unmap_page_attrs(dev, addr, size, dir, attrs);
}

static inline int ib_mr_bare_map_sg(struct device *dev, struct scatterlist *sg, int nents,
				    enum dma_data_direction dir, unsigned long attrs)
{
	struct ib_device *soft = ib_mr_soft_device(dev);

	if (soft)
		return ib_mr_dma_map_sg(soft, sg, nents, dir, attrs);
	return dev ? dma_map_sg_attrs(dev, sg, nents, dir, attrs) : 0;
}

static inline void ib_mr_bare_unmap_sg(struct device *dev, struct scatterlist *sg, int nents,
				       enum dma_data_direction dir, unsigned long attrs)
{
	struct ib_device *soft = ib_mr_soft_device(dev);

	if (soft)
		ib_mr_dma_unmap_sg(soft, sg, nents, dir, attrs);
	else if (dev)
		dma_unmap_sg_attrs(dev, sg, nents, dir, attrs);
}

static inline int ib_mr_bare_mapping_error(struct device *dev, dma_addr_t addr)
{
	struct ib_device *soft = ib_mr_soft_device(dev);

	if (soft)
		return ib_mr_dma_mapping_error(soft, addr);
	return dev ? dma_mapping_error(dev, addr) : -ENOMEM;
}

static inline void ib_mr_bare_sync_cpu(struct device *dev, dma_addr_t addr, size_t size,
				       enum dma_data_direction dir)
{
	struct ib_device *soft = ib_mr_soft_device(dev);

	if (soft)
		ib_mr_dma_sync_for_cpu(soft, addr, size, dir);
	else if (dev)
		dma_sync_single_for_cpu(dev, addr, size, dir);
}

static inline void ib_mr_bare_sync_device(struct device *dev, dma_addr_t addr, size_t size,
					  enum dma_data_direction dir)
{
	struct ib_device *soft = ib_mr_soft_device(dev);

	if (soft)
		ib_mr_dma_sync_for_device(soft, addr, size, dir);
	else if (dev)
		dma_sync_single_for_device(dev, addr, size, dir);
}

static inline void ib_mr_bare_sync_sg_cpu(struct device *dev, struct scatterlist *sgl, int nents,
					  enum dma_data_direction dir)
{
	struct ib_device *soft = ib_mr_soft_device(dev);
	struct scatterlist *sg;
	int i;

	if (!soft && dev)
		dma_sync_sg_for_cpu(dev, sgl, nents, dir);
	else if (soft)
		for_each_sg(sgl, sg, nents, i)
			ib_mr_dma_sync_for_cpu(soft, sg_dma_address(sg), sg_dma_len(sg), dir);
}

static inline void ib_mr_bare_sync_sg_device(struct device *dev, struct scatterlist *sgl,
					     int nents, enum dma_data_direction dir)
{
	struct ib_device *soft = ib_mr_soft_device(dev);
	struct scatterlist *sg;
	int i;

	if (!soft && dev)
		dma_sync_sg_for_device(dev, sgl, nents, dir);
	else if (soft)
		for_each_sg(sgl, sg, nents, i)
			ib_mr_dma_sync_for_device(soft, sg_dma_address(sg), sg_dma_len(sg), dir);
}

static inline void *ib_mr_bare_alloc(struct device *dev, size_t size, dma_addr_t *handle, gfp_t gfp)
{
	struct ib_device *soft = ib_mr_soft_device(dev);
	void *mem;
	u64 addr;

	if (!soft)
		return dev ? dma_alloc_coherent(dev, size, handle, gfp) : NULL;
	mem = __ib_mr_dma_alloc_coherent(soft, size, &addr, gfp, THIS_MODULE);
	if (mem)
		*handle = addr;
	return mem;
}

static inline void ib_mr_bare_free(struct device *dev, size_t size, void *mem, dma_addr_t handle)
{
	struct ib_device *soft = ib_mr_soft_device(dev);

	if (soft)
		ib_mr_dma_free_coherent(soft, size, mem, handle);
	else if (dev)
		dma_free_coherent(dev, size, mem, handle);
}

static inline unsigned int ib_mr_bare_max_seg_size(struct device *dev)
{
	return !dev || ib_mr_soft_device(dev) ? UINT_MAX : dma_get_max_seg_size(dev);
}

static inline int ib_mr_bare_node(struct device *dev)
{
	return dev ? dev_to_node(dev) : NUMA_NO_NODE;
}

/* A PCI device that was taken to be around dma_device: the NULL comes out again. */
static inline struct device *ib_mr_bare_pci(struct pci_dev *pdev)
{
	unsigned long dev = (unsigned long)pdev + offsetof(struct pci_dev, dev);

	return pdev ? (struct device *)dev : NULL;
}

#undef dma_map_single
#undef dma_unmap_single
#undef dma_map_page
#undef dma_unmap_page
#undef dma_map_sg
#undef dma_unmap_sg
#define dma_map_single(dev, ptr, size, dir)	ib_mr_bare_map_single(dev, ptr, size, dir, 0)
#define dma_unmap_single(dev, addr, size, dir)	ib_mr_bare_unmap_single(dev, addr, size, dir, 0)
#define dma_map_single_attrs(dev, ptr, size, dir, attrs) \
	ib_mr_bare_map_single(dev, ptr, size, dir, ib_mr_dma_attrs(attrs))
#define dma_unmap_single_attrs(dev, addr, size, dir, attrs) \
	ib_mr_bare_unmap_single(dev, addr, size, dir, ib_mr_dma_attrs(attrs))
#define dma_map_page(dev, page, offset, size, dir) \
	ib_mr_bare_map_page(dev, page, offset, size, dir, 0)
#define dma_unmap_page(dev, addr, size, dir)	ib_mr_bare_unmap_page(dev, addr, size, dir, 0)
#define dma_map_sg(dev, sg, nents, dir)		ib_mr_bare_map_sg(dev, sg, nents, dir, 0)
#define dma_unmap_sg(dev, sg, nents, dir)	ib_mr_bare_unmap_sg(dev, sg, nents, dir, 0)
#define dma_map_sg_attrs(dev, sg, nents, dir, attrs) \
	ib_mr_bare_map_sg(dev, sg, nents, dir, ib_mr_dma_attrs(attrs))
#define dma_unmap_sg_attrs(dev, sg, nents, dir, attrs) \
	ib_mr_bare_unmap_sg(dev, sg, nents, dir, ib_mr_dma_attrs(attrs))
#define dma_mapping_error(dev, addr)		ib_mr_bare_mapping_error(dev, addr)
#define dma_sync_single_for_cpu(dev, addr, size, dir)	ib_mr_bare_sync_cpu(dev, addr, size, dir)
#define dma_sync_single_for_device(dev, addr, size, dir) \
	ib_mr_bare_sync_device(dev, addr, size, dir)
#define dma_sync_single_range_for_cpu(dev, addr, offset, size, dir) \
	ib_mr_bare_sync_cpu(dev, (addr) + (offset), size, dir)
#define dma_sync_single_range_for_device(dev, addr, offset, size, dir) \
	ib_mr_bare_sync_device(dev, (addr) + (offset), size, dir)
#define dma_sync_sg_for_cpu(dev, sg, nents, dir)	ib_mr_bare_sync_sg_cpu(dev, sg, nents, dir)
#define dma_sync_sg_for_device(dev, sg, nents, dir) \
	ib_mr_bare_sync_sg_device(dev, sg, nents, dir)
#define dma_alloc_coherent(dev, size, handle, gfp)	ib_mr_bare_alloc(dev, size, handle, gfp)
#define dma_zalloc_coherent(dev, size, handle, gfp) \
	ib_mr_bare_alloc(dev, size, handle, (gfp) | __GFP_ZERO)
#define dma_free_coherent(dev, size, mem, handle)	ib_mr_bare_free(dev, size, mem, handle)
#define dma_get_max_seg_size(dev)			ib_mr_bare_max_seg_size(dev)
#define dev_to_node(dev)				ib_mr_bare_node(dev)

#ifndef PCI_DMA_BIDIRECTIONAL
#define PCI_DMA_BIDIRECTIONAL	DMA_BIDIRECTIONAL
#define PCI_DMA_TODEVICE	DMA_TO_DEVICE
#define PCI_DMA_FROMDEVICE	DMA_FROM_DEVICE
#define PCI_DMA_NONE		DMA_NONE
#endif
#define pci_map_single(pdev, ptr, size, dir) \
	ib_mr_bare_map_single(ib_mr_bare_pci(pdev), ptr, size, dir, 0)
#define pci_unmap_single(pdev, addr, size, dir) \
	ib_mr_bare_unmap_single(ib_mr_bare_pci(pdev), addr, size, dir, 0)
#define pci_map_page(pdev, page, offset, size, dir) \
	ib_mr_bare_map_page(ib_mr_bare_pci(pdev), page, offset, size, dir, 0)
#define pci_unmap_page(pdev, addr, size, dir) \
	ib_mr_bare_unmap_page(ib_mr_bare_pci(pdev), addr, size, dir, 0)
#define pci_map_sg(pdev, sg, nents, dir) \
	ib_mr_bare_map_sg(ib_mr_bare_pci(pdev), sg, nents, dir, 0)
#define pci_unmap_sg(pdev, sg, nents, dir) \
	ib_mr_bare_unmap_sg(ib_mr_bare_pci(pdev), sg, nents, dir, 0)
#define pci_dma_mapping_error(pdev, addr) \
	ib_mr_bare_mapping_error(ib_mr_bare_pci(pdev), addr)
#define pci_dma_sync_single_for_cpu(pdev, addr, size, dir) \
	ib_mr_bare_sync_cpu(ib_mr_bare_pci(pdev), addr, size, dir)
#define pci_dma_sync_single_for_device(pdev, addr, size, dir) \
	ib_mr_bare_sync_device(ib_mr_bare_pci(pdev), addr, size, dir)
#define pci_dma_sync_sg_for_cpu(pdev, sg, nents, dir) \
	ib_mr_bare_sync_sg_cpu(ib_mr_bare_pci(pdev), sg, nents, dir)
#define pci_dma_sync_sg_for_device(pdev, sg, nents, dir) \
	ib_mr_bare_sync_sg_device(ib_mr_bare_pci(pdev), sg, nents, dir)
#define pci_alloc_consistent(pdev, size, handle) \
	ib_mr_bare_alloc(ib_mr_bare_pci(pdev), size, handle, GFP_ATOMIC | __GFP_ZERO)
#define pci_free_consistent(pdev, size, mem, handle) \
	ib_mr_bare_free(ib_mr_bare_pci(pdev), size, mem, handle)

#endif

#endif /* _CLASSIC_IB_MR_DMA_H */
