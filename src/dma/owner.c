// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA checker: who owns a bounced buffer, and who wrote to it out of turn.
 *
 * Hashes of the buffer and of its shadow are taken when one side gets it, and compared when the
 * other does. Each entry of a list has its own owner; once a part of an entry is synced by itself,
 * nobody knows who has the rest, and nothing is said of it until the whole is synced again.
 *
 * Certain, and reported, are: the CPU wrote while the device owned the buffer; the unmap overwrites
 * what the CPU wrote since its last sync_for_cpu; the device wrote to memory that is mapped for it
 * to read. Not certain are two. The CPU wrote, and asks for the buffer again with no
 * sync_for_device between: that is a fault if the device was to read it, and no matter if this time
 * it was not. The device wrote, and gets the buffer again with no sync_for_cpu between: the ULP may
 * have no use for the data. Those are hints, which are counted and kept apart.
 *
 * The buffer must not change for other reasons. Pages of processes do, as a process writes when it
 * likes, so nothing is said of what happens to them while the device owns them. And the same memory
 * may be mapped more than once, so that another mapping's sync or unmap writes to it. Only when the
 * hashes differ is it looked for such a mapping, of any device: one that lives, or one whose unmap
 * has a number from after this buffer was given away.
 *
 * Buffer and shadow belong to the ULP and to the device, who may write while they are hashed here:
 * seeing that is what this is for. Those accesses are data_race().
 */

#include <linux/bitops.h>
#include <linux/dma-mapping.h>
#include <linux/mm.h>

#include "dma/check.h"

/* Copies to buffers that other mappings may share are numbered. */
static atomic64_t ibmr_dma_copies;

/* Unmaps at work that may copy to a buffer. */
static atomic_t ibmr_dma_ending;

/*
 * A step can be undone when the word and the result are known, so a single word that differs
 * always shows.
 */
static __always_inline u64 ibmr_dma_mix(u64 sum, const u64 *at)
{
	u64 word;

	memcpy(&word, at, sizeof(word));	/* it need not be aligned */
	return rol64(sum ^ word, 29) * 0x9e3779b97f4a7c15ULL;
}

static u64 ibmr_dma_sum(const void *base, u64 len)
{
	const u64 *word = base;
	u64 sum = len, rest = 0;

	for (; len >= 4 * sizeof(u64); len -= 4 * sizeof(u64), word += 4) {
		sum = ibmr_dma_mix(sum, word);
		sum = ibmr_dma_mix(sum, word + 1);
		sum = ibmr_dma_mix(sum, word + 2);
		sum = ibmr_dma_mix(sum, word + 3);
	}
	for (; len >= sizeof(u64); len -= sizeof(u64), word++)
		sum = ibmr_dma_mix(sum, word);
	memcpy(&rest, word, len);
	return ibmr_dma_mix(sum, &rest);
}

static u64 ibmr_dma_cpu_sum(const struct ibmr_dma_ent *ent)
{
	return data_race(ibmr_dma_sum(ent->cpu, ent->len));
}

static u64 ibmr_dma_dev_sum(const struct ibmr_dma_ent *ent)
{
	return data_race(ibmr_dma_sum((void *)(uintptr_t)ent->start, ent->len));
}

/* From here on the entry is @owner's, all of it. Whoever syncs the whole has to be alone. */
void ibmr_dma_pass(struct ibmr_dma_ent *ent, enum ibmr_dma_owner owner)
{
	ent->given = atomic64_read(&ibmr_dma_copies);
	ent->cpu_sum = ibmr_dma_cpu_sum(ent);
	if (owner == IBMR_DMA_DEVICE) {
		ent->dev_sum = ibmr_dma_dev_sum(ent);
		WRITE_ONCE(ent->dev_known, true);
	}
	WRITE_ONCE(ent->owner, owner);
}

