// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Copies of stacks in recordings, whole and damaged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "memory_in_use.h"
#include "recording/recording.h"
#include "recording/recording_copies.h"

#define N	500 /* copies of several blocks */
#define ROOM	8192
#define STRIDE	(sizeof(struct ibs_user_copy) + ROOM)
#define PER_RUN 100

static const struct trace_pmu event = {
	.name = "ibs_op//", .op = true, .period = 100000, .stacks = true, .copy_bytes = ROOM
};

static struct ibs_record records[N];
static struct ibs_record_extra extra[N];
static char copies[N * STRIDE];

static struct ibs_user_copy *copy_of(unsigned int i)
{
	return (void *)(copies + i * STRIDE);
}

/* Every fifth has none, others of different lengths. */
static void fill(void)
{
	for (unsigned int i = 0; i < N; i++) {
		struct ibs_user_copy *c = copy_of(i);

		records[i] = (struct ibs_record){ .time = 1000 + i, .tgid = 7, .tid = 8 + i % 3 };
		extra[i] = (struct ibs_record_extra){ -1, -1, -1, 0, 0, { 0 } };
		c->flags = i % 5 ? IBS_COPY_REGS | (i % 2 ? IBS_COPY_CUT : 0) : 0;
		c->bytes = i % 5 ? i % 17 * IBS_COPY_STEP : 0;
		for (unsigned int k = 0; k < IBS_USER_REGS; k++)
			c->regs[k] = i * 1000 + k;
		memset(c + 1, i, c->bytes);
	}
}

static int record(bool compress)
{
	struct trace_info info = { .source = "ibs", .has_cpu = true, .pmu = &event, .n_pmus = 1 };
	struct recording_opts opts = { .fd = memfd_create("copies", 0),
				       .info = &info,
				       .compress = compress };
	struct recording *r;
	struct err err = {};

	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	assert_int_equal(recording_create(&opts, &r, &err), 0);
	for (unsigned int i = 0; i < N; i += PER_RUN) {
		recording_copies(r, copies + i * STRIDE, STRIDE);
		assert_int_equal(recording_samples(r, records + i, extra + i, PER_RUN, &err), 0);
	}
	assert_int_equal(recording_finish(r, NULL, &err), 0);
	recording_close(r);
	return opts.fd;
}

static struct trace *open_fd(int fd)
{
	struct err err = {};
	struct trace *t;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	assert_int_equal(trace_open(path, &t, &err), 0);
	return t;
}

/* Return: how many samples have their copy; others have none. */
static unsigned int read_all(struct trace *t, bool expect_all)
{
	unsigned int found = 0, i;
	struct trace_event ev;
	struct err err = {};

	while (trace_next(t, &ev, &err) > 0) {
		const struct trace_copy *c = ev.sample.copy;

		i = ev.time - 1000;
		assert_true(i < N);
		if (expect_all)
			assert_true(!c == !(i % 5));
		if (!c)
			continue;
		found++;
		assert_true(i % 5);
		assert_memory_equal(c->regs, copy_of(i)->regs, sizeof(copy_of(i)->regs));
		assert_int_equal(c->bytes, copy_of(i)->bytes);
		assert_memory_equal(c->data, copy_of(i) + 1, c->bytes);
		assert_true(c->cut == i % 2);
	}
	return found;
}

static void test_round_trip(void **state)
{
	(void)state;
	for (int compress = 0; compress < 2; compress++) {
		int fd = record(compress);
		struct trace *t = open_fd(fd);
		struct err err = {};

		assert_int_equal(trace_info(t)->pmu[0].copy_bytes, ROOM);
		assert_int_equal(read_all(t, true), N - N / 5);
		assert_true(trace_end(t)->whole);
		assert_int_equal(trace_rewind(t, &err), 0);
		assert_int_equal(read_all(t, true), N - N / 5);
		trace_close(t);
		close(fd);
	}
}

/* A sample without a copy has none of another one, though that is of the same time and task. */
static void test_none(void **state)
{
	struct trace_info info = { .source = "ibs", .has_cpu = true, .pmu = &event, .n_pmus = 1 };
	struct recording_opts opts = { .fd = memfd_create("copies", 0), .info = &info };
	static char both[2 * STRIDE];
	struct ibs_user_copy *first = (void *)both, *second = (void *)(both + STRIDE);
	const struct ibs_record same[2] = {};
	struct trace_event ev;
	struct recording *r;
	struct err err = {};
	struct trace *t;
	__u64 before;

	(void)state;
	assert_int_equal(recording_create(&opts, &r, &err), 0);
	first->flags = second->flags = IBS_COPY_REGS;
	recording_copies(r, both, STRIDE);
	before = recording_bytes(r);
	assert_int_equal(recording_samples(r, same, NULL, 1, &err), 0);
	assert_int_equal(recording_bytes(r),
			 before + sizeof(*same) + sizeof(struct recording_copy));
	for (int without = 0; without < 2; without++) {
		first->flags = without ? 0 : IBS_COPY_REGS;
		recording_copies(r, both, STRIDE);
		assert_int_equal(recording_samples(r, same, NULL, 2, &err), 0);
		assert_int_equal(recording_flush(r, NULL, &err), 0);
	}
	assert_int_equal(recording_finish(r, NULL, &err), 0);
	recording_close(r);
	t = open_fd(opts.fd);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(trace_next(t, &ev, &err), 1);
		assert_int_equal(!ev.sample.copy, i == 3);
	}
	trace_close(t);
	close(opts.fd);
}

