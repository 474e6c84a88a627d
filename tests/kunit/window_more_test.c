// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows, what is rare: invalidation by the owner and by the peer, fences of the region
 * below, windows larger than the common stocks, thousands at once, a bind that fails at each step,
 * memory of every kind, a device that goes, and sources of the first epoch.
 */

#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched/task.h>

#include "fmr_helpers.h"
#include "proc.h"
#include "window.h"
#include "window_epoch1.h"

#define REGION	(LW | MWB)
#define TRIES	5000	/* of a millisecond, while a stock follows the demand */

static int bind_patiently(struct ibt_win *w, size_t off, u64 len, int access, int send_flags)
{
	int err, tries;

	for (tries = 0; tries < TRIES; tries++) {
		err = ibt_bind(w, off, len, access, send_flags);
		if (err != -ENOMEM)
			break;
		usleep_range(1000, 2000);
	}
	return err;
}

static int bind_2_patiently(struct ibt_win *w, struct ib_mw *mw, size_t off, u64 len, int access)
{
	int err, tries;

	for (tries = 0; tries < TRIES; tries++) {
		err = ibt_bind_2(w, mw, off, len, access);
		if (err != -ENOMEM)
			break;
		usleep_range(1000, 2000);
	}
	return err;
}

static enum ib_wc_status peek(struct ibt_win *w, u32 key, size_t off, u32 len)
{
	return ibt_rdma(w->p, IBT_READ, w->p->req.buf, key, w->base + off, len);
}

/* --- invalidation, carried out by the device --- */

