// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * xsvhba, of Oracle's kernels of 4.1: the map takes a fifth argument there. Maps in an atomic I/O
 * path, releases in the completion, cache, and single buffers that are mapped with DMA attributes.
 */
#include <linux/completion.h>
#include <linux/dma-attrs.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>
#include <rdma/ib_fmr_pool.h>

#include "station.h"

#define ME	"xsvhba"
#define IOS	16
#define PAGES	8

struct vhba_io {
	struct data *data;
	struct ib_pool_fmr *pool_fmr;
	u32 key, wrong;
	struct completion done;
};

struct vhba {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_mr *mr;
	struct ib_fmr_pool *fmr_pool;
	spinlock_t hba_lock;
	struct station st;
	struct vhba_io io[IOS];
	void *buf;
	u64 buf_dma;
};

static struct ib_client vhba_client;

static void vhba_comp(struct ib_cq *cq, void *context)
{
	struct vhba *vhba = context;
	unsigned long flags;
	struct vhba_io *io;
	struct reply reply;
	struct ib_wc wc;

	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	while (ib_poll_cq(cq, 1, &wc) > 0) {
		if (!station_reply(&vhba->st, &wc, &reply) || reply.cookie >= IOS)
			continue;
		io = &vhba->io[reply.cookie];
		spin_lock_irqsave(&vhba->hba_lock, flags);
		if (io->pool_fmr)
			ib_fmr_pool_unmap(io->pool_fmr);
		io->pool_fmr = NULL;
		spin_unlock_irqrestore(&vhba->hba_lock, flags);
		io->wrong = reply.wrong;
		complete(&io->done);
	}
}

static s64 vhba_round(struct vhba *vhba, u32 seed)
{
	unsigned int i, tries = 0;
	unsigned long flags;
	s64 wrong = 0;
	int err = 0;

	for (i = 0; i < IOS && !err; i++) {
		struct vhba_io *io = &vhba->io[i];

		data_fill(io->data, 0, PAGES * PAGE_SIZE, seed + i);
		reinit_completion(&io->done);
again:
		spin_lock_irqsave(&vhba->hba_lock, flags);
		io->pool_fmr = ib_fmr_pool_map_phys(vhba->fmr_pool, io->data->list, PAGES,
						    io->data->list[0], NULL);
		err = PTR_ERR_OR_ZERO(io->pool_fmr);
		if (err) {
			io->pool_fmr = NULL;
		} else {
			io->key = io->pool_fmr->fmr->rkey;
			err = station_send(&vhba->st, ORDER_READ, io->key, io->data->list[0],
					   PAGES * PAGE_SIZE, seed + i, i, NULL);
		}
		spin_unlock_irqrestore(&vhba->hba_lock, flags);
		if (station_again(err, &tries))
			goto again;
	}
	if (err)
		return err;
	for (i = 0; i < IOS; i++) {
		if (!wait_for_completion_timeout(&vhba->io[i].done, PATIENCE))
			return -ETIMEDOUT;
		wrong += vhba->io[i].wrong;
	}
	return wrong;
}

/* Attributes were a structure until 4.7. */
static s64 vhba_attrs(struct vhba *vhba)
{
	DEFINE_DMA_ATTRS(attrs);
	unsigned int i;
	u64 dma;

	dma_set_attr(DMA_ATTR_WRITE_BARRIER, &attrs);
	dma_set_attr(DMA_ATTR_WEAK_ORDERING, &attrs);
	dma = ib_dma_map_single_attrs(vhba->device, vhba->buf, PAGE_SIZE, DMA_TO_DEVICE, &attrs);
	if (ib_dma_mapping_error(vhba->device, dma))
		return -ENOMEM;
	vhba->buf_dma = dma;
	for (i = 0; i < PAGE_SIZE; i++)
		((u8 *)vhba->buf)[i] = pattern(42, i);
	ib_dma_sync_single_for_device(vhba->device, dma, PAGE_SIZE, DMA_TO_DEVICE);
	reinit_completion(&vhba->io[0].done);
	if (station_send(&vhba->st, ORDER_READ, vhba->mr->rkey, dma, PAGE_SIZE, 42, 0, NULL) ||
	    !wait_for_completion_timeout(&vhba->io[0].done, PATIENCE))
		return -EIO;
	ib_dma_unmap_single_attrs(vhba->device, dma, PAGE_SIZE, DMA_TO_DEVICE, &attrs);
	return vhba->io[0].wrong;
}

