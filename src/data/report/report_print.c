// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report_print.h"
#include "report_private.h"

#include "base/utf8.h"
#include "table/table.h"
#include "base/text.h"

#include <math.h>
#include <stdarg.h>

#define ABSENT "[unknown]"

/* --- text --- */

static const char *or_unknown(const char *text)
{
	return *text ? text : "unknown";
}

void report_print_line(FILE *f, const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		out_of_memory();
	va_end(ap);
	utf8_put(f, text);
	fputc('\n', f);
	free(text);
}

/* "12,402" */
static const char *count(char buf[32], __u64 v)
{
	screen_count(&(const struct screen){}, v, buf, 32);
	return buf;
}

/* ", 2 CPUs" */
static const char *cpus_of(const struct trace_info *info, char buf[32])
{
	*buf = 0;
	if (info->n_cpus)
		snprintf(buf, 32, ", %u CPU%s", info->n_cpus, text_plural(info->n_cpus));
	return buf;
}

static void print_machine(FILE *f, const struct trace_info *info)
{
	const char *generation = cpu_generation(&info->cpu);
	const bool named = strstr(info->cpu.name, generation);
	char cpu[128] = "processor unknown", cpus[32];

	if (info->has_cpu)
		snprintf(cpu, sizeof(cpu), "%s (%s%sfamily 0x%x model 0x%x)",
			 or_unknown(info->cpu.name), named ? "" : generation, named ? "" : ", ",
			 info->cpu.family, info->cpu.model);
	cpus_of(info, cpus);
	report_print_line(f, "machine   %s%s, host %s, Linux %s", cpu, cpus, or_unknown(info->host),
			  or_unknown(info->release));
}

/* @head: the sum of several recordings. What they have in common is printed once. */
static void print_parts(FILE *f, const struct report_head *head)
{
	struct intern hosts = {}, lines = {};

	for (size_t i = 0; i < head->n_parts; i++) {
		const struct trace_info *info = head->part[i].info;
		char line[512], cpu[160];
		size_t known = lines.n;

		intern_get(&hosts, info->host);
		snprintf(line, sizeof(line), "%s, %u CPU%s, Linux %s, %s, period %s",
			 cpu_text(&info->cpu, cpu, sizeof(cpu)), info->n_cpus,
			 text_plural(info->n_cpus), or_unknown(info->release),
			 info->n_pmus ? info->pmu[0].name : "no event",
			 TEXT_COUNT(info->n_pmus ? info->pmu[0].period : 0));
		intern_get(&lines, line);
		if (lines.n > known)
			report_print_line(f, "machine   %s", line);
	}
	fprintf(f, "files     %zu recording%s of %zu host%s\n", head->n_parts,
		text_plural(head->n_parts), hosts.n, text_plural(hosts.n));
	intern_free(&hosts);
	intern_free(&lines);
}

/* "ibs_op//, period 100,000" */
static void put_event(FILE *f, const struct trace_pmu *p)
{
	char number[32];

	utf8_put(f, p->name);
	if (!p->period)
		fputs(p->reach ? ", period varies" : ", period unknown", f);
	else if (p->freq)
		fprintf(f, ", %s samples a second", count(number, p->period));
	else
		fprintf(f, ", period %s", count(number, p->period));
}

static void print_events(FILE *f, const struct trace_info *info)
{
	for (unsigned int i = 0; i < info->n_pmus; i++) {
		fputs("event     ", f);
		put_event(f, &info->pmu[i]);
		fputc('\n', f);
	}
}

/* @of: the event, if there are two */
static void print_ledger(FILE *f, const struct ledger *l, const char *of)
{
	char lost[32], seen[32];

	fprintf(f, "%s of %s samples%s%s seen", count(lost, ledger_sum(l, IBS_OUTCOME_KIND_LOST)),
		count(seen, l->seen), of ? " of " : "", of ?: "");
	if (l->pmu_exact)
		fprintf(f, ", %s unseen", TEXT_COUNT(l->unseen));
}

