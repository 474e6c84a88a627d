// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Steps on fast memory regions, alone and in pools.
 *
 * A call that finds no armed MR (-EAGAIN) has changed nothing, and may come at any time. What a
 * pool with cache released is a ghost: its key may live on until the pool is flushed, so an access
 * by it may come out either way, but if it is carried out, on those bytes.
 */
#include <linux/scatterlist.h>

#include "fuzz.h"

static void page_list(struct fz_world *w, const struct fz_grant *g, u32 n, u64 *list, u32 offsets)
{
	u32 i;

	for (i = 0; i < n; i++)	/* an offset in its page is not to matter */
		list[i] = (uintptr_t)w->page[g->page[i]].va + (offsets & 1 ? offsets >> 20 : 0);
}

static bool iova_rules(u64 iova, u64 len)
{
	return len - 1 <= U64_MAX - iova && U64_MAX - iova - (len - 1) >= SZ_4G;
}

static u64 draw_iova(u32 draw)
{
	switch (draw & 15) {
	case 0:
		return 0;
	case 1:
		return (0 - SZ_4G - SZ_64K) & PAGE_MASK;
	case 2:
		return (0 - SZ_4G) & PAGE_MASK;
	default:
		return (u64)(draw >> 4) * PAGE_SIZE;
	}
}

/* Was it -EAGAIN, which is no matter of right or wrong? */
static bool again(long err)
{
	fz_stats.again += err == -EAGAIN;
	return err == -EAGAIN;
}

static void granted(struct fz_grant *g, const struct fz_grant *want, u32 lkey, u32 rkey)
{
	*g = *want;
	g->live = true;
	g->lkey = lkey;
	g->rkey = rkey;
}

static void fmr_alloc(struct fz_world *w, const struct fz_step *s, struct fz_fmr *f)
{
	struct ib_fmr_attr attr = {
		.max_pages = 1 + s->b % FZ_MAX_PAGES, .max_maps = 1 + s->c % 5,
		.page_shift = PAGE_SHIFT,
	};
	int access = fz_rights(s->a >> 16) & ~MWB;
	u8 pd = s->a >> 8 & 1;
	struct ib_fmr *fmr;

	fz_tell(w, "make FMR %u: pd %u, access %#x, %d pages, %d maps", s->a % FZ_FMRS, pd,
		access, attr.max_pages, attr.max_maps);
	fmr = ib_alloc_fmr(w->pd[pd], access, &attr);
	if (!fz_called(w, "ib_alloc_fmr", PTR_ERR_OR_ZERO(fmr), true))
		return;
	*f = (struct fz_fmr){
		.fmr = fmr, .access = access, .pd = pd, .max_pages = attr.max_pages,
		.max_maps = attr.max_maps,
	};
}

/* Mapped, also over a mapping; made first where there is none. */
void fz_fmr_map(struct fz_world *w, const struct fz_step *s)
{
	struct fz_fmr *f = &w->fmr[s->a % FZ_FMRS];
	u32 n = 1 + s->b / FZ_PLAIN % FZ_MAX_PAGES;
	struct fz_grant want = {};
	u64 list[FZ_MAX_PAGES];
	bool must;
	int err;

	if (!f->fmr) {
		fmr_alloc(w, s, f);
		return;
	}
	fz_pages(&want, s->b, n);
	want.len = n * PAGE_SIZE;
	want.iova = draw_iova(s->d) + (s->c & 31 ? 0 : 8);
	want.access = f->access;
	want.pd = f->pd;
	page_list(w, &want, n, list, s->c >> 8);
	must = n <= f->max_pages && !offset_in_page(want.iova) && f->maps < f->max_maps &&
	       iova_rules(want.iova, want.len);
	fz_tell(w, "map FMR %u to %u pages from page %u, at %#llx (map %d of %d)", s->a % FZ_FMRS,
		n, want.page[0], want.iova, f->maps + 1, f->max_maps);
	err = ib_map_phys_fmr(f->fmr, list, n, want.iova);
	if ((must && again(err)) || !fz_called(w, "ib_map_phys_fmr", err, must))
		return;
	f->maps++;
	fz_bury(w, &f->g);
	granted(&f->g, &want, f->fmr->lkey, f->fmr->rkey);
}

