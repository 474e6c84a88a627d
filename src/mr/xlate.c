// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * From a key and an address to memory: check, translation, copy.
 *
 * The device answers the same questions on every packet; here a ULP can ask them first, and gets a
 * reason instead of a broken queue pair. Questions are asked in the device's own order (key, PD,
 * rights, state, bounds), so that an access that is wrong in two ways is refused for the same one.
 *
 * A key leads to its object through the device's table (base/keys.c), under RCU, in a time that
 * does not depend on how many there are; inside, the run that holds an address is found by
 * bisection. No lock is taken, so all of it works with interrupts off and beside a deregistration,
 * which withdraws the key from the table first. Who touches the memory takes a user of the
 * registration besides, and deregistration waits for users after the device has let go.
 *
 * What is stale is still allowed: the device allows it, and the pages are there.
 */

#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "base/compat.h"
#include "mr/access.h"
#include "mr/xlate.h"

/**
 * ibmr_view_verdict() - may a key be used in this way?
 * @v: what the key's index leads to
 * @pd: PD of the queue pair; NULL for the right one
 * @key: the key with its variant
 * @iova: address
 * @length: bytes, not 0
 * @access: rights that the access needs; IB_ACCESS_LOCAL_WRITE or none for a local one
 * @remote: a peer does it
 *
 * Context: any, under RCU.
 * Return: IB_MR_WHY_OK, or why not.
 */
enum ib_mr_reason ibmr_view_verdict(const struct ibmr_view *v, const struct ib_pd *pd, u32 key,
				    u64 iova, u64 length, int access, bool remote)
{
	if (unlikely(key != (remote ? v->rkey : v->lkey))) {
		if (key == v->lkey)
			return IB_MR_WHY_LOCAL_KEY;
		if (!v->lkey && key == v->rkey)
			return IB_MR_WHY_WRONG_KIND;	/* a window is for peers */
		if (!v->lkey && !v->rkey)
			return IB_MR_WHY_NOT_MAPPED_NOW;
		return IB_MR_WHY_STALE_KEY;
	}
	if (unlikely(!v->mapped))
		return IB_MR_WHY_NOT_MAPPED_NOW;
	if (unlikely(pd && pd != v->pd))
		return IB_MR_WHY_OTHER_PD;
	if (unlikely(ibmr_access_grants(v->access, access)))
		return IB_MR_WHY_NO_RIGHT;
	if (unlikely(v->invalidated))
		return IB_MR_WHY_INVALIDATED;
	return ibmr_access_bounds(v->iova, v->length, iova, length);
}

static bool no_device(const struct ib_pd *pd)
{
	return IS_ERR_OR_NULL(pd) || !pd->device;
}

/*
 * The usual case, in as few steps as there are: a region's key, good in every way. NULL for
 * whatever is not so plain, refusals among it; the slow way looks again and knows the reason.
 */
static __always_inline struct ibmr_reg *reg_hit(struct ibmr_dev *dev, const struct ib_pd *pd,
						u32 key, u64 iova, u64 length, int access,
						bool remote)
{
	struct ibmr_keyed *keyed;
	struct ibmr_reg *reg;

	if (unlikely(!dev))
		return NULL;
	keyed = ibmr_key_find(dev, key);
	if (unlikely(!keyed || keyed->kind != IBMR_KEYED_REG))
		return NULL;
	reg = container_of(keyed, struct ibmr_reg, keyed);
	if (unlikely(key != (remote ? reg->rkey : reg->lkey) || pd != reg->pd ||
		     ibmr_access_grants(reg->access, access) || READ_ONCE(reg->invalidated)))
		return NULL;
	return ibmr_access_bounds(reg->iova, reg->length, iova, length) ? NULL : reg;
}

static noinline enum ib_mr_reason check_slow(struct ibmr_dev *dev, const struct ib_pd *pd, u32 key,
					     u64 iova, u64 length, int access, bool remote)
{
	struct ibmr_view v;

	if (!dev || READ_ONCE(dev->gone))
		return IB_MR_WHY_NO_DEVICE;
	if (!length)
		return IB_MR_WHY_OK;
	if (!ibmr_view_find(dev, key, &v))
		return IB_MR_WHY_UNKNOWN_KEY;
	return ibmr_view_verdict(&v, pd, key, iova, length, access, remote);
}

