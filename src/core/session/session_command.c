// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `-- COMMAND`: the command to measure, or to set the duration. */
#include "session_private.h"

#include "base/exit_status.h"
#include "base/signals.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_MAX_MS 2000 /* time for a command to exit after a signal */
#define TICK_MS	   100

int session_prepare_command(struct session *s, struct err *err)
{
	const struct sampling_opts *o = &s->setup->options;
	const struct command_opts opts = {
		.argv = o->argv,
		.cgroup = sampling_measures_others(o) || o->n_ranks ? COMMAND_CGROUP_NONE
								    : COMMAND_CGROUP_TRY,
		.signals = &o->signals,
	};

	return o->argv ? command_prepare(&opts, &s->command, err) : 0;
}

/* Without a cgroup of its own, its process, and those of the commands of other ranks, are followed. */
static void follow_command(struct session *s)
{
	const struct sampling_opts *o = &s->setup->options;

	s->command_pids = xcalloc(1 + o->n_ranks, sizeof(*s->command_pids));
	s->command_pids[0] = command_pid(s->command);
	for (size_t i = 0; i < o->n_ranks; i++)
		s->command_pids[1 + i] = o->ranks[i];
	for_each_event (e, s) {
		struct selection *sel = &e->opts.sel;

		sel->processes = (struct selected_pids){ s->command_pids, 1 + o->n_ranks };
		sel->follow = true;
	}
}

void session_select_command(struct session *s)
{
	const struct sampling_opts *o = &s->setup->options;
	const char *v1 = s->setup->event[0].opts.cgroup_controller;
	struct err why = { "cgroups are those of a v1 hierarchy" };

	if (!s->command || sampling_measures_others(o))
		return;
	if (command_cgroup_id(s->command) && !(v1 && *v1)) {
		s->command_cgroup = command_cgroup_id(s->command);
		return;
	}
	command_cgroup_error(s->command, &why);
	if (!o->n_ranks)
		log_info("no cgroup for the command (%s): its forks are followed instead",
			 why.text);
	follow_command(s);
}

int session_command_fd(const struct session *s)
{
	return s->command ? command_pidfd(s->command) : -1;
}

bool session_command_ended(const struct session *s)
{
	return s->command && command_ended(s->command);
}

void session_take_signal(struct session_signals *signals, int sigfd)
{
	struct signalfd_siginfo info;

	if (read(sigfd, &info, sizeof(info)) == sizeof(info))
		session_signal(signals, info.ssi_signo, info.ssi_code > 0);
}

/*
 * Wait for the command to exit. The first signal has only ended sampling, or is ignored if sampling
 * has ended; later ones are passed on. Return: 0, or the signal that the command ignores.
 */
static int wait_for_command(struct session *s, struct session_signals *signals)
{
	struct pollfd fds[] = { { .fd = session_command_fd(s), .events = POLLIN },
				{ .fd = signals_open(false, NULL), .events = POLLIN } };
	int left_ms = -1, last = 0, n = 1;

	while (!command_ended(s->command) && left_ms) {
		session_take_signal(signals, fds[1].fd);
		if (signals->n > n) {
			n = signals->n;
			last = signals->last;
			left_ms = END_MAX_MS;
			command_pass_on(s->command, last, signals->terminal);
		}
		poll(fds, 2, TICK_MS);
		left_ms -= left_ms > 0 ? TICK_MS : 0;
	}
	if (fds[1].fd >= 0)
		close(fds[1].fd);
	return command_ended(s->command) ? 0 : last;
}

int session_end(struct session *s, struct session_signals *signals, int ret)
{
	int status, sig;

	if (s->status)
		return s->status;
	if (s->command && s->command_runs) {
		sig = wait_for_command(s, signals);
		if (sig)
			log_warn("the command does not exit on %s; it continues",
				 sig == SIGINT ? "SIGINT" : "SIGTERM");
		if (sig)
			s->status = 128 + sig;
		else if (!command_wait(s->command, &status))
			s->status =
				WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
	if (ret)
		return s->usage ? EXIT_USAGE : EXIT_FAILED;
	return s->status;
}
