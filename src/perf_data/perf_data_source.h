/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The records of a perf.data in the order of the file, whether they are compressed or not. */
#ifndef IBSCOPE_PERF_DATA_SOURCE_H
#define IBSCOPE_PERF_DATA_SOURCE_H

#include "base/err.h"
#include "perf_data_format.h"

struct perf_source;

/**
 * perf_source_new() - read records of a part of a file
 * @fd:	   can be read with pread(); stays the caller's
 * @begin: offset of the first record
 * @end:   offset behind the last
 * @cut:   more bytes were to follow, so a record that is not whole at the end is no damage
 *
 * Return: 0 or -ENOMEM with @err.
 */
int perf_source_new(int fd, __u64 begin, __u64 end, bool cut, struct perf_source **out,
		    struct err *err);

/**
 * perf_source_next() - the next record
 * @rec: valid until the next call
 *
 * Compressed records are replaced by what they hold; bulk data behind a record are stepped over.
 *
 * Return: 1; 0 at the end; or a negative errno with offset and reason in @err, after which nothing
 * more can be read: -EBADMSG where the file is damaged.
 */
int perf_source_next(struct perf_source *s, struct perf_record *rec, struct err *err);

/* Return: bytes at the end, or behind damage, that no record was made of. */
__u64 perf_source_unread(const struct perf_source *s);

/* Bytes from the start of the file on that were gone through. */
__u64 perf_source_done(const struct perf_source *s);

void perf_source_rewind(struct perf_source *s);
void perf_source_free(struct perf_source *s); /* accepts NULL */

#endif
