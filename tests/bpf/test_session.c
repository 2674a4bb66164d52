// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A session of the simulation: opened, changed while it samples, and its cgroups as they come. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim_session.h"

static char nobody[16]; /* a process that does not exist */

static void find_nobody(void)
{
	int pid = 32767;

	while (!kill(pid, 0))
		pid--;
	snprintf(nobody, sizeof(nobody), "%d", pid);
}

/* --- opened and closed --- */

static void test_open(void **state)
{
	__u64 before;

	(void)state;
	assert_false(session_is_open(s));
	session_close(s);
	PARSE("-c", "1000000");
	open_it();
	assert_true(session_is_open(s));
	assert_false(session_usage(s));
	assert_int_equal(session_samplers(s), 1);
	assert_ptr_equal(session_sampler(s, 0), session_event(s, 0)->sampler);
	assert_int_equal(session_options(s)->n_events, 1);
	assert_string_equal(session_event(s, 0)->info.source, "sim");
	assert_int_equal(session_event(s, 0)->info.period, 1000000);
	assert_non_null(session_tree(s));
	assert_non_null(session_names(s));
	assert_ptr_equal(session_cpu(s), &s->setup->cpu);
	assert_null(session_command(s));
	assert_int_equal(session_command_cgroup(s), 0);
	assert_int_equal(session_command_fd(s), -1);
	assert_int_equal(session_fd(s), cgroup_tree_fd(session_tree(s)));
	assert_true(isinf(session_strata_due(s)));
	assert_int_equal(session_strata_reach(s), 0);
	assert_int_equal(seen(0), 0);
	assert_int_equal(session_start(s, &err), 0);
	while (seen(0) < 10)
		run_for(0.01);
	session_tick(s);
	session_stop(s);
	before = seen(0);
	run_for(0.02);
	assert_int_equal(seen(0), before);
	session_close(s);
	assert_false(session_is_open(s));
	session_free(NULL);
}

static void test_two_events(void **state)
{
	(void)state;
	PARSE("-e", "ibs_op/cnt_ctl=1/,ibs_fetch//", "-c", "1000000");
	open_it();
	assert_true(session_is_open(s));
	assert_int_equal(session_samplers(s), 2);
	assert_ptr_not_equal(session_event(s, 1)->sampler, session_event(s, 0)->sampler);
	assert_int_equal(session_start(s, &err), 0);
	while (seen(0) < 5 || seen(1) < 5)
		run_for(0.01);
	session_stop(s);
	/* both have the memory that one would have */
	assert_true(session_event(s, 0)->opts.max_memory_bytes ==
		    session_event(s, 1)->opts.max_memory_bytes);
}

/* A session that was open before is closed, too. */
static void test_not_opened(void **state)
{
	(void)state;
	PARSE("-c", "1000000");
	open_it();
	PARSE("-c", "9999");
	assert_int_equal(session_open(s, &o, &err), -ERANGE);
	assert_true(session_usage(s));
	assert_false(session_is_open(s));
	PARSE("-c", "10000", "--cgroup", "/no/such/cgroup");
	assert_int_equal(session_open(s, &o, &err), -ENOENT);
	assert_false(session_usage(s));
	assert_false(session_is_open(s)); /* there is a setup without samplers */
	assert_non_null(strstr(err.text, "/no/such/cgroup"));
	PARSE("-c", "1000000", "--cgroup-hierarchy", "nonsense");
	assert_int_equal(session_open(s, &o, &err), -EINVAL);
	assert_true(session_usage(s));
	assert_int_equal(strncmp(err.text, "--cgroup-hierarchy: ", 20), 0);
	PARSE("-c", "1000000");
	open_it();
	assert_false(session_usage(s));
}

