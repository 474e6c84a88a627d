// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ground under the cases: the device, what is undone at a case's end, buffers, refusals.
 *
 * The device is found by a client of ib_core that only remembers what it was told, because no
 * look-up by name works on all kernels. The client is registered by each suite's init: on 6.1 the
 * suites run before the module's own init function would.
 *
 * The first thing a case defers is its own audit, which therefore runs last: the device has as
 * many protection domains, queue pairs, completion queues and regions as when the case began, and
 * ib_mr's counters agree with its objects. A protection domain of a case is given back through
 * ib_mr and must be unused by then: whatever ib_mr made in it, its registration queue pair too,
 * is gone with the last region.
 *
 * Only expectations may fail below, never assertions: cleanup runs where there is no case left to
 * abort.
 */
#include <linux/completion.h>
#include <linux/fs_struct.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/ib_cache.h>
#include <rdma/restrack.h>
#include "helpers.h"

#include <rdma/ib_fmr_pool.h>
#include "base/compat.h"
#include "base/core.h"

/* The device. */

static struct ib_device *ibt_device;
static bool ibt_registered;

static int ibt_client_add(struct ib_device *dev)
{
	if (dev->ops.driver_id == RDMA_DRIVER_RXE && !ibt_device)
		ibt_device = dev;
	return 0;
}

static void ibt_client_remove(struct ib_device *dev, void *data)
{
	if (dev == ibt_device)
		ibt_device = NULL;
}

static struct ib_client ibt_client = {
	.name = "ib_mr_test",
	.add = ibt_client_add,
	.remove = ibt_client_remove,
};

/*
 * The parameter `filter`: only cases whose "suite.case" it matches, `*` standing for anything; one
 * of several, with commas between them. The suite's prefix, IBT_PREFIX, may be left out. On 6.1 the
 * suites run before the parameters are parsed, so there the text is looked for in the module's
 * arguments as they were given.
 */
static char *ibt_filter;
module_param_named(filter, ibt_filter, charp, 0444);
MODULE_PARM_DESC(filter, "run only these cases: suite.case[,suite.case], * allowed");

bool ibt_slow;
module_param_named(slow, ibt_slow, bool, 0444);
MODULE_PARM_DESC(slow, "long loops, for a night");

static const char *ibt_suite_name;

static bool ibt_glob(const char *pat, size_t len, const char *s)
{
	if (!len)
		return !*s;
	if (*pat == '*')
		return ibt_glob(pat + 1, len - 1, s) || (*s && ibt_glob(pat, len, s + 1));
	return *s == *pat && ibt_glob(pat + 1, len - 1, s + 1);
}

static bool ibt_wanted(const char *suite, const char *name)
{
	const char *pat = ibt_filter, *args = ibmr_unparsed_args(THIS_MODULE);
	char full[128];
	size_t len;

	if (!pat && args) {
		pat = strstr(args, "filter=");
		if (pat)
			pat += strlen("filter=");
	}
	if (!pat)
		return true;
	scnprintf(full, sizeof(full), "%s.%s", suite, name);
	for (;; pat += len + 1) {
		len = strcspn(pat, ", ");
		if (ibt_glob(pat, len, full) || ibt_glob(pat, len, full + strlen(IBT_PREFIX)))
			return true;
		if (pat[len] != ',')
			return false;
	}
}

struct path ibt_root;

int ibt_suite_init(struct kunit_suite *suite)
{
	const char *args = ibmr_unparsed_args(THIS_MODULE);
	int ret = ib_register_client(&ibt_client);

	if (ret)
		return ret;
	ibt_registered = true;
	get_fs_root(current->fs, &ibt_root);
	ibt_suite_name = suite->name;
	if (args)
		ibt_slow = strstr(args, "slow=1");
	if (!ibt_device) {
		pr_err("ib_mr_test: there is no rdma_rxe device\n");
		ibt_suite_exit(suite);
		return -ENODEV;
	}
	return 0;
}

void ibt_suite_exit(struct kunit_suite *suite)
{
	/* Whether this is called after a failed init depends on the kernel. */
	if (ibt_registered) {
		ib_unregister_client(&ibt_client);
		path_put(&ibt_root);
	}
	ibt_registered = false;
}

