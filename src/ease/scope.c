// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Scopes: all that belongs to a connection, released by one call, in the order that works.
 *
 * A region cannot go while a window is bound to it, a PD not while a region lives in it. Code that
 * tears a connection down by hand gets the order wrong on some error path; a scope knows it.
 * Objects are kept by rank and released rank by rank, the newest first within one. What refuses to
 * go (a region to which somebody else bound a window, say) stays in the scope, and so do all later
 * ranks, which it may stand on: the region's buffer may still be written to. The release can be
 * tried again.
 *
 * The scope also holds the PD's registration queue pair (ib_mr_pd_get()), so that a connection that
 * registers one thing at a time does not pay for it each time.
 */

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/core.h"
#include "base/fault.h"
#include "ease/arena.h"

struct scope_item {
	struct list_head entry;
	int (*release)(void *object);
	void *object;
};

/**
 * struct ib_mr_scope - see above
 * @pd: PD, held; not followed, as it may be gone when the device is
 * @dev: its device, to count refusals; holds a reference
 * @lock: guards @items
 * @items: struct scope_item by rank, the newest first
 */
struct ib_mr_scope {
	struct ib_pd *pd;
	struct ibmr_dev *dev;
	struct mutex lock;	/* items */
	struct list_head items[IB_MR_SCOPE_RANKS];
};

/**
 * ib_mr_scope_create() - make a scope
 * @pd: kernel PD; it outlives the scope
 *
 * Context: process, may sleep.
 * Return: the scope, to be given to ib_mr_scope_release(); or an error as of ib_mr_pd_get().
 */
struct ib_mr_scope *ib_mr_scope_create(struct ib_pd *pd)
{
	struct ib_mr_scope *scope;
	struct ibmr_dev *dev;
	int err, i;

	might_sleep();
	err = ib_mr_pd_get(pd);
	if (err)
		return ERR_PTR(err);
	dev = ibmr_dev_get(pd->device);
	if (!dev)	/* it went meanwhile, and ended the hold */
		return ERR_PTR(ibmr_refuse(NULL, IB_MR_WHY_NO_DEVICE, "%s", __func__));
	scope = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kzalloc(sizeof(*scope), GFP_KERNEL);
	if (!scope) {
		err = ibmr_refuse(dev, IB_MR_WHY_NO_MEMORY, "%s", __func__);
		ibmr_pd_unhold(dev, pd);
		ibmr_dev_put(dev);
		return ERR_PTR(err);
	}
	scope->pd = pd;
	scope->dev = dev;
	mutex_init(&scope->lock);
	for (i = 0; i < IB_MR_SCOPE_RANKS; i++)
		INIT_LIST_HEAD(&scope->items[i]);
	return scope;
}
EXPORT_SYMBOL(ib_mr_scope_create);

/**
 * ib_mr_scope_add() - put an object into a scope
 * @scope: scope
 * @rank: when it is to be released
 * @release: releases it; returns 0, or an error when it is not to go now. Must not use the scope
 * @object: what @release is given
 *
 * Context: process, may sleep.
 * Return: 0, and the object is the scope's; -EINVAL or -ENOMEM, and it is still the caller's.
 */
int ib_mr_scope_add(struct ib_mr_scope *scope, enum ib_mr_scope_rank rank,
		    int (*release)(void *object), void *object)
{
	struct scope_item *item;

	might_sleep();
	if (IS_ERR_OR_NULL(scope))
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	if (IS_ERR_OR_NULL(object) || !release || (unsigned int)rank >= IB_MR_SCOPE_RANKS)
		return ibmr_refuse(scope->dev, IB_MR_WHY_NULL_ARG, "%s(rank %u, %p)", __func__,
				   rank, object);
	item = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kmalloc(sizeof(*item), GFP_KERNEL);
	if (!item)
		return ibmr_refuse(scope->dev, IB_MR_WHY_NO_MEMORY, "%s", __func__);
	item->release = release;
	item->object = object;
	mutex_lock(&scope->lock);
	list_add(&item->entry, &scope->items[rank]);
	mutex_unlock(&scope->lock);
	return 0;
}
EXPORT_SYMBOL(ib_mr_scope_add);

static int release_mr(void *object)
{
	return ib_mr_dereg(object);
}

/**
 * ib_mr_scope_mr() - let a scope own a region
 * @scope: scope
 * @mr: what a registration call returned, an error included
 *
 * So that a region that is made for a scope needs one test only:
 * mr = ib_mr_scope_mr(scope, ib_reg_phys_mr(...)); if (IS_ERR(mr)) ...
 *
 * Context: process, may sleep.
 * Return: @mr; or an error, and a region that was made is deregistered.
 */
struct ib_mr *ib_mr_scope_mr(struct ib_mr_scope *scope, struct ib_mr *mr)
{
	int err;

