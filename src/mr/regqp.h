/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_REGQP_H
#define IBMR_REGQP_H

#include <rdma/ib_mr.h>

struct ibmr_pd;
struct ibmr_regqp;

#define IBMR_REGQP_DEPTH	256	/* work requests in one chain */

enum ibmr_regop_kind { IBMR_OP_REG, IBMR_OP_INV };

/**
 * struct ibmr_regop - one registration work request
 * @kind: REG_MR of @mr with @key and @access, or LOCAL_INV of @key
 * @mr: driver MR, mapped; to be kept until the chain has returned
 * @key: the new key, or the one to invalidate
 * @access: rights, as the driver takes them
 * @err: result: 0 done, -EIO refused by the device, others: not known to be done
 */
struct ibmr_regop {
	enum ibmr_regop_kind kind;
	struct ib_mr *mr;
	u32 key;
	int access;
	int err;
};

int ibmr_regqp_exec(struct ibmr_pd *ipd, struct ibmr_regop *ops, unsigned int nr);
void ibmr_regqp_destroy(struct ibmr_regqp *rq);

/* A queue pair of its own, for the test of live mapping (and for tests). */
struct ibmr_regqp *ibmr_regqp_create(struct ib_pd *pd, int qp_access, unsigned int gid_from);
int ibmr_regqp_run(struct ibmr_regqp *rq, struct ibmr_regop *ops, unsigned int nr);
int ibmr_regqp_rdma(struct ibmr_regqp *rq, enum ib_wr_opcode opcode, u64 laddr, u32 lkey,
		    u32 length, u64 raddr, u32 rkey, enum ib_wc_status *status);
unsigned int ibmr_regqp_gid(const struct ibmr_regqp *rq);
struct ib_qp *ibmr_regqp_qp(const struct ibmr_regqp *rq);
int ibmr_regqp_break(struct ib_pd *pd);

#endif /* IBMR_REGQP_H */
