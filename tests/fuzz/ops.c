// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Steps on regions, on memory of a process, and on arenas. The rules of registration as they are
 * documented, once more: what the model says must happen, and what it grants afterwards.
 */
#include "fuzz.h"

/* Bytes of plain pages, as a step's numbers say. */
static void draw_bytes(struct fz_grant *g, u32 where, u32 how)
{
	u32 pages = 1 + where / FZ_PLAIN % 5;

	fz_pages(g, where, pages);
	g->off = how & 3 ? how >> 4 & ~PAGE_MASK : 0;
	g->len = pages * PAGE_SIZE - g->off;
	if (how & 4)
		g->len -= (how >> 16) % min_t(u64, g->len, PAGE_SIZE);
}

static int phys_list(struct fz_world *w, const struct fz_grant *g, struct ib_phys_buf *list)
{
	u32 room;
	u64 at;
	int n;

	for (n = 0, at = 0; at < g->len; n++, at += list[n - 1].size) {
		list[n].addr = (uintptr_t)fz_byte(w, g, at, false, &room);
		list[n].size = min_t(u64, room, g->len - at);
	}
	return n;
}

/* Congruent to the first byte; now and then near the end of the addresses, or just too near. */
static u64 draw_iova(const struct fz_grant *g, u32 draw)
{
	switch (draw & 15) {
	case 0:
		return g->off;
	case 1:
		return ((0 - SZ_4G - SZ_64K) & PAGE_MASK) + g->off;
	case 2:
		return ((0 - SZ_4G) & PAGE_MASK) + g->off;
	default:
		return (u64)(draw >> 4) * PAGE_SIZE + g->off;
	}
}

/* May bytes be registered at this address with these rights? */
static bool reg_rules(const struct fz_grant *g, bool zero_based)
{
	if (g->access & (RW | RA) && !(g->access & LW))
		return false;
	if (zero_based && (g->iova || g->off))
		return false;
	if (offset_in_page(g->iova) != g->off)
		return false;
	return g->len - 1 <= U64_MAX - g->iova && U64_MAX - g->iova - (g->len - 1) >= SZ_4G;
}

static void grant_region(struct fz_region *r, struct fz_grant *want)
{
	r->g = *want;
	r->g.live = true;
	r->g.region = true;
	r->g.lkey = r->mr->lkey;
	r->g.rkey = r->mr->rkey;
}

void fz_region_reg(struct fz_world *w, const struct fz_step *s)
{
	struct fz_region *r = &w->region[s->a % FZ_REGIONS];
	struct ib_phys_buf list[FZ_MAX_PAGES + 1];
	struct fz_grant want = {};
	struct ib_mr *mr;
	bool zero_based;
	int n;

	if (r->mr)
		return;
	want.pd = s->a >> 8 & 1;
	draw_bytes(&want, s->b, s->c);
	want.iova = draw_iova(&want, s->d);
	want.access = fz_rights(s->a >> 16);
	zero_based = !(s->a >> 9 & 15);
	if (zero_based)
		want.iova = 0;
	n = phys_list(w, &want, list);
	fz_tell(w, "register region %u: pd %u, %llu bytes, page %u + %u, at %#llx, access %#x%s",
		s->a % FZ_REGIONS, want.pd, want.len, want.page[0], want.off, want.iova,
		want.access, zero_based ? ", zero-based" : "");
	mr = ib_reg_phys_mr(w->pd[want.pd], list, n,
			    want.access | (zero_based ? IB_ZERO_BASED : 0), &want.iova);
	if (!fz_called(w, "ib_reg_phys_mr", PTR_ERR_OR_ZERO(mr), reg_rules(&want, zero_based)))
		return;
	r->mr = mr;
	r->zero_based = zero_based;
	grant_region(r, &want);
	if (mr->iova != want.iova || mr->length != want.len ||
	    !!mr->rkey != !!(want.access & REMOTE))
		fz_fail(w, "handle", "the handle says %llu bytes at %#llx, rkey %#x", mr->length,
			mr->iova, mr->rkey);
}

