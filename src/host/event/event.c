// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "event.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "cpu.h"
#include "base/err.h"
#include "base/num.h"
#include "base/text.h"

/*
 * Linux arch/x86/events/amd/ibs.c: the *_attrs and their is_visible functions, perf_ibs_init
 * (ranges). ldlat and fetchlat have a granularity of 128.
 */
const struct event_rule event_rules[] = {
	{ "ibs_op", "cnt_ctl", IBS_CAPS_OPCNT, 0, 0, NULL, "3.2", "10h", "cnt_ctl=0 (cycles)" },
	{ "ibs_op", "l3missonly", IBS_CAPS_ZEN4, 0, 0, NULL, "5.19", "Zen 4",
	  "--src dram,remote-dram,near-cache,remote-cache, which filters in BPF" },
	{ "ibs_op", "ldlat", IBS_CAPS_OPLDLAT, 128, 2048, "cycles", "6.15", "Zen 5",
	  "--min-lat, which filters in BPF" },
	{ "ibs_op", "strmst", IBS_CAPS_STRMST_RMTSOCKET, 0, 0, NULL, "7.1", "Zen 6", NULL },
	{ "ibs_op", "swfilt", 0, 0, 0, NULL, "6.14", NULL,
	  "--user or --kernel, which filter in BPF" },
	{ "ibs_fetch", "rand_en", 0, 0, 0, NULL, "3.2", NULL, NULL },
	{ "ibs_fetch", "l3missonly", IBS_CAPS_ZEN4, 0, 0, NULL, "5.19", "Zen 4", NULL },
	{ "ibs_fetch", "fetchlat", IBS_CAPS_FETCHLAT, 128, 1920, "cycles", "7.1", "Zen 6", NULL },
	{ "ibs_fetch", "swfilt", 0, 0, 0, NULL, "6.14", NULL,
	  "--user or --kernel, which filter in BPF" },
	{},
};

static const struct event_rule *find_rule(const char *pmu, const char *term)
{
	for (const struct event_rule *r = event_rules; r->pmu; r++)
		if (!strcmp(r->pmu, pmu) && !strcmp(r->term, term))
			return r;
	return NULL;
}

/* --- text to spec --- */

#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."

static size_t word_len(const char *s)
{
	return strspn(s, WORD);
}

static int add_term(struct event_spec *spec, const struct event_term *t, struct err *e)
{
	struct event_rate *r = &spec->rate;
	bool period = !strcmp(t->name, "period");
	unsigned int i;

	if (period || !strcmp(t->name, "freq")) {
		if (r->has_period || r->has_freq)
			return err_set(e, -EINVAL,
				       "column %u: '%s' conflicts with an earlier period or freq; "
				       "give one",
				       t->column, t->name);
		*(period ? &r->period : &r->freq) = t->value;
		*(period ? &r->has_period : &r->has_freq) = true;
		spec->rate_column = t->column;
		return 0;
	}
	for (i = 0; i < spec->n_terms; i++) {
		if (!strcmp(spec->terms[i].name, t->name))
			return err_set(e, -EINVAL,
				       "column %u: duplicate term '%s', first at column %u",
				       t->column, t->name, spec->terms[i].column);
	}
	if (spec->n_terms == EVENT_TERMS_MAX)
		return err_set(e, -E2BIG, "column %u: more than %d terms", t->column,
			       EVENT_TERMS_MAX);
	spec->terms[spec->n_terms++] = *t;
	return 0;
}

/* One NAME[=VALUE]; *s moves past it. */
static int parse_term(const char *text, const char **s, struct event_spec *spec, struct err *e)
{
	struct event_term t = { .value = 1, .column = *s - text + 1 };
	struct num_arg arg = { .name = t.name, .max = UINT64_MAX };
	char value[48];
	size_t n;
	int err;

	n = word_len(*s);
	if (!n)
		return err_set(e, -EINVAL, "column %u: expected a term such as cnt_ctl=1",
			       t.column);
	if (n >= sizeof(t.name))
		return err_set(e, -EINVAL, "column %u: term longer than %zu characters", t.column,
			       sizeof(t.name) - 1);
	memcpy(t.name, *s, n);
	*s += n;
	if (**s == '=') {
		++*s;
		n = word_len(*s);
		if (!n || n >= sizeof(value))
			return err_set(e, -EINVAL, "column %td: '%s=' needs a number, as in %s=1",
				       *s - text + 1, t.name, t.name);
		memcpy(value, *s, n);
		value[n] = 0;
		err = num_parse(&arg, value, &t.value, e);
		if (err) {
			err_prefix(e, "column %td", *s - text + 1);
			return err;
		}
		*s += n;
	}
	return add_term(spec, &t, e);
}

