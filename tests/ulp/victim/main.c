// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ULP that is attacked: it serves memory of every kind on one device, to whoever connects, and
 * does what /dev/ib_mr_victim asks of its owner (victim_proto.h). A process can hand it memory of
 * its own, which is the file's until it is closed, as it is when the process dies.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "victim.h"

static char *device = "rxe0";
module_param(device, charp, 0444);
MODULE_PARM_DESC(device, "RDMA device to serve");

struct victim victim;

union argument {
	struct victim_connect connect;
	struct victim_info info;
	struct victim_op op;
	struct victim_churn churn;
	struct victim_audit audit;
	struct victim_user user;
	struct victim_stats stats;
};

/* What a file holds: the memory of the process that asked. */
struct owner {
	struct mutex lock;	/* @mr */
	struct ib_mr *mr;
};

static int victim_open(struct inode *inode, struct file *file)
{
	struct owner *owner = kzalloc(sizeof(*owner), GFP_KERNEL);

	if (!owner)
		return -ENOMEM;
	mutex_init(&owner->lock);
	file->private_data = owner;
	return 0;
}

static int victim_release(struct inode *inode, struct file *file)
{
	struct owner *owner = file->private_data;

	if (owner->mr && ib_dereg_mr(owner->mr))
		pr_err("a process's memory cannot be deregistered\n");
	kfree(owner);
	return 0;
}

static int user_reg(struct owner *owner, struct victim_user *user)
{
	const int access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE;
	struct ib_mr *mr;
	int err = 0;

	mutex_lock(&owner->lock);
	if (owner->mr)
		err = -EBUSY;
	if (!err) {
		mr = ib_mr_reg_user(victim.pd, user->address, user->length, access, NULL);
		err = PTR_ERR_OR_ZERO(mr);
	}
	if (!err) {
		owner->mr = mr;
		user->iova = mr->iova;
		user->key = mr->rkey;
	}
	mutex_unlock(&owner->lock);
	return err;
}

static long victim_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	union argument a = {};
	int err = -ENOTTY;

	if (cmd == VICTIM_DISCONNECT)
		return victim_disconnect(arg);
	if (_IOC_TYPE(cmd) != 'V' || _IOC_SIZE(cmd) > sizeof(a))
		return err;
	if (_IOC_DIR(cmd) & _IOC_WRITE && copy_from_user(&a, (void __user *)arg, _IOC_SIZE(cmd)))
		return -EFAULT;
	switch (cmd) {
	case VICTIM_CONNECT:
		err = victim_connect(&a.connect);
		break;
	case VICTIM_INFO:
		err = victim_info(&a.info);
		break;
	case VICTIM_OP:
		err = victim_do(&a.op);
		break;
	case VICTIM_CHURN:
		err = victim_churn(&a.churn);
		break;
	case VICTIM_AUDIT:
		err = victim_audit(&a.audit);
		break;
	case VICTIM_USER:
		err = user_reg(file->private_data, &a.user);
		break;
	case VICTIM_STATS:
		victim_stats(&a.stats);
		err = 0;
		break;
	}
	if (!err && copy_to_user((void __user *)arg, &a, _IOC_SIZE(cmd)))
		err = -EFAULT;
	return err;
}

static const struct file_operations fops = {
	.owner		= THIS_MODULE,
	.open		= victim_open,
	.release	= victim_release,
	.unlocked_ioctl	= victim_ioctl,
};

static struct miscdevice misc = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= VICTIM_DEVICE,
	.fops	= &fops,
	.mode	= 0600,
};

static int victim_add(struct ib_device *dev)
{
	if (!victim.dev && !strcmp(dev_name(&dev->dev), device))
		victim.dev = dev;
	return 0;
}

static struct ib_client client = { .name = KBUILD_MODNAME, .add = victim_add };

static void unmake(void)
{
	victim_assets_free();
	victim_conns_free();
	if (!IS_ERR_OR_NULL(victim.other_pd) && ib_dealloc_pd(victim.other_pd))
		pr_err("the other PD is still in use\n");
	if (!IS_ERR_OR_NULL(victim.pd) && ib_dealloc_pd(victim.pd))
		pr_err("the PD is still in use\n");
	if (!ib_mr_check_invariants(victim.dev))
		pr_err("ib_mr's counters do not agree\n");
}

static int make(void)
{
	int err;

	victim.pd = ib_alloc_pd(victim.dev, 0);
	if (IS_ERR(victim.pd))
		return PTR_ERR(victim.pd);
	victim.other_pd = ib_alloc_pd(victim.dev, 0);
	if (IS_ERR(victim.other_pd))
		return PTR_ERR(victim.other_pd);
	err = victim_conns_make();
	return err ? err : victim_assets_make();
}

static int __init victim_init(void)
{
	int err;

	err = ib_register_client(&client);
	if (err)
		return err;
	err = victim.dev ? make() : -ENODEV;
	if (!err)
		err = misc_register(&misc);
	if (err) {
		pr_err("%s: %d\n", device, err);
		if (victim.dev)
			unmake();
		ib_unregister_client(&client);
	}
	return err;
}

static void __exit victim_exit(void)
{
	misc_deregister(&misc);
	unmake();
	ib_unregister_client(&client);
}

module_init(victim_init);
module_exit(victim_exit);

MODULE_DESCRIPTION("ULP that is there to be attacked");
MODULE_LICENSE("Dual BSD/GPL");
