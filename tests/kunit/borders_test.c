// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * At the borders with mm, the device core and the network: which locks a ULP may hold when it calls
 * (the table is in the essay of base/device.c).
 *
 * Each case makes the calls in earnest with the lock held, so that lockdep, where the kernel has
 * it, sees the order, and a call that waits for what the caller holds back hangs the case. A
 * notifier that deregisters is a real one, on a real process that unmaps.
 */
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/mm.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/pagemap.h>
#include <linux/rtnetlink.h>
#include <linux/sched/mm.h>
#include <rdma/ib_fmr_pool.h>

#include "base/compat.h"
#include "base/core.h"
#include "base/late.h"
#include "fmr_helpers.h"
#include "proc.h"
#include "see/left.h"
#include "window.h"

#define ALL	(LW | RR | RW | RA)
#define PROT_RW	(PROT_READ | PROT_WRITE)

/* --- a ULP's own notifier, as a cache of registrations has one --- */

enum how { DEREG, DEREG_HELD, SCOPE, WAIT_FOR_LOCK };

struct cache {
	struct mmu_notifier mn;
	enum how how;
	struct ib_mr *mr;
	struct ib_mr_scope *scope;
	int err;		/* 1 while it was not called */
	struct mutex lock;	/* WAIT_FOR_LOCK: the notifier and the ULP's other calls take it */
	struct completion in;
};

static int cache_invalidate(struct mmu_notifier *mn, const struct mmu_notifier_range *range)
{
	struct cache *c = container_of(mn, struct cache, mn);

	if (range->event != MMU_NOTIFY_UNMAP || !mmu_notifier_range_blockable(range) ||
	    c->err != 1)
		return 0;
	switch (c->how) {
	case DEREG:
	case DEREG_HELD:
		c->err = ib_dereg_mr(c->mr);
		break;
	case SCOPE:
		c->err = ib_mr_scope_release(c->scope);
		break;
	case WAIT_FOR_LOCK:
		c->err = 0;
		complete(&c->in);
		mutex_lock(&c->lock);
		mutex_unlock(&c->lock);
		break;
	}
	return 0;
}

static const struct mmu_notifier_ops cache_ops = {
	.invalidate_range_start = cache_invalidate,
};

static void cache_end(struct kunit *test, void *arg)
{
	struct cache *c = arg;

	mmu_notifier_unregister(&c->mn, c->mn.mm);
	kfree(c);
}

static struct cache *cache(struct ibt_proc *p, enum how how)
{
	struct cache *c = kzalloc(sizeof(*c), GFP_KERNEL);
	int err = -ESRCH;

	KUNIT_ASSERT_NOT_NULL(p->test, c);
	c->mn.ops = &cache_ops;
	c->how = how;
	c->err = 1;
	mutex_init(&c->lock);
	init_completion(&c->in);
	if (ibt_proc_in(p)) {
		err = mmu_notifier_register(&c->mn, p->mm);
		ibt_proc_out(p);
	}
	if (err)
		kfree(c);
	KUNIT_ASSERT_EQ(p->test, err, 0);
	ibt_defer(p->test, cache_end, c);
	return c;
}

/* Dead at the device, unpinned and not accounted any more as soon as munmap() has returned. */
static void dereg_in_notifier(struct kunit *test)
{
	static const enum how hows[] = { DEREG, DEREG_HELD, SCOPE };
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *pair = ibt_pair(test, pd);
	struct ibt_proc *p = ibt_proc(test, NULL);
	unsigned long at;
	struct cache *c;
	u32 rkey;
	int i;

	for (i = 0; i < ARRAY_SIZE(hows); i++) {
		at = ibt_user_map(p, SZ_64K, PROT_RW);
		ibt_poke_pattern(p, at, SZ_64K, i);
		c = cache(p, hows[i]);
		if (hows[i] == DEREG_HELD)	/* so that the queue pair stays */
			KUNIT_EXPECT_EQ(test, ib_mr_pd_get(pd), 0);
		if (hows[i] == SCOPE)
			c->scope = ib_mr_scope_create(pd);
		c->mr = ibt_reg_user(p, pd, at, SZ_64K, ALL, NULL);
		KUNIT_ASSERT_FALSE(test, IS_ERR(c->mr));
		if (hows[i] == SCOPE)
			KUNIT_EXPECT_PTR_EQ(test, ib_mr_scope_mr(c->scope, c->mr), c->mr);
		rkey = c->mr->rkey;
		KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_READ, pair->req.buf, rkey, at, SZ_64K),
				IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, ibt_user_unmap(p, at, SZ_64K), 0);
		KUNIT_EXPECT_EQ_MSG(test, c->err, 0, "round %d", i);
		KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_READ, pair->req.buf, rkey, at, 8),
				IB_WC_REM_ACCESS_ERR);
		KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)0);
		if (hows[i] == DEREG_HELD)
			ib_mr_pd_put(pd);
		KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(ibt_dev(test)));
	}
}

