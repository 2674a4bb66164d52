// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* How a recording is written: its blocks, what they hold and when they end, and writes that come short or are interrupted. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include <ibscope/sim.h>

#include "memory_in_use.h"
#include "recording/recording.h"
#include "recording/recording_columns.h"
#include "recording/recording_format.h"

#define BLOCK sizeof(struct recording_block)
#define EVENT RECORDING_EVENT_BYTES(comm)

static struct trace_pmu pmu = { .name = "ibs_op//", .op = true, .stacks = true };
static const struct trace_info info = { .source = "sim", .pmu = &pmu, .n_pmus = 1 };
static struct ibs_record records[RECORDING_BATCH];
static struct err err;

/* Writes take so many bytes, every second none, in turn since a signal came and since there is no room. */
static size_t part;
static unsigned int writes, polls;

ssize_t writev(int fd, const struct iovec *v, int n)
{
	struct iovec first = *v;

	if (!part)
		return syscall(SYS_writev, fd, v, n);
	if (++writes % 2) {
		errno = writes % 4 == 1 ? EINTR : EAGAIN;
		return -1;
	}
	first.iov_len = part < first.iov_len ? part : first.iov_len;
	return syscall(SYS_writev, fd, &first, 1);
}

int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	assert_int_equal(n, 1);
	assert_int_equal(fds->events, POLLOUT);
	assert_int_equal(timeout, -1);
	polls++;
	return 1;
}

static bool no_random;

ssize_t getrandom(void *to, size_t n, unsigned int flags)
{
	return no_random ? -1 : syscall(SYS_getrandom, to, n, flags);
}

static struct recording *create(int *fd, bool compress)
{
	struct recording_opts opts = { .info = &info, .compress = compress };
	struct recording *r;

	opts.fd = *fd = memfd_create("write", 0);
	if (recording_create(&opts, &r, &err))
		fail_msg("%s", err.text);
	return r;
}

static void flush(struct recording *r)
{
	assert_int_equal(recording_flush(r, NULL, &err), 0);
}

/* The head of the block at *@at, which is then the next one. Return: false at the end */
static bool next_block(int fd, size_t *at, struct recording_block *h)
{
	if (pread(fd, h, BLOCK, *at) != BLOCK)
		return false;
	*at += BLOCK + h->bytes;
	return true;
}

/* The next block of a type. Return: where its data begins */
static size_t find_block(int fd, size_t *at, enum recording_block_type type,
			 struct recording_block *h)
{
	do
		assert_true(next_block(fd, at, h));
	while (h->type != type);
	return *at - h->bytes;
}

static size_t first_block(void)
{
	return sizeof(struct recording_file_head);
}

static void add_comm(struct recording *r, const char *name)
{
	const struct trace_event ev = { .kind = TRACE_COMM, .comm.name = name };

	assert_int_equal(recording_event(r, &ev, &err), 0);
}

static size_t written(int fd)
{
	return lseek(fd, 0, SEEK_CUR);
}

static void test_slow_writes(void **state)
{
	static const size_t parts[] = { 1, 13, 40, 100000 };
	struct recording_block h;
	int fd;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		size_t at = first_block();
		struct recording *r;

		part = parts[i];
		writes = polls = 0;
		r = create(&fd, false);
		add_comm(r, "name");
		flush(r);
		part = 0;
		assert_int_equal(polls, writes / 4);
		assert_int_equal(recording_bytes(r), written(fd));
		find_block(fd, &at, RECORDING_META, &h);
		assert_int_equal(h.entries, 0);
		find_block(fd, &at, RECORDING_EVENTS, &h);
		assert_int_equal(h.bytes, EVENT + 5);
		assert_int_equal(at, written(fd));
		recording_close(r);
		close(fd);
	}
}

