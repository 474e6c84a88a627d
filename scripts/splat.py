#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Finds in a kernel log what the kernel itself reports as wrong: splats.

A guest can end with status 0 although lockdep or KASAN complained on the way, so whoever runs one (scripts/vm) reads the
whole log with this. The list errs on the strict side: what is merely informative must be named in HARMLESS.
As a program: `splat.py FILE` prints the splats of a log and exits 1 if there are any; `splat.py --self-test` feeds the
scanner samples of every kind, and of lines that must not match, and prints a line for each.
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
        if hit:
            found.append((hit[0], number, text_of(line)))
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


def self_test():
    """Every sample gets the verdict that stands beside it; one line each; the number of wrong ones."""
    wrong = 0
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
