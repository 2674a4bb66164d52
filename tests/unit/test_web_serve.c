// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The web server in this process, without a collector: its answers, what it refuses, passwords, and who must wait or leave. */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/rlimit.h"
#include "base/std.h"
#include "tree.h"
#include "web/web_server.h"

#define HASH		 "$2y$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW" /* of "secret" */
#define SECRET		 "Authorization: Basic YTpzZWNyZXQ=\r\n" /* a:secret */
#define WRONG		 "Authorization: Basic YTp3cm9uZw==\r\n" /* a:wrong */
#define CLOSE		 "Connection: close\r\n"
#define WITH(path, more) "GET " path " HTTP/1.1\r\nHost: localhost\r\n" more "\r\n"
#define GET(path)	 WITH(path, CLOSE)
#define TIMEOUT_S	 20

static struct web *w;
static struct web_opts opts;
static struct sockaddr_in address;
static char *got; /* the last answer */

static int set_up(void **state)
{
	opts = (struct web_opts){ .listen = { "127.0.0.1:0" }, .n_listen = 1 };
	if (new_root(state))
		return -1;
	snprintf(opts.pin_dir, sizeof(opts.pin_dir), "%s/pins", root);
	return 0;
}

static int tear_down(void **state)
{
	web_close(w);
	w = NULL;
	free(got);
	got = NULL;
	return remove_root(state);
}

static void serve(void)
{
	socklen_t n = sizeof(address);
	struct err err = { "" };

	if (web_listen_all(&opts, &w, &err))
		fail_msg("%s", err.text);
	assert_int_equal(getsockname(w->sockets[0], (struct sockaddr *)&address, &n), 0);
	if (web_start(w, &err))
		fail_msg("%s", err.text);
}

