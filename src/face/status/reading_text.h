/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef IBSCOPE_READING_TEXT_H
#define IBSCOPE_READING_TEXT_H

#include "base/json_writer.h"

/* A text in which unprintable bytes are \xNN. */
void collector_put_text(struct json_writer *w, const char *key, const char *text);

#endif
