// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "serve_web.h"

#include <errno.h>
#include <string.h>

struct web_settings {
	char listen[WEB_LISTEN_MAX][128], config[256];
	size_t n_listen; /* 0: nothing is served */
};

static int set_text(char *to, size_t size, const char *arg, const char *option, struct err *err)
{
	if (strlen(arg) >= size)
		return err_set(err, -EINVAL, "%s: longer than %zu characters", option, size - 1);
	strcpy(to, arg);
	return 0;
}

static int set_listen(void *ctx, const char *arg, struct err *err)
{
	struct web_settings *s = ctx;

	if (s->n_listen == WEB_LISTEN_MAX)
		return err_set(err, -EINVAL, "--web.listen-address: more than %d addresses",
			       WEB_LISTEN_MAX);
	return set_text(s->listen[s->n_listen++], sizeof(s->listen[0]), arg, "--web.listen-address",
			err);
}

static int set_config(void *ctx, const char *arg, struct err *err)
{
	struct web_settings *s = ctx;

	return set_text(s->config, sizeof(s->config), arg, "--web.config.file", err);
}

static const struct option_row rows[] = {
	{ "web.listen-address", 0, "ADDR",
	  "serve /metrics on HOST:PORT, [IPV6]:PORT or :PORT, as ibscope-exporter does without "
	  "privileges",
	  set_listen },
	{ "web.config.file", 0, "FILE", "TLS and passwords of that endpoint", set_config },
};

static int check(const void *extra, struct err *err)
{
	const struct web_settings *s = extra;

	if (!*s->config)
		return 0;
	if (!s->n_listen)
		return err_set(err, -EINVAL, "--web.config.file needs --web.listen-address");
	return web_check_config(s->config, err);
}

const struct collector_extra serve_web_extra = {
	.title = "Metrics endpoint",
	.rows = rows,
	.n = sizeof(rows) / sizeof(rows[0]),
	.size = sizeof(struct web_settings),
	.check = check,
};

int serve_web_open(const struct collector_settings *set, struct web **out, struct err *err)
{
	const struct web_settings *s = set->extra;
	struct web_opts opts = { .pin_dir = set->pin_dir,
				 .n_listen = s->n_listen,
				 .config_file = *s->config ? s->config : NULL };

	*out = NULL;
	if (!s->n_listen)
		return 0;
	for (size_t i = 0; i < s->n_listen; i++)
		opts.listen[i] = s->listen[i];
	return web_listen_all(&opts, out, err) ?: web_start(*out, err);
}
