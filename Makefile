# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# The user's makefile; what is compiled and how stands in Kbuild, which kbuild prefers over this file, in a kernel tree
# as well as out of it. With KERNEL= a kernel of the lab is meant (scripts/kernel list) and the objects go to
# build/<kernel>/; without it the running kernel, or the one whose build folder KDIR= names, and the objects lie here.

KDIR ?= /lib/modules/$(shell uname -r)/build
PREFIX ?= /usr/local
# The release of the kernel that KDIR names, as uname tells it and modules carry it. Debian's headers of 6.1 have another
# one in include/config/kernel.release, which is what the kernel's own makefiles would install for.
KREL = $(shell sed -n 's/^\#define UTS_RELEASE "\(.*\)"/\1/p' $(KDIR)/include/generated/utsrelease.h 2> /dev/null)
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
	@scripts/clash $(KDIR)
	$(MAKE) -C $(KDIR) M=$(CURDIR) CONFIG_INFINIBAND_IB_MR=m modules
endif

# A package is made with DESTDIR, and then depmod is for whoever installs it. The kernel's own modules_install leaves
# depmod out where there is no System.map, as in Debian's headers.
MODDIR = $(DESTDIR)/lib/modules/$(KREL)/updates/ib_mr

# Debian's headers name a key that its builders alone have. The kernel would try to sign, complain of OpenSSL, and go on.
SIG_KEY = $(patsubst "%",%,$(shell sed -n 's/^CONFIG_MODULE_SIG_KEY=//p' $(KDIR)/include/config/auto.conf))
UNSIGNED = $(if $(filter pkcs11:%,$(SIG_KEY))$(wildcard $(SIG_KEY) $(KDIR)/$(SIG_KEY)),,CONFIG_MODULE_SIG_ALL=)

install: modules install-headers install-tools
	$(MAKE) -C $(KDIR) M=$(CURDIR) CONFIG_INFINIBAND_IB_MR=m KERNELRELEASE=$(KREL) INSTALL_MOD_PATH=$(DESTDIR) \
		INSTALL_MOD_DIR=updates/ib_mr $(UNSIGNED) modules_install
	install -D -m 644 Module.symvers $(DESTDIR)$(PREFIX)/lib/ib_mr/$(KREL)/Module.symvers
	$(if $(DESTDIR),,depmod -a $(KREL))

install-headers:
	cd include && find . \( -name '*.h' -o -name '*.mk' \) -exec install -D -m 644 '{}' '$(DESTDIR)$(PREFIX)/include/ib_mr/{}' \;

# ibmr, with its manual page and completion
TOOLS = $(DESTDIR)$(PREFIX)/sbin/ibmr $(DESTDIR)$(PREFIX)/share/man/man8/ibmr.8 \
	$(DESTDIR)$(PREFIX)/share/bash-completion/completions/ibmr

install-tools:
	install -D -m 755 scripts/ibmr $(word 1,$(TOOLS))
	install -D -m 644 scripts/ibmr.8 $(word 2,$(TOOLS))
	install -D -m 644 scripts/ibmr.bash $(word 3,$(TOOLS))

uninstall:
	@test -n "$(KREL)" || { \
		echo "which kernel is meant? $(KDIR) does not say its release"; \
		echo "next: make uninstall KDIR=... with that kernel's headers, or KREL=\$$(uname -r)"; \
		exit 1; }
	rm -rf $(MODDIR) $(DESTDIR)$(PREFIX)/include/ib_mr $(DESTDIR)$(PREFIX)/lib/ib_mr/$(KREL) $(TOOLS)
	-rmdir $(dir $(MODDIR)) $(DESTDIR)$(PREFIX)/lib/ib_mr 2> /dev/null
	$(if $(DESTDIR),,depmod -a $(KREL))

quick:
	@scripts/setup
	@scripts/check --quick --kernel $(or $(KERNEL),6.1-um) $(if $(FILTER),--filter '$(FILTER)') --timeout 300

check:
	@scripts/setup
	@scripts/check --kernel $(CHECK_KERNEL) $(if $(FILTER),--filter '$(FILTER)') $(if $(SLOW),--slow --timeout 20000)

check-all:
	@scripts/check-all $(if $(SLOW),--slow --timeout 20000)

demo:
	@scripts/setup
	@scripts/demo --kernel $(DEMO_KERNEL)

demo2:
	@scripts/demo2 --kernel $(DEMO_KERNEL)

