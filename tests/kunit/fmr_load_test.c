// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * FMRs under load and at the end of things: both CPUs in one pool and in several, peers that read
 * meanwhile, flushes and destructions amid all that, and a device that is removed under mapped
 * FMRs, live pools and traffic. Field faults 6, 7, 8 and 11 have their cases here.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched/task.h>
#include "fmr_helpers.h"
#include "mr/regqp.h"

#define PG	PAGE_SIZE
#define POOLS	3

struct load {
	struct kunit *test;
	struct ib_fmr_pool *pool[POOLS];
	struct ib_fmr *fmr[2];
	struct ibt_pair *peer;
	struct ibt_buf *buf;
	u64 *list;
	unsigned int rounds;
	u32 key;		/* a mapping that stays, of all pages at iova 0 */
	bool stop;
	atomic_t again, mapped, reads, wrong;
};

static void load_round(struct load *l, struct ib_fmr_pool *pool, unsigned int n)
{
	unsigned int first = n % 16, len = 1 + n % 8;
	struct ib_pool_fmr *fmr = ib_fmr_pool_map_phys(pool, l->list + first, len, n % 3 * PG);

	if (IS_ERR(fmr)) {
		if (fmr == ERR_PTR(-EAGAIN))
			atomic_inc(&l->again);
		else
			atomic_inc(&l->wrong);
		usleep_range(2000, 4000);
		return;
	}
	atomic_inc(&l->mapped);
	if (fmr->fmr->lkey != fmr->fmr->rkey || fmr->pool != pool || fmr->ref_count < 1 ||
	    fmr->io_virtual_address != n % 3 * PG)
		atomic_inc(&l->wrong);
	ib_fmr_pool_unmap(fmr);
}

/* 0 and 1 map and unmap, 2 is the peer, 3 flushes. */
static int load_thread(void *arg, int i)
{
	struct load *l = arg;
	unsigned int n;

	if (i < 2) {
		for (n = 0; n < l->rounds; n++) {
			load_round(l, l->pool[n % POOLS], n + i);
			if (l->fmr[i] && n % 16 == 0 &&
			    !ib_map_phys_fmr(l->fmr[i], l->list, 4, 0) && n % 64 == 0 &&
			    ibt_unmap(l->fmr[i]))
				return -EIO;
			/* On one CPU the peer has its turn only so: no map need be waited for. */
			if (n % 64 == 0)
				usleep_range(50, 100);
		}
		WRITE_ONCE(l->stop, true);
	}
	while (i == 2 && !READ_ONCE(l->stop)) {
		if (ibt_rdma(l->peer, IBT_READ, l->peer->req.buf, l->key, 0, 8 * PG) !=
		    IB_WC_SUCCESS || ibt_diff_copy(l->buf, 0, 8 * PG, l->peer->req.buf) != 8 * PG)
			return -EIO;
		atomic_inc(&l->reads);
	}
	while (i == 3 && !READ_ONCE(l->stop)) {
		for (n = 0; n < POOLS; n++)
			if (ib_flush_fmr_pool(l->pool[n]))
				return -EIO;
		msleep(50);
	}
	return 0;
}

static void load_run(struct kunit *test, bool one_pool, bool flush, unsigned int rounds)
{
	struct ib_pd *pd = ibt_pd(test);
	struct load l = { .test = test, .rounds = rounds * (ibt_slow ? 50 : 1) };
	struct ib_pool_fmr *stays;
	struct ib_fmr_pool *extra;
	int i;

	l.buf = ibt_buf(test, IBT_SCATTER, 24 * PG, 1);
	l.list = ibt_page_list(test, l.buf);
	l.peer = ibt_pair(test, pd);
	extra = ibt_pool(test, pd, (struct ib_fmr_pool_param){ .pool_size = 1 });
	stays = ib_fmr_pool_map_phys(extra, l.list, 8, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(stays));
	l.key = stays->fmr->rkey;
	for (i = 0; i < POOLS; i++)
		l.pool[i] = i && one_pool ? l.pool[0] :
			ibt_pool(test, pd, (struct ib_fmr_pool_param){
				.cache = i == 1, .pool_size = 16, .key_maps = i == 2 ? 16 : 0 });
	l.fmr[0] = ibt_fmr(test, pd, FMR_ALL, 4, 32767);
	l.fmr[1] = ibt_fmr(test, pd, FMR_ALL, 4, 32767);
	ibt_parallel(test, flush ? 4 : 3, load_thread, &l);
	KUNIT_EXPECT_EQ(test, atomic_read(&l.wrong), 0);
	KUNIT_EXPECT_GT(test, atomic_read(&l.mapped), 0);
	KUNIT_EXPECT_GT(test, atomic_read(&l.reads), 0);
	ib_fmr_pool_unmap(stays);
	for (i = 0; i < POOLS; i++) {
		KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(l.pool[i]), 0);
		KUNIT_EXPECT_TRUE(test, ibt_mag_settles(ibmr_pool_mag(l.pool[i]), 0, 10000));
	}
	KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(ibt_dev(test)));
	kunit_info(test, "%d maps, %d times -EAGAIN, %d reads\n", atomic_read(&l.mapped),
		   atomic_read(&l.again), atomic_read(&l.reads));
}

