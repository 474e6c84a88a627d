/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Devices: their limits, and the clients that are told of them. Only <rdma/ib_verbs.h> of this
 * folder includes this.
 *
 * Limits say what ib_mr makes of the device: FMRs and windows are there when live mapping works
 * (the first question finds out), the old page lists are not.
 *
 * A client's add() returned nothing up to 5.7, and remove() had one argument up to 4.2. Today's
 * callbacks do not say whose they are, so a source file may register one client (all known ULPs
 * do); a second one is refused with -EBUSY.
 */
#ifndef _CLASSIC_IB_MR_DEVICE_H
#define _CLASSIC_IB_MR_DEVICE_H

/*
 * Flags that are kernel_cap_flags now, or are gone, with their old values and types: the word was
 * an int up to 4.4, and sources print it as one.
 */
#define IB_DEVICE_INIT_TYPE		0x200
#define IB_DEVICE_LOCAL_DMA_LKEY	0x8000
#define IB_DEVICE_RESERVED		0x10000
#define IB_DEVICE_UD_TSO		0x80000
#define IB_DEVICE_BLOCK_MULTICAST_LOOPBACK 0x400000
#define IB_DEVICE_CROSS_CHANNEL		0x8000000
#define IB_DEVICE_SIGNATURE_HANDOVER	0x40000000
#if IB_MR_WRITTEN_FOR < 405
#define IB_DEVICE_ON_DEMAND_PAGING	((int)0x80000000)
#else
#define IB_DEVICE_ON_DEMAND_PAGING	BIT_ULL(31)
#define IB_DEVICE_SG_GAPS_REG		BIT_ULL(32)
#define IB_DEVICE_VIRTUAL_FUNCTION	BIT_ULL(33)
#define IB_DEVICE_RDMA_NETDEV_OPA_VNIC	BIT_ULL(35)
#endif

#if IB_MR_WRITTEN_FOR < 405

#define IB_MR_CLASSIC_MAX_MAPS	32767

struct ib_mr_classic_device_attr {
	u64 fw_ver;
	__be64 sys_image_guid;
	u64 max_mr_size;
	u64 page_size_cap;
	u32 vendor_id;
	u32 vendor_part_id;
	u32 hw_ver;
	int max_qp;
	int max_qp_wr;
	int device_cap_flags;
	int max_sge;
	int max_sge_rd;
	int max_cq;
	int max_cqe;
	int max_mr;
	int max_pd;
	int max_qp_rd_atom;
	int max_ee_rd_atom;
	int max_res_rd_atom;
	int max_qp_init_rd_atom;
	int max_ee_init_rd_atom;
	enum ib_atomic_cap atomic_cap;
	enum ib_atomic_cap masked_atomic_cap;
	int max_ee;
	int max_rdd;
	int max_mw;
	int max_raw_ipv6_qp;
	int max_raw_ethy_qp;
	int max_mcast_grp;
	int max_mcast_qp_attach;
	int max_total_mcast_qp_attach;
	int max_ah;
	int max_fmr;
	int max_map_per_fmr;
	int max_srq;
	int max_srq_wr;
	int max_srq_sge;
	unsigned int max_fast_reg_page_list_len;
	u16 max_pkeys;
	u8 local_ca_ack_delay;
	int sig_prot_cap;
	int sig_guard_cap;
	struct ib_odp_caps odp_caps;
	u64 timestamp_mask;
	u64 hca_core_clock;
};

static inline int ib_mr_classic_cap_flags(const struct ib_device_attr *now, bool live)
{
	const u64 windows = IB_DEVICE_MEM_WINDOW | IB_DEVICE_MEM_WINDOW_TYPE_2A |
			    IB_DEVICE_MEM_WINDOW_TYPE_2B;
	u64 flags = now->device_cap_flags;

	if (live)
		flags |= IB_DEVICE_MEM_WINDOW;
	else
		flags &= ~windows;
	if (IB_MR_WRITTEN_FOR < 404)
		flags &= ~(u64)IB_DEVICE_MEM_MGT_EXTENSIONS;
	if (now->kernel_cap_flags & IBK_LOCAL_DMA_LKEY)
		flags |= IB_DEVICE_LOCAL_DMA_LKEY;
	if (now->kernel_cap_flags & IBK_BLOCK_MULTICAST_LOOPBACK)
		flags |= IB_DEVICE_BLOCK_MULTICAST_LOOPBACK;
	if (now->kernel_cap_flags & IBK_UD_TSO)
		flags |= IB_DEVICE_UD_TSO;
	return flags;		/* what is above bit 31 came later */
}

/**
 * ib_query_device() - what a device can do
 * @device: device
 * @attr: filled in
 *
 * max_map_per_fmr is what ib_alloc_fmr() takes for max_maps at most. It is never 0: sources draw
 * max_maps by it.
 *
 * Context: process, may sleep. Return: 0.
 */
