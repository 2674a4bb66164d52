/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The file of --web.config.file: TLS and passwords, as Prometheus' own exporters have them. */
#ifndef IBSCOPE_WEB_CONFIG_H
#define IBSCOPE_WEB_CONFIG_H

#include "err.h"

#include <stddef.h>

struct web_user {
	char *name, *hash; /* of bcrypt */
};

/* Zero is none. */
struct web_config {
	char *cert, *key; /* what the files hold; NULL: no TLS */
	struct web_user *users;
	size_t n_users; /* 0: everybody may read */
};

#define WEB_BCRYPT_MAX 14 /* rounds, as a power of two: about a second */

/**
 * web_config_parse() - read the text of such a file
 * @dir: of relative paths in it
 *
 * Keys that the official exporters have and this does not are errors: whoever asks for protection
 * must not get less than that.
 *
 * Return: 0, or a negative errno with @err telling the line; then nothing is to be freed.
 */
int web_config_parse(const char *text, size_t n, const char *dir, struct web_config *out,
		     struct err *err);

int web_config_read(const char *path, struct web_config *out, struct err *err);

void web_config_free(struct web_config *c);

#endif
