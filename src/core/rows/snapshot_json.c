// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "snapshot_json.h"
#include "counts/counts.h"

#include "base/array.h"
#include "base/json_writer.h"

#include <jansson.h>

#define FORMAT	     1
#define SERIES_WORDS 11

/* All numbers of a series, in the order of the format. */
static void series_words(const struct series *s, json_int_t words[SERIES_WORDS])
{
	const json_int_t all[SERIES_WORDS] = { s->op,	s->src,	    s->samples, s->valid,
					       s->sum,	s->ops,	    s->cycles,	s->open_n,
					       s->open, s->state_n, s->hitm };

	memcpy(words, all, sizeof(all));
}

void snapshot_put_head(FILE *f, const struct snapshot_about *a)
{
	struct json_writer w = { .f = f };

	json_begin_object(&w, NULL);
	json_put_u64(&w, "format", FORMAT);
	json_put_text(&w, "source", a->source);
	json_put_text(&w, "event", a->event);
	json_put_bool(&w, "simulated", a->simulated);
	json_put_u64(&w, "metric", a->metric);
	json_put_i64(&w, "period", a->period);
	json_put_u64(&w, "by", a->by);
	json_put_u64(&w, "cpus", a->cpus);
	json_put_i64(&w, "enabled_ns", a->enabled_ns);
	json_finish(&w);
}

static void put_series(struct json_writer *w, const struct series *s)
{
	json_int_t word[SERIES_WORDS];

	series_words(s, word);
	json_begin_object(w, NULL);
	json_begin_array(w, "words");
	for (size_t i = 0; i < SERIES_WORDS; i++)
		json_put_i64(w, NULL, word[i]);
	json_end(w);
	/* apart from the words, since older readers take exactly as many as they know */
	json_begin_array(w, "exposed");
	json_put_i64(w, NULL, s->exposed);
	json_put_i64(w, NULL, s->exposed_n);
	json_end(w);
	json_begin_array(w, "buckets");
	for (size_t b = 0; s->buckets && b < IBS_LAT_BUCKETS; b++) {
		if (!s->buckets[b])
			continue;
		json_put_u64(w, NULL, b);
		json_put_i64(w, NULL, s->buckets[b]);
	}
	json_end(w);
	json_put_bool(w, "latency", s->buckets);
	json_end(w);
}

void snapshot_put_group(FILE *f, const struct group *g, const struct ibs_slot_name *n)
{
	const struct ibs_group_key *k = &g->key;
	char comm[sizeof(k->comm) + 1] = "";
	struct json_writer w = { .f = f };

	memcpy(comm, k->comm, sizeof(k->comm));
	json_begin_object(&w, NULL);
	json_put_text(&w, "cgroup", n->cgroup);
	json_put_text(&w, "container", n->container);
	json_put_text(&w, "pod", n->pod);
	json_put_i64(&w, "id", k->cgroup_id);
	json_put_u64(&w, "pid", k->tgid);
	json_put_u64(&w, "tid", k->tid);
	json_put_u64(&w, "cpu", k->cpu);
	json_put_u64(&w, "node", k->node);
	json_put_u64(&w, "ccx", k->complex);
	json_put_u64(&w, "mode", k->mode);
	json_put_u64(&w, "mem_node", k->mem_node);
	json_put_text(&w, "comm", comm);
	json_put_bool(&w, "weighted", g->weighted);
	json_begin_array(&w, "series");
	for (size_t i = 0; i < g->n_series; i++)
		put_series(&w, &g->series[i]);
	json_finish(&w);
}

void snapshot_put_end(FILE *f, size_t left_out)
{
	struct json_writer w = { .f = f };

	json_begin_object(&w, NULL);
	json_put_bool(&w, "end", true);
	json_put_u64(&w, "left_out", left_out);
	json_finish(&w);
}

static bool parse_series(json_t *j, enum ibs_metric metric, struct series *s)
{
	const json_t *words = json_object_get(j, "words"), *buckets = json_object_get(j, "buckets");
	const json_t *exposed = json_object_get(j, "exposed");
	json_int_t w[SERIES_WORDS];

	if (json_array_size(words) != SERIES_WORDS || json_array_size(buckets) % 2)
		return false;
	for (size_t i = 0; i < SERIES_WORDS; i++)
		w[i] = json_integer_value(json_array_get(words, i));
	if (w[0] < 0 || w[0] >= layout_ops(metric) || w[1] < 0 || w[1] >= layout_sources(metric))
		return false;
	*s = (struct series){ .op = w[0],
			      .src = w[1],
			      .samples = w[2],
			      .valid = w[3],
			      .sum = w[4],
			      .ops = w[5],
			      .cycles = w[6],
			      .open_n = w[7],
			      .open = w[8],
			      .state_n = w[9],
			      .hitm = w[10],
			      .exposed = json_integer_value(json_array_get(exposed, 0)),
			      /* unknown to older collectors */
			      .exposed_n = json_integer_value(json_array_get(exposed, 1)) };
	if (json_is_true(json_object_get(j, "latency")))
		s->buckets = xcalloc(IBS_LAT_BUCKETS, sizeof(*s->buckets));
	for (size_t i = 0; i < json_array_size(buckets); i += 2) {
		json_int_t b = json_integer_value(json_array_get(buckets, i));

		if (!s->buckets || b < 0 || b >= IBS_LAT_BUCKETS)
			return false;
		s->buckets[b] = json_integer_value(json_array_get(buckets, i + 1));
	}
	return true;
}

