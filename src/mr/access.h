/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_ACCESS_H
#define IBMR_ACCESS_H

#include <rdma/ib_mr.h>

#define IBMR_REMOTE_RIGHTS	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE | \
				 IB_ACCESS_REMOTE_ATOMIC)
#define IBMR_RIGHTS		(IB_ACCESS_LOCAL_WRITE | IBMR_REMOTE_RIGHTS)

enum ib_mr_reason ibmr_access_check(struct ib_device *device, int access);
enum ib_mr_reason ibmr_access_wants_local(int access);
enum ib_mr_reason ibmr_access_iova(int access, u64 iova, u64 first);
enum ib_mr_reason ibmr_access_range(u64 iova, u64 length);

/*
 * Does @have give every right in @want? Every bit wanted has to be there: testing want & have for
 * non-zero would let a request for WRITE and ATOMIC pass with one of them granted.
 */
static inline enum ib_mr_reason ibmr_access_grants(int have, int want)
{
	return want & ~have ? IB_MR_WHY_NO_RIGHT : IB_MR_WHY_OK;
}

/* Is [@iova, @iova + @length) within [@start, @start + @size)? Forms no sum that could wrap. */
static inline enum ib_mr_reason ibmr_access_bounds(u64 start, u64 size, u64 iova, u64 length)
{
	if (unlikely(iova < start))
		return IB_MR_WHY_BEFORE_START;
	if (unlikely(length > size || iova - start > size - length))
		return IB_MR_WHY_PAST_END;
	return IB_MR_WHY_OK;
}

/* Up to here an iova needs no closer look, if what begins there is shorter than 4 GiB. */
#define IBMR_IOVA_PLAIN	(U64_MAX - BIT_ULL(34))

/* The same, answered on the spot for what lies far from the end. */
static inline enum ib_mr_reason ibmr_access_range_fast(u64 iova, u64 length)
{
	if (likely(iova <= IBMR_IOVA_PLAIN && length - 1 < BIT_ULL(32)))
		return IB_MR_WHY_OK;
	return ibmr_access_range(iova, length);
}

/* What the driver is told: rights only. Hints, ZERO_BASED and MW_BIND are carried out here. */
static inline int ibmr_access_driver(int access)
{
	return access & IBMR_RIGHTS;
}

#endif /* IBMR_ACCESS_H */
