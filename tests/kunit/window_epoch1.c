// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A source of before 3.9: the flat struct ib_mw_bind, and windows without a type. That it compiles
 * is half of the case; window_more_test.c runs it.
 */

#define IB_MR_EPOCH 1
#include <rdma/ib_mr.h>
#include <rdma/ib_mr_mw.h>

#include "window_epoch1.h"

struct ib_mw *ibt_epoch1_alloc(struct ib_pd *pd)
{
	return ib_alloc_mw(pd);
}

int ibt_epoch1_bind(struct ib_qp *qp, struct ib_mw *mw, struct ib_mr *mr, u64 addr, u32 length,
		    u64 wr_id)
{
	struct ib_mw_bind bind = {
		.mr = mr,
		.wr_id = wr_id,
		.addr = addr,
		.length = length,
		.send_flags = IB_SEND_SIGNALED,
		.mw_access_flags = length ? IB_ACCESS_REMOTE_READ : 0,
	};

	return ib_bind_mw(qp, mw, &bind);
}
