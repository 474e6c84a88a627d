// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * FMR pools: the rules of the five classic calls, with RDMA as the judge. What is new in them
 * (byte-exact maps, kept keys) is in fmr_pool_more_test.c.
 */
#include <linux/delay.h>
#include "fmr_helpers.h"
#include "proc.h"

#define PG	PAGE_SIZE

static const struct ib_fmr_pool_param plain = {
	.max_pages_per_fmr = 16, .page_shift = PAGE_SHIFT, .access = FMR_ALL, .pool_size = 8,
	.dirty_watermark = 2,
};

static const struct ib_fmr_pool_param cached = {
	.max_pages_per_fmr = 16, .page_shift = PAGE_SHIFT, .access = FMR_ALL, .pool_size = 8,
	.dirty_watermark = 2, .cache = 1,
};

/* --- ib_create_fmr_pool() --- */

static const struct create_row {
	const char *desc;
	struct ib_fmr_pool_param param;
	enum ib_mr_reason why;
} create_table[] = {
	{ "no page", { 0, PAGE_SHIFT, FMR_ALL, 1 }, IB_MR_WHY_FMR_ARGS },
	{ "513 pages", { 513, PAGE_SHIFT, FMR_ALL, 1 }, IB_MR_WHY_FMR_ARGS },
	{ "small pages", { 1, PAGE_SHIFT - 1, FMR_ALL, 1 }, IB_MR_WHY_FMR_ARGS },
	{ "page_shift 31", { 1, 31, FMR_ALL, 1 }, IB_MR_WHY_FMR_ARGS },
	{ "a negative page_shift", { 1, -1, FMR_ALL, 1 }, IB_MR_WHY_FMR_ARGS },
	{ "no FMR", { 1, PAGE_SHIFT, FMR_ALL, 0 }, IB_MR_WHY_FMR_ARGS },
	{ "fewer than no FMRs", { 1, PAGE_SHIFT, FMR_ALL, -1 }, IB_MR_WHY_FMR_ARGS },
	{ "a right that there is not", { 1, PAGE_SHIFT, BIT(15), 1 }, IB_MR_WHY_BAD_ACCESS },
	{ "a cache and kept keys", { 1, PAGE_SHIFT, FMR_ALL, 1, .cache = 1, .key_maps = 2 },
	  IB_MR_WHY_FMR_ARGS },
	{ "as SRP makes it", { 512, PAGE_SHIFT, LW | RW | RR, 8, 2, .cache = 1 }, 0 },
	{ "as iSER makes it", { 129, 12, LW | RW | RR, 8, 4 }, 0 },
	{ "write only, no local write", { 1, PAGE_SHIFT, RW, 1 }, 0 },
	{ "a cache and one map a key", { 1, PAGE_SHIFT, RW, 1, .cache = 1, .key_maps = 1 }, 0 },
};

static void create_desc(const struct create_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(create, create_table, create_desc);

static void pool_create(struct kunit *test)
{
	const struct create_row *row = test->param_value;
	struct ib_fmr_pool_param param = row->param;
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_refusal *r = ibt_refusal(test);
	struct ib_fmr_pool *pool = ib_create_fmr_pool(pd, &param);

	if (row->why) {
		ibt_refusal_end(test, r, row->why, PTR_ERR_OR_ZERO(pool), row->desc);
		return;
	}
	KUNIT_ASSERT_FALSE(test, IS_ERR(pool));
	KUNIT_EXPECT_EQ(test, ib_dealloc_pd(pd), -EBUSY);
	ib_destroy_fmr_pool(pool);
}

static void pool_create_wrong(struct kunit *test)
{
	struct ib_fmr_pool_param param = plain;
	struct ib_pd *pd = ibt_pd(test);
	struct ib_fmr_pool *pool;

	ibt_expect_refused(test, NULL_ARG, PTR_ERR(ib_create_fmr_pool(pd, NULL)));
	ibt_expect_refused(test, NULL_ARG, PTR_ERR(ib_create_fmr_pool(NULL, &param)));
	ibt_expect_refused(test, USER_PD,
			   PTR_ERR(ib_create_fmr_pool(ibt_user_pd(test, pd), &param)));
	ibmr_mag_verdict(ibt_dev(test), IB_MR_WHY_NOT_QUALIFIED);
	pool = ib_create_fmr_pool(pd, &param);
	ibmr_mag_verdict(ibt_dev(test), IB_MR_WHY_OK);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(pool), -ENOSYS);
	ib_destroy_fmr_pool(NULL);
}