static void by_owner(struct ibt_win *w, u32 key)
{
	struct ib_send_wr wr = {
		.wr_id = 0x11f, .opcode = IB_WR_LOCAL_INV, .send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = key,
	};
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(w->test, ib_post_send(w->p->tgt.qp, &wr, NULL), 0);
	ibt_next_wc(w, &wc);
	KUNIT_EXPECT_EQ(w->test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(w->test, wc.opcode, IB_WC_LOCAL_INV);	/* no bind of ours */
	KUNIT_EXPECT_EQ(w->test, wc.wr_id, 0x11f);
}

static void by_peer(struct ibt_win *w, u32 key)
{
	struct ibt_end *req = &w->p->req, *tgt = &w->p->tgt;
	struct ib_sge to = {
		.addr = (uintptr_t)tgt->buf, .length = 64, .lkey = tgt->pd->local_dma_lkey,
	};
	struct ib_sge from = {
		.addr = (uintptr_t)req->buf, .length = 64, .lkey = req->pd->local_dma_lkey,
	};
	struct ib_recv_wr recv = { .wr_id = 0x22f, .sg_list = &to, .num_sge = 1 };
	struct ib_send_wr wr = {
		.wr_id = 0x33f, .opcode = IB_WR_SEND_WITH_INV, .send_flags = IB_SEND_SIGNALED,
		.sg_list = &from, .num_sge = 1, .ex.invalidate_rkey = key,
	};
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(w->test, ib_post_recv(tgt->qp, &recv, NULL), 0);
	KUNIT_ASSERT_EQ(w->test, ib_post_send(req->qp, &wr, NULL), 0);
	ibt_next_wc(w, &wc);
	KUNIT_EXPECT_EQ(w->test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(w->test, wc.wr_id, 0x22f);
	KUNIT_EXPECT_TRUE(w->test, wc.wc_flags & IB_WC_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(w->test, wc.ex.invalidate_rkey, key);
}

static void invalidated(struct kunit *test, void (*by)(struct ibt_win *w, u32 key))
{
	struct ib_mw *mw;
	struct ibt_win w;
	u32 key, old = 0;
	int i;

	ibt_win(&w, test, IBT_VMALLOC, 4 * PAGE_SIZE, REGION);
	mw = ibt_mw(test, w.pd, IB_MW_TYPE_2);
	/* More rounds than there is stock, so MRs come back that were armed anew after it. */
	for (i = 0; i < 60; i++) {
		KUNIT_ASSERT_EQ(test, bind_2_patiently(&w, mw, 10 + i, 200, RR | RW), 0);
		key = mw->rkey;
		KUNIT_EXPECT_NE(test, key, old);
		KUNIT_EXPECT_EQ(test, peek(&w, key, 10 + i, 200), IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, ibt_diff_copy(w.b, 10 + i, 200, w.p->req.buf), 210 + i);
		by(&w, key);
		if (i < 3) {	/* a refusal costs a pair of queue pairs */
			ibt_expect_no_window(&w, key, 10 + i);
			/* Until the core is told, it takes the window for bound. */
			ibt_expect_refused(test, MW_NOT_FREE, ibt_bind_2(&w, mw, 0, 10, RR));
			ibt_expect_refused(test, WINDOWS_BOUND, ib_dereg_mr(w.mr));
		}
		KUNIT_EXPECT_EQ(test, ib_mr_invalidated(w.pd, key), 0);
		if (i < 3)
			ibt_expect_refused(test, STALE_KEY, ib_mr_invalidated(w.pd, key));
		old = key;
	}
	KUNIT_ASSERT_EQ(test, bind_2_patiently(&w, mw, 77, 100, RR | RW), 0);
	ibt_expect_window(&w, mw->rkey, 77, 100, RR | RW);
	ibt_expect_no_window(&w, old, 77);
	KUNIT_EXPECT_EQ(test, ib_mr_invalidated(w.pd, mw->rkey), 0);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, w.mr), 0);
}

static void invalidated_by_owner(struct kunit *test)
{
	invalidated(test, by_owner);
}

static void invalidated_by_peer(struct kunit *test)
{
	invalidated(test, by_peer);
}

/* A type 1 window whose MR a peer made FREE, and nobody told: it is bound again all the same. */
static void invalidated_untold(struct kunit *test)
{
	struct ibt_win w;
	u32 key;
	int i;

	ibt_win(&w, test, IBT_VMALLOC, 4 * PAGE_SIZE, REGION);
	for (i = 0; i < 40; i++) {
		KUNIT_ASSERT_EQ(test, bind_patiently(&w, 5 + i, 100, RR, 0), 0);
		key = w.mw->rkey;
		KUNIT_EXPECT_EQ(test, peek(&w, key, 5 + i, 100), IB_WC_SUCCESS);
		by_peer(&w, key);
	}
	ibt_expect_no_window(&w, key, 44);
	KUNIT_ASSERT_EQ(test, bind_patiently(&w, 0, 100, RR, 0), 0);
	ibt_expect_window(&w, w.mw->rkey, 0, 100, RR);
}

/* --- the region is given away --- */

struct held {
	struct ibt_win *w;
	struct ibt_pair *p;
	bool rereg;
	bool stop;
	bool returned;
	int err;
};

static int held_write(void *arg)
{
	struct held *h = arg;

	memset(h->p->req.buf, 0x57, PAGE_SIZE);
	ibt_rdma(h->p, IBT_WRITE, h->p->req.buf, h->w->mw->rkey, h->w->base, 1000);
	while (!kthread_should_stop())
		usleep_range(1000, 2000);
	return 0;
}

static int held_fence(void *arg)
{
	struct held *h = arg;

	h->err = h->rereg ? ib_rereg_phys_mr(h->w->mr, IB_MR_REREG_ACCESS, NULL, NULL, 0, LW, NULL)
			  : ibt_dereg(h->w->test, h->w->mr);
	/* What the call answered is read after this. */
	smp_store_release(&h->returned, true);
	while (!kthread_should_stop())
		usleep_range(1000, 2000);
	return 0;
}

static struct task_struct *run_on(struct kunit *test, int cpu, int (*fn)(void *arg), void *arg)
{
	struct task_struct *task = kthread_create(fn, arg, "ib_mr_test/held");

	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	get_task_struct(task);
	kthread_bind(task, cpu);
	wake_up_process(task);
	return task;
}

static void run_end(struct task_struct *task)
{
	kthread_stop(task);
	put_task_struct(task);
}

/*
 * A WRITE through a window is held between its check and its copy. The window is unbound, which is
 * immediate, and the region below deregistered, which promises that its memory is the owner's.
 */
static void region_fences(struct kunit *test, bool rereg)
{
	struct task_struct *writer, *fence;
	struct ibt_win w;
	struct held h = { .w = &w, .rereg = rereg };
	int tries;

	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU");
	ibt_hold_elsewhere();
	ibt_win(&w, test, IBT_SCATTER, PAGE_SIZE, REGION);
	h.p = ibt_pair_type(test, w.pd, IB_QPT_UC);
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 0, 1000, RW, 0), 0);

	KUNIT_ASSERT_EQ(test, ibt_hold(w.base), 0);
	writer = run_on(test, cpumask_last(cpu_online_mask), held_write, &h);
	KUNIT_EXPECT_TRUE(test, ibt_held());
	KUNIT_EXPECT_EQ(test, ibt_bind(&w, 0, 0, 0, 0), 0);
	fence = run_on(test, cpumask_first(cpu_online_mask), held_fence, &h);
	msleep(400);	/* more than a grace period */
	KUNIT_EXPECT_FALSE_MSG(test, READ_ONCE(h.returned),
			       "it returned while a packet was under way");
	ibt_release();
	run_end(writer);
	KUNIT_EXPECT_FALSE_MSG(test, ibt_hold_expired(), "it was not held to the end");
	/* Pairs with held_fence(). */
	for (tries = 0; tries < 1000 && !smp_load_acquire(&h.returned); tries++)
		usleep_range(10000, 20000);
	KUNIT_EXPECT_TRUE(test, h.returned);
	KUNIT_EXPECT_EQ(test, h.err, 0);
	run_end(fence);
	ibt_fill(w.b, 0, w.b->size, w.b->seed);
	msleep(50);
	KUNIT_EXPECT_TRUE(test, ibt_intact(w.b));
}

