// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fail-nth rows: regions of all kinds, protection domains, arenas, scopes, and what looks at them.
 */
#include "failnth.h"

#ifdef CONFIG_IB_MR_DEBUG

#define PG	SZ_4K
#define LEN	(FN_PAGES * PG)
#define ALL	(LW | RR | RW | RA)

/* --- making regions; each reads as what it was made of --- */

static int take_mr(struct fn_room *r, struct ib_mr *mr)
{
	r->mr = IS_ERR(mr) ? NULL : mr;
	return PTR_ERR_OR_ZERO(mr);
}

static void dereg(struct fn_room *r)
{
	KUNIT_EXPECT_EQ(r->test, ib_dereg_mr(r->mr), 0);
}

static int run_dma(struct fn_room *r)
{
	return take_mr(r, ib_get_dma_mr(r->pd, LW | RR));
}

static void done_dma(struct fn_room *r)
{
	fn_reads(r, r->p, r->b, r->mr->rkey, r->list[1], PG, PG);
	dereg(r);
}

static int run_phys(struct fn_room *r)
{
	u64 iova = FN_IOVA;

	return take_mr(r, ib_reg_phys_mr(r->pd, r->phys, r->nphys, ALL, &iova));
}

static void done_scattered(struct fn_room *r)
{
	fn_reads(r, r->p, r->b, r->mr->rkey, r->mr->iova, 0, LEN);
	dereg(r);
}

/* Another region of the PD, and with it the queue pair, is there before. */
static void beside(struct fn_room *r)
{
	r->old = ibt_mr(r->test, ib_mr_reg_kernel(r->pd, r->flat->addr, LEN, RR, NULL));
}

static void beside_works(struct fn_room *r)
{
	fn_reads(r, r->p, r->flat, r->old->rkey, r->old->iova + 5, 5, PG);
}

static void done_beside(struct fn_room *r)
{
	beside_works(r);
	done_scattered(r);
}

static int run_kernel(struct fn_room *r)
{
	return take_mr(r, ib_mr_reg_kernel(r->pd, r->flat->addr, LEN, ALL, NULL));
}

static void done_flat(struct fn_room *r)
{
	fn_reads(r, r->p, r->flat, r->mr->rkey, r->mr->iova, 0, LEN);
	dereg(r);
}

static void set_up_sg(struct fn_room *r)
{
	r->sgl = ibt_sg(r->test, r->b, 0, LEN, &r->nents);
}

static int run_sg(struct fn_room *r)
{
	const u64 iova = FN_IOVA;

	return take_mr(r, ib_mr_reg_sg(r->pd, r->sgl, r->nents, ALL, &iova));
}

static void set_up_user(struct fn_room *r)
{
	r->proc = ibt_proc(r->test, NULL);
	r->at = ibt_user_map(r->proc, LEN, PROT_READ | PROT_WRITE);
	KUNIT_ASSERT_EQ(r->test, ibt_poke_pattern(r->proc, r->at, LEN, r->b->seed), 0);
}

static int run_user(struct fn_room *r)
{
	return take_mr(r, ibt_reg_user(r->proc, r->pd, r->at, LEN, ALL, NULL));
}

static void failed_user(struct fn_room *r)
{
	KUNIT_EXPECT_EQ(r->test, ibt_proc_pinned(r->proc), (u64)0);
}

/* A large region that may be bound to takes no more than any other until it is bound to. */
static int run_bindable(struct fn_room *r)
{
	return take_mr(r, ib_mr_reg_kernel(r->pd, r->flat->addr, r->flat->size, ALL | MWB, NULL));
}

static void set_up_large(struct fn_room *r)
{
	r->flat = ibt_buf(r->test, IBT_VMALLOC, 300 * PG, 2);
}

/* --- changing, looking, letting go --- */

static void set_up_rereg(struct fn_room *r)
{
	u64 iova = FN_IOVA;

	r->pd_2 = ibt_pd(r->test);
	r->p_2 = ibt_pair(r->test, r->pd_2);
	r->mr = ibt_mr(r->test, ib_reg_phys_mr(r->pd, r->phys, r->nphys, ALL, &iova));
}

/* To the half that it has not, in the PD that it is not in. */
static int run_rereg(struct fn_room *r)
{
	u64 iova = FN_IOVA + (r->turn ? 0 : PG);
	int err;

	err = ib_rereg_phys_mr(r->mr, IB_MR_REREG_TRANS | IB_MR_REREG_PD | IB_MR_REREG_ACCESS,
			       r->turn ? r->pd : r->pd_2, r->phys + !r->turn,
			       r->nphys - !r->turn, r->turn ? ALL : RR, &iova);
	r->turn ^= !err;
	return err;
}

