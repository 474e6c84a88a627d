// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA helpers: what they return, coherent memory, any context, and that a device with a real DMA
 * path gets what it should. With the checker off, unless said otherwise.
 */

#include <linux/completion.h>
#include <linux/dma-direct.h>
#include <linux/irq_work.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/swiotlb.h>
#include <rdma/ib_dma.h>

#include "dma_device.h"
#include "dma/dma.h"

static void dma_mode_back(struct kunit *test, void *dev)
{
	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_set(dev, IB_MR_DMA_OFF), 0);
}

static void dma_mode(struct kunit *test, struct ib_device *dev, enum ib_mr_dma_check_mode mode)
{
	ibt_defer(test, dma_mode_back, dev);
	KUNIT_ASSERT_EQ(test, ib_mr_dma_check_set(dev, mode), 0);
	KUNIT_ASSERT_EQ(test, ib_mr_dma_check_get(dev), (int)mode);
}

/* Every name, with the classic arguments: on a virtual-DMA device an address is the CPU's. */
static void dma_names(struct kunit *test)
{
	struct ib_device *dev = ibt_dev(test);
	struct page *page = alloc_pages(GFP_KERNEL, 1);
	long unseen = ibmr_dma_unseen(dev);
	struct scatterlist sg[2];
	struct sg_table sgt = { .sgl = sg, .orig_nents = 2 };
	u8 *buf;
	u64 addr;

	KUNIT_ASSERT_NOT_NULL(test, page);
	buf = page_address(page);
	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], buf + 8, 100);
	sg_set_buf(&sg[1], buf + PAGE_SIZE, 200);

	addr = ib_dma_map_single(dev, buf + 3, 5000, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, addr, (u64)(uintptr_t)buf + 3);
	KUNIT_EXPECT_EQ(test, ib_dma_mapping_error(dev, addr), 0);
	ib_dma_sync_single_for_cpu(dev, addr, 10, DMA_TO_DEVICE);
	ib_dma_sync_single_for_device(dev, addr, 10, DMA_TO_DEVICE);
	ib_dma_unmap_single(dev, addr, 5000, DMA_TO_DEVICE);
	addr = ib_dma_map_single_attrs(dev, buf, 16, DMA_FROM_DEVICE, NULL);
	KUNIT_EXPECT_EQ(test, addr, (u64)(uintptr_t)buf);
	ib_dma_unmap_single_attrs(dev, addr, 16, DMA_FROM_DEVICE, NULL);
	addr = ib_dma_map_single_attrs(dev, buf, 16, DMA_FROM_DEVICE, DMA_ATTR_SKIP_CPU_SYNC);
	KUNIT_EXPECT_EQ(test, addr, (u64)(uintptr_t)buf);
	ib_dma_unmap_single_attrs(dev, addr, 16, DMA_FROM_DEVICE, DMA_ATTR_SKIP_CPU_SYNC);

	addr = ib_dma_map_page(dev, page, 70, 16, DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_EQ(test, addr, (u64)(uintptr_t)buf + 70);
	ib_dma_unmap_page(dev, addr, 16, DMA_BIDIRECTIONAL);
	addr = ib_dma_map_page_attrs(dev, page, 70, 16, DMA_BIDIRECTIONAL, 0);
	ib_dma_unmap_page_attrs(dev, addr, 16, DMA_BIDIRECTIONAL, 0);

	KUNIT_EXPECT_EQ(test, ib_dma_map_sg(dev, sg, 2, DMA_TO_DEVICE), 2);
	KUNIT_EXPECT_EQ(test, ib_sg_dma_address(dev, &sg[0]), (u64)(uintptr_t)buf + 8);
	KUNIT_EXPECT_EQ(test, ib_sg_dma_address(dev, &sg[1]), (u64)(uintptr_t)buf + PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, ib_sg_dma_len(dev, &sg[1]), 200U);
	ib_dma_unmap_sg(dev, sg, 2, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, ib_dma_map_sg_attrs(dev, sg, 2, DMA_TO_DEVICE, 0), 2);
	ib_dma_unmap_sg_attrs(dev, sg, 2, DMA_TO_DEVICE, 0);
	KUNIT_EXPECT_EQ(test, ib_dma_map_sgtable_attrs(dev, &sgt, DMA_TO_DEVICE, 0), 0);
	KUNIT_EXPECT_EQ(test, sgt.nents, 2U);
	ib_dma_unmap_sgtable_attrs(dev, &sgt, DMA_TO_DEVICE, 0);

	/* What no map returned is an error on every device. */
	KUNIT_EXPECT_NE(test, ib_dma_mapping_error(dev, DMA_MAPPING_ERROR), 0);
	KUNIT_EXPECT_EQ(test, ibmr_dma_unseen(dev), unseen);
	__free_pages(page, 1);
}

