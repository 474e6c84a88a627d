// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Names of devices: strings that stay, because a device may be renamed at any time.
 *
 * Log lines and traces take a device's name where no lock could be held, an interrupt included. So
 * a name is a pointer to a string that never changes; a rename exchanges the pointer. What was a
 * name once is kept until the module goes, and is found again when a device is called so again:
 * there are as many as different names were ever given, which a person types.
 */

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "base/compat.h"
#include "base/core.h"
#include "base/fault.h"

struct kept {
	struct list_head entry;
	char name[IB_DEVICE_NAME_MAX];
};

static LIST_HEAD(names);
static DEFINE_MUTEX(names_lock);

/* The string that is equal to @name and stays; NULL without memory. Sleeps. */
const char *ibmr_name(const char *name)
{
	struct kept *k;

	mutex_lock(&names_lock);
	list_for_each_entry(k, &names, entry)
		if (!strcmp(k->name, name))
			goto out;
	k = ibmr_should_fail(IBMR_FAULT_ALLOC) ? NULL : kzalloc(sizeof(*k), GFP_KERNEL);
	if (k) {
		strscpy(k->name, name, sizeof(k->name));
		list_add(&k->entry, &names);
	}
out:
	mutex_unlock(&names_lock);
	return k ? k->name : NULL;
}

void ibmr_names_exit(void)
{
	struct kept *k, *next;

	list_for_each_entry_safe(k, next, &names, entry)
		kfree(k);
}
