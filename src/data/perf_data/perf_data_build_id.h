/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Build ids by path, from the header of a perf.data file. */
#ifndef IBSCOPE_PERF_DATA_BUILD_ID_H
#define IBSCOPE_PERF_DATA_BUILD_ID_H

#include "base/intern.h"
#include "perf_data_format.h"

#define PERF_BUILD_ID_MAX 20

struct perf_build_id {
	unsigned char n, id[PERF_BUILD_ID_MAX];
};

/* Zero is an empty set. */
struct perf_build_ids {
	struct intern paths;
	struct perf_build_id *ids; /* of each path */
	size_t room, bytes;
};

/**
 * perf_build_ids_add() - add a record of the header
 * @rec: complete HEADER_BUILD_ID; a repeated path replaces the id
 *
 * Records beyond 16 MiB are ignored. Return: false if the record is damaged.
 */
bool perf_build_ids_add(struct perf_build_ids *b, const struct perf_record *rec);

/* Return: its length, 0 if unknown. */
size_t perf_build_ids_find(const struct perf_build_ids *b, const char *path,
			   unsigned char id[PERF_BUILD_ID_MAX]);

void perf_build_ids_free(struct perf_build_ids *b);

#endif
