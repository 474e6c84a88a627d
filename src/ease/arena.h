/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_ARENA_H
#define IBMR_ARENA_H

int ibmr_arena_release(void *object);

#endif /* IBMR_ARENA_H */
