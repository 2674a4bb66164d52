// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The counters of a running collector: no second set of events. */
#include "source.h"
#include "base/std.h"

#include "base/clock.h"
#include "base/u64_map.h"
#include "pins/pinned.h"
#include "interval.h"
#include "status/reading.h"

#include <math.h>

struct pins_source {
	struct top_source source;
	char *dir;
	enum source_event of;
	struct pinned *all, *p; /* the collector's, and of them those of the event */
	struct baseline last;
	struct ibs_meta meta;
	struct u64_map slots; /* of cgroups with samples */
	struct ibs_slot_name name;
	char event[sizeof(((struct ibs_meta *)0)->event)], kind[16];
};

static void describe(struct pins_source *s)
{
	struct top_source_info *i = &s->source.info;
	const struct ibs_meta *m = &s->meta;

	pinned_meta(s->p, &s->meta);
	snprintf(s->event, sizeof(s->event), "%s", m->event);
	snprintf(s->kind, sizeof(s->kind), "%s", m->source);
	i->hist = (struct hist_info){ .source = s->kind,
				      .event = s->event,
				      .simulated = m->layout.simulated,
				      .metric = reading_metric(m),
				      .period = m->status.period };
	i->by = m->layout.by;
	i->by_possible = i->by;
	if (m->pid)
		snprintf(i->origin, sizeof(i->origin), "collector %u", m->pid);
	snprintf(i->trouble, sizeof(i->trouble), "%s",
		 collector_alive(m)	 ? ""
		 : collector_orphaned(m) ? "orphaned: the collector was killed"
					 : "the collector is not running");
}

static int open_pins(struct pins_source *s, struct err *err)
{
	struct ibs_meta m;
	int ret = pinned_open(s->dir, &s->all, err);

	for (s->p = ret ? NULL : s->all; s->p; s->p = pinned_second(s->p)) {
		pinned_meta(s->p, &m);
		if (source_has(s->of, reading_metric(&m)))
			break;
	}
	if (!ret && !s->p)
		ret = source_lacks(s->of, err);
	if (ret)
		return ret;
	places_read(&s->source.info.places, pinned_counts(s->p)->n_cpus,
		    pinned_counts(s->p)->shards);
	return 0;
}

static void close_pins(struct pins_source *s)
{
	pinned_close(s->all);
	s->all = s->p = NULL;
}

/* Return: as interval_read(). */
static int read_counts(struct pins_source *s, struct snapshot *out, struct err *err)
{
	const struct ibs_meta_status *st = &s->meta.status;
	struct snapshot now = { .time_ns = clock_ns(CLOCK_BOOTTIME) };
	int ret = 0;

	/* a collector that began anew may have other pins */
	if (s->p && !pinned_current(s->all, -1, s->dir)) {
		close_pins(s);
		baseline_free(&s->last);
	}
	if (!s->p) {
		close_pins(s);
		ret = open_pins(s, err);
		if (ret)
			return ret;
	}
	describe(s);
	now.ledger = (struct ledger){ .pmu_samples = st->pmu_samples,
				      .unseen = st->unseen,
				      .pmu_exact = st->pmu_exact };
	pinned_pmu(s->p, st, &now.pmu);
	ret = interval_read(&s->last, pinned_counts(s->p), &now, out, err);
	if (ret)
		return ret;
	u64_map_free(&s->slots);
	for (size_t i = 0; i < out->n_groups; i++)
		u64_map_put(&s->slots, out->groups[i].key.cgroup_id, out->groups[i].slot);
	return 0;
}

static int pins_open_source(struct top_source *source, unsigned int labels, struct err *err)
{
	struct snapshot none = {};
	int ret = read_counts((struct pins_source *)source, &none, err);

	(void)labels;
	snapshot_free(&none);
	return ret < 0 ? ret : 0;
}

static int pins_read(struct top_source *source, double seconds, struct snapshot *out,
		     struct frame *frame, struct err *err)
{
	struct pins_source *s = (struct pins_source *)source;
	const struct ibs_meta_status *st = &s->meta.status;
	int ret = read_counts(s, out, err);

	(void)seconds;
	if (ret)
		return ret;
	*frame = (struct frame){ .end_ns = clock_ns(CLOCK_REALTIME),
				 .by = s->meta.layout.by,
				 .period = st->period,
				 .metric = reading_metric(&s->meta),
				 .cost = st->overhead_ppb ? status_overhead(st) : HISTORY_NO_COST };
	return 0;
}

static const char *pins_name(void *arg, __u64 id, enum label l)
{
	struct pins_source *s = arg;
	struct group g = { .slot = u64_map_get(&s->slots, id), .key.cgroup_id = id };

	if (g.slot == U64_MAP_NONE)
		return NULL;
	pinned_name(s->p, &g, &s->name);
	if (l == LABEL_CONTAINER)
		return s->name.container;
	if (l == LABEL_POD)
		return s->name.pod;
	return *s->name.cgroup ? s->name.cgroup : NULL;
}

static void pins_close_source(struct top_source *source)
{
	struct pins_source *s = (struct pins_source *)source;

	baseline_free(&s->last);
	places_free(&source->info.places);
	u64_map_free(&s->slots);
	close_pins(s);
	free(s->dir);
	free(s);
}

int source_pinned(const char *dir, enum source_event event, struct top_source **out,
		  struct err *err)
{
	struct pins_source *s = xcalloc(1, sizeof(*s));
	int ret;

	s->source = (struct top_source){ .name = pins_name,
					 .open = pins_open_source,
					 .read = pins_read,
					 .close = pins_close_source };
	s->dir = xstrdup(dir);
	s->of = event;
	ret = open_pins(s, err);
	if (!ret) {
		describe(s);
		if (!collector_alive(&s->meta))
			ret = err_set(err, -ESRCH,
				      "%s: the collector is not running; `ibscope serve` resumes "
				      "its counters",
				      dir);
	}
	if (ret)
		s->source.close(&s->source);
	else
		*out = &s->source;
	return ret;
}
