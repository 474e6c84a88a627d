// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tracepoints, as a person uses them: enabled through tracefs, one transition of each kind made,
 * and the lines read back. What a line says is compared with the object, field by field; and that
 * nothing was said of transitions that did not take place.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "fmr_helpers.h"
#include "proc.h"
#include "table.h"
#include "window.h"

#define PG	PAGE_SIZE
#define ROOM	SZ_512K

struct trace {
	struct kunit *test;
	char *text;
};

static void trace_off(struct kunit *test, void *arg)
{
	struct trace *t = arg;

	KUNIT_EXPECT_EQ(test, ibt_shell("echo 0 > " IBT_TRACING "events/ib_mr/enable"), 0);
	vfree(t->text);
	kfree(t);
}

/* From here on all that happens is recorded. */
static struct trace *trace_on(struct kunit *test)
{
	struct trace *t = kzalloc(sizeof(*t), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->test = test;
	t->text = vzalloc(ROOM);
	ibt_defer(test, trace_off, t);
	KUNIT_ASSERT_NOT_NULL(test, t->text);
	KUNIT_ASSERT_EQ(test, ibt_shell("set -e; cd " IBT_TRACING "; echo 4096 > buffer_size_kb; "
					"echo > trace; echo 1 > events/ib_mr/enable"), 0);
	return t;
}

static void trace_read(struct trace *t)
{
	KUNIT_ASSERT_GT(t->test, ibt_slurp(IBT_TRACING "trace", t->text, ROOM, SZ_4K), (ssize_t)0);
}

/* Lines of @event with these fields in them, the whole rest of the line or its beginning. */
static unsigned int __printf(3, 0) vcount(struct trace *t, const char *event, const char *fmt,
					  va_list args)
{
	char want[256];
	unsigned int n = 0;
	const char *at;
	int len;

	len = scnprintf(want, sizeof(want), " %s: dev=rxe0 ", event);
	len += vscnprintf(want + len, sizeof(want) - len, fmt, args);
	for (at = t->text; (at = strstr(at, want)); at += len)
		n += at[len] == ' ' || at[len] == '\n';
	return n;
}

/* Whatever its fields. */
static unsigned int events(struct trace *t, const char *event)
{
	char want[48];
	unsigned int n = 0;
	const char *at;

	snprintf(want, sizeof(want), " %s: ", event);
	for (at = t->text; (at = strstr(at, want)); at++)
		n++;
	return n;
}

static unsigned int __printf(3, 4) count(struct trace *t, const char *event, const char *fmt, ...)
{
	unsigned int n;
	va_list args;

	va_start(args, fmt);
	n = vcount(t, event, fmt, args);
	va_end(args);
	return n;
}

/* Just one. */
static void __printf(3, 4) expect(struct trace *t, const char *event, const char *fmt, ...)
{
	char *all = strstr(t->text, event);
	unsigned int n;
	va_list args;

	va_start(args, fmt);
	n = vcount(t, event, fmt, args);
	va_end(args);
	KUNIT_EXPECT_EQ_MSG(t->test, n, 1u, "%s with %s; the first is: %.*s", event, fmt,
			    all ? (int)strcspn(all, "\n") : 4, all ?: "none");
}

static void trace_region(struct kunit *test)
{
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, 3 * PG, 1);
	struct ib_pd *pd = ibt_pd(test), *other = ibt_pd(test);
	u32 lkey, rkey, pdn = pd->res.id, pdn2 = other->res.id;
	u64 iova = 0x4400000000ULL;
	struct trace *t = trace_on(test);
	struct ib_mr *mr;

	mr = ibt_mr(test, ib_mr_reg_kernel(pd, b->addr, 2 * PG, LW | RR | MWB, &iova));
	lkey = mr->lkey;
	rkey = mr->rkey;
	KUNIT_ASSERT_EQ(test, ib_rereg_phys_mr(mr, IB_MR_REREG_PD | IB_MR_REREG_ACCESS, other,
					       NULL, 0, RA | LW, NULL), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_invalidated(other, mr->lkey), 0);
	ibt_expect_refused(test, OTHER_PD, ib_mr_invalidated(pd, mr->lkey));
	trace_read(t);
	expect(t, "ib_mr_registered",
	       "pd=%u lkey=%#x rkey=%#x iova=%#llx length=%lu access=LOCAL_WRITE|REMOTE_READ|MW_BIND runs=1 pinned=0",
	       pdn, lkey, rkey, iova, 2 * PG);
	expect(t, "ib_mr_reregistered",
	       "pd=%u old_lkey=%#x old_rkey=%#x lkey=%#x rkey=%#x iova=%#llx length=%lu access=LOCAL_WRITE|REMOTE_ATOMIC",
	       pdn2, lkey, rkey, mr->lkey, mr->rkey, iova, 2 * PG);
	expect(t, "ib_mr_invalidated", "pd=%u key=%#x", pdn2, mr->lkey);
	expect(t, "ib_mr_refused", "why=OTHER_PD err=%d call=ib_mr_invalidated(key %#x)", -EACCES,
	       mr->lkey);
	KUNIT_EXPECT_EQ(test, events(t, "ib_mr_deregistered"), 0u);

