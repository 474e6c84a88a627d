// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA checker: shadow buffers.
 *
 * A bounced mapping gives the device whole pages of its own, in which the buffer's copy lies at
 * the same offset in the page as the buffer does, so that page lists, blocks and first-byte
 * offsets come out as they would without it. Entries of a list that meet inside a page share their
 * pages, for the same reason. What lies around the copy is filled with a poison word: "DMA!" and a
 * number of the mapping's own.
 *
 *	map		buffer -> shadow, whatever the direction
 *	sync_for_cpu	FROM_DEVICE, BIDIRECTIONAL: shadow -> buffer
 *	sync_for_device	TO_DEVICE, BIDIRECTIONAL: buffer -> shadow
 *	unmap		FROM_DEVICE, BIDIRECTIONAL: shadow -> buffer
 *
 * and nothing crosses otherwise. This is what the kernel's own bouncing (swiotlb) does since 5.18.
 * The first line is why nothing has to be guessed: what the device did not write is, in the shadow,
 * what the buffer was, and comes back as that. A mapping made with DMA_ATTR_SKIP_CPU_SYNC for the
 * device to read, of which nothing ever comes back, is poisoned instead.
 *
 * With dma_check=bounce,strict the CPU's view of a FROM_DEVICE mapping is taken away as well: the
 * buffer holds a pattern ("CPU!") from the map, or from a sync_for_device, until it is synced or
 * unmapped. One bit for each byte says where, so that an unmap which is not to copy gives back just
 * those bytes. Pages of processes are left alone.
 *
 * At the unmap the poison around the buffer must be whole. After the unmap the shadow is poisoned,
 * kept for a while, and must still be poison when it is freed. Its pages are somebody else's then,
 * and a write that comes even later hits those; so what the last ones were is remembered and told
 * with the report. Who owns a buffer is told in owner.c.
 *
 * Buffer and shadow belong to the ULP and to the device, who may write while they are copied here:
 * seeing that is what this is for. Those accesses are data_race().
 */

#include <linux/bitmap.h>
#include <linux/dma-mapping.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "base/fault.h"
#include "dma/check.h"

/* Shadows larger than this are freed at the unmap, and late writes to them are not seen. */
#define IBMR_DMA_KEEP	SZ_64K

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

/* All words but those that lie inside the run, which begins at @offset. */
static void ibmr_dma_poison_around(struct ibmr_dma_map *map, struct ibmr_dma_ent *ent,
				   size_t offset)
{
	u64 *word = ent->shadow;
	size_t before = DIV_ROUND_UP(offset, sizeof(u64));
	size_t after = (offset + ent->run) / sizeof(u64);

	memset64(word, map->poison, before);
	memset64(word + after, map->poison, ent->shadow_size / sizeof(u64) - after);
}

/* --- the CPU's view, strict --- */

static void ibmr_dma_hold(struct ibmr_dma_ent *ent, u64 off, u64 len)
{
	static const char pattern[4] = { 'C', 'P', 'U', '!' };
	u8 *cpu = ent->cpu;
	u64 i;

	if (!ent->held || ibmr_dma_of_processes(ent))
		return;
	for (i = off; i < off + len; i++)
		data_race(cpu[i] = pattern[i & 3]);
	bitmap_set(ent->held, off, len);
}

/* Room for the bits of a mapping that the device is to fill. False without memory. */
static bool ibmr_dma_hold_init(struct ibmr_dma_map *map)
{
	unsigned int i;

	if (!map->strict || map->dir != DMA_FROM_DEVICE)
		return true;
	for (i = 0; i < map->nr; i++) {
		struct ibmr_dma_ent *ent = &map->ent[i];

		if (ibmr_should_fail(IBMR_FAULT_ALLOC))
			return false;
		ent->held = bitmap_zalloc(max_t(u64, ent->len, 1), GFP_ATOMIC | __GFP_NOWARN);
		if (!ent->held)
			return false;
	}
	return true;
}

/* An unmap that copies nothing gives back what was taken away. */
static void ibmr_dma_hold_end(struct ibmr_dma_ent *ent)
{
	const u8 *from = (const u8 *)(uintptr_t)ent->start;
	unsigned long at = 0, end;

	if (!ent->held)
		return;
	for (;;) {
		at = find_next_bit(ent->held, ent->len, at);
		if (at >= ent->len)
			break;
		end = find_next_zero_bit(ent->held, ent->len, at);
		data_race(memcpy(ent->cpu + at, from + at, end - at));
		at = end;
	}
}

