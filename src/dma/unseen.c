// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA checker: how many mappings live that it did not see made.
 *
 * A mapping that is older than the checker is unmapped under it, and that is no fault. So the
 * inlines of <rdma/ib_dma.h> count what they map and unmap while nobody watches: for each device
 * and each module, one per-CPU count. As long as a device's sum is above zero, an unmap of an
 * unknown address is taken for one of those, and the count goes down by one.
 *
 * The counts are in the modules that include the header, so a module's count goes with the
 * module: what it left mapped makes nobody deaf afterwards. They are found by a parameter of the
 * module that nobody sees or sets, which the header defines: its operations are ours, and its
 * argument is the count. Built in, all share one count, which is the one of this file.
 *
 * Coherent memory is counted by itself. Its calls are never inlines, and who frees it is not asked
 * for the module, so those counts stay here.
 */

#include <linux/list.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "dma/check.h"

/* Ours; and that of all who are built in with us. */
__weak DEFINE_PER_CPU(struct ib_mr_dma_unseen, ib_mr_dma_unseen_here);

static DEFINE_PER_CPU(struct ib_mr_dma_unseen, ibmr_dma_memory);

struct ibmr_dma_user {
	struct list_head entry;
	const struct module *mod;	/* only compared */
	struct ib_mr_dma_unseen __percpu *count;
};

static LIST_HEAD(ibmr_dma_users);

/* Guards the list, and what is taken from the counts. */
static DEFINE_RAW_SPINLOCK(ibmr_dma_users_lock);

static int ibmr_dma_no_param(const char *val, const struct kernel_param *kp)
{
	return -EINVAL;
}

/* What makes a module's count known; nobody can set it. */
const struct kernel_param_ops ib_mr_dma_param_ops = {
	.set = ibmr_dma_no_param,
};
EXPORT_SYMBOL(ib_mr_dma_param_ops);

static struct ib_mr_dma_unseen __percpu *ibmr_dma_count_of(const struct module *of)
{
	struct ibmr_dma_user *user;

	lockdep_assert_held(&ibmr_dma_users_lock);
	list_for_each_entry(user, &ibmr_dma_users, entry)
		if (user->mod == of)
			return user->count;
	return &ib_mr_dma_unseen_here;
}

/* Others count meanwhile: of a sum over CPUs nobody can ask more than that. */
static long ibmr_dma_sum_of(struct ib_mr_dma_unseen __percpu *count, unsigned int slot)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(count, cpu)->nr[slot]);
	return sum;
}

static void ibmr_dma_add_to(struct ib_mr_dma_unseen __percpu *count, unsigned int slot, long n)
{
	this_cpu_add(count->nr[slot], n);
}

/* @n more (or less) that the checker did not see. Any context. */
void ibmr_dma_unseen_add(const struct ib_device *device, enum ibmr_dma_unseen_kind kind,
			 const struct module *of, long n)
{
	unsigned int slot = ib_mr_dma_slot(device);
	unsigned long flags;

	if (kind == IBMR_DMA_MEMORY) {
		ibmr_dma_add_to(&ibmr_dma_memory, slot, n);
		return;
	}
	raw_spin_lock_irqsave(&ibmr_dma_users_lock, flags);
	ibmr_dma_add_to(ibmr_dma_count_of(of), slot, n);
	raw_spin_unlock_irqrestore(&ibmr_dma_users_lock, flags);
}

/* Streaming mappings of @device that live and were not seen; negative after unmaps too many. */
long ibmr_dma_unseen(const struct ib_device *device)
{
	unsigned int slot = ib_mr_dma_slot(device);
	struct ibmr_dma_user *user;
	unsigned long flags;
	long sum;

	raw_spin_lock_irqsave(&ibmr_dma_users_lock, flags);
	sum = ibmr_dma_sum_of(&ib_mr_dma_unseen_here, slot);
	list_for_each_entry(user, &ibmr_dma_users, entry)
		sum += ibmr_dma_sum_of(user->count, slot);
	raw_spin_unlock_irqrestore(&ibmr_dma_users_lock, flags);
	return sum;
}
IBMR_EXPORT_INTERNAL(ibmr_dma_unseen);

/*
 * A count above zero: @of's if it has one, else any. One of a module that gave more back than it
 * took does not hide another's.
 */
static struct ib_mr_dma_unseen __percpu *ibmr_dma_above(unsigned int slot, const struct module *of)
{
	struct ib_mr_dma_unseen __percpu *count = ibmr_dma_count_of(of);
	struct ibmr_dma_user *user;

