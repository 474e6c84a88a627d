/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Memory registration for in-kernel RDMA users: memory regions.
 *
 * This is what a ULP includes. The classic calls have their classic prototypes and errno values
 * (as in 4.1); what they do better is said beside each in the sources (kernel-doc stands with the
 * definition). Two macros at the end send ib_dereg_mr() and ib_dealloc_pd() through ib_mr, so
 * that handles of both kinds, ours and the core's own, can be given to them.
 *
 * A handle (struct ib_mr *) returned from here is a shell: its lkey, rkey, iova, length, pd and
 * device may be read, nothing of it may be written, and it may not be given to a function of
 * ib_core: <rdma/ib_mr_guard.h> refuses that.
 */
#ifndef _RDMA_IB_MR_H
#define _RDMA_IB_MR_H

#include <linux/err.h>
#include <linux/types.h>
#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>
/* Not every kernel has it; sparse cannot ask. */
#ifndef __CHECKER__
#if __has_include("linux/cleanup.h")
#include <linux/cleanup.h>
#endif
#endif

/* The one place where the version stands; scripts/abi check sees to the others. */
#define IB_MR_VERSION "1.0"

/*
 * What sources may rely on, see abi/README.md: the first rises when a prototype, a structure or
 * the meaning of a call changes, the second when something is added.
 */
#define IB_MR_ABI 1
#define IB_MR_ABI_MINOR 0

/**
 * struct ib_phys_buf - one piece of a physical buffer list
 * @addr: DMA address of the first byte, as ib_dma_map_*() returns it (on soft RDMA: the kernel
 *   virtual address)
 * @size: bytes
 */
struct ib_phys_buf {
	u64 addr;
	u64 size;
};

/**
 * struct ib_mr_attr - what ib_query_mr() tells
 * @pd: protection domain the region is in now
 * @device_virt_addr: iova of its first byte
 * @size: bytes
 * @mr_access_flags: the rights it was registered with
 * @lkey: key for local work requests
 * @rkey: key for remote peers, 0 where no remote right was given
 * @stale: user memory that its owner unmapped or moved (the classic structure ends before this)
 */
struct ib_mr_attr {
	struct ib_pd *pd;
	u64 device_virt_addr;
	u64 size;
	int mr_access_flags;
	u32 lkey;
	u32 rkey;
	bool stale;
};

/*
 * Why a call was refused or an access would be: X(name, errno, "sentence"). A caller's mistake
 * and a device's limit both have one; the order is ABI for the counters only, so new ones go to
 * the end of their group.
 */
