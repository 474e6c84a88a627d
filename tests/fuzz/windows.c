// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Steps on memory windows, and invalidations of any key.
 *
 * The rules of binding are those of the specification (C10-72 to C10-75, o10-36.2.2, o10-37.2.30
 * and .40), once more. A bind that finds no armed MR (-ENOMEM) has changed nothing.
 *
 * An invalidation is carried out by the device, by the owner's or by the peer's request, and the
 * core is told of it as a ULP does that finds it in a completion. The device looks at the key
 * alone: a peer in one PD can invalidate what is in another.
 */
#include "fuzz.h"

static void window_alloc(struct fz_world *w, const struct fz_step *s, struct fz_window *win)
{
	enum ib_mw_type type = s->a >> 9 & 1 ? IB_MW_TYPE_2 : IB_MW_TYPE_1;
	u8 pd = s->a >> 8 & 1;
	struct ib_mw *mw;

	fz_tell(w, "make window %u: pd %u, type %d", s->a % FZ_WINDOWS, pd, type);
	mw = ib_alloc_mw(w->pd[pd], type);
	if (fz_called(w, "ib_alloc_mw", PTR_ERR_OR_ZERO(mw), true))
		*win = (struct fz_window){ .mw = mw, .pd = pd };
}

/* It is bound to nothing any more. */
static void unbound(struct fz_world *w, struct fz_window *win)
{
	if (win->bound)
		win->bound->bound--;
	win->bound = NULL;
	fz_bury(w, &win->g);
}

/* Bytes of the region, some of them not. */
static void draw_range(const struct fz_region *r, const struct fz_step *s, u64 *at, u64 *len)
{
	*at = s->c % r->g.len;
	*len = 1 + s->d % (r->g.len - *at);
	switch (s->b >> 20 & 15) {
	case 0:
		*len = r->g.len - *at + 1;
		break;
	case 1:
		*at = 0 - (u64)1;
		break;
	case 2:
		*at = 0;
		*len = r->g.len;
		break;
	}
}

static bool bind_rules(const struct fz_window *win, const struct fz_region *r, u64 at, u64 len,
		       int access)
{
	if (win->pd != r->g.pd || !(r->g.access & MWB) || !access || r->zero_based)
		return false;
	if (access & (RW | RA) && !(r->g.access & LW))
		return false;
	if (win->mw->type == IB_MW_TYPE_2 && win->bound)
		return false;
	return at < r->g.len && len <= r->g.len - at;
}

/* Bound, also over a binding with type 1; made first where there is none. */
void fz_window_bind(struct fz_world *w, const struct fz_step *s)
{
	struct fz_window *win = &w->window[s->a % FZ_WINDOWS];
	struct fz_region *r = &w->region[s->b % FZ_REGIONS];
	struct ib_mw_bind_info info = {};
	int access = s->a >> 16 & 7, err;
	struct fz_grant want;
	u64 at, len, pos;
	struct ib_qp *qp;
	u32 i, n;

	if (!win->mw) {
		window_alloc(w, s, win);
		return;
	}
	if (!r->mr)
		return;
	draw_range(r, s, &at, &len);
	access = (access & 1 ? RR : 0) | (access & 2 ? RW : 0) | (access & 4 ? RA : 0);
	info = (struct ib_mw_bind_info){
		.mr = r->mr, .addr = r->g.iova + at, .length = len, .mw_access_flags = access,
	};
	qp = fz_wire_qp(w->wire[win->pd]);
	if (!qp) {
		fz_fail(w, "wire", "no queue pair");
		return;
	}
	fz_tell(w, "bind window %u to region %u: %llu bytes from %lld, access %#x",
		s->a % FZ_WINDOWS, s->b % FZ_REGIONS, len, at, access);
	if (win->mw->type == IB_MW_TYPE_2) {
		struct ib_bind_mw_wr wr = { .mw = win->mw, .bind_info = info };

		err = ib_mr_post_bind_mw(qp, &wr);
	} else {
		err = ib_mr_bind_mw(qp, win->mw, &info, 0, 0);
	}
	if (err == -ENOMEM && bind_rules(win, r, at, len, access)) {
		fz_stats.again++;
		return;
	}
	if (!fz_called(w, "ib_bind_mw", err, bind_rules(win, r, at, len, access)))
		return;

	unbound(w, win);
	want = r->g;
	pos = r->g.off + at;
	n = ((pos & ~PAGE_MASK) + len + PAGE_SIZE - 1) >> PAGE_SHIFT;
	for (i = 0; i < n; i++)
		want.page[i] = r->g.page[(pos >> PAGE_SHIFT) + i];
	want.off = offset_in_page(pos);
	want.len = len;
	want.iova = info.addr;
	want.access = access;
	want.lkey = 0;
	want.rkey = win->mw->rkey;
	want.unaddressed = true;
	want.region = false;
	want.dead = false;
	win->g = want;
	win->bound = r;
	r->bound++;
}

