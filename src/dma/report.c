// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA checker: reports.
 *
 * Every fault is counted for its device; a report is made once for each fault and call site, as one
 * block in the log and one entry of dma_reports in debugfs. Both call chains are in it by name, as
 * text: the module they lead into may be gone when somebody reads it. A hint is what may be a fault
 * and may not; it is counted apart, is an entry of dma_hints, and not in the log.
 *
 * The text is made where the fault is seen, in any context, under no lock. It is printed a moment
 * later by a work, since thirty lines on a serial console take longer than interrupts may be off.
 *
 * The locks here are the innermost.
 */

#define pr_fmt(fmt) "ib_mr: " fmt

#include <linux/debugfs.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/printk.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "base/compat.h"
#include "dma/check.h"

#define IBMR_DMA_SITES		256
#define IBMR_DMA_REPORTS	128
#define IBMR_DMA_TEXT		4096

struct ibmr_dma_site {
	unsigned long ip;
	enum ib_mr_dma_fault fault;
	bool hint;
};

struct ibmr_dma_text {
	struct list_head entry;
	bool printed;
	size_t len;
	char text[];
};

/* Either kind: texts, the youngest last. */
struct ibmr_dma_texts {
	struct list_head list;
	unsigned int nr;
};

static struct ibmr_dma_site ibmr_dma_site[IBMR_DMA_SITES];
static unsigned int ibmr_dma_nsites;
static struct ibmr_dma_texts ibmr_dma_told = { LIST_HEAD_INIT(ibmr_dma_told.list) };
static struct ibmr_dma_texts ibmr_dma_hinted = { LIST_HEAD_INIT(ibmr_dma_hinted.list) };

/* Guards the four above. */
static DEFINE_RAW_SPINLOCK(ibmr_dma_report_lock);

static void ibmr_dma_print_work(struct work_struct *work);
static DECLARE_WORK(ibmr_dma_printer, ibmr_dma_print_work);

const char *ibmr_dma_fault_name(enum ib_mr_dma_fault fault)
{
	static const char *const names[] = {
#define IBMR_DMA_NAME(NAME, name, text) #name,
		IB_MR_DMA_FAULTS(IBMR_DMA_NAME)
	};

	return names[fault];
}

static const char *ibmr_dma_fault_text(enum ib_mr_dma_fault fault)
{
	static const char *const texts[] = {
#define IBMR_DMA_SENTENCE(NAME, name, text) text,
		IB_MR_DMA_FAULTS(IBMR_DMA_SENTENCE)
	};

	return texts[fault];
}

const char *ibmr_dma_dir_name(enum dma_data_direction dir)
{
	static const char *const names[] = {
		[DMA_BIDIRECTIONAL] = "BIDIRECTIONAL",
		[DMA_TO_DEVICE]	    = "TO_DEVICE",
		[DMA_FROM_DEVICE]   = "FROM_DEVICE",
		[DMA_NONE]	    = "NONE",
	};

	return (unsigned int)dir < ARRAY_SIZE(names) ? names[dir] : "of no known direction";
}

/* Is it the first of its kind at this place? */
static bool ibmr_dma_first_at(enum ib_mr_dma_fault fault, bool hint, unsigned long ip)
{
	unsigned long flags;
	bool first = false;
	unsigned int i;

	raw_spin_lock_irqsave(&ibmr_dma_report_lock, flags);
	for (i = 0; i < ibmr_dma_nsites; i++)
		if (ibmr_dma_site[i].ip == ip && ibmr_dma_site[i].fault == fault &&
		    ibmr_dma_site[i].hint == hint)
			goto out;
	if (ibmr_dma_nsites < IBMR_DMA_SITES) {
		ibmr_dma_site[ibmr_dma_nsites].ip = ip;
		ibmr_dma_site[ibmr_dma_nsites].fault = fault;
		ibmr_dma_site[ibmr_dma_nsites++].hint = hint;
		first = true;
	}
out:
	raw_spin_unlock_irqrestore(&ibmr_dma_report_lock, flags);
	return first;
}

