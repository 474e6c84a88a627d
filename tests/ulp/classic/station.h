/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What every ULP here needs of its own: a queue pair with a CQ whose handler polls, orders that go
 * out, replies that come in, and pages of data. In a header, so that each source compiles it for
 * the kernel it was written for: every call is a classic one.
 */
#ifndef CLASSIC_STATION_H
#define CLASSIC_STATION_H

#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/jiffies.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>
#include <rdma/ib_fmr_pool.h>

#include "link.h"

#define STATION_RECV	BIT_ULL(32)	/* in wr_id: a receive */
#define PATIENCE	(30 * HZ)

struct station {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct link *link;
	u32 lkey;
	u8 *mem;			/* two pages: LINK_DEPTH orders, LINK_DEPTH replies */
	u64 dma;
	unsigned int in_softirq;	/* replies that came in softirq */
};

#define STATION_MEM	(2 * PAGE_SIZE)

static inline struct order *station_order(struct station *st, unsigned int i)
{
	return (struct order *)st->mem + i;
}

static inline struct reply *station_reply_at(struct station *st, unsigned int i)
{
	return (struct reply *)(st->mem + PAGE_SIZE) + i;
}

static inline int station_alloc(struct station *st, struct ib_device *device, struct ib_pd *pd)
{
	st->device = device;
	st->pd = pd;
	st->mem = alloc_pages_exact(STATION_MEM, GFP_KERNEL | __GFP_ZERO);
	if (!st->mem)
		return -ENOMEM;
	st->dma = ib_dma_map_single(device, st->mem, STATION_MEM, DMA_BIDIRECTIONAL);
	return ib_dma_mapping_error(device, st->dma) ? -ENOMEM : 0;
}

static inline int station_post_recv(struct station *st, unsigned int i)
{
	struct ib_sge sge = {
		.addr = st->dma + PAGE_SIZE + i * sizeof(struct reply),
		.length = sizeof(struct reply),
		.lkey = st->lkey,
	};
	struct ib_recv_wr wr = { .wr_id = STATION_RECV | i, .sg_list = &sge, .num_sge = 1 };
	struct ib_recv_wr *bad_wr;

	return ib_post_recv(st->qp, &wr, &bad_wr);
}

/* @lkey reaches the orders and replies. */
static inline int station_open(struct station *st, u32 lkey, ib_comp_handler handler, void *context)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = 2 * LINK_DEPTH, .max_recv_wr = LINK_DEPTH,
			.max_send_sge = 2, .max_recv_sge = 1,
		},
	};
	unsigned int i;
	int err;

	BUILD_BUG_ON(LINK_DEPTH * sizeof(struct order) > PAGE_SIZE);
	st->lkey = lkey;
	st->cq = ib_create_cq(st->device, handler, NULL, context, 4 * LINK_DEPTH, 0);
	if (IS_ERR(st->cq))
		return PTR_ERR(st->cq);
	err = ib_req_notify_cq(st->cq, IB_CQ_NEXT_COMP);
	if (err)
		return err;
	init.send_cq = st->cq;
	init.recv_cq = st->cq;
	st->qp = ib_create_qp(st->pd, &init);
	if (IS_ERR(st->qp))
		return PTR_ERR(st->qp);
	st->link = link_open(st->qp);
	if (IS_ERR(st->link))
		return PTR_ERR(st->link);
	for (i = 0; i < LINK_DEPTH && !err; i++)
		err = station_post_recv(st, i);
	return err;
}

/* Also of one that was not opened to the end. Return: of ib_destroy_cq(). */
static inline int station_close(struct station *st)
{
	int err = 0;

	if (!IS_ERR_OR_NULL(st->link))
		link_close(st->link);
	if (!IS_ERR_OR_NULL(st->qp))
		ib_destroy_qp(st->qp);
	if (!IS_ERR_OR_NULL(st->cq))
		err = ib_destroy_cq(st->cq);
	if (st->mem) {
		ib_dma_unmap_single(st->device, st->dma, STATION_MEM, DMA_BIDIRECTIONAL);
		free_pages_exact(st->mem, STATION_MEM);
	}
	return err;
}

/* Any context. @cookie below LINK_DEPTH, not under way; @data: what follows the order, or NULL. */
static inline int station_send(struct station *st, enum order_op op, u32 rkey, u64 addr, u32 len,
			       u32 seed, unsigned int cookie, struct ib_sge *data)
{
	struct order *o = station_order(st, cookie);
	struct ib_sge sge[2] = { {
		.addr = st->dma + cookie * sizeof(*o), .length = sizeof(*o),
		.lkey = st->lkey,
	} };
	struct ib_send_wr wr = { .wr_id = cookie, .sg_list = sge, .num_sge = 1,
				 .opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED };
	struct ib_send_wr *bad_wr;

	if (data) {
		sge[1] = *data;
		wr.num_sge = 2;
	}
	ib_dma_sync_single_for_cpu(st->device, sge[0].addr, sizeof(*o), DMA_BIDIRECTIONAL);
	*o = (struct order){ .op = op, .rkey = rkey, .addr = addr, .len = len, .seed = seed,
			     .cookie = cookie };
	ib_dma_sync_single_for_device(st->device, sge[0].addr, sizeof(*o), DMA_BIDIRECTIONAL);
	return ib_post_send(st->qp, &wr, &bad_wr);
}

