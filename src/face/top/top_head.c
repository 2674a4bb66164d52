// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The first lines of the screen: what is sampled, what is shown of it, and what limits its meaning. */
#include "top_private.h"
#include "base/text.h"

#include <math.h>
#include <time.h>

#define ODD 0.2 /* lengths of intervals that differ by so much are printed */

/* A text that goes to the right as far as there is room; @x is moved. */
static void add(struct paint *p, int y, int *x, enum grid_style style, const char *text)
{
	*x = grid_put(p->g, y, *x, style, text);
}

/* What the period of an event counts. */
static const char *counted_unit(const char *event)
{
	if (event && strstr(event, "ibs_fetch"))
		return "fetches";
	return event && strstr(event, "ibs_op") && !strstr(event, "cnt_ctl=1") ? "cycles" : "ops";
}

void top_paint_host(struct paint *p, int y)
{
	const struct frame *f = p->frame;
	char number[64], text[TOP_LINE];
	int x = 0, at;

	add(p, y, &x, GRID_STRONG, "ibscope top");
	if (p->info->hist.simulated)
		add(p, y, &x, GRID_WARN, "   SIMULATED");
	if (f) {
		time_t s = f->end_ns / 1000000000;

		strftime(number, sizeof(number), "%H:%M:%S", localtime(&s));
		at = p->g->width - (int)strlen(number);
		if (f->cost >= 0) {
			snprintf(text, sizeof(text), "cost %s%.2f %%",
				 p->info->cost_assumed && p->screen->utf8 ? "≈" : "",
				 100 * f->cost);
			at -= screen_columns(text) + 3;
		} else {
			snprintf(text, sizeof(text), "cost %s", p->screen->utf8 ? "–" : "-");
			at -= screen_columns(text) + 3;
		}
		grid_printf(p->g, y, at > x ? at : x + 1, GRID_PLAIN, "%s   %s", text, number);
	} else {
		at = p->g->width;
	}
	snprintf(text, sizeof(text), "   %s", p->t->opts.host ?: "");
	if (x + (int)screen_columns(text) < at)
		add(p, y, &x, GRID_STRONG, text);
	if (f && f->pmu.cpus) {
		snprintf(text, sizeof(text), "   %u CPU%s", f->pmu.cpus, text_plural(f->pmu.cpus));
		if (x + (int)screen_columns(text) < at)
			add(p, y, &x, GRID_PLAIN, text);
	}
	if (f && f->period) {
		screen_count(p->screen, f->period, number, sizeof(number));
		snprintf(text, sizeof(text), "   1 of %s %s", number,
			 counted_unit(p->info->hist.event));
	} else {
		*text = 0;
	}
	if (x + (int)(screen_columns(p->info->hist.event ?: "") + 3 + screen_columns(text)) < at) {
		x += 3;
		add(p, y, &x, GRID_PLAIN, p->info->hist.event ?: "");
		add(p, y, &x, GRID_PLAIN, *text ? text + 2 : text);
	} else if (x + (int)screen_columns(text) < at) {
		add(p, y, &x, GRID_PLAIN, text);
	}
}

static void mode_text(const struct paint *p, char *out, size_t size)
{
	const struct top *t = p->t;

	if (t->frozen && p->frame) {
		__u64 newest = history_frame(t->history, 0)->end_ns;
		unsigned int s = (newest - p->frame->end_ns + 500000000) / 1000000000;

		snprintf(out, size, "FROZEN -%02u:%02u", s / 60, s % 60);
	} else {
		snprintf(out, size, "%s", p->info->ended ? "END" : "LIVE");
	}
}

/* That estimates are of two strata, by turns. */
static void strata_text(const struct top *t, char *out, size_t size)
{
	const struct strata_report *r = t->shown.strata;

	*out = 0;
	if (r)
		snprintf(out, size, "   strata: %s %.1f s, %s %.1f s", stratum_name(STRATUM_FULL),
			 strata_total(&r->design, STRATUM_FULL).seconds, stratum_name(STRATUM_MISS),
			 strata_total(&r->design, STRATUM_MISS).seconds);
}

