/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * DMA attributes, which were a structure behind a pointer up to 4.7 and are a word of flags since.
 * The ib_dma_*_attrs() of <rdma/ib_dma.h> take both, once this is included.
 */
#ifndef _CLASSIC_LINUX_DMA_ATTRS_H
#define _CLASSIC_LINUX_DMA_ATTRS_H

#include <linux/dma-mapping.h>

struct dma_attrs {
	unsigned long flags;
};

#define DEFINE_DMA_ATTRS(name)	struct dma_attrs name = {}

/* A hint that no platform of today knows. */
#ifndef DMA_ATTR_WRITE_BARRIER
#define DMA_ATTR_WRITE_BARRIER	0UL
#endif

static inline void init_dma_attrs(struct dma_attrs *attrs)
{
	attrs->flags = 0;
}

static inline void dma_set_attr(unsigned long attr, struct dma_attrs *attrs)
{
	if (attrs)
		attrs->flags |= attr;
}

static inline int dma_get_attr(unsigned long attr, struct dma_attrs *attrs)
{
	return attrs && attrs->flags & attr;
}

static inline unsigned long ib_mr_dma_attrs_of(const struct dma_attrs *attrs)
{
	return attrs ? attrs->flags : 0;
}

#define ib_mr_dma_attrs(attrs)							\
	__builtin_choose_expr(__same_type(attrs, struct dma_attrs *) ||		\
			      __same_type(attrs, const struct dma_attrs *),	\
			      ib_mr_dma_attrs_of((const void *)(unsigned long)(attrs)), \
			      (unsigned long)(attrs))

#endif /* _CLASSIC_LINUX_DMA_ATTRS_H */
