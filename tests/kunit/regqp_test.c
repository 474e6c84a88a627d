// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The registration queue pair: that it mends, and that it bears load.
 *
 * It is put into the error state from outside, as a port event could, and given work that the
 * device refuses. A refused request may cost its own result and nothing else: those before it and
 * those behind it are carried out, and the next call finds a queue pair that works.
 */
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <rdma/ib_cache.h>

#include "helpers.h"
#include "proc.h"
#include "mr/regqp.h"

#define PG	SZ_4K
#define ALL	(LW | RR | RW | RA)

static int reg_dereg(struct ib_pd *pd, struct ibt_buf *b)
{
	struct ib_mr *mr = ib_mr_reg_kernel(pd, b->addr, b->size, ALL, NULL);

	return IS_ERR(mr) ? PTR_ERR(mr) : ib_dereg_mr(mr);
}

/* Broken between two calls: the next one mends it, and what was registered never noticed. */
static void regqp_broken(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_view v = { .len = 2 * PG, .access = ALL }, w = v;
	struct ib_mr *mr;
	int i;

	v.buf = ibt_buf(test, IBT_VMALLOC, 2 * PG, 1);
	v.iova = (uintptr_t)v.buf->addr;
	w.buf = ibt_buf(test, IBT_VMALLOC, 2 * PG, 2);
	w.iova = (uintptr_t)w.buf->addr;
	mr = ibt_mr(test, ib_mr_reg_kernel(pd, v.buf->addr, v.len, ALL, NULL));
	for (i = 0; i < 10; i++) {
		struct ib_mr *next;

		KUNIT_ASSERT_EQ(test, ibmr_regqp_break(pd), 0);
		ibt_expect_read(p, mr, &v, 0, v.len);
		next = ibt_mr(test, ib_mr_reg_kernel(pd, w.buf->addr, w.len, ALL, NULL));
		ibt_expect_read(p, next, &w, 0, w.len);
		KUNIT_ASSERT_EQ(test, ibmr_regqp_break(pd), 0);
		KUNIT_EXPECT_EQ(test, ibt_dereg(test, next), 0);
	}
	ibt_expect_view(p, mr, &v);
}

static void regqp_break_without_one(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, ibmr_regqp_break(ibt_pd(test)), -ENOENT);
}

/* It is no target: a peer that knows its number reaches nothing through it. */
static void regqp_is_no_target(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_KMALLOC, 64, 1);
	struct ibmr_regqp *rq;
	enum ib_wc_status status;
	struct ib_mr *mr;

	/* Its like, so that it can be asked to talk to itself. */
	rq = ibmr_regqp_create(pd, 0, ibt_of(test)->gid_index);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rq));
	mr = ibt_mr(test, ib_mr_reg_kernel(pd, b->addr, b->size, ALL, NULL));
	KUNIT_EXPECT_EQ(test, ibmr_regqp_rdma(rq, IB_WR_RDMA_READ, (uintptr_t)b->addr, mr->lkey, 8,
					      (uintptr_t)b->addr + 8, mr->rkey, &status), 0);
	KUNIT_EXPECT_NE(test, status, IB_WC_SUCCESS);
	ibmr_regqp_destroy(rq);
	KUNIT_EXPECT_TRUE(test, ibt_intact(b));
}

/* Chains with requests in them that the device refuses. */

#define OPS	(2 * IBMR_REGQP_DEPTH + 3)
#define MRS	4

static void free_mr(struct kunit *test, void *arg)
{
	KUNIT_EXPECT_EQ(test, ib_dereg_mr((struct ib_mr *)arg), 0);
}

static void free_regqp(struct kunit *test, void *arg)
{
	ibmr_regqp_destroy(arg);
}

