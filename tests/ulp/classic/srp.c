// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * SRP initiator, as of 3.12: the largest pool that can be had, with cache; maps at iova 0 in
 * queuecommand, here with interrupts off; releases in the CQ's callback. A single page, and
 * whatever the pool refuses, goes by the DMA MR's rkey.
 */
#include <linux/completion.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_fmr_pool.h>
#include <rdma/ib_cache.h>

#include "station.h"

#define ME		"SRP"
#define CMDS		32
#define CMD_PAGES	12

struct srp_cmd {
	struct data *data;
	struct ib_pool_fmr *fmr;
	unsigned int pages;
	u32 len, wrong;
	struct completion done;
};

struct srp {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_mr *mr;
	struct ib_fmr_pool *pool;
	int max_pages;
	int page_shift;
	struct station st;
	struct srp_cmd cmd[CMDS];
	unsigned int indirect;
};

static struct ib_client srp_client;

static void srp_unmap(struct srp_cmd *cmd)
{
	if (!cmd->fmr)
		return;
	ib_fmr_pool_unmap(cmd->fmr);
	cmd->fmr = NULL;
}

static void srp_handle(struct srp *srp, struct ib_wc *wc)
{
	struct reply reply;
	struct srp_cmd *cmd;

	if (!station_reply(&srp->st, wc, &reply) || reply.cookie >= CMDS)
		return;
	cmd = &srp->cmd[reply.cookie];
	srp_unmap(cmd);
	cmd->wrong = reply.wrong;
	complete(&cmd->done);
}

static void srp_completion(struct ib_cq *cq, void *context)
{
	struct srp *srp = context;
	struct ib_wc wc;

	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	while (ib_poll_cq(cq, 1, &wc) > 0)
		srp_handle(srp, &wc);
}

/* Interrupts are off. Indirect: the first page only, which is enough to see whose key it is. */
static int srp_queuecommand(struct srp *srp, unsigned int i, enum order_op op, u32 seed)
{
	struct srp_cmd *cmd = &srp->cmd[i];
	struct ib_pool_fmr *fmr;

	reinit_completion(&cmd->done);
	cmd->len = cmd->pages * PAGE_SIZE;
	if (cmd->pages > 1) {
		fmr = ib_fmr_pool_map_phys(srp->pool, cmd->data->list, cmd->pages, 0);
		if (!IS_ERR(fmr)) {
			cmd->fmr = fmr;
			return station_send(&srp->st, op, fmr->fmr->rkey, 0, cmd->len, seed, i,
					    NULL);
		}
	}
	srp->indirect++;
	cmd->len = PAGE_SIZE;
	return station_send(&srp->st, op, srp->mr->rkey, cmd->data->list[0], cmd->len, seed, i,
			    NULL);
}

static bool srp_wait(struct srp *srp, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		if (!wait_for_completion_timeout(&srp->cmd[i].done, PATIENCE))
			return false;
	return true;
}

/* All commands at once, of 1 to CMD_PAGES pages. Return: bytes that were not right, or -1. */
static s64 srp_round(struct srp *srp, enum order_op op, u32 seed)
{
	unsigned long flags;
	unsigned int i;
	s64 wrong = 0;
	int err = 0;

	for (i = 0; i < CMDS; i++) {
		srp->cmd[i].pages = 1 + i % CMD_PAGES;
		data_fill(srp->cmd[i].data, 0, srp->cmd[i].pages * PAGE_SIZE,
			  op == ORDER_READ ? seed + i : ~seed);
	}
	for (i = 0; i < CMDS && !err; i++) {
		local_irq_save(flags);
		err = srp_queuecommand(srp, i, op, seed + i);
		local_irq_restore(flags);
	}
	if (err || !srp_wait(srp, i))
		return -1;
	for (i = 0; i < CMDS; i++)
		wrong += op == ORDER_READ ? srp->cmd[i].wrong :
			data_wrong(srp->cmd[i].data, 0, srp->cmd[i].len, seed + i);
	return wrong;
}

