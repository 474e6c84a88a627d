// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Registration queue pairs: registration work requests as plain function calls.
 *
 * A device registers a fast-registration MR only by a work request, and a work request needs a
 * queue pair in the MR's PD. So each PD that has something registered gets a hidden RC queue pair,
 * connected to itself, which sends nothing: REG_MR and LOCAL_INV are local operations. It has no
 * receives, no remote rights and a random PSN, so that it is no target inside the ULP's PD.
 *
 * Normal operation: a chain of requests is posted with only the last one signalled, and its
 * completion is waited for. One chain runs at a time (ibmr_pd.lock). A storage ULP may wait for us
 * while memory is short, so nothing is allocated on the way and what the core allocates below us
 * may not start I/O.
 *
 * Recovery: a request that the device refuses completes with an error and takes the queue pair to
 * the error state; what was behind it is flushed, unexecuted. Another queue pair is then made in
 * its place, and the flushed rest is posted there, so one bad request does not spoil its
 * neighbours. A queue pair that was broken from outside (a port event, a test) shows as a chain
 * that is flushed, and is mended the same way. A flushed chain tells nothing of its requests: what
 * was carried out, and not reported yet, when the queue pair broke, is flushed all the same, and
 * from 6.5 on soft RoCE may so flush the very request that it refused. So they are run one by one
 * then. To invalidate twice does no harm; a registration that was carried out is undone, and made
 * again. A queued request holds a bare pointer to its MR: when a completion does not come in time
 * the queue pair is destroyed, which is the one way to be sure that the device has forgotten it.
 *
 * Nothing in this file decides what is registered, and no other file posts requests.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "base/compat.h"
#include "base/core.h"
#include "base/fault.h"
#include "mr/regqp.h"

/* Local work on an idle queue pair takes microseconds; this bounds a device that lost it. */
#define REGQP_TIMEOUT		(20 * HZ)
#define REGQP_TRIES		3

struct ibmr_regqp {
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct completion event;
	int qp_access;
	unsigned int gid_from;	/* first GID index to try */
	unsigned int gid;	/* the one in use */
	bool ready;
	/* One chain; what is the same in every use of it stays filled in. */
	struct ib_reg_wr wr[IBMR_REGQP_DEPTH];
	struct ib_wc wc[8];
};

/* Called under the CQ's lock from 6.12 on: complete() and nothing else. */
static void regqp_comp_handler(struct ib_cq *cq, void *context)
{
	struct ibmr_regqp *rq = context;

	complete(&rq->event);
}

/*
 * For the sweep: the queue pair goes to error between two steps of ours. Only one that registers:
 * what the test of live mapping concludes from a broken one is told there.
 */
static void regqp_may_break(struct ibmr_regqp *rq)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	if (!rq->qp_access && ibmr_should_fail(IBMR_FAULT_BREAK))
		ib_modify_qp(rq->qp, &attr, IB_QP_STATE);
}

/* Address handle that leads back to the port itself. */
static int self_address(struct ibmr_regqp *rq, struct rdma_ah_attr *ah, u32 port)
{
	struct ib_device *device = rq->pd->device;
	const struct ib_gid_attr *gid;
	struct ib_port_attr attr;
	unsigned int i;
	int err;

	ah->type = rdma_ah_find_type(device, port);
	rdma_ah_set_port_num(ah, port);
	if (ah->type != RDMA_AH_ATTR_TYPE_ROCE) {	/* InfiniBand, Omni-Path */
		err = ib_query_port(device, port, &attr);
		if (!err)
			rdma_ah_set_dlid(ah, attr.lid);
		return err;
	}

	/* The port is not asked here: soft RoCE takes the RTNL lock, which a ULP may hold. */
	for (i = rq->gid_from; i < device->port_data[port].immutable.gid_tbl_len; i++) {
		gid = rdma_get_gid_attr(device, port, i);
		if (IS_ERR(gid))
			continue;
		err = rdma_read_gid_l2_fields(gid, NULL, ah->roce.dmac);
		if (!err) {
			union ib_gid dgid = gid->gid;

			rdma_ah_set_grh(ah, &dgid, 0, i, 64, 0);
			rq->gid = i;
			rdma_put_gid_attr(gid);
			return 0;
		}
		rdma_put_gid_attr(gid);
	}
	return -EADDRNOTAVAIL;
}

