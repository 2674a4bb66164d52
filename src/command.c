// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "command.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cgroup_mode.h"
#include "err.h"

#define PREFIX	      "ibscope-" /* PREFIX PID - NUMBER */
#define NAME_TRIES    16
#define DEPTH_MAX     64   /* of what sweeping and removing descend into: one fd a level */
#define REMOVE_MAX_MS 2000 /* for the last processes to be gone */
#define NAP_MAX_MS    50
#define KILL_ROUNDS   100
#define MOVE_ROUNDS   100 /* what is moved may fork meanwhile */
#define DIGITS	      "0123456789"

enum command_state { COMMAND_WAITS, COMMAND_RUNS, COMMAND_ENDED };

struct command {
	enum command_state state;
	char *file;
	pid_t pid; /* 0: not made yet */
	int pidfd;
	int sock; /* to the process until it has exec'd */
	int status;
	bool kill_descendants;

	char name[48];
	int dir, at; /* the cgroup, locked, and where it is; -1 without one */
	int home;    /* the cgroup we were in; -1: not seen from the mount */
	uint64_t id;
	int fork_err; /* no process can be made, in whatever cgroup */
	int why;      /* 0, or why there is no cgroup */
	struct err why_text;
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void nap(unsigned int ms)
{
	struct timespec ts = { .tv_nsec = ms * 1000000L };

	nanosleep(&ts, NULL);
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

/* Handlers go before signals are let in: they are those of the program, not of the command. */
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

/* Made by a bare clone3() in a program that may have threads: only async-signal-safe calls. */
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

/* v5.7: CLONE_INTO_CGROUP; a process is born there, which needs no migration. */
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

/* @dir: the cgroup to be born in, or -1. Return: 0 with .pid, .pidfd and .sock, or an errno. */
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
	/* fails if a signal killed it: command_wait() tells */
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

int command_wait(struct command *c, int *status)
{
	if (c->state != COMMAND_ENDED) {
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

/* --- processes of a cgroup --- */

static int write_at(int dir, const char *file, const char *text)
{
	int fd = openat(dir, file, O_WRONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = write(fd, text, strlen(text)) < 0 ? -errno : 0;
	close(fd);
	return err;
}

typedef int pid_cb(pid_t pid, int arg);

/* All get @cb. Return: how many took it; or the first errno it gave, -ESRCH being no error. */
static int each_pid(int dir, pid_cb *cb, int arg)
{
	int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC), n = 0, first = 0, err, pid;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");

	if (!f) {
		err = -errno;
		close_fd(&fd);
		return err;
	}
	while (fscanf(f, "%d", &pid) == 1) {
		if (!pid) /* of another pid namespace; to write it would move ourselves */
			continue;
		err = cb(pid, arg);
		n += !err;
		if (err && err != -ESRCH && !first)
			first = err;
	}
	fclose(f);
	return first ? first : n;
}

static int move_cb(pid_t pid, int to)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", pid);
	return write_at(to, "cgroup.procs", text);
}

static int kill_cb(pid_t pid, int sig)
{
	return kill(pid, sig) ? -errno : 0;
}

/* --- trees of cgroups --- */

struct walk {
	int at;		  /* where the directory is */
	const char *name; /* its name there */
	int dir;
	int depth;
	int arg;
};

typedef int dir_cb(const struct walk *w);

/* Call @cb for the directories in w->dir. Return: the sum of its results, or its first errno. */
static int each_dir(const struct walk *w, dir_cb *cb)
{
	struct walk sub = { .at = w->dir, .depth = w->depth + 1, .arg = w->arg };
	int fd, sum = 0, first = 0, ret;
	struct dirent *ent;
	DIR *d;

	if (w->depth >= DEPTH_MAX)
		return -ELOOP;
	fd = openat(w->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		ret = -errno;
		close_fd(&fd);
		return ret;
	}
	while ((ent = readdir(d))) {
		sub.name = ent->d_name;
		if (ent->d_type != DT_DIR || !strcmp(sub.name, ".") || !strcmp(sub.name, ".."))
			continue;
		sub.dir = openat(w->dir, sub.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (sub.dir < 0)
			continue; /* gone, or not for us */
		ret = cb(&sub);
		close(sub.dir);
		if (ret > 0)
			sum += ret;
		else if (!first)
			first = ret;
	}
	closedir(d);
	return first ? first : sum;
}

static bool is_ours(const char *name)
{
	const char *s = name + strlen(PREFIX);

	if (strncmp(name, PREFIX, strlen(PREFIX)))
		return false;
	s += strspn(s, DIGITS);
	return isdigit(s[-1]) && *s == '-' && s[1] && !s[1 + strspn(s + 1, DIGITS)];
}

/*
 * A living instance holds the lock. A pid in the name would not tell it apart: the instance may run
 * in another pid namespace, with the same cgroups mounted.
 */
static int lock(int dir)
{
	return flock(dir, LOCK_EX | LOCK_NB) ? -errno : 0;
}

/* Move all processes to the cgroup w->arg, if it is one, and remove all below w->dir. */
static int clear(const struct walk *w);

static int clear_cb(const struct walk *w)
{
	int err;

	if (is_ours(w->name) && lock(w->dir))
		return -EBUSY;
	err = clear(w);
	if (unlinkat(w->at, w->name, AT_REMOVEDIR) && errno != EBUSY && errno != ENOENT && !err)
		err = -errno;
	return err;
}

static int clear(const struct walk *w)
{
	int n = 1, i;

	for (i = 0; i < MOVE_ROUNDS && n > 0 && w->arg >= 0; i++)
		n = each_pid(w->dir, move_cb, w->arg);
	if (n < 0)
		return n;
	n = each_dir(w, clear_cb);
	return n < 0 ? n : 0;
}

/* @to: the cgroup that gets processes which are still there, or -1. */
static int remove_cgroup(int at, const char *name, int dir, int to)
{
	struct walk w = { .at = at, .name = name, .dir = dir, .arg = to };
	unsigned int ms = 1, spent_ms = 0;
	int err;

	for (;;) {
		err = clear(&w);
		if (!unlinkat(at, name, AT_REMOVEDIR) || errno == ENOENT)
			return 0;
		if (errno != EBUSY)
			return -errno;
		/* with nothing to move, an error is a lock of what is about to die */
		if ((err && to >= 0) || spent_ms >= REMOVE_MAX_MS)
			return err ? err : -EBUSY;
		nap(ms);
		spent_ms += ms;
		ms = ms * 2 > NAP_MAX_MS ? NAP_MAX_MS : ms * 2;
	}
}

static int sweep_cb(const struct walk *w)
{
	int n;

	if (is_ours(w->name) && !lock(w->dir))
		return !remove_cgroup(w->at, w->name, w->dir, w->at);
	n = each_dir(w, sweep_cb);
	return n < 0 ? 0 : n;
}

int command_sweep(const char *mount)
{
	struct walk w = { .dir = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC) };
	int n;

	if (w.dir < 0)
		return -errno;
	n = each_dir(&w, sweep_cb);
	close(w.dir);
	return n;
}

static int kill_tree(const struct walk *w)
{
	int n = each_pid(w->dir, kill_cb, SIGKILL), below = each_dir(w, kill_tree);

	if (n < 0 || below < 0)
		return n < 0 ? n : below;
	return n + below;
}

int command_kill(struct command *c)
{
	struct walk w = { .dir = c->dir };
	int err = 0, n = 1, i;

	if (c->state != COMMAND_ENDED && kill(c->pid, SIGKILL))
		err = -errno;
	if (c->dir < 0 || !write_at(c->dir, "cgroup.kill", "1")) /* v5.14 */
		return err;
	write_at(c->dir, "cgroup.freeze", "1"); /* else forks can outrun us; SIGKILL gets through */
	for (i = 0; i < KILL_ROUNDS && n > 0; i++) {
		n = kill_tree(&w);
		if (n > 0)
			nap(1);
	}
	write_at(c->dir, "cgroup.freeze", "0");
	return n < 0 ? n : 0;
}

/* --- the command's cgroup --- */

/* Our cgroup as a path below the mount, "" being its top; NULL if it is outside or not known. */
static char *own_path(const struct cgroup_fs *fs)
{
	size_t size = 0, n = strcmp(fs->inner, "/") ? strlen(fs->inner) : 0;
	char *line = NULL, *path = NULL, *own;
	FILE *f = fopen("/proc/self/cgroup", "re");

	while (f && !path && getline(&line, &size, f) > 0) {
		if (strncmp(line, "0::/", 4))
			continue;
		line[strcspn(line, "\n")] = 0;
		own = line + 3;
		/* "/..": above the root of our cgroup namespace */
		if (strncmp(own, fs->inner, n) || (own[n] && own[n] != '/') ||
		    !strncmp(own, "/..", 3))
			break;
		path = strdup(strcmp(own + n, "/") ? own + n : "");
	}
	if (f)
		fclose(f);
	free(line);
	return path;
}

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
			"no permission to make a cgroup at %s: %s; run as root, or in a delegated "
			"cgroup (systemd-run --user --scope -p Delegate=yes)",
			where, strerror(-err));
		return -EACCES;
	case -EOPNOTSUPP:
		return err_set(
			e, err,
			"%s is threaded, so it takes no cgroup for a command; run in another "
			"cgroup",
			where);
	case -EAGAIN:
		return err_set(e, err,
			       "no cgroup can be made at %s: its or a parent's "
			       "cgroup.max.descendants or cgroup.max.depth is reached",
			       where);
	default:
		return err_set(e, err, "cannot make a cgroup at %s: %s", where, strerror(-err));
	}
}

