// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* TLS of the web server: certificates, what both sides agree on, and clients that must show a certificate; in memory. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>

#include "base/array.h"
#include "base/std.h"
#include "web/web_server.h"

#define DAY 86400

/* A key and its certificate. */
struct identity {
	gnutls_x509_privkey_t key;
	gnutls_x509_crt_t crt;
	char *key_pem, *crt_pem;
};

static struct identity ca, other_ca, server, rsa_server, client, foreign, expired, not_client;
static unsigned char serial;

static void need(int ret)
{
	if (ret < 0)
		fail_msg("%s", gnutls_strerror(ret));
}

static char *pem_of(const gnutls_datum_t *d)
{
	char *text = xstrndup((char *)d->data, d->size);

	gnutls_free(d->data);
	return text;
}

struct wanted {
	const struct identity *issuer; /* NULL: itself */
	const char *purpose;	       /* NULL: any */
	bool rsa, is_expired;
	unsigned int sans;
};

/* Subject alternative names of the client. */
static void add_sans(gnutls_x509_crt_t crt)
{
	static const unsigned char v4[] = { 10, 0, 0, 1 },
				   v6[16] = { 0x20, 1, 0xd, 0xb8, [15] = 7 };

	need(gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, "prometheus", 10,
						  GNUTLS_FSAN_APPEND));
	need(gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, v4, 4,
						  GNUTLS_FSAN_APPEND));
	need(gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, v6, 16,
						  GNUTLS_FSAN_APPEND));
	need(gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_RFC822NAME, "a@b.c", 5,
						  GNUTLS_FSAN_APPEND));
	need(gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_URI, "spiffe://x/y", 12,
						  GNUTLS_FSAN_APPEND));
}

