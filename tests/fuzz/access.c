// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Steps that access memory: by real RDMA, by asking ib_mr, by copying through a key.
 *
 * An access is drawn around a grant: its key or one near it, one that is dead, or anything; its
 * bytes, or bytes that hang over an end, lie outside, or pass 2^64. Then the model says what must
 * come of it; ib_mr must say the same, and so must the device, and the bytes must be those that the
 * model has, at both ends.
 */
#include <linux/string.h>

#include "fuzz.h"

#define CANARY	0xa5

struct draw {
	u8 pd;
	u32 key;
	u64 iova;
	u32 len;
	struct fz_grant *near;
};

static u32 draw_key(struct fz_world *w, const struct fz_step *s, struct draw *d, bool remote)
{
	u32 key = remote ? d->near->rkey : d->near->lkey, n = s->d >> 16 & 0xff;

	switch (s->b >> 12 & 15) {
	case 0:
		return key ^ (1 + n % 255);		/* another variant */
	case 1:
		return key + (n & 1 ? 0x100 : -0x100);	/* a neighbour */
	case 2:
	case 3:
		n %= FZ_DEAD;				/* one of the past */
		if (w->dead[n].key) {
			d->iova = w->dead[n].iova;
			d->pd = w->dead[n].pd;
			return w->dead[n].key;
		}
		return 0;
	case 4:
		return s->d;
	case 5:
		d->pd = !d->pd;
		return key;
	case 6:			/* locally it reaches all memory, which is as it should be */
		return remote && n & 1 ? w->pd[d->pd]->local_dma_lkey : 0;
	default:
		return key;
	}
}

static void draw(struct fz_world *w, const struct fz_step *s, struct draw *d, bool remote)
{
	struct fz_grant *g = fz_pick(w, s->a, NULL);
	static const struct fz_grant none = { .len = PAGE_SIZE };
	u64 at, room;

	d->near = g ? g : (struct fz_grant *)&none;
	g = d->near;
	d->pd = g->pd;
	at = s->c % g->len;
	room = g->len - at;
	d->len = 1 + s->d % (s->b & 1 << 20 ? min_t(u64, room, 64) : room);
	switch (s->b >> 16 & 15) {
	case 0:
		at = 0 - (u64)(s->d & 15);		/* begins before */
		break;
	case 1:
		d->len = room + 1;			/* ends behind */
		break;
	case 2:
		at = g->len + (s->d & 63);		/* outside */
		break;
	case 3:
		at = 0;
		d->len = g->len;
		break;
	case 4:
		at = g->len - 1;
		d->len = 1;
		break;
	case 5:
		d->len = 0;
		break;
	case 6:
		at = 0 - g->iova - (s->d & 7);		/* up to 2^64, or past it */
		break;
	}
	d->iova = g->iova + at;
	d->key = draw_key(w, s, d, remote);
}

/* What ib_mr says must be what the model says. Return: it says yes. */
static bool asked(struct fz_world *w, const struct draw *d, u64 len, int right, bool remote,
		  enum fz_verdict must)
{
	struct ib_pd *pd = w->pd[d->pd];
	enum ib_mr_reason check, explain;
	char text[200];

	check = ib_mr_check(pd, d->key, d->iova, len, right, remote);
	explain = ib_mr_explain(w->dev, pd, d->key, d->iova, len, right, text, sizeof(text));
	fz_stats.checks++;
	if ((must == FZ_YES && check) || (must == FZ_NO && !check))
		fz_fail(w, "ib_mr_check", "key %#x, %llu bytes at %#llx, right %#x%s: %s",
			d->key, len, d->iova, right, remote ? "" : " local",
			ib_mr_reason_name(check));
	if (!check != (!explain || explain == IB_MR_WHY_STALE_REGION))
		fz_fail(w, "ib_mr_explain", "key %#x: check %s, explain %s: %s", d->key,
			ib_mr_reason_name(check), ib_mr_reason_name(explain), text);
	return !check;
}

static enum fz_op draw_op(u32 n)
{
	static const enum fz_op ops[] = {
		FZ_WRITE_UC, FZ_WRITE_UC, FZ_WRITE_UC, FZ_READ, FZ_READ, FZ_READ, FZ_WRITE,
		FZ_ADD, FZ_SWAP, FZ_OWN_WRITE, FZ_WRITE_UC, FZ_WRITE_UC, FZ_READ, FZ_READ, FZ_ADD,
		FZ_WRITE_UC,
	};

	return ops[n % ARRAY_SIZE(ops)];
}

static int right_of(enum fz_op op)
{
	static const int right[] = {
		[FZ_READ] = RR, [FZ_WRITE] = RW, [FZ_WRITE_UC] = RW, [FZ_ADD] = RA,
		[FZ_SWAP] = RA, [FZ_OWN_WRITE] = 0,
	};

	return right[op];
}

static const char *name_of(enum fz_op op)
{
	static const char * const name[] = {
		[FZ_READ] = "READ", [FZ_WRITE] = "WRITE", [FZ_WRITE_UC] = "UC WRITE",
		[FZ_ADD] = "FETCH_ADD", [FZ_SWAP] = "CMP_SWAP", [FZ_OWN_WRITE] = "own WRITE",
	};

	return name[op];
}

