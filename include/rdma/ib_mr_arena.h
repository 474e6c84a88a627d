/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Handles that make misuse hard: arenas of registered buffers, and scopes that release what belongs
 * together.
 */
#ifndef _RDMA_IB_MR_ARENA_H
#define _RDMA_IB_MR_ARENA_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

/* Arenas: many small registered buffers for the price of one registration. */
struct ib_mr_arena;

/**
 * struct ib_mr_slice - a buffer out of an arena
 * @va: for the CPU
 * @iova: for work requests and peers
 * @size: bytes, as they were asked for
 * @lkey: key for local work requests
 * @rkey: key for peers, 0 where the arena has no remote right
 * @number: the arena's own: which of all its slices this is
 */
struct ib_mr_slice {
	void *va;
	u64 iova;
	size_t size;
	u32 lkey;
	u32 rkey;
	u32 number;
};

/**
 * struct ib_mr_arena_usage - how full an arena is
 * @size: bytes in all
 * @used: bytes in slices, rounded up to its granule each
 * @peak: the most that @used was
 * @slices: slices out
 * @failed: allocations that found no room
 */
struct ib_mr_arena_usage {
	size_t size;
	size_t used;
	size_t peak;
	unsigned long slices;
	unsigned long failed;
};

struct ib_mr_arena *ib_mr_arena_create(struct ib_pd *pd, size_t size,
				       int access, unsigned int min_order);
int ib_mr_arena_destroy(struct ib_mr_arena *arena);
int ib_mr_arena_alloc(struct ib_mr_arena *arena, size_t size,
		      struct ib_mr_slice *slice);
int ib_mr_arena_alloc_aligned(struct ib_mr_arena *arena, size_t size,
			      size_t align, struct ib_mr_slice *slice);
int ib_mr_arena_free(struct ib_mr_arena *arena, struct ib_mr_slice *slice);
void ib_mr_arena_usage(struct ib_mr_arena *arena,
		       struct ib_mr_arena_usage *usage);
struct ib_mr *ib_mr_arena_mr(struct ib_mr_arena *arena);

/* Scopes: what belongs to a connection, released in the right order by one call. */
struct ib_mr_scope;

/* The order of release: what stands on something goes before it. */
enum ib_mr_scope_rank {
	IB_MR_SCOPE_WINDOW,
	IB_MR_SCOPE_FMR_POOL,
	IB_MR_SCOPE_FMR,
	IB_MR_SCOPE_ARENA,
	IB_MR_SCOPE_REGION,
	IB_MR_SCOPE_LAST,	/* what is no object of ib_mr's */
	IB_MR_SCOPE_RANKS
};

struct ib_mr_scope *ib_mr_scope_create(struct ib_pd *pd);
int ib_mr_scope_add(struct ib_mr_scope *scope, enum ib_mr_scope_rank rank,
		    int (*release)(void *object), void *object);
struct ib_mr *ib_mr_scope_mr(struct ib_mr_scope *scope, struct ib_mr *mr);
struct ib_mr_arena *ib_mr_scope_arena(struct ib_mr_scope *scope,
				      struct ib_mr_arena *arena);
int ib_mr_scope_forget(struct ib_mr_scope *scope, void *object);
int ib_mr_scope_drop(struct ib_mr_scope *scope, void *object);
int ib_mr_scope_release(struct ib_mr_scope *scope);

#endif /* _RDMA_IB_MR_ARENA_H */
