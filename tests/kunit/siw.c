// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * siw devices and connections: see siw.h.
 *
 * User space makes and deletes the devices, as an administrator would. They are found by their NIC,
 * since later kernels do not look them up by name. No reference is kept: nobody but the case
 * deletes them.
 *
 * An iWARP WRITE is complete when it was sent, and a refusal ends the connection. So what a peer
 * wrote is looked at after a READ of the same place, which comes behind it.
 */
#include <linux/delay.h>
#include <linux/inet.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <rdma/restrack.h>
#include "proc.h"
#include "siw.h"

#define SIW_PORT	7471

static struct ib_device *on_nic(enum rdma_driver_id driver)
{
	struct net_device *ndev = dev_get_by_name(&init_net, "ibt-siw0");
	struct ib_device *dev;

	if (!ndev)
		return NULL;
	dev = ib_device_get_by_netdev(ndev, driver);
	dev_put(ndev);
	if (dev)
		ib_device_put(dev);
	return dev;
}

static void expect_empty(struct kunit *test, struct ib_device *dev)
{
	static const enum rdma_restrack_type kinds[] = {
		RDMA_RESTRACK_PD, RDMA_RESTRACK_CQ, RDMA_RESTRACK_QP, RDMA_RESTRACK_MR,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		KUNIT_EXPECT_EQ_MSG(test, rdma_restrack_count(dev, kinds[i], true), 0,
				    "objects of kind %d were left", kinds[i]);
	KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(dev));
}

/* The NIC takes along what a case has left on it, when that case has failed. */
static void siw_gone(struct kunit *test, void *arg)
{
	struct ib_device *dev = on_nic(RDMA_DRIVER_SIW);

	if (dev) {
		expect_empty(test, dev);
		KUNIT_EXPECT_EQ(test, ibt_shell("rdma link delete ibt_siw"), 0);
	}
	KUNIT_EXPECT_EQ(test, ibt_shell("ip link del ibt-siw0"), 0);
}

struct ib_device *siw_device(struct kunit *test)
{
	struct ib_device *dev;

	/* The guest's ip does not take a name for the peer: it is the kernel's first, veth0. */
	KUNIT_ASSERT_EQ(test, ibt_shell("set -e; modprobe veth; modprobe siw; "
					"ip link add ibt-siw0 type veth"), 0);
	ibt_defer(test, siw_gone, NULL);
	KUNIT_ASSERT_EQ(test, ibt_shell("set -e; ip addr add " SIW_ADDRESS "/24 dev ibt-siw0; "
					"ip link set veth0 up; ip link set ibt-siw0 up; "
					"rdma link add ibt_siw type siw netdev ibt-siw0"), 0);
	dev = on_nic(RDMA_DRIVER_SIW);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	return dev;
}

struct ib_device *siw_neighbour(struct kunit *test)
{
	struct ib_device *dev;

	KUNIT_ASSERT_EQ(test, ibt_shell("rdma link add ibt_rxe type rxe netdev ibt-siw0"), 0);
	dev = on_nic(RDMA_DRIVER_RXE);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	return dev;
}

static void pd_gone(struct kunit *test, void *pd)
{
	KUNIT_EXPECT_EQ(test, ib_mr_dealloc_pd(pd), 0);
}

struct ib_pd *siw_pd(struct kunit *test, struct ib_device *dev)
{
	struct ib_pd *pd = ib_alloc_pd(dev, 0);

	KUNIT_ASSERT_FALSE(test, IS_ERR(pd));
	ibt_defer(test, pd_gone, pd);
	return pd;
}

/* Connections. */

static int make_qp(struct siw_pair *p, struct rdma_cm_id *id, struct ib_pd *pd)
{
	struct ib_qp_init_attr attr = {
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1,
		},
	};

	return rdma_create_qp(id, pd, &attr);
}

static struct rdma_conn_param conn_param(void)
{
	return (struct rdma_conn_param){ .responder_resources = 4, .initiator_depth = 4 };
}

static int handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct siw_pair *p = id->context;
	struct rdma_conn_param param = conn_param();

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		/* An id that is refused is the connection manager's, and it destroys it. */
		if (p->tgt || make_qp(p, id, p->pd))
			return -ECONNREFUSED;
		if (rdma_accept(id, &param)) {
			rdma_destroy_qp(id);
			return -ECONNREFUSED;
		}
		p->tgt = id;
	} else if (id == p->req) {
		p->last = event->event;
		complete(&p->event);
	} else if (event->event == RDMA_CM_EVENT_ESTABLISHED) {
		complete(&p->accepted);
	}
	return 0;
}

static bool came(struct siw_pair *p, enum rdma_cm_event_type want)
{
	return wait_for_completion_timeout(&p->event, 30 * HZ) && p->last == want;
}

static void end_id(struct rdma_cm_id *id)
{
	if (IS_ERR_OR_NULL(id))
		return;
	rdma_disconnect(id);
	if (id->qp)
		rdma_destroy_qp(id);
	rdma_destroy_id(id);
}

