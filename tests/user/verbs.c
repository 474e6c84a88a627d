// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections to the ULP over librdmacm, RDMA operations over libibverbs, and the request
 * protocol on top.
 *
 * The ids are synchronous (no event channel of ours): a demo has nothing else to do while it
 * connects. Completions are waited for asleep, not by polling: the peer shares its few CPUs with
 * the soft RDMA device that does the work, and would slow it down.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <endian.h>
#include <netdb.h>
#include "peer.h"

#define WAIT_MS		60000	/* longer than a transport that gives up */
#define HANGUP_MS	2000	/* between the end of a connection and its last completions */

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int resolve(struct conn *conn)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP, .ai_qp_type = IBV_QPT_RC };
	struct rdma_addrinfo *found;
	int err;

	if (rdma_getaddrinfo(conn->peer->address, conn->peer->port, &hints, &found))
		return -EHOSTUNREACH;
	err = rdma_create_id(NULL, &conn->id, conn, RDMA_PS_TCP);
	if (!err)
		err = rdma_resolve_addr(conn->id, NULL, found->ai_dst_addr, 5000);
	if (!err)
		err = rdma_resolve_route(conn->id, 5000);
	rdma_freeaddrinfo(found);
	return err ? -errno : 0;
}

static int set_up(struct conn *conn)
{
	struct peer *peer = conn->peer;
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = DEPTH_MAX + 1,
			.max_recv_wr = 2,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};

	/* librdmacm opens a device once, so one PD serves all connections */
	if (!peer->pd)
		peer->pd = ibv_alloc_pd(conn->id->verbs);
	if (!peer->pd)
		return -errno;
	conn->mr = ibv_reg_mr(peer->pd, &conn->messages, sizeof(conn->messages),
			      IBV_ACCESS_LOCAL_WRITE);
	conn->channel = ibv_create_comp_channel(conn->id->verbs);
	if (!conn->mr || !conn->channel)
		return -errno;
	conn->cq = ibv_create_cq(conn->id->verbs, DEPTH_MAX + 4, conn, conn->channel, 0);
	if (!conn->cq)
		return -errno;
	attr.send_cq = conn->cq;
	attr.recv_cq = conn->cq;
	return rdma_create_qp(conn->id, peer->pd, &attr) ? -errno : 0;
}

static int greet(struct conn *conn)
{
	struct demo_hello hello = { htobe32(DEMO_MAGIC), htobe32(DEMO_VERSION) };
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		.initiator_depth = 16,	/* READs and atomics under way */
		.retry_count = 7,
		.rnr_retry_count = 7,
	};
	const struct rdma_conn_param *got;

	if (rdma_connect(conn->id, &param))
		return -errno;
	conn->connected = true;
	got = &conn->id->event->param.conn;
	if (got->private_data_len < sizeof(hello) ||
	    memcmp(got->private_data, &hello, sizeof(hello)))
		return -EPROTO;
	return 0;
}

/* conn_close() is due after a failure too. */
int conn_open(struct peer *peer, struct conn *conn)
{
	int err;

	memset(conn, 0, sizeof(*conn));
	conn->peer = peer;
	err = resolve(conn);
	if (!err)
		err = set_up(conn);
	if (!err)
		err = greet(conn);
	return err;
}

void conn_close(struct conn *conn)
{
	if (!conn->id)
		return;
	if (conn->connected)	/* else the event that it waits for would not come */
		rdma_disconnect(conn->id);
	if (conn->id->qp)
		rdma_destroy_qp(conn->id);
	if (conn->cq)
		ibv_destroy_cq(conn->cq);
	if (conn->channel)
		ibv_destroy_comp_channel(conn->channel);
	if (conn->mr)
		ibv_dereg_mr(conn->mr);
	rdma_destroy_id(conn->id);
	conn->id = NULL;
}

/* 1 and a completion in WC, 0 or an error */
static int poll_once(struct conn *conn, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(conn->cq, 1, wc);

	return n < 0 ? -EIO : n;
}

/*
 * Sleeps until there may be something in the CQ. Also sees that the other side has hung up, which
 * no completion may ever tell: the event stays unread, since rdma_disconnect() waits for it.
 */
