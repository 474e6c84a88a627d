// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Page vectors, without a device's help.
 *
 * Addresses here are made up, so any geometry can be tried: 1 TiB of memory costs no more than a
 * page. What a device does with the result is played by a model: it takes the blocks of every
 * run, cut down to the block size as ib_sg_to_pages() does, and finds the byte at an iova by
 * shifting. Wherever the vector says a block size works, the model must find each byte at the
 * address the caller named. That is fault 2 of the field-bugs list (the offset inside a block got
 * lost), tried for every block size and first-byte offset.
 */
#include <linux/random.h>
#include <linux/vmalloc.h>
#include "helpers.h"
#include "mr/pagevec.h"

#define K	SZ_1K
#define PG	((u64)SZ_4K)
#define MAX_PIECES	8

/* A buffer as a table has it: up to the first piece of size 0. */
struct geometry {
	const char *desc;
	struct ib_phys_buf piece[MAX_PIECES];
	enum ib_mr_reason why;
	u32 runs;
	u64 iova;
	u64 cap;
	unsigned int shift;
	u64 blocks;
};

static int pieces(const struct geometry *g)
{
	int n = 0;

	while (n < MAX_PIECES && g->piece[n].size)
		n++;
	return n;
}

static void geometry_desc(const struct geometry *g, char *desc)
{
	strscpy(desc, g->desc, KUNIT_PARAM_DESC_SIZE);
}

static void free_vector(struct kunit *test, void *arg)
{
	ibmr_pagevec_free(arg);
}

static struct ibmr_pagevec *build_phys(struct kunit *test, const struct ib_phys_buf *buf, int nr,
				       enum ib_mr_reason want)
{
	struct ibmr_pagevec *pv = kunit_kzalloc(test, sizeof(*pv), GFP_KERNEL);
	struct ibmr_phys_list list = { .buf = buf, .nr = nr };
	enum ib_mr_reason why;

	KUNIT_ASSERT_NOT_NULL(test, pv);
	why = ibmr_pagevec_build(pv, ibmr_feed_phys, &list);
	KUNIT_ASSERT_EQ_MSG(test, why, want, "%s", ib_mr_reason_name(why));
	if (why)
		return NULL;
	ibt_defer(test, free_vector, pv);
	return pv;
}

/* The address of byte @off by the caller's own list. */
static u64 address_of(const struct ib_phys_buf *buf, int nr, u64 off)
{
	int i;

	for (i = 0; i < nr && off >= buf[i].size; i++)
		off -= buf[i].size;
	return i < nr ? buf[i].addr + off : 0;
}

static u64 total_of(const struct ib_phys_buf *buf, int nr)
{
	u64 sum = 0;

	while (nr--)
		sum += buf[nr].size;
	return sum;
}

/* The address of byte @off by the vector: its run, and the place in it. */
static u64 looked_up(const struct ibmr_pagevec *pv, u64 off)
{
	u32 i = ibmr_pagevec_find(pv, off);

	return pv->runs[i].addr + (off - pv->runs[i].start);
}

/* What must hold of any vector. */
static void expect_sound(struct kunit *test, const struct ibmr_pagevec *pv)
{
	u64 at = 0;
	u32 i;

	for (i = 0; i < pv->nr; i++) {
		KUNIT_EXPECT_EQ(test, pv->runs[i].start, at);
		KUNIT_EXPECT_GT(test, ibmr_run_len(pv, i), (u64)0);
		if (i)
			KUNIT_EXPECT_NE_MSG(test, pv->runs[i - 1].addr + ibmr_run_len(pv, i - 1),
					    pv->runs[i].addr, "runs %u and %u touch", i - 1, i);
		at = ibmr_run_end(pv, i);
	}
	KUNIT_EXPECT_EQ(test, at, pv->length);
}

/* Both ends of every piece, through the vector. */
static void expect_lookups(struct kunit *test, const struct ibmr_pagevec *pv,
			   const struct ib_phys_buf *buf, int nr)
{
	u64 at = 0;
	int i;

	for (i = 0; i < nr; at += buf[i].size, i++) {
		KUNIT_EXPECT_EQ(test, looked_up(pv, at), buf[i].addr);
		KUNIT_EXPECT_EQ(test, looked_up(pv, at + buf[i].size - 1),
				buf[i].addr + buf[i].size - 1);
	}
}

/*
 * The device of the model. Returns the address it would touch for the byte at @off, given blocks
 * of 1 << @shift.
 */
