// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the socket for users of a collector answers: the groups of one's own cgroups. */
#include "source.h"

#include "base/clock.h"
#include "collector/control.h"
#include "rows/snapshot_json.h"

struct users_source {
	struct top_source source;
	char *path;
	enum source_event event;
	struct u64_map slots[CONTROL_SNAPSHOTS];
	struct snapshot_read last, now; /* the names of `last` are shown until there is another */
};

/* Without what came before: 1. A group that is gone takes its samples along, so the ledger is made of the differences. */
static int difference(struct users_source *s, struct snapshot *out)
{
	struct ledger *l = &out->ledger;
	int ret = s->last.names ? 0 : 1;

	s->now.snapshot.ledger = (struct ledger){};
	if (!ret)
		snapshot_diff(&s->now.snapshot, &s->last.snapshot, out);
	for (size_t i = 0; !ret && i < out->n_groups; i++)
		for (size_t k = 0; k < out->groups[i].n_series; k++) {
			const struct series *one = &out->groups[i].series[k];

			if (one->samples > INT64_MAX) /* they were counted from zero */
				ret = 1;
			l->seen += one->samples;
		}
	l->outcome[IBS_OUTCOME_AGGREGATED] = l->seen;
	if (ret)
		snapshot_free(out);
	return ret;
}

static int users_read(struct top_source *source, double seconds, struct snapshot *out,
		      struct frame *frame, struct err *err)
{
	struct users_source *s = (struct users_source *)source;
	struct top_source_info *i = &source->info;
	struct snapshot_read got[CONTROL_SNAPSHOTS];
	int n = control_ask_snapshots(s->path, s->slots, got, err), of = 0, ret;

	(void)seconds;
	memset(out, 0, sizeof(*out));
	if (n < 0)
		return n;
	while (of < n && !source_has(s->event, got[of].about.metric))
		of++;
	for (int i = 0; i < n; i++)
		if (i != of)
			snapshot_read_free(&got[i]);
	if (of == n)
		return source_lacks(s->event, err);
	s->now = got[of];
	s->now.snapshot.time_ns = clock_ns(CLOCK_BOOTTIME);
	ret = difference(s, out);
	snapshot_read_free(&s->last);
	s->last = s->now;
	i->hist = (struct hist_info){ .source = s->last.about.source,
				      .event = s->last.about.event,
				      .simulated = s->last.about.simulated,
				      .metric = s->last.about.metric,
				      .period = s->last.about.period };
	i->by = i->by_possible = s->last.about.by;
	*frame = (struct frame){ .end_ns = clock_ns(CLOCK_REALTIME),
				 .by = i->by,
				 .period = s->last.about.period,
				 .metric = s->last.about.metric };
	return ret;
}

static int users_open_source(struct top_source *source, unsigned int labels, struct err *err)
{
	struct snapshot none;
	struct frame frame;
	int ret = users_read(source, 0, &none, &frame, err);

	(void)labels;
	snapshot_free(&none);
	return ret < 0 ? ret : 0;
}

static const char *users_name(void *arg, __u64 id, enum label l)
{
	return snapshot_read_name(&((struct users_source *)arg)->last, id, l);
}

static void users_close_source(struct top_source *source)
{
	struct users_source *s = (struct users_source *)source;

	snapshot_read_free(&s->last);
	for (int i = 0; i < CONTROL_SNAPSHOTS; i++)
		u64_map_free(&s->slots[i]);
	free(s->path);
	free(s);
}

int source_users(const char *path, enum source_event event, struct top_source **out,
		 struct err *err)
{
	struct users_source *s = xcalloc(1, sizeof(*s));
	int ret;

	s->source = (struct top_source){ .name = users_name,
					 .open = users_open_source,
					 .read = users_read,
					 .close = users_close_source };
	s->path = xstrdup(path);
	s->event = event;
	s->source.info.unselectable = true;
	ret = users_open_source(&s->source, 0, err);
	snprintf(s->source.info.origin, sizeof(s->source.info.origin), "own cgroups");
	if (ret)
		users_close_source(&s->source);
	else
		*out = &s->source;
	return ret;
}
