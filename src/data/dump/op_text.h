/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* IBS samples as `perf report -D` prints them. */
#ifndef IBSCOPE_OP_TEXT_H
#define IBSCOPE_OP_TEXT_H

#include <stdio.h>

#include <ibscope/fetch_fields.h>
#include <ibscope/op_fields.h>

/* The perf release to imitate. Its text changed in 6.12 or before, 6.16 and 7.1. */
#define IBS_PERF(major, minor) ((major) << 8 | (minor))
#define IBS_PERF_NEWEST	       0

/**
 * ibs_op_print() - print an ibs_op sample's registers
 * @f:	  output
 * @s:	  parsed sample
 * @perf: IBS_PERF() of the release to imitate, or IBS_PERF_NEWEST
 *
 * perf prints most bits whether valid or not: see ibs_op_field(). Like perf, print nothing unless En and
 * Val of the control register are set. Unlike perf, never print a register that the record lacks.
 */
void ibs_op_print(FILE *f, const struct ibs_op_sample *s, unsigned int perf);

/**
 * ibs_fetch_print() - print an ibs_fetch sample's registers
 *
 * As ibs_op_print().
 */
void ibs_fetch_print(FILE *f, const struct ibs_fetch_sample *s, unsigned int perf);

#endif
