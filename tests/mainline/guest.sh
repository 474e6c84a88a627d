#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# In a guest with ib_mr and rxe0: puts one ULP to work under each mode of the DMA checker. The checker is set before the
# ULP's modules are loaded and looked at after they are gone, so that it has seen each mapping made, and knows of leaks.
# MODE is one of the checker's. bounce+rw is bounce, with the modules in rw/, which have rw.c in them; track takes those, too.
# What else stands behind a + is for the ULP's script.
# Prints `data MODE intact|wrong|failed`; the reports go home as /results/mainline/ULP-MODE.
#
#	sh guest.sh ULP MODE...

cd "$(dirname "$0")" || exit 2
. ./lib.sh
ulp=$1
shift
. "./$ulp.sh"
mib=/sys/kernel/debug/ib_mr
export PATH="$PATH:/root"
mkdir -p /results/mainline
echo "=== $ulp"

for mode; do
	echo "--- $ulp, checker $mode"
	case $mode in
	*+rw|track) prefer=rw ;;
	*) prefer=. ;;
	esac
	echo "${mode%+*}" > $mib/rxe0/dma_check
	echo > $mib/dma_reports
	disk=
	data=intact
	if ! start; then
		data=failed
	elif [ -n "$disk" ]; then
		on_disk "$disk" || data=wrong
	else
		work || data=wrong
	fi
	down=yes
	stop || down=
	echo off > $mib/rxe0/dma_check	# what was kept for late writes is looked at
	sleep 1
	cat $mib/dma_reports > /results/mainline/"$ulp-$mode"
	cat $mib/rxe0/dma > /results/mainline/"$ulp-$mode.counts"
	echo "data $mode $data"
	[ -n "$down" ] || { echo "$ulp could not be taken down"; exit 1; }
done
echo "end of $ulp"
