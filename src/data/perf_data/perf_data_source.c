// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_data_source.h"

#include "trace/trace.h"

#include <unistd.h>

#define WINDOW_BYTES (1 << 18)
#define OUT_BYTES    (1 << 18)

_Static_assert(OUT_BYTES > 2 * PERF_RECORD_MAX_SIZE, "a record fits, and more can be added");

void perf_source_rewind(struct perf_source *s)
{
	if (!s->window)
		s->window = xrealloc(NULL, WINDOW_BYTES);
	s->at = s->begin;
	s->head = s->fill = 0;
	s->out_head = s->out_fill = 0;
	s->expanded = s->packed = 0;
	s->expanding = false;
	s->short_file = false;
	if (s->zstd)
		ZSTD_initDStream(s->zstd);
}

void perf_source_free(struct perf_source *s)
{
	ZSTD_freeDStream(s->zstd);
	free(s->out);
	free(s->window);
}

__u64 perf_source_unread(const struct perf_source *s)
{
	return s->end - s->at + s->out_fill - s->out_head;
}

/* Read @n bytes into the window if the file has them. Return: bytes in the window, or negative. */
static ssize_t fill(struct perf_source *s, size_t n, struct err *err)
{
	if (s->fill - s->head >= n)
		return n;
	memmove(s->window, s->window + s->head, s->fill - s->head);
	s->fill -= s->head;
	s->head = 0;
	while (s->fill < n) {
		__u64 from = s->at + s->fill;
		size_t want = WINDOW_BYTES - s->fill;
		ssize_t got;

		if (from >= s->end)
			break;
		if (want > s->end - from)
			want = s->end - from;
		got = pread(s->fd, s->window + s->fill, want, from);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(err, -errno, "cannot read at offset %llu: %s", from,
				       strerror(errno));
		if (!got) {
			s->short_file = true;
			break;
		}
		s->fill += got;
	}
	return s->fill < n ? s->fill : n;
}

static void advance(struct perf_source *s, size_t n)
{
	s->head += n;
	s->at += n;
}

static int too_small(const struct perf_record *rec, const char *where, struct err *err)
{
	return err_set(
		err, -EBADMSG,
		"damaged at offset %llu: %sa record of %u bytes, at least %zu are its header",
		rec->offset, where, rec->size, sizeof(struct perf_event_header));
}

static int start_expanding(struct perf_source *s, const struct perf_record *rec, struct err *err)
{
	struct perf_bytes b = perf_record_body(rec);
	__u64 length = b.n;

	if (rec->type == PERF_RECORD_COMPRESSED2 && (!perf_take64(&b, &length) || length > b.n))
		return err_set(err, -EBADMSG,
			       "damaged at offset %llu: a compressed record of %u bytes with "
			       "%llu bytes of data",
			       rec->offset, rec->size, length);
	if (!s->zstd) {
		s->zstd = ZSTD_createDStream();
		s->out = xrealloc(NULL, OUT_BYTES);
		if (!s->zstd)
			out_of_memory();
		ZSTD_initDStream(s->zstd);
	}
	s->in = (struct perf_bytes){ b.p, length };
	s->in_offset = rec->offset;
	s->packed += rec->size;
	s->expanding = true;
	return 0;
}

static int expand(struct perf_source *s, struct err *err)
{
	ZSTD_outBuffer out;
	ZSTD_inBuffer in = { s->in.p, s->in.n, 0 };
	size_t left = s->out_fill - s->out_head, status;

	memmove(s->out, s->out + s->out_head, left);
	s->out_head = 0;
	out = (ZSTD_outBuffer){ s->out, OUT_BYTES, left };
	status = ZSTD_decompressStream(s->zstd, &out, &in);
	s->out_fill = out.pos;
	s->expanded += out.pos - left;
	perf_take(&s->in, in.pos);
	if (ZSTD_isError(status))
		return err_set(err, -EBADMSG, "damaged at offset %llu: cannot decompress: %s",
			       s->in_offset, ZSTD_getErrorName(status));
	/* an output buffer that is not full means that this input is used up */
	if (out.pos < OUT_BYTES && !s->in.n)
		s->expanding = false;
	else if (out.pos == left && !in.pos)
		return err_set(err, -EBADMSG, "damaged at offset %llu: cannot decompress",
			       s->in_offset);
	return trace_check_expansion(s->packed, s->expanded, err);
}

