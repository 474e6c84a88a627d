// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections: from a connection request to the last byte freed.
 *
 * In normal operation a connection has one receive buffer, posted; what arrives is handed to a
 * work item, which copies it, posts the buffer again, acts, and sends the reply. There is one
 * reply buffer, so the work item first waits until the previous reply has left it. Work may
 * sleep (it registers and deregisters memory, and hashes), which a completion handler should not
 * do for long.
 *
 * The end has two stages. When the queue pair fails (an access of the peer was refused, say) we
 * hang up, which makes rdma_cm tell us of the disconnection in the end, whatever the peer does.
 * When it does (or when the device or the module goes) we close: conn_close() starts the close
 * work once. An rdma_cm_id may not be destroyed from its own event handler, and destroying it
 * waits for that handler: so when the close work gets past rdma_destroy_id() nobody else can
 * still know the connection.
 *
 * A queue pair is not destroyed straight from its failure also for the sake of rdma_rxe up to
 * 6.4: a peer on the same device runs our responder inside its own system call, and the end of
 * rxe_do_task() writes to the queue pair after rxe_cleanup_task() may have taken it for idle.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/ib_cm.h>
#include "demo.h"

/* Each costs a page or two and is free for the asking, so it has to end somewhere. */
#define DEMO_CONNS_MAX	64

enum { CONN_CLOSING };

struct demo_conn {
	struct list_head entry;		/* in dev->conns, under demo_lock */
	struct demo_dev *dev;
	struct rdma_cm_id *id;
	struct ib_cq *cq;

	struct demo_request *rx;
	u64 rx_dma;
	u32 rx_len;			/* valid between a receive and its work */
	struct ib_cqe rx_cqe;

	struct demo_reply *tx;
	u64 tx_dma;
	struct ib_cqe tx_cqe;
	struct completion tx_idle;	/* no reply is in the send queue */

	struct ib_cqe bind_cqe;
	enum ib_wc_status bind_status;
	struct completion bound;	/* a bind has completed, with bind_status */

	struct mutex post_lock;		/* closed: nothing is posted any more */
	bool closed;
	unsigned long flags;		/* CONN_CLOSING: the close work was started */
	struct work_struct request_work;
	struct work_struct hangup_work;
	struct work_struct close_work;
};

/* A device that a connection may use until put_dev(), or NULL. */
static struct demo_dev *get_dev(struct ib_device *ib)
{
	struct demo_dev *dev, *found = NULL;

	mutex_lock(&demo_lock);
	list_for_each_entry(dev, &demo_devs, entry) {
		if (dev->ib == ib && !dev->removing && dev->nconns < DEMO_CONNS_MAX) {
			dev->nconns++;
			found = dev;
		}
	}
	mutex_unlock(&demo_lock);
	return found;
}

static void put_dev(struct demo_dev *dev)
{
	mutex_lock(&demo_lock);
	if (!--dev->nconns)
		wake_up(&dev->idle);
	mutex_unlock(&demo_lock);
}

static void conn_close(struct demo_conn *conn)
{
	if (!test_and_set_bit(CONN_CLOSING, &conn->flags))
		queue_work(demo_wq, &conn->close_work);
}

static void hangup_work(struct work_struct *work)
{
	struct demo_conn *conn = container_of(work, struct demo_conn, hangup_work);

	/* not connected, so nobody will tell us that it has ended */
	if (rdma_disconnect(conn->id))
		conn_close(conn);
}

static void conn_hangup(struct demo_conn *conn)
{
	queue_work(demo_wq, &conn->hangup_work);
}

static int post_rx(struct demo_conn *conn)
{
	struct ib_sge sge = {
		.addr = conn->rx_dma,
		.length = sizeof(*conn->rx),
		.lkey = conn->dev->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = &conn->rx_cqe, .sg_list = &sge, .num_sge = 1 };
	int err = -ENOTCONN;

	mutex_lock(&conn->post_lock);
	if (!conn->closed)
		err = ib_post_recv(conn->id->qp, &wr, NULL);
	mutex_unlock(&conn->post_lock);
	return err;
}

