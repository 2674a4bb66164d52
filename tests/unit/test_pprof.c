// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The profile in the format of pprof, read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <unistd.h>

#include "self_map.h"
#include "tree.h"
#include "wire.h"

#include "profile/profile.h"

#define CAPS   0xbffu /* Zen 4 */
#define PID    7
#define KERNEL 0xffffffff81000000ull
#define MODULE 0xffffffffc0000000ull

static struct trace_pmu pmu;
static struct trace_info info;
static struct trace_end end;
static struct report_head head;
static struct tasks *tasks;
static struct symbols *symbols;
static struct pprof *p;
static struct err err;
static char *dump;

/* --- what is in a profile --- */

/* How the fields of a message are printed: s string, n number, x the same in hexadecimal, p packed numbers, m message. */
struct shape {
	const char *name, *kinds; /* kinds[number] */
	const struct shape *inner;
};

static const struct shape type = { "type", " ss", NULL };
static const struct shape label = { "label", " ssns", NULL };
static const struct shape line = { "line", " n", NULL };
static const struct shape sample = { "sample", " ppm", &label };
static const struct shape mapping = { "mapping", " nxxxssn", NULL };
static const struct shape location = { "location", " nnxm", &line };
static const struct shape function = { "function", " nss", NULL };

/* By the numbers of profile.proto. */
static const struct {
	const char *name;
	char kind;
	const struct shape *inner;
} fields[] = {
	[1] = { "sample_type", 'm', &type },  [2] = { "sample", 'm', &sample },
	[3] = { "mapping", 'm', &mapping },   [4] = { "location", 'm', &location },
	[5] = { "function", 'm', &function }, [6] = { "string", ' ', NULL },
	[9] = { "time", 'n', NULL },	      [10] = { "duration", 'n', NULL },
	[11] = { "period_type", 'm', &type }, [12] = { "period", 'n', NULL },
	[13] = { "comment", 's', NULL },      [14] = { "default_type", 's', NULL },
};

static struct wire strings[256];
static size_t n_strings;

static void print_fields(FILE *f, const struct shape *s, struct wire w, const char *gap);

/* @gap: before it */
static void print_value(FILE *f, const char *gap, char kind, const struct shape *inner,
			struct wire_field *v)
{
	const bool nested = inner == &label || inner == &line;

	assert_int_equal(v->is_bytes, kind == 'm' || kind == 'p');
	fputs(kind == 'm' && !nested ? "" : gap, f);
	switch (kind) {
	case 'm':
		fputs(nested ? "{" : "", f);
		print_fields(f, inner, v->bytes, nested ? "" : " ");
		fputs(nested ? "}" : "", f);
		break;
	case 'p':
		for (const char *comma = ""; v->bytes.at < v->bytes.end; comma = ",")
			fprintf(f, "%s%llu", comma, wire_number(&v->bytes));
		break;
	case 's':
		assert_true(v->value < n_strings);
		fprintf(f, "%.*s", (int)(strings[v->value].end - strings[v->value].at),
			(const char *)strings[v->value].at);
		break;
	default:
		fprintf(f, kind == 'x' ? "%#llx" : "%llu", v->value);
	}
}

static void print_fields(FILE *f, const struct shape *s, struct wire w, const char *gap)
{
	struct wire_field v;

	for (; wire_next(&w, &v); gap = " ") {
		assert_in_range(v.number, 1, strlen(s->kinds) - 1);
		print_value(f, gap, s->kinds[v.number], s->inner, &v);
	}
}

/* A line a field, in the order of the file, but for its strings, which the others name. */
static void read_profile(int fd)
{
	size_t n, size;
	unsigned char *data = gunzip(fd, &n);
	const struct wire all = { data, data + n };
	struct wire_field v;
	FILE *f;

	n_strings = 0;
	for (struct wire w = all; wire_next(&w, &v);)
		if (v.number == 6) {
			assert_true(n_strings < sizeof(strings) / sizeof(strings[0]));
			strings[n_strings++] = v.bytes;
		}
	assert_true(n_strings && strings[0].at == strings[0].end);
	free(dump);
	f = open_memstream(&dump, &size);
	for (struct wire w = all; wire_next(&w, &v);) {
		assert_in_range(v.number, 1, sizeof(fields) / sizeof(fields[0]) - 1);
		assert_non_null(fields[v.number].name);
		if (v.number == 6)
			continue;
		fputs(fields[v.number].name, f);
		print_value(f, " ", fields[v.number].kind, fields[v.number].inner, &v);
		fputc('\n', f);
	}
	fclose(f);
	free(data);
}

