/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Tracepoints of ib_mr: one on each transition of a region, an armed MR or a window, and one on
 * each refusal.
 *
 * Fields have the names that the field uses: pd is the number that `rdma resource show pd` gives as
 * pdn, keys are whole (index and variant), access are the IB_ACCESS_* bits. There are no pointers:
 * what an event is about is known by its keys, as it is on the wire.
 *
 *	region		ib_mr_registered, ib_mr_reregistered, ib_mr_deregistered, ib_mr_stale
 *	armed MR	ib_mr_armed, then ib_mr_mapped and ib_mr_cut_off, then ib_mr_rekeyed, and
 *			so on until ib_mr_replaced (another comes) or ib_mr_discarded
 *	window		ib_mr_bound, ib_mr_unbound (and ib_mr_cut_off of the MR behind it)
 *	pool		ib_mr_pool_flushed
 *	any key		ib_mr_invalidated, by a work request
 *	a call		ib_mr_refused
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ib_mr

#if !defined(_TRACE_IB_MR_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_IB_MR_H

#include <linux/tracepoint.h>
#include <rdma/ib_mr.h>

struct ibmr_armed;
struct ibmr_reg;

/* So that trace-cmd and perf, which read the format files, know the numbers. */
TRACE_DEFINE_ENUM(IB_ACCESS_LOCAL_WRITE);
TRACE_DEFINE_ENUM(IB_ACCESS_REMOTE_READ);
TRACE_DEFINE_ENUM(IB_ACCESS_REMOTE_WRITE);
TRACE_DEFINE_ENUM(IB_ACCESS_REMOTE_ATOMIC);
TRACE_DEFINE_ENUM(IB_ACCESS_MW_BIND);
TRACE_DEFINE_ENUM(IB_ZERO_BASED);

#define ib_mr_show_access(access)				\
	__print_flags(access, "|",				\
		{ IB_ACCESS_LOCAL_WRITE, "LOCAL_WRITE" },	\
		{ IB_ACCESS_REMOTE_READ, "REMOTE_READ" },	\
		{ IB_ACCESS_REMOTE_WRITE, "REMOTE_WRITE" },	\
		{ IB_ACCESS_REMOTE_ATOMIC, "REMOTE_ATOMIC" },	\
		{ IB_ACCESS_MW_BIND, "MW_BIND" },		\
		{ IB_ZERO_BASED, "ZERO_BASED" })

#undef IB_MR_TRACE_REASON
#define IB_MR_TRACE_REASON(name, err, text) TRACE_DEFINE_ENUM(IB_MR_WHY_##name);
IB_MR_REASONS(IB_MR_TRACE_REASON)
TRACE_DEFINE_ENUM(IB_MR_WHY_COUNT);
#undef IB_MR_TRACE_REASON
#define IB_MR_TRACE_REASON(name, err, text) { IB_MR_WHY_##name, #name },

#define ib_mr_show_reason(why) \
	__print_symbolic(why, IB_MR_REASONS(IB_MR_TRACE_REASON) { IB_MR_WHY_COUNT, "?" })

TRACE_EVENT(ib_mr_refused,
	TP_PROTO(const char *device, enum ib_mr_reason why, int err, struct va_format *call),
	TP_ARGS(device, why, err, call),
	TP_STRUCT__entry(
		__string(device, device)
		__field(int, why)
		__field(int, err)
		__vstring(call, call->fmt, call->va)
	),
	TP_fast_assign(
		ibmr_assign_str(device, device);
		__entry->why = why;
		__entry->err = err;
		__assign_vstr(call, call->fmt, call->va);
	),
	TP_printk("dev=%s why=%s err=%d call=%s", __get_str(device),
		  ib_mr_show_reason(__entry->why), __entry->err, __get_str(call))
);

DECLARE_EVENT_CLASS(ib_mr_region,
	TP_PROTO(const char *device, const struct ibmr_reg *reg),
	TP_ARGS(device, reg),
	TP_STRUCT__entry(
		__string(device, device)
		__field(u32, pd)
		__field(u32, lkey)
		__field(u32, rkey)
		__field(u64, iova)
		__field(u64, length)
		__field(int, access)
		__field(u32, runs)
		__field(u64, pinned)
	),
	TP_fast_assign(
		ibmr_assign_str(device, device);
		__entry->pd = reg->pdn;
		__entry->lkey = reg->lkey;
		__entry->rkey = reg->rkey;
		__entry->iova = reg->iova;
		__entry->length = reg->length;
		__entry->access = reg->access;
		__entry->runs = ibmr_reg_runs(reg);
		__entry->pinned = ibmr_reg_pinned(reg);
	),
	TP_printk("dev=%s pd=%u lkey=%#x rkey=%#x iova=%#llx length=%llu access=%s runs=%u pinned=%llu",
		  __get_str(device), __entry->pd, __entry->lkey, __entry->rkey, __entry->iova,
		  __entry->length, ib_mr_show_access(__entry->access), __entry->runs,
		  __entry->pinned)
);

