// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Options of a collector: its defaults, what it refuses, and which of file, command line and live options is in force. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/std.h"
#include "collector/collector_settings.h"
#include "tree.h"

#define WORDS 16

static char *argv[WORDS];
static struct settings_source src;
static struct live_options live;
static struct collector_settings s;

static int begin(void **state)
{
	(void)state;
	memset(&live, 0, sizeof(live));
	memset(&s, 0, sizeof(s));
	src = (struct settings_source){ .argv = argv };
	return 0;
}

static int end(void **state)
{
	(void)state;
	settings_close(&s);
	live_options_free(&live);
	free(src.config_text);
	return 0;
}

/* @line: words with single blanks */
static int parse(const char *line, struct err *err)
{
	static char text[1024];
	char *save;

	snprintf(text, sizeof(text), "serve %s", line);
	src.argc = 0;
	for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[src.argc++] = w;
	argv[src.argc] = NULL;
	optind = 1;
	settings_close(&s);
	return settings_parse(&src, &live, &s, err);
}

static void good(const char *line)
{
	struct err err = { "" };

	if (parse(line, &err))
		fail_msg("%s: %s", line, err.text);
}

/* @why: how the reason begins */
static void bad(const char *line, const char *why)
{
	struct err err = { "" };

	assert_true(parse(line, &err) < 0);
	if (strncmp(err.text, why, strlen(why)))
		fail_msg("%s: %s", line, err.text);
}

static void near(double is, double want)
{
	if (fabs(is - want) > 1e-9 * fabs(want))
		fail_msg("%g, not %g", is, want);
}

/* --- single options --- */

static void test_defaults(void **state)
{
	(void)state;
	good("");
	assert_null(s.config);
	assert_false(s.config_check || s.unpin || s.control_given || s.overhead_given ||
		     s.bpf_time_given);
	assert_string_equal(s.pin_dir, IBS_PIN_DIR);
	assert_string_equal(s.control, "/run/ibscope/control.sock");
	assert_string_equal(s.user_socket, "none");
	assert_string_equal(s.user_jobs, "");
	assert_int_equal(s.pin_mode, 0644);
	assert_int_equal(s.control_mode, 0600);
	assert_true(s.grace_s == 300 && s.lease_s == 600);
	near(s.max_overhead, 0.005);
	assert_true(s.max_bpf_ns == 2500 && s.nmi_ns == 0);
	assert_int_equal(s.max_rss_bytes, 0);
	assert_int_equal(s.sampling.n_events, 1);
	assert_true(s.sampling.wait_for_names && s.sampling.takes_two &&
		    s.sampling.strata_counters && s.sampling.sampler.count_ops);
	assert_int_equal(s.sampling.labels, LABELS_SERVED);
	assert_int_equal(s.sampling.strata, STRATA_OFF);
	assert_true(s.flight.seconds == 0);
	bad("x", "unexpected argument 'x': serve takes options only");
	bad("--nonsense", "unknown option '--nonsense'");
}

static void test_sockets(void **state)
{
	char path[CONTROL_PATH_MAX + 2], line[256];

	(void)state;
	good("--control /a/b --control-mode 0660");
	assert_string_equal(s.control, "/a/b");
	assert_true(s.control_given);
	assert_int_equal(s.control_mode, 0660);
	good("--control none");
	assert_string_equal(s.control, "none");
	bad("--control a",
	    "--control: invalid path 'a': must be an absolute path of at most 103 characters, or "
	    "none");
	bad("--user-socket a",
	    "--user-socket: invalid path 'a': must be an absolute path of at most 103 characters, "
	    "or none");
	memset(path, 'a', sizeof(path));
	*path = '/';
	path[CONTROL_PATH_MAX] = 0;
	snprintf(line, sizeof(line), "--control %s", path);
	good(line);
	assert_string_equal(s.control, path);
	path[CONTROL_PATH_MAX] = 'a';
	path[CONTROL_PATH_MAX + 1] = 0;
	snprintf(line, sizeof(line), "--control %s", path);
	bad(line, "--control: invalid path '/aaa");
}

