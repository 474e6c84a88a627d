// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Pools of fast memory regions: what storage drivers map their I/O with.
 *
 * A pool has pool_size entries and a magazine of its own, whose lock guards both: a map takes one
 * lock, and two pools share nothing.
 *
 * Without cache: a released entry is free at once, its MR withdrawn and retired, so the key is
 * dead. Map takes the entry that is free longest, and a fresh MR. With cache: a released entry
 * keeps its mapping, and waits at the tail of the free list to be asked for again, by the same
 * pages at the same iova (the key of the cache is the whole of that; rights are the pool's). It
 * dies when its entry is taken for other pages, when the pool is flushed, or after an idle time.
 * With key_maps: a released entry keeps its MR, withdrawn, and maps it anew under the same key.
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

#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/swait.h>

#include "base/compat.h"
#include "base/fault.h"
#include "fmr/pool.h"
#include "mr/access.h"

#include <trace/events/ib_mr.h>

unsigned int ibmr_cache_idle_ms = 10000;
IBMR_EXPORT_INTERNAL(ibmr_cache_idle_ms);
module_param_named(cache_idle_ms, ibmr_cache_idle_ms, uint, 0644);
MODULE_PARM_DESC(cache_idle_ms,
		 "how long a pool with cache keeps a mapping that nobody uses (0: until the flush)");

struct ibmr_mag *ibmr_pool_mag(struct ib_fmr_pool *pool)
{
	return pool->mag;
}
IBMR_EXPORT_INTERNAL(ibmr_pool_mag);

/* --- flushing; process context unless said otherwise --- */

/*
 * Any context, under the lock. @fence: somebody waits for it. Otherwise keys are dead already, and
 * flush_function is all.
 */
void ibmr_pool_kick(struct ib_fmr_pool *pool, bool fence)
{
	pool->fence |= fence;
	pool->req++;
	queue_work(ibmr_pool_wq, &pool->flush);
}

/* Withdraw the idle ones whose time came (all, with @all). Return: is one left? */
static bool withdraw_idle(struct ib_fmr_pool *pool, bool all)
{
	unsigned long limit = msecs_to_jiffies(READ_ONCE(ibmr_cache_idle_ms));
	struct ib_pool_fmr *pub;
	struct pool_entry *e;
	bool left = false;

	spin_lock_irq(&pool->mag->lock);
	/* Without cache, only those that are kept for their keys have anything to withdraw. */
	for (pub = pool->param.key_maps > 1 ? pool->free : NULL; pub; pub = e->next) {
		e = ibmr_pool_entry(pub);
		if (e->armed) {
			e->pub.remap_count = 0;
			ibmr_pool_withdraw(pool, e);
		}
	}
	list_for_each_entry(pub, &pool->free_list, list) {
		e = ibmr_pool_entry(pub);
		if (!e->armed)
			continue;
		if (!all && (!limit || time_before(jiffies, e->idle_since + limit))) {
			left = true;
			continue;
		}
		pub->remap_count = 0;
		pool->cached--;
		ibmr_pool_withdraw(pool, e);
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
	unsigned int noio;

	withdraw_idle(pool, true);
	if (!ibmr_dev_enter(dev, &noio))
		return;
	ibmr_mag_flush(pool->mag);
	/*
	 * There, released MRs may be in use again, so they cannot be had: wait for their packets.
	 */
	if (pool->param.rekey_at_once || pool->param.key_maps > 1)
		synchronize_rcu_tasks();
	ibmr_dev_exit(dev, noio);
}

static void pool_flush(struct work_struct *work)
{
	struct ib_fmr_pool *pool = container_of(work, struct ib_fmr_pool, flush);
	void (*flush_function)(struct ib_fmr_pool *pool, void *arg);
	unsigned int req;
	unsigned int dirty;
	bool last, fence;

	spin_lock_irq(&pool->mag->lock);
	flush_function = pool->param.flush_function;
	req = pool->req;
	fence = pool->fence;
	pool->fence = false;
	dirty = ibmr_pool_dirty(pool);
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
	pool->flushes++;
	WRITE_ONCE(pool->done, req);
	spin_unlock_irq(&pool->mag->lock);
	trace_ib_mr_pool_flushed(pool->mag->dev->name, pool->pdn, pool->mag->listed.nr, fence,
				 dirty);
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
 * Context: process, may sleep.
 * Return: 0; -EINVAL for what ib_create_fmr_pool() failed with.
 */
int ib_flush_fmr_pool(struct ib_fmr_pool *pool)
{
	unsigned int req;

	might_sleep();
	if (IS_ERR_OR_NULL(pool))
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	spin_lock_irq(&pool->mag->lock);
	ibmr_pool_kick(pool, true);
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
	unsigned int noio;

	mutex_lock(&dev->mag_lock);
	list_del_init(&pool->listed.entry);	/* it need not be in */
	mutex_unlock(&dev->mag_lock);
	withdraw_idle(pool, true);
	for (pub = pool->free; pub; pub = next) {
		next = ibmr_pool_entry(pub)->next;
		kfree(ibmr_pool_entry(pub));
	}
	list_for_each_entry_safe(pub, next, &pool->free_list, list)
		kfree(ibmr_pool_entry(pub));
	refcount_inc(&dev->refs);
	ibmr_mag_destroy(pool->mag);
	noio = ibmr_dev_hold(dev);
	ibmr_pd_put(pool->ipd);
	ibmr_dev_exit(dev, noio);
	ibmr_dev_put(dev);
	kfree(pool->buckets);
	kfree(pool);
}

static int add_entries(struct ib_fmr_pool *pool, unsigned int nr)
{
	size_t list = pool->buckets ? pool->param.max_pages_per_fmr : 0;

	for (; pool->nr < nr; pool->nr++) {
		struct pool_entry *e = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL :
			kzalloc(struct_size(e, pub.page_list, list), GFP_KERNEL);

		if (!e)
			return -ENOMEM;
		e->fmr.device = pool->pd->device;
		e->fmr.pd = pool->pd;
		INIT_LIST_HEAD(&e->fmr.list);
		e->pub.fmr = &e->fmr;
		e->pub.pool = pool;
		INIT_HLIST_NODE(&e->pub.cache_node);
		if (pool->buckets) {
			list_add(&e->pub.list, &pool->free_list);
		} else {
			e->next = pool->free;
			pool->free = &e->pub;
			if (!pool->last)
				pool->last = &e->pub;
		}
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

static int refuse_params(struct ibmr_dev *dev, enum ib_mr_reason why,
			 const struct ib_fmr_pool_param *p)
{
	static const char call[] = "ib_create_fmr_pool";

	if (!p)
		return ibmr_refuse(dev, why, "%s(params NULL)", call);
	return ibmr_refuse(dev, why,
			   "%s(access %#x, pool_size %d from 1, max_pages_per_fmr %d of 1 to %d, page_shift %d of %d to 30, at most %u KiB an FMR, cache %d with key_maps %u: one of the two)",
			   call, p->access, p->pool_size, p->max_pages_per_fmr, IBMR_FMR_MAX_PAGES,
			   p->page_shift, PAGE_SHIFT, IBMR_FMR_MAX_KIB, p->cache, p->key_maps);
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
	unsigned int noio;
	int err;

	might_sleep();
	ipd = ibmr_enter(pd, __func__, &noio);
	if (IS_ERR(ipd))
		return ERR_CAST(ipd);
	dev = ipd->dev;
	why = pool_args(params);
	if (!why)
		why = ibmr_mag_qualify(dev);
	if (why)
		goto refuse;

	why = IB_MR_WHY_NO_MEMORY;
	pool = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kzalloc(sizeof(*pool), GFP_KERNEL);
	if (!pool)
		goto refuse;
	INIT_LIST_HEAD(&pool->free_list);
	INIT_LIST_HEAD(&pool->listed.entry);
	INIT_WORK(&pool->flush, pool_flush);
	INIT_DELAYED_WORK(&pool->idle, pool_idle);
	init_waitqueue_head(&pool->flushed);
	pool->param = *params;
	pool->wake = params->flush_function;
	pool->plain = !params->cache && params->key_maps <= 1 && !pool->wake;
	pool->page_mask = (1ULL << params->page_shift) - 1;
	pool->one_size = params->key_maps > 1 || params->rekey_at_once;
	if (pool->plain && !pool->one_size && params->page_shift == PAGE_SHIFT)
		pool->short_pages = params->max_pages_per_fmr;
	pool->pd = pd;
	pool->pdn = pd->res.id;
	pool->ipd = ipd;	/* with the user that ibmr_enter() counted */
	pool->mag = ibmr_mag_create(dev, ibmr_access_driver(params->access),
				    params->max_pages_per_fmr << (params->page_shift - PAGE_SHIFT),
				    params->rekey_at_once ? IBMR_MAG_AT_ONCE : 0);
	if (!pool->mag)
		goto refuse;
	if (params->cache) {
		pool->buckets = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL :
			kcalloc(1 << IBMR_POOL_BUCKETS_BITS, sizeof(*pool->buckets), GFP_KERNEL);
		if (!pool->buckets)
			goto undo;
	}
	if (add_entries(pool, params->pool_size) ||
	    ibmr_mag_promise(pool->mag, params->pool_size))
		goto undo;
	if (pool->buckets)
		queue_delayed_work(ibmr_pool_wq, &pool->idle, idle_look());
	mutex_lock(&dev->mag_lock);
	ibmr_list_add(dev, &pool->listed, &dev->pools);
	mutex_unlock(&dev->mag_lock);
	ibmr_dev_exit(dev, noio);
	return pool;

undo:
	refcount_inc(&dev->refs);
	ibmr_dev_exit(dev, noio);
	pool_free(pool);
	err = ibmr_refuse(dev, why, "%s", __func__);
	ibmr_dev_put(dev);
	return ERR_PTR(err);
refuse:
	err = refuse_params(dev, why, params);
	kfree(pool);
	ibmr_exit(ipd, noio);
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
	users = pool->plain ? pool->mag->in_use : pool->users;
	if (users) {
		pool->destroyed = true;
		pool->wake = true;
		pool->plain = false;
		pool->short_pages = 0;
		pool->users = users + 1; /* ours: no release frees it before we are through */
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
		ibmr_pool_kick(pool, false);
	spin_unlock_irq(&pool->mag->lock);
}
EXPORT_SYMBOL(ib_destroy_fmr_pool);
