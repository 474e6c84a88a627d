// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fast memory registration: bytes of a region's memory lent to a peer by an FMR of a pool, as a
 * storage driver does for each request. What the region itself is registered for, or whether it
 * is, does not matter: the FMR is mapped to the same DMA-mapped scatterlist.
 *
 * Each device has a pool of one FMR, so one loan at a time. Its key dies when it is given back.
 */
#include <linux/delay.h>
#include "demo.h"

#define LOAN_PAGES	64
#define LOAN_TRIES	50

/* Chosen freely, but for the offset in a page. */
#define LOAN_IOVA	0x4c00000000ULL

/* -EAGAIN may be a matter of milliseconds: MRs that were just used are being made ready again. */
static struct ib_pool_fmr *map(struct demo_region *region, u64 offset, u64 length)
{
	int tries = LOAN_TRIES;
	struct ib_pool_fmr *fmr;

	for (;;) {
		fmr = ib_fmr_pool_map_sg(region->dev->pool, region->sgt.sgl, region->sgt.nents,
					 offset, length, LOAN_IOVA + offset_in_page(offset));
		if (fmr != ERR_PTR(-EAGAIN) || !--tries)
			return fmr;
		usleep_range(1000, 2000);
	}
}

/**
 * demo_fmr_lend() - map the device's FMR to bytes, or give it back
 * @region: what the peer named; its device is locked
 * @offset: first byte, counted from the region's; not checked yet, as is @length
 * @length: bytes; 0 gives back
 * @reply: the answer's place
 *
 * Return: 0 or an errno, with which nothing has changed.
 */
int demo_fmr_lend(struct demo_region *region, u64 offset, u64 length, struct demo_reply *reply)
{
	struct demo_window_info *told = &reply->window;
	struct demo_dev *dev = region->dev;
	struct ib_pool_fmr *fmr;
	int err;

	if (!region->kind->has_sgt)
		return -EOPNOTSUPP;
	if (!length) {
		if (!dev->loan)
			return -ENOENT;
		err = ib_fmr_pool_unmap(dev->loan);
		if (!err)
			dev->loan = NULL;
		return err;
	}
	if (dev->loan)
		return -EBUSY;
	if (offset > min_t(u64, region->length, UINT_MAX) || length > region->length - offset)
		return -ERANGE;

	fmr = map(region, offset, length);
	if (IS_ERR(fmr))
		return PTR_ERR(fmr);
	dev->loan = fmr;
	told->iova = cpu_to_be64(fmr->io_virtual_address);
	told->length = cpu_to_be64(length);
	told->rkey = cpu_to_be32(fmr->fmr->rkey);
	told->access = cpu_to_be32(IB_ACCESS_REMOTE_READ);
	reply->count = cpu_to_be32(1);
	return 0;
}

int demo_fmr_get(struct demo_dev *dev)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = LOAN_PAGES,
		.page_shift = PAGE_SHIFT,
		.access = IB_ACCESS_REMOTE_READ,
		.pool_size = 1,
		.dirty_watermark = 1,
	};
	struct ib_fmr_pool *pool = ib_create_fmr_pool(dev->pd, &param);

	if (IS_ERR(pool))
		return PTR_ERR(pool);
	dev->pool = pool;
	return 0;
}

/* Before the memory is unmapped. */
void demo_fmr_put(struct demo_dev *dev)
{
	if (dev->loan)
		ib_fmr_pool_unmap(dev->loan);
	dev->loan = NULL;
	ib_destroy_fmr_pool(dev->pool);
	dev->pool = NULL;
}
