// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * SDP zero copy, as of 3.8: a pool with cache that peers may only read, mapped in process context
 * at iova 0; and what goes out as the rkey is the FMR's lkey.
 */
#include <linux/completion.h>
#include <linux/slab.h>
#include <rdma/ib_fmr_pool.h>
#include <rdma/ib_verbs.h>

#include "station.h"

#define ME	"SDP"
#define PAGES	20
#define ROUNDS	8

struct sdp {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_mr *mr;
	struct ib_fmr_pool *fmr_pool;
	struct data *data;
	struct station st;
	struct completion replied;
	struct reply reply;
};

static struct ib_client sdp_client;

static void sdp_cq(struct ib_cq *cq, void *context)
{
	struct sdp *sdp = context;
	struct ib_wc wc;

	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	while (ib_poll_cq(cq, 1, &wc) > 0)
		if (station_reply(&sdp->st, &wc, &sdp->reply))
			complete(&sdp->replied);
}

/* SrcAvail: the peer reads. */
static s64 sdp_src_avail(struct sdp *sdp, u32 rkey, u32 len, u32 seed)
{
	int err;

	reinit_completion(&sdp->replied);
	err = station_send(&sdp->st, ORDER_READ, rkey, 0, len, seed, 0, NULL);
	if (err)
		return err;
	return wait_for_completion_timeout(&sdp->replied, PATIENCE) ? sdp->reply.wrong :
								     -ETIMEDOUT;
}

static void sdp_run(struct sdp *sdp)
{
	unsigned int i, written = 0, keys = 0;
	struct ib_pool_fmr *fmr;
	u64 iova = 0;
	u32 last = 0;
	s64 wrong = 0;
	int err = 0;

	for (i = 0; i < ROUNDS && !err; i++) {
		data_fill(sdp->data, 0, PAGES * PAGE_SIZE, i);
		fmr = ib_fmr_pool_map_phys(sdp->fmr_pool, sdp->data->list, PAGES - i / 4, 0);
		err = PTR_ERR_OR_ZERO(fmr);
		if (err)
			break;
		keys += fmr->fmr->lkey != last;
		last = fmr->fmr->lkey;
		wrong += sdp_src_avail(sdp, fmr->fmr->lkey, (PAGES - i / 4) * PAGE_SIZE, i);
		written += probe(sdp->pd, true, fmr->fmr->lkey, 0, 8) != IB_WC_REM_ACCESS_ERR;
		ib_fmr_pool_unmap(fmr);
	}
	verdict(ME, "the lkey as the rkey, read at iova 0", !err && !wrong, "%d; %lld bytes wrong",
		err, wrong);
	verdict(ME, "8 rounds over 2 lists: 2 keys; none can be written by", !written && keys == 2,
		"%u keys, %u writes", keys, written);

	/* As it was called up to 2.6.17 or so. */
	fmr = ib_fmr_pool_map_phys(sdp->fmr_pool, sdp->data->list, 1, &iova);
	err = PTR_ERR_OR_ZERO(fmr);
	if (!err) {
		wrong = sdp_src_avail(sdp, fmr->fmr->rkey, PAGE_SIZE, ROUNDS - 1);
		ib_fmr_pool_unmap(fmr);
	}
	verdict(ME, "the iova behind a pointer", !err && !wrong, "%d; %lld bytes wrong", err,
		wrong);
}

static void sdp_add_one(struct ib_device *device)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = 256,
		.page_shift = PAGE_SHIFT,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ,
		.pool_size = 16,
		.dirty_watermark = 4,
		.cache = 1,
	};
	struct sdp *sdp = kzalloc(sizeof(*sdp), GFP_KERNEL);
	int err = -ENOMEM;

	if (!sdp)
		return;
	sdp->device = device;
	init_completion(&sdp->replied);
	ib_set_client_data(device, &sdp_client, sdp);
	sdp->data = data_alloc(device, PAGES);
	sdp->pd = ib_alloc_pd(device);
	if (!sdp->data || IS_ERR(sdp->pd))
		goto out;
	sdp->mr = ib_get_dma_mr(sdp->pd, IB_ACCESS_LOCAL_WRITE);
	sdp->fmr_pool = ib_create_fmr_pool(sdp->pd, &param);
	err = IS_ERR(sdp->mr) ? PTR_ERR(sdp->mr) : PTR_ERR_OR_ZERO(sdp->fmr_pool);
	if (!err)
		err = station_alloc(&sdp->st, device, sdp->pd);
	if (!err)
		err = station_open(&sdp->st, sdp->mr->lkey, sdp_cq, sdp);
out:
	verdict(ME, "set up", !err, "%d", err);
	if (!err)
		sdp_run(sdp);
}

static void sdp_remove_one(struct ib_device *device)
{
	struct sdp *sdp = ib_get_client_data(device, &sdp_client);
	int err[2];

	if (!sdp)
		return;
	if (!IS_ERR_OR_NULL(sdp->fmr_pool))
		ib_destroy_fmr_pool(sdp->fmr_pool);
	station_close(&sdp->st);
	err[0] = ib_dereg_mr(sdp->mr);
	err[1] = ib_dealloc_pd(sdp->pd);
	data_free(sdp->data);
	verdict(ME, "pool, MR and PD go", !err[0] && !err[1], "%d %d", err[0], err[1]);
	kfree(sdp);
}

static struct ib_client sdp_client = {
	.name = "classic_sdp",
	.add = sdp_add_one,
	.remove = sdp_remove_one,
};

int sdp_init(void)
{
	return ib_register_client(&sdp_client);
}

void sdp_exit(void)
{
	ib_unregister_client(&sdp_client);
}
