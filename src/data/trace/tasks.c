// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Events are kept until the first query, then applied in the order of time: each makes a new version of a
 * name or of the maps, and queries look up the version at a time.
 */
#include "tasks.h"
#include "tasks_private.h"

#include "base/intern.h"
#include "heap/heap_blocks.h"
#include "map_tree.h"

/* Keys of histories; threads use the plain tid. */
#define PROCESS(tgid) (1ull << 33 | (tgid))
#define KERNEL	      (1ull << 32)
#define RANK(tgid)    (1ull << 34 | (tgid)) /* the name of a version is the rank */
#define REGION(tid)   (1ull << 35 | (tid))  /* the name of a version is a node of `regions` */
#define OMP(tid)      (1ull << 36 | (tid))  /* the same; its tgid the number in the team */
#define START(tid)    (1ull << 37 | (tid)) /* the name is its place among the threads of its process */

#define NO_NUMBER  U64_MAP_NONE
#define TEAM_DEPTH 8

struct tasks *tasks_new(void)
{
	return xcalloc(1, sizeof(struct tasks));
}

void tasks_free(struct tasks *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_histories; i++)
		free(t->histories[i].version);
	free(t->histories);
	free(t->events);
	free(t->maps);
	intern_free(&t->texts);
	map_pool_free(&t->pool);
	u64_map_free(&t->history_of);
	free(t->cgroups);
	u64_map_free(&t->cgroup_of);
	slab_list_free(&t->slabs);
	free(t->ranks);
	u64_map_free(&t->rank_at);
	region_tree_free(&t->regions);
	u64_map_free(&t->started);
	u64_map_free(&t->dumps);
	heap_free(t->heap);
	free(t);
}

static const char *keep(struct tasks *t, const char *text)
{
	return intern_text(&t->texts, intern_get(&t->texts, text ?: ""));
}

static bool is_code_dump(const char *path)
{
	const char *name = strrchr(path, '/');
	unsigned int pid, n = 0;

	return name && sscanf(name, "/jit-%9u.dump%n", &pid, &n) == 1 && n && !name[n];
}

static void add_map(struct tasks *t, const struct trace_mmap *m, struct event *e)
{
	struct map map = {
		.map = {
			.start = m->start,
			.end = m->start + m->len < m->start ? ~0ull : m->start + m->len,
			.pgoff = m->pgoff,
			.path = keep(t, m->path),
			.kernel = m->kernel,
			.exec = m->exec,
			.build_id_len = m->build_id_len < sizeof(map.build_id)
						? m->build_id_len
						: sizeof(map.build_id),
		},
	};

	if (t->n_maps == U64_MAP_NONE)
		out_of_memory();
	t->has_data |= !m->exec;
	if (is_code_dump(map.map.path))
		u64_map_put(&t->dumps, m->tgid, intern_find(&t->texts, map.map.path));
	memcpy(map.build_id, m->build_id, map.map.build_id_len);
	e->tgid = m->tgid;
	e->tid = m->tid;
	e->what = t->n_maps;
	array_reserve(t->maps, t->maps_room, t->n_maps + 1);
	t->maps[t->n_maps++] = map;
}

static void add_cgroup(struct tasks *t, const struct trace_event *ev, struct event *e)
{
	if (t->n_cgroups == U64_MAP_NONE)
		out_of_memory();
	e->cgroup_id = ev->cgroup.id;
	e->what = t->n_cgroups;
	array_reserve(t->cgroups, t->cgroups_room, t->n_cgroups + 1);
	t->cgroups[t->n_cgroups++] = (struct task_cgroup){
		.path = keep(t, ev->cgroup.path),
		.container = keep(t, ev->cgroup.container),
		.pod = keep(t, ev->cgroup.pod),
		.ns = keep(t, ev->cgroup.ns),
	};
}

static void add_rank(struct tasks *t, const struct trace_event *ev, struct event *e)
{
	__u32 i = u64_map_get(&t->rank_at, ev->rank.rank);

	e->tgid = ev->rank.tgid;
	e->what = ev->rank.rank;
	if (i == U64_MAP_NONE) {
		i = t->n_ranks;
		array_reserve(t->ranks, t->ranks_room, t->n_ranks + 1);
		t->ranks[t->n_ranks++] = (struct task_rank){ .rank = ev->rank.rank };
		u64_map_put(&t->rank_at, ev->rank.rank, i);
	}
	if (!ev->rank.ended)
		return;
	t->ranks[i].ended = true;
	t->ranks[i].status = ev->rank.status;
}

