// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "capture.h"

#include "base/clock.h"
#include "cgroup/container.h"

#include <unistd.h>

static int put_event(const struct trace_event *ev, void *arg, struct err *err)
{
	struct capture *c = arg;

	return output_event(c->output, ev, err);
}

/* Time of the next event other than samples. */
static __u64 next_event(const struct capture *c)
{
	const __u64 region = regions_peek(c->regions), alloc = allocs_peek(c->allocs);
	const __u64 task = sideband_peek(c->sideband), ours = region < alloc ? region : alloc;

	return ours < task ? ours : task;
}

static int put_events(struct capture *c, __u64 until, struct err *err)
{
	struct trace_event ev;
	__u64 next;
	int ret = 0;

	while (!ret && (next = next_event(c)) <= until) {
		if (sideband_peek(c->sideband) == next) {
			if (!sideband_next(c->sideband, &ev))
				continue;
		} else if (regions_peek(c->regions) == next) {
			regions_next(c->regions, &ev);
		} else if (!allocs_next(c->allocs, &ev)) {
			continue;
		}
		if (ev.kind == TRACE_EXIT)
			regions_forget(c->regions, ev.fork.tid);
		if (ev.kind == TRACE_COMM && ev.comm.exec) {
			regions_forget(c->regions, ev.comm.tid);
			allocs_note_exec(c->allocs, ev.comm.tgid);
		}
		ret = output_event(c->output, &ev, err);
	}
	return ret;
}

bool capture_name_cgroup(const struct session *s, __u64 id, struct trace_event *ev)
{
	const struct container_name *name;
	struct container_owner owner;
	struct container container;

	ev->cgroup.id = id;
	ev->cgroup.path = cgroup_tree_path(session_tree(s), id) ?: "";
	cgroup_tree_owner(session_tree(s), id, &owner);
	if (!container_of_path(ev->cgroup.path, &owner, &container))
		return true;
	name = container_names_find(session_names(s), &container);
	ev->cgroup.container = name->container;
	ev->cgroup.pod = name->pod;
	ev->cgroup.ns = name->ns;
	return !container_is_nameless(&container, name);
}

static int put_cgroup(struct capture *c, __u64 id, __u64 time, struct err *err)
{
	struct trace_event ev = { .kind = TRACE_CGROUP, .time = time };

	c->last_cgroup = id;
	if (!id || output_has_cgroup(c->output, id))
		return 0;
	if (!capture_name_cgroup(c->session, id, &ev) && c->n_unnamed < CAPTURE_UNNAMED)
		c->unnamed[c->n_unnamed++] = id;
	return output_event(c->output, &ev, err);
}

/* Runtimes write some names after the container has started. */
int capture_late_names(struct capture *c, struct err *err)
{
	size_t n = c->n_unnamed;
	int ret = 0;

	c->n_unnamed = 0;
	for (size_t i = 0; i < n; i++) {
		struct trace_event ev = { .kind = TRACE_CGROUP, .time = c->until };

		if (ret || !capture_name_cgroup(c->session, c->unnamed[i], &ev))
			c->unnamed[c->n_unnamed++] = c->unnamed[i];
		else
			ret = output_event(c->output, &ev, err);
	}
	return ret;
}

struct stamp {
	__u64 time, cgroup_id;
};

static struct stamp stamp_of(const struct record_batch *b, size_t i)
{
	if (b->raw)
		return (struct stamp){ b->raw[i].time, b->raw[i].cgroup_id };
	return (struct stamp){ b->records[i].time, b->records[i].cgroup_id };
}

/* Index from @i of the first sample at this time or later, or of another cgroup; or b->n. */
static size_t next_change(const struct record_batch *b, size_t i, __u64 time, __u64 cgroup_id)
{
	if (b->raw)
		for (; i < b->n; i++) {
			if (b->raw[i].time >= time || b->raw[i].cgroup_id != cgroup_id)
				break;
		}
	else
		for (; i < b->n; i++) {
			if (b->records[i].time >= time || b->records[i].cgroup_id != cgroup_id)
				break;
		}
	return i;
}

/* Another chain has the place that belongs to its hash, or the map is full. */
static bool chain_is_lost(const struct ibs_record_extra *x)
{
	const __s32 keys[] = { x->kernel, x->user, x->callers };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i] == -EEXIST || keys[i] == -ENOMEM)
			return true;
	return false;
}

