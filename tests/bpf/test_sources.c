// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Where intervals of top come from: a sampler of its own, the pins of a collector in another process, and its socket for
 * users. In a mount namespace with a /run of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "collector/collector.h"
#include "top/source.h"

#define DIR	  "/run/t"
#define PINS	  DIR "/bpf/pins"
#define USERS	  DIR "/users"
#define PERIOD	  100000 /* ns */
#define TIMEOUT_S 30

static pid_t collector_pid;
static char *mount_point; /* of cgroups, in shared memory */
static char path[64];
static struct err err;
static struct top_source *source;

/* --- the collector, in a process of its own --- */

static volatile sig_atomic_t ended;

static void end_collector(int sig)
{
	(void)sig;
	ended = 1;
}

/* @to: gets a line when it samples: where cgroups are; or why not */
static void run_collector(int to)
{
	static char *argv[] = { "serve",
				"--source=sim",
				"-c100000",
				"--max-overhead=off",
				"--nmi-cost=2us",
				"--max-groups=64",
				"--control=none",
				"--pin-dir=" PINS,
				"--user-socket=" USERS,
				"--user-jobs=/ibscope-sources-*",
				NULL };
	const struct collector_opts opts = { .argc = ARRAY_SIZE(argv) - 1, .argv = argv };
	struct pollfd fds[COLLECTOR_FDS];
	struct collector *c;
	int ret;

	signal(SIGTERM, end_collector);
	optind = 1;
	ret = collector_new(&opts, &c, &err) ?: collector_open(c, &err);
	if (ret)
		dprintf(to, "%d %s\n", ret, err.text);
	else
		dprintf(to, "0 %s\n", cgroup_tree_mount(session_tree(collector_session(c))));
	while (!ret && !ended) {
		const int ms = collector_prepare(c, fds);

		poll(fds, COLLECTOR_FDS, ms < 0 || ms > 20 ? 20 : ms);
		ret = collector_run(c, fds, &err);
	}
	ret = collector_finish(c, ret, &err);
	collector_free(c);
	_exit(ret != 0);
}

/* Return: 0, or a negative errno. */
static int start_collector(void)
{
	char line[600] = "";
	int pair[2], ret = -EIO;
	FILE *f;

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	collector_pid = fork();
	if (!collector_pid)
		run_collector(pair[1]);
	close(pair[1]);
	f = fdopen(pair[0], "r");
	if (fgets(line, sizeof(line), f) && sscanf(line, "%d %511[^\n]", &ret, mount_point) < 1)
		ret = -EIO;
	fclose(f);
	if (ret)
		err_set(&err, ret, "%s", mount_point);
	return ret;
}

static int stop_collector(int sig)
{
	int status = -1;

	if (collector_pid) {
		kill(collector_pid, sig);
		assert_int_equal(waitpid(collector_pid, &status, 0), collector_pid);
	}
	collector_pid = 0;
	return status;
}

/* This process, with its samples, to a cgroup of its own. */
static void move_to(const char *cgroup)
{
	char file[700];
	int fd;

	snprintf(file, sizeof(file), "%s%s/cgroup.procs", mount_point, cgroup);
	fd = open(file, O_WRONLY);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "0", 1), 1);
	close(fd);
}

static void spin(double seconds)
{
	const double stop = thread_cpu_s() + seconds;

	while (thread_cpu_s() < stop)
		;
}

/* --- intervals --- */

static int close_source(void **state)
{
	(void)state;
	source_close(source);
	source = NULL;
	return 0;
}

/* Samples of the group of our cgroup in an interval of a busy process. */
static __u64 own_samples(const struct snapshot *s)
{
	__u64 n = 0;

	for (size_t i = 0; i < s->n_groups; i++) {
		const struct group *g = &s->groups[i];
		const char *name = source->name(source, g->key.cgroup_id, LABEL_CGROUP);

		for (size_t k = 0; name && !strcmp(name, path) && k < g->n_series; k++)
			n += g->series[k].samples;
	}
	return n;
}

static void check_frame(const struct frame *f)
{
	const __u64 now = clock_ns(CLOCK_REALTIME);

	assert_true(f->end_ns <= now && now - f->end_ns < TIMEOUT_S * 1000000000ull);
	assert_int_equal(f->by, source->info.by);
	assert_int_equal(f->period, PERIOD);
	assert_int_equal(f->metric, IBS_METRIC_DC_MISS_LAT);
}

