// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One line: which bytes are accessed, and by which threads. */
#include "lines_rows.h"

#include "heap/heap_blocks.h"
#include "base/text.h"
#include "base/utf8.h"
#include "base/u64_map.h"

#define OTHERS_MAX 4   /* virtual addresses that are named */
#define WIDE	   120 /* columns of the screen from which a single container is shown */
#define CONTAINER  6   /* key */
#define CANDIDATES 5   /* lines of a variable that an error names */

/* An access with the names that identify its row. */
struct named {
	struct line_access access;
	struct line_label label[LINE_ACCESS_NAMES];
};

static int compare_named(const void *pa, const void *pb)
{
	const struct named *a = pa, *b = pb;
	int c = (int)line_access_offset(&a->access) - (int)line_access_offset(&b->access);

	c = c ?: a->access.width - b->access.width;
	c = c ?: a->access.kind - b->access.kind;
	for (int k = 0; !c && k < LINE_ACCESS_NAMES; k++)
		c = line_label_compare(&a->label[k], &b->label[k]);
	return c;
}

static const char *kind_name(const struct line_access *a)
{
	if (a->kind & LINE_PREFETCH)
		return "prefetch";
	return a->kind == (LINE_LOAD | LINE_STORE) ? "load+store"
	       : a->kind & LINE_STORE		   ? "store"
						   : "load";
}

static const char *number(struct line_rows *rows, unsigned int v)
{
	char buf[16];

	snprintf(buf, sizeof(buf), "%u", v);
	return intern_text(&rows->namer.texts, intern_get(&rows->namer.texts, buf));
}

/* Text has one column for a function and what it is inlined into. */
static void put_labels(struct line_rows *rows, const struct line_label *label, const char **name)
{
	const struct line_label *function = &label[LINE_FUNCTION];

	for (int k = 0; k < LINE_ACCESS_NAMES; k++)
		*name++ = format_is_text(rows->p->view.format)
				  ? line_label_text(&rows->namer, &label[k], false)
				  : label[k].name;
	*name++ = label[LINE_FIELD].mangled;
	*name++ = function->mangled;
	*name++ = function->into;
	*name++ = function->into_mangled;
}

/*
 * A row is a line of its own, with the accesses that have the same names. Hot lines have functions and tasks
 * of the line, not of each slot.
 */
static void fill(struct line_rows *rows, const struct line *l, struct line *of,
		 struct line_access *list)
{
	struct named *named = xcalloc(l->n_access, sizeof(*named));
	const bool hot = rows->lines->hot.tables;

	for (size_t i = 0; i < l->n_access; i++) {
		named[i].access = l->access[i];
		for (int k = 0; k < (hot ? LINE_FIELD + 1 : LINE_ACCESS_NAMES); k++)
			line_namer_of(&rows->namer, k, &l->access[i], &named[i].label[k]);
	}
	qsort(named, l->n_access, sizeof(*named), compare_named);
	rows->n = 0;
	for (size_t i = 0; i < l->n_access; i++) {
		const struct line_access *a = &named[i].access;
		struct line_row *r;

		list[i] = *a;
		if (i && !compare_named(&named[i - 1], &named[i])) {
			of[rows->n - 1].n_access++;
			continue;
		}
		of[rows->n] = (struct line){ .access = &list[i], .n_access = 1 };
		r = &rows->row[rows->n];
		r->l = &of[rows->n++];
		r->slot = hot;
		r->name[0] = number(rows, line_access_offset(a));
		r->name[1] = a->width ? number(rows, a->width) : NULL;
		r->name[2] = kind_name(a);
		put_labels(rows, named[i].label, &r->name[3]);
	}
	free(named);
	for (size_t i = 0; i < rows->n; i++) {
		line_judge(&of[i], true);
		line_rows_add(&rows->total, &of[i]);
	}
}