static int dial(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void put(int fd, const char *text)
{
	const ssize_t n = strlen(text);

	assert_int_equal(send(fd, text, n, MSG_NOSIGNAL), n);
}

/* As the program's loop does. */
static void turn(int fd)
{
	struct pollfd fds[] = { { .fd = web_fd(w), .events = POLLIN },
				{ .fd = fd, .events = POLLIN } };
	int ms = web_timeout_ms(w);

	poll(fds, fd < 0 ? 1 : 2, ms < 0 || ms > 100 ? 100 : ms);
	web_run(w);
}

/* Until the server closes the connection. */
static const char *answer_on(int fd)
{
	const double end = now_s() + TIMEOUT_S;
	size_t n = 0, room = 0;
	ssize_t more;

	free(got);
	got = NULL;
	do {
		turn(fd);
		array_reserve(got, room, n + 65536);
		more = recv(fd, got + n, room - n - 1, MSG_DONTWAIT);
		n += more > 0 ? more : 0;
	} while ((more > 0 || (more < 0 && errno == EAGAIN)) && now_s() < end);
	close(fd);
	got[n] = 0;
	return got;
}

static const char *ask(const char *request)
{
	int fd = dial();

	put(fd, request);
	return answer_on(fd);
}

static int status(const char *answer)
{
	int n = 0;

	sscanf(answer, "HTTP/1.1 %d ", &n);
	return n;
}

static const char *body(const char *answer)
{
	const char *end = strstr(answer, "\r\n\r\n");

	assert_non_null(end);
	return end + 4;
}

static void has(const char *answer, const char *line)
{
	char text[512];

	snprintf(text, sizeof(text), "\r\n%s\r\n", line);
	if (!strstr(answer, text))
		fail_msg("no '%s' in %.1000s", line, answer);
}

static void check(const char *request, int want, const char *text)
{
	const char *answer = ask(request);

	if (status(answer) != want || strcmp(body(answer), text))
		fail_msg("%s: %s", request, answer);
}

/* --- answers --- */

static void test_routes(void **state)
{
	const char *a;
	char want[1024];

	(void)state;
	serve();
	check(GET("/-/healthy"), 200, "OK\n");
	has(got, "Content-Type: text/plain; charset=utf-8");
	has(got, "X-Content-Type-Options: nosniff");
	has(got, "Cache-Control: no-store");
	check(GET("/nothing"), 404, "not found; see /\n");
	check(GET("/-/ready?x=1"), 503, strcpy(want, body(ask(GET("/-/ready")))));
	snprintf(want + 512, 512, "no collector has pinned its maps in %s: start `ibscope serve`\n",
		 opts.pin_dir);
	assert_string_equal(want, want + 512);
	a = ask(GET("/"));
	assert_int_equal(status(a), 200);
	has(a, "Content-Type: text/html; charset=utf-8");
	has(a, "Referrer-Policy: no-referrer");
	assert_non_null(strstr(a, "\r\nContent-Security-Policy: default-src 'none'; style-src"));
	assert_memory_equal(body(a), "<!doctype html>", 15);
	assert_non_null(strstr(body(a), "</script>"));
	check("HEAD / HTTP/1.1\r\nHost: localhost\r\n" CLOSE "\r\n", 200, "");
	check("POST /-/healthy HTTP/1.1\r\nHost: localhost\r\n" CLOSE "\r\n", 405,
	      "only GET and HEAD are supported\n");
	has(got, "Allow: GET, HEAD");
	has(got, "Content-Type: text/plain; charset=utf-8");
}

#define OPENMETRICS "Accept: application/openmetrics-text;version="

/* The same counters in the format that the client asks for; this is of one machine, so it is not compressed. */
static void test_formats(void **state)
{
	const char *a;
	json_t *o;

	(void)state;
	serve();
	a = ask(WITH("/metrics", CLOSE "Accept-Encoding: gzip\r\n"));
	assert_int_equal(status(a), 200);
	has(a, "Content-Type: text/plain; version=0.0.4; charset=utf-8");
	has(a, "Vary: Accept, Accept-Encoding");
	assert_null(strstr(a, "Content-Encoding"));
	assert_non_null(strstr(body(a), "\n# TYPE "));
	assert_null(strstr(a, "# EOF"));
	a = ask(WITH("/metrics", CLOSE OPENMETRICS "1.0.0\r\n"));
	has(a, "Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8");
	assert_non_null(strstr(body(a), "# EOF\n"));
	a = ask(WITH("/metrics", CLOSE OPENMETRICS "2.0.0\r\n"));
	has(a, "Content-Type: application/openmetrics-text; version=2.0.0; charset=utf-8");
	assert_int_equal(w->self.scrapes, 3);
	/* one reading for all of them, within a second */
	assert_int_equal(w->self.reads, 1);
	a = ask(GET("/api/snapshot.json"));
	has(a, "Content-Type: application/json");
	o = json_loads(body(a), 0, NULL);
	assert_non_null(o);
	json_decref(o);
	assert_int_equal(w->self.scrapes, 3);
	check(GET("/metrics/"), 404, "not found; see /\n");
}

/* It starts without a collector, and says that there is none. */
static void test_warning(void **state)
{
	char *text;
	size_t n;
	FILE *f = open_memstream(&text, &n);

	(void)state;
	log_to(f);
	serve();
	log_to(NULL);
	fclose(f);
	assert_non_null(strstr(text, "no collector has pinned its maps in "));
	assert_non_null(strstr(text, opts.pin_dir));
	free(text);
	assert_int_equal(status(ask(GET("/-/ready"))), 503);
}

static void test_telemetry_path(void **state)
{
	(void)state;
	strcpy(opts.telemetry_path, "/here");
	serve();
	assert_int_equal(status(ask(GET("/here"))), 200);
	assert_int_equal(status(ask(GET("/metrics"))), 404);
}

static json_t *history(const char *request)
{
	const char *a = ask(request);
	json_t *o;

	assert_int_equal(status(a), 200);
	has(a, "Content-Type: application/json");
	has(a, "Vary: Accept-Encoding");
	o = json_loads(body(a), 0, NULL);
	if (!o)
		fail_msg("%s", a);
	return o;
}

/* Without a number that is one, all of the history is sent. */
static void test_history(void **state)
{
	json_t *all, *o;

	(void)state;
	serve();
	json_decref(history(GET("/api/history.json")));
	web_close(w);
	opts.history = (struct metrics_history_opts){ .length_s = 60, .interval_s = 10 };
	serve();
	/* a reading is due at once, the next one not before half of the interval */
	assert_int_equal(web_timeout_ms(w), 0);
	web_run(w);
	assert_int_equal(w->self.reads, 1);
	assert_in_range(web_timeout_ms(w), 500, 10000);
	all = history(GET("/api/history.json"));
	for (int i = 0; i < 3; i++) {
		o = history(i == 0   ? GET("/api/history.json?after=x")
			    : i == 1 ? GET("/api/history.json?after=-1")
				     : GET("/api/history.json?after"));
		json_object_set(o, "now_s", json_object_get(all, "now_s"));
		assert_true(json_equal(o, all));
		json_decref(o);
	}
	json_decref(history(GET("/api/history.json?after=1")));
	json_decref(all);
	assert_int_equal(w->self.reads, 1);
}

/* --- what is refused --- */

#define LOCAL "Host: localhost\r\n" CLOSE

static void test_strict(void **state)
{
	static const struct {
		const char *request;
		int status;
		const char *text; /* NULL: libmicrohttpd may refuse it before */
	} rows[] = {
		{ "GET /-/healthy HTTP/1.0\r\n\r\n", 200, "OK\n" },
		{ "GET /-/healthy HTTP/1.1\r\n\r\n", 400, NULL },
		{ "GET /-/healthy HTTP/1.1\r\n" LOCAL "Host: localhost\r\n\r\n", 400, NULL },
		{ "GET /-/healthy HTTP/1.1\r\n" LOCAL "Content-Length: 0\r\n\r\n", 200, "OK\n" },
		{ "GET /-/healthy HTTP/1.1\r\n" LOCAL "Content-Length: 1\r\n\r\nx", 400,
		  "a request body is not accepted" },
		{ "GET /-/healthy HTTP/1.1\r\n" LOCAL "content-length: 00\r\n\r\n", 400,
		  "a request body is not accepted" },
		{ "GET /-/healthy HTTP/1.1\r\n" LOCAL "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		  400, "a request body is not accepted" },
		{ "GET /-/healthy HTTP/1.1\r\n" LOCAL
		  "Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
		  400, NULL },
		{ "GET /-/healthy HTTP/1.1\r\n" LOCAL "a{b: c\r\n\r\n", 400,
		  "invalid header line" },
		{ "GET /-/healthy HTTP/1.1\r\n" LOCAL "a: \001\r\n\r\n", 400,
		  "invalid header line" },
		{ "GET /-/healthy HTTP/1.1\r\n" LOCAL "a: \x7f\r\n\r\n", 400,
		  "invalid header line" },
		{ "GET /-/healthy HTTP/1.1\r\n" LOCAL "a: b\tc\xc3\xa4\r\n\r\n", 200, "OK\n" },
		{ "GET /-/healthy HTTP/1.1\r\n" LOCAL "Content-Lengths: 7\r\n\r\n", 200, "OK\n" },
		{ "GET /-/healthy HTTP/1.1\r\nHost: evil.example\r\n" CLOSE "\r\n", 421,
		  "unknown host name: use localhost, an IP address or this machine's name\n" },
		{ "POST /-/healthy HTTP/1.1\r\nHost: evil.example\r\n" CLOSE "\r\n", 421,
		  "unknown host name: use localhost, an IP address or this machine's name\n" },
	};

	(void)state;
	serve();
	/* names as long as those that announce a body */
	check(WITH("/-/healthy", CLOSE "Sec-Fetch-Dest: x\r\n"), 200, "OK\n");
	check(WITH("/-/healthy", CLOSE "Sec-WebSocket-Key: x\r\n"), 200, "OK\n");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const char *a = ask(rows[i].request);

		if (strncmp(a, "HTTP/1.", 7) || atoi(a + 9) != rows[i].status ||
		    (rows[i].text && strcmp(body(a), rows[i].text)))
			fail_msg("%s: %s", rows[i].request, a);
		if (rows[i].text && rows[i].status != 200)
			has(a, "Connection: close");
	}
	/* the server goes on */
	check(GET("/-/healthy"), 200, "OK\n");
	for (int i = 0; i < 50 && w->self.connections; i++)
		turn(-1);
	assert_int_equal(w->self.connections, 0);
}

/* --- passwords --- */

static char config[128];

static void put_config(const char *text)
{
	put_file("/web.yml", text);
	snprintf(config, sizeof(config), "%s/web.yml", root);
	strcpy(opts.config_file, config);
}

static void needs_password(const char *request)
{
	check(request, 401, "user name and password required\n");
	has(got, "WWW-Authenticate: Basic realm=\"ibscope\", charset=\"UTF-8\"");
}

static void test_passwords(void **state)
{
	(void)state;
	put_config("basic_auth_users: {a: " HASH "}\n");
	serve();
	needs_password(GET("/-/healthy"));
	assert_int_equal(w->self.passwords_checked, 0);
	check(WITH("/-/healthy", CLOSE SECRET), 200, "OK\n");
	assert_int_equal(w->self.passwords_checked, 1);
	assert_int_equal(w->self.passwords_wrong, 0);
	/* it is remembered */
	check(WITH("/-/healthy", CLOSE SECRET), 200, "OK\n");
	assert_int_equal(w->self.passwords_checked, 1);
	needs_password(WITH("/-/healthy", CLOSE WRONG));
	assert_int_equal(w->self.passwords_checked, 2);
	assert_int_equal(w->self.passwords_wrong, 1);
	/* requests that are refused anyway need no password */
	check("POST / HTTP/1.1\r\nHost: localhost\r\n" CLOSE "\r\n", 405,
	      "only GET and HEAD are supported\n");
}

/* The right password is for one request, not for those that follow on the connection. */
static void test_password_of_each_request(void **state)
{
	char *second;

	(void)state;
	put_config("basic_auth_users: {a: " HASH "}\n");
	serve();
	ask(WITH("/-/healthy", SECRET) GET("/-/healthy"));
	second = strstr(got + 1, "HTTP/1.1 ");
	assert_non_null(second);
	assert_int_equal(status(got), 200);
	assert_int_equal(status(second), 401);
}

/* Of one address, 64 wait; one more is told to come back. */
static void test_too_many_passwords(void **state)
{
	int fd[WEB_AUTH_QUEUE + 1], refused = 0, wrong = 0;

	(void)state;
	put_config("basic_auth_users: {a: " HASH "}\n");
	serve();
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = dial();
		put(fd[i], WITH("/-/healthy", CLOSE WRONG));
	}
	/* all of them arrive before the first one is checked */
	w->turn_ends_s = thread_cpu_s() + 10;
	for (int i = 0; i < 10; i++)
		MHD_run(w->daemons[0]);
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		const char *a = answer_on(fd[i]);

		wrong += status(a) == 401;
		if (status(a) != 429)
			continue;
		refused++;
		has(a, "Retry-After: 5");
		assert_string_equal(body(a),
				    "too many passwords from this address are being checked\n");
	}
	assert_int_equal(refused, 1);
	assert_int_equal(wrong, WEB_AUTH_QUEUE);
	assert_int_equal(w->self.passwords_wrong, WEB_AUTH_QUEUE);
}

