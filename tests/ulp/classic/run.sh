#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# In a guest with ib_mr and rxe0: loads ib_mr_classic.ko (beside this file), which runs one consumer of the classic verbs
# after the other, and once more on a device that says it has no FMRs. Prints its table and `N passed, N failed`.

cd "$(dirname "$0")" || exit 2
passed=0 failed=0
tab=$(printf '\t')

row() {	# right|WRONG CONSUMER STEP DETAIL
	printf '%-5s  %-13s  %-75s  %s\n' "$1" "$2" "$3" "$4"
	if [ "$1" = right ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
}

# run NAME PARAMETERS...
run() {
	name=$1
	shift
	dmesg -c > /dev/null
	insmod ./ib_mr_classic.ko "$@" && rmmod ib_mr_classic
	dmesg | sed -n 's/^.*classic: \(\(right\|WRONG\)\t.*\)$/\1/p' > /tmp/rows
	while IFS=$tab read -r verdict consumer step detail; do
		row "$verdict" "$consumer" "$step" "$detail"
	done < /tmp/rows
	if dmesg | grep -q 'classic: end$' && [ -s /tmp/rows ]; then
		row right all "$name: loaded, run to the end, unloaded" "$(grep -c . /tmp/rows) steps"
	else
		row WRONG all "$name: loaded, run to the end, unloaded" "it broke off; see the kernel's log"
	fi
}

run 'with FMRs'
echo 1 > /sys/module/ib_mr/parameters/no_fmr
run 'without FMRs' nosys=1
echo 0 > /sys/module/ib_mr/parameters/no_fmr

echo "$passed passed, $failed failed"
[ $failed = 0 ]
