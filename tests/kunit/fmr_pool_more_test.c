// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What FMR pools have beyond the classic ones: maps to the byte, kept keys, keys re-used at once;
 * and that making one is all or nothing.
 */
#include <linux/delay.h>
#include "base/fault.h"
#include "fmr_helpers.h"

#define PG	PAGE_SIZE

/* --- ib_fmr_pool_map_sg() --- */

static const struct sg_row {
	const char *desc;
	enum ibt_mem kind;
	size_t off, len;
	unsigned int skip;
	u64 iova;
} sg_table[] = {
	{ "one byte", IBT_SCATTER, 0, 1, 0, 0 },
	{ "one byte, the last of a page", IBT_SCATTER, PG - 1, 1, 0, PG - 1 },
	{ "in a page", IBT_SCATTER, 100, 1000, 0, SZ_1M + 100 },
	{ "over a boundary", IBT_SCATTER, PG - 1, 2, 0, PG - 1 },
	{ "pages", IBT_SCATTER, 0, 16 * PG, 0, 0 },
	{ "16 pages, ragged ends", IBT_SCATTER, 1, 16 * PG - 2, 0, SZ_1G + 1 },
	{ "neighbours", IBT_PAGES, 5, 8 * PG + 11, 0, SZ_1G + 5 },
	{ "a part of the list", IBT_SCATTER, 100, 9 * PG, 3 * PG + 17, SZ_1M + 117 },
	{ "from the second entry on", IBT_SCATTER, 100, 9 * PG, PG - 100, SZ_1M },
	{ "from the fourth entry on", IBT_SCATTER, 0, 9 * PG, 3 * PG, 0 },
	{ "a part of neighbours", IBT_PAGES, 0, 9 * PG, PG, 0 },
	{ "the list's last byte", IBT_SCATTER, 7, 3 * PG, 3 * PG - 1, 6 },
	{ "vmalloc", IBT_VMALLOC, 77, 5 * PG, 0, SZ_2M + 77 },
};

static void sg_desc(const struct sg_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(sg, sg_table, sg_desc);

static void pool_sg(struct kunit *test)
{
	const struct sg_row *row = test->param_value;
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, row->kind, 18 * PG, 1);
	size_t len = row->len - row->skip;
	struct scatterlist *sgl;
	struct ib_pool_fmr *fmr;
	int cache, nents;
	u32 key;

	sgl = ibt_sg(test, b, row->off, row->len, &nents);
	for (cache = 0; cache < 2; cache++) {
		struct ib_fmr_pool *pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){
			.cache = cache });

		fmr = ib_fmr_pool_map_sg(pool, sgl, nents, row->skip, len, row->iova);
		KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(fmr), 0);
		key = fmr->fmr->rkey;
		KUNIT_EXPECT_EQ(test, fmr->fmr->lkey, key);
		KUNIT_EXPECT_EQ(test, fmr->io_virtual_address, row->iova);
		ibt_expect_key(p, key, row->iova, b, row->off + row->skip, len);
		/* It is not cached: dead at release, and the next one is another. */
		ib_fmr_pool_unmap(fmr);
		ibt_expect_shut(p, key, row->iova);
	}
}

