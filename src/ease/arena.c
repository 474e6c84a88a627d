// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Arenas: one registration, thousands of buffers.
 *
 * A ULP with many small buffers (headers, requests, inline data) would pay a registration and a key
 * for each. An arena is one stretch of kernel memory, registered once; lib/genalloc hands out parts
 * of it without a lock, from any context. Every slice has the arena's keys and an address of its
 * own, so a peer that has one slice's key can reach the others: slices are for memory of one trust.
 *
 * genalloc panics when it is given back what it did not hand out. So every slice has a number,
 * which no other slice of the arena had before it (until 2^32 have been), and the arena keeps the
 * number with the slice's first granule while it is out. The caller's copy has it too, mixed with
 * the size. What is given back with another number or another size is refused with a reason: no
 * slice, one of another arena, a stale copy of a slice whose place is somebody else's by now. To
 * free is to exchange the number for 0, so of two who free the same slice one is refused.
 *
 * Where a search begins is a hint: behind the slice that was handed out last, or at the place that
 * was freed last. So neither filling an arena nor using it up and down searches what is full.
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
 * @numbers: for each granule the number of the slice that begins with it, or 0
 * @last_number: the last that was given
 * @hint: granule to begin a search at; any is right, a good one is quick
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
	u32 *numbers;
	atomic_t last_number;
	unsigned long hint;
	atomic_long_t used;
	atomic_long_t peak;
	atomic_long_t slices;
	atomic_long_t failed;
};

static void arena_free(struct ib_mr_arena *arena)
{
	if (arena->pool)
		gen_pool_destroy(arena->pool);
	kvfree(arena->numbers);
	kvfree(arena->mem);
	ibmr_dev_put(arena->dev);
	kfree(arena);
}

/* The memory and what keeps account of it; the region comes last. */
static int arena_init(struct ib_mr_arena *arena)
{
	arena->mem = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kvzalloc(arena->size, GFP_KERNEL);
	if (!arena->mem)
		return -ENOMEM;
	arena->numbers = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL :
		kvcalloc(arena->size >> arena->order, sizeof(*arena->numbers), GFP_KERNEL);
	if (!arena->numbers)
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

/* All that is out of a chunk goes back. */
static void take_back(struct gen_pool *pool, struct gen_pool_chunk *chunk, void *data)
{
	struct ib_mr_arena *arena = data;
	unsigned long from, to;

	for_each_set_bitrange(from, to, chunk->bits, arena->size >> arena->order)
		gen_pool_free(pool, chunk->start_addr + (from << arena->order),
			      (to - from) << arena->order);
}

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
	if (atomic_long_read(&arena->slices))
		gen_pool_for_each_chunk(arena->pool, take_back, arena);
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
	/* Pairs with the barrier in ib_mr_arena_free(): who has counted down is done. */
	out = atomic_long_read_acquire(&arena->slices);
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

/* The number of a slice, as its owner's copy has it: another size makes another number of it. */
static u32 mixed(u32 number, size_t size)
{
	return number ^ (u32)size * 0x9e3779b1U;	/* odd, so no two sizes are the same */
}

static u32 next_number(struct ib_mr_arena *arena)
{
	u32 number;

	do
		number = atomic_inc_return(&arena->last_number);
	while (!number);
	return number;
}

struct fit {
	struct ib_mr_arena *arena;
	size_t align;
};

/* For genalloc: the next place that is long enough, from the hint on, then from the start. */
static unsigned long next_fit(unsigned long *map, unsigned long size, unsigned long start,
			      unsigned int nr, void *data, struct gen_pool *pool,
			      unsigned long start_addr)
{
	const struct fit *fit = data;
	unsigned int order = fit->arena->order;
	unsigned long mask = (max(fit->align, BIT(order)) >> order) - 1;
	unsigned long off = start_addr >> order & mask;
	unsigned long hint = READ_ONCE(fit->arena->hint), at;

	at = bitmap_find_next_zero_area_off(map, size, max(start, hint), nr, mask, off);
	if (at >= size && hint)
		at = bitmap_find_next_zero_area_off(map, size, 0, nr, mask, off);
	return at;
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
	struct fit fit = { .arena = arena, .align = align };
	size_t bytes, first;
	unsigned long va;
	u32 number;

	if (IS_ERR_OR_NULL(arena) || !slice)
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	if (!size || !is_power_of_2(align) || align > INT_MAX)
		return ibmr_refuse(arena->dev, IB_MR_WHY_ARENA_ARGS, "%s(%zu bytes, align %zu)",
				   __func__, size, align);
	/* What is full is not searched. */
	va = size > arena->size - atomic_long_read(&arena->used) ||
	     ibmr_should_fail(IBMR_FAULT_ALLOC) ? 0 :
		gen_pool_alloc_algo(arena->pool, size, next_fit, &fit);
	if (!va) {
		atomic_long_inc(&arena->failed);
		return ibmr_refuse(arena->dev, IB_MR_WHY_ARENA_FULL, "%s(%zu bytes)", __func__,
				   size);
	}
	bytes = round_up(size, 1UL << arena->order);
	first = (va - (uintptr_t)arena->mem) >> arena->order;
	WRITE_ONCE(arena->hint, first + (bytes >> arena->order));
	number = next_number(arena);
	WRITE_ONCE(arena->numbers[first], number);
	note_used(arena, bytes);
	*slice = (struct ib_mr_slice){
		.va = (void *)va, .iova = va, .size = size,
		.lkey = arena->mr->lkey, .rkey = arena->mr->rkey,
		.number = mixed(number, size),
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
 * @slice: slice; emptied, so that a second free of it is noticed
 *
 * A copy of the slice will do. Once it was freed no copy will, whoever has its place by then.
 *
 * No peer may use its address any more: the memory stays registered, and the next user gets it.
 *
 * Context: any, hardirq included; takes no lock.
 * Return: 0; -EINVAL when it is no slice of the arena, has another size, or was freed; nothing is
 * changed then.
 */
int ib_mr_arena_free(struct ib_mr_arena *arena, struct ib_mr_slice *slice)
{
	size_t off, first, bytes;
	u32 number;

	if (IS_ERR_OR_NULL(arena) || !slice)
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	off = (uintptr_t)slice->va - (uintptr_t)arena->mem;
	number = mixed(slice->number, slice->size);
	if (slice->va < arena->mem || off >= arena->size || off & ((1UL << arena->order) - 1) ||
	    !slice->size || slice->size > arena->size - off || !number)
		goto refuse;
	first = off >> arena->order;
	if (cmpxchg(&arena->numbers[first], number, 0) != number)
		goto refuse;
	/* From here on it is ours alone, and its size is what it was. */
	bytes = round_up(slice->size, 1UL << arena->order);
	atomic_long_sub(bytes, &arena->used);	/* before the room is there: who counts may try */
	gen_pool_free(arena->pool, (uintptr_t)slice->va, bytes);
	WRITE_ONCE(arena->hint, first);
	*slice = (struct ib_mr_slice){};
	/* Last: who finds none out may destroy the arena. Pairs with the reading there. */
	smp_mb__before_atomic();
	atomic_long_dec(&arena->slices);
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
 * Return: the handle; ERR_PTR(-EINVAL) for an error or NULL.
 */
struct ib_mr *ib_mr_arena_mr(struct ib_mr_arena *arena)
{
	if (IS_ERR_OR_NULL(arena))
		return ERR_PTR(ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__));
	return arena->mr;
}
EXPORT_SYMBOL(ib_mr_arena_mr);