/* Users must not bypass their socket, which needs counters by cgroup. */
static void test_users(void **state)
{
	char line[CGROUP_PATTERN_MAX + 100];

	(void)state;
	good("--user-socket /u");
	assert_string_equal(s.user_socket, "/u");
	assert_int_equal(s.pin_mode, 0600);
	good("--user-socket /u --pin-mode 0640");
	assert_int_equal(s.pin_mode, 0640);
	good("--pin-mode 0604");
	assert_int_equal(s.pin_mode, 0604);
	bad("--user-socket /u --pin-mode 0604",
	    "--pin-mode 0604 lets all users read all counters, so --user-socket protects nothing: "
	    "use 0600, or 0640 for a group");
	bad("--user-socket /u --by src", "--user-socket needs counters of cgroups: add cgroup, "
					 "container or pod to --by");
	good("--user-socket /u --by pod");
	good("--by src");
	bad("--user-jobs /a", "--user-jobs needs --user-socket");
	good("--user-socket /u --user-jobs /a/job_*");
	assert_string_equal(s.user_jobs, "/a/job_*");
	bad("--user-socket /u --user-jobs a", "--user-jobs: invalid pattern 'a': must be the path");
	bad("--user-socket /u --user-jobs /", "--user-jobs: invalid pattern '/'");
	bad("--user-socket /u --user-jobs /a//b", "--user-jobs: invalid pattern '/a//b'");
	snprintf(line, sizeof(line), "--user-socket /u --user-jobs /%0*d", CGROUP_PATTERN_MAX - 2,
		 0);
	if (strlen(line) < 1000) {
		good(line);
		snprintf(line, sizeof(line), "--user-socket /u --user-jobs /%0*d",
			 CGROUP_PATTERN_MAX - 1, 0);
		bad(line, "--user-jobs: invalid pattern");
	}
}

static void test_limits(void **state)
{
	(void)state;
	good("--max-overhead 1%");
	near(s.max_overhead, 0.01);
	assert_true(s.overhead_given);
	good("--max-overhead 50%");
	near(s.max_overhead, 0.5);
	good("--max-overhead 0.001%");
	near(s.max_overhead, 0.00001);
	bad("--max-overhead 51%", "--max-overhead: invalid share '51%': must be from 0.001% to 50% "
				  "of the CPUs' time, such as 0.5%, or off");
	bad("--max-overhead 0%", "--max-overhead: invalid share '0%'");
	/* without a budget, the limit of the program is ten times as high, unless it was given */
	good("--max-overhead off");
	assert_true(s.max_overhead == 0 && s.max_bpf_ns == 25000);
	good("--max-overhead off --max-bpf-time 3us");
	near(s.max_bpf_ns, 3000);
	assert_true(s.bpf_time_given);
	good("--max-bpf-time off");
	assert_true(s.max_bpf_ns == 0);
	good("--max-overhead off --max-bpf-time off");
	assert_true(s.max_bpf_ns == 0);
	good("--max-overhead off --max-overhead 2%");
	near(s.max_overhead, 0.02);
	assert_true(s.max_bpf_ns == 2500);
	good("--nmi-cost 2us");
	near(s.nmi_ns, 2000);
	good("--nmi-cost 1500");
	near(s.nmi_ns, 1500);
	good("--nmi-cost auto");
	assert_true(s.nmi_ns == 0);
	bad("--nmi-cost off", "--nmi-cost: invalid duration 'off': must be from ");
	bad("--max-bpf-time auto", "--max-bpf-time: invalid duration 'auto'");
	good("--lease never");
	assert_true(s.lease_s == 0);
	good("--lease 5s");
	assert_true(s.lease_s == 5);
	good("--lease 7d");
	assert_true(s.lease_s == 604800);
	bad("--lease 4s", "--lease: invalid duration '4s': must be from 5s to 7d, such as 10m, or "
			  "never");
	bad("--lease 8d", "--lease: invalid duration '8d'");
	good("--grace 10m --max-rss 100M");
	assert_true(s.grace_s == 600);
	assert_int_equal(s.max_rss_bytes, 100 << 20);
	bad("--max-rss 15M", "--max-rss: ");
	bad("--grace 0s", "--grace: ");
}

/* With -F the kernel chooses the period: there is no budget. */
static void test_frequency(void **state)
{
	(void)state;
	good("-F 1000");
	assert_true(s.max_overhead == 0 && s.max_bpf_ns == 25000);
	good("-F 1000 --max-overhead off");
	assert_true(s.max_overhead == 0);
	bad("-F 1000 --max-overhead 1%",
	    "--max-overhead changes the period, but with -F the kernel chooses it: use -c, or "
	    "--max-overhead off");
	good("-c 400000 --max-overhead 1%");
	near(s.max_overhead, 0.01);
}

