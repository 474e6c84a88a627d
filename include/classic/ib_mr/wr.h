/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Work requests: only <rdma/ib_verbs.h> of this folder includes this.
 *
 * Up to 4.3 struct ib_send_wr ended in a union of what each opcode needs; since then there is a
 * structure for each, which begins with the common part. They were made out of the union, so both
 * have one layout, and a classic request can be given to the driver as it is. Two kinds cannot,
 * since no driver takes them from the kernel: the bind of a type 2 window, which is carried out
 * here, at its place in the list, and the fast registration of page lists, which is refused.
 *
 * A type 2 window's new key is in mw->rkey, and in the request, when ib_post_send() returns: the
 * device has its own order of variants, and takes no wish. After an invalidation of it the core is
 * told by ib_mr_invalidated().
 */
#ifndef _CLASSIC_IB_MR_WR_H
#define _CLASSIC_IB_MR_WR_H

#if IB_MR_WRITTEN_FOR < 404

/* Page lists of before 4.4: there are none, as on a device without MEM_MGT_EXTENSIONS. */
struct ib_fast_reg_page_list {
	struct ib_device *device;
	u64 *page_list;
	unsigned int max_page_list_len;
};

#define IB_WR_FAST_REG_MR	IB_WR_RESERVED10
#define IB_WC_FAST_REG_MR	IB_WC_REG_MR

static inline struct ib_mr *ib_alloc_fast_reg_mr(struct ib_pd *pd, int max_page_list_len)
{
	return ERR_PTR(-ENOSYS);
}

static inline struct ib_fast_reg_page_list *
ib_alloc_fast_reg_page_list(struct ib_device *device, int page_list_len)
{
	return ERR_PTR(-ENOSYS);
}

static inline void ib_free_fast_reg_page_list(struct ib_fast_reg_page_list *page_list)
{
}

struct ib_mr_classic_send_wr {
	struct ib_mr_classic_send_wr *next;
	union {
		u64 wr_id;
		struct ib_cqe *wr_cqe;
	};
	struct ib_sge *sg_list;
	int num_sge;
	enum ib_wr_opcode opcode;
	int send_flags;
	union {
		__be32 imm_data;
		u32 invalidate_rkey;
	} ex;
	union {
		struct {
			u64 remote_addr;
			u32 rkey;
		} rdma;
		struct {
			u64 remote_addr;
			u64 compare_add;
			u64 swap;
			u64 compare_add_mask;
			u64 swap_mask;
			u32 rkey;
		} atomic;
		struct {
			struct ib_ah *ah;
			void *header;
			int hlen;
			int mss;
			u32 remote_qpn;
			u32 remote_qkey;
			u16 pkey_index;
			u32 port_num;
		} ud;
		struct {
			u64 iova_start;
			struct ib_fast_reg_page_list *page_list;
			unsigned int page_shift;
			unsigned int page_list_len;
			u32 length;
			int access_flags;
			u32 rkey;
		} fast_reg;
		struct {
			struct ib_mw *mw;
			u32 rkey;
			struct ib_mw_bind_info bind_info;
		} bind_mw;
		struct {
			struct ib_sig_attrs *sig_attrs;
			struct ib_mr *sig_mr;
			int access_flags;
			struct ib_sge *prot;
		} sig_handover;
	} wr;
	u32 xrc_remote_srq_num;
};

#define IB_MR_WR_SAME(old, type, new)						\
	static_assert(offsetof(struct ib_mr_classic_send_wr, old) == offsetof(struct type, new))
IB_MR_WR_SAME(next, ib_send_wr, next);
IB_MR_WR_SAME(wr_id, ib_send_wr, wr_id);
IB_MR_WR_SAME(sg_list, ib_send_wr, sg_list);
IB_MR_WR_SAME(num_sge, ib_send_wr, num_sge);
IB_MR_WR_SAME(opcode, ib_send_wr, opcode);
IB_MR_WR_SAME(send_flags, ib_send_wr, send_flags);
IB_MR_WR_SAME(ex, ib_send_wr, ex);
IB_MR_WR_SAME(wr.rdma.remote_addr, ib_rdma_wr, remote_addr);
IB_MR_WR_SAME(wr.rdma.rkey, ib_rdma_wr, rkey);
IB_MR_WR_SAME(wr.atomic.remote_addr, ib_atomic_wr, remote_addr);
IB_MR_WR_SAME(wr.atomic.compare_add, ib_atomic_wr, compare_add);
IB_MR_WR_SAME(wr.atomic.swap, ib_atomic_wr, swap);
IB_MR_WR_SAME(wr.atomic.compare_add_mask, ib_atomic_wr, compare_add_mask);
IB_MR_WR_SAME(wr.atomic.swap_mask, ib_atomic_wr, swap_mask);
IB_MR_WR_SAME(wr.atomic.rkey, ib_atomic_wr, rkey);
IB_MR_WR_SAME(wr.ud.ah, ib_ud_wr, ah);
IB_MR_WR_SAME(wr.ud.header, ib_ud_wr, header);
IB_MR_WR_SAME(wr.ud.hlen, ib_ud_wr, hlen);
IB_MR_WR_SAME(wr.ud.mss, ib_ud_wr, mss);
IB_MR_WR_SAME(wr.ud.remote_qpn, ib_ud_wr, remote_qpn);
IB_MR_WR_SAME(wr.ud.remote_qkey, ib_ud_wr, remote_qkey);
IB_MR_WR_SAME(wr.ud.pkey_index, ib_ud_wr, pkey_index);
IB_MR_WR_SAME(wr.ud.port_num, ib_ud_wr, port_num);
#undef IB_MR_WR_SAME

