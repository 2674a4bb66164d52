// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics.h"

#include "container.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * X(NAME, "name without suffix", type, "unit", "help"). OpenMetrics wants units as last word of the
 * name, and adds _total to counters; so does the text format here.
 */
#define METRIC_TABLE(X)                                                                            \
	X(LATENCY, "", HISTOGRAM, "cycles", "")                                                    \
	X(SAMPLES, "ibscope_samples", COUNTER, "",                                                 \
	  "Samples added to histograms, by kind of op and data source.")                           \
	X(SEEN, "ibscope_samples_seen", COUNTER, "",                                               \
	  "Samples that the program was run for: aggregated + forwarded + filtered + lost.")       \
	X(AGGREGATED, "ibscope_samples_aggregated", COUNTER, "", "Samples added to histograms.")   \
	X(FORWARDED, "ibscope_samples_forwarded", COUNTER, "", "Samples sent as records.")         \
	X(FILTERED, "ibscope_samples_filtered", COUNTER, "",                                       \
	  "Samples that the selection leaves out, by reason.")                                     \
	X(LOST, "ibscope_samples_lost", COUNTER, "", "Samples lost, by reason.")                   \
	X(UNSEEN, "ibscope_samples_unseen", COUNTER, "",                                           \
	  "Samples that the PMU counted and the kernel never handed to the program.")              \
	X(PMU_ENABLED, "ibscope_pmu_enabled_seconds", COUNTER, "seconds",                          \
	  "Time that the event was to be on the PMU, over all CPUs.")                              \
	X(PMU_RUNNING, "ibscope_pmu_running_seconds", COUNTER, "seconds",                          \
	  "Of that, time that it was: less means that another profiler shares the PMU.")           \
	X(THROTTLED, "ibscope_throttled", COUNTER, "",                                             \
	  "Times that the kernel stopped sampling of a CPU until its next tick.")                  \
	X(CPUS, "ibscope_cpus", GAUGE, "", "CPUs that are sampled now.")                           \
	X(WENT, "ibscope_cpus_went_offline", COUNTER, "", "CPUs that went offline.")               \
	X(CAME, "ibscope_cpus_came_online", COUNTER, "", "CPUs that came online and are sampled.") \
	X(PERIOD, "ibscope_sampling_period", GAUGE, "",                                            \
	  "Ops or cycles between two samples of a CPU; absent if it varies.")                      \
	X(BPF_SECONDS, "ibscope_bpf_seconds", COUNTER, "seconds",                                  \
	  "Time in the BPF program, by the mean of the runs that were timed.")                     \
	X(COLLECTOR_SECONDS, "ibscope_collector_cpu_seconds", COUNTER, "seconds",                  \
	  "CPU time of the collector's process.")                                                  \
	X(OVERHEAD, "ibscope_overhead_ratio", GAUGE, "ratio",                                      \
	  "Time in BPF and collector as a share of the CPUs' time since the collector began.")     \
	X(MAP_BYTES, "ibscope_map_memory_bytes", GAUGE, "bytes", "Memory of the maps.")            \
	X(RSS_BYTES, "ibscope_collector_resident_memory_bytes", GAUGE, "bytes",                    \
	  "Resident memory of the collector.")                                                     \
	X(GROUPS, "ibscope_groups", GAUGE, "", "Groups that have counters of their own.")          \
	X(GROUPS_MAX, "ibscope_groups_limit", GAUGE, "", "Groups that can have.")                  \
	X(FOLDED, "ibscope_groups_folded", COUNTER, "",                                            \
	  "Groups that ended and were added to 'other'.")                                          \
	X(STARTS, "ibscope_collector_starts", COUNTER, "",                                         \
	  "Collectors since the counters began, this one included.")                               \
	X(RELOADS, "ibscope_config_reloads", COUNTER, "", "Times that options were read again.")   \
	X(CONFIG_ERRORS, "ibscope_config_reload_errors", COUNTER, "",                              \
	  "Times that they could not be used, and the old ones stayed.")                           \
	X(UP, "ibscope_collector_up", GAUGE, "", "Does a collector run?")                          \
	X(AGE, "ibscope_collector_age_seconds", GAUGE, "seconds",                                  \
	  "Time since the collector's last tick; it ticks once a second.")                         \
	X(START_TIME, "ibscope_counters_start_time_seconds", GAUGE, "seconds",                     \
	  "When the counters began, as Unix time.")                                                \
	X(SIMULATED, "ibscope_simulated", GAUGE, "",                                               \
	  "1 if samples are SIMULATED, for tests, and are no measurements.")                       \
	X(BUILD_INFO, "ibscope_build", INFO, "", "Versions of collector and exporter.")            \
	X(COLLECTOR_INFO, "ibscope_collector", INFO, "", "What is sampled.")

