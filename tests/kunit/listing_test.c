// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What debugfs lists is what there is: each file against the objects that a case made, cell by
 * cell; and under load, where objects come and go while it is read in pieces: every line is whole,
 * and what stays is there just once.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include "fmr_helpers.h"
#include "fmr/pool.h"
#include "proc.h"
#include "table.h"
#include "window.h"

#define PG	PAGE_SIZE
#define PIECE	333

static const char *row_of(struct ibt_table *t, const char *column, u32 key)
{
	char text[16];

	snprintf(text, sizeof(text), "%#010x", key);
	return ibt_row(t, column, text, NULL);
}

static void read_table(struct kunit *test, struct ibt_table *t, const char *path)
{
	KUNIT_ASSERT_TRUE_MSG(test, ibt_table_read(t, path, PIECE), "%s: %s", path, t->text);
}

static void listing_regions(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test), *other = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 5 * PG, 1);
	struct ibt_table t;
	struct ib_mr *mr, *dma, *local;
	struct scatterlist *sgl;
	u64 iova = 0x5500000000ULL;
	const char *row;
	int nents;
	u32 lkey;

	ibt_table(test, &t);
	read_table(test, &t, IBT_DEBUGFS "regions");
	KUNIT_EXPECT_EQ(test, t.rows, 0u);

	sgl = ibt_sg(test, b, 0, 5 * PG, &nents);
	mr = ibt_mr(test, ib_mr_reg_sg(pd, sgl, nents, LW | RR | MWB, &iova));
	local = ibt_mr(test, ib_mr_reg_sg(other, sgl, 1, 0, NULL));
	dma = ibt_mr(test, ib_get_dma_mr(pd, LW));
	read_table(test, &t, IBT_DEBUGFS "regions");
	KUNIT_EXPECT_EQ_MSG(test, t.rows, 3u, "%s", t.text);

	row = row_of(&t, "lkey", mr->lkey);
	KUNIT_ASSERT_NOT_NULL_MSG(test, row, "%s", t.text);
	ibt_expect_cell(test, &t, row, "rkey", "%#010x", mr->rkey);
	ibt_expect_cell(test, &t, row, "iova", "%#018llx", iova);
	ibt_expect_cell(test, &t, row, "length_bytes", "%lu", 5 * PG);
	ibt_expect_cell(test, &t, row, "runs", "5");
	ibt_expect_cell(test, &t, row, "blocks", "5");
	ibt_expect_cell(test, &t, row, "pinned_pages", "0");
	ibt_expect_cell(test, &t, row, "windows", "0");
	ibt_expect_cell(test, &t, row, "pd", "%u", pd->res.id);
	ibt_expect_cell(test, &t, row, "state", "live");
	ibt_expect_cell(test, &t, row, "access", "LOCAL_WRITE|REMOTE_READ|MW_BIND");

	row = row_of(&t, "lkey", local->lkey);
	ibt_expect_cell(test, &t, row, "rkey", "%#010x", 0);
	ibt_expect_cell(test, &t, row, "pd", "%u", other->res.id);
	ibt_expect_cell(test, &t, row, "access", "none");
	row = row_of(&t, "lkey", dma->lkey);
	ibt_expect_cell(test, &t, row, "length_bytes", "%llu", U64_MAX);
	ibt_expect_cell(test, &t, row, "runs", "0");

	KUNIT_EXPECT_EQ(test, ib_mr_invalidated(pd, mr->lkey), 0);
	read_table(test, &t, IBT_DEBUGFS "regions");
	ibt_expect_cell(test, &t, row_of(&t, "lkey", mr->lkey), "state", "invalidated");
	lkey = mr->lkey;
	KUNIT_EXPECT_EQ(test, ib_rereg_phys_mr(mr, IB_MR_REREG_PD, other, NULL, 0, 0, NULL), 0);
	read_table(test, &t, IBT_DEBUGFS "regions");
	KUNIT_EXPECT_EQ(test, t.rows, 3u);
	KUNIT_EXPECT_NULL(test, row_of(&t, "lkey", lkey));
	row = row_of(&t, "lkey", mr->lkey);
	ibt_expect_cell(test, &t, row, "state", "live");
	ibt_expect_cell(test, &t, row, "pd", "%u", other->res.id);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	read_table(test, &t, IBT_DEBUGFS "regions");
	KUNIT_EXPECT_EQ(test, t.rows, 2u);
}

