// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the others cost: the bare live map, and fast-registration work requests both ways.
 *
 * Synchronous: the caller must have the key before he goes on, so he registers and waits. Counted
 * with the invalidation in the same chain, which no ULP can do and is the least it could cost; and
 * as a ULP does it, who waits for the one, uses the key, and waits for the other. Pipelined: the
 * registration goes before a data request in its chain and the invalidation behind it, and only the
 * last one is waited for, as it would be without them; counted is what they add to that data
 * request.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/slab.h>

#include "bench.h"

#define BLOCKS	9
#define BLOCK	50

static int live_map(struct bench *b)
{
	struct ib_mr *mr = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, BENCH_PAGES);
	struct bench_samples *s = kzalloc(sizeof(*s), GFP_KERNEL);
	unsigned int i, k;

	if (IS_ERR(mr) || !s) {
		kfree(s);
		return bench_fail("live map", -ENOMEM);
	}
	for (i = 0; i < ARRAY_SIZE(bench_sizes); i++) {
		for (k = 0; k < 100; k++) {
			unsigned long flags;
			u64 from;

			local_irq_save(flags);
			from = bench_clock();
			ib_map_mr_sg(mr, b->sgl, bench_sizes[i], NULL, PAGE_SIZE);
			bench_sample(s, bench_clock() - from);
			local_irq_restore(flags);
		}
		bench_result("live_map", bench_sizes[i], bench_median(s));
	}
	kfree(s);
	ib_dereg_mr_user(mr, NULL);
	return 0;
}

static int sync_once(struct bench *b, struct bench_qp *q, struct bench_frwr *f, unsigned int pages,
		     bool ulp)
{
	int err = bench_frwr_map(b, q, f, pages);

	if (err)
		return err;
	if (ulp) {
		f->reg.wr.send_flags = IB_SEND_SIGNALED;
		err = ib_post_send(q->qp, &f->reg.wr, NULL);
		if (!err)
			err = bench_qp_wait(q);
		if (!err)
			err = ib_post_send(q->qp, &f->inv, NULL);
	} else {
		f->reg.wr.next = &f->inv;
		err = ib_post_send(q->qp, &f->reg.wr, NULL);
	}
	if (!err)
		err = bench_qp_wait(q);
	bench_frwr_put(q, f);
	return err;
}

/* The data request of a chain: a write of 8 bytes to the beginning of @mr. */
static void data_request(struct bench *b, struct bench_qp *q, struct bench_frwr *f,
			 struct ib_sge *sge, struct ib_mr *mr)
{
	*sge = (struct ib_sge){
		.addr = b->list[BENCH_PAGES - 1], .length = 8, .lkey = b->pd->local_dma_lkey,
	};
	f->data.wr.next = NULL;
	f->data.wr.wr_cqe = &q->cqe;
	f->data.wr.opcode = IB_WR_RDMA_WRITE;
	f->data.wr.sg_list = sge;
	f->data.wr.num_sge = 1;
	f->data.wr.send_flags = IB_SEND_SIGNALED;
	f->data.remote_addr = mr->iova;
	f->data.rkey = mr->rkey;
}

/* Registration, data and invalidation in one chain; *@post is what the caller's part took. */
static int pipelined_once(struct bench *b, struct bench_qp *q, struct bench_frwr *f,
			  unsigned int pages, u64 *post)
{
	struct ib_sge sge;
	u64 from;
	int err;

	preempt_disable();
	from = bench_clock();
	err = bench_frwr_map(b, q, f, pages);
	if (err) {
		preempt_enable();
		return err;
	}
	data_request(b, q, f, &sge, f->mr);
	f->data.wr.send_flags = 0;
	f->reg.wr.next = &f->data.wr;
	f->data.wr.next = &f->inv;
	err = ib_post_send(q->qp, &f->reg.wr, NULL);
	*post = bench_clock() - from;
	preempt_enable();
	if (!err)
		err = bench_qp_wait(q);
	bench_frwr_put(q, f);
	return err;
}

static int data_once(struct bench *b, struct bench_qp *q, struct bench_frwr *f, struct ib_mr *mr,
		     u64 *post)
{
	struct ib_sge sge;
	u64 from;
	int err;

	preempt_disable();
	from = bench_clock();
	data_request(b, q, f, &sge, mr);
	err = ib_post_send(q->qp, &f->data.wr, NULL);
	*post = bench_clock() - from;
	preempt_enable();
	return err ? err : bench_qp_wait(q);
}

/* An MR that stays registered, for data requests on their own. */
static int register_one(struct bench *b, struct bench_qp *q, struct bench_frwr *f)
{
	int err = bench_frwr_map(b, q, f, 1);

	if (err)
		return err;
	f->reg.wr.send_flags = IB_SEND_SIGNALED;
	err = ib_post_send(q->qp, &f->reg.wr, NULL);
	return err ? err : bench_qp_wait(q);
}

enum how { SYNC, SYNC_ULP, PIPELINED, DATA };

struct one {
	struct bench *b;
	struct bench_qp *q;
	enum how how;
	struct ib_mr *stays;
	struct bench_frwr f;
};

