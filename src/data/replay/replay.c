// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "replay.h"

#include "engine.h"
#include "replay_cgroups.h"
#include "replay_strata.h"
#include "trace/tasks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * An engine is built for one processor: samples of other processors, as in joined files, get an engine of
 * their own.
 */
#define ENGINES_MAX 16
#define NO_PLACE    ((__u16)~0) /* no complex and no node has this number */

/* Data of each sample that selections, labels or filters need. */
struct needs {
	bool task, cpu, place, cgroup, comm;
};

struct replay {
	struct trace *trace;
	struct replay_opts opts;
	struct tasks *tasks; /* NULL: names are not needed */
	struct replay_cgroups cgroups;
	struct cgroup_select *select;
	struct needs needs;
	struct replay_rest rest;
	struct cpulist cpus; /* that have samples */
	__u64 first, last;   /* time of samples of selected CPUs */
	__u64 read;	     /* time of the latest sample that was read */
	bool has_time;
	__u64 n;		    /* samples replayed */
	struct trace_event waiting; /* read ahead: its time has not come */
	bool waits;
	struct ibs_cpu cpu_of[ENGINES_MAX]; /* of engines */
	struct engine *engines[ENGINES_MAX];
	size_t n_engines;
	struct replay_strata *strata; /* NULL: none; else it has the engines of samples */
	char name[CONTAINER_LABEL];   /* last result of replay_cgroup_name() */
};

bool replay_selects(const struct replay_opts *o)
{
	const struct selection *sel = &o->sel;

	return sel->processes.n || sel->threads.n || sel->n_comms || sel->op_mask ||
	       sel->src_mask || sel->min_lat || sel->max_lat || o->filter || o->n_cgroups ||
	       o->n_containers || o->cpus;
}

static void find_needs(struct replay *r)
{
	const struct selection *sel = &r->opts.sel;
	__u32 by = r->opts.by;
	__u32 filter = r->opts.filter ? r->opts.filter->prog.needs : 0;

	r->needs.task = sel->processes.n || sel->processes.but || sel->threads.n ||
			by & (IBS_BY_PID | IBS_BY_TID) || filter & IBS_FILTER_NEEDS_TASK;
	r->needs.place = by & (IBS_BY_COMPLEX | IBS_BY_NODE);
	r->needs.cpu =
		r->opts.cpus || r->needs.place || by & IBS_BY_CPU || filter & IBS_FILTER_NEEDS_CPU;
	r->needs.cgroup = filter & IBS_FILTER_NEEDS_CGROUP;
	r->needs.comm = sel->n_comms || by & IBS_BY_COMM;
}

static enum trace_kind wanted(const struct replay *r)
{
	return trace_kind_of(r->opts.metric);
}

static struct ibs_cpu cpu_of(const struct trace_event *ev)
{
	return ev->kind == TRACE_SAMPLE_FETCH ? ev->sample.fetch.cpu : ev->sample.op.cpu;
}

static const __u64 *regs_of(const struct trace_event *ev)
{
	return ev->kind == TRACE_SAMPLE_FETCH ? ev->sample.fetch.reg : ev->sample.op.reg;
}

/* Read all events, and of the samples only the cgroups. */
static int survey(struct replay *r, struct err *err)
{
	struct trace_event ev;
	int ret;

	while ((ret = trace_next(r->trace, &ev, err)) > 0) {
		if (ev.kind == TRACE_SAMPLE_OP || ev.kind == TRACE_SAMPLE_FETCH) {
			if (ev.sample.cgroup_id)
				replay_cgroups_add(&r->cgroups, ev.sample.cgroup_id, NULL);
		} else if (ev.kind == TRACE_CGROUP) {
			replay_cgroups_add(&r->cgroups, ev.cgroup.id, ev.cgroup.path);
			if (ev.cgroup.container && *ev.cgroup.container)
				replay_cgroups_name(&r->cgroups, ev.cgroup.path,
						    ev.cgroup.container, ev.cgroup.pod,
						    ev.cgroup.ns);
		} else if (ev.kind == TRACE_LOST) {
			r->rest.lost += ev.lost.n;
		} else if (r->tasks) {
			tasks_add(r->tasks, &ev);
		}
	}
	return ret ?: trace_rewind(r->trace, err);
}

