# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=bash
#
# Bash completion of ibmr: commands, options, devices. Keys come from the device that was named.

_ibmr() {
	local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} root=${IBMR_ROOT:-/sys/kernel/debug/ib_mr}
	local commands='regions pools windows magazines dma stats explain top' command='' devices i place=0 at=0

	COMPREPLY=()
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--root) root=${COMP_WORDS[i + 1]:-$root}; ((i++)) ;;
		--count|--sort) ((i++)) ;;
		-*) ;;
		*)
			if [ -z "$command" ]; then
				command=${COMP_WORDS[i]} at=$i
			else
				((place++))
			fi ;;
		esac
	done
	# where ib_mr 1.0 had no folder for them, they lie beside its own files
	[ ! -d "$root/devices" ] || [ -e "$root/devices/regions" ] || root=$root/devices
	devices=$(cd "$root" 2> /dev/null && for i in */; do [ ! -e "$i/regions" ] || echo "${i%/}"; done)
	case $before in
	--root) mapfile -t COMPREPLY < <(compgen -d -- "$word"); return ;;
	--sort)
		mapfile -t COMPREPLY < <(compgen -W 'device magazine kind pages in_use stock waiting takes/s rekeyed/s
			replaced/s empty/s eagain/s hits/s access' -- "$word")
		return ;;
	--count) return ;;
	esac
	if [ -z "$command" ]; then
		mapfile -t COMPREPLY < <(compgen -W "$commands --root --help" -- "$word")
	elif [[ $word == -* ]]; then
		case $command in
		explain) i='--local --json' ;;
		top) i='--watch --count --sort --json' ;;
		*) i='--watch --count --json' ;;
		esac
		mapfile -t COMPREPLY < <(compgen -W "$i --root --help" -- "$word")
	elif [ $place = 0 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$devices" -- "$word")
	elif [ "$command" = explain ]; then
		case $place in
		1)
			i=$(awk '!/^#/ { print $1; print $2 }' "$root/${COMP_WORDS[at + 1]}/regions" 2> /dev/null |
				grep -v '^0x00000000$' | sort -u)
			mapfile -t COMPREPLY < <(compgen -W "$i" -- "$word") ;;
		4) mapfile -t COMPREPLY < <(compgen -W 'read write atomic' -- "$word") ;;
		esac
	fi
}
complete -F _ibmr ibmr
