/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Headers by which a client states the formats that it prefers. */
#ifndef IBSCOPE_WEB_ACCEPT_H
#define IBSCOPE_WEB_ACCEPT_H

#include "metrics/metrics_format.h"

#include <stdbool.h>

/**
 * web_accept() - choose the format for a client
 * @accept: the header Accept, or NULL
 *
 * OpenMetrics if the client asks for version 1.0.0 (or 0.0.1, or none) and prefers it to text, or has
 * no preference; otherwise text.
 */
enum metrics_format web_accept(const char *accept);

/* Whether Accept-Encoding allows gzip; it may be NULL. */
bool web_accept_gzip(const char *accept_encoding);

#endif
