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

int why_name_check(const char *wanted, struct err *err)
{
	static const char suffix[] = ".data";
	const size_t n = wanted ? strlen(wanted) : 0, m = sizeof(suffix) - 1;
	struct stat st;

	/* a program in the current directory can have the name of a container */
	if (!n || (*wanted != '/' && (n <= m || strcmp(wanted + n - m, suffix) != 0)))
		return 0;
	if (stat(wanted, &st) || !S_ISREG(st.st_mode))
		return 0;
	return err_set(err, -EINVAL,
		       "'%s' is a file: `ibscope report --by container,comm,symbol,src %s` says "
		       "what a recording waits for, and `ibscope diff BEFORE %s` what it waits "
		       "for more",
		       wanted, wanted, wanted);
}

bool why_is_wanted(const char *name, const char *wanted)
{
	size_t n = strlen(name), m = strlen(wanted);

	if (m > n || strcmp(name + n - m, wanted))
		return false;
	return m == n || (*name != '/' && name[n - m - 1] == '/');
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

void why_put_json(const struct screen *s, struct diff *d, const struct compare_result *r,
		  const char *name, const char *a, const char *b)
{
	const struct diff_print p = { .screen = s, .format = FORMAT_JSON };
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

void why_put_advice(const struct screen *s, const struct diff *d, const struct compare_result *r)
{
	const struct compare_term *t = r->term;

	if (!r->n_findings || t->change.change < 0)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(advice); i++)
		if (strstr(compare_cause_name(d->compare, t->cause), advice[i].cause) &&
		    (advice[i].kind < 0 || advice[i].kind == (int)t->kind)) {
			screen_wrap(stdout, advice[i].text, 0, s->width);
			return;
		}
}