DEFINE_EVENT(ib_mr_region, ib_mr_registered,
	TP_PROTO(const char *device, const struct ibmr_reg *reg),
	TP_ARGS(device, reg));

DEFINE_EVENT(ib_mr_region, ib_mr_deregistered,
	TP_PROTO(const char *device, const struct ibmr_reg *reg),
	TP_ARGS(device, reg));

TRACE_EVENT(ib_mr_reregistered,
	TP_PROTO(const char *device, const struct ibmr_reg *reg, u32 old_lkey, u32 old_rkey),
	TP_ARGS(device, reg, old_lkey, old_rkey),
	TP_STRUCT__entry(
		__string(device, device)
		__field(u32, pd)
		__field(u32, old_lkey)
		__field(u32, old_rkey)
		__field(u32, lkey)
		__field(u32, rkey)
		__field(u64, iova)
		__field(u64, length)
		__field(int, access)
	),
	TP_fast_assign(
		ibmr_assign_str(device, device);
		__entry->pd = reg->pdn;
		__entry->old_lkey = old_lkey;
		__entry->old_rkey = old_rkey;
		__entry->lkey = reg->lkey;
		__entry->rkey = reg->rkey;
		__entry->iova = reg->iova;
		__entry->length = reg->length;
		__entry->access = reg->access;
	),
	TP_printk("dev=%s pd=%u old_lkey=%#x old_rkey=%#x lkey=%#x rkey=%#x iova=%#llx length=%llu access=%s",
		  __get_str(device), __entry->pd, __entry->old_lkey, __entry->old_rkey,
		  __entry->lkey, __entry->rkey, __entry->iova, __entry->length,
		  ib_mr_show_access(__entry->access))
);

/* The owner unmapped the memory, or died. */
TRACE_EVENT(ib_mr_stale,
	TP_PROTO(const char *device, const char *comm, pid_t pid, u64 start, u64 length, bool died),
	TP_ARGS(device, comm, pid, start, length, died),
	TP_STRUCT__entry(
		__string(device, device)
		__string(comm, comm)
		__field(pid_t, pid)
		__field(u64, start)
		__field(u64, length)
		__field(bool, died)
	),
	TP_fast_assign(
		ibmr_assign_str(device, device);
		ibmr_assign_str(comm, comm);
		__entry->pid = pid;
		__entry->start = start;
		__entry->length = length;
		__entry->died = died;
	),
	TP_printk("dev=%s comm=%s pid=%d start=%#llx length=%llu cause=%s", __get_str(device),
		  __get_str(comm), __entry->pid, __entry->start, __entry->length,
		  __print_symbolic(__entry->died, { 0, "unmap" }, { 1, "exit" }))
);

/* A key leads to memory, or no longer does: FMRs, pools, and the MRs behind windows. */
DECLARE_EVENT_CLASS(ib_mr_mapping,
	TP_PROTO(const char *device, u32 pd, u32 key, u64 iova, u64 length, int access),
	TP_ARGS(device, pd, key, iova, length, access),
	TP_STRUCT__entry(
		__string(device, device)
		__field(u32, pd)
		__field(u32, key)
		__field(u64, iova)
		__field(u64, length)
		__field(int, access)
	),
	TP_fast_assign(
		ibmr_assign_str(device, device);
		__entry->pd = pd;
		__entry->key = key;
		__entry->iova = iova;
		__entry->length = length;
		__entry->access = access;
	),
	TP_printk("dev=%s pd=%u key=%#x iova=%#llx length=%llu access=%s", __get_str(device),
		  __entry->pd, __entry->key, __entry->iova, __entry->length,
		  ib_mr_show_access(__entry->access))
);

DEFINE_EVENT(ib_mr_mapping, ib_mr_mapped,
	TP_PROTO(const char *device, u32 pd, u32 key, u64 iova, u64 length, int access),
	TP_ARGS(device, pd, key, iova, length, access));

DEFINE_EVENT(ib_mr_mapping, ib_mr_cut_off,
	TP_PROTO(const char *device, u32 pd, u32 key, u64 iova, u64 length, int access),
	TP_ARGS(device, pd, key, iova, length, access));

/* The life of an armed MR, in the magazine of that number. */
DECLARE_EVENT_CLASS(ib_mr_stock,
	TP_PROTO(const char *device, unsigned int magazine, u32 key, int access,
		 unsigned int pages),
	TP_ARGS(device, magazine, key, access, pages),
	TP_STRUCT__entry(
		__string(device, device)
		__field(unsigned int, magazine)
		__field(u32, key)
		__field(int, access)
		__field(unsigned int, pages)
	),
	TP_fast_assign(
		ibmr_assign_str(device, device);
		__entry->magazine = magazine;
		__entry->key = key;
		__entry->access = access;
		__entry->pages = pages;
	),
	TP_printk("dev=%s magazine=%u key=%#x access=%s pages=%u", __get_str(device),
		  __entry->magazine, __entry->key, ib_mr_show_access(__entry->access),
		  __entry->pages)
);

