// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA checker: correct code that it once reported, or whose data it once lost, and faults that it
 * once took for others or was deaf to. tests/fuzz/legal.c mixes the like at random.
 */

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib_fmr_pool.h>

#include "dma_chk.h"

static u8 *ex_pages(struct kunit *test, int order)
{
	u8 *buf = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, order);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	return buf;
}

/* Whatever the device writes, wherever it ends: it arrives, and nothing beside it. */
static void ex_every_byte(struct kunit *test)
{
	static const char *const words[] = { "D", "DM", "DMA", "DMA!", "A", "!" };
	struct ib_device *dev;
	u8 *buf = ex_pages(test, 0);
	int mode, i, at, len;
	u64 addr;

	for (mode = IB_MR_DMA_BOUNCE; mode <= IB_MR_DMA_BOUNCE_STRICT; mode++) {
		dev = chk_begin(test, mode);
		for (i = 0; i < 256 + (int)ARRAY_SIZE(words); i++) {
			char byte = i;
			const char *data = i < 256 ? &byte : words[i - 256];

			at = 8 + i % 11;
			len = i < 256 ? 1 : strlen(data);
			memset(buf, 0x11, 64);
			addr = chk_map(test, dev, buf, 64, DMA_FROM_DEVICE);
			memcpy((u8 *)(uintptr_t)addr + at, data, len);
			if (i & 1)
				ib_dma_sync_single_for_cpu(dev, addr, 64, DMA_FROM_DEVICE);
			ib_dma_unmap_single(dev, addr, 64, DMA_FROM_DEVICE);
			KUNIT_EXPECT_EQ_MSG(test, memcmp(buf + at, data, len), 0, "%d", i);
			KUNIT_EXPECT_NULL_MSG(test, memchr_inv(buf, 0x11, at), "%d", i);
			KUNIT_EXPECT_NULL_MSG(test, memchr_inv(buf + at + len, 0x11,
							       64 - at - len), "%d", i);
		}
	}
	free_page((unsigned long)buf);
}

/* With strict the CPU sees a pattern until it is synced; what is not to be copied comes back. */
static void ex_strict(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_BOUNCE_STRICT);
	unsigned long skip = DMA_ATTR_SKIP_CPU_SYNC;
	u64 before[IB_MR_DMA_FAULT_COUNT], addr;
	u8 *buf = ex_pages(test, 0);

	chk_faults(dev, before);
	memset(buf, 0x22, 256);
	addr = chk_map(test, dev, buf, 256, DMA_FROM_DEVICE);
	KUNIT_EXPECT_EQ(test, memcmp(buf, "CPU!CPU!", 8), 0);
	memset((u8 *)(uintptr_t)addr, 0x33, 16);
	ib_dma_sync_single_for_cpu(dev, addr, 32, DMA_FROM_DEVICE);
	KUNIT_EXPECT_NULL(test, memchr_inv(buf, 0x33, 16));
	KUNIT_EXPECT_NULL(test, memchr_inv(buf + 16, 0x22, 16));
	KUNIT_EXPECT_EQ(test, memcmp(buf + 32, "CPU!", 4), 0);
	ib_dma_sync_single_for_device(dev, addr, 8, DMA_FROM_DEVICE);
	KUNIT_EXPECT_EQ(test, memcmp(buf, "CPU!CPU!", 8), 0);
	memset(buf + 8, 0x44, 8);		/* the CPU's own now */
	ib_dma_unmap_single_attrs(dev, addr, 256, DMA_FROM_DEVICE, skip);
	KUNIT_EXPECT_NULL(test, memchr_inv(buf, 0x33, 8));
	KUNIT_EXPECT_NULL(test, memchr_inv(buf + 8, 0x44, 8));
	KUNIT_EXPECT_NULL(test, memchr_inv(buf + 16, 0x22, 240));

	/* What the CPU has a part in is left to it. */
	addr = chk_map(test, dev, buf, 256, DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_NULL(test, memchr_inv(buf + 16, 0x22, 240));
	ib_dma_unmap_single(dev, addr, 256, DMA_BIDIRECTIONAL);
	chk_expect(test, dev, before, 0, 0, "strict");
	free_page((unsigned long)buf);
}

