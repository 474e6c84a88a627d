// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Magazines: stocks of armed MRs.
 *
 * Normal operation. A user takes an MR from the stock under the magazine's lock, maps it live,
 * publishes it. When done, the user withdraws it and it is retired: its key is dead at that
 * moment, but a packet that was let in before may still copy under its mapping. So it waits for one
 * grace period of RCU tasks, which is over when every task and softirq that might be such a packet
 * has passed; a batch waits together. Then it is re-keyed: invalidated and armed with a variant of
 * its key that it never had, drawn at random, and it is stock again. An MR all of whose variants
 * are spent is exchanged for a new one.
 *
 * Short of stock. Retired MRs are not waited for but replaced: deregistering waits for whoever
 * still has the MR, packets included, and a new MR has a new index. That costs about ten times
 * what re-keying does, so the target is raised as well, until the stock covers what is taken during
 * a grace period; a look every few seconds lowers it again. A user who finds the stock empty is
 * refused (-EAGAIN), and nothing of his has changed.
 *
 * Fences. Whoever promises that the device cannot touch the memory any more when he returns uses
 * ibmr_mag_fence() or ibmr_mag_flush(), which replace.
 *
 * What may be trusted after a failure: an MR whose re-keying failed or is not known to have been
 * done is replaced, whatever state the device has it in.
 *
 * An MR is in one place at a time: @stock, in use (with its user), @retired, @quarantine, @due, or
 * in the worker's hand; the counters are checked against that by ibmr_mags_agree().
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/moduleparam.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/fault.h"
#include "base/keys.h"
#include "mr/access.h"
#include "mr/regqp.h"
#include "stock/magazine.h"

#define LOOK_EVERY	(5 * HZ)

bool ibmr_force_replace;
IBMR_EXPORT_INTERNAL(ibmr_force_replace);
module_param_named(force_replace, ibmr_force_replace, bool, 0644);
MODULE_PARM_DESC(force_replace, "replace every retired MR instead of re-keying it (for tests)");

unsigned int ibmr_stock_limit;
IBMR_EXPORT_INTERNAL(ibmr_stock_limit);
module_param_named(stock_limit, ibmr_stock_limit, uint, 0644);
MODULE_PARM_DESC(stock_limit,
		 "most armed MRs of one magazine (0: four times what was promised, and 1024)");

/*
 * Maps below this address may go the short way. None may while maps are to fail, so that it costs
 * the short way nothing to be told.
 */
u64 ibmr_short_iova __read_mostly = IBMR_IOVA_PLAIN;
unsigned int ibmr_fail_map;

static int set_fail_map(const char *text, const struct kernel_param *kp)
{
	int err = param_set_uint(text, kp);

	if (!err)
		WRITE_ONCE(ibmr_short_iova, READ_ONCE(ibmr_fail_map) ? 0 : IBMR_IOVA_PLAIN);
	return err;
}

static const struct kernel_param_ops fail_map_ops = { .set = set_fail_map, .get = param_get_uint };
module_param_cb(fail_map, &fail_map_ops, &ibmr_fail_map, 0644);
__MODULE_PARM_TYPE(fail_map, "uint");
MODULE_PARM_DESC(fail_map, "let every n-th map fail with -EAGAIN (for tests; 0: none)");

bool ibmr_no_fmr;
IBMR_EXPORT_INTERNAL(ibmr_no_fmr);
module_param_named(no_fmr, ibmr_no_fmr, bool, 0644);
MODULE_PARM_DESC(no_fmr,
		 "from now on say -ENOSYS, as a device without FMRs and windows (for tests of ULPs)");

static struct workqueue_struct *mag_wq;
struct workqueue_struct *ibmr_pool_wq;

bool ibmr_map_fails(void)
{
	unsigned int every = READ_ONCE(ibmr_fail_map);
	static atomic_t nth;

	/* It may have been set to 0 since the caller looked. */
	return every && (unsigned int)atomic_inc_return(&nth) % every == 0;
}

