// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * FMR pools: the caller's path, and everything.
 *
 * Every figure is of a pool that keeps up: maps come in bursts that the stock covers, and the next
 * burst waits until it is full again. So what is counted is the normal operation, an MR re-keyed
 * for each one used, and that it was so is checked: a burst counts only when as many MRs were
 * re-keyed as were used and not one was replaced.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/sizes.h>

#include "bench.h"
#include "stock/magazine.h"

#define POOL_SIZE	2048
#define BURST		256

static const struct ib_fmr_pool_param usual = {
	.max_pages_per_fmr = BENCH_PAGES,
	.page_shift = PAGE_SHIFT,
	.access = BENCH_ACCESS,
	.pool_size = POOL_SIZE,
	.dirty_watermark = POOL_SIZE / 4,
};

int bench_pool_create(struct bench *b, struct bench_pool *p, struct ib_fmr_pool_param param)
{
	*p = (struct bench_pool){ .pool = ib_create_fmr_pool(b->pd, &param) };
	if (IS_ERR(p->pool))
		return bench_fail("pool", PTR_ERR(p->pool));
	p->dev = ibmr_dev_get(b->dev);
	/* Nobody else makes magazines here, and the newest is the last. */
	mutex_lock(&p->dev->mag_lock);
	p->mag = list_last_entry(&p->dev->mags, struct ibmr_mag, listed.entry);
	mutex_unlock(&p->dev->mag_lock);
	return 0;
}

void bench_pool_destroy(struct bench_pool *p)
{
	if (IS_ERR_OR_NULL(p->pool))
		return;
	ib_destroy_fmr_pool(p->pool);
	ibmr_dev_put(p->dev);
}

struct state {
	unsigned int ready;	/* maps that the stock covers without a call for more */
	unsigned int away;	/* retired or waiting */
	u64 rekeyed;
	u64 replaced;
	u64 takes;
};

static struct state look(struct bench_pool *p)
{
	struct ibmr_mag *mag = p->mag;
	struct state s;

	spin_lock_irq(&mag->lock);
	s.ready = mag->stock.nr > mag->low ? mag->stock.nr - mag->low : 0;
	s.away = mag->created - mag->stock.nr - mag->in_use;
	s.rekeyed = mag->rekeyed;
	s.replaced = mag->replaced;
	s.takes = mag->takes;
	spin_unlock_irq(&mag->lock);
	return s;
}

/* Full again, none retired: how many maps may come now. */
unsigned int bench_pool_ready(struct bench_pool *p)
{
	int tries;

	for (tries = 0; tries < 100; tries++) {
		struct state s = look(p);

		if (!s.away)
			return s.ready;
		/* A few that are not worth a batch would wait for ever. */
		if (tries % 20 == 19)
			ib_flush_fmr_pool(p->pool);
		msleep(50);
	}
	return 0;
}

int bench_cycle(struct bench_pool *p, bench_op *op, void *arg, unsigned int nr, unsigned int keys,
		u64 *each)
{
	struct bench_span span;
	struct state from, to;
	unsigned int i;
	int err;

	ib_flush_fmr_pool(p->pool);
	if (bench_pool_ready(p) < keys)
		return bench_fail("a stock that does not fill", bench_pool_ready(p));
	from = look(p);
	bench_begin(&span);
	for (i = 0; i < nr; i++) {
		err = op(arg);
		if (err)
			return bench_fail("operation", err);
		cond_resched();
	}
	for (i = 0; i < 50; i++) {
		to = look(p);
		if (to.rekeyed - from.rekeyed >= keys)
			break;
		msleep(100);
	}
	*each = bench_end(&span) / nr;
	if (to.rekeyed - from.rekeyed != keys || to.replaced != from.replaced ||
	    to.takes - from.takes != keys) {
		pr_err("%u maps: %llu MRs used, %llu re-keyed, %llu replaced\n", nr,
		       to.takes - from.takes, to.rekeyed - from.rekeyed,
		       to.replaced - from.replaced);
		return -EIO;
	}
	return 0;
}

/* --- the caller's path --- */

struct one {
	struct bench *b;
	struct bench_pool p;
	unsigned int pages;
};

