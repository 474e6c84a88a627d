// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA checker: leaks, overlapping mappings, modes that change while something is mapped, maps that
 * fail, mappings older than the checker, many at once.
 */

#include <linux/delay.h>
#include <linux/fault-inject.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "dma_chk.h"
#include "dma_device.h"
#include "base/fault.h"

static void chk_mode_back(struct kunit *test, void *dev)
{
	ibmr_dma_fail_map(0);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_set(dev, IB_MR_DMA_OFF), 0);
	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
}

void chk_mode(struct kunit *test, enum ib_mr_dma_check_mode mode)
{
	KUNIT_ASSERT_EQ(test, ib_mr_dma_check_set(ibt_dev(test), mode), 0);
}

struct ib_device *chk_begin(struct kunit *test, enum ib_mr_dma_check_mode mode)
{
	struct ib_device *dev = ibt_dev(test);
	int i;

	ibt_defer(test, chk_mode_back, dev);
	chk_mode(test, IB_MR_DMA_TRACK);
	for (i = 0; ibmr_dma_unseen(dev) > 0; i++) {
		KUNIT_ASSERT_LT(test, i, 10000);
		ib_dma_unmap_single(dev, 0xdead0000ULL + 64 * i, 64, DMA_TO_DEVICE);
	}
	ibmr_dma_settle(dev);
	ibmr_dma_forget_reports();
	chk_mode(test, mode);
	return dev;
}

void chk_faults(struct ib_device *dev, u64 *n)
{
	int i;

	for (i = 0; i < IB_MR_DMA_FAULT_COUNT; i++)
		n[i] = ib_mr_dma_reports(dev, i);
}

const char *chk_name(enum ib_mr_dma_fault fault)
{
	static const char *const names[] = {
#define CHK_NAME(NAME, name, text) #name,
		IB_MR_DMA_FAULTS(CHK_NAME)
	};

	return names[fault];
}

void chk_expect(struct kunit *test, struct ib_device *dev, const u64 *before,
		enum ib_mr_dma_fault fault, u64 n, const char *what)
{
	u64 now[IB_MR_DMA_FAULT_COUNT];
	int i;

	chk_faults(dev, now);
	for (i = 0; i < IB_MR_DMA_FAULT_COUNT; i++)
		KUNIT_EXPECT_EQ_MSG(test, now[i] - before[i], i == (int)fault ? n : 0,
				    "%s: %s", what, chk_name(i));
}

u64 chk_map(struct kunit *test, struct ib_device *dev, void *buf, size_t size,
	    enum dma_data_direction dir)
{
	u64 addr = ib_dma_map_single(dev, buf, size, dir);

	KUNIT_EXPECT_EQ(test, ib_dma_mapping_error(dev, addr), 0);
	return addr;
}

/* A device goes with two mappings alive, made at one place; they can be unmapped late. */
static noinline u64 chk_leaky(struct kunit *test, struct ib_device *dev, u8 *buf)
{
	return chk_map(test, dev, buf, 64, DMA_TO_DEVICE);
}

static void chk_leak(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, 4096, GFP_KERNEL);
	struct ib_device *dev;
	u64 addr[3];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	chk_begin(test, IB_MR_DMA_TRACK);
	dev = ibt_dma_device(test);
	KUNIT_ASSERT_EQ(test, ibmr_dma_dev_add(dev, NULL), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_set(dev, IB_MR_DMA_TRACK), 0);
	for (i = 0; i < 3; i++)
		addr[i] = chk_leaky(test, dev, buf + 64 * i);
	ib_dma_unmap_single(dev, addr[0], 64, DMA_TO_DEVICE);
	ibmr_dma_dev_remove(dev);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_reports(dev, IB_MR_DMA_LEAK), 0ULL);
	ibmr_dma_leaks_now();
	KUNIT_EXPECT_EQ(test, ib_mr_dma_reports(dev, IB_MR_DMA_LEAK), 2ULL);
	KUNIT_EXPECT_EQ(test, ibmr_dma_sites(IB_MR_DMA_LEAK), 1U);
	ibmr_dma_leaks_now();
	KUNIT_EXPECT_EQ(test, ib_mr_dma_reports(dev, IB_MR_DMA_LEAK), 2ULL);
	for (i = 1; i < 3; i++)
		ib_dma_unmap_single(dev, addr[i], 64, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_reports(dev, IB_MR_DMA_NEVER_MAPPED), 0ULL);
}

