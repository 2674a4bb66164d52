// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* ibscope why: what answers about now and about a moment share. */
#include "cmd_why.h"
#include "base/array.h"
#include "base/num.h"
#include "base/screen.h"
#include "base/utf8.h"
#include "cgroup/container.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

bool why_is_file(const char *wanted)
{
	static const char suffix[] = ".data";
	const size_t n = strlen(wanted), m = sizeof(suffix) - 1;
	struct stat st;

	if (n > m && !strcmp(wanted + n - m, suffix))
		return true;
	/* a program in the current directory can have the name of a container */
	return *wanted == '/' && !stat(wanted, &st) && S_ISREG(st.st_mode);
}

bool why_is_wanted(const char *name, const char *wanted)
{
	size_t n = strlen(name), m = strlen(wanted);

	if (m > n || strcmp(name + n - m, wanted))
		return false;
	return m == n || (*name != '/' && name[n - m - 1] == '/');
}

const char *why_stamp(double s, char text[WHY_STAMP])
{
	const time_t t = s;
	struct tm tm;

	strftime(text, WHY_STAMP, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
	return text;
}

void why_put_name(const char *name)
{
	utf8_put(stdout, strcmp(name, "/") != 0 ? name : CONTAINER_NONE);
}

static void format_about(double s, char *buf, size_t size)
{
	num_format_duration(s > 60 ? floor(s / 60) * 60 : floor(fmax(s, 1)), buf, size);
}

void why_format_sampled(double sampled_s, double age_s, char buf[WHY_SAMPLED])
{
	char sampled[32], age[32];

	if (!(sampled_s > 0)) {
		snprintf(buf, WHY_SAMPLED, "an unknown time");
		return;
	}
	format_about(sampled_s, sampled, sizeof(sampled));
	format_about(age_s, age, sizeof(age));
	if (age_s > 1.1 * sampled_s + 60)
		snprintf(buf, WHY_SAMPLED, "%s sampled of %s", sampled, age);
	else
		snprintf(buf, WHY_SAMPLED, "%s sampled", sampled);
}

void why_put_where(const struct diff *d, const struct compare_result *r)
{
	if (!r->n_row_findings || !d->n_by || r->n_rows < 2)
		return;
	printf("Most of it: %s ", label_name(d->by[0]));
	utf8_put(stdout, r->row[0].name[0] ?: "unknown");
	printf(", %+.0f points\n", 100 * r->row[0].change.change / r->side[COMPARE_A].y);
}

void why_put_neighbours(struct neighbours *n, __u32 victim, const struct intern *names,
			const char *more)
{
	struct neighbours_lack lack;
	size_t n_pairs;
	const struct neighbours_pair *p = neighbours_pairs(n, &n_pairs);
	bool any = false;

	for (size_t i = 0; i < n_pairs; i++) {
		if (p[i].victim != victim)
			continue;
		printf("Neighbours: slowed %.0f %% by ", 100 * (p[i].latency / p[i].baseline - 1));
		why_put_name(intern_text(names, p[i].suspect));
		printf(" on complex %u (busy %u times, %u s against %u s)\n", p[i].complex,
		       p[i].runs, p[i].busy, p[i].quiet);
		any = true;
	}
	neighbours_lack(n, &lack);
	if (!any && lack.windows < NEIGHBOURS_KNOWN)
		printf("Neighbours: %u s are too few to judge; use %s\n", lack.windows, more);
	else if (!any)
		printf("Neighbours: nobody on the same L3 is shown to slow it in %u s\n",
		       lack.windows);
}

void why_put_json(const struct screen *s, struct diff *d, const struct compare_result *r,
		  const char *name, const char *a, const char *b, struct why_places *places)
{
	const struct diff_print p = { .screen = s,
				      .format = FORMAT_JSON,
				      .more = places ? why_places_put_json : NULL,
				      .ctx = places };
	char *said[COMPARE_SIDES] = { xasprintf("%s %s", name, a), xasprintf("%s %s", name, b) };

	for (int side = 0; side < COMPARE_SIDES; side++)
		d->about[side].selection = said[side];
	diff_print(stdout, &p, d, r);
	for (int side = 0; side < COMPARE_SIDES; side++)
		free(said[side]);
}

/* What is behind a cause, and what helps. The first that fits; kind: enum compare_kind, -1: both */
static const struct advice {
	const char *cause; /* a part of the name of a source */
	int kind;
	const char *text;
} advice[] = {
	{ "remote-cache", -1,
	  "Its data is in caches of another node: threads that share data belong on one node." },
	{ "remote", -1,
	  "Its data is in memory of another node: tasks and their memory belong on one node "
	  "(cpuset, numactl)." },
	{ "cache", -1, "Its data is in caches of other cores: threads share cache lines." },
	{ "dram", COMPARE_COST,
	  "DRAM answers more slowly when its bandwidth is used up, by this container or by "
	  "others." },
	{ "dram", COMPARE_OFTEN,
	  "Its data fits the caches less: more data, another order of access, or others that use "
	  "the L3." },
	{ "l3", COMPARE_COST, "The L3 answers more slowly when others on the same L3 use it." },
};

int why_too_few(struct err *err, const char *whose, const struct compare_result *r,
		const char *remedy)
{
	const struct compare_side_sum *a = &r->side[COMPARE_A], *b = &r->side[COMPARE_B];
	const bool enough = llround(fmin(a->effective, b->effective)) >= COMPARE_MIN;
	char weighted[64] = "";

	if (enough && a->blocks >= COMPARE_FEW && b->blocks >= COMPARE_FEW)
		return err_prefix(err, "%s", whose), -ENODATA; /* for another reason */
	if (enough)
		return err_set(err, -ENODATA,
			       "%s: the samples to compare are of too few moments: at least %d are "
			       "needed before and now, and there are %u and %u; %s",
			       whose, COMPARE_FEW, a->blocks, b->blocks, remedy);
	if (a->effective < a->valid || b->effective < b->valid)
		snprintf(weighted, sizeof(weighted), ", which say as much as %.0f and %.0f alike",
			 a->effective, b->effective);
	return err_set(err, -ENODATA,
		       "%s: too few samples to compare: at least %d with a latency are needed "
		       "before and now, and there are %llu and %llu%s; %s",
		       whose, COMPARE_MIN, a->valid, b->valid, weighted, remedy);
}

const struct compare_term *why_worst(const struct compare_result *r)
{
	for (size_t i = 0; i < r->n_findings; i++)
		if (r->term[i].change.change > 0)
			return &r->term[i];
	return NULL;
}

void why_put_advice(const struct screen *s, const struct diff *d, const struct compare_result *r)
{
	const struct compare_term *t = why_worst(r);

	if (!t)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(advice); i++)
		if (strstr(compare_cause_name(d->compare, t->cause), advice[i].cause) &&
		    (advice[i].kind < 0 || advice[i].kind == (int)t->kind)) {
			screen_wrap(stdout, advice[i].text, 0, s->width);
			return;
		}
}