/* The driver's own type, past the macro at the end of this file. */
static inline int ib_mr_post_to_driver(struct ib_qp *qp, struct ib_mr_classic_send_wr *wr,
				       struct ib_mr_classic_send_wr **bad_wr)
{
	const struct ib_send_wr *bad;
	int err = ib_post_send(qp, (const struct ib_send_wr *)wr, &bad);

	if (err && bad_wr)
		*bad_wr = (struct ib_mr_classic_send_wr *)bad;
	return err;
}

static inline bool ib_mr_wr_is_ours(const struct ib_mr_classic_send_wr *wr)
{
	return wr->opcode == IB_WR_BIND_MW || wr->opcode == IB_WR_FAST_REG_MR ||
	       wr->opcode == IB_WR_REG_MR_INTEGRITY;
}

static inline int ib_mr_post_ours(struct ib_qp *qp, struct ib_mr_classic_send_wr *wr)
{
	struct ib_bind_mw_wr bind = {
		.wr = { .wr_id = wr->wr_id, .send_flags = wr->send_flags },
		.mw = wr->wr.bind_mw.mw,
		.bind_info = wr->wr.bind_mw.bind_info,
	};
	int err;

	if (wr->opcode == IB_WR_REG_MR_INTEGRITY)	/* which was IB_WR_REG_SIG_MR */
		return -ENOSYS;
	if (wr->opcode != IB_WR_BIND_MW)
		return -EINVAL;
	err = ib_mr_post_bind_mw(qp, &bind);
	if (!err)
		wr->wr.bind_mw.rkey = bind.rkey;
	return err;
}

static inline int ib_mr_classic_post_send(struct ib_qp *qp, struct ib_mr_classic_send_wr *wr,
					  struct ib_mr_classic_send_wr **bad_wr)
{
	while (wr) {
		struct ib_mr_classic_send_wr *last = wr, *rest;
		int err;

		if (ib_mr_wr_is_ours(wr)) {
			err = ib_mr_post_ours(qp, wr);
			if (err && bad_wr)
				*bad_wr = wr;
			rest = wr->next;
		} else {
			while (last->next && !ib_mr_wr_is_ours(last->next))
				last = last->next;
			rest = last->next;
			last->next = NULL;
			err = ib_mr_post_to_driver(qp, wr, bad_wr);
			last->next = rest;
		}
		if (err)
			return err;
		wr = rest;
	}
	return 0;
}

#define ib_send_wr	ib_mr_classic_send_wr

/*
 * Sources that were configured for both kinds define these themselves, around the old request; the
 * kernel's own are out of their way. Whoever wants the kernel's own was not written for 4.3.
 */
#define ib_rdma_wr	ib_mr_ulps_rdma_wr
#define ib_atomic_wr	ib_mr_ulps_atomic_wr
#define ib_ud_wr	ib_mr_ulps_ud_wr
#define ib_reg_wr	ib_mr_ulps_reg_wr
#define rdma_wr(wr)	ib_mr_ulps_to_rdma_wr(wr)
#define atomic_wr(wr)	ib_mr_ulps_to_atomic_wr(wr)
#define ud_wr(wr)	ib_mr_ulps_to_ud_wr(wr)
#define reg_wr(wr)	ib_mr_ulps_to_reg_wr(wr)

#elif IB_MR_WRITTEN_FOR < 419

static inline int ib_mr_classic_post_send(struct ib_qp *qp, struct ib_send_wr *wr,
					  struct ib_send_wr **bad_wr)
{
	return ib_post_send(qp, wr, (const struct ib_send_wr **)bad_wr);
}

#endif

#if IB_MR_WRITTEN_FOR < 419

static inline int ib_mr_classic_post_recv(struct ib_qp *qp, struct ib_recv_wr *wr,
					  struct ib_recv_wr **bad_wr)
{
	return ib_post_recv(qp, wr, (const struct ib_recv_wr **)bad_wr);
}

static inline int ib_mr_classic_post_srq_recv(struct ib_srq *srq, struct ib_recv_wr *wr,
					      struct ib_recv_wr **bad_wr)
{
	return ib_post_srq_recv(srq, wr, (const struct ib_recv_wr **)bad_wr);
}

#define ib_post_send(qp, wr, bad_wr)		ib_mr_classic_post_send(qp, wr, bad_wr)
#define ib_post_recv(qp, wr, bad_wr)		ib_mr_classic_post_recv(qp, wr, bad_wr)
#define ib_post_srq_recv(srq, wr, bad_wr)	ib_mr_classic_post_srq_recv(srq, wr, bad_wr)

#endif

#endif /* _CLASSIC_IB_MR_WR_H */
