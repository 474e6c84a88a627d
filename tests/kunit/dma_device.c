// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A device with a real DMA path, and what reaches the DMA API from it.
 *
 * Arguments are seen by kprobes at the entries of the DMA API, so the API itself runs, with
 * CONFIG_DMA_API_DEBUG behind it where the kernel has that; what that complains of is a splat to
 * scripts/vm, and fails the run. Only merging, which needs an IOMMU, is
 * played: the probe sends the call to a function of ours.
 */

#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/kprobes.h>
#include <linux/platform_device.h>
#include <linux/ptrace.h>
#include <linux/slab.h>

#include "dma_device.h"

static void ibt_pdev_gone(struct kunit *test, void *pdev)
{
	platform_device_unregister(pdev);
}

struct ib_device *ibt_dma_device(struct kunit *test)
{
	struct platform_device *pdev;
	struct ib_device *dev;

	pdev = platform_device_register_simple("ibt_dma", PLATFORM_DEVID_AUTO, NULL, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(pdev));
	ibt_defer(test, ibt_pdev_gone, pdev);
	KUNIT_ASSERT_EQ(test, dma_coerce_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64)), 0);

	dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->dev.init_name = "ibt_dma0";
	dev->dma_device = &pdev->dev;
	return dev;
}

void *ibt_dma_mem(u64 addr)
{
	return phys_to_virt(addr);
}

#ifdef CONFIG_KPROBES

/* Since 6.10 the names are inlines that go on to these when the device needs it. */
#ifdef CONFIG_DMA_NEED_SYNC
#define IBT_SYNC_CPU_SYMBOL	"__dma_sync_single_for_cpu"
#define IBT_SYNC_DEVICE_SYMBOL	"__dma_sync_single_for_device"
#else
#define IBT_SYNC_CPU_SYMBOL	"dma_sync_single_for_cpu"
#define IBT_SYNC_DEVICE_SYMBOL	"dma_sync_single_for_device"
#endif

static const char *const ibt_dma_symbol[IBT_DMA_CALLS] = {
	[IBT_DMA_MAP]	      = "dma_map_page_attrs",
	[IBT_DMA_UNMAP]	      = "dma_unmap_page_attrs",
	[IBT_DMA_MAP_SG]      = "dma_map_sg_attrs",
	[IBT_DMA_UNMAP_SG]    = "dma_unmap_sg_attrs",
	[IBT_DMA_SYNC_CPU]    = IBT_SYNC_CPU_SYMBOL,
	[IBT_DMA_SYNC_DEVICE] = IBT_SYNC_DEVICE_SYMBOL,
	[IBT_DMA_ALLOC]	      = "dma_alloc_attrs",
	[IBT_DMA_FREE]	      = "dma_free_attrs",
};

static struct kprobe ibt_dma_probe[IBT_DMA_CALLS];
static struct ibt_dma_seen ibt_dma_seen[IBT_DMA_CALLS];
static struct device *ibt_dma_of;
static bool ibt_dma_merge;

/* Two entries make one, as an IOMMU would have it. */
static unsigned int ibt_merging_map_sg(struct device *dev, struct scatterlist *sg, int nents,
				       enum dma_data_direction dir, unsigned long attrs)
{
	struct scatterlist *s, *out = sg;
	dma_addr_t addr = 0xabcd000000000ULL;
	int i, n = 0;

	for_each_sg(sg, s, nents, i) {
		if (i & 1) {
			sg_dma_len(out) += s->length;
			out = sg_next(out);
			continue;
		}
		sg_dma_address(out) = addr + n++ * SZ_64K;
		sg_dma_len(out) = s->length;
	}
	return n;
}

/* Unmap and syncs of addresses that no mapping has. */
static void ibt_merging_nothing(void)
{
}

static int ibt_dma_hit(struct kprobe *p, struct pt_regs *regs)
{
	enum ibt_dma_call call = p - ibt_dma_probe;
	struct ibt_dma_seen *seen = &ibt_dma_seen[call];
	int i;

	if (regs_get_kernel_argument(regs, 0) != (unsigned long)ibt_dma_of)
		return 0;
	seen->count++;
	for (i = 0; i < ARRAY_SIZE(seen->arg); i++)
		seen->arg[i] = regs_get_kernel_argument(regs, i);
	if (!ibt_dma_merge)
		return 0;
	instruction_pointer_set(regs, call == IBT_DMA_MAP_SG ?
				(unsigned long)ibt_merging_map_sg :
				(unsigned long)ibt_merging_nothing);
	return 1;
}

/* A probe without one may not change where it goes on. */
static void ibt_dma_after(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
}

static void ibt_dma_deaf(struct kunit *test, void *unused)
{
	int i;

	for (i = 0; i < IBT_DMA_CALLS; i++)
		unregister_kprobe(&ibt_dma_probe[i]);
	ibt_dma_of = NULL;
}

struct ibt_dma_seen *ibt_dma_listen(struct kunit *test, struct ib_device *dev, bool merge)
{
	int i, err;

	ibt_dma_of = dev->dma_device;
	ibt_dma_merge = merge;
	memset(ibt_dma_seen, 0, sizeof(ibt_dma_seen));
	for (i = 0; i < IBT_DMA_CALLS; i++) {
		ibt_dma_probe[i] = (struct kprobe) {
			.symbol_name = ibt_dma_symbol[i],
			.pre_handler = ibt_dma_hit,
			.post_handler = ibt_dma_after,
		};
		err = register_kprobe(&ibt_dma_probe[i]);
		if (err) {
			while (i--)
				unregister_kprobe(&ibt_dma_probe[i]);
			KUNIT_ASSERT_EQ_MSG(test, err, 0, "no probe");
		}
	}
	ibt_defer(test, ibt_dma_deaf, NULL);
	return ibt_dma_seen;
}

#else

struct ibt_dma_seen *ibt_dma_listen(struct kunit *test, struct ib_device *dev, bool merge)
{
	return NULL;
}

#endif
