// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * siw beside rxe: an iWARP device connects queue pairs by a connection manager only, so it has no
 * registration queue pair. What needs none works there as elsewhere, which a peer's READ and WRITE
 * say; what needs one is refused, with one errno and one reason. Devices of both kinds at once do
 * not know of each other, and one goes without the other noticing.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <rdma/ib_dma.h>
#include <rdma/ib_fmr_pool.h>
#include <rdma/ib_mr_arena.h>
#include <rdma/ib_mr_mw.h>
#include "dma/dma.h"
#include "proc.h"
#include "siw.h"

#define PROT_RW	(PROT_READ | PROT_WRITE)

static u8 *page_of(struct kunit *test, u64 seed)
{
	u8 *page = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	size_t i;

	KUNIT_ASSERT_NOT_NULL(test, page);
	for (i = 0; i < PAGE_SIZE; i++)
		page[i] = ibt_pat(seed, i);
	return page;
}

static bool has_pattern(const u8 *buf, u64 seed, size_t len)
{
	size_t i;

	for (i = 0; i < len && buf[i] == ibt_pat(seed, i); i++)
		;
	return i == len;
}

/*
 * DMA MRs: the key dies with the region, and is of its PD. The right to write is exact. For a READ
 * siw looks at key, PD and range, and not at rights (siw_qp_sq_proc_tx() checks with none): what is
 * refused by ib_mr_check() for the lack of them is let through. SECURITY.md says so.
 */
static void siw_dma_mr(struct kunit *test)
{
	struct ib_device *dev = siw_device(test);
	struct ib_pd *pd = siw_pd(test, dev), *other = siw_pd(test, dev);
	u8 *page = page_of(test, 1);
	u64 at = (uintptr_t)page;
	struct ib_mr *local, *read, *write;
	struct siw_pair *p;
	u32 key;

	local = ibt_mr(test, ib_get_dma_mr(pd, LW));
	read = ibt_mr(test, ib_get_dma_mr(pd, RR));
	write = ibt_mr(test, ib_get_dma_mr(pd, LW | RW));
	KUNIT_EXPECT_PTR_EQ(test, read->device, dev);
	KUNIT_EXPECT_EQ(test, local->rkey, 0U);

	p = siw_pair(test, pd);
	KUNIT_EXPECT_EQ(test, siw_rdma(p, IB_WR_RDMA_READ, read->rkey, at, 4096), IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, has_pattern(p->buf, 1, 4096));
	memset(p->buf, 0x77, 100);
	KUNIT_EXPECT_EQ(test, siw_rdma(p, IB_WR_RDMA_WRITE, write->rkey, at, 100), IB_WC_SUCCESS);
	/* Behind it, so when it is done the WRITE is. */
	KUNIT_EXPECT_EQ(test, siw_rdma(p, IB_WR_RDMA_READ, read->rkey, at, 100), IB_WC_SUCCESS);
	KUNIT_EXPECT_NULL(test, memchr_inv(page, 0x77, 100));
	KUNIT_EXPECT_EQ(test, page[100], ibt_pat(1, 100));
	siw_pair_end(p);

	p = siw_pair(test, pd);
	memset(p->buf, 0x66, 16);
	siw_rdma(p, IB_WR_RDMA_WRITE, read->rkey, at, 16);
	KUNIT_EXPECT_NE(test, siw_rdma(p, IB_WR_RDMA_READ, read->rkey, at, 16), IB_WC_SUCCESS);
	KUNIT_EXPECT_NULL(test, memchr_inv(page, 0x77, 100));
	siw_pair_end(p);
	KUNIT_EXPECT_EQ(test, ib_mr_check(pd, read->rkey, at, 16, RW, true), IB_MR_WHY_NO_RIGHT);

	KUNIT_EXPECT_TRUE(test, siw_reads(test, pd, local->lkey, at, 16));
	KUNIT_EXPECT_EQ(test, ib_mr_check(pd, local->lkey, at, 16, RR, true), IB_MR_WHY_LOCAL_KEY);
	KUNIT_EXPECT_TRUE(test, siw_reads(test, pd, write->rkey, at, 16));
	KUNIT_EXPECT_EQ(test, ib_mr_check(pd, write->rkey, at, 16, RR, true), IB_MR_WHY_NO_RIGHT);
	KUNIT_EXPECT_FALSE(test, siw_reads(test, other, read->rkey, at, 16));
	KUNIT_EXPECT_EQ(test, ib_mr_check(other, read->rkey, at, 16, RR, true), IB_MR_WHY_OTHER_PD);

	key = read->rkey;
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, read), 0);
	KUNIT_EXPECT_FALSE(test, siw_reads(test, pd, key, at, 16));
}