/* What is buffered counts as it will be written, samples as those before them on average. */
static void test_bytes(void **state)
{
	const __u64 chain[3] = { 1, 2, 3 };
	struct recording_block h;
	__u64 before;
	size_t at = first_block();
	int fd;
	struct recording *r = create(&fd, false);

	(void)state;
	before = recording_bytes(r);
	assert_int_equal(before, written(fd));
	add_comm(r, "name");
	assert_int_equal(recording_bytes(r), before + EVENT + 5);
	assert_int_equal(recording_stack(r, 1, chain, 3, &err), 0);
	before += EVENT + 5 + sizeof(struct recording_stack) + sizeof(chain);
	assert_int_equal(recording_bytes(r), before);
	flush(r);
	before += 2 * BLOCK;
	assert_int_equal(recording_bytes(r), before);
	assert_int_equal(written(fd), before);
	assert_int_equal(recording_samples(r, records, NULL, 10, &err), 0);
	assert_int_equal(recording_bytes(r), before + 10 * sizeof(*records));
	records[10].packed = IBS_RECORD_FETCH;
	assert_int_equal(recording_samples(r, &records[10], NULL, 1, &err), 0);
	records[10].packed = 0;
	assert_int_equal(recording_bytes(r), before + 11 * sizeof(*records));
	flush(r);
	for (unsigned int i = 0; i < 1000; i++)
		records[i].addr = records[i].data3 = ibs_sim_mix(i);
	assert_int_equal(recording_samples(r, records, NULL, 1000, &err), 0);
	flush(r);
	before = written(fd);
	assert_int_equal(recording_samples(r, records, NULL, 500, &err), 0);
	find_block(fd, &at, RECORDING_STACKS, &h);
	find_block(fd, &at, RECORDING_EVENTS, &h);
	assert_in_range((before - at) / 1011, 20, 30);
	assert_int_equal(recording_bytes(r), before + 500 * ((before - at) / 1011));
	memset(records, 0, sizeof(records));
	recording_close(r);
	close(fd);
}

/* The description comes again after 4 MiB each, as soon as a flush has written as much. */
static void test_description(void **state)
{
	struct recording_block h;
	size_t at = first_block(), last = at, n = 0;
	int fd;
	struct recording *r = create(&fd, false);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(records); i++)
		records[i].addr = records[i].phys = ibs_sim_mix(i);
	while (written(fd) < 20 << 20) {
		assert_int_equal(recording_samples(r, records, NULL, RECORDING_WRITTEN, &err), 0);
		flush(r);
	}
	while (next_block(fd, &at, &h)) {
		const size_t begin = at - BLOCK - h.bytes;

		assert_true(begin - last < (4 << 20) + 200000);
		if (h.type != RECORDING_META || begin == first_block())
			continue;
		assert_true(begin - last >= 4 << 20);
		last = begin;
		n++;
	}
	assert_in_range(n, 4, 5);
	memset(records, 0, sizeof(records));
	recording_close(r);
	close(fd);
}

/* An event of so many bytes. */
static void add_event_of(struct recording *r, size_t n)
{
	char name[2048];

	memset(name, 'x', sizeof(name));
	name[n - EVENT - 1] = 0;
	add_comm(r, name);
}

/* It also comes again if exactly as much was written. */
static void test_description_due(void **state)
{
	for (int less = 0; less < 2; less++) {
		size_t at = first_block(), rest;
		struct recording_block h;
		int fd;
		struct recording *r = create(&fd, false);

		(void)state;
		rest = first_block() + (4 << 20) - written(fd) - less;
		while (rest > RECORDING_BLOCK_MAX + BLOCK) {
			for (size_t i = 0; i < RECORDING_BLOCK_MAX / 1024; i++)
				add_event_of(r, 1024);
			flush(r);
			rest -= RECORDING_BLOCK_MAX + BLOCK;
		}
		for (rest -= BLOCK; rest >= 2048; rest -= 1024)
			add_event_of(r, 1024);
		add_event_of(r, rest);
		flush(r);
		while (next_block(fd, &at, &h))
			;
		assert_int_equal(h.type, less ? RECORDING_EVENTS : RECORDING_META);
		recording_close(r);
		close(fd);
	}
}

