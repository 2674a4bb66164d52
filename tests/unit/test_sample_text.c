// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Samples as text, CSV and JSON: what is printed is read again, by readers of others where there
 * are some, and compared with what the decoder says of the same registers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include <ibscope/sim.h>

#include "base/utf8.h"
#include "dump/op_text.h"
#include "dump/dump.h"

#define ROUNDS	    6000
#define COLUMNS_MAX 128

static const __u32 caps_of[] = { 0xff, 0x3ff, 0xbff, 0x81bff, 0x9fbff, 0x7, 0x7ff };
static const __u32 quirks_of[] = { 0, ~0U, IBS_QUIRK_OP_1293, IBS_QUIRK_FETCH_NEEDS_PHY };

static const struct trace_pmu pmus[] = { { .name = "ibs_op/cnt_ctl=1,l3missonly=1/", .op = true },
					 { .name = "ibs_fetch//" } };
static const struct trace_info info = { .source = "ibs", .pmu = pmus, .n_pmus = 2 };

static char *printed;
static size_t printed_len;

static FILE *begin(void)
{
	free(printed);
	printed = NULL;
	return open_memstream(&printed, &printed_len);
}

static void print(enum sample_format format, const struct trace_event *ev,
		  const struct sample_names *names)
{
	FILE *f = begin();

	sample_print(f, format, &info, ev, names);
	fclose(f);
}

/* --- random samples --- */

static __u64 state;

static __u64 draw(void)
{
	return ibs_sim_mix(state++);
}

static void random_sample(struct trace_event *ev, bool fetch)
{
	struct trace_sample *s = &ev->sample;
	__u64 bits = draw();
	__u32 present;

	memset(ev, 0, sizeof(*ev));
	ev->kind = fetch ? TRACE_SAMPLE_FETCH : TRACE_SAMPLE_OP;
	ev->time = draw();
	s->pmu = fetch;
	s->has_time = bits & 1;
	s->has_cpu = bits & 2;
	s->has_task = bits & 4;
	s->has_ip = bits & 8;
	s->tgid = draw();
	s->tid = draw();
	s->cpu = draw() & 2047;
	s->ip = draw();
	s->cgroup_id = bits & 16 ? draw() : 0;
	present = bits & 32 ? ~0U : draw(); /* compact records lack registers */
	if (fetch) {
		s->fetch.cpu.caps = caps_of[draw() % 7];
		s->fetch.cpu.quirks = quirks_of[draw() % 4];
		s->fetch.present = present & ((1 << IBS_FETCH_REG_N) - 1);
		for (int r = 0; r < IBS_FETCH_REG_N; r++)
			s->fetch.reg[r] = s->fetch.present >> r & 1 ? draw() : 0;
	} else {
		s->op.cpu.caps = caps_of[draw() % 7];
		s->op.cpu.quirks = quirks_of[draw() % 4];
		s->op.present = present & ((1 << IBS_OP_REG_N) - 1);
		if (bits & 64)
			ibs_sim_op(1, 0, draw(), s->op.cpu.caps, s->op.reg);
		for (int r = 0; r < IBS_OP_REG_N; r++)
			if (!(s->op.present >> r & 1))
				s->op.reg[r] = 0;
			else if (!(bits & 64))
				s->op.reg[r] = draw();
	}
}

/* The values that must be there, by name; NULL if absent. */
static const char *expect(const struct trace_event *ev, const struct sample_names *names,
			  const char *name, char buf[32])
{
	const struct trace_sample *s = &ev->sample;
	bool fetch = ev->kind == TRACE_SAMPLE_FETCH;
	unsigned int n = fetch ? IBS_FETCH_FIELD_N : IBS_OP_FIELD_N;
	__u64 v;

#define NUMBER(has, fmt, v) \
	((has) ? snprintf(buf, 32, fmt, (unsigned long long)(v)), (const char *)buf : NULL)
	for (unsigned int i = 0; i < n; i++) {
		const struct ibs_field *f = fetch ? &ibs_fetch_fields[i] : &ibs_op_fields[i];

		if (strcmp(f->name, name))
			continue;
		if (!(fetch ? ibs_fetch_field(&s->fetch, i, &v) : ibs_op_field(&s->op, i, &v)))
			return NULL;
		if (!strcmp(name, "mem_width"))
			v = 1ULL << (v - 1);
		return f->width == 64 ? NUMBER(true, "0x%llx", v) : NUMBER(true, "%llu", v);
	}
	if (!strcmp(name, "type"))
		return fetch ? "ibs_fetch" : "ibs_op";
	if (!strcmp(name, "source"))
		return "ibs";
	if (!strcmp(name, "time_ns"))
		return NUMBER(s->has_time, "%llu", ev->time);
	if (!strcmp(name, "cpu"))
		return NUMBER(s->has_cpu, "%llu", s->cpu);
	if (!strcmp(name, "pid"))
		return NUMBER(s->has_task, "%llu", s->tgid);
	if (!strcmp(name, "tid"))
		return NUMBER(s->has_task, "%llu", s->tid);
	if (!strcmp(name, "comm"))
		return names->comm;
	if (!strcmp(name, "cgroup"))
		return names->cgroup;
	if (!strcmp(name, "cgroup_id"))
		return NUMBER(s->cgroup_id, "%llu", s->cgroup_id);
	if (!strcmp(name, "event"))
		return pmus[s->pmu].name;
	if (!strcmp(name, "ip"))
		return NUMBER(s->has_ip, "0x%llx", s->ip);
	if (!strcmp(name, "page_size"))
		return NUMBER(fetch && ibs_fetch_page_size(&s->fetch, &v), "%llu", v);
	if (!strcmp(name, "src"))
		return src_name(ibs_op_src(s->op.cpu, s->op.reg));
	if (!strcmp(name, "op"))
		return op_kind_name(ibs_op_kind(s->op.reg[IBS_OP_DATA], s->op.reg[IBS_OP_DATA3]));
#undef NUMBER
	fail_msg("a column '%s' that is nothing known", name);
	return NULL;
}