void tasks_add(struct tasks *t, const struct trace_event *ev)
{
	struct event e = { .time = ev->time, .seq = t->seq, .kind = ev->kind };

	if (t->heap)
		tasks_add_to_heap(t->heap, ev);
	switch (ev->kind) {
	case TRACE_COMM:
		e.what = intern_get(&t->texts, ev->comm.name);
		e.tgid = ev->comm.tgid;
		e.tid = ev->comm.tid;
		e.exec = ev->comm.exec;
		break;
	case TRACE_MMAP:
		add_map(t, &ev->mmap, &e);
		break;
	case TRACE_CGROUP:
		add_cgroup(t, ev, &e);
		break;
	case TRACE_SLAB:
		slab_list_add(&t->slabs, &ev->slab);
		return;
	case TRACE_RANK:
		add_rank(t, ev, &e);
		if (ev->rank.ended)
			return;
		break;
	case TRACE_REGION:
		e.tid = ev->region.tid;
		e.omp = ev->region.omp;
		e.end = ev->region.end;
		e.team = ev->region.team;
		e.number = ev->region.number;
		e.addr = ev->region.addr;
		e.what = intern_get(&t->texts, ev->region.name);
		break;
	case TRACE_FORK:
	case TRACE_EXIT:
		e.tgid = ev->fork.tgid;
		e.tid = ev->fork.tid;
		e.parent_tgid = ev->fork.parent_tgid;
		e.parent_tid = ev->fork.parent_tid;
		break;
	default:
		return;
	}
	array_reserve(t->events, t->events_room, t->n_events + 1);
	t->events[t->n_events++] = e;
	t->seq++;
	t->has_times |= ev->time != 0;
}

/* NULL: there is none. */
static struct history *history_at(const struct tasks *t, __u64 key)
{
	__u32 i = u64_map_get(&t->history_of, key);

	return i == U64_MAP_NONE ? NULL : &t->histories[i];
}

static struct history *history_of(struct tasks *t, __u64 key)
{
	struct history *h = history_at(t, key);

	if (h)
		return h;
	array_reserve(t->histories, t->histories_room, t->n_histories + 1);
	u64_map_put(&t->history_of, key, t->n_histories);
	h = &t->histories[t->n_histories++];
	*h = (struct history){};
	return h;
}

static void add_version(struct history *h, struct version v)
{
	/* always so, but the analyser cannot see it */
	if (!h->version)
		h->n = h->room = 0;
	array_reserve(h->version, h->room, h->n + 1);
	h->version[h->n++] = v;
	h->exited = false;
}

static struct version *last_of(const struct history *h)
{
	return h && h->n ? &h->version[h->n - 1] : NULL;
}

/* Threads that existed before the recording are numbered in the order of their tids. */
static void take_start(struct tasks *t, const struct event *e)
{
	__u32 n = u64_map_get(&t->started, e->tgid);

	n = n == U64_MAP_NONE ? 1 : n + 1;
	u64_map_put(&t->started, e->tgid, n);
	add_version(history_of(t, START(e->tid)),
		    (struct version){ e->time, true, .tgid = e->tgid, .name = n });
}

/* A tid was reused, or the process executes another program. */
static void forget(struct tasks *t, __u64 key, __u64 time)
{
	struct history *h = history_at(t, key);

	if (h)
		add_version(h, (struct version){ time, true, .tgid = NO_NUMBER });
}

/* The end of a region that began before the recording changes nothing. */
static void take_region(struct tasks *t, const struct event *e)
{
	struct history *h = history_of(t, e->omp ? OMP(e->tid) : REGION(e->tid));
	struct version *last = last_of(h), v = { e->time, true, .tgid = NO_NUMBER };
	__u32 in = last ? last->name : 0;

	if (e->end)
		v.name = region_tree_node(&t->regions, in).parent;
	else
		v.name = region_tree_begin(&t->regions, in, intern_text(&t->texts, e->what),
					   e->team, e->number, e->omp ? e->addr : 0);
	/* between regions a thread keeps its number */
	if (e->omp && v.name)
		v.tgid = region_tree_node(&t->regions, v.name).number;
	else if (e->omp && last)
		v.tgid = last->tgid;
	add_version(h, v);
}

static void take_comm(struct tasks *t, const struct event *e)
{
	const struct version *start = last_of(history_at(t, START(e->tid)));

	if (e->tid != e->tgid && (!start || start->tgid != e->tgid))
		take_start(t, e);
	add_version(history_of(t, e->tid),
		    (struct version){ e->time, e->exec, .tgid = e->tgid, .name = e->what });
	if (!e->exec)
		return;
	add_version(history_of(t, PROCESS(e->tgid)), (struct version){ e->time, true });
	forget(t, REGION(e->tid), e->time);
	forget(t, OMP(e->tid), e->time);
	u64_map_remove(&t->started, e->tgid, u64_map_get(&t->started, e->tgid));
}

