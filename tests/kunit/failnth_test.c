// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The sweep, and its table.
 *
 * This suite comes after those of the rows. It prints how many faults of each kind each exported
 * call met, and fails when an export of the module has no row, or a row no export: exports.h is
 * made from the sources when the test is built.
 */
#include <linux/delay.h>

#include "failnth.h"

#ifdef CONFIG_IB_MR_DEBUG

#define FN_ROWS	128	/* of all tables */
#define FN_MOST	2000	/* points on one way */

static const struct fn_table *const tables[] = {
	&fn_regions, &fn_others, &fn_fmrs, &fn_windows, &fn_dma,
};

static const char *const kind_names[IBMR_FAULTS] = {
	"alloc", "device", "post", "refused", "time-out", "broken",
};

/* Faults met by a row; kept until the table is printed. */
static struct {
	bool ran;
	unsigned int hits[IBMR_FAULTS];
} met[FN_ROWS];

static const struct fn_row *row_at(unsigned int i)
{
	unsigned int t;

	for (t = 0; t < ARRAY_SIZE(tables); i -= tables[t++]->nr)
		if (i < tables[t]->nr)
			return &tables[t]->row[i];
	return NULL;
}

static unsigned int row_index(const struct fn_row *row)
{
	unsigned int i = 0;

	while (row_at(i) != row)
		i++;
	return i;
}

void fn_desc(const struct fn_row *row, char *desc)
{
	scnprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s%s%s", row->call, row->what ? ": " : "",
		  row->what ?: "");
}

void fn_reads(struct fn_room *r, struct ibt_pair *p, struct ibt_buf *b, u32 key, u64 iova,
	      size_t off, size_t len)
{
	memset(p->req.buf, 0xa5, len);
	KUNIT_EXPECT_EQ(r->test, ibt_rdma(p, IBT_READ, p->req.buf, key, iova, len), IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(r->test, ibt_diff_copy(b, off, len, p->req.buf), off + len);
}

void fn_dead(struct fn_room *r, struct ibt_pair *p, u32 key, u64 iova)
{
	KUNIT_EXPECT_EQ(r->test, ibt_rdma(p, IBT_READ, p->req.buf, key, iova, 1),
			IB_WC_REM_ACCESS_ERR);
}

static void free_second_pd(struct kunit *test, void *arg)
{
	KUNIT_EXPECT_EQ(test, ib_dealloc_pd((struct ib_pd *)arg), 0);
}

static void room_init(struct fn_room *r, struct kunit *test, const struct fn_row *row)
{
	r->test = test;
	if (row->flags & FN_FIRST) {
		r->dev = ibt_second(test);
		r->pd = ib_alloc_pd(r->dev, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(r->pd));
		ibt_defer(test, free_second_pd, r->pd);
	} else {
		r->dev = ibt_dev(test);
		r->pd = ibt_pd(test);
		r->p = ibt_pair(test, r->pd);
	}
	r->b = ibt_buf(test, IBT_SCATTER, FN_PAGES * PAGE_SIZE, 1);
	r->flat = ibt_buf(test, IBT_VMALLOC, FN_PAGES * PAGE_SIZE, 2);
	r->list = ibt_page_list(test, r->b);
	r->phys = ibt_phys(test, r->b, 0, r->b->size, &r->nphys);
	if (row->set_up)
		row->set_up(r);
}

struct counts {
	int n[RDMA_RESTRACK_MAX];
};

static void count(struct ib_device *dev, struct counts *c)
{
	int i;

	for (i = 0; i < RDMA_RESTRACK_MAX; i++)
		c->n[i] = rdma_restrack_count(dev, i, true);
}

/*
 * A fault in what arms MRs takes the device's own registration queue pair along; it is made anew
 * when it is needed next, which is now.
 */
static void arm_some(struct fn_room *r)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 1, .page_shift = PAGE_SHIFT };
	struct ib_fmr *fmr = ib_alloc_fmr(r->pd, RR, &attr);

	KUNIT_EXPECT_EQ(r->test, PTR_ERR_OR_ZERO(fmr), 0);
	if (!IS_ERR(fmr))
		KUNIT_EXPECT_EQ(r->test, ib_dealloc_fmr(fmr), 0);
}

