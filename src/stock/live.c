// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Live mapping: giving pages to an MR that the device holds for valid, without a work request.
 *
 * Soft RoCE reads an MR's page list, iova, length and PD when a packet comes, from the very
 * structure that ib_map_mr_sg() fills. So an MR that was made valid ahead of time (armed) can be
 * mapped by a function call. While that runs the MR is torn: the length grows page by page, the
 * iova comes last. Therefore it is never run on an MR that anybody can reach: an MR that is not in
 * use is parked, that is, its PD is a private one in which no queue pair of anybody's lives, and
 * the driver refuses every access whose queue pair is of another PD. Publishing is one store of
 * the real PD, withdrawing one store of the private one.
 *
 * Armed MRs are allocated in the parking PD and are armed by that PD's own registration queue pair,
 * so arming, re-keying and freeing need no PD but this one, and at no moment is an MR with a valid
 * key in a PD of a ULP's but between publish and withdraw.
 *
 * No device promises any of this. It is found out by experiment on each device: ibmr_probe() maps,
 * reads through, withdraws and remaps by real RDMA, and where one step comes out otherwise, the
 * device has no FMRs and no windows.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/fault.h"
#include "mr/regqp.h"
#include "mr/xlate.h"
#include "stock/magazine.h"

struct ibmr_scratch __percpu *ibmr_scratch;
struct ibmr_plain __percpu *ibmr_plain;
struct ibmr_linear ibmr_linear;

int ibmr_live_init(void)
{
	int cpu, i;

	ibmr_linear.base = PAGE_OFFSET;
	ibmr_linear.span = roundup_pow_of_two((unsigned long)high_memory - PAGE_OFFSET);

	ibmr_scratch = alloc_percpu(struct ibmr_scratch);
	ibmr_plain = alloc_percpu(struct ibmr_plain);
	if (!ibmr_scratch || !ibmr_plain) {
		ibmr_live_exit();
		return -ENOMEM;
	}
	for_each_possible_cpu(cpu) {
		local_lock_init(&per_cpu_ptr(ibmr_scratch, cpu)->lock);
		for (i = 0; i < IBMR_LIVE_PAGES; i++)
			sg_dma_len(&per_cpu_ptr(ibmr_plain, cpu)->sgl[i]) = PAGE_SIZE;
	}
	return 0;
}

void ibmr_live_exit(void)
{
	free_percpu(ibmr_scratch);
	free_percpu(ibmr_plain);
}

/* What a key of an armed MR means now; @v is empty where it means nothing. Under RCU. */
void ibmr_armed_view(struct ibmr_keyed *keyed, struct ibmr_view *v)
{
	struct ibmr_armed *a = container_of(keyed, struct ibmr_armed, keyed);
	unsigned long flags;

	memset(v, 0, sizeof(*v));
	v->opaque = true;
	spin_lock_irqsave(&a->mag->lock, flags);
	if (a->drv) {
		v->pd = smp_load_acquire(&a->drv->pd);	/* pairs with ibmr_publish() */
		v->rkey = READ_ONCE(a->key);
		v->lkey = a->window ? 0 : v->rkey;	/* a window is for peers */
		v->access = a->mag->access;
		v->mapped = v->pd != a->mag->dev->park;
		v->invalidated = READ_ONCE(a->invalidated);
		/* Parked, someone may be mapping it; published, it stays, under the lock. */
		if (v->mapped) {
			v->iova = a->drv->iova;
			v->length = a->drv->length;
		}
	}
	spin_unlock_irqrestore(&a->mag->lock, flags);
	if (!v->mapped)
		v->pd = NULL;
}

/* --- the experiment --- */

#define PROBE_LEN	3000
#define PROBE_OFFSET	512
#define PROBE_IOVA	(0x10000ULL + PROBE_OFFSET)
#define PROBE_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

struct probe {
	struct ibmr_dev *dev;
	struct ib_pd *pd;
	struct ibmr_regqp *rq;
	struct ibmr_armed a;
	u8 *page[2];
	u8 *buf;
	const char *step;
};

/* What a step found: as it must be, not so, or no verdict. */
enum verdict { AS_MUST, OTHERWISE, NO_VERDICT };

static enum verdict op(struct probe *p, enum ib_wr_opcode opcode, u64 raddr, u32 len, bool allowed)
{
	enum ib_wc_status status;

