// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The table of all lines: their names, order, and advice. */
#include "lines_rows.h"

#include <math.h>

#define USUAL		80  /* columns of the screen from which slots and variables are shown */
#define WIDE		120 /* the same of containers */
#define LINE_SLOT_MARKS "W written and used by several, w written, r read, . unused"
#define ADVICE		5 /* lines that get one */
#define TEXT_CONTAINER	5 /* key of text */

void lines_terms(FILE *f)
{
	columns_help(f, &lines_columns);
	fputs("\nVerdicts:\n"
	      "  false       threads on several CPUs use different slots of 8 bytes, and one "
	      "writes\n"
	      "  true        they use the same slot\n"
	      "  both        there are slots of either kind\n"
	      "  false? ...  the same, but no sample found the line modified in another cache: it "
	      "was in\n"
	      "              state O there, or the processor does not report the state of lines\n"
	      "  shared      written and shared, but no sample met the line in another cache\n"
	      "  read-only   shared, but never written\n"
	      "  private     of one thread, or of one CPU\n"
	      "Slots of 8 bytes: " LINE_SLOT_MARKS ".\n",
	      f);
}

static const char *kept(struct line_rows *rows, const char *text)
{
	return intern_text(&rows->namer.texts, intern_get(&rows->namer.texts, text));
}

static const char *address_kind(const struct line *l)
{
	return l->physical ? "physical" : l->virtual ? "virtual" : NULL;
}

static const char *space_name(struct line_rows *rows, const struct line *l)
{
	char buf[24];

	if (!l->virtual)
		return NULL;
	if (l->space == LINE_SPACE_KERNEL)
		return "kernel";
	snprintf(buf, sizeof(buf), "%llu", (unsigned long long)l->space);
	return kept(rows, buf);
}

static const char *line_name(struct line_rows *rows, const struct line *l, bool with_space)
{
	char buf[LINE_ADDRESS];

	return line_address(l, with_space, buf) ? kept(rows, buf) : NULL;
}

/* In state O the line was shared already: HITM is 0. */
static bool met_modified(const struct line *l)
{
	bool met = false;

	for (unsigned int from = 0; from < LINE_FROM_N; from++)
		met |= line_from_hitm(from) && l->from[from];
	return met;
}

static const char *short_verdict(const struct line *l)
{
	static const char *const names[][2] = {
		{ "-", "-" },		{ "private", "private" }, { "read-only", "read-only" },
		{ "shared", "shared" }, { "false", "false?" },	  { "true", "true?" },
		{ "both", "both?" },
	};
	_Static_assert(ARRAY_SIZE(names) == LINE_VERDICT_N, "a verdict is missing");

	return names[l->verdict][l->likely || !met_modified(l)];
}

static const char *slots_name(struct line_rows *rows, const struct line *l)
{
	struct line_slot slots[LINE_SLOTS];
	char buf[LINE_SLOTS + 1] = "";

	line_slots(l, slots);
	for (unsigned int s = 0; s < LINE_SLOTS; s++)
		buf[s] = line_slot_mark(&slots[s]);
	return kept(rows, buf);
}

/* Names joined, most samples first. @mangled: as the linker has them */
static const char *join(struct line_rows *rows, const struct line *l, enum line_name what,
			unsigned int kinds, bool mangled)
{
	struct line_tally t;
	const char *out;
	unsigned int n = 0;
	char *text;
	size_t size;
	FILE *f = xmemopen(&text, &size);

	line_tally(&rows->namer, l, what, kinds, ~0u, &t);
	for (size_t i = 0; i < t.n; i++) {
		const char *name = line_label_text(&rows->namer, &t.v[i].label, mangled);

		if (!*name && rows->p->view.format != FORMAT_TEXT)
			continue;
		fprintf(f, "%s%s", n++ ? ";" : "", *name ? name : table_none(LABEL_CONTAINER));
	}
	fclose(f);
	out = n ? kept(rows, text) : NULL;
	free(t.v);
	free(text);
	return out;
}

static const char *joined(struct line_rows *rows, const struct line *l, enum line_name what,
			  unsigned int kinds)
{
	return join(rows, l, what, kinds, false);
}

