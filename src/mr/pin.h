/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_PIN_H
#define IBMR_PIN_H

#include <linux/mmu_notifier.h>

#include "mr/mem.h"

/**
 * struct ibmr_umem - user memory
 * @mem: its runs
 * @dev: device whose counters it is in; holds a reference
 * @umem: the kernel's own record of the pinning; NULL where the driver pins
 * @watch: tells when the owner unmaps it
 * @start: address in the owner's address space
 * @length: bytes
 * @owner: thread group that registered it
 * @comm: its name then
 * @told: 1 from the first unmapping on, and when it is released
 * @work: ends what the call that let go of it could not
 * @stale_at: when the owner unmapped it, valid with @mem.stale
 */
struct ibmr_umem {
	struct ibmr_mem mem;
	struct ibmr_dev *dev;
	struct ib_umem *umem;
	struct mmu_interval_notifier watch;
	unsigned long start;
	size_t length;
	pid_t owner;
	char comm[TASK_COMM_LEN];
	atomic_t told;
	struct work_struct work;
	ktime_t stale_at;
};

const struct ibmr_umem *ibmr_mem_user(const struct ibmr_mem *mem);
enum ib_mr_reason ibmr_pin_refused(struct ibmr_dev *dev, int err, unsigned long start,
				   size_t length, int access);

#endif /* IBMR_PIN_H */