/* More than a shadow can have fails; just tracked it is mapped, however long it is. */
static void ex_large(struct kunit *test)
{
	const size_t size = (1UL << 32) + 100;
	u64 before[IB_MR_DMA_FAULT_COUNT], addr;
	u8 *buf = ex_pages(test, 0);
	struct ib_device *dev;

	dev = chk_begin(test, IB_MR_DMA_BOUNCE);
	chk_faults(dev, before);
	addr = ib_dma_map_single(dev, buf, size, DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_NE(test, ib_dma_mapping_error(dev, addr), 0);
	dev = chk_begin(test, IB_MR_DMA_TRACK);
	addr = chk_map(test, dev, buf, size, DMA_BIDIRECTIONAL);
	ib_dma_sync_single_for_cpu(dev, addr + size - 8, 8, DMA_BIDIRECTIONAL);
	ib_dma_unmap_single(dev, addr, size, DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
	chk_expect(test, dev, before, 0, 0, "large");
	free_page((unsigned long)buf);
}

/* Mapped before the checker; the same again under it, and its first bytes; the older goes last. */
static void ex_older(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_OFF);
	u64 before[IB_MR_DMA_FAULT_COUNT], older, again;
	u8 *buf = ex_pages(test, 0);

	chk_faults(dev, before);
	older = chk_map(test, dev, buf, 4096, DMA_TO_DEVICE);
	chk_mode(test, IB_MR_DMA_TRACK);
	KUNIT_EXPECT_EQ(test, ibmr_dma_unseen(dev), 1L);
	again = chk_map(test, dev, buf, 4096, DMA_TO_DEVICE);
	ib_dma_unmap_single(dev, again, 4096, DMA_TO_DEVICE);
	again = chk_map(test, dev, buf, 64, DMA_FROM_DEVICE);
	ib_dma_sync_single_for_cpu(dev, older, 4096, DMA_TO_DEVICE);
	ib_dma_sync_single_for_device(dev, older, 64, DMA_TO_DEVICE);
	ib_dma_unmap_single(dev, older, 4096, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, ibmr_dma_unseen(dev), 0L);
	ib_dma_unmap_single(dev, again, 64, DMA_FROM_DEVICE);
	chk_expect(test, dev, before, 0, 0, "older");
	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
	/* None is left, so now it is a fault. */
	ib_dma_unmap_single(dev, again, 64, DMA_FROM_DEVICE);
	chk_expect(test, dev, before, IB_MR_DMA_UNMAP_TWICE, 1, "none left");
	free_page((unsigned long)buf);
}

/* Maps made while the checker goes and comes. */
static void ex_toggled(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_TRACK);
	u64 before[IB_MR_DMA_FAULT_COUNT], addr;
	u8 *buf = ex_pages(test, 0);
	int i;

	chk_faults(dev, before);
	for (i = 0; i < 20; i++) {
		addr = chk_map(test, dev, buf, 64, DMA_TO_DEVICE);
		ib_dma_unmap_single(dev, addr, 64, DMA_TO_DEVICE);
		chk_mode(test, IB_MR_DMA_OFF);
		addr = chk_map(test, dev, buf, 64, DMA_TO_DEVICE);
		chk_mode(test, IB_MR_DMA_TRACK);
		ib_dma_unmap_single(dev, addr, 64, DMA_TO_DEVICE);
	}
	chk_expect(test, dev, before, 0, 0, "toggled");
	KUNIT_EXPECT_EQ(test, ibmr_dma_unseen(dev), 0L);
	free_page((unsigned long)buf);
}

