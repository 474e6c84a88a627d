#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# In a guest with ib_mr and rxe0: runs ib_mr_dma_bugs.ko (beside this file) with each bug, with the DMA checker off, where
# nothing may be seen of it, and on, where it must be caught by its name. Prints one line for each and `N passed, N failed`.

cd "$(dirname "$0")" || exit 2
ko=./ib_mr_dma_bugs.ko
dev=/sys/kernel/debug/ib_mr/devices/rxe0
reports=/sys/kernel/debug/ib_mr/dma_reports
hints=/sys/kernel/debug/ib_mr/dma_hints
passed=0 failed=0

tell() {	# true|false TEXT
	if $1; then passed=$((passed + 1)); echo "ok - $2"; else failed=$((failed + 1)); echo "not ok - $2"; fi
}

# try MODE BUG: runs it; sets data (right, wrong or nothing) and names (of the faults reported; ?name is a hint)
try() {
	echo "$1" > $dev/dma_check || return
	echo > $reports
	dmesg -c > /dev/null
	insmod $ko bug="$2" || return
	rmmod ib_mr_dma_bugs
	data=$(dmesg | sed -n "s/.*dma_bugs: bug=$2: data //p")
	echo off > $dev/dma_check	# what was kept for late writes is looked at
	sleep 1
	names=$(sed -n 's/.* DMA: .*\[\([a-z_]*\)\]$/\1/p; s/.* DMA hint: .*\[\([a-z_]*\)\]$/?\1/p' $reports $hints |
		sort -u | tr '\n' ' ')
}

# caught BUG MODE DATA NAME...: exactly these are reported, and the data are as said
caught() {
	bug=$1 mode=$2 want=$3
	shift 3
	try off "$bug"
	[ "$data" = right ] && [ -z "$names" ]
	tell "$([ $? = 0 ] && echo true || echo false)" "$bug, checker off: passes (data $data${names:+, reported: $names})"
	try "$mode" "$bug"
	[ "$data" = "$want" ] && [ "${names% }" = "$*" ]
	tell "$([ $? = 0 ] && echo true || echo false)" "$bug, $mode: data $data, reported: ${names:-nothing}"
}

caught none               track  right
caught none               bounce right
caught unmap_size         track  right unmap_size
caught unmap_dir          track  right unmap_dir
caught unmap_call         track  right unmap_call
caught unmap_twice        track  right unmap_twice
caught never_mapped       track  right never_mapped
caught sync_outside       track  right sync_outside
caught sync_dir           track  right sync_dir
caught unchecked          track  right unchecked
caught on_stack           track  right on_stack
caught leak               track  right leak
caught no_sync_for_cpu    bounce wrong ?no_sync_cpu
caught no_sync_for_device bounce wrong ?no_sync_dev
caught write_after_sync   bounce wrong cpu_write
caught stray              bounce right dev_outside
caught late_write         bounce right dev_late

# The device goes while the ULP stays, with two mappings alive: told some seconds later.
echo track > $dev/dma_check
echo > $reports
echo 1 > /sys/module/ib_mr/parameters/dma_leak_seconds
insmod $ko bug=leak
rdma link delete rxe0
sleep 3
names=$(sed -n 's/.* DMA: .*\[\([a-z_]*\)\]$/\1/p' $reports | sort -u | tr '\n' ' ')
tell "$([ "${names% }" = leak ] && echo true || echo false)" "device removed, track: reported: ${names:-nothing}"
rmmod ib_mr_dma_bugs

echo "$passed passed, $failed failed"
[ $failed = 0 ]