/* Coherent memory of a size: zeroed, on a page, a region at once, and the peer sees both ends. */
static void dma_coherent_of(struct kunit *test, size_t size)
{
	struct ib_device *dev = ibt_dev(test);
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *pair = ibt_pair(test, pd);
	struct ib_phys_buf phys;
	u8 *buf, *peer = pair->req.buf;
	struct ib_mr *mr;
	u64 handle, iova;

	buf = ib_dma_alloc_coherent(dev, size, &handle, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL_MSG(test, buf, "%zu bytes", size);
	KUNIT_EXPECT_EQ(test, handle, (u64)(uintptr_t)buf);
	KUNIT_EXPECT_TRUE(test, PAGE_ALIGNED(buf));
	KUNIT_EXPECT_NULL_MSG(test, memchr_inv(buf, 0, size), "%zu bytes are not all zero", size);

	phys = (struct ib_phys_buf){ .addr = handle, .size = size };
	iova = handle;
	mr = ibt_mr(test, ib_reg_phys_mr(pd, &phys, 1, LW | RR | RW, &iova));
	buf[0] = 0x5a;
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_READ, peer, mr->rkey, iova, 1), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, peer[0], 0x5a);
	peer[0] = 0xa5;
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_WRITE, peer, mr->rkey, iova + size - 1, 1),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, buf[size - 1], 0xa5);
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_READ, peer, mr->rkey, iova + size, 1),
			IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	ib_dma_free_coherent(dev, size, buf, handle);
}

