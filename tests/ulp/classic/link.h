/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The other end of each ULP here: a peer, in a protection domain of its own, that does RDMA with
 * the keys it is sent. It stands for the connection manager, too, which is no part of the classic
 * header: it brings the ULP's queue pair to RTS.
 */
#ifndef CLASSIC_LINK_H
#define CLASSIC_LINK_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#define LINK_DEPTH	64		/* orders under way */
#define LINK_INLINE	SZ_8K		/* bytes that may follow an order in its SEND */
#define LINK_MEM	SZ_64K		/* bytes of the peer's memory that the ULP may reach */

enum order_op {
	ORDER_READ,	/* RDMA READ, and compare with the pattern */
	ORDER_WRITE,	/* RDMA WRITE of the pattern */
	ORDER_DATA,	/* compare what follows the order in the SEND */
	ORDER_CHECK,	/* compare the peer's memory, which the ULP wrote */
	ORDER_FILL,	/* fill the peer's memory, which the ULP will read */
};

/* What a ULP SENDs: here is memory, do this with it. */
struct order {
	u32 op;
	u32 rkey;
	u64 addr;
	u32 len;
	u32 seed;
	u64 cookie;
};

/* What comes back: how many bytes were not as they should be. */
struct reply {
	u64 cookie;
	u32 wrong;
};

/* The byte at @off of what belongs to @seed. */
static inline u8 pattern(u32 seed, u32 off)
{
	return seed * 31 + off * 7 + (off >> 8) * 13 + (off >> 16) * 5;
}

struct link;

/* Takes @qp, which has been created, to RTS, with a peer at its other end. */
struct link *link_open(struct ib_qp *qp);
void link_close(struct link *link);
/* The peer's memory, LINK_MEM bytes. */
u64 link_addr(const struct link *link);
u32 link_rkey(const struct link *link);

/*
 * A stranger's single access with a key of @pd's, of @len bytes up to a page, over queue pairs made
 * for it: what is refused breaks those and not the ULP's.
 */
enum ib_wc_status probe(struct ib_pd *pd, bool write, u32 rkey, u64 addr, u32 len);

static inline bool open_to(struct ib_pd *pd, u32 rkey, u64 addr)
{
	return probe(pd, false, rkey, addr, 8) == IB_WC_SUCCESS;
}

static inline bool refused(struct ib_pd *pd, u32 rkey, u64 addr)
{
	return probe(pd, false, rkey, addr, 8) == IB_WC_REM_ACCESS_ERR;
}

/* A row of the table. */
void __printf(4, 5) verdict(const char *consumer, const char *step, bool right,
			    const char *fmt, ...);

/* The consumers; @nosys: the device has no FMRs. */
int srp_init(void);
void srp_exit(void);
int iser_init(bool nosys);
void iser_exit(void);
int rds_init(void);
void rds_exit(void);
int xprt_init(void);
void xprt_exit(void);
int xprt38_init(void);
void xprt38_exit(void);
int o2ib_init(bool nosys);
void o2ib_exit(void);
int sdp_init(void);
void sdp_exit(void);
int vhba_init(void);
void vhba_exit(void);
int dmamr_init(void);
void dmamr_exit(void);
int kverbs_init(void);
void kverbs_exit(void);
int gaps_init(void);
void gaps_exit(void);

#endif /* CLASSIC_LINK_H */
