# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The user's makefile; what is compiled and how stands in Kbuild, which kbuild prefers over this file, in a kernel tree
# as well as out of it. With KERNEL= a kernel of the lab is meant (scripts/kernel list) and the objects go to
# build/<kernel>/; without it the running kernel, or the one whose build folder KDIR= names, and the objects lie here.

KDIR ?= /lib/modules/$(shell uname -r)/build
CHECK_KERNEL = $(or $(KERNEL),6.1-debug)
DEMO_KERNEL = $(or $(KERNEL),6.1)

# what kbuild knows and a user may give on our command line
PASS = $(foreach v,C W V CHECK,$(if $($v),$v=$($v)))

all: modules

modules:
ifdef KERNEL
	@scripts/setup
	@scripts/build $(KERNEL) $(PASS)
else
	@test -e $(KDIR)/Makefile || { \
		echo "no kernel headers in $(KDIR)"; \
		echo "next: install linux-headers-$$(uname -r), or name others: make KDIR=..., or use the lab's: make KERNEL=6.1"; \
		exit 1; }
	$(MAKE) -C $(KDIR) M=$(CURDIR) CONFIG_INFINIBAND_IB_MR=m modules
endif

install: modules
	$(MAKE) -C $(KDIR) M=$(CURDIR) CONFIG_INFINIBAND_IB_MR=m modules_install

check:
	@scripts/setup
	@scripts/check --kernel $(CHECK_KERNEL) $(if $(FILTER),--filter '$(FILTER)') $(if $(SLOW),--slow --timeout 20000)

demo:
	@scripts/setup
	@scripts/demo --kernel $(DEMO_KERNEL)

bench:
	@scripts/setup
	@scripts/build $(DEMO_KERNEL)
	@scripts/bench --kernel $(DEMO_KERNEL)

classic:
	@KERNEL=$(DEMO_KERNEL) scripts/classic

dma-demo:
	@KERNEL=$(DEMO_KERNEL) scripts/dma-demo

soak:
	@scripts/setup
	@KERNEL=$(DEMO_KERNEL) scripts/soak

sparse:
	@scripts/setup
	@scripts/build $(CHECK_KERNEL) C=2

# What the checker takes for a mistake here: lists as macros, locks that kernel-doc describes, IBMR_EXPORT_INTERNAL()
# below its function, "%s" with __func__ where only the call is to be named, KERNEL_VERSION() on the right, and -ENOSYS,
# which is the classic contract.
CHECKPATCH_NOT = FILE_PATH_CHANGES,LINUX_VERSION_CODE,COMPLEX_MACRO,MACRO_ARG_REUSE,UNCOMMENTED_DEFINITION,$\
LINE_SPACING,TRACING_LOGGING,CONSTANT_COMPARISON,ENOSYS

checkpatch:
	@scripts/setup
	@src=$$(scripts/kernel source 6.1) && git ls-files '*.c' '*.h' ':!tests/user' ':!include/trace' | \
		xargs perl $$src/scripts/checkpatch.pl --no-tree --terse --quiet --no-summary --file --strict \
		--ignore $(CHECKPATCH_NOT)

clean:
	rm -rf build/[0-9]*/
	@test ! -e $(KDIR)/Makefile || $(MAKE) -s -C $(KDIR) M=$(CURDIR) clean

help:
	@echo 'make [KDIR=...]        the module for the running kernel, or the one with this build folder'
	@echo 'make KERNEL=K          the module for a kernel of the lab (scripts/kernel list), in build/K/'
	@echo 'make install           installs what make built for KDIR'
	@echo 'make check             KUnit in a guest [KERNEL=6.1-debug] [FILTER=suite.case, * allowed] [SLOW=1]'
	@echo 'make demo              a file over RDMA, end to end, on the stock kernel [KERNEL=6.1]'
	@echo 'make classic           the consumers of the classic verbs, unchanged, on the stock kernel [KERNEL=6.1]'
	@echo 'make dma-demo          a ULP with DMA bugs, each caught by name [KERNEL=6.1]'
	@echo 'make bench             costs, counted in instructions [KERNEL=6.1]'
	@echo 'make soak              a million FMR maps under a reading peer, on the stock kernel [KERNEL=6.1]'
	@echo 'make sparse            sparse over all sources; or C=1 with any build'
	@echo 'make checkpatch        the kernel tree'\''s style checker over all sources'
	@echo 'make clean             removes what was built here (fetched and built kernels stay in the cache)'
	@echo
	@echo 'scripts/vm --help      any module, any command, in a guest with RDMA'

.PHONY: all modules install check demo dma-demo bench soak sparse checkpatch clean help