void fz_fmr_unmap(struct fz_world *w, const struct fz_step *s)
{
	struct fz_fmr *f;
	LIST_HEAD(list);
	u32 i;

	for (i = 0; i < FZ_FMRS; i++) {
		f = &w->fmr[i];
		if (!f->fmr || !(s->a >> i & 1))
			continue;
		fz_tell(w, "unmap FMR %u (key %#x)", i, f->g.lkey);
		list_add_tail(&f->fmr->list, &list);
		f->maps = 0;
	}
	fz_called(w, "ib_unmap_fmr", ib_unmap_fmr(&list), true);
	for (i = 0; i < FZ_FMRS; i++)
		if (w->fmr[i].fmr && s->a >> i & 1)
			fz_bury(w, &w->fmr[i].g);
}

void fz_fmr_free(struct fz_world *w, const struct fz_step *s)
{
	struct fz_fmr *f = &w->fmr[s->a % FZ_FMRS];

	if (!f->fmr)
		return;
	fz_tell(w, "free FMR %u", s->a % FZ_FMRS);
	if (fz_called(w, "ib_dealloc_fmr", ib_dealloc_fmr(f->fmr), !f->g.live))
		f->fmr = NULL;
}

/* --- pools --- */

static void pool_make(struct fz_world *w, const struct fz_step *s, struct fz_pool *p)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = 1 + s->b % FZ_MAX_PAGES, .page_shift = PAGE_SHIFT,
		.access = fz_rights(s->a >> 16) & ~MWB, .pool_size = FZ_HANDLES,
		.dirty_watermark = 1 + s->c % 4, .cache = s->c >> 8 & 1,
		.rekey_at_once = !(s->c >> 9 & 3),
	};
	u8 pd = s->a >> 8 & 1;
	struct ib_fmr_pool *pool;

	fz_tell(w, "make pool %u: pd %u, access %#x, %d pages%s%s", s->a % FZ_POOLS, pd,
		param.access, param.max_pages_per_fmr, param.cache ? ", cache" : "",
		param.rekey_at_once ? ", at once" : "");
	pool = ib_create_fmr_pool(w->pd[pd], &param);
	if (!fz_called(w, "ib_create_fmr_pool", PTR_ERR_OR_ZERO(pool), true))
		return;
	*p = (struct fz_pool){
		.pool = pool, .access = param.access, .max_pages = param.max_pages_per_fmr,
		.cache = param.cache, .pd = pd,
	};
}

static void ghost_gone(struct fz_pool *p, u32 key)
{
	unsigned int i;

	for (i = 0; i < FZ_GHOSTS; i++)
		if (p->ghost[i].live && p->ghost[i].lkey == key)
			p->ghost[i].live = false;
}

static bool shared(const struct fz_pool *p, const struct ib_pool_fmr *fmr)
{
	unsigned int i, users = 0;

	for (i = 0; i < FZ_HANDLES; i++)
		users += p->handle[i].fmr == fmr;
	return users > 1;
}

/* By pages, or by bytes of a scatterlist. */
void fz_pool_map(struct fz_world *w, const struct fz_step *s)
{
	struct fz_pool *p = &w->pool[s->a % FZ_POOLS];
	unsigned int h = s->a / FZ_POOLS % FZ_HANDLES, i;
	struct scatterlist sgl[FZ_MAX_PAGES];
	struct fz_grant want = {};
	struct ib_pool_fmr *fmr;
	u64 list[FZ_MAX_PAGES];
	bool by_list, must;
	u32 n;

	if (!p->pool) {
		pool_make(w, s, p);
		return;
	}
	if (p->handle[h].fmr)
		return;
	by_list = s->c & 0x8000;
	/* Few mappings to choose from by list, so that a cache is hit. */
	n = 1 + s->b / FZ_PLAIN % (by_list && p->cache ? 2 : FZ_MAX_PAGES);
	fz_pages(&want, by_list && p->cache ? s->b & 3 : s->b, n);
	want.len = n * PAGE_SIZE;
	want.iova = by_list && p->cache ? 0 : draw_iova(s->d);
	want.access = p->access;
	want.pd = p->pd;
	must = n <= p->max_pages;
	if (by_list) {
		page_list(w, &want, n, list, s->c >> 8);
		must = must && iova_rules(want.iova, want.len);
		fz_tell(w, "map handle %u of pool %u to %u pages from page %u, at %#llx", h,
			s->a % FZ_POOLS, n, want.page[0], want.iova);
		fmr = ib_fmr_pool_map_phys(p->pool, list, n, want.iova);
	} else {
		sg_init_table(sgl, n);
		for (i = 0; i < n; i++) {
			sg_dma_address(&sgl[i]) = (uintptr_t)w->page[want.page[i]].va;
			sg_dma_len(&sgl[i]) = PAGE_SIZE;
		}
		want.off = s->c & 7 ? s->c >> 16 & ~PAGE_MASK : 0;
		want.len -= want.off;
		want.len -= want.len > PAGE_SIZE ? (s->c >> 20) & 0xff : 0;
		want.iova += want.off;
		/* The pages that are counted are those that the bytes lie on. */
		must = (want.off + want.len + PAGE_SIZE - 1) >> PAGE_SHIFT <= p->max_pages &&
		       iova_rules(want.iova, want.len);
		fz_tell(w, "map handle %u of pool %u to %llu bytes from %u of page %u, at %#llx",
			h, s->a % FZ_POOLS, want.len, want.off, want.page[0], want.iova);
		fmr = ib_fmr_pool_map_sg(p->pool, sgl, n, want.off, want.len, want.iova);
	}
	if ((must && again(PTR_ERR_OR_ZERO(fmr))) ||
	    !fz_called(w, "ib_fmr_pool_map", PTR_ERR_OR_ZERO(fmr), must))
		return;
	p->handle[h].fmr = fmr;
	p->handle[h].by_list = by_list;
	granted(&p->handle[h].g, &want, fmr->fmr->lkey, fmr->fmr->rkey);
	ghost_gone(p, fmr->fmr->lkey);
	if (fmr->io_virtual_address != want.iova || fmr->pool != p->pool)
		fz_fail(w, "pool handle", "it says iova %#llx", fmr->io_virtual_address);
}

