// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Predicates on cgroups in a filter, beside a selection of cgroups and without one: what holds of a
 * cgroup holds below it, and to be asked about does not select.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "cgroup/cgroup.h"
#include "filter/filter.h"
#include "sampler/sampler.h"
#include "twin_run.h"

#define CAPS 0xbff /* Zen 4 */

typedef __u64 regs_t[IBS_OP_REG_FIXED];

static const char *const tree[] = { "a", "a/b", "a/b/c", "a/x", "z" };
#define TREE_N (sizeof(tree) / sizeof(tree[0]))
enum { A, AB, ABC, AX, Z };

static char top[320];
static __u64 ids[TREE_N];
static __u8 *said; /* by a child */

static void path_of(size_t i, char path[640])
{
	snprintf(path, 640, "%s/%s", top, tree[i]);
}

static int up(void **state)
{
	struct cgroup_fs fs;
	char path[640];
	struct stat st;

	(void)state;
	said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (said == MAP_FAILED || cgroup_mode_detect("", &fs, NULL) || !fs.path[0])
		return -1;
	snprintf(top, sizeof(top), "%s/ibscope-test-filter-%d", fs.path, getpid());
	if (mkdir(top, 0755))
		return -1;
	for (size_t i = 0; i < TREE_N; i++) {
		path_of(i, path);
		if (mkdir(path, 0755) || stat(path, &st))
			return -1;
		ids[i] = st.st_ino;
	}
	return 0;
}

static int down(void **state)
{
	char path[640];

	(void)state;
	for (size_t i = TREE_N; i--;) {
		path_of(i, path);
		rmdir(path);
	}
	return rmdir(top);
}

static struct sampler *open_with(const struct sampler_opts *opts)
{
	struct sampler *s;
	struct err err;

