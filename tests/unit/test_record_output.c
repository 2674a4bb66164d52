// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Where `record` writes: recordings and lines of text, files of before, files that rotate, and strata of samples. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/std.h"
#include "capture/record_output.h"
#include "recording/recording.h"
#include "trace/trace.h"
#include "tree.h"

static const struct trace_pmu pmu[] = { { .name = "ibs_op//", .op = true, .period = 1000 },
					{ .name = "ibs_fetch//", .period = 1000 } };
static struct trace_info info;
static struct output *out;
static struct ledger ledger;
static struct err err;
static char path[128];

static int set_up(void **state)
{
	info = (struct trace_info){
		.source = "sim", .has_cpu = true, .n_cpus = 1, .pmu = pmu, .n_pmus = 2
	};
	cpu_info_set(&info.cpu, "AuthenticAMD", 0x19, 0x11, 0xbff);
	ledger = (struct ledger){};
	if (new_root(state))
		return -1;
	snprintf(path, sizeof(path), "%s/f", root);
	return 0;
}

static int tear_down(void **state)
{
	output_close(out);
	out = NULL;
	return remove_root(state);
}

static void begin(struct output_opts o)
{
	o.info = &info;
	if (!o.fd)
		o.path = path;
	if (output_open(&o, &out, &err))
		fail_msg("%s", err.text);
}

/* A load of thread @tid in cgroup 5 at @time. */
static void add(__u64 time, __u32 tid)
{
	const struct ibs_record r = { .time = time,
				      .cgroup_id = 5,
				      .tgid = 10,
				      .tid = tid,
				      .ip = 0x401000,
				      .data3 = IBS_OP_DATA3_LD_OP,
				      .packed = ibs_record_pack(0, 2, 0) };
	const struct record_batch b = { .records = &r, .n = 1 };

	assert_int_equal(output_samples(out, &b, &err), 0);
	ledger.outcome[IBS_OUTCOME_FORWARDED]++;
	ledger.seen++;
}

static void finish(void)
{
	const struct ledger ledgers[2] = { ledger };

	if (output_finish(out, ledgers, &err))
		fail_msg("%s", err.text);
	output_close(out);
	out = NULL;
}

static char *at(const char *name)
{
	static char full[4][256];
	static int i;

	i = (i + 1) % 4;
	snprintf(full[i], sizeof(full[i]), "%s/%s", root, name);
	return full[i];
}

static char *read_text(const char *name)
{
	static char text[1 << 16];
	int fd = open(at(name), O_RDONLY);
	ssize_t n;

	assert_true(fd >= 0);
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n] = 0;
	return text;
}

/* Samples of a recording. */
static __u64 samples_in(const char *file)
{
	struct trace_event ev;
	struct trace *t;
	__u64 n = 0;
	int ret;

	if (trace_open(file, &t, &err))
		fail_msg("%s", err.text);
	while ((ret = trace_next(t, &ev, &err)) > 0)
		n += ev.kind == TRACE_SAMPLE_OP;
	assert_int_equal(ret, 0);
	assert_true(trace_end(t)->whole);
	assert_int_equal(trace_end(t)->ledger.seen, n);
	trace_close(t);
	return n;
}

/* --- recordings --- */

static void test_recording(void **state)
{
	struct trace_event cgroup = { .kind = TRACE_CGROUP, .time = 1, .cgroup = { .id = 5 } };

	(void)state;
	begin((struct output_opts){ .compress = true });
	assert_string_equal(output_name(out), path);
	assert_false(output_has_cgroup(out, 5));
	/* of a cgroup without a path nothing is known */
	cgroup.cgroup.path = "";
	assert_int_equal(output_event(out, &cgroup, &err), 0);
	cgroup.cgroup.path = "/a";
	assert_int_equal(output_event(out, &cgroup, &err), 0);
	assert_true(output_has_cgroup(out, 5));
	assert_false(output_has_cgroup(out, 6));
	for (int i = 0; i < 100; i++)
		add(1000 + i, 10);
	assert_int_equal(output_records(out), 100);
	assert_int_equal(output_second(out), 0);
	finish();
	assert_int_equal(samples_in(path), 100);
}

static void test_flush(void **state)
{
	__u64 before;

	(void)state;
	begin((struct output_opts){});
	before = output_bytes(out);
	assert_true(before > 0);
	add(1000, 10);
	assert_int_equal(output_flush(out, (struct ledger[2]){ ledger }, &err), 0);
	assert_true(output_bytes(out) > before);
	assert_int_equal(output_total_bytes(out), output_bytes(out));
	add(1001, 10);
	finish();
	assert_int_equal(samples_in(path), 2);
}

