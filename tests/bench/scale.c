// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Size: what regions of all sizes cost, and what must not grow with the number of objects.
 *
 * Regions here are of linear-map memory with local rights, which is never touched, so a region of
 * 1 GiB takes no memory but its own description. Scattered means a list of pages that runs
 * backwards: no page begins where the one before it ends. In lookups and pools "pages" is how
 * many runs, regions or FMRs there are. What the lookups answer is compared with what it must be.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/sizes.h>

#include "bench.h"
#include "mr/region.h"

#define FIRST		(PAGE_OFFSET + SZ_32M)
#define MOST_RUNS	(SZ_1G >> PAGE_SHIFT)
#define IOVA		0x40000000ULL

/*
 * @pages as one piece; or so that no two of them touch; or as so many runs of one or two, so that
 * where one begins does not follow from its number.
 */
enum shape { PIECE, SCATTERED, UNEVEN };

/* @cost: of the call; or NULL. */
static struct ib_mr *region_with(struct bench *b, unsigned int pages, enum shape shape, int access,
				 u64 *cost)
{
	unsigned int i, nr = shape == PIECE ? 1 : pages;
	struct ib_phys_buf *buf = kvcalloc(nr, sizeof(*buf), GFP_KERNEL);
	u64 iova = IOVA, end = FIRST;
	struct bench_span span;
	struct ib_mr *mr;

	if (!buf)
		return ERR_PTR(-ENOMEM);
	for (i = 0; i < nr; i++) {
		buf[i].size = PAGE_SIZE << (shape == UNEVEN ? get_random_u32() & 1 : 0);
		if (shape == PIECE)
			buf[i].size = (u64)pages << PAGE_SHIFT;
		end += buf[i].size;
	}
	for (i = 0; i < nr; i++) {
		end -= buf[i].size;
		buf[i].addr = end;
	}
	bench_begin(&span);
	mr = ib_reg_phys_mr(b->pd, buf, nr, access, &iova);
	if (cost)
		*cost = bench_end(&span);
	kvfree(buf);
	return mr;
}

static struct ib_mr *region(struct bench *b, unsigned int pages, enum shape shape, u64 *cost)
{
	return region_with(b, pages, shape, IB_ACCESS_LOCAL_WRITE, cost);
}

/* --- regions of all sizes --- */

static int region_cost(struct bench *b, struct bench_samples *s, unsigned int pages,
		       enum shape shape)
{
	struct bench_samples *gone = s + 1;
	struct bench_span span;
	struct ib_mr *mr;
	u64 cost;
	int i;

	for (i = 0; i < 8; i++) {
		mr = region(b, pages, shape, &cost);
		if (IS_ERR(mr))
			return PTR_ERR(mr);
		if (i)
			bench_sample(s, cost);
		bench_begin(&span);
		ib_dereg_mr(mr);
		if (i)
			bench_sample(gone, bench_end(&span));
		cond_resched();
	}
	bench_result(shape ? "reg_phys_scattered" : "reg_phys", pages, bench_median(s));
	bench_result(shape ? "dereg_scattered" : "dereg_phys", pages, bench_median(gone));
	return 0;
}

/* The same memory by FRWR: an MR, its list of pages, REG_MR, and all of it back again. */
static int frwr_once(struct bench *b, struct bench_qp *q, struct scatterlist *sgl,
		     unsigned int pages, u64 *cost)
{
	struct ib_mr *mr;
	struct ib_reg_wr reg = {
		.wr = {
			.wr_cqe = &q->cqe, .opcode = IB_WR_REG_MR, .send_flags = IB_SEND_SIGNALED,
		},
		.access = IB_ACCESS_LOCAL_WRITE,
	};
	struct bench_span span;
	int err = 0;

	bench_begin(&span);
	mr = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, pages);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	if (ib_map_mr_sg(mr, sgl, pages, NULL, PAGE_SIZE) != pages)
		err = -EIO;
	reg.mr = mr;
	reg.key = mr->lkey;
	if (!err)
		err = ib_post_send(q->qp, &reg.wr, NULL);
	if (!err)
		err = bench_qp_wait(q);
	*cost = bench_end(&span);
	ib_dereg_mr_user(mr, NULL);
	return err;
}