static int parse_modifiers(const char *text, const char *s, struct event_spec *spec, struct err *e)
{
	const char *colon = *s == ':' ? s++ : NULL;

	if (colon && !*s)
		return err_set(
			e, -EINVAL,
			"column %td: missing modifier after ':': must be u (user) or k (kernel)",
			colon - text + 1);
	for (; *s; s++) {
		if (*s == 'u')
			spec->user = true;
		else if (*s == 'k')
			spec->kernel = true;
		else if (*s == 'p' || *s == 'P')
			return err_set(e, -EINVAL,
				       "column %td: invalid modifier '%c': IBS is always precise; "
				       "remove it",
				       s - text + 1, *s);
		else
			return err_set(e, -EINVAL,
				       "column %td: invalid modifier '%.20s': must be u (user) or "
				       "k (kernel); "
				       "only one event is supported",
				       s - text + 1, s);
	}
	if (spec->user && spec->kernel)
		spec->user = spec->kernel = false;
	return 0;
}

static int parse(const char *text, struct event_spec *spec, struct err *e)
{
	const char *s = text + word_len(text);
	int err;

	if ((size_t)(s - text) < sizeof(spec->pmu))
		memcpy(spec->pmu, text, s - text);
	if (strcmp(spec->pmu, "ibs_op") && strcmp(spec->pmu, "ibs_fetch"))
		return err_set(
			e, -ENODEV,
			"column 1: unknown event '%.*s': must be ibs_op/.../ or ibs_fetch/.../",
			s - text > 40 ? 40 : (int)(s - text), text);
	if (*s != '/')
		return parse_modifiers(text, s, spec, e);
	if (*++s != '/') {
		for (;; s++) {
			err = parse_term(text, &s, spec, e);
			if (err)
				return err;
			if (*s != ',')
				break;
		}
	}
	if (!*s)
		return err_set(e, -EINVAL, "column %td: missing closing /", s - text + 1);
	if (*s != '/')
		return err_set(e, -EINVAL, "column %td: expected ',' or '/' before '%.20s'",
			       s - text + 1, s);
	s++;
	return parse_modifiers(text, s, spec, e);
}

int event_parse(const char *text, struct event_spec *out, struct err *e)
{
	struct event_spec spec = { 0 };
	int err;

	snprintf(spec.text, sizeof(spec.text), "%s", text);
	err = parse(text, &spec, e);
	if (err)
		err_prefix(e, "event '%.100s'", text);
	else
		*out = spec;
	return err;
}

size_t event_print(const struct event_spec *spec, char *buf, size_t size)
{
	const char *sep = "";
	unsigned int i;
	size_t n;

	n = text_at(buf, size, 0, "%s/", spec->pmu);
	for (i = 0; i < spec->n_terms; i++, sep = ",")
		n = text_at(buf, size, n, "%s%s=%" PRIu64, sep, spec->terms[i].name,
			    spec->terms[i].value);
	if (spec->rate.has_period)
		n = text_at(buf, size, n, "%speriod=%" PRIu64, sep, spec->rate.period);
	if (spec->rate.has_freq)
		n = text_at(buf, size, n, "%sfreq=%" PRIu64, sep, spec->rate.freq);
	return text_at(buf, size, n, "/%s%s", spec->user ? "u" : "", spec->kernel ? "k" : "");
}

bool event_of_fetch(const struct event_spec *spec)
{
	return !strcmp(spec->pmu, "ibs_fetch");
}

