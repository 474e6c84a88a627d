// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Permission rules: each over its whole table, then against the device.
 *
 * The rules are restated here in another form than the code has (a table or a loop over bits), so
 * that a slip in one is not repeated in the other. The last cases take the verdict from RDMA
 * operations: for every set of rights that can be had, every operation, granted or refused. Fault
 * 3 of the field-bugs list is a request for two rights that passed with one of them.
 */
#include <linux/bits.h>
#include <linux/overflow.h>
#include "mr/access.h"
#include "helpers.h"

static const int rights[] = { LW, RR, RW, RA };

/* The n-th subset of the rights. */
static int subset(int n)
{
	int i, set = 0;

	for (i = 0; i < ARRAY_SIZE(rights); i++)
		if (n & BIT(i))
			set |= rights[i];
	return set;
}

#define SUBSETS	BIT(ARRAY_SIZE(rights))

/* Fault 3: all pairs of want and have. */
static void access_fault3_pairs(struct kunit *test)
{
	int want, have, i;
	bool granted;

	for (want = 0; want < SUBSETS; want++)
		for (have = 0; have < SUBSETS; have++) {
			granted = true;
			for (i = 0; i < ARRAY_SIZE(rights); i++)
				if ((want & BIT(i)) && !(have & BIT(i)))
					granted = false;
			KUNIT_EXPECT_EQ_MSG(test, ibmr_access_grants(subset(have), subset(want)),
					    granted ? IB_MR_WHY_OK : IB_MR_WHY_NO_RIGHT,
					    "want %#x, have %#x", subset(want), subset(have));
		}
}

/* What a region may have: every mix of rights, hints and the two that are no rights. */
static void access_flags(struct kunit *test)
{
	static const int extra[] = { MWB, IB_ZERO_BASED, IB_ACCESS_HUGETLB,
				     IB_ACCESS_RELAXED_ORDERING, IB_ACCESS_ON_DEMAND };
	enum ib_mr_reason want;
	int n, e, i, access;

	for (n = 0; n < SUBSETS; n++)
		for (e = 0; e < BIT(ARRAY_SIZE(extra)); e++) {
			access = subset(n);
			for (i = 0; i < ARRAY_SIZE(extra); i++)
				if (e & BIT(i))
					access |= extra[i];
			want = IB_MR_WHY_OK;
			if (access & IB_ACCESS_ON_DEMAND)
				want = IB_MR_WHY_NO_ON_DEMAND;
			if ((n & BIT(2) || n & BIT(3)) && !(n & BIT(0)))
				want = IB_MR_WHY_ACCESS_NO_LOCAL;
			KUNIT_EXPECT_EQ_MSG(test, ibmr_access_check(ibt_dev(test), access), want,
					    "access %#x", access);
		}
}

/* Each bit of the word alone: known, a hint, or refused. */
static void access_single_bits(struct kunit *test)
{
	const unsigned int known = LW | RR | MWB | IB_ZERO_BASED | IB_ACCESS_HUGETLB;
	enum ib_mr_reason want;
	unsigned int bit;

	for (bit = 0; bit < 32; bit++) {
		if (BIT(bit) & known || BIT(bit) & IB_ACCESS_OPTIONAL)
			want = IB_MR_WHY_OK;
		else if (BIT(bit) & (RW | RA))
			want = IB_MR_WHY_ACCESS_NO_LOCAL;
		else if (BIT(bit) & IB_ACCESS_ON_DEMAND)
			want = IB_MR_WHY_NO_ON_DEMAND;
		else
			want = IB_MR_WHY_BAD_ACCESS;
		KUNIT_EXPECT_EQ_MSG(test, ibmr_access_check(ibt_dev(test), BIT(bit)), want,
				    "bit %u", bit);
	}
}

/* iova and the first byte. */
static const struct {
	int access;
	u64 iova, first;
	enum ib_mr_reason why;
} iova_table[] = {
	{ 0, 0, 0, IB_MR_WHY_OK },
	{ 0, 0x1000, 0x5000, IB_MR_WHY_OK },
	{ 0, 0x1fff, 0x5fff, IB_MR_WHY_OK },
	{ 0, 0x1001, 0x5000, IB_MR_WHY_IOVA_ALIGN },
	{ 0, 0x1000, 0x5fff, IB_MR_WHY_IOVA_ALIGN },
	{ 0, 0x0800, 0x5000, IB_MR_WHY_IOVA_ALIGN },
	{ IB_ZERO_BASED, 0, 0x5000, IB_MR_WHY_OK },
	{ IB_ZERO_BASED, 0x1000, 0x5000, IB_MR_WHY_ZERO_BASED_IOVA },
	{ IB_ZERO_BASED, 1, 0x5001, IB_MR_WHY_ZERO_BASED_IOVA },
	{ IB_ZERO_BASED, 0, 0x5001, IB_MR_WHY_ZERO_BASED_ALIGN },
	{ IB_ZERO_BASED, 0, 0x5800, IB_MR_WHY_ZERO_BASED_ALIGN },
	{ IB_ZERO_BASED | LW | RR, 0, 0x5000, IB_MR_WHY_OK },
};

static void access_iova(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(iova_table); i++)
		KUNIT_EXPECT_EQ_MSG(test, ibmr_access_iova(iova_table[i].access,
							   iova_table[i].iova,
							   iova_table[i].first),
				    iova_table[i].why, "row %d", i);
}

