/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_WEB_OPTS_H
#define IBSCOPE_WEB_OPTS_H

#include "metrics/metrics_opts.h"

#define WEB_LISTEN_MAX 8

struct web_opts {
	const char *pin_dir;
	const char *listen[WEB_LISTEN_MAX]; /* as for web_listen() */
	size_t n_listen;		    /* 0: the default one */
	const char *telemetry_path;	    /* NULL: /metrics */
	const char *config_file;	    /* NULL: neither TLS nor passwords */
	struct metrics_opts metrics;
};

#endif