/* One buffer, or parts of it, mapped in two ways, and synced in the way of one of them. */
static void ex_two_ways(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_TRACK);
	u64 before[IB_MR_DMA_FAULT_COUNT], both, to, pool, part;
	u8 *buf = ex_pages(test, 3);
	int order;

	chk_faults(dev, before);
	for (order = 0; order < 2; order++) {
		both = order ? 0 : chk_map(test, dev, buf, 256, DMA_BIDIRECTIONAL);
		to = chk_map(test, dev, buf, 256, DMA_TO_DEVICE);
		if (order)
			both = chk_map(test, dev, buf, 256, DMA_BIDIRECTIONAL);
		ib_dma_sync_single_for_cpu(dev, both, 256, DMA_FROM_DEVICE);
		ib_dma_sync_single_for_cpu(dev, both, 256, DMA_BIDIRECTIONAL);
		ib_dma_sync_single_for_device(dev, to, 256, DMA_TO_DEVICE);
		ib_dma_unmap_single(dev, to, 256, DMA_TO_DEVICE);
		ib_dma_unmap_single(dev, both, 256, DMA_BIDIRECTIONAL);
	}
	/* The part begins in another page than the pool, with which it is found first. */
	pool = chk_map(test, dev, buf, 8 * PAGE_SIZE, DMA_FROM_DEVICE);
	for (order = 1; order < 8; order++) {
		part = chk_map(test, dev, buf + order * PAGE_SIZE, 512, DMA_TO_DEVICE);
		ib_dma_sync_single_for_cpu(dev, part, 100, DMA_FROM_DEVICE);
		ib_dma_sync_single_for_device(dev, part, 100, DMA_FROM_DEVICE);
		ib_dma_unmap_single(dev, part, 512, DMA_TO_DEVICE);
	}
	ib_dma_unmap_single(dev, pool, 8 * PAGE_SIZE, DMA_FROM_DEVICE);
	chk_expect(test, dev, before, 0, 0, "two ways");
	free_pages((unsigned long)buf, 3);
}

/* Two maps of one address; the errors are asked in either order, the unmaps come in either. */
static void ex_asked(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_TRACK);
	u64 before[IB_MR_DMA_FAULT_COUNT], a, b;
	u8 *buf = ex_pages(test, 0);

	chk_faults(dev, before);
	a = ib_dma_map_single(dev, buf, 64, DMA_TO_DEVICE);
	b = ib_dma_map_single(dev, buf, 128, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, ib_dma_mapping_error(dev, b), 0);
	ib_dma_unmap_single(dev, b, 128, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, ib_dma_mapping_error(dev, a), 0);
	ib_dma_unmap_single(dev, a, 64, DMA_TO_DEVICE);
	/* The first was asked about, the second comes, and the first goes: it is the one meant. */
	a = chk_map(test, dev, buf, 64, DMA_TO_DEVICE);
	b = ib_dma_map_single(dev, buf, 64, DMA_TO_DEVICE);
	ib_dma_unmap_single(dev, a, 64, DMA_TO_DEVICE);
	chk_expect(test, dev, before, 0, 0, "asked");
	ib_dma_unmap_single(dev, b, 64, DMA_TO_DEVICE);
	chk_expect(test, dev, before, IB_MR_DMA_UNCHECKED, 1, "never asked");
	free_page((unsigned long)buf);
}

/* A region of a whole page, beside somebody's fragment that was just mapped. */
static void ex_neighbour(struct kunit *test)
{
	u64 before[IB_MR_DMA_FAULT_COUNT], mine, other;
	u8 *buf = ex_pages(test, 0);
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_TRACK);

	chk_faults(dev, before);
	mine = chk_map(test, dev, buf + 1000, 1000, DMA_TO_DEVICE);
	other = ib_dma_map_single(dev, buf, 1000, DMA_TO_DEVICE);
	ibmr_dma_used(dev, (uintptr_t)buf, PAGE_SIZE);
	chk_expect(test, dev, before, 0, 0, "neighbour");
	ib_dma_unmap_single(dev, mine, 1000, DMA_TO_DEVICE);
	ibmr_dma_used(dev, other, 100);
	chk_expect(test, dev, before, IB_MR_DMA_UNCHECKED, 1, "its own");
	KUNIT_EXPECT_EQ(test, ib_dma_mapping_error(dev, other), 0);
	ib_dma_unmap_single(dev, other, 1000, DMA_TO_DEVICE);
	free_page((unsigned long)buf);
}

