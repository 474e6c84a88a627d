// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Devices and protection domains: what is kept of each, and how both end.
 *
 * A device's state comes with the ib_client's add and leaves with its remove, but its memory lives
 * on while anything refers to it: a handle may outlive its device, and is then answered instead of
 * dereferenced. Whoever may sleep and uses the device is inside its gate meanwhile (gate.c), by
 * ibmr_dev_enter() to begin something or ibmr_dev_hold() to end something; removal shuts the gate,
 * so it runs alone and finds every object in a finished state.
 *
 * A PD's state exists while something of ours lives in the PD. Its registration queue pair lies in
 * the ULP's own PD, so it has to be gone when the ULP frees that: it is destroyed in the very call
 * that releases the last object.
 *
 * Lock order: gate, a region's @change, a region's lock, pd_lock, ibmr_pd.lock. Under a region's
 * lock and pd_lock nobody allocates memory. Whoever is inside allocates without I/O.
 *
 * What a ULP may hold when it calls. "begin" is whatever makes or changes something (register,
 * rereg, alloc, create, map), "end" deregisters, unmaps, flushes and frees; calls that do not sleep
 * take spinlocks with interrupts off, for a moment, and may be made with any of these held.
 *
 *	held					begin		end
 *	mmap_lock, read or write		yes (1)		yes
 *	in an MMU notifier that may sleep	no		yes (2)
 *	a lock that such a notifier takes	no		yes (2)
 *	fs_reclaim: in reclaim, writing out	yes (3)		yes
 *	RTNL					yes		yes
 *	device_lock of the RDMA device		yes		yes
 *	a page's lock				yes (1)		yes
 *	in the ib_client's remove		-ENODEV		yes
 *	in one that is told after ours		-ENODEV		yes
 *
 * (1) but ib_mr_reg_user(), which takes mmap_lock and faults pages in, before it enters: it may
 *     have none of these held.
 * (2) ib_dereg_mr() and ib_mr_scope_release() of regions to which no window was bound. They reclaim
 *     no memory, and what waits for the invalidation or for a page is left for later (late.c).
 * (3) an FMR or a pool has its memory from its creation on; to create regions, FMRs or pools there
 *     may fail for want of memory. Arenas and scopes are not made there.
 *
 * tests/kunit/borders_test.c makes the calls with each of these held.
 */

#include <linux/debugfs.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "base/compat.h"
#include "base/core.h"
#include "base/fault.h"
#include "base/keys.h"
#include "base/late.h"
#include "base/room.h"

static struct ib_client ibmr_client;
bool ibmr_unloading;
struct ibmr_dev __rcu *ibmr_first_dev;

/* Find a device's state and keep its memory. NULL where there is none. Any context. */
struct ibmr_dev *ibmr_dev_get(struct ib_device *device)
{
	struct ibmr_dev *dev;

	rcu_read_lock();
	dev = ib_get_client_data(device, &ibmr_client);
	if (dev && !refcount_inc_not_zero(&dev->refs))
		dev = NULL;
	rcu_read_unlock();
	return dev;
}
IBMR_EXPORT_INTERNAL(ibmr_dev_get);

/* ibmr_dev_rcu() for a device that is not the first. */
struct ibmr_dev *ibmr_dev_look_up(struct ib_device *device)
{
	return ib_get_client_data(device, &ibmr_client);
}

static void dev_free(struct rcu_head *rcu)
{
	struct ibmr_dev *dev = container_of(rcu, struct ibmr_dev, rcu);

	ibmr_keys_free(dev);
	kvfree(dev);
}

void ibmr_dev_put(struct ibmr_dev *dev)
{
	if (refcount_dec_and_test(&dev->refs))
		call_rcu(&dev->rcu, dev_free);
}
IBMR_EXPORT_INTERNAL(ibmr_dev_put);

/*
 * Keep the device from being removed, whether or not it was already: for what ends something. Until
 * ibmr_dev_exit() no allocation of this thread starts I/O: others wait for what it may hold from
 * here on, and they may be who writes pages out. *@noio or the result is for that.
 */
unsigned int ibmr_dev_hold(struct ibmr_dev *dev)
{
	ibmr_gate_enter(&dev->gate);
	return memalloc_noio_save();
}

/* For what begins something: false when the device is gone, or goes (nothing is held then). */
bool ibmr_dev_enter(struct ibmr_dev *dev, unsigned int *noio)
{
	if (READ_ONCE(dev->leaving))
		return false;
	*noio = ibmr_dev_hold(dev);
	if (!dev->gone)
		return true;
	ibmr_dev_exit(dev, *noio);
	return false;
}

void ibmr_dev_exit(struct ibmr_dev *dev, unsigned int noio)
{
	memalloc_noio_restore(noio);
	ibmr_gate_exit(&dev->gate);
}