static int select_cgroups(struct replay *r, struct err *err)
{
	const struct cgroup_select_opts opts = {
		.cgroups = r->opts.cgroups,
		.n_cgroups = r->opts.n_cgroups,
		.containers = r->opts.containers,
		.n_containers = r->opts.n_containers,
		.filter = r->opts.filter,
		.other = CGROUP_UNKNOWN,
	};
	struct cgroup_source src;

	replay_cgroups_source(&r->cgroups, &src);
	return cgroup_select_open(&src, &opts, &r->select, err);
}

int replay_open(struct trace *trace, const struct replay_opts *opts, struct replay **out,
		struct err *err)
{
	struct replay *r = xcalloc(1, sizeof(*r));
	int ret = 0;

	r->trace = trace;
	r->opts = *opts;
	r->strata = opts->differences ? NULL : replay_strata_new(trace);
	if (opts->filter && opts->filter->prog.needs & IBS_FILTER_NEEDS_UID)
		ret = err_set(
			err, -ENODATA,
			"--filter: recordings do not contain users and groups: leave out 'uid' "
			"and 'gid'");
	find_needs(r);
	if (!ret && r->needs.place && !trace_info(trace)->topology)
		ret = err_set(err, -ENODATA,
			      "--by: the recording lacks the topology of its machine: leave "
			      "out 'ccx', 'node' and 'distance'");
	if (trace_info(trace)->topology)
		rows_distances(&trace_info(trace)->topology->distance);
	if (!ret && (r->needs.comm || opts->names || opts->by & IBS_BY_SLAB))
		r->tasks = tasks_new();
	ret = ret ?: survey(r, err);
	if (!ret && opts->by & IBS_BY_SLAB && !tasks_slabs(r->tasks)->n)
		ret = err_set(err, -ENODATA,
			      "--by slab: the recording has no slab caches, as those of ibscope "
			      "record --slabs do");
	ret = ret ?: select_cgroups(r, err);
	if (ret)
		replay_close(r);
	else
		*out = r;
	return ret;
}

void replay_close(struct replay *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_engines; i++)
		engine_close(r->engines[i]);
	tasks_free(r->tasks);
	replay_cgroups_free(&r->cgroups);
	cgroup_select_close(r->select);
	replay_strata_free(r->strata);
	free(r);
}

/* All events of the kind count ops, and no hardware filter chooses them. */
static bool counts_ops(const struct replay *r)
{
	const struct trace_info *info = trace_info(r->trace);
	bool any = false;

	for (size_t i = 0; i < info->n_pmus; i++) {
		const struct trace_pmu *pmu = &info->pmu[i];

		if (pmu->op != (wanted(r) == TRACE_SAMPLE_OP))
			continue;
		if (pmu->filtered || !strstr(pmu->name, "cnt_ctl=1"))
			return false;
		any = true;
	}
	return any && !trace_has_strata(info);
}

static int new_engine(struct replay *r, struct ibs_cpu ibs, struct engine **out, struct err *err)
{
	struct selection sel = r->opts.sel;
	struct engine_opts opts = {
		.ibs = ibs,
		.metric = r->opts.metric,
		.by = r->opts.by,
		.max_groups = r->opts.max_groups,
		.sel = &sel,
		.period = r->opts.period,
		.strata = r->opts.differences && trace_has_strata(trace_info(r->trace)),
		.reach = trace_info(r->trace)->n_pmus ? trace_info(r->trace)->pmu->reach : 0,
		.exposed = r->opts.metric == IBS_METRIC_DC_MISS_LAT && counts_ops(r),
		.tlb = wanted(r) == TRACE_SAMPLE_OP,
		.memory = trace_info(r->trace)->memory,
		.n_memory = trace_info(r->trace)->n_memory,
		.complexes = r->opts.costs ? trace_complexes(trace_info(r->trace)->topology) : 0
	};

	sel.live = 0;
	sel.cgroups = cgroup_select_result(r->select, &sel.n_cgroups);
	sel.filter = r->opts.filter ? &r->opts.filter->prog : NULL;
	return engine_open(&opts, out, err);
}

