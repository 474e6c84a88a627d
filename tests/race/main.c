// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Races, and soak: many threads on all CPUs do everything ib_mr can, each ULP's to the same few
 * objects at one time.
 *
 * Loading the module starts them and returns, so that a shell can read debugfs and turn module
 * parameters beside them; the parameter `running` says when they have ended, `wrong` how often
 * something was not as it must be. What judges a race is the kernel: KCSAN, lockdep, KASAN
 * (scripts/races). Here it is seen to that each call answers with one of its errnos, that a peer
 * reads the page that was granted and no other, that all can be taken down and the counters agree,
 * and that every operation really happened: a race that was never run is not clean but unknown.
 *
 * With `minutes` it is a soak (scripts/soak): the time is cut into parts, and between two of them
 * everything is taken down and counted. The core's objects must be as many as before, memory no
 * less. What only the first parts take (the parking PD, graves of handles, the kernel's own caches)
 * is there by the second, which the later ones are compared with.
 *
 * Each thread throws its own dice from the parameter `seed`. That repeats the calls of each thread;
 * how they meet is the scheduler's.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/jump_label.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/vmstat.h>
#include <rdma/ib_dma.h>
#include <rdma/restrack.h>

#include "base/compat.h"
#include "base/core.h"
#include "fmr/pool.h"
#include "stock/magazine.h"
#include "race.h"

static unsigned int rounds = 20000;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "operations of each thread");

static unsigned int minutes;
module_param(minutes, uint, 0444);
MODULE_PARM_DESC(minutes, "soak for so long, whatever the rounds (0: no)");

static unsigned int seed = 1;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "of the dice");

static unsigned int ulps = 1;
module_param(ulps, uint, 0444);
MODULE_PARM_DESC(ulps, "ULPs, each with PDs and objects of its own");

static unsigned int threads = 4;
module_param(threads, uint, 0444);
MODULE_PARM_DESC(threads, "threads of each ULP, dealt to the CPUs in turn");

static bool running;
module_param(running, bool, 0444);
MODULE_PARM_DESC(running, "they have not ended yet");

static unsigned int wrong;
module_param(wrong, uint, 0444);
MODULE_PARM_DESC(wrong, "what was not as it must be");

#define MOST_ULPS	8
#define MOST_THREADS	32	/* of all ULPs */
#define MOST_OPS	64
#define PARTS		10	/* of a soak */
#define SLAB_KB		1024	/* what the kernel's own counting may be off by */
#define AVAILABLE_KB	4096	/* and by what CPUs keep to themselves, see scripts/soak */

static struct account {
	atomic_t done, refused;
} account[MOST_OPS];

static struct ib_device *device;
static struct mm_struct *space;
static atomic_t rounds_done, all_wrong;
static bool stop;
static struct task_struct *leader;

void race_wrong(const char *what, long err)
{
	if (atomic_inc_return(&all_wrong) <= 20)
		pr_err("wrong: %s: %ld\n", what, err);
}

/* --- one operation, in a context that it allows --- */

struct call {
	struct irq_work work;
	const struct race_op *op;
	struct racer *racer;
	int ret;
};

static void hardirq_call(struct irq_work *work)
{
	struct call *call = container_of(work, struct call, work);

	call->ret = call->op->run(call->racer);
}

static int run_op(const struct race_op *op, struct racer *r)
{
	struct call call = { .op = op, .racer = r };
	unsigned long flags;
	int ret;

	switch (op->kind == RACE_ANY && !IS_ENABLED(CONFIG_PREEMPT_RT) ? race_dice(r, 4) : 0) {
	case 1:
		local_irq_save(flags);
		ret = op->run(r);
		local_irq_restore(flags);
		return ret;
	case 2:
		local_bh_disable();
		ret = op->run(r);
		local_bh_enable();
		return ret;
	case 3:
		init_irq_work(&call.work, hardirq_call);
		irq_work_queue(&call.work);
		irq_work_sync(&call.work);
		return call.ret;
	default:
		return op->run(r);
	}
}

