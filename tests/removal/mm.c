// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * At the borders with mm: what a ULP does in its mmap handler and in a notifier of its own.
 *
 * The first is a registration of kernel memory with mmap_lock held, the second a deregistration
 * in the unmapping of the memory itself, as caches of registrations do it. Either may come at the
 * moment in which the device goes.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/mmu_notifier.h>
#include <linux/uaccess.h>

#include "removal.h"

/* What the calls answered is told to @answered; what is left is released before. */
static void in_mmap(struct set *s, answer_fn *answered)
{
	struct ib_mr *mr;

	mmap_write_lock(s->mm);
	mr = ib_mr_reg_kernel(s->pd, s->mem, SIZE, ALL, NULL);
	if (answered("registering with mmap_lock", PTR_ERR_OR_ZERO(mr)) && ib_dereg_mr(mr))
		wrong("deregistering with mmap_lock", 0);
	mmap_write_unlock(s->mm);
}

struct cache {
	struct mmu_notifier mn;
	struct task_struct *task;
	struct ib_mr *mr;
};

static int invalidate(struct mmu_notifier *mn, const struct mmu_notifier_range *range)
{
	struct cache *c = container_of(mn, struct cache, mn);
	struct ib_mr *mr = c->mr;

	if (range->event != MMU_NOTIFY_UNMAP || !mmu_notifier_range_blockable(range) || !mr ||
	    c->task != current)
		return 0;
	c->mr = NULL;
	if (ib_dereg_mr(mr))
		wrong("deregistering in a notifier", 0);
	return 0;
}

static const struct mmu_notifier_ops cache_ops = { .invalidate_range_start = invalidate };

static void in_notifier(struct set *s, answer_fn *answered)
{
	struct cache c = { .mn.ops = &cache_ops, .task = current };
	unsigned long at;
	struct ib_mr *mr;

	at = vm_mmap(NULL, 0, SIZE, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_PRIVATE, 0);
	if (IS_ERR_VALUE(at))
		return;
	if (!copy_to_user((void __user *)at, s->mem, SIZE) &&
	    !mmu_notifier_register(&c.mn, current->mm)) {
		mr = ib_mr_reg_user(s->pd, at, SIZE, ALL, NULL);
		if (answered("registering for a notifier", PTR_ERR_OR_ZERO(mr)))
			c.mr = mr;
		vm_munmap(at, SIZE);
		if (c.mr) {
			wrong("the notifier was not called", 0);
			ib_dereg_mr(c.mr);
		}
		mmu_notifier_unregister(&c.mn, current->mm);
	} else {
		vm_munmap(at, SIZE);
	}
}

void mm_churn(struct set *s, u32 random, answer_fn *answered)
{
	if (!mmget_not_zero(s->mm))
		return;
	kthread_use_mm(s->mm);
	if (random & 1)
		in_mmap(s, answered);
	else
		in_notifier(s, answered);
	kthread_unuse_mm(s->mm);
	mmput(s->mm);
}
