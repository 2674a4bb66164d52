// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Heads of perf.data: their features, whole and damaged, and what is at the limits of the format. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory_in_use.h"
#include "perf_data/perf_data_build_id.h"
#include "perf_data_read.h"

#define PIECES_MAX 8

static struct feature {
	unsigned int nr;
	size_t at, n; /* in `body` */
} features[PIECES_MAX];
static size_t n_features;
static struct bytes body; /* of the features */

static void close_it(void)
{
	perf_data_format.close(state);
	state = NULL;
}

static void no_features(void)
{
	n_features = 0;
	body.n = 0;
}

static int reset_features(void **unused)
{
	no_features();
	return reset(unused);
}

static int clean_features(void **unused)
{
	free(body.p);
	body = (struct bytes){ 0 };
	return clean(unused);
}

/* What is put into `body` from here on is this feature. */
static void feature(unsigned int nr)
{
	features[n_features++] = (struct feature){ nr, body.n, 0 };
}

/* A file with one sample of ibs_op, and these features. */
static struct build build_features(void)
{
	struct build o = build_default();
	struct perf_file_header *h;
	size_t table;

	o.n = 1;
	build_begin(&b, &o);
	sample(&b, OP_ID, 10, 0);
	h = (struct perf_file_header *)b.p;
	h->data.size = b.n - h->data.offset;
	table = b.n + n_features * sizeof(struct perf_section);
	for (size_t i = 0; i < n_features; i++) {
		const size_t end = i + 1 < n_features ? features[i + 1].at : body.n;

		h->features[features[i].nr / 64] |= 1ULL << features[i].nr % 64;
		features[i].n = end - features[i].at;
		put64(&b, table + features[i].at);
		put64(&b, features[i].n);
		h = (struct perf_file_header *)b.p;
	}
	put(&b, body.p, body.n);
	return o;
}

static void pmus(void)
{
	feature(PERF_FEATURE_PMU_MAPPINGS);
	put_pmus(&body);
}

/* Of a file whose last feature is cut off after any byte, or all of it is there. */
static void damaged_if_cut(unsigned int step)
{
	const struct feature *last = &features[n_features - 1];
	const size_t all = body.n;
	char why[64];

	snprintf(why, sizeof(why), "feature %u of the header is damaged", last->nr);
	build_features();
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	whole();
	close_it();
	for (body.n = last->at + 1; body.n < all; body.n += step) {
		build_features();
		must_open();
		next(TRACE_SAMPLE_OP, 10);
		assert_string_equal(at_end()->missing, why);
		close_it();
	}
	body.n = all;
	build_features();
}

