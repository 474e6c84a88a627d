/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the files of the DMA checker share: dma.c (the calls), device.c (devices and modes),
 * check.c (the live mappings and what may be done with them), leak.c (what is still
 * there), bounce.c (shadow buffers), report.c.
 */
#ifndef IBMR_DMA_CHECK_H
#define IBMR_DMA_CHECK_H

#include <linux/hash.h>
#include <linux/interval_tree.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "dma/dma.h"

struct module;
struct seq_file;

#define IBMR_DMA_FRAMES	12	/* of a call chain, kept */
#define IBMR_DMA_SHARDS	16	/* of a device's mappings, by page of the first device address */
#define IBMR_DMA_PAST	4	/* mappings a shard remembers after their unmap */

struct ibmr_dma_stack {
	unsigned int nr;
	unsigned long ip[IBMR_DMA_FRAMES];
};

/* After the sync of a part the one side may own it and the other the rest. */
enum ibmr_dma_owner { IBMR_DMA_UNKNOWN, IBMR_DMA_DEVICE, IBMR_DMA_CPU };

enum ibmr_dma_how { IBMR_DMA_SINGLE, IBMR_DMA_SG, IBMR_DMA_COHERENT };

/**
 * struct ibmr_dma_req - a call, as it came in
 * @how: kind of call
 * @call: its classic name, for the report
 * @ip: where in the ULP it was made
 * @of: the ULP's module (maps only)
 * @cpu: buffer (single and page maps)
 * @page: that it was given a page, for a device with real DMA
 * @offset: in @page
 * @sg: list
 * @nents: its length as the caller says
 * @addr: device address (all but maps)
 * @size: bytes as the caller says; of a list, filled in
 * @dir: direction
 * @attrs: DMA_ATTR_*
 */
struct ibmr_dma_req {
	enum ibmr_dma_how how;
	const char *call;
	unsigned long ip;
	struct module *of;
	void *cpu;
	struct page *page;
	unsigned long offset;
	struct scatterlist *sg;
	int nents;
	u64 addr;
	u64 size;
	enum dma_data_direction dir;
	unsigned long attrs;
};

/**
 * struct ibmr_dma_ent - one run of device addresses: a single mapping, or one entry of a list
 * @it: the device addresses (the last is inclusive), in the shard of the first
 * @map: mapping it belongs to
 * @cpu: its buffer, where bounced
 * @len: bytes; @it covers one byte when this is 0
 * @shadow: whole pages that stand for the buffer; set in the first entry of a run of entries that
 *	meet inside a page, and NULL in the others of the run
 * @shadow_size: bytes of @shadow
 * @run: bytes of the run, from the first entry's first
 */
struct ibmr_dma_ent {
	struct interval_tree_node it;
	struct ibmr_dma_map *map;
	void *cpu;
	u32 len;
	void *shadow;
	size_t shadow_size;
	u64 run;
};

/**
 * struct ibmr_dma_map - a mapping: what one map call made
 * @dd: its device
 * @refs: one of the tree (afterwards: of the shard's past), one of each lookup
 * @how: kind of call
 * @dir: direction
 * @attrs: DMA_ATTR_*
 * @bounced: made in bounce mode; so it is unmapped, whatever the mode is then
 * @checked: ib_dma_mapping_error() was asked, or need not be
 * @told_unchecked: reported
 * @told_leak: reported
 * @owner: who owns all of the buffer, as far as syncs tell
 * @cpu_sum: hash of the buffer when the owner got it
 * @dev_sum: hash of the shadow when the device got it
 * @poison: word that fills what the device was not given
 * @sg: list it was made from
 * @nents: the list's length as the map call said
 * @size: bytes
 * @of: module that made it; only compared
 * @when: jiffies
 * @pid: task that made it
 * @comm: its name
 * @at: where it was made
 * @gone: where it was unmapped, once it is
 * @nr: entries in @ent
 * @ent: runs of device addresses; the first stands for the mapping
 */
struct ibmr_dma_map {
	struct ibmr_dma_dev *dd;
	refcount_t refs;
	enum ibmr_dma_how how;
	enum dma_data_direction dir;
	unsigned long attrs;
	bool bounced;
	bool checked;
	bool told_unchecked;
	bool told_leak;
	enum ibmr_dma_owner owner;
	u32 cpu_sum;
	u32 dev_sum;
	u64 poison;
	struct scatterlist *sg;
	int nents;
	u64 size;
	struct module *of;
	unsigned long when;
	pid_t pid;
	char comm[TASK_COMM_LEN];
	struct ibmr_dma_stack at;
	struct ibmr_dma_stack gone;
	unsigned int nr;
	struct ibmr_dma_ent ent[] __counted_by(nr);
};

struct ibmr_dma_shard {
	raw_spinlock_t lock;
	struct rb_root_cached live;
	struct ibmr_dma_map *past[IBMR_DMA_PAST];
	unsigned int next;
} ____cacheline_aligned_in_smp;

enum ibmr_dma_count {
	IBMR_DMA_N_MAPS,
	IBMR_DMA_N_UNMAPS,
	IBMR_DMA_N_SYNCS,
	IBMR_DMA_N_FAILED,	/* maps that failed, by injection or without memory */
	IBMR_DMA_N_UNTRACKED,	/* maps made although there was no memory to remember them */
	IBMR_DMA_N_UNSEEN,	/* unmaps and syncs of what may be older than the checker */
	IBMR_DMA_N_TO_DEVICE,	/* bytes copied by bouncing */
	IBMR_DMA_N_TO_CPU,
	IBMR_DMA_N_COUNT
};

