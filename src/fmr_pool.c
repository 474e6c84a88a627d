// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pools of fast memory regions: what storage drivers map their I/O with.
 *
 * A pool has pool_size entries and a magazine of its own, whose lock guards both: a map takes one
 * lock, and two pools share nothing.
 *
 * Without cache: a released entry is free at once, its MR withdrawn and retired, so the key is
 * dead. Map takes an entry and a fresh MR. With cache: a released entry keeps its mapping, and
 * waits at the tail of the free list to be asked for again, by the same pages at the same iova (the
 * key of the cache is the whole of that; rights are the pool's). It dies when its entry is taken
 * for other pages, when the pool is flushed, or after an idle time. With key_maps: a released entry
 * keeps its MR, withdrawn, and maps it anew under the same key.
 *
 * "Dirty" are entries that were released since the last flush. Classic keys lived until then, so
 * at dirty_watermark of them the flush thread had work to do. Ours are dead already: there, only
 * flush_function is called, for who counts on it. ib_flush_fmr_pool() does more: all that is idle
 * is withdrawn, and all that was retired is fenced.
 *
 * A pool that is destroyed while entries are in use says so and leaves those entries, their keys
 * and itself to their users; the last release frees it. The classic one leaked them.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/hash.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/swait.h>

#include "access.h"
#include "compat.h"
#include "fault.h"
#include "fmr.h"

static unsigned int cache_idle_ms = 10000;
module_param(cache_idle_ms, uint, 0644);
MODULE_PARM_DESC(cache_idle_ms,
		 "how long a pool with cache keeps a mapping that nobody uses (0: until the flush)");

/* @pub has the caller's page list behind it, so it comes last. @next: in pool->free. */
struct pool_entry {
	struct ib_fmr fmr;
	struct pool_entry *next;
	struct ibmr_armed *armed;	/* mapped, or withdrawn and kept for its key */
	unsigned long idle_since;
	bool mapped;
	struct ib_pool_fmr pub;
};

/**
 * struct ib_fmr_pool - a pool
 * @mag: its magazine; mag->lock guards what follows
 * @free: entries to take, without cache: the last one released is the first to be taken
 * @free_list: the same with cache: the one released first is
 * @buckets: mapped entries by first page, with cache; NULL without
 * @dirty: released since the last flush
 * @wake: the flush work wants to know of releases
 * @fence: the next flush is a fence
 * @users: entries in use
 * @req: flushes asked for
 * @done: flushes carried out
 * @destroyed: ib_destroy_fmr_pool() was called, and left entries in use
 * @param: as given
 * @pd: PD
 * @ipd: its state; one user is ours
 * @nr: entries there are
 * @flush: flush work
 * @idle: looks for idle mappings, with cache
 * @flushed: who waits for @done
 * @hits: requests that the cache served
 */
struct ib_fmr_pool {
	struct ibmr_mag *mag;
	struct pool_entry *free;
	struct list_head free_list;
	struct hlist_head *buckets;
	int dirty;
	bool wake;
	bool fence;
	unsigned int users;
	unsigned int req;
	unsigned int done;
	bool destroyed;
	u64 hits;
	struct ib_fmr_pool_param param;
	struct ib_pd *pd;
	struct ibmr_pd *ipd;
	unsigned int nr;
	struct work_struct flush;
	struct delayed_work idle;
	wait_queue_head_t flushed;
};

#define POOL_BUCKETS_BITS	8

static struct pool_entry *to_entry(struct ib_pool_fmr *pub)
{
	return container_of(pub, struct pool_entry, pub);
}

static struct hlist_head *bucket(struct ib_fmr_pool *pool, u64 first_page)
{
	return &pool->buckets[hash_64(first_page, POOL_BUCKETS_BITS)];
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

/* --- the caller's path: any context, under mag->lock unless said otherwise --- */

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
		    same_pages(pub->page_list, page_list, list_len))
			return to_entry(pub);
	return NULL;
}

