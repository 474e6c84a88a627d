/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The fuzzer's rooms: main.c (episodes, shrinking), ops.c (regions, user memory, arenas), mapped.c
 * (FMRs and pools), windows.c (windows, invalidations), access.c (accesses), model.c (who may
 * access what), wire.c (real RDMA).
 *
 * A step is five numbers, drawn ahead of time. What it does depends on them and on what there is
 * when its turn comes: a step that finds nothing to work on does nothing. So steps can be left out
 * of a sequence, and what is left is still a sequence; that is what makes shrinking possible.
 *
 * The model knows pages, grants and rules. It is told what calls returned (keys, addresses) and
 * nothing else of ib_mr's: whether a call must succeed and whether an access is allowed it works
 * out by itself. A grant is one key's meaning: bytes of pages, an address, rights, a PD.
 */
#ifndef IB_MR_FUZZ_H
#define IB_MR_FUZZ_H

#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/sizes.h>
#include <rdma/ib_fmr_pool.h>
#include <rdma/ib_mr.h>

#define LW	IB_ACCESS_LOCAL_WRITE
#define RR	IB_ACCESS_REMOTE_READ
#define RW	IB_ACCESS_REMOTE_WRITE
#define RA	IB_ACCESS_REMOTE_ATOMIC
#define MWB	IB_ACCESS_MW_BIND
#define REMOTE	(RR | RW | RA)

#define FZ_PDS		2
#define FZ_PLAIN	24	/* pages for regions, FMRs and pools, no two neighbours */
#define FZ_USER		4	/* pages of a process */
#define FZ_ARENAS	2
#define FZ_ARENA	4	/* pages of an arena */
#define FZ_PAGES	(FZ_PLAIN + FZ_USER + FZ_ARENAS * FZ_ARENA)
#define FZ_FIRST_USER	FZ_PLAIN
#define FZ_FIRST_ARENA	(FZ_PLAIN + FZ_USER)

#define FZ_REGIONS	8
#define FZ_USERS	2
#define FZ_FMRS		6
#define FZ_POOLS	3
#define FZ_HANDLES	6	/* mapped of one pool */
#define FZ_GHOSTS	16	/* of one pool: released, and perhaps cached */
#define FZ_WINDOWS	6
#define FZ_SLICES	4	/* of one arena */
#define FZ_MAX_PAGES	6	/* of one grant */
#define FZ_DEAD		64	/* keys of the past */
#define FZ_BUF		SZ_64K

struct fz_step {
	u32 kind;
	u32 a, b, c, d;
};

/* One key's meaning. */
struct fz_grant {
	bool live;
	bool maybe;		/* released into a cache: the device may still allow it */
	bool dead;		/* invalidated: it stands for something, and allows nothing */
	bool region;		/* ib_mr knows the memory behind it */
	bool unaddressed;	/* a window: no local use */
	u8 pd;
	u32 lkey, rkey;
	u64 iova, len;
	int access;
	u32 off;		/* of the first byte in the first page */
	u8 page[FZ_MAX_PAGES];
};

struct fz_region {
	struct ib_mr *mr;
	struct fz_grant g;
	bool zero_based;
	int bound;		/* windows */
};

struct fz_fmr {
	struct ib_fmr *fmr;
	struct fz_grant g;
	int access, max_pages, max_maps, maps;
	u8 pd;
};

struct fz_pool {
	struct ib_fmr_pool *pool;
	int access, max_pages;
	bool cache;
	u8 pd;
	struct {
		struct ib_pool_fmr *fmr;
		bool by_list;
		struct fz_grant g;
	} handle[FZ_HANDLES];
	struct fz_grant ghost[FZ_GHOSTS];
	unsigned int next_ghost;
};

struct fz_window {
	struct ib_mw *mw;
	struct fz_grant g;
	struct fz_region *bound;
	u8 pd;
};

struct fz_arena {
	struct ib_mr_arena *arena;
	struct fz_grant g;
	struct ib_mr_slice slice[FZ_SLICES];
};

struct fz_page {
	u8 *va;
	u8 *shadow;		/* what must be there */
};

struct fz_wire;

struct fz_world {
	struct ib_device *dev;
	struct ib_pd *pd[FZ_PDS];
	struct fz_wire *wire[FZ_PDS];
	struct fz_page page[FZ_PAGES];
	unsigned long user;	/* where its pages are in the process */

	struct fz_region region[FZ_REGIONS];
	struct fz_region umem[FZ_USERS];
	struct fz_fmr fmr[FZ_FMRS];
	struct fz_pool pool[FZ_POOLS];
	struct fz_window window[FZ_WINDOWS];
	struct fz_arena arena[FZ_ARENAS];

