// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A recording of a running session: all samples, in order of time, each behind the events that name it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/std.h"
#include "capture/capture.h"
#include "capture/record_info.h"
#include "trace/tasks.h"
#include "trace/trace.h"

#include <ibscope/region.h>

#define PERIOD 100000 /* ns */
#define ALL    (UINT64_MAX - 1)

static struct sampling_opts opts;
static struct session *session;
static struct trace_info info;
static struct trace_pmu pmu;
static struct capture c;
static struct err err;
static int fd;

/* --- the recording --- */

static int open_session(void)
{
	session_free(session);
	session = session_new();
	return session_open(session, &opts, &err);
}

static int begin(void **state)
{
	struct output_opts o = { .compress = true, .info = &info };

	(void)state;
	if (open_session())
		return -1;
	info = (struct trace_info){};
	record_info(&info, &pmu, session, 1);
	fd = o.fd = memfd_create("recording", MFD_CLOEXEC);
	if (capture_begin(&c, session, false, &err) || output_open(&o, &c.output, &err) ||
	    capture_state(&c, &err) || session_start(session, &err))
		fail_msg("%s", err.text);
	return 0;
}

static int end(void **state)
{
	(void)state;
	capture_close(&c);
	session_free(session);
	session = NULL;
	close(fd);
	return 0;
}

static void drain(void)
{
	const __u64 until = clock_ns(CLOCK_MONOTONIC) - CAPTURE_SETTLE_NS;

	if (capture_drain(&c, until, &err))
		fail_msg("%s", err.text);
	assert_true(c.until >= until);
}

static __attribute__((noinline)) void spin(double seconds)
{
	const double stop = thread_cpu_s() + seconds;

	while (thread_cpu_s() < stop)
		;
}

/* Stop, write the rest, and finish the file. Return: what the program has forwarded. */
static __u64 finish(void)
{
	struct snapshot s;
	struct ledger l;

	session_stop(session);
	if (capture_drain(&c, ALL, &err) || capture_late_names(&c, &err) ||
	    sampler_snapshot(session_event(session, 0)->sampler, &s, &err))
		fail_msg("%s", err.text);
	l = s.ledger;
	snapshot_free(&s);
	assert_int_equal(output_records(c.output), l.outcome[IBS_OUTCOME_FORWARDED]);
	if (output_finish(c.output, &l, &err))
		fail_msg("%s", err.text);
	return l.outcome[IBS_OUTCOME_FORWARDED];
}

