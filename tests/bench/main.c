// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * In-kernel benchmarks: loading the module runs them all on the first rxe device.
 *
 * The figures stand in debugfs, ib_mr_bench/results, one to a line: name, pages, instructions.
 * What they are measured against and how they are shown is scripts/bench's.
 *
 * The clock is the CPU's cycle counter. In a guest under icount it counts instructions; a loop of
 * known length tells whether it does, and without that nothing is measured, unless the parameter
 * "anyway" says that ticks of whatever kind are wanted.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/tick.h>

#include "bench.h"
#include "base/compat.h"

static bool anyway;
module_param(anyway, bool, 0444);
MODULE_PARM_DESC(anyway, "measure although the clock does not count instructions");

const unsigned int bench_sizes[5] = { 1, 4, 16, 64, 256 };

static char *parts = "";
module_param(parts, charp, 0444);
MODULE_PARM_DESC(parts, "what to measure, names with commas between (default: everything)");

#define MAX_RESULTS	512

static struct result {
	char name[32];
	unsigned int pages;
	u64 instructions;
} *results;

static unsigned int nr_results;
static u64 clock_cost;
static struct dentry *debugfs;

void bench_result(const char *name, unsigned int pages, u64 instructions)
{
	struct result *r;

	if (WARN_ON(nr_results == MAX_RESULTS))
		return;
	r = &results[nr_results++];
	strscpy(r->name, name, sizeof(r->name));
	r->pages = pages;
	r->instructions = instructions;
}

int bench_fail(const char *what, long err)
{
	pr_err("%s: %ld\n", what, err);
	return err && err < 0 ? err : -EIO;
}

static int compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

u64 bench_median(struct bench_samples *s)
{
	u64 middle;

	if (!s->nr)
		return 0;
	sort(s->v, s->nr, sizeof(s->v[0]), compare, NULL);
	middle = s->v[s->nr / 2];
	s->nr = 0;
	return middle > clock_cost ? middle - clock_cost : 0;
}

/* Idle time is kept in nanoseconds, which is instructions, and told in microseconds. */
static u64 idle_ticks(void)
{
	return num_online_cpus() == 1 ? get_cpu_idle_time_us(0, NULL) * 1000 : 0;
}

void bench_begin(struct bench_span *span)
{
	span->idle = idle_ticks();
	span->clock = bench_clock();
}

u64 bench_end(const struct bench_span *span)
{
	u64 ticks = bench_clock() - span->clock;
	u64 idle = idle_ticks() - span->idle;

	return ticks > idle ? ticks - idle : 0;
}

/* Is a tick an instruction? And what does it cost to ask? */
static int calibrate(void)
{
	static struct bench_samples s;
	unsigned long flags, n;
	u64 from, loop = 0;
	int i;

	for (i = 0; i < 100; i++) {
		local_irq_save(flags);
		from = bench_clock();
		bench_sample(&s, bench_clock() - from);
		local_irq_restore(flags);
	}
	clock_cost = bench_median(&s);
#ifdef CONFIG_X86_64
	for (i = 0; i < 100; i++) {
		n = 1000;
		local_irq_save(flags);
		from = bench_clock();
		asm volatile("1: dec %0\n\tjnz 1b" : "+r" (n) : : "cc");
		bench_sample(&s, bench_clock() - from);
		local_irq_restore(flags);
	}
	loop = bench_median(&s);
#endif
	pr_info("reading the clock: %llu ticks; 2000 instructions: %llu ticks\n", clock_cost, loop);
	if (!anyway && (loop < 2000 || loop > 2010 || num_online_cpus() != 1)) {
		pr_err("the clock does not count instructions: one CPU and icount are needed\n");
		return -EINVAL;
	}
	return 0;
}

/* --- memory --- */

static void free_pages_of(struct bench *b)
{
	int i;

	for (i = 0; i < BENCH_PAGES; i++)
		if (b->page[i])
			__free_page(b->page[i]);
}

