/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The adversary's rooms: adv_main.c (the table of attacks), adv_verbs.c (connections by
 * libibverbs), adv_raw.c (packets of its own making), adv_keys.c, adv_range.c, adv_half.c and
 * adv_inv.c (attacks: keys, addresses, messages half sent, invalidations).
 *
 * An attack has let something in when a byte of the owner's memory changed, as the owner sees it,
 * or a byte of it came to us that was written after we lost the right to read it, or when an access
 * by a key that we do not have was acknowledged.
 */
#ifndef ADV_H
#define ADV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <infiniband/verbs.h>
#include "../ulp/victim/victim_proto.h"

#define BUF	(64 << 10)
#define CANARY	0xa5

struct adv {
	int fd;				/* the owner's ear */
	const char *device, *interface;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_mr *mr;		/* of buf */
	uint8_t *buf;
	union ibv_gid gid;
	int gid_index;
	uint8_t mac[6];			/* of the device */
	struct victim_info asset[VIC_ASSETS];

	/* of the attack under way */
	unsigned long attempts, refused, let_in;
	bool wrong;			/* something else is amiss */
	char detail[160];
};

struct link {
	struct adv *adv;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	bool reliable;
	uint32_t slot;
};

struct attack {
	const char *name;
	void (*run)(struct adv *adv);
};

void note(struct adv *adv, const char *format, ...) __attribute__((format(printf, 2, 3)));
void amiss(struct adv *adv, const char *format, ...) __attribute__((format(printf, 2, 3)));
double now(void);
uint32_t draw(void);

/* adv_main.c: the owner */
void owner_info(struct adv *adv);
double owner_do(struct adv *adv, uint32_t asset, enum victim_do op);	/* seconds */
void owner_churn(struct adv *adv, uint32_t asset, uint32_t *keys, uint32_t count);
unsigned long owner_audit(struct adv *adv, bool tell);	/* bytes that changed */
struct victim_audit owner_look(struct adv *adv, uint32_t asset);
struct victim_stats owner_stats(struct adv *adv);
void owner_told(struct adv *adv, uint64_t before);
const char *asset_name(uint32_t asset);
bool may_write(const struct victim_info *asset);
bool may_read(const struct victim_info *asset);
void all_work(struct adv *adv);
/* Bytes of which each differs from what is there, @at bytes into the grant. */
void other_bytes(const struct victim_info *asset, uint64_t at, uint8_t *bytes, uint32_t length);
/* Words of an asset in bytes that came, of that generation or a later one, at any alignment. */
unsigned int secrets(const uint8_t *bytes, size_t length, uint32_t asset, uint32_t generation);

/* adv_verbs.c */
int verbs_open(struct adv *adv);
void link_open(struct adv *adv, struct link *link, bool reliable, uint32_t slot);
void link_close(struct link *link);
int link_do(struct link *link, enum ibv_wr_opcode code, uint32_t length, uint64_t remote,
	    uint32_t key);
void must_refuse(struct adv *adv, enum ibv_wr_opcode code, uint32_t length, uint64_t remote,
		 uint32_t key);
void flood(struct link *uc, const uint32_t *keys, uint32_t count, uint64_t remote, uint32_t length);
void settle(struct link *uc);

/* adv_raw.c */
struct raw {
	struct adv *adv;
	int fd;
	uint8_t mac[6];
	uint32_t slot, qpn, their_qpn, psn;	/* psn: of the next packet */
	bool reliable;
};

struct answer {
	int opcode;	/* negative: none came */
	uint32_t psn;
	uint8_t syndrome;
	const uint8_t *bytes;
	size_t length;
};

#define OP_SEND_FIRST	0x00
#define OP_WRITE_FIRST	0x06
#define OP_WRITE_MIDDLE	0x07
#define OP_WRITE_LAST	0x08
#define OP_WRITE_ONLY	0x0a
#define OP_READ		0x0c
#define OP_READ_FIRST	0x0d
#define OP_READ_ONLY	0x10
#define OP_ACK		0x11
#define OP_ATOMIC_ACK	0x12
#define OP_COMPARE_SWAP	0x13
#define OP_FETCH_ADD	0x14
#define OP_SEND_INV	0x17
#define OP_UC		0x20	/* added to the above */
#define RAW_MTU		1024

int raw_open(struct adv *adv, struct raw *raw, uint32_t slot);
void raw_connect(struct raw *raw, bool reliable);
void raw_send(struct raw *raw, int opcode, uint32_t psn, const void *header, size_t header_length,
	      const void *bytes, size_t length);
struct answer raw_answer(struct raw *raw, int ms);
void raw_reth(uint8_t *to, uint64_t va, uint32_t key, uint32_t length);
bool raw_acked(struct raw *raw, int ms);	/* the next answer is an acknowledgement */

/* the attacks */
void attack_nothing(struct adv *adv);
void attack_variants(struct adv *adv);
void attack_neighbours(struct adv *adv);
void attack_random(struct adv *adv);
void attack_guess_rc(struct adv *adv);
void attack_foreign(struct adv *adv);
void attack_retired(struct adv *adv);
void attack_retired_rc(struct adv *adv);
void attack_rights(struct adv *adv);
void attack_range(struct adv *adv);
void attack_range_uc(struct adv *adv);
void attack_zero(struct adv *adv);
void attack_lengths(struct adv *adv);
void attack_overrun(struct adv *adv);
void attack_atomic(struct adv *adv);
void attack_half_write(struct adv *adv);
void attack_half_write_uc(struct adv *adv);
void attack_half_gone(struct adv *adv);
void attack_read_race(struct adv *adv);
void attack_read_again(struct adv *adv);
void attack_read_fenced(struct adv *adv);
void attack_owner_dies(struct adv *adv);
void attack_inv_known(struct adv *adv);
void attack_inv_other(struct adv *adv);
void attack_inv_guess(struct adv *adv);

#endif /* ADV_H */