/* --- CSV --- */

/* Fields of one line, unquoted in place. */
static size_t split_csv(char *line, char **fields)
{
	char *in = line, *out;
	size_t n = 0;

	for (;;) {
		bool quoted = *in == '"';

		assert_true(n < COLUMNS_MAX);
		fields[n++] = out = in;
		in += quoted;
		for (;; in++) {
			if (quoted && *in == '"' && in[1] != '"') {
				in++;
				assert_true(*in == ',' || *in == '\n');
				break;
			}
			if (quoted && *in == '"')
				in++;
			else if (!quoted && (*in == ',' || *in == '\n'))
				break;
			assert_true(*in);
			*out++ = *in;
		}
		if (*in == '\n') {
			assert_int_equal(in[1], 0);
			*out = 0;
			return n;
		}
		in++;
		*out = 0;
	}
}

static void check_csv(bool fetch)
{
	char *head, *names[COLUMNS_MAX], *values[COLUMNS_MAX], buf[32];
	struct trace_event ev;
	FILE *f = begin();
	size_t n;

	sample_print_head(f, SAMPLE_CSV, &(struct trace_info){}, fetch);
	fclose(f);
	head = printed;
	printed = NULL;
	n = split_csv(head, names);
	assert_true(n > (fetch ? IBS_FETCH_FIELD_N : IBS_OP_FIELD_N));
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(names[i], names[j]);
	for (int round = 0; round < ROUNDS; round++) {
		struct sample_names who = { .comm = round & 1 ? "a \"b\",c" : NULL,
					    .cgroup = round & 2 ? "/a,b" : NULL };

		random_sample(&ev, fetch);
		print(SAMPLE_CSV, &ev, &who);
		assert_int_equal(split_csv(printed, values), n);
		for (size_t i = 0; i < n; i++) {
			const char *want = expect(&ev, &who, names[i], buf);

			assert_string_equal(values[i], want ?: "");
		}
	}
	free(head);
}

static void test_csv_op(void **state_)
{
	(void)state_;
	check_csv(false);
}

static void test_csv_fetch(void **state_)
{
	(void)state_;
	check_csv(true);
}

/* --- JSON --- */

static void check_json(bool fetch)
{
	char *head, *names[COLUMNS_MAX], buf[32], number[32];
	struct trace_event ev;
	FILE *f = begin();
	size_t n;

	sample_print_head(f, SAMPLE_CSV, &(struct trace_info){}, fetch);
	fclose(f);
	head = printed;
	printed = NULL;
	n = split_csv(head, names);
	for (int round = 0; round < ROUNDS; round++) {
		struct sample_names who = { .comm = round & 1 ? "a\t\"b\\\n\x1b" : NULL,
					    .cgroup = round & 2 ? "/\xc3\xa4/\xf0\x9f\x90\xa7"
								: NULL };
		json_error_t e;
		size_t there = 0;
		json_t *o;

		random_sample(&ev, fetch);
		ev.time &= INT64_MAX; /* what jansson can read */
		ev.sample.cgroup_id &= INT64_MAX;
		print(SAMPLE_JSON, &ev, &who);
		assert_ptr_equal(strchr(printed, '\n'), printed + printed_len - 1);
		o = json_loads(printed, JSON_REJECT_DUPLICATES, &e);
		if (!o)
			fail_msg("%s: %s", e.text, printed);
		for (size_t i = 0; i < n; i++) {
			const char *want = expect(&ev, &who, names[i], buf);
			json_t *v = json_object_get(o, names[i]);

			there += v != NULL;
			if (!want) {
				assert_null(v);
			} else if (json_is_integer(v)) {
				snprintf(number, sizeof(number), "%lld",
					 (long long)json_integer_value(v));
				assert_string_equal(number, want);
			} else {
				assert_string_equal(json_string_value(v), want);
			}
		}
		assert_int_equal(there, json_object_size(o));
		json_decref(o);
	}
	free(head);
}

