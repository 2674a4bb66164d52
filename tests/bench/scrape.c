// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * How long a scrape takes and how large it is, for containers that are not here: all have samples from all sources. The
 * counters are read and written as text as the exporter does it; the network is not in it.
 *
 *   bench-scrape [--runs N] [GROUPS]
 */
#include "base/clock.h"
#include "counts/counts.h"
#include "metrics/metrics.h"
#include "perf/sample_cost.h"
#include "tables.h"

#include <ibscope/pin_layout.h>

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MAX_RUNS   99
#define MAX_GROUPS 100000
#define PERIOD	   100000ull
#define GZIP_BITS  (MAX_WBITS + 16)

static unsigned int runs = 5;

static const struct {
	const char *name;
	enum metrics_format format;
	enum metrics_detail detail;
} scrapes[] = {
	{ "native histograms, low", METRICS_OPENMETRICS2, METRICS_LOW },
	{ "native histograms, full", METRICS_OPENMETRICS2, METRICS_FULL },
	{ "classic, low", METRICS_TEXT, METRICS_LOW },
	{ "classic, full", METRICS_TEXT, METRICS_FULL },
	{ "the page", METRICS_JSON, METRICS_LOW },
};

static void name_group(const void *arg, const struct group *g, struct ibs_slot_name *out)
{
	(void)arg;
	memset(out, 0, sizeof(*out));
	if (!g->slot)
		return;
	out->cgroup_id = g->key.cgroup_id;
	snprintf(out->cgroup, sizeof(out->cgroup),
		 "/kubepods.slice/pod%u/cri-containerd-%064u.scope", g->slot, g->slot);
	snprintf(out->name_space, sizeof(out->name_space), "team-%u", g->slot % 50);
	snprintf(out->pod, sizeof(out->pod), "service-%u-6d4cf56db6-%05u", g->slot % 400, g->slot);
	snprintf(out->container, sizeof(out->container), "service-%u", g->slot % 400);
	strcpy(out->runtime, "containerd");
}

/* Bytes of the text after gzip, as the exporter sends it. */
static size_t gzipped(const struct metrics_buf *b)
{
	z_stream z = {};
	unsigned char out[65536];
	size_t n = 0;
	int ret;

	if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP_BITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		die("out of memory");
	z.next_in = (unsigned char *)b->s;
	z.avail_in = b->n;
	do {
		z.next_out = out;
		z.avail_out = sizeof(out);
		ret = deflate(&z, Z_FINISH);
		n += sizeof(out) - z.avail_out;
	} while (ret == Z_OK);
	deflateEnd(&z);
	return n;
}

/* What count_sample() leaves out: estimates, TLB misses, open requests and states. */
static void weigh(const struct layout *layout, __u64 *slot)
{
	for (unsigned int i = 0; i < IBS_LAYOUT_IDX(IBS_OP_KIND_N, 0); i++) {
		__u64 *w = slot + (layout->entry[i] & IBS_LAYOUT_WORD);

		if (!layout_has(layout, i))
			continue;
		w[IBS_PAIR_OPS] = SAMPLES * PERIOD;
		if (!(layout->entry[i] & IBS_LAYOUT_HIST) || !w[IBS_HIST_SUM])
			continue;
		w[IBS_HIST_CYCLES] = w[IBS_HIST_SUM] * PERIOD;
		w[IBS_HIST_MISS + IBS_MISS_OPEN_N] = w[IBS_HIST_MISS + IBS_MISS_STATE_N] = SAMPLES;
		w[IBS_HIST_MISS + IBS_MISS_OPEN] = 5 * SAMPLES;
		w[IBS_HIST_MISS + IBS_MISS_HITM] = w[IBS_HIST_CYCLES] / 4;
	}
	slot[IBS_TLB_L2_HIT] = slot[IBS_TLB_L2_MISS] = slot[IBS_TLB_REFILL_N] = SAMPLES / 10;
	slot[IBS_TLB_L2_HIT_OPS] = slot[IBS_TLB_L2_MISS_OPS] = SAMPLES / 10 * PERIOD;
	slot[IBS_TLB_REFILL_SUM] = 30 * SAMPLES;
}

