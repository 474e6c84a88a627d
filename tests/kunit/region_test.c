// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions that work: registered in each way there is, and proved by RDMA to be what was asked
 * for.
 *
 * What a region may not be is in refuse_test.c, and how it is changed in rereg_test.c. The
 * verdicts are the device's (see view.c): content across every boundary between runs, exact ends,
 * each right given and not given. Fault 1 (a wrap past 2^64) and fault 2 (an offset that got
 * lost) of the field-bugs list are here a second time, against the device itself.
 */
#include <linux/mm.h>
#include "helpers.h"
#include "base/compat.h"

#define PG	SZ_4K
#define ALL	(LW | RR | RW | RA)
#define TOP	(0 - (1ull << 32))	/* iova above this minus the length is refused */

enum way { PHYS, KERNEL, SG };

/* Register a view. The list and the iova belong to the caller and must not be written to. */
static struct ib_mr *reg(struct kunit *test, struct ib_pd *pd, enum way way,
			 const struct ibt_view *v)
{
	struct ib_phys_buf *list, *copy;
	struct scatterlist *sgl;
	u64 iova = v->iova;
	struct ib_mr *mr;
	int n;

	if (way == KERNEL)
		return ibt_mr(test, ib_mr_reg_kernel(pd, ibt_ptr(v->buf, v->off), v->len,
						     v->access, &iova));
	if (way == SG) {
		sgl = ibt_sg(test, v->buf, v->off, v->len, &n);
		return ibt_mr(test, ib_mr_reg_sg(pd, sgl, n, v->access, &iova));
	}
	list = ibt_phys(test, v->buf, v->off, v->len, &n);
	copy = kunit_kcalloc(test, n, sizeof(*copy), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, list, n * sizeof(*list));
	mr = ibt_mr(test, ib_reg_phys_mr(pd, list, n, v->access, &iova));
	KUNIT_EXPECT_EQ(test, memcmp(copy, list, n * sizeof(*list)), 0);
	KUNIT_EXPECT_EQ(test, iova, v->iova);
	/* The list is the caller's to free or reuse from here on. */
	memset(list, 0x5a, n * sizeof(*list));
	return mr;
}

/* @iova: page aligned, the offset of the first byte is added; OWN for the address itself. */
#define OWN	U64_MAX