uint64_t event_term(const struct event_spec *spec, const char *name)
{
	for (unsigned int i = 0; i < spec->n_terms; i++)
		if (!strcmp(spec->terms[i].name, name))
			return spec->terms[i].value;
	return 0;
}

enum event_filter event_filter(const struct event_spec *spec)
{
	static const char *const filters[] = { "l3missonly", "ldlat", "strmst", "fetchlat" };
	const bool mode = spec->user || spec->kernel;

	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		if (event_term(spec, filters[i]))
			return EVENT_FILTER_HARDWARE;
	if (!mode)
		return EVENT_FILTER_NONE;
	return event_term(spec, "swfilt") ? EVENT_FILTER_DRIVER : EVENT_FILTER_HARDWARE;
}

bool event_set_term(struct event_spec *spec, const char *name, uint64_t value)
{
	for (unsigned int i = 0; i < spec->n_terms; i++) {
		if (!strcmp(spec->terms[i].name, name)) {
			spec->terms[i].value = value;
			return true;
		}
	}
	if (spec->n_terms == EVENT_TERMS_MAX)
		return false;
	spec->terms[spec->n_terms] = (struct event_term){ .value = value };
	snprintf(spec->terms[spec->n_terms++].name, sizeof(spec->terms[0].name), "%s", name);
	return true;
}

/* --- spec to attr --- */

/* The supported terms, then the others, for the message about an unknown term. */
static void list_terms(const struct pmu *pmu, char *buf, size_t size)
{
	const char *sep = " (not here: ", *end = "";
	size_t n = 0;

	for (size_t i = 0; i < pmu->n_formats; i++)
		n = text_at(buf, size, n, "%s, ", pmu->formats[i].name);
	n = text_at(buf, size, n, "period, freq");
	for (const struct event_rule *r = event_rules; r->pmu; r++) {
		if (strcmp(r->pmu, pmu->name) || pmu_format(pmu, r->term))
			continue;
		n = text_at(buf, size, n, "%s%s", sep, r->term);
		sep = ", ";
		end = ")";
	}
	text_at(buf, size, n, "%s", end);
}

/* Explain why a known term is not supported here. Return: 0 if it is. */
static int check_rule(const struct event_rule *rule, const struct pmu *pmu,
		      const struct cpu_info *cpu, struct err *e)
{
	const char *remedy = rule->instead ? "; use " : "; remove it";
	const char *instead = rule->instead ? rule->instead : "";

	if (rule->caps && !(cpu->caps & rule->caps))
		return err_set(
			e, -EOPNOTSUPP,
			"%s: not supported by this processor (family %xh model %xh, %s): CPUID "
			"Fn8000_001B EAX[%d] is 0; requires %s%s%s",
			rule->term, cpu->family, cpu->model, cpu_generation(cpu),
			__builtin_ctz(rule->caps), rule->generation, remedy, instead);
	if (!pmu_format(pmu, rule->term))
		return err_set(e, -EOPNOTSUPP,
			       "%s: %snot supported by this kernel: its %s PMU does not have the "
			       "term; requires "
			       "Linux %s%s%s",
			       rule->term, rule->caps ? "supported by the processor, but " : "",
			       rule->pmu, rule->since, remedy, instead);
	return 0;
}

static int put_term(const struct event_term *t, const struct pmu *pmu, const struct cpu_info *cpu,
		    uint64_t *words, struct err *e)
{
	const struct event_rule *rule = find_rule(pmu->name, t->name);
	const struct pmu_format *fmt;
	char known[400];
	uint64_t max;
	int err;

	if (rule) {
		err = check_rule(rule, pmu, cpu, e);
		if (err)
			return err;
	}
	fmt = pmu_format(pmu, t->name);
	if (!fmt) {
		list_terms(pmu, known, sizeof(known));
		return err_set(e, -EINVAL, "unknown term '%s' of %s: must be one of %s", t->name,
			       pmu->name, known);
	}
	if (fmt->word >= PMU_WORD_N)
		return err_set(
			e, -EOPNOTSUPP,
			"%s: the kernel stores it in config%u of perf_event_attr, which is unknown "
			"to this ibscope; remove it or use a newer ibscope",
			t->name, fmt->word);
	max = rule && rule->max ? rule->max : pmu_format_max(fmt);
	if (t->value > max || (rule && t->value && t->value < rule->min))
		return err_set(e, -ERANGE,
			       "%s=%" PRIu64 " is out of range: must be %s%" PRIu64 " to %" PRIu64
			       "%s%s",
			       t->name, t->value, rule && rule->min ? "0 (off) or " : "",
			       rule ? rule->min : 0, max, rule && rule->unit ? " " : "",
			       rule && rule->unit ? rule->unit : "");
	return pmu_format_put(fmt, t->value, &words[fmt->word]);
}

