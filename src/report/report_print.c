// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report_print.h"

#include "base/utf8.h"

#include <string.h>

#define MAX_PAD 48 /* a longer label moves what follows it on its line only */
#define ABSENT	"[unknown]"
#define EMPTY	"[none]" /* a cgroup that is in no container */

typedef unsigned long long ull;

#define WIDTH(id, name, width, ...) width,
static const int widths[] = { REPORT_COLUMN_TABLE(WIDTH) };

static bool has_key(const struct report_table *t, enum report_key key)
{
	for (unsigned int k = 0; k < t->opts->n_by; k++)
		if (t->opts->by[k] == key)
			return true;
	return false;
}

static bool number(char *buf, size_t size, bool known, ull v)
{
	if (known)
		snprintf(buf, size, "%llu", v);
	return known;
}

static bool percentile(char *buf, size_t size, long p)
{
	return number(buf, size, p >= 0, p);
}

/* In text a share is in percent, for programs it is a fraction. */
static bool share(char *buf, size_t size, __u64 part, __u64 all, bool percent)
{
	if (!all)
		return false;
	if (percent)
		snprintf(buf, size, "%.2f%%", 100.0 * part / all);
	else
		snprintf(buf, size, "%.9g", (double)part / all);
	return true;
}

/* What a column says of a row. Return: false if it says nothing. */
static bool value(const struct report_table *t, const struct report_row *row,
		  enum report_column column, bool text, char *buf, size_t size)
{
	bool one = row->label; /* else of several, whose sets were not joined */

	switch (column) {
	case REPORT_COLUMN_SAMPLES:
		return number(buf, size, true, row->samples);
	case REPORT_COLUMN_SHARE:
		return share(buf, size, row->samples, t->total.samples, text);
	case REPORT_COLUMN_ESTIMATED:
		return number(buf, size, row->has_estimated, row->estimated);
	case REPORT_COLUMN_VALID:
		return number(buf, size, true, row->valid);
	case REPORT_COLUMN_MEAN:
		if (row->valid)
			snprintf(buf, size, "%.1f", (double)row->sum / row->valid);
		return row->valid;
	case REPORT_COLUMN_P50:
		return percentile(buf, size, row->p50);
	case REPORT_COLUMN_P90:
		return percentile(buf, size, row->p90);
	case REPORT_COLUMN_P99:
		return percentile(buf, size, row->p99);
	case REPORT_COLUMN_MAX:
		return number(buf, size, row->valid, row->max);
	case REPORT_COLUMN_TOTAL:
		return number(buf, size, row->valid, row->sum);
	case REPORT_COLUMN_TOTAL_SHARE:
		return row->valid && share(buf, size, row->sum, t->total.sum, text);
	case REPORT_COLUMN_LOADS:
		return number(buf, size, true, row->loads);
	case REPORT_COLUMN_STORES:
		return number(buf, size, true, row->stores);
	case REPORT_COLUMN_OFFSETS:
		return number(buf, size, one && row->offsets && has_key(t, REPORT_KEY_LINE),
			      row->offsets);
	case REPORT_COLUMN_CPUS:
		return number(buf, size, one && row->cpus, row->cpus);
	case REPORT_COLUMN_THREADS:
		return number(buf, size, one && row->threads, row->threads);
	default:
		return false;
	}
}

/* --- text --- */

static const char *or_unknown(const char *text)
{
	return *text ? text : "not told";
}

static void print_machine(FILE *f, const struct trace_info *info)
{
	fputs("machine   ", f);
	if (info->has_cpu) {
		utf8_put(f, or_unknown(info->cpu.name));
		fprintf(f, " (%s, family 0x%x model 0x%x)", cpu_generation(&info->cpu),
			info->cpu.family, info->cpu.model);
	} else {
		fputs("processor not told", f);
	}
	if (info->n_cpus)
		fprintf(f, ", %u CPUs", info->n_cpus);
	fputs(", host ", f);
	utf8_put(f, or_unknown(info->host));
	fputs(", Linux ", f);
	utf8_put(f, or_unknown(info->release));
	fputc('\n', f);
}

static void print_events(FILE *f, const struct trace_info *info)
{
	for (unsigned int i = 0; i < info->n_pmus; i++) {
		const struct trace_pmu *p = &info->pmu[i];

		fputs("event     ", f);
		utf8_put(f, p->name);
		if (!p->period)
			fputs(", period not told", f);
		else if (p->freq)
			fprintf(f, ", %llu samples a second", (ull)p->period);
		else
			fprintf(f, ", period %llu", (ull)p->period);
		fputc('\n', f);
	}
}

