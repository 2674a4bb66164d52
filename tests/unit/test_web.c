// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the server reads from others: headers, addresses, and the file of --web.config.file. */
#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "tree.h"
#include "web/web_server.h"

#define HASH "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW" /* of "secret" */

static void test_accept(void **state)
{
	static const struct {
		const char *accept;
		enum metrics_format format;
	} rows[] = {
		{ NULL, METRICS_TEXT },
		{ "", METRICS_TEXT },
		{ "*/*", METRICS_TEXT },
		{ "text/html,application/xhtml+xml", METRICS_TEXT },
		{ "application/openmetrics-text", METRICS_OPENMETRICS },
		{ "Application/OpenMetrics-Text ; Version=\"1.0.0\"", METRICS_OPENMETRICS },
		{ "application/openmetrics-text;version=2.0.0", METRICS_OPENMETRICS2 },
		{ "application/openmetrics-text;version=2.0.0;q=0.5,text/plain", METRICS_TEXT },
		{ "application/openmetrics-text;version=2.0.0;q=0.5,"
		  "application/openmetrics-text;version=1.0.0;q=0.6",
		  METRICS_OPENMETRICS },
		{ "application/openmetrics-text;version=3.0.0", METRICS_TEXT },
		{ "application/openmetrics-text;q=0", METRICS_TEXT },
		{ "application/openmetrics-text;q=0.5,text/plain;q=0.75", METRICS_TEXT },
		{ "application/openmetrics-text;q=1.5", METRICS_TEXT },
		{ "application/openmetrics-text;q=-1", METRICS_TEXT },
		{ "application/openmetrics-text;x=\",\\\";\";q=0.001", METRICS_OPENMETRICS },
		{ "application/openmetrics-textual", METRICS_TEXT },
		/* of Prometheus 2.42 */
		{ "application/openmetrics-text;version=1.0.0,application/openmetrics-text;"
		  "version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		  METRICS_OPENMETRICS },
		/* of Prometheus 3 with protobuf first */
		{ "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
		  "encoding=delimited;q=0.6,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.5,"
		  "application/openmetrics-text;version=1.0.0;q=0.4,text/plain;version=0.0.4;q=0.3",
		  METRICS_OPENMETRICS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (web_accept(rows[i].accept) != rows[i].format)
			fail_msg("'%s'", rows[i].accept);
}

static void test_gzip(void **state)
{
	static const char *const yes[] = { "gzip", "deflate, gzip;q=0.1", "*", "GZIP ; q=1.000",
					   "x-gzip" };
	static const char *const no[] = { "",	  "gzip;q=0",	   "*, gzip;q=0",
					  "br",	  "gzip;q=0.0000", "gzipped",
					  "*;q=0" };

	(void)state;
	assert_false(web_accept_gzip(NULL));
	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
		if (!web_accept_gzip(yes[i]))
			fail_msg("'%s'", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		if (web_accept_gzip(no[i]))
			fail_msg("'%s'", no[i]);
}

static void test_addresses(void **state)
{
	static const char *const bad[] = { "",
					   "80",
					   ":",
					   ":x",
					   "1.2.3.4",
					   "1.2.3.4:",
					   "::1:80",
					   "[::1]",
					   "[:80",
					   "a]:80",
					   ":65536",
					   ":-1",
					   ": 80",
					   "127.0.0.1:80x",
					   "256.1.1.1:0",
					   ":000000080" };
	struct err err;
	char text[128];
	int fd;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err.text[0] = 0;
		if (web_listen(bad[i], &err) >= 0 || !*err.text)
			fail_msg("'%s' was taken", bad[i]);
	}
	fd = web_listen("127.0.0.1:0", &err);
	assert_true(fd >= 0);
	web_address_text(fd, text, sizeof(text));
	assert_memory_equal(text, "127.0.0.1:", 10);
	assert_int_equal(web_listen(text, &err), -EADDRINUSE);
	close(fd);
	fd = web_listen(":0", &err);
	assert_true(fd >= 0);
	close(fd);
}

static void set_mode(const char *file, mode_t mode)
{
	char path[512];

	snprintf(path, sizeof(path), "%s%s", root, file);
	assert_int_equal(chmod(path, mode), 0);
}

static void good(const char *text, struct web_config *c)
{
	struct err err = {};

	if (web_config_parse(text, strlen(text), root, c, &err))
		fail_msg("%s: %s", text, err.text);
}

static void test_config(void **state)
{
	struct web_config c;

	(void)state;
	good("", &c);
	good("# nothing\n", &c);
	good("basic_auth_users:\n", &c);
	assert_int_equal(c.n_users, 0);
	good("http_server_config:\n  http2: false\n", &c);
	put_file("/cert.pem", "CERT");
	put_file("/key.pem", "KEY");
	put_file("/ca.pem", "CA");
	set_mode("/key.pem", 0600);
	good("tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n"
	     "basic_auth_users:\n  a: " HASH "\n  'b c': \"" HASH "\"\n",
	     &c);
	assert_string_equal(c.cert, "CERT");
	assert_string_equal(c.key, "KEY");
	assert_int_equal(c.n_users, 2);
	assert_string_equal(c.users[1].name, "b c");
	web_config_free(&c);
	good("tls_server_config:\n"
	     "  cert_file: cert.pem\n"
	     "  key_file: key.pem\n"
	     "  client_ca_file: ca.pem\n"
	     "  client_auth_type: RequireAndVerifyClientCert\n"
	     "  client_allowed_sans: [prometheus, 10.0.0.1]\n"
	     "  min_version: TLS12\n"
	     "  max_version: TLS13\n"
	     "  cipher_suites: [TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384]\n"
	     "  curve_preferences:\n  - X25519\n  - CurveP256\n"
	     "  prefer_server_cipher_suites: false\n",
	     &c);
	assert_string_equal(c.client_ca, "CA");
	assert_int_equal(c.client_auth, WEB_CLIENT_VERIFY);
	assert_int_equal(c.n_sans, 2);
	assert_string_equal(c.sans[1], "10.0.0.1");
	assert_int_equal(c.min_tls, 12);
	assert_int_equal(c.ciphers.n, 1);
	assert_int_equal(c.curves.n, 2);
	assert_int_equal(c.curves.row[0], 3);
	assert_true(c.client_order);
	web_config_free(&c);
}

static void test_bad_config(void **state)
{
	static const struct {
		const char *text, *said;
	} rows[] = {
		{ "a", "line 1: the file: expected lines" },
		{ "- a\n", "line 1" },
		{ "\n\nnonsense: 1\n", "line 3: nonsense: unknown key" },
		{ "tls_server_config:\n  cert_file: cert.pem\n", "needs both" },
		{ "tls_server_config:\n  cert_file: none.pem\n", "line 2: cert_file: cannot open" },
		{ "tls_server_config:\n  cert_file: .\n", "not a regular file" },
#define TLS "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n  "
		{ "tls_server_config:\n  cert: PEM\n", "line 2: cert: unsupported key" },
		{ TLS "client_ca_file: cert.pem\n", "no effect" },
		{ TLS "client_auth_type: RequireAndVerifyClientCert\n", "needs client_ca_file" },
		{ TLS "client_auth_type: Please\n", "choose from NoClientCert, " },
		{ TLS "client_allowed_sans: [a]\n", "needs client_auth_type" },
		{ TLS "min_version: TLS10\n", "line 4: min_version: must be TLS12 or TLS13" },
		{ TLS "min_version: TLS13\n  max_version: TLS12\n", "below" },
		{ TLS "cipher_suites: [TLS_RSA_WITH_AES_128_CBC_SHA]\n", "insecure" },
		{ TLS "cipher_suites: []\n", "expected a list" },
		{ TLS "cipher_suites: [{}]\n", "list of strings" },
		{ TLS "curve_preferences: X25519\n", "expected a list" },
		{ TLS "prefer_server_cipher_suites: maybe\n", "true or false" },
		{ "tls_server_config:\n  cert_file: cert.pem\n  key_file: open.pem\n",
		  "mode 0644, so that other users can read the key" },
		{ "tls_server_config:\n  cert_file: cert.pem\n  key_file: group.pem\n",
		  "mode 0660, so that other users can replace the key" },
		{ "tls_server_config: [1]\n", "tls_server_config: expected lines" },
		{ "tls_server_config: text\n", "tls_server_config: expected lines" },
		{ "basic_auth_users: {a: secret}\n", "bcrypt" },
		{ "basic_auth_users: {a: [x]}\n", "bcrypt" },
		{ "basic_auth_users: {a: $2y$04$tooshort}\n", "bcrypt" },
		{ "basic_auth_users: {a: "
		  "'$2y$31$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW'}\n",
		  "cost" },
		{ "basic_auth_users: {'a:b': " HASH "}\n", "':'" },
		{ "basic_auth_users: {a: " HASH ", a: " HASH "}\n", "duplicate key" },
		{ "basic_auth_users: {[x]: " HASH "}\n", "must be a string" },
		{ "http_server_config: {http2: true}\n", "unsupported" },
		{ "a: &x {b: *x}\n", "aliases" },
		{ "--- {}\n--- {}\n", "expected one document" },
		{ "a: [\n", "invalid YAML" },
		{ "\tx: y\n", "invalid YAML" },
		{ "a: \"\\xZZ\"\n", "invalid YAML" },
	};

	(void)state;
	put_file("/cert.pem", "CERT");
	put_file("/key.pem", "KEY");
	put_file("/open.pem", "KEY");
	put_file("/group.pem", "KEY");
	set_mode("/key.pem", 0640);
	set_mode("/open.pem", 0644);
	set_mode("/group.pem", 0660);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct web_config c;
		struct err err = {};

		if (web_config_parse(rows[i].text, strlen(rows[i].text), root, &c, &err) >= 0)
			fail_msg("taken: %s", rows[i].text);
		if (!strstr(err.text, rows[i].said))
			fail_msg("%s: said %s", rows[i].text, err.text);
	}
}

static void test_hosts(void **state)
{
	static const char *const local[] = { "localhost",  "LOCALHOST:9950", "127.0.0.1:9950",
					     "[::1]:9950", "10.1.2.3",	     "a.localhost",
					     "localhost.", "scrape.me:1" };
	static const char *const foreign[] = { "",
					       "evil.example",
					       "localhost.evil.example",
					       "127.0.0.1.evil.example:9950",
					       "evillocalhost",
					       "[evil.example]",
					       "127.1.evil" };
	static const struct web_opts opts = { .listen = { ":9950", "scrape.me:9950" },
					      .n_listen = 2 };
	static const struct web_opts none;
	char own[300];

	(void)state;
	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if (!web_host_is_local(local[i], &opts))
			fail_msg("'%s'", local[i]);
	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		if (web_host_is_local(foreign[i], &opts))
			fail_msg("'%s'", foreign[i]);
	assert_int_equal(gethostname(own, 256), 0);
	strcat(own, ":9950");
	assert_true(web_host_is_local(own, &none));
}

/* The syntax alone; names are not resolved. */
static void test_syntax(void **state)
{
	static const char *const good_ones[] = { ":0",	     ":65535", "no.such.host:80",
						 "[::1]:80", "[]:80",  "1.2.3.4:00080" };
	static const char *const bad_ones[] = { ":65536", "::1:80", "[::1:80", "a[b]:80",
						":80 ",	  ":+80",   "80" };
	char longest[300] = "";
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(good_ones) / sizeof(*good_ones); i++)
		if (web_check_address(good_ones[i], &err))
			fail_msg("'%s': %s", good_ones[i], err.text);
	for (size_t i = 0; i < sizeof(bad_ones) / sizeof(*bad_ones); i++)
		if (web_check_address(bad_ones[i], &err) != -EINVAL)
			fail_msg("'%s' was taken", bad_ones[i]);
	memset(longest, 'a', 255);
	strcpy(longest + 255, ":1");
	assert_int_equal(web_check_address(longest, &err), 0);
	memset(longest, 'a', 256);
	strcpy(longest + 256, ":1");
	assert_int_equal(web_check_address(longest, &err), -EINVAL);
}

static void test_loopback(void **state)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	const struct sockaddr unix_one = { .sa_family = AF_UNIX };
	static const struct {
		const char *text;
		bool loopback;
	} rows[] = { { "127.0.0.1", true },
		     { "127.255.1.2", true },
		     { "126.0.0.1", false },
		     { "128.0.0.1", false },
		     { "0.0.0.0", false } },
	  rows6[] = { { "::1", true },
		      { "::2", false },
		      { "::", false },
		      { "::ffff:127.0.0.9", true },
		      { "::ffff:126.0.0.1", false },
		      { "::127.0.0.1", false },
		      { "fe80::7f00:1", false } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		assert_int_equal(inet_pton(AF_INET, rows[i].text, &v4.sin_addr), 1);
		if (web_address_loopback((struct sockaddr *)&v4) != rows[i].loopback)
			fail_msg("%s", rows[i].text);
	}
	for (size_t i = 0; i < sizeof(rows6) / sizeof(*rows6); i++) {
		assert_int_equal(inet_pton(AF_INET6, rows6[i].text, &v6.sin6_addr), 1);
		if (web_address_loopback((struct sockaddr *)&v6) != rows6[i].loopback)
			fail_msg("%s", rows6[i].text);
	}
	assert_false(web_address_loopback(&unix_one));
}