static u64 device_address(const struct ibmr_pagevec *pv, unsigned int shift, u64 iova, u64 off)
{
	u64 mask = (1ull << shift) - 1, at = (iova & mask) + off, nth = at >> shift, n;
	u32 i;

	for (i = 0; i < pv->nr; i++) {
		u64 first = pv->runs[i].addr & ~mask;
		u64 last = (pv->runs[i].addr + ibmr_run_len(pv, i) - 1) & ~mask;

		n = ((last - first) >> shift) + 1;
		if (nth < n)
			return first + (nth << shift) + (at & mask);
		nth -= n;
	}
	return 0;
}

static void expect_device(struct kunit *test, const struct ibmr_pagevec *pv, unsigned int shift,
			  u64 iova, const struct ib_phys_buf *buf, int nr)
{
	u64 at = 0, probe;
	int i, j;

	for (i = 0; i < nr; at += buf[i].size, i++) {
		const u64 places[] = { 0, 1, buf[i].size / 2, buf[i].size - 1 };

		for (j = 0; j < ARRAY_SIZE(places); j++) {
			probe = at + min(places[j], buf[i].size - 1);
			KUNIT_EXPECT_EQ_MSG(test, device_address(pv, shift, iova, probe),
					    address_of(buf, nr, probe),
					    "byte %llu, blocks of 1 << %u, iova %#llx", probe,
					    shift, iova);
		}
	}
}

/* Building. */

static const struct geometry build_table[] = {
	{ "one byte", { { PG, 1 } }, .runs = 1 },
	{ "one page", { { PG, PG } }, .runs = 1 },
	{ "starts and ends inside a page", { { PG + 7, 100 } }, .runs = 1 },
	{ "two that touch", { { PG, PG }, { 2 * PG, PG } }, .runs = 1 },
	{ "two apart", { { PG, PG }, { 3 * PG, PG } }, .runs = 2 },
	{ "two in reverse", { { 2 * PG, PG }, { PG, PG } }, .runs = 2 },
	{ "the same twice", { { PG, PG }, { PG, PG } }, .runs = 2 },
	{ "ragged ends", { { PG + 100, PG - 100 }, { 9 * PG, PG }, { 4 * PG, 1 } }, .runs = 3 },
	{ "touching, then apart, then touching",
	  { { PG, PG }, { 2 * PG, PG }, { 7 * PG, PG }, { 8 * PG, 5 } }, .runs = 2 },
	{ "1 TiB", { { 0, 1ull << 40 } }, .runs = 1 },
	{ "up to the last page but one", { { 0 - 2 * PG, PG } }, .runs = 1 },

	{ "nothing", { }, IB_MR_WHY_EMPTY },
	{ "wraps", { { 0 - PG, 2 * PG } }, IB_MR_WHY_WRAP },
	{ "wraps by one byte", { { 0 - PG, PG + 1 } }, IB_MR_WHY_WRAP },
	{ "the largest length", { { 1, U64_MAX } }, IB_MR_WHY_WRAP },
	{ "the sum of the lengths wraps",
	  { { 0, 1ull << 63 }, { PG, (1ull << 63) - PG }, { 0, PG } }, IB_MR_WHY_WRAP },
	{ "the first ends inside a page", { { PG, 100 }, { 3 * PG, PG } },
	  IB_MR_WHY_INNER_BOUNDARY },
	{ "the second begins inside a page", { { PG, PG }, { 3 * PG + 8, PG - 8 } },
	  IB_MR_WHY_INNER_BOUNDARY },
	{ "they touch inside a page", { { PG, 100 }, { PG + 100, PG } },
	  IB_MR_WHY_INNER_BOUNDARY },
	{ "half a page in the middle", { { PG, PG }, { 3 * PG, 2 * K }, { 5 * PG, PG } },
	  IB_MR_WHY_INNER_BOUNDARY },
};

KUNIT_ARRAY_PARAM(build, build_table, geometry_desc);

static void pagevec_build(struct kunit *test)
{
	const struct geometry *g = test->param_value;
	struct ibmr_pagevec *pv = build_phys(test, g->piece, pieces(g), g->why);

	if (!pv)
		return;
	KUNIT_EXPECT_EQ(test, pv->nr, g->runs);
	KUNIT_EXPECT_EQ(test, pv->length, total_of(g->piece, pieces(g)));
	expect_sound(test, pv);
	expect_lookups(test, pv, g->piece, pieces(g));
}

