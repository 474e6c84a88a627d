// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Re-registration: each part alone and with the others, and what is left after a failure.
 *
 * The region's whole truth is a view and the domain it is in. A success must make the new one
 * true and the old keys dead everywhere; a failure must leave the old one true, under the old
 * keys, byte for byte. Fault 5 of the field-bugs list is a failed call that left the region in
 * the new domain.
 */
#include "helpers.h"

#define PG	SZ_4K
#define ALL	(LW | RR | RW | RA)
#define TRANS	IB_MR_REREG_TRANS
#define PD	IB_MR_REREG_PD
#define ACCESS	IB_MR_REREG_ACCESS

/* Two domains with a peer for each, two buffers, and a region over the first of both. */
struct room {
	struct kunit *test;
	struct ib_pd *pd[2];
	struct ibt_pair *p[2];
	struct ibt_view view[2];
	struct ib_phys_buf *list[2];
	int n[2];
	struct ib_mr *mr;
	/* where it is now */
	int in;
	struct ibt_view now;
};

static struct room *room(struct kunit *test)
{
	struct room *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->test = test;
	for (i = 0; i < 2; i++) {
		r->pd[i] = ibt_pd(test);
		r->p[i] = ibt_pair(test, r->pd[i]);
	}
	r->view[0] = (struct ibt_view){ .off = 100, .len = 3 * PG, .iova = SZ_1M + 100,
					.access = ALL };
	r->view[1] = (struct ibt_view){ .off = 9, .len = PG + 77, .iova = (1ull << 40) + 9,
					.access = LW | RR };
	for (i = 0; i < 2; i++) {
		r->view[i].buf = ibt_buf(test, IBT_SCATTER, 4 * PG, 20 + i);
		r->list[i] = ibt_phys(test, r->view[i].buf, r->view[i].off, r->view[i].len,
				      &r->n[i]);
	}
	r->now = r->view[0];
	r->mr = ibt_mr(test, ib_reg_phys_mr(r->pd[0], r->list[0], r->n[0], ALL, &r->now.iova));
	return r;
}

static void expect_now(struct room *r)
{
	KUNIT_EXPECT_PTR_EQ(r->test, r->mr->pd, r->pd[r->in]);
	ibt_expect_view(r->p[r->in], r->mr, &r->now);
	/* In the other domain its keys are worth nothing. */
	ibt_expect_dead(r->p[!r->in], r->mr->lkey, r->mr->rkey, r->now.iova);
}

/* Change to the @to-th of both in everything that @mask says. */
static int rereg(struct room *r, int mask, int to)
{
	const struct ibt_view *v = &r->view[to];
	u64 iova = v->iova;
	int ret;

	ret = ib_rereg_phys_mr(r->mr, mask, mask & PD ? r->pd[to] : NULL,
			       mask & TRANS ? r->list[to] : NULL, mask & TRANS ? r->n[to] : 0,
			       mask & ACCESS ? v->access : 0, mask & TRANS ? &iova : NULL);
	if (ret)
		return ret;
	if (mask & PD)
		r->in = to;
	if (mask & ACCESS)
		r->now.access = v->access;
	if (mask & TRANS) {
		r->now.buf = v->buf;
		r->now.off = v->off;
		r->now.len = v->len;
		r->now.iova = v->iova;
	}
	return 0;
}

static const int mask_table[] = {
	TRANS, PD, ACCESS, TRANS | PD, TRANS | ACCESS, PD | ACCESS, TRANS | PD | ACCESS,
};

static void mask_desc(const int *mask, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s%s%s", *mask & TRANS ? "memory " : "",
		 *mask & PD ? "domain " : "", *mask & ACCESS ? "rights " : "");
}

KUNIT_ARRAY_PARAM(mask, mask_table, mask_desc);

