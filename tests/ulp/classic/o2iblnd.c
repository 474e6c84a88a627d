// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Lustre's o2iblnd, as of 3.12: FMR pools that only take writes, mapped in process context at iova
 * 0; one that is exhausted (-EAGAIN) is joined by another. When a transfer failed, its mapping is
 * released and the pool flushed, which must not fail whatever signal is pending. Without FMRs
 * (-ENOSYS) it registers physical buffers ("PMR").
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include <rdma/ib_fmr_pool.h>

#include "station.h"

#define ME		"o2iblnd"
#define POOL_SIZE	4
#define POOLS		3
#define MAX_PAGES	256
#define TXS		(POOLS * POOL_SIZE)

struct kib_fmr {
	struct ib_pool_fmr *pfmr;
	unsigned int pool;
};

struct kib_net {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_mr *mr;
	spinlock_t fps_lock;
	struct ib_fmr_pool *fpo[POOLS];
	unsigned int nr_pools;
	bool with_pmr;
	struct data *data;
	struct station st;
	struct completion replied;
	struct reply reply;
};

static struct ib_client o2ib_client;
static bool o2ib_nosys;

static void kiblnd_cq_completion(struct ib_cq *cq, void *arg)
{
	struct kib_net *net = arg;
	struct ib_wc wc;

	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	while (ib_poll_cq(cq, 1, &wc) > 0)
		if (station_reply(&net->st, &wc, &net->reply))
			complete(&net->replied);
}

/* The peer WRITEs, as it does for a GET. */
static s64 kiblnd_transfer(struct kib_net *net, u32 rkey, u64 addr, unsigned int pages, u32 seed)
{
	int err;

	data_fill(net->data, 0, pages * PAGE_SIZE, ~seed);
	reinit_completion(&net->replied);
	err = station_send(&net->st, ORDER_WRITE, rkey, addr, pages * PAGE_SIZE, seed, 0, NULL);
	if (err)
		return err;
	if (!wait_for_completion_timeout(&net->replied, PATIENCE))
		return -ETIMEDOUT;
	return net->reply.wrong ? : data_wrong(net->data, 0, pages * PAGE_SIZE, seed);
}

static int kiblnd_create_fmr_pool(struct kib_net *net)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = MAX_PAGES,
		.page_shift = PAGE_SHIFT,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
		.pool_size = POOL_SIZE,
		.dirty_watermark = 1,
		.cache = 1,
	};
	struct ib_fmr_pool *pool = ib_create_fmr_pool(net->pd, &param);

	if (IS_ERR(pool))
		return PTR_ERR(pool);
	spin_lock(&net->fps_lock);
	net->fpo[net->nr_pools++] = pool;
	spin_unlock(&net->fps_lock);
	return 0;
}

static int kiblnd_fmr_pool_map(struct kib_net *net, u64 *pages, int npages, u64 iov,
			       struct kib_fmr *fmr)
{
	struct ib_fmr_pool *pool;
	unsigned int i;
	int err;

again:
	for (i = 0; i < READ_ONCE(net->nr_pools); i++) {
		spin_lock(&net->fps_lock);
		pool = net->fpo[i];
		spin_unlock(&net->fps_lock);
		fmr->pfmr = ib_fmr_pool_map_phys(pool, pages, npages, iov);
		if (!IS_ERR(fmr->pfmr)) {
			fmr->pool = i;
			return 0;
		}
		if (PTR_ERR(fmr->pfmr) != -EAGAIN)
			return PTR_ERR(fmr->pfmr);
	}
	if (net->nr_pools == POOLS)
		return -EAGAIN;
	err = kiblnd_create_fmr_pool(net);
	if (err)
		return err;
	goto again;
}

static void o2ib_fmr(struct kib_net *net)
{
	struct kib_fmr tx[TXS + 1];
	unsigned int i, n = 0, read = 0, tries = 0;
	s64 wrong = 0;
	int err = 0;

	/* Each begins a page later, so that none is found in the cache. */
	for (i = 0; i <= TXS && !err; i++) {
		err = kiblnd_fmr_pool_map(net, net->data->list + i, 32, 0, &tx[i]);
		n += !err;
	}
	verdict(ME, "-EAGAIN takes the next pool, to the last one", n == TXS && err == -EAGAIN &&
		net->nr_pools == POOLS, "%u mapped in %u pools, then %d", n, net->nr_pools, err);
	for (i = 0; i < n; i++) {
		read += !refused(net->pd, tx[i].pfmr->fmr->rkey, 0);
		ib_fmr_pool_unmap(tx[i].pfmr);
	}
	verdict(ME, "what is for writing is not read", !read, "%u of %u read", read, n);

	do
		err = kiblnd_fmr_pool_map(net, net->data->list, MAX_PAGES, 0, &tx[0]);
	while (station_again(err, &tries));
	if (!err) {
		wrong = kiblnd_transfer(net, tx[0].pfmr->fmr->rkey, 0, MAX_PAGES, 3);
		ib_fmr_pool_unmap(tx[0].pfmr);
	}
	verdict(ME, "1 MiB at iova 0, written", !err && !wrong, "%d; %lld bytes wrong", err, wrong);
}