void fz_window_unbind(struct fz_world *w, const struct fz_step *s)
{
	struct fz_window *win = &w->window[s->a % FZ_WINDOWS];
	struct ib_mw_bind_info nothing = {};
	struct ib_qp *qp;

	if (!win->mw || win->mw->type != IB_MW_TYPE_1)
		return;
	qp = fz_wire_qp(w->wire[win->pd]);
	fz_tell(w, "unbind window %u (key %#x)", s->a % FZ_WINDOWS, win->g.rkey);
	if (qp && fz_called(w, "unbind", ib_mr_bind_mw(qp, win->mw, &nothing, 0, 0), true))
		unbound(w, win);
}

void fz_window_free(struct fz_world *w, const struct fz_step *s)
{
	struct fz_window *win = &w->window[s->a % FZ_WINDOWS];

	if (!win->mw)
		return;
	fz_tell(w, "free window %u (key %#x)", s->a % FZ_WINDOWS, win->g.rkey);
	if (fz_called(w, "ib_dealloc_mw", ib_dealloc_mw(win->mw), true)) {
		unbound(w, win);
		win->mw = NULL;
	}
}

static struct fz_window *window_of(struct fz_world *w, const struct fz_grant *g)
{
	unsigned int i;

	for (i = 0; i < FZ_WINDOWS; i++)
		if (&w->window[i].g == g)
			return &w->window[i];
	return NULL;
}

/* Every handle of a shared mapping, and the ghost of it. */
static void all_dead(struct fz_world *w, u32 key)
{
	struct fz_grant *g;
	u32 i, n;

	for (i = 0; i < FZ_POOLS; i++) {
		for (n = 0; n < FZ_HANDLES; n++) {
			g = &w->pool[i].handle[n].g;
			g->dead |= g->live && g->lkey == key;
		}
		for (n = 0; n < FZ_GHOSTS; n++) {
			g = &w->pool[i].ghost[n];
			g->dead |= g->live && g->lkey == key;
		}
	}
}

static bool has_key(const struct fz_grant *g)
{
	return g->rkey && !g->dead && !g->maybe;
}

void fz_invalidate(struct fz_world *w, const struct fz_step *s)
{
	struct fz_grant *g = fz_pick(w, s->a >> 8, has_key);
	u8 by_pd = s->a & 7 ? 0 : 1, pd;
	struct fz_window *win;
	bool by_peer = s->b & 1;
	u32 key, told = 0;
	bool type1;

	if (!g)
		return;
	key = g->rkey;
	pd = by_pd ? !g->pd : g->pd;
	win = window_of(w, g);
	type1 = win && win->mw->type == IB_MW_TYPE_1;
	fz_tell(w, "invalidate key %#x (%llu bytes at %#llx) by %s in pd %u", key, g->len, g->iova,
		by_peer ? "the peer" : "the owner", pd);
	fz_stats.rdma++;
	if (by_peer) {
		enum ib_wc_status status = fz_wire_send_inv(w->wire[pd], key, &told);

		if (status != IB_WC_SUCCESS || told != key) {
			fz_fail(w, "invalidation", "key %#x: status %d, told %#x", key, status,
				told);
			return;
		}
	} else if (fz_wire_local_inv(w->wire[pd], key) != IB_WC_SUCCESS) {
		fz_fail(w, "invalidation", "key %#x could not be invalidated", key);
		return;
	}
	/* That it was another PD's, or a type 1 window's, is a complaint; it is dead even so. */
	fz_called(w, "ib_mr_invalidated", ib_mr_invalidated(w->pd[pd], key),
		  pd == g->pd && !type1);
	if (win && pd == g->pd) {
		unbound(w, win);
		return;
	}
	g->dead = true;
	all_dead(w, key);
}

void fz_windows_end(struct fz_world *w)
{
	unsigned int i;

	for (i = 0; i < FZ_WINDOWS; i++) {
		struct fz_window *win = &w->window[i];

		if (!win->mw)
			continue;
		fz_called(w, "ib_dealloc_mw", ib_dealloc_mw(win->mw), true);
		unbound(w, win);
		win->mw = NULL;
	}
}