/* Open and lock what we just made. Return: -ENOENT if a sweep of another instance took it. */
static int hold(struct command *c)
{
	struct stat st, now;

	c->dir = openat(c->at, c->name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->dir < 0)
		return -errno;
	if (lock(c->dir) == -EWOULDBLOCK || fstat(c->dir, &st) ||
	    fstatat(c->at, c->name, &now, 0) || st.st_ino != now.st_ino) {
		close_fd(&c->dir);
		return -ENOENT;
	}
	c->id = st.st_ino;
	return 0;
}

static int make_cgroup(struct command *c)
{
	static unsigned int last;
	int err = -EEXIST, i;

	for (i = 0; i < NAME_TRIES && (err == -EEXIST || err == -ENOENT); i++) {
		snprintf(c->name, sizeof(c->name), PREFIX "%d-%u", getpid(),
			 __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED));
		err = mkdirat(c->at, c->name, 0755) ? -errno : hold(c);
	}
	return err;
}

/* The way for kernels and seccomp filters without clone3() is a fork, and a move. */
static int fill_cgroup(struct command *c, const struct command_opts *o)
{
	if (!c->pid && !spawn(c, o, c->dir))
		return 0;
	if (!c->pid)
		c->fork_err = spawn(c, o, -1);
	return c->fork_err ? c->fork_err : move_cb(c->pid, c->dir);
}