/* Readers of version 1 would show chains without callers: they are to refuse. */
static void test_version(void **state)
{
	struct recording_file_head head;
	int fd = record(false);

	(void)state;
	assert_int_equal(pread(fd, &head, sizeof(head), 0), sizeof(head));
	assert_int_equal(head.major, 2);
	close(fd);
}

/* The offset and head of the first block of copies behind @from. */
static off_t find_copies(int fd, off_t from, struct recording_block *h)
{
	off_t at = sizeof(struct recording_file_head);

	for (;; at += sizeof(*h) + h->bytes) {
		assert_int_equal(pread(fd, h, sizeof(*h), at), sizeof(*h));
		if (h->type == RECORDING_COPIES && at > from)
			return at;
	}
}

/* Samples whose block of copies is damaged have none, and not those of the block before. */
static void test_damage(void **state)
{
	int fd = record(false);
	struct recording_block h;
	unsigned int found;
	struct trace *t;
	off_t at;

	(void)state;
	at = find_copies(fd, find_copies(fd, 0, &h), &h);
	assert_int_equal(pwrite(fd, "?", 1, at + sizeof(h) + h.bytes / 2), 1);
	t = open_fd(fd);
	found = read_all(t, false);
	assert_in_range(found, 1, N - N / 5 - 20);
	assert_false(trace_end(t)->whole);
	trace_close(t);
	close(fd);
}

/* Copies that were read before a rewind are not those of damaged blocks after it. */
static void test_rewind(void **state)
{
	struct trace_info info = { .source = "ibs", .has_cpu = true, .pmu = &event, .n_pmus = 1 };
	struct recording_opts opts = { .fd = memfd_create("copies", 0), .info = &info };
	const struct ibs_user_copy copy = { .flags = IBS_COPY_REGS };
	const struct ibs_record same = {};
	struct recording_block h;
	struct trace_event ev;
	struct recording *r;
	struct err err = {};
	struct trace *t;

	(void)state;
	assert_int_equal(recording_create(&opts, &r, &err), 0);
	for (int i = 0; i < 2; i++) {
		recording_copies(r, (const char *)&copy, sizeof(copy));
		assert_int_equal(recording_samples(r, &same, NULL, 1, &err), 0);
		assert_int_equal(recording_flush(r, NULL, &err), 0);
	}
	recording_close(r);
	assert_int_equal(pwrite(opts.fd, "?", 1, find_copies(opts.fd, 0, &h) + sizeof(h)), 1);
	t = open_fd(opts.fd);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(trace_next(t, &ev, &err), 1);
		assert_int_equal(!ev.sample.copy, i % 2 == 0);
		if (i == 1)
			assert_int_equal(trace_rewind(t, &err), 0);
	}
	trace_close(t);
	close(opts.fd);
}

/* A block with a correct checksum and other contents. */
static void test_lies(void **state)
{
	struct {
		struct recording_copy head;
		unsigned char stack[64];
	} one = { .head = { .time = 5, .tid = 6, .bytes = 64 } };
	struct trace_event ev = { .time = 5, .sample = { .tid = 6 } };
	struct recording_copies c = {};

	(void)state;
	assert_true(recording_copies_take(&c, (void *)&one, sizeof(one)));
	assert_non_null(recording_copies_find(&c, 1, &ev));
	assert_null(recording_copies_find(&c, 0, &ev));
	assert_null(recording_copies_find(&c, 2, &ev));
	ev.time++;
	assert_null(recording_copies_find(&c, 1, &ev));
	ev.time--;
	ev.sample.tid++;
	assert_null(recording_copies_find(&c, 1, &ev));
	ev.sample.tid--;
	for (size_t n = 0; n < sizeof(one); n++) {
		assert_false(recording_copies_take(&c, (void *)&one, n));
		assert_null(recording_copies_find(&c, 1, &ev));
	}
	one.head.bytes = UINT32_MAX;
	assert_false(recording_copies_take(&c, (void *)&one, sizeof(one)));
	recording_copies_free(&c);
}

static void test_memory(void **state)
{
	struct recording_copy heads[3] = {};
	struct recording_copies c = {};
	size_t before = 0;

	(void)state;
	for (int i = 0; i < 301; i++) {
		assert_true(recording_copies_take(&c, (void *)heads, sizeof(heads)));
		assert_true(recording_copies_take(&c, (void *)heads, sizeof(heads)));
		recording_copies_free(&c);
		if (!i)
			before = memory_in_use();
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
}

static int setup(void **state)
{
	(void)state;
	fill();
	return 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip), cmocka_unit_test(test_none),
		cmocka_unit_test(test_version),	   cmocka_unit_test(test_damage),
		cmocka_unit_test(test_rewind),	   cmocka_unit_test(test_lies),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
