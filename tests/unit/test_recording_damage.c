// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Recordings cut, flipped, torn and stuffed: what is whole is read, and only that. */
#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "recording/recording.h"
#include "recording/recording_columns.h"
#include "recording/recording_format.h"
#include "recording_gen.h"

#define FLUSHES	      4
#define PER_FLUSH     10
#define MAX_BLOCKS    64
#define DAMAGE_ROUNDS 1500

static const char block_magic[] = { 0x89, 'B', 'L', 'K', 0 };

/* A block of the intact file. Samples and events are numbered; a block holds a range of numbers. */
struct piece {
	size_t begin, end;
	__u16 type;
	unsigned int first, n;
};

static struct intact {
	unsigned char *bytes;
	size_t n;
	struct piece pieces[MAX_BLOCKS];
	unsigned int n_pieces;
} files[2]; /* plain, compressed */

static void write_flush(struct recording *r, int flush, struct ledger *ledger)
{
	struct ibs_record records[PER_FLUSH] = {};
	struct ibs_record_extra stacks[PER_FLUSH];
	struct trace_event ev = { .kind = TRACE_COMM };
	struct err err = {};
	__u64 chain;

	for (int i = 0; i < PER_FLUSH; i++) {
		int id = flush * PER_FLUSH + i;

		/* keys come again, with another chain */
		chain = id;
		assert_int_equal(recording_stack(r, i, &chain, 1, &err), 0);
		ev.time = 1000 * id;
		ev.comm.tid = id;
		ev.comm.name = i % 3 ? "some name" : block_magic;
		assert_int_equal(recording_event(r, &ev, &err), 0);
		records[i].time = 1000 * id + 1;
		records[i].tgid = records[i].tid = id;
		stacks[i] = (struct ibs_record_extra){ .kernel = -1, .user = i, .callers = -1 };
	}
	ledger->seen = ledger->outcome[IBS_OUTCOME_FORWARDED] = (flush + 1) * PER_FLUSH;
	assert_int_equal(recording_samples(r, records, stacks, PER_FLUSH, &err), 0);
	assert_int_equal(recording_flush(r, ledger, &err), 0);
}

static void list_pieces(struct intact *f)
{
	unsigned int samples = 0, events = 0;
	struct recording_block h;
	size_t at;

	for (at = sizeof(struct recording_file_head); at < f->n; at += sizeof(h) + h.bytes) {
		struct piece *p = &f->pieces[f->n_pieces++];

		memcpy(&h, f->bytes + at, sizeof(h));
		*p = (struct piece){ at, at + sizeof(h) + h.bytes, h.type, 0, h.entries };
		if (h.type == RECORDING_SAMPLES) {
			p->first = samples;
			samples += h.entries;
		} else if (h.type == RECORDING_EVENTS) {
			p->first = events;
			events += h.entries;
		}
	}
	assert_int_equal(at, f->n);
	assert_int_equal(samples, FLUSHES * PER_FLUSH);
	assert_int_equal(events, FLUSHES * PER_FLUSH);
}

static int make_files(void **state)
{
	const struct trace_pmu pmu = { .name = "ibs_op//", .op = true };
	const struct trace_info info = {
		.source = "sim", .simulated = true, .pmu = &pmu, .n_pmus = 1
	};

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct recording_opts opts = { .fd = memfd_create("intact", 0),
					       .info = &info,
					       .compress = i };
		struct ledger ledger = {};
		struct recording *r;
		struct err err = {};

		assert_int_equal(recording_create(&opts, &r, &err), 0);
		for (int k = 0; k < FLUSHES; k++)
			write_flush(r, k, &ledger);
		assert_int_equal(recording_finish(r, &ledger, &err), 0);
		recording_close(r);
		files[i].n = lseek(opts.fd, 0, SEEK_CUR);
		files[i].bytes = malloc(files[i].n);
		assert_int_equal(pread(opts.fd, files[i].bytes, files[i].n, 0), files[i].n);
		close(opts.fd);
		list_pieces(&files[i]);
	}
	return 0;
}

