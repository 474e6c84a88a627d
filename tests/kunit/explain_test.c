// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The sentence: each cause has its own, with the numbers that show the mistake; and the file in
 * debugfs that answers the same.
 *
 * What it says and what ib_mr_check() says must be the same reason, wherever the latter can know
 * it.
 */
#include <linux/delay.h>
#include "base/compat.h"
#include "base/core.h"
#include "fmr_helpers.h"
#include "proc.h"

#define ALL	(LW | RR | RW | RA)
#define IOVA	0x60000000ull
#define LEN	SZ_16K

struct ask {
	struct kunit *test;
	struct ib_pd *pd;
	char text[320];
};

/* The reason, and words that the sentence must have, separated by |. */
static void expect(struct ask *a, struct ib_pd *pd, u32 key, u64 iova, u64 len, int access,
		   enum ib_mr_reason why, const char *words)
{
	char want[128], *rest = want, *word;
	enum ib_mr_reason got, check;

	got = ib_mr_explain(ibt_dev(a->test), pd, key, iova, len, access, a->text,
			    sizeof(a->text));
	KUNIT_EXPECT_EQ_MSG(a->test, got, why, "\"%s\"", a->text);
	strscpy(want, words, sizeof(want));
	while ((word = strsep(&rest, "|")))
		KUNIT_EXPECT_NOT_NULL_MSG(a->test, strstr(a->text, word), "no \"%s\" in \"%s\"",
					  word, a->text);
	KUNIT_EXPECT_LT_MSG(a->test, strlen(a->text), (size_t)200, "%s", a->text);
	KUNIT_EXPECT_NULL(a->test, strchr(a->text, '\n'));
	if (!pd)
		return;
	check = ib_mr_check(pd, key, iova, len, access, access & (RR | RW | RA));
	if (why != IB_MR_WHY_DEREGISTERED && why != IB_MR_WHY_STALE_REGION)
		KUNIT_EXPECT_EQ_MSG(a->test, check, why, "%s", a->text);
}

