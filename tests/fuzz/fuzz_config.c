// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any text as the file of --config: no crash; what is refused has a reason, which names the line where there is
 * one; what is accepted is within its bounds, and is accepted again.
 */
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collector/collector_settings.h"

#define FILE_NAME "serve.conf"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(int condition)
{
	if (!condition)
		abort();
}

static unsigned long lines(const char *text, size_t size)
{
	unsigned long n = 1;

	for (size_t i = 0; i < size; i++)
		n += text[i] == '\n';
	return n;
}

static void check_reason(const struct settings_source *src, const struct err *err)
{
	static const char where[] = FILE_NAME ":";
	unsigned long line;

	need(*err->text);
	if (strncmp(err->text, where, strlen(where)))
		return;
	line = strtoul(err->text + strlen(where), NULL, 10);
	need(line && line <= lines(src->config_text, src->config_size));
}

static bool is_path(const char *text)
{
	return *text == '/' || !strcmp(text, "none");
}

static void check_conditions(const struct flight_opts *o)
{
	need(o->n_on <= FLIGHT_CONDITIONS && (!o->n_on || o->seconds >= 1));
	for (unsigned int i = 0; i < o->n_on; i++) {
		const struct flight_condition *c = &o->on[i];
		const struct rows none = {};
		struct snapshot nothing = {};
		char value[64];

		need(c->n_tests && c->n_tests <= FLIGHT_TESTS && c->for_s >= 1);
		/* nothing has no latency */
		nothing.ledger.pmu_exact = true;
		if (flight_condition_true(c, &(struct flight_second){ 1, &nothing, &none }, value,
					  sizeof(value)))
			need(strstr(c->text, "samples") || strstr(c->text, "miss_cycles"));
	}
}

static void check_settings(const struct collector_settings *s)
{
	check_conditions(&s->flight);
	need(s->sampling.n_events > 0 && s->sampling.n_events <= COLLECTOR_EVENTS);
	need(*s->pin_dir == '/' && strnlen(s->pin_dir, sizeof(s->pin_dir)) < sizeof(s->pin_dir));
	need(is_path(s->control) && strlen(s->control) <= CONTROL_PATH_MAX);
	need(is_path(s->user_socket) && strlen(s->user_socket) <= CONTROL_PATH_MAX);
	need(!*s->user_jobs || *s->user_jobs == '/');
	need(!((s->pin_mode | s->control_mode) & ~07777u));
	need(s->grace_s >= 1 && s->grace_s <= 86400);
	need(s->lease_s == 0 || (s->lease_s >= 5 && s->lease_s <= 7 * 86400));
	need(s->max_overhead >= 0 && s->max_overhead <= 0.5);
	need(s->nmi_ns >= 0 && s->max_bpf_ns >= 0);
	need(!s->max_rss_bytes || s->max_rss_bytes >= 16 << 20);
}

/* Return: 0, or the error. */
static int parse(const struct settings_source *src)
{
	const struct live_options live = {};
	struct collector_settings s;
	struct err err = { "" };
	int ret;

	optind = 1;
	ret = settings_parse(src, &live, &s, &err);
	need(ret <= 0);
	if (ret)
		check_reason(src, &err);
	else
		check_settings(&s);
	settings_close(&s);
	return ret;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *argv[] = { "serve", "--config=" FILE_NAME, NULL };
	struct settings_source src = { .argc = 2, .argv = argv, .config_size = size };

	src.config_text = malloc(size ?: 1); /* to the byte, so that none behind is read */
	need(src.config_text != NULL);
	memcpy(src.config_text, data, size);
	need(parse(&src) == parse(&src));
	free(src.config_text);
	return 0;
}
