// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ib_mr_adversary - a peer that means harm
 *
 * Runs attack after attack against the memory that ib_mr_victim.ko serves, and shows for each how
 * often it was tried, how often it was refused, and what was let in, which has to be nothing. After
 * each the owner looks at every byte, and what is granted must work as before. The exit status is 0
 * only when all was so. An attack that hangs, the owner's calls included, is ended by an alarm.
 */
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "adv.h"

#define ATTACK_SECONDS	120

static const struct attack attacks[] = {
	{ "what is granted works", attack_nothing },
	{ "guessed: every variant", attack_variants },
	{ "guessed: neighbours", attack_neighbours },
	{ "guessed: at random", attack_random },
	{ "guessed, reliable", attack_guess_rc },
	{ "keys of others", attack_foreign },
	{ "rights that are not granted", attack_rights },
	{ "retired keys", attack_retired },
	{ "retired keys, reliable", attack_retired_rc },
	{ "READ beside the bytes", attack_range },
	{ "WRITE beside the bytes", attack_range_uc },
	{ "no bytes, any key", attack_zero },
	{ "lengths that lie", attack_lengths },
	{ "messages that overrun", attack_overrun },
	{ "atomics where none may be", attack_atomic },
	{ "half a WRITE, owner takes back", attack_half_write },
	{ "the same, unreliable", attack_half_write_uc },
	{ "half a message, and gone", attack_half_gone },
	{ "half a WRITE, owner dies", attack_owner_dies },
	{ "READ while the key goes", attack_read_race },
	{ "READ again, key released", attack_read_again },
	{ "READ again, key fenced", attack_read_fenced },
	{ "invalidate: keys we have", attack_inv_known },
	{ "invalidate: keys of others", attack_inv_other },
	{ "invalidate: guessed", attack_inv_guess },
	{ "what is granted still works", attack_nothing },
};

static const char *running = "start";

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* xorshift: the same guesses each time. */
uint32_t draw(void)
{
	static uint64_t x = 0x9e3779b97f4a7c15;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x >> 16;
}

/* The last one stands; what is amiss stays. */
void note(struct adv *adv, const char *format, ...)
{
	va_list args;

	if (adv->wrong || adv->let_in > 1)
		return;
	va_start(args, format);
	vsnprintf(adv->detail, sizeof(adv->detail), format, args);
	va_end(args);
}

void amiss(struct adv *adv, const char *format, ...)
{
	va_list args;

	if (adv->wrong)
		return;
	va_start(args, format);
	vsnprintf(adv->detail, sizeof(adv->detail), format, args);
	va_end(args);
	adv->wrong = true;
}

/* --- the owner --- */

static void ask(struct adv *adv, unsigned long what, void *argument)
{
	if (!ioctl(adv->fd, what, argument))
		return;
	fprintf(stderr, "ib_mr_adversary: %s: the owner's call %lu failed: %s\n", running,
		what & 0xff, strerror(errno));
	exit(2);
}

void owner_info(struct adv *adv)
{
	uint32_t i;

	for (i = 0; i < VIC_ASSETS; i++) {
		adv->asset[i].asset = i;
		ask(adv, VICTIM_INFO, &adv->asset[i]);
	}
}

double owner_do(struct adv *adv, uint32_t asset, enum victim_do op)
{
	struct victim_op arg = { .asset = asset, .op = op };

	ask(adv, VICTIM_OP, &arg);
	return arg.ns / 1e9;
}

void owner_churn(struct adv *adv, uint32_t asset, uint32_t *keys, uint32_t count)
{
	struct victim_churn arg = { .asset = asset, .count = count, .keys = (uintptr_t)keys };

	ask(adv, VICTIM_CHURN, &arg);
}

struct victim_audit owner_look(struct adv *adv, uint32_t asset)
{
	struct victim_audit arg = { .asset = asset };

	ask(adv, VICTIM_AUDIT, &arg);
	return arg;
}

unsigned long owner_audit(struct adv *adv, bool tell)
{
	struct victim_audit audit;
	unsigned long changed = 0;
	uint32_t i;

	for (i = 0; i < VIC_ASSETS; i++) {
		audit = owner_look(adv, i);
		changed += audit.inside + audit.outside;
		if (tell && audit.inside + audit.outside)
			note(adv, "%s: %u granted bytes and %u canaries changed, from byte %u on",
			     asset_name(i), audit.inside, audit.outside, audit.first);
	}
	return changed;
}

struct victim_stats owner_stats(struct adv *adv)
{
	struct victim_stats stats;

	ask(adv, VICTIM_STATS, &stats);
	return stats;
}

/* Waits a while for the owner to be told of an invalidation. */
void owner_told(struct adv *adv, uint64_t before)
{
	int i;

	for (i = 0; i < 200 && owner_stats(adv).told == before; i++)
		usleep(1000);
}

const char *asset_name(uint32_t asset)
{
	static const char *const names[VIC_ASSETS] = {
		"region to read", "region to write", "region for atomics", "local region", "FMR",
		"pool", "pool with cache", "window type 1", "window type 2", "arena",
		"region of another PD",
	};

	return names[asset];
}

