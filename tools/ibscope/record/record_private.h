/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files share that record is made of. */
#ifndef IBSCOPE_RECORD_PRIVATE_H
#define IBSCOPE_RECORD_PRIVATE_H

#include "capture/capture.h"
#include "task/rank_meeting.h"

struct record {
	struct sampling sampling;
	struct record *
		second; /* the other event, which has `sampling` and `filed` for itself; NULL: one */
	struct output_opts out;
	bool csv, json, per_rank, omp, markers;
	bool code_maps;		      /* none of memory that is not executable */
	struct mpi_rank rank;	      /* with per_rank */
	char *rank_path;	      /* of `out`, with the rank in it */
	struct rank_meeting *meeting; /* NULL: this rank is alone on its node, or not of MPI */
	__u32 *rank_pids;
	char regions_dir[REGIONS_DIR_MAX]; /* of our own command; "": none */
	bool rank_ended;		   /* our own one, with this status of waitpid() */
	int rank_status;
	bool rank_failed; /* one of this node: the launcher will end the job */
	__u64 max_bytes;
	double duration_s; /* 0: until interrupted */

	struct trace_info info;
	struct trace_pmu pmu[TRACE_EVENTS];
	struct trace_topology topology;
	struct memory_range memory[MEMORY_RANGES];
	struct capture capture;
	struct ledger filed; /* of its event: sum of the ledgers of earlier files */
	double started, shown;
	double follow_at; /* when cgroups and containers are to be looked at again */
	__u64 shown_records;
	bool progress;
	double max_loss; /* of the samples that are selected */
	struct {
		__u64 lost, kept; /* when it was looked at */
		bool warned;
	} loss;
};

/* Twice a second or so: warn if more than r->max_loss is being lost. @all: of all files. */
void record_loss_check(struct record *r, const struct ledger *all);
/* Return: 0; -ENOBUFS with @err if it was more in the whole. */
int record_loss_end(const struct record *r, const struct ledger *all, struct err *err);

/* --- with --per-rank; the others do nothing without */

#define RECORD_RANK_PATH "ibscope.%h.%r.data"

/* Find out the rank, and name the output. Return: 0 or a negative errno with @err. */
int record_rank_prepare(struct record *r, struct err *err);

/* Is another rank of this node to collect? */
bool record_rank_follows(const struct record *r);

/* Let that one sample the command, and wait for its end. Return: an exit status. */
int record_rank_follow(struct record *r);

/* Meet the other ranks, before sampling_open(). Return: 0 or a negative errno with @err. */
int record_rank_meet(struct record *r, struct err *err);

/* Write which process is of which rank. Return: 0 or a negative errno with @err. */
int record_put_ranks(struct record *r, struct err *err);

/* Take the status of our own rank, whose end need not have been in the recording. */
void record_rank_end(struct record *r);

/* End by the signal that ended our own rank, which some launchers tell from an exit status. */
void record_rank_raise(const struct record *r);

/* Write which ranks have ended since the last call. Return: as record_put_ranks(). */
int record_ended_ranks(struct record *r, struct err *err);

/* --- regions of the command */

/* Prepare for a command that begins after this. Return: 0 or a negative errno with @err. */
int record_regions_prepare(struct record *r, struct err *err);

/* Collect them, with those of other ranks. */
void record_regions_begin(struct record *r);

/* They set members of a struct record. */
extern const struct option_row record_options[];
extern const size_t record_n_options;

#endif
