/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A PMU as sysfs describes it: type, terms and capabilities. */
#ifndef IBSCOPE_PMU_H
#define IBSCOPE_PMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpu_info;
struct err;
struct pmu;

/* Words of perf_event_attr that terms are stored in; later kernels may have more. */
enum pmu_word { PMU_CONFIG, PMU_CONFIG1, PMU_CONFIG2, PMU_WORD_N };

/* One file of format/: "config1:0-11". */
struct pmu_format {
	char name[32];
	unsigned int word; /* enum pmu_word, or higher: a word unknown to this program */
	uint64_t mask; /* never 0; the term's bits fill it from the lowest up */
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

const char *pmu_name(const struct pmu *p);

/* perf_event_attr.type; dynamic, differs between boots. */
uint32_t pmu_type(const struct pmu *p);

/* kernel.perf_event_max_sample_rate in Hz when the PMU was opened; 0 if it could not be read. */
uint64_t pmu_max_sample_rate(const struct pmu *p);

/* Terms of this kernel, sorted by name; @i below pmu_n_formats(). Valid until pmu_close(). */
size_t pmu_n_formats(const struct pmu *p);
const struct pmu_format *pmu_format_at(const struct pmu *p, size_t i);

/**
 * pmu_format() - find a term
 * @fmt: may be NULL; valid until pmu_close()
 *
 * Return: false if this kernel has no such term. Setting its bits anyway would be ignored
 * silently (config1, config2) or rejected (config).
 */
bool pmu_format(const struct pmu *p, const char *name, const struct pmu_format **fmt);

/* Files of caps/, sorted by name. A kernel before 5.19 has no such directory and no file. */
size_t pmu_n_caps(const struct pmu *p);
const char *pmu_cap_at(const struct pmu *p, size_t i);
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
