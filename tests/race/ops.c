// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The operations of the race test: each picks objects by dice and does one thing to them, without
 * any lock of its own, since that is what is tested.
 *
 * Regions are reached by their handles only, which answer for a while after their end: so two CPUs
 * deregister the same one, or bind to one that is being re-registered. Objects whose pointer is all
 * there is (windows, FMRs, pools) are taken out of the table first and end when nobody uses them,
 * as a ULP would. Two things are a ULP's to order and are ordered here: an FMR is in one list
 * at a time while it is unmapped, and a thread syncs and unmaps what it mapped itself.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib_dma.h>

#include "base/compat.h"
#include "base/core.h"
#include "race.h"
#include "mr/regqp.h"

#define ALL	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

/* An object: mostly the one that all threads are at now, so that they meet. */
static u32 race_pick(struct racer *r, u32 below)
{
	return race_dice(r, 4) ? race_focus() / RACE_FAMILIES % below : race_dice(r, below);
}

static u64 iova_of(struct racer *r)
{
	return 0x10000ULL * (1 + race_dice(r, 4));
}

/* --- regions --- */

static struct ib_mr *region(struct racer *r)
{
	return READ_ONCE(r->race->mr[race_pick(r, RACE_REGIONS)]);
}

static int phys(struct racer *r, struct ib_phys_buf *buf)
{
	int i, first = race_dice(r, RACE_PAGES), n = 1 + race_dice(r, RACE_PAGES - first);

	for (i = 0; i < n; i++)
		buf[i] = (struct ib_phys_buf){
			.addr = r->race->list[first + i], .size = PAGE_SIZE,
		};
	return n;
}