static int frwr_cost(struct bench *b, struct bench_samples *s, unsigned int pages)
{
	struct scatterlist *sgl = kvcalloc(pages + 1, sizeof(*sgl), GFP_KERNEL);
	struct bench_qp *q = bench_qp_create(b, false);
	int i, err = sgl ? PTR_ERR_OR_ZERO(q) : -ENOMEM;
	u64 cost;

	for (i = 0; i < pages && !err; i++) {
		sg_dma_address(&sgl[i]) = FIRST + (u64)i * PAGE_SIZE;
		sg_dma_len(&sgl[i]) = PAGE_SIZE;
	}
	for (i = 0; i < 4 && !err; i++) {
		err = frwr_once(b, q, sgl, pages, &cost);
		if (i)
			bench_sample(s, cost);
		cond_resched();
	}
	if (!err)
		bench_result("frwr_region", pages, bench_median(s));
	if (!IS_ERR(q))
		bench_qp_destroy(q);
	kvfree(sgl);
	return err;
}

static int sizes(struct bench *b, struct bench_samples *s)
{
	static const unsigned int pages[] = { 1, 16, 256, 4096, 65536, MOST_RUNS };
	unsigned int i;
	int err = 0;

	if (totalram_pages() < MOST_RUNS + (SZ_256M >> PAGE_SHIFT)) {
		pr_err("the guest has not 1 GiB to register\n");
		return -ENOMEM;
	}
	for (i = 0; i < ARRAY_SIZE(pages) && !err; i++) {
		err = region_cost(b, s, pages[i], PIECE);
		if (!err)
			err = region_cost(b, s, pages[i], SCATTERED);
		if (!err)
			err = frwr_cost(b, s, pages[i]);
	}
	return err;
}

/* What the right to bind windows adds: instructions, and memory of the whole system in KiB. */
static int bindable(struct bench *b, struct bench_samples *s, const char *cost_name,
		    const char *memory_name, int access)
{
	enum { REGIONS = 9, PAGES = SZ_64M >> PAGE_SHIFT };
	struct ib_mr *mr[REGIONS];
	int i, nr, err = 0;
	long before = 0;
	u64 cost;

	for (nr = 0; nr < REGIONS && !err; nr++) {
		if (nr == 1)	/* what the first one of its kind leaves behind does not count */
			before = si_mem_available();
		mr[nr] = region_with(b, PAGES, SCATTERED, access, &cost);
		err = PTR_ERR_OR_ZERO(mr[nr]);
		if (err)
			break;
		bench_sample(s, cost);
		cond_resched();
	}
	if (!err) {
		before -= si_mem_available();
		bench_result(cost_name, PAGES, bench_median(s));
		bench_result(memory_name, PAGES,
			     max(before, 0L) * (PAGE_SIZE / SZ_1K) / (REGIONS - 1));
	}
	for (i = 0; i < nr; i++)
		ib_dereg_mr(mr[i]);
	return err;
}

static int binds(struct bench *b, struct bench_samples *s)
{
	const int access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ;
	int err = bindable(b, s, "reg_not_bindable", "memory_not_bindable", access);

	return err ? err : bindable(b, s, "reg_bindable", "memory_bindable",
				    access | IB_ACCESS_MW_BIND);
}

/* --- lookups --- */

/* A byte of run @at as the region has it, and where it must be in memory. */
static u64 byte_of(struct ib_mr *mr, u32 at, u64 *must)
{
	const struct ibmr_pagevec *pv =
		&container_of(mr, struct ibmr_region, mr)->reg->mem->pv;

	if (pv->nr == 1) {
		*must = pv->one.addr + (u64)at * PAGE_SIZE + 100;
		return (u64)at * PAGE_SIZE + 100;
	}
	*must = pv->runs[at].addr + 100;
	return pv->runs[at].start + 100;
}

static int translate(struct bench *b, struct bench_samples *s, struct ib_mr *mr,
		     const char *name, unsigned int runs)
{
	int i;

	for (i = 0; i < 200; i++) {
		u64 must, off, from;
		struct ib_mr_run run;
		unsigned long flags;
		int n;

		off = byte_of(mr, get_random_u32() % (runs == 1 ? MOST_RUNS : runs), &must);
		local_irq_save(flags);
		from = bench_clock();
		n = ib_mr_translate(b->pd, mr->lkey, IOVA + off, 64, &run, 1);
		bench_sample(s, bench_clock() - from);
		local_irq_restore(flags);
		if (n != 1 || run.addr != must || run.len != 64)
			return -EIO;
	}
	bench_result(name, runs, bench_median(s));
	return 0;
}

