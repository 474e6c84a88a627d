// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Those that took ib_get_dma_mr() and nothing else, as of 4.8, its last kernel: a local key for
 * everything that is sent and received (IPoIB, the MAD layer, 9p, svcrdma, isert, srpt: the latter
 * three also do RDMA of their own with it), and a remote key that is given away with a DMA address
 * (kibpingpong, LITE, Infiniswap).
 */
#include <linux/completion.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "station.h"

#define ME	"DMA MR"
#define PAGES	4
#define WR_ID	1000

struct dmamr {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_mr *local;
	struct ib_mr *remote;
	struct data *data;
	struct station st;
	struct completion replied, rdma_done;
	struct reply reply;
	enum ib_wc_status status;
};

static struct ib_client dmamr_client;

static void dmamr_comp(struct ib_cq *cq, void *context)
{
	struct dmamr *d = context;
	struct ib_wc wc[4];
	int i, n;

	do {
		while ((n = ib_poll_cq(cq, ARRAY_SIZE(wc), wc)) > 0)
			for (i = 0; i < n; i++) {
				if (wc[i].wr_id == WR_ID) {
					d->status = wc[i].status;
					complete(&d->rdma_done);
				} else if (station_reply(&d->st, &wc[i], &d->reply)) {
					complete(&d->replied);
				}
			}
	} while (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0);
}

static s64 dmamr_order(struct dmamr *d, enum order_op op, u32 rkey, u64 addr, u32 len, u32 seed,
		       struct ib_sge *data)
{
	int err;

	reinit_completion(&d->replied);
	err = station_send(&d->st, op, rkey, addr, len, seed, 0, data);
	if (err)
		return err;
	return wait_for_completion_timeout(&d->replied, PATIENCE) ? d->reply.wrong : -ETIMEDOUT;
}

static void dmamr_send(struct dmamr *d)
{
	struct ib_sge sge = { .addr = d->data->list[1], .length = PAGE_SIZE,
			      .lkey = d->local->lkey };
	s64 wrong;

	data_fill(d->data, PAGE_SIZE, PAGE_SIZE, 6);
	wrong = dmamr_order(d, ORDER_DATA, 0, 0, PAGE_SIZE, 6, &sge);
	verdict(ME, "SEND and receive by the lkey", !wrong, "%lld", wrong);
	verdict(ME, "which opens nothing to peers",
		refused(d->pd, d->local->rkey, d->data->list[1]), "rkey %#x", d->local->rkey);
}

static int dmamr_rdma(struct dmamr *d, enum ib_wr_opcode opcode)
{
	struct ib_sge sge = { .addr = d->data->list[0], .length = PAGE_SIZE,
			      .lkey = d->local->lkey };
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = WR_ID, .opcode = opcode, .sg_list = &sge, .num_sge = 1,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = link_addr(d->st.link),
		.rkey = link_rkey(d->st.link),
	};
	struct ib_send_wr *bad_wr;

	reinit_completion(&d->rdma_done);
	if (ib_post_send(d->st.qp, &wr.wr, &bad_wr) ||
	    !wait_for_completion_timeout(&d->rdma_done, PATIENCE))
		return -EIO;
	return d->status;
}

static void dmamr_target(struct dmamr *d)
{
	s64 wrong;
	int err;

	data_fill(d->data, 0, PAGE_SIZE, 11);
	err = dmamr_rdma(d, IB_WR_RDMA_WRITE);
	wrong = dmamr_order(d, ORDER_CHECK, 0, 0, PAGE_SIZE, 11, NULL);
	wrong += dmamr_order(d, ORDER_FILL, 0, 0, PAGE_SIZE, 12, NULL);
	err |= dmamr_rdma(d, IB_WR_RDMA_READ);
	wrong += data_wrong(d->data, 0, PAGE_SIZE, 12);
	verdict(ME, "a target's own RDMA READ and WRITE", !err && !wrong, "%d; %lld bytes wrong",
		err, wrong);
}

static void dmamr_give_away(struct dmamr *d)
{
	s64 wrong = 0;
	int i;

	for (i = 0; i < PAGES && !wrong; i++) {
		wrong = dmamr_order(d, ORDER_WRITE, d->remote->rkey, d->data->list[i], PAGE_SIZE, i,
				    NULL);
		wrong += data_wrong(d->data, i * PAGE_SIZE, PAGE_SIZE, i);
		wrong += dmamr_order(d, ORDER_READ, d->remote->rkey, d->data->list[i], PAGE_SIZE, i,
				     NULL);
	}
	verdict(ME, "rkey and DMA address, given away", !wrong, "%lld bytes wrong", wrong);
}

static void dmamr_add(struct ib_device *device)
{
	struct dmamr *d = kzalloc(sizeof(*d), GFP_KERNEL);
	int max_maps = device->attrs.max_map_per_fmr ? : 32;
	struct ib_mr *mr;
	int err = -ENOMEM;

	if (!d)
		return;
	d->device = device;
	init_completion(&d->replied);
	init_completion(&d->rdma_done);
	ib_set_client_data(device, &dmamr_client, d);
	d->data = data_alloc(device, PAGES);
	d->pd = ib_alloc_pd(device);
	if (!d->data || IS_ERR(d->pd))
		goto out;
	d->local = ib_get_dma_mr(d->pd, IB_ACCESS_LOCAL_WRITE);
	d->remote = ib_get_dma_mr(d->pd, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
				  IB_ACCESS_REMOTE_WRITE);
	err = IS_ERR(d->local) ? PTR_ERR(d->local) : PTR_ERR_OR_ZERO(d->remote);
	if (!err)
		err = station_alloc(&d->st, device, d->pd);
	if (!err)
		err = station_open(&d->st, d->local->lkey, dmamr_comp, d);
out:
	verdict(ME, "set up; attrs.max_fmr and .max_map_per_fmr", !err &&
		device->attrs.max_fmr > 0 && max_maps == 32767, "%d; %d, %d", err,
		device->attrs.max_fmr, max_maps);
	if (err)
		return;
	dmamr_send(d);
	dmamr_target(d);
	dmamr_give_away(d);
	mr = ib_get_dma_mr(d->pd, IB_ACCESS_REMOTE_WRITE);
	verdict(ME, "remote write without local write: -EINVAL since 3.14",
		PTR_ERR_OR_ZERO(mr) == -EINVAL, "%d", (int)PTR_ERR_OR_ZERO(mr));
}

static void dmamr_remove(struct ib_device *device, void *client_data)
{
	struct dmamr *d = client_data;
	int err[3];
	u32 key;

	if (!d)
		return;
	key = d->remote->rkey;
	err[0] = ib_dereg_mr(d->remote);
	verdict(ME, "deregistered, its key is dead",
		!err[0] && refused(d->pd, key, d->data->list[0]), "%d", err[0]);
	err[0] = station_close(&d->st);
	err[1] = ib_dereg_mr(d->local);
	ib_dealloc_pd(d->pd);
	data_free(d->data);
	verdict(ME, "CQ and MR go", !err[0] && !err[1], "%d %d", err[0], err[1]);
	kfree(d);
}

static struct ib_client dmamr_client = {
	.name = "classic_dma_mr",
	.add = dmamr_add,
	.remove = dmamr_remove,
};

int dmamr_init(void)
{
	return ib_register_client(&dmamr_client);
}

void dmamr_exit(void)
{
	ib_unregister_client(&dmamr_client);
}
