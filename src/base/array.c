// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "array.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 4

int array_grow(void *array, size_t *room, size_t n, size_t size, bool zero)
{
	size_t more = *room ? *room : FIRST_ROOM;
	char *p, *grown;

	while (more < n && more <= PTRDIFF_MAX / size)
		more *= 2;
	if (more > PTRDIFF_MAX / size)
		return -ENOMEM;
	memcpy(&p, array, sizeof(p));
	grown = realloc(p, more * size);
	if (!grown)
		return -ENOMEM;
	if (zero)
		memset(grown + *room * size, 0, (more - *room) * size);
	memcpy(array, &grown, sizeof(grown));
	*room = more;
	return 0;
}
