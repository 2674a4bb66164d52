/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A command to measure, in its own v2 cgroup, which all its descendants share. It waits before
 * exec, so that a sampler can select the cgroup before the command's first instruction.
 */
#ifndef IBSCOPE_COMMAND_H
#define IBSCOPE_COMMAND_H

#include <signal.h>
#include "base/std.h"
#include <sys/types.h>

struct command;
struct err;

enum command_cgroup {
	COMMAND_CGROUP_TRY, /* use a cgroup if possible */
	COMMAND_CGROUP_REQUIRE,
	COMMAND_CGROUP_NONE,
};

/* The original signal state, to be passed to the command. */
struct command_signals {
	sigset_t mask, ignored;
};

struct command_opts {
	char *const *argv; /* ends with NULL; argv[0] is searched in PATH */
	char *const *envp; /* NULL: our environment */
	enum command_cgroup cgroup;
	/* NULL: none blocked, SIGPIPE default, others ignored if we ignore them */
	const struct command_signals *signals;
};

/* Fill @s; main() calls it before it blocks or ignores any signal. */
void command_signals_get(struct command_signals *s);

/**
 * command_prepare() - create the cgroup, and in it the process that will become the command
 * @opts: only read during the call
 *
 * The cgroup is created in our own one, else in the nearest ancestor that allows it, else at the
 * top of the mount. Remains of crashed instances are removed first, see command_tree_sweep(). The
 * process has our terminal and files. It is killed if we die before command_start().
 *
 * Return: 0; with @e set
 * -EINVAL  no command given
 * -EAGAIN, -ENOMEM, -EMFILE and so on  cannot create a process
 * and with COMMAND_CGROUP_REQUIRE the errors of command_cgroup_error().
 */
int command_prepare(const struct command_opts *opts, struct command **out, struct err *e);

/* The cgroup's id; 0 if there is none, so that forks must be followed from command_pid(). */
uint64_t command_cgroup_id(const struct command *c);

/**
 * command_cgroup_error() - why there is no cgroup
 *
 * Return: 0 if there is one, or none was requested; else with @e set
 * -EOPNOTSUPP  no cgroup v2 mounted, or only threaded ones
 * -EACCES      no permission, or mounted read-only
 * or another errno of mkdir() in cgroupfs: -EAGAIN is cgroup.max.descendants or cgroup.max.depth.
 */
int command_cgroup_error(const struct command *c, struct err *e);

pid_t command_pid(const struct command *c);

/* Readable once the command has exited; -1 if seccomp blocks pidfds: command_ended(). */
int command_pidfd(const struct command *c);

/*
 * Forward a signal to the command, and to its process group if it has its own; async-signal-safe.
 * @by_terminal: the terminal sent it to our process group
 */
void command_pass_on(const struct command *c, int sig, bool by_terminal);

/* True if the command has exited. Does not wait. */
bool command_ended(const struct command *c);

/**
 * command_start() - let the command exec, and wait until it has
 *
 * On a terminal the command gets its own process group, see command_terminal.h: ^C goes to us,
 * until the command reads from the terminal.
 *
 * Return: 0, even if a signal killed it first; or with @e set the error of exec. A shell then exits
 * with 127 for -ENOENT and 126 for others.
 */
int command_start(struct command *c, struct err *e);

/**
 * command_wait() - wait for the command, not for its descendants
 * @status: as of waitpid()
 *
 * Return: 0, also when called again; -EINTR; -ECHILD if SIGCHLD is ignored.
 */
int command_wait(struct command *c, int *status);

/**
 * command_close() - remove the cgroup and free @c, which may be NULL
 *
 * Kills a command that was not started. Processes still running are moved to our cgroup at
 * command_prepare(), without waiting for them. If they cannot be moved, the cgroup stays, with a
 * warning; command_tree_sweep() removes it after they have exited.
 */
void command_close(struct command *c);

#endif