/* "writer -> reader"; of several the most frequent. */
static const char *flow(struct line_rows *rows, const struct line *l)
{
	struct line_tally w, r;
	const char *writer, *reader, *out;
	char buf[512];

	line_tally(&rows->namer, l, LINE_FUNCTION, LINE_STORE, ~0u, &w);
	line_tally(&rows->namer, l, LINE_FUNCTION, LINE_LOAD, ~0u, &r);
	writer = w.n ? line_label_text(&rows->namer, &w.v[0].label, false) : NULL;
	reader = r.n ? line_label_text(&rows->namer, &r.v[0].label, false) : NULL;
	if (writer && reader && writer != reader) {
		snprintf(buf, sizeof(buf), "%.240s %s %.240s", writer,
			 rows->p->screen->utf8 ? "→" : "->", reader);
		out = kept(rows, buf);
	} else {
		out = writer ?: reader;
	}
	free(w.v);
	free(r.v);
	return out;
}

static bool in_container(struct line_rows *rows, const struct line *l)
{
	const char *containers = joined(rows, l, LINE_CONTAINER, LINE_ANY);

	return containers && strcmp(containers, table_none(LABEL_CONTAINER));
}

/* Text of narrow screens lacks them: functions say more. */
static bool has_slots(const struct line_rows *rows)
{
	return rows->p->view.format != FORMAT_TEXT || rows->p->screen->width >= USUAL;
}

/* Only of rows that are shown: functions take their time. */
static void name_row(struct line_rows *rows, struct line_row *r)
{
	const struct line *l = r->l;
	const char **name = r->name;

	if (rows->p->view.format == FORMAT_TEXT) {
		*name++ = line_name(rows, l, true);
		*name++ = short_verdict(l);
		if (has_slots(rows))
			*name++ = slots_name(rows, l);
		*name++ = flow(rows, l);
		*name++ = joined(rows, l, LINE_VARIABLE, LINE_ANY);
		*name++ = joined(rows, l, rows->by_comm ? LINE_COMM : LINE_CONTAINER, LINE_ANY);
		return;
	}
	*name++ = line_name(rows, l, false);
	*name++ = address_kind(l);
	*name++ = space_name(rows, l);
	*name++ = line_verdict_name(l->verdict);
	*name++ = l->likely ? "1" : "0";
	*name++ = slots_name(rows, l);
	*name++ = joined(rows, l, LINE_FUNCTION, LINE_STORE);
	*name++ = joined(rows, l, LINE_FUNCTION, LINE_LOAD);
	*name++ = joined(rows, l, LINE_VARIABLE, LINE_ANY);
	*name++ = joined(rows, l, LINE_CONTAINER, LINE_ANY);
	*name++ = joined(rows, l, LINE_COMM, LINE_ANY);
	*name++ = join(rows, l, LINE_FUNCTION, LINE_STORE, true);
	*name++ = join(rows, l, LINE_FUNCTION, LINE_LOAD, true);
	*name++ = join(rows, l, LINE_VARIABLE, LINE_ANY, true);
}

static void set_keys(struct line_rows *rows)
{
	static const char *const text[] = {
		"line", "verdict", "slots", "functions", "variable", [TEXT_CONTAINER] = "container"
	};
	static const char *const narrow[] = { "line", "verdict", "functions" };
	static const char *const all[NAMES_MAX] = {
		"line",
		"address",
		"pid",
		"verdict",
		"likely",
		"slots",
		"writers",
		"readers",
		"variables",
		"containers",
		"comms",
		"writers_mangled",
		"readers_mangled",
		"variables_mangled",
	};
	bool is_text = rows->p->view.format == FORMAT_TEXT;
	unsigned int width = rows->p->screen->width;

	rows->n_keys = !is_text		  ? NAMES_MAX
		       : !has_slots(rows) ? ARRAY_SIZE(narrow)
		       : width < WIDE	  ? 5
					  : 6;
	rows->whole = has_slots(rows) ? 7 : 3; /* all but names */
	memcpy(rows->key,
	       !is_text		 ? all
	       : has_slots(rows) ? text
				 : narrow,
	       rows->n_keys * sizeof(*all));
	if (is_text) /* which address: `report` has the other one by default */
		rows->key[0] = rows->lines->physical || rows->lines->hot.tables ? "phys line"
										: "virt line";
}

/* Without containers threads say more; one column has one kind of name. */
static void name_rows(struct line_rows *rows)
{
	bool container = rows->n_keys <= TEXT_CONTAINER;

	for (size_t i = 0; i < rows->n && !container; i++)
		container = in_container(rows, rows->row[i].l);
	rows->by_comm = rows->p->view.format == FORMAT_TEXT && !container;
	if (rows->by_comm)
		rows->key[TEXT_CONTAINER] = "comm";
	for (size_t i = 0; i < rows->n; i++)
		name_row(rows, &rows->row[i]);
}

