// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory that is worth attacking: one piece for each way to grant it, each filled with words that
 * tell where they are from (victim_proto.h), most of it canary. The owner grants, releases, revokes
 * and uses it for something else, as the adversary wishes; that is as bad as timing can get.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "victim.h"

#define TO_READ		IB_ACCESS_REMOTE_READ
#define TO_WRITE	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)
#define TO_ATOMIC	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)

#define SIZE		(VIC_PAGES * PAGE_SIZE)
#define IOVA		0x7ee000000000ULL
#define FMR_PAGES	3
#define TRIES		2000	/* of a map that finds no armed MR, a millisecond apart */

struct asset {
	u8 *mem;		/* SIZE bytes, pages anywhere */
	u32 generation;
	u32 key;		/* 0: not granted */
	u64 iova, length;
	u32 start;
	int access;
	struct ib_mr *mr;
	struct ib_pool_fmr *handle;
	struct ib_mr_arena *arena;
	struct ib_mr_slice slice;
};

static struct asset assets[VIC_ASSETS];
static DEFINE_MUTEX(lock);		/* all of it */
static struct ib_fmr *fmr;
static struct ib_fmr_pool *pool, *cached;
static struct ib_mr *window_mr[2];
static struct ib_mw *window[2];

static void fill(struct asset *a)
{
	u64 *word = (u64 *)a->mem;
	u32 i;

	for (i = 0; i < SIZE / 8; i++)
		word[i] = victim_word(a - assets, a->generation, i);
}

static struct page *page_of(const struct asset *a, u32 i)
{
	return vmalloc_to_page(a->mem + i * PAGE_SIZE);
}

static void list_of(const struct asset *a, u64 *list)
{
	u32 i;

	for (i = 0; i < FMR_PAGES; i++)
		list[i] = (uintptr_t)page_address(page_of(a, 1 + i));
}

static int grant_region(struct asset *a, struct ib_pd *pd)
{
	u64 iova = a->iova;

	a->mr = ib_mr_reg_kernel(pd, a->mem + a->start, a->length, a->access, &iova);
	if (IS_ERR(a->mr))
		return PTR_ERR(a->mr);
	a->key = a->mr->rkey ? a->mr->rkey : a->mr->lkey;
	return 0;
}

static int grant_phys(struct asset *a)
{
	struct ib_phys_buf list[FMR_PAGES + 1];
	u64 iova = a->iova, at = a->start, end = at + a->length;
	int n;

	for (n = 0; at < end; n++, at += list[n - 1].size) {
		list[n].addr = (uintptr_t)page_address(vmalloc_to_page(a->mem + at)) +
			       offset_in_page(at);
		list[n].size = min_t(u64, end - at, PAGE_SIZE - offset_in_page(at));
	}
	a->mr = ib_reg_phys_mr(victim.pd, list, n, a->access, &iova);
	if (IS_ERR(a->mr))
		return PTR_ERR(a->mr);
	a->key = a->mr->rkey;
	return 0;
}

static int grant_fmr(struct asset *a)
{
	u64 list[FMR_PAGES];
	int err;

	list_of(a, list);
	err = ib_map_phys_fmr(fmr, list, FMR_PAGES, a->iova);
	if (!err)
		a->key = fmr->rkey;
	return err;
}

static int grant_pool(struct asset *a)
{
	struct scatterlist sgl[FMR_PAGES + 1];
	int i;

	sg_init_table(sgl, ARRAY_SIZE(sgl));
	for (i = 0; i < ARRAY_SIZE(sgl); i++) {
		sg_dma_address(&sgl[i]) = (uintptr_t)page_address(page_of(a, 1 + i));
		sg_dma_len(&sgl[i]) = PAGE_SIZE;
	}
	a->handle = ib_fmr_pool_map_sg(pool, sgl, ARRAY_SIZE(sgl), a->start - PAGE_SIZE, a->length,
				       a->iova);
	if (IS_ERR(a->handle))
		return PTR_ERR(a->handle);
	a->key = a->handle->fmr->rkey;
	return 0;
}

static int grant_cached(struct asset *a)
{
	u64 list[FMR_PAGES];

	list_of(a, list);
	a->handle = ib_fmr_pool_map_phys(cached, list, FMR_PAGES, a->iova);
	if (IS_ERR(a->handle))
		return PTR_ERR(a->handle);
	a->key = a->handle->fmr->rkey;
	return 0;
}

