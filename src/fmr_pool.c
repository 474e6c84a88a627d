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

#include <linux/jhash.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/swait.h>

#include "access.h"
#include "compat.h"
#include "fault.h"
#include "fmr.h"

unsigned int ibmr_cache_idle_ms = 10000;
IBMR_EXPORT_INTERNAL(ibmr_cache_idle_ms);
module_param_named(cache_idle_ms, ibmr_cache_idle_ms, uint, 0644);
MODULE_PARM_DESC(cache_idle_ms,
		 "how long a pool with cache keeps a mapping that nobody uses (0: until the flush)");

/* @pub has the caller's page list behind it, so it comes last. */
struct pool_entry {
	struct ib_fmr fmr;
	struct ibmr_armed *armed;	/* mapped, or withdrawn and kept for its key */
	unsigned long idle_since;
	bool mapped;
	struct ib_pool_fmr pub;
};

/**
 * struct ib_fmr_pool - a pool
 * @mag: its magazine; mag->lock guards what follows
 * @free_list: entries to take, from the head
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

#define POOL_BUCKETS	256

struct ibmr_mag *ibmr_pool_mag(struct ib_fmr_pool *pool)
{
	return pool->mag;
}
IBMR_EXPORT_INTERNAL(ibmr_pool_mag);

static struct pool_entry *to_entry(struct ib_pool_fmr *pub)
{
	return container_of(pub, struct pool_entry, pub);
}

static struct hlist_head *bucket(struct ib_fmr_pool *pool, u64 first_page)
{
	return &pool->buckets[jhash_2words(first_page, first_page >> 32, 0) % POOL_BUCKETS];
}

/* --- the caller's path: any context, under mag->lock unless said otherwise --- */