	if (ibmr_regqp_rdma(p->rq, opcode, (uintptr_t)p->buf, p->pd->local_dma_lkey, len, raddr,
			    p->a.key, &status))
		return NO_VERDICT;
	switch (status) {
	case IB_WC_SUCCESS:
		return allowed ? AS_MUST : OTHERWISE;
	case IB_WC_REM_ACCESS_ERR:
		return allowed ? OTHERWISE : AS_MUST;
	case IB_WC_WR_FLUSH_ERR:
		/*
		 * Both ends are one queue pair: on 6.12 the responder that refuses stops it before
		 * the requester has seen the refusal.
		 */
		return allowed ? NO_VERDICT : AS_MUST;
	default:	/* the request did not get through */
		return NO_VERDICT;
	}
}

static bool map_page(struct probe *p, int i)
{
	unsigned long flags;
	struct scatterlist *sgl = ibmr_live_begin(&flags);
	bool ok;

	sg_dma_address(sgl) = (uintptr_t)p->page[i] + PROBE_OFFSET;
	sg_dma_len(sgl) = PROBE_LEN;
	ok = ibmr_live_map(p->a.drv, sgl, 1, PROBE_LEN, PROBE_IOVA, PAGE_SHIFT);
	ibmr_live_end(flags);
	return ok;
}

static enum verdict read_back(struct probe *p, int i)
{
	enum verdict v;

	memset(p->buf, 0, PAGE_SIZE);
	v = op(p, IB_WR_RDMA_READ, PROBE_IOVA, PROBE_LEN, true);
	if (v == AS_MUST && memcmp(p->buf, p->page[i] + PROBE_OFFSET, PROBE_LEN))
		v = OTHERWISE;
	return v;
}

/* One after the other, until one comes out otherwise; @step names it then, for the log. */
struct step {
	const char *name;
	enum verdict (*run)(struct probe *p);
};

static enum verdict parked_first(struct probe *p)
{
	memset(p->page[0], 0x5a, PAGE_SIZE);
	memset(p->page[1], 0xa5, PAGE_SIZE);
	if (!map_page(p, 0))
		return OTHERWISE;
	return op(p, IB_WR_RDMA_READ, PROBE_IOVA, PROBE_LEN, false);
}

static enum verdict published_first(struct probe *p)
{
	ibmr_publish(p->a.drv, p->pd);
	return read_back(p, 0);
}

static enum verdict past_end(struct probe *p)
{
	return op(p, IB_WR_RDMA_READ, PROBE_IOVA, PROBE_LEN + 1, false);
}

static enum verdict before_start(struct probe *p)
{
	return op(p, IB_WR_RDMA_READ, PROBE_IOVA - 1, 2, false);
}

static enum verdict withdrawn_first(struct probe *p)
{
	ibmr_withdraw(&p->a, p->dev);
	return op(p, IB_WR_RDMA_READ, PROBE_IOVA, PROBE_LEN, false);
}

static enum verdict parked_again(struct probe *p)
{
	if (!map_page(p, 1))
		return OTHERWISE;
	return op(p, IB_WR_RDMA_WRITE, PROBE_IOVA, 16, false);
}

static enum verdict published_again(struct probe *p)
{
	ibmr_publish(p->a.drv, p->pd);
	return read_back(p, 1);
}

static enum verdict written(struct probe *p)
{
	memset(p->buf, 0x33, PROBE_LEN);
	return op(p, IB_WR_RDMA_WRITE, PROBE_IOVA, PROBE_LEN, true);
}

static enum verdict withdrawn_again(struct probe *p)
{
	const u8 *page = p->page[1];

	ibmr_withdraw(&p->a, p->dev);
	if (memchr_inv(page + PROBE_OFFSET, 0x33, PROBE_LEN) ||
	    memchr_inv(page, 0xa5, PROBE_OFFSET) ||
	    memchr_inv(page + PROBE_OFFSET + PROBE_LEN, 0xa5,
		       PAGE_SIZE - PROBE_OFFSET - PROBE_LEN) ||
	    memchr_inv(p->page[0], 0x5a, PAGE_SIZE))
		return OTHERWISE;
	return op(p, IB_WR_RDMA_WRITE, PROBE_IOVA, 1, false);
}

static enum verdict experiment(struct probe *p)
{
	static const struct step steps[] = {
		{ "a parked MR is refused", parked_first },
		{ "a published one is read", published_first },
		{ "no byte past its end", past_end },
		{ "no byte before its start", before_start },
		{ "a withdrawn one is refused", withdrawn_first },
		{ "mapped anew and parked it is refused", parked_again },
		{ "published again it reads the new page", published_again },
		{ "it is written", written },
		{ "just there, and withdrawn it is refused", withdrawn_again },
	};
	enum verdict v = AS_MUST;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(steps) && v == AS_MUST; i++) {
		p->step = steps[i].name;
		v = steps[i].run(p);
	}
	ibmr_withdraw(&p->a, p->dev);
	return v;
}

