/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_FMR_POOL_H
#define IBMR_FMR_POOL_H

#include <linux/wait.h>
#include <linux/workqueue.h>

#include "fmr/fmr.h"

#define IBMR_POOL_BUCKETS_BITS	8

/* @pub has the caller's page list behind it, so it comes last. @next: behind it in pool->free. */
struct pool_entry {
	struct ib_fmr fmr;
	struct ib_pool_fmr *next;
	struct ibmr_armed *armed;	/* mapped, or withdrawn and kept for its key */
	unsigned long idle_since;
	bool mapped;
	struct ib_pool_fmr pub;
};

/**
 * struct ib_fmr_pool - a pool
 * @mag: its magazine; mag->lock guards what follows
 * @plain: neither cache nor key_maps nor anybody to be woken: a release has one way to go
 * @one_size: no quarantine between two maps of an MR (key_maps, rekey_at_once). A packet may be in
 *	it while it is mapped anew, and the driver changes list and block size one after the other:
 *	with blocks of another size it would reach what is in neither mapping. So all are pages
 * @short_pages: longest page list that goes the short way; 0 when none does: not @plain, or pages
 *               of another size than PAGE_SIZE
 * @page_mask: bits of an address within a page
 * @free: entries to take, without cache: the one released first is the first to be taken
 * @last: the last of them, while there is one
 * @free_list: the same with cache
 * @buckets: mapped entries by first page, with cache; NULL without
 * @dirty: released since the last flush; not counted when @plain, where nobody asks
 * @wake: the flush work wants to know of releases
 * @fence: the next flush is a fence
 * @users: entries in use; when @plain, mag->in_use says it
 * @req: flushes asked for
 * @done: flushes carried out
 * @destroyed: ib_destroy_fmr_pool() was called, and left entries in use
 * @peak: most entries ever in use
 * @spare: how many fewer are in use now, when @plain: counting down costs least
 * @cached: entries that are idle and keep their mapping, with cache
 * @flushes: flushes carried out
 * @param: as given
 * @pd: PD
 * @pdn: its number; a PD may go before the pool when its device went
 * @ipd: its state; one user is ours
 * @nr: entries there are
 * @flush: flush work
 * @idle: looks for idle mappings, with cache
 * @flushed: who waits for @done
 * @hits: requests that the cache served
 * @again: maps that were refused since none was free
 * @listed: in dev->pools
 */
struct ib_fmr_pool {
	struct ibmr_mag *mag;
	struct ib_pool_fmr *free;
	struct ib_pool_fmr *last;
	struct list_head free_list;
	struct hlist_head *buckets;
	bool plain;
	unsigned int short_pages;
	bool one_size;
	u64 page_mask;
	int spare;
	int dirty;
	bool wake;
	bool fence;
	unsigned int users;
	unsigned int req;
	unsigned int done;
	bool destroyed;
	unsigned int peak;
	unsigned int cached;
	u64 flushes;
	u64 hits;
	struct ib_fmr_pool_param param;
	struct ib_pd *pd;
	u32 pdn;
	struct ibmr_pd *ipd;
	unsigned int nr;
	struct work_struct flush;
	struct delayed_work idle;
	wait_queue_head_t flushed;
	atomic64_t again;
	struct ibmr_listed listed;
};

/* Released, and not fit for use again. Under mag->lock. */
static inline unsigned int ibmr_pool_dirty(const struct ib_fmr_pool *pool)
{
	const struct ibmr_mag *mag = pool->mag;

	return mag->retired.nr + mag->quarantine.nr + mag->due.nr;
}

static inline struct pool_entry *ibmr_pool_entry(struct ib_pool_fmr *pub)
{
	return container_of(pub, struct pool_entry, pub);
}

/* map.c, under mag->lock */
void ibmr_pool_withdraw(struct ib_fmr_pool *pool, struct pool_entry *e);
void ibmr_pool_free(struct ib_fmr_pool *pool, struct pool_entry *e);

/* pool.c, under mag->lock */
void ibmr_pool_kick(struct ib_fmr_pool *pool, bool fence);

#endif /* IBMR_FMR_POOL_H */
