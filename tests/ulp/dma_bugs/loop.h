/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The other end: an RC queue pair connected to itself, whose RDMA is what a remote peer would do.
 */
#ifndef DMA_BUGS_LOOP_H
#define DMA_BUGS_LOOP_H

#include <rdma/ib_verbs.h>

#define LOOP_SIZE	4096

struct loop {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u8 *buf;		/* the peer's own memory, coherent */
	u64 dma;
};

int loop_open(struct loop *loop, struct ib_device *dev);
void loop_close(struct loop *loop);

/* The peer writes loop->buf to, or reads into it from, (@iova, @rkey). 0 or -EIO. */
int loop_write(struct loop *loop, u64 iova, u32 rkey, u32 len);
int loop_read(struct loop *loop, u64 iova, u32 rkey, u32 len);

#endif /* DMA_BUGS_LOOP_H */
