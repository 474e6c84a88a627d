/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A process of user space whose memory a case registers.
 *
 * Cases run in a kernel thread, so they lend the address space of a real process: it sleeps, or
 * runs a shell script, and can be killed or made to fork. The thread is in the address space only
 * inside these calls, so a case that is aborted leaves nothing behind. The process is killed at the
 * end of the case, and must have nothing pinned then.
 */
#ifndef IBT_PROC_H
#define IBT_PROC_H

#include <linux/mman.h>
#include <linux/sched/mm.h>
#include "helpers.h"

struct ibt_proc {
	struct kunit *test;
	struct task_struct *task;
	struct mm_struct *mm;
};

/* @script: for a shell; NULL for a process that sleeps */
struct ibt_proc *ibt_proc(struct kunit *test, const char *script);
void ibt_proc_kill(struct ibt_proc *p);
bool ibt_proc_in(struct ibt_proc *p);
void ibt_proc_out(struct ibt_proc *p);
u64 ibt_proc_pinned(struct ibt_proc *p);	/* pages, as the kernel accounts them */

unsigned long ibt_map_at(struct ibt_proc *p, unsigned long addr, size_t len, int prot, int flags,
			 struct file *file);
unsigned long ibt_user_map(struct ibt_proc *p, size_t len, int prot);
int ibt_user_unmap(struct ibt_proc *p, unsigned long addr, size_t len);
/* The process's own view of its memory: it stores and loads. */
int ibt_poke(struct ibt_proc *p, unsigned long addr, const void *buf, size_t len);
int ibt_peek(struct ibt_proc *p, unsigned long addr, void *buf, size_t len);
/* Fill with the pattern of a seed, as ibt_buf has it; the first place that does not have it. */
int ibt_poke_pattern(struct ibt_proc *p, unsigned long addr, size_t len, u64 seed);
size_t ibt_peek_diff(struct ibt_proc *p, unsigned long addr, size_t len, u64 seed);

struct ib_mr *ibt_reg_user(struct ibt_proc *p, struct ib_pd *pd, unsigned long start, size_t len,
			   int access, const u64 *iova);

/* Run a shell command in user space, to its end; its exit status. */
int ibt_shell(const char *command);
/* Write a file of the guest, or read one as a string. */
struct file *ibt_open(const char *path, int flags, umode_t mode);
int ibt_write_file(const char *path, const char *text);
int ibt_read_file(const char *path, char *buf, size_t size);
/* A module parameter of ib_mr, set until the case ends. */
void ibt_param(struct kunit *test, const char *name, unsigned long value);

#endif /* IBT_PROC_H */
