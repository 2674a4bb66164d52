/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Inputs of a check, and how it fills its result. */
#ifndef IBSCOPE_DOCTOR_PRIVATE_H
#define IBSCOPE_DOCTOR_PRIVATE_H

#include "doctor.h"
#include "base/err.h"
#include "event/cpu.h"
#include "event/event.h"
#include "machine/kernel.h"

#include <linux/capability.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>

/* Debian 12's linux/capability.h has them, older ones do not. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

/* Results of probes; an errno is negative, 0 is success. */
struct doctor_probes {
	struct kernel_features features;
	bool features_known; /* all of them: programs can be loaded */
	struct rlimit memlock;
	int prog;   /* loading a program of two instructions */
	int reader; /* bpf() on a map without any capability; -255: could not try */
	int cpu;    /* where the events below were opened */
	int open, attach, sim;
	int shared; /* measuring the event's time on the PMU */
	uint64_t enabled_ns, running_ns;
	int core[CORE_EVENT_N]; /* events of core counters */
	/* memory accesses of a loop that are said to have a physical address, and those where it is 0 */
	unsigned long long phys, phys_zero;
};

/* @op: NULL if there is none */
void doctor_probe(struct doctor_probes *p, const struct pmu *op, const struct cpu_info *cpu);

struct doctor {
	const char *root;
	bool probed;
	struct cpu_info cpu;
	struct pmu *op, *fetch;
	struct err op_err, fetch_err;
	uint64_t cap_eff;
	int64_t paranoid;     /* kernel.perf_event_paranoid; -2: unknown */
	bool btf, btf_direct; /* present; sufficient for direct register reads */
	struct err btf_err;
	struct doctor_probes p; /* zero unless probed */
};

struct doctor_check {
	const char *id, *group, *title;
	void (*fn)(struct doctor *d, struct doctor_result *r);
	const char *remedy; /* unless the check has a better one */
};

/* Each table ends with a row without id. */
extern const struct doctor_check doctor_hw_checks[], doctor_kernel_checks[], doctor_tried_checks[];

/* Checks fill a result with these; unprintable bytes become "?". */
void doctor_put(char *buf, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
#define doctor_value(r, status_, ...) \
	((r)->status = (status_), doctor_put((r)->value, sizeof((r)->value), __VA_ARGS__))
#define doctor_more(r, ...)                                                                  \
	doctor_put((r)->value + strlen((r)->value), sizeof((r)->value) - strlen((r)->value), \
		   __VA_ARGS__)
#define doctor_why(r, ...)    doctor_put((r)->why, sizeof((r)->why), __VA_ARGS__)
#define doctor_remedy(r, ...) doctor_put((r)->remedy, sizeof((r)->remedy), __VA_ARGS__)

/* True, with the result filled, if the running kernel was not probed. */
bool doctor_not_tried(const struct doctor *d, struct doctor_result *r);

bool doctor_has_cap(const struct doctor *d, int cap);
/* Debian and Ubuntu added levels above 2, which admit only CAP_SYS_ADMIN (seen on 5.10 to 7.2). */
bool doctor_patched_paranoid(const struct doctor *d);
bool doctor_perfmon(const struct doctor *d);
bool doctor_may_load(const struct doctor *d);
bool doctor_can_raise_memlock(const struct doctor *d);

#endif
