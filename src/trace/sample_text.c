// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "sample_text.h"

#include "base/utf8.h"
#include "op_text.h"

/*
 * What CSV and JSON have beside the fields of the registers: X(NAME, "name"). Each is empty or not
 * there where the sample does not tell.
 */
#define COLUMN_TABLE(X)           \
	X(TYPE, "type")           \
	X(SOURCE, "source")       \
	X(TIME, "time_ns")        \
	X(CPU, "cpu")             \
	X(TGID, "tgid")           \
	X(TID, "tid")             \
	X(COMM, "comm")           \
	X(CGROUP, "cgroup")       \
	X(CGROUP_ID, "cgroup_id") \
	X(EVENT, "event")         \
	X(IP, "ip")               \
	X(SRC, "src")             \
	X(OP, "op")               \
	X(PAGE_SIZE, "page_size")

enum column {
#define COLUMN_ENUM(id, name) COLUMN_##id,
	COLUMN_TABLE(COLUMN_ENUM)
#undef COLUMN_ENUM
		COLUMN_N
};

static const char *const columns[COLUMN_N] = {
#define COLUMN_NAME(id, name) name,
	COLUMN_TABLE(COLUMN_NAME)
#undef COLUMN_NAME
};

/* Those that samples of the other PMU have. */
static bool has_column(enum column c, bool fetch)
{
	if (c == COLUMN_PAGE_SIZE)
		return fetch;
	return !(fetch && (c == COLUMN_SRC || c == COLUMN_OP));
}

/* A value, if there is one: text, or else a number. */
struct value {
	const char *text;
	__u64 number;
	bool has_number, hex;
};

static void put_number(FILE *f, __u64 v, unsigned int base)
{
	char digits[24], *p = digits + sizeof(digits);

	do
		*--p = "0123456789abcdef"[v % base];
	while (v /= base);
	fwrite_unlocked(p, 1, digits + sizeof(digits) - p, f);
}

static void put_hex(FILE *f, __u64 v)
{
	fputs_unlocked("0x", f);
	put_number(f, v, 16);
}

static struct value number(bool has, __u64 v)
{
	return (struct value){ .number = v, .has_number = has };
}

static struct value hex(bool has, __u64 v)
{
	return (struct value){ .number = v, .has_number = has, .hex = true };
}

static struct value text(const char *s)
{
	return (struct value){ .text = s };
}

static const char *event_name(const struct trace_info *info, const struct trace_sample *s)
{
	return s->pmu < info->n_pmus && *info->pmu[s->pmu].name ? info->pmu[s->pmu].name : NULL;
}

static struct value column_value(enum column c, const struct trace_info *info,
				 const struct trace_event *ev, const struct sample_names *names)
{
	const struct trace_sample *s = &ev->sample;
	bool op = ev->kind == TRACE_SAMPLE_OP;
	__u64 bytes = 0;
	bool has;

	switch (c) {
	case COLUMN_TYPE:
		return text(op ? "ibs_op" : "ibs_fetch");
	case COLUMN_SOURCE:
		return text(info->source);
	case COLUMN_TIME:
		return number(s->has_time, ev->time);
	case COLUMN_CPU:
		return number(s->has_cpu, s->cpu);
	case COLUMN_TGID:
		return number(s->has_task, s->tgid);
	case COLUMN_TID:
		return number(s->has_task, s->tid);
	case COLUMN_COMM:
		return text(names->comm);
	case COLUMN_CGROUP:
		return text(names->cgroup);
	case COLUMN_CGROUP_ID:
		return number(s->cgroup_id, s->cgroup_id);
	case COLUMN_EVENT:
		return text(event_name(info, s));
	case COLUMN_IP:
		return hex(s->has_ip, s->ip);
	case COLUMN_SRC:
		return text(src_name(ibs_op_src(s->op.cpu, s->op.reg)));
	case COLUMN_OP:
		return text(
			op_kind_name(ibs_op_kind(s->op.reg[IBS_OP_DATA], s->op.reg[IBS_OP_DATA3])));
	default:
		has = ibs_fetch_page_size(&s->fetch, &bytes);
		return number(has, bytes);
	}
}

static unsigned int n_fields(bool fetch)
{
	return fetch ? IBS_FETCH_FIELD_N : IBS_OP_FIELD_N;
}

static const struct ibs_field *field_at(bool fetch, unsigned int i)
{
	return fetch ? &ibs_fetch_fields[i] : &ibs_op_fields[i];
}

static struct value field_value(const struct trace_event *ev, unsigned int i)
{
	bool fetch = ev->kind == TRACE_SAMPLE_FETCH;
	__u64 v = 0;
	bool has = fetch ? ibs_fetch_field(&ev->sample.fetch, i, &v)
			 : ibs_op_field(&ev->sample.op, i, &v);

	return field_at(fetch, i)->width == 64 ? hex(has, v) : number(has, v);
}

