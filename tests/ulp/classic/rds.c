// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * RDS, as of 3.8: FMRs of its own, mapped in process context at iova 0, remapped without an unmap;
 * the key is a cookie for user space. They are unmapped in lists by a worker, and the pages are
 * given to others right after: unmap is a fence. It also does RDMA itself, and keeps its headers in
 * coherent memory.
 */
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "station.h"

#define ME	"RDS"
#define MRS	12
#define PAGES	5
#define WR_ID	1000

struct rds_mr {
	struct ib_fmr *fmr;
	unsigned int remap_count;
	u32 cookie[3];
	struct data *data;
};

struct rds {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_mr *mr;
	struct ib_fmr_attr fmr_attr;
	int max_fmrs;
	u8 *headers;
	u64 headers_dma;
	struct station st;
	struct work_struct flush;
	struct list_head dead;
	int flushed;
	struct rds_mr rm[MRS];
	struct completion replied, rdma_done;
	struct reply reply;
	struct ib_wc wc;
};

static struct ib_client rds_client;

static void rds_completion(struct ib_cq *cq, void *context)
{
	struct rds *rds = context;
	struct ib_wc wc;

	while (ib_poll_cq(cq, 1, &wc) > 0) {
		if (wc.wr_id == WR_ID) {
			rds->wc = wc;
			complete(&rds->rdma_done);
		} else if (station_reply(&rds->st, &wc, &rds->reply)) {
			complete(&rds->replied);
		}
	}
	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	while (ib_poll_cq(cq, 1, &wc) > 0) {
		if (wc.wr_id == WR_ID) {
			rds->wc = wc;
			complete(&rds->rdma_done);
		} else if (station_reply(&rds->st, &wc, &rds->reply)) {
			complete(&rds->replied);
		}
	}
}

/* The peer does what it is told; bytes that were wrong. */
static s64 rds_order(struct rds *rds, enum order_op op, u32 rkey, u64 addr, u32 len, u32 seed)
{
	int err;

	reinit_completion(&rds->replied);
	err = station_send(&rds->st, op, rkey, addr, len, seed, 0, NULL);
	if (err)
		return err;
	if (!wait_for_completion_timeout(&rds->replied, PATIENCE))
		return -ETIMEDOUT;
	return rds->reply.wrong;
}

static int rds_map(struct rds_mr *rm, int pages)
{
	unsigned int tries = 0;
	int err;

	do
		err = ib_map_phys_fmr(rm->fmr, rm->data->list, pages, 0);
	while (station_again(err, &tries));
	if (!err)
		rm->remap_count++;
	return err;
}

/* setsockopt(RDS_GET_MR): the cookie is good at once, and the one before is not. */
static void rds_get_mr(struct rds *rds)
{
	unsigned int i, j, reused = 0;
	s64 wrong = 0;
	int err = 0;

	for (i = 0; i < MRS; i++) {
		struct rds_mr *rm = &rds->rm[i];

		data_fill(rm->data, 0, PAGES * PAGE_SIZE, i);
		for (j = 0; j < 3 && !err; j++) {
			err = rds_map(rm, PAGES);
			rm->cookie[j] = rm->fmr->rkey;
		}
		for (j = 0; j < 2; j++)
			reused += !refused(rds->pd, rm->cookie[j], 0);
		wrong += rds_order(rds, ORDER_READ, rm->cookie[2], 0, PAGES * PAGE_SIZE, i);
		wrong += rds_order(rds, ORDER_WRITE, rm->cookie[2], 0, PAGES * PAGE_SIZE, i + 50);
		wrong += data_wrong(rm->data, 0, PAGES * PAGE_SIZE, i + 50);
	}
	verdict(ME, "12 FMRs at iova 0, read and written by cookie", !err && !wrong,
		"%d; %lld bytes wrong", err, wrong);
	verdict(ME, "a remap without unmap: the old key is dead", !reused, "%u old ones work",
		reused);
}

static void rds_flush_worker(struct work_struct *work)
{
	struct rds *rds = container_of(work, struct rds, flush);

	rds->flushed = ib_unmap_fmr(&rds->dead);
}

