// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The steps of the demo: those that must work, and, at the end, the table of all of them.
 *
 * The rows are run in order. Each may count on the connection and the regions that the first one
 * found, and leaves every region registered; keys that change on the way are kept up to date by
 * ask_regions(). A step's verdict is its own: a later one runs whatever became of an earlier one,
 * but for the first, without which there is nobody to talk to.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <openssl/sha.h>
#include "peer.h"

bool say(struct result *result, bool verdict, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(result->detail, sizeof(result->detail), format, args);
	va_end(args);
	return verdict;
}

/* An error of ask() and its kin, or of a connection. */
bool lost(struct result *result, const char *what, int err)
{
	return say(result, false, "%s: %s%s", what, err > 0 ? "the ULP says " : "",
		   strerror(abs(err)));
}

/* A completion that should have been a success. */
bool failed(struct result *result, const char *what, int status)
{
	if (status < 0)
		return lost(result, what, status);
	return say(result, false, "%s: %s", what, ibv_wc_status_str(status));
}

static void hex(const uint8_t *hash, char *to)
{
	int i;

	for (i = 0; i < DEMO_SHA256_LEN; i++)
		sprintf(to + 2 * i, "%02x", hash[i]);
}

void sha256(const void *data, size_t length, uint8_t *hash)
{
	SHA256_CTX context;

	SHA256_Init(&context);
	SHA256_Update(&context, data, length);
	SHA256_Final(hash, &context);
}

/* --- what must work ------------------------------------------------------------------------ */

static bool connect_ulp(struct peer *peer, const struct step *step, struct result *result)
{
	struct region *file = &peer->regions[DEMO_FILE];
	int err;

	(void)step;
	err = conn_open(peer, peer->control);
	if (err)
		return lost(result, "cannot connect", err);
	err = ask_regions(peer->control, DEMO_CMD_INFO, 0);
	if (err)
		return lost(result, "no answer", err);
	if (!file->length || file->length > (1 << 30))
		return say(result, false, "a file of %llu bytes", (unsigned long long)file->length);

	if (posix_memalign((void **)&peer->mem, 4096, file->length + 4096 + SCRATCH))
		return lost(result, "memory", -ENOMEM);
	/* not beside the file's last byte, so that one byte too many does not show as scratch */
	peer->scratch = peer->mem + ((file->length + 4095) & ~4095ULL);
	memset(peer->mem, CANARY, peer->scratch + SCRATCH - peer->mem);
	peer->mr = ibv_reg_mr(peer->pd, peer->mem, peer->scratch + SCRATCH - peer->mem,
			      IBV_ACCESS_LOCAL_WRITE);
	if (!peer->mr)
		return lost(result, "registering our memory", -errno);
	return say(result, true, "%s over %s, file of %llu bytes, keys %#x %#x %#x", peer->address,
		   ibv_get_device_name(peer->control->id->verbs->device),
		   (unsigned long long)file->length, file->rkey, peer->regions[DEMO_SINK].rkey,
		   peer->regions[DEMO_COUNTER].rkey);
}

static bool read_file(struct peer *peer, const struct step *step, struct result *result)
{
	const struct region *file = &peer->regions[DEMO_FILE];
	struct op op = { IBV_WR_RDMA_READ, peer->mem, 0, file->iova, file->rkey, 0, 0 };
	double seconds;
	int status;

	(void)step;
	status = conn_bulk(peer->control, op, file->length, &seconds);
	if (status)
		return failed(result, "READ", status);
	if (peer->mem[file->length] != CANARY && file->length % 4096)
		return say(result, false, "a byte more than asked for was delivered");
	result->rate = file->length / seconds / 1e6;
	return say(result, true, "%llu bytes in %.2f s, READs of %zu KiB, %d under way",
		   (unsigned long long)file->length, seconds, peer->chunk >> 10, peer->depth);
}