static const struct chain_row {
	const char *desc;
	int nr;
	int bad[4];
} chain_table[] = {
	{ "one good", 1, { -1 } },
	{ "one bad", 1, { 0, -1 } },
	{ "three good", 3, { -1 } },
	{ "the first of three", 3, { 0, -1 } },
	{ "the middle of three", 3, { 1, -1 } },
	{ "the last of three", 3, { 2, -1 } },
	{ "all of three", 3, { 0, 1, 2, -1 } },
	{ "a full chain", IBMR_REGQP_DEPTH, { -1 } },
	{ "one more than a chain", IBMR_REGQP_DEPTH + 1, { -1 } },
	{ "at a chain's end", IBMR_REGQP_DEPTH + 1, { IBMR_REGQP_DEPTH - 1, -1 } },
	{ "at a chain's start", IBMR_REGQP_DEPTH + 1, { IBMR_REGQP_DEPTH, -1 } },
	{ "in each of several chains", OPS, { 5, IBMR_REGQP_DEPTH + 5, OPS - 1, -1 } },
};

static void chain_desc(const struct chain_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(chain, chain_table, chain_desc);

static bool is_bad(const struct chain_row *row, int i)
{
	int j;

	for (j = 0; j < ARRAY_SIZE(row->bad) && row->bad[j] >= 0; j++)
		if (row->bad[j] == i)
			return true;
	return false;
}

static void regqp_chains(struct kunit *test)
{
	const struct chain_row *row = test->param_value;
	struct ib_pd *pd = ibt_pd(test);
	struct ibmr_regop *ops = kunit_kcalloc(test, OPS, sizeof(*ops), GFP_KERNEL);
	struct ib_mr *mr[MRS];
	struct ibmr_regqp *rq;
	int i, ret;

	KUNIT_ASSERT_NOT_NULL(test, ops);
	for (i = 0; i < MRS; i++) {
		mr[i] = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 1);
		KUNIT_ASSERT_FALSE(test, IS_ERR(mr[i]));
		ibt_defer(test, free_mr, mr[i]);
	}
	rq = ibmr_regqp_create(pd, 0, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rq));
	ibt_defer(test, free_regqp, rq);

	/*
	 * Good: a region's own key is invalidated, any number of times. Bad: another variant of
	 * it.
	 */
	for (i = 0; i < row->nr; i++) {
		ops[i].kind = IBMR_OP_INV;
		ops[i].mr = mr[i % MRS];
		ops[i].key = mr[i % MRS]->lkey ^ is_bad(row, i);
		ops[i].err = 99;
	}
	ret = ibmr_regqp_run(rq, ops, row->nr);
	KUNIT_EXPECT_EQ(test, ret, row->bad[0] < 0 ? 0 : -EIO);
	for (i = 0; i < row->nr; i++)
		KUNIT_EXPECT_EQ_MSG(test, ops[i].err, is_bad(row, i) ? -EIO : 0, "request %d", i);

	/* And it works as before. */
	ops[0].key = mr[0]->lkey;
	KUNIT_EXPECT_EQ(test, ibmr_regqp_run(rq, ops, 1), 0);
}

/*
 * Registrations in a chain with a bad one among them: those before it were carried out, whatever
 * the device says of them, and cannot be carried out twice. With the wrong index in its key one is
 * refused whoever looks at it.
 */
static void regqp_refused_among_registrations(struct kunit *test)
{
	const int bad = 2;
	struct ib_pd *pd = ibt_pd(test);
	struct ibmr_regop op[MRS] = {};
	struct ib_mr *mr[MRS];
	struct ibmr_regqp *rq;
	int i, round;

	rq = ibmr_regqp_create(pd, 0, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rq));
	ibt_defer(test, free_regqp, rq);
	for (i = 0; i < MRS; i++) {
		mr[i] = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 1);
		KUNIT_ASSERT_FALSE(test, IS_ERR(mr[i]));
		ibt_defer(test, free_mr, mr[i]);
	}
	for (round = 0; round < 5; round++) {
		for (i = 0; i < MRS; i++) {
			op[i].kind = IBMR_OP_REG;
			op[i].mr = mr[i];
			op[i].access = LW | RR;
			op[i].key = mr[i]->lkey ^ (i == bad ? 1 << 30 : round);
		}
		KUNIT_EXPECT_EQ(test, ibmr_regqp_run(rq, op, MRS), -EIO);
		for (i = 0; i < MRS; i++)
			KUNIT_EXPECT_EQ_MSG(test, op[i].err, i == bad ? -EIO : 0,
					    "round %d, request %d", round, i);
		/* The new key is the MR's, or this would be refused. */
		for (i = 0; i < MRS; i++) {
			op[i].kind = IBMR_OP_INV;
			op[i].key = mr[i]->lkey ^ (i == bad ? 0 : round);
		}
		KUNIT_EXPECT_EQ(test, ibmr_regqp_run(rq, op, MRS), 0);
	}
}