static void explain_sentences(struct kunit *test)
{
	struct ask *a = kunit_kzalloc(test, sizeof(*a), GFP_KERNEL);
	struct ib_pd *pd = ibt_pd(test), *other = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, LEN, 1);
	struct ib_mr *mr, *local, *dma;
	u64 iova = IOVA;
	char want[96];
	u32 key;

	a->test = test;
	a->pd = pd;
	mr = ibt_mr(test, ib_mr_reg_kernel(pd, b->addr, LEN, LW | RR, &iova));
	local = ibt_mr(test, ib_mr_reg_kernel(pd, b->addr, LEN, LW, &iova));
	dma = ibt_mr(test, ib_get_dma_mr(pd, LW));
	key = mr->rkey;

	expect(a, pd, key, IOVA + 100, 50, RR, IB_MR_WHY_OK,
	       "allowed|50 bytes|from byte 100 of 16384");
	expect(a, NULL, key, IOVA, LEN, RR, IB_MR_WHY_OK, "allowed");
	expect(a, pd, key, IOVA, LEN, LW, IB_MR_WHY_OK, "allowed");
	expect(a, pd, dma->lkey, 0x1234, 8, 0, IB_MR_WHY_OK, "allowed");
	expect(a, pd, 0xabcdef00, IOVA, 0, RR, IB_MR_WHY_OK, "allowed|0 bytes");

	expect(a, pd, 0xabcdef12, IOVA, 1, RR, IB_MR_WHY_UNKNOWN_KEY,
	       "refused|no region has key 0xabcdef12");
	expect(a, pd, pd->local_dma_lkey, IOVA, 1, 0, IB_MR_WHY_UNKNOWN_KEY, "local_dma_lkey");
	snprintf(want, sizeof(want), "stale|variant %#x was given|current one is %#x|key %#x)",
		 (key ^ 7) & 0xff, key & 0xff, key);
	expect(a, pd, key ^ 7, IOVA, 1, RR, IB_MR_WHY_STALE_KEY, want);
	snprintf(want, sizeof(want), "another protection domain|pd %u,|pd %u was given",
		 pd->res.id, other->res.id);
	expect(a, other, key, IOVA, 1, RR, IB_MR_WHY_OTHER_PD, want);
	expect(a, pd, key, IOVA, 1, RW, IB_MR_WHY_NO_RIGHT,
	       "does not grant REMOTE_WRITE|grants: LOCAL_WRITE, REMOTE_READ)");
	expect(a, pd, key, IOVA, 1, RR | RW | RA, IB_MR_WHY_NO_RIGHT,
	       "does not grant REMOTE_WRITE, REMOTE_ATOMIC ");
	expect(a, pd, local->lkey, IOVA, 1, RR, IB_MR_WHY_LOCAL_KEY, "local key|has: LOCAL_WRITE)");

	expect(a, pd, key, IOVA - 12, 4, RR, IB_MR_WHY_BEFORE_START,
	       "begins 12 bytes before the start|4 bytes at 0x5ffffff4|16384 at 0x60000000");
	expect(a, pd, key, IOVA + LEN - 5, 12, RR, IB_MR_WHY_PAST_END, "ends 7 bytes past the end");
	expect(a, pd, key, IOVA + LEN + 3, 1, RR, IB_MR_WHY_PAST_END,
	       "begins 3 bytes past the end");
	expect(a, pd, key, IOVA + LEN, 1, RR, IB_MR_WHY_PAST_END, "begins 0 bytes past the end");
	expect(a, pd, key, IOVA, LEN + 1, RR, IB_MR_WHY_PAST_END, "ends 1 bytes past the end");
	expect(a, pd, key, IOVA + 9, U64_MAX, RR, IB_MR_WHY_PAST_END, "passes 2^64");

	KUNIT_EXPECT_EQ(test, ib_mr_invalidated(pd, key), 0);
	expect(a, pd, key, IOVA, 1, RR, IB_MR_WHY_INVALIDATED, "invalidated by the peer");
	KUNIT_EXPECT_EQ(test,
			ib_rereg_phys_mr(mr, IB_MR_REREG_ACCESS, NULL, NULL, 0, LW | RR, NULL), 0);

	/* How long ago. */
	key = mr->rkey;
	KUNIT_EXPECT_EQ(test, ibt_dereg(test, mr), 0);
	msleep(120);
	expect(a, pd, key, IOVA, 1, RR, IB_MR_WHY_DEREGISTERED, "was deregistered| ms ago");
	{
		unsigned long ms = 0;
		char *at = strstr(a->text, "deregistered ");

		KUNIT_EXPECT_TRUE(test, at && sscanf(at, "deregistered %lu ms", &ms) == 1);
		KUNIT_EXPECT_TRUE_MSG(test, ms >= 100 && ms < 60000, "%s", a->text);
	}
	expect(a, pd, key ^ 1, IOVA, 1, RR, IB_MR_WHY_DEREGISTERED, "its last key was");
}

/* Any buffer, however short, and arguments that are none. */
static void explain_arguments(struct kunit *test)
{
	struct ib_device *dev = ibt_dev(test);
	char text[40];
	size_t n;

	for (n = 1; n < sizeof(text); n++) {
		memset(text, 0x55, sizeof(text));
		KUNIT_EXPECT_EQ(test, ib_mr_explain(dev, NULL, 77, 0, 1, RR, text, n),
				IB_MR_WHY_UNKNOWN_KEY);
		KUNIT_EXPECT_LT(test, strnlen(text, n), n);
		KUNIT_EXPECT_EQ(test, text[n], 0x55);
	}
	KUNIT_EXPECT_EQ(test, ib_mr_explain(dev, NULL, 77, 0, 1, RR, NULL, 0), IB_MR_WHY_NULL_ARG);
	KUNIT_EXPECT_EQ(test, ib_mr_explain(NULL, NULL, 77, 0, 1, RR, text, 40),
			IB_MR_WHY_NULL_ARG);
}

#define DEVICES	"/sys/kernel/debug/ib_mr/devices/"
#define ANSWER	"/tmp/ibt-answer"
#define DIR	DEVICES "rxe0/"

/* What a person does: write a line, read the sentence. */
static int ask_file(const char *line, char *answer, size_t size)
{
	char command[256];
	int status;

	snprintf(command, sizeof(command),
		 "exec 3<> " DIR "explain; echo '%s' >&3 && cat <&3 > /tmp/ibt-answer", line);
	status = ibt_shell(command);
	if (ibt_read_file("/tmp/ibt-answer", answer, size))
		answer[0] = '\0';
	ibt_shell("rm -f /tmp/ibt-answer");
	return status;
}

