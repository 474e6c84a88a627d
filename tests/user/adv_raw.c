// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The adversary as whoever sits on the wire: RoCE v2 packets of its own making, over a packet
 * socket. No driver of ours is between, so a message may stop in its middle, a length may be a lie,
 * and an old request may be sent again.
 *
 * It plays a host of its own at 10.9.0.2, behind one end of a veth pair, at whose other end
 * (10.9.0.1) the victim's device is.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <netpacket/packet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>
#include "adv.h"

#define ROCE_PORT	4791
#define OUR_ADDRESS	0x0a090002
#define THEIR_ADDRESS	0x0a090001

struct bth {
	uint8_t opcode, flags;
	uint16_t pkey;
	uint32_t qpn, psn;
} __attribute__((packed));

struct packet {
	struct ether_header eth;
	struct iphdr ip;
	struct udphdr udp;
	struct bth bth;
	uint8_t rest[RAW_MTU + 64];
} __attribute__((packed));

static uint32_t crc32_more(uint32_t crc, const void *bytes, size_t length)
{
	const uint8_t *byte = bytes;
	int bit;

	while (length--) {
		crc ^= *byte++;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

/* Of everything that no switch may change; the rest counts as ones. */
static uint32_t icrc(const struct packet *packet, size_t rest)
{
	static const uint8_t lrh[8] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct iphdr ip = packet->ip;
	struct udphdr udp = packet->udp;
	struct bth bth = packet->bth;
	uint32_t crc = ~0U;

	ip.tos = 0xff;
	ip.ttl = 0xff;
	ip.check = 0xffff;
	udp.check = 0xffff;
	bth.qpn |= htonl(0xff000000);
	crc = crc32_more(crc, lrh, sizeof(lrh));
	crc = crc32_more(crc, &ip, sizeof(ip));
	crc = crc32_more(crc, &udp, sizeof(udp));
	crc = crc32_more(crc, &bth, sizeof(bth));
	return ~crc32_more(crc, packet->rest, rest);
}

static uint16_t ip_sum(const struct iphdr *ip)
{
	const uint8_t *byte = (const uint8_t *)ip;
	uint32_t sum = 0;
	size_t i;

	for (i = 0; i < sizeof(*ip); i += 2)
		sum += byte[i] << 8 | byte[i + 1];
	sum = (sum >> 16) + (sum & 0xffff);
	return htons(~(sum + (sum >> 16)));
}

int raw_open(struct adv *adv, struct raw *raw, uint32_t slot)
{
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_IP),
		.sll_ifindex = if_nametoindex(adv->interface),
	};
	struct ifreq ifr = {};

	*raw = (struct raw){ .adv = adv, .slot = slot };
	raw->fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_IP));
	if (raw->fd < 0 || bind(raw->fd, (struct sockaddr *)&at, sizeof(at)))
		return -errno;
	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", adv->interface);
	if (ioctl(raw->fd, SIOCGIFHWADDR, &ifr))
		return -errno;
	memcpy(raw->mac, ifr.ifr_hwaddr.sa_data, sizeof(raw->mac));
	return 0;
}

/* A new connection in the place of the one there was. */
void raw_connect(struct raw *raw, bool reliable)
{
	static const uint8_t gid[16] = { [10] = 0xff, 0xff, 10, 9, 0, 2 };
	struct victim_connect c = {
		.reliable = reliable, .mtu = IBV_MTU_1024, .slot = raw->slot,
		.peer_qpn = 0xad0000 | (draw() & 0xffff), .peer_psn = draw() & 0xffffff,
	};
	uint8_t old[2048];

	memcpy(c.gid, gid, sizeof(gid));
	memcpy(c.mac, raw->mac, sizeof(c.mac));
	if (ioctl(raw->adv->fd, VICTIM_CONNECT, &c)) {
		perror("ib_mr_adversary: the owner does not connect");
		exit(2);
	}
	raw->qpn = c.peer_qpn;
	raw->their_qpn = c.qpn;
	raw->psn = c.peer_psn;
	raw->reliable = reliable;
	while (recv(raw->fd, old, sizeof(old), MSG_DONTWAIT) > 0)
		;
}

