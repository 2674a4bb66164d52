// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Neighbours of a running collector: windows of a second, read from the counters, judged and pinned. */
#include "collector_private.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/text.h"
#include "counts/counts.h"
#include "neighbours/neighbours.h"
#include "resctrl/resctrl.h"

#include <stdlib.h>
#include <string.h>

#define NEEDED	   (IBS_BY_CGROUP | IBS_BY_COMPLEX)
#define WINDOW_MIN 0.5 /* seconds; a shorter one becomes part of the next */
#define WINDOW_MAX 2.
#define NOW	   60 /* windows for which a pair that is not named again is still current */
#define NAMES_MAX \
	16384 /* with more all is forgotten, so that containers that come and go take no memory */

/* What a slot had counted at the end of the last window. */
struct slot_before {
	struct ibs_group_key key;
	struct neighbours_activity sum;
	__u32 name_seq, who; /* container with the name of this `seq` */
	bool used;
};

struct neighbour_watch {
	struct neighbours *judge; /* NULL: the groups do not allow it */
	struct intern names;
	struct slot_before *slot;
	__u32 *slot_of; /* by container: with its name */
	size_t room;
	__u32 fold;
	double read_s;
	struct resctrl *resctrl; /* NULL: none, or nobody was named yet */
	bool looked;		 /* for it */
	bool began;		 /* `slot` is that of the last window */
	/* while reading */
	struct collector_event *event;
	bool known;
};

struct neighbour_watch *neighbour_watch_new(void)
{
	return xcalloc(1, sizeof(struct neighbour_watch));
}

static void forget(struct neighbour_watch *w)
{
	neighbours_free(w->judge);
	resctrl_close(w->resctrl);
	intern_free(&w->names);
	free(w->slot);
	free(w->slot_of);
	*w = (struct neighbour_watch){};
}

void neighbour_watch_free(struct neighbour_watch *w)
{
	if (!w)
		return;
	forget(w);
	free(w);
}

static const struct counts *counts_of(const struct collector *c)
{
	return sampler_counts(opened(c->event)->sampler);
}

void neighbour_watch_begin(struct collector *c)
{
	struct neighbour_watch *w = c->neighbours;
	struct ibs_neighbours *pinned = pins_neighbours(c->event->pins);

	forget(w);
	pins_write_begin(&pinned->seq);
	memset((char *)pinned + sizeof(pinned->seq), 0,
	       sizeof(struct ibs_slot_name) - sizeof(pinned->seq));
	pins_write_end(&pinned->seq);
	if ((counts_of(c)->by & NEEDED) != NEEDED ||
	    opened(c->event)->info.metric != IBS_METRIC_DC_MISS_LAT)
		return;
	w->judge = neighbours_new(false);
	w->slot = xcalloc(counts_of(c)->max_slots, sizeof(*w->slot));
}

/* --- a window --- */

/* The number of a container, by its names. Return: INTERN_NONE if it has none. */
static __u32 container_of_slot(struct neighbour_watch *w, __u32 slot, const struct ibs_slot_name *n)
{
	struct slot_before *b = &w->slot[slot];
	char *text;

	if (n->cgroup_id != b->key.cgroup_id || !*n->container)
		return INTERN_NONE;
	if (b->who == INTERN_NONE || b->name_seq != n->seq) {
		text = xasprintf("%s/%s/%s", n->name_space, n->pod, n->container);
		b->who = intern_get(&w->names, text);
		b->name_seq = n->seq;
		free(text);
	}
	array_reserve(w->slot_of, w->room, b->who + 1);
	w->slot_of[b->who] = slot;
	return b->who;
}

static int add_change(struct neighbour_watch *w, __u32 slot, const struct ibs_group_key *key,
		      const struct neighbours_activity *now)
{
	struct slot_before *b = &w->slot[slot];
	struct neighbours_activity change = *now;
	__u32 who;

	if (!b->used || memcmp(&b->key, key, sizeof(*key)))
		*b = (struct slot_before){ .key = *key, .used = true, .who = INTERN_NONE };
	neighbours_activity_since(&change, &b->sum);
	b->sum = *now;
	if (!w->began || !(change.samples > 0))
		return 0;
	who = container_of_slot(w, slot, &pins_names(w->event->pins)[slot]);
	if (who != INTERN_NONE)
		neighbours_add(w->judge, key->complex, who, &change);
	return 0;
}

static int add_counts(void *arg, __u32 slot, const struct ibs_group_key *key,
		      const struct counts_activity *a)
{
	const struct neighbours_activity now = { a->valid, a->sum, a->ops };

	return add_change(arg, slot, key, &now);
}

static int add_group(void *arg, struct group *g)
{
	struct neighbours_activity now;

	if (g->other)
		return 0;
	neighbours_activity_of(g, &now);
	return add_change(arg, g->slot, &g->key, &now);
}

/* With strata all series are needed, since samples have different weights. */
static int read_groups(struct neighbour_watch *w, const struct counts *counts)
{
	struct ledger ignored;
	struct err err;

	if (counts->state->control.strata.used)
		return counts_each(counts, add_group, w, &ignored, &err);
	return counts_each_activity(counts, neighbours_sources(), add_counts, w);
}

