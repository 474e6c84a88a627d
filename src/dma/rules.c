// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA checker: the rules for what is done with a mapping: syncs, the look at its error, regions.
 *
 * A sync may begin anywhere in a mapping: it is looked for in the shard of its own page first (most
 * syncs begin where the mapping does), then in others. Of several mappings that contain the range
 * the one with the direction of the sync is meant, else one that has both directions. Only when
 * there is none of these in any shard, and nothing that is older than the checker, is the direction
 * wrong.
 *
 * Where more mappings overlap than are looked at, nothing is said.
 */

#include <linux/dma-mapping.h>
#include <linux/module.h>

#include "base/compat.h"
#include "dma/check.h"

/* How a run contains what is to be synced. */
enum ibmr_dma_hold { IBMR_DMA_NOT, IBMR_DMA_IN_PART, IBMR_DMA_WRONG_DIR, IBMR_DMA_BOTH_DIRS,
		     IBMR_DMA_SAME_DIR };

static enum ibmr_dma_hold ibmr_dma_holds(const struct ibmr_dma_ent *ent,
					 const struct ibmr_dma_req *req, u64 last)
{
	if (ent->start > req->addr || ent->last < last)
		return IBMR_DMA_IN_PART;
	if (ent->map->dir == req->dir)
		return IBMR_DMA_SAME_DIR;
	return ent->map->dir == DMA_BIDIRECTIONAL ? IBMR_DMA_BOTH_DIRS : IBMR_DMA_WRONG_DIR;
}

/* The best in one shard that is better than *@how, with a reference. */
static struct ibmr_dma_ent *ibmr_dma_find_in(struct ibmr_dma_shard *shard,
					     const struct ibmr_dma_req *req,
					     enum ibmr_dma_hold *how, bool *more)
{
	u64 last = ibmr_dma_last(req->addr, req->size);
	struct ibmr_dma_ent *ent, *found = NULL;
	unsigned long flags;
	int n = 0;

	raw_spin_lock_irqsave(&shard->lock, flags);
	ibmr_dma_for_each(ent, shard, req->addr, last) {
		enum ibmr_dma_hold hold = ibmr_dma_holds(ent, req, last);

		if (n++ == IBMR_DMA_LOOK) {
			*more = true;
			break;
		}
		if (hold > *how) {
			*how = hold;
			found = ent;
		}
		if (*how == IBMR_DMA_SAME_DIR)
			break;
	}
	if (found)
		refcount_inc(&found->map->refs);
	raw_spin_unlock_irqrestore(&shard->lock, flags);
	return found;
}

/* The run that a sync is meant for, referenced, and how it holds it; *@more: there are others. */
static struct ibmr_dma_ent *ibmr_dma_find_sync(struct ibmr_dma_dev *dd,
					       const struct ibmr_dma_req *req,
					       enum ibmr_dma_hold *how, bool *more)
{
	unsigned int first = ibmr_dma_shard_of(req->addr), i;
	struct ibmr_dma_ent *found = NULL, *better;

	*how = IBMR_DMA_NOT;
	*more = false;
	for (i = 0; i < IBMR_DMA_SHARDS && *how < IBMR_DMA_SAME_DIR; i++) {
		/* A bounced mapping has its addresses for itself. */
		if (*how > IBMR_DMA_IN_PART && found->map->bounced)
			break;
		better = ibmr_dma_find_in(&dd->shard[(first + i) % IBMR_DMA_SHARDS], req, how,
					  more);
		if (!better)
			continue;
		if (found)
			ibmr_dma_map_put(found->map);
		found = better;
	}
	return found;
}

static bool ibmr_dma_was_any(const struct ibmr_dma_map *map)
{
	return true;
}

/* A sync of what no mapping holds as a whole; @part (referenced, or NULL) in part. */
static void ibmr_dma_sync_unknown(struct ibmr_dma_dev *dd, const struct ibmr_dma_req *req,
				  struct ibmr_dma_map *part)
{
	struct ibmr_dma_map *map = part;

	if (!map)
		map = ibmr_dma_find_past(dd, req->addr, ibmr_dma_was_any);
	ibmr_dma_report(dd, IB_MR_DMA_SYNC_OUTSIDE, req->ip, map, "%s of [%#llx, +%llu)%s",
			req->call, req->addr, req->size,
			!map ? "" : part ? ", of which only a part is mapped" :
			", which is unmapped already");
	if (!part)
		ibmr_dma_map_put(map);
}

