// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A memory window: remote access to some bytes of a region that itself gives peers none, granted
 * for a while, moved, and taken back without the region being registered anew.
 *
 * Each device has one window, of type 1. Whichever connection asks gets it, and whoever had it
 * before has it no more: the last grant stands until the next one, or until it is taken back. So
 * there is one binding at most to keep in mind, and to take back before the region can go.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include "demo.h"

#define GRANT_RIGHTS	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)
#define GRANT_TRIES	50

/* -ENOMEM may be a matter of milliseconds: MRs that were just used are being made ready again. */
static int bind(struct demo_conn *conn, struct ib_mw *mw, const struct ib_mw_bind_info *info)
{
	int tries = GRANT_TRIES, err;

	while ((err = demo_conn_bind(conn, mw, info)) == -ENOMEM && --tries)
		usleep_range(1000, 2000);
	return err;
}

/**
 * demo_window_grant() - bind the device's window, or take its binding back
 * @region: what the peer named; its device is locked
 * @conn: connection that the request came on
 * @offset: first byte, counted from the region's; not checked yet, as are the next two
 * @length: bytes; 0 takes back
 * @access: rights
 * @reply: the answer's place
 *
 * Return: 0 or an errno, with which nothing has changed.
 */
int demo_window_grant(struct demo_region *region, struct demo_conn *conn, u64 offset, u64 length,
		      u32 access, struct demo_reply *reply)
{
	struct demo_window_info *told = &reply->window;
	struct ib_mw *mw = region->dev->mw;
	struct ib_mw_bind_info info = {
		.mr = region->mr,
		.length = length,
		.mw_access_flags = access,
	};
	int err;

	if (!(region->kind->access & IB_ACCESS_MW_BIND))
		return -EOPNOTSUPP;
	if (!region->mr)
		return -ENOENT;
	if (offset > region->length || length > region->length - offset)
		return -ERANGE;
	if (access & ~GRANT_RIGHTS || !access != !length)
		return -EINVAL;
	info.addr = region->mr->iova + offset;

	err = bind(conn, mw, &info);
	if (err || !length)
		return err;
	told->iova = cpu_to_be64(info.addr);
	told->length = cpu_to_be64(length);
	told->rkey = cpu_to_be32(mw->rkey);
	told->access = cpu_to_be32(access);
	reply->count = cpu_to_be32(1);
	return 0;
}

int demo_window_get(struct demo_dev *dev)
{
	struct ib_mw *mw = ib_alloc_mw(dev->pd, IB_MW_TYPE_1);

	if (IS_ERR(mw))
		return PTR_ERR(mw);
	dev->mw = mw;
	return 0;
}

/* Before the regions are put: a region under a bound window cannot be deregistered. */
void demo_window_put(struct demo_dev *dev)
{
	int err = ib_dealloc_mw(dev->mw);

	if (err)
		pr_err("%s: cannot free the window: %d\n", dev_name(&dev->ib->dev), err);
	dev->mw = NULL;
}
