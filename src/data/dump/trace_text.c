// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "dump.h"

#include "base/json_writer.h"
#include "base/utf8.h"

#include <time.h>

typedef unsigned long long ull; /* for %llu */

/* Members of a JSON object, or words of a line. */
struct out {
	struct json_writer w; /* its stream serves both */
	bool json;
};

static void begin(struct out *o, const char *type)
{
	if (!o->json) {
		fputs(type, o->w.f);
		return;
	}
	json_begin_object(&o->w, NULL);
	json_put_text(&o->w, "type", type);
}

static void put_number(struct out *o, const char *key, __u64 v)
{
	if (o->json)
		json_put_u64(&o->w, key, v);
	else
		fprintf(o->w.f, " %s %llu", key, (ull)v);
}

static void put_hex(struct out *o, const char *key, __u64 v)
{
	if (o->json)
		json_put_hex(&o->w, key, v);
	else
		fprintf(o->w.f, " %s 0x%llx", key, (ull)v);
}

static void put_text(struct out *o, const char *key, const char *v)
{
	if (o->json) {
		json_put_text(&o->w, key, v ?: "");
		return;
	}
	fprintf(o->w.f, " %s ", key);
	utf8_put_json(o->w.f, v ?: "");
}

static void put_known(struct out *o, const char *key, const char *text)
{
	if (text && *text)
		put_text(o, key, text);
}

static void put_flag(struct out *o, const char *key, bool v)
{
	if (o->json)
		json_put_bool(&o->w, key, v);
	else if (v)
		fprintf(o->w.f, " %s", key);
}

static void put_time(struct out *o, __u64 time)
{
	if (!time)
		return;
	if (o->json)
		json_put_u64(&o->w, "time_ns", time);
	else
		fprintf(o->w.f, " time %llu.%09llu", (ull)time / 1000000000,
			(ull)time % 1000000000);
}

static void put_task(struct out *o, __u32 tgid, __u32 tid)
{
	if (o->json) {
		json_put_u64(&o->w, "pid", tgid);
		json_put_u64(&o->w, "tid", tid);
	} else {
		fprintf(o->w.f, " pid %u/%u", tgid, tid);
	}
}

static void put_build_id(struct out *o, const struct trace_mmap *m)
{
	char build_id[2 * sizeof(m->build_id) + 1] = "";

	if (!m->build_id_len)
		return;
	for (unsigned int i = 0; i < m->build_id_len && i < sizeof(m->build_id); i++)
		sprintf(build_id + 2 * i, "%02x", m->build_id[i]);
	if (o->json)
		json_put_text(&o->w, "build_id", build_id);
	else
		fprintf(o->w.f, " build_id %s", build_id);
}

static void put_stack(struct out *o, const __u64 *stack, unsigned int n)
{
	if (o->json)
		json_begin_array(&o->w, "stack");
	else if (n)
		fputs(" stack", o->w.f);
	for (unsigned int i = 0; i < n; i++) {
		if (o->json)
			json_put_hex(&o->w, NULL, stack[i]);
		else
			fprintf(o->w.f, " 0x%llx", (ull)stack[i]);
	}
	if (o->json)
		json_end(&o->w);
}