/* Of two events, that of ibs_op is the first, in whichever order they are given. */
static void test_events(void **state)
{
	static const char *const lines[] = { "-e ibs_op// -e ibs_fetch//",
					     "-e ibs_fetch// -e ibs_op//" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		good(lines[i]);
		assert_int_equal(s.sampling.n_events, 2);
		assert_false(event_of_fetch(&s.sampling.event[0].spec));
		assert_true(event_of_fetch(&s.sampling.event[1].spec));
	}
	good("-e ibs_fetch//");
	assert_int_equal(s.sampling.n_events, 1);
	assert_true(event_of_fetch(&s.sampling.event[0].spec));
	bad("--by slab", "--by slab: counters that other users can read must not have kernel "
			 "addresses");
	bad("--flight-on p99>3", "--flight-on needs --flight");
	good("--flight 60s:1M --flight-on p99>3");
	assert_true(s.flight.seconds == 60);
	assert_int_equal(s.flight.bytes, 1 << 20);
	assert_int_equal(s.sampling.sampler.history_bytes, 1 << 20);
	assert_true(s.sampling.sampler.copies);
}

/* --- where options come from --- */

static void put_config(const char *text)
{
	free(src.config_text);
	src.config_text = strdup(text);
	src.config_size = strlen(text);
}

static void set_live(const char *name, const char *value)
{
	struct control_request r = { .n = 1, .line = { { name, value } }, .uid = 7 };

	live_options_set(&live, &r);
}

/* The command line overrides the file, and live options override both; an empty value is the default. */
static void test_order(void **state)
{
	struct err err = { "" };

	(void)state;
	put_config("grace = 20s\nlease = 30s\nunpin\n");
	good("--config f --grace 40s");
	assert_string_equal(s.config, "f");
	assert_true(s.grace_s == 40 && s.lease_s == 30 && s.unpin);
	set_live("grace", "50s");
	set_live("lease", "");
	good("--config f --grace 40s");
	assert_true(s.grace_s == 50 && s.lease_s == 600);
	set_live("grace", "0s");
	assert_true(parse("--config f", &err) < 0);
	assert_true(live_options_unset(&live, "grace"));
	assert_false(live_options_unset(&live, "grace"));
	good("--config f --grace 40s");
	assert_true(s.grace_s == 40 && s.lease_s == 600);
	/* -e on the command line replaces those of the file */
	put_config("event = ibs_fetch//\n");
	good("--config f -e ibs_op//");
	assert_int_equal(s.sampling.n_events, 1);
	assert_false(event_of_fetch(&s.sampling.event[0].spec));
	put_config("grace = x\n");
	bad("--config f", "f:1: ");
}

/* A period and a frequency exclude each other: setting one live overrides the other. */
static void test_pairs(void **state)
{
	(void)state;
	set_live("freq", "1000");
	assert_true(live_options_hide(&live, "freq"));
	assert_true(live_options_hide(&live, "period"));
	assert_false(live_options_hide(&live, "grace"));
	good("-c 400000");
	assert_true(s.sampling.event[0].rate.has_freq);
	set_live("period", "300000");
	assert_int_equal(live.n, 1);
	assert_false(live_options_unset(&live, "freq"));
	good("-F 1000");
	assert_false(s.sampling.event[0].rate.has_freq);
	/* the default of one says nothing about the other */
	set_live("freq", "");
	assert_int_equal(live.n, 2);
	live_options_unset(&live, "period");
	assert_true(live_options_hide(&live, "freq"));
	assert_false(live_options_hide(&live, "period"));
}