static int sleep_for_event(struct conn *conn)
{
	struct pollfd fds[2] = {
		{ .fd = conn->channel->fd, .events = POLLIN },
		{ .fd = conn->id->channel->fd, .events = POLLIN },
	};
	struct ibv_cq *cq;
	void *context;
	int n;

	n = poll(fds, 2, WAIT_MS);
	if (n > 0 && !fds[0].revents) {
		n = poll(fds, 1, HANGUP_MS);
		if (!n)
			return -ENOTCONN;
	}
	if (n <= 0)
		return n ? -errno : -ETIMEDOUT;
	if (ibv_get_cq_event(conn->channel, &cq, &context))
		return -errno;
	ibv_ack_cq_events(cq, 1);
	return 0;
}

int conn_wait(struct conn *conn, struct ibv_wc *wc)
{
	int n = poll_once(conn, wc);

	while (!n) {
		/* what came between the poll and the request for an event raises none */
		if (ibv_req_notify_cq(conn->cq, 0))
			return -EIO;
		n = poll_once(conn, wc);
		if (!n) {
			n = sleep_for_event(conn);
			if (n)
				return n;
			n = poll_once(conn, wc);
		}
	}
	return n < 0 ? n : 0;
}

int conn_post(struct conn *conn, const struct op *op)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)op->local,
		.length = op->length,
		.lkey = conn->peer->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.opcode = op->code,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};
	struct ibv_send_wr *bad;

	if (op->code == IBV_WR_ATOMIC_FETCH_AND_ADD || op->code == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = op->remote;
		wr.wr.atomic.rkey = op->rkey;
		wr.wr.atomic.compare_add = op->add_or_compare;
		wr.wr.atomic.swap = op->swap;
	} else {
		wr.wr.rdma.remote_addr = op->remote;
		wr.wr.rdma.rkey = op->rkey;
	}
	return -ibv_post_send(conn->id->qp, &wr, &bad);
}

int conn_do(struct conn *conn, const struct op *op)
{
	struct ibv_wc wc;
	int err = conn_post(conn, op);

	if (!err)
		err = conn_wait(conn, &wc);
	return err ? err : (int)wc.status;
}

/*
 * OP over LENGTH bytes, of which the first DONE were carried out before, in chunks, several under
 * way. A failed chunk ends it; DONE says how far it came, since requests complete in order.
 */
int conn_bulk_on(struct conn *conn, struct op op, uint64_t length, uint64_t *done)
{
	const size_t chunk = conn->peer->chunk;
	const uint64_t end = length;
	int err, under_way = 0;
	struct ibv_wc wc;

	op.local = (uint8_t *)op.local + *done;
	op.remote += *done;
	length -= *done;
	while (length || under_way) {
		while (length && under_way < conn->peer->depth) {
			op.length = length < chunk ? length : chunk;
			err = conn_post(conn, &op);
			if (err)
				return err;
			op.local = (uint8_t *)op.local + op.length;
			op.remote += op.length;
			length -= op.length;
			under_way++;
		}
		err = conn_wait(conn, &wc);
		if (err)
			return err;
		if (wc.status != IBV_WC_SUCCESS)
			return wc.status;
		under_way--;
		*done += end - *done < chunk ? end - *done : chunk;
	}
	return 0;
}

int conn_bulk(struct conn *conn, struct op op, uint64_t length, double *seconds)
{
	double start = now();
	uint64_t done = 0;
	int err = conn_bulk_on(conn, op, length, &done);

	*seconds = now() - start;
	return err;
}

