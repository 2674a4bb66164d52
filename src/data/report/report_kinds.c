// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What share of the samples could be attributed, and why the rest could not: data, types, functions, nodes. */
#include "report_print.h"
#include "base/choice.h"
#include "base/text.h"

#define KINDS_WIDTH 79 /* of lines below the table */

CHOICE_NAMES(code_kind_name, enum code_kind, CODE_KIND_TABLE)

CHOICE_NAMES(node_kind_name, enum node_kind, NODE_KIND_TABLE)

enum code_kind report_code_kind(bool has_ip, const struct symbol *sym)
{
	if (!has_ip)
		return CODE_NO_ADDRESS;
	if (!sym->dso || *sym->name != '[')
		return sym->dso ? CODE_NAMED : CODE_NO_FILE;
	if (sym->lacks_time)
		return CODE_NO_TIME;
	return sym->given_up ? CODE_GIVEN_UP : sym->no_list ? CODE_NO_LIST : CODE_NO_SYMBOL;
}

int report_memory_node(const struct trace_info *info, const struct ibs_op_sample *op)
{
	__u64 phys;

	if (!info->n_memory || !ibs_op_field(op, IBS_OP_FIELD_DC_PHYS_AD, &phys))
		return -1;
	return trace_memory_node(info, phys);
}

enum node_kind report_node_kind(const struct trace_info *info, const struct trace_sample *s)
{
	const struct trace_topology *t = info->topology;
	__u64 phys;

	if (!ibs_op_field(&s->op, IBS_OP_FIELD_DC_PHYS_AD, &phys))
		return NODE_NO_ADDRESS;
	if (report_memory_node(info, &s->op) < 0)
		return NODE_NO_RANGE;
	return t && s->has_cpu && s->cpu < t->n ? NODE_KNOWN : NODE_NO_CPU;
}

/* A line of samples by kind that adds up; @first is there even if it is 0. */
static void print_kinds(FILE *f, const char *what, const __u64 *samples, unsigned int n,
			unsigned int first, const char *(*name)(unsigned int))
{
	const char *before = "";
	__u64 sum = 0;
	int width;

	for (unsigned int k = 0; k < n; k++)
		sum += samples[k];
	width = fprintf(f, "\n%-9s %s samples = ", what, TEXT_COUNT(sum));
	for (unsigned int k = 0; k < n; k++) {
		char text[64];

		if (!samples[k] && k != first)
			continue;
		snprintf(text, sizeof(text), "%s%s %s", before, TEXT_COUNT(samples[k]), name(k));
		if (width + strlen(text) > KINDS_WIDTH)
			width = fprintf(f, "\n%9s", "") - 1;
		width += fprintf(f, "%s", text);
		before = " + ";
	}
	fputc('\n', f);
}

static void put_kinds(struct json_writer *w, const char *what, const __u64 *samples, unsigned int n,
		      const char *(*name)(unsigned int))
{
	if (!samples) {
		json_put_null(w, what);
		return;
	}
	json_begin_object(w, what);
	for (unsigned int k = 0; k < n; k++)
		json_put_u64(w, name(k), samples[k]);
	json_end(w);
}

void data_kinds_put(struct json_writer *w, const __u64 *samples)
{
	put_kinds(w, "data", samples, DATA_KIND_N, data_kind_name);
}

void code_kinds_put(struct json_writer *w, const __u64 *samples)
{
	put_kinds(w, "symbols", samples, CODE_KIND_N, code_kind_name);
}

void type_kinds_put(struct json_writer *w, const __u64 *samples)
{
	put_kinds(w, "types", samples, TYPE_KIND_N, type_kind_name);
}

void type_kinds_print(FILE *f, const __u64 *samples)
{
	__u64 found = 0, all = 0;

	for (unsigned int k = 0; k < TYPE_KIND_N; k++) {
		all += k == TYPE_NO_ACCESS ? 0 : samples[k];
		found += TYPE_FOUND(k) ? samples[k] : 0;
	}
	print_kinds(f, "types", samples, TYPE_KIND_N, TYPE_POINTER, type_kind_name);
	if (all)
		fprintf(f, "          known of %.1f %% of %s accesses\n", 100.0 * found / all,
			TEXT_COUNT(all));
}

void report_kinds_print(FILE *f, const struct report_kinds *k)
{
	if (k->data)
		print_kinds(f, "data", k->data, DATA_KIND_N, DATA_VARIABLE, data_kind_name);
	if (k->types)
		type_kinds_print(f, k->types);
	if (k->code)
		print_kinds(f, "symbols", k->code, CODE_KIND_N, CODE_NAMED, code_kind_name);
	if (k->nodes)
		print_kinds(f, "nodes", k->nodes, NODE_KIND_N, NODE_KNOWN, node_kind_name);
}

void report_kinds_put(struct json_writer *w, const struct report_kinds *k)
{
	data_kinds_put(w, k->data);
	type_kinds_put(w, k->types);
	code_kinds_put(w, k->code);
	put_kinds(w, "nodes", k->nodes, NODE_KIND_N, node_kind_name);
}

/* Write lines to standard error. */
static void log_lines(char *text)
{
	char *rest = text, *line;

	while ((line = strsep(&rest, "\n")))
		if (*line)
			log_info("%s", line);
	free(text);
}

void report_kinds_log(const struct report_kinds *k)
{
	char *text;
	size_t size;
	FILE *f = xmemopen(&text, &size);

	report_kinds_print(f, k);
	xmemclose(f);
	log_lines(text);
}
