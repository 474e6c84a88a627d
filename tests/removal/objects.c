// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * One of everything: made, proved, used, asked when it is old, and released.
 *
 * Calls may be cut short by the device's removal, and then answer -ENODEV and nothing else; what
 * was made before is released all the same, and a release always succeeds.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kthread.h>
#include <linux/slab.h>

#include "removal.h"

#define RR	IB_ACCESS_REMOTE_READ

/* What a thread's call may answer: a stock that is empty at this moment is no fault. */
static bool answered(const char *call, long err)
{
	atomic_inc(&removal_calls);
	if (err == -ENODEV)
		atomic_inc(&removal_gone);
	else if (err && err != -EAGAIN && err != -ENOMEM)
		wrong(call, err);
	return !err;
}

#define made(p)	answered(#p, PTR_ERR_OR_ZERO(p))

static struct ib_fmr *alloc_fmr(struct ib_pd *pd)
{
	struct ib_fmr_attr attr = {
		.max_pages = PAGES, .max_maps = 30000, .page_shift = PAGE_SHIFT,
	};

	return ib_alloc_fmr(pd, ALL, &attr);
}

static int unmap_fmr(struct ib_fmr *fmr)
{
	LIST_HEAD(list);
	int err;

	list_add(&fmr->list, &list);
	err = ib_unmap_fmr(&list);
	list_del_init(&fmr->list);
	return err;
}

static struct ib_fmr_pool *create_pool(struct ib_pd *pd, bool cache)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = PAGES, .page_shift = PAGE_SHIFT, .access = ALL,
		.pool_size = 8, .dirty_watermark = 4, .cache = cache,
	};

	return ib_create_fmr_pool(pd, &param);
}

static int bind(struct set *s, struct ib_mw *mw, u64 length)
{
	struct ib_mw_bind bind = {
		.bind_info = {
			.mr = s->phys, .addr = s->phys->iova, .length = length,
			.mw_access_flags = RR,
		},
	};

	return ib_bind_mw(s->pair.qp, mw, &bind);
}

static struct ib_mr *reg_phys(struct set *s)
{
	struct ib_phys_buf buf[PAGES];
	u64 iova = 0x7000000000ULL;
	int i;

	for (i = 0; i < PAGES; i++)
		buf[i] = (struct ib_phys_buf){ .addr = s->list[i], .size = PAGE_SIZE };
	return ib_reg_phys_mr(s->pd, buf, PAGES, ALL | IB_ACCESS_MW_BIND, &iova);
}

static bool got(const void *object, int *err)
{
	*err = PTR_ERR_OR_ZERO(object);
	return !*err;
}

/* Gives up at the first that fails; what was made is released by who ends the set. */
int objects_make(struct set *s)
{
	struct ib_mr *mr;
	int err;

	s->kernel = ib_mr_reg_kernel(s->pd, s->mem, SIZE, ALL, NULL);
	if (!got(s->kernel, &err))
		return err;
	s->phys = reg_phys(s);
	if (!got(s->phys, &err))
		return err;
	s->user = ib_mr_reg_user(s->pd, s->at, SIZE, ALL, NULL);
	if (!got(s->user, &err))
		return err;
	s->dma = ib_get_dma_mr(s->pd, ALL);
	if (!got(s->dma, &err))
		return err;
	s->fmr = alloc_fmr(s->pd);
	if (!got(s->fmr, &err))
		return err;
	err = ib_map_phys_fmr(s->fmr, s->list, PAGES, 0);
	if (err)
		return err;
	s->pool = create_pool(s->pd, true);
	if (!got(s->pool, &err))
		return err;
	s->pf = ib_fmr_pool_map_phys(s->pool, s->list, PAGES, 0);
	if (!got(s->pf, &err))
		return err;
	s->mw = ib_alloc_mw(s->pd, IB_MW_TYPE_1);
	if (!got(s->mw, &err))
		return err;
	err = bind(s, s->mw, PAGE_SIZE);
	if (err)
		return err;
	s->scope = ib_mr_scope_create(s->pd);
	if (!got(s->scope, &err))
		return err;
	mr = ib_mr_scope_mr(s->scope, ib_mr_reg_kernel(s->pd, s->mem, SIZE, RR, NULL));
	if (!got(mr, &err))
		return err;
	s->arena = ib_mr_arena_create(s->pd, SIZE, ALL, 0);
	if (!got(s->arena, &err))
		return err;
	return ib_mr_arena_alloc(s->arena, 100, &s->slice);
}

