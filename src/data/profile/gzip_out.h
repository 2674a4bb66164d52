/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A file compressed with gzip, by other threads while its owner makes the next bytes. */
#ifndef IBSCOPE_GZIP_OUT_H
#define IBSCOPE_GZIP_OUT_H

#include <stddef.h>

struct gzip_out;

/* @fd stays the caller's, and open until gzip_out_close(). */
struct gzip_out *gzip_out_new(int fd);

void gzip_out_put(struct gzip_out *o, const void *data, size_t n);

/* Write the rest. Return: 0, or the negative errno of the first write that failed. @o is freed. */
int gzip_out_close(struct gzip_out *o);

#endif
