// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Passwords of requests: who is let in, and how many hashes others can make the server compute. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "web/web_server.h"

#define HASH "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW" /* of "secret" */
#define HASH_OF_OTHER \
	"$2y$04$abcdefghijklmnopqrstuu0HtfOlPbTiymk5tcV.3TsFPDd3SYZqu" /* of "other" */

static enum web_auth_result ask_as(struct web_auth *a, const char *from, const char *user,
				   const char *password, void *who)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

	if (inet_pton(AF_INET, from, &v4.sin_addr) == 1)
		return web_auth_check(a, (struct sockaddr *)&v4, user, password, who);
	assert_int_equal(inet_pton(AF_INET6, from, &v6.sin6_addr), 1);
	return web_auth_check(a, (struct sockaddr *)&v6, user, password, who);
}

static enum web_auth_result ask(struct web_auth *a, const char *from, const char *password,
				void *who)
{
	return ask_as(a, from, "alice", password, who);
}

/* Let the time pass that hashes rest. */
static void *step(struct web_auth *a, double *now, bool *right)
{
	double wait = web_auth_wait_s(a, *now);

	assert_true(wait >= 0);
	*now += wait;
	return web_auth_step(a, *now, right);
}

static struct web_user alice[] = { { (char *)"alice", (char *)HASH } };
static const struct web_config of_alice = { .users = alice, .n_users = 1 };

static void test_passwords(void **state)
{
	struct web_auth *a;
	double now = 1000;
	int who[8];
	bool right;

	(void)state;
	a = web_auth_open(&of_alice);
	assert_true(web_auth_wait_s(a, now) < 0);
	assert_int_equal(ask(a, "10.0.0.1", "", &who[0]), WEB_AUTH_NO);
	assert_int_equal(ask(a, "10.0.0.1", "secret", &who[0]), WEB_AUTH_WAIT);
	assert_int_equal(ask(a, "10.0.0.1", "Secret", &who[1]), WEB_AUTH_WAIT);
	assert_int_equal(ask_as(a, "10.0.0.1", "bob", "secret", &who[2]), WEB_AUTH_WAIT);
	assert_ptr_equal(step(a, &now, &right), &who[0]);
	assert_true(right);
	/* one at a time: the next has to wait, but who is known has not */
	assert_null(web_auth_step(a, now, &right));
	assert_int_equal(ask(a, "10.0.0.9", "secret", &who[3]), WEB_AUTH_YES);
	web_auth_cancel(a, &who[1]);
	assert_ptr_equal(step(a, &now, &right), &who[2]);
	assert_false(right);
	assert_true(web_auth_wait_s(a, now) < 0);
	web_auth_close(a);
}

/* However many guess elsewhere, an address has its turn next. */
static void test_guessers(void **state)
{
	struct web_auth *a;
	double now = 1000, first;
	int guess[2 * WEB_AUTH_QUEUE], me;
	bool right = false;

	(void)state;
	a = web_auth_open(&of_alice);
	for (int i = 0; i < WEB_AUTH_QUEUE; i++)
		assert_int_equal(ask(a, "10.0.0.1", "guess", &guess[i]), WEB_AUTH_WAIT);
	assert_int_equal(ask(a, "10.0.0.1", "secret", &me), WEB_AUTH_BUSY);
	assert_non_null(step(a, &now, &right));
	assert_int_equal(ask(a, "10.0.0.2", "secret", &me), WEB_AUTH_WAIT);
	assert_ptr_equal(step(a, &now, &right), &me);
	assert_true(right);
	/* one address alone gets a quarter of the time */
	step(a, &now, &right);
	first = web_auth_wait_s(a, now);
	assert_true(first > 0);
	web_auth_cancel(a, &guess[2]);
	for (int i = 3; i < WEB_AUTH_QUEUE; i++)
		web_auth_cancel(a, &guess[i]);
	assert_true(web_auth_wait_s(a, now) < 0);
	web_auth_close(a);
}