/* Of a client that is gone, no password is checked. */
static void test_gone(void **state)
{
	int fd[3];

	(void)state;
	put_config("basic_auth_users: {a: " HASH "}\n");
	serve();
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = dial();
		put(fd[i], WITH("/-/healthy", CLOSE WRONG));
	}
	w->turn_ends_s = thread_cpu_s() + 10;
	for (int i = 0; i < 100 && w->conns.prev->wait != WEB_WAITS_AUTH; i++)
		MHD_run(w->daemons[0]);
	assert_int_equal(w->self.connections, 3);
	assert_int_equal(w->conns.prev->wait, WEB_WAITS_AUTH);
	/* the last one has waited for too long */
	w->conns.prev->since_s -= 61;
	w->next_check_s = 0;
	assert_int_equal(status(answer_on(fd[0])), 401);
	assert_int_equal(status(answer_on(fd[1])), 401);
	assert_int_equal(w->self.crowded_out, 1);
	assert_int_equal(w->self.passwords_checked, 2);
	close(fd[2]);
}

/* Files are read again when they change; what is wrong leaves the old ones in use, and is counted once. */
static void test_reload(void **state)
{
	(void)state;
	put_config("basic_auth_users: {a: " HASH "}\n");
	serve();
	needs_password(GET("/-/healthy"));
	put_config("basic_auth_users: {}\n");
	/* not within a second */
	w->next_config_s = now_s() + 100;
	needs_password(GET("/-/healthy"));
	w->next_config_s = 0;
	check(GET("/-/healthy"), 200, "OK\n");
	assert_true(w->next_config_s > now_s());
	assert_int_equal(w->self.config_errors, 0);
	put_config("nonsense: 1\n");
	for (int i = 0; i < 2; i++) {
		w->next_config_s = 0;
		check(GET("/-/healthy"), 200, "OK\n");
		assert_int_equal(w->self.config_errors, 1);
		assert_non_null(strstr(w->reload_err.text, "nonsense: unknown key"));
	}
	put_config("basic_auth_users: {b: " HASH ", a: " HASH "}\n");
	w->next_config_s = 0;
	needs_password(GET("/-/healthy"));
	assert_string_equal(w->reload_err.text, "");
	check(WITH("/-/healthy", CLOSE SECRET), 200, "OK\n");
}

