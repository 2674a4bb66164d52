// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flight_slow.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/u64_map.h"
#include "machine/machine.h"

#include <stdlib.h>
#include <string.h>

#include <ibscope/op.h>

#define KEY_WORDS (sizeof(struct ibs_group_key) / sizeof(__u64))

/* What of a key a record says. */
#define KNOWN_BY \
	(IBS_BY_CGROUP | IBS_BY_PID | IBS_BY_TID | IBS_BY_CPU | IBS_BY_NODE | IBS_BY_COMPLEX)

struct flight_slow {
	const struct sampler_opts *opts;
	struct topology *topology;
	struct flight_slow_group *group; /* times are of CLOCK_MONOTONIC */
	size_t n, room;
	struct u64_map of; /* by the hash of the key */
};

struct flight_slow *flight_slow_new(const struct session_event *event)
{
	struct flight_slow *s = xcalloc(1, sizeof(*s));

	s->opts = &event->opts;
	if (s->opts->by & (IBS_BY_NODE | IBS_BY_COMPLEX))
		s->topology = topology_open("", IBS_RECORD_CPUS);
	return s;
}

void flight_slow_free(struct flight_slow *s)
{
	if (s->topology)
		topology_close(s->topology);
	free(s->group);
	u64_map_free(&s->of);
	free(s);
}

static struct ibs_group_key key_of(const struct flight_slow *s, const struct ibs_record *r)
{
	const __u32 by = s->opts->by, cpu = ibs_record_cpu(r);
	struct ibs_group_key key = {};

	key.cgroup_id = by & IBS_BY_CGROUP ? r->cgroup_id : 0;
	key.tgid = by & IBS_BY_PID ? r->tgid : 0;
	key.tid = by & IBS_BY_TID ? r->tid : 0;
	key.cpu = by & IBS_BY_CPU ? cpu : 0;
	key.node = by & IBS_BY_NODE ? topology_node(s->topology, cpu) : 0;
	key.complex = by & IBS_BY_COMPLEX ? topology_complex(s->topology, cpu) : 0;
	return key;
}

static struct flight_slow_group *group_of(struct flight_slow *s, const struct ibs_group_key *key)
{
	__u64 words[KEY_WORDS], hash;
	__u32 i;

	memcpy(words, key, sizeof(words));
	hash = words_hash(words, KEY_WORDS);
	u64_map_for_each(i, &s->of, hash)
	{
		if (!memcmp(&s->group[i].key, key, sizeof(*key)))
			return &s->group[i];
	}
	array_reserve_zero(s->group, s->room, s->n + 1);
	u64_map_add(&s->of, hash, s->n);
	s->group[s->n].key = *key;
	return &s->group[s->n++];
}

/* Keep the slowest of each source, and of these the slowest. */
static void keep(struct ibs_exemplar *list, const struct ibs_exemplar *e)
{
	int at = 0;

	while (at < IBS_EXEMPLARS - 1 && list[at].time_ns && list[at].src != e->src)
		at++;
	if (list[at].time_ns && list[at].latency >= e->latency)
		return;
	for (; at && list[at - 1].latency < e->latency; at--)
		list[at] = list[at - 1];
	list[at] = *e;
}

static void add_record(struct flight_slow *s, const struct ibs_record *r)
{
	const struct sampler_opts *o = s->opts;
	__u64 regs[IBS_OP_REG_N] = {};
	struct ibs_exemplar e = { .time_ns = r->time, .cpu = ibs_record_cpu(r) };
	struct ibs_group_key key;

	if (ibs_record_is_fetch(r) || !ibs_op_metric_valid(o->metric, o->ibs.caps, r->data3))
		return;
	ibs_record_regs(r, regs);
	e.latency = ibs_op_metric(o->metric, regs, r->data3);
	e.src = ibs_op_src(o->ibs, regs);
	key = key_of(s, r);
	keep(group_of(s, &key)->sample, &e);
}

void flight_slow_add(struct flight_slow *s, const struct record_batch *batch)
{
	for (size_t i = 0; batch->records && i < batch->n && !(s->opts->by & ~KNOWN_BY); i++)
		add_record(s, &batch->records[i]);
}

static int slowest_first(const void *a, const void *b)
{
	const struct flight_slow_group *x = a, *y = b;
	const __u32 p = x->sample[0].latency, q = y->sample[0].latency;

	return (p < q) - (p > q);
}

void flight_slow_get(struct flight_slow *s, __u64 recording_ns, struct flight_slowest *out)
{
	const __u64 boot_ns = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);

	if (s->n)
		qsort(s->group, s->n, sizeof(*s->group), slowest_first);
	out->n = s->n < FLIGHT_SLOW_GROUPS ? s->n : FLIGHT_SLOW_GROUPS;
	for (size_t i = 0; i < out->n; i++) {
		out->group[i] = s->group[i];
		for (int k = 0; k < IBS_EXEMPLARS; k++) {
			struct ibs_exemplar *e = &out->group[i].sample[k];

			e->recording_ns = e->time_ns ? recording_ns : 0;
			e->time_ns += e->time_ns ? boot_ns : 0;
		}
	}
}

const struct ibs_exemplar *flight_slowest_of(const struct flight_slowest *all,
					     const struct ibs_group_key *key)
{
	for (size_t i = 0; i < all->n; i++)
		if (!memcmp(&all->group[i].key, key, sizeof(*key)))
			return all->group[i].sample;
	return NULL;
}
