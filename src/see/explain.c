// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Why would this access be refused? One sentence, with the numbers.
 *
 * A peer whose access is refused sees "remote access error" and a broken connection; which of a
 * dozen causes it was, nobody says. The sentence here gives the cause and what is needed to see the
 * mistake: the key that would be right, the right that is missing, by how many bytes which end was
 * missed, how long ago the region was deregistered.
 *
 * The verdict is ib_mr_check()'s, so the two cannot differ; this adds what only diagnosis looks at:
 * the graves of deregistered handles, and who left a region stale.
 */

#include <linux/overflow.h>
#include <linux/rcupdate.h>

#include "base/compat.h"
#include "mr/access.h"
#include "mr/handle.h"
#include "mr/pin.h"
#include "mr/xlate.h"
#include "see/explain.h"

struct text {
	char *buf;
	size_t size;
	size_t used;
};

static void __printf(2, 3) say(struct text *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	t->used += vscnprintf(t->buf + t->used, t->size - t->used, fmt, args);
	va_end(args);
}

static const struct {
	int bit;
	const char *name;
} right_names[] = {
	{ IB_ACCESS_LOCAL_WRITE, "LOCAL_WRITE" },
	{ IB_ACCESS_REMOTE_READ, "REMOTE_READ" },
	{ IB_ACCESS_REMOTE_WRITE, "REMOTE_WRITE" },
	{ IB_ACCESS_REMOTE_ATOMIC, "REMOTE_ATOMIC" },
	{ IB_ACCESS_MW_BIND, "MW_BIND" },
	{ IB_ZERO_BASED, "ZERO_BASED" },
};

/**
 * ibmr_rights_text() - the names of rights
 * @access: rights
 * @between: what stands between two
 * @buf: they go here, or "none"
 * @size: of @buf
 *
 * Context: any.
 * Return: @buf.
 */
const char *ibmr_rights_text(int access, const char *between, char *buf, size_t size)
{
	struct text t = { .buf = buf, .size = size };
	int i;

	for (i = 0; i < ARRAY_SIZE(right_names); i++)
		if (access & right_names[i].bit)
			say(&t, "%s%s", t.used ? between : "", right_names[i].name);
	if (!t.used)
		say(&t, "none");
	return buf;
}

struct question {
	const struct ib_pd *pd;
	u32 key;
	u64 iova;
	u64 length;
	int access;
	bool remote;
};

/* The key's index leads to nothing, or to an object with another key. */
static enum ib_mr_reason say_key(struct text *t, struct ibmr_dev *dev, const struct question *q,
				 enum ib_mr_reason why, const struct ibmr_view *v)
{
	u32 last, current_key;
	u64 msecs;

	if (ibmr_handle_died(dev, q->key, &last, &msecs) &&
	    (last == q->key || why == IB_MR_WHY_UNKNOWN_KEY)) {
		say(t, "refused: key %#x was a region's that was deregistered %llu ms ago", q->key,
		    msecs);
		if (last != q->key)
			say(t, " (its last key was %#x)", last);
		return IB_MR_WHY_DEREGISTERED;
	}
	if (why == IB_MR_WHY_STALE_KEY) {
		current_key = v->lkey ?: v->rkey;
		say(t,
		    "refused: key %#x is stale: variant %#x was given, and the current one is %#x (key %#x)",
		    q->key, q->key & 0xff, current_key & 0xff, current_key);
	} else if (q->pd && q->key == q->pd->local_dma_lkey) {
		say(t,
		    "not ours to say: key %#x is the protection domain's own local_dma_lkey, which reaches all memory, locally only",
		    q->key);
	} else {
		say(t, "refused: no region has key %#x", q->key);
	}
	return why;
}

static void say_bounds(struct text *t, const struct question *q, const struct ibmr_view *v)
{
	u64 off, past;

	if (q->iova < v->iova) {
		say(t, "refused: the access begins %llu bytes before the start of the region",
		    v->iova - q->iova);
	} else {
		off = q->iova - v->iova;
		if (off >= v->length) {
			say(t, "refused: the access begins %llu bytes past the end of the region",
			    off - v->length);
		} else if (check_add_overflow(off, q->length, &past)) {
			say(t, "refused: the access passes 2^64, far past the end of the region");
		} else {
			say(t, "refused: the access ends %llu bytes past the end of the region",
			    past - v->length);
		}
	}
	say(t, " (%llu bytes at %#llx were asked for; it has %llu at %#llx)", q->length, q->iova,
	    v->length, v->iova);
}

/* Allowed: by whom is the memory seen? */
static enum ib_mr_reason say_allowed(struct text *t, const struct question *q,
				     const struct ibmr_view *v)
{
	const struct ibmr_umem *um = v->reg ? ibmr_mem_user(v->reg->mem) : NULL;
	bool stale = um && smp_load_acquire(&um->mem.stale);	/* then @stale_at is there */

	if (stale)
		say(t,
		    "stale: process %s (%d) unmapped or moved the memory %lld ms ago; the access works, but at these addresses nobody sees it",
		    um->comm, um->owner, ktime_ms_delta(ktime_get(), um->stale_at));
	else
		say(t, "allowed: %llu bytes, from byte %llu of %llu on", q->length,
		    q->iova - v->iova, v->length);
	return stale ? IB_MR_WHY_STALE_REGION : IB_MR_WHY_OK;
}

