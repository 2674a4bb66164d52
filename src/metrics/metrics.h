/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a collector has counted, as Prometheus and the page read it. */
#ifndef IBSCOPE_METRICS_H
#define IBSCOPE_METRICS_H

#include "metrics_text.h"

/* Where the counters are. */
struct metrics_source {
	const struct counts *counts;
	const struct ibs_meta *meta; /* read before the counters */
	void (*name)(const void *arg, const struct group *g, struct ibs_slot_name *out);
	const void *arg;
};

/**
 * metrics_read() - read all counters of a collector
 * @self: of the process that reads
 *
 * Return: 0, the caller frees @out with metrics_free(); or a negative errno with @err.
 */
int metrics_read(const struct metrics_source *src, const struct metrics_opts *opts,
		 const struct metrics_self *self, struct metrics **out, struct err *err);

/* The same of what is pinned. */
int metrics_read_pinned(const struct pinned *p, const struct metrics_opts *opts,
			const struct metrics_self *self, struct metrics **out, struct err *err);

/**
 * metrics_read_nothing() - the metrics of the reading process alone
 * @state: NONE or FAILED
 * @why:   for the page
 *
 * Return: 0 or -ENOMEM.
 */
int metrics_read_nothing(enum metrics_state state, const char *why, const struct metrics_self *self,
			 struct metrics **out);

void metrics_free(struct metrics *m); /* accepts NULL */

/* Bytes of memory that it occupies. */
size_t metrics_bytes(const struct metrics *m);

#endif