/* What events have, in the order in which it is printed. */
static const struct field {
	enum trace_kind of;
	enum { NUMBER, HEX, TEXT, KNOWN, FLAG, TASK, SLAB_NAME, OF_STRATUM } as;
	const char *key;
	size_t at, bytes;
} fields[] = {
#define FIELD(kind, as, key, member)                                         \
	{                                                                    \
		TRACE_##kind, as, key, offsetof(struct trace_event, member), \
			sizeof(((struct trace_event *)0)->member)            \
	}
	FIELD(COMM, TASK, "", comm.tgid),
	FIELD(COMM, FLAG, "exec", comm.exec),
	FIELD(COMM, TEXT, "comm", comm.name),
	FIELD(MMAP, TASK, "", mmap.tgid),
	FIELD(MMAP, FLAG, "kernel", mmap.kernel),
	FIELD(MMAP, FLAG, "exec", mmap.exec),
	FIELD(MMAP, HEX, "start", mmap.start),
	FIELD(MMAP, HEX, "len", mmap.len),
	FIELD(MMAP, HEX, "pgoff", mmap.pgoff),
	FIELD(MMAP, TEXT, "path", mmap.path),
	FIELD(FORK, TASK, "", fork.tgid),
	FIELD(FORK, NUMBER, "parent_pid", fork.parent_tgid),
	FIELD(FORK, NUMBER, "parent_tid", fork.parent_tid),
	FIELD(EXIT, TASK, "", fork.tgid),
	FIELD(EXIT, NUMBER, "parent_pid", fork.parent_tgid),
	FIELD(EXIT, NUMBER, "parent_tid", fork.parent_tid),
	FIELD(CGROUP, NUMBER, "id", cgroup.id),
	FIELD(CGROUP, TEXT, "path", cgroup.path),
	FIELD(CGROUP, KNOWN, "container", cgroup.container),
	FIELD(CGROUP, KNOWN, "pod", cgroup.pod),
	FIELD(CGROUP, KNOWN, "namespace", cgroup.ns),
	FIELD(LOST, NUMBER, "n", lost.n),
	FIELD(LOST, FLAG, "samples", lost.samples),
	FIELD(LOST, NUMBER, "cpu", lost.cpu),
	FIELD(RANK, NUMBER, "pid", rank.tgid),
	FIELD(RANK, NUMBER, "rank", rank.rank),
	FIELD(RANK, FLAG, "ended", rank.ended),
	FIELD(RANK, NUMBER, "status", rank.status),
	FIELD(REGION, NUMBER, "tid", region.tid),
	FIELD(REGION, FLAG, "omp", region.omp),
	FIELD(REGION, FLAG, "end", region.end),
	FIELD(REGION, NUMBER, "team", region.team),
	FIELD(REGION, NUMBER, "number", region.number),
	FIELD(REGION, NUMBER, "addr", region.addr),
	FIELD(REGION, TEXT, "name", region.name),
	FIELD(SLAB, HEX, "id", slab.id),
	FIELD(SLAB, NUMBER, "object_size", slab.object_size),
	FIELD(SLAB, NUMBER, "size", slab.size),
	FIELD(SLAB, NUMBER, "pad", slab.pad),
	FIELD(SLAB, NUMBER, "order", slab.order),
	FIELD(SLAB, NUMBER, "min_order", slab.min_order),
	FIELD(SLAB, FLAG, "merged", slab.merged),
	FIELD(SLAB, SLAB_NAME, "name", slab.name),
	FIELD(ALLOC, TASK, "", alloc.tgid),
	FIELD(ALLOC, HEX, "addr", alloc.addr),
	FIELD(ALLOC, NUMBER, "size", alloc.size),
	FIELD(ALLOC, NUMBER, "weight", alloc.weight),
	FIELD(ALLOC, FLAG, "mapped", alloc.mapped),
	FIELD(FREE, TASK, "", free.tgid),
	FIELD(FREE, HEX, "addr", free.addr),
	FIELD(FREE, NUMBER, "size", free.size),
	FIELD(SLICE, OF_STRATUM, "stratum", slice.of),
	FIELD(SLICE, NUMBER, "start_ns", slice.start),
	FIELD(SLICE, NUMBER, "end_ns", slice.end),
	FIELD(SLICE, NUMBER, "ops", slice.ops),
	FIELD(SLICE, NUMBER, "tagged", slice.tags),
	FIELD(SLICE, NUMBER, "period", slice.period),
};

static void put_field(struct out *o, const struct field *f, const void *value)
{
	const char *text = NULL;
	__u32 task[2];
	__u64 v = 0;

	switch (f->as) {
	case TASK: /* the tid is behind the tgid */
		memcpy(task, value, sizeof(task));
		put_task(o, task[0], task[1]);
		return;
	case SLAB_NAME:
		put_text(o, f->key, value);
		return;
	case OF_STRATUM:
		memcpy(&v, value, f->bytes);
		put_text(o, f->key, stratum_name(v));
		return;
	case TEXT:
	case KNOWN:
		memcpy(&text, value, sizeof(text));
		(f->as == KNOWN ? put_known : put_text)(o, f->key, text);
		return;
	default:
		memcpy(&v, value, f->bytes); /* little endian */
		if (f->as == FLAG)
			put_flag(o, f->key, v);
		else
			(f->as == HEX ? put_hex : put_number)(o, f->key, v);
	}
}