static void dereg_fences_windows(struct kunit *test)
{
	region_fences(test, false);
}

static void rereg_fences_windows(struct kunit *test)
{
	region_fences(test, true);
}

/* A large window is deallocated while its region, and with it the window's stock, goes. */
static int dealloc_or_dereg(void *arg, int i)
{
	struct ibt_win *w = arg;
	int err, tries;

	if (!i)
		return ib_dealloc_mw(w->mw);
	for (tries = 0; tries < 100000; tries++) {
		err = ib_dereg_mr(w->mr);
		if (err != -EBUSY)
			break;
		cond_resched();
	}
	return err;
}

static void dealloc_beside_dereg(struct kunit *test)
{
	const size_t size = 300 * PAGE_SIZE;
	struct scatterlist *sgl;
	struct ibt_win w;
	int i, nents;

	ibt_win(&w, test, IBT_SCATTER, size, REGION);
	sgl = ibt_sg(test, w.b, 0, size, &nents);
	for (i = 0; i < 10; i++) {
		w.mr = ib_mr_reg_sg(w.pd, sgl, nents, REGION, &w.base);
		KUNIT_ASSERT_FALSE(test, IS_ERR(w.mr));
		w.mw = ib_alloc_mw(w.pd, IB_MW_TYPE_1);
		KUNIT_ASSERT_FALSE(test, IS_ERR(w.mw));
		KUNIT_EXPECT_EQ(test, bind_patiently(&w, 1, size - 2, RR, 0), 0);
		ibt_parallel(test, 2, dealloc_or_dereg, &w);
	}
}

/* --- large ones --- */

