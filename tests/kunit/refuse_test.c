// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Regions that must not be: what a caller can get wrong, and what it is told.
 *
 * Each refusal is checked whole: the classic errno, the one reason counted, and nothing changed
 * (no object came or went, the domain is as used as before, neither list nor iova of the caller
 * was written to). The sweep at the end makes the module's own allocations and device calls fail,
 * one after the other, until a registration runs without a hit.
 */
#include "helpers.h"

#define PG	SZ_4K
#define ALL	(LW | RR | RW | RA)
#define TOP	(0 - (1ull << 32))
#define ROW_PIECES	3

/* Lists. Addresses count from a real buffer of 8 pages, unless they are far beyond it. */
static const struct list_row {
	const char *desc;
	enum ib_mr_reason why;
	int access;
	u64 iova;
	int nr;
	struct ib_phys_buf piece[ROW_PIECES];
} list_table[] = {
	{ "no buffers", IB_MR_WHY_EMPTY, ALL, 0, 0, { { 0, PG } } },
	{ "a negative number of buffers", IB_MR_WHY_EMPTY, ALL, 0, -1, { { 0, PG } } },
	{ "a buffer of no size", IB_MR_WHY_EMPTY, ALL, 0, 1, { { 0, 0 } } },
	{ "the second of no size", IB_MR_WHY_EMPTY, ALL, 0, 3,
	  { { 0, PG }, { PG, 0 }, { 4 * PG, PG } } },
	{ "the last of no size", IB_MR_WHY_EMPTY, ALL, 0, 2, { { 0, PG }, { 2 * PG, 0 } } },
	{ "a size past 2^64", IB_MR_WHY_WRAP, ALL, 0, 1, { { 0, U64_MAX } } },
	{ "sizes past 2^64 in sum", IB_MR_WHY_WRAP, ALL, 0, 2, { { 0, PG }, { PG, 0 - (u64)PG } } },
	{ "iova and length past 2^64", IB_MR_WHY_WRAP, ALL, 0 - (u64)PG, 1, { { 0, 2 * PG } } },
	{ "iova and length reach 2^64", IB_MR_WHY_IOVA_HIGH, ALL, 0 - (u64)PG, 1, { { 0, PG } } },
	{ "iova a byte too high", IB_MR_WHY_IOVA_HIGH, ALL, TOP - PG + 1, 1, { { 1, PG } } },
	{ "iova a page too high", IB_MR_WHY_IOVA_HIGH, ALL, TOP, 1, { { 0, PG } } },
	{ "the first ends inside a page", IB_MR_WHY_INNER_BOUNDARY, ALL, 0, 2,
	  { { 0, 100 }, { 2 * PG, PG } } },
	{ "the second begins inside a page", IB_MR_WHY_INNER_BOUNDARY, ALL, 0, 2,
	  { { 0, PG }, { 2 * PG + 1, 100 } } },
	{ "the middle one ends inside a page", IB_MR_WHY_INNER_BOUNDARY, ALL, 0, 3,
	  { { 0, PG }, { 2 * PG, PG - 1 }, { 4 * PG, PG } } },
	{ "they touch inside a page", IB_MR_WHY_INNER_BOUNDARY, ALL, 0, 2,
	  { { 0, 512 }, { 512, 512 } } },
	{ "iova off by one", IB_MR_WHY_IOVA_ALIGN, ALL, 1, 1, { { 0, PG } } },
	{ "iova off by half a page", IB_MR_WHY_IOVA_ALIGN, ALL, PG / 2, 1, { { 0, PG } } },
	{ "iova aligned, the first byte not", IB_MR_WHY_IOVA_ALIGN, ALL, PG, 1, { { 8, PG } } },
	{ "remote write without local write", IB_MR_WHY_ACCESS_NO_LOCAL, RW, 0, 1, { { 0, PG } } },
	{ "atomic without local write", IB_MR_WHY_ACCESS_NO_LOCAL, RR | RA, 0, 1, { { 0, PG } } },
	{ "an unknown flag", IB_MR_WHY_BAD_ACCESS, ALL | 1 << 30, 0, 1, { { 0, PG } } },
	{ "all flags", IB_MR_WHY_BAD_ACCESS, -1, 0, 1, { { 0, PG } } },
	{ "on-demand paging", IB_MR_WHY_NO_ON_DEMAND, ALL | IB_ACCESS_ON_DEMAND, 0, 1,
	  { { 0, PG } } },
	{ "zero-based with an iova", IB_MR_WHY_ZERO_BASED_IOVA, ALL | IB_ZERO_BASED, PG, 1,
	  { { 0, PG } } },
	{ "zero-based inside a page", IB_MR_WHY_ZERO_BASED_ALIGN, ALL | IB_ZERO_BASED, 0, 1,
	  { { 8, PG } } },
	{ "far outside memory", IB_MR_WHY_NOT_LINEAR, ALL, 0, 1, { { 1ull << 44, PG } } },
	{ "out of memory at the end", IB_MR_WHY_NOT_LINEAR, RR, 0, 1, { { 0, 1ull << 44 } } },
};