static int try_at(struct command *c, const struct command_opts *o, const char *path)
{
	int err;

	c->at = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->at < 0)
		return -errno;
	err = make_cgroup(c);
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

/* From our own cgroup upwards, so that its limits and selections hold for the command too. */
static int find_place(struct command *c, const struct command_opts *o)
{
	char *own, *path, *cut;
	struct cgroup_fs fs;
	int err, swept, first = 0;

	err = cgroup_mode_detect("", &fs, &c->why_text);
	if (err)
		return err;
	if (!*fs.path)
		return err_set(&c->why_text, -EOPNOTSUPP,
			       "no cgroup v2 is mounted (mount -t cgroup2 none DIRECTORY)");
	swept = command_sweep(fs.path);
	if (swept > 0)
		log_debug("removed %d cgroups of instances that crashed", swept);
	own = own_path(&fs);
	if (asprintf(&path, "%s%s", fs.path, own ? own : "") < 0)
		path = NULL;
	if (path && own)
		c->home = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(own);
	if (!path)
		return err_set(&c->why_text, -ENOMEM, "out of memory");
	for (;;) {
		err = try_at(c, o, path);
		if (err && (!first || first == -ENOENT)) /* we may be in a removed one */
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
	c = calloc(1, sizeof(*c));
	if (!c)
		return err_set(e, -ENOMEM, "out of memory");
	c->pidfd = c->sock = c->dir = c->at = c->home = -1;
	c->kill_descendants = opts->kill_descendants;
	c->file = strdup(opts->argv[0]);
	if (!c->file) {
		err = err_set(e, -ENOMEM, "out of memory");
		goto err_out;
	}
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
		err_set(e, err, "%s: cannot make a process: %s", c->file, strerror(-err));
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
	int err = remove_cgroup(c->at, c->name, c->dir, c->kill_descendants ? -1 : to);

	if (err)
		log_warn("cgroup %s stays with what still runs in it: %s; a later start removes it",
			 c->name, strerror(-err));
}

void command_close(struct command *c)
{
	if (!c)
		return;
	if (c->pid && c->state == COMMAND_WAITS)
		kill(c->pid, SIGKILL);
	if (c->pid && c->kill_descendants)
		command_kill(c);
	if (c->pid && (c->state == COMMAND_WAITS || c->kill_descendants)) {
		while (command_wait(c, NULL) == -EINTR)
			;
	}
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
