// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "command.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cgroup/cgroup.h"
#include "command_terminal.h"
#include "command_tree.h"

enum command_state { COMMAND_WAITS, COMMAND_RUNS, COMMAND_ENDED };

struct command {
	enum command_state state;
	char *file;
	pid_t pid; /* 0: not created yet */
	int pidfd;
	int sock; /* to the process, until exec */
	int status;
	struct command_terminal *terminal; /* NULL: none, or not running */

	char name[COMMAND_TREE_NAME];
	int dir, at; /* fds of the cgroup, locked, and of its parent; -1: none */
	int home;    /* our original cgroup; -1: outside the mount */
	uint64_t id;
	int fork_err; /* error of creating a process in any cgroup */
	int why;      /* 0, or the error why there is no cgroup */
	struct err why_text;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* --- the process --- */

void command_signals_get(struct command_signals *s)
{
	struct sigaction sa;
	int sig;

	sigprocmask(SIG_SETMASK, NULL, &s->mask);
	sigemptyset(&s->ignored);
	for (sig = 1; sig < NSIG; sig++) {
		if (!sigaction(sig, NULL, &sa) && sa.sa_handler == SIG_IGN)
			sigaddset(&s->ignored, sig);
	}
}

static bool to_ignore(const struct command_signals *s, int sig, const struct sigaction *now)
{
	if (s)
		return sigismember(&s->ignored, sig) == 1;
	return sig != SIGPIPE && now->sa_handler == SIG_IGN;
}

/* Remove our handlers before unblocking signals: they must not run for the command. */
static void set_signals(const struct command_signals *s)
{
	struct sigaction sa, want = { 0 };
	sigset_t none;
	int sig;

	for (sig = 1; sig < NSIG; sig++) {
		if (sigaction(sig, NULL, &sa))
			continue;
		want.sa_handler = to_ignore(s, sig, &sa) ? SIG_IGN : SIG_DFL;
		sigaction(sig, &want, NULL);
	}
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, s ? &s->mask : &none, NULL);
}

/* Runs after a raw clone3() in a program that may have threads: only async-signal-safe calls. */
static _Noreturn void be_command(const struct command_opts *o, int sock)
{
	ssize_t n;
	char go;
	int err;

	set_signals(o->signals);
	do
		n = recv(sock, &go, 1, 0);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(127);
	execvpe(o->argv[0], o->argv, o->envp ? o->envp : environ);
	err = errno;
	send(sock, &err, sizeof(err), MSG_NOSIGNAL);
	_exit(err == ENOENT ? 127 : 126);
}

/* v5.7: CLONE_INTO_CGROUP creates the process in the cgroup, without migration. */
static pid_t clone_into(int dir, int *pidfd)
{
	struct clone_args args = {
		.flags = CLONE_PIDFD | CLONE_INTO_CGROUP,
		.pidfd = (uintptr_t)pidfd,
		.exit_signal = SIGCHLD,
		.cgroup = dir,
	};

	return syscall(SYS_clone3, &args, sizeof(args));
}

/* @dir: cgroup of the process, or -1. Return: 0 with .pid, .pidfd and .sock, or an errno. */
static int spawn(struct command *c, const struct command_opts *o, int dir)
{
	int sv[2], err, pidfd = -1;
	sigset_t all, old;
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv))
		return -errno;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid = dir >= 0 ? clone_into(dir, &pidfd) : fork();
	if (!pid) {
		close(sv[0]);
		be_command(o, sv[1]);
	}
	err = pid < 0 ? -errno : 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	close(sv[1]);
	if (err) {
		close(sv[0]);
		return err;
	}
	if (dir < 0)
		pidfd = syscall(SYS_pidfd_open, pid, 0); /* v5.3 */
	c->pid = pid;
	c->pidfd = pidfd;
	c->sock = sv[0];
	return 0;
}

