// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Verdicts of the device: two queue pairs of a PD under test, and their peers in another PD.
 *
 * A refused access ends a reliable connection, and making it anew is the dearest thing here. Over
 * an unreliable one (UC) the device drops what it refuses and goes on, so most WRITEs go that way:
 * a SEND behind each tells when the device is done with it, and memory tells what it did.
 *
 * A connection that broke is not reset but made anew, since a late packet of the failed request
 * could be taken for one of the next.
 */
#include <linux/delay.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "fuzz.h"

#define DEPTH	16

struct end {
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u64 seq;
};

/* A connection: @peer asks, @own belongs to the PD under test. */
struct link {
	enum ib_qp_type type;
	struct end peer, own;
	bool ready;
};

struct fz_wire {
	struct ib_device *dev;
	struct ib_pd *peer_pd;
	u8 *buf;		/* the peer's, FZ_BUF bytes */
	u8 *inbox;		/* what SENDs fill, a page */
	struct rdma_ah_attr ah;
	u32 port;
	enum ib_mtu mtu;
	struct link rc, uc;
};

u8 *fz_wire_buf(struct fz_wire *wire)
{
	return wire->buf;
}

static int modify(struct fz_wire *wire, struct link *l, struct end *e, u32 other, u32 sq_psn,
		  u32 rq_psn)
{
	const bool rc = l->type == IB_QPT_RC;
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = wire->port,
		.qp_access_flags = LW | RR | RW | RA,
	};
	int err;

	err = ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	attr.qp_state = IB_QPS_RTR;
	attr.path_mtu = wire->mtu;
	attr.dest_qp_num = other;
	attr.rq_psn = rq_psn;
	attr.max_dest_rd_atomic = 4;
	attr.min_rnr_timer = 1;
	attr.ah_attr = wire->ah;
	err = ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			   IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			   (rc ? IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER : 0));
	if (err)
		return err;
	attr.qp_state = IB_QPS_RTS;
	attr.sq_psn = sq_psn;
	attr.timeout = 19;	/* a slow machine is no lost packet */
	attr.retry_cnt = 5;
	attr.rnr_retry = 5;
	attr.max_rd_atomic = 4;
	return ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN |
			    (rc ? IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
				  IB_QP_MAX_QP_RD_ATOMIC : 0));
}

