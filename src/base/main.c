// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The module: what is set up in which order, and taken down in the other.
 *
 * The exported calls live beside the objects they work on; device.c keeps devices and PDs.
 */

#include <linux/module.h>

#include "base/compat.h"
#include "base/core.h"
#include "base/handle.h"
#include "dma/dma.h"
#include "mw/window.h"
#include "see/debugfs.h"
#include "stock/magazine.h"

static int __init ib_mr_init(void)
{
	int err;

	ibmr_debugfs_init();
	err = ibmr_live_init();
	if (err)
		goto err_debugfs;
	err = ibmr_mags_init();
	if (err)
		goto err_live;
	err = ibmr_dma_init(ibmr_debugfs_root);
	if (err)
		goto err_mags;
	err = ibmr_handles_init();
	if (err)
		goto err_dma;
	err = ibmr_devices_init();
	if (err)
		goto err_handles;
	return 0;

err_handles:
	ibmr_handles_exit();
err_dma:
	ibmr_dma_exit();
err_mags:
	ibmr_mags_exit();
err_live:
	ibmr_live_exit();
err_debugfs:
	ibmr_debugfs_exit();
	return err;
}

static void __exit ib_mr_exit(void)
{
	ibmr_devices_exit();
	ibmr_handles_exit();	/* gives back what regions left behind hold of magazines */
	ibmr_dma_exit();
	ibmr_carriers_exit();
	ibmr_mags_exit();
	ibmr_live_exit();
	ibmr_debugfs_exit();
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
