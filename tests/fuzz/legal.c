// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Legal use of the DMA helpers, at random. Loading the module is the run:
 *
 *	insmod ib_mr_dma_legal.ko secs=5 seed=1
 *
 * A checker must not be wrong. So two threads and a third that changes the checker's mode use the
 * helpers as correct ULPs do, on two CPUs, in patterns that were once reported, and in others like
 * them. We are the device, too: on virtual DMA its addresses are the CPU's. What each side must see
 * is known, to the byte, and compared. In the end no fault may have been found, and no mapping be
 * left, nor one that nobody saw made.
 *
 * What is legal, here: whoever owns bytes may touch them. A map gives them to the device, a
 * sync_for_cpu or the unmap to the CPU, a sync_for_device back. The same memory may be mapped again
 * as long as at most one of its mappings lets the device write. An error is asked for before the
 * mapping is used, some time after the map. The parameter `verdict` is 0 when all was well.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <rdma/ib_dma.h>
#include <rdma/ib_mr.h>

#include "base/compat.h"
#include "dma/dma.h"

static uint secs = 5;
module_param(secs, uint, 0444);
MODULE_PARM_DESC(secs, "how long");

static ulong seed = 1;
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "where the patterns come from");

static bool modes = true;
module_param(modes, bool, 0444);
MODULE_PARM_DESC(modes, "change the checker's mode meanwhile");

static int verdict = -1;
module_param(verdict, int, 0444);
MODULE_PARM_DESC(verdict, "what came of it: 0, or how much is wrong");

#define PAGES	8	/* of each thread; the last two hold what stays mapped for long */
#define HELD	6
#define LIST	4

/* A mapping of some of the thread's memory. */
struct one {
	enum dma_data_direction dir;
	unsigned long attrs;
	u8 *cpu;
	size_t len;
	u64 addr;
	bool live;
};

struct actor {
	struct ib_device *dev;
	struct rnd_state rnd;
	u8 *mem;
	u8 *want;			/* what is to be seen, as long as PAGES - 2 pages */
	struct one held[HELD];
	struct task_struct *task;
	unsigned long rounds, maps, wrong;
};

static u32 below(struct actor *a, u32 n)
{
	return prandom_u32_state(&a->rnd) % n;
}

static u8 *dma(u64 addr)
{
	return (u8 *)(uintptr_t)addr;
}

static void noise(struct actor *a, u8 *at, size_t len)
{
	/* Often letters of the poison, which have to arrive as well. */
	static const char poison[] = "DMA!CPU!";
	size_t i;

	for (i = 0; i < len; i++)
		at[i] = below(a, 2) ? poison[below(a, 8)] : below(a, 256);
}

static void expect(struct actor *a, bool right, const char *what)
{
	if (likely(right))
		return;
	if (a->wrong++ < 10)
		pr_err("seed %lu, round %lu: %s\n", seed, a->rounds, what);
}

static bool ask(struct actor *a, struct one *o)
{
	o->live = !ib_dma_mapping_error(a->dev, o->addr);
	return o->live;
}

/* The error is still to be asked for. */
static void begin(struct actor *a, struct one *o, u8 *cpu, size_t len, enum dma_data_direction dir,
		  unsigned long attrs)
{
	o->cpu = cpu;
	o->len = len;
	o->dir = dir;
	o->attrs = attrs;
	a->maps++;
	if (below(a, 3))
		o->addr = ib_dma_map_single_attrs(a->dev, cpu, len, dir, attrs);
	else
		o->addr = ib_dma_map_page_attrs(a->dev, virt_to_page(cpu), offset_in_page(cpu),
						len, dir, attrs);
}

static bool map(struct actor *a, struct one *o, u8 *cpu, size_t len, enum dma_data_direction dir)
{
	begin(a, o, cpu, len, dir, 0);
	return ask(a, o);
}

static void unmap(struct actor *a, struct one *o, unsigned long attrs)
{
	if (!o->live)
		return;
	o->live = false;
	if (below(a, 3))
		ib_dma_unmap_single_attrs(a->dev, o->addr, o->len, o->dir, attrs);
	else
		ib_dma_unmap_page_attrs(a->dev, o->addr, o->len, o->dir, attrs);
}

