// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A collector keeps the details of the last windows, and neither names nor judges: who asks does that, with
 * memory and time of its own. The answer is a head, windows and names of cgroups, as they are in memory.
 */
#include "served_lines.h"
#include "live_lines.h"

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/record_info.h"

#define WINDOW_S 10
#define DETAILS	 1024 /* of a window: 2.1 MiB in all */

void served_lines_take(struct served_lines *l, struct session *s, struct ibs_lines_counts *counts)
{
	struct hot_window *w = live_lines_window(s, DETAILS, 1);

	free(l->window[l->n % SERVED_WINDOWS]);
	l->window[l->n++ % SERVED_WINDOWS] = w;
	l->next_s = now_s() + WINDOW_S;
	counts->fed += w->fed;
	counts->no_address += w->no_address;
	counts->replaced += w->replaced;
	counts->lines = w->lines;
	counts->lack = 0;
	for (size_t i = 0; i < SERVED_WINDOWS && l->window[i]; i++) {
		w = l->window[i];
		counts->lack += w->hidden > w->lack ? w->hidden : w->lack;
	}
}

void served_lines_free(struct served_lines *l)
{
	for (size_t i = 0; i < SERVED_WINDOWS; i++)
		free(l->window[i]);
	*l = (struct served_lines){ 0 };
}

void served_lines_run(struct served_lines *l, struct session *s, bool on,
		      struct ibs_lines_counts *counts)
{
	counts->on = on;
	if (!on) /* any more: the file of options was read again */
		served_lines_free(l);
	else if (!l->next_s)
		l->next_s = now_s() + WINDOW_S;
	else if (now_s() >= l->next_s)
		served_lines_take(l, s, counts);
}

static void put_text(FILE *f, const char *text)
{
	fputs(text ?: "", f);
	fputc(0, f);
}

/* Names of the cgroups that accessed lines of a window. Return: how many. */
static __u64 put_cgroups(FILE *f, const struct session *s, const struct hot_window *w)
{
	__u64 n = 0, last = 0;

	for (size_t i = 0; i < 2 * w->n; i++) {
		const struct ibs_line_detail *d = &w->detail[i / 2].d;
		const struct ibs_line_user *u = i % 2 ? &d->writer : &d->reader;
		struct trace_event ev = { 0 };

		if (!u->cgroup_id || u->cgroup_id == last)
			continue;
		last = u->cgroup_id;
		capture_name_cgroup(s, last, &ev);
		fwrite(&last, sizeof(last), 1, f);
		put_text(f, ev.cgroup.path);
		put_text(f, ev.cgroup.container);
		put_text(f, ev.cgroup.pod);
		put_text(f, ev.cgroup.ns);
		n++;
	}
	return n;
}

void served_lines_answer(const struct served_lines *l, const struct session *s, FILE *f)
{
	struct served_head head = { .version = IBSCOPE_VERSION,
				    .detail_bytes = sizeof(struct hot_detail) };
	char *names;
	size_t n_names;
	FILE *to;

	record_info(&head.info, &head.pmu, s, 1);
	snprintf(head.source, sizeof(head.source), "%s", head.info.source);
	head.info.format = head.info.source = NULL;
	head.info.pmu = NULL;
	to = xmemopen(&names, &n_names);
	for (; head.windows < SERVED_WINDOWS && l->window[head.windows]; head.windows++)
		head.cgroups += put_cgroups(to, s, l->window[head.windows]);
	xmemclose(to);
	fwrite(&head, sizeof(head), 1, f);
	for (size_t i = 0; i < head.windows; i++)
		fwrite(l->window[i],
		       sizeof(*l->window[i]) + l->window[i]->n * sizeof(struct hot_detail), 1, f);
	fwrite(names, 1, n_names, f);
	free(names);
}

/* --- who asks --- */

/* The next @n bytes; NULL: there are fewer. */
static const void *take(struct served_answer *a, size_t n)
{
	const void *out = a->text + a->at;

	if (a->n - a->at < n)
		return NULL;
	a->at += n;
	return out;
}

static const char *take_text(struct served_answer *a)
{
	return take(a, strnlen(a->text + a->at, a->n - a->at) + 1);
}

static int bad(const struct served_answer *a, struct err *err)
{
	return err_set(err, -EPROTO,
		       "%s: the collector is not of this version, %s: restart it, or use its "
		       "ibscope",
		       a->path, IBSCOPE_VERSION);
}

static int read_head(struct served_answer *a, struct recorded *in, struct err *err)
{
	struct served_head *h = &a->head;
	const void *from = take(a, sizeof(*h));

	if (from)
		memcpy(h, from, sizeof(*h));
	if (!from || strncmp(h->version, IBSCOPE_VERSION, sizeof(h->version)) ||
	    h->detail_bytes != sizeof(struct hot_detail))
		return bad(a, err);
	h->info.format = "ibscope";
	h->info.source = h->source;
	h->info.pmu = &h->pmu;
	a->end.whole = true;
	in->head =
		(struct report_head){ .file = "", .info = &h->info, .end = &a->end, .options = "" };
	return 0;
}

static int read_windows(struct served_answer *a, struct recorded *in, struct line_set *set,
			struct err *err)
{
	int ret = 0;

	for (__u64 i = 0; !ret && i < a->head.windows; i++) {
		const void *from = take(a, sizeof(struct hot_window));
		struct hot_window first, *w;
		size_t bytes;

		if (!from)
			return bad(a, err);
		memcpy(&first, from, sizeof(first));
		bytes = first.n * sizeof(struct hot_detail);
		if (first.n > DETAILS || !take(a, bytes))
			return bad(a, err);
		w = xrealloc(NULL, sizeof(*w) + bytes);
		memcpy(w, from, sizeof(*w) + bytes);
		lines_add_window(set, w);
		in->head.op_samples += w->fed;
		ret = live_lines_names(in->tasks, NULL, w, err);
		free(w);
	}
	in->head.selected = in->head.op_samples;
	return ret;
}

static int read_cgroups(struct served_answer *a, struct tasks *tasks, struct err *err)
{
	for (__u64 i = 0; i < a->head.cgroups; i++) {
		struct trace_event ev = { .kind = TRACE_CGROUP, .time = 1 };
		const void *id = take(a, sizeof(ev.cgroup.id));

		if (!id)
			return bad(a, err);
		memcpy(&ev.cgroup.id, id, sizeof(ev.cgroup.id));
		ev.cgroup.path = take_text(a);
		ev.cgroup.container = take_text(a);
		ev.cgroup.pod = take_text(a);
		ev.cgroup.ns = take_text(a);
		if (!ev.cgroup.path || !ev.cgroup.container || !ev.cgroup.pod || !ev.cgroup.ns)
			return bad(a, err);
		tasks_add(tasks, &ev);
	}
	return 0;
}

int served_lines_read(struct served_answer *a, struct recorded *in, struct line_set **out,
		      struct err *err)
{
	const struct lines_opts opts = { .info = &a->head.info, .metric = IBS_METRIC_DC_MISS_LAT };
	int ret;

	in->tasks = tasks_new();
	ret = read_head(a, in, err);
	if (ret)
		return ret;
	in->symbols_opts.info = &a->head.info;
	*out = lines_new(&opts);
	return read_windows(a, in, *out, err) ?: read_cgroups(a, in->tasks, err)
	       ?: symbols_new(&in->symbols_opts, &in->symbols, err);
}