static int op_register(struct racer *r)
{
	struct ib_mr **slot = &r->race->mr[race_pick(r, RACE_REGIONS)], *mr;
	struct ib_pd *pd = r->race->pd[!race_dice(r, 4)];
	int access = ALL | (race_dice(r, 4) ? IB_ACCESS_MW_BIND : 0);
	struct ib_phys_buf buf[RACE_PAGES];
	u64 iova = iova_of(r);

	if (READ_ONCE(*slot))
		return 1;
	switch (race_dice(r, 8)) {
	case 0:
		mr = ib_get_dma_mr(pd, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
		break;
	case 1:
		mr = ib_mr_reg_kernel(pd, page_address(r->race->page[0]), PAGE_SIZE, access, NULL);
		break;
	case 2:
		kthread_use_mm(r->race->mm);
		mr = ib_mr_reg_user(pd, r->race->user, RACE_USER_PAGES << PAGE_SHIFT, access,
				    &iova);
		kthread_unuse_mm(r->race->mm);
		break;
	default:
		mr = ib_reg_phys_mr(pd, buf, phys(r, buf), access, &iova);
	}
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	if (cmpxchg(slot, NULL, mr) && ib_mr_dereg(mr))
		race_wrong("deregistering a region that nobody knows", 0);
	return 0;
}

static int op_rereg(struct racer *r)
{
	struct ib_mr *mr = region(r);
	struct ib_phys_buf buf[RACE_PAGES];
	u64 iova = iova_of(r);
	int mask = 1 + race_dice(r, 7), access = ALL | IB_ACCESS_MW_BIND;

	if (!mr)
		return 1;
	/* A DMA MR, which alone has iova 0: a peer that could read by it would read anywhere. */
	if (!READ_ONCE(mr->iova))
		access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND;
	return ib_rereg_phys_mr(mr, mask, r->race->pd[race_dice(r, 2)], buf, phys(r, buf), access,
				&iova);
}

static int op_dereg(struct racer *r)
{
	struct ib_mr **slot = &r->race->mr[race_pick(r, RACE_REGIONS)], *mr = READ_ONCE(*slot);
	int err;

	if (!mr)
		return 1;
	err = ib_mr_dereg(mr);
	if (!err) {
		cmpxchg(slot, mr, NULL);
		atomic_inc(&r->race->deregs);
	}
	return err;
}

static int op_query(struct racer *r)
{
	struct ib_mr *mr = region(r);
	struct ib_mr_attr attr;

	if (!mr)
		return 1;
	ib_mr_is_stale(mr);
	return ib_query_mr(mr, &attr);
}

/* Two threads may do this at one time, to parts that overlap. */
static int op_user_unmap(struct racer *r)
{
	unsigned long at = r->race->user + (race_dice(r, RACE_USER_PAGES / 2) << PAGE_SHIFT);
	unsigned long len = PAGE_SIZE * (1 + race_dice(r, RACE_USER_PAGES / 2));
	unsigned long was;
	int err;

	kthread_use_mm(r->race->mm);
	err = vm_munmap(at, len);
	was = vm_mmap(NULL, r->race->user, RACE_USER_PAGES << PAGE_SHIFT, PROT_READ | PROT_WRITE,
		      MAP_ANONYMOUS | MAP_PRIVATE | MAP_FIXED, 0);
	kthread_unuse_mm(r->race->mm);
	if (was != r->race->user)
		race_wrong("mapping user memory", was);
	return err;
}

/* --- keys --- */

/* A key of somebody's, and an address that is mostly its own. */
static u32 any_key(struct racer *r, u64 *iova)
{
	struct ib_mr *mr = region(r);
	struct ib_mw *mw = READ_ONCE(r->race->mw[race_pick(r, RACE_WINDOWS)]);
	struct ib_fmr *fmr = READ_ONCE(r->race->fmr[race_pick(r, RACE_FMRS)]);
	struct ib_pool_fmr *held = r->held[race_dice(r, RACE_HELD)];
	unsigned int kind = race_dice(r, 8);

	*iova = iova_of(r);
	if (kind == 0 && held)
		return READ_ONCE(held->fmr->rkey);
	if (kind == 1 && fmr)
		return READ_ONCE(fmr->rkey);
	if (mr && kind != 7)
		*iova = READ_ONCE(mr->iova);
	if (kind == 2 && mw)
		return READ_ONCE(mw->rkey);
	if (kind == 3 && mr)
		return READ_ONCE(mr->rkey) + 1;
	return mr ? READ_ONCE(mr->rkey) : 1;
}

static int op_check(struct racer *r)
{
	u64 iova;
	u32 key = any_key(r, &iova);

	return ib_mr_check(r->race->pd[0], key, iova, 64, IB_ACCESS_REMOTE_READ, true) ? -EACCES :
											  0;
}

static int op_translate(struct racer *r)
{
	struct ib_mr_run runs[2];
	u64 iova;
	u32 key = any_key(r, &iova);

	return min(ib_mr_translate(r->race->pd[0], key, iova, PAGE_SIZE, runs, 2), 0);
}

static int op_copy_from(struct racer *r)
{
	u64 iova;
	u32 key = any_key(r, &iova);
	int i, err = ib_mr_copy_from(r->race->pd[0], key, iova, r->buf, RACE_READ);

	for (i = 0; i < RACE_READ && !err; i++)
		if (r->buf[i] > RACE_PAGES)
			race_wrong("bytes copied that are no page's", r->buf[i]);
	return err;
}

static int op_copy_to(struct racer *r)
{
	u64 iova;
	u32 key = any_key(r, &iova);
	u8 bytes[64];

	memset(bytes, RACE_BYTE, sizeof(bytes));
	return ib_mr_copy_to(r->race->pd[0], key, iova + RACE_SCRATCH, bytes, sizeof(bytes));
}

static int op_explain(struct racer *r)
{
	char *text = (char *)r->buf;
	u64 iova;
	u32 key = any_key(r, &iova);

	ib_mr_explain(r->race->dev, r->race->pd[race_dice(r, 2)], key, iova, 64,
		      IB_ACCESS_REMOTE_READ, text, sizeof(r->buf));
	return *text ? 0 : -EINVAL;
}

static int op_invalidated(struct racer *r)
{
	u64 iova;

	return ib_mr_invalidated(r->race->pd[0], any_key(r, &iova));
}

/* The peer of this ULP reads RACE_READ bytes into r->bytes. */
static int peer_reads(struct racer *r, u32 key, u64 iova)
{
	struct race *race = r->race;
	enum ib_wc_status status;
	int err;

	mutex_lock(&race->reading);
	err = ibmr_regqp_rdma(race->reader, IB_WR_RDMA_READ, (uintptr_t)r->bytes,
			      race->pd[0]->local_dma_lkey, RACE_READ, iova, key, &status);
	mutex_unlock(&race->reading);
	if (err)
		race_wrong("no verdict", err);
	return err ?: status;
}

static int op_read(struct racer *r)
{
	u64 iova;
	u32 key = any_key(r, &iova);
	int i, status = peer_reads(r, key, iova);

	for (i = 0; i < RACE_READ && status == IB_WC_SUCCESS; i++)
		if (r->bytes[i] > RACE_PAGES)
			race_wrong("a peer read what is no page's", r->bytes[i]);
	return status == IB_WC_SUCCESS ? 0 : -EACCES;
}

/* --- windows --- */

static int bind(struct racer *r, struct ib_mw *mw, u64 length)
{
	int flags = race_dice(r, 4) ? 0 : IB_SEND_SIGNALED;
	struct ib_mw_bind_info info = {
		.mr = region(r), .length = length,
		.mw_access_flags = IB_ACCESS_REMOTE_READ |
				   (race_dice(r, 2) ? IB_ACCESS_REMOTE_WRITE : 0),
	};
	struct ib_bind_mw_wr wr = { .mw = mw, .wr.wr_id = 7, .wr.send_flags = flags };

	if (!info.mr)
		return 1;
	info.addr = READ_ONCE(info.mr->iova) ?: r->race->list[0];
	if (mw->type == IB_MW_TYPE_1)
		return ib_mr_bind_mw(ibmr_regqp_qp(r->race->binder), mw, &info, 7, flags);
	wr.bind_info = info;
	return ib_mr_post_bind_mw(ibmr_regqp_qp(r->race->binder), &wr);
}

static int op_bind(struct racer *r)
{
	struct ib_mw *mw = READ_ONCE(r->race->mw[race_pick(r, RACE_WINDOWS)]);

	return mw ? bind(r, mw, 1 + race_dice(r, PAGE_SIZE)) : 1;
}

static int op_unbind(struct racer *r)
{
	struct ib_mw *mw = READ_ONCE(r->race->mw[race_pick(r, RACE_WINDOWS)]);

	if (!mw)
		return 1;
	return mw->type == IB_MW_TYPE_1 ? bind(r, mw, 0) :
					  ib_mr_invalidated(r->race->pd[0], READ_ONCE(mw->rkey));
}

static int op_poll(struct racer *r)
{
	struct ib_wc wc[4];

	return min(ib_mr_poll_cq(ibmr_regqp_qp(r->race->binder)->send_cq, ARRAY_SIZE(wc), wc), 0);
}

static struct ib_mw *window_new(struct race *race, unsigned int i)
{
	return ib_alloc_mw(race->pd[0], i & 1 ? IB_MW_TYPE_2 : IB_MW_TYPE_1);
}

static int op_window_end(struct racer *r)
{
	unsigned int i = race_pick(r, RACE_WINDOWS);
	struct ib_mw *mw = xchg(&r->race->mw[i], NULL);

	if (!mw)
		return 1;
	synchronize_srcu(&r->race->readers);
	if (ib_dealloc_mw(mw))
		race_wrong("freeing a window", 0);
	mw = window_new(r->race, i);
	if (IS_ERR(mw))
		return PTR_ERR(mw);
	xchg(&r->race->mw[i], mw);
	return 0;
}

/* --- FMRs --- */

static int op_fmr_map(struct racer *r)
{
	struct ib_fmr *fmr = READ_ONCE(r->race->fmr[race_pick(r, RACE_FMRS)]);
	int first = race_dice(r, RACE_PAGES), n = 1 + race_dice(r, RACE_PAGES - first);

	return fmr ? ib_map_phys_fmr(fmr, r->race->list + first, n, iova_of(r)) : 1;
}

static int fmr_unmap(struct ib_fmr *fmr)
{
	LIST_HEAD(list);
	int err;

	list_add(&fmr->list, &list);
	err = ib_unmap_fmr(&list);
	list_del(&fmr->list);
	return err;
}

static int op_fmr_unmap(struct racer *r)
{
	unsigned int i = race_pick(r, RACE_FMRS);
	struct ib_fmr *fmr = READ_ONCE(r->race->fmr[i]);
	int err;

	if (!fmr || test_and_set_bit_lock(i, &r->race->fmr_busy))
		return 1;
	err = fmr_unmap(fmr);
	clear_bit_unlock(i, &r->race->fmr_busy);
	return err;
}

static struct ib_fmr *fmr_new(struct race *race)
{
	struct ib_fmr_attr attr = {
		.max_pages = RACE_PAGES, .max_maps = 1000, .page_shift = PAGE_SHIFT,
	};

	return ib_alloc_fmr(race->pd[0], ALL, &attr);
}

static int op_fmr_end(struct racer *r)
{
	unsigned int i = race_pick(r, RACE_FMRS);
	struct ib_fmr *fmr = xchg(&r->race->fmr[i], NULL);

	if (!fmr)
		return 1;
	synchronize_srcu(&r->race->readers);
	if (fmr_unmap(fmr) || ib_dealloc_fmr(fmr))
		race_wrong("freeing an FMR", 0);
	fmr = fmr_new(r->race);
	if (IS_ERR(fmr))
		return PTR_ERR(fmr);
	xchg(&r->race->fmr[i], fmr);
	return 0;
}

/* --- pools --- */

static void flushed(struct ib_fmr_pool *pool, void *arg)
{
}

static struct ib_fmr_pool *pool_new(struct race *race, unsigned int i)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = RACE_PAGES, .page_shift = PAGE_SHIFT, .pool_size = 16,
		.access = ALL, .dirty_watermark = 4, .cache = i == 1, .rekey_at_once = i == 2,
		.key_maps = i == 3 ? 8 : 0, .flush_function = i ? flushed : NULL,
	};

	return ib_create_fmr_pool(race->pd[0], &param);
}