static void for_cpu(struct actor *a, struct one *o, size_t off, size_t len)
{
	ib_dma_sync_single_for_cpu(a->dev, o->addr + off, len, o->dir);
}

static void for_device(struct actor *a, struct one *o, size_t off, size_t len)
{
	ib_dma_sync_single_for_device(a->dev, o->addr + off, len, o->dir);
}

/* A stretch of the thread's memory that holds what is known, and is nobody's but the CPU's. */
static size_t place(struct actor *a, size_t *len)
{
	static const size_t most[] = { 9, 64, 300, PAGE_SIZE, 3 * PAGE_SIZE };
	size_t off;

	*len = 1 + below(a, most[below(a, ARRAY_SIZE(most))]);
	off = below(a, (PAGES - 2) * PAGE_SIZE - *len);
	return off;
}

static void known(struct actor *a, size_t off, size_t len)
{
	noise(a, a->mem + off, len);
	memcpy(a->want + off, a->mem + off, len);
}

/* The device fills some of it, which is then to be seen. */
static void fill(struct actor *a, u64 addr, size_t off, size_t len)
{
	size_t from = below(a, len), n = 1 + below(a, len - from);

	noise(a, dma(addr) + from, n);
	memcpy(a->want + off + from, dma(addr) + from, n);
}

static void seen(struct actor *a, size_t off, size_t len, const char *what)
{
	expect(a, !memcmp(a->mem + off, a->want + off, len), what);
}

/* --- patterns --- */

static void receive(struct actor *a)
{
	enum dma_data_direction dir = below(a, 3) ? DMA_FROM_DEVICE : DMA_BIDIRECTIONAL;
	struct one o = {};
	size_t len, off = place(a, &len);
	int n;

	known(a, off, len);
	if (!map(a, &o, a->mem + off, len, dir))
		return;
	for (n = below(a, 3); n; n--) {
		fill(a, o.addr, off, len);
		for_cpu(a, &o, 0, len);
		seen(a, off, len, "received, synced");
		for_device(a, &o, 0, len);
	}
	if (below(a, 4))
		fill(a, o.addr, off, len);
	unmap(a, &o, 0);
	seen(a, off, len, "received, unmapped");
}

/* A part is taken and given back; the rest is the device's all the time. */
static void receive_parts(struct actor *a)
{
	struct one o = {};
	size_t len, off = place(a, &len), from, n;

	known(a, off, len);
	if (!map(a, &o, a->mem + off, len, DMA_FROM_DEVICE))
		return;
	fill(a, o.addr, off, len);
	from = below(a, len);
	n = 1 + below(a, len - from);
	for_cpu(a, &o, from, n);
	seen(a, off + from, n, "a part received");
	for_device(a, &o, from, n);
	fill(a, o.addr, off, len);
	unmap(a, &o, 0);
	seen(a, off, len, "received by parts");
}

static void send(struct actor *a)
{
	enum dma_data_direction dir = below(a, 3) ? DMA_TO_DEVICE : DMA_BIDIRECTIONAL;
	struct one o = {};
	size_t len, off = place(a, &len);
	int n;

	known(a, off, len);
	if (!map(a, &o, a->mem + off, len, dir))
		return;
	expect(a, !memcmp(dma(o.addr), a->want + off, len), "sent");
	for (n = below(a, 3); n; n--) {
		for_cpu(a, &o, 0, len);
		known(a, off, len);
		for_device(a, &o, 0, len);
		expect(a, !memcmp(dma(o.addr), a->want + off, len), "sent again");
	}
	unmap(a, &o, 0);
	seen(a, off, len, "sent, unmapped");
}

/* Received, and given back unread; at last given up. */
static void unread(struct actor *a)
{
	bool skip = below(a, 2);
	struct one o = {};
	size_t len, off = place(a, &len);
	int n;

	known(a, off, len);
	if (!map(a, &o, a->mem + off, len, DMA_FROM_DEVICE))
		return;
	for (n = below(a, 4); n; n--) {
		fill(a, o.addr, off, len);
		for_device(a, &o, 0, len);
	}
	unmap(a, &o, skip ? DMA_ATTR_SKIP_CPU_SYNC : 0);
	if (!skip)
		seen(a, off, len, "unread, unmapped");
}