static bool may_refuse(const struct race_op *op, int err)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(op->refusals) && op->refusals[i]; i++)
		if (op->refusals[i] == err)
			return true;
	return false;
}

/*
 * A race that is meant: ib_mr counts under a lock, and here that is read without it. A KCSAN that
 * does not report this one would not report another of ib_mr's (scripts/races).
 */
static noinline void race_planted(const struct race *race)
{
	const struct ib_fmr_pool *pool = READ_ONCE(race->pool[0]);
	unsigned int i;
	u64 takes;

	for (i = 0; pool && i < 16; i++) {
		takes = pool->mag->takes;
		barrier_data(&takes);
	}
}

u32 race_focus(void)
{
	return atomic_read(&rounds_done) / 256;
}

/*
 * No code is patched while CPUs run it. QEMU's threads (7.2) may keep a translation of the moment
 * between two bytes, and then the guest loops in int3 or dies of it; a module of two functions and
 * a static key does that after 12,000 turns. So the key of the DMA checker is held as long as its
 * mode is turned, and every other part of a soak does without both.
 */
static bool turns_modes;

bool race_turns_modes(void)
{
	return READ_ONCE(turns_modes);
}

static void modes_begin(void)
{
	static_branch_inc(&ib_mr_dma_checking);
	WRITE_ONCE(turns_modes, true);
}

static void modes_end(void)
{
	unsigned int i;

	WRITE_ONCE(turns_modes, false);
	/* The checker lets go of it when nothing is mapped any more; a shell turns it, too. */
	for (i = 0; i < 100 && static_key_count(&ib_mr_dma_checking.key) > 1; i++) {
		ib_mr_dma_check_set(device, IB_MR_DMA_OFF);
		msleep(100);
	}
	if (static_key_count(&ib_mr_dma_checking.key) > 1)
		race_wrong("the DMA checker does not let go of its key", 0);
	static_branch_dec(&ib_mr_dma_checking);
}

/*
 * Whatever takes a microsecond races only with what comes in that microsecond, and what sleeps
 * takes thousands of them. So three of four are of one family of those that do not sleep, the same
 * for all threads for a while.
 */
static const struct race_op *throw(struct racer *r)
{
	unsigned int family = race_dice(r, 4) ? 1 + race_focus() % RACE_FAMILIES : 0;
	const struct race_op *op;
	u32 sum = 0, n;

	for (op = race_ops; op < race_ops + race_nr_ops; op++)
		if (!family || op->family == family)
			sum += op->weight;
	n = race_dice(r, sum);
	for (op = race_ops;; op++) {
		if (family && op->family != family)
			continue;
		if (n < op->weight)
			return op;
		n -= op->weight;
	}
}

static void step(struct racer *r)
{
	const struct race_op *op = throw(r);
	struct account *a = &account[op - race_ops];
	int ret, idx;

	if (op->kind == RACE_ENDS) {
		ret = run_op(op, r);
	} else {
		idx = srcu_read_lock(&r->race->readers);
		ret = run_op(op, r);
		if (IS_ENABLED(CONFIG_KCSAN))
			race_planted(r->race);
		srcu_read_unlock(&r->race->readers, idx);
	}
	if (!ret)
		atomic_inc(&a->done);
	else if (ret < 0)
		atomic_inc(&a->refused);
	if (ret < 0 && !may_refuse(op, ret))
		race_wrong(op->name, ret);
}

