// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Names and locks of the cgroups of commands, on plain directories, and commands without a cgroup. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "open_files.h"
#include "base/clock.h"
#include "base/err.h"
#include "cgroup/container.h"
#include "task/command.h"
#include "task/command_tree.h"
#include "tree.h"

#define TRIES 16 /* names that are tried */

static unsigned int last; /* the number of the last name */

static int open_root(void)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static const char *name_of(unsigned int n)
{
	static char name[COMMAND_TREE_NAME];

	snprintf(name, sizeof(name), CONTAINER_COMMAND "%d-%u", (int)getpid(), n);
	return name;
}

static void test_make(void **state)
{
	int at = open_root(), dir = -1, same;
	char name[COMMAND_TREE_NAME];
	struct stat st;
	uint64_t id = 0;

	(void)state;
	assert_int_equal(command_tree_make(at, name, &dir, &id), 0);
	assert_string_equal(name, name_of(++last));
	assert_int_equal(fstatat(at, name, &st, 0), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
	assert_int_equal(id, st.st_ino);
	assert_int_equal(fstat(dir, &st), 0);
	assert_int_equal(id, st.st_ino);
	/* it is locked while the descriptor is open */
	same = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(same, LOCK_EX | LOCK_NB), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	close(dir);
	assert_int_equal(flock(same, LOCK_EX | LOCK_NB), 0);
	close(same);
	close(at);
}

/* Of names that exist another one is tried, but not for ever. */
static void test_names(void **state)
{
	int at = open_root(), dir = -1;
	char name[COMMAND_TREE_NAME];
	uint64_t id = 0;

	(void)state;
	for (unsigned int i = 1; i < TRIES; i++)
		assert_int_equal(mkdirat(at, name_of(last + i), 0755), 0);
	assert_int_equal(command_tree_make(at, name, &dir, &id), 0);
	last += TRIES;
	assert_string_equal(name, name_of(last));
	close(dir);
	dir = -1;
	for (unsigned int i = 1; i <= TRIES; i++)
		assert_int_equal(mkdirat(at, name_of(last + i), 0755), 0);
	assert_int_equal(command_tree_make(at, name, &dir, &id), -EEXIST);
	last += TRIES;
	assert_int_equal(dir, -1);
	/* other errors are not tried again */
	close(at);
	assert_int_equal(command_tree_make(-1, name, &dir, &id), -EBADF);
	last++;
	at = open_root();
	assert_int_equal(command_tree_make(at, name, &dir, &id), 0);
	assert_string_equal(name, name_of(++last));
	close(dir);
	close(at);
}

/* A process without a cgroup directory, and what is no cgroup. */
static void test_no_cgroups(void **state)
{
	int at = open_root(), dir;

	(void)state;
	assert_int_equal(command_tree_move(getpid(), at), -ENOENT);
	put_file("/cgroup.procs", "");
	assert_int_equal(command_tree_move(1234, at), 0);
	assert_int_equal(command_tree_sweep("/nowhere"), -ENOENT);
	/* what another instance has locked stays, whatever is in it */
	put_dir("/" CONTAINER_COMMAND "1-1/");
	dir = openat(at, CONTAINER_COMMAND "1-1", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(dir, LOCK_EX | LOCK_NB), 0);
	put_dir("/a/" CONTAINER_COMMAND "1-2/");
	put_dir("/a/other/");
	assert_int_equal(command_tree_sweep(root), 1);
	assert_int_equal(faccessat(at, CONTAINER_COMMAND "1-1", F_OK, 0), 0);
	assert_int_equal(faccessat(at, "a/" CONTAINER_COMMAND "1-2", F_OK, 0), -1);
	assert_int_equal(faccessat(at, "a/other", F_OK, 0), 0);
	close(dir);
	assert_int_equal(command_tree_sweep(root), 1);
	assert_int_equal(faccessat(at, CONTAINER_COMMAND "1-1", F_OK, 0), -1);
	assert_int_equal(command_tree_sweep(root), 0);
	close(at);
}

/* A process without stdin gets 0 as the number of a file. */
static void test_without_stdin(void **state)
{
	const int at = open_root(), in = fcntl(0, F_DUPFD_CLOEXEC, 3);
	char path[128], text[16] = "";
	FILE *f;
	int ret;

	(void)state;
	put_file("/cgroup.procs", "");
	close(0);
	ret = command_tree_move(1234, at);
	assert_int_equal(fcntl(0, F_GETFD), -1);
	if (in >= 0) {
		assert_int_equal(dup2(in, 0), 0);
		close(in);
	}
	assert_int_equal(ret, 0);
	close(at);
	snprintf(path, sizeof(path), "%s/cgroup.procs", root);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	fclose(f);
	assert_string_equal(text, "1234");
}

/* It is not tried again, which takes two seconds. */
static int removed_at_once(int at, const char *name, int dir, int to)
{
	const double began = now_s();
	const int ret = command_tree_remove(at, name, dir, to);

	assert_true(now_s() - began < 1.9);
	return ret;
}

/* One that is in use is tried again for two seconds; here it has a file system mounted on it. */
static void test_busy(void **state)
{
	const double began = now_s();
	int at = open_root(), dir, ret, to;
	double took;
	char path[128];

	(void)state;
	put_file("/busy/cgroup.procs", "");
	dir = openat(at, "busy", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	snprintf(path, sizeof(path), "%s/busy", root);
	if (mount("none", path, "tmpfs", 0, NULL)) {
		close(dir);
		close(at);
		print_message("skipped: nothing can be mounted here\n");
		skip();
	}
	ret = command_tree_remove(at, "busy", dir, at);
	took = now_s() - began;
	assert_int_equal(umount(path), 0);
	assert_int_equal(ret, -EBUSY);
	assert_true(took >= 1.9);
	/* what is not empty, for another reason, is not tried again; what is gone is done */
	assert_int_equal(removed_at_once(at, "busy", dir, at), -ENOTEMPTY);
	assert_int_equal(removed_at_once(at, "nothing", dir, at), 0);
	close(dir);
	/* nor is one whose processes cannot be moved */
	put_dir("/stuck/");
	dir = openat(at, "stuck", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "%s/stuck", root);
	assert_int_equal(mount("none", path, "tmpfs", 0, NULL), 0);
	ret = removed_at_once(at, "stuck", dir, at);
	assert_int_equal(umount(path), 0);
	assert_int_equal(ret, -ENOENT);
	put_dir("/to/");
	put_file("/stuck/cgroup.procs", "0\n7\n8\n");
	assert_int_equal(mount("none", path, "tmpfs", 0, NULL), 0);
	close(at);
	at = open_root();
	to = openat(at, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret = removed_at_once(at, "stuck", dir, to);
	close(to);
	assert_int_equal(umount(path), 0);
	assert_int_equal(ret, -ENOENT);
	close(dir);
	close(at);
}

/* What is too deep is left out, and hides nothing that is beside it. */
static void test_deep(void **state)
{
	char path[512] = "/deep", full[1024];

	(void)state;
	for (int i = 0; i < 70; i++)
		strcat(path, "/d");
	strcat(path, "/");
	strcat(path, CONTAINER_COMMAND "1-3/");
	put_dir(path);
	put_dir("/" CONTAINER_COMMAND "1-1/");
	put_dir("/beside/" CONTAINER_COMMAND "1-2/");
	assert_int_equal(command_tree_sweep(root), 2);
	assert_int_equal(command_tree_sweep(root), 0);
	snprintf(full, sizeof(full), "%s%s", root, path);
	assert_int_equal(access(full, F_OK), 0);
}

/* The command of a shell's words, which waits for signals. */
static struct command *start(const char *words)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)words, NULL };
	const struct command_opts opts = { .argv = argv, .cgroup = COMMAND_CGROUP_NONE };
	struct command *c = NULL;
	struct err err = { "" };

	if (command_prepare(&opts, &c, &err) || command_start(c, &err))
		fail_msg("%s", err.text);
	return c;
}

