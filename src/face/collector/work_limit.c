// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "work_limit.h"

#include <math.h>

#define PART_OF_BUDGET 0.25
#define RATE_MIN       0.02 /* CPUs */

/* A call that exceeds its limit puts this kind of work on hold, but not forever. */
#define DEBT_MAX_S 1.0

/*
 * True for work that anybody can cause. Requests to the control socket are not limited: those who
 * may write to it may stop sampling anyway.
 */
static bool work_is_limited(enum ibs_work kind)
{
	return kind == IBS_WORK_CGROUPS || kind == IBS_WORK_WEB || kind == IBS_WORK_USERS ||
	       kind == IBS_WORK_NEIGHBOURS;
}

void work_limit_set_budget(struct work_limit *w, double budget, unsigned int cpus)
{
	double rate = fmax(PART_OF_BUDGET * budget * cpus, RATE_MIN);

	if (!w->rate)
		for (int i = 0; i < IBS_WORK_N; i++)
			w->part[i].credit_s = WORK_BURST_S;
	w->rate = rate;
}

static void refill(struct work_limit *w, double now_s)
{
	double passed = fmax(now_s - w->refilled_s, 0);

	w->refilled_s = now_s;
	for (int i = 0; i < IBS_WORK_N; i++) {
		struct work_part *p = &w->part[i];

		if (p->credit_s < 0)
			p->delayed_ns += fmin(passed, -p->credit_s / w->rate) * 1e9;
		p->credit_s = fmin(p->credit_s + passed * w->rate, WORK_BURST_S);
	}
}

void work_limit_charge(struct work_limit *w, enum ibs_work kind, __u64 ns, double now_s)
{
	struct work_part *p = &w->part[kind];

	p->ns += ns;
	if (!w->rate || !work_is_limited(kind))
		return;
	refill(w, now_s);
	p->credit_s = fmax(p->credit_s - ns / 1e9, -DEBT_MAX_S);
}

double work_limit_wait(struct work_limit *w, enum ibs_work kind, double now_s)
{
	if (!w->rate || !work_is_limited(kind))
		return 0;
	refill(w, now_s);
	return fmax(-w->part[kind].credit_s / w->rate, 0);
}
