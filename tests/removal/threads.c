// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs, and the threads of a set: two that make and unmake objects, and one that is the
 * peer and reads what the set has registered, without pause.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "removal.h"

#define DEPTH	8

void pair_init_attr(struct ib_qp_init_attr *attr, struct ib_cq *cq)
{
	*attr = (struct ib_qp_init_attr){
		.send_cq = cq, .recv_cq = cq, .qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = DEPTH, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
}

/* What does not need the owner's PD. */
int pair_prepare(struct pair *p, struct ib_device *dev)
{
	struct ib_cq_init_attr cq = { .cqe = 2 * DEPTH };

	p->buf = (u8 *)__get_free_page(GFP_KERNEL);
	if (!p->buf)
		return -ENOMEM;
	p->peer_pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(p->peer_pd))
		return PTR_ERR(p->peer_pd);
	p->cq = ib_create_cq(dev, NULL, NULL, NULL, &cq);
	if (IS_ERR(p->cq))
		return PTR_ERR(p->cq);
	p->peer_cq = ib_create_cq(dev, NULL, NULL, NULL, &cq);
	return PTR_ERR_OR_ZERO(p->peer_cq);
}

/* The last address that the device has: its IPv4 address where it has one. */
static int own_address(struct ib_device *dev, u32 port, struct rdma_ah_attr *ah)
{
	int i, err = -EADDRNOTAVAIL;

	ah->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(ah, port);
	for (i = 0; i < dev->port_data[port].immutable.gid_tbl_len && i < 64; i++) {
		const struct ib_gid_attr *gid = rdma_get_gid_attr(dev, port, i);
		union ib_gid dgid;

		if (IS_ERR(gid))
			continue;
		dgid = gid->gid;
		if (!rdma_read_gid_l2_fields(gid, NULL, ah->roce.dmac)) {
			rdma_ah_set_grh(ah, &dgid, 0, i, 64, 0);
			err = 0;
		}
		rdma_put_gid_attr(gid);
	}
	return err;
}

static int connect(struct ib_qp *qp, u32 dest)
{
	u32 port = rdma_start_port(qp->device);
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = port, .qp_access_flags = ALL,
	};
	int err;

	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	attr = (struct ib_qp_attr){
		.qp_state = IB_QPS_RTR, .path_mtu = IB_MTU_1024, .dest_qp_num = dest, .rq_psn = 1,
		.max_dest_rd_atomic = 4, .min_rnr_timer = 12,
	};
	err = own_address(qp->device, port, &attr.ah_attr);
	if (err)
		return err;
	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			   IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	attr = (struct ib_qp_attr){
		.qp_state = IB_QPS_RTS, .sq_psn = 1, .timeout = 18, .retry_cnt = 5, .rnr_retry = 5,
		.max_rd_atomic = 4,
	};
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN | IB_QP_TIMEOUT |
			    IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MAX_QP_RD_ATOMIC);
}

int pair_connect(struct pair *p, struct ib_pd *pd)
{
	struct ib_qp_init_attr attr;

	pair_init_attr(&attr, p->cq);
	p->qp = ib_create_qp(pd, &attr);
	if (IS_ERR(p->qp))
		return PTR_ERR(p->qp);
	pair_init_attr(&attr, p->peer_cq);
	p->peer_qp = ib_create_qp(p->peer_pd, &attr);
	if (IS_ERR(p->peer_qp))
		return PTR_ERR(p->peer_qp);
	return connect(p->qp, p->peer_qp->qp_num) ?: connect(p->peer_qp, p->qp->qp_num);
}

/* A READ on its way to an address that is gone may take for ever; it is flushed now. */
void pair_break(struct pair *p)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	if (!IS_ERR_OR_NULL(p->peer_qp))
		ib_modify_qp(p->peer_qp, &attr, IB_QP_STATE);
}

/* However far it got. Nothing is under way but what the device sends by itself. */
void pair_destroy(struct pair *p)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	bool qp = !IS_ERR_OR_NULL(p->qp), peer = !IS_ERR_OR_NULL(p->peer_qp);

	if (qp)
		ib_modify_qp(p->qp, &attr, IB_QP_STATE);
	if (peer)
		ib_modify_qp(p->peer_qp, &attr, IB_QP_STATE);
	/*
	 * On 6.1 a packet of the device's own may still be on its way out of a queue pair's task,
	 * which the driver does not wait for (the last store of rxe_do_task()).
	 */
	if (qp || peer)
		synchronize_rcu();
	if (qp)
		ib_destroy_qp(p->qp);
	if (peer)
		ib_destroy_qp(p->peer_qp);
	if (!IS_ERR_OR_NULL(p->cq))
		ib_destroy_cq(p->cq);
	if (!IS_ERR_OR_NULL(p->peer_cq))
		ib_destroy_cq(p->peer_cq);
	if (!IS_ERR_OR_NULL(p->peer_pd))
		ib_dealloc_pd(p->peer_pd);
	free_page((unsigned long)p->buf);
	*p = (struct pair){};
}

