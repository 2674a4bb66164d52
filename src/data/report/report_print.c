// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "report_print.h"
#include "report_private.h"

#include "base/json.h"
#include "base/utf8.h"
#include "table/table.h"

#include <math.h>
#include <stdarg.h>

#define ABSENT "[unknown]"

typedef unsigned long long ull;

#define VIEW_COLUMN(id, name, column, ...) TABLE_##column,

static bool is_share(enum report_column c)
{
	return c == REPORT_COLUMN_SHARE || c == REPORT_COLUMN_SAMPLE_SHARE ||
	       c == REPORT_COLUMN_DRAM || c == REPORT_COLUMN_REMOTE || c == REPORT_COLUMN_HITM ||
	       c >= REPORT_COLUMN_L3_MISS;
}

/* What a column says of a row. Return: false if it says nothing. */
static bool value(const struct report_table *t, const struct report_row *row,
		  enum report_column column, char *buf, size_t size)
{
	double v = report_value(t, row, column);

	if (isnan(v))
		return false;
	if (column == REPORT_COLUMN_MEAN)
		snprintf(buf, size, "%.1f", v);
	else if (column == REPORT_COLUMN_LAST)
		snprintf(buf, size, "%.3f", v);
	else if (column == REPORT_COLUMN_IMBALANCE)
		snprintf(buf, size, "%.4f", v);
	else
		snprintf(buf, size, is_share(column) ? "%.9g" : "%.0f", v);
	return true;
}

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

static void print_machine(FILE *f, const struct trace_info *info)
{
	char cpu[128] = "processor unknown", cpus[32] = "";

	if (info->has_cpu)
		snprintf(cpu, sizeof(cpu), "%s (%s, family 0x%x model 0x%x)",
			 or_unknown(info->cpu.name), cpu_generation(&info->cpu), info->cpu.family,
			 info->cpu.model);
	if (info->n_cpus)
		snprintf(cpus, sizeof(cpus), ", %u CPUs", info->n_cpus);
	report_print_line(f, "machine   %s%s, host %s, Linux %s", cpu, cpus, or_unknown(info->host),
			  or_unknown(info->release));
}

/* @head: the sum of several recordings. What they have in common is printed once. */
static void print_parts(FILE *f, const struct report_head *head)
{
	struct intern hosts = {}, lines = {};

	for (size_t i = 0; i < head->n_parts; i++) {
		const struct trace_info *info = head->part[i].info;
		char line[512];
		size_t known = lines.n;

		intern_get(&hosts, info->host);
		snprintf(line, sizeof(line), "%s (%s), %u CPUs, Linux %s, %s, period %llu",
			 or_unknown(info->cpu.name), cpu_generation(&info->cpu), info->n_cpus,
			 or_unknown(info->release), info->n_pmus ? info->pmu[0].name : "no event",
			 info->n_pmus ? (ull)info->pmu[0].period : 0);
		intern_get(&lines, line);
		if (lines.n > known)
			report_print_line(f, "machine   %s", line);
	}
	fprintf(f, "files     %zu recording%s of %zu host%s\n", head->n_parts,
		head->n_parts == 1 ? "" : "s", hosts.n, hosts.n == 1 ? "" : "s");
	intern_free(&hosts);
	intern_free(&lines);
}

static void print_events(FILE *f, const struct trace_info *info)
{
	for (unsigned int i = 0; i < info->n_pmus; i++) {
		const struct trace_pmu *p = &info->pmu[i];
		char period[64] = "period unknown";

		if (p->period)
			snprintf(period, sizeof(period),
				 p->freq ? "%llu samples a second" : "period %llu", (ull)p->period);
		report_print_line(f, "event     %s, %s", p->name, period);
	}
}

/* @of: the event, if there are two */
static void print_ledger(FILE *f, const struct ledger *l, const char *of)
{
	fprintf(f, "%llu of %llu samples%s%s seen", (ull)ledger_sum(l, IBS_OUTCOME_KIND_LOST),
		(ull)l->seen, of ? " of " : "", of ?: "");
	if (l->pmu_exact)
		fprintf(f, ", %llu unseen", (ull)l->unseen);
}

static const char *event_pmu(const struct trace_pmu *p)
{
	return p->op ? "ibs_op" : "ibs_fetch";
}