/* The same pages again: a hit. */
static void srp_cache(struct srp *srp)
{
	struct ib_pool_fmr *a, *b;
	u64 *list = srp->cmd[3].data->list;
	u32 key[3] = {};
	int remaps = 0;

	a = ib_fmr_pool_map_phys(srp->pool, list, 4, 0);
	if (!IS_ERR(a)) {
		key[0] = a->fmr->rkey;
		b = ib_fmr_pool_map_phys(srp->pool, list, 4, 0);
		if (!IS_ERR(b)) {
			key[1] = b->fmr->rkey;
			ib_fmr_pool_unmap(b);
		}
		ib_fmr_pool_unmap(a);
		a = ib_fmr_pool_map_phys(srp->pool, list, 4, 0);
		if (!IS_ERR(a)) {
			key[2] = a->fmr->rkey;
			remaps = a->remap_count;
			ib_fmr_pool_unmap(a);
		}
	}
	verdict(ME, "the same pages again are a hit", key[0] && key[0] == key[1] &&
		key[0] == key[2] && remaps == 1, "keys %#x %#x %#x, remap_count %d", key[0],
		key[1], key[2], remaps);
}

/* Everything is taken: -EAGAIN, and the command goes by the DMA MR. */
static void srp_exhausted(struct srp *srp)
{
	struct ib_pool_fmr *fmr[CMDS] = {};
	unsigned int i, nr = 0, tries = 0;
	unsigned long flags;
	u32 before = srp->indirect;
	int err, again = 0;

	for (i = 0; i < CMDS; i++) {
		do
			fmr[i] = ib_fmr_pool_map_phys(srp->pool, srp->cmd[i].data->list, 2,
						      PAGE_SIZE * i);
		while (station_again(PTR_ERR_OR_ZERO(fmr[i]), &tries));
		nr += !IS_ERR(fmr[i]);
	}
	srp->cmd[0].pages = CMD_PAGES;
	data_fill(srp->cmd[0].data, 0, PAGE_SIZE, 77);
	local_irq_save(flags);
	again = PTR_ERR_OR_ZERO(ib_fmr_pool_map_phys(srp->pool, srp->cmd[0].data->list, 3, 0));
	err = srp_queuecommand(srp, 0, ORDER_READ, 77);
	local_irq_restore(flags);
	if (!err)
		srp_wait(srp, 1);
	for (i = 0; i < CMDS; i++)
		if (!IS_ERR_OR_NULL(fmr[i]))
			ib_fmr_pool_unmap(fmr[i]);
	verdict(ME, "pool of 32 exhausted: -EAGAIN, indirect by the DMA MR", nr == CMDS &&
		again == -EAGAIN && srp->indirect == before + 1 && !err && !srp->cmd[0].wrong,
		"%u mapped, then %d; %u bytes wrong", nr, again, srp->cmd[0].wrong);
}

static int srp_create_pool(struct srp *srp)
{
	struct ib_fmr_pool_param param;

	for (srp->max_pages = 1024; srp->max_pages >= 128; srp->max_pages /= 2) {
		memset(&param, 0, sizeof(param));
		param.pool_size = CMDS;
		param.dirty_watermark = param.pool_size / 4;
		param.cache = 1;
		param.max_pages_per_fmr = srp->max_pages;
		param.page_shift = srp->page_shift;
		param.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			       IB_ACCESS_REMOTE_READ;
		srp->pool = ib_create_fmr_pool(srp->pd, &param);
		if (!IS_ERR(srp->pool))
			return 0;
	}
	return PTR_ERR(srp->pool);
}