static void test_magic(void **unused)
{
	static const struct {
		const char *bytes;
		size_t n;
		bool is;
	} rows[] = {
		{ "PERFILE2", 8, true },  { "2ELIFREP", 8, true },  { "PERFFILE", 8, true },
		{ "ELIFFREP", 8, true },  { "PERFILE3", 8, false }, { "IBSCOPE1", 8, false },
		{ "PERFILE2", 7, false }, { "PERFFILE", 0, false },
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(
			perf_data_format.magic((const unsigned char *)rows[i].bytes, rows[i].n),
			rows[i].is);
	pmus();
	build_features();
	memcpy(b.p, PERF_MAGIC_1_FOREIGN, 8);
	refused("3.2");
}

static void put_command(struct bytes *to, const char *const *words, __u32 n)
{
	put32(to, n);
	for (__u32 i = 0; i < n; i++)
		put_text(to, words[i]);
}

static void test_command(void **unused)
{
	static char longest[1000], cut[1024];
	const char *const plain[] = { "perf", "record", PERF_SIMULATED };
	const char *const simulated[] = { PERF_SIMULATED, "perf" };
	const char *const both[] = { longest, longest, "x" };

	(void)unused;
	for (int i = 0; i < 3; i++) {
		no_features();
		memset(longest, 'l', sizeof(longest) - 1);
		feature(PERF_FEATURE_CMDLINE);
		if (i == 0)
			put_command(&body, plain, 3);
		else if (i == 1)
			put_command(&body, simulated, 2);
		else
			put_command(&body, both, 3);
		pmus();
		build_features();
		must_open();
		assert_int_equal(trace_info(state)->simulated, i == 1);
		memset(cut, 'l', sizeof(cut) - 1);
		cut[sizeof(longest) - 1] = ' ';
		assert_string_equal(trace_info(state)->command, i == 0	 ? "perf record SIMULATED:"
								: i == 1 ? "perf"
									 : cut);
		assert_string_equal(trace_info(state)->format, "perf.data");
		close_it();
	}
	no_features();
	feature(PERF_FEATURE_CMDLINE);
	put_command(&body, plain, 2);
	damaged_if_cut(7);
}

static void test_cut_features(void **unused)
{
	struct build o = build_default();
	const char *const name = "my event";

	(void)unused;
	feature(PERF_FEATURE_EVENT_DESC);
	put_names(&body, o.attr, &name, 1);
	damaged_if_cut(1);
	must_open();
	assert_string_equal(trace_info(state)->pmu[0].name, name);
	close_it();
	/* a name that is longer than all that follows */
	no_features();
	feature(PERF_FEATURE_EVENT_DESC);
	put32(&body, 1);
	put32(&body, sizeof(o.attr[0]));
	put(&body, &o.attr[0], sizeof(o.attr[0]));
	put32(&body, 0);
	put32(&body, 100);
	put_words(&body, 0, 4);
	build_features();
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	not_whole("feature 12 of the header is damaged");
	close_it();

	no_features();
	feature(PERF_FEATURE_PMU_MAPPINGS);
	put_pmus(&body);
	damaged_if_cut(9);
	no_features();
	pmus();
	feature(PERF_FEATURE_CLOCK_DATA);
	put32(&body, 1);
	put32(&body, 1);
	put64(&body, 1700000000000000000);
	put64(&body, 4711);
	damaged_if_cut(1);
	must_open();
	assert_int_equal(trace_info(state)->realtime_ns, 1700000000000000000);
	assert_int_equal(trace_info(state)->monotonic_ns, 4711);
	close_it();
	body.p[features[1].at] = 2; /* a version to come */
	build_features();
	must_open();
	assert_int_equal(trace_info(state)->realtime_ns, 0);
}

/* perf's threads write into files that are not this one. */
static void test_directory(void **unused)
{
	(void)unused;
	for (__u64 version = 0; version < 2; version++) {
		reset_features(NULL);
		pmus();
		feature(PERF_FEATURE_DIR_FORMAT);
		put64(&body, version);
		if (!version)
			damaged_if_cut(1);
		build_features();
		must_open();
		next(TRACE_SAMPLE_OP, 10);
		if (version)
			not_whole("--threads");
		else
			whole();
		close_it();
	}
}

static void put_build_id(struct bytes *to, const char *path, unsigned char first)
{
	const unsigned char id[24] = { first, 2, 3 };

	begin(to, PERF_RECORD_HEADER_BUILD_ID, 0);
	put32(to, 100);
	put(to, id, sizeof(id));
	put(to, path, strlen(path) + 1);
	finish(to);
}

static void map_with(unsigned char first)
{
	next(TRACE_MMAP, 0);
	assert_int_equal(ev.mmap.build_id_len, first ? 20 : 0);
	if (first)
		assert_int_equal(ev.mmap.build_id[0], first);
}

static void put_map(const char *path)
{
	begin(&b, PERF_RECORD_MMAP, 0);
	put_words(&b, 100, 4);
	put(&b, path, strlen(path) + 1);
	trailer(&b, 0, 0);
}

static void test_build_ids(void **unused)
{
	struct build o = build_default();

	(void)unused;
	feature(PERF_FEATURE_BUILD_ID);
	put_build_id(&body, "/bin/a", 7);
	put_build_id(&body, "/bin/b", 8);
	pmus();
	build_features();
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	whole();
	close_it();
	for (int damage = 0; damage < 4; damage++) {
		reset_features(NULL);
		feature(PERF_FEATURE_BUILD_ID);
		put_build_id(&body, "/bin/a", 7);
		if (damage == 1)
			set_size(&body, 7);
		else if (damage == 2)
			set_size(&body, body.n + 1);
		else if (damage == 3)
			put64(&body, 0);
		else
			put(&body, "rest", 4);
		pmus();
		build_features();
		must_open();
		next(TRACE_SAMPLE_OP, 10);
		not_whole("feature 2 of the header is damaged");
		close_it();
	}

	/* as a record, it is also for maps before it; one that is too short is none */
	build_begin(&b, &o);
	put_map("/bin/a");
	put_map("/bin/c");
	put_build_id(&b, "/bin/a", 9);
	begin(&b, PERF_RECORD_HEADER_BUILD_ID, 0);
	put_words(&b, 0x4141414141414141, 5);
	finish(&b);
	begin(&b, PERF_RECORD_COMM, 0); /* too short for an id */
	finish(&b);
	sample(&b, OP_ID, 10, 0);
	comm(&b, 1, "no time", ~0ULL);
	build_end(&b, &o);
	must_open();
	map_with(9);
	map_with(0);
	next(TRACE_COMM, 0);
	next(TRACE_SAMPLE_OP, 10);
	assert_int_equal(at_end()->skipped_blocks, 2);
	assert_int_equal(trace_end(state)->skipped_bytes, 48 + 8);
	assert_non_null(strstr(trace_end(state)->missing, "no build id with a path"));
	assert_int_equal(state->done, state->total);
}

static void put_cache(__u32 level, const char *cpus)
{
	put32(&body, level);
	put32(&body, 64);
	put32(&body, 1024);
	put32(&body, 16);
	put_text(&body, "Unified");
	put_text(&body, "32M");
	put_text(&body, cpus);
}

static void put_node(__u32 node, const char *cpus)
{
	put32(&body, node);
	put64(&body, 1000);
	put64(&body, 500);
	put_text(&body, cpus);
}

static void test_topology(void **unused)
{
	static const __u16 node[] = { 0, 0, 3, 3, 0 }, ccx[] = { 0, 1, 1, 1, 2 };
	const struct trace_topology *t;

	(void)unused;
	feature(PERF_FEATURE_NUMA_TOPOLOGY);
	put32(&body, 3);
	put_node(0, "0-1,4");
	put_node(3, "2-3");
	put_node(5, ""); /* of memory only */
	pmus();
	feature(PERF_FEATURE_CACHE);
	put32(&body, 1);
	put32(&body, 5);
	put_cache(1, "0");
	put_cache(3, "0");
	put_cache(3, "1-3");
	put_cache(2, "1");
	put_cache(3, "4");
	damaged_if_cut(33);
	must_open();
	t = trace_info(state)->topology;
	assert_non_null(t);
	assert_int_equal(t->n, ARRAY_SIZE(node));
	assert_memory_equal(t->node, node, sizeof(node));
	assert_memory_equal(t->ccx, ccx, sizeof(ccx));
	close_it();

	no_features();
	feature(PERF_FEATURE_NUMA_TOPOLOGY);
	put32(&body, 2);
	put_node(0, "0-1,4");
	put_node(1, "2-3");
	damaged_if_cut(11);
	must_open();
	assert_null(trace_info(state)->topology); /* without complexes */
	close_it();
	memset(body.p + 4, 0xff, 4); /* no such node */
	build_features();
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	not_whole("feature 14");
	close_it();

	no_features();
	feature(PERF_FEATURE_NUMA_TOPOLOGY);
	put32(&body, 1);
	put_node(65535, "0-");
	build_features();
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	not_whole("feature 14");
	close_it();
	no_features();
	feature(PERF_FEATURE_NUMA_TOPOLOGY);
	put32(&body, 1);
	put_node(65535, "0");
	feature(PERF_FEATURE_CACHE);
	put32(&body, 1);
	put32(&body, 1);
	put_cache(3, "x");
	build_features();
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	not_whole("feature 20");
}

static void put_memory(__u64 size, __u64 node, __u64 bits, __u64 same)
{
	no_features();
	feature(PERF_FEATURE_MEM_TOPOLOGY);
	put64(&body, 1);
	put64(&body, size);
	put64(&body, 1);
	put64(&body, node);
	put64(&body, bits);
	put64(&body, same);
	put64(&body, 5);
}

static void test_memory(void **unused)
{
	static const struct {
		__u64 size, node, bits, same;
		bool good;
	} rows[] = {
		{ 4096, 2, 3, 3, true },
		{ 1, 65535, 64, 64, true },
		{ 1ULL << 49, 0, 3, 3, true },
		{ 1ULL << 50, 0, 3, 3, true },
		{ 1ULL << 51, 0, 3, 3, false },
		{ 1ULL << 52, 0, 3, 3, false },
		{ 0, 0, 3, 3, false },
		{ 4096, 65536, 3, 3, false },
		{ 4096, 0, 3, 4, false },
		{ 4096, 0, 65, 65, false },
		{ 4096, 0, ~0ULL, ~0ULL, false },
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct trace_info *info;

		put_memory(rows[i].size, rows[i].node, rows[i].bits, rows[i].same);
		if (!i)
			damaged_if_cut(1);
		build_features();
		must_open();
		info = trace_info(state);
		assert_int_equal(info->n_memory, rows[i].good ? 2 : 0);
		for (size_t k = 0; k < info->n_memory; k++) {
			assert_int_equal(info->memory[k].start, 2 * k * rows[i].size);
			assert_int_equal(info->memory[k].end, (2 * k + 1) * rows[i].size);
			assert_int_equal(info->memory[k].node, rows[i].node);
		}
		next(TRACE_SAMPLE_OP, 10);
		if (rows[i].good)
			whole();
		else
			not_whole("feature 22 of the header is damaged");
		close_it();
	}
}

/* As many ranges as there is room for, and one more. */
static void test_memory_ranges(void **unused)
{
	(void)unused;
	for (int more = 0; more < 2; more++) {
		put_memory(1, 0, 2 * MEMORY_RANGES + 64, 2 * MEMORY_RANGES + 64);
		body.n -= 8;
		put_words(&body, 0x5555555555555555, 2 * MEMORY_RANGES / 64);
		put64(&body, more);
		build_features();
		must_open();
		assert_int_equal(trace_info(state)->n_memory, more ? 0 : MEMORY_RANGES);
		close_it();
	}
	/* in one piece it may have any number of blocks */
	put_memory(1, 0, 64 * MEMORY_RANGES, 64 * MEMORY_RANGES);
	body.n -= 8;
	put_words(&body, ~0ULL, MEMORY_RANGES);
	build_features();
	must_open();
	assert_int_equal(trace_info(state)->n_memory, 1);
	assert_int_equal(trace_info(state)->memory->end, 64 * MEMORY_RANGES);
}

static void set64(size_t at, __u64 v)
{
	memcpy(b.p + at, &v, sizeof(v));
}

/* Numbers of features that this version does not know, and a table that is cut off. */
static void test_table(void **unused)
{
	size_t table;

	(void)unused;
	pmus();
	feature(64); /* the last bytes of the file are its section */
	build_features();
	b.n -= body.n;
	table = b.n - 2 * sizeof(struct perf_section);
	set64(table + 8, 0);
	set64(table + 16, 0);
	set64(table + 24, 0);
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	whole();
	close_it();
	set64(table + 16, b.n + 1);
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	not_whole("features of its header are not where it says");
	close_it();
	b.n--;
	set64(table, 0);
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	not_whole("the file ends before the features of its header");
	close_it();
	build_features();
	((struct perf_file_header *)b.p)->features[0] |= 1; /* its section is that of the PMUs */
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	assert_false(at_end()->whole);
}

/* Events of so many bytes, of which the last are where their ids are. */
static void build_attr(size_t bytes)
{
	const struct build o = build_default();
	const size_t attr = bytes - sizeof(struct perf_section), known = sizeof(o.attr[0]);
	struct perf_file_header h = { .magic = PERF_MAGIC, .size = sizeof(h), .attr_size = bytes };

	b.n = 0;
	h.attrs = (struct perf_section){ sizeof(h), bytes };
	h.data.offset = sizeof(h) + bytes;
	put(&b, &h, sizeof(h));
	put(&b, &o.attr[0], attr < known ? attr : known);
	while (b.n < h.data.offset)
		put(&b, "", 1);
	sample(&b, OP_ID, 10, 0);
	set64(offsetof(struct perf_file_header, data.size), b.n - h.data.offset);
	set64(offsetof(struct perf_file_header, features), 1 << PERF_FEATURE_PMU_MAPPINGS);
	put64(&b, b.n + 16);
	put64(&b, 0);
	h.data.size = b.n;
	put_pmus(&b);
	set64(h.data.size - 8, b.n - h.data.size);
}

static void test_events(void **unused)
{
	static const struct {
		size_t bytes;
		bool good;
	} rows[] = {
		{ 72, false }, { 79, false },  { 80, true },	{ 88, true },	 { 96, true },
		{ 152, true }, { 4096, true }, { 4097, false }, { 5000, false },
	};
	const size_t ids = sizeof(struct perf_file_header) + 80 - sizeof(struct perf_section);

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		build_attr(rows[i].bytes);
		if (!rows[i].good) {
			refused("damaged at offset 16: events of");
			continue;
		}
		must_open();
		assert_int_equal(trace_info(state)->pmu[0].period, 100000);
		next(TRACE_SAMPLE_OP, 10);
		whole();
		close_it();
	}
	build_attr(80);
	set64(ids, b.n);
	must_open();
	close_it();
	set64(ids, b.n + 1);
	refused("bytes of ids");
	set64(ids, b.n - 8);
	set64(ids + 8, 8);
	must_open();
	close_it();
	set64(ids + 8, 9);
	refused("an event with 9 bytes of ids");
}

