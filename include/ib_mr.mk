# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# For the Kbuild of a module that uses ib_mr:   include /usr/include/ib_mr/ib_mr.mk
#
# It adds the headers, and the symbols of the ib_mr that is installed for the kernel which is being built for: dkms's, or
# the one of `make install`. The kernel's modpost reads Kbuild once more for KBUILD_EXTRA_SYMBOLS.

ib-mr-include := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
subdir-ccflags-y += -I$(ib-mr-include)
ib-mr-symvers := $(wildcard $(ib-mr-include)/../../lib/ib_mr/$(KERNELRELEASE)/Module.symvers \
	/var/lib/dkms/ib_mr/kernel-$(KERNELRELEASE)-$(UTS_MACHINE)/module/Module.symvers)
KBUILD_EXTRA_SYMBOLS += $(firstword $(ib-mr-symvers))
