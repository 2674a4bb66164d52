// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What programs write through include/ibscope/region.h, and what others write instead. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ibscope/region.h>

#include "base/clock.h"
#include "base/std.h"
#include "capture/regions.h"
#include "trace/tasks.h"

#include <sys/stat.h>
#include <sys/wait.h>

static char dir[REGIONS_DIR_MAX];

static struct regions *start(void)
{
	struct regions *r;

	assert_int_equal(regions_dir_new(dir), 0);
	assert_string_equal(getenv(IBSCOPE_REGION_DIR), dir);
	r = regions_new();
	regions_add(r, dir);
	return r;
}

/* As a program that is started anew. */
static void forget_file(void)
{
	ibscope_region_forked_();
}

static void finish(struct regions *r)
{
	regions_free(r);
	assert_int_equal(access(dir, F_OK), -1);
	forget_file();
}

static struct trace_event next(struct regions *r)
{
	struct trace_event ev;

	assert_true(regions_peek(r) != UINT64_MAX);
	regions_next(r, &ev);
	assert_int_equal(ev.kind, TRACE_REGION);
	return ev;
}

static void put_omp(__u64 addr, __u32 team, __u16 number)
{
	struct ibscope_region_file *f = ibscope_region_file();

	if (!f)
		fail();
	else
		ibscope_region_put_(f, IBSCOPE_REGION_OMP_BEGIN, addr, team, number);
}

static void none(const struct regions *r)
{
	assert_true(regions_peek(r) == UINT64_MAX);
}

static void test_events(void **state)
{
	struct regions *r = start();
	const char longest[] =
		"a name of more than fifty-nine bytes, as C++ compilers like to make";
	struct trace_event ev;
	__u64 before = clock_ns(CLOCK_MONOTONIC);

	(void)state;
	ibscope_region_begin("solve");
	ibscope_region_begin(longest);
	regions_refresh(r, false);
	ev = next(r);
	assert_true(ev.time >= before && ev.time <= clock_ns(CLOCK_MONOTONIC));
	assert_string_equal(ev.region.name, "solve");
	assert_int_equal(ev.region.tid, syscall(SYS_gettid));
	assert_false(ev.region.omp || ev.region.end);
	ev = next(r);
	assert_int_equal(strlen(ev.region.name), IBSCOPE_REGION_TEXT - 1);
	assert_memory_equal(ev.region.name, longest, IBSCOPE_REGION_TEXT - 1);
	none(r);
	ibscope_region_end();
	put_omp(0x1234, 77, 5);
	regions_refresh(r, true);
	assert_true(next(r).region.end);
	ev = next(r);
	assert_true(ev.region.omp && ev.region.addr == 0x1234 && ev.region.team == 77 &&
		    ev.region.number == 5);
	ibscope_region_file_
		->n++; /* one that is being written is not lost, unless its writer is gone */
	regions_refresh(r, false);
	none(r);
	assert_int_equal(regions_lost(r), 0);
	regions_refresh(r, true);
	assert_int_equal(regions_lost(r), 1);
	finish(r);
}

/* With a directory that is gone, or without one, nothing happens. */
static void test_no_collector(void **state)
{
	(void)state;
	setenv(IBSCOPE_REGION_DIR, "/nonexistent", 1);
	ibscope_region_begin("a");
	ibscope_region_end();
	assert_ptr_equal(ibscope_region_file_, IBSCOPE_REGION_NONE);
	forget_file();
	unsetenv(IBSCOPE_REGION_DIR);
	ibscope_region_begin("a");
	assert_null(ibscope_region_file());
	forget_file();
	regions_refresh(NULL, true);
	assert_true(regions_peek(NULL) == UINT64_MAX);
}

static void test_names(void **state)
{
	struct regions *r = start();
	char name[32];

	(void)state;
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < IBSCOPE_REGION_NAMES + 10; i++) {
			sprintf(name, "region %d", i);
			ibscope_region_begin(name);
		}
	regions_refresh(r, true);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < IBSCOPE_REGION_NAMES + 10; i++) {
			sprintf(name, "region %d", i);
			assert_string_equal(next(r).region.name,
					    i < IBSCOPE_REGION_NAMES - 1 ? name : "[other]");
		}
	finish(r);
}

/* A ring that goes round unread: what is left is the end, and the rest is counted. */
static void test_overwritten(void **state)
{
	const __u64 n = 3 * IBSCOPE_REGION_EVENTS + 17;
	struct regions *r = start();

	(void)state;
	for (__u64 i = 0; i < n; i++)
		put_omp(i, 0, 0);
	regions_refresh(r, false);
	assert_true(regions_lost(r) == n - IBSCOPE_REGION_EVENTS);
	for (__u64 i = n - IBSCOPE_REGION_EVENTS; i < n; i++)
		assert_true(next(r).region.addr == i);
	none(r);
	for (__u64 i = 0; i < IBSCOPE_REGION_EVENTS; i++) /* read in time: nothing is lost */
		put_omp(i, 0, 0);
	regions_refresh(r, false);
	for (__u64 i = 0; i < IBSCOPE_REGION_EVENTS; i++)
		assert_true(next(r).region.addr == i);
	assert_true(regions_lost(r) == n - IBSCOPE_REGION_EVENTS);
	finish(r);
}

