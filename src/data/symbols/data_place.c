// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols.h"
#include "symbols_private.h"

const char *data_kind_name(enum data_kind k)
{
#define KIND_NAME(id, name, ...) name,
	static const char *const names[] = { DATA_KIND_TABLE(KIND_NAME) };

	return names[k];
}

enum data_kind data_kind_of(const char *path)
{
	static const struct {
		const char *begins;
		enum data_kind kind;
	} kinds[] = {
		{ "[heap]", DATA_HEAP },
		{ "[stack", DATA_STACK },
		{ "[anon: glibc: pthread ", DATA_STACK }, /* with glibc.mem.decorate_maps */
		{ "[anon:", DATA_ANONYMOUS },
		{ "//anon", DATA_ANONYMOUS },
		{ "[anon_shmem:", DATA_SHARED },
		{ "/dev/zero", DATA_SHARED },
		{ "/SYSV", DATA_SHARED },
		{ "/memfd:", DATA_SHARED },
		{ "/dev/shm/", DATA_SHARED },
		{ "/anon_hugepage", DATA_SHARED },
		{ "/", DATA_NO_SYMBOL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strncmp(path, kinds[i].begins, strlen(kinds[i].begins)))
			return kinds[i].kind;
	return DATA_SPECIAL;
}

const char *data_place_label(const struct data_place *place, char *buf, size_t size)
{
	if (place->variable || !place->mapping || *place->mapping == '[')
		return place->variable ?: place->mapping;
	snprintf(buf, size, "[%.*s]", (int)size - 3, place->mapping);
	return buf;
}