/* More than what was promised. MRs with a large list are dear, so just enough to move them. */
static unsigned int margin(const struct ibmr_mag *mag)
{
	if (mag->flags & IBMR_MAG_NO_MARGIN)
		return 0;
	return max(mag->capacity > IBMR_LIVE_PAGES ? 2U : 16U, mag->promised / 4);
}

static unsigned int limit(const struct ibmr_mag *mag)
{
	/* All who share it may want these rights at one time, whatever they were promised. */
	unsigned int users = max(mag->promised, READ_ONCE(mag->shared));
	unsigned int floor = mag->promised + 1;
	unsigned int n = READ_ONCE(ibmr_stock_limit);

	return max(floor, n ? n : 4 * users + 1024);
}

/* Under mag->lock, or before the magazine is known. */
static void set_target(struct ibmr_mag *mag, unsigned int target)
{
	unsigned int used;

	mag->target = min(target, limit(mag));
	/* What is kept in use, promised or not, is not spare. */
	used = max(mag->promised, mag->in_use);
	mag->low = max(margin(mag) / 2, (mag->target - min(mag->target, used)) / 4);
	mag->batch = clamp(margin(mag) / 2, 1U, (unsigned int)IBMR_ARM_BATCH);
}

/* Call the worker, once. Under mag->lock, any context. */
void ibmr_mag_kick(struct ibmr_mag *mag)
{
	if (mag->kicked || mag->gone || mag->dying)
		return;
	mag->kicked = true;
	queue_work(mag_wq, &mag->work);
}

void ibmr_mag_empty(struct ibmr_mag *mag)
{
	mag->empties++;
	ibmr_mag_kick(mag);
}

/* One that is not in use was invalidated by a guess. The worker takes it out. Under mag->lock. */
void ibmr_mag_spoiled(struct ibmr_mag *mag)
{
	mag->spoiled = true;
	ibmr_mag_kick(mag);
}

static void mag_hold(struct ibmr_mag *mag)
{
	refcount_inc(&mag->refs);
}

void ibmr_mag_drop(struct ibmr_mag *mag)
{
	if (refcount_dec_and_test(&mag->refs)) {
		ibmr_dev_put(mag->dev);
		kfree_rcu(mag, grace);	/* who came from a key takes its lock */
	}
}

/* In the context of RCU tasks. */
static void grace_over(struct rcu_head *rcu)
{
	struct ibmr_mag *mag = container_of(rcu, struct ibmr_mag, grace);
	struct ibmr_armed *a;

	spin_lock_irq(&mag->lock);
	mag->waiting = false;
	if (!mag->due.nr)
		mag->due = ibmr_stack_steal(&mag->quarantine);
	while ((a = ibmr_stack_pop(&mag->quarantine)))
		ibmr_stack_push(&mag->due, a);
	ibmr_mag_kick(mag);
	spin_unlock_irq(&mag->lock);
	ibmr_mag_drop(mag);
}

/* What is invalidated in the stock is armed anew: it was not published, so nobody is waited for. */
static void sort_out(struct ibmr_mag *mag, struct ibmr_stack *again)
{
	struct ibmr_stack all = ibmr_stack_steal(&mag->stock);
	struct ibmr_armed *a;

	mag->spoiled = false;
	while ((a = ibmr_stack_pop(&all)))
		ibmr_stack_push(a->invalidated ? again : &mag->stock, a);
}

