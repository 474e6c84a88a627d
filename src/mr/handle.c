// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The table of handles: is this pointer one of ours, and does it still live?
 *
 * ib_dereg_mr() is given handles of both kinds, ours and the core's, and must not look into a
 * structure to tell them apart, for it may be freed. So the table is keyed by the pointer's value.
 *
 * A handle that was deregistered stays in the table, and its memory allocated, until GRAVES others
 * were deregistered after it. Its address can be nobody else's in that time, so a second
 * deregistration, or a look at its keys, is answered with a reason instead of harming whoever got
 * the memory next.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/rhashtable.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "base/compat.h"
#include "base/fault.h"
#include "mr/handle.h"

#define GRAVES	1024

/* The address of the handle is the key; a region has its handle first. */
static u32 handle_hash(const void *data, u32 len, u32 seed)
{
	return jhash(data, sizeof(struct ib_mr *), seed);
}

static u32 handle_obj_hash(const void *data, u32 len, u32 seed)
{
	const struct ib_mr *mr = data;

	return handle_hash(&mr, len, seed);
}

static int handle_obj_cmp(struct rhashtable_compare_arg *arg, const void *obj)
{
	return *(const struct ib_mr *const *)arg->key != obj;
}

static const struct rhashtable_params handle_params = {
	.head_offset		= offsetof(struct ibmr_region, node),
	.key_len		= sizeof(struct ib_mr *),
	.hashfn			= handle_hash,
	.obj_hashfn		= handle_obj_hash,
	.obj_cmpfn		= handle_obj_cmp,
	.automatic_shrinking	= true,
};

static struct rhashtable handles;
static DEFINE_SPINLOCK(grave_lock);
static LIST_HEAD(graves);
static unsigned int nr_graves;

int ibmr_handle_add(struct ibmr_region *region)
{
	BUILD_BUG_ON(offsetof(struct ibmr_region, mr));
	if (ibmr_should_fail(IBMR_FAULT_ALLOC))
		return -ENOMEM;
	return rhashtable_insert_fast(&handles, &region->node, handle_params);
}

/* NULL when the pointer is none of ours. The region may be in any state. */
struct ibmr_region *ibmr_handle_find(struct ib_mr *mr)
{
	struct ibmr_region *region;

	rcu_read_lock();
	region = rhashtable_lookup(&handles, &mr, handle_params);
	if (region && !refcount_inc_not_zero(&region->refs))
		region = NULL;
	rcu_read_unlock();
	return region;
}

void ibmr_region_put(struct ibmr_region *region)
{
	if (refcount_dec_and_test(&region->refs)) {
		ibmr_dev_put(region->dev);
		kfree_rcu(region, rcu);
	}
}

static void forget(struct ibmr_region *region)
{
	rhashtable_remove_fast(&handles, &region->node, handle_params);
	ibmr_region_put(region);
}

/* Keep a dead handle in mind; the oldest one is forgotten for it. The table's reference stays. */
void ibmr_handle_bury(struct ibmr_region *region)
{
	struct ibmr_region *oldest = NULL;

	region->last_lkey = region->mr.lkey;
	WRITE_ONCE(region->mr.lkey, 0);
	WRITE_ONCE(region->mr.rkey, 0);
	spin_lock_irq(&grave_lock);
	list_add_tail(&region->entry, &graves);
	if (nr_graves == GRAVES) {
		oldest = list_first_entry(&graves, struct ibmr_region, entry);
		list_del_init(&oldest->entry);
	} else {
		nr_graves++;
	}
	spin_unlock_irq(&grave_lock);
	if (oldest)
		forget(oldest);
}

/**
 * ibmr_handle_died() - was this key a region's that is deregistered by now?
 * @dev: device
 * @key: key; its variant does not matter
 * @last: the key the region had
 * @msecs: how long ago it was deregistered
 *
 * Context: any but NMI. Walks the dead: for diagnosis.
 * Return: true when it was, and @last and @msecs are set.
 */
bool ibmr_handle_died(struct ibmr_dev *dev, u32 key, u32 *last, u64 *msecs)
{
	struct ibmr_region *region;
	unsigned long flags;
	bool found = false;

	spin_lock_irqsave(&grave_lock, flags);
	list_for_each_entry_reverse(region, &graves, entry) {
		if (region->dev != dev || region->last_lkey >> 8 != key >> 8)
			continue;
		*last = region->last_lkey;
		*msecs = ktime_ms_delta(ktime_get(), region->died);
		found = true;
		break;
	}
	spin_unlock_irqrestore(&grave_lock, flags);
	return found;
}

int ibmr_handles_init(void)
{
	return rhashtable_init(&handles, &handle_params);
}

static void left_behind(void *ptr, void *arg)
{
	struct ibmr_region *region = ptr;

	if (region->state != IBMR_DEAD)
		pr_err("a region was never deregistered: key %#x, %llu bytes\n", region->mr.lkey,
		       region->mr.length);
	if (region->ipd)
		ibmr_pd_put(region->ipd);
	ibmr_window_unprovision(region->provision);
	ibmr_region_put(region);
}

/*
 * No ULP is left: its use of our symbols would have kept us loaded. Regions give back what they
 * hold of stocks, so those are still there.
 */
void ibmr_handles_left(void)
{
	rhashtable_free_and_destroy(&handles, left_behind, NULL);
}