static void make(struct identity *i, const char *name, struct wanted w)
{
	const struct identity *by = w.issuer ?: i;
	const time_t now = time(NULL);
	gnutls_datum_t d;

	serial++;
	need(gnutls_x509_privkey_init(&i->key));
	need(gnutls_x509_privkey_generate(
		i->key, w.rsa ? GNUTLS_PK_RSA : GNUTLS_PK_ECDSA,
		w.rsa ? 2048 : GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
	need(gnutls_x509_crt_init(&i->crt));
	need(gnutls_x509_crt_set_version(i->crt, 3));
	need(gnutls_x509_crt_set_serial(i->crt, &serial, 1));
	need(gnutls_x509_crt_set_activation_time(i->crt, now - 10 * DAY));
	need(gnutls_x509_crt_set_expiration_time(i->crt, now + (w.is_expired ? -DAY : DAY)));
	need(gnutls_x509_crt_set_dn_by_oid(i->crt, GNUTLS_OID_X520_COMMON_NAME, 0, name,
					   strlen(name)));
	need(gnutls_x509_crt_set_key(i->crt, i->key));
	need(gnutls_x509_crt_set_ca_status(i->crt, !w.issuer));
	if (w.purpose)
		need(gnutls_x509_crt_set_key_purpose_oid(i->crt, w.purpose, 0));
	if (w.sans)
		add_sans(i->crt);
	need(gnutls_x509_crt_sign2(i->crt, by->crt, by->key, GNUTLS_DIG_SHA256, 0));
	need(gnutls_x509_crt_export2(i->crt, GNUTLS_X509_FMT_PEM, &d));
	i->crt_pem = pem_of(&d);
	need(gnutls_x509_privkey_export2(i->key, GNUTLS_X509_FMT_PEM, &d));
	i->key_pem = pem_of(&d);
}

static void drop(struct identity *i)
{
	gnutls_x509_crt_deinit(i->crt);
	gnutls_x509_privkey_deinit(i->key);
	free(i->crt_pem);
	free(i->key_pem);
}

static int set_up(void **state)
{
	(void)state;
	make(&ca, "ca", (struct wanted){});
	make(&other_ca, "other", (struct wanted){});
	make(&server, "server", (struct wanted){ .issuer = &ca });
	make(&rsa_server, "server", (struct wanted){ .issuer = &ca, .rsa = true });
	make(&client, "client",
	     (struct wanted){ .issuer = &ca, .purpose = GNUTLS_KP_TLS_WWW_CLIENT, .sans = 1 });
	make(&foreign, "client",
	     (struct wanted){ .issuer = &other_ca, .purpose = GNUTLS_KP_TLS_WWW_CLIENT });
	make(&expired, "client",
	     (struct wanted){
		     .issuer = &ca, .purpose = GNUTLS_KP_TLS_WWW_CLIENT, .is_expired = true });
	make(&not_client, "client",
	     (struct wanted){ .issuer = &ca, .purpose = GNUTLS_KP_TLS_WWW_SERVER });
	return 0;
}

static int tear_down(void **state)
{
	struct identity *const all[] = { &ca,	  &other_ca, &server,  &rsa_server,
					 &client, &foreign,  &expired, &not_client };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		drop(all[i]);
	return 0;
}

/* --- a handshake --- */

static struct web_config config_of(const struct identity *i)
{
	return (struct web_config){ .cert = i->crt_pem, .key = i->key_pem };
}

static struct web_tls *opened(const struct web_config *c)
{
	struct web_tls *t = NULL;
	struct err err = { "" };

	if (web_tls_open(c, &t, &err))
		fail_msg("%s", err.text);
	return t;
}

/* What both have agreed on. */
static struct {
	gnutls_protocol_t version;
	gnutls_cipher_algorithm_t cipher;
	gnutls_group_t group;
	unsigned int chain; /* certificates of the server */
	bool is_server;	    /* that of the configuration */
} agreed;

static gnutls_session_t new_session(unsigned int flags, int fd,
				    gnutls_certificate_credentials_t cred)
{
	gnutls_session_t s;

	need(gnutls_init(&s, flags | GNUTLS_NONBLOCK));
	need(gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, cred));
	gnutls_transport_set_int(s, fd);
	return s;
}

static void note_agreed(gnutls_session_t s, const struct identity *expect)
{
	const gnutls_datum_t *raw = gnutls_certificate_get_peers(s, &agreed.chain);
	gnutls_datum_t der;

	need(gnutls_x509_crt_export2(expect->crt, GNUTLS_X509_FMT_DER, &der));
	agreed.is_server = raw && raw->size == der.size && !memcmp(raw->data, der.data, der.size);
	gnutls_free(der.data);
	agreed.version = gnutls_protocol_get_version(s);
	agreed.cipher = gnutls_cipher_get(s);
	agreed.group = gnutls_group_get(s);
}

/* @who: certificate of the client; NULL: none. Return: whether the server accepts it. */
static bool meet(struct web_tls *t, const struct identity *who, const char *priority,
		 const struct identity *expect)
{
	gnutls_certificate_credentials_t ours, theirs;
	gnutls_session_t s, c;
	int pair[2], server_ret = GNUTLS_E_AGAIN, client_ret = GNUTLS_E_AGAIN;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	need(gnutls_certificate_allocate_credentials(&ours));
	need(gnutls_certificate_allocate_credentials(&theirs));
	gnutls_certificate_set_retrieve_function3(ours, web_tls_certificate);
	if (who) {
		gnutls_datum_t crt = { (unsigned char *)who->crt_pem, strlen(who->crt_pem) };
		gnutls_datum_t key = { (unsigned char *)who->key_pem, strlen(who->key_pem) };

		/* shown whatever the server asks for */
		gnutls_certificate_set_flags(theirs, GNUTLS_CERTIFICATE_SKIP_KEY_CERT_MATCH);
		need(gnutls_certificate_set_x509_key_mem(theirs, &crt, &key, GNUTLS_X509_FMT_PEM));
	}
	s = new_session(GNUTLS_SERVER, pair[0], ours);
	c = new_session(GNUTLS_CLIENT | GNUTLS_FORCE_CLIENT_CERT, pair[1], theirs);
	need(gnutls_priority_set_direct(c, priority ?: "NORMAL", NULL));
	web_tls_begin(t, s);
	for (int i = 0; i < 100; i++) {
		if (client_ret < 0 && !gnutls_error_is_fatal(client_ret))
			client_ret = gnutls_handshake(c);
		if (server_ret < 0 && !gnutls_error_is_fatal(server_ret))
			server_ret = gnutls_handshake(s);
	}
	if (!server_ret && !client_ret)
		note_agreed(c, expect);
	gnutls_deinit(s);
	gnutls_deinit(c);
	gnutls_certificate_free_credentials(ours);
	gnutls_certificate_free_credentials(theirs);
	close(pair[0]);
	close(pair[1]);
	return !server_ret && !client_ret;
}

static bool serves(const struct web_config *c, const struct identity *who, const char *priority)
{
	struct web_tls *t = opened(c);
	bool met = meet(t, who, priority, c->cert == rsa_server.crt_pem ? &rsa_server : &server);

	web_tls_put(t);
	return met;
}

/* --- what they agree on --- */

#define TLS12 "NORMAL:-VERS-ALL:+VERS-TLS1.2"
#define TLS13 "NORMAL:-VERS-ALL:+VERS-TLS1.3"
#define TLS11 "NORMAL:-VERS-ALL:+VERS-TLS1.1"

static void test_versions(void **state)
{
	struct web_config c = config_of(&server);

	(void)state;
	assert_true(serves(&c, NULL, NULL));
	assert_int_equal(agreed.version, GNUTLS_TLS1_3);
	assert_int_equal(agreed.chain, 1);
	assert_true(agreed.is_server);
	assert_true(serves(&c, NULL, TLS12));
	assert_int_equal(agreed.version, GNUTLS_TLS1_2);
	assert_false(serves(&c, NULL, TLS11));
	c.min_tls = 13;
	assert_false(serves(&c, NULL, TLS12));
	assert_true(serves(&c, NULL, NULL));
	c.min_tls = 12;
	assert_true(serves(&c, NULL, TLS12));
	c.max_tls = 12;
	assert_false(serves(&c, NULL, TLS13));
	assert_true(serves(&c, NULL, NULL));
	assert_int_equal(agreed.version, GNUTLS_TLS1_2);
	c.max_tls = 13;
	assert_true(serves(&c, NULL, TLS13));
	c = config_of(&rsa_server);
	assert_true(serves(&c, NULL, TLS12));
	assert_true(agreed.is_server);
}

/* Suites by their numbers in WEB_CIPHER_TABLE: only those for the kind of key matter. */
static void test_ciphers(void **state)
{
	struct web_config c = config_of(&server);
	struct web_tls *t = NULL;
	struct err err = { "" };

	(void)state;
	/* TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 */
	c.ciphers = (struct web_choices){ { 4 }, 1 };
	assert_true(serves(&c, NULL, TLS12));
	assert_int_equal(agreed.cipher, GNUTLS_CIPHER_AES_256_GCM);
	assert_false(serves(&c, NULL, TLS12 ":-CIPHER-ALL:+AES-128-GCM"));
	/* that for RSA does not count */
	c.ciphers = (struct web_choices){ { 3, 7 }, 2 };
	assert_true(serves(&c, NULL, TLS12 ":-CIPHER-ALL:+AES-128-GCM"));
	assert_false(serves(&c, NULL, TLS12 ":-CIPHER-ALL:+AES-256-GCM"));
	/* TLS_AES_256_GCM_SHA384, of any key */
	c.ciphers = (struct web_choices){ { 1 }, 1 };
	assert_true(serves(&c, NULL, NULL));
	assert_int_equal(agreed.cipher, GNUTLS_CIPHER_AES_256_GCM);
	c.ciphers = (struct web_choices){ { 6 }, 1 };
	assert_int_equal(web_tls_open(&c, &t, &err), -EINVAL);
	assert_string_equal(err.text, "cipher_suites: none of them fits the certificate, which has "
				      "an ECDSA key");
	c = config_of(&rsa_server);
	c.ciphers = (struct web_choices){ { 6 }, 1 };
	assert_true(serves(&c, NULL, TLS12));
	assert_int_equal(agreed.cipher, GNUTLS_CIPHER_AES_128_GCM);
	c.ciphers = (struct web_choices){ { 3 }, 1 };
	assert_int_equal(web_tls_open(&c, &t, &err), -EINVAL);
	assert_string_equal(err.text, "cipher_suites: none of them fits the certificate, which has "
				      "an RSA key");
	assert_null(t);
}

/* The server's order decides, unless the client's is to. */
static void test_order(void **state)
{
	struct web_config c = config_of(&server);

	(void)state;
	c.ciphers = (struct web_choices){ { 4, 3 }, 2 };
	assert_true(serves(&c, NULL, TLS12 ":-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM"));
	assert_int_equal(agreed.cipher, GNUTLS_CIPHER_AES_256_GCM);
	c.client_order = true;
	assert_true(serves(&c, NULL, TLS12 ":-CIPHER-ALL:+AES-128-GCM:+AES-256-GCM"));
	assert_int_equal(agreed.cipher, GNUTLS_CIPHER_AES_128_GCM);
}

static void test_curves(void **state)
{
	struct web_config c = config_of(&server);

	(void)state;
	c.curves = (struct web_choices){ { 1 }, 1 };
	assert_true(serves(&c, NULL, NULL));
	assert_int_equal(agreed.group, GNUTLS_GROUP_SECP384R1);
	assert_false(serves(&c, NULL, "NORMAL:-GROUP-ALL:+GROUP-X25519"));
	c.curves = (struct web_choices){ { 3, 1 }, 2 };
	assert_true(serves(&c, NULL, "NORMAL:-GROUP-ALL:+GROUP-X25519"));
	assert_int_equal(agreed.group, GNUTLS_GROUP_X25519);
}

/* --- clients --- */

static void test_asked(void **state)
{
	struct web_config c = config_of(&server);

	(void)state;
	c.client_auth = WEB_CLIENT_NONE;
	assert_true(serves(&c, NULL, NULL));
	assert_true(serves(&c, &foreign, NULL));
	c.client_auth = WEB_CLIENT_REQUEST;
	assert_true(serves(&c, NULL, NULL));
	assert_true(serves(&c, &foreign, NULL));
	c.client_auth = WEB_CLIENT_ANY;
	assert_false(serves(&c, NULL, NULL));
	assert_true(serves(&c, &foreign, NULL));
	assert_true(serves(&c, &foreign, TLS12));
}

static void test_verified(void **state)
{
	struct web_config c = config_of(&server);

	(void)state;
	c.client_ca = ca.crt_pem;
	c.client_auth = WEB_CLIENT_IF_GIVEN;
	assert_true(serves(&c, NULL, NULL));
	assert_true(serves(&c, &client, NULL));
	assert_false(serves(&c, &foreign, NULL));
	c.client_auth = WEB_CLIENT_VERIFY;
	assert_false(serves(&c, NULL, NULL));
	assert_true(serves(&c, &client, NULL));
	assert_true(serves(&c, &client, TLS12));
	assert_false(serves(&c, &foreign, NULL));
	assert_false(serves(&c, &foreign, TLS12));
	assert_false(serves(&c, &expired, NULL));
	assert_false(serves(&c, &not_client, NULL));
}

/* One name of the list must be in the certificate, whatever its kind. */
static void test_names(void **state)
{
	static char *const good[] = { "prometheus", "10.0.0.1", "2001:db8::7", "a@b.c",
				      "spiffe://x/y" };
	static char *const bad[] = { "Prometheus", "prometheu", "10.0.0.2", "client", "" };
	struct web_config c = config_of(&server);

	(void)state;
	c.client_ca = ca.crt_pem;
	c.client_auth = WEB_CLIENT_VERIFY;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		c.n_sans = 2;
		c.sans[0] = "none";
		c.sans[1] = good[i];
		if (!serves(&c, &client, NULL))
			fail_msg("%s", good[i]);
	}
	c.n_sans = 1;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		c.sans[0] = bad[i];
		if (serves(&c, &client, NULL))
			fail_msg("%s", bad[i]);
	}
}