void raw_reth(uint8_t *to, uint64_t va, uint32_t key, uint32_t length)
{
	va = htobe64(va);
	key = htonl(key);
	length = htonl(length);
	memcpy(to, &va, 8);
	memcpy(to + 8, &key, 4);
	memcpy(to + 12, &length, 4);
}

/* An acknowledgement is asked for each time. */
void raw_send(struct raw *raw, int opcode, uint32_t psn, const void *header, size_t header_length,
	      const void *bytes, size_t length)
{
	size_t pad = -length & 3, rest = header_length + length + pad;
	struct packet packet = {
		.eth = { .ether_type = htons(ETH_P_IP) },
		.ip = { .version = 4, .ihl = 5, .ttl = 64, .protocol = IPPROTO_UDP,
			.frag_off = htons(IP_DF), .saddr = htonl(OUR_ADDRESS),
			.daddr = htonl(THEIR_ADDRESS) },
		.udp = { .source = htons(0xc000), .dest = htons(ROCE_PORT) },
		.bth = { .flags = pad << 4, .pkey = 0xffff, .qpn = htonl(raw->their_qpn),
			 .psn = htonl(0x80000000 | (psn & 0xffffff)) },
	};
	struct iphdr ip;
	uint32_t crc;

	packet.bth.opcode = opcode | (raw->reliable ? 0 : OP_UC);
	memcpy(packet.eth.ether_dhost, raw->adv->mac, 6);
	memcpy(packet.eth.ether_shost, raw->mac, 6);
	memcpy(packet.rest, header, header_length);
	if (length)
		memcpy(packet.rest + header_length, bytes, length);
	packet.udp.len = htons(sizeof(packet.udp) + sizeof(packet.bth) + rest + 4);
	ip = packet.ip;
	ip.tot_len = htons(sizeof(ip) + ntohs(packet.udp.len));
	ip.check = ip_sum(&ip);
	packet.ip = ip;
	crc = htole32(icrc(&packet, rest));
	memcpy(packet.rest + rest, &crc, 4);
	if (send(raw->fd, &packet, offsetof(struct packet, rest) + rest + 4, 0) < 0)
		amiss(raw->adv, "a packet could not be sent: %s", strerror(errno));
}

/* The next packet that is for us. Its bytes are good until the next call. */
struct answer raw_answer(struct raw *raw, int ms)
{
	struct answer none = { .opcode = -1 }, answer = {};
	struct pollfd fd = { .fd = raw->fd, .events = POLLIN };
	static struct packet packet;
	double end = now() + ms / 1000.0;
	size_t header, total;
	ssize_t got;

	while (now() < end) {
		if (poll(&fd, 1, ms) <= 0)
			return none;
		got = recv(raw->fd, &packet, sizeof(packet), MSG_DONTWAIT);
		if (got < (ssize_t)offsetof(struct packet, rest) + 4 ||
		    packet.ip.protocol != IPPROTO_UDP || packet.udp.dest != htons(ROCE_PORT) ||
		    packet.ip.saddr != htonl(THEIR_ADDRESS) ||
		    (ntohl(packet.bth.qpn) & 0xffffff) != raw->qpn)
			continue;
		total = ntohs(packet.udp.len) - sizeof(packet.udp) - sizeof(packet.bth) - 4;
		answer.opcode = packet.bth.opcode & 0x1f;
		answer.psn = ntohl(packet.bth.psn) & 0xffffff;
		/* a syndrome and a count come first, but for the middle of a READ */
		header = answer.opcode == OP_READ_FIRST + 1 ? 0 : 4;
		if (header)
			answer.syndrome = packet.rest[0];
		answer.bytes = packet.rest + header;
		answer.length = total - header - (packet.bth.flags >> 4 & 3);
		return answer;
	}
	return none;
}

bool raw_acked(struct raw *raw, int ms)
{
	struct answer a = raw_answer(raw, ms);

	return (a.opcode == OP_ACK && !(a.syndrome & 0x60)) || a.opcode == OP_ATOMIC_ACK;
}