static bool same_file(struct peer *peer, const struct step *step, struct result *result)
{
	uint64_t length = peer->regions[DEMO_FILE].length;
	uint8_t here[DEMO_SHA256_LEN], there[DEMO_SHA256_LEN];
	char text[2 * DEMO_SHA256_LEN + 1];
	int err;

	(void)step;
	sha256(peer->mem, length, here);
	hex(here, text);
	err = ask_hash(peer->control, DEMO_FILE, 0, length, there);
	if (err)
		return lost(result, "the ULP's hash", err);
	if (memcmp(here, there, sizeof(here)))
		return say(result, false, "the two ends differ; here %s", text);
	if (peer->sha256 && strcmp(peer->sha256, text))
		return say(result, false, "the file is %s, here and there %s", peer->sha256, text);
	return say(result, true, "%s%s", text, peer->sha256 ? ", as sha256sum has it" : "");
}

/* Small READs at any offset: sizes around every boundary that soft RDMA has. */
static bool read_odd(struct peer *peer, const struct step *step, struct result *result)
{
	static const uint32_t sizes[] = { 1, 2, 3, 7, 64, 1023, 1024, 4095, 4096, 4097, 65537 };
	const struct region *file = &peer->regions[DEMO_FILE];
	uint64_t offset, seed = 1;
	unsigned int i, rounds = 0;

	(void)step;
	for (i = 0; i < 20 * sizeof(sizes) / sizeof(*sizes); i++) {
		uint32_t size = sizes[i / 20];
		struct op op = { IBV_WR_RDMA_READ, peer->scratch + 1, size, 0, file->rkey, 0, 0 };
		int status;

		if (size > file->length)
			continue;
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		offset = (seed >> 20) % (file->length - size + 1);
		if (i % 20 == 0)
			offset = 0;
		if (i % 20 == 1)
			offset = file->length - size;	/* up to the very last byte */
		op.remote = file->iova + offset;
		memset(peer->scratch, CANARY, size + 2);
		status = conn_do(peer->control, &op);
		if (status)
			return failed(result, "READ", status);
		if (memcmp(peer->scratch + 1, peer->mem + offset, size))
			return say(result, false, "%u bytes at %llu are not the file's", size,
				   (unsigned long long)offset);
		if (peer->scratch[0] != CANARY || peer->scratch[size + 1] != CANARY)
			return say(result, false, "%u bytes at %llu: one too many", size,
				   (unsigned long long)offset);
		rounds++;
	}
	return say(result, true, "%u READs of 1 to 65537 bytes, first and last byte included",
		   rounds);
}

/* The bytes before and after a region, as one hash. */
static int hash_guards(struct peer *peer, uint32_t id, uint8_t *hash)
{
	const struct region *region = &peer->regions[id];
	uint64_t end = region->start + region->length;
	int err;

	memset(hash, 0, 2 * DEMO_SHA256_LEN);
	err = region->start ? ask_hash(peer->control, id, 0, region->start, hash) : 0;
	if (!err && end < region->backing)
		err = ask_hash(peer->control, id, end, 0, hash + DEMO_SHA256_LEN);
	return err;
}

static bool write_sink(struct peer *peer, const struct step *step, struct result *result)
{
	const struct region *sink = &peer->regions[DEMO_SINK];
	struct op op = { IBV_WR_RDMA_WRITE, peer->mem, 0, sink->iova, sink->rkey, 0, 0 };
	uint8_t before[2 * DEMO_SHA256_LEN], after[2 * DEMO_SHA256_LEN];
	double seconds;
	int err;

	(void)step;
	err = hash_guards(peer, DEMO_SINK, before);
	if (err)
		return lost(result, "hash of the guard bytes", err);
	err = conn_bulk(peer->control, op, sink->length, &seconds);
	if (err)
		return failed(result, "WRITE", err);
	err = hash_guards(peer, DEMO_SINK, after);
	if (err)
		return lost(result, "hash of the guard bytes", err);
	if (memcmp(before, after, sizeof(before)))
		return say(result, false, "bytes outside the region have changed");
	result->rate = sink->length / seconds / 1e6;
	return say(result, true, "%llu bytes in %.2f s, WRITEs of %zu KiB, %d under way",
		   (unsigned long long)sink->length, seconds, peer->chunk >> 10, peer->depth);
}

