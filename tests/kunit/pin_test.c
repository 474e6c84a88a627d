// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * User memory: what is pinned is what the process sees, with the rights that its mappings give, and
 * exactly as long as it is registered.
 *
 * A real process lends its memory (proc.h). That RDMA and the process meet on the same page is
 * shown by operations of a peer on one side and the process's own loads and stores on the other:
 * for each kind of memory, after a fork, after an unmapping and after the process's death. Faults 9
 * and 10 of the field-bugs list have their cases here.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include "proc.h"

#define ALL	(LW | RR | RW | RA)
#define PROT_RW	(PROT_READ | PROT_WRITE)

/*
 * The region is the process's memory at @start, to the byte, and no more. It holds the pattern of
 * @seed before and after.
 */
static void expect_shared(struct ibt_proc *p, struct ibt_pair *pair, struct ib_mr *mr,
			  unsigned long start, size_t len, u64 seed)
{
	struct kunit *test = p->test;
	size_t off, n, i, bad = len;
	enum ib_wc_status status;
	u8 *local = pair->req.buf;

	for (off = 0; off < len; off += n) {
		n = min_t(size_t, len - off, IBT_LOCAL);
		memset(local, 0xa5, n);
		status = ibt_rdma(pair, IBT_READ, local, mr->rkey, mr->iova + off, n);
		KUNIT_ASSERT_EQ_MSG(test, status, IB_WC_SUCCESS, "READ at byte %zu", off);
		for (i = 0; i < n && bad == len; i++)
			if (local[i] != ibt_pat(seed, off + i))
				bad = off + i;
	}
	KUNIT_EXPECT_EQ_MSG(test, bad, len, "the peer read a wrong byte");

	/* The peer writes another pattern, and the process puts the first one back. */
	for (off = 0; off < len; off += n) {
		n = min_t(size_t, len - off, IBT_LOCAL);
		for (i = 0; i < n; i++)
			local[i] = ibt_pat(seed + 1, off + i);
		status = ibt_rdma(pair, IBT_WRITE, local, mr->rkey, mr->iova + off, n);
		KUNIT_ASSERT_EQ_MSG(test, status, IB_WC_SUCCESS, "WRITE at byte %zu", off);
	}
	KUNIT_EXPECT_EQ_MSG(test, ibt_peek_diff(p, start, len, seed + 1), len,
			    "the process does not see what the peer wrote");
	ibt_poke_pattern(p, start, len, seed);

	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_WRITE, local, mr->rkey, mr->iova - 1, 1),
			IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_WRITE, local, mr->rkey, mr->iova + len, 1),
			IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_READ, local, mr->rkey, mr->iova + len - 1, 2),
			IB_WC_REM_ACCESS_ERR);
}

/* Kinds of memory. */

enum kind { ANON, SHARED, FILE_SHARED, FILE_PRIVATE, THP, HUGETLB };

static const struct kind_row {
	const char *desc;
	enum kind kind;
	unsigned int max_runs;	/* for 2 MiB; 0: any */
} kind_table[] = {
	{ "anonymous", ANON },
	{ "anonymous, shared", SHARED },
	{ "a file of tmpfs, shared", FILE_SHARED },
	{ "a file of tmpfs, private", FILE_PRIVATE },
#ifdef CONFIG_TRANSPARENT_HUGEPAGE
	{ "a transparent huge page", THP, 1 },
#endif
#ifdef CONFIG_HUGETLBFS
	{ "a hugetlb page", HUGETLB, 1 },
#endif
};