static __always_inline struct ib_pool_fmr *map(struct one *o)
{
	return ib_fmr_pool_map_phys(o->p.pool, o->b->list, o->pages, BENCH_IOVA);
}

static int map_unmap(void *arg)
{
	struct ib_pool_fmr *fmr = map(arg);

	return IS_ERR(fmr) ? PTR_ERR(fmr) : ib_fmr_pool_unmap(fmr);
}

static __always_inline struct ib_pool_fmr *map_sg(struct one *o)
{
	return ib_fmr_pool_map_sg(o->p.pool, o->b->sgl, o->pages, 0, (u64)o->pages << PAGE_SHIFT,
				  BENCH_IOVA);
}

/* Names of what is measured apart and together. */
struct names {
	const char *map;
	const char *unmap;
	const char *both;
};

/*
 * One call, or two, between two readings of the clock, with as little of our own as can be:
 * arguments are at hand, and whether it went well is asked afterwards.
 */
static __always_inline int together(struct one *o, bool sg, struct bench_samples *s)
{
	struct ib_pool_fmr *fmr;
	unsigned long flags;
	u64 from;

	local_irq_save(flags);
	from = bench_clock();
	fmr = sg ? map_sg(o) : map(o);
	if (!IS_ERR(fmr)) {
		ib_fmr_pool_unmap(fmr);
		bench_sample(s, bench_clock() - from);
	}
	local_irq_restore(flags);
	return PTR_ERR_OR_ZERO(fmr);
}

static __always_inline int apart(struct one *o, bool sg, struct bench_samples *s)
{
	struct ib_pool_fmr *fmr;
	unsigned long flags;
	u64 from, mid;

	local_irq_save(flags);
	from = bench_clock();
	fmr = sg ? map_sg(o) : map(o);
	mid = bench_clock();
	if (!IS_ERR(fmr)) {
		ib_fmr_pool_unmap(fmr);
		bench_sample(&s[1], bench_clock() - mid);
		bench_sample(&s[0], mid - from);
	}
	local_irq_restore(flags);
	return PTR_ERR_OR_ZERO(fmr);
}

static __always_inline int path(struct one *o, bool sg, const struct names *names)
{
	struct bench_samples *s = kcalloc(4, sizeof(*s), GFP_KERNEL);
	unsigned int k, nr = min_t(unsigned int, bench_pool_ready(&o->p), BURST);
	int err = 0;

	if (!s || nr < 64) {
		kfree(s);
		return bench_fail("a stock that does not fill", nr);
	}
	for (k = 0; k < 16 && !err; k++)	/* warming up */
		err = together(o, sg, &s[3]);
	for (; k < nr && !err; k++)
		err = k & 1 ? apart(o, sg, &s[0]) : together(o, sg, &s[2]);
	if (!err) {
		bench_result(names->map, o->pages, bench_median(&s[0]));
		bench_result(names->unmap, o->pages, bench_median(&s[1]));
		bench_result(names->both, o->pages, bench_median(&s[2]));
	}
	kfree(s);
	return err;
}

/* The dearest of many maps with interrupts off, calls of the worker among them. */
static int worst(struct one *o, unsigned int total)
{
	u64 dearest = 0, dearest_unmap = 0;
	int err = 0;

	o->pages = 1;
	while (total && !err) {
		unsigned int nr = min(bench_pool_ready(&o->p), total);

		if (!nr)
			return bench_fail("a stock that does not fill", 0);
		total -= nr;
		while (nr-- && !err) {
			struct ib_pool_fmr *fmr;
			unsigned long flags;
			u64 from, mid, to;

			local_irq_save(flags);
			from = bench_clock();
			fmr = map(o);
			mid = bench_clock();
			if (!IS_ERR(fmr))
				ib_fmr_pool_unmap(fmr);
			to = bench_clock();
			local_irq_restore(flags);
			err = PTR_ERR_OR_ZERO(fmr);
			dearest = max(dearest, mid - from);
			dearest_unmap = max(dearest_unmap, to - mid);
		}
		cond_resched();
	}
	bench_result("fmr_map_worst", 1, dearest);
	bench_result("fmr_unmap_worst", 1, dearest_unmap);
	return err;
}