static void load_one_pool(struct kunit *test)
{
	load_run(test, true, false, 3000);
}

static void load_many_pools(struct kunit *test)
{
	load_run(test, false, false, 3000);
}

static void load_with_flushes(struct kunit *test)
{
	load_run(test, false, true, 2000);
}

/* Field fault 6: an exhausted pool is -EAGAIN, nothing leaks, and the next try can succeed. */
static void field_6_exhaustion(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, PG, 1);
	u64 *list = ibt_page_list(test, b);
	struct ib_pool_fmr *fmr[4];
	int i, n, cache, again = 0;

	for (cache = 0; cache < 2; cache++) {
		struct ib_fmr_pool *pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){
			.pool_size = 4, .cache = cache });
		struct ibt_mag before = ibt_mag(ibmr_pool_mag(pool)), m;

		for (n = 0; n < 20; n++) {
			for (i = 0; i < 4; i++) {
				fmr[i] = ibt_pool_map(pool, list, 1, (cache ? i : 0) * PG);
				KUNIT_ASSERT_FALSE(test, IS_ERR(fmr[i]));
			}
			for (i = 0; i < 50; i++)
				again += ib_fmr_pool_map_phys(pool, list, 1, SZ_1M) ==
					 ERR_PTR(-EAGAIN);
			for (i = 0; i < 4; i++)
				ib_fmr_pool_unmap(fmr[i]);
		}
		KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(pool), 0);
		KUNIT_EXPECT_TRUE(test, ibt_mag_settles(ibmr_pool_mag(pool), 0, 5000));
		m = ibt_mag(ibmr_pool_mag(pool));
		KUNIT_EXPECT_GE(test, m.created, before.created);
		KUNIT_EXPECT_LE(test, m.created, m.target + 4);
	}
	KUNIT_EXPECT_EQ(test, again, 2 * 20 * 50);
}

/* Field fault 7: destruction counts what is outstanding; nothing stale goes back anywhere. */
static int field_7_thread(void *arg, int i)
{
	struct load *l = arg;
	struct ib_fmr_pool_param param = {
		.max_pages_per_fmr = 4, .page_shift = PAGE_SHIFT, .access = FMR_ALL,
		.pool_size = 4, .dirty_watermark = 1, .cache = i,
	};
	int n, j;

	for (n = 0; n < 25; n++) {
		struct ib_fmr_pool *pool = ib_create_fmr_pool(l->fmr[0]->pd, &param);
		struct ib_pool_fmr *fmr[4];

		if (IS_ERR(pool))
			return PTR_ERR(pool);
		for (j = 0; j < 4; j++) {
			fmr[j] = ib_fmr_pool_map_phys(pool, l->list + j, 1, 0);
			if (IS_ERR(fmr[j]))
				return PTR_ERR(fmr[j]);
		}
		for (j = 0; j < n % 4; j++)
			ib_fmr_pool_unmap(fmr[j]);
		if (n % 3 == 0)
			ib_flush_fmr_pool(pool);
		ib_destroy_fmr_pool(pool);
		for (; j < 4; j++)
			ib_fmr_pool_unmap(fmr[j]);
	}
	return 0;
}

static void field_7_destroy_in_use(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct load l = { .buf = ibt_buf(test, IBT_SCATTER, 4 * PG, 1) };

	l.list = ibt_page_list(test, l.buf);
	l.fmr[0] = ibt_fmr(test, pd, FMR_ALL, 1, 1);
	ibt_parallel(test, 2, field_7_thread, &l);
	ibt_fmr_free(test, l.fmr[0]);
	KUNIT_EXPECT_TRUE(test, ibt_pd_idle(pd));
}

