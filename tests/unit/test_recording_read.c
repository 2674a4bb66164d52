// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the reader of a recording makes of its blocks: order, skipping, and blocks with right checksums and wrong contents. */
#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include <ibscope/sim.h>

#include "memory_in_use.h"
#include "recording/recording.h"
#include "recording/recording_events.h"

#define HEAD  sizeof(struct recording_file_head)
#define BLOCK sizeof(struct recording_block)

static const struct trace_pmu events[] = { { .name = "ibs_op//", .op = true, .stacks = true },
					   { .name = "ibs_fetch//" } };
static struct err err;
static unsigned char data[RECORDING_BLOCK_MAX];

/* Reads fail if they touch this offset. */
static off_t broken = -1;

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
	if (broken >= at && broken < at + (off_t)n) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pread64, fd, to, n, at);
}

static struct recording *create(int *fd)
{
	const struct trace_info info = { .source = "ibs", .pmu = events, .n_pmus = 2 };
	struct recording_opts opts = { .info = &info };
	struct recording *r;

	opts.fd = *fd = memfd_create("read", 0);
	if (recording_create(&opts, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

static int try_open(int fd, struct trace **t)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return trace_open(path, t, &err);
}

static struct trace *open_fd(int fd)
{
	struct trace *t;

	if (try_open(fd, &t))
		fail_msg("%s", err.text);
	return t;
}

static void finish(struct recording *r)
{
	assert_int_equal(recording_finish(r, NULL, &err), 0);
	recording_close(r);
}

static void add_sample(struct recording *r, __u64 time, bool fetch)
{
	const struct ibs_record rec = { .time = time,
					.tgid = 7,
					.tid = time,
					.ip = time << 20,
					.packed = fetch ? IBS_RECORD_FETCH : 0 };

	assert_int_equal(recording_samples(r, &rec, NULL, 1, &err), 0);
}

static void add_event(struct recording *r, __u64 time, enum trace_kind kind)
{
	const __u64 chain[] = { time, 2, 3 };
	struct trace_event ev = { .kind = kind, .time = time };

	if (kind == TRACE_COMM)
		ev.comm.name = "x";
	if (kind == TRACE_ALLOC)
		ev.alloc.n_stack = 3, ev.alloc.stack = chain;
	assert_int_equal(recording_event(r, &ev, &err), 0);
}

/* The rest has these kinds and times, in this order. */
static void check(struct trace *t, size_t n, const unsigned int want[][2])
{
	struct trace_event ev;

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(trace_next(t, &ev, &err), 1);
		assert_int_equal(ev.kind, want[i][0]);
		assert_int_equal(ev.time, want[i][1]);
		if (ev.kind == TRACE_ALLOC)
			assert_int_equal(ev.alloc.stack[0], ev.time);
	}
	assert_int_equal(trace_next(t, &ev, &err), 0);
	assert_true(trace_end(t)->whole);
	assert_int_equal(t->done, t->total);
}
#define CHECK(t, want) check(t, ARRAY_SIZE(want), want)

/* Samples of both kinds and events come by time, events first; what is skipped is as if it were not there. */
static void test_order(void **state)
{
	static const unsigned int all[][2] = {
		{ TRACE_COMM, 1 },	   { TRACE_ALLOC, 2 },	   { TRACE_SAMPLE_OP, 3 },
		{ TRACE_FREE, 4 },	   { TRACE_SAMPLE_OP, 4 }, { TRACE_SAMPLE_FETCH, 4 },
		{ TRACE_SAMPLE_FETCH, 5 }, { TRACE_SAMPLE_OP, 7 }, { TRACE_LOST, 8 },
		{ TRACE_SAMPLE_FETCH, 9 }, { TRACE_COMM, 10 },	   { TRACE_ALLOC, 11 },
		{ TRACE_SAMPLE_OP, 12 },   { TRACE_FREE, 13 },
	};
	static const unsigned int no_samples[][2] = { { TRACE_COMM, 1 },  { TRACE_ALLOC, 2 },
						      { TRACE_FREE, 4 },  { TRACE_LOST, 8 },
						      { TRACE_COMM, 10 }, { TRACE_ALLOC, 11 },
						      { TRACE_FREE, 13 } };
	static const unsigned int no_allocs[][2] = {
		{ TRACE_COMM, 1 },	   { TRACE_SAMPLE_OP, 3 },    { TRACE_SAMPLE_OP, 4 },
		{ TRACE_SAMPLE_FETCH, 4 }, { TRACE_SAMPLE_FETCH, 5 }, { TRACE_SAMPLE_OP, 7 },
		{ TRACE_LOST, 8 },	   { TRACE_SAMPLE_FETCH, 9 }, { TRACE_COMM, 10 },
		{ TRACE_SAMPLE_OP, 12 },
	};
	static const unsigned int neither[][2] = { { TRACE_COMM, 1 },
						   { TRACE_LOST, 8 },
						   { TRACE_COMM, 10 } };
	struct trace_event ev;
	struct recording *r;
	struct trace *t;
	int fd;

	(void)state;
	r = create(&fd);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i][0] == TRACE_SAMPLE_OP || all[i][0] == TRACE_SAMPLE_FETCH)
			add_sample(r, all[i][1], all[i][0] == TRACE_SAMPLE_FETCH);
		else
			add_event(r, all[i][1], all[i][0]);
	finish(r);
	t = open_fd(fd);
	assert_int_equal(t->total, lseek(fd, 0, SEEK_END));
	/* wherever reading is given up, it begins anew */
	for (size_t stop = 0; stop <= ARRAY_SIZE(all); stop++) {
		for (size_t i = 0; i < stop; i++)
			assert_int_equal(trace_next(t, &ev, &err), 1);
		assert_int_equal(trace_rewind(t, &err), 0);
		assert_false(trace_end(t)->whole);
		CHECK(t, all);
		assert_int_equal(trace_rewind(t, &err), 0);
	}
	trace_skip_samples(t);
	CHECK(t, no_samples);
	assert_int_equal(trace_rewind(t, &err), 0);
	trace_skip_allocs(t);
	CHECK(t, no_allocs);
	assert_int_equal(trace_rewind(t, &err), 0);
	trace_skip_samples(t);
	CHECK(t, neither);
	trace_close(t);
	close(fd);
}

