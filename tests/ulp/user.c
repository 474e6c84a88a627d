// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A process's own memory for peers: what a storage or message driver does that is handed a buffer
 * by ioctl.
 *
 * The buffer belongs to the open file. It is deregistered when the file is closed, which the kernel
 * does also for a process that is killed, after the process's memory went: the pages are pinned
 * until then, so a peer that is writing writes into memory that is nobody else's. A device that is
 * removed takes its buffers along; the files stay, with nothing behind them.
 */
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include "demo.h"
#include "demo_user.h"

struct user_file {
	struct list_head entry;		/* in user_files */
	struct demo_dev *dev;		/* where it is registered; NULL: nowhere */
	struct ib_mr *mr;
};

/* the files, and what is registered for each; taken before demo_lock */
static DEFINE_MUTEX(user_lock);
static LIST_HEAD(user_files);

static int user_open(struct inode *inode, struct file *file)
{
	struct user_file *user = kzalloc(sizeof(*user), GFP_KERNEL);

	if (!user)
		return -ENOMEM;
	mutex_lock(&user_lock);
	list_add(&user->entry, &user_files);
	mutex_unlock(&user_lock);
	file->private_data = user;
	return nonseekable_open(inode, file);
}

static void user_dereg(struct user_file *user)
{
	if (user->mr && ib_dereg_mr(user->mr))
		pr_err("ib_mr_demo: a process's buffer cannot be deregistered\n");
	user->mr = NULL;
	user->dev = NULL;
}

static int user_release(struct inode *inode, struct file *file)
{
	struct user_file *user = file->private_data;

	mutex_lock(&user_lock);
	list_del(&user->entry);
	user_dereg(user);
	mutex_unlock(&user_lock);
	kfree(user);
	return 0;
}

/* A device that stays for as long as user_lock is held: its removal comes by demo_user_remove(). */
static struct demo_dev *some_device(void)
{
	struct demo_dev *dev, *found = NULL;

	mutex_lock(&demo_lock);
	list_for_each_entry(dev, &demo_devs, entry)
		if (!dev->removing)
			found = dev;
	mutex_unlock(&demo_lock);
	return found;
}

static long user_register(struct user_file *user, struct demo_user_buffer *buffer)
{
	const int access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE;
	struct demo_dev *dev = some_device();
	struct ib_mr *mr;

	if (user->mr)
		return -EBUSY;
	if (!dev)
		return -ENODEV;
	if (buffer->reserved)
		return -EINVAL;
	mr = ib_mr_reg_user(dev->pd, buffer->address, buffer->length, access, NULL);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	user->mr = mr;
	user->dev = dev;
	buffer->iova = mr->iova;
	buffer->rkey = mr->rkey;
	return 0;
}

static long user_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct user_file *user = file->private_data;
	void __user *to = (void __user *)arg;
	struct demo_user_buffer buffer;
	long ret;

	switch (cmd) {
	case DEMO_USER_REGISTER:
		if (copy_from_user(&buffer, to, sizeof(buffer)))
			return -EFAULT;
		mutex_lock(&user_lock);
		ret = user_register(user, &buffer);
		if (!ret && copy_to_user(to, &buffer, sizeof(buffer))) {
			user_dereg(user);
			ret = -EFAULT;
		}
		mutex_unlock(&user_lock);
		return ret;
	case DEMO_USER_STALE:
		mutex_lock(&user_lock);
		ret = user->mr ? ib_mr_is_stale(user->mr) : -ENOENT;
		mutex_unlock(&user_lock);
		return ret;
	default:
		return -ENOTTY;
	}
}

static const struct file_operations user_fops = {
	.owner		= THIS_MODULE,
	.open		= user_open,
	.release	= user_release,
	.unlocked_ioctl	= user_ioctl,
};

static struct miscdevice user_device = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= DEMO_USER_DEVICE,
	.fops	= &user_fops,
	.mode	= 0600,
};

/* The device is marked as going, so nobody registers with it after this. */
void demo_user_remove(struct demo_dev *dev)
{
	struct user_file *user;

	mutex_lock(&user_lock);
	list_for_each_entry(user, &user_files, entry)
		if (user->dev == dev)
			user_dereg(user);
	mutex_unlock(&user_lock);
}

int demo_user_init(void)
{
	return misc_register(&user_device);
}

/* No file is open: each would hold the module. */
void demo_user_exit(void)
{
	misc_deregister(&user_device);
}
