// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "dump.h"

#include "base/json_writer.h"
#include "base/num.h"
#include "base/utf8.h"
#include "op_text.h"

#include <math.h>

/* A value: its name if it has one, else a number. */
struct value {
	const char *name, *text;
	__u64 number;
	bool has_number, hex;
};

#define VALUES_MAX (18 + (int)IBS_OP_FIELD_N + (int)IBS_FETCH_FIELD_N)

static void put_hex(FILE *f, __u64 v)
{
	fputs_unlocked("0x", f);
	num_put(f, v, 16);
}

static struct value number(const char *name, bool has, __u64 v)
{
	return (struct value){ .name = name, .number = v, .has_number = has };
}

static struct value hex(const char *name, bool has, __u64 v)
{
	return (struct value){ .name = name, .number = v, .has_number = has, .hex = true };
}

static struct value text(const char *name, const char *s)
{
	return (struct value){ .name = name, .text = s };
}

static const char *event_name(const struct trace_info *info, const struct trace_sample *s)
{
	return s->pmu < info->n_pmus && *info->pmu[s->pmu].name ? info->pmu[s->pmu].name : NULL;
}

/* Fill in all columns of a sample; fields that it does not have are absent. Return: their number. */
static size_t values_of(const struct trace_info *info, const struct trace_event *ev,
			const struct sample_names *names, struct value *v)
{
	const struct trace_sample *s = &ev->sample;
	bool op = ev->kind == TRACE_SAMPLE_OP, has;
	const struct ibs_field *fields = op ? ibs_op_fields : ibs_fetch_fields;
	__u64 bits = 0;
	size_t n = 0;

	v[n++] = text("type", op ? "ibs_op" : "ibs_fetch");
	v[n++] = text("source", info->source);
	v[n++] = number("time_ns", s->has_time, ev->time);
	v[n++] = number("cpu", s->has_cpu, s->cpu);
	v[n++] = number("pid", s->has_task, s->tgid);
	v[n++] = number("tid", s->has_task, s->tid);
	v[n++] = text("comm", names->comm);
	v[n++] = text("cgroup", names->cgroup);
	v[n++] = number("cgroup_id", s->cgroup_id, s->cgroup_id);
	v[n++] = text("event", event_name(info, s));
	if (trace_has_strata(info)) {
		v[n++] = text("stratum", stratum_name(s->pmu));
		v[n++] = number("weight", s->weight > 0, llround(s->weight));
	}
	v[n++] = hex("ip", s->has_ip, s->ip);
	if (op) {
		const __u64 *regs = s->op.reg;

		v[n++] = text("src", src_name(ibs_op_src(s->op.cpu, regs)));
		v[n++] = text("op",
			      op_kind_name(ibs_op_kind(regs[IBS_OP_DATA], regs[IBS_OP_DATA3])));
	} else {
		has = ibs_fetch_page_size(&s->fetch, &bits);
		v[n++] = number("page_size", has, bits);
	}
	for (int i = 0; i < (op ? (int)IBS_OP_FIELD_N : (int)IBS_FETCH_FIELD_N); i++) {
		has = op ? ibs_op_field(&s->op, i, &bits) : ibs_fetch_field(&s->fetch, i, &bits);
		if (op && i == IBS_OP_FIELD_OP_MEM_WIDTH && has)
			bits = 1ULL << (bits - 1); /* bytes, as in --filter */
		v[n++] = fields[i].width == 64 ? hex(fields[i].name, has, bits)
					       : number(fields[i].name, has, bits);
	}
	return n;
}

static void put_csv_value(FILE *f, const struct value *v)
{
	if (v->text)
		utf8_put_csv(f, v->text);
	else if (v->has_number && v->hex)
		put_hex(f, v->number);
	else if (v->has_number)
		num_put(f, v->number, 10);
}

static void print_csv(FILE *f, const struct trace_info *info, const struct trace_event *ev,
		      const struct sample_names *names)
{
	struct value v[VALUES_MAX];
	size_t n = values_of(info, ev, names, v);

	for (size_t i = 0; i < n; i++) {
		if (i)
			putc_unlocked(',', f);
		put_csv_value(f, &v[i]);
	}
	putc_unlocked('\n', f);
}

static void print_json(FILE *f, const struct trace_info *info, const struct trace_event *ev,
		       const struct sample_names *names)
{
	struct json_writer w = { .f = f };
	struct value v[VALUES_MAX];
	size_t n = values_of(info, ev, names, v);

	json_begin_object(&w, NULL);
	for (size_t i = 0; i < n; i++) {
		if (v[i].text)
			json_put_text(&w, v[i].name, v[i].text);
		else if (v[i].has_number && v[i].hex)
			json_put_hex(&w, v[i].name, v[i].number);
		else if (v[i].has_number)
			json_put_u64(&w, v[i].name, v[i].number);
	}
	json_finish(&w);
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
	if (trace_has_strata(info))
		fprintf(f, " stratum %s", stratum_name(s->pmu));
	if (trace_has_strata(info) && s->weight > 0)
		fprintf(f, " weight %lld", llround(s->weight));
	if (s->has_ip)
		fprintf(f, " ip %llx", (unsigned long long)s->ip);
	putc_unlocked('\n', f);
	if (ev->kind == TRACE_SAMPLE_OP)
		ibs_op_print(f, &s->op, IBS_PERF_NEWEST);
	else
		ibs_fetch_print(f, &s->fetch, IBS_PERF_NEWEST);
}

void sample_print_head(FILE *f, enum sample_format format, const struct trace_info *info,
		       bool fetch)
{
	const struct trace_event ev = { .kind = fetch ? TRACE_SAMPLE_FETCH : TRACE_SAMPLE_OP };
	const struct sample_names names = {};
	struct value v[VALUES_MAX];
	size_t n = values_of(info, &ev, &names, v);

	if (format != SAMPLE_CSV)
		return;
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s%s", i ? "," : "", v[i].name);
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