static void print_lost(FILE *f, const struct report_head *h)
{
	fputs("lost      ", f);
	if (h->end->has_ledger) {
		if (h->end->n_ledgers < 2)
			print_ledger(f, &h->end->ledger, NULL);
		for (unsigned int i = 0; h->end->n_ledgers == 2 && i < 2; i++) {
			fputs(i ? "; " : "", f);
			print_ledger(f, &h->end->event_ledger[i], event_pmu(&h->info->pmu[i]));
		}
		if (h->lost_samples || h->lost_records)
			fputs("; by notices in between ", f);
	} else if (!h->lost_samples && !h->lost_records) {
		fputs("not recorded", f);
	}
	if (h->lost_samples)
		fprintf(f, "%llu samples", (ull)h->lost_samples);
	if (h->lost_records)
		fprintf(f, "%s%llu records of unknown kind", h->lost_samples ? " and " : "",
			(ull)h->lost_records);
	fputc('\n', f);
}

static void print_file(FILE *f, const struct report_head *h)
{
	const struct trace_end *end = h->end;
	char skipped[96] = "";

	if (end->skipped_blocks)
		snprintf(skipped, sizeof(skipped), " (%llu blocks, %llu bytes skipped)",
			 (ull)end->skipped_blocks, (ull)end->skipped_bytes);
	if (end->whole && !end->skipped_blocks)
		report_print_line(f, "file      %s (%s), complete", h->file,
				  or_unknown(h->info->format ?: ""));
	else
		report_print_line(f, "file      %s (%s), INCOMPLETE: %s%s", h->file,
				  or_unknown(h->info->format ?: ""),
				  end->missing[0] ? end->missing : "parts are damaged", skipped);
}

void report_print_head(FILE *f, const struct report_head *h, enum ibs_metric metric)
{
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
	fprintf(f, "samples   %llu", (ull)(h->op_samples + h->fetch_samples));
	if (h->fetch_samples)
		fprintf(f, " (%llu of ops, %llu of fetches)", (ull)h->op_samples,
			(ull)h->fetch_samples);
	fprintf(f, ", selected %llu\n", (ull)h->selected);
	print_lost(f, h);
	for (size_t i = 0; i < h->n_parts; i++)
		if (!h->part[i].end->whole)
			print_file(f, &h->part[i]);
	if (!h->n_parts && *h->file)
		print_file(f, h);
	fprintf(f,
		"latency   %s, core cycles; percentiles are upper edges of buckets, at most 1/8 "
		"too high\n",
		metric_name(metric));
	if (h->info->simulated)
		fputs("SIMULATED samples, not measurements\n", f);
}

/* @buckets: NULL for those of the row itself */
static void view_row(const struct report_table *t, const struct report_row *row,
		     const __u64 *buckets, struct table_row *out)
{
	_Static_assert(TABLE_KEYS >= REPORT_KEY_N, "rows must have a name for each key");
#define VIEW_EXTRA(id, ...) report_value(t, row, REPORT_COLUMN_##id),
	*out = (struct table_row){ .all = { .samples = row->samples,
					    .valid = row->valid,
					    .sum = row->sum,
					    .hitm = row->hitm,
					    .state_n = row->stateful,
					    .ops = row->has_estimated ? row->estimated : 0,
					    .price = report_value(t, row, REPORT_COLUMN_PRICE) },
				   .max = row->max,
				   .known = row->known,
				   .cached = row->cached,
				   .cycles = report_value(t, row, REPORT_COLUMN_CYCLES),
				   .dram = report_value(t, row,
							ibs_metric_of_fetch(t->opts->metric)
								? REPORT_COLUMN_L3_MISS
								: REPORT_COLUMN_DRAM),
				   .remote = report_value(t, row, REPORT_COLUMN_REMOTE),
				   .memory = row->translated,
				   .walks = row->walks,
				   .aborted = row->aborted,
				   .extra = { TABLE_EXTRA_TABLE(VIEW_EXTRA) } };
#undef VIEW_EXTRA
	out->all.buckets = xcalloc(IBS_LAT_BUCKETS, sizeof(*buckets));
	if (buckets)
		memcpy(out->all.buckets, buckets, IBS_LAT_BUCKETS * sizeof(*buckets));
	else
		report_buckets(row, out->all.buckets);
	for (unsigned int k = 0; row->label && k < t->opts->n_by; k++) {
		const char *label = row->label[k];

		if (!label)
			label = ABSENT;
		else if (!*label)
			label = t->opts->by[k] == REPORT_KEY_CGROUP ? TABLE_ROOT : TABLE_NONE;
		out->name[k] = xcalloc(1, 4 * strlen(label) + 1);
		utf8_escape(out->name[k], 4 * strlen(label) + 1, label);
	}
}