enum metric_type { COUNTER, GAUGE, HISTOGRAM, INFO };

static const struct metric {
	const char *name;
	enum metric_type type;
	const char *unit, *help;
} metrics[] = {
#define METRIC_ROW(NAME, name, type, unit, help) { name, type, unit, help },
	METRIC_TABLE(METRIC_ROW)
#undef METRIC_ROW
};

enum metric_id {
#define METRIC_ENUM(NAME, ...) M_##NAME,
	METRIC_TABLE(METRIC_ENUM)
#undef METRIC_ENUM
		METRICS
};

/* The histogram's name and help, by what is histogrammed. */
static const struct metric latency_of[IBS_METRIC_N] = {
	[IBS_METRIC_DC_MISS_LAT] = { "ibscope_load_miss_latency_cycles", HISTOGRAM, "cycles",
				     "Core cycles from an L1 data cache miss of a load to its data "
				     "(DcMissLat), by data source." },
	[IBS_METRIC_TLB_REFILL_LAT] = { "ibscope_tlb_refill_latency_cycles", HISTOGRAM, "cycles",
					"Core cycles that the refill of the L1 data TLB took "
					"(TlbRefillLat), by data source." },
	[IBS_METRIC_TAG_TO_RET] = { "ibscope_tag_to_retire_cycles", HISTOGRAM, "cycles",
				    "Core cycles from the tagging of an op to its retirement." },
	[IBS_METRIC_COMP_TO_RET] = { "ibscope_completion_to_retire_cycles", HISTOGRAM, "cycles",
				     "Core cycles from an op's completion to its retirement." },
};

static const unsigned int default_edges[] = { 32,  64,	128,  192,  256,  384, 512,
					      640, 768, 1024, 1536, 2048, 4096 };

/* --- one line after the other --- */

struct out {
	FILE *f;
	const struct metrics_opts *opts;
	const unsigned int *edges;
	size_t n_edges;
};

static void head(const struct out *o, const struct metric *m)
{
	static const char *const types[] = { "counter", "gauge", "histogram", "info" };
	bool om = o->opts->format == METRICS_OPENMETRICS;
	/* the text format names a counter as its samples are named, and has no info */
	const char *suffix = om			  ? ""
			     : m->type == COUNTER ? "_total"
			     : m->type == INFO	  ? "_info"
						  : "";
	const char *type = !om && m->type == INFO ? "gauge" : types[m->type];

	fprintf(o->f, "# HELP %s%s %s\n# TYPE %s%s %s\n", m->name, suffix, m->help, m->name, suffix,
		type);
	if (om && *m->unit)
		fprintf(o->f, "# UNIT %s %s\n", m->name, m->unit);
}

/* A label's value: any bytes may be in a cgroup's name, and Prometheus takes only UTF-8. */
static void label_value(FILE *f, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	while (*p) {
		size_t n = *p < 0x80		     ? 1
			   : *p >= 0xc2 && *p < 0xe0 ? 2
			   : *p >= 0xe0 && *p < 0xf0 ? 3
			   : *p >= 0xf0 && *p < 0xf5 ? 4
						     : 0;
		bool good = n > 0;

		for (size_t i = 1; i < n && good; i++)
			good = (p[i] & 0xc0) == 0x80;
		/* overlong forms, surrogates and what is above U+10FFFF */
		if (good && ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
			     (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f)))
			good = false;
		if (!good) {
			fputs("\xef\xbf\xbd", f);
			p++;
			continue;
		}
		if (*p == '\\' || *p == '"')
			fputc('\\', f);
		if (*p == '\n')
			fputs("\\n", f);
		else
			fwrite(p, 1, n, f);
		p += n;
	}
}

static void label(const struct out *o, const char *sep, const char *name, const char *value)
{
	fprintf(o->f, "%s%s=\"", sep, name);
	label_value(o->f, value);
	fputc('"', o->f);
}