/* User memory, registered by the driver: the same pages, to the byte, for as long as it lasts. */
static void siw_user(struct kunit *test)
{
	struct ib_device *dev = siw_device(test);
	struct ib_pd *pd = siw_pd(test, dev);
	struct ibt_proc *proc = ibt_proc(test, NULL);
	unsigned long map = ibt_user_map(proc, SZ_16K, PROT_RW), at = map + 100;
	const size_t len = 3 * PAGE_SIZE;
	struct siw_pair *p;
	struct ib_mr *mr;
	char buf[8];
	u32 key;

	ibt_poke_pattern(proc, at, len, 2);
	mr = ibt_mr(test, ibt_reg_user(proc, pd, at, len, LW | RR | RW, NULL));
	KUNIT_EXPECT_EQ(test, mr->iova, (u64)at);
	KUNIT_EXPECT_EQ(test, mr->length, (u64)len);
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(proc), (u64)4);

	p = siw_pair(test, pd);
	KUNIT_EXPECT_EQ(test, siw_rdma(p, IB_WR_RDMA_READ, mr->rkey, at, len), IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, has_pattern(p->buf, 2, len));
	memset(p->buf, 0x55, 8);
	KUNIT_EXPECT_EQ(test, siw_rdma(p, IB_WR_RDMA_WRITE, mr->rkey, at + len - 8, 8),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, siw_rdma(p, IB_WR_RDMA_READ, mr->rkey, at, 8), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_peek(proc, at + len - 8, buf, 8), 0);
	KUNIT_EXPECT_NULL(test, memchr_inv(buf, 0x55, 8));
	siw_pair_end(p);

	KUNIT_EXPECT_TRUE(test, siw_reads(test, pd, mr->rkey, at + len - 1, 1));
	KUNIT_EXPECT_FALSE(test, siw_reads(test, pd, mr->rkey, at + len - 1, 2));
	KUNIT_EXPECT_EQ(test, ib_mr_check(pd, mr->rkey, at + len - 1, 2, RR, true),
			IB_MR_WHY_PAST_END);
	KUNIT_EXPECT_FALSE(test, siw_reads(test, pd, mr->rkey, at - 1, 2));
	KUNIT_EXPECT_EQ(test, ib_mr_check(pd, mr->rkey, at - 1, 2, RR, true),
			IB_MR_WHY_BEFORE_START);

	KUNIT_EXPECT_EQ(test, ibt_user_unmap(proc, map, SZ_16K), 0);
	KUNIT_EXPECT_TRUE(test, ib_mr_is_stale(mr));
	KUNIT_EXPECT_TRUE(test, siw_reads(test, pd, mr->rkey, at, 8));
	key = mr->rkey;
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	KUNIT_EXPECT_FALSE(test, siw_reads(test, pd, key, at, 8));
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(proc), (u64)0);
}

/* What can be done with such a region elsewhere and not here; nothing is pinned by what fails. */
static void siw_user_not(struct kunit *test)
{
	struct ib_device *dev = siw_device(test);
	struct ib_pd *pd = siw_pd(test, dev), *other = siw_pd(test, dev);
	struct ibt_proc *proc = ibt_proc(test, NULL);
	unsigned long at = ibt_user_map(proc, SZ_16K, PROT_RW);
	unsigned long only_read = ibt_user_map(proc, SZ_16K, PROT_READ);
	u64 iova = at + PAGE_SIZE;
	struct ib_mr_run run[4];
	struct ib_mr *mr;
	u8 buf[8];

	ibt_poke_pattern(proc, at, SZ_16K, 3);
	ibt_expect_refused_mr(test, NO_REGQP, ibt_reg_user(proc, pd, at, SZ_16K, LW | RR, &iova));
	ibt_expect_refused_mr(test, NO_REGQP,
			      ibt_reg_user(proc, pd, at, SZ_16K, RR | IB_ZERO_BASED, NULL));
	ibt_expect_refused_mr(test, NOT_MAPPED,
			      ibt_reg_user(proc, pd, only_read, SZ_16K, LW | RW, NULL));
	ibt_expect_refused_mr(test, NOT_MAPPED,
			      ibt_reg_user(proc, pd, PAGE_SIZE, SZ_16K, RR, NULL));
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(proc), (u64)0);

	mr = ibt_mr(test, ibt_reg_user(proc, pd, at, SZ_16K, LW | RR, NULL));
	ibt_expect_refused(test, WRONG_KIND, ib_mr_translate(pd, mr->lkey, at, 8, run, 4));
	ibt_expect_refused(test, WRONG_KIND, ib_mr_copy_from(pd, mr->lkey, at, buf, 8));
	ibt_expect_refused(test, WRONG_KIND, ib_mr_copy_to(pd, mr->lkey, at, buf, 8));
	ibt_expect_refused(test, NO_REGQP,
			   ib_rereg_phys_mr(mr, IB_MR_REREG_PD, other, NULL, 0, 0, NULL));
	ibt_expect_refused(test, NO_REGQP,
			   ib_rereg_phys_mr(mr, IB_MR_REREG_ACCESS, NULL, NULL, 0, LW, NULL));
	/* After all of it, as it was. */
	KUNIT_EXPECT_EQ(test, ib_mr_check(pd, mr->rkey, at, SZ_16K, RR, true), IB_MR_WHY_OK);
	KUNIT_EXPECT_TRUE(test, siw_reads(test, pd, mr->rkey, at, 8));
}