struct two {
	struct ibt_proc *p;
	struct cache *c;
	unsigned long at;
};

/* One unmaps, and its notifier waits for a lock; the other deregisters with that lock held. */
static int two_sides(void *arg, int side)
{
	struct two *t = arg;
	int err;

	if (!side)
		return ibt_user_unmap(t->p, t->at, SZ_64K);
	mutex_lock(&t->c->lock);
	err = wait_for_completion_timeout(&t->c->in, 60 * HZ) ? 0 : -ETIMEDOUT;
	if (!err)
		err = ib_dereg_mr(t->c->mr);
	mutex_unlock(&t->c->lock);
	return err;
}

static void dereg_with_notifiers_lock(struct kunit *test)
{
	struct ibt_proc *p = ibt_proc(test, NULL);
	struct two t = { .p = p, .at = ibt_user_map(p, SZ_64K, PROT_RW) };

	ibt_poke_pattern(p, t.at, SZ_64K, 1);
	t.c = cache(p, WAIT_FOR_LOCK);
	t.c->mr = ibt_reg_user(p, ibt_pd(test), t.at, SZ_64K, ALL, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(t.c->mr));
	ibt_parallel(test, 2, two_sides, &t);
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)0);
}

/* Whoever unmaps for the sake of memory has the page locked, and its notifier may deregister. */
static void dereg_with_page_locked(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *pair = ibt_pair(test, pd);
	struct ibt_proc *p = ibt_proc(test, NULL);
	unsigned long at = ibt_user_map(p, SZ_16K, PROT_RW);
	struct ib_mr_run run[4];
	struct folio *folio;
	struct ib_mr *mr;
	u32 rkey;

	ibt_poke_pattern(p, at, SZ_16K, 1);
	mr = ibt_mr(test, ibt_reg_user(p, pd, at, SZ_16K, ALL, NULL));
	rkey = mr->rkey;
	KUNIT_ASSERT_GT(test, ib_mr_translate(pd, mr->lkey, at, SZ_16K, run, 4), 0);
	folio = page_folio(virt_to_page((void *)run[0].addr));
	folio_get(folio);
	folio_lock(folio);
	KUNIT_EXPECT_FALSE(test, folio_test_dirty(folio));
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_WRITE, pair->req.buf, rkey, at, 8),
			IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_TRUE(test, folio_maybe_dma_pinned(folio));
	folio_unlock(folio);
	ibmr_late_settle();
	KUNIT_EXPECT_FALSE(test, folio_maybe_dma_pinned(folio));
	KUNIT_EXPECT_TRUE(test, folio_test_dirty(folio));	/* the peer may have written */
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)0);
	folio_put(folio);
}

/* While one re-registers, another deregisters: either may win, and nothing is left or lost. */
struct contest {
	struct ib_mr *mr;
	int go;
};

static int contest_side(void *arg, int side)
{
	struct contest *c = arg;
	int err;

	if (side) {
		err = ib_dereg_mr(c->mr);
		return err;
	}
	err = ib_rereg_phys_mr(c->mr, IB_MR_REREG_ACCESS, NULL, NULL, 0, c->go & 1 ? RR : ALL,
			       NULL);
	return err == -EINVAL ? 0 : err;	/* too late */
}