static void write_profile(void)
{
	const int fd = memfd_create("profile", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(pprof_write(p, &head, fd, &err), 0);
	read_profile(fd);
	close(fd);
}

static void has(const char *text)
{
	if (!strstr(dump, text))
		fail_msg("'%s' is not in\n%s", text, dump);
}

static void has_not(const char *text)
{
	if (strstr(dump, text))
		fail_msg("'%s' is in\n%s", text, dump);
}

/* --- what it is made of --- */

static void map(bool kernel, __u64 start, __u64 bytes, __u64 pgoff, const char *path)
{
	struct trace_event ev = { .kind = TRACE_MMAP, .time = 1 };

	ev.mmap = (struct trace_mmap){ .tgid = kernel ? 0 : PID,
				       .tid = kernel ? 0 : PID,
				       .kernel = kernel,
				       .exec = true,
				       .start = start,
				       .len = bytes,
				       .pgoff = pgoff,
				       .path = path };
	if (pgoff) {
		ev.mmap.build_id_len = 20;
		memcpy(ev.mmap.build_id, (unsigned char[20]){ 0xab, 1, [19] = 0xf0 }, 20);
	}
	tasks_add(tasks, &ev);
}

static int set_up(void **state)
{
	struct trace_event comm = { .kind = TRACE_COMM, .comm = { PID, PID, false, "work" } };
	static char list[128];
	const struct symbols_opts opts = { .info = &info, .kallsyms = list };

	new_root(state);
	put_file("/kallsyms", "ffffffff81000000 T _text\n"
			      "ffffffff81000100 T do_fault\n"
			      "ffffffff81000200 T handle\n"
			      "ffffffffc0000010 t mod_read\t[mod]\n");
	snprintf(list, sizeof(list), "%s/kallsyms", root);
	pmu = (struct trace_pmu){
		.name = "ibs_op/cnt_ctl=1/", .op = true, .period = 1000, .stacks = true
	};
	info = (struct trace_info){ .source = "ibs",
				    .host = "elsewhere",
				    .pmu = &pmu,
				    .n_pmus = 1,
				    .realtime_ns = 5000000,
				    .monotonic_ns = 400 };
	end = (struct trace_end){ .whole = true };
	head = (struct report_head){ .file = "f.ibs",
				     .info = &info,
				     .end = &end,
				     .options = "--pprof f",
				     .op_samples = 9,
				     .fetch_samples = 1,
				     .selected = 7 };
	tasks = tasks_new();
	tasks_add(tasks, &comm);
	map(true, KERNEL, 0x200000, 0, "[kernel.kallsyms]");
	map(true, MODULE, 0x4000, 0, "[mod]");
	map(false, 0x400000, 0x1000, 0x2000, "/nowhere/prog");
	map(false, 0x500000, 0x2000, 0, "/nowhere/lib");
	return symbols_new(&opts, &symbols, NULL);
}

static int clean_up(void **state)
{
	pprof_free(p);
	pprof_free(NULL);
	p = NULL;
	symbols_free(symbols);
	tasks_free(tasks);
	return remove_root(state);
}

static void begin(const char *by, enum ibs_metric metric)
{
	struct report_opts opts = {
		.metric = metric, .info = &info, .tasks = tasks, .symbols = symbols
	};

	assert_int_equal(report_keys_parse(by, opts.by, &opts.n_by, NULL), 0);
	pprof_free(p);
	p = pprof_new(&opts);
}

#define FLAGS (IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_LIN_VALID | IBS_OP_DATA3_PHY_VALID)
#define MISS  (FLAGS | IBS_OP_DATA3_DC_MISS | IBS_OP_DATA3_L2_MISS)
#define HUGE  (1ull << 4) /* the page has 2 MiB */

/* An op of process PID. */
static struct trace_event op(__u64 time, __u64 ip, __u64 data3, __u64 data2)
{
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .time = time };
	struct trace_sample *s = &ev.sample;

	s->has_task = s->has_ip = true;
	s->tgid = s->tid = PID;
	s->ip = ip;
	s->kernel = ip >> 63;
	s->op.cpu.caps = CAPS;
	s->op.present = (1u << IBS_OP_REG_FIXED) - 1;
	s->op.reg[IBS_OP_DATA2] = data2;
	s->op.reg[IBS_OP_DATA3] = data3;
	return ev;
}