/* Groups that are folded change those that they are added to. */
static void read_window(struct neighbour_watch *w, const struct counts *counts, double now_s)
{
	const double length = now_s - w->read_s;
	const __u32 fold = __atomic_load_n(&counts->state->control.fold, __ATOMIC_ACQUIRE);

	w->known = w->began && length <= WINDOW_MAX && fold == w->fold;
	w->known &= !read_groups(w, counts);
	w->known &= fold == __atomic_load_n(&counts->state->control.fold, __ATOMIC_ACQUIRE);
	w->fold = fold;
	w->began = true;
	w->read_s = now_s;
}

/* --- pins --- */

static struct ibs_neighbour neighbour_of(const struct neighbour_watch *w,
					 const struct neighbours_pair *p, unsigned int window,
					 __u64 now_ns)
{
	const __u32 victim = w->slot_of[p->victim], suspect = w->slot_of[p->suspect];

	return (struct ibs_neighbour){
		.victim_slot = victim,
		.suspect_slot = suspect,
		.victim_cgroup = w->slot[victim].key.cgroup_id,
		.suspect_cgroup = w->slot[suspect].key.cgroup_id,
		.first_ns = now_ns - (window - p->first) * 1000000000ULL,
		.last_ns = now_ns - (window - p->last) * 1000000000ULL,
		.latency = p->latency,
		.baseline = p->baseline,
		.share = p->share,
		.correlation = p->correlation,
		.chance = p->chance,
		.complex = p->complex,
		.lag = p->lag,
		.runs = p->runs,
		.busy = p->busy,
	};
}

/* Only while somebody is named: reading who has which tasks costs more than judging. */
static void read_resctrl(struct neighbour_watch *w, bool any)
{
	if (!any) {
		resctrl_close(w->resctrl);
		w->resctrl = NULL;
		w->looked = false;
		return;
	}
	if (!w->looked)
		w->resctrl = resctrl_open("");
	w->looked = true;
	if (w->resctrl)
		resctrl_read(w->resctrl, w->read_s, false);
}

static struct ibs_neighbour_use use_of(const struct neighbour_watch *w,
				       const struct ibs_slot_name *n, __u64 cgroup_id,
				       unsigned int complex)
{
	struct ibs_neighbour_use use = { 0 };
	struct resctrl_figures f;
	char *name;

	if (!w->resctrl || n->cgroup_id != cgroup_id)
		return use;
	name = xasprintf("%s%s%s", n->pod, *n->pod ? "/" : "", n->container);
	if (resctrl_of(w->resctrl, name, complex, &f)) {
		use.traffic = f.of[RESCTRL_TOTAL].peak;
		use.l3 = f.of[RESCTRL_OCCUPANCY].peak;
		use.known = (f.of[RESCTRL_TOTAL].readings ? IBS_NEIGHBOUR_TRAFFIC : 0) |
			    (f.of[RESCTRL_OCCUPANCY].readings ? IBS_NEIGHBOUR_L3 : 0);
	}
	free(name);
	return use;
}

static void pin(struct neighbour_watch *w, struct ibs_neighbours *to)
{
	struct ibs_neighbours all = { .time_ns = clock_ns(CLOCK_BOOTTIME) };
	const struct neighbours_pair *pair;
	struct neighbours_lack lack;
	size_t n;

	neighbours_forget(w->judge, NOW);
	pair = neighbours_pairs(w->judge, &n);
	neighbours_lack(w->judge, &lack);
	all.pairs = n;
	all.judged = lack.containers - lack.too_few;
	read_resctrl(w, n);
	for (; all.n < n && all.n < IBS_NEIGHBOURS; all.n++) {
		const struct ibs_neighbour *p = &all.pair[all.n];

		all.pair[all.n] = neighbour_of(w, &pair[all.n], lack.windows - 1, all.time_ns);
		all.use[all.n] = use_of(w, &pins_names(w->event->pins)[p->suspect_slot],
					p->suspect_cgroup, p->complex);
	}
	pins_write_begin(&to->seq);
	memcpy((char *)to + sizeof(to->seq), (char *)&all + sizeof(all.seq),
	       sizeof(all) - sizeof(all.seq));
	pins_write_end(&to->seq);
}

void neighbour_watch_tick(struct collector *c)
{
	struct neighbour_watch *w = c->neighbours;
	const double now = now_s();

	if (!w->judge || now < w->read_s + WINDOW_MIN)
		return;
	if (w->names.n >= NAMES_MAX)
		neighbour_watch_begin(c);
	w->event = c->event;
	read_window(w, counts_of(c), now);
	neighbours_end_window(w->judge, w->known);
	pin(w, pins_neighbours(c->event->pins));
}

static void name_of(const void *arg, const struct group *g, struct ibs_slot_name *out)
{
	const struct ibs_slot_name *n = &((const struct ibs_slot_name *)arg)[g->slot];

	*out = n->cgroup_id == g->key.cgroup_id ? *n : (struct ibs_slot_name){};
}

void neighbour_watch_read(struct collector *c, struct reading *r)
{
	neighbours_read(&r->neighbours, r->time_ns, pins_neighbours(c->event->pins), name_of,
			pins_names(c->event->pins));
}
