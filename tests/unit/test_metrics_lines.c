// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Metrics of several lines: each line's labels and value, and where they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "base/std.h"
#include "metrics/metrics_private.h"

static struct reading r;

static int up(void **unused)
{
	(void)unused;
	memset(&r, 0, sizeof(r));
	return 0;
}

static struct metric_line line(metric_lines *lines, unsigned int i)
{
	struct metric_line out = {};

	assert_true(lines(&r, i, &out));
	return out;
}

static void ends(metric_lines *lines, unsigned int n)
{
	for (unsigned int i = n; i < n + 3; i++)
		assert_false(lines(&r, i, &(struct metric_line){}));
}

/* Line @i has one label, and this value. */
static void is(metric_lines *lines, unsigned int i, const char *name, const char *label,
	       double value)
{
	const struct metric_line l = line(lines, i);

	assert_string_equal(l.label[0].name, name);
	assert_string_equal(l.label[0].value, label);
	assert_null(l.label[1].name);
	if (fabs(l.value - value) > 1e-9)
		fail_msg("%s: %g instead of %g", label, l.value, value);
}

static void test_outcomes(void **unused)
{
	unsigned int filtered = 0, lost = 0;

	(void)unused;
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		r.ledger.outcome[o] = 100 + o;
	for (int o = 0; o < IBS_OUTCOME_N; o++) {
		if (outcome_kind(o) == IBS_OUTCOME_KIND_FILTERED)
			is(lines_filtered, filtered++, "reason", outcome_name(o), 100 + o);
		if (outcome_kind(o) == IBS_OUTCOME_KIND_LOST)
			is(lines_lost, lost++, "reason", outcome_name(o), 100 + o);
	}
	assert_true(filtered > 1 && lost > 1);
	ends(lines_filtered, filtered);
	ends(lines_lost, lost);
}

static void test_strata(void **unused)
{
	(void)unused;
	ends(lines_strata_seconds, 0);
	ends(lines_strata_samples, 0);
	r.strata.used = 1;
	for (unsigned int i = 0; i < STRATUM_N; i++) {
		r.strata.of[i].time_ns = 1500000000 * (i + 1);
		r.strata.of[i].seen = 7 + i;
		is(lines_strata_seconds, i, "stratum", stratum_names[i], 1.5 * (i + 1));
		is(lines_strata_samples, i, "stratum", stratum_names[i], 7 + i);
	}
	ends(lines_strata_seconds, STRATUM_N);
	ends(lines_strata_samples, STRATUM_N);
}

static void test_work(void **unused)
{
	struct ibs_meta_status *st = &r.meta.status;

	(void)unused;
	for (unsigned int i = 0; i < IBS_WORK_N; i++) {
		st->work_ns[i] = 2000000000ULL * (i + 1);
		st->work_delayed_ns[i] = 3000000000ULL * (i + 1);
		is(lines_work, i, "work", work_names[i], 2 * (i + 1));
		is(lines_work_delayed, i, "work", work_names[i], 3 * (i + 1));
	}
	ends(lines_work, IBS_WORK_N);
	ends(lines_work_delayed, IBS_WORK_N);
	st->nmi_ns = 1500000000;
	is(lines_nmi_cost, 0, "source", status_nmi_source(st), 1.5);
	ends(lines_nmi_cost, 1);
	is(lines_bpf_cost, 0, "source", status_bpf_source(st), status_bpf_ns(st) / 1e9);
	ends(lines_bpf_cost, 1);
}

static void test_push(void **unused)
{
	unsigned int n = 0;

	(void)unused;
	ends(lines_push_profiles, 0);
	ends(lines_push_samples, 0);
	ends(lines_flights, 0);
	r.meta.status.push.collectors = 1;
	for (unsigned int i = 0; i < IBS_PUSH_N; i++) {
		r.meta.status.push.profiles[i] = 10 + i;
		r.meta.status.push.samples[i] = 20 + i;
		is(lines_push_samples, i, "outcome", push_outcome_names[i], 20 + i);
		if (i != IBS_PUSH_DROPPED) /* which no profile is */
			is(lines_push_profiles, n++, "outcome", push_outcome_names[i], 10 + i);
	}
	ends(lines_push_samples, IBS_PUSH_N);
	ends(lines_push_profiles, IBS_PUSH_N - 1);
	r.meta.status.flight_on = 1;
	r.meta.status.flight_written = 30;
	r.meta.status.flight_failed = 31;
	r.meta.status.flight_skipped = 32;
	for (unsigned int i = 0; i < IBS_FLIGHT_N; i++)
		is(lines_flights, i, "outcome", flight_outcome_names[i], 30 + i);
	ends(lines_flights, IBS_FLIGHT_N);
}

