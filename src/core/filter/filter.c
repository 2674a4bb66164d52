// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "filter.h"
#include "filter_private.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/choice.h"
#include "base/num.h"

#define WORD_MAX 64

struct parser {
	const char *text, *s;
	struct filter *f;
	struct filter_node nodes[2 * FILTER_COMPARISONS];
	unsigned int n_nodes, n_tests, depth;
	bool fetch; /* the event */
	struct err *e;
};

/* --- errors --- */

static int fail(struct parser *p, int code, const char *at, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int fail(struct parser *p, int code, const char *at, const char *fmt, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(p->e, code, "column %td: %s", at - p->text + 1, text);
}

/* Report what was expected, with a short piece of the text that follows. */
static int fail_expected(struct parser *p, const char *what)
{
	if (!*p->s)
		return fail(p, -EINVAL, p->s, "expected %s, but the filter ends here", what);
	return fail(p, -EINVAL, p->s, "expected %s before '%.20s'", what, p->s);
}

/* --- words --- */

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

static bool word_char(char c)
{
	return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
	       c == '-' || c == '.';
}

static void skip_blanks(struct parser *p)
{
	while (*p->s == ' ' || *p->s == '\t' || *p->s == '\n')
		p->s++;
}

static bool take(struct parser *p, const char *token)
{
	size_t n = strlen(token);

	skip_blanks(p);
	if (strncmp(p->s, token, n))
		return false;
	p->s += n;
	return true;
}

/* Return: length of the word; 0 if there is none, or if it is longer than any name. */
static size_t take_word(struct parser *p, char word[WORD_MAX])
{
	size_t n = 0;

	skip_blanks(p);
	while (word_char(p->s[n]))
		n++;
	if (n >= WORD_MAX)
		return 0;
	memcpy(word, p->s, n);
	word[n] = 0;
	p->s += n;
	return n;
}

static char folded(char c)
{
	return c == '-' ? '_' : lower(c);
}

/* Compare with the @n characters of @name. */
static bool same_name(const char *word, const char *name, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (folded(word[i]) != folded(name[i]))
			return false;
	return !word[n];
}

static bool in_list(const char *word, const char *list)
{
	while (*list) {
		size_t n = strcspn(list, ",");

		if (same_name(word, list, n))
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

/* --- terms --- */

/* perf's terms that IBS lacks, or that cannot be used here. */
static const struct {
	const char *names, *why;
} refused[] = {
	{ "weight3,p_stage_cyc,retire_lat", "the kernel does not fill it for IBS; comp_to_ret is "
					    "the time from completion to retirement" },
	{ "code_pgsz", "ibs_op does not report the page size of code, ibs_fetch does; page_size is "
		       "that of data" },
	{ "period", "all samples of an event have the same; set it with -c" },
	{ "mem_blk", "IBS does not report what blocked an access" },
	{ "txn", "AMD has no transactions" },
	{ "time", "a sample gets its time only after it is filtered" },
	{ "id", "a filter applies to one event" },
};

/* A list in a message. */
struct list {
	char text[400];
	size_t len;
};

static void list_add(struct list *l, const char *word)
{
	int n = snprintf(l->text + l->len, sizeof(l->text) - l->len, "%s%s", l->len ? ", " : "",
			 word);

	if (n > 0 && l->len + n < sizeof(l->text))
		l->len += n;
	else
		l->text[l->len] = 0;
}

static int find_field(const char *word, bool fetch)
{
	for (int i = 0; i < IBS_FETCH_FILTER_END; i++) {
		const struct filter_field *fl = &filter_fields[i];

		if (filter_field_of(i, fetch) &&
		    (same_name(word, fl->name, strlen(fl->name)) || in_list(word, fl->others)))
			return i;
	}
	return -1;
}

static int unknown_term(struct parser *p, const char *at, const char *word)
{
	static const char *const events[] = { "ibs_op", "ibs_fetch" };
	struct list near = {};
	struct suggestion nearest;
	char name[WORD_MAX] = "";
	int listed = 0;

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (in_list(word, refused[i].names))
			return fail(p, -EINVAL, at, "'%s' cannot be tested: %s", word,
				    refused[i].why);
	if (find_field(word, !p->fetch) >= 0)
		return fail(p, -EINVAL, at,
			    "'%s' is a term of %s, but the event is %s; `ibscope help filter` "
			    "lists the terms of each",
			    word, events[!p->fetch], events[p->fetch]);
	for (size_t i = 0; word[i]; i++)
		name[i] = folded(word[i]);
	suggestion_start(&nearest, name, strlen(name));
	for (int i = 0; i < IBS_FETCH_FILTER_END; i++)
		if (filter_field_of(i, p->fetch))
			suggestion_offer(&nearest, filter_fields[i].name);
	for (int i = 0; i < IBS_FETCH_FILTER_END; i++) {
		const char *field = filter_fields[i].name;

		if (filter_field_of(i, p->fetch) &&
		    (field == nearest.best || (strlen(name) > 2 && strstr(field, name))))
			list_add(&near, field);
	}
	if (near.len)
		return fail(p, -EINVAL, at, "unknown term '%s'; similar terms are %s", word,
			    near.text);
	for (int i = 0; i < IBS_FETCH_FILTER_END; i++) {
		if (!filter_field_of(i, p->fetch))
			continue;
		if (filter_fields[i].values == FILTER_FLAG && listed)
			break;
		list_add(&near, filter_fields[i].name);
		listed = i >= IBS_FILTER_FIELD_N || !p->fetch;
	}
	return fail(p, -EINVAL, at, "unknown term '%s'; terms are %s and more", word, near.text);
}

/* --- values --- */

static int bad_value(struct parser *p, const char *at, const struct filter_field *fl,
		     const char *word)
{
	const struct filter_const *c = filter_consts[fl->values];
	struct list names = {};

	if (filter_names_only(fl->values) && fl->values != FILTER_OP &&
	    (same_name(word, "unknown", 7) ||
	     (fl->values == FILTER_DATA_SRC && same_name(word, "none", 4))))
		return fail(p, -EINVAL, at,
			    "'%s' means that there is no %s, and an absent field never matches",
			    word, fl->values == FILTER_DATA_SRC ? "source" : fl->name);
	if (!c)
		return fail(p, -EINVAL, at, "invalid value '%s': %s is a number", word, fl->name);
	for (; c->name; c++)
		list_add(&names, c->name);
	return fail(p, -EINVAL, at, "invalid value '%s': %s is one of %s", word, fl->name,
		    names.text);
}

static int parse_value(struct parser *p, const struct filter_field *fl, __u64 *value)
{
	const struct num_arg arg = { .name = fl->name, .max = UINT64_MAX };
	const struct filter_const *c = filter_consts[fl->values];
	char word[WORD_MAX];
	const char *at;
	uint64_t number;
	struct err err;
	int ret;

	skip_blanks(p);
	at = p->s;
	if (!take_word(p, word))
		return fail_expected(p, c ? "a number or a constant" : "a number");
	for (; c && c->name; c++) {
		if (same_name(word, c->name, strlen(c->name))) {
			*value = c->value;
			return 0;
		}
	}
	if (word[0] < '0' || word[0] > '9' || filter_names_only(fl->values))
		return bad_value(p, at, fl, word);
	ret = num_parse(&arg, word, &number, &err);
	if (ret)
		return fail(p, ret, at, "%s", err.text);
	if (number > fl->max)
		return fail(p, -ERANGE, at, "%s must be at most %" PRIu64, fl->name,
			    (uint64_t)fl->max);
	*value = number;
	return 0;
}

/* A path, pattern or name: quoted, or up to a character that cannot belong to it. */
static int parse_text(struct parser *p, char text[FILTER_CGROUP_TEXT])
{
	const char *from;
	size_t n;

	skip_blanks(p);
	from = p->s;
	if (*from == '"' || *from == '\'') {
		const char *end = strchr(from + 1, *from);

		if (!end)
			return fail(p, -EINVAL, from, "missing closing %c", *from);
		n = end - ++from;
		p->s = end + 1;
	} else {
		n = strcspn(from, " \t\n,&|()!\"'");
		p->s += n;
	}
	if (!n)
		return fail(p, -EINVAL, from, "expected a path or a name");
	if (n >= FILTER_CGROUP_TEXT)
		return fail(p, -E2BIG, from, "longer than %d characters", FILTER_CGROUP_TEXT - 1);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)from[i] < ' ' || from[i] == 127)
			return fail(p, -EINVAL, from + i, "control character in a name");
	memcpy(text, from, n);
	text[n] = 0;
	return 0;
}

/* --- from text to nodes --- */

/* Return: its index. The array cannot overflow: it has two nodes per test, which are counted. */
static unsigned int add_node(struct parser *p, const struct filter_node *n)
{
	p->nodes[p->n_nodes] = *n;
	return p->n_nodes++;
}

static int add_test(struct parser *p, const char *at, const struct filter_node *n,
		    unsigned int *out)
{
	if (p->n_tests++ == FILTER_COMPARISONS)
		return fail(p, -E2BIG, at, "more than %d comparisons", FILTER_COMPARISONS);
	*out = add_node(p, n);
	return 0;
}

/* The comparison that is true for a present field if @cmp is false. */
static unsigned int opposite(unsigned int cmp)
{
	static const __u8 of[] = {
		[IBS_FILTER_EQ] = IBS_FILTER_NE,    [IBS_FILTER_NE] = IBS_FILTER_EQ,
		[IBS_FILTER_LT] = IBS_FILTER_GE,    [IBS_FILTER_GE] = IBS_FILTER_LT,
		[IBS_FILTER_GT] = IBS_FILTER_LE,    [IBS_FILTER_LE] = IBS_FILTER_GT,
		[IBS_FILTER_ANY] = IBS_FILTER_NONE, [IBS_FILTER_NONE] = IBS_FILTER_ANY,
	};

	return of[cmp];
}

static int parse_cgroup(struct parser *p, const char *at, bool container, bool negate,
			unsigned int *out)
{
	struct filter_node n = { .kind = FILTER_NODE_TEST,
				 .field = IBS_FILTER_CGROUP,
				 .cmp = IBS_FILTER_ANY };
	struct filter_cgroup c = {};
	struct filter *f = p->f;
	bool glob = take(p, "=~");
	unsigned int i;
	int ret;

	if (!glob && take(p, "!="))
		n.cmp = IBS_FILTER_NONE;
	else if (!glob && !take(p, "=="))
		return fail_expected(p, "==, != or =~");
	ret = parse_text(p, c.text);
	if (ret)
		return ret;
	if (container)
		c.kind = glob ? FILTER_CONTAINER_GLOB : FILTER_CONTAINER;
	else
		c.kind = glob ? FILTER_CGROUP_GLOB : FILTER_CGROUP_PATH;
	for (i = 0; i < f->n_cgroups; i++)
		if (f->cgroups[i].kind == c.kind && !strcmp(f->cgroups[i].text, c.text))
			break;
	if (i == IBS_FILTER_CGROUPS)
		return fail(p, -E2BIG, at, "more than %d different cgroups or containers",
			    IBS_FILTER_CGROUPS);
	if (i == f->n_cgroups)
		f->cgroups[f->n_cgroups++] = c;
	n.value = 1ULL << i;
	if (negate)
		n.cmp = opposite(n.cmp);
	return add_test(p, at, &n, out);
}

static int parse_cmp(struct parser *p)
{
	/* longer ones first */
	static const struct {
		const char *text;
		int cmp;
	} rows[] = {
		{ "==", IBS_FILTER_EQ }, { "!=", IBS_FILTER_NE }, { "<=", IBS_FILTER_LE },
		{ ">=", IBS_FILTER_GE }, { "<", IBS_FILTER_LT },  { ">", IBS_FILTER_GT },
		{ "&", IBS_FILTER_ANY },
	};

	skip_blanks(p);
	if (!strncmp(p->s, "&&", 2))
		return -1;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (take(p, rows[i].text))
			return rows[i].cmp;
	return -1;
}

static int parse_comparison(struct parser *p, bool negate, unsigned int *out)
{
	struct filter_node n = { .kind = FILTER_NODE_TEST };
	const struct filter_field *fl;
	const char *at, *at_cmp;
	char word[WORD_MAX];
	int field, cmp, ret;

	skip_blanks(p);
	at = p->s;
	if (!take_word(p, word))
		return fail_expected(p, p->fetch ? "a term such as fetch_lat"
						 : "a term such as dc_miss_lat");
	if (same_name(word, "container", 9))
		return parse_cgroup(p, at, true, negate, out);
	field = find_field(word, p->fetch);
	if (field < 0)
		return unknown_term(p, at, word);
	if (field == IBS_FILTER_CGROUP)
		return parse_cgroup(p, at, false, negate, out);
	fl = &filter_fields[field];
	skip_blanks(p);
	at_cmp = p->s;
	cmp = parse_cmp(p);
	n.field = field;
	n.value = 1;
	if (cmp < 0) {
		if (fl->values != FILTER_FLAG)
			return fail_expected(p, "==, !=, <, <=, >, >= or &");
		cmp = IBS_FILTER_EQ;
	} else {
		if (filter_names_only(fl->values) && cmp != IBS_FILTER_EQ && cmp != IBS_FILTER_NE)
			return fail(p, -EINVAL, at_cmp,
				    "%s can only be compared with == and !=", fl->name);
		ret = parse_value(p, fl, &n.value);
		if (ret)
			return ret;
		if (cmp == IBS_FILTER_ANY && !n.value)
			return fail(p, -EINVAL, at_cmp, "'& 0' tests no bit");
	}
	n.cmp = negate ? opposite(cmp) : (unsigned int)cmp;
	return add_test(p, at, &n, out);
}

static int parse_expr(struct parser *p, bool negate, unsigned int *out);

static int parse_unary(struct parser *p, bool negate, unsigned int *out)
{
	const char *at;
	int ret;

	skip_blanks(p);
	at = p->s;
	if (*at != '!' && *at != '(')
		return parse_comparison(p, negate, out);
	if (p->depth == FILTER_DEPTH)
		return fail(p, -E2BIG, at, "nested deeper than %d", FILTER_DEPTH);
	p->depth++;
	p->s++;
	if (*at == '!') {
		ret = parse_unary(p, !negate, out);
	} else {
		ret = parse_expr(p, negate, out);
		if (!ret && !take(p, ")"))
			ret = fail_expected(p, "&&, || or the closing )");
	}
	p->depth--;
	return ret;
}

typedef int parse_fn(struct parser *p, bool negate, unsigned int *out);

/* @sub { @op @sub }; under a "!" AND and OR change places (De Morgan). */
static int parse_chain(struct parser *p, bool negate, unsigned int *out, const char *op,
		       enum filter_node_kind kind, parse_fn *sub)
{
	struct filter_node n = {
		.kind = negate ? (kind == FILTER_NODE_AND ? FILTER_NODE_OR : FILTER_NODE_AND) : kind
	};
	int ret = sub(p, negate, out);

	while (!ret && take(p, op)) {
		n.a = *out;
		ret = sub(p, negate, &n.b);
		if (!ret)
			*out = add_node(p, &n);
	}
	return ret;
}

static int parse_and(struct parser *p, bool negate, unsigned int *out)
{
	return parse_chain(p, negate, out, "&&", FILTER_NODE_AND, parse_unary);
}

static int parse_or(struct parser *p, bool negate, unsigned int *out)
{
	return parse_chain(p, negate, out, "||", FILTER_NODE_OR, parse_and);
}

static int parse_expr(struct parser *p, bool negate, unsigned int *out)
{
	return parse_chain(p, negate, out, ",", FILTER_NODE_AND, parse_or);
}

/* --- parts --- */

static int parse_part(struct parser *p, const struct filter_part *part, struct filter_root *root)
{
	struct filter *f = p->f;
	int ret;

	p->text = p->s = part->text;
	p->depth = 0;
	p->fetch = part->fetch;
	root->outcome = part->outcome;
	ret = parse_expr(p, false, &root->node);
	skip_blanks(p);
	if (!ret && *p->s)
		ret = fail_expected(p, "&&, || or ','");
	if (!ret) {
		f->parts[f->n_parts].outcome = part->outcome;
		f->parts[f->n_parts++].text = filter_text(f, p->nodes, root->node);
	}
	if (ret && part->option)
		err_prefix(p->e, "%s", part->option);
	return ret;
}

static int too_long(struct parser *p, const struct filter_part *parts, size_t n_parts,
		    unsigned int tests)
{
	struct list names = {};

	for (size_t i = 0; i < n_parts; i++)
		if (parts[i].option)
			list_add(&names, parts[i].option);
	return err_set(p->e, -E2BIG, "%s%sthe filter needs %u tests; the kernel can run %d",
		       names.len ? names.text : "column 1", ": ", tests, IBS_FILTER_TERMS);
}

int filter_compile(const struct filter_part *parts, size_t n_parts, struct filter *out,
		   struct err *e)
{
	struct parser *p = xcalloc(1, sizeof(*p));
	struct filter_root roots[FILTER_PARTS];
	unsigned int all = 0, n;
	int ret = 0;

	memset(out, 0, sizeof(*out));
	p->f = out;
	p->e = e;
	if (n_parts > FILTER_PARTS)
		ret = err_set(e, -E2BIG, "%zu filters; the maximum is %d", n_parts, FILTER_PARTS);
	for (size_t i = 0; !ret && i < n_parts; i++) {
		ret = parse_part(p, &parts[i], &roots[i]);
		if (ret)
			break;
		all = !i ? roots[i].node
			 : add_node(p, &(struct filter_node){ .kind = FILTER_NODE_AND,
							      .a = all,
							      .b = roots[i].node });
	}
	if (!ret && n_parts) {
		out->text = filter_text(out, p->nodes, all);
		n = filter_build(p->nodes, roots, n_parts, &out->prog);
		if (n > IBS_FILTER_TERMS)
			ret = too_long(p, parts, n_parts, n);
	}
	free(p);
	if (ret)
		filter_free(out);
	return ret;
}

int filter_parse(const char *text, struct filter *out, struct err *e)
{
	const struct filter_part part = { .text = text, .outcome = IBS_OUTCOME_FILTERED_EXPR };

	return filter_compile(&part, 1, out, e);
}

void filter_free(struct filter *f)
{
	for (unsigned int i = 0; i < f->n_parts; i++)
		free(f->parts[i].text);
	free(f->text);
	memset(f, 0, sizeof(*f));
}