/* Receive buffers given back unread, tables not sent, and given up: legal, and at most hints. */
static void ex_unread(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_BOUNCE);
	u64 before[IB_MR_DMA_FAULT_COUNT], addr;
	u8 *buf = ex_pages(test, 0);
	int i;

	chk_faults(dev, before);
	addr = chk_map(test, dev, buf, 256, DMA_FROM_DEVICE);
	for (i = 0; i < 3; i++) {
		memset((u8 *)(uintptr_t)addr, 0x40 + i, 200);
		ib_dma_sync_single_for_device(dev, addr, 256, DMA_FROM_DEVICE);
	}
	ib_dma_unmap_single(dev, addr, 256, DMA_FROM_DEVICE);
	KUNIT_EXPECT_NULL(test, memchr_inv(buf, 0x42, 200));
	KUNIT_EXPECT_NULL(test, memchr_inv(buf + 200, 0, 56));
	addr = chk_map(test, dev, buf, 192, DMA_TO_DEVICE);
	for (i = 0; i < 4; i++) {
		ib_dma_sync_single_for_cpu(dev, addr, 192, DMA_TO_DEVICE);
		memset(buf, i, 192);
		if (i & 1)
			ib_dma_sync_single_for_device(dev, addr, 192, DMA_TO_DEVICE);
	}
	ib_dma_unmap_single(dev, addr, 192, DMA_TO_DEVICE);
	chk_expect(test, dev, before, 0, 0, "unread");
	free_page((unsigned long)buf);
}

/* A page that a process may write to at any time is nobody's fault; the same of our own is. */
static void ex_of_processes(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_BOUNCE);
	u64 before[IB_MR_DMA_FAULT_COUNT], addr;
	struct address_space mapping = {};
	u8 *buf = ex_pages(test, 0);
	struct page *page = virt_to_page(buf);

	chk_faults(dev, before);
	addr = chk_map(test, dev, buf, 256, DMA_TO_DEVICE);
	buf[7]++;
	page->mapping = &mapping;	/* as a page of a file has one */
	ib_dma_unmap_single(dev, addr, 256, DMA_TO_DEVICE);
	page->mapping = NULL;
	chk_expect(test, dev, before, 0, 0, "of a file");
	addr = chk_map(test, dev, buf, 256, DMA_TO_DEVICE);
	buf[7]++;
	ib_dma_unmap_single(dev, addr, 256, DMA_TO_DEVICE);
	chk_expect(test, dev, before, IB_MR_DMA_CPU_WRITE, 1, "our own");
	free_page((unsigned long)buf);
}

/* Another mapping of the same memory brings what the device wrote: the CPU did not. */
static void ex_shared(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_BOUNCE);
	u64 before[IB_MR_DMA_FAULT_COUNT], to, from;
	u8 *buf = ex_pages(test, 0);
	int live;

	chk_faults(dev, before);
	for (live = 0; live < 2; live++) {
		to = chk_map(test, dev, buf, 256, DMA_TO_DEVICE);
		from = chk_map(test, dev, buf + 64, 64, DMA_FROM_DEVICE);
		memset((u8 *)(uintptr_t)from, 0x61 + live, 64);
		ib_dma_sync_single_for_cpu(dev, from, 64, DMA_FROM_DEVICE);
		if (!live)
			ib_dma_unmap_single(dev, from, 64, DMA_FROM_DEVICE);
		ib_dma_unmap_single(dev, to, 256, DMA_TO_DEVICE);
		if (live)
			ib_dma_unmap_single(dev, from, 64, DMA_FROM_DEVICE);
	}
	chk_expect(test, dev, before, 0, 0, "shared");
	free_page((unsigned long)buf);
}