static void dma_coherent(struct kunit *test)
{
	static const size_t sizes[] = {
		1, 64, PAGE_SIZE - 1, PAGE_SIZE, PAGE_SIZE + 1, SZ_64K, SZ_1M + 3, SZ_4M
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		dma_coherent_of(test, sizes[i]);
}

static void dma_coherent_bounds(struct kunit *test)
{
	struct ib_device *dev = ibt_dev(test);
	u64 handle = 0x1234;

	KUNIT_EXPECT_NULL(test, ib_dma_alloc_coherent(dev, 0, &handle, GFP_KERNEL));
	KUNIT_EXPECT_NULL(test, ib_dma_alloc_coherent(dev, SZ_4M + 1, &handle, GFP_KERNEL));
	KUNIT_EXPECT_NULL(test, ib_dma_alloc_coherent(dev, SIZE_MAX, &handle, GFP_KERNEL));
	KUNIT_EXPECT_EQ(test, handle, 0x1234ULL);
	ib_dma_free_coherent(dev, 100, NULL, 0);
}

/* The flags go to the allocator: atomic ones from a hard interrupt, zone modifiers are dropped. */
static void dma_coherent_gfp(struct kunit *test)
{
	struct ib_device *dev = ibt_dev(test);
	gfp_t odd = GFP_KERNEL | __GFP_COMP | __GFP_DMA32;
	u64 handle;
	void *buf;

	buf = ib_dma_alloc_coherent(dev, 3 * PAGE_SIZE, &handle, odd);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	/* Pages of their own each, not a compound one. */
	KUNIT_EXPECT_FALSE(test, PageCompound(virt_to_page(buf)));
	KUNIT_EXPECT_EQ(test, page_count(virt_to_page(buf + PAGE_SIZE)), 1);
	ib_dma_free_coherent(dev, 3 * PAGE_SIZE, buf, handle);
}

struct dma_irq {
	struct irq_work work;
	struct completion done;
	struct ib_device *dev;
	u8 *buf;
	struct scatterlist sg[2];
	bool hard;
	int bad;
};

static void dma_in_irq(struct irq_work *work)
{
	struct dma_irq *d = container_of(work, struct dma_irq, work);
	struct ib_device *dev = d->dev;
	void *coherent;
	u64 addr;

	d->hard = in_hardirq();
	addr = ib_dma_map_single(dev, d->buf, 300, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(dev, addr))
		d->bad++;
	ib_dma_sync_single_for_cpu(dev, addr, 300, DMA_BIDIRECTIONAL);
	ib_dma_sync_single_for_device(dev, addr, 300, DMA_BIDIRECTIONAL);
	ib_dma_unmap_single(dev, addr, 300, DMA_BIDIRECTIONAL);
	if (ib_dma_map_sg(dev, d->sg, 2, DMA_FROM_DEVICE) != 2)
		d->bad++;
	ib_dma_unmap_sg(dev, d->sg, 2, DMA_FROM_DEVICE);
	coherent = ib_dma_alloc_coherent(dev, 2 * PAGE_SIZE, &addr, GFP_ATOMIC);
	if (!coherent)
		d->bad++;
	ib_dma_free_coherent(dev, 2 * PAGE_SIZE, coherent, addr);
	complete(&d->done);
}

/* Hard interrupt, in each mode; lockdep and DEBUG_ATOMIC_SLEEP have their say too. */
static void dma_contexts(struct kunit *test)
{
	struct ib_device *dev = ibt_dev(test);
	u8 *buf = kunit_kzalloc(test, 2 * PAGE_SIZE, GFP_KERNEL);
	struct dma_irq *d = kunit_kzalloc(test, sizeof(*d), GFP_KERNEL);
	int mode;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_ASSERT_NOT_NULL(test, d);
	d->dev = dev;
	d->buf = buf;
	sg_init_table(d->sg, 2);
	sg_set_buf(&d->sg[0], buf, 100);
	sg_set_buf(&d->sg[1], buf + 3000, 1000);
	for (mode = IB_MR_DMA_OFF; mode <= IB_MR_DMA_BOUNCE; mode++) {
		dma_mode(test, dev, mode);
		init_completion(&d->done);
		init_irq_work(&d->work, dma_in_irq);
		irq_work_queue(&d->work);
		wait_for_completion(&d->done);
		irq_work_sync(&d->work);
		KUNIT_EXPECT_TRUE(test, d->hard);
		KUNIT_EXPECT_EQ_MSG(test, d->bad, 0, "mode %d", mode);
		KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
	}
}

/*
 * A device with a real DMA path. What "the device" does is done through the DMA address; with
 * swiotlb=force on the kernel's command line that is other memory than the buffer's.
 */
static void dma_real_gone(struct kunit *test, void *dev)
{
	ibmr_dma_dev_remove(dev);
}

static struct ib_device *dma_real(struct kunit *test, enum ib_mr_dma_check_mode mode)
{
	struct ib_device *dev = ibt_dma_device(test);

	KUNIT_ASSERT_FALSE(test, ib_uses_virt_dma(dev));
	KUNIT_ASSERT_EQ(test, ibmr_dma_dev_add(dev, NULL), 0);
	ibt_defer(test, dma_real_gone, dev);
	dma_mode(test, dev, mode);
	return dev;
}

static void dma_real_data(struct kunit *test, enum ib_mr_dma_check_mode mode)
{
	struct ib_device *dev = dma_real(test, mode);
	bool forced = is_swiotlb_force_bounce(dev->dma_device);
	u8 *buf = kunit_kzalloc(test, 4096, GFP_KERNEL);
	struct scatterlist sg[2];
	u64 addr;
	void *p;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	kunit_info(test, "swiotlb=force: %s\n", forced ? "yes" : "no");

	addr = ib_dma_map_single(dev, buf, 512, DMA_BIDIRECTIONAL);
	KUNIT_ASSERT_EQ(test, ib_dma_mapping_error(dev, addr), 0);
	KUNIT_EXPECT_EQ(test, addr == virt_to_phys(buf), !forced);
	strscpy(ibt_dma_mem(addr), "from the device", 512);
	ib_dma_sync_single_for_cpu(dev, addr, 512, DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_STREQ(test, (char *)buf, "from the device");
	strscpy(buf, "from the CPU", 512);
	ib_dma_sync_single_for_device(dev, addr, 512, DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_STREQ(test, (char *)ibt_dma_mem(addr), "from the CPU");
	strscpy(ibt_dma_mem(addr), "at last", 512);
	ib_dma_unmap_single(dev, addr, 512, DMA_BIDIRECTIONAL);
	KUNIT_EXPECT_STREQ(test, (char *)buf, "at last");

	addr = ib_dma_map_page(dev, virt_to_page(buf), offset_in_page(buf), 64, DMA_FROM_DEVICE);
	KUNIT_ASSERT_EQ(test, ib_dma_mapping_error(dev, addr), 0);
	strscpy(ibt_dma_mem(addr), "a page", 64);
	ib_dma_unmap_page(dev, addr, 64, DMA_FROM_DEVICE);
	KUNIT_EXPECT_STREQ(test, (char *)buf, "a page");

	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], buf, 64);
	sg_set_buf(&sg[1], buf + 1024, 64);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(dev, sg, 2, DMA_FROM_DEVICE), 2);
	strscpy(ibt_dma_mem(ib_sg_dma_address(dev, &sg[1])), "an entry", 64);
	ib_dma_unmap_sg(dev, sg, 2, DMA_FROM_DEVICE);
	KUNIT_EXPECT_STREQ(test, (char *)buf + 1024, "an entry");

	p = ib_dma_alloc_coherent(dev, 3 * PAGE_SIZE, &addr, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_EXPECT_NULL(test, memchr_inv(p, 0, 3 * PAGE_SIZE));
	strscpy(ibt_dma_mem(addr), "coherent", 64);
	KUNIT_EXPECT_STREQ(test, (char *)p, "coherent");
	ib_dma_free_coherent(dev, 3 * PAGE_SIZE, p, addr);

	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
}

static void dma_real_off(struct kunit *test)
{
	dma_real_data(test, IB_MR_DMA_OFF);
}

static void dma_real_track(struct kunit *test)
{
	dma_real_data(test, IB_MR_DMA_TRACK);
}

#define expect_seen(test, s, n, a1, a2, a3, a4)						\
do {											\
	KUNIT_EXPECT_EQ(test, (s)->count, (unsigned int)(n));				\
	KUNIT_EXPECT_EQ(test, (s)->arg[1], (unsigned long)(a1));			\
	KUNIT_EXPECT_EQ(test, (s)->arg[2], (unsigned long)(a2));			\
	KUNIT_EXPECT_EQ(test, (s)->arg[3], (unsigned long)(a3));			\
	KUNIT_EXPECT_EQ(test, (s)->arg[4], (unsigned long)(a4));			\
} while (0)

/* Each call arrives at the DMA API, once, with its arguments. */
static void dma_real_args(struct kunit *test, enum ib_mr_dma_check_mode mode)
{
	struct ib_device *dev = dma_real(test, mode);
	u8 *buf = kunit_kzalloc(test, 4096, GFP_KERNEL);
	struct ibt_dma_seen *seen;
	struct scatterlist sg[3];
	u64 addr;
	void *p;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	seen = ibt_dma_listen(test, dev, false);
	if (!seen)
		kunit_skip(test, "no kprobes");

	addr = ib_dma_map_single_attrs(dev, buf, 100, DMA_TO_DEVICE, DMA_ATTR_WEAK_ORDERING);
	expect_seen(test, &seen[IBT_DMA_MAP], 1, virt_to_page(buf), offset_in_page(buf), 100,
		    DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, seen[IBT_DMA_MAP].arg[5], DMA_ATTR_WEAK_ORDERING);
	KUNIT_ASSERT_EQ(test, ib_dma_mapping_error(dev, addr), 0);
	ib_dma_sync_single_for_cpu(dev, addr + 8, 16, DMA_TO_DEVICE);
	expect_seen(test, &seen[IBT_DMA_SYNC_CPU], 1, addr + 8, 16, DMA_TO_DEVICE,
		    seen[IBT_DMA_SYNC_CPU].arg[4]);
	ib_dma_sync_single_for_device(dev, addr + 4, 20, DMA_TO_DEVICE);
	expect_seen(test, &seen[IBT_DMA_SYNC_DEVICE], 1, addr + 4, 20, DMA_TO_DEVICE,
		    seen[IBT_DMA_SYNC_DEVICE].arg[4]);
	ib_dma_unmap_single_attrs(dev, addr, 100, DMA_TO_DEVICE, DMA_ATTR_WEAK_ORDERING);
	expect_seen(test, &seen[IBT_DMA_UNMAP], 1, addr, 100, DMA_TO_DEVICE,
		    DMA_ATTR_WEAK_ORDERING);

	addr = ib_dma_map_page(dev, virt_to_page(buf), offset_in_page(buf) + 5, 50,
			       DMA_FROM_DEVICE);
	expect_seen(test, &seen[IBT_DMA_MAP], 2, virt_to_page(buf), offset_in_page(buf) + 5, 50,
		    DMA_FROM_DEVICE);
	KUNIT_ASSERT_EQ(test, ib_dma_mapping_error(dev, addr), 0);
	ib_dma_unmap_page(dev, addr, 50, DMA_FROM_DEVICE);
	expect_seen(test, &seen[IBT_DMA_UNMAP], 2, addr, 50, DMA_FROM_DEVICE, 0);

	sg_init_table(sg, 3);
	for (i = 0; i < 3; i++)
		sg_set_buf(&sg[i], buf + 1000 * i, 64);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(dev, sg, 3, DMA_BIDIRECTIONAL), 3);
	expect_seen(test, &seen[IBT_DMA_MAP_SG], 1, sg, 3, DMA_BIDIRECTIONAL, 0);
	ib_dma_unmap_sg(dev, sg, 3, DMA_BIDIRECTIONAL);
	expect_seen(test, &seen[IBT_DMA_UNMAP_SG], 1, sg, 3, DMA_BIDIRECTIONAL, 0);

	p = ib_dma_alloc_coherent(dev, 100, &addr, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_EXPECT_EQ(test, seen[IBT_DMA_ALLOC].count, 1U);
	KUNIT_EXPECT_EQ(test, seen[IBT_DMA_ALLOC].arg[1], 100UL);
	KUNIT_EXPECT_EQ(test, seen[IBT_DMA_ALLOC].arg[3],
			(__force unsigned long)(GFP_KERNEL | __GFP_ZERO));
	ib_dma_free_coherent(dev, 100, p, addr);
	expect_seen(test, &seen[IBT_DMA_FREE], 1, 100, p, addr, seen[IBT_DMA_FREE].arg[4]);
}

static void dma_real_args_off(struct kunit *test)
{
	dma_real_args(test, IB_MR_DMA_OFF);
}

static void dma_real_args_track(struct kunit *test)
{
	dma_real_args(test, IB_MR_DMA_TRACK);
}

/* Merged entries: the mapped count comes back from the map, the original one goes to the unmap. */
static void dma_real_merged(struct kunit *test)
{
	struct ib_device *dev = dma_real(test, IB_MR_DMA_TRACK);
	u8 *buf = kunit_kzalloc(test, 4096, GFP_KERNEL);
	struct ibt_dma_seen *seen;
	struct scatterlist sg[5];
	struct sg_table sgt = { .sgl = sg, .orig_nents = 5 };
	u64 size = IB_MR_DMA_UNMAP_SIZE;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	seen = ibt_dma_listen(test, dev, true);
	if (!seen)
		kunit_skip(test, "no kprobes");
	sg_init_table(sg, 5);
	for (i = 0; i < 5; i++)
		sg_set_buf(&sg[i], buf + 64 * i, 64);

	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(dev, sg, 5, DMA_TO_DEVICE), 3);
	KUNIT_EXPECT_EQ(test, ib_sg_dma_len(dev, &sg[0]), 128U);
	KUNIT_EXPECT_EQ(test, ib_sg_dma_len(dev, &sg[2]), 64U);
	/* The merged runs are known as such: a sync may span what was two entries. */
	ib_dma_sync_single_for_device(dev, ib_sg_dma_address(dev, &sg[0]) + 60, 8, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_reports(dev, IB_MR_DMA_SYNC_OUTSIDE), 0ULL);
	ib_dma_unmap_sg(dev, sg, 5, DMA_TO_DEVICE);
	expect_seen(test, &seen[IBT_DMA_UNMAP_SG], 1, sg, 5, DMA_TO_DEVICE, 0);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_reports(dev, size), 0ULL);

	KUNIT_ASSERT_EQ(test, ib_dma_map_sgtable_attrs(dev, &sgt, DMA_TO_DEVICE, 0), 0);
	KUNIT_EXPECT_EQ(test, sgt.nents, 3U);
	ib_dma_unmap_sgtable_attrs(dev, &sgt, DMA_TO_DEVICE, 0);
	KUNIT_EXPECT_EQ(test, seen[IBT_DMA_UNMAP_SG].arg[2], 5UL);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_reports(dev, size), 0ULL);

	/* The classic mistake. */
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(dev, sg, 5, DMA_TO_DEVICE), 3);
	ib_dma_unmap_sg(dev, sg, 3, DMA_TO_DEVICE);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_reports(dev, size), 1ULL);
	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
}

static void dma_real_no_bounce(struct kunit *test)
{
	struct ib_device *dev = dma_real(test, IB_MR_DMA_TRACK);

	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_set(dev, IB_MR_DMA_BOUNCE), -EOPNOTSUPP);
	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_get(dev), (int)IB_MR_DMA_TRACK);
}

static struct kunit_case dma_cases[] = {
	KUNIT_CASE(dma_names),
	KUNIT_CASE(dma_coherent),
	KUNIT_CASE(dma_coherent_bounds),
	KUNIT_CASE(dma_coherent_gfp),
	KUNIT_CASE(dma_contexts),
	KUNIT_CASE(dma_real_off),
	KUNIT_CASE(dma_real_track),
	KUNIT_CASE(dma_real_args_off),
	KUNIT_CASE(dma_real_args_track),
	KUNIT_CASE(dma_real_merged),
	KUNIT_CASE(dma_real_no_bounce),
	{}
};

IBT_SUITE(dma, dma_cases);