static bool ends_within(const struct command *c, int ms)
{
	for (; !command_ended(c) && ms > 0; ms -= 10)
		poll(NULL, 0, 10);
	return command_ended(c);
}

/* What the terminal has sent to the command already is not sent again. */
static void test_signals(void **state)
{
	const int files = open_files();
	struct command *c = start("exec sleep 100");
	struct err err;
	int status = 0;

	(void)state;
	assert_int_equal(command_cgroup_id(c), 0);
	assert_int_equal(command_cgroup_error(c, &err), 0);
	command_pass_on(c, SIGTERM, true);
	assert_false(ends_within(c, 100));
	command_pass_on(c, SIGTERM, false);
	assert_true(ends_within(c, 10000));
	assert_int_equal(command_wait(c, &status), 0);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGTERM);
	/* its number may be another process's by now */
	command_pass_on(c, SIGTERM, false);
	status = 0;
	assert_int_equal(command_wait(c, &status), 0);
	assert_int_equal(WTERMSIG(status), SIGTERM);
	command_close(c);
	command_close(NULL);
	assert_int_equal(open_files(), files);
}

/* A command that cannot be run: its error, and the status that a shell would give it. */
static void cannot_run(const char *file, int code, int status, const char *want)
{
	char *argv[] = { (char *)file, NULL };
	const struct command_opts opts = { .argv = argv, .cgroup = COMMAND_CGROUP_NONE };
	struct command *c = NULL;
	struct err err = { "" };
	int got = 0;

	assert_int_equal(command_prepare(&opts, &c, &err), 0);
	assert_int_equal(command_start(c, &err), code);
	assert_string_equal(err.text, want);
	assert_true(command_ended(c));
	assert_int_equal(command_wait(c, &got), 0);
	assert_int_equal(got, status << 8);
	command_close(c);
}