#define IB_MR_STOCK_EVENT(name) \
DEFINE_EVENT(ib_mr_stock, name, \
	TP_PROTO(const char *device, unsigned int magazine, u32 key, int access, \
		 unsigned int pages), \
	TP_ARGS(device, magazine, key, access, pages))

IB_MR_STOCK_EVENT(ib_mr_armed);
IB_MR_STOCK_EVENT(ib_mr_replaced);
IB_MR_STOCK_EVENT(ib_mr_discarded);

TRACE_EVENT(ib_mr_rekeyed,
	TP_PROTO(const char *device, unsigned int magazine, u32 old_key, u32 key,
		 unsigned int keys_left),
	TP_ARGS(device, magazine, old_key, key, keys_left),
	TP_STRUCT__entry(
		__string(device, device)
		__field(unsigned int, magazine)
		__field(u32, old_key)
		__field(u32, key)
		__field(unsigned int, keys_left)
	),
	TP_fast_assign(
		ibmr_assign_str(device, device);
		__entry->magazine = magazine;
		__entry->old_key = old_key;
		__entry->key = key;
		__entry->keys_left = keys_left;
	),
	TP_printk("dev=%s magazine=%u old_key=%#x key=%#x keys_left=%u", __get_str(device),
		  __entry->magazine, __entry->old_key, __entry->key, __entry->keys_left)
);

TRACE_EVENT(ib_mr_bound,
	TP_PROTO(const char *device, const struct ib_mw *mw, const struct ibmr_reg *reg,
		 const struct ibmr_armed *armed),
	TP_ARGS(device, mw, reg, armed),
	TP_STRUCT__entry(
		__string(device, device)
		__field(u32, pd)
		__field(int, type)
		__field(u32, rkey)
		__field(u32, mr_lkey)
		__field(u64, iova)
		__field(u64, length)
		__field(int, access)
	),
	TP_fast_assign(
		ibmr_assign_str(device, device);
		__entry->pd = reg->pdn;
		__entry->type = mw->type;
		__entry->rkey = mw->rkey;
		__entry->mr_lkey = reg->lkey;
		__entry->iova = armed->drv->iova;
		__entry->length = armed->drv->length;
		__entry->access = armed->mag->access;
	),
	TP_printk("dev=%s pd=%u type=%d rkey=%#x mr_lkey=%#x iova=%#llx length=%llu access=%s",
		  __get_str(device), __entry->pd, __entry->type, __entry->rkey, __entry->mr_lkey,
		  __entry->iova, __entry->length, ib_mr_show_access(__entry->access))
);

TRACE_EVENT(ib_mr_unbound,
	TP_PROTO(const char *device, u32 pd, int type, u32 mr_lkey, u32 rkey),
	TP_ARGS(device, pd, type, mr_lkey, rkey),
	TP_STRUCT__entry(
		__string(device, device)
		__field(u32, pd)
		__field(int, type)
		__field(u32, rkey)
		__field(u32, mr_lkey)
	),
	TP_fast_assign(
		ibmr_assign_str(device, device);
		__entry->pd = pd;
		__entry->type = type;
		__entry->rkey = rkey;
		__entry->mr_lkey = mr_lkey;
	),
	TP_printk("dev=%s pd=%u type=%d rkey=%#x mr_lkey=%#x", __get_str(device), __entry->pd,
		  __entry->type, __entry->rkey, __entry->mr_lkey)
);

/* @fence: it waited until nothing that was released can be touched. */
TRACE_EVENT(ib_mr_pool_flushed,
	TP_PROTO(const char *device, u32 pd, unsigned int magazine, bool fence, unsigned int dirty),
	TP_ARGS(device, pd, magazine, fence, dirty),
	TP_STRUCT__entry(
		__string(device, device)
		__field(u32, pd)
		__field(unsigned int, magazine)
		__field(bool, fence)
		__field(unsigned int, dirty)
	),
	TP_fast_assign(
		ibmr_assign_str(device, device);
		__entry->pd = pd;
		__entry->magazine = magazine;
		__entry->fence = fence;
		__entry->dirty = dirty;
	),
	TP_printk("dev=%s pd=%u magazine=%u fence=%d dirty=%u", __get_str(device), __entry->pd,
		  __entry->magazine, __entry->fence, __entry->dirty)
);

TRACE_EVENT(ib_mr_invalidated,
	TP_PROTO(const char *device, u32 pd, u32 key),
	TP_ARGS(device, pd, key),
	TP_STRUCT__entry(
		__string(device, device)
		__field(u32, pd)
		__field(u32, key)
	),
	TP_fast_assign(
		ibmr_assign_str(device, device);
		__entry->pd = pd;
		__entry->key = key;
	),
	TP_printk("dev=%s pd=%u key=%#x", __get_str(device), __entry->pd, __entry->key)
);

#endif /* _TRACE_IB_MR_H */

#include <trace/define_trace.h>
