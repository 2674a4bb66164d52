// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "flight_when.h"

#include "base/choice.h"
#include "base/err.h"
#include "base/num.h"
#include "base/text.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FOR_MAX_S 3600

enum value {
#define VALUE_ENUM(NAME, ...) VALUE_##NAME,
	FLIGHT_VALUE_TABLE(VALUE_ENUM)
#undef VALUE_ENUM
		VALUE_N
};

static const struct {
	const char *name;
	bool of_ledger;
} values[] = {
#define VALUE_ROW(NAME, name, of_ledger, meaning) { name, of_ledger },
	FLIGHT_VALUE_TABLE(VALUE_ROW)
#undef VALUE_ROW
};

enum how { EQUAL, UNEQUAL, LIKE, LESS_EQUAL, GREATER_EQUAL, LESS, GREATER, HOW_N };

/* Those that begin with another one are before it. */
static const char *const hows[HOW_N] = { "==", "!=", "=~", "<=", ">=", "<", ">" };

/* --- parsing --- */

struct parser {
	const char *text, *at;
	struct err *err;
};

static int fail(const struct parser *p, const char *at, const char *what)
{
	return err_set(p->err, -EINVAL, "--flight-on: column %td: %s", at - p->text + 1, what);
}

static void skip_blanks(struct parser *p)
{
	while (*p->at == ' ' || *p->at == '\t')
		p->at++;
}

static bool take(struct parser *p, const char *token)
{
	size_t n = strlen(token);

	skip_blanks(p);
	if (strncmp(p->at, token, n))
		return false;
	p->at += n;
	return true;
}

/* A word up to a blank or an operator, or a text in quotes. Return: 0, or -EINVAL with an error. */
static int take_word(struct parser *p, const char *what, char *word, size_t size)
{
	const char *begin, *end;
	char text[80];
	char quote;

	skip_blanks(p);
	quote = *p->at == '"' || *p->at == '\'' ? *p->at : 0;
	begin = p->at + (quote != 0);
	end = quote ? strchr(begin, quote) : begin + strcspn(begin, " \t&=!<>\"'");
	if (!end)
		return fail(p, p->at, "this quote is not closed");
	snprintf(text, sizeof(text), "expected %s", what);
	if (end == begin)
		return fail(p, p->at, text);
	if ((size_t)(end - begin) >= size)
		return fail(p, p->at, "this text is too long");
	memcpy(word, begin, end - begin);
	word[end - begin] = 0;
	p->at = end + (quote != 0);
	return 0;
}

static int find_value(const char *word)
{
	for (int i = 0; i < VALUE_N; i++)
		if (!strcmp(values[i].name, word))
			return i;
	return -1;
}

static int unknown(const struct parser *p, const char *at, const char *word)
{
	struct suggestion s;
	char text[600] = "";

	suggestion_start(&s, word, strlen(word));
	for (int i = 0; i < VALUE_N; i++)
		suggestion_offer(&s, values[i].name);
	for (int l = 0; l <= LABEL_LAST_COUNTED; l++)
		suggestion_offer(&s, label_name(l));
	text_append(text, sizeof(text), "unknown '%.40s'%s; must be a key of --by, or one of", word,
		    suggestion_text(&s));
	for (int i = 0; i < VALUE_N; i++)
		text_append(text, sizeof(text), "%s %s", i ? "," : "", values[i].name);
	return fail(p, at, text);
}

/* @word names a value or a key. */
static int find_what(const struct parser *p, const char *at, const char *word,
		     struct flight_test *t)
{
	unsigned int labels = 0;
	struct label_order order;
	struct err ignored;
	int value = find_value(word);

	t->of_key = value < 0;
	t->what = value;
	if (value >= 0)
		return 0;
	if (labels_parse(word, &labels, &order, &ignored) || labels & (labels - 1))
		return unknown(p, at, word);
	t->what = __builtin_ctz(labels);
	return 0;
}

static int take_how(struct parser *p, struct flight_test *t)
{
	for (t->how = 0; t->how < HOW_N; t->how++)
		if (take(p, hows[t->how]))
			break;
	if (t->how == HOW_N || (t->of_key ? t->how > LIKE : t->how == LIKE))
		return fail(p, p->at,
			    t->of_key ? "expected ==, != or =~ after a key"
				      : "expected <, <=, >, >=, == or != after a value");
	return 0;
}

static int take_number(struct parser *p, struct flight_test *t)
{
	static const struct num_arg arg = { .name = "number", .max = UINT64_MAX };
	struct err ignored;
	uint64_t number;
	const char *at;
	char word[32];

	skip_blanks(p);
	at = p->at;
	if (take_word(p, "a number", word, sizeof(word)))
		return -EINVAL;
	if (num_parse(&arg, word, &number, &ignored))
		return fail(p, at, "expected a number, such as 2000, 20K or 3M");
	t->number = number;
	return 0;
}

static int take_test(struct parser *p, struct flight_test *t)
{
	const char *at;
	char word[32];
	int ret;

	skip_blanks(p);
	at = p->at;
	ret = take_word(p, "a key or a value, such as container or p99", word, sizeof(word));
	ret = ret ?: find_what(p, at, word, t) ?: take_how(p, t);
	if (ret)
		return ret;
	return t->of_key ? take_word(p, "a text", t->text, sizeof(t->text)) : take_number(p, t);
}

static int take_time(struct parser *p, double *out)
{
	static const struct duration_arg arg = { .name = "for", .min_s = 1, .max_s = FOR_MAX_S };
	struct err why = { "" };
	const char *at;
	char word[32];

	skip_blanks(p);
	at = p->at;
	if (take_word(p, "a time after 'for'", word, sizeof(word)))
		return -EINVAL;
	return num_parse_duration(&arg, word, out, &why) ? fail(p, at, why.text) : 0;
}

