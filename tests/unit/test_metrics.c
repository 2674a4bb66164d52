// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The text of /metrics, from counters that are laid out here. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <math.h>

#include <ibscope/caps.h>
#include <ibscope/fetch.h>
#include <jansson.h>

#include "table/table.h"
#include "metrics/metrics.h"
#include "memory_in_use.h"
#include "metrics/metrics_private.h"

#define SLOTS 8

#define PERIOD 1000

static struct layout layout;
static __u64 *series;
static struct ibs_slot_owner owners[SLOTS];
static struct ibs_slot_name names[SLOTS];
static union {
	struct ibs_state state;
	struct ibs_cpu_state room[2];
} counted;
static struct ibs_meta meta;
static struct counts counts;
static struct metrics_opts opts;
static char *text;

static int up(void **state)
{
	(void)state;
	layout_init(&layout, IBS_METRIC_DC_MISS_LAT, IBS_CAPS_ZEN4);
	series = calloc((size_t)SLOTS * layout.words, sizeof(*series));
	memset(owners, 0, sizeof(owners));
	memset(names, 0, sizeof(names));
	memset(&counted, 0, sizeof(counted));
	opts = (struct metrics_opts){ .detail = METRICS_FULL };
	meta = (struct ibs_meta){ .layout = { .max_slots = SLOTS, .by = IBS_BY_CGROUP },
				  .version = "1.2.3" };
	counts = (struct counts){ .series = series,
				  .owners = owners,
				  .state = &counted.state,
				  .n_cpus = 1,
				  .outcomes = IBS_OUTCOME_N,
				  .shards = 1,
				  .max_slots = SLOTS,
				  .has_ops = true,
				  .tlb = true,
				  .layout = &layout };
	return 0;
}

static int down(void **state)
{
	(void)state;
	free(series);
	free(text);
	text = NULL;
	return 0;
}

static void put_slot(__u32 slot, __u64 id, const char *cgroup)
{
	owners[slot].key.cgroup_id = id;
	owners[slot].used = 1;
	names[slot].cgroup_id = id;
	snprintf(names[slot].cgroup, sizeof(names[slot].cgroup), "%s", cgroup);
}

static __u64 *words_of(__u32 slot, int op, int src)
{
	return series + slot * layout.words +
	       (layout.entry[IBS_LAYOUT_IDX(op, src)] & IBS_LAYOUT_WORD);
}

static void add(__u32 slot, int op, int src, int cycles, __u64 n)
{
	__u16 entry = layout.entry[IBS_LAYOUT_IDX(op, src)];
	__u64 *w = words_of(slot, op, src);

	assert_true(layout_has(&layout, IBS_LAYOUT_IDX(op, src)));
	w[IBS_PAIR_OPS] += n * PERIOD;
	if (!(entry & IBS_LAYOUT_HIST)) {
		w[0] += n;
	} else if (cycles < 0) {
		w[IBS_HIST_NO_LAT] += n;
	} else {
		w[IBS_HIST_BUCKET + ibs_lat_bucket(cycles)] += n;
		w[IBS_HIST_SUM] += n * cycles;
		w[IBS_HIST_CYCLES] += n * cycles * PERIOD;
	}
	counted.state.cpu[0].seen += n;
	counted.state.cpu[0].outcome[IBS_OUTCOME_AGGREGATED] += n;
}

static void name(const void *arg, const struct group *g, struct ibs_slot_name *out)
{
	(void)arg;
	*out = names[g->slot];
	if (out->cgroup_id != g->key.cgroup_id)
		memset(out, 0, sizeof(*out));
}

static const char *print(enum metrics_format format)
{
	struct metrics_source src = { .counts = &counts, .meta = &meta, .name = name };
	struct metrics_self self = {};
	struct metrics *m;
	struct err err = {};
	size_t n;
	FILE *f;

	assert_int_equal(metrics_read(&src, &opts, &self, &m, &err), 0);
	free(text);
	f = open_memstream(&text, &n);
	metrics_print(f, m, format);
	fclose(f);
	metrics_free(m);
	return text;
}

static void has(const char *line)
{
	char want[1024];

	snprintf(want, sizeof(want), "\n%s\n", line);
	if (!strstr(text, want))
		fail_msg("no '%s' in:\n%s", line, text);
}

static void has_once(const char *line)
{
	has(line);
	assert_null(strstr(strstr(text, line) + 1, line));
}

static void has_not(const char *part)
{
	if (strstr(text, part))
		fail_msg("'%s' in:\n%s", part, text);
}

#define LAT "ibscope_load_miss_latency_cycles"

static void add_tlb(__u32 slot, __u64 hits, __u64 misses, __u64 refills, __u64 cycles)
{
	__u64 *w = series + slot * layout.words;

	w[IBS_TLB_L2_HIT] += hits;
	w[IBS_TLB_L2_HIT_OPS] += hits * PERIOD;
	w[IBS_TLB_L2_MISS] += misses;
	w[IBS_TLB_L2_MISS_OPS] += misses * PERIOD;
	w[IBS_TLB_REFILL_N] += refills;
	w[IBS_TLB_REFILL_SUM] += cycles;
}

static unsigned int folds_left, reads;

/* The collector folds a group while it is read. */
static void name_and_fold(const void *arg, const struct group *g, struct ibs_slot_name *out)
{
	name(arg, g, out);
	if (g->slot != 1)
		return;
	reads++;
	if (folds_left) {
		folds_left--;
		counted.state.control.fold += 2;
	}
}

static void test_folded_meanwhile(void **state)
{
	struct metrics_source src = { .counts = &counts, .meta = &meta, .name = name_and_fold };
	struct metrics_self self = { .read_s = -1 };
	struct metrics *m = NULL;
	size_t before = 0;
	struct err err = {};

	(void)state;
	put_slot(1, 11, "/a");
	put_slot(2, 12, "/b");
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_L2, 20, 3);
	add(2, IBS_OP_KIND_LOAD, IBS_SRC_L2, 20, 1);
	/* the third time is the last one, and what the first two read is not in it */
	folds_left = 2;
	assert_int_equal(metrics_read(&src, &opts, &self, &m, &err), 0);
	assert_int_equal(reads, 3);
	assert_int_equal(m->groups[0].n, 2);
	assert_int_equal(m->groups[0].group[0].samples, 3);
	assert_int_equal(m->groups[0].group[1].samples, 1);
	assert_int_equal(m->groups[0].whole.samples, 4);
	assert_int_equal(m->facts.reading[0].groups, 2);
	assert_true(m->facts.self.read_s >= 0 && m->facts.self.read_s < 60);
	metrics_free(m);
	m = NULL;
	reads = 0;
	folds_left = 10;
	assert_int_equal(metrics_read(&src, &opts, &self, &m, &err), -EUCLEAN);
	assert_int_equal(reads, 3);
	assert_null(m);
	assert_non_null(strstr(err.text, "groups were folded during the read"));
	for (int i = 0; i < 300; i++) {
		if (i == 10)
			before = memory_in_use();
		folds_left = 10;
		assert_int_equal(metrics_read(&src, &opts, &self, &m, &err), -EUCLEAN);
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
}

#define MANY 3000

static void name_long(const void *arg, const struct group *g, struct ibs_slot_name *out)
{
	(void)arg;
	memset(out, 0, sizeof(*out));
	memset(out->cgroup, '\n', sizeof(out->cgroup) - 1);
	memset(out->pod, '\n', sizeof(out->pod) - 1);
	snprintf(out->container, sizeof(out->container), "%u", g->slot);
}

/* Groups that take too much memory lose the buckets between the edges, and nothing else. */
static void test_too_many(void **state)
{
	struct metrics_source src = { .counts = &counts, .meta = &meta, .name = name_long };
	struct ibs_slot_owner *many = calloc(MANY, sizeof(*many));
	struct metrics_self self = {};
	struct metrics *m;
	struct err err = {};

	(void)state;
	meta.by_path = 1;
	free(series);
	series = calloc((size_t)MANY * layout.words, sizeof(*series));
	counts.series = series;
	counts.owners = many;
	counts.max_slots = MANY;
	for (int slot = 1; slot < MANY; slot++) {
		many[slot].key.cgroup_id = slot;
		many[slot].used = 1;
		add(slot, IBS_OP_KIND_LOAD, IBS_SRC_L2, 20, 1);
	}
	assert_int_equal(metrics_read(&src, &opts, &self, &m, &err), 0);
	assert_true(self.coarse && m->facts.self.coarse && m->groups[0].coarse);
	assert_int_equal(m->groups[0].n, MANY - 1);
	assert_int_equal(m->groups[0].whole.samples, MANY - 1);
	assert_true(metrics_bytes(m) > METRICS_FINE_MAX);
	metrics_free(m);
	free(many);
}