static void print_lost(FILE *f, const struct report_head *h)
{
	const struct ledger *l = &h->end->ledger;
	__u64 lost = h->end->has_ledger ? ledger_sum(l, IBS_OUTCOME_KIND_LOST) : 0;

	fputs("lost      ", f);
	if (h->end->has_ledger) {
		fprintf(f, "%llu of %llu samples seen", (ull)lost, (ull)l->seen);
		if (l->pmu_exact)
			fprintf(f, ", %llu unseen", (ull)l->unseen);
		if (h->lost_samples || h->lost_records)
			fputs("; by notices in between ", f);
	} else if (!h->lost_samples && !h->lost_records) {
		fputs("none told", f);
	}
	if (h->lost_samples)
		fprintf(f, "%llu samples", (ull)h->lost_samples);
	if (h->lost_records)
		fprintf(f, "%s%llu records of unknown kind", h->lost_samples ? " and " : "",
			(ull)h->lost_records);
	fputc('\n', f);
}

void report_print_head(FILE *f, const struct report_head *h, enum ibs_metric metric)
{
	const struct trace_end *end = h->end;

	print_machine(f, h->info);
	print_events(f, h->info);
	if (h->info->filter[0]) {
		fputs("recorded  ", f);
		utf8_put(f, h->info->filter);
		fputc('\n', f);
	}
	if (*h->options) {
		fputs("options   ", f);
		utf8_put(f, h->options);
		fputc('\n', f);
	}
	fprintf(f, "samples   %llu", (ull)(h->op_samples + h->fetch_samples));
	if (h->fetch_samples)
		fprintf(f, " (%llu of ops, %llu of fetches)", (ull)h->op_samples,
			(ull)h->fetch_samples);
	fprintf(f, ", selected %llu", (ull)h->selected);
	fputc('\n', f);
	print_lost(f, h);
	fputs("file      ", f);
	utf8_put(f, h->file);
	fprintf(f, " (%s), ", or_unknown(h->info->format ?: ""));
	if (end->whole && !end->skipped_blocks) {
		fputs("complete\n", f);
	} else {
		fputs("INCOMPLETE: ", f);
		utf8_put(f, end->missing[0] ? end->missing : "parts are damaged");
		if (end->skipped_blocks)
			fprintf(f, " (%llu blocks, %llu bytes skipped)", (ull)end->skipped_blocks,
				(ull)end->skipped_bytes);
		fputc('\n', f);
	}
	fprintf(f,
		"latency   %s, core cycles; percentiles are upper edges of buckets, at most 1/8 "
		"too high\n",
		metric_name(metric));
	if (h->info->simulated)
		fputs("SIMULATED samples, not measurements\n", f);
}

static void text_values(FILE *f, const struct report_table *t, const struct report_row *row,
			const enum report_column *columns, unsigned int n)
{
	char buf[64];

	for (unsigned int c = 0; c < n; c++)
		fprintf(f, "%*s ", widths[columns[c]],
			value(t, row, columns[c], true, buf, sizeof(buf)) ? buf : "-");
}

static const char *label_text(const char *label)
{
	return !label ? ABSENT : *label ? label : EMPTY;
}

static int pad_of(const struct report_table *t, unsigned int k)
{
	size_t most = strlen(report_key_name(t->opts->by[k]));

	for (size_t i = 0; i < t->n; i++) {
		size_t n = utf8_count(label_text(t->rows[i].label[k]));

		most = n > most ? n : most;
	}
	return most > MAX_PAD ? MAX_PAD : most;
}

static void text_labels(FILE *f, const struct report_table *t, const struct report_row *row,
			const int *pad)
{
	for (unsigned int k = 0; k < t->opts->n_by; k++) {
		size_t n;

		fputc(' ', f);
		n = utf8_put(f, label_text(row->label[k]));
		for (; k + 1 < t->opts->n_by && n < (size_t)pad[k]; n++)
			fputc(' ', f);
	}
	fputc('\n', f);
}

