#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# In a guest: ROUNDS times a device is taken away from under ib_mr_removal.ko, at a random moment and in one of several
# manners. All of it follows from SEED. A third of the rounds with the ULP as an ib_client, a third as a user of an
# rdma_cm that was loaded after ib_mr, a third of one that was loaded before. Prints `N passed, N failed`.
#
# usage: run.sh ROUNDS SEED

cd "$(dirname "$0")" || exit 2
rounds=$1 seed=$2
ulp=/sys/module/ib_mr_removal/parameters devices=/sys/kernel/debug/ib_mr/devices
passed=0 failed=0 round=0 calls=0 gone=0 reads=0
cut_off=0

# the shell's own ip knows no veth
ip() { /usr/bin/ip "$@"; }

good() { passed=$((passed + 1)); }
bad() { failed=$((failed + 1)); echo "not ok - $*"; }

# check TEXT TEST...: counts, and says when it is not so
check() {
	text=$1
	shift
	if "$@"; then good; else bad "$text"; fi
}

# await SECONDS TEST...
await() {
	tries=$(($1 * 50))
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		usleep 20000
	done
}

no_device() { [ ! -e /sys/class/infiniband/rxe0 ]; }
active() { grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state 2> /dev/null; }
no_set() { [ "$(cat $ulp/sets)" = 0 ]; }
there() { [ -e "/sys/class/net/$1" ]; }
carrier() { [ "$(cat "/sys/class/net/$1/carrier" 2> /dev/null)" = 1 ]; }

pci=$(basename "$(readlink -f /sys/class/net/eth0/device)")
driver=$(readlink -f /sys/class/net/eth0/device/driver)

eth0_up() {
	await 10 there eth0 || return
	echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad
	ip link set eth0 mtu 9000 up
	ip addr add 10.0.2.15/24 dev eth0 2> /dev/null
	await 20 carrier eth0
}

veth_up() {
	there veth0 || ip link add veth0 type veth peer name veth1 || return
	echo 0 > /proc/sys/net/ipv6/conf/veth0/accept_dad
	ip link set veth1 up
	ip link set veth0 mtu 9000 up
	ip addr add 10.7.0.1/24 dev veth0 2> /dev/null
	await 10 carrier veth0
}

# device NIC: rxe0 on it
device() {
	modprobe rdma_rxe
	rdma link add rxe0 type rxe netdev "$1" && await 20 active
}

# today's MAC address of a NIC is in its port's default GID: nobody keeps that place for an old one
default_gid() {
	want=$(tr -d : < "/sys/class/net/$1/address" | cut -c 7-)
	[ "$(tr -d : < /sys/class/infiniband/rxe0/ports/1/gids/0 | cut -c 27-)" = "$want" ]
}

# The device under another name, which debugfs follows, and back. A name of a file of ours is as good as any.
renamed() {
	for pair in "rxe0 dma_reports" "dma_reports rxe0"; do
		# shellcheck disable=SC2086
		set -- $pair
		rdma dev set "$1" name "$2" && [ -e $devices/"$2"/regions ] && [ ! -e $devices/"$1" ] || return
		grep -q "^regions [1-9]" $devices/"$2"/stats || return
	done
}

# What happens to the NIC while all lives: registrations work all the time, and so does what they grant when it is over.
weather() {	# EVENT NIC ADDRESS
	case $1 in
	down)	ip link set "$2" down
		usleep 100000
		ip link set "$2" up
		ip addr add "$3/24" dev "$2" 2> /dev/null
		await 20 carrier "$2" ;;
	addr)	ip addr del "$3/24" dev "$2"
		usleep 50000
		ip addr add "$3/24" dev "$2" ;;
	name)	renamed || return ;;
	mac)	old=$(cat "/sys/class/net/$2/address")
		ip link set "$2" address "52:54:00:09:77:$(printf %02x $((round % 256)))"
		usleep 50000
		[ $((round % 2)) = 0 ] || ip link set "$2" address "$old" ;;
	esac
	await 20 active && await 10 default_gid "$2" || return
	# A new pair finds today's address; the device may take a moment to have it.
	await 10 sh -c "echo 1 > $ulp/check" 2> /dev/null
}

