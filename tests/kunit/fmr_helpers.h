/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the cases about FMRs and their pools share: managed FMRs and pools, page lists, verdicts on
 * a key, calls from every context, module parameters, a second device, and a responder held up.
 */
#ifndef IBT_FMR_HELPERS_H
#define IBT_FMR_HELPERS_H

#include <rdma/ib_fmr_pool.h>
#include "helpers.h"

#include "fmr/fmr.h"

#define FMR_ALL	(LW | RR | RW | RA)

/* FMRs. Unmapped and freed at the case's end, or before by ibt_fmr_free(). */
struct ib_fmr *ibt_fmr_attr(struct kunit *test, struct ib_pd *pd, int access,
			    struct ib_fmr_attr attr);
struct ib_fmr *ibt_fmr(struct kunit *test, struct ib_pd *pd, int access, int max_pages,
		       int max_maps);
void ibt_fmr_free(struct kunit *test, struct ib_fmr *fmr);
int ibt_unmap(struct ib_fmr *fmr);

/* Pools. What is 0 of max_pages_per_fmr (16), page_shift, access (all) and pool_size (8) is set. */
struct ib_fmr_pool *ibt_pool(struct kunit *test, struct ib_pd *pd, struct ib_fmr_pool_param param);
void ibt_pool_destroy(struct kunit *test, struct ib_fmr_pool *pool);
/* Is the PD free of us? A pool that outlived its destruction goes by itself, some time later. */
bool ibt_pd_idle(struct ib_pd *pd);

/* The pages of a buffer as a classic list. */
u64 *ibt_page_list(struct kunit *test, const struct ibt_buf *b);

/* Map, waiting for a stock that is empty just now. */
int ibt_map(struct ib_fmr *fmr, u64 *list, int n, u64 iova);
struct ib_pool_fmr *ibt_pool_map(struct ib_fmr_pool *pool, u64 *list, int n, u64 iova);

/*
 * @key opens [@iova, @iova + @len), and that is [@off, @off + @len) of @b; not a byte more. The key
 * opens nothing.
 */
void ibt_expect_key(struct ibt_pair *p, u32 key, u64 iova, struct ibt_buf *b, size_t off,
		    size_t len);
void ibt_expect_shut(struct ibt_pair *p, u32 key, u64 iova);
bool ibt_can_read(struct ibt_pair *p, u32 key, u64 iova);

/* Run @fn(@arg) there. Only what may be called there may be in it; no expectations. */
enum ibt_context {
	IBT_PROCESS, IBT_BH_OFF, IBT_IRQ_OFF, IBT_SPINLOCK, IBT_TASKLET, IBT_TIMER, IBT_HARDIRQ,
	IBT_CONTEXTS,
};

const char *ibt_context_name(enum ibt_context ctx);
void ibt_in_context(struct kunit *test, enum ibt_context ctx, void (*fn)(void *arg), void *arg);

/* Set a module parameter of ib_mr for the rest of the case. */
void ibt_set(struct kunit *test, unsigned int *param, unsigned int value);
void ibt_force_replace(struct kunit *test);

/* The counters of a magazine, taken together. */
struct ibt_mag {
	unsigned int stock, in_use, created, retired, quarantine, due, promised, target;
	u64 rekeyed, replaced, empties;
};

struct ibt_mag ibt_mag(struct ibmr_mag *mag);
/* Within @ms: all are back in stock but for @in_use. */
bool ibt_mag_settles(struct ibmr_mag *mag, unsigned int in_use, unsigned int ms);

/* A second rxe device, on lo. It goes at the case's end, or by ibt_second_delete(). */
struct ib_device *ibt_second(struct kunit *test);
int ibt_second_delete(void);

/*
 * A responder is held between its check and its copy: @iova chooses the packet. From ibt_hold()
 * on, the first packet that would copy at @iova waits until ibt_release(), at most two seconds.
 */
void ibt_hold_elsewhere(void);
int ibt_hold(u64 iova);
bool ibt_held(void);	/* waits until one is; false when none comes */
void ibt_release(void);
bool ibt_hold_expired(void);

#endif /* IBT_FMR_HELPERS_H */