static const struct sg_bad_row {
	const char *desc;
	size_t off, len;	/* of the list */
	unsigned int skip;
	u64 length, iova;
	enum ib_mr_reason why;
} sg_bad_table[] = {
	{ "nothing", 0, PG, 0, 0, 0, IB_MR_WHY_EMPTY },
	{ "one byte more than there is", 0, 4 * PG, 0, 4 * PG + 1, 0, IB_MR_WHY_PAST_END },
	{ "past the end by its start", 0, 4 * PG, 4 * PG, 1, 0, IB_MR_WHY_PAST_END },
	{ "start and length together", 0, 4 * PG, PG, 4 * PG, 0, IB_MR_WHY_PAST_END },
	{ "iova off by one", 0, PG, 0, PG, 1, IB_MR_WHY_IOVA_ALIGN },
	{ "iova aligned, the buffer not", 9, PG, 0, PG, SZ_1M, IB_MR_WHY_IOVA_ALIGN },
	{ "iova fits without the start", 0, 2 * PG, 9, PG, 0, IB_MR_WHY_IOVA_ALIGN },
	{ "one page too many", 0, 17 * PG, 0, 17 * PG, 0, IB_MR_WHY_TOO_MANY_PAGES },
	{ "17 pages for 16 pages of bytes", 1, 16 * PG, 0, 16 * PG, 1, IB_MR_WHY_TOO_MANY_PAGES },
	{ "wraps", 0, 2 * PG, 0, 2 * PG, -(u64)PG, IB_MR_WHY_WRAP },
	{ "at the end of everything", 0, PG, 0, PG, -(u64)PG, IB_MR_WHY_IOVA_HIGH },
	{ "2^64 - 1 bytes", 0, PG, 0, U64_MAX, 0, IB_MR_WHY_IOVA_HIGH },
};

static void sg_bad_desc(const struct sg_bad_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(sg_bad, sg_bad_table, sg_bad_desc);

static void pool_sg_refused(struct kunit *test)
{
	const struct sg_bad_row *row = test->param_value;
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 18 * PG, 1);
	struct ib_fmr_pool *pool = ibt_pool(test, ibt_pd(test), (struct ib_fmr_pool_param){});
	struct scatterlist *sgl;
	struct ibt_refusal *r;
	struct ib_pool_fmr *fmr;
	int nents;

	sgl = ibt_sg(test, b, row->off, row->len, &nents);
	r = ibt_refusal(test);
	fmr = ib_fmr_pool_map_sg(pool, sgl, nents, row->skip, row->length, row->iova);
	ibt_refusal_end(test, r, row->why, PTR_ERR_OR_ZERO(fmr), row->desc);
	ibt_expect_refused(test, NULL_ARG,
			   PTR_ERR(ib_fmr_pool_map_sg(pool, NULL, nents, 0, PG, 0)));
	ibt_expect_refused(test, EMPTY, PTR_ERR(ib_fmr_pool_map_sg(pool, sgl, 0, 0, PG, 0)));
	ibt_expect_refused(test, EMPTY, PTR_ERR(ib_fmr_pool_map_sg(pool, sgl, -1, 0, PG, 0)));
	/* A list that nobody mapped has no DMA lengths. */
	sg_dma_len(sgl) = 0;
	ibt_expect_refused(test, NOT_DMA_MAPPED,
			   PTR_ERR(ib_fmr_pool_map_sg(pool, sgl, nents, 0, PG, 0)));
	KUNIT_EXPECT_EQ(test, ibt_mag(ibmr_pool_mag(pool)).in_use, 0U);
}

