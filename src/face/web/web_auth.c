// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "web_server.h"
#include "base/std.h"
#include "base/clock.h"

#include <crypt.h>
#include <gnutls/crypto.h>
#include <netinet/in.h>
#include <sys/random.h>

#define PASSWORD_MAX 73 /* bcrypt uses 72 bytes */
#define DIGEST_BYTES 32 /* of SHA-256 */
#define ADDRESSES    256

/* A waiting request. */
struct waiter {
	struct waiter *next;
	void *who;
	size_t user; /* index in the configuration; n_users: unknown user */
	char password[PASSWORD_MAX];
};

/* An address that has waiting requests, or pauses after a hash. */
struct address {
	uint8_t key[16];
	double until_s;		     /* no hash for it before this time */
	struct waiter *first, *last; /* in order of arrival */
	unsigned int n;
};

struct web_auth {
	const struct web_config *config;
	uint8_t secret[DIGEST_BYTES];
	uint8_t (*right)[DIGEST_BYTES]; /* by user: digest of the correct password */
	bool *known;			/* by user: `right` is set */
	struct address address[ADDRESSES];
	double until_s; /* no hash at all before this time */
	struct crypt_data data;
};

struct web_auth *web_auth_open(const struct web_config *config)
{
	struct web_auth *a = xcalloc(1, sizeof(*a));

	a->config = config;
	a->right = xcalloc(config->n_users, sizeof(*a->right));
	a->known = xcalloc(config->n_users, sizeof(*a->known));
	if (getrandom(a->secret, sizeof(a->secret), 0) != sizeof(a->secret)) {
		web_auth_close(a);
		return NULL;
	}
	return a;
}

static bool digest(const struct web_auth *a, const char *password, uint8_t *out)
{
	return !gnutls_hmac_fast(GNUTLS_MAC_SHA256, a->secret, sizeof(a->secret), password,
				 strlen(password), out);
}

/* Is it the password that was correct before? */
static bool is_known(const struct web_auth *a, size_t user, const char *password)
{
	uint8_t given[DIGEST_BYTES];

	return user < a->config->n_users && a->known[user] && digest(a, password, given) &&
	       !gnutls_memcmp(a->right[user], given, sizeof(given));
}

static void address_key(const struct sockaddr *addr, uint8_t *key)
{
	memset(key, 0, 16);
	if (addr && addr->sa_family == AF_INET) {
		memcpy(key + 12, &((const struct sockaddr_in *)addr)->sin_addr, 4);
	} else if (addr && addr->sa_family == AF_INET6) {
		const struct in6_addr *v6 = &((const struct sockaddr_in6 *)addr)->sin6_addr;

		if (IN6_IS_ADDR_V4MAPPED(v6))
			memcpy(key + 12, &v6->s6_addr[12], 4);
		else
			memcpy(key, v6, 8);
	}
}

/* Find or add an address, replacing the one that paused longest. NULL: all have waiting requests. */
static struct address *find_address(struct web_auth *a, const uint8_t *key)
{
	struct address *free = NULL;

	for (struct address *p = a->address; p < a->address + ADDRESSES; p++) {
		if ((p->n || p->until_s) && !memcmp(p->key, key, sizeof(p->key)))
			return p;
		if (!p->n && (!free || p->until_s < free->until_s))
			free = p;
	}
	if (free) {
		*free = (struct address){};
		memcpy(free->key, key, sizeof(free->key));
	}
	return free;
}

static enum web_auth_result enqueue(struct web_auth *a, const struct sockaddr *addr, size_t user,
				    const char *password, void *who)
{
	struct address *p;
	struct waiter *w;
	uint8_t key[16];

	address_key(addr, key);
	p = find_address(a, key);
	if (!p || p->n >= WEB_AUTH_QUEUE)
		return WEB_AUTH_BUSY;
	w = xcalloc(1, sizeof(*w));
	w->who = who;
	w->user = user;
	strcpy(w->password, password);
	if (p->last)
		p->last->next = w;
	else
		p->first = w;
	p->last = w;
	p->n++;
	return WEB_AUTH_WAIT;
}

enum web_auth_result web_auth_check(struct web_auth *a, const struct sockaddr *addr,
				    const char *user, const char *password, void *who)
{
	const struct web_config *c = a->config;
	size_t i = 0;

	if (strlen(password) >= PASSWORD_MAX || !*password)
		return WEB_AUTH_NO;
	while (i < c->n_users && strcmp(c->users[i].name, user))
		i++;
	if (is_known(a, i, password))
		return WEB_AUTH_YES;
	return enqueue(a, addr, i, password, who);
}

/* Remove the waiter after @before, or the first one, from the queue. */
static struct waiter *take(struct address *p, struct waiter *before)
{
	struct waiter *w = before ? before->next : p->first;

	if (before)
		before->next = w->next;
	else
		p->first = w->next;
	if (p->last == w)
		p->last = before;
	p->n--;
	return w;
}

static void free_waiter(struct waiter *w)
{
	explicit_bzero(w, sizeof(*w));
	free(w);
}

/* The address with waiting requests that paused longest. */
static struct address *next_address(const struct web_auth *a)
{
	const struct address *best = NULL;

	for (const struct address *p = a->address; p < a->address + ADDRESSES; p++)
		if (p->n && (!best || p->until_s < best->until_s))
			best = p;
	return (struct address *)best;
}

double web_auth_wait_s(const struct web_auth *a, double now)
{
	const struct address *p = next_address(a);
	double until = p && p->until_s > a->until_s ? p->until_s : a->until_s;

	if (!p)
		return -1;
	return until > now ? until - now : 0;
}

static bool check(struct web_auth *a, const struct waiter *w)
{
	const struct web_config *c = a->config;
	/* unknown users must take as long as known ones */
	const char *want = c->users[w->user < c->n_users ? w->user : 0].hash;
	const char *hash = crypt_r(w->password, want, &a->data);
	bool right = hash && w->user < c->n_users && strlen(hash) == strlen(want) &&
		     !gnutls_memcmp(hash, want, strlen(hash));

	if (right)
		a->known[w->user] = digest(a, w->password, a->right[w->user]);
	explicit_bzero(&a->data, sizeof(a->data));
	return right;
}

void *web_auth_step(struct web_auth *a, double now, bool *right)
{
	struct address *p = next_address(a);
	double begin, took;
	struct waiter *w;
	void *who;

	if (!p || web_auth_wait_s(a, now) > 0)
		return NULL;
	w = take(p, NULL);
	begin = now_s();
	*right = is_known(a, w->user, w->password) || check(a, w);
	took = now_s() - begin;
	p->until_s = now + took + WEB_AUTH_ADDRESS_REST * took;
	a->until_s = now + took + WEB_AUTH_REST * took;
	who = w->who;
	free_waiter(w);
	return who;
}

void web_auth_cancel(struct web_auth *a, const void *who)
{
	for (struct address *p = a->address; p < a->address + ADDRESSES; p++) {
		for (struct waiter *w = p->first, *before = NULL; w; before = w, w = w->next) {
			if (w->who != who)
				continue;
			free_waiter(take(p, before));
			return;
		}
	}
}

void web_auth_close(struct web_auth *a)
{
	if (!a)
		return;
	for (struct address *p = a->address; p < a->address + ADDRESSES; p++)
		while (p->first)
			free_waiter(take(p, NULL));
	free(a->right);
	free(a->known);
	explicit_bzero(a, sizeof(*a));
	free(a);
}