/* A table that is prepared, and sent only if it is needed. */
static void table(struct actor *a)
{
	struct one o = {};
	size_t len, off = place(a, &len);
	int n;

	if (!map(a, &o, a->mem + off, len, DMA_TO_DEVICE))
		return;
	for (n = below(a, 6); n; n--) {
		for_cpu(a, &o, 0, len);
		known(a, off, len);
		if (below(a, 2))
			continue;
		for_device(a, &o, 0, len);
		expect(a, !memcmp(dma(o.addr), a->want + off, len), "table");
	}
	unmap(a, &o, 0);
}

/* A pool of pages as networking has it: nothing is copied but by syncs. */
static void page_pool(struct actor *a)
{
	size_t off = below(a, PAGES - 2) * PAGE_SIZE, len = PAGE_SIZE, n;
	struct one o = {};

	known(a, off, len);
	begin(a, &o, a->mem + off, len, DMA_FROM_DEVICE, DMA_ATTR_SKIP_CPU_SYNC);
	if (!ask(a, &o))
		return;
	for_device(a, &o, 0, len);
	n = 1 + below(a, len);
	fill(a, o.addr, off, n);
	for_cpu(a, &o, 0, n);
	seen(a, off, n, "page pool");
	noise(a, a->mem + off, n);	/* the packet is rewritten */
	memcpy(a->want + off, a->mem + off, n);
	unmap(a, &o, DMA_ATTR_SKIP_CPU_SYNC);
	seen(a, off, n, "page pool, rewritten");
}

/* The same memory mapped several times to be read, and once both ways; errors in any order. */
static void many(struct actor *a)
{
	size_t len, off = place(a, &len);
	struct one o[5] = {};
	int i, k, n = 2 + below(a, 4), both = below(a, 2) ? below(a, n) : n;

	known(a, off, len);
	for (i = 0; i < n; i++)
		begin(a, &o[i], a->mem + off, 1 + below(a, len),
		      i == both ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE, 0);
	for (i = 0, k = below(a, n); i < n; i++, k = (k + 1) % n)
		ask(a, &o[k]);
	for (i = 0; i < n; i++) {
		if (!o[i].live)
			continue;
		expect(a, !memcmp(dma(o[i].addr), a->want + off, o[i].len), "one of many");
		for_cpu(a, &o[i], 0, o[i].len);
		for_device(a, &o[i], 0, o[i].len);
		if (i == both) {
			ib_dma_sync_single_for_cpu(a->dev, o[i].addr, o[i].len, DMA_FROM_DEVICE);
			ib_dma_sync_single_for_device(a->dev, o[i].addr, o[i].len, DMA_TO_DEVICE);
		}
	}
	for (i = 0, k = below(a, n); i < n; i++, k = (k + 1) % n)
		unmap(a, &o[k], 0);
	seen(a, off, len, "many");
}

/* A pool for the device to fill; a part of it is taken, filled, and sent by its own mapping. */
static void pool(struct actor *a)
{
	size_t off = below(a, PAGES - 4) * PAGE_SIZE, len = 3 * PAGE_SIZE;
	size_t from = below(a, len - 1), n = 1 + below(a, len - from);
	struct one all = {}, part = {};

	known(a, off, len);
	if (!map(a, &all, a->mem + off, len, DMA_FROM_DEVICE))
		return;
	for_cpu(a, &all, from, n);
	seen(a, off + from, n, "part of a pool");
	noise(a, a->mem + off + from, n);
	if (map(a, &part, a->mem + off + from, n, DMA_TO_DEVICE)) {
		expect(a, !memcmp(dma(part.addr), a->mem + off + from, n), "sent from a pool");
		for_cpu(a, &all, from, n);
		unmap(a, &part, 0);
	}
	for_device(a, &all, from, n);
	unmap(a, &all, 0);
}

