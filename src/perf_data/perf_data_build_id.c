// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_data_build_id.h"

#include <search.h>
#include <stdlib.h>

#define BYTES_MAX (16 << 20)

struct build_id {
	unsigned char id[PERF_BUILD_ID_MAX];
	unsigned char n;
	char path[];
};

struct perf_build_ids {
	void *tree; /* of struct build_id, by path */
	size_t bytes;
};

/* pid, the id in 20 of 24 bytes, its length in the next if the record says so, path */
#define ID_AT	(sizeof(struct perf_event_header) + sizeof(__u32))
#define SIZE_AT (ID_AT + PERF_BUILD_ID_MAX)
#define PATH_AT (ID_AT + 24)

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct build_id *)a)->path, ((const struct build_id *)b)->path);
}

struct perf_build_ids *perf_build_ids_new(void)
{
	return calloc(1, sizeof(struct perf_build_ids));
}

static void insert(struct perf_build_ids *b, struct build_id *id, size_t bytes)
{
	struct build_id **found = tsearch(id, &b->tree, by_path);

	if (found && *found == id) {
		b->bytes += bytes;
		return;
	}
	if (found) {
		memcpy((*found)->id, id->id, sizeof(id->id));
		(*found)->n = id->n;
	}
	free(id);
}

bool perf_build_ids_add(struct perf_build_ids *b, const struct perf_record *rec)
{
	size_t n, bytes;
	struct build_id *id;
	unsigned int length = PERF_BUILD_ID_MAX;

	if (rec->size <= PATH_AT)
		return false;
	n = strnlen((const char *)rec->data + PATH_AT, rec->size - PATH_AT);
	if (n == (size_t)rec->size - PATH_AT)
		return false;
	if (rec->misc & PERF_MISC_BUILD_ID_SIZE)
		length = rec->data[SIZE_AT];
	if (length > PERF_BUILD_ID_MAX)
		return false;
	bytes = sizeof(*id) + n + 1;
	if (bytes > BYTES_MAX - b->bytes)
		return true;
	id = calloc(1, bytes);
	if (!id)
		return true;
	memcpy(id->id, rec->data + ID_AT, length);
	memcpy(id->path, rec->data + PATH_AT, n);
	id->n = length;
	insert(b, id, bytes);
	return true;
}

static size_t find(const struct perf_build_ids *b, const char *path,
		   unsigned char id[PERF_BUILD_ID_MAX])
{
	size_t n = strlen(path) + 1;
	struct build_id *key, *const *found;
	union {
		struct build_id id;
		char bytes[sizeof(struct build_id) + 4096];
	} u;

	if (n > 4096)
		return 0;
	key = &u.id;
	memcpy(key->path, path, n);
	found = tfind(key, &b->tree, by_path);
	if (!found)
		return 0;
	memcpy(id, (*found)->id, (*found)->n);
	return (*found)->n;
}

/* The map of the kernel is called "[kernel.kallsyms]_text". */
size_t perf_build_ids_find(const struct perf_build_ids *b, const char *path,
			   unsigned char id[PERF_BUILD_ID_MAX])
{
	static const char kernel[] = "[kernel.kallsyms]";

	return find(b, strncmp(path, kernel, strlen(kernel)) ? path : kernel, id);
}

void perf_build_ids_free(struct perf_build_ids *b)
{
	if (!b)
		return;
	tdestroy(b->tree, free);
	free(b);
}
