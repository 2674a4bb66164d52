// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "html_facts.h"

#include "base/text.h"
#include "base/utf8.h"

#include <string.h>
#include <time.h>

#define LINES_WRITTEN 200 /* enough that they include lines of a selected container */

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
		text_append(buf, size, "%llu of %llu samples were lost while recording. ",
			    (unsigned long long)lost, (unsigned long long)end->ledger.seen);
	if (r->without_registers)
		text_append(buf, size, "%llu samples have no registers and are not shown. ",
			    (unsigned long long)r->without_registers);
	if (fetches)
		text_append(
			buf, size,
			"%llu samples of ibs_fetch are not shown here: ibscope report -e ibs_fetch "
			"shows them. ",
			(unsigned long long)fetches);
	if (*folded)
		text_append(buf, size, "To keep this file small: %s. ", folded);
	if (!r->same_period && !r->period)
		text_append(buf, size, "The sampling period was not recorded: costs are unknown. ");
}

static void text(FILE *f, const char *name, const char *value)
{
	fprintf(f, ",\"%s\":", name);
	utf8_put_json(f, value);
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

static void write_time(const struct html_report *r, FILE *f)
{
	const struct html_rows *rows = &r->rows;
	double bin_s = rows->has_time ? rows->bin_ns / 1e9 : 1;
	__u64 length_ns = r->length_ns ?: rows->end_ns - rows->start_ns;
	double length_s = length_ns / 1e9;
	char from[64], to[64], hms[16];
	unsigned int h = 0, m = 0, s = 0;

	fprintf(f, ",\"bins\":%u,\"bin_s\":%.9g,\"duration_s\":%.9g", html_rows_bins(rows), bin_s,
		length_s > 0 ? length_s : bin_s);
	format_time(r, rows->start_ns, "%H:%M:%S", hms, sizeof(hms));
	if (sscanf(hms, "%u:%u:%u", &h, &m, &s) == 3)
		fprintf(f, ",\"start_s\":%u", h * 3600 + m * 60 + s);
	else
		fputs(",\"start_s\":null", f);
	format_time(r, rows->start_ns, "%e %b %Y, %H:%M:%S", from, sizeof(from));
	format_time(r, rows->start_ns + length_ns, " to %H:%M:%S UTC", to, sizeof(to));
	text_append(from, sizeof(from), "%s", to);
	text(f, "when", from);
}

/* "1,234": as the page writes counts. */
static void grouped(char *buf, size_t size, __u64 v)
{
	char digits[32];
	size_t n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)v), at = 0;

	for (size_t i = 0; i < n && at + 2 < size; i++) {
		if (i && (n - i) % 3 == 0)
			buf[at++] = ',';
		buf[at++] = digits[i];
	}
	buf[at] = 0;
}

static void write_line_of_facts(const struct html_report *r, FILE *f)
{
	const struct trace_info *info = r->opts.info;
	char buf[256], n[32];

	fputs(",\"facts\":[", f);
	snprintf(buf, sizeof(buf), "%s%s%s", info->has_cpu ? info->cpu.name : "processor unknown",
		 info->has_cpu && info->cpu.name[0] ? ", " : "",
		 info->has_cpu ? cpu_generation(&info->cpu) : "");
	utf8_put_json(f, buf);
	if (r->parts > 1) {
		snprintf(buf, sizeof(buf), "%u recordings", r->parts);
		fputc(',', f);
		utf8_put_json(f, buf);
	}
	if (info->n_cpus) {
		snprintf(buf, sizeof(buf), "%u CPUs", info->n_cpus);
		fputc(',', f);
		utf8_put_json(f, buf);
	}
	if (info->release[0]) {
		snprintf(buf, sizeof(buf), "Linux %s", info->release);
		fputc(',', f);
		utf8_put_json(f, buf);
	}
	for (unsigned int i = 0; i < info->n_pmus; i++) {
		grouped(n, sizeof(n), info->pmu[i].period);
		snprintf(buf, sizeof(buf), "%s, %s %s%s", info->pmu[i].name,
			 !info->pmu[i].period ? "period"
			 : info->pmu[i].freq  ? ""
					      : "1 sample per",
			 info->pmu[i].period ? n : "unknown",
			 info->pmu[i].freq && info->pmu[i].period ? " samples/s" : "");
		fputc(',', f);
		utf8_put_json(f, buf);
	}
	fputc(']', f);
}

