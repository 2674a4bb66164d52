// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The programs for the events of IBS, on an event whose samples have no raw record: the kernel does not even set the
 * pointer to it, and what is on its stack may pass for one. Each sample has one outcome.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "clock_attr.h"
#include "sampler/sampler.h"

#define LONGEST_S 20

static const struct sampler_opts clock_event = {
	.source = SAMPLER_IBS,
	.event = "cpu-clock",
	.attr = CLOCK_ATTR(200000),
	.cpus = &(const unsigned int){ 0 },
	.n_cpus = 1,
	.ibs.caps = 0xbff,
	.max_groups = 64,
};

/* If a process is selected that does not run, all samples are filtered. */
static void check(const struct sampler_opts *opts)
{
	const double late = now_s() + LONGEST_S;
	struct sampler *s = NULL;
	struct snapshot snap;
	struct err err = {};
	__u64 seen = 0;

	if (sampler_open(opts, &s, &err) || sampler_start(s, &err))
		fail_msg("%s", err.text);
	while (seen < 20) {
		if (now_s() > late)
			fail_msg("%llu samples", seen);
		usleep(1000);
		assert_int_equal(sampler_snapshot(s, &snap, &err), 0);
		seen = snap.ledger.seen;
		snapshot_free(&snap);
	}
	sampler_stop(s);
	assert_int_equal(sampler_snapshot(s, &snap, &err), 0);
	assert_int_equal(ledger_residual(&snap.ledger), 0);
	if (opts->sel.processes.n)
		assert_int_equal(snap.ledger.outcome[IBS_OUTCOME_FILTERED_PID], snap.ledger.seen);
	snapshot_free(&snap);
	sampler_close(s);
}

static void test_outputs(void **state)
{
	static const enum sampler_output outputs[] = { SAMPLER_SERIES, SAMPLER_RECORDS,
						       SAMPLER_RECORDS_RAW };

	(void)state;
	for (int i = 0; i < 12; i++) {
		struct sampler_opts opts = clock_event;

		opts.probe_read = i & 1;
		opts.metric = i & 2 ? IBS_METRIC_FETCH_LAT : IBS_METRIC_DC_MISS_LAT;
		opts.output = outputs[i / 4];
		check(&opts);
		if (i < 2) {
			opts.copies = true;
			check(&opts);
		}
	}
}

/* Whether the task is selected is decided before. */
static void test_selected(void **state)
{
	struct sampler_opts opts = clock_event;
	const pid_t pid = fork();
	__u32 ended = pid;

	(void)state;
	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	opts.sel.processes = (struct selected_pids){ .pids = &ended, .n = 1 };
	for (int probe = 0; probe < 2; probe++) {
		opts.probe_read = probe;
		check(&opts);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_outputs),
		cmocka_unit_test(test_selected),
	};
	struct sampler *s = NULL;
	struct err err = {};
	const int ret = sampler_open(&clock_event, &s, &err);

	sampler_close(s);
	if (ret) {
		printf("skipped: %s\n", err.text);
		return ret == -EPERM || ret == -EACCES || ret == -EOPNOTSUPP || ret == -ENOENT ? 77
											       : 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
