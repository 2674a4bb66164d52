/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the files of record. */
#ifndef IBSCOPE_RECORD_PRIVATE_H
#define IBSCOPE_RECORD_PRIVATE_H

#include "capture/capture.h"
#include "task/rank_meeting.h"

struct record {
	struct sampling_opts sampling;
	struct session *session;
	struct output_opts out;
	bool csv, json, per_rank, omp, markers;
	__u64 alloc_bytes;    /* record allocations of so many bytes; 0: none */
	char *probe_file;     /* of the command, that has probes of allocations; NULL: none */
	bool alloc_probes;    /* record what programs report by probes, whatever its size */
	bool code_maps;	      /* record only maps of executable memory */
	struct mpi_rank rank; /* with per_rank */
	char *rank_path;      /* out.path with the rank filled in */
	struct rank_meeting *meeting; /* NULL: this rank is alone on its node, or there is no MPI */
	__u32 *rank_pids;
	char regions_dir[REGIONS_DIR_MAX]; /* of our own command; "": none */
	bool rank_ended;		   /* our own rank, with this status of waitpid() */
	int rank_status;
	bool rank_failed; /* a rank of this node failed, so the launcher will end the job */
	__u64 max_bytes;
	double duration_s; /* 0: until interrupted */

	struct trace_info info;
	struct trace_pmu pmu[TRACE_EVENTS];
	struct trace_topology topology;
	struct memory_range memory[MEMORY_RANGES];
	struct capture capture;
	struct ledger filed[SESSION_EVENTS]; /* sums of the ledgers of earlier files */
	double started, shown;
	double follow_at; /* next check of cgroups and containers */
	__u64 shown_records;
	bool progress;
	double max_loss; /* share of the selected samples */
	struct {
		__u64 lost, kept; /* at the last check */
		bool warned;
	} loss;
};

/* Warn if more than r->max_loss of the samples since the last call was lost. @all: ledger of all files. */
void record_loss_check(struct record *r, const struct ledger *all);
/* Return: 0; -ENOBUFS with @err if more than r->max_loss was lost in total. */
int record_loss_end(const struct record *r, const struct ledger *all, struct err *err);

/* --- --per-rank; without it these functions do nothing */

#define RECORD_RANK_PATH "ibscope.%h.%r.data"

/* Read the rank from the environment, and name the output. Return: 0 or a negative errno with @err. */
int record_rank_prepare(struct record *r, struct err *err);

/* Does another rank of this node record? */
bool record_rank_follows(const struct record *r);

/* Let that rank sample the command, and wait for the command to exit. Return: an exit status. */
int record_rank_follow(struct record *r);

/* Meet the other ranks, before session_open(). Return: 0 or a negative errno with @err. */
int record_rank_meet(struct record *r, struct err *err);

/* Record the rank of each process. Return: 0 or a negative errno with @err. */
int record_put_ranks(struct record *r, struct err *err);

/* Read the exit status of our own rank, which may have ended after recording. */
void record_rank_end(struct record *r);

/* Kill ourselves with the signal that killed our own rank: some launchers distinguish it from an exit status. */
void record_rank_raise(const struct record *r);

/* Record the ranks that ended since the last call. Return: as record_put_ranks(). */
int record_ended_ranks(struct record *r, struct err *err);

/* --- regions of the command */

/* Call before starting the command. Return: 0 or a negative errno with @err. */
int record_regions_prepare(struct record *r, struct err *err);

/* Start to collect regions, and allocations, of our command and of other ranks. Return: 0 or a negative errno with @err. */
int record_regions_begin(struct record *r, struct err *err);

/* Do other options go with --strata? Return: 0 or -EINVAL with @err. */
int record_check_strata(const struct record *r, struct err *err);

/* Prepend a library of ours to a list in the environment of the command. Return: 0 or a negative errno with @err. */
int record_add_library(const char *list, const char *name, struct err *err);

/* --- allocations of the command */

/* Can they be recorded? Call before record_regions_prepare(). Return: 0 or a negative errno with @err. */
int record_allocs_prepare(struct record *r, struct err *err);

/* Listen to probes of the command, or of the selected processes. Return: 0 or a negative errno with @err. */
int record_allocs_begin(struct record *r, struct err *err);

/* Say what was recorded, and what could not be. */
void record_allocs_summary(const struct record *r);

/* Their context is a struct record. */
extern const struct option_row record_options[];
extern const size_t record_n_options;

#endif
