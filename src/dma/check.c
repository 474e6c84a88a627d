// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA checker: the live mappings of a device, and what may be done with them.
 *
 * A mapping is one allocation: what the map call was, and a run of device addresses for each entry
 * of the list (one for a single mapping). Each run is in an interval tree, that of the shard its
 * first page hashes to. The same memory may be mapped more than once, so runs may overlap, and an
 * unmap takes the mapping that fits it best. A sync may begin anywhere in a mapping: it is looked
 * for in the shard of its own page first (most syncs begin where the mapping does), then in others.
 *
 * Whoever takes the first run out of its tree owns the unmap; the others follow. Lookups hold a
 * reference, so that a sync that races with an unmap (the ULP's bug) does not become ours. After
 * the unmap a mapping is kept for a while in its shard's past, so that a second unmap can be told
 * from one of an address that never was, and a device that writes late (bounced only) is seen.
 *
 * Everything runs in any context. Memory is taken and given back outside the locks, data are copied
 * outside the locks, and reports are made outside the locks.
 */

#include <linux/debugfs.h>
#include <linux/dma-mapping.h>
#include <linux/fault-inject.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/fault.h"
#include "dma/check.h"

#define IBMR_DMA_GFP	(GFP_ATOMIC | __GFP_NOWARN)

#ifdef CONFIG_FAULT_INJECTION
DECLARE_FAULT_ATTR(ibmr_dma_fault_attr);
IBMR_EXPORT_INTERNAL(ibmr_dma_fault_attr);
#endif
static atomic_t ibmr_dma_fail_at;

void ibmr_dma_fail_map(unsigned int nth)
{
	atomic_set(&ibmr_dma_fail_at, nth);
}
IBMR_EXPORT_INTERNAL(ibmr_dma_fail_map);

/* Is this map to fail? By count, or by the kernel's fault injection (fail_dma_map in debugfs). */
bool ibmr_dma_should_fail(u64 size)
{
	if (atomic_read(&ibmr_dma_fail_at) > 0 && atomic_dec_return(&ibmr_dma_fail_at) == 0)
		return true;
#ifdef CONFIG_FAULT_INJECTION
	return should_fail(&ibmr_dma_fault_attr, size);
#else
	return false;
#endif
}

int ibmr_dma_fault_init(struct dentry *dir)
{
	debugfs_create_atomic_t("dma_fail_nth", 0600, dir, &ibmr_dma_fail_at);
#ifdef CONFIG_FAULT_INJECTION
	return PTR_ERR_OR_ZERO(fault_create_debugfs_attr("fail_dma_map", dir,
							 &ibmr_dma_fault_attr));
#else
	return 0;
#endif
}

void ibmr_dma_shards_init(struct ibmr_dma_dev *dd)
{
	int i;

	for (i = 0; i < IBMR_DMA_SHARDS; i++) {
		raw_spin_lock_init(&dd->shard[i].lock);
		dd->shard[i].live = RB_ROOT_CACHED;
	}
}

static u64 ibmr_dma_last(u64 addr, u64 size)
{
	u64 last = addr + max_t(u64, size, 1) - 1;

	return last < addr ? U64_MAX : last;
}

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
		kfree(map);
	}
}

static struct ibmr_dma_map *ibmr_dma_map_new(struct ibmr_dma_dev *dd,
					     const struct ibmr_dma_req *req, unsigned int nr)
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
	strscpy(map->comm, in_task() ? current->comm : "interrupt", sizeof(map->comm));
	ibmr_dma_stack_save(&map->at, req->ip);
	for (i = 0; i < nr; i++) {
		map->ent[i].map = map;
		RB_CLEAR_NODE(&map->ent[i].it.rb);
	}
	return map;
}