static void rereg_works(struct fn_room *r)
{
	fn_reads(r, r->turn ? r->p_2 : r->p, r->b, r->mr->rkey, r->mr->iova, r->turn ? PG : 0,
		 LEN - (r->turn ? PG : 0));
}

static void before_dereg(struct fn_room *r)
{
	KUNIT_ASSERT_EQ(r->test, run_kernel(r), 0);
	r->key = r->mr->rkey;
}

static int run_dereg(struct fn_room *r)
{
	return ib_mr_dereg(r->mr);
}

static void mr_works(struct fn_room *r)
{
	fn_reads(r, r->p, r->flat, r->mr->rkey, r->mr->iova + 1, 1, PG);
}

static void done_dereg(struct fn_room *r)
{
	fn_dead(r, r->p, r->key, (uintptr_t)r->flat->addr);
}

/* A window was bound and taken back: deregistering exchanges the MR that it had. */
static void set_up_windowed(struct fn_room *r)
{
	ibt_win(&r->w, r->test, IBT_VMALLOC, LEN, ALL | MWB);
}

static void before_windowed(struct fn_room *r)
{
	int tries, err = -ENOMEM;

	r->mr = ib_mr_reg_kernel(r->w.pd, r->w.b->addr, LEN, ALL | MWB, &r->w.base);
	KUNIT_ASSERT_FALSE(r->test, IS_ERR(r->mr));
	swap(r->mr, r->w.mr);
	/* On a queue pair that the last look at a dead key did not break. */
	fn_reads(r, r->w.p, r->w.b, r->w.mr->rkey, r->w.base, 0, 1);
	for (tries = 0; tries < 500 && err == -ENOMEM; tries++)
		err = ibt_bind(&r->w, 0, 100, RR, 0);
	KUNIT_ASSERT_EQ(r->test, err, 0);
	fn_reads(r, r->w.p, r->w.b, r->w.mw->rkey, r->w.base, 0, 100);
	r->key = r->w.mw->rkey;
	KUNIT_ASSERT_EQ(r->test, ibt_bind(&r->w, 0, 0, 0, 0), 0);
	swap(r->mr, r->w.mr);
}

static void done_windowed(struct fn_room *r)
{
	fn_dead(r, r->w.p, r->key, r->w.base);
}

static void made(struct fn_room *r)
{
	u64 iova = FN_IOVA;

	r->mr = ibt_mr(r->test, ib_reg_phys_mr(r->pd, r->phys, r->nphys, ALL, &iova));
	r->key = r->mr->lkey;
}

static int run_query(struct fn_room *r)
{
	struct ib_mr_attr attr;

	return ib_query_mr(r->mr, &attr);
}

static int run_stale(struct fn_room *r)
{
	return ib_mr_is_stale(r->mr);
}

static int run_not_ours(struct fn_room *r)
{
	return ib_mr_not_ours((struct ib_mr *)r, __func__);	/* compared only */
}

static int run_fence(struct fn_room *r)
{
	ib_mr_fence();
	return 0;
}

static int run_check(struct fn_room *r)
{
	return ib_mr_check(r->pd, r->mr->rkey, FN_IOVA, 8, RR, true);
}

static int run_translate(struct fn_room *r)
{
	struct ib_mr_run run[FN_PAGES];
	int n = ib_mr_translate(r->pd, r->mr->lkey, FN_IOVA, LEN, run, ARRAY_SIZE(run));

	return n < 0 ? n : 0;
}

static int run_copy_to(struct fn_room *r)
{
	u8 byte = ibt_pat(r->b->seed, 9);

	return ib_mr_copy_to(r->pd, r->mr->lkey, FN_IOVA + 9, &byte, 1);
}

static int run_copy_from(struct fn_room *r)
{
	u8 bytes[16];

	return ib_mr_copy_from(r->pd, r->mr->lkey, FN_IOVA + 9, bytes, sizeof(bytes));
}

static int run_explain(struct fn_room *r)
{
	char text[160];

	return ib_mr_explain(r->dev, r->pd, r->mr->rkey, FN_IOVA, 8, RR, text, sizeof(text));
}

static int run_invalidated(struct fn_room *r)
{
	return ib_mr_invalidated(r->pd, r->mr->lkey);
}

