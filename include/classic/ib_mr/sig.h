/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Signatures (T10-PI) as they were from 3.15 to 5.2. Only <rdma/ib_verbs.h> of this folder includes
 * this.
 *
 * No soft device ever had them, so they are here for sources to compile, and all are -ENOSYS: a ULP
 * asks for IB_DEVICE_SIGNATURE_HANDOVER first, and goes on without.
 */
#ifndef _CLASSIC_IB_MR_SIG_H
#define _CLASSIC_IB_MR_SIG_H

#if IB_MR_WRITTEN_FOR >= 315 && IB_MR_WRITTEN_FOR < 503

#define IB_QP_CREATE_SIGNATURE_EN	IB_QP_CREATE_INTEGRITY_EN
#define IB_WR_REG_SIG_MR		IB_WR_REG_MR_INTEGRITY

#undef ib_check_mr_status
#define ib_check_mr_status(mr, check_mask, mr_status) \
	ib_mr_no_status(mr, check_mask, mr_status)

static inline int ib_mr_no_status(struct ib_mr *mr, u32 check_mask, struct ib_mr_status *mr_status)
{
	return -ENOSYS;
}

#if IB_MR_WRITTEN_FOR < 403

enum ib_mr_create_flags {
	IB_MR_SIGNATURE_EN = 1,
};

struct ib_mr_init_attr {
	int max_reg_descriptors;
	u32 flags;
};

static inline struct ib_mr *ib_create_mr(struct ib_pd *pd, struct ib_mr_init_attr *mr_init_attr)
{
	return ERR_PTR(-ENOSYS);
}

static inline int ib_destroy_mr(struct ib_mr *mr)
{
	return ib_dereg_mr(mr);
}

#else

/* The core warns when it is asked for one of today's. */
#define IB_MR_TYPE_SIGNATURE		IB_MR_TYPE_INTEGRITY

static inline struct ib_mr *ib_mr_classic_alloc_mr(struct ib_pd *pd, enum ib_mr_type mr_type,
						   u32 max_num_sg)
{
	if (mr_type == IB_MR_TYPE_SIGNATURE)
		return ERR_PTR(-ENOSYS);
	return ib_alloc_mr(pd, mr_type, max_num_sg);
}

#define ib_alloc_mr(pd, mr_type, max_num_sg)	ib_mr_classic_alloc_mr(pd, mr_type, max_num_sg)

#endif

#if IB_MR_WRITTEN_FOR >= 404

struct ib_sig_handover_wr {
	struct ib_send_wr wr;
	struct ib_sig_attrs *sig_attrs;
	struct ib_mr *sig_mr;
	int access_flags;
	struct ib_sge *prot;
};

static inline const struct ib_sig_handover_wr *sig_handover_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct ib_sig_handover_wr, wr);
}

#endif

#endif

#endif /* _CLASSIC_IB_MR_SIG_H */
