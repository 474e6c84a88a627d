/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_CORE_H
#define IBMR_CORE_H

#include <linux/atomic.h>
#include <linux/hashtable.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/workqueue.h>
#include <rdma/ib_mr.h>

#include "base/gate.h"

struct dentry;
struct ibmr_arm;
struct ibmr_key_leaf;
struct ibmr_regqp;

/* Room for a sentence of explain. */
#define IBMR_ANSWER	320

/* Can a queue pair be connected without a connection manager, so to itself? */
static inline bool ibmr_has_regqp(const struct ib_device *device)
{
	return !rdma_protocol_iwarp(device, rdma_start_port(device));
}

/* Our directory in debugfs; each device has one below its devices/. */
extern struct dentry *ibmr_debugfs_root, *ibmr_debugfs_devices;

/* The module goes: no ULP is left who could release anything. */
extern bool ibmr_unloading;

/**
 * struct ibmr_dev - what we keep of a device
 * @ibdev: the device; not to be followed once @gone
 * @refs: one of the client's, one of each PD state; the memory outlives the device
 * @gate: whatever sleeps and uses the device is in; its removal shuts it, and is alone then
 * @leaving: it is about to be removed: nothing new is begun
 * @gone: set while @gate is shut; non-sleeping paths read it under RCU
 * @pd_lock: guards @pds and the user counts of what is in it
 * @pds: PD states by address of the ib_pd
 * @mag_lock: guards what follows it
 * @mags: magazines
 * @shared_mags: those that are shared, by rights, capacity and flags
 * @windows: memory windows
 * @pools: FMR pools
 * @last_nr: number of the last thing put into one of these lists
 * @nr_windows: how many
 * @carrier: MR that is never registered, for the completions of binds
 * @park: private PD in which armed MRs wait; made on first use
 * @park_ipd: its state
 * @arm: work space of arming
 * @probed: the device was tested for live mapping
 * @probe_result: and this came of it
 * @regions: live regions
 * @blocks: blocks given to the driver for them
 * @pinned: pages of user memory pinned for them
 * @went_stale: regions whose owner unmapped the memory, since the device was added
 * @refused: refusals by reason
 * @name: its name now; a rename puts another string there, and the old one stays (name.c)
 * @debugfs: its directory
 * @told_lock: guards @told
 * @told: what explain was answered last, until it is read
 * @rcu: non-sleeping lookups may still read it
 * @keys_lock: guards changes of what follows it
 * @keys_tidy: frees empty leaves
 * @keys_spare: number of the leaf that became empty last, and may have been filled again
 * @keys_used: objects in each leaf
 * @keys: what a key leads to, see keys.h
 */
struct ibmr_dev {
	struct ib_device *ibdev;
	refcount_t refs;
	struct ibmr_gate gate;
	bool leaving;
	bool gone;
	struct mutex pd_lock;
	DECLARE_HASHTABLE(pds, 6);
	struct mutex mag_lock;
	struct list_head mags;
	DECLARE_HASHTABLE(shared_mags, 5);
	struct list_head windows;
	struct list_head pools;
	unsigned int last_nr;
	atomic_t nr_windows;
	struct ib_mr *carrier;
	struct ib_pd *park;
	struct ibmr_pd *park_ipd;
	struct ibmr_arm *arm;
	bool probed;
	enum ib_mr_reason probe_result;
	atomic_t regions;
	atomic64_t blocks;
	atomic64_t pinned;
	atomic64_t went_stale;
	atomic64_t refused[IB_MR_WHY_COUNT];
	const char *name;
	struct dentry *debugfs;
	struct mutex told_lock;
	char told[IBMR_ANSWER];
	struct rcu_head rcu;
	spinlock_t keys_lock;
	struct work_struct keys_tidy;
	u32 keys_spare;
	u16 keys_used[4096];
	struct ibmr_key_leaf *keys[4096];
};

