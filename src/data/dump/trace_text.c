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

static void put_mmap(struct out *o, const struct trace_mmap *m)
{
	char build_id[2 * sizeof(m->build_id) + 1] = "";

	put_task(o, m->tgid, m->tid);
	put_flag(o, "kernel", m->kernel);
	put_flag(o, "exec", m->exec);
	put_hex(o, "start", m->start);
	put_hex(o, "len", m->len);
	put_hex(o, "pgoff", m->pgoff);
	put_text(o, "path", m->path);
	if (!m->build_id_len)
		return;
	for (unsigned int i = 0; i < m->build_id_len && i < sizeof(m->build_id); i++)
		sprintf(build_id + 2 * i, "%02x", m->build_id[i]);
	if (o->json)
		json_put_text(&o->w, "build_id", build_id);
	else
		fprintf(o->w.f, " build_id %s", build_id);
}

void trace_print_event(FILE *f, const struct trace_event *ev, bool json)
{
	static const char *const kinds[] = {
		[TRACE_COMM] = "comm", [TRACE_MMAP] = "mmap",	  [TRACE_FORK] = "fork",
		[TRACE_EXIT] = "exit", [TRACE_CGROUP] = "cgroup", [TRACE_LOST] = "lost",
		[TRACE_RANK] = "rank", [TRACE_REGION] = "region", [TRACE_SLAB] = "slab",
	};
	struct out o = { .w = { .f = f }, .json = json };

	if (ev->kind == TRACE_SAMPLE_OP || ev->kind == TRACE_SAMPLE_FETCH)
		return;
	begin(&o, kinds[ev->kind]);
	put_time(&o, ev->time);
	switch (ev->kind) {
	case TRACE_COMM:
		put_task(&o, ev->comm.tgid, ev->comm.tid);
		put_flag(&o, "exec", ev->comm.exec);
		put_text(&o, "comm", ev->comm.name);
		break;
	case TRACE_MMAP:
		put_mmap(&o, &ev->mmap);
		break;
	case TRACE_FORK:
	case TRACE_EXIT:
		put_task(&o, ev->fork.tgid, ev->fork.tid);
		put_number(&o, "parent_pid", ev->fork.parent_tgid);
		put_number(&o, "parent_tid", ev->fork.parent_tid);
		break;
	case TRACE_CGROUP:
		put_number(&o, "id", ev->cgroup.id);
		put_text(&o, "path", ev->cgroup.path);
		put_known(&o, "container", ev->cgroup.container);
		put_known(&o, "pod", ev->cgroup.pod);
		put_known(&o, "namespace", ev->cgroup.ns);
		break;
	case TRACE_RANK:
		put_number(&o, "pid", ev->rank.tgid);
		put_number(&o, "rank", ev->rank.rank);
		put_flag(&o, "ended", ev->rank.ended);
		put_number(&o, "status", ev->rank.status);
		break;
	case TRACE_REGION:
		put_number(&o, "tid", ev->region.tid);
		put_flag(&o, "omp", ev->region.omp);
		put_flag(&o, "end", ev->region.end);
		put_number(&o, "team", ev->region.team);
		put_number(&o, "number", ev->region.number);
		put_number(&o, "addr", ev->region.addr);
		put_text(&o, "name", ev->region.name);
		break;
	case TRACE_SLAB:
		put_hex(&o, "id", ev->slab.id);
		put_number(&o, "object_size", ev->slab.object_size);
		put_number(&o, "size", ev->slab.size);
		put_number(&o, "pad", ev->slab.pad);
		put_number(&o, "order", ev->slab.order);
		put_number(&o, "min_order", ev->slab.min_order);
		put_flag(&o, "merged", ev->slab.merged);
		put_text(&o, "name", ev->slab.name);
		break;
	default:
		put_number(&o, "n", ev->lost.n);
		put_flag(&o, "samples", ev->lost.samples);
		put_number(&o, "cpu", ev->lost.cpu);
	}
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
		fprintf(f, "%s%s\n", p->physical ? ", physical addresses" : "",
			p->stacks ? ", call chains" : "");
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

static void put_cpus(struct json_writer *w, const char *key, const __u16 *v, unsigned int n)
{
	json_begin_array(w, key);
	for (unsigned int i = 0; i < n; i++)
		json_put_u64(w, NULL, v[i]);
	json_end(w);
}

static void put_distances(struct json_writer *w, const struct node_distances *d)
{
	bool any = false;

	for (unsigned int n = 0; n < DISTANCE_NODES; n++) {
		for (unsigned int m = 0; m < DISTANCE_NODES; m++) {
			if (!d->of[n][m])
				continue;
			if (!any)
				json_begin_array(w, "distance");
			any = true;
			json_begin_object(w, NULL);
			json_put_u64(w, "node", n);
			json_put_u64(w, "mem_node", m);
			json_put_u64(w, "distance", d->of[n][m]);
			json_end(w);
		}
	}
	if (any)
		json_end(w);
}

static void put_topology(struct json_writer *w, const struct trace_topology *t)
{
	put_cpus(w, "ccx", t->ccx, t->n);
	put_cpus(w, "node", t->node, t->n);
	if (t->has_sockets)
		put_cpus(w, "socket", t->socket, t->n);
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