/* It is the first event's collector that is up. */
static void test_up(void **state)
{
	struct timespec now;

	(void)state;
	print(METRICS_TEXT);
	has("ibscope_collector_up 0");
	clock_gettime(CLOCK_BOOTTIME, &now);
	meta.pid = 1;
	meta.status.time_ns = now.tv_sec * 1000000000ull;
	print(METRICS_TEXT);
	has("ibscope_collector_up 1");
}

/* Every metric with its type and help, once. */
static void test_list(void **state)
{
	static const char *const some[] = { "ibscope_collector_up ",
					    "ibscope_samples_seen_total ",
					    "process_start_time_seconds ",
					    "ibscope_load_miss_latency_cycles ",
					    "ibscope_itlb_refill_latency_cycles ",
					    "ibscope_samples_total ",
					    "ibscope_governor_state ",
					    "ibscope_itlb_l1_miss_estimated_fetches_total " };
	size_t n;
	FILE *f;

	(void)state;
	free(text);
	f = open_memstream(&text, &n);
	metrics_list(f);
	fclose(f);
	for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++) {
		const char *at = strstr(text, some[i]);

		assert_non_null(at);
		assert_true(at == text || at[-1] == '\n');
		assert_null(strstr(at + 1, some[i]));
	}
}

/* Groups come by their samples, and all that was read is given back. */
static void test_order(void **state)
{
	size_t before = 0;
	const char *first, *second, *third;

	(void)state;
	put_slot(1, 11, "/few");
	put_slot(2, 12, "/most");
	put_slot(3, 13, "/some");
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_L2, 20, 1);
	add(2, IBS_OP_KIND_LOAD, IBS_SRC_L2, 20, 100);
	add(3, IBS_OP_KIND_LOAD, IBS_SRC_L2, 20, 10);
	for (int i = 0; i < 300; i++) {
		if (i == 10)
			before = memory_in_use();
		print(METRICS_TEXT);
		first = strstr(text, "/most");
		second = strstr(text, "/some");
		third = strstr(text, "/few");
		assert_true(first && first < second && second < third);
		free(text);
		text = NULL;
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
}

static void test_ops_and_tlb(void **state)
{
	(void)state;
	put_slot(1, 7, "/a");
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 300, 3);
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_L1, -1, 5);
	add_tlb(1, 4, 2, 3, 90);
	words_of(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM)[IBS_HIST_MISS + IBS_MISS_OPEN_N] = 2;
	words_of(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM)[IBS_HIST_MISS + IBS_MISS_OPEN] = 7;
	words_of(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM)[IBS_HIST_MISS + IBS_MISS_HITM] = 1234;
	add(0, IBS_OP_KIND_STORE, IBS_SRC_L1, -1, 1);
	print(METRICS_OPENMETRICS);
	has("ibscope_estimated_ops_total{cgroup=\"/a\",op=\"load\",src=\"dram\"} 3000");
	has("ibscope_estimated_ops_total{cgroup=\"/a\",op=\"load\",src=\"l1\"} 5000");
	has("ibscope_load_miss_cycles_total{cgroup=\"/a\",src=\"dram\"} 900000");
	has("ibscope_load_hitm_cycles_total{cgroup=\"/a\",src=\"dram\"} 1234");
	has("ibscope_load_open_requests_samples_total{cgroup=\"/a\",src=\"dram\"} 2");
	has("ibscope_load_open_requests_total{cgroup=\"/a\",src=\"dram\"} 7");
	has("ibscope_dtlb_l1_miss_samples_total{cgroup=\"/a\",l2=\"hit\"} 4");
	has("ibscope_dtlb_l1_miss_samples_total{cgroup=\"/a\",l2=\"miss\"} 2");
	has("ibscope_dtlb_l1_miss_estimated_ops_total{cgroup=\"/a\",l2=\"miss\"} 2000");
	has_once("ibscope_dtlb_refill_latency_cycles_sum{cgroup=\"/a\"} 90");
	has_once("ibscope_dtlb_refill_latency_cycles_count{cgroup=\"/a\"} 3");
	/* what was never counted has no line */
	has_not("l2=\"hit\"} 0");
	has_not("refill_latency_cycles_sum{container=\"other\"");
}

/* A collector that counts exposed cycles says of how many samples they are unknown; one that does not says nothing. */
static void test_exposed(void **unused)
{
	__u64 *slot, *words;

	(void)unused;
	put_slot(1, 7, "/a");
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 300, 3);
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_L2, 18, 2);
	words = words_of(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM);
	slot = words -
	       (layout.entry[IBS_LAYOUT_IDX(IBS_OP_KIND_LOAD, IBS_SRC_DRAM)] & IBS_LAYOUT_WORD);
	slot[ibs_exposed_word(layout.words, words - slot)] = 4321;
	print(METRICS_OPENMETRICS);
	has_not("ibscope_load_exposed_cycles_total{");
	has_not("ibscope_load_exposed_unknown_samples_total{");
	counted.state.control.exposed = 1;
	print(METRICS_OPENMETRICS);
	has("ibscope_load_exposed_cycles_total{cgroup=\"/a\",src=\"dram\"} 4321");
	has_not("ibscope_load_exposed_unknown_samples_total{");
	slot[IBS_EXPOSED_UNKNOWN] = 2;
	print(METRICS_OPENMETRICS);
	has("ibscope_load_exposed_unknown_samples_total{cgroup=\"/a\"} 2");
	print(METRICS_JSON);
	assert_non_null(strstr(text, "\"exposed\":{\"cycles\":4321,\"unknown_samples\":2}"));

	/* all of a group, as when it begins, are no less counted */
	put_slot(2, 8, "/b");
	add(2, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 300, 3);
	words = words_of(2, IBS_OP_KIND_LOAD, IBS_SRC_DRAM);
	slot = words -
	       (layout.entry[IBS_LAYOUT_IDX(IBS_OP_KIND_LOAD, IBS_SRC_DRAM)] & IBS_LAYOUT_WORD);
	slot[IBS_EXPOSED_UNKNOWN] = 3;
	print(METRICS_OPENMETRICS);
	has("ibscope_load_exposed_unknown_samples_total{cgroup=\"/b\"} 3");

	/* a group has nothing of those before it, also where these had no samples */
	put_slot(3, 9, "/c");
	add(3, IBS_OP_KIND_LOAD, IBS_SRC_L3, 60, 2);
	print(METRICS_OPENMETRICS);
	has_not("ibscope_load_exposed_unknown_samples_total{cgroup=\"/c\"}");
	has("ibscope_load_exposed_unknown_samples_total{cgroup=\"/b\"} 3");
}

