/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a check knows of the machine, and how it fills its result. */
#ifndef IBSCOPE_DOCTOR_CHECK_H
#define IBSCOPE_DOCTOR_CHECK_H

#include "base/err.h"
#include "doctor_probe.h"
#include "doctor_result.h"
#include "machine/cpu.h"
#include "machine/pmu.h"

#include <linux/capability.h>

/* Debian 12's linux/capability.h has them, older ones do not. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif
#ifndef CAP_BPF
#define CAP_BPF 39
#endif

#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

struct doctor {
	const char *root;
	bool probed;
	struct cpu_info cpu;
	struct pmu *op, *fetch;
	struct err op_err, fetch_err;
	uint64_t cap_eff;
	int64_t paranoid;     /* kernel.perf_event_paranoid; -2: unknown */
	bool btf, btf_direct; /* present; with all that direct register reads need */
	struct err btf_err;
	struct doctor_probes p; /* zero unless probed */
	size_t n;
	struct doctor_result *results;
};

struct doctor_check {
	const char *id, *group, *title;
	void (*fn)(struct doctor *d, struct doctor_result *r);
	const char *remedy; /* unless the check has a better one */
};

/* Each table ends with a row without id. */
extern const struct doctor_check doctor_hw_checks[], doctor_kernel_checks[], doctor_tried_checks[];

/* Checks fill a result with these; unprintable bytes become "?". */
void doctor_value(struct doctor_result *r, enum doctor_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void doctor_more(struct doctor_result *r, const char *fmt, ...) /* append to the value */
	__attribute__((format(printf, 2, 3)));
void doctor_why(struct doctor_result *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Replace the remedy of the table. */
void doctor_remedy(struct doctor_result *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* True, with the result filled, if the running kernel was not probed. */
bool doctor_not_tried(const struct doctor *d, struct doctor_result *r);

bool doctor_has_cap(const struct doctor *d, int cap);
/* Debian and Ubuntu added levels above 2, which admit only CAP_SYS_ADMIN (seen on 5.10 to 7.2). */
bool doctor_patched_paranoid(const struct doctor *d);
bool doctor_perfmon(const struct doctor *d);
bool doctor_may_load(const struct doctor *d);
bool doctor_can_raise_memlock(const struct doctor *d);

#endif