static bool untouched(const u8 *buf, u32 len)
{
	return !memchr_inv(buf, CANARY, len);
}

/* Carried out: are the bytes right, at both ends? */
static void done(struct fz_world *w, enum fz_op op, const struct draw *d,
		 const struct fz_grant *by, u64 compare, u64 add)
{
	u8 *buf = fz_wire_buf(w->wire[d->pd]);
	u64 at = by ? d->iova - by->iova : 0, was;

	if (!by)
		return;		/* of no bytes */
	switch (op) {
	case FZ_READ:
	case FZ_OWN_WRITE:
		if (!fz_same(w, by, at, buf, d->len) || !untouched(buf + d->len, 16))
			fz_fail(w, name_of(op), "key %#x, %u bytes at %#llx: other bytes came",
				d->key, d->len, d->iova);
		break;
	case FZ_ADD:
	case FZ_SWAP:
		memcpy(&was, buf, 8);
		if (!fz_same(w, by, at, &was, 8))
			fz_fail(w, name_of(op), "key %#x at %#llx: it fetched %#llx", d->key,
				d->iova, was);
		if (op == FZ_ADD)
			was += add;
		else if (was == compare)
			was = add;
		fz_store(w, by, at, &was, 8);
		break;
	default:
		fz_store(w, by, at, buf, d->len);
	}
	fz_look(w, name_of(op), by);
}

static bool refused(enum fz_op op, enum ib_wc_status status)
{
	if (op == FZ_OWN_WRITE)		/* drivers have three words for it */
		return status == IB_WC_LOC_PROT_ERR || status == IB_WC_LOC_QP_OP_ERR ||
		       status == IB_WC_WR_FLUSH_ERR;
	return status == IB_WC_REM_ACCESS_ERR;
}

/* The peer's buffer before an access. A CMP_SWAP mostly compares with what is there. */
static void arm(struct fz_world *w, enum fz_op op, const struct draw *d,
		const struct fz_grant *by, const struct fz_step *s, u64 *compare)
{
	u8 *buf = fz_wire_buf(w->wire[d->pd]);
	struct rnd_state rnd;

	memset(buf, CANARY, d->len + 16);
	if (op == FZ_WRITE || op == FZ_WRITE_UC) {
		prandom_seed_state(&rnd, (u64)s->d << 32 | s->c);
		prandom_bytes_state(&rnd, buf, d->len);
	}
	*compare = s->c;
	if (op == FZ_SWAP && by && s->d & 3) {
		u64 at = d->iova - by->iova;
		u32 i, room;

		for (i = 0; i < 8; i++)
			((u8 *)compare)[i] = *fz_byte(w, by, at + i, true, &room);
	}
}

void fz_access(struct fz_world *w, const struct fz_step *s)
{
	enum fz_op op = draw_op(s->b >> 4);
	bool remote = op != FZ_OWN_WRITE, atomic, says;
	enum ib_wc_status status;
	enum fz_verdict must;
	struct fz_grant *by;
	struct draw d;
	u64 compare;

	draw(w, s, &d, remote);
	if (!remote && !d.len)
		d.len = 1;
	atomic = op == FZ_ADD || op == FZ_SWAP;
	if (atomic) {		/* an address that is no multiple of 8 cannot be posted */
		d.len = 8;
		d.iova &= ~7ULL;
	}
	must = fz_may(w, d.pd, d.key, d.iova, d.len, right_of(op), remote, &by);
	/* A refusal costs a connection, unless it is an unreliable one. */
	if (must == FZ_NO && s->b >> 8 & 7) {
		op = FZ_WRITE_UC;
		remote = true;
		must = fz_may(w, d.pd, d.key, d.iova, d.len, RW, true, &by);
		atomic = false;
	}
	/* And of that kind success says nothing where both are right. */
	if (must == FZ_MAYBE && op == FZ_WRITE_UC)
		op = FZ_WRITE;
	fz_tell(w, "%s by key %#x in pd %u: %u bytes at %#llx%s", name_of(op), d.key, d.pd, d.len,
		d.iova, must == FZ_YES ? ", allowed" : must == FZ_NO ? "" : ", perhaps");
	says = asked(w, &d, d.len, right_of(op), remote, must);

	arm(w, op, &d, by, s, &compare);
	status = fz_wire_rdma(w->wire[d.pd], op, d.key, d.iova, d.len, compare, s->d);
	if (op == FZ_WRITE_UC) {
		if (status != IB_WC_SUCCESS)
			fz_fail(w, "UC", "it broke: %d", status);
		else if (must == FZ_YES)
			done(w, op, &d, by, 0, 0);
		else
			fz_look(w, "refused UC WRITE", d.near);
		must == FZ_YES ? fz_stats.allowed++ : fz_stats.denied++;
		return;
	}
	if (must == FZ_MAYBE) {
		fz_stats.unjudged++;
		must = says ? FZ_YES : FZ_NO;
	}
	if (must == FZ_YES) {
		fz_stats.allowed++;
		if (status == IB_WC_SUCCESS)
			done(w, op, &d, by, compare, s->d);
		else
			fz_fail(w, "an allowed access", "%s by key %#x, %u bytes at %#llx: %s",
				name_of(op), d.key, d.len, d.iova, ib_wc_status_msg(status));
		return;
	}
	fz_stats.denied++;
	if (!refused(op, status))
		fz_fail(w, "a forbidden access", "%s by key %#x, %u bytes at %#llx: %s",
			name_of(op), d.key, d.len, d.iova, ib_wc_status_msg(status));
	if ((op == FZ_READ || atomic) && !untouched(fz_wire_buf(w->wire[d.pd]), d.len + 16))
		fz_fail(w, "a forbidden access", "%s by key %#x delivered bytes", name_of(op),
			d.key);
	fz_look(w, "a forbidden access", d.near);
}

