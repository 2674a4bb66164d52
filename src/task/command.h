/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A command to measure, in a cgroup v2 of its own, which all its descendants share. It waits before
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
	COMMAND_CGROUP_TRY, /* without one where none can be made */
	COMMAND_CGROUP_REQUIRE,
	COMMAND_CGROUP_NONE,
};

/* What a shell gave us, for the command to get the same. */
struct command_signals {
	sigset_t mask, ignored;
};

struct command_opts {
	char *const *argv; /* ends with NULL; argv[0] is searched in PATH */
	char *const *envp; /* NULL: our environment */
	enum command_cgroup cgroup;
	/* NULL: nothing blocked, SIGPIPE not ignored, the others ignored if we ignore them */
	const struct command_signals *signals;
};

/* Fill @s; main() calls it before it blocks or ignores any signal. */
void command_signals_get(struct command_signals *s);

/**
 * command_prepare() - make the cgroup, and in it the process that will be the command
 * @opts: only read during the call
 *
 * The cgroup is made in our own one, else in the nearest ancestor that takes it, else at the top of
 * the mount. What crashed instances left is removed first, see command_tree_sweep(). The process has our
 * terminal and files. It ends if we die before command_start().
 *
 * Return: 0; with @e set
 * -EINVAL  no command given
 * -EAGAIN, -ENOMEM, -EMFILE and so on  no process can be made
 * and with COMMAND_CGROUP_REQUIRE what command_cgroup_error() has.
 */
int command_prepare(const struct command_opts *opts, struct command **out, struct err *e);

/* The cgroup's id; 0 if there is none, so that forks must be followed from command_pid(). */
uint64_t command_cgroup_id(const struct command *c);

/**
 * command_cgroup_error() - why there is no cgroup
 *
 * Return: 0 if there is one, or none was asked for; else with @e set
 * -EOPNOTSUPP  no cgroup v2 mounted, or only threaded ones
 * -EACCES      no permission, or mounted read-only
 * or another errno of mkdir() in cgroupfs: -EAGAIN is cgroup.max.descendants or cgroup.max.depth.
 */
int command_cgroup_error(const struct command *c, struct err *e);

pid_t command_pid(const struct command *c);

/* Readable once the command has ended. -1 where a seccomp filter hides pidfds: command_ended() */
int command_pidfd(const struct command *c);

/*
 * Send a signal that we got to the command as well, and to its process group if it has one of its own;
 * async-signal-safe.
 * @by_terminal: the terminal sent it to our process group
 */
void command_pass_on(const struct command *c, int sig, bool by_terminal);

/* Has the command ended? Does not wait. */
bool command_ended(const struct command *c);

/**
 * command_start() - let the command exec, and wait until it has
 *
 * On a terminal it has a process group of its own, see command_terminal.h: ^C is for us, until the
 * command reads from the terminal.
 *
 * Return: 0, also if a signal killed it first; or with @e set what exec failed with. A shell then
 * exits with 127 for -ENOENT and 126 for the others.
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
 * A command that was not started is ended. What still runs is moved to the cgroup we were in at
 * command_prepare(), and not waited for. If processes cannot be
 * moved the cgroup stays, with a warning; command_tree_sweep() removes it when they have ended.
 */
void command_close(struct command *c);

#endif
