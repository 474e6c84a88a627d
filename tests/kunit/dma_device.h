/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A device with a real DMA path, for the DMA tests: a platform device, whose DMA operations are the
 * kernel's own, and an ib_device that was never registered and has it as its dma_device. It has no
 * verbs; DMA helpers need none.
 */
#ifndef IBT_DMA_DEVICE_H
#define IBT_DMA_DEVICE_H

#include "helpers.h"

struct ib_device *ibt_dma_device(struct kunit *test);

/* The bytes that the device reaches at a DMA address (x86: DMA addresses are physical ones). */
void *ibt_dma_mem(u64 addr);

/* What the DMA API was given. */
enum ibt_dma_call {
	IBT_DMA_MAP, IBT_DMA_UNMAP, IBT_DMA_MAP_SG, IBT_DMA_UNMAP_SG, IBT_DMA_SYNC_CPU,
	IBT_DMA_SYNC_DEVICE, IBT_DMA_ALLOC, IBT_DMA_FREE, IBT_DMA_CALLS
};

struct ibt_dma_seen {
	unsigned int count;
	unsigned long arg[6];	/* of the last */
};

/*
 * From here to the end of the case, calls of the DMA API for @dev are recorded. With @merge, they
 * go no further: lists are mapped by merging every two entries, and the other calls do nothing.
 * Returns the records, by enum ibt_dma_call; NULL where the kernel has no kprobes.
 */
struct ibt_dma_seen *ibt_dma_listen(struct kunit *test, struct ib_device *dev, bool merge);

#endif /* IBT_DMA_DEVICE_H */