static void print_text(FILE *f, const struct report_head *head, const struct report_table *t,
		       const enum report_column *columns, unsigned int n)
{
	int pad[REPORT_KEY_N];

	report_print_head(f, head, t->opts->metric);
	fputc('\n', f);
	for (unsigned int c = 0; c < n; c++) {
		bool unit = columns[c] == REPORT_COLUMN_ESTIMATED && t->estimated_unit;
		char heading[32];

		snprintf(heading, sizeof(heading), "%s%s", unit ? "est. " : "",
			 unit ? t->estimated_unit : report_column_name(columns[c]));
		fprintf(f, "%*s ", widths[columns[c]], heading);
	}
	for (unsigned int k = 0; k < t->opts->n_by; k++) {
		pad[k] = pad_of(t, k);
		fprintf(f, " %-*s", k + 1 < t->opts->n_by ? pad[k] : 0,
			report_key_name(t->opts->by[k]));
	}
	fputc('\n', f);
	for (size_t i = 0; i < t->n; i++) {
		text_values(f, t, &t->rows[i], columns, n);
		text_labels(f, t, &t->rows[i], pad);
	}
	if (t->n_rest) {
		text_values(f, t, &t->rest, columns, n);
		fprintf(f, " (%zu more rows)\n", t->n_rest);
	}
	text_values(f, t, &t->total, columns, n);
	fputs(" (total)\n", f);
}

/* --- CSV --- */

/* The last column says where samples are from, so that those of the simulation are not mistaken. */
static void csv_row(FILE *f, const struct report_table *t, const struct report_row *row,
		    const enum report_column *columns, unsigned int n)
{
	const char *source = t->opts->info->source;
	char buf[64];

	for (unsigned int k = 0; k < t->opts->n_by; k++) {
		if (k)
			fputc(',', f);
		if (!row->label && !k)
			fputs("[rest]", f);
		else if (row->label && row->label[k])
			utf8_put_csv(f, row->label[k]);
	}
	for (unsigned int c = 0; c < n; c++) {
		fputc(',', f);
		if (value(t, row, columns[c], false, buf, sizeof(buf)))
			fputs(buf, f);
	}
	fputc(',', f);
	utf8_put_csv(f, source ? source : "");
	fputc('\n', f);
}

static void print_csv(FILE *f, const struct report_table *t, const enum report_column *columns,
		      unsigned int n)
{
	for (unsigned int k = 0; k < t->opts->n_by; k++)
		fprintf(f, "%s%s", k ? "," : "", report_key_name(t->opts->by[k]));
	for (unsigned int c = 0; c < n; c++)
		fprintf(f, ",%s", report_column_name(columns[c]));
	fputs(",source\n", f);
	for (size_t i = 0; i < t->n; i++)
		csv_row(f, t, &t->rows[i], columns, n);
	if (t->n_rest)
		csv_row(f, t, &t->rest, columns, n);
}

/* --- JSON --- */

static void json_text(FILE *f, const char *name, const char *text)
{
	fprintf(f, "\"%s\":", name);
	if (text && *text)
		utf8_put_json(f, text);
	else
		fputs("null", f);
	fputc(',', f);
}

static void json_number(FILE *f, const char *name, bool known, ull v)
{
	char buf[32];

	fprintf(f, "\"%s\":%s,", name, number(buf, sizeof(buf), known, v) ? buf : "null");
}

static void json_bool(FILE *f, const char *name, bool v)
{
	fprintf(f, "\"%s\":%s,", name, v ? "true" : "false");
}

static void json_machine(FILE *f, const struct trace_info *info)
{
	json_text(f, "host", info->host);
	json_text(f, "release", info->release);
	json_text(f, "command", info->command);
	json_number(f, "cpus", info->n_cpus, info->n_cpus);
	fputs("\"cpu\":", f);
	if (info->has_cpu) {
		fputc('{', f);
		json_text(f, "vendor", info->cpu.vendor);
		json_text(f, "name", info->cpu.name);
		json_text(f, "generation", cpu_generation(&info->cpu));
		json_number(f, "family", true, info->cpu.family);
		fprintf(f, "\"model\":%u},", info->cpu.model);
	} else {
		fputs("null,", f);
	}
	fputs("\"events\":[", f);
	for (unsigned int i = 0; i < info->n_pmus; i++) {
		const struct trace_pmu *p = &info->pmu[i];

		fputs(i ? ",{" : "{", f);
		json_text(f, "name", p->name);
		json_number(f, "period", p->period && !p->freq, p->period);
		json_number(f, "freq", p->period && p->freq, p->period);
		fprintf(f, "\"pmu\":\"%s\"}", p->op ? "ibs_op" : "ibs_fetch");
	}
	fputs("],", f);
}