static int new_qp(struct link *l, struct end *e)
{
	struct ib_qp_init_attr attr = {
		.send_cq = e->cq, .recv_cq = e->cq, .qp_type = l->type,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	e->qp = ib_create_qp(e->pd, &attr);
	return PTR_ERR_OR_ZERO(e->qp);
}

static void drop_qps(struct link *l)
{
	/* On 6.1 a softirq may write to a queue pair that the driver takes for idle. */
	if (!IS_ERR_OR_NULL(l->peer.qp) || !IS_ERR_OR_NULL(l->own.qp))
		synchronize_rcu_expedited();
	if (!IS_ERR_OR_NULL(l->peer.qp))
		ib_destroy_qp(l->peer.qp);
	if (!IS_ERR_OR_NULL(l->own.qp))
		ib_destroy_qp(l->own.qp);
	l->peer.qp = NULL;
	l->own.qp = NULL;
}

static int connect(struct fz_wire *wire, struct link *l)
{
	u32 psn = get_random_u32() & 0xffffff, back = get_random_u32() & 0xffffff;
	int err;

	if (l->ready)
		return 0;
	drop_qps(l);
	err = new_qp(l, &l->peer);
	if (!err)
		err = new_qp(l, &l->own);
	if (!err)
		err = modify(wire, l, &l->peer, l->own.qp->qp_num, psn, back);
	if (!err)
		err = modify(wire, l, &l->own, l->peer.qp->qp_num, back, psn);
	l->ready = !err;
	fz_stats.reconnects++;
	return err;
}

static void link_free(struct link *l)
{
	drop_qps(l);
	if (!IS_ERR_OR_NULL(l->peer.cq))
		ib_free_cq(l->peer.cq);
	if (!IS_ERR_OR_NULL(l->own.cq))
		ib_free_cq(l->own.cq);
}

void fz_wire_free(struct fz_wire *wire)
{
	if (!wire)
		return;
	link_free(&wire->rc);
	link_free(&wire->uc);
	free_pages_exact(wire->buf, FZ_BUF);
	free_page((unsigned long)wire->inbox);
	kfree(wire);
}

static int link_make(struct fz_wire *wire, struct link *l, struct ib_pd *pd, enum ib_qp_type type)
{
	l->type = type;
	l->peer.pd = wire->peer_pd;
	l->own.pd = pd;
	l->peer.cq = ib_alloc_cq(wire->dev, NULL, 2 * DEPTH, 0, IB_POLL_DIRECT);
	l->own.cq = ib_alloc_cq(wire->dev, NULL, 2 * DEPTH, 0, IB_POLL_DIRECT);
	if (IS_ERR(l->peer.cq) || IS_ERR(l->own.cq))
		return -ENOMEM;
	return connect(wire, l);
}

static int address(struct fz_wire *wire)
{
	const struct ib_gid_attr *gid = rdma_get_gid_attr(wire->dev, wire->port, 1);
	union ib_gid dgid;
	int err;

	if (IS_ERR(gid))
		gid = rdma_get_gid_attr(wire->dev, wire->port, 0);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	wire->ah.type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(&wire->ah, wire->port);
	err = rdma_read_gid_l2_fields(gid, NULL, wire->ah.roce.dmac);
	dgid = gid->gid;
	rdma_ah_set_grh(&wire->ah, &dgid, 0, gid->index, 64, 0);
	rdma_put_gid_attr(gid);
	return err;
}

/* To and from queue pairs of @pd; @peer_pd lets any address be written to. */
struct fz_wire *fz_wire_make(struct ib_pd *peer_pd, struct ib_pd *pd)
{
	struct ib_device *dev = pd->device;
	struct fz_wire *wire = kzalloc(sizeof(*wire), GFP_KERNEL);
	struct ib_port_attr port;
	int err = -ENOMEM;

	if (!wire)
		return NULL;
	wire->dev = dev;
	wire->port = rdma_start_port(dev);
	wire->buf = alloc_pages_exact(FZ_BUF, GFP_KERNEL);
	wire->inbox = (u8 *)__get_free_page(GFP_KERNEL);
	wire->peer_pd = peer_pd;
	if (wire->buf && wire->inbox)
		err = ib_query_port(dev, wire->port, &port);
	if (!err) {
		wire->mtu = port.active_mtu;
		err = address(wire);
	}
	if (!err)
		err = link_make(wire, &wire->rc, pd, IB_QPT_RC);
	if (!err)
		err = link_make(wire, &wire->uc, pd, IB_QPT_UC);
	if (!err)
		return wire;
	fz_wire_free(wire);
	return NULL;
}

/* A queue pair of the PD that is ready to send; NULL when none can be had. */
struct ib_qp *fz_wire_qp(struct fz_wire *wire)
{
	return connect(wire, &wire->rc) ? NULL : wire->rc.own.qp;
}

static enum ib_wc_status wait(struct end *e, u64 id, struct ib_wc *wc)
{
	unsigned long deadline = jiffies + 20 * HZ;
	unsigned int spins = 0;

	do {
		if (ib_poll_cq(e->cq, 1, wc) == 1) {
			if (wc->wr_id == id)
				return wc->status;
			continue;	/* of an older request, flushed */
		}
		if (spins++ < 100)
			cond_resched();
		else
			usleep_range(10, 100);
	} while (time_before(jiffies, deadline));
	return FZ_LOST;
}

static int post(struct end *e, struct ib_send_wr *wr, struct ib_sge *sge)
{
	wr->wr_id = ++e->seq;
	wr->send_flags = IB_SEND_SIGNALED;
	wr->sg_list = sge;
	wr->num_sge = sge ? 1 : 0;
	return ib_post_send(e->qp, wr, NULL);
}

static int post_recv(struct fz_wire *wire, struct end *e)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)wire->inbox, .length = PAGE_SIZE, .lkey = e->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_id = ++e->seq, .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(e->qp, &wr, NULL);
}

static enum ib_wc_status done(struct link *l, struct end *e, int err)
{
	enum ib_wc_status status = FZ_LOST;
	struct ib_wc wc;

	if (!err)
		status = wait(e, e->seq, &wc);
	if (status != IB_WC_SUCCESS)
		l->ready = false;
	return status;
}

/* WRITE and behind it a SEND, which the device does not carry out before. */
static enum ib_wc_status write_uc(struct fz_wire *wire, struct ib_rdma_wr *wr, struct ib_sge *sge)
{
	struct ib_sge one = {
		.addr = (uintptr_t)wire->buf, .length = 1, .lkey = wire->peer_pd->local_dma_lkey,
	};
	struct ib_send_wr send = { .opcode = IB_WR_SEND };
	struct link *l = &wire->uc;
	struct ib_wc wc;
	int err;

