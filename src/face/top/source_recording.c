// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* A recording, as fast as asked for. Its own clock is that of its samples. */
#include "source.h"
#include "base/std.h"
#include "top_private.h"

#include "annotate/annotate.h"
#include "base/intern.h"
#include "replay/replay.h"
#include "symbols/symbols.h"
#include "trace/trace.h"

#include <math.h>

#define PLACE	      (IBS_BY_COMPLEX | IBS_BY_NODE)
#define FUNCTIONS_MAX 8192 /* groups, unless --max-groups was given */

struct recording {
	struct top_source source;
	struct trace *trace;
	struct replay_opts opts;
	bool mangled;
	__u32 selected_groups; /* of --max-groups; 0: not given */
	struct replay *r;
	__u64 first, at;     /* time of the first sample; how far it is, in time of samples */
	struct tasks *tasks; /* NULL: nobody has asked for functions */
	struct symbols *symbols;
	struct intern functions;
	struct snapshot last;
	char event[TOP_TEXT];
};

static void describe(struct recording *s, const char *name)
{
	const struct trace_info *info = trace_info(s->trace);
	struct top_source_info *i = &s->source.info;

	snprintf(i->origin, sizeof(i->origin), "%.80s, %gx", name, s->source.speed);
	i->hist = (struct hist_info){ .source = "replay",
				      .event = s->event,
				      .metric = s->opts.metric,
				      .simulated = info->simulated };
	for (unsigned int p = 0; p < info->n_pmus; p++) {
		if (info->pmu[p].op == ibs_metric_of_fetch(s->opts.metric) || *s->event)
			continue;
		snprintf(s->event, sizeof(s->event), "%s", info->pmu[p].name);
		i->hist.period =
			info->pmu[p].freq || trace_has_strata(info) ? 0 : info->pmu[p].period;
		s->opts.period = i->hist.period;
	}
}

static __u32 function_of(void *arg, const struct trace_event *ev)
{
	const struct trace_sample *sample = &ev->sample;
	struct symbol sym = { .name = "[unknown]" };
	struct recording *s = arg;

	symbols_note_container(s->symbols, s->tasks, ev);
	if (sample->has_ip)
		symbols_find(s->symbols, s->tasks, sample->tgid, sample->ip, ev->time,
			     sample->kernel, false, &sym);
	return intern_get(&s->functions, sym.name);
}

static int read_tasks(struct recording *s, struct err *err)
{
	const struct symbols_opts opts = { .info = trace_info(s->trace), .mangled = s->mangled };
	int ret;

	s->tasks = tasks_new();
	ret = tasks_read(s->tasks, s->trace, err);
	return ret ?: symbols_new(&opts, &s->symbols, err);
}

/* Go on from where it was, with other groups: they begin anew, but the time does not. */
static int recording_open(struct top_source *source, unsigned int labels, struct err *err)
{
	struct recording *s = (struct recording *)source;
	int ret = s->r ? trace_rewind(s->trace, err) : 0;
	__u64 next = 0;

	replay_close(s->r);
	s->r = NULL;
	snapshot_free(&s->last);
	s->at = s->at > source->back_ns ? s->at - source->back_ns : 0;
	source->back_ns = 0;
	s->opts.by = labels_by(labels & ~TABLE_JOINED);
	source->info.by = s->opts.by;
	if (s->opts.by & BY_SYMBOL && !s->tasks)
		ret = ret ?: read_tasks(s, err);
	if (!s->selected_groups)
		s->opts.max_groups = s->opts.by & BY_SYMBOL ? FUNCTIONS_MAX : 0;
	ret = ret ?: replay_open(s->trace, &s->opts, &s->r, err);
	ret = ret ?: replay_until(s->r, s->at > s->first ? s->at : 0, &next, err);
	if (ret < 0)
		return ret;
	source->info.ended = !ret;
	if (!s->at)
		s->at = s->first = next;
	return replay_snapshot(s->r, &s->last, err);
}

/* Of a time of samples. */
static __u64 time_of_day(const struct recording *s, __u64 time)
{
	const struct trace_info *info = trace_info(s->trace);

	return info->realtime_ns ? info->realtime_ns + (time - info->monotonic_ns) : time;
}

static int recording_read(struct top_source *source, double seconds, struct snapshot *out,
			  struct frame *frame, struct err *err)
{
	struct recording *s = (struct recording *)source;
	double length = seconds * s->source.speed * 1e9;
	__u64 to = isinf(length) ? ~0ULL : s->at + (__u64)(length + 0.5), last;
	struct snapshot now;
	int ret;