static void test_cannot_run(void **state)
{
	const int files = open_files();
	char *empty[] = { (char *)"", NULL }, *none[] = { NULL };
	struct command_opts opts = { .argv = empty };
	struct command *c = NULL;
	struct err err = { "" };
	char path[128], want[300];

	(void)state;
	cannot_run("no-such-command-in-the-path", -ENOENT, 127,
		   "no-such-command-in-the-path: command not found");
	cannot_run("/nowhere/at/all", -ENOENT, 127,
		   "cannot run /nowhere/at/all: No such file or directory");
	cannot_run("/tmp", -EACCES, 126, "cannot run /tmp: Permission denied");
	put_file("/script", "#!/nowhere/at/all\n");
	snprintf(path, sizeof(path), "%s/script", root);
	assert_int_equal(chmod(path, 0755), 0);
	snprintf(want, sizeof(want),
		 "cannot run %s: its interpreter (#! line, or the loader of its architecture) does "
		 "not exist",
		 path);
	cannot_run(path, -ENOENT, 127, want);
	assert_int_equal(command_prepare(&opts, &c, &err), -EINVAL);
	assert_string_equal(err.text, "no command given");
	opts.argv = none;
	assert_int_equal(command_prepare(&opts, &c, &err), -EINVAL);
	opts.argv = NULL;
	assert_int_equal(command_prepare(&opts, &c, &err), -EINVAL);
	assert_null(c);
	assert_int_equal(open_files(), files);
}

/* It waits before exec, does not outlive us unless it was started, and is started once. */
static void test_start(void **state)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)"read x; exit 3", NULL };
	const struct command_opts opts = { .argv = argv, .cgroup = COMMAND_CGROUP_NONE };
	const int files = open_files(), in = fcntl(0, F_DUPFD_CLOEXEC, 3);
	struct pollfd fd = { .events = POLLIN };
	struct command *c = NULL;
	struct err err = { "" };
	int p[2], status = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(command_prepare(&opts, &c, &err), 0);
	pid = command_pid(c);
	assert_int_equal(kill(pid, 0), 0);
	assert_false(command_ended(c));
	/* it has not begun, so there is nothing to pass a signal on to */
	command_pass_on(c, SIGKILL, false);
	assert_false(command_ended(c));
	command_close(c);
	assert_int_equal(kill(pid, 0), -1);
	assert_int_equal(errno, ESRCH);

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(dup2(p[0], 0), 0);
	close(p[0]);
	assert_int_equal(command_prepare(&opts, &c, &err), 0);
	assert_int_equal(command_start(c, &err), 0);
	assert_int_equal(command_start(c, &err), -EALREADY);
	assert_string_equal(err.text, "sh: already started");
	fd.fd = command_pidfd(c);
	assert_true(fd.fd >= 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_false(command_ended(c));
	close(p[1]);
	assert_int_equal(poll(&fd, 1, 10000), 1);
	assert_true(command_ended(c));
	assert_int_equal(command_wait(c, NULL), 0);
	assert_int_equal(command_wait(c, &status), 0);
	assert_int_equal(status, 3 << 8);
	assert_true(command_ended(c));
	command_close(c);
	if (in >= 0) {
		assert_int_equal(dup2(in, 0), 0);
		close(in);
	}
	assert_int_equal(open_files(), files);
}