static int op_pool_map(struct racer *r)
{
	struct ib_fmr_pool *pool = READ_ONCE(r->race->pool[race_pick(r, RACE_POOLS)]);
	struct ib_pool_fmr **place = &r->held[race_dice(r, RACE_HELD)], *fmr;
	int first = race_dice(r, RACE_PAGES), n = 1 + race_dice(r, RACE_PAGES - first);
	struct scatterlist sg;

	if (!pool || *place)
		return 1;
	if (race_dice(r, 4)) {
		fmr = ib_fmr_pool_map_phys(pool, r->race->list + first, n, iova_of(r));
	} else {
		sg_init_table(&sg, 1);
		sg_dma_address(&sg) = r->race->list[first];
		sg_dma_len(&sg) = PAGE_SIZE;
		fmr = ib_fmr_pool_map_sg(pool, &sg, 1, 16, 500, iova_of(r) + 16);
	}
	if (IS_ERR(fmr))
		return PTR_ERR(fmr);
	*place = fmr;
	return 0;
}

/* A page is mapped, read by its key, and released; without cache the key is dead then. */
static int op_pool_read(struct racer *r)
{
	unsigned int i = race_pick(r, RACE_POOLS), page = race_dice(r, RACE_PAGES), n;
	struct ib_fmr_pool *pool = READ_ONCE(r->race->pool[i]);
	struct ib_pool_fmr *fmr;
	u64 iova = iova_of(r);
	int status;
	u32 key;

	if (!pool)
		return 1;
	fmr = ib_fmr_pool_map_phys(pool, r->race->list + page, 1, iova);
	if (IS_ERR(fmr))
		return PTR_ERR(fmr);
	key = READ_ONCE(fmr->fmr->rkey);
	status = peer_reads(r, key, iova);
	for (n = 0; n < RACE_READ && status == IB_WC_SUCCESS; n++)
		if (r->bytes[n] != page + 1)
			race_wrong("a peer read another page", r->bytes[n]);
	/* Another thread may have said that it was invalidated, but that is not so. */
	if (status != IB_WC_SUCCESS)
		race_wrong("a peer could not read what is mapped", status);
	ib_fmr_pool_unmap(fmr);
	if (!i && peer_reads(r, key, iova) == IB_WC_SUCCESS)
		race_wrong("a peer read by a dead key", key);
	return 0;
}