static void kind_desc(const struct kind_row *row, char *desc)
{
	strscpy(desc, row->desc, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(kind, kind_table, kind_desc);

static void thp_back(struct kunit *test, void *arg)
{
	ibt_write_file("/sys/kernel/mm/transparent_hugepage/enabled", "madvise");
}

static void hugetlb_back(struct kunit *test, void *arg)
{
	ibt_shell("umount /tmp/ibt-huge; echo 0 > /proc/sys/vm/nr_hugepages");
}

static unsigned long map_kind(struct ibt_proc *p, enum kind kind, size_t len)
{
	struct kunit *test = p->test;
	const char *path = "/tmp/ibt-pin";
	struct file *f = NULL;
	unsigned long at;

	switch (kind) {
	case ANON:
		return ibt_user_map(p, len, PROT_RW);
	case SHARED:
		return ibt_map_at(p, 0, len, PROT_RW, MAP_SHARED, NULL);
	case THP:
		ibt_defer(test, thp_back, NULL);
		KUNIT_ASSERT_EQ(test, ibt_write_file("/sys/kernel/mm/transparent_hugepage/enabled",
						     "always"), 0);
		at = ibt_user_map(p, 2 * SZ_2M, PROT_RW);
		return ALIGN(at, SZ_2M);
	case HUGETLB:
		path = "/tmp/ibt-huge/f";
		ibt_defer(test, hugetlb_back, NULL);
		ibt_shell("mkdir -p /tmp/ibt-huge; mount -t hugetlbfs none /tmp/ibt-huge");
		KUNIT_ASSERT_EQ(test, ibt_shell("echo 4 > /proc/sys/vm/nr_hugepages"), 0);
		f = ibt_open(path, O_RDWR | O_CREAT, 0600);
		break;
	default:
		ibt_shell("dd if=/dev/zero of=/tmp/ibt-pin bs=4k count=512 2> /dev/null");
		f = ibt_open(path, O_RDWR, 0);
	}
	KUNIT_ASSERT_FALSE(test, IS_ERR(f));
	at = ibt_map_at(p, 0, len, PROT_RW, kind == FILE_PRIVATE ? MAP_PRIVATE : MAP_SHARED, f);
	filp_close(f, NULL);
	return at;
}

static void pin_kinds(struct kunit *test)
{
	const struct kind_row *row = test->param_value;
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *pair = ibt_pair(test, pd);
	struct ibt_proc *p = ibt_proc(test, NULL);
	unsigned long at = map_kind(p, row->kind, SZ_2M);
	struct ib_mr_run *run;
	struct ib_mr *mr;
	int n;

	if (ibt_poke_pattern(p, at, SZ_2M, row->kind))
		return;
	/* A part that begins and ends inside pages, then all of it. */
	mr = ibt_mr(test, ibt_reg_user(p, pd, at + 123, 5 * PAGE_SIZE + 7, ALL, NULL));
	ibt_poke_pattern(p, at + 123, 5 * PAGE_SIZE + 7, 77);
	expect_shared(p, pair, mr, at + 123, 5 * PAGE_SIZE + 7, 77);
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)6);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);

	mr = ibt_mr(test, ibt_reg_user(p, pd, at, SZ_2M, ALL, NULL));
	KUNIT_EXPECT_EQ(test, mr->iova, (u64)at);
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)(SZ_2M / PAGE_SIZE));
	run = kunit_kcalloc(test, 512, sizeof(*run), GFP_KERNEL);
	n = ib_mr_translate(pd, mr->lkey, at, SZ_2M, run, 512);
	KUNIT_EXPECT_GT(test, n, 0);
	if (row->max_runs)
		KUNIT_EXPECT_LE(test, n, (int)row->max_runs);
	ibt_poke_pattern(p, at, SZ_256K, 78);
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_READ, pair->req.buf, mr->rkey, at, SZ_64K),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, *(pair->req.buf + 1234), ibt_pat(78, 1234));
	pair->req.buf[0] = 0x42;
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_WRITE, pair->req.buf, mr->rkey, at + SZ_2M - 1, 1),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_peek(p, at + SZ_2M - 1, pair->req.buf + 1, 1), 0);
	KUNIT_EXPECT_EQ(test, pair->req.buf[1], 0x42);
	KUNIT_EXPECT_FALSE(test, ib_mr_is_stale(mr));
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)0);
}

/* Starts and lengths, from one byte on. */
static void pin_lengths(struct kunit *test)
{
	static const struct { size_t off, len; } table[] = {
		{ 0, 1 }, { PAGE_SIZE - 1, 1 }, { PAGE_SIZE - 1, 2 }, { 1, PAGE_SIZE - 1 },
		{ 0, PAGE_SIZE }, { 1, PAGE_SIZE }, { 0, PAGE_SIZE + 1 }, { 2047, 3 },
		{ 4095, 3 * PAGE_SIZE + 2 }, { 511, SZ_64K + 3 },
	};
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *pair = ibt_pair(test, pd);
	struct ibt_proc *p = ibt_proc(test, NULL);
	unsigned long at = ibt_user_map(p, SZ_128K, PROT_RW), start;
	struct ib_mr *mr;
	u64 iova, pages;
	int i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		start = at + table[i].off;
		/* At an iova of its own, which has the same offset in a page. */
		iova = 0x123456789000ull + table[i].off % PAGE_SIZE;
		ibt_poke_pattern(p, start, table[i].len, i);
		mr = ibt_mr(test,
			    ibt_reg_user(p, pd, start, table[i].len, ALL, i & 1 ? &iova : NULL));
		KUNIT_EXPECT_EQ(test, mr->iova, i & 1 ? iova : (u64)start);
		pages = DIV_ROUND_UP(start % PAGE_SIZE + table[i].len, PAGE_SIZE);
		KUNIT_EXPECT_EQ_MSG(test, ibt_proc_pinned(p), pages, "row %d", i);
		expect_shared(p, pair, mr, start, table[i].len, i);
		KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	}
}

