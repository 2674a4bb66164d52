// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "doctor_verify.h"

#include "base/clock.h"
#include "loops.h"
#include "verify.h"
#include "event/cpu.h"
#include "l3_latency.h"
#include "perf/perf.h"
#include "session/session.h"

#include <math.h>
#include <unistd.h>

#define TICK_S	    0.5
#define MIN_SAMPLES 100 /* for a mean, or an estimate */

struct counters {
	struct perf_events *tagged; /* also those that interrupted, if the CPU counts them */
	struct perf_events *l3[L3_SOURCE_N];
	struct err no_tagged, no_l3;
	bool valid;
};

static void open_counters(struct counters *c, const struct session *s)
{
	const struct session_event *e = session_event(s, 0);
	const struct cpu_info *info = session_cpu(s);
	const struct perf_event_attr tagged = core_event_attr(CORE_EVENT_TAGGED);
	struct perf_event_attr valid = core_event_attr(CORE_EVENT_VALID);
	unsigned int cpus[CPULIST_MAX];
	struct l3_latency l3;
	size_t n = 0;
	int cpu;

	c->valid = core_event_known(info, CORE_EVENT_VALID);
	valid.disabled = 0; /* it follows its group leader */
	if (!core_event_known(info, CORE_EVENT_TAGGED))
		err_set(&c->no_tagged, 0,
			"this processor has no known event that counts tagged ops");
	else if (perf_events_open(&tagged, e->opts.cpus, e->opts.n_cpus, -1,
				  "a counter of tagged ops", c->valid ? &valid : NULL, &c->tagged,
				  &c->no_tagged))
		c->tagged = NULL;
	if (l3_latency_describe("", info, &l3, &c->no_l3))
		return;
	cpulist_for_each (cpu, &l3.cpus)
		cpus[n++] = cpu;
	for (int i = 0; i < L3_SOURCE_N; i++)
		if (perf_events_open(&l3.of[i].sum, cpus, n, -1, "amd_l3//", &l3.of[i].requests,
				     &c->l3[i], &c->no_l3))
			c->l3[i] = NULL;
}

static void read_tagged(struct verify *v, struct counters *c, const struct snapshot *got)
{
	const char *why = NULL, *of_valid = NULL;
	const __u64 seen = got->ledger.seen;
	struct perf_events_total t = {};

	if (c->tagged)
		perf_events_read(c->tagged, &t);
	if (!c->tagged)
		why = c->no_tagged.text;
	else if (got->pmu.throttled)
		why = "the kernel throttled sampling";
	else if (!got->ledger.pmu_exact)
		why = "another profiler used ibs_op";
	else if (t.enabled_ns != t.running_ns || !got->pmu.tags_known)
		why = "other events used the core counters part of the time";
	of_valid = why ?: c->valid ? NULL : "the processor does not count these (Zen 6 does)";
	for (int i = 0; why && i < VERIFY_L3; i++)
		verify_unknown(v, i, why);
	if (of_valid)
		verify_unknown(v, VERIFY_VALID, of_valid);
	else
		verify_set(v, VERIFY_VALID, seen, t.second);
	if (why)
		return;
	verify_set(v, VERIFY_RETIRED, seen, got->pmu.tagged);
	verify_set(v, VERIFY_TAGGED, seen, t.counted);
	if (seen < MIN_SAMPLES)
		verify_unknown(v, VERIFY_OPS, "too few samples: the machine is idle");
	else /* ops were counted only while all CPUs sampled */
		verify_set(v, VERIFY_OPS,
			   (double)seen * v->period * got->pmu.tag_n / (got->pmu.tagged ?: 1),
			   got->pmu.tag_ops);
}

_Static_assert(VERIFY_N - VERIFY_L3 == (int)L3_SOURCE_N, "a figure for each source");