/* Count a fault; is it to be reported? */
bool ibmr_dma_report_due(struct ibmr_dma_dev *dd, enum ib_mr_dma_fault fault, unsigned long ip)
{
	atomic64_inc(&dd->fault[fault]);
	return ibmr_dma_first_at(fault, false, ip);
}

static __printf(2, 3) void ibmr_dma_say(struct ibmr_dma_text *t, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	t->len += vscnprintf(t->text + t->len, IBMR_DMA_TEXT - t->len, fmt, args);
	va_end(args);
}

static void ibmr_dma_say_stack(struct ibmr_dma_text *t, const char *title,
			       const struct ibmr_dma_stack *stack)
{
	unsigned int i;

	ibmr_dma_say(t, "  %s\n", title);
	for (i = 0; i < stack->nr; i++)
		ibmr_dma_say(t, "    %pS\n", (void *)stack->ip[i]);
}

static void ibmr_dma_say_chain(struct ibmr_dma_text *t, const char *title,
			       const struct ibmr_dma_chain *chain, unsigned long ip)
{
	if (chain)
		ibmr_dma_say_stack(t, title, &chain->stack);
	else
		ibmr_dma_say(t, "  %s\n    %pS\n", title, (void *)ip);
}

static void ibmr_dma_say_map(struct ibmr_dma_text *t, const struct ibmr_dma_map *map)
{
	static const char *const how[] = { "single", "list", "coherent" };
	unsigned long gone;
	char title[160];
	int n;

	n = scnprintf(title, sizeof(title), "the mapping: %s, ", how[map->how]);
	if (map->how == IBMR_DMA_SG)
		n += scnprintf(title + n, sizeof(title) - n, "%d entries, ", map->nents);
	scnprintf(title + n, sizeof(title) - n, "%llu bytes at %#llx, %s%s; %u ms ago by %s/%d at",
		  map->size, map->ent[0].start, ibmr_dma_dir_name(map->dir),
		  map->bounced ? ", bounced" : "", jiffies_to_msecs(jiffies - map->when),
		  map->comm, map->pid);
	ibmr_dma_say_chain(t, title, map->at, map->ip);
	/* An unmap may race with the call at fault: pairs with ibmr_dma_unmap_taken(). */
	gone = smp_load_acquire(&map->gone_ip);
	if (gone)
		ibmr_dma_say_chain(t, "it was unmapped at", map->gone_at, gone);
}

/* Line by line; works of one kind do not run at the same time, so the lines stay together. */
static void ibmr_dma_print(const char *text)
{
	while (*text) {
		const char *end = strchrnul(text, '\n');

		pr_err("%.*s\n", (int)(end - text), text);
		text = *end ? end + 1 : end;
	}
}

static void ibmr_dma_print_work(struct work_struct *work)
{
	char *text = kmalloc(IBMR_DMA_TEXT, GFP_KERNEL);
	struct ibmr_dma_text *t;
	unsigned long flags;
	bool more = text;

	while (more) {
		more = false;
		raw_spin_lock_irqsave(&ibmr_dma_report_lock, flags);
		list_for_each_entry(t, &ibmr_dma_told.list, entry) {
			if (t->printed)
				continue;
			t->printed = true;
			memcpy(text, t->text, t->len + 1);
			more = true;
			break;
		}
		raw_spin_unlock_irqrestore(&ibmr_dma_report_lock, flags);
		if (more)
			ibmr_dma_print(text);
	}
	kfree(text);
}

static void ibmr_dma_keep(struct ibmr_dma_text *t, struct ibmr_dma_texts *texts)
{
	struct ibmr_dma_text *old = NULL;
	unsigned long flags;

	raw_spin_lock_irqsave(&ibmr_dma_report_lock, flags);
	list_add_tail(&t->entry, &texts->list);
	if (texts->nr++ == IBMR_DMA_REPORTS) {
		old = list_first_entry(&texts->list, struct ibmr_dma_text, entry);
		list_del(&old->entry);
		texts->nr--;
	}
	raw_spin_unlock_irqrestore(&ibmr_dma_report_lock, flags);
	kfree(old);
	if (texts == &ibmr_dma_told)
		schedule_work(&ibmr_dma_printer);
}

