// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "html_facts.h"

#include "base/text.h"
#include "table/table.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* Near to far: the order of legends and of stacked bars. */
static const enum ibs_src near_to_far[] = {
	IBS_SRC_L1,	    IBS_SRC_L2,		  IBS_SRC_L3,	    IBS_SRC_LOCAL_CACHE,
	IBS_SRC_NEAR_CACHE, IBS_SRC_REMOTE_CACHE, IBS_SRC_DRAM,	    IBS_SRC_REMOTE_DRAM,
	IBS_SRC_PMEM,	    IBS_SRC_REMOTE_PMEM,  IBS_SRC_CXL,	    IBS_SRC_REMOTE_CXL,
	IBS_SRC_IO,	    IBS_SRC_PEER,	  IBS_SRC_UNCACHED, IBS_SRC_MAB,
	IBS_SRC_UNKNOWN,    IBS_SRC_NONE,
};
_Static_assert(sizeof(near_to_far) / sizeof(near_to_far[0]) == IBS_SRC_N, "a source is missing");

void html_facts_sources(const struct html_report *r, __u8 numbers[IBS_SRC_N])
{
	__u8 n = 0;

	memset(numbers, 0, IBS_SRC_N);
	for (unsigned int i = 0; i < IBS_SRC_N; i++)
		if (r->sources >> near_to_far[i] & 1)
			numbers[near_to_far[i]] = n++;
}

void html_facts_band(const struct html_report *r, const struct trace_end *end, __u64 fetches,
		     char *buf, size_t size)
{
	__u64 lost = end->has_ledger ? ledger_sum(&end->ledger, IBS_OUTCOME_KIND_LOST) : 0;
	char folded[512];

	*buf = 0;
	html_fold_text(r, folded, sizeof(folded));
	if (r->opts.info->simulated)
		text_append(buf, size, "SIMULATED samples, not measurements. ");
	if (!end->whole)
		text_append(buf, size, "INCOMPLETE recording: %s. ", end->missing);
	if (lost)
		text_append(buf, size, "%s of %s samples were lost while recording. ",
			    TEXT_COUNT(lost), TEXT_COUNT(end->ledger.seen));
	if (r->without_registers)
		text_append(buf, size, "%s samples have no registers and are not shown. ",
			    TEXT_COUNT(r->without_registers));
	if (fetches)
		text_append(
			buf, size,
			"%s samples of ibs_fetch are not shown here: ibscope report -e ibs_fetch "
			"shows them. ",
			TEXT_COUNT(fetches));
	if (*folded)
		text_append(buf, size, "To keep this file small: %s. ", folded);
	if (!r->same_period && !r->period)
		text_append(buf, size, "The sampling period was not recorded: costs are unknown. ");
}

/* A time of day in UTC, "" if the recording does not have it. */
static void format_time(const struct html_report *r, __u64 ns, const char *format, char *buf,
			size_t size)
{
	const struct trace_info *info = r->opts.info;
	struct tm tm;
	time_t t;

	*buf = 0;
	if (!info->realtime_ns || !r->rows.has_time)
		return;
	t = (info->realtime_ns + (ns - info->monotonic_ns)) / 1000000000;
	if (gmtime_r(&t, &tm))
		strftime(buf, size, format, &tm);
}

static void write_time(const struct html_report *r, struct json_writer *w)
{
	const struct html_rows *rows = &r->rows;
	double bin_s = rows->has_time ? rows->bin_ns / 1e9 : 1;
	__u64 length_ns = r->length_ns ?: rows->end_ns - rows->start_ns;
	double length_s = length_ns / 1e9;
	char from[64], to[64], hms[16];
	unsigned int h = 0, m = 0, s = 0;
	bool has_start;

	json_put_u64(w, "bins", html_rows_bins(rows));
	w->precision = 9;
	json_put_number(w, "bin_s", bin_s);
	json_put_number(w, "duration_s", length_s > 0 ? length_s : bin_s);
	w->precision = 0;
	format_time(r, rows->start_ns, "%H:%M:%S", hms, sizeof(hms));
	has_start = sscanf(hms, "%u:%u:%u", &h, &m, &s) == 3;
	json_put_known(w, "start_s", has_start, h * 3600 + m * 60 + s);
	format_time(r, rows->start_ns, "%e %b %Y, %H:%M:%S", from, sizeof(from));
	format_time(r, rows->start_ns + length_ns, " to %H:%M:%S UTC", to, sizeof(to));
	text_append(from, sizeof(from), "%s", to);
	json_put_text(w, "when", from);
}

