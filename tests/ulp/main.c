// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A sample ULP for ib_mr, and the kernel side of the demo.
 *
 *	insmod ib_mr_demo.ko file=/path/to/a/file
 *
 * takes the file's pages, registers them (and some memory of its own) on every RDMA device that
 * there is or that comes later, and listens for peers: demo_proto.h says what they may ask.
 *
 * It is a client of ib_core as well as a user of rdma_cm. ib_core removes clients in the reverse
 * order of their registration, so this module, which needs rdma_cm and ib_mr and is loaded after
 * them, is told of a device's end before they are: first connections, then what was granted by
 * window or FMR, the regions, and the protection domain, while all of them still work.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/in.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include "demo.h"

static char *file;
module_param(file, charp, 0444);
MODULE_PARM_DESC(file, "path of the file whose page cache is offered to peers");

static ushort port = DEMO_PORT;
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "rdma_cm port to listen on");

/* the list of devices, and each one's list and number of connections */
DEFINE_MUTEX(demo_lock);
LIST_HEAD(demo_devs);
struct demo_file demo_file;
struct workqueue_struct *demo_wq;

static struct rdma_cm_id *listener;
static struct ib_client demo_client;

static int demo_add(struct ib_device *ib)
{
	struct demo_dev *dev;
	int err;

	dev = kzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->ib = ib;
	mutex_init(&dev->lock);
	INIT_LIST_HEAD(&dev->conns);
	init_waitqueue_head(&dev->idle);

	dev->pd = ib_alloc_pd(ib, 0);
	if (IS_ERR(dev->pd)) {
		err = PTR_ERR(dev->pd);
		goto err_free;
	}
	err = demo_regions_get(dev);
	if (err)
		goto err_pd;
	err = demo_window_get(dev);
	if (err)
		goto err_regions;
	err = demo_fmr_get(dev);
	if (err)
		goto err_window;
	ib_set_client_data(ib, &demo_client, dev);

	mutex_lock(&demo_lock);
	list_add(&dev->entry, &demo_devs);
	mutex_unlock(&demo_lock);
	pr_info("%s: offers %s, %llu bytes in %u pages\n", dev_name(&ib->dev), file,
		demo_file.size, demo_file.npages);
	return 0;

err_window:
	demo_window_put(dev);
err_regions:
	demo_regions_put(dev);
err_pd:
	ib_dealloc_pd(dev->pd);
err_free:
	kfree(dev);
	pr_err("%s: not used: %d\n", dev_name(&ib->dev), err);
	return err;
}

static void demo_remove(struct ib_device *ib, void *client_data)
{
	struct demo_dev *dev = client_data;

	demo_conns_close(dev);
	mutex_lock(&demo_lock);
	list_del(&dev->entry);
	mutex_unlock(&demo_lock);
	demo_user_remove(dev);
	demo_fmr_put(dev);
	demo_window_put(dev);
	demo_regions_put(dev);
	ib_dealloc_pd(dev->pd);
	kfree(dev);
}

static struct ib_client demo_client = {
	.name = KBUILD_MODNAME,
	.add = demo_add,
	.remove = demo_remove,
};

static int listen(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	int err;

	/* bound to no address, so to no device: it lives as long as the module */
	listener = rdma_create_id(&init_net, demo_cm_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	err = rdma_bind_addr(listener, (struct sockaddr *)&any);
	if (!err)
		err = rdma_listen(listener, 8);
	if (err)
		rdma_destroy_id(listener);
	return err;
}

static int __init demo_init(void)
{
	int err;

	if (!file) {
		pr_err("which file? Load it with file=/path/to/a/file\n");
		return -EINVAL;
	}
	err = demo_hash_init();
	if (err) {
		pr_err("the kernel has no sha256: %d\n", err);
		return err;
	}
	err = demo_file_load(&demo_file, file);
	if (err)
		goto err_hash;
	demo_wq = alloc_workqueue(KBUILD_MODNAME, WQ_UNBOUND, 0);
	if (!demo_wq) {
		err = -ENOMEM;
		goto err_file;
	}
	err = ib_register_client(&demo_client);
	if (err)
		goto err_wq;
	err = listen();
	if (err) {
		pr_err("cannot listen on port %u: %d\n", port, err);
		goto err_client;
	}
	err = demo_user_init();
	if (err)
		goto err_listener;
	return 0;

err_listener:
	rdma_destroy_id(listener);
err_client:
	ib_unregister_client(&demo_client);
err_wq:
	destroy_workqueue(demo_wq);
err_file:
	demo_file_free(&demo_file);
err_hash:
	demo_hash_exit();
	return err;
}

static void __exit demo_exit(void)
{
	demo_user_exit();
	rdma_destroy_id(listener);
	ib_unregister_client(&demo_client);
	destroy_workqueue(demo_wq);
	demo_file_free(&demo_file);
	demo_hash_exit();
}

module_init(demo_init);
module_exit(demo_exit);

MODULE_DESCRIPTION("Sample ULP for ib_mr: offers a file's pages to RDMA peers");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_SOFTDEP("pre: sha256");
