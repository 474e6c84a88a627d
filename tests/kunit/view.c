// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Is a region what it should be? Proved by operations, never by looking at the region.
 *
 * A view says which bytes of which buffer a region covers, at which iova, with which rights. Each
 * right that was given must work on the first byte, the last, and all between, and must move the
 * right bytes and no others; one byte before and one after must be refused, also as part of a
 * longer access. Each right that was not given must be refused in the middle of the region. Then
 * the same from the inside, with the local key. The buffer holds its pattern before and after.
 */
#include <linux/align.h>
#include "helpers.h"

/*
 * A view that is longer is read in samples, since a soft device moves few megabytes a second
 * under KASAN.
 */
#define IBT_READ_ALL	SZ_512K
#define IBT_SAMPLES	16

static void ibt_expect_remote(struct ibt_pair *p, enum ibt_op op, u32 rkey, u64 iova, u32 len,
			      enum ib_wc_status want, const char *where)
{
	enum ib_wc_status status = ibt_rdma(p, op, p->req.buf, rkey, iova, len);

	KUNIT_EXPECT_EQ_MSG(p->test, status, want, "%s of %u bytes at %#llx (%s): %s",
			    ibt_op_name(op), len, iova, where, ib_wc_status_msg(status));
}

static void ibt_expect_own(struct ibt_pair *p, enum ibt_op op, u32 lkey, u64 iova, u32 len,
			   bool granted, const char *where)
{
	enum ib_wc_status status = ibt_local(p, op, lkey, iova, len);

	KUNIT_EXPECT_TRUE_MSG(p->test, granted ? status == IB_WC_SUCCESS : ibt_local_error(status),
			      "own %s of %u bytes at %#llx (%s): %s", ibt_op_name(op), len, iova,
			      where, ib_wc_status_msg(status));
}

void ibt_expect_read(struct ibt_pair *p, struct ib_mr *mr, const struct ibt_view *v, size_t at,
		     size_t len)
{
	size_t chunk, bad;

	for (; len; at += chunk, len -= chunk) {
		chunk = min_t(size_t, len, IBT_LOCAL);
		memset(p->req.buf, 0xa5, chunk);
		ibt_expect_remote(p, IBT_READ, mr->rkey, v->iova + at, chunk, IB_WC_SUCCESS,
				  "inside");
		bad = ibt_diff_copy(v->buf, v->off + at, chunk, p->req.buf);
		KUNIT_EXPECT_EQ_MSG(p->test, bad, v->off + at + chunk, "first wrong byte");
	}
}

void ibt_expect_write(struct ibt_pair *p, struct ib_mr *mr, const struct ibt_view *v, size_t at,
		      size_t len)
{
	struct ibt_buf *b = v->buf;
	size_t off = v->off + at, from = off > 64 ? off - 64 : 0;
	size_t to = min(off + len + 64, b->size), i;

	for (i = 0; i < len; i++)
		p->req.buf[i] = ~ibt_pat(b->seed, off + i);
	ibt_expect_remote(p, IBT_WRITE, mr->rkey, v->iova + at, len, IB_WC_SUCCESS, "inside");
	for (i = 0; i < len && *ibt_ptr(b, off + i) == (u8)~ibt_pat(b->seed, off + i); i++)
		;
	KUNIT_EXPECT_EQ_MSG(p->test, i, len, "written bytes that arrived");
	ibt_fill(b, off, len, b->seed);
	KUNIT_EXPECT_EQ_MSG(p->test, ibt_diff(b, from, to - from), to, "bytes beside were written");
}

static void ibt_expect_atomic(struct ibt_pair *p, struct ib_mr *mr, const struct ibt_view *v,
			      size_t at)
{
	u64 *mem = (u64 *)ibt_ptr(v->buf, v->off + at), was = *mem;

	p->add = 0x100000001ull;
	ibt_expect_remote(p, IBT_FETCH_ADD, mr->rkey, v->iova + at, 8, IB_WC_SUCCESS, "inside");
	KUNIT_EXPECT_EQ(p->test, *(u64 *)p->req.buf, was);
	KUNIT_EXPECT_EQ(p->test, *mem, was + p->add);

	/* Back to what it was, but first with a comparison that fails. */
	p->compare = was;
	p->swap = 0;
	ibt_expect_remote(p, IBT_CMP_SWAP, mr->rkey, v->iova + at, 8, IB_WC_SUCCESS, "unequal");
	KUNIT_EXPECT_EQ(p->test, *mem, was + p->add);
	p->compare = was + p->add;
	p->swap = was;
	ibt_expect_remote(p, IBT_CMP_SWAP, mr->rkey, v->iova + at, 8, IB_WC_SUCCESS, "equal");
	KUNIT_EXPECT_EQ(p->test, *(u64 *)p->req.buf, p->compare);
	KUNIT_EXPECT_EQ(p->test, *mem, was);
}