/* Freed in an interrupt too, so the flush is a worker's. Then the pages are somebody else's. */
static void rds_flush(struct rds *rds)
{
	unsigned int i, j, open = 0;
	u32 touched = 0;

	INIT_LIST_HEAD(&rds->dead);
	for (i = 0; i < MRS; i++)
		list_add_tail(&rds->rm[i].fmr->list, &rds->dead);
	schedule_work(&rds->flush);
	flush_work(&rds->flush);
	for (i = 0; i < MRS; i++)
		data_fill(rds->rm[i].data, 0, PAGES * PAGE_SIZE, 200 + i);
	for (i = 0; i < MRS; i++)
		for (j = 0; j < 3; j++)
			open += probe(rds->pd, true, rds->rm[i].cookie[j], 0, 8) !=
				IB_WC_REM_ACCESS_ERR;
	for (i = 0; i < MRS; i++)
		touched += data_wrong(rds->rm[i].data, 0, PAGES * PAGE_SIZE, 200 + i);
	verdict(ME, "ib_unmap_fmr of a list in a worker is a fence", !rds->flushed && !open &&
		!touched, "%d; %u of %u keys open, %u bytes touched", rds->flushed, open, 3 * MRS,
		touched);
	INIT_LIST_HEAD(&rds->dead);
	i = ib_unmap_fmr(&rds->dead);
	verdict(ME, "of an empty list, and of one unmapped: 0", !i, "%d", i);
}

/* max_maps, by the driver's count, which an unmap resets. */
static void rds_max_maps(struct rds *rds)
{
	struct rds_mr *rm = &rds->rm[0];
	int i, err = 0, over;
	LIST_HEAD(list);

	list_add(&rm->fmr->list, &list);
	for (i = 0; i < rds->fmr_attr.max_maps && !err; i++)
		err = rds_map(rm, 1);
	over = ib_map_phys_fmr(rm->fmr, rm->data->list, 1, 0);
	verdict(ME, "32 maps without unmap, the next is refused", !err && over == -EINVAL,
		"%d maps: %d, then %d", i, err, over);
	over = ib_dealloc_fmr(rm->fmr);
	err = ib_unmap_fmr(&list);
	verdict(ME, "a mapped FMR is not freed; unmapped it maps again", over == -EBUSY && !err &&
		!rds_map(rm, 1) && !ib_unmap_fmr(&list),
		"%d %d", over, err);
}

static enum ib_wc_status rds_rdma(struct rds *rds, struct ib_send_wr *wr)
{
	struct ib_send_wr *failed_wr = NULL;

	wr->wr_id = WR_ID;
	wr->send_flags = IB_SEND_SIGNALED;
	reinit_completion(&rds->rdma_done);
	if (ib_post_send(rds->st.qp, wr, &failed_wr) ||
	    !wait_for_completion_timeout(&rds->rdma_done, PATIENCE))
		return IB_WC_GENERAL_ERR;
	return rds->wc.status;
}

/* RDMA and atomics of its own, by the union of old: the headers are coherent memory. */
static void rds_own_rdma(struct rds *rds)
{
	struct ib_sge sge = {
		.addr = rds->headers_dma, .length = PAGE_SIZE, .lkey = rds->mr->lkey,
	};
	struct ib_send_wr wr = { .opcode = IB_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 };
	enum ib_wc_status status[3];
	u64 *word = (u64 *)rds->headers, first;
	u32 i, wrong = 0;
	s64 peer;

	for (i = 0; i < PAGE_SIZE; i++)
		rds->headers[i] = pattern(7, i);
	wr.wr.rdma.remote_addr = link_addr(rds->st.link);
	wr.wr.rdma.rkey = link_rkey(rds->st.link);
	status[0] = rds_rdma(rds, &wr);
	peer = rds_order(rds, ORDER_CHECK, 0, 0, PAGE_SIZE, 7);

	peer |= rds_order(rds, ORDER_FILL, 0, 0, PAGE_SIZE, 9);
	wr.opcode = IB_WR_RDMA_READ;
	status[1] = rds_rdma(rds, &wr);
	for (i = 0; i < PAGE_SIZE; i++)
		wrong += rds->headers[i] != pattern(9, i);
	memcpy(&first, rds->headers, sizeof(first));

	memset(&wr.wr, 0, sizeof(wr.wr));
	wr.opcode = IB_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = link_addr(rds->st.link);
	wr.wr.atomic.rkey = link_rkey(rds->st.link);
	wr.wr.atomic.compare_add = 1;
	sge.length = sizeof(u64);
	*word = 0;
	status[2] = rds_rdma(rds, &wr);
	verdict(ME, "own WRITE, READ and FETCH_ADD, by wr.rdma, wr.atomic",
		!status[0] && !status[1] && !status[2] && !peer && !wrong && *word == first,
		"%d %d %d; wrong there %lld, here %u", status[0], status[1], status[2], peer,
		wrong);
}

