// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The smallest ULP: a buffer that peers may read while the module is loaded. README.md shows it. */
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_mr.h>

static struct ib_client hello_client;

static int hello_add(struct ib_device *device)
{
	struct ib_pd *pd = ib_alloc_pd(device, 0);
	void *buf = kzalloc(PAGE_SIZE, GFP_KERNEL);
	struct ib_mr *mr = ERR_PTR(-ENOMEM);

	if (!IS_ERR(pd) && buf)
		mr = ib_mr_reg_kernel(pd, buf, PAGE_SIZE, IB_ACCESS_REMOTE_READ, NULL);
	if (IS_ERR(mr)) {
		kfree(buf);
		if (!IS_ERR(pd))
			ib_dealloc_pd(pd);
		return PTR_ERR(mr);
	}
	pr_info("hello: READ %llu bytes at %#llx with rkey %#x\n", mr->length, mr->iova, mr->rkey);
	ib_set_client_data(device, &hello_client, mr);
	return 0;
}

static void hello_remove(struct ib_device *device, void *data)
{
	struct ib_mr *mr = data;
	struct ib_pd *pd = mr->pd;
	void *buf = (void *)(uintptr_t)mr->iova;

	ib_dereg_mr(mr);	/* no packet touches the buffer after this */
	kfree(buf);
	ib_dealloc_pd(pd);
}

static struct ib_client hello_client = {
	.name = "hello", .add = hello_add, .remove = hello_remove,
};

static int __init hello_init(void)
{
	return ib_register_client(&hello_client);
}

static void __exit hello_exit(void)
{
	ib_unregister_client(&hello_client);
}

module_init(hello_init);
module_exit(hello_exit);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("The smallest user of ib_mr");
