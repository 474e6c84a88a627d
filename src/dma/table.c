// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA checker: the table of a device's mappings.
 *
 * A mapping is one allocation: what the map call was, and a run of device addresses for each entry
 * of the list (one for a single mapping). Each run is in a tree of intervals, that of the shard its
 * first page hashes to. The same memory may be mapped more than once, so runs may overlap, and runs
 * that begin at one address are ordered by what else an unmap says of them (the tie). So an unmap
 * finds the mapping that fits it exactly, however many there are of the same buffer.
 *
 * Nobody but the address tells ib_dma_mapping_error() which mapping is meant. A mapping whose error
 * was not asked for has the tie 0 and is the first of its address, so it is found at once, and an
 * unmap that fits two takes the other. When a second one comes there, it cannot be told any more
 * who asked for which: both count as checked, and nothing is said of them.
 *
 * Whoever takes the first run out of its tree owns the unmap; the others follow. Lookups hold a
 * reference, so that a sync that races with an unmap (the ULP's bug) does not become ours. After
 * the unmap a mapping is kept in its shard's past, so that a second unmap can be told from one of
 * an address that never was; the youngest keep their shadows, so that a device that writes late is
 * seen.
 *
 * Any context. Memory is taken and given back outside the locks.
 */

#include <linux/interval_tree_generic.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/fault.h"
#include "dma/check.h"

#define IBMR_DMA_GFP	(GFP_ATOMIC | __GFP_NOWARN)

#define IBMR_DMA_START(ent)	((ent)->start)
#define IBMR_DMA_LAST(ent)	((ent)->last)

INTERVAL_TREE_DEFINE(struct ibmr_dma_ent, rb, u64, upto, IBMR_DMA_START, IBMR_DMA_LAST,
		     static inline, ibmr_dma_it)

void ibmr_dma_shards_init(struct ibmr_dma_dev *dd)
{
	int i;

	raw_spin_lock_init(&dd->was_lock);
	for (i = 0; i < IBMR_DMA_SHARDS; i++) {
		raw_spin_lock_init(&dd->shard[i].lock);
		dd->shard[i].live = RB_ROOT_CACHED;
	}
}

/* --- one shard's tree, under its lock --- */

struct ibmr_dma_ent *ibmr_dma_ent_first(struct ibmr_dma_shard *shard, u64 first, u64 last)
{
	return ibmr_dma_it_iter_first(&shard->live, first, last);
}

struct ibmr_dma_ent *ibmr_dma_ent_next(struct ibmr_dma_ent *ent, u64 first, u64 last)
{
	return ibmr_dma_it_iter_next(ent, first, last);
}

static struct ibmr_dma_ent *ibmr_dma_ent(struct rb_node *rb)
{
	return rb_entry_safe(rb, struct ibmr_dma_ent, rb);
}

/* The first run from (@start, @tie) on, if it begins at @start. */
struct ibmr_dma_ent *ibmr_dma_ent_at(struct ibmr_dma_shard *shard, u64 start, u64 tie)
{
	struct rb_node *rb = shard->live.rb_root.rb_node;
	struct ibmr_dma_ent *ent, *found = NULL;

	while (rb) {
		ent = ibmr_dma_ent(rb);
		if (ent->start < start || (ent->start == start && ent->tie < tie)) {
			rb = rb->rb_right;
		} else {
			found = ent;
			rb = rb->rb_left;
		}
	}
	return found && found->start == start ? found : NULL;
}

/* The next that begins at the same address. */
struct ibmr_dma_ent *ibmr_dma_ent_twin(struct ibmr_dma_ent *ent)
{
	struct ibmr_dma_ent *next = ibmr_dma_ent(rb_next(&ent->rb));

	return next && next->start == ent->start ? next : NULL;
}

/* As the generic insertion, but those that begin at one address are in the order of their ties. */
static void ibmr_dma_ent_insert(struct ibmr_dma_shard *shard, struct ibmr_dma_ent *ent)
{
	struct rb_node **link = &shard->live.rb_root.rb_node, *parent = NULL;
	bool leftmost = true;

	while (*link) {
		struct ibmr_dma_ent *at = ibmr_dma_ent(*link);

		parent = *link;
		at->upto = max(at->upto, ent->last);
		if (ent->start < at->start || (ent->start == at->start && ent->tie < at->tie)) {
			link = &parent->rb_left;
		} else {
			link = &parent->rb_right;
			leftmost = false;
		}
	}
	ent->upto = ent->last;
	rb_link_node(&ent->rb, parent, link);
	rb_insert_augmented_cached(&ent->rb, &shard->live, leftmost, &ibmr_dma_it_augment);
}

void ibmr_dma_ent_remove(struct ibmr_dma_shard *shard, struct ibmr_dma_ent *ent)
{
	ibmr_dma_it_remove(ent, &shard->live);
}

/* In a tie: not the first entry of a list. Directions leave the bit alone. */
#define IBMR_DMA_TIE_REST	BIT(2)

/* What an unmap says of a mapping, beside the address. Never 0. */
u64 ibmr_dma_tie(enum ibmr_dma_how how, enum dma_data_direction dir, u64 size,
		 const struct scatterlist *sg)
{
	u64 what = how == IBMR_DMA_SG ? (uintptr_t)sg : size;

	return what << 6 | (u64)(how + 1) << 3 | ((u64)dir & 3);
}

static u64 ibmr_dma_tie_of(const struct ibmr_dma_map *map)
{
	return ibmr_dma_tie(map->how, map->dir, map->size, map->sg);
}

/* The error of the mapping of @ent was asked for, or nobody can tell. */
void ibmr_dma_asked(struct ibmr_dma_shard *shard, struct ibmr_dma_ent *ent)
{
	ent->map->checked = true;
	if (ibmr_dma_ent_twin(ent)) {
		ibmr_dma_ent_remove(shard, ent);
		ent->tie = ibmr_dma_tie_of(ent->map);
		ibmr_dma_ent_insert(shard, ent);
	} else {
		/* Unchecked it was the first of its address, so now it is the only one. */
		ent->tie = ibmr_dma_tie_of(ent->map);
	}
}

/* --- mappings --- */

struct ibmr_dma_map *ibmr_dma_map_alloc(unsigned int nr)
{
	struct ibmr_dma_map *map;

	if (ibmr_should_fail(IBMR_FAULT_ALLOC))
		return NULL;
	map = kzalloc(struct_size(map, ent, nr), IBMR_DMA_GFP);
	if (map) {
		map->nr = nr;
		refcount_set(&map->refs, 1);
	}
	return map;
}

void ibmr_dma_map_put(struct ibmr_dma_map *map)
{
	if (map && refcount_dec_and_test(&map->refs)) {
		ibmr_dma_bounce_free(map);
		ibmr_dma_chain_put(map->at);
		ibmr_dma_chain_put(map->gone_at);
		kfree(map);
	}
}

struct ibmr_dma_map *ibmr_dma_map_new(struct ibmr_dma_dev *dd, const struct ibmr_dma_req *req,
				      unsigned int nr)
{
	struct ibmr_dma_map *map = ibmr_dma_map_alloc(nr);
	unsigned int i;

	if (!map)
		return NULL;
	map->dd = dd;
	map->how = req->how;
	map->dir = req->dir;
	map->attrs = req->attrs;
	map->checked = req->how != IBMR_DMA_SINGLE;
	map->sg = req->sg;
	map->nents = req->nents;
	map->size = req->size;
	map->of = req->of;
	map->when = jiffies;
	map->pid = current->pid;
	/* get_task_comm() takes a lock that interrupts do not respect */
	if (in_task())
		memcpy(map->comm, current->comm, sizeof(map->comm));
	else
		strscpy(map->comm, "interrupt", sizeof(map->comm));
	map->comm[sizeof(map->comm) - 1] = 0;
	map->ip = req->ip;
	map->at = ibmr_dma_chain_get(req->ip);
	for (i = 0; i < nr; i++)
		map->ent[i].map = map;
	return map;
}

void ibmr_dma_insert(struct ibmr_dma_map *map)
{
	struct ibmr_dma_dev *dd = map->dd;
	struct ibmr_dma_shard *shard;
	unsigned long flags;
	int i;

	atomic64_inc(&dd->live);
	atomic64_add(map->size, &dd->live_bytes);
	/* The first last: it is what an unmap looks for. */
	for (i = map->nr - 1; i >= 0; i--) {
		struct ibmr_dma_ent *ent = &map->ent[i], *first;

		shard = &dd->shard[ibmr_dma_shard_of(ent->start)];
		ent->last = ibmr_dma_last(ent->start, ent->len);
		raw_spin_lock_irqsave(&shard->lock, flags);
		if (!map->checked) {
			first = ibmr_dma_ent_at(shard, ent->start, 0);
			if (first && !first->tie) {
				ibmr_dma_asked(shard, first);
				map->checked = true;
			}
		}
		/* An unmap means the first: it stands before the others of its address. */
		ent->tie = map->checked ? ibmr_dma_tie_of(map) | (i ? IBMR_DMA_TIE_REST : 0) : 0;
		ibmr_dma_ent_insert(shard, ent);
		raw_spin_unlock_irqrestore(&shard->lock, flags);
	}
}

/* Take the others out after the first. */
void ibmr_dma_remove_rest(struct ibmr_dma_map *map)
{
	struct ibmr_dma_dev *dd = map->dd;
	struct ibmr_dma_shard *shard;
	unsigned long flags;
	unsigned int i;

	for (i = 1; i < map->nr; i++) {
		shard = &dd->shard[ibmr_dma_shard_of(map->ent[i].start)];
		raw_spin_lock_irqsave(&shard->lock, flags);
		ibmr_dma_ent_remove(shard, &map->ent[i]);
		raw_spin_unlock_irqrestore(&shard->lock, flags);
	}
	atomic64_sub(map->size, &dd->live_bytes);
}

/* --- the past --- */

/*
 * Into the past. What is no longer among the youngest loses its shadow, at which it is looked a
 * last time; not if a sync is still at it, which the ULP lets race with the unmap.
 */
void ibmr_dma_bury(struct ibmr_dma_map *map)
{
	struct ibmr_dma_shard *shard = &map->dd->shard[ibmr_dma_shard_of(map->ent[0].start)];
	struct ibmr_dma_map *old, *late;
	unsigned long flags;

	raw_spin_lock_irqsave(&shard->lock, flags);
	old = shard->past[shard->next];
	shard->past[shard->next] = map;
	late = shard->past[(shard->next + IBMR_DMA_PAST - IBMR_DMA_LATE) % IBMR_DMA_PAST];
	if (late && (!late->bounced || refcount_read(&late->refs) != 1))
		late = NULL;
	if (late)
		refcount_inc(&late->refs);
	shard->next = (shard->next + 1) % IBMR_DMA_PAST;
	raw_spin_unlock_irqrestore(&shard->lock, flags);
	ibmr_dma_map_put(old);
	if (late) {
		ibmr_dma_bounce_free(late);
		ibmr_dma_map_put(late);
	}
}

void ibmr_dma_forget_past(struct ibmr_dma_dev *dd)
{
	struct ibmr_dma_map *old;
	unsigned long flags;
	int i, k;

	for (i = 0; i < IBMR_DMA_SHARDS; i++) {
		for (k = 0; k < IBMR_DMA_PAST; k++) {
			if (!READ_ONCE(dd->shard[i].past[k]))
				continue;
			raw_spin_lock_irqsave(&dd->shard[i].lock, flags);
			old = dd->shard[i].past[k];
			dd->shard[i].past[k] = NULL;
			raw_spin_unlock_irqrestore(&dd->shard[i].lock, flags);
			ibmr_dma_map_put(old);
		}
	}
}

/* The youngest mapping that began at @addr, is unmapped, and fits; with a reference. */
struct ibmr_dma_map *ibmr_dma_find_past(struct ibmr_dma_dev *dd, u64 addr,
					bool (*fits)(const struct ibmr_dma_map *map))
{
	struct ibmr_dma_shard *shard = &dd->shard[ibmr_dma_shard_of(addr)];
	struct ibmr_dma_map *map = NULL;
	unsigned long flags;
	int k;

	raw_spin_lock_irqsave(&shard->lock, flags);
	for (k = 1; k <= IBMR_DMA_PAST; k++) {
		map = shard->past[(shard->next + IBMR_DMA_PAST - k) % IBMR_DMA_PAST];
		if (map && map->ent[0].start == addr && fits(map)) {
			refcount_inc(&map->refs);
			break;
		}
		map = NULL;
	}
	raw_spin_unlock_irqrestore(&shard->lock, flags);
	return map;
}
