// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA checker: the rules for maps and unmaps.
 *
 * A checker must not be wrong. On a device whose addresses are the memory's, a mapping is known by
 * nothing but what the caller says of it: address, size, direction, kind of call. An unmap takes
 * the mapping that fits it in all of these. One that fits none may be of a mapping that is
 * older than the checker; as long as there may be such ones (unseen.c), it is taken for one of
 * those and nothing is said, also when another mapping of that address is there and fits badly. A
 * bounced mapping has addresses that no other has, so there nothing is ambiguous.
 *
 * Coherent memory is apart: no streaming call takes it out of the table, and what it is freed by
 * is its own size. Memory that is freed a second time, or was never allocated, is not freed.
 *
 * Any context. Memory is taken and given back outside the locks, data are copied outside the locks,
 * and reports are made outside the locks.
 */

#define pr_fmt(fmt) "ib_mr: " fmt

#include <linux/debugfs.h>
#include <linux/dma-mapping.h>
#include <linux/fault-inject.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/task_stack.h>

#include "base/compat.h"
#include "base/fault.h"
#include "dma/check.h"

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

/*
 * A mapping that there is no memory to remember: to the checker it is as one from before it came.
 */
static void ibmr_dma_untracked(struct ibmr_dma_dev *dd, const struct ibmr_dma_req *req)
{
	ibmr_dma_add_count(dd, IBMR_DMA_N_UNTRACKED, 1);
	ibmr_dma_unseen_add(dd->ibdev, req->how == IBMR_DMA_COHERENT ? IBMR_DMA_MEMORY :
			    IBMR_DMA_STREAMING, req->of, 1);
}

/* More than a shadow can have is refused, in words once for each device. */
static bool ibmr_dma_too_large(struct ibmr_dma_dev *dd, const struct ibmr_dma_req *req, u64 size)
{
	if (size <= IBMR_DMA_BOUNCE_MAX)
		return false;
	if (!atomic_xchg(&dd->told_large, 1))
		pr_warn("%s: DMA: %s of %llu bytes fails under dma_check=bounce, which maps up to %u at a time\n",
			dd->name, req->call, size, IBMR_DMA_BOUNCE_MAX);
	return true;
}

