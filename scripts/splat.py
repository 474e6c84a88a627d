#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Finds in a kernel log what the kernel itself reports as wrong: splats.

A guest can end with status 0 although lockdep or KASAN complained on the way, so whoever runs one (scripts/vm) reads the
whole log with this. The list errs on the strict side: what is merely informative must be named in HARMLESS.
As a program: `splat.py FILE` prints the splats of a log and exits 1 if there are any; `splat.py --self-test` feeds the
scanner samples of every kind, and of lines that must not match, and prints a line for each.

KCSAN's reports need a judge. A report names two accesses, and the race is of those who make them: the innermost
function of each stack, or its caller where that is a helper that works on its caller's memory (LEAF). When both are
the driver's, the core's or the kernel's own, `ib_sg_to_pages()` on behalf of ib_mr among them, the report is not ours
to mend and is passed over; with one access of a module of ours (ib_mr, ib_mr_...) it is a splat. Some kinds
of pair cannot be clean from our side alone (KNOWN). The race test plants one (PLANTED), to see that KCSAN finds it.

Lockdep's are splats, but for one of User-mode Linux's own, known by two lines of it (KERNELS_OWN).

KASAN's are splats, but for a fault of the driver's that is known by its function (DRIVERS_OWN), which whoever uses the
driver may meet.
"""

import re
import sys

STAMP = re.compile(r'^(?:<\d+>)?\[ *\d+\.\d+\](?:\[ *[TC]\d+\])? ?')

# kind, pattern, fatal: after a fatal one the guest may never come to an end by itself; the first that matches counts
KINDS = [
    ('panic', r'^Kernel panic - not syncing', True),
    ('KASAN', r'^BUG: KASAN:|^KASAN: ', False),
    ('KCSAN', r'^BUG: KCSAN:', False),
    ('Oops', r'^(Oops|general protection fault|BUG: unable to handle|BUG: kernel NULL pointer|stack segment|'
             r'double fault|traps: PANIC|invalid opcode: \d)|^watchdog: BUG: ', True),
    ('lockdep', r'^WARNING: (possible|inconsistent|suspicious|bad unlock|held lock|lock held|Nested lock|'
                r'HARDIRQ|SOFTIRQ)|^INFO: (possible|trying to register|inconsistent|suspicious)|^BUG: .*(lockdep|MAX_LOCK)|'
                r'^turning off the locking correctness', False),
    ('BUG', r'kernel BUG at |^BUG: |^list_(add|del) corruption|^Bad page state|^slab error|^BUG [\w-]+ \(', False),
    ('RCU', r'suspicious RCU usage|^rcu: INFO: .*stall|INFO: rcu_\w+ (self-)?detected', True),
    ('hung task', r'^INFO: task .* blocked for more than', True),
    ('refcount', r'^refcount_t: ', False),
    ('ODEBUG', r'^ODEBUG: ', False),
    ('DMA-API', r'DMA-API: ', False),
    ('UBSAN', r'^UBSAN: ', False),
    ('kmemleak', r'^kmemleak: (\d+ new suspected|Memory pool empty|Kernel memory leak detector disabled|Cannot )', False),
    ('WARNING', r'^WARNING: ', False),
    ('device gone', r'^unregister_netdevice: waiting for|^infiniband .*: .*leaked|restrack: .*(resource leak|was not freed)', False),
]
KINDS = [(kind, re.compile(pattern), fatal) for kind, pattern, fatal in KINDS]

HARMLESS = re.compile(r'DMA-API: (preallocated|debugging enabled|Set num|dma_debug_entry pool)')


# Data races. A line that opens an access, a frame of its stack, helpers whose accesses are their callers'.
ACCESS = re.compile(r'^(?:race at unknown origin, with )?((?:assert no |read|write)[\w -]*(?: \([\w, ]+\))?) to 0x\w+ of \d+ bytes by ')
FRAME = re.compile(r'^ ([\w.]+)\+0x\w+/0x\w+(?: \[(\w+)\])?$')
LEAF = re.compile(r'_*(h?list_|rb_|interval_tree_|find_\w*bit|bitmap_|mem(cpy|set|move|cmp|chr)|str\w*cpy|sg_|refcount_|jhash)\w*$')
KNOWN = [    # (function of the other side, what our half must be, why)
    (re.compile(r'param_set_\w+$'), re.compile('.*marked'), 'the kernel stores to a module parameter with a plain store'),
    (re.compile(r'kthread_is_per_cpu$'), re.compile('write$'), 'the scheduler reads the flags of a task, which stores to them '
                                                               'itself (memalloc_noio_save(), an inline of the kernel)'),
]
PLANTED = ('race_planted', 'ib_mr_race')
DRIVERS_OWN = [      # (first two lines of a KASAN report, why)
    (re.compile(r'BUG: KASAN: use-after-free in rxe_resp_queue_pkt\+\S+ \[rdma_rxe\]\nRead of size 1 '),
     "rxe of 6.1 looks at a packet's opcode after it has queued it, when another CPU may have done with it"),
]


KERNELS_OWN = [      # (the line under the headline of a lockdep report, a frame of its stack, why)
    (re.compile(r'lib/maple_tree\.c:\d+ suspicious rcu_dereference_check'), re.compile(r'\] force_flush_all\+'),
     'User-mode Linux of 6.1 walks the address space of a new process without the lock'),
]


def of_kernel(lines, number):
    """Why the lockdep report whose headline is at line NUMBER is the kernel's own; None when it is not known."""
    end = number
    while end < len(lines) and end < number + 60 and not text_of(lines[end]).startswith('====='):
        end += 1
    block = [text_of(line) for line in lines[number:end]]
    for second, frame, why in KERNELS_OWN:
        if any(second.match(text) for text in block[:4]) and any(frame.search(text) for text in block):
            return why
    return None


