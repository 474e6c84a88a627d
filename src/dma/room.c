// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * This room's part in the life of the module and of devices: the checker follows each device.
 */

#include "base/room.h"
#include "dma/dma.h"

static int init(void)
{
	return ibmr_dma_init(ibmr_debugfs_root);
}

static int dev_add(struct ibmr_dev *dev)
{
	return ibmr_dma_dev_add(dev->ibdev, dev->debugfs);
}

static void dev_renamed(struct ibmr_dev *dev)
{
	ibmr_dma_dev_rename(dev->ibdev, dev->name);
}

static void dev_gone(struct ibmr_dev *dev)
{
	ibmr_dma_dev_remove(dev->ibdev);
}

const struct ibmr_room ibmr_room_dma = {
	.init        = init,
	.exit        = ibmr_dma_exit,
	.dev_add     = dev_add,
	.dev_renamed = dev_renamed,
	.dev_gone    = dev_gone,
};
