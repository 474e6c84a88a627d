// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA checker: its files in debugfs as a person uses them, and what it does beside its usual way: a
 * device that is not checked while another is, mappings of no use any more when it is switched off,
 * shadows too large to be kept.
 */
#include <linux/slab.h>

#include "dma_chk.h"
#include "dma_device.h"
#include "proc.h"
#include "table.h"

#define CHECK	IBT_DEBUGFS "dma_check"
#define LIVE	IBT_DEBUGFS "dma_live"
#define REPORTS	"/sys/kernel/debug/ib_mr/dma_reports"
#define ROOM	SZ_64K
#define MAPS	260

static void files_mode(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_OFF);
	char buf[64];

	KUNIT_EXPECT_GT(test, ibt_slurp(CHECK, buf, sizeof(buf), 4096), (ssize_t)0);
	KUNIT_EXPECT_STREQ(test, buf, "[off] track bounce bounce,strict\n");
	KUNIT_EXPECT_EQ(test, ibt_shell("echo bounce > " CHECK), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_get(dev), (int)IB_MR_DMA_BOUNCE);
	KUNIT_EXPECT_GT(test, ibt_slurp(CHECK, buf, sizeof(buf), 4096), (ssize_t)0);
	KUNIT_EXPECT_STREQ(test, buf, "off track [bounce] bounce,strict\n");
	KUNIT_EXPECT_NE(test, ibt_shell("echo nonsense > " CHECK " 2> /dev/null"), 0);
	KUNIT_EXPECT_NE(test, ibt_shell("echo bounce track bounce > " CHECK " 2> /dev/null"), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_get(dev), (int)IB_MR_DMA_BOUNCE);
	KUNIT_EXPECT_EQ(test, ibt_shell("echo off > " CHECK), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_get(dev), (int)IB_MR_DMA_OFF);
}

/* Each mapping is a line, a list is one; beyond 256 they are counted. */
static void files_live(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_TRACK);
	char *text = kunit_kzalloc(test, ROOM, GFP_KERNEL), want[80];
	u8 *buf = kunit_kzalloc(test, 4096, GFP_KERNEL);
	u64 *addr = kunit_kcalloc(test, MAPS, sizeof(*addr), GFP_KERNEL);
	struct scatterlist sg[2];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, text);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_ASSERT_NOT_NULL(test, addr);
	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], buf, 100);
	sg_set_buf(&sg[1], buf + 1000, 200);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(dev, sg, 2, DMA_TO_DEVICE), 2);
	addr[0] = ib_dma_map_single(dev, buf + 2000, 64, DMA_TO_DEVICE);	/* not checked */
	KUNIT_EXPECT_GT(test, ibt_slurp(LIVE, text, ROOM, 4096), (ssize_t)0);
	snprintf(want, sizeof(want), "%#llx 300 ", (u64)sg_dma_address(&sg[0]));
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, want));
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, "entries=2"));
	snprintf(want, sizeof(want), "%#llx 200 ", (u64)sg_dma_address(&sg[1]));
	KUNIT_EXPECT_NULL(test, strstr(text, want));
	snprintf(want, sizeof(want), "%#llx 64 ", addr[0]);
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, want));
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, " unchecked"));
	KUNIT_EXPECT_EQ(test, ib_dma_mapping_error(dev, addr[0]), 0);

	for (i = 1; i < MAPS; i++)
		addr[i] = chk_map(test, dev, buf + 2000 + i, 64, DMA_TO_DEVICE);
	KUNIT_EXPECT_GT(test, ibt_slurp(LIVE, text, ROOM, 4096), (ssize_t)0);
	KUNIT_EXPECT_NULL(test, strstr(text, " unchecked"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, "... and 5 more\n"));
	for (i = 0; i < MAPS; i++)
		ib_dma_unmap_single(dev, addr[i], 64, DMA_TO_DEVICE);
	ib_dma_unmap_sg(dev, sg, 2, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, ibt_slurp(LIVE, text, ROOM, 4096), (ssize_t)0);
}

static void files_reports(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_TRACK);
	char *text = kunit_kzalloc(test, ROOM, GFP_KERNEL);
	u8 *buf = kunit_kzalloc(test, 64, GFP_KERNEL);
	u64 addr;

	KUNIT_ASSERT_NOT_NULL(test, text);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	addr = chk_map(test, dev, buf, 64, DMA_TO_DEVICE);
	ib_dma_unmap_single(dev, addr, 32, DMA_TO_DEVICE);
	KUNIT_EXPECT_GT(test, ibt_slurp(REPORTS, text, ROOM, 4096), (ssize_t)0);
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, "files_reports"));
	KUNIT_EXPECT_EQ(test, ibt_shell("echo > " REPORTS), 0);
	KUNIT_EXPECT_EQ(test, ibt_slurp(REPORTS, text, ROOM, 4096), (ssize_t)0);
}

