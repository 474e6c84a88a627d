// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ULP's memory: one table row for each kind of region, and the requests that act on them.
 *
 * Each row shows one way into ib_mr: a scatterlist (a file's pages), a kernel virtual range
 * (vmalloc), and the classic buffer list of DMA addresses. A new kind of registration is a new
 * row here and a new id in demo_proto.h; the requests need not know.
 *
 * Requests come from a peer that is not trusted: indices, offsets and lengths are checked before
 * they are used, by subtraction, so that nothing can wrap.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <crypto/hash.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include "demo.h"

static struct crypto_shash *hasher;

int demo_hash_init(void)
{
	hasher = crypto_alloc_shash("sha256", 0, 0);
	return PTR_ERR_OR_ZERO(hasher);
}

void demo_hash_exit(void)
{
	crypto_free_shash(hasher);
}

/* --- a file's pages, through a scatterlist ------------------------------------------------- */

/* Chosen freely: with a list of pages, only the offset in a page is bound by the memory. */
#define FILE_IOVA	0x4600000000ULL

static int file_get(struct demo_region *region)
{
	int err;

	region->length = demo_file.size;
	region->backing = (u64)demo_file.npages << PAGE_SHIFT;
	/* merges pages that happen to be neighbours, and chains the table as long as it must be */
	err = sg_alloc_table_from_pages(&region->sgt, demo_file.pages, demo_file.npages, 0,
					region->length, GFP_KERNEL);
	if (err)
		return err;
	err = ib_dma_map_sgtable_attrs(region->dev->ib, &region->sgt, DMA_TO_DEVICE, 0);
	if (err)
		sg_free_table(&region->sgt);
	return err;
}

static struct ib_mr *file_reg(struct demo_region *region)
{
	u64 iova = FILE_IOVA;

	return ib_mr_reg_sg(region->dev->pd, region->sgt.sgl, region->sgt.nents,
			    region->kind->access, &iova);
}

static void file_put(struct demo_region *region)
{
	ib_dma_unmap_sgtable_attrs(region->dev->ib, &region->sgt, DMA_TO_DEVICE, 0);
	sg_free_table(&region->sgt);
}

static const u8 *file_at(struct demo_region *region, u64 offset, size_t *contiguous)
{
	struct page *page = demo_file.pages[offset >> PAGE_SHIFT];

	*contiguous = PAGE_SIZE - offset_in_page(offset);
	/* ib_mr is for 64-bit kernels, where every page has an address */
	return (const u8 *)page_address(page) + offset_in_page(offset);
}

/* --- vmalloc memory as large as the file --------------------------------------------------- */

/* Begins and ends inside a page, with a whole page of guard bytes and a rest at either side. */
#define SINK_START	(PAGE_SIZE + 1000)

static void sink_scrub(struct demo_region *region)
{
	memset(region->vaddr, DEMO_GUARD, region->backing);
}

static int vmalloc_get(struct demo_region *region, u64 length)
{
	region->start = SINK_START;
	region->length = length;
	region->backing = PAGE_ALIGN(region->start + region->length) + PAGE_SIZE;
	region->vaddr = vmalloc(region->backing);
	if (!region->vaddr)
		return -ENOMEM;
	sink_scrub(region);
	return 0;
}

static int sink_get(struct demo_region *region)
{
	return vmalloc_get(region, demo_file.size);
}

static struct ib_mr *sink_reg(struct demo_region *region)
{
	return ib_mr_reg_kernel(region->dev->pd, region->vaddr + region->start, region->length,
				region->kind->access, NULL);
}

static void sink_put(struct demo_region *region)
{
	vfree(region->vaddr);
}

static const u8 *sink_at(struct demo_region *region, u64 offset, size_t *contiguous)
{
	*contiguous = region->backing - offset;
	return region->vaddr + offset;
}

/* --- the file's beginning in memory of the same kind, for windows -------------------------- */

#define GRANT_MAX	SZ_256K

static int grant_get(struct demo_region *region)
{
	u64 offset, n;
	int err;

	err = vmalloc_get(region, min_t(u64, demo_file.size, GRANT_MAX));
	if (err)
		return err;
	for (offset = 0; offset < region->length; offset += n) {
		n = min_t(u64, region->length - offset, PAGE_SIZE);
		memcpy(region->vaddr + region->start + offset,
		       page_address(demo_file.pages[offset >> PAGE_SHIFT]), n);
	}
	return 0;
}

/* --- a few counters, through the classic buffer list --------------------------------------- */

#define COUNTER_START	128
#define COUNTER_LENGTH	64
#define COUNTER_IOVA	(0x4300000000ULL + COUNTER_START)

static void counter_put(struct demo_region *region)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(region->page); i++) {
		if (region->dma[i])
			ib_dma_unmap_single(region->dev->ib, region->dma[i], COUNTER_LENGTH,
					    DMA_BIDIRECTIONAL);
		kfree(region->page[i]);
	}
}

