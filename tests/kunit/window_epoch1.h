/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBT_WINDOW_EPOCH1_H
#define IBT_WINDOW_EPOCH1_H

#include <rdma/ib_verbs.h>

struct ib_mw *ibt_epoch1_alloc(struct ib_pd *pd);
int ibt_epoch1_bind(struct ib_qp *qp, struct ib_mw *mw, struct ib_mr *mr, u64 addr, u32 length,
		    u64 wr_id);

#endif /* IBT_WINDOW_EPOCH1_H */