static void list(struct actor *a)
{
	enum dma_data_direction dir = below(a, 2) ? DMA_FROM_DEVICE : DMA_BIDIRECTIONAL;
	struct scatterlist sg[LIST], copy[LIST], *with = below(a, 2) ? sg : copy, *s;
	size_t off = below(a, PAGE_SIZE), at = off, len;
	int n = 1 + below(a, LIST), i;

	sg_init_table(sg, n);
	for (i = 0; i < n; i++) {
		len = 1 + below(a, PAGE_SIZE);
		sg_set_buf(&sg[i], a->mem + at, len);
		known(a, at, len);
		at += len + (below(a, 2) ? 0 : below(a, 100));
	}
	a->maps++;
	if (!ib_dma_map_sg(a->dev, sg, n, dir))
		return;
	memcpy(copy, sg, sizeof(copy));
	for_each_sg(sg, s, n, i) {
		at = (u8 *)sg_virt(s) - a->mem;
		fill(a, sg_dma_address(s), at, s->length);
		if (below(a, 2))
			continue;
		ib_dma_sync_single_for_cpu(a->dev, sg_dma_address(s), s->length, dir);
		seen(a, at, s->length, "an entry of a list");
		ib_dma_sync_single_for_device(a->dev, sg_dma_address(s), s->length, dir);
	}
	ib_dma_unmap_sg(a->dev, with, n, dir);
	for_each_sg(sg, s, n, i)
		seen(a, (u8 *)sg_virt(s) - a->mem, s->length, "a list");
	/* A list of no entries maps nothing. */
	expect(a, !ib_dma_map_sg(a->dev, sg, 0, dir), "an empty list");
}

/* A region of a whole page, in which another fragment has just been mapped. */
static void fragments(struct actor *a)
{
	size_t off = below(a, PAGES - 2) * PAGE_SIZE;
	struct one mine = {}, other = {};

	if (!map(a, &mine, a->mem + off, 1000, DMA_TO_DEVICE))
		return;
	begin(a, &other, a->mem + off + 1000, 1000, DMA_TO_DEVICE, 0);
	ibmr_dma_used(a->dev, mine.addr & PAGE_MASK, PAGE_SIZE);
	if (ask(a, &other))
		ibmr_dma_used(a->dev, other.addr & PAGE_MASK, PAGE_SIZE);
	unmap(a, below(a, 2) ? &mine : &other, 0);
	unmap(a, &mine, 0);
	unmap(a, &other, 0);
}

/* Coherent memory, a part of which is mapped as well. */
static void memory(struct actor *a)
{
	size_t size = 1 + below(a, 3 * PAGE_SIZE);
	struct one o = {};
	u64 handle;
	u8 *p = ib_dma_alloc_coherent(a->dev, size, &handle, GFP_KERNEL);

	if (!p)
		return;
	if (below(a, 2) && map(a, &o, p, 1 + below(a, size), DMA_TO_DEVICE))
		for_device(a, &o, 0, o.len);
	unmap(a, &o, 0);
	ib_dma_free_coherent(a->dev, size, p, handle);
}

/* Mapped for long, over changes of the mode; and its first bytes again, for a moment. */
static void hold(struct actor *a)
{
	struct one *o = &a->held[below(a, HELD)], again = {};
	u8 *cpu = a->mem + (PAGES - 2) * PAGE_SIZE + below(a, 4) * 512;

	if (o->live) {
		if (below(a, 2)) {
			for_cpu(a, o, 0, o->len);
			for_device(a, o, 0, o->len);
			return;
		}
		unmap(a, o, 0);
		return;
	}
	if (!map(a, o, cpu, 512 * (1 + below(a, 4)), DMA_TO_DEVICE))
		return;
	if (map(a, &again, o->cpu, 64, DMA_TO_DEVICE)) {
		for_cpu(a, o, 0, o->len);
		for_device(a, o, 0, o->len);
		unmap(a, &again, 0);
	}
}

static void (*const pattern[])(struct actor *a) = {
	receive, receive_parts, send, unread, table, page_pool, many, pool, list, fragments, memory,
	hold, hold,
};

