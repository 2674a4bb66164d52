/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What --help of report and of numa prints. */
#ifndef IBSCOPE_REPORT_USAGE_H
#define IBSCOPE_REPORT_USAGE_H

#include "base/options.h"

void report_usage(FILE *f, const struct option_set *sets, size_t n);
void report_numa_usage(FILE *f, const struct option_set *sets, size_t n);

#endif
