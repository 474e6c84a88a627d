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

#include "core.h"

static unsigned int max_regions_per_pd;
module_param(max_regions_per_pd, uint, 0644);
MODULE_PARM_DESC(max_regions_per_pd, "regions that one protection domain may have (0: no limit)");

static unsigned long max_pinned_per_pd;
module_param(max_pinned_per_pd, ulong, 0644);
MODULE_PARM_DESC(max_pinned_per_pd,
		 "pages of user memory that one protection domain may pin (0: no limit)");

/* Would @pages more fit? To be asked before the pinning, which may be long. */
enum ib_mr_reason ibmr_limit_pages(struct ibmr_pd *ipd, u64 pages)
{
	unsigned long max = READ_ONCE(max_pinned_per_pd);
	u64 pinned = atomic64_read(&ipd->pinned);

	return max && (pinned > max || pages > max - pinned) ? IB_MR_WHY_LIMIT_PINNED :
							       IB_MR_WHY_OK;
}

/**
 * ibmr_limit_charge() - count a region that is to be made
 * @ipd: its PD
 * @pages: user memory that it pins
 *
 * Return: IB_MR_WHY_OK, or the limit that is met, with nothing counted.
 */
enum ib_mr_reason ibmr_limit_charge(struct ibmr_pd *ipd, u64 pages)
{
	unsigned int max_regions = READ_ONCE(max_regions_per_pd);
	unsigned long max_pinned = READ_ONCE(max_pinned_per_pd);
	int max_mr = ipd->dev->ibdev->attrs.max_mr;
	enum ib_mr_reason why = IB_MR_WHY_OK;
	u64 pinned;
	int n;

	n = atomic_inc_return(&ipd->dev->regions);
	if (max_mr > 0 && n > max_mr)
		why = IB_MR_WHY_MAX_MR;
	n = atomic_inc_return(&ipd->nr_regions);
	if (!why && max_regions && n > max_regions)
		why = IB_MR_WHY_LIMIT_REGIONS;
	pinned = atomic64_add_return(pages, &ipd->pinned);
	if (!why && pages && max_pinned && pinned > max_pinned)
		why = IB_MR_WHY_LIMIT_PINNED;
	if (why)
		ibmr_limit_uncharge(ipd, pages);
	return why;
}

void ibmr_limit_uncharge(struct ibmr_pd *ipd, u64 pages)
{
	atomic_dec(&ipd->dev->regions);
	atomic_dec(&ipd->nr_regions);
	atomic64_sub(pages, &ipd->pinned);
}
