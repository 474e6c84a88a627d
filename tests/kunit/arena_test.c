// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Arenas: slices that do not overlap, reach what they should, and cannot be given back wrongly.
 */
#include <linux/irq_work.h>
#include <linux/random.h>
#include "helpers.h"

#define ALL	(LW | RR | RW | RA)

static void arena_free_now(struct kunit *test, void *arg)
{
	KUNIT_EXPECT_EQ(test, ib_mr_arena_destroy(arg), 0);
}

static struct ib_mr_arena *arena(struct kunit *test, struct ib_pd *pd, size_t size, int access,
				 unsigned int order)
{
	struct ib_mr_arena *a = ib_mr_arena_create(pd, size, access, order);

	KUNIT_ASSERT_EQ(test, PTR_ERR_OR_ZERO(a), 0);
	ibt_defer(test, arena_free_now, a);
	return a;
}

/* One page's worth and many pages (vmalloc): every slice can be reached by a peer. */
static void arena_rdma(struct kunit *test)
{
	static const size_t sizes[] = { 1, SZ_64K, SZ_8M };
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ib_mr_slice s[20];
	struct ib_mr_arena *a;
	int i, j, k;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		a = arena(test, pd, sizes[i], ALL, 0);
		for (j = 0; j < ARRAY_SIZE(s); j++) {
			KUNIT_ASSERT_EQ(test, ib_mr_arena_alloc(a, 100 + j, &s[j]), 0);
			KUNIT_EXPECT_EQ(test, s[j].size, (size_t)100 + j);
			memset(s[j].va, j, s[j].size);
		}
		for (j = 0; j < ARRAY_SIZE(s); j++) {
			memset(p->req.buf, 0xee, 200);
			KUNIT_EXPECT_EQ(test,
					ibt_rdma(p, IBT_READ, p->req.buf, s[j].rkey, s[j].iova,
						 s[j].size), IB_WC_SUCCESS);
			for (k = 0; k < 100 + j && p->req.buf[k] == j; k++)
				;
			KUNIT_EXPECT_EQ(test, k, 100 + j);
			p->req.buf[0] = 0x99;
			KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_WRITE, p->req.buf, s[j].rkey,
						       s[j].iova + 99, 1), IB_WC_SUCCESS);
			KUNIT_EXPECT_EQ(test, ((u8 *)s[j].va)[99], 0x99);
			KUNIT_EXPECT_EQ(test, ibt_local(p, IBT_SEND, s[j].lkey, s[j].iova, 100),
					IB_WC_SUCCESS);
		}
		for (j = 0; j < ARRAY_SIZE(s); j++)
			KUNIT_EXPECT_EQ(test, ib_mr_arena_free(a, &s[j]), 0);
		/* The arena's own ends. */
		KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, ib_mr_arena_mr(a)->rkey,
					       ib_mr_arena_mr(a)->iova - 1, 1),
				IB_WC_REM_ACCESS_ERR);
	}
}