static void explain_debugfs(struct kunit *test)
{
	static const char *const bad[] = {
		"", "1 2 3", "x 0 1 read", "1 0 1 reed", "1 0 1 read,", "1 0 1 read remote",
		"1 0 1 atomic local", "1 0 1 read local more", "0x100000000 0 1 read",
		"1 0 -1 read",
	};
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, LEN, 1);
	char *text = kunit_kzalloc(test, 4096, GFP_KERNEL), line[80];
	u64 iova = IOVA;
	struct ib_mr *mr;
	int i;

	mr = ibt_mr(test, ib_mr_reg_kernel(pd, b->addr, LEN, RR, &iova));
	snprintf(line, sizeof(line), "%#x %#llx 8 read", mr->rkey, IOVA);
	KUNIT_EXPECT_EQ(test, ask_file(line, text, 4096), 0);
	KUNIT_EXPECT_STREQ(test, text, "allowed: 8 bytes, from byte 0 of 16384 on\n");
	snprintf(line, sizeof(line), "%u %llu 8 READ,write", mr->rkey, IOVA);
	KUNIT_EXPECT_EQ(test, ask_file(line, text, 4096), 0);
	KUNIT_EXPECT_STREQ(test, text,
			   "refused: the region does not grant REMOTE_WRITE (it grants: REMOTE_READ)\n");
	snprintf(line, sizeof(line), "%#x %#llx 8 read,atomic", mr->rkey, IOVA);
	KUNIT_EXPECT_EQ(test, ask_file(line, text, 4096), 0);
	KUNIT_EXPECT_STREQ(test, text,
			   "refused: the region does not grant REMOTE_ATOMIC (it grants: REMOTE_READ)\n");
	snprintf(line, sizeof(line), "  %#x\t%#llx   8  write   local ", mr->lkey, IOVA);
	KUNIT_EXPECT_EQ(test, ask_file(line, text, 4096), 0);
	KUNIT_EXPECT_STREQ(test, text,
			   "refused: the region does not grant LOCAL_WRITE (it grants: REMOTE_READ)\n");
	snprintf(line, sizeof(line), "%#x %#llx 8 read local", mr->lkey, IOVA + LEN);
	KUNIT_EXPECT_EQ(test, ask_file(line, text, 4096), 0);
	KUNIT_EXPECT_NOT_NULL(test, strstr(text, "begins 0 bytes past the end"));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_NE_MSG(test, ask_file(bad[i], text, 4096), 0, "\"%s\"", bad[i]);

	/* The other two files. */
	KUNIT_EXPECT_EQ(test, ibt_shell("cat " DIR "regions > /tmp/ibt-answer"), 0);
	ibt_read_file(ANSWER, text, 4096);
	snprintf(line, sizeof(line), "%#010x %#010x %#018llx", mr->lkey, mr->rkey, IOVA);
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(text, line), "%s", text);
	KUNIT_EXPECT_EQ(test, ibt_shell("cat " DIR "stats > /tmp/ibt-answer"), 0);
	ibt_read_file(ANSWER, text, 4096);
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(text, "regions 1\n"), "%s", text);
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(text, "pinned_pages 0\n"), "%s", text);
	ibt_shell("rm -f /tmp/ibt-answer");
}