	struct { u32 key; u64 iova; u8 pd; } dead[FZ_DEAD];
	unsigned int next_dead;

	/* what went wrong, and at which step */
	const char *what;
	char text[200];
	unsigned int at;
	bool tell;		/* say what each step does */
};

struct fz_stats {
	u64 steps, calls, refused, again;
	u64 rdma, allowed, denied, unjudged, reconnects, checks, copies;
};

extern struct fz_stats fz_stats;

/* What went wrong first is kept; @what tells one fault from another when shrinking. */
void __printf(3, 4) fz_fail(struct fz_world *w, const char *what, const char *fmt, ...);
void __printf(2, 3) fz_tell(struct fz_world *w, const char *fmt, ...);

/* model.c */
enum fz_verdict { FZ_NO, FZ_YES, FZ_MAYBE };

enum fz_verdict fz_may(struct fz_world *w, u8 pd, u32 key, u64 iova, u64 len, int right,
		       bool remote, struct fz_grant **by);
struct fz_grant *fz_pick(struct fz_world *w, u32 nth, bool (*ok)(const struct fz_grant *g));
u8 *fz_byte(struct fz_world *w, const struct fz_grant *g, u64 at, bool shadow, u32 *room);
bool fz_same(struct fz_world *w, const struct fz_grant *g, u64 at, const void *buf, u32 len);
void fz_store(struct fz_world *w, const struct fz_grant *g, u64 at, const void *buf, u32 len);
void fz_look(struct fz_world *w, const char *what, const struct fz_grant *g);
void fz_look_all(struct fz_world *w, const char *what);
void fz_bury(struct fz_world *w, struct fz_grant *g);
int fz_rights(u32 draw);
void fz_pages(struct fz_grant *g, u32 first, u32 n);

/* A call must have succeeded, or been refused. Return: it did succeed. */
bool fz_called(struct fz_world *w, const char *call, long err, bool must);

/* the rooms' steps */
void fz_region_reg(struct fz_world *w, const struct fz_step *s);
void fz_region_rereg(struct fz_world *w, const struct fz_step *s);
void fz_region_dereg(struct fz_world *w, const struct fz_step *s);
void fz_user(struct fz_world *w, const struct fz_step *s);
void fz_arena(struct fz_world *w, const struct fz_step *s);
void fz_slice(struct fz_world *w, const struct fz_step *s);
void fz_fmr_map(struct fz_world *w, const struct fz_step *s);
void fz_fmr_unmap(struct fz_world *w, const struct fz_step *s);
void fz_fmr_free(struct fz_world *w, const struct fz_step *s);
void fz_pool_map(struct fz_world *w, const struct fz_step *s);
void fz_pool_unmap(struct fz_world *w, const struct fz_step *s);
void fz_pool_flush(struct fz_world *w, const struct fz_step *s);
void fz_pool_free(struct fz_world *w, const struct fz_step *s);
void fz_window_bind(struct fz_world *w, const struct fz_step *s);
void fz_window_unbind(struct fz_world *w, const struct fz_step *s);
void fz_window_free(struct fz_world *w, const struct fz_step *s);
void fz_invalidate(struct fz_world *w, const struct fz_step *s);
void fz_access(struct fz_world *w, const struct fz_step *s);
void fz_ask(struct fz_world *w, const struct fz_step *s);
void fz_copy(struct fz_world *w, const struct fz_step *s);

void fz_regions_end(struct fz_world *w);
void fz_mapped_end(struct fz_world *w);
void fz_windows_end(struct fz_world *w);

/* wire.c */
enum fz_op { FZ_READ, FZ_WRITE, FZ_WRITE_UC, FZ_ADD, FZ_SWAP, FZ_OWN_WRITE, FZ_OPS };

#define FZ_LOST ((enum ib_wc_status)-1)

struct fz_wire *fz_wire_make(struct ib_pd *peer_pd, struct ib_pd *pd);
void fz_wire_free(struct fz_wire *wire);
u8 *fz_wire_buf(struct fz_wire *wire);
struct ib_qp *fz_wire_qp(struct fz_wire *wire);
enum ib_wc_status fz_wire_rdma(struct fz_wire *wire, enum fz_op op, u32 key, u64 iova, u32 len,
			       u64 compare, u64 add);
enum ib_wc_status fz_wire_local_inv(struct fz_wire *wire, u32 key);
enum ib_wc_status fz_wire_send_inv(struct fz_wire *wire, u32 key, u32 *told);

#endif /* IB_MR_FUZZ_H */