static void expect_counts(struct fn_room *r, const struct fn_row *row, const struct counts *was,
			  int kind, int n)
{
	struct kunit *test = r->test;
	struct counts is;

	count(r->dev, &is);
	if (is.n[RDMA_RESTRACK_QP] < was->n[RDMA_RESTRACK_QP] && !(row->flags & FN_FIRST)) {
		arm_some(r);
		count(r->dev, &is);
	}
	KUNIT_EXPECT_TRUE_MSG(test, ib_mr_check_invariants(r->dev), "%s %d", kind_names[kind], n);
	if (row->flags & FN_FIRST)	/* what the device has for all FMRs stays */
		return;
	KUNIT_EXPECT_EQ_MSG(test, is.n[RDMA_RESTRACK_PD], was->n[RDMA_RESTRACK_PD], "%s %d",
			    kind_names[kind], n);
	KUNIT_EXPECT_EQ_MSG(test, is.n[RDMA_RESTRACK_CQ], was->n[RDMA_RESTRACK_CQ], "%s %d",
			    kind_names[kind], n);
	KUNIT_EXPECT_EQ_MSG(test, is.n[RDMA_RESTRACK_QP], was->n[RDMA_RESTRACK_QP], "%s %d",
			    kind_names[kind], n);
	if (!(row->flags & FN_STOCK))
		KUNIT_EXPECT_EQ_MSG(test, is.n[RDMA_RESTRACK_MR], was->n[RDMA_RESTRACK_MR],
				    "%s %d", kind_names[kind], n);
}

/* What a call says whose stock is low at the moment. */
static bool stock_low(const struct fn_row *row, int err)
{
	return err == -EAGAIN || (err == -ENOMEM && row->flags & FN_STOCK);
}

/* Once more, without a fault; a stock that the fault left low is waited for. */
static int repeat(struct fn_room *r, const struct fn_row *row)
{
	int tries, err = -EAGAIN;

	for (tries = 0; tries < 500 && stock_low(row, err); tries++) {
		if (tries)
			msleep(20);
		err = row->run(r);
	}
	return err;
}

static bool errno_fits(const struct fn_row *row, int kind, int err)
{
	if (kind == IBMR_FAULT_BREAK)	/* it is mended, and nobody notices */
		return false;
	return err == -ENOMEM || err == -EIO || err == -EAGAIN ||
	       (err == -EINVAL && row->flags & FN_EINVAL && kind == IBMR_FAULT_DEVICE);
}

/* Return: was a fault met? */
static bool once(struct fn_room *r, const struct fn_row *row, int kind, int n)
{
	struct kunit *test = r->test;
	struct counts was;
	int err, tries = 0;
	bool hit;

	count(r->dev, &was);
	if (row->before)
		row->before(r);
	/* The fault before this one may have left the stock low, with the worker still at it. */
	do {
		if (tries)
			msleep(20);
		ibmr_fault_arm(row->must ? BIT(kind) : IBMR_FAULTS_ALL, n,
			       row->flags & FN_ANYONE ? NULL : current);
		err = row->run(r);
		hit = ibmr_fault_disarm();
	} while (!hit && row->flags & FN_STOCK && stock_low(row, err) && ++tries < 500);
	if (err) {
		KUNIT_EXPECT_TRUE_MSG(test, hit && errno_fits(row, kind, err), "%s %d: %d",
				      kind_names[kind], n, err);
		if (row->failed)
			row->failed(r);
		if (!(row->flags & FN_FIRST)) {
			err = repeat(r, row);
			KUNIT_EXPECT_EQ_MSG(test, err, 0, "%s %d: repeated", kind_names[kind], n);
		}
	}
	if (!err && row->done)
		row->done(r);
	expect_counts(r, row, &was, kind, n);
	return hit;
}