/*
 * Before 6.14 the driver cannot exclude user or kernel samples. Later kernels do so in software
 * with swfilt, and from 7.1 on by IBS_CAPS_BIT63_FILTER. No sysfs file shows the latter, but the
 * same version added fetchlat and strmst, which processors with the filter also have.
 */
static int check_modifier(const struct event_spec *spec, const struct pmu *pmu,
			  const struct cpu_info *cpu, struct err *e)
{
	const char *m = spec->user ? "u" : "k", *opt = spec->user ? "--user" : "--kernel";

	if (event_term(spec, "swfilt"))
		return 0;
	if ((cpu->caps & IBS_CAPS_BIT63_FILTER) &&
	    (pmu_has_cap(pmu, "strmst") || pmu_has_cap(pmu, "rmtsocket") ||
	     pmu_has_cap(pmu, "fetchlat")))
		return 0;
	if (pmu_format(pmu, "swfilt"))
		return err_set(
			e, -EOPNOTSUPP,
			"modifier '%s': not supported in hardware by this processor or kernel; "
			"add the term swfilt=1, or use %s, which filters in BPF",
			m, opt);
	return err_set(
		e, -EOPNOTSUPP,
		"modifier '%s': not supported by this kernel (swfilt requires Linux 6.14); use %s, "
		"which filters in BPF",
		m, opt);
}

void event_period_bounds(const char *pmu, const struct cpu_info *cpu, uint64_t *min, uint64_t *max)
{
	bool op = !strcmp(pmu, "ibs_op");

	*min = op ? 0x90 : 0x10;
	*max = op && (cpu->caps & IBS_CAPS_OPCNTEXT) ? 0x7fffff0 : 0xffff0;
}

static int check_period(const char *pmu, const struct cpu_info *cpu, uint64_t period, struct err *e)
{
	uint64_t min, max, below = period & ~UINT64_C(15);

	event_period_bounds(pmu, cpu, &min, &max);
	if (!period)
		return err_set(e, -ERANGE,
			       "invalid period 0: must be a multiple of 16 from %" PRIu64
			       " to %" PRIu64,
			       min, max);
	if (period < min)
		return err_set(e, -ERANGE,
			       "period %" PRIu64
			       " is too short for %s: must be a multiple of 16 from %" PRIu64
			       " to %" PRIu64,
			       period, pmu, min, max);
	if (period > max)
		return err_set(e, -ERANGE,
			       "period %" PRIu64
			       " is more than %s of this processor can count without extra "
			       "interrupts: must be a multiple of 16 from %" PRIu64 " to %" PRIu64,
			       period, pmu, min, max);
	if (period != below)
		return err_set(e, -EINVAL,
			       "period %" PRIu64
			       " is not a multiple of 16 and would be rounded down silently; "
			       "give %" PRIu64 " or %" PRIu64,
			       period, below, below + 16 <= max ? below + 16 : max);
	return 0;
}

/* @limit: the kernel's; 0: unknown */
static int check_freq(uint64_t limit, uint64_t freq, struct err *e)
{
	if (!freq)
		return err_set(e, -ERANGE, "invalid frequency 0: must be 1 Hz or more");
	if (limit && freq > limit)
		return err_set(e, -ERANGE,
			       "frequency %" PRIu64
			       " Hz is above the kernel's limit: must be 1 to %" PRIu64
			       " Hz, or raise sysctl kernel.perf_event_max_sample_rate",
			       freq, limit);
	return 0;
}

