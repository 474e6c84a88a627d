// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fast memory regions: the rules of the four classic calls (mthca's, which the consumers were
 * written against), with RDMA as the judge.
 */
#include "fmr_helpers.h"
#include "proc.h"

#define PG	PAGE_SIZE
#define IOVA(i)	((u64)SZ_1G * ((i) % 3))

/* --- ib_alloc_fmr() --- */

static const struct alloc_row {
	const char *desc;
	int max_pages, max_maps, page_shift, access;
	enum ib_mr_reason why;
} alloc_table[] = {
	{ "one page, one map", 1, 1, PAGE_SHIFT, FMR_ALL, IB_MR_WHY_OK },
	{ "512 pages", 512, 32, PAGE_SHIFT, FMR_ALL, IB_MR_WHY_OK },
	{ "32767 maps", 1, 32767, PAGE_SHIFT, FMR_ALL, IB_MR_WHY_OK },
	{ "large pages", 4, 1, PAGE_SHIFT + 4, FMR_ALL, IB_MR_WHY_OK },
	{ "no right at all", 1, 1, PAGE_SHIFT, 0, IB_MR_WHY_OK },
	{ "remote write without local write", 1, 1, PAGE_SHIFT, RW | RR, IB_MR_WHY_OK },
	{ "atomic without local write", 1, 1, PAGE_SHIFT, RA, IB_MR_WHY_OK },
	{ "a hint", 1, 1, PAGE_SHIFT, LW | IB_ACCESS_RELAXED_ORDERING, IB_MR_WHY_OK },
	{ "hints and rights of regions", 1, 1, PAGE_SHIFT,
	  LW | MWB | IB_ACCESS_HUGETLB | IB_ZERO_BASED | IB_ACCESS_ON_DEMAND, IB_MR_WHY_OK },
	{ "no page", 0, 1, PAGE_SHIFT, FMR_ALL, IB_MR_WHY_FMR_ARGS },
	{ "fewer than no pages", -1, 1, PAGE_SHIFT, FMR_ALL, IB_MR_WHY_FMR_ARGS },
	{ "513 pages", 513, 1, PAGE_SHIFT, FMR_ALL, IB_MR_WHY_FMR_ARGS },
	{ "INT_MAX pages", INT_MAX, 1, PAGE_SHIFT, FMR_ALL, IB_MR_WHY_FMR_ARGS },
	{ "no map", 1, 0, PAGE_SHIFT, FMR_ALL, IB_MR_WHY_FMR_ARGS },
	{ "fewer than no maps", 1, -1, PAGE_SHIFT, FMR_ALL, IB_MR_WHY_FMR_ARGS },
	{ "32768 maps", 1, 32768, PAGE_SHIFT, FMR_ALL, IB_MR_WHY_FMR_ARGS },
	{ "small pages", 1, 1, PAGE_SHIFT - 1, FMR_ALL, IB_MR_WHY_FMR_ARGS },
	{ "page_shift 0", 1, 1, 0, FMR_ALL, IB_MR_WHY_FMR_ARGS },
	{ "page_shift 31", 1, 1, 31, FMR_ALL, IB_MR_WHY_FMR_ARGS },
	{ "page_shift 255", 1, 1, 255, FMR_ALL, IB_MR_WHY_FMR_ARGS },
	{ "more memory than an MR can list", 512, 1, PAGE_SHIFT + 8, FMR_ALL, IB_MR_WHY_FMR_ARGS },
	{ "a right that there is not", 1, 1, PAGE_SHIFT, BIT(15), IB_MR_WHY_BAD_ACCESS },
	{ "a negative right", 1, 1, PAGE_SHIFT, INT_MIN, IB_MR_WHY_BAD_ACCESS },
};

