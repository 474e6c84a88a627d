// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Page vectors: any buffer as runs of device addresses.
 *
 * Every way to name memory (a physical list, a scatterlist, kernel or user memory) comes through
 * here and leaves as a sorted list of runs with a prefix sum. Neighbours that touch are merged,
 * so contiguous memory is one run however it was named, and the cost of everything after (blocks
 * given to the device, translation) depends on how scattered the memory is and not on how large.
 *
 * A vector is built in two passes over its source: the first counts and validates, the second
 * fills an array of exactly that size. That costs a second walk and saves regrowing, and it keeps
 * the promise that a scattered page costs 16 bytes. User memory comes merged already, so there the
 * number of entries is the number of runs, and one walk does.
 *
 * Overflow: an address plus a length is formed only here and only after both were checked; "end"
 * is exclusive everywhere. Comparisons elsewhere go by subtraction.
 */

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/mmzone.h>
#include <linux/overflow.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/fault.h"
#include "mr/pagevec.h"

/*
 * The largest block given to a device. Soft RoCE on 6.1 does its per-block arithmetic in int, so
 * a 2 GiB block would go negative there; nothing is gained beyond 1 GiB anyhow.
 */
#define IBMR_MAX_BLOCK_SHIFT	30

struct ibmr_pagevec_builder {
	struct ibmr_run *runs;	/* NULL while counting */
	u64 length;
	u64 end;		/* device address just past the last run */
	u32 nr;
};

static __always_inline enum ib_mr_reason add(struct ibmr_pagevec_builder *b, u64 addr, u64 len)
{
	u64 end, total;

	if (!len)
		return IB_MR_WHY_EMPTY;
	if (check_add_overflow(addr, len, &end) || check_add_overflow(b->length, len, &total))
		return IB_MR_WHY_WRAP;

	if (!b->nr || addr != b->end) {
		if (b->nr == U32_MAX)
			return IB_MR_WHY_DEVICE_PAGES;
		if (b->runs) {
			b->runs[b->nr].addr = addr;
			b->runs[b->nr].start = b->length;
		}
		b->nr++;
	}
	b->end = end;
	b->length = total;
	return IB_MR_WHY_OK;
}

/**
 * ibmr_pagevec_add() - append one piece to the vector being built
 * @b: builder, as the feed was given it
 * @addr: device address of the first byte
 * @len: bytes, not 0
 *
 * Return: IB_MR_WHY_OK, or why the piece cannot be taken.
 */
enum ib_mr_reason ibmr_pagevec_add(struct ibmr_pagevec_builder *b, u64 addr, u64 len)
{
	return add(b, addr, len);
}

static enum ib_mr_reason runs_alloc(struct ibmr_pagevec *pv, u32 nr)
{
	pv->runs = &pv->one;
	if (nr > 1) {
		pv->runs = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL :
			kvmalloc_array(nr, sizeof(*pv->runs), GFP_KERNEL | __GFP_NOWARN);
		if (!pv->runs)
			return IB_MR_WHY_NO_MEMORY;
	}
	return IB_MR_WHY_OK;
}

/**
 * ibmr_pagevec_build() - build a vector from a feed
 * @pv: where to
 * @feed: says the pieces
 * @ctx: for the feed
 *
 * Context: process; allocates.
 * Return: IB_MR_WHY_OK; anything else leaves @pv empty and nothing allocated.
 */
enum ib_mr_reason ibmr_pagevec_build(struct ibmr_pagevec *pv, ibmr_feed_fn feed, const void *ctx)
{
	struct ibmr_pagevec_builder b = {};
	enum ib_mr_reason why;
	u32 nr;

	memset(pv, 0, sizeof(*pv));
	why = feed(&b, ctx);
	if (why)
		return why;
	if (!b.nr)
		return IB_MR_WHY_EMPTY;

	nr = b.nr;
	why = runs_alloc(pv, nr);
	if (why)
		return why;
	b = (struct ibmr_pagevec_builder){ .runs = pv->runs };
	feed(&b, ctx);
	WARN_ON_ONCE(b.nr != nr);
	pv->nr = nr;
	pv->length = b.length;
	return IB_MR_WHY_OK;
}
IBMR_EXPORT_INTERNAL(ibmr_pagevec_build);
IBMR_EXPORT_INTERNAL(ibmr_pagevec_add);

/* The same from a scatterlist whose entries do not touch, in one walk; if some do, in two. */
enum ib_mr_reason ibmr_pagevec_build_sg(struct ibmr_pagevec *pv, const struct ibmr_sg_list *list)
{
	struct ibmr_pagevec_builder b = {};
	enum ib_mr_reason why;