/* What the mapping does not give cannot be registered. */
static void pin_rights(struct kunit *test)
{
	static const struct { int prot, access; bool ok; } table[] = {
		{ PROT_READ, RR, true }, { PROT_READ, 0, true },
		{ PROT_READ, LW, false }, { PROT_READ, LW | RW, false },
		{ PROT_READ, LW | RR | RA, false }, { PROT_READ, MWB, false },
		{ PROT_NONE, RR, false }, { PROT_NONE, 0, false }, { PROT_NONE, LW | RW, false },
		{ PROT_WRITE, LW | RW, true }, { PROT_RW, ALL | MWB, true },
		{ PROT_WRITE, RR, false }, { PROT_WRITE, LW | RR, false },
	};
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_proc *p = ibt_proc(test, NULL);
	unsigned long at;
	struct ib_mr *mr;
	int i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		at = ibt_user_map(p, 4 * PAGE_SIZE, table[i].prot);
		if (table[i].ok) {
			mr = ibt_mr(test, ibt_reg_user(p, pd, at, 4 * PAGE_SIZE, table[i].access,
						       NULL));
			KUNIT_EXPECT_EQ_MSG(test, ibt_dereg(test, mr), 0, "row %d", i);
			continue;
		}
		ibt_expect_refused_mr(test, NOT_MAPPED,
				      ibt_reg_user(p, pd, at, 4 * PAGE_SIZE, table[i].access,
						   NULL));
	}

	/* One page of four is read-only; one is not there. */
	at = ibt_user_map(p, 4 * PAGE_SIZE, PROT_RW);
	ibt_map_at(p, at + 2 * PAGE_SIZE, PAGE_SIZE, PROT_READ, MAP_PRIVATE | MAP_FIXED, NULL);
	ibt_expect_refused_mr(test, NOT_MAPPED,
			      ibt_reg_user(p, pd, at, 4 * PAGE_SIZE, LW | RW, NULL));
	mr = ibt_mr(test, ibt_reg_user(p, pd, at, 4 * PAGE_SIZE, RR, NULL));
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	KUNIT_EXPECT_EQ(test, ibt_user_unmap(p, at + 2 * PAGE_SIZE, PAGE_SIZE), 0);
	ibt_expect_refused_mr(test, NOT_MAPPED, ibt_reg_user(p, pd, at, 4 * PAGE_SIZE, RR, NULL));
	mr = ibt_mr(test, ibt_reg_user(p, pd, at, 2 * PAGE_SIZE, ALL, NULL));
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	/* Addresses of the kernel are nobody's. */
	ibt_expect_refused_mr(test, NOT_MAPPED,
			      ibt_reg_user(p, pd, PAGE_OFFSET, PAGE_SIZE, RR, NULL));
}

/*
 * Memory that was pinned for reading cannot be made writable by re-registration; what is pinned
 * goes with the region to another PD, and is given back when the region gets other memory.
 */
