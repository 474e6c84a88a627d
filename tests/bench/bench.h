/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the benchmarks share: the clock, the results, scattered memory, a queue pair to work on.
 *
 * Under QEMU's icount with one CPU a tick of the clock is an instruction (main.c checks that), so
 * figures are counts, not times. Two ways of counting:
 *
 *  - the caller's path: a single call between two readings of the clock, interrupts off, repeated;
 *    the median counts, less what reading the clock costs;
 *  - everything: a span over many calls and until what they left to do in the background is done.
 *    Time that the CPU was idle is taken off.
 */
#ifndef IBMR_BENCH_H
#define IBMR_BENCH_H

#include <linux/completion.h>
#include <linux/scatterlist.h>
#include <linux/timex.h>
#include <rdma/ib_fmr_pool.h>

#define BENCH_PAGES	256	/* most pages of one mapping */
#define BENCH_IOVA	0x100000ULL
#define BENCH_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

/* Page counts of the tables. */
extern const unsigned int bench_sizes[5];

/**
 * struct bench - what a benchmark works with
 * @dev: the device
 * @pd: a PD
 * @list: BENCH_PAGES addresses of pages, no two neighbours
 * @sgl: the same as a mapped scatterlist
 * @page: the pages
 */
struct bench {
	struct ib_device *dev;
	struct ib_pd *pd;
	u64 list[BENCH_PAGES];
	struct scatterlist sgl[BENCH_PAGES];
	struct page *page[BENCH_PAGES];
};

/* Each part: 0 or an error; says itself what went wrong. */
int bench_fmr(struct bench *b);
int bench_rekey(struct bench *b);
int bench_frwr(struct bench *b);
int bench_io(struct bench *b);
int bench_window(struct bench *b);
int bench_dma(struct bench *b);
int bench_scale(struct bench *b);
int bench_user(struct bench *b);
int bench_smp(struct bench *b);

/* --- results --- */

void bench_result(const char *name, unsigned int pages, u64 instructions);
int bench_fail(const char *what, long err);

static inline u64 bench_clock(void)
{
	return get_cycles();
}

/**
 * struct bench_samples - repetitions of one call
 * @nr: taken
 * @v: each, clock's cost included
 */
#define BENCH_SAMPLES	256
struct bench_samples {
	unsigned int nr;
	u32 v[BENCH_SAMPLES];
};

static inline void bench_sample(struct bench_samples *s, u64 ticks)
{
	if (s->nr < BENCH_SAMPLES)
		s->v[s->nr++] = min_t(u64, ticks, U32_MAX);
}

u64 bench_median(struct bench_samples *s);

/* A span: what the CPU did in it, idle time excluded. */
struct bench_span {
	u64 clock;
	u64 idle;
};

void bench_begin(struct bench_span *span);
u64 bench_end(const struct bench_span *span);

/* --- a queue pair that is connected to itself --- */

#define BENCH_QP_MRS	8

/**
 * struct bench_qp - a queue pair and how its completions are waited for
 * @cq: CQ
 * @qp: queue pair
 * @event: completed by the CQ's handler, or by the work request's
 * @cqe: of every signalled request, where the core polls
 * @status: what it completed with
 * @bare: the CQ has a handler of its own, the cheapest there is, and is polled by the waiter.
 *        Otherwise the core polls it in softirq (IB_POLL_SOFTIRQ), as for stock ULPs
 */
struct bench_qp {
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct completion event;
	struct ib_cqe cqe;
	enum ib_wc_status status;
	bool bare;
};

struct bench_qp *bench_qp_create(struct bench *b, bool bare);
void bench_qp_destroy(struct bench_qp *q);
int bench_qp_wait(struct bench_qp *q);

/* FRWR: an MR of the queue pair's pool, and the work requests around a data request. */
struct bench_frwr {
	struct ib_mr *mr;
	struct ib_reg_wr reg;
	struct ib_rdma_wr data;
	struct ib_send_wr inv;
};

int bench_frwr_map(struct bench *b, struct bench_qp *q, struct bench_frwr *f, unsigned int pages);
void bench_frwr_put(struct bench_qp *q, struct bench_frwr *f);

/* --- FMR pools --- */

struct ibmr_dev;
struct ibmr_mag;

/**
 * struct bench_pool - a pool and what is behind it
 * @pool: pool
 * @dev: ib_mr's state of the device, held
 * @mag: the pool's magazine
 */
struct bench_pool {
	struct ib_fmr_pool *pool;
	struct ibmr_dev *dev;
	struct ibmr_mag *mag;
};

int bench_pool_create(struct bench *b, struct bench_pool *p, struct ib_fmr_pool_param param);
void bench_pool_destroy(struct bench_pool *p);
unsigned int bench_pool_ready(struct bench_pool *p);

/*
 * @nr times @op, then wait until @keys MRs were re-keyed, and not one replaced. *@each is what one
 * @op took, all included.
 */
typedef int bench_op(void *arg);
int bench_cycle(struct bench_pool *p, bench_op *op, void *arg, unsigned int nr, unsigned int keys,
		u64 *each);

#endif /* IBMR_BENCH_H */
