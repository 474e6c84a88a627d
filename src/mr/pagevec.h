/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_PAGEVEC_H
#define IBMR_PAGEVEC_H

#include <linux/bitops.h>
#include <linux/scatterlist.h>
#include <linux/types.h>
#include <rdma/ib_mr.h>

/*
 * One contiguous piece. Its length is the next run's @start (or the vector's length) minus its
 * own.
 */
struct ibmr_run {
	u64 addr;	/* device address of the first byte */
	u64 start;	/* offset of the first byte in the buffer: the prefix sum */
};

/**
 * struct ibmr_pagevec - a buffer as the device sees it
 * @length: bytes in all
 * @nr: runs
 * @runs: the runs, in buffer order; &@one where there is but one
 * @one: so that contiguous memory needs no allocation
 *
 * Immutable once built, so it is read without a lock.
 */
struct ibmr_pagevec {
	u64 length;
	u32 nr;
	struct ibmr_run *runs;
	struct ibmr_run one;
};

struct ibmr_pagevec_builder;

/*
 * Adds every piece of a buffer with ibmr_pagevec_add(); called twice, once to count and once to
 * fill, and must say the same both times.
 */
typedef enum ib_mr_reason (*ibmr_feed_fn)(struct ibmr_pagevec_builder *b, const void *ctx);

enum ib_mr_reason ibmr_pagevec_add(struct ibmr_pagevec_builder *b, u64 addr, u64 len);
enum ib_mr_reason ibmr_pagevec_build(struct ibmr_pagevec *pv, ibmr_feed_fn feed, const void *ctx);
void ibmr_pagevec_free(struct ibmr_pagevec *pv);

/* The feeds. */
struct ibmr_phys_list {
	const struct ib_phys_buf *buf;
	int nr;
};

struct ibmr_sg_list {
	struct scatterlist *sgl;
	unsigned int nr;
	u64 skip;	/* bytes to leave out at the start */
	u64 length;	/* bytes to take; U64_MAX for all */
	struct ibmr_sg_end *end;	/* told where they end; NULL if that is no matter */
};

struct ibmr_sg_end {
	struct scatterlist *last;	/* entry with the last byte; NULL if the list goes on */
	u64 over;			/* its bytes behind that one */
};

enum ib_mr_reason ibmr_feed_phys(struct ibmr_pagevec_builder *b, const void *phys_list);
enum ib_mr_reason ibmr_feed_sg(struct ibmr_pagevec_builder *b, const void *sg_list);
enum ib_mr_reason ibmr_pagevec_build_sg(struct ibmr_pagevec *pv, const struct ibmr_sg_list *list);

static inline u64 ibmr_run_end(const struct ibmr_pagevec *pv, size_t i)
{
	return i + 1 < pv->nr ? pv->runs[i + 1].start : pv->length;
}

static inline u64 ibmr_run_len(const struct ibmr_pagevec *pv, size_t i)
{
	return ibmr_run_end(pv, i) - pv->runs[i].start;
}

/**
 * ibmr_pagevec_find() - the run that holds a byte
 * @pv: vector, not empty
 * @offset: byte in it, below @pv->length
 *
 * Bisection without a branch but the loop's: which half it is nobody can foretell. The first step
 * makes the number of runs a power of two, by choosing between the first and the last so many of
 * them; from there on a step is an addition, a comparison and a shift.
 *
 * Context: any; O(log runs).
 * Return: index of the run.
 */
static inline size_t ibmr_pagevec_find(const struct ibmr_pagevec *pv, u64 offset)
{
	const struct ibmr_run *run = pv->runs, *next;
	size_t step = sizeof(*run) << __fls(pv->nr);	/* in bytes */

	next = (const void *)run + (pv->nr * sizeof(*run) - step);
	run = next->start <= offset ? next : run;
	while (step > sizeof(*run)) {
		step /= 2;
		next = (const void *)run + step;
		run = next->start <= offset ? next : run;
	}
	return run - pv->runs;
}

enum ib_mr_reason ibmr_pagevec_block(const struct ibmr_pagevec *pv, u64 iova, u64 page_size_cap,
				     unsigned int *shift);
u64 ibmr_pagevec_blocks(const struct ibmr_pagevec *pv, unsigned int shift);
bool ibmr_pagevec_linear(const struct ibmr_pagevec *pv);

unsigned int ibmr_pagevec_slice(const struct ibmr_pagevec *pv, u64 offset, u64 length,
				struct scatterlist *sgl, unsigned int max, u64 *inner);

/* Scatterlist whose DMA fields say the runs, for ib_map_mr_sg(). */
unsigned int ibmr_pagevec_sg_nents(const struct ibmr_pagevec *pv);
void ibmr_pagevec_to_sg(const struct ibmr_pagevec *pv, struct scatterlist *sgl);

#endif /* IBMR_PAGEVEC_H */
