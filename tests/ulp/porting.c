// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The C of docs/porting.md, so that a compiler sees it: `make docs-check` looks whether what the
 * guide shows stands here. The module does what needs no queue pair, a region and an I/O by a pool,
 * on each device, and asks ib_mr_check() about both. The rest is compiled; tests/ulp/skeleton does
 * it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_dma.h>
#include <rdma/ib_fmr_pool.h>
#include <rdma/ib_mr.h>

#include "porting.h"

#define PAGES	4
#define LEN	(PAGES * PAGE_SIZE)

/* --- fast registration, as it was; the calls are the kernel's own --- */

int porting_frwr_map(struct ib_qp *qp, struct ib_mr *mr, struct scatterlist *sg, int nents)
{
	struct ib_reg_wr reg = { .wr.opcode = IB_WR_REG_MR, .wr.send_flags = IB_SEND_SIGNALED };
	int n = ib_map_mr_sg(mr, sg, nents, NULL, PAGE_SIZE);

	if (n != nents)
		return n < 0 ? n : -EINVAL;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	reg.mr = mr;
	reg.key = mr->rkey;
	reg.access = IB_ACCESS_REMOTE_READ;
	return ib_post_send(qp, &reg.wr, NULL);		/* and wait for its completion */
}

int porting_frwr_unmap(struct ib_qp *qp, struct ib_mr *mr)
{
	struct ib_send_wr inv = { .opcode = IB_WR_LOCAL_INV, .send_flags = IB_SEND_SIGNALED };

	inv.ex.invalidate_rkey = mr->rkey;
	return ib_post_send(qp, &inv, NULL);		/* and wait for its completion */
}

/* --- the same by a pool --- */

/* What a peer's access would meet. */
static int asked(struct ib_pd *pd, u32 rkey, u64 iova, int right)
{
	enum ib_mr_reason why = ib_mr_check(pd, rkey, iova, LEN, right, true);

	if (why)
		pr_err("key %#x: %s\n", rkey, ib_mr_reason_text(why));
	return why ? -EACCES : 0;
}

static struct ib_pool_fmr *pool_map(struct ib_fmr_pool *pool, struct scatterlist *sg, int nents,
				    u64 length, u64 iova)
{
	struct ib_pool_fmr *fmr;
	int tries = 100;

	do {
		fmr = ib_fmr_pool_map_sg(pool, sg, nents, 0, length, iova);
		if (fmr != ERR_PTR(-EAGAIN))
			break;
		usleep_range(1000, 2000);	/* who may not sleep puts it back into his queue */
	} while (--tries);
	return fmr;
}

static int pool_io(struct ib_pd *pd, struct ib_fmr_pool *pool, struct scatterlist *sg)
{
	struct ib_pool_fmr *fmr;
	int err, n;

	n = ib_dma_map_sg(pd->device, sg, PAGES, DMA_TO_DEVICE);
	if (!n)
		return -ENOMEM;
	fmr = pool_map(pool, sg, n, LEN, 0);
	err = PTR_ERR_OR_ZERO(fmr);
	if (!err) {
		err = asked(pd, fmr->fmr->rkey, fmr->io_virtual_address, IB_ACCESS_REMOTE_READ);
		ib_fmr_pool_unmap(fmr);		/* the key is dead */
		ib_flush_fmr_pool(pool);	/* nothing copies: pages may change hands */
	}
	ib_dma_unmap_sg(pd->device, sg, PAGES, DMA_TO_DEVICE);
	return err;
}

/* --- regions --- */

static struct ib_mr *region_phys(struct ib_pd *pd, void *buf, u64 length, u64 *addr)
{
	struct ib_phys_buf part = { .size = length };
	struct ib_mr *mr;

	part.addr = ib_dma_map_single(pd->device, buf, length, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(pd->device, part.addr))
		return ERR_PTR(-ENOMEM);
	mr = ib_reg_phys_mr(pd, &part, 1, IB_ACCESS_REMOTE_READ, &part.addr);
	if (IS_ERR(mr))
		ib_dma_unmap_single(pd->device, part.addr, length, DMA_BIDIRECTIONAL);
	*addr = part.addr;
	return mr;
}