static void read_l3(struct verify *v, struct counters *c, const struct snapshot *got, int source)
{
	static const __u32 sources[] = {
#define L3_SOURCE_OF(NAME, mask, of) of,
		L3_SOURCE_TABLE(L3_SOURCE_OF)
#undef L3_SOURCE_OF
	};
	const enum verify_figure figure = VERIFY_L3 + source;
	struct perf_events_total t = {};
	__u64 sum = 0, n = 0;

	for (size_t g = 0; g < got->n_groups; g++)
		for (size_t i = 0; i < got->groups[g].n_series; i++) {
			const struct series *s = &got->groups[g].series[i];

			if (!(sources[source] & 1U << s->src))
				continue;
			sum += s->sum;
			n += s->valid;
		}
	if (c->l3[source])
		perf_events_read(c->l3[source], &t);
	if (!c->l3[source])
		verify_unknown(v, figure, c->no_l3.text);
	else if (n < MIN_SAMPLES)
		verify_unknown(v, figure, "too few samples of such misses");
	else
		verify_set(v, figure, (double)sum / n,
			   t.second ? (double)t.counted * L3_LATENCY_UNIT / t.second : 0);
}

/* Counters are enabled first and disabled last, so they miss no tag. */
static int sample(struct session *s, struct counters *c, double seconds, struct snapshot *got,
		  struct err *err)
{
	struct perf_events *all[1 + L3_SOURCE_N] = { c->tagged };
	struct err ignored;
	double end, left;
	int ret;

	memcpy(&all[1], c->l3, sizeof(c->l3));
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i])
			perf_events_enable(all[i], &ignored);
	ret = session_start(s, err);
	end = now_s() + seconds;
	for (; !ret && (left = end - now_s()) > 0; session_tick(s))
		usleep(fmin(left, TICK_S) * 1e6);
	session_stop(s);
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i])
			perf_events_disable(all[i]);
	return ret ?: sampler_snapshot(session_event(s, 0)->sampler, got, err);
}

static bool all_agree(const struct verify *v, const struct loops *l)
{
	return (verify_compared(v) || (l && loops_compared(l))) &&
	       (!verify_compared(v) || verify_agrees(v)) &&
	       (!l || !loops_compared(l) || loops_agree(l));
}

/* @l: NULL if no loops were run */
static int show(const struct verify *v, const struct loops *l, bool json, struct err *err)
{
	if (json)
		return verify_print_json(v, l, stdout, err);
	verify_print(v, stdout);
	if (l) {
		putchar('\n');
		loops_print(l, stdout);
	}
	return 0;
}

int doctor_verify(double seconds, bool loops, bool json, bool *agree, struct err *err)
{
	struct sampling_opts o;
	struct session *s = session_new();
	struct counters c = {};
	struct snapshot got = {};
	struct verify v = { .seconds = seconds };
	struct loops l = {};
	int ret;

	sampling_init(&o);
	o.source = SOURCE_IBS;
	o.labels = 1U << LABEL_SRC;
	o.core_counters = true;
	ret = sampling_check(&o, err) ?: session_open(s, &o, err);
	if (!ret) {
		open_counters(&c, s);
		ret = sample(s, &c, seconds, &got, err);
	}
	if (!ret) {
		v.event = session_event(s, 0)->text;
		v.period = session_event(s, 0)->info.period;
		v.cpus = got.pmu.cpus;
		read_tagged(&v, &c, &got);
		for (int i = 0; i < L3_SOURCE_N; i++)
			read_l3(&v, &c, &got, i);
	}
	ret = ret ?: loops ? loops_run(&l, err) : 0;
	if (!ret) {
		*agree = all_agree(&v, loops ? &l : NULL);
		ret = show(&v, loops ? &l : NULL, json, err);
	}
	snapshot_free(&got);
	perf_events_close(c.tagged);
	for (int i = 0; i < L3_SOURCE_N; i++)
		perf_events_close(c.l3[i]);
	session_free(s);
	sampling_free(&o);
	return ret;
}
