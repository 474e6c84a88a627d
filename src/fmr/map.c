// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * FMR pools: the caller's path.
 *
 * Map and unmap are what an I/O pays, so this file is written to be short where it runs: the
 * common pool, without cache and with a new key each time, takes the magazine's lock once to map
 * and once to unmap, and what is rare stands in functions of its own, out of the way. What it
 * costs is counted by make bench.
 *
 * Map: an entry and an armed MR are taken under the lock; the MR is mapped, parked, and published
 * without it, since the entry and the MR are the caller's alone until then, and interrupts are off
 * from before the lock is taken until after the MR was published. The removal of a device, which
 * withdraws all there is, first closes the stock under the lock and then waits for such sections.
 * So whoever got an MR has published before removal looks. Unmap: under the lock, the MR is
 * withdrawn and retired, and the entry is free.
 *
 * Free entries wait in line, and the one that was released first is taken first. So whoever still
 * has an FMR that he released, and releases it again, almost always finds it free, and is told so,
 * instead of taking the key of whoever got it since. Only a pool that keeps keys (key_maps) takes
 * the last one first, or every entry would keep one.
 *
 * With cache there is more to it: an entry that is taken may have a mapping to withdraw, and the
 * new one is to be found by the next request.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hash.h>

#include "base/compat.h"
#include "dma/dma.h"
#include "fmr/pool.h"
#include "mr/access.h"

static struct hlist_head *bucket(struct ib_fmr_pool *pool, u64 first_page)
{
	return &pool->buckets[hash_64(first_page, IBMR_POOL_BUCKETS_BITS)];
}

/*
 * The free list of a pool with cache. list.h's own would do, but distributions build with
 * CONFIG_DEBUG_LIST, and its checks are a sixth of what a cached map and unmap take.
 */
static void lru_del(struct pool_entry *e)
{
	__list_del(e->pub.list.prev, e->pub.list.next);
}

static void lru_add_tail(struct ib_fmr_pool *pool, struct pool_entry *e)
{
	struct list_head *new = &e->pub.list, *last = pool->free_list.prev;

	new->next = &pool->free_list;
	new->prev = last;
	pool->free_list.prev = new;
	last->next = new;
}

static bool same_pages(const u64 *a, const u64 *b, unsigned int nr)
{
	u64 differ = 0;

	for (; nr >= 8; nr -= 8, a += 8, b += 8) {
		differ |= (a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3]) |
			  (a[4] ^ b[4]) | (a[5] ^ b[5]) | (a[6] ^ b[6]) | (a[7] ^ b[7]);
		if (differ)
			return false;
	}
	for (; nr; nr--)
		differ |= *a++ ^ *b++;
	return !differ;
}

static struct pool_entry *cache_find(struct ib_fmr_pool *pool, const u64 *page_list, int list_len,
				     u64 iova)
{
	struct ib_pool_fmr *pub;

	hlist_for_each_entry(pub, bucket(pool, page_list[0]), cache_node)
		if (pub->io_virtual_address == iova && pub->page_list_len == list_len &&
		    same_pages(pub->page_list, page_list, list_len) &&
		    likely(!ibmr_pool_entry(pub)->armed->invalidated))
			return ibmr_pool_entry(pub);
	return NULL;
}

/* More of a plain pool would be in use than ever before. False: all are. */
static noinline bool new_peak(struct ib_fmr_pool *pool)
{
	pool->spare = 0;
	if (pool->peak == pool->nr)
		return false;
	pool->peak++;
	return true;
}

/* Its key is dead, the MR retired. Under the lock. */
void ibmr_pool_withdraw(struct ib_fmr_pool *pool, struct pool_entry *e)
{
	struct ibmr_armed *a = e->armed;

	e->armed = NULL;
	e->mapped = false;
	if (pool->buckets)
		hlist_del_init(&e->pub.cache_node);
	ibmr_mag_retire(pool->mag, a);
}

