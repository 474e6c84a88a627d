// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA checker: each report, made by the fault it is for and not by the same steps done right.
 */

#include <linux/kallsyms.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "dma_chk.h"

/*
 * The faults. Each function does the same steps, right or (@wrong) with the fault in them, and
 * leaves nothing mapped.
 */
struct chk {
	struct kunit *test;
	struct ib_device *dev;
	u8 *buf;		/* a page, and one more */
	bool wrong;
};

static noinline void chk_unmap_size(struct chk *c)
{
	u64 addr = chk_map(c->test, c->dev, c->buf, 256, DMA_TO_DEVICE);

	ib_dma_unmap_single(c->dev, addr, c->wrong ? 128 : 256, DMA_TO_DEVICE);
}

static noinline void chk_unmap_nents(struct chk *c)
{
	struct scatterlist sg[3];
	int i;

	sg_init_table(sg, 3);
	for (i = 0; i < 3; i++)
		sg_set_buf(&sg[i], c->buf + 1000 * i, 500);
	KUNIT_EXPECT_EQ(c->test, ib_dma_map_sg(c->dev, sg, 3, DMA_TO_DEVICE), 3);
	ib_dma_unmap_sg(c->dev, sg, c->wrong ? 2 : 3, DMA_TO_DEVICE);
}

static noinline void chk_unmap_dir(struct chk *c)
{
	u64 addr = chk_map(c->test, c->dev, c->buf, 256, DMA_TO_DEVICE);

	ib_dma_unmap_page(c->dev, addr, 256, c->wrong ? DMA_FROM_DEVICE : DMA_TO_DEVICE);
}

static noinline void chk_unmap_call(struct chk *c)
{
	struct scatterlist sg;

	sg_init_one(&sg, c->buf, 300);
	KUNIT_EXPECT_EQ(c->test, ib_dma_map_sg(c->dev, &sg, 1, DMA_TO_DEVICE), 1);
	if (c->wrong)
		ib_dma_unmap_single(c->dev, sg_dma_address(&sg), 300, DMA_TO_DEVICE);
	else
		ib_dma_unmap_sg(c->dev, &sg, 1, DMA_TO_DEVICE);
}

/* A list taken apart entry by entry: said of the one that is not the first. */
static noinline void chk_unmap_entry(struct chk *c)
{
	struct scatterlist sg[2];

	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], c->buf, 100);
	sg_set_buf(&sg[1], c->buf + 200, 100);
	KUNIT_EXPECT_EQ(c->test, ib_dma_map_sg(c->dev, sg, 2, DMA_TO_DEVICE), 2);
	if (c->wrong)
		ib_dma_unmap_single(c->dev, sg_dma_address(&sg[1]), 100, DMA_TO_DEVICE);
	ib_dma_unmap_sg(c->dev, sg, 2, DMA_TO_DEVICE);
}

static noinline void chk_coherent_size(struct chk *c)
{
	u64 handle;
	void *p = ib_dma_alloc_coherent(c->dev, 100, &handle, GFP_KERNEL);

	KUNIT_EXPECT_NOT_NULL(c->test, p);
	ib_dma_free_coherent(c->dev, c->wrong ? 3 * PAGE_SIZE : 100, p, handle);
}

static noinline void chk_unmap_twice(struct chk *c)
{
	u64 addr = chk_map(c->test, c->dev, c->buf, 256, DMA_TO_DEVICE);
	int i;

	for (i = 0; i <= c->wrong; i++)
		ib_dma_unmap_single(c->dev, addr, 256, DMA_TO_DEVICE);
}

static noinline void chk_never_mapped(struct chk *c)
{
	u64 addr = c->wrong ? (uintptr_t)c->buf + 777 :
			      chk_map(c->test, c->dev, c->buf, 64, DMA_TO_DEVICE);

	ib_dma_unmap_single(c->dev, addr, 64, DMA_TO_DEVICE);
}

static noinline void chk_unmap_failed(struct chk *c)
{
	u64 addr;

	ibmr_dma_fail_map(1);
	addr = ib_dma_map_single(c->dev, c->buf, 64, DMA_TO_DEVICE);
	if (!ib_dma_mapping_error(c->dev, addr) || c->wrong)
		ib_dma_unmap_single(c->dev, addr, 64, DMA_TO_DEVICE);
}