/* A list of no entries, and maps that failed, make nobody deaf. */
static void ex_not_deaf(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_TRACK);
	u64 before[IB_MR_DMA_FAULT_COUNT];
	u8 *buf = ex_pages(test, 0);
	struct scatterlist sg;
	int i;

	chk_faults(dev, before);
	sg_init_one(&sg, buf, 100);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, ib_dma_map_sg(dev, &sg, 0, DMA_TO_DEVICE), 0);
		chk_mode(test, i ? IB_MR_DMA_TRACK : IB_MR_DMA_OFF);
	}
	KUNIT_EXPECT_EQ(test, ibmr_dma_unseen(dev), 0L);
	ib_dma_unmap_single(dev, (uintptr_t)buf + 8, 100, DMA_TO_DEVICE);
	chk_expect(test, dev, before, IB_MR_DMA_NEVER_MAPPED, 1, "not deaf");
	free_page((unsigned long)buf);
}

/* Coherent memory, a part of it mapped: each call is of its own, and no memory is freed twice. */
static void ex_coherent(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_OFF);
	u64 before[IB_MR_DMA_FAULT_COUNT], handle, addr;
	int under;
	u8 *mem;

	chk_faults(dev, before);
	for (under = 0; under < 2; under++) {
		chk_mode(test, under ? IB_MR_DMA_TRACK : IB_MR_DMA_OFF);
		mem = ib_dma_alloc_coherent(dev, 3 * PAGE_SIZE, &handle, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, mem);
		chk_mode(test, IB_MR_DMA_TRACK);
		addr = chk_map(test, dev, mem, 100, DMA_BIDIRECTIONAL);
		/* All three pages go, so that the last one is free afterwards. */
		get_page(virt_to_page(mem + 2 * PAGE_SIZE));
		ib_dma_free_coherent(dev, 3 * PAGE_SIZE, mem, handle);
		KUNIT_EXPECT_EQ(test, page_ref_count(virt_to_page(mem + 2 * PAGE_SIZE)), 1);
		put_page(virt_to_page(mem + 2 * PAGE_SIZE));
		ib_dma_unmap_single(dev, addr, 100, DMA_BIDIRECTIONAL);
		chk_expect(test, dev, before, 0, 0, "coherent");
	}
	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
	/* Again; the page has another owner by now, and must stay his. */
	mem = ib_dma_alloc_coherent(dev, PAGE_SIZE, &handle, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mem);
	get_page(virt_to_page(mem));
	ib_dma_free_coherent(dev, PAGE_SIZE, mem, handle);
	ib_dma_free_coherent(dev, PAGE_SIZE, mem, handle);
	KUNIT_EXPECT_EQ(test, page_ref_count(virt_to_page(mem)), 1);
	put_page(virt_to_page(mem));
	chk_expect(test, dev, before, IB_MR_DMA_UNMAP_TWICE, 1, "freed twice");
}

/* A second unmap is known as such for long. */
static void ex_twice_later(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_TRACK);
	u64 before[IB_MR_DMA_FAULT_COUNT], addr, other;
	u8 *buf = ex_pages(test, 0);
	int i;

	chk_faults(dev, before);
	addr = chk_map(test, dev, buf, 64, DMA_TO_DEVICE);
	ib_dma_unmap_single(dev, addr, 64, DMA_TO_DEVICE);
	for (i = 1; i < 200; i++) {
		other = chk_map(test, dev, buf + i, 64, DMA_TO_DEVICE);
		ib_dma_unmap_single(dev, other, 64, DMA_TO_DEVICE);
	}
	ib_dma_unmap_single(dev, addr, 64, DMA_TO_DEVICE);
	chk_expect(test, dev, before, IB_MR_DMA_UNMAP_TWICE, 1, "much later");
	free_page((unsigned long)buf);
}

