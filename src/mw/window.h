/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_WINDOW_H
#define IBMR_WINDOW_H

#include <rdma/ib_mr.h>

#include "mr/region.h"
#include "stock/magazine.h"

#define IBMR_WINDOW_PAGES	256	/* blocks that the common stocks carry */
#define IBMR_WINDOW_SETS	8	/* sets of remote rights, the empty one included */

struct ibmr_carriers;

/**
 * struct ibmr_window - a memory window
 * @mw: the owner's handle
 * @ipd: PD; one user of it is ours
 * @pdn: its number; the PD itself may go before the window when its device went
 * @mag: stocks by set of rights, see window_set()
 * @promised: sets of which one MR was promised for it
 * @lock: guards what follows; taken with interrupts off, before a magazine's
 * @region: what it is bound to, or NULL; one of its windows and a reference are ours
 * @armed: the MR behind it, with @region
 * @ready_qp: the queue pair that was ready last; not to be followed
 * @binds: counts bindings, so that a late completion is known for one
 * @carriers: for signalled binds
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
	struct ibmr_carriers *carriers;
	struct ibmr_listed listed;
	struct rcu_head rcu;
};

/* Stocks for windows on one region that the common ones cannot carry. */
struct ibmr_provision {
	unsigned int capacity;
	unsigned long promised;	/* sets of which one MR was promised */
	struct ibmr_mag *mag[IBMR_WINDOW_SETS];
};

bool ibmr_window_freed(struct ibmr_window *window, const struct ibmr_armed *armed);
bool ibmr_windows_agree(struct ibmr_dev *dev);

/* carrier.c */
struct ibmr_carriers *ibmr_carriers_new(struct ibmr_window *window);
void ibmr_carriers_part(struct ibmr_carriers *carriers);
enum ib_mr_reason ibmr_carrier_post(struct ibmr_window *window, struct ib_qp *qp, u64 wr_id,
				    int send_flags);
bool ibmr_qp_ready(struct ib_qp *qp);
void ibmr_window_completed(struct ibmr_window *window, u64 bind, bool flushed);
void ibmr_carriers_exit(void);

#endif /* IBMR_WINDOW_H */