static struct ibmr_pd *pd_find(struct ibmr_dev *dev, struct ib_pd *pd)
{
	struct ibmr_pd *ipd;

	lockdep_assert_held(&dev->pd_lock);
	hash_for_each_possible(dev->pds, ipd, node, (unsigned long)pd)
		if (ipd->pd == pd)
			return ipd;
	return NULL;
}

/**
 * ibmr_pd_get() - the state of a PD, made if there is none, with one more user
 * @dev: its device, entered
 * @pd: PD of that device
 *
 * Context: process.
 * Return: the state, or NULL without memory.
 */
struct ibmr_pd *ibmr_pd_get(struct ibmr_dev *dev, struct ib_pd *pd)
{
	struct ibmr_pd *fresh = NULL, *ipd;

	mutex_lock(&dev->pd_lock);
	ipd = pd_find(dev, pd);
	if (!ipd) {
		/* Who deregisters takes the lock, and the allocator may wait for him. */
		mutex_unlock(&dev->pd_lock);
		fresh = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kzalloc(sizeof(*ipd), GFP_NOIO);
		mutex_lock(&dev->pd_lock);
		ipd = pd_find(dev, pd);
	}
	if (!ipd && fresh) {
		ipd = fresh;
		fresh = NULL;
		ipd->pd = pd;
		ipd->dev = dev;
		ipd->pdn = pd->res.id;
		strscpy(ipd->owner, pd->res.kern_name ?: "a user", sizeof(ipd->owner));
		mutex_init(&ipd->lock);
		spin_lock_init(&ipd->list_lock);
		INIT_LIST_HEAD(&ipd->regions);
		refcount_inc(&dev->refs);
		hash_add(dev->pds, &ipd->node, (unsigned long)pd);
	}
	if (ipd)
		ipd->users++;
	mutex_unlock(&dev->pd_lock);
	kfree(fresh);
	return ipd;
}

/* Drop a user. The last one takes the registration queue pair along, before this returns. */
void ibmr_pd_put(struct ibmr_pd *ipd)
{
	struct ibmr_dev *dev = ipd->dev;
	const struct ibmr_room *room;
	int i;

	mutex_lock(&dev->pd_lock);
	if (--ipd->users) {
		mutex_unlock(&dev->pd_lock);
		return;
	}
	hash_del(&ipd->node);
	ibmr_each_room(room, i)
		if (room->pd_last)
			room->pd_last(ipd);
	mutex_unlock(&dev->pd_lock);

	WARN_ON(!list_empty(&ipd->regions));
	kfree(ipd);
	ibmr_dev_put(dev);
}

/**
 * ibmr_enter() - what every call that is given a PD and may sleep begins with
 * @pd: PD from the caller, anything
 * @call: its name, for the log
 * @noio: for ibmr_exit() or ibmr_dev_exit()
 *
 * Context: process, may sleep.
 * Return: the PD's state with one more user and its device entered, to be given to ibmr_exit();
 * or an error, with the refusal counted.
 */
struct ibmr_pd *ibmr_enter(struct ib_pd *pd, const char *call, unsigned int *noio)
{
	struct ibmr_dev *dev;
	struct ibmr_pd *ipd;