/* Thousands of mappings of one buffer: each unmap finds its own. */
static void ex_many(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_TRACK);
	u64 before[IB_MR_DMA_FAULT_COUNT], addr = 0;
	u8 *buf = ex_pages(test, 0);
	int i, n = 4000;

	chk_faults(dev, before);
	for (i = 0; i < n; i++)
		addr = chk_map(test, dev, buf, 1 + i % 1000,
			       i & 1 ? DMA_TO_DEVICE : DMA_FROM_DEVICE);
	for (i = n; i--; )
		ib_dma_unmap_single(dev, addr, 1 + i % 1000,
				    i & 1 ? DMA_TO_DEVICE : DMA_FROM_DEVICE);
	chk_expect(test, dev, before, 0, 0, "many of one buffer");
	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
	free_page((unsigned long)buf);
}

/* An FMR refuses what is no memory, for every page, and keeps the mapping it has. */
static void ex_fmr(struct kunit *test)
{
	static const u64 bad[] = { 0, 0x1000, 0x7f0000001000ULL, 0xdead000000000000ULL,
				   0x5a5a5a5a5a5a5000ULL, DMA_MAPPING_ERROR };
	struct ib_fmr_attr attr = { .max_pages = 32, .max_maps = 100, .page_shift = PAGE_SHIFT };
	static const int counts[] = { 1, 2, 3, 4, 5, 8, 9, 16, 31 };
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = 32, .page_shift = PAGE_SHIFT, .access = LW | RR | RW,
		.pool_size = 4, .dirty_watermark = 2,
	};
	struct ib_pd *pd = ibt_pd(test);
	struct ib_fmr_pool *pool = ib_create_fmr_pool(pd, &param);
	struct ib_fmr *fmr = ib_alloc_fmr(pd, LW | RR | RW, &attr);
	u8 *buf = ex_pages(test, 5);
	struct ib_pool_fmr *got;
	int b, c, at, i, step;
	LIST_HEAD(list);
	u64 pages[32];

	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
	for (b = 0; b < ARRAY_SIZE(bad); b++) {
		for (c = 0; c < ARRAY_SIZE(counts); c++) {
			for (at = 0; at < counts[c]; at++) {
				/* Single pages go one way, those that touch another. */
				step = at & 1 ? 1 : 31;
				for (i = 0; i < counts[c]; i++)
					pages[i] = (uintptr_t)buf + (i * step % 32) * PAGE_SIZE;
				pages[at] = bad[b];
				got = ib_fmr_pool_map_phys(pool, pages, counts[c], 0);
				KUNIT_EXPECT_EQ_MSG(test, PTR_ERR_OR_ZERO(got), -EINVAL,
						    "%#llx, %d of %d", bad[b], at, counts[c]);
				if (!IS_ERR(got))
					ib_fmr_pool_unmap(got);
				KUNIT_EXPECT_EQ(test, ib_map_phys_fmr(fmr, pages, counts[c], 0),
						-EINVAL);
			}
		}
	}
	/* Nothing is lost by the refusals. */
	for (i = 0; i < 32; i++)
		pages[i] = (uintptr_t)buf + i * PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, ib_map_phys_fmr(fmr, pages, 32, 0), 0);
	got = ib_fmr_pool_map_phys(pool, pages, 32, 0);
	KUNIT_EXPECT_FALSE(test, IS_ERR(got));
	if (!IS_ERR(got))
		ib_fmr_pool_unmap(got);
	list_add(&fmr->list, &list);
	KUNIT_EXPECT_EQ(test, ib_unmap_fmr(&list), 0);
	KUNIT_EXPECT_EQ(test, ib_dealloc_fmr(fmr), 0);
	ib_destroy_fmr_pool(pool);
	free_pages((unsigned long)buf, 5);
}

