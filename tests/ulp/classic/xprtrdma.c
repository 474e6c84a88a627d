// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The NFS client over RDMA, as of 3.12, in all its memory modes: its own buffers in a region of one
 * piece; regions of many pieces with one remote right and no local one; all of memory; FMRs with a
 * single map; memory windows on the DMA MR, bound unsignalled and used in the next SEND, and
 * unbound by a tasklet under the transport's lock, the last of a request with a signal, whose
 * completion finds the request by its wr_id.
 *
 * xprtrdma38.c compiles it as of 3.8, where struct ib_mw_bind was flat and windows had no type.
 */
#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

#include "station.h"

#ifndef ME
#define ME	"xprtrdma"
#endif
#define WINDOWS	6
#define PAGES	6

/* An RPC: one page behind each window. */
struct rpcrdma_req {
	struct ib_mw *mw[WINDOWS];
	u32 rkey[WINDOWS];
	unsigned int bound;
	int unbind_err;
	struct completion unbound;	/* by the last window's completion */
	enum ib_wc_status status;
};

struct xprt {
	struct ib_device *device;
	struct ib_pd *pd;
	struct ib_mr *bind_mem;		/* all memory: windows are bound to it */
	struct ib_mr *internal;
	struct station st;
	struct data *data;
	struct completion replied;
	struct reply reply;
	struct rpcrdma_req req;
	spinlock_t transport_lock;
	struct tasklet_struct reply_tasklet;
	bool windows;
	unsigned int bind_completions;
};

static struct ib_client xprt_client;

static void xprt_upcall(struct ib_cq *cq, void *context)
{
	struct xprt *x = context;
	struct rpcrdma_req *req;
	struct ib_wc wc;
	int rc;

	do {
		while ((rc = ib_poll_cq(cq, 1, &wc)) == 1) {
			if (wc.opcode == IB_WC_BIND_MW && wc.wr_id > LINK_DEPTH) {
				req = (struct rpcrdma_req *)(unsigned long)wc.wr_id;
				req->status = wc.status;
				x->bind_completions++;
				complete(&req->unbound);
			} else if (station_reply(&x->st, &wc, &x->reply)) {
				if (x->windows)
					tasklet_schedule(&x->reply_tasklet);
				else
					complete(&x->replied);
			}
		}
		rc = ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
	} while (rc > 0);
}

static s64 xprt_call(struct xprt *x, enum order_op op, u32 rkey, u64 addr, u32 len, u32 seed)
{
	int err;

	reinit_completion(&x->replied);
	err = station_send(&x->st, op, rkey, addr, len, seed, 0, NULL);
	if (err)
		return err;
	if (!wait_for_completion_timeout(&x->replied, PATIENCE))
		return -ETIMEDOUT;
	return x->reply.wrong;
}

/* REGISTER: a region for each chunk, with the one right that the server needs. */
static void xprt_register(struct xprt *x, bool writing)
{
	struct ib_phys_buf ipb[PAGES];
	u32 len = PAGES * PAGE_SIZE - 300, key;
	s64 wrong = -1;
	struct ib_mr *mr;
	int i, err;
	u64 iova;

	for (i = 0; i < PAGES; i++) {
		ipb[i].addr = x->data->list[i];
		ipb[i].size = PAGE_SIZE;
	}
	ipb[0].addr += 300;
	ipb[0].size -= 300;
	iova = ipb[0].addr;
	data_fill(x->data, 300, len, writing ? 0 : 5);
	mr = ib_reg_phys_mr(x->pd, ipb, PAGES, writing ? IB_ACCESS_REMOTE_WRITE :
			    IB_ACCESS_REMOTE_READ, &iova);
	err = PTR_ERR_OR_ZERO(mr);
	if (err) {
		verdict(ME, writing ? "REGISTER, REMOTE_WRITE alone" :
			"REGISTER, REMOTE_READ alone", false, "%d", err);
		return;
	}
	key = mr->rkey;
	wrong = xprt_call(x, writing ? ORDER_WRITE : ORDER_READ, key, iova, len, 5);
	if (!wrong && writing)
		wrong = data_wrong(x->data, 300, len, 5);
	if (!wrong && probe(x->pd, !writing, key, iova, 8) != IB_WC_REM_ACCESS_ERR)
		wrong = -2;	/* it had the other right, too */
	err = ib_dereg_mr(mr);
	verdict(ME, writing ? "REGISTER, REMOTE_WRITE alone" : "REGISTER, REMOTE_READ alone",
		!wrong && !err && refused(x->pd, key, iova), "%lld bytes wrong, dereg %d", wrong,
		err);
}