/* ib_dma_map_single(), ib_dma_map_page() */
u64 ibmr_dma_check_map(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req)
{
	int mode = READ_ONCE(dd->mode);
	struct ibmr_dma_map *map;
	u64 addr;

	if (ibmr_dma_should_fail(req->size))
		goto failed;
	ibmr_dma_check_buffer(dd, req, req->cpu);
	if (mode >= IB_MR_DMA_BOUNCE && ibmr_dma_too_large(dd, req, req->size))
		goto failed;
	map = ibmr_dma_map_new(dd, req, 1);
	if (mode >= IB_MR_DMA_BOUNCE) {
		if (!map)
			goto failed;
		map->strict = mode == IB_MR_DMA_BOUNCE_STRICT;
		map->ent[0].cpu = req->cpu;
		map->ent[0].len = req->size;
		if (!ibmr_dma_bounce(map)) {
			ibmr_dma_map_put(map);
			goto failed;
		}
		addr = map->ent[0].start;
	} else {
		addr = ibmr_dma_plain(dd, req);
		if (ib_dma_mapping_error(dd->ibdev, addr)) {
			ibmr_dma_map_put(map);
			ibmr_dma_add_count(dd, IBMR_DMA_N_FAILED, 1);
			return addr;
		}
		if (!map) {
			ibmr_dma_untracked(dd, req);
			return addr;
		}
		map->ent[0].start = addr;
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
	int mode = READ_ONCE(dd->mode);
	int i, n = req->nents;
	struct ibmr_dma_map *map;
	struct scatterlist *s;

	for_each_sg(req->sg, s, req->nents, i)
		req->size += s->length;
	if (ibmr_dma_should_fail(req->size))
		goto failed;
	for_each_sg(req->sg, s, req->nents, i) {
		ibmr_dma_check_buffer(dd, req, sg_virt(s));
		if (mode >= IB_MR_DMA_BOUNCE && ibmr_dma_too_large(dd, req, s->length))
			goto failed;
	}
	map = ibmr_dma_map_new(dd, req, req->nents);
	if (mode >= IB_MR_DMA_BOUNCE) {
		if (!map)
			goto failed;
		map->strict = mode == IB_MR_DMA_BOUNCE_STRICT;
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
			ibmr_dma_untracked(dd, req);
			return n;
		}
		/* A device with a real DMA path may have merged entries. */
		map->nr = n;
		for_each_sg(req->sg, s, n, i) {
			map->ent[i].start = sg_dma_address(s);
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
		ibmr_dma_untracked(dd, req);
		return;
	}
	map->ent[0].start = req->addr;
	map->ent[0].len = req->size;
	ibmr_dma_add_count(dd, IBMR_DMA_N_MAPS, 1);
	ibmr_dma_insert(map);
}

/* --- unmaps --- */

/* In all that the caller says? The list may be a copy of the one that was mapped. */
static bool ibmr_dma_fits(const struct ibmr_dma_map *map, const struct ibmr_dma_req *req)
{
	return map->how == req->how && map->dir == req->dir &&
	       (map->how == IBMR_DMA_SG ? map->nents == req->nents : map->size == req->size);
}

/* How well, where not in all. */
static int ibmr_dma_fit(const struct ibmr_dma_map *map, const struct ibmr_dma_req *req)
{
	int fit = 0;

	if (map->how == req->how)
		fit += 16;
	if (req->sg && map->sg == req->sg)
		fit += 8;
	if (map->how == IBMR_DMA_SG ? map->nents == req->nents : map->size == req->size)
		fit += 4;
	if (map->dir == req->dir)
		fit += 2;
	if (map->of == req->of)
		fit += 1;
	return fit;
}

/* What may be meant by an unmap. */
struct ibmr_dma_found {
	struct ibmr_dma_ent *ent;	/* first run of what it is to take */
	struct ibmr_dma_ent *inner;	/* a run that is not the first */
	struct ibmr_dma_ent *memory;	/* coherent memory, and the call is not for that */
	bool exact;
};

/* The mapping that fits in all, and is of the same module if one is: found by its tie. */
static struct ibmr_dma_ent *ibmr_dma_find_exact(struct ibmr_dma_shard *shard,
						const struct ibmr_dma_req *req)
{
	u64 tie = ibmr_dma_tie(req->how, req->dir, req->size, req->sg);
	struct ibmr_dma_ent *ent, *found = NULL;
	int n;

	ent = ibmr_dma_ent_at(shard, req->addr, tie);
	for (n = 0; ent && ent->tie == tie && n < 4; ent = ibmr_dma_ent_twin(ent), n++) {
		if (ent != &ent->map->ent[0] || !ibmr_dma_fits(ent->map, req))
			continue;
		if (!found || ent->map->of == req->of)
			found = ent;
		if (found->map->of == req->of)
			break;
	}
	if (!found) {
		/* One that is not asked about; there is one of those at most. */
		ent = ibmr_dma_ent_at(shard, req->addr, 0);
		if (ent && !ent->tie && ibmr_dma_fits(ent->map, req))
			found = ent;
	}
	return found;
}

static void ibmr_dma_find(struct ibmr_dma_shard *shard, const struct ibmr_dma_req *req,
			  struct ibmr_dma_found *f)
{
	struct ibmr_dma_ent *ent;
	int n;

	memset(f, 0, sizeof(*f));
	f->ent = ibmr_dma_find_exact(shard, req);
	f->exact = f->ent;
	ent = f->ent ? NULL : ibmr_dma_ent_at(shard, req->addr, 0);
	for (n = 0; ent && n < IBMR_DMA_LOOK; ent = ibmr_dma_ent_twin(ent), n++) {
		struct ibmr_dma_map *map = ent->map;

		if (ent != &map->ent[0])
			f->inner = ent;
		else if ((map->how == IBMR_DMA_COHERENT) != (req->how == IBMR_DMA_COHERENT))
			f->memory = map->how == IBMR_DMA_COHERENT ? ent : f->memory;
		else if (!f->ent || ibmr_dma_fit(map, req) > ibmr_dma_fit(f->ent->map, req))
			f->ent = ent;
	}
	if (f->ent && !f->exact)
		f->exact = f->ent->map->bounced || ibmr_dma_fits(f->ent->map, req);
}

/*
 * Take out of the tree the mapping that an unmap is meant for. If there is none, or one that fits
 * badly and may not be meant, it is NULL, and *@near (referenced, or NULL) is the one that it might
 * be a part of.
 */
static struct ibmr_dma_map *ibmr_dma_take(struct ibmr_dma_dev *dd, const struct ibmr_dma_req *req,
					  struct ibmr_dma_map **near)
{
	struct ibmr_dma_shard *shard = &dd->shard[ibmr_dma_shard_of(req->addr)];
	enum ibmr_dma_unseen_kind kind = req->how == IBMR_DMA_COHERENT ? IBMR_DMA_MEMORY :
								      IBMR_DMA_STREAMING;
	struct ibmr_dma_map *map = NULL;
	struct ibmr_dma_found f;
	unsigned long flags;

	*near = NULL;
	raw_spin_lock_irqsave(&shard->lock, flags);
	ibmr_dma_find(shard, req, &f);
	if (f.ent && (f.exact || !ibmr_dma_unseen_any(dd->ibdev, kind))) {
		map = f.ent->map;
		ibmr_dma_ends(map);
		ibmr_dma_ent_remove(shard, f.ent);
	} else if (f.inner || f.memory) {
		*near = f.memory ? f.memory->map : f.inner->map;
		refcount_inc(&(*near)->refs);
	}
	raw_spin_unlock_irqrestore(&shard->lock, flags);
	return map;
}

static bool ibmr_dma_was_streaming(const struct ibmr_dma_map *map)
{
	return map->how != IBMR_DMA_COHERENT;
}

static bool ibmr_dma_was_memory(const struct ibmr_dma_map *map)
{
	return map->how == IBMR_DMA_COHERENT;
}

/* "of 64 bytes", "of a list of 3 entries" */
static const char *ibmr_dma_extent(const struct ibmr_dma_req *req, char *buf, size_t size)
{
	if (req->how == IBMR_DMA_SG)
		scnprintf(buf, size, "of a list of %d entries", req->nents);
	else
		scnprintf(buf, size, "of %llu bytes", req->size);
	return buf;
}

/* An unmap that fits no mapping: why? @near is put. False: it may be older than the checker. */
static bool ibmr_dma_unmap_unknown(struct ibmr_dma_dev *dd, const struct ibmr_dma_req *req,
				   struct ibmr_dma_map *near)
{
	bool memory = req->how == IBMR_DMA_COHERENT;
	struct ibmr_dma_map *past;
	char extent[48];

	if (req->addr == DMA_MAPPING_ERROR) {
		ibmr_dma_map_put(near);
		ibmr_dma_report(dd, IB_MR_DMA_NEVER_MAPPED, req->ip, NULL,
				"%s of what a failed map returned", req->call);
		return true;
	}
	if (!(near && near->bounced) &&
	    ibmr_dma_unseen_take(dd->ibdev, memory ? IBMR_DMA_MEMORY : IBMR_DMA_STREAMING,
				 req->of)) {
		ibmr_dma_map_put(near);
		ibmr_dma_add_count(dd, IBMR_DMA_N_UNSEEN, 1);
		return false;
	}
	if (near) {
		ibmr_dma_report(dd, IB_MR_DMA_UNMAP_CALL, req->ip, near, "%s of %s", req->call,
				near->how == IBMR_DMA_COHERENT ? "coherent memory" :
				"one entry of a list; the list as a whole has to be unmapped");
		ibmr_dma_map_put(near);
		return true;
	}
	past = ibmr_dma_find_past(dd, req->addr, memory ? ibmr_dma_was_memory :
							  ibmr_dma_was_streaming);
	if (past)
		ibmr_dma_report(dd, IB_MR_DMA_UNMAP_TWICE, req->ip, past, "%s of %#llx%s",
				req->call, req->addr, memory ? "; it is not freed again" : "");
	else
		ibmr_dma_report(dd, IB_MR_DMA_NEVER_MAPPED, req->ip, NULL, "%s of %#llx, %s, %s%s",
				req->call, req->addr, ibmr_dma_extent(req, extent, sizeof(extent)),
				ibmr_dma_dir_name(req->dir), memory ? "; it is not freed" : "");
	ibmr_dma_map_put(past);
	return true;
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

/* The first run of @map is out of its tree, by this call. */
static void ibmr_dma_unmap_taken(struct ibmr_dma_map *map, const struct ibmr_dma_req *req,
				 bool quiet)
{
	bool from_device = map->bounced && ibmr_dma_from_device(map->dir);
	struct ibmr_dma_dev *dd = map->dd;

	ibmr_dma_add_count(dd, IBMR_DMA_N_UNMAPS, 1);
	if (!quiet)
		ibmr_dma_unmap_differs(map, req);
	if (map->bounced)
		ibmr_dma_bounce_end(map, req->dir, req->attrs, quiet, req->ip);
	map->gone_at = ibmr_dma_chain_get(req->ip);
	/* Pairs with ibmr_dma_say_map(), in a report of a sync that races with this. */
	smp_store_release(&map->gone_ip, req->ip);
	ibmr_dma_remove_rest(map);
	/* With no lookup left, nobody has eyes for its shadow but the device. */
	if (map->bounced && refcount_read(&map->refs) == 1)
		ibmr_dma_bounce_shrink(map);
	ibmr_dma_bury(map);
	ibmr_dma_ended(from_device);
	/* Last: who sees none live may free the device's state. */
	smp_mb__before_atomic();
	atomic64_dec(&dd->live);
}

/* Every unmap of a streaming mapping. */
void ibmr_dma_check_unmap(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req)
{
	/* Switched off meanwhile: put things in order, say nothing. */
	bool quiet = READ_ONCE(dd->mode) == IB_MR_DMA_OFF;
	struct ibmr_dma_map *map, *near;

	map = ibmr_dma_take(dd, req, &near);
	if (map) {
		ibmr_dma_unmap_taken(map, req, quiet);
	} else if (quiet) {
		ibmr_dma_map_put(near);
		ibmr_dma_unseen_add(dd->ibdev, IBMR_DMA_STREAMING, req->of, -1);
	} else {
		ibmr_dma_unmap_unknown(dd, req, near);
	}
}

/*
 * ib_dma_free_coherent(). @req->size is corrected when it is another than was allocated. False when
 * there is nothing to free.
 */
bool ibmr_dma_check_free(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req)
{
	bool quiet = READ_ONCE(dd->mode) == IB_MR_DMA_OFF;
	struct ibmr_dma_map *map, *near;
	u64 size;

	map = ibmr_dma_take(dd, req, &near);
	if (map) {
		size = map->size;
		ibmr_dma_unmap_taken(map, req, quiet);
		/* Nobody else knows it any more. */
		req->size = size;
		return true;
	}
	if (quiet) {
		ibmr_dma_map_put(near);
		ibmr_dma_unseen_add(dd->ibdev, IBMR_DMA_MEMORY, NULL, -1);
		return true;
	}
	return !ibmr_dma_unmap_unknown(dd, req, near);
}