static const char *event_pmu(const struct trace_pmu *p)
{
	return p->op ? "ibs_op" : "ibs_fetch";
}

static void print_lost(FILE *f, const struct report_head *h)
{
	if (h->end->has_ledger) {
		if (h->end->n_ledgers < 2)
			print_ledger(f, &h->end->ledger, NULL);
		for (unsigned int i = 0; h->end->n_ledgers == 2 && i < 2; i++) {
			fputs(i ? "; " : "", f);
			print_ledger(f, &h->end->event_ledger[i],
				     report_strata_of(h->info, i) ?: event_pmu(&h->info->pmu[i]));
		}
		if (h->lost_samples || h->lost_records)
			fputs("; by notices in between ", f);
	} else if (!h->lost_samples && !h->lost_records) {
		fputs("not recorded", f);
	}
	if (h->lost_samples)
		fprintf(f, "%s samples", TEXT_COUNT(h->lost_samples));
	if (h->lost_records)
		fprintf(f, "%s%s records of %s", h->lost_samples ? " and " : "",
			TEXT_COUNT(h->lost_records), trace_lost_kind(h->info));
}

static void print_file(FILE *f, const struct report_head *h)
{
	const struct trace_end *end = h->end;
	char skipped[96] = "";

	if (end->skipped_blocks)
		snprintf(skipped, sizeof(skipped), " (%s blocks, %s bytes skipped)",
			 TEXT_COUNT(end->skipped_blocks), TEXT_COUNT(end->skipped_bytes));
	if (end->whole && !end->skipped_blocks)
		report_print_line(f, "file      %s (%s), complete", h->file,
				  or_unknown(h->info->format ?: ""));
	else
		report_print_line(f, "file      %s (%s), INCOMPLETE: %s%s", h->file,
				  or_unknown(h->info->format ?: ""),
				  end->missing[0] ? end->missing : "parts are damaged", skipped);
}

static void print_incomplete(FILE *f, const struct report_head *h)
{
	for (size_t i = 0; i < h->n_parts; i++)
		if (!h->part[i].end->whole)
			print_file(f, &h->part[i]);
	if (!h->n_parts && *h->file && (!h->end->whole || h->end->skipped_blocks))
		print_file(f, h);
}

/* What the samples are and how many, and whether any are missing. */
static void print_short(FILE *f, const struct report_head *h)
{
	const struct trace_info *info = h->info;
	const __u64 samples = h->op_samples + h->fetch_samples;
	char number[32], selected[64] = "", recordings[64], cpus[32];

	if (h->selected != samples)
		snprintf(selected, sizeof(selected), ", %s selected", count(number, h->selected));
	snprintf(recordings, sizeof(recordings), "%zu recordings", h->n_parts);
	utf8_put(f, h->n_parts ? recordings : *h->file ? h->file : "live");
	fprintf(f, ": %s sample%s%s", count(number, samples), text_plural(samples), selected);
	if (h->shown) {
		fputs(", ", f);
		utf8_put(f, h->shown);
	}
	fputs("; lost: ", f);
	print_lost(f, h);
	fprintf(f, "\n%s%s%s, host ", info->simulated ? "SIMULATED samples: " : "",
		info->has_cpu ? cpu_generation(&info->cpu) : "processor unknown",
		cpus_of(info, cpus));
	utf8_put(f, or_unknown(info->host));
	for (unsigned int i = 0; i < info->n_pmus; i++) {
		fputs("; ", f);
		put_event(f, &info->pmu[i]);
	}
	fputc('\n', f);
	print_incomplete(f, h);
}