/* Behind all that are free. Without cache; under the lock. */
static __always_inline void free_last(struct ib_fmr_pool *pool, struct pool_entry *e)
{
	struct ib_pool_fmr *pub = &e->pub;

	e->next = NULL;
	if (unlikely(!pool->free))
		pool->free = pub;
	else
		ibmr_pool_entry(pool->last)->next = pub;
	pool->last = pub;
}

/* Before all others, as the next to be taken. Nobody uses it, and it is not to be hit. */
static void free_first(struct ib_fmr_pool *pool, struct pool_entry *e)
{
	if (pool->buckets) {
		list_add(&e->pub.list, &pool->free_list);
		return;
	}
	if (!pool->free)
		pool->last = &e->pub;
	e->next = pool->free;
	pool->free = &e->pub;
}

/* Nobody uses it, and it is not to be hit. Under the lock. */
void ibmr_pool_free(struct ib_fmr_pool *pool, struct pool_entry *e)
{
	if (pool->buckets || pool->param.key_maps > 1)
		free_first(pool, e);
	else
		free_last(pool, e);
}

/* --- taking an entry and an MR, parked; NULL when there is none --- */

static __always_inline struct pool_entry *take(struct ib_fmr_pool *pool, struct ibmr_armed **armed)
{
	struct ibmr_mag *mag = pool->mag;
	struct pool_entry *e = NULL;
	struct ibmr_armed *a;

	spin_lock(&mag->lock);
	if (unlikely(mag->gone || !pool->free))
		goto out;
	e = ibmr_pool_entry(pool->free);
	/* Only who keeps keys has one there; a plain pool leaves behind what it had. */
	a = pool->param.key_maps > 1 ? e->armed : NULL;
	if (a) {
		a->uses++;
	} else {
		e->armed = NULL;
		a = ibmr_mag_take(mag);
		if (unlikely(!a)) {
			e = NULL;
			goto out;
		}
	}
	pool->free = e->next;
	if (!pool->plain) {
		pool->users++;
		pool->peak = max(pool->peak, pool->users);
	} else if (--pool->spare < 0) {
		new_peak(pool);
	}
	*armed = a;
out:
	spin_unlock(&mag->lock);
	return e;
}

static struct pool_entry *take_cached(struct ib_fmr_pool *pool, struct ibmr_armed **armed)
{
	struct ibmr_mag *mag = pool->mag;
	struct pool_entry *e = NULL;
	struct ibmr_armed *a;

	spin_lock(&mag->lock);
	if (mag->gone || list_empty(&pool->free_list))
		goto out;
	a = ibmr_mag_take(mag);
	if (!a)
		goto out;
	e = list_first_entry(&pool->free_list, struct pool_entry, pub.list);
	lru_del(e);
	/* Nobody may hit what is about to be mapped to other pages. */
	hlist_del_init(&e->pub.cache_node);
	pool->cached -= e->mapped;
	pool->users++;
	pool->peak = max(pool->peak, pool->users);
	*armed = a;
out:
	spin_unlock(&mag->lock);
	return e;
}

/* The map failed: as if nothing had happened. */
static noinline void untake(struct ib_fmr_pool *pool, struct pool_entry *e, struct ibmr_armed *a)
{
	spin_lock(&pool->mag->lock);
	if (e->armed != a)
		ibmr_mag_untake(pool->mag, a);
	else
		a->uses--;
	if (e->mapped) {
		hlist_add_head(&e->pub.cache_node, bucket(pool, e->pub.page_list[0]));
		pool->cached++;
	}
	if (pool->plain)
		pool->spare++;
	else
		pool->users--;
	free_first(pool, e);
	spin_unlock(&pool->mag->lock);
}

/* The map of a plain pool failed. */
static noinline void untake_plain(struct ib_fmr_pool *pool, struct pool_entry *e)
{
	struct ibmr_armed *a = e->armed;

	e->armed = NULL;
	e->pub.remap_count--;
	untake(pool, e, a);
}

/* --- publishing --- */

/* What the caller is told; nobody can use it before the MR is published. */
static __always_inline void tell(struct pool_entry *e, const struct ibmr_armed *a, u64 iova)
{
	/* Two stores; the compiler would join them, which is longer. */
	WRITE_ONCE(e->fmr.lkey, a->key);
	WRITE_ONCE(e->fmr.rkey, a->key);
	e->pub.ref_count = 1;
	e->pub.remap_count++;
	e->pub.io_virtual_address = iova;
}

