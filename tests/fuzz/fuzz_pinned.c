// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any bytes as the layout of pinned counters: what is accepted is read within the maps. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pins/pinned.h"

#define BYTES_MAX (1 << 20) /* of a map */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A map of exactly those bytes; from what follows the layout if there is any. */
static void *make_map(size_t bytes, const uint8_t *data, size_t size)
{
	void *p;

	if (posix_memalign(&p, 4096, bytes)) /* mappings begin with a page */
		abort();
	memset(p, 0, bytes);
	for (size_t at = 0; size && at < bytes; at += size)
		memcpy((char *)p + at, data, bytes - at < size ? bytes - at : size);
	return p;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *addr[IBS_PIN_N] = {};
	struct ibs_meta_layout l = {};
	struct snapshot snap = {};
	size_t slots, series, n = size < sizeof(l) ? size : sizeof(l);
	struct layout layout = {};
	struct counts counts;
	struct err err = {};

	memcpy(&l, data, n);
	if (!pinned_layout_ok(&l))
		return 0;
	slots = (size_t)l.shards * l.max_slots;
	series = slots * l.slot_words * sizeof(__u64);
	if (slots > BYTES_MAX || series > BYTES_MAX || l.state_bytes > 4 * BYTES_MAX)
		return 0;
	data += n;
	size -= n;
	addr[IBS_PIN_SERIES] = make_map(series, data, size);
	addr[IBS_PIN_OWNERS] = make_map(l.max_slots * sizeof(struct ibs_slot_owner), data, size);
	addr[IBS_PIN_STATE] = make_map(l.state_bytes, NULL, 0); /* else it waits for seconds */
	pinned_place(&l, addr, &layout, &counts);
	if (!counts_read(&counts, &snap, &err))
		snapshot_free(&snap);
	for (int pin = 0; pin < IBS_PIN_N; pin++)
		free(addr[pin]);
	return 0;
}
