// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "symbols.h"

const char *data_kind_name(enum data_kind k)
{
#define KIND_NAME(id, name, ...) name,
	static const char *const names[] = { DATA_KIND_TABLE(KIND_NAME) };

	return names[k];
}

const char *data_place_label(const struct data_place *place, char *buf, size_t size)
{
	if (place->variable || !place->mapping || *place->mapping == '[')
		return place->variable ?: place->mapping;
	snprintf(buf, size, "[%.*s]", (int)size - 3, place->mapping);
	return buf;
}