/* --- ib_fmr_pool_map_phys(), ib_fmr_pool_unmap() --- */

static const struct pool_map_row {
	const char *desc;
	int len;
	u64 iova;
	enum ib_mr_reason why;
} pool_map_table[] = {
	{ "no page", 0, 0, IB_MR_WHY_FMR_ARGS },
	{ "fewer than none", -1, 0, IB_MR_WHY_FMR_ARGS },
	{ "one too many", 17, 0, IB_MR_WHY_FMR_ARGS },
	{ "INT_MAX pages", INT_MAX, 0, IB_MR_WHY_FMR_ARGS },
	{ "iova in a page", 4, 512, IB_MR_WHY_IOVA_ALIGN },
	{ "iova at the end of everything", 4, -(u64)4 * PG, IB_MR_WHY_IOVA_HIGH },
	{ "past the end of everything", 4, -(u64)PG, IB_MR_WHY_WRAP },
};

static void pool_map_desc(const struct pool_map_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(pool_map, pool_map_table, pool_map_desc);

static void pool_map_refused(struct kunit *test)
{
	const struct pool_map_row *row = test->param_value;
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 17 * PG, 1);
	u64 *list = ibt_page_list(test, b);
	int i;

	for (i = 0; i < 2; i++) {
		struct ib_fmr_pool *pool = ibt_pool(test, pd, i ? cached : plain);
		struct ibt_refusal *r = ibt_refusal(test);
		struct ib_pool_fmr *fmr = ib_fmr_pool_map_phys(pool, list, row->len, row->iova);

		ibt_refusal_end(test, r, row->why, PTR_ERR_OR_ZERO(fmr), row->desc);
		KUNIT_EXPECT_EQ(test, ibt_mag(ibmr_pool_mag(pool)).in_use, 0U);
	}
}

/* All of them at iova 0; then -EAGAIN, which changes nothing; a release makes the next succeed. */
static void pool_fills(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 16 * PG, 1);
	struct ib_fmr_pool *pool = ibt_pool(test, pd, plain);
	u64 *list = ibt_page_list(test, b);
	struct ib_pool_fmr *fmr[8];
	int i, j;

	for (i = 0; i < 8; i++) {
		fmr[i] = ib_fmr_pool_map_phys(pool, list + i, 8, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[i]));
		KUNIT_EXPECT_EQ(test, fmr[i]->fmr->lkey, fmr[i]->fmr->rkey);
		KUNIT_EXPECT_PTR_EQ(test, fmr[i]->pool, pool);
		KUNIT_EXPECT_EQ(test, fmr[i]->ref_count, 1);
		KUNIT_EXPECT_EQ(test, fmr[i]->io_virtual_address, 0ULL);
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_NE(test, fmr[i]->fmr->rkey, fmr[j]->fmr->rkey);
	}
	ibt_expect_refused(test, POOL_EMPTY, PTR_ERR(ib_fmr_pool_map_phys(pool, list, 1, 0)));
	for (i = 0; i < 8; i++) {
		u32 key = fmr[i]->fmr->rkey;

		ibt_expect_key(p, key, 0, b, i * PG, 8 * PG);
		KUNIT_EXPECT_EQ(test, ib_fmr_pool_unmap(fmr[i]), 0);
		ibt_expect_shut(p, key, 0);	/* at once, not at the flush */
		fmr[i] = ib_fmr_pool_map_phys(pool, list, 16, PG);
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[i]));
		ibt_expect_key(p, fmr[i]->fmr->rkey, PG, b, 0, 16 * PG);
		ibt_expect_shut(p, key, PG);
	}
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, ib_fmr_pool_unmap(fmr[i]), 0);
	KUNIT_EXPECT_TRUE(test, ibt_mag_settles(ibmr_pool_mag(pool), 0, 3000));
}