static void ibmr_dma_insert(struct ibmr_dma_map *map)
{
	struct ibmr_dma_dev *dd = map->dd;
	struct ibmr_dma_shard *shard;
	unsigned long flags;
	int i;

	atomic64_inc(&dd->live);
	atomic64_add(map->size, &dd->live_bytes);
	/* The first last: it is what an unmap looks for. */
	for (i = map->nr - 1; i >= 0; i--) {
		struct ibmr_dma_ent *ent = &map->ent[i];

		shard = &dd->shard[ibmr_dma_shard_of(ent->it.start)];
		ent->it.last = ibmr_dma_last(ent->it.start, ent->len);
		raw_spin_lock_irqsave(&shard->lock, flags);
		interval_tree_insert(&ent->it, &shard->live);
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
		shard = &dd->shard[ibmr_dma_shard_of(map->ent[i].it.start)];
		raw_spin_lock_irqsave(&shard->lock, flags);
		interval_tree_remove(&map->ent[i].it, &shard->live);
		raw_spin_unlock_irqrestore(&shard->lock, flags);
	}
	atomic64_sub(map->size, &dd->live_bytes);
}

/* Into the past; what falls out of it is looked at a last time. */
static void ibmr_dma_bury(struct ibmr_dma_map *map)
{
	struct ibmr_dma_shard *shard = &map->dd->shard[ibmr_dma_shard_of(map->ent[0].it.start)];
	struct ibmr_dma_map *old;
	unsigned long flags;

	raw_spin_lock_irqsave(&shard->lock, flags);
	old = shard->past[shard->next];
	shard->past[shard->next] = map;
	shard->next = (shard->next + 1) % IBMR_DMA_PAST;
	raw_spin_unlock_irqrestore(&shard->lock, flags);
	ibmr_dma_map_put(old);
}

void ibmr_dma_forget_past(struct ibmr_dma_dev *dd)
{
	struct ibmr_dma_map *old;
	unsigned long flags;
	int i, k;

	for (i = 0; i < IBMR_DMA_SHARDS; i++) {
		for (k = 0; k < IBMR_DMA_PAST; k++) {
			raw_spin_lock_irqsave(&dd->shard[i].lock, flags);
			old = dd->shard[i].past[k];
			dd->shard[i].past[k] = NULL;
			raw_spin_unlock_irqrestore(&dd->shard[i].lock, flags);
			ibmr_dma_map_put(old);
		}
	}
}

/* The youngest mapping that began at @addr and is unmapped; with a reference. */
static struct ibmr_dma_map *ibmr_dma_find_past(struct ibmr_dma_dev *dd, u64 addr)
{
	struct ibmr_dma_shard *shard = &dd->shard[ibmr_dma_shard_of(addr)];
	struct ibmr_dma_map *map = NULL;
	unsigned long flags;
	int k;

	raw_spin_lock_irqsave(&shard->lock, flags);
	for (k = 1; k <= IBMR_DMA_PAST; k++) {
		map = shard->past[(shard->next + IBMR_DMA_PAST - k) % IBMR_DMA_PAST];
		if (map && map->ent[0].it.start == addr) {
			refcount_inc(&map->refs);
			break;
		}
		map = NULL;
	}
	raw_spin_unlock_irqrestore(&shard->lock, flags);
	return map;
}

/*
 * A mapping that there is no memory to remember. Its unmap will be of an unknown address, and must
 * not be taken for a second one of what was mapped there before.
 */
static void ibmr_dma_untracked(struct ibmr_dma_dev *dd, u64 addr)
{
	struct ibmr_dma_shard *shard = &dd->shard[ibmr_dma_shard_of(addr)];
	struct ibmr_dma_map *old;
	unsigned long flags;
	int k;

	for (k = 0; k < IBMR_DMA_PAST; k++) {
		raw_spin_lock_irqsave(&shard->lock, flags);
		old = shard->past[k];
		if (old && old->ent[0].it.start == addr)
			shard->past[k] = NULL;
		else
			old = NULL;
		raw_spin_unlock_irqrestore(&shard->lock, flags);
		ibmr_dma_map_put(old);
	}
	ibmr_dma_add_count(dd, IBMR_DMA_N_UNTRACKED, 1);
	this_cpu_inc(ib_mr_dma_unseen);
}

