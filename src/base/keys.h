/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef IBMR_KEYS_H
#define IBMR_KEYS_H

#include "base/core.h"

#define IBMR_KEY_SLOTS	4096U	/* of a leaf, and leaves: 24 bits of key index in all */

struct ibmr_key_leaf {
	struct ibmr_keyed *slot[IBMR_KEY_SLOTS];
};

/* What a key leads to, whatever its variant, or NULL. Under RCU of any kind. */
static __always_inline struct ibmr_keyed *ibmr_key_find(const struct ibmr_dev *dev, u32 key)
{
	const struct ibmr_key_leaf *leaf = READ_ONCE(dev->keys[key >> 20]);

	return likely(leaf) ? READ_ONCE(leaf->slot[(key >> 8) % IBMR_KEY_SLOTS]) : NULL;
}

void ibmr_keys_init(struct ibmr_dev *dev);
/* Sleeps. */
int ibmr_key_add(struct ibmr_dev *dev, u32 key, struct ibmr_keyed *keyed);
void ibmr_key_remove(struct ibmr_dev *dev, u32 key, struct ibmr_keyed *keyed);

struct ibmr_keyed *ibmr_key_next(const struct ibmr_dev *dev, u32 *index);
void ibmr_keys_free(struct ibmr_dev *dev);

#endif /* IBMR_KEYS_H */