static void pool_local_key(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PG, 1);
	struct ib_fmr_pool *pool = ibt_pool(test, pd, plain);
	struct ib_pool_fmr *fmr = ib_fmr_pool_map_phys(pool, ibt_page_list(test, b), 4, SZ_1M);
	u32 key;

	KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
	key = fmr->fmr->lkey;
	KUNIT_EXPECT_EQ(test, ibt_local(p, IBT_WRITE, key, SZ_1M, 4 * PG), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_diff_copy(b, 0, 4 * PG, p->req.buf), 4 * PG);
	KUNIT_EXPECT_EQ(test, ibt_local(p, IBT_READ, key, SZ_1M, 4 * PG), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_local(p, IBT_RECV, key, SZ_1M, 4 * PG), IB_WC_SUCCESS);
	p->add = 0;
	KUNIT_EXPECT_EQ(test, ibt_rdma(p, IBT_FETCH_ADD, p->req.buf, key, SZ_1M, 8),
			IB_WC_SUCCESS);
	ib_fmr_pool_unmap(fmr);
	KUNIT_EXPECT_TRUE(test, ibt_local_error(ibt_local(p, IBT_WRITE, key, SZ_1M, 8)));
}

/* The parameter fail_map stops the short way, too, whatever the address; at 0 it is gone. */
static void pool_fail_map(struct kunit *test)
{
	static const u64 iovas[] = { 0, SZ_1G, -BIT_ULL(33) };
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PG, 1);
	struct ib_fmr_pool *pool = ibt_pool(test, pd, plain);
	u64 *list = ibt_page_list(test, b);
	struct ib_pool_fmr *fmr;
	int i;

	for (i = 0; i < ARRAY_SIZE(iovas); i++) {
		ibt_param(test, "fail_map", 1);
		fmr = ib_fmr_pool_map_phys(pool, list, 4, iovas[i]);
		KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(fmr), -EAGAIN);
		ibt_param(test, "fail_map", 0);
		fmr = ib_fmr_pool_map_phys(pool, list, 4, iovas[i]);
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
		ibt_expect_key(p, fmr->fmr->rkey, iovas[i], b, 0, 4 * PG);
		ib_fmr_pool_unmap(fmr);
	}
}

/* --- cache --- */

/* A hit is the same iova, length and list, and nothing less; it is the same key. */
static void cache_hits(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PG, 1);
	struct ib_fmr_pool *pool = ibt_pool(test, pd, cached);
	u64 *list = ibt_page_list(test, b);
	u64 swapped[4] = { list[0], list[2], list[1], list[3] };
	u64 offset[4] = { list[0] + 8, list[1], list[2], list[3] };
	struct ib_pool_fmr *fmr[6];
	u32 key;
	int i, j;

	fmr[0] = ib_fmr_pool_map_phys(pool, list, 4, 0);
	fmr[1] = ib_fmr_pool_map_phys(pool, list, 4, PG);	/* another iova */
	fmr[2] = ib_fmr_pool_map_phys(pool, list, 3, 0);	/* another length */
	fmr[3] = ib_fmr_pool_map_phys(pool, swapped, 4, 0);	/* another order */
	fmr[4] = ib_fmr_pool_map_phys(pool, list + 1, 3, 0);	/* another start */
	fmr[5] = ib_fmr_pool_map_phys(pool, offset, 4, 0);	/* as classic: compared in full */
	for (i = 0; i < 6; i++) {
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[i]));
		KUNIT_EXPECT_EQ(test, fmr[i]->remap_count, 1);
		for (j = 0; j < i; j++) {
			KUNIT_EXPECT_PTR_NE(test, fmr[i], fmr[j]);
			KUNIT_EXPECT_NE(test, fmr[i]->fmr->rkey, fmr[j]->fmr->rkey);
		}
	}
	KUNIT_EXPECT_EQ(test, fmr[0]->page_list_len, 4);
	KUNIT_EXPECT_EQ(test, memcmp(fmr[0]->page_list, list, 4 * sizeof(*list)), 0);

	/* While it is in use: counted. */
	key = fmr[0]->fmr->rkey;
	for (i = 2; i < 5; i++) {
		KUNIT_EXPECT_PTR_EQ(test, ib_fmr_pool_map_phys(pool, list, 4, 0), fmr[0]);
		KUNIT_EXPECT_EQ(test, fmr[0]->ref_count, i);
	}
	KUNIT_EXPECT_EQ(test, fmr[0]->remap_count, 1);
	KUNIT_EXPECT_EQ(test, fmr[0]->fmr->rkey, key);
	for (i = 3; i >= 0; i--) {
		ibt_expect_key(p, key, 0, b, 0, 4 * PG);
		ib_fmr_pool_unmap(fmr[0]);
		KUNIT_EXPECT_EQ(test, fmr[0]->ref_count, i);
	}
	/* And while it is idle, where the key lives on. */
	ibt_expect_key(p, key, 0, b, 0, 4 * PG);
	KUNIT_EXPECT_PTR_EQ(test, ib_fmr_pool_map_phys(pool, list, 4, 0), fmr[0]);
	KUNIT_EXPECT_EQ(test, fmr[0]->fmr->rkey, key);
	KUNIT_EXPECT_EQ(test, fmr[0]->ref_count, 1);
	for (i = 0; i < 6; i++)
		ib_fmr_pool_unmap(fmr[i]);
}

