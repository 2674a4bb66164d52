/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A comparison of files in `root`, and its result. After cmocka.h. */
#ifndef IBSCOPE_TESTS_DIFF_RESULT_H
#define IBSCOPE_TESTS_DIFF_RESULT_H

#include <string.h>

#include "diff/diff_private.h"
#include "tree.h"

static struct diff d;
static struct compare_result result;
static struct err err;

static inline int tear_down(void **state)
{
	compare_result_free(&result);
	result = (struct compare_result){};
	compare_free(d.compare);
	return remove_root(state);
}

/* The row that has this name alone, or first. */
static inline const struct compare_where *row(const char *name)
{
	for (size_t i = 0; i < result.n_rows; i++)
		if (result.row[i].name[0] && !strcmp(result.row[i].name[0], name))
			return &result.row[i];
	fail_msg("no row %s", name);
	return NULL;
}

#endif