/* --- connections --- */

/* Whether the server closes a connection within a few turns. */
static bool closes(int fd)
{
	char c;

	for (int i = 0; i < 5; i++) {
		turn(-1);
		if (!recv(fd, &c, 1, MSG_DONTWAIT))
			return true;
	}
	return false;
}

static void age(double seconds)
{
	assert_ptr_not_equal(w->conns.next, &w->conns);
	w->conns.next->since_s -= seconds;
	w->next_check_s = 0;
}

/* A request is complete within ten seconds; the next one may come after 75. */
static void test_times(void **state)
{
	char text[1024];
	int fd;

	(void)state;
	serve();
	fd = dial();
	put(fd, "GET /-/healthy HTTP/1.1\r\nHost: local");
	turn(fd);
	assert_int_equal(w->self.connections, 1);
	assert_in_range(web_timeout_ms(w), 0, 1000);
	age(9);
	assert_false(closes(fd));
	age(2);
	assert_true(closes(fd));
	assert_int_equal(w->self.crowded_out, 1);
	close(fd);
	for (int i = 0; i < 50 && w->self.connections; i++)
		turn(-1);
	assert_int_equal(w->self.connections, 0);
	fd = dial();
	put(fd, WITH("/-/healthy", ""));
	while (recv(fd, text, sizeof(text), MSG_DONTWAIT) < 0)
		turn(fd);
	assert_false(closes(fd));
	age(74);
	assert_false(closes(fd));
	age(2);
	assert_true(closes(fd));
	assert_int_equal(w->self.crowded_out, 2);
	close(fd);
}

