// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * dma_check=bounce, by RDMA: what the device and the CPU see of each other's bytes, and when. Each
 * forgotten sync is shown to work with the checker off and to fail under it.
 */

#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib_dma.h>
#include <rdma/ib_fmr_pool.h>

#include "helpers.h"
#include "dma/dma.h"

/* How a buffer is mapped. */
enum bnc_how { BNC_SINGLE, BNC_PAGE, BNC_SG };

#define BNC_ENTRIES	3
#define BNC_PIECE	700	/* bytes of an entry of the list */
#define BNC_OFFSET	300	/* of the buffer in its page */
#define BNC_LEN		(BNC_ENTRIES * BNC_PIECE)

/*
 * A buffer of BNC_LEN bytes that begins inside a page, mapped, registered as a physical region,
 * with a peer. As a list it has three entries in one page, of which the first two meet.
 */
struct bnc {
	struct kunit *test;
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ibt_pair *pair;
	enum bnc_how how;
	enum dma_data_direction dir;
	u8 *page;
	u8 *buf;
	u8 *peer;
	u64 addr;
	struct scatterlist sg[BNC_ENTRIES];
	struct ib_mr *mr;
	u64 iova;
};

static void bnc_mode_back(struct kunit *test, void *dev)
{
	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_set(dev, IB_MR_DMA_OFF), 0);
	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
}

static void bnc_free(struct kunit *test, void *page)
{
	free_page((unsigned long)page);
}

static void bnc_begin(struct kunit *test, struct bnc *b, enum ib_mr_dma_check_mode mode)
{
	b->test = test;
	b->dev = ibt_dev(test);
	b->page = (u8 *)get_zeroed_page(GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, b->page);
	ibt_defer(test, bnc_free, b->page);
	b->buf = b->page + BNC_OFFSET;
	b->pd = ibt_pd(test);
	b->pair = ibt_pair(test, b->pd);
	b->peer = b->pair->req.buf;
	ibt_defer(test, bnc_mode_back, b->dev);
	KUNIT_ASSERT_EQ(test, ib_mr_dma_check_set(b->dev, mode), 0);
}

static void bnc_map(struct bnc *b, enum bnc_how how, enum dma_data_direction dir)
{
	struct ib_phys_buf phys = { .size = BNC_LEN };
	struct kunit *test = b->test;
	int i;

	b->how = how;
	b->dir = dir;
	if (how == BNC_SINGLE) {
		b->addr = ib_dma_map_single(b->dev, b->buf, BNC_LEN, dir);
		KUNIT_ASSERT_EQ(test, ib_dma_mapping_error(b->dev, b->addr), 0);
	} else if (how == BNC_PAGE) {
		b->addr = ib_dma_map_page(b->dev, virt_to_page(b->page), BNC_OFFSET, BNC_LEN, dir);
		KUNIT_ASSERT_EQ(test, ib_dma_mapping_error(b->dev, b->addr), 0);
	} else {
		sg_init_table(b->sg, BNC_ENTRIES);
		for (i = 0; i < BNC_ENTRIES; i++)
			sg_set_buf(&b->sg[i], b->buf + i * BNC_PIECE, BNC_PIECE);
		KUNIT_ASSERT_EQ(test, ib_dma_map_sg(b->dev, b->sg, BNC_ENTRIES, dir), BNC_ENTRIES);
		b->addr = sg_dma_address(&b->sg[0]);
	}
	/* Offsets in the page are as they were. */
	KUNIT_EXPECT_EQ(test, offset_in_page(b->addr), offset_in_page(b->buf));
	phys.addr = b->addr;
	b->iova = 0x7000000000ULL + offset_in_page(b->buf);
	if (how == BNC_SG)
		b->mr = ib_mr_reg_sg(b->pd, b->sg, BNC_ENTRIES, LW | RR | RW, &b->iova);
	else
		b->mr = ib_reg_phys_mr(b->pd, &phys, 1, LW | RR | RW, &b->iova);
	b->mr = ibt_mr(test, b->mr);
}

static void bnc_sync(struct bnc *b, bool for_cpu)
{
	int i, n = b->how == BNC_SG ? BNC_ENTRIES : 1;

	for (i = 0; i < n; i++) {
		u64 addr = b->how == BNC_SG ? sg_dma_address(&b->sg[i]) : b->addr;
		size_t len = b->how == BNC_SG ? BNC_PIECE : BNC_LEN;

		if (for_cpu)
			ib_dma_sync_single_for_cpu(b->dev, addr, len, b->dir);
		else
			ib_dma_sync_single_for_device(b->dev, addr, len, b->dir);
	}
}

