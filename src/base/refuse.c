// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Refusals: one place where a "no" gets its errno, its count, its trace and its line in the log.
 *
 * A caller that breaks a rule is told which one, in words, but not more often than a log can bear:
 * ten times in five seconds for each reason, so that one mistake does not hide another;
 * what is no mistake (a pool that is empty, a device without a feature) is counted and traced
 * only. The counters are kept per device, and in sum for refusals that have no device.
 */

#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/ratelimit.h>

#include "base/compat.h"
#include "base/core.h"

#include <trace/events/ib_mr.h>

struct ibmr_reason {
	const char *name;
	const char *text;
	int err;
};

static const struct ibmr_reason reasons[IB_MR_WHY_COUNT] = {
#define REASON(why, errno_, text_) \
	[IB_MR_WHY_##why] = { .name = #why, .text = text_, .err = errno_ },
	IB_MR_REASONS(REASON)
#undef REASON
};

static atomic64_t refused_all[IB_MR_WHY_COUNT];

static struct ratelimit_state limits[IB_MR_WHY_COUNT] = {
#define LIMIT(why, errno_, text_) \
	[IB_MR_WHY_##why] = RATELIMIT_STATE_INIT(limits, DEFAULT_RATELIMIT_INTERVAL, \
						 DEFAULT_RATELIMIT_BURST),
	IB_MR_REASONS(LIMIT)
#undef LIMIT
};

static bool known(enum ib_mr_reason why)
{
	return (unsigned int)why < IB_MR_WHY_COUNT;
}

/**
 * ib_mr_reason_name() - short name of a reason, as debugfs and traces print it
 * @why: reason
 *
 * Context: any.
 * Return: a constant string, never NULL.
 */
const char *ib_mr_reason_name(enum ib_mr_reason why)
{
	return known(why) ? reasons[why].name : "?";
}
EXPORT_SYMBOL(ib_mr_reason_name);

/**
 * ib_mr_reason_text() - what a reason means, in words
 * @why: reason
 *
 * Context: any.
 * Return: a constant string, never NULL.
 */
const char *ib_mr_reason_text(enum ib_mr_reason why)
{
	return known(why) ? reasons[why].text : "unknown reason";
}
EXPORT_SYMBOL(ib_mr_reason_text);

/**
 * ib_mr_refusals() - how often a call was refused for a reason
 * @device: count of this device, or NULL for the sum over all
 * @why: reason
 *
 * Context: any but hardirq.
 * Return: the count since the device was added, or the module loaded.
 */
u64 ib_mr_refusals(struct ib_device *device, enum ib_mr_reason why)
{
	struct ibmr_dev *dev;
	u64 n;

	if (!known(why))
		return 0;
	if (!device)
		return atomic64_read(&refused_all[why]);
	dev = ibmr_dev_get(device);
	if (!dev)
		return 0;
	n = atomic64_read(&dev->refused[why]);
	ibmr_dev_put(dev);
	return n;
}
EXPORT_SYMBOL(ib_mr_refusals);

/* Is it the caller who has to mend something? */
static bool callers_mistake(enum ib_mr_reason why)
{
	switch (why) {
	case IB_MR_WHY_NO_DEVICE:
	case IB_MR_WHY_NO_MEMORY:
	case IB_MR_WHY_NOT_QUALIFIED:
	case IB_MR_WHY_POOL_EMPTY:
	case IB_MR_WHY_ARENA_FULL:
	case IB_MR_WHY_RUNS_FULL:
	case IB_MR_WHY_MW_SQ_FULL:
	case IB_MR_WHY_MW_NO_SLOT:
	case IB_MR_WHY_MW_PROVIDING:
	case IB_MR_WHY_MEMLOCK:		/* said once, with its numbers, by mr/pin.c */
		return false;
	default:
		return true;
	}
}

/**
 * ibmr_refuse() - refuse a call
 * @dev: device, or NULL where there is none
 * @why: reason, not IB_MR_WHY_OK
 * @fmt: the call and its numbers, for the log
 *
 * Context: any.
 * Return: the reason's errno.
 */
int ibmr_refuse(struct ibmr_dev *dev, enum ib_mr_reason why, const char *fmt, ...)
{
	struct va_format vaf;
	va_list args;

	atomic64_inc(&refused_all[why]);
	if (dev)
		atomic64_inc(&dev->refused[why]);
	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;
	trace_ib_mr_refused(dev ? dev->name : "-", why, reasons[why].err, &vaf);
	if (callers_mistake(why) && __ratelimit(&limits[why]))
		pr_warn("%s: %pV refused, %s: %s\n", dev ? dev->name : "(no device)", &vaf,
			reasons[why].name, reasons[why].text);
	va_end(args);
	return reasons[why].err;
}
