// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A vendor's test of the kernel verbs, as of 4.1: what no ULP ever called, but the contract has.
 * ib_query_mr() and ib_rereg_phys_mr(), and a type 2 window that is bound by IB_WR_BIND_MW in a
 * chain with the SEND that tells of its key, and invalidated by IB_WR_LOCAL_INV.
 */
#include <linux/completion.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "station.h"

#define ME	"kernel verbs"
#define ALL	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)
#define WR_ID	1000

struct kverbs {
	struct ib_device *device;
	struct ib_pd *pd, *other_pd;
	struct ib_mr *mr;
	struct data *data;
	struct station st;
	struct completion replied, done;
	struct reply reply;
	struct ib_wc wc[2];
};

static struct ib_client kverbs_client;

static void kverbs_comp(struct ib_cq *cq, void *context)
{
	struct kverbs *k = context;
	struct ib_wc wc;

	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	while (ib_poll_cq(cq, 1, &wc) > 0) {
		if (wc.wr_id >= WR_ID && wc.wr_id < WR_ID + 2) {
			k->wc[wc.wr_id - WR_ID] = wc;
			complete(&k->done);
		} else if (station_reply(&k->st, &wc, &k->reply)) {
			complete(&k->replied);
		}
	}
}

static s64 kverbs_order(struct kverbs *k, enum order_op op, u32 rkey, u64 addr, u32 len, u32 seed)
{
	int err;

	reinit_completion(&k->replied);
	err = station_send(&k->st, op, rkey, addr, len, seed, 0, NULL);
	if (err)
		return err;
	return wait_for_completion_timeout(&k->replied, PATIENCE) ? k->reply.wrong : -ETIMEDOUT;
}

static void kverbs_query_rereg(struct kverbs *k)
{
	struct ib_phys_buf buf[2] = {
		{ .addr = k->data->list[0], .size = PAGE_SIZE },
		{ .addr = k->data->list[1], .size = 100 },
	};
	u64 iova = 0x10000, old_iova = iova;
	struct ib_mr_attr attr;
	struct ib_mr *mr = ib_reg_phys_mr(k->pd, buf, 2, ALL, &iova);
	int err = PTR_ERR_OR_ZERO(mr);
	u32 old_key;
	s64 wrong;
	bool same;

	if (err) {
		verdict(ME, "ib_query_mr", false, "%d", err);
		return;
	}
	err = ib_query_mr(mr, &attr);
	same = attr.pd == k->pd && attr.device_virt_addr == iova && attr.size == PAGE_SIZE + 100 &&
	       attr.mr_access_flags == ALL && attr.lkey == mr->lkey && attr.rkey == mr->rkey;
	verdict(ME, "ib_query_mr: all six fields", !err && same, "%d", err);

	old_key = mr->rkey;
	buf[0].addr = k->data->list[2];
	iova = 0x20000;
	err = ib_rereg_phys_mr(mr, IB_MR_REREG_TRANS | IB_MR_REREG_ACCESS, NULL, buf, 1,
			       IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ, &iova);
	data_fill(k->data, 2 * PAGE_SIZE, PAGE_SIZE, 21);
	wrong = kverbs_order(k, ORDER_READ, mr->rkey, iova, PAGE_SIZE, 21);
	verdict(ME, "ib_rereg_phys_mr: other memory, another iova, less rights", !err && !wrong &&
		refused(k->pd, old_key, old_iova) &&
		probe(k->pd, true, mr->rkey, iova, 8) == IB_WC_REM_ACCESS_ERR,
		"%d; %lld bytes wrong", err, wrong);
	err = ib_rereg_phys_mr(mr, IB_MR_REREG_ACCESS, NULL, NULL, 0, IB_ACCESS_REMOTE_WRITE, NULL);
	wrong = kverbs_order(k, ORDER_READ, mr->rkey, iova, PAGE_SIZE, 21);
	verdict(ME, "refused, it leaves the region as it was", err == -EINVAL && !wrong,
		"%d; %lld bytes wrong", err, wrong);
	err = ib_rereg_phys_mr(mr, IB_MR_REREG_PD, k->other_pd, NULL, 0, 0, NULL);
	verdict(ME, "moved to another PD, it opens to no queue pair of the first", !err &&
		open_to(k->other_pd, mr->rkey, iova) && refused(k->pd, mr->rkey, iova), "%d",
		err);
	err = ib_dereg_mr(mr);
	verdict(ME, "and goes", !err && !ib_dealloc_pd(k->other_pd), "%d", err);
}

/* BIND_MW and a SEND in one list; the SEND has the key that mw->rkey is to become. */
static int kverbs_post_bind(struct kverbs *k, struct ib_mw *mw, u64 addr, u32 len)
{
	struct ib_sge sge = {
		.addr = k->st.dma, .length = sizeof(struct order), .lkey = k->st.lkey,
	};
	struct ib_send_wr send = {
		.wr_id = 0, .opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
	};
	struct ib_send_wr bind = {
		.wr_id = WR_ID, .opcode = IB_WR_BIND_MW, .send_flags = IB_SEND_SIGNALED,
		.next = &send,
	};
	struct ib_send_wr *bad_wr = NULL;

	bind.wr.bind_mw.mw = mw;
	bind.wr.bind_mw.rkey = ib_inc_rkey(mw->rkey);
	bind.wr.bind_mw.bind_info.mr = k->mr;
	bind.wr.bind_mw.bind_info.addr = addr;
	bind.wr.bind_mw.bind_info.length = len;
	bind.wr.bind_mw.bind_info.mw_access_flags = IB_ACCESS_REMOTE_READ;
	*station_order(&k->st, 0) = (struct order){ .op = ORDER_CHECK };
	reinit_completion(&k->replied);
	reinit_completion(&k->done);
	return ib_post_send(k->st.qp, &bind, &bad_wr);
}