/* The same of a new mapping, whose shadow is the buffer's copy, so that one hash does for both. */
void ibmr_dma_pass_new(struct ibmr_dma_ent *ent)
{
	ent->given = atomic64_read(&ibmr_dma_copies);
	ent->dev_sum = ibmr_dma_dev_sum(ent);
	ent->cpu_sum = ent->held ? ibmr_dma_cpu_sum(ent) : ent->dev_sum;
	ent->dev_known = true;
	ent->owner = IBMR_DMA_DEVICE;
}

/* Before a part of it is synced. Several CPUs may do that at one time. */
void ibmr_dma_pass_part(struct ibmr_dma_ent *ent, bool for_cpu)
{
	WRITE_ONCE(ent->owner, IBMR_DMA_UNKNOWN);
	if (!for_cpu)
		WRITE_ONCE(ent->dev_known, false);
}

/* A copy went to buffers of @gone, whose unmap this is. */
void ibmr_dma_copied(struct ibmr_dma_map *gone)
{
	WRITE_ONCE(gone->gone, atomic64_inc_return(&ibmr_dma_copies));
}

/* May a process write to it? Slab pages keep something else where others have their mapping. */
bool ibmr_dma_of_processes(const struct ibmr_dma_ent *ent)
{
	void *at = PTR_ALIGN_DOWN(ent->cpu, PAGE_SIZE), *end = ent->cpu + max_t(u64, ent->len, 1);

	for (; at < end; at += PAGE_SIZE) {
		struct folio *folio;

		if (!virt_addr_valid(at))
			continue;
		folio = page_folio(virt_to_page(at));
		if (!folio_test_slab(folio) && (READ_ONCE(folio->mapping) || folio_mapped(folio)))
			return true;
	}
	return false;
}

/* --- is the same memory mapped by others? --- */

static bool ibmr_dma_overlaps(const struct ibmr_dma_ent *ent, const struct ibmr_dma_map *map)
{
	unsigned int i;

	if (!map->bounced || !ibmr_dma_from_device(map->dir))
		return false;
	/* also of its own list, which may name the memory more than once */
	for (i = 0; i < map->nr; i++)
		if (&map->ent[i] != ent && map->ent[i].cpu < ent->cpu + ent->len &&
		    ent->cpu < map->ent[i].cpu + map->ent[i].len)
			return true;
	return false;
}

static bool ibmr_dma_shared_now(struct ibmr_dma_dev *dd, void *arg)
{
	struct ibmr_dma_ent *ent = arg, *other;
	bool shared = false;
	unsigned long flags;
	int i;

	for (i = 0; i < IBMR_DMA_SHARDS && !shared; i++) {
		raw_spin_lock_irqsave(&dd->shard[i].lock, flags);
		ibmr_dma_for_each(other, &dd->shard[i], 0, U64_MAX) {
			shared = ibmr_dma_overlaps(ent, other->map);
			if (shared)
				break;
		}
		raw_spin_unlock_irqrestore(&dd->shard[i].lock, flags);
	}
	return shared;
}

static bool ibmr_dma_shared_since(struct ibmr_dma_dev *dd, void *arg)
{
	struct ibmr_dma_ent *ent = arg;
	struct ibmr_dma_map *past;
	bool shared = false;
	unsigned long flags;
	int i, k;

	for (i = 0; i < IBMR_DMA_SHARDS && !shared; i++) {
		raw_spin_lock_irqsave(&dd->shard[i].lock, flags);
		for (k = 0; k < IBMR_DMA_PAST && !shared; k++) {
			past = dd->shard[i].past[k];
			shared = past && past->gone > ent->given && ibmr_dma_overlaps(ent, past);
		}
		raw_spin_unlock_irqrestore(&dd->shard[i].lock, flags);
	}
	return shared;
}

/*
 * Did another mapping write to the buffer of @ent? One that is being unmapped is neither among the
 * living nor in the past for a while; who left the former before it was looked there has reached
 * the latter, or is counted.
 */
