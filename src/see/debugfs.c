// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * debugfs: ib_mr/devices/<device>/ with what lives there, what was counted, and a file to ask.
 *
 *	regions pools windows magazines		tables, see listing.c
 *	dma dma_check dma_live			the DMA checker's, see dma/device.c
 *	stats		counters, and each reason a call was refused for
 *	explain		write "KEY IOVA LENGTH RIGHT[,RIGHT] [local]", read the sentence
 *
 * RIGHT is read, write or atomic: what the peer does or, with "local", what the device does for a
 * request of one's own (read: it fetches from the memory). The answer belongs to the open file, so
 * several may ask at once: exec 3<>explain; echo ... >&3; cat <&3. Who only reads gets the answer
 * that was given last and not read yet: echo ... > explain; cat explain.
 *
 * Devices have a folder of their own, so that none can be called like a file of ours, and each
 * follows a renamed device.
 *
 * The folder is the device's own (base/device.c). It goes before the device's state does: removing
 * it waits for who is reading.
 */

#include <linux/ctype.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "base/compat.h"
#include "base/room.h"
#include "mr/access.h"
#include "see/debugfs.h"
#include "see/left.h"

static int stats_show(struct seq_file *m, void *unused)
{
	struct ibmr_dev *dev = m->private;
	int i;

	seq_puts(m, "# name value\n");
	seq_printf(m, "regions %d\n", atomic_read(&dev->regions));
	seq_printf(m, "windows %d\n", atomic_read(&dev->nr_windows));
	seq_printf(m, "blocks %lld\n", atomic64_read(&dev->blocks));
	seq_printf(m, "pinned_pages %lld\n", atomic64_read(&dev->pinned));
	seq_printf(m, "went_stale %lld\n", atomic64_read(&dev->went_stale));
	for (i = 1; i < IB_MR_WHY_COUNT; i++) {
		u64 n = atomic64_read(&dev->refused[i]);

		if (n)
			seq_printf(m, "refused_%s %llu\n", ib_mr_reason_name(i), n);
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

/* explain: per open file */
struct ask {
	struct ibmr_dev *dev;
	struct mutex lock;	/* the answer */
	bool answered;
	char answer[IBMR_ANSWER];
};

static int explain_open(struct inode *inode, struct file *file)
{
	struct ask *ask = kzalloc(sizeof(*ask), GFP_KERNEL);

	if (!ask)
		return -ENOMEM;
	ask->dev = inode->i_private;
	mutex_init(&ask->lock);
	file->private_data = ask;
	return nonseekable_open(inode, file);
}

static int explain_release(struct inode *inode, struct file *file)
{
	kfree(file->private_data);
	return 0;
}

/* "read,write" to rights; negative when a word is none. */
static int parse_rights(char *list, bool local)
{
	int access = 0;
	char *word;

	while ((word = strsep(&list, ","))) {
		if (!strcasecmp(word, "read"))
			access |= local ? 0 : IB_ACCESS_REMOTE_READ;
		else if (!strcasecmp(word, "write"))
			access |= local ? IB_ACCESS_LOCAL_WRITE : IB_ACCESS_REMOTE_WRITE;
		else if (!strcasecmp(word, "atomic") && !local)
			access |= IB_ACCESS_REMOTE_ATOMIC;
		else
			return -EINVAL;
	}
	return access;
}

static ssize_t explain_write(struct file *file, const char __user *from, size_t count,
			     loff_t *pos)
{
	struct ask *ask = file->private_data;
	char line[128], *rest, *word[5];
	size_t n;
	u64 iova, length;
	unsigned int noio;
	int access;
	u32 key;

	if (!count || count >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, count))
		return -EFAULT;
	line[count] = '\0';
	rest = strim(line);
	for (n = 0; n < ARRAY_SIZE(word) && rest; n++) {
		word[n] = strsep(&rest, " \t");
		rest = rest ? skip_spaces(rest) : NULL;
	}
	if (rest || n < 4 || (n == 5 && strcasecmp(word[4], "local")))
		return -EINVAL;
	if (kstrtou32(word[0], 0, &key) || kstrtou64(word[1], 0, &iova) ||
	    kstrtou64(word[2], 0, &length))
		return -EINVAL;
	access = parse_rights(word[3], n == 5);
	if (access < 0)
		return access;

	if (!ibmr_dev_enter(ask->dev, &noio))
		return -ENODEV;
	mutex_lock(&ask->lock);
	ib_mr_explain(ask->dev->ibdev, NULL, key, iova, length, access, ask->answer,
		      sizeof(ask->answer) - 1);
	strcat(ask->answer, "\n");
	ask->answered = true;
	mutex_lock(&ask->dev->told_lock);
	memcpy(ask->dev->told, ask->answer, sizeof(ask->answer));
	mutex_unlock(&ask->dev->told_lock);
	mutex_unlock(&ask->lock);
	ibmr_dev_exit(ask->dev, noio);
	/*
	 * The next read is of this answer, from its start: a write and a read share the position.
	 */
	*pos = 0;
	return count;
}

/* The answer to another open file, if nobody has read it. */
static void take_told(struct ask *ask)
{
	struct ibmr_dev *dev = ask->dev;

	mutex_lock(&dev->told_lock);
	strscpy(ask->answer, dev->told[0] ? dev->told :
		"write: KEY IOVA LENGTH RIGHT[,RIGHT] [local], where RIGHT is read, write or atomic; then read\n",
		sizeof(ask->answer));
	dev->told[0] = '\0';
	mutex_unlock(&dev->told_lock);
	ask->answered = true;
}

static ssize_t explain_read(struct file *file, char __user *to, size_t count, loff_t *pos)
{
	struct ask *ask = file->private_data;
	char answer[IBMR_ANSWER];

	mutex_lock(&ask->lock);
	if (!ask->answered)
		take_told(ask);
	memcpy(answer, ask->answer, sizeof(answer));
	/* Who asked has the answer, so it is not kept for others. */
	mutex_lock(&ask->dev->told_lock);
	if (!strcmp(ask->dev->told, answer))
		ask->dev->told[0] = '\0';
	mutex_unlock(&ask->dev->told_lock);
	mutex_unlock(&ask->lock);
	/* Not with a lock held: it may fault. */
	return simple_read_from_buffer(to, count, pos, answer, strlen(answer));
}

static const struct file_operations explain_fops = {
	.owner		= THIS_MODULE,
	.open		= explain_open,
	.release	= explain_release,
	.read		= explain_read,
	.write		= explain_write,
};

static int dev_add(struct ibmr_dev *dev)
{
	ibmr_listings_add(dev);
	ibmr_debugfs_file(dev, "stats", 0444, &stats_fops);
	ibmr_debugfs_file(dev, "explain", 0600, &explain_fops);
	return 0;
}

const struct ibmr_room ibmr_room_see = {
	.dev_add    = dev_add,
	.dev_remove = ibmr_left_say,
};