/* What there is to do now. Under mag->lock. */
static void plan(struct ibmr_mag *mag, struct ibmr_stack *again, struct ibmr_stack *exchange,
		 unsigned int *more, bool *wait)
{
	struct ibmr_armed *a;
	u64 seen = mag->empties_seen;
	unsigned int have;

	mag->kicked = false;
	mag->empties_seen = mag->empties;
	*again = ibmr_stack_steal(&mag->due);
	*exchange = (struct ibmr_stack){};
	if (unlikely(mag->spoiled))
		sort_out(mag, again);

	if (READ_ONCE(ibmr_force_replace)) {
		*exchange = ibmr_stack_steal(&mag->retired);
	} else if (mag->flags & IBMR_MAG_AT_ONCE) {
		if (!again->nr)
			*again = ibmr_stack_steal(&mag->retired);
		while ((a = ibmr_stack_pop(&mag->retired)))
			ibmr_stack_push(again, a);
	}
	have = mag->stock.nr + again->nr + exchange->nr;
	if (have < mag->low || mag->empties != seen) {
		set_target(mag, mag->target + max3(1U, margin(mag), mag->target / 4));
		while (have < 2 * mag->low && (a = ibmr_stack_pop(&mag->retired))) {
			ibmr_stack_push(exchange, a);
			have++;
		}
	}
	*wait = !mag->waiting && mag->retired.nr;
	if (*wait) {
		mag->waiting = true;
		mag->quarantine = ibmr_stack_steal(&mag->retired);
	}
	*more = mag->target > mag->created ? mag->target - mag->created : 0;
	mag->peak = max(mag->peak, mag->in_use);
}

static void mag_work(struct work_struct *work)
{
	struct ibmr_mag *mag = container_of(work, struct ibmr_mag, work);
	struct ibmr_stack again, exchange;
	unsigned int more, noio;
	bool wait;

	if (!ibmr_dev_enter(mag->dev, &noio))
		return;
	mutex_lock(&mag->hand);
	spin_lock_irq(&mag->lock);
	plan(mag, &again, &exchange, &more, &wait);
	spin_unlock_irq(&mag->lock);

	if (wait) {
		mag_hold(mag);
		call_rcu_tasks(&mag->grace, grace_over);
	}
	ibmr_arm_rekey(mag, &again);
	ibmr_arm_replace(mag, &exchange);
	mutex_unlock(&mag->hand);
	if (more && ibmr_arm_grow(mag, more) && !READ_ONCE(mag->dying))
		queue_delayed_work(mag_wq, &mag->shrink, LOOK_EVERY);
	ibmr_dev_exit(mag->dev, noio);
}

/* Fewer are wanted than there are, going by what was taken since the last look? */
static void mag_shrink(struct work_struct *work)
{
	struct ibmr_mag *mag = container_of(to_delayed_work(work), struct ibmr_mag, shrink);
	struct ibmr_stack surplus = {};
	unsigned int want, floor;
	struct ibmr_armed *a;
	unsigned int noio;
	bool again;

	if (!ibmr_dev_enter(mag->dev, &noio))
		return;
	spin_lock_irq(&mag->lock);
	/* A grace period is below 200 ms, so a 25th of what 5 s took, and a quarter more. */
	want = min_t(u64, (mag->takes - mag->seen_takes) / 20, UINT_MAX / 2);
	mag->seen_takes = mag->takes;
	floor = max(mag->promised, mag->in_use);
	want += floor;
	floor += margin(mag);
	set_target(mag, max(floor, want));
	while (mag->created - surplus.nr > mag->target && mag->stock.nr > mag->low) {
		a = ibmr_stack_pop(&mag->stock);
		ibmr_stack_push(&surplus, a);
	}
	again = mag->created - surplus.nr > floor && !mag->dying;
	spin_unlock_irq(&mag->lock);
	ibmr_arm_discard(mag, &surplus);
	if (again)
		queue_delayed_work(mag_wq, &mag->shrink, LOOK_EVERY);
	ibmr_dev_exit(mag->dev, noio);
}

/* --- for users --- */

/**
 * ibmr_mag_fence() - wait until nothing can use withdrawn MRs any more
 * @mag: magazine
 * @withdrawn: MRs in hand, withdrawn; empty afterwards
 *
 * New ones take their place in the stock.
 * Context: process, may sleep; the device is entered.
 */
