/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_XLATE_H
#define IBMR_XLATE_H

#include "base/keys.h"
#include "mr/region.h"

/**
 * struct ibmr_view - what a key means now, whatever kind of object is behind it
 * @pd: PD it is good in
 * @lkey: what the key has to be for local use; 0 where there is no such use
 * @rkey: for remote use, likewise
 * @iova: address of the first byte
 * @length: bytes
 * @access: rights
 * @mapped: it leads to memory
 * @invalidated: a work request made it dead
 * @pv: the memory; NULL where an iova is a device address itself
 * @skip: offset in @pv of the first byte
 * @reg: who keeps the memory in place; NULL where RCU does
 * @opaque: only the device knows the memory (FMRs, windows, user memory on iWARP)
 *
 * A snapshot, good until the RCU read section ends, in which it was taken.
 */
struct ibmr_view {
	const struct ib_pd *pd;
	u32 lkey;
	u32 rkey;
	u64 iova;
	u64 length;
	int access;
	bool mapped;
	bool invalidated;
	const struct ibmr_pagevec *pv;
	u64 skip;
	struct ibmr_reg *reg;
	bool opaque;
};

void ibmr_armed_view(struct ibmr_keyed *keyed, struct ibmr_view *v);

static inline void ibmr_reg_view(struct ibmr_reg *reg, struct ibmr_view *v)
{
	v->pd = reg->pd;
	v->lkey = reg->lkey;
	v->rkey = reg->rkey;
	v->iova = reg->iova;
	v->length = reg->length;
	v->access = reg->access;
	v->mapped = true;
	v->invalidated = READ_ONCE(reg->invalidated);
	v->pv = reg->mem ? &reg->mem->pv : NULL;
	v->skip = 0;
	v->reg = reg;
	v->opaque = reg->mem && reg->mem->by_driver;
}

/* False when the key's index leads to nothing. Under RCU. */
static inline bool ibmr_view_find(struct ibmr_dev *dev, u32 key, struct ibmr_view *v)
{
	struct ibmr_keyed *keyed = ibmr_key_find(dev, key);

	if (!keyed)
		return false;
	if (likely(keyed->kind == IBMR_KEYED_REG))
		ibmr_reg_view(container_of(keyed, struct ibmr_reg, keyed), v);
	else
		ibmr_armed_view(keyed, v);
	return true;
}

enum ib_mr_reason ibmr_view_verdict(const struct ibmr_view *v, const struct ib_pd *pd, u32 key,
				    u64 iova, u64 length, int access, bool remote);

#endif /* IBMR_XLATE_H */