static void *hammer(void *arg)
{
	for (int i = 0; i < 10000; i++)
		put_omp(i, (uintptr_t)arg, 0);
	return NULL;
}

/* Threads at a time, while they are read: every event once, each thread's in order. */
static void test_threads(void **state)
{
	struct regions *r = start();
	__u64 expected[4] = { 0 }, got = 0;
	pthread_t threads[4];

	(void)state;
	for (uintptr_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hammer, (void *)i), 0);
	for (int joined = 0; joined < 5; joined++) {
		regions_refresh(r, joined == 4);
		for (; regions_peek(r) != UINT64_MAX; got++) {
			struct trace_event ev = next(r);

			assert_true(ev.region.team < 4);
			assert_true(ev.region.addr >= expected[ev.region.team]);
			expected[ev.region.team] = ev.region.addr + 1;
		}
		if (joined < 4)
			pthread_join(threads[joined], NULL);
	}
	assert_true(got + regions_lost(r) == 40000);
	finish(r);
}

/* A child writes to a file of its own, which is closed when it has ended. */
static void test_fork(void **state)
{
	struct regions *r = start();
	struct trace_event ev;
	pid_t child;
	int status;

	(void)state;
	ibscope_region_begin("parent");
	child = fork();
	if (!child) {
		ibscope_region_begin("child");
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	ibscope_region_end();
	regions_refresh(r, true);
	assert_string_equal(next(r).region.name, "parent");
	ev = next(r);
	assert_string_equal(ev.region.name, "child");
	assert_int_equal(ev.region.tid, child);
	assert_true(next(r).region.end);
	none(r);
	assert_int_equal(rmdir(dir), 0); /* their names are gone, so that nothing stays behind */
	finish(r);
}

/* What a rotated file begins with. */
static int collect(const struct trace_event *ev, void *arg, struct err *err)
{
	char *text = arg;

	(void)err;
	assert_true(ev->time == 7 && !ev->region.end);
	sprintf(text + strlen(text), "%s,", ev->region.omp ? "omp" : ev->region.name);
	return 0;
}

static void test_now(void **state)
{
	struct regions *r = start();
	char text[256] = "";

	(void)state;
	ibscope_region_begin("a");
	ibscope_region_begin("b/c");
	ibscope_region_begin("d");
	ibscope_region_end();
	regions_refresh(r, true);
	while (regions_peek(r) != UINT64_MAX)
		next(r);
	assert_int_equal(regions_now(r, 7, collect, text, NULL), 0);
	assert_string_equal(text, "a,b/c,");
	regions_forget(r, syscall(SYS_gettid));
	*text = 0;
	assert_int_equal(regions_now(r, 7, collect, text, NULL), 0);
	assert_string_equal(text, "");
	finish(r);
}

static void put_file(const char *name, const void *data, size_t bytes, size_t at, size_t size)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(pwrite(fd, data, bytes, at), bytes);
	close(fd);
}

