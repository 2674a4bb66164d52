// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A chain is interned as the line it becomes: there are far fewer chains than samples. */
#include "report_folded.h"

#include "report_private.h"

#include "base/intern.h"
#include "base/utf8.h"
#include "symbols/chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES (TRACE_STACK_MAX + 8) /* with perf's marks and the comm */
#define TEXT   512		     /* of a frame */

struct folded {
	struct folded_opts opts;
	struct intern lines;
	__u64 *weight; /* of each line */
	size_t room;
	char *buf; /* of the line that is made */
};

int folded_new(const struct folded_opts *opts, struct folded **out, struct err *err)
{
	struct folded *f = calloc(1, sizeof(*f));

	if (f)
		f->buf = malloc(FRAMES * TEXT);
	if (!f || !f->buf) {
		free(f);
		return err_set(err, -ENOMEM, "out of memory");
	}
	f->opts = *opts;
	*out = f;
	return 0;
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
static char *put_frame(char *p, const char *text, const char *suffix)
{
	size_t n = utf8_escape(p, TEXT - 16, text);

	for (char *c = p; c < p + n; c++)
		if (*c == ';')
			*c = ':';
	p = stpcpy(p + n, suffix);
	*p++ = ';';
	return p;
}

static __u64 weight_of(const struct folded *f, const struct trace_event *ev)
{
	__u32 lat;

	if (f->opts.weight == FOLDED_SAMPLES)
		return 1;
	return ev->kind == TRACE_SAMPLE_OP && report_latency(f->opts.metric, &ev->sample.op, &lat)
		       ? lat
		       : 0;
}

static int add_line(struct folded *f, const char *line, __u64 weight)
{
	__u32 id = intern_get(&f->lines, line);

	if (id == INTERN_NONE)
		return -ENOMEM;
	if (id >= f->room) {
		size_t room = f->room ? 2 * f->room : 1024;
		__u64 *more = realloc(f->weight, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		memset(more + f->room, 0, (room - f->room) * sizeof(*more));
		f->weight = more;
		f->room = room;
	}
	f->weight[id] += weight;
	return 0;
}

int folded_add(struct folded *f, const struct trace_event *ev)
{
	const struct trace_sample *s = &ev->sample;
	struct chain_frame frames[TRACE_STACK_MAX];
	const char *comm = NULL;
	unsigned int n;
	char *p;

	if (ev->kind != TRACE_SAMPLE_OP && ev->kind != TRACE_SAMPLE_FETCH)
		return 0;
	if (s->has_task)
		comm = tasks_comm(f->opts.tasks, s->tgid, s->tid, ev->time);
	p = f->buf;
	if (f->opts.simulated)
		p = put_frame(p, "SIMULATED", "");
	p = put_frame(p, comm ? comm : "[unknown]", "");
	n = chain_frames(s, frames);
	if (!n)
		p = put_frame(p, "[unknown]", "");
	while (n--) {
		struct symbol sym;

		if (symbols_find(f->opts.symbols, f->opts.tasks, s->tgid, frames[n].addr, ev->time,
				 frames[n].kernel, false, &sym))
			return -ENOMEM;
		p = put_frame(p, sym.name, frames[n].kernel ? "_[k]" : "");
	}
	p[-1] = 0;
	return add_line(f, f->buf, weight_of(f, ev));
}

static int compare(const void *pa, const void *pb, void *arg)
{
	const struct folded *f = arg;

	return strcmp(intern_text(&f->lines, *(const __u32 *)pa),
		      intern_text(&f->lines, *(const __u32 *)pb));
}

void folded_print(FILE *out, struct folded *f)
{
	__u32 *order = malloc((f->lines.n + 1) * sizeof(*order));

	for (size_t i = 0; order && i < f->lines.n; i++)
		order[i] = i;
	if (order)
		qsort_r(order, f->lines.n, sizeof(*order), compare, f);
	for (size_t i = 0; i < f->lines.n; i++) {
		__u32 id = order ? order[i] : i;

		if (f->weight[id])
			fprintf(out, "%s %llu\n", intern_text(&f->lines, id),
				(unsigned long long)f->weight[id]);
	}
	free(order);
}