static int reads(struct pair *p, const char *what, u32 key, u64 iova)
{
	enum ib_wc_status status = pair_read(p, key, iova, PAGE_SIZE);

	/* An address that changed a moment ago: whoever asked asks again. */
	if (status != IB_WC_SUCCESS) {
		pr_info("a READ of %s: %s\n", what, ib_wc_status_msg(status));
		return -EIO;
	}
	if (memchr_inv(p->buf, 1, PAGE_SIZE))
		wrong(what, 0);
	return 0;
}

/* Old keys, and new ones: a region, an FMR and a window that are made now. */
int objects_check(struct set *s, struct pair *p)
{
	struct ib_mr *mr;
	int err;

	err = reads(p, "kernel", s->kernel->rkey, s->kernel->iova) ?:
	      reads(p, "phys", s->phys->rkey, s->phys->iova) ?:
	      reads(p, "user", s->user->rkey, s->user->iova) ?:
	      reads(p, "dma", s->dma->rkey, s->list[0]) ?:
	      reads(p, "fmr", s->fmr->rkey, 0) ?:
	      reads(p, "pool", s->pf->fmr->rkey, 0) ?:
	      reads(p, "window", s->mw->rkey, s->phys->iova);
	if (err)
		return err;
	mr = ib_mr_reg_kernel(s->pd, s->mem, SIZE, ALL, NULL);
	if (IS_ERR(mr)) {
		wrong("registering", PTR_ERR(mr));
		return PTR_ERR(mr);
	}
	err = reads(p, "a new region", mr->rkey, mr->iova);
	if (ib_dereg_mr(mr))
		wrong("deregistering", 0);
	return err;
}

/* --- one call, or a few that belong together, of a thread's --- */

static void churn_region(struct set *s, u32 random)
{
	struct ib_mr_attr attr;
	struct ib_mr *mr;

	mr = random & 1 ? reg_phys(s) : ib_mr_reg_kernel(s->pd, s->mem, SIZE, ALL, NULL);
	if (!made(mr))
		return;
	if (random & 2)
		answered("rereg",
			 ib_rereg_phys_mr(mr, IB_MR_REREG_ACCESS, NULL, NULL, 0, RR, NULL));
	answered("query", ib_query_mr(mr, &attr));
	if (ib_dereg_mr(mr))
		wrong("ib_dereg_mr", 0);
}

static void churn_user(struct set *s)
{
	struct ib_mr *mr;

	if (!mmget_not_zero(s->mm))
		return;
	kthread_use_mm(s->mm);
	mr = ib_mr_reg_user(s->pd, s->at, SIZE, ALL, NULL);
	kthread_unuse_mm(s->mm);
	mmput(s->mm);
	if (made(mr) && ib_dereg_mr(mr))
		wrong("ib_dereg_mr of user memory", 0);
}

static void churn_fmr(struct set *s, u32 random)
{
	struct ib_fmr *fmr = alloc_fmr(s->pd);

	if (!made(fmr))
		return;
	answered("map", ib_map_phys_fmr(fmr, s->list, PAGES, 0));
	if (random & 1)
		answered("map again", ib_map_phys_fmr(fmr, s->list + 1, 1, 0));
	if (unmap_fmr(fmr))
		wrong("ib_unmap_fmr", 0);
	if (ib_dealloc_fmr(fmr))
		wrong("ib_dealloc_fmr", 0);
}