static int rds_set_up(struct rds *rds)
{
	struct ib_device_attr *attr = kmalloc(sizeof(*attr), GFP_KERNEL);
	unsigned int i;
	int err;

	err = attr ? ib_query_device(rds->device, attr) : -ENOMEM;
	if (err)
		goto out;
	rds->max_fmrs = attr->max_fmr;
	rds->fmr_attr.max_pages = 256;
	rds->fmr_attr.max_maps = attr->max_map_per_fmr ? : 32;
	rds->fmr_attr.page_shift = PAGE_SHIFT;
	rds->pd = ib_alloc_pd(rds->device);
	err = PTR_ERR_OR_ZERO(rds->pd);
	if (err)
		goto out;
	rds->mr = ib_get_dma_mr(rds->pd, IB_ACCESS_LOCAL_WRITE);
	err = PTR_ERR_OR_ZERO(rds->mr);
	if (err)
		goto out;
	err = -ENOMEM;
	rds->headers = ib_dma_alloc_coherent(rds->device, PAGE_SIZE, &rds->headers_dma,
					     GFP_KERNEL);
	if (!rds->headers)
		goto out;
	for (i = 0; i < MRS; i++) {
		rds->rm[i].data = data_alloc(rds->device, PAGES);
		if (!rds->rm[i].data)
			goto out;
		rds->rm[i].fmr = ib_alloc_fmr(rds->pd, IB_ACCESS_LOCAL_WRITE |
					      IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE |
					      IB_ACCESS_REMOTE_ATOMIC, &rds->fmr_attr);
		err = PTR_ERR_OR_ZERO(rds->rm[i].fmr);
		if (err)
			goto out;
	}
	err = station_alloc(&rds->st, rds->device, rds->pd);
	if (!err)
		err = station_open(&rds->st, rds->mr->lkey, rds_completion, rds);
out:
	kfree(attr);
	return err;
}

static void rds_add_one(struct ib_device *device)
{
	struct rds *rds = kzalloc(sizeof(*rds), GFP_KERNEL);
	int err;

	if (!rds)
		return;
	rds->device = device;
	init_completion(&rds->replied);
	init_completion(&rds->rdma_done);
	INIT_WORK(&rds->flush, rds_flush_worker);
	ib_set_client_data(device, &rds_client, rds);
	err = rds_set_up(rds);
	verdict(ME, "set up, with the device's max_fmr", !err && rds->max_fmrs > MRS,
		"%d; max_fmr %d, %d maps each", err, rds->max_fmrs, rds->fmr_attr.max_maps);
	if (err)
		return;
	rds_get_mr(rds);
	rds_flush(rds);
	rds_max_maps(rds);
	rds_own_rdma(rds);
}

static void rds_remove_one(struct ib_device *device)
{
	struct rds *rds = ib_get_client_data(device, &rds_client);
	int err[2], busy, freed = 0;
	unsigned int i;

	if (!rds)
		return;
	busy = ib_dealloc_pd(rds->pd);
	for (i = 0; i < MRS; i++) {
		if (!IS_ERR_OR_NULL(rds->rm[i].fmr))
			freed |= ib_dealloc_fmr(rds->rm[i].fmr);
		data_free(rds->rm[i].data);
	}
	station_close(&rds->st);
	if (rds->headers)
		ib_dma_free_coherent(device, PAGE_SIZE, rds->headers, rds->headers_dma);
	err[0] = ib_dereg_mr(rds->mr);
	err[1] = ib_dealloc_pd(rds->pd);
	verdict(ME, "the PD is -EBUSY with FMRs, and goes without", busy == -EBUSY && !freed &&
		!err[0] && !err[1], "%d, then %d %d %d", busy, freed, err[0], err[1]);
	kfree(rds);
}

static struct ib_client rds_client = {
	.name = "classic_rds",
	.add = rds_add_one,
	.remove = rds_remove_one,
};

int rds_init(void)
{
	return ib_register_client(&rds_client);
}

void rds_exit(void)
{
	ib_unregister_client(&rds_client);
}
