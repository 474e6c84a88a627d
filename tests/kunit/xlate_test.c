// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Keys: where they lead and what they allow.
 *
 * Translation is compared with the buffer's own pages, the verdict with what a real operation says:
 * every set of rights a region can have, every operation, every place that matters, and every way a
 * key can be wrong. The device and ib_mr_check() must not differ in a single one.
 */
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <rdma/ib_fmr_pool.h>
#include "helpers.h"

#define ALL	(LW | RR | RW | RA)
#define PG	PAGE_SIZE

static struct ib_mr *reg_buf(struct kunit *test, struct ib_pd *pd, struct ibt_buf *b, size_t off,
			     size_t len, u64 iova, int access)
{
	struct ib_phys_buf *list;
	int n;

	list = ibt_phys(test, b, off, len, &n);
	return ibt_mr(test, ib_reg_phys_mr(pd, list, n, access, &iova));
}

/* Translation. */

static void xlate_runs(struct kunit *test)
{
	static const struct { size_t off, len; int runs; } table[] = {
		{ 0, 1, 1 }, { 0, PG, 1 }, { 0, PG + 1, 2 }, { PG - 1, 2, 2 }, { PG, PG, 1 },
		{ PG - 1, PG + 2, 3 }, { 0, 8 * PG, 8 }, { 8 * PG - 1, 1, 1 }, { 5, 7 * PG, 8 },
		{ 7 * PG + 9, PG - 9, 1 }, { 100, 0, 0 },
	};
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 8 * PG, 1);
	struct ib_mr *mr = reg_buf(test, pd, b, 0, 8 * PG, 0x70000000, ALL);
	struct ib_mr_run run[8];
	size_t at;
	int i, j, n;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		n = ib_mr_translate(pd, mr->lkey, 0x70000000 + table[i].off, table[i].len, run, 8);
		KUNIT_EXPECT_EQ_MSG(test, n, table[i].runs, "row %d", i);
		for (j = 0, at = table[i].off; j < n; at += run[j++].len)
			KUNIT_EXPECT_EQ_MSG(test, run[j].addr, (u64)(uintptr_t)ibt_ptr(b, at),
					    "row %d, run %d", i, j);
		KUNIT_EXPECT_EQ_MSG(test, at, table[i].off + table[i].len, "row %d", i);
		if (n > 0)
			ibt_expect_refused(test, RUNS_FULL,
					   ib_mr_translate(pd, mr->rkey, 0x70000000 + table[i].off,
							   table[i].len, run, n - 1));
	}
}

/* Every byte of a region that begins and ends inside pages, against the buffer. */
static void xlate_every_byte(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 40 * PG, 2);
	size_t off = 1001, len = 38 * PG + 77, i;
	struct ib_mr *mr = reg_buf(test, pd, b, off, len, 0xabc000 + off, ALL);
	struct ib_mr_run run;
	int wrong = 0;

	for (i = 0; i < len; i += i % 97 ? 1 : 13)
		wrong += ib_mr_translate(pd, mr->lkey, 0xabc000 + off + i, 1, &run, 1) != 1 ||
			 run.addr != (uintptr_t)ibt_ptr(b, off + i);
	KUNIT_EXPECT_EQ(test, wrong, 0);
}

static void xlate_contiguous(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, SZ_1M, 3);
	struct ib_mr *mr = reg_buf(test, pd, b, 0, SZ_1M, 0, ALL), *dma;
	struct ib_mr_run run;

	KUNIT_EXPECT_EQ(test, ib_mr_translate(pd, mr->lkey, 12345, SZ_1M - 12345, &run, 1), 1);
	KUNIT_EXPECT_EQ(test, run.addr, (u64)(uintptr_t)b->addr + 12345);
	KUNIT_EXPECT_EQ(test, run.len, (u64)SZ_1M - 12345);
	/* A DMA region is its addresses. */
	dma = ibt_mr(test, ib_get_dma_mr(pd, LW));
	KUNIT_EXPECT_EQ(test, ib_mr_translate(pd, dma->lkey, 0x123456, 99, &run, 1), 1);
	KUNIT_EXPECT_EQ(test, run.addr, (u64)0x123456);
	KUNIT_EXPECT_EQ(test, run.len, (u64)99);
}

