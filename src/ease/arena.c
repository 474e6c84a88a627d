// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Arenas: one registration, thousands of buffers.
 *
 * A ULP with many small buffers (headers, requests, inline data) would pay a registration and a key
 * for each. An arena is one stretch of kernel memory, registered once; lib/genalloc hands out parts
 * of it without a lock, from any context. Every slice has the arena's keys and an address of its
 * own, so a peer that has one slice's key can reach the others: slices are for memory of one trust.
 *
 * genalloc panics when it is given back what it did not hand out. So the arena marks the first and
 * the last granule of each slice in bitmaps of its own, and what is no slice is refused with a
 * reason. The marks belong to whoever owns the granules, so atomic bit operations suffice.
 *
 * Destruction is refused while slices are out; a scope, which ends all of a connection, takes them
 * back. Either way the region is deregistered before the memory is freed.
 */

#include <linux/bitmap.h>
#include <linux/genalloc.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/core.h"
#include "base/fault.h"
#include "ease/arena.h"

/* 64 bytes: a cache line, so that slices do not share one. */
#define ARENA_MIN_ORDER		6

/* What kvmalloc() gives at most; it warns of more. */
#define ARENA_MAX_SIZE		round_down(INT_MAX, PAGE_SIZE)

/**
 * struct ib_mr_arena - see above
 * @dev: device whose refusals it counts; holds a reference
 * @mr: the region
 * @pool: which parts are out
 * @mem: the memory
 * @size: bytes of it
 * @order: log2 of the granule
 * @starts: a bit for each granule that a slice begins with
 * @ends: and for each that one ends with
 * @used: bytes out
 * @peak: the most of it
 * @slices: slices out
 * @failed: allocations that found no room
 */
struct ib_mr_arena {
	struct ibmr_dev *dev;
	struct ib_mr *mr;
	struct gen_pool *pool;
	void *mem;
	size_t size;
	unsigned int order;
	unsigned long *starts;
	unsigned long *ends;
	atomic_long_t used;
	atomic_long_t peak;
	atomic_long_t slices;
	atomic_long_t failed;
};

static void arena_free(struct ib_mr_arena *arena)
{
	if (arena->pool)
		gen_pool_destroy(arena->pool);
	kvfree(arena->starts);
	kvfree(arena->ends);
	kvfree(arena->mem);
	ibmr_dev_put(arena->dev);
	kfree(arena);
}

static unsigned long *granule_bits(const struct ib_mr_arena *arena)
{
	return ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL :
		kvcalloc(BITS_TO_LONGS(arena->size >> arena->order), sizeof(long), GFP_KERNEL);
}

/* The memory and what keeps account of it; the region comes last. */
static int arena_init(struct ib_mr_arena *arena)
{
	arena->mem = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kvzalloc(arena->size, GFP_KERNEL);
	if (!arena->mem)
		return -ENOMEM;
	arena->starts = granule_bits(arena);
	if (!arena->starts)
		return -ENOMEM;
	arena->ends = granule_bits(arena);
	if (!arena->ends)
		return -ENOMEM;
	arena->pool = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL :
		gen_pool_create(arena->order, NUMA_NO_NODE);
	if (!arena->pool || ibmr_should_fail(IBMR_FAULT_ALLOC))
		return -ENOMEM;
	return gen_pool_add(arena->pool, (uintptr_t)arena->mem, arena->size, NUMA_NO_NODE);
}

/**
 * ib_mr_arena_create() - make an arena
 * @pd: kernel PD
 * @size: bytes, below 2 GiB; rounded up to pages
 * @access: rights of every slice
 * @min_order: log2 of the granule: slices begin, and their sizes are rounded up, at multiples of
 *             it; 0 for the default of 64 bytes
 *
 * The memory is the arena's, and zeroed; iova of a byte is its kernel virtual address. On devices
 * whose DMA is not coherent the slices need the sync calls of a streaming mapping.
 *
 * Context: process, may sleep.
 * Return: the arena, to be given to ib_mr_arena_destroy(); or an error as of ib_mr_reg_kernel().
 */