static struct trace *open_file(void)
{
	struct trace *t;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (trace_open(path, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

/* --- */

/* Of this process and a child, which is renamed, runs another program, and exits. */
static void test_order(void **state)
{
	struct u64_map named = {}, known = {};
	__u64 samples = 0, before = 0, forwarded;
	const __u32 self = getpid();
	struct trace_event ev;
	bool renamed = false, forked = false, ran = false, exited = false;
	unsigned int ours = 0, theirs = 0, chains = 0;
	struct trace *t;
	int status, ret;
	pid_t pid;

	(void)state;
	spin(0.05);
	drain();
	prctl(PR_SET_NAME, "renamed-now");
	pid = fork();
	if (!pid) {
		spin(0.05);
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	drain();
	spin(0.05);
	prctl(PR_SET_NAME, "test_capture");
	forwarded = finish();
	t = open_file();
	while ((ret = trace_next(t, &ev, &err)) > 0) {
		switch (ev.kind) {
		case TRACE_SAMPLE_OP:
			assert_true(ev.time >= before);
			before = ev.time;
			samples++;
			ours += ev.sample.tgid == self;
			theirs += ev.sample.tgid == (__u32)pid;
			chains += ev.sample.tgid == self && ev.sample.n_stack > 1;
			if (ev.sample.cgroup_id && ev.sample.tgid == self)
				assert_int_equal(u64_map_get(&named, ev.sample.cgroup_id), 0);
			if (ev.sample.tgid == self || ev.sample.tgid == (__u32)pid)
				assert_int_equal(u64_map_get(&known, ev.sample.tid), 0);
			break;
		case TRACE_CGROUP:
			u64_map_put(&named, ev.cgroup.id, 0);
			break;
		case TRACE_COMM:
			u64_map_put(&known, ev.comm.tid, 0);
			renamed |= ev.comm.tid == self && !strcmp(ev.comm.name, "renamed-now");
			ran |= ev.comm.tgid == (__u32)pid && ev.comm.exec &&
			       !strcmp(ev.comm.name, "true");
			break;
		case TRACE_FORK:
			u64_map_put(&known, ev.fork.tid, 0);
			forked |= ev.fork.tgid == (__u32)pid && ev.fork.parent_tgid == self;
			break;
		case TRACE_EXIT:
			exited |= ev.fork.tgid == (__u32)pid;
			break;
		default:
			break;
		}
	}
	assert_int_equal(ret, 0);
	assert_int_equal(samples, forwarded);
	assert_int_equal(trace_end(t)->ledger.outcome[IBS_OUTCOME_FORWARDED], forwarded);
	assert_true(trace_end(t)->whole);
	assert_true(ours > 200);
	assert_true(theirs > 100);
	assert_true(chains > 100);
	assert_true(renamed && forked && ran && exited);
	trace_close(t);
	u64_map_free(&named);
	u64_map_free(&known);
}

/* Maps and names that processes had when it began are those of that time. */
static void test_state(void **state)
{
	const __u64 began = c.until;
	struct tasks *tasks = tasks_new();
	struct task_map map;
	struct trace *t;

	(void)state;
	spin(0.02);
	finish();
	t = open_file();
	assert_int_equal(tasks_read(tasks, t, &err), 0);
	assert_string_equal(tasks_comm(tasks, getpid(), getpid(), began), "test_capture");
	assert_true(tasks_map(tasks, getpid(), (uintptr_t)spin, began, false, &map));
	assert_non_null(strstr(map.path, "test_capture"));
	tasks_free(tasks);
	trace_close(t);
}

/* @n: of the event; it is as if this process had begun a region at @time. */
static void put_region(const char *dir, __u64 time)
{
	struct ibscope_region_file *f = xcalloc(1, sizeof(*f));
	char path[REGIONS_DIR_MAX + 32];
	FILE *file;

	f->magic = IBSCOPE_REGION_MAGIC;
	f->n = 1;
	f->name[0].state = 2;
	strcpy(f->name[0].text, "solve");
	f->event[0] = (struct ibscope_region_event){ .tid = getpid(),
						     .time_ns = time,
						     .kind = IBSCOPE_REGION_BEGIN };
	f->event[0].check = ibscope_region_check(&f->event[0], 0);
	snprintf(path, sizeof(path), "%s/%d.0", dir, getpid());
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(f, sizeof(*f), 1, file), 1);
	fclose(file);
	free(f);
}

/* What happened up to a time is written by then, and what happens at that time, too. */
static void test_until(void **state)
{
	struct regions *r = regions_new();
	char dir[REGIONS_DIR_MAX];
	struct trace_event ev;
	__u64 time, found = 0, after = 0;
	struct trace *t;
	int ret;

	(void)state;
	assert_int_equal(regions_dir_new(dir), 0);
	regions_add(r, dir);
	c.regions = r;
	spin(0.02);
	time = clock_ns(CLOCK_MONOTONIC);
	put_region(dir, time);
	spin(0.06); /* new files are looked for twenty times a second */
	assert_int_equal(capture_drain(&c, time - 1, &err), 0);
	assert_int_equal(regions_peek(r), time);
	assert_int_equal(capture_drain(&c, time, &err), 0);
	assert_int_equal(regions_peek(r), UINT64_MAX);
	assert_int_equal(c.until, time);
	finish();
	t = open_file();
	while ((ret = trace_next(t, &ev, &err)) > 0) {
		if (ev.kind == TRACE_REGION) {
			assert_int_equal(ev.time, time);
			assert_int_equal(ev.region.tid, getpid());
			assert_string_equal(ev.region.name, "solve");
			assert_false(ev.region.end);
			found++;
		}
		after += found && ev.kind == TRACE_SAMPLE_OP;
		if (ev.kind == TRACE_SAMPLE_OP)
			assert_true(found ? ev.time >= time : ev.time <= time);
	}
	assert_int_equal(ret, 0);
	assert_int_equal(found, 1);
	assert_true(after > 100);
	trace_close(t);
	c.regions = NULL;
	regions_free(r);
}

/* The caller sees the records that are written. */
static __u64 seen;

static void see(const struct record_batch *b, void *arg)
{
	assert_ptr_equal(arg, &seen);
	seen += b->n;
}

static void test_each(void **state)
{
	__u64 forwarded;

	(void)state;
	c.each = see;
	c.each_arg = &seen;
	spin(0.02);
	forwarded = finish();
	assert_int_equal(seen, forwarded);
	assert_true(seen > 50);
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_order),
		T(test_state),
		T(test_until),
		T(test_each),
	};
	int ret;

	sampling_init(&opts);
	opts.source = SOURCE_SIM;
	opts.all = opts.any_period = true;
	opts.event[0].rate = (struct event_rate){ .has_period = true, .period = PERIOD };
	opts.sampler.output = SAMPLER_RECORDS;
	opts.sampler.stacks = true;
	ret = sampling_check(&opts, &err) ?: open_session();
	if (ret == -EPERM || ret == -EACCES || ret == -EOPNOTSUPP || ret == -ENOENT) {
		printf("skipped: %s\n", err.text);
		ret = 77;
	} else if (ret) {
		fprintf(stderr, "%s\n", err.text);
		ret = 1;
	} else {
		ret = cmocka_run_group_tests(tests, NULL, NULL);
	}
	session_free(session);
	sampling_free(&opts);
	return ret;
}