/* What a buffer must not be. */
static void ibmr_dma_check_buffer(struct ibmr_dma_dev *dd, const struct ibmr_dma_req *req,
				  const void *cpu)
{
	if (object_is_on_stack(cpu))
		ibmr_dma_report(dd, IB_MR_DMA_ON_STACK, req->ip, NULL,
				"%s of %llu bytes at %#lx, %zu bytes above the stack's end",
				req->call, req->size, (unsigned long)cpu,
				(size_t)(cpu - task_stack_page(current)));
	else if (!virt_addr_valid(cpu))
		ibmr_dma_report(dd, IB_MR_DMA_NOT_LINEAR, req->ip, NULL,
				"%s of %llu bytes at %#lx%s", req->call, req->size,
				(unsigned long)cpu,
				is_vmalloc_addr(cpu) ? ", which is vmalloc memory" : "");
}

static u64 ibmr_dma_plain(struct ibmr_dma_dev *dd, const struct ibmr_dma_req *req)
{
	if (req->page)
		return ib_mr_dma_plain_map_page(dd->ibdev, req->page, req->offset, req->size,
						req->dir, req->attrs);
	return ib_mr_dma_plain_map(dd->ibdev, req->cpu, req->size, req->dir, req->attrs);
}

/* ib_dma_map_single(), ib_dma_map_page() */
u64 ibmr_dma_check_map(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req)
{
	bool bounce = READ_ONCE(dd->mode) == IB_MR_DMA_BOUNCE;
	struct ibmr_dma_map *map;
	u64 addr;

	if (ibmr_dma_should_fail(req->size))
		goto failed;
	ibmr_dma_check_buffer(dd, req, req->cpu);
	map = ibmr_dma_map_new(dd, req, 1);
	if (bounce) {
		if (!map)
			goto failed;
		map->ent[0].cpu = req->cpu;
		map->ent[0].len = req->size;
		if (!ibmr_dma_bounce(map)) {
			ibmr_dma_map_put(map);
			goto failed;
		}
		addr = map->ent[0].it.start;
	} else {
		addr = ibmr_dma_plain(dd, req);
		if (ib_dma_mapping_error(dd->ibdev, addr)) {
			ibmr_dma_map_put(map);
			ibmr_dma_add_count(dd, IBMR_DMA_N_FAILED, 1);
			return addr;
		}
		if (!map) {
			ibmr_dma_untracked(dd, addr);
			return addr;
		}
		map->ent[0].it.start = addr;
		map->ent[0].len = req->size;
	}
	ibmr_dma_add_count(dd, IBMR_DMA_N_MAPS, 1);
	ibmr_dma_insert(map);
	return addr;
failed:
	ibmr_dma_add_count(dd, IBMR_DMA_N_FAILED, 1);
	return DMA_MAPPING_ERROR;
}

int ibmr_dma_check_map_sg(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req)
{
	bool bounce = READ_ONCE(dd->mode) == IB_MR_DMA_BOUNCE;
	int i, n = req->nents;
	struct ibmr_dma_map *map;
	struct scatterlist *s;

	for_each_sg(req->sg, s, req->nents, i)
		req->size += s->length;
	if (ibmr_dma_should_fail(req->size))
		goto failed;
	for_each_sg(req->sg, s, req->nents, i)
		ibmr_dma_check_buffer(dd, req, sg_virt(s));
	map = ibmr_dma_map_new(dd, req, req->nents);
	if (bounce) {
		if (!map)
			goto failed;
		for_each_sg(req->sg, s, n, i) {
			map->ent[i].cpu = sg_virt(s);
			map->ent[i].len = s->length;
		}
		if (!ibmr_dma_bounce(map)) {
			ibmr_dma_map_put(map);
			goto failed;
		}
		ibmr_dma_bounce_list(map, req->sg);
	} else {
		n = ib_dma_map_sg_attrs(dd->ibdev, req->sg, req->nents, req->dir, req->attrs);
		if (n <= 0) {
			ibmr_dma_map_put(map);
			ibmr_dma_add_count(dd, IBMR_DMA_N_FAILED, 1);
			return n;
		}
		if (!map) {
			ibmr_dma_untracked(dd, sg_dma_address(req->sg));
			return n;
		}
		/* A device with a real DMA path may have merged entries. */
		map->nr = n;
		for_each_sg(req->sg, s, n, i) {
			map->ent[i].it.start = sg_dma_address(s);
			map->ent[i].len = sg_dma_len(s);
		}
	}
	ibmr_dma_add_count(dd, IBMR_DMA_N_MAPS, 1);
	ibmr_dma_insert(map);
	return n;
failed:
	ibmr_dma_add_count(dd, IBMR_DMA_N_FAILED, 1);
	return 0;
}