void ibmr_mag_fence(struct ibmr_mag *mag, struct ibmr_stack *withdrawn)
{
	unsigned int noio = memalloc_noio_save();

	ibmr_arm_replace(mag, withdrawn);
	memalloc_noio_restore(noio);
}

/* The same for everything that was retired before the call, wherever it is by now. */
void ibmr_mag_flush(struct ibmr_mag *mag)
{
	unsigned int noio = memalloc_noio_save();
	struct ibmr_stack all = {};
	struct ibmr_armed *a;

	/* What the worker has in hand is fenced, or was never published, when it lets go. */
	mutex_lock(&mag->hand);
	spin_lock_irq(&mag->lock);
	while ((a = ibmr_stack_pop(&mag->retired)))
		ibmr_stack_push(&all, a);
	while ((a = ibmr_stack_pop(&mag->quarantine)))
		ibmr_stack_push(&all, a);
	while ((a = ibmr_stack_pop(&mag->due)))
		ibmr_stack_push(&all, a);
	spin_unlock_irq(&mag->lock);
	ibmr_arm_replace(mag, &all);
	mutex_unlock(&mag->hand);
	memalloc_noio_restore(noio);
}

/* Move what has @tag. Under mag->lock. */
static void pick(struct ibmr_stack *from, const void *tag, struct ibmr_stack *to)
{
	struct ibmr_stack all = ibmr_stack_steal(from);
	struct ibmr_armed *a;

	while ((a = ibmr_stack_pop(&all)))
		ibmr_stack_push(a->tag == tag ? to : from, a);
}

/**
 * ibmr_mags_fence() - wait until nothing can use MRs any more that were mapped for one thing
 * @dev: device, entered
 * @tag: what they were tagged with, under their magazine's lock; none is in use any more
 *
 * Those that still wait are exchanged, in whichever magazine they are.
 * Context: process, may sleep.
 */
void ibmr_mags_fence(struct ibmr_dev *dev, const void *tag)
{
	unsigned int noio = memalloc_noio_save();
	struct ibmr_mag *mag;

	mutex_lock(&dev->mag_lock);
	list_for_each_entry(mag, &dev->mags, listed.entry) {
		struct ibmr_stack mine = {};

		if (!READ_ONCE(mag->tagged))
			continue;
		mutex_lock(&mag->hand);
		spin_lock_irq(&mag->lock);
		pick(&mag->retired, tag, &mine);
		pick(&mag->quarantine, tag, &mine);
		spin_unlock_irq(&mag->lock);
		ibmr_arm_replace(mag, &mine);
		mutex_unlock(&mag->hand);
	}
	mutex_unlock(&dev->mag_lock);
	memalloc_noio_restore(noio);
}

/**
 * ibmr_mag_promise() - have so many more ready
 * @mag: magazine
 * @more: MRs
 *
 * Context: process, may sleep; the device is entered.
 * Return: 0, or -ENOMEM with nothing promised.
 */
int ibmr_mag_promise(struct ibmr_mag *mag, unsigned int more)
{
	unsigned int need, got;

	spin_lock_irq(&mag->lock);
	mag->promised += more;
	set_target(mag, max(mag->target, mag->promised + margin(mag)));
	need = mag->target > mag->created ? mag->target - mag->created : 0;
	spin_unlock_irq(&mag->lock);

	got = ibmr_arm_grow(mag, need);
	if (got < need) {
		ibmr_mag_unpromise(mag, more);
		return -ENOMEM;
	}
	return 0;
}

void ibmr_mag_unpromise(struct ibmr_mag *mag, unsigned int fewer)
{
	spin_lock_irq(&mag->lock);
	mag->promised -= fewer;
	set_target(mag, mag->target);
	if (!mag->dying && !mag->gone)
		mod_delayed_work(mag_wq, &mag->shrink, LOOK_EVERY);
	spin_unlock_irq(&mag->lock);
}