static void xlate_refused(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test), *other = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, 4 * PG, 4);
	struct ib_mr *mr = reg_buf(test, pd, b, 0, 4 * PG, 0x10000, RR);
	struct ib_mr_run run[4];
	u32 key = mr->lkey, dead;

	ibt_expect_refused(test, UNKNOWN_KEY, ib_mr_translate(pd, 0, 0x10000, 1, run, 4));
	ibt_expect_refused(test, UNKNOWN_KEY, ib_mr_translate(pd, ~0u, 0x10000, 1, run, 4));
	ibt_expect_refused(test, STALE_KEY, ib_mr_translate(pd, key ^ 1, 0x10000, 1, run, 4));
	ibt_expect_refused(test, OTHER_PD, ib_mr_translate(other, key, 0x10000, 1, run, 4));
	ibt_expect_refused(test, BEFORE_START, ib_mr_translate(pd, key, 0xffff, 1, run, 4));
	ibt_expect_refused(test, PAST_END, ib_mr_translate(pd, key, 0x10000, 4 * PG + 1, run, 4));
	ibt_expect_refused(test, PAST_END, ib_mr_translate(pd, key, 0x10001, U64_MAX, run, 4));
	ibt_expect_refused(test, PAST_END, ib_mr_translate(pd, key, U64_MAX, 2, run, 4));
	KUNIT_EXPECT_EQ(test, ib_mr_translate(NULL, key, 0x10000, 1, run, 4), -EINVAL);
	KUNIT_EXPECT_EQ(test, ib_mr_check(NULL, key, 0x10000, 1, 0, false), IB_MR_WHY_NULL_ARG);

	dead = key;
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	ibt_expect_refused(test, UNKNOWN_KEY, ib_mr_translate(pd, dead, 0x10000, 1, run, 4));
}

/* Copies. */

static void xlate_copy(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test), *other = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 8 * PG, 5);
	struct ib_mr *mr = reg_buf(test, pd, b, 3, 7 * PG, 0x500003, LW);
	struct ib_mr *ro = reg_buf(test, pd, b, 0, 8 * PG, 0, RR);
	u8 *copy = kunit_kzalloc(test, 8 * PG, GFP_KERNEL);
	size_t off, len = 2 * PG + 5;

	KUNIT_ASSERT_NOT_NULL(test, copy);
	for (off = 0; off + len <= 7 * PG; off += 1111) {
		memset(copy, 0, len);
		KUNIT_EXPECT_EQ(test, ib_mr_copy_from(pd, mr->lkey, 0x500003 + off, copy, len), 0);
		KUNIT_EXPECT_EQ(test, ibt_diff_copy(b, 3 + off, len, copy), 3 + off + len);
		b->seed = 6;
		ibt_fill(b, 3 + off, len, 5);
		memset(copy, 0x5a, len);
		KUNIT_EXPECT_EQ(test, ib_mr_copy_to(pd, mr->lkey, 0x500003 + off, copy, len), 0);
		KUNIT_EXPECT_EQ(test, *ibt_ptr(b, 3 + off), 0x5a);
		KUNIT_EXPECT_EQ(test, *ibt_ptr(b, 3 + off + len - 1), 0x5a);
		b->seed = 5;
		KUNIT_EXPECT_EQ(test, *ibt_ptr(b, 3 + off + len), ibt_pat(5, 3 + off + len));
		KUNIT_EXPECT_EQ(test, *ibt_ptr(b, 2 + off), ibt_pat(5, 2 + off));
		ibt_fill(b, 3 + off, len, 5);
	}
	KUNIT_EXPECT_EQ(test, ib_mr_copy_to(pd, mr->lkey, 0x500003, copy, 0), 0);
	ibt_expect_refused(test, NO_RIGHT, ib_mr_copy_to(pd, ro->lkey, 0, copy, 1));
	KUNIT_EXPECT_EQ(test, ib_mr_copy_from(pd, ro->lkey, 0, copy, 8 * PG), 0);
	KUNIT_EXPECT_EQ(test, ibt_diff_copy(b, 0, 8 * PG, copy), (size_t)(8 * PG));
	ibt_expect_refused(test, OTHER_PD, ib_mr_copy_to(other, mr->lkey, 0x500003, copy, 1));
	ibt_expect_refused(test, PAST_END,
			   ib_mr_copy_from(pd, mr->lkey, 0x500003, copy, 7 * PG + 1));
	ibt_expect_refused(test, BEFORE_START, ib_mr_copy_from(pd, mr->lkey, 0x500002, copy, 2));
	KUNIT_EXPECT_TRUE(test, ibt_intact(b));
}