static int op_pool_unmap(struct racer *r)
{
	struct ib_pool_fmr **place = &r->held[race_dice(r, RACE_HELD)], *fmr = *place;

	if (!fmr)
		return 1;
	*place = NULL;
	return ib_fmr_pool_unmap(fmr);
}

static int op_pool_flush(struct racer *r)
{
	struct ib_fmr_pool *pool = READ_ONCE(r->race->pool[race_pick(r, RACE_POOLS)]);

	return pool ? ib_flush_fmr_pool(pool) : 1;
}

/* FMRs of it may be in use: the last of them takes it along. */
static int op_pool_end(struct racer *r)
{
	unsigned int i = race_pick(r, RACE_POOLS);
	struct ib_fmr_pool *pool = xchg(&r->race->pool[i], NULL);

	if (!pool)
		return 1;
	synchronize_srcu(&r->race->readers);
	ib_destroy_fmr_pool(pool);
	pool = pool_new(r->race, i);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	xchg(&r->race->pool[i], pool);
	return 0;
}

/* --- the rest --- */

static int op_slice(struct racer *r)
{
	struct ib_mr_slice *slice = &r->slice[race_dice(r, RACE_HELD)];

	if (slice->va)
		return ib_mr_arena_free(r->race->arena, slice);
	return ib_mr_arena_alloc(r->race->arena, 1 + race_dice(r, 300), slice);
}