static enum ib_mr_reason say_view(struct text *t, struct ibmr_dev *dev, const struct question *q,
				  const struct ibmr_view *v)
{
	char want[IBMR_RIGHTS_TEXT], have[IBMR_RIGHTS_TEXT];
	enum ib_mr_reason why;

	why = ibmr_view_verdict(v, q->pd, q->key, q->iova, q->length, q->access, q->remote);
	ibmr_rights_text(q->access & ~v->access, ", ", want, sizeof(want));
	ibmr_rights_text(v->access, ", ", have, sizeof(have));
	switch (why) {
	case IB_MR_WHY_OK:
		return say_allowed(t, q, v);
	case IB_MR_WHY_STALE_KEY:
		return say_key(t, dev, q, why, v);
	case IB_MR_WHY_LOCAL_KEY:
		say(t,
		    "refused: key %#x is a local key and was used as a remote one: the region has no remote right (it has: %s)",
		    q->key, have);
		break;
	case IB_MR_WHY_WRONG_KIND:
		say(t, "refused: key %#x is a memory window's, which only peers can use", q->key);
		break;
	case IB_MR_WHY_OTHER_PD:
		say(t, "refused: the region with key %#x is in another protection domain", q->key);
		/* As rdma resource show pd has them. */
		if (v->reg)
			say(t, " (pd %u, and pd %u was given)", v->reg->pdn, q->pd->res.id);
		else
			say(t, " (not in pd %u, which was given)", q->pd->res.id);
		break;
	case IB_MR_WHY_NO_RIGHT:
		say(t, "refused: the region does not grant %s (it grants: %s)", want, have);
		break;
	case IB_MR_WHY_INVALIDATED:
		say(t,
		    "refused: key %#x was invalidated by the peer, or by a LOCAL_INV; the region has to be registered anew",
		    q->key);
		break;
	case IB_MR_WHY_NOT_MAPPED_NOW:
		say(t, "refused: key %#x is mapped to nothing now", q->key);
		break;
	case IB_MR_WHY_BEFORE_START:
	case IB_MR_WHY_PAST_END:
		say_bounds(t, q, v);
		break;
	default:
		say(t, "refused: %s", ib_mr_reason_text(why));
	}
	return why;
}

static enum ib_mr_reason explain(struct text *t, struct ibmr_dev *dev, const struct question *q)
{
	struct ibmr_view v;

	if (!q->length) {
		say(t, "allowed: an access of 0 bytes touches nothing, whatever the key");
		return IB_MR_WHY_OK;
	}
	if (!ibmr_view_find(dev, q->key, &v))
		return say_key(t, dev, q, IB_MR_WHY_UNKNOWN_KEY, NULL);
	return say_view(t, dev, q, &v);
}

/**
 * ib_mr_explain() - why would the device refuse an access?
 * @device: device
 * @pd: PD of the queue pair through which it would come; NULL leaves the PD out
 * @key: key
 * @iova: address of the first byte
 * @length: bytes
 * @access: what it does: with a remote right it is a peer's, else a local one
 *          (IB_ACCESS_LOCAL_WRITE, or 0 where the device only fetches)
 * @buf: one sentence, without a line end, goes here
 * @size: of @buf; 200 hold nearly every sentence, and what is longer is cut
 *
 * For a log line or a debugger; costs microseconds. Beyond ib_mr_check(), it knows regions that
 * were deregistered a while ago, and says of stale ones that the access works, but not on what is
 * mapped there now.
 *
 * Context: any but NMI; does not sleep.
 * Return: the reason: IB_MR_WHY_OK when it is allowed, IB_MR_WHY_STALE_REGION when it is allowed
 * and of no use, else why it is refused.
 */
enum ib_mr_reason ib_mr_explain(struct ib_device *device, struct ib_pd *pd, u32 key, u64 iova,
				u64 length, int access, char *buf, size_t size)
{
	struct question q = {
		.pd = pd, .key = key, .iova = iova, .length = length, .access = access,
		.remote = access & IBMR_REMOTE_RIGHTS,
	};
	struct text t = { .buf = buf, .size = size };
	enum ib_mr_reason why;
	struct ibmr_dev *dev;

	if (!buf || !size || !device)
		return IB_MR_WHY_NULL_ARG;
	*buf = '\0';
	rcu_read_lock();
	dev = ibmr_dev_rcu(device);
	if (dev && !READ_ONCE(dev->gone)) {
		why = explain(&t, dev, &q);
	} else {
		why = IB_MR_WHY_NO_DEVICE;
		say(&t, "refused: %s", ib_mr_reason_text(why));
	}
	rcu_read_unlock();
	return why;
}
EXPORT_SYMBOL(ib_mr_explain);
