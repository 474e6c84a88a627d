# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
# shellcheck shell=sh disable=SC2034,SC2154
#
# nvme-rdma and nvmet-rdma, a RAM disk behind them. Inline data, where there are any, are 16 KiB: four pages, of which the first
# is handled with the command. The target never syncs them, so with `bounce` they come as a mode of their own: bounce+inline.

nvmet=/sys/kernel/config/nvmet

start() {
	insert nvmet-rdma nvme-rdma || return
	mkdir $nvmet/subsystems/ib_mr || return
	echo 1 > $nvmet/subsystems/ib_mr/attr_allow_any_host
	mkdir $nvmet/subsystems/ib_mr/namespaces/1
	echo -n /dev/ram0 > $nvmet/subsystems/ib_mr/namespaces/1/device_path
	echo 1 > $nvmet/subsystems/ib_mr/namespaces/1/enable
	mkdir $nvmet/ports/1
	echo rdma > $nvmet/ports/1/addr_trtype
	echo ipv4 > $nvmet/ports/1/addr_adrfam
	echo $address > $nvmet/ports/1/addr_traddr
	echo 4420 > $nvmet/ports/1/addr_trsvcid
	case $mode in
	bounce|*+rw) echo 0 > $nvmet/ports/1/param_inline_data_size ;;
	*) echo 16384 > $nvmet/ports/1/param_inline_data_size ;;
	esac
	ln -s $nvmet/subsystems/ib_mr $nvmet/ports/1/subsystems/ib_mr || return
	echo "transport=rdma,traddr=$address,trsvcid=4420,nqn=ib_mr,nr_io_queues=2" > /dev/nvme-fabrics || return
	disk=$(ls -d /sys/class/nvme/nvme*) || return
	disk=/dev/${disk##*/}n1
	await 20 test -b "$disk"
}

stop() {
	local controller
	for controller in /sys/class/nvme/nvme*; do
		[ ! -e "$controller" ] || echo 1 > "$controller/delete_controller"
	done
	rm -f $nvmet/ports/1/subsystems/ib_mr
	rmdir $nvmet/ports/1 $nvmet/subsystems/ib_mr/namespaces/1 $nvmet/subsystems/ib_mr
	remove_modules
}