static const struct way_row {
	const char *desc;
	enum way way;
	enum ibt_mem mem;
	size_t size, off, len;
	u64 iova;
	int access;
} way_table[] = {
	{ "kmalloc, a page", KERNEL, IBT_KMALLOC, PG, 0, PG, OWN, ALL },
	{ "kmalloc, one byte", KERNEL, IBT_KMALLOC, 64, 33, 1, OWN, ALL },
	{ "kmalloc, inside a page", KERNEL, IBT_KMALLOC, PG, 123, 1000, OWN, ALL },
	{ "kmalloc, across pages", KERNEL, IBT_KMALLOC, 4 * PG, 4000, 5000, OWN, ALL },
	{ "kmalloc, iova 0", KERNEL, IBT_KMALLOC, 2 * PG, 100, PG, 0, ALL },
	{ "vmalloc, pages", KERNEL, IBT_VMALLOC, 5 * PG, 0, 5 * PG, OWN, ALL },
	{ "vmalloc, one byte", KERNEL, IBT_VMALLOC, PG, 4095, 1, OWN, ALL },
	{ "vmalloc, two bytes in two pages", KERNEL, IBT_VMALLOC, 2 * PG, 4095, 2, OWN, ALL },
	{ "vmalloc, ragged", KERNEL, IBT_VMALLOC, 9 * PG, 100, 7 * PG + 7, OWN, ALL },
	{ "vmalloc, low iova", KERNEL, IBT_VMALLOC, 9 * PG, 4000, 6 * PG, 0, ALL },
	{ "vmalloc, iova above 2^63", KERNEL, IBT_VMALLOC, 9 * PG, 8, 6 * PG, 1ull << 63, ALL },
	{ "pages in one run", PHYS, IBT_PAGES, SZ_256K, 0, SZ_256K, OWN, ALL },
	{ "pages in one run, iova as far as it goes", PHYS, IBT_PAGES, SZ_256K, 0, SZ_256K,
	  TOP - SZ_256K, ALL },
	{ "pages in one run, ragged", PHYS, IBT_PAGES, SZ_256K, 5, SZ_256K - 11, SZ_1M, ALL },
	{ "scattered", PHYS, IBT_SCATTER, 7 * PG, 0, 7 * PG, OWN, ALL },
	{ "scattered, ragged", PHYS, IBT_SCATTER, 7 * PG, 100, 6 * PG + 77, OWN, ALL },
	{ "scattered, iova 0", PHYS, IBT_SCATTER, 7 * PG, 4095, 3 * PG, 0, ALL },
	{ "scattered, iova below 2^63", PHYS, IBT_SCATTER, 7 * PG, 1, 7 * PG - 2,
	  (1ull << 63) - 2 * PG, ALL },
	{ "scattered, 2 MiB and a byte", PHYS, IBT_SCATTER, SZ_2M + 2 * PG, 100, SZ_2M + 1, OWN,
	  ALL },
	{ "vmalloc as a list", PHYS, IBT_VMALLOC, 9 * PG, 3, 8 * PG, SZ_2M, ALL },
	{ "scatterlist", SG, IBT_SCATTER, 5 * PG, 0, 5 * PG, OWN, ALL },
	{ "scatterlist, ragged", SG, IBT_SCATTER, 5 * PG, 4090, 3 * PG, 1ull << 40, ALL },
	{ "scatterlist of one byte", SG, IBT_KMALLOC, 64, 9, 1, OWN, ALL },
	{ "scatterlist, chained", SG, IBT_SCATTER, 300 * PG, 17, 299 * PG, OWN, ALL },
	{ "scatterlist of vmalloc", SG, IBT_VMALLOC, 5 * PG, 1, 4 * PG, OWN, ALL },
	{ "scattered, read only", PHYS, IBT_SCATTER, 3 * PG, 10, 2 * PG, OWN, RR },
	{ "scattered, no remote right", PHYS, IBT_SCATTER, 3 * PG, 10, 2 * PG, OWN, LW },
	{ "scattered, no right at all", PHYS, IBT_SCATTER, 3 * PG, 10, 2 * PG, OWN, 0 },
	{ "vmalloc, write only", KERNEL, IBT_VMALLOC, 3 * PG, 10, 2 * PG, OWN, LW | RW },
	{ "vmalloc, atomic only", KERNEL, IBT_VMALLOC, 3 * PG, 10, 2 * PG, OWN, LW | RA },
	{ "zero-based list", PHYS, IBT_SCATTER, 3 * PG, PG, 2 * PG, 0, ALL | IB_ZERO_BASED },
	{ "zero-based kernel memory", KERNEL, IBT_VMALLOC, 3 * PG, PG, PG + 5, 0,
	  ALL | IB_ZERO_BASED },
	{ "zero-based scatterlist", SG, IBT_SCATTER, 3 * PG, 0, 3 * PG, 0, RR | IB_ZERO_BASED },
};

