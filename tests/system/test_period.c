// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A period that changes while the software clock samples: what samples count_ops. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <errno.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "sampler/sampler.h"

#define MS 1000000ULL

static int try_sim(bool count_ops, bool freq, struct sampler **s, struct err *err)
{
	static const unsigned int cpu0;
	struct sampler_opts opts = {
		.source = SAMPLER_SIM,
		.attr = { .size = sizeof(opts.attr),
			  .type = PERF_TYPE_SOFTWARE,
			  .config = PERF_COUNT_SW_CPU_CLOCK,
			  .read_format =
				  PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING },
		.cpus = &cpu0,
		.n_cpus = 1,
		.ibs.caps = 0xbff,
		.max_groups = 8,
		.count_ops = count_ops,
	};

	opts.attr.freq = freq;
	opts.attr.sample_period = freq ? 1000 : MS;
	return sampler_open(&opts, s, err) ?: sampler_start(*s, err);
}

static struct sampler *open_sim(bool count_ops, bool freq)
{
	struct sampler *s = NULL;
	struct err err = {};

	if (try_sim(count_ops, freq, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

/* Samples and estimated ops of all series so far. */
static void sums(struct sampler *s, __u64 *samples, __u64 *ops)
{
	struct snapshot snap;
	struct err err = {};

	if (sampler_snapshot(s, &snap, &err))
		fail_msg("%s", err.text);
	*samples = *ops = 0;
	for (size_t g = 0; g < snap.n_groups; g++) {
		for (size_t i = 0; i < snap.groups[g].n_series; i++) {
			*samples += snap.groups[g].series[i].samples;
			*ops += snap.groups[g].series[i].ops;
		}
	}
	snapshot_free(&snap);
}

static void run_for(double seconds)
{
	double end = now_s() + seconds;

	while (now_s() < end)
		;
}

/* n samples of one of the two periods each stand for this many ops. */
static void assert_of_either(__u64 ops, __u64 n, __u64 before, __u64 after)
{
	__u64 fit = 0;

	for (__u64 k = 0; k <= n; k++)
		fit += (n - k) * before + k * after == ops;
	assert_true(fit > 0);
}

static void test_ops(void **state)
{
	static const __u64 periods[] = { MS, 4 * MS, MS / 2, 10 * MS };
	struct sampler *s = open_sim(true, false);
	__u64 samples = 0, ops = 0, at = MS;
	struct err err = {};

	(void)state;
	for (size_t i = 0; i < sizeof(periods) / sizeof(periods[0]); i++) {
		__u64 n, w;

		if (sampler_set_period(s, periods[i], &err))
			fail_msg("%s", err.text);
		assert_int_equal(sampler_period(s), periods[i]);
		/*
		 * Those of the old period that arrived before the change, and those of the new
		 * one since: this thread may have waited for a CPU.
		 */
		sums(s, &n, &w);
		assert_of_either(w - ops, n - samples, at, periods[i]);
		run_for(0.3);
		sampler_stop(s);
		sums(s, &samples, &ops);
		assert_true(samples - n > 10);
		assert_int_equal(ops - w, (samples - n) * periods[i]);
		assert_int_equal(sampler_start(s, &err), 0);
		at = periods[i];
	}
	sampler_close(s);
}

static void test_refused(void **state)
{
	struct sampler *s = open_sim(false, false);
	struct err err = {};

	(void)state;
	assert_int_equal(sampler_set_period(s, 2 * MS, &err), -EINVAL);
	assert_int_equal(sampler_period(s), MS);
	sampler_close(s);
	s = open_sim(true, true);
	assert_int_equal(sampler_period(s), 0);
	assert_int_equal(sampler_set_period(s, 2 * MS, &err), -EINVAL);
	sampler_close(s);
	/* what the kernel refuses leaves the old one in force */
	s = open_sim(true, false);
	assert_true(sampler_set_period(s, 1ULL << 63, &err) < 0);
	assert_non_null(strstr(err.text, "period"));
	assert_int_equal(sampler_period(s), MS);
	sampler_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ops),
		cmocka_unit_test(test_refused),
	};
	struct sampler *s = NULL;
	struct err err = {};

	if (try_sim(false, false, &s, &err) == -EPERM) {
		puts(err.text);
		return 77;
	}
	sampler_close(s);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
