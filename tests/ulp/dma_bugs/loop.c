// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include <linux/delay.h>
#include <linux/jiffies.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_mr.h>
#include <rdma/ib_dma.h>

#include "loop.h"

static int loop_address(struct loop *loop, struct rdma_ah_attr *ah, u32 port)
{
	const struct ib_gid_attr *gid;
	struct ib_port_attr attr;
	int i, err;

	err = ib_query_port(loop->dev, port, &attr);
	if (err)
		return err;
	ah->type = rdma_ah_find_type(loop->dev, port);
	rdma_ah_set_port_num(ah, port);
	for (i = 0; i < attr.gid_tbl_len; i++) {
		gid = rdma_get_gid_attr(loop->dev, port, i);
		if (IS_ERR(gid))
			continue;
		err = rdma_read_gid_l2_fields(gid, NULL, ah->roce.dmac);
		if (!err) {
			union ib_gid dgid = gid->gid;

			rdma_ah_set_grh(ah, &dgid, 0, i, 64, 0);
		}
		rdma_put_gid_attr(gid);
		if (!err)
			return 0;
	}
	return -EADDRNOTAVAIL;
}

static int loop_connect(struct loop *loop)
{
	u32 port = rdma_start_port(loop->dev);
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = port,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
	};
	int err;

	err = ib_modify_qp(loop->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	attr = (struct ib_qp_attr){
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = loop->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
	};
	err = loop_address(loop, &attr.ah_attr, port);
	if (err)
		return err;
	err = ib_modify_qp(loop->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			   IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			   IB_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	attr = (struct ib_qp_attr){
		.qp_state = IB_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	return ib_modify_qp(loop->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

int loop_open(struct loop *loop, struct ib_device *dev)
{
	struct ib_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};
	int err;

	loop->dev = dev;
	loop->pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(loop->pd))
		return PTR_ERR(loop->pd);
	loop->cq = ib_alloc_cq(dev, NULL, 8, 0, IB_POLL_DIRECT);
	if (IS_ERR(loop->cq)) {
		err = PTR_ERR(loop->cq);
		goto no_cq;
	}
	init.send_cq = loop->cq;
	init.recv_cq = loop->cq;
	loop->qp = ib_create_qp(loop->pd, &init);
	if (IS_ERR(loop->qp)) {
		err = PTR_ERR(loop->qp);
		goto no_qp;
	}
	err = loop_connect(loop);
	if (err)
		goto no_buf;
	err = -ENOMEM;
	loop->buf = ib_dma_alloc_coherent(dev, LOOP_SIZE, &loop->dma, GFP_KERNEL);
	if (loop->buf)
		return 0;
no_buf:
	ib_destroy_qp(loop->qp);
no_qp:
	ib_free_cq(loop->cq);
no_cq:
	ib_dealloc_pd(loop->pd);
	return err;
}

void loop_close(struct loop *loop)
{
	ib_destroy_qp(loop->qp);
	ib_free_cq(loop->cq);
	ib_dma_free_coherent(loop->dev, LOOP_SIZE, loop->buf, loop->dma);
	ib_dealloc_pd(loop->pd);
}

static int loop_io(struct loop *loop, enum ib_wr_opcode opcode, u64 iova, u32 rkey, u32 len)
{
	unsigned long end = jiffies + 10 * HZ;
	struct ib_sge sge = {
		.addr = loop->dma, .length = len, .lkey = loop->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = { .opcode = opcode, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = iova,
		.rkey = rkey,
	};
	struct ib_wc wc;
	int err;

	err = ib_post_send(loop->qp, &wr.wr, NULL);
	if (err)
		return err;
	while (ib_poll_cq(loop->cq, 1, &wc) < 1) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		usleep_range(20, 100);
	}
	return wc.status == IB_WC_SUCCESS ? 0 : -EIO;
}

int loop_write(struct loop *loop, u64 iova, u32 rkey, u32 len)
{
	return loop_io(loop, IB_WR_RDMA_WRITE, iova, rkey, len);
}

int loop_read(struct loop *loop, u64 iova, u32 rkey, u32 len)
{
	return loop_io(loop, IB_WR_RDMA_READ, iova, rkey, len);
}