static int find_engine(struct replay *r, struct ibs_cpu ibs, struct engine **out, struct err *err)
{
	int ret;

	for (size_t i = 0; i < r->n_engines; i++) {
		if (r->cpu_of[i].caps == ibs.caps && r->cpu_of[i].quirks == ibs.quirks) {
			*out = r->engines[i];
			return 0;
		}
	}
	if (r->n_engines == ENGINES_MAX)
		return err_set(err, -E2BIG,
			       "the samples come from more than %d kinds of processor (caps words)",
			       ENGINES_MAX);
	ret = new_engine(r, ibs, out, err);
	if (ret)
		return ret;
	r->cpu_of[r->n_engines] = ibs;
	r->engines[r->n_engines++] = *out;
	return 0;
}

static int refuse_unknown(const struct trace_event *ev, const char *what, struct err *err)
{
	return err_set(
		err, -ENODATA,
		"offset %llu: the recording lacks the %s of its samples: select and group by "
		"something else",
		(unsigned long long)ev->offset, what);
}

const char *replay_comm(const struct replay *r, const struct trace_event *ev)
{
	const struct trace_sample *s = &ev->sample;

	return s->has_task ? tasks_comm(r->tasks, s->tgid, s->tid, ev->time) : NULL;
}

/* The words that the program compares; an unknown name matches none of the selected names. */
static void set_comm(const struct replay *r, const struct trace_event *ev, __u64 words[2])
{
	const struct selection *sel = &r->opts.sel;
	const char *comm = replay_comm(r, ev);

	if (!comm && sel->n_comms && sel->comms_but)
		comm = sel->comms[0]; /* an excluded name, so that the sample is excluded */
	if (comm)
		memcpy(words, comm, strnlen(comm, 15));
}

/* Return: 0, 1 if the sample is not of a selected CPU, or -ENODATA. */
static int check_sample(struct replay *r, const struct trace_event *ev, struct err *err)
{
	const struct trace_sample *s = &ev->sample;

	if (r->needs.cpu && !s->has_cpu)
		return refuse_unknown(ev, "CPU", err);
	if (r->opts.cpus && !cpulist_has(r->opts.cpus, s->cpu))
		return 1;
	if (r->needs.place && s->cpu >= trace_info(r->trace)->topology->n)
		return refuse_unknown(ev, "CPU's L3 complex and NUMA node", err);
	if (r->needs.cgroup && !s->cgroup_id)
		return refuse_unknown(ev, "cgroup", err);
	return 0;
}

/* perf reports no pid for a task that exits. Such a sample belongs to none of the selected tasks. */
static __u64 unknown_task(const struct selection *sel)
{
	__u32 tgid = REPLAY_NO_TASK;

	if (sel->processes.but && sel->processes.n)
		tgid = sel->processes.pids[0]; /* an excluded process */
	return (__u64)tgid << 32 | REPLAY_NO_TASK;
}

static void set_who(const struct replay *r, const struct trace_event *ev, struct task *who)
{
	const struct trace_topology *t = trace_info(r->trace)->topology;
	const struct trace_sample *s = &ev->sample;

	memset(who, 0, sizeof(*who));
	who->pid_tgid = (__u64)s->tgid << 32 | s->tid;
	if (!s->has_task)
		who->pid_tgid = unknown_task(&r->opts.sel);
	who->cpu = s->cpu;
	who->complex = who->node = NO_PLACE;
	if (t && s->has_cpu && s->cpu < t->n) {
		who->complex = t->ccx[s->cpu];
		who->node = t->node[s->cpu];
	}
	who->cgroup_id = s->cgroup_id ? s->cgroup_id : CGROUP_UNKNOWN;
	if (r->needs.comm)
		set_comm(r, ev, who->comm);
	if (ev->kind == TRACE_SAMPLE_OP)
		who->slab = s->slab;
	if (r->opts.by & BY_SYMBOL)
		who->symbol = r->opts.symbol(r->opts.symbol_arg, ev);
}

