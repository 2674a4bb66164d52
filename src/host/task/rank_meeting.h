/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The ranks of one MPI job on one node. IBS can have only one user, so the first rank collects for
 * all: the others announce their commands to it on a socket, wait until it samples, and report how
 * their commands exited. The socket is abstract, per user and job; it refuses peers of other users.
 */
#ifndef IBSCOPE_RANK_MEETING_H
#define IBSCOPE_RANK_MEETING_H

#include "mpi_rank.h"

#include <sys/types.h>

struct rank_meeting;

#define RANK_REGIONS_MAX 64

/* What the first rank knows about another; `regions` is the argument of rank_join(). */
struct rank_member {
	__u32 rank, pid; /* of its command */
	char regions[RANK_REGIONS_MAX];
	int fd;
	bool ended, has_status;
	int status; /* of waitpid() */
};

/**
 * rank_meeting_open() - wait for the other ranks of this node
 * @own: the first rank of the node
 *
 * Waits until all have announced their commands, at most RANK_WAIT_S.
 *
 * Return: 0 with *out, to be closed; or a negative errno with @err.
 */
int rank_meeting_open(const struct mpi_rank *own, struct rank_meeting **out, struct err *err);

const struct rank_member *rank_meeting_members(const struct rank_meeting *m, size_t *n);

/* Sampling has started: let the commands start. */
void rank_meeting_start(struct rank_meeting *m);

/* Readable when a command has exited; -1 if there is none. */
int rank_meeting_fd(const struct rank_meeting *m);

/* The next member that exited since the last call, or NULL. One that disconnected has no status. */
const struct rank_member *rank_meeting_ended(struct rank_meeting *m);

/* True if all have exited. */
bool rank_meeting_over(const struct rank_meeting *m);

/* Call when sampling has ended, even if it failed. Accepts NULL. */
void rank_meeting_close(struct rank_meeting *m);

/**
 * rank_join() - announce a command to the first rank of the node
 * @pid: of the command, our child, not started yet
 * @regions: directory for its region files, shorter than RANK_REGIONS_MAX; "": none
 *
 * Return: a socket; or a negative errno with @err, after RANK_WAIT_S at most.
 */
int rank_join(const struct mpi_rank *own, pid_t pid, const char *regions, struct err *err);

/* Wait until the command may start, or until sampling ends. Return: false if the first rank is gone. */
bool rank_wait(int fd);

/* The command has exited. If it failed, wait until sampling has ended, but no longer than 5 s. */
void rank_leave(int fd, int status);

#define RANK_WAIT_S 10

#endif