static void xprt_allphysical(struct xprt *x)
{
	struct ib_mr *mr = ib_get_dma_mr(x->pd, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
					 IB_ACCESS_REMOTE_READ);
	s64 wrong = PTR_ERR_OR_ZERO(mr);
	int i, err = 0;

	for (i = 0; i < PAGES && !wrong; i++) {
		wrong = xprt_call(x, ORDER_WRITE, mr->rkey, x->data->list[i], PAGE_SIZE, i);
		if (!wrong)
			wrong = xprt_call(x, ORDER_READ, mr->rkey, x->data->list[i], PAGE_SIZE, i);
	}
	if (!IS_ERR(mr))
		err = ib_dereg_mr(mr);
	verdict(ME, "ALLPHYSICAL", !wrong && !err, "%lld bytes wrong, dereg %d", wrong, err);
}

/* MTHCAFMR: no LOCAL_WRITE, one map; unmapped in process context before the DMA unmap. */
static void xprt_mthcafmr(struct xprt *x)
{
	struct ib_fmr_attr fa = { .max_pages = 64, .max_maps = 1, .page_shift = PAGE_SHIFT };
	struct ib_fmr *fmr = ib_alloc_fmr(x->pd, IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
					  &fa);
	int i, err = PTR_ERR_OR_ZERO(fmr), second = 0, dead = 0;
	s64 wrong = 0;
	LIST_HEAD(l);

	for (i = 1; i <= PAGES && !err && !wrong; i++) {
		u64 iova = x->data->list[0];
		u32 key;

		err = ib_map_phys_fmr(fmr, x->data->list, i, iova);
		if (err)
			break;
		key = fmr->rkey;
		second += ib_map_phys_fmr(fmr, x->data->list, i, iova) == -EINVAL;
		wrong = xprt_call(x, ORDER_WRITE, key, iova, i * PAGE_SIZE, i);
		if (!wrong)
			wrong = data_wrong(x->data, 0, i * PAGE_SIZE, i);
		if (!wrong)
			wrong = xprt_call(x, ORDER_READ, key, iova, i * PAGE_SIZE, i);
		list_add(&fmr->list, &l);
		err = ib_unmap_fmr(&l);
		list_del(&fmr->list);
		dead += refused(x->pd, key, iova);
	}
	if (!IS_ERR(fmr) && !err)
		err = ib_dealloc_fmr(fmr);
	verdict(ME, "MTHCAFMR, max_maps 1", !err && !wrong, "%d; %lld bytes wrong", err, wrong);
	verdict(ME, "MTHCAFMR, a second map is refused, an unmapped key is dead",
		second == PAGES && dead == PAGES, "%d and %d of %d", second, dead, PAGES);
}

/* --- MEMWINDOWS --- */

static struct ib_mw *xprt_alloc_mw(struct ib_pd *pd)
{
#if IB_MR_WRITTEN_FOR < 309
	return ib_alloc_mw(pd);
#else
	return ib_alloc_mw(pd, IB_MW_TYPE_1);
#endif
}

static int xprt_bind(struct xprt *x, struct ib_mw *mw, u64 addr, u32 len, int access, u64 wr_id,
		     int send_flags)
{
	struct ib_mw_bind param;

	memset(&param, 0, sizeof(param));
	param.wr_id = wr_id;
	param.send_flags = send_flags;
#if IB_MR_WRITTEN_FOR < 309
	param.mr = x->bind_mem;
	param.addr = addr;
	param.length = len;
	param.mw_access_flags = access;
#else
	param.bind_info.mr = x->bind_mem;
	param.bind_info.addr = addr;
	param.bind_info.length = len;
	param.bind_info.mw_access_flags = access;
#endif
	return ib_bind_mw(x->st.qp, mw, &param);
}

