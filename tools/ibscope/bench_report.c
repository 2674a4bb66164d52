// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The report of `ibscope bench`: lines as they come, or one JSON object at the end. */
#include "bench.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

struct bench_report {
	bool json;
	struct bench_row *rows;
	size_t n, room;
	unsigned int cpus;
};

static const char *from_text(const struct bench *b, enum bench_from from)
{
	switch (from) {
	case BENCH_FROM_EVENT:
		if (b->source == SAMPLER_IBS)
			return "ibs_op: NMI";
		return "software clock: interrupt, not NMI; SIMULATED registers";
	case BENCH_FROM_TWIN:
		return "run on request: no interrupt; SIMULATED registers";
	default:
		return "computed";
	}
}

struct bench_report *bench_report_new(bool json)
{
	struct bench_report *r = calloc(1, sizeof(*r));

	if (r)
		r->json = json;
	return r;
}

void bench_report_free(struct bench_report *r)
{
	if (!r)
		return;
	free(r->rows);
	free(r);
}

void bench_report_begin(struct bench *b, unsigned int cpus)
{
	struct utsname u;

	b->report->cpus = cpus;
	if (b->report->json)
		return;
	uname(&u);
	printf("ibscope %s, Linux %s, %s, %u CPUs; loop on cpu %u, readers on cpu %u\n",
	       IBSCOPE_VERSION, u.release, *b->cpu_info.name ? b->cpu_info.name : "unknown CPU",
	       cpus, b->cpu, b->reader_cpu);
	printf("%s\n", from_text(b, BENCH_FROM_EVENT));
	if (b->instructions)
		printf("the clock counts instructions: figures are instructions, of the guest\n");
	printf("medians, their standard error, rounds\n");
}

void bench_report_section(struct bench *b, const char *name, const char *help)
{
	if (b->report->json)
		return;
	printf("\n%s: %s\n", name, help);
	fflush(stdout);
}

static void print(const struct bench *b, const struct bench_row *row)
{
	printf("  %-34s ", row->name);
	if (*row->why) {
		printf("cannot be had: %s [%s]\n", row->why, from_text(b, row->from));
		return;
	}
	printf("%12.*f ", row->value < 100 ? 1 : 0, row->value);
	if (row->rounds)
		printf("+-%-8.*f %-13s %4u", row->spread < 10 ? 1 : 0, row->spread, row->unit,
		       row->rounds);
	else
		printf("%-10s %-13s %4s", "", row->unit, "");
	printf("  %s", row->what);
	for (size_t i = 0; i < row->n_more; i++)
		printf("%s %s %.*f", i ? "," : ";", row->more[i].name,
		       row->more[i].value < 100 ? 2 : 0, row->more[i].value);
	printf(" [%s]\n", from_text(b, row->from));
}

static void append(struct bench *b, const struct bench_row *row)
{
	struct bench_report *r = b->report;

	if (r->n == r->room) {
		size_t room = r->room ? 2 * r->room : 64;
		struct bench_row *rows = realloc(r->rows, room * sizeof(*rows));

		if (!rows) {
			log_error("out of memory for the report");
			exit(1);
		}
		r->rows = rows;
		r->room = room;
	}
	r->rows[r->n++] = *row;
	if (!r->json) {
		print(b, row);
		/* nobody reads what would still be measured */
		if (fflush(stdout))
			bench_stop = 1;
	}
}

void bench_more(struct bench_row *row, const char *name, double value)
{
	if (row->n_more == BENCH_MORE)
		abort();
	row->more[row->n_more].name = name;
	row->more[row->n_more++].value = value;
}

double bench_get(const struct bench_row *row, const char *name)
{
	for (size_t i = 0; i < row->n_more; i++)
		if (!strcmp(row->more[i].name, name))
			return row->more[i].value;
	return 0;
}

void bench_missing(struct bench *b, const char *name, const char *what, enum bench_from from,
		   const char *fmt, ...)
{
	struct bench_row row = { .from = from };
	va_list ap;

	snprintf(row.name, sizeof(row.name), "%s", name);
	snprintf(row.what, sizeof(row.what), "%s", what);
	va_start(ap, fmt);
	vsnprintf(row.why, sizeof(row.why), fmt, ap);
	va_end(ap);
	append(b, &row);
}

void bench_add(struct bench *b, const struct bench_row *row)
{
	if (row->value > row->spread)
		append(b, row);
	else
		bench_missing(b, row->name, row->what, row->from,
			      "too disturbed to tell: %.1f +- %.1f %s in %u rounds", row->value,
			      row->spread, row->unit, row->rounds);
}

const struct bench_row *bench_find(const struct bench *b, const char *name)
{
	for (size_t i = 0; i < b->report->n; i++)
		if (!strcmp(b->report->rows[i].name, name) && !*b->report->rows[i].why)
			return &b->report->rows[i];
	return NULL;
}

static json_t *row_json(const struct bench *b, const struct bench_row *row)
{
	json_t *o = json_pack("{s:s,s:s,s:s}", "name", row->name, "what", row->what, "from",
			      from_text(b, row->from));

	if (*row->why) {
		json_object_set_new(o, "unavailable", json_string(row->why));
		return o;
	}
	json_object_set_new(o, "unit", json_string(row->unit));
	json_object_set_new(o, "value", json_real(row->value));
	if (row->rounds) {
		json_object_set_new(o, "spread", json_real(row->spread));
		json_object_set_new(o, "rounds", json_integer(row->rounds));
	}
	for (size_t i = 0; i < row->n_more; i++)
		json_object_set_new(o, row->more[i].name, json_real(row->more[i].value));
	return o;
}

static int print_json(const struct bench *b, bool interrupted)
{
	const struct bench_report *r = b->report;
	json_t *rows = json_array(), *o;
	struct utsname u;
	int ret;

	uname(&u);
	for (size_t i = 0; i < r->n; i++)
		json_array_append_new(rows, row_json(b, &r->rows[i]));
	o = json_pack("{s:s,s:s,s:b,s:s,s:s,s:b,s:s,s:s,s:i,s:i,s:i,s:b,s:b,s:o}", "version",
		      IBSCOPE_VERSION, "source", b->source == SAMPLER_IBS ? "ibs" : "sim",
		      "simulated", b->source != SAMPLER_IBS, "from", from_text(b, BENCH_FROM_EVENT),
		      "unit", b->unit, "instructions", b->instructions, "kernel", u.release, "cpu",
		      b->cpu_info.name, "cpus", r->cpus, "loop_cpu", b->cpu, "reader_cpu",
		      b->reader_cpu, "quick", b->quick, "interrupted", interrupted, "measurements",
		      rows);
	if (!o)
		return -ENOMEM;
	ret = json_dumpf(o, stdout, JSON_COMPACT | JSON_REAL_PRECISION(10)) ? -EIO : 0;
	json_decref(o);
	putchar('\n');
	return ret;
}

int bench_report_end(struct bench *b, bool interrupted, struct err *err)
{
	int ret = 0;

	if (b->report->json)
		ret = print_json(b, interrupted);
	else if (interrupted)
		printf("\ninterrupted: the rest was not measured\n");
	if (ret == -ENOMEM)
		return err_set(err, ret, "out of memory for the report");
	if (ret || fflush(stdout) || ferror(stdout))
		return err_set(err, -EIO, "cannot write the report: %s", strerror(errno));
	return 0;
}
