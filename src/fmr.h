/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_FMR_H
#define IBMR_FMR_H

#include <linux/err.h>
#include <rdma/ib_fmr_pool.h>

#include "magazine.h"

#define IBMR_FMR_MAX_PAGES	512	/* classic HCAs had one page for a list */

enum ib_mr_reason ibmr_fmr_args(int max_pages, int page_shift, int access);

/* For tests: the magazine behind an object. */
struct ibmr_mag *ibmr_fmr_mag(struct ib_fmr *fmr);
struct ibmr_mag *ibmr_pool_mag(struct ib_fmr_pool *pool);
extern unsigned int ibmr_cache_idle_ms;

/*
 * A page list as a scatterlist. Neighbours that touch become one entry, which is cheaper for the
 * driver; classic drivers did not look at an entry's offset in its page, so it is cut off here.
 * Return: entries used.
 */
static inline unsigned int ibmr_fmr_sg(struct scatterlist *sgl, const u64 *pages, unsigned int nr,
				       unsigned int page_shift)
{
	const u64 size = 1ULL << page_shift, mask = ~(size - 1);
	struct scatterlist *sg = sgl;
	u64 end = pages[0] & mask;
	unsigned int i, len = 0;

	sg_dma_address(sg) = end;
	for (i = 0; i < nr; i++) {
		u64 addr = pages[i] & mask;

		if (unlikely(addr != end || len > (U32_MAX >> 1))) {
			sg_dma_len(sg) = len;
			sg++;
			sg_dma_address(sg) = addr;
			len = 0;
		}
		len += size;
		end = addr + size;
	}
	sg_dma_len(sg) = len;
	return sg - sgl + 1;
}

#endif /* IBMR_FMR_H */
