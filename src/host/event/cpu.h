/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processor and the capabilities of its IBS, from CPUID alone. */
#ifndef IBSCOPE_CPU_H
#define IBSCOPE_CPU_H

#include <ibscope/caps.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>

struct cpu_info {
	char vendor[13];     /* CPUID's: "AuthenticAMD" */
	char name[49];	     /* brand string, "" if there is none */
	__u32 family, model; /* with the extended parts: 0x19, 0x11 */
	__u32 stepping;
	bool amd;		  /* AMD or Hygon: the vendors that have IBS */
	bool ibs;		  /* Fn8000_0001 ECX[10] */
	__u32 caps;		  /* IBS_CAPS_*, as Linux interprets them; 0 without IBS */
	__u32 quirks;		  /* IBS_QUIRK_*; 0 unless amd */
	bool hypervisor;	  /* Fn0000_0001 ECX[31]: a virtual machine */
	char hypervisor_name[32]; /* "KVM"; the raw signature of an unknown one; "" on metal */
};

/* Read this machine's processor. Cannot fail; without CPUID all fields are empty. */
void cpu_info_read(struct cpu_info *out);

/* What a leaf of CPUID returns. */
struct cpu_regs {
	__u32 eax, ebx, ecx, edx;
};
typedef struct cpu_regs cpu_leaf(__u32 nr);

/* The same from these leaves. */
void cpu_info_decode(cpu_leaf *leaf, struct cpu_info *out);

/**
 * cpu_info_set() - fill from given values, for tests and recordings of other machines
 * @caps: CPUID Fn8000_001B EAX; 0 means a processor without IBS. A word without IBS_CAPS_AVAIL
 *        becomes IBS_CAPS_DEFAULT, as in Linux.
 */
void cpu_info_set(struct cpu_info *out, const char *vendor, __u32 family, __u32 model, __u32 caps);

/**
 * cpu_generation() - common name: "Zen 4"
 *
 * For display only.
 *
 * Return: a constant, "unknown generation" for models missing from the table.
 */
const char *cpu_generation(const struct cpu_info *cpu);

/* "NAME (GENERATION)", or one of the two if the name has the generation or is not known. Return: @buf */
const char *cpu_text(const struct cpu_info *cpu, char *buf, size_t size);

/* Core performance events: what IBS tagged, and what it could have tagged. */

/*
 * X(NAME, event, unit mask, IBS_CAPS_* bit of the first generation that has it, or 0: Zen 1,
 * "meaning"). From AMD's processor programming references, as in Linux
 * tools/perf/pmu-events/arch/x86. Zen 5 miscounts fetches that interrupted (erratum 1544), Zen 6
 * has no unit mask for discarded ones.
 */
#define CORE_EVENT_TABLE(X)                                                                   \
	X(CYCLES, 0x076, 0x00, 0, "cycles")                                                   \
	X(OPS, 0x0c1, 0x00, 0, "retired ops")                                                 \
	X(TAGGED, 0x1cf, 0x01, 0, "tagged ops")                                               \
	X(RETIRED, 0x1cf, 0x02, 0, "tagged ops that retired")                                 \
	X(FILTERED, 0x1cf, 0x08, IBS_CAPS_DIS, "tagged ops that were filtered")               \
	X(VALID, 0x1cf, 0x10, IBS_CAPS_DIS, "tagged ops that interrupted")                    \
	X(FETCH_TAGGED, 0x188, 0x02, IBS_CAPS_OPLDLAT, "tagged fetches")                      \
	X(FETCH_DISCARDED, 0x188, 0x04, IBS_CAPS_OPLDLAT, "")                                 \
	X(FETCH_LOST, 0x188, 0x0c, IBS_CAPS_OPLDLAT, "")                                      \
	X(FETCH_FILTERED, 0x188, 0x08, IBS_CAPS_OPLDLAT, "tagged fetches that were filtered") \
	X(FETCH_KEPT, 0x188, 0x18, IBS_CAPS_DIS, "")                                          \
	X(FETCH_VALID, 0x188, 0x10, IBS_CAPS_DIS, "tagged fetches that interrupted")

enum core_event {
#define CORE_EVENT_ENUM(NAME, ...) CORE_EVENT_##NAME,
	CORE_EVENT_TABLE(CORE_EVENT_ENUM)
#undef CORE_EVENT_ENUM
		CORE_EVENT_N
};

/* True if the processor has the event. Kernel or hypervisor may still reserve the counters. */
bool core_event_known(const struct cpu_info *cpu, enum core_event e);

/* "": only for sums and differences. */
const char *core_event_meaning(enum core_event e);

/* Attributes for counting in user space and kernel, with times enabled and running for read(2). */
struct perf_event_attr core_event_attr(enum core_event e);

#endif