/* A reply, out of a completion, whose buffer is posted again; false for anything else. */
static inline bool station_reply(struct station *st, const struct ib_wc *wc, struct reply *reply)
{
	unsigned int i = wc->wr_id & ~STATION_RECV;
	u64 dma = st->dma + PAGE_SIZE + i * sizeof(*reply);

	if (wc->status != IB_WC_SUCCESS || !(wc->wr_id & STATION_RECV) || i >= LINK_DEPTH)
		return false;
	ib_dma_sync_single_for_cpu(st->device, dma, sizeof(*reply), DMA_BIDIRECTIONAL);
	*reply = *station_reply_at(st, i);
	ib_dma_sync_single_for_device(st->device, dma, sizeof(*reply), DMA_BIDIRECTIONAL);
	st->in_softirq += in_serving_softirq() ? 1 : 0;
	return !station_post_recv(st, i) && reply->cookie < LINK_DEPTH;
}

/*
 * The stock of a pool, or of windows, follows demand: a burst may find it empty, and comes again,
 * as a command that a classic ULP puts back into its queue.
 */
static inline bool station_again(int err, unsigned int *tries)
{
	if ((err != -EAGAIN && err != -ENOMEM) || ++*tries > 1000)
		return false;
	msleep(20);
	return true;
}

/* --- pages of data, in no order, mapped --- */

struct data {
	struct ib_device *device;
	unsigned int nr;
	struct scatterlist *sg;
	u64 *list;			/* as a page list */
};

static inline void data_free(struct data *d)
{
	unsigned int i;

	if (!d)
		return;
	if (d->list)
		ib_dma_unmap_sg(d->device, d->sg, d->nr, DMA_BIDIRECTIONAL);
	for (i = 0; d->sg && i < d->nr; i++)
		if (sg_page(&d->sg[i]))
			__free_page(sg_page(&d->sg[i]));
	kfree(d->list);
	kfree(d->sg);
	kfree(d);
}

static inline struct data *data_alloc(struct ib_device *device, unsigned int nr)
{
	struct data *d = kzalloc(sizeof(*d), GFP_KERNEL);
	unsigned int i;
	u64 *list;

	if (!d)
		return NULL;
	d->device = device;
	d->nr = nr;
	d->sg = kcalloc(nr, sizeof(*d->sg), GFP_KERNEL);
	list = kcalloc(nr, sizeof(*list), GFP_KERNEL);
	if (d->sg)
		sg_init_table(d->sg, nr);
	if (!d->sg || !list)
		goto err;
	/* From the end, every other one last: neighbours in the list are none in memory. */
	for (i = 0; i < nr; i++) {
		unsigned int at = nr - 1 - i;
		struct page *page = alloc_page(GFP_KERNEL);

		if (!page)
			goto err;
		at = at % 2 ? at / 2 : (nr - 1) - at / 2;
		sg_set_page(&d->sg[at], page, PAGE_SIZE, 0);
	}
	if (ib_dma_map_sg(device, d->sg, nr, DMA_BIDIRECTIONAL) != nr)
		goto err;
	for (i = 0; i < nr; i++)
		list[i] = ib_sg_dma_address(device, &d->sg[i]);
	d->list = list;
	return d;
err:
	kfree(list);
	data_free(d);
	return NULL;
}

static inline u8 *data_byte(const struct data *d, u32 off)
{
	return (u8 *)sg_virt(&d->sg[off / PAGE_SIZE]) + off % PAGE_SIZE;
}

static inline void data_sync(struct data *d, bool cpu)
{
	unsigned int i;

	for (i = 0; i < d->nr; i++)
		if (cpu)
			ib_dma_sync_single_for_cpu(d->device, d->list[i], PAGE_SIZE,
						   DMA_BIDIRECTIONAL);
		else
			ib_dma_sync_single_for_device(d->device, d->list[i], PAGE_SIZE,
						      DMA_BIDIRECTIONAL);
}

/* Bytes [off, off + len) are what belongs to @seed from here on. */
static inline void data_fill(struct data *d, u32 off, u32 len, u32 seed)
{
	u32 i;

	data_sync(d, true);
	for (i = 0; i < len; i++)
		*data_byte(d, off + i) = pattern(seed, i);
	data_sync(d, false);
}

static inline u32 data_wrong(struct data *d, u32 off, u32 len, u32 seed)
{
	u32 i, wrong = 0;

	data_sync(d, true);
	for (i = 0; i < len; i++)
		wrong += *data_byte(d, off + i) != pattern(seed, i);
	data_sync(d, false);
	return wrong;
}

#endif /* CLASSIC_STATION_H */
