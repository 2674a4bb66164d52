// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_private.h"
#include "metrics.h"
#include "base/utf8.h"
#include "base/clock.h"

#include <dirent.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * X(NAME, "name", TYPE, "unit", "help", value): value is VALUE(expression), NAN for unknown, or
 * LINES(function) for a metric with labels. r is the reading, m its meta and st the status.
 */
#define EVENT_TABLE(X)                                                                             \
	X(GOVERNOR_STATE, "ibscope_governor_state", GAUGE, "",                                     \
	  "1 for the current state of the governor, 0 for the others.", LINES(governor_states))    \
	X(GOVERNOR_CHANGES, "ibscope_governor_changes", COUNTER, "",                               \
	  "Number of times the governor changed the period or stopped or resumed sampling, by "    \
	  "reason.",                                                                               \
	  LINES(governor_changes))                                                                 \
	X(STOPPED, "ibscope_sampling_stopped", GAUGE, "",                                          \
	  "1 while sampling is stopped by the governor.", VALUE(status_stopped(st)))               \
	X(SEEN, "ibscope_samples_seen", COUNTER, "",                                               \
	  "Samples that reached the BPF program: aggregated + forwarded + filtered + lost.",       \
	  VALUE(r->ledger.seen))                                                                   \
	X(AGGREGATED, "ibscope_samples_aggregated", COUNTER, "", "Samples added to histograms.",   \
	  VALUE(r->ledger.outcome[IBS_OUTCOME_AGGREGATED]))                                        \
	X(ENDED, "ibscope_samples_ended", GAUGE, "",                                               \
	  "Aggregated samples whose group ended or made way for a busier one, so that no series "  \
	  "of groups "                                                                             \
	  "has them.",                                                                             \
	  VALUE(f->ended[event]))                                                                  \
	X(FORWARDED, "ibscope_samples_forwarded", COUNTER, "", "Samples forwarded as records.",    \
	  VALUE(r->ledger.outcome[IBS_OUTCOME_FORWARDED]))                                         \
	X(FILTERED, "ibscope_samples_filtered", COUNTER, "",                                       \
	  "Samples dropped by the selection, by reason.", LINES(filtered))                         \
	X(LOST, "ibscope_samples_lost", COUNTER, "", "Samples lost, by reason.", LINES(lost))      \
	X(UNSEEN, "ibscope_samples_unseen", COUNTER, "",                                           \
	  "Samples counted by the PMU that never reached the BPF program.",                        \
	  VALUE(st->pmu_exact ? st->unseen : (double)NAN))                                         \
	X(DROPPED, "ibscope_tagged_ops_dropped_by_hardware", COUNTER, "",                          \
	  "Tagged ops that retired, but were dropped by a hardware filter.",                       \
	  VALUE(st->dropped_known ? st->dropped : (double)NAN))                                    \
	X(UNDELIVERED, "ibscope_tagged_ops_undelivered", COUNTER, "",                              \
	  "Tagged ops that were valid, but never reached the BPF program, by core counters.",      \
	  VALUE(st->undelivered_known ? st->undelivered : (double)NAN))                            \
	X(STRATA_SECONDS, "ibscope_strata_seconds", COUNTER, "seconds",                            \
	  "Time that each stratum of 'serve --strata' sampled; absent without it.",                \
	  LINES(strata_seconds))                                                                   \
	X(STRATA_SAMPLES, "ibscope_strata_samples", COUNTER, "",                                   \
	  "Samples seen in each stratum of 'serve --strata', up to the end of its last slice.",    \
	  LINES(strata_samples))                                                                   \
	X(EFFECTIVE, "ibscope_effective_samples", COUNTER, "",                                     \
	  "Samples of one event that would bring as many samples from beyond the L3 as 'serve "    \
	  "--strata' has; absent without it.",                                                     \
	  VALUE(r->strata.used ? strata_effective_samples(&r->strata) : (double)NAN))              \
	X(PMU_ENABLED, "ibscope_pmu_enabled_seconds", COUNTER, "seconds",                          \
	  "Time that the event was enabled, summed over all CPUs.", VALUE(st->enabled_ns / 1e9))   \
	X(PMU_RUNNING, "ibscope_pmu_running_seconds", COUNTER, "seconds",                          \
	  "Time that the event was on the PMU; less than enabled if the PMU is shared.",           \
	  VALUE(st->running_ns / 1e9))                                                             \
	X(THROTTLED, "ibscope_throttled", COUNTER, "",                                             \
	  "Number of times the kernel throttled sampling on a CPU until its next tick.",           \
	  VALUE(st->throttled))                                                                    \
	X(PMU_OPS, "ibscope_pmu_ops", COUNTER, "",                                                 \
	  "Ops (or cycles, if the event counts cycles) counted by the PMU, summed over all CPUs.", \
	  VALUE(st->counted))                                                                      \
	X(SHARED, "ibscope_pmu_shared", COUNTER, "",                                               \
	  "Number of times another profiler began to share the PMU.", VALUE(st->pmu_shared))       \
	X(PERIOD, "ibscope_sampling_period", GAUGE, "",                                            \
	  "Ops or cycles between two samples of a CPU; absent if it varies.",                      \
	  VALUE(st->period ? st->period : (double)NAN))                                            \
	X(PERIOD_ASKED, "ibscope_sampling_period_asked", GAUGE, "",                                \
	  "Configured period, which the governor never goes below; absent if it varies.",          \
	  VALUE(st->period_asked ? st->period_asked : (double)NAN))                                \
	X(BPF_SECONDS, "ibscope_bpf_seconds", COUNTER, "seconds",                                  \
	  "CPU time of the BPF program, estimated from the runs that were timed.",                 \
	  VALUE(st->bpf_runs ? st->bpf_ns / 1e9 : (double)NAN))                                    \
	X(NMI_COST, "ibscope_sample_interrupt_cost_seconds", GAUGE, "seconds",                     \
	  "CPU time of one sample without the BPF program, by source of the value.",               \
	  LINES(nmi_cost))                                                                         \
	X(BPF_COST, "ibscope_sample_bpf_cost_seconds", GAUGE, "seconds",                           \
	  "CPU time of one sample in the BPF program, by source of the value.", LINES(bpf_cost))   \
	X(MAP_BYTES, "ibscope_map_memory_bytes", GAUGE, "bytes", "Memory of the BPF maps.",        \
	  VALUE(st->memory_bytes))                                                                 \
	X(GROUPS, "ibscope_groups", GAUGE, "", "Groups with counters of their own.",               \
	  VALUE(r->groups))                                                                        \
	X(GROUPS_MAX, "ibscope_groups_limit", GAUGE, "",                                           \
	  "Maximum number of groups with counters of their own.", VALUE(reading_groups_limit(m)))  \
	X(FOLDED, "ibscope_groups_folded", COUNTER, "",                                            \
	  "Number of groups that ended and were added to 'other'.", VALUE(st->folded))             \
	X(DISPLACED, "ibscope_groups_displaced", COUNTER, "",                                      \
	  "Number of groups added to 'other' to make room for busier ones.", VALUE(st->displaced)) \
	X(START_TIME, "ibscope_counters_start_time_seconds", GAUGE, "seconds",                     \
	  "Unix time when the counters began.", VALUE(m->start_realtime_ns / 1e9))                 \
	X(COLLECTOR_INFO, "ibscope_collector", INFO, "",                                           \
	  "Event, source of samples, histogram metric and IBS capabilities.",                      \
	  LINES(collector_info))

