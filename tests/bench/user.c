// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * User memory: ib_mr_reg_user() beside ib_reg_user_mr(), which is what ibv_reg_mr() comes down to.
 *
 * Both register the memory of the process that loads the module, one after the other in turn, with
 * all of it in place already, so that what is counted is not the memory's coming. 1 GiB is of huge
 * pages (THP); 64 MiB are of small ones, shared memory touched in an order that leaves no two
 * neighbours side by side. That they are is seen in the number of runs.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "bench.h"
#include "mr/region.h"

#define TURNS	5

static int touch(unsigned long at, size_t length, size_t step)
{
	unsigned long nr = length / step, i;

	for (i = 0; i < nr; i++) {
		/* 7919 is a prime, so all are visited. */
		if (put_user(1, (char __user *)at + (i * 7919 % nr) * step))
			return -EFAULT;
		cond_resched();
	}
	return 0;
}

static int turns(struct bench *b, unsigned long at, size_t length, u64 *runs)
{
	struct bench_samples *s = kcalloc(2, sizeof(*s), GFP_KERNEL);
	struct bench_span span;
	struct ib_mr *mr;
	int i, err = s ? 0 : -ENOMEM;

	for (i = 0; i < 2 * TURNS && !err; i++) {
		bench_begin(&span);
		mr = i & 1 ? ib_mr_reg_user(b->pd, at, length, BENCH_ACCESS, NULL) :
		     ib_reg_user_mr(b->pd, at, length, at, BENCH_ACCESS);
		if (i > 1)
			bench_sample(&s[i & 1], bench_end(&span));
		if (IS_ERR(mr)) {
			err = PTR_ERR(mr);
		} else if (i & 1) {
			*runs = ibmr_reg_runs(container_of(mr, struct ibmr_region, mr)->reg);
			err = ib_dereg_mr(mr);
		} else {
			err = ib_dereg_mr_user(mr, NULL);
		}
		cond_resched();
	}
	if (!err) {
		bench_result("reg_user_stock", length >> PAGE_SHIFT, bench_median(&s[0]));
		bench_result("reg_user", length >> PAGE_SHIFT, bench_median(&s[1]));
	}
	kfree(s);
	return err;
}

static int with_memory(struct bench *b, size_t length, size_t step, unsigned long flags)
{
	unsigned long map, at;
	u64 runs = 0;
	int err;

	map = vm_mmap(NULL, 0, length + SZ_2M, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags, 0);
	if (IS_ERR_VALUE(map))
		return map;
	at = ALIGN(map, SZ_2M);
	err = touch(at, length, step);
	if (!err)
		err = turns(b, at, length, &runs);
	vm_munmap(map, length + SZ_2M);
	if (!err && (step == PAGE_SIZE ? runs < length / step / 2 : runs > length / step)) {
		pr_err("%llu runs in %zu bytes: not the pages that were meant\n", runs, length);
		return -EIO;
	}
	return err;
}

int bench_user(struct bench *b)
{
	int err = current->mm ? with_memory(b, SZ_64M, PAGE_SIZE, MAP_SHARED) : -EINVAL;

	if (!err)
		err = with_memory(b, SZ_1G, SZ_2M, MAP_PRIVATE);
	return err ? bench_fail("user", err) : 0;
}
