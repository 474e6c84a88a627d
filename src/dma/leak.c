// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA checker: mappings that are still there, listed (dma_live in debugfs), reported as leaks, or
 * dropped with the module.
 */

#include <linux/module.h>
#include <linux/seq_file.h>

#include "dma/check.h"

/* Rows of dma_live. */
#define IBMR_DMA_SHOWN	256

/* Mappings that live: all, or those that @of made. Each is counted, each place reported once. */
void ibmr_dma_report_leaks(struct ibmr_dma_dev *dd, const struct module *of, const char *when)
{
	struct ibmr_dma_map *map;
	struct ibmr_dma_ent *ent;
	unsigned long flags;
	int i;

	for (i = 0; i < IBMR_DMA_SHARDS; i++) {
		do {
			map = NULL;
			raw_spin_lock_irqsave(&dd->shard[i].lock, flags);
			ibmr_dma_for_each(ent, &dd->shard[i], 0, U64_MAX) {
				if (ent->map->told_leak || ent != &ent->map->ent[0])
					continue;
				if (of && ent->map->of != of)
					continue;
				ent->map->told_leak = true;
				if (!ibmr_dma_report_due(dd, IB_MR_DMA_LEAK, ent->map->ip))
					continue;
				map = ent->map;
				refcount_inc(&map->refs);
				break;
			}
			raw_spin_unlock_irqrestore(&dd->shard[i].lock, flags);
			if (map)
				ibmr_dma_report_write(dd, IB_MR_DMA_LEAK, NULL, map,
						      "%s; %lld mappings of the device live", when,
						      (long long)atomic64_read(&dd->live));
			ibmr_dma_map_put(map);
		} while (map);
	}
}

/* The module goes: nobody will unmap these any more. */
void ibmr_dma_drop_live(struct ibmr_dma_dev *dd)
{
	struct ibmr_dma_ent *ent;
	struct ibmr_dma_map *map;
	unsigned int k;
	int i;

	for (i = 0; i < IBMR_DMA_SHARDS; i++) {
		while ((ent = ibmr_dma_ent_first(&dd->shard[i], 0, U64_MAX))) {
			map = ent->map;
			k = ibmr_dma_shard_of(map->ent[0].start);
			ibmr_dma_ent_remove(&dd->shard[k], &map->ent[0]);
			ibmr_dma_remove_rest(map);
			atomic64_dec(&dd->live);
			ibmr_dma_map_put(map);
		}
	}
}

void ibmr_dma_show_live(struct ibmr_dma_dev *dd, struct seq_file *m)
{
	static const char *const how[] = { "single", "sg", "coherent" };
	int i, n = 0, more = 0;
	struct ibmr_dma_ent *ent;
	unsigned long flags;

	for (i = 0; i < IBMR_DMA_SHARDS; i++) {
		raw_spin_lock_irqsave(&dd->shard[i].lock, flags);
		ibmr_dma_for_each(ent, &dd->shard[i], 0, U64_MAX) {
			struct ibmr_dma_map *map = ent->map;

			if (ent != &map->ent[0])
				continue;
			if (++n > IBMR_DMA_SHOWN) {
				more++;
				continue;
			}
			seq_printf(m, "%#llx %llu %s %s entries=%u%s%s age_ms=%u %s/%d %pS\n",
				   ent->start, map->size, how[map->how],
				   ibmr_dma_dir_name(map->dir), map->nr,
				   map->bounced ? " bounced" : "",
				   map->checked ? "" : " unchecked",
				   jiffies_to_msecs(jiffies - map->when), map->comm, map->pid,
				   (void *)map->ip);
		}
		raw_spin_unlock_irqrestore(&dd->shard[i].lock, flags);
	}
	if (more)
		seq_printf(m, "... and %d more\n", more);
}