/* Where processes have the line. */
static void print_virtual(FILE *f, const struct line *l)
{
	struct {
		__u64 addr, space;
	} at[OTHERS_MAX] = { 0 };
	unsigned int n = 0, k;

	for (size_t i = 0; i < l->n_access; i++) {
		const struct line_access *a = &l->access[i];
		__u64 addr = a->addr & ~(__u64)(LINE_BYTES - 1);
		__u64 space = line_space(a);

		if (!a->addr)
			continue;
		for (k = 0; k < n && (at[k].addr != addr || at[k].space != space);)
			k++;
		if (k == OTHERS_MAX)
			break;
		n = k == n ? n + 1 : n;
		at[k].addr = addr;
		at[k].space = space;
	}
	for (k = 0; k < n; k++) {
		fprintf(f, "%s0x%llx", k ? ", " : "virtual   ", (unsigned long long)at[k].addr);
		if (at[k].space == LINE_SPACE_KERNEL)
			fputs(" of the kernel", f);
		else
			fprintf(f, " of process %llu", (unsigned long long)at[k].space);
	}
	fputs(n == OTHERS_MAX ? " ...\n" : n ? "\n" : "", f);
}

static void print_offsets(FILE *f)
{
	fputs("\noffset    ", f);
	for (unsigned int i = 0; i < LINE_BYTES; i += SLOT_BYTES)
		fprintf(f, i + SLOT_BYTES < LINE_BYTES ? "%-8u" : "%u\n", i);
}

static void print_bytes(FILE *f, const struct line *l)
{
	unsigned int kind[LINE_BYTES] = { 0 };

	for (size_t i = 0; i < l->n_access; i++) {
		const struct line_access *a = &l->access[i];
		unsigned int at = line_access_offset(a), end = at + (a->width ?: 1);

		for (; line_access_slots(a) && at < end && at < LINE_BYTES; at++)
			kind[at] |= a->kind & LINE_PREFETCH ? 0 : a->kind;
	}
	fputs("bytes     ", f);
	for (unsigned int i = 0; i < LINE_BYTES; i++)
		fputc(kind[i] & LINE_STORE ? 'w' : kind[i] & LINE_LOAD ? 'r' : '.', f);
	fputs("\n\n", f);
}

/* Threads that access a slot. */
static double threads(const struct line *l, unsigned int slot, unsigned int kinds)
{
	struct u64_map tids = { 0 };
	double n;

	for (size_t i = 0; i < l->n_access; i++) {
		const struct line_access *a = &l->access[i];

		if (a->kind & kinds && line_access_slots(a) >> slot & 1 &&
		    u64_map_get(&tids, a->tid) == U64_MAP_NONE)
			u64_map_put(&tids, a->tid, 0);
	}
	n = tids.n;
	u64_map_free(&tids);
	return n;
}

static void print_slot_values(FILE *f, const struct screen *screen, const char *name,
			      const double *value)
{
	char buf[32];

	fprintf(f, "%-10s", name);
	for (unsigned int s = 0; s < LINE_SLOTS; s++) {
		screen_count(screen, value[s], buf, sizeof(buf));
		fprintf(f, s + 1 < LINE_SLOTS ? "%-8s" : "%s\n", buf);
	}
}

/* What the tables of the kernel know of the slots of a hot line. */
static void print_slots(FILE *f, const struct line_rows *rows, const struct line *l)
{
	enum { LOADS, STORES, HITM, READERS, WRITERS, N };
	static const char *const names[N] = { "loads", "stores", "hitm", "readers", "writers" };
	struct line_slot slots[LINE_SLOTS];
	double value[N][LINE_SLOTS];

	line_slots(l, slots);
	fputs("slots     ", f);
	for (unsigned int s = 0; s < LINE_SLOTS; s++) {
		for (unsigned int i = 0; i < SLOT_BYTES; i++)
			fputc(line_slot_mark(&slots[s]), f);
		value[LOADS][s] = slots[s].loads;
		value[STORES][s] = slots[s].stores;
		value[HITM][s] = slots[s].hitm;
		value[READERS][s] = threads(l, s, LINE_LOAD);
		value[WRITERS][s] = threads(l, s, LINE_STORE);
	}
	fputc('\n', f);
	for (unsigned int k = 0; k < N; k++)
		if (k != HITM || !(rows->lines->cpu.quirks & IBS_QUIRK_NO_CACHE_HIT_ST))
			print_slot_values(f, rows->p->screen, names[k], value[k]);
	fputs("\nsamples and threads are known by slot; functions and latencies only by line\n\n",
	      f);
}

