// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Attacks by messages that stop in their middle, or come twice, while the owner takes back what
 * they are about. The owner's calls have to end, and soon; and what comes after them must reach
 * nothing.
 *
 * A READ that is sent again is served by soft RoCE from what it remembers of it: the key must still
 * be the MR's, its PD and length are not looked at. On 6.1 it does not look either whether it could
 * copy the bytes: what it sends then are those that its packet buffer held before. They are its
 * own, not the owner's memory; they are counted apart.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "adv.h"

static const uint32_t writable[] = {
	VIC_WRITE, VIC_FMR, VIC_POOL, VIC_CACHED, VIC_WINDOW1, VIC_WINDOW2, VIC_ARENA,
};

#define WRITABLE (sizeof(writable) / sizeof(writable[0]))

static bool open_raw(struct adv *adv, struct raw *raw)
{
	if (!raw_open(adv, raw, 2))
		return true;
	amiss(adv, "no packet socket");
	return false;
}

static void first(struct raw *raw, const struct victim_info *a, const uint8_t *bytes)
{
	uint8_t reth[16];

	raw_reth(reth, a->iova, a->key, 3 * RAW_MTU);
	raw_send(raw, OP_WRITE_FIRST, raw->psn, reth, 16, bytes, RAW_MTU);
	if (raw->reliable && !raw_acked(raw, 5000))
		amiss(raw->adv, "the FIRST was refused");
	if (!raw->reliable)
		usleep(20000);
}

static void regrant(struct adv *adv, uint32_t asset)
{
	owner_do(adv, asset, VICTIM_GRANT);
	owner_do(adv, asset, VICTIM_REUSE);
	owner_info(adv);
}

/* FIRST; the owner takes it back and uses the memory for something else; MIDDLE, LAST. */
static void half_write(struct adv *adv, bool reliable)
{
	static const enum victim_do ops[] = { VICTIM_REVOKE, VICTIM_RELEASE };
	uint8_t bytes[RAW_MTU];
	double took, longest = 0;
	struct raw raw;
	uint32_t i, k;

	if (!open_raw(adv, &raw))
		return;
	memset(bytes, 0x66, sizeof(bytes));
	for (i = 0; i < 2 * WRITABLE; i++) {
		const uint32_t asset = writable[i / 2];

		raw_connect(&raw, reliable);
		first(&raw, &adv->asset[asset], bytes);
		took = owner_do(adv, asset, ops[i % 2]);
		longest = took > longest ? took : longest;
		owner_do(adv, asset, VICTIM_REUSE);
		for (k = 1; k < 3; k++) {
			raw_send(&raw, k == 1 ? OP_WRITE_MIDDLE : OP_WRITE_LAST, raw.psn + k, NULL,
				 0, bytes, RAW_MTU);
			adv->attempts++;
			if (reliable && raw_acked(&raw, 300)) {
				adv->let_in++;
				note(adv, "%s: the rest was acknowledged", asset_name(asset));
			} else {
				adv->refused++;
			}
		}
		if (!reliable)
			usleep(20000);
		adv->let_in += owner_audit(adv, true);
		regrant(adv, asset);
	}
	note(adv, "the owner's calls took at most %.0f ms", longest * 1e3);
}

void attack_half_write(struct adv *adv)
{
	half_write(adv, true);
}

void attack_half_write_uc(struct adv *adv)
{
	half_write(adv, false);
}

/* A FIRST, of a SEND or a WRITE, and then no more: the connection goes, or stays as it is. */
void attack_half_gone(struct adv *adv)
{
	uint8_t bytes[RAW_MTU];
	double took, longest = 0;
	struct raw raw;
	uint32_t i;

	if (!open_raw(adv, &raw))
		return;
	memset(bytes, 0x66, sizeof(bytes));
	for (i = 0; i < 4 * WRITABLE; i++) {
		const uint32_t asset = writable[i / 4];

		raw_connect(&raw, true);
		if (i & 1)
			raw_send(&raw, OP_SEND_FIRST, raw.psn, NULL, 0, bytes, RAW_MTU);
		else
			first(&raw, &adv->asset[asset], bytes);
		adv->attempts++;
		if (i & 2)
			ioctl(adv->fd, VICTIM_DISCONNECT, raw.slot);
		took = owner_do(adv, asset, VICTIM_REVOKE);
		longest = took > longest ? took : longest;
		owner_do(adv, asset, VICTIM_REUSE);
		adv->let_in += owner_audit(adv, true);
		adv->refused++;
		regrant(adv, asset);
	}
	note(adv, "the owner's calls took at most %.0f ms", longest * 1e3);
}

#define READ_PACKETS	4

struct seen {
	unsigned int packets, fresh, before, zero;
};

/* What answers a READ, until nothing more comes. */
static void look(struct raw *raw, uint32_t asset, uint32_t generation, int ms, struct seen *seen)
{
	struct answer a;
	size_t i;

	while ((a = raw_answer(raw, ms)).opcode >= 0) {
		if (a.opcode < OP_READ_FIRST || a.opcode > OP_READ_ONLY)
			return;
		seen->packets++;
		seen->fresh += secrets(a.bytes, a.length, asset, generation);
		seen->before += !!secrets(a.bytes, a.length, asset, 0);
		for (i = 0; i < a.length && !a.bytes[i]; i++)
			;
		seen->zero += i == a.length;
		if (a.opcode >= OP_READ_FIRST + 2)	/* LAST or ONLY */
			return;
	}
}