static const char *pool_row(struct kunit *test, struct ibt_table *t, unsigned int id)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", id);
	read_table(test, t, IBT_DEBUGFS "pools");
	return ibt_row(t, "magazine", text, NULL);
}

#define FMRS	8

static void listing_pool_plain(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PG, 1);
	u64 *list = ibt_page_list(test, b);
	struct ib_pool_fmr *fmr[FMRS];
	struct ib_fmr_pool *pool;
	struct ibt_table t;
	const char *row;
	unsigned int id, n;
	char before[24];
	int i;

	ibt_table(test, &t);
	pool = ibt_pool(test, pd,
			(struct ib_fmr_pool_param){ .access = RR | RW, .pool_size = FMRS,
						    .max_pages_per_fmr = 12 });
	id = ibmr_pool_mag(pool)->listed.nr;
	row = pool_row(test, &t, id);
	KUNIT_ASSERT_NOT_NULL_MSG(test, row, "%s", t.text);
	KUNIT_EXPECT_EQ(test, t.rows, 1u);
	ibt_expect_cell(test, &t, row, "pages_max", "12");
	ibt_expect_cell(test, &t, row, "page_bytes", "%lu", PG);
	ibt_expect_cell(test, &t, row, "size", "%u", FMRS);
	ibt_expect_cell(test, &t, row, "in_use", "0");
	ibt_expect_cell(test, &t, row, "high_water", "0");
	ibt_expect_cell(test, &t, row, "pd", "%u", pd->res.id);
	ibt_expect_cell(test, &t, row, "mode", "plain");
	ibt_expect_cell(test, &t, row, "access", "REMOTE_READ|REMOTE_WRITE");

	/* At most five at a time, however often; the sixth is what counts. */
	for (n = 0; n < 3; n++) {
		for (i = 0; i < 5; i++) {
			fmr[i] = ibt_pool_map(pool, list, 1, 0);
			KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[i]));
		}
		row = pool_row(test, &t, id);
		ibt_expect_cell(test, &t, row, "in_use", "5");
		for (i = 0; i < 5; i++)
			ib_fmr_pool_unmap(fmr[i]);
	}
	row = pool_row(test, &t, id);
	ibt_expect_cell(test, &t, row, "in_use", "0");
	ibt_expect_cell(test, &t, row, "high_water", "5");
	ibt_expect_cell(test, &t, row, "flushes", "0");

	for (i = 0; i < FMRS; i++) {
		fmr[i] = ibt_pool_map(pool, list, 1, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[i]));
	}
	ibt_cell(&t, pool_row(test, &t, id), "eagain", before, sizeof(before));
	KUNIT_ASSERT_EQ(test, kstrtouint(before, 10, &n), 0);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, PTR_ERR(ib_fmr_pool_map_phys(pool, list, 1, 0)), -EAGAIN);
	row = pool_row(test, &t, id);
	ibt_expect_cell(test, &t, row, "eagain", "%u", n + 3);
	ibt_expect_cell(test, &t, row, "high_water", "%u", FMRS);
	for (i = 0; i < FMRS; i++)
		ib_fmr_pool_unmap(fmr[i]);
	KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(pool), 0);
	row = pool_row(test, &t, id);
	ibt_expect_cell(test, &t, row, "flushes", "1");
	ibt_expect_cell(test, &t, row, "dirty", "0");

	/* One that is destroyed in use is there until its last user lets go. */
	fmr[0] = ibt_pool_map(pool, list, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[0]));
	ibt_pool_destroy(test, pool);
	row = pool_row(test, &t, id);
	ibt_expect_cell(test, &t, row, "mode", "destroyed");
	ib_fmr_pool_unmap(fmr[0]);
	for (i = 0; i < 500 && !ibt_pd_idle(pd); i++)
		msleep(20);
	KUNIT_EXPECT_NULL(test, pool_row(test, &t, id));
}

