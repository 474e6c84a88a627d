/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the suites of the DMA checker share.
 */
#ifndef IBT_DMA_CHK_H
#define IBT_DMA_CHK_H

#include <rdma/ib_dma.h>

#include "helpers.h"
#include "dma/dma.h"

/* Set the mode of the case's device. */
void chk_mode(struct kunit *test, enum ib_mr_dma_check_mode mode);

/*
 * Begin: a mode, until the end of the case, no reports, and no mapping that an unmap of an unknown
 * address might be of.
 */
struct ib_device *chk_begin(struct kunit *test, enum ib_mr_dma_check_mode mode);

const char *chk_name(enum ib_mr_dma_fault fault);
void chk_faults(struct ib_device *dev, u64 *n);

/* Since chk_faults(@dev, @before), @fault was found @n times, and no other. */
void chk_expect(struct kunit *test, struct ib_device *dev, const u64 *before,
		enum ib_mr_dma_fault fault, u64 n, const char *what);

/* Map, and look at the error. */
u64 chk_map(struct kunit *test, struct ib_device *dev, void *buf, size_t size,
	    enum dma_data_direction dir);

#endif /* IBT_DMA_CHK_H */