/* Everything that takes a registration queue pair, or an armed MR. */
static void siw_refused(struct kunit *test)
{
	struct ib_device *dev = siw_device(test);
	struct ib_pd *pd = siw_pd(test, dev);
	struct ib_fmr_pool_param pool = {
		.max_pages_per_fmr = 4, .page_shift = PAGE_SHIFT, .access = LW | RR,
		.pool_size = 4, .dirty_watermark = 2,
	};
	struct ib_fmr_attr fmr = { .max_pages = 4, .max_maps = 1, .page_shift = PAGE_SHIFT };
	u8 *page = page_of(test, 4);
	struct ib_phys_buf phys = { .addr = (uintptr_t)page, .size = PAGE_SIZE };
	u64 iova = (uintptr_t)page;
	struct scatterlist sg;
	struct ib_mr *dma;

	sg_init_one(&sg, page, PAGE_SIZE);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(dev, &sg, 1, DMA_BIDIRECTIONAL), 1);
	ibt_expect_refused_mr(test, NO_REGQP, ib_reg_phys_mr(pd, &phys, 1, LW | RR, &iova));
	ibt_expect_refused_mr(test, NO_REGQP, ib_mr_reg_kernel(pd, page, 64, LW | RR, NULL));
	ibt_expect_refused_mr(test, NO_REGQP, ib_mr_reg_sg(pd, &sg, 1, LW | RR, NULL));
	ibt_expect_refused(test, NO_REGQP,
			   PTR_ERR_OR_ZERO(ib_mr_arena_create(pd, SZ_64K, LW | RR, 6)));
	ibt_expect_refused(test, NOT_QUALIFIED, PTR_ERR_OR_ZERO(ib_alloc_fmr(pd, LW | RR, &fmr)));
	ibt_expect_refused(test, NOT_QUALIFIED, PTR_ERR_OR_ZERO(ib_create_fmr_pool(pd, &pool)));
	ibt_expect_refused(test, NOT_QUALIFIED, PTR_ERR_OR_ZERO(ib_alloc_mw(pd, IB_MW_TYPE_1)));
	ibt_expect_refused(test, NOT_QUALIFIED, PTR_ERR_OR_ZERO(ib_alloc_mw(pd, IB_MW_TYPE_2)));
	KUNIT_EXPECT_EQ(test, ib_mr_refusals(dev, IB_MR_WHY_NO_REGQP), 4ULL);
	KUNIT_EXPECT_EQ(test, ib_mr_refusals(dev, IB_MR_WHY_NOT_QUALIFIED), 4ULL);
	ib_dma_unmap_sg(dev, &sg, 1, DMA_BIDIRECTIONAL);

	/* What is wrong with the arguments is told first, as on any device. */
	ibt_expect_refused_mr(test, ACCESS_NO_LOCAL, ib_mr_reg_kernel(pd, page, 64, RW, NULL));
	ibt_expect_refused_mr(test, EMPTY, ib_mr_reg_kernel(pd, page, 0, RR, NULL));
	/* A DMA MR needs no queue pair, neither new nor with other rights. */
	dma = ibt_mr(test, ib_get_dma_mr(pd, RR));
	KUNIT_EXPECT_EQ(test, ib_rereg_phys_mr(dma, IB_MR_REREG_ACCESS, NULL, NULL, 0, LW, NULL),
			0);
	KUNIT_EXPECT_EQ(test, dma->rkey, 0U);
}

