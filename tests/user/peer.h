/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The peer's rooms: verbs.c connects, moves data and asks the ULP. steps.c and refuse.c hold the
 * demo's steps, each of which comes to a verdict: what must work, and what must not; windows.c has
 * those about memory windows, owner.c those in which the memory is a process's, link.c those in
 * which the wire is cut. peer.c is the command line and shows the results.
 *
 * Everything here sees the ULP only as a stranger on the network would: by address, key and
 * length. What it cannot see (has memory changed that must not?) it asks the ULP to look at.
 */
#ifndef PEER_H
#define PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
#include "../ulp/demo_proto.h"

#define CANARY		0xa5	/* in buffers of ours before something may be delivered */
#define DEPTH_MAX	64	/* requests under way on one connection */
#define SCRATCH		(1 << 20)

/* rights of a window */
#define MAY_READ	IBV_ACCESS_REMOTE_READ
#define MAY_BOTH	(IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

struct region {
	uint64_t iova, length, backing, start;
	uint32_t rkey, access;
};

/* What a grant tells. */
struct window {
	uint64_t iova, length;
	uint32_t rkey;
};

struct peer {
	const char *address, *port;
	size_t chunk;		/* bytes of one request of a bulk transfer */
	int depth;
	const char *sha256;	/* what the file should hash to, in hex; NULL: not known */

	struct ibv_pd *pd;
	struct ibv_mr *mr;	/* of mem */
	uint8_t *mem;		/* a copy of the file, then scratch */
	uint8_t *scratch;	/* SCRATCH bytes */
	struct conn *control;	/* over which the ULP is asked; its accesses are all legal */
	bool gone;		/* the ULP did not answer there: no step can come to a verdict */
	struct region regions[DEMO_REGIONS_MAX];
	unsigned int nregions;
};

struct conn {
	struct peer *peer;
	struct rdma_cm_id *id;
	bool connected;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;	/* of messages */
	struct {
		struct demo_request request;
		uint8_t more[64];	/* for messages that are too long */
		struct demo_reply reply;
	} messages;
};

/* One RDMA operation, as far as the steps care. */
struct op {
	enum ibv_wr_opcode code;
	void *local;		/* in peer->mem */
	uint32_t length;
	uint64_t remote;
	uint32_t rkey;
	uint64_t add_or_compare, swap;
};

/* Negative results are -errno of this side. */
int conn_open(struct peer *peer, struct conn *conn);
void conn_close(struct conn *conn);
int conn_post(struct conn *conn, const struct op *op);
int conn_wait(struct conn *conn, struct ibv_wc *wc);
int conn_do(struct conn *conn, const struct op *op);	/* an enum ibv_wc_status */
int conn_bulk(struct conn *conn, struct op op, uint64_t length, double *seconds);
int conn_bulk_on(struct conn *conn, struct op op, uint64_t length, uint64_t *done);

/* 0, or the errno that the ULP answered with (positive). */
int ask(struct conn *conn, enum demo_cmd cmd, uint32_t region, uint64_t offset, uint64_t length);
int ask_raw(struct conn *conn, uint32_t length);	/* what stands in messages.request */
int ask_regions(struct conn *conn, enum demo_cmd cmd, uint32_t region);
int ask_hash(struct conn *conn, uint32_t region, uint64_t offset, uint64_t length, uint8_t *hash);
int ask_bytes(struct conn *conn, uint32_t region, uint64_t offset, uint64_t length, void *to);

int ask_grant(struct conn *conn, uint32_t region, uint64_t offset, uint64_t length, uint32_t access,
	      struct window *window);	/* length 0, and window NULL: takes back */
int ask_loan(struct conn *conn, uint32_t region, uint64_t offset, uint64_t length,
	     struct window *window);	/* the same */

double now(void);

/* What a step says besides its verdict. */
struct result {
	char detail[200];
	double rate;		/* MB/s; 0: there is none */
};

struct step {
	const char *name;
	bool (*run)(struct peer *peer, const struct step *step, struct result *result);

	/* for the steps that access memory where they may not */
	enum ibv_wr_opcode code;
	enum demo_region_id region;
	enum { KEY_RIGHT, KEY_VARIANT, KEY_INDEX, KEY_FAR_INDEX, KEY_ZERO, KEY_OTHER } key;
	bool at_end;		/* offset counts from the region's end, else from its start */
	int64_t offset;
	uint32_t length;
	uint32_t access;	/* of the window */

	unsigned int cut;	/* seconds without a link */
};

extern const struct step steps[];	/* the ULP is on this machine */
extern const int nsteps;
extern const struct step steps_apart[];	/* on another one */
extern const int nsteps_apart;

bool refuse(struct peer *peer, const struct step *step, struct result *result);
bool dead_key(struct peer *peer, const struct step *step, struct result *result);
bool dereg_fence(struct peer *peer, const struct step *step, struct result *result);
bool user_buffer(struct peer *peer, const struct step *step, struct result *result);
bool user_dies(struct peer *peer, const struct step *step, struct result *result);
bool stale_key(struct peer *peer, const struct step *step, struct result *result);
bool window_read(struct peer *peer, const struct step *step, struct result *result);
bool window_refuse(struct peer *peer, const struct step *step, struct result *result);
bool window_moved(struct peer *peer, const struct step *step, struct result *result);
bool window_revoked(struct peer *peer, const struct step *step, struct result *result);
bool window_passed_on(struct peer *peer, const struct step *step, struct result *result);
bool window_malformed(struct peer *peer, const struct step *step, struct result *result);
bool window_busy(struct peer *peer, const struct step *step, struct result *result);
bool link_cut(struct peer *peer, const struct step *step, struct result *result);
bool fmr_loans(struct peer *peer, const struct step *step, struct result *result);

/* refuse.c: a connection that has carried something, and an access over it that is refused. */
int open_tried(struct peer *peer, struct conn *conn);
int arm(struct peer *peer, uint32_t id, struct op *op);
bool must_refuse(struct peer *peer, struct conn *conn, uint32_t id, const struct op *op,
		 struct result *result);
bool refuse_fresh(struct peer *peer, uint32_t id, struct op op, struct result *result);

/* Ways to end a step: with a sentence, with an error (as ask() returns it), with a completion. */
bool say(struct result *result, bool verdict, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
bool lost(struct result *result, const char *what, int err);
bool failed(struct result *result, const char *what, int status);

void sha256(const void *data, size_t length, uint8_t *hash);

#endif /* PEER_H */
