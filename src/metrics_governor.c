// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_governor.h"

#include "clock.h"
#include "governor.h"
#include "metrics_out.h"

#define METRIC_TABLE(X)                                                                           \
	X(STATE, "ibscope_governor_state", GAUGE, "", "1 for the state that the governor is in.") \
	X(CHANGES, "ibscope_governor_changes", COUNTER, "",                                       \
	  "Times that the governor changed the period, or stopped or began sampling, by reason.") \
	X(STOPPED, "ibscope_sampling_stopped", GAUGE, "",                                         \
	  "1 while nothing is sampled because the governor stopped it.")                          \
	X(BUDGET, "ibscope_overhead_budget_ratio", GAUGE, "ratio",                                \
	  "Share of the CPUs' time that the collector may take; absent without a budget.")        \
	X(NOW, "ibscope_governor_overhead_ratio", GAUGE, "ratio",                                 \
	  "Share of the CPUs' time that samples and collector took in the last second.")          \
	X(TIME, "ibscope_overhead_seconds", COUNTER, "seconds",                                   \
	  "CPU time that interrupts, BPF and the collector took, estimated.")                     \
	X(NMI, "ibscope_sample_interrupt_cost_seconds", GAUGE, "seconds",                         \
	  "CPU time of a sample without the BPF program, and how that is known.")                 \
	X(BPF, "ibscope_sample_bpf_cost_seconds", GAUGE, "seconds",                               \
	  "CPU time of a sample in the BPF program, and how that is known.")                      \
	X(ASKED, "ibscope_sampling_period_asked", GAUGE, "",                                      \
	  "The period asked for, below which the governor does not go; absent if it varies.")     \
	X(RATE, "ibscope_kernel_max_sample_rate", GAUGE, "",                                      \
	  "kernel.perf_event_max_sample_rate: samples a second and CPU.")                         \
	X(LOWERED, "ibscope_kernel_rate_lowered", COUNTER, "",                                    \
	  "Times that it became less while sampling: the kernel does so if interrupts are slow.") \
	X(RSS_MAX, "ibscope_collector_resident_memory_limit_bytes", GAUGE, "bytes",               \
	  "Resident memory above which the collector ends.")

static const struct metric metrics[] = { METRIC_TABLE(METRIC_ROW) };
enum metric_id { METRIC_TABLE(METRIC_ENUM) METRICS };

static const char *nmi_source(const struct ibs_meta_status *st)
{
#define NMI_SOURCE_NAME(NAME, name) name,
	static const char *const names[] = { IBS_NMI_SOURCE_TABLE(NMI_SOURCE_NAME) };
#undef NMI_SOURCE_NAME

	return st->nmi_source < IBS_NMI_SOURCES ? names[st->nmi_source] : "unknown";
}

static const char *bpf_source(const struct ibs_meta_status *st)
{
	return st->bpf_runs ? "measured" : "assumed";
}

static double bpf_ns(const struct ibs_meta_status *st)
{
	return st->bpf_runs ? (double)st->bpf_ns / st->bpf_runs : GOVERNOR_BPF_ASSUMED_NS;
}

static const char *state_name(const struct ibs_meta_status *st)
{
	return st->governor_state < GOVERNOR_STATE_N ? governor_state_name(st->governor_state)
						     : "unknown";
}

static const char *reason_name(const struct ibs_meta_status *st)
{
	return st->governor_reason < GOVERNOR_REASON_N ? governor_reason_name(st->governor_reason)
						       : "unknown";
}

static bool is_stopped(const struct ibs_meta_status *st)
{
	return st->governor_state == GOVERNOR_STATE_STOPPED;
}

void metrics_governor_print(FILE *f, enum metrics_format format, const struct ibs_meta_status *st)
{
	metric_head(f, format, &metrics[M_STATE]);
	for (unsigned int i = 0; i < GOVERNOR_STATE_N; i++)
		fprintf(f, "%s{state=\"%s\"} %d\n", metrics[M_STATE].name, governor_state_name(i),
			i == st->governor_state);
	metric_head(f, format, &metrics[M_CHANGES]);
	for (int i = GOVERNOR_REASON_NONE + 1; i < GOVERNOR_REASON_N; i++)
		fprintf(f, "%s_total{reason=\"%s\"} %llu\n", metrics[M_CHANGES].name,
			governor_reason_name(i), st->governor_changes[i]);
	metric_one(f, format, &metrics[M_STOPPED], is_stopped(st));
	if (st->budget_ppb)
		metric_one(f, format, &metrics[M_BUDGET], st->budget_ppb / 1e9);
	metric_one(f, format, &metrics[M_NOW], st->overhead_ppb / 1e9);
	metric_one(f, format, &metrics[M_TIME], st->overhead_ns / 1e9);
	metric_head(f, format, &metrics[M_NMI]);
	fprintf(f, "%s{source=\"%s\"} %.15g\n", metrics[M_NMI].name, nmi_source(st),
		st->nmi_ns / 1e9);
	metric_head(f, format, &metrics[M_BPF]);
	fprintf(f, "%s{source=\"%s\"} %.15g\n", metrics[M_BPF].name, bpf_source(st),
		bpf_ns(st) / 1e9);
	if (st->period_asked)
		metric_one(f, format, &metrics[M_ASKED], st->period_asked);
	if (st->kernel_rate)
		metric_one(f, format, &metrics[M_RATE], st->kernel_rate);
	metric_one(f, format, &metrics[M_LOWERED], st->kernel_lowered);
	metric_one(f, format, &metrics[M_RSS_MAX], st->rss_max);
}