static void list_desc(const struct list_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(list, list_table, list_desc);

static void refuse_list(struct kunit *test)
{
	const struct list_row *row = test->param_value;
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, 8 * PG, 1);
	struct ib_phys_buf list[ROW_PIECES], copy[ROW_PIECES];
	struct ibt_refusal *r;
	int i, used = atomic_read(&pd->usecnt);
	u64 iova = row->iova;

	for (i = 0; i < ROW_PIECES; i++)
		list[i] = (struct ib_phys_buf){ (uintptr_t)b->addr + row->piece[i].addr,
						row->piece[i].size };
	memcpy(copy, list, sizeof(list));
	r = ibt_refusal(test);
	ibt_refusal_end_mr(test, r, row->why, ib_reg_phys_mr(pd, list, row->nr, row->access, &iova),
			   row->desc);
	KUNIT_EXPECT_EQ(test, memcmp(copy, list, sizeof(list)), 0);
	KUNIT_EXPECT_EQ(test, iova, row->iova);
	KUNIT_EXPECT_EQ(test, atomic_read(&pd->usecnt), used);
	KUNIT_EXPECT_TRUE(test, ibt_intact(b));
}

/* Every call with each of its pointers NULL. */
static void refuse_null(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, PG, 1);
	struct ib_phys_buf list = { (uintptr_t)b->addr, PG };
	struct ib_mr_attr attr;
	struct ib_mr *mr;
	u64 iova = list.addr;

	ibt_expect_refused_mr(test, NULL_ARG, ib_get_dma_mr(NULL, LW));
	ibt_expect_refused_mr(test, NULL_ARG, ib_reg_phys_mr(NULL, &list, 1, LW, &iova));
	ibt_expect_refused_mr(test, NULL_ARG, ib_reg_phys_mr(pd, NULL, 1, LW, &iova));
	ibt_expect_refused_mr(test, NULL_ARG, ib_reg_phys_mr(pd, &list, 1, LW, NULL));
	ibt_expect_refused_mr(test, NULL_ARG, ib_mr_reg_kernel(NULL, b->addr, PG, LW, NULL));
	ibt_expect_refused_mr(test, NULL_ARG, ib_mr_reg_kernel(pd, NULL, PG, LW, NULL));
	ibt_expect_refused_mr(test, NULL_ARG, ib_mr_reg_sg(NULL, NULL, 1, LW, NULL));
	ibt_expect_refused_mr(test, NULL_ARG, ib_mr_reg_sg(pd, NULL, 1, LW, NULL));
	ibt_expect_refused(test, NULL_ARG, ib_query_mr(NULL, &attr));
	ibt_expect_refused(test, NULL_ARG, ib_dereg_mr(NULL));
	ibt_expect_refused(test, NULL_ARG, ib_rereg_phys_mr(NULL, IB_MR_REREG_ACCESS, NULL, NULL, 0,
							    LW, NULL));
	ibt_expect_refused(test, NULL_ARG, ib_mr_pd_get(NULL));

	mr = ibt_mr(test, ib_get_dma_mr(pd, LW));
	ibt_expect_refused(test, NULL_ARG, ib_query_mr(mr, NULL));
}