static int op_dma(struct racer *r)
{
	size_t len = 1 + race_dice(r, 2 * PAGE_SIZE);
	u64 addr = ib_dma_map_single(r->race->dev, r->dma, len, DMA_BIDIRECTIONAL);

	if (ib_dma_mapping_error(r->race->dev, addr))
		return -ENOMEM;
	ib_dma_sync_single_for_cpu(r->race->dev, addr, len, DMA_BIDIRECTIONAL);
	r->dma[0]++;
	ib_dma_sync_single_for_device(r->race->dev, addr, len, DMA_BIDIRECTIONAL);
	ib_dma_unmap_single(r->race->dev, addr, len, DMA_BIDIRECTIONAL);
	return 0;
}

static int op_dma_mode(struct racer *r)
{
	if (!race_turns_modes())
		return 1;
	return ib_mr_dma_check_set(r->race->dev, race_dice(r, 3));
}

static int op_pd(struct racer *r)
{
	struct ib_pd *pd = r->race->pd[race_dice(r, 2)];
	int err = ib_mr_pd_get(pd);

	if (!err)
		ib_mr_pd_put(pd);
	return err;
}

/* What a connection has, made and let go of in one. */
static int op_scope(struct racer *r)
{
	struct ib_mr_scope *scope = ib_mr_scope_create(r->race->pd[0]);
	struct ib_mr_arena *arena;
	struct ib_mr *mr;

	if (IS_ERR(scope))
		return PTR_ERR(scope);
	mr = ib_mr_scope_mr(scope, ib_mr_reg_kernel(r->race->pd[0], r->dma, 100, ALL, NULL));
	arena = ib_mr_scope_arena(scope, ib_mr_arena_create(r->race->pd[0], 500, ALL, 0));
	if (ib_mr_scope_release(scope))
		race_wrong("releasing a scope", 0);
	return PTR_ERR_OR_ZERO(mr) ?: PTR_ERR_OR_ZERO(arena);
}

static int op_break(struct racer *r)
{
	return ibmr_regqp_break(r->race->pd[race_dice(r, 2)]);
}

/* Its answer is worth something only when nobody else is about. */
static int op_agree(struct racer *r)
{
	ib_mr_check_invariants(r->race->dev);
	return 0;
}

static int op_fence(struct racer *r)
{
	ib_mr_fence();
	return 0;
}

/* The table of handles forgets after a thousand deregistrations; nobody may hold one so long. */
static int op_graves(struct racer *r)
{
	if (atomic_read(&r->race->deregs) < 20)
		return 1;
	atomic_set(&r->race->deregs, 0);
	synchronize_srcu(&r->race->readers);
	return 0;
}