/* Rights that nobody was promised come on demand, and memory that is not there for good is said. */
static void large_rights(struct kunit *test)
{
	static const int sets[] = { RA, RR | RA, RW | RA, RR | RW | RA, RR };
	const size_t size = 600 * PAGE_SIZE, len = 500 * PAGE_SIZE;
	struct ibt_win w;
	unsigned int i;

	ibt_win(&w, test, IBT_SCATTER, size, REGION);
	for (i = 0; i < ARRAY_SIZE(sets); i++) {
		KUNIT_ASSERT_EQ(test, bind_patiently(&w, 48, len, sets[i], 0), 0);
		ibt_expect_window(&w, w.mw->rkey, 48, len, sets[i]);
	}
}

/* Zero-based, and not congruent to a page: blocks below a page lose their offset in a driver. */
static void large_zero_based(struct kunit *test)
{
	const size_t size = 1300 * PAGE_SIZE, len = 600 * PAGE_SIZE;
	struct ib_mw *mw;
	struct ibt_win w;

	ibt_win(&w, test, IBT_SCATTER, size, REGION);
	mw = ibt_mw(test, w.pd, IB_MW_TYPE_2);
	ibt_expect_refused(test, ZERO_BASED_ALIGN,
			   ibt_bind_2(&w, mw, PAGE_SIZE / 2, len, RR | IB_ZERO_BASED));
	KUNIT_ASSERT_EQ(test, bind_2_patiently(&w, mw, PAGE_SIZE, len, RR | IB_ZERO_BASED), 0);
	KUNIT_EXPECT_EQ(test, ibt_rdma(w.p, IBT_READ, w.p->req.buf, mw->rkey, len - 5000, 5000),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_diff_copy(w.b, PAGE_SIZE + len - 5000, 5000, w.p->req.buf),
			PAGE_SIZE + len);
	KUNIT_EXPECT_EQ(test, ibt_rdma(w.p, IBT_READ, w.p->req.buf, mw->rkey, len - 1, 2),
			IB_WC_REM_ACCESS_ERR);
}

/* As iWARP hardware: no MW_BIND on the region. But then nothing large was provided for. */
static void without_right(struct kunit *test)
{
	struct ibt_win w;

	ibt_win(&w, test, IBT_SCATTER, 600 * PAGE_SIZE, LW);
	ibt_expect_refused(test, MW_NO_BIND, ibt_bind(&w, 9, 99, RR | RW, 0));
	ibt_param(test, "bind_without_right", 1);
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 9, 99, RR | RW, 0), 0);
	ibt_expect_window(&w, w.mw->rkey, 9, 99, RR | RW);
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 1, 255 * PAGE_SIZE, RR, 0), 0);
	ibt_expect_refused(test, TOO_MANY_PAGES, ibt_bind(&w, 0, 257 * PAGE_SIZE, RR, 0));
	ibt_expect_refused(test, TOO_MANY_PAGES, ibt_bind(&w, 0, 600 * PAGE_SIZE, RR, 0));
	ibt_expect_window(&w, w.mw->rkey, 1, 255 * PAGE_SIZE, RR);
	ibt_param(test, "bind_without_right", 0);
	ibt_expect_refused(test, MW_NO_BIND, ibt_bind(&w, 9, 99, RR | RW, 0));
}

/* --- thousands --- */

static void dealloc_all(struct kunit *test, void *arg)
{
	struct ib_mw **mw = arg;

	for (; *mw; mw++)
		ib_dealloc_mw(*mw);
	kvfree(arg);
}