static bool same_sink(struct peer *peer, const struct step *step, struct result *result)
{
	const struct region *sink = &peer->regions[DEMO_SINK];
	uint8_t here[DEMO_SHA256_LEN], there[DEMO_SHA256_LEN];
	char text[2 * DEMO_SHA256_LEN + 1];
	int err;

	(void)step;
	sha256(peer->mem, sink->length, here);
	err = ask_hash(peer->control, DEMO_SINK, sink->start, sink->length, there);
	if (err)
		return lost(result, "the ULP's hash", err);
	hex(there, text);
	return say(result, !memcmp(here, there, sizeof(here)), "%s at the ULP", text);
}

/* --- atomics ------------------------------------------------------------------------------- */

static bool atomics(struct peer *peer, const struct step *step, struct result *result)
{
	/* each row: operation, operands, the old value that it must return */
	static const struct {
		enum ibv_wr_opcode code;
		uint64_t add_or_compare, swap, old;
	} rows[] = {
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, 5, 0, 0 },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, -2ULL, 0, 5 },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, 4, 77, 3 },		/* does not match */
		{ IBV_WR_ATOMIC_CMP_AND_SWP, 3, 0xfedcba9876543210, 3 },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0xfedcba9876543210 },
		{ IBV_WR_ATOMIC_CMP_AND_SWP, 0xfedcba9876543211, 0, 0xfedcba9876543211 },
		{ IBV_WR_ATOMIC_FETCH_AND_ADD, 0, 0, 0 },
	};
	const struct region *counter = &peer->regions[DEMO_COUNTER];
	uint64_t *old = (uint64_t *)peer->scratch, there;
	struct op reset = { IBV_WR_ATOMIC_CMP_AND_SWP, old, sizeof(*old), counter->iova,
			    counter->rkey, 0, 0 };
	unsigned int i;
	int err;

	(void)step;
	/* from what an earlier peer left to 0 */
	err = ask_bytes(peer->control, DEMO_COUNTER, counter->start, sizeof(there), &there);
	if (err)
		return lost(result, "the ULP's value", err);
	reset.add_or_compare = there;
	err = conn_do(peer->control, &reset);
	if (err)
		return failed(result, "the first compare-swap", err);
	if (*old != there)
		return say(result, false, "the first compare-swap returned %#llx instead of %#llx",
			   (unsigned long long)*old, (unsigned long long)there);
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct op op = { rows[i].code, old, sizeof(*old), counter->iova, counter->rkey,
				 rows[i].add_or_compare, rows[i].swap };

		err = conn_do(peer->control, &op);
		if (err)
			return failed(result, "atomic", err);
		if (*old != rows[i].old)
			return say(result, false, "row %u returned %#llx instead of %#llx", i,
				   (unsigned long long)*old, (unsigned long long)rows[i].old);
	}
	err = ask_bytes(peer->control, DEMO_COUNTER, counter->start, sizeof(there), &there);
	if (err)
		return lost(result, "the ULP's value", err);
	if (there)
		return say(result, false, "the ULP has %#llx instead of 0",
			   (unsigned long long)there);
	return say(result, true, "%zu rows of fetch-add and compare-swap, each old value right",
		   sizeof(rows) / sizeof(*rows));
}

/* Two connections add to the last counter of the region at the same time; no addition is lost. */
static bool atomics_shared(struct peer *peer, const struct step *step, struct result *result)
{
	const struct region *counter = &peer->regions[DEMO_COUNTER];
	struct op op = { IBV_WR_ATOMIC_FETCH_AND_ADD, peer->scratch, 8,
			 counter->iova + counter->length - 8, counter->rkey, 1, 0 };
	const int batches = 50, batch = 16;
	struct conn other, *conns[2] = { peer->control, &other };
	struct ibv_wc wc;
	const uint64_t at = counter->start + counter->length - 8;
	uint64_t before, there;
	double start;
	int err, i, j, k;

	(void)step;
	err = conn_open(peer, &other);
	if (!err)
		err = ask_bytes(peer->control, DEMO_COUNTER, at, sizeof(before), &before);
	if (err) {
		conn_close(&other);
		return lost(result, "before the additions", err);
	}
	start = now();
	for (i = 0; !err && i < batches; i++) {
		for (j = 0; !err && j < 2 * batch; j++)
			err = conn_post(conns[j % 2], &op);
		for (k = 0; !err && k < 2 * batch; k++) {
			err = conn_wait(conns[k % 2], &wc);
			if (!err)
				err = wc.status;
		}
	}
	start = now() - start;
	conn_close(&other);
	if (err)
		return failed(result, "fetch-add", err);
	err = ask_bytes(peer->control, DEMO_COUNTER, at, sizeof(there), &there);
	if (err)
		return lost(result, "the ULP's value", err);
	return say(result, there - before == 2ULL * batches * batch,
		   "two connections, %d additions, sum at the ULP %llu, %.0f a second",
		   2 * batches * batch, (unsigned long long)(there - before),
		   2 * batches * batch / start);
}

