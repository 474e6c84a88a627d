// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Races that were found, each for itself: two or three threads that meet in one place, many times.
 * What all of them do together is tests/race's.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "base/compat.h"
#include "base/core.h"
#include "proc.h"
#include "window.h"

#define PROT_RW	(PROT_READ | PROT_WRITE)

struct unmap {
	struct ibt_proc *p;
	unsigned long at;
};

static int unmap_half(void *arg, int i)
{
	struct unmap *u = arg;
	int err;

	kthread_use_mm(u->p->mm);
	err = vm_munmap(u->at + i * SZ_16K, SZ_16K);
	kthread_unuse_mm(u->p->mm);
	return err;
}

/* Two threads of a process unmap a half of a region each, at one time: it becomes stale once. */
static void stale_once(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_proc *p = ibt_proc(test, NULL);
	struct ibmr_dev *dev = ibmr_dev_get(ibt_dev(test));
	s64 before = atomic64_read(&dev->went_stale);
	int round, rounds = ibt_slow ? 1000 : 50;

	ibmr_dev_put(dev);	/* the client has its own */
	for (round = 1; round <= rounds; round++) {
		struct unmap u = { .p = p, .at = ibt_user_map(p, SZ_32K, PROT_RW) };
		struct ib_mr *mr = ibt_mr(test, ibt_reg_user(p, pd, u.at, SZ_32K, LW | RR, NULL));

		ibt_parallel(test, 2, unmap_half, &u);
		KUNIT_EXPECT_TRUE(test, ib_mr_is_stale(mr));
		KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
		KUNIT_ASSERT_EQ(test, atomic64_read(&dev->went_stale) - before, (s64)round);
	}
}

#define BINDS	300

struct keys {
	struct ibt_win w;
	struct ib_mw *mw;
	atomic_t binders;
	atomic_t n;
	u32 key[2 * BINDS];
};

/* Two bind the same type 2 window whenever it is free, the third frees it. */
static int bind_or_free(void *arg, int i)
{
	struct keys *k = arg;
	unsigned int tries;
	int bound = 0, err;

	if (i == 2) {
		while (atomic_read(&k->binders)) {
			ib_mr_invalidated(k->w.pd, READ_ONCE(k->mw->rkey));
			cond_resched();
		}
		return 0;
	}
	for (tries = 0; tries < 100000 && bound < BINDS; tries++) {
		struct ib_bind_mw_wr wr = {
			.mw = k->mw,
			.bind_info = {
				.mr = k->w.mr, .addr = k->w.base, .length = 64,
				.mw_access_flags = RR,
			},
		};

		err = ib_mr_post_bind_mw(k->w.p->tgt.qp, &wr);
		if (!err) {
			k->key[atomic_fetch_inc(&k->n)] = wr.rkey;
			bound++;
		} else if (err == -ENOMEM) {
			msleep(20);	/* the stock follows */
		}
		cond_resched();
	}
	atomic_dec(&k->binders);
	return bound ? 0 : -EAGAIN;
}

static int by_value(const void *a, const void *b)
{
	return *(const u32 *)a < *(const u32 *)b ? -1 : *(const u32 *)a > *(const u32 *)b;
}

/* Each bind tells its own key, also when the window is freed and bound again right after. */
static void bind_tells_its_own_key(struct kunit *test)
{
	struct keys *k = kunit_kzalloc(test, sizeof(*k), GFP_KERNEL);
	int i, n;

	KUNIT_ASSERT_NOT_NULL(test, k);
	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU");
	ibt_win(&k->w, test, IBT_KMALLOC, SZ_4K, LW | RR | MWB);
	k->mw = ibt_mw(test, k->w.pd, IB_MW_TYPE_2);
	atomic_set(&k->binders, 2);
	ibt_parallel(test, 3, bind_or_free, k);
	n = atomic_read(&k->n);
	KUNIT_EXPECT_GT(test, n, BINDS / 4);
	sort(k->key, n, sizeof(k->key[0]), by_value, NULL);
	for (i = 1; i < n; i++)
		KUNIT_EXPECT_NE(test, k->key[i - 1], k->key[i]);
	ib_mr_invalidated(k->w.pd, k->mw->rkey);
}

static struct kunit_case race_cases[] = {
	KUNIT_CASE(stale_once),
	KUNIT_CASE(bind_tells_its_own_key),
	{}
};

IBT_SUITE(race, race_cases);