static int put_stack(struct capture *c, __s32 id, struct err *err)
{
	__u64 addresses[TRACE_STACK_MAX];
	int n;

	if (output_has_stack(c->output, id))
		return 0;
	n = sampler_stack(session_sampler(c->session, id / SAMPLER_STACKS), id % SAMPLER_STACKS,
			  addresses);
	return output_stack(c->output, id, addresses, n < 0 ? 0 : n, err);
}

static int put_slab(const struct ibs_slab *slab, void *arg, struct err *err)
{
	struct capture *c = arg;
	struct trace_event ev = { .kind = TRACE_SLAB, .time = c->until, .slab = *slab };

	u64_map_put(&c->slabs, slab->id, 0);
	return output_event(c->output, &ev, err);
}

/* List slab caches for each file, and again when a sample refers to an unknown one. */
static int put_slabs(struct capture *c, __u64 unknown, struct err *err)
{
	const struct session_event *e = session_event(c->session, 0);

	if (!e->opts.slabs)
		return 0;
	if (unknown)
		u64_map_put(&c->slabs, unknown, 0); /* it may no longer exist */
	return sampler_slabs(e->sampler, put_slab, c, err);
}

static int put_extra(struct capture *c, const struct record_batch *b, struct err *err)
{
	int ret = 0;

	for (size_t i = 0; b->extra && i < b->n && !ret; i++) {
		const struct ibs_record_extra *x = &b->extra[i];

		c->chains_lost += chain_is_lost(x);
		ret = put_stack(c, x->kernel, err);
		ret = ret ?: put_stack(c, x->user, err);
		ret = ret ?: put_stack(c, x->callers, err);
		if (!ret && x->slab && u64_map_get(&c->slabs, IBS_SLAB_ID(x->slab)) == U64_MAP_NONE)
			ret = put_slabs(c, IBS_SLAB_ID(x->slab), err);
	}
	return ret;
}

static int put_part(struct capture *c, const struct record_batch *b, size_t from, size_t to,
		    struct err *err)
{
	const struct record_batch part = {
		.records = b->records ? b->records + from : NULL,
		.raw = b->raw ? b->raw + from : NULL,
		.extra = b->extra ? b->extra + from : NULL,
		.copies = b->copies ? b->copies + from * b->copy_stride : NULL,
		.copy_stride = b->copy_stride,
		.n = to - from,
	};

	return part.n ? output_samples(c->output, &part, err) : 0;
}

/* Write samples, each preceded by the events it depends on. */
static int put_batch(const struct record_batch *b, void *arg, struct err *err)
{
	struct capture *c = arg;
	int ret = put_extra(c, b, err);
	size_t from = 0, i = 0;

	if (c->each)
		c->each(b, c->each_arg);

	while (!ret) {
		struct stamp s;

		i = next_change(b, i, next_event(c), c->last_cgroup);
		if (i == b->n)
			break;
		s = stamp_of(b, i);
		ret = put_part(c, b, from, i, err);
		from = i;
		ret = ret ?: put_events(c, s.time, err);
		ret = ret ?: put_cgroup(c, s.cgroup_id, s.time, err);
	}
	return ret ?: put_part(c, b, from, b->n, err);
}

static void choose_tasks(struct capture *c)
{
	const struct session *s = c->session;
	const struct selection *sel = &session_event(s, 0)->opts.sel;
	bool some = sel->processes.n && !sel->processes.but;

	/* the command's cgroup has only the command and its descendants */
	if (session_command_cgroup(s) && !session_options(s)->ranks) {
		__u32 pid = command_pid(session_command(s));

		task_choice_init(&c->choice, &pid, 1, true);
	} else {
		task_choice_init(&c->choice, sel->processes.pids, some ? sel->processes.n : 0,
				 sel->follow);
	}
}