static int counter_get(struct demo_region *region)
{
	struct ib_device *ib = region->dev->ib;
	u64 dma;
	int i;

	region->start = COUNTER_START;
	region->length = COUNTER_LENGTH;
	region->backing = ARRAY_SIZE(region->page) * PAGE_SIZE;
	for (i = 0; i < ARRAY_SIZE(region->page); i++) {
		region->page[i] = kmalloc(PAGE_SIZE, GFP_KERNEL);
		if (!region->page[i])
			goto err;
		memset(region->page[i], DEMO_GUARD, PAGE_SIZE);
		memset(region->page[i] + COUNTER_START, 0, COUNTER_LENGTH);
		dma = ib_dma_map_single(ib, region->page[i] + COUNTER_START, COUNTER_LENGTH,
					DMA_BIDIRECTIONAL);
		if (ib_dma_mapping_error(ib, dma))
			goto err;
		region->dma[i] = dma;
	}
	return 0;
err:
	counter_put(region);
	return -ENOMEM;
}

static struct ib_mr *counter_reg(struct demo_region *region)
{
	struct ib_phys_buf buf = { .addr = region->dma[region->cur], .size = COUNTER_LENGTH };
	u64 iova = COUNTER_IOVA;

	return ib_reg_phys_mr(region->dev->pd, &buf, 1, region->kind->access, &iova);
}

/* The same address for the peer, other memory behind it. */
static int counter_rereg(struct demo_region *region)
{
	struct ib_phys_buf buf = { .addr = region->dma[!region->cur], .size = COUNTER_LENGTH };
	u64 iova = COUNTER_IOVA;
	int err;

	err = ib_rereg_phys_mr(region->mr, IB_MR_REREG_TRANS, NULL, &buf, 1, region->kind->access,
			       &iova);
	if (err)
		return err;
	region->cur = !region->cur;
	region->start = region->cur * PAGE_SIZE + COUNTER_START;
	return 0;
}

static const u8 *counter_at(struct demo_region *region, u64 offset, size_t *contiguous)
{
	*contiguous = PAGE_SIZE - offset_in_page(offset);
	return region->page[offset >> PAGE_SHIFT] + offset_in_page(offset);
}

static void counter_sync(struct demo_region *region, bool to_cpu)
{
	struct ib_device *ib = region->dev->ib;
	int i;

	for (i = 0; i < ARRAY_SIZE(region->dma); i++) {
		if (to_cpu)
			ib_dma_sync_single_for_cpu(ib, region->dma[i], COUNTER_LENGTH,
						   DMA_BIDIRECTIONAL);
		else
			ib_dma_sync_single_for_device(ib, region->dma[i], COUNTER_LENGTH,
						      DMA_BIDIRECTIONAL);
	}
}

/* --- all regions of a device --------------------------------------------------------------- */