	if (IS_ERR_OR_NULL(pd) || !pd->device)
		return ERR_PTR(ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s(pd %p)", call, pd));
	dev = ibmr_dev_get(pd->device);
	if (!dev)
		return ERR_PTR(ibmr_refuse(NULL, IB_MR_WHY_NO_DEVICE, "%s", call));
	if (pd->uobject) {
		ipd = ERR_PTR(ibmr_refuse(dev, IB_MR_WHY_USER_PD, "%s", call));
		goto out;
	}
	if (!ibmr_dev_enter(dev, noio)) {
		ipd = ERR_PTR(ibmr_refuse(dev, IB_MR_WHY_NO_DEVICE, "%s", call));
		goto out;
	}
	ipd = ibmr_pd_get(dev, pd);
	if (!ipd) {
		ibmr_dev_exit(dev, *noio);
		ipd = ERR_PTR(ibmr_refuse(dev, IB_MR_WHY_NO_MEMORY, "%s", call));
	}
out:
	ibmr_dev_put(dev);	/* the PD's state holds its own */
	return ipd;
}

void ibmr_exit(struct ibmr_pd *ipd, unsigned int noio)
{
	struct ibmr_dev *dev = ipd->dev;

	refcount_inc(&dev->refs);
	ibmr_pd_put(ipd);
	ibmr_dev_exit(dev, noio);
	ibmr_dev_put(dev);
}

/**
 * ib_mr_pd_get() - keep a PD's registration queue pair between objects
 * @pd: kernel PD
 *
 * Registering needs a hidden queue pair in the PD, made when the first object is registered and
 * destroyed with the last. A ULP that has one object at a time would pay for it each time; with a
 * hold it is made once. Each get is given back with ib_mr_pd_put(), before the PD is freed.
 *
 * Context: process, may sleep.
 * Return: 0, -EINVAL (NULL), -EPERM (a user's PD), -ENODEV, -ENOMEM.
 */
int ib_mr_pd_get(struct ib_pd *pd)
{
	struct ibmr_pd *ipd;
	struct ibmr_dev *dev;
	unsigned int noio;

	might_sleep();
	ipd = ibmr_enter(pd, __func__, &noio);
	if (IS_ERR(ipd))
		return PTR_ERR(ipd);
	dev = ipd->dev;
	mutex_lock(&dev->pd_lock);
	ipd->holds++;	/* keeps the user that ibmr_enter() counted */
	mutex_unlock(&dev->pd_lock);
	ibmr_dev_exit(dev, noio);
	return 0;
}
EXPORT_SYMBOL(ib_mr_pd_get);

/* Give back a hold. @pd is not followed: a device that goes ends it, and the PD may be gone. */
void ibmr_pd_unhold(struct ibmr_dev *dev, struct ib_pd *pd)
{
	struct ibmr_pd *ipd;
	bool held = false;
	unsigned int noio;

	noio = ibmr_dev_hold(dev);
	if (dev->gone)
		goto out;
	mutex_lock(&dev->pd_lock);
	ipd = pd_find(dev, pd);
	if (ipd && ipd->holds) {
		ipd->holds--;
		held = true;
	}
	mutex_unlock(&dev->pd_lock);
	if (held)
		ibmr_pd_put(ipd);
	else
		ibmr_refuse(dev, IB_MR_WHY_PD_NOT_HELD, "ib_mr_pd_put");
out:
	ibmr_dev_exit(dev, noio);
}

/**
 * ib_mr_pd_put() - give back what ib_mr_pd_get() held
 * @pd: the same PD
 *
 * Context: process, may sleep. More puts than gets are refused with a line in the log.
 */
void ib_mr_pd_put(struct ib_pd *pd)
{
	struct ibmr_dev *dev;

	might_sleep();
	if (IS_ERR_OR_NULL(pd) || !pd->device)
		return;
	/* After the device's removal there is none, and removal has ended its holds. */
	dev = ibmr_dev_get(pd->device);
	if (!dev)
		return;
	ibmr_pd_unhold(dev, pd);
	ibmr_dev_put(dev);
}
EXPORT_SYMBOL(ib_mr_pd_put);

/**
 * ib_mr_dealloc_pd() - free a PD unless objects of ours live in it
 * @pd: PD from ib_alloc_pd()
 *
 * ib_dealloc_pd() is a macro for this. Until 4.2 it answered -EBUSY while the PD was in use; since
 * then it warns, and soft RoCE waits for the objects for a long time. This brings the answer back.
 *
 * Context: process, may sleep.
 * Return: 0; -EBUSY with nothing changed; -EINVAL for what is no PD.
 */
int ib_mr_dealloc_pd(struct ib_pd *pd)
{
	unsigned int users = 0;
	struct ibmr_dev *dev;
	struct ibmr_pd *ipd;
	int err = 0;

	might_sleep();
	if (IS_ERR_OR_NULL(pd) || !pd->device)
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	dev = ibmr_dev_get(pd->device);
	if (dev) {
		mutex_lock(&dev->pd_lock);
		ipd = pd_find(dev, pd);
		if (ipd)
			users = ipd->users;
		mutex_unlock(&dev->pd_lock);
		if (users)
			err = ibmr_refuse(dev, IB_MR_WHY_PD_BUSY, "%s with %u objects", __func__,
					  users);
		ibmr_dev_put(dev);
	}
	if (!err)
		err = ibmr_should_fail(IBMR_FAULT_DEVICE) ? -EIO : ib_dealloc_pd_user(pd, NULL);
	return err;
}
EXPORT_SYMBOL(ib_mr_dealloc_pd);

/**
 * ib_mr_check_invariants() - do the counters agree with the objects?
 * @device: device
 *
 * For tests and debug builds. Objects must not come or go meanwhile, else it may answer false.
 *
 * Context: process, may sleep.
 * Return: true when all agree, or for a device we do not serve.
 */
bool ib_mr_check_invariants(struct ib_device *device)
{
	const struct ibmr_room *room;
	struct ibmr_dev *dev;
	struct ibmr_pd *ipd;
	bool ok = true;
	int bkt, i;

	might_sleep();
	dev = ibmr_dev_get(device);
	if (!dev)
		return true;
	ibmr_gate_shut(&dev->gate);
	mutex_lock(&dev->pd_lock);
	hash_for_each(dev->pds, bkt, ipd, node)
		if (!ipd->users)
			ok = false;
	mutex_unlock(&dev->pd_lock);
	ibmr_each_room_up(room, i)
		if (room->agree && !room->agree(dev))
			ok = false;
	ibmr_gate_open(&dev->gate);
	ibmr_dev_put(dev);
	return ok;
}
EXPORT_SYMBOL(ib_mr_check_invariants);

static int ibmr_add_one(struct ib_device *device)
{
	const struct ibmr_room *room;
	struct ibmr_dev *dev;
	int err, i;

	/* Nothing to serve where the core itself cannot use the device. */
	if (!device->ops.alloc_pd || !device->ops.dereg_mr)
		return -EOPNOTSUPP;

	dev = kvzalloc(sizeof(*dev), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	dev->name = ibmr_name(dev_name(&device->dev));
	if (!dev->name) {
		kvfree(dev);
		return -ENOMEM;
	}
	dev->ibdev = device;
	mutex_init(&dev->told_lock);
	refcount_set(&dev->refs, 1);
	ibmr_gate_init(&dev->gate);
	mutex_init(&dev->pd_lock);
	hash_init(dev->pds);
	mutex_init(&dev->mag_lock);
	ibmr_keys_init(dev);
	INIT_LIST_HEAD(&dev->mags);
	hash_init(dev->shared_mags);
	INIT_LIST_HEAD(&dev->windows);
	INIT_LIST_HEAD(&dev->pools);
	BUILD_BUG_ON(ARRAY_SIZE(dev->keys) != IBMR_KEY_SLOTS);
	/* Failure of debugfs is nobody's: files are then not there. */
	dev->debugfs = debugfs_create_dir(dev->name, ibmr_debugfs_devices);
	ibmr_each_room_up(room, i) {
		err = room->dev_add ? room->dev_add(dev) : 0;
		if (err)
			goto err_rooms;
	}
	ib_set_client_data(device, &ibmr_client, dev);
	/* The first of several is remembered until it goes. */
	cmpxchg((__force struct ibmr_dev **)&ibmr_first_dev, NULL, dev);
	return 0;

err_rooms:
	debugfs_remove_recursive(dev->debugfs);
	while (++i < IBMR_ROOMS)
		if (ibmr_rooms[i]->dev_gone)
			ibmr_rooms[i]->dev_gone(dev);
	kvfree(dev);
	return err;
}

static void ibmr_remove_one(struct ib_device *device, void *client_data)
{
	struct ibmr_dev *dev = client_data;
	const struct ibmr_room *room;
	struct hlist_node *next;
	struct ibmr_pd *ipd;
	int bkt, i;

	/* Waits for readers of the files, who may wait to be let in. */
	debugfs_remove_recursive(dev->debugfs);
	dev->debugfs = NULL;
	cmpxchg((__force struct ibmr_dev **)&ibmr_first_dev, dev, NULL);
	WRITE_ONCE(dev->leaving, true);
	ibmr_gate_shut(&dev->gate);
	WRITE_ONCE(dev->gone, true);
	ibmr_each_room(room, i)
		if (room->dev_remove)
			room->dev_remove(dev);
	hash_for_each_safe(dev->pds, bkt, next, ipd, node) {
		/* A hold ends here: its put would not find us any more. */
		if (ipd->holds) {
			ipd->users -= ipd->holds - 1;
			ipd->holds = 0;
			ibmr_pd_put(ipd);
		}
	}
	ibmr_gate_open(&dev->gate);
	ibmr_late_settle();	/* the device cannot go with DMA mappings on it */
	/* The core forgets it only after we return, and lookups must not find freed memory. */
	ib_set_client_data(device, &ibmr_client, NULL);
	ibmr_each_room(room, i)
		if (room->dev_gone)
			room->dev_gone(dev);
	ibmr_dev_put(dev);
}

/* The core calls it one by one, and for no device that comes or goes meanwhile. */
static void ibmr_rename_one(struct ib_device *device, void *client_data)
{
	const char *name = client_data ? ibmr_name(dev_name(&device->dev)) : NULL;
	struct ibmr_dev *dev = client_data;
	const struct ibmr_room *room;
	int i;

	if (!name)
		return;		/* not served, or it is known by its old one */
	WRITE_ONCE(dev->name, name);
	if (!IS_ERR_OR_NULL(dev->debugfs))
		ibmr_debugfs_change_name(dev->debugfs, ibmr_debugfs_devices, name);
	ibmr_each_room(room, i)
		if (room->dev_renamed)
			room->dev_renamed(dev);
}

static struct ib_client ibmr_client = {
	.name	= "ib_mr",
	.add	= ibmr_add_one,
	.remove	= ibmr_remove_one,
	.rename	= ibmr_rename_one,
};

int ibmr_devices_init(void)
{
	return ib_register_client(&ibmr_client);
}

void ibmr_devices_exit(void)
{
	ibmr_unloading = true;
	ib_unregister_client(&ibmr_client);
}