static void pin_rereg(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test), *other = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, SZ_8K, 1);
	u64 iova = SZ_1M;
	int n;
	struct ib_phys_buf *phys = ibt_phys(test, b, 0, b->size, &n);
	struct ibt_proc *p = ibt_proc(test, NULL);
	unsigned long at = ibt_user_map(p, SZ_8K, PROT_READ);
	struct ib_mr *mr = ibt_mr(test, ibt_reg_user(p, pd, at, SZ_8K, RR, NULL));
	struct ibt_pair *pair = ibt_pair(test, other);

	ibt_expect_refused(test, NOT_MAPPED,
			   ib_rereg_phys_mr(mr, IB_MR_REREG_ACCESS, NULL, NULL, 0, LW | RW, NULL));
	KUNIT_EXPECT_EQ(test, ib_rereg_phys_mr(mr, IB_MR_REREG_PD, other, NULL, 0, 0, NULL), 0);
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)2);
	KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(ibt_dev(test)));
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_READ, pair->req.buf, mr->rkey, at, SZ_8K),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_WRITE, pair->req.buf, mr->rkey, at, 1),
			IB_WC_REM_ACCESS_ERR);

	KUNIT_EXPECT_EQ(test,
			ib_rereg_phys_mr(mr, IB_MR_REREG_TRANS, NULL, phys, n, 0, &iova), 0);
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)0);
	KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(ibt_dev(test)));
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_READ, pair->req.buf, mr->rkey, iova, SZ_8K),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_diff_copy(b, 0, SZ_8K, pair->req.buf), (size_t)SZ_8K);
}

/*
 * Memory that is there, and that the kernel does not pin: never "not there". A read-only shared
 * mapping of a file is refused where the kernel pins for writing; a device's memory is everywhere.
 */
static void pin_not_pinned(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_proc *p = ibt_proc(test, NULL);
	struct ibt_refusal *r;
	struct ib_mr *mr;
	unsigned long at;
	struct file *f;

	ibt_shell("dd if=/dev/zero of=/tmp/ibt-pin bs=4k count=4 2> /dev/null");
	f = ibt_open("/tmp/ibt-pin", O_RDONLY, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(f));
	at = ibt_map_at(p, 0, SZ_64K, PROT_READ, MAP_SHARED, f);
	filp_close(f, NULL);
	ibt_expect_refused_mr(test, NOT_MAPPED, ibt_reg_user(p, pd, at, SZ_16K, LW | RW, NULL));
	r = ibt_refusal(test);
	mr = ibt_reg_user(p, pd, at, SZ_16K, RR, NULL);
	if (IS_ERR(mr))
		ibt_refusal_end_mr(test, r, IB_MR_WHY_SHARED_READONLY, mr, "read-only file");
	else
		KUNIT_EXPECT_EQ(test, ib_dereg_mr(mr), 0);
	/* Past its end there is nothing, whatever else there is to say. */
	ibt_expect_refused_mr(test, NOT_MAPPED, ibt_reg_user(p, pd, at, SZ_64K, RR, NULL));

	/* The memory of a device. */
	f = ibt_open("/dev/mem", O_RDWR, 0);
	if (!IS_ERR(f)) {
		at = ibt_map_at(p, 0, SZ_4K, PROT_RW, MAP_SHARED, f);
		filp_close(f, NULL);
		ibt_expect_refused_mr(test, NOT_PINNABLE,
				      ibt_reg_user(p, pd, at, SZ_4K, LW | RR, NULL));
	}
}

/* What is said of memory that went: the notifier cannot tell mremap() from munmap(). */
static void pin_words(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *pair = ibt_pair(test, pd);
	struct ibt_proc *p = ibt_proc(test, NULL);
	unsigned long at = ibt_user_map(p, SZ_16K, PROT_RW);
	struct ib_mr *mr;
	char text[256];

	ibt_poke_pattern(p, at, SZ_16K, 5);
	mr = ibt_mr(test, ibt_reg_user(p, pd, at, SZ_16K, ALL, NULL));
	KUNIT_EXPECT_EQ(test, ibt_user_unmap(p, at, SZ_4K), 0);
	KUNIT_EXPECT_TRUE(test, ib_mr_is_stale(mr));
	KUNIT_EXPECT_EQ(test, ib_mr_explain(ibt_dev(test), pd, mr->rkey, at, 8, RR, text,
					    sizeof(text)), IB_MR_WHY_STALE_REGION);
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(text, "unmapped or moved the memory"), "%s", text);
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(text, "at these addresses"), "%s", text);
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_READ, pair->req.buf, mr->rkey, at + SZ_4K, 8),
			IB_WC_SUCCESS);
}