/* Ours alone: not the driver's list of blocks. */
static size_t own_memory(struct ib_mr *mr)
{
	struct ibmr_region *region = container_of(mr, struct ibmr_region, mr);
	const struct ibmr_pagevec *pv = &region->reg->mem->pv;
	size_t runs = pv->nr * sizeof(*pv->runs);

	if (pv->runs == &pv->one)
		runs = 0;
	else
		runs = is_vmalloc_addr(pv->runs) ? PAGE_ALIGN(runs) : ksize(pv->runs);
	/* Its places in the table of handles and in that of keys are a few words more. */
	return ksize(region) + ksize(region->reg) + ksize(region->reg->mem) + runs +
	       8 * sizeof(void *);
}

static int lookups(struct bench *b, struct bench_samples *s)
{
	static const struct {
		const char *name;
		enum shape shape;
		unsigned int runs;
		bool memory;
	} of[] = {
		{ "translate", PIECE, 1, true },
		{ "translate", SCATTERED, 1000, false },
		{ "translate", SCATTERED, MOST_RUNS, true },
		{ "translate_uneven", UNEVEN, 1000, false },
		{ "translate_uneven", UNEVEN, MOST_RUNS, false },
	};
	unsigned int i;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(of) && !err; i++) {
		unsigned int pages = of[i].shape == PIECE ? MOST_RUNS : of[i].runs;
		struct ib_mr *mr = region(b, pages, of[i].shape, NULL);

		if (IS_ERR(mr))
			return PTR_ERR(mr);
		err = translate(b, s, mr, of[i].name, of[i].runs);
		if (of[i].memory)
			bench_result("region_memory", of[i].runs, own_memory(mr));
		ib_dereg_mr(mr);
	}
	return err;
}

/* --- many regions --- */

#define MOST_REGIONS	100000

static int check(struct bench *b, struct bench_samples *s, struct ib_mr **mr, unsigned int nr)
{
	int i;

	for (i = 0; i < 200; i++) {
		struct ib_mr *one = mr[get_random_u32() % nr];
		enum ib_mr_reason why;
		unsigned long flags;
		u64 from;

		local_irq_save(flags);
		from = bench_clock();
		why = ib_mr_check(b->pd, one->lkey, one->iova + 5, 64, IB_ACCESS_LOCAL_WRITE,
				  false);
		bench_sample(s, bench_clock() - from);
		local_irq_restore(flags);
		if (why)
			return -EIO;
	}
	bench_result("check", nr, bench_median(s));
	return 0;
}

static int many_regions(struct bench *b, struct bench_samples *s)
{
	struct ib_phys_buf buf = { .addr = b->list[0], .size = PAGE_SIZE };
	struct ib_mr **mr = kvcalloc(MOST_REGIONS, sizeof(*mr), GFP_KERNEL);
	unsigned int nr, next = 10;
	int err = mr ? 0 : -ENOMEM;

	for (nr = 0; nr < MOST_REGIONS && !err; nr++) {
		u64 iova = buf.addr;

		mr[nr] = ib_reg_phys_mr(b->pd, &buf, 1, IB_ACCESS_LOCAL_WRITE, &iova);
		if (IS_ERR(mr[nr])) {
			err = PTR_ERR(mr[nr]);
			break;
		}
		if (nr + 1 == next) {
			err = check(b, s, mr, next);
			next *= 10;
		}
		cond_resched();
	}
	while (nr) {
		ib_dereg_mr(mr[--nr]);
		cond_resched();
	}
	kvfree(mr);
	return err;
}

/* --- many FMRs --- */

#define MOST_FMRS	100000

static int map_all(struct bench *b, struct ib_fmr_pool *pool, struct ib_pool_fmr **fmr,
		   unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		fmr[i] = ib_fmr_pool_map_phys(pool, b->list, 1, BENCH_IOVA);
		if (IS_ERR(fmr[i])) {
			int err = PTR_ERR(fmr[i]);

			while (i)
				ib_fmr_pool_unmap(fmr[--i]);
			return err;
		}
		if (i % 1024 == 0)
			cond_resched();
	}
	return 0;
}