/* An element of size 0 is refused wherever it stands, the table cannot say that. */
static void pagevec_build_zero_sized(struct kunit *test)
{
	static const struct ib_phys_buf zero[][3] = {
		{ { PG, 0 }, { 2 * PG, PG }, { 5 * PG, PG } },
		{ { PG, PG }, { 2 * PG, 0 }, { 5 * PG, PG } },
		{ { PG, PG }, { 2 * PG, PG }, { 5 * PG, 0 } },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(zero); i++)
		build_phys(test, zero[i], 3, IB_MR_WHY_EMPTY);
}

/* Contiguous memory is one run, in however many pieces it is named. */
static void pagevec_merges_a_gigabyte(struct kunit *test)
{
	const int n = SZ_1G / SZ_4K;
	struct ib_phys_buf *buf = kvmalloc_array(n, sizeof(*buf), GFP_KERNEL);
	struct ibmr_pagevec pv;
	struct ibmr_phys_list list = { .buf = buf, .nr = n };
	enum ib_mr_reason why;
	unsigned int shift = 0;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (i = 0; i < n; i++)
		buf[i] = (struct ib_phys_buf){ .addr = SZ_1G + i * PG, .size = PG };
	why = ibmr_pagevec_build(&pv, ibmr_feed_phys, &list);
	kvfree(buf);
	KUNIT_ASSERT_EQ(test, why, IB_MR_WHY_OK);
	KUNIT_EXPECT_EQ(test, pv.nr, (u32)1);
	KUNIT_EXPECT_EQ(test, pv.length, (u64)SZ_1G);
	KUNIT_EXPECT_EQ(test, ibmr_pagevec_block(&pv, SZ_1G, 0xfffff000, &shift), IB_MR_WHY_OK);
	KUNIT_EXPECT_EQ(test, shift, 30u);
	KUNIT_EXPECT_EQ(test, ibmr_pagevec_blocks(&pv, shift), (u64)1);
	/* One entry for each page, had it not merged and had blocks been pages. */
	KUNIT_EXPECT_EQ(test, ibmr_pagevec_blocks(&pv, 12), (u64)n);
	ibmr_pagevec_free(&pv);
}

/* Blocks. */

#define RXE_CAP	0xfffff000ull
#define M	((u64)SZ_1M)

static const struct geometry block_table[] = {
	{ "one page", { { PG, PG } }, .iova = PG, .cap = RXE_CAP, .shift = 30, .blocks = 1 },
	{ "one page, another iova", { { PG, PG } }, .iova = 2 * PG, .cap = RXE_CAP, .shift = 12,
	  .blocks = 1 },
	{ "iova agrees modulo 2 MiB", { { 6 * M + 5, M } }, .iova = 4 * M + 5, .cap = RXE_CAP,
	  .shift = 21, .blocks = 1 },
	{ "the same across a boundary", { { 7 * M + 5, 3 * M } }, .iova = 5 * M + 5,
	  .cap = RXE_CAP, .shift = 21, .blocks = 3 },
	{ "apart by pages", { { PG, PG }, { 3 * PG, PG } }, .iova = PG, .cap = RXE_CAP,
	  .shift = 12, .blocks = 2 },
	{ "apart by 64 KiB", { { SZ_64K, SZ_64K }, { SZ_256K, SZ_128K } }, .iova = SZ_64K,
	  .cap = RXE_CAP, .shift = 17, .blocks = 2 },
	{ "first and last ragged", { { SZ_64K + 60 * K, 4 * K }, { SZ_256K, SZ_64K + 1 } },
	  .iova = 60 * K, .cap = RXE_CAP, .shift = 16, .blocks = 3 },
	{ "the device knows 4 KiB and 2 MiB", { { SZ_64K, SZ_64K }, { SZ_256K, SZ_64K } },
	  .iova = SZ_64K, .cap = SZ_4K | SZ_2M, .shift = 12, .blocks = 32 },
	{ "the device knows pages only", { { 0, SZ_1G } }, .iova = 0, .cap = SZ_4K, .shift = 12,
	  .blocks = SZ_1G / SZ_4K },
	{ "never more than 1 GiB", { { 0, 1ull << 33 } }, .iova = 0, .cap = ~(PG - 1),
	  .shift = 30, .blocks = 8 },
	{ "a device of small blocks only", { { PG, PG } }, .iova = PG, .cap = 512,
	  .why = IB_MR_WHY_DEVICE_PAGES },
	{ "a device of large blocks only", { { PG, PG } }, .iova = 2 * PG, .cap = SZ_2M,
	  .why = IB_MR_WHY_DEVICE_PAGES },
	{ "iova off by one", { { PG, PG } }, .iova = PG + 1, .cap = RXE_CAP,
	  .why = IB_MR_WHY_IOVA_ALIGN },
	{ "iova off by half a page", { { PG, PG } }, .iova = 2 * K, .cap = RXE_CAP,
	  .why = IB_MR_WHY_IOVA_ALIGN },
	{ "iova off by 512", { { PG + 512, PG } }, .iova = PG, .cap = ~511ull,
	  .why = IB_MR_WHY_IOVA_ALIGN },
};

