// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recording_meta.h"

#include "recording_format.h"
#include "trace/trace.h"
#include "base/json_writer.h"

#include <ibscope/outcome.h>
#include <jansson.h>

static void put_cpu(struct json_writer *w, const struct cpu_info *c)
{
	json_begin_object(w, "cpu");
	json_put_text(w, "vendor", c->vendor);
	json_put_text(w, "name", c->name);
	json_put_u64(w, "family", c->family);
	json_put_u64(w, "model", c->model);
	json_put_u64(w, "stepping", c->stepping);
	json_put_bool(w, "ibs", c->ibs);
	json_put_u64(w, "ibs_caps", c->caps);
	json_put_bool(w, "hypervisor", c->hypervisor);
	json_put_text(w, "hypervisor_name", c->hypervisor_name);
	json_end(w);
}

static void put_three(struct json_writer *w, __u64 a, __u64 b, __u64 c)
{
	json_begin_array(w, NULL);
	json_put_i64(w, NULL, a);
	json_put_i64(w, NULL, b);
	json_put_i64(w, NULL, c);
	json_end(w);
}

/* [node, node of the memory, distance] for known distances; nothing if all are unknown. */
static void put_distances(struct json_writer *w, const struct node_distances *d)
{
	unsigned int i = 0;

	if (!node_distance_next(d, &i))
		return;
	json_begin_array(w, "distance");
	for (; node_distance_next(d, &i); i++)
		put_three(w, i / DISTANCE_NODES, i % DISTANCE_NODES,
			  d->of[i / DISTANCE_NODES][i % DISTANCE_NODES]);
	json_end(w);
}

static void put_topology(struct json_writer *w, const struct trace_topology *t)
{
	json_begin_object(w, "topology");
	json_put_u16s(w, "ccx", t->ccx, t->n);
	json_put_u16s(w, "node", t->node, t->n);
	if (t->has_sockets)
		json_put_u16s(w, "socket", t->socket, t->n);
	put_distances(w, &t->distance);
	json_end(w);
}

static void put_memory(struct json_writer *w, const struct trace_info *info)
{
	json_begin_array(w, "memory");
	for (size_t i = 0; i < info->n_memory; i++)
		put_three(w, info->memory[i].node, info->memory[i].start, info->memory[i].end);
	json_end(w);
}

/* Sources that both strata sample. */
static void put_reach(struct json_writer *w, __u32 reach)
{
	if (!reach)
		return;
	json_begin_array(w, "reach");
	for (unsigned int src = 0; src < IBS_SRC_N; src++)
		if (reach >> src & 1)
			json_put_text(w, NULL, src_name(src));
	json_end(w);
}

static void put_events(struct json_writer *w, const struct trace_info *info)
{
	json_begin_array(w, "events");
	for (unsigned int i = 0; i < info->n_pmus; i++) {
		const struct trace_pmu *p = &info->pmu[i];

		json_begin_object(w, NULL);
		json_put_text(w, "name", p->name);
		json_put_text(w, "pmu", p->op ? "ibs_op" : "ibs_fetch");
		json_put_i64(w, p->freq ? "freq" : "period", p->period);
		json_put_bool(w, "physical", p->physical);
		json_put_bool(w, "stacks", p->stacks);
		if (p->copy_bytes)
			json_put_i64(w, "stack_bytes", p->copy_bytes);
		put_reach(w, p->reach);
		json_end(w);
	}
	json_end(w);
}

