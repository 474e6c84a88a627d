// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Fences: when ib_unmap_fmr(), ib_flush_fmr_pool() or ib_destroy_fmr_pool() returns, the device
 * does not touch the pages any more, not even in the middle of a message. And before that: nothing
 * that was let in under an old mapping is ever carried out against another one.
 *
 * Twice: by a peer that hammers while the owner unmaps and poisons in round after round, and by a
 * responder that is held between its check and its copy, where chance will not have it.
 *
 * On 6.1 a READ of many packets goes on over a withdrawn MR and delivers what was in its packet's
 * memory; so of a READ only this is asked, that no poison is in what it brought.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched/task.h>
#include "base/compat.h"
#include "fmr_helpers.h"

#define PG	PAGE_SIZE
#define PAGES	4
#define SIZE	(PAGES * PG)

/* --- hammering --- */

#define POISON		0xdeadfacecafe0000ull
#define WRITTEN		0x5757575757575757ull

/* What both sides look at; the peer's queue pair is its own. */
struct hammer {
	struct ibt_pair *p;
	enum ibt_op op;
	struct ib_fmr *fmr;
	struct ib_fmr_pool *pool;
	u64 **page;		/* PAGES of them */
	u32 key;
	u32 len;
	bool stop;
	bool renew;		/* the queue pair may be stuck in a message that was cut off */
	unsigned int ops, done_ops;	/* begun, ended */
	unsigned int rounds;
	unsigned int busy;	/* rounds in which the peer was at work when it was unmapped */
	unsigned int bad;
};

static unsigned int count_poison(const u64 *mem, size_t n)
{
	unsigned int found = 0;

	while (n--)
		found += (*mem++ & ~0xffffull) == POISON;
	return found;
}

/*
 * WRITEs go over UC, where what is refused is dropped and the queue pair lives on; but not when it
 * was cut off in the middle of a message (the responder then waits for the rest for ever).
 */
static int hammer_peer(struct hammer *h)
{
	u64 *local = (u64 *)h->p->req.buf;
	unsigned int i;

	while (!READ_ONCE(h->stop)) {
		for (i = 0; i < h->len / 8; i++)
			local[i] = WRITTEN;
		if (h->len > PG && xchg(&h->renew, false))
			h->p->ready = false;
		WRITE_ONCE(h->ops, h->ops + 1);
		/* The owner sees that it is under way before the key is read. */
		smp_mb();
		if (ibt_rdma(h->p, h->op, local, READ_ONCE(h->key), 0, h->len) == IBT_LOST)
			return -EIO;
		if (h->op == IBT_READ)
			h->bad += count_poison(local, h->len / 8);
		/* Pairs with the owner's acquire: what it brought is judged by then. */
		smp_store_release(&h->done_ops, h->ops);
		cond_resched();
	}
	return 0;
}

static void fill(struct hammer *h, u64 word)
{
	unsigned int i, j;

	for (i = 0; i < PAGES; i++)
		for (j = 0; j < PG / 8; j++)
			WRITE_ONCE(h->page[i][j], word);
}

static bool touched(struct hammer *h)
{
	return h->op == IBT_READ ? READ_ONCE(h->ops) != READ_ONCE(h->done_ops) :
				   READ_ONCE(h->page[0][0]) == WRITTEN;
}

static bool under_way(struct hammer *h, unsigned int ops)
{
	/* Pairs with the peer's release. */
	return (int)(smp_load_acquire(&h->done_ops) - ops) < 0;
}