/* Field fault 8: after a flush no key that was released before it works, however idle or cached. */
static void field_8_idle_keys(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *p = ibt_pair(test, pd);
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 32 * PG, 1);
	struct ib_fmr_pool *pool = ibt_pool(test, pd, (struct ib_fmr_pool_param){
		.pool_size = 16, .cache = 1 });
	u64 *list = ibt_page_list(test, b);
	u32 key[32];
	int i, round, alive = 0;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < 32; i++) {
			struct ib_pool_fmr *fmr = ibt_pool_map(pool, list + i, 1, 0);

			KUNIT_ASSERT_FALSE(test, IS_ERR(fmr));
			key[i] = fmr->fmr->rkey;
			ib_fmr_pool_unmap(fmr);
		}
		KUNIT_EXPECT_TRUE(test, ibt_can_read(p, key[31], 0));
		KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(pool), 0);
		for (i = 0; i < 32; i++)
			alive += ibt_can_read(p, key[i], 0);
	}
	KUNIT_EXPECT_EQ(test, alive, 0);
}

/* --- a device goes --- */

struct gone {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_fmr *fmr[2];
	struct ib_fmr_pool *pool[3];
	struct ib_pool_fmr *mapped[3];
	u64 *list;
	struct ibmr_regqp *rq;	/* traffic, of a queue pair that is its own peer */
	void *local;
	bool stop, quiet;
	atomic_t enodev, wrong, reads;
	int deleted;
};

static int gone_read(struct gone *g, struct ibmr_regqp *rq)
{
	enum ib_wc_status status;
	int err = ibmr_regqp_rdma(rq, IB_WR_RDMA_READ, (uintptr_t)g->local, g->pd->local_dma_lkey,
				  2 * PG, 0, g->mapped[0]->fmr->rkey, &status);

	return err ?: status == IB_WC_SUCCESS ? 0 : -EIO;
}

/* Over the first GID that carries packets. */
static struct ibmr_regqp *gone_peer(struct gone *g)
{
	unsigned int gid = 0;
	struct ibmr_regqp *rq;

	for (;;) {
		rq = ibmr_regqp_create(g->pd, LW | RR | RW, gid);
		if (IS_ERR(rq) || !gone_read(g, rq))
			return rq;
		gid = ibmr_regqp_gid(rq) + 1;
		ibmr_regqp_destroy(rq);
	}
}

/* Reads through a mapping for as long as it works; then its queue pair goes. */
static int gone_traffic(struct gone *g)
{
	while (!READ_ONCE(g->stop) && atomic_read(&g->enodev) <= 100 && !gone_read(g, g->rq))
		atomic_inc(&g->reads);
	ibmr_regqp_destroy(g->rq);
	WRITE_ONCE(g->quiet, true);
	return 0;
}

/* 0 deletes the link; the others go on as if nothing were. */
static int gone_thread(void *arg, int i)
{
	struct gone *g = arg;
	unsigned int n;

	if (!i) {
		msleep(200);
		g->deleted = ibt_second_delete();
		return 0;
	}
	if (i == 2)
		return gone_traffic(g);
	for (n = 0; !READ_ONCE(g->stop); n++) {
		struct ib_pool_fmr *fmr = ib_fmr_pool_map_phys(g->pool[n % 3], g->list, 2, PG);
		int err = PTR_ERR_OR_ZERO(fmr);

		if (!err)
			ib_fmr_pool_unmap(fmr);
		else if (err == -ENODEV)
			atomic_inc(&g->enodev);
		else if (err != -EAGAIN)
			atomic_inc(&g->wrong);
		err = ib_map_phys_fmr(g->fmr[1], g->list, 2, 0);
		if (err && err != -ENODEV && err != -EAGAIN)
			atomic_inc(&g->wrong);
		if (n % 8 == 0 && (ibt_unmap(g->fmr[1]) || ib_flush_fmr_pool(g->pool[n % 3])))
			atomic_inc(&g->wrong);
		if (atomic_read(&g->enodev) > 100 && READ_ONCE(g->quiet)) {
			/* The owner's own goes before the device; ib_mr's handles outlive it. */
			while (ib_dealloc_pd(g->pd) == -EBUSY)
				msleep(20);
			ib_device_put(g->dev);
			WRITE_ONCE(g->stop, true);
		}
		usleep_range(50, 200);
	}
	return 0;
}

