// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Periods that are too short, by what a sample costs and by what an interval shows. */
#include "session_private.h"

#include "base/text.h"
#include "perf/sample_cost.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <string.h>

/*
 * What an interrupt costs, and below which period few samples arrive: measurements of ParCoreLab (TPDS'23,
 * github.com/ParCoreLab/PES-artifact), which got 75 % of the samples at a period of 10,000 ops and
 * hardly any at 1,000. `ibscope doctor --cost` measures the cost of the machine at hand.
 */
#define SAMPLE_NS    2900.0
#define SHORT_PERIOD 20000
#define GOOD_PERIOD  100000

#define SHARE_MAX 0.1  /* of the CPUs' time, or of the samples */
#define REFUSED	  0.25 /* of the time of a busy CPU */
#define BUSY_OPS  3.0  /* ops that a busy CPU retires in a ns, if that cannot be measured */
#define MEASURE_S 0.4
#define LEAST	  100 /* samples that say something about delivery */
#define CPU_EDGES \
	2 /* tags that each CPU may have without a sample when sampling starts and stops */

bool period_is_short(__u64 period)
{
	return period && period < SHORT_PERIOD;
}

/* Did too many samples get lost between their tag and the program? */
static bool delivery_warning(const struct snapshot *interval, __u64 period, char *text, size_t size)
{
	const struct ledger *l = &interval->ledger;
	const __u64 unseen = l->pmu_exact ? l->unseen : 0;
	/* of another user of the PMU, tags are counted, too */
	const bool tags =
		l->undelivered_known && interval->pmu.running_ns >= interval->pmu.enabled_ns;
	const __u64 lost = tags && l->undelivered > unseen ? l->undelivered : unseen;
	const __u64 all = l->seen + lost;

	if (!period_is_short(period) || interval->pmu.throttled || all < LEAST ||
	    lost <= SHARE_MAX * all + CPU_EDGES * interval->pmu.cpus)
		return false;
	snprintf(text, size,
		 "%.*f%% of the samples were never delivered: the period of %s is too short; use "
		 "at least %s (-c)",
		 lost > 0.99 * all ? 2 : 0, 100.0 * lost / all, TEXT_COUNT(period),
		 TEXT_COUNT(GOOD_PERIOD));
	return true;
}

static bool cost_warning(const struct snapshot *interval, __u64 period, char *text, size_t size)
{
	const double time_ns = interval->pmu.running_ns, samples = interval->ledger.seen;
	const double share = time_ns > 0 ? samples * SAMPLE_NS / time_ns : 0;

	if (share <= SHARE_MAX)
		return false;
	snprintf(text, size,
		 "%s samples a second on each CPU cost about %.0f%% of its time, if each takes 2.9 "
		 "us "
		 "(doctor --cost measures it): use ",
		 TEXT_COUNT(llround(samples / time_ns * 1e9)), 100 * fmin(share, 1));
	if (period)
		snprintf(text + strlen(text), size - strlen(text), "a period of at least %s (-c)",
			 TEXT_COUNT((__u64)ceil(period * share / SHARE_MAX / 16) * 16));
	else
		snprintf(text + strlen(text), size - strlen(text), "at most %s Hz (-F)",
			 TEXT_COUNT((__u64)(SHARE_MAX * 1e9 / SAMPLE_NS)));
	return true;
}

/* A loss that nothing would show. */
static bool unknown_warning(const struct snapshot *interval, __u64 period, char *text, size_t size)
{
	if (!period_is_short(period) || interval->ledger.undelivered_known)
		return false;
	snprintf(text, size,
		 "with a period of %s, processors may lose most samples, and the loss cannot be "
		 "measured here: "
		 "use at least %s (-c)",
		 TEXT_COUNT(period), TEXT_COUNT(GOOD_PERIOD));
	return true;
}

/* --- before sampling --- */