static void bnc_unmap(struct bnc *b)
{
	KUNIT_EXPECT_EQ(b->test, ibt_dereg(b->test, b->mr), 0);
	if (b->how == BNC_SINGLE)
		ib_dma_unmap_single(b->dev, b->addr, BNC_LEN, b->dir);
	else if (b->how == BNC_PAGE)
		ib_dma_unmap_page(b->dev, b->addr, BNC_LEN, b->dir);
	else
		ib_dma_unmap_sg(b->dev, b->sg, BNC_ENTRIES, b->dir);
}

/* The peer writes, or reads and compares. */
static void bnc_peer_writes(struct bnc *b, u8 byte)
{
	memset(b->peer, byte, BNC_LEN);
	KUNIT_EXPECT_EQ(b->test, ibt_rdma(b->pair, IBT_WRITE, b->peer, b->mr->rkey, b->iova,
					  BNC_LEN), IB_WC_SUCCESS);
}

static bool bnc_peer_sees(struct bnc *b, u8 byte)
{
	memset(b->peer, ~byte, BNC_LEN);
	KUNIT_EXPECT_EQ(b->test, ibt_rdma(b->pair, IBT_READ, b->peer, b->mr->rkey, b->iova,
					  BNC_LEN), IB_WC_SUCCESS);
	return !memchr_inv(b->peer, byte, BNC_LEN);
}

static bool bnc_cpu_sees(struct bnc *b, u8 byte)
{
	return !memchr_inv(b->buf, byte, BNC_LEN) &&
	       !memchr_inv(b->page, 0, BNC_OFFSET) &&
	       !memchr_inv(b->buf + BNC_LEN, 0, PAGE_SIZE - BNC_OFFSET - BNC_LEN);
}

struct bnc_param {
	const char *desc;
	enum bnc_how how;
	enum ib_mr_dma_check_mode mode;
};

static const struct bnc_param bnc_params[] = {
	{ "single, bounced", BNC_SINGLE, IB_MR_DMA_BOUNCE },
	{ "page, bounced",   BNC_PAGE,	 IB_MR_DMA_BOUNCE },
	{ "list, bounced",   BNC_SG,	 IB_MR_DMA_BOUNCE },
	{ "single, tracked", BNC_SINGLE, IB_MR_DMA_TRACK },
	{ "list, off",	     BNC_SG,	 IB_MR_DMA_OFF },
};

