// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The columns of a report. */
#include "report_private.h"

#include <math.h>

/*
 * X(COLUMN, "name", digits, COLUMN_*, value of row `r` of table `t`, "meaning")
 *
 * `fetch`: the report is of ibs_fetch. `one`: not a sum of rows, whose sets were not joined.
 */
#define COLUMNS(X)                                                                               \
	X(SAMPLES, "samples", 0, 0, r->samples, "samples")                                       \
	X(SAMPLE_SHARE, "sample_share", COLUMN_DIGITS, 0, ratio(r->samples, t->total.samples),   \
	  "share of all selected samples")                                                       \
	X(OPS, "estimated_ops", 0, 0, if_known(r->has_estimated, r->estimated),                  \
	  "samples x period: ops, cycles or fetches")                                            \
	X(VALID, "valid", 0, 0, r->valid, "samples with a valid latency")                        \
	X(CYCLES, "miss_cycles", 0, 0, if_known(!r->valid || r->has_estimated, r->cycles),       \
	  "latency x ops that a sample represents")                                              \
	X(LOW, "low", 0, 0, interval(r).low, "lower end of the 95 % interval of miss_cycles")    \
	X(HIGH, "high", 0, 0, interval(r).high, "upper end of it")                               \
	X(EXPOSED, "exposed", 0, COLUMN_OF_OP, exposed(r),                                       \
	  "estimated cycles that retirement waited for loads that missed; events of ops only")   \
	X(BLOCKING, "blocking", COLUMN_DIGITS, COLUMN_OF_OP, ratio(r->blocking, r->missed),      \
	  "share of the miss cycles of loads that retired as soon as their data came")           \
	X(SHARE, "share", COLUMN_DIGITS, 0, share_of(t, r),                                      \
	  "share of all miss cycles; of all latencies if a period is unknown")                   \
	X(SHARE_LOW, "share_low", COLUMN_DIGITS, 0, share_interval(t, r).low,                    \
	  "lower end of the 95 % interval of share")                                             \
	X(SHARE_HIGH, "share_high", COLUMN_DIGITS, 0, share_interval(t, r).high,                 \
	  "upper end of it")                                                                     \
	X(DRAM, "dram", COLUMN_DIGITS, COLUMN_OF_OP, if_known(!fetch, ratio(r->dram, r->known)), \
	  "share of the row's miss cycles for data from DRAM")                                   \
	X(REMOTE, "remote", COLUMN_DIGITS, COLUMN_OF_OP,                                         \
	  if_known(!fetch, ratio(r->remote, r->known)),                                          \
	  "share of the row's miss cycles for data from other nodes")                            \
	X(HITM, "hitm", COLUMN_DIGITS, COLUMN_OF_OP,                                             \
	  if_known(!fetch && (r->stateful || !r->cached), ratio(r->hitm, r->known)),             \
	  "share of the row's miss cycles for lines that another cache had modified; Zen 4 on")  \
	X(MEAN, "mean", 1, 0, mean(t, r), "mean latency, cycles")                                \
	X(P50, "p50", 0, 0, if_known(r->p50 >= 0, r->p50), "median, cycles")                     \
	X(P90, "p90", 0, 0, if_known(r->p90 >= 0, r->p90), "90th percentile, cycles")            \
	X(P99, "p99", 0, 0, if_known(r->p99 >= 0, r->p99), "99th percentile, cycles")            \
	X(MAX, "max", 0, 0, if_known(r->valid, r->max),                                          \
	  "largest latency, cycles; 65535 means that or more")                                   \
	X(TOTAL, "total", 0, 0, if_known(r->valid, r->sum), "sum of the latencies, cycles")      \
	X(LOADS, "loads", 0, COLUMN_OF_OP, if_known(!fetch, r->loads),                           \
	  "samples that load, including prefetches")                                             \
	X(STORES, "stores", 0, COLUMN_OF_OP, if_known(!fetch, r->stores),                        \
	  "samples that store, including locked accesses")                                       \
	X(OFFSETS, "offsets", 0, COLUMN_OF_DATA,                                                 \
	  if_known(one && r->offsets && report_by(t->opts, LABEL_LINE), r->offsets),             \
	  "different bytes of a cache line accessed")                                            \
	X(CPUS, "cpus", 0, COLUMN_OF_DATA, if_known(one && r->cpus, r->cpus), "different CPUs")  \
	X(THREADS, "threads", 0, COLUMN_OF_DATA, if_known(one && r->threads, r->threads),        \
	  "different threads")                                                                   \
	X(LAST, "last_seen", 3, COLUMN_OF_DATA, if_known(r->last, r->last / 1e9),                \
	  "time of the last sample, seconds since 1970")                                         \
	X(IMBALANCE, "imbalance", 4, COLUMN_OF_RANKS, r->imbalance,                              \
	  "largest of the miss cycles of all MPI ranks over their mean")                         \
	X(PRICE, "remote_price", 0, COLUMN_OF_PRICE,                                             \
	  if_known(t->opts->price && (!r->valid || r->has_estimated), rint(r->price) + 0.0),     \
	  "miss cycles above those of the same accesses at the mean latency of local memory")    \
	X(PAGES, "pages", 0, COLUMN_OF_OP | COLUMN_OF_PAGES, if_known(r->pages, r->pages),       \
	  "different pages of physical memory, 4 KiB each")                                      \
	X(MISPLACED, "misplaced", 0, COLUMN_OF_OP | COLUMN_OF_PAGES,                             \
	  if_known(r->placed, r->misplaced),                                                     \
	  "pages that are accessed most from a node other than their own")                       \
	X(L3_MISS, "l3_miss", COLUMN_DIGITS, COLUMN_OF_FETCH,                                    \
	  if_known(fetch, ratio(r->dram, r->known)),                                             \
	  "ibs_fetch: share of the cycles that missed the L3; before Zen 4 the L2")              \
	X(WALK, "walk", COLUMN_DIGITS, COLUMN_OF_FETCH, ratio(r->walks, r->translated),          \
	  "ibs_fetch: share of translations that walked page tables")                            \
	X(ABORTED, "aborted", COLUMN_DIGITS, COLUMN_OF_FETCH,                                    \
	  if_known(fetch, ratio(r->aborted, r->samples)),                                        \
	  "ibs_fetch: share of fetches that did not complete")