static void alloc_desc(const struct alloc_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(alloc, alloc_table, alloc_desc);

static void fmr_alloc(struct kunit *test)
{
	const struct alloc_row *row = test->param_value;
	struct ib_fmr_attr attr = {
		.max_pages = row->max_pages, .max_maps = row->max_maps,
		.page_shift = row->page_shift,
	};
	struct ib_pd *pd = ibt_pd(test);
	struct ib_fmr *fmr;

	if (row->why) {
		struct ibt_refusal *r = ibt_refusal(test);

		fmr = ib_alloc_fmr(pd, row->access, &attr);
		ibt_refusal_end(test, r, row->why, PTR_ERR_OR_ZERO(fmr), row->desc);
		return;
	}
	fmr = ibt_fmr_attr(test, pd, row->access, attr);
	KUNIT_EXPECT_PTR_EQ(test, fmr->device, pd->device);
	KUNIT_EXPECT_PTR_EQ(test, fmr->pd, pd);
	KUNIT_EXPECT_TRUE(test, list_empty(&fmr->list));
	/* The PD is busy as long as it lives. */
	KUNIT_EXPECT_EQ(test, ib_dealloc_pd(pd), -EBUSY);
}

static void fmr_alloc_wrong_pd(struct kunit *test)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 1, .page_shift = PAGE_SHIFT };
	struct ib_pd *pd = ibt_pd(test);

	ibt_expect_refused(test, NULL_ARG, PTR_ERR(ib_alloc_fmr(NULL, LW, &attr)));
	ibt_expect_refused(test, NULL_ARG, PTR_ERR(ib_alloc_fmr(pd, LW, NULL)));
	ibt_expect_refused(test, USER_PD,
			   PTR_ERR(ib_alloc_fmr(ibt_user_pd(test, pd), LW, &attr)));
}

static void fmr_not_qualified(struct kunit *test)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 1, .page_shift = PAGE_SHIFT };
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_refusal *r;
	struct ib_fmr *fmr;

	KUNIT_EXPECT_EQ(test, (int)ibmr_mag_verdict(ibt_dev(test), IB_MR_WHY_NOT_QUALIFIED), 0);
	r = ibt_refusal(test);
	fmr = ib_alloc_fmr(pd, LW, &attr);
	ibmr_mag_verdict(ibt_dev(test), IB_MR_WHY_OK);
	ibt_refusal_end(test, r, IB_MR_WHY_NOT_QUALIFIED, PTR_ERR_OR_ZERO(fmr), "not qualified");
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(fmr), -ENOSYS);
}

/* --- rights --- */

static const int rights_table[] = {
	0, LW, RR, RW, RA, LW | RR, LW | RW, LW | RA, RR | RW, LW | RR | RW, FMR_ALL,
};

static void rights_desc(const int *row, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "access %#x", *row);
}

KUNIT_ARRAY_PARAM(rights, rights_table, rights_desc);

static void fmr_rights(struct kunit *test)
{
	static const struct { enum ibt_op op; int right; } ops[] = {
		{ IBT_READ, RR }, { IBT_WRITE, RW }, { IBT_FETCH_ADD, RA }, { IBT_CMP_SWAP, RA },
	};
	int access = *(const int *)test->param_value, i;
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 2 * PG, 1);
	struct ib_fmr *fmr = ibt_fmr(test, pd, access, 2, 1);
	enum ib_wc_status status;

	KUNIT_ASSERT_EQ(test, ib_map_phys_fmr(fmr, ibt_page_list(test, b), 2, 0), 0);
	KUNIT_EXPECT_EQ(test, fmr->lkey, fmr->rkey);
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		status = ibt_rdma(p, ops[i].op, p->req.buf, fmr->rkey, PG - 8, 8);
		KUNIT_EXPECT_EQ_MSG(test, status, access & ops[i].right ? IB_WC_SUCCESS :
				    IB_WC_REM_ACCESS_ERR, "%s", ibt_op_name(ops[i].op));
		ibt_fill(b, PG - 8, 8, b->seed);
	}
	/* The lkey: from there always, into it by local write, at the classic rkey == lkey. */
	memset(p->req.buf, 0, 2 * PG);
	KUNIT_EXPECT_EQ(test, ibt_local(p, IBT_SEND, fmr->lkey, 0, 2 * PG), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_diff_copy(b, 0, 2 * PG, p->req.buf), 2 * PG);
	KUNIT_EXPECT_EQ(test, ibt_local(p, IBT_WRITE, fmr->lkey, 1, 2 * PG - 1), IB_WC_SUCCESS);
	status = ibt_local(p, IBT_READ, fmr->lkey, 8, PG);
	KUNIT_EXPECT_TRUE(test, access & LW ? status == IB_WC_SUCCESS : ibt_local_error(status));
	KUNIT_EXPECT_TRUE(test, ibt_local_error(ibt_local(p, IBT_WRITE, fmr->lkey, 1, 2 * PG)));
}