KUNIT_ARRAY_PARAM(block, block_table, geometry_desc);

static void pagevec_block(struct kunit *test)
{
	const struct geometry *g = test->param_value;
	struct ibmr_pagevec *pv = build_phys(test, g->piece, pieces(g), IB_MR_WHY_OK);
	unsigned int shift = 99;
	enum ib_mr_reason why;

	why = ibmr_pagevec_block(pv, g->iova, g->cap, &shift);
	KUNIT_ASSERT_EQ_MSG(test, why, g->why, "%s", ib_mr_reason_name(why));
	if (why)
		return;
	KUNIT_EXPECT_EQ(test, shift, g->shift);
	KUNIT_EXPECT_EQ(test, ibmr_pagevec_blocks(pv, shift), g->blocks);
	expect_device(test, pv, shift, g->iova, g->piece, pieces(g));
}

/* A scatterlist may have inner boundaries that a physical list may not; the block finds them. */
static enum ib_mr_reason feed_unaligned(struct ibmr_pagevec_builder *b, const void *ctx)
{
	return ibmr_pagevec_add(b, PG, 100) ?: ibmr_pagevec_add(b, 3 * PG, PG);
}

static void pagevec_block_inner(struct kunit *test)
{
	struct ibmr_pagevec pv;
	unsigned int shift;

	KUNIT_ASSERT_EQ(test, ibmr_pagevec_build(&pv, feed_unaligned, NULL), IB_MR_WHY_OK);
	KUNIT_EXPECT_EQ(test, ibmr_pagevec_block(&pv, PG, RXE_CAP, &shift),
			IB_MR_WHY_INNER_BOUNDARY);
	ibmr_pagevec_free(&pv);
}

/* Fault 2. */

/* Every block size from a page to 1 GiB, every power of two and its neighbours as first offset. */
static void pagevec_fault2_offsets(struct kunit *test)
{
	unsigned int cap_shift, shift;
	enum ib_mr_reason why;
	struct ib_phys_buf buf[3];
	struct ibmr_pagevec pv;
	struct ibmr_phys_list list = { .buf = buf, .nr = 3 };
	u64 block, off, iova;
	unsigned int near;

	/* @near counts 1 << off_shift by its neighbours: three for each. */
	for (cap_shift = 12; cap_shift <= 30; cap_shift++)
		for (near = 0; near < 3 * cap_shift; near++) {
			block = 1ull << cap_shift;
			off = (1ull << (near / 3)) + near % 3 - 1;
			if (off >= block)
				continue;
			iova = (5ull << 40) + off;
			buf[0] = (struct ib_phys_buf){ 16 * block + off, block - off };
			buf[1] = (struct ib_phys_buf){ 8 * block, 2 * block };
			buf[2] = (struct ib_phys_buf){ 32 * block, 1 + off };
			why = ibmr_pagevec_build(&pv, ibmr_feed_phys, &list);
			KUNIT_ASSERT_EQ(test, why, IB_MR_WHY_OK);
			why = ibmr_pagevec_block(&pv, iova, block, &shift);
			KUNIT_EXPECT_EQ(test, why, IB_MR_WHY_OK);
			KUNIT_EXPECT_EQ(test, shift, cap_shift);
			expect_device(test, &pv, shift, iova, buf, 3);
			ibmr_pagevec_free(&pv);
		}
}

