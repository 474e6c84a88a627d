// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Attacks by addresses and lengths, with a key that is good: beside what it grants, past 2^64, of
 * no bytes, of more bytes than there are; and atomics where none may be. What libibverbs does not
 * send is made up.
 */
#include <arpa/inet.h>
#include <string.h>
#include "adv.h"

struct place {
	uint64_t at;
	uint32_t length;
};

#define MOST_PLACES 16

/* Places beside [iova, iova + length). */
static int places(const struct victim_info *a, struct place *to)
{
	const uint64_t end = a->iova + a->length;
	int n = 0;

#define PLACE(_at, _length) (to[n++] = (struct place){ _at, _length })
	PLACE(a->iova - 1, 1);
	PLACE(a->iova - 1, 2);
	PLACE(a->iova - 8, 8);
	PLACE(a->iova - 4096, 4096);
	PLACE(end, 1);
	PLACE(end - 1, 2);
	PLACE(end, 4096);
	PLACE(a->iova, a->length + 1);
	PLACE(a->iova - 1, a->length + 2);
	PLACE(0, 64);
	PLACE(0 - (uint64_t)1, 1);
	PLACE(0 - (uint64_t)64, 64);
	PLACE(0 - (uint64_t)64, 128);		/* past 2^64 */
	PLACE(0 - (uint64_t)8, 4096);
	PLACE(a->iova + ((uint64_t)1 << 32), 64);
	PLACE(a->iova ^ (uint64_t)1 << 63, 64);
#undef PLACE
	return n;
}

void attack_range(struct adv *adv)
{
	struct place place[MOST_PLACES];
	uint32_t asset;
	int i, n;

	for (asset = 0; asset < VIC_ASSETS; asset++) {
		const struct victim_info *a = &adv->asset[asset];

		if (!may_read(a) || asset == VIC_OTHER)
			continue;
		n = places(a, place);
		for (i = 0; i < n; i++)
			must_refuse(adv, IBV_WR_RDMA_READ, place[i].length, place[i].at, a->key);
	}
	note(adv, "READ beside every grant, and past 2^64");
}

void attack_range_uc(struct adv *adv)
{
	struct place place[MOST_PLACES];
	uint32_t asset;
	struct link uc;
	int i, n;

	link_open(adv, &uc, false, 1);
	for (asset = 0; asset < VIC_ASSETS; asset++) {
		const struct victim_info *a = &adv->asset[asset];

		if (!may_write(a) || asset == VIC_OTHER)
			continue;
		n = places(a, place);
		for (i = 0; i < n; i++)
			flood(&uc, &a->key, 1, place[i].at, place[i].length);
	}
	link_close(&uc);
	adv->refused = adv->attempts;
	note(adv, "WRITE beside every grant, and past 2^64");
}

/* No byte is touched, so the specification lets it pass whatever the key (C9-88). */
void attack_zero(struct adv *adv)
{
	uint32_t keys[4] = { 0, 0xffffffff, draw(), 0 }, i, passed = 0;
	struct link link;
	int status;

	keys[3] = adv->asset[VIC_OTHER].key;
	for (i = 0; i < 8; i++) {
		memset(adv->buf, CANARY, 64);
		link_open(adv, &link, true, 0);
		status = link_do(&link, i & 1 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE, 0,
				 adv->asset[VIC_OTHER].iova, keys[i / 2]);
		link_close(&link);
		adv->attempts++;
		passed += status == IBV_WC_SUCCESS;
		if (adv->buf[0] != CANARY)
			adv->let_in++;
	}
	adv->refused = adv->attempts - passed;
	note(adv, "%u passed, as the specification has it, and touched nothing", passed);
}

static void expect_no_ack(struct raw *raw, const char *what)
{
	struct answer a = raw_answer(raw, 1000);

	raw->adv->attempts++;
	if (a.opcode == OP_ATOMIC_ACK || (a.opcode == OP_ACK && !(a.syndrome & 0x60)) ||
	    (a.opcode >= OP_READ_FIRST && a.opcode <= OP_READ_ONLY)) {
		raw->adv->let_in++;
		note(raw->adv, "%s: acknowledged", what);
		return;
	}
	raw->adv->refused++;
}

