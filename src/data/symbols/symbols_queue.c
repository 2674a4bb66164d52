// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Names of many files in little time. What strangers' files cost is known only by reading them: each gets an attempt, which
 * is given up when it takes several times what was expected, and then comes later. The next one is that of the least
 * cost, counted on top of what its owner has used.
 */
#include "symbols.h"
#include "symbols_private.h"

#include "base/clock.h"
#include "chain.h"

#include <math.h>

#define ATTEMPT_LEAST_S 0.1
#define ATTEMPT_FACTOR \
	4 /* of the cost that is expected: all attempts together take a third more than the last */

/* An address whose name is wanted: of a file, by its index, or of code that a process generated. */
struct noted {
	__u32 is_generated, of; /* index of the file, or tgid */
	__u64 addr, time;	/* offset in the file; time 0 */
};

/* All of one file or process. */
struct job {
	const struct noted *first, *end;
	double cost_s;
	__u32 owner;
	bool done;
};

struct jobs {
	struct job *v;
	size_t n, room;
	struct u64_map owner_of;
	double *used_s; /* by owner */
	size_t owners, owners_room;
};

static void note(struct symbols *s, struct noted what)
{
	array_reserve(s->noted, s->noted_room, s->n_noted + 1);
	s->noted[s->n_noted++] = what;
}

static void note_address(struct symbols *s, const struct tasks *tasks, __u32 tgid, __u64 addr,
			 __u64 time)
{
	struct task_map map;
	bool mapped = tasks_map(tasks, tgid, addr, time, false, &map);

	if (!mapped || is_generated(map.path))
		note(s, (struct noted){ true, tgid, addr, time });
	if (mapped)
		note(s, (struct noted){ false, dso_at(s, tgid, &map) - s->dsos,
					addr - map.start + map.pgoff });
}

void symbols_note(struct symbols *s, const struct tasks *tasks, const struct trace_event *ev)
{
	struct chain_frame frames[TRACE_STACK_MAX];
	unsigned int n = chain_walked(&ev->sample, frames);

	for (unsigned int i = 0; i < n; i++)
		if (!frames[i].kernel)
			note_address(s, tasks, ev->sample.tgid, frames[i].addr, ev->time);
}

static int compare(const void *pa, const void *pb)
{
	const struct noted *a = pa, *b = pb;

	if (a->is_generated != b->is_generated)
		return a->is_generated ? 1 : -1;
	if (a->of != b->of)
		return a->of < b->of ? -1 : 1;
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->time < b->time ? -1 : a->time > b->time;
}

/* --- one job --- */

/* Where the objects of a job are. */
struct places {
	struct object **object[2]; /* NULL: there is none */
	char *why[2];
};

static struct places places_of(struct symbols *s, const struct job *j)
{
	struct process *p;
	struct dso *d;

	if (!j->first->is_generated) {
		d = &s->dsos[j->first->of];
		return (struct places){ { &d->object }, { d->why } };
	}
	p = process_of(s, j->first->of);
	return (struct places){ { &p->code_dump.object, &p->code_map.object },
				{ p->code_dump.why, p->code_map.why } };
}

/* The next object of a job, from *i on; NULL behind the last. */
static struct object *next_object(const struct places *p, int *i)
{
	for (; *i < 2; ++*i)
		if (p->object[*i] && *p->object[*i])
			return *p->object[(*i)++];
	return NULL;
}

static bool is_deferred(struct symbols *s, const struct job *j)
{
	struct places p = places_of(s, j);
	struct object *o;

	for (int i = 0; (o = next_object(&p, &i));)
		if (object_deferred(o))
			return true;
	return false;
}

/* Answers are kept by the objects. */
static void ask(struct symbols *s, const struct tasks *tasks, const struct noted *q)
{
	struct object_name name;
	struct symbol unused;

	if (q->is_generated)
		symbols_generated(s, process_of(s, q->of), tasks, q->of, q->addr, q->time, &unused);
	else if (s->dsos[q->of].object)
		object_symbol(s->dsos[q->of].object, q->addr, &name);
}

/* @go_on: ask all questions, as some may have an answer that is known. Return: false if it is deferred. */
static bool attempt(struct symbols *s, const struct tasks *tasks, const struct job *j, bool go_on)
{
	struct places p = places_of(s, j);
	struct object *o;
	bool deferred;

	for (int i = 0; (o = next_object(&p, &i));)
		object_attempt(o);
	for (const struct noted *q = j->first; q < j->end; q++) {
		ask(s, tasks, q);
		if (!go_on && is_deferred(s, j))
			break;
	}
	deferred = is_deferred(s, j);
	for (int i = 0; (o = next_object(&p, &i));) {
		object_rest(o);
		if (object_is_other(o, p.why[i - 1], sizeof(((struct dso *)0)->why))) {
			object_close(o);
			*p.object[i - 1] = NULL;
		}
	}
	return !deferred;
}