	lkey = mr->lkey;
	rkey = mr->rkey;
	KUNIT_ASSERT_EQ(test, ibt_dereg(test, mr), 0);
	trace_read(t);
	expect(t, "ib_mr_deregistered", "pd=%u lkey=%#x rkey=%#x iova=%#llx", pdn2, lkey, rkey,
	       iova);
	KUNIT_EXPECT_EQ(test, events(t, "ib_mr_registered"), 1u);
}

/* What failed is not told as if it had been. */
static void trace_refused(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ib_phys_buf buf = { .addr = 0x1000, .size = 0 };
	struct trace *t = trace_on(test);
	u64 iova = 0x1000;

	ibt_expect_refused_mr(test, EMPTY, ib_reg_phys_mr(pd, &buf, 1, RR, &iova));
	ibt_expect_refused_mr(test, ACCESS_NO_LOCAL, ib_get_dma_mr(pd, RW));
	trace_read(t);
	KUNIT_EXPECT_EQ(test, count(t, "ib_mr_refused", "why=EMPTY err=%d", -EINVAL), 1u);
	KUNIT_EXPECT_EQ(test, count(t, "ib_mr_refused", "why=ACCESS_NO_LOCAL err=%d", -EINVAL), 1u);
	KUNIT_EXPECT_NOT_NULL(test, strstr(t->text, " call=ib_reg_phys_mr"));
	KUNIT_EXPECT_EQ(test, events(t, "ib_mr_registered"), 0u);
}

static bool told(struct trace *t, const char *event, const char *field, u32 key)
{
	unsigned int tries;

	for (tries = 0; tries < 200; tries++) {
		char want[48], *line;

		trace_read(t);
		snprintf(want, sizeof(want), " %s=%#x ", field, key);
		for (line = t->text; (line = strstr(line, event)); line++) {
			char *at = strstr(line, want);

			if (at && at < strchrnul(line, '\n'))
				return true;
		}
		msleep(50);
	}
	return false;
}

/* The life of an armed MR: armed, mapped, cut off, re-keyed, mapped again, replaced, discarded. */
static void trace_pool(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 3 * PG, 1);
	u64 *list = ibt_page_list(test, b);
	u32 first, last, pdn = pd->res.id;
	struct trace *t = trace_on(test);
	struct ib_fmr_pool *pool;
	struct ib_pool_fmr *fmr;
	unsigned int id, i;

	pool = ibt_pool(test, pd,
			(struct ib_fmr_pool_param){ .access = RR | RW, .pool_size = 2,
						    .max_pages_per_fmr = 3 });
	id = ibmr_pool_mag(pool)->listed.nr;
	fmr = ibt_pool_map(pool, list, 3, SZ_1M);
	KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
	first = fmr->fmr->rkey;
	trace_read(t);
	expect(t, "ib_mr_armed", "magazine=%u key=%#x access=REMOTE_READ|REMOTE_WRITE pages=3", id,
	       first);
	expect(t, "ib_mr_mapped",
	       "pd=%u key=%#x iova=%#x length=%lu access=REMOTE_READ|REMOTE_WRITE", pdn, first,
	       SZ_1M, 3 * PG);
	KUNIT_EXPECT_EQ(test, events(t, "ib_mr_cut_off"), 0u);
	ib_fmr_pool_unmap(fmr);
	trace_read(t);
	expect(t, "ib_mr_cut_off",
	       "pd=%u key=%#x iova=%#x length=%lu access=REMOTE_READ|REMOTE_WRITE", pdn, first,
	       SZ_1M, 3 * PG);

	/* Enough of them for the worker to take them up. */
	for (i = 0; i < 12; i++) {
		fmr = ibt_pool_map(pool, list, 1, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
		ib_fmr_pool_unmap(fmr);
	}
	KUNIT_EXPECT_TRUE(test,
			  told(t, "ib_mr_rekeyed", "old_key", first) ||
			  told(t, "ib_mr_replaced", "key", first));

	/* A flush replaces what was released. */
	fmr = ibt_pool_map(pool, list, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
	last = fmr->fmr->rkey;
	ib_fmr_pool_unmap(fmr);
	KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(pool), 0);
	trace_read(t);
	expect(t, "ib_mr_replaced", "magazine=%u key=%#x access=REMOTE_READ|REMOTE_WRITE pages=3",
	       id, last);
	KUNIT_EXPECT_EQ(test, count(t, "ib_mr_pool_flushed", "pd=%u magazine=%u fence=1", pdn, id),
			1u);
	ibt_pool_destroy(test, pool);
	trace_read(t);
	KUNIT_EXPECT_GE(test, count(t, "ib_mr_discarded", "magazine=%u", id), 2u);
}