/* READ, answered; the key goes, the memory is used for something else; the READ once more. */
static void read_again(struct adv *adv, enum victim_do op)
{
	struct seen seen = {}, legal = {};
	uint8_t reth[16];
	struct raw raw;
	uint32_t i, k;

	if (!open_raw(adv, &raw))
		return;
	for (i = 0; i < WRITABLE; i++) {
		const uint32_t asset = writable[i];
		uint32_t generation, key;
		uint64_t iova;

		for (k = 0; k < READ_PACKETS; k++) {
			const struct victim_info *a = &adv->asset[asset];

			key = a->key;
			iova = a->iova;
			generation = a->generation;
			raw_connect(&raw, true);
			raw_reth(reth, iova, key, READ_PACKETS * RAW_MTU);
			raw_send(&raw, OP_READ, raw.psn, reth, 16, NULL, 0);
			legal = (struct seen){};
			look(&raw, asset, generation, 5000, &legal);
			if (legal.packets != READ_PACKETS || !legal.fresh)
				amiss(adv, "%s: a good READ brought %u packets",
				      asset_name(asset), legal.packets);
			owner_do(adv, asset, op);
			owner_do(adv, asset, VICTIM_REUSE);
			raw_reth(reth, iova + k * RAW_MTU, key, (READ_PACKETS - k) * RAW_MTU);
			raw_send(&raw, OP_READ, raw.psn + k, reth, 16, NULL, 0);
			adv->attempts++;
			look(&raw, asset, generation + 1, 300, &seen);
			regrant(adv, asset);
		}
	}
	adv->let_in = seen.fresh;
	adv->refused = adv->attempts;
	if (seen.packets)
		note(adv, "the driver answered with %u packets: %u of zeros, %u of its stale buffers, "
		     "%u of them with bytes read before", seen.packets, seen.zero,
		     seen.packets - seen.zero, seen.before);
	else
		note(adv, "no answer but a refusal");
}

void attack_read_again(struct adv *adv)
{
	read_again(adv, VICTIM_RELEASE);
}

void attack_read_fenced(struct adv *adv)
{
	read_again(adv, VICTIM_REVOKE);
}

/* A READ that is being answered just when its key goes. */
void attack_read_race(struct adv *adv)
{
	struct seen seen = {};
	uint8_t reth[16];
	struct raw raw;
	uint32_t i;

	if (!open_raw(adv, &raw))
		return;
	for (i = 0; i < 140; i++) {
		const uint32_t asset = writable[i % WRITABLE];
		const struct victim_info *a = &adv->asset[asset];
		uint32_t generation = a->generation;

		raw_connect(&raw, true);
		raw_reth(reth, a->iova, a->key, 8 * RAW_MTU);
		raw_send(&raw, OP_READ, raw.psn, reth, 16, NULL, 0);
		owner_do(adv, asset, i & 1 ? VICTIM_REVOKE : VICTIM_RELEASE);
		owner_do(adv, asset, VICTIM_REUSE);
		adv->attempts++;
		/* A release lets a copy go on that has begun; after it, pages are given away. */
		look(&raw, asset, generation + 1, 100, &seen);
		regrant(adv, asset);
	}
	adv->let_in = seen.fresh;
	adv->refused = adv->attempts;
	note(adv, "%u packets came, all of bytes from before", seen.packets);
}

/* --- an owner that is a process --- */

#define OWNED	(4 * 4096)

static void owner_process(int to)
{
	uint8_t *memory = mmap(NULL, OWNED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);
	struct victim_user user = { .address = (uintptr_t)memory + 100, .length = OWNED - 200 };
	int fd = open("/dev/" VICTIM_DEVICE, O_RDWR);

	memset(memory, 0x77, OWNED);
	if (fd < 0 || ioctl(fd, VICTIM_USER, &user))
		_exit(1);
	if (write(to, &user, sizeof(user)) != sizeof(user))
		_exit(1);
	for (;;)
		pause();
}

/* Killed in the middle of a message into its memory. */
void attack_owner_dies(struct adv *adv)
{
	struct victim_info a = {};
	struct victim_user user;
	uint8_t bytes[RAW_MTU];
	double begin, longest = 0;
	struct raw raw;
	int ends[2], i, status;
	pid_t pid;

	if (!open_raw(adv, &raw))
		return;
	memset(bytes, 0x66, sizeof(bytes));
	for (i = 0; i < 8; i++) {
		if (pipe(ends))
			return;
		pid = fork();
		if (!pid)
			owner_process(ends[1]);
		close(ends[1]);
		if (read(ends[0], &user, sizeof(user)) != sizeof(user)) {
			amiss(adv, "the process could not register");
			return;
		}
		a.iova = user.iova;
		a.key = user.key;
		raw_connect(&raw, true);
		first(&raw, &a, bytes);
		begin = now();
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		if (now() - begin > longest)
			longest = now() - begin;
		close(ends[0]);
		raw_send(&raw, OP_WRITE_MIDDLE, raw.psn + 1, NULL, 0, bytes, RAW_MTU);
		adv->attempts++;
		if (raw_acked(&raw, 300)) {
			adv->let_in++;
			note(adv, "the rest was acknowledged");
		} else {
			adv->refused++;
		}
		must_refuse(adv, IBV_WR_RDMA_READ, 64, a.iova, a.key);
		must_refuse(adv, IBV_WR_RDMA_WRITE, 64, a.iova, a.key);
	}
	note(adv, "the process was gone in at most %.0f ms", longest * 1e3);
}