static void srp_run(struct srp *srp)
{
	s64 wrong;

	srp->indirect = 0;
	verdict(ME, "a pool of 512 pages, after halving", srp->max_pages == 512, "%d pages of %u",
		srp->max_pages, 1U << srp->page_shift);
	wrong = srp_round(srp, ORDER_READ, 1);
	verdict(ME, "32 commands, irqs off, read by the peer", !wrong &&
		srp->indirect < CMDS / 2, "%lld bytes wrong, %u indirect", wrong, srp->indirect);
	wrong = srp_round(srp, ORDER_WRITE, 100);
	verdict(ME, "32 commands, irqs off, written by the peer", !wrong &&
		srp->indirect < CMDS, "%lld bytes wrong, %u indirect", wrong, srp->indirect);
	verdict(ME, "released in the CQ's callback, in softirq", srp->st.in_softirq >= 2 * CMDS,
		"%u replies", srp->st.in_softirq);
	srp_cache(srp);
	srp_exhausted(srp);
}

static void srp_add_one(struct ib_device *device)
{
	struct ib_device_attr *attr;
	struct srp *srp = kzalloc(sizeof(*srp), GFP_KERNEL);
	unsigned int i;
	int err = -ENOMEM;

	attr = kmalloc(sizeof(*attr), GFP_KERNEL);
	if (!srp || !attr || ib_query_device(device, attr))
		goto out;
	srp->device = device;
	srp->page_shift = max(12, ffs(attr->page_size_cap) - 1);
	srp->pd = ib_alloc_pd(device);
	if (IS_ERR(srp->pd))
		goto out;
	srp->mr = ib_get_dma_mr(srp->pd, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
				IB_ACCESS_REMOTE_WRITE);
	for (i = 0; i < CMDS; i++) {
		init_completion(&srp->cmd[i].done);
		srp->cmd[i].data = data_alloc(device, CMD_PAGES);
		if (!srp->cmd[i].data)
			goto out;
	}
	err = IS_ERR(srp->mr) ? PTR_ERR(srp->mr) : station_alloc(&srp->st, device, srp->pd);
	if (!err)
		err = station_open(&srp->st, srp->mr->lkey, srp_completion, srp);
	if (!err)
		err = srp_create_pool(srp);
	ib_set_client_data(device, &srp_client, srp);
	srp = NULL;
out:
	verdict(ME, "set up", !err, "%d", err);
	kfree(srp);
	kfree(attr);
	srp = ib_get_client_data(device, &srp_client);
	if (srp && !err)
		srp_run(srp);
}

static void srp_remove_one(struct ib_device *device)
{
	struct srp *srp = ib_get_client_data(device, &srp_client);
	bool live = false, dead = true;
	u64 *list;
	unsigned int i;
	u32 key = 0;
	int err[3];

	if (!srp)
		return;
	/* A key that was released, and lives on in the cache until the pool goes. */
	if (!IS_ERR_OR_NULL(srp->pool)) {
		struct ib_pool_fmr *fmr;
		unsigned int tries = 0;

		list = srp->cmd[1].data->list;
		do
			fmr = ib_fmr_pool_map_phys(srp->pool, list, 2, 0);
		while (station_again(PTR_ERR_OR_ZERO(fmr), &tries));
		if (!IS_ERR(fmr)) {
			key = fmr->fmr->rkey;
			ib_fmr_pool_unmap(fmr);
			live = open_to(srp->pd, key, 0);
		}
		ib_destroy_fmr_pool(srp->pool);
		dead = refused(srp->pd, key, 0);
	}
	err[0] = station_close(&srp->st);
	for (i = 0; i < CMDS; i++)
		data_free(srp->cmd[i].data);
	err[1] = ib_dereg_mr(srp->mr);
	err[2] = ib_dealloc_pd(srp->pd);
	verdict(ME, "removal: cached key alive before, dead after", live && dead,
		"key %#x", key);
	verdict(ME, "CQ, DMA MR and PD go", !err[0] && !err[1] && !err[2], "%d %d %d", err[0],
		err[1], err[2]);
	kfree(srp);
}

static struct ib_client srp_client = {
	.name = "classic_srp",
	.add = srp_add_one,
	.remove = srp_remove_one,
};

int srp_init(void)
{
	return ib_register_client(&srp_client);
}

void srp_exit(void)
{
	ib_unregister_client(&srp_client);
}