static void xlate_copy_dma(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *lin = ibt_buf(test, IBT_KMALLOC, 100, 6);
	struct ibt_buf *vm = ibt_buf(test, IBT_VMALLOC, PG, 7);
	struct ib_mr *dma = ibt_mr(test, ib_get_dma_mr(pd, LW));
	u8 copy[100];

	KUNIT_EXPECT_EQ(test, ib_mr_copy_from(pd, dma->lkey, (uintptr_t)lin->addr, copy, 100), 0);
	KUNIT_EXPECT_EQ(test, ibt_diff_copy(lin, 0, 100, copy), (size_t)100);
	ibt_expect_refused(test, NOT_LINEAR,
			   ib_mr_copy_from(pd, dma->lkey, (uintptr_t)vm->addr, copy, 1));
	ibt_expect_refused(test, NOT_LINEAR, ib_mr_copy_to(pd, dma->lkey, 4096, copy, 1));
}

/* From a hard interrupt, and with interrupts off: what sleeps is found by the debug kernel. */
struct in_irq {
	struct irq_work work;
	struct ib_pd *pd;
	struct ib_mr *mr;
	int bad;
	bool done;
};

static void use_all(struct in_irq *c)
{
	char text[200], buf[64] = "abc";
	struct ib_mr_run run[4];

	c->bad += ib_mr_translate(c->pd, c->mr->lkey, 0x3000, 3 * PG, run, 4) != 3;
	c->bad += ib_mr_translate(c->pd, c->mr->lkey ^ 2, 0x3000, 1, run, 4) != -EINVAL;
	c->bad += ib_mr_check(c->pd, c->mr->rkey, 0x3000, 4 * PG, RW, true) != IB_MR_WHY_OK;
	c->bad += ib_mr_copy_to(c->pd, c->mr->lkey, 0x3000, buf, sizeof(buf)) != 0;
	c->bad += ib_mr_copy_from(c->pd, c->mr->lkey, 0x3000, text, sizeof(buf)) != 0;
	c->bad += memcmp(buf, text, sizeof(buf)) != 0;
	c->bad += ib_mr_explain(c->pd->device, c->pd, c->mr->rkey, 0, 1, RR, text, sizeof(text)) !=
		  IB_MR_WHY_BEFORE_START;
	c->bad += ib_mr_explain(c->pd->device, c->pd, 0xdead00, 0, 1, RR, text, sizeof(text)) !=
		  IB_MR_WHY_UNKNOWN_KEY;
}

static void hard_irq(struct irq_work *work)
{
	struct in_irq *c = container_of(work, struct in_irq, work);

	use_all(c);
	smp_store_release(&c->done, true);	/* after @bad */
}

static void xlate_contexts(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PG, 8);
	struct in_irq c = { .pd = pd };
	unsigned long flags;
	int i;

	c.mr = reg_buf(test, pd, b, 0, 4 * PG, 0x3000, ALL);
	use_all(&c);
	local_irq_save(flags);
	use_all(&c);
	local_irq_restore(flags);
	local_bh_disable();
	use_all(&c);
	local_bh_enable();
	init_irq_work(&c.work, hard_irq);
	irq_work_queue(&c.work);
	for (i = 0; i < 1000 && !smp_load_acquire(&c.done); i++)	/* then @bad is whole */
		usleep_range(100, 1000);
	irq_work_sync(&c.work);
	KUNIT_EXPECT_TRUE(test, c.done);
	KUNIT_EXPECT_EQ(test, c.bad, 0);
}

/*
 * Readers beside deregistration: what they are given is the region's, or they are refused. KASAN
 * watches.
 */
struct race {
	struct kunit *test;
	struct ib_pd *pd;
	u32 key;
	u8 *page;
	bool stop;
	atomic_t hits;
};

static int race_copy(struct race *r)
{
	struct ib_mr_run run[2];
	u8 buf[64];
	int i, n;

	while (!READ_ONCE(r->stop)) {
		for (i = 0; i < 64; i++) {
			u32 key = READ_ONCE(r->key);

			if (!ib_mr_copy_from(r->pd, key, 0x1000, buf, sizeof(buf))) {
				atomic_inc(&r->hits);
				if (buf[0] != 0x77 || buf[63] != 0x77)
					return 1;
			}
			n = ib_mr_translate(r->pd, key, 0x1000, 2 * PG, run, 2);
			if (n > 0 && run[0].len + (n > 1 ? run[1].len : 0) != 2 * PG)
				return 2;
			ib_mr_check(r->pd, key, 0x1000, 1, RR, true);
		}
		cond_resched();
	}
	return 0;
}