static void add(struct trace_event ev, const char *service)
{
	pprof_add(p, &ev, service);
}

static void add_chain(struct trace_event ev, const __u64 *stack, unsigned int n)
{
	ev.sample.stack = stack;
	ev.sample.n_stack = n;
	pprof_add(p, &ev, NULL);
}

/* Where the kernel is must not be in it; what has no address is a location of its own. */
static void add_ops(void)
{
	static const __u64 kernel[] = { (__u64)PERF_CONTEXT_KERNEL, KERNEL + 0x110, KERNEL + 0x205,
					(__u64)PERF_CONTEXT_USER,   0x400011,	    0x500021 };
	struct trace_event other = op(0, 0, 0, 0);

	begin("src,op,pid,comm,page_size", IBS_METRIC_DC_MISS_LAT);
	add_chain(op(1000, KERNEL + 0x110, MISS | 300ull << 32, 3 | IBS_OP_DATA2_RMT_NODE), kernel,
		  6);
	add_chain(op(900, 0x400011, MISS | HUGE | 60ull << 32, 1), kernel + 4, 2);
	for (int i = 0; i < 3; i++)
		add(op(1200 + 650 * i, 0x400011, FLAGS, 0), NULL);
	other.sample.has_task = other.sample.has_ip = false;
	other.sample.tgid = other.sample.tid = 0;
	add(other, NULL);
	other.kind = TRACE_SAMPLE_FETCH;
	add(other, NULL);
	other = op(1100, MODULE + 0x14, MISS | 100ull << 32, 5);
	other.sample.tgid = other.sample.tid = 8;
	add(other, "db\n1");
}

static void test_ops(void **state)
{
	(void)state;
	add_ops();
	write_profile();
	assert_string_equal(
		dump,
		"sample_type samples count\n"
		"sample_type miss_cycles cycles\n"
		"sample_type remote_miss_cycles cycles\n"
		"sample_type estimated_ops ops\n"
		"sample_type dram count\n"
		"default_type miss_cycles\n"
		"period_type ibs ops\n"
		"period 1000\n"
		"time 5000500\n"
		"duration 1600\n"
		"comment ibscope report --pprof f: 7 of 10 samples of f.ibs, host elsewhere\n"
		"comment symbols: 2 named 4 no_symbol 1 no_address\n"
		"sample 1,2,3,4 1,300000,300000,1000,1 {source remote-dram} {op load} {pid 7} "
		"{thread work} {page_size 4096 bytes}\n"
		"sample 3,4 1,60000,0,1000,0 {source l3} {op load} {pid 7} {thread work} "
		"{page_size 2097152 bytes}\n"
		"sample 3 3,0,0,3000,0 {source l1} {op load} {pid 7} {thread work} "
		"{page_size 4096 bytes}\n"
		"sample 5 1,0,0,1000,0 {source none} {op other}\n"
		"sample 6 1,100000,100000,1000,0 {source remote-cache} {op load} {pid 8} "
		"{page_size 4096 bytes} {service db\\x0a1}\n"
		"mapping 1 0 0x200000 0 [kernel.kallsyms]  1\n"
		"mapping 2 0x2000 0x3000 0x2000 /nowhere/prog "
		"ab010000000000000000000000000000000000f0 1\n"
		"mapping 3 0 0x2000 0 /nowhere/lib  1\n"
		"mapping 4 0 0x4000 0 [mod]  1\n"
		"location 1 1 0x110 {1}\n"
		"location 2 1 0x204 {2}\n"
		"location 3 2 0x2011 {3}\n"
		"location 4 3 0x20 {4}\n"
		"location 5 0 0 {5}\n"
		"location 6 4 0x14 {6}\n"
		"function 1 do_fault do_fault\n"
		"function 2 handle handle\n"
		"function 3 [prog] [prog]\n"
		"function 4 [lib] [lib]\n"
		"function 5 [unknown] [unknown]\n"
		"function 6 mod_read mod_read\n");
	assert_int_equal(pprof_samples(p, CODE_NAMED), 2);
	assert_int_equal(pprof_samples(p, CODE_NO_SYMBOL), 4);
	assert_int_equal(pprof_samples(p, CODE_NO_ADDRESS), 1);
}

