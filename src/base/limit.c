// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Limits: how many regions a device and a PD may have, and how much user memory a PD may pin.
 *
 * Each limit has a reason of its own, so a refusal says which one was met. What is being made is
 * counted before it is made and taken back when that fails, so two who come at once cannot both get
 * the last place. A re-registration into another PD is counted there before it leaves the old one;
 * in the same PD it takes no second place.
 */

#include <linux/module.h>
#include <linux/moduleparam.h>

#include "base/core.h"

static unsigned int max_regions_per_pd;
module_param(max_regions_per_pd, uint, 0644);
MODULE_PARM_DESC(max_regions_per_pd, "regions that one protection domain may have (0: no limit)");

static unsigned long max_pinned_per_pd;
module_param(max_pinned_per_pd, ulong, 0644);
MODULE_PARM_DESC(max_pinned_per_pd,
		 "pages of user memory that one protection domain may pin (0: no limit)");

static bool pages_fit(u64 pinned, u64 pages)
{
	unsigned long max = READ_ONCE(max_pinned_per_pd);

	return !max || (pinned <= max && pages <= max - pinned);
}

/* Would @pages more fit? To be asked before the pinning, which may be long. */
enum ib_mr_reason ibmr_limit_pages(struct ibmr_pd *ipd, u64 pages)
{
	return pages_fit(atomic64_read(&ipd->pinned), pages) ? IB_MR_WHY_OK :
							       IB_MR_WHY_LIMIT_PINNED;
}

/* Pages are counted only when they fit: who is refused takes no place from others meanwhile. */
static enum ib_mr_reason add_pinned(struct ibmr_pd *ipd, u64 pages)
{
	s64 pinned = atomic64_read(&ipd->pinned);

	do {
		if (pages && !pages_fit(pinned, pages))
			return IB_MR_WHY_LIMIT_PINNED;
	} while (!atomic64_try_cmpxchg(&ipd->pinned, &pinned, pinned + pages));
	return IB_MR_WHY_OK;
}

/* Likewise; @max 0 is no limit. */
static bool inc_below(atomic_t *count, unsigned int max)
{
	int n = atomic_read(count);

	do {
		if (max && n >= max)
			return false;
	} while (!atomic_try_cmpxchg(count, &n, n + 1));
	return true;
}

/**
 * ibmr_limit_charge() - count a region that is to be made
 * @ipd: its PD
 * @pages: user memory that it pins
 *
 * Context: any.
 * Return: IB_MR_WHY_OK, or the limit that is met, with nothing counted.
 */
enum ib_mr_reason ibmr_limit_charge(struct ibmr_pd *ipd, u64 pages)
{
	int max_mr = ipd->dev->ibdev->attrs.max_mr;
	enum ib_mr_reason why;

	why = add_pinned(ipd, pages);
	if (why)
		return why;
	why = IB_MR_WHY_LIMIT_REGIONS;
	if (!inc_below(&ipd->nr_regions, READ_ONCE(max_regions_per_pd)))
		goto err_pinned;
	why = IB_MR_WHY_MAX_MR;
	if (!inc_below(&ipd->dev->regions, max(max_mr, 0)))
		goto err_nr;
	return IB_MR_WHY_OK;

err_nr:
	atomic_dec(&ipd->nr_regions);
err_pinned:
	atomic64_sub(pages, &ipd->pinned);
	return why;
}

void ibmr_limit_uncharge(struct ibmr_pd *ipd, u64 pages)
{
	atomic_dec(&ipd->dev->regions);
	atomic_dec(&ipd->nr_regions);
	atomic64_sub(pages, &ipd->pinned);
}