/* Not more ids and events than any machine has; the ids are all over the file. */
static void test_many(void **unused)
{
	static const size_t most = 1 << 18;
	struct build o = build_default();
	size_t ids, attrs;

	(void)unused;
	for (int i = 0; i < 4; i++) {
		build_begin(&b, &o);
		attrs = ((struct perf_file_header *)b.p)->attrs.offset;
		sample(&b, FETCH_ID, 10, 0);
		build_end(&b, &o);
		ids = b.n;
		for (size_t k = 0; k <= most; k++)
			put64(&b, k == most - 2 ? FETCH_ID : k + 1000);
		for (size_t k = 0; k < 3; k++) {
			const size_t at = attrs + (k + 1) * sizeof(o.attr[0]) +
					  k * sizeof(struct perf_section);

			set64(at, ids);
			set64(at + 8, 0);
			if (k == 1)
				set64(at + 8, (most + (i == 1)) * 8);
			if (k == 2 && i == 2)
				set64(at + 8, 8);
		}
		if (i == 1) {
			refused("bytes of ids");
		} else if (i == 2) {
			refused("more than 262144 ids");
		} else {
			must_open();
			next(TRACE_SAMPLE_FETCH, 10);
			whole();
			close_it();
		}
	}
	b.n = 0;
	put_words(&b, 0, sizeof(struct perf_file_header) / 8);
	*(struct perf_file_header *)b.p = (struct perf_file_header){
		.magic = PERF_MAGIC,
		.size = sizeof(struct perf_file_header),
		.attr_size = 80,
		.attrs = { b.n, 80 * 4097 },
		.data = { b.n, 1 },
	};
	put_words(&b, 0, 10 * 4097);
	refused("more than 4096 events");
}

