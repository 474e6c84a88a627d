// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Is what is read what was written? Writes and reads of random size and place, past the page cache, from buffers at random
 * places in their pages, against a copy of the whole in memory. At the end all of it is read once more.
 *
 *	verify FILE BYTES OPERATIONS SEED ALIGNMENT
 *
 * FILE is a disk or a file; its first BYTES are overwritten. ALIGNMENT is what places, sizes and buffers are multiples of:
 * 512 for disks, 1 for files that allow it. The same SEED gives the same operations. Exit status 1: the data differ.
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define MOST	(256 << 10)	/* bytes of an operation */
#define PAGE	4096

static size_t total, align;
static uint64_t state;
static unsigned char *model, *memory;
static unsigned int wrong;

static uint64_t random_below(uint64_t limit)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state % limit;
}

static size_t aligned_below(size_t limit)
{
	return random_below(limit / align) * align;
}

/* Half of the operations are small: those travel inside of a message, where a driver has a way of its own. */
static size_t random_size(void)
{
	size_t most = random_below(2) ? MOST : 4 * PAGE;

	return align + aligned_below(most);
}

static void compare(const unsigned char *got, size_t at, size_t size)
{
	size_t i = 0, end = size;

	if (!memcmp(got, model + at, size))
		return;
	while (got[i] == model[at + i])
		i++;
	while (got[end - 1] == model[at + end - 1])
		end--;
	if (wrong++ < 5)
		printf("verify: read of %zu bytes at %zu: byte %zu to %zu differ; there %02x %02x %02x %02x, should be %02x %02x %02x %02x\n",
		       size, at, i, end - 1, got[i], got[i + 1], got[i + 2], got[i + 3],
		       model[at + i], model[at + i + 1], model[at + i + 2], model[at + i + 3]);
}

/* In one piece, or in two that lie apart. */
static ssize_t transfer(int fd, int write, unsigned char *buf, size_t at, size_t size, size_t cut)
{
	struct iovec piece[2] = { { buf, cut }, { buf + cut + PAGE, size - cut } };

	if (!cut)
		return write ? pwrite(fd, buf, size, at) : pread(fd, buf, size, at);
	return write ? pwritev(fd, piece, 2, at) : preadv(fd, piece, 2, at);
}

static void operate(int fd)
{
	size_t size = random_size(), at = aligned_below(total - size + align), i;
	size_t cut = size > align && !random_below(3) ? align + aligned_below(size - align) : 0;
	unsigned char *buf = memory + aligned_below(PAGE);
	int write = random_below(2);

	if (cut == size)
		cut = 0;
	if (write) {
		for (i = 0; i < size; i++)
			model[at + i] = random_below(256);
		memcpy(buf, model + at, cut ? cut : size);
		memcpy(buf + cut + PAGE, model + at + cut, cut ? size - cut : 0);
	} else {
		memset(memory, 0x55, MOST + 4 * PAGE);
	}
	if (transfer(fd, write, buf, at, size, cut) != (ssize_t)size)
		err(2, "%s of %zu bytes at %zu", write ? "write" : "read", size, at);
	if (write)
		return;
	if (cut)
		memmove(buf + cut, buf + cut + PAGE, size - cut);
	compare(buf, at, size);
}

int main(int argc, char **argv)
{
	size_t at, done, operations;
	int fd;

	if (argc != 6)
		errx(2, "usage: verify FILE BYTES OPERATIONS SEED ALIGNMENT");
	total = atol(argv[2]);
	operations = atol(argv[3]);
	state = atol(argv[4]) * 2654435761u + 1;
	align = atol(argv[5]);
	fd = open(argv[1], O_RDWR | O_CREAT | O_DIRECT, 0600);
	if (fd < 0)
		err(2, "%s", argv[1]);
	model = calloc(1, total);
	if (!model || posix_memalign((void **)&memory, PAGE, MOST + 4 * PAGE))
		errx(2, "no memory");
	for (at = 0; at < total; at += MOST) {
		size_t i, size = total - at < MOST ? total - at : MOST;

		for (i = 0; i < size; i++)
			model[at + i] = random_below(256);
		memcpy(memory, model + at, size);
		if (pwrite(fd, memory, size, at) != (ssize_t)size)
			err(2, "write at %zu", at);
	}
	for (done = 0; done < operations; done++)
		operate(fd);
	for (at = 0; at < total; at += MOST) {
		size_t size = total - at < MOST ? total - at : MOST;

		if (pread(fd, memory, size, at) != (ssize_t)size)
			err(2, "read at %zu", at);
		compare(memory, at, size);
	}
	printf("verify: %zu operations on %zu bytes, %u reads wrong\n", operations, total, wrong);
	return wrong > 0;
}