static int race_one(void *arg, int i)
{
	struct race *r = arg;
	int n, ret = 0;

	if (i)
		return race_copy(r);
	for (n = 0; n < 150 && !ret; n++) {
		void *mem = alloc_pages_exact(2 * PG, GFP_KERNEL);
		u64 iova = 0x1000;
		struct ib_mr *mr;

		if (!mem)
			break;
		memset(mem, 0x77, 2 * PG);
		mr = ib_mr_reg_kernel(r->pd, mem, 2 * PG, ALL, &iova);
		if (IS_ERR(mr)) {
			ret = PTR_ERR(mr);
		} else {
			WRITE_ONCE(r->key, mr->lkey);
			usleep_range(10, 300);
			ret = ib_dereg_mr(mr);
		}
		memset(mem, 0, 2 * PG);
		free_pages_exact(mem, 2 * PG);
	}
	WRITE_ONCE(r->stop, true);
	return ret;
}

static void xlate_beside_dereg(struct kunit *test)
{
	struct race *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	r->pd = ibt_pd(test);
	KUNIT_ASSERT_EQ(test, ib_mr_pd_get(r->pd), 0);
	ibt_parallel(test, 3, race_one, r);
	ib_mr_pd_put(r->pd);
	KUNIT_EXPECT_GT(test, atomic_read(&r->hits), 0);
}

/* The verdict, against the device. */

struct verdict {
	struct kunit *test;
	struct ibt_pair *pair;
	struct ib_pd *pd;
	unsigned int asked, allowed;
};

static void agree(struct verdict *v, enum ibt_op op, bool remote, u32 key, u64 iova, u32 len)
{
	static const int remote_right[] = {
		[IBT_READ] = RR, [IBT_WRITE] = RW, [IBT_FETCH_ADD] = RA, [IBT_CMP_SWAP] = RA,
	};
	int want = remote ? remote_right[op] : op == IBT_READ || op == IBT_RECV ? LW : 0;
	enum ib_mr_reason why = ib_mr_check(v->pd, key, iova, len, want, remote);
	enum ib_wc_status status = remote ?
		ibt_rdma(v->pair, op, v->pair->req.buf, key, iova, len) :
		ibt_local(v->pair, op, key, iova, len);

	KUNIT_EXPECT_EQ_MSG(v->test, why == IB_MR_WHY_OK, status == IB_WC_SUCCESS,
			    "%s %s key %#x iova %#llx length %u: we say %s, the device %s",
			    remote ? "remote" : "own", ibt_op_name(op), key, iova, len,
			    ib_mr_reason_name(why), ib_wc_status_msg(status));
	v->asked++;
	v->allowed += why == IB_MR_WHY_OK;
}

#define IOVA	0x40000000ull
#define LEN	(3 * PG)

/*
 * A READ into the region that is refused after its first packets leaves soft RoCE of 6.1 out of
 * step even after a reset of the queue pair (what it expects next is not reset), and has stored
 * those packets. So what reaches past the end is asked for by its last bytes.
 */
static void own_read(struct verdict *v, struct ib_mr *mr, u64 iova, u32 len)
{
	if (len > 8 && ib_mr_check(v->pd, mr->lkey, iova, len, LW, false)) {
		iova += len - 8;
		len = 8;
	}
	agree(v, IBT_READ, false, mr->lkey, iova, len);
}

static void xlate_verdict_table(struct kunit *test)
{
	static const struct { s64 off; u32 len; bool aligned; } place[] = {
		{ 0, 8, true }, { LEN - 8, 8, true }, { PG - 8, 8, true }, { LEN, 8, true },
		{ -8, 8, true },
		{ 0, LEN }, { 0, LEN + 1 }, { -1, 1 }, { -1, LEN + 2 }, { LEN - 1, 2 },
		{ PG - 1, PG + 2 }, { -(s64)IOVA, 1 },
	};
	struct verdict v = { .test = test, .pd = ibt_pd(test) };
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, LEN, 9);
	int access, i, op;
	struct ib_mr *mr;
	u32 rkey;

	v.pair = ibt_pair(test, v.pd);
	for (access = 0; access <= ALL; access++) {
		if (access & (RW | RA) && !(access & LW))
			continue;
		mr = reg_buf(test, v.pd, b, 0, LEN, IOVA, access);
		rkey = mr->rkey ?: mr->lkey;
		for (i = 0; i < ARRAY_SIZE(place); i++) {
			for (op = IBT_READ; op <= IBT_WRITE; op++)
				agree(&v, op, true, rkey, IOVA + place[i].off, place[i].len);
			if (place[i].aligned)
				agree(&v, IBT_FETCH_ADD, true, rkey, IOVA + place[i].off, 8);
			agree(&v, IBT_WRITE, false, mr->lkey, IOVA + place[i].off, place[i].len);
			own_read(&v, mr, IOVA + place[i].off, place[i].len);
		}
		KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	}
	kunit_info(test, "%u accesses, %u of them allowed", v.asked, v.allowed);
	KUNIT_EXPECT_GE(test, v.asked, 400u);
	KUNIT_EXPECT_GE(test, v.allowed, 100u);
}

