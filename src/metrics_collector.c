// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What is said of a collector and its counters besides those of groups. */
#include "metrics_collector.h"

#include "metrics_governor.h"
#include "metrics_out.h"
#include "utf8.h"
#include "clock.h"

#include <time.h>

#define METRIC_TABLE(X)                                                                            \
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
	X(PMU_OPS, "ibscope_pmu_ops", COUNTER, "",                                                 \
	  "Ops (cycles, where the event counts those) that the PMU counted, over all CPUs.")       \
	X(SHARED, "ibscope_pmu_shared", COUNTER, "",                                               \
	  "Times that another profiler began to share the PMU.")                                   \
	X(CLOCK_STEPS, "ibscope_clock_steps", COUNTER, "", "Times that the clock was set.")        \
	X(SUSPENDS, "ibscope_suspends", COUNTER, "", "Times that the machine was suspended.")      \
	X(PERIOD, "ibscope_sampling_period", GAUGE, "",                                            \
	  "Ops or cycles between two samples of a CPU; absent if it varies.")                      \
	X(BPF_SECONDS, "ibscope_bpf_seconds", COUNTER, "seconds",                                  \
	  "Time in the BPF program, by the mean of the runs that were timed.")                     \
	X(COLLECTOR_SECONDS, "ibscope_collector_cpu_seconds", COUNTER, "seconds",                  \
	  "CPU time of the collector's process.")                                                  \
	X(OVERHEAD, "ibscope_overhead_ratio", GAUGE, "ratio",                                      \
	  "Time in BPF and collector, without interrupts, as a share of the CPUs' sampled time.")  \
	X(MAP_BYTES, "ibscope_map_memory_bytes", GAUGE, "bytes", "Memory of the maps.")            \
	X(RSS_BYTES, "ibscope_collector_resident_memory_bytes", GAUGE, "bytes",                    \
	  "Resident memory of the collector.")                                                     \
	X(GROUPS, "ibscope_groups", GAUGE, "", "Groups that have counters of their own.")          \
	X(GROUPS_MAX, "ibscope_groups_limit", GAUGE, "", "Groups that can have.")                  \
	X(FOLDED, "ibscope_groups_folded", COUNTER, "",                                            \
	  "Groups that ended and were added to 'other'.")                                          \
	X(DISPLACED, "ibscope_groups_displaced", COUNTER, "",                                      \
	  "Groups that were added to 'other' because busier ones found no room.")                  \
	X(STARTS, "ibscope_collector_starts", COUNTER, "",                                         \
	  "Collectors since the counters began, this one included.")                               \
	X(RELOADS, "ibscope_config_reloads", COUNTER, "", "Times that options were read again.")   \
	X(CONFIG_ERRORS, "ibscope_config_reload_errors", COUNTER, "",                              \
	  "Times that they could not be used, and the old ones stayed.")                           \
	X(LIVE_CHANGES, "ibscope_live_changes", COUNTER, "",                                       \
	  "Times that options were changed while sampling, by ibscope ctl.")                       \
	X(UP, "ibscope_collector_up", GAUGE, "", "Does a collector run?")                          \
	X(AGE, "ibscope_collector_age_seconds", GAUGE, "seconds",                                  \
	  "Time since the collector's last tick; it ticks once a second.")                         \
	X(START_TIME, "ibscope_counters_start_time_seconds", GAUGE, "seconds",                     \
	  "When the counters began, as Unix time.")                                                \
	X(SIMULATED, "ibscope_simulated", GAUGE, "",                                               \
	  "1 if samples are SIMULATED, for tests, and are no measurements.")                       \
	X(BUILD_INFO, "ibscope_build", INFO, "", "Versions of collector and exporter.")            \
	X(COLLECTOR_INFO, "ibscope_collector", INFO, "", "What is sampled.")

static const struct metric metrics[] = { METRIC_TABLE(METRIC_ROW) };
enum metric_id { METRIC_TABLE(METRIC_ENUM) METRICS };

/* A collector that ticked so long ago does not run. */
#define ALIVE_S 10