static void listing_pool_cache(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PG, 1);
	u64 *list = ibt_page_list(test, b);
	struct ib_pool_fmr *fmr[2];
	struct ib_fmr_pool *pool;
	struct ibt_table t;
	const char *row;
	unsigned int id;
	int i;

	ibt_table(test, &t);
	pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){ .cache = 1, .pool_size = 4 });
	id = ibmr_pool_mag(pool)->listed.nr;
	for (i = 0; i < 2; i++) {
		fmr[i] = ibt_pool_map(pool, list + i, 1, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[i]));
	}
	row = pool_row(test, &t, id);
	ibt_expect_cell(test, &t, row, "in_use", "2");
	ibt_expect_cell(test, &t, row, "cached", "0");
	ibt_expect_cell(test, &t, row, "mode", "cache");
	for (i = 0; i < 2; i++)
		ib_fmr_pool_unmap(fmr[i]);
	row = pool_row(test, &t, id);
	ibt_expect_cell(test, &t, row, "in_use", "0");
	ibt_expect_cell(test, &t, row, "cached", "2");
	ibt_expect_cell(test, &t, row, "hits", "0");

	/* A hit, and the same again while it is in use. */
	fmr[0] = ibt_pool_map(pool, list, 1, 0);
	fmr[1] = ibt_pool_map(pool, list, 1, 0);
	KUNIT_EXPECT_PTR_EQ(test, fmr[0], fmr[1]);
	row = pool_row(test, &t, id);
	ibt_expect_cell(test, &t, row, "in_use", "1");
	ibt_expect_cell(test, &t, row, "cached", "1");
	ibt_expect_cell(test, &t, row, "hits", "2");
	ibt_expect_cell(test, &t, row, "high_water", "2");
	ib_fmr_pool_unmap(fmr[0]);
	ib_fmr_pool_unmap(fmr[1]);
	/* Others take the places of what is cached: four places, so two more, then the oldest. */
	for (i = 0; i < 3; i++) {
		fmr[0] = ibt_pool_map(pool, list + 2 + i % 2, 1, SZ_1M * i);
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[0]));
		ib_fmr_pool_unmap(fmr[0]);
	}
	row = pool_row(test, &t, id);
	ibt_expect_cell(test, &t, row, "cached", "4");
	KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(pool), 0);
	row = pool_row(test, &t, id);
	ibt_expect_cell(test, &t, row, "cached", "0");
	ibt_expect_cell(test, &t, row, "dirty", "0");
	ibt_expect_cell(test, &t, row, "flushes", "1");
}