static const char *total(const struct metric *m)
{
	return m->type == COUNTER ? "_total" : m->type == INFO ? "_info" : "";
}

static void one(const struct out *o, enum metric_id id, double value)
{
	const struct metric *m = &metrics[id];

	head(o, m);
	fprintf(o->f, "%s%s %.15g\n", m->name, total(m), value);
}

static void by_reason(const struct out *o, enum metric_id id, const struct ledger *l,
		      enum ibs_outcome_kind kind)
{
	const struct metric *m = &metrics[id];

	head(o, m);
	for (int i = 0; i < IBS_OUTCOME_N; i++)
		if (outcome_kind(i) == kind)
			fprintf(o->f, "%s_total{reason=\"%s\"} %llu\n", m->name, outcome_name(i),
				(unsigned long long)l->outcome[i]);
}

/* --- groups, small enough to keep them all --- */

struct source {
	__u64 samples, sum; /* of those with a latency */
	__u64 below[METRICS_EDGES_MAX];
};

struct item {
	struct ibs_slot_name name; /* cut to the container */
	bool other;
	__u64 count[IBS_OP_KIND_N][IBS_SRC_N];
	struct source *source[IBS_SRC_N]; /* NULL: none */
};

struct items {
	const struct out *out;
	const struct pinned *p;
	struct item **item;
	size_t n, room, groups;
};

/* A container's child cgroups belong to it. */
static void cut_to_container(struct ibs_slot_name *n)
{
	struct container c;

	if (container_of_path(n->cgroup, &c) && *c.id)
		n->cgroup[c.path_len] = 0;
}

static bool same_item(const struct item *i, const struct ibs_slot_name *name, bool other)
{
	return i->other == other && !strcmp(i->name.cgroup, name->cgroup);
}

static struct item *find_item(struct items *all, const struct ibs_slot_name *name, bool other)
{
	struct item *item;

	for (size_t i = 0; i < all->n; i++)
		if (same_item(all->item[i], name, other))
			return all->item[i];
	if (all->n == all->room) {
		size_t room = all->room ? 2 * all->room : 64;
		struct item **more = realloc(all->item, room * sizeof(*more));

		if (!more)
			return NULL;
		all->item = more;
		all->room = room;
	}
	item = calloc(1, sizeof(*item));
	if (!item)
		return NULL;
	item->name = *name;
	item->other = other;
	return all->item[all->n++] = item;
}

static void add_buckets(const struct out *o, struct source *to, const struct series *s)
{
	size_t edge = 0;

	to->samples += s->valid;
	to->sum += s->sum;
	for (int b = 0; b < IBS_LAT_BUCKETS; b++) {
		while (edge < o->n_edges && ibs_lat_le(b) > o->edges[edge])
			edge++;
		if (edge < o->n_edges)
			to->below[edge] += s->buckets[b];
	}
}

static int take_group(void *arg, struct group *g)
{
	struct items *all = arg;
	struct ibs_slot_name name;
	struct item *item;

	if (g->other)
		memset(&name, 0, sizeof(name));
	else
		pinned_name(all->p, g, &name);
	if (!g->other && !*name.cgroup && g->key.cgroup_id)
		snprintf(name.cgroup, sizeof(name.cgroup), "#%llu",
			 (unsigned long long)g->key.cgroup_id);
	cut_to_container(&name);
	item = find_item(all, &name, g->other);
	if (!item)
		return -ENOMEM;
	all->groups += !g->other;
	for (size_t i = 0; i < g->n_series; i++) {
		const struct series *s = &g->series[i];
		struct source **to = &item->source[s->src];

		item->count[s->op][s->src] += s->samples;
		if (!s->valid)
			continue;
		if (!*to)
			*to = calloc(1, sizeof(**to));
		if (!*to)
			return -ENOMEM;
		add_buckets(all->out, *to, s);
	}
	return 0;
}

static void free_items(struct items *all)
{
	for (size_t i = 0; i < all->n; i++) {
		for (int s = 0; s < IBS_SRC_N; s++)
			free(all->item[i]->source[s]);
		free(all->item[i]);
	}
	free(all->item);
	memset(all, 0, sizeof(*all));
}

static void group_labels(const struct out *o, const struct item *i)
{
	label(o, "{", "namespace", i->other ? "" : i->name.name_space);
	label(o, ",", "pod", i->other ? "" : i->name.pod);
	label(o, ",", "container", i->other ? "other" : i->name.container);
	label(o, ",", "cgroup", i->other ? "other" : i->name.cgroup);
}