/* A GID that routes over the loopback: the IPv4 one, else any of RoCEv2. */
static int ibt_find_gid(struct ibt *ibt)
{
	const struct ib_gid_attr *attr;
	int i, found = -1;

	for (i = 0; i < ibt->dev->port_data[ibt->port].immutable.gid_tbl_len; i++) {
		attr = rdma_get_gid_attr(ibt->dev, ibt->port, i);
		if (IS_ERR(attr))
			continue;
		if (attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
		    (found < 0 || ipv6_addr_v4mapped((struct in6_addr *)&attr->gid)) &&
		    !rdma_read_gid_l2_fields(attr, NULL, ibt->mac)) {
			found = i;
			ibt->gid = attr->gid;
		}
		rdma_put_gid_attr(attr);
		if (found >= 0 && ipv6_addr_v4mapped((struct in6_addr *)&ibt->gid))
			break;
	}
	ibt->gid_index = found;
	return found < 0 ? -ENODEV : 0;
}

/* Undoing. */

struct ibt_action {
	struct kunit *test;
	ibt_fn *fn;
	void *arg;
};

static int ibt_action_init(struct kunit_resource *res, void *context)
{
	res->data = context;
	return 0;
}

static void ibt_action_free(struct kunit_resource *res)
{
	struct ibt_action *a = res->data;

	if (a->fn)
		a->fn(a->test, a->arg);
	kfree(a);
}

void ibt_defer(struct kunit *test, ibt_fn *fn, void *arg)
{
	struct ibt_action *a = kzalloc(sizeof(*a), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, a);
	a->test = test;
	a->fn = fn;
	a->arg = arg;
	KUNIT_ASSERT_NOT_NULL(test, kunit_alloc_resource(test, ibt_action_init, ibt_action_free,
							 GFP_KERNEL, a));
}

static bool ibt_action_match(struct kunit *test, struct kunit_resource *res, void *data)
{
	struct ibt_action *want = data, *a = res->data;

	return res->free == ibt_action_free && a->fn == want->fn && a->arg == want->arg;
}

/* Take the deferred call away without making it. */
void ibt_forget(struct kunit *test, ibt_fn *fn, void *arg)
{
	struct ibt_action want = { .fn = fn, .arg = arg };
	struct kunit_resource *res = kunit_find_resource(test, ibt_action_match, &want);

	KUNIT_EXPECT_NOT_NULL(test, res);
	if (!res)
		return;
	((struct ibt_action *)res->data)->fn = NULL;
	kunit_remove_resource(test, res);
	kunit_put_resource(res);
}

int ibt_objects(struct kunit *test, enum rdma_restrack_type type)
{
	return rdma_restrack_count(ibt_dev(test), type, true);
}

static void ibt_audit(struct kunit *test, void *arg)
{
	static const struct { enum rdma_restrack_type type; const char *name; } kinds[] = {
		{ RDMA_RESTRACK_PD, "protection domains" },
		{ RDMA_RESTRACK_CQ, "completion queues" },
		{ RDMA_RESTRACK_QP, "queue pairs" },
		{ RDMA_RESTRACK_MR, "regions" },
	};
	struct ibt *ibt = arg;
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		KUNIT_EXPECT_EQ_MSG(test, ibt_objects(test, kinds[i].type),
				    ibt->objects[kinds[i].type], "%s leaked or lost",
				    kinds[i].name);
	KUNIT_EXPECT_TRUE_MSG(test, ib_mr_check_invariants(ibt->dev), "the counters do not add up");
	kfree(ibt);
}

/* The first FMR makes what the device keeps for all of them; it would be counted as left behind. */
static void ibt_warm_up(struct ib_device *dev)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 1, .page_shift = PAGE_SHIFT };
	struct ib_pd *pd = ib_alloc_pd(dev, 0);
	struct ib_fmr *fmr;

	if (IS_ERR(pd))
		return;
	fmr = ib_alloc_fmr(pd, IB_ACCESS_REMOTE_READ, &attr);
	if (!IS_ERR(fmr))
		ib_dealloc_fmr(fmr);
	ib_dealloc_pd(pd);
}

int ibt_init(struct kunit *test)
{
	struct ibt *ibt = kzalloc(sizeof(*ibt), GFP_KERNEL);
	struct ib_port_attr attr;
	int ret, i;

	if (!ibt)
		return -ENOMEM;
	if (!ibt_wanted(ibt_suite_name, test->name)) {
		kfree(ibt);
		kunit_skip(test, "filtered");
	}
	ibt->test = test;
	ibt->dev = ibt_device;
	ibt->port = rdma_start_port(ibt->dev);
	test->priv = ibt;
	ibt_warm_up(ibt->dev);
	for (i = 0; i < RDMA_RESTRACK_MAX; i++)
		ibt->objects[i] = ibt_objects(test, i);
	ibt_defer(test, ibt_audit, ibt);

	ret = ib_query_port(ibt->dev, ibt->port, &attr);
	if (ret)
		return ret;
	ibt->mtu = attr.active_mtu;
	return ibt_find_gid(ibt);
}

