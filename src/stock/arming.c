// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Arming: driver MRs made valid ahead of time, given new keys, and destroyed.
 *
 * What is armed here is in nobody's hands but the caller's: it is new, or it was withdrawn and
 * nothing uses it any more, or (for replacing) it is destroyed, which waits for whoever still
 * does. It is in the parking PD all the time, and the work requests go through that PD's own
 * registration queue pair, in batches that are waited for once. When to do which is
 * magazine.c's to decide.
 *
 * An MR whose arming failed, or is not known to have been done, is destroyed, whatever state the
 * device has it in. All calls sleep and are made with the device entered.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/random.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/fault.h"
#include "base/keys.h"
#include "mr/regqp.h"
#include "stock/magazine.h"

#include <trace/events/ib_mr.h>

/* Operations of one arming batch; too large for a stack, and nothing is to be allocated then. */
struct ibmr_arm {
	struct mutex lock;
	struct ibmr_regop op[2 * IBMR_ARM_BATCH];
	struct ibmr_armed *armed[IBMR_ARM_BATCH];
	u8 random[IBMR_ARM_BATCH];
};

/* What arming needs to work in, for a device; NULL without memory. */
struct ibmr_arm *ibmr_arm_alloc(void)
{
	struct ibmr_arm *arm = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL :
		kvzalloc(sizeof(*arm), GFP_KERNEL);

	if (arm)
		mutex_init(&arm->lock);
	return arm;
}

/* --- one MR --- */

static struct ibmr_armed *armed_new(struct ibmr_mag *mag)
{
	struct ibmr_dev *dev = mag->dev;
	struct ibmr_armed *a;

	a = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kzalloc(sizeof(*a), GFP_KERNEL);
	if (!a)
		return NULL;
	a->keyed.kind = IBMR_KEYED_ARMED;
	a->mag = mag;
	if (mag->flags & IBMR_MAG_OWN_SGL) {
		a->sgl = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL :
			kvcalloc(mag->capacity + 1, sizeof(*a->sgl), GFP_KERNEL);
		if (!a->sgl)
			goto err_free;
	}
	a->drv = ibmr_should_fail(IBMR_FAULT_DEVICE) ? ERR_PTR(-ENOMEM) :
		ibmr_alloc_mr(dev->park, mag->capacity);
	if (IS_ERR(a->drv))
		goto err_free;
	a->drv->length = 0;
	a->key = a->drv->lkey;
	a->keyed.lkey = ~a->key;
	a->keys_left = 255;
	__set_bit(a->key & 0xff, a->spent);
	if (ibmr_should_fail(IBMR_FAULT_ALLOC) ||
	    ibmr_key_add(dev, a->key, &a->keyed))
		goto err_mr;
	return a;

err_mr:
	ib_dereg_mr_user(a->drv, NULL);
err_free:
	kvfree(a->sgl);
	kfree(a);
	return NULL;
}

static void armed_free_rcu(struct rcu_head *rcu)
{
	struct ibmr_armed *a = container_of(rcu, struct ibmr_armed, rcu);

	kvfree(a->sgl);
	kfree(a);
}

void ibmr_armed_free(struct ibmr_armed *a)
{
	call_rcu(&a->rcu, armed_free_rcu);
}

/*
 * Withdrawn or never published. When it returns the device has no packet left that uses it.
 * @replaced: another one comes in its place.
 */
static void armed_destroy(struct ibmr_armed *a, bool replaced)
{
	struct ibmr_dev *dev = a->mag->dev;
	struct ib_mr *drv = a->drv;

	ibmr_key_remove(dev, a->key, &a->keyed);
	spin_lock_irq(&a->mag->lock);
	a->drv = NULL;		/* who came from its key looks no further */
	spin_unlock_irq(&a->mag->lock);
	if (ib_dereg_mr_user(drv, NULL))
		pr_err("%s: the driver did not let go of an MR (key %#x)\n", dev->name, a->key);
	if (replaced)
		trace_ib_mr_replaced(dev->name, a->mag->listed.nr, a->key, a->mag->access,
				     a->mag->capacity);
	else
		trace_ib_mr_discarded(dev->name, a->mag->listed.nr, a->key, a->mag->access,
				      a->mag->capacity);
	ibmr_armed_free(a);
}

/* A variant that the MR never had, from @random on. The caller saw that one is left. */
static u32 next_key(struct ibmr_armed *a, u8 random)
{
	unsigned int v = random;

	if (test_bit(v, a->spent)) {
		v = find_next_zero_bit(a->spent, 256, v);
		if (v >= 256)
			v = find_first_zero_bit(a->spent, 256);
	}
	__set_bit(v, a->spent);
	a->keys_left--;
	return (a->key & ~0xffU) | v;
}

/* --- batches, in the worker or another sleeping call; the device is entered --- */

/* @last is the one at the end of @armed. */
static void to_stock(struct ibmr_mag *mag, struct ibmr_stack *armed, struct ibmr_armed *last)
{
	if (!armed->nr)
		return;
	spin_lock_irq(&mag->lock);
	last->next = mag->stock.head;
	mag->stock.head = armed->head;
	mag->stock.nr += armed->nr;
	spin_unlock_irq(&mag->lock);
}

