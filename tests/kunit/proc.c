// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Processes for the cases: see proc.h.
 *
 * The kernel's user-mode helper starts them; its init callback runs in the new task, which is how
 * we get hold of it. Their address space is entered by kthread_use_mm() and left again in each
 * call. mm_users is held only meanwhile: a process that is killed really loses its memory.
 */
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/umh.h>
#include "proc.h"

static char *const ibt_env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", NULL };

static int ibt_proc_born(struct subprocess_info *info, struct cred *new)
{
	struct ibt_proc *p = info->data;

	p->task = get_task_struct(current);
	return 0;
}

static void ibt_proc_free(struct kunit *test, void *arg)
{
	struct ibt_proc *p = arg;

	if (p->mm)
		KUNIT_EXPECT_EQ_MSG(test, ibt_proc_pinned(p), (u64)0, "pages are still pinned");
	if (p->task) {
		ibt_proc_kill(p);
		put_task_struct(p->task);
	}
	if (p->mm)
		mmdrop(p->mm);
	kfree(p);
}

struct ibt_proc *ibt_proc(struct kunit *test, const char *script)
{
	char *sleeper[3] = { "/bin/sleep", "100000", NULL };
	char *shell[4] = { "/bin/sh", "-c", (char *)script, NULL };
	struct ibt_proc *p = kzalloc(sizeof(*p), GFP_KERNEL);
	struct subprocess_info *info;

	KUNIT_ASSERT_NOT_NULL(test, p);
	p->test = test;
	ibt_defer(test, ibt_proc_free, p);
	info = call_usermodehelper_setup(script ? shell[0] : sleeper[0], script ? shell : sleeper,
					 (char **)ibt_env, GFP_KERNEL, ibt_proc_born, NULL, p);
	KUNIT_ASSERT_NOT_NULL(test, info);
	KUNIT_ASSERT_EQ(test, call_usermodehelper_exec(info, UMH_WAIT_EXEC), 0);
	KUNIT_ASSERT_NOT_NULL(test, p->task);
	p->mm = get_task_mm(p->task);
	KUNIT_ASSERT_NOT_NULL(test, p->mm);
	mmgrab(p->mm);
	mmput(p->mm);
	return p;
}

/* When it returns the process has no memory any more. */
void ibt_proc_kill(struct ibt_proc *p)
{
	int i;

	send_sig(SIGKILL, p->task, 1);
	for (i = 0; i < 1000 && (!p->task->exit_state ||
				 (p->mm && atomic_read(&p->mm->mm_users))); i++)
		msleep(20);
	KUNIT_EXPECT_LT_MSG(p->test, i, 1000, "the process does not die");
}

bool ibt_proc_in(struct ibt_proc *p)
{
	if (!(current->flags & PF_KTHREAD) || current->mm || !mmget_not_zero(p->mm)) {
		KUNIT_FAIL(p->test, "the address space cannot be entered");
		return false;
	}
	kthread_use_mm(p->mm);
	return true;
}

void ibt_proc_out(struct ibt_proc *p)
{
	kthread_unuse_mm(p->mm);
	mmput(p->mm);
}

u64 ibt_proc_pinned(struct ibt_proc *p)
{
	return atomic64_read(&p->mm->pinned_vm);
}

unsigned long ibt_map_at(struct ibt_proc *p, unsigned long addr, size_t len, int prot, int flags,
			 struct file *file)
{
	unsigned long at = -EINVAL;

	if (!file)
		flags |= MAP_ANONYMOUS;
	if (ibt_proc_in(p)) {
		at = vm_mmap(file, addr, len, prot, flags, 0);
		ibt_proc_out(p);
	}
	KUNIT_ASSERT_FALSE_MSG(p->test, IS_ERR_VALUE(at), "mmap: %ld", (long)at);
	return at;
}

unsigned long ibt_user_map(struct ibt_proc *p, size_t len, int prot)
{
	return ibt_map_at(p, 0, len, prot, MAP_PRIVATE, NULL);
}

int ibt_user_unmap(struct ibt_proc *p, unsigned long addr, size_t len)
{
	int err = -ESRCH;

	if (ibt_proc_in(p)) {
		err = vm_munmap(addr, len);
		ibt_proc_out(p);
	}
	return err;
}