/* bcrypt uses 72 bytes. What is longer must not be copied, and is not the password that it begins with. */
static void test_long_passwords(void **state)
{
	static const struct {
		size_t n;
		enum web_auth_result result;
	} rows[] = { { 71, WEB_AUTH_WAIT }, { 72, WEB_AUTH_WAIT }, { 73, WEB_AUTH_NO },
		     { 74, WEB_AUTH_NO },   { 500, WEB_AUTH_NO },  { 8000, WEB_AUTH_NO } };
	static char password[8001];
	struct web_auth *a = web_auth_open(&of_alice);
	double now = 1000;
	bool right;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(password, 'x', rows[i].n);
		password[rows[i].n] = 0;
		assert_int_equal(ask(a, "10.0.0.1", password, &password[i]), rows[i].result);
	}
	assert_ptr_equal(step(a, &now, &right), &password[0]);
	assert_false(right);
	assert_ptr_equal(step(a, &now, &right), &password[1]);
	assert_false(right);
	assert_true(web_auth_wait_s(a, now) < 0);
	web_auth_close(a);
}

/* After a hash nobody's is computed for as long as it took, and none of its address for three times as long. */
static void test_rest(void **state)
{
	struct web_auth *a = web_auth_open(&of_alice);
	double now = 1000, all, own;
	int who[3];
	bool right;

	(void)state;
	assert_int_equal(ask(a, "10.0.0.1", "guess", &who[0]), WEB_AUTH_WAIT);
	assert_int_equal(ask(a, "10.0.0.1", "guess", &who[1]), WEB_AUTH_WAIT);
	assert_ptr_equal(web_auth_step(a, now, &right), &who[0]);
	own = web_auth_wait_s(a, now);
	assert_int_equal(ask(a, "10.0.0.2", "guess", &who[2]), WEB_AUTH_WAIT);
	all = web_auth_wait_s(a, now);
	assert_true(all > 0 && all < 60); /* a hash of this cost takes milliseconds */
	assert_float_equal(own / all, (1.0 + WEB_AUTH_ADDRESS_REST) / (1.0 + WEB_AUTH_REST), 1e-3);
	/* the other address comes first, and its rest does not end that of this one */
	assert_null(web_auth_step(a, now + all / 2, &right));
	assert_ptr_equal(web_auth_step(a, now + all, &right), &who[2]);
	assert_true(web_auth_wait_s(a, now + all) > 0);
	web_auth_cancel(a, &who[1]);
	web_auth_close(a);
}

/* Each has a password of their own; who is unknown is compared with that of the first, in vain. */
static void test_users(void **state)
{
	static struct web_user users[] = { { (char *)"alice", (char *)HASH },
					   { (char *)"bob", (char *)HASH_OF_OTHER },
					   { (char *)"carol", (char *)HASH } };
	static const struct web_config config = { .users = users, .n_users = 3 };
	static const struct {
		const char *user, *password;
		bool right;
	} rows[] = {
		{ "carol", "secret", true }, { "bob", "secret", false },  { "bob", "other", true },
		{ "alice", "other", false }, { "dave", "secret", false }, { "", "secret", false },
		{ "alice", "secret", true },
	};
	struct web_auth *a = web_auth_open(&config);
	double now = 1000;
	int who;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool right = !rows[i].right;

		assert_int_equal(ask_as(a, "10.0.0.1", rows[i].user, rows[i].password, &who),
				 WEB_AUTH_WAIT);
		assert_ptr_equal(step(a, &now, &right), &who);
		assert_int_equal(right, rows[i].right);
	}
	/* from now on these need no hash; nobody else's password does */
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(ask_as(a, "10.0.0.1", rows[i].user, rows[i].password, &who),
				 rows[i].right ? WEB_AUTH_YES : WEB_AUTH_WAIT);
	web_auth_close(a); /* with requests that wait */
	web_auth_close(NULL);
}

/* Requests that leave the queue from its front, its middle and its end; new ones come last. */
static void test_cancel(void **state)
{
	struct web_auth *a = web_auth_open(&of_alice);
	double now = 1000;
	int who[7], none;
	bool right;

	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(ask(a, "10.0.0.1", "guess", &who[i]), WEB_AUTH_WAIT);
	web_auth_cancel(a, &none);
	web_auth_cancel(a, &who[4]);
	web_auth_cancel(a, &who[0]);
	web_auth_cancel(a, &who[2]);
	assert_int_equal(ask(a, "10.0.0.1", "guess", &who[5]), WEB_AUTH_WAIT);
	assert_int_equal(ask(a, "10.0.0.2", "guess", &who[6]), WEB_AUTH_WAIT);
	web_auth_cancel(a, &who[6]);
	assert_ptr_equal(step(a, &now, &right), &who[1]);
	assert_ptr_equal(step(a, &now, &right), &who[3]);
	assert_ptr_equal(step(a, &now, &right), &who[5]);
	assert_true(web_auth_wait_s(a, now) < 0);
	/* an empty queue begins anew */
	assert_int_equal(ask(a, "10.0.0.1", "guess", &who[0]), WEB_AUTH_WAIT);
	assert_ptr_equal(step(a, &now, &right), &who[0]);
	web_auth_close(a);
}

