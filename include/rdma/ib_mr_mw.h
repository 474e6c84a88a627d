/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory windows for kernel users: remote access to a part of a region, given, moved and taken
 * back without the region being registered anew.
 *
 * A bind is carried out by the call: when it returns 0 the new key works, to the byte, and the one
 * before is dead. What breaks a rule is refused at once with a reason, and the queue pair lives on.
 *
 * The layout of struct ib_mw_bind has an epoch. IB_MR_EPOCH 1 (kernels up to 3.8) is flat, and
 * ib_alloc_mw() has no type; 2 (3.9 to 4.4) is the default. Define it before the include.
 *
 * Binding does not sleep and works with interrupts off; on PREEMPT_RT, where locks sleep, it may
 * not be called from sections that disable interrupts or preemption.
 *
 * On soft RoCE a bound type 2 window is not tied to one queue pair: any queue pair of the PD's
 * peers may use its key.
 */
#ifndef _RDMA_IB_MR_MW_H
#define _RDMA_IB_MR_MW_H

#include <rdma/ib_verbs.h>

#ifndef IB_MR_EPOCH
#define IB_MR_EPOCH 2
#endif

/**
 * struct ib_mw_bind_info - what a window is bound to
 * @mr: region with IB_ACCESS_MW_BIND, of the window's PD
 * @addr: first byte, an address of the region
 * @length: bytes; 0 takes a type 1 window's binding back, whatever @mr is
 * @mw_access_flags: IB_ACCESS_REMOTE_READ, _WRITE, _ATOMIC; IB_ZERO_BASED with type 2
 */
struct ib_mw_bind_info {
	struct ib_mr *mr;
	u64 addr;
	u64 length;
	int mw_access_flags;
};

#if IB_MR_EPOCH == 1
struct ib_mw_bind {
	struct ib_mr *mr;
	union {
		u64 wr_id;
		struct ib_cqe *wr_cqe;
	};
	u64 addr;
	u32 length;
	int send_flags;
	int mw_access_flags;
};
#else
/**
 * struct ib_mw_bind - argument of ib_bind_mw()
 * @wr_id: told in the completion, on a CQ that is polled
 * @wr_cqe: called with the completion, on a CQ from ib_alloc_cq()
 * @send_flags: IB_SEND_SIGNALED for a completion, in order with the queue pair's others;
 *         IB_SEND_FENCE
 * @bind_info: the binding
 */
struct ib_mw_bind {
	union {
		u64 wr_id;
		struct ib_cqe *wr_cqe;
	};
	int send_flags;
	struct ib_mw_bind_info bind_info;
};
#endif

/**
 * struct ib_bind_mw_wr - bind of a type 2 window as a work request
 * @wr: wr_id or wr_cqe, and send_flags; the rest is not looked at
 * @mw: type 2 window, not bound
 * @rkey: the new key; written by the call, since the device has its own order of variants
 * @bind_info: the binding
 */
struct ib_bind_mw_wr {
	struct ib_send_wr wr;
	struct ib_mw *mw;
	u32 rkey;
	struct ib_mw_bind_info bind_info;
};

struct ib_mw *ib_alloc_mw(struct ib_pd *pd, enum ib_mw_type type);
int ib_dealloc_mw(struct ib_mw *mw);
int ib_mr_bind_mw(struct ib_qp *qp, struct ib_mw *mw, const struct ib_mw_bind_info *info,
		  u64 wr_id, int send_flags);
int ib_mr_post_bind_mw(struct ib_qp *qp, struct ib_bind_mw_wr *wr);
int ib_mr_invalidated(struct ib_pd *pd, u32 key);
int ib_mr_poll_cq(struct ib_cq *cq, int num_entries, struct ib_wc *wc);

/**
 * ib_bind_mw() - bind a type 1 window, or take its binding back
 * @qp: queue pair of the window's PD, on which a signalled bind completes
 * @mw: window
 * @bind: see ib_mr_bind_mw()
 *
 * Context: any, interrupts off included.
 * Return: as ib_mr_bind_mw().
 */
static inline int ib_bind_mw(struct ib_qp *qp, struct ib_mw *mw, struct ib_mw_bind *bind)
{
#if IB_MR_EPOCH == 1
	struct ib_mw_bind_info info = {};

	if (!bind)
		return ib_mr_bind_mw(qp, mw, NULL, 0, 0);
	info = (struct ib_mw_bind_info){
		.mr = bind->mr, .addr = bind->addr, .length = bind->length,
		.mw_access_flags = bind->mw_access_flags,
	};

	return ib_mr_bind_mw(qp, mw, &info, bind->wr_id, bind->send_flags);
#else
	if (!bind)	/* refused there */
		return ib_mr_bind_mw(qp, mw, NULL, 0, 0);
	return ib_mr_bind_mw(qp, mw, &bind->bind_info, bind->wr_id, bind->send_flags);
#endif
}

#if IB_MR_EPOCH == 1
#define ib_alloc_mw(pd) ib_alloc_mw(pd, IB_MW_TYPE_1)
#endif

#endif /* _RDMA_IB_MR_MW_H */