/* A call chain is written once for each file; ids that are errors need none. */
static void test_stacks(void **state)
{
	const __u64 addresses[] = { 0x401000, 0x402000 };

	(void)state;
	begin((struct output_opts){ .rotate = 2 });
	assert_true(output_has_stack(out, -1));
	assert_true(output_has_stack(out, -EEXIST));
	assert_true(output_has_stack(out, RECORDING_STACK_KEYS));
	assert_false(output_has_stack(out, RECORDING_STACK_KEYS - 1));
	assert_false(output_has_stack(out, 0));
	assert_int_equal(output_stack(out, 9, addresses, 2, &err), 0);
	assert_true(output_has_stack(out, 9));
	assert_false(output_has_stack(out, 8));
	assert_false(output_has_stack(out, 10));
	assert_false(output_has_stack(out, 1));
	assert_int_equal(output_rotate(out, (struct ledger[2]){}, &err), 0);
	assert_false(output_has_stack(out, 9));
	finish();
}

/* Samples of ibs_fetch are counted as well by themselves. */
static void test_second(void **state)
{
	struct ibs_record_raw raw[3] = { { .time = 1, .bytes = IBS_OP_RAW_MIN, .caps = 0xbff },
					 { .time = 2, .fetch = 1, .bytes = IBS_FETCH_RAW_MIN },
					 { .time = 3, .fetch = 1, .bytes = IBS_FETCH_RAW_MIN } };
	const struct record_batch b = { .raw = raw, .n = 3 };

	(void)state;
	begin((struct output_opts){});
	assert_int_equal(output_samples(out, &b, &err), 0);
	assert_int_equal(output_records(out), 3);
	assert_int_equal(output_second(out), 2);
}

/* The stratum of a sample is that of the last slice that began before it. */
static void test_strata(void **state)
{
	(void)state;
	begin((struct output_opts){});
	output_slice(out, STRATUM_FULL, 100);
	output_slice(out, STRATUM_MISS, 200);
	output_slice(out, STRATUM_FULL, 300);
	add(150, 10);
	assert_int_equal(output_second(out), 0);
	add(200, 10);
	assert_int_equal(output_second(out), 1);
	add(299, 10);
	assert_int_equal(output_second(out), 2);
	add(300, 10);
	assert_int_equal(output_second(out), 2);
	/* before all slices: the oldest */
	add(50, 10);
	assert_int_equal(output_second(out), 2);
	/* of many slices the last 64 are kept */
	for (unsigned int i = 0; i < 200; i++)
		output_slice(out, i % 2 ? STRATUM_FULL : STRATUM_MISS, 1000 + 10 * i);
	add(1000 + 10 * 198 + 5, 10); /* an even one */
	assert_int_equal(output_second(out), 3);
	add(1000 + 10 * 199 + 5, 10);
	assert_int_equal(output_second(out), 3);
	add(1000 + 10 * 150 + 9, 10);
	assert_int_equal(output_second(out), 4);
	/* one that is older than they are belongs to the oldest: 136 */
	add(1000 + 10 * 101, 10);
	assert_int_equal(output_second(out), 5);
}

/* --- text --- */

