// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The module: parameters to drive it by, the ib_client, and the end of a set.
 *
 * There is one set at a time, under one lock. As an ib_client its end is in the client's remove.
 * As a user of rdma_cm, the event of the removal only queues the close work: rdma_cm waits until
 * the ids are gone.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "removal.h"

bool removal_cm, removal_late;
module_param_named(cm, removal_cm, bool, 0444);
MODULE_PARM_DESC(cm, "a user of rdma_cm instead of an ib_client");
module_param_named(late, removal_late, bool, 0444);
MODULE_PARM_DESC(late, "is told of a device's end after ib_mr");

char *removal_addr;
module_param_named(addr, removal_addr, charp, 0644);
MODULE_PARM_DESC(addr, "IPv4 address of the device, with cm");

atomic_t removal_wrong, removal_calls, removal_gone, removal_reads, removal_sets;
module_param_named(wrong, removal_wrong.counter, int, 0444);
MODULE_PARM_DESC(wrong, "what was not as it must be");
module_param_named(calls, removal_calls.counter, int, 0444);
MODULE_PARM_DESC(calls, "calls made by the threads");
module_param_named(gone, removal_gone.counter, int, 0444);
MODULE_PARM_DESC(gone, "of these, answered by -ENODEV");
module_param_named(reads, removal_reads.counter, int, 0444);
MODULE_PARM_DESC(reads, "RDMA READs that came back right");
module_param_named(sets, removal_sets.counter, int, 0444);
MODULE_PARM_DESC(sets, "sets that are there: 0 or 1");

static DEFINE_MUTEX(lock);
struct set *removal_set;
static struct ib_device *device;
static struct workqueue_struct *close_wq;

void wrong(const char *what, long err)
{
	if (atomic_inc_return(&removal_wrong) <= 100)
		pr_err("wrong: %s: %ld\n", what, err);
}

/* Everything of a set, however far it got. @lock is held. */
static void set_end(struct set *s)
{
	pair_break(&s->pair);
	threads_stop(s);
	if (removal_cm)
		cm_disconnect(s);
	else
		pair_destroy(&s->pair);
	if (s->dev)
		objects_release(s);
	free_pages_exact(s->mem, SIZE);
	kfree(s);
	WRITE_ONCE(removal_set, NULL);
	atomic_dec(&removal_sets);
}

static void close_work(struct work_struct *work)
{
	struct set *s = container_of(work, struct set, close);

	mutex_lock(&lock);
	set_end(s);
	mutex_unlock(&lock);
}

/* From an event handler of rdma_cm's: the device goes. */
void removal_close(struct set *s)
{
	s->gone = true;
	if (xchg(&s->removing, true))
		return;
	complete(&s->event);
	queue_work(close_wq, &s->close);
}

/* Of the shell that drives us, for as long as it is the same one. */
static struct mm_struct *user_mm;
static unsigned long user_at;

static int user_memory(struct set *s)
{
	if (current->mm != user_mm) {
		unsigned long at = vm_mmap(NULL, 0, SIZE, PROT_READ | PROT_WRITE,
					   MAP_ANONYMOUS | MAP_PRIVATE, 0);

		if (IS_ERR_VALUE(at))
			return (long)at;
		if (copy_to_user((void __user *)at, s->mem, SIZE))
			return -EFAULT;
		mmgrab(current->mm);
		if (user_mm)
			mmdrop(user_mm);
		user_mm = current->mm;
		user_at = at;
	}
	s->mm = user_mm;
	s->at = user_at;
	return 0;
}

static int set_make(struct set *s)
{
	unsigned int i;
	int err;

	s->mem = alloc_pages_exact(SIZE, GFP_KERNEL);
	if (!s->mem)
		return -ENOMEM;
	for (i = 0; i < PAGES; i++) {
		memset(s->mem + i * PAGE_SIZE, i + 1, PAGE_SIZE);
		s->list[i] = (uintptr_t)s->mem + i * PAGE_SIZE;
	}
	err = user_memory(s);
	if (err)
		return err;
	if (removal_cm) {
		err = cm_connect(s);
		if (err)
			return err;
	} else {
		if (!device)
			return -ENODEV;
		s->dev = device;
		s->pd = ib_alloc_pd(device, 0);
		if (IS_ERR(s->pd))
			return PTR_ERR(s->pd);
		err = pair_prepare(&s->pair, device);
		if (!err)
			err = pair_connect(&s->pair, s->pd);
		if (err)
			return err;
	}
	err = objects_make(s);
	return err ?: threads_start(s);
}

