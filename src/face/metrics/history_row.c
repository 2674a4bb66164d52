// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "history_row.h"
#include "base/std.h"
#include "table/table.h"

#include <math.h>

char *history_about(const struct metrics *m)
{
	char *text;
	size_t n;
	struct json_writer w = { .f = xmemopen(&text, &n) };

	json_begin_array(&w, NULL);
	for (unsigned int i = 0; i < m->facts.n_events; i++) {
		const struct ibs_meta *meta = &m->facts.reading[i].meta;

		json_begin_object(&w, NULL);
		json_put_text(&w, "event", meta->event);
		json_put_text(&w, "metric", metric_name(reading_metric(meta)));
		json_put_bool(&w, "simulated", meta->layout.simulated);
		json_put_bool(&w, "coarse_histograms", m->facts.self.coarse);
		json_end(&w);
	}
	json_end(&w);
	xmemclose(w.f);
	return text;
}

static void put_source(struct json_writer *w, const char *name, const struct series *s)
{
	json_begin_array(w, name);
	json_put_u64(w, NULL, s->samples);
	json_put_u64(w, NULL, s->valid);
	json_put_u64(w, NULL, s->sum);
	json_put_u64(w, NULL, s->ops);
	json_put_known(w, NULL, !isnan(series_miss_cycles(s)), series_miss_cycles(s));
	json_begin_array(w, NULL);
	for (int i = 0; s->buckets && i < IBS_LAT_BUCKETS; i++) {
		if (!s->buckets[i])
			continue;
		json_put_u64(w, NULL, ibs_lat_le(i));
		json_put_u64(w, NULL, s->buckets[i]);
	}
	json_end(w);
	json_end(w);
}

void history_put_row(struct json_writer *w, __u32 id, const struct metrics_group *g, bool fetch)
{
	const struct tlb_counts *t = &g->tlb;

	json_begin_object(w, NULL);
	json_put_u64(w, "id", id);
	json_begin_array(w, "tlb");
	json_put_u64(w, NULL, t->l2_hit);
	json_put_u64(w, NULL, t->l2_miss);
	json_put_u64(w, NULL, t->l2_hit_ops);
	json_put_u64(w, NULL, t->l2_miss_ops);
	json_put_u64(w, NULL, t->refills);
	json_put_u64(w, NULL, t->refill_cycles);
	json_end(w);
	if (!fetch) {
		json_begin_array(w, "exposed");
		json_put_u64(w, NULL, metrics_exposed(g));
		json_put_u64(w, NULL, g->unexposed);
		json_end(w);
	}
	json_begin_object(w, fetch ? "fetches" : "sources");
	for (int src = 0; src < IBS_SRC_N; src++)
		if (g->src[src].samples)
			put_source(w, fetch ? fetch_class_name(src) : src_name(src), &g->src[src]);
	json_end(w);
	json_end(w);
}