static void print_latency(const struct out *o, const struct items *all, enum ibs_metric metric)
{
	const struct metric *m = &latency_of[metric];

	head(o, m);
	for (size_t i = 0; i < all->n; i++) {
		const struct item *item = all->item[i];

		for (int s = 0; s < IBS_SRC_N; s++) {
			const struct source *src = item->source[s];
			__u64 sum = 0;

			if (!src)
				continue;
			for (size_t e = 0; e <= o->n_edges; e++) {
				fprintf(o->f, "%s_bucket", m->name);
				group_labels(o, item);
				if (e == o->n_edges) {
					fprintf(o->f, ",data_src=\"%s\",le=\"+Inf\"} %llu\n",
						src_name(s), (unsigned long long)src->samples);
					break;
				}
				sum += src->below[e];
				/* OpenMetrics wants a float's spelling */
				fprintf(o->f, ",data_src=\"%s\",le=\"%u%s\"} %llu\n", src_name(s),
					o->edges[e],
					o->opts->format == METRICS_OPENMETRICS ? ".0" : "",
					(unsigned long long)sum);
			}
			fprintf(o->f, "%s_sum", m->name);
			group_labels(o, item);
			fprintf(o->f, ",data_src=\"%s\"} %llu\n", src_name(s),
				(unsigned long long)src->sum);
			fprintf(o->f, "%s_count", m->name);
			group_labels(o, item);
			fprintf(o->f, ",data_src=\"%s\"} %llu\n", src_name(s),
				(unsigned long long)src->samples);
		}
	}
}

static void print_samples(const struct out *o, const struct items *all)
{
	const struct metric *m = &metrics[M_SAMPLES];

	head(o, m);
	for (size_t i = 0; i < all->n; i++) {
		const struct item *item = all->item[i];

		for (int op = 0; op < IBS_OP_KIND_N; op++) {
			for (int s = 0; s < IBS_SRC_N; s++) {
				if (!item->count[op][s])
					continue;
				fprintf(o->f, "%s_total", m->name);
				group_labels(o, item);
				fprintf(o->f, ",op=\"%s\",data_src=\"%s\"} %llu\n",
					op_kind_name(op), src_name(s),
					(unsigned long long)item->count[op][s]);
			}
		}
	}
}

/* --- all of it --- */

static void print_ledger(const struct out *o, const struct ledger *l)
{
	one(o, M_SEEN, l->seen);
	one(o, M_AGGREGATED, l->outcome[IBS_OUTCOME_AGGREGATED]);
	one(o, M_FORWARDED, l->outcome[IBS_OUTCOME_FORWARDED]);
	by_reason(o, M_FILTERED, l, IBS_OUTCOME_KIND_FILTERED);
	by_reason(o, M_LOST, l, IBS_OUTCOME_KIND_LOST);
}

static double boottime_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void print_status(const struct out *o, const struct ibs_meta *m,
			 const struct ibs_meta_status *st, size_t groups)
{
	/* where pids are not ours to see, a tick that is fresh tells as well */
	double age = boottime_s() - st->time_ns / 1e9;

	if (st->pmu_exact)
		one(o, M_UNSEEN, st->unseen);
	one(o, M_PMU_ENABLED, st->enabled_ns / 1e9);
	one(o, M_PMU_RUNNING, st->running_ns / 1e9);
	one(o, M_THROTTLED, st->throttled);
	one(o, M_CPUS, st->cpus);
	one(o, M_WENT, st->cpus_went);
	one(o, M_CAME, st->cpus_came);
	if (st->period)
		one(o, M_PERIOD, st->period);
	if (st->bpf_runs)
		one(o, M_BPF_SECONDS, st->bpf_ns / 1e9);
	one(o, M_COLLECTOR_SECONDS, st->cpu_ns / 1e9);
	if (st->enabled_ns && st->bpf_runs)
		one(o, M_OVERHEAD, (double)(st->bpf_ns + st->cpu_ns) / st->enabled_ns);
	one(o, M_MAP_BYTES, st->memory_bytes);
	one(o, M_RSS_BYTES, st->rss_bytes);
	one(o, M_GROUPS, groups);
	one(o, M_GROUPS_MAX, m->layout.max_slots - 1);
	one(o, M_FOLDED, st->folded);
	one(o, M_STARTS, m->starts);
	one(o, M_RELOADS, st->reloads);
	one(o, M_CONFIG_ERRORS, st->config_errors);
	one(o, M_UP, m->pid && age < 10);
	one(o, M_AGE, age);
	one(o, M_START_TIME, m->start_realtime_ns / 1e9);
	one(o, M_SIMULATED, m->layout.simulated);
}