static void way_desc(const struct way_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(way, way_table, way_desc);

static void region_ways(struct kunit *test)
{
	const struct way_row *row = test->param_value;
	struct ibt_view v = { .off = row->off, .len = row->len, .access = row->access };
	struct ib_pd *pd = ibt_pd(test);
	struct ib_mr *mr;
	u32 lkey, rkey;

	v.buf = ibt_buf(test, row->mem, row->size, 7);
	v.iova = (uintptr_t)ibt_ptr(v.buf, v.off);
	if (row->iova != OWN)
		v.iova = row->iova + offset_in_page(v.iova);
	mr = reg(test, pd, row->way, &v);
	ibt_expect_view(ibt_pair(test, pd), mr, &v);
	if (row->access & (RR | RW | RA))
		KUNIT_EXPECT_EQ(test, mr->rkey, mr->lkey);	/* SDP-like ULPs send the lkey */

	lkey = mr->lkey;
	rkey = mr->rkey;
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	ibt_expect_dead(ibt_pair(test, pd), lkey, rkey, v.iova);
}

/* No iova given: the address itself, or 0 for a zero-based one. */
static void region_default_iova(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_view v = { .len = 2 * PG, .access = RR };
	struct scatterlist *sgl;
	struct ib_mr *mr;
	int n;

	v.buf = ibt_buf(test, IBT_VMALLOC, 3 * PG, 7);
	v.off = 50;
	v.iova = (uintptr_t)v.buf->addr + 50;
	mr = ibt_mr(test, ib_mr_reg_kernel(pd, v.buf->addr + 50, v.len, RR, NULL));
	ibt_expect_view(p, mr, &v);

	v.off = 0;
	v.iova = 0;
	v.access |= IB_ZERO_BASED;
	mr = ibt_mr(test, ib_mr_reg_kernel(pd, v.buf->addr, v.len, v.access, NULL));
	ibt_expect_view(p, mr, &v);

	v.buf = ibt_buf(test, IBT_SCATTER, 3 * PG, 8);
	v.off = 60;
	v.access = RR;
	v.iova = (uintptr_t)ibt_ptr(v.buf, 60);
	sgl = ibt_sg(test, v.buf, v.off, v.len, &n);
	ibt_expect_view(p, ibt_mr(test, ib_mr_reg_sg(pd, sgl, n, RR, NULL)), &v);
}

/* Around every boundary between two runs, both ways, with spans from 2 bytes to two pages. */
static void region_run_boundaries(struct kunit *test)
{
	static const size_t span[] = { 1, 3, 8, 100, PG };
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_view v = { .off = 40, .len = 6 * PG, .access = ALL };
	struct ib_mr *mr;
	size_t edge;
	int i;

	v.buf = ibt_buf(test, IBT_SCATTER, 7 * PG, 9);
	v.iova = (3ull << 30) + 40;
	mr = reg(test, pd, PHYS, &v);
	for (edge = PG - v.off; edge < v.len; edge += PG)
		for (i = 0; i < ARRAY_SIZE(span); i++) {
			if (span[i] > edge || edge + span[i] > v.len)
				continue;
			ibt_expect_read(p, mr, &v, edge - span[i], 2 * span[i]);
			ibt_expect_write(p, mr, &v, edge - span[i], 2 * span[i]);
		}
	KUNIT_EXPECT_TRUE(test, ibt_intact(v.buf));
}

/* Fault 2: every kind of first-byte offset and length, and iovas that allow other block sizes. */
static void region_fault2_offsets(struct kunit *test)
{
	static const size_t off[] = { 0, 1, 7, 511, 512, 513, 2048, 4095 };
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_view v = { .access = ALL };
	struct ib_mr *mr;
	int i, j;

	KUNIT_ASSERT_EQ(test, ib_mr_pd_get(pd), 0);
	v.buf = ibt_buf(test, IBT_SCATTER, 4 * PG, 10);
	for (i = 0; i < ARRAY_SIZE(off); i++) {
		const size_t len[] = { 1, PG - off[i], PG - off[i] + 1, 2 * PG, 4 * PG - off[i] };

		for (j = 0; j < ARRAY_SIZE(len); j++) {
			v.off = off[i];
			v.len = len[j];
			v.iova = SZ_2G + off[i];
			mr = reg(test, pd, PHYS, &v);
			ibt_expect_read(p, mr, &v, 0, v.len);
			ibt_expect_write(p, mr, &v, 0, v.len);
			KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
		}
	}
	ib_mr_pd_put(pd);
}

static void region_fault2_blocks(struct kunit *test)
{
	static const u64 unit[] = { PG, SZ_8K, SZ_64K, SZ_512K, SZ_2M };
	static const size_t off[] = { 0, 1, 511, PG + 1, SZ_64K - 1, SZ_512K + 7 };
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_view v = { .access = ALL };
	struct ib_mr *mr;
	int i, j;

	KUNIT_ASSERT_EQ(test, ib_mr_pd_get(pd), 0);
	v.buf = ibt_buf(test, IBT_PAGES, SZ_2M, 11);
	for (i = 0; i < ARRAY_SIZE(unit); i++)
		for (j = 0; j < ARRAY_SIZE(off); j++) {
			/* iova differs from the address in the bit of the unit and above. */
			v.off = off[j];
			v.len = v.buf->size - v.off;
			v.iova = ((uintptr_t)ibt_ptr(v.buf, v.off) ^ unit[i]) & ~(1ull << 63);
			mr = reg(test, pd, KERNEL, &v);
			KUNIT_EXPECT_GE(test, (u64)mr->page_size, (u64)PG);
			KUNIT_EXPECT_LE(test, (u64)mr->page_size, unit[i]);
			ibt_expect_read(p, mr, &v, 0, 100);
			ibt_expect_read(p, mr, &v, SZ_64K - 50, SZ_64K);
			ibt_expect_read(p, mr, &v, SZ_512K - 50, 100);
			ibt_expect_read(p, mr, &v, v.len - 100, 100);
			ibt_expect_write(p, mr, &v, SZ_64K - 50, 100);
			ibt_expect_write(p, mr, &v, v.len - 1, 1);
			KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
		}
	ib_mr_pd_put(pd);
	KUNIT_EXPECT_TRUE(test, ibt_intact(v.buf));
}

/* Fault 1: requests that would reach into the region if the sum were allowed to wrap. */
static void region_fault1_wrap(struct kunit *test)
{
	static const struct { u64 iova; u32 len; } request[] = {
		{ U64_MAX, 2 }, { U64_MAX, 1 }, { 0 - 8ull, 16 }, { 0 - (u64)SZ_32K, SZ_64K },
		{ 0 - (u64)SZ_64K + 1, SZ_64K }, { 0 - (u64)SZ_4K, SZ_8K }, { 1ull << 63, 1 },
	};
	static const u64 base[] = { 0, PG, 1ull << 32, 1ull << 63, TOP - SZ_64K };
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_view v = { .len = SZ_64K, .access = ALL };
	enum ib_wc_status status;
	struct ib_mr *mr;
	int i, j, op;

	v.buf = ibt_buf(test, IBT_PAGES, SZ_64K, 12);
	for (i = 0; i < ARRAY_SIZE(base); i++) {
		v.iova = base[i];
		mr = reg(test, pd, PHYS, &v);
		for (j = 0; j < ARRAY_SIZE(request); j++) {
			if (request[j].iova == base[i])
				continue;
			for (op = IBT_READ; op <= IBT_WRITE; op++) {
				status = ibt_rdma(p, op, p->req.buf, mr->rkey, request[j].iova,
						  request[j].len);
				KUNIT_EXPECT_EQ_MSG(test, status, IB_WC_REM_ACCESS_ERR,
						    "%s [%#llx + %u), region at %#llx",
						    ibt_op_name(op), request[j].iova,
						    request[j].len, base[i]);
			}
			status = ibt_local(p, IBT_WRITE, mr->lkey, request[j].iova, request[j].len);
			KUNIT_EXPECT_TRUE(test, ibt_local_error(status));
		}
		ibt_expect_read(p, mr, &v, 0, v.len);
		KUNIT_EXPECT_TRUE(test, ibt_intact(v.buf));
		KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	}
}

/* Size. */

static void region_64m_of_vmalloc(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_view v = { .off = 1000, .len = SZ_64M, .access = ALL };
	struct ib_mr *mr;

	v.buf = ibt_buf(test, IBT_VMALLOC, SZ_64M + SZ_8K, 13);
	v.iova = (uintptr_t)ibt_ptr(v.buf, v.off);
	mr = reg(test, pd, KERNEL, &v);
	ibt_expect_view(ibt_pair(test, pd), mr, &v);
}

/* What is one run takes few blocks, named page by page or not. */
static void region_4m_in_one_run(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_view v = { .len = SZ_4M, .access = ALL };
	struct ib_phys_buf *list;
	u64 iova;
	int n, i;

	v.buf = ibt_buf(test, IBT_PAGES, SZ_4M, 14);
	n = SZ_4M / PG;
	list = kunit_kcalloc(test, n, sizeof(*list), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, list);
	for (i = 0; i < n; i++)
		list[i] = (struct ib_phys_buf){ (uintptr_t)ibt_ptr(v.buf, i * PG), PG };
	v.iova = (uintptr_t)v.buf->addr;
	iova = v.iova;
	ibt_expect_view(ibt_pair(test, pd),
			ibt_mr(test, ib_reg_phys_mr(pd, list, n, v.access, &iova)), &v);
}

/*
 * Most of memory as one region, for reading. The driver's list would not hold it in pages, so
 * that it holds it at all shows large blocks; and the buffer somewhere in it can be read, which
 * shows that they lead to the right place. Where large blocks save nothing (7.x) a part of memory
 * is taken in pages, and one page more than the driver's list can ever have is refused.
 */
static void region_a_gigabyte(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, SZ_64K, 15);
	u64 ram = (u64)totalram_pages() << PAGE_SHIFT, addr = (uintptr_t)b->addr, start, iova;
	bool large = ibmr_block_sizes(ibt_dev(test)) & SZ_1G;
	u64 most = ibmr_list_max(ibt_dev(test)), len = large ? SZ_1G : SZ_256M;
	struct ib_phys_buf whole;
	struct ibt_view v = { .buf = b, .len = SZ_64K, .access = RR };
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ib_mr *mr;

	KUNIT_ASSERT_GE(test, ram, (u64)SZ_1G + SZ_256M);
	/* Memory with the buffer in it, on the side where there is enough. */
	start = addr - PAGE_OFFSET > len + SZ_64K ? addr + SZ_64K - len : addr;
	whole = (struct ib_phys_buf){ start, len };
	iova = start;
	mr = ibt_mr(test, ib_reg_phys_mr(pd, &whole, 1, RR, &iova));
	KUNIT_EXPECT_EQ(test, mr->length, len);
	KUNIT_EXPECT_EQ(test, (u64)mr->page_size, large ? (u64)SZ_1G : (u64)PG);
	v.iova = addr;
	ibt_expect_read(p, mr, &v, 0, v.len);

	if (large || (most + 1) * PG > ram - SZ_128M)
		return;
	len = (most + 1) * PG;
	start = addr - PAGE_OFFSET > len ? addr - len : addr;
	whole = (struct ib_phys_buf){ start, len };
	iova = start;
	ibt_expect_refused_mr(test, DEVICE_PAGES, ib_reg_phys_mr(pd, &whole, 1, RR, &iova));
}

