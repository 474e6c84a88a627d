// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ground under the cases about FMRs and their pools; fmr_helpers.h says what there is.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kprobes.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include <linux/umh.h>
#include "base/compat.h"
#include "fmr_helpers.h"
#include "proc.h"

/* FMRs. */

int ibt_unmap(struct ib_fmr *fmr)
{
	LIST_HEAD(list);
	int err;

	list_add(&fmr->list, &list);
	err = ib_unmap_fmr(&list);
	list_del_init(&fmr->list);
	return err;
}

static void ibt_fmr_end(struct kunit *test, void *arg)
{
	KUNIT_EXPECT_EQ(test, ibt_unmap(arg), 0);
	KUNIT_EXPECT_EQ(test, ib_dealloc_fmr(arg), 0);
}

struct ib_fmr *ibt_fmr_attr(struct kunit *test, struct ib_pd *pd, int access,
			    struct ib_fmr_attr attr)
{
	struct ib_fmr *fmr = ib_alloc_fmr(pd, access, &attr);

	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR(fmr), "ib_alloc_fmr: %ld", PTR_ERR(fmr));
	ibt_defer(test, ibt_fmr_end, fmr);
	return fmr;
}

struct ib_fmr *ibt_fmr(struct kunit *test, struct ib_pd *pd, int access, int max_pages,
		       int max_maps)
{
	return ibt_fmr_attr(test, pd, access, (struct ib_fmr_attr){
		.max_pages = max_pages, .max_maps = max_maps, .page_shift = PAGE_SHIFT });
}

void ibt_fmr_free(struct kunit *test, struct ib_fmr *fmr)
{
	ibt_forget(test, ibt_fmr_end, fmr);
	ibt_fmr_end(test, fmr);
}

/* Pools. */

static void ibt_pool_end(struct kunit *test, void *arg)
{
	ib_destroy_fmr_pool(arg);
}

struct ib_fmr_pool *ibt_pool(struct kunit *test, struct ib_pd *pd, struct ib_fmr_pool_param param)
{
	struct ib_fmr_pool *pool;

	param.max_pages_per_fmr = param.max_pages_per_fmr ?: 16;
	param.page_shift = param.page_shift ?: PAGE_SHIFT;
	param.access = param.access ?: FMR_ALL;
	param.pool_size = param.pool_size ?: 8;
	param.dirty_watermark = param.dirty_watermark ?: param.pool_size / 4;
	pool = ib_create_fmr_pool(pd, &param);
	KUNIT_ASSERT_FALSE_MSG(test, IS_ERR(pool), "ib_create_fmr_pool: %ld", PTR_ERR(pool));
	ibt_defer(test, ibt_pool_end, pool);
	return pool;
}

void ibt_pool_destroy(struct kunit *test, struct ib_fmr_pool *pool)
{
	ibt_forget(test, ibt_pool_end, pool);
	ib_destroy_fmr_pool(pool);
}

/* A put without a get is refused, so the hold must be ours: it is the last user then. */
bool ibt_pd_idle(struct ib_pd *pd)
{
	struct ibmr_dev *dev = ibmr_dev_get(pd->device);
	unsigned int tries, users = 0;
	struct ibmr_pd *ipd;

	for (tries = 0; dev && tries < 100; tries++) {
		users = 0;
		mutex_lock(&dev->pd_lock);
		hash_for_each_possible(dev->pds, ipd, node, (unsigned long)pd)
			if (ipd->pd == pd)
				users = ipd->users;
		mutex_unlock(&dev->pd_lock);
		if (!users)
			break;
		msleep(20);
	}
	if (dev)
		ibmr_dev_put(dev);
	return !users;
}

u64 *ibt_page_list(struct kunit *test, const struct ibt_buf *b)
{
	unsigned int n = DIV_ROUND_UP(b->size, PAGE_SIZE), i;
	u64 *list = kunit_kcalloc(test, n, sizeof(*list), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, list);
	for (i = 0; i < n; i++)
		list[i] = (uintptr_t)ibt_ptr(b, (size_t)i * PAGE_SIZE);
	return list;
}

