#!/bin/bash
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# What scripts/dkms-test does in its own Debian: dkms by hand, a kernel's update, a name that somebody else exports, and
# the packages from their making to their purge. /see has the sources; /etc/ib_mr-kernels names two kernels, the
# first of which has its headers installed. A row is one statement; what led to a false one is shown below it. Its
# arguments name parts to be done, and none means all; each part leaves things as it found them.

set -u
cp -r /see /root/src
cd /root/src || exit 2
. scripts/lib.sh
set +e +o pipefail

{ read -r first; read -r second; } < /etc/ib_mr-kernels
version=$(version)
machine=$(uname -m)
log=/root/log
passed=0 failed=0

# row STATEMENT COMMAND...: true when the command succeeds
row() {
	local statement=$1
	shift
	printf '\n## %s\n' "$statement" >> "$log"
	if "$@" > /root/out 2>&1; then
		passed=$((passed + 1))
		echo "ok   $statement"
	else
		failed=$((failed + 1))
		echo "FAIL $statement"
		tail -n 25 /root/out | sed 's/^/     | /'
	fi
	cat /root/out >> "$log"
}

note() { echo "-- $*"; }
says() { local want=$1; shift; "$@" 2>&1 | tee /dev/stderr | grep -qE -- "$want"; }
is() { echo "is '$1', wanted '$2'"; [ -n "$1" ] && [ "$1" = "$2" ]; }
fails() { ! "$@"; }
info() { modinfo -k "$1" -F "$2" ib_mr; }
status() { dkms status ib_mr | sed 's/,.*:/:/; s/, /,/' | sort | tr '\n' ' '; }

# the module is there for KERNEL in VERSION, in the place that wins over the kernel's own, and modprobe finds it
installed() {		# KERNEL VERSION
	is "$(info "$1" version)" "$2" && is "$(info "$1" filename | sed 's/\.xz$//')" "/lib/modules/$1/updates/dkms/ib_mr.ko" &&
		says '^updates/dkms/ib_mr.ko' grep ib_mr "/lib/modules/$1/modules.dep" && info "$1" vermagic | grep -q "^$1 "
}

# nothing of ib_mr is where dkms puts things
nothing() {
	! find /lib/modules /var/lib/dkms /usr/src -name '*ib_mr*' | grep . && ! grep -l ib_mr /lib/modules/*/modules.dep
}

# everything that is a file, without what only says that something happened, and dkms's own key
files() {
	find / -xdev \( -path /proc -o -path /dev -o -path /tmp -o -path /root -o -path /see -o -path /var/log -o -path /var/cache \
		-o -path /var/lib/dpkg -o -path /var/lib/apt -o -path /run -o -path '/var/lib/dkms/mok.*' \) -prune -o -printf '%p %y\n' | sort
}

# another_version TREE NEW: the sources with a later version, as a release would bring them
another_version() {
	sed -i "s/^#define IB_MR_VERSION .*/#define IB_MR_VERSION \"$2\"/" "$1/include/rdma/ib_mr.h"
	sed -i "s/^PACKAGE_VERSION=.*/PACKAGE_VERSION=\"$2\"/" "$1/dkms.conf"
	{
		sed "1s/(.*)/($2)/; s/^\( -- .*>  \).*/\1$(date -R)/; /^ --/q" "$1/debian/changelog"
		echo
		cat "$1/debian/changelog"
	} > "$1/debian/changelog.new"
	mv "$1/debian/changelog.new" "$1/debian/changelog"
}

# forged FILE: one of our names, as a kernel or an OFED would list it
forged() { printf '0x12345678\tib_reg_phys_mr\tvmlinux\tEXPORT_SYMBOL\t\n' >> "$1"; }

explains() {		# FILE COMMAND...: it fails, and says who has the name and what to do
	local file=$1
	shift
	"$@" > /root/said 2>&1 && { cat /root/said; echo 'it succeeded'; return 1; }
	cat /root/said
	grep -qF "ib_mr: ib_reg_phys_mr is exported by" /root/said && grep -qF "says $file" /root/said && grep -q 'next: ' /root/said
}