/* @a maps what was asked for and becomes the entry's. */
static void publish(struct pool_entry *e, struct ibmr_armed *a, u64 iova)
{
	e->armed = a;
	tell(e, a, iova);
	ibmr_publish(a->drv, e->fmr.pd);
	if (tracepoint_enabled(ib_mr_mapped))
		ibmr_trace_mapped(a->drv, a->mag, a->key);
}

/*
 * Under the lock: what the entry cached before is withdrawn, and it can be hit from now on. Without
 * @page_list it cannot: only a page list can be asked for again.
 */
static void publish_cached(struct ib_fmr_pool *pool, struct pool_entry *e, struct ibmr_armed *a,
			   u64 iova, const u64 *page_list, int list_len)
{
	spin_lock(&pool->mag->lock);
	if (e->mapped)
		ibmr_pool_withdraw(pool, e);
	publish(e, a, iova);
	e->mapped = true;
	e->pub.page_list_len = list_len;
	if (list_len) {
		memcpy(e->pub.page_list, page_list, list_len * sizeof(*page_list));
		hlist_add_head(&e->pub.cache_node, bucket(pool, page_list[0]));
	}
	spin_unlock(&pool->mag->lock);
}

static struct ib_pool_fmr *cache_hit(struct ib_fmr_pool *pool, const u64 *page_list, int list_len,
				     u64 iova)
{
	struct pool_entry *e = NULL;
	unsigned long flags;

	spin_lock_irqsave(&pool->mag->lock, flags);
	if (!pool->mag->gone)
		e = cache_find(pool, page_list, list_len, iova);
	if (e) {
		if (!e->pub.ref_count++) {
			lru_del(e);
			pool->cached--;
			pool->users++;
			pool->peak = max(pool->peak, pool->users);
		}
		pool->hits++;
	}
	spin_unlock_irqrestore(&pool->mag->lock, flags);
	return e ? &e->pub : NULL;
}

/* --- refusing --- */

static noinline struct ib_pool_fmr *pool_refuse(struct ib_fmr_pool *pool, enum ib_mr_reason why,
						const char *call)
{
	if (why == IB_MR_WHY_NULL_ARG && IS_ERR_OR_NULL(pool))
		return ERR_PTR(ibmr_refuse(NULL, why, "%s", call));
	if (why == IB_MR_WHY_POOL_EMPTY)
		atomic64_inc(&pool->again);
	return ERR_PTR(ibmr_refuse(pool->mag->dev, why, "%s", call));
}

static enum ib_mr_reason none_taken(const struct ib_fmr_pool *pool)
{
	return READ_ONCE(pool->mag->gone) ? IB_MR_WHY_NO_DEVICE : IB_MR_WHY_POOL_EMPTY;
}

/* What is wrong with it? Called when something is, or when it takes a closer look to tell. */
static noinline enum ib_mr_reason look_closer(const struct ib_fmr_pool *pool, int list_len,
					      u64 iova)
{
	const unsigned int shift = pool->param.page_shift;

	if (list_len < 1 || list_len > pool->param.max_pages_per_fmr)
		return IB_MR_WHY_FMR_ARGS;
	if (iova & ((1ULL << shift) - 1))
		return IB_MR_WHY_IOVA_ALIGN;
	if (READ_ONCE(ibmr_fail_map) && ibmr_map_fails())
		return IB_MR_WHY_POOL_EMPTY;
	return ibmr_access_range(iova, (u64)list_len << shift);
}

static __always_inline enum ib_mr_reason check_phys(const struct ib_fmr_pool *pool, int list_len,
						    u64 iova)
{
	if (unlikely((unsigned int)list_len - 1 >= (unsigned int)pool->param.max_pages_per_fmr ||
		     iova & pool->page_mask || READ_ONCE(ibmr_fail_map) ||
		     iova > IBMR_IOVA_PLAIN))
		return look_closer(pool, list_len, iova);
	return IB_MR_WHY_OK;
}

