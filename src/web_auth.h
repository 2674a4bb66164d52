/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Is a password right? Without letting those who guess keep the processor busy. */
#ifndef IBSCOPE_WEB_AUTH_H
#define IBSCOPE_WEB_AUTH_H

#include "web_config.h"

struct web_auth;

/* @config must outlive it. Return: 0 or -ENOMEM. */
int web_auth_open(const struct web_config *config, struct web_auth **out);

enum web_auth_result {
	WEB_AUTH_YES,
	WEB_AUTH_NO,
	WEB_AUTH_LATER, /* so many have guessed that this one has to wait */
};

/**
 * web_auth_check() - is it one of the users?
 *
 * A password that was right is remembered and costs nothing again; others are hashed, at most half
 * of the time.
 */
enum web_auth_result web_auth_check(struct web_auth *a, const char *user, const char *password);

void web_auth_close(struct web_auth *a); /* accepts NULL */

#endif
