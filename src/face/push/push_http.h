/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Profiles over HTTP to Pyroscope or Parca. */
#ifndef IBSCOPE_PUSH_HTTP_H
#define IBSCOPE_PUSH_HTTP_H

#include "base/err.h"
#include "base/std.h"
#include "push_opts.h"

#include <linux/types.h>

/* A profile to post. */
struct push_body {
	const void *data;
	size_t bytes;
	double from_s, until_s; /* since 1970 */
	const char *host;
	bool estimates; /* as in pprof_write(): the profile has estimated values */
};

/* The file of --push-credentials. */
struct push_secret {
	char text[1024]; /* "" without a file: "Bearer TOKEN" or "USER:PASSWORD" */
};

/* Return: 0, or a negative errno with @err; the file must not be readable by other users. */
int push_secret_read(const char *path, struct push_secret *out, struct err *err);

/**
 * push_post() - post a profile, in at most PUSH_TRIES tries
 *
 * @retries: incremented at each further try
 *
 * Retries without a connection, and after status 408, 429 or 5xx.
 *
 * Return: 0 if the server accepted it; or a negative errno with @err, -EAGAIN if it may accept it later,
 * -EPROTO if it refused it.
 */
int push_post(const struct push_opts *opts, const struct push_body *body, __u32 *retries,
	      struct err *err);

#define PUSH_TRIES 3

#endif