/* --- files --- */

static void bad(struct web_config c, const char *why)
{
	struct web_tls *t = NULL;
	struct err err = { "" };

	assert_int_equal(web_tls_open(&c, &t, &err), -EINVAL);
	assert_null(t);
	if (strncmp(err.text, why, strlen(why)))
		fail_msg("%s", err.text);
}

static void test_files(void **state)
{
	struct web_config c = config_of(&server);

	(void)state;
	c.cert = "x";
	bad(c, "cert_file: not a PEM certificate: ");
	c = config_of(&server);
	c.key = "x";
	bad(c, "key_file: not a PEM private key: ");
	c.key = client.key_pem;
	bad(c, "cert_file and key_file do not belong together: ");
	c = config_of(&server);
	c.client_ca = "x";
	bad(c, "client_ca_file: no PEM certificate: ");
}

/* A chain is sent as it is, however long. */
static void test_chain(void **state)
{
	char text[40000], *at = text;
	struct web_config c = config_of(&server);

	(void)state;
	at = stpcpy(at, server.crt_pem);
	at = stpcpy(at, ca.crt_pem);
	c.cert = text;
	assert_true(serves(&c, NULL, NULL));
	assert_int_equal(agreed.chain, 2);
	for (int i = 2; i < 40; i++)
		at = stpcpy(at, ca.crt_pem);
	assert_true(serves(&c, NULL, NULL));
	assert_int_equal(agreed.chain, 40);
	assert_true(agreed.is_server);
}

/* Connections keep the parameters that they began with. */
static void test_users(void **state)
{
	struct web_config c = config_of(&server);
	struct web_tls *t = opened(&c);

	(void)state;
	assert_ptr_equal(web_tls_get(t), t);
	web_tls_put(t);
	assert_true(meet(t, NULL, NULL, &server));
	web_tls_put(t);
	web_tls_put(NULL);
	assert_null(web_tls_get(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions), cmocka_unit_test(test_ciphers),
		cmocka_unit_test(test_order),	 cmocka_unit_test(test_curves),
		cmocka_unit_test(test_asked),	 cmocka_unit_test(test_verified),
		cmocka_unit_test(test_names),	 cmocka_unit_test(test_files),
		cmocka_unit_test(test_chain),	 cmocka_unit_test(test_users),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