/* Nothing of it becomes an event, and all that claims to be one is counted. */
static void test_hostile(void **state)
{
	struct ibscope_region_file *f = xcalloc(1, sizeof(*f));
	struct regions *r = start();
	char own[32], path[256];

	(void)state;
	snprintf(own, sizeof(own), "%d.0", getpid());
	f->n = 5;
	put_file(own, f, sizeof(*f), 0, sizeof(*f)); /* no magic */
	put_file("junk", "x", 1, 0, 1);
	snprintf(path, sizeof(path), "%s/1.1", dir);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	snprintf(path, sizeof(path), "%s/1.2", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	regions_refresh(r, true);
	none(r);
	assert_int_equal(regions_lost(r), 0);

	f->magic = IBSCOPE_REGION_MAGIC;
	f->name[3].state = 2;
	memset(f->name[3].text, 'x', sizeof(f->name[3].text)); /* no final 0 */
	for (__u64 i = 0; i < 8; i++) {
		struct ibscope_region_event *e = &f->event[i];

		*e = (struct ibscope_region_event){ .tid = 1,
						    .time_ns = clock_ns(CLOCK_MONOTONIC),
						    .value = 3,
						    .kind = IBSCOPE_REGION_BEGIN };
		e->time_ns += i == 1 ? 3600000000000ull : 0;
		e->time_ns -= i == 2 ? 3600000000000ull : 0;
		e->tid = i == 3 ? 1u << 31 : 1;
		e->kind = i == 4 ? 99 : IBSCOPE_REGION_BEGIN;
		e->value = i == 5 ? 4 : i == 6 ? ~0ull : 3;
		e->check = ibscope_region_check(e, i) ^ (i == 7);
	}
	f->n = 8;
	put_file(own, f, sizeof(*f), 0, sizeof(*f));
	regions_refresh(r, true);
	assert_int_equal(strlen(next(r).region.name), IBSCOPE_REGION_TEXT - 1);
	none(r);
	assert_int_equal(regions_lost(r), 7);

	f->n = ~0ull; /* more than there is room for, in a file without any */
	snprintf(own, sizeof(own), "%d.1", getpid());
	put_file(own, f, 16, 0, 16);
	regions_refresh(r, true);
	none(r);
	free(f);
	finish(r);
}

/* By time, and those of one time in the order in which they were written. */
static void test_same_time(void **state)
{
	static const struct {
		unsigned int later_ns;
		__u16 number;
	} written[] = { { 20, 1 }, { 10, 2 }, { 10, 3 }, { 0, 4 }, { 10, 5 }, { 0, 6 } };
	static const __u16 want[] = { 4, 6, 2, 3, 5, 1 };
	struct ibscope_region_file *f = xcalloc(1, sizeof(*f));
	struct regions *r = start();
	const __u64 now = clock_ns(CLOCK_MONOTONIC);
	char name[32];

	(void)state;
	f->magic = IBSCOPE_REGION_MAGIC;
	for (__u64 i = 0; i < ARRAY_SIZE(written); i++) {
		struct ibscope_region_event *e = &f->event[i];

		*e = (struct ibscope_region_event){ .tid = 1,
						    .time_ns = now + written[i].later_ns,
						    .kind = IBSCOPE_REGION_OMP_BEGIN,
						    .number = written[i].number };
		e->check = ibscope_region_check(e, i);
	}
	f->n = ARRAY_SIZE(written);
	snprintf(name, sizeof(name), "%d.0", getpid());
	put_file(name, f, sizeof(*f), 0, sizeof(*f));
	regions_refresh(r, true);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_int_equal(next(r).region.number, want[i]);
	none(r);
	assert_int_equal(regions_lost(r), 0);
	free(f);
	finish(r);
}

/* In a container, programs often have the id 1; none has 0. */
static void test_first_process(void **state)
{
	struct ibscope_region_file *f = xcalloc(1, sizeof(*f));
	struct regions *r = start();
	char path[256];

	(void)state;
	f->magic = IBSCOPE_REGION_MAGIC;
	f->n = 1;
	f->name[0].state = 2;
	strcpy(f->name[0].text, "solve");
	f->event[0] = (struct ibscope_region_event){ .tid = 1,
						     .time_ns = clock_ns(CLOCK_MONOTONIC),
						     .kind = IBSCOPE_REGION_BEGIN };
	f->event[0].check = ibscope_region_check(&f->event[0], 0);
	put_file("0.5", f, sizeof(*f), 0, sizeof(*f));
	regions_refresh(r, true);
	none(r);
	snprintf(path, sizeof(path), "%s/0.5", dir);
	assert_int_equal(unlink(path), 0);
	put_file("1.5", f, sizeof(*f), 0, sizeof(*f));
	regions_refresh(r, true);
	assert_string_equal(next(r).region.name, "solve");
	none(r);
	/* nobody else finds it again */
	snprintf(path, sizeof(path), "%s/1.5", dir);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(regions_lost(r), 0);
	free(f);
	finish(r);
}

/* A loop that begins regions and never ends them takes a bounded amount of memory. */
static void test_never_ended(void **state)
{
	struct region_tree t = {};
	__u32 node = 0, last = 0;

	(void)state;
	for (__u32 i = 0; i <= REGION_NODES_MAX; i++) {
		last = node;
		node = region_tree_begin(&t, node, "loop", 0, 0, 0);
	}
	assert_int_equal(node, last);
	assert_int_equal(t.n, REGION_NODES_MAX);
	assert_int_equal(region_tree_begin(&t, 0, "loop", 0, 0, 0), 1);
	region_tree_free(&t);
}

/* Of an instance that crashed, if it was long ago. */
static void test_sweep(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1000000000 }, { .tv_sec = 1000000000 } };
	char stale[64], young[64], file[96];
	pid_t gone = fork();
	int status;

	(void)state;
	if (!gone)
		_exit(0);
	assert_int_equal(waitpid(gone, &status, 0), gone);
	snprintf(stale, sizeof(stale), "/dev/shm/ibscope-regions.%d.AAAAAA", gone);
	snprintf(young, sizeof(young), "/dev/shm/ibscope-regions.%d.BBBBBB", gone);
	if (mkdir(stale, 0700))
		skip();
	assert_int_equal(mkdir(young, 0700), 0);
	snprintf(file, sizeof(file), "%s/1.0", stale);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(utimensat(AT_FDCWD, stale, old, 0), 0);
	finish(start());
	assert_int_equal(access(stale, F_OK), -1);
	assert_int_equal(rmdir(young), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),	    cmocka_unit_test(test_no_collector),
		cmocka_unit_test(test_names),	    cmocka_unit_test(test_overwritten),
		cmocka_unit_test(test_threads),	    cmocka_unit_test(test_fork),
		cmocka_unit_test(test_now),	    cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_same_time),   cmocka_unit_test(test_sweep),
		cmocka_unit_test(test_never_ended), cmocka_unit_test(test_first_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
