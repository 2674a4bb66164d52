// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Single events, copies of stacks and samples of a recording, at the edges of what a file may hold. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/std.h"
#include "recording/recording.h"
#include "recording/recording_copies.h"
#include "recording/recording_events.h"

#define HEAD offsetof(struct recording_event, comm)

/* An event as in a file: the fixed part, then its strings. Return: bytes */
static size_t put_event(const struct trace_event *ev, unsigned char *out)
{
	const char *strings[RECORDING_STRINGS];
	struct recording_event e;
	unsigned int n;
	size_t bytes = recording_event_encode(ev, &e, strings, &n), at = bytes;

	assert_true(bytes > HEAD);
	for (unsigned int i = 0; i < n; i++) {
		memcpy(out + at, strings[i], strlen(strings[i]) + 1);
		at += strlen(strings[i]) + 1;
	}
	e.bytes = at;
	memcpy(out, &e, bytes);
	return at;
}

static void test_event_limits(void **state)
{
	const struct trace_event comm = {
		.kind = TRACE_COMM,
		.time = 5,
		.comm = { .tgid = 1, .tid = 2, .exec = true, .name = "x" }
	};
	const struct trace_event lost = { .kind = TRACE_LOST,
					  .lost = { .n = 9, .cpu = 3, .samples = true } };
	struct recording_event e = {};
	struct trace_event ev;
	unsigned char in[128];
	size_t bytes = 0, n;

	(void)state;
	n = put_event(&comm, in);
	assert_int_equal(recording_event_decode(in, n, &ev, &bytes), 1);
	assert_int_equal(bytes, n);
	assert_int_equal(ev.kind, TRACE_COMM);
	assert_int_equal(ev.time, 5);
	assert_true(ev.comm.exec);
	assert_string_equal(ev.comm.name, "x");
	for (size_t less = 0; less < n; less++)
		assert_int_equal(recording_event_decode(in, less, &ev, &bytes), -EINVAL);
	in[n - 1] = 'y'; /* the name has no end */
	assert_int_equal(recording_event_decode(in, n, &ev, &bytes), -EINVAL);
	n = RECORDING_EVENT_BYTES(comm); /* no name at all, where the last byte of the rest is 0 */
	memcpy(in, &(__u32){ n }, sizeof(__u32));
	in[n - 1] = 0;
	assert_int_equal(recording_event_decode(in, sizeof(in), &ev, &bytes), -EINVAL);
	memcpy(in, &(__u32){ n + 1 }, sizeof(__u32));
	in[n] = 0;
	assert_int_equal(recording_event_decode(in, sizeof(in), &ev, &bytes), 1);
	assert_string_equal(ev.comm.name, "");

	n = put_event(&lost, in);
	assert_int_equal(recording_event_decode(in, n, &ev, &bytes), 1);
	assert_int_equal(ev.lost.n, 9);
	assert_true(ev.lost.samples);
	memcpy(in, &(__u32){ n - 1 }, sizeof(__u32));
	assert_int_equal(recording_event_decode(in, n, &ev, &bytes), -EINVAL);

	/* of a later version: stepped over, also if nothing follows its head */
	e = (struct recording_event){ .bytes = HEAD, .kind = 999 };
	memcpy(in, &e, HEAD);
	bytes = 0;
	assert_int_equal(recording_event_decode(in, HEAD, &ev, &bytes), 0);
	assert_int_equal(bytes, HEAD);
	e.bytes = HEAD - 1;
	memcpy(in, &e, HEAD);
	assert_int_equal(recording_event_decode(in, sizeof(in), &ev, &bytes), -EINVAL);
}

/* The names of a container follow its path; an older file lacks some of them. */
static void test_cgroup_strings(void **state)
{
	struct trace_event ev = { .kind = TRACE_CGROUP,
				  .cgroup = {
					  .id = 7, .path = "/a", .container = "c", .ns = "n" } };
	unsigned char in[128];
	size_t bytes, n = put_event(&ev, in);

	(void)state;
	assert_int_equal(recording_event_decode(in, n, &ev, &bytes), 1);
	assert_string_equal(ev.cgroup.path, "/a");
	assert_string_equal(ev.cgroup.container, "c");
	assert_string_equal(ev.cgroup.pod, "");
	assert_string_equal(ev.cgroup.ns, "n");
	n = RECORDING_EVENT_BYTES(cgroup) + 3;
	memcpy(in, &(__u32){ n }, sizeof(__u32));
	assert_int_equal(recording_event_decode(in, n, &ev, &bytes), 1);
	assert_string_equal(ev.cgroup.path, "/a");
	assert_string_equal(ev.cgroup.container, "");
	assert_string_equal(ev.cgroup.ns, "");
}

