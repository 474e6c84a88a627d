// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What real sources of 3.18 tripped over, a line for each: another header first, the kernel's own
 * DMA calls with dma_device, an own struct ib_rdma_wr, capability flags printed as an int,
 * signatures. Most of it is right when it compiles.
 */
#include <rdma/ib_smi.h>
#include <rdma/rdma_cm.h>
#include <rdma/ib_verbs.h>
#include <linux/slab.h>

#include "link.h"

#define ME	"gaps"

struct ib_rdma_wr {
	struct ib_send_wr wr;
};

static void gaps_dma(struct ib_device *device)
{
	struct device *dma = device->dma_device;
	void *mem = kmalloc_node(64, GFP_KERNEL, dev_to_node(dma));
	dma_addr_t addr, handle = 0;
	void *coherent;

	if (!mem)
		return;
	addr = dma_map_single(dma, mem, 64, DMA_TO_DEVICE);
	verdict(ME, "dma_map_single() of dma_device", !dma_mapping_error(dma, addr), "%pad", &addr);
	dma_sync_single_for_cpu(dma, addr, 64, DMA_TO_DEVICE);
	dma_sync_single_for_device(dma, addr, 64, DMA_TO_DEVICE);
	dma_unmap_single(dma, addr, 64, DMA_TO_DEVICE);
	coherent = dma_alloc_coherent(dma, PAGE_SIZE, &handle, GFP_KERNEL);
	verdict(ME, "dma_alloc_coherent() of it", coherent && handle, "%pad", &handle);
	if (coherent)
		dma_free_coherent(dma, PAGE_SIZE, coherent, handle);
	kfree(mem);
}

static void gaps_add(struct ib_device *device)
{
	struct ib_mr_init_attr init = { .max_reg_descriptors = 1, .flags = IB_MR_SIGNATURE_EN };
	struct ib_rdma_wr own = { .wr.opcode = IB_WR_REG_SIG_MR };
	struct ib_pd *pd = ib_alloc_pd(device);
	struct ib_device_attr attr;
	struct ib_mr *mr;

	if (IS_ERR(pd) || ib_query_device(device, &attr)) {
		verdict(ME, "set up", false, "%d", (int)PTR_ERR_OR_ZERO(pd));
		return;
	}
	mr = ib_create_mr(pd, &init);
	own.wr.wr.sig_handover.sig_mr = mr;
	verdict(ME, "signatures: -ENOSYS", PTR_ERR_OR_ZERO(mr) == -ENOSYS &&
		!(attr.device_cap_flags & IB_DEVICE_SIGNATURE_HANDOVER), "%d, flags %#x",
		(int)PTR_ERR_OR_ZERO(own.wr.wr.sig_handover.sig_mr), attr.device_cap_flags);
	verdict(ME, "max_map_per_fmr is a number", attr.max_map_per_fmr == 32767, "%d",
		attr.max_map_per_fmr);
	gaps_dma(device);
	verdict(ME, "PD goes", !ib_dealloc_pd(pd), "%d", 0);
}

static void gaps_remove(struct ib_device *device)
{
}

static struct ib_client gaps_client = {
	.name = "classic_gaps",
	.add = gaps_add,
	.remove = gaps_remove,
};

int gaps_init(void)
{
	return ib_register_client(&gaps_client);
}

void gaps_exit(void)
{
	ib_unregister_client(&gaps_client);
}
