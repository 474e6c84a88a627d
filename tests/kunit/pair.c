// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two queue pairs that talk to each other over the device's loopback, and what a single operation
 * between them says.
 *
 * The requester plays the remote peer. It lives in a protection domain of its own, whose unsafe
 * global rkey lets the target reach the requester's buffer without any region: whatever is
 * refused is therefore refused for the region under test. Completions are polled, so a case sees
 * the status of the very request it posted. A completion that belongs to an older request
 * (flushed when the pair broke) is passed over.
 *
 * A pair that broke is not reset but made anew: on a slow machine packets are sent twice, and a
 * late answer to a failed request would be taken for one to the next request on the same queue
 * pair number. For the same reason the time-out is long.
 *
 * Loopback on soft RoCE: the packet goes back up where its destination MAC is the own one, and a
 * kernel caller has to fill that in itself.
 */
#include <linux/delay.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>
#include "helpers.h"
#include "base/compat.h"

#define IBT_DEPTH	16

static int ibt_end_modify(struct ibt_pair *p, struct ibt_end *e, u32 peer_qpn, u32 sq_psn,
			  u32 rq_psn)
{
	bool rc = p->type == IB_QPT_RC;
	struct ibt *ibt = p->ibt;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT };
	int ret;

	attr.port_num = ibt->port;
	attr.qp_access_flags = LW | RR | RW | RA;
	ret = ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (ret)
		return ret;

	attr.qp_state = IB_QPS_RTR;
	attr.path_mtu = ibt->mtu;
	attr.dest_qp_num = peer_qpn;
	attr.rq_psn = rq_psn;
	attr.max_dest_rd_atomic = 4;
	attr.min_rnr_timer = 1;
	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(&attr.ah_attr, ibt->port);
	rdma_ah_set_grh(&attr.ah_attr, &ibt->gid, 0, ibt->gid_index, 64, 0);
	memcpy(attr.ah_attr.roce.dmac, ibt->mac, ETH_ALEN);
	ret = ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			   IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			   (rc ? IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER : 0));
	if (ret)
		return ret;

	attr.qp_state = IB_QPS_RTS;
	attr.sq_psn = sq_psn;
	attr.timeout = p->timeout;
	attr.retry_cnt = p->retries;
	attr.rnr_retry = 5;
	attr.max_rd_atomic = 4;
	return ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN |
			    (rc ? IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
				  IB_QP_MAX_QP_RD_ATOMIC : 0));
}

static int ibt_end_qp(struct ibt_pair *p, struct ibt_end *e)
{
	struct ib_qp_init_attr attr = {
		.send_cq = e->cq,
		.recv_cq = e->cq,
		.qp_type = p->type,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = IBT_DEPTH, .max_recv_wr = IBT_DEPTH,
			.max_send_sge = 2, .max_recv_sge = 2,
		},
	};

	/*
	 * On 6.1 a softirq that ran the responder inline may still write to the queue pair's task,
	 * which the driver does not wait for.
	 */
	if (!IS_ERR_OR_NULL(e->qp)) {
		synchronize_rcu_expedited();
		ib_destroy_qp(e->qp);
	}
	e->qp = ib_create_qp(e->pd, &attr);
	return PTR_ERR_OR_ZERO(e->qp);
}

/* Both ends to RTS, unless they are. The first end's packets go to a queue pair that is ready. */
static int ibt_pair_connect(struct ibt_pair *p)
{
	u32 psn_req = get_random_u32() & 0xffffff, psn_tgt = get_random_u32() & 0xffffff;
	int ret;

	if (p->ready)
		return 0;
	ret = ibt_end_qp(p, &p->req);
	if (!ret)
		ret = ibt_end_qp(p, &p->tgt);
	if (!ret)
		ret = ibt_end_modify(p, &p->req, p->tgt.qp->qp_num, psn_req, psn_tgt);
	if (!ret)
		ret = ibt_end_modify(p, &p->tgt, p->req.qp->qp_num, psn_tgt, psn_req);
	p->ready = !ret;
	return ret;
}