static int free_files(void **state)
{
	(void)state;
	free(files[0].bytes);
	free(files[1].bytes);
	return 0;
}

/* One descriptor for all: making it anew 10,000 times is what would take the time. */
static int scratch(const unsigned char *bytes, size_t n)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("damaged", 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, bytes, n, 0), n);
	return fd;
}

static int open_bytes(const unsigned char *bytes, size_t n, struct trace **t, struct err *err)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", scratch(bytes, n));
	return trace_open(path, t, err);
}

static bool holds(const struct intact *f, const bool *whole, __u16 type, unsigned int id)
{
	for (unsigned int i = 0; i < f->n_pieces; i++)
		if (f->pieces[i].type == type && id - f->pieces[i].first < f->pieces[i].n)
			return whole[i];
	return false;
}

static void check_sample(const struct trace_event *ev)
{
	const struct trace_sample *s = &ev->sample;

	assert_true(ev->time == 1000 * s->tid + 1);
	if (!s->n_stack)
		return;
	assert_int_equal(s->n_stack, 2);
	assert_true(s->stack[0] == PERF_CONTEXT_USER);
	assert_int_equal(s->stack[1], s->tid); /* rather none than an older one */
}

/* Reads all; returns whether that was possible, with exactly what the whole blocks hold. */
static void check_read(const struct intact *f, const bool *whole, struct trace *t)
{
	unsigned int samples = 0, events = 0, total = FLUSHES * PER_FLUSH;
	struct trace_event ev;
	struct err err = {};
	bool all = true;
	int ret;

	assert_true(trace_info(t)->simulated);
	while ((ret = trace_next(t, &ev, &err)) > 0) {
		if (ev.kind == TRACE_SAMPLE_OP) {
			for (; samples < ev.sample.tid; samples++)
				assert_false(holds(f, whole, RECORDING_SAMPLES, samples));
			assert_int_equal(ev.sample.tid, samples);
			assert_true(holds(f, whole, RECORDING_SAMPLES, samples++));
			check_sample(&ev);
		} else {
			assert_int_equal(ev.kind, TRACE_COMM);
			for (; events < ev.comm.tid; events++)
				assert_false(holds(f, whole, RECORDING_EVENTS, events));
			assert_int_equal(ev.comm.tid, events);
			assert_true(holds(f, whole, RECORDING_EVENTS, events++));
		}
	}
	assert_int_equal(ret, 0);
	for (; samples < total; samples++)
		assert_false(holds(f, whole, RECORDING_SAMPLES, samples));
	for (; events < total; events++)
		assert_false(holds(f, whole, RECORDING_EVENTS, events));
	for (unsigned int i = 0; i < f->n_pieces; i++)
		all &= whole[i];
	assert_int_equal(trace_end(t)->whole, all);
	assert_int_equal(!trace_end(t)->missing[0], all);
	if (!all)
		assert_non_null(strstr(trace_end(t)->missing, "offset "));
}

/* @whole: which blocks of @f are still so in @bytes; @format: it is recognisable */
static void check(const struct intact *f, const bool *whole, const unsigned char *bytes, size_t n,
		  bool format)
{
	struct err err = {};
	bool meta = false;
	struct trace *t;
	int ret;

	for (unsigned int i = 0; i < f->n_pieces; i++)
		meta |= whole[i] && f->pieces[i].type == RECORDING_META;
	ret = open_bytes(bytes, n, &t, &err);
	if (meta && format) {
		if (ret)
			fail_msg("%s", err.text);
		check_read(f, whole, t);
		assert_int_equal(trace_rewind(t, &err), 0);
		check_read(f, whole, t);
		trace_close(t);
		return;
	}
	assert_int_equal(ret, -EINVAL);
	assert_non_null(strstr(err.text, format ? "offset " : n ? "unknown format" : "is empty"));
}

