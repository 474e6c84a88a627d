# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The one line that a classic source needs in its module's Kbuild (or Makefile):
#
#	include /path/to/ib_mr/include/classic/classic.mk	or /usr/include/ib_mr/classic/classic.mk
#
# It puts this folder, and ib_mr's own headers, before the kernel's, and names ib_mr's symbols: those of the clone that this
# is in, or else of what is installed (ib_mr.mk). Before it may stand what kernel the source was written
# for, roughly (IB_MR_EPOCH := 1, 2 or 3) or exactly (IB_MR_WRITTEN_FOR := 312 for 3.12); a source file that differs has a
# CFLAGS_file.o := -DIB_MR_WRITTEN_FOR=... of its own. See rdma/ib_verbs.h here.

ib-mr-classic := $(patsubst %/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
NOSTDINC_FLAGS += -I$(ib-mr-classic) -I$(patsubst %/,%,$(dir $(ib-mr-classic)))
NOSTDINC_FLAGS += -idirafter $(ib-mr-classic)/old
NOSTDINC_FLAGS += $(addprefix -DIB_MR_EPOCH=,$(IB_MR_EPOCH))
NOSTDINC_FLAGS += $(addprefix -DIB_MR_WRITTEN_FOR=,$(IB_MR_WRITTEN_FOR))
ifneq ($(wildcard $(ib-mr-classic)/../../src/ease/classic.c),)
KBUILD_EXTRA_SYMBOLS += $(wildcard $(ib-mr-classic)/../../Module.symvers)
else
include $(ib-mr-classic)/../ib_mr.mk
endif