/* --- the calls --- */

/* Whatever is not the usual: of pools that are not plain, refusals, tests. */
static noinline struct ib_pool_fmr *map_other(struct ib_fmr_pool *pool, const u64 *page_list,
					      int list_len, u64 iova)
{
	static const char call[] = "ib_fmr_pool_map_phys";
	enum ib_mr_reason why = IB_MR_WHY_NULL_ARG;
	struct ib_pool_fmr *hit;
	struct pool_entry *e;
	struct ibmr_armed *a;
	unsigned long flags;

	if (!IS_ERR_OR_NULL(pool) && page_list)
		why = check_phys(pool, list_len, iova);
	if (unlikely(why))
		return pool_refuse(pool, why, call);
	ibmr_dma_used_pages(pool->mag->dev->ibdev, page_list, list_len, pool->param.page_shift);
	hit = pool->buckets ? cache_hit(pool, page_list, list_len, iova) : NULL;
	if (likely(hit))
		return hit;
	ibmr_live_begin(&flags);
	e = pool->buckets ? take_cached(pool, &a) : take(pool, &a);
	if (unlikely(!e)) {
		why = none_taken(pool);
	} else if (unlikely(!(pool->one_size ?
			      ibmr_fmr_map_merged(a->drv, page_list, list_len, iova,
						  pool->param.page_shift, PAGE_SHIFT) :
			      ibmr_fmr_live_map(a->drv, page_list, list_len, iova,
						pool->param.page_shift)))) {
		untake(pool, e, a);
		why = ibmr_fmr_why();
	} else if (pool->buckets) {
		publish_cached(pool, e, a, iova, page_list, list_len);
	} else {
		publish(e, a, iova);
	}
	ibmr_live_end(flags);
	return why ? pool_refuse(pool, why, call) : &e->pub;
}

/*
 * The ends of the short way that are not the usual one. They are functions so that neither the pool
 * nor the MR has to be kept for them while the driver maps. To the first, @counted: the entry was
 * counted as taken already.
 */
static noinline struct ib_pool_fmr *plain_none(struct ib_fmr_pool *pool, bool counted,
					       unsigned long flags)
	__releases(&pool->mag->lock)
{
	enum ib_mr_reason why = none_taken(pool);

	if (counted)
		pool->spare++;
	spin_unlock(&pool->mag->lock);
	ibmr_live_end(flags);
	return pool_refuse(pool, why, "ib_fmr_pool_map_phys");
}

static noinline struct ib_pool_fmr *plain_failed(struct ib_pool_fmr *fmr, unsigned long flags)
{
	struct ib_fmr_pool *pool = fmr->pool;
	enum ib_mr_reason why = ibmr_fmr_why();

	untake_plain(pool, ibmr_pool_entry(fmr));
	ibmr_live_end(flags);
	return pool_refuse(pool, why, "ib_fmr_pool_map_phys");
}

/**
 * ib_fmr_pool_map_phys() - map an FMR of a pool
 * @pool: pool
 * @page_list: DMA addresses of pages of the pool's page size; offsets in a page are ignored
 * @list_len: entries
 * @io_virtual_address: address of the first byte, a multiple of the page size
 *
 * Context: any, interrupts off included; does not sleep or allocate.
 * Return: the FMR, its keys valid; ERR_PTR(-EINVAL) for arguments, an address outside the
 * linear map among them; -EAGAIN when all are in use or no armed MR is left at this moment;
 * -ENODEV.
 */
