// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Soak: a great many maps and unmaps over several FMR pools on all CPUs, with a peer that reads
 * through mappings meanwhile. Loading the module is the run; it fails to load when something was
 * wrong, and says what it saw each twentieth part: a leak shows as figures that rise.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <rdma/ib_fmr_pool.h>
#include <rdma/restrack.h>

#include "compat.h"
#include "fmr.h"
#include "regqp.h"

static unsigned int rounds = 1000000;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "maps and unmaps in all");

#define POOLS	4
#define PAGES	32
#define REPORTS	20
#define MOST	8	/* CPUs */

static const struct {
	const char *name;
	bool cache, at_once;
	unsigned int key_maps;
} kinds[POOLS] = {
	{ "plain" }, { "cache", .cache = true }, { "at once", .at_once = true },
	{ "kept keys", .key_maps = 16 },
};

static struct soak {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_fmr_pool *pool[POOLS];
	struct page *page[PAGES];
	u64 list[PAGES];
	atomic_t done, again, wrong, reads;
	atomic_t running;
	struct completion all_done;
	bool stop;
} soak;

static int soak_add(struct ib_device *dev)
{
	if (!soak.dev && dev->ops.driver_id == RDMA_DRIVER_RXE)
		soak.dev = dev;
	return 0;
}

static struct ib_client soak_client = { .name = "ib_mr_soak", .add = soak_add };

static void soak_wrong(const char *what, long err)
{
	if (atomic_inc_return(&soak.wrong) <= 20)
		pr_err("wrong: %s: %ld\n", what, err);
}