int event_rate_choose(const struct event_spec *spec, const struct event_rate *cli,
		      const struct event_rate **out, struct err *e)
{
	bool of_event = spec->rate.has_period || spec->rate.has_freq;
	bool of_cli = cli && (cli->has_period || cli->has_freq);

	if (of_cli && cli->has_period && cli->has_freq)
		return err_set(e, -EINVAL, "-c and -F are mutually exclusive");
	if (of_cli && of_event)
		return err_set(e, -EINVAL, "the event has %s, which conflicts with %s; give one",
			       spec->rate.has_period ? "period=" : "freq=",
			       cli->has_period ? "a period (-c)" : "a frequency (-F)");
	*out = of_cli ? cli : &spec->rate;
	return 0;
}

static int set_rate(const struct event_spec *spec, uint64_t max_freq, const struct cpu_info *cpu,
		    const struct event_rate *cli, struct perf_event_attr *attr, struct err *e)
{
	const struct event_rate *r;
	int err = event_rate_choose(spec, cli, &r, e);

	if (err)
		return err;
	if (r->has_freq) {
		attr->freq = 1;
		attr->sample_freq = r->freq;
		err = check_freq(max_freq, r->freq, e);
	} else {
		attr->sample_period = r->has_period ? r->period : EVENT_DEFAULT_PERIOD;
		err = check_period(spec->pmu, cpu, attr->sample_period, e);
	}
	if (err && r != &spec->rate)
		err_prefix(e, r->has_freq ? EVENT_FREQ_OPTION : EVENT_PERIOD_OPTION);
	else if (err && spec->rate_column)
		err_prefix(e, "column %u", spec->rate_column);
	return err;
}

int event_rate_check(const struct event_spec *spec, const struct cpu_info *cpu,
		     const struct event_rate *cli, struct err *e)
{
	struct perf_event_attr unused = { 0 };

	return set_rate(spec, 0, cpu, cli, &unused, e);
}

static int fill(const struct event_spec *spec, const struct pmu *pmu, const struct cpu_info *cpu,
		const struct event_rate *rate, struct perf_event_attr *attr, struct err *e)
{
	uint64_t words[PMU_WORD_N] = { 0 };
	unsigned int i;
	int err;

	if (strcmp(spec->pmu, pmu->name))
		return err_set(e, -EINVAL, "requires PMU %s, not %s", spec->pmu, pmu->name);
	for (i = 0; i < spec->n_terms; i++) {
		err = put_term(&spec->terms[i], pmu, cpu, words, e);
		if (err) {
			err_prefix(e, "column %u", spec->terms[i].column);
			return err;
		}
	}
	attr->config = words[PMU_CONFIG];
	attr->config1 = words[PMU_CONFIG1];
	attr->config2 = words[PMU_CONFIG2];
	if (spec->user || spec->kernel) {
		err = check_modifier(spec, pmu, cpu, e);
		if (err)
			return err;
		attr->exclude_kernel = spec->user;
		attr->exclude_user = spec->kernel;
	}
	return set_rate(spec, pmu->max_sample_rate, cpu, rate, attr, e);
}

int event_attr(const struct event_spec *spec, const struct pmu *pmu, const struct cpu_info *cpu,
	       const struct event_rate *rate, struct perf_event_attr *out, struct err *e)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = pmu->type,
		.sample_type = PERF_SAMPLE_RAW,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
		.disabled = 1, /* no samples before a program is attached */
	};
	int err;

	err = fill(spec, pmu, cpu, rate, &attr, e);
	if (err)
		err_prefix(e, "event '%s'", spec->text);
	else
		*out = attr;
	return err;
}

const char *event_notice(const struct event_spec *spec, const struct cpu_info *cpu)
{
	if (!strcmp(spec->pmu, "ibs_op") && event_term(spec, "ldlat") &&
	    !event_term(spec, "l3missonly") &&
	    (cpu->quirks & (IBS_QUIRK_LDLAT_1606_A | IBS_QUIRK_LDLAT_1606_B)))
		return "ldlat on this processor (erratum 1606): the kernel also sets l3missonly, "
		       "so "
		       "only loads that miss the L3 are sampled; --min-lat filters in BPF without "
		       "that";
	return NULL;
}