static void put_csv_value(FILE *f, const struct value *v)
{
	if (v->text)
		utf8_put_csv(f, v->text);
	else if (v->has_number && v->hex)
		put_hex(f, v->number);
	else if (v->has_number)
		put_number(f, v->number, 10);
}

static void print_csv(FILE *f, const struct trace_info *info, const struct trace_event *ev,
		      const struct sample_names *names)
{
	bool fetch = ev->kind == TRACE_SAMPLE_FETCH;
	struct value v;

	for (int c = 0; c < COLUMN_N; c++) {
		if (!has_column(c, fetch))
			continue;
		v = column_value(c, info, ev, names);
		if (c)
			putc_unlocked(',', f);
		put_csv_value(f, &v);
	}
	for (unsigned int i = 0; i < n_fields(fetch); i++) {
		v = field_value(ev, i);
		putc_unlocked(',', f);
		put_csv_value(f, &v);
	}
	putc_unlocked('\n', f);
}

/* Addresses are strings: numbers above 2^53 do not come through every JSON reader. */
static void put_json_value(FILE *f, const char *name, const struct value *v, bool *first)
{
	if (!v->text && !v->has_number)
		return;
	fputs_unlocked(*first ? "{\"" : ",\"", f);
	*first = false;
	fputs_unlocked(name, f);
	fputs_unlocked("\":", f);
	if (v->text) {
		utf8_put_json(f, v->text);
	} else if (v->hex) {
		putc_unlocked('"', f);
		put_hex(f, v->number);
		putc_unlocked('"', f);
	} else {
		put_number(f, v->number, 10);
	}
}

static void print_json(FILE *f, const struct trace_info *info, const struct trace_event *ev,
		       const struct sample_names *names)
{
	bool fetch = ev->kind == TRACE_SAMPLE_FETCH, first = true;
	struct value v;

	for (int c = 0; c < COLUMN_N; c++) {
		if (!has_column(c, fetch))
			continue;
		v = column_value(c, info, ev, names);
		put_json_value(f, columns[c], &v, &first);
	}
	for (unsigned int i = 0; i < n_fields(fetch); i++) {
		v = field_value(ev, i);
		put_json_value(f, field_at(fetch, i)->name, &v, &first);
	}
	fputs_unlocked("}\n", f);
}

static void print_text(FILE *f, const struct trace_info *info, const struct trace_event *ev,
		       const struct sample_names *names)
{
	const struct trace_sample *s = &ev->sample;
	const char *event = event_name(info, s);

	fputs_unlocked(ev->kind == TRACE_SAMPLE_OP ? "ibs_op sample" : "ibs_fetch sample", f);
	if (info->simulated)
		fputs_unlocked(" SIMULATED", f);
	if (s->has_time)
		fprintf(f, " time %llu.%09llu", (unsigned long long)ev->time / 1000000000,
			(unsigned long long)ev->time % 1000000000);
	if (s->has_cpu)
		fprintf(f, " cpu %u", s->cpu);
	if (s->has_task)
		fprintf(f, " pid %u/%u", s->tgid, s->tid);
	if (names->comm) {
		fputs_unlocked(" comm ", f);
		utf8_put_json(f, names->comm);
	}
	if (names->cgroup) {
		fputs_unlocked(" cgroup ", f);
		utf8_put_json(f, names->cgroup);
	} else if (s->cgroup_id) {
		fprintf(f, " cgroup #%llu", (unsigned long long)s->cgroup_id);
	}
	if (event) {
		fputs_unlocked(" event ", f);
		utf8_put_json(f, event);
	}
	if (s->has_ip)
		fprintf(f, " ip %llx", (unsigned long long)s->ip);
	putc_unlocked('\n', f);
	if (ev->kind == TRACE_SAMPLE_OP)
		ibs_op_print(f, &s->op, IBS_PERF_NEWEST);
	else
		ibs_fetch_print(f, &s->fetch, IBS_PERF_NEWEST);
}

void sample_print_head(FILE *f, enum sample_format format, bool fetch)
{
	if (format != SAMPLE_CSV)
		return;
	for (int c = 0; c < COLUMN_N; c++)
		if (has_column(c, fetch))
			fprintf(f, "%s%s", c ? "," : "", columns[c]);
	for (unsigned int i = 0; i < n_fields(fetch); i++)
		fprintf(f, ",%s", field_at(fetch, i)->name);
	fputc('\n', f);
}

void sample_print(FILE *f, enum sample_format format, const struct trace_info *info,
		  const struct trace_event *ev, const struct sample_names *names)
{
	if (ev->kind != TRACE_SAMPLE_OP && ev->kind != TRACE_SAMPLE_FETCH)
		return;
	if (format == SAMPLE_CSV)
		print_csv(f, info, ev, names);
	else if (format == SAMPLE_JSON)
		print_json(f, info, ev, names);
	else
		print_text(f, info, ev, names);
}
