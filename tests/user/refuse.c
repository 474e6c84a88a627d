// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The steps that must be refused: accesses that were never allowed, and accesses by keys whose
 * registration ended or changed.
 *
 * A refusal takes more than an error at our end. Each is asked for on a fresh connection (it
 * kills the queue pair), which first shows that it works by carrying a request and its reply.
 * The completion must be a remote access error and nothing else: a time-out or a flush would be
 * an error too. Then both sides look: our buffer still holds what we put there, so nothing was
 * delivered; and the ULP's memory around the target, hashed by its owner before and after, is
 * unchanged. What is written differs from what is there, so carrying it out would show.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "peer.h"

static bool is_atomic(enum ibv_wr_opcode code)
{
	return code == IBV_WR_ATOMIC_FETCH_AND_ADD || code == IBV_WR_ATOMIC_CMP_AND_SWP;
}

/* The ULP's memory around an access: where it is in the region's backing, and its hash. */
struct around {
	uint32_t id;
	uint64_t from, length;
	uint8_t hash[DEMO_SHA256_LEN];
};

static int look_around(struct peer *peer, uint32_t id, const struct op *op, struct around *around)
{
	const struct region *region = &peer->regions[id];
	/* may lie outside, which is what some of the accesses are about */
	int64_t at = (int64_t)(region->start + (op->remote - region->iova));
	int64_t from = at - 8192, end = at + op->length + 8192;

	if (from < 0)
		from = 0;
	if (end > (int64_t)region->backing)
		end = region->backing;
	around->id = id;
	around->from = from;
	around->length = end - from;
	return ask_hash(peer->control, id, from, around->length, around->hash);
}

/* 0, or -EKEYEXPIRED when the memory is not what it was. */
static int look_again(struct peer *peer, const struct around *around)
{
	uint8_t hash[DEMO_SHA256_LEN];
	int err = ask_hash(peer->control, around->id, around->from, around->length, hash);

	if (!err && memcmp(hash, around->hash, sizeof(hash)))
		err = -EKEYEXPIRED;
	return err;
}

/* Fills our buffer: with what differs from the ULP's bytes at the target, or with a canary. */
int arm(struct peer *peer, uint32_t id, struct op *op)
{
	const struct region *region = &peer->regions[id];
	uint64_t at = region->start + (op->remote - region->iova);
	uint64_t there = 0;
	uint32_t n, i;
	int err = 0;

	op->local = peer->scratch;
	memset(peer->scratch, CANARY, op->length + 16);
	if (op->code == IBV_WR_RDMA_READ || at >= region->backing)
		return 0;
	n = op->length < DEMO_PEEK_MAX ? op->length : DEMO_PEEK_MAX;
	if (n > region->backing - at)
		n = region->backing - at;
	if (op->code == IBV_WR_RDMA_WRITE) {
		err = ask_bytes(peer->control, id, at, n, peer->scratch);
		for (i = 0; i < n; i++)
			peer->scratch[i] ^= 0xff;
		return err;
	}
	err = ask_bytes(peer->control, id, at, n, &there);
	op->add_or_compare = op->code == IBV_WR_ATOMIC_CMP_AND_SWP ? there : 1;
	op->swap = ~there;
	return err;
}

/*
 * OP, armed, on CONN; it must be refused, and nothing may have happened. Says so in RESULT when
 * it is otherwise.
 */
bool must_refuse(struct peer *peer, struct conn *conn, uint32_t id, const struct op *op,
		 struct result *result)
{
	bool fetches = op->code == IBV_WR_RDMA_READ || is_atomic(op->code);
	struct around around;
	uint32_t i;
	int err;

	err = look_around(peer, id, op, &around);
	if (err)
		return lost(result, "hash of the ULP's memory", err);
	err = conn_do(conn, op);
	if (err == IBV_WC_SUCCESS)
		return say(result, false, "it was carried out");
	if (err != IBV_WC_REM_ACCESS_ERR)
		return failed(result, "not refused, but failed", err);
	for (i = 0; fetches && i < op->length; i++)
		if (peer->scratch[i] != CANARY)
			return say(result, false, "refused, but byte %u was delivered", i);
	err = look_again(peer, &around);
	if (err == -EKEYEXPIRED)
		return say(result, false, "refused, but the ULP's memory has changed");
	if (err)
		return lost(result, "hash of the ULP's memory", err);
	return say(result, true, "remote access error, %llu bytes around it unchanged",
		   (unsigned long long)around.length);
}

/* A connection that works: a request and its reply have passed over it. */
int open_tried(struct peer *peer, struct conn *conn)
{
	int err = conn_open(peer, conn);

	return err ? err : ask_regions(conn, DEMO_CMD_INFO, 0);
}