char *recording_meta_encode(const struct trace_info *info)
{
	char *text;
	size_t size;
	struct json_writer w = { .f = xmemopen(&text, &size) };

	json_begin_object(&w, NULL);
	json_put_text(&w, "source", info->source ?: "");
	json_put_bool(&w, "simulated", info->simulated);
	json_put_text(&w, "host", info->host);
	json_put_text(&w, "kernel", info->release);
	json_put_text(&w, "command", info->command);
	json_put_u64(&w, "cpus", info->n_cpus);
	json_put_text(&w, "filter", info->filter);
	json_put_bool(&w, "full_registers", info->full_registers);
	if (info->alloc_bytes)
		json_put_i64(&w, "alloc_bytes", info->alloc_bytes);
	if (info->alloc_probes)
		json_put_bool(&w, "alloc_probes", true);
	json_begin_object(&w, "clock");
	json_put_text(&w, "name", "CLOCK_MONOTONIC");
	json_put_i64(&w, "monotonic_ns", info->monotonic_ns);
	json_put_i64(&w, "realtime_ns", info->realtime_ns);
	json_end(&w);
	put_events(&w, info);
	if (info->has_cpu)
		put_cpu(&w, &info->cpu);
	if (info->topology)
		put_topology(&w, info->topology);
	if (info->n_memory)
		put_memory(&w, info);
	if (info->job_ranks) {
		json_begin_object(&w, "mpi");
		json_put_u64(&w, "ranks", info->job_ranks);
		json_put_text(&w, "job", info->job);
		json_end(&w);
	}
	json_end(&w);
	xmemclose(w.f);
	return text;
}

static __u64 get_number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static bool get_bool(const json_t *object, const char *key)
{
	return json_is_true(json_object_get(object, key));
}

static void get_text(const json_t *object, const char *key, char *out, size_t size)
{
	const char *s = json_string_value(json_object_get(object, key));

	out[0] = 0;
	if (s)
		strncat(out, s, size - 1);
}

static void decode_cpu(const json_t *j, struct cpu_info *c)
{
	char vendor[sizeof(c->vendor)];

	get_text(j, "vendor", vendor, sizeof(vendor));
	/* quirks are derived from family and model, since a newer program may know more of them */
	cpu_info_set(c, vendor, get_number(j, "family"), get_number(j, "model"), 0);
	get_text(j, "name", c->name, sizeof(c->name));
	c->stepping = get_number(j, "stepping");
	c->ibs = get_bool(j, "ibs");
	c->caps = get_number(j, "ibs_caps");
	c->hypervisor = get_bool(j, "hypervisor");
	get_text(j, "hypervisor_name", c->hypervisor_name, sizeof(c->hypervisor_name));
}

/* A newer source is none that this program tells apart. */
static __u32 decode_reach(const json_t *j)
{
	__u32 reach = 0;

	for (size_t i = 0; i < json_array_size(j); i++)
		for (unsigned int src = 0; src < IBS_SRC_N; src++)
			if (json_is_string(json_array_get(j, i)) &&
			    !strcmp(json_string_value(json_array_get(j, i)), src_name(src)))
				reach |= 1u << src;
	return reach;
}

static void decode_event(const json_t *j, struct trace_pmu *p)
{
	char pmu[16];

	get_text(j, "name", p->name, sizeof(p->name));
	p->filtered = trace_event_filtered(p->name);
	get_text(j, "pmu", pmu, sizeof(pmu));
	p->op = !strcmp(pmu, "ibs_op");
	p->freq = json_object_get(j, "freq") != NULL;
	p->period = get_number(j, p->freq ? "freq" : "period");
	p->physical = get_bool(j, "physical");
	p->stacks = get_bool(j, "stacks");
	p->copy_bytes = get_number(j, "stack_bytes");
	p->reach = decode_reach(json_object_get(j, "reach"));
}

static __u64 get_element(const json_t *array, size_t i)
{
	return json_integer_value(json_array_get(array, i));
}

static void decode_distances(const json_t *j, struct node_distances *out)
{
	*out = (struct node_distances){};
	for (size_t i = 0; i < json_array_size(j); i++) {
		const json_t *d = json_array_get(j, i);
		__u64 n = get_element(d, 0), m = get_element(d, 1), far = get_element(d, 2);

		if (n < DISTANCE_NODES && m < DISTANCE_NODES && far <= UINT8_MAX)
			out->of[n][m] = far;
	}
}