/* Its key is dead, the MR retired. */
static void entry_withdraw(struct ib_fmr_pool *pool, struct pool_entry *e)
{
	struct ibmr_armed *a = e->armed;

	e->armed = NULL;
	e->mapped = false;
	if (pool->buckets)
		hlist_del_init(&e->pub.cache_node);
	ibmr_mag_retire(pool->mag, a);
}

/* An entry to map and an MR for it, parked; NULL, with the reason in *@why. It is not free then. */
static __always_inline struct pool_entry *entry_take(struct ib_fmr_pool *pool,
						     struct ibmr_armed **armed,
						     enum ib_mr_reason *why)
{
	struct ibmr_mag *mag = pool->mag;
	struct pool_entry *e = pool->free;
	struct ibmr_armed *a;

	*why = IB_MR_WHY_NO_DEVICE;
	if (unlikely(mag->gone))
		return NULL;
	*why = IB_MR_WHY_POOL_EMPTY;
	if (pool->buckets && !list_empty(&pool->free_list))
		e = list_first_entry(&pool->free_list, struct pool_entry, pub.list);
	if (unlikely(!e))
		return NULL;
	a = e->armed;
	if (a && !e->mapped) {		/* kept for its key, see key_maps */
		a->uses++;
	} else {
		a = ibmr_mag_take(mag);
		if (unlikely(!a))
			return NULL;
	}
	if (!pool->buckets) {
		pool->free = e->next;
	} else {
		lru_del(e);
		/* Nobody may hit what is about to be mapped to other pages. */
		hlist_del_init(&e->pub.cache_node);
	}
	pool->users++;
	*armed = a;
	return e;
}

static void entry_free(struct ib_fmr_pool *pool, struct pool_entry *e)
{
	if (pool->buckets) {
		list_add(&e->pub.list, &pool->free_list);
	} else {
		e->next = pool->free;
		pool->free = e;
	}
}

/* The map failed: as if nothing had happened. */
static void entry_untake(struct ib_fmr_pool *pool, struct pool_entry *e, struct ibmr_armed *a)
{
	spin_lock(&pool->mag->lock);
	if (e->armed != a)
		ibmr_mag_untake(pool->mag, a);
	else
		a->uses--;
	if (e->mapped)
		hlist_add_head(&e->pub.cache_node, bucket(pool, e->pub.page_list[0]));
	pool->users--;
	entry_free(pool, e);
	spin_unlock(&pool->mag->lock);
}

/*
 * @a maps what was asked for: it becomes the entry's. No lock: the entry is its user's alone until
 * it is released. The removal of the device, which withdraws every MR there is, has waited for our
 * section with interrupts off if we did not see mag->gone.
 */
static __always_inline void entry_publish(struct ib_fmr_pool *pool, struct pool_entry *e,
					  struct ibmr_armed *a, u64 iova)
{
	e->armed = a;
	e->mapped = true;
	e->fmr.lkey = a->key;
	e->fmr.rkey = a->key;
	e->pub.ref_count = 1;
	e->pub.remap_count++;
	e->pub.io_virtual_address = iova;
	ibmr_publish(a, pool->pd);
}

/*
 * The same for a pool with cache, under the lock: what the entry cached before is withdrawn, and
 * it can be hit from now on. Without @page_list it cannot: only a page list can be asked for again.
 */
static void entry_publish_cached(struct ib_fmr_pool *pool, struct pool_entry *e,
				 struct ibmr_armed *a, u64 iova, const u64 *page_list, int list_len)
{
	spin_lock(&pool->mag->lock);
	if (e->mapped)
		entry_withdraw(pool, e);
	entry_publish(pool, e, a, iova);
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
			pool->users++;
		}
		pool->hits++;
	}
	spin_unlock_irqrestore(&pool->mag->lock, flags);
	return e ? &e->pub : NULL;
}

static struct ib_pool_fmr *pool_refuse(struct ib_fmr_pool *pool, enum ib_mr_reason why,
				       const char *call)
{
	return ERR_PTR(ibmr_refuse(pool->mag->dev, why, "%s", call));
}

