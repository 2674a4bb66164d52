// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The cgroup tree on this machine's cgroup v2: ids, lives too short to see, handles, leaks. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <malloc.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cgroup/cgroup.h"
#include "base/err.h"

#ifdef __SANITIZE_ADDRESS__
#define RUNNING_ON_SANITIZER 1
#else
#define RUNNING_ON_SANITIZER 0
#endif
#define SHORT_LIVED 5000
#define MANY	    10000

static char base[512];	  /* a cgroup of our own */
static const char *inner; /* the same as a path in the tree */

static char *at(const char *name)
{
	static char path[2][600];
	static int i;

	i = !i;
	snprintf(path[i], sizeof(path[i]), "%s/%s", base, name);
	return path[i];
}

static uint64_t make(const char *name)
{
	struct stat st;

	assert_int_equal(mkdir(at(name), 0755), 0);
	assert_int_equal(stat(at(name), &st), 0);
	return st.st_ino;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static struct cgroup_tree *open_tree(void)
{
	struct cgroup_tree *t = NULL;
	struct err e = { "" };

	if (cgroup_tree_open("", &t, &e))
		fail_msg("%s", e.text);
	return t;
}

static int count_one(uint64_t id, const char *path, void *arg)
{
	const size_t len = strlen(inner);

	(void)id;
	*(size_t *)arg += !strncmp(path, inner, len) && (!path[len] || path[len] == '/');
	return 0;
}

/* Our own cgroups that the tree knows: other tests have some as well, which come and go. */
static size_t count_ours(struct cgroup_tree *t)
{
	size_t n = 0;

	cgroup_tree_each(t, count_one, &n);
	return n;
}

/* A time limit for what the tree learns from events: its share of a CPU is small, and others cause events, too. */
#define LEARN_S 60

static void wait_until_ours(struct cgroup_tree *t, size_t least, size_t most)
{
	struct pollfd fd = { .fd = cgroup_tree_fd(t), .events = POLLIN };
	const double start = now_s();
	size_t n;

	while ((n = count_ours(t)) < least || n > most) {
		if (now_s() - start > LEARN_S)
			fail_msg("%zu cgroups, not from %zu to %zu", n, least, most);
		poll(&fd, 1, 1000);
	}
}

static void check_path(struct cgroup_tree *t, uint64_t id, const char *name)
{
	const char *have = cgroup_tree_path(t, id);
	char want[600];

	snprintf(want, sizeof(want), "%s/%s", inner, name);
	if (!have)
		fail_msg("%s is not known", want);
	assert_string_equal(have, want);
}

static void test_life(void **state)
{
	struct cgroup_tree *t = open_tree();
	struct cgroup_stats after;
	uint64_t first, second, found;
	char path[600];
	struct err e;

	(void)state;
	assert_true(cgroup_tree_per_cgroup(t));
	assert_string_equal(cgroup_tree_path(t, 1), "/");
	first = make("x");
	cgroup_tree_update(t);
	check_path(t, first, "x");
	assert_true(cgroup_tree_alive(t, first));
	assert_int_equal(cgroup_id_of_path(t, at("x"), &found, &e), 0);
	assert_int_equal(found, first);
	rmdir(at("x"));
	cgroup_tree_update(t);
	check_path(t, first, "x");
	assert_false(cgroup_tree_alive(t, first));
	second = make("x");
	assert_int_not_equal(first, second);
	cgroup_tree_update(t);
	check_path(t, first, "x");
	check_path(t, second, "x");
	assert_true(cgroup_tree_alive(t, second));
	assert_false(cgroup_tree_alive(t, first));
	snprintf(path, sizeof(path), "%s/x", inner);
	assert_int_equal(cgroup_id_of_path(t, path, &found, &e), 0);
	assert_int_equal(found, second);
	rmdir(at("x"));
	cgroup_tree_update(t);
	cgroup_tree_stats(t, &after);
	assert_true(after.dead >= 2); /* others may make and remove some as well */
	assert_true(cgroup_tree_forget_dead(t, 0) >= 2);
	assert_null(cgroup_tree_path(t, first));
	cgroup_tree_close(t);
}

/* Before the event is read the kernel is asked by handle. */
static void test_handle(void **state)
{
	struct cgroup_tree *t = open_tree();
	struct cgroup_stats s;
	uint64_t id;

	(void)state;
	make("h");
	id = make("h/deep");
	check_path(t, id, "h/deep");
	cgroup_tree_stats(t, &s);
	assert_int_equal(s.rescans, 0);
	rmdir(at("h/deep"));
	cgroup_tree_update(t);
	check_path(t, id, "h/deep");
	assert_false(cgroup_tree_alive(t, id));
	assert_null(
		cgroup_tree_path(t, 0xfffffff0)); /* dead for the kernel: no reading all again */
	cgroup_tree_stats(t, &s);
	if (!geteuid() && prctl(PR_CAPBSET_READ, CAP_DAC_READ_SEARCH) == 1)
		assert_int_equal(s.rescans, 0);
	rmdir(at("h"));
	cgroup_tree_close(t);
}

static size_t count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* What the kernel holds, so that a watch which we only think is gone counts. @fd: that of the tree. */
static size_t kernel_watches(int fd)
{
	char line[512], path[64];
	size_t n = 0;
	int target;
	FILE *f, *g;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "tfd: %d", &target) != 1)
			continue;
		snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", target);
		g = fopen(path, "r");
		assert_non_null(g);
		while (fgets(line, sizeof(line), g))
			n += !strncmp(line, "inotify ", 8);
		fclose(g);
	}
	fclose(f);
	return n;
}