/* An incomplete topology is discarded. */
static bool decode_topology(const json_t *j, struct trace_topology *t)
{
	const json_t *ccx = json_object_get(j, "ccx"), *node = json_object_get(j, "node");
	const json_t *socket = json_object_get(j, "socket");

	t->n = json_array_size(ccx);
	if (!t->n || t->n > TRACE_CPUS || json_array_size(node) != t->n)
		return false;
	t->has_sockets = json_array_size(socket) == t->n;
	for (unsigned int i = 0; i < t->n; i++) {
		t->ccx[i] = get_element(ccx, i);
		t->node[i] = get_element(node, i);
		t->socket[i] = get_element(socket, i);
	}
	decode_distances(json_object_get(j, "distance"), &t->distance);
	return true;
}

/* Return: their number; 0 if any is invalid. */
static size_t decode_memory(const json_t *j, struct memory_range *out)
{
	size_t n = json_array_size(j);

	if (n > MEMORY_RANGES)
		return 0;
	for (size_t i = 0; i < n; i++) {
		const json_t *r = json_array_get(j, i);
		json_int_t node = json_integer_value(json_array_get(r, 0));

		if (json_array_size(r) != 3 || node < 0 || node > UINT16_MAX)
			return 0;
		out[i] = (struct memory_range){ get_element(r, 1), get_element(r, 2), node };
	}
	return memory_ranges_sort(out, n);
}

/* trace_info.source points to constants. */
static const char *known_source(const json_t *j)
{
	static const char *const known[] = { "ibs", "sim", "replay" };
	const char *s = json_string_value(json_object_get(j, "source"));

	for (size_t i = 0; s && i < ARRAY_SIZE(known); i++)
		if (!strcmp(s, known[i]))
			return known[i];
	return "";
}

const char *recording_meta_decode(const char *in, size_t bytes, struct trace_info *info,
				  struct trace_pmu *pmu, struct trace_topology *topology,
				  struct memory_range *memory)
{
	json_t *j = json_loadb(in, bytes, 0, NULL), *clock;
	const json_t *cpu, *events;

	if (!json_is_object(j)) {
		json_decref(j);
		return "the description of the recording is not a JSON object";
	}
	*info = (struct trace_info){ .format = "ibscope 1", .source = known_source(j) };
	info->simulated = get_bool(j, "simulated");
	get_text(j, "host", info->host, sizeof(info->host));
	get_text(j, "kernel", info->release, sizeof(info->release));
	get_text(j, "command", info->command, sizeof(info->command));
	get_text(j, "filter", info->filter, sizeof(info->filter));
	info->n_cpus = get_number(j, "cpus");
	info->full_registers = get_bool(j, "full_registers");
	info->alloc_bytes = get_number(j, "alloc_bytes");
	info->alloc_probes = get_bool(j, "alloc_probes");
	info->job_ranks = get_number(json_object_get(j, "mpi"), "ranks");
	get_text(json_object_get(j, "mpi"), "job", info->job, sizeof(info->job));
	clock = json_object_get(j, "clock");
	info->monotonic_ns = get_number(clock, "monotonic_ns");
	info->realtime_ns = get_number(clock, "realtime_ns");
	cpu = json_object_get(j, "cpu");
	info->has_cpu = json_is_object(cpu);
	if (info->has_cpu)
		decode_cpu(cpu, &info->cpu);
	if (decode_topology(json_object_get(j, "topology"), topology))
		info->topology = topology;
	info->memory = memory;
	info->n_memory = decode_memory(json_object_get(j, "memory"), memory);
	events = json_object_get(j, "events");
	info->pmu = pmu;
	do {
		pmu[info->n_pmus] = (struct trace_pmu){};
		decode_event(json_array_get(events, info->n_pmus), &pmu[info->n_pmus]);
	} while (++info->n_pmus < json_array_size(events) && info->n_pmus < TRACE_EVENTS);
	json_decref(j);
	return NULL;
}

