/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The victim's rooms: main.c (the device, ioctls, memory of processes), assets.c (memory and what
 * is granted of it), conn.c (queue pairs).
 */
#ifndef IB_MR_VICTIM_H
#define IB_MR_VICTIM_H

#include <rdma/ib_fmr_pool.h>
#include <rdma/ib_mr.h>
#include "victim_proto.h"

struct victim {
	struct ib_device *dev;
	struct ib_pd *pd, *other_pd;
	struct ib_qp *own_qp;		/* connected to itself, to bind windows on */
	struct ib_cq *own_cq;
};

extern struct victim victim;

int victim_assets_make(void);
void victim_assets_free(void);
int victim_info(struct victim_info *info);
int victim_do(struct victim_op *op);
int victim_churn(const struct victim_churn *churn);
int victim_audit(struct victim_audit *audit);

int victim_conns_make(void);
void victim_conns_free(void);
int victim_connect(struct victim_connect *c);
int victim_disconnect(unsigned long slot);
void victim_stats(struct victim_stats *stats);

#endif /* IB_MR_VICTIM_H */
