// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Output files in a directory where somebody else was first. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "base/output_file.h"
#include "tree.h"

static const char *at(const char *name)
{
	static char path[2][256];
	static int i;

	i = !i;
	snprintf(path[i], sizeof(path[i]), "%s/%s", root, name);
	return path[i];
}

static void write_it(const char *name)
{
	struct err e = { "" };
	struct stat st;
	int fd = output_file_open(at(name), NULL, &e);

	if (fd < 0)
		fail_msg("%s", e.text);
	assert_int_equal(write(fd, "new", 3), 3);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(st.st_uid, geteuid());
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	assert_int_equal(lstat(at(name), &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(st.st_size, 3);
}

static void check_text(const char *name, const char *want)
{
	char text[64] = "";
	int fd = open(at(name), O_RDONLY);

	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	close(fd);
	assert_string_equal(text, want);
}

static void check_alone(const char *dir, const char *name)
{
	char command[300];

	snprintf(command, sizeof(command), "test \"$(ls -A %s)\" = %s", at(dir), name);
	assert_int_equal(system(command), 0);
}

static void test_new(void **state)
{
	struct err e = { "" };

	(void)state;
	put_dir("/d/");
	write_it("d/a");
	write_it("d/a");
	check_text("d/a", "new");
	assert_int_equal(output_file_open(at("no/such"), NULL, &e), -ENOENT);
	assert_non_null(strstr(e.text, "cannot create"));
	assert_int_equal(output_file_open("", NULL, &e), -ENAMETOOLONG);
	check_alone("d", "a"); /* no temporary name */
}

/* What another user could have planted. */
static void test_planted(void **state)
{
	struct err e = { "" };
	struct stat st;

	(void)state;
	put_file("/victim", "old");
	assert_int_equal(chmod(at("victim"), 0644), 0);

	assert_int_equal(symlink(at("victim"), at("link")), 0);
	assert_int_equal(output_file_open(at("link"), NULL, &e), -EEXIST);
	assert_non_null(strstr(e.text, "a symbolic link"));
	assert_int_equal(symlink(at("not-there"), at("dangling")), 0);
	assert_int_equal(output_file_open(at("dangling"), NULL, &e), -EEXIST);
	assert_int_not_equal(lstat(at("not-there"), &st), 0);

	assert_int_equal(link(at("victim"), at("hard")), 0);
	write_it("hard");

	put_file("/wide", "theirs");
	assert_int_equal(chmod(at("wide"), 0666), 0);
	if (!geteuid())
		assert_int_equal(chown(at("wide"), 65534, 65534), 0);
	write_it("wide");

	put_dir("/directory/");
	assert_int_equal(output_file_open(at("directory"), NULL, &e), -EEXIST);
	assert_non_null(strstr(e.text, "a directory"));
	if (!geteuid()) {
		assert_int_equal(mkfifo(at("their-fifo"), 0666), 0);
		assert_int_equal(chown(at("their-fifo"), 65534, 65534), 0);
		assert_int_equal(output_file_open(at("their-fifo"), NULL, &e), -EEXIST);
		assert_non_null(strstr(e.text, "another user's FIFO"));
	}
	check_text("victim", "old");
	assert_int_equal(stat(at("victim"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
}

static void write_result(const char *name, const char *text, int ret)
{
	struct output_file o;
	struct err e = { "" };

	assert_int_equal(output_file_begin(&o, "-o", at(name), &e), 0);
	assert_true(fputs(text, output_file_stream(&o)) >= 0);
	assert_int_equal(output_file_end(&o, ret, &e), ret);
}

/* It has its name once it is complete, or not at all. */
static void test_result(void **state)
{
	char path[256];
	struct output_file o;
	struct err e = { "" };
	struct stat st;

	(void)state;
	put_dir("/d/");
	write_result("d/a", "first", 0);
	assert_int_equal(chmod(at("d/a"), 0644), 0);
	snprintf(path, sizeof(path), "%s", at("d/a"));
	assert_int_equal(output_file_begin(&o, "-o", path, &e), 0);
	assert_int_equal(fcntl(o.fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(write(o.fd, "second", 6), 6);
	check_text("d/a", "first");
	check_alone("d", "a");
	assert_int_equal(output_file_end(&o, 0, &e), 0);
	check_text("d/a", "second");
	check_alone("d", "a");
	assert_int_equal(lstat(at("d/a"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_nlink, 1);
	write_result("d/a", "half", -EIO);
	check_text("d/a", "second");
	check_alone("d", "a");

	/* what comes meanwhile is replaced, but not followed */
	put_file("/victim", "old");
	assert_int_equal(output_file_begin(&o, "-o", path, &e), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(at("victim"), path), 0);
	assert_int_equal(output_file_end(&o, 0, &e), 0);
	check_text("victim", "old");
	check_text("d/a", "");
	assert_int_equal(output_file_begin(&o, "-o", path, &e), 0);
	assert_int_equal(unlink(path), 0);
	put_dir("/d/a/");
	assert_true(output_file_end(&o, 0, &e) < 0);
	assert_non_null(strstr(e.text, "cannot create"));
	check_alone("d", "a");

	assert_int_equal(output_file_begin(&o, "-o", at("no/such"), &e), -ENOENT);
	assert_int_equal(output_file_begin(&o, "-o", "/dev/full", &e), 0);
	assert_true(fputs("text", output_file_stream(&o)) >= 0);
	assert_int_equal(output_file_end(&o, 0, &e), -ENOSPC);
	assert_string_equal(e.text, "cannot write /dev/full: No space left on device");
}

/* At most as many bytes as a file may have. */
static void die_writing(const char *name, int sig)
{
	const struct rlimit limit = { 1000, 1000 };
	struct output_file o;
	char text[4000] = "";
	int status;
	pid_t pid = fork();

	if (!pid) {
		/* nohup ignores SIGHUP */
		signal(sig ?: SIGXFSZ, SIG_DFL);
		setrlimit(RLIMIT_FSIZE, &limit);
		if (output_file_begin(&o, "-o", at(name), NULL))
			_exit(1);
		if (sig)
			raise(sig);
		while (write(o.fd, text, sizeof(text)) > 0)
			continue;
		_exit(2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), sig ?: SIGXFSZ);
}

static void test_killed(void **state)
{
	static const int signals[] = { 0, SIGINT, SIGTERM, SIGHUP, SIGKILL };

	(void)state;
	put_dir("/d/");
	write_result("d/a", "old", 0);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
		die_writing("d/a", signals[i]);
		check_text("d/a", "old");
		check_alone("d", "a");
	}
}

/* Where a file cannot have no name, since /proc is missing. */
static void test_temporary_name(void **state)
{
	static const int signals[] = { 0, SIGINT, SIGTERM, SIGHUP };
	struct output_file o;
	struct err e = { "" };
	char path[256];

	(void)state;
	if (geteuid() || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/proc", "tmpfs", 0, NULL))
		skip();
	put_dir("/d/");
	write_result("d/a", "old", 0);
	snprintf(path, sizeof(path), "%s", at("d/a"));
	assert_int_equal(output_file_begin(&o, "-o", path, &e), 0);
	assert_int_equal(access(o.name, F_OK), -1);
	assert_true(*o.name);
	assert_int_equal(output_file_end(&o, -EIO, &e), -EIO);
	check_alone("d", "a");
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		die_writing("d/a", signals[i]);
	check_text("d/a", "old");
	check_alone("d", "a");
	write_result("d/a", "new", 0);
	check_text("d/a", "new");
	check_alone("d", "a");
	umount("/proc");
}

static volatile sig_atomic_t stop;

static void set_stop(int sig)
{
	(void)sig;
	stop = 1;
}

static void test_fifo(void **state)
{
	const struct sigaction act = { .sa_handler = set_stop };
	struct err e = { "" };
	char text[8] = "";
	int fd, status;
	pid_t pid;

	(void)state;
	assert_int_equal(mkfifo(at("fifo"), 0600), 0);
	/* nobody reads */
	sigaction(SIGALRM, &act, NULL);
	alarm(1);
	assert_int_equal(output_file_open(at("fifo"), &stop, &e), -EINTR);
	stop = 0;
	/* a reader comes later */
	pid = fork();
	if (!pid) {
		fd = open(at("fifo"), O_RDONLY);
		_exit(read(fd, text, sizeof(text)) != 4 || strcmp(text, "abc"));
	}
	fd = output_file_open(at("fifo"), &stop, &e);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
	assert_int_equal(write(fd, "abc", 4), 4);
	close(fd);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fd = output_file_open("/dev/null", NULL, &e);
	assert_true(fd >= 0);
	close(fd);
}

#define T(f) cmocka_unit_test_setup_teardown(f, new_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_new),	T(test_planted), T(test_result),
		T(test_killed), T(test_fifo),	 T(test_temporary_name)
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