static void listing_windows(struct kunit *test)
{
	struct ibt_table t;
	struct ibt_win w;
	const char *row;
	struct ib_mw *type2;
	u32 bound;

	ibt_table(test, &t);
	ibt_win(&w, test, IBT_VMALLOC, 4 * PG, LW | MWB);
	type2 = ibt_mw(test, w.pd, IB_MW_TYPE_2);
	read_table(test, &t, IBT_DEBUGFS "windows");
	KUNIT_EXPECT_EQ(test, t.rows, 2u);
	row = ibt_row(&t, "type", "1", NULL);
	ibt_expect_cell(test, &t, row, "state", "free");
	ibt_expect_cell(test, &t, row, "length_bytes", "0");
	ibt_expect_cell(test, &t, row, "binds", "0");
	ibt_expect_cell(test, &t, ibt_row(&t, "type", "2", NULL), "state", "free");

	KUNIT_ASSERT_EQ(test, ibt_bind_patiently(&w, 1000, 5000, RR | RA), 0);
	KUNIT_ASSERT_EQ(test, ibt_bind_2(&w, type2, 3, 77, RW), 0);
	bound = w.mw->rkey;
	read_table(test, &t, IBT_DEBUGFS "windows");
	row = row_of(&t, "rkey", bound);
	ibt_expect_cell(test, &t, row, "type", "1");
	ibt_expect_cell(test, &t, row, "state", "bound");
	ibt_expect_cell(test, &t, row, "iova", "%#018llx", w.base + 1000);
	ibt_expect_cell(test, &t, row, "length_bytes", "5000");
	ibt_expect_cell(test, &t, row, "mr_lkey", "%#010x", w.mr->lkey);
	ibt_expect_cell(test, &t, row, "binds", "1");
	ibt_expect_cell(test, &t, row, "pd", "%u", w.pd->res.id);
	ibt_expect_cell(test, &t, row, "access", "REMOTE_READ|REMOTE_ATOMIC");
	row = row_of(&t, "rkey", type2->rkey);
	ibt_expect_cell(test, &t, row, "type", "2");
	ibt_expect_cell(test, &t, row, "length_bytes", "77");
	read_table(test, &t, IBT_DEBUGFS "regions");
	ibt_expect_cell(test, &t, row_of(&t, "lkey", w.mr->lkey), "windows", "2");

	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 0, 0, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_invalidated(w.pd, type2->rkey), 0);
	read_table(test, &t, IBT_DEBUGFS "windows");
	row = ibt_row(&t, "type", "1", NULL);
	ibt_expect_cell(test, &t, row, "state", "free");
	ibt_expect_cell(test, &t, row, "binds", "2");
	ibt_expect_cell(test, &t, ibt_row(&t, "type", "2", NULL), "state", "free");
	read_table(test, &t, IBT_DEBUGFS "regions");
	ibt_expect_cell(test, &t, row_of(&t, "lkey", w.mr->lkey), "windows", "0");
}

static void listing_magazines(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PG, 1);
	u64 *list = ibt_page_list(test, b);
	struct ib_pool_fmr *fmr;
	struct ib_fmr_pool *pool;
	struct ibmr_mag *mag;
	struct ibt_mag m;
	struct ibt_table t;
	const char *row;
	char id[16];

	ibt_table(test, &t);
	pool = ibt_pool(test, pd,
			(struct ib_fmr_pool_param){ .access = RR, .pool_size = 5,
						    .max_pages_per_fmr = 3 });
	mag = ibmr_pool_mag(pool);
	fmr = ibt_pool_map(pool, list, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
	snprintf(id, sizeof(id), "%u", mag->listed.nr);
	read_table(test, &t, IBT_DEBUGFS "magazines");
	m = ibt_mag(mag);
	row = ibt_row(&t, "magazine", id, NULL);
	KUNIT_ASSERT_NOT_NULL_MSG(test, row, "%s", t.text);
	/* Nothing moves in a stock that one mapping was taken from. */
	ibt_expect_cell(test, &t, row, "pages", "3");
	ibt_expect_cell(test, &t, row, "sharers", "0");
	ibt_expect_cell(test, &t, row, "promised", "5");
	ibt_expect_cell(test, &t, row, "target", "%u", m.target);
	ibt_expect_cell(test, &t, row, "created", "%u", m.created);
	ibt_expect_cell(test, &t, row, "stock", "%u", m.created - 1);
	ibt_expect_cell(test, &t, row, "in_use", "1");
	ibt_expect_cell(test, &t, row, "peak", "1");
	ibt_expect_cell(test, &t, row, "takes", "1");
	ibt_expect_cell(test, &t, row, "empty", "0");
	ibt_expect_cell(test, &t, row, "rekeyed", "0");
	ibt_expect_cell(test, &t, row, "access", "REMOTE_READ");
	ib_fmr_pool_unmap(fmr);
	KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(pool), 0);
	read_table(test, &t, IBT_DEBUGFS "magazines");
	row = ibt_row(&t, "magazine", id, NULL);
	ibt_expect_cell(test, &t, row, "in_use", "0");
	ibt_expect_cell(test, &t, row, "replaced", "1");
}

