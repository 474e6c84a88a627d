/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The sample ULP's own rooms: main.c (module, devices), regions.c (memory and its registration),
 * window.c and fmr.c (parts of it, for a while), conn.c (connections and requests), file.c (a
 * file's pages), user.c (a process's memory).
 *
 * Who holds whom: the module holds the file's pages. A device (struct demo_dev, one for each RDMA
 * device) holds the protection domain, the regions made of that memory, a window and an FMR. A
 * connection belongs to a device, which is torn down only after its last connection is gone.
 * Regions outlive connections on purpose: a refused access kills the queue pair, and the peer comes
 * back on a new one to see what the memory looks like.
 */
#ifndef IB_MR_DEMO_H
#define IB_MR_DEMO_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <rdma/ib_fmr_pool.h>
#include <rdma/ib_mr.h>
#include <rdma/rdma_cm.h>
#include "demo_proto.h"

struct demo_file {
	struct page **pages;
	unsigned int npages;
	u64 size;
};

int demo_file_load(struct demo_file *file, const char *path);
void demo_file_free(struct demo_file *file);

struct demo_conn;
struct demo_dev;
struct demo_region;

/**
 * struct demo_kind - a row of the region table
 * @name: for messages
 * @access: rights of the registration
 * @has_sgt: the memory is a scatterlist, mapped for as long as there is a device
 * @get: allocate and map the memory, set backing, start and length
 * @reg: register it
 * @rereg: re-register it to other memory; optional
 * @scrub: the owner uses the memory for something else; optional
 * @put: undo @get
 * @at: the backing's bytes at an offset that is in range, and how many follow without a gap
 * @sync: give the mapped memory to the CPU before it looks (true), or back to the device; optional
 */
struct demo_kind {
	const char *name;
	int access;
	bool has_sgt;
	int (*get)(struct demo_region *region);
	struct ib_mr *(*reg)(struct demo_region *region);
	int (*rereg)(struct demo_region *region);
	void (*scrub)(struct demo_region *region);
	void (*put)(struct demo_region *region);
	const u8 *(*at)(struct demo_region *region, u64 offset, size_t *contiguous);
	void (*sync)(struct demo_region *region, bool to_cpu);
};

struct demo_region {
	const struct demo_kind *kind;
	struct demo_dev *dev;
	struct ib_mr *mr;		/* NULL while it is not registered */
	u64 backing, start, length;
	union {
		struct sg_table sgt;	/* DEMO_FILE */
		u8 *vaddr;		/* DEMO_SINK, DEMO_GRANT */
		struct {		/* DEMO_COUNTER */
			u8 *page[2];
			u64 dma[2];
			int cur;	/* which of the two is registered */
		};
	};
};

struct demo_dev {
	struct list_head entry;		/* in demo_devs */
	struct ib_device *ib;
	struct ib_pd *pd;
	struct mutex lock;		/* the regions, and what is granted of them */
	struct demo_region regions[DEMO_REGIONS];
	struct ib_mw *mw;
	struct ib_fmr_pool *pool;
	struct ib_pool_fmr *loan;	/* NULL: nothing is lent */
	bool removing;			/* under demo_lock, as are the two below */
	struct list_head conns;
	unsigned int nconns;
	wait_queue_head_t idle;		/* nconns became 0 */
};

/* demo_lock nests inside an rdma_cm_id's handler mutex: call nothing of rdma_cm under it. */
extern struct mutex demo_lock;
extern struct list_head demo_devs;
extern struct demo_file demo_file;
extern struct workqueue_struct *demo_wq;

int demo_regions_get(struct demo_dev *dev);
void demo_regions_put(struct demo_dev *dev);
void demo_execute(struct demo_dev *dev, struct demo_conn *conn, const struct demo_request *request,
		  u32 length, struct demo_reply *reply);
int demo_window_get(struct demo_dev *dev);
void demo_window_put(struct demo_dev *dev);
int demo_window_grant(struct demo_region *region, struct demo_conn *conn, u64 offset, u64 length,
		      u32 access, struct demo_reply *reply);
void demo_user_remove(struct demo_dev *dev);
int demo_user_init(void);
void demo_user_exit(void);
int demo_fmr_get(struct demo_dev *dev);
void demo_fmr_put(struct demo_dev *dev);
int demo_fmr_lend(struct demo_region *region, u64 offset, u64 length, struct demo_reply *reply);

int demo_hash_init(void);
void demo_hash_exit(void);

int demo_cm_event(struct rdma_cm_id *id, struct rdma_cm_event *event);
int demo_conn_bind(struct demo_conn *conn, struct ib_mw *mw, const struct ib_mw_bind_info *info);
void demo_conns_close(struct demo_dev *dev);

#endif /* IB_MR_DEMO_H */
