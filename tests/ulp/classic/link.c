// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The peer, and the stranger. Written for today's kernel, and compiled through the classic header
 * all the same: what is new goes through it unchanged.
 *
 * The peer is a thread that takes one order after the other, so that what it does is simple; what
 * is under test is the other end. It reaches its own memory by its domain's key of all memory, so
 * whatever is refused is refused for the ULP's key.
 *
 * Time-outs are long, since a slow machine is no lost packet.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/stdarg.h>
#include <linux/wait.h>
#include <rdma/ib_cache.h>

#include "link.h"

#define PIECE		SZ_64K
#define SLOT_SIZE	(sizeof(struct order) + LINK_INLINE)

struct slot {
	struct ib_cqe cqe;
	struct list_head entry;
	struct link *link;
	struct order *order;
	u32 bytes;
};

struct link {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct task_struct *thread;
	spinlock_t lock;
	struct list_head todo;
	wait_queue_head_t wait;
	u8 *recv, *buf, *mem;
	struct ib_mr *mem_mr;
	struct reply *reply;
	struct slot slot[LINK_DEPTH];
	/* the thread's operation */
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

/* --- queue pairs --- */

/* Loopback on soft RoCE: any GID will do, and a kernel user fills in its MAC himself. */
static int own_address(struct ib_device *device, struct rdma_ah_attr *ah, u32 port)
{
	const struct ib_gid_attr *gid;
	struct ib_port_attr attr;
	union ib_gid dgid;
	int i, err;

	err = ib_query_port(device, port, &attr);
	if (err)
		return err;
	ah->type = rdma_ah_find_type(device, port);
	rdma_ah_set_port_num(ah, port);
	for (i = 0; i < attr.gid_tbl_len; i++) {
		gid = rdma_get_gid_attr(device, port, i);
		if (IS_ERR(gid))
			continue;
		err = rdma_read_gid_l2_fields(gid, NULL, ah->roce.dmac);
		dgid = gid->gid;
		rdma_put_gid_attr(gid);
		if (err)
			continue;
		rdma_ah_set_grh(ah, &dgid, 0, i, 64, 0);
		return 0;
	}
	return -EADDRNOTAVAIL;
}

static int connect(struct ib_qp *qp, u32 peer, u32 sq_psn, u32 rq_psn)
{
	u32 port = rdma_start_port(qp->device);
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = port,
		.qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
				   IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC,
	};
	int err;

	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			   IB_QP_ACCESS_FLAGS);
	if (err)
		return err;
	attr = (struct ib_qp_attr){
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = peer,
		.rq_psn = rq_psn,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
	};
	err = own_address(qp->device, &attr.ah_attr, port);
	if (err)
		return err;
	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			   IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (err)
		return err;
	attr = (struct ib_qp_attr){
		.qp_state = IB_QPS_RTS,
		.sq_psn = sq_psn,
		.timeout = 19,
		.retry_cnt = 5,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

static int connect_both(struct ib_qp *a, struct ib_qp *b)
{
	u32 psn_a = get_random_u32() & 0xffffff, psn_b = get_random_u32() & 0xffffff;
	int err = connect(a, b->qp_num, psn_a, psn_b);

	return err ? err : connect(b, a->qp_num, psn_b, psn_a);
}

static struct ib_qp *make_qp(struct ib_pd *pd, struct ib_cq *cq, unsigned int recvs)
{
	struct ib_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = {
			.max_send_wr = 8, .max_recv_wr = recvs,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};

	return ib_create_qp(pd, &init);
}

/* --- the peer --- */

static void op_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct link *link = container_of(wc->wr_cqe, struct link, cqe);

	link->status = wc->status;
	complete(&link->done);
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct slot *slot = container_of(wc->wr_cqe, struct slot, cqe);
	struct link *link = slot->link;

	if (wc->status != IB_WC_SUCCESS)
		return;
	slot->bytes = wc->byte_len;
	spin_lock(&link->lock);
	list_add_tail(&slot->entry, &link->todo);
	spin_unlock(&link->lock);
	wake_up(&link->wait);
}

static int post_slot(struct slot *slot)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)slot->order, .length = SLOT_SIZE,
		.lkey = slot->link->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &slot->cqe, .sg_list = &sge, .num_sge = 1 };

	slot->cqe.done = recv_done;
	return ib_post_recv(slot->link->qp, &wr, NULL);
}

