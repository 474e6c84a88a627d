/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_FMR_H
#define IBMR_FMR_H

#include <linux/err.h>
#include <rdma/ib_fmr_pool.h>

#include "stock/magazine.h"

#define IBMR_FMR_MAX_KIB	((U16_MAX + 1) << (PAGE_SHIFT - 10))
#define IBMR_FMR_MAX_PAGES	512	/* classic HCAs had one page for a list */

enum ib_mr_reason ibmr_fmr_args(int max_pages, int page_shift, int access);

/* Blocks that so many pages of that size are, each mapped as the largest block it fits. */
static inline unsigned int ibmr_fmr_blocks(unsigned int pages, unsigned int page_shift)
{
	return pages << (page_shift - min_t(unsigned int, page_shift, IBMR_LIVE_MAX_SHIFT));
}

/* For tests: the magazine behind an object. */
struct ibmr_mag *ibmr_fmr_mag(struct ib_fmr *fmr);
struct ibmr_mag *ibmr_pool_mag(struct ib_fmr_pool *pool);
extern unsigned int ibmr_cache_idle_ms;

/* sg.c */
enum ib_mr_reason ibmr_fmr_sg_range(struct scatterlist *to, const struct scatterlist *from,
				    int nents, unsigned int offset, u64 length, u64 iova,
				    unsigned int max, unsigned int *used, unsigned int *shift);
bool ibmr_fmr_map_merged(struct ib_mr *drv, const u64 *pages, unsigned int nr, u64 iova,
			 unsigned int page_shift, unsigned int max_shift);

/* Do the first two touch, or the last two? Then others may as well. */
static __always_inline bool ibmr_fmr_touch(const u64 *pages, unsigned long nr)
{
	return pages[1] - pages[0] == PAGE_SIZE ||
	       (nr > 8 && pages[nr - 1] - pages[nr - 2] == PAGE_SIZE);
}

static __always_inline u64 ibmr_fmr_fill4(struct scatterlist *sg, const u64 *pages, u64 base)
{
	sg_dma_address(&sg[0]) = pages[0];
	sg_dma_address(&sg[1]) = pages[1];
	sg_dma_address(&sg[2]) = pages[2];
	sg_dma_address(&sg[3]) = pages[3];
	return (pages[0] - base) | (pages[1] - base) | (pages[2] - base) | (pages[3] - base);
}

/* Refused for an address that is not in the linear map; ibmr_fmr_why() will say so. */
static inline bool ibmr_fmr_not_linear(void)
{
	this_cpu_ptr(ibmr_plain)->not_linear = true;
	return false;
}

/* Why did the last map on this CPU fail? To be asked before ibmr_live_end(). */
static inline enum ib_mr_reason ibmr_fmr_why(void)
{
	struct ibmr_plain *plain = this_cpu_ptr(ibmr_plain);
	bool not_linear = plain->not_linear;

	plain->not_linear = false;
	return not_linear ? IB_MR_WHY_NOT_LINEAR : IB_MR_WHY_FMR_ARGS;
}

/**
 * ibmr_fmr_map_plain() - live-map a list of pages of PAGE_SIZE
 * @drv: MR, armed and parked
 * @pages: the list, offsets in a page ignored
 * @nr: its entries
 * @iova: address of the first byte
 *
 * The common list has single pages here and there, and goes as it is, in steps of a fixed size; the
 * last step ends with the list and may write again what the one before it wrote, which is shorter
 * than to tell what is left. An address with an offset in its page, which classic drivers did not
 * look at, makes the driver stop there (it is no neighbour of the one before it, which ends with a
 * page); that list, as any other, goes the longer way. All addresses must be in the linear map.
 *
 * Context: as for ibmr_live_map(). @nr is at most IBMR_LIVE_PAGES.
 * Return: whether all of it was mapped.
 */
static __always_inline bool ibmr_fmr_map_plain(struct ib_mr *drv, const u64 *pages,
					       unsigned long nr, u64 iova)
{
	struct scatterlist *sg = this_cpu_ptr(ibmr_plain)->sgl;
	const u64 base = ibmr_linear.base;
	u64 offset = pages[0] - base;
	unsigned long at, length;

	if (ibmr_should_fail(IBMR_FAULT_DEVICE))
		return false;
	if (nr == 1)
		goto map;
	if (unlikely(ibmr_fmr_touch(pages, nr)))
		return ibmr_fmr_map_merged(drv, pages, nr, iova, PAGE_SHIFT,
					   IBMR_LIVE_MAX_SHIFT);
	if (nr <= 4) {
		sg_dma_address(&sg[1]) = pages[1];
		sg_dma_address(&sg[nr - 2]) = pages[nr - 2];
		sg_dma_address(&sg[nr - 1]) = pages[nr - 1];
		offset |= (pages[1] - base) | (pages[nr - 2] - base) | (pages[nr - 1] - base);
	} else if (nr <= 8) {
		offset |= ibmr_fmr_fill4(&sg[0], &pages[0], base);
		offset |= ibmr_fmr_fill4(&sg[nr - 4], &pages[nr - 4], base);
	} else {
		for (at = 0; at < nr - 8; at += 8) {
			offset |= ibmr_fmr_fill4(&sg[at], &pages[at], base);
			offset |= ibmr_fmr_fill4(&sg[at + 4], &pages[at + 4], base);
		}
		offset |= ibmr_fmr_fill4(&sg[nr - 8], &pages[nr - 8], base);
		offset |= ibmr_fmr_fill4(&sg[nr - 4], &pages[nr - 4], base);
	}
map:
	if (unlikely(offset >= ibmr_linear.span))
		return ibmr_fmr_not_linear();
	sg_dma_address(&sg[0]) = pages[0] & PAGE_MASK;
	ibmr_lockdep_off();
	ibmr_map_mr_sg(drv, sg, nr, PAGE_SIZE);
	ibmr_lockdep_on();
	/* All is mapped when the length says so: the MR was parked with length 0. */
	length = nr << PAGE_SHIFT;
	if (likely(drv->length == length)) {
		ibmr_driver_reads(WRITE_ONCE(drv->iova, iova));
		return true;
	}
	ibmr_driver_reads(WRITE_ONCE(drv->length, 0));
	return ibmr_fmr_map_merged(drv, pages, length >> PAGE_SHIFT, iova, PAGE_SHIFT,
				   IBMR_LIVE_MAX_SHIFT);
}

/* The same for pages of any size. */
static inline bool ibmr_fmr_live_map(struct ib_mr *drv, const u64 *pages, unsigned int nr, u64 iova,
				     unsigned int page_shift)
{
	return likely(page_shift == PAGE_SHIFT) ?
	       ibmr_fmr_map_plain(drv, pages, nr, iova) :
	       ibmr_fmr_map_merged(drv, pages, nr, iova, page_shift, IBMR_LIVE_MAX_SHIFT);
}

#endif /* IBMR_FMR_H */