/* Refused and mended at once, over and over: the mending must not be overtaken by the error. */
static void regqp_refused_100_times(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ib_mr *mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 1);
	struct ibmr_regop op[2] = { { .kind = IBMR_OP_INV }, { .kind = IBMR_OP_INV } };
	struct ibmr_regqp *rq;
	int i;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mr));
	ibt_defer(test, free_mr, mr);
	rq = ibmr_regqp_create(pd, 0, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(rq));
	ibt_defer(test, free_regqp, rq);
	op[0].key = mr->lkey ^ 1;
	op[1].key = mr->lkey;
	for (i = 0; i < 100 && test->status != KUNIT_FAILURE; i++) {
		KUNIT_EXPECT_EQ_MSG(test, ibmr_regqp_run(rq, op, 2), -EIO, "round %d", i);
		KUNIT_EXPECT_EQ(test, op[0].err, -EIO);
		KUNIT_EXPECT_EQ(test, op[1].err, 0);
	}
}

/* Load. */

static void regqp_1000_held(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_VMALLOC, 3 * PG, 1);
	int i, ret = 0;

	KUNIT_ASSERT_EQ(test, ib_mr_pd_get(pd), 0);
	for (i = 0; i < 1000 && !ret; i++)
		ret = reg_dereg(pd, b);
	ib_mr_pd_put(pd);
	KUNIT_EXPECT_EQ_MSG(test, ret, 0, "round %d", i);
}

/* Without a hold each round makes its queue pair and destroys it. */
static void regqp_1000_not_held(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_VMALLOC, 3 * PG, 1);
	int i, ret = 0;

	for (i = 0; i < 1000 && !ret; i++)
		ret = reg_dereg(pd, b);
	KUNIT_EXPECT_EQ_MSG(test, ret, 0, "round %d", i);
}

struct load {
	struct ib_pd *pd[4];
	struct ibt_buf *buf[4];
	bool breaks;
};

static int load_thread(void *arg, int i)
{
	struct load *l = arg;
	int n, ret = 0;

	for (n = 0; n < 100 && !ret; n++) {
		ret = reg_dereg(l->pd[i], l->buf[i]);
		if (!ret && l->breaks && n % 5 == i)
			ret = ibmr_regqp_break(l->pd[i]);
	}
	return ret;
}

static void load(struct kunit *test, int threads, bool one_pd, bool breaks)
{
	struct load l = { .breaks = breaks };
	int i;

	for (i = 0; i < threads; i++) {
		l.pd[i] = i && one_pd ? l.pd[0] : ibt_pd(test);
		l.buf[i] = ibt_buf(test, IBT_VMALLOC, (1 + i) * PG, i);
		KUNIT_ASSERT_EQ(test, ib_mr_pd_get(l.pd[i]), 0);
	}
	ibt_parallel(test, threads, load_thread, &l);
	for (i = 0; i < threads; i++)
		ib_mr_pd_put(l.pd[i]);
}

static void regqp_two_threads(struct kunit *test)
{
	load(test, 2, true, false);
}

static void regqp_four_threads_and_pds(struct kunit *test)
{
	load(test, 4, false, false);
}

static void regqp_broken_under_load(struct kunit *test)
{
	load(test, 3, true, true);
}

/* The NIC's MAC address changes. */

static int set_mac(const char *nic, const u8 *mac)
{
	char command[80];

	snprintf(command, sizeof(command), "ip link set %s address %pM", nic, mac);
	return ibt_shell(command);
}

