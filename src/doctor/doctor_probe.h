/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the doctor probes on the running kernel. */
#ifndef IBSCOPE_DOCTOR_PROBE_H
#define IBSCOPE_DOCTOR_PROBE_H

#include "machine/kernel_features.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

struct cpu_info;
struct pmu;

/* What the kernel answered; an errno is negative, 0 is success. */
struct doctor_probes {
	struct kernel_features features;
	bool features_known; /* all of them: programs can be loaded */
	struct rlimit memlock;
	int prog;    /* loading a program of two instructions */
	int reader;  /* bpf() on a map without any capability; -255: could not try */
	int cpu;     /* where the events below were opened */
	int open, attach, sim;
	int shared; /* measuring the time that the event was on the hardware */
	uint64_t enabled_ns, running_ns;
};

/* @op: NULL if there is none */
void doctor_probe(struct doctor_probes *p, const struct pmu *op, const struct cpu_info *cpu);

#endif