/**
 * ib_mr_check() - would the device allow an access?
 * @pd: PD of the queue pair through which it would come
 * @key: lkey, or rkey for a remote access
 * @iova: address of the first byte
 * @length: bytes
 * @access: rights that it needs: IB_ACCESS_REMOTE_READ, _WRITE, _ATOMIC for what a peer does;
 *          IB_ACCESS_LOCAL_WRITE where the device stores for a local request (a receive, the
 *          target of a READ); 0 where it only fetches for one
 * @remote: a peer does it
 *
 * Nothing is counted or logged: this is a question. An access of length 0 touches nothing and is
 * allowed, whatever the key, as the device does. Atomic operations need an address that is a
 * multiple of 8 besides, which is no matter of rights. The answer may be out of date when it
 * arrives, if someone deregisters meanwhile.
 *
 * Context: any but NMI; does not sleep.
 * Return: IB_MR_WHY_OK (0) when it is allowed, else the reason why not.
 */
enum ib_mr_reason ib_mr_check(struct ib_pd *pd, u32 key, u64 iova, u64 length, int access,
			      bool remote)
{
	enum ib_mr_reason why = IB_MR_WHY_OK;
	struct ibmr_dev *dev;

	if (no_device(pd))
		return IB_MR_WHY_NULL_ARG;
	rcu_read_lock();
	dev = ibmr_dev_rcu(pd->device);
	if (!reg_hit(dev, pd, key, iova, length, access, remote))
		why = check_slow(dev, pd, key, iova, length, access, remote);
	rcu_read_unlock();
	return why;
}
EXPORT_SYMBOL(ib_mr_check);

/*
 * The run that holds the byte at @off of @pv; what it has from there on goes to *@addr and *@len.
 */
static inline size_t run_at(const struct ibmr_pagevec *pv, u64 off, u64 *addr, u64 *len)
{
	size_t i = ibmr_pagevec_find(pv, off);

	*addr = pv->runs[i].addr + (off - pv->runs[i].start);
	*len = ibmr_run_end(pv, i) - off;
	return i;
}

/* Runs of [@off, @off + @length), which is inside; -ENOSPC when there are more than @max. */
static int pv_runs(const struct ibmr_pagevec *pv, u64 off, u64 length, struct ib_mr_run *runs,
		   int max)
{
	u64 addr, len;
	size_t i;
	int n = 0;

	i = run_at(pv, off, &addr, &len);
	for (;;) {
		if (n >= max)
			return -ENOSPC;
		runs[n].addr = addr;
		if (length <= len) {
			runs[n].len = length;
			return n + 1;
		}
		runs[n++].len = len;
		length -= len;
		i++;
		addr = pv->runs[i].addr;
		len = ibmr_run_len(pv, i);
	}
}

static noinline int translate_slow(struct ibmr_dev *dev, const struct ib_pd *pd, u32 key, u64 iova,
				   u64 length, struct ib_mr_run *runs, int max)
{
	enum ib_mr_reason why = IB_MR_WHY_UNKNOWN_KEY;
	struct ibmr_view v;
	int n = 0;

	if (!dev || READ_ONCE(dev->gone))
		why = IB_MR_WHY_NO_DEVICE;
	else if (!length)
		return 0;
	else if (ibmr_view_find(dev, key, &v))
		why = ibmr_view_verdict(&v, pd, key, iova, length, 0, key != v.lkey);
	if (!why && v.opaque)
		why = IB_MR_WHY_WRONG_KIND;
	if (!why && v.pv) {
		n = pv_runs(v.pv, v.skip + (iova - v.iova), length, runs, max);
	} else if (!why) {	/* a DMA MR is its addresses */
		n = max < 1 ? -ENOSPC : 1;
		if (n == 1)
			runs[0] = (struct ib_mr_run){ .addr = iova, .len = length };
	}
	if (n < 0)
		why = IB_MR_WHY_RUNS_FULL;
	if (why)
		n = ibmr_refuse(dev, why, "ib_mr_translate(key %#x, iova %#llx, length %llu)", key,
				iova, length);
	return n;
}

/* Not to be had, or of several runs. */
static noinline int translate_closer(struct ib_pd *pd, u32 key, u64 iova, u64 length,
				     struct ib_mr_run *runs, int max)
{
	struct ibmr_dev *dev;
	struct ibmr_reg *reg;
	int n = -ENOSPC;

