/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * How a process hands a buffer of its own to the demo's ULP: an ioctl of /dev/ib_mr_demo. The ULP
 * registers it for peers, to read and to write, until the process closes the file, or dies.
 */
#ifndef DEMO_USER_H
#define DEMO_USER_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define DEMO_USER_DEVICE	"ib_mr_demo"

struct demo_user_buffer {
	__u64 address;
	__u64 length;
	__u64 iova;	/* out: what a peer has to be told */
	__u32 rkey;	/* out */
	__u32 reserved;	/* 0 */
};

/* One buffer for each open file. */
#define DEMO_USER_REGISTER	_IOWR('M', 1, struct demo_user_buffer)
/* 1 when the memory was unmapped while it is registered, else 0. */
#define DEMO_USER_STALE		_IO('M', 2)

#endif /* DEMO_USER_H */
