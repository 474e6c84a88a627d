/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A device of the other kind for the cases: siw, which is iWARP, on a NIC of its own.
 *
 * It is made for a case and gone at the case's end, with nothing left in it. Two queue pairs of it
 * can be connected by a connection manager only; a struct siw_pair is such a connection over the
 * loopback, good until the first access that is refused.
 */
#ifndef IBT_SIW_H
#define IBT_SIW_H

#include <linux/completion.h>
#include <rdma/rdma_cm.h>
#include "helpers.h"

#define SIW_ADDRESS	"10.88.0.1"
#define SIW_BUF		SZ_16K

struct ib_device *siw_device(struct kunit *test);
/* A second rxe device, on siw's NIC, which the case or the NIC's end removes. */
struct ib_device *siw_neighbour(struct kunit *test);
struct ib_pd *siw_pd(struct kunit *test, struct ib_device *dev);

struct siw_pair {
	struct kunit *test;
	struct ib_pd *peer_pd;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct rdma_cm_id *listener;
	struct rdma_cm_id *req;		/* the peer */
	struct rdma_cm_id *tgt;		/* the domain under test */
	struct completion event;
	enum rdma_cm_event_type last;
	struct completion accepted;
	u8 *buf;			/* the peer's, SIW_BUF bytes */
	u64 seq;
};

struct siw_pair *siw_pair(struct kunit *test, struct ib_pd *pd_target);
void siw_pair_end(struct siw_pair *p);
/* The peer reads or writes [@iova, @iova + @len) under @rkey, from or into its buffer. */
enum ib_wc_status siw_rdma(struct siw_pair *p, enum ib_wr_opcode op, u32 rkey, u64 iova, u32 len);

/* One READ on a connection made for it: is it allowed? */
bool siw_reads(struct kunit *test, struct ib_pd *pd, u32 rkey, u64 iova, u32 len);

#endif /* IBT_SIW_H */
