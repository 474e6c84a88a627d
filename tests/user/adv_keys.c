// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Attacks by keys: guessed ones, other people's, and ones that were good once. A key is an index of
 * 24 bits and a variant of 8. Whatever key is tried, it is at an address where that kind of memory
 * is, so that only the key stands in the way.
 */
#include <stdlib.h>
#include "adv.h"

#define LENGTH	64

/* What is granted works: else no refusal would prove anything. */
void attack_nothing(struct adv *adv)
{
	all_work(adv);
	note(adv, "READ and WRITE of what is granted, and back");
}

static uint32_t collect(uint32_t *to, uint32_t key, int first, int last, uint32_t from, uint32_t n)
{
	uint32_t count = 0, v;
	int i;

	for (i = first; i <= last; i++)
		for (v = 0; v < n; v++)
			to[count++] = (key & ~0xffU) + i * 0x100 + ((from + v) & 0xff);
	return count;
}

/* Without the keys that are good at @asset's address. */
static uint32_t without(const struct adv *adv, uint32_t *keys, uint32_t count, uint32_t asset)
{
	uint32_t i, left = 0;

	for (i = 0; i < count; i++)
		if (keys[i] != adv->asset[asset].key)
			keys[left++] = keys[i];
	return left;
}

void attack_variants(struct adv *adv)
{
	uint32_t keys[256], asset, count;
	struct link uc;

	link_open(adv, &uc, false, 1);
	for (asset = 0; asset < VIC_ASSETS; asset++) {
		count = collect(keys, adv->asset[asset].key, 0, 0, 0, 256);
		if (asset != VIC_LOCAL && asset != VIC_OTHER && asset != VIC_ATOMIC &&
		    asset != VIC_READ)
			count = without(adv, keys, count, asset);
		flood(&uc, keys, count, adv->asset[asset].iova, LENGTH);
	}
	link_close(&uc);
	adv->refused = adv->attempts;
	note(adv, "all 256 variants of every live index");
}

void attack_neighbours(struct adv *adv)
{
	static uint32_t keys[33 * 256];
	static const uint32_t near[] = { VIC_WRITE, VIC_POOL, VIC_WINDOW1 };
	uint32_t i, count;
	struct link uc;

	link_open(adv, &uc, false, 1);
	for (i = 0; i < 3; i++) {
		count = collect(keys, adv->asset[near[i]].key, -16, 16, 0, 256);
		count = without(adv, keys, count, near[i]);
		flood(&uc, keys, count, adv->asset[near[i]].iova, LENGTH);
	}
	link_close(&uc);
	adv->refused = adv->attempts;
	note(adv, "all variants of 16 indices on both sides");
}

void attack_random(struct adv *adv)
{
	static uint32_t keys[4000];
	uint32_t i;
	struct link uc;

	for (i = 0; i < 4000; i++)
		keys[i] = draw() >> (i % 3 * 4);
	link_open(adv, &uc, false, 1);
	flood(&uc, keys, without(adv, keys, 4000, VIC_WRITE), adv->asset[VIC_WRITE].iova, LENGTH);
	link_close(&uc);
	adv->refused = adv->attempts;
}

static const enum ibv_wr_opcode codes[] = {
	IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD,
};

static uint32_t length_of(enum ibv_wr_opcode code)
{
	return code == IBV_WR_ATOMIC_FETCH_AND_ADD ? 8 : 3000;
}

void attack_guess_rc(struct adv *adv)
{
	uint32_t asset, i, key;

	for (asset = 0; asset < VIC_ASSETS; asset++)
		for (i = 0; i < 3; i++) {
			key = adv->asset[asset].key ^ (1 + draw() % 255);
			must_refuse(adv, codes[i], length_of(codes[i]), adv->asset[asset].iova, key);
		}
	note(adv, "READ, WRITE and atomic, a connection for each");
}

/* Keys that are good, but not for us: of another PD, and local ones. */
void attack_foreign(struct adv *adv)
{
	static const uint32_t foreign[] = { VIC_OTHER, VIC_LOCAL };
	uint32_t i, k;

	for (i = 0; i < 2; i++)
		for (k = 0; k < 3; k++)
			must_refuse(adv, codes[k], length_of(codes[k]),
				    adv->asset[foreign[i]].iova, adv->asset[foreign[i]].key);
	note(adv, "another PD's key, and a local one");
}

/* The right key, for what it does not allow. */
void attack_rights(struct adv *adv)
{
	uint32_t asset;

	for (asset = 0; asset < VIC_ASSETS; asset++) {
		const struct victim_info *a = &adv->asset[asset];

		if (asset == VIC_OTHER || asset == VIC_LOCAL)
			continue;
		if (!may_write(a))
			must_refuse(adv, IBV_WR_RDMA_WRITE, 3000, a->iova, a->key);
		if (!(a->access & IBV_ACCESS_REMOTE_ATOMIC))
			must_refuse(adv, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, a->iova, a->key);
	}
}

static const struct {
	uint32_t asset, count;
} retire[] = {
	{ VIC_POOL, 12000 }, { VIC_WINDOW1, 4000 }, { VIC_CACHED, 200 }, { VIC_FMR, 300 },
	{ VIC_WINDOW2, 300 }, { VIC_READ, 200 }, { VIC_WRITE, 200 },
};

#define AT_ONCE	400

/*
 * Keys that were good a moment ago, by the thousand: those of the last batch, and some of long
 * before, which the device has under another variant by now, or not at all.
 */
void attack_retired(struct adv *adv)
{
	static uint32_t keys[AT_ONCE], old[AT_ONCE];
	uint32_t i, k, n, left, olds = 0;
	struct link uc;

	link_open(adv, &uc, false, 1);
	for (i = 0; i < sizeof(retire) / sizeof(retire[0]); i++) {
		for (left = retire[i].count; left; left -= n) {
			n = left < AT_ONCE ? left : AT_ONCE;
			owner_churn(adv, retire[i].asset, keys, n);
			/* The memory is somebody else's now. */
			owner_do(adv, retire[i].asset, VICTIM_REUSE);
			flood(&uc, keys, n, adv->asset[retire[i].asset].iova, LENGTH);
			for (k = 0; k < n && olds < AT_ONCE; k += 64)
				old[olds++] = keys[k];
		}
		flood(&uc, old, olds, adv->asset[retire[i].asset].iova, LENGTH);
	}
	link_close(&uc);
	for (i = 0; i < sizeof(retire) / sizeof(retire[0]); i++)
		owner_do(adv, retire[i].asset, VICTIM_GRANT);
	owner_info(adv);
	adv->refused = adv->attempts;
	note(adv, "of pools, FMRs, windows and regions");
}

void attack_retired_rc(struct adv *adv)
{
	uint32_t keys[8], i, k;

	for (i = 0; i < sizeof(retire) / sizeof(retire[0]); i++) {
		owner_churn(adv, retire[i].asset, keys, 8);
		for (k = 0; k < 8; k++)
			must_refuse(adv, codes[k % 3], length_of(codes[k % 3]),
				    adv->asset[retire[i].asset].iova, keys[k]);
		owner_do(adv, retire[i].asset, VICTIM_GRANT);
	}
	owner_info(adv);
}
