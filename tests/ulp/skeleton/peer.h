/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The peer of skel: two queue pairs in this kernel, connected to each other. */
#ifndef SKEL_PEER_H
#define SKEL_PEER_H

#include <rdma/ib_verbs.h>

struct skel_peer {
	struct ib_device *ib;
	struct ib_pd *pd;	/* the peer's: another machine's memory would be behind it */
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_qp *ours;	/* our end, in our PD, whose keys the peer may use */
	char *buf;		/* the peer's memory */
	size_t size;
	u64 dma;
};

/* Makes both ends, ours in @pd, and @size bytes of memory for the peer; if it fails close it. */
int skel_peer_open(struct skel_peer *peer, struct ib_pd *pd, size_t size);
void skel_peer_close(struct skel_peer *peer);

/* The peer reads into its buffer, or writes from it; 0, -EIO for a refusal, or another errno. */
int skel_peer_read(struct skel_peer *peer, u64 iova, u32 rkey, size_t length);
int skel_peer_write(struct skel_peer *peer, u64 iova, u32 rkey, size_t length);

#endif /* SKEL_PEER_H */
