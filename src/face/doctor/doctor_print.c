// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "base/err.h"
#include "base/json_writer.h"
#include "base/output_file.h"
#include "base/screen.h"

const char *const doctor_status_names[] = { "ok", "info", "warn", "no" };

#define INDENT 32 /* where values begin */

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
	screen_wrap(f, r->value, INDENT, width);
	if (*r->why) {
		fprintf(f, "%*s", INDENT, "why: ");
		screen_wrap(f, r->why, INDENT, width);
	}
	if (*r->remedy) {
		fprintf(f, "%*s", INDENT, "do: ");
		screen_wrap(f, r->remedy, INDENT, width);
	}
}

__attribute__((format(printf, 3, 4))) static void wrap(FILE *f, unsigned int width, const char *fmt,
						       ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	screen_wrap(f, text, 0, width);
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
	if (!d->can_sample && first) {
		wrap(f, width, "First obstacle: %s: %s.", first->title, first->why);
		wrap(f, width, "Do: %s.", first->remedy);
	}
	if (!d->can_sample && d->can_simulate)
		wrap(f, width,
		     "--source sim works: it runs the same program on simulated samples.");
}

int doctor_print_json(const struct doctor_report *d, FILE *f, struct err *e)
{
	struct json_writer w = { .f = f, .indent = 2 };

	json_begin_object(&w, NULL);
	json_begin_array(&w, "checks");
	for (size_t i = 0; i < d->n; i++) {
		const struct doctor_result *r = &d->result[i];

		json_begin_object(&w, NULL);
		json_put_text(&w, "id", r->id);
		json_put_text(&w, "group", r->group);
		json_put_text(&w, "title", r->title);
		json_put_text(&w, "status", doctor_status_names[r->status]);
		json_put_text(&w, "value", r->value);
		json_put_text_if_any(&w, "why", r->why);
		json_put_text_if_any(&w, "remedy", r->remedy);
		json_end(&w);
	}
	json_end(&w);
	json_put_bool(&w, "can_sample", d->can_sample);
	json_begin_object(&w, "source_available");
	json_put_bool(&w, "ibs", d->can_sample);
	json_put_bool(&w, "sim", d->can_simulate);
	json_finish(&w);
	return output_stream_flush(f, e);
}