/* Metrics of the whole collector: the status of each event has them. */
#define COLLECTOR_TABLE(X)                                                                         \
	X(CPUS, "ibscope_cpus", GAUGE, "", "CPUs being sampled.", VALUE(st->cpus))                 \
	X(WENT, "ibscope_cpus_went_offline", COUNTER, "", "Number of CPUs that went offline.",     \
	  VALUE(st->cpus_went))                                                                    \
	X(CAME, "ibscope_cpus_came_online", COUNTER, "",                                           \
	  "Number of CPUs that came online and are sampled.", VALUE(st->cpus_came))                \
	X(CLOCK_STEPS, "ibscope_clock_steps", COUNTER, "", "Number of times the clock was set.",   \
	  VALUE(st->clock_steps))                                                                  \
	X(SUSPENDS, "ibscope_suspends", COUNTER, "", "Number of times the machine was suspended.", \
	  VALUE(st->suspends))                                                                     \
	X(COLLECTOR_SECONDS, "ibscope_collector_cpu_seconds", COUNTER, "seconds",                  \
	  "CPU time of the collector process.", VALUE(st->cpu_ns / 1e9))                           \
	X(WORK, "ibscope_collector_work_seconds", COUNTER, "seconds",                              \
	  "CPU time of the collector process, by kind of work.", LINES(work))                      \
	X(WORK_DELAYED, "ibscope_collector_work_delayed_seconds", COUNTER, "seconds",              \
	  "Time that work was delayed by its CPU limit, by kind of work.", LINES(work_delayed))    \
	X(PUSH_PROFILES, "ibscope_push_profiles", COUNTER, "",                                     \
	  "Profiles of 'serve --push', by outcome; absent without it.", LINES(push_profiles))      \
	X(PUSH_SAMPLES, "ibscope_push_samples", COUNTER, "",                                       \
	  "Samples copied for profiles of 'serve --push', by outcome.", LINES(push_samples))       \
	X(PUSH_RETRIES, "ibscope_push_retries", COUNTER, "",                                       \
	  "Number of times a profile was posted again.",                                           \
	  VALUE(st->push.collectors ? st->push.retries : (double)NAN))                             \
	X(PUSH_UNNAMED_FILES, "ibscope_push_unnamed_files", COUNTER, "",                           \
	  "Files without names in a profile for lack of time, summed over all profiles.",          \
	  VALUE(st->push.collectors ? st->push.unnamed_files : (double)NAN))                       \
	X(PUSH_UNNAMED_SAMPLES, "ibscope_push_unnamed_samples", COUNTER, "",                       \
	  "Samples in profiles whose function is not named for lack of time.",                     \
	  VALUE(st->push.collectors ? st->push.unnamed_samples : (double)NAN))                     \
	X(PUSH_CHAINS_LOST, "ibscope_push_chains_lost", COUNTER, "",                               \
	  "Samples in profiles of 'serve --stacks' whose call chain found no room in the kernel.", \
	  VALUE(st->push.collectors ? st->push.profiles[IBS_PUSH_CHAINS_LOST] : (double)NAN))      \
	X(FLIGHTS, "ibscope_flight_recordings", COUNTER, "",                                       \
	  "Recordings of 'serve --flight', by outcome; absent without it.", LINES(flights))        \
	X(NEIGHBOURS, "ibscope_neighbours_judged", GAUGE, "",                                      \
	  "Containers with enough samples to be judged as victims of neighbours; absent unless "   \
	  "groups have container and ccx.",                                                        \
	  VALUE(r->neighbours.known ? r->neighbours.judged : (double)NAN))                         \
	X(NEIGHBOUR_PAIRS, "ibscope_neighbour_pairs", GAUGE, "",                                   \
	  "Pairs of containers of which one slows the other now; at most 8 have series.",          \
	  VALUE(r->neighbours.known ? r->neighbours.pairs : (double)NAN))                          \
	X(NEIGHBOUR_SLOWDOWN, "ibscope_neighbour_slowdown_ratio", GAUGE, "ratio",                  \
	  "Rise of a container's latency from L3 and beyond while the suspect is busy.",           \
	  LINES(neighbour_slowdowns))                                                              \
	X(NEIGHBOUR_SHARE, "ibscope_neighbour_share_ratio", GAUGE, "ratio",                        \
	  "Share of the accesses on the L3 complex that are the suspect's while it is busy.",      \
	  LINES(neighbour_shares))                                                                 \
	X(NEIGHBOUR_CHANCE, "ibscope_neighbour_chance_ratio", GAUGE, "ratio",                      \
	  "Probability that chance explains the pair: its confidence is 1 minus this.",            \
	  LINES(neighbour_chances))                                                                \
	X(NEIGHBOUR_TRAFFIC, "ibscope_neighbour_memory_bytes_per_second", GAUGE, "",               \
	  "Most memory traffic of the suspect in a second, by resctrl; absent where unknown.",     \
	  LINES(neighbour_traffic))                                                                \
	X(NEIGHBOUR_L3, "ibscope_neighbour_l3_bytes", GAUGE, "bytes",                              \
	  "Most bytes of the suspect in the L3, by resctrl; absent where unknown.",                \
	  LINES(neighbour_l3))                                                                     \
	X(LINES_FED, "ibscope_hot_lines_samples", COUNTER, "",                                     \
	  "Samples added to the tables of 'serve --hot-lines'; absent without it.",                \
	  VALUE(st->lines.on ? st->lines.fed : (double)NAN))                                       \
	X(LINES_NO_ADDRESS, "ibscope_hot_lines_samples_without_address", COUNTER, "",              \
	  "Samples for the tables of 'serve --hot-lines' that have no physical address, and so "   \
	  "are in no line.",                                                                       \
	  VALUE(st->lines.on ? st->lines.no_address : (double)NAN))                                \
	X(LINES_REPLACED, "ibscope_hot_lines_replaced", COUNTER, "",                               \
	  "Number of times a line lost its place in a table to another one.",                      \
	  VALUE(st->lines.on ? st->lines.replaced : (double)NAN))                                  \
	X(LINES_KEPT, "ibscope_hot_lines", GAUGE, "",                                              \
	  "Cache lines with details in the newest window.",                                        \
	  VALUE(st->lines.on ? st->lines.lines : (double)NAN))                                     \
	X(LINES_LACK, "ibscope_hot_lines_error_samples", GAUGE, "",                                \
	  "Most samples of a line that its counts can lack, over all windows.",                    \
	  VALUE(st->lines.on ? st->lines.lack : (double)NAN))                                      \
	X(OVERHEAD, "ibscope_overhead_ratio", GAUGE, "ratio",                                      \
	  "CPU time of BPF program and collector, without interrupts, as a share of all CPU "      \
	  "time.",                                                                                 \
	  VALUE(collector_overhead(f->reading, f->n_events)))                                      \
	X(BUDGET, "ibscope_overhead_budget_ratio", GAUGE, "ratio",                                 \
	  "Share of CPU time that sampling may cost; absent without a budget.",                    \
	  VALUE(st->budget_ppb ? st->budget_ppb / 1e9 : (double)NAN))                              \
	X(OVERHEAD_NOW, "ibscope_governor_overhead_ratio", GAUGE, "ratio",                         \
	  "Share of CPU time that samples and collector cost during the last second, estimated.",  \
	  VALUE(status_overhead(st)))                                                              \
	X(OVERHEAD_TIME, "ibscope_overhead_seconds", COUNTER, "seconds",                           \
	  "CPU time of interrupts, BPF program and collector, estimated.",                         \
	  VALUE(st->overhead_ns / 1e9))                                                            \
	X(KERNEL_RATE, "ibscope_kernel_max_sample_rate", GAUGE, "",                                \
	  "Sysctl kernel.perf_event_max_sample_rate: maximum samples per second and CPU.",         \
	  VALUE(st->kernel_rate ? st->kernel_rate : (double)NAN))                                  \
	X(KERNEL_LOWERED, "ibscope_kernel_rate_lowered", COUNTER, "",                              \
	  "Number of times the kernel lowered kernel.perf_event_max_sample_rate because "          \
	  "interrupts took too long.",                                                             \
	  VALUE(st->kernel_lowered))                                                               \
	X(RSS_BYTES, "ibscope_collector_resident_memory_bytes", GAUGE, "bytes",                    \
	  "Resident memory of the collector.", VALUE(st->rss_bytes))                               \
	X(RSS_MAX, "ibscope_collector_resident_memory_limit_bytes", GAUGE, "bytes",                \
	  "Resident memory above which the collector exits; absent without a limit.",              \
	  VALUE(st->rss_max ? st->rss_max : (double)NAN))                                          \
	X(UNRESOLVED, "ibscope_selection_unresolved", GAUGE, "",                                   \
	  "Names in the selection that match nothing yet; 'ibscope ctl status' lists them.",       \
	  VALUE(st->unresolved))                                                                   \
	X(PINS_MISSING, "ibscope_pins_missing", GAUGE, "",                                         \
	  "Pins that others removed or replaced and that cannot be pinned again; the log of the "  \
	  "collector gives the reason.",                                                           \
	  VALUE(m->pins_missing))                                                                  \
	X(PINS_REPAIRED, "ibscope_pins_repaired", COUNTER, "",                                     \
	  "Number of pins that others removed or replaced and this collector pinned again.",       \
	  VALUE(m->pins_repaired))                                                                 \
	X(STARTS, "ibscope_collector_starts", COUNTER, "",                                         \
	  "Number of collectors started since the counters began, including this one.",            \
	  VALUE(m->starts))                                                                        \
	X(RELOADS, "ibscope_config_reloads", COUNTER, "",                                          \
	  "Number of times the options were reloaded.", VALUE(st->reloads))                        \
	X(CONFIG_ERRORS, "ibscope_config_reload_errors", COUNTER, "",                              \
	  "Number of failed reloads, after which the old options stayed in force.",                \
	  VALUE(st->config_errors))                                                                \
	X(LIVE_CHANGES, "ibscope_live_changes", COUNTER, "",                                       \
	  "Number of times 'ibscope ctl' changed options.", VALUE(st->live_changes))               \
	X(AGE, "ibscope_collector_age_seconds", GAUGE, "seconds",                                  \
	  "Time since the collector last updated its status, which it does every second.",         \
	  VALUE(((double)r->time_ns - st->time_ns) / 1e9))                                         \
	X(ORPHANED, "ibscope_collector_orphaned", GAUGE, "",                                       \
	  "1 if the collector was killed and sampling continues without a governor.",              \
	  VALUE(collector_orphaned(m)))                                                            \
	X(LEASE, "ibscope_collector_lease_seconds", GAUGE, "seconds",                              \
	  "Time until sampling ends unless a collector renews its lease, as every second.",        \
	  VALUE(collector_lease_s(m)))                                                             \
	X(SIMULATED, "ibscope_simulated", GAUGE, "", "1 if samples are SIMULATED, not measured.",  \
	  VALUE(m->layout.simulated))                                                              \
	X(SCHEMA, "ibscope_pin_schema", GAUGE, "",                                                 \
	  "Layout of the pinned counters. A collector of the next schema resumes them; others "    \
	  "start from zero.",                                                                      \
	  VALUE(m->schema))                                                                        \
	X(BUILD_INFO, "ibscope_build", INFO, "", "Versions of collector and exporter.",            \
	  LINES(build_info))

