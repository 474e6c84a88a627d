// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The peer of skel, in this kernel: a queue pair that reads and writes by the keys it is told, as
 * one on another machine would. Connecting two ends by hand is what rdma_cm does for a real ULP.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_dma.h>
#include <rdma/ib_mr.h>

#include "peer.h"

/* The address of the device itself, by the first entry of its GID table that works. */
static int skel_peer_address(struct ib_device *ib, struct rdma_ah_attr *ah, u32 port)
{
	const struct ib_gid_attr *gid;
	struct ib_port_attr attr;
	int i, err;

	err = ib_query_port(ib, port, &attr);
	if (err)
		return err;
	ah->type = rdma_ah_find_type(ib, port);
	rdma_ah_set_port_num(ah, port);
	for (i = 0; i < attr.gid_tbl_len; i++) {
		gid = rdma_get_gid_attr(ib, port, i);
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

static int skel_peer_connect(struct ib_qp *qp, struct ib_qp *to)
{
	u32 port = rdma_start_port(qp->device);
	struct ib_qp_attr init = {
		.qp_state = IB_QPS_INIT,
		.port_num = port,
		.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
	};
	struct ib_qp_attr rtr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = to->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
	};
	struct ib_qp_attr rts = {
		.qp_state = IB_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	int err;

	err = skel_peer_address(qp->device, &rtr.ah_attr, port);
	if (err)
		return err;
	err = ib_modify_qp(qp, &init, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	err = ib_modify_qp(qp, &rtr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			   IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	return ib_modify_qp(qp, &rts, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

int skel_peer_open(struct skel_peer *peer, struct ib_pd *pd, size_t size)
{
	struct ib_qp_init_attr init = {
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.qp_type = IB_QPT_RC,
	};
	int err;

	peer->ib = pd->device;
	peer->size = size;
	peer->pd = ib_alloc_pd(peer->ib, 0);
	if (IS_ERR(peer->pd))
		return PTR_ERR(peer->pd);
	peer->cq = ib_alloc_cq(peer->ib, NULL, 16, 0, IB_POLL_DIRECT);
	if (IS_ERR(peer->cq))
		return PTR_ERR(peer->cq);
	init.send_cq = peer->cq;
	init.recv_cq = peer->cq;
	peer->qp = ib_create_qp(peer->pd, &init);
	if (IS_ERR(peer->qp))
		return PTR_ERR(peer->qp);
	peer->ours = ib_create_qp(pd, &init);
	if (IS_ERR(peer->ours))
		return PTR_ERR(peer->ours);
	peer->buf = ib_dma_alloc_coherent(peer->ib, size, &peer->dma, GFP_KERNEL);
	if (!peer->buf)
		return -ENOMEM;
	err = skel_peer_connect(peer->ours, peer->qp);
	return err ?: skel_peer_connect(peer->qp, peer->ours);
}

void skel_peer_close(struct skel_peer *peer)
{
	if (!IS_ERR_OR_NULL(peer->ours))
		ib_destroy_qp(peer->ours);
	if (!IS_ERR_OR_NULL(peer->qp))
		ib_destroy_qp(peer->qp);
	if (!IS_ERR_OR_NULL(peer->cq))
		ib_free_cq(peer->cq);
	if (peer->buf)
		ib_dma_free_coherent(peer->ib, peer->size, peer->buf, peer->dma);
	if (!IS_ERR_OR_NULL(peer->pd))
		ib_dealloc_pd(peer->pd);
}

static int skel_peer_rdma(struct skel_peer *peer, enum ib_wr_opcode opcode, u64 iova, u32 rkey,
			  size_t length)
{
	unsigned long end = jiffies + 20 * HZ;
	struct ib_sge sge = {
		.addr = peer->dma, .length = length, .lkey = peer->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.opcode = opcode, .sg_list = &sge, .num_sge = 1,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = iova,
		.rkey = rkey,
	};
	struct ib_wc wc;
	int err;

	if (length > peer->size)
		return -EINVAL;
	err = ib_post_send(peer->qp, &wr.wr, NULL);
	if (err)
		return err;
	while (ib_poll_cq(peer->cq, 1, &wc) < 1) {
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		usleep_range(20, 100);
	}
	return wc.status == IB_WC_SUCCESS ? 0 : -EIO;
}

int skel_peer_read(struct skel_peer *peer, u64 iova, u32 rkey, size_t length)
{
	return skel_peer_rdma(peer, IB_WR_RDMA_READ, iova, rkey, length);
}

int skel_peer_write(struct skel_peer *peer, u64 iova, u32 rkey, size_t length)
{
	return skel_peer_rdma(peer, IB_WR_RDMA_WRITE, iova, rkey, length);
}
