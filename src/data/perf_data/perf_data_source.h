/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The records of a perf.data file in the order of the file, decompressed if necessary. */
#ifndef IBSCOPE_PERF_DATA_SOURCE_H
#define IBSCOPE_PERF_DATA_SOURCE_H

#include "base/std.h"
#include "perf_data_format.h"

#include <zstd.h>

struct perf_source {
	/* set by the caller */
	int fd;		  /* can be read with pread() */
	__u64 begin, end; /* of the records in the file */
	bool cut;	  /* the file is truncated: an incomplete last record is not damage */

	/* Bytes head..fill of the window are those from offset `at` of the file on. */
	unsigned char *window;
	size_t head, fill;
	__u64 at;
	bool short_file; /* the file was truncated after opening */

	/* decompressed records, and the rest of the record that is being decompressed */
	ZSTD_DStream *zstd;
	unsigned char *out;
	size_t out_head, out_fill;
	__u64 expanded, packed; /* decompressed bytes so far, and in the file */
	struct perf_bytes in;
	__u64 in_offset;
	bool expanding;
};

/* Go to the first record; call it before the first perf_source_next(). */
void perf_source_rewind(struct perf_source *s);

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

/* Return: leftover bytes at the end, or after damage. */
__u64 perf_source_unread(const struct perf_source *s);

void perf_source_free(struct perf_source *s); /* accepts a zero one */

#endif