static void take_mmap(struct tasks *t, const struct event *e)
{
	const struct task_map *m = &t->maps[e->what].map;
	struct history *p = history_of(t, m->kernel ? KERNEL : PROCESS(e->tgid));
	struct version *last = last_of(p), v = { .time = e->time };

	if (m->start == m->end)
		return;
	/* the pid was reused, and the fork was not recorded */
	if (p->exited && e->tid == e->tgid)
		v.born = true;
	else if (last)
		v.root = last->root;
	if (last && last->time == e->time && last->stamp && !v.born) {
		last->root =
			map_tree_set(&t->pool, last->root, last->stamp, m->start, m->end, e->what);
		return;
	}
	v.stamp = map_pool_stamp(&t->pool);
	v.root = map_tree_set(&t->pool, v.root, v.stamp, m->start, m->end, e->what);
	add_version(p, v);
}

/* A process without a rank may reuse the pid of one with a rank. */
static void fork_rank(struct tasks *t, const struct event *e)
{
	struct version *parent = last_of(history_at(t, RANK(e->parent_tgid)));

	if (parent || history_at(t, RANK(e->tgid)))
		add_version(history_of(t, RANK(e->tgid)),
			    (struct version){ e->time, true,
					      .name = parent ? parent->name : INTERN_NONE });
}

/*
 * In a recording with times, a fork without a time is a process that existed before the recording: all its
 * maps follow.
 */
static void take_fork(struct tasks *t, const struct event *e)
{
	struct version name = { e->time, true, .tgid = e->tgid, .name = INTERN_NONE };
	struct version maps = { e->time, true };
	struct version *from = last_of(history_at(t, e->parent_tid));
	struct version *parent = last_of(history_at(t, PROCESS(e->parent_tgid)));

	if (from)
		name.name = from->name;
	/* without it, do not use the name of the previous owner of the tid */
	if (from || history_at(t, e->tid))
		add_version(history_of(t, e->tid), name);
	forget(t, REGION(e->tid), e->time);
	forget(t, OMP(e->tid), e->time);
	if (e->tid != e->tgid)
		take_start(t, e);
	else
		u64_map_remove(&t->started, e->tgid, u64_map_get(&t->started, e->tgid));
	if (e->tgid == e->parent_tgid || e->tid != e->tgid)
		return;
	fork_rank(t, e);
	if (parent && (e->time || !t->has_times)) {
		parent->stamp = 0;
		maps.root = parent->root;
	}
	add_version(history_of(t, PROCESS(e->tgid)), maps);
}

static void take(struct tasks *t, const struct event *e)
{
	struct history *h;

	switch (e->kind) {
	case TRACE_COMM:
		take_comm(t, e);
		break;
	case TRACE_MMAP:
		take_mmap(t, e);
		break;
	case TRACE_FORK:
		take_fork(t, e);
		break;
	case TRACE_EXIT:
		h = e->tid == e->tgid ? history_at(t, PROCESS(e->tgid)) : NULL;
		if (h)
			h->exited = true;
		break;
	case TRACE_REGION:
		t->has_regions = true;
		take_region(t, e);
		break;
	case TRACE_RANK:
		t->has_ranks = true;
		add_version(history_of(t, RANK(e->tgid)),
			    (struct version){ e->time, .name = e->what });
		break;
	default:
		u64_map_put(&t->cgroup_of, e->cgroup_id, e->what);
	}
}

static int compare_events(const void *pa, const void *pb)
{
	const struct event *a = pa, *b = pb;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->seq < b->seq ? -1 : a->seq > b->seq;
}

/* Queries apply pending events first, which changes nothing visible: hence the cast. */
static void sort_events(const struct tasks *asked)
{
	struct tasks *t = (struct tasks *)asked;
	static __u64 last_state;

	if (!t->n_events)
		return;
	qsort(t->events, t->n_events, sizeof(*t->events), compare_events);
	for (size_t i = 0; i < t->n_events; i++)
		take(t, &t->events[i]);
	free(t->events);
	t->events = NULL;
	t->n_events = t->events_room = 0;
	t->state = ++last_state;
}

/* The last version up to a time, 0 for the last of all. Without one, the first later version, unless it was born then. */
static const struct version *version_at(const struct history *h, __u64 time)
{
	size_t lo = 0, hi = h ? h->n : 0;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (!time || h->version[mid].time <= time)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo)
		return &h->version[lo - 1];
	return h && h->n && !h->version[0].born ? &h->version[0] : NULL;
}

