// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ibscope/sim.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"
#include "report/report_print.h"

#define CAPS	0xbffu /* Zen 4 */
#define SAMPLES 20000
#define CPUS	3
#define TIDS	7

static const struct trace_pmu pmus[] = {
	{ .name = "ibs_op/cnt_ctl=1/", .op = true, .period = 1000, .stacks = true },
	{ .name = "ibs_op//", .op = true, .freq = true, .period = 4000 },
	{ .name = "ibs_fetch//" },
	{ .name = "ibs_op/cnt_ctl=0/", .op = true, .period = 1000 },
};
static const struct trace_info info = {
	.format = "test", .source = "sim", .simulated = true, .pmu = pmus, .n_pmus = 4
};

static struct tasks *tasks;
static struct trace_event samples[SAMPLES];
static __u64 n_ops; /* of them; a table of ops has no fetches */

static void fill(struct trace_event *ev, __u64 n)
{
	struct trace_sample *s = &ev->sample;
	__u64 r = ibs_sim_mix(n);

	memset(ev, 0, sizeof(*ev));
	ev->time = n + 1;
	ev->kind = r % 16 ? TRACE_SAMPLE_OP : TRACE_SAMPLE_FETCH;
	s->pmu = ev->kind == TRACE_SAMPLE_FETCH ? 2 : r >> 4 & 1;
	s->has_task = r >> 8 & 7;
	s->tgid = 10 + (r >> 12 & 3);
	s->tid = 100 + (r >> 16 & 0xffff) % TIDS;
	s->has_cpu = r >> 32 & 7;
	s->cpu = (r >> 36 & 0xff) % CPUS;
	s->has_ip = r >> 44 & 3;
	s->ip = 0x1000 + (r >> 48 & 15);
	s->cgroup_id = (r >> 52) % 4;
	if (ev->kind == TRACE_SAMPLE_FETCH) {
		s->fetch.cpu.caps = CAPS;
		return;
	}
	s->op.cpu.caps = CAPS;
	s->op.nregs = IBS_OP_REG_FIXED;
	s->op.present = (1u << IBS_OP_REG_FIXED) - 1;
	ibs_sim_op(1, s->cpu, n, CAPS, s->op.reg);
	if (n % 5 == 0 && s->op.reg[IBS_OP_DATA3] & IBS_OP_DATA3_LD_OP)
		s->op.reg[IBS_OP_DATA3] |= IBS_OP_DATA3_SW_PF; /* the simulation has none */
	if (r >> 56 & 1) { /* it retired at once; the simulation has no open requests, either */
		s->op.reg[IBS_OP_DATA] &= ~0xfffcull;
		s->op.reg[IBS_OP_DATA3] |= (r >> 57 & 63) << 26;
	}
	s->op.reg[IBS_DC_LINADDR] = 0x7f0000000000 + (r >> 20 & 0x1ff);
	s->op.reg[IBS_DC_PHYSADDR] = 0x100000 + (r >> 20 & 0x1ff);
}

