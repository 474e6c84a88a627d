# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=sh disable=SC2034
#
# rnbd over rtrs, client and server; a RAM disk behind them. Few chunks: the server maps all of them when a client comes.

start() {
	insert rtrs-core || return
	insmod rtrs-server.ko sess_queue_depth=32 || return
	remove="rtrs-server $remove"
	insert rnbd-server rtrs-client rnbd-client || return
	echo "sessname=ib_mr path=ip:$address device_path=/dev/ram0" > /sys/devices/virtual/rnbd-client/ctl/map_device || return
	disk=/dev/rnbd0
	await 20 test -b $disk
}

stop() {
	[ ! -e /sys/block/rnbd0 ] || echo force > /sys/block/rnbd0/rnbd/unmap_device
	sleep 1
	remove_modules
}