/* Blocks below a page lose the offset on some kernels: refused, or not chosen. */
static void pagevec_fault2_small_blocks(struct kunit *test)
{
	static const struct ib_phys_buf one = { PG + 512, 1024 };
	struct ibmr_pagevec *pv = build_phys(test, &one, 1, IB_MR_WHY_OK);
	unsigned int shift;
	u64 cap;

	for (cap = 512; cap < PG; cap <<= 1) {
		KUNIT_EXPECT_EQ(test, ibmr_pagevec_block(pv, one.addr, cap, &shift),
				IB_MR_WHY_DEVICE_PAGES);
		KUNIT_EXPECT_EQ(test, ibmr_pagevec_block(pv, one.addr, cap | PG, &shift),
				IB_MR_WHY_OK);
		KUNIT_EXPECT_EQ(test, shift, 12u);
	}
}

/* Random geometry: whatever it is, the model device finds the caller's bytes. */
static void pagevec_random(struct kunit *test)
{
	struct ib_phys_buf buf[MAX_PIECES];
	struct ibmr_pagevec pv;
	struct ibmr_phys_list list = { .buf = buf };
	unsigned int unit, shift, round;
	u64 iova, *last;
	int i;

	for (round = 0; round < 2000; round++) {
		unit = 12 + get_random_u32() % 12;
		list.nr = 1 + get_random_u32() % MAX_PIECES;
		for (i = 0; i < list.nr; i++) {
			buf[i].addr = (u64)(1 + get_random_u32() % 1000) << unit;
			buf[i].size = (u64)(1 + get_random_u32() % 3) << unit;
		}
		/* The outer ends lie anywhere. */
		i = get_random_u32() % (1 << unit);
		buf[0].addr += i;
		buf[0].size -= i;
		last = &buf[list.nr - 1].size;
		*last -= get_random_u32() % min(*last, 1ull << unit);
		iova = buf[0].addr + ((u64)(get_random_u32() % 64) << (12 + get_random_u32() % 20));

		KUNIT_ASSERT_EQ(test, ibmr_pagevec_build(&pv, ibmr_feed_phys, &list), IB_MR_WHY_OK);
		expect_sound(test, &pv);
		expect_lookups(test, &pv, buf, list.nr);
		KUNIT_EXPECT_EQ(test, ibmr_pagevec_block(&pv, iova, RXE_CAP, &shift), IB_MR_WHY_OK);
		expect_device(test, &pv, shift, iova, buf, list.nr);
		ibmr_pagevec_free(&pv);
		if (test->status == KUNIT_FAILURE)
			return;		/* one is enough to read */
	}
}

/* Scatterlists: ranges of them, and the way back into one. */

#define SG_LEN	5

static void sg_of(struct scatterlist *sg, const struct ib_phys_buf *buf)
{
	int i;

	sg_init_table(sg, SG_LEN);
	for (i = 0; i < SG_LEN; i++) {
		sg_dma_address(&sg[i]) = buf[i].addr;
		sg_dma_len(&sg[i]) = buf[i].size;
	}
}

static const struct ib_phys_buf sg_pieces[SG_LEN] = {
	{ 10 * PG + 100, PG - 100 }, { 20 * PG, 2 * PG }, { 22 * PG, PG }, { 30 * PG, PG },
	{ 40 * PG, 7 },
};

static void pagevec_sg_range(struct kunit *test)
{
	const u64 total = total_of(sg_pieces, SG_LEN);
	const u64 edge[] = { 0, 1, PG - 101, PG - 100, PG, 3 * PG - 100, 4 * PG - 100, total - 8,
			     total - 7, total - 1 };
	struct scatterlist sg[SG_LEN];
	struct ibmr_pagevec pv;
	struct ibmr_sg_list list = { .sgl = sg, .nr = SG_LEN };
	int i, j;

	sg_of(sg, sg_pieces);
	for (i = 0; i < ARRAY_SIZE(edge); i++)
		for (j = i; j < ARRAY_SIZE(edge); j++) {
			list.skip = edge[i];
			list.length = edge[j] - edge[i] + 1;
			KUNIT_ASSERT_EQ(test, ibmr_pagevec_build(&pv, ibmr_feed_sg, &list),
					IB_MR_WHY_OK);
			expect_sound(test, &pv);
			KUNIT_EXPECT_EQ(test, pv.length, list.length);
			KUNIT_EXPECT_EQ(test, looked_up(&pv, 0),
					address_of(sg_pieces, SG_LEN, edge[i]));
			KUNIT_EXPECT_EQ(test, looked_up(&pv, pv.length - 1),
					address_of(sg_pieces, SG_LEN, edge[j]));
			ibmr_pagevec_free(&pv);
		}

	/* All of it, in one word; the two in the middle that touch are one run. */
	list.skip = 0;
	list.length = U64_MAX;
	KUNIT_ASSERT_EQ(test, ibmr_pagevec_build(&pv, ibmr_feed_sg, &list), IB_MR_WHY_OK);
	KUNIT_EXPECT_EQ(test, pv.length, total);
	KUNIT_EXPECT_EQ(test, pv.nr, (u32)4);
	ibmr_pagevec_free(&pv);

	/* A range that begins behind the end is empty. */
	list.skip = total;
	KUNIT_EXPECT_EQ(test, ibmr_pagevec_build(&pv, ibmr_feed_sg, &list), IB_MR_WHY_EMPTY);
	ibmr_pagevec_free(&pv);
}

