/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* How a collector is, for people and as JSON: the same whether it is asked or its pins are read. */
#ifndef IBSCOPE_COLLECTOR_TEXT_H
#define IBSCOPE_COLLECTOR_TEXT_H

#include "metrics_collector.h"

#include <stdio.h>

void collector_print(FILE *f, const struct metrics_collector *c);
void collector_print_json(FILE *f, const struct metrics_collector *c);

#endif
