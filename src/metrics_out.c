// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_out.h"

#include "utf8.h"

#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static const char *const types[] = { "counter", "gauge", "histogram", "summary", "info" };

const char *metric_suffix(const struct metric *m)
{
	return m->type == METRIC_COUNTER ? "_total" : m->type == METRIC_INFO ? "_info" : "";
}

void metric_head(FILE *f, enum metrics_format format, const struct metric *m)
{
	bool om = format == METRICS_OPENMETRICS;
	/* the text format names a counter as its samples are named, and has no info */
	const char *suffix = om ? "" : metric_suffix(m);
	const char *type = types[!om && m->type == METRIC_INFO ? METRIC_GAUGE : m->type];

	fprintf(f, "# HELP %s%s %s\n# TYPE %s%s %s\n", m->name, suffix, m->help, m->name, suffix,
		type);
	if (om && *m->unit)
		fprintf(f, "# UNIT %s %s\n", m->name, m->unit);
}

void metric_one(FILE *f, enum metrics_format format, const struct metric *m, double value)
{
	metric_head(f, format, m);
	fprintf(f, "%s%s %.15g\n", m->name, metric_suffix(m), value);
}

/* Bytes that are written as they are. */
static size_t plain_len(const char *s)
{
	const char *p = s;
	size_t n;

	while (*p && *p != '\n' && *p != '\\' && *p != '"' && (n = utf8_len(p)))
		p += n;
	return p - s;
}

void metric_label(FILE *f, const char *sep, const char *name, const char *value)
{
	fprintf(f, "%s%s=\"", sep, name);
	for (;;) {
		size_t plain = plain_len(value);

		fwrite(value, 1, plain, f);
		value += plain;
		if (!*value)
			break;
		if (*value == '\n')
			fputs("\\n", f);
		else if (*value == '\\' || *value == '"')
			fprintf(f, "\\%c", *value);
		else
			fputs(REPLACEMENT, f);
		value++;
	}
	fputc('"', f);
}

void metric_json_number(FILE *f, const char *name, __u64 value, bool known)
{
	fprintf(f, ",\"%s\":", name);
	if (known)
		fprintf(f, "%llu", value);
	else
		fputs("null", f);
}

void metric_describe(FILE *f, const struct metric *m)
{
	fprintf(f, "%s%-*s %-9s %s\n", m->name, (int)(44 - strlen(m->name)), metric_suffix(m),
		types[m->type], m->help);
}
