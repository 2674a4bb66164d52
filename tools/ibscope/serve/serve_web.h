/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The metrics endpoint inside the collector, for those who want a single process. */
#ifndef IBSCOPE_SERVE_WEB_H
#define IBSCOPE_SERVE_WEB_H

#include "collector/collector_settings.h"
#include "web/web.h"

/* Its options. */
extern const struct collector_extra serve_web_extra;

/* Return: 0, *out being NULL if no address was given; or a negative errno with @err. */
int serve_web_open(const struct collector_settings *set, struct web **out, struct err *err);

#endif