def accesses(lines, number):
    """What the KCSAN report that begins at line NUMBER (from 1) says: [(kind of access, [(function, module)])]."""
    found = []
    for line in lines[number:number + 120]:
        text = text_of(line)
        if text.startswith('=====') or text.startswith('Reported by Kernel Concurrency'):
            break
        access, frame = ACCESS.match(text), FRAME.match(text)
        if access:
            found.append((access[1], []))
        elif frame and found:
            found[-1][1].append((frame[1], frame[2] or ''))
    return found


def maker(stack):
    """Whose access it is: (function, module)."""
    for function, module in stack:
        if module or not LEAF.match(function):
            return function, module
    return stack[-1] if stack else ('?', '')


def is_ours(module):
    return module == 'ib_mr' or module.startswith('ib_mr_')


def passed_over(kind, lines, number):
    """Why the report of that kind at line NUMBER is not ours to mend; None when it is, or cannot be read."""
    if kind == 'KASAN':
        head = '\n'.join(text_of(line) for line in lines[number - 1:number + 1])
        return next((why for pattern, why in DRIVERS_OWN if pattern.match(head)), None)
    if kind == 'lockdep':
        return of_kernel(lines, number)
    return of_others(lines, number) if kind == 'KCSAN' else None


def of_others(lines, number):
    """Why the KCSAN report at line NUMBER is not ours to mend; None when it is, or cannot be read."""
    found = accesses(lines, number)
    if not found or not all(stack for _, stack in found):
        return None
    makers = [(kind, *maker(stack)) for kind, stack in found]
    ours = [m for m in makers if is_ours(m[2])]
    if PLANTED in [m[1:] for m in makers]:
        return 'planted by the race test'
    if not ours:
        return 'no access of ours'
    others = [m for m in makers if not is_ours(m[2])]
    for theirs, half, why in KNOWN:
        if others and all(theirs.match(m[1]) for m in others) and all(half.match(m[0]) for m in ours):
            return why
    return None


def text_of(line):
    """The message without its time stamp."""
    return STAMP.sub('', line.rstrip('\r\n'))


def kind_of(line):
    """(kind, fatal) when the line opens or belongs to a splat, else None."""
    text = text_of(line)
    if HARMLESS.search(text):
        return None
    for kind, pattern, fatal in KINDS:
        if pattern.search(text):
            return kind, fatal
    return None


def scan(lines):
    """All splats: (kind, line number from 1, first line)."""
    found = []
    for number, line in enumerate(lines, 1):
        hit = kind_of(line)
        if hit and not passed_over(hit[0], lines, number):
            found.append((hit[0], number, text_of(line)))
    return found


def scan_foreign(lines):
    """What scan() passed over: (line number from 1, first line, why)."""
    found = []
    for number, line in enumerate(lines, 1):
        hit = kind_of(line)
        why = passed_over(hit[0], lines, number) if hit else None
        if why:
            found.append((number, text_of(line), why))
    return found


def excerpt(lines, number, most=45):
    """The lines of the splat that begins at NUMBER (from 1)."""
    out = []
    for line in lines[number - 1:number - 1 + most]:
        out.append(line.rstrip('\r\n'))
        if '---[ end ' in line:
            break
    return out