static void write_ledger(const struct trace_end *end, FILE *f)
{
	const struct ledger *l = &end->ledger;
	const char *comma = "";

	if (!end->has_ledger) {
		fputs(",\"ledger\":null", f);
		return;
	}
	fprintf(f, ",\"ledger\":{\"seen\":%llu,\"rows\":[", (unsigned long long)l->seen);
	for (unsigned int i = 0; i < IBS_OUTCOME_N; i++) {
		static const char *const kinds[] = { [IBS_OUTCOME_KIND_FILTERED] = "filtered: ",
						     [IBS_OUTCOME_KIND_LOST] = "lost: ",
						     [IBS_OUTCOME_KIND_N] = "" };
		const char *kind = kinds[outcome_kind(i)];

		if (!l->outcome[i])
			continue;
		fprintf(f, "%s[\"%s%s\",%llu]", comma, kind ? kind : "", outcome_name(i),
			(unsigned long long)l->outcome[i]);
		comma = ",";
	}
	if (l->pmu_exact)
		fprintf(f, "],\"unseen\":%llu}", (unsigned long long)l->unseen);
	else
		fputs("],\"unseen\":null}", f);
}

static const char *code_name(unsigned int k)
{
	return code_kind_name(k);
}

static const char *node_name(unsigned int k)
{
	return node_kind_name(k);
}

static const char *address_name(unsigned int k)
{
	static const char *const names[HTML_ADDRESSES] = { "physical", "virtual", "no_address" };

	return names[k];
}

/* What the rows of views were attributed to, of all samples; nothing of counters, which have none of it. */
static void write_attribution(const struct html_report *r, FILE *f)
{
	const struct {
		const char *what;
		const __u64 *samples;
		unsigned int n, known; /* those kinds are first */
		const char *(*name)(unsigned int);
	} ledgers[] = {
		{ "functions", r->code_kinds, CODE_KIND_N, CODE_NAMED + 1, code_name },
		{ "memory nodes", r->node_kinds, NODE_KIND_N, NODE_KNOWN + 1, node_name },
		{ "lines", r->addresses, HTML_ADDRESSES, HTML_VIRTUAL + 1, address_name },
	};

	fputs(",\"attribution\":[", f);
	for (unsigned int i = 0; r->parts && i < ARRAY_SIZE(ledgers); i++) {
		fprintf(f, "%s{\"what\":\"%s\",\"known\":%u,\"rows\":[", i ? "," : "",
			ledgers[i].what, ledgers[i].known);
		for (unsigned int k = 0; k < ledgers[i].n; k++)
			fprintf(f, "%s[\"%s\",%llu]", k ? "," : "", ledgers[i].name(k),
				(unsigned long long)ledgers[i].samples[k]);
		fputs("]}", f);
	}
	fputc(']', f);
}

static void record_row(FILE *f, const char **comma, const char *name, const char *value)
{
	if (!*value)
		return;
	fprintf(f, "%s[\"%s\",", *comma, name);
	utf8_put_json(f, value);
	fputc(']', f);
	*comma = ",";
}

static void write_record(const struct html_report *r, const struct trace_end *end, FILE *f)
{
	const struct trace_info *info = r->opts.info;
	const char *comma = "";
	char buf[512];

	fputs(",\"record\":[", f);
	record_row(f, &comma, "command", info->command);
	record_row(f, &comma, "selection", info->filter[0] ? info->filter : "everything");
	snprintf(buf, sizeof(buf), "%.255s, %s", r->opts.file,
		 end->whole ? "complete" : "INCOMPLETE");
	record_row(f, &comma, "file", *r->opts.file ? buf : "");
	record_row(f, &comma, "format", info->format);
	if (info->has_cpu) {
		snprintf(buf, sizeof(buf), "%s, family 0x%x model 0x%x", info->cpu.name,
			 info->cpu.family, info->cpu.model);
		record_row(f, &comma, "processor", buf);
	}
	record_row(f, &comma, "kernel", info->release);
	record_row(f, &comma, "report", r->opts.options);
	record_row(f, &comma, "written by", "ibscope " IBSCOPE_VERSION);
	fputc(']', f);
}

