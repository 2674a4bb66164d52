// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_out.h"

#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

#define LABEL_MAX (4 * 4096) /* bytes of the longest cgroup path, escaped */

static const char *const types[] = { "counter", "gauge", "histogram", "summary", "info" };

const char *metric_suffix(const struct metric_head *m)
{
	return m->type == METRIC_COUNTER ? "_total" : m->type == METRIC_INFO ? "_info" : "";
}

void metric_write_head(FILE *f, enum metrics_format format, const struct metric_head *m)
{
	bool om = format == METRICS_OPENMETRICS;
	/* in the text format a counter has the name of its samples, and there is no info */
	const char *suffix = om ? "" : metric_suffix(m);
	const char *type = types[!om && m->type == METRIC_INFO ? METRIC_GAUGE : m->type];

	fprintf(f, "# HELP %s%s %s\n# TYPE %s%s %s\n", m->name, suffix, m->help, m->name, suffix,
		type);
	if (om && *m->unit)
		fprintf(f, "# UNIT %s %s\n", m->name, m->unit);
}

/* Escaped as in other outputs, and then as the format requires. */
void metric_write_label(FILE *f, const char *sep, const char *name, const char *value)
{
	char text[LABEL_MAX];

	utf8_escape(text, sizeof(text), value);
	fprintf(f, "%s%s=\"", sep, name);
	for (const char *p = text; *p; p++) {
		if (*p == '\\' || *p == '"')
			fputc('\\', f);
		fputc(*p, f);
	}
	fputc('"', f);
}

void metric_describe(FILE *f, const struct metric_head *m)
{
	fprintf(f, "%s%-*s %-9s %s\n", m->name, (int)(44 - strlen(m->name)), metric_suffix(m),
		types[m->type], m->help);
}