static const struct fn_row regions[] = {
	{ "ib_get_dma_mr", NULL, F_ALLOC | F_DEVICE, .run = run_dma, .done = done_dma },
	{ "ib_reg_phys_mr", "first of its PD", F_ALLOC | F_DEVICE | F_REGQP,
	  .run = run_phys, .done = done_scattered },
	{ "ib_reg_phys_mr", "beside another", F_ALLOC | F_DEVICE | F_REGQP, .set_up = beside,
	  .run = run_phys, .failed = beside_works, .done = done_beside },
	{ "ib_mr_reg_kernel", NULL, F_ALLOC | F_DEVICE | F_REGQP,
	  .run = run_kernel, .done = done_flat },
	{ "ib_mr_reg_kernel", "bindable", F_ALLOC | F_DEVICE | F_REGQP,
	  .set_up = set_up_large, .run = run_bindable, .done = done_flat },
	{ "ib_mr_reg_sg", NULL, F_ALLOC | F_DEVICE | F_REGQP, .set_up = set_up_sg,
	  .run = run_sg, .done = done_scattered },
	{ "ib_mr_reg_user", NULL, F_ALLOC | F_DEVICE | F_REGQP, .set_up = set_up_user,
	  .run = run_user, .failed = failed_user, .done = done_scattered },
	{ "ib_rereg_phys_mr", NULL, F_ALLOC | F_DEVICE | F_REGQP, .set_up = set_up_rereg,
	  .run = run_rereg, .failed = rereg_works, .done = rereg_works },
	{ "ib_mr_dereg", NULL, F_DEVICE, .before = before_dereg,
	  .run = run_dereg, .failed = mr_works, .done = done_dereg },
	{ "ib_mr_dereg", "a window was bound", F_ALLOC | F_DEVICE | F_REGQP, FN_STOCK,
	  .set_up = set_up_windowed, .before = before_windowed,
	  .run = run_dereg, .done = done_windowed },
	{ "ib_query_mr", .set_up = made, .run = run_query },
	{ "ib_mr_is_stale", .set_up = made, .run = run_stale },
	{ "ib_mr_not_ours", .run = run_not_ours },
	{ "ib_mr_fence", .run = run_fence },
	{ "ib_mr_check", .set_up = made, .run = run_check },
	{ "ib_mr_translate", .set_up = made, .run = run_translate },
	{ "ib_mr_copy_to", .set_up = made, .run = run_copy_to },
	{ "ib_mr_copy_from", .set_up = made, .run = run_copy_from },
	{ "ib_mr_explain", .set_up = made, .run = run_explain },
	{ "ib_mr_invalidated", .set_up = made, .run = run_invalidated },
};

FN_SUITE(regions, regions);

/* --- protection domains --- */

static void set_up_pd(struct fn_room *r)
{
	r->pd_2 = ibt_pd(r->test);
}

static int run_pd_get(struct fn_room *r)
{
	return ib_mr_pd_get(r->pd_2);
}

static void done_pd_get(struct fn_room *r)
{
	ib_mr_pd_put(r->pd_2);
}

static int run_pd_put(struct fn_room *r)
{
	ib_mr_pd_put(r->pd_2);
	return 0;
}

static void before_pd_put(struct fn_room *r)
{
	KUNIT_ASSERT_EQ(r->test, ib_mr_pd_get(r->pd_2), 0);
}

static void before_dealloc_pd(struct fn_room *r)
{
	r->pd_2 = ib_alloc_pd(r->dev, 0);
	KUNIT_ASSERT_FALSE(r->test, IS_ERR(r->pd_2));
}

static int run_dealloc_pd(struct fn_room *r)
{
	return ib_mr_dealloc_pd(r->pd_2);
}

static void pd_works(struct fn_room *r)
{
	swap(r->pd, r->pd_2);
	KUNIT_EXPECT_EQ(r->test, run_kernel(r), 0);
	swap(r->pd, r->pd_2);
	dereg(r);
}

static int run_invariants(struct fn_room *r)
{
	return ib_mr_check_invariants(r->dev) ? 0 : -EINVAL;
}

static int run_reason_name(struct fn_room *r)
{
	return ib_mr_reason_name(IB_MR_WHY_WRAP) ? 0 : -EINVAL;
}

static int run_reason_text(struct fn_room *r)
{
	return ib_mr_reason_text(IB_MR_WHY_WRAP) ? 0 : -EINVAL;
}