static void pin_arguments(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test), *upd = ibt_user_pd(test, pd);
	struct ibt_proc *p = ibt_proc(test, NULL);
	unsigned long at = ibt_user_map(p, SZ_16K, PROT_RW);
	u64 off = at + 1, top = 0 - (u64)PAGE_SIZE, max = ibt_dev(test)->attrs.max_mr_size;

	ibt_expect_refused_mr(test, NO_MM, ib_mr_reg_user(pd, at, SZ_4K, RR, NULL));
	ibt_expect_refused_mr(test, EMPTY, ibt_reg_user(p, pd, at, 0, RR, NULL));
	ibt_expect_refused_mr(test, WRAP, ibt_reg_user(p, pd, at, SIZE_MAX, RR, NULL));
	ibt_expect_refused_mr(test, WRAP, ibt_reg_user(p, pd, ULONG_MAX, 2, RR, NULL));
	ibt_expect_refused_mr(test, IOVA_ALIGN, ibt_reg_user(p, pd, at, SZ_4K, RR, &off));
	ibt_expect_refused_mr(test, IOVA_HIGH, ibt_reg_user(p, pd, at, SZ_4K, RR, &top));
	ibt_expect_refused_mr(test, ACCESS_NO_LOCAL, ibt_reg_user(p, pd, at, SZ_4K, RW, NULL));
	ibt_expect_refused_mr(test, NO_ON_DEMAND,
			      ibt_reg_user(p, pd, at, SZ_4K, IB_ACCESS_ON_DEMAND, NULL));
	ibt_expect_refused_mr(test, USER_PD, ibt_reg_user(p, upd, at, SZ_4K, RR, NULL));
	KUNIT_EXPECT_EQ(test, PTR_ERR(ibt_reg_user(p, NULL, at, SZ_4K, RR, NULL)), (long)-EINVAL);
	/* The device's limit, made small. */
	ibt_dev(test)->attrs.max_mr_size = SZ_8K;
	ibt_expect_refused_mr(test, TOO_LONG, ibt_reg_user(p, pd, at, SZ_8K + 1, RR, NULL));
	ibt_dev(test)->attrs.max_mr_size = max;
	KUNIT_EXPECT_FALSE(test, ib_mr_is_stale(NULL));
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)0);
}

/* A thread that may pin @pages only. */
static const struct cred *limited(struct kunit *test, unsigned long pages)
{
	struct cred *cred = prepare_creds();

	KUNIT_ASSERT_NOT_NULL(test, cred);
	cap_lower(cred->cap_effective, CAP_IPC_LOCK);
	current->signal->rlim[RLIMIT_MEMLOCK].rlim_cur = pages << PAGE_SHIFT;
	return cred;
}

static struct ib_mr *reg_limited(struct ibt_proc *p, const struct cred *cred, struct ib_pd *pd,
				 unsigned long at, size_t len)
{
	const struct cred *old = override_creds(cred);
	struct ib_mr *mr = ibt_reg_user(p, pd, at, len, ALL, NULL);

	revert_creds(old);
	return mr;
}

static void put_limited(struct kunit *test, void *cred)
{
	put_cred(cred);
}

/*
 * Fault 9: k pages allowed means that k succeed and the next fails, whatever failed before; zero at
 * the end.
 */
static void pin_fault9_memlock(struct kunit *test)
{
	enum { K = 5 };
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_proc *p = ibt_proc(test, NULL);
	unsigned long at = ibt_user_map(p, 16 * PAGE_SIZE, PROT_RW), bad;
	const struct cred *cred = limited(test, K);
	struct ib_mr *mr[K];
	struct file *f;
	int i, round;

	ibt_defer(test, put_limited, (void *)cred);
	/*
	 * Passes the look at the mappings, and fails half-way in the pinning: past the end of a
	 * file.
	 */
	ibt_shell("dd if=/dev/zero of=/tmp/ibt-pin bs=4k count=2 2> /dev/null");
	f = ibt_open("/tmp/ibt-pin", O_RDWR, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(f));
	bad = ibt_map_at(p, 0, 4 * PAGE_SIZE, PROT_RW, MAP_SHARED, f);
	filp_close(f, NULL);

	for (round = 0; round < 10; round++) {
		for (i = 0; i < K; i++) {
			/* Failures in between must not cost anything. */
			ibt_expect_refused_mr(test, MEMLOCK,
					      reg_limited(p, cred, pd, at,
							  (K - i + 1) * PAGE_SIZE));
			if (K - i >= 4)
				ibt_expect_refused_mr(test, NOT_MAPPED,
						      reg_limited(p, cred, pd, bad, 4 * PAGE_SIZE));
			mr[i] = ibt_mr(test,
				       reg_limited(p, cred, pd, at + i * PAGE_SIZE, PAGE_SIZE));
			KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)i + 1);
		}
		ibt_expect_refused_mr(test, MEMLOCK, reg_limited(p, cred, pd, at, 1));
		for (i = 0; i < K; i++)
			KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr[i]), 0);
		KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)0);
		KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(ibt_dev(test)));
	}
	/* Exactly the limit in one region, inside pages. */
	ibt_expect_refused_mr(test, MEMLOCK, reg_limited(p, cred, pd, at + 1, K * PAGE_SIZE));
	mr[0] = ibt_mr(test, reg_limited(p, cred, pd, at, K * PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr[0]), 0);
}

