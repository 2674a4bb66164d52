/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The outcome of one check of the doctor. */
#ifndef IBSCOPE_DOCTOR_RESULT_H
#define IBSCOPE_DOCTOR_RESULT_H

enum doctor_status {
	DOCTOR_OK,
	DOCTOR_INFO, /* neither good nor bad */
	DOCTOR_WARN, /* works, with a loss that is named */
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

#endif