static void test_files(void **unused)
{
	int fds[2], fd;

	(void)unused;
	b.n = 0;
	fd = memory_file("", 0);
	assert_int_equal(perf_data_format.open(fd, 0, 0, &state, &e), -EINVAL);
	assert_non_null(strstr(e.text, "the file ends at offset 0"));
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	assert_int_equal(perf_data_format.open(fds[0], 0, 0, &state, &e), -ESPIPE);
	assert_non_null(strstr(e.text, "cannot get its size: Illegal seek"));
	close(fds[1]);
	fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert_int_equal(perf_data_format.open(fd, 0, 0, &state, &e), -EBADF);
	assert_non_null(strstr(e.text, "cannot read at offset 0: Bad file descriptor"));
	/* cut in its data, behind the sample */
	pmus();
	build_features();
	b.n -= sizeof(struct perf_section) + body.n;
	((struct perf_file_header *)b.p)->data.size += 8;
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	not_whole("the file ends at offset");
	assert_int_equal(state->total, b.n);
}

static void begin_pipe(void)
{
	static const unsigned char head[] = "PERFILE2\x10\0\0\0\0\0\0";

	reset_features(NULL);
	put(&b, head, 16);
}

static void put_attr(const struct perf_event_attr *attr, size_t bytes)
{
	begin(&b, PERF_RECORD_HEADER_ATTR, 0);
	put(&b, attr, bytes);
	put64(&b, OP_ID);
	finish(&b);
}

