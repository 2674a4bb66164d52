// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a sample costs without the program: given, measured or assumed. */
#include "serve.h"

#include "sample_cost.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <sched.h>
#include <unistd.h>

/*
 * Of a sample without the program, where it cannot be measured. One figure for all processors, as
 * none was measured on hardware: some 1,600 instructions of interrupt and driver, a dozen of them
 * accesses to MSRs, are 1 to 1.5 us at 3 to 4 GHz; and more is safer than less.
 */
#define NMI_ASSUMED_NS 2000

#define CALIBRATE_S   0.4
#define CALIBRATE_OPS 100000 /* some 40,000 samples a second of a busy CPU */
#define CALIBRATE_NS  50000

/* The plain event: filters would let too few samples through, and what they cost is the same. */
static void plain_attr(const struct sampling *s, struct perf_event_attr *attr)
{
	*attr = s->opts.attr;
	attr->freq = 0;
	attr->sample_period = CALIBRATE_OPS;
	if (attr->type == PERF_TYPE_SOFTWARE) {
		attr->config = PERF_COUNT_SW_CPU_CLOCK;
		attr->sample_period = CALIBRATE_NS;
		return;
	}
	attr->config &= 1ULL << 19; /* cnt_ctl */
	attr->config1 = attr->config2 = 0;
	attr->exclude_user = attr->exclude_kernel = 0;
}

static unsigned int some_cpu(const struct sampling *s)
{
	int here = sched_getcpu();

	for (size_t i = 0; i < s->opts.n_cpus; i++)
		if ((int)s->opts.cpus[i] == here)
			return here;
	return s->opts.cpus[0];
}

/* With a program the kernel does not make an event of the sample, as it does not for ours. */
static int empty_program(void)
{
	static const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "ibs_nothing", "Dual BSD/GPL", insns,
			     sizeof(insns) / sizeof(insns[0]), NULL);
}

static void measure(struct serve *s)
{
	struct serve_governor *g = &s->governor;
	unsigned int cpu = some_cpu(&s->opts.sampling);
	int prog_fd = empty_program();
	struct perf_event_attr attr;
	struct sample_cost cost;
	struct err why = { "" };
	int ret;

	plain_attr(&s->opts.sampling, &attr);
	ret = sample_cost_measure(&attr, prog_fd, cpu, CALIBRATE_S, &cost, &why);
	if (prog_fd >= 0)
		close(prog_fd);
	if (!ret && (cost.ns < SERVE_NMI_MIN_NS || cost.ns > SERVE_NMI_MAX_NS))
		ret = err_set(&why, -ERANGE, "%.0f ns were measured", cost.ns);
	if (ret) {
		g->measured_ns = -1;
		log_info("a sample is assumed to take %d ns without BPF, as it cannot be "
			 "measured: %s",
			 NMI_ASSUMED_NS, why.text);
		return;
	}
	g->measured_ns = cost.ns + cost.spread_ns; /* rather too much than too little */
	log_info("a sample takes %.0f ns (+-%.0f) of cpu %u without BPF, measured", cost.ns,
		 cost.spread_ns, cpu);
}

bool serve_must_calibrate(const struct serve *s)
{
	return !s->opts.nmi_ns && !s->governor.measured_ns &&
	       s->status.nmi_source != IBS_NMI_MEASURED;
}

void serve_calibrate(struct serve *s)
{
	struct serve_governor *g = &s->governor;

	g->nmi_ns = s->opts.nmi_ns;
	g->nmi_source = IBS_NMI_GIVEN;
	if (s->opts.nmi_ns)
		return;
	if (serve_must_calibrate(s))
		measure(s);
	else if (!g->measured_ns) /* by a collector before: measuring delays sampling */
		g->measured_ns = s->status.nmi_ns;
	g->nmi_ns = g->measured_ns > 0 ? g->measured_ns : NMI_ASSUMED_NS;
	g->nmi_source = g->measured_ns > 0 ? IBS_NMI_MEASURED : IBS_NMI_ASSUMED;
}