/**
 * ibmr_mag_create() - make a magazine
 * @dev: device, entered and qualified
 * @access: rights, as the driver takes them
 * @capacity: pages an MR can hold
 * @flags: IBMR_MAG_*
 *
 * It is empty until ibmr_mag_promise().
 * Context: process, may sleep.
 * Return: the magazine; NULL without memory.
 */
struct ibmr_mag *ibmr_mag_create(struct ibmr_dev *dev, int access, unsigned int capacity,
				 unsigned int flags)
{
	struct ibmr_mag *mag = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL :
		kzalloc(sizeof(*mag), GFP_KERNEL);

	if (!mag)
		return NULL;
	spin_lock_init(&mag->lock);
	mutex_init(&mag->hand);
	refcount_set(&mag->refs, 1);
	mag->dev = dev;
	refcount_inc(&dev->refs);
	mag->park = dev->park;
	mag->access = access;
	mag->capacity = capacity;
	mag->flags = flags;
	INIT_WORK(&mag->work, mag_work);
	INIT_DELAYED_WORK(&mag->shrink, mag_shrink);
	mutex_lock(&dev->mag_lock);
	ibmr_list_add(dev, &mag->listed, &dev->mags);
	mutex_unlock(&dev->mag_lock);
	return mag;
}

/**
 * ibmr_mag_destroy() - let go of a magazine; every MR was given back
 * @mag: magazine
 *
 * Context: process, may sleep; the device is NOT entered, since the worker is waited for.
 */
void ibmr_mag_destroy(struct ibmr_mag *mag)
{
	struct ibmr_dev *dev = mag->dev;
	struct ibmr_armed *a;
	unsigned int noio;

	spin_lock_irq(&mag->lock);
	WRITE_ONCE(mag->dying, true);
	spin_unlock_irq(&mag->lock);
	cancel_work_sync(&mag->work);
	cancel_delayed_work_sync(&mag->shrink);

	noio = ibmr_dev_hold(dev);
	if (!mag->gone) {
		struct ibmr_stack all = {};

		mutex_lock(&mag->hand);	/* a fence waits for what is not fenced yet */
		spin_lock_irq(&mag->lock);
		while ((a = ibmr_stack_pop(&mag->stock)) || (a = ibmr_stack_pop(&mag->retired)) ||
		       (a = ibmr_stack_pop(&mag->quarantine)) || (a = ibmr_stack_pop(&mag->due)))
			ibmr_stack_push(&all, a);
		spin_unlock_irq(&mag->lock);
		ibmr_arm_discard(mag, &all);
		mutex_unlock(&mag->hand);
	}
	WARN_ON(mag->created);
	mutex_lock(&dev->mag_lock);
	list_del(&mag->listed.entry);
	mutex_unlock(&dev->mag_lock);
	ibmr_dev_exit(dev, noio);
	ibmr_mag_drop(mag);
}

static u32 shared_key(int access, unsigned int capacity, unsigned int flags)
{
	return capacity ^ (u32)access << 20 ^ flags << 28;
}

/* One more user of the magazine of just this kind that all share; NULL when there is none. */
struct ibmr_mag *ibmr_mag_find_shared(struct ibmr_dev *dev, int access, unsigned int capacity,
				      unsigned int flags)
{
	struct ibmr_mag *mag, *found = NULL;

	mutex_lock(&dev->mag_lock);
	hash_for_each_possible(dev->shared_mags, mag, shared_node,
			       shared_key(access, capacity, flags)) {
		if (mag->access != access || mag->capacity != capacity || mag->flags != flags)
			continue;
		WRITE_ONCE(mag->shared, mag->shared + 1);
		found = mag;
		break;
	}
	mutex_unlock(&dev->mag_lock);
	return found;
}