/* The first place in the view, from @at, where an atomic may be. */
static size_t ibt_aligned(const struct ibt_view *v, size_t at)
{
	return at + (-(uintptr_t)ibt_ptr(v->buf, v->off + at) & 7);
}

static void ibt_expect_ends(struct ibt_pair *p, enum ibt_op op, u32 rkey, const struct ibt_view *v)
{
	if (v->unbounded)
		return;
	ibt_expect_remote(p, op, rkey, v->iova - 1, 1, IB_WC_REM_ACCESS_ERR, "before");
	ibt_expect_remote(p, op, rkey, v->iova - 1, 2, IB_WC_REM_ACCESS_ERR, "across the start");
	ibt_expect_remote(p, op, rkey, v->iova + v->len, 1, IB_WC_REM_ACCESS_ERR, "after");
	ibt_expect_remote(p, op, rkey, v->iova + v->len - 1, 2, IB_WC_REM_ACCESS_ERR,
			  "across the end");
	if (v->len < IBT_LOCAL)
		ibt_expect_remote(p, op, rkey, v->iova, v->len + 1, IB_WC_REM_ACCESS_ERR,
				  "all and one more");
}

static void ibt_view_reads(struct ibt_pair *p, struct ib_mr *mr, const struct ibt_view *v)
{
	size_t step = v->len / IBT_SAMPLES, i;

	if (!(v->access & RR)) {
		ibt_expect_remote(p, IBT_READ, mr->rkey ?: mr->lkey, v->iova, 1,
				  IB_WC_REM_ACCESS_ERR, "no right");
		return;
	}
	ibt_expect_read(p, mr, v, 0, 1);
	ibt_expect_read(p, mr, v, v->len - 1, 1);
	if (v->len <= IBT_READ_ALL)
		ibt_expect_read(p, mr, v, 0, v->len);
	else
		for (i = 0; i < IBT_SAMPLES; i++)
			ibt_expect_read(p, mr, v, i * step, SZ_8K + 3);
	ibt_expect_ends(p, IBT_READ, mr->rkey, v);
}

static void ibt_view_writes(struct ibt_pair *p, struct ib_mr *mr, const struct ibt_view *v)
{
	size_t part = min_t(size_t, v->len, SZ_16K);

	if (!(v->access & RW)) {
		ibt_expect_remote(p, IBT_WRITE, mr->rkey ?: mr->lkey, v->iova, 1,
				  IB_WC_REM_ACCESS_ERR, "no right");
		return;
	}
	ibt_expect_write(p, mr, v, 0, 1);
	ibt_expect_write(p, mr, v, v->len - 1, 1);
	ibt_expect_write(p, mr, v, 0, part);
	ibt_expect_write(p, mr, v, v->len - part, part);
	ibt_expect_ends(p, IBT_WRITE, mr->rkey, v);
}

static void ibt_view_atomics(struct ibt_pair *p, struct ib_mr *mr, const struct ibt_view *v)
{
	size_t first = ibt_aligned(v, 0), past;

	if (first + 8 > v->len)
		return;
	if (!(v->access & RA)) {
		ibt_expect_remote(p, IBT_FETCH_ADD, mr->rkey ?: mr->lkey, v->iova + first, 8,
				  IB_WC_REM_ACCESS_ERR, "no right");
		return;
	}
	/* The first one that does not fit, and the last that does. */
	past = ibt_aligned(v, v->len - 7);
	ibt_expect_atomic(p, mr, v, first);
	ibt_expect_atomic(p, mr, v, past - 8);
	if (v->unbounded)
		return;
	ibt_expect_remote(p, IBT_FETCH_ADD, mr->rkey, v->iova + past, 8, IB_WC_REM_ACCESS_ERR,
			  "past the end");
	ibt_expect_remote(p, IBT_CMP_SWAP, mr->rkey, v->iova + first - 8, 8,
			  IB_WC_REM_ACCESS_ERR, "before the start");
}