/* --- requests that make no sense ----------------------------------------------------------- */

static bool malformed(struct peer *peer, const struct step *step, struct result *result)
{
	static const struct {
		uint32_t cmd, region;
		uint64_t offset, length;
		int expected;
	} rows[] = {
		{ 99, 0, 0, 0, EOPNOTSUPP },
		{ DEMO_CMD_HASH, DEMO_REGIONS, 0, 0, ENXIO },
		{ DEMO_CMD_DEREG, 0xffffffff, 0, 0, ENXIO },
		{ DEMO_CMD_PEEK, DEMO_COUNTER, 0, DEMO_PEEK_MAX + 1, EMSGSIZE },
		{ DEMO_CMD_PEEK, DEMO_FILE, 1ULL << 40, 1, ERANGE },
		{ DEMO_CMD_HASH, DEMO_SINK, 8, -4ULL, ERANGE },		/* the sum wraps */
		{ DEMO_CMD_REG, DEMO_FILE, 0, 0, EBUSY },
		{ DEMO_CMD_REREG, DEMO_FILE, 0, 0, EOPNOTSUPP },
	};
	struct demo_request *request;
	struct conn conn;
	unsigned int i;
	int err;

	(void)step;
	err = conn_open(peer, &conn);
	for (i = 0; !err && i < sizeof(rows) / sizeof(*rows); i++) {
		int got = ask(&conn, rows[i].cmd, rows[i].region, rows[i].offset, rows[i].length);

		if (got != rows[i].expected) {
			say(result, false, "row %u was answered with %d, not %d", i, got,
			    rows[i].expected);
			goto out;
		}
	}
	if (err) {
		lost(result, "cannot connect", err);
		goto out;
	}
	err = ask_raw(&conn, 8);		/* too short */
	if (err != EBADMSG) {
		say(result, false, "a short request was answered with %d", err);
		goto out;
	}
	request = &conn.messages.request;
	request->magic = 0;
	err = ask_raw(&conn, sizeof(*request));
	if (err != EBADMSG) {
		say(result, false, "a request without the magic was answered with %d", err);
		goto out;
	}
	err = ask_raw(&conn, sizeof(*request) + 64);	/* too long: the device refuses it */
	if (err >= 0) {
		say(result, false, "a request that is too long was answered with %d", err);
		goto out;
	}
	err = ask_regions(peer->control, DEMO_CMD_INFO, 0);
	if (err) {
		lost(result, "the ULP is not well afterwards", err);
		goto out;
	}
	conn_close(&conn);
	return say(result, true, "%zu requests, each answered with the error it deserves",
		   sizeof(rows) / sizeof(*rows) + 3);
out:
	conn_close(&conn);
	return false;
}

/* --- and afterwards ------------------------------------------------------------------------ */

/* All of it again, with whatever keys are valid now: refusals have cost nobody else anything. */
static bool whole_again(struct peer *peer, const struct step *step, struct result *result)
{
	const struct region *file = &peer->regions[DEMO_FILE];
	struct result part = {};

	memset(peer->mem, CANARY, file->length);
	if (read_file(peer, step, &part) && same_file(peer, step, &part) &&
	    write_sink(peer, step, &part) && same_sink(peer, step, &part))
		return say(result, true, "file read and written again, same SHA-256 at both ends");
	return say(result, false, "%.180s", part.detail);
}