static void test_governor(void **state)
{
	json_t *j, *g;

	(void)state;
	meta.status = (struct ibs_meta_status){
		.governor_state = GOVERNOR_STATE_STOPPED,
		.governor_reason = GOVERNOR_REASON_BPF_SLOW,
		.period = 3000016,
		.period_asked = 1000016,
		.budget_ppb = 5000000,
		.overhead_ppb = 1250000,
		.overhead_ns = 2500000000,
		.nmi_ns = 1500,
		.nmi_source = IBS_NMI_MEASURED,
		.kernel_rate = 50000,
		.kernel_lowered = 2,
	};
	meta.status.governor_changes[GOVERNOR_REASON_BUDGET] = 3;
	print(METRICS_OPENMETRICS);
	has("ibscope_governor_state{state=\"stopped\"} 1");
	has("ibscope_governor_state{state=\"at_rate\"} 0");
	has("ibscope_governor_changes_total{reason=\"budget\"} 3");
	has("ibscope_governor_changes_total{reason=\"bpf_slow\"} 0");
	has("ibscope_sampling_stopped 1");
	has("ibscope_overhead_budget_ratio 0.005");
	has("ibscope_governor_overhead_ratio 0.00125");
	has("ibscope_overhead_seconds_total 2.5");
	has("ibscope_sample_interrupt_cost_seconds{source=\"measured\"} 1.5e-06");
	has("ibscope_sample_bpf_cost_seconds{source=\"assumed\"} 5e-07");
	has("ibscope_sampling_period_asked 1000016");
	has("ibscope_kernel_max_sample_rate 50000");
	has("ibscope_kernel_rate_lowered_total 2");
	meta.status.bpf_runs = 4;
	meta.status.bpf_ns = 1200;
	print(METRICS_OPENMETRICS);
	has("ibscope_sample_bpf_cost_seconds{source=\"measured\"} 3e-07");
	j = json_loads(print(METRICS_JSON), 0, NULL);
	assert_non_null(j);
	g = json_object_get(j, "governor");
	assert_string_equal(json_string_value(json_object_get(g, "state")), "stopped");
	assert_string_equal(json_string_value(json_object_get(g, "reason")), "bpf_slow");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(g, "changes"), "budget")), 3);
	assert_true(json_real_value(json_object_get(g, "budget")) == 0.005);
	json_decref(j);
	/* what a later collector may say, and no budget */
	meta.status.governor_state = meta.status.governor_reason = meta.status.nmi_source = 99;
	meta.status.budget_ppb = meta.status.period_asked = meta.status.kernel_rate = 0;
	meta.status.overhead_ppb = 0;
	print(METRICS_TEXT);
	has_not("ibscope_governor_overhead_ratio");
	has("ibscope_sampling_stopped 0");
	has_not("state=\"stopped\"} 1");
	has_not("ibscope_overhead_budget_ratio");
	has_not("ibscope_sampling_period_asked");
	has_not("ibscope_kernel_max_sample_rate");
	meta.status.period = 0;
	j = json_loads(print(METRICS_JSON), 0, NULL);
	assert_non_null(j);
	g = json_object_get(j, "governor");
	assert_true(json_is_null(json_object_get(j, "period")));
	assert_true(json_is_null(json_object_get(g, "period_asked")));
	assert_true(json_is_null(json_object_get(g, "kernel_max_sample_rate")));
	json_decref(j);
}

static void test_histogram(void **state)
{
	(void)state;
	put_slot(1, 77, "/a");
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 128, 2); /* an edge belongs to its bucket */
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 129, 3);
	add(1, IBS_OP_KIND_LOCKED, IBS_SRC_DRAM, 60000, 1);
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, -1, 10);
	assert_int_equal(metrics_edges_parse("128,144", &opts, NULL), 0);
	print(METRICS_TEXT);
	has(LAT "_bucket{cgroup=\"/a\",src=\"dram\",le=\"128\"} 2");
	has(LAT "_bucket{cgroup=\"/a\",src=\"dram\",le=\"144\"} 5");
	has(LAT "_bucket{cgroup=\"/a\",src=\"dram\",le=\"+Inf\"} 6");
	has(LAT "_sum{cgroup=\"/a\",src=\"dram\"} 60643");
	has(LAT "_count{cgroup=\"/a\",src=\"dram\"} 6");
	has("ibscope_samples_total{cgroup=\"/a\",op=\"load\",src=\"dram\"} 15");
	has("ibscope_samples_total{cgroup=\"/a\",op=\"locked\",src=\"dram\"} 1");
	has("ibscope_samples_seen_total 16");
	has("# TYPE " LAT " histogram");
	has("# TYPE ibscope_build_info gauge");
	has_not("# EOF");
	has_not("\"other\"");
	print(METRICS_OPENMETRICS);
	has(LAT "_bucket{cgroup=\"/a\",src=\"dram\",le=\"128.0\"} 2");
	has(LAT "_bucket{cgroup=\"/a\",src=\"dram\",le=\"+Inf\"} 6");
	has("# UNIT " LAT " cycles");
	has("# TYPE ibscope_samples counter");
	has("# TYPE ibscope_build info");
	assert_string_equal(text + strlen(text) - 7, "\n# EOF\n");
}

/* A sample of a recording is beside the bucket that has it, if the collector says that there are any. */
static void test_exemplars(void **state)
{
	static const char *const sample =
		" # {recording=\"flight-20251127T031200.123Z.data\",cpu=\"7\"} ";
	char want[256];

	(void)state;
	put_slot(1, 77, "/a");
	put_slot(2, 78, "/b");
	names[2].cgroup_id = 79; /* another group had the slot */
	for (int slot = 1; slot < 3; slot++) {
		add(slot, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 600, 3);
		add(slot, IBS_OP_KIND_LOAD, IBS_SRC_REMOTE_DRAM, 60000, 1);
		for (int i = 0; i < 2; i++)
			names[slot].slowest[i] = (struct ibs_exemplar){
				.time_ns = 1764213119987654321,
				.recording_ns = 1764213120123456789,
				.latency = i ? 600 : 60000,
				.src = i ? IBS_SRC_DRAM : IBS_SRC_REMOTE_DRAM,
				.cpu = 7,
			};
	}
	print(METRICS_OPENMETRICS);
	has_not(" # {");
	meta.status.flight_on = IBS_FLIGHT_ON | IBS_FLIGHT_SLOWEST;
	print(METRICS_TEXT);
	has_not(" # {");
	print(METRICS_OPENMETRICS2);
	has_not(" # {");
	print(METRICS_OPENMETRICS);
	snprintf(want, sizeof(want),
		 LAT "_bucket{cgroup=\"/a\",src=\"dram\",le=\"640.0\"} 3%s600 1764213119.987",
		 sample);
	has(want);
	snprintf(want, sizeof(want),
		 LAT
		 "_bucket{cgroup=\"/a\",src=\"remote-dram\",le=\"+Inf\"} 1%s60000 1764213119.987",
		 sample);
	has(want);
	for (int n = 0; n < 2; n++) {
		char *at = strstr(text, " # {");

		assert_non_null(at);
		memset(at, '.', 3);
	}
	has_not(" # {");
	/* series that have several sources: each sample is in one of them */
	opts.detail = METRICS_LOW;
	print(METRICS_OPENMETRICS);
	assert_non_null(strstr(text, "src=\"dram\",le=\"1024.0\"} 3 # {recording"));
	assert_non_null(strstr(text, "src=\"remote\",le=\"+Inf\"} 1 # {recording"));
	/* what no collector writes */
	names[1].slowest[0] =
		(struct ibs_exemplar){ UINT64_MAX, UINT64_MAX, UINT32_MAX, 7, 255, 0 };
	names[1].slowest[1] =
		(struct ibs_exemplar){ UINT64_MAX, UINT64_MAX, UINT32_MAX, 65535, IBS_SRC_DRAM, 0 };
	print(METRICS_OPENMETRICS);
	assert_non_null(strstr(text, "src=\"dram\",le=\"+Inf\"} 3 # {recording=\"flight-"
				     "25540721T233433.709Z.data\",cpu=\"65535\"} "
				     "4294967295 18446744073.709\n"));
}

/* It is beside one bucket: the one that its latency is counted in. */
static void test_exemplar_edges(void **state)
{
	static const struct {
		__u64 time_ns;
		__u32 latency, src;
		const char *le; /* NULL: what no collector writes is nowhere */
	} rows[] = {
		{ 1, 1, IBS_SRC_L3, "64.0" },	 { 1, 64, IBS_SRC_L3, "64.0" },
		{ 1, 65, IBS_SRC_L3, "128.0" },	 { 1, 2048, IBS_SRC_L3, "2048.0" },
		{ 1, 2049, IBS_SRC_L3, "+Inf" }, { 1, 60, IBS_SRC_N, NULL },
		{ 0, 60, IBS_SRC_L3, NULL },
	};

	(void)state;
	opts.detail = METRICS_LOW;
	meta.status.flight_on = IBS_FLIGHT_ON | IBS_FLIGHT_SLOWEST;
	put_slot(1, 1, "/a");
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_L3, 50, 1);
	/* of another source, so that this one is not the first that has any */
	names[1].slowest[0] = (struct ibs_exemplar){ .time_ns = 1, .src = IBS_SRC_DRAM };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char want[128];
		const char *at;

		names[1].slowest[1] = (struct ibs_exemplar){ .time_ns = rows[i].time_ns,
							     .latency = rows[i].latency,
							     .src = rows[i].src };
		print(METRICS_OPENMETRICS);
		at = strstr(text, " # {");
		assert_int_equal(!at, !rows[i].le);
		if (!at)
			continue;
		snprintf(want, sizeof(want), "src=\"near\",le=\"%s\"} 1 # {", rows[i].le);
		assert_ptr_equal(strstr(text, want), at + strlen(" # {") - strlen(want));
		assert_null(strstr(at + 1, " # {"));
	}
}

