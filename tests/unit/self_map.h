/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The map of the running program as an event of a recording: its own functions can then be sampled. */
#ifndef IBSCOPE_TESTS_SELF_MAP_H
#define IBSCOPE_TESTS_SELF_MAP_H

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "recording/recording.h"

/* The build-id is the third part of the first note that has one. */
static inline int self_build_id(struct dl_phdr_info *info, size_t size, void *map)
{
	struct trace_mmap *m = map;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		const char *at = (const char *)info->dlpi_addr + p->p_vaddr, *end = at + p->p_memsz;

		while (p->p_type == PT_NOTE && at < end) {
			const ElfW(Nhdr) *note = (const void *)at;

			at += sizeof(*note) + (note->n_namesz + 3) / 4 * 4;
			if (note->n_type == NT_GNU_BUILD_ID &&
			    note->n_descsz == sizeof(m->build_id)) {
				memcpy(m->build_id, at, sizeof(m->build_id));
				m->build_id_len = sizeof(m->build_id);
			}
			at += (note->n_descsz + 3) / 4 * 4;
		}
	}
	return 1; /* the first object is the program */
}

/* The map of this program with the function at @at, of no process yet; its path is valid until the next call. Return: false if there is none. */
static inline bool self_map_at(__u64 at, struct trace_mmap *map)
{
	FILE *f = fopen("/proc/self/maps", "r");
	static char path[512];
	bool found = false;
	char line[1024];

	while (!found && f && fgets(line, sizeof(line), f)) {
		unsigned long long start, end, pgoff;

		if (sscanf(line, "%llx-%llx r-xp %llx %*s %*s %511s", &start, &end, &pgoff, path) <
			    4 ||
		    at < start || at >= end)
			continue;
		*map = (struct trace_mmap){ .exec = true,
					    .start = start,
					    .len = end - start,
					    .pgoff = pgoff,
					    .path = path };
		dl_iterate_phdr(self_build_id, map);
		found = true;
	}
	if (f)
		fclose(f);
	return found;
}

/*
 * This program with the function at @at, in @n processes from @first on, so that it is found.
 * @as: the path of a copy of it; NULL: its own
 */
static inline int self_map(struct recording *r, __u64 at, const char *as, __u32 first, __u32 n,
			   struct err *err)
{
	struct trace_event map = { .kind = TRACE_MMAP };
	int ret = 0;

	if (!self_map_at(at, &map.mmap))
		return 0;
	map.mmap.path = as ?: map.mmap.path;
	for (__u32 i = 0; !ret && i < n; i++) {
		map.mmap.tgid = map.mmap.tid = first + i;
		ret = recording_event(r, &map, err);
	}
	return ret;
}

#endif