static void ibmr_dma_vreport(struct ibmr_dma_dev *dd, enum ib_mr_dma_fault fault,
			     bool hint, const struct ibmr_dma_stack *here,
			     struct ibmr_dma_map *map, struct va_format *vaf)
{
	struct ibmr_dma_text *t;

	t = kmalloc(sizeof(*t) + IBMR_DMA_TEXT, GFP_ATOMIC | __GFP_NOWARN);
	if (!t && hint)
		return;
	if (!t) {
		pr_err("%s: DMA: %s [%s]: %pV\n", dd->name, ibmr_dma_fault_text(fault),
		       ibmr_dma_fault_name(fault), vaf);
		return;
	}
	t->len = 0;
	t->printed = false;
	ibmr_dma_say(t, "%s: DMA%s: %s [%s]\n  %pV\n", dd->name, hint ? " hint" : "",
		     ibmr_dma_fault_text(fault), ibmr_dma_fault_name(fault), vaf);
	if (here)
		ibmr_dma_say_stack(t, "here:", here);
	if (map)
		ibmr_dma_say_map(t, map);
	ibmr_dma_keep(t, hint ? &ibmr_dma_hinted : &ibmr_dma_told);
}

/* Make a report that is due. @here: the call at fault, NULL where there is none. */
void ibmr_dma_report_write(struct ibmr_dma_dev *dd, enum ib_mr_dma_fault fault,
			   const struct ibmr_dma_stack *here, struct ibmr_dma_map *map,
			   const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	vaf.va = &args;
	ibmr_dma_vreport(dd, fault, false, here, map, &vaf);
	va_end(args);
}

/**
 * ibmr_dma_report() - count a fault, and report it when its place is new
 * @dd: device
 * @fault: which
 * @ip: place in the ULP; 0: the first caller outside ib_mr
 * @map: mapping in question, referenced, or NULL
 * @fmt: what happened, in one line
 */
void ibmr_dma_report(struct ibmr_dma_dev *dd, enum ib_mr_dma_fault fault, unsigned long ip,
		     struct ibmr_dma_map *map, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	struct ibmr_dma_stack here;
	va_list args;

	ibmr_dma_stack_save(&here, ip);
	if (!ibmr_dma_report_due(dd, fault, here.ip[0]))
		return;
	va_start(args, fmt);
	vaf.va = &args;
	ibmr_dma_vreport(dd, fault, false, &here, map, &vaf);
	va_end(args);
}

/* The same of what may be a fault; only the ULP knows. */
void ibmr_dma_hint(struct ibmr_dma_dev *dd, enum ib_mr_dma_fault fault, unsigned long ip,
		   struct ibmr_dma_map *map, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	struct ibmr_dma_stack here;
	va_list args;

	atomic64_inc(&dd->hint[fault]);
	if (ip && !ibmr_dma_first_at(fault, true, ip))
		return;
	ibmr_dma_stack_save(&here, ip);
	if (!ip && !ibmr_dma_first_at(fault, true, here.ip[0]))
		return;
	va_start(args, fmt);
	vaf.va = &args;
	ibmr_dma_vreport(dd, fault, true, &here, map, &vaf);
	va_end(args);
}

/* Places in a module that goes: another module may have its addresses next. */
void ibmr_dma_forget_sites(const struct module *of)
{
	unsigned int from, to = 0;
	unsigned long flags;

	raw_spin_lock_irqsave(&ibmr_dma_report_lock, flags);
	for (from = 0; from < ibmr_dma_nsites; from++)
		if (of && !within_module(ibmr_dma_site[from].ip, of))
			ibmr_dma_site[to++] = ibmr_dma_site[from];
	ibmr_dma_nsites = to;
	raw_spin_unlock_irqrestore(&ibmr_dma_report_lock, flags);
}

