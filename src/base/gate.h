/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_GATE_H
#define IBMR_GATE_H

#include <linux/atomic.h>
#include <linux/lockdep.h>
#include <linux/wait.h>

/**
 * struct ibmr_gate - lets many in, or one who wants to be alone
 * @in: how many are in; negative while it is shut
 * @wait: who waits for either
 * @map: what lockdep knows it by
 */
struct ibmr_gate {
	atomic_t in;
	wait_queue_head_t wait;
	struct lockdep_map map;
};

void ibmr_gate_init(struct ibmr_gate *gate);
void ibmr_gate_enter(struct ibmr_gate *gate);
void ibmr_gate_exit(struct ibmr_gate *gate);
void ibmr_gate_shut(struct ibmr_gate *gate);
void ibmr_gate_open(struct ibmr_gate *gate);

#endif /* IBMR_GATE_H */
