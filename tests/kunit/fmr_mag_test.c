// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Magazines: re-keyed and replaced, grown and shrunk, variants that run out, keys that do not come
 * again. Seen through FMRs and pools, and through the magazine's counters.
 */
#include <linux/delay.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>
#include "fmr_helpers.h"

#define PG	PAGE_SIZE

/* Keys as they were handed out. */
struct keys {
	u32 *key;
	unsigned int n, max;
};

static void free_keys(struct kunit *test, void *arg)
{
	vfree(arg);
}

static struct keys keys_make(struct kunit *test, unsigned int max)
{
	struct keys k = { .key = vmalloc(array_size(max, sizeof(u32))), .max = max };

	KUNIT_ASSERT_NOT_NULL(test, k.key);
	ibt_defer(test, free_keys, k.key);
	return k;
}

/* The least distance between two maps of one MR, that is, of one index. */
static unsigned int index_distance(const struct keys *k)
{
	unsigned int best = k->n, i, j;

	for (i = 0; i < k->n; i++)
		for (j = i + 1; j < k->n && j - i < best; j++)
			if (k->key[i] >> 8 == k->key[j] >> 8)
				best = j - i;
	return best;
}

static int compare_keys(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/* Sorts them: the order is lost. */
static unsigned int count_twice(struct keys *k)
{
	unsigned int i, twice = 0;

	sort(k->key, k->n, sizeof(u32), compare_keys, NULL);
	for (i = 1; i < k->n; i++)
		twice += k->key[i] == k->key[i - 1];
	return twice;
}

static unsigned int count_indices(const struct keys *sorted)
{
	unsigned int i, n = 1;

	for (i = 1; i < sorted->n; i++)
		n += sorted->key[i] >> 8 != sorted->key[i - 1] >> 8;
	return n;
}

/* Map and release one pool's only FMR, over and over. */
static void churn(struct kunit *test, struct ib_fmr_pool *pool, u64 *list, struct keys *k,
		  unsigned int rounds)
{
	unsigned int i;

	for (i = 0; i < rounds && k->n < k->max; i++) {
		struct ib_pool_fmr *fmr = ibt_pool_map(pool, list, 1, 0);

		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
		k->key[k->n++] = fmr->fmr->rkey;
		ib_fmr_pool_unmap(fmr);
		if (i % 64 == 63)
			cond_resched();
	}
}

/* No key comes twice as long as its MR lives; when its 256 variants are spent it is replaced. */
static void mag_variants_run_out(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PG, 1);
	struct keys k = keys_make(test, 60000);
	struct ib_fmr_pool *pool;
	struct ibt_mag m;
	u32 last;

	ibt_set(test, &ibmr_stock_limit, 4);
	pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){
		.pool_size = 1, .max_pages_per_fmr = 1, .rekey_at_once = 1 });
	while (k.n < k.max && ibt_mag(ibmr_pool_mag(pool)).replaced < 3)
		churn(test, pool, ibt_page_list(test, b), &k, 500);
	m = ibt_mag(ibmr_pool_mag(pool));
	KUNIT_EXPECT_GE(test, m.replaced, 3ULL);
	KUNIT_EXPECT_GE(test, m.rekeyed, 255ULL);
	last = k.key[k.n - 1];
	KUNIT_EXPECT_FALSE(test, ibt_can_read(p, last, 0));
	kunit_info(test, "%u maps, %llu re-keyed, %llu replaced, an MR again after %u maps\n",
		   k.n, m.rekeyed, m.replaced, index_distance(&k));
	KUNIT_EXPECT_EQ_MSG(test, count_twice(&k), 0U, "keys were handed out twice");
	KUNIT_EXPECT_GE(test, count_indices(&k), 4U);
	KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(ibt_dev(test)));
}

/* With the quarantine: how soon an MR, and a key, comes again. */
static void mag_reuse_distance(struct kunit *test)
{
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PG, 1);
	struct keys k = keys_make(test, 3000);
	struct ib_fmr_pool *pool = ibt_pool(test, ibt_pd(test), (struct ib_fmr_pool_param){
		.pool_size = 64 });
	unsigned int distance;
	struct ibt_mag m;

	churn(test, pool, ibt_page_list(test, b), &k, 3000);
	m = ibt_mag(ibmr_pool_mag(pool));
	distance = index_distance(&k);
	kunit_info(test, "an MR came again after %u maps at the soonest, a key never in %u; "
		   "%llu re-keyed, %llu replaced, %llu times empty, %u MRs\n", distance, k.n,
		   m.rekeyed, m.replaced, m.empties, m.created);
	KUNIT_EXPECT_GE(test, distance, 8U);
	KUNIT_EXPECT_EQ(test, count_twice(&k), 0U);
}

