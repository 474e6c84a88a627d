/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What main.c (threads, verdict) and ops.c (the operations) of the race test share.
 */
#ifndef RACE_H
#define RACE_H

#include <linux/atomic.h>
#include <linux/mutex.h>
#include <linux/prandom.h>
#include <linux/srcu.h>
#include <rdma/ib_fmr_pool.h>
#include <rdma/ib_mr.h>

#define RACE_PAGES	16
#define RACE_REGIONS	6
#define RACE_WINDOWS	4	/* every other one is of type 2 */
#define RACE_FMRS	2
#define RACE_POOLS	4	/* plain, cache, rekey_at_once, key_maps */
#define RACE_HELD	4	/* pool FMRs, and slices, that a thread holds */
#define RACE_BYTE	0xa5	/* what is copied there */
#define RACE_SCRATCH	2048	/* from here on in a page; before it a page holds its own number */
#define RACE_READ	64
#define RACE_USER_PAGES	8

struct ibmr_regqp;

/**
 * struct race - a ULP: objects that all its threads work on
 * @dev: device
 * @pd: two PDs, so that a region can move
 * @binder: its queue pair is what windows are bound on
 * @reader: the peer
 * @reading: one at a time
 * @page: memory
 * @list: the same as a page list
 * @mm: an address space, for user memory
 * @user: address of RACE_USER_PAGES there
 * @mr: regions; a handle stays known for a while after it was deregistered, so anybody may try
 * @mw: windows; as @fmr and @pool, taken out of here and waited for (@readers) before it goes
 * @fmr: FMRs
 * @fmr_busy: a bit each: its list head is in use
 * @pool: pools
 * @arena: arena
 * @readers: held by every operation that uses what it found here
 * @deregs: since the graves were last waited for
 */
struct race {
	struct ib_device *dev;
	struct ib_pd *pd[2];
	struct ibmr_regqp *binder;
	struct ibmr_regqp *reader;
	struct mutex reading;
	struct page *page[RACE_PAGES];
	u64 list[RACE_PAGES];
	struct mm_struct *mm;
	unsigned long user;
	struct ib_mr *mr[RACE_REGIONS];
	struct ib_mw *mw[RACE_WINDOWS];
	struct ib_fmr *fmr[RACE_FMRS];
	unsigned long fmr_busy;
	struct ib_fmr_pool *pool[RACE_POOLS];
	struct ib_mr_arena *arena;
	struct srcu_struct readers;
	atomic_t deregs;
};

/*
 * A thread: its dice, what it holds, and buffers; those that a device works on are allocations of
 * their own.
 */
struct racer {
	struct race *race;
	struct rnd_state rnd;
	struct ib_pool_fmr *held[RACE_HELD];
	struct ib_mr_slice slice[RACE_HELD];
	u8 buf[256];
	u8 *dma;
	u8 *bytes;
};

#define RACE_FAMILIES	6

enum race_kind {
	RACE_ANY,	/* any context */
	RACE_SLEEPS,
	RACE_ENDS,	/* sleeps, and takes objects away: not among the readers */
};

/**
 * struct race_op - an operation
 * @name: for the account
 * @kind: where it may be called
 * @family: with which others it is done again and again; 0 of what sleeps
 * @weight: how often, against the others
 * @run: does it; 0, or the errno of a refusal; 1 when there was nothing to do it to
 * @refusals: errnos that are answers, 0 at the end
 */
struct race_op {
	const char *name;
	enum race_kind kind;
	unsigned int family;
	unsigned int weight;
	int (*run)(struct racer *r);
	int refusals[6];
};

extern const struct race_op race_ops[];
extern const unsigned int race_nr_ops;

static inline u32 race_dice(struct racer *r, u32 below)
{
	return prandom_u32_state(&r->rnd) % below;
}

/* What all threads turn to now: a number that goes on with the operations done. */
u32 race_focus(void);

/* The mode of the DMA checker may be turned. */
bool race_turns_modes(void);

void race_wrong(const char *what, long err);

int race_make(struct race *race);
void race_unmake(struct race *race);
void race_let_go(struct racer *r);

#endif /* RACE_H */