struct ib_pool_fmr *ib_fmr_pool_map_phys(struct ib_fmr_pool *pool, u64 *page_list, int list_len,
					 u64 io_virtual_address)
{
	unsigned long nr = (unsigned int)list_len;
	struct ib_pool_fmr *fmr;
	struct pool_entry *e;
	struct ibmr_armed *a;
	struct ibmr_mag *mag;
	unsigned long flags;
	struct ib_mr *drv;

	/*
	 * One of the two is NULL, or the pool is an error? Addresses of the kernel have the highest
	 * bit where this is counted, and an error loses it by the sum; where addresses do not have
	 * it, the longer way tells.
	 */
	if (static_branch_unlikely(&ib_mr_dma_checking) ||
	    unlikely((long)(((unsigned long)pool + MAX_ERRNO) & (unsigned long)page_list) >= 0 ||
		     (unsigned int)nr - 1 >= pool->short_pages ||
		     offset_in_page(io_virtual_address) ||
		     io_virtual_address >= data_race(ibmr_short_iova)))
		return map_other(pool, page_list, list_len, io_virtual_address);
	OPTIMIZER_HIDE_VAR(nr);		/* one register for it, not two */

	ibmr_live_begin(&flags);
	mag = pool->mag;
	spin_lock(&mag->lock);
	if (unlikely(--pool->spare < 0) && !new_peak(pool))
		return plain_none(pool, false, flags);
	a = ibmr_mag_take(mag);
	if (unlikely(!a))
		return plain_none(pool, true, flags);
	fmr = pool->free;	/* not all are in use, so there is one */
	e = ibmr_pool_entry(fmr);
	pool->free = e->next;
	e->armed = a;
	spin_unlock(&mag->lock);
	drv = e->armed->drv;
	tell(e, e->armed, io_virtual_address);
	if (unlikely(!ibmr_fmr_map_plain(drv, page_list, nr, io_virtual_address)))
		return plain_failed(fmr, flags);
	ibmr_publish(drv, e->fmr.pd);
	if (tracepoint_enabled(ib_mr_mapped))
		ibmr_trace_mapped(drv, e->armed->mag, e->armed->key);
	ibmr_live_end(flags);
	return fmr;
}
EXPORT_SYMBOL(ib_fmr_pool_map_phys);

/**
 * ib_fmr_pool_map_sg() - map an FMR of a pool to bytes
 * @pool: pool; its cache, if any, is not asked
 * @sgl: DMA-mapped list
 * @nents: entries that ib_dma_map_sg() returned
 * @offset: bytes to leave out at its start
 * @length: bytes to map
 * @iova: address of the first byte, congruent to it modulo the page size
 *
 * Grants just these bytes, where a page list grants whole pages. Inner boundaries are on pages;
 * the number of pages is counted after entries that touch were merged.
 *
 * Context: any, interrupts off included; does not sleep or allocate.
 * Return: as ib_fmr_pool_map_phys(); -EMSGSIZE when the FMR has not that many pages; -ERANGE when
 * the list is shorter than @offset + @length.
 */
struct ib_pool_fmr *ib_fmr_pool_map_sg(struct ib_fmr_pool *pool, struct scatterlist *sgl, int nents,
				       unsigned int offset, u64 length, u64 iova)
{
	struct scatterlist *scratch;
	enum ib_mr_reason why;
	struct pool_entry *e;
	struct ibmr_armed *a;
	unsigned int used, shift;
	unsigned long flags;

	why = IS_ERR_OR_NULL(pool) || !sgl ? IB_MR_WHY_NULL_ARG :
	      unlikely(nents <= 0) ? IB_MR_WHY_EMPTY : ibmr_access_range_fast(iova, length);
	if (!why && READ_ONCE(ibmr_fail_map) && ibmr_map_fails())
		why = IB_MR_WHY_POOL_EMPTY;
	if (unlikely(why))
		return pool_refuse(pool, why, __func__);

	scratch = ibmr_live_begin(&flags);
	why = ibmr_fmr_sg_range(scratch, sgl, nents, offset, length, iova, pool->mag->capacity,
				&used, &shift);
	if (unlikely(why))
		goto refuse;
	if (unlikely(pool->one_size))
		shift = PAGE_SHIFT;
	e = pool->buckets ? take_cached(pool, &a) : take(pool, &a);
	if (unlikely(!e)) {
		why = none_taken(pool);
		goto refuse;
	}
	if (unlikely(ibmr_should_fail(IBMR_FAULT_DEVICE) ||
		     !ibmr_live_map(a->drv, scratch, used, length, iova, shift))) {
		untake(pool, e, a);
		why = IB_MR_WHY_FMR_ARGS;
		goto refuse;
	}
	if (pool->buckets)
		publish_cached(pool, e, a, iova, NULL, 0);
	else
		publish(e, a, iova);
	ibmr_live_end(flags);
	return &e->pub;

refuse:
	ibmr_live_end(flags);
	return pool_refuse(pool, why, __func__);
}
EXPORT_SYMBOL(ib_fmr_pool_map_sg);

