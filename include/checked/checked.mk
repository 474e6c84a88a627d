# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The one line that puts a ULP of today under the DMA checker, in its Kbuild (or Makefile), its sources as they are:
#
#	include /path/to/ib_mr/include/checked/checked.mk	or /usr/include/ib_mr/checked/checked.mk
#
# This folder comes before the kernel's own headers. Its <rdma/ib_verbs.h> is the kernel's, and <rdma/ib_dma.h> after it, so
# that each ib_dma_*() of the ULP goes through the checker. A forced -include of that header would do so too, and warn in
# each source that defines pr_fmt first.
#
# A target (nvmet-rdma, srpt, isert, rpcrdma, ...) lets rdma_rw map for it, which is a part of ib_core that was compiled
# long ago. A second line, below the module's list of objects, takes that part into the module, where it is checked too:
#
#	$(eval $(call ib-mr-rw,NAME))				for NAME.ko
#
# What is compiled for it is drivers/infiniband/core/rw.c of the kernel's source, which is never copied into this project.
# The lab's is taken, or that in the folder IB_MR_LINUX=... Its exports are emptied, as ib_core has them already; the linker
# prefers what is in the module itself. ib_core goes on to use its own copy to make queue pairs, and that part maps nothing.

ib-mr-checked := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
NOSTDINC_FLAGS += -I$(ib-mr-checked) -I$(patsubst %/,%,$(dir $(ib-mr-checked)))
include $(ib-mr-checked)/../ib_mr.mk

# A module of one source has the name of its object, which cannot have a second part: it is compiled under another name then.
define ib-mr-rw
$(1)-y += $(if $($(1)-y)$($(1)-objs),,$(1)-checked.o) $(1)-rw.o
CFLAGS_$(1)-checked.o += $$(CFLAGS_$(1).o)
targets += $(1)-checked.c $(1)-rw.c
clean-files += $(1)-checked.c $(1)-rw.c
$$(obj)/$(1)-checked.c: $$(ib-mr-checked)/checked.mk
	@echo '#include "$(1).c"' > $$@
$$(obj)/$(1)-rw.c: $$(ib-mr-checked)/checked.mk
	@linux=$$$${IB_MR_LINUX:-$$$$($$(ib-mr-checked)/../../scripts/kernel source $$(VERSION).$$(PATCHLEVEL))}; \
	test -e "$$$$linux/drivers/infiniband/core/rw.c" || { \
		echo "the source of Linux $$(VERSION).$$(PATCHLEVEL) is not there, of which rw.c is wanted"; \
		echo 'next: IB_MR_LINUX=/path/to/it'; \
		exit 1; \
	}; \
	printf '#include <linux/export.h>\n#undef EXPORT_SYMBOL\n#define EXPORT_SYMBOL(symbol)\n#include "%s"\n' \
		"$$$$linux/drivers/infiniband/core/rw.c" > $$@
endef