static void test_live(void **state)
{
	struct control_request two = {
		.n = 3, .line = { { "pid", "1" }, { "pid", "2" }, { "unpin", NULL } }, .uid = 9
	};
	struct live_options other;

	(void)state;
	set_live("pid", "7");
	live_options_set(&live, &two);
	assert_int_equal(live.n, 3);
	assert_string_equal(live.one[0].name, "pid");
	assert_string_equal(live.one[0].value, "1");
	assert_string_equal(live.one[1].value, "2");
	assert_null(live.one[2].value);
	assert_int_equal(live.one[2].uid, 9);
	assert_in_range(live.one[2].when, time(NULL) - 5, time(NULL));
	live_options_copy(&other, &live);
	assert_true(live_options_same(&live, &other, "pid"));
	assert_true(live_options_same(&live, &other, "unpin"));
	assert_true(live_options_same(&live, &other, "grace"));
	/* same names and values, in the same order */
	free(other.one[1].value);
	other.one[1].value = strdup("3");
	assert_false(live_options_same(&live, &other, "pid"));
	assert_true(live_options_unset(&other, "unpin"));
	assert_false(live_options_same(&live, &other, "unpin"));
	assert_false(live_options_same(&other, &live, "unpin"));
	other.n = 1;
	assert_false(live_options_same(&live, &other, "pid"));
	other.n = 2;
	set_live("unpin", "");
	assert_false(live_options_same(&live, &(struct live_options){}, "unpin"));
	good("");
	assert_false(s.unpin);
	live_options_free(&other);
	assert_int_equal(other.n, 0);
}

/* --- options of the program --- */

struct more {
	unsigned long long number;
};

static int checked;

static int check_more(struct collector_settings *set, struct err *err)
{
	checked++;
	return ((struct more *)set->extra)->number == 13 ? err_set(err, -EINVAL, "not 13") : 0;
}

static const struct option_row more_rows[] = {
	{ "number", 0, "N", "a number", OPTION_NUMBER(struct more, number, 1, 20) },
};

static void test_extra(void **state)
{
	static const struct collector_extra extra = { .title = "More",
						      .rows = more_rows,
						      .n = 1,
						      .size = sizeof(struct more),
						      .check = check_more };
	struct suggestion near_one;
	char *help, text[64];
	size_t n;
	FILE *f;

	(void)state;
	bad("--number 3", "unknown option '--number'");
	assert_int_equal(checked, 0);
	src.extra = &extra;
	good("--number 3");
	assert_int_equal(checked, 1);
	assert_int_equal(((struct more *)s.extra)->number, 3);
	good("");
	assert_int_equal(((struct more *)s.extra)->number, 0);
	bad("--number 13", "not 13");
	checked = 0;
	bad("--number 13 --lease x", "--lease: ");
	assert_int_equal(checked, 0);
	assert_ptr_equal(settings_find_option(&src, "number", &near_one), &more_rows[0]);
	assert_string_equal(settings_find_option(&src, "grace", &near_one)->name, "grace");
	assert_null(settings_find_option(&src, "numbr", &near_one));
	assert_string_equal(near_one.best, "number");
	assert_null(settings_find_option(&src, "gracee", &near_one));
	assert_string_equal(near_one.best, "grace");
	f = open_memstream(&help, &n);
	settings_help(&src, f);
	fclose(f);
	assert_non_null(strstr(help, "\nMore:\n"));
	assert_non_null(strstr(help, "--number"));
	assert_non_null(strstr(help, "--user-jobs"));
	assert_non_null(strstr(help, "--flight"));
	free(help);
	good("--number 4 --grace 10s");
	settings_command_line(&src, text, sizeof(text));
	assert_string_equal(text, "--number 4 --grace 10s");
	settings_command_line(&src, text, 8);
	assert_string_equal(text, "--numbe");
}

static void test_read(void **state)
{
	static char line[128];
	struct err err = { "" };

	(void)state;
	src.argc = 1;
	assert_int_equal(settings_read_config(&src, &err), 0);
	assert_null(src.config_text);
	assert_int_equal(new_root(state), 0);
	put_file("/conf", "grace = 9s\n");
	snprintf(line, sizeof(line), "--config=%s/conf", root);
	argv[0] = (char *)"serve";
	argv[1] = line;
	argv[2] = NULL;
	src.argc = 2;
	assert_int_equal(settings_read_config(&src, &err), 0);
	assert_int_equal(src.config_size, 11);
	good(line);
	assert_true(s.grace_s == 9);
	remove_root(state);
	free(src.config_text);
	snprintf(line, sizeof(line), "--config=%s/conf", root);
	argv[1] = line;
	assert_int_equal(settings_read_config(&src, &err), -ENOENT);
	assert_null(src.config_text);
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_defaults),  T(test_sockets), T(test_users), T(test_limits),
		T(test_frequency), T(test_events),  T(test_order), T(test_pairs),
		T(test_live),	   T(test_extra),   T(test_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
