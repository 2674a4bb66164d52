/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The file of --web.config.file: TLS and passwords, in the format of Prometheus' exporter-toolkit. */
#ifndef IBSCOPE_WEB_CONFIG_H
#define IBSCOPE_WEB_CONFIG_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct web_user {
	char *name, *hash; /* of bcrypt */
};

/* X(NAME, "name", the client's certificate is requested, required, verified) */
#define WEB_CLIENT_AUTH_TABLE(X)                                  \
	X(NONE, "NoClientCert", false, false, false)              \
	X(REQUEST, "RequestClientCert", true, false, false)       \
	X(ANY, "RequireAnyClientCert", true, true, false)         \
	X(IF_GIVEN, "VerifyClientCertIfGiven", true, false, true) \
	X(VERIFY, "RequireAndVerifyClientCert", true, true, true)

enum web_client_auth {
#define WEB_CLIENT_AUTH_ENUM(NAME, ...) WEB_CLIENT_##NAME,
	WEB_CLIENT_AUTH_TABLE(WEB_CLIENT_AUTH_ENUM)
#undef WEB_CLIENT_AUTH_ENUM
};

/* How to treat a client's certificate. */
struct web_client_auth_row {
	bool asked, required, verified;
};
extern const struct web_client_auth_row web_client_auths[]; /* by enum web_client_auth */

/* X("name", "cipher", key of the certificate: 'e' for ECDSA, 'r' for RSA, '*' for any) */
#define WEB_CIPHER_TABLE(X)                                                          \
	X("TLS_AES_128_GCM_SHA256", "AES-128-GCM", '*')                              \
	X("TLS_AES_256_GCM_SHA384", "AES-256-GCM", '*')                              \
	X("TLS_CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305", '*')                  \
	X("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "AES-128-GCM", 'e')             \
	X("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "AES-256-GCM", 'e')             \
	X("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305", 'e') \
	X("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "AES-128-GCM", 'r')               \
	X("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "AES-256-GCM", 'r')               \
	X("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "CHACHA20-POLY1305", 'r')

/* X("name", "group") */
#define WEB_CURVE_TABLE(X)          \
	X("CurveP256", "SECP256R1") \
	X("CurveP384", "SECP384R1") \
	X("CurveP521", "SECP521R1") \
	X("X25519", "X25519")

#define WEB_LIST_MAX 16

/* Rows of one of these tables, in order of preference; none: the default. */
struct web_choices {
	unsigned char row[WEB_LIST_MAX];
	size_t n;
};

#define WEB_FILES_MAX 4

/* A file that was read, to notice changes. */
struct web_file {
	char *path;
	struct stat st;
};

/* Zero: neither TLS nor passwords. */
struct web_config {
	char *cert, *key, *client_ca; /* contents of the files; NULL: not given */
	enum web_client_auth client_auth;
	char *sans
		[WEB_LIST_MAX]; /* a client's certificate must have one of them, if there are any */
	size_t n_sans;
	unsigned int min_tls, max_tls; /* 12 or 13; 0: the default */
	struct web_choices ciphers, curves;
	bool client_order; /* the client's preference of ciphers decides */
	struct web_user *users;
	size_t n_users, users_room; /* 0: everybody may read */
	struct web_file files[WEB_FILES_MAX];
	size_t n_files;
};

#define WEB_BCRYPT_MAX 14 /* cost: about a second per password */

/**
 * web_config_parse() - parse the text of such a file
 * @dir: base of relative paths in it
 *
 * Unsupported keys of exporter-toolkit are errors, so that nobody gets less protection than they asked for.
 *
 * Return: 0, or a negative errno with the line in @err; then there is nothing to free.
 */
int web_config_parse(const char *text, size_t n, const char *dir, struct web_config *out,
		     struct err *err);

int web_config_read(const char *path, struct web_config *out, struct err *err);

/* Was one of the files changed, replaced or removed since it was read? */
bool web_config_changed(const struct web_config *c);

void web_config_free(struct web_config *c);

#endif
