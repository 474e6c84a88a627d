#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# In a guest of scripts/install-test: what `make install` made lies in /root/tree.tar, with kmod's modprobe beside it. All
# RDMA modules that the guest began with are taken out first, so what is loaded afterwards was loaded by modprobe.

row() {
	statement=$1
	shift
	if "$@" > /tmp/out 2>&1; then
		echo "ok   $statement"
	else
		echo "FAIL $statement"
		sed 's/^/     | /' /tmp/out
	fi
}

loaded() { for m in "$@"; do grep "^$m " /proc/modules || { echo "$m is not loaded"; return 1; }; done; }
gone() { ! loaded "$@"; }
await() { for _ in 1 2 3 4 5 6 7 8 9 10; do "$@" && return; sleep 1; done; return 1; }
logged() { dmesg | grep -E "$1"; }
denied() { "$@" && return 1; true; }

rdma link del rxe0
rmmod rdma_rxe rdma_ucm rdma_cm iw_cm ib_cm ib_uverbs ib_core crc32_generic 2> /dev/null
tar -x -C / -f /root/tree.tar
echo /root/modprobe > /proc/sys/kernel/modprobe

row 'in the guest no RDMA module is loaded' gone ib_core
row 'modprobe ib_mr' /root/modprobe ib_mr
row 'it brought ib_core and ib_uverbs' loaded ib_mr ib_core ib_uverbs
[ "$CRC32" != yes ] || row 'and crc32_generic, for rxe' loaded crc32_generic
row 'but no driver: that opens a UDP port' gone rdma_rxe
row 'rdma link add brings the driver' rdma link add rxe0 type rxe netdev eth0
row 'ib_mr serves the device' await test -d /sys/kernel/debug/ib_mr/devices/rxe0
row 'a ULP that was built on what is installed works' sh -c 'insmod /root/hello.ko && dmesg | grep "hello: READ 4096 bytes"'
row 'and goes' rmmod hello

mount -t securityfs securityfs /sys/kernel/security
if [ -w /sys/kernel/security/lockdown ]; then
	echo integrity > /sys/kernel/security/lockdown
	row 'under lockdown a module that is loaded stays' loaded ib_mr
	row 'its statistics can be read' cat /sys/kernel/debug/ib_mr/devices/rxe0/stats
	row 'files of debugfs cannot be written' denied sh -c 'echo track > /sys/kernel/debug/ib_mr/devices/rxe0/dma_check'
	row 'it can be unloaded' rmmod ib_mr
	row 'an unsigned one is not loaded' denied /root/modprobe ib_mr
	row 'and the kernel says why' logged 'unsigned module loading is restricted'
fi