static void by_reason(FILE *f, enum metrics_format format, enum metric_id id,
		      const struct ledger *l, enum ibs_outcome_kind kind)
{
	metric_head(f, format, &metrics[id]);
	for (int i = 0; i < IBS_OUTCOME_N; i++)
		if (outcome_kind(i) == kind)
			fprintf(f, "%s_total{reason=\"%s\"} %llu\n", metrics[id].name,
				outcome_name(i), l->outcome[i]);
}

bool metrics_collector_alive(const struct ibs_meta *m, const struct ibs_meta_status *st)
{
	return m->pid && clock_ns(CLOCK_BOOTTIME) / 1e9 - st->time_ns / 1e9 < ALIVE_S;
}

static void print_status(FILE *f, enum metrics_format format, const struct metrics_collector *c)
{
	const struct ibs_meta_status *st = &c->status;
	const struct ibs_meta *m = c->meta;
	const struct {
		enum metric_id id;
		double value;
		bool unknown;
	} rows[] = {
		{ M_UNSEEN, st->unseen, !st->pmu_exact },
		{ M_PMU_ENABLED, st->enabled_ns / 1e9 },
		{ M_PMU_RUNNING, st->running_ns / 1e9 },
		{ M_THROTTLED, st->throttled },
		{ M_PMU_OPS, st->counted },
		{ M_CPUS, st->cpus },
		{ M_WENT, st->cpus_went },
		{ M_CAME, st->cpus_came },
		{ M_SHARED, st->pmu_shared },
		{ M_CLOCK_STEPS, st->clock_steps },
		{ M_SUSPENDS, st->suspends },
		{ M_PERIOD, st->period, !st->period },
		{ M_BPF_SECONDS, st->bpf_ns / 1e9, !st->bpf_runs },
		{ M_COLLECTOR_SECONDS, st->cpu_ns / 1e9 },
		{ M_OVERHEAD, (double)(st->bpf_ns + st->cpu_ns) / (st->enabled_ns ?: 1),
		  !st->enabled_ns || !st->bpf_runs },
		{ M_MAP_BYTES, st->memory_bytes },
		{ M_RSS_BYTES, st->rss_bytes },
		{ M_GROUPS, c->groups },
		{ M_GROUPS_MAX, m->layout.max_slots - 1 },
		{ M_FOLDED, st->folded },
		{ M_DISPLACED, st->displaced },
		{ M_STARTS, m->starts },
		{ M_RELOADS, st->reloads },
		{ M_CONFIG_ERRORS, st->config_errors },
		{ M_LIVE_CHANGES, st->live_changes },
		{ M_UP, metrics_collector_alive(m, st) },
		{ M_AGE, clock_ns(CLOCK_BOOTTIME) / 1e9 - st->time_ns / 1e9 },
		{ M_START_TIME, m->start_realtime_ns / 1e9 },
		{ M_SIMULATED, m->layout.simulated },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!rows[i].unknown)
			metric_one(f, format, &metrics[rows[i].id], rows[i].value);
}

static void print_infos(FILE *f, enum metrics_format format, const struct ibs_meta *m)
{
	char caps[16];

	metric_head(f, format, &metrics[M_BUILD_INFO]);
	fprintf(f, "ibscope_build_info");
	metric_label(f, "{", "version", m->version);
	metric_label(f, ",", "exporter_version", IBSCOPE_VERSION);
	fprintf(f, "} 1\n");
	metric_head(f, format, &metrics[M_COLLECTOR_INFO]);
	snprintf(caps, sizeof(caps), "%#x", m->layout.caps);
	fprintf(f, "ibscope_collector_info");
	metric_label(f, "{", "event", m->event);
	metric_label(f, ",", "source", m->source);
	metric_label(f, ",", "metric", metric_name(metrics_histogrammed(m)));
	metric_label(f, ",", "ibs_caps", caps);
	fprintf(f, "} 1\n");
}

enum ibs_metric metrics_histogrammed(const struct ibs_meta *m)
{
	return m->layout.metric < IBS_METRIC_N ? m->layout.metric : 0;
}

void metrics_collector_print(FILE *f, enum metrics_format format, const struct metrics_collector *c)
{
	const struct ledger *l = &c->ledger;

	metric_one(f, format, &metrics[M_SEEN], l->seen);
	metric_one(f, format, &metrics[M_AGGREGATED], l->outcome[IBS_OUTCOME_AGGREGATED]);
	metric_one(f, format, &metrics[M_FORWARDED], l->outcome[IBS_OUTCOME_FORWARDED]);
	by_reason(f, format, M_FILTERED, l, IBS_OUTCOME_KIND_FILTERED);
	by_reason(f, format, M_LOST, l, IBS_OUTCOME_KIND_LOST);
	print_status(f, format, c);
	metrics_governor_print(f, format, &c->status);
	print_infos(f, format, c->meta);
}