bench:
	@scripts/setup
	@scripts/build $(DEMO_KERNEL)
	@scripts/bench --kernel $(DEMO_KERNEL) $(if $(SMP),--smp $(SMP))

classic:
	@KERNEL=$(DEMO_KERNEL) scripts/classic

dma-demo:
	@KERNEL=$(DEMO_KERNEL) scripts/dma-demo

dma-legal:
	@KERNEL=$(DEMO_KERNEL) $(if $(SECS),SECS=$(SECS)) $(if $(SEED),SEED=$(SEED)) scripts/dma-legal

mainline:
	@scripts/mainline --kernel $(DEMO_KERNEL) $(foreach u,$(ULP),--ulp $u)

races:
	@scripts/setup
	@scripts/races --kernel $(or $(KERNEL),6.1-kcsan) $(if $(SEED),--seed $(SEED)) $(if $(ROUNDS),--rounds $(ROUNDS))

adversary:
	@KERNEL=$(DEMO_KERNEL) scripts/adversary

fuzz:
	@KERNEL=$(DEMO_KERNEL) scripts/fuzz $(if $(N),--ops $(N)) $(if $(SEED),--seed $(SEED))

soak:
	@scripts/setup
	@KERNEL=$(DEMO_KERNEL) MINUTES=$(or $(MINUTES),10) scripts/soak

coverage:
	@scripts/setup
	@scripts/coverage --kernel $(CHECK_KERNEL)

mutate:
	@scripts/setup
	@scripts/mutate --kernel $(CHECK_KERNEL) $(if $(ONLY),--only $(ONLY))

removal:
	@scripts/setup
	@scripts/removal --kernel $(CHECK_KERNEL) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SEED),--seed $(SEED))

rooms-check:
	@scripts/rooms

sparse:
	@scripts/setup
	@scripts/build $(CHECK_KERNEL) C=2

# What the checker takes for a mistake here: lists as macros, locks that kernel-doc describes, IBMR_EXPORT_INTERNAL()
# below its function, a static key's EXPORT_SYMBOL(), "%s" with __func__ where only the call is to be named, a function
# called wrong(), KERNEL_VERSION() on the right, -ENOSYS, which is the classic contract, data_race() whose reason stands
# above the function or the file, a test that spins on purpose, a list of words with "bounce bounce,strict", and the old
# flags as the int that they were.
CHECKPATCH_NOT = FILE_PATH_CHANGES,LINUX_VERSION_CODE,COMPLEX_MACRO,MACRO_ARG_REUSE,UNCOMMENTED_DEFINITION,$\
LINE_SPACING,TRACING_LOGGING,CONSTANT_COMPARISON,ENOSYS,EXPORT_SYMBOL,EMBEDDED_FUNCTION_NAME,DATA_RACE,$\
USLEEP_RANGE,REPEATED_WORD,TYPECAST_INT_CONSTANT

abi-check:
	@scripts/setup
	@scripts/build $(DEMO_KERNEL)
	@scripts/abi check build/$(DEMO_KERNEL)/Module.symvers

install-test:
	@scripts/setup
	@scripts/install-test --kernel $(DEMO_KERNEL)

# a ULP to start from
ulp:
	@test -n "$(NAME)" || { echo 'next: make ulp NAME=your_ulp [DIR=folder]'; exit 1; }
	@scripts/ulp $(NAME) $(DIR)

ulp-test:
	@scripts/setup
	@scripts/ulp --try --kernel $(DEMO_KERNEL)

deb:
	@scripts/deb

# those of docs/how-it-works.md, from the texts beside them
pictures:
	@scripts/setup --also graphviz
	@for p in parts key; do dot -Tsvg docs/$$p.dot | \
		sed '1a <!-- SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB -->' > docs/$$p.svg || exit; done

# the manual of the exported calls
docs:
	@scripts/docs make

docs-check:
	@scripts/docs check

dkms-test:
	@scripts/dkms-test

checkpatch:
	@scripts/setup
	@src=$$(scripts/kernel source 6.1) && git ls-files '*.c' '*.h' ':!tests/user' ':!tests/mainline' ':!tests/vm' ':!include/trace' | \
		xargs perl $$src/scripts/checkpatch.pl --no-tree --terse --quiet --no-summary --file --strict \
		--ignore $(CHECKPATCH_NOT)