int ibt_map(struct ib_fmr *fmr, u64 *list, int n, u64 iova)
{
	unsigned int tries;
	int err = -EAGAIN;

	for (tries = 0; tries < 500 && err == -EAGAIN; tries++) {
		if (tries)
			msleep(20);
		err = ib_map_phys_fmr(fmr, list, n, iova);
	}
	return err;
}

struct ib_pool_fmr *ibt_pool_map(struct ib_fmr_pool *pool, u64 *list, int n, u64 iova)
{
	struct ib_pool_fmr *fmr = ERR_PTR(-EAGAIN);
	unsigned int tries;

	for (tries = 0; tries < 500 && fmr == ERR_PTR(-EAGAIN); tries++) {
		if (tries)
			msleep(20);
		fmr = ib_fmr_pool_map_phys(pool, list, n, iova);
	}
	return fmr;
}

/* Verdicts. */

static void ibt_op_is(struct ibt_pair *p, enum ibt_op op, u32 key, u64 iova, u32 len,
		      enum ib_wc_status want)
{
	enum ib_wc_status status = ibt_rdma(p, op, p->req.buf, key, iova, len);

	KUNIT_EXPECT_EQ_MSG(p->test, status, want, "%s of %u bytes at %#llx by %#x: %s",
			    ibt_op_name(op), len, iova, key, ib_wc_status_msg(status));
}

