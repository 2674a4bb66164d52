/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Combines the samples of a recording with strata as `hist --strata` does: by slices, each stratum with an engine. */
#ifndef IBSCOPE_REPLAY_STRATA_H
#define IBSCOPE_REPLAY_STRATA_H

#include "engine.h"
#include "trace/trace.h"

struct replay_strata;

/* NULL: the recording has no strata. */
struct replay_strata *replay_strata_new(const struct trace *t);
void replay_strata_free(struct replay_strata *x); /* accepts NULL */

/* Where the engine of a sample's stratum is. NULL: the caller has to open it; it is closed with the strata. */
struct engine **replay_strata_engine(struct replay_strata *x, const struct trace_sample *s);

/* The next sample is of this time: end the slices before it. Return: 0 or a negative errno with @err. */
int replay_strata_until(struct replay_strata *x, __u64 time, struct err *err);

/* All samples; after the first call, only their ledger. The caller frees *out. Return: 0 or a negative errno with @err. */
int replay_strata_end(struct replay_strata *x, struct snapshot *out, struct err *err);

#endif
