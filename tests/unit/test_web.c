// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the server reads from others: headers, addresses, and the file of --web.config.file. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