/* "in 4,160 bytes from make_table table.c:31 + 0x40" */
static void print_allocation(FILE *f, struct line_rows *rows, const struct line *l)
{
	struct heap_block b;
	const char *site;
	__u64 first = ~0ull;

	if (!line_namer_block(&rows->namer, l, &b, &site))
		return;
	for (size_t i = 0; i < l->n_access; i++)
		if (l->access[i].addr - b.addr < b.size && l->access[i].addr < first)
			first = l->access[i].addr;
	first = (first & ~(__u64)(LINE_BYTES - 1)) < b.addr ? b.addr
							    : first & ~(__u64)(LINE_BYTES - 1);
	fprintf(f, "in        %s bytes from ", TEXT_COUNT(b.size));
	utf8_put(f, site);
	fprintf(f, " + 0x%llx, allocated by thread %u\n", (unsigned long long)(first - b.addr),
		b.tid);
}

static void print_text(FILE *f, struct line_rows *rows, const struct line *l)
{
	line_rows_head(f, rows);
	if (!l)
		return;
	fprintf(f, "\nline      0x%llx, %s%s\n", (unsigned long long)l->address,
		l->physical ? "physical" : "virtual", l->moved ? "; its page moved" : "");
	if (l->physical)
		print_virtual(f, l);
	print_allocation(f, rows, l);
	fprintf(f, "verdict   %s%s\n", l->likely ? "likely " : "", line_verdict_name(l->verdict));
	line_rows_advice(f, rows, l, "advice    ", 10);
	print_offsets(f);
	if (rows->lines->hot.tables) {
		print_slots(f, rows, l);
		line_rows_only(rows, l);
	} else {
		print_bytes(f, l);
	}
	line_rows_table(f, rows);
	line_rows_next_function(f, rows, l);
}

static void put_access(struct json_writer *w, struct line_rows *rows, const struct line_row *r)
{
	for (unsigned int k = 0; k < rows->n_keys; k++)
		json_put_text(w, rows->key[k], r->name[k]);
	line_rows_put_values(w, rows, r);
}

static bool one_container(const struct line_rows *rows)
{
	for (size_t i = 1; i < rows->n; i++)
		if (rows->row[i].name[CONTAINER] != rows->row[0].name[CONTAINER])
			return false;
	return true;
}

/* Print @l alone; NULL: no line. */
static void print_detail(FILE *f, struct line_rows *rows, const struct line *l)
{
	/* the last four only for programs */
	static const char *const keys[] = { "offset",
					    "width",
					    "access",
					    "variable",
					    "function",
					    "comm",
					    [CONTAINER] = "container",
					    "variable_mangled",
					    "function_mangled",
					    "inlined_into",
					    "inlined_into_mangled" };
	const size_t n = l ? l->n_access : 0;
	struct line *of = xcalloc(n, sizeof(*of));
	struct line_access *list = xcalloc(n, sizeof(*list));

	memcpy(rows->key, keys, sizeof(keys));
	if (l) {
		fill(rows, l, of, list);
		line_rows_count(rows, l);
	}
	rows->n_keys = ARRAY_SIZE(keys);
	if (format_is_text(rows->p->view.format)) /* HITM needs the room */
		rows->n_keys = CONTAINER + (rows->p->screen->width >= WIDE || !one_container(rows));
	if (rows->p->view.format == FORMAT_CSV)
		line_rows_csv(f, rows);
	else if (rows->p->view.format == FORMAT_JSON)
		line_rows_json(f, rows, l, line_rows_put_line, "accesses", put_access);
	else
		print_text(f, rows, l);
	free(list);
	free(of);
}

static const struct line *find(const struct lines *lines, __u64 address)
{
	const struct line *best = NULL, *l;

	address /= LINE_BYTES;
	for (int phys = 1; phys >= 0 && !best; phys--) {
		for (l = lines->line; l < lines->line + lines->n; l++) {
			bool is = phys && l->physical && l->address / LINE_BYTES == address;

			for (size_t i = 0; !is && i < l->n_access; i++) {
				const struct line_access *a = &l->access[i];
				__u64 at = phys ? a->phys : a->addr;

				is = at && at / LINE_BYTES == address;
			}
			if (is && (!best || l->samples > best->samples))
				best = l;
		}
	}
	return best;
}

