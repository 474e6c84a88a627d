/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Fast memory regions and pools of them: registration that never sleeps.
 *
 * The calls and structures are the classic ones (3.12 to 5.7). What is better than it was:
 *
 *  - a key dies at unmap. It used to live until the pool's flush, and that is why FMRs were called
 *    unsafe. With @cache it has to live on; then it dies at the flush, or after an idle time;
 *  - ib_fmr_pool_map_sg() maps to the byte, so nothing beside the buffer is exposed;
 *  - every map has a new key. An old one is not used again before no packet can be under way that
 *    was let in by it.
 *
 * ib_map_phys_fmr(), ib_fmr_pool_map_phys(), ib_fmr_pool_map_sg() and ib_fmr_pool_unmap() may be
 * called from any context, interrupts off included (on PREEMPT_RT: not from sections that disable
 * interrupts or preemption); all other calls may sleep.
 */
#ifndef _RDMA_IB_FMR_POOL_H
#define _RDMA_IB_FMR_POOL_H

#include <rdma/ib_mr.h>

struct ib_fmr_pool;

/**
 * struct ib_fmr_attr - what an FMR can hold
 * @max_pages: entries of its page list, 1 to 512
 * @max_maps: maps without an unmap between, at least 1
 * @page_shift: log2 of the page size of the list's entries, at least PAGE_SHIFT
 */
struct ib_fmr_attr {
	int max_pages;
	int max_maps;
	u8 page_shift;
};

/**
 * struct ib_fmr - a fast memory region
 * @device: its device
 * @pd: its PD
 * @list: the owner's, to gather FMRs for ib_unmap_fmr()
 * @lkey: key for local use, of the last map
 * @rkey: the same, for remote use
 */
struct ib_fmr {
	struct ib_device *device;
	struct ib_pd *pd;
	struct list_head list;
	u32 lkey;
	u32 rkey;
};

/**
 * struct ib_fmr_pool_param - how a pool is made
 * @max_pages_per_fmr: entries of a page list, 1 to 512
 * @page_shift: log2 of the page size of the list's entries, at least PAGE_SHIFT
 * @access: rights of every FMR of the pool
 * @pool_size: how many FMRs can be mapped at one time
 * @dirty_watermark: released FMRs that set off a flush
 * @flush_function: called after each flush, in thread context with no lock held; it may not call
 *                  ib_flush_fmr_pool() nor ib_destroy_fmr_pool()
 * @flush_arg: for it
 * @cache: keep a mapping after its release, for the next request for the very same pages
 * @key_maps: keep a key for up to this many maps; 0 or 1: a new key each time. A peer that still
 *            has an old key, or a packet that is still under way, then reaches what the FMR is
 *            mapped to next: for peers that are trusted. Not together with @cache
 * @rekey_at_once: take a released key into use again without waiting for packets under way, which
 *                 is what FRWR guarantees, no more: a packet that passed the check under the old
 *                 mapping may be carried out against the next one. For peers that are trusted
 *
 * The last two are new, and off when the structure was zeroed.
 */
struct ib_fmr_pool_param {
	int max_pages_per_fmr;
	int page_shift;
	enum ib_access_flags access;
	int pool_size;
	int dirty_watermark;
	void (*flush_function)(struct ib_fmr_pool *pool, void *arg);
	void *flush_arg;
	unsigned int cache:1;
	unsigned int rekey_at_once:1;
	unsigned int key_maps;
};

/**
 * struct ib_pool_fmr - an FMR of a pool, mapped
 * @fmr: its keys
 * @pool: whose it is
 * @list: the pool's
 * @cache_node: the pool's
 * @ref_count: who uses this mapping; more than one with @cache only
 * @remap_count: maps since the last flush of it
 * @io_virtual_address: iova it is mapped at
 * @page_list_len: entries of @page_list; 0 without @cache
 * @page_list: what it maps, with @cache
 */
struct ib_pool_fmr {
	struct ib_fmr *fmr;
	struct ib_fmr_pool *pool;
	struct list_head list;
	struct hlist_node cache_node;
	int ref_count;
	int remap_count;
	u64 io_virtual_address;
	int page_list_len;
	u64 page_list[];
};

int ib_mr_max_fmr(struct ib_device *device);
struct ib_fmr *ib_alloc_fmr(struct ib_pd *pd, int mr_access_flags, struct ib_fmr_attr *fmr_attr);
int ib_map_phys_fmr(struct ib_fmr *fmr, u64 *page_list, int list_len, u64 iova);
int ib_unmap_fmr(struct list_head *fmr_list);
int ib_dealloc_fmr(struct ib_fmr *fmr);

struct ib_fmr_pool *ib_create_fmr_pool(struct ib_pd *pd, struct ib_fmr_pool_param *params);
void ib_destroy_fmr_pool(struct ib_fmr_pool *pool);
int ib_flush_fmr_pool(struct ib_fmr_pool *pool);
struct ib_pool_fmr *ib_fmr_pool_map_phys(struct ib_fmr_pool *pool_handle, u64 *page_list,
					 int list_len, u64 io_virtual_address);
struct ib_pool_fmr *ib_fmr_pool_map_sg(struct ib_fmr_pool *pool_handle, struct scatterlist *sgl,
				       int nents, unsigned int offset, u64 length, u64 iova);
int ib_fmr_pool_unmap(struct ib_pool_fmr *fmr);

#endif /* _RDMA_IB_FMR_POOL_H */