/* A pool's life, by parts, each for one FMR. */
static int pool_life(struct bench *b, struct ib_pool_fmr **fmr, unsigned int nr)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = 1, .page_shift = PAGE_SHIFT, .access = BENCH_ACCESS,
		.pool_size = nr, .dirty_watermark = nr,
	};
	u64 created, mapped, flushed = 0;
	struct bench_span span;
	struct ib_fmr_pool *pool;
	unsigned int i;
	int err;

	bench_begin(&span);
	pool = ib_create_fmr_pool(b->pd, &param);
	created = bench_end(&span);
	if (IS_ERR(pool))
		return PTR_ERR(pool);

	bench_begin(&span);
	err = map_all(b, pool, fmr, nr);
	mapped = bench_end(&span);
	if (!err) {
		bench_begin(&span);
		for (i = 0; i < nr; i++)
			ib_fmr_pool_unmap(fmr[i]);
		ib_flush_fmr_pool(pool);
		flushed = bench_end(&span);
	}
	bench_begin(&span);
	ib_destroy_fmr_pool(pool);
	if (err)
		return err;
	bench_result("pool_destroy", nr, bench_end(&span) / nr);
	bench_result("pool_create", nr, created / nr);
	bench_result("pool_map_all", nr, mapped / nr);
	bench_result("pool_flush", nr, flushed / nr);
	return 0;
}

static int many_fmrs(struct bench *b)
{
	struct ib_pool_fmr **fmr = kvcalloc(MOST_FMRS, sizeof(*fmr), GFP_KERNEL);
	unsigned int nr;
	int err = fmr ? 0 : -ENOMEM;

	for (nr = 1000; nr <= MOST_FMRS && !err; nr *= 10)
		err = pool_life(b, fmr, nr);
	kvfree(fmr);
	return err;
}

/* --- arenas --- */

#define FEW_SLICES	1000
#define MOST_SLICES	1000000
#define GRANULE		64
#define ROOM		64	/* slices that are not taken */

/*
 * A slice out of an arena that has @nr of them out: the next one, and one whose place was freed
 * before at random. Neither may cost more for the number.
 */
static int arena_of(struct bench *b, struct bench_samples *s, unsigned int nr)
{
	struct ib_mr_slice *slice = kvcalloc(nr, sizeof(*slice), GFP_KERNEL), one;
	struct bench_samples *again = s + 1;
	struct ib_mr_scope *scope;
	struct ib_mr_arena *arena;
	int err = -ENOMEM, i;
	unsigned long flags;
	u64 from;

	if (!slice)
		return err;
	scope = ib_mr_scope_create(b->pd);
	err = PTR_ERR_OR_ZERO(scope);
	if (err)
		goto out;
	/* The scope takes back what is out. */
	arena = ib_mr_scope_arena(scope, ib_mr_arena_create(b->pd, (size_t)(nr + ROOM) * GRANULE,
							    IB_ACCESS_LOCAL_WRITE, 0));
	err = PTR_ERR_OR_ZERO(arena);
	for (i = 0; i < nr && !err; i++) {
		err = ib_mr_arena_alloc(arena, GRANULE, &slice[i]);
		if (i % 1024 == 0)
			cond_resched();
	}
	for (i = 0; i < ROOM && !err; i++) {
		local_irq_save(flags);
		from = bench_clock();
		err = ib_mr_arena_alloc(arena, GRANULE, &one);
		bench_sample(s, bench_clock() - from);
		local_irq_restore(flags);
	}
	for (i = 0; i < ROOM && !err; i++) {
		struct ib_mr_slice *any = &slice[get_random_u32() % nr];

		err = ib_mr_arena_free(arena, any);
		local_irq_save(flags);
		from = bench_clock();
		err = err ?: ib_mr_arena_alloc(arena, GRANULE, any);
		bench_sample(again, bench_clock() - from);
		local_irq_restore(flags);
	}
	if (!err) {
		bench_result("arena_alloc", nr, bench_median(s));
		bench_result("arena_again", nr, bench_median(again));
	}
	ib_mr_scope_release(scope);
out:
	kvfree(slice);
	return err;
}

int bench_scale(struct bench *b)
{
	struct bench_samples *s = kcalloc(2, sizeof(*s), GFP_KERNEL);
	int err = s ? sizes(b, s) : -ENOMEM;

	if (!err)
		err = binds(b, s);
	if (!err)
		err = lookups(b, s);
	if (!err)
		err = many_regions(b, s);
	if (!err)
		err = many_fmrs(b);
	if (!err)
		err = arena_of(b, s, FEW_SLICES);
	if (!err)
		err = arena_of(b, s, MOST_SLICES);
	kfree(s);
	return err ? bench_fail("scale", err) : 0;
}