/* DMA regions: by address, with rights but no ends. */
static void region_dma(struct kunit *test)
{
	static const int access[] = { 0, LW, RR, LW | RR, LW | RW, LW | RA, ALL, MWB, RR | MWB };
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_view v = { .off = 100, .len = PG, .unbounded = true };
	struct ib_mr *mr;
	u32 lkey, rkey;
	int i, used = atomic_read(&pd->usecnt);

	v.buf = ibt_buf(test, IBT_KMALLOC, 2 * PG, 16);
	v.iova = (uintptr_t)ibt_ptr(v.buf, v.off);
	for (i = 0; i < ARRAY_SIZE(access); i++) {
		v.access = access[i];
		mr = ibt_mr(test, ib_get_dma_mr(pd, access[i]));
		KUNIT_EXPECT_GT(test, atomic_read(&pd->usecnt), used);
		ibt_expect_view(p, mr, &v);
		lkey = mr->lkey;
		rkey = mr->rkey;
		KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
		ibt_expect_dead(p, lkey, rkey, v.iova);
		KUNIT_EXPECT_EQ(test, atomic_read(&pd->usecnt), used);
	}
}

/* A key opens its region in its own domain only. */
static void region_other_pd(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test), *other = ibt_pd(test);
	struct ibt_view v = { .len = PG, .access = ALL };
	struct ibt_pair *p = ibt_pair(test, other);
	struct ib_mr *mr, *dma;

	v.buf = ibt_buf(test, IBT_PAGES, PG, 17);
	v.iova = (uintptr_t)v.buf->addr;
	mr = reg(test, pd, KERNEL, &v);
	dma = ibt_mr(test, ib_get_dma_mr(pd, ALL));
	ibt_expect_dead(p, mr->lkey, mr->rkey, v.iova);
	ibt_expect_dead(p, dma->lkey, dma->rkey, v.iova);
	KUNIT_EXPECT_TRUE(test, ibt_intact(v.buf));
	ibt_expect_view(ibt_pair(test, pd), mr, &v);
}

