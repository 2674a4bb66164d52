// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the reader of a recording makes of the contents of blocks: those that are wrong, newer, or lack something. */
#include <linux/perf_event.h>

#include "recording/recording_columns.h"
#include "recording/recording_events.h"
#include "recording_append.h"

/* A recording that has a description and this block. Return: whether it has a ledger */
static bool check_block(enum recording_block_type type, size_t n, const char *wrong)
{
	struct trace_event ev;
	struct trace *t;
	bool has;
	int fd;

	recording_close(create(&fd));
	append(fd, type, 1, n, 0);
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
	append(fd, RECORDING_EVENTS, 1, 40 + n + 50, 3);
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
		append(fd, RECORDING_META, 0, put_text(text, n), 0);
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

/* A chain that is not all there is none, and samples without chains make no other one invalid. */
static void test_lost_chains(void **state)
{
	static struct recording_columns c = {
		.n = 1, .present = 1U << RECORDING_COLUMN_TIME | 1U << RECORDING_COLUMN_USER_STACK
	};
	const struct ibs_record_extra extra = { -1, 1, -1, 0, 0, { 0 } };
	const __u64 chain[] = { 10, 11 };
	struct recording *r;
	struct trace_event ev;
	struct trace *t;
	int fd;

	(void)state;
	recording_close(create(&fd));
	append(fd, RECORDING_STACKS, 1, put_stack(0, 2, 15), 0);
	append(fd, RECORDING_SAMPLES, 2, recording_columns_encode(&c, data), 1);
	t = open_fd(fd);
	assert_int_equal(trace_next(t, &ev, &err), 1);
	assert_int_equal(ev.sample.n_stack, 0);
	trace_close(t);
	close(fd);

	r = create(&fd);
	assert_int_equal(recording_stack(r, 1, chain, 1, &err), 0);
	assert_int_equal(recording_stack(r, 1, chain, 2, &err), 0);
	for (int i = 0; i < 4; i++) {
		const struct ibs_record rec = { .time = i };

		assert_int_equal(recording_samples(r, &rec, i % 2 ? &extra : NULL, 1, &err), 0);
		assert_int_equal(recording_flush(r, NULL, &err), 0);
	}
	finish(r);
	t = open_fd(fd);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(trace_next(t, &ev, &err), 1);
		assert_int_equal(ev.sample.n_stack, i % 2 ? 3 : 0);
	}
	trace_close(t);
	close(fd);
}

/* A block of two samples with these columns, all of which have 1 and 2 plus their number. Return: bytes */
static size_t put_columns(__u32 present)
{
	static struct recording_columns c;

	c.n = 2;
	c.present = present;
	for (unsigned int k = 0; k < RECORDING_COLUMN_N; k++)
		for (unsigned int i = 0; i < 2; i++)
			c.v[k][i] = k + 1 + i;
	return recording_columns_encode(&c, data);
}

#define COLUMN(NAME) (1U << RECORDING_COLUMN_##NAME)

/* What a block lacks is unknown, though the block before it had it. */
static void test_columns(void **state)
{
	static const __u32 all = COLUMN(TIME) | COLUMN(CGROUP) | COLUMN(TGID) | COLUMN(TID) |
				 COLUMN(CPU) | COLUMN(SLAB) | 0x7fU << RECORDING_COLUMN_REG0;
	static const __u32 less[] = { 0,
				      COLUMN(TIME),
				      COLUMN(CGROUP),
				      COLUMN(TGID),
				      COLUMN(TGID) | COLUMN(TID),
				      COLUMN(CPU),
				      COLUMN(SLAB),
				      COLUMN(REG0),
				      COLUMN(REG1),
				      COLUMN(REG2) | COLUMN(REG4) | COLUMN(REG5) };
	const struct recording_column_head thread[] = { { .id = RECORDING_COLUMN_TID, .base = 5 },
							{ .id = RECORDING_COLUMNS_END } };
	struct trace_event ev;
	__u64 seq = 1;
	struct trace *t;
	int fd;

	(void)state;
	recording_close(create(&fd));
	for (int fetch = 0; fetch < 2; fetch++) {
		const enum recording_block_type type =
			fetch ? RECORDING_FETCHES : RECORDING_SAMPLES;

		for (size_t k = 0; k < ARRAY_SIZE(less); k++) {
			append(fd, type, seq++, put_columns(all), 2);
			append(fd, type, seq++, put_columns(less[k]), 2);
		}
		/* without it, the next samples would be sorted among the last ones */
		append(fd, 99, seq++, put_text("x", 8), 0);
	}
	memcpy(data, thread, sizeof(thread));
	append(fd, RECORDING_SAMPLES, seq, sizeof(thread), 1);
	t = open_fd(fd);
	for (size_t n = 0; n < ARRAY_SIZE(less) * 8; n++) {
		const __u32 present = n / 2 % 2 ? less[n / 4 % ARRAY_SIZE(less)] : all;
		const __u64 i = n % 2 + 1, regs = present >> RECORDING_COLUMN_REG0;
		const struct trace_sample *s;

		assert_int_equal(trace_next(t, &ev, &err), 1);
		s = &ev.sample;
		assert_int_equal(ev.kind,
				 n < 4 * ARRAY_SIZE(less) ? TRACE_SAMPLE_OP : TRACE_SAMPLE_FETCH);
		assert_int_equal(ev.time, present & COLUMN(TIME) ? i : 0);
		assert_int_equal(s->has_time, !!(present & COLUMN(TIME)));
		assert_int_equal(s->cgroup_id, present & COLUMN(CGROUP) ? 1 + i : 0);
		assert_int_equal(s->tgid, present & COLUMN(TGID) ? 2 + i : 0);
		assert_int_equal(s->tid, present & COLUMN(TID) ? 3 + i : 0);
		assert_int_equal(s->has_task, present & COLUMN(TGID) && present & COLUMN(TID));
		assert_int_equal(s->cpu, present & COLUMN(CPU) ? 4 + i : 0);
		assert_int_equal(s->has_cpu, !!(present & COLUMN(CPU)));
		assert_int_equal(s->slab, present & COLUMN(SLAB) ? 10 + i : 0);
		assert_int_equal(s->ip, present & COLUMN(REG1) ? 17 + i : 0);
		assert_int_equal(s->has_ip, !!(present & COLUMN(REG1)));
		if (ev.kind == TRACE_SAMPLE_OP)
			assert_int_equal(s->op.present, regs & 0x7e);
		else
			assert_int_equal(s->fetch.present, regs & 7);
	}
	/* our writer has no thread without its process */
	assert_int_equal(trace_next(t, &ev, &err), 1);
	assert_int_equal(ev.sample.tid, 5);
	assert_false(ev.sample.has_task);
	trace_close(t);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lies),	    cmocka_unit_test(test_newer_event),
		cmocka_unit_test(test_description), cmocka_unit_test(test_chains),
		cmocka_unit_test(test_lost_chains), cmocka_unit_test(test_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