/* Intervals until there are samples of ours. Return: those of the last one. */
static __u64 wait_for_samples(void)
{
	const double stop = now_s() + TIMEOUT_S;
	struct snapshot s;
	struct frame f;
	__u64 n = 0;

	while (!n && now_s() < stop) {
		int ret;

		spin(0.1);
		ret = source->read(source, 0.1, &s, &f, &err);
		if (ret < 0)
			fail_msg("%s", err.text);
		if (ret)
			continue;
		check_frame(&f);
		assert_int_equal(ledger_residual(&s.ledger), 0);
		assert_true(s.time_ns > 0);
		n = own_samples(&s);
		assert_true(n <= s.ledger.seen);
		snapshot_free(&s);
	}
	return n;
}

/* An interval has only what is new. */
static void test_pinned(void **state)
{
	const struct top_source_info *i;
	char want[64];
	__u64 n;

	(void)state;
	if (source_pinned(PINS, SOURCE_FIRST, &source, &err))
		fail_msg("%s", err.text);
	i = &source->info;
	snprintf(want, sizeof(want), "collector %d", collector_pid);
	assert_string_equal(i->origin, want);
	assert_string_equal(i->trouble, "");
	assert_string_equal(i->hist.source, "sim");
	assert_memory_equal(i->hist.event, "ibs_op/", 7);
	assert_true(i->hist.simulated);
	assert_int_equal(i->hist.period, PERIOD);
	assert_int_equal(i->by, IBS_BY_CGROUP);
	assert_int_equal(i->by_possible, IBS_BY_CGROUP);
	assert_false(i->unselectable);
	assert_int_equal(source->open(source, 0, &err), 0);
	n = wait_for_samples();
	/* of a tenth of a second of CPU time or a little more, at ten a millisecond */
	assert_true(n > 100 && n < 20000);
	assert_null(source->name(source, 1ull << 60, LABEL_CGROUP));
	assert_null(source->fds);
	assert_null(source->tick);
}

static void test_events(void **state)
{
	(void)state;
	assert_int_equal(source_pinned(PINS, SOURCE_FETCH, &source, &err), -EINVAL);
	assert_string_equal(err.text, "-e ibs_fetch//: the collector does not sample it");
	assert_int_equal(source_users(USERS, SOURCE_FETCH, &source, &err), -EINVAL);
	assert_string_equal(err.text, "-e ibs_fetch//: the collector does not sample it");
	assert_int_equal(source_pinned(PINS "/none", SOURCE_FIRST, &source, &err), -ENOENT);
	assert_int_equal(source_users(USERS "/none", SOURCE_FIRST, &source, &err), -ENOTDIR);
	assert_int_equal(source_pinned(PINS, SOURCE_OP, &source, &err), 0);
}

/* Those of one's own cgroup, here as a job. */
static void test_users(void **state)
{
	struct snapshot s;
	struct frame f;
	__u64 n;

	(void)state;
	if (source_users(USERS, SOURCE_OP, &source, &err))
		fail_msg("%s", err.text);
	assert_string_equal(source->info.origin, "own cgroups");
	assert_true(source->info.unselectable);
	n = wait_for_samples();
	assert_true(n > 100 && n < 20000);
	assert_string_equal(source->info.hist.source, "sim");
	assert_memory_equal(source->info.hist.event, "ibs_op/", 7);
	assert_true(source->info.hist.simulated);
	assert_int_equal(source->info.hist.period, PERIOD);
	assert_int_equal(source->info.by, IBS_BY_CGROUP);
	/* no other group is there, and the ledger is of these alone */
	spin(0.1);
	assert_int_equal(source->read(source, 0.1, &s, &f, &err), 0);
	assert_int_equal(s.n_groups, 1);
	assert_int_equal(s.ledger.seen, own_samples(&s));
	assert_int_equal(s.ledger.outcome[IBS_OUTCOME_AGGREGATED], s.ledger.seen);
	snapshot_free(&s);
	/* opened again, what was before is not in the next interval */
	spin(0.3);
	assert_int_equal(source->open(source, 0, &err), 0);
	spin(0.02);
	assert_int_equal(source->read(source, 0.1, &s, &f, &err), 0);
	assert_true(s.ledger.seen < 2500);
	snapshot_free(&s);
}

static struct sampling_opts opts;