/* Which of the two it is depends on the stock; with rekey_at_once it is always the same. */
static void trace_rekeyed(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PG, 1);
	u64 *list = ibt_page_list(test, b);
	struct trace *t = trace_on(test);
	struct ib_fmr_pool *pool;
	struct ib_pool_fmr *fmr;
	u32 first = 0;
	int i;

	pool = ibt_pool(test, pd,
			(struct ib_fmr_pool_param){ .access = RR, .pool_size = 2,
						    .max_pages_per_fmr = 1, .rekey_at_once = 1 });
	for (i = 0; i < 12; i++) {
		fmr = ibt_pool_map(pool, list, 1, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
		first = first ?: fmr->fmr->rkey;
		ib_fmr_pool_unmap(fmr);
	}
	KUNIT_EXPECT_TRUE(test, told(t, "ib_mr_rekeyed", "old_key", first));
}

static void trace_fmr(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 2 * PG, 1);
	u64 *list = ibt_page_list(test, b);
	struct ib_fmr *fmr = ibt_fmr(test, pd, RR, 2, 10);
	u32 old, new, pdn = pd->res.id;
	struct trace *t = trace_on(test);

	KUNIT_ASSERT_EQ(test, ibt_map(fmr, list, 2, 3 * PG), 0);
	old = fmr->rkey;
	KUNIT_ASSERT_EQ(test, ibt_map(fmr, list, 1, 0), 0);
	new = fmr->rkey;
	KUNIT_ASSERT_EQ(test, ibt_unmap(fmr), 0);
	trace_read(t);
	expect(t, "ib_mr_mapped", "pd=%u key=%#x iova=%#lx length=%lu access=REMOTE_READ", pdn, old,
	       3 * PG, 2 * PG);
	expect(t, "ib_mr_cut_off", "pd=%u key=%#x iova=%#lx", pdn, old, 3 * PG);
	expect(t, "ib_mr_mapped", "pd=%u key=%#x iova=%s length=%lu", pdn, new, "0x0", PG);
	expect(t, "ib_mr_cut_off", "pd=%u key=%#x iova=%s length=%lu", pdn, new, "0x0", PG);
	KUNIT_EXPECT_TRUE(test, told(t, "ib_mr_replaced", "key", new));
}

static void trace_window(struct kunit *test)
{
	struct ibt_win w;
	struct trace *t;
	u32 first, second, pdn;

	ibt_win(&w, test, IBT_VMALLOC, 4 * PG, LW | MWB);
	pdn = w.pd->res.id;
	t = trace_on(test);
	KUNIT_ASSERT_EQ(test, ibt_bind_patiently(&w, 100, 5000, RR | RA), 0);
	first = w.mw->rkey;
	ibt_expect_refused(test, MW_RANGE, ibt_bind(&w, 4 * PG - 1, 2, RR, 0));
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 7, 8, RW, 0), 0);
	second = w.mw->rkey;
	trace_read(t);
	expect(t, "ib_mr_bound",
	       "pd=%u type=1 rkey=%#x mr_lkey=%#x iova=%#llx length=5000 access=REMOTE_READ|REMOTE_ATOMIC",
	       pdn, first, w.mr->lkey, w.base + 100);
	expect(t, "ib_mr_unbound", "pd=%u type=1 rkey=%#x mr_lkey=%#x", pdn, first, w.mr->lkey);
	expect(t, "ib_mr_cut_off", "pd=%u key=%#x iova=%#llx length=5000", pdn, first,
	       w.base + 100);
	expect(t, "ib_mr_bound", "pd=%u type=1 rkey=%#x mr_lkey=%#x iova=%#llx length=8", pdn,
	       second, w.mr->lkey, w.base + 7);
	KUNIT_EXPECT_EQ(test, events(t, "ib_mr_bound"), 2u);
	KUNIT_EXPECT_EQ(test, count(t, "ib_mr_refused", "why=MW_RANGE err=%d", -EINVAL), 1u);

	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 0, 0, 0, 0), 0);
	trace_read(t);
	expect(t, "ib_mr_unbound", "pd=%u type=1 rkey=%#x mr_lkey=%#x", pdn, second, w.mr->lkey);
}

