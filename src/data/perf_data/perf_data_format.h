/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The format of perf.data besides uapi/linux/perf_event.h. Names and numbers as in Linux
 * tools/perf/Documentation/perf.data-file-format.txt and tools/lib/perf/include/perf/event.h (7.2).
 */
#ifndef IBSCOPE_PERF_DATA_FORMAT_H
#define IBSCOPE_PERF_DATA_FORMAT_H

#include <linux/perf_event.h>
#include "base/std.h"

#define PERF_MAGIC	     0x32454c4946524550ULL /* "PERFILE2", in the writer's byte order */
#define PERF_MAGIC_FOREIGN   0x50455246494c4532ULL
#define PERF_MAGIC_1	     "PERFFILE" /* before Linux 3.2 */
#define PERF_MAGIC_1_FOREIGN "ELIFFREP"

/* Our files of simulated samples begin the command line with this, since perf has no other place for it. */
#define PERF_SIMULATED "SIMULATED:"

/*
 * Set in the capabilities of a raw sample that we wrote if IBS_OP_CTL is synthesized from the event, because the
 * recording did not have it. No processor has this bit, and perf ignores it.
 */
#define PERF_RAW_NO_CTL (1U << 31)

struct perf_section {
	__u64 offset, size;
};

struct perf_file_header {
	__u64 magic;
	__u64 size;	 /* 16: written to a pipe, without the members below */
	__u64 attr_size; /* of perf_event_attr and the section of its ids */
	struct perf_section attrs, data, event_types;
	__u64 features[4];
};

#define PERF_PIPE_HEADER_SIZE 16

enum perf_feature {
	PERF_FEATURE_BUILD_ID = 2,
	PERF_FEATURE_HOSTNAME = 3,
	PERF_FEATURE_OSRELEASE = 4,
	PERF_FEATURE_ARCH = 6,
	PERF_FEATURE_NRCPUS = 7,
	PERF_FEATURE_CPUDESC = 8,
	PERF_FEATURE_CPUID = 9,
	PERF_FEATURE_CMDLINE = 11,
	PERF_FEATURE_EVENT_DESC = 12,
	PERF_FEATURE_NUMA_TOPOLOGY = 14,
	PERF_FEATURE_PMU_MAPPINGS = 16,
	PERF_FEATURE_CACHE = 20,
	PERF_FEATURE_MEM_TOPOLOGY = 22,
	PERF_FEATURE_DIR_FORMAT = 24,
	PERF_FEATURE_CLOCK_DATA = 29,
	PERF_FEATURE_PMU_CAPS = 31,
};

/* Records that perf itself adds. */
enum perf_user_record {
	PERF_RECORD_HEADER_ATTR = 64,
	PERF_RECORD_HEADER_TRACING_DATA = 66,
	PERF_RECORD_HEADER_BUILD_ID = 67,
	PERF_RECORD_FINISHED_ROUND = 68,
	PERF_RECORD_AUXTRACE = 71,
	PERF_RECORD_EVENT_UPDATE = 78,
	PERF_RECORD_HEADER_FEATURE = 80,
	PERF_RECORD_COMPRESSED = 81,
	PERF_RECORD_COMPRESSED2 = 83, /* Linux 6.16: with its length, and padded */
};

#define PERF_RECORD_USER 64 /* the first of them */

#define PERF_EVENT_UPDATE_NAME 2

/* Bits of `misc`, of HEADER_BUILD_ID, and of LOST_SAMPLES for samples that a BPF filter of perf dropped on purpose. */
#define PERF_MISC_BUILD_ID_SIZE	   (1 << 15)
#define PERF_MISC_LOST_SAMPLES_BPF (1 << 15)

#define PERF_BRANCH_COUNTERS (1U << 19) /* Linux 6.8: a word per branch after the branches */

#define PERF_RECORD_MAX_SIZE 65535 /* a u16 in the header of each */

/* One record in memory; @data has its header too, and no alignment. */
struct perf_record {
	const unsigned char *data;
	__u32 type;
	__u16 misc, size;
	__u64 offset; /* in the file; of what it was compressed in, if it was */
};

static inline __u16 perf_get16(const void *p)
{
	__u16 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline __u32 perf_get32(const void *p)
{
	__u32 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static inline __u64 perf_get64(const void *p)
{
	__u64 v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* A record in memory as its header describes it. */
static inline void perf_record_set(struct perf_record *rec, const unsigned char *p, __u64 offset)
{
	*rec = (struct perf_record){ .data = p,
				     .type = perf_get32(p),
				     .misc = perf_get16(p + 4),
				     .size = perf_get16(p + 6),
				     .offset = offset };
}

/* The bytes left to read; reading beyond the end fails. */
struct perf_bytes {
	const unsigned char *p;
	size_t n;
};

static inline const unsigned char *perf_take(struct perf_bytes *b, size_t n)
{
	const unsigned char *p = b->p;

	if (n > b->n)
		return NULL;
	b->p += n;
	b->n -= n;
	return p;
}

/* The body of a record. */
static inline struct perf_bytes perf_record_body(const struct perf_record *rec)
{
	const size_t head = sizeof(struct perf_event_header);

	return (struct perf_bytes){ rec->data + head, rec->size - head };
}

static inline bool perf_take32(struct perf_bytes *b, __u32 *v)
{
	const unsigned char *p = perf_take(b, sizeof(*v));

	if (p)
		*v = perf_get32(p);
	return p;
}

static inline bool perf_take64(struct perf_bytes *b, __u64 *v)
{
	const unsigned char *p = perf_take(b, sizeof(*v));

	if (p)
		*v = perf_get64(p);
	return p;
}

/* The @n bytes at @p, up to a NUL, as text; control characters, which would reach terminals, as "?". */
static inline void perf_copy_text(char *out, size_t size, const unsigned char *p, size_t n)
{
	snprintf(out, size, "%.*s", (int)strnlen((const char *)p, n), (const char *)p);
	for (; *out; out++) {
		if ((unsigned char)*out < ' ' || *out == 0x7f)
			*out = '?';
	}
}

/* A length, padding included, and a string that ends within it. */
static inline bool perf_take_string(struct perf_bytes *b, char *out, size_t size)
{
	const unsigned char *p;
	__u32 n;

	if (!perf_take32(b, &n))
		return false;
	p = perf_take(b, n);
	if (!p)
		return false;
	perf_copy_text(out, size, p, n);
	return true;
}

#endif