/* What does not fit the file is cut; a name that is not known is empty. */
static void test_encode_limits(void **state)
{
	const struct trace_event comm = { .kind = TRACE_COMM };
	struct trace_event map = { .kind = TRACE_MMAP, .mmap.path = "/x" };
	struct trace_event cgroup = { .kind = TRACE_CGROUP, .cgroup.path = "/a" };
	const char *strings[RECORDING_STRINGS];
	struct recording_event e;
	struct trace_event ev;
	unsigned char in[256];
	unsigned int n;
	size_t bytes;

	(void)state;
	bytes = put_event(&comm, in);
	assert_int_equal(recording_event_decode(in, bytes, &ev, &bytes), 1);
	assert_string_equal(ev.comm.name, "");
	map.mmap.build_id_len = sizeof(map.mmap.build_id) + 1;
	bytes = put_event(&map, in);
	assert_int_equal(recording_event_decode(in, bytes, &ev, &bytes), 1);
	assert_int_equal(ev.mmap.build_id_len, sizeof(map.mmap.build_id));
	/* a path alone takes no room for names */
	recording_event_encode(&cgroup, &e, strings, &n);
	assert_int_equal(n, 1);
	cgroup.cgroup.ns = "n";
	recording_event_encode(&cgroup, &e, strings, &n);
	assert_int_equal(n, 4);
}

/* An allocation has the chain that it says to have. */
static void test_alloc(void **state)
{
	const struct trace_event alloc = { .kind = TRACE_ALLOC, .alloc.size = 5 };
	const size_t fixed = RECORDING_EVENT_BYTES(alloc);
	unsigned char in[RECORDING_EVENT_BYTES(alloc) + 8 * (TRACE_STACK_MAX + 1)] = { 0 };
	struct recording_event e;
	struct trace_event ev;
	size_t bytes;

	(void)state;
	put_event(&alloc, in);
	memcpy(&e, in, fixed);
	for (unsigned int n = 0; n <= TRACE_STACK_MAX + 1; n++)
		for (unsigned int less = 0; less < 2; less++) {
			e.alloc.n_stack = n;
			e.bytes = fixed + 8 * n - less;
			memcpy(in, &e, fixed);
			assert_int_equal(recording_event_decode(in, sizeof(in), &ev, &bytes),
					 less || n > TRACE_STACK_MAX ? -EINVAL : 1);
		}
}

/* Events of a newer program are no damage; those of allocations can be stepped over. */
static void test_stepping(void **state)
{
	const struct trace_event events[] = { { .kind = TRACE_ALLOC },
					      { .kind = TRACE_FREE },
					      { .kind = TRACE_LOST } };
	const struct recording_event newer = { .bytes = HEAD, .kind = 999 };
	unsigned char in[512];
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(events); i++) {
		const size_t bytes = put_event(&events[i], in + n);

		assert_int_equal(recording_event_skips_alloc(in + n),
				 events[i].kind == TRACE_LOST ? 0 : bytes);
		n += bytes;
		assert_true(recording_events_ok(in, n));
		memcpy(in + n, &newer, HEAD);
		n += HEAD;
		assert_true(recording_events_ok(in, n));
		assert_false(recording_events_ok(in, n - 1));
	}
}

static size_t put_copy(unsigned char *out, __u64 time, __u32 tid, __u32 bytes)
{
	struct recording_copy c = { .time = time, .tid = tid, .bytes = bytes };

	memcpy(out, &c, sizeof(c));
	return sizeof(c) + bytes;
}

