// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* record --per-rank: the ranks of an MPI job, one recording for each node. */
#include "record_private.h"

#include "base/exit_status.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS 100 /* poll the command this often if there is no pidfd */

/* Replace %h, %r and %% in @pattern; the caller frees the result. NULL: unknown letter after %. */
static char *expand(const char *pattern, const char *host, __u32 rank)
{
	size_t size = strlen(pattern) * (strlen(host) + 10) + 1;
	char *out = xcalloc(1, size), *to = out;

	for (; *pattern; pattern++) {
		if (*pattern != '%')
			*to++ = *pattern;
		else if (*++pattern == 'h')
			to = stpcpy(to, host);
		else if (*pattern == 'r')
			to += sprintf(to, "%u", rank);
		else if (*pattern == '%')
			*to++ = '%';
		else {
			free(out);
			return NULL;
		}
	}
	return out;
}

static int name_output(struct record *r, struct err *err)
{
	const char *pattern = r->out.path ?: RECORD_RANK_PATH;
	struct utsname uts;

	if (output_to_stdout(&r->out))
		return 0;
	uname(&uts);
	r->rank_path = expand(pattern, uts.nodename, r->rank.rank);
	if (!r->rank_path)
		return err_set(err, -EINVAL,
			       "-o %s: with --per-rank, '%%' must be part of %%h (host), %%r "
			       "(rank) or %%%%",
			       pattern);
	if (!strstr(pattern, "%h") && !strstr(pattern, "%r") && r->rank.locals < r->rank.ranks)
		return err_set(err, -EINVAL,
			       "-o %s: all nodes would write the same file; put %%h (host) or %%r "
			       "(rank) in its name",
			       pattern);
	r->out.path = r->rank_path;
	return 0;
}

int record_rank_prepare(struct record *r, struct err *err)
{
	int ret;

	if (!r->per_rank)
		return 0;
	if (!r->sampling.argv)
		return err_set(err, -EINVAL,
			       "--per-rank: put the program of the MPI job after '--': mpirun -n 4 "
			       "ibscope record --per-rank -- PROGRAM");
	ret = mpi_rank_find(environ, &r->rank, err);
	if (ret == -ENOENT)
		return err_set(err, -EINVAL,
			       "--per-rank: no rank of Open MPI, MPICH or Slurm in the "
			       "environment; start ibscope with mpirun, mpiexec or srun");
	return ret ?: name_output(r, err);
}

bool record_rank_follows(const struct record *r)
{
	return r->per_rank && r->rank.local;
}

/* --- a rank that is not the first on its node */

static struct command *followed;

static void pass_on(int sig, siginfo_t *info, void *context)
{
	(void)context;
	command_pass_on(followed, sig, info->si_code > 0);
}

static void wait_for_end(struct record *r, struct command *c, int fd)
{
	struct pollfd fds[] = { { .fd = command_pidfd(c), .events = POLLIN },
				{ .fd = fd, .events = POLLIN } };

	while (!command_ended(c)) {
		if (poll(fds, 2, fds[0].fd < 0 ? TICK_MS : -1) <= 0 || !fds[1].revents)
			continue;
		fds[1].fd = -1;
		if (!rank_wait(fd))
			log_warn("rank %u is no longer sampled: the first rank of this node was "
				 "killed",
				 r->rank.rank);
	}
}

int record_rank_follow(struct record *r)
{
	const struct sigaction pass = { .sa_sigaction = pass_on,
					.sa_flags = SA_RESTART | SA_SIGINFO };
	const struct command_opts opts = { .argv = r->sampling.argv,
					   .cgroup = COMMAND_CGROUP_NONE,
					   .signals = &r->sampling.signals };
	struct err err = { "" };
	int fd, *status = &r->rank_status, ret = command_prepare(&opts, &followed, &err);

	if (ret) {
		log_error("%s", err.text);
		return EXIT_NOT_RUN;
	}
	fd = rank_join(&r->rank, command_pid(followed), r->regions_dir, &err);
	if (fd >= 0 && rank_wait(fd))
		log_info("rank %u is sampled by the first rank of this node", r->rank.rank);
	else
		log_warn("rank %u is not sampled: %s", r->rank.rank,
			 fd < 0 ? err.text : "the first rank of this node failed");
	sigaction(SIGINT, &pass, NULL);
	sigaction(SIGTERM, &pass, NULL);
	ret = command_start(followed, &err);
	if (ret) {
		log_error("%s", err.text);
		*status = (ret == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_RUN) << 8;
	} else {
		wait_for_end(r, followed, fd);
		command_wait(followed, status);
	}
	if (fd >= 0) {
		rank_leave(fd, *status);
		*r->regions_dir = 0; /* the first rank removes it */
	}
	command_close(followed);
	return WIFSIGNALED(*status) ? 128 + WTERMSIG(*status) : WEXITSTATUS(*status);
}