static void pair_gone(struct kunit *test, void *arg)
{
	struct siw_pair *p = arg;

	end_id(p->req);
	end_id(p->listener);	/* no request comes any more, so @tgt is final */
	end_id(p->tgt);
	if (!IS_ERR_OR_NULL(p->cq))
		ib_destroy_cq(p->cq);
	if (!IS_ERR_OR_NULL(p->peer_pd))
		ib_dealloc_pd(p->peer_pd);
	kfree(p->buf);
	kfree(p);
}

void siw_pair_end(struct siw_pair *p)
{
	struct kunit *test = p->test;

	ibt_forget(test, pair_gone, p);
	pair_gone(test, p);
}

struct siw_pair *siw_pair(struct kunit *test, struct ib_pd *pd_target)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(SIW_PORT) };
	struct sockaddr_in from = { .sin_family = AF_INET };
	struct siw_pair *p = kzalloc(sizeof(*p), GFP_KERNEL);
	struct ib_cq_init_attr cq_attr = { .cqe = 64 };
	struct rdma_conn_param param = conn_param();

	KUNIT_ASSERT_NOT_NULL(test, p);
	p->test = test;
	p->pd = pd_target;
	init_completion(&p->event);
	init_completion(&p->accepted);
	ibt_defer(test, pair_gone, p);
	at.sin_addr.s_addr = in_aton(SIW_ADDRESS);
	from.sin_addr = at.sin_addr;

	p->buf = kzalloc(SIW_BUF, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p->buf);
	p->peer_pd = ib_alloc_pd(pd_target->device, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(p->peer_pd));
	p->cq = ib_create_cq(pd_target->device, NULL, NULL, NULL, &cq_attr);
	KUNIT_ASSERT_FALSE(test, IS_ERR(p->cq));

	p->listener = rdma_create_id(&init_net, handler, p, RDMA_PS_TCP, IB_QPT_RC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(p->listener));
	KUNIT_ASSERT_EQ(test, rdma_bind_addr(p->listener, (struct sockaddr *)&at), 0);
	KUNIT_ASSERT_EQ(test, rdma_listen(p->listener, 1), 0);

	p->req = rdma_create_id(&init_net, handler, p, RDMA_PS_TCP, IB_QPT_RC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(p->req));
	KUNIT_ASSERT_EQ(test, rdma_resolve_addr(p->req, (struct sockaddr *)&from,
						(struct sockaddr *)&at, 10000), 0);
	KUNIT_ASSERT_TRUE(test, came(p, RDMA_CM_EVENT_ADDR_RESOLVED));
	KUNIT_ASSERT_PTR_EQ(test, p->req->device, pd_target->device);
	KUNIT_ASSERT_EQ(test, rdma_resolve_route(p->req, 10000), 0);
	KUNIT_ASSERT_TRUE(test, came(p, RDMA_CM_EVENT_ROUTE_RESOLVED));
	KUNIT_ASSERT_EQ(test, make_qp(p, p->req, p->peer_pd), 0);
	KUNIT_ASSERT_EQ(test, rdma_connect(p->req, &param), 0);
	KUNIT_ASSERT_TRUE(test, came(p, RDMA_CM_EVENT_ESTABLISHED));
	KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&p->accepted, 30 * HZ), 0UL);
	return p;
}

enum ib_wc_status siw_rdma(struct siw_pair *p, enum ib_wr_opcode op, u32 rkey, u64 iova, u32 len)
{
	struct ib_sge sge = {
		.addr = (uintptr_t)p->buf, .length = len, .lkey = p->peer_pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = ++p->seq, .opcode = op, .send_flags = IB_SEND_SIGNALED,
			.sg_list = &sge, .num_sge = 1,
		},
		.remote_addr = iova, .rkey = rkey,
	};
	unsigned long deadline = jiffies + 30 * HZ;
	struct ib_wc wc;
	int err = ib_post_send(p->req->qp, &wr.wr, NULL);

	/* A connection that has ended takes nothing any more. */
	if (err)
		return IB_WC_WR_FLUSH_ERR;
	do {
		if (ib_poll_cq(p->cq, 1, &wc) != 1)
			usleep_range(20, 200);
		else if (wc.qp == p->req->qp && wc.wr_id == p->seq)
			return wc.status;
	} while (time_before(jiffies, deadline));
	KUNIT_FAIL(p->test, "no completion within 30 s");
	return IBT_LOST;
}

bool siw_reads(struct kunit *test, struct ib_pd *pd, u32 rkey, u64 iova, u32 len)
{
	struct siw_pair *p = siw_pair(test, pd);
	enum ib_wc_status status = siw_rdma(p, IB_WR_RDMA_READ, rkey, iova, len);

	KUNIT_EXPECT_NE(test, status, IBT_LOST);
	siw_pair_end(p);
	return status == IB_WC_SUCCESS;
}