static noinline void chk_sync_outside(struct chk *c)
{
	u64 addr = chk_map(c->test, c->dev, c->buf, 256, DMA_FROM_DEVICE);

	/* A part, that begins anywhere, is all right. */
	ib_dma_sync_single_for_cpu(c->dev, addr + 100, c->wrong ? 157 : 156, DMA_FROM_DEVICE);
	ib_dma_unmap_single(c->dev, addr, 256, DMA_FROM_DEVICE);
}

/* The part begins in another page than the mapping. */
static noinline void chk_sync_far(struct chk *c)
{
	u64 addr = chk_map(c->test, c->dev, c->buf, PAGE_SIZE + 100, DMA_FROM_DEVICE);

	ib_dma_sync_single_for_cpu(c->dev, addr + PAGE_SIZE + (c->wrong ? 200 : 20), 50,
				   DMA_FROM_DEVICE);
	ib_dma_unmap_single(c->dev, addr, PAGE_SIZE + 100, DMA_FROM_DEVICE);
}

static noinline void chk_sync_late(struct chk *c)
{
	u64 addr = chk_map(c->test, c->dev, c->buf, 256, DMA_FROM_DEVICE);

	if (!c->wrong)
		ib_dma_sync_single_for_cpu(c->dev, addr, 256, DMA_FROM_DEVICE);
	ib_dma_unmap_single(c->dev, addr, 256, DMA_FROM_DEVICE);
	if (c->wrong)
		ib_dma_sync_single_for_cpu(c->dev, addr, 256, DMA_FROM_DEVICE);
}

static noinline void chk_sync_dir(struct chk *c)
{
	u64 addr = chk_map(c->test, c->dev, c->buf, 256, DMA_TO_DEVICE);
	u64 both = chk_map(c->test, c->dev, c->buf + 1024, 256, DMA_BIDIRECTIONAL);

	/* Either direction suits a mapping that has both. */
	ib_dma_sync_single_for_cpu(c->dev, both, 256, DMA_FROM_DEVICE);
	ib_dma_sync_single_for_device(c->dev, both, 256, DMA_TO_DEVICE);
	ib_dma_sync_single_for_device(c->dev, addr, 256,
				      c->wrong ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE);
	ib_dma_unmap_single(c->dev, addr, 256, DMA_TO_DEVICE);
	ib_dma_unmap_single(c->dev, both, 256, DMA_BIDIRECTIONAL);
}

static noinline void chk_unchecked(struct chk *c)
{
	u64 addr = ib_dma_map_single(c->dev, c->buf, 256, DMA_BIDIRECTIONAL);
	struct ib_phys_buf phys = { .addr = addr, .size = 256 };
	struct ib_mr *mr;

	if (!c->wrong)
		KUNIT_EXPECT_EQ(c->test, ib_dma_mapping_error(c->dev, addr), 0);
	mr = ibt_mr(c->test, ib_reg_phys_mr(ibt_pd(c->test), &phys, 1, LW | RR, &addr));
	KUNIT_EXPECT_EQ(c->test, ibt_dereg(c->test, mr), 0);
	ib_dma_unmap_single(c->dev, addr, 256, DMA_BIDIRECTIONAL);
}

/* Used by a work request, of which we see nothing: told at the unmap. */
static noinline void chk_unchecked_unmap(struct chk *c)
{
	u64 addr = ib_dma_map_page(c->dev, virt_to_page(c->buf), 0, 256, DMA_BIDIRECTIONAL);

	if (!c->wrong)
		KUNIT_EXPECT_EQ(c->test, ib_dma_mapping_error(c->dev, addr), 0);
	ib_dma_unmap_page(c->dev, addr, 256, DMA_BIDIRECTIONAL);
}

static noinline void chk_on_stack(struct chk *c)
{
	u8 here[64] = "";
	u8 *buf = c->wrong ? here : c->buf;
	u64 addr = chk_map(c->test, c->dev, buf, 64, DMA_TO_DEVICE);

	ib_dma_unmap_single(c->dev, addr, 64, DMA_TO_DEVICE);
}

