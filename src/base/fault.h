/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The module's own fault counter, for the fail-nth sweep.
 *
 * In a debug build, ibmr_fault_arm(kinds, n, task) makes the n-th point from now that asks for a
 * fault of one of these kinds, in this task, fail, once. A point asks just before the allocation or
 * the call of the device would be made. The kernel's fault injection cannot serve here: it counts
 * every allocation of the task, the driver's and the core's among them, and has no say over device
 * calls. In other builds the question is a constant.
 */
#ifndef IBMR_FAULT_H
#define IBMR_FAULT_H

#include <linux/types.h>

struct task_struct;

enum ibmr_fault {
	IBMR_FAULT_ALLOC,	/* memory is not had; a stock is empty */
	IBMR_FAULT_DEVICE,	/* a call of the device fails */
	IBMR_FAULT_POST,	/* a work request cannot be posted */
	IBMR_FAULT_WC,		/* the device refuses a work request */
	IBMR_FAULT_TIMEOUT,	/* a completion does not come in time */
	IBMR_FAULT_BREAK,	/* a registration queue pair goes to error at this moment */
	IBMR_FAULTS
};

#define IBMR_FAULTS_ALL	((1U << IBMR_FAULTS) - 1)

#ifdef CONFIG_IB_MR_DEBUG
bool ibmr_should_fail(enum ibmr_fault kind);
void ibmr_fault_arm(unsigned int kinds, int nth, const struct task_struct *only);
bool ibmr_fault_disarm(void);	/* true when it was hit */
#else
static inline bool ibmr_should_fail(enum ibmr_fault kind)
{
	return false;
}
#endif

#endif /* IBMR_FAULT_H */
