// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Re-keying on its own: what a registration queue pair takes for a LOCAL_INV and a REG_MR of each
 * of so many MRs, in one call. "pages" is the number of MRs here.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>

#include "bench.h"
#include "mr/regqp.h"

#define MOST	64

struct rekey {
	struct ibmr_regqp *rq;
	struct ib_mr *mr[MOST];
	struct ibmr_regop op[2 * MOST];
};

static int rekey(struct rekey *r, unsigned int nr, bool apart, bool first)
{
	unsigned int i, ops = 0;

	for (i = 0; i < nr; i++) {
		u32 key = r->mr[i]->lkey;
		struct ibmr_regop inv = { .kind = IBMR_OP_INV, .key = key };
		struct ibmr_regop reg = {
			.kind = IBMR_OP_REG, .mr = r->mr[i], .key = key, .access = BENCH_ACCESS,
		};

		if (apart) {
			r->op[i] = inv;
			r->op[nr + i] = reg;
			ops += 2;
			continue;
		}
		if (!first)
			r->op[ops++] = inv;
		r->op[ops++] = reg;
	}
	return ibmr_regqp_run(r->rq, r->op, ops);
}

static int measure(struct rekey *r, const char *name, unsigned int nr, bool apart)
{
	struct bench_samples *s = kzalloc(sizeof(*s), GFP_KERNEL);
	struct bench_span span;
	int i, err = s ? 0 : -ENOMEM;

	for (i = 0; i < 20 && !err; i++) {
		bench_begin(&span);
		err = rekey(r, nr, apart, false);
		if (i > 2)
			bench_sample(s, bench_end(&span) / nr);
	}
	if (!err)
		bench_result(name, nr, bench_median(s));
	kfree(s);
	return err;
}

int bench_rekey(struct bench *b)
{
	struct rekey *r = kzalloc(sizeof(*r), GFP_KERNEL);
	unsigned int i, nr;
	int err = 0;

	if (!r)
		return -ENOMEM;
	r->rq = ibmr_regqp_create(b->pd, 0, 0);
	if (IS_ERR(r->rq)) {
		err = PTR_ERR(r->rq);
		goto out;
	}
	for (nr = 0; nr < MOST; nr++) {
		r->mr[nr] = ib_alloc_mr(b->pd, IB_MR_TYPE_MEM_REG, BENCH_PAGES);
		if (IS_ERR(r->mr[nr])) {
			err = PTR_ERR(r->mr[nr]);
			goto free;
		}
		r->mr[nr]->length = 0;
	}
	err = rekey(r, MOST, false, true);
	for (nr = 1; nr <= MOST && !err; nr *= 4) {
		err = measure(r, "rekey", nr, false);
		if (!err)
			err = measure(r, "rekey_apart", nr, true);
	}
	nr = MOST;
free:
	ibmr_regqp_destroy(r->rq);
	for (i = 0; i < nr; i++)
		ib_dereg_mr_user(r->mr[i], NULL);
out:
	kfree(r);
	return err ? bench_fail("rekey", err) : 0;
}
