// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A fuzzer of sequences of calls. Loading the module is the run:
 *
 *	insmod ib_mr_fuzz.ko ops=100000 seed=1
 *
 * The parameter `verdict` is 0 then, when all was well; it is loaded all the same when it was not,
 * since insmod tries twice. The run is cut into episodes; each begins with nothing
 * registered and ends with all of it taken back, and its steps follow from the seed and its number,
 * so that any episode can be had again by itself (ops=, episode=). When one goes wrong its steps
 * are left out, half of them, a quarter, ..., one, for as long as it goes wrong in the same way
 * without them; what is left is printed, step by step.
 *
 * Keys are the driver's to choose and at random, so two runs of a sequence differ in them. Nothing
 * a step does depends on a key's value, but a guessed key that hits is as good as none.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mman.h>
#include <linux/module.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "base/compat.h"
#include "fuzz.h"

static ulong ops = 100000;
module_param(ops, ulong, 0444);
MODULE_PARM_DESC(ops, "steps in all");

static ulong seed = 1;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "where the steps come from");

static uint length = 2000;
module_param(length, uint, 0444);
MODULE_PARM_DESC(length, "steps of an episode");

static uint episode;
module_param(episode, uint, 0444);
MODULE_PARM_DESC(episode, "the first episode, counted from 0");

static bool verbose;
module_param(verbose, bool, 0444);
MODULE_PARM_DESC(verbose, "tell every step");

static int verdict = -1;
module_param(verdict, int, 0444);
MODULE_PARM_DESC(verdict, "what came of it: 0, or what is wrong");

#define LOOK_EVERY	64	/* steps between two looks at all memory */
#define REPLAYS		600	/* to shrink a sequence */

struct fz_stats fz_stats;
static struct ib_device *fz_device;
static struct ib_pd *fz_peer_pd;
static struct ib_mw *fz_keeper;	/* keeps the device's stocks for windows from going and coming */
static struct page *fz_user_page[FZ_USER];
static unsigned long fz_user_addr;

static const struct {
	void (*run)(struct fz_world *w, const struct fz_step *s);
	const char *name;
	unsigned int weight;
} kinds[] = {
	{ fz_region_reg, "register", 60 },
	{ fz_region_rereg, "re-register", 25 },
	{ fz_region_dereg, "deregister", 30 },
	{ fz_user, "user memory", 12 },
	{ fz_arena, "arena", 6 },
	{ fz_slice, "slice", 20 },
	{ fz_fmr_map, "FMR map", 70 },
	{ fz_fmr_unmap, "FMR unmap", 20 },
	{ fz_fmr_free, "FMR free", 4 },
	{ fz_pool_map, "pool map", 120 },
	{ fz_pool_unmap, "pool unmap", 90 },
	{ fz_pool_flush, "pool flush", 5 },
	{ fz_pool_free, "pool destroy", 2 },
	{ fz_window_bind, "bind", 80 },
	{ fz_window_unbind, "unbind", 25 },
	{ fz_window_free, "window free", 10 },
	{ fz_invalidate, "invalidate", 15 },
	{ fz_access, "access", 420 },
	{ fz_ask, "ask", 200 },
	{ fz_copy, "copy", 60 },
};

void fz_fail(struct fz_world *w, const char *what, const char *fmt, ...)
{
	va_list args;

	if (w->what)
		return;
	va_start(args, fmt);
	vscnprintf(w->text, sizeof(w->text), fmt, args);
	va_end(args);
	w->what = what;
}

void fz_tell(struct fz_world *w, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	if (!w->tell)
		return;
	va_start(args, fmt);
	vaf.va = &args;
	pr_info("%5u: %pV\n", w->at, &vaf);
	va_end(args);
}

/* --- a world --- */

static int fill_pages(struct fz_world *w)
{
	struct rnd_state rnd;
	unsigned int i;

	prandom_seed_state(&rnd, 7);
	for (i = 0; i < FZ_PAGES; i++) {
		struct fz_page *page = &w->page[i];

		page->shadow = (u8 *)__get_free_page(GFP_KERNEL | __GFP_ZERO);
		if (!page->shadow)
			return -ENOMEM;
		if (i >= FZ_FIRST_ARENA)
			continue;
		/* Of two pages in a row the first, so that no two are neighbours. */
		page->va = i < FZ_PLAIN ? (u8 *)__get_free_pages(GFP_KERNEL, 1) :
					  page_address(fz_user_page[i - FZ_FIRST_USER]);
		if (!page->va)
			return -ENOMEM;
		prandom_bytes_state(&rnd, page->shadow, PAGE_SIZE);
		memcpy(page->va, page->shadow, PAGE_SIZE);
	}
	return 0;
}