/*
 * The core keeps the entry of the GID table by which a queue pair was connected until that is
 * destroyed, and gives nobody its place meanwhile. The port's default GID has one place: were it
 * ours, a NIC whose MAC address changes would leave its port without a default GID, for everybody,
 * for as long as a PD has a region ("unable to add gid", -ENOSPC; the event that tells of the
 * change comes after that). A queue pair that sends nothing needs no address once it is connected,
 * and then registering does not depend on what happens to the NIC's addresses either.
 */
static void regqp_forget_address(struct ibmr_regqp *rq)
{
	const struct ib_gid_attr *gid = rq->qp->av_sgid_attr;

	if (rq->qp_access || !gid)
		return;
	rq->qp->av_sgid_attr = NULL;
	rdma_put_gid_attr(gid);
}

/* From any state to ready-to-send, connected to itself. */
static int regqp_connect(struct ibmr_regqp *rq)
{
	u32 port = rdma_start_port(rq->pd->device);
	struct ib_qp_attr attr;
	u32 psn = get_random_u32() & 0xffffff;
	int err;

	rq->ready = false;
	attr = (struct ib_qp_attr){ .qp_state = IB_QPS_RESET };
	err = ib_modify_qp(rq->qp, &attr, IB_QP_STATE);
	if (err)
		return err;

	attr = (struct ib_qp_attr){
		.qp_state		= IB_QPS_INIT,
		.port_num		= port,
		.qp_access_flags	= rq->qp_access,
	};
	err = ib_modify_qp(rq->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (err)
		return err;

	attr = (struct ib_qp_attr){
		.qp_state		= IB_QPS_RTR,
		.path_mtu		= IB_MTU_256,
		.dest_qp_num		= rq->qp->qp_num,
		.rq_psn			= psn,
		.max_dest_rd_atomic	= 1,
		.min_rnr_timer		= 12,
	};
	err = self_address(rq, &attr.ah_attr, port);
	if (err)
		return err;
	err = ib_modify_qp(rq->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			   IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			   IB_QP_MIN_RNR_TIMER);
	if (err)
		return err;

	attr = (struct ib_qp_attr){
		.qp_state	= IB_QPS_RTS,
		.sq_psn		= psn,
		.timeout	= 18,	/* 1 s: longer than any loopback takes */
		.retry_cnt	= 3,
		.rnr_retry	= 1,
		.max_rd_atomic	= 1,
	};
	err = ib_modify_qp(rq->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			   IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
	regqp_forget_address(rq);
	rq->ready = !err;
	return err;
}

static int regqp_make_qp(struct ibmr_regqp *rq)
{
	struct ib_qp_init_attr init = {
		/* No event handler: one that broke is noticed by the flush of the next chain. */
		.send_cq	= rq->cq,
		.recv_cq	= rq->cq,
		.cap		= {
			.max_send_wr	= IBMR_REGQP_DEPTH,
			.max_send_sge	= 1,
		},
		.sq_sig_type	= IB_SIGNAL_REQ_WR,
		.qp_type	= IB_QPT_RC,
	};
	struct ib_qp *qp;

	qp = ibmr_should_fail(IBMR_FAULT_DEVICE) ? ERR_PTR(-ENOMEM) : ib_create_qp(rq->pd, &init);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	rq->qp = qp;
	return 0;
}

/* The device forgets every request of it. The next one is made when it is needed. */
static void regqp_drop_qp(struct ibmr_regqp *rq)
{
	/*
	 * On 6.1 a softirq that carried packets to it may still be on its way out of the driver's
	 * structure, where the driver itself does not wait for it. Registering has no packets.
	 */
	if (rq->qp_access)
		synchronize_rcu();
	ib_destroy_qp(rq->qp);
	rq->qp = NULL;
	rq->ready = false;
	while (ib_poll_cq(rq->cq, ARRAY_SIZE(rq->wc), rq->wc) > 0)
		;
}

/**
 * ibmr_regqp_create() - a queue pair connected to itself
 * @pd: where
 * @qp_access: remote rights of the queue pair itself: 0 but for tests of live mapping
 * @gid_from: first GID index to try
 *
 * Context: process, may sleep; does no I/O for memory.
 * Return: the queue pair, ready to send; -EOPNOTSUPP on iWARP; or an error.
 */
struct ibmr_regqp *ibmr_regqp_create(struct ib_pd *pd, int qp_access, unsigned int gid_from)
{
	struct ib_cq_init_attr cq_attr = { .cqe = IBMR_REGQP_DEPTH + 8 };
	unsigned int noio = memalloc_noio_save();
	struct ibmr_regqp *rq;
	unsigned int i;
	int err;

	if (!ibmr_has_regqp(pd->device)) {
		err = -EOPNOTSUPP;
		goto err;
	}
	rq = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kvzalloc(sizeof(*rq), GFP_KERNEL);
	if (!rq) {
		err = -ENOMEM;
		goto err;
	}
	for (i = 0; i < IBMR_REGQP_DEPTH; i++) {
		rq->wr[i].wr.wr_id = i;
		rq->wr[i].wr.next = &rq->wr[i + 1].wr;
	}
	rq->pd = pd;
	rq->qp_access = qp_access;
	rq->gid_from = gid_from;
	init_completion(&rq->event);

	rq->cq = ibmr_should_fail(IBMR_FAULT_DEVICE) ? ERR_PTR(-ENOMEM) :
		ib_create_cq(pd->device, regqp_comp_handler, NULL, rq, &cq_attr);
	if (IS_ERR(rq->cq)) {
		err = PTR_ERR(rq->cq);
		rq->cq = NULL;
		goto err_free;
	}
	err = regqp_make_qp(rq);
	if (err)
		goto err_free;
	err = ibmr_should_fail(IBMR_FAULT_DEVICE) ? -EIO : regqp_connect(rq);
	if (err)
		goto err_free;
	memalloc_noio_restore(noio);
	return rq;

err_free:
	ibmr_regqp_destroy(rq);
err:
	memalloc_noio_restore(noio);
	return ERR_PTR(err);
}
IBMR_EXPORT_INTERNAL(ibmr_regqp_create);

/*
 * NULL is fine. When it returns the device knows nothing of the queue pair any more. It may be a
 * notifier that lets go of it, where memory must not be reclaimed: the core says that it may
 * allocate (for the place of an object in its table, which is there), and drivers are not known.
 */
void ibmr_regqp_destroy(struct ibmr_regqp *rq)
{
	unsigned int reserves;

	if (!rq)
		return;
	reserves = memalloc_noreclaim_save();
	if (rq->qp)
		regqp_drop_qp(rq);
	if (rq->cq)
		ib_destroy_cq(rq->cq);
	memalloc_noreclaim_restore(reserves);
	kvfree(rq);
}
IBMR_EXPORT_INTERNAL(ibmr_regqp_destroy);

unsigned int ibmr_regqp_gid(const struct ibmr_regqp *rq)
{
	return rq->gid;
}
IBMR_EXPORT_INTERNAL(ibmr_regqp_gid);

/* For tests that bind windows on it, and post and poll nothing else there. */
struct ib_qp *ibmr_regqp_qp(const struct ibmr_regqp *rq)
{
	return rq->qp;
}
IBMR_EXPORT_INTERNAL(ibmr_regqp_qp);

/* Make it ready to send again, if it is not. */
static int regqp_mend(struct ibmr_regqp *rq)
{
	int err;

	if (rq->ready)
		return 0;
	if (!rq->qp) {
		err = regqp_make_qp(rq);
		if (err)
			return err;
	}
	return ibmr_should_fail(IBMR_FAULT_DEVICE) ? -EIO : regqp_connect(rq);
}

/*
 * Wait until request @last has completed. *@bad is the index of the first one that did not
 * succeed, or @last + 1, and *@status what it completed with.
 *
 * Return: 0, or -ETIMEDOUT; the queue pair does not exist any more then.
 */
static int regqp_wait(struct ibmr_regqp *rq, unsigned int last, unsigned int *bad,
		      enum ib_wc_status *status)
{
	bool done = false;
	int i, n;

	*bad = last + 1;
	*status = IB_WC_SUCCESS;
	while (!ibmr_should_fail(IBMR_FAULT_TIMEOUT)) {
		regqp_may_break(rq);
		while ((n = ib_poll_cq(rq->cq, ARRAY_SIZE(rq->wc), rq->wc)) > 0) {
			for (i = 0; i < n; i++) {
				const struct ib_wc *wc = &rq->wc[i];

				if (wc->status != IB_WC_SUCCESS && *bad > last) {
					*bad = wc->wr_id;
					*status = wc->status;
				}
				done |= wc->wr_id == last;
			}
		}
		if (done)
			return 0;
		regqp_may_break(rq);
		reinit_completion(&rq->event);
		if (ib_req_notify_cq(rq->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0)
			continue;
		if (!wait_for_completion_timeout(&rq->event, REGQP_TIMEOUT))
			break;
	}

	pr_err("%s: a registration work request did not complete in %u s; its queue pair is made anew\n",
	       dev_name(&rq->pd->device->dev), REGQP_TIMEOUT / HZ);
	regqp_drop_qp(rq);
	return -ETIMEDOUT;
}

/*
 * Post wr[0] to wr[nr - 1] as one chain and wait. *@done counts those that are known to have been
 * carried out, from the first on.
 *
 * Return: 0; -EREMOTEIO when the device refused wr[*@done]; -EAGAIN when wr[*@done] was flushed,
 * so not looked at; other errors: nothing is known of the requests from *@done on.
 */
static int regqp_chain(struct ibmr_regqp *rq, unsigned int nr, unsigned int *done)
{
	struct ib_send_wr *last = &rq->wr[nr - 1].wr;
	const struct ib_send_wr *bad_wr;
	enum ib_wc_status status;
	int err;

	*done = 0;
	regqp_may_break(rq);
	last->next = NULL;
	last->send_flags = IB_SEND_SIGNALED;
	err = ibmr_should_fail(IBMR_FAULT_POST) ? -EIO :
		ib_post_send(rq->qp, &rq->wr[0].wr, &bad_wr);
	last->next = &rq->wr[nr].wr;
	last->send_flags = 0;
	if (err) {
		/* Some may be queued, none is signalled: forget them all. */
		regqp_drop_qp(rq);
		return err;
	}

	regqp_may_break(rq);
	err = regqp_wait(rq, nr - 1, done, &status);
	if (err) {
		*done = 0;
		return err;
	}
	if (status == IB_WC_SUCCESS)
		return 0;
	/*
	 * Not reset and connected anew: soft RoCE completes first and stops the queue pair after,
	 * so it might be stopped in the middle of its new life.
	 */
	regqp_drop_qp(rq);
	return status == IB_WC_WR_FLUSH_ERR ? -EAGAIN : -EREMOTEIO;
}

static void regqp_fill(struct ib_reg_wr *wr, const struct ibmr_regop *op)
{
	if (op->kind == IBMR_OP_INV) {
		wr->wr.opcode = IB_WR_LOCAL_INV;
		wr->wr.ex.invalidate_rkey = op->key;
		if (ibmr_should_fail(IBMR_FAULT_WC))
			wr->wr.ex.invalidate_rkey ^= 1;	/* a variant that the MR does not have */
	} else {
		wr->wr.opcode = IB_WR_REG_MR;
		wr->mr = op->mr;
		wr->key = op->key;
		wr->access = op->access;
		if (ibmr_should_fail(IBMR_FAULT_WC))
			wr->key ^= 1U << 8;	/* another MR's index */
	}
}

/* One request by itself: as regqp_chain(), but one that is flushed again and again is refused. */
static int regqp_one(struct ibmr_regqp *rq, const struct ibmr_regop *op)
{
	unsigned int done, tries;
	int err = 0;

	for (tries = 0; tries < REGQP_TRIES; tries++) {
		err = regqp_mend(rq);
		if (err)
			return err;
		regqp_fill(&rq->wr[0], op);
		err = regqp_chain(rq, 1, &done);
		if (err != -EAGAIN)
			return err;
	}
	return -EREMOTEIO;
}

/*
 * One request out of a flushed chain, of which it is not known whether it was carried out. That
 * does not matter to LOCAL_INV. A valid MR cannot be registered again, so if it was, that is undone
 * first; when it was not, the key is not the MR's, and the device refuses that.
 */
static int regqp_again(struct ibmr_regqp *rq, const struct ibmr_regop *op)
{
	const struct ibmr_regop inv = { .kind = IBMR_OP_INV, .key = op->key };
	int err = regqp_one(rq, op);

	if (err != -EREMOTEIO || op->kind == IBMR_OP_INV || (op->key ^ op->mr->lkey) >> 8)
		return err;
	return regqp_one(rq, &inv) ? err : regqp_one(rq, op);
}

/**
 * ibmr_regqp_run() - carry out registration requests, in order
 * @rq: queue pair; the caller serialises
 * @ops: requests; each gets its own result
 * @nr: how many, any number
 *
 * Context: process, may sleep.
 * Return: 0 when all were carried out, else the first error among them.
 */
int ibmr_regqp_run(struct ibmr_regqp *rq, struct ibmr_regop *ops, unsigned int nr)
{
	unsigned int noio = memalloc_noio_save();
	unsigned int at = 0, alone = 0;	/* so many of a flushed chain are still to be run */
	int first_err = 0;

	while (at < nr) {
		unsigned int i, done = 0, n = min_t(unsigned int, nr - at, IBMR_REGQP_DEPTH);
		int err;

		if (alone) {
			alone--;
			err = regqp_again(rq, &ops[at]);
			done = !err;
		} else {
			err = regqp_mend(rq);
			for (i = 0; i < n && !err; i++)
				regqp_fill(&rq->wr[i], &ops[at + i]);
			if (!err)
				err = regqp_chain(rq, n, &done);
		}

		for (i = 0; i < done; i++)
			ops[at + i].err = 0;
		at += done;
		if (!err)
			continue;
		if (err == -EAGAIN) {
			alone = n - done;
			continue;
		}
		if (!first_err)
			first_err = err == -EREMOTEIO ? -EIO : err;
		/* This one is refused; those behind it get their turn. */
		if (err == -EREMOTEIO) {
			ops[at++].err = -EIO;
			continue;
		}
		while (at < nr)
			ops[at++].err = first_err;
	}
	memalloc_noio_restore(noio);
	return first_err;
}
IBMR_EXPORT_INTERNAL(ibmr_regqp_run);

/**
 * ibmr_regqp_exec() - the same on a PD's own queue pair, which is made when there is none
 * @ipd: PD's state
 * @ops: requests
 * @nr: how many
 *
 * Context: process, may sleep; takes the PD's lock.
 * Return: 0 when all were carried out, else the first error among them.
 */
int ibmr_regqp_exec(struct ibmr_pd *ipd, struct ibmr_regop *ops, unsigned int nr)
{
	unsigned int i;
	int err;

	mutex_lock(&ipd->lock);
	if (!ipd->rq) {
		struct ibmr_regqp *rq = ibmr_regqp_create(ipd->pd, 0, 0);

		if (IS_ERR(rq)) {
			err = PTR_ERR(rq);
			for (i = 0; i < nr; i++)
				ops[i].err = err;
			goto out;
		}
		ipd->rq = rq;
	}
	err = ibmr_regqp_run(ipd->rq, ops, nr);
out:
	mutex_unlock(&ipd->lock);
	return err;
}

/**
 * ibmr_regqp_rdma() - one RDMA READ or WRITE of the queue pair to itself
 * @rq: queue pair with the right, made for this
 * @opcode: IB_WR_RDMA_READ or IB_WR_RDMA_WRITE
 * @laddr: local address
 * @lkey: its key
 * @length: bytes
 * @raddr: remote address
 * @rkey: its key
 * @status: how it completed, when 0 is returned
 *
 * Context: process, may sleep.
 * Return: 0 when a verdict was had, even a refusal; an error when none could be.
 */
int ibmr_regqp_rdma(struct ibmr_regqp *rq, enum ib_wr_opcode opcode, u64 laddr, u32 lkey,
		    u32 length, u64 raddr, u32 rkey, enum ib_wc_status *status)
{
	struct ib_sge sge = { .addr = laddr, .length = length, .lkey = lkey };
	struct ib_rdma_wr wr = {
		.wr = {
			.opcode		= opcode,
			.sg_list	= &sge,
			.num_sge	= 1,
			.send_flags	= IB_SEND_SIGNALED,
		},
		.remote_addr	= raddr,
		.rkey		= rkey,
	};
	unsigned int bad;
	int err;

	err = regqp_mend(rq);
	if (err)
		return err;
	err = ib_post_send(rq->qp, &wr.wr, NULL);
	if (err)
		return err;
	err = regqp_wait(rq, 0, &bad, status);
	/*
	 * A packet of a failed operation may still come (on a slow machine requests are sent
	 * twice), and could be taken for an answer to the next one. It finds no queue pair of
	 * this number any more.
	 */
	if (!err && *status != IB_WC_SUCCESS)
		regqp_drop_qp(rq);
	return err;
}
IBMR_EXPORT_INTERNAL(ibmr_regqp_rdma);

/**
 * ibmr_regqp_break() - put a PD's queue pair into the error state, for tests
 * @pd: PD
 *
 * Context: process, may sleep.
 * Return: 0, or -ENOENT when the PD has none.
 */
int ibmr_regqp_break(struct ib_pd *pd)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	unsigned int noio;
	struct ibmr_pd *ipd = ibmr_enter(pd, __func__, &noio);
	int err = -ENOENT;

	if (IS_ERR(ipd))
		return PTR_ERR(ipd);
	mutex_lock(&ipd->lock);
	if (ipd->rq && ipd->rq->qp)
		err = ib_modify_qp(ipd->rq->qp, &attr, IB_QP_STATE);
	mutex_unlock(&ipd->lock);
	ibmr_exit(ipd, noio);
	return err;
}
IBMR_EXPORT_INTERNAL(ibmr_regqp_break);
