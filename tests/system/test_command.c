// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Commands in cgroups of their own on this machine: births, deaths, leftovers, and hosts without. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "cgroup/cgroup.h"
#include "task/command.h"
#include "task/command_tree.h"
#include "base/err.h"
#include "../unit/tree.h"

#define QUICK	   200
#define TIMEOUT_MS 5000

static struct cgroup_fs fs;
static char base[512];	/* a cgroup of ours, in which all tests run */
static char empty[512]; /* another */

/* In forked children, where cmocka cannot report. */
#define CHECK(x)                                                                    \
	do {                                                                        \
		if (!(x)) {                                                         \
			printf("line %d: %s: %s\n", __LINE__, #x, strerror(errno)); \
			fflush(stdout);                                             \
			_exit(1);                                                   \
		}                                                                   \
	} while (0)

/* Valid for the next seven calls. */
static const char *fmt(const char *f, ...) __attribute__((format(printf, 1, 2)));

static const char *fmt(const char *f, ...)
{
	static char text[8][2048];
	static unsigned int i;
	va_list ap;

	i = (i + 1) % 8;
	va_start(ap, f);
	vsnprintf(text[i], sizeof(text[i]), f, ap);
	va_end(ap);
	return text[i];
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void nap_ms(int ms)
{
	poll(NULL, 0, ms);
}

/* The first line that starts with @start, without it; "" if there is none. */
static const char *line_of(const char *path, const char *start)
{
	static char line[4096];
	FILE *f = fopen(path, "r");
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		found = !strncmp(line, start, strlen(start));
	}
	if (f)
		fclose(f);
	return found ? fmt("%s", line + strlen(start)) : "";
}

static const char *cgroup_of(pid_t pid)
{
	return line_of(fmt("/proc/%d/cgroup", pid), "0::");
}

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool move_self(const char *dir)
{
	return write_file(fmt("%s/cgroup.procs", dir), "0");
}

/* Cgroups that command_tree.c names, of us or of a child of ours. */
static int count_ours(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *ent;
	int n = 0;

	while (d && (ent = readdir(d)))
		n += !strncmp(ent->d_name, "ibscope-", 8);
	if (d)
		closedir(d);
	return n;
}

/*
 * Sweep until @n are left: a dead instance's process that waits holds the lock until it ends too,
 * and an instance elsewhere may be sweeping the same ones.
 */
static bool sweep_to(int n)
{
	double end = now_s() + TIMEOUT_MS / 1e3;

	while (command_tree_sweep(fs.path), count_ours(base) != n && now_s() < end)
		nap_ms(1);
	return count_ours(base) == n;
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

/* Gone, or a zombie. */
static bool is_dead(pid_t pid)
{
	const char *state = line_of(fmt("/proc/%d/status", pid), "State:\t");

	return !*state || *state == 'Z' || *state == 'X';
}

static bool dies(pid_t pid)
{
	double end = now_s() + TIMEOUT_MS / 1e3;

	while (!is_dead(pid) && now_s() < end)
		nap_ms(1);
	return is_dead(pid);
}

/* The number in a file of the test's directory, once it is there. */
static pid_t read_pid(const char *name)
{
	double end = now_s() + TIMEOUT_MS / 1e3;
	int pid = 0;

	do
		pid = atoi(line_of(fmt("%s/%s", root, name), ""));
	while (!pid && now_s() < end && (nap_ms(1), true));
	return pid;
}

/* sh -c SCRIPT; $0 is the test's directory. */
static struct command *prepare(const char *script, struct command_opts o)
{
	char *argv[] = { "/bin/sh", "-c", (char *)script, root, NULL };
	struct command *c = NULL;
	struct err e = { "" };

	o.argv = argv;
	if (command_prepare(&o, &c, &e))
		printf("command_prepare: %s\n", e.text);
	return c;
}

static int finish(struct command *c)
{
	struct err e = { "" };
	int status = -1;

	if (command_start(c, &e))
		printf("command_start: %s\n", e.text);
	if (command_wait(c, &status))
		printf("command_wait failed\n");
	return status;
}

static int run(const char *script, struct command_opts o)
{
	struct command *c = prepare(script, o);
	int status = c ? finish(c) : -1;

	command_close(c);
	return status;
}

/* Run @work in a child, which prints what is wrong. */
static void in_child(void (*work)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		work();
		fflush(stdout);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(count_ours(base), 0);
}

static void own_mounts(void)
{
	CHECK(!unshare(CLONE_NEWNS));
	CHECK(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
}

static const struct command_opts required = { .cgroup = COMMAND_CGROUP_REQUIRE };

static void test_inside(void **state)
{
	struct command *c = prepare("cat /proc/self/cgroup >$0/child; read comm </proc/$$/comm; "
				    "echo $comm $$ >$0/comm; "
				    "(cat /proc/self/cgroup >$0/grandchild; "
				    "setsid sh -c 'cat /proc/self/cgroup >'$0/deep & wait)",
				    required);
	char path[1024];
	struct stat st;

	(void)state;
	assert_non_null(c);
	assert_int_equal(command_cgroup_error(c, NULL), 0);
	snprintf(path, sizeof(path), "%s", cgroup_of(command_pid(c)));
	assert_int_equal(strncmp(path, base + strlen(fs.path), strlen(base) - strlen(fs.path)), 0);
	assert_int_equal(stat(fmt("%s%s", fs.path, path), &st), 0);
	assert_int_equal(st.st_ino, command_cgroup_id(c));
	assert_int_not_equal(st.st_ino, 0);
	assert_string_equal(line_of(fmt("/proc/%d/comm", command_pid(c)), ""),
			    line_of("/proc/self/comm", ""));
	assert_int_equal(access(fmt("%s/child", root), F_OK), -1);
	assert_int_equal(finish(c), 0);
	assert_string_equal(line_of(fmt("%s/comm", root), ""), fmt("sh %d", command_pid(c)));
	assert_string_equal(line_of(fmt("%s/child", root), "0::"), path);
	assert_string_equal(line_of(fmt("%s/grandchild", root), "0::"), path);
	assert_string_equal(line_of(fmt("%s/deep", root), "0::"), path);
	command_close(c);
	assert_int_equal(stat(fmt("%s%s", fs.path, path), &st), -1);
	assert_int_equal(count_ours(base), 0);
}

static int try_exec(const char *file, struct err *e)
{
	char *argv[] = { (char *)file, NULL };
	struct command_opts o = { .argv = argv };
	struct command *c;
	int ret, status;

	assert_int_equal(command_prepare(&o, &c, e), 0);
	ret = command_start(c, e);
	assert_int_equal(command_wait(c, &status), 0);
	assert_int_equal(WEXITSTATUS(status), ret == -ENOENT ? 127 : ret ? 126 : 0);
	assert_int_equal(command_start(c, NULL), -EALREADY);
	command_close(c);
	return ret;
}

static void test_exec_failure(void **state)
{
	char *nothing[] = { NULL };
	struct command_opts o = { 0 };
	struct command *c;
	struct err e;

	(void)state;
	assert_int_equal(try_exec("no-such-command-here", &e), -ENOENT);
	assert_string_equal(e.text, "no-such-command-here: command not found");
	assert_int_equal(try_exec("/no/such", &e), -ENOENT);
	assert_string_equal(e.text, "cannot run /no/such: No such file or directory");
	assert_int_equal(try_exec("/etc/passwd", &e), -EACCES);
	put_file("/script", "#!/no/such/interpreter\n");
	assert_int_equal(chmod(fmt("%s/script", root), 0755), 0);
	assert_int_equal(try_exec(fmt("%s/script", root), &e), -ENOENT);
	assert_non_null(strstr(e.text, "interpreter"));
	assert_int_equal(try_exec("true", &e), 0);
	assert_int_equal(command_prepare(&o, &c, &e), -EINVAL);
	o.argv = nothing;
	assert_int_equal(command_prepare(&o, &c, &e), -EINVAL);
	assert_int_equal(count_ours(base), 0);
}

static void test_status(void **state)
{
	struct command *c;
	struct pollfd p;
	int status;

	(void)state;
	assert_int_equal(run("exit 3", required), 3 << 8);
	assert_int_equal(run("kill -TERM $$", required), SIGTERM);
	c = prepare("read x <$0/fifo; exit 4", required);
	assert_int_equal(mkfifo(fmt("%s/fifo", root), 0600), 0);
	p = (struct pollfd){ .fd = command_pidfd(c), .events = POLLIN };
	assert_int_equal(command_start(c, NULL), 0);
	assert_int_equal(poll(&p, 1, 20), 0);
	assert_false(command_ended(c));
	assert_true(write_file(fmt("%s/fifo", root), "\n"));
	assert_int_equal(poll(&p, 1, TIMEOUT_MS), 1);
	assert_true(command_ended(c));
	assert_int_equal(command_wait(c, &status), 0);
	assert_int_equal(status, 4 << 8);
	assert_int_equal(command_wait(c, &status), 0);
	assert_int_equal(status, 4 << 8);
	assert_true(command_ended(c));
	command_close(c);
	command_close(NULL);
	/* killed while it waits */
	c = prepare("true", required);
	assert_int_equal(kill(command_pid(c), SIGINT), 0);
	assert_true(dies(command_pid(c)));
	assert_int_equal(finish(c), SIGINT);
	command_close(c);
}

static void test_leaks(void **state)
{
	char *argv[] = { "/bin/true", NULL };
	struct command_opts o = { .argv = argv };
	size_t fds = count_fds();
	double start = now_s();
	struct command *c;
	int status, i;

	(void)state;
	for (i = 0; i < QUICK; i++) {
		assert_int_equal(command_prepare(&o, &c, NULL), 0);
		assert_true(command_cgroup_id(c) > 0);
		assert_int_equal(command_start(c, NULL), 0);
		if (i % 2) {
			assert_int_equal(command_wait(c, &status), 0);
			assert_int_equal(status, 0);
		} else {
			assert_true(dies(command_pid(c)));
		}
		command_close(c);
	}
	print_message("%d commands: %.1f ms each\n", QUICK, (now_s() - start) * 1000 / QUICK);
	assert_int_equal(count_fds(), fds);
	assert_int_equal(count_ours(base), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void test_no_start(void **state)
{
	struct command *c = prepare("echo $$ >$0/ran", required), *other;
	pid_t pid = command_pid(c);

	(void)state;
	other = prepare("true", required); /* has a copy of our end of the first one's socket */
	command_close(c);
	assert_true(is_dead(pid));
	assert_int_equal(access(fmt("%s/ran", root), F_OK), -1);
	assert_int_equal(count_ours(base), 1);
	assert_int_equal(finish(other), 0);
	command_close(other);
	assert_int_equal(count_ours(base), 0);
}

/* --- crashed instances --- */

struct instance {
	const char *script; /* NULL: two that are not started */
	const char *within; /* the cgroup to run in */
	bool pidns;
};

static pid_t spawn_instance(struct instance o)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid && o.pidns) {
		CHECK(!unshare(CLONE_NEWPID));
		pid = fork(); /* is 1 in there */
		if (pid)
			_exit(0);
	}
	if (!pid) {
		struct command *c, *second;

		CHECK(!o.within || move_self(o.within));
		c = prepare(o.script ? o.script : "true", required);
		second = prepare("true", required);
		CHECK(c && second);
		put_file("/waits", fmt("%d\n", command_pid(second)));
		if (o.script)
			CHECK(!command_start(c, NULL));
		put_file("/up", "1\n");
		for (;;)
			pause();
	}
	return pid;
}

static void test_sweep(void **state)
{
	struct command *live = prepare("read x <$0/fifo", required);
	pid_t pid = spawn_instance(
		(struct instance){ .script = "echo $$ >$0/a; sleep 100 & echo $! >$0/b; wait" });
	pid_t a = read_pid("a"), b = read_pid("b"), waits = (read_pid("up"), read_pid("waits"));
	double end;

	(void)state;
	assert_int_equal(mkfifo(fmt("%s/fifo", root), 0600), 0);
	assert_int_equal(command_start(live, NULL), 0);
	assert_int_equal(count_ours(base), 3);
	command_tree_sweep(fs.path);
	assert_int_equal(count_ours(base), 3);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(dies(waits));
	assert_int_equal(run("true", required), 0); /* which sweeps */
	end = now_s() + TIMEOUT_MS / 1e3;
	while (count_ours(base) != 1 && now_s() < end) /* an instance elsewhere may be at it */
		nap_ms(1);
	assert_int_equal(count_ours(base), 1);
	assert_false(is_dead(a));
	assert_false(is_dead(b));
	assert_string_equal(cgroup_of(a), base + strlen(fs.path));
	assert_string_equal(cgroup_of(b), base + strlen(fs.path));
	kill(b, SIGKILL);
	kill(a, SIGKILL);
	assert_true(write_file(fmt("%s/fifo", root), "\n"));
	command_close(live);
	waitpid(-1, NULL, 0);
	assert_int_equal(count_ours(base), 0);
	assert_int_equal(command_tree_sweep("/no/such"), -ENOENT);
}

/* Its pid is another there, or none; it shares the cgroups all the same. */
static void test_sweep_pidns(void **state)
{
	char line[32] = "";
	pid_t inner = 0;
	int status;
	FILE *f;

	(void)state;
	assert_int_equal(
		waitpid(spawn_instance((struct instance){ .pidns = true }), &status, 0) > 0, 1);
	if (status)
		skip();
	read_pid("up");
	assert_int_equal(count_ours(base), 2);
	command_tree_sweep(fs.path);
	assert_int_equal(count_ours(base), 2);
	f = fopen(fmt("%s/cgroup.procs", base), "r");
	while (fgets(line, sizeof(line), f))
		inner = atoi(line) == getpid() ? inner : atoi(line);
	fclose(f);
	assert_true(inner > 0);
	kill(inner, SIGKILL);
	assert_true(dies(inner));
	assert_true(sweep_to(0));
}

/* --- descendants --- */

static void test_survive(void **state)
{
	struct command_opts o = required;
	pid_t pid;

	(void)state;
	assert_int_equal(run("sleep 100 & echo $! >$0/a", o), 0);
	pid = read_pid("a");
	assert_false(is_dead(pid));
	assert_string_equal(cgroup_of(pid), base + strlen(fs.path));
	assert_int_equal(count_ours(base), 0);
	kill(pid, SIGKILL);

	/* it forks while it is moved */
	assert_int_equal(run("(while :; do /bin/true; done) & echo $! >$0/c", o), 0);
	pid = read_pid("c");
	assert_string_equal(cgroup_of(pid), base + strlen(fs.path));
	kill(pid, SIGKILL);
	assert_int_equal(count_ours(base), 0);
}

/* The command has made cgroups of its own, and still runs. */
static void test_nested(void **state)
{
	struct command *c;
	pid_t pid;

	(void)state;
	c = prepare(fmt("d=%s$(sed -n s/0:://p /proc/self/cgroup) && mkdir -p $d/x/y && "
			"echo 0 >$d/x/y/cgroup.procs && echo $$ >$0/a && exec sleep 100",
			fs.path),
		    required);
	assert_int_equal(command_start(c, NULL), 0);
	pid = read_pid("a");
	assert_int_equal(pid, command_pid(c));
	assert_non_null(strstr(cgroup_of(pid), "/x/y"));
	command_close(c);
	assert_int_equal(count_ours(base), 0);
	assert_false(is_dead(pid));
	assert_string_equal(cgroup_of(pid), base + strlen(fs.path));
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A living instance below one that has ended keeps its cgroup. */
static void test_instance_within(void **state)
{
	struct command *outer = prepare("sleep 100 & echo $! >$0/a", required);
	char dir[1024];
	pid_t inner;

	(void)state;
	snprintf(dir, sizeof(dir), "%s%s", fs.path, cgroup_of(command_pid(outer)));
	inner = spawn_instance((struct instance){ .within = dir });
	read_pid("up");
	assert_int_equal(count_ours(dir), 2);
	assert_int_equal(finish(outer), 0);
	command_close(outer);
	assert_int_equal(count_ours(dir), 2);
	assert_string_equal(cgroup_of(read_pid("a")), base + strlen(fs.path));
	assert_string_equal(cgroup_of(inner), base + strlen(fs.path));
	kill(read_pid("a"), SIGKILL);
	command_tree_sweep(fs.path);
	assert_int_equal(count_ours(dir), 2);
	kill(inner, SIGKILL);
	assert_int_equal(waitpid(inner, NULL, 0), inner);
	assert_true(dies(read_pid("waits")));
	assert_true(sweep_to(0));
}

/* --- what a command gets --- */

static void test_environment(void **state)
{
	char *envp[] = { "IBSCOPE_A=1 2", "PATH=/nowhere", NULL };
	struct command_opts o = required;
	int fd, flags;
	FILE *f;

	(void)state;
	setenv("IBSCOPE_B", "3", 1);
	assert_int_equal(run("echo \"$IBSCOPE_A,$IBSCOPE_B\" >$0/a", o), 0);
	assert_string_equal(line_of(fmt("%s/a", root), ""), ",3");
	o.envp = envp;
	assert_int_equal(run("echo \"$IBSCOPE_A,$IBSCOPE_B,$PATH\" >$0/b", o), 0);
	assert_string_equal(line_of(fmt("%s/b", root), ""), "1 2,,/nowhere");
	unsetenv("IBSCOPE_B");
	/* the same files */
	assert_int_equal(run("for i in 0 1 2; do [ /proc/self/fd/$i -ef /proc/$PPID/fd/$i ] || "
			     "exit 1; done; ls /proc/self/fd >$0/fds",
			     required),
			 0);
	f = fopen(fmt("%s/fds", root), "r");
	while (fscanf(f, "%d", &fd) == 1) {
		flags = fcntl(fd, F_GETFD);
		/* the last one is the directory that ls reads */
		assert_true((flags >= 0 && !(flags & FD_CLOEXEC)) || fscanf(f, "%d", &fd) == EOF);
	}
	fclose(f);
}

/* A process group of its own on a terminal, and with it the terminal once it sets modes. */
static void process_groups(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), tty;
	struct command *c;

	CHECK(setsid() > 0);
	CHECK(!run("cut -d ' ' -f 5 /proc/self/stat >$0/pgrp", required));
	CHECK(read_pid("pgrp") == getpgrp());
	CHECK(!unlink(fmt("%s/pgrp", root)));
	CHECK(!grantpt(master) && !unlockpt(master));
	tty = open(ptsname(master), O_RDWR); /* becomes our terminal */
	CHECK(tty >= 0 && tcgetpgrp(tty) == getpgrp());
	c = prepare("stty -echo </dev/tty && cut -d ' ' -f 5 /proc/self/stat >$0/pgrp", required);
	CHECK(c);
	CHECK(!finish(c));
	CHECK(read_pid("pgrp") == command_pid(c));
	CHECK(tcgetpgrp(tty) == getpgrp());
	command_close(c);
}

static void test_process_groups(void **state)
{
	(void)state;
	in_child(process_groups);
}

static void on_signal(int sig)
{
	(void)sig;
}

#define BIT(sig) (1ULL << ((sig)-1))

static unsigned long long status_mask(const char *path, const char *key)
{
	return strtoull(line_of(path, key), NULL, 16);
}

static void signals(void)
{
	struct command_signals before;
	struct command_opts o = required;
	unsigned long long ignored;
	char status[128];
	sigset_t set, now;

	snprintf(status, sizeof(status), "%s/status", root);
	signal(SIGHUP, SIG_IGN); /* as nohup(1) does */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	CHECK(!sigprocmask(SIG_SETMASK, &set, NULL));
	command_signals_get(&before);
	ignored = status_mask("/proc/self/status", "SigIgn:\t"); /* also what our shell ignores */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	signal(SIGTERM, on_signal);
	sigaddset(&set, SIGINT);
	CHECK(!sigprocmask(SIG_SETMASK, &set, NULL));

	CHECK(!run("exec cat /proc/self/status >$0/status", o));
	CHECK(!status_mask(status, "SigBlk:\t"));
	CHECK(status_mask(status, "SigIgn:\t") == (ignored | BIT(SIGUSR1)));
	o.signals = &before;
	CHECK(!run("exec cat /proc/self/status >$0/status", o));
	CHECK(status_mask(status, "SigBlk:\t") == BIT(SIGUSR2));
	CHECK(status_mask(status, "SigIgn:\t") == ignored);

	CHECK(!sigprocmask(SIG_SETMASK, NULL, &now));
	CHECK(sigismember(&now, SIGINT) && sigismember(&now, SIGUSR2));
	CHECK(!sigismember(&now, SIGTERM));
}

static void test_signals(void **state)
{
	(void)state;
	in_child(signals);
}

/* --- hosts that give no cgroup --- */

static void check_without(int want)
{
	struct err e = { "" }, same = { "" };
	char *argv[] = { "true", NULL };
	struct command_opts o = { .argv = argv, .cgroup = COMMAND_CGROUP_REQUIRE };
	struct command *c = NULL;

	CHECK(command_prepare(&o, &c, &e) == want);
	CHECK(!c);
	printf("%s\n", e.text);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	c = prepare("exec sleep 100", (struct command_opts){ 0 });
	CHECK(c);
	CHECK(!command_cgroup_id(c));
	CHECK(command_cgroup_error(c, &same) == want);
	CHECK(!strcmp(e.text, same.text));
	CHECK(!command_start(c, NULL));
	CHECK(!command_ended(c));
	CHECK(!kill(command_pid(c), SIGKILL));
	CHECK(!command_wait(c, NULL));
	command_close(c);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	CHECK(run("exit 5", (struct command_opts){ 0 }) == 5 << 8);
}

static void not_mounted(void)
{
	own_mounts();
	CHECK(!umount2(fs.path, MNT_DETACH));
	check_without(-EOPNOTSUPP);
}

static void read_only(void)
{
	own_mounts();
	CHECK(!mount(NULL, fs.path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL));
	check_without(-EACCES);
}

static void unprivileged(void)
{
	CHECK(!setgid(65534) && !setuid(65534));
	check_without(-EACCES);
}

static void test_without_cgroup(void **state)
{
	(void)state;
	in_child(not_mounted);
	in_child(read_only);
	in_child(unprivileged);
}

/* A delegated cgroup, as systemd gives to users. */
static void delegated(void)
{
	struct command *c;
	char *procs;

	CHECK(!chown(empty, 65534, 65534));
	procs = strdup(fmt("%s/cgroup.procs", empty));
	CHECK(!chown(procs, 65534, 65534));
	free(procs);
	CHECK(move_self(empty));
	CHECK(!setgid(65534) && !setuid(65534));
	c = prepare("sleep 0.2 & exit 6", required);
	CHECK(c);
	CHECK(!strncmp(cgroup_of(command_pid(c)), empty + strlen(fs.path),
		       strlen(empty) - strlen(fs.path)));
	CHECK(finish(c) == 6 << 8);
	command_close(c);
	CHECK(!count_ours(empty));
}

/* Children of threaded cgroups take no processes. */
static void threaded(void)
{
	struct command *c;

	CHECK(write_file(fmt("%s/cgroup.type", empty), "threaded"));
	CHECK(move_self(empty));
	c = prepare("sleep 0.2 & cat /proc/self/cgroup >$0/a", required);
	CHECK(c);
	CHECK(!strncmp(cgroup_of(command_pid(c)), "/ibscope-", 9));
	CHECK(!finish(c));
	command_close(c);
	CHECK(!count_ours(empty));
}

static void descendants_limit(void)
{
	CHECK(write_file(fmt("%s/cgroup.max.descendants", empty), "0"));
	CHECK(move_self(empty));
	CHECK(!run("cat /proc/self/cgroup >$0/a; sleep 100 & echo $! >$0/b", required));
	CHECK(!strncmp(line_of(fmt("%s/a", root), "0::"),
		       fmt("%s/ibscope-", base + strlen(fs.path)),
		       strlen(base) - strlen(fs.path) + 9));
	CHECK(!strcmp(cgroup_of(read_pid("b")), empty + strlen(fs.path)));
	kill(read_pid("b"), SIGKILL);
}

static void in_empty(void (*work)(void))
{
	assert_int_equal(mkdir(empty, 0755), 0);
	in_child(work);
	while (rmdir(empty) && errno == EBUSY) /* what survived in it */
		nap_ms(10);
	assert_int_equal(access(empty, F_OK), -1);
}

static void test_places(void **state)
{
	(void)state;
	in_empty(delegated);
	in_empty(descendants_limit);
	in_empty(threaded);
}

#define REFUSE(nr)                                       \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)

/* Seccomp filters of older container runtimes, and kernels before v5.3. */
static void old_kernel(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		REFUSE(SYS_clone3),
		REFUSE(SYS_pidfd_open),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };
	struct command *c;
	char path[1024];
	int status;

	CHECK(!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	CHECK(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog));
	c = prepare("cat /proc/self/cgroup >$0/a; exit 7", required);
	CHECK(c);
	CHECK(command_cgroup_id(c));
	CHECK(command_pidfd(c) == -1);
	snprintf(path, sizeof(path), "%s", cgroup_of(command_pid(c)));
	CHECK(strstr(path, "/ibscope-"));
	CHECK(!command_start(c, NULL));
	while (!command_ended(c))
		nap_ms(1);
	CHECK(!command_wait(c, &status) && status == 7 << 8);
	CHECK(!strcmp(line_of(fmt("%s/a", root), "0::"), path));
	command_close(c);
}

static void test_old_kernel(void **state)
{
	(void)state;
	in_child(old_kernel);
}

static int open_root(void **state)
{
	return new_root(state) || chmod(root, 0777);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_inside),	    TEST(test_exec_failure),   TEST(test_status),
		TEST(test_leaks),	    TEST(test_no_start),       TEST(test_sweep),
		TEST(test_sweep_pidns),	    TEST(test_survive),	       TEST(test_nested),
		TEST(test_instance_within), TEST(test_environment),    TEST(test_process_groups),
		TEST(test_signals),	    TEST(test_without_cgroup), TEST(test_places),
		TEST(test_old_kernel),
	};
	const char *before;
	int ret;

	if (cgroup_mode_detect("", &fs, NULL) || !*fs.path) {
		printf("no cgroup v2 is mounted here\n");
		return 77;
	}
	if (strcmp(fs.inner, "/") || geteuid()) {
		printf("needs root, and all of cgroup v2\n");
		return 77;
	}
	before = strdup(fmt("%s%s", fs.path, cgroup_of(getpid())));
	snprintf(base, sizeof(base), "%s/test-command-%d", fs.path, getpid());
	snprintf(empty, sizeof(empty), "%.400s/empty", base);
	if (mkdir(base, 0755) || !move_self(base)) {
		printf("%s: %s; cgroup v2 is not writable here\n", base, strerror(errno));
		rmdir(base);
		return 77;
	}
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	if (!move_self(before) || rmdir(base))
		perror(base);
	free((char *)before);
	return ret;
}