/* The owner: map, wait until the peer is at it, unmap, poison at once, look. */
static int hammer_owner(struct hammer *h)
{
	u64 list[PAGES];
	unsigned int n, i;
	int err = 0;

	for (i = 0; i < PAGES; i++)
		list[i] = (uintptr_t)h->page[i];
	for (n = 0; n < h->rounds && !err; n++) {
		struct ib_pool_fmr *pf = NULL;
		unsigned long spin;
		unsigned int ops;

		fill(h, 0);
		if (h->pool) {
			pf = ibt_pool_map(h->pool, list, PAGES, 0);
			if (IS_ERR(pf))
				return PTR_ERR(pf);
			WRITE_ONCE(h->key, pf->fmr->rkey);
		} else {
			err = ibt_map(h->fmr, list, PAGES, 0);
			if (err)
				break;
			WRITE_ONCE(h->key, h->fmr->rkey);
		}
		/* At another moment of a message each time. */
		for (spin = 0; spin < 5000 && !touched(h); spin++)
			usleep_range(10, 50);
		for (spin = 0; spin < n * 37 % 4000; spin++)
			cpu_relax();
		h->busy += touched(h);
		if (pf) {
			ib_fmr_pool_unmap(pf);
			err = ib_flush_fmr_pool(h->pool);
		} else {
			err = ibt_unmap(h->fmr);
		}
		fill(h, POISON | (n & 0xffff));
		WRITE_ONCE(h->renew, true);
		/* Until what was under way has ended. */
		ops = READ_ONCE(h->ops);
		for (spin = 0; spin < 2000 && under_way(h, ops); spin++)
			usleep_range(20, 100);
		for (i = 0; i < PAGES; i++)
			if (count_poison(h->page[i], PG / 8) != PG / 8)
				h->bad++;
	}
	WRITE_ONCE(h->stop, true);
	return err;
}

static int hammer_thread(void *arg, int i)
{
	struct hammer *h = arg;
	int err = i ? hammer_peer(h) : hammer_owner(h);

	WRITE_ONCE(h->stop, true);
	return err;
}

static const struct hammer_row {
	const char *desc;
	enum ibt_op op;
	u32 len;
	bool pool, cache;
	unsigned int rounds;
} hammer_table[] = {
	{ "WRITE, one packet, ib_unmap_fmr()", IBT_WRITE, PG, .rounds = 800 },
	{ "WRITE, ib_unmap_fmr()", IBT_WRITE, SIZE, .rounds = 150 },
	{ "READ, ib_unmap_fmr()", IBT_READ, SIZE, .rounds = 60 },
	{ "WRITE, one packet, pool flush", IBT_WRITE, PG, .pool = true, .rounds = 800 },
	{ "WRITE, pool flush", IBT_WRITE, SIZE, .pool = true, .rounds = 150 },
	{ "READ, pool flush", IBT_READ, SIZE, .pool = true, .rounds = 60 },
	{ "WRITE, one packet, pool with cache", IBT_WRITE, PG, .pool = true, .cache = true,
	  .rounds = 300 },
};

static void hammer_desc(const struct hammer_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(hammer, hammer_table, hammer_desc);

static void fence_hammered(struct kunit *test)
{
	const struct hammer_row *row = test->param_value;
	struct ib_pd *pd = ibt_pd(test);
	struct hammer *h = kunit_kzalloc(test, sizeof(*h), GFP_KERNEL);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, SIZE, 1);
	u64 *page[PAGES];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, h);
	for (i = 0; i < PAGES; i++)
		page[i] = (u64 *)ibt_ptr(b, i * PG);
	h->page = page;
	h->op = row->op;
	h->len = row->len;
	h->rounds = row->rounds * (ibt_slow ? 20 : 1);
	h->p = ibt_pair_type(test, pd, row->op == IBT_READ ? IB_QPT_RC : IB_QPT_UC);
	/* A READ that is cut off may get no answer, which is not worth waiting for. */
	h->p->timeout = 14;
	h->p->retries = 1;
	h->p->ready = false;
	if (row->pool)
		h->pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){
			.cache = row->cache });
	else
		h->fmr = ibt_fmr(test, pd, FMR_ALL, PAGES, 1);
	ibt_parallel(test, 2, hammer_thread, h);
	KUNIT_EXPECT_EQ(test, h->bad, 0U);
	KUNIT_EXPECT_GT(test, h->busy, h->rounds / 10);
	kunit_info(test, "%u rounds, %u of them amid traffic, %u operations\n", h->rounds, h->busy,
		   h->ops);
}

/* --- a responder held between its check and its copy --- */

#define HELD_IOVA	0x7e57000ull	/* only here */

