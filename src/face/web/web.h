/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The HTTP server of /metrics and of the page, without threads: the caller polls web_fd() and calls
 * web_run().
 */
#ifndef IBSCOPE_WEB_H
#define IBSCOPE_WEB_H

#include "base/err.h"
#include "metrics/metrics.h"
#include "metrics/metrics_history.h"

struct web;

#define WEB_LISTEN_DEFAULT "127.0.0.1:9950" /* a port not in Prometheus' list of exporters */
#define WEB_LISTEN_MAX	   8

/* An empty text is the default. */
struct web_opts {
	char pin_dir[256];
	char listen[WEB_LISTEN_MAX][128]; /* HOST:PORT, [IPV6]:PORT or :PORT */
	size_t n_listen;
	char telemetry_path[128];
	char config_file[256]; /* "": neither TLS nor passwords */
	struct metrics_opts metrics;
	struct metrics_history_opts history;
};

/* For an option row: add an address. @opts: a struct web_opts. Return: 0 or -EINVAL with @err. */
int web_add_listen(void *opts, const char *arg, struct err *err);

/**
 * web_listen_all() - read the configuration, listen, and open the pins, if there are any
 *
 * Does everything that may need privileges. Logs each address.
 *
 * Return: 0, or a negative errno with @err; -EINVAL if an option or the file is invalid.
 */
int web_listen_all(const struct web_opts *opts, struct web **out, struct err *err);

/* Begin to answer requests; call it after dropping privileges. Return: 0 or a negative errno with @err. */
int web_start(struct web *w, struct err *err);

/* A file that is readable when web_run() has something to do. */
int web_fd(const struct web *w);

/* Milliseconds until web_run() is due in any case; -1: never. */
int web_timeout_ms(const struct web *w);

/*
 * Handle what is due, for not much more than 50 ms of CPU time (or one password), so that the caller gets its
 * turn however many requests clients send.
 */
void web_run(struct web *w);

void web_close(struct web *w); /* accepts NULL */

/* Check options without using them. Return: 0 or a negative errno with @err. */
int web_check_telemetry_path(const char *path, struct err *err);
int web_check_config(const char *path, struct err *err);

#endif