static int grant_window(struct asset *a, int i)
{
	struct ib_mw_bind_info info = {
		.mr = window_mr[i], .addr = a->iova, .length = a->length,
		.mw_access_flags = a->access & ~IB_ACCESS_LOCAL_WRITE,
	};
	struct ib_bind_mw_wr wr = { .bind_info = info };
	int err;

	if (!window[i])
		window[i] = ib_alloc_mw(victim.pd, i ? IB_MW_TYPE_2 : IB_MW_TYPE_1);
	if (IS_ERR(window[i])) {
		err = PTR_ERR(window[i]);
		window[i] = NULL;
		return err;
	}
	wr.mw = window[i];
	err = i ? ib_mr_post_bind_mw(victim.own_qp, &wr) :
		  ib_mr_bind_mw(victim.own_qp, window[i], &info, 0, 0);
	if (!err)
		a->key = window[i]->rkey;
	return err == -ENOMEM ? -EAGAIN : err;
}

static int grant_arena(struct asset *a)
{
	u32 i;

	a->arena = ib_mr_arena_create(victim.pd, SIZE, TO_WRITE, 0);
	if (IS_ERR(a->arena))
		return PTR_ERR(a->arena);
	if (ib_mr_arena_alloc(a->arena, SIZE, &a->slice)) {
		ib_mr_arena_destroy(a->arena);
		return -ENOMEM;
	}
	a->mem = a->slice.va;
	a->iova = a->slice.iova;
	a->key = a->slice.rkey;
	for (i = 0; i < SIZE / 8; i++)
		((u64 *)a->mem)[i] = victim_word(VIC_ARENA, a->generation, i);
	return 0;
}

static int grant_once(u32 nr)
{
	struct asset *a = &assets[nr];

	switch (nr) {
	case VIC_READ:
		return grant_phys(a);
	case VIC_FMR:
		return grant_fmr(a);
	case VIC_POOL:
		return grant_pool(a);
	case VIC_CACHED:
		return grant_cached(a);
	case VIC_WINDOW1:
	case VIC_WINDOW2:
		return grant_window(a, nr - VIC_WINDOW1);
	case VIC_ARENA:
		return grant_arena(a);
	default:
		return grant_region(a, nr == VIC_OTHER ? victim.other_pd : victim.pd);
	}
}

static int grant(u32 nr)
{
	int tries = TRIES, err;

	if (assets[nr].key)
		return 0;
	while ((err = grant_once(nr)) == -EAGAIN && --tries)
		usleep_range(1000, 2000);
	return err;
}

static int revoke_window(struct asset *a, int i, bool fence)
{
	struct ib_mw_bind_info nothing = {};
	int err;

	if (!i && !fence)
		return ib_mr_bind_mw(victim.own_qp, window[i], &nothing, 0, 0);
	err = ib_dealloc_mw(window[i]);
	if (!err)
		window[i] = NULL;
	return err;
}

static int revoke_once(u32 nr, bool fence)
{
	struct asset *a = &assets[nr];
	LIST_HEAD(list);
	int err;

	switch (nr) {
	case VIC_FMR:
		list_add(&fmr->list, &list);
		return ib_unmap_fmr(&list);
	case VIC_POOL:
	case VIC_CACHED:
		err = ib_fmr_pool_unmap(a->handle);
		/* A cached key lives until the flush; what is released here is to be dead. */
		if (fence || nr == VIC_CACHED)
			ib_flush_fmr_pool(nr == VIC_POOL ? pool : cached);
		return err;
	case VIC_WINDOW1:
	case VIC_WINDOW2:
		return revoke_window(a, nr - VIC_WINDOW1, fence);
	case VIC_ARENA:
		err = ib_mr_arena_free(a->arena, &a->slice);
		if (!err)
			err = ib_mr_arena_destroy(a->arena);
		a->mem = NULL;
		return err;
	default:
		return ib_dereg_mr(a->mr);
	}
}

static int revoke(u32 nr, bool fence)
{
	int err;

	if (!assets[nr].key)
		return 0;
	err = revoke_once(nr, fence);
	if (!err)
		assets[nr].key = 0;
	return err;
}

int victim_do(struct victim_op *op)
{
	ktime_t begin;
	int err = -EINVAL;

	if (op->asset >= VIC_ASSETS)
		return err;
	mutex_lock(&lock);
	begin = ktime_get();
	switch (op->op) {
	case VICTIM_GRANT:
		err = grant(op->asset);
		break;
	case VICTIM_RELEASE:
	case VICTIM_REVOKE:
		err = revoke(op->asset, op->op == VICTIM_REVOKE);
		break;
	case VICTIM_REUSE:
		assets[op->asset].generation++;
		if (assets[op->asset].mem)
			fill(&assets[op->asset]);
		err = 0;
	}
	op->ns = ktime_to_ns(ktime_sub(ktime_get(), begin));
	mutex_unlock(&lock);
	return err;
}