/* There and back again. */
static void rereg_masks(struct kunit *test)
{
	const int mask = *(const int *)test->param_value;
	struct room *r = room(test);
	u32 lkey, rkey;
	u64 iova;
	int to;

	expect_now(r);
	for (to = 1; to >= 0; to--) {
		lkey = r->mr->lkey;
		rkey = r->mr->rkey;
		iova = r->now.iova;
		KUNIT_ASSERT_EQ(test, rereg(r, mask, to), 0);
		expect_now(r);
		/* The old keys open neither the old memory nor the new. */
		if (lkey != r->mr->lkey) {
			ibt_expect_dead(r->p[0], lkey, rkey, iova);
			ibt_expect_dead(r->p[1], lkey, rkey, r->now.iova);
		}
	}
	KUNIT_EXPECT_EQ(test, memcmp(&r->now, &r->view[0], sizeof(r->now)), 0);
	KUNIT_EXPECT_TRUE(test, ibt_intact(r->view[1].buf));
}

/* The domain that was left is free: nothing of ours is in it any more, nor its queue pair. */
static void rereg_leaves_the_old_pd(struct kunit *test)
{
	struct room *r = room(test);
	int used = atomic_read(&r->pd[1]->usecnt), qps = ibt_objects(test, RDMA_RESTRACK_QP);

	KUNIT_EXPECT_EQ(test, rereg(r, PD, 1), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&r->pd[0]->usecnt), used);
	KUNIT_EXPECT_GT(test, atomic_read(&r->pd[1]->usecnt), used);
	KUNIT_EXPECT_EQ(test, ibt_objects(test, RDMA_RESTRACK_QP), qps);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, r->mr), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&r->pd[1]->usecnt), used);
}

/* To what it already is: allowed, and it goes on working. */
static void rereg_to_the_same(struct kunit *test)
{
	struct room *r = room(test);
	int i;

	for (i = 0; i < 30; i++) {
		KUNIT_ASSERT_EQ(test, rereg(r, mask_table[i % ARRAY_SIZE(mask_table)], 0), 0);
		ibt_expect_read(r->p[0], r->mr, &r->now, 0, r->now.len);
	}
	expect_now(r);
}

/* Fault 5: what can be wrong, each with all bits set, so that every part could be half done. */
static const struct bad_row {
	const char *desc;
	enum ib_mr_reason why;
	int mask;
	int access;
	u64 iova;
	enum { GOOD_PD, NULL_PD, USER_PD, ERR_PD } pd;
	enum {
		GOOD_LIST, NULL_LIST, NO_ENTRY, ZERO_SIZE, INNER, NOT_LINEAR, HUGE_SIZE, NULL_IOVA,
	} list;
} bad_table[] = {
	{ "no mask", IB_MR_WHY_BAD_MASK, 0, ALL },
	{ "an unknown bit", IB_MR_WHY_BAD_MASK, TRANS | PD | ACCESS | 8, ALL },
	{ "the sign bit", IB_MR_WHY_BAD_MASK, INT_MIN | PD, ALL },
	{ "no domain", IB_MR_WHY_NULL_ARG, TRANS | PD | ACCESS, ALL, .pd = NULL_PD },
	{ "an error for a domain", IB_MR_WHY_NULL_ARG, PD, ALL, .pd = ERR_PD },
	{ "a domain of user space", IB_MR_WHY_USER_PD, TRANS | PD | ACCESS, ALL, .pd = USER_PD },
	{ "contradicting rights", IB_MR_WHY_ACCESS_NO_LOCAL, TRANS | PD | ACCESS, RW },
	{ "contradicting rights, not asked for", IB_MR_WHY_ACCESS_NO_LOCAL, PD, RA },
	{ "unknown rights", IB_MR_WHY_BAD_ACCESS, TRANS | PD | ACCESS, LW | 1 << 30 },
	{ "on-demand paging", IB_MR_WHY_NO_ON_DEMAND, TRANS | PD | ACCESS,
	  LW | IB_ACCESS_ON_DEMAND },
	{ "zero-based with an iova", IB_MR_WHY_ZERO_BASED_IOVA, PD | ACCESS, LW | IB_ZERO_BASED },
	{ "no list", IB_MR_WHY_NULL_ARG, TRANS | PD | ACCESS, ALL, .list = NULL_LIST },
	{ "an empty list", IB_MR_WHY_EMPTY, TRANS | PD | ACCESS, ALL, .list = NO_ENTRY },
	{ "a size of 0", IB_MR_WHY_EMPTY, TRANS | PD | ACCESS, ALL, .list = ZERO_SIZE },
	{ "an inner boundary", IB_MR_WHY_INNER_BOUNDARY, TRANS | PD | ACCESS, ALL, .list = INNER },
	{ "memory that is none", IB_MR_WHY_NOT_LINEAR, TRANS | PD | ACCESS, ALL,
	  .list = NOT_LINEAR },
	{ "a size past 2^64", IB_MR_WHY_WRAP, TRANS | PD | ACCESS, ALL, .list = HUGE_SIZE },
	{ "no iova", IB_MR_WHY_NULL_ARG, TRANS | PD | ACCESS, ALL, .list = NULL_IOVA },
	{ "iova off by one", IB_MR_WHY_IOVA_ALIGN, TRANS | PD | ACCESS, ALL, SZ_1M + 10 },
	{ "iova too high", IB_MR_WHY_IOVA_HIGH, TRANS | PD | ACCESS, ALL, 0 - (u64)SZ_1M + 9 },
	{ "iova past 2^64", IB_MR_WHY_WRAP, TRANS, ALL, 0 - (u64)PG + 9 },
};

