/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the files of the DMA checker share. dma.c has the calls and device.c the devices and their
 * modes; table.c knows the live mappings and those of the past, unseen.c counts the mappings that
 * nobody saw made, chain.c keeps call chains. check.c has the rules for maps and unmaps, rules.c
 * those for whatever is done with a mapping. bounce.c has the shadow buffers, owner.c tells who
 * owns them; leak.c lists what is still there, report.c tells of it.
 */
#ifndef IBMR_DMA_CHECK_H
#define IBMR_DMA_CHECK_H

#include <linux/hash.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#include "dma/dma.h"

struct module;
struct seq_file;

#define IBMR_DMA_FRAMES	12	/* of a call chain, kept */
#define IBMR_DMA_SHARDS	16	/* of a device's mappings, by page of the first device address */
#define IBMR_DMA_PAST	256	/* mappings a shard remembers after their unmap */
#define IBMR_DMA_LATE	4	/* of which the youngest keep their shadows */
#define IBMR_DMA_WAS	64	/* shadows that a device remembers after their pages were freed */
#define IBMR_DMA_LOOK	64	/* mappings of one place that are looked at, with interrupts off */
#define IBMR_DMA_BOUNCE_MAX	SZ_4M	/* a shadow is one allocation */

struct ibmr_dma_stack {
	unsigned int nr;
	unsigned long ip[IBMR_DMA_FRAMES];
};

/**
 * struct ibmr_dma_chain - a call chain, shared by all calls that came that way
 * @node: in the table, by @ip and @way
 * @refs: the table's, and one of each mapping
 * @ip: where in the ULP the call was made
 * @way: a hash of how it was reached
 * @rcu: for the table's readers
 * @stack: the frames
 */
struct ibmr_dma_chain {
	struct hlist_node node;
	refcount_t refs;
	unsigned long ip;
	unsigned long way;
	struct rcu_head rcu;
	struct ibmr_dma_stack stack;
};

/* After the sync of a part the one side may own it and the other the rest. */
enum ibmr_dma_owner { IBMR_DMA_UNKNOWN, IBMR_DMA_DEVICE, IBMR_DMA_CPU };

enum ibmr_dma_how { IBMR_DMA_SINGLE, IBMR_DMA_SG, IBMR_DMA_COHERENT };

/**
 * struct ibmr_dma_req - a call, as it came in
 * @how: kind of call
 * @call: its classic name, for the report
 * @ip: where in the ULP it was made
 * @of: the ULP's module (maps and unmaps)
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
 * @rb: in the tree of the shard of @start
 * @start: first device address
 * @last: last one (inclusive); one byte is covered when @len is 0
 * @upto: the last address of all below it in the tree
 * @tie: tells runs that begin at one address apart; 0 while nobody asked for the mapping's error
 * @map: mapping it belongs to
 * @cpu: its buffer, where bounced
 * @len: bytes
 * @shadow: whole pages that stand for the buffer; set in the first entry of a run of entries that
 *	meet inside a page, and NULL in the others of the run
 * @shadow_size: bytes of @shadow
 * @run: bytes of the run, from the first entry's first
 * @owner: who owns all of the entry, as far as syncs tell
 * @dev_known: @dev_sum is that of the shadow, unless the device wrote
 * @cpu_sum: hash of the buffer when the owner got it
 * @dev_sum: hash of the shadow when the device got it
 * @given: number of the last copy to any buffer at that time, see owner.c
 * @held: dma_check=bounce,strict: a bit for each byte that the CPU must not see
 */
struct ibmr_dma_ent {
	struct rb_node rb;
	u64 start;
	u64 last;
	u64 upto;
	u64 tie;
	struct ibmr_dma_map *map;
	void *cpu;
	u64 len;
	void *shadow;
	size_t shadow_size;
	u64 run;
	enum ibmr_dma_owner owner;
	bool dev_known;
	u64 cpu_sum;
	u64 dev_sum;
	u64 given;
	unsigned long *held;
};

