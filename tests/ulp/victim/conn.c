// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs for the adversary. It says where its own end is; what is at that end (a queue pair of
 * its own, or a program that makes up packets) nobody here can see.
 *
 * An attack that is refused mostly ends the connection, so there are many: a slot keeps its CQ and
 * buffers, and only the queue pair is made anew. Receives are there to be filled, and to be told of
 * keys that a SEND invalidated, which goes on to ib_mr as in any ULP.
 */
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "victim.h"

#define SLOTS	8
#define RECVS	8
#define RECV_SIZE 4096

struct slot {
	struct ib_qp *qp;
	struct ib_cq *cq;
	u8 *buf;
	struct ib_cqe cqe[RECVS];
	struct mutex lock;	/* @qp, and posting to it */
};

static struct slot slots[SLOTS];
static atomic64_t told, told_other, told_unknown, received;
static int gid_index;

static int post(struct slot *slot, int i)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)slot->buf + i * RECV_SIZE, .length = RECV_SIZE,
		.lkey = victim.pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &slot->cqe[i], .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(slot->qp, &wr, NULL);
}

/* What is left of a queue pair that is gone may come too, and then posts to the next one. */
static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct slot *slot = cq->cq_context;
	int err;

	if (wc->status != IB_WC_SUCCESS)
		return;
	atomic64_inc(&received);
	if (wc->wc_flags & IB_WC_WITH_INVALIDATE) {
		err = ib_mr_invalidated(victim.pd, wc->ex.invalidate_rkey);
		atomic64_inc(&told);
		if (err == -EACCES)
			atomic64_inc(&told_other);
		else if (err)
			atomic64_inc(&told_unknown);
	}
	mutex_lock(&slot->lock);
	if (slot->qp)
		post(slot, wc->wr_cqe - slot->cqe);
	mutex_unlock(&slot->lock);
}

static int to_rts(struct ib_qp *qp, bool rc, enum ib_mtu mtu, const union ib_gid *dgid,
		  const u8 *mac, u32 peer_qpn, u32 psn, u32 peer_psn)
{
	u32 port = rdma_start_port(victim.dev);
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = port,
		.qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
				   IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC,
	};
	union ib_gid gid = *dgid;
	int err;

	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	attr.qp_state = IB_QPS_RTR;
	attr.path_mtu = mtu;
	attr.dest_qp_num = peer_qpn;
	attr.rq_psn = peer_psn;
	attr.max_dest_rd_atomic = 8;
	attr.min_rnr_timer = 1;
	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(&attr.ah_attr, port);
	rdma_ah_set_grh(&attr.ah_attr, &gid, 0, gid_index, 64, 0);
	memcpy(attr.ah_attr.roce.dmac, mac, ETH_ALEN);
	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			   IB_QP_RQ_PSN |
			   (rc ? IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER : 0));
	if (err)
		return err;
	attr.qp_state = IB_QPS_RTS;
	attr.sq_psn = psn;
	attr.timeout = 18;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 4;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN |
			    (rc ? IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
				  IB_QP_MAX_QP_RD_ATOMIC : 0));
}

static struct ib_qp *make_qp(struct ib_cq *cq, bool rc)
{
	struct ib_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = rc ? IB_QPT_RC : IB_QPT_UC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = 4, .max_recv_wr = 2 * RECVS, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	return ib_create_qp(victim.pd, &attr);
}

static void drop_qp(struct slot *slot)
{
	if (!slot->qp)
		return;
	/* On 6.1 a softirq may write to a queue pair that the driver takes for idle. */
	synchronize_rcu_expedited();
	ib_destroy_qp(slot->qp);
	slot->qp = NULL;
}

int victim_disconnect(unsigned long nr)
{
	if (nr >= SLOTS)
		return -EINVAL;
	mutex_lock(&slots[nr].lock);
	drop_qp(&slots[nr]);
	mutex_unlock(&slots[nr].lock);
	return 0;
}