/* echo ... > explain; cat explain: the last verdict is there until somebody reads it, once. */
static void explain_kept(struct kunit *test)
{
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, LEN, 1);
	char *text = kunit_kzalloc(test, 4096, GFP_KERNEL), line[160];
	u64 iova = IOVA;
	struct ib_mr *mr;
	int i;

	mr = ibt_mr(test, ib_mr_reg_kernel(pd, b->addr, LEN, RR, &iova));
	for (i = 1; i <= 2; i++) {
		snprintf(line, sizeof(line), "echo %#x %#llx %d read > " DIR "explain", mr->rkey,
			 IOVA, 7 * i);
		KUNIT_EXPECT_EQ(test, ibt_shell(line), 0);
	}
	KUNIT_EXPECT_EQ(test, ibt_shell("cat " DIR "explain > /tmp/ibt-answer"), 0);
	ibt_read_file(ANSWER, text, 4096);
	KUNIT_EXPECT_STREQ(test, text, "allowed: 14 bytes, from byte 0 of 16384 on\n");
	KUNIT_EXPECT_EQ(test, ibt_shell("cat " DIR "explain > /tmp/ibt-answer"), 0);
	ibt_read_file(ANSWER, text, 4096);
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(text, "write: KEY IOVA LENGTH"), "%s", text);
	/* Who asks and reads in one has his own, and leaves none. */
	snprintf(line, sizeof(line), "%#x %#llx 3 read", mr->rkey, IOVA);
	KUNIT_EXPECT_EQ(test, ask_file(line, text, 4096), 0);
	KUNIT_EXPECT_STREQ(test, text, "allowed: 3 bytes, from byte 0 of 16384 on\n");
	KUNIT_EXPECT_EQ(test, ibt_shell("cat " DIR "explain > /tmp/ibt-answer"), 0);
	ibt_read_file(ANSWER, text, 4096);
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(text, "write: KEY IOVA LENGTH"), "%s", text);
	ibt_shell("rm -f /tmp/ibt-answer");
}

static void named_back(struct kunit *test, void *arg)
{
	ibt_shell("for n in roce0 dma_reports devices; do rdma dev set $n name rxe0; "
		  "done 2> /dev/null");
}

/* A device that is renamed is found by its new name only, and another may have the old one. */
static void explain_renamed(struct kunit *test)
{
	static const char *const names[] = { "roce0", "dma_reports", "devices", "roce0" };
	struct ib_pd *pd = ibt_pd(test);
	struct ibt_buf *b = ibt_buf(test, IBT_PAGES, LEN, 1);
	char *text = kunit_kzalloc(test, 4096, GFP_KERNEL), line[200];
	const char *before = "rxe0";
	struct ibmr_dev *dev;
	u64 iova = IOVA;
	struct ib_mr *mr;
	int i;

	mr = ibt_mr(test, ib_mr_reg_kernel(pd, b->addr, LEN, RR, &iova));
	dev = ibmr_dev_get(ibt_dev(test));
	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_EXPECT_STREQ(test, dev->name, "rxe0");
	ibmr_dev_put(dev);
	ibt_defer(test, named_back, NULL);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(line, sizeof(line), "rdma dev set %s name %s", before, names[i]);
		KUNIT_ASSERT_EQ(test, ibt_shell(line), 0);
		KUNIT_EXPECT_STREQ(test, dev->name, names[i]);
		snprintf(line, sizeof(line), "test ! -e " DEVICES "%s", before);
		KUNIT_EXPECT_EQ(test, ibt_shell(line), 0);
		snprintf(line, sizeof(line),
			 "exec 3<> " DEVICES "%s/explain; echo %#x %#llx 8 read >&3; cat <&3 > "
			 ANSWER,
			 names[i], mr->rkey, IOVA);
		KUNIT_EXPECT_EQ(test, ibt_shell(line), 0);
		ibt_read_file(ANSWER, text, 4096);
		KUNIT_EXPECT_STREQ(test, text, "allowed: 8 bytes, from byte 0 of 16384 on\n");
		before = names[i];
	}
	/* The old name, given to another device, is that device's folder. */
	ibt_second(test);
	KUNIT_EXPECT_EQ(test, ibt_shell("rdma dev set rxe_second name rxe0"), 0);
	snprintf(line, sizeof(line),
		 "exec 3<> " DIR "explain; echo %#x %#llx 8 read >&3 && cat <&3 > /tmp/ibt-answer",
		 mr->rkey, IOVA);
	KUNIT_EXPECT_EQ(test, ibt_shell(line), 0);
	ibt_read_file(ANSWER, text, 4096);
	KUNIT_EXPECT_NOT_NULL_MSG(test, strstr(text, "refused: no region has key"), "%s", text);
	KUNIT_EXPECT_EQ(test, ibt_shell("rdma dev set rxe0 name rxe_second"), 0);
	ibt_shell("rm -f /tmp/ibt-answer");
}

static struct kunit_case explain_cases[] = {
	KUNIT_CASE(explain_sentences),
	KUNIT_CASE(explain_arguments),
	KUNIT_CASE(explain_debugfs),
	KUNIT_CASE(explain_kept),
	KUNIT_CASE(explain_renamed),
	{}
};

IBT_SUITE(explain, explain_cases);