static void print_all(FILE *f, const struct report_head *h, enum ibs_metric metric)
{
	char number[32], fetches[32];

	if (h->n_parts) {
		print_parts(f, h);
	} else {
		print_machine(f, h->info);
		print_events(f, h->info);
	}
	if (h->info->filter[0])
		report_print_line(f, "recorded  %s", h->info->filter);
	if (*h->options)
		report_print_line(f, "options   %s", h->options);
	fprintf(f, "samples   %s", count(number, h->op_samples + h->fetch_samples));
	if (h->fetch_samples)
		fprintf(f, " (%s of ops, %s of fetches)", count(number, h->op_samples),
			count(fetches, h->fetch_samples));
	fprintf(f, ", selected %s\nlost      ", count(number, h->selected));
	print_lost(f, h);
	fputc('\n', f);
	if (h->end->whole && !h->end->skipped_blocks && !h->n_parts && *h->file)
		print_file(f, h);
	print_incomplete(f, h);
	fprintf(f,
		"latency   %s, core cycles; percentiles are upper edges of buckets, at most 1/8 "
		"too high\n",
		metric_name(metric));
	if (h->info->simulated)
		fputs("SIMULATED samples, not measurements\n", f);
}

void report_print_head(FILE *f, const struct report_head *h, enum ibs_metric metric)
{
	if (log_is_verbose())
		print_all(f, h, metric);
	else
		print_short(f, h);
}

/* @buckets: NULL for those of the row itself */
static void view_row(const struct report_table *t, const struct report_row *row,
		     const __u64 *buckets, struct table_row *out)
{
	*out = (struct table_row){ .all = { .samples = row->samples,
					    .valid = row->valid,
					    .sum = row->sum,
					    .ops = row->has_estimated ? row->estimated : 0 },
				   .cycles = report_value(t, row, TABLE_CYCLES),
				   .waits = row->waits,
				   .value = xcalloc(TABLE_COLUMNS, sizeof(*out->value)) };
	for (enum table_column c = 0; c < TABLE_COLUMNS; c++)
		out->value[c] = report_value(t, row, c);
	out->all.buckets = xcalloc(IBS_LAT_BUCKETS, sizeof(*buckets));
	if (buckets)
		memcpy(out->all.buckets, buckets, IBS_LAT_BUCKETS * sizeof(*buckets));
	else
		report_buckets(row, out->all.buckets);
	report_strata_row(t, row, out);
	for (unsigned int k = 0; row->label && k < t->opts->n_by; k++) {
		out->name[k] = table_name(row->label[k] ?: ABSENT, t->opts->by[k]);
	}
}

void report_print_balance(FILE *f, const struct report_table *t)
{
	if (t->n_ranks > 1 && !isnan(t->total.imbalance))
		fprintf(f, "\nimbalance %.2f over %zu ranks: rank %u has most miss cycles\n",
			t->total.imbalance, t->n_ranks, t->total.busiest);
	report_kinds_print(f, &t->kinds);
}

static void print_trust(FILE *f, const struct screen *screen, enum table_format format,
			const struct table *view)
{
	char *text = table_trust_text(screen, view);

	format_lines(f, format, text);
	free(text);
}

