/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_LEFT_H
#define IBMR_LEFT_H

#include "base/core.h"

bool ibmr_left_text(struct ibmr_dev *dev, struct ibmr_pd *ipd, char *buf, size_t size);
void ibmr_left_say(struct ibmr_dev *dev);

#endif /* IBMR_LEFT_H */