static void put_feature_record(unsigned int nr)
{
	begin(&b, PERF_RECORD_HEADER_FEATURE, 0);
	put64(&b, nr);
}

static void put_pmu_record(void)
{
	put_feature_record(PERF_FEATURE_PMU_MAPPINGS);
	put_pmus(&b);
	finish(&b);
}

/* In a pipe, events are records, and what comes later is right. */
static void test_pipe(void **unused)
{
	const char *const first[] = { "first", "words" }, *const second[] = { "second" };
	struct build o = build_default();

	(void)unused;
	for (int i = 0; i < 4; i++) {
		static const __u32 sizes[] = { 0, 64, 72, sizeof(struct perf_event_attr) };
		const size_t bytes = sizes[i] ?: 64;

		begin_pipe();
		put_feature_record(PERF_FEATURE_CMDLINE);
		put_command(&b, first, 2);
		finish(&b);
		put_feature_record(PERF_FEATURE_CMDLINE);
		put_command(&b, second, 1);
		finish(&b);
		put_pmu_record();
		o.attr[0].size = sizes[i];
		put_attr(&o.attr[0], bytes);
		sample(&b, OP_ID, 10, 0);
		must_open();
		assert_string_equal(trace_info(state)->command, "second");
		assert_int_equal(trace_info(state)->pmu[0].period, 100000);
		next(TRACE_SAMPLE_OP, 10);
		whole();
		close_it();
	}
	/* an event without ids */
	begin_pipe();
	put_pmu_record();
	begin(&b, PERF_RECORD_HEADER_ATTR, 0);
	put(&b, &o.attr[0], sizeof(o.attr[0]));
	finish(&b);
	sample(&b, OP_ID, 10, 0);
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	whole();
	close_it();
	/* of no words */
	begin_pipe();
	for (int n = 1; n >= 0; n--) {
		put_feature_record(PERF_FEATURE_CMDLINE);
		put_command(&b, second, n);
		finish(&b);
	}
	put_pmu_record();
	put_attr(&o.attr[0], sizeof(o.attr[0]));
	sample(&b, OP_ID, 10, 0);
	must_open();
	assert_string_equal(trace_info(state)->command, "");
	close_it();
	begin_pipe();
	put_attr(&o.attr[0], 48);
	refused("an event of 56 bytes");
	begin_pipe();
	o.attr[0].size = 80;
	put_attr(&o.attr[0], 64);
	refused("an event of 80 bytes in a record of 80");
	begin_pipe();
	o.attr[0].size = 63;
	put_attr(&o.attr[0], 64);
	refused("an event of 63 bytes, at least 64 were ever used");
	begin_pipe();
	begin(&b, PERF_RECORD_COMM, 0);
	set_size(&b, 7);
	refused("a record of 7 bytes");

	/* the PMUs that are told last */
	begin_pipe();
	put_pmu_record();
	begin(&b, PERF_RECORD_HEADER_FEATURE, 0);
	put64(&b, PERF_FEATURE_PMU_MAPPINGS);
	put32(&b, 0);
	finish(&b);
	o = build_default();
	put_attr(&o.attr[0], sizeof(o.attr[0]));
	sample(&b, OP_ID, 10, 0);
	refused("its first event is not named");

	/* damage behind the events is told when it is read */
	begin_pipe();
	put_pmu_record();
	put_attr(&o.attr[0], sizeof(o.attr[0]));
	begin(&b, PERF_RECORD_COMM, 0);
	set_size(&b, 7);
	must_open();
	damage("a record of 7 bytes");
}

/* Three CPUs; in a pipe, what is near what may come in any order. */
static void test_topology_of_pipe(void **unused)
{
	struct build o = build_default();

	(void)unused;
	begin_pipe();
	for (int i = 0; i < 2; i++) {
		no_features();
		feature(0);
		put32(&body, 1);
		if (!i) {
			put32(&body, 1);
			put_cache(3, "0-2");
		} else {
			put_node(4, "0-2");
		}
		begin(&b, PERF_RECORD_HEADER_FEATURE, 0);
		put64(&b, i ? PERF_FEATURE_NUMA_TOPOLOGY : PERF_FEATURE_CACHE);
		put(&b, body.p, body.n);
		finish(&b);
	}
	/* if the topology of memory is in the file twice, the second is used, also if it is damaged */
	for (int i = 0; i < 2; i++) {
		put_memory(4096, 2, 3, 3 + i);
		begin(&b, PERF_RECORD_HEADER_FEATURE, 0);
		put64(&b, PERF_FEATURE_MEM_TOPOLOGY);
		put(&b, body.p, body.n);
		finish(&b);
	}
	put_pmu_record();
	put_attr(&o.attr[0], sizeof(o.attr[0]));
	sample(&b, OP_ID, 10, 0);
	must_open();
	assert_non_null(trace_info(state)->topology);
	assert_int_equal(trace_info(state)->topology->n, 3);
	assert_int_equal(trace_info(state)->topology->node[2], 4);
	assert_int_equal(trace_info(state)->n_memory, 0);
}

static void same_names(const char *second)
{
	must_open();
	assert_string_equal(trace_info(state)->pmu[0].name, second);
	close_it();
}