/* A device that goes clean leaves nothing to say. */
static void chk_no_leak(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, 64, GFP_KERNEL);
	struct ib_device *dev;
	u64 addr;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	chk_begin(test, IB_MR_DMA_TRACK);
	dev = ibt_dma_device(test);
	KUNIT_ASSERT_EQ(test, ibmr_dma_dev_add(dev, NULL), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_set(dev, IB_MR_DMA_TRACK), 0);
	addr = chk_map(test, dev, buf, 64, DMA_TO_DEVICE);
	ib_dma_unmap_single(dev, addr, 64, DMA_TO_DEVICE);
	ibmr_dma_dev_remove(dev);
	ibmr_dma_leaks_now();
	KUNIT_EXPECT_EQ(test, ib_mr_dma_reports(dev, IB_MR_DMA_LEAK), 0ULL);
	KUNIT_EXPECT_EQ(test, ibmr_dma_sites(IB_MR_DMA_LEAK), 0U);
}

/* A device comes where one has just gone: the late look at that one must not be taken twice. */
static void chk_readd(struct kunit *test)
{
	unsigned int seconds = ibmr_dma_leak_seconds;
	struct ib_device *dev;
	int i;

	chk_begin(test, IB_MR_DMA_TRACK);
	dev = ibt_dma_device(test);
	ibmr_dma_leak_seconds = 0;
	for (i = 0; i < 300; i++) {
		KUNIT_EXPECT_EQ(test, ibmr_dma_dev_add(dev, NULL), 0);
		ibmr_dma_dev_remove(dev);
		if (i % 7 == 0)
			usleep_range(10, 200);
	}
	/* All of them go: none is found, and lists and objects are checked by the debug kernel. */
	for (i = 0; i < 200 && ib_mr_dma_check_get(dev) != -ENODEV; i++)
		msleep(50);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_get(dev), -ENODEV);
	ibmr_dma_leak_seconds = seconds;
}

/* The same memory mapped twice: an unmap takes the mapping that it fits. */
static void chk_overlap(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_TRACK);
	u8 *buf = kunit_kzalloc(test, 1024, GFP_KERNEL);
	u64 before[IB_MR_DMA_FAULT_COUNT], a, b, c;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	chk_faults(dev, before);
	a = chk_map(test, dev, buf, 1024, DMA_TO_DEVICE);
	b = chk_map(test, dev, buf, 512, DMA_TO_DEVICE);
	c = chk_map(test, dev, buf, 512, DMA_FROM_DEVICE);
	ib_dma_sync_single_for_cpu(dev, c + 10, 10, DMA_FROM_DEVICE);
	ib_dma_sync_single_for_device(dev, a + 600, 10, DMA_TO_DEVICE);
	ib_dma_unmap_single(dev, b, 512, DMA_TO_DEVICE);
	ib_dma_unmap_single(dev, a, 1024, DMA_TO_DEVICE);
	ib_dma_unmap_single(dev, c, 512, DMA_FROM_DEVICE);
	chk_expect(test, dev, before, 0, 0, "overlapping");
}

/* Modes change while something is mapped: data arrive, nothing is reported, nothing stays. */
static void chk_modes(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_OFF);
	u8 *buf = kunit_kzalloc(test, 64, GFP_KERNEL);
	u64 before[IB_MR_DMA_FAULT_COUNT], addr;
	int made, then;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	chk_faults(dev, before);
	for (made = IB_MR_DMA_OFF; made <= IB_MR_DMA_BOUNCE_STRICT; made++) {
		for (then = IB_MR_DMA_OFF; then <= IB_MR_DMA_BOUNCE_STRICT; then++) {
			chk_mode(test, made);
			addr = chk_map(test, dev, buf, 64, DMA_FROM_DEVICE);
			KUNIT_EXPECT_EQ(test, addr != (uintptr_t)buf, made >= IB_MR_DMA_BOUNCE);
			chk_mode(test, then);
			memset((void *)(uintptr_t)addr, 16 * made + then + 1, 64);
			ib_dma_sync_single_for_cpu(dev, addr, 64, DMA_FROM_DEVICE);
			KUNIT_EXPECT_EQ(test, buf[63], 16 * made + then + 1);
			memset((void *)(uintptr_t)addr, 16 * made + then + 2, 64);
			ib_dma_unmap_single(dev, addr, 64, DMA_FROM_DEVICE);
			KUNIT_EXPECT_EQ_MSG(test, buf[63], 16 * made + then + 2, "%d -> %d", made,
					    then);
			KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
		}
	}
	chk_expect(test, dev, before, 0, 0, "modes");
}

static void chk_mode_args(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_OFF);

	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_set(dev, -1), -EINVAL);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_set(dev, IB_MR_DMA_BOUNCE_STRICT + 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_set(NULL, IB_MR_DMA_TRACK), -ENODEV);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_get(NULL), -ENODEV);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_get(dev), (int)IB_MR_DMA_OFF);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_reports(dev, IB_MR_DMA_FAULT_COUNT), 0ULL);
}

