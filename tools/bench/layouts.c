// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * bench-layouts: what a sample costs in map layouts that were candidates, side by side, their memory,
 * and what reading them loses. What it costs in the program is told by `ibscope bench`.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <jansson.h>

#include <ibscope/sim.h>

#include "../../bpf/bench_layout.h"
#include "bench_layout.skel.h"
#include "clock.h"
#include "layout.h"
#include "loop_loss.h"
#include "num.h"
#include "quiet.h"
#include "sampler.h"

#define CAPS	    0x81bffU /* Zen 5 */
#define MAX_THREADS 2
#define MAX_RUNS    101
#define MEM_CPUS    256
#define MEM_CCX	    16 /* CPUs that share an L3, on the machine of the memory table */

static unsigned int runs = 15, repeat = 200000, read_s = 2;
static bool as_json;
static json_t *report;

static void __attribute__((noreturn)) die(const char *text)
{
	log_error("%s", text);
	exit(1);
}

static void add_row(const char *section, json_t *row)
{
	json_t *rows = json_object_get(report, section);

	if (!rows) {
		rows = json_array();
		json_object_set_new(report, section, rows);
	}
	json_array_append_new(rows, row);
}

static void __attribute__((format(printf, 1, 2))) say(const char *fmt, ...)
{
	va_list ap;

	if (as_json)
		return;
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	fflush(stdout);
}

/* --- one timed loop, on each of some CPUs at once --- */

typedef double (*loop_fn)(unsigned int thread, const void *arg); /* ns a sample */

struct worker {
	pthread_t id;
	unsigned int thread;
	pthread_barrier_t *barrier;
	loop_fn fn;
	const void *arg;
	double ns;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	struct err err = {};

	if (quiet_bind(w->thread, &err))
		die(err.text);
	pthread_barrier_wait(w->barrier);
	w->ns = w->fn(w->thread, w->arg);
	return NULL;
}

/* Mean over the threads. */
static double run_threads(unsigned int threads, loop_fn fn, const void *arg)
{
	struct worker w[MAX_THREADS];
	pthread_barrier_t barrier;
	double sum = 0;

	pthread_barrier_init(&barrier, NULL, threads);
	for (unsigned int t = 0; t < threads; t++) {
		w[t] = (struct worker){ .thread = t, .barrier = &barrier, .fn = fn, .arg = arg };
		if (pthread_create(&w[t].id, NULL, work, &w[t]))
			die("cannot create a thread");
	}
	for (unsigned int t = 0; t < threads; t++) {
		pthread_join(w[t].id, NULL);
		sum += w[t].ns;
	}
	pthread_barrier_destroy(&barrier);
	return sum / threads;
}

static unsigned int max_threads(void)
{
	long n = sysconf(_SC_NPROCESSORS_ONLN);

	return n < MAX_THREADS ? 1 : MAX_THREADS;
}

/* --- layouts --- */

static const struct bench_layout {
	const char *name, *what;
	enum bench_kind kind;
	bool shard_per_cpu;
} layouts[] = {
	{ "floor", "loop and sample alone; subtracted from the others", BENCH_FLOOR, false },
	{ "percpu-hash", "PERCPU_HASH {cgroup, src, op}", BENCH_PERCPU_HASH, false },
	{ "hash", "HASH {cgroup, src, op}, atomics", BENCH_SHARED_HASH, false },
	{ "array", "cgroup cache -> slot -> ARRAY, atomics, one shard", BENCH_ARRAY_CACHED, false },
	{ "array-sharded", "the same, no two CPUs in one shard", BENCH_ARRAY_CACHED, true },
	{ "array-nocache", "HASH cgroup -> slot -> ARRAY, one shard", BENCH_ARRAY_HASHED, false },
};
#define N_LAYOUTS (sizeof(layouts) / sizeof(layouts[0]))