static void mode_back(struct kunit *test, void *dev)
{
	KUNIT_EXPECT_EQ(test, ib_mr_dma_check_set(dev, IB_MR_DMA_OFF), 0);
	KUNIT_EXPECT_EQ(test, ibmr_dma_live(dev), 0ULL);
}

/* What the peer and the CPU see of a mapped buffer in each mode of the checker. */
static void siw_dma(struct kunit *test)
{
	struct ib_device *dev = siw_device(test);
	struct ib_pd *pd = siw_pd(test, dev);
	struct ib_mr *mr = ibt_mr(test, ib_get_dma_mr(pd, LW | RR | RW));
	struct siw_pair *p = siw_pair(test, pd);
	u64 addr, dma, twice;
	u8 *page, *mem;
	int mode;

	ibt_defer(test, mode_back, dev);
	for (mode = IB_MR_DMA_OFF; mode <= IB_MR_DMA_BOUNCE; mode++) {
		page = page_of(test, 10 + mode);
		KUNIT_ASSERT_EQ(test, ib_mr_dma_check_set(dev, mode), 0);

		addr = ib_dma_map_single(dev, page, 1000, DMA_TO_DEVICE);
		KUNIT_ASSERT_EQ(test, ib_dma_mapping_error(dev, addr), 0);
		KUNIT_EXPECT_EQ(test, addr != (uintptr_t)page, mode == IB_MR_DMA_BOUNCE);
		KUNIT_EXPECT_EQ(test, siw_rdma(p, IB_WR_RDMA_READ, mr->rkey, addr, 1000),
				IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, has_pattern(p->buf, 10 + mode, 1000));
		ib_dma_unmap_single(dev, addr, 1000, DMA_TO_DEVICE);

		addr = ib_dma_map_single(dev, page, 1000, DMA_FROM_DEVICE);
		KUNIT_ASSERT_EQ(test, ib_dma_mapping_error(dev, addr), 0);
		memset(p->buf, 0x60 + mode, 1000);
		KUNIT_EXPECT_EQ(test, siw_rdma(p, IB_WR_RDMA_WRITE, mr->rkey, addr, 1000),
				IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, siw_rdma(p, IB_WR_RDMA_READ, mr->rkey, addr, 8),
				IB_WC_SUCCESS);
		/* With bounce the CPU sees nothing until it asks. */
		KUNIT_EXPECT_EQ(test, page[999] == 0x60 + mode, mode != IB_MR_DMA_BOUNCE);
		ib_dma_sync_single_for_cpu(dev, addr, 1000, DMA_FROM_DEVICE);
		KUNIT_EXPECT_NULL(test, memchr_inv(page, 0x60 + mode, 1000));
		ib_dma_unmap_single(dev, addr, 1000, DMA_FROM_DEVICE);

		/* A mistake is found where it is looked for, and laid to this device. */
		twice = ib_mr_dma_reports(ibt_dev(test), IB_MR_DMA_UNMAP_TWICE);
		if (mode != IB_MR_DMA_OFF)
			ib_dma_unmap_single(dev, addr, 1000, DMA_FROM_DEVICE);
		KUNIT_EXPECT_EQ(test, ib_mr_dma_reports(dev, IB_MR_DMA_UNMAP_TWICE), (u64)mode);
		KUNIT_EXPECT_EQ(test, ib_mr_dma_reports(ibt_dev(test), IB_MR_DMA_UNMAP_TWICE),
				twice);

		mem = ib_dma_alloc_coherent(dev, 5000, &dma, GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, mem);
		KUNIT_EXPECT_NULL(test, memchr_inv(mem, 0, 5000));
		memset(mem, 0x44, 5000);
		KUNIT_EXPECT_EQ(test, siw_rdma(p, IB_WR_RDMA_READ, mr->rkey, dma, 5000),
				IB_WC_SUCCESS);
		KUNIT_EXPECT_NULL(test, memchr_inv(p->buf, 0x44, 5000));
		ib_dma_free_coherent(dev, 5000, mem, dma);
	}
}