/*
 * Fault 10: the same addresses, other memory or other rights: a registration never answers for an
 * earlier one.
 */
static void pin_fault10_no_old_mapping(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test), *other = ibt_pd(test);
	struct ibt_pair *pair = ibt_pair(test, pd), *elsewhere = ibt_pair(test, other);
	struct ibt_proc *p = ibt_proc(test, NULL);
	unsigned long at = ibt_user_map(p, SZ_16K, PROT_RW);
	struct ib_mr *all, *again, *read;

	ibt_poke_pattern(p, at, SZ_16K, 1);
	all = ibt_mr(test, ibt_reg_user(p, pd, at, SZ_16K, ALL, NULL));
	/* Same range, fewer rights, and another PD: each its own. */
	read = ibt_mr(test, ibt_reg_user(p, pd, at, SZ_16K, RR, NULL));
	again = ibt_mr(test, ibt_reg_user(p, other, at, SZ_16K, ALL, NULL));
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_WRITE, pair->req.buf, read->rkey, at, 1),
			IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_READ, pair->req.buf, again->rkey, at, 1),
			IB_WC_REM_ACCESS_ERR);
	expect_shared(p, elsewhere, again, at, SZ_16K, 1);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, again), 0);

	/* The same addresses, other memory, while the old is still registered. */
	KUNIT_EXPECT_EQ(test, ibt_user_unmap(p, at, SZ_16K), 0);
	ibt_map_at(p, at, SZ_16K, PROT_RW, MAP_PRIVATE | MAP_FIXED, NULL);
	ibt_poke_pattern(p, at, SZ_16K, 2);
	again = ibt_mr(test, ibt_reg_user(p, pd, at, SZ_16K, ALL, NULL));
	expect_shared(p, pair, again, at, SZ_16K, 2);
	KUNIT_EXPECT_TRUE(test, ib_mr_is_stale(all));
	KUNIT_EXPECT_TRUE(test, ib_mr_is_stale(read));
	KUNIT_EXPECT_FALSE(test, ib_mr_is_stale(again));
	/* Through the old one a peer gets at the old memory only. */
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_READ, pair->req.buf, all->rkey, at, SZ_16K),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, pair->req.buf[99], ibt_pat(1, 99));
	memset(pair->req.buf, 0, SZ_16K);
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_WRITE, pair->req.buf, all->rkey, at, SZ_16K),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_peek_diff(p, at, SZ_16K, 2), (size_t)SZ_16K);
}

/* Part of it is unmapped: stale, and said to be; its neighbours are not. */
static void pin_stale(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *pair = ibt_pair(test, pd);
	struct ibt_proc *p = ibt_proc(test, NULL);
	unsigned long at = ibt_user_map(p, SZ_64K, PROT_RW);
	struct ib_mr *mr, *beside;
	struct ib_mr_attr attr;
	char text[256];

	mr = ibt_mr(test, ibt_reg_user(p, pd, at, SZ_32K, ALL, NULL));
	beside = ibt_mr(test, ibt_reg_user(p, pd, at + SZ_32K, SZ_32K, ALL, NULL));
	KUNIT_EXPECT_EQ(test, ib_mr_explain(ibt_dev(test), pd, mr->rkey, at, 8, RR, text,
					    sizeof(text)), IB_MR_WHY_OK);
	KUNIT_EXPECT_EQ(test, ibt_user_unmap(p, at + SZ_16K, SZ_4K), 0);
	KUNIT_EXPECT_TRUE(test, ib_mr_is_stale(mr));
	KUNIT_EXPECT_FALSE(test, ib_mr_is_stale(beside));
	KUNIT_EXPECT_EQ(test, ib_mr_explain(ibt_dev(test), pd, mr->rkey, at, 8, RR, text,
					    sizeof(text)), IB_MR_WHY_STALE_REGION);
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(text, "stale: process "), "%s", text);
	/* It works on: the device does not know. Our verdict is the device's. */
	KUNIT_EXPECT_EQ(test, ib_query_mr(mr, &attr), 0);
	KUNIT_EXPECT_TRUE(test, attr.stale);
	KUNIT_EXPECT_EQ(test, ib_mr_check(pd, mr->rkey, at, SZ_32K, RW, true), IB_MR_WHY_OK);
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_WRITE, pair->req.buf, mr->rkey, at, SZ_32K),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)16);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	KUNIT_EXPECT_FALSE(test, ib_mr_is_stale(mr));
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)8);
}