/* Thousands of small ones: no two overlap, one registration in all, all of the room is used. */
static void arena_thousands(struct kunit *test)
{
	enum { N = SZ_256K / 64 };
	struct ib_pd *pd = ibt_pd(test);
	struct ib_mr_arena *a = arena(test, pd, SZ_256K, LW, 0);
	struct ib_mr_slice *s = kunit_kcalloc(test, N, sizeof(*s), GFP_KERNEL), one;
	struct ib_mr_arena_usage use;
	int i, wrong = 0;

	KUNIT_EXPECT_EQ(test, ibt_objects(test, RDMA_RESTRACK_MR),
			ibt_of(test)->objects[RDMA_RESTRACK_MR] + 1);
	for (i = 0; i < N; i++) {
		KUNIT_ASSERT_EQ(test, ib_mr_arena_alloc(a, 1 + i % 64, &s[i]), 0);
		*(u64 *)s[i].va = i;
		KUNIT_EXPECT_EQ(test, s[i].rkey, (u32)0);
	}
	ibt_expect_refused(test, ARENA_FULL, ib_mr_arena_alloc(a, 1, &one));
	for (i = 0; i < N; i++)
		wrong += *(u64 *)s[i].va != i || (uintptr_t)s[i].va % 64;
	KUNIT_EXPECT_EQ(test, wrong, 0);
	ib_mr_arena_usage(a, &use);
	KUNIT_EXPECT_EQ(test, use.used, (size_t)SZ_256K);
	KUNIT_EXPECT_EQ(test, use.size, (size_t)SZ_256K);
	KUNIT_EXPECT_EQ(test, use.slices, (unsigned long)N);
	KUNIT_EXPECT_EQ(test, use.failed, 1ul);

	ibt_expect_refused(test, ARENA_BUSY, ib_mr_arena_destroy(a));
	for (i = 0; i < N; i += 2)
		KUNIT_EXPECT_EQ(test, ib_mr_arena_free(a, &s[i]), 0);
	/* Holes of one granule: nothing larger fits. */
	ibt_expect_refused(test, ARENA_FULL, ib_mr_arena_alloc(a, 65, &one));
	for (i = 1; i < N; i += 2)
		KUNIT_EXPECT_EQ(test, ib_mr_arena_free(a, &s[i]), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_arena_alloc(a, SZ_256K, &one), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_arena_free(a, &one), 0);
	ib_mr_arena_usage(a, &use);
	KUNIT_EXPECT_EQ(test, use.used, (size_t)0);
	KUNIT_EXPECT_EQ(test, use.peak, (size_t)SZ_256K);
	KUNIT_EXPECT_EQ(test, use.slices, 0ul);
}

static void arena_aligned(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ib_mr_arena *a = arena(test, pd, SZ_1M, ALL, 4);
	struct ib_mr_slice odd, s;
	size_t align;

	KUNIT_EXPECT_EQ(test, ib_mr_arena_alloc(a, 3, &odd), 0);
	for (align = 1; align <= SZ_64K; align *= 2) {
		KUNIT_EXPECT_EQ(test, ib_mr_arena_alloc_aligned(a, 100, align, &s), 0);
		KUNIT_EXPECT_EQ_MSG(test, (size_t)s.va & (align - 1), (size_t)0, "%zu", align);
		KUNIT_EXPECT_EQ(test, ib_mr_arena_free(a, &s), 0);
	}
	ibt_expect_refused(test, ARENA_ARGS, ib_mr_arena_alloc_aligned(a, 1, 0, &s));
	ibt_expect_refused(test, ARENA_ARGS, ib_mr_arena_alloc_aligned(a, 1, 3, &s));
	ibt_expect_refused(test, ARENA_ARGS, ib_mr_arena_alloc(a, 0, &s));
	ibt_expect_refused(test, ARENA_FULL, ib_mr_arena_alloc(a, SZ_1M + 1, &s));
	ibt_expect_refused(test, ARENA_FULL, ib_mr_arena_alloc(a, SIZE_MAX, &s));
	KUNIT_EXPECT_EQ(test, ib_mr_arena_free(a, &odd), 0);
}

