// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* One line: which bytes are accessed, and by which threads. */
#include "lines_rows.h"

#define OTHERS_MAX 4 /* virtual addresses that are named */

/* An access with the names that identify its row. */
struct named {
	struct line_access access;
	const char *name[LINE_ACCESS_NAMES];
};

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

static int compare_names(const char *a, const char *b)
{
	return a == b ? 0 : !a ? 1 : !b ? -1 : strcmp(a, b);
}

static int compare_named(const void *pa, const void *pb)
{
	const struct named *a = pa, *b = pb;
	int c = (int)line_access_offset(&a->access) - (int)line_access_offset(&b->access);

	c = c ?: a->access.width - b->access.width;
	c = c ?: a->access.kind - b->access.kind;
	for (int k = 0; !c && k < LINE_ACCESS_NAMES; k++)
		c = compare_names(a->name[k], b->name[k]);
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

/* A row is a line of its own, with the accesses that have the same names. */
static void fill(struct line_rows *rows, const struct line *l, struct line *of,
		 struct line_access *list)
{
	struct named *named = xcalloc(l->n_access, sizeof(*named));

	for (size_t i = 0; i < l->n_access; i++) {
		named[i].access = l->access[i];
		for (int k = 0; k < LINE_ACCESS_NAMES; k++)
			named[i].name[k] = line_namer_of(&rows->namer, k, &l->access[i]);
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
		r->name[0] = number(rows, line_access_offset(a));
		r->name[1] = a->width ? number(rows, a->width) : NULL;
		r->name[2] = kind_name(a);
		memcpy(&r->name[3], named[i].name, sizeof(named[i].name));
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

static void print_ruler(FILE *f, const struct line *l)
{
	unsigned int kind[LINE_BYTES] = { 0 };

	for (size_t i = 0; i < l->n_access; i++) {
		const struct line_access *a = &l->access[i];
		unsigned int at = line_access_offset(a), end = at + (a->width ?: 1);

		for (; line_access_slots(a) && at < end && at < LINE_BYTES; at++)
			kind[at] |= a->kind & LINE_PREFETCH ? 0 : a->kind;
	}
	fputs("\noffset    ", f);
	for (unsigned int i = 0; i < LINE_BYTES; i += SLOT_BYTES)
		fprintf(f, i + SLOT_BYTES < LINE_BYTES ? "%-8u" : "%u", i);
	fputs("\nbytes     ", f);
	for (unsigned int i = 0; i < LINE_BYTES; i++)
		fputc(kind[i] & LINE_STORE ? 'w' : kind[i] & LINE_LOAD ? 'r' : '.', f);
	fputs("\n\n", f);
}

static void print_text(FILE *f, struct line_rows *rows, const struct line *l)
{
	char *advice = line_advice(&rows->namer, l);

	line_rows_head(f, rows);
	fprintf(f, "\nline      0x%llx, %s%s\n", (unsigned long long)l->address,
		l->physical ? "physical" : "virtual", l->moved ? "; its page moved" : "");
	if (l->physical)
		print_virtual(f, l);
	fprintf(f, "verdict   %s%s\n", l->likely ? "likely " : "", line_verdict_name(l->verdict));
	if (advice)
		report_print_line(f, "advice    %s", advice);
	free(advice);
	print_ruler(f, l);
	line_rows_table(f, rows);
}

static json_t *json_access(struct line_rows *rows, const struct line_row *r)
{
	json_t *j = json_object();

	for (unsigned int k = 0; k < rows->n_keys; k++)
		json_object_set_new(j, rows->key[k], line_rows_json_name(r->name[k]));
	line_rows_json_values(rows, r, j);
	return j;
}

int lines_print_one(FILE *f, const struct lines_print *p, const struct lines *lines, __u64 address,
		    struct err *err)
{
	static const char *const keys[] = { "offset",	"width", "access",   "variable",
					    "function", "comm",	 "container" };
	const struct line *l = find(lines, address);
	struct line_access *list;
	struct line *of;
	struct line_rows rows;

	if (!l)
		return err_set(err, -ENOENT, "--line: no sample is in the line of 0x%llx",
			       (unsigned long long)address);
	rows = line_rows_new(p, lines, l->n_access);
	of = xcalloc(l->n_access, sizeof(*of));
	list = xcalloc(l->n_access, sizeof(*list));
	rows.n_keys = ARRAY_SIZE(keys);
	memcpy(rows.key, keys, sizeof(keys));
	fill(&rows, l, of, list);
	line_rows_count(&rows, l);
	if (p->format == REPORT_CSV)
		line_rows_csv(f, &rows);
	else if (p->format == REPORT_JSON)
		line_rows_json(f, &rows, "accesses", json_access);
	else
		print_text(f, &rows, l);
	line_rows_free(&rows);
	free(list);
	free(of);
	return 0;
}