static void test_json_op(void **state_)
{
	(void)state_;
	check_json(false);
}

static void test_json_fetch(void **state_)
{
	(void)state_;
	check_json(true);
}

/* Any bytes come out as JSON that reads; those that are UTF-8 unchanged. */
static void test_json_strings(void **state_)
{
	(void)state_;
	for (int round = 0; round < 50000; round++) {
		char bytes[17] = "";
		json_t *v, *same;
		FILE *f;

		for (int i = 0; i < 1 + round % 16; i++) {
			__u64 r = draw();

			/* lead and continuation bytes often enough to meet each other */
			bytes[i] = r & 1 ? r >> 8 : r & 2 ? 0x80 | (r >> 8 & 0x3f) : 0xc0 | r >> 59;
			if (!bytes[i])
				bytes[i] = 1;
		}
		f = begin();
		utf8_put_json(f, bytes);
		fclose(f);
		v = json_loads(printed, JSON_DECODE_ANY, NULL);
		if (!v)
			fail_msg("not JSON: %s", printed);
		same = json_string(bytes);
		if (same)
			assert_string_equal(json_string_value(v), bytes);
		else
			assert_non_null(strchr(json_string_value(v), '?'));
		json_decref(same);
		json_decref(v);
	}
}

/* --- text --- */

static void test_text(void **state_)
{
	const struct sample_names who = { .comm = "a b", .cgroup = "/c" };
	char *all, *regs;
	size_t len;

	(void)state_;
	for (int round = 0; round < ROUNDS; round++) {
		struct trace_event ev;
		FILE *f;

		random_sample(&ev, round & 1);
		print(SAMPLE_TEXT, &ev, &who);
		all = printed;
		printed = NULL;
		f = open_memstream(&regs, &len);
		if (round & 1)
			ibs_fetch_print(f, &ev.sample.fetch, IBS_PERF_NEWEST);
		else
			ibs_op_print(f, &ev.sample.op, IBS_PERF_NEWEST);
		fclose(f);
		assert_string_equal(strchr(all, '\n') + 1, regs);
		*strchr(all, '\n') = 0;
		assert_non_null(strstr(all, " comm \"a b\" cgroup \"/c\" event \"ibs_"));
		assert_int_equal(!!strstr(all, " time "), ev.sample.has_time);
		assert_int_equal(!!strstr(all, " cpu "), ev.sample.has_cpu);
		assert_int_equal(!!strstr(all, " pid "), ev.sample.has_task);
		assert_int_equal(!!strstr(all, " ip "), ev.sample.has_ip);
		free(all);
		free(regs);
	}
}

/* A record without the control register has all lines but that one. */
static void test_text_compact(void **state_)
{
	const struct sample_names nobody = {};
	struct trace_event ev = { .kind = TRACE_SAMPLE_OP };
	struct ibs_op_sample *s = &ev.sample.op;
	char *full;

	(void)state_;
	s->cpu.caps = 0xbff;
	for (__u64 n = 0; n < 1000; n++) {
		char *second;

		ibs_sim_op(3, 0, n, s->cpu.caps, s->reg);
		s->present = (1 << IBS_OP_REG_FIXED) - 1;
		print(SAMPLE_TEXT, &ev, &nobody);
		full = printed;
		printed = NULL;
		s->present &= ~(1U << IBS_OP_CTL);
		s->reg[IBS_OP_CTL] = 0;
		print(SAMPLE_TEXT, &ev, &nobody);
		second = strchr(full, '\n') + 1;
		assert_int_equal(strncmp(second, "ibs_op_ctl:", 11), 0);
		assert_string_equal(strchr(printed, '\n') + 1, strchr(second, '\n') + 1);
		free(full);
	}
}

static void test_simulated(void **state_)
{
	struct trace_info sim = info;
	struct trace_event ev;
	FILE *f;

	(void)state_;
	sim.simulated = true;
	sim.source = "sim";
	random_sample(&ev, false);
	for (int format = SAMPLE_TEXT; format <= SAMPLE_JSON; format++) {
		f = begin();
		sample_print(f, format, &sim, &ev, &(struct sample_names){});
		fclose(f);
		assert_non_null(strstr(printed, format == SAMPLE_TEXT  ? "SIMULATED"
						: format == SAMPLE_CSV ? ",sim,"
								       : "\"source\":\"sim\""));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_csv_op),	     cmocka_unit_test(test_csv_fetch),
		cmocka_unit_test(test_json_op),	     cmocka_unit_test(test_json_fetch),
		cmocka_unit_test(test_json_strings), cmocka_unit_test(test_text),
		cmocka_unit_test(test_text_compact), cmocka_unit_test(test_simulated),
	};
	int ret = cmocka_run_group_tests(tests, NULL, NULL);

	free(printed);
	return ret;
}
