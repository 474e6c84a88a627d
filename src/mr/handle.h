/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_HANDLE_H
#define IBMR_HANDLE_H

#include "mr/region.h"

int ibmr_handle_add(struct ibmr_region *region);
struct ibmr_region *ibmr_handle_find(struct ib_mr *mr);
void ibmr_handle_bury(struct ibmr_region *region);
void ibmr_region_put(struct ibmr_region *region);
bool ibmr_handle_died(struct ibmr_dev *dev, u32 key, u32 *last, u64 *msecs);
int ibmr_handles_init(void);
void ibmr_handles_left(void);

#endif /* IBMR_HANDLE_H */
