# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=sh
#
# In the guest: what the scripts beside this one share. Each of them puts one of mainline's ULPs to work over rxe0, with its
# target in the same guest, and defines
#	start	insert the modules, set the target up, connect; set `disk` to the disk that came of it, if there is one
#	work	I/O whose data are verified; not defined where there is a disk
#	stop	disconnect, take the target down, remove the modules in $remove
# guest.sh calls them once for each mode of the checker.

address=10.0.2.15

# await SECONDS TEST...: tries ten times a second
await() {
	local tries=$(($1 * 10))
	shift
	while ! "$@" 2> /dev/null; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || { echo "waited in vain: $*"; return 1; }
		usleep 100000
	done
}

# insert NAME...: modules of ours, in $prefer or beside this file; remembered for stop
remove=
prefer=.
insert() {
	local name
	for name; do
		if [ -e "$prefer/$name.ko" ]; then insmod "$prefer/$name.ko"; else insmod "$name.ko"; fi || return
		remove="$name $remove"
	done
}

remove_modules() {
	local name
	for name in $remove; do
		await 20 rmmod "$name" || return
	done
	remove=
}

# on_disk DISK: random I/O past the page cache, then a file system with a copy in it that is read back
on_disk() {
	./verify "$1" $((8 << 20)) "$OPERATIONS" 1 512 || return
	dd if=/dev/urandom of=/tmp/file bs=64k count=80 2> /dev/null
	mkfs.ext4 -q -F "$1" || return
	mount -t ext4 "$1" /mnt || return
	cp /tmp/file /mnt/a && cp -r /sys/module/ib_mr/parameters /mnt/b
	umount /mnt || return
	echo 3 > /proc/sys/vm/drop_caches
	mount -t ext4 "$1" /mnt || return
	same_file /tmp/file /mnt/a
	local same=$?
	umount /mnt
	return $same
}

same_file() {
	local one two
	one=$(md5sum < "$1")
	two=$(md5sum < "$2")
	[ "$one" = "$two" ] && return
	echo "the copy differs: $one $two"
	return 1
}
