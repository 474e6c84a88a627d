// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* The NFS client as of 3.8 (IB_MR_EPOCH 1, see Kbuild): the same source. */
#define ME		"xprtrdma, 3.8"
#define xprt_init	xprt38_init
#define xprt_exit	xprt38_exit
#include "xprtrdma.c"