	if (source->info.ended)
		return 1;
	ret = replay_until(s->r, to, &last, err);
	if (ret < 0)
		return ret;
	source->info.ended = !ret;
	if (!ret) /* the last interval ends with the last sample */
		to = last > s->at ? last : s->at + 1;
	ret = replay_snapshot(s->r, &now, err);
	if (ret)
		return ret;
	snapshot_diff(&now, &s->last, out);
	snapshot_free(&s->last);
	s->last = now;
	out->time_ns = to - s->at;
	s->at = to;
	*frame = (struct frame){ .end_ns = time_of_day(s, to),
				 .by = source->info.by,
				 .period = source->info.hist.period,
				 .metric = s->opts.metric,
				 .cost = HISTORY_NO_COST };
	return 0;
}

static const char *recording_name(void *arg, __u64 id, enum label l)
{
	if (l == LABEL_SYMBOL)
		return intern_text(&((struct recording *)arg)->functions, id);
	return replay_cgroup_name(((struct recording *)arg)->r, id, l);
}

static int recording_annotate(struct top_source *source, struct top *t, struct annotate **out,
			      struct err *err)
{
	struct recording *s = (struct recording *)source;
	const struct annotate_opts opts = { .info = trace_info(s->trace),
					    .tasks = s->tasks,
					    .symbols = s->symbols,
					    .metric = s->opts.metric,
					    .name = top_function(t) };
	struct replay_opts selection = s->opts;
	struct replay *r = NULL;
	struct trace_event ev;
	struct group g = {};
	int ret;

	if (ibs_metric_of_fetch(s->opts.metric))
		return err_set(err, -EINVAL,
			       "the cost of an instruction is known from samples of ibs_op only");
	if (labels_by(top_labels(t) & ~TABLE_JOINED) & (IBS_BY_MODE | IBS_BY_MEM_NODE))
		return err_set(err, -EINVAL, "no instructions of rows --by mode or mem_node");
	if (*opts.name == '[')
		return err_set(err, -ENOENT, "%s: no function is known of these samples",
			       opts.name);
	selection.by = 0;
	selection.names = true;
	selection.differences = false;
	ret = trace_rewind(s->trace, err) ?: replay_open(s->trace, &selection, &r, err);
	if (ret)
		return ret;
	*out = annotate_new(&opts);
	while ((ret = trace_next(s->trace, &ev, err)) > 0) {
		ret = ev.kind == TRACE_SAMPLE_OP ? replay_judge(r, &ev, err) : 0;
		if (ret < 0)
			break;
		if (!ret)
			continue;
		replay_key(r, &ev, &g.key);
		g.symbol = function_of(s, &ev);
		if (top_in_row(t, &g))
			annotate_add(*out, &ev);
	}
	replay_close(r);
	ret = ret ?: annotate_finish(*out, err);
	if (ret)
		annotate_free(*out);
	return ret;
}

static void recording_close(struct top_source *source)
{
	struct recording *s = (struct recording *)source;

	replay_close(s->r);
	snapshot_free(&s->last);
	places_free(&source->info.places);
	symbols_free(s->symbols);
	tasks_free(s->tasks);
	intern_free(&s->functions);
	free(s);
}

int source_read_again(struct top_source *s, struct top *t, struct err *err)
{
	struct history *was = t->history;
	size_t n = history_n(was), shown = top_shown(t);
	struct snapshot interval;
	struct frame frame;
	int ret;

	t->history = history_new();
	for (size_t i = 0; i < n; i++)
		s->back_ns += history_frame(was, i)->time_ns;
	ret = s->open(s, top_labels(t), err);
	for (size_t i = n; !ret && i-- > 0;) {
		ret = s->read(s, history_frame(was, i)->time_ns / 1e9 / s->speed, &interval, &frame,
			      err);
		if (ret)
			break;
		history_add(t->history, &interval, &frame, s->name, s);
		snapshot_free(&interval);
	}
	history_free(was);
	t->fresh = false;
	n = history_n(t->history);
	if (n)
		t->number = history_frame(t->history, shown < n ? shown : n - 1)->number;
	return ret < 0 ? ret : 0;
}

struct top_source *source_recording(struct trace *t, const struct replay_opts *opts,
				    const char *name, double speed, bool mangled)
{
	struct recording *s = xcalloc(1, sizeof(*s));

	*s = (struct recording){
		.source = { .name = recording_name,
			    .open = recording_open,
			    .read = recording_read,
			    .close = recording_close,
			    .annotate = recording_annotate,
			    .speed = speed,
			    .info = { .by_possible =
					      trace_info(t)->topology ? ~0U : ~(__u32)PLACE } },
		.trace = t,
		.opts = *opts,
		.mangled = mangled,
		.selected_groups = opts->max_groups,
	};
	s->opts.symbol = function_of;
	s->opts.symbol_arg = s;
	s->opts.costs = true;
	s->opts.differences = true;
	places_of_recording(&s->source.info.places, trace_info(t)->topology);
	describe(s, name);
	return &s->source;
}