static struct pool_entry *cache_find(struct ib_fmr_pool *pool, const u64 *page_list, int list_len,
				     u64 iova)
{
	struct ib_pool_fmr *pub;

	hlist_for_each_entry(pub, bucket(pool, page_list[0]), cache_node)
		if (pub->io_virtual_address == iova && pub->page_list_len == list_len &&
		    !memcmp(pub->page_list, page_list, list_len * sizeof(*page_list)))
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

/* An entry to map and an MR for it, parked. The entry is off the free list then. */
static enum ib_mr_reason entry_take(struct ib_fmr_pool *pool, struct pool_entry **entry,
				    struct ibmr_armed **armed)
{
	struct ibmr_mag *mag = pool->mag;
	struct pool_entry *e;
	struct ibmr_armed *a;

	if (unlikely(mag->gone))
		return IB_MR_WHY_NO_DEVICE;
	if (list_empty(&pool->free_list))
		return IB_MR_WHY_POOL_EMPTY;
	e = list_first_entry(&pool->free_list, struct pool_entry, pub.list);
	a = e->armed;
	if (a && !e->mapped) {		/* kept for its key, see key_maps */
		a->uses++;
	} else {
		a = ibmr_mag_take(mag);
		if (!a)
			return IB_MR_WHY_POOL_EMPTY;
	}
	list_del(&e->pub.list);
	/* Nobody may hit what is about to be mapped to other pages. */
	if (pool->buckets)
		hlist_del_init(&e->pub.cache_node);
	pool->users++;
	*entry = e;
	*armed = a;
	return IB_MR_WHY_OK;
}

/* The map failed: as if nothing had happened. */
static void entry_untake(struct ib_fmr_pool *pool, struct pool_entry *e, struct ibmr_armed *a)
{
	if (e->armed != a)
		ibmr_mag_untake(pool->mag, a);
	else
		a->uses--;
	if (e->mapped)
		hlist_add_head(&e->pub.cache_node, bucket(pool, e->pub.page_list[0]));
	pool->users--;
	list_add(&e->pub.list, &pool->free_list);
}

/* @a maps what was asked for: it becomes the entry's. */
static void entry_publish(struct ib_fmr_pool *pool, struct pool_entry *e, struct ibmr_armed *a,
			  u64 iova)
{
	if (e->mapped)
		entry_withdraw(pool, e);	/* what it cached before */
	e->armed = a;
	e->mapped = true;
	e->fmr.lkey = a->key;
	e->fmr.rkey = a->key;
	e->pub.ref_count = 1;
	e->pub.remap_count++;
	e->pub.io_virtual_address = iova;
	ibmr_publish(a, pool->pd);
}

/* Only what a page list says can be asked for again. */
static void cache_insert(struct ib_fmr_pool *pool, struct pool_entry *e, const u64 *page_list,
			 int list_len)
{
	e->pub.page_list_len = list_len;
	memcpy(e->pub.page_list, page_list, list_len * sizeof(*page_list));
	hlist_add_head(&e->pub.cache_node, bucket(pool, page_list[0]));
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
			list_del(&e->pub.list);
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
	unsigned int nents;

	if (unlikely(list_len < 1 || list_len > pool->param.max_pages_per_fmr))
		return pool_refuse(pool, IB_MR_WHY_FMR_ARGS, __func__);
	if (unlikely(io_virtual_address & ((1ULL << shift) - 1)))
		return pool_refuse(pool, IB_MR_WHY_IOVA_ALIGN, __func__);
	why = ibmr_access_range(io_virtual_address, length);
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
	why = entry_take(pool, &e, &a);
	spin_unlock(&mag->lock);
	if (unlikely(why))
		goto out;

	nents = ibmr_fmr_sg(sgl, page_list, list_len, shift);
	if (unlikely(!ibmr_live_map(a->drv, sgl, nents, length, io_virtual_address,
				    PAGE_SHIFT)))
		why = IB_MR_WHY_FMR_ARGS;

	spin_lock(&mag->lock);
	if (unlikely(why)) {
		entry_untake(pool, e, a);
	} else {
		entry_publish(pool, e, a, io_virtual_address);
		if (pool->buckets)
			cache_insert(pool, e, page_list, list_len);
	}
	spin_unlock(&mag->lock);
out:
	ibmr_live_end(flags);
	return unlikely(why) ? pool_refuse(pool, why, __func__) : &e->pub;
}
EXPORT_SYMBOL(ib_fmr_pool_map_phys);

/*
 * [@offset, @offset + @length) of a DMA-mapped list as another list, neighbours merged. The inner
 * boundaries must be on pages, and iova congruent to the first byte.
 */
static enum ib_mr_reason sg_range(struct scatterlist *to, const struct scatterlist *from, int nents,
				  unsigned int offset, u64 length, u64 iova, unsigned int max,
				  unsigned int *used)
{
	struct scatterlist *sg = to;
	unsigned int n = 0;
	u64 pages = 0, end = 0;
	int i;

	for (i = 0; i < nents && length; i++) {
		u64 addr = sg_dma_address(from);
		u64 len = sg_dma_len(from);

		from = sg_next((struct scatterlist *)from);
		if (offset >= len) {
			offset -= len;
			continue;
		}
		addr += offset;
		len = min(len - offset, length);
		offset = 0;
		length -= len;
		if (n && addr == end && sg_dma_len(sg) + len <= U32_MAX) {
			sg_dma_len(sg) += len;
		} else {
			if (n && !PAGE_ALIGNED(addr | end))
				return IB_MR_WHY_INNER_BOUNDARY;
			if (!n && (addr ^ iova) & ~PAGE_MASK)
				return IB_MR_WHY_IOVA_ALIGN;
			if (n == IBMR_LIVE_PAGES)
				return IB_MR_WHY_TOO_MANY_PAGES;
			sg = &to[n++];
			sg_dma_address(sg) = addr;
			sg_dma_len(sg) = len;
		}
		end = addr + len;
	}
	if (length)
		return IB_MR_WHY_PAST_END;
	for (i = 0; i < n; i++)
		pages += ((sg_dma_address(&to[i]) + sg_dma_len(&to[i]) - 1) >> PAGE_SHIFT) -
			 (sg_dma_address(&to[i]) >> PAGE_SHIFT) + 1;
	if (pages > max)
		return IB_MR_WHY_TOO_MANY_PAGES;
	*used = n;
	return IB_MR_WHY_OK;
}

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

	why = sgl && nents > 0 ? ibmr_access_range(iova, length) : IB_MR_WHY_NULL_ARG;
	if (!why && ibmr_fail_map && ibmr_map_fails())
		why = IB_MR_WHY_POOL_EMPTY;
	if (unlikely(why))
		return pool_refuse(pool, why, __func__);

	scratch = ibmr_live_begin(&flags);
	why = sg_range(scratch, sgl, nents, offset, length, iova, mag->capacity, &used);
	if (unlikely(why))
		goto out;
	spin_lock(&mag->lock);
	why = entry_take(pool, &e, &a);
	spin_unlock(&mag->lock);
	if (unlikely(why))
		goto out;

	if (unlikely(!ibmr_live_map(a->drv, scratch, used, length, iova, PAGE_SHIFT)))
		why = IB_MR_WHY_FMR_ARGS;
	spin_lock(&mag->lock);
	if (unlikely(why)) {
		entry_untake(pool, e, a);
	} else {
		entry_publish(pool, e, a, iova);
		e->pub.page_list_len = 0;
	}
	spin_unlock(&mag->lock);
out:
	ibmr_live_end(flags);
	return unlikely(why) ? pool_refuse(pool, why, __func__) : &e->pub;
}
EXPORT_SYMBOL(ib_fmr_pool_map_sg);