static void print_text(FILE *f, const struct screen *screen, enum table_format format,
		       const struct report_head *head, const struct report_table *t,
		       const enum table_column *columns, unsigned int n)
{
	static const enum table_column priced[] = { TABLE_CYCLES,  TABLE_PRICE, TABLE_SAMPLE_SHARE,
						    TABLE_MEAN,	   TABLE_PAGES, TABLE_MISPLACED,
						    TABLE_SAMPLES, TABLE_SHARE };
	static const enum table_column of_fields[] = { TABLE_SAMPLES, TABLE_LOADS, TABLE_STORES,
						       TABLE_DRAM,    TABLE_HITM,  TABLE_P50,
						       TABLE_P99,     TABLE_CYCLES };
	const bool fields = t->opts->type && report_by(t->opts, LABEL_FIELD_OFFSET);
	const char *keys[LABEL_ALL];
	char ops[32] = "", *text;
	size_t size;
	FILE *lines;
	struct table view = { .key = keys,
			      .n_keys = t->opts->n_by,
			      .ops = ops,
			      .data = t->opts->threads,
			      .spread = t->n_ranks > 1 && !report_by(t->opts, LABEL_RANK),
			      .metric = t->opts->metric,
			      .sort = t->sort,
			      .n = t->n,
			      .n_rest = t->n_rest,
			      .row = xcalloc(t->n, sizeof(*view.row)) };

	for (unsigned int k = 0; k < view.n_keys; k++)
		keys[k] = report_key_title(t->opts, t->opts->by[k]);
	for (const char *c = t->estimated_unit ?: "ops"; *c; c++)
		snprintf(ops + strlen(ops), sizeof(ops) - strlen(ops), "%s%c", *ops ? "" : "EST. ",
			 *c - ('a' - 'A'));
	for (size_t i = 0; i < t->n; i++)
		view_row(t, &t->rows[i], NULL, &view.row[i]);
	view_row(t, &t->rest, t->rest_buckets, &view.rest);
	view_row(t, &t->total, t->total_buckets, &view.total);
	lines = xmemopen(&text, &size);
	report_print_head(lines, head, t->opts->metric);
	fputc('\n', lines);
	xmemclose(lines);
	format_lines(f, format, text);
	free(text);
	if (t->opts->price && !n) {
		view.usual = priced;
		view.n_usual = ARRAY_SIZE(priced);
	}
	if (fields && !n) {
		view.usual = of_fields;
		view.n_usual = ARRAY_SIZE(of_fields);
	}
	if (!t->n && !t->n_rest)
		format_lines(f, format, "no samples\n");
	else
		format_table(f, format, screen, &view, n ? columns : NULL, n);
	print_trust(f, screen, format, &view);
	table_free(&view);
}

/* What programs get: of an inlined function its name alone. */
static const char *name_of(const struct report_table *t, const struct report_row *row,
			   unsigned int k)
{
	return t->opts->by[k] == LABEL_SYMBOL && row->inlined ? row->inlined->name : row->label[k];
}

/* --- CSV --- */

static void csv_inlined(FILE *f, const struct report_inlined *i)
{
	fputc(',', f);
	utf8_put_csv(f, i ? i->into : "");
	fputc(',', f);
	utf8_put_csv(f, i && i->into_mangled ? i->into_mangled : "");
}

/* The last column says where samples are from, so that those of the simulation are not mistaken. */
static void csv_row(FILE *f, const struct report_table *t, const struct report_row *row,
		    const enum table_column *columns, unsigned int n)
{
	const char *source = t->opts->info->source;

	for (unsigned int k = 0; k < t->opts->n_by; k++) {
		if (k)
			fputc(',', f);
		if (!row->label && !k)
			fputs("[rest]", f);
		else if (row->label && row->label[k])
			utf8_put_csv(f, name_of(t, row, k));
	}
	for (unsigned int c = 0; c < n; c++)
		column_csv(f, column_find(&report_columns, columns[c]),
			   report_value(t, row, columns[c]));
	for (unsigned int k = 0; k < t->opts->n_by; k++) {
		if (!report_is_name(t->opts->by[k]))
			continue;
		fputc(',', f);
		utf8_put_csv(f, row->label && row->mangled[k] ? row->mangled[k] : "");
	}
	if (report_by(t->opts, LABEL_SYMBOL))
		csv_inlined(f, row->inlined);
	fputc(',', f);
	utf8_put_csv(f, source ? source : "");
	fputc('\n', f);
}