/* Nor has a group one without a recording, or whose cgroup nobody asks for. */
static void test_no_exemplars(void **state)
{
	(void)state;
	opts.detail = METRICS_LOW;
	for (int slot = 1; slot < 3; slot++) {
		put_slot(slot, slot, "/a");
		add(slot, IBS_OP_KIND_LOAD, IBS_SRC_L3, 50, 1);
		add(slot, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 600, 1);
		names[slot].slowest[0] = (struct ibs_exemplar){
			.time_ns = 1, .recording_ns = 1, .latency = 600, .src = IBS_SRC_DRAM
		};
	}
	print(METRICS_OPENMETRICS);
	has_not(" # {");
	meta.status.flight_on = IBS_FLIGHT_ON | IBS_FLIGHT_SLOWEST;
	print(METRICS_OPENMETRICS);
	assert_non_null(strstr(text, " # {"));
	meta.layout.by = IBS_BY_PID;
	for (int slot = 1; slot < 3; slot++) {
		owners[slot].key = (struct ibs_group_key){ .tgid = 100 + slot };
		names[slot].cgroup_id = 0;
		strcpy(names[slot].cgroup, "other"); /* a name that means nothing here */
	}
	print(METRICS_OPENMETRICS);
	has_not(" # {");
	has("ibscope_samples_total{pid=\"101\"} 2");
	has("ibscope_samples_total{pid=\"102\"} 2");
}

static void test_machine(void **state)
{
	(void)state;
	meta.status = (struct ibs_meta_status){
		.clock_steps = 2, .suspends = 3, .pmu_shared = 4, .cpus_went = 5, .cpus_came = 6
	};
	print(METRICS_TEXT);
	has("ibscope_clock_steps_total 2");
	has("ibscope_suspends_total 3");
	has("ibscope_pmu_shared_total 4");
	has("ibscope_cpus_went_offline_total 5");
	has("ibscope_cpus_came_online_total 6");
}

static void test_default_edges(void **state)
{
	int lines = 0;

	(void)state;
	put_slot(1, 77, "/a");
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_L3, 1, 1);
	print(METRICS_TEXT);
	for (const char *p = text; (p = strstr(p, LAT "_bucket{")); p++)
		lines++;
	assert_int_equal(lines, 14);
}

static void test_names(void **state)
{
	(void)state;
	put_slot(1, 1, "/q\"b\\n\nx");
	put_slot(2, 2, "/\xff\xc3\xa4\xed\xa0\x80");
	put_slot(3, 3, "/pod");
	strcpy(names[3].name_space, "prod");
	strcpy(names[3].pod, "web-1");
	strcpy(names[3].container, "nginx");
	put_slot(4, 4, "/unnamed");
	names[4].cgroup_id = 5; /* of one that had the slot before */
	for (int slot = 1; slot <= 4; slot++)
		add(slot, IBS_OP_KIND_STORE, IBS_SRC_L1, -1, slot);
	print(METRICS_TEXT);
	has("ibscope_samples_total{cgroup=\"/q\\\"b\\\\n\\\\x0ax\",op=\"store\",src=\"l1\"} "
	    "1");
	has("ibscope_samples_total{cgroup=\"/"
	    "\\\\xff\xc3\xa4\\\\xed\\\\xa0\\\\x80\","
	    "op=\"store\",src=\"l1\"} 2");
	has("ibscope_samples_total{namespace=\"prod\",pod=\"web-1\",container=\"nginx\",op="
	    "\"store\",src=\"l1\"} 3");
	has("ibscope_samples_total{cgroup=\"#4\",op=\"store\",src=\"l1\"} 4");
}

/* Cgroups beyond the limits of the collector's tree share the series of the folded groups. */
static void test_beyond(void **state)
{
	(void)state;
	for (int slot = 1; slot <= 3; slot++) {
		put_slot(slot, slot, slot == 2 ? "/a" : "other");
		add(slot, IBS_OP_KIND_STORE, IBS_SRC_L1, -1, slot);
	}
	print(METRICS_TEXT);
	has("ibscope_samples_total{container=\"other\",op=\"store\",src="
	    "\"l1\"} 4");
	has("ibscope_samples_total{cgroup=\"/a\",op=\"store\",src=\"l1\"} 2");
	assert_null(strstr(text, "samples_total{cgroup=\"other\""));
}

/* Cgroups of equal names are one series; what ended without such a series is only in the sum of ended samples. */
static void test_same_names(void **state)
{
	(void)state;
	put_slot(1, 100, "/service");
	put_slot(2, 200, "/service");
	put_slot(3, 300, "/docker/1234");
	put_slot(4, 400, "/docker/5678");
	strcpy(names[3].container, "web");
	strcpy(names[4].container, "web");
	for (int slot = 1; slot <= 5; slot++)
		add(slot, IBS_OP_KIND_LOAD, IBS_SRC_L3, 50, slot);
	owners[5].used = IBS_SLOT_ENDED;
	add(IBS_SLOT_OTHER, IBS_OP_KIND_LOAD, IBS_SRC_L3, 50, 6);
	print(METRICS_TEXT);
	has("ibscope_samples_total{cgroup=\"/service\",op=\"load\",src=\"l3\"} 3");
	has(LAT "_sum{cgroup=\"/service\",src=\"l3\"} 150");
	has("ibscope_samples_total{container=\"web\",op=\"load\",src=\"l3\"} 7");
	has("ibscope_samples_total{container=\"other\",op=\"load\",src=\"l3\"} 6");
	has("ibscope_samples_ended 5");
	has("ibscope_samples_aggregated_total 21");
	has("ibscope_groups 4");
	has_not("/docker");
	/* on request each path is a series */
	meta.by_path = 1;
	print(METRICS_TEXT);
	has("ibscope_samples_total{container=\"web\",cgroup=\"/docker/"
	    "5678\",op=\"load\",src=\"l3\"} 4");
	meta.by_path = 0;
	/* and runtimes where they differ */
	strcpy(names[3].runtime, "docker");
	strcpy(names[4].runtime, "podman");
	names[3].show_runtime = names[4].show_runtime = 1;
	print(METRICS_TEXT);
	has("ibscope_samples_total{container=\"web\",runtime=\"docker\",op=\"load\",src=\"l3\"} 3");
	has("ibscope_samples_total{container=\"web\",runtime=\"podman\",op=\"load\",src=\"l3\"} 4");
}

/* What a group has of every kind of op and source. */
static void add_all(__u32 slot)
{
	for (int op = 0; op < IBS_LAYOUT_OPS; op++)
		for (int src = 0; src < IBS_SRC_N; src++)
			if (layout_has(&layout, IBS_LAYOUT_IDX(op, src)))
				add(slot, op, src,
				    layout.entry[IBS_LAYOUT_IDX(op, src)] & IBS_LAYOUT_HIST
					    ? 10 + 100 * src
					    : 0,
				    1 + src);
	if (!ibs_metric_of_fetch(meta.layout.metric))
		add_tlb(slot, 4, 2, 3, 90);
}

static unsigned int count_series(void)
{
	unsigned int n = 0;

	for (const char *p = text; (p = strstr(p, "container=\"web\"")); p++)
		n++;
	return n;
}

/* The sum of the samples of a group, whatever labels they have. */
static __u64 sum_samples(void)
{
	__u64 sum = 0;

	const char *name = ibs_metric_of_fetch(meta.layout.metric)
				   ? "\nibscope_fetch_samples_total{"
				   : "\nibscope_samples_total{";

	for (const char *p = text; (p = strstr(p, name)); p++)
		sum += strtoull(strchr(p, '}') + 1, NULL, 10);
	return sum;
}