/* A block of events ends when the next one has no room. */
static void test_full_block(void **state)
{
	struct recording_block h;
	size_t at = first_block();
	int fd;
	struct recording *r = create(&fd, false);

	(void)state;
	for (size_t i = 0; i < RECORDING_BLOCK_MAX / 1024; i++)
		add_event_of(r, 1024);
	flush(r);
	find_block(fd, &at, RECORDING_EVENTS, &h);
	assert_int_equal(h.bytes, RECORDING_BLOCK_MAX);
	assert_int_equal(h.entries, RECORDING_BLOCK_MAX / 1024);
	assert_int_equal(at, written(fd));
	for (size_t i = 0; i <= RECORDING_BLOCK_MAX / 1024; i++)
		add_event_of(r, 1024);
	flush(r);
	find_block(fd, &at, RECORDING_EVENTS, &h);
	assert_int_equal(h.bytes, RECORDING_BLOCK_MAX);
	find_block(fd, &at, RECORDING_EVENTS, &h);
	assert_int_equal(h.bytes, 1024);
	recording_close(r);
	close(fd);
}

/* A block is compressed if that makes it smaller. */
static void test_compression(void **state)
{
	enum { NAMES = 2000 };
	unsigned int packed = 0;
	struct recording_block h;
	size_t at = first_block();
	int fd;
	struct recording *r = create(&fd, true);

	(void)state;
	/* from nothing that repeats to much of it */
	for (unsigned int i = 0; i < NAMES; i++) {
		char name[101] = "";

		for (unsigned int k = 0; k < 100; k++)
			name[k] = k < i % 50 ? 'x' : 1 + ibs_sim_mix(1000 * i + k) % 255;
		add_comm(r, name);
		flush(r);
		find_block(fd, &at, RECORDING_EVENTS, &h);
		assert_int_equal(h.raw_bytes, EVENT + 101);
		assert_int_equal(h.flags, h.bytes < h.raw_bytes ? RECORDING_ZSTD : 0);
		packed += h.flags;
	}
	assert_in_range(packed, 1, NAMES - 1);
	recording_close(r);
	close(fd);
}

/* Each file has another number, even if the kernel has no random numbers. */
static void test_file_number(void **state)
{
	enum { FILES = 100 };
	struct recording_file_head heads[FILES];

	(void)state;
	for (int without = 0; without < 2; without++) {
		no_random = without;
		for (int i = 0; i < FILES; i++) {
			int fd;

			recording_close(create(&fd, false));
			assert_int_equal(pread(fd, &heads[i], sizeof(*heads), 0), sizeof(*heads));
			close(fd);
			for (int k = 0; k < i; k++)
				assert_int_not_equal(heads[k].file, heads[i].file);
		}
	}
	no_random = false;
}

/* Nothing is added once something is missing. */
static void test_after_failure(void **state)
{
	const struct trace_event ev = { .kind = TRACE_COMM, .comm.name = "x" };
	const struct ibs_record_raw raw = { .bytes = IBS_OP_RAW_MIN };
	const __u64 chain = 1;
	int fd, full = open("/dev/full", O_WRONLY), end = memfd_create("end", 0);
	struct recording_block h;
	char text[100] = "";
	struct recording *r = create(&fd, false);
	const size_t n = written(fd);

	(void)state;
	add_comm(r, "x");
	assert_int_equal(dup3(full, fd, 0), fd);
	assert_int_equal(recording_flush(r, NULL, &err), -ENOSPC);
	for (int i = 0; i < 5; i++) {
		err.text[0] = 0;
		assert_int_equal(i == 0	  ? recording_event(r, &ev, &err)
				 : i == 1 ? recording_stack(r, 1, &chain, 1, &err)
				 : i == 2 ? recording_samples(r, records, NULL, 1, &err)
				 : i == 3 ? recording_samples_raw(r, &raw, NULL, 1, &err)
					  : recording_flush(r, NULL, &err),
				 -EIO);
		assert_string_equal(err.text, "writing the recording failed before");
	}
	assert_int_equal(recording_bytes(r), n);
	err.text[0] = 0;
	assert_int_equal(recording_finish(r, NULL, &err), -ENOSPC);
	assert_non_null(strstr(err.text, "No space left"));
	/* there is room again: the end says what is missing */
	assert_int_equal(dup3(end, fd, 0), fd);
	assert_int_equal(recording_finish(r, NULL, &err), 0);
	recording_close(r);
	assert_int_equal(pread(end, &h, BLOCK, 0), BLOCK);
	assert_int_equal(h.type, RECORDING_END);
	assert_in_range(pread(end, text, sizeof(text) - 1, BLOCK), 1, sizeof(text) - 1);
	assert_non_null(strstr(text, "\"unwritten_blocks\":2"));
	close(end);
	close(full);
	close(fd);
}