/* Softirq, and the transport's lock is held. */
static void xprt_unbind(struct xprt *x, struct rpcrdma_req *req)
{
	unsigned int i;

	for (i = 0; i < req->bound; i++) {
		bool last = i == req->bound - 1;
		int err = xprt_bind(x, req->mw[i], 0, 0, 0, last ? (unsigned long)req : 0,
				    last ? IB_SEND_SIGNALED : 0);

		if (err)
			req->unbind_err = err;
	}
	req->bound = 0;
}

static void xprt_reply(unsigned long data)
{
	struct xprt *x = (struct xprt *)data;

	spin_lock(&x->transport_lock);
	xprt_unbind(x, &x->req);
	spin_unlock(&x->transport_lock);
	complete(&x->replied);
}

/* One RPC. The server is told of the window @at; all are bound. */
static s64 xprt_rpc(struct xprt *x, unsigned int at, bool writing)
{
	struct rpcrdma_req *req = &x->req;
	unsigned int i, tries = 0;
	s64 wrong;
	int err;

	req->unbind_err = 0;
	req->status = IB_WC_GENERAL_ERR;
	reinit_completion(&req->unbound);
	for (i = 0; i < WINDOWS; i++) {
		do
			err = xprt_bind(x, req->mw[i], x->data->list[i] + 100, PAGE_SIZE - 200,
					writing ? IB_ACCESS_REMOTE_WRITE : IB_ACCESS_REMOTE_READ,
					0, 0);
		while (station_again(err, &tries));
		if (err)
			return err;
		req->rkey[i] = req->mw[i]->rkey;
		req->bound = i + 1;
	}
	wrong = xprt_call(x, writing ? ORDER_WRITE : ORDER_READ, req->rkey[at],
			  x->data->list[at] + 100, PAGE_SIZE - 200, at);
	if (wrong)
		return wrong;
	if (!wait_for_completion_timeout(&req->unbound, PATIENCE))
		return -ETIMEDOUT;
	return req->status ? -EIO : req->unbind_err;
}

static void xprt_memwindows(struct xprt *x)
{
	struct rpcrdma_req *req = &x->req;
	unsigned int i, dead = 0, before;
	s64 wrong = 0;
	bool exact;
	int err = 0;

	for (i = 0; i < WINDOWS && !err; i++) {
		req->mw[i] = xprt_alloc_mw(x->pd);
		err = PTR_ERR_OR_ZERO(req->mw[i]);
	}
	if (err) {
		verdict(ME, "MEMWINDOWS, windows", false, "%d", err);
		return;
	}
	x->windows = true;
	before = x->bind_completions;
	for (i = 0; i < WINDOWS && !wrong; i++) {
		data_fill(x->data, i * PAGE_SIZE + 100, PAGE_SIZE - 200, i);
		wrong = xprt_rpc(x, i, false);
		dead += refused(x->pd, req->rkey[i], x->data->list[i] + 100);
	}
	verdict(ME, "MEMWINDOWS on the DMA MR, READ", !wrong, "%lld", wrong);
	for (i = 0; i < WINDOWS && !wrong; i++) {
		data_fill(x->data, i * PAGE_SIZE, PAGE_SIZE, 77);
		wrong = xprt_rpc(x, i, true);
		if (!wrong)
			wrong = data_wrong(x->data, i * PAGE_SIZE + 100, PAGE_SIZE - 200, i);
		dead += refused(x->pd, req->rkey[i], x->data->list[i] + 100);
	}
	verdict(ME, "MEMWINDOWS, WRITE", !wrong, "%lld", wrong);
	verdict(ME, "unbound in a tasklet under the lock; IB_WC_BIND_MW finds the request",
		x->bind_completions - before == 2 * WINDOWS && dead == 2 * WINDOWS,
		"%u completions, %u keys dead, of %u", x->bind_completions - before, dead,
		2 * WINDOWS);

	err = xprt_bind(x, req->mw[0], x->data->list[0] + 100, 64, IB_ACCESS_REMOTE_READ, 0, 0);
	exact = !err && open_to(x->pd, req->mw[0]->rkey, x->data->list[0] + 156) &&
		refused(x->pd, req->mw[0]->rkey, x->data->list[0] + 157) &&
		refused(x->pd, req->mw[0]->rkey, x->data->list[0] + 99);
	verdict(ME, "a window on all of memory is exact to the byte", exact, "%d", err);
	err = ib_dereg_mr(x->bind_mem);
	verdict(ME, "the DMA MR stays while a window is bound", err == -EBUSY, "%d", err);
	for (i = 0, err = 0; i < WINDOWS; i++)
		err |= ib_dealloc_mw(req->mw[i]);
	verdict(ME, "windows are freed, one of them bound", !err, "%d", err);
	x->windows = false;
}