static void ibt_end_free(struct ibt_pair *p, struct ibt_end *e)
{
	if (!IS_ERR_OR_NULL(e->qp))
		KUNIT_EXPECT_EQ(p->test, ib_destroy_qp(e->qp), 0);
	if (!IS_ERR_OR_NULL(e->cq))
		ib_destroy_cq(e->cq);
	free_pages_exact(e->buf, IBT_LOCAL);
}

static void ibt_pair_free(struct kunit *test, void *arg)
{
	struct ibt_pair *p = arg;

	ibt_end_free(p, &p->req);
	ibt_end_free(p, &p->tgt);
	if (!IS_ERR_OR_NULL(p->peer_pd))
		ib_dealloc_pd(p->peer_pd);
	kfree(p);
}

static int ibt_end_make(struct ibt_pair *p, struct ibt_end *e, struct ib_pd *pd)
{
	struct ib_cq_init_attr cq_attr = { .cqe = 4 * IBT_DEPTH };

	e->pd = pd;
	e->buf = alloc_pages_exact(IBT_LOCAL, GFP_KERNEL | __GFP_ZERO);
	if (!e->buf)
		return -ENOMEM;
	e->cq = ib_create_cq(pd->device, NULL, NULL, NULL, &cq_attr);
	return PTR_ERR_OR_ZERO(e->cq);
}

struct ibt_pair *ibt_pair_type(struct kunit *test, struct ib_pd *pd_target, enum ib_qp_type type)
{
	struct ibt_pair *p = kzalloc(sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	p->test = test;
	p->ibt = ibt_of(test);
	p->type = type;
	p->timeout = 19;	/* 2.1 s: a slow machine is no lost packet */
	p->retries = 5;
	ibt_defer(test, ibt_pair_free, p);

	p->peer_pd = ib_alloc_pd(ibt_dev(test), IB_PD_UNSAFE_GLOBAL_RKEY);
	KUNIT_ASSERT_FALSE(test, IS_ERR(p->peer_pd));
	KUNIT_ASSERT_EQ(test, ibt_end_make(p, &p->req, p->peer_pd), 0);
	KUNIT_ASSERT_EQ(test, ibt_end_make(p, &p->tgt, pd_target), 0);
	KUNIT_ASSERT_EQ(test, ibt_pair_connect(p), 0);
	return p;
}

struct ibt_pair *ibt_pair(struct kunit *test, struct ib_pd *pd_target)
{
	return ibt_pair_type(test, pd_target, IB_QPT_RC);
}

static enum ib_wc_status ibt_poll(struct ibt_pair *p, struct ibt_end *e, u64 wr_id)
{
	unsigned long deadline = jiffies + 10 * HZ;
	unsigned int spins = 0;
	struct ib_wc wc;

	do {
		if (ib_poll_cq(e->cq, 1, &wc) == 1) {
			if (wc.wr_id == wr_id)
				return wc.status;
			continue;
		}
		/* On one CPU and a workqueue driver, spinning alone would only hold it up. */
		if (spins++ < 50)
			cond_resched();
		else
			usleep_range(20, 200);
	} while (time_before(jiffies, deadline));

	KUNIT_FAIL(p->test, "no completion within 10 s");
	return IBT_LOST;
}

static int ibt_post_recv(struct ibt_end *e, struct ib_sge *sge)
{
	struct ib_recv_wr wr = { .wr_id = ++e->seq, .sg_list = sge, .num_sge = 1 };

	return ib_post_recv(e->qp, &wr, NULL);
}

/* One request from an end: @sge its own memory, @addr and @rkey the other's. */
static enum ib_wc_status ibt_request(struct ibt_pair *p, struct ibt_end *e, enum ibt_op op,
				     struct ib_sge *sge, u64 addr, u32 rkey)
{
	struct ib_rdma_wr rdma = { .remote_addr = addr, .rkey = rkey };
	struct ib_atomic_wr atomic = { .remote_addr = addr, .rkey = rkey };
	struct ib_send_wr *wr = &rdma.wr;
	enum ib_wc_status status;
	int ret;

