// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The fault counter of debug builds; fault.h says what it is for.
 *
 * It may be asked in any context. The one who arms it does so while it is disarmed, so what a point
 * reads beside the counter is steady as long as the counter is above zero.
 */

#include <linux/atomic.h>
#include <linux/bits.h>
#include <linux/sched.h>

#include "base/compat.h"
#include "base/fault.h"

/* Counts down to 1, which is the hit; stays at 0 while disarmed, at -1 once hit. */
static atomic_t left = ATOMIC_INIT(0);
static unsigned int armed_kinds;
static const struct task_struct *armed_task;

bool ibmr_should_fail(enum ibmr_fault kind)
{
	int n = atomic_read_acquire(&left);

	if (likely(n <= 0) || !(READ_ONCE(armed_kinds) & BIT(kind)) ||
	    (READ_ONCE(armed_task) && READ_ONCE(armed_task) != current))
		return false;
	while (n > 0)
		if (atomic_try_cmpxchg(&left, &n, n > 1 ? n - 1 : -1))
			return n == 1;
	return false;
}

/* @only: the task whose calls are to fail, or NULL for all. */
void ibmr_fault_arm(unsigned int kinds, int nth, const struct task_struct *only)
{
	WRITE_ONCE(armed_kinds, kinds);
	WRITE_ONCE(armed_task, only);
	atomic_set_release(&left, nth);
}
IBMR_EXPORT_INTERNAL(ibmr_fault_arm);

bool ibmr_fault_disarm(void)
{
	return atomic_xchg(&left, 0) < 0;
}
IBMR_EXPORT_INTERNAL(ibmr_fault_disarm);
