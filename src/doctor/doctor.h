/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What this processor, kernel and privilege allow. The checks are a table; each reads a file or
 * evaluates a probe (opening, loading and attaching for real), and reports the reason and the remedy.
 * Features are probed, never derived from the kernel's version.
 */
#ifndef IBSCOPE_DOCTOR_H
#define IBSCOPE_DOCTOR_H

#include "doctor_result.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct cpu_info;
struct doctor;
struct err;

struct doctor_opts {
	const char *root;	    /* prefix of the file system; NULL or "": the real one */
	const struct cpu_info *cpu; /* NULL: the one this runs on */
	bool no_probes;		    /* read files only; all else is "not tried" */
};

/**
 * doctor_run() - run all checks
 * @opts: NULL for the defaults
 * @out:  freed with doctor_free()
 *
 * Takes 50 ms and more: it samples with ibs_op on one CPU for that long, which costs another user
 * of ibs_op there half of its samples meanwhile. Forks two children that exit at once. Failed
 * checks are results, not errors.
 *
 * Return: 0, or with @e set -ENOMEM.
 */
int doctor_run(const struct doctor_opts *opts, struct doctor **out, struct err *e);
void doctor_free(struct doctor *d); /* accepts NULL */

size_t doctor_n(const struct doctor *d);
const struct doctor_result *doctor_at(const struct doctor *d, size_t i);

/* By id; NULL if there is no such check. */
const struct doctor_result *doctor_find(const struct doctor *d, const char *id);

/* "ok", "info", "warn", "no" */
const char *doctor_status_name(enum doctor_status status);

/* A program could be attached to an ibs_op event, and the kernel has what the real one needs. */
bool doctor_can_sample(const struct doctor *d);

/* The same for the software clock, which --source sim uses. */
bool doctor_can_simulate(const struct doctor *d);

/**
 * doctor_print() - the report for people
 * @width: columns to wrap at; below 60 counts as 60
 * @color: use terminal escapes
 */
void doctor_print(const struct doctor *d, FILE *f, unsigned int width, bool color);

/**
 * doctor_print_json() - the report as one JSON object
 *
 * {"checks":[{"id","group","title","status","value","why","remedy"}],"can_sample":bool,
 * "source_available":{"ibs":bool,"sim":bool}}; why and remedy are null where there is none.
 *
 * Return: 0, or with @e set -ENOMEM, -EIO.
 */
int doctor_print_json(const struct doctor *d, FILE *f, struct err *e);

#endif
