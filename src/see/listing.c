// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tables in debugfs: regions, pools, windows, magazines.
 *
 * Each begins with a line of column names behind a #, and has one line for each object; columns
 * are words without blanks and never change places, new ones are added at the end. The unit is in
 * the name where it is not a count; pd is what `rdma resource show pd` calls pdn, and a magazine's
 * number is its pool's as well.
 *
 * Objects come and go while a table is read. Regions are found by their keys, under RCU, so a
 * reader holds nobody up and sees each one that is there all the time just once. The others are in
 * lists, whose mutex is held for one read() at a time, some dozens of lines; what belongs together
 * in a line is taken together, under the lock that its owner uses, and printed after that. Things
 * have rising numbers there, by which a reader goes on where he was. The device itself cannot go
 * meanwhile: its removal first removes the files, which waits for readers.
 */

#include <linux/seq_file.h>

#include "base/compat.h"
#include "base/keys.h"
#include "fmr/pool.h"
#include "mw/window.h"
#include "see/debugfs.h"
#include "see/explain.h"

/* --- regions: the position is 1 + the next key index to look at; 0 is the heading --- */

static void *next_region(struct ibmr_dev *dev, loff_t *pos)
{
	u32 index = *pos - 1;
	struct ibmr_keyed *keyed;

	/* Among many more armed MRs. */
	while ((keyed = ibmr_key_next(dev, &index)) && keyed->kind != IBMR_KEYED_REG)
		index++;
	if (keyed)
		*pos = index + 1;
	return keyed;
}

static void *regions_start(struct seq_file *m, loff_t *pos)
	__acquires(RCU)
{
	rcu_read_lock();
	return *pos ? next_region(m->private, pos) : SEQ_START_TOKEN;
}

static void *regions_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return next_region(m->private, pos);
}

static void regions_stop(struct seq_file *m, void *v)
	__releases(RCU)
{
	rcu_read_unlock();
}

static const char *region_state(const struct ibmr_reg *reg)
{
	if (READ_ONCE(reg->invalidated))
		return "invalidated";
	return ibmr_reg_stale(reg) ? "stale" : "live";
}

static int regions_show(struct seq_file *m, void *v)
{
	char rights[IBMR_RIGHTS_TEXT];
	const struct ibmr_reg *reg;

	if (v == SEQ_START_TOKEN) {
		seq_puts(m, "#     lkey       rkey               iova         length_bytes     runs   blocks pinned_pages windows    pd state       access\n");
		return 0;
	}
	reg = container_of(v, struct ibmr_reg, keyed);
	seq_printf(m, "%#010x %#010x %#018llx %20llu %8u %8llu %12llu %7d %5u %-11s %s\n",
		   reg->lkey, reg->rkey, reg->iova, reg->length, ibmr_reg_runs(reg), reg->blocks,
		   ibmr_reg_pinned(reg), max(0, atomic_read(&reg->region->windows)), reg->pdn,
		   region_state(reg),
		   ibmr_rights_text(reg->access, "|", rights, sizeof(rights)));
	return 0;
}

static const struct seq_operations regions_sops = {
	.start = regions_start, .next = regions_next, .stop = regions_stop, .show = regions_show,
};
DEFINE_SEQ_ATTRIBUTE(regions);

/* --- the others: lists; the position is a number in the list, 0 is the heading --- */

static struct ibmr_listed *from_nr(struct ibmr_listed *it, struct list_head *list, loff_t *pos)
{
	list_for_each_entry_from(it, list, entry)
		if (it->nr >= *pos) {
			*pos = it->nr;
			return it;
		}
	return NULL;
}

/* @where: offset of the list's head in the device's state */
static void *list_start(struct seq_file *m, size_t where, loff_t *pos)
{
	struct ibmr_dev *dev = m->private;
	struct list_head *list = m->private + where;

	mutex_lock(&dev->mag_lock);
	return *pos ? from_nr(list_first_entry(list, struct ibmr_listed, entry), list, pos) :
		      SEQ_START_TOKEN;
}

static void *list_next(struct seq_file *m, size_t where, void *v, loff_t *pos)
{
	struct list_head *list = m->private + where;
	struct ibmr_listed *it = v;

	++*pos;
	return from_nr(v == SEQ_START_TOKEN ? list_first_entry(list, struct ibmr_listed, entry) :
					      list_next_entry(it, entry), list, pos);
}

static void list_stop(struct seq_file *m, void *v)
{
	struct ibmr_dev *dev = m->private;

	mutex_unlock(&dev->mag_lock);
}

#define LISTING(name, where)						\
static void *name##_start(struct seq_file *m, loff_t *pos)		\
{									\
	return list_start(m, where, pos);				\
}									\
									\
static void *name##_next(struct seq_file *m, void *v, loff_t *pos)	\
{									\
	return list_next(m, where, v, pos);				\
}									\
									\
static const struct seq_operations name##_sops = {			\
	.start = name##_start, .next = name##_next,			\
	.stop = list_stop, .show = name##_show,				\
};									\
DEFINE_SEQ_ATTRIBUTE(name)