static int held_write(void *arg)
{
	struct hammer *h = arg;

	/* Its result does not matter: a fence may come before its copy. */
	ibt_rdma(h->p, IBT_WRITE, h->p->req.buf, h->key, HELD_IOVA, PG);
	WRITE_ONCE(h->stop, true);
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

/* Start a WRITE on the last CPU, where it is held; this thread stays on the first one. */
static struct task_struct *hold_write(struct kunit *test, struct hammer *h, u32 key)
{
	struct task_struct *task;

	h->key = key;
	h->stop = false;
	memset(h->p->req.buf, 0x57, PG);
	KUNIT_ASSERT_EQ(test, ibt_hold(HELD_IOVA), 0);
	task = kthread_create(held_write, h, "ib_mr_test/held");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	kthread_bind(task, cpumask_last(cpu_online_mask));
	wake_up_process(task);
	KUNIT_EXPECT_TRUE(test, ibt_held());
	return task;
}

static void hold_end(struct kunit *test, struct task_struct *task)
{
	ibt_release();
	kthread_stop(task);
	put_task_struct(task);
	KUNIT_EXPECT_FALSE_MSG(test, ibt_hold_expired(), "it was not held to the end");
}

static struct hammer *hold_make(struct kunit *test, struct ib_pd *pd)
{
	struct hammer *h = kunit_kzalloc(test, sizeof(*h), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, h);
	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU");
	ibt_hold_elsewhere();
	h->p = ibt_pair_type(test, pd, IB_QPT_UC);
	return h;
}

/* What must not return while the packet is held, on a thread of its own. */
struct fence {
	int (*fn)(struct fence *f);
	struct ib_fmr *fmr;
	struct ib_fmr_pool *pool;
	bool returned;
	int err;
};

static int fence_thread(void *arg)
{
	struct fence *f = arg;

	f->err = f->fn(f);
	WRITE_ONCE(f->returned, true);
	while (!kthread_should_stop())
		msleep(20);
	return 0;
}

static int fence_unmap(struct fence *f)
{
	return ibt_unmap(f->fmr);
}

static int fence_flush(struct fence *f)
{
	return ib_flush_fmr_pool(f->pool);
}

static int fence_destroy(struct fence *f)
{
	ib_destroy_fmr_pool(f->pool);
	return 0;
}

/*
 * @f does not return while a packet is held that was let in under @key, does when it is let go, and
 * from then on nothing of @b changes.
 */
static void fence_holds(struct kunit *test, struct hammer *h, struct fence *f, struct ibt_buf *b,
			u32 key, void (*before)(struct kunit *test, struct fence *f))
{
	struct task_struct *writer = hold_write(test, h, key), *task;
	int tries;

	/* What the owner does after the packet passed its check and before he asks for it. */
	if (before)
		before(test, f);
	task = kthread_create(fence_thread, f, "ib_mr_test/fence");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	if (!IBMR_DRIVER_WORKQUEUE)
		kthread_bind(task, cpumask_first(cpu_online_mask));
	wake_up_process(task);
	msleep(400);	/* more than a grace period */
	KUNIT_EXPECT_FALSE_MSG(test, READ_ONCE(f->returned),
			       "it returned while a packet was under way");
	hold_end(test, writer);
	for (tries = 0; tries < 500 && !READ_ONCE(f->returned); tries++)
		msleep(20);
	KUNIT_EXPECT_TRUE(test, f->returned);
	KUNIT_EXPECT_EQ(test, f->err, 0);
	ibt_fill(b, 0, b->size, b->seed);
	msleep(50);
	KUNIT_EXPECT_TRUE(test, ibt_intact(b));
	kthread_stop(task);
	put_task_struct(task);
}

static void fence_of_unmap(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct hammer *h = hold_make(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PG, 1);
	struct fence f = { .fn = fence_unmap, .fmr = ibt_fmr(test, pd, FMR_ALL, 1, 4) };

	KUNIT_ASSERT_EQ(test, ib_map_phys_fmr(f.fmr, ibt_page_list(test, b), 1, HELD_IOVA), 0);
	fence_holds(test, h, &f, b, f.fmr->rkey, NULL);
}

static struct ibt_buf *other_pages;

static void map_over(struct kunit *test, struct fence *f)
{
	u64 *list = ibt_page_list(test, other_pages);
	int i;

	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, ib_map_phys_fmr(f->fmr, list, 1, HELD_IOVA), 0);
}

