// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * This room's part in the life of devices and PDs: regions that outlive their device keep their
 * handles, and a PD's registration queue pair goes with the PD's last object.
 */

#include "base/room.h"
#include "mr/handle.h"
#include "mr/regqp.h"

static void dev_remove(struct ibmr_dev *dev)
{
	struct hlist_node *next;
	struct ibmr_pd *ipd;
	int bkt;

	hash_for_each_safe(dev->pds, bkt, next, ipd, node) {
		ibmr_regions_orphan(ipd);
		ibmr_regqp_destroy(ipd->rq);
		ipd->rq = NULL;
	}
}

static void pd_last(struct ibmr_pd *ipd)
{
	ibmr_regqp_destroy(ipd->rq);
}

const struct ibmr_room ibmr_room_mr = {
	.init       = ibmr_handles_init,
	.left       = ibmr_handles_left,
	.dev_remove = dev_remove,
	.pd_last    = pd_last,
	.agree      = ibmr_regions_agree,
};