void fz_region_rereg(struct fz_world *w, const struct fz_step *s)
{
	struct fz_region *r = &w->region[s->a % FZ_REGIONS];
	int mask = s->a >> 8 & 7, n = 0, access = 0, err;
	struct ib_phys_buf list[FZ_MAX_PAGES + 1];
	struct fz_grant want;
	bool must;

	if (!r->mr)
		return;
	want = r->g;
	if (mask & IB_MR_REREG_TRANS) {
		draw_bytes(&want, s->b, s->c);
		want.iova = draw_iova(&want, s->d);
		n = phys_list(w, &want, list);
	}
	if (mask & IB_MR_REREG_PD)
		want.pd = s->a >> 12 & 1;
	if (mask & IB_MR_REREG_ACCESS)
		access = fz_rights(s->a >> 16);
	if (mask & IB_MR_REREG_ACCESS)
		want.access = access;
	fz_tell(w,
		"re-register %u: mask %#x, pd %u, %llu bytes, page %u + %u, at %#llx, access %#x",
		s->a % FZ_REGIONS, mask, want.pd, want.len, want.page[0], want.off, want.iova,
		want.access);
	must = mask && !r->bound &&
	       reg_rules(&want, r->zero_based && !(mask & IB_MR_REREG_ACCESS));
	err = ib_rereg_phys_mr(r->mr, mask, w->pd[want.pd], list, n, access, &want.iova);
	if (!fz_called(w, "ib_rereg_phys_mr", err, must))
		return;
	if (mask & IB_MR_REREG_ACCESS)
		r->zero_based = false;
	want.dead = false;
	fz_bury(w, &r->g);
	grant_region(r, &want);
}

static void dereg(struct fz_world *w, struct fz_region *r)
{
	if (fz_called(w, "ib_dereg_mr", ib_dereg_mr(r->mr), !r->bound)) {
		fz_bury(w, &r->g);
		r->mr = NULL;
	}
}

void fz_region_dereg(struct fz_world *w, const struct fz_step *s)
{
	struct fz_region *r = &w->region[s->a % FZ_REGIONS];

	if (!r->mr)
		return;
	fz_tell(w, "deregister region %u (key %#x, %d windows)", s->a % FZ_REGIONS, r->g.lkey,
		r->bound);
	dereg(w, r);
}

/* Memory of the process that loads the module: registered, or deregistered. */
void fz_user(struct fz_world *w, const struct fz_step *s)
{
	struct fz_region *r = &w->umem[s->a % FZ_USERS];
	u32 first = s->b % FZ_USER, pages = 1 + s->b / FZ_USER % (FZ_USER - first), i;
	struct fz_grant want = {};
	struct ib_mr *mr;

	if (r->mr) {
		fz_tell(w, "deregister user memory %u (key %#x)", s->a % FZ_USERS, r->g.lkey);
		dereg(w, r);
		return;
	}
	for (i = 0; i < pages; i++)
		want.page[i] = FZ_FIRST_USER + first + i;
	want.off = s->c & 3 ? s->c >> 4 & ~PAGE_MASK : 0;
	want.len = pages * PAGE_SIZE - want.off;
	if (s->c & 4)
		want.len -= (s->c >> 16) % min_t(u64, want.len, PAGE_SIZE);
	want.pd = s->a >> 8 & 1;
	want.access = fz_rights(s->a >> 16);
	want.iova = draw_iova(&want, s->d);
	fz_tell(w, "register user memory %u: pd %u, %llu bytes, page %u + %u, at %#llx, access %#x",
		s->a % FZ_USERS, want.pd, want.len, first, want.off, want.iova, want.access);
	mr = ib_mr_reg_user(w->pd[want.pd], w->user + first * PAGE_SIZE + want.off, want.len,
			    want.access, &want.iova);
	if (!fz_called(w, "ib_mr_reg_user", PTR_ERR_OR_ZERO(mr), reg_rules(&want, false)))
		return;
	r->mr = mr;
	grant_region(r, &want);
}