static void histogram_of(enum ibs_metric metric)
{
	layout_init(&layout, metric, IBS_CAPS_ZEN4);
	meta.layout.metric = metric;
	free(series);
	series = calloc((size_t)SLOTS * layout.words, sizeof(*series));
	counts.series = series;
}

/* Samples of ibs_fetch have metrics of their own, and the collector's say whose they are. */
static void test_fetches(void **state)
{
	(void)state;
	histogram_of(IBS_METRIC_FETCH_LAT);
	put_slot(1, 7, "/a");
	add(1, IBS_FETCH_ITLB_L1, IBS_FETCH_CLASS_L1, 5, 3);
	add(1, IBS_FETCH_ITLB_L2, IBS_FETCH_CLASS_L3_MISS, 700, 2);
	add(1, IBS_FETCH_ITLB_WALK, IBS_FETCH_CLASS_L3, 90, 1);
	add(1, IBS_FETCH_ITLB_WALK_4K, IBS_FETCH_CLASS_ABORTED, -1, 4);
	print(METRICS_TEXT);
	has("ibscope_fetch_samples_total{cgroup=\"/a\",itlb=\"l1\",fetch=\"l1\"} 3");
	has("ibscope_estimated_fetches_total{cgroup=\"/a\",itlb=\"l2\",fetch=\"l3-miss\"} 2000");
	has("ibscope_fetch_latency_cycles_sum{cgroup=\"/a\",fetch=\"l3-miss\"} 1400");
	has("ibscope_itlb_l1_miss_samples_total{cgroup=\"/a\",l2=\"hit\"} 2");
	has("ibscope_itlb_l1_miss_estimated_fetches_total{cgroup=\"/a\",l2=\"miss\"} 5000");
	has("ibscope_samples_seen_total{event=\"ibs_fetch\"} 10");
	has_not("ibscope_samples_total");
	has_not("dtlb");
	json_decref(json_loads(print(METRICS_JSON), JSON_REJECT_DUPLICATES, NULL)
			    ?: (fail(), NULL));
	opts.detail = METRICS_LOW;
	print(METRICS_TEXT);
	has("ibscope_fetch_samples_total{cgroup=\"/a\"} 10");
	has("ibscope_fetch_latency_cycles_sum{cgroup=\"/a\",fetch=\"far\"} 1490");
	has("ibscope_estimated_fetches_total{cgroup=\"/a\",fetch=\"aborted\"} 4000");
}

/* How many series a group has at most, as ibscope-metrics(7) says. */
static void test_series(void **state)
{
	static const struct {
		unsigned int classic, native;
	} most[METRICS_DETAILS] = { { METRICS_LOW_CLASSIC, METRICS_LOW_NATIVE },
				    { 170, 50 },
				    { 400, 200 } };

	(void)state;
	for (int metric = 0; metric < IBS_METRIC_N; metric++) {
		down(NULL);
		up(NULL);
		histogram_of(metric);
		put_slot(1, 1, "/docker/1234");
		strcpy(names[1].container, "web");
		add_all(1);
		for (int d = 0; d < METRICS_DETAILS; d++) {
			opts.detail = d;
			for (int f = 0; f < METRICS_JSON; f++) {
				unsigned int max = f == METRICS_OPENMETRICS2 ? most[d].native
									     : most[d].classic;

				print(f);
				assert_in_range(count_series(), 5, max);
				assert_int_equal(sum_samples(), counted.state.cpu[0].seen);
			}
		}
	}
}

/* Detail low: sources are merged, and kinds of op added up. */
static void test_merged(void **state)
{
	(void)state;
	opts.detail = METRICS_LOW;
	put_slot(1, 7, "/a");
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 300, 3);
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_CXL, 600, 1);
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_REMOTE_DRAM, 700, 2);
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_REMOTE_CACHE, 400, 1);
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_NEAR_CACHE, 200, 1);
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_L3, 50, 1);
	add(1, IBS_OP_KIND_STORE, IBS_SRC_L1, -1, 5);
	add_tlb(1, 4, 2, 3, 90);
	print(METRICS_TEXT);
	has("ibscope_samples_total{cgroup=\"/a\"} 14");
	has("ibscope_estimated_ops_total{cgroup=\"/a\"} 14000");
	has("ibscope_load_miss_cycles_total{cgroup=\"/a\",src=\"dram\"} 1500000");
	has("ibscope_load_miss_cycles_total{cgroup=\"/a\",src=\"remote\"} 1800000");
	has("ibscope_load_miss_cycles_total{cgroup=\"/a\",src=\"cache\"} 200000");
	has("ibscope_load_miss_cycles_total{cgroup=\"/a\",src=\"l3\"} 50000");
	has(LAT "_count{cgroup=\"/a\",src=\"dram\"} 4");
	has(LAT "_bucket{cgroup=\"/a\",src=\"dram\",le=\"384\"} 3");
	has(LAT "_sum{cgroup=\"/a\",src=\"near\"} 250");
	has("ibscope_dtlb_l1_miss_estimated_ops_total{cgroup=\"/a\",l2=\"miss\"} 2000");
	has_not("l2=\"hit\"");
	opts.detail = METRICS_MEDIUM;
	print(METRICS_TEXT);
	has("ibscope_samples_total{cgroup=\"/a\",src=\"l1\"} 5");
	has("ibscope_samples_total{cgroup=\"/a\",src=\"remote\"} 3");
	has(LAT "_bucket{cgroup=\"/a\",src=\"cache\",le=\"192\"} 0");
	/* other words for the same, which the description says */
	has("ibscope_memory_load_miss_cycles_total{cgroup=\"/a\",src=\"remote-dram\"} 1400000");
	for (const char *p = text; (p = strstr(p, "# HELP ibscope_memory_load_")); p++)
		assert_true(strstr(p, "remote-dram here is part of what is remote elsewhere.") <
			    strchr(p, '\n'));
}

static double memory(const char *what, const char *cgroup, const char *src)
{
	char line[128];
	const char *p;

	snprintf(line, sizeof(line), "\nibscope_memory_load_%s_total{cgroup=\"%s\",src=\"%s\"} ",
		 what, cgroup, src);
	p = strstr(text, line);
	return p ? strtod(p + strlen(line), NULL) : 0;
}

/* Of an interval between two looks that know nothing of each other: the remote price of hist. */
static void test_remote_price(void **state)
{
	static const char *const what[] = { "miss_cycles", "estimated_ops" };
	/* of both groups from local, and of the first one from remote memory */
	double local[2][2], remote[2][2];
	struct snapshot seen[2] = {}, interval;
	int found = 0;
	struct err err = {};

	(void)state;
	opts.detail = METRICS_MEDIUM;
	put_slot(1, 7, "/a");
	put_slot(2, 8, "/b");
	for (int look = 0; look < 2; look++) {
		add(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, look ? 900 : 300, 3);
		add(2, IBS_OP_KIND_LOCKED, IBS_SRC_DRAM, 500, 1);
		add(1, IBS_OP_KIND_LOAD, IBS_SRC_REMOTE_DRAM, 700, 2);
		add(1, IBS_OP_KIND_LOAD, IBS_SRC_REMOTE_CACHE, 400, 1);
		add(1, IBS_OP_KIND_PREFETCH, IBS_SRC_REMOTE_DRAM, -1, 9); /* has no latency */
		print(METRICS_TEXT);
		for (int i = 0; i < 2; i++) {
			local[look][i] =
				memory(what[i], "/a", "dram") + memory(what[i], "/b", "dram");
			remote[look][i] = memory(what[i], "/a", "remote-dram");
		}
		has_not("src=\"remote-cache\"");
		assert_int_equal(counts_read(&counts, &seen[look], &err), 0);
	}
	for (int i = 0; i < 2; i++) {
		local[1][i] -= local[0][i];
		remote[1][i] -= remote[0][i];
		assert_true(local[0][i] > 0 && local[1][i] > 0 && remote[1][i] == remote[0][i]);
	}
	snapshot_diff(&seen[1], &seen[0], &interval);
	snapshot_prices(&interval, IBS_METRIC_DC_MISS_LAT);
	for (size_t i = 0; i < interval.groups[0].n_series; i++) {
		const struct series *s = &interval.groups[0].series[i];
		double price = remote[1][0] - remote[1][1] * local[1][0] / local[1][1];

		if (s->src == IBS_SRC_REMOTE_DRAM && s->valid) {
			assert_true(price < 0); /* local memory became slower than remote */
			assert_true(fabs(s->price - price) < 1e-3);
			found++;
		}
	}
	assert_int_equal(found, 1);
	snapshot_free(&interval);
	snapshot_free(&seen[0]);
	snapshot_free(&seen[1]);
}