/* The owner's side: reading its own region needs no right, writing it needs LOCAL_WRITE. */
static void ibt_view_own(struct ibt_pair *p, struct ib_mr *mr, const struct ibt_view *v)
{
	size_t part = min_t(size_t, v->len, SZ_16K), bad;

	memset(p->req.buf, 0xa5, part);
	ibt_expect_own(p, IBT_WRITE, mr->lkey, v->iova, part, true, "from");
	bad = ibt_diff_copy(v->buf, v->off, part, p->req.buf);
	KUNIT_EXPECT_EQ_MSG(p->test, bad, v->off + part, "first wrong byte");
	ibt_expect_own(p, IBT_SEND, mr->lkey, v->iova + v->len - 1, 1, true, "last byte");
	KUNIT_EXPECT_EQ(p->test, *p->req.buf, ibt_pat(v->buf->seed, v->off + v->len - 1));
	if (!v->unbounded) {
		ibt_expect_own(p, IBT_WRITE, mr->lkey, v->iova - 1, 2, false, "start");
		ibt_expect_own(p, IBT_WRITE, mr->lkey, v->iova + v->len - 1, 2, false, "end");
	}

	*p->req.buf = ~ibt_pat(v->buf->seed, v->off);
	ibt_expect_own(p, IBT_READ, mr->lkey, v->iova, 1, v->access & LW, "into");
	KUNIT_EXPECT_EQ(p->test, *ibt_ptr(v->buf, v->off),
			(u8)(ibt_pat(v->buf->seed, v->off) ^ (v->access & LW ? 0xff : 0)));
	ibt_fill(v->buf, v->off, 1, v->buf->seed);

	*p->req.buf = ~ibt_pat(v->buf->seed, v->off + v->len - 1);
	ibt_expect_own(p, IBT_RECV, mr->lkey, v->iova + v->len - 1, 1, v->access & LW, "last byte");
	ibt_fill(v->buf, v->off + v->len - 1, 1, v->buf->seed);
	if (v->access & LW && !v->unbounded) {
		ibt_expect_own(p, IBT_READ, mr->lkey, v->iova + v->len - 1, 2, false, "end");
		ibt_fill(v->buf, v->off + v->len - 1, 1, v->buf->seed);
	}
}

void ibt_expect_view(struct ibt_pair *p, struct ib_mr *mr, const struct ibt_view *v)
{
	struct kunit *test = p->test;
	struct ib_mr_attr attr;

	KUNIT_EXPECT_EQ_MSG(test, !!mr->rkey, !!(v->access & (RR | RW | RA)), "the remote key");
	KUNIT_EXPECT_NE(test, mr->lkey, (u32)0);
	KUNIT_EXPECT_EQ(test, ib_query_mr(mr, &attr), 0);
	KUNIT_EXPECT_PTR_EQ(test, attr.pd, p->tgt.pd);
	KUNIT_EXPECT_EQ(test, attr.device_virt_addr, v->unbounded ? 0 : v->iova);
	KUNIT_EXPECT_EQ(test, attr.mr_access_flags, v->access);
	KUNIT_EXPECT_EQ(test, attr.lkey, mr->lkey);
	KUNIT_EXPECT_EQ(test, attr.rkey, mr->rkey);
	if (!v->unbounded)
		KUNIT_EXPECT_EQ(test, attr.size, (u64)v->len);

	ibt_view_reads(p, mr, v);
	ibt_view_writes(p, mr, v);
	ibt_view_atomics(p, mr, v);
	ibt_view_own(p, mr, v);
	KUNIT_EXPECT_TRUE_MSG(test, ibt_intact(v->buf), "the buffer was changed");
}

void ibt_expect_dead(struct ibt_pair *p, u32 lkey, u32 rkey, u64 iova)
{
	if (rkey) {
		ibt_expect_remote(p, IBT_READ, rkey, iova, 1, IB_WC_REM_ACCESS_ERR, "dead key");
		ibt_expect_remote(p, IBT_WRITE, rkey, iova, 1, IB_WC_REM_ACCESS_ERR, "dead key");
	}
	ibt_expect_own(p, IBT_WRITE, lkey, iova, 1, false, "dead key");
}
