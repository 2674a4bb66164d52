// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Profiles over HTTP: what a server on the loopback interface gets, and what its answers lead to. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "push/push_http.h"

#define OK		   "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
#define CHUNKED		   "HTTP/1.1 400 Bad\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
#define ANSWER(line, body) "HTTP/1.1 " line "\r\nConnection: close\r\n\r\n" body

/* Of push_post(), instead of libc's. */
static unsigned int slept[8], n_slept;

unsigned int sleep(unsigned int seconds)
{
	slept[n_slept++] = seconds;
	return 0;
}

/* A server in a process of its own, which gives an answer to each connection and passes on what it got. */
struct server {
	int listener, got;
	pid_t pid;
	char url[64];
};

/* Read a request: its head, and a body as long as the head says. */
static size_t read_request(int fd, char *out, size_t size)
{
	size_t n = 0, need = size - 1;
	ssize_t part;

	while (n < need && (part = read(fd, out + n, size - 1 - n)) > 0) {
		const char *end, *length;

		n += part;
		out[n] = 0;
		end = strstr(out, "\r\n\r\n");
		length = strcasestr(out, "\r\nContent-Length:");
		if (end)
			need = end + 4 - out +
			       (length && length < end ? strtoul(length + 17, NULL, 10) : 0);
	}
	return n;
}

static void serve(int listener, int to, const char *const *answers)
{
	static char request[1 << 16];

	for (; *answers; answers++) {
		const int fd = accept(listener, NULL, NULL);
		const size_t n = read_request(fd, request, sizeof(request));
		size_t length = strlen(*answers), at = 0;
		ssize_t part;

		if (write(to, request, n + 1) < 0) /* with a NUL behind it */
			_exit(1);
		for (; at < length && (part = write(fd, *answers + at, length - at)) > 0;
		     at += part)
			;
		close(fd);
	}
}

static void start(struct server *s, const char *const *answers)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int to[2];

	signal(SIGPIPE, SIG_IGN);
	n_slept = 0;
	s->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(s->listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s->listener, 8), 0);
	assert_int_equal(getsockname(s->listener, (struct sockaddr *)&at, &len), 0);
	snprintf(s->url, sizeof(s->url), "http://127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(pipe(to), 0);
	assert_true(fcntl(to[1], F_SETPIPE_SZ, 1 << 18) > 0);
	s->pid = fork();
	if (!s->pid) {
		serve(s->listener, to[1], answers);
		_exit(0);
	}
	close(to[1]);
	close(s->listener);
	s->got = to[0];
}

#define start(s, ...) start(s, (const char *const[]){ __VA_ARGS__, NULL })

/* Each request, one after the other, in the same buffer; their number. */
static unsigned int stop(struct server *s, char *last, size_t size)
{
	unsigned int requests = 0;
	size_t n = 0, from = 0;
	static char all[1 << 18];
	ssize_t part;
	int status;

	assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
	assert_int_equal(status, 0);
	while ((part = read(s->got, all + n, sizeof(all) - n)) > 0)
		n += part;
	close(s->got);
	for (size_t i = 0; i < n; i++) {
		if (all[i])
			continue;
		requests++;
		snprintf(last, size, "%s", all + from);
		from = i + 1;
	}
	return requests;
}

static void set_options(struct push_opts *o, const struct server *s, enum push_format format)
{
	*o = (struct push_opts){ .format = format, .name = "shop" };
	strcpy(o->url, s->url);
}

/* Text, as the server ends each request with a NUL. */
static const struct push_body body = { .data = "PROFILE",
				       .bytes = 7,
				       .from_s = 1000.7,
				       .until_s = 1060.2,
				       .host = "host-1",
				       .estimates = true };

static char last[1 << 16];

#define has(text)     assert_non_null(strstr(last, text))
#define has_not(text) assert_null(strstr(last, text))

static void test_pyroscope(void **unused)
{
	struct push_body without = body;
	struct push_opts o;
	struct server s;
	struct err err = { "" };
	__u32 retries = 5;

	(void)unused;
	start(&s, OK);
	set_options(&o, &s, PUSH_PYROSCOPE);
	assert_int_equal(push_post(&o, &body, &retries, &err), 0);
	assert_int_equal(stop(&s, last, sizeof(last)), 1);
	assert_int_equal(retries, 5);
	assert_string_equal(err.text, "");
	/* times are whole seconds that have all of it */
	has("POST "
	    "/ingest?format=pprof&spyName=ibscope&name=shop%7Bhostname%3Dhost-1%7D&from=1000&until="
	    "1061 HTTP/1.1\r\n");
	has("User-Agent: ibscope/");
	has_not("Authorization");
	has("form-data; name=\"profile\"; filename=\"profile.pb.gz\"");
	has("\r\n\r\nPROFILE\r\n");
	has("form-data; name=\"sample_type_config\"; filename=\"sample_type_config.json\"");
	has("{\"samples\":{\"units\":\"samples\"},\"miss_cycles\":{\"units\":\"cycles\"},"
	    "\"remote_miss_cycles\":{\"units\":\"cycles\"},\"estimated_ops\":{\"units\":\"ops\"},"
	    "\"dram\":{\"units\":\"samples\"}}");
	without.estimates = false;
	start(&s, OK);
	set_options(&o, &s, PUSH_PYROSCOPE);
	assert_int_equal(push_post(&o, &without, &retries, &err), 0);
	stop(&s, last, sizeof(last));
	has("{\"samples\":{\"units\":\"samples\"},\"latency\":{\"units\":\"cycles\"},"
	    "\"remote_latency\":{\"units\":\"cycles\"},\"dram\":{\"units\":\"samples\"}}");
}