bool may_write(const struct victim_info *asset)
{
	return asset->access & IBV_ACCESS_REMOTE_WRITE;
}

bool may_read(const struct victim_info *asset)
{
	return asset->access & IBV_ACCESS_REMOTE_READ;
}

unsigned int secrets(const uint8_t *bytes, size_t length, uint32_t asset, uint32_t generation)
{
	unsigned int found = 0;
	uint64_t word;
	size_t i;

	for (i = 0; i + 8 <= length; i++) {
		memcpy(&word, bytes + i, 8);
		found += word >> 48 == VIC_MAGIC && (word >> 40 & 0xff) == asset &&
			 (word >> 24 & 0xffff) >= generation;
	}
	return found;
}

static uint8_t byte_of(const struct victim_info *a, uint64_t at)
{
	uint64_t word = victim_word(a->asset, a->generation, (a->start + at) / 8);

	return word >> 8 * ((a->start + at) % 8);
}

void other_bytes(const struct victim_info *asset, uint64_t at, uint8_t *bytes, uint32_t length)
{
	uint32_t i;

	for (i = 0; i < length; i++)
		bytes[i] = ~byte_of(asset, at + i);
}

static bool right_bytes(const struct adv *adv, const struct victim_info *a, uint32_t length)
{
	uint32_t i;

	for (i = 0; i < length && adv->buf[i] == byte_of(a, i); i++)
		;
	return i == length;
}

/* What we may read we can read, all of it, and what we may write we can write. */
void all_work(struct adv *adv)
{
	struct link link;
	uint32_t i;
	int status;

	owner_info(adv);
	link_open(adv, &link, true, 0);
	for (i = 0; i < VIC_ASSETS; i++) {
		const struct victim_info *a = &adv->asset[i];

		if (i == VIC_OTHER || !may_read(a))
			continue;
		memset(adv->buf, CANARY, a->length);
		status = link_do(&link, IBV_WR_RDMA_READ, a->length, a->iova, a->key);
		if (status || !right_bytes(adv, a, a->length)) {
			amiss(adv, "%s: what is granted cannot be read (%d)", asset_name(i), status);
			break;
		}
		if (!may_write(a))
			continue;
		/* what is there anyway */
		status = link_do(&link, IBV_WR_RDMA_WRITE, a->length, a->iova, a->key);
		if (status) {
			amiss(adv, "%s: what is granted cannot be written (%d)", asset_name(i),
			      status);
			break;
		}
	}
	link_close(&link);
}

/* --- the table --- */

static void too_long(int signal)
{
	static const char text[] = ": takes too long, given up\n";

	(void)signal;
	if (write(2, running, strlen(running)) < 0 || write(2, text, sizeof(text) - 1) < 0)
		_exit(4);
	_exit(3);
}

static bool run(struct adv *adv, const struct attack *attack)
{
	double begin = now();
	uint32_t i;
	bool right;

	adv->attempts = 0;
	adv->refused = 0;
	adv->let_in = 0;
	adv->wrong = false;
	adv->detail[0] = '\0';
	running = attack->name;
	alarm(ATTACK_SECONDS);
	owner_info(adv);
	attack->run(adv);
	adv->let_in += owner_audit(adv, true);
	if (!adv->wrong && !adv->let_in)
		all_work(adv);
	right = !adv->wrong && !adv->let_in;
	printf("%-31s %-5s %8lu %8lu %6lu %5.1f  %s\n", attack->name, right ? "right" : "WRONG",
	       adv->attempts, adv->refused, adv->let_in, now() - begin, adv->detail);
	fflush(stdout);
	for (i = 0; i < VIC_ASSETS && !right; i++)	/* the next one is judged by itself */
		owner_do(adv, i, VICTIM_REUSE);
	return right;
}

static int mac_of(const char *interface, uint8_t *mac)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq ifr = {};
	int err;

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", interface);
	err = ioctl(fd, SIOCGIFHWADDR, &ifr);
	memcpy(mac, ifr.ifr_hwaddr.sa_data, 6);
	close(fd);
	return err;
}

int main(int argc, char **argv)
{
	static struct adv adv;
	unsigned int passed = 0, failed = 0, i;
	const char *only = argc > 4 ? argv[4] : NULL;

	if (argc < 4) {
		fprintf(stderr, "usage: ib_mr_adversary DEVICE ITS-INTERFACE OUR-INTERFACE [ATTACK]\n");
		return 2;
	}
	adv.device = argv[1];
	adv.interface = argv[3];
	adv.fd = open("/dev/" VICTIM_DEVICE, O_RDWR | O_CLOEXEC);
	if (adv.fd < 0 || mac_of(argv[2], adv.mac) || verbs_open(&adv)) {
		fprintf(stderr, "ib_mr_adversary: no victim, or no device %s\n", adv.device);
		return 2;
	}
	signal(SIGALRM, too_long);
	printf("%-31s %-5s %8s %8s %6s %5s\n", "attack", "", "tried", "refused", "let in", "s");
	for (i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		if (only && !strstr(attacks[i].name, only))
			continue;
		if (run(&adv, &attacks[i]))
			passed++;
		else
			failed++;
	}
	printf("%u passed, %u failed\n", passed, failed);
	return failed ? 1 : 0;
}
