// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Which functions the instruction fetches are of that missed the L3 cache. */
#include "report_private.h"

#include "base/array.h"
#include "table/table.h"
#include "base/text.h"

#include <stdlib.h>

#define SHOWN 3 /* functions by name */

void report_fetches_add(struct report *r, const struct trace_event *ev)
{
	const struct trace_sample *s = &ev->sample;
	struct report_fetches *f = &r->fetches;
	struct symbol sym;
	__u32 id;

	if (!r->opts.symbols || !(s->fetch.present & 1U << IBS_FETCH_CTL) ||
	    ibs_fetch_class(s->fetch.cpu, s->fetch.reg[IBS_FETCH_CTL]) != IBS_FETCH_CLASS_L3_MISS)
		return;
	f->all++;
	if (!s->has_ip)
		return;
	symbols_find(r->opts.symbols, r->opts.tasks, s->tgid, s->ip, ev->time, s->kernel, false,
		     &sym);
	if (*sym.name == '[') /* a file, or nothing */
		return;
	id = intern_get(&f->names, sym.name);
	array_reserve_zero(f->counts, f->room, id + 1);
	f->counts[id]++;
	f->named++;
}

void report_fetches_print(FILE *out, const struct report *r)
{
	const struct report_fetches *f = &r->fetches;
	__u32 best[SHOWN];
	size_t n = 0;

	if (f->all < VERDICT_SAMPLES || !f->named)
		return;
	for (__u32 id = 0; id < f->names.n; id++) {
		size_t at = n < SHOWN ? n++ : SHOWN;

		for (; at && f->counts[best[at - 1]] < f->counts[id]; at--)
			if (at < SHOWN)
				best[at] = best[at - 1];
		if (at < SHOWN)
			best[at] = id;
	}
	fprintf(out, "L3-miss code fetches come from %s function%s: ", TEXT_COUNT(f->names.n),
		text_plural(f->names.n));
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s%s %.1f%%", i ? ", " : "", intern_text(&f->names, best[i]),
			100.0 * f->counts[best[i]] / f->all);
	fprintf(out, "%s", n < f->names.n ? ", .." : "");
	if (f->named < f->all)
		fprintf(out, "; no function is known of %.1f%%",
			100.0 * (f->all - f->named) / f->all);
	fputc('\n', out);
}
