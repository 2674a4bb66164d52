// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a selection drops that the verdict on sharing needs. */
#include "lines.h"

#include "rows/rows.h"
#include "event/event.h"

#include <ctype.h>

#define SRC(name) (1u << IBS_SRC_##name)
#define OP(name)  (1u << IBS_OP_KIND_##name)

#define STORE_SOURCES (SRC(UNKNOWN) | SRC(L1) | SRC(L2))
#define CACHES	      (SRC(L3) | SRC(NEAR_CACHE) | SRC(REMOTE_CACHE))
#define CACHES_COARSE (SRC(LOCAL_CACHE) | SRC(REMOTE_CACHE)) /* before Zen 4 */
#define OPS	      (OP(LOAD) | OP(STORE) | OP(LOCKED))

static bool all_of(__u32 mask, __u32 bits)
{
	return (mask & bits) == bits;
}

/* Terms of --filter that are as true of a store as of a load of the same data. */
static bool is_harmless(const char *term)
{
	static const char *const terms[] = { "ip",	 "rip",	      "kernel",	   "user",
					     "addr",	 "dc_lin_ad", "phys_addr", "dc_phys_ad",
					     "pid",	 "tid",	      "uid",	   "gid",
					     "cpu",	 "cgroup",    "container", "page_size",
					     "data_pgsz" };

	for (size_t i = 0; i < ARRAY_SIZE(terms); i++)
		if (!strcasecmp(term, terms[i]))
			return true;
	return false;
}

/* A term stands at the start and behind "(", "!", ",", "&&" and "||". */
static bool harmful_term(const char *expr, char *term, size_t size)
{
	bool expected = true;

	while (*expr) {
		size_t n = 0;

		while (expected && n + 1 < size &&
		       (isalnum((unsigned char)expr[n]) || expr[n] == '_')) {
			term[n] = expr[n];
			n++;
		}
		term[n] = 0;
		if (n && !is_harmless(term))
			return true;
		if (!n &&
		    (strchr("(!,", *expr) || !strncmp(expr, "&&", 2) || !strncmp(expr, "||", 2)))
			expected = expr[1] != '='; /* not "!=" */
		else if (n || !strchr(" '\"&|", *expr))
			expected = false;
		expr += n ?: 1;
	}
	return false;
}

bool lines_hidden(const struct lines_selection *sel, struct err *err)
{
	char term[64];

	if (sel->min_lat || sel->max_lat)
		err_set(err, 0, "--%s-lat drops all stores, which have no latency",
			sel->min_lat ? "min" : "max");
	else if (sel->op_mask && !all_of(sel->op_mask, OPS))
		err_set(err, 0, "--op must include load, store and locked");
	else if (sel->src_mask && !all_of(sel->src_mask, STORE_SOURCES))
		err_set(err, 0, "--src without l1, l2 and unknown drops stores");
	else if (sel->src_mask && !all_of(sel->src_mask, CACHES) &&
		 !all_of(sel->src_mask, CACHES_COARSE))
		err_set(err, 0,
			"--src without l3, near-cache and remote-cache drops hits in other "
			"caches");
	else if (sel->filter && harmful_term(sel->filter, term, sizeof(term)))
		err_set(err, 0, "--filter with '%s' may drop stores or hits in caches", term);
	else
		return false;
	return true;
}

/* What follows an option in the text of a selection. Return: false if it is not there. */
static bool option(const char *text, const char *name, char *out, size_t size)
{
	size_t len = strlen(name);
	const char *at = text;

	while ((at = strstr(at, name))) {
		if ((at == text || at[-1] == ' ') && (at[len] == ' ' || at[len] == '=')) {
			snprintf(out, size, "%s", at + len + 1);
			return true;
		}
		at += len;
	}
	return false;
}

static __u32 mask_of(const char *text, const char *name, const char *(*value)(unsigned int),
		     unsigned int n)
{
	char list[1024], *rest = list, *word;
	__u32 mask = 0;

	if (!option(text, name, list, sizeof(list)))
		return 0;
	list[strcspn(list, " ")] = 0;
	while ((word = strsep(&rest, ",")))
		for (unsigned int i = 0; i < n; i++)
			if (!strcmp(word, value(i)))
				mask |= 1u << i;
	return mask;
}

static bool hidden_by_event(const struct trace_pmu *p, struct err *err)
{
	struct event_spec spec = { 0 };
	struct err ignored;
	__u64 ldlat, l3;

	/* perf.data has numbers, and maybe a name of the user's own; recordings have the text */
	if (event_parse(p->name, &spec, &ignored))
		memset(&spec, 0, sizeof(spec));
	ldlat = (p->config1 & 0xfff) | event_term(&spec, "ldlat");
	l3 = (p->config >> 16 & 1) | event_term(&spec, "l3missonly");
	if (ldlat)
		err_set(err, 0, "ldlat drops all stores, and fast hits in caches");
	else if (l3)
		err_set(err, 0, "l3missonly drops hits in caches of the same complex");
	else if ((p->config1 >> 12 & 1) || event_term(&spec, "strmst"))
		err_set(err, 0, "strmst drops everything but streaming stores");
	else
		return false;
	return true;
}

bool lines_hidden_in(const struct trace_info *info, struct err *err)
{
	bool perf = info->format && !strcmp(info->format, "perf.data");
	const char *text = perf ? info->command : info->filter;
	unsigned int ops = 0, hidden = 0;
	struct lines_selection sel = { 0 };
	char value[1024], lat[1024];

	/* an event that drops nothing makes up for the others */
	for (unsigned int i = 0; i < info->n_pmus; i++) {
		ops += info->pmu[i].op;
		hidden += info->pmu[i].op && hidden_by_event(&info->pmu[i], err);
	}
	if (ops && hidden == ops)
		return true;
	if (option(text, "--filter", value, sizeof(value)))
		sel.filter = value;
	if (!perf) {
		sel.src_mask = mask_of(text, "--src", src_name, IBS_SRC_N);
		sel.op_mask = mask_of(text, "--op", op_kind_name, IBS_OP_KIND_N);
		sel.min_lat = option(text, "--min-lat", lat, sizeof(lat));
		sel.max_lat = option(text, "--max-lat", lat, sizeof(lat));
	}
	return lines_hidden(&sel, err);
}