#define IB_MR_REASONS(X) \
	X(OK,               0,           "allowed") \
	/* who and where */ \
	X(NO_DEVICE,        -ENODEV,     "the device is gone, or ib_mr does not serve it") \
	X(NULL_ARG,         -EINVAL,     "an argument that is needed is NULL") \
	X(USER_PD,          -EPERM,      "the protection domain belongs to user space") \
	X(FOREIGN_MR,       -EINVAL,     "the handle is not one of ib_mr's") \
	X(OUR_MR,           -EINVAL,     "the core cannot use a handle of ib_mr's") \
	X(DEREG_TWICE,      -EINVAL,     "the handle was deregistered before") \
	X(WRONG_KIND,       -EINVAL,     "this kind of region cannot do that") \
	X(OTHER_DEVICE,     -EINVAL,     "the objects are of different devices") \
	X(WINDOWS_BOUND,    -EBUSY, \
	  "memory windows are bound to the region (IBA 10.6.7.2.6)") \
	X(NO_REGQP,         -EOPNOTSUPP, \
	  "the device cannot connect a queue pair to itself (iWARP)") \
	X(REGQP_FAILED,     -EIO,        "the device failed the registration work request") \
	X(DEREG_FAILED,     -EIO,        "the driver did not let go of the region") \
	X(PD_BUSY,          -EBUSY,      "objects of ib_mr still live in the protection domain") \
	X(PD_NOT_HELD,      -EINVAL,     "a protection domain was put more often than it was got") \
	X(ARENA_BUSY,       -EBUSY,      "slices of the arena are still out") \
	X(ARENA_SLICE,      -EINVAL, \
	  "this is no slice of the arena as it was handed out, or it was freed before") \
	X(ARENA_FULL,       -ENOMEM,     "no free stretch of the arena is long enough") \
	X(ARENA_ARGS,       -EINVAL,     "an arena's size, order or alignment is out of range") \
	X(SCOPE_UNKNOWN,    -ENOENT,     "the scope does not hold the object") \
	/* rights */ \
	X(BAD_ACCESS,       -EINVAL,     "an access flag is unknown") \
	X(ACCESS_NO_LOCAL,  -EINVAL, \
	  "remote write or atomic needs local write") \
	X(NO_ON_DEMAND,     -EINVAL,     "the device has no on-demand paging") \
	X(ZERO_BASED_IOVA,  -EINVAL,     "a zero-based region has iova 0") \
	X(ZERO_BASED_ALIGN, -EOPNOTSUPP, \
	  "the device cannot express a zero-based region that starts inside a page") \
	/* geometry */ \
	X(EMPTY,            -EINVAL,     "there is nothing to register") \
	X(WRAP,             -EINVAL,     "an address and a length together pass 2^64") \
	X(INNER_BOUNDARY,   -EINVAL, \
	  "an inner boundary of the buffer list is not page aligned") \
	X(IOVA_ALIGN,       -EINVAL, \
	  "iova and the first byte differ in their offset in a page") \
	X(IOVA_HIGH,        -EINVAL, \
	  "iova lies too near to 2^64 for the device's own range check") \
	X(NOT_LINEAR,       -EINVAL, \
	  "the address is no linear-map memory, which soft RDMA needs") \
	X(TOO_LONG,         -EINVAL,     "longer than the device's max_mr_size") \
	X(NOT_DMA_MAPPED,   -EINVAL, \
	  "an entry of the list has no DMA length: was the list mapped (ib_dma_map_sg)?") \
	X(DEVICE_PAGES,     -ENOMEM,     "the driver cannot hold that many blocks in one region") \
	X(NO_MEMORY,        -ENOMEM,     "no memory") \
	X(BAD_MASK,         -EINVAL,     "the re-registration mask is empty or has unknown bits") \
	/* user memory */ \
	X(NO_MM,            -EINVAL,     "the caller has no user address space") \
	X(MEMLOCK,          -ENOMEM,     "RLIMIT_MEMLOCK") \
	X(NOT_MAPPED,       -EFAULT, \
	  "the user memory is not there, or does not give the right") \
	X(MAX_MR,           -ENOMEM,     "the device's max_mr is reached") \
	X(LIMIT_REGIONS,    -ENOMEM,     "the module parameter max_regions_per_pd is reached") \
	X(LIMIT_PINNED,     -ENOMEM,     "the module parameter max_pinned_per_pd is reached") \
	X(SHARED_READONLY,  -EFAULT, \
	  "this kernel pins for writing, which a read-only shared mapping of a file forbids") \
	X(NOT_PINNABLE,     -EFAULT, \
	  "the kernel does not pin this memory for long (a device's, secret, a file's)") \
	/* verdicts on an access: ib_mr_check(), ib_mr_explain() */ \
	X(UNKNOWN_KEY,      -EINVAL,     "no region has this key") \
	X(STALE_KEY,        -EINVAL,     "the key's variant is not the current one") \
	X(OTHER_PD,         -EACCES,     "the region is in another protection domain") \
	X(NO_RIGHT,         -EACCES,     "the region does not grant the right") \
	X(LOCAL_KEY,        -EACCES,     "a local key was used as a remote one") \
	X(BEFORE_START,     -ERANGE,     "the access begins before the region") \
	X(PAST_END,         -ERANGE,     "the access ends past the region") \
	X(STALE_REGION,     -EFAULT, \
	  "the owner unmapped or moved the memory while it was registered") \
	X(DEREGISTERED,     -EINVAL,     "the region was deregistered") \
	X(INVALIDATED,      -EINVAL,     "the key was invalidated by a work request") \
	X(NOT_MAPPED_NOW,   -EINVAL,     "the key is mapped to nothing now") \
	X(RUNS_FULL,        -ENOSPC,     "more runs than the caller's array holds") \
	/* fast memory regions and windows */ \
	X(NOT_QUALIFIED,    -ENOSYS,     "the device failed the test of live mapping") \
	X(POOL_EMPTY,       -EAGAIN,     "no armed region is free") \
	X(TOO_MANY_PAGES,   -EMSGSIZE,   "more pages than the object's capacity") \
	X(FMR_ARGS,         -EINVAL,     "an FMR attribute is out of range") \
	X(MAX_MAPS,         -EINVAL,     "the FMR was mapped max_maps times since the last unmap") \
	X(UNMAP_TWICE,      -EINVAL,     "the FMR was released before, and was not mapped since") \
	X(FMR_MAPPED,       -EBUSY,      "the FMR is mapped") \
	X(MW_PD,            -EINVAL, \
	  "queue pair, window and region are not of one protection domain (C10-72)") \
	X(MW_NO_BIND,       -EINVAL,     "the region has no MW_BIND right (C10-73)") \
	X(MW_ACCESS,        -EINVAL, \
	  "remote write or atomic through the window needs local write on the region (C10-74)") \
	X(MW_RANGE,         -EINVAL,     "the window reaches outside its region (C10-75)") \
	X(MW_ZERO_BASED,    -EINVAL, \
	  "no zero-based type 1 window, nor a window on a zero-based region (o10-36.2.2)") \
	X(MW_NOT_FREE,      -EINVAL, \
	  "a type 2 window must be invalidated before it is bound again (o10-37.2.30)") \
	X(MW_EMPTY,         -EINVAL, \
	  "a type 2 window cannot be bound to nothing (o10-37.2.40)") \
	X(MW_TYPE1_INV,     -EINVAL,     "a type 1 window cannot be invalidated (o10-37.2.26)") \
	X(MW_TYPE,          -EINVAL,     "no such window type") \
	X(MW_QP_STATE,      -EINVAL,     "the queue pair is not ready to send") \
	X(MW_SQ_FULL,       -ENOMEM,     "the send queue has no room for the bind") \
	X(MW_NO_SLOT,       -ENOMEM, \
	  "too many signalled binds are under way at this moment; more can be a moment later") \
	X(MW_PROVIDING,     -ENOMEM, \
	  "the first bind of this size or these rights: what it takes is being made, bind again")