int sampling_rate_check(const struct sample_cost *measured, __u64 period, __u64 freq,
			struct err *err)
{
	const bool known = measured && measured->per_ns > 0;
	const double ns = known ? measured->ns : SAMPLE_NS;
	const double per_ns = known ? measured->per_ns : BUSY_OPS;
	const double each_ns = period / per_ns;
	const double share = freq ? freq * ns / 1e9 : ns / (ns + each_ns);
	const char *where =
		known ? "as measured on this machine" : "as published; it cannot be measured here";
	char fits[80];

	if (share <= REFUSED)
		return 0;
	if (freq) {
		snprintf(fits, sizeof(fits), "-F %.0f or less", floor(REFUSED / ns * 1e9));
		return err_set(err, -ERANGE,
			       "-F: %s samples a second take %.0f%% of a CPU's time, at %.0f ns "
			       "each, %s: use %s, or add --any-period to sample nevertheless",
			       TEXT_COUNT(freq), 100 * fmin(share, 1), ns, where, fits);
	}
	snprintf(fits, sizeof(fits), "-c %.0f or more",
		 ceil((1 / REFUSED - 1) * ns * per_ns / 16) * 16);
	return err_set(err, -ERANGE,
		       "-c: with a period of %s, samples take %.0f%% of a busy CPU's time, at %.0f "
		       "ns each, %s, and processors lose samples that come so fast: use %s, or add "
		       "--any-period to sample nevertheless",
		       TEXT_COUNT(period), 100 * share, ns, where, fits);
}

/* Is it worth a measurement? Where filters decide how many samples come, nobody knows before. */
static bool must_check(const struct session *s, const struct session_event *e)
{
	const struct perf_event_attr *attr = &e->opts.attr;

	/* a collector's governor looks after its period */
	if (s->setup->options.any_period || e->info.simulated || e->opts.pins ||
	    e->opts.filter == EVENT_FILTER_HARDWARE)
		return false;
	return attr->freq ? attr->sample_freq * SAMPLE_NS > REFUSED * 1e9
			  : period_is_short(attr->sample_period);
}

/* Prefer the current CPU. */
static unsigned int measured_cpu(const struct setup *s)
{
	const int here = sched_getcpu();

	for (size_t i = 0; i < s->event[0].opts.n_cpus; i++)
		if ((int)s->cpus[i] == here)
			return here;
	return s->cpus[0];
}

int session_check_rate(struct session *s, struct err *err)
{
	for_each_event (e, s) {
		const struct perf_event_attr *attr = &e->opts.attr;
		struct sample_cost cost = {};
		struct err why = { "" };
		int ret;

		if (!must_check(s, e))
			continue;
		ret = sample_cost_floor(attr, measured_cpu(s->setup), MEASURE_S, &cost, &why);
		if (ret)
			log_debug("the cost of a sample cannot be measured: %s", why.text);
		ret = sampling_rate_check(ret ? NULL : &cost, attr->freq ? 0 : attr->sample_period,
					  attr->freq ? attr->sample_freq : 0, err);
		if (ret)
			return usage_error(&s->usage, ret);
	}
	return 0;
}

/* --- what an interval shows --- */

bool sampling_rate_warning(const struct snapshot *interval, __u64 period, bool filtered, char *text,
			   size_t size)
{
	return (!filtered && delivery_warning(interval, period, text, size)) ||
	       cost_warning(interval, period, text, size) ||
	       (!filtered && unknown_warning(interval, period, text, size));
}

bool session_rate_warning(const struct session *s, unsigned int n, const struct snapshot *interval,
			  char *text, size_t size)
{
	const struct session_event *e = &s->setup->event[n];
	struct snapshot of = *interval;

	/* a cgroup's event leaves samples unseen on purpose */
	of.ledger.pmu_exact &= e->plan.unseen;
	return !e->info.simulated &&
	       sampling_rate_warning(&of, e->info.period, e->opts.filter != EVENT_FILTER_NONE, text,
				     size);
}
