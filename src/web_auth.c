// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "web_auth.h"
#include "clock.h"

#include <crypt.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PASSWORD_MAX 73 /* bcrypt takes 72 bytes */

struct web_auth {
	const struct web_config *config;
	char (*right)[PASSWORD_MAX]; /* of each user, once it was given; "" before */
	double next_s;		     /* when the next may be hashed */
	struct crypt_data data;
};

int web_auth_open(const struct web_config *config, struct web_auth **out)
{
	struct web_auth *a = calloc(1, sizeof(*a));

	if (a)
		a->right = calloc(config->n_users, sizeof(*a->right));
	if (!a || !a->right) {
		free(a);
		return -ENOMEM;
	}
	a->config = config;
	*out = a;
	return 0;
}

/* In a time that does not tell where they differ. */
static bool same(const char *a, const char *b, size_t n)
{
	unsigned char differ = 0;

	for (size_t i = 0; i < n; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

enum web_auth_result web_auth_check(struct web_auth *a, const char *user, const char *password)
{
	const struct web_config *c = a->config;
	char given[PASSWORD_MAX] = "";
	size_t i = 0;
	const char *hash;
	double begin = now_s();
	bool right;

	if (strlen(password) >= sizeof(given) || !*password)
		return WEB_AUTH_NO;
	strcpy(given, password);
	while (i < c->n_users && strcmp(c->users[i].name, user))
		i++;
	if (i < c->n_users && *a->right[i] && same(a->right[i], given, sizeof(given)))
		return WEB_AUTH_YES;
	if (begin < a->next_s)
		return WEB_AUTH_LATER;
	/* for a name that is not there too, so that the time does not tell which are */
	hash = crypt_r(given, c->users[i < c->n_users ? i : 0].hash, &a->data);
	right = hash && i < c->n_users && strlen(hash) == strlen(c->users[i].hash) &&
		same(hash, c->users[i].hash, strlen(hash));
	if (right)
		memcpy(a->right[i], given, sizeof(given));
	else
		a->next_s = 2 * now_s() - begin;
	explicit_bzero(given, sizeof(given));
	return right ? WEB_AUTH_YES : WEB_AUTH_NO;
}

void web_auth_close(struct web_auth *a)
{
	if (!a)
		return;
	explicit_bzero(a->right, a->config->n_users * sizeof(*a->right));
	free(a->right);
	explicit_bzero(a, sizeof(*a));
	free(a);
}