/* What was lost is a comment; times and the period only if they are known. */
static void test_head(void **state)
{
	(void)state;
	add_ops();
	write_profile();
	has_not("lost");
	end.whole = false;
	strcpy(end.missing, "the end");
	write_profile();
	has("comment lost while recording: 0 samples, 0 records; INCOMPLETE: the end\n");
	end = (struct trace_end){ .whole = true };
	head.lost_records = 2;
	write_profile();
	has("comment lost while recording: 0 samples, 2 records\n");
	head.lost_records = 0;
	head.lost_samples = 3;
	info.realtime_ns = 0;
	pmu.freq = true;
	write_profile();
	has("comment lost while recording: 3 samples, 0 records\n");
	has_not("\ntime ");
	has("\nduration 1600\n");
	has_not("\nperiod");
	info.n_pmus = 0;
	write_profile();
	has_not("\nperiod");
	/* no sample has a time */
	info.n_pmus = 1;
	info.realtime_ns = 5000000;
	begin("src", IBS_METRIC_DC_MISS_LAT);
	add(op(0, 0x400011, FLAGS, 0), NULL);
	write_profile();
	has_not("\ntime ");
	has_not("\nduration ");
}

/* A sample whose period is not known: then all are sums of latencies. */
static void test_latencies(void **state)
{
	struct trace_event ev = op(1000, 0x400011, MISS | 300ull << 32, 3);

	(void)state;
	begin("op", IBS_METRIC_DC_MISS_LAT);
	add(ev, NULL);
	pmu.freq = true;
	ev.sample.op.reg[IBS_OP_DATA2] |= IBS_OP_DATA2_RMT_NODE;
	add(ev, NULL);
	write_profile();
	has("sample_type samples count\n"
	    "sample_type latency cycles\n"
	    "sample_type remote_latency cycles\n"
	    "sample_type dram count\n"
	    "default_type latency\n");
	has("sample 1 2,600,300,2 {op load}\n");
}

/* Samples of cycles, and without the registers that say where data came from. */
static void test_cycles(void **state)
{
	struct trace_event ev = op(1000, 0x400011, MISS | 300ull << 32, 3);

	(void)state;
	strcpy(pmu.name, "ibs_op//");
	begin("pid", IBS_METRIC_DC_MISS_LAT);
	ev.sample.op.present &= ~(1u << IBS_OP_DATA2);
	add(ev, NULL);
	write_profile();
	has("sample_type estimated_ops cycles\n");
	has("period_type ibs cycles\n");
	has("sample 1 1,300000,0,1000,0 {pid 7}\n");
	/* both units: neither */
	strcpy(pmu.name, "ibs_op/cnt_ctl=1/");
	add(ev, NULL);
	write_profile();
	has("sample_type estimated_ops count\n");
	has("period_type ibs count\n");
	has("sample 1 2,600000,0,2000,0 {pid 7}\n");
}

/* Where data came from is known only with all three registers. */
static void test_registers(void **state)
{
	static const int needed[] = { IBS_OP_DATA, IBS_OP_DATA2, IBS_OP_DATA3 };
	struct trace_event ev;

	(void)state;
	begin("pid", IBS_METRIC_DC_MISS_LAT);
	for (int i = 0; i < 3; i++) {
		ev = op(1000, 0x400011, MISS | 300ull << 32, 3 | IBS_OP_DATA2_RMT_NODE);
		ev.sample.op.present &= ~(1u << needed[i]);
		add(ev, NULL);
	}
	write_profile();
	has("sample 1 3,300000,0,3000,0 {pid 7}\n"); /* the latency needs two of them */
	/* of a sample without a latency only its source counts */
	begin("pid", IBS_METRIC_TLB_REFILL_LAT);
	add(op(1000, 0x400011, MISS, 3), NULL);
	write_profile();
	has("sample 1 1,0,0,1000,1 {pid 7}\n");
}

