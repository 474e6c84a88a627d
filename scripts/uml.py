# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A guest that is a process of this machine: User-mode Linux, for kernels of the kind `um`.

The kernel is an ordinary program, so its code runs at this machine's speed and boots in a tenth of a second. With time
travel its clock jumps to the next timer whenever all of it sleeps, so no wait takes any time; while it computes the clock
goes on as this machine's does. (The mode inf-cpu, in which computing takes no time, is none for us: with one CPU and no
preemption a loop that spins until another thread has done its part would never end.)

It has no virtio ports: what the command prints and the tar of results go through a folder of the host (hostfs), by the
names that the ports have for QEMU. Its log comes out of its standard error, and must go into a pipe: its console asks
for readiness by epoll, which files do not have.
"""

import subprocess

from initramfs import Problem

CMDLINE = ('rdinit=/init con=null con0=null,fd:2 stderr=1 loglevel=8 printk.devkmsg=on no_hash_pointers kunit.enable=1 '
           'kasan_multi_shot')
DEFAULT_MEM = 2048      # MiB; what is not touched takes none from the host


def check(args):
    """Refuses what only QEMU can do."""
    for option, given in (('--icount', args.icount), ('--link', args.link), ('--disk', args.disk), ('--shell', args.shell)):
        if given:
            raise Problem(f'{option} is not for {args.kernel}, which is no machine\nnext: take another kernel: scripts/kernel list')


def settings(folder):
    """What tests/vm/init has to know of it."""
    return {'HOST': folder.resolve(), 'NIC': 'veth'}


def line(args, kernel, initrd, folder):
    """The program and its arguments, which are the kernel's command line."""
    words = CMDLINE.split() + [f'mem={args.mem or DEFAULT_MEM}M', f'initrd={initrd}', f'uml_dir={folder}/']
    if not args.real_time:
        words.append('time-travel')
    return [kernel['IMAGE'], *words, *args.append.split()]


def start(words, log):
    """Runs it in a session of its own, since it has a process for each address space; its log goes to the file LOG."""
    machine = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True)
    with open(log, 'wb') as out:
        pump = subprocess.Popen(['cat'], stdin=machine.stdout, stdout=out, start_new_session=True)
    machine.stdout.close()
    return machine, pump