static void print_infos(const struct out *o, const struct ibs_meta *m)
{
	char caps[16];

	head(o, &metrics[M_BUILD_INFO]);
	fprintf(o->f, "ibscope_build_info");
	label(o, "{", "version", m->version);
	label(o, ",", "exporter_version", IBSCOPE_VERSION);
	fprintf(o->f, "} 1\n");
	head(o, &metrics[M_COLLECTOR_INFO]);
	snprintf(caps, sizeof(caps), "%#x", m->layout.caps);
	fprintf(o->f, "ibscope_collector_info");
	label(o, "{", "event", m->event);
	label(o, ",", "source", m->source);
	label(o, ",", "metric", metric_name(m->layout.metric));
	label(o, ",", "ibs_caps", caps);
	fprintf(o->f, "} 1\n");
}

int metrics_print(FILE *f, const struct pinned *p, const struct metrics_opts *opts, struct err *err)
{
	const size_t n_default = sizeof(default_edges) / sizeof(default_edges[0]);
	struct out o = { .f = f,
			 .opts = opts,
			 .edges = opts->n_edges ? opts->edges : default_edges,
			 .n_edges = opts->n_edges ? opts->n_edges : n_default };
	const struct ibs_meta *m = pinned_meta(p);
	struct items all = { .out = &o, .p = p };
	struct ibs_meta_status st;
	struct ledger ledger;
	int ret = -EUCLEAN;

	/* first: what arrives meanwhile is then seen rather than unseen */
	pinned_status(p, &st);
	/* a group that is made or folded while it is read may spoil one reading */
	for (int tries = 0; ret == -EUCLEAN && tries < 3; tries++) {
		free_items(&all);
		all.out = &o;
		all.p = p;
		ret = counts_each(pinned_counts(p), take_group, &all, &ledger, err);
	}
	if (ret) {
		free_items(&all);
		return ret == -ENOMEM ? err_set(err, ret, "out of memory") : ret;
	}
	print_latency(&o, &all, m->layout.metric < IBS_METRIC_N ? m->layout.metric : 0);
	print_samples(&o, &all);
	print_ledger(&o, &ledger);
	print_status(&o, m, &st, all.groups);
	print_infos(&o, m);
	free_items(&all);
	return 0;
}

int metrics_edges_parse(const char *text, struct metrics_opts *opts, struct err *err)
{
	size_t n = 0;

	for (const char *p = text;; p++) {
		char *end;
		unsigned long edge = strtoul(p, &end, 10);
		int b = 0;

		if (end == p || *p < '0' || *p > '9' || (*end && *end != ','))
			return err_set(err, -EINVAL, "column %td: a number of cycles is expected",
				       p - text + 1);
		while (b < IBS_LAT_BUCKETS - 1 && ibs_lat_le(b) < edge)
			b++;
		if (ibs_lat_le(b) != edge)
			return err_set(err, -EINVAL,
				       "column %td: %lu is no edge of a bucket; near it are %u and "
				       "%u",
				       p - text + 1, edge, b ? ibs_lat_le(b - 1) : 0,
				       ibs_lat_le(b));
		if (n && edge <= opts->edges[n - 1])
			return err_set(err, -EINVAL, "column %td: edges must ascend", p - text + 1);
		if (n == METRICS_EDGES_MAX)
			return err_set(err, -EINVAL, "more than %d edges", METRICS_EDGES_MAX);
		opts->edges[n++] = edge;
		p = end;
		if (!*p)
			break;
	}
	opts->n_edges = n;
	return 0;
}

void metrics_list(FILE *f)
{
	for (int m = 0; m < IBS_METRIC_N; m++)
		fprintf(f, "%-44s %s\n", latency_of[m].name, latency_of[m].help);
	for (int m = M_LATENCY + 1; m < METRICS; m++)
		fprintf(f, "%s%-*s %s\n", metrics[m].name, (int)(44 - strlen(metrics[m].name)),
			total(&metrics[m]), metrics[m].help);
}