static const char *pool_mode(const struct ib_fmr_pool *pool)
{
	if (pool->destroyed)
		return "destroyed";
	if (pool->param.cache)
		return "cache";
	if (pool->param.key_maps > 1)
		return "key_maps";
	return pool->param.rekey_at_once ? "at_once" : "plain";
}

static int pools_show(struct seq_file *m, void *v)
{
	unsigned int in_use, peak, cached, dirty;
	char rights[IBMR_RIGHTS_TEXT];
	struct ib_fmr_pool *pool;
	u64 flushes, hits;
	const char *mode;

	if (v == SEQ_START_TOKEN) {
		seq_puts(m, "# magazine pages_max page_bytes     size   in_use high_water   cached    dirty       eagain    flushes         hits    pd mode       access\n");
		return 0;
	}
	pool = container_of(v, struct ib_fmr_pool, listed);
	spin_lock_irq(&pool->mag->lock);
	in_use = pool->plain ? pool->mag->in_use : pool->users;
	peak = pool->peak;
	cached = pool->cached;
	dirty = ibmr_pool_dirty(pool);
	flushes = pool->flushes;
	hits = pool->hits;
	mode = pool_mode(pool);
	spin_unlock_irq(&pool->mag->lock);
	seq_printf(m, "%10u %9d %10llu %8u %8u %10u %8u %8u %12llu %10llu %12llu %5u %-10s %s\n",
		   pool->mag->listed.nr, pool->param.max_pages_per_fmr,
		   1ULL << pool->param.page_shift, pool->nr, in_use, peak, cached, dirty,
		   (u64)atomic64_read(&pool->again), flushes, hits, pool->pdn, mode,
		   ibmr_rights_text(pool->param.access, "|", rights, sizeof(rights)));
	return 0;
}
LISTING(pools, offsetof(struct ibmr_dev, pools));

static int windows_show(struct seq_file *m, void *v)
{
	u64 iova = 0, length = 0, binds;
	char rights[IBMR_RIGHTS_TEXT];
	struct ibmr_window *w;
	u32 rkey, mr_lkey = 0;
	int access = 0;
	bool bound;

	if (v == SEQ_START_TOKEN) {
		seq_puts(m, "#     rkey type state               iova         length_bytes    mr_lkey        binds    pd access\n");
		return 0;
	}
	w = container_of(v, struct ibmr_window, listed);
	spin_lock_irq(&w->lock);
	rkey = w->mw.rkey;
	binds = w->binds;
	bound = w->region;
	if (bound) {
		const struct ibmr_armed *a = w->armed;

		/* A bound window keeps both its region's registration and its MR. */
		mr_lkey = w->region->reg->lkey;
		iova = a->drv->iova;
		length = a->drv->length;
		access = a->mag->access;
	}
	spin_unlock_irq(&w->lock);
	seq_printf(m, "%#010x %4d %-5s %#018llx %20llu %#010x %12llu %5u %s\n", rkey, w->mw.type,
		   bound ? "bound" : "free", iova, length, mr_lkey, binds, w->pdn,
		   ibmr_rights_text(access, "|", rights, sizeof(rights)));
	return 0;
}
LISTING(windows, offsetof(struct ibmr_dev, windows));

static int magazines_show(struct seq_file *m, void *v)
{
	unsigned int stock, in_use, created, retired, quarantine, due, promised, target, peak;
	u64 takes, empties, rekeyed, replaced;
	char rights[IBMR_RIGHTS_TEXT];
	struct ibmr_mag *mag;

	if (v == SEQ_START_TOKEN) {
		seq_puts(m, "# magazine    pages sharers promised   target  created    stock   in_use     peak  retired quarantine      due        takes        empty      rekeyed     replaced access\n");
		return 0;
	}
	mag = container_of(v, struct ibmr_mag, listed);
	spin_lock_irq(&mag->lock);
	stock = mag->stock.nr;
	in_use = mag->in_use;
	created = mag->created;
	retired = mag->retired.nr;
	quarantine = mag->quarantine.nr;
	due = mag->due.nr;
	promised = mag->promised;
	target = mag->target;
	peak = max(mag->peak, mag->in_use);
	takes = mag->takes;
	empties = mag->empties;
	rekeyed = mag->rekeyed;
	replaced = mag->replaced;
	spin_unlock_irq(&mag->lock);
	seq_printf(m,
		   "%10u %8u %7u %8u %8u %8u %8u %8u %8u %8u %10u %8u %12llu %12llu %12llu %12llu %s\n",
		   mag->listed.nr, mag->capacity, mag->shared, promised, target, created, stock,
		   in_use, peak, retired, quarantine, due, takes, empties, rekeyed, replaced,
		   ibmr_rights_text(mag->access, "|", rights, sizeof(rights)));
	return 0;
}
LISTING(magazines, offsetof(struct ibmr_dev, mags));

void ibmr_listings_add(struct ibmr_dev *dev)
{
	ibmr_debugfs_file(dev, "regions", 0400, &regions_fops);
	ibmr_debugfs_file(dev, "pools", 0400, &pools_fops);
	ibmr_debugfs_file(dev, "windows", 0400, &windows_fops);
	ibmr_debugfs_file(dev, "magazines", 0400, &magazines_fops);
}
