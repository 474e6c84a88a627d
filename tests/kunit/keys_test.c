// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The table of keys by itself, with objects under numbers that no device here deals out: what is
 * put in is found, and memory that holds nothing goes, but for one leaf.
 */
#include <linux/slab.h>

#include "base/compat.h"
#include "base/core.h"
#include "base/late.h"
#include "helpers.h"
#include "base/keys.h"

#define FAR	0xff0U	/* leaf; soft RoCE has numbers for the first 128 */
#define LEAVES	3

static u32 key_of(u32 leaf, u32 slot)
{
	return leaf << 20 | slot << 8;
}

static bool finds(struct ibmr_dev *dev, u32 key, const struct ibmr_keyed *keyed)
{
	bool found;

	rcu_read_lock();
	found = ibmr_key_find(dev, key) == keyed;
	rcu_read_unlock();
	return found;
}

/* The counts are those of the table, and no more than one leaf is empty. */
static void expect_tidy(struct kunit *test, struct ibmr_dev *dev)
{
	unsigned int n, i, used, empty = 0, wrong = 0;

	ibmr_late_settle();	/* empty ones go in a worker */
	spin_lock(&dev->keys_lock);
	for (n = 0; n < IBMR_KEY_SLOTS; n++) {
		for (i = 0, used = 0; dev->keys[n] && i < IBMR_KEY_SLOTS; i++)
			used += !!dev->keys[n]->slot[i];
		wrong += used != dev->keys_used[n];
		empty += dev->keys[n] && !used;
	}
	spin_unlock(&dev->keys_lock);
	KUNIT_EXPECT_EQ(test, wrong, 0U);
	KUNIT_EXPECT_LE(test, empty, 1U);
}

static void leaves_come_and_go(struct kunit *test)
{
	struct ibmr_dev *dev = ibmr_dev_get(ibt_dev(test));
	struct ibmr_keyed one = {}, two = {}, other = {};
	u32 i, last = IBMR_KEY_SLOTS - 1;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_EXPECT_NULL(test, dev->keys[FAR]);
	KUNIT_EXPECT_EQ(test, ibmr_key_add(dev, key_of(FAR, 0), &one), 0);
	KUNIT_EXPECT_EQ(test, ibmr_key_add(dev, key_of(FAR, last), &two), 0);
	KUNIT_EXPECT_TRUE(test, finds(dev, key_of(FAR, 0), &one));
	KUNIT_EXPECT_TRUE(test, finds(dev, key_of(FAR, last) | 0x5a, &two));
	KUNIT_EXPECT_TRUE(test, finds(dev, key_of(FAR, 1), NULL));
	KUNIT_EXPECT_TRUE(test, finds(dev, key_of(FAR + 1, 0), NULL));
	expect_tidy(test, dev);

	/* What replaced another is not taken out with it, nor counted twice. */
	KUNIT_EXPECT_EQ(test, ibmr_key_add(dev, key_of(FAR, 0), &other), 0);
	ibmr_key_remove(dev, key_of(FAR, 0), &one);
	KUNIT_EXPECT_TRUE(test, finds(dev, key_of(FAR, 0), &other));
	expect_tidy(test, dev);
	ibmr_key_remove(dev, key_of(FAR, 0), &other);
	KUNIT_EXPECT_TRUE(test, finds(dev, key_of(FAR, last), &two));
	ibmr_key_remove(dev, key_of(FAR, last), &two);
	KUNIT_EXPECT_TRUE(test, finds(dev, key_of(FAR, last), NULL));

	/* The empty one stays until another is, and is filled again if its numbers come up. */
	KUNIT_EXPECT_NOT_NULL(test, dev->keys[FAR]);
	for (i = 1; i < LEAVES; i++) {
		KUNIT_EXPECT_EQ(test, ibmr_key_add(dev, key_of(FAR + i, i), &one), 0);
		KUNIT_EXPECT_NOT_NULL(test, dev->keys[FAR + i - 1]);
		ibmr_key_remove(dev, key_of(FAR + i, i), &one);
		ibmr_late_settle();
		KUNIT_EXPECT_NULL(test, dev->keys[FAR + i - 1]);
		expect_tidy(test, dev);
	}
	KUNIT_EXPECT_EQ(test, ibmr_key_add(dev, key_of(FAR + i - 1, 7), &one), 0);
	KUNIT_EXPECT_EQ(test, ibmr_key_add(dev, key_of(FAR, 7), &two), 0);
	ibmr_key_remove(dev, key_of(FAR, 7), &two);
	KUNIT_EXPECT_TRUE(test, finds(dev, key_of(FAR + i - 1, 7), &one));
	expect_tidy(test, dev);
	ibmr_key_remove(dev, key_of(FAR + i - 1, 7), &one);
	expect_tidy(test, dev);
	ibmr_dev_put(dev);
}

struct crowd {
	struct ibmr_dev *dev;
	struct ibmr_keyed keyed[2];
};

/* Its own place in one leaf after the other, which the others empty at the same time. */
static int in_and_out(void *arg, int i)
{
	struct crowd *c = arg;
	u32 key, round, rounds = ibt_slow ? 100000 : 3000;

	for (round = 0; round < rounds; round++) {
		key = key_of(FAR + round % LEAVES, i);
		if (ibmr_key_add(c->dev, key, &c->keyed[i]))
			return -ENOMEM;
		if (!finds(c->dev, key, &c->keyed[i]))
			return -ENOENT;
		ibmr_key_remove(c->dev, key, &c->keyed[i]);
		if (!finds(c->dev, key, NULL))
			return -EEXIST;
		cond_resched();
	}
	return 0;
}

static void two_empty_the_same_leaves(struct kunit *test)
{
	struct crowd *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->dev = ibmr_dev_get(ibt_dev(test));
	KUNIT_ASSERT_NOT_NULL(test, c->dev);
	ibt_parallel(test, 2, in_and_out, c);
	expect_tidy(test, c->dev);
	ibmr_dev_put(c->dev);
}

static struct kunit_case keys_cases[] = {
	KUNIT_CASE(leaves_come_and_go),
	KUNIT_CASE(two_empty_the_same_leaves),
	{}
};

IBT_SUITE(keys, keys_cases);