/* Is it called so: "stats", "stats+8", or as the linker has it? */
static bool has_variable(struct line_namer *n, const struct line *l, const char *variable)
{
	static const enum line_name kinds[] = { LINE_VARIABLE, LINE_FIELD };

	for (size_t i = 0; i < l->n_access; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
			struct line_label of;

			line_namer_of(n, kinds[k], &l->access[i], &of);
			if (of.name && (!strcmp(of.name, variable) ||
					(of.mangled && !strcmp(of.mangled, variable))))
				return true;
		}
	}
	return false;
}

/* Is there a field called so, as advice names it: "stats.hits", or "stats[].hits" in an array? */
static bool has_field(struct line_namer *n, const struct line *l, const char *name)
{
	const char *dot = strrchr(name, '.');
	size_t len = dot ? dot - name : 0;
	char variable[256];

	if (len > 2 && !memcmp(dot - 2, "[]", 2))
		len -= 2;
	if (!len || len >= sizeof(variable))
		return false;
	snprintf(variable, sizeof(variable), "%.*s", (int)len, name);
	if (!has_variable(n, l, variable))
		return false;
	for (unsigned int slot = 0; slot < LINE_SLOTS; slot++) {
		struct line_field field;

		if (line_slot_field(n, l, slot, &field) && field.field &&
		    !strcmp(field.field, dot + 1))
			return true;
	}
	return false;
}

/* The line with a variable or field; NULL with @err if several have it. */
static const struct line *find_variable(const struct lines_print *p, const struct lines *lines,
					struct err *err)
{
	struct line_namer namer = { .tasks = p->tasks, .symbols = p->symbols };
	const struct line *found = NULL;
	char list[CANDIDATES * 24] = "";
	size_t n = 0, at = 0;

	for (size_t i = 0; i < lines->n; i++) {
		const struct line *l = &lines->line[i];

		if ((!l->physical && !l->virtual) ||
		    (!has_variable(&namer, l, p->variable) && !has_field(&namer, l, p->variable)))
			continue;
		found = l;
		if (n++ < CANDIDATES)
			at += snprintf(list + at, sizeof(list) - at, "%s0x%llx", at ? ", " : "",
				       (unsigned long long)l->address);
	}
	line_namer_free(&namer);
	if (n < 2)
		return found;
	err_set(err, -ENOENT, "--line: '%s' is in %zu lines: %s%s; give an address", p->variable, n,
		list, n > CANDIDATES ? ", ..." : "");
	return NULL;
}

static int missing(const struct lines_print *p, const struct lines *lines, struct err *err)
{
	char what[256];

	if (lines->hot.tables && !lines->n)
		return err_set(err, -ENOENT,
			       "--line: no line was accessed often enough to be kept; take longer, "
			       "or record it with `ibscope record`");
	if (p->is_address)
		snprintf(what, sizeof(what), "the line of 0x%llx", (unsigned long long)p->line);
	else
		snprintf(what, sizeof(what), "a line with a variable or field '%.200s'",
			 p->variable);
	if (lines->hot.tables)
		return err_set(err, -ENOENT,
			       "--line: %s is not among the %zu hottest lines, the "
			       "only ones with details; record it with `ibscope record`",
			       what, lines->n);
	return err_set(err, -ENOENT, "--line: no sample is in %s%s", what,
		       p->is_address ? "" : "; `ibscope c2c --all` lists variables and addresses");
}

/* Only one line. */
static int print_one(FILE *f, const struct lines_print *p, const struct lines *lines,
		     struct err *err)
{
	const struct line *l = p->is_address ? find(lines, p->line) : NULL;
	struct line_rows rows;

	*err->text = 0;
	if (!l && p->variable)
		l = find_variable(p, lines, err);
	if (!l && *err->text)
		return -ENOENT;
	rows = line_rows_new(p, lines, l ? l->n_access : 0);
	if (l || lines->hot.tables)
		print_detail(f, &rows, l);
	line_rows_free(&rows);
	return l ? 0 : missing(p, lines, err);
}

int lines_print(FILE *f, const struct lines_print *p, const struct lines *lines, struct err *err)
{
	if (p->has_line)
		return print_one(f, p, lines, err);
	line_rows_list(f, p, lines);
	return 0;
}