/* The next length to cut at: each byte of heads and ends of blocks, and some of what lies between them. */
static size_t next_cut(const struct intact *f, size_t n)
{
	const size_t near = sizeof(struct recording_block) + 4;

	for (unsigned int i = 0; i < f->n_pieces; i++)
		if (n + 4 >= f->pieces[i].begin && n < f->pieces[i].begin + near)
			return n + 1;
	return n + 11 < f->n ? n + 11 : n + 1;
}

static void test_truncated_everywhere(void **state)
{
	(void)state;
	for (int c = 0; c < 2; c++)
		for (size_t n = 0; n <= files[c].n; n = next_cut(&files[c], n)) {
			bool whole[MAX_BLOCKS];

			for (unsigned int i = 0; i < files[c].n_pieces; i++)
				whole[i] = files[c].pieces[i].end <= n;
			check(&files[c], whole, files[c].bytes, n, n >= 4);
		}
}

/* The byte at @at is not what it was. */
static void spoil(const struct intact *f, bool *whole, size_t at)
{
	for (unsigned int i = 0; i < f->n_pieces; i++)
		whole[i] &= at < f->pieces[i].begin || at >= f->pieces[i].end;
}

/* The format is known by the magic of the file, or else by that of the first block. */
static bool recognisable(const unsigned char *bytes)
{
	const __u32 block = RECORDING_BLOCK_MAGIC;

	return !memcmp(bytes, RECORDING_FILE_MAGIC, 8) ||
	       !memcmp(bytes + sizeof(struct recording_file_head), &block, sizeof(block));
}

static void test_bits_flipped(void **state)
{
	struct gen g = { 20 };

	(void)state;
	for (int round = 0; round < DAMAGE_ROUNDS; round++) {
		const struct intact *f = &files[round % 2];
		unsigned char *copy = malloc(f->n);
		bool whole[MAX_BLOCKS];

		memcpy(copy, f->bytes, f->n);
		memset(whole, 1, sizeof(whole));
		for (unsigned int k = 1 + gen_below(&g, 1 + round % 8); k; k--) {
			size_t at = gen_below(&g, round % 5 ? f->n : 100);

			copy[at] ^= 1 << gen_below(&g, 8);
		}
		for (size_t at = 0; at < f->n; at++)
			if (copy[at] != f->bytes[at])
				spoil(f, whole, at);
		check(f, whole, copy, f->n, recognisable(copy));
		free(copy);
	}
}

/* A part of the file is replaced by one of another length, as after a bad copy. */
static void test_torn(void **state)
{
	const size_t head = sizeof(struct recording_file_head);
	struct gen g = { 30 };

	(void)state;
	for (int round = 0; round < DAMAGE_ROUNDS / 5; round++) {
		const struct intact *f = &files[round % 2];
		size_t begin = head + gen_below(&g, f->n - head);
		size_t out = gen_below(&g, round % 4 ? 100 : f->n - begin);
		size_t in = round % 3 ? gen_below(&g, 3000) : 0, n;
		unsigned char *copy;
		bool whole[MAX_BLOCKS];

		out = out > f->n - begin ? f->n - begin : out;
		n = f->n - out + in;
		copy = malloc(n);
		memcpy(copy, f->bytes, begin);
		for (size_t i = 0; i < in; i++)
			copy[begin + i] = round % 2 ? gen_u64(&g) : 0;
		memcpy(copy + begin + in, f->bytes + begin + out, f->n - begin - out);
		for (unsigned int i = 0; i < f->n_pieces; i++)
			whole[i] = memmem(copy, n, f->bytes + f->pieces[i].begin,
					  f->pieces[i].end - f->pieces[i].begin);
		check(f, whole, copy, n, true);
		free(copy);
	}
}

static void seal_file(struct recording_file_head *h)
{
	h->crc = recording_crc(h, offsetof(struct recording_file_head, crc));
}

static void seal(unsigned char *at, struct recording_block *h)
{
	h->data_crc = recording_crc(at + sizeof(*h), h->bytes);
	h->head_crc = recording_crc(h, offsetof(struct recording_block, head_crc));
	memcpy(at, h, sizeof(*h));
}