/* ib_dma_alloc_coherent(), after the allocation. */
void ibmr_dma_check_coherent(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req)
{
	struct ibmr_dma_map *map = ibmr_dma_map_new(dd, req, 1);

	if (!map) {
		ibmr_dma_untracked(dd, req->addr);
		return;
	}
	map->ent[0].it.start = req->addr;
	map->ent[0].len = req->size;
	ibmr_dma_add_count(dd, IBMR_DMA_N_MAPS, 1);
	ibmr_dma_insert(map);
}

/* How well an unmap fits a mapping that begins where it says. */
static int ibmr_dma_fit(const struct ibmr_dma_map *map, const struct ibmr_dma_req *req)
{
	int fit = 0;

	if (map->how == req->how)
		fit += 8;
	if (req->sg && map->sg == req->sg)
		fit += 4;
	if (map->how == IBMR_DMA_SG ? map->nents == req->nents : map->size == req->size)
		fit += 2;
	if (map->dir == req->dir)
		fit += 1;
	return fit;
}

/*
 * Take out of the tree the mapping that an unmap is meant for. *@inner is set to a mapping of which
 * @req->addr begins an entry that is not the first (referenced), when there is no other.
 */
static struct ibmr_dma_map *ibmr_dma_take(struct ibmr_dma_dev *dd, const struct ibmr_dma_req *req,
					  struct ibmr_dma_map **inner)
{
	struct ibmr_dma_shard *shard = &dd->shard[ibmr_dma_shard_of(req->addr)];
	struct ibmr_dma_ent *ent, *best = NULL, *part = NULL;
	unsigned long flags;

	*inner = NULL;
	raw_spin_lock_irqsave(&shard->lock, flags);
	ibmr_dma_for_each(ent, shard, req->addr, req->addr) {
		if (ent->it.start != req->addr)
			continue;
		if (ent != &ent->map->ent[0])
			part = ent;
		else if (!best || ibmr_dma_fit(ent->map, req) > ibmr_dma_fit(best->map, req))
			best = ent;
	}
	if (best) {
		interval_tree_remove(&best->it, &shard->live);
	} else if (part) {
		*inner = part->map;
		refcount_inc(&part->map->refs);
	}
	raw_spin_unlock_irqrestore(&shard->lock, flags);
	return best ? best->map : NULL;
}

/* An unmap that fits no mapping: why? */
static void ibmr_dma_unmap_unknown(struct ibmr_dma_dev *dd, const struct ibmr_dma_req *req,
				   struct ibmr_dma_map *inner)
{
	struct ibmr_dma_map *past;

	if (inner) {
		ibmr_dma_report(dd, IB_MR_DMA_UNMAP_CALL, req->ip, inner,
				"%s of one entry of a list; the list as a whole has to be unmapped",
				req->call);
		ibmr_dma_map_put(inner);
		return;
	}
	if (req->addr == DMA_MAPPING_ERROR) {
		ibmr_dma_report(dd, IB_MR_DMA_NEVER_MAPPED, req->ip, NULL,
				"%s of what a failed map returned", req->call);
		return;
	}
	past = ibmr_dma_find_past(dd, req->addr);
	if (past) {
		ibmr_dma_report(dd, IB_MR_DMA_UNMAP_TWICE, req->ip, past, "%s of %#llx",
				req->call, req->addr);
		ibmr_dma_map_put(past);
	} else if (ibmr_dma_unseen() > 0) {
		this_cpu_dec(ib_mr_dma_unseen);
		ibmr_dma_add_count(dd, IBMR_DMA_N_UNSEEN, 1);
	} else {
		ibmr_dma_report(dd, IB_MR_DMA_NEVER_MAPPED, req->ip, NULL,
				"%s of %#llx, %llu bytes, %s", req->call, req->addr, req->size,
				ibmr_dma_dir_name(req->dir));
	}
}