/* stats and dma: a name and a number, or a word, in each line. */
static void listing_numbers(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_table t;
	u64 before;
	char text[24];

	ibt_table(test, &t);
	read_table(test, &t, IBT_DEBUGFS "stats");
	KUNIT_EXPECT_EQ(test, t.columns, 2u);
	ibt_expect_cell(test, &t, ibt_row(&t, "name", "regions", NULL), "value", "0");
	before = ib_mr_refusals(ibt_dev(test), IB_MR_WHY_ACCESS_NO_LOCAL);
	ibt_expect_refused_mr(test, ACCESS_NO_LOCAL, ib_get_dma_mr(pd, RW));
	ibt_mw(test, pd, IB_MW_TYPE_1);
	read_table(test, &t, IBT_DEBUGFS "stats");
	ibt_expect_cell(test, &t, ibt_row(&t, "name", "refused_ACCESS_NO_LOCAL", NULL), "value",
			"%llu", before + 1);
	ibt_expect_cell(test, &t, ibt_row(&t, "name", "windows", NULL), "value", "1");

	read_table(test, &t, IBT_DEBUGFS "dma");
	KUNIT_EXPECT_EQ(test, t.columns, 2u);
	ibt_expect_cell(test, &t, ibt_row(&t, "name", "mode", NULL), "value", "off");
	ibt_cell(&t, ibt_row(&t, "name", "fault.leak", NULL), "value", text, sizeof(text));
	KUNIT_EXPECT_EQ(test, kstrtou64(text, 10, &before), 0);
}

/*
 * Who owns the driver's MRs, as `rdma resource show mr` has it: a region's is the ULP's, since it
 * is in the ULP's PD; armed ones are ours.
 */
static void listing_owner(struct kunit *test)
{
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, 3 * PG, 1);
	struct ib_pd *pd = ibt_pd(test);
	char *text = kunit_kzalloc(test, SZ_64K, GFP_KERNEL), want[64];
	struct ib_mr *mr;
	char *line;

	KUNIT_ASSERT_NOT_NULL(test, text);
	mr = ibt_mr(test, ib_mr_reg_kernel(pd, b->addr, 2 * PG + 77, RR, NULL));
	ibt_mw(test, pd, IB_MW_TYPE_1);
	KUNIT_ASSERT_EQ(test, ibt_shell("rdma resource show mr > /tmp/ibt-answer"), 0);
	KUNIT_ASSERT_GT(test, ibt_slurp("/tmp/ibt-answer", text, SZ_64K, SZ_4K), (ssize_t)0);
	snprintf(want, sizeof(want), "mrlen %lu ", 2 * PG + 77);
	line = strstr(text, want);
	KUNIT_ASSERT_NOT_NULL_MSG(test, line, "%.2000s", text);
	*strchrnul(line, '\n') = '\0';
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(line, "[ib_mr_test]"), "%s", line);
	ibt_slurp("/tmp/ibt-answer", text, SZ_64K, SZ_4K);
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(text, "[ib_mr]"), "%.2000s", text);
	ibt_shell("rm -f /tmp/ibt-answer");
	KUNIT_EXPECT_EQ(test, mr->length, (u64)(2 * PG + 77));
}

/* --- under load --- */

struct load {
	struct kunit *test;
	struct ib_pd *pd;
	struct ib_fmr_pool *pool;
	struct ibt_win w;
	struct ibt_buf *b;
	u64 *list;
	struct ib_mr *stays;
	struct ibt_table table;
	bool stop;
	unsigned int reads, rows;
};

static int load_turn(struct load *l, int n)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = 2, .page_shift = PAGE_SHIFT, .access = RR,
		.pool_size = 1 + n % 3, .dirty_watermark = 1, .cache = n & 1,
	};
	struct ib_fmr_pool *pool = ib_create_fmr_pool(l->pd, &param);
	struct ib_mw *mw = ib_alloc_mw(l->pd, IB_MW_TYPE_1);
	u64 iova = 0x100000000ULL + n * SZ_1M;
	struct ib_mr *mr[8];
	int i, err = 0;

	if (IS_ERR(pool) || IS_ERR(mw))
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(mr); i++)
		mr[i] = ib_mr_reg_kernel(l->pd, l->b->addr, PG, RR, &iova);
	for (i = 0; i < 20; i++) {
		struct ib_pool_fmr *fmr = ib_fmr_pool_map_phys(i & 1 ? pool : l->pool, l->list, 1,
							       0);

		if (!IS_ERR(fmr))
			ib_fmr_pool_unmap(fmr);
		ibt_bind(&l->w, i, 100, RR, 0);
	}
	for (i = 0; i < ARRAY_SIZE(mr); i++)
		err = IS_ERR(mr[i]) ? PTR_ERR(mr[i]) : ib_dereg_mr(mr[i]) ?: err;
	ib_dealloc_mw(mw);
	ib_destroy_fmr_pool(pool);
	return err;
}