static int setup(void **state)
{
	struct trace_event comm = { .kind = TRACE_COMM, .comm = { 0, 100, true, "first" } };
	struct trace_event cgroup = { .kind = TRACE_CGROUP, .cgroup = { 1, "/same" } };

	(void)state;
	tasks = tasks_new();
	tasks_add(tasks, &comm);
	comm.comm.tid = 101;
	tasks_add(tasks, &comm);
	tasks_add(tasks, &cgroup);
	cgroup.cgroup.id = 2; /* made again */
	tasks_add(tasks, &cgroup);
	for (__u64 n = 0; n < SAMPLES; n++) {
		fill(&samples[n], n);
		n_ops += samples[n].kind == TRACE_SAMPLE_OP;
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	tasks_free(tasks);
	return 0;
}

/* What a key says of a sample, in the plainest way. NULL: absent. */
static const char *plain_label(const struct trace_event *ev, enum label key, bool phys, char *buf)
{
	const struct trace_sample *s = &ev->sample;
	bool op = ev->kind == TRACE_SAMPLE_OP;
	__u64 addr;

	switch (key) {
	case LABEL_SRC:
		return op ? src_name(ibs_op_src(s->op.cpu, s->op.reg)) : NULL;
	case LABEL_OP:
		return op ? op_kind_name(
				    ibs_op_kind(s->op.reg[IBS_OP_DATA], s->op.reg[IBS_OP_DATA3]))
			  : NULL;
	case LABEL_CGROUP:
		return !s->cgroup_id ? NULL : s->cgroup_id == 3 ? "#3" : "/same";
	case LABEL_PID:
		sprintf(buf, "%u", s->tgid);
		return s->has_task ? buf : NULL;
	case LABEL_TID:
		sprintf(buf, "%u", s->tid);
		return s->has_task ? buf : NULL;
	case LABEL_COMM:
		return s->has_task && s->tid < 102 ? "first" : NULL;
	case LABEL_CPU:
		sprintf(buf, "%u", s->cpu);
		return s->has_cpu ? buf : NULL;
	case LABEL_IP:
		sprintf(buf, "0x%llx", s->ip);
		return s->has_ip ? buf : NULL;
	case LABEL_LINE:
		if (!op || !(s->op.reg[IBS_OP_DATA3] & IBS_OP_DATA3_LIN_VALID))
			return NULL;
		addr = s->op.reg[phys ? IBS_DC_PHYSADDR : IBS_DC_LINADDR];
		sprintf(buf, "0x%llx", addr & ~63ull);
		return buf;
	case LABEL_PREFETCH:
		return !op || !(s->op.reg[IBS_OP_DATA3] & 3) ? NULL
		       : s->op.reg[IBS_OP_DATA3] >> 21 & 1   ? "software"
							     : "none";
	case LABEL_EVENT:
		return pmus[s->pmu].name;
	default:
		fail();
		return NULL;
	}
}

static bool same_labels(const struct report_row *row, const struct trace_event *ev,
			const struct report_opts *opts)
{
	char buf[32];

	for (unsigned int k = 0; k < opts->n_by; k++) {
		const char *want = plain_label(ev, opts->by[k], opts->phys, buf);

		if (!want != !row->label[k] || (want && strcmp(want, row->label[k])))
			return false;
	}
	return true;
}

static int compare_u32(const void *a, const void *b)
{
	return *(const __u32 *)a < *(const __u32 *)b ? -1 : *(const __u32 *)a > *(const __u32 *)b;
}

/* Percentiles by sorting: the upper edge of the bucket of the ranked latency, at most the maximum. */
static long plain_percentile(const __u32 *lat, __u64 n, int percent)
{
	__u64 rank = (n * percent + 99) / 100;
	__u32 edge;

	if (n * (100 - percent) < 100)
		return -1;
	edge = ibs_lat_le(ibs_lat_bucket(lat[rank - 1]));
	return edge < lat[n - 1] ? edge : lat[n - 1];
}

/* A row against all samples that it should be of. Return: how many these are. */
static __u64 check_row(const struct report_row *row, const struct report_opts *opts)
{
	static __u32 lat[SAMPLES];
	bool cpus[CPUS] = { 0 }, tids[TIDS] = { 0 }, offsets[64] = { 0 };
	__u64 n = 0, valid = 0, sum = 0, loads = 0, stores = 0, estimated = 0;
	unsigned int n_cpus = 0, n_tids = 0, n_offsets = 0;
	bool known = true;

	for (int i = 0; i < SAMPLES; i++) {
		const struct trace_sample *s = &samples[i].sample;
		const __u64 *reg = s->op.reg;

		if (samples[i].kind != TRACE_SAMPLE_OP || !same_labels(row, &samples[i], opts))
			continue;
		n++;
		estimated += s->pmu == 0 ? 1000 : 0;
		known &= s->pmu == 0;
		if (s->has_cpu)
			cpus[s->cpu] = true;
		if (s->has_task)
			tids[s->tid - 100] = true;
		loads += reg[IBS_OP_DATA3] & 1;
		stores += reg[IBS_OP_DATA3] >> 1 & 1;
		if (reg[IBS_OP_DATA3] & IBS_OP_DATA3_LIN_VALID)
			offsets[reg[opts->phys ? IBS_DC_PHYSADDR : IBS_DC_LINADDR] & 63] = true;
		if (!ibs_op_metric_valid(opts->metric, CAPS, reg[IBS_OP_DATA3]))
			continue;
		lat[valid] = ibs_op_metric(opts->metric, reg, reg[IBS_OP_DATA3]);
		sum += lat[valid++];
	}
	qsort(lat, valid, sizeof(lat[0]), compare_u32);
	for (int i = 0; i < CPUS; i++)
		n_cpus += cpus[i];
	for (int i = 0; i < TIDS; i++)
		n_tids += tids[i];
	for (int i = 0; i < 64; i++)
		n_offsets += offsets[i];
	assert_int_equal(row->samples, n);
	assert_int_equal(row->valid, valid);
	assert_int_equal(row->sum, sum);
	assert_int_equal(row->max, valid ? lat[valid - 1] : 0);
	assert_int_equal(row->p50, plain_percentile(lat, valid, 50));
	assert_int_equal(row->p90, plain_percentile(lat, valid, 90));
	assert_int_equal(row->p99, plain_percentile(lat, valid, 99));
	assert_int_equal(row->loads, loads);
	assert_int_equal(row->stores, stores);
	assert_int_equal(row->cpus, n_cpus);
	assert_int_equal(row->threads, n_tids);
	assert_int_equal(row->offsets, n_offsets);
	assert_int_equal(row->has_estimated, known);
	if (known)
		assert_int_equal(row->estimated, estimated);
	return n;
}

/* Sums of the loads of a row, from the documents' fields. */
static void check_exposed(const struct report_row *row, const struct report_opts *opts)
{
	__u64 missed = 0, blocking = 0, exposed = 0, unexposed = 0;

	for (int i = 0; i < SAMPLES; i++) {
		const struct trace_sample *s = &samples[i].sample;
		const __u64 data3 = s->op.reg[IBS_OP_DATA3], open = data3 >> 26 & 63;
		const __u64 cycles = (data3 >> 32 & 0xffff) * (s->pmu ? 1 : 1000);

		if (samples[i].kind != TRACE_SAMPLE_OP || !same_labels(row, &samples[i], opts) ||
		    !(data3 & 1) || !(data3 >> 7 & 1) || data3 >> 14 & 1 || data3 >> 21 & 1)
			continue;
		missed += cycles;
		if ((s->op.reg[IBS_OP_DATA] & 0xffff) > 2)
			continue;
		blocking += cycles;
		unexposed += !open;
		exposed += open ? (data3 >> 32 & 0xffff) / open * (s->pmu ? 1 : 1000) : 0;
	}
	assert_int_equal(row->missed, missed);
	assert_int_equal(row->blocking, blocking);
	assert_int_equal(row->exposed, exposed);
	assert_int_equal(row->unexposed, unexposed);
}

static struct report *make(const char *by, enum ibs_metric metric, bool phys)
{
	struct report_opts opts = { .metric = metric,
				    .phys = phys,
				    .cpus = true,
				    .threads = true,
				    .info = &info,
				    .tasks = tasks };
	struct report *r;

	assert_int_equal(report_keys_parse(by, opts.by, &opts.n_by, NULL), 0);
	assert_int_equal(report_new(&opts, &r, NULL), 0);
	for (int i = 0; i < SAMPLES; i++)
		assert_int_equal(report_add(r, &samples[i]), 0);
	return r;
}

static void test_model(void **state)
{
	static const char *const by[] = { "src",	"op,src", "cgroup",	  "pid",
					  "tid,cpu",	"comm",	  "ip",		  "line",
					  "line,cpu",	"event",  "event,op,src", "prefetch",
					  "op,prefetch" };
	struct report_order order = { .sort = TABLE_TOTAL };

	(void)state;
	for (size_t i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
		struct report *r = make(by[i], i % IBS_OP_METRIC_N, i & 1);
		struct report_table t;
		__u64 n = 0;

		assert_int_equal(report_table(r, &order, &t), 0);
		for (size_t k = 0; k < t.n; k++) {
			n += check_row(&t.rows[k], t.opts);
			check_exposed(&t.rows[k], t.opts);
			if (k)
				assert_true(!t.rows[k].valid || t.rows[k - 1].sum >= t.rows[k].sum);
		}
		assert_int_equal(n, n_ops);
		assert_int_equal(t.total.samples, n_ops);
		report_table_free(&t);
		report_free(r);
	}
}

/* What is cut off is not lost. */
/* Exposed cycles of a single sample of event @pmu; NAN: not known. */
static double exposed_of(unsigned int pmu, __u64 data, __u64 data3, __u32 quirks)
{
	const struct report_opts opts = { .by = { LABEL_OP }, .n_by = 1, .info = &info };
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP };
	struct ibs_op_sample *op = &ev.sample.op;
	struct report_table t;
	struct report *r;
	double v;

	ev.sample.pmu = pmu;
	op->cpu = (struct ibs_cpu){ .caps = CAPS, .quirks = quirks };
	op->present = (1u << IBS_OP_REG_FIXED) - 1;
	op->reg[IBS_OP_DATA] = data;
	op->reg[IBS_OP_DATA3] = data3;
	assert_int_equal(report_new(&opts, &r, NULL), 0);
	assert_int_equal(report_add(r, &ev), 0);
	assert_int_equal(report_table(r, &(struct report_order){ .sort = TABLE_EXPOSED }, &t), 0);
	v = report_value(&t, &t.rows[0], TABLE_EXPOSED);
	assert_true(isnan(v) == isnan(report_value(&t, &t.total, TABLE_EXPOSED)));
	report_table_free(&t);
	report_free(r);
	return v;
}

