// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "web_server.h"
#include "base/std.h"
#include "base/text.h"

#include <arpa/inet.h>
#include <gnutls/x509.h>
#include <stdio.h>

#define CLIENT_CERTS_MAX 16 /* of the chain of a client */

struct web_tls {
	unsigned int users;
	gnutls_pcert_st *certs;
	unsigned int n_certs;
	gnutls_privkey_t key;
	gnutls_priority_t priority;
	gnutls_x509_trust_list_t trust; /* NULL: clients are not verified */
	enum web_client_auth client_auth;
	char *sans[WEB_LIST_MAX];
	size_t n_sans;
};

static int fail(struct err *err, const char *what, int error)
{
	return err_set(err, -EINVAL, "%s: %s", what, gnutls_strerror(error));
}

static gnutls_datum_t text(const char *s)
{
	return (gnutls_datum_t){ (unsigned char *)s, strlen(s) };
}

/* --- how to negotiate --- */

/*
 * GnuTLS combines each key exchange with each cipher, but only suites that fit the certificate's key can be
 * negotiated, so a list of suites is equivalent to its ciphers for this kind of key.
 */
static int add_ciphers(const struct web_choices *c, char kind, char *to, size_t size,
		       struct err *err)
{
	static const struct {
		const char *name, *cipher;
		char kind;
	} rows[] = {
#define CIPHER_ROW(name, cipher, kind) { name, cipher, kind },
		WEB_CIPHER_TABLE(CIPHER_ROW)
#undef CIPHER_ROW
	};
	bool any = !c->n;

	if (c->n)
		text_append(to, size, ":-CIPHER-ALL");
	for (size_t i = 0; i < c->n; i++) {
		if (rows[c->row[i]].kind != kind && rows[c->row[i]].kind != '*')
			continue;
		text_append(to, size, ":+%s", rows[c->row[i]].cipher);
		any = true;
	}
	return any ? 0
		   : err_set(err, -EINVAL,
			     "cipher_suites: none of them fits the certificate, which has an %s "
			     "key",
			     kind == 'r' ? "RSA" : "ECDSA");
}

static int set_priority(struct web_tls *t, const struct web_config *c, char kind, struct err *err)
{
#define CURVE_GROUP(name, group) group,
	static const char *const groups[] = { WEB_CURVE_TABLE(CURVE_GROUP) };
#undef CURVE_GROUP
	char all[1024] = "SECURE128:-VERS-ALL";
	const char *at;
	int ret;

	if (c->max_tls != 12)
		text_append(all, sizeof(all), ":+VERS-TLS1.3");
	if (c->min_tls != 13)
		text_append(all, sizeof(all), ":+VERS-TLS1.2");
	ret = add_ciphers(&c->ciphers, kind, all, sizeof(all), err);
	if (ret)
		return ret;
	if (c->curves.n)
		text_append(all, sizeof(all), ":-GROUP-ALL");
	for (size_t i = 0; i < c->curves.n; i++)
		text_append(all, sizeof(all), ":+GROUP-%s", groups[c->curves.row[i]]);
	if (!c->client_order)
		text_append(all, sizeof(all), ":%%SERVER_PRECEDENCE");
	ret = gnutls_priority_init(&t->priority, all, &at);
	return ret ? fail(err, "cannot set up TLS", ret) : 0;
}

/* --- certificates --- */

/* All of the chain, which is sent as it is. Return: 0, or an error of GnuTLS. */
static int read_chain(struct web_tls *t, const gnutls_datum_t *pem)
{
	gnutls_x509_crt_t *chain = NULL;
	unsigned int n = 0;
	int ret = gnutls_x509_crt_list_import2(&chain, &n, pem, GNUTLS_X509_FMT_PEM, 0);

	if (ret < 0)
		return ret;
	t->certs = xcalloc(n, sizeof(*t->certs));
	ret = 0;
	for (; !ret && t->n_certs < n; t->n_certs += !ret)
		ret = gnutls_pcert_import_x509(&t->certs[t->n_certs], chain[t->n_certs], 0);
	while (n)
		gnutls_x509_crt_deinit(chain[--n]);
	gnutls_free(chain);
	return ret;
}

static int read_pair(struct web_tls *t, const struct web_config *c, char *kind, struct err *err)
{
	gnutls_datum_t cert = text(c->cert), key = text(c->key);
	gnutls_certificate_credentials_t both = NULL;
	int ret = read_chain(t, &cert);

	if (ret)
		return fail(err, "cert_file: not a PEM certificate", ret);
	ret = gnutls_privkey_init(&t->key)
		      ?: gnutls_privkey_import_x509_raw(t->key, &key, GNUTLS_X509_FMT_PEM, NULL, 0);
	if (ret)
		return fail(err, "key_file: not a PEM private key", ret);
	ret = gnutls_certificate_allocate_credentials(&both)
		      ?: gnutls_certificate_set_x509_key_mem(both, &cert, &key,
							     GNUTLS_X509_FMT_PEM);
	if (both)
		gnutls_certificate_free_credentials(both);
	if (ret)
		return fail(err, "cert_file and key_file do not belong together", ret);
	*kind = gnutls_privkey_get_pk_algorithm(t->key, NULL) == GNUTLS_PK_RSA ? 'r' : 'e';
	return 0;
}