static void bnc_desc(const struct bnc_param *p, char *desc)
{
	strscpy(desc, p->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bnc, bnc_params, bnc_desc);

/* The CPU reads what the device wrote: it is there after sync_for_cpu or the unmap, not before. */
static void bnc_cpu_reads(struct kunit *test)
{
	const struct bnc_param *p = test->param_value;
	bool bounced = p->mode == IB_MR_DMA_BOUNCE;
	struct bnc b = {};

	bnc_begin(test, &b, p->mode);
	memset(b.buf, 0x01, BNC_LEN);
	bnc_map(&b, p->how, DMA_FROM_DEVICE);
	bnc_peer_writes(&b, 0xc3);
	KUNIT_EXPECT_TRUE_MSG(test, bnc_cpu_sees(&b, bounced ? 0x01 : 0xc3), "no sync yet");
	bnc_sync(&b, true);
	KUNIT_EXPECT_TRUE_MSG(test, bnc_cpu_sees(&b, 0xc3), "after sync_for_cpu");
	bnc_sync(&b, false);
	bnc_peer_writes(&b, 0x3c);
	KUNIT_EXPECT_TRUE_MSG(test, bnc_cpu_sees(&b, bounced ? 0xc3 : 0x3c), "written again");
	bnc_unmap(&b);
	KUNIT_EXPECT_TRUE_MSG(test, bnc_cpu_sees(&b, 0x3c), "after the unmap");
}

/* The device reads what the CPU wrote: it is there after the map, or sync_for_device. */
static void bnc_device_reads(struct kunit *test)
{
	const struct bnc_param *p = test->param_value;
	bool bounced = p->mode == IB_MR_DMA_BOUNCE;
	struct bnc b = {};

	bnc_begin(test, &b, p->mode);
	memset(b.buf, 0x11, BNC_LEN);
	bnc_map(&b, p->how, DMA_TO_DEVICE);
	KUNIT_EXPECT_TRUE_MSG(test, bnc_peer_sees(&b, 0x11), "after the map");
	bnc_sync(&b, true);
	memset(b.buf, 0x22, BNC_LEN);
	KUNIT_EXPECT_TRUE_MSG(test, bnc_peer_sees(&b, bounced ? 0x11 : 0x22), "no sync yet");
	bnc_sync(&b, false);
	KUNIT_EXPECT_TRUE_MSG(test, bnc_peer_sees(&b, 0x22), "after sync_for_device");
	bnc_unmap(&b);
	KUNIT_EXPECT_TRUE(test, bnc_cpu_sees(&b, 0x22));
}

/* The CPU writes after it gave the buffer away: the device does not see it, and it is lost. */
static void bnc_cpu_writes_late(struct kunit *test)
{
	const struct bnc_param *p = test->param_value;
	bool bounced = p->mode == IB_MR_DMA_BOUNCE;
	u64 found = ib_mr_dma_reports(ibt_dev(test), IB_MR_DMA_CPU_WRITE);
	struct bnc b = {};

	bnc_begin(test, &b, p->mode);
	bnc_map(&b, p->how, DMA_BIDIRECTIONAL);
	bnc_sync(&b, true);
	memset(b.buf, 0x33, BNC_LEN);
	bnc_sync(&b, false);
	memset(b.buf, 0x44, BNC_LEN);
	KUNIT_EXPECT_TRUE_MSG(test, bnc_peer_sees(&b, bounced ? 0x33 : 0x44), "the device");
	bnc_unmap(&b);
	KUNIT_EXPECT_TRUE_MSG(test, bnc_cpu_sees(&b, bounced ? 0x33 : 0x44), "the CPU");
	/* Each entry of a list has its own owner. */
	found += !bounced ? 0 : p->how == BNC_SG ? BNC_ENTRIES : 1;
	KUNIT_EXPECT_EQ(test, ib_mr_dma_reports(b.dev, IB_MR_DMA_CPU_WRITE), found);
}

/*
 * Against the direction: what the device reads is what was there when it was mapped, which comes
 * back if the device writes nothing; and what it writes is lost, and told.
 */
static void bnc_wrong_direction(struct kunit *test)
{
	u64 found = ib_mr_dma_reports(ibt_dev(test), IB_MR_DMA_DEV_WRITE);
	struct bnc b = {};

	bnc_begin(test, &b, IB_MR_DMA_BOUNCE);
	memset(b.buf, 0x55, BNC_LEN);
	bnc_map(&b, BNC_SINGLE, DMA_FROM_DEVICE);
	memset(b.buf, 0x54, BNC_LEN);
	KUNIT_EXPECT_TRUE(test, bnc_peer_sees(&b, 0x55));
	bnc_unmap(&b);
	KUNIT_EXPECT_TRUE(test, bnc_cpu_sees(&b, 0x55));
	bnc_map(&b, BNC_SINGLE, DMA_TO_DEVICE);
	bnc_peer_writes(&b, 0x66);
	bnc_sync(&b, true);
	KUNIT_EXPECT_TRUE(test, bnc_cpu_sees(&b, 0x55));
	KUNIT_EXPECT_EQ(test, ib_mr_dma_reports(b.dev, IB_MR_DMA_DEV_WRITE), found + 1);
	bnc_unmap(&b);
	KUNIT_EXPECT_TRUE(test, bnc_cpu_sees(&b, 0x55));
}

/* What the device did not write stays as it was, to the byte. */
static void bnc_part(struct kunit *test)
{
	struct bnc b = {};
	size_t at = 803;

	bnc_begin(test, &b, IB_MR_DMA_BOUNCE);
	memset(b.buf, 0x77, BNC_LEN);
	bnc_map(&b, BNC_SINGLE, DMA_FROM_DEVICE);
	memset(b.peer, 0x88, 162);
	KUNIT_EXPECT_EQ(test, ibt_rdma(b.pair, IBT_WRITE, b.peer, b.mr->rkey, b.iova + at, 162),
			IB_WC_SUCCESS);
	bnc_unmap(&b);
	KUNIT_EXPECT_NULL(test, memchr_inv(b.buf, 0x77, at));
	KUNIT_EXPECT_NULL(test, memchr_inv(b.buf + at, 0x88, 162));
	KUNIT_EXPECT_NULL(test, memchr_inv(b.buf + at + 162, 0x77, BNC_LEN - at - 162));
}

/* A sync of a part moves that part and no other. */
static void bnc_part_sync(struct kunit *test)
{
	struct bnc b = {};

	bnc_begin(test, &b, IB_MR_DMA_BOUNCE);
	bnc_map(&b, BNC_SINGLE, DMA_BIDIRECTIONAL);
	bnc_peer_writes(&b, 0x99);
	ib_dma_sync_single_for_cpu(b.dev, b.addr + 101, 33, b.dir);
	KUNIT_EXPECT_NULL(test, memchr_inv(b.buf, 0, 101));
	KUNIT_EXPECT_NULL(test, memchr_inv(b.buf + 101, 0x99, 33));
	KUNIT_EXPECT_NULL(test, memchr_inv(b.buf + 134, 0, BNC_LEN - 134));
	memset(b.buf, 0xaa, BNC_LEN);
	ib_dma_sync_single_for_device(b.dev, b.addr + 500, 1, b.dir);
	KUNIT_EXPECT_FALSE(test, bnc_peer_sees(&b, 0x99));
	KUNIT_EXPECT_NULL(test, memchr_inv(b.peer, 0x99, 500));
	KUNIT_EXPECT_EQ(test, b.peer[500], 0xaa);
	KUNIT_EXPECT_NULL(test, memchr_inv(b.peer + 501, 0x99, BNC_LEN - 501));
	bnc_unmap(&b);
}

/* DMA_ATTR_SKIP_CPU_SYNC: the unmap copies nothing, nor the map of what only the device reads. */
static void bnc_skip_sync(struct kunit *test)
{
	struct ib_device *dev = ibt_dev(test);
	unsigned long skip = DMA_ATTR_SKIP_CPU_SYNC;
	struct bnc b = {};
	u8 *shadow;
	u64 addr;

	bnc_begin(test, &b, IB_MR_DMA_BOUNCE);
	memset(b.buf, 0xbb, 64);
	addr = ib_dma_map_single_attrs(dev, b.buf, 64, DMA_TO_DEVICE, skip);
	KUNIT_ASSERT_EQ(test, ib_dma_mapping_error(dev, addr), 0);
	KUNIT_EXPECT_NE(test, *(u8 *)(uintptr_t)addr, 0xbb);
	ib_dma_sync_single_for_device(dev, addr, 64, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, *(u8 *)(uintptr_t)addr, 0xbb);
	ib_dma_unmap_single_attrs(dev, addr, 64, DMA_TO_DEVICE, skip);

	addr = ib_dma_map_single_attrs(dev, b.buf, 64, DMA_BIDIRECTIONAL, skip);
	KUNIT_ASSERT_EQ(test, ib_dma_mapping_error(dev, addr), 0);
	shadow = (u8 *)(uintptr_t)addr;
	/* What is not written comes back as it was, so it has to be there. */
	ib_dma_sync_single_for_cpu(dev, addr, 64, DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_EQ(test, b.buf[0], 0xbb);
	ib_dma_sync_single_for_device(dev, addr, 64, DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_EQ(test, shadow[0], 0xbb);
	memset(shadow, 0xcc, 64);
	ib_dma_unmap_single_attrs(dev, addr, 64, DMA_BIDIRECTIONAL, skip);
	KUNIT_EXPECT_EQ(test, b.buf[0], 0xbb);
}

static struct ib_fmr *bnc_fmr_alloc(struct kunit *test, struct ib_pd *pd, int pages)
{
	struct ib_fmr_attr attr = {
		.max_pages = pages, .max_maps = 1, .page_shift = PAGE_SHIFT,
	};
	struct ib_fmr *fmr = ib_alloc_fmr(pd, LW | RR | RW, &attr);

	KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
	return fmr;
}

static void bnc_fmr_free(struct kunit *test, struct ib_fmr *fmr)
{
	LIST_HEAD(list);

	list_add(&fmr->list, &list);
	KUNIT_EXPECT_EQ(test, ib_unmap_fmr(&list), 0);
	KUNIT_EXPECT_EQ(test, ib_dealloc_fmr(fmr), 0);
}

/*
 * Whole pages with ragged ends, large enough for several shadows, registered as a physical region,
 * and by a page list of an FMR. The peer writes all of it, across the seams.
 */
static void bnc_pages_of(struct kunit *test, bool by_fmr)
{
	enum { PAGES = 6, FIRST = 1000, LAST = 500 };
	struct ib_fmr *fmr = NULL;
	struct ib_mr *mr = NULL;
	u64 list[PAGES];
	u32 rkey;
	size_t len = PAGES * PAGE_SIZE - FIRST - LAST;
	struct ib_phys_buf phys[PAGES];
	struct scatterlist sg[PAGES];
	struct page *page[PAGES];
	struct bnc b = {};
	u64 iova = FIRST;
	int i;

	bnc_begin(test, &b, IB_MR_DMA_BOUNCE);
	sg_init_table(sg, PAGES);
	for (i = 0; i < PAGES; i++) {
		page[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
		KUNIT_ASSERT_NOT_NULL(test, page[i]);
		sg_set_page(&sg[i], page[i], PAGE_SIZE, 0);
	}
	sg_set_page(&sg[0], page[0], PAGE_SIZE - FIRST, FIRST);
	sg_set_page(&sg[PAGES - 1], page[PAGES - 1], PAGE_SIZE - LAST, 0);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(b.dev, sg, PAGES, DMA_FROM_DEVICE), (int)PAGES);
	for (i = 0; i < PAGES; i++) {
		phys[i].addr = sg_dma_address(&sg[i]);
		phys[i].size = sg_dma_len(&sg[i]);
		list[i] = phys[i].addr & PAGE_MASK;
		KUNIT_EXPECT_NE(test, list[i], (u64)(uintptr_t)page_address(page[i]));
	}
	if (by_fmr) {
		fmr = bnc_fmr_alloc(test, b.pd, PAGES);
		KUNIT_EXPECT_EQ(test, ib_map_phys_fmr(fmr, list, PAGES, 0), 0);
		rkey = fmr->rkey;
	} else {
		mr = ibt_mr(test, ib_reg_phys_mr(b.pd, phys, PAGES, LW | RR | RW, &iova));
		rkey = mr->rkey;
	}
	memset(b.peer, 0xdd, len);
	KUNIT_EXPECT_EQ(test, ibt_rdma(b.pair, IBT_WRITE, b.peer, rkey, iova, len),
			IB_WC_SUCCESS);
	if (by_fmr)
		bnc_fmr_free(test, fmr);
	else
		KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	ib_dma_unmap_sg(b.dev, sg, PAGES, DMA_FROM_DEVICE);
	for (i = 0; i < PAGES; i++) {
		u8 *va = page_address(page[i]);
		size_t from = i ? 0 : FIRST;
		size_t to = i < PAGES - 1 ? PAGE_SIZE : PAGE_SIZE - LAST;

		KUNIT_EXPECT_NULL(test, memchr_inv(va, 0, from));
		KUNIT_EXPECT_NULL_MSG(test, memchr_inv(va + from, 0xdd, to - from), "page %d", i);
		KUNIT_EXPECT_NULL(test, memchr_inv(va + to, 0, PAGE_SIZE - to));
		__free_page(page[i]);
	}
}

static void bnc_pages(struct kunit *test)
{
	bnc_pages_of(test, false);
}

static void bnc_fmr(struct kunit *test)
{
	bnc_pages_of(test, true);
}

/* A region wider than its mapping, as page lists make it: the peer strays, and is seen. */
static void bnc_stray(struct kunit *test)
{
	u64 found = ib_mr_dma_reports(ibt_dev(test), IB_MR_DMA_DEV_OUTSIDE);
	struct ib_phys_buf phys = { .size = PAGE_SIZE };
	struct bnc b = {};
	struct ib_mr *mr;
	u64 iova = 0;

	bnc_begin(test, &b, IB_MR_DMA_BOUNCE);
	bnc_map(&b, BNC_SINGLE, DMA_FROM_DEVICE);
	phys.addr = b.addr & PAGE_MASK;
	mr = ibt_mr(test, ib_reg_phys_mr(b.pd, &phys, 1, LW | RR | RW, &iova));
	b.peer[0] = 0xee;
	KUNIT_EXPECT_EQ(test, ibt_rdma(b.pair, IBT_WRITE, b.peer, mr->rkey,
				       BNC_OFFSET + BNC_LEN + 10, 1), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	bnc_unmap(&b);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_reports(b.dev, IB_MR_DMA_DEV_OUTSIDE), found + 1);
}

static struct kunit_case bnc_cases[] = {
	KUNIT_CASE_PARAM(bnc_cpu_reads, bnc_gen_params),
	KUNIT_CASE_PARAM(bnc_device_reads, bnc_gen_params),
	KUNIT_CASE_PARAM(bnc_cpu_writes_late, bnc_gen_params),
	KUNIT_CASE(bnc_wrong_direction),
	KUNIT_CASE(bnc_part),
	KUNIT_CASE(bnc_part_sync),
	KUNIT_CASE(bnc_skip_sync),
	KUNIT_CASE(bnc_pages),
	KUNIT_CASE(bnc_fmr),
	KUNIT_CASE(bnc_stray),
	{}
};

IBT_SUITE(dma_bounce, bnc_cases);