static double ms_since(__u64 start)
{
	return (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / 1e6;
}

static void bench(const struct metrics_source *src, unsigned int groups)
{
	for (size_t i = 0; i < sizeof(scrapes) / sizeof(scrapes[0]); i++) {
		const struct metrics_opts opts = { .detail = scrapes[i].detail };
		double read_ms[MAX_RUNS] = {}, text_ms[MAX_RUNS] = {};
		struct metrics_self self = {};
		struct metrics_buf text = {};
		size_t bytes = 0;

		for (unsigned int run = 0; run < runs; run++) {
			__u64 start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
			struct metrics_cursor at = {};
			struct metrics *m;
			struct err err = {};

			if (metrics_read(src, &opts, &self, &m, &err))
				die(err.text);
			read_ms[run] = ms_since(start);
			bytes = metrics_bytes(m);
			text.n = 0;
			start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
			while (metrics_text(m, scrapes[i].format, &at, &text))
				;
			text_ms[run] = ms_since(start);
			metrics_free(m);
		}
		printf("%7u  %-24s %9.1f %9.1f %9.2f %9.2f %9.2f\n", groups, scrapes[i].name,
		       loop_median(read_ms, runs, NULL), loop_median(text_ms, runs, NULL),
		       text.n / 1e6, gzipped(&text) / 1e6, bytes / 1048576.0);
		fflush(stdout);
		free(text.s);
	}
}

static void bench_groups(unsigned int groups)
{
	static struct layout layout;
	static const struct ibs_meta meta = { .layout = { .by = IBS_BY_CGROUP }, .version = "1" };
	struct counts c = {
		.n_cpus = 1,
		.outcomes = IBS_OUTCOME_N,
		.shards = 1,
		.max_slots = groups + 1,
		.has_ops = true,
		.tlb = true,
		.layout = &layout,
	};
	struct metrics_source src = { .counts = &c, .meta = &meta, .name = name_group };
	struct ibs_slot_owner *owners = tables_pages((groups + 1) * sizeof(*owners));
	struct ibs_state *state = tables_pages(sizeof(*state) + sizeof(*state->cpu));
	__u64 *series;

	layout_init(&layout, IBS_METRIC_DC_MISS_LAT, CAPS);
	tables_patterns(&layout);
	series = tables_pages((size_t)c.max_slots * layout.words * sizeof(*series));
	c.series = series;
	c.owners = owners;
	c.state = state;
	tables_fill(&c, series, EVERYWHERE, state->cpu, owners);
	for (__u32 slot = 1; slot < c.max_slots; slot++)
		weigh(&layout, series + (size_t)slot * layout.words);
	bench(&src, groups);
	munmap(series, (size_t)c.max_slots * layout.words * sizeof(*series));
	munmap(owners, (groups + 1) * sizeof(*owners));
	munmap(state, sizeof(*state) + sizeof(*state->cpu));
}

int main(int argc, char **argv)
{
	static const struct option opts[] = { { "runs", required_argument, NULL, 'n' }, {} };
	int c;

	while ((c = getopt_long(argc, argv, "", opts, NULL)) != -1) {
		if (c == '?')
			return 2;
		runs = tables_number("--runs", optarg, MAX_RUNS);
	}
	if (argc > optind + 1) {
		fprintf(stderr, "usage: bench-scrape [--runs N] [GROUPS]\n");
		return 2;
	}
	printf("Reading the counters and writing the text, ms of CPU (medians of %u); MB of "
	       "text\n\n"
	       "%7s  %-24s %9s %9s %9s %9s %9s\n",
	       runs, "groups", "scrape", "read ms", "text ms", "MB", "gzip MB", "MiB held");
	if (optind < argc) {
		bench_groups(tables_number("GROUPS", argv[optind], MAX_GROUPS));
		return 0;
	}
	bench_groups(1000);
	bench_groups(10000);
	return 0;
}