static int post_tx(struct demo_conn *conn)
{
	struct ib_sge sge = {
		.addr = conn->tx_dma,
		.length = sizeof(*conn->tx),
		.lkey = conn->dev->pd->local_dma_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &conn->tx_cqe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
		.sg_list = &sge,
		.num_sge = 1,
	};
	int err = -ENOTCONN;

	mutex_lock(&conn->post_lock);
	if (!conn->closed)
		err = ib_post_send(conn->id->qp, &wr, NULL);
	mutex_unlock(&conn->post_lock);
	return err;
}

static void rx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct demo_conn *conn = container_of(wc->wr_cqe, struct demo_conn, rx_cqe);

	/* flushed, or the device tells here that it refused an access of the peer */
	if (wc->status != IB_WC_SUCCESS) {
		conn_hangup(conn);
		return;
	}
	conn->rx_len = wc->byte_len;
	queue_work(demo_wq, &conn->request_work);
}

static void tx_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct demo_conn *conn = container_of(wc->wr_cqe, struct demo_conn, tx_cqe);

	if (wc->status != IB_WC_SUCCESS)
		conn_hangup(conn);
	complete(&conn->tx_idle);
}

static void bind_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct demo_conn *conn = container_of(wc->wr_cqe, struct demo_conn, bind_cqe);

	conn->bind_status = wc->status;
	if (wc->status != IB_WC_SUCCESS)
		conn_hangup(conn);
	complete(&conn->bound);
}

/**
 * demo_conn_bind() - bind a window on a connection's queue pair and see it completed
 * @conn: connection, of which this is the request work
 * @mw: window
 * @info: the binding
 *
 * The key works as soon as ib_bind_mw() returns, and could be told at once. The completion is
 * waited for all the same: it says that the queue pair was still well, else the window is unbound.
 *
 * Return: as ib_bind_mw(); -ENOTCONN, -ECONNABORTED when the connection is at its end.
 */
int demo_conn_bind(struct demo_conn *conn, struct ib_mw *mw, const struct ib_mw_bind_info *info)
{
	struct ib_mw_bind bind = {
		.wr_cqe = &conn->bind_cqe,
		.send_flags = IB_SEND_SIGNALED,
		.bind_info = *info,
	};
	int err = -ENOTCONN;

	reinit_completion(&conn->bound);
	mutex_lock(&conn->post_lock);
	if (!conn->closed)
		err = ib_bind_mw(conn->id->qp, mw, &bind);
	mutex_unlock(&conn->post_lock);
	if (err)
		return err;
	wait_for_completion(&conn->bound);	/* ends for certain, as a reply does */
	return conn->bind_status == IB_WC_SUCCESS ? 0 : -ECONNABORTED;
}

static void request_work(struct work_struct *work)
{
	struct demo_conn *conn = container_of(work, struct demo_conn, request_work);
	struct ib_device *ib = conn->dev->ib;
	struct demo_request request = {};
	u32 length = conn->rx_len;

	/* the device never writes more than was posted, yet what it says is checked */
	ib_dma_sync_single_for_cpu(ib, conn->rx_dma, sizeof(*conn->rx), DMA_FROM_DEVICE);
	memcpy(&request, conn->rx, min_t(u32, length, sizeof(request)));
	ib_dma_sync_single_for_device(ib, conn->rx_dma, sizeof(*conn->rx), DMA_FROM_DEVICE);

	/* Before the reply goes out: the peer may answer it with the next request at once. */
	if (post_rx(conn))
		goto err;

	/* Ends for certain: what is posted completes, if only because the queue pair failed. */
	wait_for_completion(&conn->tx_idle);
	ib_dma_sync_single_for_cpu(ib, conn->tx_dma, sizeof(*conn->tx), DMA_TO_DEVICE);
	demo_execute(conn->dev, conn, &request, length, conn->tx);
	ib_dma_sync_single_for_device(ib, conn->tx_dma, sizeof(*conn->tx), DMA_TO_DEVICE);
	if (!post_tx(conn))
		return;
	complete(&conn->tx_idle);
err:
	conn_hangup(conn);
}

