// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What an FMR is asked to map, as the scatterlist that the driver takes.
 *
 * Neighbours that touch become one entry, and all of it is mapped in the largest blocks that its
 * inner boundaries and its iova allow: the driver spends most of its time on entries, 75
 * instructions each, and 30 on a further block of one. The list is the caller's CPU's own, so
 * nothing here sleeps, allocates or takes a lock.
 */

#include "fmr/fmr.h"
#include "mr/access.h"

/* How many pages follow each other from the first one on? In steps of eight, less is none. */
static __always_inline unsigned int in_a_row(const u64 *pages, unsigned int nr, u64 size)
{
	u64 at = pages[0];
	unsigned int i;

	for (i = 0; nr - i >= 8; i += 8, pages += 8, at += 8 * size)
		if ((pages[0] ^ at) | (pages[1] ^ (at + size)) | (pages[2] ^ (at + 2 * size)) |
		    (pages[3] ^ (at + 3 * size)) | (pages[4] ^ (at + 4 * size)) |
		    (pages[5] ^ (at + 5 * size)) | (pages[6] ^ (at + 6 * size)) |
		    (pages[7] ^ (at + 7 * size)))
			break;
	return i;
}

/*
 * A page list. Classic drivers did not look at an entry's offset in its page, so it is cut off.
 * @inner: boundaries between entries, ored
 * Return: entries used; 0 for an address that is not in the linear map.
 */
static unsigned int ibmr_fmr_sg(struct scatterlist *sgl, const u64 *pages, unsigned int nr,
				unsigned int page_shift, u64 *inner)
{
	const u64 size = 1ULL << page_shift, mask = ~(size - 1);
	struct scatterlist *sg = sgl;
	u64 end = pages[0] & mask, offset = 0;
	unsigned int i = 0, len = 0;

	*inner = 0;
	/* Pages of a large size rarely touch, and each is a block then. */
	if (page_shift > PAGE_SHIFT && nr > 1 && (pages[1] & mask) - end != size) {
		u64 all = 0;

		for (; i < nr; i++, sg++) {
			u64 addr = pages[i] & mask;

			sg_dma_address(sg) = addr;
			sg_dma_len(sg) = size;
			all |= addr;
			offset |= addr - ibmr_linear.base;
		}
		*inner = all | size;
		return offset < ibmr_linear.span ? nr : 0;
	}
	sg_dma_address(sg) = end;
	if (page_shift == PAGE_SHIFT && end == pages[0]) {
		i = in_a_row(pages, nr, PAGE_SIZE);
		len = i << PAGE_SHIFT;
		offset = end - ibmr_linear.base;
		end += len;
		if (i)		/* what is between the two is there as well */
			offset |= end - PAGE_SIZE - ibmr_linear.base;
	}
	for (; i < nr; i++) {
		u64 addr = pages[i] & mask;

		offset |= addr - ibmr_linear.base;
		if (unlikely(addr != end || len > (U32_MAX >> 1))) {
			*inner |= addr | end;
			sg_dma_len(sg) = len;
			sg++;
			sg_dma_address(sg) = addr;
			len = 0;
		}
		len += size;
		end = addr + size;
	}
	sg_dma_len(sg) = len;
	return offset < ibmr_linear.span ? sg - sgl + 1 : 0;
}

/*
 * The longer way of ibmr_fmr_map_plain(), for pages of any size. Inner boundaries are on pages and
 * iova is on one, so a block is never smaller than a page where it may be as large as that, and
 * there are never more blocks than pages. @max_shift: log2 of the largest block that is allowed.
 */
bool ibmr_fmr_map_merged(struct ib_mr *drv, const u64 *pages, unsigned int nr, u64 iova,
			 unsigned int page_shift, unsigned int max_shift)
{
	struct scatterlist *sgl = this_cpu_ptr(ibmr_scratch)->sgl;
	unsigned int nents;
	unsigned int shift;
	u64 inner;

	if (ibmr_should_fail(IBMR_FAULT_DEVICE))
		return false;
	nents = ibmr_fmr_sg(sgl, pages, nr, page_shift, &inner);
	if (unlikely(!nents))
		return ibmr_fmr_not_linear();
	shift = ibmr_live_block(inner | (iova ^ sg_dma_address(sgl)));
	return ibmr_live_map(drv, sgl, nents, (u64)nr << page_shift, iova, min(shift, max_shift));
}

/* sg_next() of an entry that has one. */
static const struct scatterlist *next(const struct scatterlist *from)
{
	from++;
	return unlikely(sg_is_chain((struct scatterlist *)from)) ?
	       sg_chain_ptr((struct scatterlist *)from) : from;
}

/* The bytes of an entry, as offsets in the linear map that are joined. */
static u64 spread(u64 addr, u64 len)
{
	return (addr - ibmr_linear.base) | (addr - ibmr_linear.base + len - 1);
}

/*
 * [@offset, @offset + @length) of a DMA-mapped list. The inner boundaries must be on pages, and
 * iova congruent to the first byte; so the pages are those of one buffer that begins at iova.
 */
enum ib_mr_reason ibmr_fmr_sg_range(struct scatterlist *to, const struct scatterlist *from,
				    int nents, unsigned int offset, u64 length, u64 iova,
				    unsigned int max, unsigned int *used, unsigned int *shift)
{
	const u64 pages = ((iova & ~PAGE_MASK) + length + PAGE_SIZE - 1) >> PAGE_SHIFT;
	struct scatterlist *sg = to;
	u64 addr, len, end, joined, inner = 0;

	for (; nents; nents--) {
		len = sg_dma_len(from);
		if (offset < len)
			break;
		if (!len)
			return IB_MR_WHY_NOT_DMA_MAPPED;
		offset -= len;
		if (nents > 1)
			from = next(from);
	}
	if (!nents)
		return IB_MR_WHY_PAST_END;
	addr = sg_dma_address(from) + offset;
	len = min(len - offset, length);
	if ((addr ^ iova) & ~PAGE_MASK)
		return IB_MR_WHY_IOVA_ALIGN;
	sg_dma_address(sg) = addr;
	sg_dma_len(sg) = len;
	joined = spread(addr, len);

	while (length -= len) {
		end = addr + len;
		if (!--nents)
			return IB_MR_WHY_PAST_END;
		from = next(from);
		len = sg_dma_len(from);
		if (unlikely(!len))
			return IB_MR_WHY_NOT_DMA_MAPPED;
		addr = sg_dma_address(from);
		len = min(len, length);
		joined |= spread(addr, len);
		if (addr == end && sg_dma_len(sg) + len <= U32_MAX) {
			sg_dma_len(sg) += len;
			continue;
		}
		inner |= addr | end;
		if (!PAGE_ALIGNED(inner))
			return IB_MR_WHY_INNER_BOUNDARY;
		if (sg - to == IBMR_LIVE_PAGES - 1)
			return IB_MR_WHY_TOO_MANY_PAGES;
		sg++;
		sg_dma_address(sg) = addr;
		sg_dma_len(sg) = len;
	}
	if (pages > max)
		return IB_MR_WHY_TOO_MANY_PAGES;
	if (joined >= ibmr_linear.span)
		return IB_MR_WHY_NOT_LINEAR;
	*used = sg - to + 1;
	*shift = ibmr_live_block(inner | (iova ^ sg_dma_address(to)));
	return IB_MR_WHY_OK;
}
