// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Events are kept until the first question, then taken in the order of time: each leaves a new
 * version of a name or of the maps behind, and questions look for the version of a time.
 */
#include "tasks.h"

#include "base/array.h"
#include "base/intern.h"
#include "map_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL (1ull << 32) /* its key among those of processes, which have 32 bits */

struct event {
	__u64 time;
	size_t seq;
	enum trace_kind kind;
	__u32 tgid, tid, parent_tgid, parent_tid;
	bool exec;
	__u32 text; /* name or path */
	__u32 map;
	__u32 cgroup;
	__u64 cgroup_id;
};

/* Texts. */
struct cgroup {
	__u32 path, container, pod, ns;
};

struct name {
	__u64 time;
	__u32 tgid;
	__u32 text;
	bool born; /* nothing is known of the time before */
};

struct thread {
	struct name *names;
	size_t n, room;
};

struct layout {
	__u64 time;
	__u32 root;
	__u32 stamp; /* 0: shared with another process, so not to be changed */
	bool born;
};

struct process {
	struct layout *layouts;
	size_t n, room;
	bool exited;
};

struct map {
	__u64 start, end, pgoff;
	__u32 path;
	unsigned char build_id[20];
	unsigned char build_id_len;
	bool kernel;
};

struct store {
	struct event *events;
	size_t n_events, events_room;
	size_t seq;
	bool has_times, failed;

	struct intern texts;
	struct map *maps;
	size_t n_maps, maps_room;
	struct map_pool pool;
	struct thread *threads;
	size_t n_threads, threads_room;
	struct u64_map thread_of;
	struct process *processes;
	size_t n_processes, processes_room;
	struct u64_map process_of;
	struct cgroup *cgroups;
	size_t n_cgroups, cgroups_room;
	struct u64_map cgroup_of; /* by id */
};

/* The store is put in order by questions, which change nothing that one could see. */
struct tasks {
	struct store *s;
};

int tasks_new(struct tasks **out, struct err *err)
{
	struct tasks *t = calloc(1, sizeof(*t));

	if (t)
		t->s = calloc(1, sizeof(*t->s));
	if (!t || !t->s) {
		free(t);
		return err_set(err, -ENOMEM, "out of memory");
	}
	*out = t;
	return 0;
}

void tasks_free(struct tasks *t)
{
	struct store *s;

	if (!t)
		return;
	s = t->s;
	for (size_t i = 0; i < s->n_threads; i++)
		free(s->threads[i].names);
	for (size_t i = 0; i < s->n_processes; i++)
		free(s->processes[i].layouts);
	free(s->events);
	free(s->maps);
	free(s->threads);
	free(s->processes);
	intern_free(&s->texts);
	map_pool_free(&s->pool);
	u64_map_free(&s->thread_of);
	u64_map_free(&s->process_of);
	free(s->cgroups);
	u64_map_free(&s->cgroup_of);
	free(s);
	free(t);
}

static int add_map(struct store *s, const struct trace_mmap *m, struct event *e)
{
	struct map *map;

	if (s->n_maps == INTERN_NONE || array_reserve(s->maps, s->maps_room, s->n_maps + 1))
		return -ENOMEM;
	map = &s->maps[s->n_maps];
	memset(map, 0, sizeof(*map));
	map->start = m->start;
	map->end = m->start + m->len < m->start ? ~0ull : m->start + m->len;
	map->pgoff = m->pgoff;
	map->path = e->text;
	map->kernel = m->kernel;
	map->build_id_len =
		m->build_id_len < sizeof(map->build_id) ? m->build_id_len : sizeof(map->build_id);
	memcpy(map->build_id, m->build_id, map->build_id_len);
	e->map = s->n_maps++;
	e->tgid = m->tgid;
	e->tid = m->tid;
	return 0;
}

static int add_cgroup(struct store *s, const struct trace_event *ev, struct event *e)
{
	struct cgroup c = {
		.path = intern_get(&s->texts, ev->cgroup.path),
		.container = intern_get(&s->texts, ev->cgroup.container ?: ""),
		.pod = intern_get(&s->texts, ev->cgroup.pod ?: ""),
		.ns = intern_get(&s->texts, ev->cgroup.ns ?: ""),
	};

	if (c.path == INTERN_NONE || c.container == INTERN_NONE || c.pod == INTERN_NONE ||
	    c.ns == INTERN_NONE || s->n_cgroups == INTERN_NONE ||
	    array_reserve(s->cgroups, s->cgroups_room, s->n_cgroups + 1))
		return -ENOMEM;
	e->cgroup_id = ev->cgroup.id;
	e->cgroup = s->n_cgroups;
	s->cgroups[s->n_cgroups++] = c;
	return 0;
}