/* Blocks of many samples, of which other threads read some; hints are what then comes. */
static void test_large(void **state)
{
	enum { SAMPLES = 100000, FLUSH = 10000 };
	size_t before = 0;
	struct trace_hint hint;
	struct trace_event ev;
	struct recording *r;
	struct trace *t;
	__u64 n = 0;
	int fd;

	(void)state;
	r = create(&fd);
	for (__u64 i = 1; i <= SAMPLES; i++) {
		const struct ibs_record rec = { .time = i,
						.tgid = i * 3,
						.tid = i * 5,
						.ip = ibs_sim_mix(i),
						.addr = ibs_sim_mix(~i),
						.packed = i % 7 ? 0 : IBS_RECORD_FETCH };

		assert_int_equal(recording_samples(r, &rec, NULL, 1, &err), 0);
		if (i % FLUSH == 0)
			assert_int_equal(recording_flush(r, NULL, &err), 0);
	}
	finish(r);
	assert_true(lseek(fd, 0, SEEK_END) > 1 << 20);
	t = open_fd(fd);
	for (int again = 0; again < 2; again++) {
		size_t hints = 0;

		for (n = 1; n <= SAMPLES; n++) {
			assert_int_equal(trace_next(t, &ev, &err), 1);
			assert_true(ev.time == n && ev.sample.tid == n * 5);
			assert_true(ev.sample.ip == ibs_sim_mix(n));
			assert_int_equal(ev.kind, n % 7 ? TRACE_SAMPLE_OP : TRACE_SAMPLE_FETCH);
			if (!trace_ahead(t, 2, &hint))
				continue;
			hints++;
			assert_true(hint.tgid % 3 == 0 && hint.tid == hint.tgid / 3 * 5);
			assert_true(hint.ip == ibs_sim_mix(hint.tgid / 3));
			assert_true(hint.tgid / 3 >= n + 2);
		}
		assert_true(hints > SAMPLES * 9 / 10);
		assert_false(trace_ahead(t, 0, &hint));
		assert_int_equal(trace_next(t, &ev, &err), 0);
		assert_true(trace_end(t)->whole);
		assert_int_equal(trace_rewind(t, &err), 0);
		/* skipped, they are no more than checked */
		if (!again) {
			trace_skip_samples(t);
			assert_int_equal(trace_next(t, &ev, &err), 0);
			assert_true(trace_end(t)->whole);
			assert_int_equal(trace_rewind(t, &err), 0);
		}
	}
	trace_close(t);
	for (int i = 0; i < 20; i++) {
		t = open_fd(fd);
		assert_int_equal(trace_next(t, &ev, &err), 1);
		trace_close(t);
		if (!i)
			before = memory_in_use();
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
	close(fd);
}

/* A block of @n bytes of data at the end of a file that has @seq of them. */
static void append(int fd, enum recording_block_type type, __u64 seq, size_t n)
{
	struct recording_file_head file;
	struct recording_block h = {
		.magic = RECORDING_BLOCK_MAGIC, .seq = seq, .type = type, .bytes = n, .raw_bytes = n
	};
	const off_t end = lseek(fd, 0, SEEK_END);

	assert_int_equal(pread(fd, &file, HEAD, 0), HEAD);
	h.file = file.file;
	h.data_crc = recording_crc(data, n);
	h.head_crc = recording_crc(&h, offsetof(struct recording_block, head_crc));
	assert_int_equal(pwrite(fd, &h, BLOCK, end), BLOCK);
	assert_int_equal(pwrite(fd, data, n, end + BLOCK), n);
}

/* A recording that has a description and this block. Return: whether it has a ledger */
static bool check_block(enum recording_block_type type, size_t n, const char *wrong)
{
	struct trace_event ev;
	struct trace *t;
	bool has;
	int fd;

	recording_close(create(&fd));
	append(fd, type, 1, n);
	t = open_fd(fd);
	while (trace_next(t, &ev, &err) > 0)
		;
	assert_int_equal(trace_end(t)->skipped_blocks, !!wrong);
	assert_int_equal(trace_end(t)->skipped_bytes, wrong ? BLOCK + n : 0);
	if (!strstr(trace_end(t)->missing, wrong ?: ""))
		fail_msg("%s", trace_end(t)->missing);
	has = trace_end(t)->has_ledger;
	trace_close(t);
	close(fd);
	return has;
}

static size_t put_stack(__s32 key, unsigned int n, size_t bytes)
{
	const struct recording_stack s = { .key = key, .n = n };

	memset(data, 0, sizeof(data));
	memcpy(data, &s, sizeof(s));
	return sizeof(s) + bytes;
}

static size_t put_text(const char *text, size_t n)
{
	memset(data, ' ', n);
	memcpy(data, text, strlen(text));
	return n;
}

static void test_lies(void **state)
{
	static const char no_chains[] = "the block holds no call chains",
			  no_ledger[] = "the block holds no ledger", ledger[] = "{\"seen\":5}";
	const __s32 last = RECORDING_STACK_KEYS - 1;

	(void)state;
	check_block(RECORDING_EVENTS, 0, "the block holds no events");
	check_block(RECORDING_EVENTS, put_text("x", 100), "the block holds no events");
	check_block(RECORDING_COPIES, put_text("x", 8), "the block holds no copies of stacks");
	check_block(RECORDING_SAMPLES, put_text("x", 8), "it holds no samples, or too many");
	check_block(RECORDING_FETCHES, put_text("x", 8), "it holds no samples, or too many");
	check_block(RECORDING_STACKS, put_stack(last, TRACE_STACK_MAX, 8 * TRACE_STACK_MAX), NULL);
	check_block(RECORDING_STACKS, put_stack(0, 0, 0), NULL);
	check_block(RECORDING_STACKS, put_stack(0, 1, 8 + 15),
		    "the block ends inside a call chain");
	check_block(RECORDING_STACKS, put_stack(0, 2, 15), no_chains);
	check_block(RECORDING_STACKS, put_stack(-1, 0, 0), no_chains);
	check_block(RECORDING_STACKS, put_stack(last + 1, 0, 0), no_chains);
	check_block(RECORDING_STACKS, put_stack(0, TRACE_STACK_MAX + 1, 8 * (TRACE_STACK_MAX + 1)),
		    no_chains);
	assert_true(check_block(RECORDING_LEDGER, put_text(ledger, RECORDING_JSON_MAX), NULL));
	assert_true(check_block(RECORDING_END, put_text(ledger, strlen(ledger)), NULL));
	assert_false(check_block(RECORDING_LEDGER, put_text("{}", 2), NULL));
	assert_false(check_block(RECORDING_LEDGER, put_text("[]", 2), no_ledger));
	assert_false(
		check_block(RECORDING_LEDGER, put_text(ledger, RECORDING_JSON_MAX + 1), no_ledger));
	check_block(99, put_text("x", 100), NULL);
}

/* Events of a newer program are stepped over, and each has the offset of its block. */
static void test_newer_event(void **state)
{
	const struct trace_event lost = { .kind = TRACE_LOST, .time = 5, .lost.n = 7 };
	struct recording_event e = { .bytes = 40, .kind = 999 };
	const char *strings[RECORDING_STRINGS];
	struct trace_event ev;
	unsigned int none;
	struct trace *t;
	size_t n;
	off_t at;
	int fd;

	(void)state;
	memset(data, 0, 1000);
	memcpy(data, &e, sizeof(__u32) + sizeof(__u16));
	n = recording_event_encode(&lost, &e, strings, &none);
	e.bytes = n;
	memcpy(data + 40, &e, n);
	e.bytes = 50;
	e.kind = 999;
	memcpy(data + 40 + n, &e, n);
	recording_close(create(&fd));
	at = lseek(fd, 0, SEEK_END);
	append(fd, RECORDING_EVENTS, 1, 40 + n + 50);
	t = open_fd(fd);
	assert_int_equal(trace_next(t, &ev, &err), 1);
	assert_int_equal(ev.kind, TRACE_LOST);
	assert_int_equal(ev.lost.n, 7);
	assert_int_equal(ev.offset, at);
	assert_int_equal(trace_next(t, &ev, &err), 0);
	assert_int_equal(trace_end(t)->skipped_blocks, 0);
	trace_close(t);
	close(fd);
}

/* A recording with this as the only description. */
static int open_meta(const char *text, size_t n, struct trace **t)
{
	int fd, ret;

	recording_close(create(&fd));
	assert_int_equal(ftruncate(fd, HEAD), 0);
	if (n)
		append(fd, RECORDING_META, 0, put_text(text, n));
	ret = try_open(fd, t);
	close(fd);
	return ret;
}

static void test_description(void **state)
{
	static const char useless[] =
		"without an intact description of the recording, nothing can be read";
	char want[200];
	struct trace *t;

	(void)state;
	assert_int_equal(open_meta("", 0, &t), -EINVAL);
	assert_non_null(strstr(err.text, "it ends at offset 28, before the description"));
	assert_int_equal(open_meta("{}", RECORDING_JSON_MAX + 1, &t), -EINVAL);
	snprintf(want, sizeof(want), "offset 28: the description of the recording is too long; %s",
		 useless);
	assert_non_null(strstr(err.text, want));
	assert_int_equal(open_meta("[]", 2, &t), -EINVAL);
	assert_non_null(strstr(err.text, useless));
	assert_int_equal(open_meta("{}", RECORDING_JSON_MAX, &t), 0);
	trace_close(t);
}

static void cannot_read(int ret, size_t at)
{
	char want[100];

	snprintf(want, sizeof(want), "cannot read at offset %zu: Input/output error", at);
	assert_int_equal(ret, -EIO);
	assert_non_null(strstr(err.text, want));
}

/* What cannot be read is an error, wherever it is, and not damage. */
static void test_failing_reads(void **state)
{
	struct trace_event ev;
	struct recording *r;
	struct trace *t;
	off_t samples;
	int fd;

	(void)state;
	r = create(&fd);
	samples = lseek(fd, 0, SEEK_CUR);
	add_sample(r, 5, false);
	finish(r);
	for (int head = 0; head < 2; head++) {
		broken = HEAD + BLOCK - head;
		cannot_read(try_open(fd, &t), HEAD);
		broken = samples + BLOCK - head;
		t = open_fd(fd);
		cannot_read(trace_next(t, &ev, &err), samples);
		trace_close(t);
		broken = -1;
	}
	close(fd);
}

static void test_magic(void **state)
{
	static const __u32 block = RECORDING_BLOCK_MAGIC;
	unsigned char head[HEAD + 4] = { 0 };

	(void)state;
	memcpy(head, RECORDING_FILE_MAGIC, 8);
	for (size_t n = 0; n <= sizeof(head); n++)
		assert_int_equal(recording_format.magic(head, n), n >= 4);
	head[7] ^= 1;
	for (size_t n = 0; n <= sizeof(head); n++)
		assert_int_equal(recording_format.magic(head, n), n >= 4 && n < 8);
	memcpy(head + HEAD, &block, 4);
	assert_true(recording_format.magic(head, sizeof(head)));
	assert_false(recording_format.magic(head, sizeof(head) - 1));
}

/* A sample of the kernel has a function there; a chain of user space and what the walk found are behind their marks. */
static void test_chains(void **state)
{
	static const __u64 kernel_ip = 0xffffffff81000000;
	static const struct {
		struct ibs_record_extra extra;
		__u64 ip;
		unsigned int n;
		__u64 stack[8];
		bool lost;
	} rows[] = {
		{ { 1, -1, -1 }, 5, 3, { PERF_CONTEXT_KERNEL, 10, 11 }, false },
		{ { -1, 2, -1 }, 5, 2, { PERF_CONTEXT_USER, 20 }, false },
		{ { -1, 2, -1 },
		  kernel_ip,
		  4,
		  { PERF_CONTEXT_KERNEL, kernel_ip, PERF_CONTEXT_USER, 20 },
		  false },
		{ { 1, 2, -1 },
		  kernel_ip,
		  5,
		  { PERF_CONTEXT_KERNEL, 10, 11, PERF_CONTEXT_USER, 20 },
		  false },
		{ { -1, -1, 2 }, 5, 3, { PERF_CONTEXT_USER, 5, 20 }, false },
		{ { -1, -1, -EFAULT }, 5, 2, { PERF_CONTEXT_USER, 5 }, false },
		{ { -EFAULT, -EFAULT, -1 }, 5, 0, { 0 }, false },
		{ { -EEXIST, -1, -1 }, 5, 0, { 0 }, true },
		{ { -1, -ENOMEM, -1 }, 5, 0, { 0 }, true },
		{ { 3, 0, -1 }, 5, 0, { 0 }, false }, /* unknown, and empty */
		{ { -1, -1, -1 }, kernel_ip, 0, { 0 }, false },
	};
	struct recording *r;
	struct trace_event ev;
	struct trace *t;
	int fd;

	(void)state;
	r = create(&fd);
	assert_int_equal(recording_stack(r, 0, NULL, 0, &err), 0);
	assert_int_equal(recording_stack(r, 1, (__u64[]){ 10, 11 }, 2, &err), 0);
	assert_int_equal(recording_stack(r, 2, (__u64[]){ 20 }, 1, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct ibs_record rec = { .time = i, .ip = rows[i].ip };

		assert_int_equal(recording_samples(r, &rec, &rows[i].extra, 1, &err), 0);
	}
	finish(r);
	t = open_fd(fd);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_int_equal(trace_next(t, &ev, &err), 1);
		assert_int_equal(ev.sample.n_stack, rows[i].n);
		assert_int_equal(ev.sample.chain_lost, rows[i].lost);
		if (rows[i].n)
			assert_memory_equal(ev.sample.stack, rows[i].stack, 8 * rows[i].n);
	}
	trace_close(t);
	close(fd);
}

static void test_memory(void **state)
{
	const struct ibs_user_copy copy = { .flags = IBS_COPY_REGS };
	const __u64 chain[] = { 1, 2, 3 };
	struct trace_event ev;
	struct recording *r;
	size_t before = 0;
	int fd, next;

	(void)state;
	r = create(&fd);
	for (__u64 i = 0; i < 3; i++) {
		assert_int_equal(recording_stack(r, i, chain, 3, &err), 0);
		assert_int_equal(recording_stack(r, 0, chain, 3, &err), 0);
		add_event(r, i, TRACE_COMM);
		recording_copies(r, (const char *)&copy, sizeof(copy));
		add_sample(r, i, i % 2);
		assert_int_equal(recording_flush(r, NULL, &err), 0);
	}
	finish(r);
	next = dup(fd);
	close(next);
	for (int i = 0; i < 301; i++) {
		struct trace *t = open_fd(fd);

		while (trace_next(t, &ev, &err) > 0)
			;
		assert_int_equal(trace_rewind(t, &err), 0);
		while (trace_next(t, &ev, &err) > 0)
			;
		trace_close(t);
		assert_int_equal(open_meta("[]", 2, &t), -EINVAL);
		if (!i)
			before = memory_in_use();
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
	/* nor does it keep files open: the next one has the same number as before */
	assert_int_equal(dup(fd), next);
	close(next);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	      cmocka_unit_test(test_large),
		cmocka_unit_test(test_lies),	      cmocka_unit_test(test_description),
		cmocka_unit_test(test_magic),	      cmocka_unit_test(test_newer_event),
		cmocka_unit_test(test_failing_reads), cmocka_unit_test(test_chains),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