static inline int ib_query_device(struct ib_device *device, struct ib_mr_classic_device_attr *attr)
{
	const struct ib_device_attr *now = &device->attrs;
	int max_fmr = ib_mr_max_fmr(device);

	*attr = (struct ib_mr_classic_device_attr){
		.fw_ver				= now->fw_ver,
		.sys_image_guid			= now->sys_image_guid,
		.max_mr_size			= now->max_mr_size,
		.page_size_cap			= now->page_size_cap,
		.vendor_id			= now->vendor_id,
		.vendor_part_id			= now->vendor_part_id,
		.hw_ver				= now->hw_ver,
		.max_qp				= now->max_qp,
		.max_qp_wr			= now->max_qp_wr,
		.device_cap_flags		= ib_mr_classic_cap_flags(now, max_fmr),
		.max_sge			= min(now->max_send_sge, now->max_recv_sge),
		.max_sge_rd			= now->max_sge_rd,
		.max_cq				= now->max_cq,
		.max_cqe			= now->max_cqe,
		.max_mr				= now->max_mr,
		.max_pd				= now->max_pd,
		.max_qp_rd_atom			= now->max_qp_rd_atom,
		.max_ee_rd_atom			= now->max_ee_rd_atom,
		.max_res_rd_atom		= now->max_res_rd_atom,
		.max_qp_init_rd_atom		= now->max_qp_init_rd_atom,
		.max_ee_init_rd_atom		= now->max_ee_init_rd_atom,
		.atomic_cap			= now->atomic_cap,
		.masked_atomic_cap		= now->masked_atomic_cap,
		.max_ee				= now->max_ee,
		.max_rdd			= now->max_rdd,
		.max_mw				= max_fmr,
		.max_raw_ipv6_qp		= now->max_raw_ipv6_qp,
		.max_raw_ethy_qp		= now->max_raw_ethy_qp,
		.max_mcast_grp			= now->max_mcast_grp,
		.max_mcast_qp_attach		= now->max_mcast_qp_attach,
		.max_total_mcast_qp_attach	= now->max_total_mcast_qp_attach,
		.max_ah				= now->max_ah,
		.max_fmr			= max_fmr,
		.max_map_per_fmr		= IB_MR_CLASSIC_MAX_MAPS,
		.max_srq			= now->max_srq,
		.max_srq_wr			= now->max_srq_wr,
		.max_srq_sge			= now->max_srq_sge,
		.max_fast_reg_page_list_len	= now->max_fast_reg_page_list_len,
		.max_pkeys			= now->max_pkeys,
		.local_ca_ack_delay		= now->local_ca_ack_delay,
		.timestamp_mask			= now->timestamp_mask,
		.hca_core_clock			= now->hca_core_clock,
	};
	return 0;
}

#define ib_device_attr	ib_mr_classic_device_attr

#elif IB_MR_WRITTEN_FOR < 508

/*
 * device->attrs.max_fmr and .max_map_per_fmr are other members now. The latter has to be one that
 * is not 0, and no more than ib_alloc_fmr() takes: 32767 on soft RoCE.
 */
#define max_fmr		max_mr
#define max_map_per_fmr	max_cqe

#endif

/*
 * "Has the device FMRs?" was asked by its functions for them: device->alloc_fmr, and from 4.20 on
 * device->ops.alloc_fmr. Where it can do fast registration this says yes, and ib_alloc_fmr() has
 * the last word.
 */
#if IB_MR_WRITTEN_FOR < 405
#define reg_phys_mr	ops.alloc_mr
#define rereg_phys_mr	ops.alloc_mr
#define query_mr	ops.alloc_mr
#endif
#if IB_MR_WRITTEN_FOR < 420
#define alloc_fmr	ops.alloc_mr
#define dealloc_fmr	ops.alloc_mr
#define map_phys_fmr	ops.alloc_mr
#define unmap_fmr	ops.alloc_mr
#elif IB_MR_WRITTEN_FOR < 508
#define alloc_fmr	alloc_mr
#define dealloc_fmr	alloc_mr
#define map_phys_fmr	alloc_mr
#define unmap_fmr	alloc_mr
#endif

#if IB_MR_WRITTEN_FOR < 508

struct ib_mr_classic_client {
	const char *name;
	void (*add)(struct ib_device *device);
#if IB_MR_WRITTEN_FOR < 403
	void (*remove)(struct ib_device *device);
#else
	void (*remove)(struct ib_device *device, void *client_data);
#endif
	struct list_head list;
	struct ib_client now;
};

/* This source file's. */
static struct ib_mr_classic_client *ib_mr_client __maybe_unused;

static inline int ib_mr_client_add(struct ib_device *device)
{
	if (ib_mr_client->add)
		ib_mr_client->add(device);
	return 0;
}

static inline void ib_mr_client_remove(struct ib_device *device, void *data)
{
	if (!ib_mr_client->remove)
		return;
#if IB_MR_WRITTEN_FOR < 403
	ib_mr_client->remove(device);
#else
	ib_mr_client->remove(device, data);
#endif
}

static inline int ib_mr_register_client(struct ib_mr_classic_client *client)
{
	int err;

	if (cmpxchg(&ib_mr_client, NULL, client))
		return -EBUSY;
	client->now = (struct ib_client){
		.name = client->name,
		.add = ib_mr_client_add,
		.remove = ib_mr_client_remove,
	};
	err = ib_register_client(&client->now);
	if (err)
		WRITE_ONCE(ib_mr_client, NULL);
	return err;
}

static inline void ib_mr_unregister_client(struct ib_mr_classic_client *client)
{
	ib_unregister_client(&client->now);
	WRITE_ONCE(ib_mr_client, NULL);
}

static inline void ib_mr_set_client_data(struct ib_device *device,
					 struct ib_mr_classic_client *client, void *data)
{
	ib_set_client_data(device, &client->now, data);
}

static inline void *ib_mr_get_client_data(struct ib_device *device,
					  struct ib_mr_classic_client *client)
{
	return ib_get_client_data(device, &client->now);
}

#define ib_client				ib_mr_classic_client
#define ib_register_client(client)		ib_mr_register_client(client)
#define ib_unregister_client(client)		ib_mr_unregister_client(client)
#define ib_set_client_data(device, client, data) ib_mr_set_client_data(device, client, data)
#define ib_get_client_data(device, client)	ib_mr_get_client_data(device, client)

#endif

#endif /* _CLASSIC_IB_MR_DEVICE_H */