static void test_exposed(void **state)
{
	const __u64 load = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | 300ull << 32;
	const __u64 joined = load | 3 << 26 | IBS_OP_DATA3_NO_MAB;

	(void)state;
	assert_true(exposed_of(0, 1, load | 3 << 26, 0) == 100 * 1000);
	assert_true(exposed_of(0, 9, load | 3 << 26, 0) == 0);
	assert_true(exposed_of(0, 9, load, 0) == 0);
	assert_true(isnan(exposed_of(0, 1, load, 0)));
	assert_true(exposed_of(0, 1, joined, 0) == 100 * 1000);
	assert_true(isnan(exposed_of(0, 1, joined, IBS_QUIRK_OP_1293)));
	assert_true(isnan(exposed_of(0, 1, IBS_OP_DATA3_ST_OP | IBS_OP_DATA3_DC_MISS, 0)));
	assert_true(isnan(exposed_of(0, 1, IBS_OP_DATA3_LD_OP, 0)));
	/* a period that is not known, and cycles rather than ops */
	assert_true(isnan(exposed_of(1, 1, load | 3 << 26, 0)));
	assert_true(isnan(exposed_of(3, 1, load | 3 << 26, 0)));
}

static void test_rest(void **state)
{
	const struct report_order orders[] = {
		{ TABLE_SAMPLES, 3, 0 }, { TABLE_MEAN, 0, 300 },	  { TABLE_MAX, 2, 300 },
		{ TABLE_P99, 1000, 0 },	 { TABLE_TOTAL, 0, SAMPLES + 1 },
	};
	struct report *r = make("src,op", IBS_METRIC_DC_MISS_LAT, false);

	(void)state;
	for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
		__u64 n, sum, loads, cycles, known, dram, remote;
		struct report_table t;

		assert_int_equal(report_table(r, &orders[i], &t), 0);
		n = t.rest.samples;
		sum = t.rest.sum;
		loads = t.rest.loads;
		cycles = t.rest.cycles;
		known = t.rest.known;
		dram = t.rest.dram;
		remote = t.rest.remote;
		for (size_t k = 0; k < t.n; k++) {
			n += t.rows[k].samples;
			sum += t.rows[k].sum;
			loads += t.rows[k].loads;
			cycles += t.rows[k].cycles;
			known += t.rows[k].known;
			dram += t.rows[k].dram;
			remote += t.rows[k].remote;
			assert_true(t.rows[k].samples >= orders[i].min_samples);
		}
		assert_int_equal(n, n_ops);
		assert_int_equal(sum, t.total.sum);
		assert_int_equal(loads, t.total.loads);
		assert_int_equal(cycles, t.total.cycles);
		assert_int_equal(known, t.total.known);
		assert_int_equal(dram, t.total.dram);
		assert_int_equal(remote, t.total.remote);
		assert_true(dram && remote);
		assert_true(!orders[i].top || t.n <= orders[i].top);
		assert_int_equal(t.n_rest > 0, i != 3);
		report_table_free(&t);
	}
	report_free(r);
}

