/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What porting.c has only to be compiled.
 */
#ifndef PORTING_H
#define PORTING_H

#include <rdma/ib_verbs.h>

int porting_frwr_map(struct ib_qp *qp, struct ib_mr *mr, struct scatterlist *sg, int nents);
int porting_frwr_unmap(struct ib_qp *qp, struct ib_mr *mr);
int porting_bind(struct ib_qp *qp, struct ib_mw *mw, struct ib_mr *mr, u64 addr, u64 length);
int porting_bind_2(struct ib_qp *qp, struct ib_mw *mw, struct ib_mr *mr, u64 addr, u64 length);
void porting_received(struct ib_pd *pd, struct ib_wc *wc);

#endif