static void ibmr_dma_unmap_differs(struct ibmr_dma_map *map, const struct ibmr_dma_req *req)
{
	struct ibmr_dma_dev *dd = map->dd;

	if (map->how != req->how)
		ibmr_dma_report(dd, IB_MR_DMA_UNMAP_CALL, req->ip, map, "by %s", req->call);
	else if (map->how == IBMR_DMA_SG && map->nents != req->nents)
		ibmr_dma_report(dd, IB_MR_DMA_UNMAP_SIZE, req->ip, map,
				"%s with %d entries, mapped with %d (the unmap takes what was given to the map, not what it returned)",
				req->call, req->nents, map->nents);
	else if (map->how != IBMR_DMA_SG && map->size != req->size)
		ibmr_dma_report(dd, IB_MR_DMA_UNMAP_SIZE, req->ip, map,
				"%s with %llu bytes, mapped with %llu", req->call, req->size,
				map->size);
	if (map->how != IBMR_DMA_COHERENT && map->dir != req->dir)
		ibmr_dma_report(dd, IB_MR_DMA_UNMAP_DIR, req->ip, map, "%s with %s, mapped with %s",
				req->call, ibmr_dma_dir_name(req->dir),
				ibmr_dma_dir_name(map->dir));
	if (!map->checked && !map->told_unchecked)
		ibmr_dma_report(dd, IB_MR_DMA_UNCHECKED, req->ip, map,
				"unmapped, and its error was never asked for");
}

/* Every unmap, and ib_dma_free_coherent(). Returns the mapping's size, 0 where there was none. */
u64 ibmr_dma_check_unmap(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req)
{
	/* Switched off meanwhile: put things in order, say nothing. */
	bool quiet = READ_ONCE(dd->mode) == IB_MR_DMA_OFF;
	struct ibmr_dma_map *map, *inner;
	u64 size;

	map = ibmr_dma_take(dd, req, &inner);
	if (!map && quiet) {
		ibmr_dma_map_put(inner);
		this_cpu_dec(ib_mr_dma_unseen);
		return 0;
	}
	if (!map) {
		ibmr_dma_unmap_unknown(dd, req, inner);
		return 0;
	}
	ibmr_dma_add_count(dd, IBMR_DMA_N_UNMAPS, 1);
	if (!quiet)
		ibmr_dma_unmap_differs(map, req);
	if (map->bounced)
		ibmr_dma_bounce_end(map, req->dir, req->attrs, quiet, req->ip);
	size = map->size;
	ibmr_dma_stack_save(&map->gone, req->ip);
	ibmr_dma_remove_rest(map);
	/* With no lookup left, nobody has eyes for its shadow but the device. */
	if (map->bounced && refcount_read(&map->refs) == 1)
		ibmr_dma_bounce_shrink(map);
	ibmr_dma_bury(map);
	/* Last: who sees none live may free the device's state. */
	smp_mb__before_atomic();
	atomic64_dec(&dd->live);
	return size;
}

/* The run that a sync is meant for, with a reference; else one that it touches, in *@part. */
static struct ibmr_dma_ent *ibmr_dma_find_sync(struct ibmr_dma_dev *dd,
					       const struct ibmr_dma_req *req,
					       struct ibmr_dma_map **part)
{
	unsigned int first = ibmr_dma_shard_of(req->addr);
	u64 last = ibmr_dma_last(req->addr, req->size);
	struct ibmr_dma_ent *ent, *found = NULL;
	struct ibmr_dma_shard *shard;
	unsigned long flags;
	unsigned int i;

	*part = NULL;
	for (i = 0; i < IBMR_DMA_SHARDS && !found; i++) {
		shard = &dd->shard[(first + i) % IBMR_DMA_SHARDS];
		raw_spin_lock_irqsave(&shard->lock, flags);
		ibmr_dma_for_each(ent, shard, req->addr, last) {
			if (ent->it.start > req->addr || ent->it.last < last) {
				if (!*part) {
					*part = ent->map;
					refcount_inc(&ent->map->refs);
				}
				continue;
			}
			found = ent;
			if (ent->map->dir == req->dir)
				break;
		}
		if (found)
			refcount_inc(&found->map->refs);
		raw_spin_unlock_irqrestore(&shard->lock, flags);
	}
	if (found) {
		ibmr_dma_map_put(*part);
		*part = NULL;
	}
	return found;
}