	if (sampler_open(opts, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

/* A load that missed, so that the kind of op and a latency can be asked for. */
static enum ibs_outcome outcome_in(struct sampler *s, size_t where, __u32 lat)
{
	char path[640];
	int status;
	pid_t pid;

	path_of(where, path);
	strcat(path, "/cgroup.procs");
	pid = fork();
	if (!pid) {
		regs_t regs = { 0 };
		FILE *f = fopen(path, "w");
		struct err err;

		regs[IBS_OP_DATA2] = 3;
		regs[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS |
				     IBS_OP_DATA3_L2_MISS | (__u64)lat << 32;
		if (!f || fprintf(f, "%d", getpid()) < 0 || fclose(f))
			_exit(1);
		_exit(!!twin_run_regs(s, &regs, 1, said, &err));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	return *said;
}

/* Passed, refused by the filter, left out by --cgroup: one letter a cgroup. */
static void check_is(struct sampler *s, const char *want)
{
	char got[TREE_N + 1] = "";

	/* twice: the second time from what the CPU remembers */
	for (int i = 0; i < 2; i++) {
		for (size_t c = 0; c < TREE_N; c++) {
			enum ibs_outcome o = outcome_in(s, c, 300);

			got[c] = o == IBS_OUTCOME_AGGREGATED	    ? '+'
				 : o == IBS_OUTCOME_FILTERED_EXPR   ? '-'
				 : o == IBS_OUTCOME_FILTERED_CGROUP ? 'c'
								    : '?';
		}
		if (strcmp(got, want))
			fail_msg("%s, not %s", got, want);
	}
}

static void close_checked(struct sampler *s)
{
	struct snapshot snap;
	struct err err;

	if (sampler_snapshot(s, &snap, &err))
		fail_msg("%s", err.text);
	assert_int_equal(ledger_residual(&snap.ledger), 0);
	snapshot_free(&snap);
	sampler_close(s);
}

static void check(const char *expr, const struct selected_cgroup *sel, size_t n, const char *want)
{
	struct sampler_opts opts = { .source = SAMPLER_TWIN, .ibs = { .caps = CAPS } };
	struct filter f;
	struct err err;

	if (filter_parse(expr, &f, &err))
		fail_msg("%s", err.text);
	opts.sel.filter = &f.prog;
	opts.sel.cgroups = sel;
	opts.sel.n_cgroups = n;
	for (int by = 0; by <= IBS_BY_CGROUP; by++) {
		struct sampler *s;

		opts.by = by;
		s = open_with(&opts);
		check_is(s, want);
		close_checked(s);
	}
	filter_free(&f);
}

static void test_below(void **state)
{
	const struct selected_cgroup one[] = {
		{ .id = ids[AB], .filter_only = true, .filter = 1 }
	};
	const struct selected_cgroup two[] = {
		{ .id = ids[A], .filter_only = true, .filter = 1 },
		{ .id = ids[ABC], .filter_only = true, .filter = 2 },
		{ .id = ids[Z], .filter_only = true, .filter = 2 },
	};

	(void)state;
	check("cgroup == /one", one, 1, "-++--");
	check("cgroup != /one", one, 1, "+--++");
	check("cgroup == /one && op == load", one, 1, "-++--");
	check("cgroup == /one && op == store", one, 1, "-----");
	check("cgroup == /one || dc_miss_lat > 299", one, 1, "+++++");
	check("cgroup == /one && cgroup == /two", two, 3, "--+--");
	check("cgroup == /one || cgroup == /two", two, 3, "+++++");
	check("cgroup == /one && cgroup != /two", two, 3, "++-+-");
	check("cgroup == /one", NULL, 0, "-----"); /* nothing is that yet */
}

/* What a filter asks about is neither selected nor left out by that. */
static void test_with_selection(void **state)
{
	const struct selected_cgroup in[] = {
		{ .id = ids[A] },
		{ .id = ids[AB], .filter_only = true, .filter = 1 },
		{ .id = ids[Z], .filter_only = true, .filter = 1 },
	};
	const struct selected_cgroup out[] = {
		{ .id = ids[AB], .out = true },
		{ .id = ids[ABC], .filter_only = true, .filter = 1 },
		{ .id = ids[Z], .filter_only = true, .filter = 1 },
	};
	const struct selected_cgroup both[] = { { .id = ids[A], .filter = 1 } };
	const struct selected_cgroup none[] = { { .id = 0 } };

	(void)state;
	check("cgroup == /one", in, 3, "-++-c");
	check("cgroup == /one", out, 3, "-cc-+");
	check("cgroup == /one", both, 1, "++++c");
	check("op == load", none, 1, "ccccc");
}

/* A least latency is not taken away by an entry further down that is there for the filter. */
static void test_min_lat(void **state)
{
	const struct selected_cgroup sel[] = {
		{ .id = ids[A], .min_lat = 200 },
		{ .id = ids[AB], .filter_only = true, .filter = 1 },
	};
	struct sampler_opts opts = { .source = SAMPLER_TWIN, .ibs = { .caps = CAPS } };
	struct sampler *s;
	struct filter f;
	struct err err;

	(void)state;
	assert_int_equal(filter_parse("cgroup == /one", &f, &err), 0);
	opts.sel.filter = &f.prog;
	opts.sel.cgroups = sel;
	opts.sel.n_cgroups = 2;
	s = open_with(&opts);
	assert_int_equal(outcome_in(s, ABC, 199), IBS_OUTCOME_FILTERED_LAT);
	assert_int_equal(outcome_in(s, ABC, 200), IBS_OUTCOME_AGGREGATED);
	assert_int_equal(outcome_in(s, AX, 200), IBS_OUTCOME_FILTERED_EXPR);
	close_checked(s);
	filter_free(&f);
}

static void test_live(void **state)
{
	struct sampler_opts opts = { .source = SAMPLER_TWIN, .ibs = { .caps = CAPS } };
	struct selected_cgroup sel[] = {
		{ .id = ids[AB], .filter_only = true, .filter = 1 },
		{ .id = ids[Z], .filter_only = true, .filter = 1 },
	};
	struct selected_cgroup *many;
	struct sampler *s;
	struct filter f;
	struct err err;

	(void)state;
	assert_int_equal(filter_parse("cgroup == /one", &f, &err), 0);
	opts.sel.filter = &f.prog;
	opts.sel.live = SAMPLER_LIVE_FILTER;
	s = open_with(&opts);
	check_is(s, "-----");
	assert_int_equal(sampler_set_cgroups(s, sel, 2, &err), 0);
	check_is(s, "-++-+");
	assert_int_equal(sampler_set_cgroups(s, sel, 1, &err), 0);
	check_is(s, "-++--");
	sel[0].id = ids[A];
	assert_int_equal(sampler_set_cgroups(s, sel, 1, &err), 0);
	check_is(s, "++++-");
	/* it was not opened to select */
	sel[0].filter_only = false;
	assert_int_equal(sampler_set_cgroups(s, sel, 1, &err), -EINVAL);
	assert_int_equal(sampler_set_processes(s, &opts.sel.processes, &err), -EINVAL);
	check_is(s, "++++-");
	close_checked(s);

	opts.sel.live = SAMPLER_LIVE_CGROUPS;
	s = open_with(&opts);
	assert_int_equal(sampler_set_cgroups(s, sel, 2, &err), 0);
	check_is(s, "++++c");
	many = calloc(SAMPLER_MAX_SELECTED + 1, sizeof(*many));
	assert_non_null(many);
	for (int i = 0; i <= SAMPLER_MAX_SELECTED; i++)
		many[i].id = 1ULL << 40 | i;
	assert_int_equal(sampler_set_cgroups(s, many, SAMPLER_MAX_SELECTED + 1, &err), -E2BIG);
	check_is(s, "++++c");
	/* the whole map changed at once */
	assert_int_equal(sampler_set_cgroups(s, many, SAMPLER_MAX_SELECTED, &err), 0);
	check_is(s, "ccccc");
	for (int i = 0; i < SAMPLER_MAX_SELECTED; i++)
		many[i].id += SAMPLER_MAX_SELECTED;
	many[7] = sel[0];
	assert_int_equal(sampler_set_cgroups(s, many, SAMPLER_MAX_SELECTED, &err), 0);
	check_is(s, "++++c");
	free(many);
	close_checked(s);
	filter_free(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_below),
		cmocka_unit_test(test_with_selection),
		cmocka_unit_test(test_min_lat),
		cmocka_unit_test(test_live),
	};
	struct sampler_opts opts = { .source = SAMPLER_TWIN, .ibs = { .caps = CAPS } };
	struct sampler *s;
	struct err err;

	if (geteuid()) {
		puts("needs root to load BPF and to make cgroups");
		return 77;
	}
	if (sampler_open(&opts, &s, &err)) {
		puts(err.text);
		return 77;
	}
	sampler_close(s);
	if (up(NULL)) {
		puts("no cgroup v2 hierarchy in which cgroups can be made");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, down);
}
