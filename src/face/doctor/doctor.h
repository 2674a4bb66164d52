/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Checks what this processor, kernel and privilege allow. The checks are a table; each reads a file
 * or evaluates a probe (opening, loading and attaching for real), and reports the reason and the
 * remedy. Features are probed, never derived from the kernel's version.
 */
#ifndef IBSCOPE_DOCTOR_H
#define IBSCOPE_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct cpu_info;
struct err;

enum doctor_status {
	DOCTOR_OK,
	DOCTOR_INFO, /* neither good nor bad */
	DOCTOR_WARN, /* works, with the loss given in `why` */
	DOCTOR_NO,   /* something does not work */
};

struct doctor_result {
	const char *id;	   /* stable, for scripts */
	const char *group; /* heading */
	const char *title;
	enum doctor_status status;
	char value[1024]; /* printable ASCII, as are the next two */
	char why[512];	  /* one line; never empty with DOCTOR_WARN and DOCTOR_NO */
	char remedy[384]; /* the same */
};

struct doctor_report {
	/* A program could be attached to an ibs_op event, and the kernel has what the real one needs. */
	bool can_sample;
	bool can_simulate; /* the same for the software clock, which --source sim uses */
	size_t n;
	struct doctor_result result[];
};

struct doctor_opts {
	const char *root;	    /* prefix of the file system; NULL or "": the real one */
	const struct cpu_info *cpu; /* NULL: the one this runs on */
	bool no_probes;		    /* read files only; all else is "not tried" */
};

/**
 * doctor_run() - run all checks
 * @opts: NULL for the defaults
 * @out:  freed with free()
 *
 * Takes 50 ms or more, during which it samples with ibs_op on one CPU, which costs another user of
 * ibs_op there half of its samples. Forks two children that exit at once. Failed checks are
 * results.
 */
struct doctor_report *doctor_run(const struct doctor_opts *opts);
extern const char *const doctor_status_names[]; /* "ok", "info", "warn", "no" */

/* By id; NULL if unknown. */
const struct doctor_result *doctor_find(const struct doctor_report *d, const char *id);

/**
 * doctor_print() - the report for people
 * @width: columns to wrap at; below 60 counts as 60
 * @color: use terminal escapes
 */
void doctor_print(const struct doctor_report *d, FILE *f, unsigned int width, bool color);

/**
 * doctor_print_json() - the report as one JSON object
 *
 * {"checks":[{"id","group","title","status","value","why","remedy"}],"can_sample":bool,
 * "source_available":{"ibs":bool,"sim":bool}}; why and remedy are null where there is none.
 *
 * Return: 0, or -EIO with @e.
 */
int doctor_print_json(const struct doctor_report *d, FILE *f, struct err *e);

#endif