static double retry_s(const struct ibs_meta_status *st)
{
	double s = st->governor_retry_ns / 1e9 - clock_ns(CLOCK_BOOTTIME) / 1e9;

	return s > 0 ? s : 0;
}

void metrics_governor_json(FILE *f, const struct ibs_meta_status *st)
{
	const char *sep = "";

	fprintf(f, ",\"governor\":{\"state\":\"%s\",\"reason\":\"%s\",\"budget\":", state_name(st),
		reason_name(st));
	if (st->budget_ppb)
		fprintf(f, "%.9g", st->budget_ppb / 1e9);
	else
		fprintf(f, "null");
	fprintf(f, ",\"overhead\":%.9f,\"overhead_s\":%.6f", st->overhead_ppb / 1e9,
		st->overhead_ns / 1e9);
	metric_json_number(f, "period_asked", st->period_asked, st->period_asked);
	fprintf(f, ",\"nmi_ns\":%llu,\"nmi_source\":\"%s\"", st->nmi_ns, nmi_source(st));
	fprintf(f, ",\"bpf_ns\":%.0f,\"bpf_source\":\"%s\"", bpf_ns(st), bpf_source(st));
	metric_json_number(f, "kernel_max_sample_rate", st->kernel_rate, st->kernel_rate);
	fprintf(f, ",\"kernel_rate_lowered\":%llu", st->kernel_lowered);
	if (is_stopped(st))
		fprintf(f, ",\"retry_s\":%.1f", retry_s(st));
	fprintf(f, ",\"changes\":{");
	for (int i = GOVERNOR_REASON_NONE + 1; i < GOVERNOR_REASON_N; i++) {
		if (!st->governor_changes[i])
			continue;
		fprintf(f, "%s\"%s\":%llu", sep, governor_reason_name(i), st->governor_changes[i]);
		sep = ",";
	}
	fprintf(f, "}}");
}

static void print_changes(FILE *f, const struct ibs_meta_status *st)
{
	const char *sep = "; changes: ";

	for (int i = GOVERNOR_REASON_NONE + 1; i < GOVERNOR_REASON_N; i++) {
		if (!st->governor_changes[i])
			continue;
		fprintf(f, "%s%s %llu", sep, governor_reason_name(i), st->governor_changes[i]);
		sep = ", ";
	}
	fputc('\n', f);
}

void metrics_governor_text(FILE *f, const struct ibs_meta_status *st)
{
	fprintf(f, "governor: %s", state_name(st));
	if (st->governor_reason)
		fprintf(f, " (%s)", reason_name(st));
	if (is_stopped(st))
		fprintf(f, ", tried again in %.0f s", retry_s(st));
	else if (st->period && st->period != st->period_asked)
		fprintf(f, ", period %llu instead of %llu", st->period, st->period_asked);
	else if (st->period)
		fprintf(f, ", period %llu", st->period);
	print_changes(f, st);
	fprintf(f, "overhead: %.3f%% of the CPUs now", st->overhead_ppb / 1e7);
	if (st->budget_ppb)
		fprintf(f, ", budget %.3g%%", st->budget_ppb / 1e7);
	fprintf(f, "; %llu ns a sample without BPF, %s, and %.0f in BPF, %s", st->nmi_ns,
		nmi_source(st), bpf_ns(st), bpf_source(st));
	if (st->kernel_lowered)
		fprintf(f, "; the kernel lowered its limit %llu times, to %llu/s",
			st->kernel_lowered, st->kernel_rate);
	fputc('\n', f);
}

void metrics_governor_list(FILE *f)
{
	for (int m = 0; m < METRICS; m++)
		metric_describe(f, &metrics[m]);
}