/* The mapping that was idle longest makes room, and its key dies then. */
static void cache_is_lru(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 8 * PG, 1);
	struct ib_fmr_pool_param param = cached;
	u64 *list = ibt_page_list(test, b);
	struct ib_fmr_pool *pool;
	struct ib_pool_fmr *fmr;
	u32 key[8];
	int i;

	param.pool_size = 4;
	pool = ibt_pool(test, pd, param);
	for (i = 0; i < 4; i++) {
		fmr = ib_fmr_pool_map_phys(pool, list + i, 1, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
		key[i] = fmr->fmr->rkey;
		ib_fmr_pool_unmap(fmr);
	}
	/* 0 is used once more, so 1 is the oldest, then 2, 3, 0. */
	ib_fmr_pool_unmap(ib_fmr_pool_map_phys(pool, list, 1, 0));
	for (i = 4; i < 8; i++) {
		static const int victim[] = { 1, 2, 3, 0 };
		int j;

		fmr = ib_fmr_pool_map_phys(pool, list + i, 1, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
		KUNIT_EXPECT_EQ(test, fmr->remap_count, 2);
		ib_fmr_pool_unmap(fmr);
		for (j = 0; j < 4; j++)
			KUNIT_EXPECT_EQ_MSG(test, ibt_can_read(p, key[victim[j]], 0), j > i - 4,
					    "key %d after map %d", victim[j], i);
	}
}

/* One that is in use is never taken; when all are, it is -EAGAIN. */
static void cache_spares_users(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 16 * PG, 1);
	struct ib_fmr_pool *pool = ibt_pool(test, pd, cached);
	u64 *list = ibt_page_list(test, b);
	struct ib_pool_fmr *fmr[8];
	int i;

	for (i = 0; i < 8; i++)
		fmr[i] = ib_fmr_pool_map_phys(pool, list + i, 1, 0);
	ibt_expect_refused(test, POOL_EMPTY, PTR_ERR(ib_fmr_pool_map_phys(pool, list + 8, 1, 0)));
	/* A hit needs no free one. */
	KUNIT_EXPECT_PTR_EQ(test, ib_fmr_pool_map_phys(pool, list + 3, 1, 0), fmr[3]);
	ib_fmr_pool_unmap(fmr[3]);
	for (i = 0; i < 8; i++)
		ibt_expect_key(p, fmr[i]->fmr->rkey, 0, b, i * PG, PG);
	for (i = 0; i < 8; i++)
		ib_fmr_pool_unmap(fmr[i]);
}