/* Under the checker an FMR of an unasked mapping is told, and one of nothing is a hint. */
static void ex_fmr_unasked(struct kunit *test)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 9, .page_shift = PAGE_SHIFT };
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_TRACK);
	struct ib_fmr *fmr = ib_alloc_fmr(ibt_pd(test), LW | RR, &attr);
	u64 before[IB_MR_DMA_FAULT_COUNT], addr, hints;
	u8 *buf = ex_pages(test, 0);
	LIST_HEAD(list);

	KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
	chk_faults(dev, before);
	hints = ibmr_dma_hints(dev, IB_MR_DMA_NOT_MAPPED);
	addr = (uintptr_t)buf;
	KUNIT_EXPECT_EQ(test, ib_map_phys_fmr(fmr, &addr, 1, 0), 0);
	KUNIT_EXPECT_EQ(test, ibmr_dma_hints(dev, IB_MR_DMA_NOT_MAPPED), hints + 1);
	chk_expect(test, dev, before, 0, 0, "not mapped");
	addr = ib_dma_map_single(dev, buf, PAGE_SIZE, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, ib_map_phys_fmr(fmr, &addr, 1, 0), 0);
	chk_expect(test, dev, before, IB_MR_DMA_UNCHECKED, 1, "not asked");
	list_add(&fmr->list, &list);
	KUNIT_EXPECT_EQ(test, ib_unmap_fmr(&list), 0);
	KUNIT_EXPECT_EQ(test, ib_dealloc_fmr(fmr), 0);
	KUNIT_EXPECT_EQ(test, ib_dma_mapping_error(dev, addr), 0);
	ib_dma_unmap_single(dev, addr, PAGE_SIZE, DMA_TO_DEVICE);
	free_page((unsigned long)buf);
}

/* Lists that name one page again and again: zeroes to be written, and what is not wanted. */
static void ex_same_page(struct kunit *test)
{
	const int nents[] = { 2, 5, 70, 256 };
	u64 before[IB_MR_DMA_FAULT_COUNT];
	struct scatterlist *sg = kunit_kcalloc(test, 256, sizeof(*sg), GFP_KERNEL);
	u8 *buf = ex_pages(test, 0);
	struct ib_device *dev;
	int mode, i, k;

	KUNIT_ASSERT_NOT_NULL(test, sg);
	for (mode = IB_MR_DMA_TRACK; mode <= IB_MR_DMA_BOUNCE; mode++) {
		dev = chk_begin(test, mode);
		chk_faults(dev, before);
		for (i = 0; i < ARRAY_SIZE(nents); i++) {
			sg_init_table(sg, nents[i]);
			for (k = 0; k < nents[i]; k++)
				sg_set_buf(&sg[k], buf, PAGE_SIZE);
			KUNIT_ASSERT_EQ(test, ib_dma_map_sg(dev, sg, nents[i], DMA_TO_DEVICE),
					nents[i]);
			ib_dma_unmap_sg(dev, sg, nents[i], DMA_TO_DEVICE);

			KUNIT_ASSERT_EQ(test, ib_dma_map_sg(dev, sg, nents[i], DMA_FROM_DEVICE),
					nents[i]);
			memset((u8 *)(uintptr_t)sg_dma_address(sg), 0x20 + i, 100);
			ib_dma_unmap_sg(dev, sg, nents[i], DMA_FROM_DEVICE);
			chk_expect(test, dev, before, IB_MR_DMA_CPU_WRITE, 0, "one page");
		}
	}
	free_page((unsigned long)buf);
}

static struct kunit_case exact_cases[] = {
	KUNIT_CASE(ex_every_byte),
	KUNIT_CASE(ex_same_page),
	KUNIT_CASE(ex_strict),
	KUNIT_CASE(ex_large),
	KUNIT_CASE(ex_older),
	KUNIT_CASE(ex_toggled),
	KUNIT_CASE(ex_two_ways),
	KUNIT_CASE(ex_asked),
	KUNIT_CASE(ex_neighbour),
	KUNIT_CASE(ex_unread),
	KUNIT_CASE(ex_of_processes),
	KUNIT_CASE(ex_shared),
	KUNIT_CASE(ex_not_deaf),
	KUNIT_CASE(ex_coherent),
	KUNIT_CASE(ex_twice_later),
	KUNIT_CASE(ex_many),
	KUNIT_CASE(ex_fmr),
	KUNIT_CASE(ex_fmr_unasked),
	{}
};

IBT_SUITE(dma_exact, exact_cases);