/* Blocks of a recording that lies within another, where a head is lost, are not taken for it. */
static void test_recording_within(void **state)
{
	const struct intact *f = &files[0], *inner = &files[1];
	struct recording_block h = { .magic = RECORDING_BLOCK_MAGIC, .seq = 1, .type = 77 };
	size_t at = f->pieces[0].end, n = f->n + sizeof(h) + inner->n;
	unsigned char *copy = malloc(n), *other = malloc(inner->n);
	bool whole[MAX_BLOCKS];

	(void)state;
	memset(whole, 1, sizeof(whole));
	memcpy(other, inner->bytes, inner->n);
	for (unsigned int i = 0; i < inner->n_pieces; i++) {
		struct recording_block b;

		memcpy(&b, other + inner->pieces[i].begin, sizeof(b));
		b.seq += 1000;
		seal(other + inner->pieces[i].begin, &b);
	}
	memcpy(copy, f->bytes, at);
	memcpy(copy + at, &h, sizeof(h)); /* without its checksum */
	memcpy(copy + at + sizeof(h), other, inner->n);
	memcpy(copy + at + sizeof(h) + inner->n, f->bytes + at, f->n - at);
	check(f, whole, copy, n, true);

	/* and the same at the end: two files in one */
	memcpy(copy, f->bytes, f->n);
	memcpy(copy + f->n, other, inner->n);
	check(f, whole, copy, f->n + inner->n, true);
	free(copy);
	free(other);
}

static void test_versions(void **state)
{
	const struct intact *f = &files[0];
	unsigned char *copy = malloc(f->n);
	struct recording_file_head *head = (void *)copy;
	struct recording_block h;
	bool whole[MAX_BLOCKS];
	struct err err = {};
	struct trace *t;

	(void)state;
	memset(whole, 1, sizeof(whole));
	memcpy(copy, f->bytes, f->n);
	head->minor = RECORDING_MINOR + 1;
	seal_file(head);
	check(f, whole, copy, f->n, true);

	/* a block of a newer minor: not read, and no damage */
	memcpy(&h, copy + f->pieces[1].begin, sizeof(h));
	assert_int_equal(h.type, RECORDING_STACKS);
	h.type = 99;
	seal(copy + f->pieces[1].begin, &h);
	check(f, whole, copy, f->n, true);

	/* the same without copies of stacks, and without strata */
	for (head->major = 2; head->major < 4; head->major++) {
		seal_file(head);
		check(f, whole, copy, f->n, true);
	}

	seal_file(head);
	assert_int_equal(open_bytes(copy, f->n, &t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "version 4.8"));
	assert_non_null(strstr(err.text, "1.x to 3.x"));

	head->major = 1;
	head->byte_order = __builtin_bswap32(head->byte_order);
	seal_file(head);
	assert_int_equal(open_bytes(copy, f->n, &t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "big-endian"));

	head->byte_order = RECORDING_BYTE_ORDER;
	head->block_head_bytes = 48;
	seal_file(head);
	assert_int_equal(open_bytes(copy, f->n, &t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "48 bytes, expected 40"));
	free(copy);
}

