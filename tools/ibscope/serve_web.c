// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The exporter inside of the collector, for who wants one process. */
#include "serve.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static int set_text(char *to, size_t size, const char *arg, const char *option, struct err *err)
{
	if (strlen(arg) >= size)
		return err_set(err, -EINVAL, "%s: longer than %zu characters", option, size - 1);
	strcpy(to, arg);
	return 0;
}

static int set_listen(void *ctx, const char *arg, struct err *err)
{
	struct serve_options *o = ctx;

	if (o->n_web_listen == WEB_LISTEN_MAX)
		return err_set(err, -EINVAL, "--web.listen-address: more than %d addresses",
			       WEB_LISTEN_MAX);
	return set_text(o->web_listen[o->n_web_listen++], sizeof(o->web_listen[0]), arg,
			"--web.listen-address", err);
}

static int set_config(void *ctx, const char *arg, struct err *err)
{
	struct serve_options *o = ctx;

	return set_text(o->web_config, sizeof(o->web_config), arg, "--web.config.file", err);
}

const struct option_row serve_web_rows[] = {
	{ "web.listen-address", 0, "ADDR",
	  "serve /metrics too, as ibscope-exporter does without\n"
	  "                            privileges: HOST:PORT, [IPV6]:PORT or :PORT",
	  set_listen },
	{ "web.config.file", 0, "FILE", "TLS and passwords of that", set_config },
};
const size_t serve_web_n_rows = sizeof(serve_web_rows) / sizeof(serve_web_rows[0]);

int serve_web_check(const struct serve_options *o, struct err *err)
{
	struct web_config c = {};
	int ret;

	if (!*o->web_config)
		return 0;
	if (!o->n_web_listen)
		return err_set(err, -EINVAL, "--web.config.file needs --web.listen-address");
	ret = web_config_read(o->web_config, &c, err);
	web_config_free(&c);
	return ret;
}

int serve_web_start(struct serve *s, struct err *err)
{
	const struct serve_options *o = &s->opts;
	struct web_opts opts = { .pin_dir = o->pin_dir,
				 .n_listen = o->n_web_listen,
				 .config_file = *o->web_config ? o->web_config : NULL };

	if (!o->n_web_listen)
		return 0;
	for (size_t i = 0; i < o->n_web_listen; i++)
		opts.listen[i] = o->web_listen[i];
	signal(SIGPIPE, SIG_IGN);
	return web_listen_all(&opts, &s->web, err) ?: web_start(s->web, err);
}