/* The same for keys that are wrong, and for regions that are gone or in another PD. */
static void xlate_verdict_keys(struct kunit *test)
{
	struct verdict v = { .test = test, .pd = ibt_pd(test) };
	struct ib_pd *other = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, LEN, 10);
	struct ib_mr *mr, *far, *gone;
	u32 key[8];
	int i, bit;

	v.pair = ibt_pair(test, v.pd);
	mr = reg_buf(test, v.pd, b, 0, LEN, IOVA, ALL);
	far = reg_buf(test, other, b, 0, LEN, IOVA, ALL);
	gone = reg_buf(test, v.pd, b, 0, LEN, IOVA, ALL);
	key[0] = gone->lkey;
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, gone), 0);
	key[1] = far->rkey;
	key[2] = mr->rkey;
	key[3] = 0x123456 << 8;
	for (i = 0; i < 4; i++) {
		agree(&v, IBT_READ, true, key[i], IOVA, 8);
		agree(&v, IBT_WRITE, true, key[i], IOVA, 8);
		agree(&v, IBT_READ, false, key[i], IOVA, 8);
		agree(&v, IBT_WRITE, false, key[i], IOVA, 8);
		/* Nothing is touched, and the device does not look at the key. */
		agree(&v, IBT_READ, true, key[i], IOVA, 0);
		agree(&v, IBT_WRITE, true, key[i], IOVA + LEN + 5, 0);
	}
	for (bit = 0; bit < 8; bit++) {
		agree(&v, IBT_READ, true, mr->rkey ^ BIT(bit), IOVA, 8);
		agree(&v, IBT_READ, false, mr->lkey ^ BIT(bit), IOVA, 8);
	}
	KUNIT_EXPECT_EQ(test, ib_mr_check(v.pd, key[0], IOVA, 1, RR, true), IB_MR_WHY_UNKNOWN_KEY);
	KUNIT_EXPECT_EQ(test, ib_mr_check(v.pd, key[1], IOVA, 1, RR, true), IB_MR_WHY_OTHER_PD);
	KUNIT_EXPECT_EQ(test, ib_mr_check(v.pd, mr->rkey ^ 1, IOVA, 1, RR, true),
			IB_MR_WHY_STALE_KEY);
}

/* A key that a work request made dead: the ULP tells, and we agree with the device again. */
static void xlate_invalidated(struct kunit *test)
{
	struct verdict v = { .test = test, .pd = ibt_pd(test) };
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, LEN, 11);
	struct ib_send_wr inv = { .opcode = IB_WR_LOCAL_INV, .send_flags = IB_SEND_SIGNALED };
	struct ib_mr *mr;
	struct ib_wc wc;
	u64 iova = IOVA;
	u32 old;
	int i;

	v.pair = ibt_pair(test, v.pd);
	mr = reg_buf(test, v.pd, b, 0, LEN, iova, ALL);
	agree(&v, IBT_READ, true, mr->rkey, IOVA, 8);
	ibt_expect_refused(test, UNKNOWN_KEY, ib_mr_invalidated(v.pd, 5));
	ibt_expect_refused(test, STALE_KEY, ib_mr_invalidated(v.pd, mr->rkey ^ 1));

	inv.ex.invalidate_rkey = mr->rkey;
	KUNIT_ASSERT_EQ(test, ib_post_send(v.pair->tgt.qp, &inv, NULL), 0);
	for (i = 0; i < 1000 && !ib_poll_cq(v.pair->tgt.cq, 1, &wc); i++)
		usleep_range(100, 1000);
	KUNIT_ASSERT_LT(test, i, 1000);
	KUNIT_ASSERT_EQ(test, wc.status, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ib_mr_invalidated(v.pd, mr->rkey), 0);
	KUNIT_EXPECT_EQ(test, ib_mr_check(v.pd, mr->rkey, IOVA, 8, RR, true),
			IB_MR_WHY_INVALIDATED);
	agree(&v, IBT_READ, true, mr->rkey, IOVA, 8);
	agree(&v, IBT_WRITE, false, mr->lkey, IOVA, 8);

	/* Re-registration brings it back, under another key. */
	old = mr->rkey;
	KUNIT_EXPECT_EQ(test, ib_rereg_phys_mr(mr, IB_MR_REREG_ACCESS, NULL, NULL, 0, ALL, NULL),
			0);
	agree(&v, IBT_READ, true, mr->rkey, IOVA, 8);
	agree(&v, IBT_READ, true, old, IOVA, 8);
}

