// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* perf.data that is damaged, cut off, or not for us. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perf_data_read.h"

#define SAMPLE_BYTES ((size_t)128) /* as sample() writes them */

/* A killed perf left no header: samples tell by their size what they are. */
static void test_killed(void **unused)
{
	struct build o = build_default();

	(void)unused;
	o.killed = true;
	build_begin(&b, &o);
	sample(&b, CLOCK_ID, 5, 0);
	sample(&b, FETCH_ID, 10, 0);
	sample(&b, OP_ID, 20, 0);
	sample(&b, OP_ID, 30, 0);
	b.n -= 8;
	build_end(&b, &o);
	must_open();
	assert_int_equal(trace_info(state)->n_pmus, 2);
	assert_false(trace_info(state)->has_cpu);
	next(TRACE_SAMPLE_FETCH, 10);
	next(TRACE_SAMPLE_OP, 20);
	not_whole("killed");
	assert_non_null(strstr(trace_end(state)->missing, "cut off"));
	assert_int_equal(trace_end(state)->other_samples, 1);
}

static void test_compressed_damage(void **unused)
{
	struct build o = build_default();
	size_t at;

	(void)unused;
	build_begin(&b, &o);
	sample(&b, OP_ID, 10, 0);
	at = b.n;
	sample(&b, OP_ID, 20, 0);
	compress_from(&b, at, 50000, PERF_RECORD_COMPRESSED);
	memset(b.p + at + 8, 0x55, 8);
	build_end(&b, &o);
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	damage("cannot decompress");
}

/* The half of a record in one compressed record, of what would be the last but one. */
static void test_compressed_cut(void **unused)
{
	struct build o = build_default();

	(void)unused;
	for (int killed = 0; killed < 2; killed++) {
		o.killed = killed;
		build_begin(&b, &o);
		sample(&b, OP_ID, 10, 0);
		sample(&b, OP_ID, 20, 0);
		b.n -= 8;
		compress_from(&b, b.data, 50000, PERF_RECORD_COMPRESSED2);
		build_end(&b, &o);
		must_open();
		next(TRACE_SAMPLE_OP, 10);
		if (killed)
			not_whole("cut off");
		else
			damage("end within a record");
		assert_int_equal(trace_end(state)->skipped_bytes, SAMPLE_BYTES - 8);
		perf_data_format.close(state);
		state = NULL;
	}
}

static void test_damaged_record(void **unused)
{
	struct build o = build_default();
	char why[64];

	(void)unused;
	build_begin(&b, &o);
	sample(&b, OP_ID, 10, 0);
	snprintf(why, sizeof(why), "damaged at offset %zu: a record of 7 bytes", b.n);
	begin(&b, PERF_RECORD_COMM, 0);
	set_size(&b, 7);
	sample(&b, OP_ID, 20, 0);
	build_end(&b, &o);
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	damage(why);
	assert_true(trace_end(state)->skipped_bytes > 0);
}

/* What is wrong inside a record spoils only that record. */
static void test_stepped_over(void **unused)
{
	struct build o = build_default();
	const __u32 huge = 0xfffffff0;
	size_t bytes;
	char why[64];

	(void)unused;
	build_begin(&b, &o);
	snprintf(why, sizeof(why), "record of type 9 at offset %zu", b.n);
	sample(&b, OP_ID, 10, 0);
	memcpy(b.p + b.record + 56, &huge, sizeof(huge)); /* bytes of raw data */
	sample(&b, NOBODYS_ID, 11, 0);
	begin_sample(&b, OP_ID, 1, 12, 0); /* raw data of fetch */
	put_raw(&b, false, 1);
	finish(&b);
	begin(&b, PERF_RECORD_SAMPLE, 0);
	finish(&b);
	begin(&b, PERF_RECORD_COMM, 0); /* a name without an end */
	put_words(&b, ~0ULL, 2);
	trailer(&b, 13, 0);
	begin(&b, PERF_RECORD_COMM, 0); /* no room for sample_id */
	put64(&b, 1);
	finish(&b);
	bytes = b.n - b.data;
	sample(&b, OP_ID, 20, 0);
	build_end(&b, &o);
	must_open();
	next(TRACE_SAMPLE_OP, 20);
	not_whole(why);
	assert_int_equal(trace_end(state)->skipped_blocks, 6);
	assert_int_equal(trace_end(state)->skipped_bytes, bytes);
}

static void test_long_stack(void **unused)
{
	struct build o = build_default();

	(void)unused;
	o.n = 1;
	o.attr[0].sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW;
	build_begin(&b, &o);
	begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	put64(&b, 1);
	put64(&b, 1000);
	for (unsigned int i = 0; i < 1000; i++)
		put64(&b, i);
	put_raw(&b, true, 1);
	finish(&b);
	build_end(&b, &o);
	must_open();
	next(TRACE_SAMPLE_OP, 0);
	assert_int_equal(ev.sample.n_stack, TRACE_STACK_MAX);
	assert_int_equal(ev.sample.stack[TRACE_STACK_MAX - 1], TRACE_STACK_MAX - 1);
	whole();
}

