/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Handles of ib_mr's in calls of the core that take the core's own.
 *
 * A handle from ib_mr is a shell and has no driver's structure around it, so a function of ib_core
 * that is given one writes beside it, and what breaks is found much later. These macros ask first:
 * ours is refused, with a reason in the log; every other goes on to the core. In parentheses,
 * (ib_map_mr_sg)(...), a call goes straight to the core, and IB_MR_NO_GUARD defined before the
 * include turns all of them off.
 *
 * The question is a lookup by the pointer's value, less than a hundred instructions.
 */
#ifndef _RDMA_IB_MR_GUARD_H
#define _RDMA_IB_MR_GUARD_H

#include <rdma/ib_verbs.h>
#include <rdma/mr_pool.h>

int ib_mr_not_ours(struct ib_mr *mr, const char *call);

#ifndef IB_MR_NO_GUARD
static inline int ib_mr_guard_map_sg(struct ib_mr *mr, struct scatterlist *sg, int sg_nents,
				     unsigned int *sg_offset, unsigned int page_size)
{
	int err = ib_mr_not_ours(mr, "ib_map_mr_sg");

	return err ? err : ib_map_mr_sg(mr, sg, sg_nents, sg_offset, page_size);
}

static inline int ib_mr_guard_map_sg_zbva(struct ib_mr *mr, struct scatterlist *sg, int sg_nents,
					  unsigned int *sg_offset, unsigned int page_size)
{
	int err = ib_mr_not_ours(mr, "ib_map_mr_sg_zbva");

	return err ? err : ib_map_mr_sg_zbva(mr, sg, sg_nents, sg_offset, page_size);
}

static inline int ib_mr_guard_map_sg_pi(struct ib_mr *mr, struct scatterlist *data_sg,
					int data_sg_nents, unsigned int *data_sg_offset,
					struct scatterlist *meta_sg, int meta_sg_nents,
					unsigned int *meta_sg_offset, unsigned int page_size)
{
	int err = ib_mr_not_ours(mr, "ib_map_mr_sg_pi");

	return err ? err : ib_map_mr_sg_pi(mr, data_sg, data_sg_nents, data_sg_offset, meta_sg,
					   meta_sg_nents, meta_sg_offset, page_size);
}

static inline int ib_mr_guard_check_status(struct ib_mr *mr, u32 check_mask,
					   struct ib_mr_status *mr_status)
{
	int err = ib_mr_not_ours(mr, "ib_check_mr_status");

	return err ? err : ib_check_mr_status(mr, check_mask, mr_status);
}

static inline int ib_mr_guard_dereg_user(struct ib_mr *mr, struct ib_udata *udata)
{
	int err = ib_mr_not_ours(mr, "ib_dereg_mr_user");

	return err ? err : ib_dereg_mr_user(mr, udata);
}

static inline void ib_mr_guard_update_key(struct ib_mr *mr, u8 newkey)
{
	if (!ib_mr_not_ours(mr, "ib_update_fast_reg_key"))
		ib_update_fast_reg_key(mr, newkey);
}

static inline void ib_mr_guard_pool_put(struct ib_qp *qp, struct list_head *list,
					struct ib_mr *mr)
{
	if (!ib_mr_not_ours(mr, "ib_mr_pool_put"))
		ib_mr_pool_put(qp, list, mr);
}

#define ib_map_mr_sg(mr, sg, sg_nents, sg_offset, page_size) \
	ib_mr_guard_map_sg(mr, sg, sg_nents, sg_offset, page_size)
#define ib_map_mr_sg_zbva(mr, sg, sg_nents, sg_offset, page_size) \
	ib_mr_guard_map_sg_zbva(mr, sg, sg_nents, sg_offset, page_size)
#define ib_map_mr_sg_pi(mr, data_sg, data_nents, data_offset, meta_sg, meta_nents, meta_offset, \
			page_size) \
	ib_mr_guard_map_sg_pi(mr, data_sg, data_nents, data_offset, meta_sg, meta_nents, \
			      meta_offset, page_size)
#define ib_check_mr_status(mr, check_mask, mr_status) \
	ib_mr_guard_check_status(mr, check_mask, mr_status)
#define ib_dereg_mr_user(mr, udata)		ib_mr_guard_dereg_user(mr, udata)
#define ib_update_fast_reg_key(mr, newkey)	ib_mr_guard_update_key(mr, newkey)
#define ib_mr_pool_put(qp, list, mr)		ib_mr_guard_pool_put(qp, list, mr)
#endif

#endif /* _RDMA_IB_MR_GUARD_H */