/* --- the first rank of a node */

int record_rank_meet(struct record *r, struct err *err)
{
	const struct rank_member *m;
	size_t n;
	int ret;

	if (!r->per_rank || r->rank.locals == 1)
		return 0;
	ret = rank_meeting_open(&r->rank, &r->meeting, err);
	if (ret)
		return ret;
	m = rank_meeting_members(r->meeting, &n);
	r->rank_pids = xcalloc(n + 1, sizeof(*r->rank_pids));
	for (size_t i = 0; i < n; i++)
		r->rank_pids[i] = m[i].pid;
	r->sampling.ranks = r->rank_pids;
	r->sampling.n_ranks = n;
	return 0;
}

static int put_rank(struct record *r, __u32 pid, __u32 rank, const int *status, struct err *err)
{
	const struct trace_event ev = {
		.kind = TRACE_RANK,
		.time = r->capture.until,
		.rank = { pid, rank, status != NULL, status ? *status : 0 },
	};

	return output_event(r->capture.output, &ev, err);
}

int record_put_ranks(struct record *r, struct err *err)
{
	const struct rank_member *m = NULL;
	size_t n = 0;
	int ret;

	if (!r->per_rank)
		return 0;
	if (r->meeting)
		m = rank_meeting_members(r->meeting, &n);
	ret = put_rank(r, command_pid(session_command(r->session)), r->rank.rank, NULL, err);
	for (size_t i = 0; i < n && !ret; i++)
		ret = put_rank(r, m[i].pid, m[i].rank, NULL, err);
	return ret;
}

static int put_end(struct record *r, __u32 pid, __u32 rank, int status, struct err *err)
{
	if (status && !r->rank_failed) {
		if (WIFSIGNALED(status))
			log_warn("rank %u was killed by signal %d: recording ends on this node",
				 rank, WTERMSIG(status));
		else
			log_warn("rank %u failed with exit status %d: recording ends on this node",
				 rank, WEXITSTATUS(status));
	}
	r->rank_failed |= status != 0;
	return put_rank(r, pid, rank, &status, err);
}

void record_rank_end(struct record *r)
{
	struct command *own = session_command(r->session);

	if (r->per_rank && own && command_ended(own))
		command_wait(own, &r->rank_status);
}

void record_rank_raise(const struct record *r)
{
	const struct rlimit no_core = {};
	sigset_t set;

	if (!r->per_rank || !WIFSIGNALED(r->rank_status))
		return;
	setrlimit(RLIMIT_CORE, &no_core);
	signal(WTERMSIG(r->rank_status), SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, WTERMSIG(r->rank_status));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(WTERMSIG(r->rank_status));
}

int record_ended_ranks(struct record *r, struct err *err)
{
	struct command *own = session_command(r->session);
	const struct rank_member *m;
	int ret = 0;

	if (!r->per_rank)
		return 0;
	if (!r->rank_ended && command_ended(own)) {
		r->rank_ended = true;
		if (!command_wait(own, &r->rank_status))
			ret = put_end(r, command_pid(own), r->rank.rank, r->rank_status, err);
	}
	while (!ret && r->meeting && (m = rank_meeting_ended(r->meeting))) {
		/* only SIGKILL ends a rank without a status */
		ret = put_end(r, m->pid, m->rank, m->has_status ? m->status : SIGKILL, err);
	}
	return ret;
}