static void print_csv(FILE *f, const struct report_table *t, const enum table_column *columns,
		      unsigned int n)
{
	for (unsigned int k = 0; k < t->opts->n_by; k++)
		fprintf(f, "%s%s", k ? "," : "", label_name(t->opts->by[k]));
	for (unsigned int c = 0; c < n; c++)
		fprintf(f, ",%s", column_find(&report_columns, columns[c])->name);
	for (unsigned int k = 0; k < t->opts->n_by; k++)
		if (report_is_name(t->opts->by[k]))
			fprintf(f, ",%s_mangled", label_name(t->opts->by[k]));
	if (report_by(t->opts, LABEL_SYMBOL))
		fputs(",inlined_into,inlined_into_mangled", f);
	fputs(",source\n", f);
	for (size_t i = 0; i < t->n; i++)
		csv_row(f, t, &t->rows[i], columns, n);
	if (t->n_rest)
		csv_row(f, t, &t->rest, columns, n);
}

/* --- JSON --- */

static void put_cpu(struct json_writer *w, const struct trace_info *info)
{
	const struct cpu_info *c = &info->cpu;

	if (!info->has_cpu) {
		json_put_null(w, "cpu");
		return;
	}
	json_begin_object(w, "cpu");
	json_put_text_if_any(w, "vendor", c->vendor);
	json_put_text_if_any(w, "name", c->name);
	json_put_text_if_any(w, "generation", cpu_generation(c));
	json_put_u64(w, "family", c->family);
	json_put_u64(w, "model", c->model);
	json_end(w);
}

static void put_ledger(struct json_writer *w, const struct ledger *l)
{
	if (!l) {
		json_put_null(w, "ledger");
		return;
	}
	json_begin_object(w, "ledger");
	json_put_u64(w, "seen", l->seen);
	json_put_u64(w, "forwarded", ledger_sum(l, IBS_OUTCOME_KIND_FORWARDED));
	json_put_u64(w, "filtered", ledger_sum(l, IBS_OUTCOME_KIND_FILTERED));
	json_put_known(w, "unseen", l->pmu_exact, l->unseen);
	json_put_u64(w, "lost", ledger_sum(l, IBS_OUTCOME_KIND_LOST));
	json_end(w);
}

static void put_events(struct json_writer *w, const struct trace_info *info,
		       const struct trace_end *end)
{
	json_begin_array(w, "events");
	for (unsigned int i = 0; i < info->n_pmus; i++) {
		const struct trace_pmu *p = &info->pmu[i];

		json_begin_object(w, NULL);
		json_put_text_if_any(w, "name", p->name);
		json_put_known(w, "period", p->period && !p->freq, p->period);
		json_put_known(w, "freq", p->period && p->freq, p->period);
		json_put_text(w, "pmu", event_pmu(p));
		if (trace_has_strata(info))
			json_put_text(w, "stratum", stratum_name(i));
		put_ledger(w, i < end->n_ledgers ? &end->event_ledger[i] : NULL);
		json_end(w);
	}
	json_end(w);
}

void report_head_put(struct json_writer *w, const struct report_head *h, enum ibs_metric metric)
{
	const struct trace_info *info = h->info;
	const struct trace_end *end = h->end;

	json_put_text_if_any(w, "file", h->file);
	json_put_text_if_any(w, "format", info->format);
	json_put_text_if_any(w, "source", info->source);
	json_put_bool(w, "simulated", info->simulated);
	json_put_text_if_any(w, "host", info->host);
	json_put_text_if_any(w, "release", info->release);
	json_put_text_if_any(w, "command", info->command);
	json_put_known(w, "cpus", info->n_cpus, info->n_cpus);
	put_cpu(w, info);
	put_events(w, info, end);
	json_put_text_if_any(w, "filter", info->filter);
	json_put_text_if_any(w, "options", h->options);
	json_begin_object(w, "samples");
	json_put_u64(w, "op", h->op_samples);
	json_put_u64(w, "fetch", h->fetch_samples);
	json_put_u64(w, "selected", h->selected);
	json_end(w);
	json_begin_object(w, "lost");
	json_put_u64(w, "samples", h->lost_samples);
	json_put_u64(w, "records", h->lost_records);
	json_end(w);
	put_ledger(w, end->has_ledger ? &end->ledger : NULL);
	json_put_bool(w, "whole", end->whole && !end->skipped_blocks);
	json_put_text_if_any(w, "missing", end->missing);
	json_put_u64(w, "skipped_blocks", end->skipped_blocks);
	json_put_u64(w, "skipped_bytes", end->skipped_bytes);
	json_put_text_if_any(w, "metric", metric_name(metric));
}

