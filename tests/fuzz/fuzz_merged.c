// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any text as the index of a merged file, and what follows a zero byte as its recordings: no crash, recordings do not
 * overlap, and each can be opened or is refused. The header with its checksums is made here.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "trace/trace.h"

#define READ_MAX 8 /* recordings to read; others are only listed */

struct head {
	char magic[8];
	uint32_t byte_order;
	uint16_t major, minor;
	uint32_t index_bytes, index_crc, crc;
};

static void need(int condition)
{
	if (!condition)
		abort();
}

static void put(int fd, const void *data, size_t size)
{
	need(write(fd, data, size) == (ssize_t)size);
}

static void read_part(const struct trace_part *p)
{
	struct trace_event ev;
	struct trace *t;
	struct err e = {};
	int ret;

	if (trace_part_open(p, &t, &e)) {
		need(*e.text);
		return;
	}
	while ((ret = trace_next(t, &ev, &e)) > 0)
		;
	need(!ret == !*e.text);
	trace_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size ? memchr(data, 0, size) : NULL;
	struct head h = { .magic = "IBSMERG\n", .byte_order = 0x01020304, .major = 1 };
	struct trace_part *parts = NULL;
	struct err e = {};
	char file[32];
	size_t n = 0, merged;
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	h.index_bytes = end ? (size_t)(end - data) : size;
	h.index_crc = crc32(crc32(0, NULL, 0), data, h.index_bytes);
	h.crc = crc32(crc32(0, NULL, 0), (const void *)&h, offsetof(struct head, crc));
	need(fd >= 0);
	put(fd, &h, sizeof(h));
	put(fd, data, h.index_bytes);
	if (end)
		put(fd, end + 1, size - h.index_bytes - 1);
	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	if (trace_parts_add(file, &parts, &n, &e)) {
		need(*e.text && !n);
		need(trace_merged(fd, &merged, &e) < 0);
	} else {
		need(trace_merged(fd, &merged, &e) == 1 && merged == n);
	}
	for (size_t i = 0; i < n; i++) {
		need(parts[i].bytes && parts[i].offset >= sizeof(h) + h.index_bytes);
		need(!i || parts[i].offset >= parts[i - 1].offset + parts[i - 1].bytes);
		if (i < READ_MAX)
			read_part(&parts[i]);
	}
	trace_parts_free(parts, n);
	close(fd);
	return 0;
}
