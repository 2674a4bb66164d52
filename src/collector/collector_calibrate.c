// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "collector_calibrate.h"

#include "perf/sample_cost.h"

#include <sched.h>

/*
 * For machines where it cannot be measured, and the same for all processors: some 1,600 instructions
 * of interrupt and driver, a dozen of them accesses to MSRs, take 1 to 1.5 us at 3 to 4 GHz. An
 * estimate that is too high is the safer one.
 */
#define NMI_ASSUMED_NS 2000

#define CALIBRATE_S 0.4

/* Preferably the CPU that we run on. */
static unsigned int choose_cpu(const struct sampling *s)
{
	int here = sched_getcpu();

	for (size_t i = 0; i < s->opts.n_cpus; i++)
		if ((int)s->opts.cpus[i] == here)
			return here;
	return s->opts.cpus[0];
}

static void measure(struct collector *c)
{
	struct budget *b = &c->budget;
	unsigned int cpu = choose_cpu(&c->set.sampling);
	struct sample_cost cost;
	struct err why = { "" };

	if (sample_cost_floor(&c->set.sampling.opts.attr, cpu, CALIBRATE_S, &cost, &why)) {
		b->measured_ns = -1;
		log_info("the cost of a sample without BPF cannot be measured (%s); assuming %d ns",
			 why.text, NMI_ASSUMED_NS);
		return;
	}
	b->measured_ns = cost.ns + cost.spread_ns; /* the upper end, to be safe */
	log_info("measured %.0f ns (+-%.0f) per sample without BPF, on CPU %u", cost.ns,
		 cost.spread_ns, cpu);
}

bool collector_must_calibrate(const struct collector *c)
{
	return !c->set.nmi_ns && !c->budget.measured_ns && c->status.nmi_source != IBS_NMI_MEASURED;
}

void collector_calibrate(struct collector *c)
{
	struct budget *b = &c->budget;

	b->nmi_ns = c->set.nmi_ns;
	b->nmi_source = IBS_NMI_GIVEN;
	if (c->set.nmi_ns)
		return;
	if (collector_must_calibrate(c))
		measure(c);
	else if (!b->measured_ns) /* an earlier collector has measured it */
		b->measured_ns = c->status.nmi_ns;
	b->nmi_ns = b->measured_ns > 0 ? b->measured_ns : NMI_ASSUMED_NS;
	b->nmi_source = b->measured_ns > 0 ? IBS_NMI_MEASURED : IBS_NMI_ASSUMED;
}
