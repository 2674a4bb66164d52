/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A reading for people and as JSON: the same whether the collector is asked or its pins are read. */
#ifndef IBSCOPE_COLLECTOR_TEXT_H
#define IBSCOPE_COLLECTOR_TEXT_H

#include "reading.h"

#include <jansson.h>
#include <stdio.h>

void collector_print(FILE *f, const struct reading *r);

/* One line. Return: 0 or -ENOMEM with @err. */
int collector_print_json(FILE *f, const struct reading *r, struct err *err);

/* An object; NULL: out of memory. The caller owns it. */
json_t *collector_json(const struct reading *r);

/* A string of any bytes, unprintable ones escaped. */
json_t *collector_json_text(const char *text);

#endif