void attack_lengths(struct adv *adv)
{
	static const uint32_t lies[] = {
		0xffffffff, 0x80000001, 0x80000000, 0x7fffffff, 0xfffffc00, VIC_PAGES * VIC_PAGE + 1,
		100000,
	};
	uint8_t reth[16], bytes[RAW_MTU];
	const uint32_t asset[] = { VIC_WRITE, VIC_POOL, VIC_FMR, VIC_WINDOW1, VIC_ARENA };
	struct raw raw;
	uint32_t i, k;

	if (raw_open(adv, &raw, 2)) {
		amiss(adv, "no packet socket");
		return;
	}
	memset(bytes, 0x66, sizeof(bytes));
	for (i = 0; i < 5; i++)
		for (k = 0; k < sizeof(lies) / 4; k++) {
			const struct victim_info *a = &adv->asset[asset[i]];

			raw_connect(&raw, true);
			raw_reth(reth, a->iova + (k & 1 ? 8 : 0), a->key, lies[k]);
			raw_send(&raw, OP_WRITE_FIRST, raw.psn, reth, 16, bytes, RAW_MTU);
			expect_no_ack(&raw, "WRITE FIRST of too much");
			raw_connect(&raw, true);
			raw_send(&raw, OP_READ, raw.psn, reth, 16, NULL, 0);
			expect_no_ack(&raw, "READ of too much");
			/* as much as 2^64 takes, and some more */
			raw_connect(&raw, true);
			raw_reth(reth, 0 - (uint64_t)lies[k], a->key, lies[k]);
			raw_send(&raw, OP_READ, raw.psn, reth, 16, NULL, 0);
			expect_no_ack(&raw, "READ up to 2^64");
		}
	/* The packet has less, or more, than it says. */
	for (i = 0; i < 4; i++) {
		const struct victim_info *a = &adv->asset[VIC_WRITE];

		raw_connect(&raw, true);
		raw_reth(reth, a->iova, a->key, i & 1 ? 64 : 1000);
		raw_send(&raw, OP_WRITE_ONLY, raw.psn, reth, 16, bytes, i & 1 ? 68 : 500);
		expect_no_ack(&raw, "WRITE ONLY of another length");
		/* And one with nothing before it. */
		raw_connect(&raw, true);
		raw_send(&raw, i & 1 ? OP_WRITE_MIDDLE : OP_WRITE_LAST, raw.psn, NULL, 0, bytes,
			 RAW_MTU);
		expect_no_ack(&raw, "WRITE MIDDLE of nothing");
	}
	note(adv, "packets that lie about their length");
}

/* A message that goes on past what it said, at the end of what is granted. */
void attack_overrun(struct adv *adv)
{
	const uint32_t asset[] = { VIC_WRITE, VIC_POOL, VIC_WINDOW1, VIC_WINDOW2, VIC_FMR };
	uint8_t reth[16], bytes[RAW_MTU];
	struct victim_audit audit;
	struct raw raw;
	uint32_t i, k;

	if (raw_open(adv, &raw, 2)) {
		amiss(adv, "no packet socket");
		return;
	}
	for (i = 0; i < 5; i++) {
		const struct victim_info *a = &adv->asset[asset[i]];
		const uint32_t room = 1500;

		for (k = 0; k < 2; k++) {	/* a MIDDLE or a LAST, whole */
			owner_info(adv);
			other_bytes(a, a->length - room, bytes, RAW_MTU);
			raw_connect(&raw, true);
			raw_reth(reth, a->iova + a->length - room, a->key, room);
			raw_send(&raw, OP_WRITE_FIRST, raw.psn, reth, 16, bytes, RAW_MTU);
			if (!raw_acked(&raw, 5000))
				amiss(adv, "%s: the FIRST was refused", asset_name(asset[i]));
			raw_send(&raw, k ? OP_WRITE_LAST : OP_WRITE_MIDDLE, raw.psn + 1, NULL, 0,
				 bytes, RAW_MTU);
			expect_no_ack(&raw, "a packet past the end");
			audit = owner_look(adv, asset[i]);
			if (audit.outside || audit.inside != RAW_MTU) {
				adv->let_in++;
				note(adv, "%s: %u bytes outside, %u inside",
				     asset_name(asset[i]), audit.outside, audit.inside);
			}
			owner_do(adv, asset[i], VICTIM_REUSE);
		}
	}
	note(adv, "the FIRST is carried out, what follows past the end is not");
}

static void atomic(struct raw *raw, int opcode, uint64_t va, uint32_t key, const char *what)
{
	uint8_t header[28] = {};
	uint64_t one = htobe64(1);

	va = htobe64(va);
	key = htonl(key);
	memcpy(header, &va, 8);
	memcpy(header + 8, &key, 4);
	memcpy(header + 12, &one, 8);
	raw_connect(raw, true);
	raw_send(raw, opcode, raw->psn, header, sizeof(header), NULL, 0);
	expect_no_ack(raw, what);
}

/* Not at a multiple of 8, across the end of a page, across either end. */
void attack_atomic(struct adv *adv)
{
	const struct victim_info *a = &adv->asset[VIC_ATOMIC];
	const uint64_t page_end = (a->iova | 4095) + 1, end = a->iova + a->length;
	struct raw raw;
	int i, k;

	if (raw_open(adv, &raw, 2)) {
		amiss(adv, "no packet socket");
		return;
	}
	for (k = OP_COMPARE_SWAP; k <= OP_FETCH_ADD; k++) {
		for (i = 1; i < 8; i++) {
			atomic(&raw, k, a->iova + i, a->key, "misaligned");
			atomic(&raw, k, page_end - i, a->key, "across a page's end");
			atomic(&raw, k, end - i, a->key, "across the end");
			atomic(&raw, k, a->iova - i, a->key, "across the start");
		}
		atomic(&raw, k, end, a->key, "past the end");
		atomic(&raw, k, a->iova - 8, a->key, "before the start");
		atomic(&raw, k, 0 - (uint64_t)8, a->key, "at 2^64");
		atomic(&raw, k, 0 - (uint64_t)4, a->key, "across 2^64");
	}
	note(adv, "misaligned, across a page's end, across both ends");
}