/* Many at once, all with the same iova: each key leads to its own memory. */
static void region_many(struct kunit *test)
{
	const int n = 200;
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_view *v = kunit_kcalloc(test, n, sizeof(*v), GFP_KERNEL);
	struct ib_mr **mr = kunit_kcalloc(test, n, sizeof(*mr), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, v);
	KUNIT_ASSERT_NOT_NULL(test, mr);
	for (i = 0; i < n; i++) {
		v[i].buf = ibt_buf(test, i & 1 ? IBT_SCATTER : IBT_KMALLOC, 2 * PG, 100 + i);
		v[i].len = 2 * PG;
		v[i].access = LW | RR | RW;
		/* A slab of two pages begins a page. */
		mr[i] = reg(test, pd, PHYS, &v[i]);
	}
	for (i = 0; i < n; i += 2)
		KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr[i]), 0);
	for (i = 1; i < n; i += 2) {
		ibt_expect_read(p, mr[i], &v[i], 0, v[i].len);
		ibt_expect_write(p, mr[i], &v[i], PG - 1, 2);
	}
}

/* Unreliable connections have no refusals to look at: what counts is what arrived. */
static void region_uc(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair_type(test, pd, IB_QPT_UC);
	struct ibt_view v = { .off = 64, .len = 128, .access = LW | RW };
	struct ib_mr *mr;
	u8 *mem;
	int i;

	v.buf = ibt_buf(test, IBT_KMALLOC, 256, 18);
	v.iova = (uintptr_t)ibt_ptr(v.buf, v.off);
	mr = reg(test, pd, KERNEL, &v);

	/* Refused ones first; they have been dealt with once a later one has arrived. */
	memset(p->req.buf, 0, SZ_4K);
	ibt_rdma(p, IBT_WRITE, p->req.buf, mr->rkey, v.iova - 1, 2);
	ibt_rdma(p, IBT_WRITE, p->req.buf, mr->rkey, v.iova + v.len - 1, 2);
	ibt_rdma(p, IBT_WRITE, p->req.buf, mr->rkey ^ 1, v.iova, 1);
	p->ready = false;	/* a dropped message leaves the target deaf */
	mem = ibt_ptr(v.buf, v.off);
	*p->req.buf = ~*mem;
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_WRITE, p->req.buf, mr->rkey, v.iova, 1),
			IB_WC_SUCCESS);
	for (i = 0; i < 1000 && READ_ONCE(*mem) != *p->req.buf; i++)
		fsleep(1000);
	KUNIT_EXPECT_EQ(test, *mem, *p->req.buf);
	ibt_fill(v.buf, v.off, 1, v.buf->seed);
	KUNIT_EXPECT_TRUE(test, ibt_intact(v.buf));
}

