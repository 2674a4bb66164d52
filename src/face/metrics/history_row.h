/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Parts of the JSON of an interval. */
#ifndef IBSCOPE_HISTORY_ROW_H
#define IBSCOPE_HISTORY_ROW_H

#include "metrics_private.h"

/* What makes counts comparable, of each event. The caller frees it. */
char *history_about(const struct metrics *m);

/* @id: 0: groups without a row of their own */
void history_put_row(struct json_writer *w, __u32 id, const struct metrics_group *g, bool fetch);

#endif
