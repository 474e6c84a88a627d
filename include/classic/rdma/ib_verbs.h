/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * <rdma/ib_verbs.h> as it was, for sources that were written for it and shall stay as they are.
 *
 * With this folder before the kernel's own (classic.mk beside it: one line in the module's Kbuild),
 * a ULP that includes <rdma/ib_verbs.h> and <rdma/ib_fmr_pool.h>, and nothing of ib_mr's, has the
 * classic memory verbs, and the drift of what stands around them is made up for: what concerns
 * registration and polling, to wit
 *
 *	ib_alloc_pd() with one argument; ib_dealloc_pd() and ib_destroy_cq() that answer
 *	ib_create_cq() with cqe and comp_vector; a handler that may poll (see src/ease/classic.c)
 *	ib_poll_cq() that tells of binds (IB_WC_BIND_MW); ib_modify_cq()
 *	ib_post_send(), ib_post_recv() with a bad_wr that is not const; work requests with the
 *	union wr, up to 4.3 (ib_mr/wr.h)
 *	ib_query_device() with max_fmr, max_map_per_fmr, the flags of FMRs, windows, local keys;
 *	clients with an add() that returns nothing (ib_mr/device.h)
 *	ib_map_mr_sg() without an offset (4.4 to 4.6)
 *	ib_fmr_pool_map_phys() with the iova behind a pointer, or with a fifth argument (UEK)
 *	struct dma_attrs (<linux/dma-attrs.h>)
 *	dma_map_single() and its like of ibdev->dma_device, which is NULL on soft RDMA (ib_mr/dma.h)
 *	signatures, which are -ENOSYS (ib_mr/sig.h)
 *	regions with remote write and without local write, which nobody checked before 3.14
 *
 * Not here: connection managers, addresses (struct ib_ah_attr, GIDs), SCSI, sockets, timers, and
 * whatever else has moved. Nor the fast registration of before 4.4 (page lists): it compiles, and
 * answers -ENOSYS as a device without it did, so that sources which have a choice take FMRs.
 *
 * IB_MR_WRITTEN_FOR says which kernel the source was written for: 308 is 3.8, 419 is 4.19.
 * IB_MR_EPOCH says it roughly: 1 is up to 3.8 (flat struct ib_mw_bind, ib_alloc_mw() with one
 * argument), 2 up to 4.4 (the default, as of 4.1), 3 up to 5.7 (as of 4.9).
 *
 * What is defined here are macros, after the kernel's headers. Those that ULPs include later are
 * untouched by them but for the names of structures (struct ib_send_wr, ib_client, ib_device_attr);
 * the RDMA headers that use those are therefore included before. A source may begin with any of
 * them: each RDMA header of a ULP's has a wrapper in this folder, which includes this one first.
 * So no guard of the kernel's is set when it is needed. `make classic` compiles every order.
 */
#ifndef _CLASSIC_RDMA_IB_VERBS_H
#define _CLASSIC_RDMA_IB_VERBS_H

/* After the guard: headers that it includes include it again, on some kernels. */
#include_next <rdma/ib_verbs.h>

#ifndef IB_MR_WRITTEN_FOR
#ifndef IB_MR_EPOCH
#define IB_MR_WRITTEN_FOR	401
#elif IB_MR_EPOCH == 1
#define IB_MR_WRITTEN_FOR	308
#elif IB_MR_EPOCH == 2
#define IB_MR_WRITTEN_FOR	401
#elif IB_MR_EPOCH == 3
#define IB_MR_WRITTEN_FOR	409
#else
#error "IB_MR_EPOCH is 1, 2 or 3"
#endif
#endif

#ifndef IB_MR_EPOCH
#if IB_MR_WRITTEN_FOR < 309
#define IB_MR_EPOCH 1
#elif IB_MR_WRITTEN_FOR < 405
#define IB_MR_EPOCH 2
#else
#define IB_MR_EPOCH 3
#endif
#endif

#include <rdma/ib_mad.h>
#include <rdma/rw.h>

/* Ours, past the headers of this folder by the same names. */
#include_next <rdma/ib_mr.h>
#include_next <rdma/ib_fmr_pool.h>
#include <linux/dma-attrs.h>
#include_next <rdma/ib_dma.h>

/* The second, the third of several arguments. */
#define ib_mr_arg2(a, b, ...)		b
#define ib_mr_arg3(a, b, c, ...)	c

/* --- protection domains: flags came in 4.9 --- */