bool refuse_fresh(struct peer *peer, uint32_t id, struct op op, struct result *result)
{
	struct conn conn;
	bool verdict;
	int err;

	err = open_tried(peer, &conn);
	if (!err)
		err = arm(peer, id, &op);
	verdict = err ? lost(result, "before the access", err) :
			must_refuse(peer, &conn, id, &op, result);
	conn_close(&conn);
	return verdict;
}

static uint32_t wrong_key(const struct peer *peer, const struct step *step)
{
	uint32_t key = peer->regions[step->region].rkey;

	switch (step->key) {
	case KEY_VARIANT:	/* the low eight bits */
		return (key & ~0xffU) | ((key + 1) & 0xff);
	case KEY_INDEX:
		return key + 0x100;
	case KEY_FAR_INDEX:
		return key ^ 0x40000000;
	case KEY_ZERO:
		return 0;
	case KEY_OTHER:
		return peer->regions[step->region == DEMO_SINK ? DEMO_FILE : DEMO_SINK].rkey;
	default:
		return key;
	}
}

bool refuse(struct peer *peer, const struct step *step, struct result *result)
{
	const struct region *region = &peer->regions[step->region];
	struct op op = {
		.code = step->code,
		.length = step->length,
		.remote = region->iova + (step->at_end ? region->length : 0) + step->offset,
		.rkey = wrong_key(peer, step),
	};

	return refuse_fresh(peer, step->region, op, result);
}

/* READ or WRITE of the region's first bytes with KEY, over a fresh connection; it must work. */
static bool must_work(struct peer *peer, const struct step *step, uint32_t key,
		      struct result *result)
{
	const struct region *region = &peer->regions[step->region];
	uint32_t length = region->length < 4096 ? region->length : 4096;
	struct op op = { step->code, peer->scratch, length, region->iova, key, 0, 0 };
	struct conn conn;
	bool verdict = true;
	int err;

	if (step->code == IBV_WR_RDMA_WRITE)
		memcpy(peer->scratch, peer->mem, length);	/* what is there anyway */
	else
		memset(peer->scratch, CANARY, length);
	err = open_tried(peer, &conn);
	if (!err)
		err = conn_do(&conn, &op);
	if (err)
		verdict = failed(result, "a valid access", err);
	else if (memcmp(peer->scratch, peer->mem, length))
		verdict = say(result, false, "a valid READ delivered something else");
	conn_close(&conn);
	return verdict;
}

/* A key works, is deregistered, is dead on an old and on a new connection, and stays dead. */
bool dead_key(struct peer *peer, const struct step *step, struct result *result)
{
	const struct region *region = &peer->regions[step->region];
	struct op op = { step->code, NULL, 4096, region->iova, region->rkey, 0, 0 };
	struct conn conn;
	bool verdict;
	int err;

	if (!must_work(peer, step, op.rkey, result))
		return false;
	err = open_tried(peer, &conn);
	if (!err)
		err = arm(peer, step->region, &op);
	if (!err)
		err = ask_regions(peer->control, DEMO_CMD_DEREG, step->region);
	if (err) {
		conn_close(&conn);
		return lost(result, "deregistration", err);
	}
	/* INFO has no address for it now */
	peer->regions[step->region].iova = op.remote;
	verdict = must_refuse(peer, &conn, step->region, &op, result);
	conn_close(&conn);

	err = ask_regions(peer->control, DEMO_CMD_REG, step->region);
	if (err)
		return lost(result, "registration", err);
	if (!verdict || !must_work(peer, step, region->rkey, result))
		return false;
	if (region->rkey == op.rkey)
		return say(result, false, "the new registration has the old key");
	op.remote = region->iova;
	return refuse_fresh(peer, step->region, op, result) &&
	       say(result, true, "key %#x dead at once and after registering anew (%#x)", op.rkey,
		   region->rkey);
}

/* A second thread that WRITEs all over the sink until it is refused. */
struct writer {
	struct conn *conn;
	struct op op;
	uint64_t iova, room;	/* op.remote goes round in [iova, iova + room] */
	atomic_uint done;
	int status;
};

static void *write_on(void *context)
{
	struct writer *writer = context;

	do {
		writer->op.remote = writer->iova +
				    (uint64_t)writer->done * writer->op.length % (writer->room + 1);
		writer->status = conn_do(writer->conn, &writer->op);
	} while (!writer->status && ++writer->done);
	return NULL;
}