static noinline void chk_not_linear(struct chk *c)
{
	void *v = vmalloc(PAGE_SIZE);
	u64 addr;

	KUNIT_ASSERT_NOT_NULL(c->test, v);
	addr = chk_map(c->test, c->dev, c->wrong ? v : c->buf, 64, DMA_TO_DEVICE);
	ib_dma_unmap_single(c->dev, addr, 64, DMA_TO_DEVICE);
	vfree(v);
}

static noinline void chk_cpu_write(struct chk *c)
{
	u64 addr = chk_map(c->test, c->dev, c->buf, 256, DMA_TO_DEVICE);

	/* All right with a sync_for_cpu before, or a sync_for_device behind. */
	ib_dma_sync_single_for_cpu(c->dev, addr, 256, DMA_TO_DEVICE);
	c->buf[1]++;
	ib_dma_sync_single_for_device(c->dev, addr, 256, DMA_TO_DEVICE);
	c->buf[2]++;
	if (!c->wrong)
		ib_dma_sync_single_for_device(c->dev, addr, 256, DMA_TO_DEVICE);
	ib_dma_unmap_single(c->dev, addr, 256, DMA_TO_DEVICE);
}

/* Parts belong to the CPU and the device in turn: nothing is said of what cannot be known. */
static noinline void chk_cpu_write_from(struct chk *c)
{
	u64 addr = chk_map(c->test, c->dev, c->buf, 256, DMA_FROM_DEVICE);

	if (!c->wrong)
		ib_dma_sync_single_for_cpu(c->dev, addr + 100, 8, DMA_FROM_DEVICE);
	c->buf[100]++;
	if (!c->wrong)
		ib_dma_sync_single_for_device(c->dev, addr + 100, 8, DMA_FROM_DEVICE);
	ib_dma_unmap_single(c->dev, addr, 256, DMA_FROM_DEVICE);
}

static noinline void chk_cpu_write_unmap(struct chk *c)
{
	unsigned long skip = c->wrong ? 0 : DMA_ATTR_SKIP_CPU_SYNC;
	u64 addr = chk_map(c->test, c->dev, c->buf, 256, DMA_FROM_DEVICE);

	ib_dma_sync_single_for_cpu(c->dev, addr, 256, DMA_FROM_DEVICE);
	c->buf[100]++;
	ib_dma_unmap_single_attrs(c->dev, addr, 256, DMA_FROM_DEVICE, skip);
}

static noinline void chk_dev_write(struct chk *c)
{
	u64 addr = chk_map(c->test, c->dev, c->buf, 100, DMA_TO_DEVICE);

	/* The CPU may, once it is the CPU's; and a part that is sent is no write of the device. */
	ib_dma_sync_single_for_cpu(c->dev, addr, 100, DMA_TO_DEVICE);
	c->buf[50]++;
	if (!c->wrong)
		ib_dma_sync_single_for_device(c->dev, addr + 50, 1, DMA_TO_DEVICE);
	else
		((u8 *)(uintptr_t)addr)[99] ^= 1;
	ib_dma_unmap_single(c->dev, addr, 100, DMA_TO_DEVICE);
}

static noinline void chk_dev_write_later(struct chk *c)
{
	u64 addr = chk_map(c->test, c->dev, c->buf, 100, DMA_TO_DEVICE);

	ib_dma_sync_single_for_device(c->dev, addr, 100, DMA_TO_DEVICE);
	if (c->wrong)
		((u8 *)(uintptr_t)addr)[0] ^= 1;
	ib_dma_sync_single_for_device(c->dev, addr, 100, DMA_TO_DEVICE);
	ib_dma_unmap_single(c->dev, addr, 100, DMA_TO_DEVICE);
}

/* Of an entry of a list that is not the first. */
static noinline void chk_cpu_write_entry(struct chk *c)
{
	struct scatterlist sg[2];
	u64 addr;

	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], c->buf, 100);
	sg_set_buf(&sg[1], c->buf + PAGE_SIZE, 100);
	KUNIT_EXPECT_EQ(c->test, ib_dma_map_sg(c->dev, sg, 2, DMA_TO_DEVICE), 2);
	addr = sg_dma_address(&sg[1]);
	ib_dma_sync_single_for_cpu(c->dev, addr, 100, DMA_TO_DEVICE);
	c->buf[PAGE_SIZE]++;
	ib_dma_sync_single_for_device(c->dev, addr, 100, DMA_TO_DEVICE);
	c->buf[PAGE_SIZE] += c->wrong;
	ib_dma_unmap_sg(c->dev, sg, 2, DMA_TO_DEVICE);
}