/* Take a complete decompressed record. Return: 1, 0 if there is none, or negative. */
static int from_expanded(struct perf_source *s, struct perf_record *rec, struct err *err)
{
	size_t left = s->out_fill - s->out_head;

	if (left < sizeof(struct perf_event_header))
		return 0;
	perf_record_set(rec, s->out + s->out_head, s->in_offset);
	if (rec->size < sizeof(struct perf_event_header))
		return too_small(rec, "compressed, ", err);
	if (rec->size > left)
		return 0;
	s->out_head += rec->size;
	return 1;
}

/* Bulk data after a record, not included in its size. */
static __u64 bulk(const struct perf_record *rec)
{
	struct perf_bytes b = perf_record_body(rec);
	__u64 n = 0;
	__u32 n32;

	if (rec->type == PERF_RECORD_AUXTRACE)
		perf_take64(&b, &n);
	else if (rec->type == PERF_RECORD_HEADER_TRACING_DATA && perf_take32(&b, &n32))
		n = ((__u64)n32 + 7) & ~7ULL;
	return n;
}

static int skip_bulk(struct perf_source *s, const struct perf_record *rec, struct err *err)
{
	__u64 n = bulk(rec);

	if (n > s->end - s->at) {
		if (!s->cut)
			return err_set(
				err, -EBADMSG,
				"damaged at offset %llu: %llu bytes of data behind a record, "
				"but %llu are left",
				rec->offset, n, s->end - s->at);
		n = s->end - s->at;
	}
	if (n <= s->fill - s->head) {
		advance(s, n);
	} else {
		s->at += n;
		s->head = s->fill = 0;
	}
	return 0;
}

/* The end of the file, with leftover bytes: an unfinished record, or damage. */
static int torn(struct perf_source *s, __u32 size, struct err *err)
{
	if (s->cut || s->short_file)
		return 0;
	return err_set(err, -EBADMSG,
		       "damaged at offset %llu: a record of %u bytes, but the data end after %llu",
		       s->at, size, s->end - s->at);
}

static int from_file(struct perf_source *s, struct perf_record *rec, struct err *err)
{
	ssize_t n = fill(s, sizeof(struct perf_event_header), err);

	if (n <= 0)
		return n;
	if (n < (ssize_t)sizeof(struct perf_event_header))
		return torn(s, sizeof(struct perf_event_header), err);
	perf_record_set(rec, s->window + s->head, s->at);
	if (rec->size < sizeof(struct perf_event_header))
		return too_small(rec, "", err);
	n = fill(s, rec->size, err);
	if (n < 0)
		return n;
	if (n < rec->size)
		return torn(s, rec->size, err);
	rec->data = s->window + s->head;
	advance(s, rec->size);
	return 1;
}

int perf_source_next(struct perf_source *s, struct perf_record *rec, struct err *err)
{
	int ret;

	for (;;) {
		if (s->out_fill) {
			ret = from_expanded(s, rec, err);
			if (ret)
				return ret;
		}
		if (s->expanding) {
			ret = expand(s, err);
			if (ret)
				return ret;
			continue;
		}
		ret = from_file(s, rec, err);
		if (ret <= 0)
			break;
		if (rec->type == PERF_RECORD_COMPRESSED || rec->type == PERF_RECORD_COMPRESSED2)
			ret = start_expanding(s, rec, err);
		else if (rec->type == PERF_RECORD_AUXTRACE ||
			 rec->type == PERF_RECORD_HEADER_TRACING_DATA)
			ret = skip_bulk(s, rec, err);
		else
			return 1;
		if (ret)
			return ret;
	}
	if (!ret && s->out_fill > s->out_head && !s->cut)
		return err_set(err, -EBADMSG,
			       "damaged at offset %llu: the compressed data end within a record",
			       s->in_offset);
	return ret;
}
