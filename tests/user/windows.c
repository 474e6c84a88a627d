// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Steps about memory windows, and about FMRs of a pool, which can do as much.
 *
 * The ULP has a region that grants a stranger nothing, with the beginning of the file in it, and
 * one window: on request it binds that to some bytes, with some rights, and tells the key. What was
 * granted must work to the byte, and what was not, or not any more, must be refused in the strict
 * sense of refuse.c.
 *
 * Every step begins with a grant of its own, so none depends on what an earlier one left.
 */
#include <errno.h>
#include <string.h>
#include "peer.h"

#define READ	IBV_WR_RDMA_READ
#define WRITE	IBV_WR_RDMA_WRITE

/* Inside pages at both ends, and apart. The region holds both unless the file is tiny. */
struct range {
	uint64_t offset;
	uint32_t length;
};

static const struct range first = { 12345, 20011 }, second = { 40001, 4097 };

static int grant(struct conn *conn, const struct range *range, uint32_t access,
		 struct window *window)
{
	return ask_grant(conn, DEMO_GRANT, range->offset, range->length, access, window);
}

static int revoke(struct peer *peer)
{
	return ask_grant(peer->control, DEMO_GRANT, 0, 0, 0, NULL);
}

static struct op window_op(const struct peer *peer, enum ibv_wr_opcode code,
			   const struct window *window)
{
	return (struct op){ code, peer->scratch, window->length, window->iova, window->rkey, 0, 0 };
}

/* READ of a whole window: just these bytes of the file, as the ULP has them in region ID too. */
static bool reads_of(struct peer *peer, struct conn *conn, uint32_t id, const struct range *range,
		     const struct window *window, struct result *result)
{
	uint8_t here[DEMO_SHA256_LEN], there[DEMO_SHA256_LEN], *got = peer->scratch + 1;
	struct op op = window_op(peer, READ, window);
	int err;

	op.local = got;
	memset(peer->scratch, CANARY, range->length + 2);
	err = conn_do(conn, &op);
	if (err)
		return failed(result, "READ of what was granted", err);
	if (memcmp(got, peer->mem + range->offset, range->length))
		return say(result, false, "READ delivered other bytes than the file's");
	if (got[-1] != CANARY || got[range->length] != CANARY)
		return say(result, false, "READ delivered a byte too many");
	err = ask_hash(peer->control, id, peer->regions[id].start + range->offset, range->length,
		       there);
	if (err)
		return lost(result, "the ULP's hash", err);
	sha256(got, range->length, here);
	return !memcmp(here, there, sizeof(here)) ||
	       say(result, false, "the ULP has other bytes there");
}

static bool reads(struct peer *peer, struct conn *conn, const struct range *range,
		  const struct window *window, struct result *result)
{
	return reads_of(peer, conn, DEMO_GRANT, range, window, result);
}

/* OP, carried out by a connection that was made before the key died, is refused. */
static bool refused_on(struct peer *peer, struct conn *conn, struct op op, struct result *result)
{
	int err = arm(peer, DEMO_GRANT, &op);

	return err ? lost(result, "before the access", err) :
		     must_refuse(peer, conn, DEMO_GRANT, &op, result);
}

bool window_read(struct peer *peer, const struct step *step, struct result *result)
{
	const struct region *region = &peer->regions[DEMO_GRANT];
	struct window window;
	int err;

	(void)step;
	if (region->rkey)
		return say(result, false, "the region itself has a remote key");
	err = grant(peer->control, &first, MAY_READ, &window);
	if (err)
		return lost(result, "grant", err);
	return reads(peer, peer->control, &first, &window, result) &&
	       say(result, true, "%u of %llu bytes by key %#x, the region itself has none",
		   first.length, (unsigned long long)region->length, window.rkey);
}

/* An access beside a window, or of a kind that was not granted: the step's row says which. */
bool window_refuse(struct peer *peer, const struct step *step, struct result *result)
{
	struct window window;
	struct op op;
	int err;

	err = grant(peer->control, &first, step->access, &window);
	if (err)
		return lost(result, "grant", err);
	op = window_op(peer, step->code, &window);
	op.remote += (step->at_end ? window.length : 0) + step->offset;
	op.length = step->length;
	return refuse_fresh(peer, DEMO_GRANT, op, result);
}

