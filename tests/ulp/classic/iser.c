// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * iSER initiator, as of 4.17: a pool without cache of twice the commands; maps under the session's
 * bottom-half lock at the first page's address, and uses both keys; releases in the completion's
 * softirq with that lock held, and looks at what the release returns. A device without FMRs
 * (-ENOSYS) is served without, by the PD's own key.
 */
#include <linux/completion.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include <rdma/ib_fmr_pool.h>

#include "station.h"

#define ME		"iSER"
#define CMDS		16
#define PAGES		6
#define OFFSET		512	/* of the first byte in its page */
#define BYTES		(PAGES * PAGE_SIZE - 2 * OFFSET)

struct iser_task {
	struct data *data;
	struct ib_pool_fmr *fmr;
	u64 addr;
	u32 lkey, rkey;
	u32 wrong;
	int unmapped;
	struct completion done;
};

struct iser {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_fmr_pool *pool;
	spinlock_t session_lock;
	struct station st;
	struct iser_task task[CMDS];
	unsigned int released;		/* in softirq, under the lock */
};

static struct ib_client iser_client;
static bool iser_nosys;

/* The session's lock is held. */
static void iser_cleanup_task(struct iser *iser, struct iser_task *task)
{
	if (!task->fmr)
		return;
	task->unmapped = ib_fmr_pool_unmap(task->fmr);
	task->fmr = NULL;
	iser->released += in_serving_softirq() ? 1 : 0;
}

static void iser_completion(struct ib_cq *cq, void *context)
{
	struct iser *iser = context;
	struct iser_task *task;
	struct reply reply;
	struct ib_wc wc;

	while (ib_poll_cq(cq, 1, &wc) == 1) {
		if (!station_reply(&iser->st, &wc, &reply) || reply.cookie >= CMDS)
			continue;
		task = &iser->task[reply.cookie];
		spin_lock(&iser->session_lock);
		iser_cleanup_task(iser, task);
		spin_unlock(&iser->session_lock);
		task->wrong = reply.wrong;
		complete(&task->done);
	}
	if (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0)
		iser_completion(cq, context);
}

/* Pages are whole; the command's bytes begin at OFFSET in the first. The lock is held. */
static int iser_reg_mem(struct iser *iser, struct iser_task *task)
{
	struct ib_pool_fmr *fmr;

	if (!iser->pool) {
		task->addr = task->data->list[0] + OFFSET;
		task->lkey = iser->pd->local_dma_lkey;
		task->rkey = iser->pd->unsafe_global_rkey;
		return 0;
	}
	fmr = ib_fmr_pool_map_phys(iser->pool, task->data->list, PAGES, task->data->list[0]);
	if (IS_ERR(fmr))
		return PTR_ERR(fmr);
	task->fmr = fmr;
	task->lkey = fmr->fmr->lkey;
	task->rkey = fmr->fmr->rkey;
	task->addr = task->data->list[0] + OFFSET;
	return 0;
}

static u32 iser_bytes(struct iser *iser)
{
	return iser->pool ? BYTES : PAGE_SIZE - OFFSET;
}

/* Data out: the target reads, or it goes with the command by the lkey. */
static int iser_queuecommand(struct iser *iser, unsigned int i, enum order_op op)
{
	struct iser_task *task = &iser->task[i];
	struct ib_sge data;
	int err;

	reinit_completion(&task->done);
	spin_lock_bh(&iser->session_lock);
	err = iser_reg_mem(iser, task);
	if (err) {
		/* no log: the command comes again */
	} else if (op == ORDER_DATA) {
		data.addr = task->addr;
		data.length = min_t(u32, iser_bytes(iser), LINK_INLINE);
		data.lkey = task->lkey;
		err = station_send(&iser->st, op, 0, 0, data.length, i, i, &data);
	} else {
		err = station_send(&iser->st, op, task->rkey, task->addr, iser_bytes(iser), i, i,
				   NULL);
	}
	spin_unlock_bh(&iser->session_lock);
	return err;
}

static s64 iser_round(struct iser *iser, enum order_op op)
{
	u32 len = iser_bytes(iser);
	unsigned int i, tries = 0;
	s64 wrong = 0;
	int err;

	for (i = 0; i < CMDS; i++) {
		data_fill(iser->task[i].data, OFFSET, len, op == ORDER_WRITE ? 99 : i);
		do
			err = iser_queuecommand(iser, i, op);
		while (station_again(err, &tries));
		if (err)
			return err;
	}
	for (i = 0; i < CMDS; i++) {
		if (!wait_for_completion_timeout(&iser->task[i].done, PATIENCE))
			return -ETIMEDOUT;
		wrong += iser->task[i].wrong;
		if (op == ORDER_WRITE)
			wrong += data_wrong(iser->task[i].data, OFFSET, len, i);
	}
	return wrong;
}