/* Do requests from both share one queue? */
static bool is_same(const char *one, const char *other)
{
	struct web_auth *a = web_auth_open(&of_alice);
	enum web_auth_result result;
	int who;

	for (int i = 0; i < WEB_AUTH_QUEUE; i++)
		assert_int_equal(ask(a, one, "guess", &who), WEB_AUTH_WAIT);
	result = ask(a, other, "guess", &who);
	assert_true(result == WEB_AUTH_BUSY || result == WEB_AUTH_WAIT);
	web_auth_close(a);
	return result == WEB_AUTH_BUSY;
}

/* A network of IPv6 has its first 64 bits, and IPv4 is the same in IPv6. */
static void test_networks(void **state)
{
	static const struct {
		const char *one, *other;
		bool same;
	} rows[] = {
		{ "10.0.0.1", "10.0.0.2", false },
		{ "10.0.0.1", "11.0.0.1", false },
		{ "10.0.0.1", "::ffff:10.0.0.1", true },
		{ "10.0.0.1", "::ffff:10.0.0.2", false },
		{ "10.0.0.1", "::ffff:12.0.0.1", false },
		{ "2001:db8:0:1::1", "2001:db8:0:1:ffff::2", true },
		{ "2001:db8:0:1::1", "2001:db8:0:2::1", false },
		{ "2001:db8:0:1::1", "2002:db8:0:1::1", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (is_same(rows[i].one, rows[i].other) != rows[i].same)
			fail_msg("%s and %s", rows[i].one, rows[i].other);
}

/* More addresses than are remembered: those that wait stay, of the others the one that has rested longest goes. */
static void test_many_addresses(void **state)
{
	enum { MANY = 256 };
	struct web_auth *a = web_auth_open(&of_alice);
	static int who[MANY + 2];
	double now = 1000;
	char from[32];
	bool right;

	(void)state;
	for (int i = 0; i < MANY; i++) {
		snprintf(from, sizeof(from), "10.1.%d.1", i);
		assert_int_equal(ask(a, from, "guess", &who[i]), WEB_AUTH_WAIT);
	}
	assert_int_equal(ask(a, "10.2.0.1", "guess", &who[MANY]), WEB_AUTH_BUSY);
	assert_int_equal(ask(a, "10.1.7.1", "guess", &who[MANY]), WEB_AUTH_WAIT);
	web_auth_cancel(a, &who[MANY]);
	web_auth_close(a);
	a = web_auth_open(&of_alice);
	for (int i = 0; i < MANY; i++) {
		now += 1000;
		snprintf(from, sizeof(from), "10.1.%d.1", i);
		assert_int_equal(ask(a, from, "guess", &who[i]), WEB_AUTH_WAIT);
		assert_ptr_equal(web_auth_step(a, now, &right), &who[i]);
	}
	/* all rest: the first one since longest, and it is forgotten */
	assert_int_equal(ask(a, "10.2.0.1", "guess", &who[MANY]), WEB_AUTH_WAIT);
	assert_int_equal(ask(a, "10.1.255.1", "guess", &who[MANY + 1]), WEB_AUTH_WAIT);
	now += web_auth_wait_s(a, now);
	assert_ptr_equal(web_auth_step(a, now, &right), &who[MANY]);
	assert_true(web_auth_wait_s(a, now) > 0);
	assert_ptr_equal(step(a, &now, &right), &who[MANY + 1]);
	web_auth_close(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_passwords),      cmocka_unit_test(test_guessers),
		cmocka_unit_test(test_long_passwords), cmocka_unit_test(test_rest),
		cmocka_unit_test(test_users),	       cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_networks),       cmocka_unit_test(test_many_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
