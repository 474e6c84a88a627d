// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Steps in which the memory is a process's. A child plays that process: it hands a buffer of its
 * own to the ULP by ioctl and passes address and key on, which the peer (its parent) uses as any
 * stranger would. Parent and child speak over two pipes; what the child thinks of its memory is its
 * own loads and stores.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "peer.h"
#include "../ulp/demo_user.h"

#define BUFFER	20000	/* bytes of it */
#define LEAD	100	/* and so many before it; it begins inside a page */
#define MAP	24576

struct owner {
	pid_t pid;
	int to, from;
	struct demo_user_buffer buffer;
};

static uint8_t pattern(size_t i)
{
	return i * 7 + (i >> 8);
}

/* The child. Never returns; what it finds is in the answers, one byte each: 0 is right. */
static void owner_run(int in, int out)
{
	struct demo_user_buffer buffer = { .length = BUFFER };
	int fd = open("/dev/" DEMO_USER_DEVICE, O_RDWR | O_CLOEXEC);
	uint8_t *map, bad, cmd;
	size_t i;

	map = mmap(NULL, MAP, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || map == MAP_FAILED)
		_exit(1);
	memset(map, CANARY, MAP);
	buffer.address = (uintptr_t)map + LEAD;
	if (ioctl(fd, DEMO_USER_REGISTER, &buffer))
		_exit(2);
	if (write(out, &buffer, sizeof(buffer)) != sizeof(buffer))
		_exit(3);

	while (read(in, &cmd, 1) == 1) {
		bad = 0;
		if (cmd == 's') {	/* is it there? */
			for (i = 0; i < MAP; i++) {
				uint8_t want = i < LEAD || i >= LEAD + BUFFER ? CANARY :
					       pattern(i - LEAD);

				bad |= map[i] != want;
			}
		} else if (cmd == 'f') {	/* a child that lives, and a store after it */
			pid_t self = getpid();

			if (!fork()) {
				while (getppid() == self)
					usleep(10000);
				_exit(0);
			}
			map[LEAD] = 0x11;
		} else if (cmd == 'u') {	/* lets go of the memory, not of the registration */
			bad = ioctl(fd, DEMO_USER_STALE) != 0;
			munmap(map, MAP);
			bad |= ioctl(fd, DEMO_USER_STALE) != 1;
		}
		if (write(out, &bad, 1) != 1)
			_exit(4);
	}
	_exit(0);
}

static int owner_start(struct owner *owner)
{
	int down[2], up[2];

	if (pipe2(down, O_CLOEXEC) || pipe2(up, O_CLOEXEC))
		return -errno;
	owner->pid = fork();
	if (owner->pid < 0)
		return -errno;
	if (!owner->pid) {
		close(down[1]);
		close(up[0]);
		owner_run(down[0], up[1]);
	}
	close(down[0]);
	close(up[1]);
	owner->to = down[1];
	owner->from = up[0];
	if (read(owner->from, &owner->buffer, sizeof(owner->buffer)) != sizeof(owner->buffer))
		return -ENODEV;
	return 0;
}

static bool owner_ask(struct owner *owner, char cmd)
{
	uint8_t bad = 1;

	return write(owner->to, &cmd, 1) == 1 && read(owner->from, &bad, 1) == 1 && !bad;
}

static int owner_stop(struct owner *owner)
{
	int status = 0;

	kill(owner->pid, SIGKILL);
	waitpid(owner->pid, &status, 0);
	close(owner->to);
	close(owner->from);
	return status;
}

static int owner_rdma(struct conn *conn, struct owner *owner, enum ibv_wr_opcode code,
		      uint8_t *local, uint64_t offset, uint32_t length)
{
	struct op op = { code, local, length, owner->buffer.iova + offset, owner->buffer.rkey,
			 0, 0 };

	return conn_do(conn, &op);
}

/* The peer writes, the process sees it; the process forks and stores, the peer sees it. */
bool user_buffer(struct peer *peer, const struct step *step, struct result *result)
{
	struct owner owner = {};
	bool saw, forked;
	size_t i;
	int err;

	(void)step;
	err = owner_start(&owner);
	if (err) {
		owner_stop(&owner);
		return lost(result, "the process cannot hand over its buffer", err);
	}
	for (i = 0; i < BUFFER; i++)
		peer->scratch[i] = pattern(i);
	err = owner_rdma(peer->control, &owner, IBV_WR_RDMA_WRITE, peer->scratch, 0, BUFFER);
	saw = !err && owner_ask(&owner, 's');
	forked = saw && owner_ask(&owner, 'f');
	if (forked)
		err = owner_rdma(peer->control, &owner, IBV_WR_RDMA_READ, peer->scratch, 0, 1);
	owner_stop(&owner);
	if (err)
		return failed(result, "access to the process's buffer", err);
	if (!saw)
		return say(result, false, "the process does not see what was written");
	return say(result, forked && peer->scratch[0] == 0x11,
		   "%d bytes written, the process has them, none beside; after a fork they still meet",
		   BUFFER);
}

/* It unmaps the memory, which is noticed and harms nobody; it is killed, and its key is dead. */
bool user_dies(struct peer *peer, const struct step *step, struct result *result)
{
	struct owner owner = {};
	struct conn conn;
	bool noticed;
	int err;

	(void)step;
	err = owner_start(&owner);
	if (err) {
		owner_stop(&owner);
		return lost(result, "the process cannot hand over its buffer", err);
	}
	noticed = owner_ask(&owner, 'u');
	err = owner_rdma(peer->control, &owner, IBV_WR_RDMA_WRITE, peer->scratch, 0, BUFFER);
	owner_stop(&owner);
	if (err)
		return failed(result, "WRITE into unmapped memory that is registered", err);
	if (!noticed)
		return say(result, false, "the unmapping was not noticed");

	err = conn_open(peer, &conn);
	if (!err)
		err = owner_rdma(&conn, &owner, IBV_WR_RDMA_WRITE, peer->scratch, 0, 1);
	conn_close(&conn);
	if (err < 0)
		return lost(result, "after its death", err);
	return say(result, err == IBV_WC_REM_ACCESS_ERR,
		   "unmapped while registered: noticed, pages kept; after its death: %s",
		   ibv_wc_status_str(err));
}
