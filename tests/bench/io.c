// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Whole I/Os: an RDMA READ of 4 KiB and of 64 KiB from memory that is registered for it and given
 * back after it, by FMR pool and by FRWR both ways. Everything is counted: the transfer, the
 * re-keying in the background, the waiting apart from idle time.
 *
 * FRWR pipelined is one chain of REG_MR, READ and LOCAL_INV, as a ULP posts that sends the key to
 * itself. Synchronous is what a ULP does that has to hand the key to a peer: REG_MR is waited for,
 * then the READ, and LOCAL_INV is waited for before the pages are given back.
 *
 * Beside them the transfer alone, from memory that stays registered, by a plain READ and by
 * rdma_rw_ctx, which on RoCE registers nothing either: they say what registration has to be
 * measured against.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include <rdma/rw.h>

#include "bench.h"

#define READS	1024

struct io {
	struct bench *b;
	struct bench_qp *q;
	struct bench_pool p;
	struct bench_frwr f;
	void *buf;
	unsigned int pages;
	struct bench_frwr stays;
	struct scatterlist local[16];
};

typedef int io_way(void *arg);

static void read_request(struct io *io, struct ib_sge *sge, u64 iova, u32 rkey)
{
	struct ib_rdma_wr *wr = &io->f.data;

	*sge = (struct ib_sge){
		.addr = (uintptr_t)io->buf, .length = io->pages << PAGE_SHIFT,
		.lkey = io->b->pd->local_dma_lkey,
	};
	wr->wr.next = NULL;
	wr->wr.wr_cqe = &io->q->cqe;
	wr->wr.opcode = IB_WR_RDMA_READ;
	wr->wr.sg_list = sge;
	wr->wr.num_sge = 1;
	wr->wr.send_flags = IB_SEND_SIGNALED;
	wr->remote_addr = iova;
	wr->rkey = rkey;
}

static int by_fmr(void *arg)
{
	struct io *io = arg;
	struct ib_pool_fmr *fmr;
	struct ib_sge sge;
	int err;

	fmr = ib_fmr_pool_map_phys(io->p.pool, io->b->list, io->pages, BENCH_IOVA);
	if (IS_ERR(fmr))
		return PTR_ERR(fmr);
	read_request(io, &sge, BENCH_IOVA, fmr->fmr->rkey);
	err = ib_post_send(io->q->qp, &io->f.data.wr, NULL);
	if (!err)
		err = bench_qp_wait(io->q);
	ib_fmr_pool_unmap(fmr);
	return err;
}

static int by_frwr(struct io *io, bool sync)
{
	struct bench_frwr *f = &io->f;
	struct ib_sge sge;
	int err;

	err = bench_frwr_map(io->b, io->q, f, io->pages);
	if (err)
		return err;
	read_request(io, &sge, f->mr->iova, f->mr->rkey);
	if (sync) {
		/* the key first, the transfer then, and invalidated before all is given back */
		f->reg.wr.send_flags = IB_SEND_SIGNALED;
		err = ib_post_send(io->q->qp, &f->reg.wr, NULL);
		if (!err)
			err = bench_qp_wait(io->q);
		if (!err)
			err = ib_post_send(io->q->qp, &f->data.wr, NULL);
		if (!err)
			err = bench_qp_wait(io->q);
		if (!err)
			err = ib_post_send(io->q->qp, &f->inv, NULL);
	} else {
		f->data.wr.send_flags = 0;
		f->reg.wr.next = &f->data.wr;
		f->data.wr.next = &f->inv;
		err = ib_post_send(io->q->qp, &f->reg.wr, NULL);
	}
	if (!err)
		err = bench_qp_wait(io->q);
	bench_frwr_put(io->q, f);
	return err;
}

static int by_frwr_pipelined(void *arg)
{
	return by_frwr(arg, false);
}

static int by_frwr_sync(void *arg)
{
	return by_frwr(arg, true);
}