/* Devices of both kinds, one domain on each: nothing of the one is good for the other. */
static void siw_two(struct kunit *test)
{
	struct ib_device *siw = siw_device(test);
	struct ib_pd *spd = siw_pd(test, siw), *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, SZ_16K, 5);
	struct ibt_pair *pair = ibt_pair(test, pd);
	struct ibt_view view = { .buf = b, .len = SZ_16K, .access = LW | RR | RW };
	struct ib_mr *mr, *dma;

	view.iova = (uintptr_t)b->addr;
	mr = ibt_mr(test, ib_mr_reg_kernel(pd, b->addr, SZ_16K, LW | RR | RW, NULL));
	dma = ibt_mr(test, ib_get_dma_mr(spd, LW | RR));
	ibt_expect_view(pair, mr, &view);
	KUNIT_EXPECT_TRUE(test, siw_reads(test, spd, dma->rkey, view.iova, 64));

	/* A key is looked for on the device of the domain: there it is nobody's or another's. */
	KUNIT_EXPECT_NE(test, ib_mr_check(spd, mr->rkey, view.iova, 8, RR, true), IB_MR_WHY_OK);
	KUNIT_EXPECT_NE(test, ib_mr_check(pd, dma->rkey, view.iova, 8, RR, true), IB_MR_WHY_OK);
	KUNIT_EXPECT_FALSE(test, siw_reads(test, spd, mr->rkey, view.iova, 8));
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_READ, pair->req.buf, dma->rkey, view.iova, 8),
			IB_WC_REM_ACCESS_ERR);
	ibt_expect_refused(test, OTHER_DEVICE,
			   ib_rereg_phys_mr(mr, IB_MR_REREG_PD, spd, NULL, 0, 0, NULL));
	ibt_expect_refused(test, OTHER_DEVICE,
			   ib_rereg_phys_mr(dma, IB_MR_REREG_PD, pd, NULL, 0, 0, NULL));
	ibt_expect_view(pair, mr, &view);
	KUNIT_EXPECT_TRUE(test, siw_reads(test, spd, dma->rkey, view.iova, 64));

	KUNIT_EXPECT_EQ(test, ibt_dereg(test, dma), 0);
	ibt_expect_view(pair, mr, &view);
}

/* The device goes from under @pd and @mr. The handle outlives it, and is answered. */
static void goes(struct kunit *test, const char *command, struct ib_device *dev, struct ib_pd *pd,
		 struct ib_mr *mr)
{
	struct ib_mr_attr attr;
	int i;

	/* With a reference it stays, when all were told that it goes, until the domain is freed. */
	KUNIT_ASSERT_TRUE(test, ib_device_try_get(dev));
	KUNIT_EXPECT_EQ(test, ibt_shell(command), 0);
	for (i = 0; i < 600 && ib_query_mr(mr, &attr) != -ENODEV; i++)
		msleep(50);
	KUNIT_EXPECT_LT_MSG(test, i, 600, "after 30 s the device is still there");
	KUNIT_EXPECT_EQ(test, ib_mr_dereg(mr), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_dealloc_pd(pd), 0);
	ib_device_put(dev);
}

/* One goes, and the others work as before: first an rxe on siw's own NIC, then siw. */
static void siw_goes(struct kunit *test)
{
	struct ib_device *siw = siw_device(test), *rxe = siw_neighbour(test);
	struct ib_pd *pd = ibt_pd(test), *spd, *rpd;
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, SZ_16K, 6);
	struct ibt_view view = { .buf = b, .len = SZ_16K, .access = LW | RR | RW };
	struct ibt_pair *pair = ibt_pair(test, pd);
	struct ib_mr *mr, *smr, *rmr;

	view.iova = (uintptr_t)b->addr;
	mr = ibt_mr(test, ib_mr_reg_kernel(pd, b->addr, SZ_16K, LW | RR | RW, NULL));
	rpd = ib_alloc_pd(rxe, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rpd));
	spd = ib_alloc_pd(siw, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(spd));
	rmr = ib_mr_reg_kernel(rpd, b->addr, SZ_16K, LW | RR, NULL);
	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(rmr), 0);
	smr = ib_get_dma_mr(spd, LW | RR);
	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(smr), 0);
	KUNIT_EXPECT_TRUE(test, siw_reads(test, spd, smr->rkey, view.iova, 64));

	goes(test, "rdma link delete ibt_rxe > /dev/null 2>&1 &", rxe, rpd, rmr);
	KUNIT_EXPECT_TRUE(test, siw_reads(test, spd, smr->rkey, view.iova, 64));
	KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(siw));
	ibt_expect_view(pair, mr, &view);

	goes(test, "rdma link delete ibt_siw > /dev/null 2>&1 &", siw, spd, smr);
	ibt_expect_view(pair, mr, &view);
}

static struct kunit_case siw_cases[] = {
	KUNIT_CASE(siw_dma_mr),
	KUNIT_CASE(siw_user),
	KUNIT_CASE(siw_user_not),
	KUNIT_CASE(siw_refused),
	KUNIT_CASE(siw_dma),
	KUNIT_CASE(siw_two),
	KUNIT_CASE(siw_goes),
	{}
};

IBT_SUITE(siw, siw_cases);