/* The tree and the kernel agree; soon, as others make and remove cgroups between two looks. */
static void check_watches(struct cgroup_tree *t)
{
	const double start = now_s();
	struct cgroup_stats s;

	for (;;) {
		cgroup_tree_update(t);
		cgroup_tree_stats(t, &s);
		if (kernel_watches(cgroup_tree_fd(t)) == s.watched)
			return;
		if (now_s() - start > LEARN_S)
			fail_msg("%zu watches, but the kernel has another number", s.watched);
	}
}

/* @alive: how many there are at a time. */
static void short_lives(int fd, int alive)
{
	uint64_t *ids = calloc(SHORT_LIVED, sizeof(*ids));
	char name[32];
	int i;

	for (i = 0; i < SHORT_LIVED + alive; i++) {
		struct stat st;

		if (i < SHORT_LIVED) {
			snprintf(name, sizeof(name), "s%d", i);
			if (mkdir(at(name), 0755) || stat(at(name), &st))
				_exit(1);
			ids[i] = st.st_ino;
		}
		snprintf(name, sizeof(name), "s%d", i - alive);
		if (i >= alive && rmdir(at(name)))
			_exit(1);
	}
	for (i = 0; i < SHORT_LIVED; i++) {
		if (write(fd, &ids[i], sizeof(ids[i])) != sizeof(ids[i]))
			_exit(1);
	}
	free(ids);
	_exit(0);
}