static void dereg_beside_rereg(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, SZ_16K, 1);
	struct contest c;

	for (c.go = 0; c.go < 20; c.go++) {
		c.mr = ib_mr_reg_kernel(pd, b->addr, SZ_16K, ALL, NULL);
		KUNIT_ASSERT_FALSE(test, IS_ERR(c.mr));
		ibt_parallel(test, 2, contest_side, &c);
		KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(ibt_dev(test)));
	}
}

/* --- locks that a ULP holds --- */

enum lock { NONE, MMAP, RECLAIM, RTNL, DEVICE, PAGE };

static const struct lock_row {
	const char *desc;
	enum lock lock;
} lock_table[] = {
	{ "no lock", NONE },
	{ "mmap_lock", MMAP },
	{ "while memory is reclaimed", RECLAIM },
	{ "RTNL", RTNL },
	{ "device_lock of the RDMA device", DEVICE },
	{ "a page's lock", PAGE },
};

static void lock_desc(const struct lock_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(lock, lock_table, lock_desc);

struct held {
	struct kunit *test;
	struct ibt_proc *p;
	struct page *page;
};

static void take(struct held *h, enum lock lock)
{
	switch (lock) {
	case MMAP:
		mmap_write_lock(h->p->mm);
		break;
	case RECLAIM:
#ifdef CONFIG_LOCKDEP
		fs_reclaim_acquire(GFP_KERNEL);
#endif
		break;
	case RTNL:
		rtnl_lock();
		break;
	case DEVICE:
		device_lock(&ibt_dev(h->test)->dev);
		break;
	case PAGE:
		lock_page(h->page);
		break;
	default:
		break;
	}
}

static void give(struct held *h, enum lock lock)
{
	switch (lock) {
	case MMAP:
		mmap_write_unlock(h->p->mm);
		break;
	case RECLAIM:
#ifdef CONFIG_LOCKDEP
		fs_reclaim_release(GFP_KERNEL);
#endif
		break;
	case RTNL:
		rtnl_unlock();
		break;
	case DEVICE:
		device_unlock(&ibt_dev(h->test)->dev);
		break;
	case PAGE:
		unlock_page(h->page);
		break;
	default:
		break;
	}
}

/* Regions: made, asked, changed, ended, with the PD's first and last object among them. */
static void calls_of_regions(struct kunit *test, struct ib_pd *pd, struct ibt_buf *b,
			     struct ib_phys_buf *phys, int n)
{
	u64 iova = 0x123000;
	struct ib_mr_attr attr;
	struct ib_mr *mr;

	mr = ib_mr_reg_kernel(pd, b->addr, b->size, ALL, NULL);
	KUNIT_EXPECT_FALSE(test, IS_ERR(mr));
	if (IS_ERR(mr))
		return;
	KUNIT_EXPECT_EQ(test, ib_query_mr(mr, &attr), 0);
	KUNIT_EXPECT_EQ(test, ib_rereg_phys_mr(mr, IB_MR_REREG_TRANS | IB_MR_REREG_ACCESS, NULL,
					       phys, n, LW | RR, &iova), 0);
	KUNIT_EXPECT_EQ(test, ib_dereg_mr(mr), 0);
	mr = ib_get_dma_mr(pd, LW);
	KUNIT_EXPECT_FALSE(test, IS_ERR(mr));
	if (!IS_ERR(mr))
		KUNIT_EXPECT_EQ(test, ib_dereg_mr(mr), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_pd_get(pd), 0);
	mr = ib_reg_phys_mr(pd, phys, n, ALL, &iova);
	KUNIT_EXPECT_FALSE(test, IS_ERR(mr));
	if (!IS_ERR(mr))
		KUNIT_EXPECT_EQ(test, ib_dereg_mr(mr), 0);
	ib_mr_pd_put(pd);
}

static void calls_of_fmrs(struct kunit *test, struct ib_fmr *fmr, struct ib_fmr_pool *pool,
			  u64 *pages)
{
	struct ib_pool_fmr *mapped;
	LIST_HEAD(list);

	KUNIT_EXPECT_EQ(test, ib_map_phys_fmr(fmr, pages, 2, SZ_1M), 0);
	list_add(&fmr->list, &list);
	KUNIT_EXPECT_EQ(test, ib_unmap_fmr(&list), 0);
	list_del_init(&fmr->list);
	mapped = ib_fmr_pool_map_phys(pool, pages, 2, SZ_1M);
	KUNIT_EXPECT_FALSE(test, IS_ERR(mapped));
	if (!IS_ERR(mapped))
		KUNIT_EXPECT_EQ(test, ib_fmr_pool_unmap(mapped), 0);
	KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(pool), 0);
}