/* A cgroup that is required is there, or there is no command. */
static void test_required(void **state)
{
	char *argv[] = { (char *)"true", NULL };
	const struct command_opts opts = { .argv = argv, .cgroup = COMMAND_CGROUP_REQUIRE };
	const int files = open_files();
	struct command *c = NULL;
	struct err err = { "" }, none = { "" };
	int status = -1;

	(void)state;
	if (command_prepare(&opts, &c, &err)) {
		assert_null(c);
		assert_true(*err.text);
	} else {
		assert_non_null(c);
		assert_true(command_cgroup_id(c));
		assert_int_equal(command_cgroup_error(c, &none), 0);
		assert_int_equal(command_start(c, &err), 0);
		assert_int_equal(command_wait(c, &status), 0);
		assert_int_equal(status, 0);
		command_close(c);
	}
	assert_int_equal(open_files(), files);
}

/* Signals in a row of /proc/PID/status. */
static unsigned long long signals_in(const char *file, const char *row)
{
	char path[128], line[256];
	unsigned long long found = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, file);
	f = fopen(*file == '/' ? file : path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, row, strlen(row)))
			found = strtoull(line + strlen(row), NULL, 16);
	fclose(f);
	return found;
}

#define BIT(sig) (1ULL << ((sig)-1))

static void on_signal(int sig)
{
	(void)sig;
}

/* Without opts.signals no signal is blocked, SIGPIPE has its default, and ignored signals stay ignored; no handler is inherited. */
static void test_inherited(void **state)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)"exec sed '' /proc/self/status >$0/s",
			 root, NULL };
	char *envp[] = { (char *)"A=1 2", NULL };
	struct command_opts opts = { .argv = argv, .cgroup = COMMAND_CGROUP_NONE };
	struct command_signals before;
	unsigned long long ignored;
	sigset_t set, old, now;
	struct err err = { "" };

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_SETMASK, &set, &old);
	signal(SIGHUP, SIG_IGN);
	command_signals_get(&before);
	assert_int_equal(sigismember(&before.mask, SIGUSR2), 1);
	assert_int_equal(sigismember(&before.mask, SIGINT), 0);
	assert_int_equal(sigismember(&before.ignored, SIGHUP), 1);
	assert_int_equal(sigismember(&before.ignored, SIGUSR1), 0);
	ignored = signals_in("/proc/self/status", "SigIgn:\t") & ~BIT(SIGPIPE);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGTERM, on_signal);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_SETMASK, &set, NULL);
	for (int with = 0; with < 2; with++) {
		struct command *c = NULL;
		int status = -1;

		opts.signals = with ? &before : NULL;
		assert_int_equal(command_prepare(&opts, &c, &err), 0);
		assert_int_equal(command_start(c, &err), 0);
		assert_int_equal(command_wait(c, &status), 0);
		assert_int_equal(status, 0);
		command_close(c);
		assert_int_equal(signals_in("s", "SigBlk:\t"), with ? BIT(SIGUSR2) : 0);
		assert_int_equal(signals_in("s", "SigIgn:\t") & ~BIT(SIGPIPE),
				 ignored | (with ? 0 : BIT(SIGUSR1)));
		assert_int_equal(signals_in("s", "SigCgt:\t"), 0);
		if (!with)
			assert_int_equal(signals_in("s", "SigIgn:\t") & BIT(SIGPIPE), 0);
	}
	sigprocmask(SIG_SETMASK, NULL, &now);
	for (int sig = 1; sig < 32; sig++)
		assert_int_equal(sigismember(&now, sig), sig == SIGINT || sig == SIGUSR2);
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGHUP, SIG_DFL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGUSR1, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	/* our environment, or another one */
	setenv("B", "3", 1);
	unsetenv("A");
	for (int with = 0; with < 2; with++) {
		struct command *c = NULL;
		int status = -1;

		opts.envp = with ? envp : NULL;
		argv[2] = (char *)(with ? "[ \"$A,$B\" = '1 2,' ]" : "[ \"$A,$B\" = ,3 ]");
		assert_int_equal(command_prepare(&opts, &c, &err), 0);
		assert_int_equal(command_start(c, &err), 0);
		assert_int_equal(command_wait(c, &status), 0);
		assert_int_equal(status, 0);
		command_close(c);
	}
	unsetenv("B");
}

#define T(f) cmocka_unit_test_setup_teardown(f, new_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_make),	 T(test_names),	   T(test_no_cgroups), T(test_without_stdin),
		T(test_signals), T(test_busy),	   T(test_deep),       T(test_cannot_run),
		T(test_start),	 T(test_required), T(test_inherited),
	};

	setenv("PATH", "/usr/bin:/bin", 1); /* a directory that cannot be searched changes errors */
	/* commands inherit what whoever has started this test ignores */
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