/* FMRs: mapped, mapped anew, unmapped; each time with the device. */
static void xlate_armed(struct kunit *test)
{
	struct verdict v = { .test = test, .pd = ibt_pd(test) };
	struct ib_fmr_attr attr = { .max_pages = 3, .max_maps = 8, .page_shift = PAGE_SHIFT };
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, LEN, 12);
	struct ib_mr_run run[3];
	u64 page[3];
	struct ib_fmr *fmr;
	LIST_HEAD(list);
	u32 old;
	int i;

	v.pair = ibt_pair(test, v.pd);
	fmr = ib_alloc_fmr(v.pd, LW | RR, &attr);
	KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
	for (i = 0; i < 3; i++)
		page[i] = (uintptr_t)ibt_ptr(b, i * PG);
	KUNIT_EXPECT_EQ(test, ib_map_phys_fmr(fmr, page, 3, IOVA), 0);
	agree(&v, IBT_READ, true, fmr->rkey, IOVA, LEN);
	agree(&v, IBT_READ, true, fmr->rkey, IOVA - 1, 2);
	agree(&v, IBT_READ, true, fmr->rkey, IOVA + LEN - 1, 2);
	agree(&v, IBT_WRITE, true, fmr->rkey, IOVA, 1);
	agree(&v, IBT_READ, true, fmr->rkey ^ 1, IOVA, 1);
	agree(&v, IBT_READ, false, fmr->lkey, IOVA, 8);
	KUNIT_EXPECT_EQ(test, ib_mr_check(v.pd, fmr->rkey, IOVA, LEN + 1, RR, true),
			IB_MR_WHY_PAST_END);
	ibt_expect_refused(test, WRONG_KIND,
			   ib_mr_translate(v.pd, fmr->rkey, IOVA, 1, run, 3));

	old = fmr->rkey;
	KUNIT_EXPECT_EQ(test, ib_map_phys_fmr(fmr, page, 2, 2 * IOVA), 0);
	agree(&v, IBT_READ, true, old, IOVA, 1);
	agree(&v, IBT_READ, true, fmr->rkey, 2 * IOVA, 2 * PG);
	agree(&v, IBT_READ, true, fmr->rkey, 2 * IOVA + 2 * PG, 1);
	old = fmr->rkey;
	list_add(&fmr->list, &list);
	KUNIT_EXPECT_EQ(test, ib_unmap_fmr(&list), 0);
	agree(&v, IBT_READ, true, old, 2 * IOVA, 1);
	KUNIT_EXPECT_NE(test, ib_mr_check(v.pd, old, 2 * IOVA, 1, RR, true), IB_MR_WHY_OK);
	KUNIT_EXPECT_EQ(test, ib_dealloc_fmr(fmr), 0);
	KUNIT_EXPECT_EQ(test, v.allowed, 3u);
}

static struct kunit_case xlate_cases[] = {
	KUNIT_CASE(xlate_runs),
	KUNIT_CASE(xlate_every_byte),
	KUNIT_CASE(xlate_contiguous),
	KUNIT_CASE(xlate_refused),
	KUNIT_CASE(xlate_copy),
	KUNIT_CASE(xlate_copy_dma),
	KUNIT_CASE(xlate_contexts),
	KUNIT_CASE(xlate_beside_dereg),
	KUNIT_CASE(xlate_verdict_table),
	KUNIT_CASE(xlate_verdict_keys),
	KUNIT_CASE(xlate_invalidated),
	KUNIT_CASE(xlate_armed),
	{}
};

IBT_SUITE(xlate, xlate_cases);