/* What a failed call of another kind returned is no handle. */
static void refuse_err_ptr(struct kunit *test)
{
	struct ib_pd *pd = ERR_PTR(-ENOMEM);
	struct ib_mr *mr = ERR_PTR(-ENOMEM);
	struct ib_mr_attr attr;

	ibt_expect_refused_mr(test, NULL_ARG, ib_get_dma_mr(pd, LW));
	ibt_expect_refused(test, NULL_ARG, ib_mr_pd_get(pd));
	ibt_expect_refused(test, NULL_ARG, ib_query_mr(mr, &attr));
	ibt_expect_refused(test, NULL_ARG, ib_dereg_mr(mr));
	ibt_expect_refused(test, NULL_ARG, ib_rereg_phys_mr(mr, IB_MR_REREG_ACCESS, NULL, NULL, 0,
							    LW, NULL));
}

/* Kernel memory by its address. */
static void refuse_kernel(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *v = ibt_buf(test, IBT_VMALLOC, 2 * PG, 1);
	struct ibt_buf *k = ibt_buf(test, IBT_PAGES, 2 * PG, 1);
	u64 iova = (uintptr_t)v->addr + 1, high = 0 - (u64)2 * PG, one = PG, zero = 0;

	ibt_expect_refused_mr(test, EMPTY, ib_mr_reg_kernel(pd, k->addr, 0, LW, NULL));
	ibt_expect_refused_mr(test, EMPTY, ib_mr_reg_kernel(pd, v->addr, 0, LW, NULL));
	ibt_expect_refused_mr(test, WRAP, ib_mr_reg_kernel(pd, k->addr, SIZE_MAX, LW, NULL));
	ibt_expect_refused_mr(test, WRAP, ib_mr_reg_kernel(pd, v->addr, SIZE_MAX, LW, NULL));
	ibt_expect_refused_mr(test, NOT_LINEAR, ib_mr_reg_kernel(pd, (void *)PG, PG, LW, NULL));
	ibt_expect_refused_mr(test, NOT_LINEAR,
			      ib_mr_reg_kernel(pd, (void *)(TASK_SIZE_MAX - PG), PG, LW, NULL));
	ibt_expect_refused_mr(test, NOT_LINEAR,
			      ib_mr_reg_kernel(pd, k->addr, 1ull << 44, LW, NULL));
	/* The guard page behind the area, and all that may follow. */
	ibt_expect_refused_mr(test, NOT_LINEAR, ib_mr_reg_kernel(pd, v->addr, 3 * PG, LW, NULL));
	ibt_expect_refused_mr(test, IOVA_ALIGN, ib_mr_reg_kernel(pd, v->addr, PG, LW, &iova));
	ibt_expect_refused_mr(test, IOVA_HIGH, ib_mr_reg_kernel(pd, v->addr, PG, LW, &high));
	ibt_expect_refused_mr(test, WRAP, ib_mr_reg_kernel(pd, v->addr + 1, 2 * PG - 1, LW,
							   &(u64){ high + PG + 1 }));
	ibt_expect_refused_mr(test, ACCESS_NO_LOCAL, ib_mr_reg_kernel(pd, v->addr, PG, RW, NULL));
	ibt_expect_refused_mr(test, BAD_ACCESS, ib_mr_reg_kernel(pd, v->addr, PG, 1 << 30, NULL));
	ibt_expect_refused_mr(test, NO_ON_DEMAND,
			      ib_mr_reg_kernel(pd, v->addr, PG, RR | IB_ACCESS_ON_DEMAND, NULL));
	ibt_expect_refused_mr(test, ZERO_BASED_ALIGN,
			      ib_mr_reg_kernel(pd, v->addr + 8, PG, RR | IB_ZERO_BASED, NULL));
	ibt_expect_refused_mr(test, ZERO_BASED_ALIGN,
			      ib_mr_reg_kernel(pd, v->addr + 8, PG, RR | IB_ZERO_BASED, &zero));
	ibt_expect_refused_mr(test, ZERO_BASED_IOVA,
			      ib_mr_reg_kernel(pd, v->addr, PG, RR | IB_ZERO_BASED, &one));
}