static void kverbs_type2(struct kverbs *k)
{
	struct ib_mw *mw = ib_alloc_mw(k->pd, IB_MW_TYPE_2);
	struct ib_send_wr inv = {
		.wr_id = WR_ID + 1, .opcode = IB_WR_LOCAL_INV, .send_flags = IB_SEND_SIGNALED,
	};
	struct ib_send_wr *bad_wr = NULL;
	u64 addr = k->data->list[0] + 64;
	int err = PTR_ERR_OR_ZERO(mw), again;
	s64 wrong;
	u32 key;

	if (err) {
		verdict(ME, "type 2 window", false, "%d", err);
		return;
	}
	data_fill(k->data, 64, 1000, 31);
	err = kverbs_post_bind(k, mw, addr, 1000);
	key = mw->rkey;
	if (!err && !wait_for_completion_timeout(&k->done, PATIENCE))
		err = -ETIMEDOUT;
	if (!err && !wait_for_completion_timeout(&k->replied, PATIENCE))
		err = -ETIMEDOUT;
	wrong = kverbs_order(k, ORDER_READ, key, addr, 1000, 31);
	verdict(ME, "IB_WR_BIND_MW in a list with a SEND; IB_WC_BIND_MW; read", !err && !wrong &&
		!k->wc[0].status && k->wc[0].opcode == IB_WC_BIND_MW, "%d; %lld bytes wrong", err,
		wrong);
	again = kverbs_post_bind(k, mw, addr, 500);
	reinit_completion(&k->done);
	inv.ex.invalidate_rkey = key;
	err = ib_post_send(k->st.qp, &inv, &bad_wr);
	if (!err && !wait_for_completion_timeout(&k->done, PATIENCE))
		err = -ETIMEDOUT;
	if (!err)
		err = k->wc[1].status ? : ib_mr_invalidated(k->pd, key);
	verdict(ME, "bound twice it is refused; invalidated its key is dead", again == -EINVAL &&
		!err && refused(k->pd, key, addr), "%d, %d", again, err);
	err = kverbs_post_bind(k, mw, addr, 500);
	if (!err && !wait_for_completion_timeout(&k->replied, PATIENCE))
		err = -ETIMEDOUT;
	verdict(ME, "free again it is bound again, exact to the byte", !err &&
		open_to(k->pd, mw->rkey, addr + 492) && refused(k->pd, mw->rkey, addr + 493), "%d",
		err);
	err = ib_dealloc_mw(mw);
	verdict(ME, "bound, it is freed", !err, "%d", err);
}

static void kverbs_add(struct ib_device *device)
{
	struct kverbs *k = kzalloc(sizeof(*k), GFP_KERNEL);
	struct ib_phys_buf buf = { .size = PAGE_SIZE };
	int err = -ENOMEM;

	if (!k)
		return;
	k->device = device;
	init_completion(&k->replied);
	init_completion(&k->done);
	ib_set_client_data(device, &kverbs_client, k);
	k->data = data_alloc(device, 4);
	k->pd = ib_alloc_pd(device);
	k->other_pd = ib_alloc_pd(device);
	if (!k->data || IS_ERR(k->pd) || IS_ERR(k->other_pd))
		goto out;
	buf.addr = k->data->list[0];
	k->mr = ib_reg_phys_mr(k->pd, &buf, 1, ALL | IB_ACCESS_MW_BIND, &buf.addr);
	err = IS_ERR(k->mr) ? PTR_ERR(k->mr) : station_alloc(&k->st, device, k->pd);
	if (!err)
		err = station_open(&k->st, k->pd->local_dma_lkey, kverbs_comp, k);
out:
	verdict(ME, "set up", !err, "%d", err);
	if (err)
		return;
	kverbs_query_rereg(k);
	kverbs_type2(k);
}

static void kverbs_remove(struct ib_device *device)
{
	struct kverbs *k = ib_get_client_data(device, &kverbs_client);
	int err[2];

	if (!k)
		return;
	station_close(&k->st);
	err[0] = ib_dereg_mr(k->mr);
	err[1] = ib_dealloc_pd(k->pd);
	data_free(k->data);
	verdict(ME, "region and PD go", !err[0] && !err[1], "%d %d", err[0], err[1]);
	kfree(k);
}

static struct ib_client kverbs_client = {
	.name = "classic_kverbs",
	.add = kverbs_add,
	.remove = kverbs_remove,
};

int kverbs_init(void)
{
	return ib_register_client(&kverbs_client);
}

void kverbs_exit(void)
{
	ib_unregister_client(&kverbs_client);
}