/* Blocks with right checksums that tell lies. */
static void test_lies(void **state)
{
	static const struct {
		const char *what;
		__u16 type;
		__u32 raw_bytes, entries;
		__u16 flags;
	} lies[] = {
		{ "decompresses to more", 0, 10, 0, RECORDING_ZSTD },
		{ "decompresses to less", 0, RECORDING_BLOCK_MAX, 0, RECORDING_ZSTD },
		{ "is not compressed", 0, 0, 0, 0 },
		{ "unknown flag", 0, 0, 0, 0x80 },
		{ "too large", 0, RECORDING_BLOCK_MAX + 1, 0, RECORDING_ZSTD },
		{ "more samples", RECORDING_SAMPLES, 0, 1000, RECORDING_ZSTD },
		{ "less samples", RECORDING_SAMPLES, 0, 1, RECORDING_ZSTD },
		{ "no samples", RECORDING_SAMPLES, 0, 0xffffffff, RECORDING_ZSTD },
	};
	const struct intact *f = &files[1];
	unsigned char *copy = malloc(f->n);
	struct recording_block h;
	bool whole[MAX_BLOCKS];

	(void)state;
	for (size_t l = 0; l < sizeof(lies) / sizeof(lies[0]); l++)
		for (unsigned int i = 1; i < f->n_pieces; i++) {
			if (f->pieces[i].type !=
			    (lies[l].type ? lies[l].type : (__u16)RECORDING_EVENTS))
				continue;
			memset(whole, 1, sizeof(whole));
			memcpy(copy, f->bytes, f->n);
			memcpy(&h, copy + f->pieces[i].begin, sizeof(h));
			assert_int_equal(h.flags, RECORDING_ZSTD);
			h.flags = lies[l].flags;
			h.raw_bytes = lies[l].raw_bytes ? lies[l].raw_bytes : h.raw_bytes;
			h.entries = lies[l].entries ? lies[l].entries : h.entries;
			seal(copy + f->pieces[i].begin, &h);
			whole[i] = false;
			check(f, whole, copy, f->n, true);
		}
	free(copy);
}

/* The intact file with other data in one block. Return: malloc()ed, *n bytes. */
static unsigned char *with_data(const struct intact *f, const struct piece *p,
				const unsigned char *data, size_t bytes, size_t *n)
{
	const size_t head = sizeof(struct recording_block);
	struct recording_block h;
	unsigned char *copy;

	*n = f->n - (p->end - p->begin) + head + bytes;
	copy = malloc(*n);
	memcpy(copy, f->bytes, p->begin + head);
	memcpy(copy + p->begin + head, data, bytes);
	memcpy(copy + p->begin + head + bytes, f->bytes + p->end, f->n - p->end);
	memcpy(&h, copy + p->begin, sizeof(h));
	assert_int_equal(h.flags, 0);
	h.bytes = h.raw_bytes = bytes;
	seal(copy + p->begin, &h);
	return copy;
}

/* Of a block whose last event is wrong, none is used. */
static void test_wrong_event(void **state)
{
	const struct intact *f = &files[0];
	bool whole[MAX_BLOCKS];

	(void)state;
	for (unsigned int i = 0; i < f->n_pieces; i++) {
		const struct piece *p = &f->pieces[i];
		const unsigned char *data = f->bytes + p->begin + sizeof(struct recording_block);
		const size_t bytes = p->end - p->begin - sizeof(struct recording_block);

		if (p->type != RECORDING_EVENTS)
			continue;
		for (size_t cut = 1; cut < 12; cut++) {
			size_t n;
			unsigned char *copy = with_data(f, p, data, bytes - cut, &n);

			memset(whole, 1, sizeof(whole));
			whole[i] = false;
			check(f, whole, copy, n, true);
			free(copy);
		}
	}
}

/* Records of all registers have two columns of their own: with one of them a block says nothing. */
static void test_half_raw(void **state)
{
	static const struct {
		__u32 columns;
		bool whole;
	} rows[] = {
		{ 1U << RECORDING_COLUMN_RAW_BYTES, false },
		{ 1U << RECORDING_COLUMN_RAW_CAPS, false },
		{ 1U << RECORDING_COLUMN_RAW_BYTES | 1U << RECORDING_COLUMN_RAW_CAPS, true },
	};
	static unsigned char data[RECORDING_BLOCK_MAX];
	static struct recording_columns c;
	const struct intact *f = &files[0];
	bool whole[MAX_BLOCKS];
	unsigned int i = 0;

	(void)state;
	while (f->pieces[i].type != RECORDING_SAMPLES)
		i++;
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		const struct piece *p = &f->pieces[i];
		const size_t head = sizeof(struct recording_block);
		unsigned char *copy;
		size_t n;

		assert_null(recording_columns_decode(&c, p->n, f->bytes + p->begin + head,
						     p->end - p->begin - head));
		c.present |= rows[r].columns;
		for (unsigned int k = 0; k < p->n; k++) {
			c.v[RECORDING_COLUMN_RAW_BYTES][k] = IBS_OP_RAW_MIN;
			c.v[RECORDING_COLUMN_RAW_CAPS][k] = 0xbff;
		}
		copy = with_data(f, p, data, recording_columns_encode(&c, data), &n);
		memset(whole, 1, sizeof(whole));
		whole[i] = rows[r].whole;
		check(f, whole, copy, n, true);
		free(copy);
	}
}

