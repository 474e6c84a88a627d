// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA checker: devices and their modes.
 *
 * Modes change at run time. A mapping remembers how it was made, and its unmap goes by that; the
 * static key stays on, and unmaps keep coming here, until a device that is no longer checked has
 * no such mapping left. The other way round, mappings that are older than the checker are known
 * only by number (unseen.c): as long as that is above zero, an unmap of an unknown address may be
 * of one of them, and is not reported.
 *
 * A device's state outlives the device: what is still mapped some seconds after the removal is a
 * leak, and is reported; an unmap that comes late finds its mapping all the same.
 *
 * Locks: the device mutex (modes, coming and going), then nothing. Mappings have their own, see
 * check.c. Lookup of a device is under RCU.
 */

#define pr_fmt(fmt) "ib_mr: " fmt

#include <linux/debugfs.h>
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/core.h"
#include "base/fault.h"
#include "dma/check.h"

static char *dma_check = "off";
module_param(dma_check, charp, 0444);
MODULE_PARM_DESC(dma_check, "DMA checker of new devices: off, track, bounce or bounce,strict (off)");

unsigned int ibmr_dma_leak_seconds = 5;
IBMR_EXPORT_INTERNAL(ibmr_dma_leak_seconds);
module_param_named(dma_leak_seconds, ibmr_dma_leak_seconds, uint, 0644);
MODULE_PARM_DESC(dma_leak_seconds, "what is mapped that long after a device's removal is a leak (5)");

/* How often a device that is no longer checked is looked at for mappings from before. */
#define IBMR_DMA_DRAIN	HZ

static DEFINE_HASHTABLE(ibmr_dma_table, 4);
static LIST_HEAD(ibmr_dma_all);
static DEFINE_MUTEX(ibmr_dma_mutex);

static const char *const ibmr_dma_mode_name[] = {
	[IB_MR_DMA_OFF]    = "off",
	[IB_MR_DMA_TRACK]  = "track",
	[IB_MR_DMA_BOUNCE] = "bounce",
	[IB_MR_DMA_BOUNCE_STRICT] = "bounce,strict",
};

/* Under RCU, or the device mutex. */
static struct ibmr_dma_dev *ibmr_dma_find(struct ib_device *device)
{
	struct ibmr_dma_dev *dd;

	hash_for_each_possible_rcu(ibmr_dma_table, dd, node, (unsigned long)device,
				   lockdep_is_held(&ibmr_dma_mutex))
		if (dd->ibdev == device)
			return dd;
	return NULL;
}

/* The device's state when new mappings of it are to be checked. */
struct ibmr_dma_dev *ibmr_dma_checked(struct ib_device *device)
{
	struct ibmr_dma_dev *dd = ibmr_dma_find(device);

	return dd && READ_ONCE(dd->mode) != IB_MR_DMA_OFF ? dd : NULL;
}

/* The device's state when there may be a mapping of it to look for. */
struct ibmr_dma_dev *ibmr_dma_known(struct ib_device *device)
{
	struct ibmr_dma_dev *dd = ibmr_dma_find(device);

	if (dd && (READ_ONCE(dd->mode) != IB_MR_DMA_OFF || atomic64_read(&dd->live)))
		return dd;
	return NULL;
}

/**
 * ib_mr_soft_device() - the virtual-DMA device that the kernel's own DMA calls mean
 * @dev: a soft device's own struct device, or NULL, as its dma_device is, for the oldest of them
 *
 * For include/classic, which sends dma_map_single() and its like of such devices through the
 * helpers here.
 *
 * Context: any but NMI. The device stays while the caller is a client of it.
 * Return: the device, or NULL for what is none.
 */
struct ib_device *ib_mr_soft_device(const struct device *dev)
{
	struct ib_device *found = NULL, *soft;
	struct ibmr_dma_dev *dd;
	int bkt;

	rcu_read_lock();
	hash_for_each_rcu(ibmr_dma_table, bkt, dd, node) {
		if (READ_ONCE(dd->removed))
			continue;
		soft = dd->ibdev;	/* freed after a grace period */
		if (!ib_uses_virt_dma(soft) || (dev && dev != &soft->dev))
			continue;
		/* An unmap has to find the one that the map found. */
		if (!found || soft->index < found->index)
			found = soft;
	}
	rcu_read_unlock();
	return found;
}
EXPORT_SYMBOL(ib_mr_soft_device);