/* Inner boundaries: refused where they are ragged, unless the entries touch (field fault 6). */
static void pool_sg_boundaries(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, 32 * PG, 1);
	struct ib_fmr_pool *pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){});
	struct scatterlist *sg = kunit_kcalloc(test, 100, sizeof(*sg), GFP_KERNEL);
	struct ib_pool_fmr *fmr;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, sg);
	sg_init_table(sg, 100);
	/* 100 pieces of 600 bytes that touch: 15 pages, not 100. */
	for (i = 0; i < 100; i++)
		sg_set_buf(&sg[i], b->addr + 50 + i * 600, 600);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(ibt_dev(test), sg, 100, DMA_BIDIRECTIONAL), 100);
	fmr = ib_fmr_pool_map_sg(pool, sg, 100, 0, 60000, SZ_1M + 50);
	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(fmr), 0);
	ibt_expect_key(p, fmr->fmr->rkey, SZ_1M + 50, b, 50, 60000);
	ib_fmr_pool_unmap(fmr);
	fmr = ib_fmr_pool_map_sg(pool, sg, 100, 700, 50000, 750);
	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(fmr), 0);
	ibt_expect_key(p, fmr->fmr->rkey, 750, b, 750, 50000);
	ib_fmr_pool_unmap(fmr);

	/* A hole in a page, before it, and behind it; and one that lies beyond the length asked. */
	sg_init_table(sg, 3);
	sg_set_buf(&sg[0], b->addr + 50, PG - 50);
	sg_set_buf(&sg[1], b->addr + 4 * PG, PG);
	sg_set_buf(&sg[2], b->addr + 8 * PG, 77);
	KUNIT_ASSERT_EQ(test, ib_dma_map_sg(ibt_dev(test), sg, 3, DMA_BIDIRECTIONAL), 3);
	fmr = ib_fmr_pool_map_sg(pool, sg, 3, 0, 2 * PG - 50 + 77, 50);
	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(fmr), 0);
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, fmr->fmr->rkey, PG, PG),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_diff_copy(b, 4 * PG, PG, p->req.buf), 5 * PG);
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, fmr->fmr->rkey, 2 * PG, 77),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_diff_copy(b, 8 * PG, 77, p->req.buf), 8 * PG + 77);
	ibt_expect_shut(p, fmr->fmr->rkey, 2 * PG + 77);
	ib_fmr_pool_unmap(fmr);

	sg_dma_len(&sg[1]) = PG - 1;
	ibt_expect_refused(test, INNER_BOUNDARY,
			   PTR_ERR(ib_fmr_pool_map_sg(pool, sg, 3, 0, 2 * PG, 50)));
	fmr = ib_fmr_pool_map_sg(pool, sg, 3, 0, PG, 50);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(fmr), 0);
	ib_fmr_pool_unmap(fmr);
	sg_dma_len(&sg[1]) = PG;
	sg_dma_address(&sg[1]) += 1;
	ibt_expect_refused(test, INNER_BOUNDARY,
			   PTR_ERR(ib_fmr_pool_map_sg(pool, sg, 3, 0, 2 * PG, 50)));
}

/* --- key_maps, rekey_at_once --- */

static void pool_key_maps(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 8 * PG, 1);
	struct ib_fmr_pool *pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){
		.pool_size = 1, .key_maps = 4 });
	u64 *list = ibt_page_list(test, b);
	u32 key = 0, before;
	int i;

	for (i = 0; i < 12; i++) {
		struct ib_pool_fmr *fmr = ibt_pool_map(pool, list + i % 8, 1, 0);

		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
		before = key;
		key = fmr->fmr->rkey;
		if (i % 4)
			KUNIT_EXPECT_EQ(test, key, before);
		else
			KUNIT_EXPECT_NE(test, key, before);
		ibt_expect_key(p, key, 0, b, i % 8 * PG, PG);
		ib_fmr_pool_unmap(fmr);
		/* Kept, but it opens nothing while it is not mapped. */
		ibt_expect_shut(p, key, 0);
	}
	/* A flush ends it before its time. */
	ib_fmr_pool_unmap(ibt_pool_map(pool, list, 1, 0));
	before = key;
	KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(pool), 0);
	for (i = 0; i < 2; i++) {
		struct ib_pool_fmr *fmr = ibt_pool_map(pool, list, 1, 0);

		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
		if (i)
			KUNIT_EXPECT_EQ(test, fmr->fmr->rkey, key);
		else
			KUNIT_EXPECT_NE(test, fmr->fmr->rkey, before);
		key = fmr->fmr->rkey;
		ib_fmr_pool_unmap(fmr);
	}
}

static void pool_at_once(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PG, 1);
	struct ib_fmr_pool *pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){
		.rekey_at_once = 1 });
	u64 *list = ibt_page_list(test, b);
	struct ibt_mag m;
	u32 key = 0;
	int i;

	for (i = 0; i < 200; i++) {
		struct ib_pool_fmr *fmr = ibt_pool_map(pool, list + i % 4, 1, 0);

		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
		KUNIT_EXPECT_NE(test, fmr->fmr->rkey, key);
		key = fmr->fmr->rkey;
		if (i % 50 == 0)
			ibt_expect_key(p, key, 0, b, i % 4 * PG, PG);
		ib_fmr_pool_unmap(fmr);
		if (i % 50 == 0)
			ibt_expect_shut(p, key, 0);
	}
	KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(pool), 0);
	m = ibt_mag(ibmr_pool_mag(pool));
	KUNIT_EXPECT_GT(test, m.rekeyed, 0ULL);
	KUNIT_EXPECT_EQ(test, m.quarantine, 0U);
}