static void test_fetches(void **state)
{
	struct trace_event ev = op(1000, 0x400011, 0, 0);

	(void)state;
	pmu = (struct trace_pmu){ .name = "ibs_fetch//", .period = 4096 };
	begin("fetch", IBS_METRIC_FETCH_LAT);
	add(ev, NULL); /* an op */
	ev.kind = TRACE_SAMPLE_FETCH;
	ev.sample.fetch = (struct ibs_fetch_sample){ .cpu.caps = CAPS, .present = 7 };
	ev.sample.fetch.reg[IBS_FETCH_CTL] =
		IBS_FETCH_CTL_COMP | IBS_FETCH_CTL_OC_MISS | 50ull << 32;
	add(ev, NULL);
	write_profile();
	has("sample_type estimated_ops fetches\ndefault_type miss_cycles\n");
	has_not("dram");
	has("period_type ibs fetches\nperiod 4096\n");
	has("sample 1 1,204800,0,4096 {fetch l1}\n");
}

/* A frame around all others says so. */
static void test_simulated(void **state)
{
	static const __u64 stack[] = { 0x400011, 0x500021 };

	(void)state;
	info.simulated = true;
	begin("pid", IBS_METRIC_DC_MISS_LAT);
	add_chain(op(1000, 0x400011, FLAGS, 0), stack, 2);
	add(op(1000, 0x500020, FLAGS, 0), NULL);
	write_profile();
	has("comment SIMULATED samples\n");
	has("sample 2,3,1 1,0,0,1000,0 {pid 7}\n");
	has("sample 3,1 1,0,0,1000,0 {pid 7}\n");
	has("location 1 0 0 {1}\n");
	has("function 1 SIMULATED SIMULATED\n");
}

/* With a name of C++. */
__attribute__((noinline)) void pprof_test_target(int n) __asm__("_Z9pprof_twoi");
extern volatile int sink;
volatile int sink;
void pprof_test_target(int n)
{
	sink += n;
}

/* The name as people write it, beside that of the linker; the file is this program. */
static void test_mangled(void **state)
{
	const __u64 at = (uintptr_t)pprof_test_target + 1;
	struct trace_event ev = { .kind = TRACE_MMAP, .time = 1 };
	char want[1024];

	(void)state;
	assert_true(self_map_at(at, &ev.mmap));
	ev.mmap.tgid = ev.mmap.tid = PID;
	tasks_add(tasks, &ev);
	begin("pid", IBS_METRIC_DC_MISS_LAT);
	for (int i = 0; i < 3; i++)
		add(op(1000 + i, at + (i == 2), FLAGS, 0), NULL);
	write_profile();
	if (!ev.mmap.build_id_len) {
		puts("this program has no build-id, and its name is not known without one");
		skip();
	}
	has("comment symbols: 3 named\n");
	has("sample 1 2,0,0,2000,0 {pid 7}\nsample 2 1,0,0,1000,0 {pid 7}\n");
	snprintf(want, sizeof(want), "location 1 1 %#llx {1}\nlocation 2 1 %#llx {1}\n",
		 at - ev.mmap.start + ev.mmap.pgoff, at + 1 - ev.mmap.start + ev.mmap.pgoff);
	has(want);
	has("function 1 pprof_two _Z9pprof_twoi\n");
	has_not("function 2");
}

/* A failed write makes pprof_write() fail. */
static void test_full(void **state)
{
	const int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

	(void)state;
	add_ops();
	assert_int_equal(pprof_write(p, &head, fd, &err), -ENOSPC);
	assert_string_equal(err.text, "cannot write the profile: No space left on device");
	close(fd);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, clean_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_ops),	   T(test_head),    T(test_latencies),
		T(test_cycles),	   T(test_fetches), T(test_registers),
		T(test_simulated), T(test_mangled), T(test_full),

	};
	int ret = cmocka_run_group_tests(tests, NULL, NULL);

	free(dump);
	return ret;
}