static void test_governor(void **unused)
{
	unsigned int n = 0;

	(void)unused;
	for (unsigned int now = 0; now < GOVERNOR_STATE_N; now++) {
		r.meta.status.governor_state = now;
		for (unsigned int i = 0; i < GOVERNOR_STATE_N; i++)
			is(lines_governor_states, i, "state", governor_state_name(i), i == now);
	}
	ends(lines_governor_states, GOVERNOR_STATE_N);
	for (unsigned int i = 0; i < GOVERNOR_REASON_N; i++) {
		r.meta.status.governor_changes[i] = 5 + i;
		if (i != GOVERNOR_REASON_NONE)
			is(lines_governor_changes, n++, "reason", governor_reason_name(i), 5 + i);
	}
	ends(lines_governor_changes, n);
}

static const char *const neighbour_labels[][2] = {
	{ "namespace", "vn" },	 { "pod", "vp" },
	{ "container", "vc" },	 { "suspect_namespace", "sn" },
	{ "suspect_pod", "sp" }, { "suspect_container", "sc" },
	{ "ccx", "12" },
};

static void put_names(struct neighbour_name *to, const char *who)
{
	snprintf(to->name_space, sizeof(to->name_space), "%sn", who);
	snprintf(to->pod, sizeof(to->pod), "%sp", who);
	snprintf(to->container, sizeof(to->container), "%sc", who);
}

/* The pair with all these labels. */
static void is_pair(metric_lines *lines, unsigned int i, double value)
{
	struct metric_line l = {};

	assert_true(lines(&r, i, &l));
	for (size_t k = 0; k < ARRAY_SIZE(neighbour_labels); k++) {
		assert_string_equal(l.label[k].name, neighbour_labels[k][0]);
		assert_string_equal(l.label[k].value, neighbour_labels[k][1]);
	}
	assert_null(l.label[ARRAY_SIZE(neighbour_labels)].name);
	assert_true(fabs(l.value - value) < 1e-9);
}

static void test_neighbours(void **unused)
{
	struct reading_neighbours *all = &r.neighbours;
	struct metric_line l = {};

	(void)unused;
	ends(lines_neighbour_slowdowns, 0);
	ends(lines_neighbour_traffic, 0);
	all->n = 3;
	for (unsigned int i = 0; i < all->n; i++) {
		all->pair[i].complex = 12;
		all->pair[i].latency = 30 * (i + 2);
		all->pair[i].baseline = 30;
		all->pair[i].share = 0.5 + i;
		all->pair[i].chance = 0.25 + i;
		all->use[i].traffic = 100 + i;
		all->use[i].l3 = 200 + i;
		put_names(&all->victim[i], "v");
		put_names(&all->suspect[i], "s");
	}
	all->use[0].known = IBS_NEIGHBOUR_L3;
	all->use[1].known = IBS_NEIGHBOUR_TRAFFIC;
	all->use[2].known = IBS_NEIGHBOUR_TRAFFIC | IBS_NEIGHBOUR_L3;
	for (unsigned int i = 0; i < all->n; i++) {
		is_pair(lines_neighbour_slowdowns, i, i + 1);
		is_pair(lines_neighbour_shares, i, 0.5 + i);
		is_pair(lines_neighbour_chances, i, 0.25 + i);
	}
	ends(lines_neighbour_slowdowns, 3);
	ends(lines_neighbour_shares, 3);
	ends(lines_neighbour_chances, 3);
	is_pair(lines_neighbour_traffic, 0, 101);
	is_pair(lines_neighbour_traffic, 1, 102);
	ends(lines_neighbour_traffic, 2);
	is_pair(lines_neighbour_l3, 0, 200);
	is_pair(lines_neighbour_l3, 1, 202);
	ends(lines_neighbour_l3, 2);
	assert_false(lines_neighbour_slowdowns(&r, 3, &l));
	assert_true(isnan(l.value));
}

