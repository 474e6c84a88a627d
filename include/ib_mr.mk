# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# For the Kbuild of a module that uses ib_mr:   include /usr/include/ib_mr/ib_mr.mk
#
# It adds the headers, and the symbols of ib_mr as it is for the kernel which is being built for: that of the clone which
# this file is in, of `make install`, or of dkms. The kernel's modpost reads Kbuild once more for KBUILD_EXTRA_SYMBOLS.

ib-mr-include := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
subdir-ccflags-y += -I$(ib-mr-include)

# what uname says; KERNELRELEASE is another one under Debian's headers of 6.1
ib-mr-release := $(shell sed -n 's/^\#define UTS_RELEASE "\(.*\)"/\1/p' $(objtree)/include/generated/utsrelease.h)
ib-mr-symbols := $(firstword $(wildcard $(ib-mr-include)/../Module.symvers \
	$(ib-mr-include)/../../lib/ib_mr/$(ib-mr-release)/Module.symvers \
	/var/lib/dkms/ib_mr/kernel-$(ib-mr-release)-$(UTS_MACHINE)/module/Module.symvers))
# Only where symbols are looked up, not in a clean; and not where the caller names some of its own, as scripts/vm does.
ifneq ($(filter %Makefile.modpost,$(MAKEFILE_LIST)),)
ifeq ($(ib-mr-symbols)$(KBUILD_EXTRA_SYMBOLS),)
$(error no Module.symvers of ib_mr for $(ib-mr-release). Next: run make in $(abspath $(ib-mr-include)/..), or install ib_mr)
endif
endif
KBUILD_EXTRA_SYMBOLS += $(ib-mr-symbols)