static const struct bench_mix {
	const char *name;
	unsigned int cgroups, stay;
} mixes[] = {
	{ "1", 1, 1 },	     { "10", 10, 1 },	    { "100", 100, 1 },
	{ "1000", 1000, 1 }, { "100/16", 100, 16 }, { "1000/16", 1000, 16 },
};
#define N_MIXES (sizeof(mixes) / sizeof(mixes[0]))

static struct bench_layout_bpf *skel;

static void fill_mix(struct bench_sample *mix, unsigned int n_cgroups, unsigned int stay)
{
	for (unsigned int i = 0; i < BENCH_MIX; i++) {
		const struct ibs_cpu cpu = { .caps = CAPS };
		__u64 regs[IBS_OP_REG_FIXED], data3;

		ibs_sim_op(1, 0, i, CAPS, regs);
		data3 = regs[IBS_OP_DATA3];
		mix[i] = (struct bench_sample){
			.cgroup_id = 1000 + ibs_sim_mix(i / stay) % n_cgroups,
			.pair = IBS_LAYOUT_IDX(ibs_op_kind(regs[IBS_OP_DATA], data3),
					       ibs_op_src(cpu, regs)),
			.has_lat = ibs_op_dc_miss_lat_valid(data3),
			.lat = data3 >> 32 & 0xffff,
		};
	}
}

static void open_layouts(void)
{
	struct layout l;
	int fd;

	layout_init(&l, IBS_METRIC_DC_MISS_LAT, CAPS);
	skel = bench_layout_bpf__open();
	if (!skel)
		die("cannot open the BPF object of the layouts");
	skel->rodata->cfg_slot_words = l.words;
	skel->rodata->cfg_max_slots = BENCH_CGROUPS + 1;
	for (int i = 0; i < IBS_LAYOUT_ENTRIES; i++)
		skel->rodata->cfg_layout[i] = l.entry[i];
	if (bpf_map__set_value_size(skel->maps.series, l.words * sizeof(__u64)) ||
	    bpf_map__set_max_entries(skel->maps.series, MAX_THREADS * (BENCH_CGROUPS + 1)) ||
	    bench_layout_bpf__load(skel))
		die("cannot load the BPF programs of the layouts; root and Linux 5.17 are needed");
	fd = bpf_map__fd(skel->maps.cgroups);
	for (__u32 i = 0; i < BENCH_CGROUPS; i++) {
		struct ibs_cgroup cg = { .slot = 1 + i };
		__u64 id = 1000 + i;

		if (bpf_map_update_elem(fd, &id, &cg, BPF_ANY))
			die("cannot fill a BPF map");
	}
}

static double layout_loop(unsigned int thread, const void *arg)
{
	const struct bench_layout *l = arg;
	struct bench_ctx ctx = {
		.kind = l->kind,
		.repeat = repeat,
		.start = thread * BENCH_MIX / MAX_THREADS,
		.shard = l->shard_per_cpu ? thread : 0,
	};
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &ctx, .ctx_size_in = sizeof(ctx));

	if (bpf_prog_test_run_opts(bpf_program__fd(skel->progs.bench), &opts))
		die("cannot run the BPF program of the layouts");
	if (ctx.lost)
		die("a layout lost samples");
	return (double)ctx.ns / repeat;
}

/* The layouts in turn, so that what else the machine does hits all alike. */
static void bench_mix(const struct bench_mix *m, unsigned int threads, double result[N_LAYOUTS])
{
	double ns[N_LAYOUTS][MAX_RUNS];

	fill_mix(skel->bss->mix, m->cgroups, m->stay);
	for (unsigned int r = 0; r <= runs; r++) {
		for (size_t l = 0; l < N_LAYOUTS; l++) {
			double one;

			/* in them is the shard too, which is another for another layout */
			memset(skel->bss->caches, 0, sizeof(skel->bss->caches));
			one = run_threads(threads, layout_loop, &layouts[l]);
			if (r) /* the first warms up */
				ns[l][r - 1] = l ? one - ns[0][r - 1] : one;
		}
	}
	for (size_t l = 0; l < N_LAYOUTS; l++)
		result[l] = loop_median(ns[l], runs, NULL);
}