/*
 * As many blocks as fill the driver's list to its end: on 6.1 the driver looks past it when the
 * last byte is copied.
 */
static void region_fills_list(struct kunit *test)
{
	static const unsigned int pages[] = { 255, 256, 257, 512, 768 };
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	int i;

	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		struct ibt_view v = { .len = pages[i] * PG, .access = LW | RR | RW, .iova = SZ_1G };
		struct ib_mr *mr;

		v.buf = ibt_buf(test, IBT_SCATTER, v.len, i);
		mr = reg(test, pd, SG, &v);
		ibt_expect_read(p, mr, &v, v.len - SZ_8K, SZ_8K);
		ibt_expect_write(p, mr, &v, v.len - SZ_8K, SZ_8K);
	}
}

/* The classic structure of a query, of each kind of region. */
static void region_query(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_view v = { .off = 3, .len = 1000, .access = LW | RR | MWB, .iova = SZ_1M + 3 };
	struct ib_mr_attr attr;
	struct ib_mr *mr;

	v.buf = ibt_buf(test, IBT_PAGES, PG, 19);
	mr = reg(test, pd, PHYS, &v);
	memset(&attr, 0xff, sizeof(attr));
	KUNIT_EXPECT_EQ(test, ib_query_mr(mr, &attr), 0);
	KUNIT_EXPECT_PTR_EQ(test, attr.pd, pd);
	KUNIT_EXPECT_EQ(test, attr.device_virt_addr, v.iova);
	KUNIT_EXPECT_EQ(test, attr.size, (u64)v.len);
	KUNIT_EXPECT_EQ(test, attr.mr_access_flags, v.access);
	KUNIT_EXPECT_EQ(test, attr.lkey, mr->lkey);
	KUNIT_EXPECT_EQ(test, attr.rkey, mr->rkey);
	KUNIT_EXPECT_PTR_EQ(test, mr->pd, pd);
	KUNIT_EXPECT_PTR_EQ(test, mr->device, pd->device);
	KUNIT_EXPECT_EQ(test, mr->iova, v.iova);
	KUNIT_EXPECT_EQ(test, mr->length, (u64)v.len);

	mr = ibt_mr(test, ib_get_dma_mr(pd, LW));
	KUNIT_EXPECT_EQ(test, ib_query_mr(mr, &attr), 0);
	KUNIT_EXPECT_PTR_EQ(test, attr.pd, pd);
	KUNIT_EXPECT_EQ(test, attr.device_virt_addr, 0);
	KUNIT_EXPECT_EQ(test, attr.mr_access_flags, LW);
	KUNIT_EXPECT_EQ(test, attr.rkey, (u32)0);
}

static struct kunit_case region_cases[] = {
	KUNIT_CASE_PARAM(region_ways, way_gen_params),
	KUNIT_CASE(region_default_iova),
	KUNIT_CASE(region_run_boundaries),
	KUNIT_CASE(region_fault2_offsets),
	KUNIT_CASE(region_fault2_blocks),
	KUNIT_CASE(region_fault1_wrap),
	KUNIT_CASE(region_64m_of_vmalloc),
	KUNIT_CASE(region_4m_in_one_run),
	KUNIT_CASE(region_a_gigabyte),
	KUNIT_CASE(region_dma),
	KUNIT_CASE(region_other_pd),
	KUNIT_CASE(region_many),
	KUNIT_CASE(region_uc),
	KUNIT_CASE(region_fills_list),
	KUNIT_CASE(region_query),
	{}
};

IBT_SUITE(region, region_cases);