/* What auto has chosen holds for the next one, whatever there is then. */
static void test_hierarchy(void **state)
{
	struct cgroup_fs automatic, v2;
	const char *name;

	(void)state;
	assert_int_equal(cgroup_hierarchy_choose("", "auto", &automatic, &err), 0);
	if (!*automatic.path) {
		print_message("skipped: no cgroups here\n");
		skip();
	}
	name = *automatic.controller ? automatic.controller : "v2";
	PARSE("-c", "1000000");
	open_it();
	assert_string_equal(s->kept.name, name);
	assert_string_equal(cgroup_tree_fs(session_tree(s))->path, automatic.path);
	session_close(s);
	assert_string_equal(s->kept.name, name);
	/* another one than auto would choose now */
	if (cgroup_hierarchy_choose("", "v2", &v2, &err))
		return;
	strcpy(s->kept.name, "v2");
	open_it();
	assert_string_equal(cgroup_tree_fs(session_tree(s))->path, v2.path);
	assert_string_equal(s->kept.name, "v2");
	session_close(s);
	/* one that is gone is chosen anew */
	strcpy(s->kept.name, "nonsense");
	open_it();
	assert_string_equal(s->kept.name, name);
	session_close(s);
	/* what was given is not kept */
	*s->kept.name = 0;
	PARSE("-c", "1000000", "--cgroup-hierarchy", "v2");
	open_it();
	assert_string_equal(s->kept.name, "");
	assert_string_equal(cgroup_tree_fs(session_tree(s))->path, v2.path);
}

/* --- changed --- */

static void test_needs(void **state)
{
	(void)state;
	PARSE("-c", "1000000");
	open_it();
	assert_int_equal(session_apply_needs(s, &o), 0);
	PARSE("-c", "1000000", "--min-lat", "50");
	assert_int_equal(session_apply_needs(s, &o), SAMPLER_LIVE_LATENCY);
	PARSE("-c", "1000000", "--max-lat", "50");
	assert_int_equal(session_apply_needs(s, &o), SAMPLER_LIVE_LATENCY);
	PARSE("-c", "1000000", "--pid", "1");
	assert_int_equal(session_apply_needs(s, &o), SAMPLER_LIVE_PROCESSES);
	PARSE("-c", "1000000", "--cgroup", "/a");
	assert_int_equal(session_apply_needs(s, &o), SAMPLER_LIVE_CGROUPS);
	PARSE("-c", "1000000", "--container", "a");
	assert_int_equal(session_apply_needs(s, &o), SAMPLER_LIVE_CGROUPS);
	PARSE("-c", "2000000");
	assert_int_equal(session_apply_needs(s, &o), 0);
	PARSE("-c", "1000000", "--pid", "1", "--min-lat", "3");
	open_it();
	assert_int_equal(session_apply_needs(s, &o), 0);
	PARSE("-c", "1000000", "--pid", "2", "--min-lat", "3");
	assert_int_equal(session_apply_needs(s, &o), SAMPLER_LIVE_PROCESSES);
	PARSE("-c", "1000000", "--pid", "!1", "--min-lat", "3");
	assert_int_equal(session_apply_needs(s, &o), SAMPLER_LIVE_PROCESSES);
	PARSE("-c", "1000000", "--pid", "1,2", "--min-lat", "3");
	assert_int_equal(session_apply_needs(s, &o), SAMPLER_LIVE_PROCESSES);
	PARSE("-c", "1000000", "--pid", "1", "--min-lat", "4");
	assert_int_equal(session_apply_needs(s, &o), SAMPLER_LIVE_LATENCY);
}

#define LIVE (SAMPLER_LIVE_LATENCY | SAMPLER_LIVE_PROCESSES | SAMPLER_LIVE_CGROUPS)

static void open_live(unsigned int live)
{
	o.live = live;
	o.sampler.count_ops = true; /* or the period cannot change */
	open_it();
	assert_int_equal(session_start(s, &err), 0);
}

static void filtered(enum ibs_outcome outcome, bool all)
{
	struct snapshot before = snapshot(0), after;

	run_for(0.03);
	after = snapshot(0);
	assert_true(after.ledger.seen > before.ledger.seen);
	if (all)
		assert_int_equal(after.ledger.outcome[outcome] - before.ledger.outcome[outcome],
				 after.ledger.seen - before.ledger.seen);
	else
		assert_int_equal(after.ledger.outcome[outcome], before.ledger.outcome[outcome]);
	snapshot_free(&before);
	snapshot_free(&after);
}