/* --- the table ----------------------------------------------------------------------------- */

#define READ	IBV_WR_RDMA_READ
#define WRITE	IBV_WR_RDMA_WRITE
#define FADD	IBV_WR_ATOMIC_FETCH_AND_ADD
#define CSWAP	IBV_WR_ATOMIC_CMP_AND_SWP

#define REFUSED(_name, _code, _region, _key, _at_end, _offset, _length) { \
	.name = "refused: " _name, .run = refuse, .code = _code, .region = DEMO_##_region, \
	.key = KEY_##_key, .at_end = _at_end, .offset = _offset, .length = _length }

#define WINDOW(_name, _code, _access, _at_end, _offset, _length) { \
	.name = "refused: " _name, .run = window_refuse, .code = _code, .access = _access, \
	.at_end = _at_end, .offset = _offset, .length = _length }

const struct step steps[] = {
	{ .name = "connect", .run = connect_ulp },
	{ .name = "READ the file's page cache", .run = read_file },
	{ .name = "same SHA-256 of the file", .run = same_file },
	{ .name = "READ odd sizes and offsets", .run = read_odd },
	{ .name = "WRITE it to a second region", .run = write_sink },
	{ .name = "same SHA-256 of what was written", .run = same_sink },
	{ .name = "atomics, one by one", .run = atomics },
	{ .name = "atomics, two connections", .run = atomics_shared },
	{ .name = "malformed requests to the ULP", .run = malformed },

	/* wrong keys */
	REFUSED("READ, key with the next variant", READ, FILE, VARIANT, false, 0, 4096),
	REFUSED("READ, key with the next index", READ, FILE, INDEX, false, 0, 4096),
	REFUSED("READ, key with an index far off", READ, FILE, FAR_INDEX, false, 0, 4096),
	REFUSED("READ, key 0", READ, FILE, ZERO, false, 0, 4096),
	REFUSED("WRITE, key with the next variant", WRITE, SINK, VARIANT, false, 0, 4096),
	REFUSED("WRITE, key of another region", WRITE, FILE, OTHER, false, 0, 4096),
	REFUSED("fetch-add, key with the next variant", FADD, COUNTER, VARIANT, false, 0, 8),

	/* one byte and more past each end */
	REFUSED("READ of the byte before", READ, FILE, RIGHT, false, -1, 1),
	REFUSED("READ of the byte after", READ, FILE, RIGHT, true, 0, 1),
	REFUSED("READ across the start", READ, FILE, RIGHT, false, -1, 2),
	REFUSED("READ across the end", READ, FILE, RIGHT, true, -1, 2),
	REFUSED("READ of many packets past the end", READ, FILE, RIGHT, true, -20000, 65536),
	REFUSED("WRITE of the byte before", WRITE, SINK, RIGHT, false, -1, 1),
	REFUSED("WRITE of the byte after", WRITE, SINK, RIGHT, true, 0, 1),
	REFUSED("WRITE across the start", WRITE, SINK, RIGHT, false, -1, 2),
	REFUSED("WRITE across the end", WRITE, SINK, RIGHT, true, -1, 2),
	REFUSED("WRITE of many packets past the end", WRITE, SINK, RIGHT, true, -20000, 65536),
	REFUSED("fetch-add before the start", FADD, COUNTER, RIGHT, false, -8, 8),
	REFUSED("fetch-add after the end", FADD, COUNTER, RIGHT, true, 0, 8),

	/* rights that were not granted */
	REFUSED("WRITE to the file (read-only)", WRITE, FILE, RIGHT, false, 12345, 64),
	REFUSED("fetch-add on the file (read-only)", FADD, FILE, RIGHT, false, 4096, 8),
	REFUSED("compare-swap on the file (read-only)", CSWAP, FILE, RIGHT, false, 4096, 8),
	REFUSED("READ of the sink (write-only)", READ, SINK, RIGHT, false, 0, 4096),
	REFUSED("fetch-add on the sink (write-only)", FADD, SINK, RIGHT, false, 0, 8),
	REFUSED("READ of the counter (atomics only)", READ, COUNTER, RIGHT, false, 0, 8),
	REFUSED("WRITE to the counter (atomics only)", WRITE, COUNTER, RIGHT, false, 0, 8),

	/* keys whose registration ended */
	{ .name = "ib_dereg_mr: READ", .run = dead_key, .code = READ, .region = DEMO_FILE },
	{ .name = "ib_dereg_mr: WRITE", .run = dead_key, .code = WRITE, .region = DEMO_SINK },
	{ .name = "ib_dereg_mr in the middle of WRITEs", .run = dereg_fence },
	{ .name = "ib_rereg_phys_mr: the old key", .run = stale_key },

	/* a part of a region, granted for a while */
	{ .name = "window: READ of just what is granted", .run = window_read },
	WINDOW("READ of the byte before the window", READ, MAY_READ, false, -1, 1),
	WINDOW("READ of the byte after the window", READ, MAY_READ, true, 0, 1),
	WINDOW("READ across the window's start", READ, MAY_READ, false, -1, 2),
	WINDOW("READ across the window's end", READ, MAY_READ, true, -1, 2),
	WINDOW("READ of many packets past its end", READ, MAY_READ, true, -20000, 65536),
	WINDOW("WRITE, a window to read", WRITE, MAY_READ, false, 0, 64),
	WINDOW("fetch-add, a window to read", FADD, MAY_READ, false, 7, 8),
	WINDOW("fetch-add, window to read and write", FADD, MAY_BOTH, false, 7, 8),
	WINDOW("WRITE of the byte before the window", WRITE, MAY_BOTH, false, -1, 1),
	WINDOW("WRITE of the byte after the window", WRITE, MAY_BOTH, true, 0, 1),
	{ .name = "window: moved to another range", .run = window_moved },
	{ .name = "window: revoked", .run = window_revoked },
	{ .name = "window: from connection A to B", .run = window_passed_on },
	{ .name = "window: grants that make no sense", .run = window_malformed },
	{ .name = "window: ib_dereg_mr while it is bound", .run = window_busy },

	{ .name = "FMR pool: map, unmap, map elsewhere", .run = fmr_loans },

	/* memory of a process */
	{ .name = "a process's buffer: WRITE, and it sees it", .run = user_buffer },
	{ .name = "the process unmaps it, and is killed", .run = user_dies },

	{ .name = "everything still works", .run = whole_again },
};

