/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_WINDOW_H
#define IBMR_WINDOW_H

#include <rdma/ib_mr.h>

#include "mr/region.h"
#include "stock/magazine.h"

#define IBMR_WINDOW_PAGES	256	/* blocks that the common stocks carry */
#define IBMR_WINDOW_SETS	8	/* sets of remote rights, the empty one included */

/**
 * struct ibmr_window - a memory window
 * @mw: the owner's handle
 * @ipd: PD; one user of it is ours
 * @pdn: its number; the PD itself may go before the window when its device went
 * @mag: stocks by set of rights, see window_set(); NULL until the first use of the set. Set by
 *       @provide, read with interrupts off
 * @promised: sets of which one MR was promised for it
 * @lock: guards what follows; taken with interrupts off, before a magazine's
 * @region: what it is bound to, or NULL; one of its windows and a reference are ours
 * @armed: the MR behind it, with @region
 * @ready_qp: the queue pair that was ready last; not to be followed
 * @binds: counts bindings, so that a late completion is known for one
 * @wanted: region whose stock @provide is to make, with a reference; NULL for a stock of windows
 * @wanted_set: set of rights of that stock; 0 when none is wanted
 * @provide: makes what a bind found missing
 * @carriers: signalled binds that are under way; carrier.c's
 * @listed: in dev->windows
 * @rcu: who comes from a key
 */
struct ibmr_window {
	struct ib_mw mw;
	struct ibmr_pd *ipd;
	u32 pdn;
	struct ibmr_mag *mag[IBMR_WINDOW_SETS];
	unsigned long promised;
	spinlock_t lock;
	struct ibmr_region *region;
	struct ibmr_armed *armed;
	const struct ib_qp *ready_qp;
	u64 binds;
	struct ibmr_region *wanted;
	unsigned int wanted_set;
	struct work_struct provide;
	struct list_head carriers;
	struct ibmr_listed listed;
	struct rcu_head rcu;
};

/*
 * Stocks for windows on one region that the common ones cannot carry. Made by the first such bind,
 * and a member of @mag by the first that wants these rights; changed under the region's lock, read
 * by who is counted in region->windows.
 */
struct ibmr_provision {
	u64 blocks;		/* 0: more than the driver takes */
	unsigned long promised;	/* sets of which one MR was promised */
	struct ibmr_mag *mag[IBMR_WINDOW_SETS];
};

bool ibmr_window_freed(struct ibmr_window *window, const struct ibmr_armed *armed);
bool ibmr_windows_agree(struct ibmr_dev *dev);

/* provide.c */
void ibmr_window_want(struct ibmr_window *window, struct ibmr_region *region, unsigned int set);
void ibmr_window_want_no_more(struct ibmr_window *window);
int ibmr_window_get_stocks(struct ibmr_window *window, unsigned int nth);
void ibmr_window_put_stocks(struct ibmr_window *window);
void ibmr_window_provide(struct work_struct *work);

/* Index of a set of remote rights, and back. */
static inline unsigned int ibmr_window_set(int access)
{
	return (access & IB_ACCESS_REMOTE_READ ? 1 : 0) |
	       (access & IB_ACCESS_REMOTE_WRITE ? 2 : 0) |
	       (access & IB_ACCESS_REMOTE_ATOMIC ? 4 : 0);
}

static inline int ibmr_window_rights(unsigned int set)
{
	return (set & 1 ? IB_ACCESS_REMOTE_READ : 0) | (set & 2 ? IB_ACCESS_REMOTE_WRITE : 0) |
	       (set & 4 ? IB_ACCESS_REMOTE_ATOMIC : 0);
}

/* carrier.c */
int ibmr_carriers_join(struct ibmr_window *window);
void ibmr_carriers_part(struct ibmr_window *window);
enum ib_mr_reason ibmr_carrier_post(struct ibmr_window *window, struct ib_qp *qp, u64 wr_id,
				    int send_flags);
bool ibmr_qp_ready(struct ib_qp *qp);
void ibmr_window_completed(struct ibmr_window *window, u64 bind, bool flushed);
void ibmr_carriers_exit(void);

#endif /* IBMR_WINDOW_H */
