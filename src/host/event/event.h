/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * perf's event syntax for IBS, "ibs_op/cnt_ctl=1,ldlat=256/u", and the matching perf_event_attr of
 * this machine. Rejects whatever the kernel would silently ignore, round or emulate.
 */
#ifndef IBSCOPE_EVENT_H
#define IBSCOPE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cpu_info;
struct err;
struct perf_event_attr;
struct pmu;

/* The description of a PMU in sysfs: type, terms and capabilities. */

/* Words of perf_event_attr that terms are stored in; later kernels may have more. */
enum pmu_word { PMU_CONFIG, PMU_CONFIG1, PMU_CONFIG2, PMU_WORD_N };

/* One file of format/: "config1:0-11". */
struct pmu_format {
	char name[32];
	unsigned int word; /* enum pmu_word, or higher: a word unknown to this program */
	uint64_t mask;	   /* never 0; the term's bits fill it from the lowest up */
};

/* Far more than any driver has (6 on Linux 7.2). */
#define PMU_FORMATS_MAX 64
#define PMU_CAPS_MAX	32

struct pmu {
	char name[32];
	uint32_t type; /* perf_event_attr.type; dynamic, differs between boots */
	uint64_t
		max_sample_rate; /* kernel.perf_event_max_sample_rate in Hz when opened; 0: unknown */
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

/* Counts ops rather than cycles: the kernel randomises only that mode. */
#define EVENT_DEFAULT "ibs_op/cnt_ctl=1/"

/*
 * Used if neither a period nor a frequency is given: 16 times the prime 62501. At 4 to 8 G ops/s a
 * busy core gives 4,000 to 8,000 samples a second, far from the kernel's limit of 100,000. A
 * multiple of 16 because the hardware drops the low 4 bits; times a prime because a loop whose
 * length divides the period would always be sampled at the same op. Below 0xffff0, so every IBS,
 * even without IBS_CAPS_OPCNTEXT, counts it without software help.
 */
#define EVENT_DEFAULT_PERIOD 1000016u

#define EVENT_TERMS_MAX 16
#define EVENT_TEXT_MAX	1024 /* event_print() of any spec fits, NUL included */

/* How often to sample: as terms of an event, or as options of the command line. */
struct event_rate {
	bool has_period, has_freq;
	uint64_t period; /* ops, cycles or fetches between samples */
	uint64_t freq;	 /* Hz, each CPU */
};

struct event_term {
	char name[32];
	uint64_t value;
	unsigned int column; /* of its name in the text, from 1 */
};

/* A plain value; owns nothing. */
struct event_spec {
	char text[104]; /* as given, may be cut: columns in messages refer to it */
	char pmu[16];
	unsigned int n_terms;
	struct event_term terms[EVENT_TERMS_MAX]; /* except period and freq */
	struct event_rate rate;
	unsigned int rate_column; /* of period= or freq= */
	bool user, kernel;	  /* modifiers; none or both: everything */
};

/**
 * event_parse() - read one event
 * @text: PMU[/TERM[=VALUE],.../][[:]MODIFIERS] with PMU ibs_op or ibs_fetch; a term without value
 *        is 1; values as in num_parse(); MODIFIERS is u, k or both
 *
 * The terms depend on the machine: event_attr() checks them.
 *
 * Return: 0, or with @e set: -EINVAL syntax, -ERANGE a value of more than 64 bits, -E2BIG more
 * than EVENT_TERMS_MAX terms, -ENODEV a PMU that is not IBS.
 */
int event_parse(const char *text, struct event_spec *out, struct err *e);

/**
 * event_print() - print the canonical text, which event_parse() reads as the same spec
 *
 * Terms in the order given, values in decimal, period or freq last.
 *
 * Return: length without the NUL; @size or more if the text was cut.
 */
size_t event_print(const struct event_spec *spec, char *buf, size_t size);

/* Whether it is an event of ibs_fetch; otherwise it is one of ibs_op. */
bool event_of_fetch(const struct event_spec *spec);

/* Value of a term, 0 if it is absent. */
uint64_t event_term(const struct event_spec *spec, const char *name);

/* Filters that drop samples of an event before a program sees them. */
enum event_filter {
	EVENT_FILTER_NONE,
	EVENT_FILTER_DRIVER,   /* after the PMU has counted them */
	EVENT_FILTER_HARDWARE, /* so that a sample counts for more than a period */
};

enum event_filter event_filter(const struct event_spec *spec);

/* Set a term that is absent or 0. Return: false if there is no room. */
bool event_set_term(struct event_spec *spec, const char *name, uint64_t value);

/**
 * event_rate_choose() - choose the sampling rate of the event or of the command line
 * @cli: of the command line; NULL or empty if not given
 * @out: points into @spec or @cli; empty if neither has a rate: EVENT_DEFAULT_PERIOD
 *
 * Unlike perf, which silently ignores the command line if the event has a rate.
 *
 * Return: 0; or -EINVAL with @e: more than one is given.
 */
int event_rate_choose(const struct event_spec *spec, const struct event_rate *cli,
		      const struct event_rate **out, struct err *e);

/**
 * event_rate_check() - check whether a processor supports this rate, like event_attr()
 * @cpu: only its caps are used
 * @cli: as of event_rate_choose()
 *
 * Return: 0; or -EINVAL or -ERANGE with @e.
 */
int event_rate_check(const struct event_spec *spec, const struct cpu_info *cpu,
		     const struct event_rate *cli, struct err *e);

/**
 * event_attr() - make the perf_event_attr of an event
 * @pmu:  of spec->pmu
 * @cpu:  together with @pmu's format files, decides which terms work
 * @rate: as of event_rate_choose()
 * @out:  overwritten: disabled, PERF_SAMPLE_RAW only (it has the registers, and the BPF program's
 *        context has the IP), times enabled and running for read(2). The caller adds other sample
 *        types.
 *
 * Stricter than perf, because kernels differ in what they accept (Linux ibs.c, 5.10 to 7.2): a
 * fixed period is a multiple of 16, at least 0x90 (ibs_op) or 0x10 (ibs_fetch), and at most
 * 0x7fffff0 (ibs_op with IBS_CAPS_OPCNTEXT) or 0xffff0.
 *
 * Return: 0, or with @e set: -EINVAL unknown term or rejected combination, -ERANGE a value,
 * -EOPNOTSUPP a term or modifier that this processor or this kernel does not have.
 */
int event_attr(const struct event_spec *spec, const struct pmu *pmu, const struct cpu_info *cpu,
	       const struct event_rate *rate, struct perf_event_attr *out, struct err *e);

/**
 * event_notice() - a caveat of an event that event_attr() accepts
 *
 * Return: one line, or NULL.
 */
const char *event_notice(const struct event_spec *spec, const struct cpu_info *cpu);

/* Names of options for messages: short on command lines, long for `ibscope ctl set`. */
#define EVENT_PERIOD_OPTION "-c (period)"
#define EVENT_FREQ_OPTION   "-F (freq)"

/**
 * event_period_bounds() - the fixed periods that the hardware supports
 *
 * @min and @max are inclusive multiples of 16.
 */
void event_period_bounds(const char *pmu, const struct cpu_info *cpu, uint64_t *min, uint64_t *max);

/* A filter, with the processors and kernels that introduced it. */
struct event_rule {
	const char *pmu, *term;
	uint32_t caps;	   /* IBS_CAPS_* bit it needs; 0: none */
	uint64_t min, max; /* 0 is off; max 0: as wide as the field */
	const char *unit;
	const char *since;	/* first kernel */
	const char *generation; /* first processor */
	const char *instead;	/* alternative; NULL: none */
};

extern const struct event_rule event_rules[]; /* ends with a row without pmu */

#endif
