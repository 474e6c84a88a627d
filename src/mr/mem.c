// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory to be registered: a page vector together with what holds the memory in place.
 *
 * A physical list and a scatterlist were DMA-mapped by the caller, who keeps the mapping until the
 * region is deregistered. Kernel memory given by its virtual address (kmalloc or vmalloc) is mapped
 * here and unmapped in ->release, which runs when the device cannot reach it any more. User memory
 * adds its pinning the same way (pin.c). A memory object outlives its release by an RCU grace
 * period, because translation may still be looking at its runs; it looks at nothing else.
 */

#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "base/compat.h"
#include "base/fault.h"
#include "dma/dma.h"
#include "mr/mem.h"

/* @size: of the structure that has a struct ibmr_mem first. */
struct ibmr_mem *ibmr_mem_alloc(size_t size)
{
	struct ibmr_mem *mem = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL :
			       kzalloc(size, GFP_KERNEL);

	if (mem)
		refcount_set(&mem->refs, 1);
	return mem;
}

static void mem_free_rcu(struct rcu_head *rcu)
{
	struct ibmr_mem *mem = container_of(rcu, struct ibmr_mem, rcu);

	ibmr_pagevec_free(&mem->pv);
	kfree(mem);
}

/* Nothing holds it in place any more. */
void ibmr_mem_free(struct ibmr_mem *mem)
{
	call_rcu(&mem->rcu, mem_free_rcu);
}

/* The last one undoes what holds the memory: the device must not reach it any more. Sleeps. */
void ibmr_mem_put(struct ibmr_mem *mem)
{
	if (!mem || !refcount_dec_and_test(&mem->refs))
		return;
	if (mem->release)
		mem->release(mem);
	else
		ibmr_mem_free(mem);
}

static struct ibmr_mem *mem_from(struct ibmr_dev *dev, ibmr_feed_fn feed, const void *ctx,
				 enum ib_mr_reason *why)
{
	struct ibmr_mem *mem = ibmr_mem_alloc(sizeof(*mem));

	if (!mem) {
		*why = IB_MR_WHY_NO_MEMORY;
		return NULL;
	}
	*why = ibmr_pagevec_build(&mem->pv, feed, ctx);
	if (!*why && ib_uses_virt_dma(dev->ibdev) && !ibmr_pagevec_linear(&mem->pv))
		*why = IB_MR_WHY_NOT_LINEAR;
	if (*why) {
		ibmr_mem_put(mem);
		return NULL;
	}
	return mem;
}

struct ibmr_mem *ibmr_mem_phys(struct ibmr_dev *dev, const struct ib_phys_buf *buf, int nr,
			       enum ib_mr_reason *why)
{
	struct ibmr_phys_list list = { .buf = buf, .nr = nr };
	int i;

	if (nr <= 0) {
		*why = IB_MR_WHY_EMPTY;
		return NULL;
	}
	if (!buf) {
		*why = IB_MR_WHY_NULL_ARG;
		return NULL;
	}
	for (i = 0; i < nr; i++)
		ibmr_dma_used(dev->ibdev, buf[i].addr, buf[i].size);
	return mem_from(dev, ibmr_feed_phys, &list, why);
}

struct ibmr_mem *ibmr_mem_sg(struct ibmr_dev *dev, struct scatterlist *sgl, int nents,
			     enum ib_mr_reason *why)
{
	struct ibmr_sg_list list = { .sgl = sgl, .nr = nents, .length = U64_MAX };

	if (nents <= 0)
		*why = IB_MR_WHY_EMPTY;
	else if (!sgl)
		*why = IB_MR_WHY_NULL_ARG;
	else
		return mem_from(dev, ibmr_feed_sg, &list, why);
	return NULL;
}

struct kernel_range {
	void *addr;
	size_t length;
};

/* Virtual-DMA devices take the linear map's address of each page, so vmalloc is walked by pages. */
static enum ib_mr_reason feed_kernel(struct ibmr_pagevec_builder *b, const void *range)
{
	const struct kernel_range *r = range;
	size_t done = 0;