static const struct demo_kind kinds[DEMO_REGIONS] = {
	[DEMO_FILE] = {
		.name = "file",
		.access = IB_ACCESS_REMOTE_READ,
		.has_sgt = true,
		.get = file_get,
		.reg = file_reg,
		.put = file_put,
		.at = file_at,
	},
	[DEMO_SINK] = {
		.name = "sink",
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
		.get = sink_get,
		.reg = sink_reg,
		.scrub = sink_scrub,
		.put = sink_put,
		.at = sink_at,
	},
	[DEMO_COUNTER] = {
		.name = "counter",
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_ATOMIC,
		.get = counter_get,
		.reg = counter_reg,
		.rereg = counter_rereg,
		.put = counter_put,
		.at = counter_at,
		.sync = counter_sync,
	},
	[DEMO_GRANT] = {
		.name = "grant",
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND,
		.get = grant_get,
		.reg = sink_reg,
		.put = sink_put,
		.at = sink_at,
	},
};

static int region_reg(struct demo_region *region)
{
	struct ib_mr *mr;

	if (region->mr)
		return -EBUSY;
	mr = region->kind->reg(region);
	if (IS_ERR(mr)) {
		pr_err("%s: cannot register the %s region: %pe\n",
		       dev_name(&region->dev->ib->dev), region->kind->name, mr);
		return PTR_ERR(mr);
	}
	region->mr = mr;
	return 0;
}

static int region_dereg(struct demo_region *region)
{
	int err;

	if (!region->mr)
		return -ENOENT;
	err = ib_dereg_mr(region->mr);
	if (err == -EBUSY)	/* a window is bound: the peer is told, and nothing has changed */
		return err;
	if (err)
		pr_err("%s: cannot deregister the %s region: %d\n",
		       dev_name(&region->dev->ib->dev), region->kind->name, err);
	else
		region->mr = NULL;
	return err;
}

/* As a ULP does that frees its memory: nothing of the peer's may land there from now on. */
static int region_scrub(struct demo_region *region)
{
	int err;

	if (!region->kind->scrub)
		return -EOPNOTSUPP;
	err = region_dereg(region);
	if (!err)
		region->kind->scrub(region);
	return err;
}

static int region_rereg(struct demo_region *region)
{
	if (!region->kind->rereg)
		return -EOPNOTSUPP;
	if (!region->mr)
		return -ENOENT;
	return region->kind->rereg(region);
}

static void region_put(struct demo_region *region)
{
	if (!region->kind)
		return;
	/* memory that the device may still reach is better lost than given to somebody else */
	if (!region->mr || !region_dereg(region))
		region->kind->put(region);
	region->kind = NULL;
}

void demo_regions_put(struct demo_dev *dev)
{
	int i;

	for (i = DEMO_REGIONS; i--; )
		region_put(&dev->regions[i]);
}

int demo_regions_get(struct demo_dev *dev)
{
	int i, err;

	for (i = 0; i < DEMO_REGIONS; i++) {
		struct demo_region *region = &dev->regions[i];

		region->dev = dev;
		region->kind = &kinds[i];
		err = region->kind->get(region);
		if (err) {
			region->kind = NULL;	/* nothing to put */
			goto err;
		}
		err = region_reg(region);
		if (err)
			goto err;
	}
	return 0;
err:
	demo_regions_put(dev);
	return err;
}

/* --- requests ------------------------------------------------------------------------------ */

static void region_copy(struct demo_region *region, u64 offset, u64 length, u8 *to)
{
	while (length) {
		size_t n;
		const u8 *from = region->kind->at(region, offset, &n);

		n = min_t(u64, n, length);
		memcpy(to, from, n);
		to += n;
		offset += n;
		length -= n;
	}
}

static int region_hash(struct demo_region *region, u64 offset, u64 length, u8 *hash)
{
	SHASH_DESC_ON_STACK(desc, hasher);
	int err;

	desc->tfm = hasher;
	err = crypto_shash_init(desc);
	while (!err && length) {
		size_t n;
		const u8 *from = region->kind->at(region, offset, &n);

		/* not too much between two chances to reschedule */
		n = min3((u64)n, length, (u64)SZ_64K);
		err = crypto_shash_update(desc, from, n);
		offset += n;
		length -= n;
		cond_resched();
	}
	if (!err)
		err = crypto_shash_final(desc, hash);
	shash_desc_zero(desc);
	return err;
}

