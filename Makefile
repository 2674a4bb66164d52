# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
#   make              build the programs in $(O)
#   make demo         install dependencies, build, sample for ten seconds
#   make check        install dependencies, build, run all tests that this machine can run
#   make hwtest       tests that need a machine with IBS, as root, with one report; hwtest-rig: in a guest
#   make model        errors of exposed cycles, by stream, on CORES modelled cores of OPS ops
#   make neighbours   noisy neighbours named rightly and wrongly, over STREAMS (100) and quiet HOURS (24) [SEED=1, WINDOWS=1 a second]
#   make strata       bias, coverage and width of intervals of strata, over WINDOWS (10000) simulated ones
#   make strata-split  the same widths for other splits of the time between strata
#   make bench        cost of samples, readings and recordings: here, and in instructions on the rig
#   make bench-neighbours  what judging neighbours costs a collector of CONTAINERS (200), over SECONDS (60)
#   make bench-offline  commands that read a recording of SAMPLES (2000000), beside perf, medians of RUNS (3)
#   make fuzz         fuzz the parsers, FUZZ_S seconds each; fuzz-all takes half an hour
#   make hostile      a user with a cgroup of his own against the collector, HOSTILE_S seconds (120)
#   make runtimes     real container runtimes, which it installs (Debian): names, pods, renames, restarts
#   make fleet        200 exporters and one Prometheus with native histograms, which it fetches (Debian)
#   make mpi          ranks under Open MPI and MPICH, which it installs (Debian)
#   make types-perf   compare the shares of known data types with perf's
#   make mutants      do tests fail when the code is wrong? FILES= or ROOM=; without them SAMPLE=60 of six rooms; CLI=1 SYSTEM=1
#   make inject       let each allocation and system call of each command fail; ONLY=TEXT some commands, MOST=N a few
#   make coverage     lines and branches that unit, cli and system tests reach, by room; LAYERS=unit,cli some layers
#   make valgrind     unit and system tests under valgrind's memcheck: an hour
#   make screenshots  pictures of the README, of a simulated machine; needs chromium
#   make lint         compilers and analysers at their strictest
#   make install      DESTDIR= prefix=
#   make deb          a Debian package in $(O)/deb
# On the rig, with the kernel's own IBS driver on emulated hardware:
#   make vmtest       results against the hardware's log
#   make vmtest-fetch ibs_fetch, on all pairs
#   make vmtest-estimates  estimated ops under hardware filters within 2 %, and beside a steady perf within 1 %
#   make vmtest-coverage  how many of a hundred windows have the truth in their 95 % interval
#   make vmtest-allocations  report --by allocation against a program's own malloc trace
#   make vmtest-strata  hist --strata: ledgers of both strata, estimates and their intervals
#   make vmtest-ranks an MPI job of OpenMP programs on two guests, merged
#   make vmtest-sharing  hot lines of programs that share cache lines in known ways
#   make vmtest-pages commands of ibscope-from-toolkit(7) and -perf(7) that sample
#   make vmtest-contention  neighbours and diff where latencies depend on what runs; SEEDS=N (6) guests from SEED
#   make vmtest-takeover  STEPS (40) of kills, restarts and changes in the order of SEED: no sample is lost
#   make vmtest-random  RANDOM_N random selections per kernel, from SEED
#   make governor     the collector's budget while the load jumps, also here (SIMULATED)
#   make many         10,000 cgroups with samples, then 200 a second for ten minutes
#   make soak         the collector for SOAK_S seconds (1800), while the machine changes
#   make lines        cache lines and pages that a sample touches; NAMES=1 prints which
#   make cold BASE=DIR  ns per sample with cold caches, against the build in DIR; runs here
#   make cost-flight  instructions of a dump of the flight recorder, and its ledger
#   make cost-perf    instructions per sample, compared with perf
#   make cores        2 to 255 emulated CPUs: counts, contention, costs, and the model
#
# V=1 shows commands, O=dir builds elsewhere, SAN=address,undefined instruments user space.

O	?= build$(if $(SAN),-san)
# Sanitizers do not change BPF programs, so sanitized builds can reuse those of another build.
BPF_O	?= $(O)
prefix	?= /usr/local
CC	?= cc
CLANG	?= clang
BPFTOOL	?= $(shell command -v bpftool || echo /usr/sbin/bpftool)
# Major: 0 until outputs are stable. Minor: the schema of the pins, so that different ones have different versions.
VERSION	:= 0.$(shell sed -n 's/^.define IBS_PIN_SCHEMA[[:space:]]*\([0-9]*\)$$/\1/p' include/ibscope/pin_layout.h).0

