/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* perf.data files made up, of shapes that perf writes and of some that it does not. */
#ifndef IBSCOPE_TESTS_PERF_DATA_BUILD_H
#define IBSCOPE_TESTS_PERF_DATA_BUILD_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "perf_data/perf_data_format.h"

enum {
	OP_TYPE = 11,
	FETCH_TYPE = 10,
	OP_ID = 101,
	FETCH_ID = 201,
	CLOCK_ID = 301,
	NOBODYS_ID = 999
};

#define TYPE_PLAIN                                                                      \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW)

struct bytes {
	unsigned char *p;
	size_t n, room;
	size_t record; /* where the one begins that is being written */
	size_t data;   /* where the data section does */
};

static inline void put(struct bytes *b, const void *p, size_t n)
{
	if (b->n + n > b->room) {
		b->room = (b->n + n) * 2;
		b->p = realloc(b->p, b->room);
		if (!b->p)
			abort();
	}
	if (n)
		memcpy(b->p + b->n, p, n);
	b->n += n;
}

static inline void put16(struct bytes *b, __u16 v)
{
	put(b, &v, sizeof(v));
}

static inline void put32(struct bytes *b, __u32 v)
{
	put(b, &v, sizeof(v));
}

static inline void put64(struct bytes *b, __u64 v)
{
	put(b, &v, sizeof(v));
}

static inline void put_words(struct bytes *b, __u64 v, size_t n)
{
	while (n--)
		put64(b, v);
}

static inline void pad8(struct bytes *b)
{
	while (b->n % 8)
		put(b, "", 1);
}

static inline void begin(struct bytes *b, __u32 type, __u16 misc)
{
	b->record = b->n;
	put32(b, type);
	put16(b, misc);
	put16(b, 0);
}

static inline void set_size(struct bytes *b, __u16 size)
{
	memcpy(b->p + b->record + 6, &size, sizeof(size));
}

static inline void finish(struct bytes *b)
{
	set_size(b, b->n - b->record);
}

static inline void finished_round(struct bytes *b)
{
	begin(b, PERF_RECORD_FINISHED_ROUND, 0);
	finish(b);
}

/* Caps and registers as a Zen 4 has them; what tells samples apart is IbsOpRip or IbsFetchLinAd. */
static inline void put_raw(struct bytes *b, bool op, __u64 address)
{
	put32(b, op ? 68 : 36);
	put32(b, 0xbff);
	if (op) {
		put64(b, 0x60186a); /* MaxCnt, En, Val */
		put64(b, address);
		put_words(b, 0, 6);
	} else {
		put64(b, 0x3000000000061aULL);
		put64(b, address);
		put_words(b, 0, 2);
	}
}