/* Return: how many of the short-lived got a name. */
static int catch (struct cgroup_tree *t, int alive)
{
	int pipes[2], status, named = 0, i;
	double start = now_s();
	uint64_t id;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (!pid)
		short_lives(pipes[1], alive);
	close(pipes[1]);
	struct pollfd fds[] = { { .fd = cgroup_tree_fd(t), .events = POLLIN },
				{ .fd = pipes[0], .events = POLLIN } };
	while (!fds[1].revents) {
		assert_true(poll(fds, 2, 10000) > 0);
		cgroup_tree_update(t);
	}
	print_message("%d created and removed, %d at a time: %.2f s; ", SHORT_LIVED, alive,
		      now_s() - start);
	for (i = 0; read(pipes[0], &id, sizeof(id)) == sizeof(id); i++)
		named += cgroup_tree_path(t, id) != NULL;
	assert_int_equal(i, SHORT_LIVED);
	close(pipes[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	print_message("%d got a name\n", named);
	return named;
}

static void test_short_lived(void **state)
{
	struct cgroup_tree *t = open_tree();
	struct cgroup_stats after;
	size_t fds = count_fds();
	int named;

	(void)state;
	check_watches(t);
	named = catch (t, 0);
	cgroup_tree_update(t);
	cgroup_tree_stats(t, &after);
	assert_true(after.dead >= (size_t)named);
	assert_true(after.missed >= (uint64_t)(SHORT_LIVED - named)); /* none in silence */
	named = catch (t, 200);
	assert_true(named > SHORT_LIVED * 3 / 4);
	wait_until_ours(t, 1, 1);
	check_watches(t);
	assert_int_equal(count_fds(), fds);
	cgroup_tree_forget_dead(t, 0);
	cgroup_tree_stats(t, &after);
	assert_int_equal(after.dead, 0);
	cgroup_tree_close(t);
}

/* A hundred below each hundredth. */
static const char *nth(int i)
{
	static char name[32];

	if (i % 100)
		snprintf(name, sizeof(name), "d%d/d%d", i / 100 * 100, i);
	else
		snprintf(name, sizeof(name), "d%d", i);
	return name;
}

static void test_many(void **state)
{
	size_t fds = count_fds();
	struct cgroup_tree *t, *live = open_tree();
	struct cgroup_stats s;
	uint64_t id = 0;
	double start;
	int i;

	(void)state;
	start = now_s();
	for (i = 0; i < MANY; i++)
		id = make(nth(i));
	print_message("%d made in %.2f s", MANY, now_s() - start);
	start = now_s();
	t = open_tree();
	print_message("; open %.0f ms", (now_s() - start) * 1000);
	check_path(t, id, nth(MANY - 1));
	cgroup_tree_stats(t, &s);
	assert_true(s.alive > MANY);
	if (!s.unwatched) {
		assert_int_equal(s.watched, s.alive);
		check_watches(t);
	}
	start = now_s();
	for (i = 0; i < 1000000; i++)
		assert_true(cgroup_tree_path(t, id) != NULL);
	print_message("; %.0f ns a look-up", (now_s() - start) * 1000);
	start = now_s();
	cgroup_tree_close(t);
	print_message("; close %.0f ms", (now_s() - start) * 1000);
	start = now_s();
	wait_until_ours(live, MANY + 1, MANY + 1); /* some thousand events at a time */
	cgroup_tree_stats(live, &s);
	print_message("; events %.0f ms, %d rescans\n", (now_s() - start) * 1000, (int)s.rescans);
	check_path(live, id, nth(MANY - 1));
	for (i = MANY; i--;)
		assert_int_equal(rmdir(at(nth(i))), 0);
	wait_until_ours(live, 1, 1);
	assert_false(cgroup_tree_alive(live, id));
	cgroup_tree_stats(live, &s);
	assert_true(s.dead >= MANY);
	cgroup_tree_close(live);
	assert_int_equal(count_fds(), fds);
}

/* As a user with a cgroup of their own could: the collector's memory does not depend on it. */
static void test_nested(void **state)
{
	enum { DEPTH = 1500, KNOWN = 64 };
	struct cgroup_tree *live = open_tree(), *t;
	struct cgroup_stats after;
	int fd[DEPTH + 1];
	struct stat last;
	size_t heap;

	(void)state;
	assert_int_equal(count_ours(live), 1);
	fd[0] = open(base, O_RDONLY | O_DIRECTORY);
	for (int i = 1; i <= DEPTH; i++) {
		assert_int_equal(mkdirat(fd[i - 1], "a-name-of-thirty-two-characters--", 0755), 0);
		fd[i] = openat(fd[i - 1], "a-name-of-thirty-two-characters--",
			       O_RDONLY | O_DIRECTORY);
		assert_true(fd[i] >= 0);
	}
	assert_int_equal(fstat(fd[DEPTH], &last), 0);
	heap = mallinfo2().uordblks;
	t = open_tree();
	heap = mallinfo2().uordblks - heap;
	print_message("%d nested: %zu bytes of heap\n", DEPTH, heap);
	if (!RUNNING_ON_SANITIZER)
		assert_in_range(heap, 1, 256 * 1024);
	cgroup_tree_stats(t, &after);
	assert_true(after.refused > 0);
	assert_in_range(count_ours(t), 2, KNOWN);
	/* too deep for a path: neither dead nor unknown */
	if (!geteuid() && prctl(PR_CAPBSET_READ, CAP_DAC_READ_SEARCH) == 1) {
		assert_string_equal(cgroup_tree_path(t, last.st_ino), CGROUP_OTHER);
		assert_true(cgroup_tree_alive(t, last.st_ino));
		assert_false(cgroup_tree_died(t, last.st_ino, 0));
	}
	cgroup_tree_close(t);
	wait_until_ours(live, 2, KNOWN);
	for (int i = DEPTH; i > 0; i--) {
		close(fd[i]);
		assert_int_equal(
			unlinkat(fd[i - 1], "a-name-of-thirty-two-characters--", AT_REMOVEDIR), 0);
	}
	close(fd[0]);
	wait_until_ours(live, 1, 1);
	cgroup_tree_forget_dead(live, 0);
	assert_true(cgroup_tree_died(live, last.st_ino, 0));
	cgroup_tree_close(live);
}

static int skip_all(const char *why)
{
	printf("%s\n", why);
	return 77;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),	    cmocka_unit_test(test_handle),
		cmocka_unit_test(test_short_lived), cmocka_unit_test(test_many),
		cmocka_unit_test(test_nested),
	};
	struct cgroup_fs fs;
	struct err e;
	int ret;

	if (cgroup_mode_detect("", &fs, &e) || !*fs.path)
		return skip_all("no cgroup v2 is mounted here");
	snprintf(base, sizeof(base), "%s/ibscope-test-%d", fs.path, getpid());
	inner = base + strlen(fs.path);
	if (mkdir(base, 0755)) {
		printf("%s: %s\n", base, strerror(errno));
		return skip_all("cgroup v2 is not writable here");
	}
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	if (rmdir(base))
		perror(base);
	return ret;
}