/* True as soon as @fn says so of a device. Any context. */
bool ibmr_dma_any_dev(bool (*fn)(struct ibmr_dma_dev *dd, void *arg), void *arg)
{
	struct ibmr_dma_dev *dd;
	bool hit = false;
	int i;

	rcu_read_lock();
	hash_for_each_rcu(ibmr_dma_table, i, dd, node) {
		hit = fn(dd, arg);
		if (hit)
			break;
	}
	rcu_read_unlock();
	return hit;
}

/* Modes. */

static int ibmr_dma_set_mode(struct ibmr_dma_dev *dd, enum ib_mr_dma_check_mode mode)
{
	lockdep_assert_held(&ibmr_dma_mutex);
	if (mode >= IB_MR_DMA_BOUNCE && !ib_uses_virt_dma(dd->ibdev)) {
		pr_warn("%s: dma_check=bounce is for virtual-DMA devices; others are bounced by swiotlb=force\n",
			dd->name);
		return -EOPNOTSUPP;
	}
	if (mode != IB_MR_DMA_OFF && !dd->keyed) {
		static_branch_inc(&ib_mr_dma_checking);
		dd->keyed = true;
	}
	/* What was mapped and unmapped while nobody looked is not known, nor is the past. */
	if (mode != IB_MR_DMA_OFF && dd->mode == IB_MR_DMA_OFF) {
		ibmr_dma_unseen_level(dd->ibdev);
		ibmr_dma_forget_past(dd);
	}
	WRITE_ONCE(dd->mode, mode);
	if (mode == IB_MR_DMA_OFF && dd->keyed && !dd->removed)
		mod_delayed_work(system_wq, &dd->work, 0);
	return 0;
}

/**
 * ib_mr_dma_check_set() - choose how closely a device's DMA is watched
 * @device: device
 * @mode: off, track, bounce or bounce with strict
 *
 * At any time. Mappings that live keep the mode they were made in; those that were made while the
 * device was not checked are unknown to the checker, and so may be unmaps of nothing as long as
 * there are any. Best switch it on before the ULP comes.
 *
 * Context: process, may sleep.
 * Return: 0, -EINVAL, -ENODEV (not a device of ib_mr's), -EOPNOTSUPP (bounce on a device with a
 * real DMA path).
 */
int ib_mr_dma_check_set(struct ib_device *device, enum ib_mr_dma_check_mode mode)
{
	struct ibmr_dma_dev *dd;
	int err = -ENODEV;

	might_sleep();
	if ((unsigned int)mode >= ARRAY_SIZE(ibmr_dma_mode_name))
		return -EINVAL;
	mutex_lock(&ibmr_dma_mutex);
	dd = ibmr_dma_find(device);
	if (dd && !dd->removed)
		err = ibmr_dma_set_mode(dd, mode);
	mutex_unlock(&ibmr_dma_mutex);
	return err;
}
EXPORT_SYMBOL(ib_mr_dma_check_set);

/**
 * ib_mr_dma_check_get() - how closely a device's DMA is watched
 * @device: device
 *
 * Context: any.
 * Return: enum ib_mr_dma_check_mode, or -ENODEV.
 */
int ib_mr_dma_check_get(struct ib_device *device)
{
	struct ibmr_dma_dev *dd;
	int mode;

	rcu_read_lock();
	dd = ibmr_dma_find(device);
	mode = dd ? READ_ONCE(dd->mode) : -ENODEV;
	rcu_read_unlock();
	return mode;
}
EXPORT_SYMBOL(ib_mr_dma_check_get);

/**
 * ib_mr_dma_reports() - how often the checker found a fault on a device
 * @device: device; it may be gone, as long as something of it is still mapped
 * @fault: which
 *
 * Every single fault counts, also those whose call site had been reported before. What is only a
 * hint (no_sync_cpu and no_sync_dev always are) does not.
 *
 * Context: any.
 * Return: their number, 0 for a device that is not known.
 */
u64 ib_mr_dma_reports(struct ib_device *device, enum ib_mr_dma_fault fault)
{
	struct ibmr_dma_dev *dd;
	u64 n = 0;

	if ((unsigned int)fault >= IB_MR_DMA_FAULT_COUNT)
		return 0;
	rcu_read_lock();
	dd = ibmr_dma_find(device);
	if (dd)
		n = atomic64_read(&dd->fault[fault]);
	rcu_read_unlock();
	return n;
}
EXPORT_SYMBOL(ib_mr_dma_reports);