static void test_apply(void **state)
{
	struct sampler *sampler;

	(void)state;
	PARSE("-c", "1000000");
	open_live(LIVE);
	sampler = session_event(s, 0)->sampler;
	filtered(IBS_OUTCOME_FILTERED_PID, false);
	PARSE("-c", "1000000", "--pid", nobody);
	o.live = LIVE;
	assert_int_equal(session_apply(s, &o, &err), 0);
	assert_int_equal(session_options(s)->select.sel.processes.n, 1);
	filtered(IBS_OUTCOME_FILTERED_PID, true);
	PARSE("-c", "1000000", "--min-lat", "65535");
	o.live = LIVE;
	assert_int_equal(session_apply(s, &o, &err), 0);
	filtered(IBS_OUTCOME_FILTERED_PID, false);
	filtered(IBS_OUTCOME_FILTERED_LAT, true);
	PARSE("-c", "2000000");
	o.live = LIVE;
	assert_int_equal(session_apply(s, &o, &err), 0);
	filtered(IBS_OUTCOME_FILTERED_LAT, false);
	assert_int_equal(sampler_period(sampler), 2000000);
	assert_int_equal(session_event(s, 0)->info.period, 2000000);
	assert_ptr_equal(session_event(s, 0)->sampler, sampler); /* it has sampled on */
	/* what needs other events */
	PARSE("-F", "1000");
	o.live = LIVE;
	assert_int_equal(session_apply(s, &o, &err), 1);
	assert_int_equal(session_event(s, 0)->info.period, 2000000);
	PARSE("-e", "ibs_fetch//", "-c", "2000000", "--by", "fetch");
	o.live = LIVE;
	assert_int_equal(session_apply(s, &o, &err), 1);
	/* what is wrong changes nothing */
	PARSE("-c", "1");
	assert_int_equal(session_apply(s, &o, &err), -ERANGE);
	assert_true(session_usage(s));
	assert_int_equal(session_options(s)->event[0].rate.period, 2000000);
	assert_true(session_is_open(s));
	session_stop(s);
}

/* Without the tests in the program, it must be loaded again. */
static void test_apply_without_tests(void **state)
{
	(void)state;
	PARSE("-c", "1000000");
	open_live(0);
	PARSE("-c", "1000000", "--pid", "1");
	assert_int_equal(session_apply(s, &o, &err), 1);
	assert_int_equal(session_options(s)->select.sel.processes.n, 0);
	PARSE("-c", "1000000", "--min-lat", "10");
	assert_int_equal(session_apply(s, &o, &err), 1);
	PARSE("-c", "1000000", "--cgroup", "/");
	assert_int_equal(session_apply(s, &o, &err), 1);
	PARSE("-c", "1000000");
	assert_int_equal(session_apply(s, &o, &err), 0);
	session_stop(s);
}

/* A cgroup that does not exist: the selection before is in force, and can be restored. */
static void test_apply_refused(void **state)
{
	(void)state;
	PARSE("-c", "1000000", "--pid", nobody);
	open_live(LIVE);
	heard();
	listen();
	PARSE("-c", "1000000", "--cgroup", "/no/such/cgroup");
	o.live = LIVE;
	assert_int_equal(session_apply(s, &o, &err), -ENOENT);
	assert_false(session_usage(s));
	assert_non_null(strstr(err.text, "/no/such/cgroup"));
	assert_string_equal(heard(), "");
	listen();
	assert_int_equal(session_options(s)->select.n_cgroups, 0);
	filtered(IBS_OUTCOME_FILTERED_PID, true);
	session_stop(s);
}

/* --- cgroups --- */

static char made[512]; /* the directory of a cgroup of v2 */

static const char *name_of_made(void)
{
	return strrchr(made, '/');
}

static bool find_v2(void)
{
	struct cgroup_fs fs;

	if (cgroup_hierarchy_choose("", "v2", &fs, &err)) {
		print_message("skipped: %s\n", err.text);
		return false;
	}
	snprintf(made, sizeof(made), "%s/ibscope-unit-%d", fs.path, (int)getpid());
	return true;
}