/* OpenMetrics 2.0: a histogram is one line of exponential buckets, four an octave. */
static void test_native(void **state)
{
	(void)state;
	put_slot(1, 1, "/a");
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 0, 1);
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 1, 2);
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 256, 3);
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 257, 4); /* until 288 */
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 305, 5); /* until 320, above 2^8.25 */
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 65535, 6);
	add_tlb(1, 0, 1, 1, 90);
	print(METRICS_OPENMETRICS2);
	has(LAT "{cgroup=\"/a\",src=\"dram\"} {count:21,sum:396533,schema:2,zero_threshold:0,"
		"zero_count:1,positive_spans:[0:1,31:3,29:1],positive_buckets:[2,3,4,5,6]}");
	has("# TYPE ibscope_samples_total counter");
	has("# TYPE ibscope_build_info info");
	has_once("ibscope_dtlb_refill_latency_cycles{cgroup=\"/a\"} {count:1,sum:90,quantile:[]}");
	assert_string_equal(text + strlen(text) - 6, "# EOF\n");
}

#define KEY(slot_)                                                                  \
	{                                                                           \
		.cgroup_id = (slot_), .tgid = 100 + (slot_), .tid = 200 + (slot_),  \
		.cpu = 10 + (slot_), .node = 20 + (slot_), .complex = 30 + (slot_), \
		.mode = (slot_), .mem_node = 41 + (slot_), .comm = {                \
			'w',                                                        \
			'0' + (slot_)                                               \
		}                                                                   \
	}

/* Two labels that --by can ask for, and what they are for slot 1 and for `other`. */
static const struct {
	__u32 by;
	const char *first, *other;
} by_labels[] = {
	{ IBS_BY_CGROUP, "cgroup=\"/1\",", "container=\"other\"," },
	{ IBS_BY_PID, "pid=\"101\",", "pid=\"other\"," },
	{ IBS_BY_TID, "tid=\"201\",", "tid=\"other\"," },
	{ IBS_BY_COMM, "comm=\"w1\",", "comm=\"other\"," },
	{ IBS_BY_CPU, "cpu=\"11\",", "cpu=\"other\"," },
	{ IBS_BY_COMPLEX, "ccx=\"31\",", "ccx=\"other\"," },
	{ IBS_BY_NODE, "node=\"21\",", "node=\"other\"," },
	{ IBS_BY_MEM_NODE, "mem_node=\"41\",", "mem_node=\"other\"," },
	{ IBS_BY_MODE, "mode=\"user\",", "mode=\"other\"," },
};
#define BY_LABELS (sizeof(by_labels) / sizeof(by_labels[0]))

static void check_by(size_t a, size_t b)
{
	char line[256], members[2][64];
	json_t *j, *list;

	meta.layout.by = by_labels[a].by | by_labels[b].by;
	for (int slot = 1; slot <= 2; slot++) {
		owners[slot].key = (struct ibs_group_key)KEY(slot);
		if (!(meta.layout.by & IBS_BY_CGROUP))
			owners[slot].key.cgroup_id = 0;
	}
	print(METRICS_TEXT);
	snprintf(line, sizeof(line), "ibscope_samples_total{%s%sop=\"load\",src=\"l1\"} 1",
		 by_labels[a].first, a == b ? "" : by_labels[b].first);
	has(line);
	snprintf(line, sizeof(line), "ibscope_samples_total{%s%sop=\"load\",src=\"l1\"} 5",
		 by_labels[a].other, a == b ? "" : by_labels[b].other);
	has(line);
	j = json_loads(print(METRICS_JSON), JSON_REJECT_DUPLICATES, NULL);
	list = json_object_get(j, "containers");
	assert_int_equal(json_array_size(list), 3);
	sscanf(by_labels[a].first, "%[a-z_]", members[0]);
	sscanf(by_labels[b].first, "%[a-z_]", members[1]);
	for (size_t i = 0; i < 3; i++)
		for (int m = 0; m < 2; m++)
			assert_non_null(json_object_get(json_array_get(list, i), members[m]));
	json_decref(j);
}

/* Every label of --by is one of Prometheus, alone and with each other one. */
static void test_by(void **state)
{
	size_t before = 0;

	(void)state;
	put_slot(1, 1, "/1");
	put_slot(2, 2, "/2");
	for (int slot = 1; slot <= 2; slot++)
		add(slot, IBS_OP_KIND_LOAD, IBS_SRC_L1, -1, slot);
	add(IBS_SLOT_OTHER, IBS_OP_KIND_LOAD, IBS_SRC_L1, -1, 5);
	for (size_t a = 0; a < BY_LABELS; a++)
		for (size_t b = a; b < BY_LABELS; b++)
			check_by(a, b);
	for (int i = 0; i < 300; i++) {
		if (i == 10)
			before = memory_in_use();
		print(METRICS_TEXT);
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
}

/* --by src: one group without labels, in all metrics. */
static void test_by_nothing(void **state)
{
	(void)state;
	meta.layout.by = 0;
	counts.by = 0;
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 50, 3);
	add_tlb(1, 1, 0, 2, 90);
	print(METRICS_TEXT);
	has("ibscope_samples_total{op=\"load\",src=\"dram\"} 3");
	has("ibscope_dtlb_refill_latency_cycles_sum 90");
	has("ibscope_dtlb_refill_latency_cycles_count 2");
	json_decref(json_loads(print(METRICS_JSON), 0, NULL) ?: (fail(), NULL));
}

/* Without counters there is what the process says of itself, and no word on the collector. */
static void test_nothing_read(void **state)
{
	const struct metrics_self self = { .failing = true, .read_errors = 7 };
	struct metrics *m;
	size_t n, before = 0;
	FILE *f;

	(void)state;
	for (int s = METRICS_NONE; s <= METRICS_FAILED; s++) {
		json_t *j, *why;

		for (int format = 0; format < METRICS_FORMATS; format++) {
			m = metrics_read_nothing(s, "because\x1b", &self);
			free(text);
			f = open_memstream(&text, &n);
			metrics_print(f, m, format);
			fclose(f);
			metrics_free(m);
			if (format == METRICS_JSON)
				continue;
			has("ibscope_exporter_read_failing 1");
			has("ibscope_exporter_read_errors_total 7");
			assert_non_null(strstr(text, "\nprocess_resident_memory_bytes "));
			has_not("\nprocess_resident_memory_bytes 0\n");
			has_not("ibscope_samples_seen");
			has_not("ibscope_cpus ");
			if (s == METRICS_NONE)
				has("ibscope_collector_up 0");
			else
				has_not("ibscope_collector_up");
		}
		j = json_loads(text, 0, NULL);
		why = json_object_get(j, "why");
		assert_string_equal(json_string_value(why), "because\\x1b");
		assert_int_equal(json_is_null(json_object_get(j, "collector")),
				 s == METRICS_FAILED);
		json_decref(j);
	}
	for (int i = 0; i < 300; i++) {
		if (i == 10)
			before = memory_in_use();
		metrics_free(metrics_read_nothing(METRICS_NONE, "because", &self));
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
}

static void test_work_and_waiting(void **state)
{
	json_t *j;

	(void)state;
	meta.status.work_ns[IBS_WORK_WEB] = 1500000000;
	meta.status.work_delayed_ns[IBS_WORK_CGROUPS] = 250000000;
	meta.status.unresolved = 2;
	strcpy(meta.unresolved, "--container web, --cgroup /x");
	print(METRICS_TEXT);
	has("ibscope_collector_work_seconds_total{work=\"web\"} 1.5");
	has("ibscope_collector_work_delayed_seconds_total{work=\"cgroups\"} 0.25");
	has("ibscope_selection_unresolved 2");
	j = json_loads(print(METRICS_JSON), 0, NULL);
	assert_string_equal(json_string_value(json_object_get(j, "waiting_for")), meta.unresolved);
	json_decref(j);
}

static void test_unknown_is_absent(void **state)
{
	(void)state;
	print(METRICS_TEXT);
	has_not("process_resident_memory_bytes 0");
	has_not("ibscope_samples_unseen");
	has_not("ibscope_sampling_period");
	has_not("ibscope_overhead_ratio");
	has("ibscope_collector_up 0");
	has("ibscope_samples_seen_total 0");
}

static void test_json(void **state)
{
	json_t *o, *source, *tlb;

	(void)state;
	put_slot(1, 1, "/a\x01\"\xff");
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 300, 99);
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_L1, -1, 1);
	put_slot(2, 2, "/b");
	add(2, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 300, 100);
	add_tlb(2, 4, 2, 3, 90);
	o = json_loads(print(METRICS_JSON), JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	assert_int_equal(json_array_size(json_object_get(o, "containers")), 2);
	/* the busiest first, or in their order */
	source = json_object_get(json_array_get(json_object_get(o, "containers"), 0), "sources");
	source = json_object_get(source, "dram");
	assert_non_null(source);
	assert_int_equal(json_integer_value(json_object_get(source, "p90")), 320);
	assert_int_equal(json_integer_value(json_object_get(source, "estimated_ops")), 99 * PERIOD);
	tlb = json_object_get(json_array_get(json_object_get(o, "containers"), 1), "tlb");
	assert_int_equal(json_integer_value(json_object_get(tlb, "l2_hit")), 4);
	assert_int_equal(json_integer_value(json_object_get(tlb, "l2_miss")), 2);
	assert_int_equal(json_integer_value(json_object_get(tlb, "l2_hit_ops")), 4 * PERIOD);
	assert_int_equal(json_integer_value(json_object_get(tlb, "l2_miss_ops")), 2 * PERIOD);
	assert_int_equal(json_integer_value(json_object_get(tlb, "refills")), 3);
	assert_int_equal(json_integer_value(json_object_get(tlb, "refill_cycles")), 90);
	json_decref(o);
}

