// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The model: who may access what.
 *
 * It is as simple as can be, so that it can be believed: every key that means something stands in a
 * grant, and an access is allowed if there is a grant with its key in the queue pair's PD that has
 * the right and all the bytes. What is in memory stands a second time in the pages' shadows, which
 * only allowed accesses change.
 */
#include <linux/string.h>

#include "fuzz.h"

/* The n-th grant there is, live or not; NULL at the end. */
static struct fz_grant *nth_grant(struct fz_world *w, unsigned int n)
{
	unsigned int i;

	if (n < FZ_REGIONS)
		return &w->region[n].g;
	n -= FZ_REGIONS;
	if (n < FZ_USERS)
		return &w->umem[n].g;
	n -= FZ_USERS;
	if (n < FZ_FMRS)
		return &w->fmr[n].g;
	n -= FZ_FMRS;
	if (n < FZ_WINDOWS)
		return &w->window[n].g;
	n -= FZ_WINDOWS;
	if (n < FZ_ARENAS)
		return &w->arena[n].g;
	n -= FZ_ARENAS;
	for (i = 0; i < FZ_POOLS; i++) {
		if (n < FZ_HANDLES)
			return &w->pool[i].handle[n].g;
		n -= FZ_HANDLES;
		if (n < FZ_GHOSTS)
			return &w->pool[i].ghost[n];
		n -= FZ_GHOSTS;
	}
	return NULL;
}

static bool holds(const struct fz_grant *g, u64 iova, u64 len)
{
	return iova >= g->iova && iova - g->iova <= g->len && len <= g->len - (iova - g->iova);
}

/* The right that a local access needs, or that a peer's does. */
static bool grants(const struct fz_grant *g, u32 key, int right, bool remote)
{
	if (!g->live || g->dead || (right & ~g->access))
		return false;
	if (remote)
		return g->rkey && g->rkey == key;
	return g->lkey && g->lkey == key && !g->unaddressed;
}

/**
 * fz_may() - is an access allowed?
 * @w: world
 * @pd: PD of the queue pair
 * @key: key
 * @iova: first byte
 * @len: bytes
 * @right: RR, RW or RA; locally LW or 0
 * @remote: a peer's
 * @by: the grant that allows it, or that may
 */
enum fz_verdict fz_may(struct fz_world *w, u8 pd, u32 key, u64 iova, u64 len, int right,
		       bool remote, struct fz_grant **by)
{
	enum fz_verdict verdict = FZ_NO;
	struct fz_grant *g;
	unsigned int n;

	*by = NULL;
	if (!len)
		return FZ_YES;
	for (n = 0; (g = nth_grant(w, n)); n++) {
		if (!grants(g, key, right, remote) || g->pd != pd || !holds(g, iova, len))
			continue;
		if (!g->maybe) {
			*by = g;
			return FZ_YES;
		}
		*by = g;
		verdict = FZ_MAYBE;
	}
	return verdict;
}

/*
 * A live grant that is @ok (NULL: any), the first from the @nth place on; NULL when there is none.
 * By place and not by number, so that fewer others make no difference.
 */
struct fz_grant *fz_pick(struct fz_world *w, u32 nth, bool (*ok)(const struct fz_grant *g))
{
	const unsigned int places = FZ_REGIONS + FZ_USERS + FZ_FMRS + FZ_WINDOWS + FZ_ARENAS +
				    FZ_POOLS * (FZ_HANDLES + FZ_GHOSTS);
	struct fz_grant *g;
	unsigned int i;

	for (i = 0; i < places; i++) {
		g = nth_grant(w, (nth % places + i) % places);
		if (g->live && (!ok || ok(g)))
			return g;
	}
	return NULL;
}

/* Where byte @at of a grant is; *@room bytes follow it in the same page. */
u8 *fz_byte(struct fz_world *w, const struct fz_grant *g, u64 at, bool shadow, u32 *room)
{
	u64 pos = g->off + at;
	const struct fz_page *page = &w->page[g->page[pos >> PAGE_SHIFT]];

	*room = PAGE_SIZE - offset_in_page(pos);
	return (shadow ? page->shadow : page->va) + offset_in_page(pos);
}

/* Are these the bytes that must be there? */
bool fz_same(struct fz_world *w, const struct fz_grant *g, u64 at, const void *buf, u32 len)
{
	u32 room;

	for (; len; at += room, buf += room, len -= room) {
		const u8 *byte = fz_byte(w, g, at, true, &room);

		room = min(room, len);
		if (memcmp(byte, buf, room))
			return false;
	}
	return true;
}

/* An allowed access stores them. */
void fz_store(struct fz_world *w, const struct fz_grant *g, u64 at, const void *buf, u32 len)
{
	u32 room;

	for (; len; at += room, buf += room, len -= room) {
		u8 *byte = fz_byte(w, g, at, true, &room);

		room = min(room, len);
		memcpy(byte, buf, room);
	}
}

static bool page_as_must(struct fz_world *w, const char *what, unsigned int i)
{
	const struct fz_page *page = &w->page[i];
	unsigned int at;

	if (!page->va || !memcmp(page->va, page->shadow, PAGE_SIZE))
		return true;
	for (at = 0; page->va[at] == page->shadow[at]; at++)
		;
	fz_fail(w, what, "page %u byte %u is %#x and must be %#x", i, at, page->va[at],
		page->shadow[at]);
	return false;
}

/* The pages of a grant, whole: bytes beside the granted ones as well. */
void fz_look(struct fz_world *w, const char *what, const struct fz_grant *g)
{
	unsigned int i, n = (g->off + g->len + PAGE_SIZE - 1) >> PAGE_SHIFT;

	for (i = 0; i < n && page_as_must(w, what, g->page[i]); i++)
		;
}

void fz_look_all(struct fz_world *w, const char *what)
{
	unsigned int i;

	for (i = 0; i < FZ_PAGES && page_as_must(w, what, i); i++)
		;
}

/* Its key means nothing any more, and will be tried again. */
void fz_bury(struct fz_world *w, struct fz_grant *g)
{
	unsigned int i = w->next_dead++ % FZ_DEAD;

	if (g->live && (g->rkey || g->lkey)) {
		w->dead[i].key = g->rkey ? g->rkey : g->lkey;
		w->dead[i].iova = g->iova;
		w->dead[i].pd = g->pd;
	}
	memset(g, 0, sizeof(*g));
}

/* A set of rights; one in eight breaks the rule that remote write and atomic need local write. */
int fz_rights(u32 draw)
{
	int access = (draw & 1 ? RR : 0) | (draw & 2 ? RW : 0) | (draw & 4 ? RA : 0) |
		     (draw & 8 ? MWB : 0);

	if (draw & 0x70)
		access |= access & (RW | RA) || draw & 0x80 ? LW : 0;
	return access;
}

/* @n plain pages in a row from @first on, round and round. */
void fz_pages(struct fz_grant *g, u32 first, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		g->page[i] = (first + i) % FZ_PLAIN;
}

bool fz_called(struct fz_world *w, const char *call, long err, bool must)
{
	fz_stats.calls++;
	fz_stats.refused += !!err;
	if (!err != must)
		fz_fail(w, call, "%s returned %ld, must %s", call, err,
			must ? "succeed" : "be refused");
	return !err;
}
