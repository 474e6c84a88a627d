// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What callers hand over by mistake: no pointer, an FMR that they have released before, one of our
 * handles to a function of the core. Each is answered with a reason, and nothing else happens.
 */

#include "fmr_helpers.h"
#include "window.h"

#include <rdma/ib_mr_arena.h>
#include <rdma/ib_mr_mw.h>

/* --- NULL, for each call and argument --- */

struct given {
	struct ib_pd *pd;
	struct ib_qp *qp;
	struct ib_cq *cq;
	struct ib_mr *mr;
	struct ib_mw *mw;
	struct ib_fmr_pool *pool;
	struct ib_fmr *fmr;
	u64 *list;
	struct scatterlist *sgl;
};

static struct ib_fmr_pool_param pool_param = {
	.max_pages_per_fmr = 1, .page_shift = PAGE_SHIFT, .access = LW, .pool_size = 1,
};
static struct ib_fmr_attr fmr_attr = { .max_pages = 1, .max_maps = 1, .page_shift = PAGE_SHIFT };
static struct ib_mw_bind_info no_region = { .length = 1, .mw_access_flags = RR };
static struct ib_mw_bind no_bind;
static u64 iova;
static struct ib_mr_run one_run;
static struct ib_phys_buf one_buf;
static struct ib_mr_attr one_attr;
static struct ib_cq_init_attr one_cq = { .cqe = 1 };
static struct ib_wc one_wc;
static u8 byte;
static struct ib_mr_slice one_slice;

static int release_nothing(void *object)
{
	return 0;
}