static int exchange(struct conn *conn, uint32_t length)
{
	struct ibv_sge in = {
		.addr = (uintptr_t)&conn->messages.reply,
		.length = sizeof(conn->messages.reply),
		.lkey = conn->mr->lkey,
	};
	struct ibv_sge out = {
		.addr = (uintptr_t)&conn->messages.request,
		.length = length,
		.lkey = conn->mr->lkey,
	};
	struct ibv_recv_wr recv = { .sg_list = &in, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = {
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.sg_list = &out,
		.num_sge = 1,
	}, *bad_send;
	struct ibv_wc wc;
	int err, i;

	err = ibv_post_recv(conn->id->qp, &recv, &bad_recv);
	if (!err)
		err = ibv_post_send(conn->id->qp, &send, &bad_send);
	if (err)
		return -err;
	for (i = 0; i < 2; i++) {
		err = conn_wait(conn, &wc);
		if (err)
			return err;
		if (wc.status != IBV_WC_SUCCESS)
			return -ECONNRESET;
		if (wc.opcode == IBV_WC_RECV && wc.byte_len != sizeof(conn->messages.reply))
			return -EPROTO;
	}
	if (conn->messages.reply.magic != htobe32(DEMO_MAGIC))
		return -EPROTO;
	return be32toh(conn->messages.reply.status);
}

int ask_raw(struct conn *conn, uint32_t length)
{
	int err = exchange(conn, length);

	if (err < 0 && conn == conn->peer->control)
		conn->peer->gone = true;
	return err;
}

static int ask_with(struct conn *conn, enum demo_cmd cmd, uint32_t region, uint64_t offset,
		    uint64_t length, uint32_t access)
{
	conn->messages.request = (struct demo_request){
		.magic = htobe32(DEMO_MAGIC),
		.cmd = htobe32(cmd),
		.region = htobe32(region),
		.access = htobe32(access),
		.offset = htobe64(offset),
		.length = htobe64(length),
	};
	return ask_raw(conn, sizeof(conn->messages.request));
}

int ask(struct conn *conn, enum demo_cmd cmd, uint32_t region, uint64_t offset, uint64_t length)
{
	return ask_with(conn, cmd, region, offset, length, 0);
}

int ask_regions(struct conn *conn, enum demo_cmd cmd, uint32_t region)
{
	const struct demo_reply *reply = &conn->messages.reply;
	struct peer *peer = conn->peer;
	unsigned int i;
	int err;

	err = ask(conn, cmd, region, 0, 0);
	if (err)
		return err;
	peer->nregions = be32toh(reply->count);
	if (peer->nregions < DEMO_REGIONS || peer->nregions > DEMO_REGIONS_MAX)
		return -EPROTO;
	for (i = 0; i < peer->nregions; i++) {
		peer->regions[i] = (struct region){
			.iova = be64toh(reply->regions[i].iova),
			.length = be64toh(reply->regions[i].length),
			.backing = be64toh(reply->regions[i].backing),
			.start = be64toh(reply->regions[i].start),
			.rkey = be32toh(reply->regions[i].rkey),
			.access = be32toh(reply->regions[i].access),
		};
	}
	return 0;
}

int ask_hash(struct conn *conn, uint32_t region, uint64_t offset, uint64_t length, uint8_t *hash)
{
	int err = ask(conn, DEMO_CMD_HASH, region, offset, length);

	if (!err)
		memcpy(hash, conn->messages.reply.hash, DEMO_SHA256_LEN);
	return err;
}

int ask_bytes(struct conn *conn, uint32_t region, uint64_t offset, uint64_t length, void *to)
{
	int err = ask(conn, DEMO_CMD_PEEK, region, offset, length);

	if (!err)
		memcpy(to, conn->messages.reply.bytes, length);
	return err;
}

static int told_window(const struct conn *conn, uint64_t length, uint32_t access,
		       struct window *window)
{
	const struct demo_window_info *told = &conn->messages.reply.window;

	window->iova = be64toh(told->iova);
	window->length = be64toh(told->length);
	window->rkey = be32toh(told->rkey);
	if (window->length != length || be32toh(told->access) != access || !window->rkey)
		return -EPROTO;
	return 0;
}

int ask_grant(struct conn *conn, uint32_t region, uint64_t offset, uint64_t length, uint32_t access,
	      struct window *window)
{
	int err = ask_with(conn, DEMO_CMD_GRANT, region, offset, length, access);

	if (err || !window)
		return err;
	err = told_window(conn, length, access, window);
	if (!err && window->iova != conn->peer->regions[region].iova + offset)
		err = -EPROTO;
	return err;
}

int ask_loan(struct conn *conn, uint32_t region, uint64_t offset, uint64_t length,
	     struct window *window)
{
	int err = ask(conn, DEMO_CMD_LEND, region, offset, length);

	return err || !window ? err : told_window(conn, length, IBV_ACCESS_REMOTE_READ, window);
}