	if (op == IBT_FETCH_ADD || op == IBT_CMP_SWAP)
		wr = &atomic.wr;
	switch (op) {
	case IBT_READ:
		wr->opcode = IB_WR_RDMA_READ;
		break;
	case IBT_WRITE:
		wr->opcode = IB_WR_RDMA_WRITE;
		break;
	case IBT_FETCH_ADD:
		wr->opcode = IB_WR_ATOMIC_FETCH_AND_ADD;
		atomic.compare_add = p->add;
		break;
	case IBT_CMP_SWAP:
		wr->opcode = IB_WR_ATOMIC_CMP_AND_SWP;
		atomic.compare_add = p->compare;
		atomic.swap = p->swap;
		break;
	default:
		wr->opcode = IB_WR_SEND;
	}
	wr->wr_id = ++e->seq;
	wr->send_flags = IB_SEND_SIGNALED;
	wr->sg_list = sge;
	wr->num_sge = 1;

	ret = ib_post_send(e->qp, wr, NULL);
	KUNIT_EXPECT_EQ_MSG(p->test, ret, 0, "posting %s", ibt_op_name(op));
	status = ret ? IBT_LOST : ibt_poll(p, e, wr->wr_id);
	if (status != IB_WC_SUCCESS)
		p->ready = false;
	return status;
}

enum ib_wc_status ibt_rdma(struct ibt_pair *p, enum ibt_op op, void *local, u32 rkey, u64 iova,
			   u32 len)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)local, .length = len, .lkey = p->peer_pd->local_dma_lkey,
	};
	struct ib_sge recv = {
		.addr = (uintptr_t)p->tgt.buf, .length = IBT_LOCAL,
		.lkey = p->tgt.pd->local_dma_lkey,
	};

	if (ibt_pair_connect(p) || (op == IBT_SEND && ibt_post_recv(&p->tgt, &recv))) {
		KUNIT_FAIL(p->test, "the pair cannot be connected");
		return IBT_LOST;
	}
	return ibt_request(p, &p->req, op, &sge, iova, rkey);
}

enum ib_wc_status ibt_local(struct ibt_pair *p, enum ibt_op op, u32 lkey, u64 iova, u32 len)
{
	struct ib_sge sge = { .addr = iova, .length = len, .lkey = lkey };
	struct ib_sge peer = {
		.addr = (uintptr_t)p->req.buf, .length = len, .lkey = p->peer_pd->local_dma_lkey,
	};
	enum ib_wc_status sent, status;
	int ret;

	ret = ibt_pair_connect(p);
	if (!ret && op == IBT_SEND)
		ret = ibt_post_recv(&p->req, &peer);
	if (!ret && op == IBT_RECV)
		ret = ibt_post_recv(&p->tgt, &sge);
	if (ret) {
		KUNIT_FAIL(p->test, "the pair cannot be connected");
		return IBT_LOST;
	}
	if (op != IBT_RECV)
		return ibt_request(p, &p->tgt, op, &sge, peer.addr, p->peer_pd->unsafe_global_rkey);

	/* What counts is what the receiver says; the sender has to agree. */
	sent = ibt_request(p, &p->req, IBT_SEND, &peer, 0, 0);
	status = ibt_poll(p, &p->tgt, p->tgt.seq);
	KUNIT_EXPECT_EQ_MSG(p->test, sent == IB_WC_SUCCESS, status == IB_WC_SUCCESS,
			    "sender: %s, receiver: %s", ib_wc_status_msg(sent),
			    ib_wc_status_msg(status));
	return status;
}

bool ibt_local_error(enum ib_wc_status status)
{
	return status == IB_WC_LOC_PROT_ERR || status == IB_WC_LOC_QP_OP_ERR ||
	       (IBMR_REFUSAL_MAY_FLUSH && status == IB_WC_WR_FLUSH_ERR);
}

const char *ibt_op_name(enum ibt_op op)
{
	static const char * const names[] = {
		[IBT_READ] = "READ", [IBT_WRITE] = "WRITE", [IBT_FETCH_ADD] = "FETCH_ADD",
		[IBT_CMP_SWAP] = "CMP_SWAP", [IBT_SEND] = "SEND", [IBT_RECV] = "RECV",
	};

	return names[op];
}