static noinline void chk_no_sync_cpu(struct chk *c)
{
	u64 addr = chk_map(c->test, c->dev, c->buf, 256, DMA_FROM_DEVICE);
	u8 *p = (u8 *)(uintptr_t)addr;

	p[9]++;
	if (!c->wrong)
		ib_dma_sync_single_for_cpu(c->dev, addr, 256, DMA_FROM_DEVICE);
	ib_dma_sync_single_for_device(c->dev, addr, 256, DMA_FROM_DEVICE);
	/* To give what is given already, and was not written to, is no fault. */
	ib_dma_sync_single_for_device(c->dev, addr, 256, DMA_FROM_DEVICE);
	ib_dma_unmap_single(c->dev, addr, 256, DMA_FROM_DEVICE);
}

static noinline void chk_no_sync_dev(struct chk *c)
{
	u64 addr = chk_map(c->test, c->dev, c->buf, 256, DMA_TO_DEVICE);

	ib_dma_sync_single_for_cpu(c->dev, addr, 256, DMA_TO_DEVICE);
	c->buf[3]++;
	if (!c->wrong)
		ib_dma_sync_single_for_device(c->dev, addr, 256, DMA_TO_DEVICE);
	ib_dma_sync_single_for_cpu(c->dev, addr, 256, DMA_TO_DEVICE);
	/* Who unmaps it need not send it. */
	c->buf[4]++;
	ib_dma_unmap_single(c->dev, addr, 256, DMA_TO_DEVICE);
}

/* On a virtual-DMA device we can be the device: its addresses are the CPU's. */
static noinline void chk_dev_outside(struct chk *c)
{
	u64 addr = chk_map(c->test, c->dev, c->buf + 16, 100, DMA_FROM_DEVICE);
	u8 *p = (u8 *)(uintptr_t)addr;

	KUNIT_EXPECT_EQ(c->test, offset_in_page(p), offset_in_page(c->buf + 16));
	memset(p, 0x11, c->wrong ? 101 : 100);
	ib_dma_unmap_single(c->dev, addr, 100, DMA_FROM_DEVICE);
}

static noinline void chk_dev_before(struct chk *c)
{
	struct scatterlist sg[2];
	u8 *p;

	/* Two entries that meet inside a page have one shadow: no gap between them. */
	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], c->buf + 16, 100);
	sg_set_buf(&sg[1], c->buf + 116, 100);
	KUNIT_EXPECT_EQ(c->test, ib_dma_map_sg(c->dev, sg, 2, DMA_FROM_DEVICE), 2);
	KUNIT_EXPECT_EQ(c->test, (u64)sg_dma_address(&sg[1]), (u64)sg_dma_address(&sg[0]) + 100);
	p = (u8 *)(uintptr_t)sg_dma_address(&sg[0]);
	memset(p - c->wrong, 0x22, 200 + c->wrong);
	ib_dma_unmap_sg(c->dev, sg, 2, DMA_FROM_DEVICE);
}

static noinline void chk_dev_late(struct chk *c)
{
	u64 addr = chk_map(c->test, c->dev, c->buf, 256, DMA_FROM_DEVICE);
	u8 *p = (u8 *)(uintptr_t)addr;

	if (!c->wrong)
		p[7] = 0x33;
	ib_dma_unmap_single(c->dev, addr, 256, DMA_FROM_DEVICE);
	if (c->wrong)
		p[7] = 0x33;	/* still ours: the checker keeps it for a while */
	ibmr_dma_settle(c->dev);
}