/* With 448 connections, each new one takes the place of the one that has been idle longest. */
static void test_crowd(void **state)
{
	int fd[450], gone = 0;

	(void)state;
	rlimit_files(4096);
	serve();
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = dial();
		turn(fd[i]);
		while (w->self.connections + w->self.crowded_out <= i)
			turn(-1);
	}
	assert_int_equal(w->self.crowded_out, 2);
	for (int i = 0; i < 3; i++)
		turn(-1);
	assert_int_equal(w->self.connections, 448);
	for (size_t i = 0; i < ARRAY_SIZE(fd); i++) {
		char c;
		bool ended = !recv(fd[i], &c, 1, MSG_DONTWAIT);

		assert_true(!ended || i < 2);
		gone += ended;
		close(fd[i]);
	}
	assert_int_equal(gone, 2);
}

/* Beyond its CPU time of a turn, requests wait for the next one, which is due at once. */
static void test_turns(void **state)
{
	int fd;

	(void)state;
	serve();
	assert_int_equal(web_timeout_ms(w), -1);
	fd = dial();
	put(fd, GET("/-/healthy"));
	w->turn_ends_s = 0;
	for (int i = 0; i < 10 && !w->n_turns; i++)
		MHD_run(w->daemons[0]);
	assert_int_equal(w->n_turns, 1);
	assert_int_equal(web_timeout_ms(w), 0);
	assert_string_equal(body(answer_on(fd)), "OK\n");
	assert_int_equal(w->n_turns, 0);
	/* one that waits does not keep the server from ending */
	fd = dial();
	put(fd, GET("/-/healthy"));
	w->turn_ends_s = 0;
	for (int i = 0; i < 10 && !w->n_turns; i++)
		MHD_run(w->daemons[0]);
	assert_int_equal(w->n_turns, 1);
	web_close(w);
	w = NULL;
	close(fd);
}

