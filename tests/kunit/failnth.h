/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Fail-nth: every exported call under every fault that it can meet.
 *
 * A row of a table is one exported call in one situation. For each kind of fault it is made with
 * the first, second, third ... point on its way failing, until it passes without a hit. After each
 * fault what was there before works by RDMA, nothing leaked, the counters agree, and the same call
 * made again succeeds and works by RDMA. A row that names no kind has no step that can fail, and
 * that is tested, too: no point may be met.
 */
#ifndef IBT_FAILNTH_H
#define IBT_FAILNTH_H

#include "fmr_helpers.h"
#include "proc.h"
#include "window.h"

#include "base/fault.h"

#define F_ALLOC		BIT(IBMR_FAULT_ALLOC)
#define F_DEVICE	BIT(IBMR_FAULT_DEVICE)
#define F_POST		BIT(IBMR_FAULT_POST)
#define F_WC		BIT(IBMR_FAULT_WC)
#define F_TIMEOUT	BIT(IBMR_FAULT_TIMEOUT)
#define F_BREAK		BIT(IBMR_FAULT_BREAK)
#define F_REGQP		(F_POST | F_WC | F_TIMEOUT | F_BREAK)

#define FN_STOCK	BIT(0)	/* stocks stay behind, so MRs are not counted */
#define FN_ANYONE	BIT(1)	/* others do the work: faults in any task */
#define FN_FIRST	BIT(2)	/* the first of a second device, so there is no second try */
#define FN_EINVAL	BIT(3)	/* a live map that the driver refuses is -EINVAL */
#define FN_SAMPLE	BIT(4)	/* a hundred times the same: not every point of these */

#define FN_PAGES	6
#define FN_IOVA		0x5000000000ULL

struct fn_room {
	struct kunit *test;
	struct ib_device *dev;
	struct ib_pd *pd, *pd_2;
	struct ibt_pair *p, *p_2;
	struct ibt_buf *b;		/* FN_PAGES scattered pages */
	struct ibt_buf *flat;		/* as many in vmalloc memory */
	u64 *list;			/* of @b's pages */
	struct ib_phys_buf *phys;	/* the same */
	struct scatterlist *sgl;
	int nphys, nents;
	int turn;			/* which of two mappings, say, is the current one */
	/* whatever the row works with */
	struct ib_mr *mr, *old;
	struct ib_fmr *fmr;
	struct ib_fmr_pool *pool;
	struct ib_pool_fmr *pf, *held;
	struct ibt_win w;
	struct ib_mw *mw;
	struct ib_mr_scope *scope;
	struct ib_mr_arena *arena;
	struct ib_mr_slice slice;
	struct ibt_proc *proc;
	unsigned long at;
	u64 dma;
	u32 key;
	void *mem;
	struct scatterlist sg[3];
	struct ib_cq *cq;
	u64 twice;			/* faults of the DMA checker */
};

/**
 * struct fn_row - a call in a situation
 * @call: the exported name
 * @what: situation, or NULL
 * @must: kinds of faults that it meets; at least one of each
 * @flags: FN_*
 * @set_up: once
 * @before: makes what the call uses up, each time
 * @run: the call. 0 or an errno
 * @failed: after a failure: what was there works
 * @done: after a success: it works, and is undone
 */
struct fn_row {
	const char *call, *what;
	unsigned int must, flags;
	void (*set_up)(struct fn_room *r);
	void (*before)(struct fn_room *r);
	int (*run)(struct fn_room *r);
	void (*failed)(struct fn_room *r);
	void (*done)(struct fn_room *r);
};

struct fn_table {
	const struct fn_row *row;
	unsigned int nr;
};

extern const struct fn_table fn_regions, fn_others, fn_fmrs, fn_windows, fn_dma;

/* A case of the suite of each table. */
void fn_sweep(struct kunit *test);
void fn_desc(const struct fn_row *row, char *desc);

#define FN_SUITE(_name, _rows)						\
	const struct fn_table fn_##_name = { _rows, ARRAY_SIZE(_rows) };	\
	KUNIT_ARRAY_PARAM(_name, _rows, fn_desc);			\
	static struct kunit_case _name##_cases[] = {			\
		KUNIT_CASE_PARAM(fn_sweep, _name##_gen_params),		\
		{}							\
	};								\
	IBT_SUITE(failnth_##_name, _name##_cases)

/* [@off, @off + @len) of @b is read by the key at @iova; a byte of it is not. */
void fn_reads(struct fn_room *r, struct ibt_pair *p, struct ibt_buf *b, u32 key, u64 iova,
	      size_t off, size_t len);
void fn_dead(struct fn_room *r, struct ibt_pair *p, u32 key, u64 iova);

#endif /* IBT_FAILNTH_H */