static int explain_exec(const struct command *c, int error, struct err *e)
{
	if (error == ENOENT && !strchr(c->file, '/'))
		return err_set(e, -error, "%s: command not found", c->file);
	if (error == ENOENT && !access(c->file, F_OK))
		return err_set(e, -error,
			       "cannot run %s: its interpreter (#! line, or the loader of its "
			       "architecture) does not exist",
			       c->file);
	return err_set(e, -error, "cannot run %s: %s", c->file, strerror(error));
}

int command_start(struct command *c, struct err *e)
{
	ssize_t n;
	int error;

	if (c->state != COMMAND_WAITS)
		return err_set(e, -EALREADY, "%s: already started", c->file);
	c->state = COMMAND_RUNS;
	c->terminal = command_terminal_open(c->pid);
	/* fails if a signal killed it: see command_wait() */
	send(c->sock, "", 1, MSG_NOSIGNAL);
	do
		n = recv(c->sock, &error, sizeof(error), 0);
	while (n < 0 && errno == EINTR);
	close_fd(&c->sock);
	if (n != sizeof(error))
		return 0;
	while (command_wait(c, NULL) == -EINTR)
		;
	return explain_exec(c, error, e);
}

static void release_terminal(struct command *c)
{
	command_terminal_close(c->terminal);
	c->terminal = NULL;
}

int command_wait(struct command *c, int *status)
{
	siginfo_t info;

	if (c->state != COMMAND_ENDED) {
		/* its process group id may be reused once it is reaped */
		if (waitid(P_PID, c->pid, &info, WEXITED | WNOWAIT))
			return -errno;
		release_terminal(c);
		if (waitpid(c->pid, &c->status, 0) < 0)
			return -errno;
		c->state = COMMAND_ENDED;
	}
	if (status)
		*status = c->status;
	return 0;
}

bool command_ended(const struct command *c)
{
	siginfo_t info = { 0 };

	return c->state == COMMAND_ENDED ||
	       waitid(P_PID, c->pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid;
}

pid_t command_pid(const struct command *c)
{
	return c->pid;
}

int command_pidfd(const struct command *c)
{
	return c->pidfd;
}

void command_pass_on(const struct command *c, int sig, bool by_terminal)
{
	if (c->terminal)
		kill(-c->pid, sig);
	else if (c->state == COMMAND_RUNS && !by_terminal)
		kill(c->pid, sig);
}

/* --- the command's cgroup --- */

static int explain_cgroup(struct command *c, int err, const char *where)
{
	struct err *e = &c->why_text;

	switch (err) {
	case -EROFS:
		err_set(e, err,
			"cgroups at %s are mounted read-only, as in most containers; mount them "
			"writable, or run on the host",
			where);
		return -EACCES;
	case -EACCES:
	case -EPERM:
		err_set(e, err,
			"no permission to create a cgroup at %s: %s; run as root or in a delegated "
			"cgroup (systemd-run --user --scope -p Delegate=yes)",
			where, strerror(-err));
		return -EACCES;
	case -EOPNOTSUPP:
		return err_set(
			e, err,
			"%s is threaded, so it cannot have a cgroup for a command; run in another "
			"cgroup",
			where);
	case -EAGAIN:
		return err_set(e, err,
			       "cannot create a cgroup at %s: it or a parent has reached "
			       "cgroup.max.descendants or cgroup.max.depth",
			       where);
	default:
		return err_set(e, err, "cannot create a cgroup at %s: %s", where, strerror(-err));
	}
}

/* Without clone3() (old kernels, seccomp filters): fork and move. */
static int fill_cgroup(struct command *c, const struct command_opts *o)
{
	if (!c->pid && !spawn(c, o, c->dir))
		return 0;
	if (!c->pid)
		c->fork_err = spawn(c, o, -1);
	return c->fork_err ? c->fork_err : command_tree_move(c->pid, c->dir);
}

static int try_at(struct command *c, const struct command_opts *o, const char *path)
{
	int err;

	c->at = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->at < 0)
		return -errno;
	err = command_tree_make(c->at, c->name, &c->dir, &c->id);
	if (!err) {
		err = fill_cgroup(c, o);
		if (!err)
			return 0;
		unlinkat(c->at, c->name, AT_REMOVEDIR);
	}
	close_fd(&c->dir);
	close_fd(&c->at);
	c->id = 0;
	return err;
}