/* A transfer that failed, in a thread that somebody is killing. */
static int o2ib_fail(void *arg)
{
	struct kib_net *net = arg;
	struct kib_fmr tx;
	bool live = false, dead = false, killed = false;
	unsigned int tries = 0;
	int err, rc = -EINTR;
	u32 key = 0;

	allow_signal(SIGKILL);
	do
		err = kiblnd_fmr_pool_map(net, net->data->list, 8, 0, &tx);
	while (station_again(err, &tries));
	if (!err) {
		key = tx.pfmr->fmr->rkey;
		ib_fmr_pool_unmap(tx.pfmr);
		live = probe(net->pd, true, key, 0, 8) == IB_WC_SUCCESS;
		send_sig(SIGKILL, current, 1);
		killed = signal_pending(current);
		rc = ib_flush_fmr_pool(net->fpo[tx.pool]);
		flush_signals(current);
		dead = probe(net->pd, true, key, 0, 8) == IB_WC_REM_ACCESS_ERR;
	}
	verdict(ME, "a failed transfer, SIGKILL pending: the flush returns 0, the key is dead",
		killed && live && dead && !rc, "%d; flush %d", err, rc);
	kthread_complete_and_exit(&net->replied, 0);
}

static void o2ib_pmr(struct kib_net *net)
{
	struct ib_phys_buf ipb[16];
	unsigned int i;
	struct ib_mr *mr;
	s64 wrong;
	int err;
	u64 iova;
	u32 key;

	for (i = 0; i < 16; i++) {
		ipb[i].addr = net->data->list[i];
		ipb[i].size = PAGE_SIZE;
	}
	iova = ipb[0].addr & ~PAGE_MASK;
	mr = ib_reg_phys_mr(net->pd, ipb, 16, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
			    &iova);
	err = PTR_ERR_OR_ZERO(mr);
	if (err) {
		verdict(ME, "PMR", false, "%d", err);
		return;
	}
	key = mr->rkey;
	wrong = kiblnd_transfer(net, key, iova, 16, 8);
	err = ib_dereg_mr(mr);
	verdict(ME, "PMR: physical buffers at iova 0, written; dead after", !wrong && !err &&
		probe(net->pd, true, key, iova, 8) == IB_WC_REM_ACCESS_ERR,
		"%lld bytes wrong, dereg %d", wrong, err);
}

static void o2ib_run(struct kib_net *net)
{
	struct task_struct *thread;
	s64 wrong;
	int err = kiblnd_create_fmr_pool(net);

	net->with_pmr = err == -ENOSYS;
	verdict(ME, o2ib_nosys ? "no FMRs: -ENOSYS, PMR is taken" : "FMR pool of 256 pages",
		err == (o2ib_nosys ? -ENOSYS : 0), "%d", err);
	if (!err) {
		o2ib_fmr(net);
		reinit_completion(&net->replied);
		thread = kthread_run(o2ib_fail, net, "classic_o2ib");
		if (!IS_ERR(thread))
			wait_for_completion(&net->replied);
	}
	o2ib_pmr(net);
	wrong = kiblnd_transfer(net, net->mr->rkey, net->data->list[0], 1, 4);
	verdict(ME, "the global MR", !wrong, "%lld bytes wrong", wrong);
}

static void o2ib_add_one(struct ib_device *device)
{
	struct kib_net *net = kzalloc(sizeof(*net), GFP_KERNEL);
	int err = -ENOMEM;

	if (!net)
		return;
	net->device = device;
	spin_lock_init(&net->fps_lock);
	init_completion(&net->replied);
	ib_set_client_data(device, &o2ib_client, net);
	net->data = data_alloc(device, MAX_PAGES);
	net->pd = ib_alloc_pd(device);
	if (!net->data || IS_ERR(net->pd))
		goto out;
	net->mr = ib_get_dma_mr(net->pd, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	err = IS_ERR(net->mr) ? PTR_ERR(net->mr) : station_alloc(&net->st, device, net->pd);
	if (!err)
		err = station_open(&net->st, net->mr->lkey, kiblnd_cq_completion, net);
out:
	verdict(ME, "set up", !err, "%d", err);
	if (!err)
		o2ib_run(net);
}

static void o2ib_remove_one(struct ib_device *device)
{
	struct kib_net *net = ib_get_client_data(device, &o2ib_client);
	int err[2];

	if (!net)
		return;
	while (net->nr_pools)
		ib_destroy_fmr_pool(net->fpo[--net->nr_pools]);
	station_close(&net->st);
	err[0] = ib_dereg_mr(net->mr);
	err[1] = ib_dealloc_pd(net->pd);
	data_free(net->data);
	verdict(ME, "pools, MR and PD go", !err[0] && !err[1], "%d %d", err[0], err[1]);
	kfree(net);
}

static struct ib_client o2ib_client = {
	.name = "classic_o2ib",
	.add = o2ib_add_one,
	.remove = o2ib_remove_one,
};

int o2ib_init(bool nosys)
{
	o2ib_nosys = nosys;
	return ib_register_client(&o2ib_client);
}

void o2ib_exit(void)
{
	ib_unregister_client(&o2ib_client);
}