/* The lines below the table. */
static void print_balance(FILE *f, const struct report_table *t)
{
	if (t->n_ranks > 1 && !isnan(t->total.imbalance))
		fprintf(f, "\nimbalance %.2f over %zu ranks: rank %u has most miss cycles\n",
			t->total.imbalance, t->n_ranks, t->total.busiest);
	report_kinds_print(f, &t->kinds);
}

static void print_text(FILE *f, const struct screen *screen, const struct report_head *head,
		       const struct report_table *t, const enum report_column *columns,
		       unsigned int n)
{
	static const enum table_column of_column[] = { REPORT_COLUMN_TABLE(VIEW_COLUMN) };
	static const enum table_column priced[] = { TABLE_CYCLES,  TABLE_PRICE, TABLE_SAMPLE_SHARE,
						    TABLE_MEAN,	   TABLE_PAGES, TABLE_MISPLACED,
						    TABLE_SAMPLES, TABLE_SHARE };
	static const enum table_column of_fields[] = { TABLE_SAMPLES, TABLE_LOADS, TABLE_STORES,
						       TABLE_DRAM,    TABLE_HITM,  TABLE_P50,
						       TABLE_P99,     TABLE_CYCLES };
	const bool fields = t->opts->type && report_by(t->opts, REPORT_KEY_FIELD_OFFSET);
	enum table_column shown[REPORT_COLUMN_N];
	const char *keys[REPORT_KEY_N];
	char ops[32] = "";
	struct table view = { .key = keys,
			      .n_keys = t->opts->n_by,
			      .ops = ops,
			      .data = t->opts->threads,
			      .spread = t->n_ranks > 1 && !report_by(t->opts, REPORT_KEY_RANK),
			      .metric = t->opts->metric,
			      .n = t->n,
			      .n_rest = t->n_rest,
			      .row = xcalloc(t->n, sizeof(*view.row)) };

	for (unsigned int k = 0; k < view.n_keys; k++)
		keys[k] = fields && t->opts->by[k] == REPORT_KEY_FIELD_OFFSET ? "offset"
			  : fields && t->opts->by[k] == REPORT_KEY_FIELD_SIZE
				  ? "size"
				  : report_key_name(t->opts->by[k]);
	for (unsigned int c = 0; c < n; c++)
		shown[c] = of_column[columns[c]];
	for (const char *c = t->estimated_unit ?: "ops"; *c; c++)
		snprintf(ops + strlen(ops), sizeof(ops) - strlen(ops), "%s%c", *ops ? "" : "EST. ",
			 *c - ('a' - 'A'));
	for (size_t i = 0; i < t->n; i++)
		view_row(t, &t->rows[i], NULL, &view.row[i]);
	view_row(t, &t->rest, t->rest_buckets, &view.rest);
	view_row(t, &t->total, t->total_buckets, &view.total);
	report_print_head(f, head, t->opts->metric);
	fputc('\n', f);
	if (t->opts->price && !n) {
		view.usual = priced;
		view.n_usual = ARRAY_SIZE(priced);
	}
	if (fields && !n) {
		view.usual = of_fields;
		view.n_usual = ARRAY_SIZE(of_fields);
	}
	if (!t->n && !t->n_rest)
		fputs("no samples\n", f);
	else
		table_print(f, screen, &view, n ? shown : NULL, n);
	print_balance(f, t);
	table_free(&view);
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
		if (value(t, row, columns[c], buf, sizeof(buf)))
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

static json_t *known_text(const char *text)
{
	return text && *text ? json_text(text) : json_null();
}

static json_t *known(bool is_known, __u64 v)
{
	return is_known ? json_integer(v) : json_null();
}

static json_t *json_cpu(const struct trace_info *info)
{
	const struct cpu_info *c = &info->cpu;

	return info->has_cpu
		       ? json_pack("{so so so si si}", "vendor", known_text(c->vendor), "name",
				   known_text(c->name), "generation", known_text(cpu_generation(c)),
				   "family", c->family, "model", c->model)
		       : json_null();
}

static json_t *json_ledger(const struct ledger *l)
{
	return !l ? json_null()
		  : json_pack("{sI sI sI so sI}", "seen", (json_int_t)l->seen, "forwarded",
			      (json_int_t)ledger_sum(l, IBS_OUTCOME_KIND_FORWARDED), "filtered",
			      (json_int_t)ledger_sum(l, IBS_OUTCOME_KIND_FILTERED), "unseen",
			      known(l->pmu_exact, l->unseen), "lost",
			      (json_int_t)ledger_sum(l, IBS_OUTCOME_KIND_LOST));
}

static json_t *json_events(const struct trace_info *info, const struct trace_end *end)
{
	json_t *events = json_array();

	for (unsigned int i = 0; i < info->n_pmus; i++) {
		const struct trace_pmu *p = &info->pmu[i];
		const struct ledger *l = i < end->n_ledgers ? &end->event_ledger[i] : NULL;

		json_array_append_new(events,
				      json_pack("{so so so ss so}", "name", known_text(p->name),
						"period", known(p->period && !p->freq, p->period),
						"freq", known(p->period && p->freq, p->period),
						"pmu", event_pmu(p), "ledger", json_ledger(l)));
	}
	return events;
}

json_t *report_head_json(const struct report_head *h, enum ibs_metric metric)
{
	const struct trace_info *info = h->info;
	const struct trace_end *end = h->end;

	return json_pack(
		"{so so so sb so so so so so so so so s{sI sI sI} s{sI sI} so sb so sI sI so}",
		"file", known_text(h->file), "format", known_text(info->format), "source",
		known_text(info->source), "simulated", info->simulated, "host",
		known_text(info->host), "release", known_text(info->release), "command",
		known_text(info->command), "cpus", known(info->n_cpus, info->n_cpus), "cpu",
		json_cpu(info), "events", json_events(info, end), "filter",
		known_text(info->filter), "options", known_text(h->options), "samples", "op",
		(json_int_t)h->op_samples, "fetch", (json_int_t)h->fetch_samples, "selected",
		(json_int_t)h->selected, "lost", "samples", (json_int_t)h->lost_samples, "records",
		(json_int_t)h->lost_records, "ledger",
		json_ledger(end->has_ledger ? &end->ledger : NULL), "whole",
		end->whole && !end->skipped_blocks, "missing", known_text(end->missing),
		"skipped_blocks", (json_int_t)end->skipped_blocks, "skipped_bytes",
		(json_int_t)end->skipped_bytes, "metric", known_text(metric_name(metric)));
}

static void json_values(FILE *f, const struct report_table *t, const struct report_row *row,
			const enum report_column *columns, unsigned int n)
{
	char buf[64];

	for (unsigned int c = 0; c < n; c++)
		fprintf(f, "%s\"%s\":%s", c ? "," : "", report_column_name(columns[c]),
			value(t, row, columns[c], buf, sizeof(buf)) ? buf : "null");
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
	json_t *j = report_head_json(head, t->opts->metric), *by = json_array();
	json_t *parts = json_array();

	for (size_t i = 0; i < head->n_parts; i++)
		json_array_append_new(parts, report_head_json(&head->part[i], t->opts->metric));
	json_object_set_new(j, "recordings", parts);
	json_object_set_new(j, "ranks", json_integer(t->n_ranks));
	json_object_set_new(j, "busiest_rank", known(!isnan(t->total.imbalance), t->total.busiest));
	report_kinds_json(j, &t->kinds);
	for (unsigned int k = 0; k < t->opts->n_by; k++)
		json_array_append_new(by, json_string(report_key_name(t->opts->by[k])));
	json_object_set_new(j, "estimated_unit", known_text(t->estimated_unit));
	json_object_set_new(j, "by", by);
	fputc('{', f);
	json_put_ascii(f, j, JSON_COMPACT | JSON_EMBED);
	json_decref(j);
	fputs(",\"rows\":[", f);
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

void report_print(FILE *f, const struct screen *screen, enum report_format format,
		  const struct report_head *head, const struct report_table *t,
		  const enum report_column *columns, unsigned int n_columns)
{
	switch (format) {
	case REPORT_CSV:
		print_csv(f, t, columns, n_columns);
		break;
	case REPORT_JSON:
		print_json(f, head, t, columns, n_columns);
		break;
	default:
		print_text(f, screen, head, t, columns, n_columns);
	}
}