/* Once, over each GID until one carries packets. */
static enum verdict over_gids(struct probe *p)
{
	enum verdict v = NO_VERDICT;
	unsigned int gid = 0;

	while (v == NO_VERDICT) {
		p->rq = ibmr_regqp_create(p->pd, IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE |
					  IB_ACCESS_LOCAL_WRITE, gid);
		if (IS_ERR(p->rq))
			return PTR_ERR(p->rq) == -EOPNOTSUPP ? OTHERWISE : NO_VERDICT;
		v = experiment(p);
		gid = ibmr_regqp_gid(p->rq) + 1;
		ibmr_regqp_destroy(p->rq);
	}
	return v;
}

/* Without FMRs for good is a hard verdict, so it is not given on one failure. */
static enum verdict confirmed(struct probe *p)
{
	enum verdict v = over_gids(p);

	if (v == OTHERWISE) {
		pr_warn("%s: live mapping: not so: %s; tested again\n", p->dev->name, p->step);
		v = over_gids(p);
	}
	return v;
}

static enum verdict with_mr(struct probe *p)
{
	struct ibmr_regop arm = { .kind = IBMR_OP_REG, .access = PROBE_ACCESS };
	enum verdict v = NO_VERDICT;

	p->a.drv = ibmr_should_fail(IBMR_FAULT_DEVICE) ? ERR_PTR(-ENOMEM) :
		ib_alloc_mr(p->dev->park, IB_MR_TYPE_MEM_REG, 1);
	if (IS_ERR(p->a.drv))
		return PTR_ERR(p->a.drv) == -EOPNOTSUPP ? OTHERWISE : NO_VERDICT;
	p->a.drv->length = 0;
	p->a.key = p->a.drv->lkey;
	arm.mr = p->a.drv;
	arm.key = p->a.key;
	if (!ibmr_regqp_exec(p->dev->park_ipd, &arm, 1))
		v = confirmed(p);
	ibmr_withdraw(&p->a, p->dev);
	ib_dereg_mr_user(p->a.drv, NULL);
	return v;
}

static u8 *probe_page(void)
{
	return ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : (u8 *)__get_free_page(GFP_KERNEL);
}

/**
 * ibmr_probe() - does live mapping work on this device?
 * @dev: device, entered; its parking PD is there
 *
 * Context: process, may sleep.
 * Return: IB_MR_WHY_OK; IB_MR_WHY_NOT_QUALIFIED, for good; or that no verdict could be had now (no
 * address, port down, no memory).
 */
enum ib_mr_reason ibmr_probe(struct ibmr_dev *dev)
{
	static const char *const words[] = {
		[AS_MUST]	= "works, FMRs and memory windows are available",
		[OTHERWISE]	= "does not work, there are no FMRs nor memory windows",
		[NO_VERDICT]	= "could not be tested, is the port up? It will be tried again",
	};
	enum verdict v = NO_VERDICT;
	struct probe *p;

	p = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kzalloc(sizeof(*p), GFP_KERNEL);
	if (!p)
		return IB_MR_WHY_NO_MEMORY;
	p->dev = dev;
	p->page[0] = probe_page();
	p->page[1] = probe_page();
	p->buf = probe_page();
	p->pd = ibmr_should_fail(IBMR_FAULT_DEVICE) ? ERR_PTR(-ENOMEM) :
		ib_alloc_pd(dev->ibdev, 0);
	/* The pages are given by address, so a device with DMA of its own is not asked. */
	if (!ib_uses_virt_dma(dev->ibdev)) {
		p->step = "nothing, as it has DMA of its own";
		v = OTHERWISE;
	} else if (p->page[0] && p->page[1] && p->buf && !IS_ERR(p->pd)) {
		v = with_mr(p);
	}
	if (!IS_ERR(p->pd))
		ib_dealloc_pd_user(p->pd, NULL);
	free_page((unsigned long)p->page[0]);
	free_page((unsigned long)p->page[1]);
	free_page((unsigned long)p->buf);

	pr_info("%s: live mapping %s%s%s\n", dev->name, words[v],
		v && p->step ? "; tested last: " : "", v && p->step ? p->step : "");
	kfree(p);
	return v == AS_MUST ? IB_MR_WHY_OK :
	       v == OTHERWISE ? IB_MR_WHY_NOT_QUALIFIED : IB_MR_WHY_REGQP_FAILED;
}
