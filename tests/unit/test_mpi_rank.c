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

#define MPICH(rank, ranks, local, locals) \
	"PMI_RANK=" rank, "PMI_SIZE=" ranks, "MPI_LOCALRANKID=" local, "MPI_LOCALNRANKS=" locals

static void refused(char *const *env, const char *want)
{
	struct mpi_rank r;
	struct err err = {};

	assert_int_equal(mpi_rank_find(env, &r, &err), -EINVAL);
	assert_string_equal(err.text, want);
}

/* A rank is below the number of ranks, on the node and in the job; no node has more than the job. */
static void test_limits(void **state)
{
	(void)state;
	check(found(ENV(MPICH("7", "8", "3", "4"))), "MPICH", 7, 8, 3, 4, "");
	check(found(ENV(MPICH("7", "8", "7", "8"))), "MPICH", 7, 8, 7, 8, "");
	refused(ENV(MPICH("8", "8", "3", "4")),
		"rank 8 of 8, and 3 of 4 on this node, as MPICH says in the environment, is "
		"invalid: a rank must be below the number of ranks");
	refused(ENV(MPICH("7", "8", "4", "4")),
		"rank 7 of 8, and 4 of 4 on this node, as MPICH says in the environment, is "
		"invalid: a rank must be below the number of ranks");
	refused(ENV(MPICH("0", "3", "0", "4")),
		"rank 0 of 3, and 0 of 4 on this node, as MPICH says in the environment, is "
		"invalid: a rank must be below the number of ranks");
	check(found(ENV(MPICH("2147483646", "2147483647", "0", "1"))), "MPICH", 2147483646,
	      2147483647, 0, 1, "");
	refused(ENV(MPICH("0", "2147483648", "0", "1")),
		"PMI_SIZE: 2147483648 is out of range: must be from 0 to 2147483647");
}

/* All four variables of a launcher are needed, by their whole names. */
static void test_variables(void **state)
{
	char *all[] = { MPICH("1", "4", "1", "2"), NULL };
	struct mpi_rank r;

	(void)state;
	for (int i = 0; i < 4; i++) {
		char *was = all[i];

		all[i] = (char *)"PMI_RAN=1";
		assert_int_equal(mpi_rank_find(all, &r, NULL), -ENOENT);
		all[i] = (char *)"PMI_RANKS=1";
		assert_int_equal(mpi_rank_find(all, &r, NULL), -ENOENT);
		all[i] = was;
	}
	check(found(all), "MPICH", 1, 4, 1, 2, "");
}

/* The socket to the launcher, if it says which one. */
static void test_launcher_fd(void **state)
{
	(void)state;
	assert_int_equal(found(ENV(MPICH("1", "4", "1", "2"))).launcher_fd, -1);
	assert_int_equal(found(ENV("PMI_FD=6", MPICH("1", "4", "1", "2"))).launcher_fd, 6);
	assert_int_equal(found(ENV("PMI_FD=0", MPICH("1", "4", "1", "2"))).launcher_fd, 0);
	assert_int_equal(found(ENV("PMI_FD=six", MPICH("1", "4", "1", "2"))).launcher_fd, -1);
}

#define STEP(tasks)                                                    \
	"SLURM_PROCID=5", "SLURM_STEP_NUM_TASKS=8", "SLURM_LOCALID=1", \
		"SLURM_STEP_TASKS_PER_NODE=" tasks

/* A script that Slurm has started without a step, and without a number of its node. */
static void test_slurm(void **state)
{
	(void)state;
	check(found(ENV("SLURM_JOB_ID=77", STEP("2,3"))), "Slurm", 5, 8, 1, 2, "77");
	check(found(ENV("SLURM_STEP_ID=2", STEP("2,3"))), "Slurm", 5, 8, 1, 2, "");
	check(found(ENV(STEP("4(x2),3(x2),2"), "SLURM_NODEID=1")), "Slurm", 5, 8, 1, 4, "");
	check(found(ENV(STEP("4(x2),3(x2),2"), "SLURM_NODEID=2")), "Slurm", 5, 8, 1, 3, "");
	check(found(ENV(STEP("4(x2),3(x2),2"), "SLURM_NODEID=4")), "Slurm", 5, 8, 1, 2, "");
	refused(ENV(STEP("4(x2),3"), "SLURM_NODEID=3"),
		"SLURM_STEP_TASKS_PER_NODE=4(x2),3: no number of tasks for node 3");
	refused(ENV(STEP("4(x2);3"), "SLURM_NODEID=2"),
		"SLURM_STEP_TASKS_PER_NODE=4(x2);3: no number of tasks for node 2");
	refused(ENV(STEP("4,3"), "SLURM_NODEID=-1"),
		"SLURM_NODEID: invalid number '-1': must be from 0 to 2147483647, decimal (K, M, G "
		"multiply by 1e3, 1e6, 1e9) or 0x hexadecimal");
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
		cmocka_unit_test(test_launchers),   cmocka_unit_test(test_bad),
		cmocka_unit_test(test_limits),	    cmocka_unit_test(test_variables),
		cmocka_unit_test(test_launcher_fd), cmocka_unit_test(test_slurm),
		cmocka_unit_test(test_processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
