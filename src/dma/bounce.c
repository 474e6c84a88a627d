// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA checker: shadow buffers.
 *
 * A bounced mapping gives the device whole pages of its own, in which the buffer's copy lies at
 * the same offset in the page as the buffer does, so that page lists, blocks and first-byte
 * offsets come out as they would without it. Entries of a list that meet inside a page share their
 * pages, for the same reason. All that the device was not given is filled with a poison word:
 * "DMA!" and a number of the mapping's own.
 *
 *	map		TO_DEVICE, BIDIRECTIONAL: buffer -> shadow
 *	sync_for_cpu	FROM_DEVICE, BIDIRECTIONAL: shadow -> buffer
 *	sync_for_device	TO_DEVICE, BIDIRECTIONAL: buffer -> shadow
 *	unmap		FROM_DEVICE, BIDIRECTIONAL: shadow -> buffer
 *
 * and nothing crosses otherwise. Of a FROM_DEVICE mapping only words that are no longer poison go
 * back, so bytes that the device did not write stay what they were, as the kernel's own bouncing
 * (swiotlb) has it; up to seven bytes around what it did write may become poison.
 *
 * Some faults show themselves here. Hashes of the buffer and of its shadow are taken when one side
 * gets it, and compared when the other does: the CPU wrote while the device owned it; the device
 * wrote, and the buffer is given to it again with no sync_for_cpu between; the CPU wrote, and asks
 * for the buffer again with no sync_for_device between. At the unmap the poison around the buffer
 * must be whole. After the unmap the shadow is poisoned, kept for a while, and must still be poison
 * when it is freed.
 *
 * Buffer and shadow belong to the ULP and to the device, who may write while they are copied or
 * hashed here: seeing that is what this is for. Those accesses are data_race().
 */

#include <linux/dma-mapping.h>
#include <linux/gfp.h>
#include <linux/jhash.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>

#include "base/fault.h"
#include "dma/check.h"

/* Shadows larger than this are freed at the unmap, and late writes to them are not seen. */
#define IBMR_DMA_KEEP	SZ_64K

static bool ibmr_dma_to_device(enum dma_data_direction dir)
{
	return dir == DMA_TO_DEVICE || dir == DMA_BIDIRECTIONAL;
}

static bool ibmr_dma_from_device(enum dma_data_direction dir)
{
	return dir == DMA_FROM_DEVICE || dir == DMA_BIDIRECTIONAL;
}

static u64 ibmr_dma_poison_word(void)
{
	static const char tag[4] = { 'D', 'M', 'A', '!' };
	static atomic_t number;
	union {
		u64 word;
		struct {
			char tag[4];
			__le32 number;
		};
	} p;

	memcpy(p.tag, tag, sizeof(tag));
	p.number = cpu_to_le32(atomic_inc_return(&number) * 0x9e3779b1);
	return p.word;
}

/* Offset of the first byte in [@from, @to) of @base that is not poison, or @to. */
static size_t ibmr_dma_poison_end(const void *base, size_t from, size_t to, u64 poison)
{
	const u8 *p = (const u8 *)&poison;
	const u8 *b = base;
	size_t i = from;

	while (i < to) {
		if (!(i & 7) && to - i >= 8 && data_race(*(const u64 *)(b + i)) == poison) {
			i += 8;
			continue;
		}
		if (data_race(READ_ONCE(b[i])) != p[i & 7])
			return i;
		i++;
	}
	return to;
}

static void ibmr_dma_poison(struct ibmr_dma_map *map, struct ibmr_dma_ent *ent)
{
	data_race(memset64(ent->shadow, map->poison, ent->shadow_size / sizeof(u64)));
}

static u32 ibmr_dma_cpu_sum(const struct ibmr_dma_map *map)
{
	unsigned int i;
	u32 sum = 0;

	for (i = 0; i < map->nr; i++)
		sum = data_race(jhash(map->ent[i].cpu, map->ent[i].len, sum));
	return sum;
}

