// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A ULP's queue pair for the benchmarks, connected to itself over the device's loopback, and FRWR
 * as ULPs do it: a pool of MRs of the core's that belongs to the queue pair.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include <rdma/mr_pool.h>

#include "bench.h"

static void handler(struct ib_cq *cq, void *context)
{
	struct bench_qp *q = context;

	complete(&q->event);
}

static void done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct bench_qp *q = container_of(wc->wr_cqe, struct bench_qp, cqe);

	q->status = wc->status;
	complete(&q->event);
}

static int self_address(struct ib_device *dev, u32 port, struct rdma_ah_attr *ah)
{
	const struct ib_gid_attr *gid = rdma_get_gid_attr(dev, port, 1);
	union ib_gid dgid;
	int err;

	if (IS_ERR(gid))
		gid = rdma_get_gid_attr(dev, port, 0);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	ah->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(ah, port);
	err = rdma_read_gid_l2_fields(gid, NULL, ah->roce.dmac);
	dgid = gid->gid;
	rdma_ah_set_grh(ah, &dgid, 0, gid->index, 64, 0);
	rdma_put_gid_attr(gid);
	return err;
}

static int connect(struct bench_qp *q)
{
	u32 port = rdma_start_port(q->qp->device);
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = port,
		.qp_access_flags = BENCH_ACCESS,
	};
	int err;

	err = ib_modify_qp(q->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	attr.qp_state = IB_QPS_RTR;
	attr.path_mtu = IB_MTU_4096;
	attr.dest_qp_num = q->qp->qp_num;
	attr.rq_psn = 1;
	attr.max_dest_rd_atomic = 4;
	attr.min_rnr_timer = 1;
	err = self_address(q->qp->device, port, &attr.ah_attr);
	if (err)
		return err;
	err = ib_modify_qp(q->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			   IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			   IB_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	attr.qp_state = IB_QPS_RTS;
	attr.sq_psn = 1;
	attr.timeout = 18;
	attr.retry_cnt = 5;
	attr.rnr_retry = 5;
	attr.max_rd_atomic = 4;
	return ib_modify_qp(q->qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT |
			    IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC);
}

void bench_qp_destroy(struct bench_qp *q)
{
	if (!IS_ERR_OR_NULL(q->qp)) {
		ib_mr_pool_destroy(q->qp, &q->qp->rdma_mrs);
		ib_destroy_qp(q->qp);
	}
	if (!IS_ERR_OR_NULL(q->cq) && q->bare)
		ib_destroy_cq(q->cq);
	else if (!IS_ERR_OR_NULL(q->cq))
		ib_free_cq(q->cq);
	kfree(q);
}

struct bench_qp *bench_qp_create(struct bench *b, bool bare)
{
	struct ib_cq_init_attr cq_attr = { .cqe = 256 };
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = 128, .max_send_sge = 1 },
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};
	struct bench_qp *q = kzalloc(sizeof(*q), GFP_KERNEL);
	int err;

	if (!q)
		return ERR_PTR(-ENOMEM);
	init_completion(&q->event);
	q->bare = bare;
	q->cqe.done = done;
	q->cq = bare ? ib_create_cq(b->dev, handler, NULL, q, &cq_attr) :
		ib_alloc_cq(b->dev, NULL, 256, 0, IB_POLL_SOFTIRQ);
	err = PTR_ERR_OR_ZERO(q->cq);
	if (err)
		goto undo;
	attr.send_cq = q->cq;
	attr.recv_cq = q->cq;
	q->qp = ib_create_qp(b->pd, &attr);
	err = PTR_ERR_OR_ZERO(q->qp);
	if (err)
		goto undo;
	err = connect(q);
	if (!err)
		err = ib_mr_pool_init(q->qp, &q->qp->rdma_mrs, BENCH_QP_MRS, IB_MR_TYPE_MEM_REG,
				      BENCH_PAGES, 0);
	if (!err)
		return q;
undo:
	bench_qp_destroy(q);
	return ERR_PTR(err);
}

/* One completion. Return: 0 when it is a success. */
int bench_qp_wait(struct bench_qp *q)
{
	struct ib_wc wc;

	if (!q->bare) {
		if (!wait_for_completion_timeout(&q->event, 10 * HZ))
			return -ETIMEDOUT;
		return q->status == IB_WC_SUCCESS ? 0 : -EREMOTEIO;
	}
	while (ib_poll_cq(q->cq, 1, &wc) != 1) {
		reinit_completion(&q->event);
		if (ib_req_notify_cq(q->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0)
			continue;
		if (!wait_for_completion_timeout(&q->event, 10 * HZ))
			return -ETIMEDOUT;
	}
	return wc.status == IB_WC_SUCCESS ? 0 : -EREMOTEIO;
}

/* An MR, mapped, with a new key; the requests are filled but not linked. */
int bench_frwr_map(struct bench *b, struct bench_qp *q, struct bench_frwr *f, unsigned int pages)
{
	int n;

	f->mr = ib_mr_pool_get(q->qp, &q->qp->rdma_mrs);
	if (!f->mr)
		return -EAGAIN;
	n = ib_map_mr_sg(f->mr, b->sgl, pages, NULL, PAGE_SIZE);
	if (n != pages)
		return -EIO;
	ib_update_fast_reg_key(f->mr, ib_inc_rkey(f->mr->rkey));

	f->reg.wr.next = NULL;
	f->reg.wr.wr_cqe = &q->cqe;
	f->reg.wr.opcode = IB_WR_REG_MR;
	f->reg.wr.num_sge = 0;
	f->reg.wr.send_flags = 0;
	f->reg.mr = f->mr;
	f->reg.key = f->mr->rkey;
	f->reg.access = BENCH_ACCESS;

	f->inv.next = NULL;
	f->inv.wr_cqe = &q->cqe;
	f->inv.opcode = IB_WR_LOCAL_INV;
	f->inv.num_sge = 0;
	f->inv.send_flags = IB_SEND_SIGNALED;
	f->inv.ex.invalidate_rkey = f->mr->rkey;
	return 0;
}

void bench_frwr_put(struct bench_qp *q, struct bench_frwr *f)
{
	ib_mr_pool_put(q->qp, &q->qp->rdma_mrs, f->mr);
}