/* @fence: somebody waits for it. Otherwise keys are dead already, and flush_function is all. */
static void pool_kick_flush(struct ib_fmr_pool *pool, bool fence)
{
	pool->fence |= fence;
	pool->req++;
	queue_work(ibmr_pool_wq, &pool->flush);
}

/* The last user let go of @e. */
static void entry_release(struct ib_fmr_pool *pool, struct pool_entry *e)
{
	pool->users--;
	if (e->pub.cache_node.pprev && !pool->destroyed) {
		e->idle_since = jiffies;
		list_add_tail(&e->pub.list, &pool->free_list);
		return;
	}
	if (e->armed->uses + 1 < pool->param.key_maps && e->armed->drv && !e->armed->invalidated) {
		ibmr_withdraw(e->armed, pool->mag->dev);
		e->mapped = false;
	} else {
		entry_withdraw(pool, e);
	}
	list_add(&e->pub.list, &pool->free_list);
	pool->dirty++;
	if (likely(!pool->wake))
		return;
	/*
	 * Of a pool that was destroyed the flush is the end, so it is called just once: one that
	 * is called again while it begins would find the pool freed.
	 */
	if (pool->destroyed ? !pool->users : pool->dirty >= pool->param.dirty_watermark)
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
	unsigned long limit = msecs_to_jiffies(READ_ONCE(ibmr_cache_idle_ms));
	struct ib_pool_fmr *pub;
	bool left = false;

	spin_lock_irq(&pool->mag->lock);
	list_for_each_entry(pub, &pool->free_list, list) {
		struct pool_entry *e = to_entry(pub);

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

/* How long until the next look. The time may be changed, so there are looks without one too. */
static unsigned long idle_look(void)
{
	unsigned int ms = READ_ONCE(ibmr_cache_idle_ms);

	return msecs_to_jiffies(ms ? clamp(ms / 4, 20U, 2500U) : 2500);
}

static void pool_idle(struct work_struct *work)
{
	struct ib_fmr_pool *pool = container_of(to_delayed_work(work), struct ib_fmr_pool, idle);

	withdraw_idle(pool, false);
	queue_delayed_work(ibmr_pool_wq, &pool->idle, idle_look());
}

static void pool_free(struct ib_fmr_pool *pool);

/* All that is idle is withdrawn, and nothing that was released can be touched any more. */
static void pool_fence(struct ib_fmr_pool *pool)
{
	struct ibmr_dev *dev = pool->mag->dev;

	withdraw_idle(pool, true);
	if (!ibmr_dev_enter(dev))
		return;
	ibmr_mag_flush(pool->mag);
	/*
	 * There, released MRs may be in use again, so they cannot be had: wait for their packets.
	 */
	if (pool->param.rekey_at_once || pool->param.key_maps > 1)
		synchronize_rcu_tasks();
	ibmr_dev_exit(dev);
}

static void pool_flush(struct work_struct *work)
{
	struct ib_fmr_pool *pool = container_of(work, struct ib_fmr_pool, flush);
	void (*flush_function)(struct ib_fmr_pool *pool, void *arg);
	unsigned int req;
	bool last, fence;

	spin_lock_irq(&pool->mag->lock);
	flush_function = pool->param.flush_function;
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

	if (fence)
		pool_fence(pool);
	spin_lock_irq(&pool->mag->lock);
	WRITE_ONCE(pool->done, req);
	spin_unlock_irq(&pool->mag->lock);
	wake_up_all(&pool->flushed);
	if (flush_function)
		flush_function(pool, pool->param.flush_arg);
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

	withdraw_idle(pool, true);
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
		list_add_tail(&e->pub.list, &pool->free_list);
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
			kcalloc(POOL_BUCKETS, sizeof(*pool->buckets), GFP_KERNEL);
		if (!pool->buckets)
			goto undo;
	}
	if (add_entries(pool, params->pool_size) ||
	    ibmr_mag_promise(pool->mag, params->pool_size))
		goto undo;
	if (pool->buckets)
		queue_delayed_work(ibmr_pool_wq, &pool->idle, idle_look());
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
		pool->param.flush_function = NULL;
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
	pool_fence(pool);
	spin_lock_irq(&pool->mag->lock);
	if (!--pool->users)
		pool_kick_flush(pool, false);
	spin_unlock_irq(&pool->mag->lock);
}
EXPORT_SYMBOL(ib_destroy_fmr_pool);
