// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Groups that a collector sends to other processes: what is read is what was written, or an error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "rows/snapshot_json.h"

#define GROUPS 2
#define SERIES 2

static const struct snapshot_about about = { .source = "sim",
					     .event = "ibs_op/cnt_ctl=1/",
					     .simulated = true,
					     .metric = IBS_METRIC_DC_MISS_LAT,
					     .period = 1ULL << 33,
					     .by = IBS_BY_CGROUP | IBS_BY_COMM,
					     .cpus = 4,
					     .enabled_ns = 8000000000 };
static __u64 buckets[IBS_LAT_BUCKETS];
static struct series series[GROUPS][SERIES];
static struct group groups[GROUPS];
static struct ibs_slot_name names[GROUPS];

static void fill(void)
{
	static const char *const comms[] = { "fifteen bytes !", "web \"\n\\" };
	__u64 n = 1ULL << 40;

	buckets[0] = 7;
	buckets[IBS_LAT_BUCKETS - 1] = n++;
	for (size_t g = 0; g < GROUPS; g++) {
		for (size_t i = 0; i < SERIES; i++) {
			series[g][i] = (struct series){ i ? IBS_OP_KIND_STORE : IBS_OP_KIND_LOAD,
							i ? IBS_SRC_DRAM : IBS_SRC_L2 };
			for (__u64 *v = &series[g][i].samples; v <= &series[g][i].hitm; v++)
				*v = n++;
			series[g][i].buckets = i ? NULL : buckets;
		}
		n += 2;
		groups[g] = (struct group){ .key = { .cgroup_id = 100 + g,
						     .tgid = n - 2,
						     .tid = n - 1,
						     .cpu = 3,
						     .node = 2,
						     .complex = 1 + g,
						     .mode = 1,
						     .mem_node = 5 },
					    .n_series = SERIES,
					    .series = series[g] };
		groups[g].weighted = g;
		strcpy(groups[g].key.comm, comms[g]);
		names[g].cgroup_id = 100 + g;
		snprintf(names[g].cgroup, sizeof(names[g].cgroup), "/a/%zu", g);
		snprintf(names[g].pod, sizeof(names[g].pod), "pod %zu", g);
		snprintf(names[g].container, sizeof(names[g].container), "container %zu", g);
	}
}

static char *written(size_t *n)
{
	char *text;
	FILE *f = xmemopen(&text, n);

	snapshot_put_head(f, &about);
	for (size_t g = 0; g < GROUPS; g++)
		snapshot_put_group(f, &groups[g], &names[g]);
	snapshot_put_end(f, 3);
	xmemclose(f);
	return text;
}

static int setup(void **state)
{
	(void)state;
	fill();
	return 0;
}

static void assert_series(const struct series *a, const struct series *b)
{
	assert_memory_equal(a, b, offsetof(struct series, price));
	assert_int_equal(!a->buckets, !b->buckets);
	if (a->buckets)
		assert_memory_equal(a->buckets, b->buckets, sizeof(buckets));
}

static void test_same(void **state)
{
	struct u64_map slots = {};
	struct snapshot_read r;
	struct err err = { "" };
	__u64 samples = 0;
	size_t n;

	(void)state;
	for (int again = 0; again < 2; again++) { /* groups keep their numbers */
		char *text = written(&n), *rest = text;

		assert_int_equal(snapshot_parse(&rest, &slots, &r, &err), 0);
		assert_ptr_equal(rest, text + n);
		free(text);
		assert_memory_equal(&r.about, &about, sizeof(about));
		assert_int_equal(r.left_out, 3);
		assert_int_equal(r.snapshot.n_groups, GROUPS);
		samples = 0;
		for (size_t g = 0; g < GROUPS; g++) {
			const struct group *got = &r.snapshot.groups[g];

			assert_int_equal(got->slot, g + 1);
			assert_memory_equal(&got->key, &groups[g].key, sizeof(got->key));
			assert_int_equal(got->weighted, groups[g].weighted);
			assert_int_equal(got->n_series, SERIES);
			for (size_t i = 0; i < SERIES; i++) {
				assert_series(&got->series[i], &series[g][i]);
				samples += series[g][i].samples;
			}
			assert_string_equal(snapshot_read_name(&r, 100 + g, LABEL_CONTAINER),
					    names[g].container);
			assert_string_equal(snapshot_read_name(&r, 100 + g, LABEL_POD),
					    names[g].pod);
			assert_string_equal(snapshot_read_name(&r, 100 + g, LABEL_CGROUP),
					    names[g].cgroup);
		}
		assert_null(snapshot_read_name(&r, 99, LABEL_POD));
		assert_int_equal(r.snapshot.ledger.seen, samples);
		assert_int_equal(r.snapshot.ledger.outcome[IBS_OUTCOME_AGGREGATED], samples);
		assert_int_equal(r.snapshot.time_ns, about.enabled_ns / about.cpus);
		snapshot_read_free(&r);
	}
	u64_map_free(&slots);
}