static void test_text(void **state)
{
	const struct trace_event comm = { .kind = TRACE_COMM,
					  .time = 1,
					  .comm = { .tgid = 10, .tid = 11, .name = "worker" } };
	const struct trace_event cgroup = { .kind = TRACE_CGROUP,
					    .time = 1,
					    .cgroup = { .id = 5, .path = "/a/b" } };
	unsigned int lines = 0;
	char *text;

	(void)state;
	begin((struct output_opts){ .format = OUTPUT_CSV });
	assert_int_equal(output_event(out, &comm, &err), 0);
	assert_int_equal(output_event(out, &cgroup, &err), 0);
	add(1000000000, 11);
	add(1000000001, 12);
	assert_int_equal(output_bytes(out), 0);
	assert_int_equal(output_flush(out, NULL, &err), 0);
	text = read_text("f");
	assert_int_equal(output_bytes(out), strlen(text));
	for (const char *c = text; *c; c++)
		lines += *c == '\n';
	/* with the names of columns */
	assert_int_equal(lines, 3);
	assert_non_null(strstr(text, "worker"));
	assert_non_null(strstr(text, "/a/b"));
	assert_ptr_equal(strstr(strstr(text, "worker") + 1, "worker"), NULL);
	finish();
	begin((struct output_opts){ .format = OUTPUT_JSON });
	add(1000000000, 11);
	finish();
	text = read_text("f");
	assert_int_equal(*text, '{');
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

/* A reader that is gone, or a device that is full, is an error with the name of the output. */
static void test_full(void **state)
{
	int fd = open("/dev/full", O_WRONLY);

	(void)state;
	assert_true(fd >= 0);
	begin((struct output_opts){ .fd = fd, .format = OUTPUT_JSON, .path = "full" });
	add(1000, 10);
	assert_int_equal(output_finish(out, NULL, &err), -ENOSPC);
	assert_string_equal(err.text, "full: cannot write: No space left on device");
	close(fd);
}

static void test_descriptor(void **state)
{
	int fd = memfd_create("out", 0);
	char proc[64];

	(void)state;
	begin((struct output_opts){ .fd = fd, .path = "a recording" });
	assert_string_equal(output_name(out), "a recording");
	add(1000, 10);
	finish();
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	assert_int_equal(samples_in(proc), 1);
	close(fd);
}

/* --- files --- */

/* What was there is kept, and comes back if nothing is recorded. */
static void test_old(void **state)
{
	(void)state;
	put_file("/f", "first");
	begin((struct output_opts){});
	assert_string_equal(read_text("f.old"), "first");
	add(1000, 10);
	finish();
	assert_int_equal(samples_in(path), 1);
	begin((struct output_opts){});
	output_cancel(out);
	out = NULL;
	assert_int_equal(samples_in(path), 1);
	assert_int_equal(access(at("f.old"), F_OK), -1);
	/* an empty file is nothing to keep, and none is left if there was none */
	assert_int_equal(unlink(path), 0);
	put_file("/f", "");
	begin((struct output_opts){});
	assert_int_equal(access(at("f.old"), F_OK), -1);
	output_cancel(out);
	out = NULL;
	assert_int_equal(access(path, F_OK), -1);
}

static void test_no_place(void **state)
{
	const struct output_opts o = { .info = &info, .path = at("no/such") };

	(void)state;
	assert_int_equal(output_open(&o, &out, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no/such"));
	out = NULL;
}

/* NAME, NAME.1 and NAME.2 are three files, each complete; names of cgroups are in each. */
static void test_rotate(void **state)
{
	struct trace_event cgroup = { .kind = TRACE_CGROUP,
				      .time = 1,
				      .cgroup = { .id = 5, .path = "/a" } };
	__u64 total = 0;

	(void)state;
	begin((struct output_opts){ .rotate = 3 });
	for (int file = 1; file <= 5; file++) {
		assert_false(output_has_cgroup(out, 5));
		assert_int_equal(output_event(out, &cgroup, &err), 0);
		assert_true(output_has_cgroup(out, 5));
		for (int i = 0; i < file; i++)
			add(1000 * file + i, 10);
		assert_int_equal(output_records(out), file);
		if (file == 5)
			break;
		assert_int_equal(output_rotate(out, (struct ledger[2]){ ledger }, &err), 0);
		ledger = (struct ledger){};
		assert_int_equal(output_records(out), 0);
		assert_true(output_total_bytes(out) > total + output_bytes(out));
		total = output_total_bytes(out) - output_bytes(out);
	}
	finish();
	assert_int_equal(samples_in(path), 5);
	assert_int_equal(samples_in(at("f.1")), 4);
	assert_int_equal(samples_in(at("f.2")), 3);
	assert_int_equal(access(at("f.3"), F_OK), -1);
}

static void test_stdout(void **state)
{
	(void)state;
	assert_false(output_to_stdout(&(struct output_opts){}));
	assert_true(output_to_stdout(&(struct output_opts){ .format = OUTPUT_CSV }));
	assert_true(output_to_stdout(&(struct output_opts){ .path = "-" }));
	assert_false(output_to_stdout(&(struct output_opts){ .path = "a", .format = OUTPUT_JSON }));
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_recording), T(test_flush),    T(test_stacks), T(test_second),
		T(test_strata),	   T(test_text),     T(test_full),   T(test_descriptor),
		T(test_old),	   T(test_no_place), T(test_rotate), T(test_stdout),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