static int caller(struct bench *b)
{
	static const struct names phys = { "fmr_map", "fmr_unmap", "fmr_map_unmap" };
	static const struct names sg = { "fmr_sg_map", "fmr_sg_unmap", "fmr_sg_map_unmap" };
	struct one o = { .b = b };
	unsigned int i;
	int err;

	err = bench_pool_create(b, &o.p, usual);
	for (i = 0; i < ARRAY_SIZE(bench_sizes) && !err; i++) {
		o.pages = bench_sizes[i];
		err = path(&o, false, &phys);
		if (!err)
			err = path(&o, true, &sg);
	}
	if (!err)
		err = worst(&o, 100000);
	bench_pool_destroy(&o.p);
	return err;
}

static int cached(struct bench *b)
{
	static const struct names names = { "fmr_cached_map", "fmr_cached_unmap", "fmr_cached" };
	struct ib_fmr_pool_param param = usual;
	struct one o = { .b = b };
	unsigned int i;
	int err;

	param.cache = 1;
	err = bench_pool_create(b, &o.p, param);
	for (i = 0; i < ARRAY_SIZE(bench_sizes) && !err; i++) {
		o.pages = bench_sizes[i];
		err = map_unmap(&o);
		if (!err)
			err = path(&o, false, &names);
	}
	bench_pool_destroy(&o.p);
	return err;
}

/* --- everything --- */

static int total(struct bench *b, const char *name, unsigned int key_maps, bool at_once)
{
	struct ib_fmr_pool_param param = usual;
	unsigned int i, per_key = max(key_maps, 1U);
	struct one o = { .b = b };
	int err;

	param.key_maps = key_maps;
	param.rekey_at_once = at_once;
	err = bench_pool_create(b, &o.p, param);
	for (i = 0; i < ARRAY_SIZE(bench_sizes) && !err; i++) {
		u64 each = 0;

		o.pages = bench_sizes[i];
		err = bench_cycle(&o.p, map_unmap, &o, POOL_SIZE * per_key, POOL_SIZE, &each);
		if (!err)
			bench_result(name, o.pages, each);
	}
	bench_pool_destroy(&o.p);
	return err;
}

/* --- an FMR of its own, whose unmap is a fence, beside a driver MR that comes and goes --- */

#define FENCES	40

static int fences(struct bench *b)
{
	struct ib_fmr_attr attr = {
		.max_pages = BENCH_PAGES, .max_maps = 1, .page_shift = PAGE_SHIFT,
	};
	struct bench_samples *s = kcalloc(2, sizeof(*s), GFP_KERNEL);
	struct ib_fmr *fmr = ib_alloc_fmr(b->pd, BENCH_ACCESS, &attr);
	int i, err = s ? PTR_ERR_OR_ZERO(fmr) : -ENOMEM;

	for (i = 0; i < FENCES && !err; i++) {
		struct bench_span span;
		struct ib_mr *mr;
		LIST_HEAD(list);

		err = ib_map_phys_fmr(fmr, b->list, 1, BENCH_IOVA);
		if (err)
			break;
		list_add(&fmr->list, &list);
		bench_begin(&span);
		err = ib_unmap_fmr(&list);
		bench_sample(&s[0], bench_end(&span));
		if (err)
			break;
		bench_begin(&span);
		mr = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, BENCH_PAGES);
		if (!IS_ERR(mr))
			ib_dereg_mr_user(mr, NULL);
		bench_sample(&s[1], bench_end(&span));
		err = PTR_ERR_OR_ZERO(mr);
	}
	if (!err) {
		bench_result("unmap_fmr", 1, bench_median(&s[0]));
		bench_result("alloc_dereg_mr", 1, bench_median(&s[1]));
	}
	if (!IS_ERR_OR_NULL(fmr))
		ib_dealloc_fmr(fmr);
	kfree(s);
	return err;
}

/* --- large and contiguous memory, the caller's path --- */

#define LARGE_SHIFT	21
#define LARGE_PAGES	16
#define LARGE_FIRST	(PAGE_OFFSET + SZ_64M)	/* of memory that is never touched */