static void bench_layouts(void)
{
	double ns[N_MIXES][N_LAYOUTS];

	say("Layouts: ns a sample above the loop, median of %u runs; a cgroup drawn for each "
	    "sample,\n"
	    "\"/16\": for 16 samples in a row, as between task switches\n\n",
	    runs);
	for (unsigned int threads = 1; threads <= max_threads(); threads++) {
		for (size_t m = 0; m < N_MIXES; m++)
			bench_mix(&mixes[m], threads, ns[m]);
		say("  %u CPU%-11s", threads, threads > 1 ? "s at once" : "");
		for (size_t m = 0; m < N_MIXES; m++)
			say("%8s", mixes[m].name);
		say("  cgroups\n");
		for (size_t l = 0; l < N_LAYOUTS; l++) {
			say("  %-15s", layouts[l].name);
			for (size_t m = 0; m < N_MIXES; m++) {
				say("%8.1f", ns[m][l]);
				add_row("layouts",
					json_pack("{s:s,s:i,s:i,s:i,s:f}", "layout",
						  layouts[l].name, "threads", threads, "cgroups",
						  mixes[m].cgroups, "in_a_row", mixes[m].stay, "ns",
						  ns[m][l]));
			}
			say("  %s\n", layouts[l].what);
		}
		say("\n");
	}
}

/* --- memory --- */

/* As the kernel preallocates them (kernel/bpf/hashtab.c): element, bucket, per-CPU values. */
static double hash_mib(double entries, size_t key, size_t value, unsigned int percpu)
{
	double buckets = 1, bytes;

	while (buckets < entries)
		buckets *= 2;
	bytes = entries * (48 + key + (percpu ? sizeof(void *) + (double)value * percpu : value));
	return (bytes + buckets * 16) / 1048576;
}

static void memory_row(const char *layout, double mib, const char *how)
{
	say("  %-15s%10.1f MiB  %s\n", layout, mib, how);
	add_row("memory", json_pack("{s:s,s:i,s:i,s:f,s:s}", "layout", layout, "cpus", MEM_CPUS,
				    "cgroups", BENCH_CGROUPS, "mib", mib, "how", how));
}

static void bench_memory(void)
{
	const size_t hist = IBS_HIST_WORDS * sizeof(__u64), key = sizeof(struct bench_key);
	struct sampler_opts opts = { .ibs.caps = CAPS, .by = IBS_BY_CGROUP };
	unsigned int pairs = 0;
	struct sampler_memory m;
	struct layout l;
	double entries;
	char how[160];

	layout_init(&l, IBS_METRIC_DC_MISS_LAT, CAPS);
	for (int i = 0; i < IBS_LAYOUT_ENTRIES; i++)
		pairs += layout_has(&l, i);
	entries = (double)pairs * BENCH_CGROUPS;
	say("Memory: %u CPUs, %u cgroups, all %u pairs of source and op that can occur\n\n",
	    MEM_CPUS, BENCH_CGROUPS, pairs);
	snprintf(how, sizeof(how), "%.0f elements of %zu + %zu x %u CPUs + 56 bytes", entries, key,
		 hist, MEM_CPUS);
	memory_row("percpu-hash", hash_mib(entries, key, hist, MEM_CPUS), how);
	snprintf(how, sizeof(how), "%.0f elements of %zu + %zu + 48 bytes", entries, key, hist);
	memory_row("hash", hash_mib(entries, key, hist, 0), how);
	for (int limit = 0; limit < 2; limit++) {
		opts.max_groups = BENCH_CGROUPS;
		opts.max_memory_bytes = limit ? 0 : ~0ULL;
		if (sampler_memory(&opts, MEM_CPUS / MEM_CCX, &m, NULL))
			die("the default limit of memory is too low");
		snprintf(how, sizeof(how),
			 "%u slots of %u bytes (%u histograms) x %u shards + %.1f MiB; "
			 "%s",
			 BENCH_CGROUPS + 1, l.words * 8, l.hists, m.shards,
			 (m.total - m.series) / 1048576.0,
			 limit ? "within the default limit" : "a shard each L3 of 16 CPUs");
		memory_row(limit ? "array" : "array-sharded", m.total / 1048576.0, how);
	}
	say("\n");
}

