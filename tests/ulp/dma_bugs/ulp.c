// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A ULP with bugs, one at a time: what the DMA checker is for.
 *
 * A store in miniature. Its peer writes blocks into a buffer of its own, and reads blocks out of
 * another; both are mapped and registered once and given to and fro by syncs, as rings are. Each
 * round moves one block each way and compares it. The parameter `bug` names what is done wrong.
 * With the checker off every one of them passes: the data are right, and nothing is said. With it
 * on, each is in dma_reports by its name, or its data are wrong, or both; run.sh tells which.
 */

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib_mr.h>
#include <rdma/ib_dma.h>

#include "loop.h"

#define BLOCK	1000	/* bytes of a buffer, which begins at OFFSET in a page */
#define OFFSET	512

static char *bug = "none";
module_param(bug, charp, 0444);
MODULE_PARM_DESC(bug, "what to do wrong (see the source)");

static unsigned int rounds = 3;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "blocks to move each way (3)");

static bool wrong(const char *what)
{
	return !strcmp(bug, what);
}

struct side {
	u8 *page;
	u8 *buf;
	enum dma_data_direction dir;
	u64 dma;
	struct ib_mr *mr;
};

static struct loop loop;
static struct side in = { .dir = DMA_FROM_DEVICE };
static struct side out = { .dir = DMA_TO_DEVICE };
static struct ib_device *device;

static noinline int side_open(struct side *s)
{
	struct ib_phys_buf phys = { .size = BLOCK };

	s->page = (u8 *)get_zeroed_page(GFP_KERNEL);
	if (!s->page)
		return -ENOMEM;
	s->buf = s->page + OFFSET;
	s->dma = ib_dma_map_single(device, s->buf, BLOCK, s->dir);
	if (!wrong("unchecked") && ib_dma_mapping_error(device, s->dma))
		goto no_map;
	phys.addr = s->dma;
	/* As page lists have it: the whole page is open to the peer. */
	if (wrong("stray")) {
		phys.addr &= PAGE_MASK;
		phys.size = PAGE_SIZE;
	}
	s->mr = ib_reg_phys_mr(loop.pd, &phys, 1, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
			       IB_ACCESS_REMOTE_WRITE, &phys.addr);
	if (!IS_ERR(s->mr))
		return 0;
	ib_dma_unmap_single(device, s->dma, BLOCK, s->dir);
no_map:
	free_page((unsigned long)s->page);
	return -EIO;
}

static noinline void side_close(struct side *s)
{
	size_t size = wrong("unmap_size") ? BLOCK / 2 : BLOCK;
	enum dma_data_direction dir = wrong("unmap_dir") ? DMA_BIDIRECTIONAL : s->dir;

	/* The peer may write for as long as the region lives. */
	if (wrong("late_write") && s == &in) {
		ib_dma_unmap_single(device, s->dma, size, dir);
		loop_write(&loop, s->dma, s->mr->rkey, BLOCK);
		ib_dereg_mr(s->mr);
		goto out;
	}
	ib_dereg_mr(s->mr);
	if (wrong("unmap_call")) {
		struct scatterlist sg;

		sg_init_one(&sg, s->buf, BLOCK);
		sg_dma_address(&sg) = s->dma;
		ib_dma_unmap_sg(device, &sg, 1, s->dir);
		goto out;
	}
	if (!wrong("leak"))
		ib_dma_unmap_single(device, s->dma, size, dir);
	if (wrong("unmap_twice"))
		ib_dma_unmap_single(device, s->dma, size, dir);
	if (wrong("never_mapped"))
		ib_dma_unmap_single(device, (uintptr_t)s->page, size, dir);
out:
	free_page((unsigned long)s->page);
}

/* A header that is mapped ahead of its sending. */
static noinline void send_header(void)
{
	u8 header[32] = "header", *heap = kmemdup(header, sizeof(header), GFP_KERNEL);
	u8 *hdr = wrong("on_stack") ? header : heap;
	u64 dma;

	if (!heap)
		return;
	dma = ib_dma_map_single(device, hdr, sizeof(header), DMA_TO_DEVICE);
	if (!ib_dma_mapping_error(device, dma))
		ib_dma_unmap_single(device, dma, sizeof(header), DMA_TO_DEVICE);
	kfree(heap);
}

/* The peer writes a block; we read it. */
static noinline bool round_in(u8 byte)
{
	size_t more = wrong("sync_outside") ? 1 : 0;
	bool ok;

	memset(loop.buf, byte, LOOP_SIZE);
	if (loop_write(&loop, in.dma, in.mr->rkey, BLOCK))
		return false;
	if (wrong("stray") && loop_write(&loop, in.dma + BLOCK, in.mr->rkey, 4))
		return false;
	if (!wrong("no_sync_for_cpu"))
		ib_dma_sync_single_for_cpu(device, in.dma, BLOCK + more, in.dir);
	ok = !memchr_inv(in.buf, byte, BLOCK);
	ib_dma_sync_single_for_device(device, in.dma, BLOCK, in.dir);
	return ok;
}

/* We write a block; the peer reads it. */
static noinline bool round_out(u8 byte)
{
	enum dma_data_direction dir = wrong("sync_dir") ? DMA_BIDIRECTIONAL : out.dir;

	ib_dma_sync_single_for_cpu(device, out.dma, BLOCK, out.dir);
	memset(out.buf, byte, BLOCK);
	if (wrong("write_after_sync"))
		out.buf[0] = ~byte;	/* filled in at the last moment, below */
	if (!wrong("no_sync_for_device"))
		ib_dma_sync_single_for_device(device, out.dma, BLOCK, dir);
	out.buf[0] = byte;
	memset(loop.buf, ~byte, LOOP_SIZE);
	if (loop_read(&loop, out.dma, out.mr->rkey, BLOCK))
		return false;
	return !memchr_inv(loop.buf, byte, BLOCK);
}

static noinline int run(void)
{
	unsigned int i, bad = 0;
	int err;

	err = loop_open(&loop, device);
	if (err)
		return err;
	err = side_open(&in);
	if (err)
		goto no_in;
	err = side_open(&out);
	if (err)
		goto no_out;
	for (i = 1; i <= rounds; i++) {
		send_header();
		bad += !round_in(i);
		bad += !round_out(0x80 + i);
	}
	pr_info("dma_bugs: bug=%s: data %s\n", bug, bad ? "wrong" : "right");
	side_close(&out);
no_out:
	side_close(&in);
no_in:
	loop_close(&loop);
	return err;
}

/* The first device there is. */
static int add_one(struct ib_device *dev)
{
	if (!device)
		device = dev;
	return 0;
}

static void remove_one(struct ib_device *dev, void *data)
{
}

static struct ib_client client = {
	.name = "ib_mr_dma_bugs",
	.add = add_one,
	.remove = remove_one,
};

static int __init bugs_init(void)
{
	int err = ib_register_client(&client);

	if (err)
		return err;
	err = device ? run() : -ENODEV;
	if (err)
		ib_unregister_client(&client);
	return err;
}

static void __exit bugs_exit(void)
{
	ib_unregister_client(&client);
}

module_init(bugs_init);
module_exit(bugs_exit);

MODULE_DESCRIPTION("A ULP with DMA bugs, for ib_mr's DMA checker");
MODULE_LICENSE("Dual BSD/GPL");
