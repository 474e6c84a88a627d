/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the window suites share: a region that may be bound to, a window, and one call to bind it.
 */
#ifndef IBT_WINDOW_H
#define IBT_WINDOW_H

#include "helpers.h"

struct ibt_win {
	struct kunit *test;
	struct ib_pd *pd;
	struct ibt_pair *p;
	struct ibt_buf *b;
	struct ib_mr *mr;
	struct ib_mw *mw;
	u64 base;	/* iova of the region's first byte */
};

struct ib_mw *ibt_mw(struct kunit *test, struct ib_pd *pd, enum ib_mw_type type);
/* A region over @size bytes of memory of @kind, with @access, and a type 1 window beside it. */
void ibt_win(struct ibt_win *w, struct kunit *test, enum ibt_mem kind, size_t size, int access);
int ibt_bind(struct ibt_win *w, size_t off, u64 len, int access, int send_flags);
/* The same, not signalled, as often as a stock is empty or still to be made. */
int ibt_bind_patiently(struct ibt_win *w, size_t off, u64 len, int access);
int ibt_bind_2(struct ibt_win *w, struct ib_mw *mw, size_t off, u64 len, int access);
/* The next completion of the target's queue pair, as a ULP that polls sees it. */
void ibt_next_wc(struct ibt_win *w, struct ib_wc *wc);
/* Just [off, off + len) of the buffer can be reached by the key, in the ways that @access says. */
void ibt_expect_window(struct ibt_win *w, u32 key, size_t off, size_t len, int access);
void ibt_expect_no_window(struct ibt_win *w, u32 key, size_t off);

#endif /* IBT_WINDOW_H */
