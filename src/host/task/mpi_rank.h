/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds the rank of a process in an MPI job, from the environment set by its launcher. */
#ifndef IBSCOPE_MPI_RANK_H
#define IBSCOPE_MPI_RANK_H

#include "base/std.h"

struct mpi_rank {
	const char *launcher; /* "Open MPI", "MPICH" or "Slurm" */
	__u32 rank, ranks;    /* in the job */
	__u32 local, locals;  /* on this node: the first one is 0 */
	char job[64];	      /* the same in all ranks; "": not provided by the launcher */
	int launcher_fd;      /* inherited socket to the launcher; -1: none */
};

/**
 * mpi_rank_find() - read the rank from an environment
 * @env: as environ(7), ends with NULL
 *
 * Return: 0; -ENOENT if no launcher set it; -EINVAL with @err for values that contradict each other.
 */
int mpi_rank_find(char *const *env, struct mpi_rank *out, struct err *err);

#endif
