/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Tracepoints of ib_mr: one on each transition of a region and one on each refusal.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM ib_mr

#if !defined(_TRACE_IB_MR_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_IB_MR_H

#include <linux/tracepoint.h>
#include <rdma/ib_mr.h>

TRACE_EVENT(ib_mr_refused,
	TP_PROTO(const char *device, enum ib_mr_reason why),
	TP_ARGS(device, why),
	TP_STRUCT__entry(
		__string(device, device)
		__field(int, why)
	),
	TP_fast_assign(
		ibmr_assign_str(device, device);
		__entry->why = why;
	),
	TP_printk("dev=%s why=%s", __get_str(device), ib_mr_reason_name(__entry->why))
);

DECLARE_EVENT_CLASS(ib_mr_region,
	TP_PROTO(const char *device, const struct ib_mr *mr, int access, u32 runs),
	TP_ARGS(device, mr, access, runs),
	TP_STRUCT__entry(
		__string(device, device)
		__field(const void *, mr)
		__field(u32, lkey)
		__field(u32, rkey)
		__field(u64, iova)
		__field(u64, length)
		__field(int, access)
		__field(u32, runs)
	),
	TP_fast_assign(
		ibmr_assign_str(device, device);
		__entry->mr = mr;
		__entry->lkey = mr->lkey;
		__entry->rkey = mr->rkey;
		__entry->iova = mr->iova;
		__entry->length = mr->length;
		__entry->access = access;
		__entry->runs = runs;
	),
	TP_printk("dev=%s mr=%p lkey=%#x rkey=%#x iova=%#llx length=%llu access=%#x runs=%u",
		  __get_str(device), __entry->mr, __entry->lkey, __entry->rkey, __entry->iova,
		  __entry->length, __entry->access, __entry->runs)
);

#define IB_MR_REGION_EVENT(name) \
DEFINE_EVENT(ib_mr_region, name, \
	TP_PROTO(const char *device, const struct ib_mr *mr, int access, u32 runs), \
	TP_ARGS(device, mr, access, runs))

IB_MR_REGION_EVENT(ib_mr_registered);
IB_MR_REGION_EVENT(ib_mr_reregistered);
IB_MR_REGION_EVENT(ib_mr_deregistered);

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
		  __entry->died ? "exit" : "unmap")
);

#endif /* _TRACE_IB_MR_H */

#include <trace/define_trace.h>
