// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A chain is interned as the line it becomes: there are far fewer chains than samples. */
#include "profile.h"

#include "base/intern.h"
#include "base/utf8.h"
#include "heap/heap_blocks.h"
#include "symbols/chain.h"

#include <math.h>

#define TEXT 512 /* of a frame */

struct folded {
	struct folded_opts opts;
	struct intern lines;
	__u64 *weight; /* of each line */
	size_t room;
	char *buf; /* of the line that is made */
	size_t buf_room, n;
};

struct folded *folded_new(const struct folded_opts *opts)
{
	struct folded *f = xcalloc(1, sizeof(*f));

	f->opts = *opts;
	return f;
}

void folded_free(struct folded *f)
{
	if (!f)
		return;
	intern_free(&f->lines);
	free(f->weight);
	free(f->buf);
	free(f);
}

/* A semicolon separates frames, so that a name cannot have one. */
static void put_frame(struct folded *f, const char *text, const char *suffix)
{
	char *p;
	size_t n;

	array_reserve(f->buf, f->buf_room, f->n + TEXT);
	p = f->buf + f->n;
	n = utf8_escape(p, TEXT - 16, text);
	for (char *c = p; c < p + n; c++)
		if (*c == ';')
			*c = ':';
	p = stpcpy(p + n, suffix);
	*p++ = ';';
	f->n = p - f->buf;
}

static void put_inlined(struct folded *f, const struct inlined *innermost)
{
	const struct inlined *frames[INLINED_MAX];
	unsigned int n = 0;

	for (const struct inlined *i = innermost; i; i = i->into)
		frames[n++] = i;
	while (n--)
		put_frame(f, frames[n]->function.name, "_[i]");
}

static __u64 weight_of(const struct folded *f, const struct trace_event *ev)
{
	const __u64 n = f->opts.strata ? llround(ev->sample.weight) : 1;
	__u32 lat;

	if (f->opts.weight == FOLDED_SAMPLES)
		return n;
	return report_latency(f->opts.metric, &ev->sample, &lat) ? n * lat : 0;
}

static void put_function(struct folded *f, __u32 tgid, __u64 addr, __u64 time, bool kernel)
{
	struct symbol sym;

	symbols_find(f->opts.symbols, f->opts.tasks, tgid, addr, time, kernel, false, &sym);
	put_frame(f, sym.name, kernel ? "_[k]" : "");
	put_inlined(f, symbols_inlined(f->opts.symbols, &sym));
}

static void put_chain(struct folded *f, const struct trace_event *ev)
{
	struct chain_frame frames[TRACE_STACK_MAX];
	unsigned int n = chain_frames(f->opts.symbols, f->opts.tasks, ev, frames);

	if (!n)
		put_frame(f, "[unknown]", "");
	while (n--)
		put_function(f, ev->sample.tgid, frames[n].addr, ev->time, frames[n].kernel);
}

static void put_allocation(struct folded *f, const struct trace_event *ev)
{
	struct heap_block b;
	char text[TEXT];

	if (!report_sample_block(f->opts.symbols, f->opts.tasks, ev, &b, text, sizeof(text)))
		put_frame(f, *text ? text : "[unknown]", "");
	else if (!b.n_stack)
		put_frame(f, "[no stack]", "");
	else
		for (unsigned int i = b.n_stack; i--;) /* calls are before their return addresses */
			put_function(f, b.tgid, b.stack[i] - 1, b.time, false);
}

void folded_add(struct folded *f, const struct trace_event *ev)
{
	const struct trace_sample *s = &ev->sample;
	const char *comm = NULL;
	__u32 line;

	if (ev->kind != trace_kind_of(f->opts.metric))
		return;
	if (s->has_task)
		comm = tasks_comm(f->opts.tasks, s->tgid, s->tid, ev->time);
	f->n = 0;
	if (f->opts.simulated)
		put_frame(f, "SIMULATED", "");
	put_frame(f, comm ? comm : "[unknown]", "");
	if (f->opts.allocations)
		put_allocation(f, ev);
	else
		put_chain(f, ev);
	f->buf[f->n - 1] = 0;
	line = intern_get(&f->lines, f->buf);
	array_reserve_zero(f->weight, f->room, line + 1);
	f->weight[line] += weight_of(f, ev);
}

static int compare(const void *pa, const void *pb, void *arg)
{
	const struct folded *f = arg;

	return strcmp(intern_text(&f->lines, *(const __u32 *)pa),
		      intern_text(&f->lines, *(const __u32 *)pb));
}

void folded_print(FILE *out, struct folded *f)
{
	__u32 *order = xcalloc(f->lines.n, sizeof(*order));

	for (size_t i = 0; i < f->lines.n; i++)
		order[i] = i;
	qsort_r(order, f->lines.n, sizeof(*order), compare, f);
	for (size_t i = 0; i < f->lines.n; i++)
		if (f->weight[order[i]])
			fprintf(out, "%s %llu\n", intern_text(&f->lines, order[i]),
				(unsigned long long)f->weight[order[i]]);
	free(order);
}
