// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "job.h"

#include "base/intern.h"

#include <sys/wait.h>

#define SKEW_S	   10 /* maximum distance between the starts of ranks of a job */
#define GAPS_SHOWN 10

struct one {
	char *name;
	char host[65], job[64];
	__u64 realtime_ns, monotonic_ns;
	__u32 job_ranks;
};

struct trace_job {
	struct one *one;
	size_t n, room;
	struct u64_map rank_in; /* rank to the recording that has it */
	__u32 *ranks;		/* the keys of rank_in */
	size_t n_ranks, ranks_room, n_out;
	bool warned_job, warned_skew;
};

struct trace_job *trace_job_new(void)
{
	return xcalloc(1, sizeof(struct trace_job));
}

static double apart_s(const struct one *a, const struct one *b)
{
	return a->realtime_ns < b->realtime_ns ? (b->realtime_ns - a->realtime_ns) / 1e9
					       : (a->realtime_ns - b->realtime_ns) / 1e9;
}

/* All jobs number their ranks from 0, so compare the id and size of the jobs. */
static bool same_job(const struct one *a, const struct one *b)
{
	return a->job_ranks == b->job_ranks && !strcmp(a->job, b->job);
}

static void compare(struct trace_job *j, const struct one *a, const struct one *b)
{
	if (!a->job_ranks || !b->job_ranks)
		return;
	if (!same_job(a, b) && !j->warned_job) {
		j->warned_job = true;
		log_warn("%s belongs to MPI job '%s' with %u ranks, %s to '%s' with %u: they are "
			 "added up anyway",
			 b->name, b->job, b->job_ranks, a->name, a->job, a->job_ranks);
	} else if (same_job(a, b) && !j->warned_skew && a->realtime_ns && b->realtime_ns &&
		   apart_s(a, b) > SKEW_S) {
		j->warned_skew = true;
		log_warn("recordings of one job start %.0f s apart, %s of host %s and %s of host "
			 "%s: "
			 "the clocks of their hosts differ, or ranks started late; times are not "
			 "adjusted",
			 apart_s(a, b), a->name, a->host, b->name, b->host);
	}
}

/* Return: the earlier recording that is the same, or NULL. */
static const struct one *duplicate(const struct trace_job *j, const struct one *new,
				   const struct task_rank *ranks, size_t n)
{
	for (size_t i = 0; i < j->n; i++)
		if (new->monotonic_ns && j->one[i].monotonic_ns == new->monotonic_ns &&
		    j->one[i].realtime_ns == new->realtime_ns &&
		    !strcmp(j->one[i].host, new->host)) {
			log_warn("%s is the same recording as %s: left out", new->name,
				 j->one[i].name);
			return &j->one[i];
		}
	for (size_t i = 0; i < n; i++) {
		__u32 in = u64_map_get(&j->rank_in, ranks[i].rank);

		if (in == U64_MAP_NONE || !same_job(&j->one[in], new))
			continue;
		log_warn("%s: rank %u is already in %s: left out", new->name, ranks[i].rank,
			 j->one[in].name);
		return &j->one[in];
	}
	return NULL;
}

static void warn_of_deaths(const struct one *o, const struct task_rank *ranks, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int status = ranks[i].status;

		if (!ranks[i].ended || !status)
			continue;
		if (WIFSIGNALED(status))
			log_warn("%s: rank %u of host %s was killed by signal %d", o->name,
				 ranks[i].rank, o->host, WTERMSIG(status));
		else
			log_warn("%s: rank %u of host %s failed with exit status %d", o->name,
				 ranks[i].rank, o->host, WEXITSTATUS(status));
	}
}

bool trace_job_add(struct trace_job *j, const char *name, const struct trace_info *info,
		   const struct tasks *tasks)
{
	struct one new = { .name = xstrdup(name),
			   .realtime_ns = info->realtime_ns,
			   .monotonic_ns = info->monotonic_ns,
			   .job_ranks = info->job_ranks };
	size_t n;
	const struct task_rank *ranks = tasks_ranks(tasks, &n);

	snprintf(new.host, sizeof(new.host), "%s", info->host);
	snprintf(new.job, sizeof(new.job), "%s", info->job);
	if (duplicate(j, &new, ranks, n)) {
		free(new.name);
		j->n_out++;
		return false;
	}
	if (j->n)
		compare(j, &j->one[0], &new);
	warn_of_deaths(&new, ranks, n);
	for (size_t i = 0; i < n; i++) {
		if (u64_map_get(&j->rank_in, ranks[i].rank) == U64_MAP_NONE) {
			array_reserve(j->ranks, j->ranks_room, j->n_ranks + 1);
			j->ranks[j->n_ranks++] = ranks[i].rank;
		}
		u64_map_put(&j->rank_in, ranks[i].rank, j->n);
	}
	array_reserve(j->one, j->room, j->n + 1);
	j->one[j->n++] = new;
	return true;
}

static int compare_ranks(const void *a, const void *b)
{
	const __u32 x = *(const __u32 *)a, y = *(const __u32 *)b;

	return x < y ? -1 : x > y;
}

/* The recording says how many ranks there were, up to 4 billion: so go from one known rank to the next. */
bool trace_job_complete(struct trace_job *j)
{
	__u32 ranks = j->n && j->n_ranks ? j->one[0].job_ranks : 0, missing = 0, shown = 0,
	      next = 0;
	char text[256] = "";
	size_t at = 0;

	if (j->n_ranks)
		qsort(j->ranks, j->n_ranks, sizeof(*j->ranks), compare_ranks);
	for (size_t i = 0; i <= j->n_ranks && next < ranks; i++) {
		__u32 end = i < j->n_ranks && j->ranks[i] < ranks ? j->ranks[i] : ranks;

		if (end > next) {
			missing += end - next;
			if (shown++ < GAPS_SHOWN)
				at += snprintf(text + at, sizeof(text) - at,
					       end - next > 1 ? "%s%u-%u" : "%s%u", at ? "," : "",
					       next, end - 1);
		}
		next = end + 1 ?: end;
	}
	if (missing)
		log_warn("%u of %u ranks of the job are missing from the recordings: %s%s", missing,
			 ranks, text, shown > GAPS_SHOWN ? ",.." : "");
	return !missing && !j->n_out;
}

size_t trace_job_ranks(const struct trace_job *j)
{
	return j->n_ranks;
}

void trace_job_free(struct trace_job *j)
{
	if (!j)
		return;
	for (size_t i = 0; i < j->n; i++)
		free(j->one[i].name);
	free(j->one);
	free(j->ranks);
	u64_map_free(&j->rank_in);
	free(j);
}
