// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * This room's part in the life of the module: completions of binds that nobody polled are freed.
 * A device that goes takes the MRs behind its windows along, with its stocks.
 */

#include "base/room.h"
#include "mw/window.h"

const struct ibmr_room ibmr_room_mw = {
	.exit  = ibmr_carriers_exit,
	.agree = ibmr_windows_agree,
};