static void build_one(struct build *o)
{
	build_begin(&b, o);
	sample(&b, OP_ID, 10, 0);
	build_end(&b, o);
}

static void set64(size_t at, __u64 v)
{
	memcpy(b.p + at, &v, sizeof(v));
}

static void test_refused(void **unused)
{
	struct build o = build_default();

	(void)unused;
	build_one(&o);
	set64(0, PERF_MAGIC_FOREIGN);
	refused("byte order");
	build_one(&o);
	memcpy(b.p, PERF_MAGIC_1, 8);
	refused("3.2");
	build_one(&o);
	set64(offsetof(struct perf_file_header, size), 50);
	refused("offset 8");
	build_one(&o);
	set64(offsetof(struct perf_file_header, attr_size), 1 << 20);
	refused("offset 16");
	build_one(&o);
	set64(offsetof(struct perf_file_header, attrs.offset), 1ULL << 63);
	refused("its events would be at");
	build_one(&o);
	set64(offsetof(struct perf_file_header, data.offset), b.n + 1);
	refused("its data would begin at");
	build_one(&o);
	b.n = 12;
	refused("ends at offset 12");

	o.attr[0].sample_type &= ~PERF_SAMPLE_RAW;
	o.attr[1].sample_type &= ~PERF_SAMPLE_RAW;
	build_one(&o);
	refused("--raw-samples");
	o = build_default();
	o.attr[1].sample_type &= ~PERF_SAMPLE_IDENTIFIER;
	build_one(&o);
	refused("samples cannot be assigned");
	o = build_default();
	o.killed = true;
	build_begin(&b, &o);
	refused("no IBS sample that would show");
}

static void test_header_damage(void **unused)
{
	struct build o = build_default();
	size_t table;

	(void)unused;
	build_one(&o);
	table = perf_get64(b.p + offsetof(struct perf_file_header, data.offset)) +
		perf_get64(b.p + offsetof(struct perf_file_header, data.size));
	set64(table + 4 * 16, b.n); /* the list of PMUs */
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	not_whole("not where it says");
}

/* Records without a size of their own are skipped with what is behind them, however much that is. */
static void test_bulk(void **unused)
{
	static const __u32 sizes[] = { 0, 1, 8, 9, 16, 300000, 262144 - 200 };
	struct build o = build_default();

	(void)unused;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		build_begin(&b, &o);
		sample(&b, OP_ID, 10, 0);
		begin(&b, PERF_RECORD_HEADER_TRACING_DATA, 0);
		put32(&b, sizes[i]);
		put32(&b, 0);
		finish(&b);
		put_words(&b, ~0ULL, (sizes[i] + 7) / 8);
		sample(&b, OP_ID, 20, 0);
		begin(&b, PERF_RECORD_AUXTRACE, 0);
		put64(&b, sizes[i]);
		finish(&b);
		for (__u32 k = 0; k < sizes[i]; k++)
			put(&b, "\xff", 1);
		sample(&b, OP_ID, 30, 0);
		begin(&b, PERF_RECORD_AUXTRACE, 0); /* too short to say how much */
		put32(&b, 1);
		finish(&b);
		sample(&b, OP_ID, 40, 0);
		build_end(&b, &o);
		must_open();
		for (int t = 10; t <= 40; t += 10)
			next(TRACE_SAMPLE_OP, t);
		whole();
		assert_int_equal(state->done, state->total);
		perf_data_format.close(state);
		state = NULL;
	}
}

static void test_bulk_cut(void **unused)
{
	struct build o = build_default();
	char why[128];

	(void)unused;
	for (int more = 0; more < 2; more++) {
		for (int killed = 0; killed < 2; killed++) {
			o.killed = killed;
			build_begin(&b, &o);
			sample(&b, OP_ID, 10, 0);
			begin(&b, PERF_RECORD_AUXTRACE, 0);
			put64(&b, 16 + more);
			finish(&b);
			put_words(&b, 0, 2);
			snprintf(why, sizeof(why),
				 "damaged at offset %zu: 17 bytes of data behind a record, but 16 "
				 "are left",
				 b.record);
			build_end(&b, &o);
			must_open();
			next(TRACE_SAMPLE_OP, 10);
			if (killed)
				not_whole("killed");
			else if (more)
				damage(why);
			else
				whole();
			if (killed || !more)
				assert_int_equal(state->done, state->total);
			assert_int_equal(trace_end(state)->skipped_bytes, killed || !more ? 0 : 16);
			perf_data_format.close(state);
			state = NULL;
		}
	}
}

/* More than is read at once, of records of several sizes. */
static void test_long(void **unused)
{
	const unsigned int n = 7000;
	struct build o = build_default();

	(void)unused;
	build_begin(&b, &o);
	for (unsigned int i = 1; i <= n; i++)
		sample(&b, i % 3 ? OP_ID : FETCH_ID, i, i % 7);
	build_end(&b, &o);
	must_open();
	for (unsigned int i = 1; i <= n; i++) {
		next(i % 3 ? TRACE_SAMPLE_OP : TRACE_SAMPLE_FETCH, i);
		assert_int_equal(ev.sample.cpu, i % 7);
		assert_int_equal(ev.sample.ip, 0x401000 + i);
	}
	whole();
}