clean:
	@test ! -d build || find build -mindepth 1 -maxdepth 1 ! -name results -exec rm -rf '{}' +
	@test ! -e $(KDIR)/Makefile || $(MAKE) -s -C $(KDIR) M=$(CURDIR) clean

help:
	@echo 'make [KDIR=...]        the module for the running kernel, or the one with this build folder'
	@echo 'make KERNEL=K          the module for a kernel of the lab (scripts/kernel list), in build/K/'
	@echo 'make install           module, headers, Module.symvers and tools [PREFIX=/usr/local] [DESTDIR=]; make uninstall'
	@echo 'make ulp NAME=x        a ULP to start from, in ../x or DIR='
	@echo 'make docs              the manual of the exported calls, HTML and man pages, in build/docs/; make docs-check'
	@echo 'make pictures          draws docs/parts.svg and docs/key.svg anew'
	@echo 'make deb               the Debian packages ib-mr-dkms, ib-mr-dev and ib-mr-tools, in build/deb/'
	@echo 'make quick             KUnit in seconds, in a kernel that is a process [FILTER=suite.case, * allowed]'
	@echo 'make check             KUnit in a guest [KERNEL=6.1-debug] [FILTER=suite.case, * allowed] [SLOW=1]'
	@echo 'make check-all         the same on 6.1-debug, 6.12-debug, 7-debug, then the demo on 6.1, 6.12, 6.1-rt, 6.1-cloud: hours'
	@echo 'make demo              a file over RDMA, end to end, on the stock kernel [KERNEL=6.1]'
	@echo 'make classic           the consumers of the classic verbs, unchanged, on the stock kernel [KERNEL=6.1]'
	@echo 'make demo2             the same between two guests on a wire, recorded, and cut in the middle [KERNEL=6.1]'
	@echo 'make dma-demo          a ULP with DMA bugs, each caught by name [KERNEL=6.1]'
	@echo 'make dma-legal         correct use of the DMA helpers, at random: the checker reports nothing [SECS=30] [SEED=n] [KERNEL=6.1]'
	@echo 'make mainline          mainline'\''s own RDMA drivers under the DMA checker [ULP="nvme nfs rnbd"]'
	@echo 'make bench             costs, counted in instructions [KERNEL=6.1]; SMP=2: waits for locks between CPUs'
	@echo 'make races             everything at once on the same objects, under KCSAN [KERNEL=6.1-kcsan] [SEED=n] [ROUNDS=n]'
	@echo 'make adversary         a hostile peer against every kind of memory [KERNEL=6.1]'
	@echo 'make fuzz              random calls against a model of who may access what [N=100000] [SEED=n] [KERNEL=6.1]'
	@echo 'make soak              the same for hours, on the stock kernel: memory and counters flat [MINUTES=10] [KERNEL=6.1]'
	@echo 'make coverage          what of src/ make check reaches, and why not the rest [KERNEL=6.1-debug]'
	@echo 'make mutate            breaks src/ in forty places; do the tests notice? An hour [KERNEL=6.1-debug] [ONLY=n,n-n]'
	@echo 'make removal           the device goes, again and again, under a working ULP [KERNEL=6.1-debug] [ROUNDS=60] [SEED=1]'
	@echo 'make rooms-check       each folder of src/ includes only what the table in CONTRIBUTING.md allows'
	@echo 'make sparse            sparse over all sources; or C=1 with any build'
	@echo 'make abi-check         versions agree; what is exported is what abi/ promises'
	@echo 'make ulp-test          make ulp, build and run what it made'
	@echo 'make install-test      make install, a ULP built on it, modprobe in a guest, make uninstall'
	@echo 'make dkms-test         dkms and the packages in a Debian 12 of their own, on two kernels (as root)'
	@echo 'make checkpatch        the kernel tree'\''s style checker over all sources'
	@echo 'make clean             removes what was built here, but build/results (kernels stay in the cache)'
	@echo
	@echo 'scripts/vm --help      any module, any command, in a guest with RDMA'

# a word that is no target, perhaps one misspelt
.DEFAULT:
	@echo "there is nothing called '$@' to make"
	@echo "next: make help"
	@exit 2

.PHONY: all modules install install-headers install-tools uninstall quick check check-all demo demo2 dma-demo dma-legal mainline bench races \
	adversary fuzz soak coverage mutate removal rooms-check sparse abi-check ulp ulp-test install-test pictures docs docs-check deb dkms-test \
	checkpatch clean help
