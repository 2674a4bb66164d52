// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Limits of the cgroup tree: cgroups that are too deep, too many, too fast, or cannot be watched. */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/inotify.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/clock.h"
#include "cgroup_tree.h"

#ifdef __SANITIZE_ADDRESS__
#define RUNNING_ON_SANITIZER 1
#else
#define RUNNING_ON_SANITIZER 0
#endif

/* Make @n directories, each in the one before. @in: the last of them. */
static int nest(const char *top, const char *name, int n, struct stat *in)
{
	int at_fd = open(at(top), O_RDONLY | O_DIRECTORY), fd;

	while (n--) {
		assert_int_equal(mkdirat(at_fd, name, 0755), 0);
		fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY);
		assert_true(fd >= 0);
		close(at_fd);
		at_fd = fd;
	}
	assert_int_equal(fstat(at_fd, in), 0);
	return at_fd;
}

static void remove_all(const char *path)
{
	char command[300];

	snprintf(command, sizeof(command), "rm -rf %s", at(path));
	assert_int_equal(system(command), 0);
}

/* Paths up to PATH_MAX and 64 names are known, those beyond are not, and are not walked. */
static void check_nested(const char *name, int known, int more)
{
	char *path = calloc(1, known * (strlen(name) + 1) + 1);
	struct cgroup_tree *t = usual();
	struct cgroup_stats before, after;
	struct stat last, beyond;
	size_t size;
	uint64_t id;
	struct err e;
	char *said;
	int warnings = 0;
	FILE *f;

	cgroup_tree_stats(t, &before);
	close(nest("/", name, known, &last));
	for (int i = 0; i < known; i++)
		strcat(strcat(path, "/"), name);
	cgroup_tree_update(t);
	check_path(t, last.st_ino, path);
	assert_int_equal(cgroup_id_of_path(t, path, &id, &e), 0);
	assert_int_equal(id, last.st_ino);
	cgroup_tree_stats(t, &after);
	assert_int_equal(after.refused, 0);
	cgroup_tree_close(t);
	t = open_tree();
	check_path(t, last.st_ino, path);
	remove_all("/nn*");
	cgroup_tree_update(t);
	cgroup_tree_stats(t, &after);
	assert_int_equal(after.alive, before.alive);

	f = open_memstream(&said, &size);
	assert_non_null(f);
	log_to(f);
	close(nest("/", name, known + more, &beyond));
	for (int again = 0; again < 2; again++) {
		cgroup_tree_update(t);
		cgroup_tree_stats(t, &after);
		assert_int_equal(after.alive, before.alive + known);
		assert_int_equal(after.watched, before.watched + known);
		assert_int_equal(after.refused, 1);
		cgroup_tree_close(t);
		t = open_tree();
	}
	log_to(NULL);
	fclose(f);
	/* one for each tree, however long the path is */
	for (char *line = strtok(said, "\n"); line; line = strtok(NULL, "\n")) {
		assert_non_null(strstr(line, "nested too deeply to be named; they are shown as "
					     "'other'. The first is below /nn"));
		assert_true(strlen(line) < 200);
		warnings++;
	}
	assert_int_equal(warnings, 3);
	free(said);
	remove_all("/nn*");
	cgroup_tree_update(t);
	cgroup_tree_forget_dead(t, 0);
	cgroup_tree_stats(t, &after);
	assert_int_equal(after.alive, before.alive);
	assert_int_equal(after.dead, 0);
	cgroup_tree_close(t);
	free(path);
}

static void test_deep(void **state)
{
	char name[201];

	(void)state;
	check_nested("nn", 64, 1000);
	memset(name, 'n', 200);
	name[200] = 0;
	check_nested(name, 20, 20); /* 4,020 bytes */
}

static size_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* What others own is bounded, what is root's beside it is not, and room comes back. */
static void test_user(void **state)
{
	enum { USER_MAX = 4096, MANY = 10000, NAME = 200 };
	struct cgroup_stats before, after;
	size_t heap = heap_bytes();
	struct cgroup_tree *t;
	char path[NAME + 16];

	(void)state;
	if (geteuid())
		skip();
	t = usual();
	cgroup_tree_stats(t, &before);
	make("/u");
	cgroup_tree_update(t);
	/* given away only after it was met, as systemd does */
	assert_int_equal(chown(at("/u"), 65534, 65534), 0);
	for (int i = 0; i < MANY; i++) {
		snprintf(path, sizeof(path), "/u/%0*d", NAME, i);
		make(path);
		assert_int_equal(chown(at(path), 65534, 65534), 0);
		if (i % 1000 == 0)
			cgroup_tree_update(t);
	}
	cgroup_tree_update(t);
	cgroup_tree_stats(t, &after);
	assert_int_equal(after.alive, before.alive + USER_MAX);
	assert_int_equal(after.watched, before.watched + USER_MAX);
	assert_true(after.refused >= MANY - USER_MAX);
	if (!RUNNING_ON_SANITIZER)
		assert_in_range(heap_bytes() - heap, 0, USER_MAX * 600);
	make("/mine");
	cgroup_tree_update(t);
	check_path(t, ino("/mine"), "/mine");
	cgroup_tree_close(t);
	t = open_tree();
	cgroup_tree_stats(t, &after);
	assert_int_equal(after.alive, before.alive + 1 + USER_MAX);

	/* those that were left out are found when there is room */
	for (int i = 0; i < MANY - 100; i++) {
		snprintf(path, sizeof(path), "/u/%0*d", NAME, i);
		rmdir(at(path));
	}
	for (int i = 0; i < 100 && after.alive != before.alive + 2 + 100; i++) {
		cgroup_tree_update(t);
		cgroup_tree_stats(t, &after);
		poll(NULL, 0, 50);
	}
	assert_int_equal(after.alive, before.alive + 2 + 100);
	snprintf(path, sizeof(path), "/u/%0*d", NAME, MANY - 1);
	check_path(t, ino(path), path);
	cgroup_tree_close(t);
	remove_all("/u");
}