#define NULLS(X)									\
	X(get_dma_mr_pd, PTR_ERR_OR_ZERO(ib_get_dma_mr(NULL, LW)))			\
	X(reg_phys_pd, PTR_ERR_OR_ZERO(ib_reg_phys_mr(NULL, &one_buf, 1, LW, &iova)))	\
	X(reg_phys_list, PTR_ERR_OR_ZERO(ib_reg_phys_mr(g->pd, NULL, 1, LW, &iova)))	\
	X(reg_phys_iova, PTR_ERR_OR_ZERO(ib_reg_phys_mr(g->pd, &one_buf, 1, LW, NULL)))	\
	X(rereg_mr, ib_rereg_phys_mr(NULL, IB_MR_REREG_ACCESS, NULL, NULL, 0, LW, NULL))\
	X(rereg_pd, ib_rereg_phys_mr(g->mr, IB_MR_REREG_PD, NULL, NULL, 0, LW, NULL))	\
	X(rereg_list, ib_rereg_phys_mr(g->mr, IB_MR_REREG_TRANS, NULL, NULL, 1, 0, &iova)) \
	X(query_mr, ib_query_mr(NULL, &one_attr))					\
	X(query_attr, ib_query_mr(g->mr, NULL))						\
	X(dereg, ib_dereg_mr(NULL))							\
	X(reg_kernel_pd, PTR_ERR_OR_ZERO(ib_mr_reg_kernel(NULL, &byte, 1, LW, NULL)))	\
	X(reg_kernel_addr, PTR_ERR_OR_ZERO(ib_mr_reg_kernel(g->pd, NULL, 1, LW, NULL)))	\
	X(reg_sg_pd, PTR_ERR_OR_ZERO(ib_mr_reg_sg(NULL, g->sgl, 1, LW, NULL)))		\
	X(reg_sg_list, PTR_ERR_OR_ZERO(ib_mr_reg_sg(g->pd, NULL, 1, LW, NULL)))		\
	X(reg_user_pd, PTR_ERR_OR_ZERO(ib_mr_reg_user(NULL, PAGE_SIZE, 1, LW, NULL)))	\
	X(pd_get, ib_mr_pd_get(NULL))							\
	X(translate_pd, ib_mr_translate(NULL, g->mr->lkey, g->mr->iova, 1, &one_run, 1)) \
	X(copy_to_pd, ib_mr_copy_to(NULL, g->mr->lkey, g->mr->iova, &byte, 1))		\
	X(copy_to_buf, ib_mr_copy_to(g->pd, g->mr->lkey, g->mr->iova, NULL, 1))		\
	X(copy_from_pd, ib_mr_copy_from(NULL, g->mr->lkey, g->mr->iova, &byte, 1))	\
	X(copy_from_buf, ib_mr_copy_from(g->pd, g->mr->lkey, g->mr->iova, NULL, 1))	\
	X(alloc_fmr_pd, PTR_ERR_OR_ZERO(ib_alloc_fmr(NULL, LW, &fmr_attr)))		\
	X(alloc_fmr_attr, PTR_ERR_OR_ZERO(ib_alloc_fmr(g->pd, LW, NULL)))		\
	X(map_fmr, ib_map_phys_fmr(NULL, g->list, 1, 0))				\
	X(map_fmr_list, ib_map_phys_fmr(g->fmr, NULL, 1, 0))				\
	X(unmap_fmr, ib_unmap_fmr(NULL))						\
	X(dealloc_fmr, ib_dealloc_fmr(NULL))						\
	X(create_pool_pd, PTR_ERR_OR_ZERO(ib_create_fmr_pool(NULL, &pool_param)))	\
	X(create_pool_param, PTR_ERR_OR_ZERO(ib_create_fmr_pool(g->pd, NULL)))		\
	X(flush_pool, ib_flush_fmr_pool(NULL))						\
	X(pool_map, PTR_ERR_OR_ZERO(ib_fmr_pool_map_phys(NULL, g->list, 1, 0)))		\
	X(pool_map_err, PTR_ERR_OR_ZERO(ib_fmr_pool_map_phys(ERR_PTR(-ENOMEM), g->list, 1, 0))) \
	X(pool_map_list, PTR_ERR_OR_ZERO(ib_fmr_pool_map_phys(g->pool, NULL, 1, 0)))	\
	X(pool_map_sg, PTR_ERR_OR_ZERO(ib_fmr_pool_map_sg(NULL, g->sgl, 1, 0, 1, 0)))	\
	X(pool_map_sg_list, PTR_ERR_OR_ZERO(ib_fmr_pool_map_sg(g->pool, NULL, 1, 0, 1, 0))) \
	X(pool_unmap, ib_fmr_pool_unmap(NULL))						\
	X(pool_unmap_err, ib_fmr_pool_unmap(ERR_PTR(-EAGAIN)))				\
	X(alloc_mw, PTR_ERR_OR_ZERO(ib_alloc_mw(NULL, IB_MW_TYPE_1)))			\
	X(dealloc_mw, ib_dealloc_mw(NULL))						\
	X(bind_qp, ib_bind_mw(NULL, g->mw, &no_bind))					\
	X(bind_mw, ib_bind_mw(g->qp, NULL, &no_bind))					\
	X(bind_bind, ib_bind_mw(g->qp, g->mw, NULL))					\
	X(bind_info, ib_mr_bind_mw(g->qp, g->mw, NULL, 0, 0))				\
	X(bind_region, ib_mr_bind_mw(g->qp, g->mw, &no_region, 0, 0))			\
	X(post_bind, ib_mr_post_bind_mw(g->qp, NULL))					\
	X(invalidated, ib_mr_invalidated(NULL, 1))					\
	X(poll_cq, ib_mr_poll_cq(NULL, 1, &one_wc))					\
	X(poll_cq_wc, ib_mr_poll_cq(g->cq, 1, NULL))					\
	X(create_cq, PTR_ERR_OR_ZERO(ib_mr_create_cq(NULL, NULL, NULL, NULL, &one_cq, "")))	\
	X(create_cq_attr, PTR_ERR_OR_ZERO(ib_mr_create_cq(g->pd->device, NULL, NULL, NULL,	\
							  NULL, "")))			\
	X(destroy_cq, ib_mr_destroy_cq(NULL))						\
	X(arena_alloc, ib_mr_arena_alloc(NULL, 64, &one_slice))				\
	X(arena_alloc_err, ib_mr_arena_alloc(ERR_PTR(-ENOMEM), 64, &one_slice))		\
	X(arena_aligned, ib_mr_arena_alloc_aligned(NULL, 64, 8, &one_slice))		\
	X(arena_free, ib_mr_arena_free(NULL, &one_slice))				\
	X(arena_mr, PTR_ERR_OR_ZERO(ib_mr_arena_mr(NULL)))				\
	X(scope_add, ib_mr_scope_add(NULL, IB_MR_SCOPE_LAST, release_nothing, &byte))	\
	X(scope_add_err, ib_mr_scope_add(ERR_PTR(-ENOMEM), IB_MR_SCOPE_LAST,		\
					 release_nothing, &byte))			\
	X(scope_forget, ib_mr_scope_forget(NULL, &byte))				\
	X(scope_drop, ib_mr_scope_drop(NULL, &byte))					\
	X(map_mr_sg, ib_map_mr_sg(NULL, g->sgl, 1, NULL, PAGE_SIZE))