/* --- ib_map_phys_fmr() --- */

static const struct map_row {
	const char *desc;
	int shift, len;
	u64 iova;
	enum ib_mr_reason why;
} map_table[] = {
	{ "no page", 0, 0, 0, IB_MR_WHY_FMR_ARGS },
	{ "fewer than none", 0, -1, 0, IB_MR_WHY_FMR_ARGS },
	{ "INT_MIN pages", 0, INT_MIN, 0, IB_MR_WHY_FMR_ARGS },
	{ "one too many", 0, 5, 0, IB_MR_WHY_FMR_ARGS },
	{ "iova 1", 0, 4, 1, IB_MR_WHY_IOVA_ALIGN },
	{ "iova in a page", 0, 4, PG / 2, IB_MR_WHY_IOVA_ALIGN },
	{ "iova at a page's last byte", 0, 4, 3 * PG - 1, IB_MR_WHY_IOVA_ALIGN },
	{ "a page's iova for large pages", 2, 1, PG, IB_MR_WHY_IOVA_ALIGN },
	{ "iova at the end of everything", 0, 4, -(u64)4 * PG, IB_MR_WHY_IOVA_HIGH },
	{ "past the end of everything", 0, 4, -(u64)PG, IB_MR_WHY_WRAP },
};

static void map_desc(const struct map_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(map, map_table, map_desc);

/* Refused, and the mapping there was works as before, under its key. */
static void fmr_map_refused(struct kunit *test)
{
	const struct map_row *row = test->param_value;
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, 16 * PG, 1);
	struct ib_fmr *fmr = ibt_fmr_attr(test, pd, FMR_ALL, (struct ib_fmr_attr){
		.max_pages = 4, .max_maps = 2, .page_shift = PAGE_SHIFT + row->shift });
	u64 list[8], step = PG << row->shift;
	u32 key;
	int i;

	for (i = 0; i < ARRAY_SIZE(list); i++)
		list[i] = (uintptr_t)b->addr + i % 4 * step;
	KUNIT_ASSERT_EQ(test, ib_map_phys_fmr(fmr, list, 4, 0), 0);
	key = fmr->rkey;
	for (i = 0; i < 3; i++) {
		struct ibt_refusal *r = ibt_refusal(test);
		int err = ib_map_phys_fmr(fmr, list, row->len, row->iova);

		ibt_refusal_end(test, r, row->why, err, row->desc);
	}
	KUNIT_EXPECT_EQ(test, fmr->rkey, key);
	ibt_expect_key(p, key, 0, b, 0, 4 * step);
	/* None of them counted as a map. */
	KUNIT_EXPECT_EQ(test, ib_map_phys_fmr(fmr, list, 1, 0), 0);
	ibt_expect_refused(test, MAX_MAPS, ib_map_phys_fmr(fmr, list, 1, 0));
}

/* New key each time, valid at return; the one before is dead, without an unmap between. */
static void fmr_remap(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b[2] = {
		ibt_buf(test, IBT_SCATTER, 4 * PG, 1), ibt_buf(test, IBT_SCATTER, 3 * PG, 2),
	};
	struct ib_fmr *fmr = ibt_fmr(test, pd, FMR_ALL, 4, 6);
	u64 *list[2] = { ibt_page_list(test, b[0]), ibt_page_list(test, b[1]) };
	u32 old[12];
	int i, j;

	for (i = 0; i < ARRAY_SIZE(old); i++) {
		struct ibt_buf *now = b[i % 2];
		u64 iova = IOVA(i);

		if (i == 6) {
			ibt_expect_refused(test, MAX_MAPS,
					   ib_map_phys_fmr(fmr, list[0], 1, 0));
			KUNIT_EXPECT_TRUE(test, ibt_can_read(p, old[5], IOVA(5)));
			KUNIT_EXPECT_EQ(test, ibt_unmap(fmr), 0);
			ibt_expect_shut(p, old[5], IOVA(5));
		}
		KUNIT_ASSERT_EQ(test, ib_map_phys_fmr(fmr, list[i % 2], now->size / PG, iova), 0);
		KUNIT_EXPECT_EQ(test, fmr->lkey, fmr->rkey);
		old[i] = fmr->rkey;
		ibt_expect_key(p, fmr->rkey, iova, now, 0, now->size);
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_NE(test, old[i], old[j]);
		if (i)
			ibt_expect_shut(p, old[i - 1], IOVA(i - 1));
	}
	ibt_expect_refused(test, FMR_MAPPED, ib_dealloc_fmr(fmr));
	ibt_expect_key(p, fmr->rkey, IOVA(11), b[1], 0, b[1]->size);
	KUNIT_EXPECT_EQ(test, ibt_unmap(fmr), 0);
	for (i = 0; i < ARRAY_SIZE(old); i++)
		KUNIT_EXPECT_FALSE(test, ibt_can_read(p, old[i], IOVA(i)));
	/* The old local key as well. */
	KUNIT_EXPECT_TRUE(test, ibt_local_error(ibt_local(p, IBT_WRITE, old[11], 0, 8)));
}