static void json_head(FILE *f, const struct report_head *h)
{
	const struct trace_info *info = h->info;
	const struct trace_end *end = h->end;
	const struct ledger *l = &end->ledger;

	json_text(f, "file", h->file);
	json_text(f, "format", info->format);
	json_text(f, "source", info->source);
	json_bool(f, "simulated", info->simulated);
	json_machine(f, info);
	json_text(f, "filter", info->filter);
	json_text(f, "options", h->options);
	fprintf(f, "\"samples\":{\"op\":%llu,\"fetch\":%llu,\"selected\":%llu},",
		(ull)h->op_samples, (ull)h->fetch_samples, (ull)h->selected);
	fprintf(f, "\"lost\":{\"samples\":%llu,\"records\":%llu},", (ull)h->lost_samples,
		(ull)h->lost_records);
	if (end->has_ledger) {
		fprintf(f, "\"ledger\":{\"seen\":%llu,\"forwarded\":%llu,\"filtered\":%llu,",
			(ull)l->seen, (ull)ledger_sum(l, IBS_OUTCOME_KIND_FORWARDED),
			(ull)ledger_sum(l, IBS_OUTCOME_KIND_FILTERED));
		json_number(f, "unseen", l->pmu_exact, l->unseen);
		fprintf(f, "\"lost\":%llu},", (ull)ledger_sum(l, IBS_OUTCOME_KIND_LOST));
	} else {
		fputs("\"ledger\":null,", f);
	}
	json_bool(f, "whole", end->whole && !end->skipped_blocks);
	json_text(f, "missing", end->missing);
	json_number(f, "skipped_blocks", true, end->skipped_blocks);
	json_number(f, "skipped_bytes", true, end->skipped_bytes);
}

static void json_values(FILE *f, const struct report_table *t, const struct report_row *row,
			const enum report_column *columns, unsigned int n)
{
	char buf[64];

	for (unsigned int c = 0; c < n; c++)
		fprintf(f, "%s\"%s\":%s", c ? "," : "", report_column_name(columns[c]),
			value(t, row, columns[c], false, buf, sizeof(buf)) ? buf : "null");
}

static void json_row(FILE *f, const struct report_table *t, const struct report_row *row,
		     const enum report_column *columns, unsigned int n)
{
	fputs("{\"labels\":{", f);
	for (unsigned int k = 0; k < t->opts->n_by; k++) {
		fprintf(f, "%s\"%s\":", k ? "," : "", report_key_name(t->opts->by[k]));
		if (row->label[k])
			utf8_put_json(f, row->label[k]);
		else
			fputs("null", f);
	}
	fputs("},", f);
	json_values(f, t, row, columns, n);
	fputc('}', f);
}

static void print_json(FILE *f, const struct report_head *head, const struct report_table *t,
		       const enum report_column *columns, unsigned int n)
{
	fputc('{', f);
	json_head(f, head);
	json_text(f, "metric", metric_name(t->opts->metric));
	json_text(f, "estimated_unit", t->estimated_unit);
	fputs("\"by\":[", f);
	for (unsigned int k = 0; k < t->opts->n_by; k++)
		fprintf(f, "%s\"%s\"", k ? "," : "", report_key_name(t->opts->by[k]));
	fputs("],\"rows\":[", f);
	for (size_t i = 0; i < t->n; i++) {
		fputs(i ? ",\n" : "\n", f);
		json_row(f, t, &t->rows[i], columns, n);
	}
	fprintf(f, "],\n\"rest\":{\"rows\":%zu,", t->n_rest);
	json_values(f, t, &t->rest, columns, n);
	fputs("},\n\"total\":{", f);
	json_values(f, t, &t->total, columns, n);
	fputs("}}\n", f);
}

void report_print(FILE *f, enum report_format format, const struct report_head *head,
		  const struct report_table *t, const enum report_column *columns,
		  unsigned int n_columns)
{
	switch (format) {
	case REPORT_CSV:
		print_csv(f, t, columns, n_columns);
		break;
	case REPORT_JSON:
		print_json(f, head, t, columns, n_columns);
		break;
	default:
		print_text(f, head, t, columns, n_columns);
	}
}
