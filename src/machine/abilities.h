/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What can drop samples before the program runs: on this machine, or on a named processor and kernel. */
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
	ABILITY_FETCH_COUNTERS, /* the same of tagged fetches */
	ABILITY_N
};

struct abilities {
	char name[96];	      /* "Zen 5, Linux 6.12" */
	uint32_t caps;	      /* IBS_CAPS_* bits; 0: no IBS */
	uint32_t cpu, kernel; /* 1 << enum ability, each as far as it depends on them */
};

/**
 * abilities_of() - the running machine
 * @pmu: of the event; NULL: there is none
 */
void abilities_of(const struct cpu_info *cpu, const struct pmu *pmu, struct abilities *out);

/**
 * abilities_parse() - another machine, as "zen5:6.12"
 *
 * Return: 0, or -EINVAL with @err.
 */
int abilities_parse(const char *text, struct abilities *out, struct err *err);

bool abilities_has(const struct abilities *a, enum ability which);

/* "Zen 4" or "Linux 6.15": what an ability requires that this machine is not. */
void abilities_requires(const struct abilities *a, enum ability which, char *buf, size_t size);

#endif
