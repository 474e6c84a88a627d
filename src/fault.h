/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The module's own fault counter, for the fail-nth sweep.
 *
 * In a debug build, ibmr_fault_arm(n) makes the n-th point from now that asks ibmr_should_fail()
 * fail, once. A point is an allocation or a call of the device, and asks just before it would be
 * made. The kernel's fault injection cannot serve here: it counts every allocation of the task,
 * the driver's and the core's among them, and has no say over device calls. In other builds the
 * question is a constant.
 */
#ifndef IBMR_FAULT_H
#define IBMR_FAULT_H

#include <linux/types.h>

#ifdef CONFIG_IB_MR_DEBUG
bool ibmr_should_fail(void);
void ibmr_fault_arm(int nth);
bool ibmr_fault_disarm(void);	/* true when it was hit */
#else
static inline bool ibmr_should_fail(void)
{
	return false;
}
#endif

#endif /* IBMR_FAULT_H */