part_dkms() {
	note "dkms by hand, $first"
	row "dkms add" dkms add /root/src
	row "dkms build" dkms build "ib_mr/$version" -k "$first"
	row "dkms install" dkms install "ib_mr/$version" -k "$first"
	row "$version is installed, for modprobe to find" installed "$first" "$version"
	row "it names what it depends on" is "$(info "$first" depends | tr , '\n' | sort | xargs)" 'ib_core ib_uverbs'
	row "it names what rxe needs and does not name" says 'pre: crc32_generic' info "$first" softdep
	row "author, description and licence are there" test -n "$(info "$first" author)" -a -n "$(info "$first" description)" \
		-a "$(info "$first" license)" = 'Dual BSD/GPL'
	row "dkms signed it with its own key" says 'DKMS module signing key' info "$first" signer
	row "Module.symvers is kept for ULPs" says ib_reg_phys_mr \
		cat "/var/lib/dkms/ib_mr/kernel-$first-$machine/module/Module.symvers"

	note "the kernel is updated to $second"
	row "the headers come, and dkms builds by itself" apt-get -q install -y --no-download "linux-headers-$second"
	row "$version is installed there, too" installed "$second" "$version"
	row "modprobe loads ib_core and ib_uverbs before it" says '/ib_core.*/ib_uverbs.*/ib_mr' \
		sh -c "modprobe -S $second --show-depends ib_mr | tr '\n' ' '"

	note "ib_mr is upgraded"
	cp -r /root/src /root/next
	another_version /root/next "$version.1"
	row "dkms installs $version.1 over it" sh -c "dkms add /root/next && dkms install ib_mr/$version.1 -k $first"
	row "$version.1 is installed" installed "$first" "$version.1"
	row "and on the second kernel it is still $version" installed "$second" "$version"
	row "the old one goes" dkms remove "ib_mr/$version" --all
	row "the new one stays" installed "$first" "$version.1"
	row "dkms remove" dkms remove "ib_mr/$version.1" --all
	rm -rf /usr/src/ib_mr-*
	row "nothing is left" nothing
}

part_clash() {
	local headers=/usr/src/linux-headers-$first
	note "somebody else exports ib_reg_phys_mr"
	cp "$headers/Module.symvers" /root/symvers
	forged "$headers/Module.symvers"
	row "make says who, where and what to do" explains "$headers/Module.symvers" make KDIR="$headers"
	dkms add /root/src > /dev/null
	row "dkms says so on the terminal" explains "/lib/modules/$first/build/Module.symvers" dkms build "ib_mr/$version" -k "$first"
	row "dkms says so in its log" says 'ib_reg_phys_mr is exported by' cat "/var/lib/dkms/ib_mr/$version/build/make.log"
	cp /root/symvers "$headers/Module.symvers"
	mkdir -p "/usr/src/ofa_kernel/$machine/$first"
	forged "/usr/src/ofa_kernel/$machine/$first/Module.symvers"
	row "an OFED is found" explains "/usr/src/ofa_kernel/$machine/$first/Module.symvers" make KDIR="$headers"
	rm -rf /usr/src/ofa_kernel
	dkms remove "ib_mr/$version" --all > /dev/null
	rm -rf /usr/src/ib_mr-*
}

part_packages() {
	local k
	note "packages"
	row "the second kernel's headers" apt-get -q install -y --no-download "linux-headers-$second"
	depmod "$first" 2> /dev/null	# its lists belong to nobody, and come with the first module
	files > /root/before
	row "make deb, and lintian has no objection" make deb
	row "a build leaves the sources as they were" sh -c "cp -r /see /root/clean && cd /root/clean && dpkg-buildpackage -us -uc -b &&
		debian/rules clean && diff -r /see /root/clean"
	row "all three are installed" apt-get -q install -y ./build/deb/ib-mr-{dkms,dev,tools}_"$version"_all.deb
	row "dkms built the module for $first" installed "$first" "$version"
	row "and for $second" installed "$second" "$version"
	cp -r /usr/share/doc/ib-mr-dev/examples /root/hello
	for k in "$first" "$second"; do
		row "a ULP builds on them, $k" make -C "/lib/modules/$k/build" M=/root/hello clean modules
		row "and is linked to the module that dkms built" is \
			"$(modprobe --dump-modversions /root/hello/hello.ko | awk '$2 == "ib_mr_reg_kernel" { print $1 }')" \
			"$(awk '$2 == "ib_mr_reg_kernel" { print $1 }' "/var/lib/dkms/ib_mr/kernel-$k-$machine/module/Module.symvers")"
	done
	row "ibmr shows what was captured of a device" is "$(ibmr --root tests/ibmr/root regions)" "$(cat tests/ibmr/root/rxe0/regions)"
	row "and says that here is none" sh -c 'ibmr stats; [ $? = 3 ]'
	row "man ibmr" says 'shows in debugfs' man ibmr
	row "bash completes it" is magazines "$(bash -c '. /usr/share/bash-completion/completions/ibmr
		COMP_WORDS=(ibmr ma) COMP_CWORD=1; _ibmr; echo "${COMPREPLY[@]}"')"
	cp -r /root/src /root/later
	another_version /root/later "$version.1"
	row "a later version's packages" make -C /root/later deb
	row "the upgrade" apt-get -q install -y /root/later/build/deb/*.deb
	row "$version.1 is what modprobe finds" installed "$second" "$version.1"
	row "the old version's module and source are gone" sh -c "! find /usr/src /var/lib/dkms -name 'ib_mr-$version' -o -path '*/ib_mr/$version' | grep ."
	row "the purge" apt-get -q purge -y ib-mr-dkms ib-mr-dev ib-mr-tools
	row "nothing of ib_mr is left" nothing
	files > /root/after
	row "nor any other file" diff /root/before /root/after
}

[ $# -gt 0 ] || set -- dkms clash packages
for part in "$@"; do "part_$part"; done

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