/* All bound at one time, with rights of which none was promised one. */
static void thousands(struct kunit *test)
{
	const unsigned int n = ibt_slow ? 10000 : 1100;
	struct ib_mw **mw = kvcalloc(n + 1, sizeof(*mw), GFP_KERNEL);
	ktime_t begin = ktime_get();
	struct ibt_win w;
	unsigned int i;
	int err = 0;

	KUNIT_ASSERT_NOT_NULL(test, mw);
	ibt_win(&w, test, IBT_VMALLOC, 4 * PAGE_SIZE, REGION);
	ibt_defer(test, dealloc_all, mw);
	for (i = 0; i < n; i++) {
		mw[i] = ib_alloc_mw(w.pd, IB_MW_TYPE_1);
		if (IS_ERR(mw[i])) {
			err = PTR_ERR(mw[i]);
			mw[i] = NULL;
			break;
		}
	}
	KUNIT_ASSERT_EQ_MSG(test, err, 0, "window %u", i);
	kunit_info(test, "%u windows made in %lld ms\n", n, ktime_ms_delta(ktime_get(), begin));
	for (i = 0; i < n; i++) {
		w.mw = mw[i];
		err = bind_patiently(&w, i % 5000, 100, RR | RA, 0);
		KUNIT_ASSERT_EQ_MSG(test, err, 0, "bind %u", i);
	}
	kunit_info(test, "all bound after %lld ms\n", ktime_ms_delta(ktime_get(), begin));
	for (i = 0; i < n; i += 20) {
		KUNIT_EXPECT_EQ(test, peek(&w, mw[i]->rkey, i % 5000, 100), IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, ibt_diff_copy(w.b, i % 5000, 100, w.p->req.buf),
				i % 5000 + 100);
	}
	ibt_expect_refused(test, WINDOWS_BOUND, ib_dereg_mr(w.mr));
	KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(ibt_dev(test)));
}

/* Two CPUs move signalled bindings on queue pairs of their own; completions keep their order. */
struct storm {
	struct ibt_win w[2];
};

static int signalled_storm(void *arg, int i)
{
	struct ibt_win *w = &((struct storm *)arg)->w[i];
	struct ib_mw_bind bind = {
		.send_flags = IB_SEND_SIGNALED, .bind_info.mr = w->mr,
		.bind_info.mw_access_flags = i ? RR : RW,
	};
	u64 next = 0;
	struct ib_wc wc;
	int err, n, tries = 0;

	for (n = 0; n < 400 || next < n;) {
		if (n < 400) {
			bind.wr_id = n;
			bind.bind_info.addr = w->base + n;
			bind.bind_info.length = n % 4 == 3 ? 0 : 64;
			err = ib_bind_mw(w->p->tgt.qp, w->mw, &bind);
			n += !err;
			if (err && err != -ENOMEM)
				return err;
		}
		if (ib_mr_poll_cq(w->p->tgt.cq, 1, &wc) == 1) {
			if (wc.status || wc.opcode != IB_WC_BIND_MW || wc.wr_id != next)
				return -EIO;
			next++;
			continue;
		}
		if (++tries > 100000)
			return -ETIMEDOUT;
		usleep_range(20, 200);
	}
	return 0;
}

static void storm_signalled(struct kunit *test)
{
	struct storm *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	ibt_win(&s->w[0], test, IBT_VMALLOC, 4 * PAGE_SIZE, REGION);
	s->w[1] = s->w[0];
	s->w[1].p = ibt_pair(test, s->w[0].pd);
	s->w[1].mw = ibt_mw(test, s->w[0].pd, IB_MW_TYPE_1);
	ibt_parallel(test, 2, signalled_storm, s);
}

/* --- memory, epochs --- */

static void on_phys(struct kunit *test)
{
	struct ib_phys_buf *list;
	struct ibt_win w;
	int n;

	ibt_win(&w, test, IBT_SCATTER, 5 * PAGE_SIZE, REGION);
	list = ibt_phys(test, w.b, 300, 4 * PAGE_SIZE, &n);
	w.base = 0x5000000000ULL + 300;
	w.mr = ibt_mr(test, ib_reg_phys_mr(w.pd, list, n, REGION, &w.base));
	w.base -= 300;
	ibt_expect_refused(test, MW_RANGE, ibt_bind(&w, 299, 10, RR, 0));
	ibt_expect_refused(test, MW_RANGE, ibt_bind(&w, 301, 4 * PAGE_SIZE, RR, 0));
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 300, 4 * PAGE_SIZE, RR | RW, 0), 0);
	ibt_expect_window(&w, w.mw->rkey, 300, 4 * PAGE_SIZE, RR | RW);
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 0, 0, 0, 0), 0);
}