int capture_begin(struct capture *c, struct session *s, bool data, struct err *err)
{
	struct sideband_opts opts = {
		.choice = &c->choice,
		.data = data,
		.cgroups = cgroup_tree_fs(session_tree(s))->mode == CGROUP_MODE_V2,
	};
	struct cpulist online;
	int cpu, ret;

	*c = (struct capture){ .session = s, .data = data, .until = clock_ns(CLOCK_MONOTONIC) };
	for (unsigned int i = 1; i < session_samplers(s); i++)
		rings_join(sampler_rings(session_sampler(s, 0)),
			   sampler_rings(session_sampler(s, i)), SAMPLER_STACKS);
	choose_tasks(c);
	ret = cpulist_read("", "online", &online, err);
	if (ret)
		return ret;
	c->online = xcalloc(cpulist_count(&online), sizeof(*c->online));
	cpulist_for_each (cpu, &online)
		c->online[opts.n_cpus++] = cpu;
	opts.cpus = c->online;
	return sideband_open(&opts, &c->sideband, err);
}

/* In a PID namespace all processes outside of it have the id 0, which is elsewhere that of idle tasks. */
static int put_outsiders(struct capture *c, struct err *err)
{
	const struct trace_event ev = { .kind = TRACE_COMM,
					.time = c->until,
					.comm.name = "[outside]" };

	if (!sampler_in_pid_namespace(session_event(c->session, 0)->sampler))
		return 0;
	return put_event(&ev, c, err);
}

int capture_state(struct capture *c, struct err *err)
{
	c->last_cgroup = 0;
	c->n_unnamed = 0;
	return put_outsiders(c, err) ?: task_events_now("", &c->choice, c->data, c->until, put_event, c, err)
		       ?: regions_now(c->regions, c->until, put_event, c, err)
		       ?: put_slabs(c, 0, err);
}

/* Events that the kernel lost behind the last one of a CPU. */
static int put_lost(struct capture *c, struct err *err)
{
	const struct trace_event ev = { .kind = TRACE_LOST,
					.time = clock_ns(CLOCK_MONOTONIC),
					.lost.n = sideband_untold(c->sideband) };

	return ev.lost.n ? put_event(&ev, c, err) : 0;
}

int capture_drain(struct capture *c, __u64 until, struct err *err)
{
	int ret;

	sideband_refresh(c->sideband);
	regions_refresh(c->regions, until == UINT64_MAX - 1);
	allocs_refresh(c->allocs, until == UINT64_MAX - 1);
	ret = rings_drain(sampler_rings(session_event(c->session, 0)->sampler), until, put_batch, c,
			  err);
	ret = ret ?: put_events(c, until, err);
	if (until == UINT64_MAX - 1) /* shows whether a cache was replaced by another */
		ret = ret ?: put_slabs(c, 0, err) ?: put_lost(c, err);
	if (until > c->until)
		c->until = until;
	return ret;
}

void capture_prepare(void)
{
	task_events_remember_kernel();
}

static void add_process(__u32 tgid, void *arg)
{
	task_choice_add(arg, tgid);
}

int capture_kept(struct capture *c, struct session *s, struct rings *copy, __u64 since_ns,
		 struct err *err)
{
	c->session = s;
	c->until = since_ns;
	/* of many processes few are sampled; 0 has no names */
	task_choice_init(&c->choice, (const __u32[]){ 0 }, 1, false);
	rings_each_process(copy, add_process, &c->choice);
	return capture_state(c, err) ?: rings_drain(copy, UINT64_MAX, put_batch, c, err);
}

int capture_slice(struct capture *c, bool last, struct err *err)
{
	struct session_slice s;
	int ret = session_slice_end(c->session, last, &s, err);
	const struct trace_event ev = { .kind = TRACE_SLICE,
					.time = c->until,
					.slice = { .of = s.of,
						   .start = s.start_ns,
						   .end = s.end_ns,
						   .ops = s.ops,
						   .tags = s.tags,
						   .period = s.period } };

	if (ret <= 0)
		return ret;
	if (!last)
		capture_strata(c);
	return output_event(c->output, &ev, err);
}

void capture_strata(struct capture *c)
{
	if (session_strata_reach(c->session)) {
		const struct session_slice now = session_slice_now(c->session);

		output_slice(c->output, now.of, now.start_ns);
	}
}

void capture_close(struct capture *c)
{
	output_close(c->output);
	sideband_close(c->sideband);
	task_choice_free(&c->choice);
	u64_map_free(&c->slabs);
	free(c->online);
	*c = (struct capture){};
}