/* The same; made when there is none. */
struct ibmr_mag *ibmr_mag_get_shared(struct ibmr_dev *dev, int access, unsigned int capacity,
				     unsigned int flags)
{
	struct ibmr_mag *mag = ibmr_mag_find_shared(dev, access, capacity, flags);

	if (mag)
		return mag;
	mag = ibmr_mag_create(dev, access, capacity, flags);
	if (mag) {
		/* Two made at the same time both live on; that costs a second stock and no more. */
		mutex_lock(&dev->mag_lock);
		WRITE_ONCE(mag->shared, 1);
		hash_add(dev->shared_mags, &mag->shared_node, shared_key(access, capacity, flags));
		mutex_unlock(&dev->mag_lock);
	}
	return mag;
}

/* The device is NOT entered. */
void ibmr_mag_put_shared(struct ibmr_mag *mag)
{
	bool last;

	mutex_lock(&mag->dev->mag_lock);
	WRITE_ONCE(mag->shared, mag->shared - 1);
	last = !mag->shared;
	if (last)
		hash_del(&mag->shared_node);
	mutex_unlock(&mag->dev->mag_lock);
	if (last)
		ibmr_mag_destroy(mag);
}

/**
 * ibmr_mag_qualify() - may this device have magazines?
 * @dev: device, entered
 *
 * On first use the parking PD is made and the device tested.
 *
 * Context: process, may sleep.
 * Return: IB_MR_WHY_OK, or why not.
 */
enum ib_mr_reason ibmr_mag_qualify(struct ibmr_dev *dev)
{
	enum ib_mr_reason why = IB_MR_WHY_OK;
	struct ib_pd *park;

	if (READ_ONCE(ibmr_no_fmr))
		return IB_MR_WHY_NOT_QUALIFIED;
	mutex_lock(&dev->mag_lock);
	if (dev->probed)
		goto out;
	if (!ibmr_has_regqp(dev->ibdev)) {
		pr_info("%s: live mapping needs a registration queue pair, which iWARP does not have: there are no FMRs nor memory windows\n",
			dev->name);
		dev->probed = true;
		dev->probe_result = IB_MR_WHY_NOT_QUALIFIED;
		goto out;
	}
	why = IB_MR_WHY_NO_MEMORY;
	if (!dev->arm) {
		dev->arm = ibmr_arm_alloc();
		if (!dev->arm)
			goto out;
	}
	if (!dev->park) {
		park = ibmr_should_fail(IBMR_FAULT_DEVICE) ? ERR_PTR(-ENOMEM) :
			ib_alloc_pd(dev->ibdev, 0);
		if (IS_ERR(park))
			goto out;
		dev->park_ipd = ibmr_pd_get(dev, park);
		if (!dev->park_ipd) {
			ib_dealloc_pd_user(park, NULL);
			goto out;
		}
		dev->park = park;
	}
	if (!dev->carrier) {
		struct ib_mr *carrier = ibmr_should_fail(IBMR_FAULT_DEVICE) ? ERR_PTR(-ENOMEM) :
			ib_alloc_mr(dev->park, IB_MR_TYPE_MEM_REG, 1);

		if (IS_ERR(carrier))
			goto out;
		dev->carrier = carrier;
	}
	why = ibmr_probe(dev);
	if (why == IB_MR_WHY_OK || why == IB_MR_WHY_NOT_QUALIFIED) {
		dev->probed = true;
		dev->probe_result = why;
	}
out:
	if (dev->probed)
		why = dev->probe_result;
	mutex_unlock(&dev->mag_lock);
	return why;
}