/* --- all --- */

static __u32 owner_of(struct jobs *all, __u64 id)
{
	__u32 owner = u64_map_get(&all->owner_of, id);

	if (owner != U64_MAP_NONE)
		return owner;
	array_reserve_zero(all->used_s, all->owners_room, all->owners + 1);
	u64_map_put(&all->owner_of, id, all->owners);
	return all->owners++;
}

/* Open the files of a job, and have answered what is known. */
static void open_job(struct symbols *s, const struct tasks *tasks, struct jobs *all, struct job *j)
{
	struct places p;
	struct object *o;

	if (!j->first->is_generated && !s->dsos[j->first->of].opened)
		dso_open(s, &s->dsos[j->first->of]);
	else
		ask(s, tasks, j->first);
	p = places_of(s, j);
	for (int i = 0; (o = next_object(&p, &i));) {
		j->cost_s += object_cost(o);
		j->owner = owner_of(all, object_owner(o));
	}
	j->done = attempt(s, tasks, j, true);
}

static void list_jobs(struct symbols *s, const struct tasks *tasks, struct jobs *all)
{
	if (s->n_noted)
		qsort(s->noted, s->n_noted, sizeof(*s->noted), compare);
	for (size_t i = 0; i < s->n_noted; i++) {
		const struct noted *q = &s->noted[i];

		if (!i || q[-1].is_generated != q->is_generated || q[-1].of != q->of) {
			array_reserve_zero(all->v, all->room, all->n + 1);
			all->v[all->n++].first = q;
		}
		all->v[all->n - 1].end = q + 1;
	}
	for (size_t i = 0; i < all->n; i++)
		open_job(s, tasks, all, &all->v[i]);
}

/* Return: NULL if all are done, or cost more than there is. */
static struct job *next_job(const struct symbols *s, const struct jobs *all)
{
	struct job *best = NULL;
	double least = INFINITY;

	for (size_t i = 0; i < all->n; i++) {
		struct job *j = &all->v[i];
		double cost_s = j->done ? INFINITY : all->used_s[j->owner] + j->cost_s;

		if (cost_s >= least || !naming_affords(s->naming, j->cost_s))
			continue;
		least = cost_s;
		best = j;
	}
	return best;
}

/* Files that were named have another attempt, as short as the first: no file takes the time of the others. */
static void go_on(struct symbols *s, const struct jobs *all)
{
	struct places p;
	struct object *o;

	naming_go_on(s->naming);
	naming_limit_attempt(s->naming, ATTEMPT_LEAST_S);
	for (const struct job *j = all->v; j < all->v + all->n; j++) {
		p = places_of(s, j);
		for (int i = 0; j->done && (o = next_object(&p, &i));)
			object_attempt(o);
	}
}

void symbols_name_noted(struct symbols *s, const struct tasks *tasks, bool chains)
{
	struct jobs all = {};
	struct job *j;

	naming_limit_attempt(s->naming, 0);
	list_jobs(s, tasks, &all);
	while (!naming_is_over(s->naming) && (j = next_job(s, &all))) {
		double limit_s = fmax(ATTEMPT_FACTOR * j->cost_s, ATTEMPT_LEAST_S);
		double began_s = now_s();

		naming_limit_attempt(s->naming, limit_s);
		j->done = attempt(s, tasks, j, false);
		j->cost_s = limit_s;
		all.used_s[j->owner] += now_s() - began_s;
	}
	naming_end(s->naming);
	symbols_forget_recent(s); /* answers may be of files that were closed */
	/* the reason that they have no names is that now */
	for (j = all.v; j < all.v + all.n; j++)
		if (!j->done)
			attempt(s, tasks, j, false);
	if (chains)
		go_on(s, &all);
	free(all.v);
	free(all.used_s);
	u64_map_free(&all.owner_of);
	free(s->noted);
	s->noted = NULL;
	s->n_noted = s->noted_room = 0;
}

size_t symbols_lack_time(const struct symbols *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_dsos; i++)
		n += s->dsos[i].object && object_lacks_time(s->dsos[i].object);
	for (size_t i = 0; i < s->n_processes; i++) {
		const struct object *map = s->processes[i].code_map.object;
		const struct object *dump = s->processes[i].code_dump.object;

		n += (map && object_lacks_time(map)) + (dump && object_lacks_time(dump));
	}
	return n;
}