static void test_parca(void **unused)
{
	struct push_opts o;
	struct server s;
	struct err err = { "" };
	__u32 retries = 0;

	(void)unused;
	start(&s, OK);
	set_options(&o, &s, PUSH_PARCA);
	assert_int_equal(push_post(&o, &body, &retries, &err), 0);
	stop(&s, last, sizeof(last));
	has("POST /profiles/writeraw HTTP/1.1\r\n");
	has("Content-Type: application/json\r\n");
	has("\r\n\r\n{\"series\":[{\"labels\":{\"labels\":[{\"name\":\"__name__\",\"value\":"
	    "\"shop\"},"
	    "{\"name\":\"instance\",\"value\":\"host-1\"}]},\"samples\":[{\"rawProfile\":"
	    "\"UFJPRklMRQ==\"}]}]}");
}

/* Tries again after a second and after four, where the server may accept it later. */
static void test_retries(void **unused)
{
	struct push_opts o;
	struct server s;
	struct err err = { "" };
	__u32 retries = 0;
	char want[200];

	(void)unused;
	start(&s, ANSWER("503 Busy", "later\r\nmore"), ANSWER("429 Slow down", ""), OK);
	set_options(&o, &s, PUSH_PYROSCOPE);
	assert_int_equal(push_post(&o, &body, &retries, &err), 0);
	assert_int_equal(stop(&s, last, sizeof(last)), 3);
	assert_int_equal(retries, 2);
	assert_int_equal(n_slept, 2);
	assert_int_equal(slept[0], 1);
	assert_int_equal(slept[1], 4);
	has("\r\n\r\nPROFILE\r\n");
	start(&s, ANSWER("408 Late", ""), ANSWER("500 Broken", ""),
	      ANSWER("599 Odd", "first\r\nsecond"));
	set_options(&o, &s, PUSH_PYROSCOPE);
	assert_int_equal(push_post(&o, &body, &retries, &err), -EAGAIN);
	assert_int_equal(stop(&s, last, sizeof(last)), 3);
	assert_int_equal(retries, 4);
	snprintf(want, sizeof(want), "%s answers 599: first", s.url);
	assert_string_equal(err.text, want);
}

static void refused(const char *answer, const char *why)
{
	struct push_opts o;
	struct server s;
	struct err err = { "" };
	__u32 retries = 0;
	char want[400];

	start(&s, answer);
	set_options(&o, &s, PUSH_PYROSCOPE);
	assert_int_equal(push_post(&o, &body, &retries, &err), -EPROTO);
	assert_int_equal(stop(&s, last, sizeof(last)), 1);
	assert_int_equal(retries, 0);
	assert_int_equal(n_slept, 0);
	snprintf(want, sizeof(want), "%s answers %s", s.url, why);
	assert_string_equal(err.text, want);
}

/* Of an answer, 200 bytes of the first line are in the message. Redirects are not followed. */
static void test_refused(void **unused)
{
	char answer[1000], why[300];

	(void)unused;
	refused(ANSWER("400 Bad", ""), "400");
	refused(ANSWER("407 Bad", "what\nis this"), "407: what");
	refused(ANSWER("409 Bad", ""), "409");
	refused(ANSWER("428 Bad", ""), "428");
	refused(ANSWER("499 Bad", ""), "499");
	refused("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nConnection: close\r\n\r\n",
		"302");
	snprintf(answer, sizeof(answer), ANSWER("400 Bad", "%0*d"), 201, 7);
	snprintf(why, sizeof(why), "400: %0*d", 200, 0);
	refused(answer, why);
	/* in several parts */
	refused(CHUNKED "2\r\nno\r\n4\r\n way\r\n0\r\n\r\n", "400: no way");
	snprintf(answer, sizeof(answer), CHUNKED "64\r\n%0*d\r\n65\r\n%0*d\r\n0\r\n\r\n", 100, 0,
		 101, 7);
	refused(answer, why);
}