/* Scatterlists. */
static void refuse_sg(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PG, 1);
	struct scatterlist *sgl;
	u64 iova = 1;
	int n;

	sgl = ibt_sg(test, b, 0, 4 * PG, &n);
	ibt_expect_refused_mr(test, EMPTY, ib_mr_reg_sg(pd, sgl, 0, LW, NULL));
	ibt_expect_refused_mr(test, EMPTY, ib_mr_reg_sg(pd, sgl, -1, LW, NULL));
	ibt_expect_refused_mr(test, IOVA_ALIGN, ib_mr_reg_sg(pd, sgl, n, LW, &iova));
	ibt_expect_refused_mr(test, ACCESS_NO_LOCAL, ib_mr_reg_sg(pd, sgl, n, RW, NULL));

	sg_dma_len(&sgl[1]) = 100;
	ibt_expect_refused_mr(test, INNER_BOUNDARY, ib_mr_reg_sg(pd, sgl, n, LW, NULL));
	sg_dma_len(&sgl[1]) = PG;
	sg_dma_address(&sgl[2]) += 8;
	ibt_expect_refused_mr(test, INNER_BOUNDARY, ib_mr_reg_sg(pd, sgl, n, LW, NULL));
	sg_dma_address(&sgl[2]) -= 8;
	sg_dma_len(&sgl[3]) = 0;
	ibt_expect_refused_mr(test, NOT_DMA_MAPPED, ib_mr_reg_sg(pd, sgl, n, LW, NULL));
	sg_dma_len(&sgl[3]) = PG;
	/* Not mapped: the DMA address is not there. */
	sg_dma_address(&sgl[3]) = 0;
	ibt_expect_refused_mr(test, NOT_LINEAR, ib_mr_reg_sg(pd, sgl, n, LW, NULL));
	sg_dma_address(&sgl[3]) = 0 - (u64)PG / 2;
	ibt_expect_refused_mr(test, WRAP, ib_mr_reg_sg(pd, sgl, n, LW, NULL));
}

static void refuse_dma(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);

	ibt_expect_refused_mr(test, ACCESS_NO_LOCAL, ib_get_dma_mr(pd, RW));
	ibt_expect_refused_mr(test, ACCESS_NO_LOCAL, ib_get_dma_mr(pd, RR | RA));
	ibt_expect_refused_mr(test, BAD_ACCESS, ib_get_dma_mr(pd, LW | 1 << 30));
	ibt_expect_refused_mr(test, NO_ON_DEMAND, ib_get_dma_mr(pd, LW | IB_ACCESS_ON_DEMAND));
	ibt_expect_refused_mr(test, WRONG_KIND, ib_get_dma_mr(pd, LW | IB_ZERO_BASED));
}

/* A domain that user space owns is not ours to register in. */
static void refuse_user_pd(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test), *user = ibt_user_pd(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, PG, 1);
	struct ib_phys_buf list = { (uintptr_t)b->addr, PG };
	u64 iova = list.addr;
	struct scatterlist *sgl;
	int n;

	sgl = ibt_sg(test, b, 0, PG, &n);
	ibt_expect_refused_mr(test, USER_PD, ib_get_dma_mr(user, LW));
	ibt_expect_refused_mr(test, USER_PD, ib_reg_phys_mr(user, &list, 1, LW, &iova));
	ibt_expect_refused_mr(test, USER_PD, ib_mr_reg_kernel(user, b->addr, PG, LW, NULL));
	ibt_expect_refused_mr(test, USER_PD, ib_mr_reg_sg(user, sgl, n, LW, NULL));
	ibt_expect_refused(test, USER_PD, ib_mr_pd_get(user));
	KUNIT_EXPECT_EQ(test, atomic_read(&user->usecnt), 0);
}

/* A region of the core's own: it can be deregistered through us, and nothing else. */
static void refuse_foreign(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	int mrs = ibt_objects(test, RDMA_RESTRACK_MR);
	struct ib_mr *mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 4);
	struct ib_mr_attr attr;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	ibt_expect_refused(test, FOREIGN_MR, ib_query_mr(mr, &attr));
	ibt_expect_refused(test, FOREIGN_MR, ib_rereg_phys_mr(mr, IB_MR_REREG_ACCESS, NULL, NULL, 0,
							      LW, NULL));
	KUNIT_EXPECT_EQ(test, ibt_objects(test, RDMA_RESTRACK_MR), mrs + 1);
	KUNIT_EXPECT_EQ(test, ib_dereg_mr(mr), 0);
	KUNIT_EXPECT_EQ(test, ibt_objects(test, RDMA_RESTRACK_MR), mrs);
	KUNIT_EXPECT_EQ(test, atomic_read(&pd->usecnt), 0);
}