/* Is a listed line shared, or may it be? */
static bool any_shared(const struct line_rows *rows)
{
	bool any = !rows->lines->total.stores;

	for (size_t i = 0; i < rows->n; i++)
		any |= rows->row[i].l->verdict > LINE_VERDICT_PRIVATE;
	return any;
}

/* Suggest what shows more of the first line that is shared, or of what is sampled now. */
static void print_next(FILE *f, struct line_rows *rows)
{
	const struct lines_print *p = rows->p;
	size_t i = 0;

	if (p->sampled)
		screen_next(f, p->screen, "record", p->head->info->simulated ? "--source=sim" : "",
			    "-a", "--", "sleep", "10", NULL);
	if (!p->file)
		return;
	while (i < rows->n && rows->row[i].l->verdict < LINE_VERDICT_FALSE)
		i++;
	if (i == rows->n) {
		screen_next(f, p->screen, "report", p->file, "--by", "symbol,src", NULL);
		return;
	}
	screen_next(f, p->screen, "c2c", p->file, "--line", line_name(rows, rows->row[i].l, false),
		    NULL);
	line_rows_next_function(f, rows, rows->row[i].l);
}

static void print_text(FILE *f, struct line_rows *rows)
{
	unsigned int n = 0;

	line_rows_answer(f, rows);
	line_rows_head(f, rows);
	if (rows->hidden && !any_shared(rows)) {
		print_next(f, rows);
		return;
	}
	fputc('\n', f);
	if (!rows->n && !rows->n_rest) {
		fputs(rows->lines->hot.fed ? "no line was accessed often enough to be kept\n"
					   : "no samples\n",
		      f);
		if (rows->p->sampled)
			print_next(f, rows);
		return;
	}
	line_rows_table(f, rows);
	if (has_slots(rows))
		fputs("\nslots     of 8 bytes: " LINE_SLOT_MARKS "\n", f);
	if (rows->lines->physical && rows->p->file)
		fputs("lines     physical, as of `report --phys`; --line takes virtual ones, too\n",
		      f);
	for (size_t i = 0; i < rows->n && n < ADVICE; i++) {
		const struct line *l = rows->row[i].l;
		char label[64];

		if (!line_rows_tells(rows, l))
			continue;
		if (!n++)
			fputc('\n', f);
		snprintf(label, sizeof(label), "%s: ", rows->row[i].name[0]);
		line_rows_advice(f, rows, l, label, 2);
	}
	print_next(f, rows);
}

/* As a row of `report --by symbol` has it. */
static void put_inlined_into(struct json_writer *w, const struct line_label *function)
{
	if (!function->into) {
		json_put_null(w, "inlined_into");
		return;
	}
	json_begin_object(w, "inlined_into");
	json_put_text(w, "symbol", function->into);
	json_put_text(w, "mangled", function->into_mangled);
	json_end(w);
}

static void put_tally(struct json_writer *w, const char *key, struct line_rows *rows,
		      const struct line *l, enum line_name what, unsigned int kinds,
		      unsigned int slots)
{
	struct line_tally t;

	line_tally(&rows->namer, l, what, kinds, slots, &t);
	json_begin_array(w, key);
	for (size_t i = 0; i < t.n; i++) {
		const struct line_label *label = &t.v[i].label;

		if (!*label->name)
			continue; /* in no container */
		json_begin_object(w, NULL);
		json_put_text(w, "name", label->name);
		if (what != LINE_COMM && what != LINE_CONTAINER)
			json_put_text(w, "mangled", label->mangled);
		if (what == LINE_FUNCTION)
			put_inlined_into(w, label);
		json_put_u64(w, "samples", t.v[i].samples);
		json_end(w);
	}
	json_end(w);
	free(t.v);
}