void ibt_expect_key(struct ibt_pair *p, u32 key, u64 iova, struct ibt_buf *b, size_t off,
		    size_t len)
{
	size_t at, n, bad;
	u8 *last = ibt_ptr(b, off + len - 1);

	for (at = 0; at < len; at += n) {
		n = min_t(size_t, len - at, IBT_LOCAL);
		memset(p->req.buf, 0xa5, n);
		ibt_op_is(p, IBT_READ, key, iova + at, n, IB_WC_SUCCESS);
		bad = ibt_diff_copy(b, off + at, n, p->req.buf);
		KUNIT_EXPECT_EQ_MSG(p->test, bad, off + at + n, "first wrong byte");
	}
	*p->req.buf = ~*last;
	ibt_op_is(p, IBT_WRITE, key, iova + len - 1, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(p->test, *last, (u8)~ibt_pat(b->seed, off + len - 1));
	ibt_fill(b, off + len - 1, 1, b->seed);
	ibt_op_is(p, IBT_WRITE, key, iova + len - 1, 2, IB_WC_REM_ACCESS_ERR);
	if (iova)
		ibt_op_is(p, IBT_READ, key, iova - 1, 2, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_TRUE(p->test, ibt_intact(b));
}

void ibt_expect_shut(struct ibt_pair *p, u32 key, u64 iova)
{
	ibt_op_is(p, IBT_READ, key, iova, 1, IB_WC_REM_ACCESS_ERR);
	ibt_op_is(p, IBT_WRITE, key, iova, 1, IB_WC_REM_ACCESS_ERR);
}

bool ibt_can_read(struct ibt_pair *p, u32 key, u64 iova)
{
	return ibt_rdma(p, IBT_READ, p->req.buf, key, iova, 8) == IB_WC_SUCCESS;
}

/* Contexts. */

struct ibt_call {
	void (*fn)(void *arg);
	void *arg;
	struct completion done;
	struct tasklet_struct tasklet;
	struct timer_list timer;
	struct irq_work irq;
};

static void ibt_call(struct ibt_call *c)
{
	c->fn(c->arg);
	complete(&c->done);
}

static void ibt_call_tasklet(struct tasklet_struct *t)
{
	ibt_call(container_of(t, struct ibt_call, tasklet));
}

static void ibt_call_timer(struct timer_list *t)
{
	ibt_call(container_of(t, struct ibt_call, timer));
}

static void ibt_call_irq(struct irq_work *w)
{
	ibt_call(container_of(w, struct ibt_call, irq));
}

const char *ibt_context_name(enum ibt_context ctx)
{
	static const char *const names[IBT_CONTEXTS] = {
		[IBT_PROCESS] = "process", [IBT_BH_OFF] = "softirqs off",
		[IBT_IRQ_OFF] = "interrupts off", [IBT_SPINLOCK] = "under a spinlock",
		[IBT_TASKLET] = "tasklet", [IBT_TIMER] = "timer", [IBT_HARDIRQ] = "hardirq",
	};

	return names[ctx];
}

void ibt_in_context(struct kunit *test, enum ibt_context ctx, void (*fn)(void *arg), void *arg)
{
	static DEFINE_SPINLOCK(lock);
	struct ibt_call *c = kzalloc(sizeof(*c), GFP_KERNEL);
	unsigned long flags;

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->fn = fn;
	c->arg = arg;
	init_completion(&c->done);
	switch (ctx) {
	case IBT_BH_OFF:
		local_bh_disable();
		ibt_call(c);
		local_bh_enable();
		break;
	case IBT_IRQ_OFF:
		local_irq_save(flags);
		ibt_call(c);
		local_irq_restore(flags);
		break;
	case IBT_SPINLOCK:
		spin_lock_bh(&lock);
		ibt_call(c);
		spin_unlock_bh(&lock);
		break;
	case IBT_TASKLET:
		tasklet_setup(&c->tasklet, ibt_call_tasklet);
		tasklet_schedule(&c->tasklet);
		wait_for_completion(&c->done);
		tasklet_kill(&c->tasklet);
		break;
	case IBT_TIMER:
		timer_setup(&c->timer, ibt_call_timer, 0);
		mod_timer(&c->timer, jiffies + 1);
		wait_for_completion(&c->done);
		break;
	case IBT_HARDIRQ:
		init_irq_work(&c->irq, ibt_call_irq);
		irq_work_queue(&c->irq);
		wait_for_completion(&c->done);
		irq_work_sync(&c->irq);
		break;
	default:
		ibt_call(c);
	}
	/* A timer's function may still be on its way out of complete(). */
	synchronize_rcu();
	kfree(c);
}

/* Parameters and counters. */

struct ibt_was {
	unsigned int *param;
	unsigned int value;
};

static void ibt_set_back(struct kunit *test, void *arg)
{
	struct ibt_was *was = arg;

	WRITE_ONCE(*was->param, was->value);
	kfree(was);
}

void ibt_set(struct kunit *test, unsigned int *param, unsigned int value)
{
	struct ibt_was *was = kzalloc(sizeof(*was), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, was);
	was->param = param;
	was->value = *param;
	ibt_defer(test, ibt_set_back, was);
	WRITE_ONCE(*param, value);
}

static void ibt_replace_off(struct kunit *test, void *arg)
{
	WRITE_ONCE(ibmr_force_replace, false);
}

void ibt_force_replace(struct kunit *test)
{
	ibt_defer(test, ibt_replace_off, NULL);
	WRITE_ONCE(ibmr_force_replace, true);
}

struct ibt_mag ibt_mag(struct ibmr_mag *mag)
{
	struct ibt_mag m;

	spin_lock_irq(&mag->lock);
	m = (struct ibt_mag){
		.stock = mag->stock.nr, .in_use = mag->in_use, .created = mag->created,
		.retired = mag->retired.nr, .quarantine = mag->quarantine.nr,
		.due = mag->due.nr, .promised = mag->promised, .target = mag->target,
		.rekeyed = mag->rekeyed, .replaced = mag->replaced, .empties = mag->empties,
	};
	spin_unlock_irq(&mag->lock);
	return m;
}

bool ibt_mag_settles(struct ibmr_mag *mag, unsigned int in_use, unsigned int ms)
{
	unsigned long deadline = jiffies + msecs_to_jiffies(ms);
	struct ibt_mag m;

	do {
		m = ibt_mag(mag);
		if (m.in_use == in_use && m.stock + m.in_use + m.retired == m.created)
			return true;
		msleep(20);
	} while (time_before(jiffies, deadline));
	return false;
}

/* A second device. */

static struct ib_device *second;
static DECLARE_COMPLETION(second_there);

static int ibt_second_add(struct ib_device *dev)
{
	if (dev->ops.driver_id == RDMA_DRIVER_RXE && !strcmp(dev_name(&dev->dev), "rxe_second")) {
		second = dev;
		complete(&second_there);
	}
	return 0;
}

static void ibt_second_remove(struct ib_device *dev, void *data)
{
	if (dev == second)
		second = NULL;
}

static struct ib_client ibt_second_client = {
	.name = "ib_mr_test_second",
	.add = ibt_second_add,
	.remove = ibt_second_remove,
};

int ibt_second_delete(void)
{
	return ibt_shell("rdma link delete rxe_second");
}

static void ibt_second_end(struct kunit *test, void *arg)
{
	if (second)
		KUNIT_EXPECT_EQ(test, ibt_second_delete(), 0);
	ib_unregister_client(&ibt_second_client);
}

struct ib_device *ibt_second(struct kunit *test)
{
	int ret;

	reinit_completion(&second_there);
	KUNIT_ASSERT_EQ(test, ib_register_client(&ibt_second_client), 0);
	ibt_defer(test, ibt_second_end, NULL);
	ret = ibt_shell("rdma link add rxe_second type rxe netdev lo");
	KUNIT_ASSERT_EQ_MSG(test, ret, 0, "a second rxe device could not be made");
	KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&second_there, 10 * HZ), 0UL);
	return second;
}

