// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* DMA helpers, beside the kernel's own. */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <rdma/ib_dma.h>

#include "bench.h"

#define CALLS	1000

/* @call so many times; what one takes, loop included, which is the same for all. */
#define MANY(name, n, call)						\
do {									\
	unsigned long flags_;						\
	u64 from_;							\
	int k_;								\
									\
	local_irq_save(flags_);						\
	from_ = bench_clock();						\
	for (k_ = 0; k_ < CALLS; k_++) {				\
		call;							\
		OPTIMIZER_HIDE_VAR(addr);				\
	}								\
	from_ = bench_clock() - from_;					\
	local_irq_restore(flags_);					\
	bench_result(name, n, from_ / CALLS);				\
} while (0)

/* A name in brackets is the kernel's own inline, not the macro that leads to ours. */
static void dma(struct bench *b)
{
	void *page = page_address(b->page[0]);
	struct ib_device *dev = b->dev;
	u64 addr = 0;

	MANY("dma_map_stock", 1, addr = (ib_dma_map_single)(dev, page, 4096, DMA_TO_DEVICE));
	MANY("dma_map_off", 1, addr = ib_dma_map_single(dev, page, 4096, DMA_TO_DEVICE));
	MANY("dma_unmap_stock", 1, (ib_dma_unmap_single)(dev, addr, 4096, DMA_TO_DEVICE));
	MANY("dma_unmap_off", 1, ib_dma_unmap_single(dev, addr, 4096, DMA_TO_DEVICE));
	MANY("dma_sync_stock", 1,
	     (ib_dma_sync_single_for_cpu)(dev, addr, 4096, DMA_TO_DEVICE));
	MANY("dma_sync_off", 1, ib_dma_sync_single_for_cpu(dev, addr, 4096, DMA_TO_DEVICE));
	MANY("dma_map_sg_stock", 16, addr += (ib_dma_map_sg)(dev, b->sgl, 16, DMA_TO_DEVICE));
	MANY("dma_map_sg_off", 16, addr += ib_dma_map_sg(dev, b->sgl, 16, DMA_TO_DEVICE));
	MANY("dma_unmap_sg_stock", 16, (ib_dma_unmap_sg)(dev, b->sgl, 16, DMA_TO_DEVICE));
	MANY("dma_unmap_sg_off", 16, ib_dma_unmap_sg(dev, b->sgl, 16, DMA_TO_DEVICE));
}

/* A whole mapping, made, looked at, synced and undone, under the checker. */
static void dma_cycle(struct bench *b, const char *one, const char *sg)
{
	void *page = page_address(b->page[0]);
	struct ib_device *dev = b->dev;
	u64 addr = 0;

	MANY(one, 1, ({
		addr = ib_dma_map_single(dev, page, 4096, DMA_FROM_DEVICE);
		if (!ib_dma_mapping_error(dev, addr)) {
			ib_dma_sync_single_for_cpu(dev, addr, 4096, DMA_FROM_DEVICE);
			ib_dma_unmap_single(dev, addr, 4096, DMA_FROM_DEVICE);
		}
	}));
	MANY(sg, 16, ({
		addr = ib_dma_map_sg(dev, b->sgl, 16, DMA_FROM_DEVICE);
		if (addr)
			ib_dma_unmap_sg(dev, b->sgl, 16, DMA_FROM_DEVICE);
	}));
}

static int dma_checked(struct bench *b)
{
	int err;

	dma_cycle(b, "dma_cycle_off", "dma_cycle_sg_off");
	err = ib_mr_dma_check_set(b->dev, IB_MR_DMA_TRACK);
	if (err)
		return bench_fail("dma track", err);
	dma_cycle(b, "dma_cycle_track", "dma_cycle_sg_track");
	err = ib_mr_dma_check_set(b->dev, IB_MR_DMA_BOUNCE);
	if (!err)
		dma_cycle(b, "dma_cycle_bounce", "dma_cycle_sg_bounce");
	ib_mr_dma_check_set(b->dev, IB_MR_DMA_OFF);
	return err ? bench_fail("dma bounce", err) : 0;
}

int bench_dma(struct bench *b)
{
	dma(b);
	return dma_checked(b);
}