	if (no_device(pd))
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "ib_mr_translate");
	rcu_read_lock();
	dev = ibmr_dev_rcu(pd->device);
	reg = reg_hit(dev, pd, key, iova, length, 0, false);
	if (likely(reg && reg->mem && !reg->mem->by_driver && length))
		n = pv_runs(&reg->mem->pv, iova - reg->iova, length, runs, max);
	if (unlikely(n < 0))
		n = translate_slow(dev, pd, key, iova, length, runs, max);
	rcu_read_unlock();
	return n;
}

/*
 * In a region of several runs. Preemption is off, and on again when it returns. The arguments stay
 * where those of ib_mr_translate() were, so that none has to be moved or kept.
 */
static noinline int translate_one_of(const struct ibmr_reg *reg, u32 key, u64 iova, u64 length,
				     struct ib_mr_run *runs, int max)
{
	const struct ibmr_pagevec *pv = &reg->mem->pv;
	const struct ibmr_run *last = pv->runs + pv->nr - 1, *run;
	u64 off = iova - reg->iova;
	struct ib_pd *pd;

	OPTIMIZER_HIDE_VAR(off);	/* one register for it, not two */
	run = pv->runs + ibmr_pagevec_find(pv, off);
	if (unlikely(run != last && length > run[1].start - off)) {
		pd = reg->pd;		/* the region may be gone once preemption is on */
		preempt_enable();
		return translate_closer(pd, key, iova, length, runs, max);
	}
	runs->addr = run->addr + (off - run->start);
	runs->len = length;
	preempt_enable();
	return 1;
}

/**
 * ib_mr_translate() - the memory behind a key and an address
 * @pd: PD of the region
 * @key: its lkey or rkey
 * @iova: address of the first byte
 * @length: bytes
 * @runs: filled with the stretches, in order
 * @max_runs: how many fit
 *
 * Contiguous memory is one run however long it is. The keys of FMRs and windows, and of user memory
 * on iWARP, are refused: what is behind them is known to their owner, and to the device. No rights
 * are looked at. The runs stay good for as long as the caller knows that nobody deregisters the
 * region; to touch the bytes without that knowledge use ib_mr_copy_to() and ib_mr_copy_from().
 *
 * Context: any but NMI; does not sleep. O(log runs) plus the runs returned.
 * Return: number of runs, 0 for a @length of 0; -ENOSPC when there are more; -EINVAL for a key that
 * is unknown, stale or dead; -EACCES in another PD; -ERANGE outside; -ENODEV.
 */
int ib_mr_translate(struct ib_pd *pd, u32 key, u64 iova, u64 length, struct ib_mr_run *runs,
		    int max_runs)
{
	const struct ibmr_pagevec *pv;
	struct ibmr_keyed *keyed;
	struct ibmr_dev *dev;
	struct ibmr_reg *reg;
	u64 off, left;

	if (IS_ERR_OR_NULL(pd))
		return translate_closer(pd, key, iova, length, runs, max_runs);
	/*
	 * RCU waits for this, too. No function is called on the way, so nothing has to be kept over
	 * a call; another device than the first is left to who calls one.
	 */
	preempt_disable();
	dev = rcu_dereference_sched(ibmr_first_dev);
	if (unlikely(!dev || dev->ibdev != pd->device))
		goto closer;
	keyed = ibmr_key_find(dev, key);
	if (unlikely(!keyed || READ_ONCE(keyed->lkey) != key))
		goto closer;
	reg = container_of(keyed, struct ibmr_reg, keyed);
	pv = &reg->mem->pv;
	off = iova - reg->iova;		/* beyond all lengths for one before the start */
	left = reg->length;
	OPTIMIZER_HIDE_VAR(off);	/* else it is worked out twice */
	if (unlikely(reg->pd != pd || off >= left))
		goto closer;
	left -= off;
	if (unlikely(length > left || !length || max_runs < 1))
		goto closer;
	if (pv->nr != 1)
		return translate_one_of(reg, key, iova, length, runs, max_runs);
	runs->addr = pv->one.addr + off;
	runs->len = length;
	preempt_enable();
	return 1;

closer:
	preempt_enable();
	return translate_closer(pd, key, iova, length, runs, max_runs);
}
EXPORT_SYMBOL(ib_mr_translate);

/*
 * @from_region says which way. The device address is a kernel address: see its caller. The bytes
 * are the owner's and his peers', who may store to them meanwhile as while any device copies:
 * data_race().
 */
static void copy_run(u64 addr, void *buf, size_t len, bool from_region)
{
	void *mem = (void *)(uintptr_t)addr;

	data_race(from_region ? memcpy(buf, mem, len) : memcpy(mem, buf, len));
}

