// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Scopes: everything goes, in the right order, whatever was put in when; and what refuses can be
 * released later.
 */
#include "helpers.h"

#define ALL	(LW | RR | RW | RA)

/* Objects that write down when they went. */
struct thing {
	char name;
	int refuse;	/* so many times */
	char *log;
};

static int thing_release(void *object)
{
	struct thing *t = object;
	size_t n = strlen(t->log);

	if (t->refuse) {
		t->refuse--;
		return -EBUSY;
	}
	t->log[n] = t->name;
	return 0;
}

static void scope_order(struct kunit *test)
{
	static const struct { char name; enum ib_mr_scope_rank rank; } in[] = {
		{ 'r', IB_MR_SCOPE_REGION }, { 'w', IB_MR_SCOPE_WINDOW }, { 'l', IB_MR_SCOPE_LAST },
		{ 'a', IB_MR_SCOPE_ARENA }, { 'p', IB_MR_SCOPE_FMR_POOL }, { 'R',
		IB_MR_SCOPE_REGION },
		{ 'f', IB_MR_SCOPE_FMR }, { 'W', IB_MR_SCOPE_WINDOW }, { 'P',
		IB_MR_SCOPE_FMR_POOL },
	};
	struct ib_mr_scope *scope = ib_mr_scope_create(ibt_pd(test));
	struct thing t[ARRAY_SIZE(in)];
	char log[16] = "";
	int i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(scope));
	for (i = 0; i < ARRAY_SIZE(in); i++) {
		t[i] = (struct thing){ .name = in[i].name, .log = log };
		KUNIT_EXPECT_EQ(test, ib_mr_scope_add(scope, in[i].rank, thing_release, &t[i]), 0);
	}
	KUNIT_EXPECT_EQ(test, ib_mr_scope_release(scope), 0);
	KUNIT_EXPECT_STREQ(test, log, "WwPpfaRrl");
}

/* What refuses stays, the others of its rank go, later ranks wait; the next release goes on. */
static void scope_refusal(struct kunit *test)
{
	struct ib_mr_scope *scope = ib_mr_scope_create(ibt_pd(test));
	char log[16] = "";
	struct thing w = { 'w', 2, log }, v = { 'v', 0, log }, r = { 'r', 0, log };
	struct thing f = { 'f', 1, log };

	KUNIT_ASSERT_FALSE(test, IS_ERR(scope));
	KUNIT_EXPECT_EQ(test, ib_mr_scope_add(scope, IB_MR_SCOPE_WINDOW, thing_release, &v), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_scope_add(scope, IB_MR_SCOPE_WINDOW, thing_release, &w), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_scope_add(scope, IB_MR_SCOPE_REGION, thing_release, &r), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_scope_add(scope, IB_MR_SCOPE_FMR, thing_release, &f), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_scope_release(scope), -EBUSY);
	KUNIT_EXPECT_STREQ(test, log, "v");
	KUNIT_EXPECT_EQ(test, ib_mr_scope_release(scope), -EBUSY);
	KUNIT_EXPECT_STREQ(test, log, "v");
	KUNIT_EXPECT_EQ(test, ib_mr_scope_release(scope), -EBUSY);
	KUNIT_EXPECT_STREQ(test, log, "vw");
	KUNIT_EXPECT_EQ(test, ib_mr_scope_release(scope), 0);
	KUNIT_EXPECT_STREQ(test, log, "vwfr");
}

/* A region that stays: the memory behind it is not given away while a peer writes there. */
static void scope_keeps_memory(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, SZ_4K, 1);
	struct ib_mr_scope *scope = ib_mr_scope_create(pd);
	char log[4] = "";
	struct thing memory = { 'm', 0, log }, holder = { 'h', 1, log };
	struct ib_mr *mr;

	KUNIT_ASSERT_FALSE(test, IS_ERR(scope));
	KUNIT_EXPECT_EQ(test, ib_mr_scope_add(scope, IB_MR_SCOPE_LAST, thing_release, &memory), 0);
	mr = ib_mr_scope_mr(scope, ib_mr_reg_kernel(pd, b->addr, SZ_4K, ALL, NULL));
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	KUNIT_EXPECT_EQ(test, ib_mr_scope_add(scope, IB_MR_SCOPE_WINDOW, thing_release, &holder),
			0);
	KUNIT_EXPECT_EQ(test, ib_mr_scope_release(scope), -EBUSY);
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_WRITE, p->req.buf, mr->rkey, mr->iova, 8),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_STREQ(test, log, "");
	KUNIT_EXPECT_EQ(test, ib_mr_scope_release(scope), 0);
	KUNIT_EXPECT_STREQ(test, log, "hm");
}

/*
 * A connection's things: regions of each kind and an arena with slices out. All is gone afterwards.
 */
