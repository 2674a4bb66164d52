// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "doctor.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/err.h"

const char *const doctor_status_names[] = { "ok", "info", "warn", "no" };

#define INDENT 32 /* where values begin */

/* Break @s at blanks; the first line continues the current one, the others are indented. */
static void wrap(FILE *f, const char *s, unsigned int width)
{
	size_t room = width - INDENT, n, cut;

	for (;;) {
		n = strlen(s);
		for (cut = n; cut > room;) {
			const char *blank = memrchr(s, ' ', cut > room + 1 ? room + 1 : cut);

			cut = blank ? (size_t)(blank - s) : strcspn(s, " ");
			if (!blank)
				break;
		}
		fprintf(f, "%.*s\n", (int)cut, s);
		s += cut + strspn(s + cut, " ");
		if (!*s)
			return;
		fprintf(f, "%*s", INDENT, "");
	}
}

static void print_result(const struct doctor_result *r, FILE *f, unsigned int width, bool color)
{
	static const char *const codes[] = {
		[DOCTOR_OK] = "\033[32m",
		[DOCTOR_INFO] = "",
		[DOCTOR_WARN] = "\033[33m",
		[DOCTOR_NO] = "\033[1;31m",
	};
	static const char *const marks[] = {
		[DOCTOR_OK] = "ok",
		[DOCTOR_INFO] = "-",
		[DOCTOR_WARN] = "warn",
		[DOCTOR_NO] = "NO",
	};

	fprintf(f, "  %s%-4s%s  %-*s", color ? codes[r->status] : "", marks[r->status],
		color && *codes[r->status] ? "\033[0m" : "", INDENT - 8, r->title);
	wrap(f, r->value, width);
	if (*r->why) {
		fprintf(f, "%*s", INDENT, "why: ");
		wrap(f, r->why, width);
	}
	if (*r->remedy) {
		fprintf(f, "%*s", INDENT, "do: ");
		wrap(f, r->remedy, width);
	}
}

void doctor_print(const struct doctor_report *d, FILE *f, unsigned int width, bool color)
{
	const struct doctor_result *first = NULL;
	const char *group = "";
	size_t i, warns = 0;

	if (width < 60)
		width = 60;
	for (i = 0; i < d->n; i++) {
		const struct doctor_result *r = &d->result[i];

		if (strcmp(group, r->group))
			fprintf(f, "%s%s\n", *group ? "\n" : "", r->group);
		group = r->group;
		print_result(r, f, width, color);
		warns += r->status == DOCTOR_WARN;
		if (!first && r->status == DOCTOR_NO)
			first = r;
	}
	fprintf(f, "\n");
	if (d->can_sample)
		fprintf(f, "IBS sampling works here");
	else
		fprintf(f, "IBS sampling does not work here");
	if (warns)
		fprintf(f, " (%zu warning%s above)", warns, warns > 1 ? "s" : "");
	fprintf(f, ".\n");
	if (!d->can_sample && first)
		fprintf(f, "First obstacle: %s: %s.\nDo: %s.\n", first->title, first->why,
			first->remedy);
	if (!d->can_sample && d->can_simulate)
		fprintf(f, "--source sim works: it runs the same program on simulated samples.\n");
}

static json_t *text_or_null(const char *s)
{
	return *s ? json_string(s) : json_null();
}

static json_t *to_json(const struct doctor_report *d)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < d->n; i++) {
		const struct doctor_result *r = &d->result[i];

		json_array_append_new(
			list, json_pack("{s:s,s:s,s:s,s:s,s:s,s:o,s:o}", "id", r->id, "group",
					r->group, "title", r->title, "status",
					doctor_status_names[r->status], "value", r->value, "why",
					text_or_null(r->why), "remedy", text_or_null(r->remedy)));
	}
	return json_pack("{s:o,s:b,s:{s:b,s:b}}", "checks", list, "can_sample", d->can_sample,
			 "source_available", "ibs", d->can_sample, "sim", d->can_simulate);
}

int doctor_print_json(const struct doctor_report *d, FILE *f, struct err *e)
{
	json_t *o = to_json(d);
	int err;

	err = json_dumpf(o, f, JSON_INDENT(2)) || fputc('\n', f) == EOF;
	json_decref(o);
	return err ? err_set(e, -EIO, "cannot write the report: %s", strerror(errno)) : 0;
}