void trace_print_event(FILE *f, const struct trace_event *ev, bool json)
{
	static const char *const kinds[] = {
		[TRACE_COMM] = "comm",	 [TRACE_MMAP] = "mmap",	    [TRACE_FORK] = "fork",
		[TRACE_EXIT] = "exit",	 [TRACE_CGROUP] = "cgroup", [TRACE_LOST] = "lost",
		[TRACE_RANK] = "rank",	 [TRACE_REGION] = "region", [TRACE_SLAB] = "slab",
		[TRACE_ALLOC] = "alloc", [TRACE_FREE] = "free",	    [TRACE_SLICE] = "slice",
	};
	struct out o = { .w = { .f = f }, .json = json };

	if (ev->kind == TRACE_SAMPLE_OP || ev->kind == TRACE_SAMPLE_FETCH)
		return;
	begin(&o, kinds[ev->kind]);
	put_time(&o, ev->time);
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].of == ev->kind)
			put_field(&o, &fields[i], (const char *)ev + fields[i].at);
	if (ev->kind == TRACE_MMAP)
		put_build_id(&o, &ev->mmap);
	if (ev->kind == TRACE_ALLOC)
		put_stack(&o, ev->alloc.stack, ev->alloc.n_stack);
	if (json)
		json_finish(&o.w);
	else
		fputc('\n', f);
}

static void print_events(FILE *f, const struct trace_info *info)
{
	for (unsigned int i = 0; i < info->n_pmus; i++) {
		const struct trace_pmu *p = &info->pmu[i];

		fprintf(f, "# event: ");
		utf8_put_json(f, p->name);
		if (p->period)
			fprintf(f, ", %s %llu", p->freq ? "Hz" : "period", (ull)p->period);
		fprintf(f, "%s", p->physical ? ", physical addresses" : "");
		if (p->copy_bytes)
			fprintf(f, ", copies of user stacks up to %u bytes (not shown)",
				p->copy_bytes);
		fprintf(f, "%s\n", p->stacks && !p->copy_bytes ? ", call chains" : "");
	}
}

static void print_line(FILE *f, const char *key, const char *text)
{
	if (!text || !*text)
		return;
	fprintf(f, "# %s: ", key);
	utf8_put_json(f, text);
	fputc('\n', f);
}

/* The number of entries, numbered from 0. */
static unsigned int distinct(const __u16 *v, unsigned int n)
{
	unsigned int max = 0;

	for (unsigned int i = 0; i < n; i++)
		max = v[i] > max ? v[i] : max;
	return n ? max + 1 : 0;
}

static void print_info_text(FILE *f, const struct trace_info *info)
{
	if (info->simulated)
		fprintf(f, "# SIMULATED samples, not measurements\n");
	print_line(f, "format", info->format);
	print_line(f, "source", info->source);
	print_line(f, "host", info->host);
	print_line(f, "kernel", info->release);
	print_line(f, "command", info->command);
	if (info->has_cpu)
		fprintf(f, "# processor: family 0x%x, model 0x%x (%s), IBS capabilities 0x%x\n",
			info->cpu.family, info->cpu.model, cpu_generation(&info->cpu),
			info->cpu.caps);
	if (info->n_cpus)
		fprintf(f, "# cpus: %u\n", info->n_cpus);
	if (info->topology)
		fprintf(f, "# topology: %u L3 complexes, %u NUMA nodes\n",
			distinct(info->topology->ccx, info->topology->n),
			distinct(info->topology->node, info->topology->n));
	for (size_t i = 0; i < info->n_memory; i++)
		fprintf(f, "# memory: 0x%llx to 0x%llx is of node %u\n", (ull)info->memory[i].start,
			(ull)info->memory[i].end, info->memory[i].node);
	print_events(f, info);
	print_line(f, "selection", info->filter);
	if (info->alloc_probes)
		fprintf(f, "# allocations: those that programs report by probes\n");
	else if (info->alloc_bytes)
		fprintf(f, "# allocations: of %llu bytes or more, and a sample of smaller ones\n",
			(ull)info->alloc_bytes);
	fprintf(f, "# registers: %s\n", info->full_registers ? "all" : "all but IBS_OP_CTL");
	if (info->realtime_ns) {
		time_t s = info->realtime_ns / 1000000000;
		struct tm tm;
		char text[64];

		if (gmtime_r(&s, &tm) && strftime(text, sizeof(text), "%FT%T", &tm))
			fprintf(f, "# clock: time %llu.%09llu is %s.%09lluZ\n",
				(ull)info->monotonic_ns / 1000000000,
				(ull)info->monotonic_ns % 1000000000, text,
				(ull)info->realtime_ns % 1000000000);
	}
}

