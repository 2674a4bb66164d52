/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The description of a PMU in sysfs: type, terms and capabilities. */
#ifndef IBSCOPE_PMU_H
#define IBSCOPE_PMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpu_info;
struct err;

/* Words of perf_event_attr that terms are stored in; later kernels may have more. */
enum pmu_word { PMU_CONFIG, PMU_CONFIG1, PMU_CONFIG2, PMU_WORD_N };

/* One file of format/: "config1:0-11". */
struct pmu_format {
	char name[32];
	unsigned int word; /* enum pmu_word, or higher: a word unknown to this program */
	uint64_t mask; /* never 0; the term's bits fill it from the lowest up */
};

/* Far more than any driver has (6 on Linux 7.2). */
#define PMU_FORMATS_MAX 64
#define PMU_CAPS_MAX	32

struct pmu {
	char name[32];
	uint32_t type; /* perf_event_attr.type; dynamic, differs between boots */
	uint64_t max_sample_rate; /* kernel.perf_event_max_sample_rate in Hz when opened; 0: unknown */
	size_t n_formats, n_caps;
	struct pmu_format formats[PMU_FORMATS_MAX]; /* terms of this kernel, sorted by name */
	char caps[PMU_CAPS_MAX][32]; /* files of caps/, sorted by name; none before 5.19 */
};

/**
 * pmu_open() - read a PMU's description
 * @root: prefix of the file system, "" for the real one
 * @name: "ibs_op" or "ibs_fetch"
 * @cpu:  for the error message if there is no such PMU
 * @out:  closed with pmu_close()
 *
 * Return: 0, or with @e set: -ENODEV there is no such PMU, with the cause in the text;
 * -ENOENT no event_source bus, so sysfs is not mounted; -EINVAL a file there is malformed;
 * else what reading failed with.
 */
int pmu_open(const char *root, const char *name, const struct cpu_info *cpu, struct pmu **out,
	     struct err *e);
void pmu_close(struct pmu *p); /* accepts NULL */

/* Why there is no IBS PMU, and the remedy: constants, half a sentence each. */
void pmu_why_missing(const struct cpu_info *cpu, const char **why, const char **remedy);

/*
 * A term; NULL if this kernel does not have it. Setting its bits anyway would be ignored silently
 * (config1, config2) or rejected (config).
 */
const struct pmu_format *pmu_format(const struct pmu *p, const char *name);

bool pmu_has_cap(const struct pmu *p, const char *name);

/**
 * pmu_format_put() - place a value into the bits of a term
 * @word: the attr's word, updated
 *
 * Return: 0, or -ERANGE if @value has more bits than the term; @word is then unchanged.
 */
int pmu_format_put(const struct pmu_format *fmt, uint64_t value, uint64_t *word);

/* The largest value the term has bits for. */
uint64_t pmu_format_max(const struct pmu_format *fmt);

#endif