/* Protection domains and regions. */

static void ibt_pd_free(struct kunit *test, void *arg)
{
	struct ib_pd *pd = arg;

	KUNIT_EXPECT_EQ_MSG(test, atomic_read(&pd->usecnt), 0, "something is left in the domain");
	KUNIT_EXPECT_EQ(test, ib_mr_dealloc_pd(pd), 0);
}

struct ib_pd *ibt_pd(struct kunit *test)
{
	struct ib_pd *pd = ib_alloc_pd(ibt_dev(test), 0);

	KUNIT_ASSERT_FALSE(test, IS_ERR(pd));
	ibt_defer(test, ibt_pd_free, pd);
	return pd;
}

struct ib_pd *ibt_user_pd(struct kunit *test, struct ib_pd *pd)
{
	struct ib_pd *fake = kunit_kzalloc(test, sizeof(*fake), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->device = pd->device;
	fake->uobject = (struct ib_uobject *)fake;	/* never looked into */
	return fake;
}

static void ibt_mr_free(struct kunit *test, void *arg)
{
	KUNIT_EXPECT_EQ(test, ib_dereg_mr((struct ib_mr *)arg), 0);
}

struct ib_mr *ibt_mr(struct kunit *test, struct ib_mr *mr)
{
	KUNIT_ASSERT_NOT_NULL(test, mr);
	KUNIT_ASSERT_EQ_MSG(test, PTR_ERR_OR_ZERO(mr), 0, "a registration failed");
	ibt_defer(test, ibt_mr_free, mr);
	return mr;
}

int ibt_dereg(struct kunit *test, struct ib_mr *mr)
{
	ibt_forget(test, ibt_mr_free, mr);
	return ib_dereg_mr(mr);
}

/* Buffers: eight bytes of the pattern are one multiplication. */

static u64 ibt_word(u64 seed, size_t i)
{
	return (i + 1 + (seed << 40)) * 0x9e3779b97f4a7c15ull;
}

u8 ibt_pat(u64 seed, size_t off)
{
	return ibt_word(seed, off / 8) >> (8 * (off % 8));
}

u8 *ibt_ptr(const struct ibt_buf *b, size_t off)
{
	if (b->kind != IBT_SCATTER)
		return (u8 *)b->addr + off;
	return (u8 *)page_address(b->page[off >> PAGE_SHIFT]) + offset_in_page(off);
}

void ibt_fill(struct ibt_buf *b, size_t off, size_t len, u64 seed)
{
	size_t end = off + len;

	while (off < end) {
		if (!(off % 8) && end - off >= 8) {
			*(u64 *)ibt_ptr(b, off) = ibt_word(seed, off / 8);
			off += 8;
		} else {
			*ibt_ptr(b, off) = ibt_pat(seed, off);
			off++;
		}
		if (!(off % SZ_1M))
			cond_resched();
	}
}

size_t ibt_diff(const struct ibt_buf *b, size_t off, size_t len)
{
	size_t end = off + len;

	while (off < end) {
		if (!(off % 8) && end - off >= 8 &&
		    *(u64 *)ibt_ptr(b, off) == ibt_word(b->seed, off / 8)) {
			off += 8;
		} else {
			if (*ibt_ptr(b, off) != ibt_pat(b->seed, off))
				return off;
			off++;
		}
		if (!(off % SZ_1M))
			cond_resched();
	}
	return end;
}

size_t ibt_diff_copy(const struct ibt_buf *b, size_t off, size_t len, const void *copy)
{
	const u8 *c = copy;
	size_t i;

	for (i = 0; i < len; i++)
		if (c[i] != ibt_pat(b->seed, off + i))
			break;
	return off + i;
}

bool ibt_intact(const struct ibt_buf *b)
{
	return ibt_diff(b, 0, b->size) == b->size;
}

static void ibt_buf_free(struct kunit *test, void *arg)
{
	struct ibt_buf *b = arg;
	unsigned int i;

	if (b->kind == IBT_KMALLOC)
		kfree(b->addr);
	else if (b->kind == IBT_VMALLOC)
		vfree(b->addr);
	else if (b->kind == IBT_PAGES && b->addr)
		free_pages_exact(b->addr, b->size);
	else if (b->kind == IBT_SCATTER)
		for (i = 0; i < b->npages; i++)
			__free_pages(b->page[i], 1);
	kvfree(b->page);
	kfree(b);
}

struct ibt_buf *ibt_buf(struct kunit *test, enum ibt_mem kind, size_t size, u64 seed)
{
	struct ibt_buf *b = kzalloc(sizeof(*b), GFP_KERNEL);
	unsigned int n = DIV_ROUND_UP(size, PAGE_SIZE);