static int run_refusals(struct fn_room *r)
{
	ib_mr_refusals(r->dev, IB_MR_WHY_WRAP);
	return 0;
}

/* --- what classic sources call --- */

static void no_completion(struct ib_cq *cq, void *context)
{
}

static int run_create_cq(struct fn_room *r)
{
	const struct ib_cq_init_attr attr = { .cqe = 4 };

	r->cq = ib_mr_create_cq(r->dev, no_completion, NULL, NULL, &attr, KBUILD_MODNAME);
	return PTR_ERR_OR_ZERO(r->cq);
}

static int run_destroy_cq(struct fn_room *r)
{
	return ib_mr_destroy_cq(r->cq);
}

static void done_create_cq(struct fn_room *r)
{
	KUNIT_EXPECT_EQ(r->test, run_destroy_cq(r), 0);
}

static void before_destroy_cq(struct fn_room *r)
{
	KUNIT_ASSERT_EQ(r->test, run_create_cq(r), 0);
}

static int run_max_fmr(struct fn_room *r)
{
	return ib_mr_max_fmr(r->dev) > 0 ? 0 : -ENOSYS;
}

/* --- arenas --- */

static int run_arena(struct fn_room *r)
{
	r->arena = ib_mr_arena_create(r->pd, LEN, ALL, 0);
	return PTR_ERR_OR_ZERO(r->arena);
}

/* A slice is read by a peer. */
static void arena_works(struct fn_room *r)
{
	struct ib_mr_slice s;
	size_t i;

	KUNIT_ASSERT_EQ(r->test, ib_mr_arena_alloc(r->arena, 500, &s), 0);
	for (i = 0; i < s.size; i++)
		((u8 *)s.va)[i] = ibt_pat(r->b->seed, i);
	fn_reads(r, r->p, r->b, s.rkey, s.iova, 0, s.size);
	KUNIT_EXPECT_EQ(r->test, ib_mr_arena_free(r->arena, &s), 0);
}

static void done_arena(struct fn_room *r)
{
	arena_works(r);
	KUNIT_EXPECT_EQ(r->test, ib_mr_arena_destroy(r->arena), 0);
}

static void before_arena(struct fn_room *r)
{
	KUNIT_ASSERT_EQ(r->test, run_arena(r), 0);
}

static int run_arena_destroy(struct fn_room *r)
{
	return ib_mr_arena_destroy(r->arena);
}

static int run_slice(struct fn_room *r)
{
	return ib_mr_arena_alloc(r->arena, 100, &r->slice);
}

static int run_aligned(struct fn_room *r)
{
	return ib_mr_arena_alloc_aligned(r->arena, 100, 1024, &r->slice);
}

static int run_slice_free(struct fn_room *r)
{
	return ib_mr_arena_free(r->arena, &r->slice);
}

static void before_slice(struct fn_room *r)
{
	before_arena(r);
	KUNIT_ASSERT_EQ(r->test, run_slice(r), 0);
}

static void done_slice(struct fn_room *r)
{
	KUNIT_EXPECT_EQ(r->test, ib_mr_arena_free(r->arena, &r->slice), 0);
	done_arena(r);
}

static int run_usage(struct fn_room *r)
{
	struct ib_mr_arena_usage usage;

	ib_mr_arena_usage(r->arena, &usage);
	return 0;
}

static int run_arena_mr(struct fn_room *r)
{
	return ib_mr_arena_mr(r->arena) ? 0 : -EINVAL;
}

/* --- scopes --- */

static int run_scope(struct fn_room *r)
{
	r->scope = ib_mr_scope_create(r->pd);
	return PTR_ERR_OR_ZERO(r->scope);
}

static void done_scope(struct fn_room *r)
{
	KUNIT_EXPECT_EQ(r->test, ib_mr_scope_release(r->scope), 0);
}

static void before_scope(struct fn_room *r)
{
	KUNIT_ASSERT_EQ(r->test, run_scope(r), 0);
}

static int release_nothing(void *object)
{
	return 0;
}

static int run_scope_add(struct fn_room *r)
{
	return ib_mr_scope_add(r->scope, IB_MR_SCOPE_LAST, release_nothing, r);
}

/* The region that is made for it is gone when it cannot be added. */
static int run_scope_mr(struct fn_room *r)
{
	return take_mr(r, ib_mr_scope_mr(r->scope, ib_mr_reg_kernel(r->pd, r->flat->addr, LEN, ALL,
								    NULL)));
}

