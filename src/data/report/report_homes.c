// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Allocations that are accessed mostly from another node than the one that has their memory, and who touched them first. */
#include "report.h"
#include "report_print.h"

#include "base/intern.h"
#include "base/text.h"
#include "base/utf8.h"
#include "heap/heap_blocks.h"

#include <ibscope/op_fields.h>

#define SHOWN  5
#define NODES  256
#define JUDGED 200 /* sites, those with most accesses */
#define FEW    20  /* accesses of which no node is said to be the one that has most */

/* Allocations of one site. */
struct home {
	__u32 text;
	__u64 samples;	     /* whose nodes are known */
	__u64 first;	     /* time of the first sample of all, */
	__u32 tgid, tid;     /* the thread that it is of, */
	int node;	     /* and the node of its CPU, or -1 */
	unsigned int blocks; /* number of the last block seen, one more; for `several` */
	bool several;	     /* blocks */
};

/* Accesses from a node to the memory of another, or the same. */
struct pair {
	__u32 home;
	unsigned int cpu, memory;
	__u64 samples;
};

struct report_homes {
	struct intern texts;
	struct u64_map text_of; /* by stack and maps */
	struct u64_map home_of; /* by text */
	struct u64_map pair_of;
	struct home *homes;
	struct pair *pairs;
	size_t n, room, n_pairs, pairs_room;
};

struct report_homes *report_homes_new(void)
{
	return xcalloc(1, sizeof(struct report_homes));
}

void report_homes_free(struct report_homes *h)
{
	if (!h)
		return;
	intern_free(&h->texts);
	u64_map_free(&h->text_of);
	u64_map_free(&h->home_of);
	u64_map_free(&h->pair_of);
	free(h->homes);
	free(h->pairs);
	free(h);
}

static __u32 text_of(struct report_homes *h, const struct report_opts *opts,
		     const struct heap_block *b)
{
	const __u64 key = words_hash(
		(const __u64[]){ (uintptr_t)b->stack, tasks_maps(opts->tasks, b->tgid, b->time) },
		2);
	__u32 text = u64_map_get(&h->text_of, key);
	char buf[REPORT_SITE];

	if (text != U64_MAP_NONE)
		return text;
	report_site(opts->symbols, opts->tasks, b, buf, sizeof(buf));
	text = intern_get(&h->texts, buf);
	u64_map_put(&h->text_of, key, text);
	return text;
}

static __u32 home_of(struct report_homes *h, __u32 text)
{
	__u32 i = u64_map_get(&h->home_of, text);

	if (i != U64_MAP_NONE)
		return i;
	array_reserve(h->homes, h->room, h->n + 1);
	h->homes[h->n] = (struct home){ .text = text, .first = ~0ull, .node = -1 };
	u64_map_put(&h->home_of, text, h->n);
	return h->n++;
}

static void add_pair(struct report_homes *h, __u32 home, unsigned int cpu, unsigned int memory)
{
	const __u64 key = (__u64)home << 16 | cpu << 8 | memory;
	__u32 i = u64_map_get(&h->pair_of, key);

	if (i == U64_MAP_NONE) {
		array_reserve(h->pairs, h->pairs_room, h->n_pairs + 1);
		i = h->n_pairs++;
		h->pairs[i] = (struct pair){ home, cpu, memory, 0 };
		u64_map_put(&h->pair_of, key, i);
	}
	h->pairs[i].samples++;
	h->homes[home].samples++;
}

void report_homes_add(struct report_homes *h, const struct report_opts *opts,
		      const struct trace_event *ev)
{
	const struct trace_topology *t = opts->info->topology;
	const struct trace_sample *s = &ev->sample;
	const int memory = report_memory_node(opts->info, &s->op),
		  cpu = t && s->has_cpu && s->cpu < t->n ? t->node[s->cpu] : -1;
	struct data_place place;
	struct heap_block b;
	struct home *home;
	__u64 addr;
	__u32 i;

	if (!s->has_task || !ibs_op_field(&s->op, IBS_OP_FIELD_DC_LIN_AD, &addr))
		return;
	symbols_data(opts->symbols, opts->tasks, s->tgid, addr, ev->time, &place);
	if (!report_block(opts->tasks, s->tgid, addr, ev->time, &place, &b))
		return;
	i = home_of(h, text_of(h, opts, &b));
	home = &h->homes[i];
	home->several |= home->blocks && home->blocks != b.number + 1;
	home->blocks = b.number + 1;
	if (ev->time < home->first) {
		home->first = ev->time;
		home->tgid = s->tgid;
		home->tid = s->tid;
		home->node = cpu;
	}
	if (cpu >= 0 && memory >= 0 && cpu < NODES && memory < NODES)
		add_pair(h, i, cpu, memory);
}

/* Where most accesses of one are from, and go to. */
struct verdict {
	__u64 from[NODES], to[NODES];
	unsigned int cpu, memory;
};

static void judge(const struct report_homes *h, __u32 home, struct verdict *v)
{
	*v = (struct verdict){ { 0 } };
	for (size_t i = 0; i < h->n_pairs; i++) {
		if (h->pairs[i].home != home)
			continue;
		v->from[h->pairs[i].cpu] += h->pairs[i].samples;
		v->to[h->pairs[i].memory] += h->pairs[i].samples;
	}
	for (unsigned int n = 0; n < NODES; n++) {
		v->cpu = v->from[n] > v->from[v->cpu] ? n : v->cpu;
		v->memory = v->to[n] > v->to[v->memory] ? n : v->memory;
	}
}

static void print_home(FILE *f, const struct report_homes *h, const struct home *home,
		       const struct verdict *v, const struct tasks *tasks)
{
	const char *comm = tasks_comm(tasks, home->tgid, home->tid, home->first);

	fputs("  ", f);
	utf8_put(f, intern_text(&h->texts, home->text));
	fprintf(f, ": %s of %s accesses from node %u, %s to memory of node %u;\n    %s touched by",
		TEXT_COUNT(v->from[v->cpu]), TEXT_COUNT(home->samples), v->cpu,
		TEXT_COUNT(v->to[v->memory]), v->memory,
		home->several ? "the first one seen" : "first seen");
	fprintf(f, " thread %u", home->tid);
	if (comm) {
		fputs(" (", f);
		utf8_put(f, comm);
		fputs(")", f);
	}
	if (home->node >= 0)
		fprintf(f, " on node %d", home->node);
	fputc('\n', f);
}

static int by_samples(const void *pa, const void *pb)
{
	const struct home *a = *(const struct home *const *)pa,
			  *b = *(const struct home *const *)pb;

	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	return a->text < b->text ? -1 : 1;
}

void report_homes_print(FILE *f, const struct report_homes *h, const struct tasks *tasks)
{
	const struct home **order = xcalloc(h->n + 1, sizeof(*order));
	unsigned int shown = 0;
	struct verdict v;

	for (size_t i = 0; i < h->n; i++)
		order[i] = &h->homes[i];
	qsort(order, h->n, sizeof(*order), by_samples);
	for (size_t i = 0; i < h->n && i < JUDGED && order[i]->samples >= FEW && shown < SHOWN;
	     i++) {
		judge(h, order[i] - h->homes, &v);
		if (v.cpu == v.memory)
			continue;
		if (!shown++)
			fputs("\nallocations used most from another node than the one of their "
			      "memory:\n",
			      f);
		print_home(f, h, order[i], &v, tasks);
	}
	free(order);
}