static void trace_stale(struct kunit *test)
{
	struct ibt_proc *p = ibt_proc(test, NULL);
	struct ib_pd *pd = ibt_pd(test);
	unsigned long at = ibt_user_map(p, 2 * PG, PROT_READ | PROT_WRITE);
	struct trace *t = trace_on(test);
	struct ib_mr *mr;

	mr = ibt_reg_user(p, pd, at, 2 * PG, LW | RR, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	ibt_mr(test, mr);
	KUNIT_EXPECT_EQ(test, ibt_user_unmap(p, at, 2 * PG), 0);
	trace_read(t);
	KUNIT_EXPECT_EQ(test, count(t, "ib_mr_registered",
				    "pd=%u lkey=%#x rkey=%#x iova=%#llx length=%lu access=LOCAL_WRITE|REMOTE_READ",
				    pd->res.id, mr->lkey, mr->rkey, mr->iova, 2 * PG), 1u);
	KUNIT_EXPECT_NOT_NULL(test, strstr(t->text, " pinned=2"));
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(t->text, "ib_mr_stale: dev=rxe0 comm="), "%.2000s",
				  t->text);
	KUNIT_EXPECT_NOT_NULL(test, strstr(t->text, " cause=unmap"));
}

/* The device's own test maps and cuts off: for nobody, so nobody is told. */
static void trace_live_test(struct kunit *test)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 1, .page_shift = PAGE_SHIFT };
	struct ib_device *second = ibt_second(test);
	struct ib_pd *pd = ib_alloc_pd(second, 0);
	struct ibmr_dev *dev = ibmr_dev_get(second);
	struct trace *t = trace_on(test);
	struct ib_fmr *fmr;

	KUNIT_ASSERT_FALSE(test, IS_ERR(pd));
	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_EXPECT_FALSE(test, dev->probed);
	fmr = ib_alloc_fmr(pd, RR, &attr);
	KUNIT_EXPECT_EQ(test, PTR_ERR_OR_ZERO(fmr), 0);
	KUNIT_EXPECT_TRUE(test, dev->probed);
	ibmr_dev_put(dev);
	trace_read(t);
	KUNIT_EXPECT_GT(test, events(t, "ib_mr_armed"), 0u);
	KUNIT_EXPECT_EQ(test, events(t, "ib_mr_mapped"), 0u);
	KUNIT_EXPECT_EQ(test, events(t, "ib_mr_cut_off"), 0u);
	if (!IS_ERR(fmr))
		KUNIT_EXPECT_EQ(test, ib_dealloc_fmr(fmr), 0);
	KUNIT_EXPECT_EQ(test, ib_dealloc_pd_user(pd, NULL), 0);
}

/* What trace-cmd and bpftrace go by: no address in a format, and names for flags and reasons. */
static void trace_formats(struct kunit *test)
{
	static const char *const names[] = {
		"refused", "registered", "reregistered", "deregistered", "stale", "mapped",
		"cut_off", "armed", "rekeyed", "replaced", "discarded", "bound", "unbound",
		"pool_flushed", "invalidated",
	};
	char *text = vzalloc(SZ_64K), path[96], line[48];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, text);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), IBT_TRACING "events/ib_mr/ib_mr_%s/format", names[i]);
		KUNIT_EXPECT_GT_MSG(test, ibt_slurp(path, text, SZ_64K, SZ_4K), (ssize_t)0, "%s",
				    path);
		KUNIT_EXPECT_NULL_MSG(test, strstr(text, "%p"), "%s", path);
		KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(text, "__data_loc char[] device"), "%s",
					  path);
		KUNIT_EXPECT_NULL_MSG(test, strstr(text, "IB_MR_WHY_"), "%s", path);
		KUNIT_EXPECT_NULL_MSG(test, strstr(text, "IB_ACCESS_"), "%s", path);
	}
	ibt_slurp(IBT_TRACING "events/ib_mr/ib_mr_refused/format", text, SZ_64K, SZ_4K);
	snprintf(line, sizeof(line), "{ %d, \"MW_SQ_FULL\" }", IB_MR_WHY_MW_SQ_FULL);
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(text, line), "no %s", line);
	vfree(text);
}

static struct kunit_case trace_cases[] = {
	KUNIT_CASE(trace_region),
	KUNIT_CASE(trace_refused),
	KUNIT_CASE(trace_pool),
	KUNIT_CASE(trace_rekeyed),
	KUNIT_CASE(trace_fmr),
	KUNIT_CASE(trace_window),
	KUNIT_CASE(trace_stale),
	KUNIT_CASE(trace_live_test),
	KUNIT_CASE(trace_formats),
	{}
};

IBT_SUITE(look_traces, trace_cases);