/*
 * When its NIC is down, 6.1's rxe cannot send the answer to a READ and forgets that it was the
 * first packet of it. The requester finds what comes at its next try out of place, which breaks the
 * queue pair, warns (check_ack() and COMPST_ERROR in rxe_comp.c), and completes with success. So
 * one that brought nothing, or no more from some byte on, failed when its queue pair is broken.
 */
static bool unanswered(struct pair *p, u32 len)
{
	const u8 *from = memchr_inv(p->buf, 1, len);
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	int tries;

	if (!from || memchr_inv(from, 0, p->buf + len - from))
		return false;
	for (tries = 0; tries < 100; tries++) {
		if (!ib_query_qp(p->peer_qp, &attr, IB_QP_STATE, &init) &&
		    attr.qp_state == IB_QPS_ERR)
			return true;
		usleep_range(1000, 2000);
	}
	return false;
}

/* The peer reads. A request that was posted is waited for: a queue pair that breaks flushes it. */
enum ib_wc_status pair_read(struct pair *p, u32 key, u64 iova, u32 len)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)p->buf, .length = len, .lkey = p->peer_pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.opcode = IB_WR_RDMA_READ, .send_flags = IB_SEND_SIGNALED,
			.sg_list = &sge, .num_sge = 1,
		},
		.remote_addr = iova, .rkey = key,
	};
	unsigned long deadline = jiffies + 60 * HZ;
	struct ib_wc wc;

	memset(p->buf, 0, len);
	if (ib_post_send(p->peer_qp, &wr.wr, NULL))
		return IB_WC_GENERAL_ERR;
	while (ib_poll_cq(p->peer_cq, 1, &wc) != 1) {
		if (time_after(jiffies, deadline)) {
			wrong("a READ does not complete", 0);
			return IB_WC_GENERAL_ERR;
		}
		usleep_range(20, 100);
	}
	if (wc.status == IB_WC_SUCCESS && unanswered(p, len))
		return IB_WC_RESP_TIMEOUT_ERR;
	return wc.status;
}

struct grant {
	u32 rkey;
	u64 iova;
	bool armed;
};

/*
 * On 6.1 a READ that was let in when its FMR or window was withdrawn is answered with what the
 * driver's packet buffer holds (docs/limits.md). Only the device's end withdraws those of a set.
 */
static bool cut_short(struct set *s, bool armed)
{
	struct ib_mr_attr attr;

	return armed && ib_query_mr(s->kernel, &attr) == -ENODEV;
}

/* Ends by itself when the connection does: the device goes, or its address. */
static int traffic_thread(void *arg)
{
	struct set *s = arg;
	const struct grant keys[] = {
		{ s->kernel->rkey, s->kernel->iova }, { s->phys->rkey, s->phys->iova },
		{ s->user->rkey, s->user->iova }, { s->dma->rkey, s->list[0] },
		{ s->fmr->rkey, 0, true }, { s->pf->fmr->rkey, 0, true },
		{ s->mw->rkey, s->phys->iova, true },
	};
	unsigned int n = 0;

	while (!kthread_should_stop()) {
		const struct grant *k = &keys[n++ % ARRAY_SIZE(keys)];
		enum ib_wc_status status = pair_read(&s->pair, k->rkey, k->iova, PAGE_SIZE);
		const u8 *other;

		if (status != IB_WC_SUCCESS)
			break;
		other = memchr_inv(s->pair.buf, 1, PAGE_SIZE);
		if (!other) {
			atomic_inc(&removal_reads);
		} else if (!cut_short(s, k->armed)) {
			wrong("bytes read by the key of object", k - keys);
			pr_err("from byte %td on, %#x\n", other - s->pair.buf, *other);
		}
	}
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

static int churn_thread(void *arg)
{
	struct set *s = arg;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, s->seed ^ (current == s->churn[0] ? 0 : 0x55555555));
	while (!kthread_should_stop()) {
		objects_churn(s, prandom_u32_state(&rnd));
		cond_resched();
	}
	return 0;
}

int threads_start(struct set *s)
{
	struct task_struct *t;
	int i;

	for (i = 0; i <= CHURNS; i++) {
		t = kthread_create(i < CHURNS ? churn_thread : traffic_thread, s, "removal/%d", i);
		if (IS_ERR(t))
			return PTR_ERR(t);
		get_task_struct(t);
		if (i < CHURNS) {
			kthread_bind(t, i % num_online_cpus());
			s->churn[i] = t;
		} else {
			s->traffic = t;
		}
		wake_up_process(t);
	}
	return 0;
}

static void stop(struct task_struct **t)
{
	if (!*t)
		return;
	kthread_stop(*t);
	put_task_struct(*t);
	*t = NULL;
}

void threads_stop(struct set *s)
{
	int i;

	for (i = 0; i < CHURNS; i++)
		stop(&s->churn[i]);
	stop(&s->traffic);
}