/* --- texts of counters --- */

/* A text is made once for a reading, compressed or not, and counts as memory of the reading. */
static void test_flat(void **state)
{
	struct metrics_self self = {};
	struct web_scrapes *all = web_scrapes_open(opts.pin_dir, &opts.metrics, &self);
	struct web_scrape *s = web_scrape_get(all), *again = web_scrape_get(all);
	const struct web_flat *plain = web_scrape_flat(s, METRICS_TEXT, false), *zip;
	size_t before = s->bytes;

	(void)state;
	assert_ptr_equal(s, again);
	assert_int_equal(s->users, 2);
	assert_int_equal(plain->text[plain->n - 1], '\n');
	assert_memory_equal(plain->text, "# ", 2);
	assert_false(plain->big);
	zip = web_scrape_flat(s, METRICS_TEXT, true);
	assert_memory_equal(zip->text, "\x1f\x8b", 2);
	assert_true(zip->n < plain->n);
	assert_int_equal(s->bytes, before + zip->n);
	assert_ptr_equal(web_scrape_flat(s, METRICS_TEXT, true), zip);
	assert_int_equal(s->bytes, before + zip->n);
	assert_ptr_not_equal(web_scrape_flat(s, METRICS_JSON, false), plain);
	/* a reading lasts for a second */
	assert_true(web_scrapes_due_s(all) > now_s());
	assert_true(web_scrapes_due_s(all) <= now_s() + 1);
	assert_null(web_scrapes_surplus(all));
	web_scrape_put(all, again);
	web_scrape_put(all, s);
	web_scrape_put(all, NULL);
	assert_int_equal(self.reads, 1);
	assert_int_equal(self.read_errors, 0);
	web_scrapes_close(all);
	web_scrapes_close(NULL);
}

/* As a client on another machine. */
static const char *ask_from_afar(const char *request)
{
	const int fd = dial();

	while (w->conns.next == &w->conns)
		turn(-1);
	w->conns.next->loopback = false;
	put(fd, request);
	return answer_on(fd);
}

#define GZIP "Accept-Encoding: gzip\r\n"

