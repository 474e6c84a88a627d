// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The consumers of the classic verbs, in short: each source beside this one makes the calls that
 * one of them made, in its order and contexts (interrupts off, bottom halves off, softirq, a
 * tasklet under a spinlock, process context with a signal pending), and includes the classic
 * headers only.
 * They run one after the other when the module is loaded. Each verdict is a line of the kernel's
 * log, "classic: right|WRONG, consumer, step, detail" with tabs; run.sh makes the table.
 *
 * With nosys the device says that it has no FMRs (ib_mr's parameter no_fmr), and those who go on
 * without them are run.
 */
#include <linux/module.h>

#include "link.h"

static bool nosys;
module_param(nosys, bool, 0444);
MODULE_PARM_DESC(nosys, "only those who go on without FMRs; ib_mr's no_fmr is set");

static int iser_go(void)
{
	return iser_init(nosys);
}

static int o2ib_go(void)
{
	return o2ib_init(nosys);
}

static const struct {
	const char *name;
	int (*init)(void);
	void (*exit)(void);
	bool without_fmr;
} consumers[] = {
	{ "SRP",		srp_init,	srp_exit },
	{ "iSER",		iser_go,	iser_exit,	true },
	{ "RDS",		rds_init,	rds_exit },
	{ "xprtrdma",		xprt_init,	xprt_exit },
	{ "xprtrdma, 3.8",	xprt38_init,	xprt38_exit },
	{ "o2iblnd",		o2ib_go,	o2ib_exit,	true },
	{ "SDP",		sdp_init,	sdp_exit },
	{ "xsvhba",		vhba_init,	vhba_exit },
	{ "DMA MR",		dmamr_init,	dmamr_exit },
	{ "kernel verbs",	kverbs_init,	kverbs_exit },
	{ "gaps",		gaps_init,	gaps_exit },
};

static int __init classic_init(void)
{
	unsigned int i;
	int err;

	for (i = 0; i < ARRAY_SIZE(consumers); i++) {
		if (nosys && !consumers[i].without_fmr)
			continue;
		err = consumers[i].init();
		if (err)
			verdict(consumers[i].name, "registered as a client", false, "%d", err);
		else
			consumers[i].exit();
	}
	pr_info("classic: end\n");
	return 0;
}

static void __exit classic_exit(void)
{
}

module_init(classic_init);
module_exit(classic_exit);
MODULE_DESCRIPTION("Consumers of the classic memory verbs, unchanged, over ib_mr");
MODULE_LICENSE("Dual BSD/GPL");
