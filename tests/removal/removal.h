/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A ULP that has one of everything, and uses it from several threads, when its device goes.
 *
 * scripts/removal drives it: the parameter `go` makes the set of objects and starts the threads,
 * `check` proves by RDMA that all of it works, then the device is taken away in one of several
 * manners, and `wrong` counts what was not as it must be. As an ib_client (cm=0) it is told before
 * ib_mr, since it registers later. As a user of rdma_cm (cm=1) it is told when rdma_cm is, which is
 * after ib_mr when rdma_cm was loaded first: then every handle has outlived its registration, and
 * late=1 says that each call has to answer so.
 */
#ifndef REMOVAL_H
#define REMOVAL_H

#include <linux/completion.h>
#include <linux/mutex.h>
#include <linux/sched/mm.h>
#include <linux/workqueue.h>
#include <rdma/ib_fmr_pool.h>
#include <rdma/ib_mr.h>
#include <rdma/rdma_cm.h>

#define PAGES	4
#define SIZE	(PAGES * PAGE_SIZE)
#define CHURNS	2
#define ALL	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE)

/* The two ends of a connection: the owner's, in @pd, and the peer's, in a domain of its own. */
struct pair {
	struct ib_pd *peer_pd;
	struct ib_cq *cq, *peer_cq;
	struct ib_qp *qp, *peer_qp;
	u8 *buf;
};

struct set {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct pair pair;
	u8 *mem;			/* SIZE bytes, each page of one value */
	u64 list[PAGES];
	struct mm_struct *mm;		/* of who said `go` */
	unsigned long at;		/* SIZE bytes there */

	struct ib_mr *kernel, *phys, *user, *dma;
	struct ib_fmr *fmr;
	struct ib_fmr_pool *pool;
	struct ib_pool_fmr *pf;
	struct ib_mw *mw;
	struct ib_mr_scope *scope;
	struct ib_mr_arena *arena;
	struct ib_mr_slice slice;

	struct task_struct *churn[CHURNS], *traffic;
	u32 seed;

	struct rdma_cm_id *id, *passive;	/* with cm */
	struct completion event;
	int status;
	bool removing;			/* somebody ends it */
	bool gone;			/* because its device goes */
	struct work_struct close;
};

extern bool removal_late, removal_cm;
extern char *removal_addr;
extern atomic_t removal_wrong, removal_calls, removal_gone, removal_reads, removal_sets;

/* Count what is wrong, and say the first ones. */
void wrong(const char *what, long err);

/* threads.c */
int pair_prepare(struct pair *p, struct ib_device *dev);
int pair_connect(struct pair *p, struct ib_pd *pd);
void pair_init_attr(struct ib_qp_init_attr *attr, struct ib_cq *cq);
void pair_break(struct pair *p);
void pair_destroy(struct pair *p);
enum ib_wc_status pair_read(struct pair *p, u32 key, u64 iova, u32 len);
int threads_start(struct set *s);
void threads_stop(struct set *s);

/* objects.c */
int objects_make(struct set *s);
int objects_check(struct set *s, struct pair *p);
void objects_old(struct set *s);
void objects_release(struct set *s);
void objects_churn(struct set *s, u32 random);

/* mm.c */
typedef bool answer_fn(const char *call, long err);
void mm_churn(struct set *s, u32 random, answer_fn *answered);

/* cm.c: with the lock of the set held, but for the last two */
int cm_connect(struct set *s);
void cm_disconnect(struct set *s);
int cm_listen(void);
void cm_unlisten(void);

/* main.c */
extern struct set *removal_set;
void removal_close(struct set *s);

#endif /* REMOVAL_H */