static void test_names(void **unused)
{
	struct build o = build_default();
	const char *const names[] = { "one", "two" };

	(void)unused;
	for (int twice = 0; twice < 2; twice++) {
		begin_pipe();
		for (int i = 0; i <= twice; i++) {
			begin(&b, PERF_RECORD_HEADER_FEATURE, 0);
			put64(&b, PERF_FEATURE_EVENT_DESC);
			put_names(&b, o.attr, names + i, 1);
			finish(&b);
		}
		put_pmu_record();
		put_attr(&o.attr[0], sizeof(o.attr[0]));
		sample(&b, OP_ID, 10, 0);
		same_names(names[twice]);
		/* the name of an id goes first */
		begin(&b, PERF_RECORD_EVENT_UPDATE, 0);
		put64(&b, PERF_EVENT_UPDATE_NAME);
		put64(&b, OP_ID);
		put(&b, "mine", 5);
		pad8(&b);
		finish(&b);
		same_names(names[twice]); /* too late: behind the first sample */
	}
	begin_pipe();
	put_attr(&o.attr[0], sizeof(o.attr[0]));
	begin(&b, PERF_RECORD_EVENT_UPDATE, 0);
	put64(&b, PERF_EVENT_UPDATE_NAME);
	put64(&b, OP_ID);
	put(&b, "mine", 5);
	pad8(&b);
	finish(&b);
	put_pmu_record();
	sample(&b, OP_ID, 10, 0);
	same_names("mine");
}

/* Events that drop ops in hardware: a sample of them stands for more than a period. */
static void test_filtered(void **unused)
{
	static const struct {
		bool op;
		__u64 config, config1;
		const char *name;
		bool filtered;
	} rows[] = {
		{ true, 0, 0, "ibs_op//", false },
		{ true, 0, 0, "ibs_op/l3missonly=1/", true },
		{ true, 1 << 16, 0, "ibs_op//", true },
		{ true, 1 << 15 | 1 << 17 | 1ULL << 59, 0, "ibs_op//", false },
		{ true, 0, 1, "ibs_op//", true },
		{ true, 0, 0x1000, "ibs_op//", true },
		{ true, 0, 0x2000, "ibs_op//", false },
		{ false, 0, 0, "ibs_fetch//", false },
		{ false, 1ULL << 59, 0, "ibs_fetch//", true },
		{ false, 1ULL << 58 | 1ULL << 60 | 1 << 16, 0, "ibs_fetch//", false },
		{ false, 0, 1, "ibs_fetch//", true },
		{ false, 0, 0x400, "ibs_fetch//", true },
		{ false, 0, 0x800, "ibs_fetch//", false },
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct build o = build_default();
		struct perf_event_attr *attr = &o.attr[!rows[i].op];

		attr->config = rows[i].config;
		attr->config1 = rows[i].config1;
		begin_pipe();
		begin(&b, PERF_RECORD_HEADER_FEATURE, 0);
		put64(&b, PERF_FEATURE_EVENT_DESC);
		put_names(&b, attr, &rows[i].name, 1);
		finish(&b);
		put_pmu_record();
		put_attr(attr, sizeof(*attr));
		sample(&b, rows[i].op ? OP_ID : FETCH_ID, 10, 0);
		must_open();
		if (trace_info(state)->pmu[0].filtered != rows[i].filtered)
			fail_msg("row %zu", i);
		close_it();
	}
}

/* What a file is of is learned from samples: of whatever event the first is, and if the first is damaged. */
static void test_learn(void **unused)
{
	struct build o = build_default();

	(void)unused;
	o.attr[0] = build_default().attr[2];
	o.attr[2] = build_default().attr[0];
	o.id[0] = CLOCK_ID;
	o.id[2] = OP_ID;
	build_begin(&b, &o);
	sample(&b, CLOCK_ID, 5, 0);
	begin_sample(&b, OP_ID, 1, 6, 0);
	put32(&b, 36); /* of fetches */
	put32(&b, 0x3);
	put_words(&b, 1, 4);
	finish(&b);
	begin_sample(&b, FETCH_ID, 1, 7, 0);
	put32(&b, 4); /* of nothing known */
	put32(&b, 0x5);
	finish(&b);
	sample(&b, OP_ID, 10, 0);
	build_end(&b, &o);
	must_open();
	assert_int_equal(trace_info(state)->cpu.caps, 0xbff);
	assert_true(trace_info(state)->full_registers);
	next(TRACE_SAMPLE_OP, 10);
	assert_int_equal(at_end()->other_samples, 1);
	close_it();

	build_begin(&b, &o);
	finished_round(&b);
	build_end(&b, &o);
	must_open();
	assert_true(trace_info(state)->full_registers); /* of no samples */
	whole();
	close_it();
	o.killed = true; /* events that could be of IBS, and one that is not */
	build_begin(&b, &o);
	refused("no IBS sample that would show");
	o.n = 1;
	o.attr[0].sample_type = TYPE_PLAIN;
	o.attr[0].type = OP_TYPE;
	build_begin(&b, &o);
	refused("no IBS sample that would show");
	o = build_default();
	o.n = 1;
	o.attr[0].sample_type &= ~PERF_SAMPLE_RAW;
	build_begin(&b, &o);
	finished_round(&b);
	build_end(&b, &o);
	refused("its first event is ibs_op//;");
	o.features = false;
	build_begin(&b, &o);
	finished_round(&b);
	build_end(&b, &o);
	refused("its first event is not named;");
	o.attr[0].sample_type |= PERF_SAMPLE_RAW;
	o.killed = true;
	build_begin(&b, &o);
	sample(&b, OP_ID, 10, 0);
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	assert_string_equal(at_end()->missing,
			    "perf record was killed before it wrote of which machine this is");
	close_it();
	o.attr[0].type = PERF_TYPE_MAX; /* the first that a PMU can have */
	build_begin(&b, &o);
	sample(&b, OP_ID, 10, 0);
	must_open();
	next(TRACE_SAMPLE_OP, 10);
}