static enum ib_wc_status do_op(struct link *link, enum ib_wr_opcode opcode, void *local, u32 len,
			       u64 addr, u32 rkey)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)local, .length = len, .lkey = link->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = { .wr_cqe = &link->cqe, .opcode = opcode, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = addr,
		.rkey = rkey,
	};

	reinit_completion(&link->done);
	if (ib_post_send(link->qp, &wr.wr, NULL))
		return IB_WC_GENERAL_ERR;
	wait_for_completion(&link->done);
	return link->status;
}

static u32 compare(const u8 *bytes, u32 seed, u32 off, u32 len)
{
	u32 i, wrong = 0;

	for (i = 0; i < len; i++)
		wrong += bytes[i] != pattern(seed, off + i);
	return wrong;
}

static void fill(u8 *bytes, u32 seed, u32 off, u32 len)
{
	u32 i;

	for (i = 0; i < len; i++)
		bytes[i] = pattern(seed, off + i);
}

static u32 move_data(struct link *link, const struct order *o)
{
	bool write = o->op == ORDER_WRITE;
	enum ib_wc_status status;
	u32 off, len, wrong = 0;

	for (off = 0; off < o->len; off += len) {
		len = min_t(u32, o->len - off, PIECE);
		if (write)
			fill(link->buf, o->seed, off, len);
		else
			memset(link->buf, ~pattern(o->seed, off), len);
		status = do_op(link, write ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ, link->buf, len,
			       o->addr + off, o->rkey);
		if (status != IB_WC_SUCCESS) {
			pr_info("link: the peer's RDMA failed: %s\n", ib_wc_status_msg(status));
			return U32_MAX;
		}
		if (!write)
			wrong += compare(link->buf, o->seed, off, len);
	}
	return wrong;
}

static void obey(struct link *link, struct slot *slot)
{
	struct order o = *slot->order;
	u32 wrong = 0;

	switch (o.op) {
	case ORDER_READ:
	case ORDER_WRITE:
		wrong = move_data(link, &o);
		break;
	case ORDER_DATA:
		wrong = slot->bytes != sizeof(o) + o.len ? U32_MAX :
			compare((u8 *)(slot->order + 1), o.seed, 0, o.len);
		break;
	case ORDER_CHECK:
		wrong = compare(link->mem, o.seed, 0, o.len);
		break;
	case ORDER_FILL:
		fill(link->mem, o.seed, 0, o.len);
		break;
	}
	link->reply->cookie = o.cookie;
	link->reply->wrong = wrong;
	if (!post_slot(slot))
		do_op(link, IB_WR_SEND, link->reply, sizeof(*link->reply), 0, 0);
}

static struct slot *next_slot(struct link *link)
{
	struct slot *slot;

	spin_lock_bh(&link->lock);
	slot = list_first_entry_or_null(&link->todo, struct slot, entry);
	if (slot)
		list_del(&slot->entry);
	spin_unlock_bh(&link->lock);
	return slot;
}

static int peer(void *arg)
{
	struct link *link = arg;
	struct slot *slot;

	while (!kthread_should_stop()) {
		slot = next_slot(link);
		if (slot)
			obey(link, slot);
		else
			wait_event_interruptible(link->wait, !list_empty(&link->todo) ||
						 kthread_should_stop());
	}
	return 0;
}

static int link_start(struct link *link, struct ib_qp *qp)
{
	int i, err;

	link->recv = alloc_pages_exact(LINK_DEPTH * SLOT_SIZE, GFP_KERNEL);
	link->buf = alloc_pages_exact(PIECE, GFP_KERNEL);
	link->mem = alloc_pages_exact(LINK_MEM, GFP_KERNEL | __GFP_ZERO);
	link->reply = kzalloc(sizeof(*link->reply), GFP_KERNEL);
	if (!link->recv || !link->buf || !link->mem || !link->reply)
		return -ENOMEM;
	link->pd = ib_alloc_pd(link->device, 0);
	if (IS_ERR(link->pd))
		return PTR_ERR(link->pd);
	link->mem_mr = ib_mr_reg_kernel(link->pd, link->mem, LINK_MEM, IB_ACCESS_LOCAL_WRITE |
					IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE |
					IB_ACCESS_REMOTE_ATOMIC, NULL);
	if (IS_ERR(link->mem_mr))
		return PTR_ERR(link->mem_mr);
	link->cq = ib_alloc_cq(link->device, link, 4 * LINK_DEPTH, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(link->cq))
		return PTR_ERR(link->cq);
	link->qp = make_qp(link->pd, link->cq, LINK_DEPTH);
	if (IS_ERR(link->qp))
		return PTR_ERR(link->qp);
	err = connect_both(link->qp, qp);
	for (i = 0; i < LINK_DEPTH && !err; i++) {
		link->slot[i].link = link;
		link->slot[i].order = (void *)(link->recv + i * SLOT_SIZE);
		err = post_slot(&link->slot[i]);
	}
	if (err)
		return err;
	link->thread = kthread_run(peer, link, "classic_peer");
	return PTR_ERR_OR_ZERO(link->thread);
}