/* Where ib_mr says the bytes are, they are. */
static void runs_as_must(struct fz_world *w, const struct draw *d, const struct fz_grant *by,
			 u64 len, const struct ib_mr_run *run, int n)
{
	u64 at = d->iova - by->iova, end = at + len, off;
	u32 room;
	int i;

	for (i = 0; i < n; i++) {
		for (off = 0; off < run[i].len && at < end; off += room, at += room) {
			if ((uintptr_t)fz_byte(w, by, at, false, &room) != run[i].addr + off)
				break;
			room = min3((u64)room, run[i].len - off, end - at);
		}
		if (off != run[i].len)
			break;
	}
	if (i != n || at != end)
		fz_fail(w, "ib_mr_translate", "key %#x, %llu bytes at %#llx: run %d of %d is wrong",
			d->key, len, d->iova, i, n);
}

/* Questions only, so any length may be asked. */
void fz_ask(struct fz_world *w, const struct fz_step *s)
{
	static const int rights[] = { RR, RW, RA, RR | RW, RR | RW | RA, LW, 0, LW };
	int right = rights[s->b >> 4 & 7], n;
	bool remote = right & REMOTE;
	struct ib_mr_run run[FZ_MAX_PAGES + 1];
	enum fz_verdict must;
	struct fz_grant *by;
	struct draw d;
	u64 len;

	draw(w, s, &d, remote);
	len = d.len;
	if (!(s->b >> 8 & 15))
		len = s->b & 1 << 9 ? U64_MAX - s->c : (u64)s->d << (s->c & 31);
	fz_tell(w, "ask for key %#x in pd %u: %llu bytes at %#llx, right %#x", d.key, d.pd, len,
		d.iova, right);
	must = fz_may(w, d.pd, d.key, d.iova, len, right, remote, &by);
	asked(w, &d, len, right, remote, must);

	must = fz_may(w, d.pd, d.key, d.iova, len, 0, false, &by);
	n = ib_mr_translate(w->pd[d.pd], d.key, d.iova, len, run, ARRAY_SIZE(run));
	if (!len)
		must = n ? FZ_NO : FZ_YES;
	else if ((n > 0) != (must == FZ_YES && by->region) && must != FZ_MAYBE)
		fz_fail(w, "ib_mr_translate", "key %#x, %llu bytes at %#llx: %d", d.key, len,
			d.iova, n);
	if (n > 0 && by)
		runs_as_must(w, &d, by, len, run, n);
}

/* Bytes in or out by a local key, by the CPU. */
void fz_copy(struct fz_world *w, const struct fz_step *s)
{
	bool in = s->b >> 4 & 1, must;
	struct rnd_state rnd;
	struct fz_grant *by;
	struct draw d;
	u8 *buf;
	int err;

	draw(w, s, &d, false);
	buf = fz_wire_buf(w->wire[d.pd]);
	if (d.len > FZ_BUF / 2)
		return;
	memset(buf, CANARY, d.len + 16);
	prandom_seed_state(&rnd, s->d);
	if (in)
		prandom_bytes_state(&rnd, buf, d.len);
	must = fz_may(w, d.pd, d.key, d.iova, d.len, in ? LW : 0, false, &by) == FZ_YES &&
	       (!by || by->region);
	fz_tell(w, "copy %s by key %#x in pd %u: %u bytes at %#llx", in ? "in" : "out", d.key,
		d.pd, d.len, d.iova);
	fz_stats.copies++;
	err = in ? ib_mr_copy_to(w->pd[d.pd], d.key, d.iova, buf, d.len) :
		   ib_mr_copy_from(w->pd[d.pd], d.key, d.iova, buf, d.len);
	if (!fz_called(w, "ib_mr_copy", err, must)) {
		if (!in && !untouched(buf, d.len + 16))
			fz_fail(w, "ib_mr_copy", "refused, but bytes came");
		fz_look(w, "ib_mr_copy", d.near);
		return;
	}
	if (!by)
		return;
	if (in)
		fz_store(w, by, d.iova - by->iova, buf, d.len);
	else if (!fz_same(w, by, d.iova - by->iova, buf, d.len))
		fz_fail(w, "ib_mr_copy", "other bytes came");
	fz_look(w, "ib_mr_copy", by);
}