static __u64 make_cgroup(void)
{
	struct stat st;

	assert_int_equal(mkdir(made, 0755), 0);
	assert_int_equal(stat(made, &st), 0);
	return st.st_ino;
}

/* Move this process to a cgroup. */
static void move_to(const char *dir)
{
	char path[600];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fprintf(f, "%d\n", (int)getpid()) > 0);
	assert_int_equal(fclose(f), 0);
}

static char before_made[512];

static void note_cgroup(void)
{
	FILE *f = fopen("/proc/self/cgroup", "re");
	char line[512];

	snprintf(before_made, sizeof(before_made), "%.*s", (int)(name_of_made() - made), made);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, "0::", 3)) {
			line[strcspn(line, "\n")] = 0;
			snprintf(before_made, sizeof(before_made), "%.*s%s",
				 (int)(name_of_made() - made), made, line + 3);
		}
	fclose(f);
}

static __u64 samples_of(__u64 cgroup)
{
	struct snapshot snap = snapshot(0);
	__u64 n = 0;

	for (size_t g = 0; g < snap.n_groups; g++)
		for (size_t i = 0; i < snap.groups[g].n_series; i++)
			n += snap.groups[g].key.cgroup_id == cgroup
				     ? snap.groups[g].series[i].samples
				     : 0;
	snapshot_free(&snap);
	return n;
}

static void await_events(void)
{
	struct pollfd p = { .fd = session_fd(s), .events = POLLIN };

	assert_int_equal(poll(&p, 1, 20000), 1);
}

static void select_made(const char *others)
{
	static char cgroups[600];
	const char *words[] = { "-c", "1000000", "--cgroup-hierarchy", "v2", "--cgroup", cgroups };

	snprintf(cgroups, sizeof(cgroups), "%s%s", name_of_made(), others);
	if (parse_words(6, words))
		fail_msg("%s", err.text);
	o.wait_for_names = true;
}

/* A cgroup that does not exist yet is selected when it does, and events can be bound to it. */
static void test_follow(void **state)
{
	const struct selected_cgroup *found;
	struct session_event *e;
	char text[128], want[128];
	double due;
	size_t n;
	__u64 id;

	(void)state;
	if (!find_v2())
		skip();
	note_cgroup();
	select_made("");
	open_it();
	e = &s->setup->event[0];
	snprintf(want, sizeof(want), "--cgroup %s", name_of_made());
	assert_int_equal(session_unresolved(s, text, sizeof(text)), 1);
	assert_string_equal(text, want);
	assert_int_equal(session_unresolved(s, text, 5), 1);
	assert_string_equal(text, "--cg");
	/* as if the machine could bind events: nothing to bind to yet */
	e->plan.cgroup = true;
	assert_int_equal(session_bound_cgroup(s, e), 0);
	assert_int_equal(s->running[0].bound, 0);
	assert_int_equal(session_start(s, &err), 0);
	filtered(IBS_OUTCOME_FILTERED_CGROUP, true);
	id = make_cgroup();
	for (due = 0; session_unresolved(s, text, sizeof(text)); due = session_follow(s)) {
		if (due)
			run_for(fmin(due, 1));
		else
			await_events();
	}
	assert_string_equal(text, "");
	assert_true(isinf(due));
	found = cgroup_select_result(s->cgroups, &n);
	assert_int_equal(n, 1);
	assert_int_equal(found[0].id, id);
	assert_int_equal(s->running[0].bound, id);
	assert_int_equal(samples_of(id), 0);
	move_to(made);
	for (const double late = now_s() + 20; !samples_of(id) && now_s() < late;)
		run_for(0.01);
	assert_true(samples_of(id) > 0);
	session_stop(s);
	move_to(before_made);
	assert_true(session_follow(s) > 0); /* other cgroups of the machine may have changed */
	session_close(s);
	assert_int_equal(rmdir(made), 0);
}

