// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Permission rules, each a function of its arguments alone.
 *
 * Nothing here looks at an object or takes a lock, so a rule can be asked from any context and
 * tested over its whole table. A rule answers with a reason, never with an errno: the errno
 * belongs to the reason (include/rdma/ib_mr.h), so that one cause always has one errno.
 *
 * The two that are asked for every access (rights, bounds) are inline, in access.h.
 */

#include "base/compat.h"
#include "mr/access.h"

/*
 * The device's own range check may add a length to an iova without looking for a wrap (rxe until
 * 2026). A peer's request is below 4 GiB, so that distance to 2^64 keeps the sum honest.
 */
#define IBMR_IOVA_MARGIN	BIT_ULL(32)

/**
 * ibmr_access_wants_local() - remote write and atomic need local write
 * @access: flags
 *
 * The device writes on the peer's behalf, so the owner's right to write comes first
 *.
 *
 * Context: any.
 * Return: IB_MR_WHY_OK or IB_MR_WHY_ACCESS_NO_LOCAL.
 */
enum ib_mr_reason ibmr_access_wants_local(int access)
{
	if (access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC) &&
	    !(access & IB_ACCESS_LOCAL_WRITE))
		return IB_MR_WHY_ACCESS_NO_LOCAL;
	return IB_MR_WHY_OK;
}
IBMR_EXPORT_INTERNAL(ibmr_access_wants_local);

/**
 * ibmr_access_check() - may a region have these flags on this device?
 * @device: where
 * @access: flags as the caller gave them
 *
 * Hints (HUGETLB and the optional range, RELAXED_ORDERING among them) are accepted and change
 * nothing. The order is mainline's, so a request wrong in two ways is refused for the same one.
 *
 * Context: any.
 * Return: IB_MR_WHY_OK, or why not.
 */
enum ib_mr_reason ibmr_access_check(struct ib_device *device, int access)
{
	const int known = IBMR_RIGHTS | IB_ACCESS_MW_BIND | IB_ZERO_BASED | IB_ACCESS_ON_DEMAND |
			  IB_ACCESS_HUGETLB | IB_ACCESS_OPTIONAL;
	enum ib_mr_reason why = ibmr_access_wants_local(access);

	if (why)
		return why;
	if (access & ~known)
		return IB_MR_WHY_BAD_ACCESS;
	/* Even a device that has it pages user memory only; what we register is pinned. */
	if (access & IB_ACCESS_ON_DEMAND)
		return IB_MR_WHY_NO_ON_DEMAND;
	return IB_MR_WHY_OK;
}
IBMR_EXPORT_INTERNAL(ibmr_access_check);

/**
 * ibmr_access_iova() - may a region that starts at @first have this iova?
 * @access: flags
 * @iova: address of the first byte for those who use the keys
 * @first: device address of the first byte
 *
 * A zero-based region has iova 0, and then its first byte has to begin a page, since the device
 * takes the offset in the first block from the iova.
 *
 * Context: any.
 * Return: IB_MR_WHY_OK, or why not.
 */
enum ib_mr_reason ibmr_access_iova(int access, u64 iova, u64 first)
{
	if (access & IB_ZERO_BASED) {
		if (iova)
			return IB_MR_WHY_ZERO_BASED_IOVA;
		if (first & ~PAGE_MASK)
			return IB_MR_WHY_ZERO_BASED_ALIGN;
	}
	if ((iova ^ first) & ~PAGE_MASK)
		return IB_MR_WHY_IOVA_ALIGN;
	return IB_MR_WHY_OK;
}
IBMR_EXPORT_INTERNAL(ibmr_access_iova);

/* May [@iova, @iova + @length) be a region's addresses? */
enum ib_mr_reason ibmr_access_range(u64 iova, u64 length)
{
	if (!length)
		return IB_MR_WHY_EMPTY;
	if (length - 1 > U64_MAX - iova)
		return IB_MR_WHY_WRAP;
	if (U64_MAX - iova - (length - 1) < IBMR_IOVA_MARGIN)
		return IB_MR_WHY_IOVA_HIGH;
	return IB_MR_WHY_OK;
}
IBMR_EXPORT_INTERNAL(ibmr_access_range);