	memset(pv, 0, sizeof(*pv));
	why = runs_alloc(pv, list->nr);
	if (why)
		return why;
	b.runs = pv->runs;
	why = ibmr_feed_sg(&b, list);
	if (!why && !b.nr)
		why = IB_MR_WHY_EMPTY;
	if (why || b.nr < list->nr) {
		ibmr_pagevec_free(pv);
		return why ? why : ibmr_pagevec_build(pv, ibmr_feed_sg, list);
	}
	pv->nr = b.nr;
	pv->length = b.length;
	return IB_MR_WHY_OK;
}

void ibmr_pagevec_free(struct ibmr_pagevec *pv)
{
	if (pv->runs != &pv->one)
		kvfree(pv->runs);
	pv->runs = NULL;
	pv->nr = 0;
}
IBMR_EXPORT_INTERNAL(ibmr_pagevec_free);

/*
 * A classic physical buffer list. The rules are mthca's, which every other classic driver shares:
 * inner boundaries are page aligned, whether or not neighbours happen to touch. The caller's
 * array is not changed (mthca rounded its first element down in place).
 */
enum ib_mr_reason ibmr_feed_phys(struct ibmr_pagevec_builder *b, const void *phys_list)
{
	const struct ibmr_phys_list *list = phys_list;
	enum ib_mr_reason why;
	int i;

	for (i = 0; i < list->nr; i++) {
		const struct ib_phys_buf *buf = &list->buf[i];

		if (i && !PAGE_ALIGNED(buf->addr))
			return IB_MR_WHY_INNER_BOUNDARY;
		why = ibmr_pagevec_add(b, buf->addr, buf->size);
		if (why)
			return why;
		if (i + 1 < list->nr && !PAGE_ALIGNED(buf->addr + buf->size))
			return IB_MR_WHY_INNER_BOUNDARY;
	}
	return IB_MR_WHY_OK;
}
IBMR_EXPORT_INTERNAL(ibmr_feed_phys);

/*
 * A DMA-mapped scatterlist, or a range of it. Unaligned inner boundaries are not looked for here:
 * entries that touch merge, as block-layer segments do, and what is left unaligned after that is
 * found by ibmr_pagevec_block().
 */
enum ib_mr_reason ibmr_feed_sg(struct ibmr_pagevec_builder *b, const void *sg_list)
{
	const struct ibmr_sg_list *list = sg_list;
	u64 skip = list->skip, left = list->length, over = 0;
	struct scatterlist *sg;
	unsigned int i;

	for_each_sg(list->sgl, sg, list->nr, i) {
		u64 addr = sg_dma_address(sg), len = sg_dma_len(sg);
		enum ib_mr_reason why;

		if (!len)
			return IB_MR_WHY_NOT_DMA_MAPPED;
		if (skip >= len && skip) {
			skip -= len;
			continue;
		}
		addr += skip;
		len -= skip;
		skip = 0;
		if (len > left) {
			over = len - left;
			len = left;
		}
		why = add(b, addr, len);
		if (why)
			return why;
		left -= len;
		if (!left)
			break;
	}
	if (list->end) {
		list->end->last = !left && i + 1 == list->nr ? sg : NULL;
		list->end->over = over;
	}
	return IB_MR_WHY_OK;
}
IBMR_EXPORT_INTERNAL(ibmr_feed_sg);

/**
 * ibmr_pagevec_block() - the largest block that carries the vector
 * @pv: vector
 * @iova: address the first byte is to have
 * @page_size_cap: the device's block sizes, a bit each
 * @shift: the result, log2 of the block
 *
 * A block works when every inner boundary falls on a multiple of it, and when iova and the first
 * byte have the same offset in it (the device finds the offset in the first block from the iova).
 * Nothing below PAGE_SIZE is ever chosen: some drivers lose the offset there.
 *
 * Return: IB_MR_WHY_OK, IB_MR_WHY_IOVA_ALIGN or IB_MR_WHY_INNER_BOUNDARY.
 */
enum ib_mr_reason ibmr_pagevec_block(const struct ibmr_pagevec *pv, u64 iova, u64 page_size_cap,
				     unsigned int *shift)
{
	u64 inner = 0, first = iova ^ pv->runs[0].addr, bits, caps;
	u32 i;

	for (i = 1; i < pv->nr; i++) {
		const struct ibmr_run *run = &pv->runs[i];

		inner |= run->addr | (run[-1].addr + (run->start - run[-1].start));
	}
	if (inner & ~PAGE_MASK)
		return IB_MR_WHY_INNER_BOUNDARY;
	if (first & ~PAGE_MASK)
		return IB_MR_WHY_IOVA_ALIGN;

	bits = inner | first | BIT_ULL(IBMR_MAX_BLOCK_SHIFT);
	bits &= -bits;			/* the largest power of two that divides all */
	caps = page_size_cap & (bits | (bits - 1)) & PAGE_MASK;
	if (!caps)
		return IB_MR_WHY_DEVICE_PAGES;
	*shift = ilog2(caps);
	return IB_MR_WHY_OK;
}
IBMR_EXPORT_INTERNAL(ibmr_pagevec_block);