/* Classic drivers did not look at the offset in a page. */
static void fmr_misaligned_entries(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 3 * PG, 1);
	struct ib_fmr *fmr = ibt_fmr(test, pd, FMR_ALL, 3, 1);
	u64 *list = ibt_page_list(test, b);

	list[0] += 1;
	list[1] += 512;
	list[2] += PG - 1;
	KUNIT_ASSERT_EQ(test, ib_map_phys_fmr(fmr, list, 3, SZ_1M), 0);
	ibt_expect_key(p, fmr->rkey, SZ_1M, b, 0, 3 * PG);
}

static void fmr_large_pages(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, SZ_64K, 1);
	struct ib_fmr *fmr = ibt_fmr_attr(test, pd, FMR_ALL, (struct ib_fmr_attr){
		.max_pages = 4, .max_maps = 8, .page_shift = 14 });
	u64 base = (uintptr_t)b->addr, list[4] = { base + SZ_32K, base + 0x1234, base + SZ_16K };
	int i;

	KUNIT_ASSERT_TRUE(test, IS_ALIGNED(base, SZ_16K));
	KUNIT_ASSERT_EQ(test, ib_map_phys_fmr(fmr, list, 3, SZ_64K), 0);
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, fmr->rkey, SZ_64K, 3 * SZ_16K),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_diff_copy(b, SZ_32K, SZ_16K, p->req.buf), (size_t)3 * SZ_16K);
	KUNIT_EXPECT_EQ(test, ibt_diff_copy(b, 0, SZ_32K, p->req.buf + SZ_16K), (size_t)SZ_32K);
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, fmr->rkey, SZ_64K, 3 * SZ_16K + 1),
			IB_WC_REM_ACCESS_ERR);
	/* In order they are one piece, which is another way through the driver. */
	for (i = 0; i < 4; i++)
		list[i] = base + i * SZ_16K;
	KUNIT_ASSERT_EQ(test, ib_map_phys_fmr(fmr, list, 4, 0), 0);
	ibt_expect_key(p, fmr->rkey, 0, b, 0, SZ_64K);
}

/*
 * Where the driver takes large blocks, a page is one; and contiguous pages are mapped as one, in
 * whatever order of sizes they come.
 */
