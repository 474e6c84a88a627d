# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# What every shell script of the lab shares: where things lie, how it speaks, and how it shows that a long command is
# still alive. Sourced, never run. Everything that is fetched or built from Debian's kernels lives in one cache folder
# outside the clone, so that a second clone costs nothing; everything made from this repository lives in build/.

set -euo pipefail

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ib_mr
me=$(basename "$0")
# a make that called us must not steer the makes we call: its variables and job server are its own
unset MAKEFLAGS MFLAGS MAKELEVEL

say() { printf '%s: %s\n' "$me" "$*" >&2; }

# die "what went wrong" "what to do next"
die() {
	printf '%s: %s\n' "$me" "$1" >&2
	[ $# -lt 2 ] || printf '%s: next: %s\n' "$me" "$2" >&2
	exit 1
}

elapsed() { printf '%d min %02d s' $(($1 / 60)) $(($1 % 60)); }

# progress LABEL LOG [DULL]: reads a kbuild output on stdin, keeps it in LOG and says every ten seconds how far it is. With
# DULL it passes on the lines which that expression does not match.
progress() {
	local label=$1 log=$2 dull=${3:-.*} line n=0 start=$SECONDS next=$((SECONDS + 10)) said=
	: > "$log"
	while IFS= read -r line; do
		printf '%s\n' "$line" >> "$log"
		[[ $line =~ $dull ]] || printf '%s\n' "$line"
		case $line in "  CC "*|"  AS "*|"  LD "*|"  HOSTCC "*) n=$((n + 1)) ;; esac
		if [ "$SECONDS" -ge "$next" ]; then
			next=$((SECONDS + 10))
			said=yes
			say "$label: $n objects, $(elapsed $((SECONDS - start)))"
		fi
	done
	[ -z "$said" ] || say "$label: $n objects in $(elapsed $((SECONDS - start)))"
}

# hold LOCKNAME: waits for and keeps a lock until this process ends, so that two callers do not do the same work twice.
# A lock that it has already is kept; taking it again through a second descriptor would wait for ourselves.
held=
hold() {
	local fd
	[[ $held != *"|$1|"* ]] || return 0
	held+="|$1|"
	mkdir -p "$cache/locks"
	exec {fd}> "$cache/locks/$1"
	flock -n "$fd" && return 0
	say "another process is working on $1; waiting for it"
	flock "$fd"
}

# export_tree FOLDER: the sources as they are here, without anything that was built; FOLDER is made anew.
export_tree() {
	rm -rf "$1"
	mkdir -p "$1"
	if [ -e "$repo/.git" ]; then
		(cd "$repo" && git ls-files -z --cached --others --exclude-standard --deduplicate |
			tar --null --ignore-failed-read -T - -c 2> /dev/null) | tar -x -C "$1"
	else
		(cd "$repo" && tar --exclude ./build -c .) | tar -x -C "$1"
	fi
}

# link_sources FOLDER: links to our sources in it, each in its place, for kbuild to put its objects beside. Only to what is
# source: a plain `make` leaves objects beside ours, and those are for another kernel.
link_sources() {
	local to=$1 part sources=(\( -name '*.[ch]' -o -name '*.mk' -o -name Kbuild -o -name Kconfig \) ! -name '*.mod.c')
	find "$to" -type l \( ! \( "${sources[@]}" \) -o -xtype l \) -delete
	find "$repo"/{src,include,tests/{kunit,ulp,bench,fuzz}} -type d -print0 | while IFS= read -r -d '' part; do
		mkdir -p "$to/${part#"$repo/"}"
		find "$part" -maxdepth 1 -type f "${sources[@]}" -exec ln -sf -t "$to/${part#"$repo/"}" '{}' +
	done
	ln -sf -t "$to" "$repo/Kbuild" "$repo/Kconfig"
}

# the version of ib_mr
version() { sed -n 's/^#define IB_MR_VERSION "\(.*\)"/\1/p' "$repo/include/rdma/ib_mr.h"; }

# part FILE COMMAND...: runs it with a headline and keeps what it prints in FILE. One that fails and does not say so in
# its sum, or has none, gets a sum with one failure more.
part() {
	local file=$1 sum
	shift
	printf '=== %s (%s)\n' "${*#"$repo/"}" "$(elapsed "$SECONDS")"
	"$@" 2>&1 | tee "$file" && return
	sum=$(summary "$file")
	[[ $sum != *' 0 failed'* ]] || echo "${sum/ 0 failed/ 1 failed}" | tee -a "$file"
}

# summary FILE...: the sum of each one's last sum
summary() {
	awk '
		/^[0-9]+ passed, [0-9]+ failed/ { last[FILENAME] = $0 }
		END {
			for (f in last) {
				split(last[f], n, /[^0-9]+/)
				passed += n[1]; failed += n[2]; skipped += n[3]
			}
			printf "%d passed, %d failed", passed, failed
			if (skipped) printf ", %d skipped", skipped
			print ""
		}' "$@"
}
