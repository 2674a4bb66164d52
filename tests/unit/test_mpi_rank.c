// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "task/mpi_rank.h"
#include "trace/tasks.h"

#define ENV(...) ((char *[]){ __VA_ARGS__, NULL })

static struct mpi_rank found(char *const *env)
{
	struct mpi_rank r;
	struct err err = {};

	assert_int_equal(mpi_rank_find(env, &r, &err), 0);
	return r;
}

static void check(struct mpi_rank r, const char *launcher, __u32 rank, __u32 ranks, __u32 local,
		  __u32 locals, const char *job)
{
	assert_string_equal(r.launcher, launcher);
	assert_int_equal(r.rank, rank);
	assert_int_equal(r.ranks, ranks);
	assert_int_equal(r.local, local);
	assert_int_equal(r.locals, locals);
	assert_string_equal(r.job, job);
}

#define OPEN_MPI                                                                            \
	"OMPI_COMM_WORLD_RANK=5", "OMPI_COMM_WORLD_SIZE=8", "OMPI_COMM_WORLD_LOCAL_RANK=1", \
		"OMPI_COMM_WORLD_LOCAL_SIZE=4"
#define SLURM(tasks, node)                                                                   \
	"SLURM_PROCID=5", "SLURM_STEP_NUM_TASKS=8", "SLURM_LOCALID=1",                       \
		"SLURM_STEP_TASKS_PER_NODE=" tasks, "SLURM_NODEID=" node, "SLURM_JOB_ID=77", \
		"SLURM_STEP_ID=2"

static void test_launchers(void **state)
{
	(void)state;
	check(found(ENV("PMIX_NAMESPACE=9", OPEN_MPI)), "Open MPI", 5, 8, 1, 4, "9");
	/* mpirun in a script of Slurm: its variables are those of the script */
	check(found(ENV(SLURM("4(x2)", "0"), OPEN_MPI)), "Open MPI", 5, 8, 1, 4, "");
	check(found(ENV("PMI_RANK=0", "PMI_SIZE=1", "MPI_LOCALRANKID=0", "MPI_LOCALNRANKS=1",
			"PMI_FD=6")),
	      "MPICH", 0, 1, 0, 1, "");
	/* srun --mpi=pmi2 does not say which of the ranks are of this node */
	check(found(ENV("PMI_RANK=5", "PMI_SIZE=8", SLURM("4(x2)", "1"))), "Slurm", 5, 8, 1, 4,
	      "77.2");
	check(found(ENV(SLURM("2,3(x2)", "2"))), "Slurm", 5, 8, 1, 3, "77.2");
	check(found(ENV(SLURM("2,1(x2),3", "3"))), "Slurm", 5, 8, 1, 3, "77.2");
}

static void test_bad(void **state)
{
	struct mpi_rank r;
	struct err err = {};

	(void)state;
	assert_int_equal(mpi_rank_find(ENV("HOME=/", "PMI_RANK=1"), &r, &err), -ENOENT);
	assert_int_equal(mpi_rank_find(ENV(SLURM("4(x", "1")), &r, &err), -EINVAL);
	assert_int_equal(mpi_rank_find(ENV(SLURM("", "0")), &r, &err), -EINVAL);
	assert_int_equal(mpi_rank_find(ENV(SLURM("4(x2),3", "3")), &r, &err), -EINVAL);
	assert_int_equal(mpi_rank_find(ENV(SLURM("1,8", "0")), &r, &err), -EINVAL);
	assert_int_equal(mpi_rank_find(ENV("PMI_RANK=-1", "PMI_SIZE=1", "MPI_LOCALRANKID=0",
					   "MPI_LOCALNRANKS=1"),
				       &r, &err),
			 -EINVAL);
	assert_int_equal(mpi_rank_find(ENV("PMI_RANK=0", "PMI_SIZE=", "MPI_LOCALRANKID=0",
					   "MPI_LOCALNRANKS=1"),
				       &r, &err),
			 -EINVAL);
}

static void rank(struct tasks *t, __u64 time, __u32 tgid, __u32 number, bool ended, int status)
{
	const struct trace_event ev = { .kind = TRACE_RANK,
					.time = time,
					.rank = { tgid, number, ended, status } };

	tasks_add(t, &ev);
}

static void fork_of(struct tasks *t, __u64 time, __u32 tgid, __u32 parent)
{
	const struct trace_event ev = { .kind = TRACE_FORK,
					.time = time,
					.fork = { tgid, tgid, parent, parent } };

	tasks_add(t, &ev);
}

static void test_processes(void **state)
{
	const struct task_rank *ranks;
	struct tasks *t;
	__u32 is;
	size_t n;

	(void)state;
	t = tasks_new();
	rank(t, 100, 10, 3, false, 0);
	rank(t, 100, 20, 4, false, 0);
	fork_of(t, 200, 11, 10);
	fork_of(t, 300, 12, 11);
	fork_of(t, 400, 11, 1); /* the number is taken again, by a process of no rank */
	rank(t, 500, 20, 4, true, 9);

	assert_true(tasks_rank(t, 10, 50, &is) && is == 3);
	assert_true(tasks_rank(t, 11, 250, &is) && is == 3);
	assert_true(tasks_rank(t, 12, 900, &is) && is == 3);
	assert_true(tasks_rank(t, 20, 900, &is) && is == 4);
	assert_false(tasks_rank(t, 11, 450, &is));
	assert_false(tasks_rank(t, 11, 150, &is)); /* not born */
	assert_false(tasks_rank(t, 1, 450, &is));
	ranks = tasks_ranks(t, &n);
	assert_int_equal(n, 2);
	assert_true(ranks[0].rank == 3 && !ranks[0].ended);
	assert_true(ranks[1].rank == 4 && ranks[1].ended && ranks[1].status == 9);
	tasks_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_launchers),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
