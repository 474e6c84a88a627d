// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A file's pages, as a storage ULP would have them: straight from the page cache, held by a
 * reference each and not copied. A held page stays what it is when the file is truncated or
 * removed meanwhile, so the peer then reads what the file was.
 *
 * tmpfs fills its page cache through a function of its own; everything else goes through the
 * mapping's read_folio. Files without a page cache (DAX, special files) are refused.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/shmem_fs.h>
#include "demo.h"

/* A demo, not a file server: keeps every count in 32 bits and a typo from eating the machine. */
#define DEMO_FILE_MAX	SZ_1G

static struct page *read_page(struct file *filp, pgoff_t index)
{
	struct address_space *mapping = filp->f_mapping;

	if (mapping->host->i_sb->s_magic == TMPFS_MAGIC)
		return shmem_read_mapping_page(mapping, index);
	return read_mapping_page(mapping, index, filp);
}

static int check_file(struct file *filp)
{
	struct inode *inode = filp->f_mapping->host;

	if (!S_ISREG(inode->i_mode))
		return -EINVAL;
	if (IS_DAX(inode))
		return -EOPNOTSUPP;
	if (inode->i_sb->s_magic != TMPFS_MAGIC && !filp->f_mapping->a_ops->read_folio)
		return -EOPNOTSUPP;
	if (i_size_read(inode) <= 0)
		return -ENODATA;
	if (i_size_read(inode) > DEMO_FILE_MAX)
		return -EFBIG;
	return 0;
}

int demo_file_load(struct demo_file *file, const char *path)
{
	unsigned int npages;
	struct file *filp;
	int err;

	filp = filp_open(path, O_RDONLY | O_LARGEFILE, 0);
	if (IS_ERR(filp)) {
		pr_err("cannot open %s: %pe\n", path, filp);
		return PTR_ERR(filp);
	}
	err = check_file(filp);
	if (err) {
		pr_err("cannot use %s: %d\n", path, err);
		goto out;
	}

	file->size = i_size_read(filp->f_mapping->host);
	npages = DIV_ROUND_UP(file->size, PAGE_SIZE);
	file->pages = kvmalloc_array(npages, sizeof(*file->pages), GFP_KERNEL);
	if (!file->pages) {
		err = -ENOMEM;
		goto out;
	}
	for (file->npages = 0; file->npages < npages; file->npages++) {
		struct page *page = read_page(filp, file->npages);

		if (IS_ERR(page)) {
			err = PTR_ERR(page);
			pr_err("cannot read page %u of %s: %d\n", file->npages, path, err);
			demo_file_free(file);
			goto out;
		}
		file->pages[file->npages] = page;
		cond_resched();
	}
out:
	filp_close(filp, NULL);
	return err;
}

void demo_file_free(struct demo_file *file)
{
	while (file->npages)
		put_page(file->pages[--file->npages]);
	kvfree(file->pages);
	file->pages = NULL;
}
