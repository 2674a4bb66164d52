// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* perf.data whose records have any of the fields that perf can put there, whole and cut off after any word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "perf_data_read.h"
#include "random_word.h"

#define TRIES 150

/* What the record says. */
struct want {
	__u64 type, ip, time, cgroup, address;
	__u32 tgid, tid, cpu;
	unsigned int mode, n_stack;
	__u64 stack[3];
	bool op;
	size_t fixed; /* bytes of it up to the fields of fixed size */
	size_t needs; /* and up to the last field that is read */
};

static __u64 any(void)
{
	return random_word() >> 3 ^ random_word() << 32;
}

static void put_any(size_t n)
{
	while (n--)
		put64(&b, any());
}

static __u64 put_if(const struct want *w, __u64 bit, __u64 value)
{
	if (!(w->type & bit))
		return 0;
	put64(&b, value);
	return value;
}

static void put_fixed(struct want *w)
{
	const __u64 task = any() & ~(1ULL << 63); /* -1: it has exited */

	put_if(w, PERF_SAMPLE_IDENTIFIER, any());
	w->ip = put_if(w, PERF_SAMPLE_IP, any() % 8 ? any() : 0);
	w->tgid = w->tid = 0;
	if (put_if(w, PERF_SAMPLE_TID, task)) {
		w->tgid = (__u32)task;
		w->tid = task >> 32;
	}
	w->time = put_if(w, PERF_SAMPLE_TIME, 1 + any() % 1000);
	put_if(w, PERF_SAMPLE_ADDR, any());
	put_if(w, PERF_SAMPLE_ID, any());
	put_if(w, PERF_SAMPLE_STREAM_ID, any());
	w->cpu = put_if(w, PERF_SAMPLE_CPU, any() % 8192);
	put_if(w, PERF_SAMPLE_PERIOD, any());
}

static void put_read(const struct perf_event_attr *attr)
{
	const __u64 f = attr->read_format, n = f & PERF_FORMAT_GROUP ? any() % 4 : 1;

	if (f & PERF_FORMAT_GROUP)
		put64(&b, n);
	put_any(!!(f & PERF_FORMAT_TOTAL_TIME_ENABLED) + !!(f & PERF_FORMAT_TOTAL_TIME_RUNNING) +
		n * (1 + !!(f & PERF_FORMAT_ID) + !!(f & PERF_FORMAT_LOST)));
}

static void put_regs(__u64 mask)
{
	const bool none = any() % 4 == 0;

	put64(&b, none ? PERF_SAMPLE_REGS_ABI_NONE : PERF_SAMPLE_REGS_ABI_64);
	put_any(none ? 0 : __builtin_popcountll(mask));
}

static void put_behind_raw(struct want *w, const struct perf_event_attr *attr)
{
	const __u64 branches = any() % 4, copied = any() % 2 ? 16 : 0;

	if (w->type & PERF_SAMPLE_BRANCH_STACK) {
		put64(&b, branches);
		put_any(!!(attr->branch_sample_type & PERF_SAMPLE_BRANCH_HW_INDEX) + 3 * branches);
		put_any(attr->branch_sample_type & PERF_BRANCH_COUNTERS ? branches : 0);
	}
	if (w->type & PERF_SAMPLE_REGS_USER)
		put_regs(attr->sample_regs_user);
	if (w->type & PERF_SAMPLE_STACK_USER) {
		put64(&b, copied);
		put_any(copied ? copied / 8 + 1 : 0);
	}
	put_if(w, PERF_SAMPLE_WEIGHT, any());
	put_if(w, PERF_SAMPLE_DATA_SRC, any());
	put_if(w, PERF_SAMPLE_TRANSACTION, any());
	if (w->type & PERF_SAMPLE_REGS_INTR)
		put_regs(attr->sample_regs_intr);
	put_if(w, PERF_SAMPLE_PHYS_ADDR, any());
}

