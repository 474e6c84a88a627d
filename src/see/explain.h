/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_EXPLAIN_H
#define IBMR_EXPLAIN_H

#include <linux/types.h>

/* Enough for the names of all rights. */
#define IBMR_RIGHTS_TEXT	80

const char *ibmr_rights_text(int access, const char *between, char *buf, size_t size);

#endif /* IBMR_EXPLAIN_H */