static int world_make(struct fz_world *w)
{
	unsigned int i;
	int err;

	w->dev = fz_device;
	w->user = fz_user_addr;
	err = fill_pages(w);
	for (i = 0; i < FZ_PDS && !err; i++) {
		w->pd[i] = ib_alloc_pd(w->dev, 0);
		err = PTR_ERR_OR_ZERO(w->pd[i]);
		if (!err) {
			w->wire[i] = fz_wire_make(fz_peer_pd, w->pd[i]);
			err = w->wire[i] ? 0 : -EIO;
		}
	}
	return err;
}

/* All is taken back; each of these calls must succeed. */
static void world_free(struct fz_world *w)
{
	unsigned int i;

	fz_windows_end(w);
	fz_mapped_end(w);
	fz_regions_end(w);
	fz_look_all(w, "memory at the end");
	for (i = 0; i < FZ_PDS; i++) {
		fz_wire_free(w->wire[i]);
		if (!IS_ERR_OR_NULL(w->pd[i]))
			fz_called(w, "ib_dealloc_pd", ib_dealloc_pd(w->pd[i]), true);
	}
	if (!ib_mr_check_invariants(w->dev))
		fz_fail(w, "invariants", "the counters do not agree");
	for (i = 0; i < FZ_PAGES; i++) {
		free_page((unsigned long)w->page[i].shadow);
		if (i < FZ_PLAIN)
			free_pages((unsigned long)w->page[i].va, 1);
	}
}

/* --- an episode --- */

/* The result stands in *@w: @what is NULL when all went well. */
static int play(struct fz_world *w, const struct fz_step *step, unsigned int n, bool tell)
{
	int err;

	memset(w, 0, sizeof(*w));
	w->tell = tell;
	err = world_make(w);
	for (w->at = 0; w->at < n && !w->what && !err; w->at++) {
		kinds[step[w->at].kind].run(w, &step[w->at]);
		if (w->at % LOOK_EVERY == LOOK_EVERY - 1)
			fz_look_all(w, "memory");
		fz_stats.steps++;
		cond_resched();
	}
	world_free(w);
	if (err)
		pr_err("no world: %d\n", err);
	return err;
}

static void draw(struct fz_step *step, unsigned int n, u64 from)
{
	unsigned int i, k, total = 0;
	struct rnd_state rnd;
	u32 r;

	for (k = 0; k < ARRAY_SIZE(kinds); k++)
		total += kinds[k].weight;
	prandom_seed_state(&rnd, from);
	for (i = 0; i < n; i++) {
		r = prandom_u32_state(&rnd) % total;
		for (k = 0; r >= kinds[k].weight; k++)
			r -= kinds[k].weight;
		step[i] = (struct fz_step){
			.kind = k, .a = prandom_u32_state(&rnd), .b = prandom_u32_state(&rnd),
			.c = prandom_u32_state(&rnd), .d = prandom_u32_state(&rnd),
		};
	}
}

/* Does it still go wrong in the way it did? */
static bool still(struct fz_world *w, const struct fz_step *step, unsigned int n, const char *what)
{
	return !play(w, step, n, false) && w->what && !strcmp(w->what, what);
}

/* Return: how many of the @n steps are left. */
static unsigned int shrink(struct fz_world *w, struct fz_step *step, unsigned int n)
{
	struct fz_step *less = vmalloc(array_size(n, sizeof(*less)));
	unsigned int chunk, at, len, before, replays = 0;
	const char *what = w->what;

	if (!less)
		return n;
	for (chunk = n / 2; chunk && replays < REPLAYS; ) {
		before = n;
		for (at = 0; at < n && replays < REPLAYS; ) {
			len = min(chunk, n - at);
			memcpy(less, step, at * sizeof(*less));
			memcpy(less + at, step + at + len, (n - at - len) * sizeof(*less));
			replays++;
			if (still(w, less, n - len, what)) {
				n = min(n - len, w->at);	/* what came after is not needed */
				memcpy(step, less, n * sizeof(*less));
			} else {
				at += len;
			}
		}
		if (n == before || chunk > 1)	/* by ones until nothing more goes */
			chunk /= 2;
	}
	vfree(less);
	pr_info("shrunk to %u steps in %u replays\n", n, replays);
	return n;
}