# one KIND EVENT DELAY CUT NUMBER
one() {
	kind=$1 event=$2 delay=$3 cut=$4 number=$5 nic=eth0 addr=10.0.2.15
	if [ "$kind" = veth ]; then
		nic=veth0 addr=10.7.0.1
		veth_up || { bad "round $round: no veth0"; return; }
	fi
	device $nic || { bad "round $round: no rxe0 on $nic"; return; }
	before=$(cat $ulp/wrong)
	echo $addr > $ulp/addr
	if [ "$cut" = 1 ]; then		# it may go while the set is made
		(echo "$number" > $ulp/go) 2> /dev/null &
		cut_off=$((cut_off + 1))
	else
		echo "$number" > $ulp/go || { bad "round $round: no set"; return; }
		[ "$event" = none ] || weather "$event" $nic $addr || bad "round $round: after $event"
		echo 1 > $ulp/check || bad "round $round: what is registered does not work"
	fi
	usleep "$delay"
	case $kind in
	delete)	rdma link delete rxe0 ;;
	rmmod)	rmmod rdma_rxe ;;
	veth)	ip link delete veth0 ;;
	pci)	echo "$pci" > "$driver/unbind" ;;
	esac || bad "round $round: $kind"
	[ "$cut" = 0 ] || wait
	await 120 no_device || bad "round $round: the device does not go"
	await 120 no_set || bad "round $round: the ULP does not end"
	if [ "$kind" = pci ]; then
		echo "$pci" > "$driver/bind"
		eth0_up || bad "round $round: eth0 does not come back"
	fi
	[ "$(cat $ulp/wrong)" = "$before" ] || bad "round $round ($kind, $event, cut $cut): see the kernel's log"
}

# Free pages that a CPU keeps to itself do not count as free, see scripts/soak.
echo 10000 > /proc/sys/vm/percpu_pagelist_high_fraction
free_kb() { awk '/^MemAvailable/ { print $2 }' /proc/meminfo; }
ours_in_vmalloc() { grep -c '\[ib_mr\]' /proc/vmallocinfo; }

# many NAME FIRST LAST
many() {
	phase=$1
	while read -r round kind event delay cut number <&4; do
		if [ "$round" -lt "$2" ] || [ "$round" -gt "$3" ]; then continue; fi
		failed_before=$failed
		one "$kind" "$event" "$delay" "$cut" "$number"
		[ $failed != $failed_before ] || good
		[ $((round % 10)) = 0 ] && echo "# $phase: round $round of $rounds ($kind): $(cat $ulp/calls) calls," \
			"$(cat $ulp/gone) of them -ENODEV, $(cat $ulp/reads) READs, $failed failed, $(free_kb) KiB available"
		[ "$round" != "$warm" ] || free_then=$(free_kb)
	done 4< /tmp/plan
	calls=$((calls + $(cat $ulp/calls))) gone=$((gone + $(cat $ulp/gone))) reads=$((reads + $(cat $ulp/reads)))
	rmmod ib_mr_removal || bad "$phase: the ULP cannot be unloaded"
}

awk -v n="$rounds" -v seed="$seed" 'BEGIN {
	srand(seed)
	for (i = 1; i <= n; i++) {
		k = rand(); kind = k < 0.55 ? "delete" : k < 0.8 ? "rmmod" : k < 0.93 ? "veth" : "pci"
		cut = rand() < 0.25
		e = rand(); event = cut || e < 0.55 ? "none" : e < 0.67 ? "down" : e < 0.78 ? "addr" : e < 0.89 ? "name" : "mac"
		r = rand()	# short ones mostly
		print i, kind, event, int(r * r * r * 400000), cut ? 1 : 0, int(rand() * 2000000000)
	}
}' > /tmp/plan || exit 2

rdma link delete rxe0
modprobe veth
third=$((rounds / 3)) warm=$((rounds / 5))
start=$(date +%s)
free_then=$(free_kb)
vmalloc=$(ours_in_vmalloc)

insmod ./ib_mr_removal.ko || exit 2
many client 1 $third

rmmod rdma_ucm && rmmod rdma_cm && modprobe rdma_cm && insmod ./ib_mr_removal.ko cm=1 || exit 2
many "rdma_cm after ib_mr" $((third + 1)) $((2 * third))

rmmod ib_mr && insmod ./ib_mr.ko && insmod ./ib_mr_removal.ko cm=1 late=1 || exit 2
many "rdma_cm before ib_mr" $((2 * third + 1)) "$rounds"

# What is left: nothing that grows with the rounds.
lost=$((free_then - $(free_kb)))
check "$lost KiB less are available than after round $warm" [ $lost -lt 32768 ]
check "ib_mr still knows a device" [ -z "$(ls $devices 2> /dev/null)" ]
check "ib_mr has $(ours_in_vmalloc) vmalloc areas, and had $vmalloc" [ "$(ours_in_vmalloc)" -le "$vmalloc" ]
check "the threads met no removal" [ "$gone" -gt 0 ]
check "no READ came back" [ "$reads" -gt "$rounds" ]
check "ib_mr cannot be unloaded" rmmod ib_mr
echo "# $rounds rounds ($cut_off while the ULP was at its start) in $(($(date +%s) - start)) s, seed $seed: $calls calls," \
	"$gone of them -ENODEV, $reads READs, $lost KiB less available than after round $warm"
echo "$passed passed, $failed failed"
[ $failed = 0 ]