/* Raw data that could be of IBS, by their size and first word. */
static void test_guess(void **unused)
{
	static const struct {
		__u32 bytes, caps;
		int kind; /* of samples; -1: not of IBS */
	} rows[] = {
		{ 28, 0x1, TRACE_SAMPLE_FETCH },
		{ 36, 0xbff, TRACE_SAMPLE_FETCH },
		{ 60, 0x1, TRACE_SAMPLE_OP },
		{ 68, 0xbff, TRACE_SAMPLE_OP },
		{ 20, 0x1, -1 },
		{ 32, 0x1, -1 },
		{ 60, 0xbfe, -1 },
		{ 64, 0xbff, -1 },
		{ 268, 0x1, -1 },
		{ 4, 0x1, -1 },
	};

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct build o = build_default();

		o.n = 1;
		o.killed = true;
		build_begin(&b, &o);
		begin_sample(&b, OP_ID, 1, 10, 0);
		put32(&b, rows[i].bytes);
		put32(&b, rows[i].caps);
		for (__u32 at = 4; at < rows[i].bytes; at += 4)
			put32(&b, 0);
		finish(&b);
		if (rows[i].kind < 0) {
			refused("no raw IBS samples");
			continue;
		}
		must_open();
		next(rows[i].kind, 10);
		close_it();
	}
}

/* Ids that share a place in the cache of the reader, whatever its size. */
static void test_ids(void **unused)
{
	struct build o = build_default();

	(void)unused;
	o.id[1] = OP_ID + (720720ULL << 16);
	build_begin(&b, &o);
	for (int i = 1; i <= 20; i++) {
		begin_sample(&b, i % 3 ? OP_ID : o.id[1], 1, i, 0);
		put_raw(&b, i % 3, 1);
		finish(&b);
	}
	build_end(&b, &o);
	must_open();
	for (int i = 1; i <= 20; i++)
		next(i % 3 ? TRACE_SAMPLE_OP : TRACE_SAMPLE_FETCH, i);
	whole();
	close_it();

	/* the same word at another place; and an id that only the next record has */
	o = build_default();
	for (int i = 0; i < 3; i++)
		o.attr[i].sample_type ^= PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ID;
	o.attr[1].sample_type ^= PERF_SAMPLE_IP;
	build_begin(&b, &o);
	sample(&b, OP_ID, 10, 0);
	build_end(&b, &o);
	refused("samples cannot be assigned");
	o.attr[1].sample_type ^= PERF_SAMPLE_IP | PERF_SAMPLE_CPU;
	build_begin(&b, &o);
	sample(&b, OP_ID, 10, 0);
	build_end(&b, &o);
	refused("samples cannot be assigned");
	o = build_default();
	o.id[0] = 4000 | 8ULL << 48;
	build_begin(&b, &o);
	begin(&b, PERF_RECORD_SAMPLE, 0);
	finish(&b);
	begin(&b, 4000, 0);
	finish(&b);
	build_end(&b, &o);
	must_open();
	not_whole("a sample of an event that the header does not have");
	close_it();
	build_begin(&b, &o);
	begin(&b, PERF_RECORD_SAMPLE, 0);
	put64(&b, o.id[0]);
	finish(&b);
	build_end(&b, &o);
	must_open();
	not_whole("it is too short");
	close_it();
	/* records with nothing but an id, of which the header says no more */
	for (int i = 0; i < 3; i++)
		o.attr[i].sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_RAW;
	build_begin(&b, &o);
	begin(&b, PERF_RECORD_COMM, 0);
	put64(&b, o.id[0]);
	finish(&b);
	build_end(&b, &o);
	must_open();
	not_whole("what is in it does not fit its size");
}

/* Numbers whose product with the size of what they count is small again. */
static void test_huge_numbers(void **unused)
{
	struct build o = build_default();

	(void)unused;
	o.n = 1;
	for (int i = 0; i < 2; i++) {
		o.attr[0].sample_type = PERF_SAMPLE_RAW | PERF_SAMPLE_CGROUP |
					(i ? PERF_SAMPLE_BRANCH_STACK : PERF_SAMPLE_READ);
		o.attr[0].read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID | PERF_FORMAT_LOST;
		build_begin(&b, &o);
		begin(&b, PERF_RECORD_SAMPLE, 0);
		if (!i) {
			put64(&b, 0x5555555555555556); /* thrice that is 2 */
			put_words(&b, 0, 2);
		}
		put_raw(&b, true, 1);
		if (i) {
			put64(&b, 0x5555555555555556);
			put_words(&b, 0, 2);
		}
		put64(&b, 4711);
		finish(&b);
		build_end(&b, &o);
		must_open();
		not_whole("what is in it does not fit its size");
		close_it();
	}
}

