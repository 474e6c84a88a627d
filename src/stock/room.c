// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * This room's part in the life of the module and of devices: the scratch lists of each CPU, the
 * work queues, and the end of all armed MRs of a device.
 */

#include "base/room.h"
#include "stock/magazine.h"

static int init(void)
{
	int err = ibmr_live_init();

	if (err)
		return err;
	err = ibmr_mags_init();
	if (err)
		ibmr_live_exit();
	return err;
}

static void exit_room(void)
{
	ibmr_mags_exit();
	ibmr_live_exit();
}

const struct ibmr_room ibmr_room_stock = {
	.init       = init,
	.exit       = exit_room,
	.dev_remove = ibmr_mags_remove,
	.agree      = ibmr_mags_agree,
};