/* A handle that was deregistered is answered, whatever came into being since. */
static void refuse_dereg_twice(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, PG, 1);
	struct ib_mr *mr[4], *next;
	struct ib_mr_attr attr;
	int i;

	mr[0] = ib_get_dma_mr(pd, LW);
	for (i = 1; i < ARRAY_SIZE(mr); i++)
		mr[i] = ib_mr_reg_kernel(pd, b->addr, PG, LW, NULL);
	for (i = 0; i < ARRAY_SIZE(mr); i++) {
		KUNIT_ASSERT_FALSE(test, IS_ERR(mr[i]));
		KUNIT_EXPECT_EQ(test, ib_dereg_mr(mr[i]), 0);
	}
	next = ibt_mr(test, ib_mr_reg_kernel(pd, b->addr, PG, LW, NULL));
	for (i = 0; i < ARRAY_SIZE(mr); i++) {
		KUNIT_EXPECT_PTR_NE(test, mr[i], next);
		ibt_expect_refused(test, DEREG_TWICE, ib_dereg_mr(mr[i]));
		ibt_expect_refused(test, DEREG_TWICE, ib_query_mr(mr[i], &attr));
		ibt_expect_refused(test, DEREG_TWICE,
				   ib_rereg_phys_mr(mr[i], IB_MR_REREG_ACCESS, NULL, NULL, 0, LW,
						    NULL));
	}
	KUNIT_EXPECT_EQ(test, ib_query_mr(next, &attr), 0);
}

/* Refusals are counted for the device they happened on. */
static void refuse_is_counted(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	u64 was = ib_mr_refusals(ibt_dev(test), IB_MR_WHY_ACCESS_NO_LOCAL);
	u64 all = ib_mr_refusals(NULL, IB_MR_WHY_ACCESS_NO_LOCAL);
	int i;

	for (i = 0; i < 10; i++)
		KUNIT_EXPECT_EQ(test, PTR_ERR(ib_get_dma_mr(pd, RW)), (long)-EINVAL);
	KUNIT_EXPECT_EQ(test, ib_mr_refusals(ibt_dev(test), IB_MR_WHY_ACCESS_NO_LOCAL), was + 10);
	KUNIT_EXPECT_EQ(test, ib_mr_refusals(NULL, IB_MR_WHY_ACCESS_NO_LOCAL), all + 10);
	KUNIT_EXPECT_EQ(test, ib_mr_refusals(ibt_dev(test), IB_MR_WHY_COUNT), 0ull);
}

/* Every reason has a name of its own, a sentence, and (but for OK) an errno. */
static void refuse_reasons(struct kunit *test)
{
	int i, j;

	for (i = 0; i < IB_MR_WHY_COUNT; i++) {
		KUNIT_EXPECT_GT(test, strlen(ib_mr_reason_text(i)), (size_t)5);
		KUNIT_EXPECT_EQ(test, ibt_errno(i) < 0, i != IB_MR_WHY_OK);
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_STRNEQ(test, ib_mr_reason_name(i), ib_mr_reason_name(j));
	}
	KUNIT_EXPECT_STREQ(test, ib_mr_reason_name(IB_MR_WHY_WRAP), "WRAP");
	KUNIT_EXPECT_NOT_NULL(test, ib_mr_reason_name(IB_MR_WHY_COUNT));
	KUNIT_EXPECT_NOT_NULL(test, ib_mr_reason_text(-1));
}

static struct kunit_case refuse_cases[] = {
	KUNIT_CASE_PARAM(refuse_list, list_gen_params),
	KUNIT_CASE(refuse_null),
	KUNIT_CASE(refuse_err_ptr),
	KUNIT_CASE(refuse_kernel),
	KUNIT_CASE(refuse_sg),
	KUNIT_CASE(refuse_dma),
	KUNIT_CASE(refuse_user_pd),
	KUNIT_CASE(refuse_foreign),
	KUNIT_CASE(refuse_dereg_twice),
	KUNIT_CASE(refuse_is_counted),
	KUNIT_CASE(refuse_reasons),
	{}
};

IBT_SUITE(refuse, refuse_cases);