/* The packet is of a mapping that was mapped over: RDS gives those pages back as well. */
static void fence_of_unmap_after_remap(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct hammer *h = hold_make(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PG, 1);
	struct fence f = { .fn = fence_unmap, .fmr = ibt_fmr(test, pd, FMR_ALL, 1, 4) };

	other_pages = ibt_buf(test, IBT_SCATTER, PG, 2);
	KUNIT_ASSERT_EQ(test, ib_map_phys_fmr(f.fmr, ibt_page_list(test, b), 1, HELD_IOVA), 0);
	fence_holds(test, h, &f, b, f.fmr->rkey, map_over);
	KUNIT_EXPECT_TRUE(test, ibt_intact(other_pages));
}

/* Of a pool, in the state in which the flush may find the MR: retired, or in the worker's hand. */
static const struct pool_row {
	const char *desc;
	struct ib_fmr_pool_param param;
	bool replace, destroy, again;
	unsigned int wait;
} pool_table[] = {
	{ "retired" },
	{ "in quarantine", .wait = 200 },
	{ "in the worker's hand", .replace = true, .wait = 100 },
	{ "cached", .param.cache = 1 },
	{ "keys at once", .param.rekey_at_once = 1 },
	{ "keys at once, re-keyed", .param.rekey_at_once = 1, .wait = 200 },
	{ "a kept key", .param.key_maps = 8 },
	{ "a kept key, mapped again", .param.key_maps = 8, .again = true },
	{ "destruction", .destroy = true },
	{ "destruction, in quarantine", .destroy = true, .wait = 200 },
	{ "destruction, keys at once, re-keyed", .destroy = true, .param.rekey_at_once = 1,
	  .wait = 200 },
	{ "destruction, in the worker's hand", .destroy = true, .replace = true, .wait = 100 },
};