/* Lists have 16 items at most. */
static void test_lists(void **state)
{
	char text[2000], *at;
	struct web_config c;
	struct err err;

	(void)state;
	put_file("/cert.pem", "CERT");
	put_file("/key.pem", "KEY");
	put_file("/ca.pem", "CA");
	set_mode("/key.pem", 0600);
	for (int n = 16; n <= 17; n++) {
		at = text + sprintf(text,
				    "tls_server_config:\n  cert_file: cert.pem\n  key_file: "
				    "%s/key.pem\n  client_ca_file: ca.pem\n"
				    "  client_auth_type: RequireAndVerifyClientCert\n  "
				    "client_allowed_sans:\n",
				    root);
		for (int i = 0; i < n; i++)
			at += sprintf(at, "  - host%d\n", i);
		if (n == 16) {
			good(text, &c);
			assert_int_equal(c.n_sans, 16);
			assert_string_equal(c.sans[15], "host15");
			assert_int_equal(c.n_files, 3);
			web_config_free(&c);
			assert_int_equal(c.n_files, 0);
		} else {
			assert_int_equal(web_config_parse(text, strlen(text), root, &c, &err),
					 -EINVAL);
			assert_string_equal(
				err.text,
				"line 7: client_allowed_sans: expected a list of 1 to 16 strings");
		}
	}
	/* what clients may be asked for */
	assert_true(web_client_auths[WEB_CLIENT_ANY].required &&
		    !web_client_auths[WEB_CLIENT_ANY].verified);
	assert_true(web_client_auths[WEB_CLIENT_IF_GIVEN].verified &&
		    !web_client_auths[WEB_CLIENT_IF_GIVEN].required);
	assert_false(web_client_auths[WEB_CLIENT_NONE].asked);
}