const struct race_op race_ops[] = {
	{ "register",	 RACE_SLEEPS,	0,	60, op_register,   { -ENOMEM, -EIO, -EFAULT } },
	{ "re-register", RACE_SLEEPS,	0,	40, op_rereg,
	  { -EINVAL, -EBUSY, -EIO, -ENOMEM, -EFAULT } },
	{ "deregister",	 RACE_SLEEPS,	0,	40, op_dereg,	   { -EINVAL, -EBUSY } },
	{ "query",	 RACE_SLEEPS,	0,	20, op_query,	   { -EINVAL } },
	{ "user unmap",	 RACE_SLEEPS,	0,	10, op_user_unmap, { } },
	{ "check",	 RACE_ANY,	1,	40, op_check,	   { -EACCES } },
	{ "translate",	 RACE_ANY,	1,	40, op_translate,
	  { -EINVAL, -EACCES, -ERANGE, -ENOSPC } },
	{ "copy from",	 RACE_ANY,	1,	30, op_copy_from,  { -EINVAL, -EACCES, -ERANGE } },
	{ "copy to",	 RACE_ANY,	1,	30, op_copy_to,	   { -EINVAL, -EACCES, -ERANGE } },
	{ "explain",	 RACE_ANY,	1,	30, op_explain,	   { } },
	{ "invalidated", RACE_ANY,	1,	20, op_invalidated, { -EINVAL, -EACCES } },
	{ "read",	 RACE_SLEEPS,	0,	 6, op_read,	   { -EACCES } },
	{ "bind",	 RACE_ANY,	2,	80, op_bind,	   { -EINVAL, -ENOMEM } },
	{ "unbind",	 RACE_ANY,	2,	60, op_unbind,	   { -EINVAL, -ENOMEM, -EACCES } },
	{ "poll",	 RACE_ANY,	2,	30, op_poll,	   { } },
	{ "window end",	 RACE_ENDS,	0,	 6, op_window_end, { } },
	{ "FMR map",	 RACE_ANY,	3,	80, op_fmr_map,	   { -EAGAIN, -EINVAL } },
	{ "FMR unmap",	 RACE_SLEEPS,	0,	20, op_fmr_unmap,  { } },
	{ "FMR end",	 RACE_ENDS,	0,	 6, op_fmr_end,	   { } },
	{ "pool map",	 RACE_ANY,	4,	120, op_pool_map,   { -EAGAIN } },
	{ "pool unmap",	 RACE_ANY,	4,	120, op_pool_unmap, { } },
	{ "pool read",	 RACE_SLEEPS,	0,	10, op_pool_read,  { -EAGAIN } },
	{ "pool flush",	 RACE_SLEEPS,	0,	 6, op_pool_flush, { } },
	{ "pool end",	 RACE_ENDS,	0,	 6, op_pool_end,   { } },
	{ "slice",	 RACE_ANY,	5,	60, op_slice,	   { -ENOMEM } },
	{ "DMA",	 RACE_ANY,	6,	60, op_dma,	   { -ENOMEM } },
	{ "DMA mode",	 RACE_SLEEPS,	0,	 4, op_dma_mode,   { } },
	{ "scope",	 RACE_SLEEPS,	0,	 6, op_scope,	   { -ENOMEM, -EIO } },
	{ "PD hold",	 RACE_SLEEPS,	0,	10, op_pd,	   { } },
	{ "break",	 RACE_SLEEPS,	0,	 6, op_break,	   { -ENOENT } },
	{ "agree",	 RACE_SLEEPS,	0,	 4, op_agree,	   { } },
	{ "fence",	 RACE_SLEEPS,	0,	 3, op_fence,	   { } },
	{ "graves",	 RACE_ENDS,	0,	20, op_graves,	   { } },
};

const unsigned int race_nr_ops = ARRAY_SIZE(race_ops);

/* --- from nothing, and back to it --- */