static void pool_unmap(struct fz_world *w, struct fz_pool *p, unsigned int h)
{
	struct ib_pool_fmr *fmr = p->handle[h].fmr;
	struct fz_grant *ghost;
	bool last;

	fz_called(w, "ib_fmr_pool_unmap", ib_fmr_pool_unmap(fmr), true);
	last = !shared(p, fmr);
	if (p->cache && p->handle[h].by_list && last && !p->handle[h].g.dead) {
		ghost = &p->ghost[p->next_ghost++ % FZ_GHOSTS];
		*ghost = p->handle[h].g;
		ghost->maybe = true;
	}
	if (last)
		fz_bury(w, &p->handle[h].g);
	else
		memset(&p->handle[h].g, 0, sizeof(p->handle[h].g));
	p->handle[h].fmr = NULL;
}

void fz_pool_unmap(struct fz_world *w, const struct fz_step *s)
{
	struct fz_pool *p = &w->pool[s->a % FZ_POOLS];
	unsigned int h = s->a / FZ_POOLS % FZ_HANDLES;

	if (!p->pool || !p->handle[h].fmr)
		return;
	fz_tell(w, "unmap handle %u of pool %u (key %#x)", h, s->a % FZ_POOLS,
		p->handle[h].g.lkey);
	pool_unmap(w, p, h);
}

static void no_ghosts(struct fz_world *w, struct fz_pool *p)
{
	unsigned int i;

	for (i = 0; i < FZ_GHOSTS; i++)
		fz_bury(w, &p->ghost[i]);
}

void fz_pool_flush(struct fz_world *w, const struct fz_step *s)
{
	struct fz_pool *p = &w->pool[s->a % FZ_POOLS];

	if (!p->pool)
		return;
	fz_tell(w, "flush pool %u", s->a % FZ_POOLS);
	fz_called(w, "ib_flush_fmr_pool", ib_flush_fmr_pool(p->pool), true);
	no_ghosts(w, p);
}

static void pool_free(struct fz_world *w, struct fz_pool *p)
{
	unsigned int h;

	for (h = 0; h < FZ_HANDLES; h++)
		if (p->handle[h].fmr)
			pool_unmap(w, p, h);
	ib_destroy_fmr_pool(p->pool);
	no_ghosts(w, p);
	p->pool = NULL;
}

void fz_pool_free(struct fz_world *w, const struct fz_step *s)
{
	struct fz_pool *p = &w->pool[s->a % FZ_POOLS];

	if (!p->pool)
		return;
	fz_tell(w, "destroy pool %u", s->a % FZ_POOLS);
	pool_free(w, p);
}

void fz_mapped_end(struct fz_world *w)
{
	const struct fz_step all = { .a = U32_MAX };
	unsigned int i;

	fz_fmr_unmap(w, &all);
	for (i = 0; i < FZ_FMRS; i++)
		if (w->fmr[i].fmr)
			fz_called(w, "ib_dealloc_fmr", ib_dealloc_fmr(w->fmr[i].fmr), true);
	for (i = 0; i < FZ_POOLS; i++)
		if (w->pool[i].pool)
			pool_free(w, &w->pool[i]);
}