/* What may be a fault and may not: counted, and no report. */
static void chk_hints(struct kunit *test)
{
	struct chk c = { .test = test, .dev = chk_begin(test, IB_MR_DMA_BOUNCE) };
	u64 before[IB_MR_DMA_FAULT_COUNT], cpu, dev;

	c.buf = (u8 *)__get_free_page(GFP_KERNEL | __GFP_ZERO);
	KUNIT_ASSERT_NOT_NULL(test, c.buf);
	cpu = ibmr_dma_hints(c.dev, IB_MR_DMA_NO_SYNC_CPU);
	dev = ibmr_dma_hints(c.dev, IB_MR_DMA_NO_SYNC_DEV);
	chk_faults(c.dev, before);
	chk_no_sync_cpu(&c);
	chk_no_sync_dev(&c);
	KUNIT_EXPECT_EQ(test, ibmr_dma_hints(c.dev, IB_MR_DMA_NO_SYNC_CPU), cpu);
	KUNIT_EXPECT_EQ(test, ibmr_dma_hints(c.dev, IB_MR_DMA_NO_SYNC_DEV), dev);
	c.wrong = true;
	chk_no_sync_cpu(&c);
	chk_no_sync_dev(&c);
	KUNIT_EXPECT_EQ(test, ibmr_dma_hints(c.dev, IB_MR_DMA_NO_SYNC_CPU), cpu + 1);
	KUNIT_EXPECT_EQ(test, ibmr_dma_hints(c.dev, IB_MR_DMA_NO_SYNC_DEV), dev + 1);
	chk_expect(test, c.dev, before, 0, 0, "hints");
	free_page((unsigned long)c.buf);
}

struct chk_report {
	const char *desc;
	enum ib_mr_dma_fault fault;
	enum ib_mr_dma_check_mode from;		/* seen from this mode on */
	void (*run)(struct chk *c);
	bool no_map;				/* there is no mapping to show */
	bool no_here;				/* nor a call */
};

#define T IB_MR_DMA_TRACK
#define B IB_MR_DMA_BOUNCE
static const struct chk_report chk_reports[] = {
	{ "another size",	IB_MR_DMA_UNMAP_SIZE,	T, chk_unmap_size },
	{ "another length of list", IB_MR_DMA_UNMAP_SIZE, T, chk_unmap_nents },
	{ "coherent, another size", IB_MR_DMA_UNMAP_SIZE, T, chk_coherent_size },
	{ "another direction",	IB_MR_DMA_UNMAP_DIR,	T, chk_unmap_dir },
	{ "list as single",	IB_MR_DMA_UNMAP_CALL,	T, chk_unmap_call },
	{ "entry of a list",	IB_MR_DMA_UNMAP_CALL,	T, chk_unmap_entry },
	{ "unmapped twice",	IB_MR_DMA_UNMAP_TWICE,	T, chk_unmap_twice },
	{ "never mapped",	IB_MR_DMA_NEVER_MAPPED, T, chk_never_mapped, true },
	{ "failed map unmapped", IB_MR_DMA_NEVER_MAPPED, T, chk_unmap_failed, true },
	{ "sync past the end",	IB_MR_DMA_SYNC_OUTSIDE, T, chk_sync_outside },
	{ "sync behind the end", IB_MR_DMA_SYNC_OUTSIDE, T, chk_sync_far, true },
	{ "sync after unmap",	IB_MR_DMA_SYNC_OUTSIDE, T, chk_sync_late },
	{ "sync direction",	IB_MR_DMA_SYNC_DIR,	T, chk_sync_dir },
	{ "unchecked, region",	IB_MR_DMA_UNCHECKED,	T, chk_unchecked },
	{ "unchecked, unmap",	IB_MR_DMA_UNCHECKED,	T, chk_unchecked_unmap },
	{ "buffer on stack",	IB_MR_DMA_ON_STACK,	T, chk_on_stack, true },
	{ "vmalloc buffer",	IB_MR_DMA_NOT_LINEAR,	T, chk_not_linear, true },
	{ "CPU write",		IB_MR_DMA_CPU_WRITE,	B, chk_cpu_write },
	{ "CPU write, FROM",	IB_MR_DMA_CPU_WRITE,	B, chk_cpu_write_from },
	{ "CPU write, lost",	IB_MR_DMA_CPU_WRITE,	B, chk_cpu_write_unmap },
	{ "device writes, TO",	IB_MR_DMA_DEV_WRITE,	B, chk_dev_write },
	{ "device writes, CPU's", IB_MR_DMA_DEV_WRITE,	B, chk_dev_write_later },
	{ "CPU write, entry",	IB_MR_DMA_CPU_WRITE,	B, chk_cpu_write_entry },
	{ "device past",	IB_MR_DMA_DEV_OUTSIDE,	B, chk_dev_outside },
	{ "device before",	IB_MR_DMA_DEV_OUTSIDE,	B, chk_dev_before },
	{ "device late",	IB_MR_DMA_DEV_LATE,	B, chk_dev_late, false, true },
};