/* Pages of 2 MiB, in an order in which no two touch; each map retires the one before. */
static int large(struct bench *b)
{
	struct ib_fmr_attr attr = {
		.max_pages = LARGE_PAGES, .max_maps = 64, .page_shift = LARGE_SHIFT,
	};
	struct bench_samples *s = kzalloc(sizeof(*s), GFP_KERNEL);
	struct ib_fmr *fmr = ib_alloc_fmr(b->pd, BENCH_ACCESS, &attr);
	int i, err = s ? PTR_ERR_OR_ZERO(fmr) : -ENOMEM;
	u64 list[LARGE_PAGES];
	LIST_HEAD(head);

	for (i = 0; i < LARGE_PAGES; i++)
		list[i] = LARGE_FIRST + ((u64)((i * 7) % LARGE_PAGES) << LARGE_SHIFT);
	for (i = 0; i < 24 && !err; i++) {
		unsigned long flags;
		u64 from;

		local_irq_save(flags);
		from = bench_clock();
		err = ib_map_phys_fmr(fmr, list, LARGE_PAGES, 0);
		if (i > 2)
			bench_sample(s, bench_clock() - from);
		local_irq_restore(flags);
		msleep(300);	/* the stock fills again */
	}
	if (!err)
		bench_result("fmr_map_large", LARGE_PAGES, bench_median(s));
	if (!IS_ERR(fmr)) {
		list_add(&fmr->list, &head);
		ib_unmap_fmr(&head);
		ib_dealloc_fmr(fmr);
	}
	kfree(s);
	return err;
}

#define ROW_PAGES	64

/* Pages that follow each other, at an iova that is congruent to them, as list or scatterlist. */
static int in_a_row(struct bench *b, const char *name, bool sg)
{
	struct bench_samples *s = kzalloc(sizeof(*s), GFP_KERNEL);
	u64 *list = kcalloc(ROW_PAGES, sizeof(*list), GFP_KERNEL);
	struct scatterlist one;
	struct bench_pool p = {};
	int i, nr, err = -ENOMEM;

	sg_init_table(&one, 1);
	sg_dma_address(&one) = LARGE_FIRST;
	sg_dma_len(&one) = ROW_PAGES << PAGE_SHIFT;
	if (s && list)
		err = bench_pool_create(b, &p, usual);
	if (err)
		goto out;
	for (i = 0; i < ROW_PAGES; i++)
		list[i] = LARGE_FIRST + ((u64)i << PAGE_SHIFT);
	nr = min_t(int, bench_pool_ready(&p), BURST);
	for (i = 0; i < nr && !err; i++) {
		struct ib_pool_fmr *fmr;
		unsigned long flags;
		u64 from;

		local_irq_save(flags);
		from = bench_clock();
		fmr = sg ? ib_fmr_pool_map_sg(p.pool, &one, 1, 0, ROW_PAGES << PAGE_SHIFT,
					      LARGE_FIRST)
			 : ib_fmr_pool_map_phys(p.pool, list, ROW_PAGES, LARGE_FIRST);
		if (!IS_ERR(fmr)) {
			ib_fmr_pool_unmap(fmr);
			if (i > 15)
				bench_sample(s, bench_clock() - from);
		}
		local_irq_restore(flags);
		err = PTR_ERR_OR_ZERO(fmr);
	}
	if (!err)
		bench_result(name, ROW_PAGES, bench_median(s));
out:
	bench_pool_destroy(&p);
	kfree(list);
	kfree(s);
	return err;
}

int bench_fmr(struct bench *b)
{
	int err = caller(b);

	if (!err)
		err = in_a_row(b, "fmr_row_map_unmap", false);
	if (!err)
		err = in_a_row(b, "fmr_sg_row_map_unmap", true);
	if (!err)
		err = large(b);
	if (!err)
		err = cached(b);
	if (!err)
		err = total(b, "fmr_cycle_total", 0, false);
	if (!err)
		err = total(b, "fmr_cycle_total_keep16", 16, false);
	if (!err)
		err = total(b, "fmr_cycle_total_at_once", 0, true);
	if (!err)
		err = fences(b);
	return err ? bench_fail("fmr", err) : 0;
}