/* No page begins where the one before it ends, so none can be merged. */
static int scattered(struct bench *b)
{
	int i;

	sg_init_table(b->sgl, BENCH_PAGES);
	for (i = 0; i < BENCH_PAGES; i++) {
		struct page *again[8];
		int n = 0;

		do {
			b->page[i] = alloc_page(GFP_KERNEL | __GFP_ZERO);
			if (!b->page[i] || !i ||
			    page_to_pfn(b->page[i]) != page_to_pfn(b->page[i - 1]) + 1)
				break;
			again[n++] = b->page[i];
			b->page[i] = NULL;
		} while (n < ARRAY_SIZE(again));
		while (n)
			__free_page(again[--n]);
		if (!b->page[i])
			return -ENOMEM;
		sg_set_page(&b->sgl[i], b->page[i], PAGE_SIZE, 0);
		b->list[i] = ib_dma_map_page(b->dev, b->page[i], 0, PAGE_SIZE,
					     DMA_BIDIRECTIONAL);
		sg_dma_address(&b->sgl[i]) = b->list[i];
		sg_dma_len(&b->sgl[i]) = PAGE_SIZE;
	}
	return 0;
}

/* --- results for user space --- */

static int results_show(struct seq_file *file, void *v)
{
	unsigned int i;

	for (i = 0; i < nr_results; i++)
		seq_printf(file, "%s\t%u\t%llu\n", results[i].name, results[i].pages,
			   results[i].instructions);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(results);

/* By its NIC, since later kernels do not look devices up by name. */
static struct ib_device *rxe_on(const char *nic)
{
	struct net_device *ndev = dev_get_by_name(&init_net, nic);
	struct ib_device *dev;

	if (!ndev)
		return NULL;
	dev = ib_device_get_by_netdev(ndev, RDMA_DRIVER_RXE);
	dev_put(ndev);
	return dev;
}

static bool wanted(const char *part)
{
	size_t len = strlen(part);
	const char *at = parts;

	if (!*at)
		return true;
	for (; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ','))
		if (strcspn(at, ",") == len && !strncmp(at, part, len))
			return true;
	return false;
}

static int run(struct bench *b)
{
	static const struct {
		const char *name;
		int (*run)(struct bench *b);
	} all[] = {
		{ "rekey", bench_rekey },
		{ "fmr", bench_fmr },
		{ "frwr", bench_frwr },
		{ "dma", bench_dma },
		{ "window", bench_window },
		{ "io", bench_io },
		{ "user", bench_user },
		{ "scale", bench_scale },
		{ "smp", bench_smp },
	};
	unsigned int i, failed = 0;
	int err = 0;

	b->dev = rxe_on("eth0");
	if (!b->dev)
		return bench_fail("no rxe device on eth0", -ENODEV);
	err = scattered(b);
	if (err)
		goto put;
	b->pd = ib_alloc_pd(b->dev, 0);
	if (IS_ERR(b->pd)) {
		err = PTR_ERR(b->pd);
		goto put;
	}
	/* One that fails costs the others nothing, but the whole run is none then. */
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		if (!wanted(all[i].name))
			continue;
		pr_info("measuring: %s\n", all[i].name);
		if (all[i].run(b))
			bench_result("failed", ++failed, 1);
	}
	ib_dealloc_pd(b->pd);
put:
	free_pages_of(b);
	ib_device_put(b->dev);
	return err;
}

static int __init bench_init(void)
{
	struct bench *b;
	int err;

	err = calibrate();
	if (err)
		return err;
	/* Before the generator is seeded each random number costs many times what it does later. */
	wait_for_random_bytes();
	b = kvzalloc(sizeof(*b), GFP_KERNEL);
	results = kvcalloc(MAX_RESULTS, sizeof(*results), GFP_KERNEL);
	err = b && results ? run(b) : -ENOMEM;
	kvfree(b);
	if (err) {
		kvfree(results);
		return err;
	}
	debugfs = debugfs_create_dir(KBUILD_MODNAME, NULL);
	debugfs_create_file("results", 0444, debugfs, NULL, &results_fops);
	pr_info("measured: %u figures\n", nr_results);
	return 0;
}

static void __exit bench_exit(void)
{
	debugfs_remove_recursive(debugfs);
	kvfree(results);
}

module_init(bench_init);
module_exit(bench_exit);

MODULE_DESCRIPTION("Benchmarks of ib_mr");
MODULE_LICENSE("Dual BSD/GPL");
IBMR_IMPORT_INTERNAL();