static void scope_connection(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, SZ_16K, 1);
	int mrs = ibt_objects(test, RDMA_RESTRACK_MR), qps = ibt_objects(test, RDMA_RESTRACK_QP);
	struct ib_mr_scope *scope = ib_mr_scope_create(pd);
	struct ib_mr_arena *a;
	struct ib_mr_slice s;
	struct ib_mr *mr;
	u32 key;
	int i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(scope));
	for (i = 0; i < 5; i++)
		mr = ib_mr_scope_mr(scope, ib_mr_reg_kernel(pd, b->addr, SZ_16K, ALL, NULL));
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	a = ib_mr_scope_arena(scope, ib_mr_arena_create(pd, SZ_64K, ALL, 0));
	KUNIT_ASSERT_FALSE(test, IS_ERR(a));
	for (i = 0; i < 9; i++)
		KUNIT_EXPECT_EQ(test, ib_mr_arena_alloc(a, 100 * (i + 1), &s), 0);
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, mr->rkey, mr->iova, SZ_16K),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_objects(test, RDMA_RESTRACK_MR), mrs + 6);

	/* An error goes through, and is not kept. */
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_mr_scope_mr(scope, ERR_PTR(-EMSGSIZE))), (long)-EMSGSIZE);
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_mr_scope_arena(scope, ERR_PTR(-EIO))), (long)-EIO);
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_mr_scope_mr(scope, NULL)), (long)-EINVAL);

	/* One before its time, one taken out. */
	KUNIT_EXPECT_EQ(test, ib_mr_scope_drop(scope, mr), 0);
	ibt_expect_refused(test, SCOPE_UNKNOWN, ib_mr_scope_drop(scope, mr));
	mr = ib_mr_scope_mr(scope, ib_get_dma_mr(pd, LW));
	KUNIT_EXPECT_EQ(test, ib_mr_scope_forget(scope, mr), 0);
	ibt_expect_refused(test, SCOPE_UNKNOWN, ib_mr_scope_forget(scope, mr));
	KUNIT_EXPECT_EQ(test, ib_dereg_mr(mr), 0);

	key = s.rkey;
	KUNIT_EXPECT_EQ(test, ib_mr_scope_release(scope), 0);
	KUNIT_EXPECT_EQ(test, ibt_objects(test, RDMA_RESTRACK_MR), mrs);
	KUNIT_EXPECT_EQ(test, ibt_objects(test, RDMA_RESTRACK_QP), qps);
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_READ, p->req.buf, key, s.iova, 1),
			IB_WC_REM_ACCESS_ERR);
}

/* The registration queue pair is made once, for one object at a time. */
static void scope_holds(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, SZ_4K, 1);
	int qps = ibt_objects(test, RDMA_RESTRACK_QP), i;
	struct ib_mr_scope *scope = ib_mr_scope_create(pd);
	struct ib_mr *mr;

	KUNIT_ASSERT_FALSE(test, IS_ERR(scope));
	for (i = 0; i < 3; i++) {
		mr = ib_mr_scope_mr(scope, ib_mr_reg_kernel(pd, b->addr, SZ_4K, ALL, NULL));
		KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
		KUNIT_EXPECT_EQ(test, ib_mr_scope_drop(scope, mr), 0);
		KUNIT_EXPECT_EQ(test, ibt_objects(test, RDMA_RESTRACK_QP), qps + 1);
	}
	KUNIT_EXPECT_EQ(test, ib_mr_dealloc_pd(pd), -EBUSY);
	KUNIT_EXPECT_EQ(test, ib_mr_scope_release(scope), 0);
	KUNIT_EXPECT_EQ(test, ibt_objects(test, RDMA_RESTRACK_QP), qps);
}

static void scope_arguments(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ib_mr_scope *scope = ib_mr_scope_create(pd);
	char log[4] = "";
	struct thing t = { 't', 0, log };

	KUNIT_ASSERT_FALSE(test, IS_ERR(scope));
	ibt_expect_refused(test, NULL_ARG,
			   ib_mr_scope_add(scope, IB_MR_SCOPE_RANKS, thing_release, &t));
	ibt_expect_refused(test, NULL_ARG, ib_mr_scope_add(scope, IB_MR_SCOPE_LAST, NULL, &t));
	ibt_expect_refused(test, NULL_ARG,
			   ib_mr_scope_add(scope, IB_MR_SCOPE_LAST, thing_release, NULL));
	KUNIT_EXPECT_EQ(test, ib_mr_scope_release(scope), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_scope_release(NULL), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_scope_release(ERR_PTR(-ENOMEM)), 0);
	KUNIT_EXPECT_EQ(test, PTR_ERR(ib_mr_scope_create(NULL)), (long)-EINVAL);
	KUNIT_EXPECT_STREQ(test, log, "");
}

#ifdef DEFINE_FREE
static int freed_by_itself(struct ib_pd *pd, void *mem)
{
	struct ib_mr *mr __free(ib_dereg_mr) = ib_mr_reg_kernel(pd, mem, SZ_4K, ALL, NULL);
	struct ib_mr *none __free(ib_dereg_mr) = ERR_PTR(-ENOMEM);

	return IS_ERR(mr) || !IS_ERR(none);
}

/* struct ib_mr *mr __free(ib_dereg_mr). */
static void scope_free(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, SZ_4K, 1);
	int mrs = ibt_objects(test, RDMA_RESTRACK_MR);

	KUNIT_EXPECT_EQ(test, freed_by_itself(pd, b->addr), 0);
	KUNIT_EXPECT_EQ(test, ibt_objects(test, RDMA_RESTRACK_MR), mrs);
}
#endif

static struct kunit_case scope_cases[] = {
	KUNIT_CASE(scope_order),
	KUNIT_CASE(scope_refusal),
	KUNIT_CASE(scope_keeps_memory),
	KUNIT_CASE(scope_connection),
	KUNIT_CASE(scope_holds),
	KUNIT_CASE(scope_arguments),
#ifdef DEFINE_FREE
	KUNIT_CASE(scope_free),
#endif
	{}
};

IBT_SUITE(scope, scope_cases);