/* Costs from 4 to 14 of bcrypt, as $2a, $2b or $2y. */
static void test_hashes(void **state)
{
	static const struct {
		const char *hash;
		bool is_good;
	} rows[] = {
		{ "$2a$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", true },
		{ "$2b$14$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", true },
		{ "$2y$15$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", false },
		{ "$2y$03$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", false },
		{ "$2x$10$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", false },
		{ "$3y$10$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", false },
		{ "$2y$1x$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", false },
		{ "$2y$:0$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", false },
		{ "$2y-10$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", false },
		{ "$2y$10-abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW", false },
		{ "$2y$10$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIr-", false },
		{ "$2y$10$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrWW", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char text[200];
		struct web_config c;
		struct err err = { "" };
		int ret;

		snprintf(text, sizeof(text), "basic_auth_users: {a: '%s'}\n", rows[i].hash);
		ret = web_config_parse(text, strlen(text), root, &c, &err);
		if ((ret == 0) != rows[i].is_good)
			fail_msg("%s: %s", rows[i].hash, err.text);
		if (!ret)
			web_config_free(&c);
	}
}

/* The file itself, and those that it names, relative to its directory. */
static void test_changes(void **state)
{
	char path[200], want[400];
	struct web_config c;
	struct err err = { "" };

	(void)state;
	put_file("/cert.pem", "CERT");
	put_file("/key.pem", "KEY");
	set_mode("/key.pem", 0600);
	put_file("/web.yml", "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n");
	snprintf(path, sizeof(path), "%s/web.yml", root);
	assert_int_equal(web_config_read(path, &c, &err), 0);
	assert_string_equal(c.key, "KEY");
	assert_int_equal(c.n_files, 3);
	assert_false(web_config_changed(&c));
	set_mode("/cert.pem", 0640);
	assert_true(web_config_changed(&c));
	web_config_free(&c);
	assert_int_equal(web_config_read(path, &c, &err), 0);
	assert_false(web_config_changed(&c));
	put_file("/web.yml", "tls_server_config: {cert_file: cert.pem, key_file: key.pem, a: b}\n");
	assert_true(web_config_changed(&c));
	web_config_free(&c);
	assert_int_equal(web_config_read(path, &c, &err), -EINVAL);
	snprintf(want, sizeof(want), "%s: line 1: a: unsupported key", path);
	assert_int_equal(strncmp(err.text, want, strlen(want)), 0);
	unlink(path);
	assert_int_equal(web_config_read(path, &c, &err), -ENOENT);
	snprintf(want, sizeof(want), "cannot open %s: No such file or directory", path);
	assert_string_equal(err.text, want);
}

/* Preferences have up to three decimals, and are from 0 to 1. */
static void test_preferences(void **state)
{
	static const struct {
		const char *accept;
		bool gzip;
	} rows[] = { { "gzip;q=0.001", true },	    { "gzip;q=1", true },
		     { "gzip;q=1.", true },	    { "gzip;q=0.0001", false },
		     { "gzip;q=1.001", false },	    { "gzip;q=2", false },
		     { "gzip;q=.5", false },	    { "gzip;q=0,5", false },
		     { "gzip;q=01", false },	    { "gzip;q=0.x", false },
		     { "gzip;q=", false },	    { "gzip; q=\"0.5\"", true },
		     { "gzip ;x=1;q", true },	    { "a;x=\"gzip,\"", false },
		     { "a;x=\"b\\\",gzip", false }, { "a\t,\tgzip\t", true } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (web_accept_gzip(rows[i].accept) != rows[i].gzip)
			fail_msg("'%s'", rows[i].accept);
	assert_int_equal(web_accept("application/openmetrics-text;q=0.2,text/plain;q=0.19"),
			 METRICS_OPENMETRICS);
	assert_int_equal(web_accept("application/openmetrics-text;q=0.2,text/plain;q=0.201"),
			 METRICS_TEXT);
	assert_int_equal(web_accept("application/openmetrics-text;q=0.2,text/plain;version=0.0.5"),
			 METRICS_OPENMETRICS);
	assert_int_equal(
		web_accept("text/plain;q=0.9,text/plain;q=0.1,application/openmetrics-text;q=0.5"),
		METRICS_TEXT);
}

#define R(f) cmocka_unit_test_setup_teardown(f, new_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accept),
		cmocka_unit_test(test_gzip),
		cmocka_unit_test(test_addresses),
		R(test_config),
		R(test_bad_config),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_syntax),
		cmocka_unit_test(test_loopback),
		R(test_lists),
		R(test_hashes),
		R(test_changes),
		cmocka_unit_test(test_preferences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