/**
 * struct ibmr_pd - what we keep of a protection domain
 * @pd: the ULP's PD
 * @dev: its device; holds a reference
 * @pdn: its number, as `rdma resource show pd` has it
 * @owner: the ULP that made it
 * @node: in @dev->pds
 * @users: objects and holds; the last one takes the queue pair along. Under @dev->pd_lock
 * @holds: of these, what ib_mr_pd_get() took
 * @lock: guards @rq; a registration chain runs under it
 * @rq: registration queue pair, NULL until first used
 * @ready_qp: a queue pair of the ULP's that was ready to send; not to be followed
 * @list_lock: guards @regions. Of its own: @lock is held while memory is allocated, which may wait
 *	for a notifier, which may deregister
 * @regions: struct ibmr_region, live
 * @nr_regions: of these, how many; a region being made is counted already
 * @pinned: pages of user memory that they pin
 */
struct ibmr_pd {
	struct ib_pd *pd;
	struct ibmr_dev *dev;
	u32 pdn;
	char owner[32];
	struct hlist_node node;
	unsigned int users;
	unsigned int holds;
	struct mutex lock;
	struct ibmr_regqp *rq;
	const struct ib_qp *ready_qp;
	spinlock_t list_lock;
	struct list_head regions;
	atomic_t nr_regions;
	atomic64_t pinned;
};

/**
 * struct ibmr_listed - a place in one of a device's lists
 * @entry: in the list, under dev->mag_lock
 * @nr: the device's next number when it was put there, so lists are in order of it: a reader who
 *	lets go of the lock finds his place again
 */
struct ibmr_listed {
	struct list_head entry;
	unsigned int nr;
};

static inline void ibmr_list_add(struct ibmr_dev *dev, struct ibmr_listed *it,
				 struct list_head *list)
{
	lockdep_assert_held(&dev->mag_lock);
	it->nr = ++dev->last_nr;
	list_add_tail(&it->entry, list);
}

/* What dev->keys holds: the head of a structure that lives until an RCU grace period is over. */
enum ibmr_keyed_kind { IBMR_KEYED_REG, IBMR_KEYED_ARMED };

/**
 * struct ibmr_keyed - head of what a key leads to
 * @kind: what it is
 * @lkey: the local key of a registration that has memory of its own and is not invalidated; else
 *        that of no key that leads here
 */
struct ibmr_keyed {
	enum ibmr_keyed_kind kind;
	u32 lkey;
};

/* device.c */
struct ibmr_dev *ibmr_dev_get(struct ib_device *device);
struct ibmr_dev *ibmr_dev_look_up(struct ib_device *device);
void ibmr_dev_put(struct ibmr_dev *dev);
bool __must_check ibmr_dev_enter(struct ibmr_dev *dev, unsigned int *noio);
unsigned int __must_check ibmr_dev_hold(struct ibmr_dev *dev);
void ibmr_dev_exit(struct ibmr_dev *dev, unsigned int noio);
struct ibmr_pd *ibmr_pd_get(struct ibmr_dev *dev, struct ib_pd *pd);
void ibmr_pd_put(struct ibmr_pd *ipd);
void ibmr_pd_unhold(struct ibmr_dev *dev, struct ib_pd *pd);
struct ibmr_pd *ibmr_enter(struct ib_pd *pd, const char *call, unsigned int *noio);
void ibmr_exit(struct ibmr_pd *ipd, unsigned int noio);
int ibmr_devices_init(void);
void ibmr_devices_exit(void);

extern struct ibmr_dev __rcu *ibmr_first_dev;

/*
 * A device's state without keeping it, for non-sleeping lookups: good until the RCU read section
 * ends. Most machines have one device; it is remembered, so the usual lookup is a comparison.
 */
static inline struct ibmr_dev *ibmr_dev_rcu(struct ib_device *device)
{
	struct ibmr_dev *dev = rcu_dereference(ibmr_first_dev);

	return likely(dev && dev->ibdev == device) ? dev : ibmr_dev_look_up(device);
}

/* name.c */
const char *ibmr_name(const char *name);
void ibmr_names_exit(void);

/* limit.c */
enum ib_mr_reason ibmr_limit_charge(struct ibmr_pd *ipd, u64 pages);
void ibmr_limit_uncharge(struct ibmr_pd *ipd, u64 pages);
enum ib_mr_reason ibmr_limit_pages(struct ibmr_pd *ipd, u64 pages);

/* refuse.c */
int __printf(3, 4) ibmr_refuse(struct ibmr_dev *dev, enum ib_mr_reason why, const char *fmt, ...);

#endif /* IBMR_CORE_H */
