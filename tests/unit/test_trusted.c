// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files and directories that other users could read, replace, or make block: each is refused for one reason. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/regular.h"
#include "base/trusted_dir.h"

#define USER 12345

static char dir[64];

static const char *in(const char *name)
{
	static char path[2][200];
	static unsigned int n;

	snprintf(path[++n % 2], sizeof(path[0]), "%s/%s", dir, name);
	return path[n % 2];
}

static int make_dir(void **unused)
{
	(void)unused;
	strcpy(dir, "/tmp/test_trusted-XXXXXX");
	return !mkdtemp(dir) || mkdir(in("a"), 0755) || mkdir(in("a/b"), 0755);
}

static int remove_dir(void **unused)
{
	char command[100];

	(void)unused;
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

/* --- regular files --- */

static void test_regular(void **unused)
{
	char text[8] = "";
	int fd = open(in("file"), O_WRONLY | O_CREAT, 0600);

	(void)unused;
	assert_int_equal(write(fd, "abc", 3), 3);
	close(fd);
	fd = regular_open(in("file"));
	assert_true(fd >= 0);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	assert_string_equal(text, "abc");
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
	close(fd);
	assert_int_equal(symlink("file", in("link")), 0);
	fd = regular_open(in("link"));
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(mkfifo(in("fifo"), 0600), 0);
	assert_int_equal(regular_open(in("fifo")), -EINVAL); /* and does not wait for a writer */
	assert_int_equal(regular_open(in("a")), -EINVAL);
	assert_int_equal(regular_open("/dev/null"), -EINVAL);
	assert_int_equal(regular_open(in("none")), -ENOENT);
	/* nothing stays open */
	fd = dup(0);
	close(fd);
	for (int i = 0; i < 10; i++) {
		regular_open(in("fifo"));
		close(regular_open(in("file")));
	}
	assert_int_equal(dup(0), fd);
	close(fd);
}

/* Where /proc is another one, or none. */
static int in_root(void)
{
	char text[8] = "";
	int fd, at = open(dir, O_PATH | O_DIRECTORY);

	if (regular_chroot(at))
		return 1;
	fd = regular_open("/file");
	if (fd < 0 || read(fd, text, sizeof(text)) != 3 || strcmp(text, "abc"))
		return 2;
	return regular_open("/a") != -EINVAL ? 3 : access("/tmp", F_OK) ? 0 : 4;
}

static void test_root(void **unused)
{
	const int fd = open(in("file"), O_WRONLY | O_CREAT, 0600);
	int status;
	pid_t pid;

	(void)unused;
	if (geteuid()) {
		puts("chroot() needs root");
		skip();
	}
	assert_int_equal(write(fd, "abc", 3), 3);
	close(fd);
	pid = fork();
	if (!pid)
		_exit(in_root());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(regular_chroot(-1), -EBADF);
}

static const char *secret(mode_t mode, uid_t uid)
{
	static struct err err;
	const struct stat st = { .st_mode = S_IFREG | mode, .st_uid = uid };

	err.text[0] = 0;
	return regular_check_secret("file", &st, "key", &err) == (*err.text ? -EINVAL : 0)
		       ? err.text
		       : "another errno";
}

#define MODES ": use mode 0600, or 0640 to let a group read it"

static void test_secret(void **unused)
{
	(void)unused;
	assert_string_equal(secret(0600, geteuid()), "");
	assert_string_equal(secret(0640, geteuid()), "");
	assert_string_equal(secret(0650, geteuid()), "");
	assert_string_equal(secret(0600, 0), "");
	assert_string_equal(secret(0604, 0),
			    "file has mode 0604, so that other users can read the key" MODES);
	assert_string_equal(secret(0606, 0),
			    "file has mode 0606, so that other users can read the key" MODES);
	assert_string_equal(secret(0602, 0),
			    "file has mode 0602, so that other users can replace the key" MODES);
	assert_string_equal(secret(04620, 0),
			    "file has mode 4620, so that other users can replace the key" MODES);
	assert_string_equal(secret(0601, 0),
			    "file has mode 0601, so that other users can replace the key" MODES);
}

/* A user's secret is root's or his own; root reads any. */
static void test_secret_of_user(void **unused)
{
	int status;
	pid_t pid;

	(void)unused;
	if (geteuid()) {
		puts("seteuid() needs root");
		skip();
	}
	assert_string_equal(secret(0600, USER), "");
	pid = fork();
	if (!pid) {
		if (seteuid(USER) || *secret(0600, 0) || *secret(0600, USER))
			_exit(1);
		_exit(!!strcmp(secret(0600, USER + 1),
			       "file belongs to uid 12346: a key must belong to root or to "
			       "the user that reads it (uid 12345)"));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* --- directories --- */

static const char *check(const char *path, bool sticky_ok, int want)
{
	static struct err err;

	err.text[0] = 0;
	assert_int_equal(trusted_dir_check(path, sticky_ok, &err), want);
	return err.text;
}

static void refused(const char *path, const char *component, const char *why, int want)
{
	char text[400];

	snprintf(text, sizeof(text), "%s%s", component, why);
	assert_string_equal(check(path, true, want), text);
}

#define WRITABLE(mode)                                                          \
	" has mode " mode ", so other users could add or replace files in it: " \
	"`chmod go-w` it, or use a directory that only root can write to"

/* /tmp is sticky: accepted for parents, if the caller wants. */
static void test_dirs(void **unused)
{
	char name[200];

	(void)unused;
	assert_string_equal(check("/", false, 0), "");
	assert_string_equal(check("/usr/bin", false, 0), "");
	assert_string_equal(check("//usr//bin//", false, 0), "");
	assert_string_equal(check(in("a/b"), true, 0), "");
	assert_string_equal(check(in("a/b"), false, -EPERM), "/tmp" WRITABLE("1777"));
	assert_string_equal(check("/tmp", true, -EPERM), "/tmp" WRITABLE("1777"));
	assert_string_equal(check("/tmp/", true, -EPERM), "/tmp" WRITABLE("1777"));
	assert_string_equal(check("tmp", true, -EINVAL), "'tmp' is not an absolute path");
	assert_string_equal(check("", true, -EINVAL), "'' is not an absolute path");
	refused(in("none"), in("none"), ": No such file or directory", -ENOENT);
	assert_string_equal(check("/dev/null", true, -ENOTDIR), "/dev/null is not a directory");
	/* the component that others can write to is named */
	chmod(in("a"), 0757);
	refused(in("a/b"), in("a"), WRITABLE("0757"), -EPERM);
	chmod(in("a"), 01777);
	assert_string_equal(check(in("a/b"), true, 0), "");
	chmod(in("a"), 0755);
	chmod(in("a/b"), 01777);
	refused(in("a/b"), in("a/b"), WRITABLE("1777"), -EPERM);
	snprintf(name, sizeof(name), "%s///", in("a/b"));
	refused(name, in("a/b"), WRITABLE("1777"), -EPERM);
}

/* Of root, so that its group may write; not another one, or another owner. */
static void test_owners(void **unused)
{
	(void)unused;
	if (geteuid()) {
		puts("chown() needs root");
		skip();
	}
	chmod(in("a"), 0775);
	assert_string_equal(check(in("a/b"), true, 0), "");
	assert_int_equal(chown(in("a"), 0, USER), 0);
	chmod(in("a"), 0775);
	refused(in("a/b"), in("a"), WRITABLE("0775"), -EPERM);
	chmod(in("a"), 0755);
	assert_string_equal(check(in("a/b"), true, 0), "");
	assert_int_equal(chown(in("a"), USER, 0), 0);
	refused(in("a/b"), in("a"),
		" belongs to uid 12345, who could replace its contents: chown it to root, or use "
		"another directory",
		-EPERM);
	assert_int_equal(chown(in("a"), 0, 0), 0);
	/* a link of another user */
	assert_int_equal(symlink("a/b", in("link")), 0);
	assert_string_equal(check(in("link"), true, 0), "");
	assert_int_equal(lchown(in("link"), USER, USER), 0);
	refused(in("link"), in("link"),
		" belongs to uid 12345, who could replace its contents: chown it to root, or use "
		"another directory",
		-EPERM);
}

/* What a link leads to is checked, too. */
static void test_links(void **unused)
{
	char loop[200], target[200];

	(void)unused;
	snprintf(target, sizeof(target), "%s/b", in("a"));
	assert_int_equal(symlink(target, in("absolute")), 0);
	assert_int_equal(symlink("../absolute", in("a/relative")), 0);
	assert_string_equal(check(in("a/relative"), true, 0), "");
	assert_int_equal(symlink("a", in("part")), 0);
	assert_string_equal(check(in("part/b"), true, 0), "");
	assert_string_equal(check(in("part//relative/"), true, 0), "");
	chmod(in("a/b"), 0777);
	refused(in("absolute"), in("a/b"), WRITABLE("0777"), -EPERM);
	refused(in("part/b"), in("a/b"), WRITABLE("0777"), -EPERM);
	/* as many links as the kernel follows, and one more */
	for (int i = 0; i < 41; i++) {
		char from[8], to[8];

		snprintf(from, sizeof(from), "l%d", i + 1);
		snprintf(to, sizeof(to), "l%d", i);
		assert_int_equal(symlink(i ? to : "a", in(from)), 0);
	}
	assert_string_equal(check(in("l40"), true, 0), "");
	snprintf(loop, sizeof(loop), "%s: Too many levels of symbolic links", in("l41"));
	assert_string_equal(check(in("l41"), true, -ELOOP), loop);
	assert_int_equal(symlink("dangling", in("dangling")), 0);
	snprintf(loop, sizeof(loop), "%s: Too many levels of symbolic links", in("dangling"));
	assert_string_equal(check(in("dangling"), true, -ELOOP), loop);
}

static void test_long_paths(void **unused)
{
	char path[PATH_MAX + 8], target[PATH_MAX];

	(void)unused;
	memset(path, '/', sizeof(path));
	path[PATH_MAX - 1] = 0;
	assert_string_equal(check(path, true, 0), "");
	path[PATH_MAX - 1] = '/';
	path[PATH_MAX] = 0;
	assert_non_null(strstr(check(path, true, -EINVAL), "/' is not an absolute path"));
	/* with the target of the link, the path is too long */
	memset(target, '/', sizeof(target));
	target[4000] = 0;
	assert_int_equal(symlink(target, in("long")), 0);
	snprintf(path, sizeof(path), "%s%.*s", in("long"), 200, target);
	assert_non_null(strstr(check(path, true, -ENAMETOOLONG), ": the path is too long"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_regular, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_root, make_dir, remove_dir),
		cmocka_unit_test(test_secret),
		cmocka_unit_test(test_secret_of_user),
		cmocka_unit_test_setup_teardown(test_dirs, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_owners, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_links, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(test_long_paths, make_dir, remove_dir),
	};

	umask(022);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
