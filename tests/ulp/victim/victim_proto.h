/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the adversary (tests/user/adv_*.c) asks of the owner of the memory that it attacks: ioctls
 * of /dev/ib_mr_victim. They are the owner's hand and the judge's eye; the attacks themselves come
 * over RDMA. To be told every key is to be generous to the adversary.
 *
 * Every eight bytes of memory hold a word that says which memory it is, since when, and where in
 * it. So whatever bytes an adversary gets hold of tell where they are from, and whether they were
 * written after the key was taken away. The words beside the granted bytes are canaries.
 */
#ifndef VICTIM_PROTO_H
#define VICTIM_PROTO_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define VICTIM_DEVICE	"ib_mr_victim"

enum victim_asset {
	VIC_READ,	/* ib_reg_phys_mr(), to read */
	VIC_WRITE,	/* ib_mr_reg_kernel(), to read and write */
	VIC_ATOMIC,	/* ib_mr_reg_kernel(), atomics */
	VIC_LOCAL,	/* no right of a peer */
	VIC_FMR,	/* whole pages, to read and write; as the rest but for the last */
	VIC_POOL,	/* ib_fmr_pool_map_sg(), to the byte */
	VIC_CACHED,	/* a pool with cache, whole pages */
	VIC_WINDOW1,
	VIC_WINDOW2,
	VIC_ARENA,	/* all of it is granted */
	VIC_OTHER,	/* in a PD in which the adversary has no queue pair */
	VIC_ASSETS
};

#define VIC_PAGES	6		/* of an asset, the granted ones in the middle */
#define VIC_PAGE	4096
#define VIC_START	(VIC_PAGE + 104)	/* where bytes are granted from */
#define VIC_LENGTH	(2 * VIC_PAGE + 1000)
#define VIC_MAGIC	0x5ec7ULL

/* The word at index @i of an asset's memory in its @generation. */
static inline __u64 victim_word(__u32 asset, __u32 generation, __u32 i)
{
	return VIC_MAGIC << 48 | (__u64)(asset & 0xff) << 40 |
	       (__u64)(generation & 0xffff) << 24 | (i & 0xffffff);
}

/* A queue pair that is connected to the adversary's. */
struct victim_connect {
	__u8 gid[16];	/* in: the peer's */
	__u8 mac[6];
	__u8 reliable;
	__u8 mtu;	/* enum ib_mtu */
	__u32 peer_qpn, peer_psn;
	__u32 slot;	/* in: which of the owner's; what was there goes */
	__u32 qpn, psn;	/* out */
	__u32 reserved;
};

struct victim_info {
	__u32 asset;	/* in */
	__u32 key;	/* 0: not granted now */
	__u64 iova, length;
	__u32 start;	/* in its memory */
	__u32 access;
	__u32 generation;
	__u32 reserved;
};

enum victim_do {
	VICTIM_GRANT,
	VICTIM_RELEASE,	/* the key dies, packets under way may go on */
	VICTIM_REVOKE,	/* and a fence */
	VICTIM_REUSE,	/* the memory gets its next generation */
};

struct victim_op {
	__u32 asset, op;
	__u64 ns;	/* out: how long it took */
};

/* Granted and released, over and over: the keys that were used up. */
struct victim_churn {
	__u32 asset, count;
	__u64 keys;	/* where to put them, @count of __u32 */
};

struct victim_audit {
	__u32 asset;	/* in */
	__u32 inside;	/* out: bytes that are not what they must be, of those granted */
	__u32 outside;	/* and of the others */
	__u32 first;
};

struct victim_user {
	__u64 address, length;	/* in: the caller's memory, to read and write */
	__u64 iova;		/* out */
	__u32 key;
	__u32 reserved;
};

struct victim_stats {
	__u64 told;		/* invalidations that completions told of */
	__u64 told_other;	/* of these, of keys of another PD */
	__u64 told_unknown;	/* of keys that stood for nothing */
	__u64 received;
};

#define VICTIM_CONNECT	_IOWR('V', 1, struct victim_connect)
#define VICTIM_INFO	_IOWR('V', 2, struct victim_info)
#define VICTIM_OP	_IOWR('V', 3, struct victim_op)
#define VICTIM_CHURN	_IOWR('V', 4, struct victim_churn)
#define VICTIM_AUDIT	_IOWR('V', 5, struct victim_audit)
#define VICTIM_USER	_IOWR('V', 6, struct victim_user)
#define VICTIM_STATS	_IOR('V', 7, struct victim_stats)
#define VICTIM_DISCONNECT _IO('V', 8)	/* the argument is the slot */

#endif /* VICTIM_PROTO_H */