void replay_key(const struct replay *r, const struct trace_event *ev, struct ibs_group_key *key)
{
	struct task who;

	set_who(r, ev, &who);
	if (r->opts.names)
		set_comm(r, ev, who.comm);
	*key = (struct ibs_group_key){ .cgroup_id = who.cgroup_id,
				       .tgid = who.pid_tgid >> 32,
				       .tid = who.pid_tgid,
				       .cpu = who.cpu,
				       .node = who.node,
				       .complex = who.complex };
	memcpy(key->comm, who.comm, sizeof(key->comm));
}

static bool asks_for_registers(const struct replay *r)
{
	const struct selection *sel = &r->opts.sel;

	return sel->op_mask || sel->src_mask || sel->min_lat || sel->max_lat || r->opts.filter;
}

int replay_judge(struct replay *r, const struct trace_event *ev, struct err *err)
{
	bool ours = ev->kind == wanted(r);
	struct task who;
	enum ibs_outcome out;
	struct engine *e;
	int ret;

	if (!ours && asks_for_registers(r))
		return 0;
	ret = check_sample(r, ev, err);
	if (ret < 0)
		return ret;
	if (ret) {
		r->rest.other_cpus++;
		return 0;
	}
	ret = find_engine(r, cpu_of(ev), &e, err);
	if (ret)
		return ret;
	set_who(r, ev, &who);
	engine_run(e, ours ? regs_of(ev) : NULL, 0, &who, &out);
	return out == IBS_OUTCOME_AGGREGATED;
}

/* The engine that counts a sample. */
static int engine_of(struct replay *r, const struct trace_event *ev, struct engine **out,
		     struct err *err)
{
	struct engine **of;
	int ret;

	if (!r->strata)
		return find_engine(r, cpu_of(ev), out, err);
	of = replay_strata_engine(r->strata, &ev->sample);
	ret = *of ? 0 : new_engine(r, cpu_of(ev), of, err);
	*out = *of;
	return ret;
}

static int add_sample(struct replay *r, const struct trace_event *ev, struct err *err)
{
	const struct trace_sample *s = &ev->sample;
	struct engine *e;
	struct task who;
	int ret = check_sample(r, ev, err);

	if (ret < 0)
		return ret;
	if (ret) {
		r->rest.other_cpus++;
		return 0;
	}
	if (s->has_time && ev->time) {
		r->first = r->has_time && r->first < ev->time ? r->first : ev->time;
		r->last = r->last > ev->time ? r->last : ev->time;
		r->has_time = true;
	}
	if (s->has_cpu)
		cpulist_add(&r->cpus, s->cpu);
	r->rest.no_cgroup += !s->cgroup_id;
	r->rest.no_task += !s->has_task;
	r->n++;
	ret = r->strata ? replay_strata_until(r->strata, ev->time, err) : 0;
	ret = ret ?: engine_of(r, ev, &e, err);
	if (ret)
		return ret;
	set_who(r, ev, &who);
	if (r->opts.differences)
		engine_weigh(e, s->slice ? s->slice->weight : (const double[2]){});
	engine_run(e, regs_of(ev), 0, &who, NULL);
	return 0;
}

static int next_event(struct replay *r, struct trace_event *ev, struct err *err)
{
	if (!r->waits)
		return trace_next(r->trace, ev, err);
	*ev = r->waiting;
	r->waits = false;
	return 1;
}

int replay_run(struct replay *r, struct err *err)
{
	__u64 next;

	return replay_until(r, ~0ULL, &next, err);
}