static void pool_desc(const struct pool_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(pool, pool_table, pool_desc);

static struct ib_pool_fmr *held_fmr[8];
static unsigned int held_wait;
static u64 *held_again;

static void release_all(struct kunit *test, struct fence *f)
{
	int i;

	for (i = 0; i < 8; i++)
		ib_fmr_pool_unmap(held_fmr[i]);
	/* The worker is called for these, being a batch. */
	msleep(held_wait);
	/* At the same iova the packet may be carried out against it, as the header says. */
	for (i = 0; held_again && i < 8; i++) {
		held_fmr[i] = ib_fmr_pool_map_phys(f->pool, held_again, 1, SZ_1G);
		KUNIT_EXPECT_FALSE(test, IS_ERR(held_fmr[i]));
	}
}

static void fence_of_pool(struct kunit *test)
{
	const struct pool_row *row = test->param_value;
	struct ib_pd *pd = ibt_pd(test);
	struct hammer *h = hold_make(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 8 * PG, 1);
	struct fence f = { .fn = row->destroy ? fence_destroy : fence_flush };
	struct ib_fmr_pool_param param = row->param;
	u64 *list = ibt_page_list(test, b);
	int i;

	param.pool_size = 8;
	param.max_pages_per_fmr = 1;
	param.page_shift = PAGE_SHIFT;
	param.access = FMR_ALL;
	f.pool = ib_create_fmr_pool(pd, &param);
	KUNIT_ASSERT_FALSE(test, IS_ERR(f.pool));
	if (row->replace)
		ibt_force_replace(test);
	held_wait = row->wait;
	held_again = row->again ? list : NULL;
	for (i = 0; i < 8; i++) {
		held_fmr[i] = ib_fmr_pool_map_phys(f.pool, list + i, 1, HELD_IOVA);
		KUNIT_EXPECT_FALSE(test, IS_ERR(held_fmr[i]));
	}
	fence_holds(test, h, &f, b, held_fmr[3]->fmr->rkey, release_all);
	for (i = 0; row->again && i < 8; i++)
		ib_fmr_pool_unmap(held_fmr[i]);
	if (!row->destroy)
		ib_destroy_fmr_pool(f.pool);
}

/*
 * Reuse: the packet is held while its MR is released and everything is mapped to other pages at the
 * same iova, and again after longer than a grace period and a re-keying take. Not a byte of those
 * changes. As many are released as call the worker, and an MR that came back too soon would be the
 * next to be taken, so this does not rest on chance.
 */
static const struct reuse_row {
	const char *desc;
	bool replace, cache, fmr;
} reuse_table[] = {
	{ "FMR", .fmr = true },
	{ "FMR, replaced", .fmr = true, .replace = true },
	{ "pool" },
	{ "pool, replaced", .replace = true },
	{ "pool with cache", .cache = true },
};

static void reuse_desc(const struct reuse_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(reuse, reuse_table, reuse_desc);

#define REUSED	8

struct reuse {
	struct ib_fmr_pool *pool;
	struct ib_pool_fmr *entry[REUSED];
	struct ib_fmr *fmr[REUSED];
};

/* All of them to @list, which has as many pages. Return: how many were mapped. */
static int reuse_map(struct reuse *r, u64 *list)
{
	int i, n = 0;

	for (i = 0; r->pool && i < REUSED; i++)
		if (!IS_ERR_OR_NULL(r->entry[i]))
			ib_fmr_pool_unmap(r->entry[i]);
	for (i = 0; i < REUSED && list; i++) {
		if (r->pool) {
			r->entry[i] = ib_fmr_pool_map_phys(r->pool, list + i, 1, HELD_IOVA);
			n += !IS_ERR(r->entry[i]);
		} else {
			n += !ib_map_phys_fmr(r->fmr[i], list + i, 1, HELD_IOVA);
		}
	}
	return n;
}

static void fence_of_reuse(struct kunit *test)
{
	const struct reuse_row *row = test->param_value;
	struct ib_pd *pd = ibt_pd(test);
	struct hammer *h = hold_make(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, REUSED * PG, 1);
	struct ibt_buf *other = ibt_buf(test, IBT_SCATTER, 3 * REUSED * PG, 2);
	u64 *list = ibt_page_list(test, b), *others = ibt_page_list(test, other);
	struct task_struct *writer;
	struct reuse r = {};
	int i;

	if (row->replace)
		ibt_force_replace(test);
	for (i = 0; row->fmr && i < REUSED; i++)
		r.fmr[i] = ibt_fmr(test, pd, FMR_ALL, 1, 32767);
	if (!row->fmr)
		r.pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){
			.cache = row->cache, .pool_size = REUSED, .max_pages_per_fmr = 1 });
	KUNIT_ASSERT_EQ(test, reuse_map(&r, list), REUSED);
	writer = hold_write(test, h, r.pool ? r.entry[3]->fmr->rkey : r.fmr[3]->rkey);
	KUNIT_EXPECT_GT(test, reuse_map(&r, others), 0);
	msleep(300);
	reuse_map(&r, others + REUSED);
	/* What a pool's entries gave back is in stock by now, if it may be. */
	msleep(300);
	if (r.pool)
		KUNIT_EXPECT_GT(test, reuse_map(&r, others + 2 * REUSED) + row->replace, 0);
	hold_end(test, writer);
	msleep(50);
	KUNIT_EXPECT_TRUE_MSG(test, ibt_intact(other),
			      "a packet of an old mapping was carried out against a new one");
	if (r.pool)
		reuse_map(&r, NULL);
}

static struct kunit_case fmr_fence_cases[] = {
	KUNIT_CASE_PARAM(fence_hammered, hammer_gen_params),
	KUNIT_CASE(fence_of_unmap),
	KUNIT_CASE(fence_of_unmap_after_remap),
	KUNIT_CASE_PARAM(fence_of_pool, pool_gen_params),
	KUNIT_CASE_PARAM(fence_of_reuse, reuse_gen_params),
	{}
};

IBT_SUITE(fmr_fence, fmr_fence_cases);