static void write_line_of_facts(const struct html_report *r, struct json_writer *w)
{
	const struct trace_info *info = r->opts.info;
	char buf[256];

	json_begin_array(w, "facts");
	json_put_text(w, NULL,
		      info->has_cpu ? cpu_text(&info->cpu, buf, sizeof(buf)) : "processor unknown");
	if (r->parts > 1) {
		snprintf(buf, sizeof(buf), "%u recordings", r->parts);
		json_put_text(w, NULL, buf);
	}
	if (info->n_cpus) {
		snprintf(buf, sizeof(buf), "%u CPU%s", info->n_cpus, text_plural(info->n_cpus));
		json_put_text(w, NULL, buf);
	}
	if (info->release[0]) {
		snprintf(buf, sizeof(buf), "Linux %s", info->release);
		json_put_text(w, NULL, buf);
	}
	for (unsigned int i = 0; i < info->n_pmus; i++) {
		snprintf(buf, sizeof(buf), "%s, %s %s%s", info->pmu[i].name,
			 !info->pmu[i].period ? "period"
			 : info->pmu[i].freq  ? ""
					      : "1 sample per",
			 info->pmu[i].period  ? TEXT_COUNT(info->pmu[i].period)
			 : info->pmu[i].reach ? "varies"
					      : "unknown",
			 info->pmu[i].freq && info->pmu[i].period ? " samples/s" : "");
		json_put_text(w, NULL, buf);
	}
	json_end(w);
}

static void put_samples(struct json_writer *w, const char *kind, const char *name, __u64 n)
{
	char text[64];

	snprintf(text, sizeof(text), "%s%s", kind, name);
	json_begin_array(w, NULL);
	json_put_text(w, NULL, text);
	json_put_u64(w, NULL, n);
	json_end(w);
}

static void write_ledger(const struct html_report *r, const struct trace_end *end,
			 struct json_writer *w)
{
	static const char *const kinds[] = { [IBS_OUTCOME_KIND_FILTERED] = "filtered: ",
					     [IBS_OUTCOME_KIND_LOST] = "lost: ",
					     [IBS_OUTCOME_KIND_N] = "" };
	const bool strata = html_report_strata(r) && end->n_ledgers == STRATUM_N;
	const struct ledger *l = &end->ledger;

	if (!end->has_ledger) {
		json_put_null(w, "ledger");
		return;
	}
	json_begin_object(w, "ledger");
	json_put_u64(w, "seen", l->seen);
	json_begin_array(w, "rows");
	for (unsigned int i = 0; i < IBS_OUTCOME_N; i++)
		if (l->outcome[i])
			put_samples(w, kinds[outcome_kind(i)] ?: "", outcome_name(i),
				    l->outcome[i]);
	json_end(w);
	json_put_known(w, "unseen", l->pmu_exact, l->unseen);
	json_begin_array(w, "strata");
	for (unsigned int of = 0; strata && of < STRATUM_N; of++)
		put_samples(w, stratum_name(of), " stratum", end->event_ledger[of].seen);
	json_end(w);
	json_end(w);
}

static const char *address_name(unsigned int k)
{
	static const char *const names[HTML_ADDRESSES] = { "physical", "virtual", "no_address" };

	return names[k];
}

/* What the rows of views were attributed to, of all samples; nothing of counters, which have none of it. */
static void write_attribution(const struct html_report *r, struct json_writer *w)
{
	const struct {
		const char *what;
		const __u64 *samples;
		unsigned int n, known; /* those kinds are first */
		const char *(*name)(unsigned int);
	} ledgers[] = {
		{ "functions", r->code_kinds, CODE_KIND_N, CODE_NAMED + 1, code_kind_name },
		{ "memory nodes", r->node_kinds, NODE_KIND_N, NODE_KNOWN + 1, node_kind_name },
		{ "lines", r->addresses, HTML_ADDRESSES, HTML_VIRTUAL + 1, address_name },
	};

	json_begin_array(w, "attribution");
	for (unsigned int i = 0; r->parts && i < ARRAY_SIZE(ledgers); i++) {
		json_begin_object(w, NULL);
		json_put_text(w, "what", ledgers[i].what);
		json_put_u64(w, "known", ledgers[i].known);
		json_begin_array(w, "rows");
		for (unsigned int k = 0; k < ledgers[i].n; k++)
			put_samples(w, "", ledgers[i].name(k), ledgers[i].samples[k]);
		json_end(w);
		json_end(w);
	}
	json_end(w);
}

static void record_row(struct json_writer *w, const char *name, const char *value)
{
	if (!*value)
		return;
	json_begin_array(w, NULL);
	json_put_text(w, NULL, name);
	json_put_text(w, NULL, value);
	json_end(w);
}