/**
 * struct ibmr_dma_dev - a device's DMA state
 * @ibdev: the device's address; only compared once @removed
 * @name: for reports
 * @mode: enum ib_mr_dma_check_mode
 * @removed: the device is gone; the state waits for the last unmap
 * @keyed: holds the static key. Under the device mutex
 * @live: mappings
 * @live_bytes: in them
 * @count: enum ibmr_dma_count
 * @fault: by enum ib_mr_dma_fault, every single one
 * @work: leaks after removal; end of checking when the mode is off and nothing is mapped
 * @node: in the table by address; under the device mutex, read under RCU
 * @all: in the list of all, to the end of the module or of the state
 * @rcu: for the table's readers
 * @shard: the mappings
 */
struct ibmr_dma_dev {
	struct ib_device *ibdev;
	const char *name;
	int mode;
	bool removed;
	bool keyed;
	atomic64_t live;
	atomic64_t live_bytes;
	atomic64_t count[IBMR_DMA_N_COUNT];
	atomic64_t fault[IB_MR_DMA_FAULT_COUNT];
	struct delayed_work work;
	struct hlist_node node;
	struct list_head all;
	struct rcu_head rcu;
	struct ibmr_dma_shard shard[IBMR_DMA_SHARDS];
};

static inline unsigned int ibmr_dma_shard_of(u64 addr)
{
	return hash_64(addr >> PAGE_SHIFT, ilog2(IBMR_DMA_SHARDS));
}

static inline struct ibmr_dma_ent *ibmr_dma_ent(struct interval_tree_node *it)
{
	return it ? container_of(it, struct ibmr_dma_ent, it) : NULL;
}

#define ibmr_dma_for_each(ent, shard, first, last)					\
	for (ent = ibmr_dma_ent(interval_tree_iter_first(&(shard)->live, first, last));	\
	     ent; ent = ibmr_dma_ent(interval_tree_iter_next(&(ent)->it, first, last)))

static inline void ibmr_dma_add_count(struct ibmr_dma_dev *dd, enum ibmr_dma_count c, u64 n)
{
	atomic64_add(n, &dd->count[c]);
}

/* device.c */
struct ibmr_dma_dev *ibmr_dma_checked(struct ib_device *device);
struct ibmr_dma_dev *ibmr_dma_known(struct ib_device *device);

/* check.c */
void ibmr_dma_shards_init(struct ibmr_dma_dev *dd);
u64 ibmr_dma_check_map(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req);
int ibmr_dma_check_map_sg(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req);
void ibmr_dma_check_coherent(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req);
u64 ibmr_dma_check_unmap(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req);
void ibmr_dma_check_sync(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req, bool for_cpu);
int ibmr_dma_check_error(struct ibmr_dma_dev *dd, u64 addr);
void ibmr_dma_check_used(struct ibmr_dma_dev *dd, u64 addr, u64 len);
void ibmr_dma_forget_past(struct ibmr_dma_dev *dd);
void ibmr_dma_remove_rest(struct ibmr_dma_map *map);
void ibmr_dma_map_put(struct ibmr_dma_map *map);
struct ibmr_dma_map *ibmr_dma_map_alloc(unsigned int nr);
bool ibmr_dma_should_fail(u64 size);
int ibmr_dma_fault_init(struct dentry *dir);

/* leak.c */
void ibmr_dma_report_leaks(struct ibmr_dma_dev *dd, const struct module *of, const char *when);
void ibmr_dma_drop_live(struct ibmr_dma_dev *dd);
void ibmr_dma_show_live(struct ibmr_dma_dev *dd, struct seq_file *m);

/* bounce.c */
bool ibmr_dma_bounce(struct ibmr_dma_map *map);
void ibmr_dma_bounce_list(struct ibmr_dma_map *map, struct scatterlist *sg);
void ibmr_dma_bounce_sync(struct ibmr_dma_map *map, struct ibmr_dma_ent *ent, u64 addr, u64 size,
			  enum dma_data_direction dir, bool for_cpu, unsigned long ip);
void ibmr_dma_bounce_end(struct ibmr_dma_map *map, enum dma_data_direction dir,
			 unsigned long attrs, bool quiet, unsigned long ip);
void ibmr_dma_bounce_shrink(struct ibmr_dma_map *map);
void ibmr_dma_bounce_free(struct ibmr_dma_map *map);

/* report.c */
void ibmr_dma_stack_save(struct ibmr_dma_stack *stack, unsigned long ip);
void ibmr_dma_report(struct ibmr_dma_dev *dd, enum ib_mr_dma_fault fault, unsigned long ip,
		     struct ibmr_dma_map *map, const char *fmt, ...) __printf(5, 6);
bool ibmr_dma_report_due(struct ibmr_dma_dev *dd, enum ib_mr_dma_fault fault, unsigned long ip);
void ibmr_dma_report_write(struct ibmr_dma_dev *dd, enum ib_mr_dma_fault fault,
			   const struct ibmr_dma_stack *here, struct ibmr_dma_map *map,
			   const char *fmt, ...) __printf(5, 6);
const char *ibmr_dma_fault_name(enum ib_mr_dma_fault fault);
const char *ibmr_dma_dir_name(enum dma_data_direction dir);
void ibmr_dma_forget_sites(const struct module *of);
void ibmr_dma_reports_init(struct dentry *dir);
void ibmr_dma_reports_exit(void);

#endif /* IBMR_DMA_CHECK_H */
