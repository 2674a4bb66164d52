/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Passwords. Checking one takes a bcrypt hash, on purpose expensive, so those who guess must neither
 * keep the CPU busy nor others out: requests wait in line, one hash at a time, addresses in turn. A
 * password that was right is remembered as a keyed hash and not checked by bcrypt again.
 */
#ifndef IBSCOPE_WEB_AUTH_H
#define IBSCOPE_WEB_AUTH_H

#include "web_config.h"

#include <sys/socket.h>

struct web_auth;

/* @config must outlive it. Return: 0 or a negative errno. */
int web_auth_open(const struct web_config *config, struct web_auth **out);

enum web_auth_result {
	WEB_AUTH_YES,
	WEB_AUTH_NO,
	WEB_AUTH_WAIT, /* web_auth_step() will tell */
	WEB_AUTH_BUSY, /* too many of this address wait already */
};

/* So many requests of an address may wait. */
#define WEB_AUTH_QUEUE 64

/*
 * Hashing takes at most half of the time, and at most a quarter for each address; of IPv6, a /64
 * counts as one address.
 */
#define WEB_AUTH_REST	      1
#define WEB_AUTH_ADDRESS_REST 3

/**
 * web_auth_check() - check a password, or put the request in line
 * @addr: of the client
 * @who:  the request, for web_auth_step() and web_auth_cancel()
 */
enum web_auth_result web_auth_check(struct web_auth *a, const struct sockaddr *addr,
				    const char *user, const char *password, void *who);

/**
 * web_auth_step() - hash the password of the request whose turn it is
 *
 * Return: the request, with *right; NULL if none is due.
 */
void *web_auth_step(struct web_auth *a, double now, bool *right);

/* Seconds until web_auth_step() has something to do; below 0: nobody waits. */
double web_auth_wait_s(const struct web_auth *a, double now);

/* The request does not wait any more. */
void web_auth_cancel(struct web_auth *a, const void *who);

void web_auth_close(struct web_auth *a); /* accepts NULL; nobody may wait */

#endif