static void vhba_run(struct vhba *vhba)
{
	struct ib_pool_fmr *odd;
	unsigned int i, dead = 0;
	s64 wrong;

	wrong = vhba_round(vhba, 1);
	verdict(ME, "16 I/Os with five arguments, under a lock with irqs off", !wrong, "%lld",
		wrong);
	wrong = vhba_round(vhba, 1);
	verdict(ME, "the same again, from the cache", !wrong, "%lld", wrong);
	odd = ib_fmr_pool_map_phys(vhba->fmr_pool, vhba->io[0].data->list, 1, 0, &wrong);
	verdict(ME, "a fifth argument that means something is refused",
		PTR_ERR_OR_ZERO(odd) == -EINVAL, "%d", (int)PTR_ERR_OR_ZERO(odd));
	wrong = vhba_attrs(vhba);
	verdict(ME, "a buffer mapped with struct dma_attrs", !wrong, "%lld", wrong);
	ib_flush_fmr_pool(vhba->fmr_pool);
	for (i = 0; i < IOS; i++)
		dead += refused(vhba->pd, vhba->io[i].key, vhba->io[i].data->list[0]);
	verdict(ME, "after a flush the cache's keys are dead", dead == IOS, "%u of %u", dead, IOS);
}

static void vhba_add(struct ib_device *device)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = 256,
		.page_shift = PAGE_SHIFT,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
		.pool_size = 2 * IOS,
		.dirty_watermark = IOS,
		.cache = 1,
	};
	struct vhba *vhba = kzalloc(sizeof(*vhba), GFP_KERNEL);
	unsigned int i;
	int err = -ENOMEM;

	if (!vhba)
		return;
	vhba->device = device;
	spin_lock_init(&vhba->hba_lock);
	ib_set_client_data(device, &vhba_client, vhba);
	vhba->buf = (void *)get_zeroed_page(GFP_KERNEL);
	vhba->pd = ib_alloc_pd(device);
	if (!vhba->buf || IS_ERR(vhba->pd))
		goto out;
	for (i = 0; i < IOS; i++) {
		init_completion(&vhba->io[i].done);
		vhba->io[i].data = data_alloc(device, PAGES);
		if (!vhba->io[i].data)
			goto out;
	}
	vhba->mr = ib_get_dma_mr(vhba->pd, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ);
	vhba->fmr_pool = ib_create_fmr_pool(vhba->pd, &param);
	err = IS_ERR(vhba->mr) ? PTR_ERR(vhba->mr) : PTR_ERR_OR_ZERO(vhba->fmr_pool);
	if (!err)
		err = station_alloc(&vhba->st, device, vhba->pd);
	if (!err)
		err = station_open(&vhba->st, vhba->mr->lkey, vhba_comp, vhba);
out:
	verdict(ME, "set up", !err, "%d", err);
	if (!err)
		vhba_run(vhba);
}

static void vhba_remove(struct ib_device *device)
{
	struct vhba *vhba = ib_get_client_data(device, &vhba_client);
	unsigned int i;
	int err[2];

	if (!vhba)
		return;
	if (!IS_ERR_OR_NULL(vhba->fmr_pool))
		ib_destroy_fmr_pool(vhba->fmr_pool);
	station_close(&vhba->st);
	for (i = 0; i < IOS; i++)
		data_free(vhba->io[i].data);
	free_page((unsigned long)vhba->buf);
	err[0] = ib_dereg_mr(vhba->mr);
	err[1] = ib_dealloc_pd(vhba->pd);
	verdict(ME, "pool, MR and PD go", !err[0] && !err[1], "%d %d", err[0], err[1]);
	kfree(vhba);
}

static struct ib_client vhba_client = {
	.name = "classic_xsvhba",
	.add = vhba_add,
	.remove = vhba_remove,
};

int vhba_init(void)
{
	return ib_register_client(&vhba_client);
}

void vhba_exit(void)
{
	ib_unregister_client(&vhba_client);
}