static void bad_desc(const struct bad_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(bad, bad_table, bad_desc);

static int bad_call(struct room *r, const struct bad_row *row)
{
	struct ib_pd *pd = r->pd[1];
	struct ib_phys_buf *list = r->list[1];
	u64 good_iova = r->view[1].iova, row_iova = row->iova;
	u64 *iova = row_iova ? &row_iova : &good_iova;
	int n = r->n[1];

	if (row->pd == NULL_PD)
		pd = NULL;
	else if (row->pd == USER_PD)
		pd = ibt_user_pd(r->test, pd);
	else if (row->pd == ERR_PD)
		pd = ERR_PTR(-ENODEV);

	switch (row->list) {
	case NULL_LIST:
		list = NULL;
		break;
	case NO_ENTRY:
		n = 0;
		break;
	case ZERO_SIZE:
		list[n - 1].size = 0;
		break;
	case INNER:
		list[0].size--;
		break;
	case NOT_LINEAR:
		list[n - 1].addr = PG;
		break;
	case HUGE_SIZE:
		list[n - 1].size = U64_MAX;
		break;
	case NULL_IOVA:
		iova = NULL;
		break;
	case GOOD_LIST:
		break;
	}
	return ib_rereg_phys_mr(r->mr, row->mask, pd, list, n, row->access, iova);
}

static void rereg_fault5_failure(struct kunit *test)
{
	const struct bad_row *row = test->param_value;
	struct room *r = room(test);
	struct ibt_refusal *ref;
	int used[2] = { atomic_read(&r->pd[0]->usecnt), atomic_read(&r->pd[1]->usecnt) };
	struct ib_mr was = *r->mr;

	ref = ibt_refusal(test);
	ibt_refusal_end(test, ref, row->why, bad_call(r, row), row->desc);
	KUNIT_EXPECT_EQ_MSG(test, memcmp(&was, r->mr, sizeof(was)), 0, "the handle was changed");
	KUNIT_EXPECT_EQ(test, atomic_read(&r->pd[0]->usecnt), used[0]);
	KUNIT_EXPECT_EQ(test, atomic_read(&r->pd[1]->usecnt), used[1]);
	expect_now(r);
	KUNIT_EXPECT_TRUE(test, ibt_intact(r->view[1].buf));
}

/* DMA regions have rights and a domain, but no memory to change. */
static void rereg_dma(struct kunit *test)
{
	struct room *r = room(test);
	struct ibt_view v = { .len = PG, .unbounded = true };
	struct ib_mr *mr = ibt_mr(test, ib_get_dma_mr(r->pd[0], LW));
	u64 iova;

	v.buf = ibt_buf(test, IBT_KMALLOC, PG, 30);
	v.iova = (uintptr_t)v.buf->addr;
	iova = v.iova;
	v.access = LW;
	ibt_expect_refused(test, WRONG_KIND, ib_rereg_phys_mr(mr, TRANS, NULL, r->list[1], r->n[1],
							      0, &iova));
	ibt_expect_refused(test, WRONG_KIND, ib_rereg_phys_mr(mr, ACCESS, NULL, NULL, 0,
							      LW | IB_ZERO_BASED, NULL));
	ibt_expect_view(r->p[0], mr, &v);
	v.access = LW | RR;
	KUNIT_EXPECT_EQ(test, ib_rereg_phys_mr(mr, ACCESS, NULL, NULL, 0, v.access, NULL), 0);
	ibt_expect_view(r->p[0], mr, &v);
	KUNIT_EXPECT_EQ(test, ib_rereg_phys_mr(mr, PD, r->pd[1], NULL, 0, 0, NULL), 0);
	ibt_expect_view(r->p[1], mr, &v);
	ibt_expect_dead(r->p[0], mr->lkey, mr->rkey, v.iova);
}

/* Kernel memory is given up when other memory takes its place, and kept when only rights change. */
static void rereg_kernel(struct kunit *test)
{
	struct room *r = room(test);
	struct ibt_view v = { .buf = ibt_buf(test, IBT_VMALLOC, 3 * PG, 31), .len = 3 * PG };
	struct ib_mr *mr;
	u64 iova = r->view[1].iova;

	v.iova = (uintptr_t)v.buf->addr;
	v.access = RR;
	mr = ibt_mr(test, ib_mr_reg_kernel(r->pd[0], v.buf->addr, v.len, RR, NULL));
	v.access = ALL;
	KUNIT_EXPECT_EQ(test, ib_rereg_phys_mr(mr, ACCESS | PD, r->pd[1], NULL, 0, ALL, NULL), 0);
	ibt_expect_view(r->p[1], mr, &v);
	v = r->view[1];
	v.access = ALL;
	KUNIT_EXPECT_EQ(test, ib_rereg_phys_mr(mr, TRANS, NULL, r->list[1], r->n[1], 0, &iova), 0);
	ibt_expect_view(r->p[1], mr, &v);
}

/* Two threads re-register one region; whoever comes last, it is whole. */
static int rereg_thread(void *arg, int i)
{
	struct room *r = arg;
	const struct ibt_view *v = &r->view[i];
	u64 iova = v->iova;
	int n, ret = 0;

	for (n = 0; n < 50 && !ret; n++)
		ret = ib_rereg_phys_mr(r->mr, TRANS | PD | ACCESS, r->pd[i], r->list[i], r->n[i],
				       v->access, &iova);
	return ret;
}

static void rereg_in_parallel(struct kunit *test)
{
	struct room *r = room(test);

	ibt_parallel(test, 2, rereg_thread, r);
	r->in = r->mr->pd == r->pd[1];
	r->now = r->view[r->in];
	expect_now(r);
}

static struct kunit_case rereg_cases[] = {
	KUNIT_CASE_PARAM(rereg_masks, mask_gen_params),
	KUNIT_CASE(rereg_leaves_the_old_pd),
	KUNIT_CASE(rereg_to_the_same),
	KUNIT_CASE_PARAM(rereg_fault5_failure, bad_gen_params),
	KUNIT_CASE(rereg_dma),
	KUNIT_CASE(rereg_kernel),
	KUNIT_CASE(rereg_in_parallel),
	{}
};

IBT_SUITE(rereg, rereg_cases);