static void iser_exhausted(struct iser *iser)
{
	struct ib_pool_fmr *fmr[2 * CMDS + 1] = {};
	unsigned int i, nr, released, tries = 0;
	int err;

again:
	nr = 0;
	released = 0;
	err = 0;
	spin_lock_bh(&iser->session_lock);
	for (i = 0; i < ARRAY_SIZE(fmr); i++) {
		fmr[i] = ib_fmr_pool_map_phys(iser->pool, iser->task[i % CMDS].data->list, PAGES,
					      iser->task[i % CMDS].data->list[0]);
		if (IS_ERR(fmr[i]))
			err = PTR_ERR(fmr[i]);
		else
			nr++;
	}
	for (i = 0; i < ARRAY_SIZE(fmr); i++)
		if (!IS_ERR(fmr[i]))
			released += !ib_fmr_pool_unmap(fmr[i]);
	spin_unlock_bh(&iser->session_lock);
	if (nr < 2 * CMDS && station_again(err, &tries))
		goto again;
	verdict(ME, "a pool of 32 gives 32, then -EAGAIN", nr == 2 * CMDS && err == -EAGAIN &&
		released == nr, "%u mapped, then %d; %u released", nr, err, released);
}

static void iser_dead_keys(struct iser *iser)
{
	unsigned int i, dead = 0, unmapped = 0;

	for (i = 0; i < CMDS; i++) {
		dead += refused(iser->pd, iser->task[i].rkey, iser->task[i].addr);
		unmapped += !iser->task[i].unmapped;
	}
	verdict(ME, "keys are dead at release, which returned 0", dead == CMDS &&
		unmapped == CMDS, "%u of %u dead", dead, CMDS);
}

static void iser_create_pool(struct iser *iser)
{
	struct ib_fmr_pool_param params = {
		.page_shift = 12,
		.max_pages_per_fmr = PAGES + 1,
		.pool_size = 2 * CMDS,
		.dirty_watermark = CMDS,
		.cache = 0,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
	};
	int err;

	iser->pool = ib_create_fmr_pool(iser->pd, &params);
	err = PTR_ERR_OR_ZERO(iser->pool);
	if (err)
		iser->pool = NULL;
	verdict(ME, iser_nosys ? "no FMRs: -ENOSYS, goes on without" : "the pool",
		err == (iser_nosys ? -ENOSYS : 0), "%d", err);
}

static void iser_run(struct iser *iser)
{
	bool fmr = iser->pool;
	s64 wrong;

	wrong = iser_round(iser, ORDER_READ);
	verdict(ME, fmr ? "READ by the peer, mapped under spin_lock_bh" :
		"READ by the peer, no FMR", !wrong, "%lld wrong", wrong);
	wrong = iser_round(iser, ORDER_WRITE);
	verdict(ME, fmr ? "WRITE by the peer, at an offset" : "WRITE by the peer, no FMR", !wrong,
		"%lld wrong", wrong);
	wrong = iser_round(iser, ORDER_DATA);
	verdict(ME, fmr ? "SEND of the same memory by the lkey" : "SEND by the lkey, no FMR",
		!wrong, "%lld wrong", wrong);
	if (!fmr)
		return;
	verdict(ME, "released in softirq, under the session's lock",
		iser->released == 3 * CMDS, "%u of %u", iser->released, 3 * CMDS);
	iser_dead_keys(iser);
	iser_exhausted(iser);
}

static void iser_add(struct ib_device *device)
{
	struct iser *iser = kzalloc(sizeof(*iser), GFP_KERNEL);
	unsigned int i;
	int err = -ENOMEM;

	if (!iser)
		return;
	iser->device = device;
	spin_lock_init(&iser->session_lock);
	ib_set_client_data(device, &iser_client, iser);
	if (!(device->alloc_fmr && device->dealloc_fmr && device->map_phys_fmr &&
	      device->unmap_fmr))
		goto out;
	iser->pd = ib_alloc_pd(device, iser_nosys ? IB_PD_UNSAFE_GLOBAL_RKEY : 0);
	if (IS_ERR(iser->pd))
		goto out;
	for (i = 0; i < CMDS; i++) {
		init_completion(&iser->task[i].done);
		iser->task[i].data = data_alloc(device, PAGES);
		if (!iser->task[i].data)
			goto out;
	}
	err = station_alloc(&iser->st, device, iser->pd);
	if (!err)
		err = station_open(&iser->st, iser->pd->local_dma_lkey, iser_completion, iser);
out:
	verdict(ME, "set up", !err, "%d", err);
	if (err)
		return;
	iser_create_pool(iser);
	iser_run(iser);
}

static void iser_remove(struct ib_device *device, void *client_data)
{
	struct iser *iser = client_data;
	unsigned int i;
	int err;

	if (!iser)
		return;
	if (iser->pool)
		ib_destroy_fmr_pool(iser->pool);
	err = station_close(&iser->st);
	for (i = 0; i < CMDS; i++)
		data_free(iser->task[i].data);
	if (!IS_ERR_OR_NULL(iser->pd))
		ib_dealloc_pd(iser->pd);
	verdict(ME, "removal", !err, "%d", err);
	kfree(iser);
}

static struct ib_client iser_client = {
	.name = "classic_iser",
	.add = iser_add,
	.remove = iser_remove,
};

int iser_init(bool nosys)
{
	iser_nosys = nosys;
	return ib_register_client(&iser_client);
}

void iser_exit(void)
{
	ib_unregister_client(&iser_client);
}