static void cache_idle_time(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 2 * PG, 1);
	u64 *list = ibt_page_list(test, b);
	struct ib_pool_fmr *idle, *used;
	struct ib_fmr_pool *pool;
	u32 key;

	ibt_set(test, &ibmr_cache_idle_ms, 300);
	pool = ibt_pool(test, pd, cached);
	idle = ib_fmr_pool_map_phys(pool, list, 1, 0);
	used = ib_fmr_pool_map_phys(pool, list + 1, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(idle) || IS_ERR(used));
	key = idle->fmr->rkey;
	ib_fmr_pool_unmap(idle);
	msleep(1500);
	ibt_expect_shut(p, key, 0);
	ibt_expect_key(p, used->fmr->rkey, 0, b, PG, PG);
	ib_fmr_pool_unmap(used);
	/* Nor is there a hit on it. */
	idle = ib_fmr_pool_map_phys(pool, list, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(idle));
	KUNIT_EXPECT_NE(test, idle->fmr->rkey, key);
	ibt_expect_key(p, idle->fmr->rkey, 0, b, 0, PG);
	ib_fmr_pool_unmap(idle);
}

/* --- flush --- */

struct flushed {
	struct kunit *test;
	struct ib_fmr_pool *pool;
	atomic_t calls;
	atomic_t wrong;
};

/* Thread context, no lock held: it may sleep and use the pool. */
static void flush_fn(struct ib_fmr_pool *pool, void *arg)
{
	struct flushed *f = arg;

	if ((IS_ENABLED(CONFIG_PREEMPT_COUNT) && !preemptible()) || pool != f->pool)
		atomic_inc(&f->wrong);
	msleep(20);
	spin_lock_irq(&ibmr_pool_mag(pool)->lock);
	spin_unlock_irq(&ibmr_pool_mag(pool)->lock);
	atomic_inc(&f->calls);
}

static bool calls_reach(struct flushed *f, int n)
{
	int tries;

	for (tries = 0; tries < 200 && atomic_read(&f->calls) < n; tries++)
		msleep(20);
	return atomic_read(&f->calls) >= n;
}

/* Below the watermark nothing, at the watermark once, and once for an explicit flush. */
static void flush_function_called(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PG, 1);
	struct flushed f = { .test = test };
	struct ib_fmr_pool_param param = plain;
	u64 *list = ibt_page_list(test, b);
	int i, j;

	param.dirty_watermark = 3;
	param.flush_function = flush_fn;
	param.flush_arg = &f;
	f.pool = ibt_pool(test, pd, param);
	for (i = 1; i <= 4; i++) {
		for (j = 0; j < 3; j++) {
			ib_fmr_pool_unmap(ibt_pool_map(f.pool, list, 1, 0));
			if (j < 2) {
				msleep(20);
				KUNIT_EXPECT_EQ(test, atomic_read(&f.calls), i - 1);
			}
		}
		KUNIT_EXPECT_TRUE(test, calls_reach(&f, i));
	}
	for (i = 5; i <= 8; i++) {
		KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(f.pool), 0);
		KUNIT_EXPECT_TRUE(test, calls_reach(&f, i));
	}
	msleep(50);
	KUNIT_EXPECT_EQ(test, atomic_read(&f.calls), 8);
	KUNIT_EXPECT_EQ(test, atomic_read(&f.wrong), 0);
	ibt_pool_destroy(test, f.pool);
}