static bool all_guard(uint64_t backing, const uint8_t *hash)
{
	uint8_t guard[DEMO_SHA256_LEN];
	void *image = malloc(backing);

	if (!image)
		return false;
	memset(image, DEMO_GUARD, backing);
	sha256(image, backing, guard);
	free(image);
	return !memcmp(hash, guard, sizeof(guard));
}

/*
 * The peer is writing when the ULP deregisters the region and uses its memory for something
 * else: from then on nothing may land there. A thread of its own writes, since soft RDMA does
 * most of a WRITE's work inside the call that posts it.
 */
bool dereg_fence(struct peer *peer, const struct step *step, struct result *result)
{
	const struct region sink = peer->regions[DEMO_SINK];
	uint32_t size = sink.length < SCRATCH ? sink.length : SCRATCH;
	struct conn conn;
	struct writer writer = {
		.conn = &conn,
		.op = { IBV_WR_RDMA_WRITE, peer->scratch, size, 0, sink.rkey, 0, 0 },
		.iova = sink.iova,
		.room = sink.length - size,
	};
	uint8_t hash[DEMO_SHA256_LEN];
	unsigned int before;
	pthread_t thread;
	int err;

	(void)step;
	memset(peer->scratch, CANARY, SCRATCH);
	err = open_tried(peer, &conn);
	if (!err)
		err = -pthread_create(&thread, NULL, write_on, &writer);
	if (err) {
		conn_close(&conn);
		return lost(result, "before the access", err);
	}
	while (writer.done < 8 && !writer.status)
		usleep(1000);
	before = writer.done;
	err = ask_regions(peer->control, DEMO_CMD_SCRUB, DEMO_SINK);
	if (err)	/* the writer would go on for ever */
		rdma_disconnect(conn.id);
	pthread_join(thread, NULL);
	conn_close(&conn);
	if (!err)
		err = ask_hash(peer->control, DEMO_SINK, 0, 0, hash);
	if (!err)
		err = ask_regions(peer->control, DEMO_CMD_REG, DEMO_SINK);
	if (err)
		return lost(result, "deregistration", err);
	if (before < 8)
		return failed(result, "WRITE before the end", writer.status);
	if (writer.status != IBV_WC_REM_ACCESS_ERR)
		return failed(result, "WRITE after the end", writer.status);
	if (!all_guard(sink.backing, hash))
		return say(result, false, "something was written after ib_dereg_mr returned");
	return say(result, true, "after %u WRITEs of %u KiB one was refused, nothing landed later",
		   writer.done, size >> 10);
}

/* The region is re-registered to other memory: the old key reaches neither, the new key that. */
bool stale_key(struct peer *peer, const struct step *step, struct result *result)
{
	const struct region *counter = &peer->regions[DEMO_COUNTER];
	struct op op = { .code = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8,
			 .remote = counter->iova, .rkey = counter->rkey, .add_or_compare = 1 };
	uint64_t *old = (uint64_t *)peer->scratch, before, there, moved;
	uint64_t start = counter->start;
	const uint32_t old_key = op.rkey;
	int err;

	(void)step;
	op.local = old;
	err = conn_do(peer->control, &op);
	if (err)
		return failed(result, "fetch-add before", err);
	before = *old + 1;
	err = ask_regions(peer->control, DEMO_CMD_REREG, DEMO_COUNTER);
	if (err)
		return lost(result, "re-registration", err);
	if (counter->rkey == op.rkey)
		return say(result, false, "the key did not change");
	if (counter->start == start || counter->iova != op.remote)
		return say(result, false, "the ULP did not move the region");
	if (!refuse_fresh(peer, DEMO_COUNTER, op, result))
		return false;

	err = ask_bytes(peer->control, DEMO_COUNTER, counter->start, sizeof(moved), &moved);
	if (err)
		return lost(result, "the ULP's value", err);
	op.rkey = counter->rkey;
	err = conn_do(peer->control, &op);
	if (err)
		return failed(result, "fetch-add with the new key", err);
	if (*old != moved)
		return say(result, false, "the new memory began with %llu, not %llu",
			   (unsigned long long)*old, (unsigned long long)moved);
	err = ask_bytes(peer->control, DEMO_COUNTER, counter->start, sizeof(there), &there);
	if (!err && there != moved + 1)
		return say(result, false, "the new memory has %llu", (unsigned long long)there);
	if (!err)
		err = ask_bytes(peer->control, DEMO_COUNTER, start, sizeof(there), &there);
	if (err)
		return lost(result, "the ULP's value", err);
	if (there != before)
		return say(result, false, "the old memory has changed");
	return say(result, true, "key %#x dead, key %#x reaches the new memory", old_key,
		   counter->rkey);
}