static void churn_pool(struct set *s, u32 random)
{
	struct ib_fmr_pool *pool = create_pool(s->pd, random & 1);
	struct ib_pool_fmr *pf[4];
	int i, n = 0;

	if (!made(pool))
		return;
	for (i = 0; i < ARRAY_SIZE(pf); i++) {
		pf[n] = ib_fmr_pool_map_phys(pool, s->list + i % 2, 1 + i % 2, 0);
		n += made(pf[n]);
	}
	while (n)
		if (ib_fmr_pool_unmap(pf[--n]))
			wrong("ib_fmr_pool_unmap", 0);
	if (random & 2 && ib_flush_fmr_pool(pool))
		wrong("ib_flush_fmr_pool", 0);
	ib_destroy_fmr_pool(pool);
}

/* The set's own pool, that both threads and the peer use. */
static void churn_shared_pool(struct set *s, u32 random)
{
	struct ib_pool_fmr *pf = ib_fmr_pool_map_phys(s->pool, s->list + random % 2, 1 + random % 2,
						      0);

	if (made(pf) && ib_fmr_pool_unmap(pf))
		wrong("ib_fmr_pool_unmap", 0);
}

static void churn_window(struct set *s, u32 random)
{
	struct ib_mw *mw = ib_alloc_mw(s->pd, IB_MW_TYPE_1);
	int err;

	if (!made(mw))
		return;
	/* The queue pair breaks when the address goes: then, and only then, is it not ready. */
	err = bind(s, mw, 1 + random % SIZE);
	if (err != -EINVAL)
		answered("bind", err);
	if (ib_dealloc_mw(mw))
		wrong("ib_dealloc_mw", 0);
}

static void churn_arena(struct set *s, u32 random)
{
	struct ib_mr_scope *scope = ib_mr_scope_create(s->pd);
	struct ib_mr_arena *arena;
	struct ib_mr_slice slice;

	if (!made(scope))
		return;
	arena = ib_mr_scope_arena(scope, ib_mr_arena_create(s->pd, SIZE, ALL, 0));
	if (made(arena) && answered("slice", ib_mr_arena_alloc(arena, 1 + random % 500, &slice)))
		answered("free", ib_mr_arena_free(arena, &slice));
	if (ib_mr_scope_release(scope))
		wrong("ib_mr_scope_release", 0);
}

static void churn_look(struct set *s)
{
	char text[200];

	ib_mr_check(s->pd, s->kernel->rkey, s->kernel->iova, 8, RR, true);
	ib_mr_explain(s->dev, s->pd, s->phys->rkey, s->phys->iova, 8, RR, text, sizeof(text));
	ib_mr_check_invariants(s->dev);
}

void objects_churn(struct set *s, u32 random)
{
	u32 rest = random / 9;

	switch (random % 9) {
	case 0: return churn_region(s, rest);
	case 1: return churn_user(s);
	case 2: return churn_fmr(s, rest);
	case 3: return churn_pool(s, rest);
	case 4: return churn_shared_pool(s, rest);
	case 5: return churn_window(s, rest);
	case 6: return churn_arena(s, rest);
	case 7: return mm_churn(s, rest, answered);
	default: return churn_look(s);
	}
}

/* --- the end --- */

static void expect(const char *call, long err, long want)
{
	if (err == want || (!want && err == -EAGAIN))
		return;
	pr_err("%s: %ld, not %ld\n", call, err, want);
	wrong(call, err);
}