static void put_values(struct json_writer *w, const struct report_table *t,
		       const struct report_row *row, const enum table_column *columns,
		       unsigned int n)
{
	for (unsigned int c = 0; c < n; c++)
		column_json(w, &report_columns, column_find(&report_columns, columns[c]),
			    report_value(t, row, columns[c]));
}

static void put_inlined(struct json_writer *w, const struct report_inlined *i)
{
	if (!i) {
		json_put_null(w, "inlined_into");
		return;
	}
	json_begin_object(w, "inlined_into");
	json_put_text(w, "symbol", i->into);
	json_put_text(w, "mangled", i->into_mangled);
	json_end(w);
}

static void put_row(struct json_writer *w, const struct report_table *t,
		    const struct report_row *row, const enum table_column *columns, unsigned int n)
{
	json_line_break(w);
	json_begin_object(w, NULL);
	json_begin_object(w, "labels");
	for (unsigned int k = 0; k < t->opts->n_by; k++)
		json_put_text(w, label_name(t->opts->by[k]), name_of(t, row, k));
	json_end(w);
	json_begin_object(w, "mangled");
	for (unsigned int k = 0; k < t->opts->n_by; k++)
		if (report_is_name(t->opts->by[k]))
			json_put_text(w, label_name(t->opts->by[k]), row->mangled[k]);
	json_end(w);
	if (report_by(t->opts, LABEL_SYMBOL))
		put_inlined(w, row->inlined);
	put_values(w, t, row, columns, n);
	json_end(w);
}

static void print_json(FILE *f, const struct report_head *head, const struct report_table *t,
		       const enum table_column *columns, unsigned int n)
{
	struct json_writer w = { .f = f };

	json_begin_object(&w, NULL);
	report_head_put(&w, head, t->opts->metric);
	json_begin_array(&w, "recordings");
	for (size_t i = 0; i < head->n_parts; i++) {
		json_begin_object(&w, NULL);
		report_head_put(&w, &head->part[i], t->opts->metric);
		json_end(&w);
	}
	json_end(&w);
	json_put_u64(&w, "ranks", t->n_ranks);
	json_put_known(&w, "busiest_rank", !isnan(t->total.imbalance), t->total.busiest);
	report_kinds_put(&w, &t->kinds);
	json_put_text_if_any(&w, "estimated_unit", t->estimated_unit);
	json_begin_array(&w, "by");
	for (unsigned int k = 0; k < t->opts->n_by; k++)
		json_put_text(&w, NULL, label_name(t->opts->by[k]));
	json_end(&w);
	json_begin_array(&w, "rows");
	for (size_t i = 0; i < t->n; i++)
		put_row(&w, t, &t->rows[i], columns, n);
	json_end(&w);
	json_line_break(&w);
	json_begin_object(&w, "rest");
	json_put_u64(&w, "rows", t->n_rest);
	put_values(&w, t, &t->rest, columns, n);
	json_end(&w);
	json_line_break(&w);
	json_begin_object(&w, "total");
	put_values(&w, t, &t->total, columns, n);
	json_finish(&w);
}

void report_print(FILE *f, const struct screen *screen, enum table_format format,
		  const struct report_head *head, const struct report_table *t,
		  const enum table_column *columns, unsigned int n_columns)
{
	switch (format) {
	case FORMAT_CSV:
		print_csv(f, t, columns, n_columns);
		break;
	case FORMAT_JSON:
		print_json(f, head, t, columns, n_columns);
		break;
	default:
		print_text(f, screen, format, head, t, columns, n_columns);
	}
}