static struct {
	char nic[IFNAMSIZ];
	u8 mac[ETH_ALEN];
} before;

static void mac_back(struct kunit *test, void *arg)
{
	KUNIT_EXPECT_EQ(test, set_mac(before.nic, before.mac), 0);
}

/* Does the port get the default GID of that address? */
static bool default_gid_comes(struct kunit *test, const u8 *mac)
{
	union ib_gid want = { .global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL) }, gid;
	int i, tries;

	memcpy(want.raw + 8, mac, 3);
	want.raw[8] ^= 2;
	want.raw[11] = 0xff;
	want.raw[12] = 0xfe;
	memcpy(want.raw + 13, mac + 3, 3);
	for (tries = 0; tries < 100; tries++) {
		for (i = 0; i < 8; i++)
			if (!rdma_query_gid(ibt_dev(test), ibt_of(test)->port, i, &gid) &&
			    !memcmp(&gid, &want, sizeof(gid)))
				return true;
		msleep(50);
	}
	return false;
}

/*
 * A registration queue pair was connected by the address that goes. It must neither keep that one's
 * place in the GID table from the next, nor need it.
 */
static void regqp_keeps_no_address(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_KMALLOC, 64, 1);
	struct ibt_view v = { .buf = b, .iova = (uintptr_t)b->addr, .len = 64, .access = ALL };
	const struct ib_gid_attr *gid;
	struct net_device *ndev;
	struct ib_mr *mr;
	u8 mac[ETH_ALEN];
	int i;

	gid = rdma_get_gid_attr(ibt_dev(test), ibt_of(test)->port, ibt_of(test)->gid_index);
	KUNIT_ASSERT_FALSE(test, IS_ERR(gid));
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(gid);
	if (!IS_ERR(ndev)) {
		strscpy(before.nic, ndev->name, sizeof(before.nic));
		ether_addr_copy(before.mac, ndev->dev_addr);
	}
	rcu_read_unlock();
	rdma_put_gid_attr(gid);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ndev));
	KUNIT_ASSERT_TRUE(test, default_gid_comes(test, before.mac));

	mr = ibt_mr(test, ib_mr_reg_kernel(pd, b->addr, b->size, ALL, NULL));
	ibt_defer(test, mac_back, NULL);
	ether_addr_copy(mac, before.mac);
	for (i = 0; i < 3; i++) {
		mac[ETH_ALEN - 1] ^= 0x40 + i;
		KUNIT_ASSERT_EQ(test, set_mac(before.nic, mac), 0);
		KUNIT_EXPECT_EQ(test, reg_dereg(pd, b), 0);
		KUNIT_EXPECT_TRUE(test, default_gid_comes(test, mac));
		KUNIT_EXPECT_EQ(test, reg_dereg(pd, b), 0);
	}
	KUNIT_ASSERT_EQ(test, set_mac(before.nic, before.mac), 0);
	KUNIT_ASSERT_TRUE(test, default_gid_comes(test, before.mac));
	/* Only now: a pair of queue pairs does hold its address. */
	ibt_expect_view(ibt_pair(test, pd), mr, &v);
}

static struct kunit_case regqp_cases[] = {
	KUNIT_CASE(regqp_broken),
	KUNIT_CASE(regqp_break_without_one),
	KUNIT_CASE(regqp_is_no_target),
	KUNIT_CASE_PARAM(regqp_chains, chain_gen_params),
	KUNIT_CASE(regqp_refused_among_registrations),
	KUNIT_CASE(regqp_refused_100_times),
	KUNIT_CASE(regqp_1000_held),
	KUNIT_CASE(regqp_1000_not_held),
	KUNIT_CASE(regqp_two_threads),
	KUNIT_CASE(regqp_four_threads_and_pds),
	KUNIT_CASE(regqp_broken_under_load),
	KUNIT_CASE(regqp_keeps_no_address),
	{}
};

IBT_SUITE(regqp, regqp_cases);