/* All that was released before it is dead, idle mappings of the cache too; users are spared. */
static void flush_kills_idle(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 8 * PG, 1);
	u64 *list = ibt_page_list(test, b);
	int i, round;

	for (round = 0; round < 2; round++) {
		struct ib_fmr_pool *pool = ibt_pool(test, pd, round ? cached : plain);
		struct ib_pool_fmr *fmr[8];
		struct ibt_mag m;
		u32 key[8];

		for (i = 0; i < 8; i++) {
			fmr[i] = ib_fmr_pool_map_phys(pool, list + i, 1, 0);
			KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[i]));
			key[i] = fmr[i]->fmr->rkey;
		}
		for (i = 0; i < 6; i++)
			ib_fmr_pool_unmap(fmr[i]);
		KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(pool), 0);
		/* Fenced, not waiting for it: they were exchanged for new ones. */
		m = ibt_mag(ibmr_pool_mag(pool));
		KUNIT_EXPECT_EQ(test, m.retired + m.quarantine + m.due, 0U);
		KUNIT_EXPECT_EQ(test, m.in_use, 2U);
		for (i = 0; i < 6; i++)
			KUNIT_EXPECT_FALSE(test, ibt_can_read(p, key[i], 0));
		for (; i < 8; i++) {
			ibt_expect_key(p, key[i], 0, b, i * PG, PG);
			ib_fmr_pool_unmap(fmr[i]);
		}
		/* Counted from the flush on. */
		fmr[0] = ibt_pool_map(pool, list, 1, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[0]));
		ib_fmr_pool_unmap(fmr[0]);
		KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(pool), 0);
	}
}

/* A signal does not interrupt it: Lustre asserts that it returns 0. */
static int flush_signalled(void *arg, int i)
{
	int n, err = 0;

	allow_signal(SIGKILL);
	for (n = 0; n < 20 && !err; n++) {
		send_sig(SIGKILL, current, 0);
		if (!signal_pending(current))
			return -ENOENT;
		err = ib_flush_fmr_pool(arg);
	}
	flush_signals(current);
	return err;
}

static void flush_not_interruptible(struct kunit *test)
{
	ibt_parallel(test, 2, flush_signalled, ibt_pool(test, ibt_pd(test), plain));
}

/* --- ib_destroy_fmr_pool() --- */

/* It warns, harms nothing, and the PD is busy until the last one is released. */
static void destroy_with_users(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 8 * PG, 1);
	u64 *list = ibt_page_list(test, b);
	int i, round;

	for (round = 0; round < 4; round++) {
		struct flushed f = { .test = test };
		struct ib_fmr_pool_param param = round & 1 ? cached : plain;
		struct ib_pool_fmr *fmr[4];
		u32 key[4];

		param.flush_function = round & 2 ? flush_fn : NULL;
		param.flush_arg = &f;
		f.pool = ib_create_fmr_pool(pd, &param);
		KUNIT_ASSERT_FALSE(test, IS_ERR(f.pool));
		for (i = 0; i < 4; i++) {
			fmr[i] = ib_fmr_pool_map_phys(f.pool, list + i, 1, 0);
			KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[i]));
			key[i] = fmr[i]->fmr->rkey;
		}
		ib_fmr_pool_unmap(fmr[3]);
		ib_destroy_fmr_pool(f.pool);
		KUNIT_EXPECT_FALSE(test, ibt_can_read(p, key[3], 0));
		for (i = 0; i < 3; i++) {
			KUNIT_EXPECT_EQ(test, ib_dealloc_pd(pd), -EBUSY);
			ibt_expect_key(p, key[i], 0, b, i * PG, PG);
			ib_fmr_pool_unmap(fmr[i]);
			KUNIT_EXPECT_FALSE(test, ibt_can_read(p, key[i], 0));
		}
		KUNIT_EXPECT_TRUE(test, ibt_pd_idle(pd));
		KUNIT_EXPECT_EQ(test, atomic_read(&f.wrong), 0);
	}
}

static struct kunit_case fmr_pool_cases[] = {
	KUNIT_CASE_PARAM(pool_create, create_gen_params),
	KUNIT_CASE(pool_create_wrong),
	KUNIT_CASE_PARAM(pool_map_refused, pool_map_gen_params),
	KUNIT_CASE(pool_fills),
	KUNIT_CASE(pool_local_key),
	KUNIT_CASE(pool_fail_map),
	KUNIT_CASE(cache_hits),
	KUNIT_CASE(cache_is_lru),
	KUNIT_CASE(cache_spares_users),
	KUNIT_CASE(cache_idle_time),
	KUNIT_CASE(flush_function_called),
	KUNIT_CASE(flush_kills_idle),
	KUNIT_CASE(flush_not_interruptible),
	KUNIT_CASE(destroy_with_users),
	{}
};

IBT_SUITE(fmr_pool, fmr_pool_cases);
