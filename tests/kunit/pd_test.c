// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Protection domains: holds, the answer "busy", and that nothing of ours is left in one.
 *
 * The hidden registration queue pair shows in the core's count of queue pairs and in the domain's
 * use count. It must be there while something is registered or held, the same one all the time,
 * and be gone in the very call that releases the last of it.
 */
#include "helpers.h"

static struct ib_mr *small(struct kunit *test, struct ib_pd *pd)
{
	struct ibt_buf *b = ibt_buf(test, IBT_KMALLOC, 64, 1);

	return ibt_mr(test, ib_mr_reg_kernel(pd, b->addr, b->size, LW | RR, NULL));
}

static int queue_pairs(struct kunit *test)
{
	return ibt_objects(test, RDMA_RESTRACK_QP);
}

static void pd_queue_pair_goes_with_the_last(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	int qps = queue_pairs(test);
	struct ib_mr *a, *b;

	a = small(test, pd);
	KUNIT_EXPECT_EQ(test, queue_pairs(test), qps + 1);
	b = small(test, pd);
	KUNIT_EXPECT_EQ(test, queue_pairs(test), qps + 1);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, a), 0);
	KUNIT_EXPECT_EQ(test, queue_pairs(test), qps + 1);
	KUNIT_EXPECT_GT(test, atomic_read(&pd->usecnt), 0);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, b), 0);
	KUNIT_EXPECT_EQ(test, queue_pairs(test), qps);
	KUNIT_EXPECT_EQ(test, atomic_read(&pd->usecnt), 0);
}

static void pd_hold_keeps_the_queue_pair(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	int qps = queue_pairs(test), cqs = ibt_objects(test, RDMA_RESTRACK_CQ), i;

	KUNIT_ASSERT_EQ(test, ib_mr_pd_get(pd), 0);
	for (i = 0; i < 3; i++) {
		struct ib_mr *mr = small(test, pd);

		KUNIT_EXPECT_EQ(test, queue_pairs(test), qps + 1);
		KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
		KUNIT_EXPECT_EQ(test, queue_pairs(test), qps + 1);
	}
	ib_mr_pd_put(pd);
	KUNIT_EXPECT_EQ(test, queue_pairs(test), qps);
	KUNIT_EXPECT_EQ(test, ibt_objects(test, RDMA_RESTRACK_CQ), cqs);
	KUNIT_EXPECT_EQ(test, atomic_read(&pd->usecnt), 0);
}

/* Holds nest, and outlast or are outlasted by regions. */
static void pd_holds_nest(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	int qps = queue_pairs(test);
	struct ib_mr *mr;

	KUNIT_ASSERT_EQ(test, ib_mr_pd_get(pd), 0);
	KUNIT_ASSERT_EQ(test, ib_mr_pd_get(pd), 0);
	mr = small(test, pd);
	ib_mr_pd_put(pd);
	KUNIT_EXPECT_EQ(test, queue_pairs(test), qps + 1);
	ib_mr_pd_put(pd);
	KUNIT_EXPECT_EQ(test, queue_pairs(test), qps + 1);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	KUNIT_EXPECT_EQ(test, queue_pairs(test), qps);
	KUNIT_EXPECT_EQ(test, atomic_read(&pd->usecnt), 0);
}

/* More puts than gets take nothing away from anybody. */
static void pd_unbalanced_put(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ib_mr *mr = small(test, pd);
	int qps = queue_pairs(test), i;

	for (i = 0; i < 3; i++)
		ibt_expect_refused(test, PD_NOT_HELD, (ib_mr_pd_put(pd), -EINVAL));
	ib_mr_pd_put(NULL);
	ibt_expect_refused(test, NULL_ARG, ib_mr_dealloc_pd(NULL));
	KUNIT_EXPECT_EQ(test, queue_pairs(test), qps);
	KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(ibt_dev(test)));
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
}

/* DMA regions need no queue pair. */
static void pd_dma_needs_no_queue_pair(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	int qps = queue_pairs(test);

	ibt_mr(test, ib_get_dma_mr(pd, LW));
	KUNIT_EXPECT_EQ(test, queue_pairs(test), qps);
}