void fn_sweep(struct kunit *test)
{
	const struct fn_row *row = test->param_value;
	struct fn_room *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	unsigned int at = row_index(row), kind, n, step;

	KUNIT_ASSERT_NOT_NULL(test, r);
	KUNIT_ASSERT_LT(test, at, FN_ROWS);
	room_init(r, test, row);
	memset(&met[at], 0, sizeof(met[at]));
	if (!row->must) {
		KUNIT_EXPECT_FALSE_MSG(test, once(r, row, 0, 1), "it has a step that can fail");
		met[at].ran = true;
		return;
	}
	for (kind = 0; kind < IBMR_FAULTS; kind++) {
		if (row->flags & FN_FIRST && !(row->must & BIT(kind)))
			continue;
		for (n = 1; n < FN_MOST && once(r, row, kind, n); n += step) {
			step = row->flags & FN_SAMPLE ? 1 + n / 2 : 1;
			met[at].hits[kind]++;
			if (test->status == KUNIT_FAILURE)
				return;
			cond_resched();
		}
		KUNIT_EXPECT_LT_MSG(test, n, FN_MOST, "%s: no end", kind_names[kind]);
		if (row->must & BIT(kind))
			KUNIT_EXPECT_GT_MSG(test, n, 1, "%s: not met", kind_names[kind]);
	}
	met[at].ran = true;
}

/* --- the table --- */

static const char *const exports[] = {
#define EXPORT(name) #name,
#include "exports.h"
#undef EXPORT
};

/* What is exported and is no call. */
static bool is_data(const char *name)
{
	return !strcmp(name, "ib_mr_dma_checking") || !strcmp(name, "ib_mr_dma_param_ops");
}

static void print_call(const char *call)
{
	unsigned int sum[IBMR_FAULTS] = {}, total = 0, i, k;
	char line[80];
	int at = 0;

	for (i = 0; row_at(i); i++)
		for (k = 0; k < IBMR_FAULTS && !strcmp(row_at(i)->call, call); k++) {
			sum[k] += met[i].hits[k];
			total += met[i].hits[k];
		}
	for (k = 0; k < IBMR_FAULTS; k++)
		at += scnprintf(line + at, sizeof(line) - at, " %8u", sum[k]);
	pr_info("ib_mr faults: %-28s%s\n", call, total ? line : "   no step that can fail");
}

static void failnth_table(struct kunit *test)
{
	unsigned int i, j, k;
	char line[80];
	int at = 0;

	for (k = 0; k < IBMR_FAULTS; k++)
		at += scnprintf(line + at, sizeof(line) - at, " %8s", kind_names[k]);
	pr_info("ib_mr faults: %-28s%s\n", "call", line);
	for (i = 0; i < ARRAY_SIZE(exports); i++) {
		bool found = is_data(exports[i]), ran = found;

		for (j = 0; row_at(j); j++)
			if (!strcmp(row_at(j)->call, exports[i])) {
				found = true;
				ran |= met[j].ran;
			}
		KUNIT_EXPECT_TRUE_MSG(test, found, "%s has no row", exports[i]);
		KUNIT_EXPECT_TRUE_MSG(test, ran, "%s was not swept to its end", exports[i]);
		if (!is_data(exports[i]))
			print_call(exports[i]);
	}
	for (j = 0; row_at(j); j++) {
		for (i = 0; i < ARRAY_SIZE(exports); i++)
			if (!strcmp(row_at(j)->call, exports[i]))
				break;
		KUNIT_EXPECT_LT_MSG(test, i, ARRAY_SIZE(exports), "%s is not exported",
				    row_at(j)->call);
	}
}

static struct kunit_case failnth_cases[] = {
	KUNIT_CASE(failnth_table),
	{}
};

IBT_SUITE(failnth, failnth_cases);

#endif /* CONFIG_IB_MR_DEBUG */