/*
 * The NIC goes before its device does. Meanwhile a device that nobody has used yet cannot be tried
 * for live mapping, so the first FMR and the first window are refused.
 */
static bool port_is_down(struct set *s)
{
	struct ib_port_attr attr;

	return s->dev && (ib_query_port(s->dev, rdma_start_port(s->dev), &attr) ||
			  attr.state != IB_PORT_ACTIVE);
}

static int go_set(const char *text, const struct kernel_param *kp)
{
	struct set *s;
	u32 seed;
	int err = kstrtou32(text, 0, &seed);

	if (err)
		return err;
	mutex_lock(&lock);
	err = -EBUSY;
	if (removal_set)
		goto out;
	err = -ENOMEM;
	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		goto out;
	s->seed = seed;
	init_completion(&s->event);
	INIT_WORK(&s->close, close_work);
	removal_set = s;
	atomic_inc(&removal_sets);
	err = set_make(s);
	if (err && err != -ENODEV && !READ_ONCE(s->removing) && !(err == -EIO && port_is_down(s)))
		wrong("a set cannot be made", err);
	/* The close work, where it is queued, ends it. */
	if (err && !xchg(&s->removing, true)) {
		s->gone = err == -ENODEV;
		set_end(s);
	}
out:
	mutex_unlock(&lock);
	return err;
}

static const struct kernel_param_ops go_ops = { .set = go_set };
module_param_cb(go, &go_ops, NULL, 0200);
MODULE_PARM_DESC(go, "makes a set; the number is its seed");

/* By a pair of its own, which knows today's addresses. */
static int check_set(const char *text, const struct kernel_param *kp)
{
	struct pair p = {};
	int err = -ENODEV;

	mutex_lock(&lock);
	if (removal_set && !READ_ONCE(removal_set->removing)) {
		err = pair_prepare(&p, removal_set->dev);
		if (!err)
			err = pair_connect(&p, removal_set->pd);
		if (!err)
			err = objects_check(removal_set, &p);
		pair_destroy(&p);
	}
	mutex_unlock(&lock);
	return err;
}

static const struct kernel_param_ops check_ops = { .set = check_set };
module_param_cb(check, &check_ops, NULL, 0200);
MODULE_PARM_DESC(check, "proves by RDMA that what a set has registered works");

static int client_add(struct ib_device *dev)
{
	if (dev->ops.driver_id == RDMA_DRIVER_RXE && !device)
		device = dev;
	return 0;
}

static void client_remove(struct ib_device *dev, void *data)
{
	if (dev != device)
		return;
	mutex_lock(&lock);
	device = NULL;
	if (removal_set)
		set_end(removal_set);
	mutex_unlock(&lock);
}

static struct ib_client client = {
	.name = KBUILD_MODNAME, .add = client_add, .remove = client_remove,
};

static int __init removal_init(void)
{
	int err;

	if (!removal_cm)
		return ib_register_client(&client);
	close_wq = alloc_workqueue(KBUILD_MODNAME, WQ_UNBOUND, 0);
	if (!close_wq)
		return -ENOMEM;
	err = cm_listen();
	if (err)
		destroy_workqueue(close_wq);
	return err;
}

static void __exit removal_exit(void)
{
	if (removal_cm) {
		mutex_lock(&lock);
		if (removal_set && !xchg(&removal_set->removing, true))
			set_end(removal_set);
		mutex_unlock(&lock);
		/* A close work that was queued before. */
		flush_workqueue(close_wq);
		cm_unlisten();
		destroy_workqueue(close_wq);
	} else {
		ib_unregister_client(&client);
	}
	if (user_mm)
		mmdrop(user_mm);
}

module_init(removal_init);
module_exit(removal_exit);

MODULE_DESCRIPTION("Removal test of ib_mr: a ULP whose device goes at any moment");
MODULE_LICENSE("Dual BSD/GPL");
