// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The table of keys: from a key to its object in two loads, however many there are.
 *
 * A device numbers its MRs with 24 bits (the low eight of a key are its variant) and deals the
 * numbers out one after the other, so the table is an array of arrays: leaves of 4,096 places are
 * made when the first of their numbers comes up, and stay until the device's state goes. (siw deals
 * out at random, so there each registration may make a leaf, 128 MiB of them at the very most.) An
 * xarray would take a leaf's memory back, and takes three times as long to answer; a lookup is most
 * of what a translation does.
 *
 * Readers are under RCU and take no lock. An object is in the table before anyone can know its key,
 * and is freed an RCU grace period after it was taken out; leaves are freed with the device's
 * state, likewise.
 */

#include <linux/slab.h>
#include <linux/string.h>

#include "keys.h"

/* Replaces whatever was there. Return: 0 or -ENOMEM. */
int ibmr_key_add(struct ibmr_dev *dev, u32 key, struct ibmr_keyed *keyed)
{
	struct ibmr_key_leaf **at = &dev->keys[key >> 20], *leaf = READ_ONCE(*at), *other;

	if (!leaf) {
		leaf = kvzalloc(sizeof(*leaf), GFP_KERNEL);
		if (!leaf)
			return -ENOMEM;
		other = cmpxchg(at, NULL, leaf);
		if (other) {
			kvfree(leaf);
			leaf = other;
		}
	}
	/* Whoever finds it finds all of it: pairs with the dependency in ibmr_key_find(). */
	smp_store_release(&leaf->slot[(key >> 8) % IBMR_KEY_SLOTS], keyed);
	return 0;
}

/* If it is still @keyed that is there. Any context. */
void ibmr_key_remove(struct ibmr_dev *dev, u32 key, struct ibmr_keyed *keyed)
{
	struct ibmr_key_leaf *leaf = READ_ONCE(dev->keys[key >> 20]);

	if (leaf)
		cmpxchg(&leaf->slot[(key >> 8) % IBMR_KEY_SLOTS], keyed, NULL);
}

/* The first one at *@index or behind it, *@index then its own; NULL when there is none. */
struct ibmr_keyed *ibmr_key_next(const struct ibmr_dev *dev, u32 *index)
{
	u32 i;

	for (i = *index; i < BIT(24); i++) {
		const struct ibmr_key_leaf *leaf = READ_ONCE(dev->keys[i / IBMR_KEY_SLOTS]);
		struct ibmr_keyed *keyed;

		if (!leaf) {
			i |= IBMR_KEY_SLOTS - 1;
			continue;
		}
		keyed = READ_ONCE(leaf->slot[i % IBMR_KEY_SLOTS]);
		if (keyed) {
			*index = i;
			return keyed;
		}
	}
	return NULL;
}

/* Nobody reads it any more. */
void ibmr_keys_free(struct ibmr_dev *dev)
{
	unsigned int i;

	for (i = 0; i < IBMR_KEY_SLOTS; i++) {
		if (!dev->keys[i])
			continue;
		WARN_ON(memchr_inv(dev->keys[i], 0, sizeof(*dev->keys[i])));
		kvfree(dev->keys[i]);
	}
}