/* What is given back wrongly is refused, and nothing breaks. */
static void arena_misuse(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ib_mr_arena *a = arena(test, pd, SZ_16K, ALL, 0);
	struct ib_mr_arena *b = arena(test, pd, SZ_16K, ALL, 0);
	static const size_t sizes[] = {
		0, 1, 64, 299, 301, 320, 321, SZ_16K, SZ_16K + 1, (1ULL << 32) + 300, SIZE_MAX,
	};
	struct ib_mr_slice s, copy, bad;
	struct ib_mr_arena_usage use;
	int i;

	KUNIT_ASSERT_EQ(test, ib_mr_arena_alloc(a, 300, &s), 0);
	copy = s;
	bad = s;
	bad.va += 64;
	ibt_expect_refused(test, ARENA_SLICE, ib_mr_arena_free(a, &bad));
	bad.va -= 63;
	ibt_expect_refused(test, ARENA_SLICE, ib_mr_arena_free(a, &bad));
	bad.va = NULL;
	ibt_expect_refused(test, ARENA_SLICE, ib_mr_arena_free(a, &bad));
	ibt_expect_refused(test, ARENA_SLICE, ib_mr_arena_free(b, &s));
	/* A size that is not what was asked for, to the byte. */
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		bad = s;
		bad.size = sizes[i];
		ibt_expect_refused(test, ARENA_SLICE, ib_mr_arena_free(a, &bad));
		KUNIT_EXPECT_PTR_EQ(test, bad.va, s.va);
	}
	KUNIT_EXPECT_EQ(test, ib_mr_arena_free(a, &s), 0);
	KUNIT_EXPECT_NULL(test, s.va);
	ibt_expect_refused(test, ARENA_SLICE, ib_mr_arena_free(a, &s));
	ibt_expect_refused(test, ARENA_SLICE, ib_mr_arena_free(a, &copy));
	ib_mr_arena_usage(a, &use);
	KUNIT_EXPECT_EQ(test, use.used, (size_t)0);

	ibt_expect_refused_mr(test, EMPTY, (struct ib_mr *)ib_mr_arena_create(pd, 0, ALL, 0));
	ibt_expect_refused_mr(test, TOO_LONG,
			      (struct ib_mr *)ib_mr_arena_create(pd, SIZE_MAX, ALL, 0));
	ibt_expect_refused_mr(test, TOO_LONG,
			      (struct ib_mr *)ib_mr_arena_create(pd, SZ_2G, ALL, 0));
	ibt_expect_refused_mr(test, ARENA_ARGS,
			      (struct ib_mr *)ib_mr_arena_create(pd, SZ_4K, ALL, 13));
	ibt_expect_refused_mr(test, ACCESS_NO_LOCAL,
			      (struct ib_mr *)ib_mr_arena_create(pd, SZ_4K, RW, 0));
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_mr_arena_create(NULL, SZ_4K, ALL, 0)), (long)-EINVAL);
	KUNIT_EXPECT_EQ(test, ib_mr_arena_destroy(NULL), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_arena_destroy(ERR_PTR(-ENOMEM)), 0);
}

/* A copy of a slice that was freed frees nothing, whoever has its place, and whatever its size. */
static void arena_stale_copy(struct kunit *test)
{
	static const size_t sizes[] = { 64, 1, 63, 65, SZ_4K };
	struct ib_mr_arena *a = arena(test, ibt_pd(test), SZ_4K, ALL, 0);
	struct ib_mr_slice s, copy, other;
	struct ib_mr_arena_usage use;
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		KUNIT_ASSERT_EQ(test, ib_mr_arena_alloc(a, 64, &s), 0);
		copy = s;
		KUNIT_EXPECT_EQ(test, ib_mr_arena_free(a, &s), 0);
		KUNIT_ASSERT_EQ(test, ib_mr_arena_alloc(a, sizes[i], &other), 0);
		copy.va = other.va;
		copy.iova = other.iova;
		ibt_expect_refused(test, ARENA_SLICE, ib_mr_arena_free(a, &copy));
		copy.size = other.size;
		ibt_expect_refused(test, ARENA_SLICE, ib_mr_arena_free(a, &copy));
		ib_mr_arena_usage(a, &use);
		KUNIT_EXPECT_EQ(test, use.slices, 1ul);
		KUNIT_EXPECT_EQ(test, ib_mr_arena_free(a, &other), 0);
	}
}