void top_paint_view(struct paint *p, int y)
{
	const struct top *t = p->t;
	char text[TOP_LINE], strata[64], mode[64];
	int x, end;

	mode_text(p, mode, sizeof(mode));
	end = p->g->width - (int)screen_columns(mode) - 2;
	snprintf(text, sizeof(text), "by %s   sort %s%s   ", top_level_name(t), top_sort_name(t),
		 t->opts.reverse ? p->screen->utf8 ? " ▲" : " ^" : "");
	x = grid_put(p->g, y, 0, GRID_PLAIN, text);
	if (!t->opts.once)
		x = grid_printf(p->g, y, x, GRID_PLAIN, "every %g s", t->opts.interval_s);
	if (p->frame && t->opts.once)
		x = grid_printf(p->g, y, x, GRID_PLAIN, "%.1f s", p->frame->time_ns / 1e9);
	else if (p->frame && fabs(p->frame->time_ns / 1e9 / t->opts.interval_s - 1) > ODD)
		x = grid_printf(p->g, y, x, GRID_PLAIN, " (%.1f s)", p->frame->time_ns / 1e9);
	if (t->opts.note && !t->n_zooms)
		x = grid_printf(p->g, y, x, GRID_PLAIN, "   %s", t->opts.note);
	for (unsigned int i = 0; i < t->n_zooms; i++)
		x = grid_printf(p->g, y, x, GRID_STRONG, "%s%s", i ? " > " : "   in ",
				t->zoom[i].name ?: "");
	if (t->mode == TOP_EDIT)
		x = grid_printf(p->g, y, x, GRID_SELECTED, "   filter: %s_", t->opts.match);
	else if (*t->opts.match)
		x = grid_printf(p->g, y, x, GRID_STRONG, "   filter: %s", t->opts.match);
	strata_text(t, strata, sizeof(strata));
	x = grid_put(p->g, y, x, GRID_PLAIN, strata);
	if (*p->info->origin)
		x = grid_printf(p->g, y, x, GRID_PLAIN, "   %s", p->info->origin);
	if (x >= end && end > 1)
		grid_put(p->g, y, end - 2, GRID_PLAIN, p->screen->utf8 ? "… " : "~ ");
	grid_printf(p->g, y, end > 0 ? end : 0, t->frozen ? GRID_WARN : GRID_STRONG, "[%s]", mode);
}

int top_paint_warnings(struct paint *p, int y, bool head)
{
	const struct frame *f = p->frame;
	char text[2][TOP_LINE] = { "", "" };
	size_t n[2] = {};
	bool fits, trouble = *p->info->trouble;

#define ADD(i, ...) (n[i] += snprintf(text[i] + n[i], TOP_LINE - n[i], __VA_ARGS__))
	if (p->info->hist.simulated && !head) {
		ADD(0, "SIMULATED samples, not measurements");
		ADD(1, "SIMULATED");
	}
	if (f && f->pmu.throttled) {
		ADD(0, "%sthrottled by the kernel %s time%s", n[0] ? "; " : "",
		    TEXT_COUNT(f->pmu.throttled), text_plural(f->pmu.throttled));
		ADD(1, "%sthrottled", n[1] ? "; " : "");
	}
	if (f && f->pmu.running_ns < f->pmu.enabled_ns) {
		double share = 100.0 * f->pmu.running_ns / f->pmu.enabled_ns;

		ADD(0, "%sanother profiler shares the PMU: ours %.0f %% of the time",
		    n[0] ? "; " : "", share);
		ADD(1, "%sPMU ours %.0f %%", n[1] ? "; " : "", share);
	}
#undef ADD
	fits = (int)n[0] <= p->g->width;
	grid_put(p->g, y, 0, GRID_WARN, text[!fits]);
	if (trouble)
		grid_put(p->g, y + !!n[0], 0, GRID_WARN, p->info->trouble);
	return !!n[0] + trouble;
}
