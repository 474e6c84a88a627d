/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* As <ib_verbs.h> and its like were included up to 2.6.14, by -Idrivers/infiniband/include. */
#include <rdma/ib_umem.h>