SAMPLES = [
    ('BUG', '[    5.000001] BUG: sleeping function called from invalid context at mm/slab.h:274'),
    ('BUG', '[    5.000001] BUG: scheduling while atomic: insmod/99/0x00000002'),
    ('BUG', '[    5.000001] kernel BUG at lib/list_debug.c:29!'),
    ('Oops', '[    5.000001] watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [sh:1]'),
    ('BUG', '[    5.000001] list_del corruption. next->prev should be ffff8880, but was dead'),
    ('Oops', '[    5.000001] BUG: kernel NULL pointer dereference, address: 0000000000000008'),
    ('Oops', '[    5.000001] Oops: 0000 [#1] PREEMPT SMP KASAN'),
    ('Oops', '[    5.000001] general protection fault, probably for non-canonical address 0xdffffc0000000001: 0000'),
    ('KASAN', '[    5.000001] BUG: KASAN: slab-out-of-bounds in hello_init+0x40/0x1000 [hello]'),
    ('KASAN', '[    5.000001][  T99] BUG: KASAN: use-after-free in x+0x1/0x2'),
    ('KCSAN', '[    5.000001] BUG: KCSAN: data-race in a / b'),
    ('WARNING', '[    5.000001] WARNING: CPU: 1 PID: 88 at kernel/workqueue.c:1441 __queue_work+0x2d/0x70'),
    ('lockdep', '[    5.000001] WARNING: possible circular locking dependency detected'),
    ('lockdep', '[    5.000001] WARNING: inconsistent lock state'),
    ('lockdep', '[    5.000001] WARNING: possible recursive locking detected'),
    ('lockdep', '[    5.000001] INFO: trying to register non-static key.'),
    ('lockdep', '[    5.000001] WARNING: suspicious RCU usage'),
    ('lockdep', '[    5.000001] BUG: MAX_LOCKDEP_CHAINS too low!'),
    ('RCU', '[    5.000001] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:'),
    ('hung task', '[  245.000001] INFO: task insmod:77 blocked for more than 120 seconds.'),
    ('DMA-API', '[    5.000001] e1000 0000:00:02.0: DMA-API: device driver failed to check map error[device address=0x1]'),
    ('ODEBUG', '[    5.000001] ODEBUG: free active (active state 0) object type: timer_list hint: 0x0'),
    ('refcount', '[    5.000001] refcount_t: underflow; use-after-free.'),
    ('kmemleak', '[   25.000001] kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)'),
    ('kmemleak', '[   25.000001] kmemleak: Memory pool empty, consider increasing CONFIG_DEBUG_KMEMLEAK_MEM_POOL_SIZE'),
    ('kmemleak', '[   25.000001] kmemleak: Kernel memory leak detector disabled'),
    ('panic', '[    5.000001] Kernel panic - not syncing: Fatal exception'),
    (None, '[    0.500001] DMA-API: preallocated 65536 debug entries'),
    (None, '[    0.500001] DMA-API: debugging enabled by kernel config'),
    (None, '[    0.500001] kmemleak: Kernel memory leak detector initialized (mem pool available: 15000)'),
    (None, '[    0.500001] Running RCU self tests'),
    (None, '[    0.500001] rcu: \tRCU debug extended QS entry/exit.'),
    (None, '[    0.500001] kasan: KernelAddressSanitizer initialized'),
    (None, '[    0.500001] Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar'),
    (None, '[    5.000001] hello: module verification failed: signature and/or required key missing - tainting kernel'),
    (None, '[    5.000001]     # debug_case: a message that names a BUG: and a WARNING: inside'),
]


def report(first, *sides):
    """A KCSAN report as the kernel prints it."""
    out = ['=' * 66, f'BUG: KCSAN: {first}', '']
    for access, *stack in sides:
        out += [f'{access} to 0xffff888004c1d2a8 of 8 bytes by task 77 on cpu 1:', *(f' {frame}' for frame in stack), '']
    return [f'[    5.000001] {line}' for line in [*out, 'Reported by Kernel Concurrency Sanitizer on:', '=' * 66]]


def kasan(function, access='Read of size 1'):
    """The beginning of a KASAN report."""
    return [f'[    5.000001] {line}' for line in ('=' * 66, f'BUG: KASAN: use-after-free in {function}',
                                                  f'{access} at addr ffff8880060a0a55 by task ksoftirqd/1/20')]


def rcu_usage(place, frame):
    """A report of lockdep's about RCU, as User-mode Linux prints its stacks."""
    return [f'[    5.000001] {line}' for line in ('=' * 29, 'WARNING: suspicious RCU usage', '6.1.192-um #1 Not tainted', '-' * 29,
                                                  f'{place} suspicious rcu_dereference_check() usage!', '', 'Call Trace:',
                                                  f' [<60049932>] {frame}', '')]


