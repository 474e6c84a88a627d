// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a ULP left behind: one line for each protection domain that still has something of ours when
 * its device goes, or when ib_mr does.
 *
 * A driver says "a key was never freed" at most, long after, and not whose it was. Here the ULP
 * is named, as `rdma resource show pd` would name it, with what it forgot. All of it is made
 * harmless right after; what matters to a person is that until then peers were let in, to memory
 * that its owner may have freed.
 *
 * The ULP's module may be gone, and its PD too, so name and number were kept when the PD's state
 * was made.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "base/compat.h"
#include "fmr/pool.h"
#include "mw/window.h"
#include "see/left.h"

static unsigned int windows_of(struct ibmr_dev *dev, const struct ibmr_pd *ipd)
{
	struct ibmr_window *w;
	unsigned int n = 0;

	list_for_each_entry(w, &dev->windows, listed.entry)
		n += w->ipd == ipd;
	return n;
}

static unsigned int pools_of(struct ibmr_dev *dev, const struct ibmr_pd *ipd, unsigned int *in_use)
{
	struct ib_fmr_pool *pool;
	unsigned int n = 0;

	*in_use = 0;
	list_for_each_entry(pool, &dev->pools, listed.entry) {
		if (pool->ipd != ipd)
			continue;
		n++;
		spin_lock_irq(&pool->mag->lock);
		*in_use += pool->plain ? pool->mag->in_use : pool->users;
		spin_unlock_irq(&pool->mag->lock);
	}
	return n;
}

/**
 * ibmr_left_text() - what is in a PD, in words
 * @dev: device
 * @ipd: PD's state
 * @buf: they go here
 * @size: of @buf; 160 hold all
 *
 * Context: process; takes dev->mag_lock.
 * Return: false when there is nothing but a hold, which harms nobody.
 */
bool ibmr_left_text(struct ibmr_dev *dev, struct ibmr_pd *ipd, char *buf, size_t size)
{
	unsigned int windows, pools, in_use, fmrs, regions = atomic_read(&ipd->nr_regions), known;
	size_t n = 0;

	mutex_lock(&dev->mag_lock);
	windows = windows_of(dev, ipd);
	pools = pools_of(dev, ipd, &in_use);
	mutex_unlock(&dev->mag_lock);
	known = regions + windows + pools + ipd->holds;
	fmrs = ipd->users > known ? ipd->users - known : 0;	/* each object is a user */

	buf[0] = '\0';
	if (regions)
		n += scnprintf(buf + n, size - n, ", %u regions", regions);
	if (windows)
		n += scnprintf(buf + n, size - n, ", %u windows", windows);
	if (fmrs)
		n += scnprintf(buf + n, size - n, ", %u FMRs", fmrs);
	if (pools)
		n += scnprintf(buf + n, size - n, ", %u FMR pools with %u FMRs in use", pools,
			       in_use);
	if (n)
		memmove(buf, buf + 2, n - 1);	/* without the first comma */
	return n;
}
IBMR_EXPORT_INTERNAL(ibmr_left_text);

/*
 * The device goes, and nobody else is at it. A ULP that is told after us may still be about to
 * release all this; when ib_mr itself goes nobody is left who could.
 */
void ibmr_left_say(struct ibmr_dev *dev)
{
	struct ibmr_pd *ipd;
	char what[160];
	int bkt;

	hash_for_each(dev->pds, bkt, ipd, node) {
		if (!ibmr_left_text(dev, ipd, what, sizeof(what)))
			continue;
		if (ibmr_unloading)
			pr_err("%s: ib_mr goes, and %s never released in pd %u: %s; their keys let peers in until now\n",
			       dev->name, ipd->owner, ipd->pdn, what);
		else
			pr_notice("%s goes, and %s still has in pd %u: %s; their keys let peers in until now\n",
				  dev->name, ipd->owner, ipd->pdn, what);
	}
}
