// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The module: which rooms there are, and in which order all of them begin and end.
 *
 * The order of the list is that of teardown. Who looks goes first, so that no reader of a file
 * meets what is half gone. Then what stands on something goes before it: windows and their stocks
 * before regions, which windows are bound to, and all of them before DMA, since memory is unmapped
 * when nothing can reach it any more. FMRs, pools, arenas and scopes have no row: what has to be
 * done for them when a device goes is done by the stocks and regions under them.
 *
 * A room begins in the reverse order. Devices come when all rooms are ready, and go before any room
 * does. What rooms gave to RCU is waited for last of all: callbacks are the module's text.
 *
 * The exported calls live beside the objects they work on; device.c keeps devices and PDs.
 */

#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/rcupdate.h>

#include "base/compat.h"
#include "base/core.h"
#include "base/late.h"
#include "base/room.h"

const struct ibmr_room *const ibmr_rooms[IBMR_ROOMS] = {
	&ibmr_room_see,
	&ibmr_room_mw,
	&ibmr_room_stock,
	&ibmr_room_mr,
	&ibmr_room_dma,
};

struct dentry *ibmr_debugfs_root, *ibmr_debugfs_devices;

/* Those from @first on have begun. */
static void rooms_exit(int first)
{
	const struct ibmr_room *room;
	int i;

	/* Waits for readers. */
	debugfs_remove_recursive(ibmr_debugfs_root);
	for (i = first; i < IBMR_ROOMS; i++) {
		room = ibmr_rooms[i];
		if (room->left)
			room->left();
	}
	rcu_barrier();
	for (i = first; i < IBMR_ROOMS; i++) {
		room = ibmr_rooms[i];
		if (room->exit)
			room->exit();
	}
	ibmr_late_exit();
	/* last: whatever was queued above is our text */
	rcu_barrier();
	rcu_barrier_tasks();
	ibmr_names_exit();
}

static int __init ib_mr_init(void)
{
	const struct ibmr_room *room;
	int err, i;

	err = ibmr_late_init();
	if (err)
		return err;
	ibmr_debugfs_root = debugfs_create_dir("ib_mr", NULL);
	ibmr_debugfs_devices = debugfs_create_dir("devices", ibmr_debugfs_root);
	ibmr_each_room_up(room, i) {
		err = room->init ? room->init() : 0;
		if (err) {
			rooms_exit(i + 1);
			return err;
		}
	}
	err = ibmr_devices_init();
	if (err)
		rooms_exit(0);
	return err;
}

static void __exit ib_mr_exit(void)
{
	ibmr_devices_exit();
	rooms_exit(0);
}

module_init(ib_mr_init);
module_exit(ib_mr_exit);

MODULE_AUTHOR("ib_mr developers");
MODULE_DESCRIPTION("Memory registration for in-kernel RDMA users: regions, FMRs, windows, DMA helpers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(IB_MR_VERSION);
/*
 * Soft RoCE asks the crypto layer for it when a device is made (on 6.1 and 6.12), and no list of
 * dependencies has it: where the kernel cannot call modprobe, "rdma link add" fails without a
 * word. The driver itself is left to "rdma link add", which loads it: it opens a UDP port.
 */
MODULE_SOFTDEP("pre: crc32_generic");