/* An arena comes, or goes; it cannot while slices are out. */
void fz_arena(struct fz_world *w, const struct fz_step *s)
{
	unsigned int n = s->a % FZ_ARENAS, i, out = 0;
	struct fz_arena *a = &w->arena[n];
	struct fz_page *page = &w->page[FZ_FIRST_ARENA + n * FZ_ARENA];
	struct fz_grant want = {};
	struct ib_mr_arena *arena;
	struct ib_mr *mr;

	if (a->arena) {
		for (i = 0; i < FZ_SLICES; i++)
			out += !!a->slice[i].va;
		fz_tell(w, "destroy arena %u (%u slices)", n, out);
		/* The pages are no arena's from now on, so they are not to be looked at. */
		if (!out)
			fz_look(w, "arena's end", &a->g);
		if (!fz_called(w, "ib_mr_arena_destroy", ib_mr_arena_destroy(a->arena), !out))
			return;
		fz_bury(w, &a->g);
		a->arena = NULL;
		for (i = 0; i < FZ_ARENA; i++)
			page[i].va = NULL;
		return;
	}
	want.pd = s->a >> 8 & 1;
	want.access = fz_rights(s->a >> 16) & ~MWB;
	fz_tell(w, "make arena %u: pd %u, access %#x", n, want.pd, want.access);
	arena = ib_mr_arena_create(w->pd[want.pd], FZ_ARENA * PAGE_SIZE, want.access, 0);
	if (!fz_called(w, "ib_mr_arena_create", PTR_ERR_OR_ZERO(arena),
		       !(want.access & (RW | RA)) || want.access & LW))
		return;
	a->arena = arena;
	mr = ib_mr_arena_mr(arena);
	want.iova = mr->iova;
	want.off = offset_in_page(mr->iova);
	want.len = FZ_ARENA * PAGE_SIZE;
	for (i = 0; i < FZ_ARENA; i++) {
		page[i].va = (u8 *)(uintptr_t)mr->iova + i * PAGE_SIZE;
		memset(page[i].shadow, 0, PAGE_SIZE);
		want.page[i] = FZ_FIRST_ARENA + n * FZ_ARENA + i;
	}
	want.live = true;
	want.region = true;
	want.lkey = mr->lkey;
	want.rkey = mr->rkey;
	a->g = want;
	if (want.off)
		fz_fail(w, "arena", "it begins inside a page");
}

static bool overlaps(const struct ib_mr_slice *a, const struct ib_mr_slice *b)
{
	return a->va && b->va && a->va < b->va + b->size && b->va < a->va + a->size;
}

void fz_slice(struct fz_world *w, const struct fz_step *s)
{
	struct fz_arena *a = &w->arena[s->a % FZ_ARENAS];
	struct ib_mr_slice *slice = &a->slice[s->b % FZ_SLICES], copy;
	u32 size = s->c % (FZ_ARENA * PAGE_SIZE + 2), i;
	int err;

	if (!a->arena)
		return;
	if (slice->va) {
		fz_tell(w, "free slice %u of arena %u", s->b % FZ_SLICES, s->a % FZ_ARENAS);
		copy = *slice;
		fz_called(w, "ib_mr_arena_free", ib_mr_arena_free(a->arena, slice), true);
		fz_called(w, "ib_mr_arena_free twice", ib_mr_arena_free(a->arena, &copy), false);
		memset(slice, 0, sizeof(*slice));
		return;
	}
	fz_tell(w, "slice %u of arena %u: %u bytes", s->b % FZ_SLICES, s->a % FZ_ARENAS, size);
	err = ib_mr_arena_alloc(a->arena, size, slice);
	fz_stats.calls++;
	fz_stats.refused += !!err;
	if (err) {
		memset(slice, 0, sizeof(*slice));
		if (err != (size ? -ENOMEM : -EINVAL))
			fz_fail(w, "slice", "%u bytes: %d", size, err);
		return;
	}
	if (!size || slice->size != size || slice->iova < a->g.iova ||
	    slice->iova - a->g.iova > a->g.len - size)
		fz_fail(w, "slice", "%zu bytes at %#llx for %u of [%#llx, +%#llx)", slice->size,
			slice->iova, size, a->g.iova, a->g.len);
	for (i = 0; i < FZ_SLICES; i++)
		if (&a->slice[i] != slice && overlaps(&a->slice[i], slice))
			fz_fail(w, "slice", "two slices overlap");
}

/* All regions and arenas go; no window is bound any more. */
void fz_regions_end(struct fz_world *w)
{
	unsigned int i, k;

	for (i = 0; i < FZ_REGIONS; i++)
		if (w->region[i].mr)
			dereg(w, &w->region[i]);
	for (i = 0; i < FZ_USERS; i++)
		if (w->umem[i].mr)
			dereg(w, &w->umem[i]);
	for (i = 0; i < FZ_ARENAS; i++) {
		struct fz_arena *a = &w->arena[i];

		if (!a->arena)
			continue;
		for (k = 0; k < FZ_SLICES; k++)
			if (a->slice[k].va)
				fz_called(w, "ib_mr_arena_free",
					  ib_mr_arena_free(a->arena, &a->slice[k]), true);
		fz_called(w, "ib_mr_arena_destroy", ib_mr_arena_destroy(a->arena), true);
		a->arena = NULL;
		for (k = 0; k < FZ_ARENA; k++)
			w->page[FZ_FIRST_ARENA + i * FZ_ARENA + k].va = NULL;
	}
}
