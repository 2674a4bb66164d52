/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Headers that say which form of an answer a client likes best. */
#ifndef IBSCOPE_WEB_ACCEPT_H
#define IBSCOPE_WEB_ACCEPT_H

#include "metrics.h"

/**
 * web_accept() - the format for a client
 * @accept: its header Accept, or NULL
 *
 * OpenMetrics only for who asks for version 1.0.0 (or 0.0.1, or none) and likes it no less than
 * text; all others get text.
 */
enum metrics_format web_accept(const char *accept);

/* Does Accept-Encoding, which may be NULL, allow gzip? */
bool web_accept_gzip(const char *accept_encoding);

#endif