struct null_row {
	const char *desc;
	long (*call)(struct given *g);
};

#define NULL_CALL(name, expr) static long null_##name(struct given *g) { return (expr); }
NULLS(NULL_CALL)

static const struct null_row null_table[] = {
#define NULL_ROW(name, expr) { #name, null_##name },
	NULLS(NULL_ROW)
};

static void null_desc(const struct null_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(null, null_table, null_desc);

static void no_pointer(struct kunit *test)
{
	const struct null_row *row = test->param_value;
	struct ibt_refusal *r;
	struct given g;
	struct ibt_win w;
	int nents;
	long err;

	ibt_win(&w, test, IBT_PAGES, 4 * PAGE_SIZE, LW | RR | MWB);
	g = (struct given){
		.pd = w.pd, .qp = w.p->tgt.qp, .cq = w.p->tgt.cq, .mr = w.mr, .mw = w.mw,
		.pool = ibt_pool(test, w.pd, (struct ib_fmr_pool_param){}),
		.fmr = ibt_fmr(test, w.pd, LW, 4, 4),
		.list = ibt_page_list(test, w.b),
		.sgl = ibt_sg(test, w.b, 0, PAGE_SIZE, &nents),
	};
	r = ibt_refusal(test);
	err = row->call(&g);
	ibt_refusal_end(test, r, IB_MR_WHY_NULL_ARG, err, row->desc);
}

/* --- an FMR of a pool that is released twice --- */

static void second_unmap(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PAGE_SIZE, 1);
	u64 *list = ibt_page_list(test, b);
	struct ib_fmr_pool *pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){ .pool_size = 4 });
	struct ib_pool_fmr *fmr[6];
	int i;

	/* Taken in the order of release: each of the four, before the first comes again. */
	for (i = 0; i < 6; i++) {
		fmr[i] = ibt_pool_map(pool, list, 1, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[i]));
		if (i)
			KUNIT_EXPECT_PTR_NE(test, fmr[i], fmr[i - 1]);
		KUNIT_EXPECT_EQ(test, ib_fmr_pool_unmap(fmr[i]), 0);
		ibt_expect_refused(test, UNMAP_TWICE, ib_fmr_pool_unmap(fmr[i]));
	}
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, fmr[i] == fmr[0], i == 0);
	KUNIT_EXPECT_PTR_EQ(test, fmr[4], fmr[0]);
	KUNIT_EXPECT_PTR_EQ(test, fmr[5], fmr[1]);

	/* Somebody else has got one since, and keeps his key. */
	fmr[0] = ibt_pool_map(pool, list, 4, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[0]));
	ibt_expect_refused(test, UNMAP_TWICE, ib_fmr_pool_unmap(fmr[5]));
	ibt_expect_key(p, fmr[0]->fmr->rkey, 0, b, 0, 4 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, ib_fmr_pool_unmap(fmr[0]), 0);

	/* All can still be had, once each. */
	for (i = 0; i < 4; i++) {
		fmr[i] = ibt_pool_map(pool, list, 1, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[i]));
	}
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_fmr_pool_map_phys(pool, list, 1, 0)), -EAGAIN);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, ib_fmr_pool_unmap(fmr[i]), 0);
}

