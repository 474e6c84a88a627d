// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include <linux/module.h>
#include <rdma/ib_dma.h>
u64 t_map(struct ib_device *d, void *p); u64 t_map(struct ib_device *d, void *p) { return ib_dma_map_single(d,p,64,DMA_TO_DEVICE);}
EXPORT_SYMBOL(t_map);
u64 t_map2(struct ib_device *d, void *p); u64 t_map2(struct ib_device *d, void *p) { return ib_dma_map_single_attrs(d,p,64,DMA_TO_DEVICE,NULL);}
EXPORT_SYMBOL(t_map2);
void t_unmap(struct ib_device *d, u64 p); void t_unmap(struct ib_device *d, u64 p) { ib_dma_unmap_single(d,p,64,DMA_TO_DEVICE);}
EXPORT_SYMBOL(t_unmap);
int t_err(struct ib_device *d, u64 p); int t_err(struct ib_device *d, u64 p) { return ib_dma_mapping_error(d,p);}
EXPORT_SYMBOL(t_err);
void t_sync(struct ib_device *d, u64 p); void t_sync(struct ib_device *d, u64 p) { ib_dma_sync_single_for_cpu(d,p,64,DMA_TO_DEVICE);}
EXPORT_SYMBOL(t_sync);
MODULE_DESCRIPTION("x");
MODULE_LICENSE("Dual BSD/GPL");