/* --- the adapter --- */

static int xprt_set_up(struct xprt *x)
{
	struct ib_phys_buf ipb;
	u64 iova;
	int err;

	x->pd = ib_alloc_pd(x->device);
	err = PTR_ERR_OR_ZERO(x->pd);
	if (err)
		return err;
	x->bind_mem = ib_get_dma_mr(x->pd, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND);
	err = PTR_ERR_OR_ZERO(x->bind_mem);
	if (err)
		return err;
	x->data = data_alloc(x->device, PAGES);
	if (!x->data)
		return -ENOMEM;
	err = station_alloc(&x->st, x->device, x->pd);
	if (err)
		return err;
	ipb.addr = x->st.dma;
	ipb.size = STATION_MEM;
	iova = ipb.addr;
	x->internal = ib_reg_phys_mr(x->pd, &ipb, 1, IB_ACCESS_LOCAL_WRITE, &iova);
	err = PTR_ERR_OR_ZERO(x->internal);
	return err ? err : station_open(&x->st, x->internal->lkey, xprt_upcall, x);
}

static void xprt_add_one(struct ib_device *device)
{
	struct xprt *x = kzalloc(sizeof(*x), GFP_KERNEL);
	struct ib_device_attr *devattr = kmalloc(sizeof(*devattr), GFP_KERNEL);
	int err = -ENOMEM;
	bool fmr, windows, frmr;

	if (!x || !devattr || ib_query_device(device, devattr)) {
		kfree(x);
		goto out;
	}
	x->device = device;
	spin_lock_init(&x->transport_lock);
	init_completion(&x->replied);
	init_completion(&x->req.unbound);
	tasklet_init(&x->reply_tasklet, xprt_reply, (unsigned long)x);
	ib_set_client_data(device, &xprt_client, x);
	err = xprt_set_up(x);
	verdict(ME, "set up, own buffers in a region of one piece", !err, "%d", err);
	if (err)
		goto out;
	fmr = device->alloc_fmr;
	windows = devattr->device_cap_flags & IB_DEVICE_MEM_WINDOW;
	frmr = devattr->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS;
	verdict(ME, "the modes on offer: FMR and windows, no page-list FRMR", fmr && windows &&
		!frmr && PTR_ERR(ib_alloc_fast_reg_mr(x->pd, 8)) == -ENOSYS, "%d %d %d", fmr,
		windows, frmr);
	xprt_register(x, true);
	xprt_register(x, false);
	xprt_allphysical(x);
	xprt_mthcafmr(x);
	xprt_memwindows(x);
out:
	kfree(devattr);
}

static void xprt_remove_one(struct ib_device *device)
{
	struct xprt *x = ib_get_client_data(device, &xprt_client);
	int err[3];

	if (!x)
		return;
	tasklet_kill(&x->reply_tasklet);
	err[0] = IS_ERR_OR_NULL(x->internal) ? -EINVAL : 0;
	station_close(&x->st);
	if (!err[0])
		err[0] = ib_dereg_mr(x->internal);
	data_free(x->data);
	err[1] = ib_dereg_mr(x->bind_mem);
	err[2] = ib_dealloc_pd(x->pd);
	verdict(ME, "regions and PD go", !err[0] && !err[1] && !err[2], "%d %d %d", err[0], err[1],
		err[2]);
	kfree(x);
}

static struct ib_client xprt_client = {
	.name = ME,
	.add = xprt_add_one,
	.remove = xprt_remove_one,
};

int xprt_init(void)
{
	return ib_register_client(&xprt_client);
}

void xprt_exit(void)
{
	ib_unregister_client(&xprt_client);
}
