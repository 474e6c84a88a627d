# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=sh
#
# NFS 4.1 over RDMA: rpcrdma is client and server. No daemon runs here; the kernel's three questions (who is this address, what
# is exported to him, what does this file handle mean) are answered before they are asked, and never again.

forever=2147483647
export_flags=9234	# any port, asynchronous, no check of subtrees, fsid=0

answers() {
	echo "nfsd $address $forever *" > /proc/net/rpc/auth.unix.ip/channel
	echo "* /export $forever $export_flags 65534 65534 0" > /proc/net/rpc/nfsd.export/channel
	echo "* 1 \\x00000000 $forever /export" > /proc/net/rpc/nfsd.fh/channel
}

start() {
	insert rpcrdma || return
	mkdir -p /export /mnt/nfs
	mkfs.ext4 -q -F /dev/ram0 && mount -t ext4 /dev/ram0 /export || return
	[ -e /proc/fs/nfsd/threads ] || mount -t nfsd nfsd /proc/fs/nfsd || return
	echo '-3 +4 +4.1' > /proc/fs/nfsd/versions
	answers || return
	mkdir -p /var/lib/nfs/v4recovery	# without it nobody may end the time in which old clients come back
	echo 10 > /proc/fs/nfsd/nfsv4gracetime
	echo 'rdma 20049' > /proc/fs/nfsd/portlist || return
	echo 4 > /proc/fs/nfsd/threads || return
	echo Y > /proc/fs/nfsd/v4_end_grace
	mount -i -t nfs4 -o "proto=rdma,port=20049,addr=$address,clientaddr=$address,vers=4.1,sec=sys" $address:/ /mnt/nfs
}

work() {
	local same
	./verify /mnt/nfs/file $((4 << 20)) "$OPERATIONS" 1 1 || return
	dd if=/dev/urandom of=/tmp/file bs=64k count=80 2> /dev/null
	cp /tmp/file /mnt/nfs/a || return
	cp -r /sys/module/ib_mr/parameters /mnt/nfs/b
	ls -lR /mnt/nfs > /dev/null
	umount /mnt/nfs || return
	echo 3 > /proc/sys/vm/drop_caches
	same_file /tmp/file /export/a || return
	mount -i -t nfs4 -o "proto=rdma,port=20049,addr=$address,clientaddr=$address,vers=4.1,sec=sys" $address:/ /mnt/nfs || return
	same_file /tmp/file /mnt/nfs/a
	same=$?
	rm -rf /mnt/nfs/*
	return $same
}

stop() {
	local cache
	umount -f /mnt/nfs 2> /dev/null
	echo 0 > /proc/fs/nfsd/threads
	for cache in nfsd.fh nfsd.export auth.unix.ip; do
		echo $forever > /proc/net/rpc/$cache/flush
	done
	sleep 1
	await 20 umount /export || return
	remove_modules
}