/*
 * A responder held up. The third argument and on of rxe_mr_copy() do not matter. It takes kprobes
 * and a second CPU, of which the cases ask for the latter.
 */

static struct {
	u64 iova;
	bool armed, held, go, expired;
} hold;

#ifdef CONFIG_KPROBES
static int ibt_hold_pre(struct kprobe *kp, struct pt_regs *regs)
{
	unsigned int ms;

	if (!READ_ONCE(hold.armed) || regs_get_kernel_argument(regs, 1) != hold.iova ||
	    !xchg(&hold.armed, false))
		return 0;
	WRITE_ONCE(hold.held, true);
	for (ms = 0; ms < 2000 && !READ_ONCE(hold.go); ms++)
		mdelay(1);
	hold.expired = ms == 2000;
	WRITE_ONCE(hold.held, false);
	return 0;
}

static struct kprobe hold_probe;
#endif

/*
 * The case's own thread must not be where the packet will be held. A tasklet runs where the packet
 * is sent from; of a workqueue that is not known, and the scheduler is left to move us away.
 */
void ibt_hold_elsewhere(void)
{
	if (!IBMR_DRIVER_WORKQUEUE)
		set_cpus_allowed_ptr(current, cpumask_of(cpumask_first(cpu_online_mask)));
}

int ibt_hold(u64 iova)
{
	int err = -EOPNOTSUPP;

	hold.iova = iova;
	hold.held = false;
	hold.go = false;
	hold.expired = false;
#ifdef CONFIG_KPROBES
	hold_probe = (struct kprobe){
		.symbol_name = "rxe_mr_copy", .pre_handler = ibt_hold_pre,
	};
	err = register_kprobe(&hold_probe);
#endif
	if (!err)
		xchg(&hold.armed, true);	/* after what it goes by */
	return err;
}

bool ibt_held(void)
{
	unsigned int tries;

	for (tries = 0; tries < 5000; tries++) {
		if (READ_ONCE(hold.held))
			return true;
		usleep_range(500, 1000);
	}
	return false;
}

void ibt_release(void)
{
	WRITE_ONCE(hold.armed, false);
	WRITE_ONCE(hold.go, true);
#ifdef CONFIG_KPROBES
	unregister_kprobe(&hold_probe);
#endif
}

bool ibt_hold_expired(void)
{
	return hold.expired;
}