/* A head in every 40 bytes, each of a large block that is damaged: not to be tried for ever. */
static void test_heads_within_heads(void **state)
{
	const struct intact *f = &files[0];
	size_t n = f->pieces[0].end + 3 * RECORDING_BLOCK_MAX, at, blocks = 0;
	unsigned char *copy = calloc(1, n);
	struct recording_block h, first;
	struct trace_event ev;
	struct err err = {};
	struct trace *t;
	clock_t start;

	(void)state;
	memcpy(copy, f->bytes, f->pieces[0].end);
	memcpy(&first, copy + f->pieces[0].begin, sizeof(first));
	for (at = f->pieces[0].end; at + sizeof(h) <= n; at += sizeof(h)) {
		h = (struct recording_block){ .magic = RECORDING_BLOCK_MAGIC,
					      .file = first.file,
					      .seq = ++blocks,
					      .type = RECORDING_EVENTS,
					      .bytes = RECORDING_BLOCK_MAX,
					      .raw_bytes = RECORDING_BLOCK_MAX };
		h.head_crc = recording_crc(&h, offsetof(struct recording_block, head_crc));
		memcpy(copy + at, &h, sizeof(h));
	}
	assert_int_equal(open_bytes(copy, n, &t, &err), 0);
	start = clock();
	assert_int_equal(trace_next(t, &ev, &err), 0);
	assert_true(clock() - start < 5 * CLOCKS_PER_SEC);
	assert_true(trace_end(t)->skipped_bytes == n - f->pieces[0].end);
	trace_close(t);
	free(copy);
}

/* A block with a sample of a stratum that the recording does not have is left out, whatever its checksum is. */
static void test_stratum(void **state)
{
	const struct trace_pmu pmu = { .name = "ibs_op//", .op = true };
	const struct trace_info info = {
		.source = "sim", .simulated = true, .pmu = &pmu, .n_pmus = 1
	};

	(void)state;
	for (__u8 stratum = 0; stratum < 3; stratum++) {
		struct recording_opts opts = { .fd = memfd_create("strata", 0), .info = &info };
		const struct ibs_record records[2] = { { .time = 1 }, { .time = 2 } };
		const __u8 strata[2] = { 0, stratum };
		struct ledger ledger = {};
		struct recording *r;
		unsigned int n = 0;
		struct trace_event ev;
		struct err err = {};
		struct trace *t;
		char path[64];

		assert_int_equal(recording_create(&opts, &r, &err), 0);
		recording_strata(r, strata);
		assert_int_equal(recording_samples(r, records, NULL, 2, &err), 0);
		assert_int_equal(recording_flush(r, &ledger, &err), 0);
		recording_close(r);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", opts.fd);
		assert_int_equal(trace_open(path, &t, &err), 0);
		while (trace_next(t, &ev, &err) > 0)
			n += ev.kind == TRACE_SAMPLE_OP;
		assert_int_equal(n, stratum ? 0 : 2);
		assert_int_equal(trace_end(t)->skipped_blocks, !!stratum);
		trace_close(t);
		close(opts.fd);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stratum),
		cmocka_unit_test(test_truncated_everywhere),
		cmocka_unit_test(test_bits_flipped),
		cmocka_unit_test(test_torn),
		cmocka_unit_test(test_recording_within),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_wrong_event),
		cmocka_unit_test(test_half_raw),
		cmocka_unit_test(test_heads_within_heads),
	};

	return cmocka_run_group_tests(tests, make_files, free_files);
}