/* Begin anew: no reports, and each place is reported again. */
void ibmr_dma_forget_reports(void)
{
	struct ibmr_dma_text *t, *next;
	unsigned long flags;
	LIST_HEAD(old);

	/* What was not printed is. */
	flush_work(&ibmr_dma_printer);
	ibmr_dma_forget_sites(NULL);
	raw_spin_lock_irqsave(&ibmr_dma_report_lock, flags);
	list_splice_init(&ibmr_dma_told.list, &old);
	list_splice_init(&ibmr_dma_hinted.list, &old);
	ibmr_dma_told.nr = 0;
	ibmr_dma_hinted.nr = 0;
	raw_spin_unlock_irqrestore(&ibmr_dma_report_lock, flags);
	list_for_each_entry_safe(t, next, &old, entry)
		kfree(t);
}
IBMR_EXPORT_INTERNAL(ibmr_dma_forget_reports);

/* For tests: at how many places a fault was reported. */
unsigned int ibmr_dma_sites(enum ib_mr_dma_fault fault)
{
	unsigned int i, n = 0;
	unsigned long flags;

	raw_spin_lock_irqsave(&ibmr_dma_report_lock, flags);
	for (i = 0; i < ibmr_dma_nsites; i++)
		n += ibmr_dma_site[i].fault == fault && !ibmr_dma_site[i].hint;
	raw_spin_unlock_irqrestore(&ibmr_dma_report_lock, flags);
	return n;
}
IBMR_EXPORT_INTERNAL(ibmr_dma_sites);

/* For tests: the youngest report. False when there is none. */
bool ibmr_dma_last_report(char *buf, size_t size)
{
	struct ibmr_dma_text *t;
	unsigned long flags;

	raw_spin_lock_irqsave(&ibmr_dma_report_lock, flags);
	t = list_empty(&ibmr_dma_told.list) ? NULL :
		list_last_entry(&ibmr_dma_told.list, struct ibmr_dma_text, entry);
	strscpy(buf, t ? t->text : "", size);
	raw_spin_unlock_irqrestore(&ibmr_dma_report_lock, flags);
	return t;
}
IBMR_EXPORT_INTERNAL(ibmr_dma_last_report);

static int ibmr_dma_reports_show(struct seq_file *m, void *unused)
{
	struct ibmr_dma_texts *texts = m->private;
	struct ibmr_dma_text *t;
	unsigned long flags;

	raw_spin_lock_irqsave(&ibmr_dma_report_lock, flags);
	list_for_each_entry(t, &texts->list, entry)
		seq_printf(m, "%s\n", t->text);
	raw_spin_unlock_irqrestore(&ibmr_dma_report_lock, flags);
	return 0;
}

static int ibmr_dma_reports_open(struct inode *inode, struct file *file)
{
	return single_open(file, ibmr_dma_reports_show, inode->i_private);
}

static ssize_t ibmr_dma_reports_write(struct file *file, const char __user *ubuf, size_t len,
				      loff_t *pos)
{
	ibmr_dma_forget_reports();
	return len;
}

static const struct file_operations ibmr_dma_reports_fops = {
	.owner	 = THIS_MODULE,
	.open	 = ibmr_dma_reports_open,
	.read	 = seq_read,
	.write	 = ibmr_dma_reports_write,
	.llseek	 = seq_lseek,
	.release = single_release,
};

void ibmr_dma_reports_init(struct dentry *dir)
{
	debugfs_create_file("dma_reports", 0600, dir, &ibmr_dma_told, &ibmr_dma_reports_fops);
	debugfs_create_file("dma_hints", 0600, dir, &ibmr_dma_hinted, &ibmr_dma_reports_fops);
}

void ibmr_dma_reports_exit(void)
{
	ibmr_dma_forget_reports();
}
