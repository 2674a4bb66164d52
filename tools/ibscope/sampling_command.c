// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* `-- COMMAND`: what is measured, or how long. */
#include "sampling_private.h"

#include "cmd.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_MAX_MS 2000 /* for a command that was told to end */

int sampling_cut_command(struct sampling *s, int argc, char **argv, struct err *err)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--"))
			continue;
		if (i + 1 == argc)
			return err_set(err, -EINVAL, "a command is expected behind '--'");
		s->argv = argv + i + 1;
		argv[i] = NULL;
		return i;
	}
	return argc;
}

/* Something else says what is measured; the command says only how long. */
static bool measures_others(const struct sampling *s)
{
	const struct selection *sel = &s->opts.sel;

	return s->all || sel->processes.n || sel->threads.n || s->n_cgroups || s->n_containers;
}

int sampling_prepare_command(struct sampling *s, struct err *err)
{
	const struct command_opts opts = {
		.argv = s->argv,
		.cgroup = measures_others(s) ? COMMAND_CGROUP_NONE : COMMAND_CGROUP_TRY,
		.signals = &s->signals,
	};

	return s->argv ? command_prepare(&opts, &s->command, err) : 0;
}

void sampling_select_command(struct sampling *s)
{
	struct selection *sel = &s->opts.sel;
	const char *v1 = s->opts.cgroup_controller;
	struct err why = { "cgroups are told apart by a v1 hierarchy" };

	if (!s->command || measures_others(s))
		return;
	if (command_cgroup_id(s->command) && !(v1 && *v1)) {
		s->command_cgroup = command_cgroup_id(s->command);
		return;
	}
	command_cgroup_error(s->command, &why);
	log_info("no cgroup for the command (%s): its forks are followed instead", why.text);
	s->pids[0] = command_pid(s->command);
	sel->processes = (struct selected_pids){ .pids = s->pids, .n = 1 };
	sel->follow = true;
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

static void end_command(struct sampling *s)
{
	int status;

	if (!s->command)
		return;
	if (!command_ended(s->command))
		kill(command_pid(s->command), SIGTERM);
	for (int i = 0; i < 100 && !command_ended(s->command); i++)
		usleep(END_MAX_MS * 1000 / 100);
	if (!command_ended(s->command)) {
		log_warn("the command takes no notice of SIGTERM and goes on");
		s->status = 128 + SIGTERM;
		return;
	}
	if (command_wait(s->command, &status))
		return;
	s->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int sampling_end(struct sampling *s, int ret)
{
	if (s->status)
		return s->status;
	end_command(s);
	if (ret)
		return s->usage ? EXIT_USAGE : EXIT_FAILED;
	return s->status;
}