/* --- fail-nth over a pool's whole life, its worker's part included; calls: failnth_fmr.c --- */

/* What it returns is 0 or an error, and afterwards nothing is left of it. */
static int sweep_pool(struct ib_pd *pd, u64 *list, struct ib_fmr_pool_param param)
{
	struct ib_fmr_pool *pool;
	struct ib_pool_fmr *fmr;
	int i, err = 0;

	param.max_pages_per_fmr = 4;
	param.page_shift = PAGE_SHIFT;
	param.access = FMR_ALL;
	param.pool_size = 3;
	pool = ib_create_fmr_pool(pd, &param);
	if (IS_ERR(pool))
		return PTR_ERR(pool) == -ENOMEM ? -ENOMEM : -EBADE;
	for (i = 0; i < 4 && !err; i++) {
		fmr = ib_fmr_pool_map_phys(pool, list, 1 + i, 0);
		if (IS_ERR(fmr))
			err = PTR_ERR(fmr);
		else
			ib_fmr_pool_unmap(fmr);
		if (!err && i == 2 && ib_flush_fmr_pool(pool))
			err = -EBADE;
	}
	ib_destroy_fmr_pool(pool);
	return err;
}

static const struct sweep_row {
	const char *desc;
	bool replace;
	struct ib_fmr_pool_param param;
} sweep_table[] = {
	{ "pool with kept keys", .param.key_maps = 4 },
	{ "pool, keys at once", .param.rekey_at_once = 1 },
	{ "pool, always replaced", .replace = true },
};

static void sweep_desc(const struct sweep_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(sweep, sweep_table, sweep_desc);

static void pool_fail_nth(struct kunit *test)
{
	const struct sweep_row *row = test->param_value;
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PG, 1);
	u64 *list = ibt_page_list(test, b);
	struct ib_pd *pd = ibt_pd(test);
	unsigned int failed = 0;
	bool hit = true;
	int n, err = 0;

	if (row->replace)
		ibt_force_replace(test);
	for (n = 1; hit && n < 400; n++) {
		int mrs = ibt_objects(test, RDMA_RESTRACK_MR);

		ibmr_fault_arm(IBMR_FAULTS_ALL, n, NULL);
		err = sweep_pool(pd, list, row->param);
		hit = ibmr_fault_disarm();
		/* -EINVAL: the driver refuses a live map. */
		KUNIT_EXPECT_TRUE_MSG(test, !err || (hit && (err == -ENOMEM || err == -EAGAIN ||
							     err == -EIO || err == -EINVAL)),
				      "%d: %d", n, err);
		failed += !!err;
		KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(ibt_dev(test)));
		KUNIT_EXPECT_EQ_MSG(test, ibt_objects(test, RDMA_RESTRACK_MR), mrs, "%d", n);
		KUNIT_EXPECT_TRUE(test, ibt_pd_idle(pd));
		if (test->status == KUNIT_FAILURE)
			break;
	}
	KUNIT_EXPECT_FALSE(test, hit);
	KUNIT_EXPECT_EQ(test, err, 0);
	kunit_info(test, "%d points, %u of them made it fail\n", n - 2, failed);
}

static struct kunit_case fmr_pool_more_cases[] = {
	KUNIT_CASE_PARAM(pool_sg, sg_gen_params),
	KUNIT_CASE_PARAM(pool_sg_refused, sg_bad_gen_params),
	KUNIT_CASE(pool_sg_boundaries),
	KUNIT_CASE(pool_key_maps),
	KUNIT_CASE(pool_at_once),
	KUNIT_CASE_PARAM(pool_fail_nth, sweep_gen_params),
	{}
};

IBT_SUITE(fmr_pool_more, fmr_pool_more_cases);