	if (IS_ERR(mr))
		return mr;
	err = ib_mr_scope_add(scope, IB_MR_SCOPE_REGION, release_mr, mr);
	if (!err)
		return mr;
	if (mr)
		ib_mr_dereg(mr);
	return ERR_PTR(err);
}
EXPORT_SYMBOL(ib_mr_scope_mr);

/**
 * ib_mr_scope_arena() - let a scope own an arena
 * @scope: scope
 * @arena: what ib_mr_arena_create() returned, an error included
 *
 * When the scope is released, slices that are still out are taken back with the arena.
 *
 * Context: process, may sleep.
 * Return: @arena; or an error, and an arena that was made is destroyed.
 */
struct ib_mr_arena *ib_mr_scope_arena(struct ib_mr_scope *scope, struct ib_mr_arena *arena)
{
	int err;

	if (IS_ERR(arena))
		return arena;
	err = ib_mr_scope_add(scope, IB_MR_SCOPE_ARENA, ibmr_arena_release, arena);
	if (!err)
		return arena;
	if (arena)
		ibmr_arena_release(arena);
	return ERR_PTR(err);
}
EXPORT_SYMBOL(ib_mr_scope_arena);

/* Take the object out of the scope; NULL when it is not there. The lock is held. */
static struct scope_item *scope_take(struct ib_mr_scope *scope, void *object, int *rank)
{
	struct scope_item *item;

	for (*rank = 0; *rank < IB_MR_SCOPE_RANKS; ++*rank)
		list_for_each_entry(item, &scope->items[*rank], entry)
			if (item->object == object) {
				list_del(&item->entry);
				return item;
			}
	return NULL;
}

/**
 * ib_mr_scope_forget() - take an object out of a scope and keep it
 * @scope: scope
 * @object: object; it is the caller's afterwards
 *
 * Context: process, may sleep.
 * Return: 0, or -ENOENT when the scope does not hold it.
 */
int ib_mr_scope_forget(struct ib_mr_scope *scope, void *object)
{
	struct scope_item *item;
	int rank;

	might_sleep();
	if (IS_ERR_OR_NULL(scope))
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	mutex_lock(&scope->lock);
	item = scope_take(scope, object, &rank);
	mutex_unlock(&scope->lock);
	if (!item)
		return ibmr_refuse(scope->dev, IB_MR_WHY_SCOPE_UNKNOWN, "%s", __func__);
	kfree(item);
	return 0;
}
EXPORT_SYMBOL(ib_mr_scope_forget);

/**
 * ib_mr_scope_drop() - release one object of a scope before its time
 * @scope: scope
 * @object: object
 *
 * Context: process, may sleep.
 * Return: 0; -ENOENT when the scope does not hold it; what its release returned, and it stays.
 */
int ib_mr_scope_drop(struct ib_mr_scope *scope, void *object)
{
	struct scope_item *item;
	int rank, err;

	might_sleep();
	if (IS_ERR_OR_NULL(scope))
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	mutex_lock(&scope->lock);
	item = scope_take(scope, object, &rank);
	if (!item) {
		mutex_unlock(&scope->lock);
		return ibmr_refuse(scope->dev, IB_MR_WHY_SCOPE_UNKNOWN, "%s", __func__);
	}
	err = item->release(item->object);
	if (err)
		list_add(&item->entry, &scope->items[rank]);
	else
		kfree(item);
	mutex_unlock(&scope->lock);
	return err;
}
EXPORT_SYMBOL(ib_mr_scope_drop);

/**
 * ib_mr_scope_release() - release everything, in the right order, and the scope itself
 * @scope: scope, or an error or NULL, which is ignored; nobody else uses it any more
 *
 * Windows, FMR pools, FMRs, arenas, regions, the rest. What refuses to go does not keep the others
 * of its rank from being tried; later ranks wait until it has gone.
 *
 * Context: process, may sleep.
 * Return: 0, and the scope is gone; else the first error, and the scope is there with what refused
 * and what is of a later rank, to be released again.
 */
int ib_mr_scope_release(struct ib_mr_scope *scope)
{
	struct scope_item *item, *next;
	int rank, first_err = 0;

	might_sleep();
	if (IS_ERR_OR_NULL(scope))
		return 0;
	mutex_lock(&scope->lock);
	for (rank = 0; rank < IB_MR_SCOPE_RANKS && !first_err; rank++)
		list_for_each_entry_safe(item, next, &scope->items[rank], entry) {
			int err = item->release(item->object);

			if (err) {
				first_err = first_err ?: err;
				continue;
			}
			list_del(&item->entry);
			kfree(item);
		}
	mutex_unlock(&scope->lock);
	if (first_err)
		return first_err;
	ibmr_pd_unhold(scope->dev, scope->pd);
	ibmr_dev_put(scope->dev);
	kfree(scope);
	return 0;
}
EXPORT_SYMBOL(ib_mr_scope_release);
