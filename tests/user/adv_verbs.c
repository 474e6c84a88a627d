// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The adversary as an ordinary program on libibverbs, with queue pairs of its own. An unreliable
 * one (UC) survives what is refused, so it can try thousands of keys; the sender is told nothing,
 * and what came of it the owner's memory tells.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "adv.h"

#define DEPTH	64
#define BATCH	32

static void die(const char *what)
{
	fprintf(stderr, "ib_mr_adversary: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* The GID that stands for an IPv4 address. */
static bool find_gid(struct adv *adv)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	for (adv->gid_index = 0; adv->gid_index < 16; adv->gid_index++)
		if (!ibv_query_gid(adv->context, 1, adv->gid_index, &adv->gid) &&
		    !memcmp(adv->gid.raw, mapped, sizeof(mapped)))
			return true;
	return false;
}

int verbs_open(struct adv *adv)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), adv->device))
			adv->context = ibv_open_device(list[i]);
	if (!adv->context || !find_gid(adv))
		return -ENODEV;
	adv->pd = ibv_alloc_pd(adv->context);
	adv->buf = aligned_alloc(4096, BUF);
	if (!adv->pd || !adv->buf)
		return -ENOMEM;
	adv->mr = ibv_reg_mr(adv->pd, adv->buf, BUF, IBV_ACCESS_LOCAL_WRITE);
	return adv->mr ? 0 : -errno;
}

static void to_rts(struct link *link, const struct victim_connect *c)
{
	struct adv *adv = link->adv;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
	};

	if (ibv_modify_qp(link->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			  IBV_QP_ACCESS_FLAGS))
		die("INIT");
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.dest_qp_num = c->qpn;
	attr.rq_psn = c->psn;
	attr.max_dest_rd_atomic = 4;
	attr.min_rnr_timer = 1;
	attr.ah_attr.is_global = 1;
	attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.dgid = adv->gid;
	attr.ah_attr.grh.sgid_index = adv->gid_index;
	attr.ah_attr.grh.hop_limit = 64;
	if (ibv_modify_qp(link->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  (link->reliable ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0)))
		die("RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = c->peer_psn;
	attr.timeout = 18;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 4;
	if (ibv_modify_qp(link->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
			  (link->reliable ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
					    IBV_QP_MAX_QP_RD_ATOMIC : 0)))
		die("RTS");
}

void link_open(struct adv *adv, struct link *link, bool reliable, uint32_t slot)
{
	struct victim_connect c = {
		.reliable = reliable, .mtu = IBV_MTU_1024, .slot = slot, .peer_psn = draw() & 0xffffff,
	};
	struct ibv_qp_init_attr attr = {
		.qp_type = reliable ? IBV_QPT_RC : IBV_QPT_UC,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = 1, .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	*link = (struct link){ .adv = adv, .reliable = reliable, .slot = slot };
	link->cq = ibv_create_cq(adv->context, DEPTH + 1, NULL, NULL, 0);
	if (!link->cq)
		die("CQ");
	attr.send_cq = link->cq;
	attr.recv_cq = link->cq;
	link->qp = ibv_create_qp(adv->pd, &attr);
	if (!link->qp)
		die("QP");
	memcpy(c.gid, adv->gid.raw, sizeof(c.gid));
	memcpy(c.mac, adv->mac, sizeof(c.mac));
	c.peer_qpn = link->qp->qp_num;
	if (ioctl(adv->fd, VICTIM_CONNECT, &c))
		die("the owner does not connect");
	to_rts(link, &c);
}

void link_close(struct link *link)
{
	if (!link->qp)
		return;
	ioctl(link->adv->fd, VICTIM_DISCONNECT, link->slot);
	ibv_destroy_qp(link->qp);
	ibv_destroy_cq(link->cq);
	link->qp = NULL;
}

static int wait_for(struct link *link)
{
	double end = now() + 30;
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(link->cq, 1, &wc);
		if (n)
			return n < 0 ? -EIO : (int)wc.status;
		usleep(20);
	} while (now() < end);
	return -ETIMEDOUT;
}

/* An enum ibv_wc_status. A READ fills the buffer, a WRITE sends it. */
int link_do(struct link *link, enum ibv_wr_opcode code, uint32_t length, uint64_t remote,
	    uint32_t key)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)link->adv->buf, .length = length, .lkey = link->adv->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.opcode = code, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge, .num_sge = 1,
	}, *bad;

	if (code == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = key;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = key;
	}
	if (ibv_post_send(link->qp, &wr, &bad))
		return -errno;
	return wait_for(link);
}

/* Over a connection of its own, which ends with it. Nothing may come, nothing may change. */
void must_refuse(struct adv *adv, enum ibv_wr_opcode code, uint32_t length, uint64_t remote,
		 uint32_t key)
{
	struct link link;
	uint32_t i;
	int status;

	memset(adv->buf, CANARY, length + 64);
	link_open(adv, &link, true, 0);
	status = link_do(&link, code, length, remote, key);
	link_close(&link);
	adv->attempts++;
	if (status == IBV_WC_SUCCESS) {
		adv->let_in++;
		note(adv, "key %#x, %u bytes at %#llx: carried out", key, length,
		     (unsigned long long)remote);
		return;
	}
	if (status != IBV_WC_REM_ACCESS_ERR)
		amiss(adv, "key %#x: neither carried out nor refused, but %d", key, status);
	adv->refused++;
	if (code != IBV_WR_RDMA_WRITE)
		for (i = 0; i < length + 64; i++)
			if (adv->buf[i] != CANARY) {
				adv->let_in++;
				note(adv, "key %#x: refused, but byte %u came", key, i);
				return;
			}
}

/* All that was sent over it was looked at: a SEND behind it was. */
void settle(struct link *uc)
{
	uint64_t before = owner_stats(uc->adv).received;
	double end = now() + 20;

	if (link_do(uc, IBV_WR_SEND, 1, 0, 0) != IBV_WC_SUCCESS)
		amiss(uc->adv, "the UC connection broke");
	while (owner_stats(uc->adv).received == before) {
		if (now() > end) {
			amiss(uc->adv, "the UC connection is dead");
			return;
		}
		usleep(100);
	}
}

/* WRITEs by so many keys, over UC. */
void flood(struct link *uc, const uint32_t *keys, uint32_t count, uint64_t remote, uint32_t length)
{
	struct ibv_send_wr wr[BATCH], *bad;
	struct ibv_sge sge = {
		.addr = (uintptr_t)uc->adv->buf, .length = length, .lkey = uc->adv->mr->lkey,
	};
	uint32_t i, n;

	memset(uc->adv->buf, 0x66, length);
	for (; count; keys += n, count -= n) {
		n = count < BATCH ? count : BATCH;
		memset(wr, 0, sizeof(wr));
		for (i = 0; i < n; i++) {
			wr[i].opcode = IBV_WR_RDMA_WRITE;
			wr[i].sg_list = &sge;
			wr[i].num_sge = 1;
			wr[i].wr.rdma.remote_addr = remote;
			wr[i].wr.rdma.rkey = keys[i];
			wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
		}
		wr[n - 1].send_flags = IBV_SEND_SIGNALED;
		if (ibv_post_send(uc->qp, wr, &bad) || wait_for(uc) != IBV_WC_SUCCESS) {
			amiss(uc->adv, "the UC connection broke");
			return;
		}
		uc->adv->attempts += n;
	}
	settle(uc);
}