void metrics_collector_print_none(FILE *f, enum metrics_format format)
{
	metric_one(f, format, &metrics[M_UP], 0);
}

static void json_reasons(FILE *f, const char *name, const struct ledger *l,
			 enum ibs_outcome_kind kind)
{
	const char *sep = "";

	fprintf(f, ",\"%s\":{", name);
	for (int i = 0; i < IBS_OUTCOME_N; i++) {
		if (outcome_kind(i) != kind || !l->outcome[i])
			continue;
		fprintf(f, "%s\"%s\":%llu", sep, outcome_name(i), l->outcome[i]);
		sep = ",";
	}
	fputc('}', f);
}

static void json_text(FILE *f, const char *name, const char *value)
{
	fprintf(f, ",\"%s\":", name);
	utf8_put_json(f, value);
}

void metrics_collector_json(FILE *f, const struct metrics_collector *c)
{
	const struct ibs_meta_status *st = &c->status;
	const struct ibs_meta *m = c->meta;
	const struct ledger *l = &c->ledger;

	fprintf(f, ",\"simulated\":%s,\"alive\":%s,\"pid\":%u,\"age_s\":%.3f,\"time_s\":%.3f",
		m->layout.simulated ? "true" : "false",
		metrics_collector_alive(m, st) ? "true" : "false", m->pid,
		clock_ns(CLOCK_BOOTTIME) / 1e9 - st->time_ns / 1e9, clock_ns(CLOCK_BOOTTIME) / 1e9);
	fprintf(f, ",\"start_s\":%.3f,\"starts\":%llu,\"cpus\":%u", m->start_realtime_ns / 1e9,
		m->starts, st->cpus);
	metric_json_number(f, "period", st->period, st->period);
	fprintf(f, ",\"groups\":%zu,\"groups_limit\":%u,\"map_bytes\":%llu,\"rss_bytes\":%llu",
		c->groups, m->layout.max_slots - 1, st->memory_bytes, st->rss_bytes);
	fprintf(f, ",\"groups_folded\":%llu,\"groups_displaced\":%llu", st->folded, st->displaced);
	fprintf(f, ",\"cpus_went_offline\":%llu,\"cpus_came_online\":%llu", st->cpus_went,
		st->cpus_came);
	fprintf(f, ",\"clock_steps\":%llu,\"suspends\":%llu,\"pmu_shared\":%llu", st->clock_steps,
		st->suspends, st->pmu_shared);
	fprintf(f, ",\"enabled_s\":%.3f,\"running_s\":%.3f,\"throttled\":%llu",
		st->enabled_ns / 1e9, st->running_ns / 1e9, st->throttled);
	if (st->enabled_ns && st->bpf_runs)
		fprintf(f, ",\"overhead\":%.9f",
			(double)(st->bpf_ns + st->cpu_ns) / st->enabled_ns);
	metrics_governor_json(f, st);
	json_text(f, "version", m->version);
	json_text(f, "event", m->event);
	json_text(f, "source", m->source);
	json_text(f, "selection", m->selection);
	json_text(f, "live", m->live);
	json_text(f, "metric", metric_name(metrics_histogrammed(m)));
	fprintf(f, ",\"ledger\":{\"seen\":%llu,\"aggregated\":%llu,\"forwarded\":%llu", l->seen,
		l->outcome[IBS_OUTCOME_AGGREGATED], l->outcome[IBS_OUTCOME_FORWARDED]);
	json_reasons(f, "filtered", l, IBS_OUTCOME_KIND_FILTERED);
	json_reasons(f, "lost", l, IBS_OUTCOME_KIND_LOST);
	metric_json_number(f, "unseen", st->unseen, st->pmu_exact);
	fputc('}', f);
}

void metrics_collector_list(FILE *f)
{
	for (int m = 0; m < METRICS; m++)
		metric_describe(f, &metrics[m]);
	metrics_governor_list(f);
}