static void write_record(const struct html_report *r, const struct trace_end *end,
			 struct json_writer *w)
{
	const struct trace_info *info = r->opts.info;
	char buf[512];

	json_begin_array(w, "record");
	record_row(w, "command", info->command);
	record_row(w, "selection", info->filter[0] ? info->filter : "everything");
	snprintf(buf, sizeof(buf), "%.255s, %s", r->opts.file,
		 end->whole ? "complete" : "INCOMPLETE");
	record_row(w, "file", *r->opts.file ? buf : "");
	record_row(w, "format", info->format);
	if (info->has_cpu) {
		snprintf(buf, sizeof(buf), "%s, family 0x%x model 0x%x", info->cpu.name,
			 info->cpu.family, info->cpu.model);
		record_row(w, "processor", buf);
	}
	record_row(w, "kernel", info->release);
	record_row(w, "report", r->opts.options);
	record_row(w, "written by", "ibscope " IBSCOPE_VERSION);
	json_end(w);
}

static void put_texts(struct json_writer *w, const char *key, const struct intern *texts)
{
	json_begin_array(w, key);
	for (size_t i = 0; i < texts->n; i++)
		json_put_text(w, NULL, intern_text(texts, i));
	json_end(w);
}

static void write_groups(const struct html_report *r, struct json_writer *w)
{
	json_put_text(w, "group_title", "Container");
	json_begin_array(w, "groups");
	for (size_t i = 0; i < r->groups.n; i++) {
		json_begin_object(w, NULL);
		json_put_text(w, "name", intern_text(&r->groups, i));
		if (r->group[i].option)
			json_put_text(w, "option", r->group[i].option);
		json_end(w);
	}
	json_end(w);
}

static void write_code(const struct html_report *r, struct json_writer *w)
{
	bool chains = false;

	for (unsigned int i = 0; i < r->opts.info->n_pmus; i++)
		chains |= r->opts.info->pmu[i].stacks;
	json_put_bool(w, "chains", chains);
	put_texts(w, "frames", &r->frames);
	json_begin_array(w, "stacks");
	for (size_t i = 0; i < r->n_nodes || !i; i++) {
		json_put_u64(w, NULL, i ? r->nodes[i].parent : 0);
		json_put_u64(w, NULL, i ? r->nodes[i].frame : 0);
	}
	json_end(w);
}

bool html_facts_exposed(const struct html_report *r)
{
	double sum = 0;

	for (size_t i = 0; i < r->rows.n; i++)
		sum += r->rows.row[i].exposed;
	return table_currency(r->exposed_unknown ? (double)NAN : sum) == TABLE_EXPOSED;
}

void html_facts_write(struct html_report *r, const struct trace_end *end, FILE *f)
{
	struct json_writer w = { .f = f };

	json_begin_object(&w, NULL);
	json_put_u64(&w, "schema", 1);
	json_put_u64(&w, "rows", r->rows.n);
	json_put_u64(&w, "period", r->same_period ? r->period : 0);
	json_put_bool(&w, "strata", html_report_strata(r));
	json_put_bool(&w, "hitm", r->hitm_known);
	json_put_bool(&w, "exposed", html_facts_exposed(r));
	json_put_text(&w, "host", r->opts.info->host);
	json_put_text(&w, "file", r->opts.again);
	json_put_u64(&w, "parts", r->parts);
	json_put_text(&w, "command", r->parts ? "ibscope report" : "ibscope hist");
	json_begin_array(&w, "sources");
	for (unsigned int i = 0; i < IBS_SRC_N; i++)
		if (r->sources >> near_to_far[i] & 1)
			json_put_text(&w, NULL, src_name(near_to_far[i]));
	json_end(&w);
	json_begin_array(&w, "edges");
	for (__u32 b = 0; b < IBS_LAT_BUCKETS; b++)
		json_put_u64(&w, NULL, ibs_lat_le(b));
	json_end(&w);
	write_time(r, &w);
	write_line_of_facts(r, &w);
	write_ledger(r, end, &w);
	write_attribution(r, &w);
	write_record(r, end, &w);
	write_groups(r, &w);
	write_code(r, &w);
	html_findings_put(r, &w);
	html_places_write(&r->places, &w);
	html_names_write(r, &w);
	json_put_u64(&w, "lines_lack", r->trimmed);
	json_put_u64(&w, "lines_private", r->lines_private);
	json_begin_array(&w, "lines");
	fwrite(r->hot_lines, 1, r->hot_size, f);
	json_finish(&w);
}
