// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Steps in which the wire between the two machines is cut, and joined again, in the middle of a
 * transfer.
 *
 * The wire is not ours: whoever runs us (scripts/demo2) reads our output, and does it when a line
 * asks for it. That it was done is seen at our own NIC, whose carrier has gone and come by the end.
 * The file is read again and again meanwhile. A transfer that the transport's retries carry over
 * goes on; one that they do not is continued over a new connection from where it was, as an
 * initiator would. Either way each reading must have the SHA-256 of the file, and the last one
 * begins when the wire is whole.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "peer.h"

#define CUT_SECONDS		60	/* until it was cut and joined */
#define CONNECT_SECONDS		60

/* A number from a file of the NIC under the RDMA device; -1: there is none. */
static long nic(const struct peer *peer, const char *name)
{
	const char *device = ibv_get_device_name(peer->control->id->verbs->device);
	char path[200], text[64] = "";
	long number = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/gid_attrs/ndevs/0", device);
	f = fopen(path, "r");
	if (!f)
		return -1;
	if (!fgets(text, sizeof(text), f))
		text[0] = '\0';
	fclose(f);
	text[strcspn(text, "\n")] = '\0';
	snprintf(path, sizeof(path), "/sys/class/net/%s/%s", text, name);
	f = fopen(path, "r");
	if (!f)
		return -1;
	if (fscanf(f, "%ld", &number) != 1)
		number = -1;
	fclose(f);
	return number;
}

static int connect_again(struct peer *peer)
{
	double start = now();
	int err;

	do {
		conn_close(peer->control);
		usleep(200000);
		err = conn_open(peer, peer->control);
		if (!err)
			err = ask_regions(peer->control, DEMO_CMD_INFO, 0);
	} while (err && now() - start < CONNECT_SECONDS);
	peer->gone = err;
	return err;
}

/* The whole file, whatever becomes of connections. */
static int read_on(struct peer *peer, unsigned int *again)
{
	const struct region *file = &peer->regions[DEMO_FILE];
	uint64_t done = 0;

	for (;;) {
		struct op op = { IBV_WR_RDMA_READ, peer->mem, 0, file->iova, file->rkey, 0, 0 };
		int err = conn_bulk_on(peer->control, op, file->length, &done);

		if (!err)
			return 0;
		if (err == IBV_WC_REM_ACCESS_ERR)
			return err;
		err = connect_again(peer);
		if (err)
			return err < 0 ? err : -err;
		++*again;
	}
}

bool link_cut(struct peer *peer, const struct step *step, struct result *result)
{
	const uint64_t length = peer->regions[DEMO_FILE].length;
	uint8_t here[DEMO_SHA256_LEN], there[DEMO_SHA256_LEN];
	unsigned int rounds = 0, again = 0;
	long before = nic(peer, "carrier_changes");
	double start = now(), since;
	bool whole, last;
	int err;

	err = ask_hash(peer->control, DEMO_FILE, 0, length, there);
	if (err)
		return lost(result, "the ULP's hash", err);
	if (before < 0)
		return say(result, false, "the NIC does not tell of its carrier");
	do {
		whole = nic(peer, "carrier_changes") >= before + 2 && nic(peer, "carrier") == 1;
		last = whole;
		if (!rounds) {
			printf("link: cut %u\n", step->cut);
			fflush(stdout);
		}
		memset(peer->mem, CANARY, length);
		err = read_on(peer, &again);
		if (err)
			return failed(result, "READ", err);
		sha256(peer->mem, length, here);
		if (memcmp(here, there, sizeof(here)))
			return say(result, false, "reading %u is not the file", rounds + 1);
		rounds++;
		since = now() - start;
	} while (!last && since < CUT_SECONDS);
	if (!last)
		return say(result, false, "nobody cut the wire in %.0f s", since);
	/* The control connection has to carry requests as before. */
	if (ask_regions(peer->control, DEMO_CMD_INFO, 0) && connect_again(peer))
		return say(result, false, "the ULP does not answer any more");
	if (again)
		return say(result, true, "%u readings, all the file; %u new connection%s", rounds,
			   again, again > 1 ? "s" : "");
	return say(result, true, "%u readings, all the file; carried over by retries", rounds);
}