/* --- reading: what it takes from the samples of the CPU that reads --- */

static struct sampler *sim;

static void read_nothing(void)
{
	for (volatile int i = 0; i < 1000; i++)
		;
}

static void read_keys(int fd)
{
	static __u64 value[IBS_HIST_REACH * 64];
	struct bench_key key, *prev = NULL;

	while (!bpf_map_get_next_key(fd, prev, &key)) {
		bpf_map_lookup_elem(fd, &key, value);
		prev = &key;
	}
}

static void read_batches(int fd, size_t value_size)
{
	enum { BATCH = 1024 };
	static struct bench_key keys[BATCH];
	static void *values;
	__u64 token;
	void *in = NULL;
	int ret;

	values = values ?: malloc(BATCH * IBS_HIST_REACH * 8 * 64);
	if (!values || value_size > IBS_HIST_REACH * 8 * 64)
		die("out of memory for a batch");
	do {
		__u32 n = BATCH;

		ret = bpf_map_lookup_batch(fd, in, &token, keys, values, &n, NULL);
		in = &token;
	} while (!ret);
}

static size_t percpu_value_size(void)
{
	return sizeof(struct bench_hist) * libbpf_num_possible_cpus();
}

static void read_percpu_keys(void)
{
	read_keys(bpf_map__fd(skel->maps.percpu_hists));
}

static void read_percpu_batches(void)
{
	read_batches(bpf_map__fd(skel->maps.percpu_hists), percpu_value_size());
}

static void read_hash_keys(void)
{
	read_keys(bpf_map__fd(skel->maps.shared_hists));
}

static void read_hash_batches(void)
{
	read_batches(bpf_map__fd(skel->maps.shared_hists), sizeof(struct bench_hist));
}

static const __u64 *mapped;
static size_t mapped_words;

/* As sampler_snapshot() does, of all slots of a shard; its few samples would fill one. */
static void read_mapped(void)
{
	__u64 sum = 0;

	for (size_t i = 0; i < mapped_words; i++)
		sum += ((const volatile __u64 *)mapped)[i];
	(void)sum;
}

static const struct reader {
	const char *name, *what;
	void (*pass)(void);
} readers[] = {
	{ "none", "a loop that reads nothing", read_nothing },
	{ "percpu-hash", "a look-up a key", read_percpu_keys },
	{ "percpu-hash", "batches of 1024", read_percpu_batches },
	{ "hash", "a look-up a key", read_hash_keys },
	{ "hash", "batches of 1024", read_hash_batches },
	{ "array", "mmap", read_mapped },
};

#define SIM_HZ 10000

static __u64 seen(void)
{
	struct snapshot snap;
	struct err err;
	__u64 n;

	if (sampler_snapshot(sim, &snap, &err))
		die(err.text);
	n = snap.ledger.seen;
	snapshot_free(&snap);
	return n;
}

static void bench_reader(const struct reader *r)
{
	double start, took, lost, expected;
	unsigned long passes = 0;
	__u64 before;

	r->pass();
	start = now_s();
	before = seen();
	do {
		r->pass();
		passes++;
		took = now_s() - start;
	} while (took < read_s);
	before = seen() - before;
	took = now_s() - start;
	expected = took * SIM_HZ;
	lost = 100 * (1 - before / expected);
	say("  %-13s%-27s%9.0f%9llu%8.2f %%%11.3f ms\n", r->name, r->what, expected, before, lost,
	    1000 * took / passes);
	add_row("reading", json_pack("{s:s,s:s,s:f,s:I,s:f,s:f}", "layout", r->name, "how", r->what,
				     "expected", expected, "seen", (json_int_t)before,
				     "lost_percent", lost, "pass_ms", 1000 * took / passes));
}

