// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows: to grant, to move and to take back, beside the same grant by registering anew.
 *
 * Each window is used once, so that the stock that came with the windows covers every bind.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/slab.h>
#include <linux/sizes.h>
#include <rdma/ib_fmr_pool.h>
#include <rdma/ib_mr_mw.h>

#include "bench.h"

#define WINDOWS	128
#define ACCESS	(IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

struct windows {
	struct bench *b;
	struct bench_qp *q;
	struct ib_mr *mr;
	void *buf;
	struct ib_mw *mw[WINDOWS];
	struct bench_samples s;
};

static struct ib_mr *region(struct windows *w)
{
	return ib_mr_reg_kernel(w->b->pd, w->buf, SZ_64K,
				IB_ACCESS_LOCAL_WRITE | IB_ACCESS_MW_BIND, NULL);
}

/* Every window to 4 KiB of the region from @off on, or to nothing. */
static int bind_all(struct windows *w, const char *name, u64 off, u64 length, int flags)
{
	struct ib_mw_bind bind = {
		.send_flags = flags,
		.bind_info = {
			.mr = w->mr, .addr = w->mr->iova + off, .length = length,
			.mw_access_flags = length ? ACCESS : 0,
		},
	};
	unsigned long irq;
	int i, err = 0;
	u64 from;

	for (i = 0; i < WINDOWS && !err; i++) {
		local_irq_save(irq);
		from = bench_clock();
		err = ib_bind_mw(w->q->qp, w->mw[i], &bind);
		if (i > 8)
			bench_sample(&w->s, bench_clock() - from);
		local_irq_restore(irq);
		if (!err && flags & IB_SEND_SIGNALED)
			err = bench_qp_wait(w->q);
		usleep_range(3000, 4000);	/* binds as they come, not a storm of them */
	}
	if (!err)
		bench_result(name, 1, bench_median(&w->s));
	return err;
}

static int by_rereg(struct windows *w)
{
	struct bench_span span;
	int i;

	for (i = 0; i < 40; i++) {
		bench_begin(&span);
		if (ib_dereg_mr(w->mr))
			return -EIO;
		w->mr = region(w);
		if (IS_ERR(w->mr))
			return PTR_ERR(w->mr);
		if (i > 4)
			bench_sample(&w->s, bench_end(&span));
		cond_resched();
	}
	bench_result("grant_by_rereg", 1, bench_median(&w->s));
	return 0;
}

#define POOLS	1000

/* A window more, in a device with many magazines that are no windows'. */
static int among_pools(struct bench *b)
{
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = 1, .page_shift = PAGE_SHIFT, .access = BENCH_ACCESS,
		.pool_size = 1, .dirty_watermark = 1,
	};
	struct ib_fmr_pool **pool = kvcalloc(POOLS, sizeof(*pool), GFP_KERNEL);
	struct bench_samples *s = kzalloc(sizeof(*s), GFP_KERNEL);
	struct ib_mw *first = NULL, *mw;
	struct bench_span span;
	int i, nr = 0, err = pool && s ? 0 : -ENOMEM;

	for (; nr < POOLS && !err; nr++) {
		pool[nr] = ib_create_fmr_pool(b->pd, &param);
		err = PTR_ERR_OR_ZERO(pool[nr]);
		if (err)
			break;
		cond_resched();
	}
	if (!err) {
		first = ib_alloc_mw(b->pd, IB_MW_TYPE_1);
		err = PTR_ERR_OR_ZERO(first);
	}
	for (i = 0; i < 40 && !err; i++) {
		bench_begin(&span);
		mw = ib_alloc_mw(b->pd, IB_MW_TYPE_1);
		if (i > 7)
			bench_sample(s, bench_end(&span));
		err = PTR_ERR_OR_ZERO(mw);
		if (!err)
			ib_dealloc_mw(mw);
	}
	if (!err)
		bench_result("mw_alloc", POOLS, bench_median(s));
	if (!IS_ERR_OR_NULL(first))
		ib_dealloc_mw(first);
	while (nr)
		ib_destroy_fmr_pool(pool[--nr]);
	kfree(s);
	kvfree(pool);
	return err;
}

int bench_window(struct bench *b)
{
	struct windows *w = kzalloc(sizeof(*w), GFP_KERNEL);
	int i, nr = 0, err = 0;

	if (!w)
		return -ENOMEM;
	w->b = b;
	w->buf = alloc_pages_exact(SZ_64K, GFP_KERNEL | __GFP_ZERO);
	w->q = bench_qp_create(b, true);
	err = w->buf ? PTR_ERR_OR_ZERO(w->q) : -ENOMEM;
	if (err)
		goto out;
	w->mr = region(w);
	err = PTR_ERR_OR_ZERO(w->mr);
	for (; nr < WINDOWS && !err; nr++) {
		w->mw[nr] = ib_alloc_mw(b->pd, IB_MW_TYPE_1);
		err = PTR_ERR_OR_ZERO(w->mw[nr]);
		if (err)
			break;
	}
	if (!err)
		err = bind_all(w, "mw_bind", 100, SZ_4K, 0);
	if (!err)
		err = bind_all(w, "mw_unbind", 0, 0, 0);
	for (i = 0; i < nr; i++)
		ib_dealloc_mw(w->mw[i]);
	for (nr = 0; nr < WINDOWS && !err; nr++) {
		w->mw[nr] = ib_alloc_mw(b->pd, IB_MW_TYPE_1);
		err = PTR_ERR_OR_ZERO(w->mw[nr]);
		if (err)
			break;
	}
	if (!err)
		err = bind_all(w, "mw_bind_signalled", 100, SZ_4K, IB_SEND_SIGNALED);
	for (i = 0; i < nr; i++)
		ib_dealloc_mw(w->mw[i]);
	if (!err)
		err = by_rereg(w);
	if (!err)
		err = among_pools(b);
	if (!IS_ERR_OR_NULL(w->mr))
		ib_dereg_mr(w->mr);
out:
	if (!IS_ERR_OR_NULL(w->q))
		bench_qp_destroy(w->q);
	if (w->buf)
		free_pages_exact(w->buf, SZ_64K);
	kfree(w);
	return err ? bench_fail("window", err) : 0;
}
