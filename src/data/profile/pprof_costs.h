/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a sample adds to a profile. */
#ifndef IBSCOPE_PPROF_COSTS_H
#define IBSCOPE_PPROF_COSTS_H

#include "pprof_words.h"
#include "report/report.h"

/* @units: of its period, added. Return: false if the period is unknown, so that nothing is estimated. */
bool pprof_costs(const struct report_opts *opts, const struct trace_event *ev,
		 struct pprof_row *row, unsigned int *units);

#endif