/* Metrics of the process that serves them. */
#define SELF_TABLE(X)                                                                              \
	X(UP, "ibscope_collector_up", GAUGE, "",                                                   \
	  "1 if the collector is running; absent if its counters cannot be read.", VALUE(up(f)))   \
	X(READ_FAILING, "ibscope_exporter_read_failing", GAUGE, "",                                \
	  "1 if the counters cannot be read; /-/ready and the log give the reason.",               \
	  VALUE(self->failing))                                                                    \
	X(DURATION, "ibscope_scrape_duration_seconds", GAUGE, "seconds",                           \
	  "Time taken to read the counters for this response.", VALUE(self->read_s))               \
	X(SCRAPES, "ibscope_exporter_scrapes", COUNTER, "", "Number of scrapes served.",           \
	  VALUE(self->scrapes))                                                                    \
	X(READS, "ibscope_exporter_reads", COUNTER, "",                                            \
	  "Number of counter reads; scrapes within the same second share one.",                    \
	  VALUE(self->reads))                                                                      \
	X(READ_ERRORS, "ibscope_exporter_read_errors", COUNTER, "",                                \
	  "Number of failed counter reads.", VALUE(self->read_errors))                             \
	X(CONNECTIONS, "ibscope_exporter_connections", GAUGE, "", "Open connections.",             \
	  VALUE(self->connections))                                                                \
	X(CROWDED_OUT, "ibscope_exporter_connections_crowded_out", COUNTER, "",                    \
	  "Number of connections closed because they were too slow or to make room for others.",   \
	  VALUE(self->crowded_out))                                                                \
	X(PASSWORDS, "ibscope_exporter_passwords_checked", COUNTER, "",                            \
	  "Number of passwords hashed; a password that was right before is not hashed again.",     \
	  VALUE(self->passwords_checked))                                                          \
	X(PASSWORDS_WRONG, "ibscope_exporter_passwords_wrong", COUNTER, "",                        \
	  "Number of wrong passwords.", VALUE(self->passwords_wrong))                              \
	X(WEB_ERRORS, "ibscope_exporter_config_reload_errors", COUNTER, "",                        \
	  "Number of failed reloads of --web.config.file or its certificates.",                    \
	  VALUE(self->config_errors))                                                              \
	X(HISTORY, "ibscope_exporter_history_seconds", GAUGE, "seconds",                           \
	  "Time that the history of the page covers.", VALUE(self->history_s))                     \
	X(HISTORY_BYTES, "ibscope_exporter_history_bytes", GAUGE, "bytes",                         \
	  "Memory of the history of the page.", VALUE(self->history_bytes))                        \
	X(MAPPED, "ibscope_exporter_maps_mapped", GAUGE, "",                                       \
	  "1 if counters are read from mapped memory, which costs no samples.",                    \
	  VALUE(self->mapped))                                                                     \
	X(COARSE, "ibscope_exporter_coarse_histograms", GAUGE, "",                                 \
	  "1 since all buckets of all groups took too much memory: histograms have only the "      \
	  "exported edges, on the page and as native histograms, too.",                            \
	  VALUE(self->coarse))                                                                     \
	X(CPU, "process_cpu_seconds", COUNTER, "seconds", "Total user and system CPU time spent.", \
	  VALUE(f->process.cpu_s))                                                                 \
	X(RSS, "process_resident_memory_bytes", GAUGE, "bytes", "Resident memory size.",           \
	  VALUE(f->process.rss_bytes))                                                             \
	X(VSZ, "process_virtual_memory_bytes", GAUGE, "bytes", "Virtual memory size.",             \
	  VALUE(f->process.virtual_bytes))                                                         \
	X(FDS, "process_open_fds", GAUGE, "", "Number of open file descriptors.",                  \
	  VALUE(f->process.open_fds))                                                              \
	X(MAX_FDS, "process_max_fds", GAUGE, "", "Maximum number of open file descriptors.",       \
	  VALUE(f->process.max_fds))                                                               \
	X(START, "process_start_time_seconds", GAUGE, "seconds",                                   \
	  "Start time of the process as Unix time.", VALUE(f->process.start_s))