static void fmr_blocks(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, 64 * PG, 1);
	struct ib_fmr *large = ibt_fmr_attr(test, pd, FMR_ALL, (struct ib_fmr_attr){
		.max_pages = 4, .max_maps = 8, .page_shift = PAGE_SHIFT + 4 });
	struct ib_fmr *small = ibt_fmr(test, pd, FMR_ALL, 64, 32);
	u64 base = (uintptr_t)b->addr, *list = ibt_page_list(test, b);
	static const unsigned int first[] = { 0, 1, 8, 24, 33 }, nr[] = { 8, 31, 2, 16, 9, 20 };
	int i, k;

	KUNIT_EXPECT_EQ(test, ibmr_fmr_mag(large)->capacity,
			IBMR_LIVE_MAX_SHIFT > PAGE_SHIFT ? 4U : 64U);
	for (i = 0; i < ARRAY_SIZE(first); i++)
		for (k = 0; k < ARRAY_SIZE(nr); k++) {
			u64 off = first[i] * PG;

			/* At its own address, and at one that is congruent to a page only. */
			KUNIT_ASSERT_EQ(test, ibt_map(small, list + first[i], nr[k],
						      base + off), 0);
			ibt_expect_key(p, small->rkey, base + off, b, off, nr[k] * PG);
			KUNIT_EXPECT_EQ(test, ibt_unmap(small), 0);
			KUNIT_ASSERT_EQ(test, ibt_map(small, list + first[i], nr[k],
						      base + off + PG), 0);
			ibt_expect_key(p, small->rkey, base + off + PG, b, off, nr[k] * PG);
			KUNIT_EXPECT_EQ(test, ibt_unmap(small), 0);
		}
	/* A gap, a page that comes twice, and one out of order, behind a row of eight and more. */
	for (i = 0; i < 3; i++) {
		static const int swap[3][2] = { { 12, 40 }, { 11, 10 }, { 63, 0 } };
		int at = swap[i][0], to = swap[i][1];

		list[at] = base + to * PG;
		KUNIT_ASSERT_EQ(test, ibt_map(small, list, 64, 0), 0);
		KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, small->rkey, at * PG, PG),
				IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, ibt_diff_copy(b, to * PG, PG, p->req.buf), (to + 1) * PG);
		KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, small->rkey, 0, 10 * PG),
				IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, ibt_diff_copy(b, 0, 10 * PG, p->req.buf), 10 * PG);
		KUNIT_EXPECT_EQ(test, ibt_unmap(small), 0);
		list[at] = base + at * PG;
	}
}

static void fmr_512_pages(struct kunit *test)
{
	static const enum ibt_mem kinds[] = { IBT_SCATTER, IBT_PAGES };
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ib_fmr *fmr = ibt_fmr(test, pd, FMR_ALL, 512, 2);
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct ibt_buf *b = ibt_buf(test, kinds[i], 512 * PG, i);
		u64 *list = ibt_page_list(test, b);

		KUNIT_ASSERT_EQ(test, ib_map_phys_fmr(fmr, list, 512, 0), 0);
		ibt_expect_key(p, fmr->rkey, 0, b, 0, 512 * PG);
	}
}

/* Lists are handed over in steps of several pages: each length, from pages the last one had not. */
static void fmr_every_length(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ib_fmr *fmr = ibt_fmr(test, pd, FMR_ALL, 27, 27);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 54 * PG, 1);
	u64 *list = ibt_page_list(test, b);
	int n;

	for (n = 1; n <= 27; n++) {
		int first = n & 1 ? 0 : 27;

		KUNIT_ASSERT_EQ_MSG(test, ib_map_phys_fmr(fmr, list + first, n, 0), 0, "%d", n);
		ibt_expect_key(p, fmr->rkey, 0, b, first * PG, n * PG);
	}
}

static void fmr_atomics(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 2 * PG, 1);
	struct ib_fmr *fmr = ibt_fmr(test, pd, FMR_ALL, 2, 1);
	u64 *mem = (u64 *)ibt_ptr(b, 2 * PG - 8), was = *mem;

	KUNIT_ASSERT_EQ(test, ib_map_phys_fmr(fmr, ibt_page_list(test, b), 2, 0), 0);
	p->add = 5;
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_FETCH_ADD, p->req.buf, fmr->rkey, 2 * PG - 8, 8),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, *mem, was + 5);
	KUNIT_EXPECT_EQ(test, *(u64 *)p->req.buf, was);
	p->compare = was + 5;
	p->swap = was;
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_CMP_SWAP, p->req.buf, fmr->rkey, 2 * PG - 8, 8),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, *mem, was);
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_FETCH_ADD, p->req.buf, fmr->rkey, 2 * PG, 8),
			IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, ibt_unmap(fmr), 0);
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_FETCH_ADD, p->req.buf, fmr->rkey, 0, 8),
			IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_TRUE(test, ibt_intact(b));
}

/* --- -EAGAIN --- */

static void expect_again(struct kunit *test, struct ib_fmr *fmr, u64 *list, struct ibt_pair *p,
			 struct ibt_buf *b)
{
	u32 key = fmr->rkey;

