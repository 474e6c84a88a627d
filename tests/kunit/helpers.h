/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What a case needs, managed: everything made here is undone when the case ends, in reverse
 * order, so that a case has no cleanup code.
 *
 * The device is a real rdma_rxe device, and a verdict about an access is what a real RDMA
 * operation says. A `struct ibt_pair` is two queue pairs of that device: the requester lives in a
 * protection domain of its own (it plays the remote peer), the target in the domain under test.
 * An operation that fails takes both queue pairs to error, as it should; the pair is connected
 * again before the next operation, so a table of refusals is cheap.
 *
 * A `struct ibt_view` says what a region should be (which bytes, which iova, which rights), and
 * ibt_expect_view() proves it, by RDMA, to the byte: what is granted works at both ends, one byte
 * more at either end does not, and what is not granted is refused.
 */
#ifndef IBT_HELPERS_H
#define IBT_HELPERS_H

#include <kunit/test.h>
#include <linux/sizes.h>
#include <rdma/ib_verbs.h>
#include <rdma/ib_mr.h>

/* Per case: what ibt_init() found and counted. It is test->priv. */
struct ibt {
	struct kunit *test;
	struct ib_device *dev;
	u32 port;
	int gid_index;
	union ib_gid gid;
	u8 mac[ETH_ALEN];
	enum ib_mtu mtu;
	/* The device's objects when the case began: they must be as many when it has ended. */
	int objects[RDMA_RESTRACK_MAX];
};

static inline struct ibt *ibt_of(struct kunit *test)
{
	return test->priv;
}

static inline struct ib_device *ibt_dev(struct kunit *test)
{
	return ibt_of(test)->dev;
}

/* Suites: every suite of the module is made by this macro. */
int ibt_suite_init(struct kunit_suite *suite);
void ibt_suite_exit(struct kunit_suite *suite);
int ibt_init(struct kunit *test);

/* Root of the file system as insmod sees it. */
extern struct path ibt_root;

/* The module parameter `slow`: loops as long as a night allows. */
extern bool ibt_slow;

#define IBT_PREFIX "ib_mr_"