/* Without an address in the sample, and with an invalid one in its registers, there is none. */
static void test_no_address(void **unused)
{
	struct build o = build_default();

	(void)unused;
	o.n = 1;
	o.attr[0].sample_type = PERF_SAMPLE_RAW;
	build_begin(&b, &o);
	begin(&b, PERF_RECORD_SAMPLE, 0);
	put32(&b, 68);
	put32(&b, 0xbff);
	put64(&b, 0);
	put64(&b, ~0ULL);
	put64(&b, IBS_OP_DATA_RIP_INVALID);
	put_words(&b, 0, 5);
	finish(&b);
	build_end(&b, &o);
	must_open();
	memset(&ev, 0x5a, sizeof(ev));
	next(TRACE_SAMPLE_OP, 0);
	assert_false(ev.sample.has_ip || ev.sample.kernel);
	assert_int_equal(ev.sample.ip, 0);
}

static void put_map2(__u16 misc, unsigned char first)
{
	static const char words[24] = "    build id, or what";

	begin(&b, PERF_RECORD_MMAP2, misc);
	put_words(&b, 100, 4);
	put(&b, &first, 1);
	put(&b, words + 1, sizeof(words) - 1);
	put64(&b, 0);
	put(&b, "/bin/x", 7);
	trailer(&b, 0, 0);
}

/* Device and inode are where the build id would be; and it has at most 20 bytes. */
static void test_maps(void **unused)
{
	struct build o = build_default();

	(void)unused;
	build_begin(&b, &o);
	put_map2(0, 16);
	put_map2(PERF_RECORD_MISC_MMAP_BUILD_ID, 16);
	put_map2(PERF_RECORD_MISC_MMAP_BUILD_ID, 20);
	put_map2(PERF_RECORD_MISC_MMAP_BUILD_ID, 21);
	put_map2(PERF_RECORD_MISC_GUEST_KERNEL, 0);
	put_map2(PERF_RECORD_MISC_GUEST_USER, 0);
	build_end(&b, &o);
	must_open();
	next(TRACE_MMAP, 0);
	assert_int_equal(ev.mmap.build_id_len, 0);
	next(TRACE_MMAP, 0);
	assert_int_equal(ev.mmap.build_id_len, 16);
	assert_memory_equal(ev.mmap.build_id, "build id", 8);
	next(TRACE_MMAP, 0);
	assert_int_equal(ev.mmap.build_id_len, 20);
	assert_int_equal(at_end()->skipped_blocks, 1);
}

/* Its first digits, without an end. */
static void number_path(char *path, unsigned int n)
{
	for (int i = 3; i >= 0; i--, n /= 10)
		path[i] = '0' + n % 10;
}

/* More build ids than are kept; the same path again takes no more room. */
static void test_many_build_ids(void **unused)
{
	static char path[60000];
	const size_t bytes = sizeof(struct perf_build_id) + sizeof(path);
	const unsigned int kept = (16 << 20) / bytes;
	struct build o = build_default();

	(void)unused;
	build_begin(&b, &o);
	memset(path, 'p', sizeof(path) - 1);
	for (unsigned int i = 0; i < kept + 100; i++) {
		number_path(path, i < 100 ? 0 : i - 99);
		put_build_id(&b, path, 7);
	}
	for (unsigned int i = kept - 2; i < kept + 1; i++) {
		number_path(path, i);
		put_map(path);
	}
	build_end(&b, &o);
	must_open();
	map_with(7);
	map_with(7);
	map_with(0);
	whole();
}

/* Closing gives all memory back, of what was read to the end and of what was not. */
static void test_memory_comes_back(void **unused)
{
	size_t before = 0;

	(void)unused;
	for (int i = 0; i < 300; i++) {
		struct build o = build_default();

		if (i == 10)
			before = memory_in_use();
		build_begin(&b, &o);
		put_build_id(&b, "/bin/a", 9);
		for (unsigned int n = 1; n <= 20; n++)
			sample(&b, n % 3 ? OP_ID : FETCH_ID, n % 7 + 1, 0);
		finished_round(&b);
		sample(&b, OP_ID, 100, 0);
		sample(&b, OP_ID, 101, 0);
		finished_round(&b); /* those before the last mark are known to be complete */
		compress_from(&b, b.data, 1000, PERF_RECORD_COMPRESSED);
		build_end(&b, &o);
		must_open();
		for (int n = 0; n < i % 20; n++)
			assert_int_equal(perf_data_format.next(state, &ev, &e), 1);
		if (i % 2)
			perf_data_format.rewind(state);
		close_it();
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, reset_features, clean_features)
	const struct CMUnitTest tests[] = {
		TEST(test_magic),     TEST(test_command),	 TEST(test_cut_features),
		TEST(test_directory), TEST(test_build_ids),	 TEST(test_topology),
		TEST(test_memory),    TEST(test_memory_ranges),	 TEST(test_table),
		TEST(test_events),    TEST(test_many),		 TEST(test_files),
		TEST(test_pipe),      TEST(test_names),		 TEST(test_topology_of_pipe),
		TEST(test_filtered),  TEST(test_learn),		 TEST(test_guess),
		TEST(test_ids),	      TEST(test_huge_numbers),	 TEST(test_no_address),
		TEST(test_maps),      TEST(test_many_build_ids), TEST(test_memory_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
