/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What HTTP/1.1 forbids and libmicrohttpd accepts. A proxy before us may read such a request otherwise. */
#ifndef IBSCOPE_WEB_STRICT_H
#define IBSCOPE_WEB_STRICT_H

#include <microhttpd.h>

/**
 * web_strict_check() - check a request whose header is complete
 * @method, @url, @version: as libmicrohttpd hands them over
 *
 * Return: NULL, or why the request is refused.
 */
const char *web_strict_check(struct MHD_Connection *c, const char *method, const char *url,
			     const char *version);

#endif