/* An event can be bound to the only cgroup that is selected, of v2. */
static void test_bound(void **state)
{
	char names[300], second[600];
	struct session_event *e;
	struct stat st;
	__u64 id;
	int fd;

	(void)state;
	if (!find_v2())
		skip();
	id = make_cgroup();
	select_made("");
	open_it();
	e = &s->setup->event[0];
	assert_int_equal(session_bound_cgroup(s, e), 0); /* the plan has no such event */
	assert_int_equal(s->running[0].bound, 0);
	e->plan.cgroup = true;
	fd = session_bound_cgroup(s, e);
	assert_true(fd > 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_ino, id);
	assert_int_equal(s->running[0].bound, id);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	session_close(s);
	/* two of them */
	snprintf(second, sizeof(second), "%s-2", made);
	assert_int_equal(mkdir(second, 0755), 0);
	snprintf(names, sizeof(names), ",%s-2", name_of_made());
	select_made(names);
	open_it();
	e = &s->setup->event[0];
	e->plan.cgroup = true;
	assert_int_equal(session_bound_cgroup(s, e), 0);
	assert_int_equal(s->running[0].bound, 0);
	session_close(s);
	assert_int_equal(rmdir(second), 0);
	assert_int_equal(rmdir(made), 0);
}

static void test_names(void **state)
{
	char text[16] = "x";
	uint64_t id;

	(void)state;
	PARSE("-c", "1000000");
	open_it();
	assert_true(isinf(session_follow(s))); /* nothing is selected or shown */
	assert_int_equal(session_unresolved(s, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(cgroup_tree_lookup(session_tree(s), "/", &id), 0);
	assert_string_equal(session_cgroup_name(s, id, LABEL_CGROUP), "/");
	assert_string_equal(session_cgroup_name(s, id, LABEL_CONTAINER), "");
	assert_string_equal(session_cgroup_name(s, id, LABEL_POD), "");
	assert_null(session_cgroup_name(s, UINT64_MAX, LABEL_CGROUP));
	assert_null(session_cgroup_name(s, UINT64_MAX, LABEL_POD));
	assert_null(session_cgroup_name(s, id, LABEL_SLAB));
}

/* --- warnings --- */

static int lines(const char *text, const char *what)
{
	int n = 0;

	for (const char *at = text; (at = strstr(at, what)); at++)
		n++;
	return n;
}

/* Each is said once. */
static void test_warnings(void **state)
{
	struct group other = { .slot = IBS_SLOT_OTHER, .other = true }, group = { .slot = 1 };
	struct snapshot snap = { .n_groups = 1, .groups = &group };
	const char *text;

	(void)state;
	PARSE("-c", "1000000");
	open_it();
	heard();
	listen();
	snap.pmu.enabled_ns = snap.pmu.running_ns = 1000;
	session_warn(s, 0, &snap);
	assert_string_equal(heard(), "");
	listen();
	for (int i = 0; i < 2; i++) {
		snap.pmu.throttled = 1;
		session_warn(s, 0, &snap);
		snap.pmu.throttled = 0;
		snap.pmu.running_ns = 250;
		session_warn(s, 0, &snap);
		snap.pmu.running_ns = 1000;
		snap.groups = &other;
		session_warn(s, 0, &snap);
		snap.n_groups = 0;
		session_warn(s, 0, &snap);
		snap.n_groups = 1;
	}
	text = heard();
	listen();
	assert_int_equal(lines(text, "the kernel throttled sampling: "), 1);
	assert_int_equal(lines(text, "the event was on the PMU 25.0% of the time: "), 1);
	assert_int_equal(lines(text, "more groups than --max-groups: "), 1);
	assert_int_equal(lines(text, "\n"), 3);
}

#define T(f) cmocka_unit_test_setup_teardown(f, new_session, free_session)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_open),
		T(test_two_events),
		T(test_not_opened),
		T(test_hierarchy),
		T(test_needs),
		T(test_apply),
		T(test_apply_without_tests),
		T(test_apply_refused),
		T(test_follow),
		T(test_bound),
		T(test_names),
		T(test_warnings),
	};

	find_nobody();
	if (!can_sample())
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