/**
 * ib_fmr_pool_map_phys() - map an FMR of a pool
 * @pool: pool
 * @page_list: DMA addresses of pages of the pool's page size; offsets in a page are ignored
 * @list_len: entries
 * @io_virtual_address: address of the first byte, a multiple of the page size
 *
 * Context: any, interrupts off included; does not sleep or allocate.
 * Return: the FMR, its keys valid; ERR_PTR(-EINVAL) for arguments; -EAGAIN when all are in use or
 * no armed MR is left at this moment; -ENODEV.
 */
struct ib_pool_fmr *ib_fmr_pool_map_phys(struct ib_fmr_pool *pool, u64 *page_list, int list_len,
					 u64 io_virtual_address)
{
	const unsigned int shift = pool->param.page_shift;
	u64 length = (u64)list_len << shift;
	struct ibmr_mag *mag = pool->mag;
	struct ib_pool_fmr *hit;
	struct scatterlist *sgl;
	enum ib_mr_reason why;
	struct pool_entry *e;
	struct ibmr_armed *a;
	unsigned long flags;

	if (unlikely(list_len < 1 || list_len > pool->param.max_pages_per_fmr))
		return pool_refuse(pool, IB_MR_WHY_FMR_ARGS, __func__);
	if (unlikely(io_virtual_address & ((1ULL << shift) - 1)))
		return pool_refuse(pool, IB_MR_WHY_IOVA_ALIGN, __func__);
	why = ibmr_access_range_fast(io_virtual_address, length);
	if (unlikely(why))
		return pool_refuse(pool, why, __func__);
	if (unlikely(ibmr_fail_map) && ibmr_map_fails())
		return pool_refuse(pool, IB_MR_WHY_POOL_EMPTY, __func__);
	if (pool->buckets) {
		hit = cache_hit(pool, page_list, list_len, io_virtual_address);
		if (hit)
			return hit;
	}

	sgl = ibmr_live_begin(&flags);
	spin_lock(&mag->lock);
	e = entry_take(pool, &a, &why);
	spin_unlock(&mag->lock);
	if (unlikely(!e))
		goto refuse;
	if (unlikely(!ibmr_fmr_live_map(a->drv, sgl, page_list, list_len, io_virtual_address,
					shift))) {
		entry_untake(pool, e, a);
		why = IB_MR_WHY_FMR_ARGS;
		goto refuse;
	}
	if (pool->buckets)
		entry_publish_cached(pool, e, a, io_virtual_address, page_list, list_len);
	else
		entry_publish(pool, e, a, io_virtual_address);
	ibmr_live_end(flags);
	return &e->pub;

refuse:
	ibmr_live_end(flags);
	return pool_refuse(pool, why, __func__);
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
	struct ibmr_mag *mag = pool->mag;
	struct scatterlist *scratch;
	enum ib_mr_reason why;
	struct pool_entry *e;
	struct ibmr_armed *a;
	unsigned long flags;
	unsigned int used;

	why = sgl && nents > 0 ? ibmr_access_range_fast(iova, length) : IB_MR_WHY_NULL_ARG;
	if (!why && ibmr_fail_map && ibmr_map_fails())
		why = IB_MR_WHY_POOL_EMPTY;
	if (unlikely(why))
		return pool_refuse(pool, why, __func__);

	scratch = ibmr_live_begin(&flags);
	why = ibmr_fmr_sg_range(scratch, sgl, nents, offset, length, iova, mag->capacity, &used);
	if (unlikely(why))
		goto refuse;
	spin_lock(&mag->lock);
	e = entry_take(pool, &a, &why);
	spin_unlock(&mag->lock);
	if (unlikely(!e))
		goto refuse;
	if (unlikely(!ibmr_live_map(a->drv, scratch, used, length, iova, PAGE_SHIFT))) {
		entry_untake(pool, e, a);
		why = IB_MR_WHY_FMR_ARGS;
		goto refuse;
	}
	if (pool->buckets)
		entry_publish_cached(pool, e, a, iova, NULL, 0);
	else
		entry_publish(pool, e, a, iova);
	ibmr_live_end(flags);
	return &e->pub;

refuse:
	ibmr_live_end(flags);
	return pool_refuse(pool, why, __func__);
}
EXPORT_SYMBOL(ib_fmr_pool_map_sg);

