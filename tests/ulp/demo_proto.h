/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the demo's two sides say to each other: ib_mr_demo.ko (the ULP that owns the memory) and
 * ib_mr_peer (the user-space program that reaches for it). Both include this file.
 *
 * The peer sends one request at a time and gets one reply. The interesting traffic (READ, WRITE,
 * atomics) is one-sided and not seen here; requests only ask for keys, make the ULP give up or
 * renew a registration, and look at the ULP's memory with its own eyes: a refusal counts only
 * when the owner of the memory confirms that nothing has changed.
 *
 * A region is a window into its backing memory, which is larger wherever there are bytes beside
 * the region that a sloppy registration would expose: guard pages, or the rest of a file's last
 * page. HASH and PEEK take offsets into the backing, so that these bytes are looked at too.
 */
#ifndef DEMO_PROTO_H
#define DEMO_PROTO_H

#include <linux/types.h>

#define DEMO_MAGIC	0x69624d52	/* "ibMR" */
#define DEMO_VERSION	2
#define DEMO_PORT	20886		/* in RDMA_PS_TCP, which is a space of its own */

enum demo_cmd {
	DEMO_CMD_INFO = 1,	/* all regions */
	DEMO_CMD_HASH,		/* SHA-256 of backing bytes [offset, offset + length) */
	DEMO_CMD_PEEK,		/* these bytes themselves, at most DEMO_PEEK_MAX */
	DEMO_CMD_REG,		/* register a region that is not registered; replies as INFO */
	DEMO_CMD_DEREG,		/* ib_dereg_mr(); replies as INFO */
	DEMO_CMD_SCRUB,		/* ib_dereg_mr() and at once DEMO_GUARD over all of it; as INFO */
	DEMO_CMD_REREG,		/* ib_rereg_phys_mr() to other memory; replies as INFO */
	DEMO_CMD_GRANT,		/* ib_bind_mw() of the one window to a region's bytes
				 * [offset, offset + length), with rights; length 0 takes back
				 */
	DEMO_CMD_LEND,		/* the one FMR mapped to such bytes, to read; 0 gives back */
};

/* Which memory a region is made of, how it is registered, and what a peer may do with it. */
enum demo_region_id {
	DEMO_FILE,		/* a file's page cache, ib_mr_reg_sg(): read */
	DEMO_SINK,		/* vmalloc memory, ib_mr_reg_kernel(): write */
	DEMO_COUNTER,		/* kmalloc memory, ib_reg_phys_mr(): atomics */
	DEMO_GRANT,		/* the file's beginning, copied: only what a window grants */
	DEMO_REGIONS,
	DEMO_REGIONS_MAX = 8,	/* room in the reply */
};

#define DEMO_GUARD	0x5a	/* the bytes beside a region */
#define DEMO_PEEK_MAX	64
#define DEMO_SHA256_LEN	32

/* Private data of the peer's REQ and the ULP's REP: are we talking to the right one? */
struct demo_hello {
	__be32 magic;
	__be32 version;
};

struct demo_request {
	__be32 magic;
	__be32 cmd;
	__be32 region;
	__be32 access;		/* GRANT: IB_ACCESS_REMOTE_*; else 0 */
	__be64 offset;
	__be64 length;		/* HASH: 0 means up to the end of the backing */
};

struct demo_region_info {
	__be64 iova;
	__be64 length;
	__be64 backing;		/* bytes of backing memory */
	__be64 start;		/* where in the backing the region begins */
	__be32 rkey;		/* 0 while it is not registered, and without remote rights */
	__be32 access;		/* IB_ACCESS_*, which user space has under the same values */
};

/* GRANT and LEND: of a window, or of what is as good as one */
struct demo_window_info {
	__be64 iova;
	__be64 length;
	__be32 rkey;
	__be32 access;
};

struct demo_reply {
	__be32 magic;
	__be32 cmd;
	__be32 status;		/* 0 or a positive errno */
	__be32 count;		/* INFO: regions; HASH, PEEK: bytes; GRANT, LEND: windows */
	union {
		struct demo_region_info regions[DEMO_REGIONS_MAX];
		struct demo_window_info window;
		__u8 hash[DEMO_SHA256_LEN];
		__u8 bytes[DEMO_PEEK_MAX];
	};
};

#endif /* DEMO_PROTO_H */