static void ibmr_dma_sync_unknown(struct ibmr_dma_dev *dd, const struct ibmr_dma_req *req,
				  struct ibmr_dma_map *part)
{
	struct ibmr_dma_map *map = part ?: ibmr_dma_find_past(dd, req->addr);

	if (!map && ibmr_dma_unseen() > 0) {
		ibmr_dma_add_count(dd, IBMR_DMA_N_UNSEEN, 1);
		return;
	}
	ibmr_dma_report(dd, IB_MR_DMA_SYNC_OUTSIDE, req->ip, map, "%s of [%#llx, +%llu)%s",
			req->call, req->addr, req->size,
			!map ? "" : part ? ", of which only a part is mapped" :
			", which is unmapped already");
	ibmr_dma_map_put(map);
}

void ibmr_dma_check_sync(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req, bool for_cpu)
{
	bool quiet = READ_ONCE(dd->mode) == IB_MR_DMA_OFF;
	struct ibmr_dma_map *map, *part;
	struct ibmr_dma_ent *ent;

	ibmr_dma_add_count(dd, IBMR_DMA_N_SYNCS, 1);
	if (!req->size)
		return;
	ent = ibmr_dma_find_sync(dd, req, &part);
	if (!ent) {
		if (!quiet)
			ibmr_dma_sync_unknown(dd, req, part);
		else
			ibmr_dma_map_put(part);
		return;
	}
	map = ent->map;
	if (!quiet && map->dir != req->dir && map->dir != DMA_BIDIRECTIONAL)
		ibmr_dma_report(dd, IB_MR_DMA_SYNC_DIR, req->ip, map, "%s with %s, mapped with %s",
				req->call, ibmr_dma_dir_name(req->dir),
				ibmr_dma_dir_name(map->dir));
	if (map->bounced)
		ibmr_dma_bounce_sync(map, ent, req->addr, req->size, req->dir, for_cpu,
				     quiet ? 0 : req->ip);
	ibmr_dma_map_put(map);
}

/* ib_dma_mapping_error(): of the mappings at @addr, one more was asked about. */
int ibmr_dma_check_error(struct ibmr_dma_dev *dd, u64 addr)
{
	struct ibmr_dma_shard *shard = &dd->shard[ibmr_dma_shard_of(addr)];
	struct ibmr_dma_ent *ent;
	unsigned long flags;

	raw_spin_lock_irqsave(&shard->lock, flags);
	ibmr_dma_for_each(ent, shard, addr, addr) {
		if (ent->it.start == addr && !ent->map->checked) {
			ent->map->checked = true;
			break;
		}
	}
	raw_spin_unlock_irqrestore(&shard->lock, flags);
	return 0;
}

/* A region is made of [@addr, @addr + @len). */
void ibmr_dma_check_used(struct ibmr_dma_dev *dd, u64 addr, u64 len)
{
	u64 last = ibmr_dma_last(addr, len);
	struct ibmr_dma_shard *shard;
	struct ibmr_dma_map *map;
	struct ibmr_dma_ent *ent;
	unsigned long flags;
	unsigned int i;

	if (addr == DMA_MAPPING_ERROR) {
		ibmr_dma_report(dd, IB_MR_DMA_UNCHECKED, 0, NULL,
				"a region of %llu bytes is made of what a failed map returned",
				len);
		return;
	}
	for (i = 0; i < IBMR_DMA_SHARDS; i++) {
		shard = &dd->shard[i];
		do {
			map = NULL;
			raw_spin_lock_irqsave(&shard->lock, flags);
			ibmr_dma_for_each(ent, shard, addr, last) {
				if (ent->map->checked || ent->map->told_unchecked)
					continue;
				map = ent->map;
				map->told_unchecked = true;
				refcount_inc(&map->refs);
				break;
			}
			raw_spin_unlock_irqrestore(&shard->lock, flags);
			if (map)
				ibmr_dma_report(dd, IB_MR_DMA_UNCHECKED, 0, map,
						"a region is made of it");
			ibmr_dma_map_put(map);
		} while (map);
	}
}
