// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fail-nth rows: the DMA helpers under the checker, which allocates what it remembers, and a shadow
 * with bounce.
 */
#include "failnth.h"
#include "dma_chk.h"

#ifdef CONFIG_IB_MR_DEBUG

#define SIZE	1000

static void set_up_bounce(struct fn_room *r)
{
	unsigned int i;

	r->dev = chk_begin(r->test, IB_MR_DMA_BOUNCE);
	r->twice = ib_mr_dma_reports(r->dev, IB_MR_DMA_UNMAP_TWICE);
	r->mem = kunit_kzalloc(r->test, 3 * PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(r->test, r->mem);
	sg_init_table(r->sg, ARRAY_SIZE(r->sg));
	for (i = 0; i < ARRAY_SIZE(r->sg); i++)
		sg_set_buf(&r->sg[i], r->mem + 2000 * i, SIZE);
}

static int mapped(struct fn_room *r)
{
	return ib_dma_mapping_error(r->dev, r->dma);
}

static int run_single(struct fn_room *r)
{
	r->dma = ib_dma_map_single(r->dev, r->mem, SIZE, DMA_FROM_DEVICE);
	return mapped(r);
}

static int run_unmap_single(struct fn_room *r)
{
	ib_dma_unmap_single(r->dev, r->dma, SIZE, DMA_FROM_DEVICE);
	return 0;
}

/* A peer's write reaches the buffer, by the shadow, when it is given back. */
static void write_by_peer(struct fn_room *r)
{
	struct ib_mr *mr = ib_get_dma_mr(r->pd, LW | RW);

	KUNIT_ASSERT_FALSE(r->test, IS_ERR(mr));
	memset(r->p->req.buf, 0x5c, SIZE);
	KUNIT_EXPECT_EQ(r->test, ibt_rdma(r->p, IBT_WRITE, r->p->req.buf, mr->rkey, r->dma, SIZE),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(r->test, ib_dereg_mr(mr), 0);
}

static void expect_written(struct fn_room *r)
{
	KUNIT_EXPECT_NULL(r->test, memchr_inv(r->mem, 0x5c, SIZE));
	KUNIT_EXPECT_EQ(r->test, ibmr_dma_live(r->dev), 0ULL);
	memset(r->mem, 0, SIZE);
}

static void done_single(struct fn_room *r)
{
	write_by_peer(r);
	run_unmap_single(r);
	expect_written(r);
}

static int run_page(struct fn_room *r)
{
	r->dma = ib_dma_map_page(r->dev, virt_to_page(r->mem), offset_in_page(r->mem), SIZE,
				 DMA_FROM_DEVICE);
	return mapped(r);
}

static int run_unmap_page(struct fn_room *r)
{
	ib_dma_unmap_page(r->dev, r->dma, SIZE, DMA_FROM_DEVICE);
	return 0;
}

static void done_page(struct fn_room *r)
{
	write_by_peer(r);
	run_unmap_page(r);
	expect_written(r);
}

static int run_map_sg(struct fn_room *r)
{
	int n = ib_dma_map_sg(r->dev, r->sg, ARRAY_SIZE(r->sg), DMA_FROM_DEVICE);

	r->dma = n ? ib_sg_dma_address(r->dev, r->sg) : 0;
	return n ? 0 : -ENOMEM;
}

static int run_unmap_sg(struct fn_room *r)
{
	ib_dma_unmap_sg(r->dev, r->sg, ARRAY_SIZE(r->sg), DMA_FROM_DEVICE);
	return 0;
}

static void done_map_sg(struct fn_room *r)
{
	write_by_peer(r);
	run_unmap_sg(r);
	expect_written(r);
}

static void before_single(struct fn_room *r)
{
	KUNIT_ASSERT_EQ(r->test, run_single(r), 0);
}

static void before_page(struct fn_room *r)
{
	KUNIT_ASSERT_EQ(r->test, run_page(r), 0);
}

static void before_sg(struct fn_room *r)
{
	KUNIT_ASSERT_EQ(r->test, run_map_sg(r), 0);
}

static void end_single(struct fn_room *r)
{
	run_unmap_single(r);
}

static int run_sync_cpu(struct fn_room *r)
{
	ib_dma_sync_single_for_cpu(r->dev, r->dma, SIZE, DMA_FROM_DEVICE);
	return 0;
}

static int run_sync_device(struct fn_room *r)
{
	ib_dma_sync_single_for_device(r->dev, r->dma, SIZE, DMA_FROM_DEVICE);
	return 0;
}

static int run_coherent(struct fn_room *r)
{
	r->mem = ib_dma_alloc_coherent(r->dev, SIZE, &r->dma, GFP_KERNEL);
	return r->mem ? 0 : -ENOMEM;
}

static int run_free_coherent(struct fn_room *r)
{
	ib_dma_free_coherent(r->dev, SIZE, r->mem, r->dma);
	return 0;
}

static void done_coherent(struct fn_room *r)
{
	write_by_peer(r);
	KUNIT_EXPECT_NULL(r->test, memchr_inv(r->mem, 0x5c, SIZE));
	run_free_coherent(r);
	KUNIT_EXPECT_EQ(r->test, ibmr_dma_live(r->dev), 0ULL);
	/* Made where another one was, and not remembered, it is not unmapped a second time. */
	KUNIT_EXPECT_EQ(r->test, ib_mr_dma_reports(r->dev, IB_MR_DMA_UNMAP_TWICE), r->twice);
}

static void before_coherent(struct fn_room *r)
{
	KUNIT_ASSERT_EQ(r->test, run_coherent(r), 0);
}

static int run_mode_set(struct fn_room *r)
{
	return ib_mr_dma_check_set(r->dev, IB_MR_DMA_TRACK) ?:
	       ib_mr_dma_check_set(r->dev, IB_MR_DMA_BOUNCE);
}

static int run_mode_get(struct fn_room *r)
{
	return ib_mr_dma_check_get(r->dev) == IB_MR_DMA_BOUNCE ? 0 : -EINVAL;
}

static int run_reports(struct fn_room *r)
{
	ib_mr_dma_reports(r->dev, IB_MR_DMA_LEAK);
	return 0;
}

/* By its own struct device; and for NULL the oldest one, which may be another. */
static int run_soft_device(struct fn_room *r)
{
	return ib_mr_soft_device(&r->dev->dev) == r->dev && ib_mr_soft_device(NULL) ? 0 : -EINVAL;
}

static const struct fn_row dma[] = {
	{ "__ib_mr_dma_map_single", NULL, F_ALLOC, .set_up = set_up_bounce,
	  .run = run_single, .done = done_single },
	{ "__ib_mr_dma_map_page", NULL, F_ALLOC, .set_up = set_up_bounce,
	  .run = run_page, .done = done_page },
	{ "__ib_mr_dma_map_sg", NULL, F_ALLOC, .set_up = set_up_bounce,
	  .run = run_map_sg, .done = done_map_sg },
	{ "__ib_mr_dma_alloc_coherent", NULL, F_ALLOC, .set_up = set_up_bounce,
	  .run = run_coherent, .done = done_coherent },
	{ "__ib_mr_dma_unmap_single", .set_up = set_up_bounce, .before = before_single,
	  .run = run_unmap_single },
	{ "__ib_mr_dma_unmap_page", .set_up = set_up_bounce, .before = before_page,
	  .run = run_unmap_page },
	{ "__ib_mr_dma_unmap_sg", .set_up = set_up_bounce, .before = before_sg,
	  .run = run_unmap_sg },
	{ "__ib_mr_dma_mapping_error", .set_up = set_up_bounce, .before = before_single,
	  .run = mapped, .done = end_single },
	{ "__ib_mr_dma_sync_for_cpu", .set_up = set_up_bounce, .before = before_single,
	  .run = run_sync_cpu, .done = end_single },
	{ "__ib_mr_dma_sync_for_device", .set_up = set_up_bounce, .before = before_single,
	  .run = run_sync_device, .done = end_single },
	{ "ib_mr_dma_free_coherent", .set_up = set_up_bounce, .before = before_coherent,
	  .run = run_free_coherent },
	{ "ib_mr_dma_check_set", .set_up = set_up_bounce, .run = run_mode_set },
	{ "ib_mr_dma_check_get", .set_up = set_up_bounce, .run = run_mode_get },
	{ "ib_mr_dma_reports", .set_up = set_up_bounce, .run = run_reports },
	{ "ib_mr_soft_device", .run = run_soft_device },
};

FN_SUITE(dma, dma);

#endif /* CONFIG_IB_MR_DEBUG */