static const char *const kinds[IBS_OUTCOME_KIND_N] = {
	[IBS_OUTCOME_KIND_AGGREGATED] = "aggregated",
	[IBS_OUTCOME_KIND_FORWARDED] = "forwarded",
	[IBS_OUTCOME_KIND_FILTERED] = "filtered",
	[IBS_OUTCOME_KIND_LOST] = "lost",
};

static void put_ledger(struct json_writer *w, const struct ledger *l)
{
	json_put_i64(w, "seen", l->seen);
	for (int k = 0; k < IBS_OUTCOME_KIND_N; k++) {
		json_begin_object(w, kinds[k]);
		for (int i = 0; i < IBS_OUTCOME_N; i++)
			if ((int)outcome_kind(i) == k)
				json_put_i64(w, outcome_name(i), l->outcome[i]);
		json_end(w);
	}
	json_put_i64(w, "pmu_samples", l->pmu_samples);
	json_put_i64(w, "unseen", l->unseen);
	json_put_bool(w, "unseen_exact", l->pmu_exact);
}

char *recording_ledger_encode(const struct ledger *ledgers, unsigned int n, __u64 unwritten,
			      __u64 lost_allocs)
{
	char *text;
	size_t size;
	struct json_writer w = { .f = xmemopen(&text, &size) };

	json_begin_object(&w, NULL);
	json_put_i64(&w, "unwritten_blocks", unwritten);
	if (lost_allocs)
		json_put_i64(&w, "lost_allocations", lost_allocs);
	if (ledgers)
		put_ledger(&w, &ledgers[0]);
	if (ledgers && n > 1) {
		json_begin_object(&w, "second_event");
		put_ledger(&w, &ledgers[1]);
		json_end(&w);
	}
	json_end(&w);
	xmemclose(w.f);
	return text;
}

static bool decode_outcomes(const json_t *of, int kind, struct ledger *l)
{
	const char *name;
	json_t *value;
	int i;

	json_object_foreach((json_t *)of, name, value)
	{
		for (i = 0; i < IBS_OUTCOME_N; i++)
			if ((int)outcome_kind(i) == kind && !strcmp(outcome_name(i), name))
				break;
		if (i < IBS_OUTCOME_N)
			l->outcome[i] = json_integer_value(value);
		else if (json_integer_value(value))
			return false;
	}
	return true;
}

/* Return: false if there is none, or this program does not understand it. */
static bool decode_ledger(const json_t *j, struct ledger *out)
{
	bool has = json_is_integer(json_object_get(j, "seen"));

	*out = (struct ledger){ .seen = get_number(j, "seen") };
	for (int k = 0; k < IBS_OUTCOME_KIND_N && has; k++)
		has = decode_outcomes(json_object_get(j, kinds[k]), k, out);
	out->pmu_samples = get_number(j, "pmu_samples");
	out->unseen = get_number(j, "unseen");
	out->pmu_exact = get_bool(j, "unseen_exact");
	return has;
}

int recording_ledger_decode(const char *in, size_t bytes, struct trace_end *end, __u64 *unwritten)
{
	json_t *j = json_loadb(in, bytes, 0, NULL), *second;
	struct ledger l[TRACE_EVENTS];
	bool has;

	if (!json_is_object(j)) {
		json_decref(j);
		return -EINVAL;
	}
	*unwritten = get_number(j, "unwritten_blocks");
	end->lost_allocs = get_number(j, "lost_allocations");
	second = json_object_get(j, "second_event");
	has = decode_ledger(j, &l[0]) && (!second || decode_ledger(second, &l[1]));
	if (has) {
		end->ledger = l[0];
		if (second)
			ledger_add(&end->ledger, &l[1], 1);
		end->n_ledgers = second ? 2 : 1;
		memcpy(end->event_ledger, l, end->n_ledgers * sizeof(l[0]));
	}
	json_decref(j);
	return has;
}
