// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Keys that a work request made dead.
 *
 * A LOCAL_INV of the owner, or a peer's SEND with invalidate, is carried out by the device, which
 * tells nobody but the one who polls its completion. So that one tells us. The key is dead either
 * way: nothing here makes an access possible or impossible, but a type 2 window becomes free for
 * the next bind, a mapping is not kept for its key, and a refused access can be explained.
 *
 * A device may look at the key alone, as soft RoCE does. So a peer can reach with it into another
 * PD, or, by guessing, into the stock of armed MRs. What was hit is marked, whoever it belongs to:
 * the owner of a mapping finds out by asking, and an MR in stock is armed anew before it is used.
 */

#include "base/compat.h"
#include "mr/xlate.h"
#include "mw/window.h"

#include <trace/events/ib_mr.h>

static enum ib_mr_reason reg_invalidated(struct ibmr_reg *reg, const struct ib_pd *pd, u32 key)
{
	if (key != reg->lkey)
		return IB_MR_WHY_STALE_KEY;
	if (!reg->mem)
		return IB_MR_WHY_WRONG_KIND;	/* a DMA MR has no such state */
	WRITE_ONCE(reg->keyed.lkey, ~key);
	WRITE_ONCE(reg->invalidated, true);
	return reg->pd == pd ? IB_MR_WHY_OK : IB_MR_WHY_OTHER_PD;
}

static enum ib_mr_reason armed_invalidated(struct ibmr_armed *a, const struct ib_pd *pd, u32 key)
{
	enum ib_mr_reason why = IB_MR_WHY_OK;
	const struct ib_pd *in;
	struct ibmr_window *w = NULL;
	unsigned long flags;

	spin_lock_irqsave(&a->mag->lock, flags);
	/* A map of a pool publishes without the lock. */
	in = a->drv ? READ_ONCE(a->drv->pd) : NULL;
	if (READ_ONCE(a->key) != key || !in) {
		why = IB_MR_WHY_STALE_KEY;
	} else {
		WRITE_ONCE(a->invalidated, true);
		if (in == a->mag->dev->park) {
			why = IB_MR_WHY_STALE_KEY;	/* nothing is mapped by it now */
			ibmr_mag_spoiled(a->mag);
		} else if (in != pd) {
			why = IB_MR_WHY_OTHER_PD;	/* its owner may do with it what he likes */
		} else {
			w = a->window;
		}
	}
	spin_unlock_irqrestore(&a->mag->lock, flags);
	if (w && ibmr_window_freed(w, a) && w->mw.type == IB_MW_TYPE_1)
		why = IB_MR_WHY_MW_TYPE1_INV;
	return why;
}

/**
 * ib_mr_invalidated() - a key was invalidated by a work request
 * @pd: PD of the object
 * @key: key, as the completion named it (wc->ex.invalidate_rkey), or that of the owner's LOCAL_INV
 *
 * The device has made the key dead on its own, at a peer's or the owner's wish. Told of it, the
 * core frees a type 2 window for the next bind, and explains refused accesses. A type 1 window must
 * not be invalidated (o10-37.2.26): it is unbound, and that is said. Of an object in another PD the
 * key is marked as dead, since the device did not care, and nothing else changes; that is said too.
 *
 * Context: any but NMI; does not sleep: a completion handler.
 * Return: 0; -EINVAL for a key that is unknown or stale, and for a type 1 window's; -EACCES in
 * another PD; -ENODEV.
 */
int ib_mr_invalidated(struct ib_pd *pd, u32 key)
{
	enum ib_mr_reason why = IB_MR_WHY_UNKNOWN_KEY;
	struct ibmr_keyed *keyed = NULL;
	struct ibmr_dev *dev;
	int err = 0;

	if (IS_ERR_OR_NULL(pd) || !pd->device)
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", __func__);
	rcu_read_lock();
	dev = ibmr_dev_rcu(pd->device);
	if (!dev || READ_ONCE(dev->gone))
		why = IB_MR_WHY_NO_DEVICE;
	else
		keyed = ibmr_key_find(dev, key);
	if (keyed && keyed->kind == IBMR_KEYED_REG)
		why = reg_invalidated(container_of(keyed, struct ibmr_reg, keyed), pd, key);
	else if (keyed)
		why = armed_invalidated(container_of(keyed, struct ibmr_armed, keyed), pd, key);
	if (why)
		err = ibmr_refuse(dev, why, "%s(key %#x)", __func__, key);
	else
		trace_ib_mr_invalidated(dev->name, pd->res.id, key);
	rcu_read_unlock();
	return err;
}
EXPORT_SYMBOL(ib_mr_invalidated);