static u32 ibmr_dma_dev_sum(const struct ibmr_dma_map *map)
{
	unsigned int i;
	u32 sum = 0;

	for (i = 0; i < map->nr; i++)
		sum = data_race(jhash((void *)(uintptr_t)map->ent[i].it.start, map->ent[i].len,
				      sum));
	return sum;
}

/*
 * From here on it is @owner's, all of it; or who knows. Parts may be synced from several CPUs at
 * one time, each of which says that nobody knows; whoever syncs the whole has to be alone.
 */
static void ibmr_dma_pass(struct ibmr_dma_map *map, enum ibmr_dma_owner owner)
{
	if (owner != IBMR_DMA_UNKNOWN)
		map->cpu_sum = ibmr_dma_cpu_sum(map);
	if (owner == IBMR_DMA_DEVICE && ibmr_dma_from_device(map->dir))
		map->dev_sum = ibmr_dma_dev_sum(map);
	WRITE_ONCE(map->owner, owner);
}

/* Before a sync_for_cpu, and before the copy of an unmap (@last). */
static void ibmr_dma_judge_cpu(struct ibmr_dma_map *map, bool last, bool copies, unsigned long ip)
{
	enum ibmr_dma_owner owner = READ_ONCE(map->owner);

	if (owner == IBMR_DMA_UNKNOWN || ibmr_dma_cpu_sum(map) == map->cpu_sum)
		return;
	if (owner == IBMR_DMA_DEVICE)
		ibmr_dma_report(map->dd, IB_MR_DMA_CPU_WRITE, ip, map,
				"between the map or the last sync_for_device, and here; %s",
				ibmr_dma_to_device(map->dir) ?
				"the device may not have seen it (a sync_for_device is missing?)" :
				"the buffer is mapped for the device to write");
	else if (!last && ibmr_dma_to_device(map->dir))
		ibmr_dma_report(map->dd, IB_MR_DMA_NO_SYNC_DEV, ip, map,
				"between two sync_for_cpu; the device never saw it");
	else if (copies)
		ibmr_dma_report(map->dd, IB_MR_DMA_CPU_WRITE, ip, map,
				"since the last sync_for_cpu; the unmap overwrites it");
}

/* Before a sync_for_device: it is the device's already, and the device has written to it. */
static void ibmr_dma_judge_dev(struct ibmr_dma_map *map, unsigned long ip)
{
	if (READ_ONCE(map->owner) == IBMR_DMA_DEVICE && ibmr_dma_from_device(map->dir) &&
	    ibmr_dma_dev_sum(map) != map->dev_sum)
		ibmr_dma_report(map->dd, IB_MR_DMA_NO_SYNC_CPU, ip, map,
				"and the CPU, if it read the buffer, read what was there before");
}

static void ibmr_dma_out(struct ibmr_dma_map *map, struct ibmr_dma_ent *ent, size_t off,
			 size_t len)
{
	data_race(memcpy((void *)(uintptr_t)ent->it.start + off, ent->cpu + off, len));
	ibmr_dma_add_count(map->dd, IBMR_DMA_N_TO_DEVICE, len);
}

static void ibmr_dma_in(struct ibmr_dma_map *map, struct ibmr_dma_ent *ent, size_t off, size_t len)
{
	const u8 *from = (const u8 *)(uintptr_t)ent->it.start + off;
	u8 *to = ent->cpu + off;
	size_t step;

	ibmr_dma_add_count(map->dd, IBMR_DMA_N_TO_CPU, len);
	if (map->dir == DMA_BIDIRECTIONAL) {
		data_race(memcpy(to, from, len));
		return;
	}
	for (; len; len -= step, from += step, to += step) {
		const u64 *word = PTR_ALIGN_DOWN((const u64 *)from, sizeof(u64));

		step = min_t(size_t, len, (const u8 *)(word + 1) - from);
		if (data_race(READ_ONCE(*word)) != map->poison)
			data_race(memcpy(to, from, step));
	}
}

