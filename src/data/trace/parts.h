/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Merged files, written by `ibscope merge`: an index followed by several recordings, unchanged. Each keeps
 * its own machine, topology, names and clock. ibscope-recording(5) describes the format.
 */
#ifndef IBSCOPE_PARTS_H
#define IBSCOPE_PARTS_H

#include "base/std.h"

#include <linux/types.h>

/* A recording: a file or a part of one. */
struct trace_part {
	char *file, *name;   /* name: of the file before merging, for messages */
	__u64 offset, bytes; /* in the file; 0 bytes: up to its end */
};

/**
 * trace_parts_add() - append the recordings of a merged file, or the file itself
 * @parts: array of *n, to be freed with trace_parts_free()
 *
 * Other formats are not checked, and a file that cannot be opened counts as one recording.
 *
 * Return: 0; or a negative errno with @err, -EINVAL for a damaged index.
 */
int trace_parts_add(const char *path, struct trace_part **parts, size_t *n, struct err *err);
void trace_parts_free(struct trace_part *parts, size_t n);

/* Is it a merged file? Return: 1 with the number of its recordings, 0, or a negative errno with @err. */
int trace_merged(int fd, size_t *n, struct err *err);

/* Write a merged file. Return: 0 or a negative errno with @err. */
int trace_parts_write(int fd, const struct trace_part *parts, size_t n, struct err *err);

#endif