	ibt_expect_refused(test, POOL_EMPTY, ib_map_phys_fmr(fmr, list, 1, SZ_1M));
	KUNIT_EXPECT_EQ(test, fmr->rkey, key);
	ibt_expect_key(p, key, 0, b, 0, b->size);
}

static void fmr_again(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 2 * PG, 1);
	struct ib_fmr *fmr = ibt_fmr(test, pd, FMR_ALL, 2, 32767);
	u64 *list = ibt_page_list(test, b);
	unsigned long flags;
	int i, err = 0;

	KUNIT_ASSERT_EQ(test, ib_map_phys_fmr(fmr, list, 2, 0), 0);
	ibt_param(test, "fail_map", 1);
	expect_again(test, fmr, list, p, b);
	ibt_param(test, "fail_map", 3);
	for (i = 0; i < 9; i++)		/* few, so that the stock does not come into it */
		err += ib_map_phys_fmr(fmr, list, 2, 0) == -EAGAIN;
	KUNIT_EXPECT_EQ(test, err, 3);
	ibt_param(test, "fail_map", 0);
	ibt_expect_key(p, fmr->rkey, 0, b, 0, b->size);

	/* For real: the stock is drained while nobody can fill it. */
	ibt_set(test, &ibmr_stock_limit, 1);
	local_irq_save(flags);
	for (i = 0, err = 0; i < 4000 && !err; i++)
		err = ib_map_phys_fmr(fmr, list, 2, 0);
	local_irq_restore(flags);
	if (err)	/* else the other CPU filled it as fast */
		KUNIT_EXPECT_EQ(test, err, -EAGAIN);
	ibt_expect_key(p, fmr->rkey, 0, b, 0, b->size);
	/* The next try can succeed. */
	KUNIT_EXPECT_EQ(test, ibt_map(fmr, list, 2, 0), 0);
	ibt_expect_key(p, fmr->rkey, 0, b, 0, b->size);
}

/* --- ib_unmap_fmr(), ib_dealloc_fmr() --- */

static void fmr_unmap_nothing(struct kunit *test)
{
	struct ib_fmr *fmr = ibt_fmr(test, ibt_pd(test), FMR_ALL, 1, 1);
	LIST_HEAD(empty);

	KUNIT_EXPECT_EQ(test, ib_unmap_fmr(&empty), 0);
	KUNIT_EXPECT_EQ(test, ibt_unmap(fmr), 0);
	KUNIT_EXPECT_EQ(test, ibt_unmap(fmr), 0);
}

/* A list of 100 from three magazines and two PDs, some never mapped; all at iova 0. */
static void fmr_many_at_once(struct kunit *test)
{
	struct ib_pd *pd[2] = { ibt_pd(test), ibt_pd(test) };
	struct ibt_pair *p[2] = { ibt_pair(test, pd[0]), ibt_pair(test, pd[1]) };
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 100 * PG, 1);
	u64 *list = ibt_page_list(test, b);
	struct ib_fmr *fmr[100];
	LIST_HEAD(all);
	int i, n = 0;

	for (i = 0; i < 100; i++) {
		fmr[i] = ibt_fmr(test, pd[i % 2], i % 3 ? FMR_ALL : RR, 1 + (i % 5 == 0), 4);
		list_add_tail(&fmr[i]->list, &all);
		if (i % 10 == 9)
			continue;
		KUNIT_ASSERT_EQ(test, ib_map_phys_fmr(fmr[i], list + i, 1, 0), 0);
	}
	for (i = 0; i < 100; i++) {
		if (i % 10 == 9)
			continue;
		KUNIT_EXPECT_EQ(test, ibt_rdma(p[i % 2], IBT_READ, p[i % 2]->req.buf,
					       fmr[i]->rkey, 0, PG), IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, ibt_diff_copy(b, i * PG, PG, p[i % 2]->req.buf),
				(i + 1) * PG);
	}
	/* A key is no good in another PD. */
	ibt_expect_shut(p[1], fmr[0]->rkey, 0);
	KUNIT_EXPECT_EQ(test, ib_unmap_fmr(&all), 0);
	for (i = 0; i < 100; i++) {
		struct ib_fmr *f;

		/* The list is left as it is. */
		f = list_first_entry(&all, struct ib_fmr, list);
		KUNIT_EXPECT_PTR_EQ(test, f, fmr[i]);
		list_del_init(&f->list);
		if (i % 10 != 9)
			n += ibt_can_read(p[i % 2], f->rkey, 0);
	}
	KUNIT_EXPECT_EQ(test, n, 0);
}