static void put_sample(struct want *w, const struct perf_event_attr *attr)
{
	begin(&b, PERF_RECORD_SAMPLE, w->mode);
	put_fixed(w);
	w->fixed = b.n - b.record;
	if (w->type & PERF_SAMPLE_READ)
		put_read(attr);
	w->n_stack = 0;
	if (w->type & PERF_SAMPLE_CALLCHAIN) {
		w->n_stack = any() % 4;
		put64(&b, w->n_stack);
		for (unsigned int i = 0; i < w->n_stack; i++)
			put64(&b, w->stack[i] = any());
	}
	w->address = any();
	put_raw(&b, w->op, w->address);
	w->needs = b.n - b.record;
	w->cgroup = 0;
	put_behind_raw(w, attr);
	if (w->type & PERF_SAMPLE_CGROUP) {
		w->cgroup = any();
		put64(&b, w->cgroup);
		w->needs = b.n - b.record;
	}
	put_if(w, PERF_SAMPLE_DATA_PAGE_SIZE, 4096);
	finish(&b);
}

static struct build any_build(struct want *w)
{
	const __u64 known = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR |
			    PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_ID |
			    PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_STREAM_ID |
			    PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER |
			    PERF_SAMPLE_STACK_USER | PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC |
			    PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TRANSACTION |
			    PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP |
			    PERF_SAMPLE_DATA_PAGE_SIZE;
	struct build o = build_default();
	struct perf_event_attr *attr = &o.attr[0];

	w->op = any() & 1;
	w->mode = any() % (PERF_RECORD_MISC_GUEST_USER + 1);
	w->type = (any() & known) | PERF_SAMPLE_RAW;
	*attr = event_attr_of(w->op ? OP_TYPE : FETCH_TYPE, w->type);
	attr->read_format = any() % 32;
	attr->branch_sample_type = any() & (PERF_SAMPLE_BRANCH_HW_INDEX | PERF_BRANCH_COUNTERS);
	attr->sample_regs_user = any() & any();
	attr->sample_regs_intr = any() & any();
	attr->sample_id_all = any() % 4 != 0;
	o.n = 1;
	return o;
}

static void close_it(void)
{
	perf_data_format.close(state);
	state = NULL;
}

static void same_sample(const struct want *w)
{
	const struct trace_sample *s = &ev.sample;
	const bool known = w->mode != PERF_RECORD_MISC_CPUMODE_UNKNOWN;
	const __u64 ip = w->type & PERF_SAMPLE_IP ? w->ip : w->address;

	memset(&ev, 0x5a, sizeof(ev)); /* a reader need not clear it */
	next(w->op ? TRACE_SAMPLE_OP : TRACE_SAMPLE_FETCH, w->time);
	assert_int_equal(s->pmu, 0);
	assert_int_equal(s->has_task, !!(w->type & PERF_SAMPLE_TID));
	assert_int_equal(s->has_cpu, !!(w->type & PERF_SAMPLE_CPU));
	assert_int_equal(s->has_time, !!(w->type & PERF_SAMPLE_TIME));
	assert_int_equal(s->tgid, w->tgid);
	assert_int_equal(s->tid, w->tid);
	assert_int_equal(s->cpu, w->cpu);
	assert_int_equal(s->ip, ip);
	assert_int_equal(s->has_ip, ip || known);
	assert_int_equal(s->kernel, known ? w->mode == PERF_RECORD_MISC_KERNEL ||
						    w->mode == PERF_RECORD_MISC_GUEST_KERNEL
					  : ip >> 63);
	assert_int_equal(s->cgroup_id, w->cgroup);
	assert_int_equal(s->slab, 0);
	assert_false(s->chain_lost || s->top || s->copy);
	assert_int_equal(s->n_stack, w->n_stack);
	if (w->n_stack)
		assert_memory_equal(s->stack, w->stack, w->n_stack * sizeof(w->stack[0]));
	else
		assert_null(s->stack);
	assert_int_equal(w->op ? s->op.reg[IBS_OP_RIP] : s->fetch.reg[IBS_FETCH_LINADDR],
			 w->address);
}

/* A file with one record, of these bytes. */
static void build_record(const struct build *o, const unsigned char *bytes, size_t n)
{
	build_begin(&b, o);
	b.record = b.n;
	put(&b, bytes, n);
	finish(&b);
	build_end(&b, o);
	must_open();
}

/* @least: bytes with which it has all that comes first */
static void is_damaged(size_t bytes, size_t least)
{
	not_whole(bytes < least ? "it is too short" : "what is in it does not fit its size");
	assert_int_equal(trace_end(state)->skipped_blocks, 1);
	assert_int_equal(trace_end(state)->skipped_bytes, bytes);
}