static int race_thread(void *arg)
{
	struct racer *r = arg;
	unsigned int i;

	for (i = 0; (minutes || i < rounds) && !READ_ONCE(stop); i++) {
		step(r);
		atomic_inc(&rounds_done);
		cond_resched();
	}
	race_let_go(r);
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

/* --- threads and ULPs --- */

static struct racer *racer_new(struct race *race, unsigned int part, unsigned int n)
{
	struct racer *r = kzalloc(sizeof(*r), GFP_KERNEL);

	if (!r)
		return NULL;
	r->race = race;
	r->dma = kzalloc(2 * PAGE_SIZE, GFP_KERNEL);
	r->bytes = kzalloc(PAGE_SIZE, GFP_KERNEL);
	prandom_seed_state(&r->rnd, (u64)seed << 16 | part << 8 | n);
	return r;
}

static void racer_free(struct racer *r)
{
	kfree(r->dma);
	kfree(r->bytes);
	kfree(r);
}

/* Until the threads have done their rounds, or the time is over. */
static void watch(unsigned int all, unsigned long end)
{
	unsigned int tenth = 0, now;

	while (!atomic_read(&all_wrong) && !kthread_should_stop()) {
		msleep(100);
		if (minutes && time_after(jiffies, end))
			break;
		if (minutes)
			continue;
		now = atomic_read(&rounds_done);
		if (now / (all / 10 + 1) > tenth) {
			tenth = now / (all / 10 + 1);
			pr_info("%u0 %% of %u operations\n", tenth, all);
		}
		if (now >= all)
			break;
	}
}

/* One part: made, run, taken down. */
static void race_part(struct race *race, unsigned int part, unsigned long end)
{
	struct task_struct *task[MOST_THREADS] = {};
	struct racer *r[MOST_THREADS] = {};
	unsigned int i, n = 0;
	int cpu = -1, err = 0;

	WRITE_ONCE(stop, false);
	if (part % 2 == 0)
		modes_begin();
	for (i = 0; i < ulps && !err; i++) {
		race[i].dev = device;
		race[i].mm = space;
		err = race_make(&race[i]);
	}
	if (err)
		race_wrong("making the objects", err);
	for (n = 0; n < ulps * threads && !err; n++) {
		cpu = cpumask_next(cpu, cpu_online_mask);
		if (cpu >= nr_cpu_ids)
			cpu = cpumask_first(cpu_online_mask);
		r[n] = racer_new(&race[n % ulps], part, n);
		err = r[n] && r[n]->dma && r[n]->bytes ? 0 : -ENOMEM;
		if (err)
			break;
		task[n] = kthread_create(race_thread, r[n], "ib_mr_race/%u", n);
		err = PTR_ERR_OR_ZERO(task[n]);
		if (err)
			break;
		kthread_bind(task[n], cpu);
		wake_up_process(get_task_struct(task[n]));
	}
	if (err)
		race_wrong("starting the threads", err);
	else
		watch(rounds * ulps * threads, end);
	WRITE_ONCE(stop, true);
	for (n = 0; n < MOST_THREADS; n++) {
		if (!IS_ERR_OR_NULL(task[n])) {
			kthread_stop(task[n]);
			put_task_struct(task[n]);
		}
		if (r[n])
			racer_free(r[n]);
	}
	for (i = 0; i < ulps; i++)
		race_unmake(&race[i]);
	if (part % 2 == 0)
		modes_end();
	if (!ib_mr_check_invariants(device))
		race_wrong("the counters do not agree", 0);
}

/* --- the account --- */

struct sample {
	long available_kb, slab_kb;
	int objects[RDMA_RESTRACK_MAX];
};

static void take(struct sample *s)
{
	unsigned int i;

	rcu_barrier_tasks();
	rcu_barrier();
	s->available_kb = si_mem_available() << (PAGE_SHIFT - 10);
	s->slab_kb = (global_node_page_state_pages(NR_SLAB_UNRECLAIMABLE_B) +
		      global_node_page_state_pages(NR_SLAB_RECLAIMABLE_B)) << (PAGE_SHIFT - 10);
	for (i = 0; i < RDMA_RESTRACK_MAX; i++)
		s->objects[i] = rdma_restrack_count(device, i, true);
}

static void compare(const struct sample *base, const struct sample *s)
{
	unsigned int i;

	for (i = 0; i < RDMA_RESTRACK_MAX; i++)
		if (s->objects[i] != base->objects[i])
			race_wrong("objects of the core are left, or gone; type", i);
	if (s->slab_kb > base->slab_kb + SLAB_KB)
		race_wrong("slab has grown, KiB", s->slab_kb - base->slab_kb);
	if (s->available_kb < base->available_kb - AVAILABLE_KB)
		race_wrong("memory has shrunk, KiB", base->available_kb - s->available_kb);
}

static void soak(struct race *race)
{
	unsigned long begin = jiffies, all = minutes * 60 * HZ;
	struct sample base = {}, s;
	unsigned int part;

	for (part = 1; part <= PARTS && !atomic_read(&all_wrong); part++) {
		if (kthread_should_stop())
			race_wrong("unloaded before the end", part);
		race_part(race, part, begin + all / PARTS * part);
		take(&s);
		if (part == 2)
			base = s;
		pr_info("%u of %u min: %u operations, %d wrong; left: %d regions, %d QPs, %d CQs, %d PDs; slab %ld KiB, available %ld KiB\n",
			jiffies_to_msecs(jiffies - begin) / 60000, minutes,
			atomic_read(&rounds_done), atomic_read(&all_wrong),
			s.objects[RDMA_RESTRACK_MR], s.objects[RDMA_RESTRACK_QP],
			s.objects[RDMA_RESTRACK_CQ], s.objects[RDMA_RESTRACK_PD], s.slab_kb,
			s.available_kb);
		if (part > 2)
			compare(&base, &s);
	}
}

static void tell(void)
{
	unsigned int i;

	for (i = 0; i < race_nr_ops; i++) {
		int done = atomic_read(&account[i].done);

		pr_info("%-12s %8d done %8d refused\n", race_ops[i].name, done,
			atomic_read(&account[i].refused));
		if (!done)
			race_wrong("never done", i);
	}
}

static int race_leader(void *arg)
{
	struct race *race = arg;

	if (minutes)
		soak(race);
	else
		race_part(race, 0, 0);
	mmput(space);
	if (!atomic_read(&all_wrong))
		tell();
	pr_info("ended: %u operations, %d wrong\n", atomic_read(&rounds_done),
		atomic_read(&all_wrong));
	WRITE_ONCE(wrong, atomic_read(&all_wrong));
	smp_store_release(&running, false);	/* who sees that finds @wrong */
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

/* --- the module --- */

static struct race *all_ulps;

static int race_add(struct ib_device *dev)
{
	if (!device && dev->ops.driver_id == RDMA_DRIVER_RXE)
		device = dev;
	return 0;
}

static struct ib_client race_client = { .name = "ib_mr_race", .add = race_add };

static void ulps_free(void)
{
	unsigned int i;

	for (i = 0; i < ulps; i++)
		cleanup_srcu_struct(&all_ulps[i].readers);
	kfree(all_ulps);
}

static int __init race_init(void)
{
	unsigned int i;
	int err;

	if (!rounds || !threads || !ulps || ulps > MOST_ULPS || threads > MOST_THREADS / ulps ||
	    rounds > INT_MAX / MOST_THREADS || race_nr_ops > MOST_OPS || !current->mm)
		return -EINVAL;
	err = ib_register_client(&race_client);
	if (err)
		return err;
	err = -ENODEV;
	if (!device)
		goto err_client;
	err = -ENOMEM;
	all_ulps = kcalloc(MOST_ULPS, sizeof(*all_ulps), GFP_KERNEL);
	if (!all_ulps)
		goto err_client;
	for (i = 0; i < ulps; i++) {
		mutex_init(&all_ulps[i].reading);
		err = init_srcu_struct(&all_ulps[i].readers);
		if (err) {
			ulps = i;
			goto err_ulps;
		}
	}
	space = current->mm;
	mmget(space);
	running = true;
	leader = kthread_run(race_leader, all_ulps, "ib_mr_race/leader");
	err = PTR_ERR_OR_ZERO(leader);
	if (!err)
		return 0;
	mmput(space);
err_ulps:
	ulps_free();
err_client:
	ib_unregister_client(&race_client);
	return err;
}

static void __exit race_exit(void)
{
	kthread_stop(leader);
	ulps_free();
	ib_unregister_client(&race_client);
}

module_init(race_init);
module_exit(race_exit);

MODULE_DESCRIPTION("Races on ib_mr's objects, and a soak of them");
MODULE_LICENSE("Dual BSD/GPL");
IBMR_IMPORT_INTERNAL();