static void fmr_mixed_devices(struct kunit *test)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 1, .page_shift = PAGE_SHIFT };
	struct ib_device *dev = ibt_second(test);
	struct ib_pd *pd = ibt_pd(test), *other;
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PG, 1);
	struct ib_fmr *fmr = ibt_fmr(test, pd, FMR_ALL, 1, 2), *far;
	u64 *list = ibt_page_list(test, b);
	LIST_HEAD(both);

	other = ib_alloc_pd(dev, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	far = ib_alloc_fmr(other, FMR_ALL, &attr);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(far), 0);
	if (!IS_ERR(far)) {
		KUNIT_EXPECT_EQ(test, ib_map_phys_fmr(fmr, list, 1, 0), 0);
		KUNIT_EXPECT_EQ(test, ib_map_phys_fmr(far, list, 1, 0), 0);
		list_add_tail(&fmr->list, &both);
		list_add_tail(&far->list, &both);
		ibt_expect_refused(test, OTHER_DEVICE, ib_unmap_fmr(&both));
		list_del_init(&fmr->list);
		list_del_init(&far->list);
		/* None of them was unmapped. */
		ibt_expect_key(p, fmr->rkey, 0, b, 0, PG);
		KUNIT_EXPECT_EQ(test, ib_dealloc_fmr(far), -EBUSY);
		KUNIT_EXPECT_EQ(test, ibt_unmap(far), 0);
		KUNIT_EXPECT_EQ(test, ib_dealloc_fmr(far), 0);
	}
	KUNIT_EXPECT_EQ(test, ib_dealloc_pd(other), 0);
	KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(dev));
}

/* Two CPUs map one FMR as fast as they can: max_maps holds, and the last key works. */
struct race {
	struct ib_fmr *fmr;
	u64 *list;
	atomic_t mapped;
};

static int race_maps(void *arg, int i)
{
	struct race *r = arg;
	int n;

	for (n = 0; n < 200; n++) {
		int err = ib_map_phys_fmr(r->fmr, r->list, 1, 0);

		if (!err)
			atomic_inc(&r->mapped);
		else if (err != -EAGAIN && err != -EINVAL)
			return err;
		if (err == -EAGAIN)
			msleep(20);
	}
	return 0;
}

static void fmr_mapped_by_two(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PG, 1);
	struct race r = { .list = ibt_page_list(test, b) };

	r.fmr = ibt_fmr(test, pd, FMR_ALL, 1, 50);
	ibt_parallel(test, 2, race_maps, &r);
	KUNIT_EXPECT_EQ(test, atomic_read(&r.mapped), 50);
	KUNIT_EXPECT_EQ(test, r.fmr->lkey, r.fmr->rkey);
	ibt_expect_key(p, r.fmr->rkey, 0, b, 0, PG);
}

static struct kunit_case fmr_cases[] = {
	KUNIT_CASE_PARAM(fmr_alloc, alloc_gen_params),
	KUNIT_CASE(fmr_alloc_wrong_pd),
	KUNIT_CASE(fmr_not_qualified),
	KUNIT_CASE_PARAM(fmr_rights, rights_gen_params),
	KUNIT_CASE_PARAM(fmr_map_refused, map_gen_params),
	KUNIT_CASE(fmr_remap),
	KUNIT_CASE(fmr_misaligned_entries),
	KUNIT_CASE(fmr_large_pages),
	KUNIT_CASE(fmr_blocks),
	KUNIT_CASE(fmr_512_pages),
	KUNIT_CASE(fmr_every_length),
	KUNIT_CASE(fmr_atomics),
	KUNIT_CASE(fmr_again),
	KUNIT_CASE(fmr_unmap_nothing),
	KUNIT_CASE(fmr_many_at_once),
	KUNIT_CASE(fmr_mixed_devices),
	KUNIT_CASE(fmr_mapped_by_two),
	{}
};

IBT_SUITE(fmr, fmr_cases);