/* While one device is checked, the calls for another do what they did, and it is not looked at. */
static void other_device(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_TRACK), *other = ibt_dma_device(test);
	u8 *buf = kunit_kzalloc(test, 4096, GFP_KERNEL);
	u64 before[IB_MR_DMA_FAULT_COUNT], addr;
	struct scatterlist sg[2];
	long unseen;
	void *mem;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	chk_faults(dev, before);
	unseen = ibmr_dma_unseen(other);
	addr = chk_map(test, other, buf, 64, DMA_TO_DEVICE);
	buf[5] = 7;
	ib_dma_sync_single_for_device(other, addr, 64, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, ((u8 *)ibt_dma_mem(addr))[5], 7);
	KUNIT_EXPECT_EQ(test, ibmr_dma_unseen(other), unseen + 1);
	ib_dma_unmap_single(other, addr, 64, DMA_TO_DEVICE);
	addr = ib_dma_map_page(other, virt_to_page(buf), 0, 64, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, ib_dma_mapping_error(other, addr), 0);
	ib_dma_unmap_page(other, addr, 64, DMA_TO_DEVICE);
	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], buf, 100);
	sg_set_buf(&sg[1], buf + 1000, 100);
	KUNIT_EXPECT_EQ(test, ib_dma_map_sg(other, sg, 2, DMA_TO_DEVICE), 2);
	ib_dma_unmap_sg(other, sg, 2, DMA_TO_DEVICE);
	mem = ib_dma_alloc_coherent(other, 64, &addr, GFP_KERNEL);
	KUNIT_EXPECT_NOT_NULL(test, mem);
	if (mem)
		ib_dma_free_coherent(other, 64, mem, addr);
	KUNIT_EXPECT_EQ(test, ibmr_dma_unseen(other), unseen);
	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
	chk_expect(test, dev, before, 0, 0, "another device");
}

/* Switched off with a mapping alive, the checker still sees to that one, and says nothing. */
static void switched_off(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_TRACK);
	u8 *buf = kunit_kzalloc(test, 64, GFP_KERNEL);
	u64 before[IB_MR_DMA_FAULT_COUNT], addr;
	long unseen;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	chk_faults(dev, before);
	addr = chk_map(test, dev, buf, 64, DMA_TO_DEVICE);
	unseen = ibmr_dma_unseen(dev);
	chk_mode(test, IB_MR_DMA_OFF);
	ib_dma_sync_single_for_cpu(dev, 0xdead0000, 64, DMA_TO_DEVICE);
	ib_dma_unmap_single(dev, 0xdead0000, 64, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, ibmr_dma_unseen(dev), unseen - 1);
	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 1ULL);
	ib_dma_unmap_single(dev, addr, 64, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
	chk_expect(test, dev, before, 0, 0, "switched off");
}

/* A list mapped over the place of another: the unmap takes the one whose list it names. */
static void same_place(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_TRACK);
	u8 *buf = kunit_kzalloc(test, 4096, GFP_KERNEL);
	u64 before[IB_MR_DMA_FAULT_COUNT];
	struct scatterlist a[2], b[2];

	KUNIT_ASSERT_NOT_NULL(test, buf);
	chk_faults(dev, before);
	sg_init_table(a, 2);
	sg_set_buf(&a[0], buf, 100);
	sg_set_buf(&a[1], buf + 1000, 100);
	sg_init_table(b, 2);
	sg_set_buf(&b[0], buf, 100);
	sg_set_buf(&b[1], buf + 2000, 100);
	KUNIT_EXPECT_EQ(test, ib_dma_map_sg(dev, a, 2, DMA_TO_DEVICE), 2);
	KUNIT_EXPECT_EQ(test, ib_dma_map_sg(dev, b, 2, DMA_TO_DEVICE), 2);
	ib_dma_unmap_sg(dev, a, 2, DMA_TO_DEVICE);
	/* Of @b, which is left: a sync of its second entry is none of a dead mapping. */
	ib_dma_sync_single_for_device(dev, sg_dma_address(&b[1]), 100, DMA_TO_DEVICE);
	ib_dma_unmap_sg(dev, b, 2, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
	chk_expect(test, dev, before, 0, 0, "same place");
}

/* A large shadow is given back at once: it carries the data, and nobody can write to it late. */
static void large_shadow(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_BOUNCE);
	u8 *buf = kunit_kzalloc(test, SZ_128K, GFP_KERNEL);
	u64 before[IB_MR_DMA_FAULT_COUNT], addr;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	chk_faults(dev, before);
	addr = chk_map(test, dev, buf, SZ_128K, DMA_FROM_DEVICE);
	KUNIT_ASSERT_NE(test, addr, (u64)(uintptr_t)buf);
	memset((void *)(uintptr_t)addr, 0x77, SZ_128K);
	ib_dma_unmap_single(dev, addr, SZ_128K, DMA_FROM_DEVICE);
	KUNIT_EXPECT_NULL(test, memchr_inv(buf, 0x77, SZ_128K));
	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
	chk_expect(test, dev, before, 0, 0, "large shadow");
}

static struct kunit_case files_cases[] = {
	KUNIT_CASE(files_mode),
	KUNIT_CASE(files_live),
	KUNIT_CASE(files_reports),
	KUNIT_CASE(other_device),
	KUNIT_CASE(switched_off),
	KUNIT_CASE(same_place),
	KUNIT_CASE(large_shadow),
	{}
};

IBT_SUITE(dma_files, files_cases);
