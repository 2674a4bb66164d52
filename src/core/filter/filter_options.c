// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "filter_options.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/std.h"

static const char *const option_names[] = {
#define OPTION_NAME(NAME, option, outcome) option,
	FILTER_OPTION_TABLE(OPTION_NAME)
#undef OPTION_NAME
};

static const enum ibs_outcome outcomes[] = {
#define OPTION_OUTCOME(NAME, option, outcome) IBS_OUTCOME_##outcome,
	FILTER_OPTION_TABLE(OPTION_OUTCOME)
#undef OPTION_OUTCOME
};
_Static_assert((int)FILTER_OPTION_N <= FILTER_PARTS, "every option is a part");

/* An argument being parsed. */
struct arg {
	enum filter_option option;
	const char *text, *s;
	struct err *e;
};

static int fail(const struct arg *a, int code, const char *at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int fail(const struct arg *a, int code, const char *at, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(a->e, code, "%s: column %td: %s", option_names[a->option], at - a->text + 1,
		       text);
}

/* --- lists of names --- */

#define NAMES_MAX 3

/* The expression of each set of names: bit i is name i. A set's complement must be listed, too. */
static const struct {
	const char *names[NAMES_MAX];
	const char *exprs[1 << NAMES_MAX];
} name_lists[FILTER_OPTION_N] = {
	/* by flags rather than by mem_dtlb, which would have to be derived from them */
	[FILTER_OPTION_TLB] = { { "l1", "l2", "walk" },
				{ [1] = "!l1tlb_miss",
				  [2] = "!l2tlb_miss",
				  [3] = "!l1tlb_miss || !l2tlb_miss",
				  [4] = "l2tlb_miss",
				  [5] = "!l1tlb_miss || l2tlb_miss",
				  [6] = "l1tlb_miss",
				  [7] = "l1tlb_miss <= 1" } },
	[FILTER_OPTION_PAGE_SIZE] = { { "4k", "2m", "1g" },
				      { [1] = "page_size == 4k",
					[2] = "page_size == 2m",
					[3] = "page_size != 1g",
					[4] = "page_size == 1g",
					[5] = "page_size != 2m",
					[6] = "page_size != 4k",
					[7] = "page_size >= 4k" } },
	[FILTER_OPTION_RMT_NODE] = { { "yes", "no" },
				     { [1] = "rmt_node",
				       [2] = "!rmt_node",
				       [3] = "rmt_node <= 1" } },
};

static __u32 all_names(enum filter_option o)
{
	__u32 bits = 0;

	for (int i = 0; i < NAMES_MAX && name_lists[o].names[i]; i++)
		bits |= 1U << i;
	return bits;
}

static int take_name(struct arg *a, __u32 *bits)
{
	const char *const *names = name_lists[a->option].names;
	size_t len = strcspn(a->s, ",");
	char known[64] = "";

	for (int i = 0; i < NAMES_MAX && names[i]; i++) {
		if (strlen(names[i]) == len && !strncasecmp(names[i], a->s, len)) {
			*bits |= 1U << i;
			a->s += len;
			return 0;
		}
		strcat(strcat(known, i ? ", " : ""), names[i]);
	}
	return fail(a, -EINVAL, a->s, "'%.*s' must be one of %s", len > 40 ? 40 : (int)len, a->s,
		    known);
}

static int add_names(struct filter_options *opts, struct arg *a, bool but)
{
	__u32 bits = opts->names[a->option];
	int ret;

	do
		ret = take_name(a, &bits);
	while (!ret && *a->s++ == ',');
	if (ret)
		return ret;
	if (but && bits == all_names(a->option))
		return fail(a, -EINVAL, a->text, "'%s' excludes everything", a->text);
	opts->names[a->option] = bits;
	return 0;
}

/* --- ranges of addresses --- */

static int take_hex(struct arg *a, uint64_t *value)
{
	const char *at = a->s;
	size_t len, zeros;

	if (at[0] == '0' && (at[1] | 32) == 'x')
		at += 2;
	len = strspn(at, "0123456789abcdefABCDEF");
	zeros = strspn(at, "0");
	if (!len)
		return fail(a, -EINVAL, a->s, "expected a hexadecimal number%s%.20s%s",
			    *a->s ? " before '" : ", but the list ends here", a->s,
			    *a->s ? "'" : "");
	if (len > zeros + 16)
		return fail(a, -ERANGE, a->s, "'%.*s' has more than 64 bits",
			    len > 40 ? 40 : (int)len, at);
	*value = strtoull(at, NULL, 16);
	a->s = at + len;
	return 0;
}

/* Adds the number of tests it needs to @tests. */
static int range(struct arg *a, FILE *out, const char *term, unsigned int *tests)
{
	const char *at = a->s;
	uint64_t lo, hi, length;
	int ret = take_hex(a, &lo);

	if (ret)
		return ret;
	if (*a->s == '-') {
		a->s++;
		ret = take_hex(a, &hi);
		if (ret)
			return ret;
		if (hi <= lo)
			return fail(a, -EINVAL, at, "the range is empty: it ends before %#" PRIx64,
				    hi);
	} else if (*a->s == '+') {
		a->s++;
		ret = take_hex(a, &length);
		if (ret)
			return ret;
		hi = lo + length; /* 0: to the end of the address space */
		if (!length)
			return fail(a, -EINVAL, at, "the range is empty: its length is 0");
		if (hi && hi < lo)
			return fail(a, -ERANGE, at, "the range exceeds 64 bits");
	} else {
		fprintf(out, "%s == %#" PRIx64, term, lo);
		*tests += 1;
		return 0;
	}
	if (hi && lo)
		fprintf(out, "(%s >= %#" PRIx64 " && %s < %#" PRIx64 ")", term, lo, term, hi);
	else
		fprintf(out, "%s %s %#" PRIx64, term, hi ? "<" : ">=", hi ? hi : lo);
	*tests += hi && lo ? 2 : 1;
	return 0;
}

static int ranges(struct arg *a, FILE *out, const char *term)
{
	unsigned int tests = 0;
	const char *sep = "";
	int ret;

	do {
		const char *at = a->s;

		fputs(sep, out);
		sep = " || ";
		ret = range(a, out, term, &tests);
		if (!ret && tests > IBS_FILTER_TERMS)
			ret = fail(a, -E2BIG, at,
				   "the list needs more than the %d tests that run in the "
				   "kernel, two per range",
				   IBS_FILTER_TERMS);
		if (!ret && *a->s && *a->s != ',')
			ret = fail(a, -EINVAL, a->s,
				   "expected ',' before '%.20s'; ranges are LO-HI or LO+LENGTH, "
				   "in hexadecimal",
				   a->s);
	} while (!ret && *a->s++ == ',');
	return ret;
}

static int add_ranges(struct filter_options *opts, struct arg *a, bool but, const char *term)
{
	char **old = &opts->text[a->option], *text = NULL;
	size_t size;
	FILE *out = xmemopen(&text, &size);
	int ret;

	if (*old)
		fprintf(out, "%s %s ", *old, but ? "&&" : "||");
	if (but)
		fputs("!(", out);
	ret = ranges(a, out, term);
	if (but)
		fputc(')', out);
	if (fclose(out))
		out_of_memory();
	if (ret) {
		free(text);
		return ret;
	}
	free(*old);
	*old = text;
	return 0;
}

/* --- what was given --- */

int filter_options_add(struct filter_options *opts, enum filter_option o, const char *arg,
		       struct err *e)
{
	bool but = *arg == '!';
	struct arg a = { .option = o, .text = arg, .s = arg + but, .e = e };
	int ret;

	if (o == FILTER_OPTION_EXPR) {
		free(opts->text[o]);
		opts->text[o] = xstrdup(arg);
		return 0;
	}
	if ((opts->text[o] || opts->names[o]) && but != opts->but[o])
		return err_set(
			e, -EINVAL,
			"%s: either list what to keep or, with '!', what to exclude, not both",
			option_names[o]);
	if (o == FILTER_OPTION_ADDR)
		ret = add_ranges(opts, &a, but, "addr");
	else if (o == FILTER_OPTION_IP)
		ret = add_ranges(opts, &a, but, "ip");
	else
		ret = add_names(opts, &a, but);
	if (!ret)
		opts->but[o] = but;
	return ret;
}

/* The expression of the refill latency range, in @buf. */
static int latency_text(const struct filter_options *opts, char *buf, size_t size,
			const char **text, struct err *e)
{
	__u32 min = opts->min_tlb_lat, max = opts->max_tlb_lat;

	if (max && min > max)
		return err_set(e, -EINVAL, "--min-tlb-lat %u is above --max-tlb-lat %u", min, max);
	if (!min && !max)
		return 0;
	if (min && max)
		snprintf(buf, size, "tlb_refill_lat >= %u && tlb_refill_lat <= %u", min, max);
	else
		snprintf(buf, size, "tlb_refill_lat %s %u", min ? ">=" : "<=", min ? min : max);
	*text = buf;
	return 0;
}

int filter_options_compile(const struct filter_options *opts, struct filter *out, struct err *e)
{
	struct filter_part parts[FILTER_OPTION_N];
	char latency[80];
	size_t n = 0;

	memset(out, 0, sizeof(*out));
	for (int o = 0; o < FILTER_OPTION_N; o++) {
		__u32 names = opts->but[o] ? ~opts->names[o] & all_names(o) : opts->names[o];
		const char *text = opts->text[o];
		int ret = 0;

		if (names)
			text = name_lists[o].exprs[names];
		if (o == FILTER_OPTION_MODE && opts->user != opts->kernel)
			text = opts->user ? "user" : "kernel";
		if (o == FILTER_OPTION_TLB_LAT)
			ret = latency_text(opts, latency, sizeof(latency), &text, e);
		if (ret)
			return ret;
		if (text)
			parts[n++] = (struct filter_part){ .option = option_names[o],
							   .text = text,
							   .fetch = opts->fetch,
							   .outcome = outcomes[o] };
	}
	return n ? filter_compile(parts, n, out, e) : 0;
}

void filter_options_free(struct filter_options *opts)
{
	for (int o = 0; o < FILTER_OPTION_N; o++)
		free(opts->text[o]);
	memset(opts, 0, sizeof(*opts));
}