# Whole reports: True where the fault is ours.
RXE = 'lookup_mr+0x1/0x2 [rdma_rxe]'
OURS = 'ib_map_phys_fmr+0x1a/0x2b [ib_mr]'
REPORTS = [
    (True, 'ours and the driver', report('data-race in a / b', ('write', OURS), ('read', RXE))),
    (True, 'ours and ours', report('data-race in a / b', ('write', OURS), ('read (marked)', OURS))),
    (True, 'a test module of ours', report('data-race in a / b', ('read', RXE), ('write', 'owner+0x1/0x2 [ib_mr_race]'))),
    (True, 'ours through a helper', report('data-race in a / b', ('read', '_find_next_bit+0x1/0x2', OURS), ('write', RXE))),
    (True, 'ours and nobody known', report('data-race in a', ('race at unknown origin, with read', OURS))),
    (True, 'an assertion of ours', report('assert: race in a / b', ('assert no writes', OURS), ('write', RXE))),
    (True, 'a report that cannot be read', report('data-race in a / b')),
    (True, 'a parameter that we read plainly', report('data-race in a / b', ('write', 'param_set_uint+0x1/0x2'), ('read', OURS))),
    (False, 'a parameter', report('data-race in a / b', ('write', 'param_set_uint+0x1/0x2'), ('read (marked)', OURS))),
    (False, 'the planted one', report('data-race in a / b', ('write', OURS), ('read', 'race_planted+0x1/0x2 [ib_mr_race]'))),
    (True, 'one of that name elsewhere', report('data-race in a / b', ('write', OURS), ('read', 'race_planted+0x1/0x2 [ib_mr]'))),
    (False, 'flags of a task', report('data-race in a / b', ('read', 'kthread_is_per_cpu+0x1/0x2'), ('write', OURS))),
    (True, 'a read where a task\'s flags are read', report('data-race in a / b', ('write', 'kthread_is_per_cpu+0x1/0x2'), ('read', OURS))),
    (False, 'the driver alone', report('data-race in a / b', ('write', RXE), ('read', RXE))),
    (False, 'the core for us, and the driver', report('data-race in a / b', ('write', 'ib_sg_to_pages+0x1/0x2 [ib_core]', OURS),
                                                      ('read', RXE))),
    (False, 'a use after free that is known to be the driver\'s', kasan('rxe_resp_queue_pkt+0xa7/0xb0 [rdma_rxe]')),
    (True, 'a write there', kasan('rxe_resp_queue_pkt+0xa7/0xb0 [rdma_rxe]', 'Write of size 1')),
    (True, 'another of the driver\'s', kasan('rxe_do_task+0x9c/0x280 [rdma_rxe]')),
    (True, 'a function of that name of ours', kasan('rxe_resp_queue_pkt+0x1/0x2 [ib_mr]')),
    (False, 'a fork in User-mode Linux', rcu_usage('lib/maple_tree.c:860', 'force_flush_all+0x132/0x290')),
    (True, 'another walk of that tree', rcu_usage('lib/maple_tree.c:860', 'ib_mr_reg_user+0x132/0x290 [ib_mr]')),
    (True, 'something else in a fork', rcu_usage('kernel/pid.c:8', 'force_flush_all+0x132/0x290')),
    (False, 'the kernel for us', report('data-race in a / b', ('write', '__queue_work+0x1/0x2', OURS), ('read', 'worker_thread+0x1/0x2'))),
]


def self_test():
    """Every sample gets the verdict that stands beside it; one line each; the number of wrong ones."""
    wrong = 0
    for want, name, lines in REPORTS:
        good = bool(scan(lines)) == want and bool(scan_foreign(lines)) != want
        wrong += not good
        print(f'{"ok" if good else "not ok"} report {"ours" if want else "passed over"}: {name}')
    for want, line in SAMPLES:
        hit = kind_of(line)
        good = (hit[0] if hit else None) == want
        wrong += not good
        print(f'{"ok" if good else "not ok"} splat {want or "none"}: {text_of(line)[:90]}')
    return wrong


if __name__ == '__main__':
    if sys.argv[1:] == ['--self-test']:
        sys.exit(1 if self_test() else 0)
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], errors='replace') as log:
        content = log.readlines()
    hits = scan(content)
    for what, where, first in hits:
        print(f'{what} (line {where}): {first}')
    sys.exit(1 if hits else 0)