int victim_churn(const struct victim_churn *churn)
{
	u32 __user *to = u64_to_user_ptr(churn->keys);
	int err = 0;
	u32 i, key;

	if (churn->asset >= VIC_ASSETS)
		return -EINVAL;
	mutex_lock(&lock);
	for (i = 0; i < churn->count && !err; i++) {
		err = revoke(churn->asset, false);
		if (!err)
			err = grant(churn->asset);
		key = assets[churn->asset].key;
		if (!err)
			err = revoke(churn->asset, false);
		if (!err && put_user(key, to + i))
			err = -EFAULT;
		if (fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	mutex_unlock(&lock);
	return err;
}

int victim_info(struct victim_info *info)
{
	const struct asset *a;

	if (info->asset >= VIC_ASSETS)
		return -EINVAL;
	mutex_lock(&lock);
	a = &assets[info->asset];
	info->key = a->key;
	info->iova = a->iova;
	info->length = a->length;
	info->start = a->start;
	info->access = a->access;
	info->generation = a->generation;
	mutex_unlock(&lock);
	return 0;
}

int victim_audit(struct victim_audit *audit)
{
	struct asset *a;
	u32 i;
	u64 word;

	if (audit->asset >= VIC_ASSETS)
		return -EINVAL;
	audit->inside = 0;
	audit->outside = 0;
	audit->first = U32_MAX;
	mutex_lock(&lock);
	a = &assets[audit->asset];
	for (i = 0; a->mem && i < SIZE; i++) {
		word = victim_word(audit->asset, a->generation, i / 8);
		if (a->mem[i] == ((u8 *)&word)[i % 8])
			continue;
		if (i >= a->start && i - a->start < a->length)
			audit->inside++;
		else
			audit->outside++;
		audit->first = min(audit->first, i);
	}
	mutex_unlock(&lock);
	return 0;
}

/* --- life --- */

static int make_memory(void)
{
	struct asset *a;

	for (a = assets; a < assets + VIC_ASSETS; a++) {
		u32 nr = a - assets;
		bool pages = nr == VIC_FMR || nr == VIC_CACHED;

		a->generation = 1;
		a->access = nr == VIC_READ ? TO_READ : nr == VIC_ATOMIC ? TO_ATOMIC :
			    nr == VIC_LOCAL ? IB_ACCESS_LOCAL_WRITE : TO_WRITE;
		a->start = pages ? PAGE_SIZE : VIC_START;
		a->length = pages ? FMR_PAGES * PAGE_SIZE : VIC_LENGTH;
		a->iova = IOVA + nr * SZ_16M + offset_in_page(a->start);
		if (nr == VIC_ARENA) {
			a->start = 0;
			a->length = SIZE;
			continue;
		}
		a->mem = vmalloc(SIZE);
		if (!a->mem)
			return -ENOMEM;
		fill(a);
	}
	return 0;
}

static int make_pools(void)
{
	struct ib_fmr_attr attr = {
		.max_pages = FMR_PAGES, .max_maps = 32, .page_shift = PAGE_SHIFT,
	};
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = FMR_PAGES + 1, .page_shift = PAGE_SHIFT, .access = TO_WRITE,
		.pool_size = 4, .dirty_watermark = 2,
	};

	fmr = ib_alloc_fmr(victim.pd, TO_WRITE, &attr);
	if (IS_ERR(fmr))
		return PTR_ERR(fmr);
	pool = ib_create_fmr_pool(victim.pd, &param);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	param.cache = 1;
	cached = ib_create_fmr_pool(victim.pd, &param);
	return PTR_ERR_OR_ZERO(cached);
}

/* The regions below the windows: of all the memory, and peers get nothing of it by their keys. */
static int make_window_regions(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct asset *a = &assets[VIC_WINDOW1 + i];
		u64 iova = a->iova - a->start;

		window_mr[i] = ib_mr_reg_kernel(victim.pd, a->mem, SIZE,
						IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND, &iova);
		if (IS_ERR(window_mr[i]))
			return PTR_ERR(window_mr[i]);
	}
	return 0;
}

int victim_assets_make(void)
{
	int err = make_memory();
	u32 nr;

	if (!err)
		err = make_pools();
	if (!err)
		err = make_window_regions();
	for (nr = 0; nr < VIC_ASSETS && !err; nr++)
		err = grant(nr);
	return err;
}

void victim_assets_free(void)
{
	u32 nr;
	int i;

	for (nr = 0; nr < VIC_ASSETS; nr++)
		if (revoke(nr, true))
			pr_err("ib_mr_victim: asset %u cannot be revoked\n", nr);
	for (i = 0; i < 2; i++) {
		if (window[i])
			ib_dealloc_mw(window[i]);
		if (!IS_ERR_OR_NULL(window_mr[i]))
			ib_dereg_mr(window_mr[i]);
	}
	ib_destroy_fmr_pool(pool);
	ib_destroy_fmr_pool(cached);
	if (!IS_ERR_OR_NULL(fmr))
		ib_dealloc_fmr(fmr);
	for (nr = 0; nr < VIC_ASSETS; nr++)
		if (nr != VIC_ARENA)
			vfree(assets[nr].mem);
}
