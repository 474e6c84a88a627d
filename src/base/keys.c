// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The table of keys: from a key to its object in two loads, however many there are.
 *
 * A device numbers its MRs with 24 bits (the low eight of a key are its variant) and deals the
 * numbers out one after the other, so the table is an array of arrays: leaves of 4,096 places are
 * made when the first of their numbers comes up, and go with the last object in them. One empty
 * leaf stays, the one that became empty last: who registers and deregisters one MR after the other
 * makes no leaf for each. The others are freed by a worker, since freeing under RCU may take memory
 * and a notifier that deregisters may not. (siw deals out at random, so there most registrations do
 * make one.) An xarray takes three times as long to answer; a lookup is most of what a translation
 * does.
 *
 * Readers are under RCU and take no lock. An object is in the table before anyone can know its key,
 * and is freed an RCU grace period after it was taken out, and so is a leaf.
 */

#include <linux/slab.h>
#include <linux/string.h>

#include "base/compat.h"
#include "base/keys.h"
#include "base/late.h"

/* Replaces whatever was there. Return: 0 or -ENOMEM. */
int ibmr_key_add(struct ibmr_dev *dev, u32 key, struct ibmr_keyed *keyed)
{
	struct ibmr_key_leaf *fresh = NULL, *leaf;
	struct ibmr_keyed **slot;
	u32 n = key >> 20;

	spin_lock(&dev->keys_lock);
	while (!dev->keys[n] && !fresh) {
		spin_unlock(&dev->keys_lock);
		fresh = kvzalloc(sizeof(*fresh), GFP_KERNEL);
		if (!fresh)
			return -ENOMEM;
		spin_lock(&dev->keys_lock);
	}
	leaf = dev->keys[n];
	if (!leaf) {
		leaf = fresh;
		fresh = NULL;
		/* Found empty, if found: pairs with the dependency in ibmr_key_find(). */
		smp_store_release(&dev->keys[n], leaf);
	}
	slot = &leaf->slot[(key >> 8) % IBMR_KEY_SLOTS];
	if (!*slot)
		dev->keys_used[n]++;
	/* Whoever finds it finds all of it: likewise. */
	smp_store_release(slot, keyed);
	spin_unlock(&dev->keys_lock);
	kvfree(fresh);
	return 0;
}
IBMR_EXPORT_INTERNAL(ibmr_key_add);

/* Frees the empty leaves but the spare one. */
static void keys_tidy(struct work_struct *work)
{
	struct ibmr_dev *dev = container_of(work, struct ibmr_dev, keys_tidy);
	struct ibmr_key_leaf *empty[8];
	unsigned int i, n, nr;

	do {
		nr = 0;
		spin_lock(&dev->keys_lock);
		for (n = 0; n < IBMR_KEY_SLOTS && nr < ARRAY_SIZE(empty); n++) {
			if (!dev->keys[n] || dev->keys_used[n] || n == dev->keys_spare)
				continue;
			empty[nr++] = dev->keys[n];
			WRITE_ONCE(dev->keys[n], NULL);
		}
		spin_unlock(&dev->keys_lock);
		if (nr)
			synchronize_rcu();
		for (i = 0; i < nr; i++)
			kvfree(empty[i]);
	} while (nr);
	ibmr_dev_put(dev);
}

void ibmr_keys_init(struct ibmr_dev *dev)
{
	spin_lock_init(&dev->keys_lock);
	INIT_WORK(&dev->keys_tidy, keys_tidy);
}

/* If it is still @keyed that is there. Takes no memory and waits for nobody. */
void ibmr_key_remove(struct ibmr_dev *dev, u32 key, struct ibmr_keyed *keyed)
{
	struct ibmr_key_leaf *leaf;
	u32 n = key >> 20, i = (key >> 8) % IBMR_KEY_SLOTS;
	bool empty = false;

	spin_lock(&dev->keys_lock);
	leaf = dev->keys[n];
	if (leaf && leaf->slot[i] == keyed) {
		WRITE_ONCE(leaf->slot[i], NULL);
		if (!--dev->keys_used[n] && dev->keys_spare != n) {
			empty = dev->keys[dev->keys_spare] && !dev->keys_used[dev->keys_spare];
			dev->keys_spare = n;
		}
	}
	spin_unlock(&dev->keys_lock);
	if (!empty)
		return;
	refcount_inc(&dev->refs);
	if (!queue_work(ibmr_late_wq, &dev->keys_tidy))
		ibmr_dev_put(dev);	/* it is in the queue, with a reference */
}
IBMR_EXPORT_INTERNAL(ibmr_key_remove);

/*
 * The first one at *@index or behind it, *@index then its own; NULL when there is none. To be
 * followed under RCU of the caller's, or where nobody else frees it.
 */
struct ibmr_keyed *ibmr_key_next(const struct ibmr_dev *dev, u32 *index)
{
	struct ibmr_keyed *keyed = NULL;
	u32 i;

	rcu_read_lock();
	for (i = *index; i < BIT(24) && !keyed; i++) {
		const struct ibmr_key_leaf *leaf = READ_ONCE(dev->keys[i / IBMR_KEY_SLOTS]);

		*index = i;
		if (leaf)
			keyed = READ_ONCE(leaf->slot[i % IBMR_KEY_SLOTS]);
		else
			i |= IBMR_KEY_SLOTS - 1;
	}
	rcu_read_unlock();
	return keyed;
}

/* Nobody reads it any more. */
void ibmr_keys_free(struct ibmr_dev *dev)
{
	unsigned int i;

	for (i = 0; i < IBMR_KEY_SLOTS; i++) {
		if (!dev->keys[i])
			continue;
		WARN_ON(dev->keys_used[i] || memchr_inv(dev->keys[i], 0, sizeof(*dev->keys[i])));
		kvfree(dev->keys[i]);
	}
}
