/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a room has to do when the module, a device or a PD begins or ends. Each folder of src/ that
 * has something to do hands over one table; main.c lists them, and its order is that of teardown.
 * So this room, which all others stand on, calls none of them by name.
 */
#ifndef IBMR_ROOM_H
#define IBMR_ROOM_H

#include "base/core.h"

/**
 * struct ibmr_room - a room's part in the life of the module, of devices and of PDs
 * @init: the module is loaded. The rooms below are ready, nobody calls yet
 * @left: the module is unloaded (or was not loaded: then there is nothing), and there is no device
 *	any more: say what ULPs left behind, and let go of it. All rooms are still there
 * @exit: free what @init made. No room's work may be under way thereafter; callbacks of RCU may,
 *	main.c waits for them last
 * @dev_add: a device comes; nobody can find it yet. An error is the device's refusal
 * @dev_remove: it goes: nobody is inside, and nobody gets in any more. Cut off, fence, and give
 *	back what the device has of ours. May sleep
 * @dev_gone: nobody finds it any more. Also called, alone, when a later room's @dev_add failed
 * @dev_renamed: it has another @name
 * @pd_last: the last user of a PD's state goes, and the PD is there for as long as this runs. Under
 *	the device's pd_lock
 * @agree: do the counters agree with the objects? The caller is alone on the device
 *
 * What a room does not need is NULL.
 */
struct ibmr_room {
	int (*init)(void);
	void (*left)(void);
	void (*exit)(void);
	int (*dev_add)(struct ibmr_dev *dev);
	void (*dev_remove)(struct ibmr_dev *dev);
	void (*dev_gone)(struct ibmr_dev *dev);
	void (*dev_renamed)(struct ibmr_dev *dev);
	void (*pd_last)(struct ibmr_pd *ipd);
	bool (*agree)(struct ibmr_dev *dev);
};

extern const struct ibmr_room ibmr_room_see;
extern const struct ibmr_room ibmr_room_mw;
extern const struct ibmr_room ibmr_room_stock;
extern const struct ibmr_room ibmr_room_mr;
extern const struct ibmr_room ibmr_room_dma;

/* In the order of teardown. */
#define IBMR_ROOMS	5
extern const struct ibmr_room *const ibmr_rooms[IBMR_ROOMS];

/* Each room in the order of teardown; ibmr_each_room_up() the other way. */
#define ibmr_each_room(room, i)						\
	for ((i) = 0; (i) < IBMR_ROOMS && ((room) = ibmr_rooms[i]); (i)++)

#define ibmr_each_room_up(room, i)					\
	for ((i) = IBMR_ROOMS; (i) && ((room) = ibmr_rooms[--(i)]);)

#endif /* IBMR_ROOM_H */