static void chk_desc(const struct chk_report *r, char *desc)
{
	strscpy(desc, r->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(chk_report, chk_reports, chk_desc);

/* The text: name of the fault, and both call chains lead into the function at fault. */
static void chk_text(struct kunit *test, const struct chk_report *r)
{
	char *text = kunit_kzalloc(test, SZ_4K, GFP_KERNEL);
	char symbol[KSYM_SYMBOL_LEN], name[32];
	char *here, *map;

	KUNIT_ASSERT_NOT_NULL(test, text);
	KUNIT_ASSERT_TRUE(test, ibmr_dma_last_report(text, SZ_4K));
	scnprintf(name, sizeof(name), "[%s]", chk_name(r->fault));
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(text, name), "%s in: %s", name, text);
	sprint_symbol_no_offset(symbol, (unsigned long)r->run);
	*strchrnul(symbol, ' ') = 0;
	here = strstr(text, "  here:");
	map = strstr(text, "  the mapping:");
	KUNIT_EXPECT_EQ_MSG(test, !here, r->no_here, "%s", text);
	KUNIT_EXPECT_EQ_MSG(test, !map, r->no_map, "%s", text);
	if (map) {
		KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(map, symbol), "%s not in: %s", symbol, map);
		*map = 0;
	}
	if (here)
		KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(here, symbol), "%s not in: %s", symbol,
					  here);
}

/* Right: no report. Wrong, twice at one place: counted twice, reported once. */
static void chk_report(struct kunit *test)
{
	const struct chk_report *r = test->param_value;
	struct chk c = { .test = test };
	u64 before[IB_MR_DMA_FAULT_COUNT];
	int mode, i;

	c.buf = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, 1);
	KUNIT_ASSERT_NOT_NULL(test, c.buf);
	for (mode = IB_MR_DMA_TRACK; mode <= IB_MR_DMA_BOUNCE; mode++) {
		if (mode < (int)r->from)
			continue;
		c.dev = chk_begin(test, mode);
		chk_faults(c.dev, before);
		c.wrong = false;
		r->run(&c);
		ibmr_dma_settle(c.dev);
		chk_expect(test, c.dev, before, r->fault, 0, "done right");

		c.wrong = true;
		for (i = 0; i < 2; i++) {
			r->run(&c);
			ibmr_dma_settle(c.dev);
		}
		chk_expect(test, c.dev, before, r->fault, 2, "done wrong twice");
		KUNIT_EXPECT_EQ_MSG(test, ibmr_dma_sites(r->fault), 1U, "%s", r->desc);
		chk_text(test, r);
		KUNIT_EXPECT_EQ(test, ibmr_dma_live(c.dev), 0ULL);
		ibmr_dma_fail_map(0);
	}
	free_pages((unsigned long)c.buf, 1);
}

/* The checker off: the same faults, and not a word. */
static void chk_off(struct kunit *test)
{
	struct ib_device *dev = ibt_dev(test);
	u64 before[IB_MR_DMA_FAULT_COUNT];
	struct chk c = { .test = test, .dev = dev, .wrong = true };
	int i;

	c.buf = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, 1);
	KUNIT_ASSERT_NOT_NULL(test, c.buf);
	KUNIT_ASSERT_EQ(test, ib_mr_dma_check_get(dev), (int)IB_MR_DMA_OFF);
	chk_faults(dev, before);
	for (i = 0; i < ARRAY_SIZE(chk_reports); i++) {
		/* These need a checker to go wrong at all, or are unsafe without. */
		if (chk_reports[i].run == chk_dev_late || chk_reports[i].run == chk_unmap_failed ||
		    chk_reports[i].run == chk_coherent_size)
			continue;
		chk_reports[i].run(&c);
	}
	ibmr_dma_fail_map(0);
	chk_expect(test, dev, before, 0, 0, "off");
	free_pages((unsigned long)c.buf, 1);
}

static struct kunit_case chk_cases[] = {
	KUNIT_CASE_PARAM(chk_report, chk_report_gen_params),
	KUNIT_CASE(chk_off),
	KUNIT_CASE(chk_hints),
	{}
};

IBT_SUITE(dma_check, chk_cases);
