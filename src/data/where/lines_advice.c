// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What to change about a line that is shared, with the names of its fields and of the code. */
#include "lines_names.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>

static bool is_of(struct line_namer *n, const struct line_access *a,
		  const struct line_label *function)
{
	struct line_label label;

	line_namer_of(n, LINE_FUNCTION, a, &label);
	return !line_label_compare(&label, function);
}

/* The access of a slot with most samples, of some kinds and in a function, or NULL. */
static const struct line_access *most_used(struct line_namer *n, const struct line *l,
					   unsigned int slot, unsigned int kinds,
					   const struct line_label *function)
{
	const struct line_access *best = NULL;

	for (size_t i = 0; i < l->n_access; i++) {
		const struct line_access *a = &l->access[i];

		if (line_access_slots(a) >> slot & 1 && a->kind & kinds &&
		    !(a->kind & LINE_PREFETCH) && (!best || a->samples > best->samples) &&
		    (!function || is_of(n, a, function)))
			best = a;
	}
	return best;
}

bool line_slot_field(struct line_namer *n, const struct line *l, unsigned int slot,
		     struct line_field *out)
{
	const struct line_access *a = most_used(n, l, slot, LINE_LOAD | LINE_STORE, NULL);
	struct type_access type = { 0 };
	struct data_place place;

	*out = (struct line_field){ 0 };
	if (!a)
		return false;
	line_namer_place(n, a, &place);
	symbols_type(n->symbols, n->tasks, a->tgid,
		     place.variable || !(a->has & LINE_HAS_IP) ? NULL : &a->ip, &place, a->width,
		     a->first, &type);
	out->variable = place.variable;
	out->field = type.field;
	out->type = type.type;
	out->element = place.has_offset && place.offset != type.offset;
	return true;
}

/* "`counters.hits`", "`stats+8`", or "offset 8" where nothing else is known. Return: whether it is. */
static bool put_slot(FILE *f, struct line_namer *n, const struct line *l, unsigned int slot)
{
	struct line_field field;
	struct line_tally t;
	const char *name;

	line_tally(n, l, LINE_FIELD, LINE_LOAD | LINE_STORE, 1u << slot, &t);
	name = t.n && *t.v[0].label.name != '[' ? t.v[0].label.name : NULL;
	line_slot_field(n, l, slot, &field);
	if (field.field && *field.field == '[')
		field.field = NULL; /* padding */
	if (field.field && field.variable)
		fprintf(f, "`%.200s%s.%.200s`", field.variable, field.element ? "[]" : "",
			field.field);
	else if (field.field && field.type)
		fprintf(f, "`%.200s` of %.200s", field.field, field.type);
	else if (name)
		fprintf(f, "`%.200s`", name);
	else
		fprintf(f, "offset %u", slot * SLOT_BYTES);
	free(t.v);
	return (field.field && (field.variable || field.type)) || name;
}

/* " (offset 8, written by push at stack.c:12 (+2))": the most frequent function, and how many more there are. */
static void put_user(FILE *f, struct line_namer *n, const struct line *l, const char *how,
		     unsigned int kinds, unsigned int slot, bool known)
{
	const struct line_access *a;
	struct symbol sym = { 0 };
	struct line_tally t;
	const struct line_label *function;

	line_tally(n, l, LINE_FUNCTION, kinds, 1u << slot, &t);
	function = t.n ? &t.v[0].label : NULL;
	fputs(" (", f);
	if (known)
		fprintf(f, "offset %u, ", slot * SLOT_BYTES);
	fprintf(f, "%s by %.200s", how,
		function ? line_label_text(n, function, false) : "[unknown]");
	a = function ? most_used(n, l, slot, kinds, function) : NULL;
	if (a)
		symbols_find(n->symbols, n->tasks, a->tgid, a->ip, a->first, a->has & LINE_KERNEL,
			     true, &sym);
	if (sym.srcline)
		fprintf(f, " at %.200s", text_last_part(sym.srcline));
	if (t.n > 1)
		fprintf(f, " (+%zu)", t.n - 1);
	fputc(')', f);
	free(t.v);
}

static __u64 uses(const struct line_slot *s)
{
	return s->loads + s->stores;
}

/* The busiest slot whose writes disturb those who use another one, and that one. */
static bool apart(const struct line_slot *slots, unsigned int *from, unsigned int *to)
{
	__u64 most = 0;

	for (unsigned int s = 0; s < LINE_SLOTS; s++)
		for (unsigned int t = 0; t < LINE_SLOTS; t++) {
			__u64 n = uses(&slots[s]) + uses(&slots[t]);

			if (s == t || n <= most || (slots[s].shared && slots[t].shared) ||
			    !line_users_share(&slots[s].writers, &slots[t].all))
				continue;
			most = n;
			*from = s;
			*to = t;
		}
	return most;
}

static void put_apart(FILE *f, struct line_namer *n, const struct line *l,
		      const struct line_slot *slots, unsigned int s, unsigned int t)
{
	bool known;

	fputs("move ", f);
	known = put_slot(f, n, l, s);
	put_user(f, n, l, "written", LINE_STORE, s, known);
	fputs(" and ", f);
	known = put_slot(f, n, l, t);
	put_user(f, n, l, slots[t].stores ? "written" : "read", LINE_LOAD | LINE_STORE, t, known);
	fputs(" to lines of their own, 64 bytes apart", f);
}

char *line_advice(struct line_namer *n, const struct line *l)
{
	struct line_slot slots[LINE_SLOTS];
	unsigned int s = 0, t = 0, best = 0;
	char *text = NULL;
	size_t size;
	bool known;
	FILE *f;

	if (l->verdict < LINE_VERDICT_FALSE)
		return NULL;
	f = xmemopen(&text, &size);
	line_slots(l, slots);
	if (apart(slots, &s, &t))
		put_apart(f, n, l, slots, s, t);
	for (unsigned int k = 0; k < LINE_SLOTS; k++)
		if (slots[k].shared &&
		    (!slots[best].shared || uses(&slots[k]) > uses(&slots[best])))
			best = k;
	if (slots[best].shared) {
		fputs(l->verdict == LINE_VERDICT_MIXED ? "; write " : "write ", f);
		known = put_slot(f, n, l, best);
		fputs(" less often", f);
		put_user(f, n, l, "written", LINE_STORE, best, known);
		fputs(": batch the updates or keep one copy per CPU", f);
	}
	fclose(f);
	return text;
}