/*
 * How many blocks of 1 << @shift the vector takes in the device's list. ibmr_pagevec_block()
 * allowed that size or a larger one, so runs meet at blocks, and only the first and the last may be
 * cut.
 */
u64 ibmr_pagevec_blocks(const struct ibmr_pagevec *pv, unsigned int shift)
{
	u64 mask = BIT_ULL(shift) - 1;

	return ((pv->runs[0].addr & mask) + pv->length + mask) >> shift;
}
IBMR_EXPORT_INTERNAL(ibmr_pagevec_blocks);

/*
 * Is all of it memory of the linear map? A virtual-DMA driver copies with the CPU to the address
 * it was given, so anything else would be a wild write in the kernel. Memory comes and goes in
 * subsections of 2 MiB (SPARSEMEM_VMEMMAP), or coarser, so one look in each suffices.
 */
bool ibmr_pagevec_linear(const struct ibmr_pagevec *pv)
{
	u32 i;

	for (i = 0; i < pv->nr; i++) {
		u64 addr = pv->runs[i].addr;
		u64 last = addr + ibmr_run_len(pv, i) - 1;

		if (last > ULONG_MAX)
			return false;
		for (;;) {
			if (!virt_addr_valid((void *)(uintptr_t)addr))
				return false;
			if (addr == last)
				break;
			addr = min(last, (addr | (SZ_2M - 1)) + 1);
		}
	}
	return true;
}
IBMR_EXPORT_INTERNAL(ibmr_pagevec_linear);

/*
 * An sg entry's length is 32 bits, so a run is cut at each multiple of 1 GiB, which is a multiple
 * of every block.
 */
static u64 sg_chunk_end(u64 addr, u64 end)
{
	u64 next = (addr | (SZ_1G - 1)) + 1;

	return next && next < end ? next : end;
}

unsigned int ibmr_pagevec_sg_nents(const struct ibmr_pagevec *pv)
{
	unsigned int nents = 0;
	u32 i;

	for (i = 0; i < pv->nr; i++) {
		u64 addr = pv->runs[i].addr, len = ibmr_run_len(pv, i);

		nents += ((addr + len - 1) >> 30) - (addr >> 30) + 1;
	}
	return nents;
}
IBMR_EXPORT_INTERNAL(ibmr_pagevec_sg_nents);

/* @sgl: initialised, of ibmr_pagevec_sg_nents() entries, chained or not. */
void ibmr_pagevec_to_sg(const struct ibmr_pagevec *pv, struct scatterlist *sgl)
{
	struct scatterlist *sg = sgl;
	u32 i;

	for (i = 0; i < pv->nr; i++) {
		u64 addr = pv->runs[i].addr, end = addr + ibmr_run_len(pv, i);

		while (addr < end) {
			u64 next = sg_chunk_end(addr, end);

			sg_dma_address(sg) = addr;
			sg_dma_len(sg) = next - addr;
			sg = sg_next(sg);
			addr = next;
		}
	}
}
IBMR_EXPORT_INTERNAL(ibmr_pagevec_to_sg);

/**
 * ibmr_pagevec_slice() - a part of a vector as a flat scatterlist
 * @pv: vector
 * @offset: first byte of the part
 * @length: bytes, within the vector
 * @sgl: where to
 * @max: room in it
 * @inner: all inner boundaries, ored: a block size has to divide it
 *
 * Context: any.
 * Return: entries used; 0 when there is no room for all.
 */
unsigned int ibmr_pagevec_slice(const struct ibmr_pagevec *pv, u64 offset, u64 length,
				struct scatterlist *sgl, unsigned int max, u64 *inner)
{
	size_t i = ibmr_pagevec_find(pv, offset);
	u64 skip = offset - pv->runs[i].start;
	unsigned int n = 0;

	*inner = 0;
	for (; length; i++, skip = 0) {
		u64 addr = pv->runs[i].addr + skip;
		u64 len = min(ibmr_run_len(pv, i) - skip, length);
		u64 end = addr + len;

		if (n)
			*inner |= addr;
		length -= len;
		if (length)
			*inner |= end;
		while (addr < end) {
			u64 next = sg_chunk_end(addr, end);

			if (n == max)
				return 0;
			sg_dma_address(&sgl[n]) = addr;
			sg_dma_len(&sgl[n]) = next - addr;
			n++;
			addr = next;
		}
	}
	return n;
}
IBMR_EXPORT_INTERNAL(ibmr_pagevec_slice);