static void test_copies(void **state)
{
	struct trace_event ev = { .time = 10, .sample.tid = 3 };
	struct recording_copies c = {};
	unsigned char in[2048] = { 0 };
	const struct trace_copy *found;
	size_t first, n;

	(void)state;
	first = put_copy(in, 10, 3, 16);
	n = first + put_copy(in + first, 20, 4, 0);
	memset(in + sizeof(struct recording_copy), 0x5a, 16);
	assert_true(recording_copies_take(&c, in, n));
	assert_int_equal(c.n, 2);
	found = recording_copies_find(&c, 1, &ev);
	assert_non_null(found);
	assert_int_equal(found->bytes, 16);
	assert_int_equal(found->data[0], 0x5a);
	assert_int_equal(found->data[15], 0x5a);
	/* none, no such, and that of another sample */
	assert_null(recording_copies_find(&c, 0, &ev));
	assert_null(recording_copies_find(&c, 3, &ev));
	assert_null(recording_copies_find(&c, 2, &ev));
	ev.time = 20;
	assert_null(recording_copies_find(&c, 2, &ev));
	ev.sample.tid = 4;
	assert_non_null(recording_copies_find(&c, 2, &ev));
	/* ends within the data or the head of one, or with something else: none is taken */
	for (size_t less = 0; less < n; less++) {
		assert_int_equal(recording_copies_take(&c, in, less), less == first);
		assert_int_equal(c.n, less == first);
	}
	put_copy(in + first, 20, 4, 1);
	assert_false(recording_copies_take(&c, in, n));
	put_copy(in, 10, 3, sizeof(in) - sizeof(struct recording_copy) + 1);
	assert_false(recording_copies_take(&c, in, sizeof(in)));
	put_copy(in, 10, 3, sizeof(in) - sizeof(struct recording_copy));
	assert_true(recording_copies_take(&c, in, sizeof(in)));
	recording_copies_free(&c);
}

/* What a sample of each kind has: the registers that a record keeps, and its address where it is valid. */
static void test_samples(void **state)
{
	const struct ibs_cpu cpu = { .caps = 0x3ff };
	struct ibs_record rec = {
		.time = 9, .tgid = 1, .tid = 2, .cgroup_id = 3, .ip = 0xffffffff81000000
	};
	struct ibs_record_raw raw = { .time = 9,
				      .tgid = 1,
				      .tid = 2,
				      .cpu = 5,
				      .cgroup_id = 3,
				      .bytes = IBS_OP_RAW_MIN,
				      .caps = cpu.caps };
	struct trace_event ev;

	(void)state;
	rec.packed = ibs_record_pack(0, 0, 5);
	recording_sample(&rec, cpu, &ev);
	assert_int_equal(ev.kind, TRACE_SAMPLE_OP);
	assert_int_equal(ev.sample.op.nregs, IBS_OP_REG_FIXED);
	assert_int_equal(ev.sample.op.present & 1U << IBS_OP_CTL, 0);
	assert_int_equal(ev.sample.op.present | 1U << IBS_OP_CTL, (1U << IBS_OP_REG_FIXED) - 1);
	assert_true(ev.sample.has_task && ev.sample.has_cpu && ev.sample.has_ip &&
		    ev.sample.kernel);
	assert_int_equal(ev.sample.cpu, 5);
	assert_int_equal(ev.sample.ip, rec.ip);

	rec.packed |= IBS_RECORD_FETCH;
	for (unsigned int extended = 0; extended < 2; extended++) {
		const struct ibs_cpu of = { .caps = extended ? IBS_CAPS_FETCHCTLEXTD : 0x1ff };

		recording_sample(&rec, of, &ev);
		assert_int_equal(ev.kind, TRACE_SAMPLE_FETCH);
		assert_int_equal(ev.sample.fetch.nregs, IBS_FETCH_REG_FIXED + extended);
		assert_int_equal(ev.sample.fetch.present, (8U << extended) - 1);
	}

	raw.regs[IBS_OP_RIP] = rec.ip;
	assert_int_equal(recording_sample_raw(&raw, 0, &ev), 0);
	assert_int_equal(ev.sample.ip, rec.ip);
	assert_true(ev.sample.has_ip && ev.sample.kernel);
	raw.bytes = IBS_OP_RAW_MIN - 8; /* a register less */
	assert_int_not_equal(recording_sample_raw(&raw, 0, &ev), 0);
	assert_int_equal(ev.sample.ip, 0);
	assert_false(ev.sample.has_ip || ev.sample.kernel);
	assert_int_equal(ev.sample.tid, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_event_limits),  cmocka_unit_test(test_cgroup_strings),
		cmocka_unit_test(test_encode_limits), cmocka_unit_test(test_alloc),
		cmocka_unit_test(test_stepping),      cmocka_unit_test(test_copies),
		cmocka_unit_test(test_samples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