static void put_slots(struct json_writer *w, struct line_rows *rows, const struct line *l)
{
	struct line_slot slots[LINE_SLOTS];

	line_slots(l, slots);
	json_begin_array(w, "slots");
	for (unsigned int s = 0; s < LINE_SLOTS; s++) {
		json_begin_object(w, NULL);
		json_put_u64(w, "offset", s * SLOT_BYTES);
		json_put_u64(w, "loads", slots[s].loads);
		json_put_u64(w, "stores", slots[s].stores);
		json_put_u64(w, "hitm", slots[s].hitm);
		json_put_bool(w, "shared", slots[s].shared);
		put_tally(w, "variables", rows, l, LINE_FIELD, LINE_ANY, 1u << s);
		put_tally(w, "writers", rows, l, LINE_FUNCTION, LINE_STORE, 1u << s);
		put_tally(w, "readers", rows, l, LINE_FUNCTION, LINE_LOAD, 1u << s);
		json_end(w);
	}
	json_end(w);
}

void line_rows_put_line(struct json_writer *w, struct line_rows *rows, const struct line_row *r)
{
	const struct line *l = r->l;
	char *advice = line_advice(&rows->namer, l);

	json_put_text(w, "line", line_name(rows, l, false));
	json_put_text(w, "address", address_kind(l));
	json_put_text(w, "pid", space_name(rows, l));
	json_put_bool(w, "moved", l->moved);
	json_put_text(w, "verdict", line_verdict_name(l->verdict));
	json_put_bool(w, "likely", l->likely);
	json_put_text(w, "advice", advice);
	put_slots(w, rows, l);
	put_tally(w, "writers", rows, l, LINE_FUNCTION, LINE_STORE, ~0u);
	put_tally(w, "readers", rows, l, LINE_FUNCTION, LINE_LOAD, ~0u);
	put_tally(w, "variables", rows, l, LINE_VARIABLE, LINE_ANY, ~0u);
	put_tally(w, "containers", rows, l, LINE_CONTAINER, LINE_ANY, ~0u);
	put_tally(w, "comms", rows, l, LINE_COMM, LINE_ANY, ~0u);
	line_rows_put_values(w, rows, r);
	free(advice);
}

/* The name of most samples, and how many others there are. */
static void put_first(struct json_writer *w, struct line_rows *rows, const struct line *l,
		      const char *const keys[2], enum line_name what, unsigned int kinds)
{
	struct line_tally t;

	line_tally(&rows->namer, l, what, kinds, ~0u, &t);
	json_put_text(w, keys[0], t.n ? line_label_text(&rows->namer, &t.v[0].label, false) : NULL);
	json_put_u64(w, keys[1], t.n ? t.n - 1 : 0);
	free(t.v);
}

static void put_short(struct json_writer *w, struct line_rows *rows, const struct line_row *r,
		      bool judged)
{
	const struct line *l = r->l;

	json_put_text(w, "line", line_name(rows, l, true));
	json_put_text(w, "verdict",
		      judged && l->verdict != LINE_VERDICT_UNKNOWN ? short_verdict(l) : NULL);
	json_put_text(w, "slots", slots_name(rows, l));
	put_first(w, rows, l, (const char *const[]){ "writer", "other_writers" }, LINE_FUNCTION,
		  LINE_STORE);
	put_first(w, rows, l, (const char *const[]){ "reader", "other_readers" }, LINE_FUNCTION,
		  LINE_LOAD);
	put_first(w, rows, l, (const char *const[]){ "variable", "other_variables" }, LINE_VARIABLE,
		  LINE_ANY);
	json_put_u64(w, "threads", l->threads);
	json_put_u64(w, "samples", l->samples);
	json_put_u64(w, "loads", l->loads);
	json_put_u64(w, "stores", l->stores);
	json_put_number(w, "hitm", line_rows_value(rows, r, TABLE_HITM));
	json_put_number(w, "cycles", line_rows_value(rows, r, TABLE_CYCLES));
}

/* Of what people read, as shared lines are what it is about. */
static bool is_hidden(const struct line_rows *rows, const struct line *l)
{
	return rows->for_people && !rows->p->all && l->verdict == LINE_VERDICT_PRIVATE;
}

/* What decides the place of a line. */
struct place {
	bool hidden;
	double value;
	__u64 samples, address, space;
	const struct line *l;
};

/* Hidden ones and lines without the value are last; then by samples and address, so that output repeats. */
static int compare_places(const void *pa, const void *pb)
{
	const struct place *a = pa, *b = pb;

	if (a->hidden != b->hidden)
		return a->hidden ? 1 : -1;
	if (a->value != b->value)
		return a->value > b->value ? -1 : 1;
	if (a->samples != b->samples)
		return a->samples > b->samples ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	if (a->space != b->space)
		return a->space < b->space ? -1 : 1;
	return a->l < b->l ? -1 : a->l > b->l;
}

