// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What is left for later: work that a call may not do itself, because it may be made by a notifier.
 *
 * An MMU notifier that deregisters may not allocate memory with reclaim, may not wait until its own
 * invalidation is over, and may not sleep on the lock of a page: whoever unmaps holds all that, and
 * waits for it. What has to do such a thing to end completely goes to this workqueue. Nothing that
 * a peer could see is among it: keys are dead and the device is fenced when the call returns.
 *
 * A device's removal waits for the queue after it has let others in again, and so does unloading.
 */

#include <linux/rcupdate.h>

#include "base/compat.h"
#include "base/late.h"

struct workqueue_struct *ibmr_late_wq;

/* All that was left until now is done. Not in a notifier, nor with a lock that one takes. */
void ibmr_late_settle(void)
{
	flush_workqueue(ibmr_late_wq);
}
IBMR_EXPORT_INTERNAL(ibmr_late_settle);

int ibmr_late_init(void)
{
	ibmr_late_wq = alloc_workqueue("ib_mr_late", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	return ibmr_late_wq ? 0 : -ENOMEM;
}

/* Nothing is ours any more but what RCU and the queue still hold. */
void ibmr_late_exit(void)
{
	rcu_barrier();
	destroy_workqueue(ibmr_late_wq);
	rcu_barrier();
}
