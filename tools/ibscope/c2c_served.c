// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A collector keeps the details of the last windows, and neither names nor judges: who asks does that, with
 * memory and time of its own. The answer is a head, windows and names of cgroups, as they are in memory.
 */
#include "c2c_served.h"
#include "c2c_live.h"

#include "base/clock.h"
#include "capture/capture.h"
#include "capture/record_info.h"
#include "collector/control.h"

#define WINDOWS	 6
#define WINDOW_S 10
#define DETAILS	 1024 /* of a window: 2.1 MiB in all */

struct answer_head {
	char version[32], source[16];
	__u64 detail_bytes;
	struct trace_info info; /* pointers are NULL */
	struct trace_pmu pmu;
	__u64 windows, cgroups;
};

static struct hot_window *windows[WINDOWS]; /* the newest is at (n_windows - 1) % WINDOWS */
static size_t n_windows;
static double next_s;

static bool keeps_lines(const struct collector *c)
{
	return collector_settings(c)->sampling.sampler.line_sets;
}

static void exchange(struct collector *c)
{
	struct ibs_lines_counts *counts = collector_lines_counts(c);
	struct hot_window *w = c2c_live_window(collector_session(c), DETAILS);

	free(windows[n_windows % WINDOWS]);
	windows[n_windows++ % WINDOWS] = w;
	next_s = now_s() + WINDOW_S;
	counts->fed += w->fed;
	counts->no_address += w->no_address;
	counts->replaced += w->replaced;
	counts->lines = w->lines;
	counts->lack = 0;
	for (size_t i = 0; i < WINDOWS && windows[i]; i++)
		counts->lack += windows[i]->hidden > windows[i]->lack ? windows[i]->hidden
								      : windows[i]->lack;
}

int c2c_served_run(struct collector *c)
{
	collector_lines_counts(c)->on = keeps_lines(c);
	if (!keeps_lines(c)) { /* any more: the file of options was read again */
		while (n_windows) {
			const size_t i = --n_windows % WINDOWS;

			free(windows[i]);
			windows[i] = NULL;
		}
		return -1;
	}
	if (!next_s)
		next_s = now_s() + WINDOW_S;
	if (now_s() >= next_s)
		exchange(c);
	return (next_s - now_s()) * 1000 + 1;
}