/* As up to 4.2: busy while something of ours is in it, and freed once nothing is. */
static void pd_busy(struct kunit *test)
{
	struct ib_pd *pd = ib_alloc_pd(ibt_dev(test), 0);
	struct ib_mr *mr, *dma;

	KUNIT_ASSERT_FALSE(test, IS_ERR(pd));
	mr = small(test, pd);
	ibt_expect_refused(test, PD_BUSY, ib_mr_dealloc_pd(pd));
	dma = ibt_mr(test, ib_get_dma_mr(pd, LW));
	KUNIT_EXPECT_EQ(test, ib_mr_pd_get(pd), 0);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	ibt_expect_refused(test, PD_BUSY, ib_mr_dealloc_pd(pd));
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, dma), 0);
	ibt_expect_refused(test, PD_BUSY, ib_mr_dealloc_pd(pd));
	ib_mr_pd_put(pd);
	KUNIT_EXPECT_EQ(test, ib_mr_dealloc_pd(pd), 0);
}

/* A refusal leaves the domain in working order. */
static void pd_busy_changes_nothing(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_view v = { .buf = ibt_buf(test, IBT_PAGES, SZ_4K, 2), .len = SZ_4K,
			      .access = LW | RR | RW | RA };
	struct ib_mr *mr;

	v.iova = (uintptr_t)v.buf->addr;
	mr = ibt_mr(test, ib_mr_reg_kernel(pd, v.buf->addr, v.len, v.access, NULL));
	ibt_expect_refused(test, PD_BUSY, ib_mr_dealloc_pd(pd));
	ibt_expect_view(ibt_pair(test, pd), mr, &v);
	small(test, pd);
}

/* What was never ours is freed as ever, and an address used again is a new domain. */
static void pd_of_others(struct kunit *test)
{
	struct ib_pd *pd;
	int i;

	for (i = 0; i < 20; i++) {
		pd = ib_alloc_pd(ibt_dev(test), 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(pd));
		if (i & 1) {
			KUNIT_EXPECT_EQ(test, ib_mr_pd_get(pd), 0);
			ib_mr_pd_put(pd);
		}
		KUNIT_EXPECT_EQ(test, ib_dealloc_pd(pd), 0);
	}
}

/* Gets, puts and registrations in one domain from several threads at once. */
struct crowd {
	struct ib_pd *pd;
	struct ibt_buf *buf[4];
};

static int crowd_thread(void *arg, int i)
{
	struct crowd *c = arg;
	struct ib_mr *mr;
	int n, ret = 0;

	for (n = 0; n < 50 && !ret; n++) {
		if (i & 1)
			ret = ib_mr_pd_get(c->pd);
		mr = ib_mr_reg_kernel(c->pd, c->buf[i]->addr, c->buf[i]->size, LW, NULL);
		ret = ret ?: PTR_ERR_OR_ZERO(mr);
		if (!IS_ERR(mr))
			ret = ret ?: ib_dereg_mr(mr);
		if (i & 1)
			ib_mr_pd_put(c->pd);
	}
	return ret;
}

static void pd_crowd(struct kunit *test)
{
	struct crowd c = { .pd = ibt_pd(test) };
	int i;

	for (i = 0; i < ARRAY_SIZE(c.buf); i++)
		c.buf[i] = ibt_buf(test, IBT_KMALLOC, 512, i);
	ibt_parallel(test, ARRAY_SIZE(c.buf), crowd_thread, &c);
	KUNIT_EXPECT_EQ(test, atomic_read(&c.pd->usecnt), 0);
}

static struct kunit_case pd_cases[] = {
	KUNIT_CASE(pd_queue_pair_goes_with_the_last),
	KUNIT_CASE(pd_hold_keeps_the_queue_pair),
	KUNIT_CASE(pd_holds_nest),
	KUNIT_CASE(pd_unbalanced_put),
	KUNIT_CASE(pd_dma_needs_no_queue_pair),
	KUNIT_CASE(pd_busy),
	KUNIT_CASE(pd_busy_changes_nothing),
	KUNIT_CASE(pd_of_others),
	KUNIT_CASE(pd_crowd),
	{}
};

IBT_SUITE(pd, pd_cases);
