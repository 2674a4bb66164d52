// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `-- COMMAND`: the command to measure, or to set the duration. */
#include "session.h"
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

int sampling_cut_command(struct sampling *s, int argc, char **argv, struct err *err)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--"))
			continue;
		if (i + 1 == argc)
			return err_set(err, -EINVAL, "missing command after '--'");
		s->argv = argv + i + 1;
		argv[i] = NULL;
		return i;
	}
	return argc;
}

bool sampling_measures_others(const struct sampling *s)
{
	const struct selection *sel = &s->select.sel;

	return s->all || sel->processes.n || sel->threads.n || s->select.n_cgroups ||
	       s->select.n_containers;
}

int sampling_prepare_command(struct sampling *s, struct err *err)
{
	const struct command_opts opts = {
		.argv = s->argv,
		.cgroup = sampling_measures_others(s) || s->n_ranks ? COMMAND_CGROUP_NONE
								    : COMMAND_CGROUP_TRY,
		.signals = &s->signals,
	};

	return s->argv ? command_prepare(&opts, &s->command, err) : 0;
}

void sampling_select_command(struct sampling *s)
{
	const char *v1 = s->opts.cgroup_controller;
	struct err why = { "cgroups are those of a v1 hierarchy" };

	if (!s->command || sampling_measures_others(s))
		return;
	if (command_cgroup_id(s->command) && !(v1 && *v1)) {
		s->command_cgroup = command_cgroup_id(s->command);
		return;
	}
	command_cgroup_error(s->command, &why);
	if (!s->n_ranks)
		log_info("no cgroup for the command (%s): its forks are followed instead",
			 why.text);
	s->n_command_pids = 1 + s->n_ranks;
	s->command_pids = xcalloc(s->n_command_pids, sizeof(*s->command_pids));
	s->command_pids[0] = command_pid(s->command);
	for (size_t i = 0; i < s->n_ranks; i++)
		s->command_pids[1 + i] = s->ranks[i];
	sampling_use_options(s);
}

int sampling_start(struct sampling *s, struct err *err)
{
	int ret = sampler_start(s->sampler, err);

	if (ret || !s->command)
		return ret;
	ret = command_start(s->command, err);
	if (ret) {
		s->status = ret == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN;
		sampler_stop(s->sampler);
	}
	s->command_runs = !ret;
	return ret;
}

int sampling_command_fd(const struct sampling *s)
{
	return s->command ? command_pidfd(s->command) : -1;
}

bool sampling_command_ended(const struct sampling *s)
{
	return s->command && command_ended(s->command);
}

/*
 * Wait for the command to exit. The first signal has only ended sampling, or is ignored if sampling
 * has ended; the second one is passed on. Return: 0, or the signal that the command ignores.
 */
static int wait_for_command(struct sampling *s, bool interrupted)
{
	struct pollfd fds[] = { { .fd = sampling_command_fd(s), .events = POLLIN },
				{ .fd = -1, .events = POLLIN } };
	int left_ms = -1, last = 0;
	struct signalfd_siginfo info;

	fds[1].fd = signals_open(false, NULL);
	while (!command_ended(s->command) && left_ms) {
		poll(fds, 2, TICK_MS);
		left_ms -= left_ms > 0 ? TICK_MS : 0;
		if (read(fds[1].fd, &info, sizeof(info)) != sizeof(info))
			continue;
		if (!interrupted) {
			interrupted = true;
			continue;
		}
		last = info.ssi_signo;
		left_ms = END_MAX_MS;
		command_pass_on(s->command, last, info.ssi_code > 0);
	}
	if (fds[1].fd >= 0)
		close(fds[1].fd);
	return command_ended(s->command) ? 0 : last;
}

int sampling_end(struct sampling *s, bool interrupted, int ret)
{
	int status, sig;

	if (s->status)
		return s->status;
	if (s->command && s->command_runs) {
		sig = wait_for_command(s, interrupted);
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