void ibmr_dma_check_sync(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req, bool for_cpu)
{
	bool quiet = READ_ONCE(dd->mode) == IB_MR_DMA_OFF;
	struct ibmr_dma_map *map = NULL;
	enum ibmr_dma_hold how;
	struct ibmr_dma_ent *ent;
	bool more;

	ibmr_dma_add_count(dd, IBMR_DMA_N_SYNCS, 1);
	if (!req->size)
		return;
	ent = ibmr_dma_find_sync(dd, req, &how, &more);
	if (ent)
		map = ent->map;
	if (!quiet && how < IBMR_DMA_BOTH_DIRS) {
		if (!(map && map->bounced) &&
		    (more || ibmr_dma_unseen_any(dd->ibdev, IBMR_DMA_STREAMING)))
			ibmr_dma_add_count(dd, IBMR_DMA_N_UNSEEN, 1);
		else if (how == IBMR_DMA_WRONG_DIR)
			ibmr_dma_report(dd, IB_MR_DMA_SYNC_DIR, req->ip, map,
					"%s with %s, mapped with %s", req->call,
					ibmr_dma_dir_name(req->dir), ibmr_dma_dir_name(map->dir));
		else
			ibmr_dma_sync_unknown(dd, req, map);
	}
	if (how > IBMR_DMA_IN_PART && map->bounced)
		ibmr_dma_bounce_sync(map, ent, req->addr, req->size, req->dir, for_cpu,
				     quiet ? 0 : req->ip);
	ibmr_dma_map_put(map);
}

/* ib_dma_mapping_error(): the one at @addr that was not asked about is. */
int ibmr_dma_check_error(struct ibmr_dma_dev *dd, u64 addr)
{
	struct ibmr_dma_shard *shard = &dd->shard[ibmr_dma_shard_of(addr)];
	struct ibmr_dma_ent *ent;
	unsigned long flags;

	raw_spin_lock_irqsave(&shard->lock, flags);
	ent = ibmr_dma_ent_at(shard, addr, 0);
	if (ent && !ent->tie)
		ibmr_dma_asked(shard, ent);
	raw_spin_unlock_irqrestore(&shard->lock, flags);
	return 0;
}

/* What a region was made of. */
struct ibmr_dma_made {
	struct ibmr_dma_map *unchecked;	/* referenced */
	bool checked;			/* one that was asked about is in there */
	bool more;
};

static void ibmr_dma_made_of(struct ibmr_dma_shard *shard, u64 addr, u64 last,
			     struct ibmr_dma_made *made)
{
	struct ibmr_dma_ent *ent;
	unsigned long flags;
	int n = 0;

	raw_spin_lock_irqsave(&shard->lock, flags);
	ibmr_dma_for_each(ent, shard, addr, last) {
		if (n++ == IBMR_DMA_LOOK) {
			made->more = true;
			break;
		}
		if (ent->map->checked) {
			made->checked = true;
			break;
		}
		/* Of a region of whole pages it may be the neighbour. */
		if (ent->start > addr || made->unchecked)
			continue;
		made->unchecked = ent->map;
		refcount_inc(&ent->map->refs);
	}
	raw_spin_unlock_irqrestore(&shard->lock, flags);
}

/*
 * A region is made of [@addr, @addr + @len). Which mapping is meant, only the ULP knows: where the
 * range holds one that was asked about, or begins outside the one that was not, nothing is said
 * here. Who never asks is told at the unmap.
 */
void ibmr_dma_check_used(struct ibmr_dma_dev *dd, u64 addr, u64 len)
{
	u64 last = ibmr_dma_last(addr, len);
	struct ibmr_dma_made made = {};
	struct ibmr_dma_map *map;
	int i;

	if (addr == DMA_MAPPING_ERROR || (len && last == U64_MAX)) {
		ibmr_dma_report(dd, IB_MR_DMA_UNCHECKED, 0, NULL,
				"a region of %llu bytes is made of what a failed map returned",
				len);
		return;
	}
	for (i = 0; i < IBMR_DMA_SHARDS && !made.checked && !made.more; i++)
		ibmr_dma_made_of(&dd->shard[i], addr, last, &made);
	map = made.unchecked;
	/* A bounced mapping has its addresses for itself. */
	if (made.checked || made.more ||
	    (!(map && map->bounced) && ibmr_dma_unseen_any(dd->ibdev, IBMR_DMA_STREAMING))) {
		ibmr_dma_map_put(map);
		return;
	}
	if (map) {
		/* The two may race; then it is told twice. */
		if (!READ_ONCE(map->told_unchecked))
			ibmr_dma_report(dd, IB_MR_DMA_UNCHECKED, 0, map, "a region is made of it");
		WRITE_ONCE(map->told_unchecked, true);
		ibmr_dma_map_put(map);
		return;
	}
	map = ibmr_dma_find_past(dd, addr, ibmr_dma_was_any);
	if (map)
		ibmr_dma_hint(dd, IB_MR_DMA_NOT_MAPPED, 0, map,
			      "a region is made of %llu bytes at %#llx, which were unmapped", len,
			      addr);
	else
		ibmr_dma_hint(dd, IB_MR_DMA_NOT_MAPPED, 0, NULL,
			      "a region is made of %llu bytes at %#llx (mapped by a source without <rdma/ib_dma.h>?)",
			      len, addr);
	ibmr_dma_map_put(map);
}