	if (!is_vmalloc_addr(r->addr))
		return ibmr_pagevec_add(b, (uintptr_t)r->addr, r->length);

	while (done < r->length) {
		void *va = r->addr + done;
		size_t len = min_t(size_t, r->length - done, PAGE_SIZE - offset_in_page(va));
		struct page *page = vmalloc_to_page(va);
		enum ib_mr_reason why;

		if (!page)
			return IB_MR_WHY_NOT_LINEAR;
		why = ibmr_pagevec_add(b, (uintptr_t)page_address(page) + offset_in_page(va), len);
		if (why)
			return why;
		done += len;
	}
	return IB_MR_WHY_OK;
}

static void kernel_release(struct ibmr_mem *mem)
{
	ib_dma_unmap_sgtable_attrs(mem->ibdev, &mem->sgt, DMA_BIDIRECTIONAL, 0);
	sg_free_table(&mem->sgt);
	ibmr_mem_free(mem);
}

/* On a device with DMA of its own the pages go through the DMA API, and the result into @pv. */
static struct ibmr_mem *kernel_dma_map(struct ibmr_dev *dev, const struct kernel_range *r,
				       struct ibmr_mem *mem, enum ib_mr_reason *why)
{
	unsigned int nr = PFN_UP(offset_in_page(r->addr) + r->length), i;
	struct ibmr_sg_list list = { .length = U64_MAX };
	struct page **pages;
	int err;

	pages = kvmalloc_array(nr, sizeof(*pages), GFP_KERNEL);
	*why = IB_MR_WHY_NO_MEMORY;
	if (!pages)
		goto err;
	for (i = 0; i < nr; i++) {
		void *va = r->addr + (size_t)i * PAGE_SIZE;

		pages[i] = is_vmalloc_addr(va) ? vmalloc_to_page(va) : virt_to_page(va);
	}
	err = sg_alloc_table_from_pages(&mem->sgt, pages, nr, offset_in_page(r->addr), r->length,
					GFP_KERNEL);
	kvfree(pages);
	if (err)
		goto err;
	if (ib_dma_map_sgtable_attrs(dev->ibdev, &mem->sgt, DMA_BIDIRECTIONAL, 0)) {
		sg_free_table(&mem->sgt);
		goto err;
	}
	mem->ibdev = dev->ibdev;
	mem->release = kernel_release;
	ibmr_pagevec_free(&mem->pv);
	list.sgl = mem->sgt.sgl;
	list.nr = mem->sgt.nents;
	*why = ibmr_pagevec_build(&mem->pv, ibmr_feed_sg, &list);
	if (!*why)
		return mem;
err:
	ibmr_mem_put(mem);
	return NULL;
}

struct ibmr_mem *ibmr_mem_kernel(struct ibmr_dev *dev, void *addr, size_t length,
				 enum ib_mr_reason *why)
{
	struct kernel_range r = { .addr = addr, .length = length };
	struct ibmr_mem *mem;

	if (!addr)
		*why = IB_MR_WHY_NULL_ARG;
	else if (!length)
		*why = IB_MR_WHY_EMPTY;
	else if (length - 1 > U64_MAX - (uintptr_t)addr)
		*why = IB_MR_WHY_WRAP;
	else if (!is_vmalloc_addr(addr) && !virt_addr_valid(addr))
		*why = IB_MR_WHY_NOT_LINEAR;
	else
		*why = IB_MR_WHY_OK;
	if (*why)
		return NULL;

	mem = ibmr_mem_alloc(sizeof(*mem));
	if (!mem) {
		*why = IB_MR_WHY_NO_MEMORY;
		return NULL;
	}
	*why = ibmr_pagevec_build(&mem->pv, feed_kernel, &r);
	if (!*why && !ibmr_pagevec_linear(&mem->pv))
		*why = IB_MR_WHY_NOT_LINEAR;
	if (*why) {
		ibmr_mem_put(mem);
		return NULL;
	}
	return ib_uses_virt_dma(dev->ibdev) ? mem : kernel_dma_map(dev, &r, mem, why);
}