enum ib_mr_reason {
#define IB_MR_REASON_ENUM(name, err, text) IB_MR_WHY_##name,
	IB_MR_REASONS(IB_MR_REASON_ENUM)
#undef IB_MR_REASON_ENUM
	IB_MR_WHY_COUNT
};

const char *ib_mr_reason_name(enum ib_mr_reason why);
const char *ib_mr_reason_text(enum ib_mr_reason why);
u64 ib_mr_refusals(struct ib_device *device, enum ib_mr_reason why);

/* Memory regions: the classic calls. */
struct ib_mr *ib_get_dma_mr(struct ib_pd *pd, int mr_access_flags);
struct ib_mr *ib_reg_phys_mr(struct ib_pd *pd, struct ib_phys_buf *phys_buf_array,
			     int num_phys_buf, int mr_access_flags,
			     u64 *iova_start);
int ib_rereg_phys_mr(struct ib_mr *mr, int mr_rereg_mask, struct ib_pd *pd,
		     struct ib_phys_buf *phys_buf_array, int num_phys_buf,
		     int mr_access_flags, u64 *iova_start);
int ib_query_mr(struct ib_mr *mr, struct ib_mr_attr *mr_attr);
int ib_mr_dereg(struct ib_mr *mr);

/* Memory regions: what the classic calls had no word for. */
struct ib_mr *ib_mr_reg_kernel(struct ib_pd *pd, void *addr, size_t length,
			       int access, const u64 *iova);
struct ib_mr *ib_mr_reg_sg(struct ib_pd *pd, struct scatterlist *sgl,
			   int nents, int access, const u64 *iova);

/* Memory of the calling process. */
struct ib_mr *ib_mr_reg_user(struct ib_pd *pd, unsigned long start,
			     size_t length, int access, const u64 *iova);
bool ib_mr_is_stale(struct ib_mr *mr);

/* Wait for packets that were let in before a key was withdrawn. */
void ib_mr_fence(void);

/* Keep a PD's hidden registration queue pair alive between objects. */
int ib_mr_pd_get(struct ib_pd *pd);
void ib_mr_pd_put(struct ib_pd *pd);
int ib_mr_dealloc_pd(struct ib_pd *pd);

/* Completion queues whose handler polls: the classic header's ib_create_cq(), ib_destroy_cq(). */
struct ib_cq *ib_mr_create_cq(struct ib_device *device, ib_comp_handler comp_handler,
			      void (*event_handler)(struct ib_event *event, void *context),
			      void *cq_context, const struct ib_cq_init_attr *cq_attr,
			      const char *caller);
int ib_mr_destroy_cq(struct ib_cq *cq);

/* True when every counter of the device agrees with its objects. */
bool ib_mr_check_invariants(struct ib_device *device);

/*
 * Keys: where they lead, and what they allow. These calls do not sleep, work with interrupts off
 * (on PREEMPT_RT: not in sections that disable interrupts or preemption), and are safe against a
 * deregistration at the same time.
 */

/**
 * struct ib_mr_run - a stretch of memory without a gap
 * @addr: device address of the first byte (on soft RDMA: kernel virtual address)
 * @len: bytes
 */
struct ib_mr_run {
	u64 addr;
	u64 len;
};

int ib_mr_translate(struct ib_pd *pd, u32 key, u64 iova, u64 length,
		    struct ib_mr_run *runs, int max_runs);
enum ib_mr_reason ib_mr_check(struct ib_pd *pd, u32 key, u64 iova, u64 length,
			      int access, bool remote);
int ib_mr_copy_to(struct ib_pd *pd, u32 key, u64 iova, const void *buf,
		  size_t length);
int ib_mr_copy_from(struct ib_pd *pd, u32 key, u64 iova, void *buf,
		    size_t length);
enum ib_mr_reason ib_mr_explain(struct ib_device *device, struct ib_pd *pd,
				u32 key, u64 iova, u64 length, int access,
				char *buf, size_t size);

/* struct ib_mr *mr __free(ib_dereg_mr) = ib_reg_phys_mr(...); */
#ifdef DEFINE_FREE
DEFINE_FREE(ib_dereg_mr, struct ib_mr *, if (!IS_ERR_OR_NULL(_T)) ib_mr_dereg(_T))
#endif

#include <rdma/ib_mr_arena.h>
#include <rdma/ib_mr_guard.h>
#include <rdma/ib_mr_mw.h>

#define ib_dereg_mr(mr)		ib_mr_dereg(mr)
#define ib_dealloc_pd(pd)	ib_mr_dealloc_pd(pd)

#endif /* _RDMA_IB_MR_H */
