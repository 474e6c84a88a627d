// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Gates: many may be in at once, and one who shuts the gate is alone.
 *
 * A read-write semaphore would do, but for one thing: a reader waits there as soon as a writer
 * waits. Here that would be a deadlock. A thread that is in may allocate memory; the kernel may
 * unmap pages for it, and tells notifiers first; a ULP's notifier deregisters what it had cached,
 * and so wants to come in, in the same thread or in one that the first waits for. So who comes in
 * never waits for one who waits to shut the gate, only for one who has shut it. He is alone, waits
 * for no notifier and allocates nothing, so that wait ends.
 *
 * The price is that people who keep coming could keep the gate open for ever. Whoever shuts a gate
 * for good sends new people away first (ibmr_dev_enter() and @leaving); what is left are those who
 * end something.
 *
 * Lockdep sees recursive readers, and a writer who waits for them.
 */

#include <linux/kernel.h>
#include <linux/sched.h>

#include "base/gate.h"

#define SHUT	(-1)

void ibmr_gate_init(struct ibmr_gate *gate)
{
	static struct lock_class_key key;

	atomic_set(&gate->in, 0);
	init_waitqueue_head(&gate->wait);
	lockdep_init_map(&gate->map, "ibmr_gate", &key, 0);
}

void ibmr_gate_enter(struct ibmr_gate *gate)
{
	might_sleep();
	lock_map_acquire_read(&gate->map);
	wait_event(gate->wait, atomic_inc_unless_negative(&gate->in));
}

/* Who shuts it may free it as soon as we are out, unless the caller keeps it. */
void ibmr_gate_exit(struct ibmr_gate *gate)
{
	lock_map_release(&gate->map);
	if (atomic_dec_and_test(&gate->in))	/* a full barrier, for who begins to wait */
		wake_up_all(&gate->wait);
}

/* Wait until nobody is in, and let nobody in. */
void ibmr_gate_shut(struct ibmr_gate *gate)
{
	might_sleep();
	lock_map_acquire(&gate->map);
	wait_event(gate->wait, !atomic_cmpxchg(&gate->in, 0, SHUT));
	/*
	 * Whoever took a lock inside has left, so what is taken from here on is held by nobody who
	 * waits to come in. Lockdep cannot know that, and would report locks under which people
	 * who are inside allocate memory.
	 */
	lock_map_release(&gate->map);
}

void ibmr_gate_open(struct ibmr_gate *gate)
{
	atomic_set_release(&gate->in, 0);
	wake_up_all(&gate->wait);
}
