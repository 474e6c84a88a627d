// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * An I/O whose completion comes in softirq, as a storage driver has it: the recipe of
 * docs/porting.md, and run on each device.
 *
 * A completion handler may not sleep, and a fence does. So the handler only kills the key and puts
 * the request on a list; one work item takes the whole list, fences once for all that is on it, and
 * then gives the DMA mappings and the pages back. The busier the device, the more requests share a
 * fence. Here a tasklet stands for the completion queue.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/llist.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/ib_dma.h>
#include <rdma/ib_fmr_pool.h>
#include <rdma/ib_mr.h>

#define REQUESTS	8
#define PAGES		4

struct queue {
	struct ib_device *device;
	struct ib_fmr_pool *pool;
	struct workqueue_struct *wq;
	struct llist_head done;
	struct work_struct finish;
	struct tasklet_struct cq;
	struct request *issued;
	atomic_t open;
	struct completion all_done;
};

struct request {
	struct llist_node node;
	struct ib_pool_fmr *fmr;
	struct scatterlist sg[PAGES];
};

/* In softirq. The key is dead when this returns; the pages are not given back yet. */
static void request_done(struct queue *q, struct request *req)
{
	ib_fmr_pool_unmap(req->fmr);
	if (llist_add(&req->node, &q->done))	/* the list was empty: nobody was told yet */
		queue_work(q->wq, &q->finish);
}

/* In process context: one fence for all requests that came together. */
static void finish_requests(struct work_struct *work)
{
	struct queue *q = container_of(work, struct queue, finish);
	struct llist_node *all = llist_del_all(&q->done);
	struct request *req, *next;

	ib_flush_fmr_pool(q->pool);
	llist_for_each_entry_safe(req, next, all, node) {
		ib_dma_unmap_sg(q->device, req->sg, PAGES, DMA_FROM_DEVICE);
		/* here the block layer, or whoever waits, is told that the request is done */
		if (atomic_dec_and_test(&q->open))
			complete(&q->all_done);
	}
}

static void completions(struct tasklet_struct *t)
{
	struct queue *q = from_tasklet(q, t, cq);
	int i;

	for (i = 0; i < REQUESTS; i++)
		request_done(q, &q->issued[i]);
}

/*
 * What queue_rq() does. -EAGAIN goes back to the block layer as BLK_STS_RESOURCE, which asks again
 * after a while; nothing is mapped then.
 */
static int request_issue(struct queue *q, struct request *req)
{
	int n = ib_dma_map_sg(q->device, req->sg, PAGES, DMA_FROM_DEVICE);

	if (!n)
		return -EAGAIN;
	/* n entries, which may be fewer than PAGES; the unmap takes PAGES all the same */
	req->fmr = ib_fmr_pool_map_sg(q->pool, req->sg, n, 0, PAGES * PAGE_SIZE, 0);
	if (IS_ERR(req->fmr)) {
		ib_dma_unmap_sg(q->device, req->sg, PAGES, DMA_FROM_DEVICE);
		return PTR_ERR(req->fmr);
	}
	/* here req->fmr->fmr->rkey is sent to the peer, which writes from address 0 on */
	return 0;
}

static int run(struct queue *q)
{
	int i, err = 0;

	init_llist_head(&q->done);
	init_completion(&q->all_done);
	INIT_WORK(&q->finish, finish_requests);
	tasklet_setup(&q->cq, completions);
	atomic_set(&q->open, REQUESTS);
	for (i = 0; i < REQUESTS; i++) {
		err = request_issue(q, &q->issued[i]);
		if (err)
			break;
	}
	if (!err) {
		tasklet_schedule(&q->cq);
		wait_for_completion(&q->all_done);
	} else {
		while (i--)
			request_done(q, &q->issued[i]);
	}
	/* No completion comes any more; what is on the list is finished before anything goes. */
	tasklet_kill(&q->cq);
	flush_work(&q->finish);
	return err;
}

static void put_pages(struct queue *q)
{
	struct page *page;
	int i, j;

	for (i = 0; i < REQUESTS; i++) {
		for (j = 0; j < PAGES; j++) {
			page = sg_page(&q->issued[i].sg[j]);
			if (page)
				__free_page(page);
		}
	}
}

static int get_pages(struct queue *q)
{
	struct page *page;
	int i, j;

	for (i = 0; i < REQUESTS; i++)
		sg_init_table(q->issued[i].sg, PAGES);
	for (i = 0; i < REQUESTS; i++) {
		for (j = 0; j < PAGES; j++) {
			page = alloc_page(GFP_KERNEL);
			if (!page)
				return -ENOMEM;
			sg_set_page(&q->issued[i].sg[j], page, PAGE_SIZE, 0);
		}
	}
	return 0;
}

static int sample_add(struct ib_device *device)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = PAGES,
		.page_shift = PAGE_SHIFT,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
		.pool_size = REQUESTS,
		.dirty_watermark = REQUESTS / 2,
	};
	struct queue *q = kzalloc(sizeof(*q), GFP_KERNEL);
	struct ib_pd *pd = ib_alloc_pd(device, 0);
	int err = -ENOMEM;

	if (!q || IS_ERR(pd))
		goto out;
	q->device = device;
	/* a write-out of memory may wait for this work */
	q->wq = alloc_workqueue("softirq_finish", WQ_MEM_RECLAIM, 0);
	q->issued = kcalloc(REQUESTS, sizeof(*q->issued), GFP_KERNEL);
	if (!q->wq || !q->issued)
		goto out_queue;
	err = get_pages(q);
	if (err)
		goto out_pages;
	q->pool = ib_create_fmr_pool(pd, &param);
	err = PTR_ERR_OR_ZERO(q->pool);
	if (!err) {
		err = run(q);
		ib_destroy_fmr_pool(q->pool);
	}
out_pages:
	put_pages(q);
out_queue:
	kfree(q->issued);
	if (q->wq)
		destroy_workqueue(q->wq);
out:
	if (!IS_ERR(pd))
		ib_dealloc_pd(pd);
	kfree(q);
	if (err)
		pr_err("%s: %d\n", dev_name(&device->dev), err);
	else
		pr_info("%s: %d requests, completed in softirq\n", dev_name(&device->dev),
			REQUESTS);
	return err;
}

static void sample_remove(struct ib_device *device, void *data)
{
}

static struct ib_client sample_client = {
	.name = KBUILD_MODNAME, .add = sample_add, .remove = sample_remove,
};

static int __init sample_init(void)
{
	return ib_register_client(&sample_client);
}

static void __exit sample_exit(void)
{
	ib_unregister_client(&sample_client);
}

module_init(sample_init);
module_exit(sample_exit);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("A ULP of ib_mr whose completions come in softirq");