static void went_wrong(struct fz_world *w, struct fz_step *step, unsigned int n, unsigned int nth)
{
	unsigned int i;

	pr_err("WRONG in episode %u (seed %lu, length %u) at step %u: %s: %s\n", nth, seed, length,
	       w->at, w->what, w->text);
	n = min(n, w->at);
	n = shrink(w, step, n);
	if (play(w, step, n, true) || !w->what)
		pr_err("it does not go wrong every time\n");
	else
		pr_err("WRONG: %s: %s\n", w->what, w->text);
	for (i = 0; i < n; i++)
		pr_info("step %u: %s %#x %#x %#x %#x\n", i, kinds[step[i].kind].name, step[i].a,
			step[i].b, step[i].c, step[i].d);
}

static void report(unsigned int nth)
{
	pr_info("%llu steps in %u episodes: %llu calls (%llu refused, %llu -EAGAIN)\n",
		fz_stats.steps, nth, fz_stats.calls, fz_stats.refused, fz_stats.again);
	pr_info("%llu RDMA (%llu allowed, %llu refused, %llu unjudged), %llu connections, %llu questions, %llu copies\n",
		fz_stats.rdma, fz_stats.allowed, fz_stats.denied, fz_stats.unjudged,
		fz_stats.reconnects, fz_stats.checks, fz_stats.copies);
}

static int run(void)
{
	unsigned int nth, first = episode, episodes = DIV_ROUND_UP(ops, length);
	struct fz_step *step = vmalloc(array_size(length, sizeof(*step)));
	struct fz_world *w = vzalloc(sizeof(*w));
	u64 told = 0;
	int err = step && w ? 0 : -ENOMEM;

	for (nth = first; nth < first + episodes && !err; nth++) {
		draw(step, length, seed * 1000003 + nth);
		err = play(w, step, length, verbose);
		if (!err && w->what) {
			went_wrong(w, step, length, nth);
			err = -EIO;
		}
		if (fz_stats.steps - told >= ops / 20) {
			told = fz_stats.steps;
			report(nth - first + 1);
		}
		if (fatal_signal_pending(current))
			err = -EINTR;
	}
	report(nth - first);
	pr_info("%s\n", err ? "failed" : "clean");
	vfree(step);
	vfree(w);
	return err;
}

/* --- the process that loads us: its memory --- */

static int user_get(void)
{
	long got = -EINVAL;

	if (!current->mm)
		return got;
	fz_user_addr = vm_mmap(NULL, 0, FZ_USER * PAGE_SIZE, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, 0);
	if (IS_ERR_VALUE(fz_user_addr))
		return fz_user_addr;
	got = get_user_pages_fast(fz_user_addr, FZ_USER, FOLL_WRITE, fz_user_page);
	return got == FZ_USER ? 0 : -EFAULT;
}

static void user_put(void)
{
	unsigned int i;

	for (i = 0; i < FZ_USER; i++)
		if (fz_user_page[i])
			put_page(fz_user_page[i]);
	if (fz_user_addr && !IS_ERR_VALUE(fz_user_addr))
		vm_munmap(fz_user_addr, FZ_USER * PAGE_SIZE);
}

static int fz_add(struct ib_device *dev)
{
	if (!fz_device && dev->ops.driver_id == RDMA_DRIVER_RXE)
		fz_device = dev;
	return 0;
}

static struct ib_client fz_client = { .name = KBUILD_MODNAME, .add = fz_add };

static int __init fz_init(void)
{
	int err;

	if (!length || length > 100000)
		return -EINVAL;
	err = ib_register_client(&fz_client);
	if (err)
		return err;
	err = fz_device ? user_get() : -ENODEV;
	if (!err) {
		fz_peer_pd = ib_alloc_pd(fz_device, IB_PD_UNSAFE_GLOBAL_RKEY);
		err = PTR_ERR_OR_ZERO(fz_peer_pd);
	}
	if (!err) {
		fz_keeper = ib_alloc_mw(fz_peer_pd, IB_MW_TYPE_1);
		err = PTR_ERR_OR_ZERO(fz_keeper);
	}
	if (!err)
		verdict = run();
	if (!IS_ERR_OR_NULL(fz_keeper))
		ib_dealloc_mw(fz_keeper);
	if (!IS_ERR_OR_NULL(fz_peer_pd))
		ib_dealloc_pd(fz_peer_pd);
	user_put();
	ib_unregister_client(&fz_client);
	return err;
}

static void __exit fz_exit(void)
{
}

module_init(fz_init);
module_exit(fz_exit);

MODULE_DESCRIPTION("Fuzzer of ib_mr's calls");
MODULE_LICENSE("Dual BSD/GPL");