/* A server that sends without end is given up after 64 KiB, with the status that it gave. */
static void test_endless(void **unused)
{
	static char answer[200000];
	const int n = snprintf(answer, sizeof(answer), ANSWER("400 Bad", "x\n"));
	struct push_opts o;
	struct server s;
	struct err err = { "" };
	__u32 retries = 0;
	char want[100];

	(void)unused;
	refused(ANSWER("400 Bad", "x\n"), "400: x");
	memset(answer + n, 'y', sizeof(answer) - n - 1);
	refused(answer, "400: x");
	/* accepted is accepted */
	memcpy(answer, "HTTP/1.1 200", 12);
	start(&s, answer);
	set_options(&o, &s, PUSH_PYROSCOPE);
	assert_int_equal(push_post(&o, &body, &retries, &err), 0);
	stop(&s, last, sizeof(last));
	snprintf(want, sizeof(want), "%s: ", s.url);
	/* nobody listens any more */
	assert_int_equal(push_post(&o, &body, &retries, &err), -EAGAIN);
	assert_int_equal(strncmp(err.text, want, strlen(want)), 0);
	assert_int_equal(retries, 2);
}

/* --- credentials --- */

static const char *make_secret(const char *text, size_t n, mode_t mode)
{
	static char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/test_push_http-%d", getpid());
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, n), n);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
	return path;
}

static void sends(const char *secret, const char *header)
{
	struct push_opts o;
	struct server s;
	struct err err = { "" };
	__u32 retries = 0;

	start(&s, OK);
	set_options(&o, &s, PUSH_PARCA);
	strcpy(o.credentials, make_secret(secret, strlen(secret), 0600));
	assert_int_equal(push_post(&o, &body, &retries, &err), 0);
	stop(&s, last, sizeof(last));
	unlink(o.credentials);
	has(header);
}

static void test_credentials(void **unused)
{
	struct push_secret secret;
	struct push_opts o = { .url = "http://127.0.0.1:1" };
	struct err err = { "" };
	__u32 retries = 0;

	(void)unused;
	sends("user:password\nrest", "\r\nAuthorization: Basic dXNlcjpwYXNzd29yZA==\r\n");
	sends("Bearer token\r\n", "\r\nAuthorization: Bearer token\r\n");
	assert_int_equal(push_secret_read("", &secret, &err), 0);
	assert_string_equal(secret.text, "");
	assert_string_equal(err.text, "");
	/* without them nothing is sent */
	strcpy(o.credentials, "/nowhere/file");
	assert_int_equal(push_post(&o, &body, &retries, &err), -ENOENT);
	assert_string_equal(
		err.text,
		"--push-credentials: cannot read /nowhere/file: No such file or directory");
}

static const char *secret_refused(const char *text, size_t n, mode_t mode)
{
	static struct err err;
	struct push_secret secret;
	const char *path = make_secret(text, n, mode), *at;

	err.text[0] = 0;
	assert_int_equal(push_secret_read(path, &secret, &err), -EINVAL);
	unlink(path);
	at = strstr(err.text, path);
	assert_non_null(at);
	return at + strlen(path);
}

static void test_bad_credentials(void **unused)
{
	struct push_secret secret;
	struct err err = { "" };
	char text[1100];
	const char *path;

	(void)unused;
	memset(text, 'x', sizeof(text));
	text[1] = ':';
	path = make_secret(text, 1023, 0600);
	assert_int_equal(push_secret_read(path, &secret, &err), 0);
	assert_int_equal(strlen(secret.text), 1023);
	assert_string_equal(secret_refused(text, 1024, 0600), " is too long");
	assert_string_equal(secret_refused(text, 1100, 0600), " is too long");
	assert_non_null(strstr(secret_refused("a:b", 3, 0644),
			       "so that other users can read the password"));
	assert_string_equal(secret_refused("password", 8, 0600),
			    " must be USER:PASSWORD or 'Bearer TOKEN'");
	assert_string_equal(secret_refused("Bearer", 6, 0600),
			    " must be USER:PASSWORD or 'Bearer TOKEN'");
	assert_string_equal(secret_refused("x\na:b", 5, 0600),
			    " must be USER:PASSWORD or 'Bearer TOKEN'");
	assert_int_equal(push_secret_read("/tmp", &secret, &err), -EINVAL);
	assert_string_equal(err.text, "--push-credentials: cannot read /tmp: Invalid argument");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pyroscope),	cmocka_unit_test(test_parca),
		cmocka_unit_test(test_retries),		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_endless),		cmocka_unit_test(test_credentials),
		cmocka_unit_test(test_bad_credentials),
	};

	unsetenv("http_proxy"); /* which curl obeys */
	unsetenv("all_proxy");
	unsetenv("ALL_PROXY");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