/* Every hole is found, wherever the search began. */
static void arena_wraps(struct kunit *test)
{
	enum { N = SZ_4K / 64 };
	struct ib_mr_arena *a = arena(test, ibt_pd(test), SZ_4K, LW, 0);
	struct ib_mr_slice *s = kunit_kcalloc(test, N, sizeof(*s), GFP_KERNEL), one;
	void *place;
	int i;

	for (i = 0; i < N; i++)
		KUNIT_ASSERT_EQ(test, ib_mr_arena_alloc(a, 64, &s[i]), 0);
	/* Two holes: the lower one first, so that the search begins at the upper. */
	place = s[3].va;
	KUNIT_EXPECT_EQ(test, ib_mr_arena_free(a, &s[3]), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_arena_free(a, &s[40]), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_arena_alloc(a, 64, &s[40]), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_arena_alloc(a, 64, &s[3]), 0);
	KUNIT_EXPECT_PTR_EQ(test, s[3].va, place);
	ibt_expect_refused(test, ARENA_FULL, ib_mr_arena_alloc(a, 1, &one));
	/* One of two granules, to be found from its middle on. */
	KUNIT_EXPECT_EQ(test, ib_mr_arena_free(a, &s[20]), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_arena_free(a, &s[21]), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_arena_alloc(a, 128, &one), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_arena_free(a, &one), 0);
	for (i = 0; i < N; i++)
		if (s[i].va)
			KUNIT_EXPECT_EQ(test, ib_mr_arena_free(a, &s[i]), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_arena_alloc_aligned(a, SZ_4K, SZ_4K, &one), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_arena_free(a, &one), 0);
}

/* From threads, and from a hard interrupt in between. */
struct stress {
	struct ib_mr_arena *a;
	struct irq_work work;
	atomic_t bad;
};

static void stress_irq(struct irq_work *work)
{
	struct stress *st = container_of(work, struct stress, work);
	struct ib_mr_slice s;

	if (!ib_mr_arena_alloc(st->a, 200, &s) && ib_mr_arena_free(st->a, &s))
		atomic_inc(&st->bad);
}

static int stress_one(void *arg, int id)
{
	struct stress *st = arg;
	struct ib_mr_slice s[16] = {};
	int n, i, j, bad = 0;

	for (n = 0; n < 3000; n++) {
		i = get_random_u32() % ARRAY_SIZE(s);
		if (!s[i].va) {
			if (!ib_mr_arena_alloc(st->a, 1 + get_random_u32() % 900, &s[i]))
				memset(s[i].va, id + 1, s[i].size);
			continue;
		}
		for (j = 0; j < s[i].size; j++)
			bad += ((u8 *)s[i].va)[j] != id + 1;
		bad += !!ib_mr_arena_free(st->a, &s[i]);
		if (!(n % 16))
			irq_work_queue(&st->work);
		cond_resched();
	}
	for (i = 0; i < ARRAY_SIZE(s); i++)
		if (s[i].va)
			bad += !!ib_mr_arena_free(st->a, &s[i]);
	return bad;
}

static void arena_stress(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct stress *st = kunit_kzalloc(test, sizeof(*st), GFP_KERNEL);
	struct ib_mr_arena_usage use;

	st->a = arena(test, pd, SZ_32K, ALL, 0);
	init_irq_work(&st->work, stress_irq);
	ibt_parallel(test, 4, stress_one, st);
	irq_work_sync(&st->work);
	KUNIT_EXPECT_EQ(test, atomic_read(&st->bad), 0);
	ib_mr_arena_usage(st->a, &use);
	KUNIT_EXPECT_EQ(test, use.used, (size_t)0);
	KUNIT_EXPECT_EQ(test, use.slices, 0ul);
}

static struct kunit_case arena_cases[] = {
	KUNIT_CASE(arena_rdma),
	KUNIT_CASE(arena_thousands),
	KUNIT_CASE(arena_aligned),
	KUNIT_CASE(arena_misuse),
	KUNIT_CASE(arena_stale_copy),
	KUNIT_CASE(arena_wraps),
	KUNIT_CASE(arena_stress),
	{}
};

IBT_SUITE(arena, arena_cases);