/* --- copies --- */

static void ibmr_dma_out(struct ibmr_dma_map *map, struct ibmr_dma_ent *ent, u64 off, u64 len)
{
	data_race(memcpy((void *)(uintptr_t)ent->start + off, ent->cpu + off, len));
	ibmr_dma_add_count(map->dd, IBMR_DMA_N_TO_DEVICE, len);
}

static void ibmr_dma_in(struct ibmr_dma_map *map, struct ibmr_dma_ent *ent, u64 off, u64 len)
{
	data_race(memcpy(ent->cpu + off, (void *)(uintptr_t)ent->start + off, len));
	if (ent->held)
		bitmap_clear(ent->held, off, len);
	ibmr_dma_add_count(map->dd, IBMR_DMA_N_TO_CPU, len);
}

/* What the shadow of @ent is at first. */
static void ibmr_dma_fill(struct ibmr_dma_map *map, struct ibmr_dma_ent *ent)
{
	bool skip = map->attrs & DMA_ATTR_SKIP_CPU_SYNC;

	if (skip && map->dir == DMA_TO_DEVICE)
		return;
	data_race(memcpy((void *)(uintptr_t)ent->start, ent->cpu, ent->len));
	if (!skip && ibmr_dma_to_device(map->dir))
		ibmr_dma_add_count(map->dd, IBMR_DMA_N_TO_DEVICE, ent->len);
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
	/* A copy of all of it follows, unless there is none to be made. */
	if ((map->attrs & DMA_ATTR_SKIP_CPU_SYNC) && map->dir == DMA_TO_DEVICE)
		ibmr_dma_poison(map, head);
	else
		ibmr_dma_poison_around(map, head, offset);
	for (run = (uintptr_t)head->shadow + offset; i < k; run += map->ent[i++].len)
		map->ent[i].start = run;
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
	if (!ibmr_dma_hold_init(map))
		return false;
	for (i = 0; i < map->nr; i = next) {
		next = ibmr_dma_bounce_run(map, i);
		if (!next)
			return false;
	}
	/* Nothing can fail any more. */
	for (i = 0; i < map->nr; i++)
		ibmr_dma_fill(map, &map->ent[i]);
	if (map->attrs & DMA_ATTR_SKIP_CPU_SYNC)
		return true;
	/* Only now, as two entries may be of the same memory. */
	for (i = 0; i < map->nr; i++)
		ibmr_dma_hold(&map->ent[i], 0, map->ent[i].len);
	for (i = 0; i < map->nr; i++)
		ibmr_dma_pass_new(&map->ent[i]);
	return true;
}

