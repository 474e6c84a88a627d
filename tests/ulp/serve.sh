#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The ULP's machine of two (scripts/demo2): traces all that ib_mr does, loads the ULP, looks at it with the tools that a
# person has, and waits until the peer has done its work. What it saw goes to /results/demo2-ulp/.
# The peer's says "done" at port 7001 in the end. That the ULP is ready it sees by itself.

out=/results/demo2-ulp
debugfs=/sys/kernel/debug/ib_mr
mkdir -p $out

cd /sys/kernel/tracing || exit 1
echo 4096 > buffer_size_kb
echo > trace
echo 1 > events/ib_mr/enable
insmod /root/ib_mr_demo.ko file=/root/file || exit 1

rdma resource show mr > $out/rdma-mr.txt
rdma resource show pd > $out/rdma-pd.txt
# Whether a connection ends is not waited for: the peer's machine may be off by then.
: > $out/said
(while :; do nc -l -p 7001 < /dev/null >> $out/said; done) &
until grep -q 'done' $out/said; do sleep 1; done
kill $!

# Each with its exit status: the commands a person would type, and their answers.
ibmr() {
	name=$1
	shift
	command ibmr "$@" > "$out/$name" 2> "$out/$name.err"
	echo "$name $?" >> $out/status
}
for what in regions pools windows magazines dma stats; do
	ibmr $what.txt $what
	ibmr $what.json $what --json
done
# The file's region: within it, past its end, a right it does not have.
file_region() { awk '!/^#/ && $NF == "REMOTE_READ" { print $2, $3, $4; exit }' $debugfs/devices/rxe0/regions; }
# shellcheck disable=SC2046  # three words
set -- $(file_region)
ibmr explain-allowed.txt explain rxe0 "$1" "$2" 4096 read
ibmr explain-past.txt explain rxe0 "$1" "$2" $(($3 + 1)) read
ibmr explain-right.txt explain rxe0 "$1" "$2" 8 write,atomic
ibmr explain-usage.txt explain rxe0 "$1" "$2" 8 reed
ibmr no-device.txt regions rxe7
ibmr top.txt top --watch 0.5 --count 2
mkdir $out/debugfs
for f in regions pools windows magazines dma stats; do cat $debugfs/devices/rxe0/$f > $out/debugfs/$f; done

rmmod ib_mr_demo || exit 1
cat trace > $out/trace.txt
echo 0 > events/ib_mr/enable
rmmod ib_mr || exit 1
ibmr not-loaded.txt regions
