/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The processor and the capabilities of its IBS, from CPUID alone. */
#ifndef IBSCOPE_CPU_H
#define IBSCOPE_CPU_H

#include <ibscope/caps.h>

struct cpu_info {
	char vendor[13];	 /* CPUID's: "AuthenticAMD" */
	char name[49];		 /* brand string, "" if there is none */
	__u32 family, model;	 /* with the extended parts: 0x19, 0x11 */
	__u32 stepping;
	bool amd;		 /* AMD or Hygon: the vendors that have IBS */
	bool ibs;		 /* Fn8000_0001 ECX[10] */
	__u32 caps;		 /* IBS_CAPS_*, as Linux interprets them; 0 without IBS */
	__u32 quirks;		 /* IBS_QUIRK_*; 0 unless amd */
	bool hypervisor;	 /* Fn0000_0001 ECX[31]: a virtual machine */
	char hypervisor_name[32]; /* "KVM"; the raw signature of an unknown one; "" on metal */
};

/* Read this machine's processor. Cannot fail; without CPUID all fields are empty. */
void cpu_info_read(struct cpu_info *out);

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

#endif