int tasks_add(struct tasks *t, const struct trace_event *ev)
{
	struct store *s = t->s;
	struct event e = { .time = ev->time, .seq = s->seq, .kind = ev->kind };
	const char *text = NULL;

	switch (ev->kind) {
	case TRACE_COMM:
		text = ev->comm.name;
		e.tgid = ev->comm.tgid;
		e.tid = ev->comm.tid;
		e.exec = ev->comm.exec;
		break;
	case TRACE_MMAP:
		text = ev->mmap.path;
		break;
	case TRACE_CGROUP:
		if (add_cgroup(s, ev, &e))
			return -ENOMEM;
		break;
	case TRACE_FORK:
	case TRACE_EXIT:
		e.tgid = ev->fork.tgid;
		e.tid = ev->fork.tid;
		e.parent_tgid = ev->fork.parent_tgid;
		e.parent_tid = ev->fork.parent_tid;
		break;
	default:
		return 0;
	}
	if (text) {
		e.text = intern_get(&s->texts, text);
		if (e.text == INTERN_NONE)
			return -ENOMEM;
	}
	if (ev->kind == TRACE_MMAP && add_map(s, &ev->mmap, &e))
		return -ENOMEM;
	if (array_reserve(s->events, s->events_room, s->n_events + 1))
		return -ENOMEM;
	s->events[s->n_events++] = e;
	s->seq++;
	s->has_times |= ev->time != 0;
	return 0;
}

static struct thread *thread_at(struct store *s, __u32 tid, bool make)
{
	__u32 i = u64_map_get(&s->thread_of, tid);

	if (i != INTERN_NONE)
		return &s->threads[i];
	if (!make || array_reserve(s->threads, s->threads_room, s->n_threads + 1) ||
	    u64_map_put(&s->thread_of, tid, s->n_threads))
		return NULL;
	memset(&s->threads[s->n_threads], 0, sizeof(*s->threads));
	return &s->threads[s->n_threads++];
}

static struct process *process_at(struct store *s, __u64 key, bool make)
{
	__u32 i = u64_map_get(&s->process_of, key);

	if (i != INTERN_NONE)
		return &s->processes[i];
	if (!make || array_reserve(s->processes, s->processes_room, s->n_processes + 1) ||
	    u64_map_put(&s->process_of, key, s->n_processes))
		return NULL;
	memset(&s->processes[s->n_processes], 0, sizeof(*s->processes));
	return &s->processes[s->n_processes++];
}

static int add_name(struct store *s, __u32 tid, struct name name)
{
	struct thread *t = thread_at(s, tid, true);

	if (!t || array_reserve(t->names, t->room, t->n + 1))
		return -ENOMEM;
	t->names[t->n++] = name;
	return 0;
}

static int add_layout(struct process *p, struct layout l)
{
	if (!p || array_reserve(p->layouts, p->room, p->n + 1))
		return -ENOMEM;
	p->layouts[p->n++] = l;
	p->exited = false;
	return 0;
}

static int take_comm(struct store *s, const struct event *e)
{
	int ret = add_name(s, e->tid, (struct name){ e->time, e->tgid, e->text, .born = e->exec });

	if (!ret && e->exec)
		ret = add_layout(process_at(s, e->tgid, true),
				 (struct layout){ .time = e->time, .born = true });
	return ret;
}

static int take_mmap(struct store *s, const struct event *e)
{
	const struct map *m = &s->maps[e->map];
	struct process *p = process_at(s, m->kernel ? KERNEL : e->tgid, true);
	struct layout *last, l = { .time = e->time };

	if (!p)
		return -ENOMEM;
	if (m->start == m->end)
		return 0;
	/* the number is in use again, and the fork was not recorded */
	if (p->exited && e->tid == e->tgid)
		l.born = true;
	else if (p->n)
		l.root = p->layouts[p->n - 1].root;
	last = p->n ? &p->layouts[p->n - 1] : NULL;
	if (last && last->time == e->time && last->stamp && !l.born) {
		last->root =
			map_tree_set(&s->pool, last->root, last->stamp, m->start, m->end, e->map);
		return s->pool.failed ? -ENOMEM : 0;
	}
	l.stamp = map_pool_stamp(&s->pool);
	l.root = map_tree_set(&s->pool, l.root, l.stamp, m->start, m->end, e->map);
	return s->pool.failed ? -ENOMEM : add_layout(p, l);
}

/*
 * A fork without a time, in a recording with times, tells of a process that was there before the
 * recording: all its maps follow.
 */
static int take_fork(struct store *s, const struct event *e)
{
	struct layout l = { .time = e->time, .born = true };
	struct thread *from = thread_at(s, e->parent_tid, false);
	struct process *parent;
	int ret = 0;

	if (from && from->n) {
		struct name name = from->names[from->n - 1];

		name.time = e->time;
		name.tgid = e->tgid;
		name.born = true;
		ret = add_name(s, e->tid, name);
	} else if (thread_at(s, e->tid, false)) {
		/* the name of whoever had the number before is not its name */
		ret = add_name(s, e->tid,
			       (struct name){ e->time, e->tgid, INTERN_NONE, .born = true });
	}
	if (ret || e->tgid == e->parent_tgid || e->tid != e->tgid)
		return ret;
	parent = process_at(s, e->parent_tgid, false);
	if (parent && parent->n && (e->time || !s->has_times)) {
		parent->layouts[parent->n - 1].stamp = 0;
		l.root = parent->layouts[parent->n - 1].root;
	}
	return add_layout(process_at(s, e->tgid, true), l);
}