/* @fence: somebody waits for it. Otherwise keys are dead already, and flush_function is all. */
static void pool_kick_flush(struct ib_fmr_pool *pool, bool fence)
{
	pool->fence |= fence;
	pool->req++;
	queue_work(system_unbound_wq, &pool->flush);
}

/* The last user let go of @e. */
static void entry_release(struct ib_fmr_pool *pool, struct pool_entry *e)
{
	pool->users--;
	if (pool->buckets && e->pub.cache_node.pprev && !pool->destroyed) {
		e->idle_since = jiffies;
		lru_add_tail(pool, e);
		return;
	}
	if (pool->param.key_maps > 1 && e->armed->uses + 1 < pool->param.key_maps &&
	    e->armed->drv && !e->armed->invalidated) {
		ibmr_withdraw(e->armed, pool->mag->dev);
		e->mapped = false;
	} else {
		entry_withdraw(pool, e);
	}
	entry_free(pool, e);
	pool->dirty++;
	if (unlikely(pool->wake) && (pool->destroyed || pool->dirty >= pool->param.dirty_watermark))
		pool_kick_flush(pool, false);
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
 * Context: any, interrupts off included. Return: 0.
 */
int ib_fmr_pool_unmap(struct ib_pool_fmr *fmr)
{
	struct pool_entry *e = to_entry(fmr);
	struct ib_fmr_pool *pool = fmr->pool;
	unsigned long flags;

	spin_lock_irqsave(&pool->mag->lock, flags);
	if (!--fmr->ref_count)
		entry_release(pool, e);
	spin_unlock_irqrestore(&pool->mag->lock, flags);
	return 0;
}
EXPORT_SYMBOL(ib_fmr_pool_unmap);

/* --- flushing; process context --- */

/* Withdraw the idle ones whose time came (all, with @all). Return: is one left? */
static bool withdraw_idle(struct ib_fmr_pool *pool, bool all)
{
	unsigned long limit = msecs_to_jiffies(READ_ONCE(cache_idle_ms));
	struct ib_pool_fmr *pub;
	struct pool_entry *e;
	bool left = false;

	spin_lock_irq(&pool->mag->lock);
	for (e = pool->free; e; e = e->next) {	/* kept for their keys */
		if (e->armed) {
			e->pub.remap_count = 0;
			entry_withdraw(pool, e);
		}
	}
	list_for_each_entry(pub, &pool->free_list, list) {
		e = to_entry(pub);
		if (!e->armed)
			continue;
		if (!all && (!limit || time_before(jiffies, e->idle_since + limit))) {
			left = true;
			continue;
		}
		pub->remap_count = 0;
		entry_withdraw(pool, e);
	}
	spin_unlock_irq(&pool->mag->lock);
	return left;
}

static void pool_idle(struct work_struct *work)
{
	struct ib_fmr_pool *pool = container_of(to_delayed_work(work), struct ib_fmr_pool, idle);

	withdraw_idle(pool, false);
	queue_delayed_work(system_unbound_wq, &pool->idle,
			   max(1UL, msecs_to_jiffies(READ_ONCE(cache_idle_ms) / 4 + 100)));
}

static void pool_free(struct ib_fmr_pool *pool);

static void pool_flush(struct work_struct *work)
{
	struct ib_fmr_pool *pool = container_of(work, struct ib_fmr_pool, flush);
	struct ibmr_dev *dev = pool->mag->dev;
	unsigned int req;
	bool last, fence;

	spin_lock_irq(&pool->mag->lock);
	req = pool->req;
	fence = pool->fence;
	pool->fence = false;
	pool->dirty = 0;
	last = pool->destroyed && !pool->users;
	spin_unlock_irq(&pool->mag->lock);
	if (last) {
		pool_free(pool);
		return;
	}

	if (fence) {
		withdraw_idle(pool, true);
		if (ibmr_dev_enter(dev)) {
			ibmr_mag_flush(pool->mag);
			ibmr_dev_exit(dev);
		}
	}
	spin_lock_irq(&pool->mag->lock);
	WRITE_ONCE(pool->done, req);
	spin_unlock_irq(&pool->mag->lock);
	wake_up_all(&pool->flushed);
	if (pool->param.flush_function)
		pool->param.flush_function(pool, pool->param.flush_arg);
}

/**
 * ib_flush_fmr_pool() - a fence over all that was released
 * @pool: pool
 *
 * When it returns every key that was released before the call is dead, and the device cannot touch
 * its pages any more. FMRs in use are not concerned. Signals do not interrupt it: it cannot fail.
 *
 * Context: process, may sleep. Return: 0.
 */
int ib_flush_fmr_pool(struct ib_fmr_pool *pool)
{
	unsigned int req;

	might_sleep();
	spin_lock_irq(&pool->mag->lock);
	pool_kick_flush(pool, true);
	req = pool->req;
	spin_unlock_irq(&pool->mag->lock);
	wait_event(pool->flushed, (int)(READ_ONCE(pool->done) - req) >= 0);
	return 0;
}
EXPORT_SYMBOL(ib_flush_fmr_pool);

/* --- life --- */

/* Nobody uses an entry. The device is not entered. */
static void pool_free(struct ib_fmr_pool *pool)
{
	struct ibmr_dev *dev = pool->mag->dev;
	struct ib_pool_fmr *pub, *next;
	struct pool_entry *e;

	withdraw_idle(pool, true);
	while ((e = pool->free)) {
		pool->free = e->next;
		kfree(e);
	}
	list_for_each_entry_safe(pub, next, &pool->free_list, list)
		kfree(to_entry(pub));
	refcount_inc(&dev->refs);
	ibmr_mag_destroy(pool->mag);
	down_read(&dev->removal);
	ibmr_pd_put(pool->ipd);
	up_read(&dev->removal);
	ibmr_dev_put(dev);
	kfree(pool->buckets);
	kfree(pool);
}

static int add_entries(struct ib_fmr_pool *pool, unsigned int nr)
{
	size_t list = pool->buckets ? pool->param.max_pages_per_fmr : 0;

	for (; pool->nr < nr; pool->nr++) {
		struct pool_entry *e = ibmr_should_fail() ? NULL :
			kzalloc(struct_size(e, pub.page_list, list), GFP_KERNEL);

		if (!e)
			return -ENOMEM;
		e->fmr.device = pool->pd->device;
		e->fmr.pd = pool->pd;
		INIT_LIST_HEAD(&e->fmr.list);
		e->pub.fmr = &e->fmr;
		e->pub.pool = pool;
		INIT_HLIST_NODE(&e->pub.cache_node);
		entry_free(pool, e);
	}
	return 0;
}

static enum ib_mr_reason pool_args(const struct ib_fmr_pool_param *p)
{
	enum ib_mr_reason why;

	if (!p)
		return IB_MR_WHY_NULL_ARG;
	why = ibmr_fmr_args(p->max_pages_per_fmr, p->page_shift, p->access);
	if (why)
		return why;
	if (p->pool_size < 1 || (p->cache && p->key_maps > 1) ||
	    (u64)p->max_pages_per_fmr << (p->page_shift - PAGE_SHIFT) > U16_MAX + 1)
		return IB_MR_WHY_FMR_ARGS;
	return IB_MR_WHY_OK;
}

/**
 * ib_create_fmr_pool() - make a pool
 * @pd: kernel PD
 * @params: see there; not kept
 *
 * All or nothing: every FMR is ready for use when it returns.
 *
 * Context: process, may sleep.
 * Return: the pool, to be given to ib_destroy_fmr_pool(); ERR_PTR(-EINVAL) for parameters, -ENOSYS
 * on a device that cannot have FMRs, -EPERM for a user's PD, -ENODEV, -EIO when that could not be
 * tested, -ENOMEM for whatever else stood in the way.
 */
struct ib_fmr_pool *ib_create_fmr_pool(struct ib_pd *pd, struct ib_fmr_pool_param *params)
{
	struct ib_fmr_pool *pool = NULL;
	enum ib_mr_reason why;
	struct ibmr_pd *ipd;
	struct ibmr_dev *dev;
	int err;

	might_sleep();
	ipd = ibmr_enter(pd, __func__);
	if (IS_ERR(ipd))
		return ERR_CAST(ipd);
	dev = ipd->dev;
	why = pool_args(params);
	if (!why)
		why = ibmr_mag_qualify(dev);
	if (why)
		goto refuse;

	why = IB_MR_WHY_NO_MEMORY;
	pool = ibmr_should_fail() ? NULL : kzalloc(sizeof(*pool), GFP_KERNEL);
	if (!pool)
		goto refuse;
	INIT_LIST_HEAD(&pool->free_list);
	INIT_WORK(&pool->flush, pool_flush);
	INIT_DELAYED_WORK(&pool->idle, pool_idle);
	init_waitqueue_head(&pool->flushed);
	pool->param = *params;
	pool->wake = params->flush_function;
	pool->pd = pd;
	pool->ipd = ipd;	/* with the user that ibmr_enter() counted */
	pool->mag = ibmr_mag_create(dev, ibmr_access_driver(params->access),
				    params->max_pages_per_fmr << (params->page_shift - PAGE_SHIFT),
				    params->rekey_at_once ? IBMR_MAG_AT_ONCE : 0);
	if (!pool->mag)
		goto refuse;
	if (params->cache) {
		pool->buckets = ibmr_should_fail() ? NULL :
			kcalloc(1 << POOL_BUCKETS_BITS, sizeof(*pool->buckets), GFP_KERNEL);
		if (!pool->buckets)
			goto undo;
	}
	if (add_entries(pool, params->pool_size) ||
	    ibmr_mag_promise(pool->mag, params->pool_size))
		goto undo;
	if (pool->buckets && cache_idle_ms)
		queue_delayed_work(system_unbound_wq, &pool->idle,
				   msecs_to_jiffies(cache_idle_ms));
	ibmr_dev_exit(dev);
	return pool;

undo:
	refcount_inc(&dev->refs);
	ibmr_dev_exit(dev);
	pool_free(pool);
	err = ibmr_refuse(dev, why, "%s", __func__);
	ibmr_dev_put(dev);
	return ERR_PTR(err);
refuse:
	err = ibmr_refuse(dev, why, "%s", __func__);
	kfree(pool);
	ibmr_exit(ipd);
	return ERR_PTR(err);
}
EXPORT_SYMBOL(ib_create_fmr_pool);

/**
 * ib_destroy_fmr_pool() - let go of a pool
 * @pool: pool
 *
 * A fence, like ib_flush_fmr_pool(). FMRs that are still in use are a caller's fault: it is
 * warned of, they go on working, and their PD stays busy until the last one is released.
 *
 * Context: process, may sleep.
 */
void ib_destroy_fmr_pool(struct ib_fmr_pool *pool)
{
	unsigned int users;

	might_sleep();
	if (IS_ERR_OR_NULL(pool))
		return;
	cancel_delayed_work_sync(&pool->idle);
	spin_lock_irq(&pool->mag->lock);
	users = pool->users;
	if (users) {
		pool->destroyed = true;
		pool->wake = true;
		pool->users++;		/* ours: no release frees it before we are through */
	}
	spin_unlock_irq(&pool->mag->lock);
	/* The work comes from releases, so without users none is queued after this. */
	cancel_work_sync(&pool->flush);
	if (!users) {
		pool_free(pool);
		return;
	}
	pr_warn("%s: an FMR pool is destroyed, but still has %u regions registered\n",
		pool->mag->dev->name, users);
	pool->param.flush_function = NULL;
	withdraw_idle(pool, true);
	if (ibmr_dev_enter(pool->mag->dev)) {
		ibmr_mag_flush(pool->mag);
		ibmr_dev_exit(pool->mag->dev);
	}
	spin_lock_irq(&pool->mag->lock);
	if (!--pool->users)
		pool_kick_flush(pool, false);
	spin_unlock_irq(&pool->mag->lock);
}
EXPORT_SYMBOL(ib_destroy_fmr_pool);
