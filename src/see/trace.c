// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Where the tracepoints live, and what fills in those of the short paths.
 *
 * An event tells of what has happened, so it is recorded after it: an MR is mapped when its PD was
 * published, and cut off when the private one was stored. In between two events of one key peers
 * may have had access, and at no other time.
 */

#include "base/compat.h"
#include "mr/region.h"
#include "mw/window.h"
#include "stock/magazine.h"

/* Functions that the event macros make pass a format on; there is no place for an attribute. */
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wsuggest-attribute=format"
#endif

#define CREATE_TRACE_POINTS
#include <trace/events/ib_mr.h>

/* Published, and still in the section that keeps removal of the device out. */
noinline void ibmr_trace_mapped(const struct ib_mr *drv, const struct ibmr_mag *mag, u32 key)
{
	trace_ib_mr_mapped(mag->dev->name, drv->pd->res.id, key, drv->iova, drv->length,
			   mag->access);
}

/*
 * ibmr_withdraw(), told of. One that is parked was not mapped; the probe's, which has no magazine,
 * was mapped for nobody.
 */
noinline void ibmr_withdraw_traced(const struct ibmr_armed *a, struct ib_mr *drv,
				   struct ib_pd *park)
{
	const struct ib_pd *pd = drv->pd;
	u64 length = drv->length;

	ibmr_driver_reads(WRITE_ONCE(drv->pd, park));
	ibmr_driver_reads(WRITE_ONCE(drv->length, 0));
	if (pd != park && a->mag)
		trace_ib_mr_cut_off(a->mag->dev->name, pd->res.id, a->key, drv->iova, length,
				    a->mag->access);
}

noinline void ibmr_trace_bound(const struct ibmr_window *w, const struct ibmr_region *region,
			       const struct ibmr_armed *a)
{
	trace_ib_mr_bound(region->dev->name, &w->mw, region->reg, a);
}

/* The window keeps its region still. @rkey: of the binding that is no more. */
noinline void ibmr_trace_unbound(const struct ibmr_window *w, const struct ibmr_region *region,
				 u32 rkey)
{
	trace_ib_mr_unbound(region->dev->name, w->pdn, w->mw.type, region->mr.lkey, rkey);
}
