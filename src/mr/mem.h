/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_MEM_H
#define IBMR_MEM_H

#include <linux/refcount.h>
#include <linux/scatterlist.h>

#include "base/core.h"
#include "mr/pagevec.h"

/**
 * struct ibmr_mem - registered memory: its runs, and what holds it in place
 * @pv: the runs
 * @refs: registrations that use it; re-registration shares it
 * @release: undoes what holds it (DMA unmap, then unpin), when the last registration is gone
 *           from the device, and ends with ibmr_mem_free(); NULL where the caller keeps the memory
 *           in place
 * @pinned: pages of user memory that it pins
 * @readonly: it was pinned for reading; the device must not write to it
 * @by_driver: the driver pins it, and only it knows the pages; @pv is the user's addresses
 * @stale: its owner unmapped it; it stays pinned and safe, but nobody sees it any more
 * @ibdev: device of @sgt
 * @sgt: DMA mapping of kernel memory, on devices that have one
 * @mapped: what the core mapped for the device; the memory begins @skip bytes inside it and ends in
 *          it at @end. NULL where the runs are all there is
 * @skip: see @mapped
 * @end: see @mapped
 * @rcu: translation may still read @pv
 */
struct ibmr_mem {
	struct ibmr_pagevec pv;
	refcount_t refs;
	void (*release)(struct ibmr_mem *mem);
	u64 pinned;
	bool readonly;
	bool by_driver;
	bool stale;
	struct ib_device *ibdev;
	struct sg_table sgt;
	struct sg_table *mapped;
	unsigned int skip;
	struct ibmr_sg_end end;
	struct rcu_head rcu;
};

struct ibmr_mem *ibmr_mem_alloc(size_t size);
struct ibmr_mem *ibmr_mem_phys(struct ibmr_dev *dev, const struct ib_phys_buf *buf, int nr,
			       enum ib_mr_reason *why);
struct ibmr_mem *ibmr_mem_sg(struct ibmr_dev *dev, struct scatterlist *sgl, int nents,
			     enum ib_mr_reason *why);
struct ibmr_mem *ibmr_mem_kernel(struct ibmr_dev *dev, void *addr, size_t length,
				 enum ib_mr_reason *why);
void ibmr_mem_free(struct ibmr_mem *mem);
void ibmr_mem_put(struct ibmr_mem *mem);

#endif /* IBMR_MEM_H */
