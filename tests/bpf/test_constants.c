// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Constant folding changes nothing but the size: over random selections, the program as compiled and
 * the folded one give the same samples the same outcomes, and leave the same counters.
 * IBSCOPE_CONSTANTS is the number of selections, IBSCOPE_SEED chooses other ones.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "counts/counts.h"
#include "filter/filter.h"
#include "sampler/sampler.h"
#include "twin_run.h"
#include "twin_model.h"

#define SELECTIONS 25 /* unless told otherwise */
#define SAMPLES	   400
#define LINE_SETS  16
#define LINE_BYTES IBS_LINES_BYTES(LINE_SETS)
#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))

static __u64 state;
static unsigned int cpu; /* that runs all samples */

static unsigned int below(unsigned int n)
{
	return ibs_sim_mix(state++) % n;
}

static bool one_in(unsigned int n)
{
	return !below(n);
}

/* What a random selection points to. */
struct random_opts {
	struct sampler_opts opts;
	struct filter filter;
	__u32 pids[2];
	__u64 comms[1][2];
};

static void random_selection(struct random_opts *r)
{
	static const char *const filters[] = {
		"swpf",
		"!locked",
		"dc_miss_lat > 100 && ld_op",
		"mem_lvl == ram || mem_lvl == l3",
		"tag_to_ret > 300 || comp_to_ret < 20",
		"data_src == dram || !dc_miss",
		"rmt_node && l2_miss",
		"ip >= 0x400000 && ip < 0x410000",
	};
	struct selection *sel = &r->opts.sel;
	struct err err;

	if (one_in(2))
		sel->min_lat = below(300);
	if (one_in(3))
		sel->max_lat = sel->min_lat + below(2000) + 1;
	if (one_in(3))
		sel->src_mask = 1 + below((1U << IBS_SRC_N) - 1);
	if (one_in(3))
		sel->op_mask = 1 + below((1U << IBS_OP_KIND_N) - 1);
	if (one_in(4)) {
		r->pids[0] = getpid();
		r->pids[1] = 1;
		sel->processes.pids = r->pids + below(2);
		sel->processes.n = 1;
	}
	if (one_in(2)) {
		const char *text = filters[below(COUNT(filters))];

		if (filter_parse(text, &r->filter, &err))
			fail_msg("%s: %s", text, err.text);
		sel->filter = &r->filter.prog;
	}
}

static void random_opts(struct random_opts *r)
{
	static const __u32 bys[] = { 0,		  IBS_BY_CGROUP,
				     IBS_BY_PID,  IBS_BY_MODE | IBS_BY_TID,
				     IBS_BY_COMM, IBS_BY_CGROUP | IBS_BY_CPU,
				     IBS_BY_NODE };
	static const __u32 caps[] = { ZEN4_CAPS, ZEN4_CAPS, 0x3ff,
				      ZEN4_CAPS | IBS_CAPS_OPDTLBPGSIZE };

	memset(r, 0, sizeof(*r));
	r->opts = zen4;
	r->opts.ibs.caps = caps[below(COUNT(caps))];
	r->opts.ibs.quirks = one_in(3) ? IBS_QUIRK_OP_1293 | IBS_QUIRK_NO_CACHE_HIT_ST : 0;
	r->opts.metric = below(IBS_OP_METRIC_N);
	r->opts.by = bys[below(COUNT(bys))];
	r->opts.tlb = one_in(2);
	r->opts.count_ops = one_in(2);
	r->opts.line_sets = one_in(3) ? LINE_SETS : 0;
	r->opts.line_feed = r->opts.line_sets ? below(1U << IBS_SRC_N) : 0;
	r->opts.probe_read = one_in(2);
	random_selection(r);
}

static void *copy_of(const void *from, size_t bytes)
{
	void *copy = malloc(bytes);

	assert_non_null(copy);
	return memcpy(copy, from, bytes);
}

struct result {
	__u8 outcome[SAMPLES];
	enum ibs_outcome raw[SAMPLES];
	struct ledger ledger;
	void *series, *lines; /* lines: NULL if not kept */
	size_t bytes;	      /* of the series */
	__u32 insns;
};

static void run(struct random_opts *r, bool unfolded, const regs_t *regs, struct result *out)
{
	struct sampler_prog_size size;
	const struct counts *c;
	struct snapshot snap;
	struct sampler *s;

	r->opts.unfolded = unfolded;
	s = open_twin(&r->opts);
	c = sampler_counts(s);
	run_regs(s, regs, SAMPLES, out->outcome);
	for (int i = 0; i < SAMPLES; i++) {
		__u32 raw[1 + sizeof(regs_t) / 4] = { r->opts.ibs.caps };

		memcpy(raw + 1, regs[i], sizeof(regs_t));
		out->raw[i] = run_raw(s, &(struct twin_raw){ .raw = raw, .bytes = sizeof(raw) });
	}
	snapshot(s, &snap);
	out->ledger = snap.ledger;
	snapshot_free(&snap);
	out->bytes = (size_t)c->shards * c->max_slots * c->layout->words * sizeof(*c->series);
	out->series = copy_of(c->series, out->bytes);
	out->lines = r->opts.line_sets ? copy_of(sampler_lines(s, cpu, true), LINE_BYTES) : NULL;
	assert_int_equal(sampler_prog_size(s, &size, NULL), 0);
	out->insns = size.insns;
	sampler_close(s);
}

static void test_folded_as_compiled(void **unused)
{
	const char *n = getenv("IBSCOPE_CONSTANTS"), *seed = getenv("IBSCOPE_SEED");
	static struct result folded, compiled;
	static regs_t regs[SAMPLES];

	(void)unused;
	state = seed ? strtoull(seed, NULL, 0) : 1;
	for (int i = 0, end = n ? atoi(n) : SELECTIONS; i < end; i++) {
		__u64 began = state;
		struct random_opts r;

		random_opts(&r);
		random_regs(state++, r.opts.ibs.caps, regs, SAMPLES);
		run(&r, false, regs, &folded);
		run(&r, true, regs, &compiled);
		if (memcmp(folded.outcome, compiled.outcome, sizeof(folded.outcome)) ||
		    memcmp(folded.raw, compiled.raw, sizeof(folded.raw)) ||
		    memcmp(folded.ledger.outcome, compiled.ledger.outcome,
			   sizeof(folded.ledger.outcome)) ||
		    memcmp(folded.series, compiled.series, folded.bytes) ||
		    (folded.lines && memcmp(folded.lines, compiled.lines, LINE_BYTES)))
			fail_msg("selection %d differs: IBSCOPE_SEED=%llu IBSCOPE_CONSTANTS=1", i,
				 (unsigned long long)began);
		assert_in_range(folded.insns, 1, compiled.insns - 10);
		free(folded.series);
		free(folded.lines);
		free(compiled.series);
		free(compiled.lines);
		filter_free(&r.filter);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_folded_as_compiled) };

	cpu_set_t cpus;

	if (!can_run())
		return 77;
	cpu = sched_getcpu();
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	assert_int_equal(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
