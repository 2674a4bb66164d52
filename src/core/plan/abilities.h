/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Filters that can drop samples before the program runs: of this machine, or of a named one. */
#ifndef IBSCOPE_ABILITIES_H
#define IBSCOPE_ABILITIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpu_info;
struct err;
struct pmu;

enum ability {
	ABILITY_L3MISSONLY,
	ABILITY_LDLAT,
	ABILITY_LDLAT_ALONE, /* without the l3missonly that kernels add for erratum 1606 */
	ABILITY_FETCHLAT,
	ABILITY_ADDRESS_BIT, /* user and kernel by bit 63 of the address, in hardware */
	ABILITY_SWFILT,
	ABILITY_CGROUP_EVENTS,	/* events that count only while a cgroup runs */
	ABILITY_TAG_COUNTERS,	/* core counters that count tagged ops */
	ABILITY_FETCH_COUNTERS, /* core counters that count tagged fetches */
	ABILITY_N
};

struct abilities {
	char name[96];	      /* "Zen 5, Linux 6.12" */
	uint32_t caps;	      /* IBS_CAPS_* bits; 0: no IBS */
	uint32_t cpu, kernel; /* 1 << enum ability: supported by the processor, by the kernel */
};

/**
 * abilities_of() - abilities of the running machine
 * @pmu: of the event; NULL: none
 */
void abilities_of(const struct cpu_info *cpu, const struct pmu *pmu, struct abilities *out);

/**
 * abilities_parse() - abilities of another machine, such as "zen5:6.12"
 *
 * Return: 0, or -EINVAL with @err.
 */
int abilities_parse(const char *text, struct abilities *out, struct err *err);

bool abilities_has(const struct abilities *a, enum ability which);

/* "Zen 4" or "Linux 6.15": the requirement of an ability that this machine does not meet. */
void abilities_requires(const struct abilities *a, enum ability which, char *buf, size_t size);

#endif
