/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The kernel's <rdma/ib_verbs.h>, and after it the DMA helpers that go through the checker: for
 * ULPs of today, whose sources stay as they are. checked.mk beside this folder puts it before the
 * kernel's.
 */
#ifndef _CHECKED_RDMA_IB_VERBS_H
#define _CHECKED_RDMA_IB_VERBS_H

/* After the guard: <rdma/ib_dma.h> includes it again. */
#include_next <rdma/ib_verbs.h>
#include <rdma/ib_dma.h>

#endif /* _CHECKED_RDMA_IB_VERBS_H */