/* --- windows --- */

int porting_bind(struct ib_qp *qp, struct ib_mw *mw, struct ib_mr *mr, u64 addr, u64 length)
{
	struct ib_mw_bind bind = {
		.bind_info = {
			.mr = mr,
			.addr = addr,
			.length = length,
			.mw_access_flags = IB_ACCESS_REMOTE_WRITE,
		},
	};

	return ib_bind_mw(qp, mw, &bind);	/* mw->rkey works now; nothing is posted */
}

int porting_bind_2(struct ib_qp *qp, struct ib_mw *mw, struct ib_mr *mr, u64 addr, u64 length)
{
	struct ib_bind_mw_wr wr = {
		.mw = mw,
		.bind_info = { .mr = mr, .addr = addr, .length = length },
	};

	wr.bind_info.mw_access_flags = IB_ACCESS_REMOTE_READ;
	return ib_mr_post_bind_mw(qp, &wr);	/* not ib_post_send(); the new key is in wr.rkey */
}

void porting_received(struct ib_pd *pd, struct ib_wc *wc)
{
	if (wc->wc_flags & IB_WC_WITH_INVALIDATE)
		ib_mr_invalidated(pd, wc->ex.invalidate_rkey);
}

/* --- what needs no queue pair --- */

static int try_pool(struct ib_pd *pd)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = PAGES,
		.page_shift = PAGE_SHIFT,
		.access = IB_ACCESS_REMOTE_READ,
		.pool_size = 8,
		.dirty_watermark = 4,
	};
	struct ib_fmr_pool *pool = ib_create_fmr_pool(pd, &param);
	struct scatterlist sg[PAGES];
	struct page *page;
	int i, err = 0;

	if (IS_ERR(pool))
		return PTR_ERR(pool);
	sg_init_table(sg, PAGES);
	for (i = 0; i < PAGES; i++) {
		page = alloc_page(GFP_KERNEL);
		if (!page)
			err = -ENOMEM;
		else
			sg_set_page(&sg[i], page, PAGE_SIZE, 0);
	}
	if (!err)
		err = pool_io(pd, pool, sg);
	ib_destroy_fmr_pool(pool);
	for (i = 0; i < PAGES; i++)
		if (sg_page(&sg[i]))
			__free_page(sg_page(&sg[i]));
	return err;
}

static int try_region(struct ib_pd *pd)
{
	void *buf = kzalloc(LEN, GFP_KERNEL);
	struct ib_mr *mr;
	int err;
	u64 addr;

	if (!buf)
		return -ENOMEM;
	mr = region_phys(pd, buf, LEN, &addr);
	err = PTR_ERR_OR_ZERO(mr);
	if (!err) {
		err = asked(pd, mr->rkey, addr, IB_ACCESS_REMOTE_READ);
		ib_dereg_mr(mr);
		ib_dma_unmap_single(pd->device, addr, LEN, DMA_BIDIRECTIONAL);
	}
	kfree(buf);
	return err;
}

static int porting_add(struct ib_device *device)
{
	struct ib_pd *pd = ib_alloc_pd(device, 0);
	int err;

	if (IS_ERR(pd))
		return PTR_ERR(pd);
	err = try_region(pd) ?: try_pool(pd);
	ib_dealloc_pd(pd);
	if (err)
		pr_err("%s: %d\n", dev_name(&device->dev), err);
	else
		pr_info("%s: a region and an I/O by a pool\n", dev_name(&device->dev));
	return err;
}

static void porting_remove(struct ib_device *device, void *data)
{
}

static struct ib_client porting_client = {
	.name = KBUILD_MODNAME, .add = porting_add, .remove = porting_remove,
};

static int __init porting_init(void)
{
	return ib_register_client(&porting_client);
}

static void __exit porting_exit(void)
{
	ib_unregister_client(&porting_client);
}

module_init(porting_init);
module_exit(porting_exit);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("The porting guide of ib_mr, compiled");