/* No cycles are a latency, too, and the first source is one. */
static void test_json_zero(void **state)
{
	(void)state;
	put_slot(1, 1, "/a");
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_UNKNOWN, 20, 1);
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_L3, 0, 200);
	print(METRICS_JSON);
	assert_non_null(strstr(text, "\"p50\":0,\"p90\":0,\"p99\":0"));
	assert_non_null(strstr(text, "\n{\"namespace\":")); /* a line per group */
	assert_non_null(strstr(text, "\"sources\":{\"unknown\":{"));
}

static struct metrics *read_one(void)
{
	struct metrics_source src = { .counts = &counts, .meta = &meta, .name = name };
	struct metrics_self self = {};
	struct metrics *m;
	struct err err = {};

	assert_int_equal(metrics_read(&src, &opts, &self, &m, &err), 0);
	return m;
}

static void print_of(const struct metrics *m, enum metrics_format format)
{
	size_t n;
	FILE *f;

	free(text);
	f = open_memstream(&text, &n);
	metrics_print(f, m, format);
	fclose(f);
}

static void member(const json_t *o, const char *key, json_int_t value)
{
	if (json_integer_value(json_object_get(o, key)) != value)
		fail_msg("%s: %lld", key, (long long)json_integer_value(json_object_get(o, key)));
}

/* Readings of ibs_op and ibs_fetch, as from one collector. */
static struct metrics *read_two(void)
{
	struct metrics *m, *second;

	memset(&counted, 0, sizeof(counted));
	memset(owners, 0, sizeof(owners));
	histogram_of(IBS_METRIC_DC_MISS_LAT);
	put_slot(1, 7, "/a");
	put_slot(2, 8, "/b");
	add(1, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 300, 100);
	add(2, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, 300, 1);
	m = read_one();
	memset(&counted, 0, sizeof(counted));
	memset(owners, 0, sizeof(owners));
	histogram_of(IBS_METRIC_FETCH_LAT);
	put_slot(1, 7, "/a");
	add(1, IBS_FETCH_ITLB_L1, IBS_FETCH_CLASS_L3, 90, 5);
	second = read_one();
	m->groups[1] = second->groups[0];
	m->facts.reading[1] = second->facts.reading[0];
	m->facts.n_events = 2;
	second->facts.n_events = 0;
	metrics_free(second);
	assert_int_equal(metrics_bytes(m), sizeof(*m) + m->groups[0].bytes + m->groups[1].bytes);
	return m;
}

/* Each has its own groups, whose words are not mixed up. */
static void test_two_events(void **state)
{
	struct metrics *m = read_two();
	const json_t *group, *source, *fetches;
	json_t *root, *o;
	size_t before = 0;

	(void)state;
	print_of(m, METRICS_JSON);
	o = root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(o);
	assert_true(json_is_true(json_object_get(o, "collector")));
	assert_true(json_is_false(json_object_get(o, "coarse_histograms")));
	assert_null(json_object_get(o, "why"));
	assert_int_equal(json_array_size(json_object_get(o, "containers")), 2);
	group = json_array_get(json_object_get(o, "containers"), 0);
	assert_string_equal(json_string_value(json_object_get(group, "cgroup")), "/a");
	assert_true(json_is_object(json_object_get(group, "exposed")));
	assert_null(json_object_get(group, "fetches"));
	source = json_object_get(json_object_get(group, "sources"), "dram");
	member(json_object_get(source, "ops"), "load", 100);
	member(source, "samples", 100);
	member(source, "estimated_ops", 100 * PERIOD);
	member(source, "valid", 100);
	member(source, "sum", 30000);
	member(source, "miss_cycles", 30000 * PERIOD);
	member(source, "p50", 320);
	member(source, "p90", 320);
	member(source, "p99", 320);

	o = json_object_get(o, "fetch");
	assert_int_equal(json_array_size(json_object_get(o, "containers")), 1);
	group = json_array_get(json_object_get(o, "containers"), 0);
	assert_null(json_object_get(group, "exposed"));
	assert_int_equal(json_object_size(json_object_get(group, "sources")), 0);
	fetches = json_object_get(group, "fetches");
	assert_int_equal(json_object_size(fetches), 1);
	source = json_object_get(fetches, "l3");
	member(json_object_get(source, "itlb"), "l1", 5);
	member(source, "estimated_fetches", 5 * PERIOD);
	member(source, "sum", 450);
	json_decref(root);

	print_of(m, METRICS_TEXT);
	has("ibscope_estimated_ops_total{cgroup=\"/b\",op=\"load\",src=\"dram\"} 1000");
	has("ibscope_fetch_latency_cycles_sum{cgroup=\"/a\",fetch=\"l3\"} 450");
	has("ibscope_samples_seen_total{event=\"ibs_fetch\"} 5");
	has_once("# TYPE ibscope_samples_seen_total counter");
	metrics_free(m);
	for (int i = 0; i < 300; i++) {
		if (i == 10)
			before = memory_in_use();
		metrics_free(read_two());
	}
	assert_in_range(memory_in_use(), 0, before + MEMORY_SLACK);
}

/* The lines before a metric, in each format. */
static void test_heads(void **state)
{
	static const struct metric_head heads[] = {
		{ "a_seconds", METRIC_COUNTER, "seconds", "Help." },
		{ "b", METRIC_INFO, "", "Help." },
		{ "c", METRIC_GAUGE, "", "Help." },
	};
	static const struct {
		enum metrics_format format;
		const char *want[3];
	} rows[] = {
		{ METRICS_TEXT,
		  { "# HELP a_seconds_total Help.\n# TYPE a_seconds_total counter\n",
		    "# HELP b_info Help.\n# TYPE b_info gauge\n",
		    "# HELP c Help.\n# TYPE c gauge\n" } },
		{ METRICS_OPENMETRICS,
		  { "# HELP a_seconds Help.\n# TYPE a_seconds counter\n# UNIT a_seconds seconds\n",
		    "# HELP b Help.\n# TYPE b info\n", "# HELP c Help.\n# TYPE c gauge\n" } },
	};
	char out[256];

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		for (size_t k = 0; k < 3; k++) {
			FILE *f = fmemopen(out, sizeof(out), "w");

			metric_write_head(f, rows[i].format, &heads[k]);
			fclose(f);
			assert_string_equal(out, rows[i].want[k]);
		}
	}
}