/* A map fails: the error says so, in every form, and nothing is left behind. */
static void chk_map_fails(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, 1024, GFP_KERNEL);
	u64 before[IB_MR_DMA_FAULT_COUNT], addr;
	struct ib_device *dev;
	struct scatterlist sg[2];
	int mode;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (mode = IB_MR_DMA_TRACK; mode <= IB_MR_DMA_BOUNCE; mode++) {
		dev = chk_begin(test, mode);
		chk_faults(dev, before);

		ibmr_dma_fail_map(2);
		addr = chk_map(test, dev, buf, 64, DMA_TO_DEVICE);
		ib_dma_unmap_single(dev, addr, 64, DMA_TO_DEVICE);
		addr = ib_dma_map_single(dev, buf, 64, DMA_TO_DEVICE);
		KUNIT_EXPECT_NE(test, ib_dma_mapping_error(dev, addr), 0);

		ibmr_dma_fail_map(1);
		addr = ib_dma_map_page(dev, virt_to_page(buf), offset_in_page(buf), 64,
				       DMA_TO_DEVICE);
		KUNIT_EXPECT_NE(test, ib_dma_mapping_error(dev, addr), 0);

		sg_init_table(sg, 2);
		sg_set_buf(&sg[0], buf, 64);
		sg_set_buf(&sg[1], buf + 512, 64);
		sg_dma_address(&sg[0]) = 0x5555;
		ibmr_dma_fail_map(1);
		KUNIT_EXPECT_EQ(test, ib_dma_map_sg(dev, sg, 2, DMA_TO_DEVICE), 0);
		KUNIT_EXPECT_EQ(test, (u64)sg_dma_address(&sg[0]), 0x5555ULL);

		addr = 0x1234;
		ibmr_dma_fail_map(1);
		KUNIT_EXPECT_NULL(test, ib_dma_alloc_coherent(dev, 64, &addr, GFP_KERNEL));
		KUNIT_EXPECT_EQ(test, addr, 0x1234ULL);

		KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
		chk_expect(test, dev, before, 0, 0, "failed maps");

		/* Who does not look builds a region of it. */
		ibmr_dma_fail_map(1);
		addr = ib_dma_map_single(dev, buf, 64, DMA_TO_DEVICE);
		ibmr_dma_used(dev, addr, 64);
		chk_expect(test, dev, before, IB_MR_DMA_UNCHECKED, 1, "a failed map used");
	}
}

/* The same by the kernel's fault injection (fail_dma_map in debugfs). */
static void chk_fault_injection(struct kunit *test)
{
#ifdef CONFIG_FAULT_INJECTION
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_BOUNCE);
	u8 *buf = kunit_kzalloc(test, 64, GFP_KERNEL);
	u64 addr;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	ibmr_dma_fault_attr.verbose = 0;
	atomic_set(&ibmr_dma_fault_attr.times, 3);
	ibmr_dma_fault_attr.probability = 100;
	for (i = 0; i < 4; i++) {
		addr = ib_dma_map_single(dev, buf, 64, DMA_TO_DEVICE);
		KUNIT_EXPECT_EQ(test, !!ib_dma_mapping_error(dev, addr), i < 3);
	}
	ibmr_dma_fault_attr.probability = 0;
	ib_dma_unmap_single(dev, addr, 64, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
#else
	kunit_skip(test, "kernel without CONFIG_FAULT_INJECTION");
#endif
}

/* Without memory a bounced map fails; a tracked one is made, and its unmap is no fault. */
static void chk_no_memory(struct kunit *test)
{
	u8 *buf = kunit_kzalloc(test, 8192, GFP_KERNEL);
	u64 before[IB_MR_DMA_FAULT_COUNT], addr;
	struct ib_device *dev;
	struct scatterlist sg[3];
	int mode, nth, n, hits;
	bool hit;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	sg_init_table(sg, 3);
	for (n = 0; n < 3; n++)
		sg_set_buf(&sg[n], buf + 2000 * n, 1000);
	for (mode = IB_MR_DMA_TRACK; mode <= IB_MR_DMA_BOUNCE; mode++) {
		dev = chk_begin(test, mode);
		chk_faults(dev, before);
		for (nth = 1, hits = 0, hit = true; hit; nth++) {
			ibmr_fault_arm(BIT(IBMR_FAULT_ALLOC), nth, current);
			n = ib_dma_map_sg(dev, sg, 3, DMA_BIDIRECTIONAL);
			hit = ibmr_fault_disarm();
			hits += hit;
			KUNIT_EXPECT_EQ(test, n, hit && mode == IB_MR_DMA_BOUNCE ? 0 : 3);
			if (n)
				ib_dma_unmap_sg(dev, sg, 3, DMA_BIDIRECTIONAL);
			KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
		}
		/* The mapping, and a shadow for each entry. */
		KUNIT_EXPECT_EQ(test, hits, mode == IB_MR_DMA_BOUNCE ? 4 : 1);
		ibmr_fault_arm(BIT(IBMR_FAULT_ALLOC), 1, current);
		addr = ib_dma_map_single(dev, buf, 64, DMA_BIDIRECTIONAL);
		KUNIT_EXPECT_TRUE(test, ibmr_fault_disarm());
		n = ib_dma_mapping_error(dev, addr);
		KUNIT_EXPECT_EQ(test, !!n, mode == IB_MR_DMA_BOUNCE);
		if (!n)
			ib_dma_unmap_single(dev, addr, 64, DMA_BIDIRECTIONAL);
		KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
		chk_expect(test, dev, before, 0, 0, "no memory");
	}
}