/* A line of another process is another line; one of the kernel is everybody's. */
static void test_space(void **state)
{
	struct report_opts opts = { .info = &info, .tasks = tasks };
	struct report_order order = { .sort = TABLE_SAMPLES };
	struct trace_event ev = samples[0];
	struct report_table t;
	struct report *r;

	(void)state;
	for (__u64 n = 0; ev.kind != TRACE_SAMPLE_OP ||
			  !(ev.sample.op.reg[IBS_OP_DATA3] & IBS_OP_DATA3_LIN_VALID);)
		ev = samples[++n];
	assert_int_equal(report_keys_parse("line,space", opts.by, &opts.n_by, NULL), 0);
	assert_int_equal(report_new(&opts, &r, NULL), 0);
	ev.sample.has_task = true;
	for (int i = 0; i < 10; i++) {
		ev.sample.tgid = i & 1 ? 7 : 8;
		ev.sample.op.reg[IBS_DC_LINADDR] = i < 4 ? 0x5000 : 0xffff888000005000ull;
		assert_int_equal(report_add(r, &ev), 0);
	}
	assert_int_equal(report_table(r, &order, &t), 0);
	assert_int_equal(t.n, 3);
	assert_int_equal(t.rows[0].samples, 6);
	assert_string_equal(t.rows[0].label[1], "kernel");
	assert_int_equal(t.rows[1].samples, 2);
	assert_string_equal(t.rows[1].label[1], "7");
	assert_string_equal(t.rows[2].label[1], "8");
	report_table_free(&t);
	report_free(r);
}