/*
 * The process dies with memory registered: the page stays the region's until that goes, then is
 * free.
 */
static void pin_exit(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *pair = ibt_pair(test, pd);
	struct ibt_proc *p = ibt_proc(test, NULL);
	unsigned long at = ibt_user_map(p, SZ_16K, PROT_RW);
	struct ib_mr_run run[4];
	struct page *page;
	struct ib_mr *mr;

	ibt_poke_pattern(p, at, SZ_16K, 3);
	mr = ibt_mr(test, ibt_reg_user(p, pd, at, SZ_16K, ALL, NULL));
	KUNIT_ASSERT_GT(test, ib_mr_translate(pd, mr->lkey, at, SZ_16K, run, 4), 0);
	page = virt_to_page((void *)run[0].addr);
	get_page(page);

	ibt_proc_kill(p);
	KUNIT_EXPECT_TRUE(test, ib_mr_is_stale(mr));
	KUNIT_EXPECT_FALSE(test, folio_mapped(page_folio(page)));
	KUNIT_EXPECT_TRUE(test, folio_maybe_dma_pinned(page_folio(page)));
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_READ, pair->req.buf, mr->rkey, at, SZ_16K),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, pair->req.buf[4321], ibt_pat(3, 4321));
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_WRITE, pair->req.buf, mr->rkey, at, SZ_16K),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	KUNIT_EXPECT_FALSE(test, folio_maybe_dma_pinned(page_folio(page)));
	put_page(page);
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)0);
}

/*
 * The process becomes another program: its old memory goes as if it had died, what is pinned stays
 * accounted there, and the new one starts with nothing.
 */
static void pin_exec(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *pair = ibt_pair(test, pd);
	struct ibt_proc *p;
	struct mm_struct *mm;
	unsigned long at;
	struct ib_mr *mr;
	int i;

	ibt_shell("rm -f /tmp/ibt-exec");
	p = ibt_proc(test, "until [ -e /tmp/ibt-exec ]; do sleep 0.1; done; exec sleep 100000");
	at = ibt_user_map(p, SZ_16K, PROT_RW);
	ibt_poke_pattern(p, at, SZ_16K, 3);
	mr = ibt_mr(test, ibt_reg_user(p, pd, at, SZ_16K, ALL, NULL));
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)4);
	ibt_shell("touch /tmp/ibt-exec");
	for (i = 0; i < 500 && atomic_read(&p->mm->mm_users); i++)
		msleep(20);
	ibt_shell("rm -f /tmp/ibt-exec");
	KUNIT_ASSERT_LT_MSG(test, i, 500, "the shell does not exec");
	KUNIT_EXPECT_TRUE(test, ib_mr_is_stale(mr));
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)4);
	mm = get_task_mm(p->task);
	KUNIT_ASSERT_NOT_NULL(test, mm);
	KUNIT_EXPECT_PTR_NE(test, mm, p->mm);
	KUNIT_EXPECT_EQ(test, atomic64_read(&mm->pinned_vm), (s64)0);
	mmput(mm);
	KUNIT_EXPECT_EQ(test, ibt_rdma(pair, IBT_READ, pair->req.buf, mr->rkey, at, SZ_16K),
			IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	KUNIT_EXPECT_EQ(test, ibt_proc_pinned(p), (u64)0);
}

/*
 * The process forks while the memory is registered, and the child lives: the owner and the device
 * stay on the same page. Without care the owner's next store would give it a copy of its own.
 */