static int once(struct one *o, unsigned int pages, u64 *post)
{
	if (o->how == SYNC || o->how == SYNC_ULP)
		return sync_once(o->b, o->q, &o->f, pages, o->how == SYNC_ULP);
	if (o->how == PIPELINED)
		return pipelined_once(o->b, o->q, &o->f, pages, post);
	return data_once(o->b, o->q, &o->f, o->stays, post);
}

/* All that one operation took: the median over blocks. The first block warms up. */
static int measure_total(struct one *o, unsigned int pages, u64 *total)
{
	struct bench_samples *s = kzalloc(sizeof(*s), GFP_KERNEL);
	struct bench_span span;
	unsigned int i, k;
	u64 post;
	int err = s ? 0 : -ENOMEM;

	for (i = 0; i <= BLOCKS && !err; i++) {
		bench_begin(&span);
		for (k = 0; k < BLOCK && !err; k++)
			err = once(o, pages, &post);
		if (i)
			bench_sample(s, bench_end(&span) / BLOCK);
		cond_resched();
	}
	if (!err)
		*total = bench_median(s);
	kfree(s);
	return err;
}

/*
 * What the caller did of that. Each one starts with all work of the one before it done, or it
 * would depend on that whether the softirq thread has to be woken.
 */
static int measure_post(struct one *o, unsigned int pages, u64 *post)
{
	struct bench_samples *s = kzalloc(sizeof(*s), GFP_KERNEL);
	unsigned int i;
	u64 each;
	int err = s ? 0 : -ENOMEM;

	for (i = 0; i < 60 && !err; i++) {
		usleep_range(500, 1000);
		err = once(o, pages, &each);
		if (i >= 10)
			bench_sample(s, each);
	}
	if (!err)
		*post = bench_median(s);
	kfree(s);
	return err;
}

/*
 * One at a time, from rest to rest: all that is done until the CPU is idle again. Whether the
 * waiter goes on before or after the softirq thread has finished is the scheduler's choice, and
 * counted up to there the same operation would have two prices. The sleeps between are taken off.
 */
static int measure_rest(struct one *o, unsigned int pages, u64 *each)
{
	struct bench_samples *s = kcalloc(2, sizeof(*s), GFP_KERNEL);
	struct bench_span span;
	unsigned int i, k;
	u64 post;
	int err = s ? 0 : -ENOMEM;

	for (i = 0; i <= 10 && !err; i++) {
		bench_begin(&span);
		for (k = 0; k < BLOCK && !err; k++) {
			if (i & 1)
				err = once(o, pages, &post);
			usleep_range(500, 1000);
		}
		if (i)
			bench_sample(&s[i & 1], bench_end(&span) / BLOCK);
	}
	if (!err)
		*each = bench_median(&s[1]) - bench_median(&s[0]);
	kfree(s);
	return err;
}

static int pipelined(struct one *o, u64 data_total, u64 data_post)
{
	u64 total, post;
	unsigned int i;
	int err = 0;

	o->how = PIPELINED;
	for (i = 0; i < ARRAY_SIZE(bench_sizes) && !err; i++) {
		unsigned int pages = bench_sizes[i];

		err = measure_total(o, pages, &total);
		if (!err)
			err = measure_post(o, pages, &post);
		if (err)
			break;
		bench_result("frwr_pipelined_post", pages, post - data_post);
		bench_result("frwr_pipelined_total", pages, total - data_total);
	}
	return err;
}

static int sync(struct one *o, const char *name, enum how how)
{
	unsigned int i;
	u64 total;
	int err = 0;

	o->how = how;
	for (i = 0; i < ARRAY_SIZE(bench_sizes) && !err; i++) {
		err = measure_rest(o, bench_sizes[i], &total);
		if (!err)
			bench_result(name, bench_sizes[i], total);
	}
	return err;
}

static int frwr(struct bench *b, bool bare)
{
	struct one *o = kzalloc(sizeof(*o), GFP_KERNEL);
	struct bench_frwr *stays = kzalloc(sizeof(*stays), GFP_KERNEL);
	u64 data_total, data_post;
	int err = -ENOMEM;

	if (!o || !stays)
		goto out;
	o->b = b;
	o->q = bench_qp_create(b, bare);
	err = PTR_ERR_OR_ZERO(o->q);
	if (err)
		goto out;
	if (bare) {
		err = sync(o, "frwr_sync_bare", SYNC);
		goto destroy;
	}
	err = register_one(b, o->q, stays);
	if (err)
		goto put;
	o->how = DATA;
	o->stays = stays->mr;
	err = measure_total(o, 1, &data_total);
	if (!err)
		err = measure_post(o, 1, &data_post);
	if (!err) {
		bench_result("data_request", 0, data_total);
		err = pipelined(o, data_total, data_post);
	}
	if (!err)
		err = sync(o, "frwr_sync", SYNC);
	if (!err)
		err = sync(o, "frwr_sync_ulp", SYNC_ULP);
put:
	if (stays->mr)
		bench_frwr_put(o->q, stays);
destroy:
	bench_qp_destroy(o->q);
out:
	kfree(stays);
	kfree(o);
	return err;
}

int bench_frwr(struct bench *b)
{
	int err = live_map(b);

	if (!err)
		err = frwr(b, false);
	if (!err)
		err = frwr(b, true);
	return err ? bench_fail("frwr", err) : 0;
}