static void on_user(struct kunit *test)
{
	struct ibt_proc *proc = ibt_proc(test, NULL);
	unsigned long at = ibt_user_map(proc, 8 * PAGE_SIZE, PROT_READ | PROT_WRITE);
	struct ibt_win w;
	u64 base;
	u32 key;

	ibt_win(&w, test, IBT_PAGES, 8 * PAGE_SIZE, REGION);	/* the same pattern */
	KUNIT_ASSERT_EQ(test, ibt_poke_pattern(proc, at, 8 * PAGE_SIZE, w.b->seed), 0);
	base = 0x6000000000ULL;
	w.base = base;
	w.mr = ibt_mr(test, ibt_reg_user(proc, w.pd, at, 8 * PAGE_SIZE, REGION, &base));
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 4099, 3 * PAGE_SIZE, RR | RW, 0), 0);
	key = w.mw->rkey;
	ibt_expect_window(&w, key, 4099, 3 * PAGE_SIZE, RR | RW);
	memset(w.p->req.buf, 0x77, 1000);
	KUNIT_EXPECT_EQ(test, ibt_rdma(w.p, IBT_WRITE, w.p->req.buf, key, w.base + 5000, 1000),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_peek_diff(proc, at, 8 * PAGE_SIZE, w.b->seed), 5000);
	KUNIT_ASSERT_EQ(test, ibt_bind(&w, 0, 0, 0, 0), 0);
	ibt_expect_no_window(&w, key, 4099);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, w.mr), 0);
}

static void epoch_1(struct kunit *test)
{
	struct ib_mw *type_1;
	struct ibt_win w;
	struct ib_wc wc;
	u32 key;

	ibt_win(&w, test, IBT_VMALLOC, 4 * PAGE_SIZE, REGION);
	type_1 = ibt_epoch1_alloc(w.pd);
	KUNIT_ASSERT_FALSE(test, IS_ERR(type_1));
	KUNIT_EXPECT_EQ(test, type_1->type, IB_MW_TYPE_1);
	KUNIT_EXPECT_EQ(test, ibt_epoch1_bind(w.p->tgt.qp, type_1, w.mr, w.base + 33, 44, 5), 0);
	ibt_next_wc(&w, &wc);
	KUNIT_EXPECT_EQ(test, wc.opcode, IB_WC_BIND_MW);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 5);
	key = type_1->rkey;
	ibt_expect_window(&w, key, 33, 44, RR);
	KUNIT_EXPECT_EQ(test, ibt_epoch1_bind(w.p->tgt.qp, type_1, w.mr, 0, 0, 6), 0);
	ibt_next_wc(&w, &wc);
	KUNIT_EXPECT_EQ(test, wc.wr_id, 6);
	ibt_expect_no_window(&w, key, 33);
	KUNIT_EXPECT_EQ(test, ib_dealloc_mw(type_1), 0);
	KUNIT_EXPECT_EQ(test, ib_dealloc_mw(NULL), -EINVAL);
}

static struct kunit_case window_more_cases[] = {
	KUNIT_CASE(invalidated_by_owner),
	KUNIT_CASE(invalidated_by_peer),
	KUNIT_CASE(invalidated_untold),
	KUNIT_CASE(dereg_fences_windows),
	KUNIT_CASE(rereg_fences_windows),
	KUNIT_CASE(dealloc_beside_dereg),
	KUNIT_CASE(large_rights),
	KUNIT_CASE(large_zero_based),
	KUNIT_CASE(without_right),
	KUNIT_CASE(thousands),
	KUNIT_CASE(storm_signalled),
	KUNIT_CASE(on_phys),
	KUNIT_CASE(on_user),
	KUNIT_CASE(epoch_1),
	{}
};

IBT_SUITE(window_more, window_more_cases);