static double up(const struct metrics_facts *f)
{
	if (f->state == METRICS_FAILED)
		return NAN;
	return f->state == METRICS_READ && collector_alive(&f->reading[0].meta);
}

#define VALUE(expression)                  \
	{                                  \
		out->value = (expression); \
		return !i;                 \
	}
#define LINES(function) return lines_##function(r, i, out);
#define FUNCTION(NAME, name, type, unit, help, value)                                              \
	static bool line_##NAME(const struct metrics_facts *f, unsigned int event, unsigned int i, \
				struct metric_line *out)                                           \
	{                                                                                          \
		const struct reading *r = &f->reading[event];                                      \
		const struct ibs_meta *m = &r->meta;                                               \
		const struct ibs_meta_status *st = &m->status;                                     \
		const struct metrics_self *self = &f->self;                                        \
                                                                                                   \
		(void)event, (void)m, (void)st, (void)self;                                        \
		value                                                                              \
	}
EVENT_TABLE(FUNCTION)
COLLECTOR_TABLE(FUNCTION)
SELF_TABLE(FUNCTION)

#define ROW(NAME, name, type, unit, help, value, of) \
	{ { name, METRIC_##type, unit, help }, of, line_##NAME },
#define EVENT_ROW(...)	   ROW(__VA_ARGS__, OF_EVENT)
#define COLLECTOR_ROW(...) ROW(__VA_ARGS__, OF_COLLECTOR)
#define SELF_ROW(...)	   ROW(__VA_ARGS__, OF_SELF)

static const struct metric {
	struct metric_head head;
	enum { OF_EVENT, OF_COLLECTOR, OF_SELF } of; /* the last even if no counters were read */
	/* Fill line @i, which is zeroed. Return: false after the last line. */
	bool (*line)(const struct metrics_facts *f, unsigned int event, unsigned int i,
		     struct metric_line *out);
} table[] = { EVENT_TABLE(EVENT_ROW) COLLECTOR_TABLE(COLLECTOR_ROW) SELF_TABLE(SELF_ROW) };

#define METRICS (sizeof(table) / sizeof(table[0]))

static void write_line(FILE *f, const struct metric_head *h, const struct metric_line *l)
{
	fprintf(f, "%s%s", h->name, metric_suffix(h));
	for (int i = 0; i < METRIC_LABELS_MAX && l->label[i].name; i++)
		metric_write_label(f, i ? "," : "{", l->label[i].name, l->label[i].value);
	/* whole numbers with all digits: ledgers are compared exactly */
	fprintf(f, l->value == floor(l->value) ? "%s %.0f\n" : "%s %.15g\n",
		l->label[0].name ? "}" : "", l->value);
}

/* @any: whether its head was written. Return: whether it is now. */
static bool write_lines(FILE *f, enum metrics_format format, const struct metric *m,
			const struct metrics_facts *facts, unsigned int event, bool any)
{
	struct metric_line l = {};

	for (unsigned int i = 0; m->line(facts, event, i, &l); i++) {
		if (m->of != OF_SELF &&
		    ibs_metric_of_fetch(reading_metric(&facts->reading[event].meta)))
			metric_line_label(&l, "event", "ibs_fetch");
		if (!isnan(l.value) && !any)
			metric_write_head(f, format, &m->head);
		if (!isnan(l.value))
			write_line(f, &m->head, &l);
		any |= !isnan(l.value);
		l = (struct metric_line){};
	}
	return any;
}

void metrics_table_write(FILE *f, enum metrics_format format, const struct metrics_facts *facts)
{
	for (const struct metric *m = table; m < table + METRICS; m++) {
		const unsigned int n = m->of == OF_EVENT  ? facts->n_events
				       : m->of == OF_SELF ? 1
							  : facts->n_events > 0;
		bool any = false;

		for (unsigned int event = 0; event < n; event++)
			any = write_lines(f, format, m, facts, event, any);
	}
}

void metrics_table_describe(FILE *f)
{
	for (size_t i = 0; i < METRICS; i++)
		metric_describe(f, &table[i].head);
}

#define LABEL_MAX (4 * 4096) /* bytes of the longest cgroup path, escaped */

static const char *const types[] = { "counter", "gauge", "histogram", "summary", "info" };

const char *metric_suffix(const struct metric_head *m)
{
	return m->type == METRIC_COUNTER ? "_total" : m->type == METRIC_INFO ? "_info" : "";
}

void metric_write_head(FILE *f, enum metrics_format format, const struct metric_head *m)
{
	const bool om = format != METRICS_TEXT;
	/* OpenMetrics 1.0 counters lack the suffix; the text format has no info type */
	const char *suffix = format == METRICS_OPENMETRICS ? "" : metric_suffix(m);
	const char *type = types[!om && m->type == METRIC_INFO ? METRIC_GAUGE : m->type];

	fprintf(f, "# HELP %s%s %s\n# TYPE %s%s %s\n", m->name, suffix, m->help, m->name, suffix,
		type);
	if (om && *m->unit)
		fprintf(f, "# UNIT %s %s\n", m->name, m->unit);
}

/* Escaped as in other outputs, and then as the format requires. */
void metric_write_label(FILE *f, const char *sep, const char *name, const char *value)
{
	char text[LABEL_MAX];

	utf8_escape(text, sizeof(text), value);
	fprintf(f, "%s%s=\"", sep, name);
	for (const char *p = text; *p; p++) {
		if (*p == '\\' || *p == '"')
			fputc('\\', f);
		fputc(*p, f);
	}
	fputc('"', f);
}

void metric_describe(FILE *f, const struct metric_head *m)
{
	fprintf(f, "%s%-*s %-9s %s\n", m->name, (int)(44 - strlen(m->name)), metric_suffix(m),
		types[m->type], m->help);
}

static void read_memory(struct process_stats *out)
{
	unsigned long long size, rss;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%llu %llu", &size, &rss) == 2) {
		out->virtual_bytes = (double)size * sysconf(_SC_PAGESIZE);
		out->rss_bytes = (double)rss * sysconf(_SC_PAGESIZE);
	}
	if (f)
		fclose(f);
}

static void read_fds(struct process_stats *out)
{
	DIR *d = opendir("/proc/self/fd");
	struct rlimit limit;

	if (d) {
		out->open_fds = -1; /* do not count the directory's own */
		for (struct dirent *e; (e = readdir(d));)
			out->open_fds += *e->d_name != '.';
		closedir(d);
	}
	if (!getrlimit(RLIMIT_NOFILE, &limit))
		out->max_fds = limit.rlim_cur;
}

/* Field 22 of /proc/self/stat, in ticks since boot. */
static double start_time_s(void)
{
	char text[1024], *p;
	unsigned long long ticks;
	FILE *f = fopen("/proc/self/stat", "re");

	/* what ends the name, which may contain spaces */
	p = f && fgets(text, sizeof(text), f) ? strrchr(text, ')') : NULL;
	if (f)
		fclose(f);
	for (int field = 2; p && field < 22; field++)
		p = strchr(p + 1, ' ');
	if (!p || sscanf(p, " %llu", &ticks) != 1)
		return NAN;
	return (clock_ns(CLOCK_REALTIME) / 1e9 - clock_ns(CLOCK_BOOTTIME) / 1e9) +
	       (double)ticks / sysconf(_SC_CLK_TCK);
}

void process_stats_read(struct process_stats *out)
{
	static double started; /* read once: setting the clock must not change it */

	*out = (struct process_stats){ NAN, NAN, NAN, NAN, NAN, NAN };
	out->cpu_s = clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e9;
	read_memory(out);
	read_fds(out);
	if (!started)
		started = start_time_s();
	out->start_s = started;
}
