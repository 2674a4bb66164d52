// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "push_profile.h"

#include "base/intern.h"
#include "push_service.h"
#include "profile/profile.h"

/*
 * Then what has no name yet stays without one. With the defaults a profile is posted before the next one begins, 50 s after it
 * ended.
 */
#define NAMES_CPU_S  20
#define NAMES_WALL_S 45
#define NAMES_NICE   5 /* others first: what is not named in time is left out, and the rest arrives */

/* service.name by process: each is asked once. */
struct services {
	struct u64_map of; /* texts by process */
	struct intern texts;
};

static const char *service_of(struct services *s, const struct trace_event *ev)
{
	__u32 tgid = ev->sample.tgid, text = u64_map_get(&s->of, tgid);
	char name[PUSH_SERVICE_MAX];

	if (text == U64_MAP_NONE) {
		text = intern_get(&s->texts, tgid ? push_service_name(tgid, name) ?: "" : "");
		u64_map_put(&s->of, tgid, text);
	}
	return *intern_text(&s->texts, text) ? intern_text(&s->texts, text) : NULL;
}

/* All samples are read once before, so that cheap files can be named first. */
static int name_all(struct trace *trace, struct tasks *tasks, struct symbols *names,
		    struct err *err)
{
	struct trace_event ev;
	int ret;

	while ((ret = trace_next(trace, &ev, err)) > 0) {
		if (ev.kind != TRACE_SAMPLE_OP)
			continue;
		symbols_note_container(names, tasks, &ev);
		symbols_note(names, tasks, &ev);
	}
	if (ret)
		return ret;
	symbols_name_noted(names, tasks, trace_info(trace)->pmu[0].stacks);
	return trace_rewind(trace, err);
}

static int add_all(struct pprof *p, struct trace *trace, struct report_head *head, bool *estimates,
		   struct err *err)
{
	struct services services = {};
	struct trace_event ev;
	int ret;

	*estimates = true;
	while ((ret = trace_next(trace, &ev, err)) > 0) {
		enum report_unit unit;

		if (ev.kind == TRACE_LOST)
			head->lost_records += ev.lost.n;
		if (ev.kind != TRACE_SAMPLE_OP)
			continue;
		head->op_samples++;
		*estimates &= report_period(head->info, &ev, &unit) > 0;
		pprof_add(p, &ev, service_of(&services, &ev));
	}
	head->selected = head->op_samples;
	u64_map_free(&services.of);
	intern_free(&services.texts);
	return ret;
}

static double since_1970(const struct trace_info *info, __u64 ns)
{
	return (info->realtime_ns + (double)ns - info->monotonic_ns) / 1e9;
}

int push_profile(int recording, int fd, __u64 from_ns, __u64 until_ns, __u64 dropped,
		 enum ibs_metric metric, struct naming_memory *given_up, struct push_profile *out,
		 struct err *err)
{
	struct report_head head = { .file = "a collector",
				    .options = "of serve --push",
				    .lost_samples = dropped };
	struct report_opts opts = { .metric = metric };
	struct symbols_opts symbols = { .no_inline = true, /* its time is for names */
					.cpu_s = NAMES_CPU_S,
					.wall_s = NAMES_WALL_S,
					.nice = NAMES_NICE,
					.memory = given_up };
	struct symbols *names = NULL;
	struct pprof *p = NULL;
	struct trace *trace = NULL;
	struct tasks *tasks = tasks_new();
	char path[64];
	int ret;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", recording);
	ret = trace_open(path, &trace, err);
	ret = ret ?: tasks_read(tasks, trace, err);
	if (!ret) {
		head.info = opts.info = symbols.info = trace_info(trace);
		ret = symbols_new(&symbols, &names, err);
	}
	ret = ret ?: report_keys_parse(PPROF_LABELS, opts.by, &opts.n_by, err);
	if (!ret) {
		opts.tasks = tasks;
		opts.symbols = names;
		ret = name_all(trace, tasks, names, err);
	}
	if (!ret) {
		out->unnamed_files = symbols_lack_time(names);
		p = pprof_new(&opts);
		ret = add_all(p, trace, &head, &out->estimates, err);
	}
	if (!ret) {
		out->unnamed_samples = pprof_samples(p, CODE_NO_TIME);
		head.end = trace_end(trace);
		out->from_s = since_1970(head.info, from_ns);
		out->until_s = since_1970(head.info, until_ns);
		snprintf(out->host, sizeof(out->host), "%s", head.info->host);
		ret = pprof_write(p, &head, fd, err);
	}
	pprof_free(p);
	symbols_free(names);
	tasks_free(tasks);
	trace_close(trace);
	return ret;
}