static int parse(char *text)
{
	struct u64_map slots = {};
	struct snapshot_read r;
	struct err err = { "" };
	int ret = snapshot_parse(&text, &slots, &r, &err);

	assert_true(ret ? ret == -EPROTO && *err.text && !r.names : !*err.text);
	if (!ret)
		snapshot_read_free(&r);
	u64_map_free(&slots);
	return ret;
}

/* An answer that ends early, or of which a byte is another one, is an error or has other numbers. */
static void test_damaged(void **state)
{
	static const char bytes[] = { 0, '\n', '9', '-', '"', '[', '}', 'x' };
	size_t n, errors = 0;
	char *text = written(&n);

	(void)state;
	for (size_t i = 0; i < n - 1; i++) {
		char *copy = xstrndup(text, i);

		assert_int_equal(parse(copy), -EPROTO);
		free(copy);
		for (size_t b = 0; b < sizeof(bytes); b++) {
			copy = xmemdup(text, n + 1);
			copy[i] = bytes[b];
			errors += parse(copy) != 0;
			free(copy);
		}
	}
	assert_in_range(errors, n, n * sizeof(bytes) - 1);
	free(text);
}

/* Numbers out of range of tables that readers index with them. */
static void test_ranges(void **state)
{
	const struct series good = series[0][0];
	size_t n;

	(void)state;
	for (int what = 0; what < 3; what++) {
		struct series *s = &series[0][0];
		char *text;

		if (what == 1)
			s->op = 63;
		if (what == 2)
			s->src = 63;
		text = written(&n);
		assert_int_equal(parse(text), what ? -EPROTO : 0);
		free(text);
		*s = good;
	}
	for (int b = IBS_LAT_BUCKETS - 1; b <= IBS_LAT_BUCKETS; b++) {
		char *text = written(&n), *at = strstr(text, "[0,7,"), *other;

		assert_non_null(at);
		other = xasprintf("%.*s[%d%s", (int)(at - text), text, b, at + 2);
		assert_int_equal(parse(other), b == IBS_LAT_BUCKETS ? -EPROTO : 0);
		free(other);
		free(text);
	}
}

/* The same of numbers below these ranges. */
static void test_negative(void **state)
{
	char words[64];
	size_t n;

	(void)state;
	snprintf(words, sizeof(words), "\"words\":[%d,%d,", IBS_OP_KIND_LOAD, IBS_SRC_L2);
	for (int which = 0; which < 3; which++) {
		char *text = written(&n), *at = strstr(text, words), *other;

		assert_non_null(at);
		other = xasprintf("%.*s\"words\":[%d,%d,%s", (int)(at - text), text,
				  which == 1 ? -1 : IBS_OP_KIND_LOAD, which == 2 ? -1 : IBS_SRC_L2,
				  at + strlen(words));
		assert_int_equal(parse(other), which ? -EPROTO : 0);
		free(other);
		free(text);
	}
}

/* A collector that has not counted anything yet. */
static void test_no_groups(void **state)
{
	struct u64_map slots = {};
	struct snapshot_read r;
	struct err err = { "" };
	char *text, *rest;
	size_t n;
	FILE *f = xmemopen(&text, &n);

	(void)state;
	snapshot_put_head(f, &about);
	snapshot_put_end(f, 0);
	xmemclose(f);
	rest = text;
	assert_int_equal(snapshot_parse(&rest, &slots, &r, &err), 0);
	assert_int_equal(r.snapshot.n_groups, 0);
	assert_int_equal(r.snapshot.ledger.seen, 0);
	snapshot_read_free(&r);
	u64_map_free(&slots);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),	  cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_ranges),	  cmocka_unit_test(test_negative),
		cmocka_unit_test(test_no_groups),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