const char *tasks_comm(const struct tasks *t, __u32 tgid, __u32 tid, __u64 time)
{
	const struct version *v;

	sort_events(t);
	v = version_at(history_at(t, tid), time);
	if (!tid && !tgid && !v)
		return "swapper"; /* the idle tasks, which have no events */
	if (!v || v->name == INTERN_NONE)
		return NULL;
	/* the tid belonged to another process at that time, and events were lost */
	if (tgid && v->tgid && tgid != v->tgid)
		return NULL;
	return intern_text(&t->texts, v->name);
}

static bool map_at(const struct tasks *t, size_t i, struct task_map *out)
{
	*out = t->maps[i].map;
	out->build_id = out->build_id_len ? t->maps[i].build_id : NULL;
	return true;
}

static __u32 maps_at(const struct tasks *t, __u64 key, __u64 time)
{
	const struct version *v;

	sort_events(t);
	v = version_at(history_at(t, key), time);
	return v ? v->root : 0;
}

bool tasks_map(const struct tasks *t, __u32 tgid, __u64 addr, __u64 time, bool kernel,
	       struct task_map *out)
{
	__u32 root = maps_at(t, kernel ? KERNEL : PROCESS(tgid), time);
	const struct map_node *n = map_tree_find(&t->pool, root, addr);

	return n && map_at(t, n->value, out);
}

__u32 tasks_maps(const struct tasks *t, __u32 tgid, __u64 time)
{
	return maps_at(t, PROCESS(tgid), time);
}

__u64 tasks_state(const struct tasks *t)
{
	sort_events(t);
	return t->state;
}

bool tasks_map_near(const struct tasks *t, __u32 tgid, __u64 addr, __u64 time, bool above,
		    struct task_map *out)
{
	__u32 root = maps_at(t, PROCESS(tgid), time);
	const struct map_node *n = map_tree_near(&t->pool, root, addr, above);

	return n && map_at(t, n->value, out);
}

bool tasks_kernel(const struct tasks *t, struct task_map *out)
{
	for (size_t i = 0; i < t->n_maps; i++)
		if (t->maps[i].map.kernel && task_map_is_kernel(&t->maps[i].map))
			return map_at(t, i, out);
	return false;
}

bool tasks_cgroup(const struct tasks *t, __u64 id, struct task_cgroup *out)
{
	__u32 i;

	sort_events(t);
	i = u64_map_get(&t->cgroup_of, id);
	if (i != U64_MAP_NONE)
		*out = t->cgroups[i];
	return i != U64_MAP_NONE;
}

bool tasks_rank(const struct tasks *t, __u32 tgid, __u64 time, __u32 *rank)
{
	const struct version *v;

	sort_events(t);
	if (!t->has_ranks)
		return false;
	v = version_at(history_at(t, RANK(tgid)), time);
	if (!v || v->name == INTERN_NONE)
		return false;
	*rank = v->name;
	return true;
}

const char *tasks_region(const struct tasks *t, __u32 tid, __u64 time)
{
	const struct version *v;
	struct region_node n;

	sort_events(t);
	if (!t->has_regions)
		return NULL;
	/* in nested teams, the thread that began the team may have no region of its own either */
	for (int depth = 0; depth < TEAM_DEPTH; depth++) {
		v = version_at(history_at(t, REGION(tid)), time);
		if (v && v->name)
			return region_tree_path(&t->regions, v->name);
		v = version_at(history_at(t, OMP(tid)), time);
		if (!v)
			break;
		n = region_tree_node(&t->regions, v->name);
		while (n.team == tid)
			n = region_tree_node(&t->regions, n.parent);
		if (!n.team)
			return NULL;
		tid = n.team;
		time = v->time;
	}
	return NULL;
}

bool tasks_omp(const struct tasks *t, __u32 tid, __u64 time, __u32 *number, __u64 *addr)
{
	const struct version *v;

	sort_events(t);
	if (!t->has_regions)
		return false;
	v = version_at(history_at(t, OMP(tid)), time);
	if (!v || v->tgid == NO_NUMBER)
		return false;
	*number = v->tgid;
	*addr = region_tree_node(&t->regions, v->name).addr;
	return true;
}

bool tasks_started(const struct tasks *t, __u32 tgid, __u32 tid, __u64 time, __u32 *place)
{
	const struct version *v;

	sort_events(t);
	v = version_at(history_at(t, START(tid)), time);
	*place = v && v->tgid == tgid ? v->name : 0;
	return *place || tid == tgid;
}