bool window_moved(struct peer *peer, const struct step *step, struct result *result)
{
	struct window old, new;
	struct conn conn;
	bool verdict;
	struct op op;
	int err;

	(void)step;
	err = open_tried(peer, &conn);
	if (!err)
		err = grant(peer->control, &first, MAY_READ, &old);
	if (err) {
		conn_close(&conn);
		return lost(result, "grant", err);
	}
	verdict = reads(peer, &conn, &first, &old, result);
	if (verdict) {
		err = grant(peer->control, &second, MAY_READ, &new);
		verdict = err ? lost(result, "second grant", err) :
				refused_on(peer, &conn, window_op(peer, READ, &old), result);
	}
	conn_close(&conn);
	if (!verdict)
		return false;
	if (old.rkey == new.rkey)
		return say(result, false, "the key did not change");
	op = window_op(peer, READ, &old);
	op.rkey = new.rkey;	/* the new key, where the window was */
	return reads(peer, peer->control, &second, &new, result) &&
	       refuse_fresh(peer, DEMO_GRANT, op, result) &&
	       say(result, true, "key %#x dead at once, key %#x reads the new range, not the old",
		   old.rkey, new.rkey);
}

/* WRITE of LENGTH bytes at scratch to a window, which its owner confirms. */
static bool writes(struct peer *peer, const struct range *range, const struct window *window,
		   struct result *result)
{
	uint8_t here[DEMO_SHA256_LEN], there[DEMO_SHA256_LEN];
	struct op op = window_op(peer, WRITE, window);
	int err;

	err = conn_do(peer->control, &op);
	if (err)
		return failed(result, "WRITE of what was granted", err);
	err = ask_hash(peer->control, DEMO_GRANT, peer->regions[DEMO_GRANT].start + range->offset,
		       range->length, there);
	if (err)
		return lost(result, "the ULP's hash", err);
	sha256(peer->scratch, range->length, here);
	return !memcmp(here, there, sizeof(here)) ||
	       say(result, false, "the ULP does not have what was written");
}

/* Read and written, then taken back: from the answer on neither is possible. */
bool window_revoked(struct peer *peer, const struct step *step, struct result *result)
{
	struct window window;
	struct conn conn;
	bool verdict;
	uint32_t i;
	int err;

	(void)step;
	err = open_tried(peer, &conn);
	if (!err)
		err = grant(peer->control, &first, MAY_BOTH, &window);
	if (err) {
		conn_close(&conn);
		return lost(result, "grant", err);
	}
	for (i = 0; i < first.length; i++)
		peer->scratch[i] = ~peer->mem[first.offset + i];
	verdict = writes(peer, &first, &window, result);
	memcpy(peer->scratch, peer->mem + first.offset, first.length);
	verdict = verdict && writes(peer, &first, &window, result) &&
		  reads(peer, &conn, &first, &window, result);
	err = revoke(peer);
	if (verdict)
		verdict = err ? lost(result, "revocation", err) :
				refused_on(peer, &conn, window_op(peer, WRITE, &window), result);
	conn_close(&conn);
	return verdict && refuse_fresh(peer, DEMO_GRANT, window_op(peer, READ, &window), result) &&
	       say(result, true, "key %#x wrote and read, then neither, nothing changed any more",
		   window.rkey);
}

/*
 * The window goes from connection A to connection B, each of which asks for it itself: A may, then
 * only B may. Also when the old key is tried over a connection that never had the window.
 */