static void test_live(void **state)
{
	struct pollfd fds[SOURCE_FDS];
	struct snapshot s;
	struct frame f;
	__u64 ours = 0, all = 0;
	double due;

	(void)state;
	sampling_init(&opts);
	opts.source = SOURCE_SIM;
	opts.all = opts.any_period = true;
	opts.event[0].rate = (struct event_rate){ .has_period = true, .period = PERIOD };
	opts.sampler.max_groups = 1024;
	opts.sampler.count_ops = true;
	assert_int_equal(sampling_check(&opts, &err), 0);
	source = source_live(&opts);
	assert_true(source->info.cost_assumed);
	/* nothing is sampled yet */
	assert_int_equal(source->read(source, 1, &s, &f, &err), 1);
	assert_int_equal(source->fds(source, fds), 0);
	assert_true(isinf(source->tick(source)));
	if (source->open(source, 1u << LABEL_PID, &err))
		fail_msg("%s", err.text);
	assert_int_equal(source->info.by, IBS_BY_PID);
	assert_string_equal(source->info.hist.source, "sim");
	assert_memory_equal(source->info.hist.event, "ibs_op/", 7);
	assert_false(source->usage);
	assert_int_equal(source->fds(source, fds), 1);
	due = source->tick(source);
	assert_true(due >= 0 && due <= 0.5);
	for (int i = 0; i < 2; i++) {
		spin(0.1);
		assert_int_equal(source->read(source, 0.1, &s, &f, &err), 0);
		check_frame(&f);
		assert_int_equal(ledger_residual(&s.ledger), 0);
		ours = all = 0;
		for (size_t g = 0; g < s.n_groups; g++)
			for (size_t k = 0; k < s.groups[g].n_series; k++) {
				const __u64 n = s.groups[g].series[k].samples;

				all += n;
				ours += s.groups[g].key.tgid == (__u32)getpid() ? n : 0;
			}
		assert_int_equal(all, s.ledger.seen);
		assert_true(ours > 300 && ours < 20000);
		/* of the CPUs' time, at least this process has been busy */
		assert_true(f.cost > 0 && f.cost < 1.5);
		assert_string_equal(source->info.trouble, "");
		snapshot_free(&s);
	}
	/* begun anew with other groups */
	assert_int_equal(source->open(source, 1u << LABEL_CPU, &err), 0);
	assert_int_equal(source->info.by, IBS_BY_CPU);
	spin(0.05);
	assert_int_equal(source->read(source, 0.05, &s, &f, &err), 0);
	assert_true(s.n_groups >= 1 && s.n_groups <= (size_t)sysconf(_SC_NPROCESSORS_CONF));
	snapshot_free(&s);
	close_source(state);
	sampling_free(&opts);
}

/* Another collector has other pins; without one the last counters stay, and the head says so. */
static void test_ends(void **state)
{
	struct snapshot s;
	struct frame f;

	(void)state;
	if (source_pinned(PINS, SOURCE_FIRST, &source, &err) || source->open(source, 0, &err))
		fail_msg("%s", err.text);
	assert_int_equal(stop_collector(SIGTERM), 0);
	assert_int_equal(source->read(source, 1, &s, &f, &err), 0);
	assert_string_equal(source->info.trouble, "the collector is not running");
	snapshot_free(&s);
	close_source(state);
	assert_int_equal(source_pinned(PINS, SOURCE_FIRST, &source, &err), -ESRCH);
	assert_string_equal(err.text,
			    PINS ": the collector is not running; `ibscope serve` resumes "
				 "its counters");
	assert_int_equal(start_collector(), 0);
	assert_int_equal(source_pinned(PINS, SOURCE_FIRST, &source, &err), 0);
}

static int set_up_machine(void)
{
	char full[700];
	int ret;

	if (geteuid() || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("run", "/run", "tmpfs", 0, "mode=0755") || mkdir(DIR, 0755) ||
	    mkdir(DIR "/bpf", 0755) || mount("bpf", DIR "/bpf", "bpf", 0, "mode=0755")) {
		printf("skipped: no mount namespace with a bpffs: %s\n", strerror(errno));
		return 77;
	}
	ret = start_collector();
	if (ret == -EPERM || ret == -EACCES || ret == -EOPNOTSUPP) {
		printf("skipped: %s\n", err.text);
		return 77;
	}
	if (ret) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	snprintf(full, sizeof(full), "%s%s", mount_point, path);
	if (mkdir(full, 0755)) {
		fprintf(stderr, "%s: %s\n", full, strerror(errno));
		stop_collector(SIGTERM);
		return 1;
	}
	move_to(path);
	return 0;
}

/* The cgroup of the process that ran the tests. */
static void clean_up(void)
{
	const double stop = now_s() + TIMEOUT_S;
	char full[700];

	if (!*mount_point)
		return;
	snprintf(full, sizeof(full), "%s%s", mount_point, path);
	while (rmdir(full) && errno == EBUSY && now_s() < stop)
		usleep(1000);
}

#define T(f) cmocka_unit_test_teardown(f, close_source)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_pinned), T(test_events), T(test_users), T(test_live), T(test_ends),
	};
	int ret, status = -1;
	pid_t pid;

	mount_point = mmap(NULL, 512, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	snprintf(path, sizeof(path), "/ibscope-sources-%d", getpid());
	pid = fork();
	if (pid) { /* which stays in its cgroup */
		waitpid(pid, &status, 0);
		clean_up();
		return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
	}
	ret = set_up_machine();
	if (ret)
		return ret;
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	close_source(NULL);
	stop_collector(SIGTERM);
	return ret;
}
