/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The DMA layer as the rest of the module sees it.
 */
#ifndef IBMR_DMA_H
#define IBMR_DMA_H

#ifndef IB_MR_DMA_PLAIN_NAMES
#define IB_MR_DMA_PLAIN_NAMES	/* the module calls the kernel's own helpers */
#endif
#include <rdma/ib_dma.h>

struct dentry;

/*
 * Start and end of the layer. @dir is the module's debugfs directory; ibmr_dma_exit() may be called
 * when no ULP is left, and reports what they left behind.
 */
int ibmr_dma_init(struct dentry *dir);
void ibmr_dma_exit(void);

/*
 * A device comes and goes. @dir is its debugfs directory (NULL: no files), which the caller removes
 * before ibmr_dma_dev_remove(). What is still mapped some seconds later is reported as a leak.
 */
int ibmr_dma_dev_add(struct ib_device *device, struct dentry *dir);
void ibmr_dma_dev_rename(struct ib_device *device, const char *name);
void ibmr_dma_dev_remove(struct ib_device *device);

void __ibmr_dma_used(struct ib_device *device, u64 addr, u64 len);
void __ibmr_dma_used_pages(struct ib_device *device, const u64 *pages, unsigned int nr,
			   unsigned int page_shift);

/*
 * A region is being made of [@addr, @addr + @len): any mapping in there whose
 * ib_dma_mapping_error() nobody has asked for is reported. Any context.
 */
static inline void ibmr_dma_used(struct ib_device *device, u64 addr, u64 len)
{
	if (static_branch_unlikely(&ib_mr_dma_checking))
		__ibmr_dma_used(device, addr, len);
}

/* The same of a page list, whose entries need not begin where a page does. */
static __always_inline void ibmr_dma_used_pages(struct ib_device *device, const u64 *pages,
						unsigned int nr, unsigned int page_shift)
{
	if (static_branch_unlikely(&ib_mr_dma_checking))
		__ibmr_dma_used_pages(device, pages, nr, page_shift);
}

/* For tests; said with each. */
extern unsigned int ibmr_dma_leak_seconds;
void ibmr_dma_leaks_now(void);
void ibmr_dma_settle(struct ib_device *device);
unsigned int ibmr_dma_sites(enum ib_mr_dma_fault fault);
long ibmr_dma_unseen(const struct ib_device *device);
u64 ibmr_dma_hints(struct ib_device *device, enum ib_mr_dma_fault fault);
u64 ibmr_dma_live(struct ib_device *device);
void ibmr_dma_forget_reports(void);
bool ibmr_dma_last_report(char *buf, size_t size);

#ifdef CONFIG_FAULT_INJECTION
extern struct fault_attr ibmr_dma_fault_attr;
#endif

/* Let the @nth map from now fail (1: the next), once; 0 takes it back. */
void ibmr_dma_fail_map(unsigned int nth);

#endif /* IBMR_DMA_H */