static int run_scope_arena(struct fn_room *r)
{
	r->arena = ib_mr_scope_arena(r->scope, ib_mr_arena_create(r->pd, LEN, ALL, 0));
	return PTR_ERR_OR_ZERO(r->arena);
}

static void done_scope_mr(struct fn_room *r)
{
	mr_works(r);
	done_scope(r);
}

static void done_scope_arena(struct fn_room *r)
{
	arena_works(r);
	done_scope(r);
}

static void before_scope_mr(struct fn_room *r)
{
	before_scope(r);
	KUNIT_ASSERT_EQ(r->test, run_scope_mr(r), 0);
	r->key = r->mr->rkey;
}

static int run_scope_drop(struct fn_room *r)
{
	return ib_mr_scope_drop(r->scope, r->mr);
}

static int run_scope_forget(struct fn_room *r)
{
	return ib_mr_scope_forget(r->scope, r->mr);
}

static void done_scope_forget(struct fn_room *r)
{
	mr_works(r);
	dereg(r);
	done_scope(r);
}

static int run_scope_release(struct fn_room *r)
{
	return ib_mr_scope_release(r->scope);
}

static const struct fn_row others[] = {
	{ "ib_mr_pd_get", NULL, F_ALLOC, .set_up = set_up_pd,
	  .run = run_pd_get, .done = done_pd_get },
	{ "ib_mr_pd_put", .set_up = set_up_pd, .before = before_pd_put, .run = run_pd_put },
	{ "ib_mr_dealloc_pd", NULL, F_DEVICE, .before = before_dealloc_pd,
	  .run = run_dealloc_pd, .failed = pd_works },
	{ "ib_mr_check_invariants", .run = run_invariants },
	{ "ib_mr_reason_name", .run = run_reason_name },
	{ "ib_mr_reason_text", .run = run_reason_text },
	{ "ib_mr_refusals", .run = run_refusals },
	{ "ib_mr_create_cq", NULL, F_ALLOC | F_DEVICE,
	  .run = run_create_cq, .done = done_create_cq },
	{ "ib_mr_destroy_cq", .before = before_destroy_cq, .run = run_destroy_cq },
	{ "ib_mr_max_fmr", .run = run_max_fmr },
	{ "ib_mr_arena_create", NULL, F_ALLOC | F_DEVICE | F_REGQP,
	  .run = run_arena, .done = done_arena },
	{ "ib_mr_arena_destroy", NULL, F_DEVICE, .before = before_arena,
	  .run = run_arena_destroy, .failed = arena_works },
	{ "ib_mr_arena_alloc", NULL, F_ALLOC, .before = before_arena,
	  .run = run_slice, .failed = arena_works, .done = done_slice },
	{ "ib_mr_arena_alloc_aligned", NULL, F_ALLOC, .before = before_arena,
	  .run = run_aligned, .failed = arena_works, .done = done_slice },
	{ "ib_mr_arena_free", .before = before_slice, .run = run_slice_free, .done = done_arena },
	{ "ib_mr_arena_usage", .before = before_arena, .run = run_usage, .done = done_arena },
	{ "ib_mr_arena_mr", .before = before_arena, .run = run_arena_mr, .done = done_arena },
	{ "ib_mr_scope_create", NULL, F_ALLOC, .run = run_scope, .done = done_scope },
	{ "ib_mr_scope_add", NULL, F_ALLOC, .before = before_scope,
	  .run = run_scope_add, .done = done_scope },
	{ "ib_mr_scope_mr", NULL, F_ALLOC | F_DEVICE | F_REGQP, .before = before_scope,
	  .run = run_scope_mr, .done = done_scope_mr },
	{ "ib_mr_scope_arena", NULL, F_ALLOC | F_DEVICE | F_REGQP, .before = before_scope,
	  .run = run_scope_arena, .done = done_scope_arena },
	{ "ib_mr_scope_drop", NULL, F_DEVICE, .before = before_scope_mr,
	  .run = run_scope_drop, .failed = mr_works, .done = done_scope },
	{ "ib_mr_scope_forget", .before = before_scope_mr,
	  .run = run_scope_forget, .done = done_scope_forget },
	{ "ib_mr_scope_release", NULL, F_DEVICE, .before = before_scope_mr,
	  .run = run_scope_release, .failed = mr_works, .done = done_dereg },
};

FN_SUITE(others, others);

#endif /* CONFIG_IB_MR_DEBUG */