int victim_connect(struct victim_connect *c)
{
	struct slot *slot = &slots[c->slot % SLOTS];
	struct ib_qp *qp;
	union ib_gid gid;
	int err, i;

	if (c->slot >= SLOTS || c->mtu < IB_MTU_256 || c->mtu > IB_MTU_4096 || c->reserved)
		return -EINVAL;
	memcpy(gid.raw, c->gid, sizeof(gid));
	mutex_lock(&slot->lock);
	drop_qp(slot);
	qp = make_qp(slot->cq, c->reliable);
	err = PTR_ERR_OR_ZERO(qp);
	if (err)
		goto out;
	slot->qp = qp;
	c->qpn = qp->qp_num;
	c->psn = get_random_u32() & 0xffffff;
	err = to_rts(qp, c->reliable, c->mtu, &gid, c->mac, c->peer_qpn & 0xffffff, c->psn,
		     c->peer_psn & 0xffffff);
	for (i = 0; i < RECVS && !err; i++)
		err = post(slot, i);
	if (err)
		drop_qp(slot);
out:
	mutex_unlock(&slot->lock);
	return err;
}

void victim_stats(struct victim_stats *stats)
{
	stats->told = atomic64_read(&told);
	stats->told_other = atomic64_read(&told_other);
	stats->told_unknown = atomic64_read(&told_unknown);
	stats->received = atomic64_read(&received);
}

/* The IPv4 one. */
static int find_gid(union ib_gid *gid, u8 *mac)
{
	u32 port = rdma_start_port(victim.dev);
	const struct ib_gid_attr *attr;
	bool found = false;
	int i;

	for (i = 0; i < 16 && !found; i++) {
		attr = rdma_get_gid_attr(victim.dev, port, i);
		if (IS_ERR(attr))
			continue;
		found = attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
			ipv6_addr_v4mapped((struct in6_addr *)&attr->gid) &&
			!rdma_read_gid_l2_fields(attr, NULL, mac);
		if (found) {
			*gid = attr->gid;
			gid_index = i;
		}
		rdma_put_gid_attr(attr);
	}
	return found ? 0 : -ENODEV;
}

int victim_conns_make(void)
{
	union ib_gid gid;
	u8 mac[ETH_ALEN];
	int err, i, k;

	err = find_gid(&gid, mac);
	if (err)
		return err;
	for (i = 0; i < SLOTS; i++) {
		struct slot *slot = &slots[i];

		mutex_init(&slot->lock);
		for (k = 0; k < RECVS; k++)
			slot->cqe[k].done = recv_done;
		slot->buf = kzalloc(RECVS * RECV_SIZE, GFP_KERNEL);
		slot->cq = ib_alloc_cq(victim.dev, slot, 4 * RECVS, 0, IB_POLL_WORKQUEUE);
		if (!slot->buf || IS_ERR(slot->cq))
			return -ENOMEM;
	}
	victim.own_cq = ib_alloc_cq(victim.dev, NULL, 8, 0, IB_POLL_DIRECT);
	if (IS_ERR(victim.own_cq))
		return PTR_ERR(victim.own_cq);
	victim.own_qp = make_qp(victim.own_cq, true);
	if (IS_ERR(victim.own_qp))
		return PTR_ERR(victim.own_qp);
	return to_rts(victim.own_qp, true, IB_MTU_1024, &gid, mac, victim.own_qp->qp_num, 1, 1);
}

void victim_conns_free(void)
{
	int i;

	if (!IS_ERR_OR_NULL(victim.own_qp))
		ib_destroy_qp(victim.own_qp);
	if (!IS_ERR_OR_NULL(victim.own_cq))
		ib_free_cq(victim.own_cq);
	for (i = 0; i < SLOTS; i++) {
		struct slot *slot = &slots[i];

		drop_qp(slot);
		if (!IS_ERR_OR_NULL(slot->cq))
			ib_free_cq(slot->cq);
		kfree(slot->buf);
	}
}