static void calls_with_lock(struct kunit *test)
{
	const struct lock_row *row = test->param_value;
	struct ib_pd *pd = ibt_pd(test), *fresh = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, SZ_16K, 1);
	struct held h = { .test = test };
	u64 *pages = ibt_page_list(test, b);
	struct ib_fmr_pool *pool;
	struct ib_fmr *fmr;
	int n;
	struct ib_phys_buf *phys = ibt_phys(test, b, 0, b->size, &n);

	h.p = ibt_proc(test, NULL);
	h.page = virt_to_page(b->addr);
	fmr = ibt_fmr(test, pd, ALL, 16, 1);
	pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){ .pool_size = 4 });

	take(&h, row->lock);
	calls_of_regions(test, fresh, b, phys, n);
	calls_of_fmrs(test, fmr, pool, pages);
	give(&h, row->lock);
	KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(ibt_dev(test)));
}

/* --- what a ULP left behind --- */

static struct ibmr_pd *state_of(struct ibmr_dev *dev, struct ib_pd *pd)
{
	struct ibmr_pd *ipd, *found = NULL;
	int bkt;

	mutex_lock(&dev->pd_lock);
	hash_for_each(dev->pds, bkt, ipd, node)
		if (ipd->pd == pd)
			found = ipd;
	mutex_unlock(&dev->pd_lock);
	return found;
}

static void left_in_words(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibmr_dev *dev = ibmr_dev_get(ibt_dev(test));
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, SZ_16K, 1);
	u64 *pages = ibt_page_list(test, b);
	struct ib_fmr_pool *pool;
	struct ib_pool_fmr *fmr;
	struct ibmr_pd *ipd;
	char text[160];

	KUNIT_ASSERT_NOT_NULL(test, dev);
	ibmr_dev_put(dev);
	KUNIT_ASSERT_EQ(test, ib_mr_pd_get(pd), 0);
	ipd = state_of(dev, pd);
	KUNIT_ASSERT_NOT_NULL(test, ipd);
	KUNIT_EXPECT_FALSE(test, ibmr_left_text(dev, ipd, text, sizeof(text)));
	KUNIT_EXPECT_EQ(test, ipd->pdn, pd->res.id);
	KUNIT_EXPECT_STREQ(test, ipd->owner, KBUILD_MODNAME);

	ibt_mr(test, ib_get_dma_mr(pd, LW));
	ibt_mr(test, ib_get_dma_mr(pd, LW));
	KUNIT_EXPECT_TRUE(test, ibmr_left_text(dev, ipd, text, sizeof(text)));
	KUNIT_EXPECT_STREQ(test, text, "2 regions");
	ibt_mw(test, pd, IB_MW_TYPE_1);
	ibt_fmr(test, pd, ALL, 16, 1);
	pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){ .pool_size = 4 });
	fmr = ibt_pool_map(pool, pages, 1, SZ_1M);
	KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
	KUNIT_EXPECT_TRUE(test, ibmr_left_text(dev, ipd, text, sizeof(text)));
	KUNIT_EXPECT_STREQ(test, text,
			   "2 regions, 1 windows, 1 FMRs, 1 FMR pools with 1 FMRs in use");
	KUNIT_EXPECT_EQ(test, ib_fmr_pool_unmap(fmr), 0);
	ib_mr_pd_put(pd);
}

static struct kunit_case borders_cases[] = {
	KUNIT_CASE(dereg_in_notifier),
	KUNIT_CASE(dereg_with_notifiers_lock),
	KUNIT_CASE(dereg_with_page_locked),
	KUNIT_CASE(dereg_beside_rereg),
	KUNIT_CASE_PARAM(calls_with_lock, lock_gen_params),
	KUNIT_CASE(left_in_words),
	{}
};

IBT_SUITE(borders, borders_cases);