/* Written in one buffer or piece by piece, the text is the same. */
static void test_pieces(void **state)
{
	struct metrics_source src = { .counts = &counts, .meta = &meta, .name = name };
	struct metrics_self self = {};
	struct metrics_cursor c = {};
	struct metrics_buf b = {};
	struct metrics *m;
	struct err err;

	(void)state;
	for (int slot = 1; slot < SLOTS; slot++) {
		char path[496];

		memset(path, '\n', sizeof(path));
		path[0] = 'a' + slot;
		path[495] = 0;
		put_slot(slot, slot, path);
		memset(names[slot].pod, '\\', sizeof(names[slot].pod) - 1);
		for (int lat = 0; lat < 65536; lat += 100)
			add(slot, IBS_OP_KIND_LOAD, IBS_SRC_DRAM, lat, ~0ull >> 20);
	}
	assert_int_equal(metrics_read(&src, &opts, &self, &m, &err), 0);
	assert_true(metrics_bytes(m) > 1000);
	for (int f = 0; f < METRICS_FORMATS; f++) {
		char *whole;
		size_t size;
		FILE *file = open_memstream(&whole, &size);

		metrics_print(file, m, f);
		fclose(file);
		c = (struct metrics_cursor){};
		b.n = 0;
		while (metrics_text(m, f, &c, &b))
			;
		assert_false(metrics_text(m, f, &c, &b)); /* nor is there more if asked again */
		assert_int_equal(b.n, size);
		assert_memory_equal(b.s, whole, size);
		free(whole);
	}
	free(b.s);
	metrics_free(m);
}

/* The text up to the metrics of the reading process. */
static char *groups_of(bool coarse, enum metrics_format format)
{
	struct metrics_source src = { .counts = &counts, .meta = &meta, .name = name };
	struct metrics_self self = { .coarse = coarse };
	struct metrics *m;
	struct err err;
	char *whole;
	size_t size;
	FILE *file;

	assert_int_equal(metrics_read(&src, &opts, &self, &m, &err), 0);
	assert_int_equal(self.coarse, coarse);
	file = open_memstream(&whole, &size);
	metrics_print(file, m, format);
	fclose(file);
	metrics_free(m);
	if (format != METRICS_JSON)
		*strstr(whole, "# HELP ibscope_governor_state") = 0;
	return whole;
}

/* The first difference, not both texts. */
static void assert_same(const char *a, const char *b)
{
	size_t n = 0, line = 0;

	for (; a[n] == b[n] && a[n]; n++)
		line = a[n] == '\n' ? n + 1 : line;
	if (a[n] != b[n])
		fail_msg("'%.300s' and '%.300s'", a + line, b + line);
}

static bool hist(int src)
{
	return layout.entry[IBS_LAYOUT_IDX(IBS_OP_KIND_LOAD, src)] & IBS_LAYOUT_HIST;
}

/* Sums and exported edges are exact even where memory has no room for all buckets. */
static void test_coarse(void **state)
{
	const struct metrics_opts before = opts;
	char *fine, *coarse;

	(void)state;
	for (int slot = 1; slot < SLOTS; slot++) {
		put_slot(slot, slot, slot % 2 ? "/odd" : "/even");
		for (int src = 0; src < IBS_SRC_N; src++)
			for (int lat = 0; lat < 65536 && hist(src); lat = lat * 9 / 8 + slot)
				add(slot, IBS_OP_KIND_LOAD, src, lat, ~0ull >> (13 + lat % 40));
	}
	for (int detail = 0; detail < METRICS_DETAILS; detail++) {
		opts = (struct metrics_opts){ .detail = detail };
		if (detail == METRICS_MEDIUM)
			assert_int_equal(metrics_edges_parse("7,8,65535", &opts, &(struct err){}),
					 0);
		for (int f = METRICS_TEXT; f <= METRICS_OPENMETRICS; f++) {
			fine = groups_of(false, f);
			coarse = groups_of(true, f);
			assert_same(fine, coarse);
			free(fine);
			free(coarse);
		}
	}
	opts = (struct metrics_opts){ .detail = METRICS_LOW };
	coarse = groups_of(true, METRICS_JSON);
	assert_non_null(strstr(coarse, "\"p50\":null"));
	assert_non_null(strstr(coarse, "[[64,"));
	assert_null(strstr(coarse, "[72,"));
	free(coarse);
	fine = groups_of(false, METRICS_JSON);
	assert_null(strstr(fine, "\"p50\":null"));
	assert_non_null(strstr(fine, "[72,"));
	free(fine);
	opts = before;
}

static void test_edges(void **state)
{
	static const char *const bad[] = { "",	       ",",	"128,",
					   "128,,256", "-1",	"+1",
					   "1e2",      "128 ",	" 128",
					   "128;256",  "100",	"256,128",
					   "8,8",      "65536", "9999999999999999999999",
					   "0x80" };
	char many[256] = "";
	struct metrics_opts o = {};
	struct err err;

	(void)state;
	assert_int_equal(metrics_edges_parse("0,1,128,65535", &o, &err), 0);
	assert_int_equal(o.n_edges, 4);
	assert_int_equal(o.edges[3], 65535);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err.text[0] = 0;
		if (metrics_edges_parse(bad[i], &o, &err) != -22 || !*err.text)
			fail_msg("'%s' was taken", bad[i]);
	}
	for (int b = 0; b <= METRICS_EDGES_MAX; b++)
		sprintf(many + strlen(many), "%s%u", b ? "," : "", ibs_lat_le(b));
	assert_int_equal(metrics_edges_parse(many, &o, &err), -22);
	assert_non_null(strstr(err.text, "at most 32"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, up, down)

/* What the kernel says of this process, in bytes and seconds. */
static void test_process(void **state)
{
	struct process_stats first, then;
	unsigned long long pages = 0, resident = 0;
	unsigned int open_fds = 0;
	struct timespec now;
	struct rlimit limit;
	FILE *f;
	int fd;

	(void)state;
	process_stats_read(&first);
	f = fopen("/proc/self/statm", "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%llu %llu", &pages, &resident), 2);
	fclose(f);
	/* some memory may have been allocated in between */
	assert_in_range(first.virtual_bytes / getpagesize(), pages / 2, pages * 2);
	assert_in_range(first.rss_bytes / getpagesize(), resident / 2, resident * 2);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(first.max_fds == (double)limit.rlim_cur);
	for (int i = 0; i < 1024; i++)
		open_fds += fcntl(i, F_GETFD) >= 0;
	assert_true(first.open_fds == open_fds);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	process_stats_read(&then);
	close(fd);
	assert_true(then.open_fds == open_fds + 1);
	assert_true(then.cpu_s > 0 && then.cpu_s >= first.cpu_s && then.cpu_s < 3600);
	/* it began before this, and not an hour ago */
	assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
	assert_true(then.start_s == first.start_s);
	assert_true(now.tv_sec + 1 >= first.start_s && now.tv_sec - first.start_s < 3600);
	/* what it does not say is unknown, not as before */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 0, limit.rlim_max }), 0);
	process_stats_read(&then);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(isnan(then.rss_bytes) && isnan(then.virtual_bytes) && isnan(then.open_fds));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_process), /* first, since it looks at files that the first reading opens */
		T(test_heads),
		T(test_histogram),
		T(test_default_edges),
		T(test_names),
		T(test_beyond),
		T(test_same_names),
		T(test_series),
		T(test_fetches),
		T(test_merged),
		T(test_native),
		T(test_unknown_is_absent),
		T(test_json),
		T(test_json_zero),
		T(test_pieces),
		T(test_coarse),
		T(test_edges),
		T(test_ops_and_tlb),
		T(test_exposed),
		T(test_machine),
		T(test_exemplars),
		T(test_exemplar_edges),
		T(test_no_exemplars),
		T(test_folded_meanwhile),
		T(test_up),
		T(test_list),
		T(test_governor),
		T(test_by),
		T(test_by_nothing),
		T(test_remote_price),
		T(test_nothing_read),
		T(test_work_and_waiting),
		/* the slow ones last */
		T(test_order),
		T(test_too_many),
		T(test_two_events),
	};

	mallopt(M_PERTURB, 0x5a); /* so that what is read without being set is not 0 */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