/* A ledger is written where there is one; the description comes once more before the end. */
static void test_end(void **state)
{
	static const enum recording_block_type want[] = { RECORDING_META, RECORDING_LEDGER,
							  RECORDING_EVENTS, RECORDING_META,
							  RECORDING_END };
	const struct ledger ledger = { .seen = 5 };
	struct recording_block h;
	size_t at = first_block();
	int fd;
	struct recording *r = create(&fd, false);

	(void)state;
	assert_int_equal(recording_flush(r, &ledger, &err), 0);
	add_comm(r, "x");
	flush(r);
	assert_int_equal(recording_finish(r, &ledger, &err), 0);
	recording_close(r);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		assert_true(next_block(fd, &at, &h));
		assert_int_equal(h.type, want[i]);
		assert_int_equal(h.entries, h.type == RECORDING_EVENTS);
	}
	assert_int_equal(at, written(fd));
	close(fd);
}

/* A chain that replaces one waits for the samples of that one, and only for these. */
static void test_stacks(void **state)
{
	static const __s32 keys[] = { 0, 7, 8, 9, RECORDING_STACK_KEYS - 1 };
	const __u64 chain[TRACE_STACK_MAX] = { 1 };
	struct recording_stack s;
	struct recording_block h;
	size_t at = first_block(), data;
	int fd;
	struct recording *r = create(&fd, false);

	(void)state;
	for (unsigned int again = 0; again < 2; again++)
		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			assert_int_equal(recording_stack(r, keys[i], chain, TRACE_STACK_MAX, &err),
					 0);
	flush(r);
	data = find_block(fd, &at, RECORDING_STACKS, &h);
	assert_int_equal(h.entries, 2 * ARRAY_SIZE(keys));
	for (size_t i = 0; i < h.entries; i++, data += sizeof(s) + sizeof(chain)) {
		const bool replaces = i >= ARRAY_SIZE(keys);

		assert_int_equal(pread(fd, &s, sizeof(s), data), sizeof(s));
		assert_int_equal(s.key, keys[i % ARRAY_SIZE(keys)]);
		assert_int_equal(s.n, TRACE_STACK_MAX);
		assert_int_equal(s.flags, replaces ? RECORDING_REPLACES : 0);
		assert_int_equal(s.replaced, replaces ? i - ARRAY_SIZE(keys) + 1 : 0);
	}
	for (int fetch = 0; fetch < 2; fetch++) {
		const struct ibs_record rec = { .packed = fetch ? IBS_RECORD_FETCH : 0 };
		const struct ibs_record_extra extra = { -1, 7, -1, 0, 0, { 0 } };

		assert_int_equal(recording_samples(r, &rec, &extra, 1, &err), 0);
		assert_int_equal(recording_stack(r, 1 + fetch, chain, 1, &err), 0);
		assert_int_equal(at, written(fd));
		assert_int_equal(recording_stack(r, 7, chain, 1, &err), 0);
		find_block(fd, &at, RECORDING_STACKS, &h);
		assert_int_equal(h.entries, 1 + fetch);
		find_block(fd, &at, fetch ? RECORDING_FETCHES : RECORDING_SAMPLES, &h);
		assert_int_equal(at, written(fd));
	}
	recording_close(r);
	close(fd);
}

