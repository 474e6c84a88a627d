// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * How a kernel for User-mode Linux saves its stack: along the frame pointers. scripts/kernel puts
 * this behind arch/um/kernel/stacktrace.c, whose own way, called scan_stack_trace() then, looks at
 * every word of the stack and asks of each whether it is code. KASAN and kmemleak save the stack
 * whenever memory is taken or given back, and that was half of a run's time. What is skipped is
 * counted here, too, so that a report begins where it should.
 *
 * The chain ends where it leaves the stack on which it began, as it does in an interrupt.
 */

__no_sanitize_address void save_stack_trace(struct stack_trace *trace)
{
	unsigned long *frame = __builtin_frame_address(0), *next;
	unsigned long end = ((unsigned long)frame | (THREAD_SIZE - 1)) - 2 * sizeof(long) + 1;
	unsigned int skip = trace->skip;

	while (trace->nr_entries < trace->max_entries && frame[1]) {
		if (skip)
			skip--;
		else
			trace->entries[trace->nr_entries++] = frame[1];
		next = (unsigned long *)frame[0];
		if (next <= frame || (unsigned long)next > end || (unsigned long)next % sizeof(long))
			break;
		frame = next;
	}
}
EXPORT_SYMBOL_GPL(save_stack_trace);