/* Destroy what is in @list; the magazine has as many fewer. */
static void discard(struct ibmr_mag *mag, struct ibmr_stack *list, bool replaced)
{
	struct ibmr_armed *a;
	unsigned int n = 0;

	while ((a = ibmr_stack_pop(list))) {
		armed_destroy(a, replaced);
		n++;
	}
	spin_lock_irq(&mag->lock);
	mag->created -= n;
	spin_unlock_irq(&mag->lock);
}

void ibmr_arm_discard(struct ibmr_mag *mag, struct ibmr_stack *list)
{
	discard(mag, list, false);
}

/*
 * Arm what is in @list, new or re-keyed, and put it into the stock; what could not be armed is left
 * in @bad.
 */
static void arm(struct ibmr_mag *mag, struct ibmr_stack *list, bool rekey, struct ibmr_stack *bad)
{
	struct ibmr_arm *arm = mag->dev->arm;
	struct ibmr_armed *a, *last = NULL;
	struct ibmr_stack good = {};

	BUILD_BUG_ON(2 * IBMR_ARM_BATCH > IBMR_REGQP_DEPTH);
	mutex_lock(&arm->lock);
	while (list->nr) {
		unsigned int n = 0, inv, i;

		while (n < IBMR_ARM_BATCH && (a = ibmr_stack_pop(list))) {
			if (rekey && !a->keys_left)
				ibmr_stack_push(bad, a);
			else
				arm->armed[n++] = a;
		}
		if (!n)
			break;
		/*
		 * All invalidations first. Each waits until what was posted before it has
		 * completed, and so is cheaper behind another one than behind a registration.
		 */
		inv = rekey ? n : 0;
		if (rekey)
			get_random_bytes(arm->random, n);
		for (i = 0; i < n; i++) {
			struct ibmr_regop *reg = &arm->op[inv + i];

			a = arm->armed[i];
			reg->kind = IBMR_OP_REG;
			reg->mr = a->drv;
			reg->access = mag->access;
			reg->key = a->key;
			if (rekey) {
				arm->op[i].kind = IBMR_OP_INV;
				arm->op[i].key = a->key;
				reg->key = next_key(a, arm->random[i]);
			}
		}
		ibmr_regqp_exec(mag->dev->park_ipd, arm->op, inv + n);

		/* Locked: whoever says that a new key is invalidated may say so at once. */
		spin_lock_irq(&mag->lock);
		for (i = 0; i < n; i++) {
			const struct ibmr_regop *reg = &arm->op[inv + i];
			int err = reg->err ? reg->err : rekey ? arm->op[i].err : 0;

			a = arm->armed[i];
			if (err) {
				ibmr_stack_push(bad, a);
				continue;
			}
			if (rekey)
				trace_ib_mr_rekeyed(mag->dev->name, mag->listed.nr, a->key,
						    reg->key, a->keys_left);
			else
				trace_ib_mr_armed(mag->dev->name, mag->listed.nr, reg->key,
						  mag->access, mag->capacity);
			WRITE_ONCE(a->key, reg->key);
			WRITE_ONCE(a->invalidated, false);
			a->uses = 0;
			if (!last)
				last = a;
			ibmr_stack_push(&good, a);
		}
		spin_unlock_irq(&mag->lock);
		cond_resched();
	}
	mutex_unlock(&arm->lock);
	to_stock(mag, &good, last);
}

/* Make @nr more. Return: how many were made. */
unsigned int ibmr_arm_grow(struct ibmr_mag *mag, unsigned int nr)
{
	struct ibmr_stack fresh = {}, bad = {};
	struct ibmr_armed *a;
	unsigned int failed;

	while (fresh.nr < nr && (a = armed_new(mag)))
		ibmr_stack_push(&fresh, a);
	nr = fresh.nr;
	spin_lock_irq(&mag->lock);
	mag->created += nr;
	spin_unlock_irq(&mag->lock);
	arm(mag, &fresh, false, &bad);
	failed = bad.nr;
	ibmr_arm_discard(mag, &bad);
	return nr - failed;
}

/* Exchange what is in @list for new ones: a fence for every packet that may still use it. */
void ibmr_arm_replace(struct ibmr_mag *mag, struct ibmr_stack *list)
{
	unsigned int n = list->nr, made;

	if (!n)
		return;
	discard(mag, list, true);
	made = ibmr_arm_grow(mag, n);
	spin_lock_irq(&mag->lock);
	mag->replaced += made;
	spin_unlock_irq(&mag->lock);
}

/* Give what is in @list another key each and put it into the stock. */
void ibmr_arm_rekey(struct ibmr_mag *mag, struct ibmr_stack *list)
{
	struct ibmr_stack bad = {};
	unsigned int n = list->nr;

	if (!n)
		return;
	arm(mag, list, true, &bad);
	spin_lock_irq(&mag->lock);
	mag->rekeyed += n - bad.nr;
	spin_unlock_irq(&mag->lock);
	ibmr_arm_replace(mag, &bad);
}