static void device_removed(struct kunit *test)
{
	struct ib_fmr_attr attr = { .max_pages = 4, .max_maps = 32767, .page_shift = PAGE_SHIFT };
	struct ibt_buf *b = ibt_buf(test, IBT_SCATTER, 4 * PG, 1);
	struct gone *g = kunit_kzalloc(test, sizeof(*g), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, g);
	g->list = ibt_page_list(test, b);
	g->dev = ibt_second(test);
	g->pd = ib_alloc_pd(g->dev, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(g->pd));
	for (i = 0; i < 2; i++) {
		g->fmr[i] = ib_alloc_fmr(g->pd, FMR_ALL, &attr);
		KUNIT_ASSERT_FALSE(test, IS_ERR(g->fmr[i]));
		KUNIT_EXPECT_EQ(test, ib_map_phys_fmr(g->fmr[i], g->list, 4, 0), 0);
	}
	for (i = 0; i < 3; i++) {
		struct ib_fmr_pool_param param = {
			.max_pages_per_fmr = 4, .page_shift = PAGE_SHIFT, .access = FMR_ALL,
			.pool_size = 8, .dirty_watermark = 1, .cache = i == 1,
			.key_maps = i == 2 ? 4 : 0,
		};

		g->pool[i] = ib_create_fmr_pool(g->pd, &param);
		KUNIT_ASSERT_FALSE(test, IS_ERR(g->pool[i]));
		g->mapped[i] = ib_fmr_pool_map_phys(g->pool[i], g->list, 3, 0);
		KUNIT_ASSERT_FALSE(test, IS_ERR(g->mapped[i]));
	}
	g->local = kunit_kzalloc(test, 2 * PG, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, g->local);
	g->rq = gone_peer(g);
	KUNIT_ASSERT_FALSE(test, IS_ERR(g->rq));
	/* Until this is put the device stays, after its clients were told that it goes. */
	KUNIT_ASSERT_TRUE(test, ib_device_try_get(g->dev));
	ibt_parallel(test, 3, gone_thread, g);
	KUNIT_EXPECT_GT(test, atomic_read(&g->reads), 0);
	KUNIT_EXPECT_EQ(test, g->deleted, 0);
	KUNIT_EXPECT_GT(test, atomic_read(&g->enodev), 100);
	KUNIT_EXPECT_EQ(test, atomic_read(&g->wrong), 0);

	/* The handles outlived their device: refused, or released. */
	KUNIT_EXPECT_EQ(test, ib_map_phys_fmr(g->fmr[0], g->list, 1, 0), -ENODEV);
	KUNIT_EXPECT_EQ(test, ib_dealloc_fmr(g->fmr[0]), 0);	/* mapped it was, once */
	KUNIT_EXPECT_EQ(test, ibt_unmap(g->fmr[1]), 0);
	KUNIT_EXPECT_EQ(test, ib_dealloc_fmr(g->fmr[1]), 0);
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_PTR_EQ(test, ib_fmr_pool_map_phys(g->pool[i], g->list, 1, 0),
				    (struct ib_pool_fmr *)ERR_PTR(-ENODEV));
		KUNIT_EXPECT_EQ(test, ib_flush_fmr_pool(g->pool[i]), 0);
		if (i == 2)	/* in use still */
			ib_destroy_fmr_pool(g->pool[i]);
		KUNIT_EXPECT_EQ(test, ib_fmr_pool_unmap(g->mapped[i]), 0);
		if (i < 2)
			ib_destroy_fmr_pool(g->pool[i]);
	}
	msleep(100);
	KUNIT_EXPECT_TRUE(test, ibt_intact(b));
}

static struct kunit_case fmr_load_cases[] = {
	KUNIT_CASE(load_one_pool),
	KUNIT_CASE(load_many_pools),
	KUNIT_CASE(load_with_flushes),
	KUNIT_CASE(field_6_exhaustion),
	KUNIT_CASE(field_7_destroy_in_use),
	KUNIT_CASE(field_8_idle_keys),
	KUNIT_CASE(device_removed),
	{}
};

IBT_SUITE(fmr_load, fmr_load_cases);