/* A sample of TYPE_PLAIN, with a field that TYPE_PLAIN lacks written by the caller before end(). */
static inline void begin_sample(struct bytes *b, __u64 id, __u32 tid, __u64 time, __u32 cpu)
{
	begin(b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put64(b, id);
	put64(b, 0x401000 + time);
	put32(b, 100);
	put32(b, tid);
	put64(b, time);
	put32(b, cpu);
	put32(b, 0);
	put64(b, 100000);
}

static inline void sample(struct bytes *b, __u64 id, __u64 time, __u32 cpu)
{
	begin_sample(b, id, 101, time, cpu);
	put_raw(b, id == OP_ID, 0x401000 + time);
	finish(b);
}

/* sample_id of TYPE_PLAIN, and the record is done. */
static inline void trailer(struct bytes *b, __u64 time, __u32 cpu)
{
	pad8(b);
	put32(b, 100);
	put32(b, 101);
	put64(b, time);
	put32(b, cpu);
	put32(b, 0);
	put64(b, OP_ID);
	finish(b);
}

static inline void comm(struct bytes *b, __u32 tid, const char *name, __u64 time)
{
	begin(b, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	put32(b, 100);
	put32(b, tid);
	put(b, name, strlen(name) + 1);
	trailer(b, time, 0);
}

static inline struct perf_event_attr event_attr_of(__u32 type, __u64 sample_type)
{
	return (struct perf_event_attr){
		.type = type,
		.size = sizeof(struct perf_event_attr),
		.sample_period = 100000,
		.sample_type = sample_type,
		.sample_id_all = 1,
	};
}

static inline void put_text(struct bytes *b, const char *s)
{
	size_t n = (strlen(s) + 1 + 63) / 64 * 64, at = b->n + 4;

	put32(b, n);
	while (b->n < at + n)
		put(b, "", 1);
	memcpy(b->p + at, s, strlen(s));
}

static inline void put_pmus(struct bytes *b)
{
	put32(b, 3);
	put32(b, 1);
	put_text(b, "software");
	put32(b, OP_TYPE);
	put_text(b, "ibs_op");
	put32(b, FETCH_TYPE);
	put_text(b, "ibs_fetch");
}

static inline void put_names(struct bytes *b, const struct perf_event_attr *attr,
			     const char *const *names, unsigned int n)
{
	put32(b, n);
	put32(b, sizeof(*attr));
	for (unsigned int i = 0; i < n; i++) {
		put(b, &attr[i], sizeof(*attr));
		put32(b, 1);
		put_text(b, names[i]);
		put64(b, 0);
	}
}

struct build {
	struct perf_event_attr attr[3];
	__u64 id[3];
	unsigned int n;
	bool features, killed;
};

/* ibs_op, ibs_fetch and a clock. */
static inline struct build build_default(void)
{
	return (struct build){
		.attr = { event_attr_of(OP_TYPE, TYPE_PLAIN), event_attr_of(FETCH_TYPE, TYPE_PLAIN),
			  event_attr_of(PERF_TYPE_SOFTWARE, TYPE_PLAIN & ~PERF_SAMPLE_RAW) },
		.id = { OP_ID, FETCH_ID, CLOCK_ID },
		.n = 3,
		.features = true,
	};
}

/* Head and events: the caller adds records, then calls build_end(). */
static inline void build_begin(struct bytes *b, const struct build *o)
{
	struct perf_file_header h = { .magic = PERF_MAGIC, .size = sizeof(h) };
	size_t at;

	h.attr_size = sizeof(o->attr[0]) + sizeof(struct perf_section);
	b->n = 0;
	put(b, &h, sizeof(h));
	at = b->n;
	for (unsigned int i = 0; i < o->n; i++)
		put64(b, o->id[i]);
	h.attrs = (struct perf_section){ b->n, o->n * h.attr_size };
	for (unsigned int i = 0; i < o->n; i++) {
		put(b, &o->attr[i], sizeof(o->attr[i]));
		put64(b, at + i * 8);
		put64(b, 8);
	}
	h.data.offset = b->n;
	b->data = b->n;
	memcpy(b->p, &h, sizeof(h));
}

static inline void begin_feature(struct bytes *b, size_t table, unsigned int nr)
{
	__u64 at = b->n;

	memcpy(b->p + table + nr * 16, &at, sizeof(at));
}

static inline void end_feature(struct bytes *b, size_t table, unsigned int nr)
{
	__u64 n = b->n - perf_get64(b->p + table + nr * 16);

	memcpy(b->p + table + nr * 16 + 8, &n, sizeof(n));
}

static inline void build_end(struct bytes *b, const struct build *o)
{
	static const char *const names[] = { "ibs_op//", "ibs_fetch//", "cpu-clock" };
	struct perf_file_header *h = (struct perf_file_header *)b->p;
	size_t table = b->n;

	if (o->killed)
		return;
	h->data.size = b->n - h->data.offset;
	if (!o->features)
		return;
	h->features[0] = 1 << PERF_FEATURE_HOSTNAME | 1 << PERF_FEATURE_NRCPUS |
			 1 << PERF_FEATURE_CPUID | 1 << PERF_FEATURE_EVENT_DESC |
			 1 << PERF_FEATURE_PMU_MAPPINGS;
	put_words(b, 0, 10);
	begin_feature(b, table, 0);
	put_text(b, "host");
	end_feature(b, table, 0);
	begin_feature(b, table, 1);
	put32(b, 8); /* available */
	put32(b, 6); /* online */
	end_feature(b, table, 1);
	begin_feature(b, table, 2);
	put_text(b, "AuthenticAMD,25,17,1");
	end_feature(b, table, 2);
	begin_feature(b, table, 3);
	put_names(b, o->attr, names, o->n);
	end_feature(b, table, 3);
	begin_feature(b, table, 4);
	put_pmus(b);
	end_feature(b, table, 4);
}

/* Put the records from @from on into compressed ones of at most @most bytes of data. */
static inline void compress_from(struct bytes *b, size_t from, size_t most, __u32 type)
{
	ZSTD_CStream *z = ZSTD_createCStream();
	size_t n = b->n - from, at = 0;
	unsigned char *plain = malloc(n + 1), *chunk = malloc(1 << 16);

	if (!z || !plain || !chunk)
		abort();
	memcpy(plain, b->p + from, n);
	b->n = from;
	ZSTD_initCStream(z, 1);
	while (at < n) {
		size_t part = n - at < most ? n - at : most;
		ZSTD_inBuffer in = { plain + at, part, 0 };
		ZSTD_outBuffer out = { chunk, 1 << 16, 0 };

		ZSTD_compressStream(z, &out, &in);
		if (in.pos != part || ZSTD_flushStream(z, &out) || out.pos > 60000)
			abort();
		at += part;
		begin(b, type, 0);
		if (type == PERF_RECORD_COMPRESSED2)
			put64(b, out.pos);
		put(b, chunk, out.pos);
		if (type == PERF_RECORD_COMPRESSED2)
			pad8(b);
		finish(b);
	}
	ZSTD_freeCStream(z);
	free(plain);
	free(chunk);
}

#endif