int replay_until(struct replay *r, __u64 time, __u64 *next, struct err *err)
{
	struct trace_event ev;
	struct engine *e;
	int ret;

	while ((ret = next_event(r, &ev, err)) > 0) {
		if (ev.kind == wanted(r) && ev.sample.has_time && ev.time > time) {
			/* valid until the next trace_next() */
			r->waiting = ev;
			r->waits = true;
			*next = ev.time;
			break;
		}
		if (ev.kind != wanted(r)) {
			r->rest.other_event +=
				ev.kind == TRACE_SAMPLE_OP || ev.kind == TRACE_SAMPLE_FETCH;
			continue;
		}
		if (ev.sample.has_time && ev.time > r->read)
			r->read = ev.time;
		ret = add_sample(r, &ev, err);
		if (ret)
			return ret;
	}
	if (ret > 0)
		return ret;
	*next = r->read;
	if (!ret && r->needs.task && r->n && r->rest.no_task == r->n)
		ret = err_set(err, -ENODATA,
			      "the recording lacks the process of all samples: select and group by "
			      "something else");
	/* a recording without samples has a result, too */
	if (!ret && !r->n_engines && !r->strata)
		ret = find_engine(r, (struct ibs_cpu){ .caps = trace_info(r->trace)->cpu.caps }, &e,
				  err);
	return ret;
}

/* Append the groups of @more to those of @to; rows_build() joins groups of the same name. */
static void join(struct snapshot *to, struct snapshot *more)
{
	to->groups = xrealloc(to->groups, (to->n_groups + more->n_groups) * sizeof(*to->groups));
	if (more->n_groups)
		memcpy(to->groups + to->n_groups, more->groups,
		       more->n_groups * sizeof(*more->groups));
	to->n_groups += more->n_groups;
	more->n_groups = 0;
	if (!to->shards) {
		to->shards = more->shards;
		to->n_shards = more->n_shards;
		more->shards = NULL;
	} else {
		for (size_t i = 0; i < to->n_shards; i++)
			for (int src = 0; src < IBS_SRC_N; src++)
				to->shards[i].cycles[src] += more->shards[i].cycles[src];
	}
	to->ledger.seen += more->ledger.seen;
	for (int o = 0; o < IBS_OUTCOME_N; o++)
		to->ledger.outcome[o] += more->ledger.outcome[o];
}

static int compare_slots(const void *pa, const void *pb)
{
	const struct group *a = pa, *b = pb;

	return (a->slot > b->slot) - (a->slot < b->slot);
}

int replay_snapshot(struct replay *r, struct snapshot *out, struct err *err)
{
	const struct trace_info *info = trace_info(r->trace);

	memset(out, 0, sizeof(*out));
	/* samples that were only judged have engines without strata */
	if (r->strata && !r->n_engines) {
		const int ret = replay_strata_end(r->strata, out, err);

		out->pmu.cpus = info->n_cpus;
		return ret;
	}
	for (size_t i = 0; i < r->n_engines; i++) {
		struct snapshot one;
		int ret = engine_snapshot(r->engines[i], &one, err);

		if (!ret) {
			join(out, &one);
			snapshot_free(&one);
		}
		if (ret) {
			snapshot_free(out);
			return ret;
		}
	}
	if (r->n_engines > 1)
		qsort(out->groups, out->n_groups, sizeof(*out->groups), compare_slots);
	out->time_ns = r->last - r->first;
	out->pmu.cpus = r->opts.cpus || !info->n_cpus ? cpulist_count(&r->cpus) : info->n_cpus;
	return 0;
}

void replay_rest(const struct replay *r, struct replay_rest *out)
{
	*out = r->rest;
}

const char *replay_cgroup_name(void *arg, __u64 id, enum label label)
{
	struct replay *r = arg;
	const struct ibs_slab *slab =
		label == LABEL_SLAB ? slab_list_find(tasks_slabs(r->tasks), id) : NULL;
	const char *path = replay_cgroups_path(&r->cgroups, id);

	if (label == LABEL_SLAB)
		return slab ? slab->name : NULL;
	if (id == CGROUP_UNKNOWN)
		return "unknown";
	if (label == LABEL_CGROUP)
		return path;
	return path ? replay_cgroups_label(&r->cgroups, path, label == LABEL_POD, r->name) : NULL;
}