/* Answers are compressed for clients of other machines that want it; not if one is too large for that. */
static void test_gzip(void **state)
{
	struct web_scrape *s, *now;
	const char *a;
	bool is_same;

	(void)state;
	serve();
	a = ask_from_afar(WITH("/metrics", CLOSE GZIP));
	assert_int_equal(status(a), 200);
	has(a, "Content-Encoding: gzip");
	has(a, "Vary: Accept, Accept-Encoding");
	assert_memory_equal(body(a), "\x1f\x8b", 2);
	a = ask_from_afar(GET("/metrics"));
	assert_null(strstr(a, "Content-Encoding"));
	assert_memory_equal(body(a), "# ", 2);
	a = ask_from_afar(WITH("/api/history.json", CLOSE GZIP));
	has(a, "Content-Encoding: gzip");
	assert_memory_equal(body(a), "\x1f\x8b", 2);
	/* unless a second has passed, and there is another reading */
	do {
		s = web_scrape_get(w->scrapes);
		free(s->flat[METRICS_TEXT][true].text);
		s->flat[METRICS_TEXT][true] = (struct web_flat){ .big = true };
		a = ask_from_afar(WITH("/metrics", CLOSE GZIP));
		now = web_scrape_get(w->scrapes);
		is_same = now == s;
		web_scrape_put(w->scrapes, now);
		web_scrape_put(w->scrapes, s);
	} while (!is_same);
	assert_int_equal(status(a), 200);
	assert_null(strstr(a, "Content-Encoding"));
	assert_memory_equal(body(a), "# ", 2);
}

/* --- options --- */

static void test_options(void **state)
{
	static const char *const bad[] = { "",	   "/",	   "metrics", "/-/x", "/api/x",
					   "/a?b", "/a#b", "/a%20",   "/<a",  "/a b",
					   "/a\"", "/a'b", "/a&b",    "/a>" };
	static const char *const good[] = { "/metrics", "/-", "/api", "/-x", "/a/b" };
	struct web_opts o = {};
	struct err err = { "" };
	char text[200];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (web_check_telemetry_path(bad[i], &err) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		if (web_check_telemetry_path(good[i], &err))
			fail_msg("'%s': %s", good[i], err.text);
	memset(text, 'a', sizeof(text));
	strcpy(text + 126, ":");
	assert_int_equal(web_add_listen(&o, text, &err), -EINVAL); /* no port */
	strcpy(text + 125, ":1");
	o.n_listen = 0;
	assert_int_equal(web_add_listen(&o, text, &err), 0);
	assert_string_equal(o.listen[0], text);
	strcpy(text + 125, ":12");
	assert_int_equal(web_add_listen(&o, text, &err), -EINVAL);
	assert_string_equal(err.text, "--web.listen-address: longer than 127 characters");
	for (int i = 1; i < WEB_LISTEN_MAX; i++)
		assert_int_equal(web_add_listen(&o, ":1", &err), 0);
	assert_int_equal(o.n_listen, 8);
	assert_int_equal(web_add_listen(&o, ":1", &err), -EINVAL);
	assert_string_equal(err.text, "--web.listen-address: more than 8 addresses");
	put_config("basic_auth_users: {a: " HASH "}\n");
	assert_int_equal(web_check_config(config, &err), 0);
	put_config("a: 1\n");
	assert_int_equal(web_check_config(config, &err), -EINVAL);
	assert_int_equal(web_listen_all(&opts, &w, &err), -EINVAL);
	opts.config_file[0] = 0;
	strcpy(opts.telemetry_path, "x");
	assert_int_equal(web_listen_all(&opts, &w, &err), -EINVAL);
	opts.telemetry_path[0] = 0;
	strcpy(opts.listen[0], "127.0.0.1:x");
	assert_int_equal(web_listen_all(&opts, &w, &err), -EINVAL);
	assert_null(w);
}

#define R(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		R(test_routes),
		R(test_formats),
		R(test_warning),
		R(test_telemetry_path),
		R(test_history),
		R(test_strict),
		R(test_passwords),
		R(test_password_of_each_request),
		R(test_too_many_passwords),
		R(test_gone),
		R(test_reload),
		R(test_times),
		R(test_crowd),
		R(test_turns),
		R(test_flat),
		R(test_gzip),
		R(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