struct link *link_open(struct ib_qp *qp)
{
	struct link *link = kzalloc(sizeof(*link), GFP_KERNEL);
	int err;

	if (!link)
		return ERR_PTR(-ENOMEM);
	link->device = qp->device;
	link->cqe.done = op_done;
	init_completion(&link->done);
	init_waitqueue_head(&link->wait);
	spin_lock_init(&link->lock);
	INIT_LIST_HEAD(&link->todo);
	err = link_start(link, qp);
	if (!err)
		return link;
	link_close(link);
	return ERR_PTR(err);
}

void link_close(struct link *link)
{
	if (!IS_ERR_OR_NULL(link->thread))
		kthread_stop(link->thread);
	if (!IS_ERR_OR_NULL(link->qp)) {
		ib_drain_qp(link->qp);
		/* 6.1's softirq may still be at the tasks of either queue pair. */
		synchronize_rcu_expedited();
		ib_destroy_qp(link->qp);
	}
	if (!IS_ERR_OR_NULL(link->cq))
		ib_free_cq(link->cq);
	if (!IS_ERR_OR_NULL(link->mem_mr))
		ib_dereg_mr(link->mem_mr);
	if (!IS_ERR_OR_NULL(link->pd))
		ib_dealloc_pd(link->pd);
	kfree(link->reply);
	if (link->mem)
		free_pages_exact(link->mem, LINK_MEM);
	if (link->buf)
		free_pages_exact(link->buf, PIECE);
	if (link->recv)
		free_pages_exact(link->recv, LINK_DEPTH * SLOT_SIZE);
	kfree(link);
}

u64 link_addr(const struct link *link)
{
	return link->mem_mr->iova;
}

u32 link_rkey(const struct link *link)
{
	return link->mem_mr->rkey;
}

/* --- the stranger --- */

static enum ib_wc_status one_op(struct ib_qp *qp, bool write, void *buf, u32 rkey, u64 addr,
				u32 len)
{
	unsigned long end = jiffies + 20 * HZ;
	struct ib_sge sge = {
		.addr = (uintptr_t)buf, .length = len, .lkey = qp->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.opcode = write ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ,
			.sg_list = &sge, .num_sge = 1,
		},
		.remote_addr = addr,
		.rkey = rkey,
	};
	struct ib_wc wc;

	if (ib_post_send(qp, &wr.wr, NULL))
		return IB_WC_GENERAL_ERR;
	while (ib_poll_cq(qp->send_cq, 1, &wc) < 1) {
		if (time_after(jiffies, end))
			return IB_WC_RESP_TIMEOUT_ERR;
		usleep_range(20, 100);
	}
	return wc.status;
}

enum ib_wc_status probe(struct ib_pd *pd, bool write, u32 rkey, u64 addr, u32 len)
{
	struct ib_pd *own = ib_alloc_pd(pd->device, 0);
	struct ib_cq *cq = ib_alloc_cq(pd->device, NULL, 16, 0, IB_POLL_DIRECT);
	struct ib_qp *a = ERR_PTR(-EIO), *b = ERR_PTR(-EIO);
	void *buf = (void *)get_zeroed_page(GFP_KERNEL);
	enum ib_wc_status status = IB_WC_GENERAL_ERR;

	if (!IS_ERR(own) && !IS_ERR(cq) && buf) {
		a = make_qp(own, cq, 1);
		b = make_qp(pd, cq, 1);
	}
	if (!IS_ERR(a) && !IS_ERR(b) && !connect_both(a, b))
		status = one_op(a, write, buf, rkey, addr, min_t(u32, len, PAGE_SIZE));
	synchronize_rcu_expedited();
	if (!IS_ERR(a))
		ib_destroy_qp(a);
	if (!IS_ERR(b))
		ib_destroy_qp(b);
	if (!IS_ERR(cq))
		ib_free_cq(cq);
	if (!IS_ERR(own))
		ib_dealloc_pd(own);
	free_page((unsigned long)buf);
	return status;
}

/* --- the table --- */

void verdict(const char *consumer, const char *step, bool right, const char *fmt, ...)
{
	struct va_format detail = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	detail.va = &args;
	pr_info("classic: %s\t%s\t%s\t%pV\n", right ? "right" : "WRONG", consumer, step, &detail);
	va_end(args);
}