/* The list's device addresses, once nothing can fail any more. */
void ibmr_dma_bounce_list(struct ibmr_dma_map *map, struct scatterlist *sg)
{
	struct scatterlist *s;
	int i;

	for_each_sg(sg, s, map->nr, i) {
		sg_dma_address(s) = map->ent[i].start;
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
	u64 off = addr - ent->start;
	/*
	 * Who syncs a part keeps the rest, or does not; and other parts may be synced meanwhile.
	 * So only a sync of the whole entry is judged, and makes an owner.
	 */
	bool whole = size == ent->len;

	if (whole && ip && for_cpu)
		ibmr_dma_judge_cpu(ent, false, false, ip);
	else if (whole && ip)
		ibmr_dma_judge_dev(ent, ip);
	else if (!whole)
		ibmr_dma_pass_part(ent, for_cpu);
	if (for_cpu) {
		if (ibmr_dma_from_device(dir) && ibmr_dma_from_device(map->dir))
			ibmr_dma_in(map, ent, off, size);
	} else {
		if (ibmr_dma_to_device(dir) && ibmr_dma_to_device(map->dir))
			ibmr_dma_out(map, ent, off, size);
		ibmr_dma_hold(ent, off, size);
	}
	if (whole)
		ibmr_dma_pass(ent, for_cpu ? IBMR_DMA_CPU : IBMR_DMA_DEVICE);
}

/* What else these bytes of a shadow were, in words, or "". */
static const char *ibmr_dma_was_what(struct ibmr_dma_dev *dd, u64 addr, char *buf, size_t size)
{
	struct ibmr_dma_was was = {};
	unsigned long flags;
	unsigned int i;

	raw_spin_lock_irqsave(&dd->was_lock, flags);
	for (i = 1; i <= IBMR_DMA_WAS && !was.ip; i++) {
		struct ibmr_dma_was *w = &dd->was[(dd->was_next - i) % IBMR_DMA_WAS];

		if (w->ip && w->start <= addr && addr <= w->last)
			was = *w;
	}
	raw_spin_unlock_irqrestore(&dd->was_lock, flags);
	buf[0] = 0;
	if (was.ip)
		scnprintf(buf, size,
			  "; it may be meant for the mapping that had this page up to %u ms ago, made at %pS, unmapped at %pS",
			  jiffies_to_msecs(jiffies - was.when), (void *)was.ip,
			  (void *)was.gone_ip);
	return buf;
}

static void ibmr_dma_was_here(struct ibmr_dma_map *map, struct ibmr_dma_ent *ent)
{
	struct ibmr_dma_dev *dd = map->dd;
	struct ibmr_dma_was was = {
		.start = (uintptr_t)ent->shadow,
		.last = (uintptr_t)ent->shadow + ent->shadow_size - 1,
		.when = jiffies, .ip = map->ip, .gone_ip = map->gone_ip,
	};
	unsigned long flags;

	raw_spin_lock_irqsave(&dd->was_lock, flags);
	dd->was[dd->was_next++ % IBMR_DMA_WAS] = was;
	raw_spin_unlock_irqrestore(&dd->was_lock, flags);
}

/* Did the device write beside the buffer? Entries that share pages have one buffer, the run. */
static void ibmr_dma_check_around(struct ibmr_dma_map *map, struct ibmr_dma_ent *ent,
				  unsigned long ip)
{
	size_t from = ent->start - (uintptr_t)ent->shadow;
	size_t to = from + ent->run;
	size_t at;
	char was[192];

	at = ibmr_dma_poison_end(ent->shadow, 0, from, map->poison);
	if (at < from) {
		ibmr_dma_report(map->dd, IB_MR_DMA_DEV_OUTSIDE, ip, map,
				"%zu bytes before its first byte%s", from - at,
				ibmr_dma_was_what(map->dd, (uintptr_t)ent->shadow + at, was,
						  sizeof(was)));
		return;
	}
	at = ibmr_dma_poison_end(ent->shadow, to, ent->shadow_size, map->poison);
	if (at < ent->shadow_size)
		ibmr_dma_report(map->dd, IB_MR_DMA_DEV_OUTSIDE, ip, map,
				"%zu bytes past its last byte%s", at - to + 1,
				ibmr_dma_was_what(map->dd, (uintptr_t)ent->shadow + at, was,
						  sizeof(was)));
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

	for (i = 0; i < map->nr; i++) {
		struct ibmr_dma_ent *ent = &map->ent[i];

		if (!quiet)
			ibmr_dma_judge_cpu(ent, true, copies, ip);
		if (copies)
			ibmr_dma_in(map, ent, 0, ent->len);
		else
			ibmr_dma_hold_end(ent);
	}
	if (ibmr_dma_from_device(map->dir))
		ibmr_dma_copied(map);
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

/*
 * Nobody looks at the shadow any more. A mapping that was unmapped has a place where, and poison in
 * its pages.
 */
void ibmr_dma_bounce_free(struct ibmr_dma_map *map)
{
	unsigned int i;

	for (i = 0; i < map->nr; i++) {
		struct ibmr_dma_ent *ent = &map->ent[i];
		char was[192];
		size_t at;

		bitmap_free(ent->held);
		ent->held = NULL;
		if (!ent->shadow)
			continue;
		at = map->gone_ip ? ibmr_dma_poison_end(ent->shadow, 0, ent->shadow_size,
							map->poison) : ent->shadow_size;
		if (at < ent->shadow_size &&
		    ibmr_dma_report_due(map->dd, IB_MR_DMA_DEV_LATE, map->gone_ip))
			ibmr_dma_report_write(map->dd, IB_MR_DMA_DEV_LATE, NULL, map,
					      "at byte %lld; seen when its shadow was freed%s",
					      (s64)((uintptr_t)ent->shadow + at - ent->start),
					      ibmr_dma_was_what(map->dd,
								(uintptr_t)ent->shadow + at,
								was, sizeof(was)));
		if (map->gone_ip)
			ibmr_dma_was_here(map, ent);
		free_pages_exact(ent->shadow, ent->shadow_size);
		ent->shadow = NULL;
	}
}