/* Pages for the run of entries that begins with map->ent[@i]; returns the next's first, or 0. */
static unsigned int ibmr_dma_bounce_run(struct ibmr_dma_map *map, unsigned int i)
{
	struct ibmr_dma_ent *head = &map->ent[i];
	size_t offset = offset_in_page(head->cpu);
	u64 run = head->len;
	unsigned int k;

	for (k = i + 1; k < map->nr; k++) {
		void *end = head->cpu + run;

		if (map->ent[k].cpu != end || PAGE_ALIGNED(end))
			break;
		run += map->ent[k].len;
	}
	head->run = run;
	head->shadow_size = PAGE_ALIGN(offset + max_t(u64, run, 1));
	if (!ibmr_should_fail(IBMR_FAULT_ALLOC))
		head->shadow = alloc_pages_exact(head->shadow_size, GFP_ATOMIC | __GFP_NOWARN);
	if (!head->shadow)
		return 0;
	ibmr_dma_poison(map, head);
	for (run = (uintptr_t)head->shadow + offset; i < k; run += map->ent[i++].len)
		map->ent[i].it.start = run;
	return k;
}

/**
 * ibmr_dma_bounce() - give a new mapping its shadow
 * @map: mapping; the buffers of its entries are set, their device addresses will be
 *
 * Return: false without memory; the caller frees @map, and with it what was allocated.
 */
bool ibmr_dma_bounce(struct ibmr_dma_map *map)
{
	unsigned int i, next;

	map->bounced = true;
	map->poison = ibmr_dma_poison_word();
	for (i = 0; i < map->nr; i = next) {
		next = ibmr_dma_bounce_run(map, i);
		if (!next)
			return false;
	}
	if (ibmr_dma_to_device(map->dir) && !(map->attrs & DMA_ATTR_SKIP_CPU_SYNC))
		for (i = 0; i < map->nr; i++)
			ibmr_dma_out(map, &map->ent[i], 0, map->ent[i].len);
	if (!(map->attrs & DMA_ATTR_SKIP_CPU_SYNC))
		ibmr_dma_pass(map, IBMR_DMA_DEVICE);
	return true;
}

/* The list's device addresses, once nothing can fail any more. */
void ibmr_dma_bounce_list(struct ibmr_dma_map *map, struct scatterlist *sg)
{
	struct scatterlist *s;
	int i;

	for_each_sg(sg, s, map->nr, i) {
		sg_dma_address(s) = map->ent[i].it.start;
		sg_dma_len(s) = map->ent[i].len;
	}
}

/**
 * ibmr_dma_bounce_sync() - a sync of a bounced mapping
 * @map: mapping, referenced
 * @ent: its run that contains the range
 * @addr: device address
 * @size: bytes
 * @dir: direction the caller gave; data cross only where the mapping has it too
 * @for_cpu: else for the device
 * @ip: caller, for reports; 0: none wanted
 */
void ibmr_dma_bounce_sync(struct ibmr_dma_map *map, struct ibmr_dma_ent *ent, u64 addr, u64 size,
			  enum dma_data_direction dir, bool for_cpu, unsigned long ip)
{
	size_t off = addr - ent->it.start;
	/*
	 * Who syncs a part keeps the rest, or does not; and other parts may be synced meanwhile.
	 * So only a sync of the whole is judged, and makes an owner.
	 */
	bool whole = map->nr == 1 && size == ent->len;

	if (for_cpu) {
		if (ip && whole)
			ibmr_dma_judge_cpu(map, false, false, ip);
		if (ibmr_dma_from_device(dir) && ibmr_dma_from_device(map->dir))
			ibmr_dma_in(map, ent, off, size);
		ibmr_dma_pass(map, whole ? IBMR_DMA_CPU : IBMR_DMA_UNKNOWN);
		return;
	}
	if (ip && whole)
		ibmr_dma_judge_dev(map, ip);
	if (ibmr_dma_to_device(dir) && ibmr_dma_to_device(map->dir))
		ibmr_dma_out(map, ent, off, size);
	ibmr_dma_pass(map, whole ? IBMR_DMA_DEVICE : IBMR_DMA_UNKNOWN);
}