/* What is given to the core: lengths of 32 bits, cut where every block size allows it. */
static void pagevec_to_sg(struct kunit *test)
{
	static const struct ib_phys_buf buf[] = {
		{ SZ_1G - PG, PG }, { 5ull << 30, (9ull << 30) + PG }, { PG, 100 },
	};
	struct ibmr_pagevec *pv = build_phys(test, buf, ARRAY_SIZE(buf), IB_MR_WHY_OK);
	unsigned int n = ibmr_pagevec_sg_nents(pv), i;
	struct scatterlist *sgl = kunit_kcalloc(test, n, sizeof(*sgl), GFP_KERNEL), *sg;
	u64 at = 0;

	KUNIT_ASSERT_NOT_NULL(test, sgl);
	KUNIT_EXPECT_EQ(test, n, 1 + 10 + 1u);
	sg_init_table(sgl, n);
	ibmr_pagevec_to_sg(pv, sgl);
	for_each_sg(sgl, sg, n, i) {
		KUNIT_EXPECT_EQ(test, (u64)sg_dma_address(sg), address_of(buf, 3, at));
		KUNIT_EXPECT_LE(test, sg_dma_len(sg), (unsigned int)SZ_1G);
		at += sg_dma_len(sg);
	}
	KUNIT_EXPECT_EQ(test, at, pv->length);
}

/* The linear map. */
static bool linear(struct kunit *test, u64 addr, u64 size)
{
	struct ib_phys_buf buf = { addr, size };

	return ibmr_pagevec_linear(build_phys(test, &buf, 1, IB_MR_WHY_OK));
}

static void pagevec_linear(struct kunit *test)
{
	struct ibt_buf *k = ibt_buf(test, IBT_KMALLOC, 100, 1);
	struct ibt_buf *v = ibt_buf(test, IBT_VMALLOC, SZ_8K, 1);
	u64 start = PAGE_OFFSET, ram = (u64)totalram_pages() << PAGE_SHIFT;

	KUNIT_EXPECT_TRUE(test, linear(test, (uintptr_t)k->addr, k->size));
	KUNIT_EXPECT_TRUE(test, linear(test, start + SZ_16M, SZ_64M));
	KUNIT_EXPECT_FALSE(test, linear(test, (uintptr_t)v->addr, v->size));
	KUNIT_EXPECT_FALSE(test, linear(test, (uintptr_t)pagevec_linear, 1));
	KUNIT_EXPECT_FALSE(test, linear(test, PG, PG));		/* user space */
	KUNIT_EXPECT_FALSE(test, linear(test, start - 1, 1));
	KUNIT_EXPECT_FALSE(test, linear(test, start + 64 * ram, PG));
	/* It begins in memory and runs out of it. */
	KUNIT_EXPECT_FALSE(test, linear(test, start + SZ_16M, 64 * ram));
	KUNIT_EXPECT_FALSE(test, linear(test, start - PG, 2 * PG));
}

static struct kunit_case pagevec_cases[] = {
	KUNIT_CASE_PARAM(pagevec_build, build_gen_params),
	KUNIT_CASE(pagevec_build_zero_sized),
	KUNIT_CASE(pagevec_merges_a_gigabyte),
	KUNIT_CASE_PARAM(pagevec_block, block_gen_params),
	KUNIT_CASE(pagevec_block_inner),
	KUNIT_CASE(pagevec_fault2_offsets),
	KUNIT_CASE(pagevec_fault2_small_blocks),
	KUNIT_CASE(pagevec_random),
	KUNIT_CASE(pagevec_sg_range),
	KUNIT_CASE(pagevec_to_sg),
	KUNIT_CASE(pagevec_linear),
	{}
};

IBT_SUITE(pagevec, pagevec_cases);