static bool ibmr_dma_shared(struct ibmr_dma_ent *ent, bool last)
{
	/* Our own unmap is one of those at work. */
	int own = last && ibmr_dma_from_device(ent->map->dir);

	if (ibmr_dma_any_dev(ibmr_dma_shared_now, ent))
		return true;
	smp_rmb();	/* the locks order the rest */
	return atomic_read(&ibmr_dma_ending) > own || ibmr_dma_any_dev(ibmr_dma_shared_since, ent);
}

/* The unmap of @map begins: it leaves the tree, whose lock is held, and is not in the past yet. */
void ibmr_dma_ends(struct ibmr_dma_map *map)
{
	if (map->bounced && ibmr_dma_from_device(map->dir))
		atomic_inc(&ibmr_dma_ending);
}

/* It is in the past. @from_device: whether it was counted; the mapping may be gone. */
void ibmr_dma_ended(bool from_device)
{
	if (from_device)
		atomic_dec(&ibmr_dma_ending);
}

/* --- judging --- */

/* Before a sync_for_cpu, and before the copy of an unmap (@last). */
void ibmr_dma_judge_cpu(struct ibmr_dma_ent *ent, bool last, bool copies, unsigned long ip)
{
	enum ibmr_dma_owner owner = READ_ONCE(ent->owner);
	struct ibmr_dma_map *map = ent->map;
	struct ibmr_dma_dev *dd = map->dd;
	bool to = ibmr_dma_to_device(map->dir);

	if (map->dir == DMA_TO_DEVICE && READ_ONCE(ent->dev_known) &&
	    ibmr_dma_dev_sum(ent) != ent->dev_sum) {
		ibmr_dma_report(dd, IB_MR_DMA_DEV_WRITE, ip, map,
				"between the map or the last sync_for_device, and here");
		ent->dev_known = false;
	}
	if (owner == IBMR_DMA_UNKNOWN || (owner == IBMR_DMA_CPU && last && !copies) ||
	    ibmr_dma_cpu_sum(ent) == ent->cpu_sum)
		return;
	if (owner == IBMR_DMA_DEVICE && ibmr_dma_of_processes(ent))
		return;
	/* Given up unread: nothing of the device's is wanted, and nothing is overwritten. */
	if (last && !to && !copies)
		return;
	if (ibmr_dma_shared(ent, last))
		return;
	if (owner == IBMR_DMA_DEVICE)
		ibmr_dma_report(dd, IB_MR_DMA_CPU_WRITE, ip, map,
				"between the map or the last sync_for_device, and here; %s", to ?
				"the device may not have seen it (a sync_for_device is missing?)" :
				"the buffer is mapped for the device to write");
	else if (last)
		ibmr_dma_report(dd, IB_MR_DMA_CPU_WRITE, ip, map,
				"since the last sync_for_cpu; the unmap overwrites it");
	else if (to)
		ibmr_dma_hint(dd, IB_MR_DMA_NO_SYNC_DEV, ip, map,
			      "between two sync_for_cpu; a fault if the device was to read it");
}

/* Before a sync_for_device: it is the device's already, and the device has written to it. */
void ibmr_dma_judge_dev(struct ibmr_dma_ent *ent, unsigned long ip)
{
	struct ibmr_dma_map *map = ent->map;

	if (!READ_ONCE(ent->dev_known) || ibmr_dma_dev_sum(ent) == ent->dev_sum)
		return;
	if (map->dir == DMA_TO_DEVICE)
		ibmr_dma_report(map->dd, IB_MR_DMA_DEV_WRITE, ip, map,
				"between the map or the last sync_for_device, and here");
	else if (READ_ONCE(ent->owner) == IBMR_DMA_DEVICE)
		ibmr_dma_hint(map->dd, IB_MR_DMA_NO_SYNC_CPU, ip, map,
			      "a fault if the CPU reads it: it sees what was there before");
}