static void write_groups(const struct html_report *r, FILE *f)
{
	fputs(",\"group_title\":\"Container\",\"groups\":[", f);
	for (size_t i = 0; i < r->groups.n; i++) {
		const char *name = intern_text(&r->groups, i);

		fprintf(f, "%s{\"name\":", i ? "," : "");
		utf8_put_json(f, name);
		if (r->group[i].option)
			text(f, "option", r->group[i].option);
		fputc('}', f);
	}
	fputc(']', f);
}

static void write_code(const struct html_report *r, FILE *f)
{
	bool chains = false;

	for (unsigned int i = 0; i < r->opts.info->n_pmus; i++)
		chains |= r->opts.info->pmu[i].stacks;
	fprintf(f, ",\"chains\":%s,\"frames\":[", chains ? "true" : "false");
	for (size_t i = 0; i < r->frames.n; i++) {
		if (i)
			fputc(',', f);
		utf8_put_json(f, intern_text(&r->frames, i));
	}
	fputs("],\"stacks\":[0,0", f);
	for (size_t i = 1; i < r->n_nodes; i++)
		fprintf(f, ",%u,%u", r->nodes[i].parent, r->nodes[i].frame);
	fputc(']', f);
}

/* "rank", "role" and "region": the names that rows refer to by number, "" first. */
static void write_names(const struct html_report *r, FILE *f)
{
	static const char *const kinds[HTML_NAMES] = {
		[HTML_RANK] = "rank", [HTML_ROLE] = "role", [HTML_REGION] = "region"
	};

	fputs(",\"names\":{", f);
	for (unsigned int k = 0; k < HTML_NAMES; k++) {
		fprintf(f, "%s\"%s\":[", k ? "," : "", kinds[k]);
		for (size_t i = 0; i < r->names[k].n; i++) {
			if (i)
				fputc(',', f);
			utf8_put_json(f, intern_text(&r->names[k], i));
		}
		fputc(']', f);
	}
	fputc('}', f);
}

static void write_lines(struct html_report *r, FILE *f)
{
	html_lines_sort(&r->lines);
	fputs(",\"lines\":[", f);
	for (size_t i = 0; i < r->lines.n && i < LINES_WRITTEN; i++) {
		const struct html_line *l = &r->lines.line[i];

		fprintf(f,
			"%s{\"line\":\"0x%llx\",\"host\":%u,\"group\":%u,\"shared\":%s,\"samples\":"
			"%llu,"
			"\"loads\":%llu,\"stores\":%llu,\"threads\":\"%u%s\",\"cycles\":%.17g}",
			i ? "," : "", (unsigned long long)l->line, l->host, l->group,
			l->shared ? "true" : "false", (unsigned long long)l->samples,
			(unsigned long long)l->loads, (unsigned long long)l->stores, l->n_threads,
			l->more_threads ? "+" : "", l->cycles);
	}
	fputc(']', f);
}

void html_facts_write(struct html_report *r, const struct trace_end *end, FILE *f)
{
	const char *comma = "";

	fprintf(f, "{\"schema\":1,\"rows\":%zu,\"period\":%llu,\"hitm\":%s", r->rows.n,
		(unsigned long long)(r->same_period ? r->period : 0),
		r->hitm_known ? "true" : "false");
	text(f, "host", r->opts.info->host);
	text(f, "file", r->opts.file);
	text(f, "command", r->parts ? "ibscope report" : "ibscope hist");
	fputs(",\"sources\":[", f);
	for (unsigned int i = 0; i < IBS_SRC_N; i++)
		if (r->sources >> near_to_far[i] & 1) {
			fprintf(f, "%s\"%s\"", comma, src_name(near_to_far[i]));
			comma = ",";
		}
	fputs("],\"edges\":[", f);
	for (__u32 b = 0; b < IBS_LAT_BUCKETS; b++)
		fprintf(f, "%s%u", b ? "," : "", ibs_lat_le(b));
	fputc(']', f);
	write_time(r, f);
	write_line_of_facts(r, f);
	write_ledger(end, f);
	write_attribution(r, f);
	write_record(r, end, f);
	write_groups(r, f);
	write_code(r, f);
	html_places_write(&r->places, f);
	write_names(r, f);
	write_lines(r, f);
	fputs("}\n", f);
}
