// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * ib_mr_peer - the remote peer of the demo
 *
 * Runs the steps of one of the tables in steps.c against an ULP that ib_mr_demo.ko is, shows each with
 * its verdict as it ends, and writes the same as tab-separated values. The exit status is 0 only
 * when every verdict is the right one. A step that hangs is ended by an alarm, and with it the
 * run, since nothing can be said about what would follow.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "peer.h"

#define STEP_SECONDS	180

static const char *running;

static void too_long(int signal)
{
	static const char text[] = ": takes too long, given up\n";

	(void)signal;
	if (write(2, running, strlen(running)) < 0 || write(2, text, sizeof(text) - 1) < 0)
		_exit(4);
	_exit(3);
}

static void show(FILE *tsv, const struct step *step, bool right, const struct result *result)
{
	const char *verdict = right ? "right" : "WRONG";
	char rate[32] = "-";

	if (result->rate > 0)
		snprintf(rate, sizeof(rate), "%.1f", result->rate);
	printf("%-46s %-5s %8s  %s\n", step->name, verdict, rate, result->detail);
	fflush(stdout);
	if (tsv) {
		fprintf(tsv, "%s\t%s\t%s\t%s\n", step->name, verdict, result->detail, rate);
		fflush(tsv);
	}
}

static int usage(int status)
{
	fprintf(status ? stderr : stdout,
		"usage: ib_mr_peer [-2] [-p PORT] [-c KiB] [-d DEPTH] [-s SHA256] [-o FILE] ADDRESS\n\n"
		"Runs the demo against the ULP at ADDRESS (an IP address of an RDMA device).\n"
		"  -2         the ULP is on another machine, and somebody cuts the wire when asked to\n"
		"  -c KiB     bytes of one request of a bulk transfer (256)\n"
		"  -d DEPTH   requests under way (16)\n"
		"  -s SHA256  what the file must hash to\n"
		"  -o FILE    write the table to FILE, tab-separated\n");
	return status;
}

int main(int argc, char **argv)
{
	static struct conn control;
	static char port[16];
	struct peer peer = { .port = port, .chunk = 256 << 10, .depth = 16, .control = &control };
	const struct step *table = steps;
	int option, i, n = nsteps, wrong = 0;
	const char *output = NULL;
	FILE *tsv = NULL;

	snprintf(port, sizeof(port), "%d", DEMO_PORT);
	while ((option = getopt(argc, argv, "2p:c:d:s:o:h")) != -1) {
		switch (option) {
		case '2':
			table = steps_apart;
			n = nsteps_apart;
			break;
		case 'p':
			peer.port = optarg;
			break;
		case 'c':
			peer.chunk = strtoul(optarg, NULL, 0) << 10;
			break;
		case 'd':
			peer.depth = atoi(optarg);
			break;
		case 's':
			peer.sha256 = optarg;
			break;
		case 'o':
			output = optarg;
			break;
		default:
			return usage(option == 'h' ? 0 : 2);
		}
	}
	if (optind != argc - 1 || !peer.chunk || peer.chunk > 1 << 30 || peer.depth < 1 ||
	    peer.depth > DEPTH_MAX)
		return usage(2);
	peer.address = argv[optind];
	if (output) {
		tsv = fopen(output, "w");
		if (!tsv) {
			fprintf(stderr, "ib_mr_peer: %s: %s\n", output, strerror(errno));
			return 2;
		}
		fprintf(tsv, "step\tverdict\tdetail\tMB/s\n");
	}
	signal(SIGALRM, too_long);

	printf("%-46s %-5s %8s  %s\n", "step", "", "MB/s", "detail");
	for (i = 0; i < n; i++) {
		struct result result = {};
		bool right;

		running = table[i].name;
		alarm(STEP_SECONDS);
		right = table[i].run(&peer, &table[i], &result);
		show(tsv, &table[i], right, &result);
		wrong += !right;
		if (!peer.mr || peer.gone) {
			printf("the ULP is gone\n");
			break;
		}
	}
	alarm(STEP_SECONDS);
	running = "closing";
	conn_close(&control);
	return wrong ? 1 : 0;
}
