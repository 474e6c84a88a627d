/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Whichever header a classic source includes first: <rdma/ib_verbs.h> has them all, in order. */
#include <rdma/ib_verbs.h>
#include_next <rdma/ib_cache.h>
