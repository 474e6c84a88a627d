/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_LATE_H
#define IBMR_LATE_H

#include <linux/workqueue.h>

extern struct workqueue_struct *ibmr_late_wq;

void ibmr_late_settle(void);
int ibmr_late_init(void);
void ibmr_late_exit(void);

#endif /* IBMR_LATE_H */