/* Events are taken in for a bounded part of the time; what had to wait is seen in the end. */
static void test_churn(void **state)
{
	struct cgroup_tree *t = usual();
	struct cgroup_stats s, before;
	struct pollfd fd = { .fd = cgroup_tree_fd(t), .events = POLLIN };
	uint64_t cpu = 0, start, wall = clock_ns(CLOCK_MONOTONIC);
	int waited = 0;

	(void)state;
	cgroup_tree_stats(t, &before);
	while (clock_ns(CLOCK_MONOTONIC) - wall < 4000000000ULL) {
		for (int i = 0; i < 100; i++) {
			make("/churn");
			rmdir(at("/churn"));
		}
		start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		if (poll(&fd, 1, 0) > 0)
			cgroup_tree_update(t);
		else
			waited++;
		cpu += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	}
	assert_true(cpu < 1200000000ULL); /* a second at once, then 2 % */
	if (cpu > 1000000000ULL)
		assert_true(waited > 0);
	make("/last");
	do {
		assert_true(poll(&fd, 1, 20000) > 0);
		cgroup_tree_update(t);
		cgroup_tree_stats(t, &s);
	} while (s.alive < before.alive + 1);
	check_path(t, ino("/last"), "/last");
	cgroup_tree_close(t);
}

/* --- limits, in a child with a user namespace whose sysctls are its own --- */

static int set_limit(const char *name, int value)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/sys/user/%s", name);
	f = fopen(path, "w");
	if (!f)
		return -1;
	fprintf(f, "%d\n", value);
	return fclose(f);
}

#define LATE 78 /* the machine was too busy to see it */

/* Exit status 10 and up: where it went wrong. */
static int child_limited(const char *limit, int value, size_t watched)
{
	struct cgroup_tree *t;
	struct cgroup_stats s;
	struct err e;
	uint64_t id, begin;

	if (unshare(CLONE_NEWUSER) || set_limit(limit, value))
		return 77;
	if (!freopen("/dev/null", "w", stderr)) /* the warning */
		return 77;
	if (cgroup_tree_open(root, &t, &e))
		return 10;
	cgroup_tree_stats(t, &s);
	if (s.watched != watched || !s.unwatched || s.alive != 8)
		return 11;
	if (mkdir(at("/a/b/c/new"), 0755))
		return 12;
	id = ino("/a/b/c/new");
	begin = clock_ns(CLOCK_MONOTONIC);
	if (!cgroup_tree_path(t, id))
		return 13; /* the first rescan comes at once */
	/* first, so that they do not get its number */
	make("/second");
	make("/a/b/third");
	rmdir(at("/a/b/c/new"));
	if (cgroup_tree_alive(t, id) || !cgroup_tree_path(t, id))
		return 14;
	id = ino("/a/b/third");
	if (cgroup_tree_path(t, id)) { /* the second does not, within a second */
		rmdir(at("/second"));
		rmdir(at("/a/b/third"));
		return clock_ns(CLOCK_MONOTONIC) - begin < 1000000000 ? 15 : LATE;
	}
	usleep(1050000); /* a rescan a second: what is tested is that time */
	if (!cgroup_tree_path(t, id))
		return 16;
	cgroup_tree_stats(t, &s);
	if (s.rescans != 2 || s.watched != watched)
		return 17;
	cgroup_tree_close(t);
	return 0;
}

static void run_limited(const char *limit, int value, size_t watched)
{
	int status, tries = 0;
	pid_t pid;

	cgroup_tree_close(usual());
	do {
		pid = fork();
		if (!pid)
			_exit(child_limited(limit, value, watched));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
	} while (WEXITSTATUS(status) == LATE && ++tries < 10);
	if (WEXITSTATUS(status) == 77) {
		print_message("no user namespace with limits of its own here\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_few_watches(void **state)
{
	(void)state;
	run_limited("max_inotify_watches", 3, 3);
}

static void test_no_inotify(void **state)
{
	(void)state;
	run_limited("max_inotify_instances", 0, 0);
}

static void test_many(void **state)
{
	struct cgroup_tree *t = usual();
	struct cgroup_stats s;
	char path[64];
	int i;

	(void)state;
	for (i = 0; i < 3000; i++) {
		snprintf(path, sizeof(path), "/m%d", i);
		make(path);
	}
	cgroup_tree_update(t);
	for (i = 0; i < 3000; i++) {
		snprintf(path, sizeof(path), "/m%d", i);
		check_path(t, ino(path), path);
		rmdir(at(path));
	}
	cgroup_tree_update(t);
	cgroup_tree_stats(t, &s);
	assert_int_equal(s.alive, 8);
	assert_int_equal(s.watched, 8);
	assert_int_equal(s.dead, 3000);
	assert_int_equal(s.missed, 0);
	assert_int_equal(s.rescans, 0);
	assert_int_equal(cgroup_tree_forget_dead(t, 0), 3000);
	cgroup_tree_close(t);
}

#define T(f) cmocka_unit_test_setup_teardown(f, new_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_deep), T(test_user),	   T(test_churn),
		T(test_many), T(test_few_watches), T(test_no_inotify),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