/**
 * struct ibmr_dma_map - a mapping: what one map call made
 * @dd: its device
 * @refs: one of the tree (afterwards: of the shard's past), one of each lookup
 * @how: kind of call
 * @dir: direction
 * @attrs: DMA_ATTR_*
 * @bounced: made in bounce mode; so it is unmapped, whatever the mode is then
 * @strict: the CPU's view is taken away, too
 * @checked: ib_dma_mapping_error() was asked, or need not be, or nobody can tell
 * @told_unchecked: reported
 * @told_leak: reported
 * @poison: word that fills what the device was not given
 * @sg: list it was made from
 * @nents: the list's length as the map call said
 * @size: bytes
 * @of: module that made it; only compared
 * @when: jiffies
 * @pid: task that made it
 * @comm: its name
 * @ip: where it was made
 * @gone_ip: where it was unmapped, once it is
 * @gone: number of the last copy to any buffer when it had been unmapped
 * @at: call chain of the map, or NULL
 * @gone_at: call chain of the unmap, or NULL
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
	bool strict;
	bool checked;
	bool told_unchecked;
	bool told_leak;
	u64 poison;
	struct scatterlist *sg;
	int nents;
	u64 size;
	struct module *of;
	unsigned long when;
	pid_t pid;
	char comm[TASK_COMM_LEN];
	unsigned long ip;
	unsigned long gone_ip;
	u64 gone;
	struct ibmr_dma_chain *at;
	struct ibmr_dma_chain *gone_at;
	unsigned int nr;
	struct ibmr_dma_ent ent[] __counted_by(nr);
};

/* Pages that were a shadow: what is written to them now may be meant for that mapping. */
struct ibmr_dma_was {
	u64 start;
	u64 last;
	unsigned long when;
	unsigned long ip;
	unsigned long gone_ip;
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
 * @hint: the same of what may be a fault
 * @told_large: a map above the limit was reported
 * @was: freed shadows, the youngest at @was_next - 1; under @was_lock
 * @was_next: where the next goes
 * @was_lock: innermost
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
	atomic64_t hint[IB_MR_DMA_FAULT_COUNT];
	atomic_t told_large;
	struct ibmr_dma_was was[IBMR_DMA_WAS];
	unsigned int was_next;
	raw_spinlock_t was_lock;
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

static inline u64 ibmr_dma_last(u64 addr, u64 size)
{
	u64 last = addr + max_t(u64, size, 1) - 1;

	return last < addr ? U64_MAX : last;
}

static inline bool ibmr_dma_to_device(enum dma_data_direction dir)
{
	return dir == DMA_TO_DEVICE || dir == DMA_BIDIRECTIONAL;
}

static inline bool ibmr_dma_from_device(enum dma_data_direction dir)
{
	return dir == DMA_FROM_DEVICE || dir == DMA_BIDIRECTIONAL;
}

#define ibmr_dma_for_each(ent, shard, first, last)		\
	for (ent = ibmr_dma_ent_first(shard, first, last); ent;	\
	     ent = ibmr_dma_ent_next(ent, first, last))

static inline void ibmr_dma_add_count(struct ibmr_dma_dev *dd, enum ibmr_dma_count c, u64 n)
{
	atomic64_add(n, &dd->count[c]);
}

/* device.c */
struct ibmr_dma_dev *ibmr_dma_checked(struct ib_device *device);
struct ibmr_dma_dev *ibmr_dma_known(struct ib_device *device);
bool ibmr_dma_any_dev(bool (*fn)(struct ibmr_dma_dev *dd, void *arg), void *arg);

/* unseen.c */
enum ibmr_dma_unseen_kind { IBMR_DMA_STREAMING, IBMR_DMA_MEMORY };
void ibmr_dma_unseen_add(const struct ib_device *device, enum ibmr_dma_unseen_kind kind,
			 const struct module *of, long n);
bool ibmr_dma_unseen_any(const struct ib_device *device, enum ibmr_dma_unseen_kind kind);
bool ibmr_dma_unseen_take(const struct ib_device *device, enum ibmr_dma_unseen_kind kind,
			  const struct module *of);
void ibmr_dma_unseen_level(const struct ib_device *device);
void ibmr_dma_user_comes(const struct module *mod);
void ibmr_dma_user_goes(const struct module *mod);
void ibmr_dma_users_exit(void);

/* chain.c */
struct ibmr_dma_chain *ibmr_dma_chain_get(unsigned long ip);
void ibmr_dma_chain_put(struct ibmr_dma_chain *chain);
void ibmr_dma_chains_forget(void);
void ibmr_dma_stack_save(struct ibmr_dma_stack *stack, unsigned long ip);

/* table.c */
void ibmr_dma_shards_init(struct ibmr_dma_dev *dd);
struct ibmr_dma_ent *ibmr_dma_ent_first(struct ibmr_dma_shard *shard, u64 first, u64 last);
struct ibmr_dma_ent *ibmr_dma_ent_next(struct ibmr_dma_ent *ent, u64 first, u64 last);
struct ibmr_dma_ent *ibmr_dma_ent_at(struct ibmr_dma_shard *shard, u64 start, u64 tie);
struct ibmr_dma_ent *ibmr_dma_ent_twin(struct ibmr_dma_ent *ent);
void ibmr_dma_ent_remove(struct ibmr_dma_shard *shard, struct ibmr_dma_ent *ent);
u64 ibmr_dma_tie(enum ibmr_dma_how how, enum dma_data_direction dir, u64 size,
		 const struct scatterlist *sg);
struct ibmr_dma_map *ibmr_dma_map_alloc(unsigned int nr);
struct ibmr_dma_map *ibmr_dma_map_new(struct ibmr_dma_dev *dd, const struct ibmr_dma_req *req,
				      unsigned int nr);
void ibmr_dma_map_put(struct ibmr_dma_map *map);
void ibmr_dma_insert(struct ibmr_dma_map *map);
void ibmr_dma_asked(struct ibmr_dma_shard *shard, struct ibmr_dma_ent *ent);
void ibmr_dma_remove_rest(struct ibmr_dma_map *map);
void ibmr_dma_bury(struct ibmr_dma_map *map);
void ibmr_dma_forget_past(struct ibmr_dma_dev *dd);
struct ibmr_dma_map *ibmr_dma_find_past(struct ibmr_dma_dev *dd, u64 addr,
					bool (*fits)(const struct ibmr_dma_map *map));

/* check.c */
u64 ibmr_dma_check_map(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req);
int ibmr_dma_check_map_sg(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req);
void ibmr_dma_check_coherent(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req);
void ibmr_dma_check_unmap(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req);
bool ibmr_dma_check_free(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req);
bool ibmr_dma_should_fail(u64 size);
int ibmr_dma_fault_init(struct dentry *dir);

/* rules.c */
void ibmr_dma_check_sync(struct ibmr_dma_dev *dd, struct ibmr_dma_req *req, bool for_cpu);
int ibmr_dma_check_error(struct ibmr_dma_dev *dd, u64 addr);
void ibmr_dma_check_used(struct ibmr_dma_dev *dd, u64 addr, u64 len);

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

/* owner.c */
bool ibmr_dma_of_processes(const struct ibmr_dma_ent *ent);
void ibmr_dma_pass(struct ibmr_dma_ent *ent, enum ibmr_dma_owner owner);
void ibmr_dma_pass_new(struct ibmr_dma_ent *ent);
void ibmr_dma_pass_part(struct ibmr_dma_ent *ent, bool for_cpu);
void ibmr_dma_judge_cpu(struct ibmr_dma_ent *ent, bool last, bool copies, unsigned long ip);
void ibmr_dma_judge_dev(struct ibmr_dma_ent *ent, unsigned long ip);
void ibmr_dma_copied(struct ibmr_dma_map *gone);
void ibmr_dma_ends(struct ibmr_dma_map *map);
void ibmr_dma_ended(bool from_device);

/* report.c */
void ibmr_dma_report(struct ibmr_dma_dev *dd, enum ib_mr_dma_fault fault, unsigned long ip,
		     struct ibmr_dma_map *map, const char *fmt, ...) __printf(5, 6);
void ibmr_dma_hint(struct ibmr_dma_dev *dd, enum ib_mr_dma_fault fault, unsigned long ip,
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
