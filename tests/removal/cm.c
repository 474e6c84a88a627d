// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The set's connection by rdma_cm: a listener on no address, so on no device, and an id that
 * connects to it over the device's own address. Both ends' queue pairs are rdma_cm's, and both are
 * told of the device's removal.
 *
 * Handlers do not take the set's lock: whoever makes or ends a set waits for them with it held. The
 * one here orders a request that comes late against the end of the set that it was meant for.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/in.h>
#include <linux/inet.h>
#include <net/net_namespace.h>

#include "removal.h"

#define PORT	7471
#define TIMEOUT	2000	/* ms, of rdma_cm */

static struct rdma_cm_id *listener;
static DEFINE_MUTEX(request_lock);

static int accept(struct rdma_cm_id *id, struct set *s)
{
	/* It is this end that reads. */
	struct rdma_conn_param param = {
		.responder_resources = 4, .initiator_depth = 4, .rnr_retry_count = 7,
	};
	struct ib_qp_init_attr attr;
	int err;

	if (!s || s->passive || id->device != s->dev)
		return -ECONNREFUSED;
	pair_init_attr(&attr, s->pair.peer_cq);
	err = rdma_create_qp(id, s->pair.peer_pd, &attr);
	if (err)
		return err;
	id->context = s;
	s->pair.peer_qp = id->qp;
	err = rdma_accept(id, &param);
	if (err) {
		s->pair.peer_qp = NULL;
		rdma_destroy_qp(id);
		return err;
	}
	s->passive = id;
	return 0;
}

/* An error makes rdma_cm destroy the id. */
static int passive_request(struct rdma_cm_id *id)
{
	int err;

	mutex_lock(&request_lock);
	err = accept(id, removal_set);
	mutex_unlock(&request_lock);
	return err;
}

static int handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct set *s = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return passive_request(id);
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		if (s)
			removal_close(s);
		return 0;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ESTABLISHED:
		if (s && id == s->id) {
			s->status = 0;
			complete(&s->event);
		}
		return 0;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		if (s && id == s->id) {
			/* A rejection has its reason there, which is positive. */
			s->status = event->status < 0 ? event->status : -ECONNREFUSED;
			complete(&s->event);
		}
		return 0;
	default:	/* a connection that ends, an address that changes: the set stays */
		return 0;
	}
}

/* What was asked for has come, or the device goes. */
static int await(struct set *s, const char *what)
{
	unsigned long left = wait_for_completion_timeout(&s->event, 30 * HZ);

	if (READ_ONCE(s->removing))
		return -ENODEV;
	if (!left) {
		wrong(what, -ETIMEDOUT);
		return -ETIMEDOUT;
	}
	return s->status;
}

/* The device may go at any step: each then fails in a way of its own, which is as good as gone. */
static int connect(struct set *s)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	struct rdma_conn_param param = {
		.responder_resources = 4, .initiator_depth = 4, .retry_count = 7,
	};
	struct ib_qp_init_attr attr;
	int err;

	if (!removal_addr || !in4_pton(removal_addr, -1, (u8 *)&to.sin_addr, '\n', NULL))
		return -EINVAL;
	s->id = rdma_create_id(&init_net, handler, s, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(s->id)) {
		err = PTR_ERR(s->id);
		s->id = NULL;
		return err;
	}
	err = rdma_resolve_addr(s->id, NULL, (struct sockaddr *)&to, TIMEOUT) ?:
	      await(s, "resolving the address");
	if (err)
		return err;
	s->dev = s->id->device;
	s->pd = ib_alloc_pd(s->dev, 0);
	if (IS_ERR(s->pd))
		return PTR_ERR(s->pd);
	err = pair_prepare(&s->pair, s->dev);
	if (!err)
		err = rdma_resolve_route(s->id, TIMEOUT) ?: await(s, "resolving the route");
	if (err)
		return err;
	pair_init_attr(&attr, s->pair.cq);
	err = rdma_create_qp(s->id, s->pd, &attr);
	if (err)
		return err;
	s->pair.qp = s->id->qp;
	err = rdma_connect(s->id, &param) ?: await(s, "connecting");
	/* The listener leaves a device that goes before the ids there are told. */
	if (err == -ECONNREFUSED)
		wait_for_completion_timeout(&s->event, 10 * HZ);
	return err;
}

int cm_connect(struct set *s)
{
	int err = connect(s);

	return err && READ_ONCE(s->removing) ? -ENODEV : err;
}

/* The threads have ended. Destroying an id waits for its handler. */
void cm_disconnect(struct set *s)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct rdma_cm_id *id[2] = { s->id };
	int i;

	mutex_lock(&request_lock);
	removal_set = NULL;
	id[1] = s->passive;
	mutex_unlock(&request_lock);
	for (i = 0; i < 2; i++) {
		if (!id[i])
			continue;
		rdma_disconnect(id[i]);		/* fails where there is no connection */
		if (!id[i]->qp)
			continue;
		ib_modify_qp(id[i]->qp, &attr, IB_QP_STATE);
	}
	/* See pair_destroy(). */
	ib_mr_fence();
	for (i = 0; i < 2; i++)
		if (id[i] && id[i]->qp)
			rdma_destroy_qp(id[i]);
	s->pair.qp = NULL;
	s->pair.peer_qp = NULL;
	pair_destroy(&s->pair);
	/* These let the removal of the device go on. */
	if (s->dev)
		objects_release(s);
	s->dev = NULL;
	for (i = 0; i < 2; i++)
		if (id[i])
			rdma_destroy_id(id[i]);
}

int cm_listen(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int err;

	listener = rdma_create_id(&init_net, handler, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	err = rdma_bind_addr(listener, (struct sockaddr *)&any) ?: rdma_listen(listener, 4);
	if (err)
		rdma_destroy_id(listener);
	return err;
}

void cm_unlisten(void)
{
	rdma_destroy_id(listener);
}