/* The last user let go of @e, and the pool is not the plain one. Under the lock. */
static noinline void release(struct ib_fmr_pool *pool, struct pool_entry *e)
{
	pool->users--;
	if (e->pub.cache_node.pprev && !pool->destroyed && likely(!e->armed->invalidated)) {
		e->idle_since = jiffies;
		lru_add_tail(pool, e);
		pool->cached++;
		return;
	}
	if (e->armed->uses + 1 < pool->param.key_maps && e->armed->drv && !e->armed->invalidated)
		ibmr_withdraw(e->armed, pool->mag->dev);
	else
		ibmr_pool_withdraw(pool, e);
	ibmr_pool_free(pool, e);
	pool->dirty++;
	if (likely(!pool->wake))
		return;
	/*
	 * Of a pool that was destroyed the flush is the end, so it is called just once: one that
	 * is called again while it begins would find the pool freed.
	 */
	if (pool->destroyed ? !pool->users : pool->dirty >= pool->param.dirty_watermark)
		ibmr_pool_kick(pool, false);
}

/* What is rare in ib_fmr_pool_unmap(); the count was taken down, and the lock is held. */
static noinline int unmap_other(struct ib_pool_fmr *fmr, unsigned long flags)
	__releases(&fmr->pool->mag->lock)
{
	struct ib_fmr_pool *pool = fmr->pool;
	struct ibmr_mag *mag = pool->mag;
	bool twice = fmr->ref_count < 0;

	if (twice)
		fmr->ref_count = 0;
	else if (!fmr->ref_count)
		release(pool, ibmr_pool_entry(fmr));
	spin_unlock_irqrestore(&mag->lock, flags);
	if (!twice)
		return 0;
	return ibmr_refuse(mag->dev, IB_MR_WHY_UNMAP_TWICE, "ib_fmr_pool_unmap(key %#x)",
			   fmr->fmr->rkey);
}

/**
 * ib_fmr_pool_unmap() - release an FMR
 * @fmr: FMR from ib_fmr_pool_map_phys() or ib_fmr_pool_map_sg()
 *
 * When the last user of a mapping releases it, its key is dead as this returns; with cache it lives
 * on until the pool is flushed, or the mapping was idle for the module parameter cache_idle_ms, or
 * its place is needed. A packet that was let in before may still be copying: who gives the pages
 * away to somebody that must not see that, calls ib_flush_fmr_pool() first.
 *
 * A second release of one mapping is refused while the FMR is free. Free FMRs are taken in the
 * order of their release, so that is mostly so.
 *
 * Context: any, interrupts off included.
 * Return: 0; -EINVAL when @fmr is NULL, an error pointer, or not mapped.
 */
int ib_fmr_pool_unmap(struct ib_pool_fmr *fmr)
{
	struct ib_fmr_pool *pool;
	struct pool_entry *e;
	struct ibmr_armed *a;
	struct ibmr_mag *mag;
	unsigned long flags;

	/* IS_ERR_OR_NULL() in one comparison */
	if (unlikely((unsigned long)fmr + MAX_ERRNO <= MAX_ERRNO))
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	mag = fmr->pool->mag;
	spin_lock_irqsave(&mag->lock, flags);
	pool = fmr->pool;
	if (unlikely(--fmr->ref_count || !pool->plain))
		return unmap_other(fmr, flags);
	e = ibmr_pool_entry(fmr);
	a = e->armed;		/* which is looked at no more until another one is there */
	free_last(pool, e);
	pool->spare++;
	ibmr_mag_retire(mag, a);
	spin_unlock_irqrestore(&mag->lock, flags);
	return 0;
}
EXPORT_SYMBOL(ib_fmr_pool_unmap);