/* Mappings that are older than the checker are not reported when they go. */
static void chk_older(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_TRACK);
	u8 *buf = kunit_kzalloc(test, 256, GFP_KERNEL);
	u64 before[IB_MR_DMA_FAULT_COUNT], old[2];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	chk_faults(dev, before);
	chk_mode(test, IB_MR_DMA_OFF);
	for (i = 0; i < 2; i++)
		old[i] = chk_map(test, dev, buf + 64 * i, 64, DMA_FROM_DEVICE);
	chk_mode(test, IB_MR_DMA_TRACK);
	for (i = 0; i < 2; i++) {
		ib_dma_sync_single_for_cpu(dev, old[i], 64, DMA_FROM_DEVICE);
		ib_dma_unmap_single(dev, old[i], 64, DMA_FROM_DEVICE);
	}
	chk_expect(test, dev, before, 0, 0, "older than the checker");
	/* No more of them: now it is a fault. */
	ib_dma_unmap_single(dev, old[0], 64, DMA_FROM_DEVICE);
	chk_expect(test, dev, before, IB_MR_DMA_NEVER_MAPPED, 1, "none left");
}

/* Many at once, overlapping, while the mode changes. */
struct chk_many {
	struct ib_device *dev;
	u8 *buf;
	bool modes;
};

static int chk_many_run(void *arg, int i)
{
	struct chk_many *m = arg;
	struct scatterlist sg[2];
	u64 addr;
	int k;

	if (!i) {
		for (k = 0; k < 60 && m->modes; k++) {
			if (ib_mr_dma_check_set(m->dev, IB_MR_DMA_TRACK + (k & 1)))
				return -EINVAL;
			usleep_range(200, 1000);
		}
		return 0;
	}
	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], m->buf + 8 * i, 100);
	sg_set_buf(&sg[1], m->buf + PAGE_SIZE + 8 * i, 100);
	for (k = 0; k < 2000; k++) {
		addr = ib_dma_map_single(m->dev, m->buf + (k & 15), 1000, DMA_TO_DEVICE);
		if (ib_dma_mapping_error(m->dev, addr))
			return -ENOMEM;
		ib_dma_sync_single_for_device(m->dev, addr + 100, 50, DMA_TO_DEVICE);
		if (ib_dma_map_sg(m->dev, sg, 2, DMA_TO_DEVICE) != 2)
			return -ENOMEM;
		ib_dma_sync_single_for_device(m->dev, sg_dma_address(&sg[1]), 100, DMA_TO_DEVICE);
		ib_dma_unmap_single(m->dev, addr, 1000, DMA_TO_DEVICE);
		ib_dma_unmap_sg(m->dev, sg, 2, DMA_TO_DEVICE);
		if (!(k % 64))
			cond_resched();
	}
	return 0;
}

static void chk_many(struct kunit *test)
{
	struct ib_device *dev = chk_begin(test, IB_MR_DMA_TRACK);
	struct chk_many m = { .dev = dev, .modes = true };
	u64 before[IB_MR_DMA_FAULT_COUNT];

	m.buf = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_ZERO, 1);
	KUNIT_ASSERT_NOT_NULL(test, m.buf);
	chk_faults(dev, before);
	ibt_parallel(test, 4, chk_many_run, &m);
	chk_expect(test, dev, before, 0, 0, "many");
	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
	free_pages((unsigned long)m.buf, 1);
}

static struct kunit_case mode_cases[] = {
	KUNIT_CASE(chk_leak),
	KUNIT_CASE(chk_no_leak),
	KUNIT_CASE(chk_readd),
	KUNIT_CASE(chk_overlap),
	KUNIT_CASE(chk_modes),
	KUNIT_CASE(chk_mode_args),
	KUNIT_CASE(chk_map_fails),
	KUNIT_CASE(chk_fault_injection),
	KUNIT_CASE(chk_no_memory),
	KUNIT_CASE(chk_older),
	KUNIT_CASE(chk_many),
	{}
};

IBT_SUITE(dma_mode, mode_cases);