static bool parse_group(json_t *j, enum ibs_metric metric, struct group *g,
			struct ibs_slot_name *name)
{
	const char *cgroup, *container, *pod, *comm;
	json_int_t id, pid, tid, cpu, node, ccx, mode, mem_node;
	json_t *series;
	bool good = true;

	memset(g, 0, sizeof(*g));
	if (json_unpack(j, "{ss ss ss sI sI sI sI sI sI sI sI ss so}", "cgroup", &cgroup,
			"container", &container, "pod", &pod, "id", &id, "pid", &pid, "tid", &tid,
			"cpu", &cpu, "node", &node, "ccx", &ccx, "mode", &mode, "mem_node",
			&mem_node, "comm", &comm, "series", &series))
		return false;
	g->key = (struct ibs_group_key){ .cgroup_id = id,
					 .tgid = pid,
					 .tid = tid,
					 .cpu = cpu,
					 .node = node,
					 .complex = ccx,
					 .mode = mode,
					 .mem_node = mem_node };
	snprintf(g->key.comm, sizeof(g->key.comm), "%s", comm);
	/* unknown to older collectors */
	g->weighted = json_is_true(json_object_get(j, "weighted"));
	name->cgroup_id = id;
	snprintf(name->cgroup, sizeof(name->cgroup), "%s", cgroup);
	snprintf(name->container, sizeof(name->container), "%s", container);
	snprintf(name->pod, sizeof(name->pod), "%s", pod);
	g->series = xcalloc(json_array_size(series) + 1, sizeof(*g->series));
	while (good && g->n_series < json_array_size(series)) {
		good = parse_series(json_array_get(series, g->n_series), metric,
				    &g->series[g->n_series]);
		g->n_series++;
	}
	return good;
}

static bool parse_head(json_t *j, struct snapshot_about *a)
{
	const char *source, *event;
	json_int_t period, by, cpus, enabled_ns;
	int format, simulated, metric;

	if (json_unpack(j, "{si ss ss sb si sI sI sI sI}", "format", &format, "source", &source,
			"event", &event, "simulated", &simulated, "metric", &metric, "period",
			&period, "by", &by, "cpus", &cpus, "enabled_ns", &enabled_ns) ||
	    format != FORMAT || metric < 0 || metric >= IBS_METRIC_N)
		return false;
	*a = (struct snapshot_about){ .simulated = simulated,
				      .metric = metric,
				      .period = period,
				      .by = by,
				      .cpus = cpus,
				      .enabled_ns = enabled_ns };
	snprintf(a->source, sizeof(a->source), "%s", source);
	snprintf(a->event, sizeof(a->event), "%s", event);
	return true;
}

/* The known number of a group, or a new one. */
static __u32 slot_of(struct u64_map *slots, const struct ibs_group_key *key)
{
	__u64 hash = bytes_hash(key, sizeof(*key));
	__u32 slot = u64_map_get(slots, hash);

	if (slot != U64_MAP_NONE)
		return slot;
	slot = slots->n + 1;
	u64_map_put(slots, hash, slot);
	return slot;
}

static int by_slot(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

void snapshot_read_free(struct snapshot_read *r)
{
	snapshot_free(&r->snapshot);
	free(r->names);
	r->names = NULL;
}

const char *snapshot_read_name(const struct snapshot_read *r, __u64 id, enum label l)
{
	for (size_t i = 0; i < r->snapshot.n_groups; i++) {
		if (r->names[i].cgroup_id != id)
			continue;
		return l == LABEL_CONTAINER ? r->names[i].container
		       : l == LABEL_POD	    ? r->names[i].pod
					    : r->names[i].cgroup;
	}
	return NULL;
}

int snapshot_parse(char **text, struct u64_map *slots, struct snapshot_read *out, struct err *err)
{
	struct snapshot *s = &out->snapshot;
	size_t room = 0, names_room = 0;
	bool head = false, end = false;

	memset(out, 0, sizeof(*out));
	/* not NULL, which means that nothing was read */
	array_reserve_zero(out->names, names_room, 1);
	for (char *line; !end && (line = strsep(text, "\n")) && *line;) {
		json_t *j = json_loads(line, 0, NULL);
		bool good = j != NULL;

		if (good && !head) {
			good = head = parse_head(j, &out->about);
		} else if (good && json_is_true(json_object_get(j, "end"))) {
			out->left_out = json_integer_value(json_object_get(j, "left_out"));
			end = true;
		} else if (good) {
			array_reserve_zero(s->groups, room, s->n_groups + 1);
			array_reserve_zero(out->names, names_room, s->n_groups + 1);
			good = parse_group(j, out->about.metric, &s->groups[s->n_groups],
					   &out->names[s->n_groups]);
			s->groups[s->n_groups].slot = slot_of(slots, &s->groups[s->n_groups].key);
			s->n_groups++;
		}
		json_decref(j);
		if (!good)
			break;
	}
	if (!head || !end) {
		snapshot_read_free(out);
		return err_set(err, -EPROTO, "invalid answer: the collector has another version");
	}
	if (s->n_groups)
		qsort(s->groups, s->n_groups, sizeof(*s->groups), by_slot);
	s->by = out->about.by;
	s->pmu.cpus = out->about.cpus;
	s->pmu.enabled_ns = s->pmu.running_ns = out->about.enabled_ns;
	s->time_ns = out->about.enabled_ns / (out->about.cpus ?: 1);
	for (size_t i = 0; i < s->n_groups; i++)
		for (size_t k = 0; k < s->groups[i].n_series; k++)
			s->ledger.seen += s->groups[i].series[k].samples;
	s->ledger.outcome[IBS_OUTCOME_AGGREGATED] = s->ledger.seen;
	return 0;
}