static int read_trust(struct web_tls *t, const struct web_config *c, struct err *err)
{
	gnutls_datum_t ca;
	int ret;

	if (!c->client_ca)
		return 0;
	ca = text(c->client_ca);
	ret = gnutls_x509_trust_list_init(&t->trust, 0);
	if (!ret)
		ret = gnutls_x509_trust_list_add_trust_mem(t->trust, &ca, NULL, GNUTLS_X509_FMT_PEM,
							   0, 0);
	return ret > 0 ? 0
		       : fail(err, "client_ca_file: no PEM certificate",
			      ret ?: GNUTLS_E_NO_CERTIFICATE_FOUND);
}

int web_tls_open(const struct web_config *c, struct web_tls **out, struct err *err)
{
	struct web_tls *t = xcalloc(1, sizeof(*t));
	char kind = 0;
	int ret;

	t->users = 1;
	t->client_auth = c->client_auth;
	ret = read_pair(t, c, &kind, err) ?: set_priority(t, c, kind, err) ?: read_trust(t, c, err);
	while (t->n_sans < c->n_sans) {
		t->sans[t->n_sans] = xstrdup(c->sans[t->n_sans]);
		t->n_sans++;
	}
	if (ret) {
		web_tls_put(t);
		return ret;
	}
	*out = t;
	return 0;
}

struct web_tls *web_tls_get(struct web_tls *t)
{
	if (t)
		t->users++;
	return t;
}

void web_tls_put(struct web_tls *t)
{
	if (!t || --t->users)
		return;
	for (unsigned int i = 0; i < t->n_certs; i++)
		gnutls_pcert_deinit(&t->certs[i]);
	free(t->certs);
	if (t->key)
		gnutls_privkey_deinit(t->key);
	if (t->priority)
		gnutls_priority_deinit(t->priority);
	if (t->trust)
		gnutls_x509_trust_list_deinit(t->trust, 1);
	for (size_t i = 0; i < t->n_sans; i++)
		free(t->sans[i]);
	free(t);
}

/* --- handshakes --- */

static bool has_san(const struct web_tls *t, gnutls_x509_crt_t crt)
{
	char name[1024];

	for (unsigned int i = 0;; i++) {
		size_t n = sizeof(name) - 1;
		int type = gnutls_x509_crt_get_subject_alt_name(crt, i, name, &n, NULL);

		if (type == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE)
			return false;
		if (type == GNUTLS_SAN_IPADDRESS) {
			char raw[16];

			memcpy(raw, name, n < sizeof(raw) ? n : sizeof(raw));
			if (!inet_ntop(n == 4 ? AF_INET : AF_INET6, raw, name, sizeof(name)))
				continue;
		} else if (type == GNUTLS_SAN_DNSNAME || type == GNUTLS_SAN_RFC822NAME ||
			   type == GNUTLS_SAN_URI) {
			name[n] = 0;
		} else {
			continue;
		}
		for (size_t s = 0; s < t->n_sans; s++)
			if (!strcmp(name, t->sans[s]))
				return true;
	}
}

static bool is_trusted(const struct web_tls *t, gnutls_x509_crt_t *chain, unsigned int n)
{
	gnutls_typed_vdata_st purpose = { .type = GNUTLS_DT_KEY_PURPOSE_OID,
					  .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT };
	unsigned int status = 1;

	return !gnutls_x509_trust_list_verify_crt2(t->trust, chain, n, &purpose, 1, 0, &status,
						   NULL) &&
	       !status && (!t->n_sans || has_san(t, chain[0]));
}

/* Return: 0 if the client's certificate is accepted; else the handshake fails. */
static int verify(gnutls_session_t session)
{
	const struct web_tls *t = gnutls_db_get_ptr(session);
	gnutls_x509_crt_t chain[CLIENT_CERTS_MAX];
	const gnutls_datum_t *raw;
	unsigned int n = 0, given = 0;
	bool good = true;

	raw = gnutls_certificate_get_peers(session, &given);
	if (!raw || !given)
		return web_client_auths[t->client_auth].required;
	for (; good && n < given && n < CLIENT_CERTS_MAX; n++) {
		good = !gnutls_x509_crt_init(&chain[n]);
		if (!good)
			break;
		good = !gnutls_x509_crt_import(chain[n], &raw[n], GNUTLS_X509_FMT_DER);
	}
	good = good && given <= CLIENT_CERTS_MAX && is_trusted(t, chain, n);
	while (n)
		gnutls_x509_crt_deinit(chain[--n]);
	return !good;
}

void web_tls_begin(struct web_tls *t, gnutls_session_t session)
{
	const struct web_client_auth_row *client = &web_client_auths[t->client_auth];

	gnutls_db_set_ptr(session, t);
	gnutls_priority_set(session, t->priority);
	if (client->asked)
		gnutls_certificate_server_set_request(
			session, client->required ? GNUTLS_CERT_REQUIRE : GNUTLS_CERT_REQUEST);
	if (client->verified)
		gnutls_session_set_verify_function(session, verify);
}

int web_tls_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
			gnutls_pcert_st **certs, unsigned int *n_certs, gnutls_ocsp_data_st **ocsp,
			unsigned int *n_ocsp, gnutls_privkey_t *key, unsigned int *flags)
{
	struct web_tls *t = gnutls_db_get_ptr(session);

	(void)info;
	if (!t)
		return -1;
	*certs = t->certs;
	*n_certs = t->n_certs;
	*ocsp = NULL;
	*n_ocsp = 0;
	*key = t->key;
	*flags = 0; /* they stay ours */
	return 0;
}