/* Did the device write beside the buffer? Entries that share pages have one buffer, the run. */
static void ibmr_dma_check_around(struct ibmr_dma_map *map, struct ibmr_dma_ent *ent,
				  unsigned long ip)
{
	size_t from = ent->it.start - (uintptr_t)ent->shadow;
	size_t to = from + ent->run;
	size_t at;

	at = ibmr_dma_poison_end(ent->shadow, 0, from, map->poison);
	if (at < from) {
		ibmr_dma_report(map->dd, IB_MR_DMA_DEV_OUTSIDE, ip, map,
				"%zu bytes before its first byte", from - at);
		return;
	}
	at = ibmr_dma_poison_end(ent->shadow, to, ent->shadow_size, map->poison);
	if (at < ent->shadow_size)
		ibmr_dma_report(map->dd, IB_MR_DMA_DEV_OUTSIDE, ip, map,
				"%zu bytes past its last byte", at - to + 1);
}

/**
 * ibmr_dma_bounce_end() - the unmap of a bounced mapping
 * @map: mapping; the caller owns its unmap
 * @dir: direction the caller gave
 * @attrs: DMA_ATTR_*
 * @quiet: no reports wanted
 * @ip: caller
 */
void ibmr_dma_bounce_end(struct ibmr_dma_map *map, enum dma_data_direction dir,
			 unsigned long attrs, bool quiet, unsigned long ip)
{
	bool copies = ibmr_dma_from_device(dir) && ibmr_dma_from_device(map->dir) &&
		      !(attrs & DMA_ATTR_SKIP_CPU_SYNC);
	unsigned int i;

	if (!quiet)
		ibmr_dma_judge_cpu(map, true, copies, ip);
	if (copies)
		for (i = 0; i < map->nr; i++)
			ibmr_dma_in(map, &map->ent[i], 0, map->ent[i].len);
	for (i = 0; i < map->nr; i++) {
		struct ibmr_dma_ent *ent = &map->ent[i];

		if (!ent->shadow)
			continue;
		if (!quiet)
			ibmr_dma_check_around(map, ent, ip);
		ibmr_dma_poison(map, ent);
	}
}

/* Large shadows are not kept for the sake of late writes. */
void ibmr_dma_bounce_shrink(struct ibmr_dma_map *map)
{
	size_t sum = 0;
	unsigned int i;

	for (i = 0; i < map->nr; i++)
		sum += map->ent[i].shadow_size;
	if (sum > IBMR_DMA_KEEP)
		ibmr_dma_bounce_free(map);
}

/* The last reference is gone. A mapping that was unmapped has a @gone, and poison in its pages. */
void ibmr_dma_bounce_free(struct ibmr_dma_map *map)
{
	unsigned int i;

	for (i = 0; i < map->nr; i++) {
		struct ibmr_dma_ent *ent = &map->ent[i];
		size_t at;

		if (!ent->shadow)
			continue;
		at = map->gone.nr ? ibmr_dma_poison_end(ent->shadow, 0, ent->shadow_size,
							map->poison) : ent->shadow_size;
		if (at < ent->shadow_size &&
		    ibmr_dma_report_due(map->dd, IB_MR_DMA_DEV_LATE, map->gone.ip[0]))
			ibmr_dma_report_write(map->dd, IB_MR_DMA_DEV_LATE, NULL, map,
					      "at byte %lld; seen when its shadow was freed",
					      (s64)((uintptr_t)ent->shadow + at - ent->it.start));
		free_pages_exact(ent->shadow, ent->shadow_size);
		ent->shadow = NULL;
	}
}