#define IBT_SUITE(_name, _cases)			\
	static struct kunit_suite _name##_suite = {	\
		.name = IBT_PREFIX #_name,		\
		.suite_init = ibt_suite_init,		\
		.suite_exit = ibt_suite_exit,		\
		.init = ibt_init,			\
		.test_cases = _cases,			\
	};						\
	kunit_test_suites(&_name##_suite)

/* Undo @fn(@test, @arg) when the case ends, or now. */
typedef void ibt_fn(struct kunit *test, void *arg);
void ibt_defer(struct kunit *test, ibt_fn *fn, void *arg);
void ibt_forget(struct kunit *test, ibt_fn *fn, void *arg);

/* How many objects of a type the device has, as the core counts them. */
int ibt_objects(struct kunit *test, enum rdma_restrack_type type);

/* Protection domains and regions. */
struct ib_pd *ibt_pd(struct kunit *test);
struct ib_mr *ibt_mr(struct kunit *test, struct ib_mr *mr);
int ibt_dereg(struct kunit *test, struct ib_mr *mr);
/* A domain that looks as if user space owned it. Nothing may be done in it. */
struct ib_pd *ibt_user_pd(struct kunit *test, struct ib_pd *pd);

/*
 * Buffers. Each holds a pattern that depends on a seed and on the place in the buffer, so that a
 * byte at a wrong place shows. @addr is NULL for scattered pages, of which no two are neighbours
 * in memory.
 */
enum ibt_mem { IBT_KMALLOC, IBT_VMALLOC, IBT_PAGES, IBT_SCATTER };

struct ibt_buf {
	enum ibt_mem kind;
	size_t size;
	u64 seed;
	void *addr;
	struct page **page;
	unsigned int npages;
};

struct ibt_buf *ibt_buf(struct kunit *test, enum ibt_mem kind, size_t size,
			u64 seed);
u8 *ibt_ptr(const struct ibt_buf *b, size_t off);
u8 ibt_pat(u64 seed, size_t off);
void ibt_fill(struct ibt_buf *b, size_t off, size_t len, u64 seed);
/* The first place in [off, off + len) that is not the buffer's pattern, or off + len. */
size_t ibt_diff(const struct ibt_buf *b, size_t off, size_t len);
/* The same for a copy of that range that came over the wire. */
size_t ibt_diff_copy(const struct ibt_buf *b, size_t off, size_t len,
		     const void *copy);
bool ibt_intact(const struct ibt_buf *b);

/* Bytes [off, off + len) of a buffer as a classic list, and as a mapped scatterlist. */
struct ib_phys_buf *ibt_phys(struct kunit *test, const struct ibt_buf *b,
			     size_t off, size_t len, int *n);
struct scatterlist *ibt_sg(struct kunit *test, const struct ibt_buf *b,
			   size_t off, size_t len, int *nents);

/* Queue pairs. */
#define IBT_LOCAL	SZ_64K

enum ibt_op {
	IBT_READ, IBT_WRITE, IBT_FETCH_ADD, IBT_CMP_SWAP, IBT_SEND, IBT_RECV,
};

struct ibt_end {
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u8 *buf;		/* IBT_LOCAL bytes, reached by pd->local_dma_lkey */
	u64 seq;
};

struct ibt_pair {
	struct kunit *test;
	struct ibt *ibt;
	enum ib_qp_type type;
	struct ib_pd *peer_pd;
	struct ibt_end req;
	struct ibt_end tgt;
	bool ready;		/* cleared: made anew before the next operation */
	u8 timeout, retries;	/* of an RC queue pair; taken when it is made */
	u64 add;		/* FETCH_ADD */
	u64 compare, swap;	/* CMP_SWAP */
};

struct ibt_pair *ibt_pair(struct kunit *test, struct ib_pd *pd_target);
struct ibt_pair *ibt_pair_type(struct kunit *test, struct ib_pd *pd_target,
			       enum ib_qp_type type);

/* No completion came in ten seconds. The case has failed then. */
#define IBT_LOST	((enum ib_wc_status)-1)

/*
 * The peer does @op on [iova, iova + len) under @rkey, with @local (in p->req.buf) at its own
 * end.
 */
enum ib_wc_status ibt_rdma(struct ibt_pair *p, enum ibt_op op, void *local,
			   u32 rkey, u64 iova, u32 len);
/*
 * The target's own queue pair does @op with the sge {iova, len, @lkey}; its peer's end is
 * p->req.buf. IBT_RECV is a receive into that sge.
 */
enum ib_wc_status ibt_local(struct ibt_pair *p, enum ibt_op op, u32 lkey,
			    u64 iova, u32 len);
/* Why an operation at the own end fails: the driver says one or the other. */
bool ibt_local_error(enum ib_wc_status status);
const char *ibt_op_name(enum ibt_op op);

/* What a region is: bytes [off, off + len) of @buf at @iova, with @access. */
struct ibt_view {
	struct ibt_buf *buf;
	size_t off;
	size_t len;
	u64 iova;
	int access;
	bool unbounded;		/* a DMA region: it has no ends */
};

void ibt_expect_view(struct ibt_pair *p, struct ib_mr *mr,
		     const struct ibt_view *v);
/* A part of it: content of [at, at + len) of the view, read by the peer. */
void ibt_expect_read(struct ibt_pair *p, struct ib_mr *mr,
		     const struct ibt_view *v, size_t at, size_t len);
void ibt_expect_write(struct ibt_pair *p, struct ib_mr *mr,
		      const struct ibt_view *v, size_t at, size_t len);
/* Neither of its old keys opens anything. */
void ibt_expect_dead(struct ibt_pair *p, u32 lkey, u32 rkey, u64 iova);

/*
 * A call that must be refused for one reason: the errno is the reason's, its counter rises by
 * one, no other counter does, and no object came or went.
 */
struct ibt_refusal {
	u64 count[IB_MR_WHY_COUNT];
	int regions, mrs, qps;
	bool settled;
};

int ibt_errno(enum ib_mr_reason why);
struct ibt_refusal *ibt_refusal(struct kunit *test);
void ibt_refusal_end(struct kunit *test, struct ibt_refusal *r,
		     enum ib_mr_reason why, long err, const char *what);
void ibt_refusal_end_mr(struct kunit *test, struct ibt_refusal *r,
			enum ib_mr_reason why, struct ib_mr *mr,
			const char *what);

#define ibt_expect_refused(_test, why, expr)				\
do {									\
	struct kunit *_t = (_test);					\
	struct ibt_refusal *_r = ibt_refusal(_t);			\
									\
	ibt_refusal_end(_t, _r, IB_MR_WHY_##why, (expr), #expr);	\
} while (0)

#define ibt_expect_refused_mr(_test, why, expr)				\
do {									\
	struct kunit *_t = (_test);					\
	struct ibt_refusal *_r = ibt_refusal(_t);			\
									\
	ibt_refusal_end_mr(_t, _r, IB_MR_WHY_##why, (expr), #expr);	\
} while (0)

/*
 * Run @fn(@arg, i) for i in [0, n) in as many threads at once; returns when all have ended. Its
 * non-zero results are failures of the case.
 */
void ibt_parallel(struct kunit *test, int n, int (*fn)(void *arg, int i),
		  void *arg);

/* Rights, for tables. */
#define LW	IB_ACCESS_LOCAL_WRITE
#define RR	IB_ACCESS_REMOTE_READ
#define RW	IB_ACCESS_REMOTE_WRITE
#define RA	IB_ACCESS_REMOTE_ATOMIC
#define MWB	IB_ACCESS_MW_BIND

#endif /* IBT_HELPERS_H */