static enum ib_mr_reason view_copy(const struct ibmr_view *v, u64 off, void *buf, size_t length,
				   bool from_region)
{
	u64 addr, len;
	size_t i;

	if (!v->pv) {
		struct ibmr_pagevec all = { .length = length, .nr = 1 };

		all.one.addr = v->iova + off;
		all.runs = &all.one;
		if (!ibmr_pagevec_linear(&all))
			return IB_MR_WHY_NOT_LINEAR;
		copy_run(all.one.addr, buf, length, from_region);
		return IB_MR_WHY_OK;
	}
	i = run_at(v->pv, v->skip + off, &addr, &len);
	while (length > len) {
		copy_run(addr, buf, len, from_region);
		buf += len;
		length -= len;
		i++;
		addr = v->pv->runs[i].addr;
		len = ibmr_run_len(v->pv, i);
	}
	copy_run(addr, buf, length, from_region);
	return IB_MR_WHY_OK;
}

static int copy_region(struct ib_pd *pd, u32 key, u64 iova, void *buf, size_t length,
		       bool from_region, const char *call)
{
	int access = from_region ? 0 : IB_ACCESS_LOCAL_WRITE, err = 0;
	enum ib_mr_reason why = IB_MR_WHY_UNKNOWN_KEY;
	struct ibmr_dev *dev;
	struct ibmr_view v;

	if (no_device(pd) || (!buf && length))
		return ibmr_refuse(NULL, IB_MR_WHY_NULL_ARG, "%s", call);
	rcu_read_lock();
	dev = ibmr_dev_rcu(pd->device);
	if (!dev || READ_ONCE(dev->gone))
		why = IB_MR_WHY_NO_DEVICE;
	else if (!length)
		why = IB_MR_WHY_OK;
	else if (!ib_uses_virt_dma(pd->device))
		why = IB_MR_WHY_WRONG_KIND;	/* a DMA address is nothing for the CPU */
	else if (ibmr_view_find(dev, key, &v))
		why = ibmr_view_verdict(&v, pd, key, iova, length, access, false);
	if (!why && length && v.opaque)
		why = IB_MR_WHY_WRONG_KIND;
	/* No user can be had any more: it is being deregistered. */
	if (!why && length && v.reg && !ibmr_reg_get(v.reg))
		why = IB_MR_WHY_DEREGISTERED;
	if (!why && length) {
		why = view_copy(&v, iova - v.iova, buf, length, from_region);
		if (v.reg)
			ibmr_reg_put(v.reg);
	}
	if (why)
		err = ibmr_refuse(dev, why, "%s(key %#x, iova %#llx, length %zu)", call, key, iova,
				  length);
	rcu_read_unlock();
	return err;
}

/**
 * ib_mr_copy_to() - store bytes into a region, as a local request would
 * @pd: PD of the region
 * @key: its lkey
 * @iova: address of the first byte
 * @buf: from here
 * @length: bytes
 *
 * Needs IB_ACCESS_LOCAL_WRITE. Either all bytes are copied or none. A deregistration at the same
 * time waits for the copy, or the copy finds the key dead. Works on devices that address memory as
 * the CPU does (soft RDMA).
 *
 * Context: any but NMI; does not sleep. The copy is made in an RCU read section.
 * Return: 0; -EINVAL for a key that is unknown, stale or dead, and on other devices; -EACCES in
 * another PD or without the right; -ERANGE outside; -ENODEV.
 */
int ib_mr_copy_to(struct ib_pd *pd, u32 key, u64 iova, const void *buf, size_t length)
{
	return copy_region(pd, key, iova, (void *)buf, length, false, __func__);
}
EXPORT_SYMBOL(ib_mr_copy_to);

/**
 * ib_mr_copy_from() - fetch bytes from a region, as a local request would
 * @pd: PD of the region
 * @key: its lkey
 * @iova: address of the first byte
 * @buf: to here
 * @length: bytes
 *
 * As ib_mr_copy_to(), but needs no right.
 *
 * Context: any but NMI; does not sleep.
 * Return: as ib_mr_copy_to().
 */
int ib_mr_copy_from(struct ib_pd *pd, u32 key, u64 iova, void *buf, size_t length)
{
	return copy_region(pd, key, iova, buf, length, true, __func__);
}
EXPORT_SYMBOL(ib_mr_copy_from);