static void conn_free(struct demo_conn *conn)
{
	struct demo_dev *dev = conn->dev;

	ib_free_cq(conn->cq);
	ib_dma_unmap_single(dev->ib, conn->tx_dma, sizeof(*conn->tx), DMA_TO_DEVICE);
	ib_dma_unmap_single(dev->ib, conn->rx_dma, sizeof(*conn->rx), DMA_FROM_DEVICE);
	kfree(conn->tx);
	kfree(conn->rx);
	kfree(conn);
}

/* Afterwards no completions, requests or hang-ups of this connection are under way. */
static void conn_stop(struct demo_conn *conn)
{
	mutex_lock(&conn->post_lock);
	conn->closed = true;
	mutex_unlock(&conn->post_lock);
	if (!conn->id->qp)
		return;
	ib_drain_qp(conn->id->qp);
	cancel_work_sync(&conn->request_work);
	cancel_work_sync(&conn->hangup_work);
	rdma_destroy_qp(conn->id);
}

static void close_work(struct work_struct *work)
{
	struct demo_conn *conn = container_of(work, struct demo_conn, close_work);
	struct demo_dev *dev = conn->dev;

	rdma_disconnect(conn->id);	/* fails when it is not connected, which is fine */
	conn_stop(conn);
	rdma_destroy_id(conn->id);	/* waits for an event handler that is still adding us */

	mutex_lock(&demo_lock);
	list_del(&conn->entry);
	mutex_unlock(&demo_lock);
	conn_free(conn);
	put_dev(dev);
}

/* Everything but the queue pair, which belongs to the id. */
static struct demo_conn *conn_alloc(struct demo_dev *dev, struct rdma_cm_id *id)
{
	struct demo_conn *conn;

	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn)
		return ERR_PTR(-ENOMEM);
	conn->dev = dev;
	conn->id = id;
	conn->rx_cqe.done = rx_done;
	conn->tx_cqe.done = tx_done;
	conn->bind_cqe.done = bind_done;
	mutex_init(&conn->post_lock);
	init_completion(&conn->bound);
	init_completion(&conn->tx_idle);
	complete(&conn->tx_idle);
	INIT_WORK(&conn->request_work, request_work);
	INIT_WORK(&conn->hangup_work, hangup_work);
	INIT_WORK(&conn->close_work, close_work);

	conn->rx = kzalloc(sizeof(*conn->rx), GFP_KERNEL);
	conn->tx = kzalloc(sizeof(*conn->tx), GFP_KERNEL);
	if (!conn->rx || !conn->tx)
		goto err_free;
	conn->rx_dma = ib_dma_map_single(dev->ib, conn->rx, sizeof(*conn->rx), DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(dev->ib, conn->rx_dma))
		goto err_free;
	conn->tx_dma = ib_dma_map_single(dev->ib, conn->tx, sizeof(*conn->tx), DMA_TO_DEVICE);
	if (ib_dma_mapping_error(dev->ib, conn->tx_dma))
		goto err_rx;
	/* a receive, a send, a bind, and the drain's two */
	conn->cq = ib_alloc_cq(dev->ib, conn, 5, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(conn->cq))
		goto err_tx;
	return conn;

err_tx:
	ib_dma_unmap_single(dev->ib, conn->tx_dma, sizeof(*conn->tx), DMA_TO_DEVICE);
err_rx:
	ib_dma_unmap_single(dev->ib, conn->rx_dma, sizeof(*conn->rx), DMA_FROM_DEVICE);
err_free:
	kfree(conn->tx);
	kfree(conn->rx);
	kfree(conn);
	return ERR_PTR(-ENOMEM);
}