/* Groups have no ledger of their own. */
static int check(const struct parser *p, const struct flight_condition *c)
{
	bool values_any = false, ledger = false, keys = false;

	for (unsigned int i = 0; i < c->n_tests; i++) {
		keys |= c->test[i].of_key;
		values_any |= !c->test[i].of_key;
		ledger |= !c->test[i].of_key && values[c->test[i].what].of_ledger;
	}
	if (!values_any)
		return fail(p, p->at, "expected a value, such as '&& p99 > 2000'");
	if (ledger && keys)
		return fail(p, p->text,
			    "samples_lost and samples_unseen are those of all groups: use them "
			    "without keys");
	return 0;
}

int flight_condition_parse(const char *text, struct flight_condition *out, struct err *err)
{
	struct parser p = { text, text, err };
	int ret = 0;

	*out = (struct flight_condition){ .for_s = 1 };
	if (strlen(text) >= sizeof(out->text))
		return fail(&p, text, "the condition is too long");
	snprintf(out->text, sizeof(out->text), "%s", text);
	do {
		if (out->n_tests == FLIGHT_TESTS)
			return fail(&p, p.at, "too many tests");
		ret = take_test(&p, &out->test[out->n_tests++]);
	} while (!ret && take(&p, "&&"));
	if (!ret && take(&p, "for"))
		ret = take_time(&p, &out->for_s);
	skip_blanks(&p);
	if (!ret && *p.at)
		ret = fail(&p, p.at, "expected '&&', 'for TIME' or the end");
	return ret ?: check(&p, out);
}

unsigned int flight_condition_labels(const struct flight_condition *c)
{
	unsigned int labels = 0;

	for (unsigned int i = 0; i < c->n_tests; i++)
		if (c->test[i].of_key)
			labels |= 1U << c->test[i].what;
	return labels;
}

/* --- a second --- */

static bool has_label(const struct flight_test *t, const struct row *r)
{
	const char *label =
		1U << t->what & LABELS_PAIR ? series_label(&r->series, t->what) : r->label[t->what];

	if (!label)
		return false;
	if (t->how == LIKE)
		return !fnmatch(t->text, label, FNM_NOESCAPE);
	return !strcmp(t->text, label) == (t->how == EQUAL);
}

static bool selected(const struct flight_condition *c, const struct row *r)
{
	for (unsigned int i = 0; i < c->n_tests; i++)
		if (c->test[i].of_key && !has_label(&c->test[i], r))
			return false;
	return true;
}

/* Estimates are unknown if those of a part are. */
static void sum_up(const struct flight_condition *c, const struct rows *rows, struct series *sum)
{
	bool unknown_cycles = false;

	for (size_t i = 0; i < rows->n; i++) {
		const struct series *s = &rows->row[i].series;

		if (!selected(c, &rows->row[i]))
			continue;
		unknown_cycles |= s->sum && !s->cycles;
		series_add(sum, s);
	}
	if (unknown_cycles)
		sum->cycles = 0;
}

static double percentile(const struct series *sum, double q)
{
	long p = sum->buckets ? series_percentile(sum, q) : -1;

	return p < 0 ? (double)NAN : (double)p;
}

/* Return: NAN if it is unknown. */
static double value_of(enum value v, const struct series *sum, const struct flight_second *s)
{
	const struct ledger *l = &s->counts->ledger;

	switch (v) {
	case VALUE_SAMPLES:
		return sum->samples / s->length_s;
	case VALUE_P50:
		return percentile(sum, 0.5);
	case VALUE_P90:
		return percentile(sum, 0.9);
	case VALUE_P99:
		return percentile(sum, 0.99);
	case VALUE_MEAN:
		return sum->valid ? (double)sum->sum / sum->valid : (double)NAN;
	case VALUE_MISS_CYCLES:
		return sum->sum && !sum->cycles ? (double)NAN : sum->cycles / s->length_s;
	case VALUE_SAMPLES_LOST:
		return ledger_sum(l, IBS_OUTCOME_KIND_LOST) / s->length_s;
	case VALUE_SAMPLES_UNSEEN:
		return l->pmu_exact ? l->unseen / s->length_s : (double)NAN;
	default:
		return NAN;
	}
}

static bool compares(enum how how, double value, double number)
{
	switch (how) {
	case EQUAL:
		return value == number;
	case UNEQUAL:
		return value < number || value > number;
	case LESS_EQUAL:
		return value <= number;
	case GREATER_EQUAL:
		return value >= number;
	case LESS:
		return value < number;
	case GREATER:
		return value > number;
	default:
		return false;
	}
}

bool flight_condition_true(const struct flight_condition *c, const struct flight_second *s,
			   char *value, size_t size)
{
	struct series sum = { .buckets = xcalloc(IBS_LAT_BUCKETS, sizeof(*sum.buckets)) };
	bool is_true = true;

	*value = 0;
	sum_up(c, s->rows, &sum);
	for (unsigned int i = 0; i < c->n_tests && is_true; i++) {
		const struct flight_test *t = &c->test[i];
		double v = t->of_key ? 0 : value_of(t->what, &sum, s);

		if (t->of_key)
			continue;
		is_true = compares(t->how, v, t->number);
		if (is_true && !*value)
			snprintf(value, size, "%s %s", values[t->what].name,
				 TEXT_COUNT(llround(v)));
	}
	free(sum.buckets);
	return is_true;
}
