// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_data_build_id.h"

#define BYTES_MAX (16 << 20)

/* pid, the id in 20 of 24 bytes, its length in the next if the record says so, path */
#define ID_AT	(sizeof(struct perf_event_header) + sizeof(__u32))
#define SIZE_AT (ID_AT + PERF_BUILD_ID_MAX)
#define PATH_AT (ID_AT + 24)

bool perf_build_ids_add(struct perf_build_ids *b, const struct perf_record *rec)
{
	struct perf_build_id id = { .n = PERF_BUILD_ID_MAX };
	const char *path = (const char *)rec->data + PATH_AT;
	size_t bytes, known = b->paths.n;
	__u32 i;

	if (rec->size <= PATH_AT || !memchr(path, 0, rec->size - PATH_AT))
		return false;
	if (rec->misc & PERF_MISC_BUILD_ID_SIZE)
		id.n = rec->data[SIZE_AT];
	if (id.n > PERF_BUILD_ID_MAX)
		return false;
	bytes = sizeof(id) + strlen(path) + 1;
	if (bytes > BYTES_MAX - b->bytes)
		return true;
	memcpy(id.id, rec->data + ID_AT, id.n);
	i = intern_get(&b->paths, path);
	b->bytes += b->paths.n > known ? bytes : 0;
	array_reserve(b->ids, b->room, i + 1);
	b->ids[i] = id;
	return true;
}

/* The map of the kernel is called "[kernel.kallsyms]_text". */
size_t perf_build_ids_find(const struct perf_build_ids *b, const char *path,
			   unsigned char id[PERF_BUILD_ID_MAX])
{
	static const char kernel[] = "[kernel.kallsyms]";
	__u32 i = intern_find(&b->paths, strncmp(path, kernel, strlen(kernel)) ? path : kernel);

	if (i == INTERN_NONE)
		return 0;
	memcpy(id, b->ids[i].id, b->ids[i].n);
	return b->ids[i].n;
}

void perf_build_ids_free(struct perf_build_ids *b)
{
	intern_free(&b->paths);
	free(b->ids);
}
