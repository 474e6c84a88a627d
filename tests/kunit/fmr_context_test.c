// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * FMRs from every context in which a ULP may be when it maps or unmaps: nothing there may sleep or
 * allocate, and lockdep sees each lock taken with interrupts off (field fault 11: a lock without
 * irqsave met a completion handler).
 */
#include <linux/delay.h>
#include "fmr_helpers.h"
#include "proc.h"

#define PG	PAGE_SIZE

static const enum ibt_context context_table[] = {
	IBT_PROCESS, IBT_BH_OFF, IBT_IRQ_OFF, IBT_SPINLOCK, IBT_TASKLET, IBT_TIMER, IBT_HARDIRQ,
};

static void context_desc(const enum ibt_context *row, char *desc)
{
	strscpy(desc, ibt_context_name(*row), KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(context, context_table, context_desc);

/* Each step is one call there; what came of it is judged afterwards, in the case. */
struct fmr_call {
	struct ib_fmr *fmr;
	struct ib_fmr_pool *pool;
	struct ib_pool_fmr *mapped;
	struct scatterlist *sgl;
	u64 *list;
	int n, nents, err;
	u64 iova, length;
};

static void call_map(void *arg)
{
	struct fmr_call *c = arg;

	c->err = ib_map_phys_fmr(c->fmr, c->list, c->n, c->iova);
}

static void call_pool_map(void *arg)
{
	struct fmr_call *c = arg;

	c->mapped = ib_fmr_pool_map_phys(c->pool, c->list, c->n, c->iova);
}

static void call_pool_map_sg(void *arg)
{
	struct fmr_call *c = arg;

	c->mapped = ib_fmr_pool_map_sg(c->pool, c->sgl, c->nents, 0, c->length, c->iova);
}

static void call_pool_unmap(void *arg)
{
	struct fmr_call *c = arg;

	c->err = ib_fmr_pool_unmap(c->mapped);
}

static void context_fmr(struct kunit *test)
{
	enum ibt_context ctx = *(const enum ibt_context *)test->param_value;
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PG, 1);
	struct fmr_call c = { .list = ibt_page_list(test, b), .n = 4 };
	u32 old = 0;
	int i;

	c.fmr = ibt_fmr(test, pd, FMR_ALL, 4, 8);
	for (i = 0; i < 4; i++) {
		ibt_in_context(test, ctx, call_map, &c);
		KUNIT_ASSERT_EQ(test, c.err, 0);
		ibt_expect_key(p, c.fmr->rkey, 0, b, 0, 4 * PG);
		if (old)
			KUNIT_EXPECT_FALSE(test, ibt_can_read(p, old, 0));
		old = c.fmr->rkey;
	}
	/* Refusals take other paths: the log, the counters, the worker's call. */
	c.n = 5;
	ibt_in_context(test, ctx, call_map, &c);
	KUNIT_EXPECT_EQ(test, c.err, -EINVAL);
	c.n = 4;
	ibt_param(test, "fail_map", 1);
	ibt_in_context(test, ctx, call_map, &c);
	KUNIT_EXPECT_EQ(test, c.err, -EAGAIN);
	ibt_param(test, "fail_map", 0);
	ibt_expect_key(p, old, 0, b, 0, 4 * PG);
}

/* Till the stock is empty there, and the worker is called from there. */
static void context_drains(struct kunit *test)
{
	enum ibt_context ctx = *(const enum ibt_context *)test->param_value;
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PG, 1);
	struct fmr_call c = { .list = ibt_page_list(test, b), .n = 1 };
	int i;

	c.fmr = ibt_fmr(test, pd, FMR_ALL, 1, 32767);
	for (i = 0; i < 200; i++) {
		ibt_in_context(test, ctx, call_map, &c);
		if (c.err)
			break;
	}
	KUNIT_EXPECT_TRUE(test, !c.err || c.err == -EAGAIN);
	KUNIT_EXPECT_EQ(test, ibt_map(c.fmr, c.list, 1, 0), 0);
}

static void context_pool(struct kunit *test)
{
	enum ibt_context ctx = *(const enum ibt_context *)test->param_value;
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PG, 1);
	struct fmr_call c = { .list = ibt_page_list(test, b), .n = 4 };
	int cache, i;
	u32 key;

	for (cache = 0; cache < 2; cache++) {
		c.pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){
			.cache = cache, .dirty_watermark = 1 });
		for (i = 0; i < 3; i++) {
			ibt_in_context(test, ctx, call_pool_map, &c);
			KUNIT_ASSERT_FALSE(test, IS_ERR(c.mapped));
			key = c.mapped->fmr->rkey;
			ibt_expect_key(p, key, 0, b, 0, 4 * PG);
			ibt_in_context(test, ctx, call_pool_unmap, &c);
			KUNIT_EXPECT_EQ(test, c.err, 0);
			KUNIT_EXPECT_EQ(test, ibt_can_read(p, key, 0), cache);
		}
		c.n = 17;
		ibt_in_context(test, ctx, call_pool_map, &c);
		KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(c.mapped), -EINVAL);
		c.n = 4;
		c.length = 3 * PG;
		c.sgl = ibt_sg(test, b, 100, c.length, &c.nents);
		c.iova = SZ_1M + 100;
		ibt_in_context(test, ctx, call_pool_map_sg, &c);
		KUNIT_ASSERT_FALSE(test, IS_ERR(c.mapped));
		key = c.mapped->fmr->rkey;
		ibt_expect_key(p, key, c.iova, b, 100, c.length);
		ibt_in_context(test, ctx, call_pool_unmap, &c);
		KUNIT_EXPECT_FALSE(test, ibt_can_read(p, key, c.iova));
		c.iova = 0;
	}
}

/* Hardirqs and softirqs of both CPUs interrupt each other and a thread, all in one pool. */
struct mix {
	struct kunit *test;
	struct fmr_call c[IBT_CONTEXTS];
};

static void mix_round(void *arg)
{
	struct fmr_call *c = arg;

	call_pool_map(c);
	if (IS_ERR(c->mapped)) {
		if (c->mapped != ERR_PTR(-EAGAIN))
			c->err = -EIO;
		return;
	}
	call_pool_unmap(c);
}

static int mix_thread(void *arg, int i)
{
	struct mix *m = arg;
	int n;

	for (n = 0; n < 60 && !m->c[i].err; n++) {
		ibt_in_context(m->test, i, mix_round, &m->c[i]);
		if (n % 8 == 7)
			msleep(20);
	}
	return m->c[i].err;
}

static void context_mixed(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PG, 1);
	struct mix m = { .test = test };
	struct ib_fmr_pool *pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){
		.cache = 1, .pool_size = 4 });
	int i;

	for (i = 0; i < IBT_CONTEXTS; i++)
		m.c[i] = (struct fmr_call){
			.pool = pool, .list = ibt_page_list(test, b), .n = 1 + i % 4,
		};
	ibt_parallel(test, IBT_CONTEXTS, mix_thread, &m);
	KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(pool), 0);
	KUNIT_EXPECT_TRUE(test, ibt_mag_settles(ibmr_pool_mag(pool), 0, 5000));
}

static struct kunit_case fmr_context_cases[] = {
	KUNIT_CASE_PARAM(context_fmr, context_gen_params),
	KUNIT_CASE_PARAM(context_drains, context_gen_params),
	KUNIT_CASE_PARAM(context_pool, context_gen_params),
	KUNIT_CASE(context_mixed),
	{}
};

IBT_SUITE(fmr_context, fmr_context_cases);
