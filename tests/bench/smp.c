// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Two CPUs that map and unmap at the same time: do they share a lock?
 *
 * A spinlock that is not free leads to the kernel's slow path, so a probe there sees every wait.
 * (The tracepoint lock:contention_begin does not: of two CPUs the one that waits is "pending" and
 * passes it by.) Other kinds of locks are seen by that tracepoint. A wait counts when it is of a
 * mapping thread between the beginning and the end of a map and unmap, which run with interrupts
 * off, so nothing else can be in between; by its address it is told whether the lock is the
 * thread's own pool's, where the pool's worker may be met, or another.
 *
 * With one pool for both there must be waits, or the probe sees nothing and proves nothing.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <trace/events/lock.h>	/* LCB_F_SPIN */

#include "bench.h"
#include "stock/magazine.h"

#define ROUNDS	20
#define MAPS	1000
#define SIZE	4096

/**
 * struct mapper - a thread on a CPU of its own
 * @b: benchmark
 * @p: pool that it maps from
 * @start: threads that are not at the start yet
 * @task: thread
 * @inside: it is in a map or unmap, interrupts off
 * @own: waits for its pool's lock
 * @other: waits for any other
 * @ns: how long its maps took
 * @err: of a map
 * @done: it is through
 */
struct mapper {
	struct bench *b;
	struct bench_pool *p;
	atomic_t *start;
	struct task_struct *task;
	bool inside;
	u64 own;
	u64 other;
	u64 ns;
	int err;
	struct completion done;
};

static DEFINE_PER_CPU(struct mapper *, mapper);

static void waits(void *lock)
{
	struct mapper *m = raw_cpu_read(mapper);

	if (!m || !m->inside || m->task != current)
		return;
	if (lock == &m->p->mag->lock)
		m->own++;
	else
		m->other++;
}

static int slow_path(struct kprobe *kp, struct pt_regs *regs)
{
	waits((void *)regs_get_kernel_argument(regs, 0));
	return 0;
}

static struct kprobe probe = {
	.symbol_name = "native_queued_spin_lock_slowpath",
	.pre_handler = slow_path,
};

static void contention(void *data, void *lock, unsigned int flags)
{
	if (!(flags & LCB_F_SPIN))
		waits(lock);
}

/* It is there, but not exported to modules by name. */
static void look_for(struct tracepoint *tp, void *found)
{
	if (!strcmp(tp->name, "contention_begin"))
		*(struct tracepoint **)found = tp;
}

static int mapping(void *arg)
{
	struct mapper *m = arg;
	unsigned long flags;
	int i;
	u64 from;

	atomic_dec(m->start);
	while (atomic_read(m->start))
		cpu_relax();
	from = ktime_get_ns();
	for (i = 0; i < MAPS && !m->err; i++) {
		struct ib_pool_fmr *fmr;

		local_irq_save(flags);
		this_cpu_write(mapper, m);
		m->inside = true;
		barrier();
		fmr = ib_fmr_pool_map_phys(m->p->pool, m->b->list, 1, BENCH_IOVA);
		if (!IS_ERR(fmr))
			ib_fmr_pool_unmap(fmr);
		barrier();
		m->inside = false;
		local_irq_restore(flags);
		m->err = PTR_ERR_OR_ZERO(fmr);
	}
	m->ns += ktime_get_ns() - from;
	this_cpu_write(mapper, NULL);
	complete(&m->done);
	return 0;
}

/* @nr threads, on CPUs 0 and on, rounds of them; between rounds the stocks fill up again. */
static int rounds(struct mapper *m, unsigned int nr)
{
	unsigned int round, i;
	atomic_t start;

	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < nr; i++)
			if (bench_pool_ready(m[i].p) < 2 * MAPS)
				return bench_fail("a stock that does not fill", 0);
		atomic_set(&start, nr);
		for (i = 0; i < nr; i++) {
			struct task_struct *task;

			init_completion(&m[i].done);
			m[i].start = &start;
			task = kthread_create_on_cpu(mapping, &m[i], i, "ib_mr_bench/%u");
			if (IS_ERR(task)) {
				atomic_sub(nr - i, &start);
				nr = i;
				m[0].err = PTR_ERR(task);
				break;
			}
			m[i].task = task;
			wake_up_process(task);
		}
		for (i = 0; i < nr; i++)
			wait_for_completion(&m[i].done);
		for (i = 0; i < nr; i++)
			if (m[i].err)
				return m[i].err;
	}
	return 0;
}

static int measure(struct bench *b, struct bench_pool *first, struct bench_pool *second,
		   const char *what)
{
	struct mapper m[2] = { { .b = b, .p = first }, { .b = b, .p = second } };
	unsigned int nr = second ? 2 : 1;
	char name[32];
	int err = rounds(m, nr);

	if (err)
		return err;
	snprintf(name, sizeof(name), "smp_own_%s", what);
	bench_result(name, nr, m[0].own + m[1].own);
	snprintf(name, sizeof(name), "smp_other_%s", what);
	bench_result(name, nr, m[0].other + m[1].other);
	snprintf(name, sizeof(name), "smp_ns_%s", what);
	bench_result(name, nr, max(m[0].ns, m[1].ns) / (ROUNDS * MAPS));
	return 0;
}

int bench_smp(struct bench *b)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = 1, .page_shift = PAGE_SHIFT, .access = BENCH_ACCESS,
		.pool_size = SIZE, .dirty_watermark = SIZE,
	};
	struct bench_pool first = {}, second = {};
	struct tracepoint *tp = NULL;
	int err;

	if (num_online_cpus() < 2)
		return 0;	/* one CPU meets nobody */
	err = register_kprobe(&probe);
	if (err)
		return bench_fail("probe of the spinlock's slow path", err);
	for_each_kernel_tracepoint(look_for, &tp);
	err = tp ? tracepoint_probe_register(tp, contention, NULL) : -ENOENT;
	if (err)
		goto probed;
	err = bench_pool_create(b, &first, param);
	if (!err)
		err = bench_pool_create(b, &second, param);
	if (!err)
		err = measure(b, &first, NULL, "alone");
	if (!err)
		err = measure(b, &first, &second, "apart");
	if (!err)
		err = measure(b, &first, &first, "shared");
	bench_pool_destroy(&second);
	bench_pool_destroy(&first);
	tracepoint_probe_unregister(tp, contention, NULL);
	tracepoint_synchronize_unregister();
probed:
	unregister_kprobe(&probe);
	return err ? bench_fail("smp", err) : 0;
}