int race_make(struct race *race)
{
	int i, err = 0;

	for (i = 0; i < RACE_PAGES; i++) {
		race->page[i] = alloc_page(GFP_KERNEL);
		if (!race->page[i])
			return -ENOMEM;
		memset(page_address(race->page[i]), i + 1, PAGE_SIZE);
		race->list[i] = (uintptr_t)page_address(race->page[i]);
	}
	kthread_use_mm(race->mm);
	race->user = vm_mmap(NULL, 0, RACE_USER_PAGES << PAGE_SHIFT, PROT_READ | PROT_WRITE,
			     MAP_ANONYMOUS | MAP_PRIVATE, 0);
	kthread_unuse_mm(race->mm);
	if (IS_ERR_VALUE(race->user))
		return race->user;
	for (i = 0; i < 2 && !err; i++) {
		race->pd[i] = ib_alloc_pd(race->dev, 0);
		err = PTR_ERR_OR_ZERO(race->pd[i]);
	}
	if (err)
		return err;
	race->binder = ibmr_regqp_create(race->pd[0], 0, 0);
	err = PTR_ERR_OR_ZERO(race->binder);
	if (err)
		return err;
	race->reader = ibmr_regqp_create(race->pd[0], IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ,
					 0);
	err = PTR_ERR_OR_ZERO(race->reader);
	for (i = 0; i < RACE_WINDOWS && !err; i++) {
		race->mw[i] = window_new(race, i);
		err = PTR_ERR_OR_ZERO(race->mw[i]);
	}
	for (i = 0; i < RACE_FMRS && !err; i++) {
		race->fmr[i] = fmr_new(race);
		err = PTR_ERR_OR_ZERO(race->fmr[i]);
	}
	for (i = 0; i < RACE_POOLS && !err; i++) {
		race->pool[i] = pool_new(race, i);
		err = PTR_ERR_OR_ZERO(race->pool[i]);
	}
	if (err)
		return err;
	race->arena = ib_mr_arena_create(race->pd[0], 4 * PAGE_SIZE, ALL, 0);
	return PTR_ERR_OR_ZERO(race->arena);
}

/* The next part begins from nothing. */
static void race_forget(struct race *race)
{
	memset(race->pd, 0, sizeof(race->pd));
	memset(race->page, 0, sizeof(race->page));
	memset(race->mr, 0, sizeof(race->mr));
	memset(race->mw, 0, sizeof(race->mw));
	memset(race->fmr, 0, sizeof(race->fmr));
	memset(race->pool, 0, sizeof(race->pool));
	race->binder = NULL;
	race->reader = NULL;
	race->arena = NULL;
	race->user = 0;
}

/* What a thread holds. */
void race_let_go(struct racer *r)
{
	int i;

	for (i = 0; i < RACE_HELD; i++) {
		if (r->held[i])
			ib_fmr_pool_unmap(r->held[i]);
		r->held[i] = NULL;
		if (r->slice[i].va && ib_mr_arena_free(r->race->arena, &r->slice[i]))
			race_wrong("freeing a slice", i);
	}
}

/* Nobody works on them any more. */
void race_unmake(struct race *race)
{
	int i, tries;

	for (i = 0; i < RACE_WINDOWS; i++)
		if (!IS_ERR_OR_NULL(race->mw[i]) && ib_dealloc_mw(race->mw[i]))
			race_wrong("freeing a window", i);
	for (i = 0; i < RACE_FMRS; i++)
		if (!IS_ERR_OR_NULL(race->fmr[i]) &&
		    (fmr_unmap(race->fmr[i]) || ib_dealloc_fmr(race->fmr[i])))
			race_wrong("freeing an FMR", i);
	for (i = 0; i < RACE_POOLS; i++)
		ib_destroy_fmr_pool(race->pool[i]);
	for (i = 0; i < RACE_REGIONS; i++)
		if (race->mr[i] && ib_mr_dereg(race->mr[i]))
			race_wrong("deregistering", i);
	if (ib_mr_arena_destroy(race->arena))
		race_wrong("destroying the arena", 0);
	if (!IS_ERR_OR_NULL(race->binder))
		ibmr_regqp_destroy(race->binder);
	if (!IS_ERR_OR_NULL(race->reader))
		ibmr_regqp_destroy(race->reader);
	for (i = 0; i < 2; i++) {
		if (IS_ERR_OR_NULL(race->pd[i]))
			continue;
		/* A pool that was destroyed in use goes by itself, soon after its last FMR. */
		for (tries = 500; ib_dealloc_pd(race->pd[i]) && tries; tries--)
			msleep(20);
		if (!tries)
			race_wrong("the PD is still in use", i);
	}
	if (race->user && !IS_ERR_VALUE(race->user)) {
		kthread_use_mm(race->mm);
		vm_munmap(race->user, RACE_USER_PAGES << PAGE_SHIFT);
		kthread_unuse_mm(race->mm);
	}
	for (i = 0; i < RACE_PAGES; i++)
		if (race->page[i])
			__free_page(race->page[i]);
	race_forget(race);
}