/* For tests: how often something was seen that may be a fault. */
u64 ibmr_dma_hints(struct ib_device *device, enum ib_mr_dma_fault fault)
{
	struct ibmr_dma_dev *dd;
	u64 n = 0;

	rcu_read_lock();
	dd = ibmr_dma_find(device);
	if (dd)
		n = atomic64_read(&dd->hint[fault]);
	rcu_read_unlock();
	return n;
}
IBMR_EXPORT_INTERNAL(ibmr_dma_hints);

u64 ibmr_dma_live(struct ib_device *device)
{
	struct ibmr_dma_dev *dd;
	u64 n = 0;

	rcu_read_lock();
	dd = ibmr_dma_find(device);
	if (dd)
		n = atomic64_read(&dd->live);
	rcu_read_unlock();
	return n;
}
IBMR_EXPORT_INTERNAL(ibmr_dma_live);

static void ibmr_dma_unkey(struct ibmr_dma_dev *dd)
{
	if (dd->keyed) {
		dd->keyed = false;
		static_branch_dec(&ib_mr_dma_checking);
	}
}

/*
 * Nothing mapped, nobody looks for it: let go. With the mutex held, under which the work is queued,
 * also while it waits for the mutex to come here.
 */
static void ibmr_dma_free(struct ibmr_dma_dev *dd)
{
	cancel_delayed_work(&dd->work);
	ibmr_dma_forget_past(dd);
	ibmr_dma_unkey(dd);
	list_del(&dd->all);
	kvfree_rcu(dd, rcu);
}

/* What comes later: leaks of a removed device, the end of checking. */
static void ibmr_dma_work(struct work_struct *work)
{
	struct ibmr_dma_dev *dd = container_of(work, struct ibmr_dma_dev, work.work);

	mutex_lock(&ibmr_dma_mutex);
	if (dd->removed) {
		ibmr_dma_report_leaks(dd, NULL, "after the device's removal");
		if (!atomic64_read(&dd->live)) {
			if (!hlist_unhashed(&dd->node))
				hash_del_rcu(&dd->node);
			synchronize_rcu();
		}
		/* One that came meanwhile can be told only at unload. */
		if (!atomic64_read(&dd->live)) {
			ibmr_dma_free(dd);
			goto out;
		}
		mod_delayed_work(system_wq, &dd->work,
				 max(READ_ONCE(ibmr_dma_leak_seconds), 1U) * HZ);
	} else if (dd->mode == IB_MR_DMA_OFF && dd->keyed) {
		/* A map that saw another mode is in the table then. */
		synchronize_rcu();
		if (!atomic64_read(&dd->live)) {
			ibmr_dma_forget_past(dd);
			ibmr_dma_unkey(dd);
		} else {
			mod_delayed_work(system_wq, &dd->work, IBMR_DMA_DRAIN);
		}
	}
out:
	mutex_unlock(&ibmr_dma_mutex);
}

/* debugfs, per device */

static int ibmr_dma_mode_show(struct seq_file *m, void *unused)
{
	struct ibmr_dma_dev *dd = m->private;
	int mode = READ_ONCE(dd->mode);
	int i;

	for (i = 0; i < ARRAY_SIZE(ibmr_dma_mode_name); i++)
		seq_printf(m, i == mode ? "%s[%s]" : "%s%s", i ? " " : "", ibmr_dma_mode_name[i]);
	seq_putc(m, '\n');
	return 0;
}

static ssize_t ibmr_dma_mode_write(struct file *file, const char __user *ubuf, size_t len,
				   loff_t *pos)
{
	struct ibmr_dma_dev *dd = ((struct seq_file *)file->private_data)->private;
	char buf[20] = "";
	int mode, err;

	if (len >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, ubuf, len))
		return -EFAULT;
	mode = sysfs_match_string(ibmr_dma_mode_name, buf);
	if (mode < 0)
		return -EINVAL;
	mutex_lock(&ibmr_dma_mutex);
	err = dd->removed ? -ENODEV : ibmr_dma_set_mode(dd, mode);
	mutex_unlock(&ibmr_dma_mutex);
	return err ? err : len;
}

static int ibmr_dma_mode_open(struct inode *inode, struct file *file)
{
	return single_open(file, ibmr_dma_mode_show, inode->i_private);
}