struct ib_mr_arena *ib_mr_arena_create(struct ib_pd *pd, size_t size, int access,
				       unsigned int min_order)
{
	enum ib_mr_reason why = IB_MR_WHY_OK;
	struct ib_mr_arena *arena = NULL;
	struct ibmr_dev *dev;
	int err;

	might_sleep();
	if (IS_ERR_OR_NULL(pd) || !pd->device)
		return ERR_PTR(ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__));
	dev = ibmr_dev_get(pd->device);
	if (!dev)
		return ERR_PTR(ibmr_refuse(NULL, IB_MR_WHY_NO_DEVICE, "%s", __func__));
	if (!size)
		why = IB_MR_WHY_EMPTY;
	else if (size > ARENA_MAX_SIZE)
		why = IB_MR_WHY_TOO_LONG;
	else if (min_order > PAGE_SHIFT)
		why = IB_MR_WHY_ARENA_ARGS;
	else
		arena = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL :
			kzalloc(sizeof(*arena), GFP_KERNEL);
	if (!arena) {
		err = ibmr_refuse(dev, why ?: IB_MR_WHY_NO_MEMORY, "%s(%zu bytes, order %u)",
				  __func__, size, min_order);
		ibmr_dev_put(dev);
		return ERR_PTR(err);
	}
	arena->dev = dev;
	arena->size = PAGE_ALIGN(size);
	arena->order = min_order ?: ARENA_MIN_ORDER;
	err = arena_init(arena);
	if (err) {
		ibmr_refuse(dev, IB_MR_WHY_NO_MEMORY, "%s(%zu bytes)", __func__, size);
		goto err;
	}
	arena->mr = ib_mr_reg_kernel(pd, arena->mem, arena->size, access, NULL);
	if (IS_ERR(arena->mr)) {
		err = PTR_ERR(arena->mr);
		goto err;
	}
	return arena;
err:
	arena_free(arena);
	return ERR_PTR(err);
}
EXPORT_SYMBOL(ib_mr_arena_create);

/*
 * Slices that are out are taken back. Fails only as deregistration does, and changes nothing then.
 */
int ibmr_arena_release(void *object)
{
	struct ib_mr_arena *arena = object;
	int err = ib_mr_dereg(arena->mr);

	if (err)
		return err;
	/* Its account has to be even when it is destroyed; nobody can use the slices any more. */
	if (atomic_long_read(&arena->slices)) {
		size_t granules = arena->size >> arena->order, start, end;

		for_each_set_bit(start, arena->starts, granules) {
			end = find_next_bit(arena->ends, granules, start);
			gen_pool_free(arena->pool,
				      (uintptr_t)arena->mem + (start << arena->order),
				      (end - start + 1) << arena->order);
		}
	}
	arena_free(arena);
	return 0;
}

/**
 * ib_mr_arena_destroy() - give back an arena
 * @arena: arena, or an error or NULL, which is ignored
 *
 * Context: process, may sleep; waits for packets under way.
 * Return: 0; -EBUSY while slices are out, or windows bound to its region; nothing is changed then.
 */
int ib_mr_arena_destroy(struct ib_mr_arena *arena)
{
	long out;

	might_sleep();
	if (IS_ERR_OR_NULL(arena))
		return 0;
	out = atomic_long_read(&arena->slices);
	if (out)
		return ibmr_refuse(arena->dev, IB_MR_WHY_ARENA_BUSY, "%s with %ld slices", __func__,
				   out);
	return ibmr_arena_release(arena);
}
EXPORT_SYMBOL(ib_mr_arena_destroy);

static void note_used(struct ib_mr_arena *arena, size_t bytes)
{
	long used = atomic_long_add_return(bytes, &arena->used);
	long peak = atomic_long_read(&arena->peak);

	while (used > peak && !atomic_long_try_cmpxchg(&arena->peak, &peak, used))
		;
	atomic_long_inc(&arena->slices);
}

/**
 * ib_mr_arena_alloc_aligned() - a slice that begins at a multiple of something
 * @arena: arena
 * @size: bytes, at least 1
 * @align: power of two; the granule is the least
 * @slice: filled in on success
 *
 * The bytes hold what the last user left there.
 *
 * Context: any, hardirq included; takes no lock.
 * Return: 0; -EINVAL for the arguments; -ENOMEM when there is no stretch that is long enough.
 */
int ib_mr_arena_alloc_aligned(struct ib_mr_arena *arena, size_t size, size_t align,
			      struct ib_mr_slice *slice)
{
	struct genpool_data_align data = { .align = align };
	size_t bytes, first;
	unsigned long va;