static int by_nothing(void *arg)
{
	struct io *io = arg;
	struct ib_sge sge;
	int err;

	read_request(io, &sge, io->stays.mr->iova, io->stays.mr->rkey);
	err = ib_post_send(io->q->qp, &io->f.data.wr, NULL);
	return err ? err : bench_qp_wait(io->q);
}

static int by_rw_ctx(void *arg)
{
	struct io *io = arg;
	struct rdma_rw_ctx ctx;
	u32 port = rdma_start_port(io->b->dev);
	int n, err;

	n = rdma_rw_ctx_init(&ctx, io->q->qp, port, io->local, io->pages, 0, io->stays.mr->iova,
			     io->stays.mr->rkey, DMA_FROM_DEVICE);
	if (n < 0)
		return n;
	err = rdma_rw_ctx_post(&ctx, io->q->qp, port, &io->q->cqe, NULL);
	if (!err)
		err = bench_qp_wait(io->q);
	rdma_rw_ctx_destroy(&ctx, io->q->qp, port, io->local, io->pages, DMA_FROM_DEVICE);
	return err;
}

/* Memory that stays registered while others come and go. */
static int stay(struct io *io)
{
	int err;

	err = bench_frwr_map(io->b, io->q, &io->stays, 16);
	if (err)
		return err;
	io->stays.reg.wr.send_flags = IB_SEND_SIGNALED;
	err = ib_post_send(io->q->qp, &io->stays.reg.wr, NULL);
	return err ? err : bench_qp_wait(io->q);
}

static int way_total(struct io *io, const char *name, io_way *way)
{
	struct bench_span span;
	int i, err = 0;

	for (i = 0; i < 20 && !err; i++)
		err = way(io);
	bench_begin(&span);
	for (i = 0; i < 200 && !err; i++) {
		err = way(io);
		cond_resched();
	}
	if (!err)
		bench_result(name, io->pages, bench_end(&span) / 200);
	return err;
}

int bench_io(struct bench *b)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = BENCH_PAGES, .page_shift = PAGE_SHIFT,
		.access = BENCH_ACCESS, .pool_size = READS, .dirty_watermark = READS / 4,
	};
	struct io *io = kzalloc(sizeof(*io), GFP_KERNEL);
	unsigned int pages, i;
	u64 each;
	int err;

	if (!io)
		return -ENOMEM;
	io->b = b;
	io->buf = alloc_pages_exact(16 * PAGE_SIZE, GFP_KERNEL | __GFP_ZERO);
	io->q = bench_qp_create(b, false);
	err = io->buf ? PTR_ERR_OR_ZERO(io->q) : -ENOMEM;
	if (!err) {
		sg_init_table(io->local, ARRAY_SIZE(io->local));
		for (i = 0; i < ARRAY_SIZE(io->local); i++)
			sg_set_buf(&io->local[i], io->buf + i * PAGE_SIZE, PAGE_SIZE);
		err = stay(io);
	}
	if (!err)
		err = bench_pool_create(b, &io->p, param);
	for (pages = 1; pages <= 16 && !err; pages += 15) {
		io->pages = pages;
		err = bench_cycle(&io->p, by_fmr, io, READS, READS, &each);
		if (err)
			break;
		bench_result("io_read_fmr", pages, each);
		err = way_total(io, "io_read_frwr_pipelined", by_frwr_pipelined);
		if (!err)
			err = way_total(io, "io_read_frwr_sync", by_frwr_sync);
		if (!err)
			err = way_total(io, "io_read_rw_ctx", by_rw_ctx);
		if (!err)
			err = way_total(io, "io_read_alone", by_nothing);
	}
	bench_pool_destroy(&io->p);
	if (io->stays.mr)
		bench_frwr_put(io->q, &io->stays);
	if (!IS_ERR_OR_NULL(io->q))
		bench_qp_destroy(io->q);
	if (io->buf)
		free_pages_exact(io->buf, 16 * PAGE_SIZE);
	kfree(io);
	return err ? bench_fail("io", err) : 0;
}