/* The copy of a table has just one line with @value in @column. */
static bool load_read(struct load *l, const char *path, const char *column, const char *value)
{
	struct ibt_table *t = &l->table;
	const char *row;

	if (!ibt_table_copy(t, path)) {
		pr_err("%s:\n%.3000s\n", path, t->text);
		return false;
	}
	l->reads++;
	l->rows += t->rows;
	row = ibt_row(t, column, value, NULL);
	return row && !ibt_row(t, column, value, row);
}

static int load_thread(void *arg, int i)
{
	struct load *l = arg;
	char lkey[16], id[16], command[256];
	int n, err = 0;

	if (!i) {
		for (n = 0; n < (ibt_slow ? 2000 : 25) && !err; n++) {
			err = load_turn(l, n);
			usleep_range(1000, 2000);	/* on one CPU the reader has its turn so */
		}
		WRITE_ONCE(l->stop, true);
		return err;
	}
	snprintf(lkey, sizeof(lkey), "%#010x", l->stays->lkey);
	snprintf(id, sizeof(id), "%u", ibmr_pool_mag(l->pool)->listed.nr);
	while (!READ_ONCE(l->stop) && !err) {
		/* Many readings, the last of which are looked at. */
		snprintf(command, sizeof(command),
			 "cd " IBT_DEBUGFS "; set -e; for i in 1 2 3 4 5 6 7 8; "
			 "do for f in regions pools magazines windows; "
			 "do dd if=$f of=/tmp/ibt-$f bs=%u 2> /dev/null; done; done",
			 100 + l->reads * 37 % 977);
		if (ibt_shell(command) || !load_read(l, "/tmp/ibt-regions", "lkey", lkey) ||
		    !load_read(l, "/tmp/ibt-pools", "magazine", id) ||
		    !load_read(l, "/tmp/ibt-magazines", "magazine", id) ||
		    !load_read(l, "/tmp/ibt-windows", "mr_lkey", lkey))
			err = -EBADMSG;
	}
	return err;
}

static void listing_load(struct kunit *test)
{
	struct load *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, l);
	l->test = test;
	ibt_table(test, &l->table);
	ibt_win(&l->w, test, IBT_VMALLOC, 2 * PG, LW | MWB);
	l->pd = l->w.pd;
	l->stays = l->w.mr;
	l->b = ibt_buf(test, IBT_PAGES, PG, 1);
	l->list = ibt_page_list(test, l->b);
	l->pool = ibt_pool(test, l->pd, (struct ib_fmr_pool_param){ .access = RR });
	KUNIT_ASSERT_EQ(test, ibt_bind(&l->w, 0, 100, RR, 0), 0);
	ibt_parallel(test, 2, load_thread, l);
	KUNIT_ASSERT_EQ(test, ibt_bind(&l->w, 0, 0, 0, 0), 0);
	KUNIT_EXPECT_GE(test, l->reads, 4u);
	kunit_info(test, "%u files read, %u rows\n", l->reads, l->rows);
}

static struct kunit_case listing_cases[] = {
	KUNIT_CASE(listing_regions),
	KUNIT_CASE(listing_pool_plain),
	KUNIT_CASE(listing_pool_cache),
	KUNIT_CASE(listing_windows),
	KUNIT_CASE(listing_magazines),
	KUNIT_CASE(listing_numbers),
	KUNIT_CASE(listing_owner),
	KUNIT_CASE(listing_load),
	{}
};

IBT_SUITE(look_tables, listing_cases);
