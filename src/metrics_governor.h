/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the collector's governor does, for metrics and for people. */
#ifndef IBSCOPE_METRICS_GOVERNOR_H
#define IBSCOPE_METRICS_GOVERNOR_H

#include "metrics.h"

void metrics_governor_print(FILE *f, enum metrics_format format, const struct ibs_meta_status *st);

/* An object, behind its name and a comma. */
void metrics_governor_json(FILE *f, const struct ibs_meta_status *st);

/* A line or two for people. */
void metrics_governor_text(FILE *f, const struct ibs_meta_status *st);

void metrics_governor_list(FILE *f);

#endif