/* What is compressed very well is a bomb if there is much of it; read twice, it is as much as before. */
static void test_bomb(void **unused)
{
	struct build o = build_default();

	(void)unused;
	for (int bomb = 0; bomb < 2; bomb++) {
		const unsigned int n = (bomb ? 20000000 : 10000000) / 65000;

		build_begin(&b, &o);
		sample(&b, OP_ID, 10, 0);
		for (unsigned int i = 0; i < n; i++) {
			begin(&b, 4000, 0); /* of a perf to come */
			put_words(&b, 0, 65000 / 8 - 1);
			finish(&b);
		}
		sample(&b, OP_ID, 20, 0);
		compress_from(&b, b.data, 1 << 20, PERF_RECORD_COMPRESSED);
		build_end(&b, &o);
		must_open();
		for (int again = 0; again < 2; again++) {
			if (bomb) {
				next(TRACE_SAMPLE_OP, 10);
				damage("expand");
			} else {
				next(TRACE_SAMPLE_OP, 10);
				next(TRACE_SAMPLE_OP, 20);
				whole();
			}
			perf_data_format.rewind(state);
		}
		perf_data_format.close(state);
		state = NULL;
	}
}

/* The data end in the middle of a record. */
static void test_torn(void **unused)
{
	struct build o = build_default();
	char why[128];

	(void)unused;
	for (size_t cut = 4; cut < SAMPLE_BYTES; cut += 4) {
		build_begin(&b, &o);
		sample(&b, OP_ID, 10, 0);
		sample(&b, OP_ID, 20, 0);
		b.n -= cut;
		build_end(&b, &o);
		snprintf(why, sizeof(why),
			 "damaged at offset %zu: a record of %zu bytes, but the data end after %zu",
			 b.record, SAMPLE_BYTES - cut < 8 ? 8 : SAMPLE_BYTES, SAMPLE_BYTES - cut);
		must_open();
		next(TRACE_SAMPLE_OP, 10);
		damage(why);
		assert_int_equal(trace_end(state)->skipped_bytes, SAMPLE_BYTES - cut);
		perf_data_format.close(state);
		state = NULL;
	}
}

static void test_compressed_words(void **unused)
{
	struct build o = build_default();
	char why[128];
	__u64 n;

	(void)unused;
	for (int more = 0; more < 3; more++) {
		build_begin(&b, &o);
		sample(&b, OP_ID, 10, 0);
		sample(&b, OP_ID, 20, 0);
		compress_from(&b, b.data + SAMPLE_BYTES, 50000, PERF_RECORD_COMPRESSED2);
		n = b.n - b.record - 16 + (more == 1);
		memcpy(b.p + b.record + 8, &n, sizeof(n));
		if (more == 2) {
			b.n = b.record + 12;
			finish(&b);
		}
		build_end(&b, &o);
		must_open();
		next(TRACE_SAMPLE_OP, 10);
		snprintf(why, sizeof(why), "damaged at offset %zu: a compressed record of",
			 b.data + SAMPLE_BYTES);
		if (more)
			damage(why);
		else
			next(TRACE_SAMPLE_OP, 20);
		perf_data_format.close(state);
		state = NULL;
	}
	/* the first damage of several in one compressed record; one whose size cannot be */
	build_begin(&b, &o);
	sample(&b, OP_ID, 10, 0);
	sample(&b, NOBODYS_ID, 11, 0);
	begin(&b, PERF_RECORD_COMM, 0);
	finish(&b);
	begin(&b, PERF_RECORD_COMM, 0);
	set_size(&b, 7);
	compress_from(&b, b.data + SAMPLE_BYTES, 50000, PERF_RECORD_COMPRESSED);
	build_end(&b, &o);
	must_open();
	next(TRACE_SAMPLE_OP, 10);
	snprintf(why, sizeof(why), "damaged at offset %zu: compressed, a record of 7 bytes",
		 b.data + SAMPLE_BYTES);
	damage(why);
	snprintf(why, sizeof(why),
		 "record of type 9 at offset %zu: a sample of an event that the header "
		 "does not have; ",
		 b.data + SAMPLE_BYTES);
	assert_memory_equal(trace_end(state)->missing, why, strlen(why));
	assert_int_equal(trace_end(state)->skipped_blocks, 2);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, reset, clean)
	const struct CMUnitTest tests[] = {
		TEST(test_killed),	   TEST(test_compressed_damage),
		TEST(test_compressed_cut), TEST(test_damaged_record),
		TEST(test_stepped_over),   TEST(test_long_stack),
		TEST(test_refused),	   TEST(test_header_damage),
		TEST(test_bulk),	   TEST(test_bulk_cut),
		TEST(test_long),	   TEST(test_bomb),
		TEST(test_torn),	   TEST(test_compressed_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