static const struct column columns[] = { COLUMNS(COLUMN_ROW) };
const char *report_key_title(const struct report_opts *o, enum label l)
{
	const bool fields = o->type && report_by(o, LABEL_FIELD_OFFSET);

	switch (l) {
	case LABEL_FIELD_OFFSET:
		return fields ? "offset" : label_name(l);
	case LABEL_FIELD_SIZE:
		return fields ? "size" : label_name(l);
	/* c2c has the other address by default */
	case LABEL_LINE:
		return o->phys ? "phys line" : "virt line";
	case LABEL_PAGE:
		return o->phys ? "phys page" : "virt page";
	default:
		return label_name(l);
	}
}

const struct columns report_columns = { columns, ARRAY_SIZE(columns) };

static double if_known(bool known, double v)
{
	return known ? v : (double)NAN;
}

static double ratio(double part, double all)
{
	return all ? part / all : (double)NAN;
}

/* Of strata, samples have weights. */
static double mean(const struct report_table *t, const struct report_row *r)
{
	return t->strata ? if_known(r->has_estimated, ratio(r->cycles, r->valid_ops))
			 : ratio(r->sum, r->valid);
}

/* exposed.h: what an event that counts cycles samples says nothing of it. */
static double exposed(const struct report_row *r)
{
	return if_known(r->missed && !r->unexposed && r->has_estimated && r->units == REPORT_OPS,
			r->exposed);
}

/* Where a period is unknown, latencies stand for themselves. */
static double share_of(const struct report_table *t, const struct report_row *r)
{
	const bool cycles = t->total.has_estimated;

	return if_known(
		r->valid && (cycles || !t->strata),
		ratio(cycles ? r->cycles : r->sum, cycles ? t->total.cycles : t->total.sum));
}

static const struct bounds unknown = { NAN, NAN };

/* Samples that a selection left out, or a recording lacks, are not counted: rows of nearly all samples get too much. */
static struct bounds interval(const struct report_row *r)
{
	return r->valid && !r->has_estimated ? unknown : estimate_interval(&r->waits, 0);
}

/* Where the period of some samples only is known, they have no common unit. */
static struct bounds share_interval(const struct report_table *t, const struct report_row *r)
{
	const bool one = t->total.has_estimated || t->total.cycles == t->total.sum;

	return one && r->valid ? estimate_share(&r->waits, &t->total.waits) : unknown;
}

double report_value(const struct report_table *t, const struct report_row *r, enum table_column c)
{
	const bool fetch = ibs_metric_of_fetch(t->opts->metric), one = r->label;

	switch (c) {
		COLUMNS(COLUMN_CASE)
	default:
		return NAN;
	}
}