/* One map, held for a while by every eighth, so that entries are in use at the same time. */
static int soak_owner(void *arg)
{
	unsigned int n = (uintptr_t)arg * 7919, held = 0, i;
	struct ib_pool_fmr *hold[8];

	while (atomic_inc_return(&soak.done) <= rounds) {
		unsigned int first = ++n % 16, len = 1 + n / 16 % 16;
		struct ib_fmr_pool *pool = soak.pool[n % POOLS];
		struct ib_pool_fmr *fmr = ib_fmr_pool_map_phys(pool, soak.list + first, len, 0);

		if (IS_ERR(fmr)) {
			atomic_dec(&soak.done);
			if (fmr != ERR_PTR(-EAGAIN))
				soak_wrong("map", PTR_ERR(fmr));
			atomic_inc(&soak.again);
			usleep_range(1000, 2000);
			continue;
		}
		if (fmr->fmr->lkey != fmr->fmr->rkey || fmr->pool != pool)
			soak_wrong("what was mapped", fmr->fmr->lkey);
		if (n % 8 || held == ARRAY_SIZE(hold)) {
			ib_fmr_pool_unmap(fmr);
			while (held && n % 64 == 5)
				ib_fmr_pool_unmap(hold[--held]);
		} else {
			hold[held++] = fmr;
		}
		if (n % 50000 == 0 && ib_flush_fmr_pool(pool))
			soak_wrong("flush", 0);
		if (n % 256 == 0)
			cond_resched();
	}
	for (i = 0; i < held; i++)
		ib_fmr_pool_unmap(hold[i]);
	if (atomic_dec_and_test(&soak.running))
		complete_all(&soak.all_done);
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

/* What it maps it reads by the key, and after the unmap no more. */
static int soak_peer(void *arg)
{
	struct ibmr_regqp *rq = ibmr_regqp_create(soak.pd, IB_ACCESS_LOCAL_WRITE |
						  IB_ACCESS_REMOTE_READ, 0);
	u8 *buf = kmalloc(2 * PAGE_SIZE, GFP_KERNEL);
	enum ib_wc_status status;
	unsigned int n = 0;

	while (!IS_ERR(rq) && buf && !READ_ONCE(soak.stop)) {
		struct ib_fmr_pool *pool = soak.pool[n++ % POOLS];
		unsigned int first = n % 31;
		struct ib_pool_fmr *fmr = ib_fmr_pool_map_phys(pool, soak.list + first, 2, 0);
		u32 key;

		if (IS_ERR(fmr)) {
			usleep_range(1000, 2000);
			continue;
		}
		key = fmr->fmr->rkey;
		memset(buf, 0, 2 * PAGE_SIZE);
		if (ibmr_regqp_rdma(rq, IB_WR_RDMA_READ, (uintptr_t)buf, soak.pd->local_dma_lkey,
				    2 * PAGE_SIZE, 0, key, &status))
			soak_wrong("no verdict", 0);
		else if (status != IB_WC_SUCCESS)
			soak_wrong("read", status);
		else if (memchr_inv(buf, first + 1, PAGE_SIZE) ||
			 memchr_inv(buf + PAGE_SIZE, first + 2, PAGE_SIZE))
			soak_wrong("bytes read", first);
		atomic_inc(&soak.reads);
		ib_fmr_pool_unmap(fmr);
		/* Kept keys are mapped to something else by now, and cached ones live on. */
		if (n % 100 == 1 && (n - 1) % POOLS != 1 && (n - 1) % POOLS != 3 &&
		    !ibmr_regqp_rdma(rq, IB_WR_RDMA_READ, (uintptr_t)buf, soak.pd->local_dma_lkey,
				     8, 0, key, &status) && status != IB_WC_REM_ACCESS_ERR)
			soak_wrong("read by a dead key", status);
	}
	if (IS_ERR(rq))
		soak_wrong("queue pair", PTR_ERR(rq));
	else
		ibmr_regqp_destroy(rq);
	kfree(buf);
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

static void soak_report(void)
{
	struct sysinfo info;
	char line[160];
	int i, at = 0;

	si_meminfo(&info);
	for (i = 0; i < POOLS; i++) {
		struct ibmr_mag *mag = ibmr_pool_mag(soak.pool[i]);

		spin_lock_irq(&mag->lock);
		at += scnprintf(line + at, sizeof(line) - at, " %u/%llu/%llu", mag->created,
				mag->rekeyed, mag->replaced);
		spin_unlock_irq(&mag->lock);
	}
	pr_info("%d maps, %d -EAGAIN, %d reads, %d wrong; MRs/re-keyed/replaced%s; %d regions, %lu MiB free\n",
		min_t(int, atomic_read(&soak.done), rounds), atomic_read(&soak.again),
		atomic_read(&soak.reads), atomic_read(&soak.wrong), line,
		rdma_restrack_count(soak.dev, RDMA_RESTRACK_MR, true),
		info.freeram >> (20 - PAGE_SHIFT));
}

static int soak_make(void)
{
	int i, err;

	for (i = 0; i < PAGES; i++) {
		soak.page[i] = alloc_page(GFP_KERNEL);
		if (!soak.page[i])
			return -ENOMEM;
		soak.list[i] = (uintptr_t)page_address(soak.page[i]);
		memset(page_address(soak.page[i]), i + 1, PAGE_SIZE);
	}
	soak.pd = ib_alloc_pd(soak.dev, 0);
	err = PTR_ERR_OR_ZERO(soak.pd);
	for (i = 0; i < POOLS && !err; i++) {
		struct ib_fmr_pool_param param = {
			.max_pages_per_fmr = 16, .page_shift = PAGE_SHIFT, .pool_size = 256,
			.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
				  IB_ACCESS_REMOTE_WRITE,
			.dirty_watermark = 64, .cache = kinds[i].cache,
			.rekey_at_once = kinds[i].at_once, .key_maps = kinds[i].key_maps,
		};

		soak.pool[i] = ib_create_fmr_pool(soak.pd, &param);
		err = PTR_ERR_OR_ZERO(soak.pool[i]);
	}
	return err;
}

static void soak_unmake(void)
{
	int i;

	for (i = 0; i < POOLS; i++)
		ib_destroy_fmr_pool(soak.pool[i]);
	if (!IS_ERR_OR_NULL(soak.pd) && ib_dealloc_pd(soak.pd))
		soak_wrong("the PD is still in use", 0);
	if (!ib_mr_check_invariants(soak.dev))
		soak_wrong("the counters do not agree", 0);
	for (i = 0; i < PAGES; i++) {
		if (soak.page[i] && memchr_inv(page_address(soak.page[i]), i + 1, PAGE_SIZE))
			soak_wrong("a page was written", i);
		if (soak.page[i])
			__free_page(soak.page[i]);
	}
}

static int soak_run(void)
{
	struct task_struct *task[MOST + 1] = {};
	int n = 0, cpu, last = 0, i;

	init_completion(&soak.all_done);
	atomic_set(&soak.running, min_t(int, num_online_cpus(), MOST));
	for_each_online_cpu(cpu) {
		if (n == MOST)
			break;
		task[n] = kthread_create(soak_owner, (void *)(uintptr_t)n, "ib_mr_soak/%d", n);
		if (IS_ERR(task[n]))
			return PTR_ERR(task[n]);
		kthread_bind(task[n++], cpu);
	}
	task[n] = kthread_create(soak_peer, NULL, "ib_mr_soak/peer");
	if (IS_ERR(task[n]))
		return PTR_ERR(task[n]);
	for (i = 0; i <= n; i++)
		wake_up_process(get_task_struct(task[i]));
	while (!wait_for_completion_timeout(&soak.all_done, HZ)) {
		int part = atomic_read(&soak.done) / (rounds / REPORTS + 1);

		if (part != last)
			soak_report();
		last = part;
	}
	WRITE_ONCE(soak.stop, true);
	for (i = 0; i <= n; i++) {
		kthread_stop(task[i]);
		put_task_struct(task[i]);
	}
	soak_report();
	return 0;
}

static int __init soak_init(void)
{
	ktime_t begin = ktime_get();
	int err, mrs;

	err = ib_register_client(&soak_client);
	if (err)
		return err;
	err = -ENODEV;
	if (!soak.dev)
		goto out;
	err = soak_make();
	mrs = rdma_restrack_count(soak.dev, RDMA_RESTRACK_MR, true);
	if (!err)
		err = soak_run();
	soak_unmake();
	pr_info("ended: %d, %d wrong, %lld s; regions %d at the start, %d left\n", err,
		atomic_read(&soak.wrong), ktime_ms_delta(ktime_get(), begin) / 1000, mrs,
		rdma_restrack_count(soak.dev, RDMA_RESTRACK_MR, true));
	if (!err && atomic_read(&soak.wrong))
		err = -EIO;
out:
	if (err)
		ib_unregister_client(&soak_client);
	return err;
}

static void __exit soak_exit(void)
{
	ib_unregister_client(&soak_client);
}

module_init(soak_init);
module_exit(soak_exit);

MODULE_DESCRIPTION("Soak test of ib_mr's FMR pools");
MODULE_LICENSE("Dual BSD/GPL");
IBMR_IMPORT_INTERNAL();