#define TOP	(0 - (1ull << 32))	/* 4 GiB below 2^64 */

static const struct {
	u64 iova, length;
	enum ib_mr_reason why;
} range_table[] = {
	{ 0, 1, IB_MR_WHY_OK },
	{ 0, 0, IB_MR_WHY_EMPTY },
	{ U64_MAX, 0, IB_MR_WHY_EMPTY },
	{ 0, 1ull << 63, IB_MR_WHY_OK },
	{ U64_MAX, 1, IB_MR_WHY_IOVA_HIGH },
	{ U64_MAX, 2, IB_MR_WHY_WRAP },
	{ 1, U64_MAX, IB_MR_WHY_IOVA_HIGH },
	{ 2, U64_MAX, IB_MR_WHY_WRAP },
	{ U64_MAX, U64_MAX, IB_MR_WHY_WRAP },
	{ TOP - 0x1000, 0x1000, IB_MR_WHY_OK },
	{ TOP - 0x1000, 0x1001, IB_MR_WHY_IOVA_HIGH },
	{ TOP, 1, IB_MR_WHY_IOVA_HIGH },
	{ 0 - 0x1000ull, 0x1000, IB_MR_WHY_IOVA_HIGH },
	{ 0 - 0x1000ull, 0x1001, IB_MR_WHY_WRAP },
};

static void access_range(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(range_table); i++)
		KUNIT_EXPECT_EQ_MSG(test, ibmr_access_range(range_table[i].iova,
							    range_table[i].length),
				    range_table[i].why, "row %d", i);
}

/* Fault 1: no access reaches outside by wrapping round 2^64. */
static void access_fault1_bounds(struct kunit *test)
{
	static const u64 edge[] = {
		0, 1, 2, 0xfff, 0x1000, 0x1001, 0x10000, 0xffffffff, 1ull << 32, (1ull << 63) - 1,
		1ull << 63, TOP, 0 - 0x1000ull, 0 - 0xfffull, U64_MAX - 1, U64_MAX,
	};
	const int n = ARRAY_SIZE(edge);
	enum ib_mr_reason want, got;
	u64 end, last;
	int k;

	/* All quadruples: k in base n is the digits of region and access. */
	for (k = 0; k < n * n * n * n; k++) {
		const u64 start = edge[k % n], size = edge[k / n % n];
		const u64 iova = edge[k / n / n % n], length = edge[k / n / n / n];

		if (check_add_overflow(start, size, &end))
			continue;	/* no such region */
		want = IB_MR_WHY_OK;
		if (iova < start)
			want = IB_MR_WHY_BEFORE_START;
		else if (check_add_overflow(iova, length, &last) || last > end)
			want = IB_MR_WHY_PAST_END;
		got = ibmr_access_bounds(start, size, iova, length);
		KUNIT_EXPECT_EQ_MSG(test, got, want, "[%#llx + %#llx) in [%#llx + %#llx)", iova,
				    length, start, size);
	}
}

/* Every set of rights that can be had, MW_BIND with and without, against every operation. */
static void access_verdicts(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_KMALLOC, SZ_8K, 3);
	struct ibt_view v = { .buf = b, .off = 40, .len = 3 * SZ_1K, };
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ib_mr *mr;
	int n, mwb;

	v.iova = (uintptr_t)b->addr + v.off;
	for (n = 0; n < SUBSETS; n++)
		for (mwb = 0; mwb <= MWB; mwb += MWB) {
			v.access = subset(n) | mwb;
			if (v.access & (RW | RA) && !(v.access & LW))
				continue;
			mr = ibt_mr(test, ib_mr_reg_kernel(pd, ibt_ptr(b, v.off), v.len, v.access,
							   NULL));
			ibt_expect_view(p, mr, &v);
			KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
			if (test->status == KUNIT_FAILURE) {
				kunit_info(test, "the rights were %#x", v.access);
				return;
			}
		}
}

/* Hints change nothing: neither what is granted nor what is refused. */
static void access_hints(struct kunit *test)
{
	static const int hints[] = { IB_ACCESS_RELAXED_ORDERING, IB_ACCESS_HUGETLB,
				     IB_ACCESS_RELAXED_ORDERING | IB_ACCESS_HUGETLB };
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_KMALLOC, SZ_4K, 3);
	struct ibt_view v = { .buf = b, .len = b->size, .iova = (uintptr_t)b->addr };
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ib_mr *mr;
	int i;

	for (i = 0; i < ARRAY_SIZE(hints); i++) {
		v.access = RR | hints[i];
		mr = ibt_mr(test, ib_mr_reg_kernel(pd, b->addr, b->size, v.access, NULL));
		ibt_expect_view(p, mr, &v);
		KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	}
}

static struct kunit_case access_cases[] = {
	KUNIT_CASE(access_fault3_pairs),
	KUNIT_CASE(access_flags),
	KUNIT_CASE(access_single_bits),
	KUNIT_CASE(access_iova),
	KUNIT_CASE(access_range),
	KUNIT_CASE(access_fault1_bounds),
	KUNIT_CASE(access_verdicts),
	KUNIT_CASE(access_hints),
	{}
};

IBT_SUITE(access, access_cases);