static void pin_fork(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_pair *pair = ibt_pair(test, pd);
	struct ibt_proc *p = ibt_proc(test, "while :; do (sleep 0.3; :); done");
	unsigned long at = ibt_user_map(p, SZ_16K, PROT_RW);
	unsigned long faults;
	struct ib_mr *mr;
	int i, forks;

	ibt_poke_pattern(p, at, SZ_16K, 4);
	mr = ibt_mr(test, ibt_reg_user(p, pd, at, SZ_16K, ALL, NULL));
	for (forks = 0; forks < 3; forks++) {
		/*
		 * A child that was reaped has left its faults with the parent; the next one lives
		 * by then.
		 */
		faults = READ_ONCE(p->task->signal->cmin_flt);
		for (i = 0; i < 500 && faults == READ_ONCE(p->task->signal->cmin_flt); i++)
			msleep(20);
		KUNIT_ASSERT_LT_MSG(test, i, 500, "the shell does not fork");
		msleep(50);
		ibt_poke_pattern(p, at, SZ_16K, 4 + forks);
		expect_shared(p, pair, mr, at, SZ_16K, 4 + forks);
	}
	KUNIT_EXPECT_FALSE(test, ib_mr_is_stale(mr));
}

/* Each limit has its own reason, and gives way again. */
static void pin_limits(struct kunit *test)
{
	struct ib_device *dev = ibt_dev(test);
	struct ib_pd *pd = ibt_pd(test), *other = ibt_pd(test);
	struct ibt_proc *p = ibt_proc(test, NULL);
	unsigned long at = ibt_user_map(p, SZ_64K, PROT_RW);
	struct ib_mr *a, *b;
	int max = dev->attrs.max_mr;

	a = ibt_mr(test, ibt_reg_user(p, pd, at, 3 * PAGE_SIZE, ALL, NULL));
	dev->attrs.max_mr = 1;
	ibt_expect_refused_mr(test, MAX_MR, ibt_reg_user(p, pd, at, PAGE_SIZE, ALL, NULL));
	ibt_expect_refused_mr(test, MAX_MR, ib_get_dma_mr(other, LW));
	dev->attrs.max_mr = max;

	ibt_param(test, "max_regions_per_pd", 2);
	b = ibt_mr(test, ib_get_dma_mr(pd, LW));
	ibt_expect_refused_mr(test, LIMIT_REGIONS, ibt_reg_user(p, pd, at, PAGE_SIZE, ALL, NULL));
	KUNIT_EXPECT_EQ(test, ib_rereg_phys_mr(a, IB_MR_REREG_ACCESS, NULL, NULL, 0, LW | RR, NULL),
			0);
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, b), 0);

	ibt_param(test, "max_pinned_per_pd", 5);
	ibt_expect_refused_mr(test, LIMIT_PINNED,
			      ibt_reg_user(p, pd, at, 3 * PAGE_SIZE, ALL, NULL));
	ibt_expect_refused_mr(test, LIMIT_PINNED,
			      ibt_reg_user(p, pd, at + 1, 2 * PAGE_SIZE, ALL, NULL));
	b = ibt_mr(test, ibt_reg_user(p, pd, at, 2 * PAGE_SIZE, ALL, NULL));
	/* The other PD has room for one of them, which makes room here. */
	KUNIT_EXPECT_EQ(test, ib_rereg_phys_mr(a, IB_MR_REREG_PD, other, NULL, 0, 0, NULL), 0);
	ibt_param(test, "max_pinned_per_pd", 4);
	ibt_expect_refused(test, LIMIT_PINNED,
			   ib_rereg_phys_mr(b, IB_MR_REREG_PD, other, NULL, 0, 0, NULL));
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, a), 0);
	a = ibt_mr(test, ibt_reg_user(p, pd, at, 2 * PAGE_SIZE, ALL, NULL));
	KUNIT_EXPECT_TRUE(test, ib_mr_check_invariants(dev));
}

static struct kunit_case pin_cases[] = {
	KUNIT_CASE_PARAM(pin_kinds, kind_gen_params),
	KUNIT_CASE(pin_lengths),
	KUNIT_CASE(pin_rights),
	KUNIT_CASE(pin_rereg),
	KUNIT_CASE(pin_not_pinned),
	KUNIT_CASE(pin_words),
	KUNIT_CASE(pin_arguments),
	KUNIT_CASE(pin_fault9_memlock),
	KUNIT_CASE(pin_fault10_no_old_mapping),
	KUNIT_CASE(pin_stale),
	KUNIT_CASE(pin_exit),
	KUNIT_CASE(pin_exec),
	KUNIT_CASE(pin_fork),
	KUNIT_CASE(pin_limits),
	{}
};

IBT_SUITE(pin, pin_cases);