	if (ibmr_dma_sum_of(count, slot) > 0)
		return count;
	if (ibmr_dma_sum_of(&ib_mr_dma_unseen_here, slot) > 0)
		return &ib_mr_dma_unseen_here;
	list_for_each_entry(user, &ibmr_dma_users, entry)
		if (ibmr_dma_sum_of(user->count, slot) > 0)
			return user->count;
	return NULL;
}

static bool ibmr_dma_unseen_less(const struct ib_device *device, enum ibmr_dma_unseen_kind kind,
				 const struct module *of, long n)
{
	unsigned int slot = ib_mr_dma_slot(device);
	struct ib_mr_dma_unseen __percpu *count = &ibmr_dma_memory;
	unsigned long flags;

	raw_spin_lock_irqsave(&ibmr_dma_users_lock, flags);
	if (kind == IBMR_DMA_STREAMING)
		count = ibmr_dma_above(slot, of);
	else if (ibmr_dma_sum_of(count, slot) <= 0)
		count = NULL;
	if (count && n)
		ibmr_dma_add_to(count, slot, -n);
	raw_spin_unlock_irqrestore(&ibmr_dma_users_lock, flags);
	return count;
}

/* May there be one? */
bool ibmr_dma_unseen_any(const struct ib_device *device, enum ibmr_dma_unseen_kind kind)
{
	return ibmr_dma_unseen_less(device, kind, NULL, 0);
}

/* An unmap by @of that is of one of them, if there is one: then it is counted off. */
bool ibmr_dma_unseen_take(const struct ib_device *device, enum ibmr_dma_unseen_kind kind,
			  const struct module *of)
{
	return ibmr_dma_unseen_less(device, kind, of, 1);
}

/* Unmaps too many while nobody looked are not held against what comes. */
void ibmr_dma_unseen_level(const struct ib_device *device)
{
	unsigned int slot = ib_mr_dma_slot(device);
	struct ibmr_dma_user *user;
	unsigned long flags;
	long sum;

	raw_spin_lock_irqsave(&ibmr_dma_users_lock, flags);
	sum = ibmr_dma_sum_of(&ib_mr_dma_unseen_here, slot);
	if (sum < 0)
		ibmr_dma_add_to(&ib_mr_dma_unseen_here, slot, -sum);
	sum = ibmr_dma_sum_of(&ibmr_dma_memory, slot);
	if (sum < 0)
		ibmr_dma_add_to(&ibmr_dma_memory, slot, -sum);
	list_for_each_entry(user, &ibmr_dma_users, entry) {
		sum = ibmr_dma_sum_of(user->count, slot);
		if (sum < 0)
			ibmr_dma_add_to(user->count, slot, -sum);
	}
	raw_spin_unlock_irqrestore(&ibmr_dma_users_lock, flags);
}

/* A module comes, and may have been compiled with <rdma/ib_dma.h>. */
void ibmr_dma_user_comes(const struct module *mod)
{
	struct ibmr_dma_user *user;
	unsigned long flags;
	unsigned int i;

	for (i = 0; i < mod->num_kp; i++)
		if (mod->kp[i].ops == &ib_mr_dma_param_ops)
			break;
	if (i == mod->num_kp)
		return;
	user = kzalloc(sizeof(*user), GFP_KERNEL | __GFP_NOFAIL);
	user->mod = mod;
	user->count = (struct ib_mr_dma_unseen __percpu __force *)mod->kp[i].arg;
	raw_spin_lock_irqsave(&ibmr_dma_users_lock, flags);
	list_add(&user->entry, &ibmr_dma_users);
	raw_spin_unlock_irqrestore(&ibmr_dma_users_lock, flags);
}

void ibmr_dma_user_goes(const struct module *mod)
{
	struct ibmr_dma_user *user, *next;
	unsigned long flags;
	LIST_HEAD(gone);

	raw_spin_lock_irqsave(&ibmr_dma_users_lock, flags);
	list_for_each_entry_safe(user, next, &ibmr_dma_users, entry)
		if (!mod || user->mod == mod)
			list_move(&user->entry, &gone);
	raw_spin_unlock_irqrestore(&ibmr_dma_users_lock, flags);
	list_for_each_entry_safe(user, next, &gone, entry)
		kfree(user);
}

void ibmr_dma_users_exit(void)
{
	ibmr_dma_user_goes(NULL);
}