static int take(struct store *s, const struct event *e)
{
	struct process *p;

	switch (e->kind) {
	case TRACE_COMM:
		return take_comm(s, e);
	case TRACE_MMAP:
		return take_mmap(s, e);
	case TRACE_FORK:
		return take_fork(s, e);
	case TRACE_EXIT:
		p = e->tid == e->tgid ? process_at(s, e->tgid, false) : NULL;
		if (p)
			p->exited = true;
		return 0;
	default:
		return u64_map_put(&s->cgroup_of, e->cgroup_id, e->cgroup);
	}
}

static int compare_events(const void *pa, const void *pb)
{
	const struct event *a = pa, *b = pb;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* After a failure nothing is known: half of the events would give wrong answers. */
static bool ready(struct store *s)
{
	if (s->n_events) {
		qsort(s->events, s->n_events, sizeof(*s->events), compare_events);
		for (size_t i = 0; i < s->n_events && !s->failed; i++)
			s->failed = take(s, &s->events[i]);
		free(s->events);
		s->events = NULL;
		s->n_events = 0;
	}
	return !s->failed;
}

int tasks_read(struct tasks *t, struct trace *trace, struct err *err)
{
	struct trace_event ev;
	int ret = trace_rewind(trace, err);

	while (!ret) {
		ret = trace_next(trace, &ev, err);
		if (ret <= 0)
			break;
		ret = tasks_add(t, &ev);
		if (ret)
			return err_set(err, ret, "out of memory for names and maps");
	}
	if (!ret && !ready(t->s))
		ret = err_set(err, -ENOMEM, "out of memory for names and maps");
	return ret ?: trace_rewind(trace, err);
}

/* How many of them, ordered by time, are not later than @time. */
#define UPTO(array, n, t)                                \
	({                                               \
		size_t lo = 0, hi = (n);                 \
                                                         \
		while (lo < hi) {                        \
			size_t mid = lo + (hi - lo) / 2; \
                                                         \
			if ((array)[mid].time <= (t))    \
				lo = mid + 1;            \
			else                             \
				hi = mid;                \
		}                                        \
		lo;                                      \
	})

/* A name told later is that of before too, unless a fork or an exec gave it. */
static const struct name *name_at(const struct thread *t, __u64 time)
{
	size_t n = UPTO(t->names, t->n, time ? time : ~0ull);

	if (n)
		return &t->names[n - 1];
	return t->n && !t->names[0].born ? &t->names[0] : NULL;
}

const char *tasks_comm(const struct tasks *t, __u32 tgid, __u32 tid, __u64 time)
{
	const struct thread *thread = ready(t->s) ? thread_at(t->s, tid, false) : NULL;
	const struct name *name = thread ? name_at(thread, time) : NULL;

	if (!tid && !tgid && !name)
		return "swapper"; /* the idle tasks, of which no events tell */
	if (!name || name->text == INTERN_NONE)
		return NULL;
	/* of a process that had the number at another time, which events were lost of */
	if (tgid && name->tgid && tgid != name->tgid)
		return NULL;
	return intern_text(&t->s->texts, name->text);
}

static __u32 root_at(const struct process *p, __u64 time)
{
	size_t n = UPTO(p->layouts, p->n, time ? time : ~0ull);

	if (n)
		return p->layouts[n - 1].root;
	return p->n && !p->layouts[0].born ? p->layouts[0].root : 0;
}

bool tasks_map(const struct tasks *t, __u32 tgid, __u64 addr, __u64 time, bool kernel,
	       struct task_map *out)
{
	const struct process *p = NULL;
	const struct map_node *n;
	const struct map *m;

	if (ready(t->s))
		p = process_at(t->s, kernel ? KERNEL : tgid, false);
	n = p ? map_tree_find(&t->s->pool, root_at(p, time), addr) : NULL;
	if (!n)
		return false;
	m = &t->s->maps[n->value];
	*out = (struct task_map){
		.start = m->start,
		.end = m->end,
		.pgoff = m->pgoff,
		.path = intern_text(&t->s->texts, m->path),
		.build_id = m->build_id_len ? m->build_id : NULL,
		.build_id_len = m->build_id_len,
		.kernel = m->kernel,
	};
	return true;
}

bool tasks_cgroup(const struct tasks *t, __u64 id, struct task_cgroup *out)
{
	const struct store *s = t->s;
	__u32 i = ready(t->s) ? u64_map_get(&s->cgroup_of, id) : U64_MAP_NONE;

	if (i == U64_MAP_NONE)
		return false;
	*out = (struct task_cgroup){
		.path = intern_text(&s->texts, s->cgroups[i].path),
		.container = intern_text(&s->texts, s->cgroups[i].container),
		.pod = intern_text(&s->texts, s->cgroups[i].pod),
		.ns = intern_text(&s->texts, s->cgroups[i].ns),
	};
	return true;
}