	KUNIT_ASSERT_NOT_NULL(test, b);
	b->kind = kind;
	b->size = size;
	b->seed = seed;
	ibt_defer(test, ibt_buf_free, b);

	if (kind == IBT_KMALLOC)
		b->addr = kmalloc(size, GFP_KERNEL);
	else if (kind == IBT_VMALLOC)
		b->addr = vmalloc(size);
	else if (kind == IBT_PAGES)
		b->addr = alloc_pages_exact(size, GFP_KERNEL);
	else
		b->page = kvcalloc(n, sizeof(*b->page), GFP_KERNEL);
	KUNIT_ASSERT_TRUE(test, b->addr || b->page);

	/* Of each pair of pages only the first is used, so no two are neighbours. */
	for (; kind == IBT_SCATTER && b->npages < n; b->npages++) {
		b->page[b->npages] = alloc_pages(GFP_KERNEL, 1);
		KUNIT_ASSERT_NOT_NULL(test, b->page[b->npages]);
	}
	ibt_fill(b, 0, size, seed);
	return b;
}

static struct page *ibt_page(const struct ibt_buf *b, size_t off)
{
	if (b->kind == IBT_SCATTER)
		return b->page[off >> PAGE_SHIFT];
	if (b->kind == IBT_VMALLOC)
		return vmalloc_to_page(b->addr + off);
	return virt_to_page(b->addr + off);
}

/* The place of a byte of the buffer in its page. */
static size_t ibt_in_page(const struct ibt_buf *b, size_t off)
{
	return offset_in_page(b->kind == IBT_SCATTER ? off : (unsigned long)b->addr + off);
}

struct ib_phys_buf *ibt_phys(struct kunit *test, const struct ibt_buf *b, size_t off, size_t len,
			     int *n)
{
	struct ib_phys_buf *list;
	size_t chunk, i = 0;

	list = kunit_kcalloc(test, len / PAGE_SIZE + 2, sizeof(*list), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, list);
	for (; len; off += chunk, len -= chunk, i++) {
		chunk = min_t(size_t, len, PAGE_SIZE - ibt_in_page(b, off));
		list[i].addr = (uintptr_t)page_address(ibt_page(b, off)) + ibt_in_page(b, off);
		list[i].size = chunk;
	}
	*n = i;
	return list;
}

static void ibt_sg_free(struct kunit *test, void *arg)
{
	sg_free_table(arg);
	kfree(arg);
}

struct scatterlist *ibt_sg(struct kunit *test, const struct ibt_buf *b, size_t off, size_t len,
			   int *nents)
{
	unsigned int n = DIV_ROUND_UP(ibt_in_page(b, off) + len, PAGE_SIZE);
	struct sg_table *t = kzalloc(sizeof(*t), GFP_KERNEL);
	struct scatterlist *sg;
	size_t chunk;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	KUNIT_ASSERT_EQ(test, sg_alloc_table(t, n, GFP_KERNEL), 0);
	ibt_defer(test, ibt_sg_free, t);
	for_each_sgtable_sg(t, sg, i) {
		chunk = min_t(size_t, len, PAGE_SIZE - ibt_in_page(b, off));
		sg_set_page(sg, ibt_page(b, off), chunk, ibt_in_page(b, off));
		off += chunk;
		len -= chunk;
	}
	*nents = ib_dma_map_sg(ibt_dev(test), t->sgl, t->nents, DMA_BIDIRECTIONAL);
	KUNIT_ASSERT_GT(test, *nents, 0);
	return t->sgl;
}

/* Refusals. */

int ibt_errno(enum ib_mr_reason why)
{
	static const int err[] = {
#define IBT_ERR(name, err, text) \
		[IB_MR_WHY_##name] = err,
		IB_MR_REASONS(IBT_ERR)
#undef IBT_ERR
	};

	return err[why];
}

/*
 * Regions there are, and whether the driver's MRs can be counted: while there are magazines their
 * workers make and free some at any time.
 */
static int ibt_regions(struct kunit *test, bool *settled)
{
	struct ibmr_dev *dev = ibmr_dev_get(ibt_dev(test));
	int n;

	if (!dev) {
		*settled = true;
		return 0;
	}
	n = atomic_read(&dev->regions);
	mutex_lock(&dev->mag_lock);
	*settled = list_empty(&dev->mags);
	mutex_unlock(&dev->mag_lock);
	ibmr_dev_put(dev);
	return n;
}

/* What was before the call. */
struct ibt_refusal *ibt_refusal(struct kunit *test)
{
	struct ibt_refusal *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	for (i = 0; i < IB_MR_WHY_COUNT; i++)
		r->count[i] = ib_mr_refusals(NULL, i);
	r->regions = ibt_regions(test, &r->settled);
	r->mrs = ibt_objects(test, RDMA_RESTRACK_MR);
	r->qps = ibt_objects(test, RDMA_RESTRACK_QP);
	return r;
}

void ibt_refusal_end(struct kunit *test, struct ibt_refusal *r, enum ib_mr_reason why, long err,
		     const char *what)
{
	bool settled;
	u64 now;
	int i;

	KUNIT_EXPECT_EQ_MSG(test, err, (long)ibt_errno(why), "errno of: %s", what);
	for (i = 0; i < IB_MR_WHY_COUNT; i++) {
		now = ib_mr_refusals(NULL, i);
		KUNIT_EXPECT_EQ_MSG(test, now - r->count[i], (u64)(i == why),
				    "refusals for %s, of: %s", ib_mr_reason_name(i), what);
	}
	KUNIT_EXPECT_EQ_MSG(test, ibt_regions(test, &settled), r->regions, "regions after: %s",
			    what);
	if (settled && r->settled)
		KUNIT_EXPECT_EQ_MSG(test, ibt_objects(test, RDMA_RESTRACK_MR), r->mrs,
				    "driver MRs after: %s", what);
	KUNIT_EXPECT_EQ_MSG(test, ibt_objects(test, RDMA_RESTRACK_QP), r->qps,
			    "queue pairs after: %s", what);
}

void ibt_refusal_end_mr(struct kunit *test, struct ibt_refusal *r, enum ib_mr_reason why,
			struct ib_mr *mr, const char *what)
{
	KUNIT_EXPECT_NOT_NULL_MSG(test, mr, "NULL from: %s", what);
	KUNIT_EXPECT_TRUE_MSG(test, IS_ERR_OR_NULL(mr), "a region from: %s", what);
	if (!IS_ERR_OR_NULL(mr))
		KUNIT_EXPECT_EQ(test, ib_dereg_mr(mr), 0);
	else
		ibt_refusal_end(test, r, why, PTR_ERR(mr), what);
}

/* Threads. */

struct ibt_thread {
	int (*fn)(void *arg, int i);
	void *arg;
	int i, ret;
	struct task_struct *task;
	struct completion *go;
	struct completion done;
};

static int ibt_thread(void *data)
{
	struct ibt_thread *t = data;

	wait_for_completion(t->go);
	t->ret = t->fn(t->arg, t->i);
	complete(&t->done);
	return 0;
}

void ibt_parallel(struct kunit *test, int n, int (*fn)(void *arg, int i), void *arg)
{
	struct ibt_thread *t = kunit_kcalloc(test, n, sizeof(*t), GFP_KERNEL);
	DECLARE_COMPLETION_ONSTACK(go);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, t);
	for (i = 0; i < n; i++) {
		t[i] = (struct ibt_thread){ .fn = fn, .arg = arg, .i = i, .go = &go };
		init_completion(&t[i].done);
		t[i].task = kthread_run(ibt_thread, &t[i], "ib_mr_test/%d", i);
		if (!IS_ERR(t[i].task))
			get_task_struct(t[i].task);
	}
	complete_all(&go);
	for (i = 0; i < n; i++) {
		KUNIT_EXPECT_FALSE(test, IS_ERR(t[i].task));
		if (IS_ERR(t[i].task))
			continue;
		wait_for_completion(&t[i].done);
		kthread_stop(t[i].task);	/* nothing of it runs after this */
		put_task_struct(t[i].task);
		KUNIT_EXPECT_EQ_MSG(test, t[i].ret, 0, "thread %d", i);
	}
}

MODULE_DESCRIPTION("KUnit tests of ib_mr");
MODULE_LICENSE("Dual BSD/GPL");
IBMR_IMPORT_INTERNAL();
