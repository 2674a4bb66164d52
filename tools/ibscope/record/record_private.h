/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files share that record is made of. */
#ifndef IBSCOPE_RECORD_PRIVATE_H
#define IBSCOPE_RECORD_PRIVATE_H

#include "capture/record_output.h"
#include "cgroup/container.h"
#include "session/session.h"
#include "capture/sideband.h"

#define RECORD_UNNAMED 1024

struct record {
	struct sampling sampling;
	struct output_opts out;
	bool csv, json;
	__u64 max_bytes;
	double duration_s; /* 0: until interrupted */

	struct trace_info info;
	struct trace_pmu pmu;
	struct trace_topology topology;
	struct memory_range memory[MEMORY_RANGES];
	__u64 unnamed[RECORD_UNNAMED]; /* cgroups of containers whose names the file lacks */
	size_t n_unnamed;
	struct output *output;
	struct task_choice choice;
	struct sideband *sideband;
	unsigned int *online;
	struct ledger filed; /* sum of the ledgers of earlier files */
	__u64 last_cgroup;   /* whose name the file has */
	__u64 until;	     /* up to which time all is written */
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
void record_loss_look(struct record *r, const struct ledger *all);
/* Return: 0; -ENOBUFS with @err if it was more in the whole. */
int record_loss_end(const struct record *r, const struct ledger *all, struct err *err);

/* Of a struct record. */
extern const struct option_row record_options[];
extern const size_t record_n_options;

#endif
