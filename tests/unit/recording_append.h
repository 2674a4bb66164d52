/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Recordings of ibs_op and ibs_fetch without compression, to which blocks of any contents can be appended. */
#ifndef IBSCOPE_TESTS_RECORDING_APPEND_H
#define IBSCOPE_TESTS_RECORDING_APPEND_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/recording.h"
#include "recording/recording_format.h"

#define HEAD  sizeof(struct recording_file_head)
#define BLOCK sizeof(struct recording_block)

static const struct trace_pmu events[] = { { .name = "ibs_op//", .op = true, .stacks = true },
					   { .name = "ibs_fetch//" } };
static struct err err;
static unsigned char data[RECORDING_BLOCK_MAX];

static inline struct recording *create(int *fd)
{
	const struct trace_info info = { .source = "ibs", .pmu = events, .n_pmus = 2 };
	struct recording_opts opts = { .info = &info };
	struct recording *r;

	opts.fd = *fd = memfd_create("read", 0);
	if (recording_create(&opts, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

static inline int try_open(int fd, struct trace **t)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return trace_open(path, t, &err);
}

static inline struct trace *open_fd(int fd)
{
	struct trace *t;

	if (try_open(fd, &t))
		fail_msg("%s", err.text);
	return t;
}

static inline void finish(struct recording *r)
{
	assert_int_equal(recording_finish(r, NULL, &err), 0);
	recording_close(r);
}

/* A block of @n bytes of data at the end of a file that has @seq of them. */
static inline void append(int fd, enum recording_block_type type, __u64 seq, size_t n,
			  __u32 entries)
{
	struct recording_file_head file;
	struct recording_block h = { .magic = RECORDING_BLOCK_MAGIC,
				     .seq = seq,
				     .type = type,
				     .bytes = n,
				     .raw_bytes = n,
				     .entries = entries };
	const off_t end = lseek(fd, 0, SEEK_END);

	assert_int_equal(pread(fd, &file, HEAD, 0), HEAD);
	h.file = file.file;
	h.data_crc = recording_crc(data, n);
	h.head_crc = recording_crc(&h, offsetof(struct recording_block, head_crc));
	assert_int_equal(pwrite(fd, &h, BLOCK, end), BLOCK);
	assert_int_equal(pwrite(fd, data, n, end + BLOCK), n);
}

#endif