	err = connect(wire, l);
	if (!err)
		err = post_recv(wire, &l->own);
	if (!err)
		err = post(&l->peer, &wr->wr, sge);
	if (!err)
		err = post(&l->peer, &send, &one);
	if (done(l, &l->peer, err) == IB_WC_SUCCESS &&
	    wait(&l->own, l->own.seq, &wc) == IB_WC_SUCCESS)
		return IB_WC_SUCCESS;
	l->ready = false;
	return FZ_LOST;
}

/**
 * fz_wire_rdma() - an access, and what the device says
 * @wire: connections
 * @op: what; the peer's end is its buffer
 * @key: of the memory under test, an rkey; an lkey for FZ_OWN_WRITE
 * @iova: address
 * @len: bytes
 * @compare: FZ_SWAP
 * @add: what to add, or to put there
 *
 * Of FZ_WRITE_UC success says that the device is done with it, not that it was carried out.
 */
enum ib_wc_status fz_wire_rdma(struct fz_wire *wire, enum fz_op op, u32 key, u64 iova, u32 len,
			       u64 compare, u64 add)
{
	struct ib_rdma_wr rdma = { .remote_addr = iova, .rkey = key };
	struct ib_atomic_wr atomic = {
		.remote_addr = iova, .rkey = key, .compare_add = add,
	};
	struct ib_sge sge = {
		.addr = (uintptr_t)wire->buf, .length = len, .lkey = wire->peer_pd->local_dma_lkey,
	};
	struct ib_send_wr *wr = &rdma.wr;
	struct link *l = &wire->rc;
	struct end *e = &l->peer;

	fz_stats.rdma++;
	switch (op) {
	case FZ_READ:
		wr->opcode = IB_WR_RDMA_READ;
		break;
	case FZ_WRITE_UC:
		wr->opcode = IB_WR_RDMA_WRITE;
		return write_uc(wire, &rdma, &sge);
	case FZ_ADD:
		wr = &atomic.wr;
		wr->opcode = IB_WR_ATOMIC_FETCH_AND_ADD;
		break;
	case FZ_SWAP:
		wr = &atomic.wr;
		wr->opcode = IB_WR_ATOMIC_CMP_AND_SWP;
		atomic.compare_add = compare;
		atomic.swap = add;
		break;
	case FZ_OWN_WRITE:
		wr->opcode = IB_WR_RDMA_WRITE;
		sge = (struct ib_sge){ .addr = iova, .length = len, .lkey = key };
		rdma.remote_addr = (uintptr_t)wire->buf;
		rdma.rkey = wire->peer_pd->unsafe_global_rkey;
		e = &l->own;
		break;
	default:
		wr->opcode = IB_WR_RDMA_WRITE;
	}
	return done(l, e, connect(wire, l) ?: post(e, wr, &sge));
}

/* The owner invalidates @key through a queue pair of its own. */
enum ib_wc_status fz_wire_local_inv(struct fz_wire *wire, u32 key)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = key };
	struct link *l = &wire->rc;

	return done(l, &l->own, connect(wire, l) ?: post(&l->own, &wr, NULL));
}

/* The peer does; *@told: the key that the owner's completion names, if any. */
enum ib_wc_status fz_wire_send_inv(struct fz_wire *wire, u32 key, u32 *told)
{
	struct ib_sge one = {
		.addr = (uintptr_t)wire->buf, .length = 1, .lkey = wire->peer_pd->local_dma_lkey,
	};
	struct ib_send_wr wr = { .opcode = IB_WR_SEND_WITH_INV, .ex.invalidate_rkey = key };
	struct link *l = &wire->rc;
	enum ib_wc_status status;
	struct ib_wc wc = {};
	int err;

	*told = 0;
	err = connect(wire, l);
	if (!err)
		err = post_recv(wire, &l->own);
	if (!err)
		err = post(&l->peer, &wr, &one);
	status = done(l, &l->peer, err);
	if (err)
		return status;
	if (wait(&l->own, l->own.seq, &wc) != IB_WC_SUCCESS)
		l->ready = false;
	else if (wc.wc_flags & IB_WC_WITH_INVALIDATE)
		*told = wc.ex.invalidate_rkey;
	return l->ready ? IB_WC_SUCCESS : IB_WC_REM_INV_REQ_ERR;
}