/* The same where a release has more than one way to go. */
static void second_unmap_other(struct kunit *test)
{
	static const struct ib_fmr_pool_param params[] = {
		{ .cache = 1 }, { .key_maps = 4 }, { .rekey_at_once = 1 },
	};
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PAGE_SIZE, 1);
	u64 *list = ibt_page_list(test, b);
	struct ib_pool_fmr *fmr, *again;
	struct ib_fmr_pool *pool;
	int i;

	for (i = 0; i < ARRAY_SIZE(params); i++) {
		pool = ibt_pool(test, pd, params[i]);
		fmr = ibt_pool_map(pool, list, 1, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
		KUNIT_EXPECT_EQ(test, ib_fmr_pool_unmap(fmr), 0);
		ibt_expect_refused(test, UNMAP_TWICE, ib_fmr_pool_unmap(fmr));
		again = ibt_pool_map(pool, list, 1, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(again));
		KUNIT_EXPECT_EQ(test, again->ref_count, 1);
		KUNIT_EXPECT_EQ(test, ib_fmr_pool_unmap(again), 0);
	}
}

/* --- our handles, given to the core --- */

static void ours_to_the_core(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PAGE_SIZE, 1);
	struct ib_mr_status status;
	struct ib_mr was, *ours, *core;
	struct scatterlist *sgl;
	int nents;
	u32 key;

	sgl = ibt_sg(test, b, 0, 4 * PAGE_SIZE, &nents);
	ours = ibt_mr(test, ib_mr_reg_sg(pd, sgl, nents, LW | RR, NULL));
	memcpy(&was, ours, sizeof(was));
	ibt_expect_refused(test, OUR_MR, ib_map_mr_sg(ours, sgl, nents, NULL, PAGE_SIZE));
	ibt_expect_refused(test, OUR_MR, ib_map_mr_sg_zbva(ours, sgl, nents, NULL, PAGE_SIZE));
	ibt_expect_refused(test, OUR_MR, ib_map_mr_sg_pi(ours, sgl, nents, NULL, NULL, 0, NULL,
							 PAGE_SIZE));
	ibt_expect_refused(test, OUR_MR, ib_check_mr_status(ours, 0, &status));
	ibt_expect_refused(test, OUR_MR, ib_dereg_mr_user(ours, NULL));
	ib_update_fast_reg_key(ours, 3);
	KUNIT_EXPECT_EQ(test, memcmp(&was, ours, sizeof(was)), 0);

	/* Others go on to the core. */
	core = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 4);
	KUNIT_ASSERT_FALSE(test, IS_ERR(core));
	KUNIT_EXPECT_EQ(test, ib_map_mr_sg(core, sgl, nents, NULL, PAGE_SIZE), nents);
	KUNIT_EXPECT_EQ(test, core->length, (u64)4 * PAGE_SIZE);
	key = core->rkey;
	ib_update_fast_reg_key(core, 77);
	KUNIT_EXPECT_EQ(test, core->rkey, (key & ~0xffU) | 77);
	KUNIT_EXPECT_EQ(test, ib_dereg_mr_user(core, NULL), 0);

	/* A dead one is still known for ours. */
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, ours), 0);
	ibt_expect_refused(test, OUR_MR, ib_map_mr_sg(ours, sgl, nents, NULL, PAGE_SIZE));
}

static struct kunit_case misuse_cases[] = {
	KUNIT_CASE_PARAM(no_pointer, null_gen_params),
	KUNIT_CASE(second_unmap),
	KUNIT_CASE(second_unmap_other),
	KUNIT_CASE(ours_to_the_core),
	{}
};

IBT_SUITE(misuse, misuse_cases);
