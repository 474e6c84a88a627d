// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * DMA checker: call chains.
 *
 * To walk a stack takes thousands of instructions, and a ULP maps from a handful of places. So the
 * chain of a call is walked once, kept, and shared by the mappings that were made the same way.
 * Whether it is the same way is told by the place of the call, and by a hash of what lies above it
 * on the stack and looks like a return address. Old ones, which nobody overwrote, can only make two
 * chains of one. A chain goes with its last mapping, once a module has gone and the table was
 * emptied, because then its addresses may become another module's. The kernel's stack depot would
 * never give memory back.
 *
 * Any context; readers under RCU. Without memory, and beyond a limit, there is no chain, and a
 * report shows the place alone.
 */

#include <linux/hash.h>
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/rculist.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/stacktrace.h>

#include "base/compat.h"
#include "dma/check.h"

#define IBMR_DMA_CHAINS	2048
#define IBMR_DMA_WORDS	128	/* of the stack that are looked at */

static DEFINE_HASHTABLE(ibmr_dma_chains, 8);
static unsigned int ibmr_dma_nchains;

/* Guards both against writers. */
static DEFINE_RAW_SPINLOCK(ibmr_dma_chain_lock);

static bool ibmr_dma_own_code(unsigned long ip)
{
#ifdef MODULE
	return within_module(ip, THIS_MODULE);
#else
	return false;
#endif
}

/* The call chain from @ip up; with @ip 0, from the first caller that is not ib_mr. */
void ibmr_dma_stack_save(struct ibmr_dma_stack *stack, unsigned long ip)
{
	unsigned long buf[IBMR_DMA_FRAMES + 8];
	unsigned int n, i, from, nr = 0;

	n = filter_irq_stacks(buf, stack_trace_save(buf, ARRAY_SIZE(buf), 1));
	for (from = 0; from < n; from++)
		if (ip ? buf[from] == ip : !ibmr_dma_own_code(buf[from]))
			break;
	/* No such frame (no unwinder, a traced return): the one that is known. */
	if (from == n)
		stack->ip[nr++] = ip ?: _RET_IP_;
	for (i = from; i < n && nr < IBMR_DMA_FRAMES; i++)
		stack->ip[nr++] = buf[i];
	stack->nr = nr;
}

static struct ibmr_dma_chain *ibmr_dma_chain_find(unsigned long ip, unsigned long way)
{
	struct ibmr_dma_chain *chain;

	hash_for_each_possible_rcu(ibmr_dma_chains, chain, node, ip ^ way)
		if (chain->ip == ip && chain->way == way &&
		    refcount_inc_not_zero(&chain->refs))
			return chain;
	return NULL;
}

/*
 * How @ip was reached, as a number. Code of kernel and modules lies within 2 GiB, so what is as
 * near to @ip may be a return address. A task's stack is looked at up to its end; an interrupt's
 * has no alignment but a page's, and a guard page behind it, so there the page is the end.
 */
static unsigned long ibmr_dma_way(unsigned long ip)
{
	const unsigned long *at = __builtin_frame_address(0);
	unsigned long word, way = 0, end;
	unsigned int i;

	end = object_is_on_stack(at) ? (unsigned long)task_stack_page(current) + THREAD_SIZE :
				       ALIGN((unsigned long)at + 1, PAGE_SIZE);

	for (i = 0; i < IBMR_DMA_WORDS && (unsigned long)(at + i) < end; i++) {
		word = READ_ONCE_NOCHECK(at[i]);
		if (!((word ^ ip) >> 31))
			way = (way ^ word) * GOLDEN_RATIO_64;
	}
	return way;
}

/* How this call was reached, with a reference; or NULL. @ip: where the ULP made it. */
struct ibmr_dma_chain *ibmr_dma_chain_get(unsigned long ip)
{
	unsigned long way = ibmr_dma_way(ip);
	struct ibmr_dma_chain *chain;
	unsigned long flags;

	rcu_read_lock();
	chain = ibmr_dma_chain_find(ip, way);
	rcu_read_unlock();
	if (likely(chain) || READ_ONCE(ibmr_dma_nchains) >= IBMR_DMA_CHAINS)
		return chain;
	chain = kmalloc(sizeof(*chain), GFP_ATOMIC | __GFP_NOWARN);
	if (!chain)
		return NULL;
	chain->ip = ip;
	chain->way = way;
	refcount_set(&chain->refs, 2);
	ibmr_dma_stack_save(&chain->stack, ip);
	/* Another CPU may add the same meanwhile: then there are two of it. */
	raw_spin_lock_irqsave(&ibmr_dma_chain_lock, flags);
	hash_add_rcu(ibmr_dma_chains, &chain->node, ip ^ way);
	WRITE_ONCE(ibmr_dma_nchains, ibmr_dma_nchains + 1);
	raw_spin_unlock_irqrestore(&ibmr_dma_chain_lock, flags);
	return chain;
}

void ibmr_dma_chain_put(struct ibmr_dma_chain *chain)
{
	if (chain && refcount_dec_and_test(&chain->refs))
		kfree_rcu(chain, rcu);
}

/* Begin anew. */
void ibmr_dma_chains_forget(void)
{
	struct ibmr_dma_chain *chain;
	struct hlist_node *next;
	unsigned long flags;
	int i;

	raw_spin_lock_irqsave(&ibmr_dma_chain_lock, flags);
	hash_for_each_safe(ibmr_dma_chains, i, next, chain, node) {
		hash_del_rcu(&chain->node);
		ibmr_dma_chain_put(chain);
	}
	WRITE_ONCE(ibmr_dma_nchains, 0);
	raw_spin_unlock_irqrestore(&ibmr_dma_chain_lock, flags);
}