const int nsteps = sizeof(steps) / sizeof(*steps);

/* Over a wire to another machine: some of each kind, and what only a wire can show. */
const struct step steps_apart[] = {
	{ .name = "connect", .run = connect_ulp },
	{ .name = "READ the file's page cache", .run = read_file },
	{ .name = "same SHA-256 of the file", .run = same_file },
	{ .name = "WRITE it to a second region", .run = write_sink },
	{ .name = "same SHA-256 of what was written", .run = same_sink },
	{ .name = "atomics, one by one", .run = atomics },
	REFUSED("READ, key with the next variant", READ, FILE, VARIANT, false, 0, 4096),
	REFUSED("READ across the end", READ, FILE, RIGHT, true, -1, 2),
	REFUSED("WRITE of many packets past the end", WRITE, SINK, RIGHT, true, -20000, 65536),
	REFUSED("WRITE to the file (read-only)", WRITE, FILE, RIGHT, false, 12345, 64),
	{ .name = "ib_dereg_mr: READ", .run = dead_key, .code = READ, .region = DEMO_FILE },
	{ .name = "ib_rereg_phys_mr: the old key", .run = stale_key },
	{ .name = "window: READ of just what is granted", .run = window_read },
	WINDOW("READ across the window's end", READ, MAY_READ, true, -1, 2),
	{ .name = "window: moved to another range", .run = window_moved },
	{ .name = "window: revoked", .run = window_revoked },
	{ .name = "FMR pool: map, unmap, map elsewhere", .run = fmr_loans },
	{ .name = "the wire cut for a moment, under READs", .run = link_cut, .cut = 3 },
	{ .name = "the wire cut for longer, under READs", .run = link_cut, .cut = 10 },
	{ .name = "everything still works", .run = whole_again },
};

const int nsteps_apart = sizeof(steps_apart) / sizeof(*steps_apart);