static int act(void *arg)
{
	struct actor *a = arg;
	int i;

	while (!kthread_should_stop()) {
		pattern[below(a, ARRAY_SIZE(pattern))](a);
		a->rounds++;
		cond_resched();
	}
	for (i = 0; i < HELD; i++)
		unmap(a, &a->held[i], 0);
	return 0;
}

static u64 found(struct ib_device *dev)
{
	u64 n = 0;
	int i;

	for (i = 0; i < IB_MR_DMA_FAULT_COUNT; i++)
		n += ib_mr_dma_reports(dev, i);
	return n;
}

static int begin_actor(struct actor *a, struct ib_device *dev, int i)
{
	a->dev = dev;
	prandom_seed_state(&a->rnd, seed * 2 + i);
	a->mem = alloc_pages_exact(PAGES * PAGE_SIZE, GFP_KERNEL | __GFP_ZERO);
	a->want = kvzalloc(PAGES * PAGE_SIZE, GFP_KERNEL);
	return a->mem && a->want ? 0 : -ENOMEM;
}

static void run(struct ib_device *dev, struct actor *a, int n)
{
	unsigned long end = jiffies + secs * HZ;
	u32 mode = 0;
	int i;

	for (i = 0; i < n; i++) {
		a[i].task = kthread_create(act, &a[i], KBUILD_MODNAME "/%d", i);
		if (IS_ERR(a[i].task)) {
			a[i].task = NULL;
			a[i].wrong++;
			continue;
		}
		kthread_bind(a[i].task, i % num_online_cpus());
		wake_up_process(a[i].task);
	}
	while (time_before(jiffies, end)) {
		if (modes)
			ib_mr_dma_check_set(dev, mode++ % (IB_MR_DMA_BOUNCE_STRICT + 1));
		msleep(20);
	}
	for (i = 0; i < n; i++)
		if (a[i].task)
			kthread_stop(a[i].task);
}

static int add(struct ib_device *dev)
{
	int was = ib_mr_dma_check_get(dev), i, n = 2;
	u64 before = found(dev), faults;
	struct actor *a;

	if (verdict >= 0 || was < 0)
		return 0;
	if (!modes && was == IB_MR_DMA_OFF)
		pr_warn("the checker is off\n");
	a = kcalloc(n, sizeof(*a), GFP_KERNEL);
	if (!a)
		return -ENOMEM;
	verdict = 0;
	for (i = 0; i < n; i++)
		if (begin_actor(&a[i], dev, i))
			verdict = 1;
	if (!verdict)
		run(dev, a, n);
	if (modes)
		ib_mr_dma_check_set(dev, IB_MR_DMA_TRACK);
	ibmr_dma_settle(dev);
	faults = found(dev) - before;
	for (i = 0; i < n; i++) {
		pr_info("thread %d: %lu patterns, %lu maps, %lu wrong\n", i, a[i].rounds, a[i].maps,
			a[i].wrong);
		verdict += min(a[i].wrong, 1000UL);
		if (a[i].mem)
			free_pages_exact(a[i].mem, PAGES * PAGE_SIZE);
		kvfree(a[i].want);
	}
	verdict += min(faults, 1000ULL);
	if (ibmr_dma_live(dev) || ibmr_dma_unseen(dev))
		verdict++;
	pr_info("%s: seed %lu: %llu faults reported, %llu mappings left, %ld unseen: %s\n",
		dev_name(&dev->dev), seed, faults, ibmr_dma_live(dev), ibmr_dma_unseen(dev),
		verdict ? "WRONG" : "all well");
	ib_mr_dma_check_set(dev, was);
	kfree(a);
	return 0;
}

static void gone(struct ib_device *dev, void *data)
{
}

static struct ib_client client = { .name = KBUILD_MODNAME, .add = add, .remove = gone };

static int __init legal_init(void)
{
	return ib_register_client(&client);
}

static void __exit legal_exit(void)
{
	ib_unregister_client(&client);
}

module_init(legal_init);
module_exit(legal_exit);

MODULE_DESCRIPTION("Legal use of ib_mr's DMA helpers, at random");
MODULE_LICENSE("Dual BSD/GPL");
IBMR_IMPORT_INTERNAL();