static void put_distances(struct json_writer *w, const struct node_distances *d)
{
	unsigned int i = 0;

	if (!node_distance_next(d, &i))
		return;
	json_begin_array(w, "distance");
	for (; node_distance_next(d, &i); i++) {
		const unsigned int n = i / DISTANCE_NODES, m = i % DISTANCE_NODES;

		json_begin_object(w, NULL);
		json_put_u64(w, "node", n);
		json_put_u64(w, "mem_node", m);
		json_put_u64(w, "distance", d->of[n][m]);
		json_end(w);
	}
	json_end(w);
}

static void put_topology(struct json_writer *w, const struct trace_topology *t)
{
	json_put_u16s(w, "ccx", t->ccx, t->n);
	json_put_u16s(w, "node", t->node, t->n);
	if (t->has_sockets)
		json_put_u16s(w, "socket", t->socket, t->n);
	put_distances(w, &t->distance);
}

static void put_memory(struct json_writer *w, const struct trace_info *info)
{
	json_begin_array(w, "memory");
	for (size_t i = 0; i < info->n_memory; i++) {
		json_begin_object(w, NULL);
		json_put_u64(w, "node", info->memory[i].node);
		json_put_u64(w, "start", info->memory[i].start);
		json_put_u64(w, "end", info->memory[i].end);
		json_end(w);
	}
	json_end(w);
}

static void put_events(struct json_writer *w, const struct trace_info *info)
{
	json_begin_array(w, "events");
	for (unsigned int i = 0; i < info->n_pmus; i++) {
		const struct trace_pmu *p = &info->pmu[i];

		json_begin_object(w, NULL);
		json_put_text(w, "name", p->name);
		if (p->period)
			json_put_u64(w, p->freq ? "freq" : "period", p->period);
		json_end(w);
	}
	json_end(w);
}

static void print_info_json(FILE *f, const struct trace_info *info)
{
	struct out o = { .w = { .f = f }, .json = true };
	struct json_writer *w = &o.w;

	begin(&o, "recording");
	put_known(&o, "format", info->format);
	put_known(&o, "source", info->source);
	json_put_bool(w, "simulated", info->simulated);
	put_known(&o, "host", info->host);
	put_known(&o, "kernel", info->release);
	put_known(&o, "command", info->command);
	if (info->has_cpu) {
		json_put_u64(w, "family", info->cpu.family);
		json_put_u64(w, "model", info->cpu.model);
		json_put_u64(w, "caps", info->cpu.caps);
	}
	if (info->n_cpus)
		json_put_u64(w, "cpus", info->n_cpus);
	if (info->topology)
		put_topology(w, info->topology);
	if (info->n_memory)
		put_memory(w, info);
	put_known(&o, "selection", info->filter);
	json_put_bool(w, "full_registers", info->full_registers);
	if (info->alloc_bytes)
		json_put_u64(w, "alloc_bytes", info->alloc_bytes);
	if (info->alloc_probes)
		json_put_bool(w, "alloc_probes", true);
	if (info->realtime_ns) {
		json_put_u64(w, "realtime_ns", info->realtime_ns);
		json_put_u64(w, "monotonic_ns", info->monotonic_ns);
	}
	put_events(w, info);
	json_finish(w);
}

void trace_print_info(FILE *f, const struct trace_info *info, bool json)
{
	if (json)
		print_info_json(f, info);
	else
		print_info_text(f, info);
}