int ibt_poke(struct ibt_proc *p, unsigned long addr, const void *buf, size_t len)
{
	int err = -ESRCH;

	if (ibt_proc_in(p)) {
		err = copy_to_user((void __user *)addr, buf, len) ? -EFAULT : 0;
		ibt_proc_out(p);
	}
	return err;
}

int ibt_peek(struct ibt_proc *p, unsigned long addr, void *buf, size_t len)
{
	int err = -ESRCH;

	if (ibt_proc_in(p)) {
		err = copy_from_user(buf, (void __user *)addr, len) ? -EFAULT : 0;
		ibt_proc_out(p);
	}
	return err;
}

#define CHUNK	SZ_64K

int ibt_poke_pattern(struct ibt_proc *p, unsigned long addr, size_t len, u64 seed)
{
	u8 *buf = kvmalloc(CHUNK, GFP_KERNEL);
	size_t off, i, n;
	int err = buf ? 0 : -ENOMEM;

	for (off = 0; off < len && !err; off += n) {
		n = min_t(size_t, CHUNK, len - off);
		for (i = 0; i < n; i++)
			buf[i] = ibt_pat(seed, off + i);
		err = ibt_poke(p, addr + off, buf, n);
	}
	kvfree(buf);
	KUNIT_EXPECT_EQ(p->test, err, 0);
	return err;
}

size_t ibt_peek_diff(struct ibt_proc *p, unsigned long addr, size_t len, u64 seed)
{
	u8 *buf = kvmalloc(CHUNK, GFP_KERNEL);
	size_t off = 0, i, n;

	while (buf && off < len) {
		n = min_t(size_t, CHUNK, len - off);
		if (ibt_peek(p, addr + off, buf, n))
			break;
		for (i = 0; i < n && buf[i] == ibt_pat(seed, off + i); i++)
			;
		off += i;
		if (i < n)
			break;
	}
	kvfree(buf);
	return off;
}

struct ib_mr *ibt_reg_user(struct ibt_proc *p, struct ib_pd *pd, unsigned long start, size_t len,
			   int access, const u64 *iova)
{
	struct ib_mr *mr = ERR_PTR(-ESRCH);

	if (ibt_proc_in(p)) {
		mr = ib_mr_reg_user(pd, start, len, access, iova);
		ibt_proc_out(p);
	}
	return mr;
}

int ibt_shell(const char *command)
{
	char *shell[4] = { "/bin/sh", "-c", (char *)command, NULL };

	return call_usermodehelper(shell[0], shell, (char **)ibt_env, UMH_WAIT_PROC);
}

/* A kernel thread, as a case is, has no file system of its own from 7.0 on: insmod's is used. */
struct file *ibt_open(const char *path, int flags, umode_t mode)
{
	return file_open_root(&ibt_root, path, flags, mode);
}

int ibt_write_file(const char *path, const char *text)
{
	struct file *f = ibt_open(path, O_WRONLY, 0);
	ssize_t n = PTR_ERR_OR_ZERO(f);
	loff_t pos = 0;

	if (!n) {
		n = kernel_write(f, text, strlen(text), &pos);
		filp_close(f, NULL);
	}
	return n < 0 ? n : 0;
}

int ibt_read_file(const char *path, char *buf, size_t size)
{
	struct file *f = ibt_open(path, O_RDONLY, 0);
	ssize_t n = PTR_ERR_OR_ZERO(f);
	loff_t pos = 0;

	buf[0] = '\0';
	if (!n) {
		n = kernel_read(f, buf, size - 1, &pos);
		filp_close(f, NULL);
	}
	if (n > 0)
		buf[n] = '\0';
	return n < 0 ? n : 0;
}

static int ibt_param_set(const char *name, unsigned long value)
{
	char path[96], text[24];

	snprintf(path, sizeof(path), "/sys/module/ib_mr/parameters/%s", name);
	snprintf(text, sizeof(text), "%lu", value);
	return ibt_write_file(path, text);
}

static void ibt_param_reset(struct kunit *test, void *name)
{
	KUNIT_EXPECT_EQ(test, ibt_param_set(name, 0), 0);
}

void ibt_param(struct kunit *test, const char *name, unsigned long value)
{
	ibt_defer(test, ibt_param_reset, (void *)name);
	KUNIT_ASSERT_EQ(test, ibt_param_set(name, value), 0);
}