static const struct file_operations ibmr_dma_mode_fops = {
	.owner	 = THIS_MODULE,
	.open	 = ibmr_dma_mode_open,
	.read	 = seq_read,
	.write	 = ibmr_dma_mode_write,
	.llseek	 = seq_lseek,
	.release = single_release,
};

static int ibmr_dma_live_show(struct seq_file *m, void *unused)
{
	ibmr_dma_show_live(m->private, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ibmr_dma_live);

static int ibmr_dma_show(struct seq_file *m, void *unused)
{
	static const char *const name[IBMR_DMA_N_COUNT] = {
		"maps", "unmaps", "syncs", "failed", "untracked", "unseen", "bytes_to_device",
		"bytes_to_cpu",
	};
	struct ibmr_dma_dev *dd = m->private;
	int i;

	seq_printf(m, "# name value\nmode %s\n", ibmr_dma_mode_name[READ_ONCE(dd->mode)]);
	seq_printf(m, "live %lld\nlive_bytes %lld\nunseen_now %ld\n",
		   (long long)atomic64_read(&dd->live), (long long)atomic64_read(&dd->live_bytes),
		   dd->removed ? 0 : ibmr_dma_unseen(dd->ibdev));
	for (i = 0; i < IBMR_DMA_N_COUNT; i++)
		seq_printf(m, "%s %lld\n", name[i], (long long)atomic64_read(&dd->count[i]));
	for (i = 0; i < IB_MR_DMA_FAULT_COUNT; i++)
		seq_printf(m, "fault.%s %lld\n", ibmr_dma_fault_name(i),
			   (long long)atomic64_read(&dd->fault[i]));
	for (i = 0; i < IB_MR_DMA_FAULT_COUNT; i++)
		if (atomic64_read(&dd->hint[i]))
			seq_printf(m, "hint.%s %lld\n", ibmr_dma_fault_name(i),
				   (long long)atomic64_read(&dd->hint[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(ibmr_dma);

/* Devices come and go. */

/* Its address may be another's soon: out of the table, and what is mapped told now. */
static void ibmr_dma_retire(struct ibmr_dma_dev *dd)
{
	if (!hlist_unhashed(&dd->node))
		hash_del_rcu(&dd->node);
	dd->removed = true;
	mod_delayed_work(system_wq, &dd->work, 0);
}

int ibmr_dma_dev_add(struct ib_device *device, struct dentry *dir)
{
	struct ibmr_dma_dev *dd, *old;
	int mode = sysfs_match_string(ibmr_dma_mode_name, dma_check);

	dd = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kvzalloc(sizeof(*dd), GFP_KERNEL);
	if (!dd)
		return -ENOMEM;
	dd->name = ibmr_name(dev_name(&device->dev));
	if (!dd->name) {
		kvfree(dd);
		return -ENOMEM;
	}
	dd->ibdev = device;
	INIT_DELAYED_WORK(&dd->work, ibmr_dma_work);
	ibmr_dma_shards_init(dd);

	mutex_lock(&ibmr_dma_mutex);
	old = ibmr_dma_find(device);
	if (old)
		ibmr_dma_retire(old);
	list_add_tail(&dd->all, &ibmr_dma_all);
	hash_add_rcu(ibmr_dma_table, &dd->node, (unsigned long)device);
	if (mode > IB_MR_DMA_OFF && ibmr_dma_set_mode(dd, mode))
		ibmr_dma_set_mode(dd, IB_MR_DMA_TRACK);
	mutex_unlock(&ibmr_dma_mutex);

	if (dir) {
		debugfs_create_file("dma_check", 0600, dir, dd, &ibmr_dma_mode_fops);
		debugfs_create_file("dma_live", 0400, dir, dd, &ibmr_dma_live_fops);
		debugfs_create_file("dma", 0400, dir, dd, &ibmr_dma_fops);
	}
	return 0;
}
IBMR_EXPORT_INTERNAL(ibmr_dma_dev_add);

/* @name stays, see base/name.c. */
void ibmr_dma_dev_rename(struct ib_device *device, const char *name)
{
	struct ibmr_dma_dev *dd;

	mutex_lock(&ibmr_dma_mutex);
	dd = ibmr_dma_find(device);
	if (dd)
		WRITE_ONCE(dd->name, name);
	mutex_unlock(&ibmr_dma_mutex);
}

void ibmr_dma_dev_remove(struct ib_device *device)
{
	struct ibmr_dma_dev *dd;

	mutex_lock(&ibmr_dma_mutex);
	dd = ibmr_dma_find(device);
	if (dd) {
		dd->removed = true;
		mod_delayed_work(system_wq, &dd->work, READ_ONCE(ibmr_dma_leak_seconds) * HZ);
	}
	mutex_unlock(&ibmr_dma_mutex);
}
IBMR_EXPORT_INTERNAL(ibmr_dma_dev_remove);

/* For tests: a removed device's leaks, without the wait. */
void ibmr_dma_leaks_now(void)
{
	struct ibmr_dma_dev *dd;

	mutex_lock(&ibmr_dma_mutex);
	list_for_each_entry(dd, &ibmr_dma_all, all)
		if (dd->removed)
			ibmr_dma_report_leaks(dd, NULL, "after the device's removal");
	mutex_unlock(&ibmr_dma_mutex);
}
IBMR_EXPORT_INTERNAL(ibmr_dma_leaks_now);

/* For tests: look at what was unmapped a last time, now. */
void ibmr_dma_settle(struct ib_device *device)
{
	struct ibmr_dma_dev *dd;

	rcu_read_lock();
	dd = ibmr_dma_find(device);
	if (dd)
		ibmr_dma_forget_past(dd);
	rcu_read_unlock();
}
IBMR_EXPORT_INTERNAL(ibmr_dma_settle);

/*
 * A module comes: before anybody else hears of it, as KUnit may run its cases then. A module goes,
 * after its exit function: what it mapped and nobody unmapped is a leak, and this is the last
 * moment at which its call sites have names.
 */
static int ibmr_dma_module_event(struct notifier_block *nb, unsigned long event, void *data)
{
	struct module *mod = data;
	struct ibmr_dma_dev *dd;

	if (mod == THIS_MODULE)
		return NOTIFY_DONE;
	if (event == MODULE_STATE_COMING)
		ibmr_dma_user_comes(mod);
	if (event != MODULE_STATE_GOING)
		return NOTIFY_DONE;
	mutex_lock(&ibmr_dma_mutex);
	list_for_each_entry(dd, &ibmr_dma_all, all) {
		if (!dd->keyed)
			continue;
		ibmr_dma_report_leaks(dd, mod, "when the module that made it was unloaded");
		ibmr_dma_forget_past(dd);
	}
	mutex_unlock(&ibmr_dma_mutex);
	ibmr_dma_user_goes(mod);
	ibmr_dma_forget_sites(mod);
	ibmr_dma_chains_forget();
	return NOTIFY_DONE;
}

static struct notifier_block ibmr_dma_module_nb = {
	.notifier_call = ibmr_dma_module_event,
	.priority = 1,
};

int ibmr_dma_init(struct dentry *dir)
{
	if (sysfs_match_string(ibmr_dma_mode_name, dma_check) < 0) {
		pr_err("dma_check=%s: off, track, bounce or bounce,strict\n", dma_check);
		return -EINVAL;
	}
	ibmr_dma_reports_init(dir);
	ibmr_dma_fault_init(dir);
	return register_module_notifier(&ibmr_dma_module_nb);
}

void ibmr_dma_exit(void)
{
	struct ibmr_dma_dev *dd, *next;
	LIST_HEAD(gone);

	unregister_module_notifier(&ibmr_dma_module_nb);

	/* Without the mutex the works could not end; nobody adds to the list any more. */
	mutex_lock(&ibmr_dma_mutex);
	list_for_each_entry(dd, &ibmr_dma_all, all) {
		if (!hlist_unhashed(&dd->node))
			hash_del_rcu(&dd->node);
		dd->removed = false;
		WRITE_ONCE(dd->mode, IB_MR_DMA_TRACK);	/* the work has nothing to do */
	}
	mutex_unlock(&ibmr_dma_mutex);
	list_for_each_entry(dd, &ibmr_dma_all, all)
		cancel_delayed_work_sync(&dd->work);

	synchronize_rcu();
	list_for_each_entry_safe(dd, next, &ibmr_dma_all, all) {
		ibmr_dma_report_leaks(dd, NULL, "when ib_mr was unloaded");
		ibmr_dma_drop_live(dd);
		ibmr_dma_free(dd);
	}
	ibmr_dma_users_exit();
	ibmr_dma_chains_forget();
	ibmr_dma_reports_exit();
}