/* Search upwards from our own cgroup, so that its limits and selections apply, too. */
static int find_place(struct command *c, const struct command_opts *o)
{
	char *own, *path, *cut;
	struct cgroup_fs fs;
	int err, swept, first = 0, self;

	err = cgroup_mode_detect("", &fs, &c->why_text);
	if (err)
		return err;
	if (!*fs.path)
		return err_set(&c->why_text, -EOPNOTSUPP,
			       "no cgroup v2 is mounted (mount -t cgroup2 none DIRECTORY)");
	swept = command_tree_sweep(fs.path);
	if (swept > 0)
		log_debug("removed %d cgroups of crashed instances", swept);
	self = open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC);
	own = cgroup_of_process(&fs, self);
	close_fd(&self);
	path = xasprintf("%s%s", fs.path, own ?: "");
	if (own)
		c->home = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(own);
	for (;;) {
		err = try_at(c, o, path);
		if (err && (!first || first == -ENOENT)) /* our own cgroup may have been removed */
			first = explain_cgroup(c, err, path);
		cut = strrchr(path + strlen(fs.path), '/');
		if (!err || !cut || c->fork_err)
			break;
		*cut = 0;
	}
	free(path);
	return err ? first : 0;
}

int command_prepare(const struct command_opts *opts, struct command **out, struct err *e)
{
	struct command *c;
	int err;

	if (!opts->argv || !opts->argv[0] || !*opts->argv[0])
		return err_set(e, -EINVAL, "no command given");
	c = xcalloc(1, sizeof(*c));
	c->pidfd = c->sock = c->dir = c->at = c->home = -1;
	c->file = xstrdup(opts->argv[0]);
	if (opts->cgroup != COMMAND_CGROUP_NONE)
		c->why = find_place(c, opts);
	err = c->fork_err;
	if (!err && c->why && opts->cgroup == COMMAND_CGROUP_REQUIRE) {
		err = command_cgroup_error(c, e);
		goto err_out;
	}
	if (!err && !c->pid)
		err = spawn(c, opts, -1);
	if (err) {
		err_set(e, err, "%s: cannot create a process: %s", c->file, strerror(-err));
		goto err_out;
	}
	*out = c;
	return 0;
err_out:
	command_close(c);
	return err;
}

uint64_t command_cgroup_id(const struct command *c)
{
	return c->id;
}

int command_cgroup_error(const struct command *c, struct err *e)
{
	return c->why ? err_set(e, c->why, "%s", c->why_text.text) : 0;
}

static void leave_cgroup(struct command *c)
{
	int to = c->home >= 0 ? c->home : c->at;
	int err = command_tree_remove(c->at, c->name, c->dir, to);

	if (err)
		log_warn("cannot remove cgroup %s, which has processes: %s; a later run will",
			 c->name, strerror(-err));
}

void command_close(struct command *c)
{
	if (!c)
		return;
	if (c->pid && c->state == COMMAND_WAITS) {
		kill(c->pid, SIGKILL);
		while (command_wait(c, NULL) == -EINTR)
			;
	}
	release_terminal(c);
	if (c->dir >= 0)
		leave_cgroup(c);
	if (c->pid && c->state == COMMAND_RUNS)
		waitpid(c->pid, NULL, WNOHANG);
	close_fd(&c->sock);
	close_fd(&c->pidfd);
	close_fd(&c->dir);
	close_fd(&c->at);
	close_fd(&c->home);
	free(c->file);
	free(c);
}