static void test_info(void **unused)
{
	struct metric_line l;

	(void)unused;
	snprintf(r.meta.version, sizeof(r.meta.version), "1.2.3");
	l = line(lines_build_info, 0);
	assert_string_equal(l.label[0].name, "version");
	assert_string_equal(l.label[0].value, "1.2.3");
	assert_string_equal(l.label[1].name, "exporter_version");
	assert_true(*l.label[1].value);
	assert_true(l.value == 1);
	ends(lines_build_info, 1);
	for (int fetch = 0; fetch < 2; fetch++) {
		struct metric_line c = {}; /* its text is a label's value */

		r.meta.layout.metric = fetch ? IBS_METRIC_FETCH_LAT : IBS_METRIC_DC_MISS_LAT;
		r.meta.layout.caps = 0xbff;
		snprintf(r.meta.event, sizeof(r.meta.event), "the event");
		snprintf(r.meta.source, sizeof(r.meta.source), "sim");
		assert_true(lines_collector_info(&r, 0, &c));
		assert_string_equal(c.label[0].name, fetch ? "terms" : "event");
		assert_string_equal(c.label[0].value, "the event");
		assert_string_equal(c.label[1].name, "source");
		assert_string_equal(c.label[1].value, "sim");
		assert_string_equal(c.label[2].name, "metric");
		assert_string_equal(c.label[2].value, fetch ? "fetch_lat" : "dc_miss_lat");
		assert_string_equal(c.label[3].name, "ibs_caps");
		assert_string_equal(c.label[3].value, "0xbff");
		assert_true(c.value == 1);
		ends(lines_collector_info, 1);
	}
}

/* Edges of histograms: in cycles, ascending, and such that a bucket ends there. */
static void test_edges(void **unused)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "", "column 1: expected a number" },
		{ "64,", "column 4: expected a number" },
		{ "64, 128", "column 4: expected a number" },
		{ "64,-1", "column 4: expected a number" },
		{ "64;128", "column 1: expected a number" },
		{ "64,/", "column 4: expected a number" },
		{ "64,:", "column 4: expected a number" },
		{ "64,129", "column 4: invalid edge 129: the nearest edges are 128 and 144" },
		{ "64,99999",
		  "column 4: invalid edge 99999: the nearest edges are 61440 and 65535" },
		{ "64,64", "column 4: edges must be in ascending order" },
		{ "128,64", "column 5: edges must be in ascending order" },
	};
	struct metrics_opts opts = {};
	char text[4 * METRICS_EDGES_MAX + 16] = "";
	struct err e;

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(metrics_edges_parse(rows[i].text, &opts, &e), -EINVAL);
		if (!strstr(e.text, rows[i].why))
			fail_msg("\"%s\" lacks \"%s\"", e.text, rows[i].why);
	}
	assert_int_equal(metrics_edges_parse("0,1,9,10,65535", &opts, &e), 0);
	assert_int_equal(opts.n_edges, 5);
	assert_int_equal(opts.edges[0], 0);
	assert_int_equal(opts.edges[2], 9);
	assert_int_equal(opts.edges[4], 65535);
	for (unsigned int i = 0; i <= METRICS_EDGES_MAX; i++) {
		snprintf(text + strlen(text), 16, i ? ",%u" : "%u", ibs_lat_le(i + 1));
		assert_int_equal(metrics_edges_parse(text, &opts, &e),
				 i < METRICS_EDGES_MAX ? 0 : -EINVAL);
	}
	assert_non_null(strstr(e.text, "too many edges"));
}

/* Text that grows, and all numbers of digits. */
static void test_text(void **unused)
{
	static const char *const numbers[] = { "0", "9", "10", "12345678901234567890",
					       "18446744073709551615" };
	struct metrics_buf b = {};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		char want[64];

		snprintf(want, sizeof(want), "a%sb", numbers[i]);
		b.n = 0;
		buf_number(&b, "a", strtoull(numbers[i], NULL, 10), "b");
		assert_int_equal(b.n, strlen(want));
		assert_memory_equal(b.s, want, b.n);
	}
	b.n = 0;
	for (int i = 0; i < 1000; i++)
		buf_text(&b, "0123456789");
	assert_int_equal(b.n, 10000);
	for (size_t i = 0; i < b.n; i++)
		assert_int_equal(b.s[i], '0' + i % 10);
	free(b.s);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, up)
	const struct CMUnitTest tests[] = {
		TEST(test_outcomes), TEST(test_strata),	  TEST(test_work),
		TEST(test_push),     TEST(test_governor), TEST(test_neighbours),
		TEST(test_info),     TEST(test_edges),	  TEST(test_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