static void test_parse(void **state)
{
	struct option_row rows[VIEW_OPTIONS_MAX];
	struct view_opts view = { 0 };
	const struct option_set set = view_options(rows, VIEW_OPTIONS_ALL, &report_columns, &view);
	enum label keys[LABEL_ALL];
	struct err err = { "" };
	unsigned int n;

	(void)state;
	assert_int_equal(report_keys_parse("op,src,op", keys, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_int_equal(keys[0], LABEL_OP);
	assert_int_equal(report_keys_parse("src,", keys, &n, &err), -22);
	assert_non_null(strstr(err.text, "column 5"));
	assert_int_equal(report_keys_parse("", keys, &n, NULL), -22);
	assert_int_equal(options_one("columns", "mean,p99", &set, 1, NULL), 0);
	assert_int_equal(view.n_columns, 2);
	assert_int_equal(view.columns[1], TABLE_P99);
	assert_int_equal(options_one("sort", "src", &set, 1, &err), -22);
	assert_non_null(strstr(err.text, "--sort"));
	assert_non_null(strstr(err.text, "p99"));
}

/* Registers that a record lacks leave samples without source, op and latency. */
static void test_absent_registers(void **state)
{
	struct report_opts opts = { .info = &info, .tasks = tasks };
	struct report_order order = { .sort = TABLE_SAMPLES };
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP, .sample.op.cpu.caps = CAPS };
	struct report_table t;
	struct report *r;

	(void)state;
	ev.sample.op.reg[IBS_OP_DATA3] = ~0ull;
	assert_int_equal(report_keys_parse("src,op,line,prefetch", opts.by, &opts.n_by, NULL), 0);
	opts.metric = IBS_METRIC_TAG_TO_RET;
	assert_int_equal(report_new(&opts, &r, NULL), 0);
	assert_int_equal(report_add(r, &ev), 0);
	assert_int_equal(report_table(r, &order, &t), 0);
	assert_int_equal(t.n, 1);
	assert_null(t.rows[0].label[0]);
	assert_null(t.rows[0].label[1]);
	assert_null(t.rows[0].label[2]);
	assert_null(t.rows[0].label[3]);
	assert_int_equal(t.rows[0].valid, 0);
	assert_int_equal(t.rows[0].loads, 0);
	report_table_free(&t);
	report_free(r);
}

static void test_folded(void **state)
{
	const __u64 user[] = { 0x1005, 0x2005, 0x3005 };
	const __u64 both[] = { (__u64)-128, 0xffffffff81000000ull, (__u64)-512, 0x1005, 0x1105 };
	struct symbols_opts symbols_opts = { .info = &info };
	struct folded_opts opts = { .weight = FOLDED_TOTAL, .tasks = tasks };
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP };
	struct trace_event map = {
		.kind = TRACE_MMAP,
		.mmap = { .tgid = 10, .start = 0x1000, .len = 0x1000, .path = "/a;b c\n" }
	};
	struct symbols *symbols;
	struct tasks *own;
	struct folded *f;
	char *buf = NULL;
	size_t size;
	FILE *out;

	(void)state;
	own = tasks_new();
	tasks_add(own, &map);
	opts.tasks = own;
	assert_int_equal(symbols_new(&symbols_opts, &symbols, NULL), 0);
	opts.symbols = symbols;
	f = folded_new(&opts);
	ev.sample.has_task = true;
	ev.sample.tgid = ev.sample.tid = 10;
	ev.sample.op.present = 0x7f;
	ev.sample.op.reg[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | 100ull << 32;
	ev.sample.stack = user;
	ev.sample.n_stack = 3;
	folded_add(f, &ev);
	folded_add(f, &ev);
	ev.sample.stack = both;
	ev.sample.n_stack = 5;
	folded_add(f, &ev);
	ev.sample.n_stack = 0;
	folded_add(f, &ev);
	ev.sample.op.reg[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP; /* weighs nothing */
	folded_add(f, &ev);
	out = open_memstream(&buf, &size);
	folded_print(out, f);
	fclose(out);
	assert_string_equal(buf, "[unknown];[/a:b c\\x0a];[/a:b c\\x0a];[kernel]_[k] 100\n"
				 "[unknown];[unknown] 100\n"
				 "[unknown];[unknown];[unknown];[/a:b c\\x0a] 200\n");
	free(buf);
	folded_free(f);

	/* of strata, a sample counts as often as it represents ops; one of which that is unknown does not */
	opts.strata = true;
	f = folded_new(&opts);
	ev.sample.op.reg[IBS_OP_DATA3] = IBS_OP_DATA3_LD_OP | IBS_OP_DATA3_DC_MISS | 100ull << 32;
	ev.sample.weight = 1000;
	folded_add(f, &ev);
	ev.sample.weight = 20;
	folded_add(f, &ev);
	ev.sample.weight = 0;
	folded_add(f, &ev);
	out = open_memstream(&buf, &size);
	folded_print(out, f);
	fclose(out);
	assert_string_equal(buf, "[unknown];[unknown] 102000\n");
	free(buf);
	folded_free(f);
	symbols_free(symbols);
	tasks_free(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_model),  cmocka_unit_test(test_exposed),
		cmocka_unit_test(test_rest),   cmocka_unit_test(test_space),
		cmocka_unit_test(test_parse),  cmocka_unit_test(test_absent_registers),
		cmocka_unit_test(test_folded),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