/* PEEK and HASH: both look at a range of the backing. */
static int region_look(struct demo_region *region, u32 cmd, u64 offset, u64 length,
		       struct demo_reply *reply)
{
	int err = 0;

	if (offset > region->backing || length > region->backing - offset)
		return -ERANGE;
	if (cmd == DEMO_CMD_PEEK && length > DEMO_PEEK_MAX)
		return -EMSGSIZE;
	if (cmd == DEMO_CMD_HASH && !length)
		length = region->backing - offset;

	if (region->kind->sync)
		region->kind->sync(region, true);
	if (cmd == DEMO_CMD_PEEK)
		region_copy(region, offset, length, reply->bytes);
	else
		err = region_hash(region, offset, length, reply->hash);
	if (region->kind->sync)
		region->kind->sync(region, false);
	reply->count = cpu_to_be32(cmd == DEMO_CMD_PEEK ? length : DEMO_SHA256_LEN);
	return err;
}

static void tell_regions(struct demo_dev *dev, struct demo_reply *reply)
{
	int i;

	for (i = 0; i < DEMO_REGIONS; i++) {
		struct demo_region *region = &dev->regions[i];
		struct demo_region_info *info = &reply->regions[i];

		info->length = cpu_to_be64(region->length);
		info->backing = cpu_to_be64(region->backing);
		info->start = cpu_to_be64(region->start);
		info->access = cpu_to_be32(region->kind->access);
		if (region->mr) {
			info->iova = cpu_to_be64(region->mr->iova);
			info->rkey = cpu_to_be32(region->mr->rkey);
		}
	}
	reply->count = cpu_to_be32(DEMO_REGIONS);
}

static int execute(struct demo_dev *dev, struct demo_conn *conn, const struct demo_request *request,
		   u32 length, struct demo_reply *reply)
{
	u32 access = be32_to_cpu(request->access);
	u32 id = be32_to_cpu(request->region);
	u32 cmd = be32_to_cpu(request->cmd);
	struct demo_region *region;
	int err = 0;

	if (length != sizeof(*request) || request->magic != cpu_to_be32(DEMO_MAGIC) ||
	    (access && cmd != DEMO_CMD_GRANT))
		return -EBADMSG;
	if (id >= DEMO_REGIONS)
		return -ENXIO;
	region = &dev->regions[id];

	switch (cmd) {
	case DEMO_CMD_INFO:
		break;
	case DEMO_CMD_REG:
		err = region_reg(region);
		break;
	case DEMO_CMD_DEREG:
		err = region_dereg(region);
		break;
	case DEMO_CMD_SCRUB:
		err = region_scrub(region);
		break;
	case DEMO_CMD_REREG:
		err = region_rereg(region);
		break;
	case DEMO_CMD_HASH:
	case DEMO_CMD_PEEK:
		return region_look(region, cmd, be64_to_cpu(request->offset),
				   be64_to_cpu(request->length), reply);
	case DEMO_CMD_GRANT:
		return demo_window_grant(region, conn, be64_to_cpu(request->offset),
					 be64_to_cpu(request->length), access, reply);
	case DEMO_CMD_LEND:
		return demo_fmr_lend(region, be64_to_cpu(request->offset),
				     be64_to_cpu(request->length), reply);
	default:
		return -EOPNOTSUPP;
	}
	if (!err)
		tell_regions(dev, reply);
	return err;
}

/**
 * demo_execute() - carry out a peer's request
 * @dev: the device of the connection
 * @conn: the connection that it came on
 * @request: what arrived, filled up with zeroes when it was shorter
 * @length: how many bytes arrived
 * @reply: the answer, complete in every case
 */
void demo_execute(struct demo_dev *dev, struct demo_conn *conn, const struct demo_request *request,
		  u32 length, struct demo_reply *reply)
{
	int err;

	memset(reply, 0, sizeof(*reply));
	reply->magic = cpu_to_be32(DEMO_MAGIC);
	reply->cmd = request->cmd;
	mutex_lock(&dev->lock);
	err = execute(dev, conn, request, length, reply);
	mutex_unlock(&dev->lock);
	reply->status = cpu_to_be32(-err);
}