bool window_passed_on(struct peer *peer, const struct step *step, struct result *result)
{
	struct window for_a, for_b;
	struct conn a, b;
	bool verdict;
	int err;

	(void)step;
	err = open_tried(peer, &a);
	if (err) {
		conn_close(&a);
		return lost(result, "cannot connect A", err);
	}
	err = open_tried(peer, &b);
	if (err) {
		verdict = lost(result, "cannot connect B", err);
		goto out;
	}
	err = grant(&a, &first, MAY_READ, &for_a);
	verdict = err ? lost(result, "grant to A", err) :
			reads(peer, &a, &first, &for_a, result);
	if (!verdict)
		goto out;
	err = grant(&b, &first, MAY_READ, &for_b);
	verdict = err ? lost(result, "grant to B", err) :
			reads(peer, &b, &first, &for_b, result);
	verdict = verdict && refused_on(peer, &a, window_op(peer, READ, &for_a), result) &&
		  refuse_fresh(peer, DEMO_GRANT, window_op(peer, READ, &for_a), result) &&
		  reads(peer, &b, &first, &for_b, result);
	if (verdict && for_a.rkey == for_b.rkey)
		verdict = say(result, false, "B was given A's key");
	if (verdict)
		say(result, true, "A's key %#x read, then only B's %#x did", for_a.rkey,
		    for_b.rkey);
out:
	conn_close(&a);
	conn_close(&b);
	return verdict;
}

/* Grants that may not be; what was granted before stands. */
bool window_malformed(struct peer *peer, const struct step *step, struct result *result)
{
	const uint64_t end = peer->regions[DEMO_GRANT].length;
	const struct {
		uint32_t region, access;
		uint64_t offset, length;
		int expected;
	} rows[] = {
		{ DEMO_GRANT, MAY_READ, 0, end + 1, ERANGE },
		{ DEMO_GRANT, MAY_READ, end, 1, ERANGE },
		{ DEMO_GRANT, MAY_READ, 8, -4ULL, ERANGE },	/* the sum wraps */
		{ DEMO_GRANT, MAY_READ, -8ULL, 16, ERANGE },
		{ DEMO_GRANT, MAY_READ, 0, 1ULL << 32, ERANGE },
		{ DEMO_GRANT, IBV_ACCESS_LOCAL_WRITE, 0, 16, EINVAL },
		{ DEMO_GRANT, MAY_READ | IBV_ACCESS_ZERO_BASED, 0, 16, EINVAL },
		{ DEMO_GRANT, 0x80000000, 0, 16, EINVAL },
		{ DEMO_GRANT, 0, 0, 16, EINVAL },
		{ DEMO_GRANT, MAY_READ, 0, 0, EINVAL },
		{ DEMO_SINK, MAY_READ, 0, 16, EOPNOTSUPP },	/* registered without MW_BIND */
		{ DEMO_REGIONS, MAY_READ, 0, 16, ENXIO },
	};
	struct window window;
	unsigned int i;
	int err;

	(void)step;
	err = grant(peer->control, &first, MAY_READ, &window);
	if (err)
		return lost(result, "grant", err);
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		err = ask_grant(peer->control, rows[i].region, rows[i].offset, rows[i].length,
				rows[i].access, NULL);
		if (err != rows[i].expected)
			return say(result, false, "row %u was answered with %d, not %d", i, err,
				   rows[i].expected);
	}
	return reads(peer, peer->control, &first, &window, result) &&
	       say(result, true, "%zu requests, each answered with its error, the grant stands",
		   sizeof(rows) / sizeof(*rows));
}

/*
 * A region under a bound window cannot be deregistered; taken back, it can. The window is bound
 * again and left so, for the ULP to take back when it is unloaded.
 */
bool window_busy(struct peer *peer, const struct step *step, struct result *result)
{
	struct window window, again;
	int err;

	(void)step;
	err = grant(peer->control, &first, MAY_READ, &window);
	if (err)
		return lost(result, "grant", err);
	err = ask(peer->control, DEMO_CMD_DEREG, DEMO_GRANT, 0, 0);
	if (err != EBUSY)
		return say(result, false, "deregistration was answered with %d", err);
	if (!reads(peer, peer->control, &first, &window, result))
		return false;
	err = revoke(peer);
	if (!err)
		err = ask(peer->control, DEMO_CMD_DEREG, DEMO_GRANT, 0, 0);
	if (err)
		return lost(result, "deregistration after the revocation", err);
	err = grant(peer->control, &first, MAY_READ, &again);
	if (err != ENOENT)
		return say(result, false, "grant without a region was answered with %d", err);
	err = ask_regions(peer->control, DEMO_CMD_REG, DEMO_GRANT);
	if (!err)
		err = grant(peer->control, &first, MAY_READ, &again);
	if (err)
		return lost(result, "registration and grant", err);
	return refuse_fresh(peer, DEMO_GRANT, window_op(peer, READ, &window), result) &&
	       reads(peer, peer->control, &first, &again, result) &&
	       say(result, true, "bound: EBUSY and the key lives; revoked: deregistered");
}