/* Whatever fields there are, those that we read are found; and nothing is read behind the end of a record. */
static void test_samples(void **unused)
{
	static unsigned char bytes[4096];

	(void)unused;
	for (int i = 0; i < TRIES; i++) {
		struct want w = {};
		const struct build o = any_build(&w);
		size_t size;

		b.n = 0;
		put_sample(&w, &o.attr[0]);
		size = b.n;
		assert_true(size <= sizeof(bytes));
		memcpy(bytes, b.p, size);
		for (size_t n = sizeof(struct perf_event_header); n <= size; n += 4) {
			build_record(&o, bytes, n);
			if (n < w.needs) {
				is_damaged(n, w.fixed);
			} else {
				same_sample(&w);
				whole();
			}
			close_it();
		}
	}
}

/* The words behind other records, which depend on the fields of samples. Return: their bytes */
static size_t put_end(const struct perf_event_attr *attr, __u64 time, __u32 cpu)
{
	const struct want w = { .type = attr->sample_id_all ? attr->sample_type : 0 };
	const size_t at = b.n;

	put_if(&w, PERF_SAMPLE_TID, any());
	put_if(&w, PERF_SAMPLE_TIME, time);
	put_if(&w, PERF_SAMPLE_ID, any());
	put_if(&w, PERF_SAMPLE_STREAM_ID, any());
	put_if(&w, PERF_SAMPLE_CPU, cpu);
	put_if(&w, PERF_SAMPLE_IDENTIFIER, any());
	return b.n - at;
}

static void test_ends(void **unused)
{
	static unsigned char bytes[128];

	(void)unused;
	for (int i = 0; i < TRIES; i++) {
		struct want w = {};
		struct build o = any_build(&w);
		const struct perf_event_attr *attr = &o.attr[0];
		const __u64 fields = attr->sample_id_all ? w.type : 0;
		const __u64 time = fields & PERF_SAMPLE_TIME ? 7 : 0;
		size_t end, size;

		o.attr[0].read_format = 0; /* or lost records are told by event */
		b.n = 0;
		begin(&b, PERF_RECORD_COMM, 0);
		put32(&b, 100);
		put32(&b, 101);
		put(&b, "name", 4);
		put(&b, "", 1);
		end = put_end(attr, 7, 3);
		size = b.n;
		memcpy(bytes, b.p, size);
		memset(bytes + size, 0xff, sizeof(bytes) - size);
		for (size_t n = sizeof(struct perf_event_header); n < size; n++) {
			build_record(&o, bytes, n);
			is_damaged(n, sizeof(struct perf_event_header) + end);
			close_it();
		}
		build_record(&o, bytes, size);
		memset(&ev, 0x5a, sizeof(ev));
		next(TRACE_COMM, time);
		assert_int_equal(ev.comm.tgid, 100);
		assert_int_equal(ev.comm.tid, 101);
		assert_false(ev.comm.exec);
		assert_string_equal(ev.comm.name, "name");
		whole();
		close_it();
		bytes[sizeof(struct perf_event_header) + 12] =
			'x'; /* its end is not in the trailer */
		build_record(&o, bytes, size);
		is_damaged(size, 0);
		close_it();

		b.n = 0;
		begin(&b, PERF_RECORD_FORK, 0); /* which has a time of its own */
		put_words(&b, 5, 2);
		put64(&b, 6);
		put_end(attr, 7, 3);
		memcpy(bytes, b.p, b.n);
		build_record(&o, bytes, sizeof(struct perf_event_header) + 24 + end);
		next(TRACE_FORK, time ?: 6);
		assert_int_equal(ev.offset, b.data);
		whole();
		close_it();

		b.n = 0;
		begin(&b, PERF_RECORD_LOST, 0);
		put64(&b, 1);
		put64(&b, 1000);
		size = b.n + end;
		put_end(attr, 7, 3);
		memcpy(bytes, b.p, size);
		build_record(&o, bytes, size);
		next(TRACE_LOST, time);
		assert_int_equal(ev.lost.n, 1000);
		assert_int_equal(ev.lost.cpu, time && fields & PERF_SAMPLE_CPU ? 3 : ~0U);
		whole();
		close_it();
		build_record(&o, bytes, size - 1);
		is_damaged(size - 1, 0);
		close_it();
	}
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, reset, clean)
	const struct CMUnitTest tests[] = {
		TEST(test_samples),
		TEST(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