static unsigned int count_series(int fd)
{
	struct bench_key key, *prev = NULL;
	unsigned int n = 0;

	for (; !bpf_map_get_next_key(fd, prev, &key); prev = &key)
		n++;
	return n;
}

static void bench_reading(void)
{
	const unsigned int cpu = 0;
	struct sampler_opts opts = {
		.source = SAMPLER_SIM,
		.attr = { .type = PERF_TYPE_SOFTWARE,
			  .size = sizeof(struct perf_event_attr),
			  .config = PERF_COUNT_SW_CPU_CLOCK,
			  .sample_period = 1000000000 / SIM_HZ },
		.event = "cpu-clock",
		.cpus = &cpu,
		.n_cpus = 1,
		.ibs.caps = CAPS,
		.by = IBS_BY_CGROUP,
	};
	struct err err = {};

	mapped_words = (size_t)(BENCH_CGROUPS + 1) * skel->rodata->cfg_slot_words;
	mapped = mmap(NULL, mapped_words * sizeof(*mapped), PROT_READ, MAP_SHARED,
		      bpf_map__fd(skel->maps.series), 0);
	if (mapped == MAP_FAILED)
		die("cannot map the series");
	if (quiet_bind(cpu, &err) || sampler_open(&opts, &sim, &err) || sampler_start(sim, &err))
		die(err.text);
	say("Reading: %d samples a second on the CPU that reads %u series, over and over\n\n",
	    SIM_HZ, count_series(bpf_map__fd(skel->maps.shared_hists)));
	say("  %-13s%-27s%9s%9s%10s%14s\n", "layout", "how", "expected", "seen", "lost", "a pass");
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++)
		bench_reader(&readers[i]);
	sampler_close(sim);
	munmap((void *)mapped, mapped_words * sizeof(*mapped));
	say("\n");
}

static const char usage[] =
	"usage: bench-layouts [--json] [--runs N] [--repeat N] [--read-seconds N]\n"
	"Needs root and Linux 5.17.\n";

static unsigned int number(const char *name, const char *text, unsigned int min, unsigned int max)
{
	const struct num_arg arg = { .name = name, .min = min, .max = max };
	struct err err = {};
	uint64_t v;

	if (num_parse(&arg, text, &v, &err)) {
		log_error("%s", err.text);
		exit(2);
	}
	return v;
}

static void parse(int argc, char **argv)
{
	static const struct option opts[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "runs", required_argument, NULL, 'n' },
		{ "repeat", required_argument, NULL, 'r' },
		{ "read-seconds", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{},
	};
	int c;

	while ((c = getopt_long(argc, argv, "h", opts, NULL)) != -1) {
		if (c == 'j') {
			as_json = true;
		} else if (c == 'n') {
			runs = number("--runs", optarg, 9, MAX_RUNS);
		} else if (c == 'r') {
			repeat = number("--repeat", optarg, 1000, 1 << 23);
		} else if (c == 's') {
			read_s = number("--read-seconds", optarg, 1, 60);
		} else {
			fputs(usage, c == 'h' ? stdout : stderr);
			exit(c == 'h' ? 0 : 2);
		}
	}
	if (optind < argc) {
		fputs(usage, stderr);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct utsname un;

	parse(argc, argv);
	uname(&un);
	report = json_pack("{s:s,s:i,s:i}", "kernel", un.release, "runs", runs, "repeat", repeat);
	if (!report)
		die("out of memory");
	open_layouts();
	bench_layouts();
	bench_memory();
	bench_reading();
	bench_layout_bpf__destroy(skel);
	if (as_json) {
		json_dumpf(report, stdout, JSON_INDENT(1) | JSON_REAL_PRECISION(6));
		putchar('\n');
	}
	json_decref(report);
	return 0;
}
