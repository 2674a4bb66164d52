// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the reader of a recording returns, and in which order; what is skipped, who reads it, and reads that fail. */
#include <stdatomic.h>
#include <sys/syscall.h>

#include <ibscope/sim.h>

#include "base/parallel.h"
#include "memory_in_use.h"
#include "recording_append.h"

/* Reads fail if they touch this offset; those of large blocks are counted, by the thread of the test and by others. */
static off_t broken = -1;
static pid_t tester;
static atomic_uint reads[2];

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
	if (broken >= at && broken < at + (off_t)n) {
		errno = EIO;
		return -1;
	}
	reads[gettid() != tester] += n > 10000;
	return syscall(SYS_pread64, fd, to, n, at);
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
static void check(int fd, struct trace *t, size_t n, const unsigned int want[][2])
{
	struct recording_block h;
	struct trace_event ev;

	for (size_t i = 0; i < n; i++) {
		assert_int_equal(trace_next(t, &ev, &err), 1);
		assert_int_equal(ev.kind, want[i][0]);
		assert_int_equal(ev.time, want[i][1]);
		if (ev.kind == TRACE_ALLOC) {
			assert_int_equal((uintptr_t)ev.alloc.stack % sizeof(__u64), 0);
			assert_int_equal(ev.alloc.stack[0], ev.time);
		}
		assert_int_equal(pread(fd, &h, BLOCK, ev.offset), BLOCK);
		assert_int_equal(h.magic, RECORDING_BLOCK_MAGIC);
		assert_int_equal(h.type, ev.kind == TRACE_SAMPLE_OP	 ? RECORDING_SAMPLES
					 : ev.kind == TRACE_SAMPLE_FETCH ? RECORDING_FETCHES
									 : RECORDING_EVENTS);
	}
	assert_int_equal(trace_next(t, &ev, &err), 0);
	assert_true(trace_end(t)->whole);
	assert_int_equal(t->done, t->total);
}
#define CHECK(t, want) check(fd, t, ARRAY_SIZE(want), want)

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
		for (size_t i = 0; i < stop; i++) {
			assert_int_equal(trace_next(t, &ev, &err), 1);
			assert_true(i || t->done < t->total);
		}
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

/* Of samples of one kind, each is known before it comes. */
static void test_hints(void **state)
{
	enum { SAMPLES = 10 };

	(void)state;
	for (int fetch = 0; fetch < 2; fetch++) {
		struct trace_hint hint;
		struct trace_event ev;
		struct recording *r;
		struct trace *t;
		int fd;

		r = create(&fd);
		for (__u64 time = 0; time < SAMPLES; time++)
			add_sample(r, time, fetch);
		finish(r);
		t = open_fd(fd);
		for (unsigned int i = 0; i < SAMPLES; i++) {
			assert_int_equal(trace_next(t, &ev, &err), 1);
			for (unsigned int n = 0; n < SAMPLES; n++) {
				const unsigned int of = i + 1 + n;

				assert_int_equal(trace_ahead(t, n, &hint), of < SAMPLES);
				if (of >= SAMPLES)
					continue;
				assert_int_equal(hint.tgid, 7);
				assert_int_equal(hint.tid, of);
				assert_int_equal(hint.ip, of << 20);
			}
		}
		trace_close(t);
		close(fd);
	}
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
	reads[0] = reads[1] = 0;
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
		/* blocks of ibs_op, which come before those of ibs_fetch, are read by either thread, but not by both */
		assert_true(reads[1] > reads[0]);
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

static void test_memory(void **state)
{
	const struct ibs_user_copy copy = { .flags = IBS_COPY_REGS };
	const __u64 chain[] = { 1, 2, 3 };
	struct trace_event ev;
	struct recording *r;
	size_t before = 0;
	int fd, next, bad;

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
	recording_close(create(&bad));
	assert_int_equal(ftruncate(bad, HEAD), 0);
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
		assert_int_equal(try_open(bad, &t), -EINVAL);
		if (!i)
			before = memory_in_use();
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
	/* nor does it keep files open: the next one has the same number as before */
	assert_int_equal(dup(fd), next);
	close(next);
	close(bad);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order), cmocka_unit_test(test_large),
		cmocka_unit_test(test_hints), cmocka_unit_test(test_failing_reads),
		cmocka_unit_test(test_magic), cmocka_unit_test(test_memory),
	};

	tester = gettid();
	parallel_threads = 2; /* also on a machine with one CPU */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
