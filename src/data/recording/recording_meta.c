// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recording_meta.h"

#include "recording_format.h"
#include "trace/trace.h"
#include "base/json.h"

#include <ibscope/outcome.h>

/* The text of @j; frees @j. */
static char *dump(json_t *j)
{
	char *out = json_dumps(j, JSON_COMPACT);

	if (!out)
		out_of_memory();
	json_decref(j);
	return out;
}

static json_t *cpu_object(const struct cpu_info *c)
{
	return json_pack("{so so si si si sb sI sb so}", "vendor", json_text(c->vendor), "name",
			 json_text(c->name), "family", c->family, "model", c->model, "stepping",
			 c->stepping, "ibs", c->ibs, "ibs_caps", (json_int_t)c->caps, "hypervisor",
			 c->hypervisor, "hypervisor_name", json_text(c->hypervisor_name));
}

static json_t *event_object(const struct trace_pmu *p)
{
	return json_pack("{so ss sI sb sb}", "name", json_text(p->name), "pmu",
			 p->op ? "ibs_op" : "ibs_fetch", p->freq ? "freq" : "period",
			 (json_int_t)p->period, "physical", p->physical, "stacks", p->stacks);
}

static json_t *numbers(const __u16 *v, unsigned int n)
{
	json_t *j = json_array();

	for (unsigned int i = 0; i < n; i++)
		json_array_append_new(j, json_integer(v[i]));
	return j;
}

/* [node, node of the memory, distance] for known distances; NULL: all are unknown. */
static json_t *distance_array(const struct node_distances *d)
{
	json_t *j = json_array();

	for (unsigned int n = 0; n < DISTANCE_NODES; n++)
		for (unsigned int m = 0; m < DISTANCE_NODES; m++)
			if (d->of[n][m])
				json_array_append_new(j, json_pack("[iii]", n, m, d->of[n][m]));
	if (json_array_size(j))
		return j;
	json_decref(j);
	return NULL;
}

static json_t *topology_object(const struct trace_topology *t)
{
	return json_pack("{so so so* so*}", "ccx", numbers(t->ccx, t->n), "node",
			 numbers(t->node, t->n), "socket",
			 t->has_sockets ? numbers(t->socket, t->n) : NULL, "distance",
			 distance_array(&t->distance));
}

static json_t *memory_array(const struct trace_info *info)
{
	json_t *j = json_array();

	for (size_t i = 0; i < info->n_memory; i++)
		json_array_append_new(j, json_pack("[iII]", info->memory[i].node,
						   (json_int_t)info->memory[i].start,
						   (json_int_t)info->memory[i].end));
	return j;
}

static json_t *events_array(const struct trace_info *info)
{
	json_t *j = json_array();

	for (unsigned int i = 0; i < info->n_pmus; i++)
		json_array_append_new(j, event_object(&info->pmu[i]));
	return j;
}

char *recording_meta_encode(const struct trace_info *info)
{
	json_t *j = json_pack(
		"{so sb so so so si so sb so so}", "source", json_text(info->source ?: ""),
		"simulated", info->simulated, "host", json_text(info->host), "kernel",
		json_text(info->release), "command", json_text(info->command), "cpus", info->n_cpus,
		"filter", json_text(info->filter), "full_registers", info->full_registers, "clock",
		json_pack("{ss sI sI}", "name", "CLOCK_MONOTONIC", "monotonic_ns",
			  (json_int_t)info->monotonic_ns, "realtime_ns",
			  (json_int_t)info->realtime_ns),
		"events", events_array(info));

	if (info->has_cpu)
		json_object_set_new(j, "cpu", cpu_object(&info->cpu));
	if (info->topology)
		json_object_set_new(j, "topology", topology_object(info->topology));
	if (info->n_memory)
		json_object_set_new(j, "memory", memory_array(info));
	if (info->job_ranks)
		json_object_set_new(j, "mpi",
				    json_pack("{sI so}", "ranks", (json_int_t)info->job_ranks,
					      "job", json_text(info->job)));
	return dump(j);
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

static void put_ledger(json_t *j, const struct ledger *l)
{
	json_object_set_new(j, "seen", json_integer(l->seen));
	for (int k = 0; k < IBS_OUTCOME_KIND_N; k++)
		json_object_set_new(j, kinds[k], json_object());
	for (int i = 0; i < IBS_OUTCOME_N; i++)
		json_object_set_new(json_object_get(j, kinds[outcome_kind(i)]), outcome_name(i),
				    json_integer(l->outcome[i]));
	json_object_set_new(j, "pmu_samples", json_integer(l->pmu_samples));
	json_object_set_new(j, "unseen", json_integer(l->unseen));
	json_object_set_new(j, "unseen_exact", json_boolean(l->pmu_exact));
}

char *recording_ledger_encode(const struct ledger *ledgers, unsigned int n, __u64 unwritten)
{
	json_t *j = json_pack("{sI}", "unwritten_blocks", (json_int_t)unwritten), *second;

	if (ledgers)
		put_ledger(j, &ledgers[0]);
	if (ledgers && n > 1) {
		second = json_object();
		put_ledger(second, &ledgers[1]);
		json_object_set_new(j, "second_event", second);
	}
	return dump(j);
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
