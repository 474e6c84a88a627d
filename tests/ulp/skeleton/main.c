// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * skel: a ULP to start from, on ib_mr. Made by `make ulp`; change what you like.
 *
 * For each RDMA device it has a control block that peers may read (a region), takes part of it to
 * let a peer write an answer (a window), and does an I/O as a storage driver does: pages that come
 * from elsewhere are DMA-mapped, given a key by an FMR pool, moved by the peer, and let go.
 *
 * The peer is a queue pair in this kernel (peer.c), so that all of it runs with one machine and
 * one device. Put your connection in its place, say one of rdma_cm; nothing here would change.
 *
 * Who may touch what, when: the device may touch memory from the moment a key is told to a peer
 * until the call that takes the key back has returned and, where that is no fence, until
 * ib_flush_fmr_pool() or ib_mr_fence(). Only then is memory freed or used for something else.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_dma.h>
#include <rdma/ib_fmr_pool.h>
#include <rdma/ib_mr.h>

#include "peer.h"

#define CTRL_SIZE	PAGE_SIZE
#define ANSWER_AT	1024		/* in the control block: where a peer may write */
#define ANSWER_SIZE	128
#define IO_PAGES	16

struct skel_dev {
	struct ib_device *ib;
	struct ib_pd *pd;
	struct skel_peer peer;
	u8 *ctrl;
	struct ib_mr *mr;		/* the control block's */
	struct ib_mw *mw;		/* on a part of it */
	struct ib_fmr_pool *pool;
	struct page *pages[IO_PAGES];	/* as a file system or the block layer would bring them */
	u64 dma[IO_PAGES];
};

static struct ib_client skel_client;

/* A part of the region, for a peer to write to, and only while it should. */
static int skel_answer(struct skel_dev *dev)
{
	struct ib_mw_bind bind = {
		.bind_info = {
			.mr = dev->mr,
			.addr = dev->mr->iova + ANSWER_AT,
			.length = ANSWER_SIZE,
			.mw_access_flags = IB_ACCESS_REMOTE_WRITE,
		},
	};
	int err;

	/* Not signalled, so nothing is posted: the key works when the call returns. */
	err = ib_bind_mw(dev->peer.ours, dev->mw, &bind);
	if (err)
		return err;
	err = skel_peer_write(&dev->peer, bind.bind_info.addr, dev->mw->rkey, ANSWER_SIZE);

	bind.bind_info.length = 0;	/* nobody is let in any more */
	return ib_bind_mw(dev->peer.ours, dev->mw, &bind) ?: err;
}

/* DMA addresses of the pages; the peer is going to read them. All or none. */
static int skel_io_dma(struct skel_dev *dev)
{
	int i;

	for (i = 0; i < IO_PAGES; i++) {
		dev->dma[i] = ib_dma_map_page(dev->ib, dev->pages[i], 0, PAGE_SIZE, DMA_TO_DEVICE);
		if (ib_dma_mapping_error(dev->ib, dev->dma[i]))
			goto undo;
	}
	return 0;
undo:
	while (i--)
		ib_dma_unmap_page(dev->ib, dev->dma[i], PAGE_SIZE, DMA_TO_DEVICE);
	return -ENOMEM;
}

/*
 * -EAGAIN is the pool's way to say "in a moment": keys that were used are being made new. Here we
 * may sleep; where you may not, keep the request and try again from a timer or a completion.
 */
static struct ib_pool_fmr *skel_io_key(struct skel_dev *dev, u64 iova)
{
	struct ib_pool_fmr *fmr;
	int tries = 100;

	for (;;) {
		fmr = ib_fmr_pool_map_phys(dev->pool, dev->dma, IO_PAGES, iova);
		if (fmr != ERR_PTR(-EAGAIN) || !--tries)
			return fmr;
		usleep_range(1000, 2000);
	}
}

/* One I/O: scattered pages become one stretch for the peer, under a key that dies with the I/O. */
static int skel_io(struct skel_dev *dev)
{
	struct ib_pool_fmr *fmr;
	int i, err;

	for (i = 0; i < IO_PAGES; i++)
		memset(page_address(dev->pages[i]), 'a' + i, PAGE_SIZE);
	err = skel_io_dma(dev);
	if (err)
		return err;
	fmr = skel_io_key(dev, 0x10000);	/* the iova is yours to choose */
	if (IS_ERR(fmr)) {
		err = PTR_ERR(fmr);
		goto unmap;
	}
	err = skel_peer_read(&dev->peer, fmr->io_virtual_address, fmr->fmr->rkey,
			     IO_PAGES * PAGE_SIZE);
	ib_fmr_pool_unmap(fmr);
	/*
	 * The key is dead. A packet that was let in before may still be read for, so nothing is
	 * unmapped or given away before a fence. One serves many I/Os: where they come fast,
	 * collect what is done, fence, and give all of it back (docs/porting.md has the recipe).
	 */
	ib_flush_fmr_pool(dev->pool);
	for (i = 0; !err && i < IO_PAGES; i++)
		if (dev->peer.buf[i * PAGE_SIZE] != 'a' + i)
			err = -EBADMSG;
unmap:
	for (i = 0; i < IO_PAGES; i++)
		ib_dma_unmap_page(dev->ib, dev->dma[i], PAGE_SIZE, DMA_TO_DEVICE);
	return err;
}