/* Chains fill a block to its end, and what is wrong with one is said. */
static void test_many_stacks(void **state)
{
	const __u64 chain[TRACE_STACK_MAX] = { 1 };
	const size_t each = sizeof(struct recording_stack) + sizeof(chain);
	const size_t most = RECORDING_BLOCK_MAX / each;
	struct recording_block h;
	size_t at = first_block();
	int fd;
	struct recording *r = create(&fd, false);

	(void)state;
	for (size_t i = 0; i <= most; i++)
		assert_int_equal(recording_stack(r, i, chain, TRACE_STACK_MAX, &err), 0);
	flush(r);
	find_block(fd, &at, RECORDING_STACKS, &h);
	assert_int_equal(h.bytes, most * each);
	find_block(fd, &at, RECORDING_STACKS, &h);
	assert_int_equal(h.bytes, each);
	assert_int_equal(recording_stack(r, -5, chain, 3, &err), -EINVAL);
	assert_string_equal(err.text, "call chain -5 of 3 addresses: keys go from 0 to 131071, and "
				      "a chain has at most 127 addresses");
	recording_close(r);
	close(fd);
}

/* Strata belong to their samples, also of more than a block. */
static void test_strata(void **state)
{
	static struct recording_columns c;
	static unsigned char data[RECORDING_BLOCK_MAX];
	static __u8 strata[RECORDING_BATCH + 1];
	struct recording_block h;
	size_t at = first_block(), n = 0;
	int fd;
	struct recording *r = create(&fd, false);

	(void)state;
	for (size_t i = 0; i < RECORDING_BATCH; i++)
		strata[i] = i % 3 % 2;
	recording_strata(r, strata);
	assert_int_equal(recording_samples(r, records, NULL, RECORDING_BATCH, &err), 0);
	flush(r);
	while (n < RECORDING_BATCH) {
		const size_t from = find_block(fd, &at, RECORDING_SAMPLES, &h);

		assert_int_equal(pread(fd, data, h.bytes, from), h.bytes);
		assert_null(recording_columns_decode(&c, h.entries, data, h.bytes));
		for (unsigned int i = 0; i < c.n; i++)
			assert_int_equal(c.v[RECORDING_COLUMN_STRATUM][i], strata[n++]);
	}
	recording_close(r);
	close(fd);
}

/* A call fails that finds the buffers full and cannot write them. */
static void test_no_room(void **state)
{
	static struct {
		struct ibs_user_copy head;
		char stack[IBS_COPY_MAX];
	} copy = { .head = { .flags = IBS_COPY_REGS, .bytes = IBS_COPY_MAX } };
	const __u64 chain[TRACE_STACK_MAX] = { 1 };
	const struct trace_event ev = { .kind = TRACE_COMM, .comm.name = "x" };
	const int full = open("/dev/full", O_WRONLY);

	(void)state;
	for (int of = 0; of < 4; of++) {
		int fd, ret = 0;
		struct recording *r = create(&fd, false);

		assert_int_equal(dup3(full, fd, 0), fd);
		for (unsigned int i = 0; !ret && i < 1000000; i++) {
			if (of == 3)
				recording_copies(r, (void *)&copy, 0);
			ret = of == 0	? recording_event(r, &ev, &err)
			      : of == 1 ? recording_stack(r, i, chain, TRACE_STACK_MAX, &err)
					: recording_samples(r, records, NULL, 1, &err);
		}
		assert_int_equal(ret, -ENOSPC);
		recording_close(r);
		close(fd);
	}
	close(full);
}

static void test_memory(void **state)
{
	const struct recording_opts full = { .fd = open("/dev/full", O_WRONLY), .info = &info };
	struct recording *r_full;
	size_t before = 0;

	(void)state;
	for (int i = 0; i < 301; i++) {
		struct ledger ledger = {};
		int fd;
		struct recording *r = create(&fd, true);

		assert_int_equal(recording_create(&full, &r_full, &err), -ENOSPC);
		assert_int_equal(recording_finish(r, &ledger, &err), 0);
		recording_close(r);
		close(fd);
		if (!i)
			before = memory_in_use();
	}
	close(full.fd);
	recording_close(NULL);
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slow_writes), cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_description), cmocka_unit_test(test_end),
		cmocka_unit_test(test_many_stacks), cmocka_unit_test(test_strata),
		cmocka_unit_test(test_no_room),	    cmocka_unit_test(test_description_due),
		cmocka_unit_test(test_full_block),  cmocka_unit_test(test_compression),
		cmocka_unit_test(test_file_number), cmocka_unit_test(test_after_failure),
		cmocka_unit_test(test_stacks),	    cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