void c2c_served_closing(struct collector *c)
{
	if (keeps_lines(c))
		exchange(c);
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

int c2c_served_answer(const struct collector *c, FILE *f, struct err *err)
{
	const struct session *s = collector_session(c);
	struct answer_head head = { .version = IBSCOPE_VERSION,
				    .detail_bytes = sizeof(struct hot_detail) };
	char *names;
	size_t n_names;
	FILE *to;

	if (!keeps_lines(c))
		return err_set(err, -ENODATA,
			       "the collector keeps no hot lines: start it with --hot-lines");
	if (!n_windows) /* what there is, rather than nothing */
		exchange((struct collector *)c);
	record_info(&head.info, &head.pmu, s, 1);
	snprintf(head.source, sizeof(head.source), "%s", head.info.source);
	head.info.format = head.info.source = NULL;
	head.info.pmu = NULL;
	to = xmemopen(&names, &n_names);
	for (; head.windows < WINDOWS && windows[head.windows]; head.windows++)
		head.cgroups += put_cgroups(to, s, windows[head.windows]);
	xmemclose(to);
	fwrite(&head, sizeof(head), 1, f);
	for (size_t i = 0; i < head.windows; i++)
		fwrite(windows[i], sizeof(*windows[i]) + windows[i]->n * sizeof(struct hot_detail),
		       1, f);
	fwrite(names, 1, n_names, f);
	free(names);
	return 0;
}

/* --- who asks --- */

/* The answer, and where it is read. */
static struct {
	struct control_answer answer;
	struct answer_head head;
	struct trace_end end;
	size_t at;
} asked;

/* The next @n bytes; NULL: there are fewer. */
static const void *take(size_t n)
{
	const void *out = asked.answer.text + asked.at;

	if (asked.answer.n - asked.at < n)
		return NULL;
	asked.at += n;
	return out;
}

static const char *take_text(void)
{
	return take(strnlen(asked.answer.text + asked.at, asked.answer.n - asked.at) + 1);
}

static int bad(const char *path, struct err *err)
{
	return err_set(err, -EPROTO,
		       "%s: the collector is not of this version, %s: restart it, or use its "
		       "ibscope",
		       path, IBSCOPE_VERSION);
}

static int read_head(const char *path, struct recorded *in, struct err *err)
{
	struct answer_head *h = &asked.head;
	const void *from = take(sizeof(*h));

	if (from)
		memcpy(h, from, sizeof(*h));
	if (!from || strncmp(h->version, IBSCOPE_VERSION, sizeof(h->version)) ||
	    h->detail_bytes != sizeof(struct hot_detail))
		return bad(path, err);
	h->info.format = "ibscope";
	h->info.source = h->source;
	h->info.pmu = &h->pmu;
	asked.end.whole = true;
	in->head = (struct report_head){
		.file = "", .info = &h->info, .end = &asked.end, .options = ""
	};
	return 0;
}

static int read_windows(const char *path, struct recorded *in, struct line_set *set,
			struct err *err)
{
	int ret = 0;

	for (__u64 i = 0; !ret && i < asked.head.windows; i++) {
		const void *from = take(sizeof(struct hot_window));
		struct hot_window first, *w;
		size_t bytes;

		if (!from)
			return bad(path, err);
		memcpy(&first, from, sizeof(first));
		bytes = first.n * sizeof(struct hot_detail);
		if (first.n > DETAILS || !take(bytes))
			return bad(path, err);
		w = xrealloc(NULL, sizeof(*w) + bytes);
		memcpy(w, from, sizeof(*w) + bytes);
		lines_add_window(set, w);
		in->head.op_samples += w->fed;
		ret = c2c_live_names(in->tasks, NULL, w, err);
		free(w);
	}
	in->head.selected = in->head.op_samples;
	return ret;
}

static int read_cgroups(const char *path, struct tasks *tasks, struct err *err)
{
	for (__u64 i = 0; i < asked.head.cgroups; i++) {
		struct trace_event ev = { .kind = TRACE_CGROUP, .time = 1 };
		const void *id = take(sizeof(ev.cgroup.id));

		if (!id)
			return bad(path, err);
		memcpy(&ev.cgroup.id, id, sizeof(ev.cgroup.id));
		ev.cgroup.path = take_text();
		ev.cgroup.container = take_text();
		ev.cgroup.pod = take_text();
		ev.cgroup.ns = take_text();
		if (!ev.cgroup.path || !ev.cgroup.container || !ev.cgroup.pod || !ev.cgroup.ns)
			return bad(path, err);
		tasks_add(tasks, &ev);
	}
	return 0;
}

int c2c_served_ask(const char *path, struct recorded *in, struct line_set **out, struct err *err)
{
	static const char request[] = "hot-lines\n";
	const struct lines_opts opts = { .info = &asked.head.info,
					 .metric = IBS_METRIC_DC_MISS_LAT };
	int ret = control_ask(path, request, sizeof(request) - 1, &asked.answer, err);

	if (ret)
		return ret;
	if (asked.answer.result != CONTROL_OK)
		ret = err_set(err, -EIO, "%.*s", (int)strcspn(asked.answer.text, "\n"),
			      asked.answer.text);
	in->tasks = tasks_new();
	ret = ret ?: read_head(path, in, err);
	if (!ret) {
		in->symbols_opts.info = &asked.head.info;
		*out = lines_new(&opts);
		ret = read_windows(path, in, *out, err) ?: read_cgroups(path, in->tasks, err);
	}
	ret = ret ?: symbols_new(&in->symbols_opts, &in->symbols, err);
	free(asked.answer.text);
	return ret;
}