/* In the order that skel_close() undoes from its end. What was not made is NULL or an error. */
static int skel_open(struct skel_dev *dev)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = IO_PAGES,
		.page_shift = PAGE_SHIFT,
		.access = IB_ACCESS_REMOTE_READ,
		.pool_size = 8,			/* I/Os at one time */
		.dirty_watermark = 4,
	};
	int i, err;

	dev->pd = ib_alloc_pd(dev->ib, 0);
	if (IS_ERR(dev->pd))
		return PTR_ERR(dev->pd);
	err = skel_peer_open(&dev->peer, dev->pd, IO_PAGES * PAGE_SIZE);
	if (err)
		return err;
	dev->ctrl = kzalloc(CTRL_SIZE, GFP_KERNEL);
	if (!dev->ctrl)
		return -ENOMEM;
	for (i = 0; i < IO_PAGES; i++) {
		dev->pages[i] = alloc_page(GFP_KERNEL);
		if (!dev->pages[i])
			return -ENOMEM;
	}
	/* MW_BIND, and local write, which a window for writing needs; a peer may only read */
	dev->mr = ib_mr_reg_kernel(dev->pd, dev->ctrl, CTRL_SIZE, IB_ACCESS_LOCAL_WRITE |
				   IB_ACCESS_REMOTE_READ | IB_ACCESS_MW_BIND, NULL);
	if (IS_ERR(dev->mr))
		return PTR_ERR(dev->mr);
	dev->mw = ib_alloc_mw(dev->pd, IB_MW_TYPE_1);
	if (IS_ERR(dev->mw))
		return PTR_ERR(dev->mw);
	dev->pool = ib_create_fmr_pool(dev->pd, &param);
	return PTR_ERR_OR_ZERO(dev->pool);
}

/*
 * What stands on something goes before it: pool and window, the region, the queue pairs, the PD;
 * and memory after whatever let a device reach it.
 */
static void skel_close(struct skel_dev *dev)
{
	int i;

	if (!IS_ERR_OR_NULL(dev->pool))
		ib_destroy_fmr_pool(dev->pool);
	if (!IS_ERR_OR_NULL(dev->mw))
		ib_dealloc_mw(dev->mw);
	if (!IS_ERR_OR_NULL(dev->mr))
		ib_dereg_mr(dev->mr);
	for (i = 0; i < IO_PAGES; i++)
		if (dev->pages[i])
			__free_page(dev->pages[i]);
	kfree(dev->ctrl);
	skel_peer_close(&dev->peer);
	if (!IS_ERR_OR_NULL(dev->pd))
		ib_dealloc_pd(dev->pd);
}

static int skel_add(struct ib_device *ib)
{
	struct skel_dev *dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	int err;

	if (!dev)
		return -ENOMEM;
	dev->ib = ib;
	err = skel_open(dev);
	if (err)
		goto out;
	memcpy(dev->ctrl, "hello", 6);
	err = skel_peer_read(&dev->peer, dev->mr->iova, dev->mr->rkey, 6);
	if (!err && strcmp(dev->peer.buf, "hello"))
		err = -EBADMSG;
	if (err)
		goto out;
	pr_info("%s: the peer read the control block\n", dev_name(&ib->dev));
	strscpy(dev->peer.buf, "world", ANSWER_SIZE);
	err = skel_answer(dev);
	if (!err && strcmp(dev->ctrl + ANSWER_AT, "world"))
		err = -EBADMSG;
	if (err)
		goto out;
	pr_info("%s: the peer wrote its answer through a window\n", dev_name(&ib->dev));
	err = skel_io(dev);
	if (err)
		goto out;
	pr_info("%s: the peer read %lu bytes by an FMR\n", dev_name(&ib->dev),
		IO_PAGES * PAGE_SIZE);
	ib_set_client_data(ib, &skel_client, dev);
	return 0;
out:
	pr_err("%s: %d\n", dev_name(&ib->dev), err);
	skel_close(dev);
	kfree(dev);
	return err;
}

static void skel_remove(struct ib_device *ib, void *data)
{
	skel_close(data);
	kfree(data);
}

static struct ib_client skel_client = {
	.name = KBUILD_MODNAME, .add = skel_add, .remove = skel_remove,
};

static int __init skel_init(void)
{
	return ib_register_client(&skel_client);
}

static void __exit skel_exit(void)
{
	ib_unregister_client(&skel_client);
}

module_init(skel_init);
module_exit(skel_exit);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("skel, a user of ib_mr");
