/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_DEBUGFS_H
#define IBMR_DEBUGFS_H

#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "base/core.h"

/*
 * In ib_mr/devices/<device>/. The file's seq_file has the struct ibmr_dev as its ->private
 * (DEFINE_SHOW_ATTRIBUTE).
 */
static inline void ibmr_debugfs_file(struct ibmr_dev *dev, const char *name, umode_t mode,
				     const struct file_operations *fops)
{
	debugfs_create_file(name, mode, dev->debugfs, dev, fops);
}

void ibmr_listings_add(struct ibmr_dev *dev);

#endif /* IBMR_DEBUGFS_H */