static int conn_accept(struct demo_conn *conn, struct rdma_conn_param *asked)
{
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.send_cq = conn->cq,
		.recv_cq = conn->cq,
		/* one of ours and one of the drain; and a bind */
		.cap = { .max_send_wr = 3, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct demo_hello hello = {
		.magic = cpu_to_be32(DEMO_MAGIC),
		.version = cpu_to_be32(DEMO_VERSION),
	};
	struct rdma_conn_param param = {
		.private_data = &hello,
		.private_data_len = sizeof(hello),
		/* how many READs and atomics the peer may have under way; 0 would refuse them */
		.responder_resources = min_t(int, asked->responder_resources,
					     conn->dev->ib->attrs.max_qp_rd_atom),
		.rnr_retry_count = 7,
	};
	int err;

	err = rdma_create_qp(conn->id, conn->dev->pd, &attr);
	if (err)
		return err;
	err = post_rx(conn);
	if (!err)
		err = rdma_accept(conn->id, &param);
	return err;
}

static bool hello_ok(const struct rdma_conn_param *param)
{
	const struct demo_hello *hello = param->private_data;

	return hello && param->private_data_len >= sizeof(*hello) &&
	       hello->magic == cpu_to_be32(DEMO_MAGIC) &&
	       hello->version == cpu_to_be32(DEMO_VERSION);
}

static void reject(struct rdma_cm_id *id)
{
	rdma_reject(id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
}

/* A new id, whose handler mutex we hold. An error makes rdma_cm destroy it. */
static int conn_request(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct demo_conn *conn;
	struct demo_dev *dev;
	int err;

	if (!hello_ok(&event->param.conn)) {
		reject(id);
		return -EPROTO;
	}
	dev = get_dev(id->device);
	if (!dev) {
		reject(id);
		return -ENODEV;
	}
	conn = conn_alloc(dev, id);
	if (IS_ERR(conn)) {
		err = PTR_ERR(conn);
		reject(id);
		goto err;
	}
	id->context = conn;
	err = conn_accept(conn, &event->param.conn);
	/* who sets the bit first cleans up: we, or the close work after a flushed receive */
	if (err && !test_and_set_bit(CONN_CLOSING, &conn->flags)) {
		pr_warn("%s: cannot accept a connection: %d\n", dev_name(&dev->ib->dev), err);
		conn_stop(conn);
		id->context = NULL;
		conn_free(conn);
		reject(id);
		goto err;
	}

	mutex_lock(&demo_lock);
	list_add(&conn->entry, &dev->conns);
	if (dev->removing)
		conn_close(conn);
	mutex_unlock(&demo_lock);
	return 0;
err:
	put_dev(dev);
	return err;
}

/**
 * demo_cm_event() - what rdma_cm tells about the listener and about connections
 * @id: the listener (no context), a new id, or a connection's (its context)
 * @event: what happened
 */
int demo_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct demo_conn *conn = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return conn_request(id, event);
	case RDMA_CM_EVENT_ESTABLISHED:
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		/* rdma_cm waits until the id is gone; the close work destroys it */
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DISCONNECTED:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
	case RDMA_CM_EVENT_UNREACHABLE:
		if (conn)
			conn_close(conn);
		break;
	default:
		pr_debug("event %s\n", rdma_event_msg(event->event));
	}
	return 0;
}

/**
 * demo_conns_close() - end all connections of a device and let no new one in
 * @dev: the device, already out of reach for get_dev()
 */
void demo_conns_close(struct demo_dev *dev)
{
	struct demo_conn *conn;

	mutex_lock(&demo_lock);
	dev->removing = true;
	list_for_each_entry(conn, &dev->conns, entry)
		conn_close(conn);
	mutex_unlock(&demo_lock);

	wait_event(dev->idle, !READ_ONCE(dev->nconns));
	/* the last one wakes us with the lock held, and must not find the device freed */
	mutex_lock(&demo_lock);
	mutex_unlock(&demo_lock);
}
