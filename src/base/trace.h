/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_TRACE_H
#define IBMR_TRACE_H

#include <linux/tracepoint-defs.h>
#include <linux/types.h>

struct ib_mr;
struct ib_pd;
struct ibmr_armed;
struct ibmr_mag;
struct ibmr_region;
struct ibmr_window;

/*
 * Tracepoints of the paths that are counted in instructions. Off, each costs the branch that is
 * patched away; what it records is gathered in a function of its own, not where it runs.
 */
DECLARE_TRACEPOINT(ib_mr_mapped);
DECLARE_TRACEPOINT(ib_mr_cut_off);
DECLARE_TRACEPOINT(ib_mr_bound);
DECLARE_TRACEPOINT(ib_mr_unbound);

void ibmr_trace_mapped(const struct ib_mr *drv, const struct ibmr_mag *mag, u32 key);
void ibmr_withdraw_traced(const struct ibmr_armed *a, struct ib_mr *drv, struct ib_pd *park);
void ibmr_trace_bound(const struct ibmr_window *w, const struct ibmr_region *region,
		      const struct ibmr_armed *a);
void ibmr_trace_unbound(const struct ibmr_window *w, const struct ibmr_region *region, u32 rkey);

#endif /* IBMR_TRACE_H */