	if (!size || !is_power_of_2(align) || align > INT_MAX)
		return ibmr_refuse(arena->dev, IB_MR_WHY_ARENA_ARGS, "%s(%zu bytes, align %zu)",
				   __func__, size, align);
	va = size > arena->size || ibmr_should_fail(IBMR_FAULT_ALLOC) ? 0 :
		gen_pool_alloc_algo(arena->pool, size, gen_pool_first_fit_align, &data);
	if (!va) {
		atomic_long_inc(&arena->failed);
		return ibmr_refuse(arena->dev, IB_MR_WHY_ARENA_FULL, "%s(%zu bytes)", __func__,
				   size);
	}
	bytes = round_up(size, 1UL << arena->order);
	first = (va - (uintptr_t)arena->mem) >> arena->order;
	set_bit(first + (bytes >> arena->order) - 1, arena->ends);
	/* The end first: a free of a stale copy that meets the new start finds whose it is. */
	smp_mb__before_atomic();
	set_bit(first, arena->starts);
	note_used(arena, bytes);
	*slice = (struct ib_mr_slice){
		.va = (void *)va, .iova = va, .size = size,
		.lkey = arena->mr->lkey, .rkey = arena->mr->rkey,
	};
	return 0;
}
EXPORT_SYMBOL(ib_mr_arena_alloc_aligned);

/**
 * ib_mr_arena_alloc() - a slice
 * @arena: arena
 * @size: bytes, at least 1
 * @slice: filled in on success
 *
 * Context: any, hardirq included; takes no lock.
 * Return: 0; -EINVAL for a size of 0; -ENOMEM when there is no stretch that is long enough.
 */
int ib_mr_arena_alloc(struct ib_mr_arena *arena, size_t size, struct ib_mr_slice *slice)
{
	return ib_mr_arena_alloc_aligned(arena, size, 1, slice);
}
EXPORT_SYMBOL(ib_mr_arena_alloc);

/**
 * ib_mr_arena_free() - give a slice back
 * @arena: arena
 * @slice: slice; emptied, so that a second free of it is noticed, as is one of a copy
 *
 * No peer may use its address any more: the memory stays registered, and the next user gets it.
 *
 * Context: any, hardirq included; takes no lock.
 * Return: 0; -EINVAL when it is no slice of the arena, or was freed; nothing is changed then.
 */
int ib_mr_arena_free(struct ib_mr_arena *arena, struct ib_mr_slice *slice)
{
	size_t off = (uintptr_t)slice->va - (uintptr_t)arena->mem, first, last, bytes;

	if (slice->va < arena->mem || off >= arena->size || off & ((1UL << arena->order) - 1))
		goto refuse;
	first = off >> arena->order;
	if (!test_and_clear_bit(first, arena->starts))
		goto refuse;
	/*
	 * From here on it is ours alone. Others change bits in the same words, but none between our
	 * first granule and our last, whose bit is the next that is set: data_race().
	 */
	last = data_race(find_next_bit(arena->ends, arena->size >> arena->order, first));
	clear_bit(last, arena->ends);
	bytes = (last - first + 1) << arena->order;
	atomic_long_sub(bytes, &arena->used);
	atomic_long_dec(&arena->slices);
	gen_pool_free(arena->pool, (uintptr_t)slice->va, bytes);
	*slice = (struct ib_mr_slice){};
	return 0;
refuse:
	return ibmr_refuse(arena->dev, IB_MR_WHY_ARENA_SLICE, "%s(%p, %zu bytes)", __func__,
			   slice->va, slice->size);
}
EXPORT_SYMBOL(ib_mr_arena_free);

/**
 * ib_mr_arena_usage() - how full an arena is
 * @arena: arena
 * @usage: filled in
 *
 * Context: any. The numbers are read one by one, so they may not fit each other while slices come
 * and go.
 */
void ib_mr_arena_usage(struct ib_mr_arena *arena, struct ib_mr_arena_usage *usage)
{
	*usage = (struct ib_mr_arena_usage){
		.size = arena->size,
		.used = atomic_long_read(&arena->used),
		.peak = atomic_long_read(&arena->peak),
		.slices = atomic_long_read(&arena->slices),
		.failed = atomic_long_read(&arena->failed),
	};
}
EXPORT_SYMBOL(ib_mr_arena_usage);

/**
 * ib_mr_arena_mr() - the region of an arena, for binding windows to it
 * @arena: arena, whose region it stays
 *
 * Context: any.
 * Return: the handle.
 */
struct ib_mr *ib_mr_arena_mr(struct ib_mr_arena *arena)
{
	return arena->mr;
}
EXPORT_SYMBOL(ib_mr_arena_mr);