/* The access LOAN allows with OFFSET added to its address, and LENGTH; it is refused. */
static bool loan_refuses(struct peer *peer, enum ibv_wr_opcode code, const struct window *loan,
			 int64_t offset, uint32_t length, struct result *result)
{
	struct op op = window_op(peer, code, loan);
	struct conn conn;
	uint32_t i;
	int err;

	op.remote += offset;
	op.length = length;
	memset(peer->scratch, CANARY, length);
	err = open_tried(peer, &conn);
	if (!err)
		err = conn_do(&conn, &op);
	conn_close(&conn);
	if (err != IBV_WC_REM_ACCESS_ERR)
		return failed(result, "not refused", err);
	for (i = 0; i < length; i++)
		if (peer->scratch[i] != CANARY)
			return say(result, false, "refused, but byte %u was delivered", i);
	return true;
}

/*
 * Bytes of the file, lent by an FMR of a pool: just these, only to read, and only until they are
 * given back; then others, with another key. Nothing of it changes the file. A last loan is left
 * for the ULP to end when it is unloaded.
 */
bool fmr_loans(struct peer *peer, const struct step *step, struct result *result)
{
	const struct region *file = &peer->regions[DEMO_FILE];
	struct window old, new;
	uint8_t before[DEMO_SHA256_LEN], after[DEMO_SHA256_LEN];
	bool verdict;
	int err;

	(void)step;
	ask_loan(peer->control, DEMO_FILE, 0, 0, NULL);		/* of an earlier peer */
	err = ask_hash(peer->control, DEMO_FILE, 0, 0, before);
	if (!err)
		err = ask_loan(peer->control, DEMO_FILE, first.offset, first.length, &old);
	if (err)
		return lost(result, "first loan", err);
	verdict = reads_of(peer, peer->control, DEMO_FILE, &first, &old, result) &&
		  loan_refuses(peer, READ, &old, -1, 1, result) &&
		  loan_refuses(peer, READ, &old, old.length, 1, result) &&
		  loan_refuses(peer, READ, &old, old.length - 1, 2, result) &&
		  loan_refuses(peer, WRITE, &old, 0, 64, result);
	err = ask_loan(peer->control, DEMO_FILE, 0, 16, NULL);
	if (verdict && err != EBUSY)
		verdict = say(result, false, "a second loan was answered with %d", err);
	err = ask_loan(peer->control, DEMO_FILE, 0, 0, NULL);
	if (err)
		return lost(result, "give back", err);
	if (!verdict || !loan_refuses(peer, READ, &old, 0, old.length, result))
		return false;

	err = ask_loan(peer->control, DEMO_FILE, file->length, 1, NULL);
	if (err != ERANGE)
		return say(result, false, "a loan past the end was answered with %d", err);
	err = ask_loan(peer->control, DEMO_FILE, second.offset, second.length, &new);
	if (err)
		return lost(result, "second loan", err);
	if (old.rkey == new.rkey)
		return say(result, false, "the key did not change");
	verdict = reads_of(peer, peer->control, DEMO_FILE, &second, &new, result) &&
		  loan_refuses(peer, READ, &old, 0, 1, result);
	err = ask_loan(peer->control, DEMO_FILE, 0, 0, NULL);
	if (!err)
		err = ask_hash(peer->control, DEMO_FILE, 0, 0, after);
	if (!err)
		err = ask_loan(peer->control, DEMO_FILE, 0, 16, NULL);
	if (!verdict)
		return false;
	if (err)
		return lost(result, "give back", err);
	return say(result, !memcmp(before, after, sizeof(before)),
		   "key %#x read its %u bytes and no more, dead when given back; then key %#x",
		   old.rkey, first.length, new.rkey);
}