/* Handles of a whole set: when ib_mr was told of the device's end, each says so. */
void objects_old(struct set *s)
{
	long want = removal_late && s->gone ? -ENODEV : 0;
	struct ib_mr_attr attr;
	struct ib_pool_fmr *pf;
	struct ib_mr *mr;

	expect("query", ib_query_mr(s->kernel, &attr), want);
	expect("query of user memory", ib_query_mr(s->user, &attr), want);
	expect("query of a DMA MR", ib_query_mr(s->dma, &attr), want);
	expect("rereg", ib_rereg_phys_mr(s->kernel, IB_MR_REREG_ACCESS, NULL, NULL, 0, ALL, NULL),
	       want);
	expect("map of an FMR", ib_map_phys_fmr(s->fmr, s->list, PAGES, 0), want);
	pf = ib_fmr_pool_map_phys(s->pool, s->list + 1, 1, 0);
	expect("map of a pool", PTR_ERR_OR_ZERO(pf), want);
	if (!IS_ERR(pf))
		expect("unmap of a pool", ib_fmr_pool_unmap(pf), 0);
	mr = ib_mr_reg_kernel(s->pd, s->mem, SIZE, ALL, NULL);
	expect("registering", PTR_ERR_OR_ZERO(mr), want);
	if (!IS_ERR(mr))
		expect("deregistering", ib_dereg_mr(mr), 0);
	if (want) {
		expect("bind", bind(s, s->mw, PAGE_SIZE), want);
		expect("pd_get", ib_mr_pd_get(s->pd), want);
		expect("FMR", PTR_ERR_OR_ZERO(alloc_fmr(s->pd)), want);
		expect("pool", PTR_ERR_OR_ZERO(create_pool(s->pd, false)), want);
		expect("window", PTR_ERR_OR_ZERO(ib_alloc_mw(s->pd, IB_MW_TYPE_1)), want);
		expect("DMA MR", PTR_ERR_OR_ZERO(ib_get_dma_mr(s->pd, ALL)), want);
		expect("scope", PTR_ERR_OR_ZERO(ib_mr_scope_create(s->pd)), want);
		expect("invalidated", ib_mr_invalidated(s->pd, s->kernel->lkey), want);
		expect("check", ib_mr_check(s->pd, s->kernel->rkey, s->kernel->iova, 8, RR, true),
		       IB_MR_WHY_NO_DEVICE);
	}
}

static bool there(const void *p)
{
	return !IS_ERR_OR_NULL(p);
}

static void release_windows(struct set *s)
{
	if (there(s->mw))
		expect("ib_dealloc_mw", ib_dealloc_mw(s->mw), 0);
	if (there(s->pf))
		expect("ib_fmr_pool_unmap", ib_fmr_pool_unmap(s->pf), 0);
	if (there(s->pool)) {
		expect("ib_flush_fmr_pool", ib_flush_fmr_pool(s->pool), 0);
		ib_destroy_fmr_pool(s->pool);
	}
	if (there(s->fmr)) {
		expect("ib_unmap_fmr", unmap_fmr(s->fmr), 0);
		expect("ib_dealloc_fmr", ib_dealloc_fmr(s->fmr), 0);
	}
}

static void release_regions(struct set *s)
{
	struct ib_mr **mr[] = { &s->kernel, &s->phys, &s->user, &s->dma };
	unsigned int i;

	if (s->slice.va)
		expect("ib_mr_arena_free", ib_mr_arena_free(s->arena, &s->slice), 0);
	if (there(s->arena))
		expect("ib_mr_arena_destroy", ib_mr_arena_destroy(s->arena), 0);
	if (there(s->scope))
		expect("ib_mr_scope_release", ib_mr_scope_release(s->scope), 0);
	for (i = 0; i < ARRAY_SIZE(mr); i++) {
		if (!there(*mr[i]))
			continue;
		expect("ib_dereg_mr", ib_dereg_mr(*mr[i]), 0);
		expect("ib_dereg_mr again", ib_dereg_mr(*mr[i]), -EINVAL);
	}
}

/*
 * The queue pairs are gone. When ib_mr has let go of the device, the protection domain can go
 * before the handles do, which then must not look at it any more.
 */
void objects_release(struct set *s)
{
	bool pd_first = removal_late && s->gone && s->seed & 1;

	if (s->slice.va)
		objects_old(s);
	if (pd_first && there(s->pd))
		expect("ib_dealloc_pd", ib_dealloc_pd(s->pd), 0);
	release_windows(s);
	release_regions(s);
	if (!pd_first && there(s->pd))
		expect("ib_dealloc_pd", ib_dealloc_pd(s->pd), 0);
}