/* The device goes. Its gate is shut: no worker runs, none will. */
void ibmr_mags_remove(struct ibmr_dev *dev)
{
	struct ib_mr *carrier = dev->carrier;
	struct ibmr_keyed *keyed;
	struct ibmr_mag *mag;
	struct ibmr_armed *a;
	u32 index;

	WRITE_ONCE(dev->carrier, NULL);
	list_for_each_entry(mag, &dev->mags, listed.entry) {
		spin_lock_irq(&mag->lock);
		WRITE_ONCE(mag->gone, true);
		/* A map that finds the stock empty need not ask why until then. */
		while ((a = ibmr_stack_pop(&mag->stock)))
			ibmr_stack_push(&mag->due, a);
		spin_unlock_irq(&mag->lock);
	}
	/* Live maps that took an MR before are over, and published, after this. */
	synchronize_rcu();

	for (index = 0; (keyed = ibmr_key_next(dev, &index)); index++) {
		struct ib_mr *drv;

		if (keyed->kind != IBMR_KEYED_ARMED)
			continue;
		a = container_of(keyed, struct ibmr_armed, keyed);
		spin_lock_irq(&a->mag->lock);
		ibmr_withdraw(a, dev);
		drv = a->drv;
		a->drv = NULL;
		spin_unlock_irq(&a->mag->lock);
		ibmr_key_remove(dev, index << 8, keyed);
		ib_dereg_mr_user(drv, NULL);
	}
	list_for_each_entry(mag, &dev->mags, listed.entry) {
		spin_lock_irq(&mag->lock);
		while ((a = ibmr_stack_pop(&mag->retired)) ||
		       (a = ibmr_stack_pop(&mag->quarantine)) || (a = ibmr_stack_pop(&mag->due))) {
			mag->created--;
			ibmr_armed_free(a);
		}
		spin_unlock_irq(&mag->lock);
	}
	if (carrier)
		ib_dereg_mr_user(carrier, NULL);
	if (dev->park) {
		struct ib_pd *park = dev->park;

		ibmr_pd_put(dev->park_ipd);
		dev->park_ipd = NULL;
		dev->park = NULL;
		ib_dealloc_pd_user(park, NULL);
	}
	kvfree(dev->arm);
	dev->arm = NULL;
}

/* An MR comes back whose device is gone. Under mag->lock. */
void ibmr_mag_bury(struct ibmr_mag *mag, struct ibmr_armed *a)
{
	mag->in_use--;
	mag->created--;
	ibmr_armed_free(a);
}

/* Alone on the device, so no worker has any in hand. */
bool ibmr_mags_agree(struct ibmr_dev *dev)
{
	struct ibmr_mag *mag;
	bool ok = true;

	list_for_each_entry(mag, &dev->mags, listed.entry) {
		spin_lock_irq(&mag->lock);
		if (mag->created != mag->stock.nr + mag->in_use + mag->retired.nr +
				    mag->quarantine.nr + mag->due.nr)
			ok = false;
		spin_unlock_irq(&mag->lock);
	}
	return ok;
}

#ifdef CONFIG_IB_MR_DEBUG
/* Tests: let the device pass or fail, whatever it did. Return: the verdict there was. */
enum ib_mr_reason ibmr_mag_verdict(struct ib_device *device, enum ib_mr_reason why)
{
	struct ibmr_dev *dev = ibmr_dev_get(device);
	enum ib_mr_reason was;

	if (!dev)
		return IB_MR_WHY_NO_DEVICE;
	mutex_lock(&dev->mag_lock);
	was = dev->probe_result;
	dev->probe_result = why;
	mutex_unlock(&dev->mag_lock);
	ibmr_dev_put(dev);
	return was;
}
IBMR_EXPORT_INTERNAL(ibmr_mag_verdict);
#endif

int ibmr_mags_init(void)
{
	mag_wq = alloc_workqueue("ib_mr", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!mag_wq)
		return -ENOMEM;
	ibmr_pool_wq = alloc_workqueue("ib_mr_pool", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!ibmr_pool_wq) {
		destroy_workqueue(mag_wq);
		return -ENOMEM;
	}
	return 0;
}

void ibmr_mags_exit(void)
{
	/* A pool that outlived its destruction may be freed there. */
	destroy_workqueue(ibmr_pool_wq);
	rcu_barrier_tasks();
	destroy_workqueue(mag_wq);
}