#undef ib_alloc_pd
#define ib_alloc_pd(device, ...) \
	__ib_alloc_pd((device), ib_mr_arg2(0, ##__VA_ARGS__, 0), KBUILD_MODNAME)

/* --- completion queues: cqe and comp_vector went into a structure in 4.2 --- */

static inline struct ib_cq *ib_mr_create_cq_old(struct ib_device *device,
						ib_comp_handler comp_handler,
						void (*event_handler)(struct ib_event *, void *),
						void *cq_context, int cqe, int comp_vector,
						const char *caller)
{
	struct ib_cq_init_attr attr = { .cqe = cqe, .comp_vector = comp_vector };

	return ib_mr_create_cq(device, comp_handler, event_handler, cq_context, &attr, caller);
}

#undef ib_create_cq
#define ib_create_cq(device, comp_handler, event_handler, cq_context, ...) \
	ib_mr_arg3(__VA_ARGS__, ib_mr_create_cq_old, ib_mr_create_cq) \
		(device, comp_handler, event_handler, cq_context, __VA_ARGS__, KBUILD_MODNAME)
#define ib_destroy_cq(cq)			ib_mr_destroy_cq(cq)
#define ib_poll_cq(cq, num_entries, wc)		ib_mr_poll_cq(cq, num_entries, wc)

/* No device that ib_mr runs on ever had these two. */
static inline int ib_peek_cq(struct ib_cq *cq, int wc_cnt)
{
	return -ENOSYS;
}

static inline int ib_req_ncomp_notif(struct ib_cq *cq, int wc_cnt)
{
	return -ENOSYS;
}

static inline int ib_modify_cq(struct ib_cq *cq, u16 cq_count, u16 cq_period)
{
	int err = rdma_set_cq_moderation(cq, cq_count, cq_period);

	return err == -EOPNOTSUPP ? -ENOSYS : err;
}

/* --- regions --- */

#if IB_MR_WRITTEN_FOR < 509
static inline int ib_mr_check_access_old(int flags)
{
	if (flags & (IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_REMOTE_WRITE) &&
	    !(flags & IB_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	return 0;
}

#define ib_check_mr_access(flags)	ib_mr_check_access_old(flags)
#endif

#if IB_MR_WRITTEN_FOR < 314
/* To give the owner a right to his own memory is no risk, and what IBA asks for. */
static inline int ib_mr_classic_access(int access)
{
	if (access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC))
		access |= IB_ACCESS_LOCAL_WRITE;
	return access;
}

#define ib_get_dma_mr(pd, access)	ib_get_dma_mr(pd, ib_mr_classic_access(access))
#define ib_reg_phys_mr(pd, bufs, nr, access, iova) \
	ib_reg_phys_mr(pd, bufs, nr, ib_mr_classic_access(access), iova)
#define ib_rereg_phys_mr(mr, mask, pd, bufs, nr, access, iova) \
	ib_rereg_phys_mr(mr, mask, pd, bufs, nr, ib_mr_classic_access(access), iova)
#endif

#if IB_MR_WRITTEN_FOR < 407
static inline int ib_mr_map_mr_sg_old(struct ib_mr *mr, struct scatterlist *sg, int nents,
				      unsigned int page_size)
{
	return ib_map_mr_sg(mr, sg, nents, NULL, page_size);
}

static inline int ib_mr_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int nents,
				  unsigned int *offset, unsigned int page_size)
{
	return ib_map_mr_sg(mr, sg, nents, offset, page_size);
}

#undef ib_map_mr_sg
#define ib_map_mr_sg(mr, sg, nents, ...) \
	ib_mr_arg3(__VA_ARGS__, ib_mr_map_mr_sg, ib_mr_map_mr_sg_old)(mr, sg, nents, __VA_ARGS__)
#endif

/* --- FMR pools: iova was behind a pointer once; UEK had one argument more, which was NULL --- */

static inline u64 ib_mr_iova(u64 iova)
{
	return iova;
}

static inline u64 ib_mr_iova_at(const u64 *iova)
{
	return *iova;
}

static inline struct ib_pool_fmr *ib_mr_pool_map(struct ib_fmr_pool *pool, u64 *page_list,
						 int list_len, u64 iova, const void *more)
{
	if (more)
		return ERR_PTR(-EINVAL);
	return ib_fmr_pool_map_phys(pool, page_list, list_len, iova);
}

#define ib_fmr_pool_map_phys(pool, page_list, list_len, iova, ...)		\
	ib_mr_pool_map(pool, page_list, list_len,				\
		       __builtin_choose_expr(__same_type(iova, u64 *) ||	\
					     __same_type(iova, const u64 *),	\
					     ib_mr_iova_at, ib_mr_iova)(iova),	\
		       ib_mr_arg2(0, ##__VA_ARGS__, NULL))

#include <ib_mr/sig.h>
#include <ib_mr/dma.h>
#include <ib_mr/wr.h>
#include <ib_mr/device.h>

#endif /* _CLASSIC_RDMA_IB_VERBS_H */