J	?= $(shell nproc)

Q	:= $(if $(V),,@)
say	= $(if $(V),@:,@printf '  %-5s %s\n' $(1) $(2))
S	:= $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
# Tests run for seconds and would take minutes to optimize; fuzz targets run for longer.
S	+= $(if $(SAN),$(if $(findstring fuzzer,$(SAN)),,-O1 -g1))
# Programs that have gcc's sanitizers in themselves start a fifth faster; clang's always have.
STATIC_SAN := $(if $(SAN),$(if $(findstring clang,$(CC)),,$(if $(wildcard $(shell $(CC) -print-file-name=libasan.a)),\
	-static-libasan -static-libubsan)))

# Debian's directory of asm/types.h; compilers do not agree on the name of the triple
asm	:= $(firstword $(wildcard /usr/include/$(shell uname -m)-linux-gnu))
WARN	:= -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wvla -Wno-missing-field-initializers
# An #include names a room, "room/header.h", not its wing.
WINGS	:= src src/host src/core src/data src/face
# Sanitizers check more than fortified functions do, and do not intercept them.
FORTIFY	:= $(if $(SAN),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
override CPPFLAGS := $(FORTIFY) -D_GNU_SOURCE -DIBSCOPE_VERSION='"$(VERSION)"' -Iinclude $(WINGS:%=-iquote %) -iquote $(O) -iquote $(BPF_O) $(CPPFLAGS)
override CFLAGS := -std=gnu11 -O2 -g -fPIE -fstack-protector-strong -fstack-clash-protection -fcf-protection $(WARN) $(S) $(CFLAGS)
# Without the 200,000 relocations of what sanitizers keep about each literal, a program starts in a sixth less time.
PIE	:= $(if $(STATIC_SAN),-no-pie,-pie)
override LDFLAGS := $(PIE) -Wl,-z,relro,-z,now,-z,noexecstack $(S) $(STATIC_SAN) $(LDFLAGS)
WEBLIBS	:= -lmicrohttpd -lgnutls -lyaml -lcrypt
# for the commands only
CMDLIBS	:= -lncursesw -ltinfo -lsystemd -lcurl
# libiberty is a static library: no program depends on it when it runs
LDLIBS	:= -lbpf -ljansson -lzstd -lz -ldw -lelf -llzma -lcapstone -liberty -lm
# v3: the newest instruction set that 5.10 runs
BPF_CFLAGS := -O2 -g -target bpf -mcpu=v3 -D__TARGET_ARCH_x86 -Wall -Wextra \
	-Iinclude -Ivmlinux $(if $(asm),-isystem $(asm))

lib	:= $(O)/libibscope.a
objs	:= $(patsubst %.c,$(O)/%.o,$(wildcard src/base/*.c src/*/*/*.c))
cmds	:= $(patsubst %.c,$(O)/%.o,$(wildcard tools/ibscope/*.c tools/ibscope/*/*.c))
exporter := $(patsubst %.c,$(O)/%.o,$(wildcard tools/exporter/*.c))
units	:= $(patsubst tests/%.c,$(O)/tests/%,$(wildcard tests/unit/test_*.c tests/bpf/test_*.c tests/system/test_*.c))
helpers	:= $(patsubst tests/%.c,$(O)/tests/%,$(filter-out $(wildcard tests/unit/test_*.c),$(wildcard tests/unit/*.c)))

.DELETE_ON_ERROR:
.SECONDARY:
# PAIRS="KERNEL:GEN ..." selects the guests of vmtest, soak and cost; LIVE=KERNEL,.. the guests of vmtest that
# change options while sampling; BRIEF=KERNEL:GEN,.. the guests that run only tests that may differ by kernel.

.PHONY: all tests test-helpers benches model neighbours strata strata-split deps demo check many hwtest hwtest-rig vmtest vmtest-random vmtest-fetch vmtest-estimates vmtest-coverage vmtest-allocations vmtest-strata vmtest-ranks vmtest-pages vmtest-contention vmtest-sharing vmtest-takeover upgrade governor soak bench cost cost-flight lines cost-perf cores fuzz hostile runtimes fleet mpi types-perf mutants inject coverage valgrind lint screenshots install uninstall deb package-test clean

all: $(O)/ibscope $(O)/ibscope-exporter $(O)/libibscope-omp.so $(O)/libibscope-markers.so $(O)/libibscope-alloc.so

$(O)/ibscope: $(cmds) $(lib)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(WEBLIBS) $(LDLIBS) $(CMDLIBS)

$(O)/ibscope-exporter: $(exporter) $(lib)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(WEBLIBS) $(LDLIBS)

# Built without sanitizers, since programs without them load it.
$(O)/libibscope-%.so: tools/regions/ibscope_%.c include/ibscope/region.h
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -O2 -g -fPIC -shared -fvisibility=hidden $(WARN) -Iinclude -Wl,-z,relro,-z,now -o $@ $<

# Walks of stacks begin in it, so it has frame pointers.
$(O)/libibscope-alloc.so: $(wildcard tools/allocs/*.[ch]) include/ibscope/alloc_file.h include/ibscope/region.h
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) -std=gnu11 -D_GNU_SOURCE -O2 -g -fPIC -shared -fvisibility=hidden -fno-omit-frame-pointer -fno-builtin-malloc \
		-fno-builtin-calloc -ftls-model=initial-exec $(WARN) -Iinclude -Wl,-z,relro,-z,now -o $@ $(filter %.c,$^)

$(lib): $(objs)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/%.o: %.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

# `gen object` keeps BTF and drops DWARF.
$(BPF_O)/%.bpf.o: bpf/%.bpf.c
	$(call say,BPF,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $@.d -MT $@ -c $< -o $@.tmp
	$(Q)$(BPFTOOL) gen object $@ $@.tmp && rm $@.tmp

$(O)/tests/%.bpf.o: tests/%.bpf.c
	$(call say,BPF,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -MF $@.d -MT $@ -c $< -o $@

$(BPF_O)/%.skel.h: $(BPF_O)/%.bpf.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# Script and style of `report --html` and of the exporter's page, and their hashes for the content
# security policies.
page := src/face/view/page
$(O)/html_report.js: $(page)/base.js $(sort $(wildcard src/face/html/page/*.js))
$(O)/web_page.js: $(page)/base.js src/face/web/page/page.js src/face/web/page/history.js src/face/web/page/start.js
$(O)/web_page.css: $(page)/style.css src/face/web/page/page.css
$(O)/html_report.js $(O)/web_page.js $(O)/web_page.css:
	$(Q)mkdir -p $(@D)
	$(Q)cat $^ > $@
$(O)/web_page.html: src/face/web/page/head.html $(O)/web_page.css src/face/web/page/body.html $(O)/web_page.js
	$(Q)(cat src/face/web/page/head.html; printf '<style>'; cat $(O)/web_page.css; printf '</style>\n'; \
		cat src/face/web/page/body.html; printf '<script>'; cat $(O)/web_page.js; printf '</script>\n') > $@
$(O)/page_hashes.h: $(O)/html_report.js $(page)/style.css $(O)/web_page.js $(O)/web_page.css
	$(call say,HASH,$@)
	$(Q)for x in "HTML_JS $(O)/html_report.js" "HTML_CSS $(page)/style.css" "WEB_JS $(O)/web_page.js" \
		"WEB_CSS $(O)/web_page.css"; do set -- $$x; \
		printf '#define %s_SHA256 "%s"\n' $$1 $$(openssl dgst -sha256 -binary $$2 | base64); done > $@
	$(Q)printf '#define HTML_JS_FILE "%s"\n#define WEB_PAGE_FILE "%s"\n' $(O)/html_report.js \
		$(O)/web_page.html >> $@
$(O)/src/face/html/html_write.o: $(O)/page_hashes.h src/face/html/page/report.html
$(O)/src/face/web/web_request.o: $(O)/page_hashes.h $(O)/web_page.html

# Reads its own types, which sanitized builds otherwise leave out.
$(O)/tests/unit/test_data_types.o: override CFLAGS += -g2

# Loops over whole columns benefit from vectorization.
$(O)/src/data/recording/recording_columns.o: override CFLAGS += -O3

# A skeleton is a prerequisite of its users.
$(patsubst %,$(O)/src/core/sampler/sampler_%.o,events lease load open): $(BPF_O)/ibs_op.skel.h
$(O)/src/core/pins/pins_links.o: $(BPF_O)/link_events.skel.h
$(O)/src/host/probes/probes.o: $(BPF_O)/alloc_probes.skel.h

benches: $(patsubst tests/bench/%.c,$(O)/bench-%,$(wildcard tests/bench/*.c))

$(O)/bench-%: $(O)/tests/bench/%.o $(lib)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# A fuzz target of whole commands, and tests of rooms that talk HTTP.
$(O)/tests/fuzz/fuzz_commands $(O)/fuzz_commands: $(filter-out %/main.o,$(cmds))
$(O)/tests/fuzz/fuzz_commands $(O)/fuzz_commands: LDLIBS += $(CMDLIBS)
$(O)/tests/fuzz/fuzz_diff $(O)/fuzz_diff $(O)/tests/unit/test_diff_history $(O)/tests/unit/test_diff_prometheus $(O)/tests/unit/test_push_http $(O)/tests/bpf/test_push: LDLIBS += -lcurl

# Tests of a collector, which talks to systemd.
$(O)/tests/bpf/test_collector $(O)/tests/bpf/test_sources: LDLIBS += -lsystemd

# A test of the live screen's terminal.
$(O)/tests/unit/test_terminal: LDLIBS += -lncursesw -ltinfo

# Tests of samplers that take this kernel for another one.
$(O)/tests/bpf/test_older_kernels $(O)/tests/bpf/test_sim_stacks: LDLIBS += -Wl,--wrap=kernel_features_probe
$(O)/tests/bpf/test_slabs: LDLIBS += -Wl,--wrap=kernel_symbol

# The fuzz targets as programs that run each input of a corpus once.
corpora	:= $(patsubst tests/%.c,$(O)/tests/%,$(wildcard tests/fuzz/fuzz_*.c))
$(corpora): $(O)/tests/fuzz/fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(O)/tests/fuzz/replay_corpus.o $(lib)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) $(lib) $(WEBLIBS) $(LDLIBS)

# The program as a function, for a test that runs it on many files.
$(O)/tests/cli/ibscope_main.o: tools/ibscope/main.c
	$(call say,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -Dmain=ibscope_main -Wno-missing-prototypes -MMD -MP -c $< -o $@
$(O)/tests/cli/run_each: $(O)/tests/cli/run_each.o $(O)/tests/cli/ibscope_main.o $(filter-out %/main.o,$(cmds)) $(lib)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(WEBLIBS) $(LDLIBS) $(CMDLIBS)

# Parts of a library that programs load.
$(O)/tests/unit/test_allocs: $(patsubst %,$(O)/tools/allocs/%.o,cfi live ring)

# A modelled core that judges estimates.
$(O)/tests/unit/test_exposed $(O)/tests/unit/exposed_errors: $(patsubst %.c,$(O)/%.o,$(wildcard tests/model/*.c))

tests: test-helpers $(units) $(corpora) $(patsubst tests/%.c,$(O)/tests/%.o,$(wildcard tests/bpf/*.bpf.c))

# What the tests in Python start. Those in C run from a sanitized build only.
test-helpers: $(helpers) $(O)/tests/cli/run_each

$(O)/tests/%: $(O)/tests/%.o $(lib)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ -lcmocka $(WEBLIBS) $(LDLIBS)

# Install dependencies before make evaluates which tools exist.
deps:
	$(Q)tools/deps.sh build

demo: deps
	$(Q)$(MAKE) --no-print-directory -j$(J) all
	$(Q)tools/demo.sh $(O)/ibscope

check: deps
	$(Q)tools/deps.sh test
	$(Q)tests/timed.sh build $(MAKE) --no-print-directory -j$(J) all test-helpers
	$(Q)tests/timed.sh 'sanitized build' $(MAKE) --no-print-directory -j$(J) O=$(O)-san BPF_O=$(O) SAN=address,undefined all tests
	$(Q)tests/run.py --build $(O) --san $(O)-san

# Two minutes: estimates from IBS registers against a core that knows the truth.
model: deps
	$(Q)$(MAKE) --no-print-directory $(O)/tests/unit/exposed_errors
	$(Q)$(O)/tests/unit/exposed_errors $(CORES) $(OPS)

# Ten minutes: who is named as a noisy neighbour, rightly and wrongly.
neighbours: deps
	$(Q)$(MAKE) --no-print-directory $(O)/tests/unit/neighbours_errors
	$(Q)$(O)/tests/unit/neighbours_errors $(or $(STREAMS),100) $(or $(HOURS),24) $(or $(SEED),1) $(or $(WINDOWS),1)

# A minute: estimates and intervals of strata, over simulated windows.
strata: deps
	$(Q)$(MAKE) --no-print-directory $(O)/tests/unit/strata_errors
	$(Q)$(O)/tests/unit/strata_errors $(or $(WINDOWS),10000) $(SEED)

# A minute: the same for other splits of the time between strata, and what the best one would gain.
strata-split: deps
	$(Q)$(MAKE) --no-print-directory $(O)/tests/unit/strata_split
	$(Q)$(O)/tests/unit/strata_split $(or $(WINDOWS),2000) $(SEED)

vmtest: deps
	$(Q)tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory all test-helpers
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/vmtest.py --build $(O) --random $(or $(RANDOM_N),0) --seed $(SEED) $(if $(LIVE),--live $(LIVE)) $(if $(BRIEF),--brief $(BRIEF)) $(PAIRS)

SEED	?= 1
vmtest-random: deps
	$(Q)tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory all test-helpers
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/selections.py --build $(O) --random $(or $(RANDOM_N),200) --seed $(SEED) $(KERNELS)

vmtest-fetch: deps
	$(Q)tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory all test-helpers
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/fetch.py --build $(O) $(PAIRS)

# Kills, replaces and changes a collector in a random order: delivered = seen + unseen.
vmtest-takeover: deps
	$(Q)$(MAKE) --no-print-directory all test-helpers
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/takeover.py --build $(O) --seed $(SEED) $(if $(STEPS),--steps $(STEPS)) $(PAIRS)

# On a machine with IBS, as root: takes ten minutes and writes one report without private data.
hwtest: deps
	$(Q)$(MAKE) --no-print-directory all test-helpers
	$(Q)tests/hw/hwtest.py --build $(O)

hwtest-rig: deps
	$(Q)$(MAKE) --no-print-directory all test-helpers
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/hw/hwtest.py --build $(O) --rig $(or $(PAIRS),6.12:zen4)

vmtest-estimates: deps
	$(Q)$(MAKE) --no-print-directory all test-helpers
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/estimates.py --build $(O) $(PAIRS)

vmtest-allocations: deps
	$(Q)$(MAKE) --no-print-directory all test-helpers
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/allocations.py --build $(O) $(PAIRS)

vmtest-coverage: deps
	$(Q)$(MAKE) --no-print-directory all test-helpers
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/coverage.py --build $(O) $(PAIRS)

# Strata against the log, in two minutes a guest.
vmtest-strata: deps
	$(Q)tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory all test-helpers
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/strata.py --build $(O) $(PAIRS)

vmtest-ranks: deps
	$(Q)tools/deps.sh mpi
	$(Q)$(MAKE) --no-print-directory all test-helpers
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/ranks.py --build $(O) $(PAIRS)

vmtest-pages: deps
	$(Q)$(MAKE) --no-print-directory all test-helpers
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/pages.py --build $(O) $(PAIRS)

vmtest-contention: deps
	$(Q)$(MAKE) --no-print-directory all test-helpers
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/contention.py --build $(O) --seeds $(or $(SEEDS),6) --seed $(or $(SEED),1) $(PAIRS)

vmtest-sharing: deps
	$(Q)$(MAKE) --no-print-directory all test-helpers
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/sharing.py --build $(O) $(PAIRS)

# The release before this one, whose counters this one takes over, and the reverse.
RELEASE	?= 4885375e8b42
upgrade: deps
	$(Q)tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory -j$(J) all
	$(Q)tests/system/upgrade.sh $(RELEASE) $(abspath $(O))

governor: deps
	$(Q)tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory all tests
	$(Q)$(O)/tests/unit/test_governor
	$(Q)cd tests/system && IBSCOPE_BUILD=$(abspath $(O)) python3 -m unittest -v test_governor test_governor_live
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/governor.py --build $(O) $(PAIRS)

many: deps
	$(Q)tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory -j$(J) all tests
	$(Q)IBSCOPE_CGROUPS=10000 IBSCOPE_CHURN_S=600 tests/run.py --build $(O) --san $(O) --only test_many.py

soak: deps
	$(Q)tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory all test-helpers
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/soak.py --build $(O) --seconds $(or $(SOAK_S),1800) $(PAIRS)

bench: deps
	$(Q)$(MAKE) --no-print-directory all benches
	$(Q)$(O)/ibscope doctor --cost
	$(Q)$(O)/bench-twin
	$(Q)$(O)/bench-selections
	$(Q)$(O)/bench-report
	$(Q)$(O)/bench-recording
	$(Q)$(O)/bench-snapshot
	$(Q)$(O)/bench-scrape
	$(Q)$(O)/bench-top
	$(Q)$(MAKE) --no-print-directory cost

# perf is Debian's linux-perf; without it the table has no ratios.
.PHONY: bench-offline
bench-offline: deps
	$(Q)$(MAKE) --no-print-directory all $(O)/bench-offline
	$(Q)tests/bench/offline.py --samples $(or $(SAMPLES),2000000) --runs $(or $(RUNS),3) $(O)

# Four minutes: two collectors beside each other, one of which judges neighbours.
.PHONY: bench-neighbours
bench-neighbours: deps
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tests/bench/neighbours.py $(O)/ibscope $(or $(SECONDS),60) $(or $(CONTAINERS),200)

# Instructions per sample on the rig, against their limits.
cost: deps
	$(Q)$(MAKE) --no-print-directory benches
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/cost.py --check --build $(O) $(PAIRS)

# Lines and pages that a sample touches; NAMES=1 prints which, ONLY=TEXT,.. selects variants.
lines: deps
	$(Q)$(MAKE) --no-print-directory benches
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/lines.py --build $(O) $(if $(NAMES),--names) $(if $(ONLY),--only '$(ONLY)') $(PAIRS)

.PHONY: cold
cold:
	$(Q)$(MAKE) --no-print-directory $(O)/bench-twin
	$(Q)tests/bench/cold.py $(O)/bench-twin $(BASE)/bench-twin

cost-flight: deps
	$(Q)$(MAKE) --no-print-directory all benches
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/cost_flight.py --check --build $(O) $(PAIRS)

cost-perf: deps
	$(Q)$(MAKE) --no-print-directory all benches
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/cost_perf.py --check --build $(O) $(PAIRS)
	$(Q)tests/vm/cost_record.py --check --build $(O) $(PAIRS)

# SIZES="CPUS[xCOMPLEXES] ..." selects machines.
cores: deps
	$(Q)tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory all tests benches
	$(Q)tests/vm/rig/build.sh --deps
	$(Q)tests/vm/cores.py --check --build $(O) $(SIZES)

# FUZZ_S seconds for each target; findings go to $(O)/fuzz. A target is tests/fuzz/fuzz_NAME.c, with its corpus
# in tests/fuzz/corpus/NAME and an optional dictionary NAME.dict.
FUZZ_S	?= 60
fuzz_names := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_MAKE = $(MAKE) --no-print-directory -j$(J) O=$(O)-fuzz BPF_O=$(O) CC=$(CLANG) SAN=fuzzer-no-link,address,undefined

.PHONY: $(fuzz_names:%=fuzz-%) fuzz-programs fuzz-all fuzz-keep
fuzz: $(fuzz_names:%=fuzz-%)

fuzz-programs: deps
	$(Q)tools/deps.sh fuzz
	$(Q)$(FUZZ_MAKE) $(fuzz_names:%=$(O)-fuzz/fuzz_%)

$(O)/fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(lib)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $(filter %.o,$^) $(lib) $(WEBLIBS) $(LDLIBS)

$(fuzz_names:%=fuzz-%): fuzz-%: fuzz-programs
	$(Q)mkdir -p $(O)/fuzz/$*
	$(call say,FUZZ,$*)
	$(Q)$(O)-fuzz/fuzz_$* -max_total_time=$(FUZZ_S) -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=512 \
		-print_final_stats=1 \
		$(if $(wildcard tests/fuzz/$*.dict),-dict=tests/fuzz/$*.dict) \
		-artifact_prefix=$(O)/fuzz/ $(O)/fuzz/$* tests/fuzz/corpus/$* >$(O)/fuzz/$*.log 2>&1 || \
		{ cat $(O)/fuzz/$*.log; sed -n 's/.*Test unit written to //p' $(O)/fuzz/$*.log | xargs -r cat | xz | base64; exit 1; }
	$(Q)sed -n 's/.*DONE *\(cov: [0-9]* ft: [0-9]* corp: [^ ]*\).*/$*: \1/p; s/^Done/$*: done/p' $(O)/fuzz/$*.log

# All targets for half an hour, as many at a time as there are CPUs.
fuzz-all:
	$(Q)$(MAKE) --no-print-directory -j$(J) fuzz FUZZ_S=$$((1800 * $(J) / $(words $(fuzz_names))))

# Add inputs that `make fuzz` found to the corpora, if they cover more.
fuzz-keep: fuzz-programs
	$(Q)for t in $(fuzz_names); do mkdir -p $(O)/fuzz/$$t && \
		$(O)-fuzz/fuzz_$$t -merge=1 tests/fuzz/corpus/$$t $(O)/fuzz/$$t || exit 1; done

hostile: deps
	$(Q)tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory -j$(J) all
	$(Q)cd tests/system && IBSCOPE_BUILD=$(abspath $(O)) HOSTILE_S=$(or $(HOSTILE_S),120) \
		python3 -m unittest -v test_hostile_user

runtimes: deps
	$(Q)tools/deps.sh test && tools/deps.sh runtimes
	$(Q)$(MAKE) --no-print-directory -j$(J) all
	$(Q)cd tests/system && IBSCOPE_BUILD=$(abspath $(O)) RUNTIMES=all python3 -m unittest -v test_runtimes

fleet: deps
	$(Q)tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory -j$(J) all test-helpers
	$(Q)program=$$(tests/system/prometheus3.sh) && export IBSCOPE_BUILD=$(abspath $(O)) && \
		(cd tests/system && python3 -m unittest -v test_fleet test_exporter_seen.Seen.test_native) && \
		tests/bench/fleet.py simulate --prometheus "$$program" && \
		tests/bench/fleet.py simulate --prometheus "$$program" --native

mpi: deps
	$(Q)tools/deps.sh test && tools/deps.sh mpi
	$(Q)$(MAKE) --no-print-directory -j$(J) all $(O)/tests/unit/trace_cat
	$(Q)cd tests/system && IBSCOPE_BUILD=$(abspath $(O)) IBSCOPE_MPI=1 python3 -m unittest -v test_mpi

types-perf: deps
	$(Q)tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory -j$(J) all $(O)/tests/unit/make_types
	$(Q)tests/bench/types_perf.py --build $(O)

# SAN=address,undefined kills more, in five times the time; CLI=1 also runs the modules of tests/cli, TESTS=REGEX only some tests; BPF=1 changes the BPF programs; LEAST=90 fails below that score.
mutants: deps
	$(Q)tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory -j$(J) all tests
	$(Q)tests/mutants/mutants.py --build $(O) --make 'BPF_O=$(BPF_O) SAN=$(SAN)' --out $(O)-mutants --cc '$(CC)' --clang '$(CLANG)' --jobs $(J) \
		$(if $(SAMPLE),--sample $(SAMPLE)) --seed "$(if $(filter-out file,$(origin SEED)),$(SEED),$$(git rev-parse HEAD))" $(if $(CLI),--cli) $(if $(SYSTEM),--system) $(if $(BPF),--bpf) \
		$(if $(TESTS),--tests '$(TESTS)') $(if $(LEAST),--least $(LEAST)) $(FILES) $(ROOM)

# Half an hour for the commands that read recordings, an hour for those that sample.
inject: deps
	$(Q)tools/deps.sh test
	$(Q)$(MAKE) --no-print-directory -j$(J) all test-helpers
	$(Q)tests/inject/inject.py --build $(O) --seed $(SEED) $(if $(MOST),--most $(MOST)) $(ONLY)
	$(Q)tests/inject/inject.py --build $(O) --seed $(SEED) $(if $(MOST),--most $(MOST)) --live $(ONLY)

# What unit, cli and system tests reach: half an hour. KEEP=1 prints the last run again.
coverage: deps
	$(Q)tools/deps.sh test && tools/deps.sh fuzz
	$(Q)$(MAKE) --no-print-directory -j$(J) O=$(O)-coverage BPF_O=$(O) CC='$(CLANG)' LDFLAGS=-fprofile-instr-generate \
		CFLAGS='-O1 -fprofile-instr-generate -fcoverage-mapping' all tests
	$(Q)tests/coverage.py --build $(O)-coverage $(if $(LAYERS),--layers $(LAYERS)) $(if $(KEEP),--keep)

# Programs and tests of check, each started by a script that runs it under memcheck. Slow tests may fail; only
# the reports of memcheck count. It does not support clone() of processes that share memory, so tests that
# need it run without memcheck.
valgrind: O_V = $(abspath $(O))-valgrind
valgrind: deps
	$(Q)tools/deps.sh test && tools/deps.sh valgrind
	$(Q)$(MAKE) --no-print-directory -j$(J) all tests
	$(Q)rm -rf $(O_V) && mkdir -p $(O_V)/log
	$(Q)for p in ibscope ibscope-exporter $(patsubst $(O)/%,%,$(units) $(corpora)); do \
		mkdir -p $$(dirname $(O_V)/$$p) && printf '#!/bin/sh\nexec valgrind -q --vgdb=no --leak-check=full \
		--errors-for-leak-kinds=definite --suppressions=$(CURDIR)/tests/valgrind.supp \
		--log-file=$(O_V)/log/%%p %s "$$@"\n' $(abspath $(O))/$$p >$(O_V)/$$p && chmod +x $(O_V)/$$p; done
	$(Q)for p in test_replay test_selections; do ln -sf $(abspath $(O))/tests/bpf/$$p $(O_V)/tests/bpf/$$p; done
	-$(Q)tests/run.py --build $(O) --san $(O_V)
	$(Q)! grep -r '^==' $(O_V)/log

# ANALYZE=deep takes six minutes of CPU time and adds only false positives: it does not know that error
# codes from functions in other files are not 0.
ANALYZE	?= shallow
# clang-tidy also reports compiler warnings.
lint_flags = -std=gnu11 -O2 $(WARN) -D_GNU_SOURCE '-DIBSCOPE_VERSION="$(VERSION)"' -I$(CURDIR)/include \
	$(WINGS:%=-iquote$(CURDIR)/%) -iquote$(abspath $(O))
lint: deps
	$(Q)tools/deps.sh lint
	$(Q)$(MAKE) --no-print-directory -j$(J) all
	$(Q)mkdir -p $(O)/lint && printf '%s\n' $(lint_flags) >$(O)/lint/compile_flags.txt
	$(Q)git ls-files 'src/*.c' 'tools/*.c' ':!tools/examples' | xargs -P $(J) -n 4 clang-tidy --quiet -p $(O)/lint \
		$(addprefix --extra-arg=,-Xclang -analyzer-config -Xclang mode=$(ANALYZE))
	$(Q)git ls-files 'tests/*.c' ':!tests/vm' ':!tests/bpf/*.bpf.c' | xargs -P $(J) -n 8 \
		$(CLANG) -fsyntax-only -Werror $(lint_flags)
	$(Q)$(CLANG) -fsyntax-only -Wall -Wextra -Werror tools/examples/*.c
	$(Q)clang-format --dry-run -Werror $(shell git ls-files '*.c' ':!tests/vm/rig')
	$(Q)cppcheck -j $(J) --quiet --error-exitcode=1 --inline-suppr --std=c11 -Iinclude $(WINGS:%=-I%) \
		'-DLIBBPF_OPTS(t,n,...)=struct t n = { __VA_ARGS__ }' \
		'-Dbpf_object__for_each_program(p,o)=while(((p)=next(o)))' src tools

screenshots:
	$(Q)$(MAKE) --no-print-directory all tests
	$(Q)tools/pictures/make.py $(O)

install: all
	$(Q)tools/install.sh $(O) '$(DESTDIR)' $(prefix)

deb: deps
	$(Q)tools/deps.sh deb
	$(Q)tools/deb.sh $(O)/deb $(VERSION)

# The package in a clean root with systemd: start, scrape, upgrade, remove, purge.
package-test: deb
	$(Q)tools/deps.sh package
	$(Q)tests/system/package.sh $(O)/deb $(O)/package-root

uninstall:
	$(Q)tools/install.sh --uninstall $(O) '$(DESTDIR)' $(prefix)

clean:
	rm -rf $(O) $(O)-fuzz $(O)-san $(O)-valgrind $(O)-mutants $(O)-coverage

-include $(shell find $(sort $(O) $(BPF_O)) -name package-root -prune -o -name '*.d' -print 2>/dev/null)