static void swap_places(struct place *a, struct place *b)
{
	const struct place was = *a;

	*a = *b;
	*b = was;
}

/* Restore a heap, whose last place is on top, after the place at @i came earlier. */
static void sift(struct place *heap, size_t n, size_t i)
{
	size_t last = i;

	do {
		swap_places(&heap[i], &heap[last]);
		i = last;
		for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < n; child++)
			if (compare_places(&heap[child], &heap[last]) > 0)
				last = child;
	} while (last != i);
}

/* Move the first @keep of the order to the front, sorted: most lines are not shown. */
static void sort_first(struct place *place, size_t n, size_t keep)
{
	for (size_t i = keep / 2; i--;)
		sift(place, keep, i);
	for (size_t i = keep; keep && i < n; i++) {
		if (compare_places(&place[i], &place[0]) > 0)
			continue;
		swap_places(&place[i], &place[0]);
		sift(place, keep, 0);
	}
	qsort(place, keep, sizeof(*place), compare_places);
}

static struct place place_of(const struct line_rows *rows, const struct line *l)
{
	const struct line_row row = { .l = l };
	double value = l->cycles; /* without a period they rank as well */

	if (rows->p->view.sort != TABLE_CYCLES)
		value = line_rows_value(rows, &row, rows->p->view.sort);
	return (struct place){ is_hidden(rows, l), isnan(value) ? -1 : value,
			       l->samples,	   l->address,
			       l->space,	   l };
}

/* Sort, cut, and add up: rows are only of what is listed. */
static void order_rows(struct line_rows *rows)
{
	const struct lines *lines = rows->lines;
	struct place *place = xcalloc(lines->n, sizeof(*place));
	size_t keep = lines->n;

	for (size_t i = 0; i < lines->n; i++) {
		place[i] = place_of(rows, &lines->line[i]);
		rows->hidden += place[i].hidden;
		line_rows_add(&rows->total, &lines->line[i]);
	}
	keep -= rows->hidden;
	keep = rows->p->view.top && rows->p->view.top < keep ? rows->p->view.top : keep;
	sort_first(place, lines->n, keep);
	for (size_t i = keep; i < lines->n; i++)
		line_rows_add(&rows->rest, place[i].l);
	free(rows->row);
	rows->row = xcalloc(keep, sizeof(*rows->row));
	for (size_t i = 0; i < keep; i++)
		rows->row[i].l = place[i].l;
	free(place);
	rows->n_rest = lines->n - keep;
	rows->n = keep;
}

void line_rows_only(struct line_rows *rows, const struct line *l)
{
	set_keys(rows);
	rows->n = 1;
	rows->row[0] = (struct line_row){ .l = l };
	name_rows(rows);
}

size_t lines_put_top(struct json_writer *w, const struct lines_print *p, const struct lines *lines,
		     bool judged,
		     void (*more)(void *ctx, struct json_writer *w, const struct line *l),
		     void *ctx)
{
	struct line_rows rows = line_rows_new(p, lines, 0);
	size_t hidden;

	rows.for_people = judged;
	order_rows(&rows);
	hidden = rows.hidden;
	for (size_t i = 0; i < rows.n; i++) {
		if (!rows.row[i].l->physical && !rows.row[i].l->virtual)
			continue;
		json_begin_object(w, NULL);
		put_short(w, &rows, &rows.row[i], judged);
		if (more)
			more(ctx, w, rows.row[i].l);
		json_end(w);
	}
	line_rows_free(&rows);
	return hidden;
}

void line_rows_list(FILE *f, const struct lines_print *p, const struct lines *lines)
{
	struct line_rows rows = line_rows_new(p, lines, 0);

	rows.for_people = format_is_text(p->view.format);
	for (size_t i = 0; i < lines->n; i++)
		line_rows_count(&rows, &lines->line[i]);
	set_keys(&rows);
	order_rows(&rows);
	if (p->view.format != FORMAT_JSON)
		name_rows(&rows);
	if (p->view.format == FORMAT_CSV)
		line_rows_csv(f, &rows);
	else if (p->view.format == FORMAT_JSON)
		line_rows_json(f, &rows, NULL, NULL, "lines", line_rows_put_line);
	else
		print_text(f, &rows);
	line_rows_free(&rows);
}
