/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_REGION_H
#define IBMR_REGION_H

#include <linux/completion.h>
#include <linux/rhashtable-types.h>

#include "base/core.h"
#include "mr/mem.h"

/**
 * struct ibmr_reg - one registration of memory with the driver
 * @keyed: what dev->keys points to
 * @region: whose it is
 * @ipd: PD it is in; the region holds a user of it
 * @pd: the same as the ULP knows it, for readers under RCU, who may not follow @ipd
 * @pdn: its number, as `rdma resource show pd` has it
 * @drv: the driver's MR; NULL when it has let go of it
 * @mem: the memory; NULL for a DMA MR, which is all of it
 * @iova: address of the first byte
 * @length: bytes; U64_MAX for a DMA MR
 * @access: rights, as the caller gave them
 * @blocks: blocks it takes in the driver's list
 * @lkey: key for local use
 * @rkey: key for remote use, 0 without a remote right
 * @invalidated: a work request made the key dead, as the ULP told us (ib_mr_invalidated())
 * @users: one of the region's; taken by who touches the memory through a key
 * @idle: completed with the last user
 * @rcu: readers of dev->keys
 *
 * Immutable once in dev->keys, but for its users and @invalidated. Re-registration makes another
 * one.
 */
struct ibmr_reg {
	struct ibmr_keyed keyed;
	struct ibmr_region *region;
	struct ibmr_pd *ipd;
	struct ib_pd *pd;
	u32 pdn;
	struct ib_mr *drv;
	struct ibmr_mem *mem;
	u64 iova;
	u64 length;
	int access;
	u64 blocks;
	u32 lkey;
	u32 rkey;
	bool invalidated;
	refcount_t users;
	struct completion idle;
	struct rcu_head rcu;
};

enum ibmr_region_state { IBMR_LIVE, IBMR_ORPHAN, IBMR_DEAD };

/**
 * struct ibmr_region - a region as its owner knows it
 * @mr: the owner's handle
 * @node: in the table of handles, by the address of @mr
 * @dev: its device; holds a reference
 * @refs: the table's and those of calls under way
 * @noio: of the call that has @lock
 * @change: one re-registration at a time
 * @lock: guards what follows it. Nobody allocates under it: a notifier may want to deregister
 * @state: live; orphan (its device is gone); dead (deregistered). Under @lock; a refused bind
 *         asks without it, for its reason only
 * @reg: the current registration; NULL unless live
 * @ipd: PD it is in; one user of it is ours
 * @windows: bound windows; negative while no window may be bound
 * @changing: a re-registration is under way, and has seen to it that no window is bound
 * @windowed: a window was bound since it was registered, see ibmr_region_fence()
 * @provision: stocks for large windows on it, or NULL; see there
 * @entry: in ipd->regions while live; among the dead thereafter
 * @died: when it was deregistered
 * @last_lkey: the key it had then
 * @rcu: readers of the table
 */
struct ibmr_region {
	struct ib_mr mr;
	struct rhash_head node;
	struct ibmr_dev *dev;
	refcount_t refs;
	unsigned int noio;
	struct mutex change;
	struct mutex lock;
	enum ibmr_region_state state;
	struct ibmr_reg *reg;
	struct ibmr_pd *ipd;
	atomic_t windows;
	bool changing;
	bool windowed;
	struct ibmr_provision *provision;
	struct list_head entry;
	ktime_t died;
	u32 last_lkey;
	struct rcu_head rcu;
};

#define IBMR_NO_WINDOWS	(-0x40000000)

enum ib_mr_reason ibmr_reg_allowed(struct ibmr_dev *dev, int access, u64 iova, u64 first,
				   u64 length);
struct ibmr_reg *ibmr_reg_create(struct ibmr_pd *ipd, struct ibmr_mem *mem, u64 iova, int access,
				 enum ib_mr_reason *why);
int ibmr_reg_publish(struct ibmr_reg *reg);
int ibmr_reg_withdraw(struct ibmr_reg *reg);
void ibmr_reg_destroy(struct ibmr_reg *reg);
bool ibmr_reg_get(struct ibmr_reg *reg);
void ibmr_reg_put(struct ibmr_reg *reg);

static inline u32 ibmr_reg_runs(const struct ibmr_reg *reg)
{
	return reg->mem ? reg->mem->pv.nr : 0;
}

static inline u64 ibmr_reg_pinned(const struct ibmr_reg *reg)
{
	return reg->mem ? reg->mem->pinned : 0;
}

/* Did the owner unmap or move the memory? */
static inline bool ibmr_reg_stale(const struct ibmr_reg *reg)
{
	return reg->mem && READ_ONCE(reg->mem->stale);
}

struct ib_mr *ibmr_region_create(struct ibmr_pd *ipd, struct ibmr_mem *mem, u64 iova, int access,
				 const char *call);
struct ibmr_region *ibmr_region_lock(struct ib_mr *mr, enum ib_mr_reason *why);
void ibmr_region_unlock(struct ibmr_region *region);
void ibmr_region_fence(struct ibmr_region *region);
void ibmr_region_show(struct ibmr_region *region);
void ibmr_regions_orphan(struct ibmr_pd *ipd);
bool ibmr_regions_agree(struct ibmr_dev *dev);

/*
 * What src/mw does for a region, which knows its windows by their number alone: give back what
 * binds had provided for it, and wait for packets that were let in by windows. Both may sleep.
 */
void ibmr_window_unprovision(struct ibmr_provision *old);
void ibmr_windows_fence(struct ibmr_region *region);

/* Nobody is bound to the region, its lock is held. To be given to ibmr_window_unprovision(). */
static inline struct ibmr_provision *ibmr_region_take_provision(struct ibmr_region *region)
{
	struct ibmr_provision *p = region->provision;

	WRITE_ONCE(region->provision, NULL);
	return p;
}

#endif /* IBMR_REGION_H */