static void mag_force_replace(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PG, 1);
	struct keys k = keys_make(test, 300);
	int others = ibt_objects(test, RDMA_RESTRACK_MR), i;
	unsigned int mrs = 0;
	struct ib_fmr_pool *pool;
	struct ibt_mag m;

	ibt_force_replace(test);
	pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){});
	churn(test, pool, ibt_page_list(test, b), &k, 300);
	KUNIT_EXPECT_TRUE(test, ibt_mag_settles(ibmr_pool_mag(pool), 0, 5000));
	m = ibt_mag(ibmr_pool_mag(pool));
	KUNIT_EXPECT_EQ(test, m.rekeyed, 0ULL);
	/* The others were taken from what the stock grew by meanwhile. */
	KUNIT_EXPECT_GT(test, m.replaced, 100ULL);
	for (i = 0; i < 300; i += 50)
		KUNIT_EXPECT_FALSE(test, ibt_can_read(p, k.key[i], 0));
	KUNIT_EXPECT_EQ(test, count_twice(&k), 0U);
	KUNIT_EXPECT_EQ(test, count_indices(&k), 300U);
	/* The worker may be at it still: it counts after the deed. */
	for (i = 0; i < 100; i++) {
		m = ibt_mag(ibmr_pool_mag(pool));
		mrs = ibt_objects(test, RDMA_RESTRACK_MR) - others;
		if (mrs == m.created)
			break;
		msleep(20);
	}
	KUNIT_EXPECT_EQ(test, mrs, m.created);
}

/* Stock follows demand, up and down, and never below what was promised. */
static void mag_grows_and_shrinks(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PG, 1);
	struct ib_fmr *fmr = ibt_fmr(test, pd, FMR_ALL, 1, 32767);
	struct ibmr_mag *mag = ibmr_fmr_mag(fmr);
	u64 *list = ibt_page_list(test, b);
	struct ibt_mag idle = ibt_mag(mag), busy, m;
	unsigned long end = jiffies + 2 * HZ;
	unsigned int maps = 0, again = 0, i;

	KUNIT_EXPECT_GE(test, idle.stock, 1U);
	while (time_before(jiffies, end)) {
		if (ib_map_phys_fmr(fmr, list, 1, 0) == -EAGAIN) {
			again++;
			usleep_range(5000, 6000);
		} else {
			maps++;
		}
		if (maps % 4 == 0)
			usleep_range(1000, 2000);
	}
	busy = ibt_mag(mag);
	KUNIT_EXPECT_GT(test, busy.created, idle.created);
	KUNIT_EXPECT_GT(test, busy.target, idle.target);
	/* A look is every 5 s, the second one sees no demand. */
	for (i = 0; i < 300 && ibt_mag(mag).created > idle.created; i++)
		msleep(100);
	m = ibt_mag(mag);
	KUNIT_EXPECT_LE(test, m.created, idle.created);
	KUNIT_EXPECT_GE(test, m.created, m.promised);
	KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(ibt_dev(test)));
	kunit_info(test, "%u MRs idle, %u after %u maps (%u times -EAGAIN), %u again after %u s\n",
		   idle.created, busy.created, maps, again, m.created, i / 10);
	KUNIT_EXPECT_EQ(test, ib_map_phys_fmr(fmr, list, 1, 0), 0);
}

/* What was promised is there: as many as there are FMRs can be mapped at once, at any time. */
static void mag_keeps_promises(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PG, 1);
	u64 *list = ibt_page_list(test, b);
	struct ib_fmr *fmr[60];
	LIST_HEAD(all);
	int i, round;

	ibt_set(test, &ibmr_stock_limit, 1);
	for (i = 0; i < ARRAY_SIZE(fmr); i++)
		fmr[i] = ibt_fmr(test, pd, RR, 3, 1);
	for (round = 0; round < 5; round++) {
		for (i = 0; i < ARRAY_SIZE(fmr); i++) {
			KUNIT_ASSERT_EQ(test, ib_map_phys_fmr(fmr[i], list, 1, 0), 0);
			list_add(&fmr[i]->list, &all);
		}
		KUNIT_EXPECT_EQ(test, ib_unmap_fmr(&all), 0);
		for (i = 0; i < ARRAY_SIZE(fmr); i++)
			list_del_init(&fmr[i]->list);
	}
	/* FMRs of one kind share a magazine, and free it with the last of them. */
	KUNIT_EXPECT_PTR_EQ(test, ibmr_fmr_mag(fmr[0]), ibmr_fmr_mag(fmr[59]));
	KUNIT_EXPECT_EQ(test, ibt_mag(ibmr_fmr_mag(fmr[0])).promised, 60U);
}

static struct kunit_case fmr_mag_cases[] = {
	KUNIT_CASE(mag_variants_run_out),
	KUNIT_CASE(mag_reuse_distance),
	KUNIT_CASE(mag_force_replace),
	KUNIT_CASE(mag_grows_and_shrinks),
	KUNIT_CASE(mag_keeps_promises),
	{}
};

IBT_SUITE(fmr_mag, fmr_mag_cases);
