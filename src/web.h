/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The server of /metrics and of the page for people. One thread, the caller's: it polls, and calls
 * web_run().
 */
#ifndef IBSCOPE_WEB_H
#define IBSCOPE_WEB_H

#include "metrics.h"
#include "web_config.h"

#define WEB_LISTEN_MAX 8

struct web_opts {
	const char *pin_dir;
	const char *listen[WEB_LISTEN_MAX]; /* as web_listen() reads them */
	size_t n_listen;		    /* 0: the default one */
	const char *telemetry_path;	    /* NULL: /metrics */
	const char *config_file;	    /* NULL: neither TLS nor passwords */
	struct metrics_opts metrics;
};

struct web;

/**
 * web_listen_all() - read the configuration, listen, and open what is pinned, if there is anything
 *
 * All that privileges may be needed for. Each address is said on stderr.
 *
 * Return: 0, or a negative errno with @err; -EINVAL if an option or the file is wrong.
 */
int web_listen_all(const struct web_opts *opts, struct web **out, struct err *err);

/* Begin to answer; privileges can be given up before. Return: 0 or a negative errno with @err. */
int web_start(struct web *w, struct err *err);

/* A file that is readable when web_run() has something to do. */
int web_fd(const struct web *w);

/* After how many milliseconds it has anyhow; -1: never. */
int web_timeout_ms(const struct web *w);

void web_run(struct web *w);

void web_close(struct web *w); /* accepts NULL */

/* Only whether an option is right. Return: 0 or -EINVAL with @err. */
int web_check_telemetry_path(const char *path, struct err *err);

#endif
