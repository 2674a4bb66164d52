// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Profiles of a running session: when they are taken, what becomes of them, and options of --push. */
#include <errno.h>
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
#include <strings.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "../unit/open_files.h"
#include "../unit/tree.h"
#include "base/array.h"
#include "base/clock.h"
#include "push/push.h"
#include "push/push_http.h"

#define INTERVAL_S 3600	  /* between profiles, in most tests */
#define PERIOD	   100000 /* ns */
#define TIMEOUT_S  30
/* The server closes each connection: a try must not use the one before again. */
#define OK	"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
#define REFUSED "HTTP/1.1 400 Bad\r\nConnection: close\r\nContent-Length: 6\r\n\r\nno way"
#define BUSY	"HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

static struct sampling_opts opts;
static struct session *session;
static struct push_opts to;
static struct push *push;
static struct ibs_push_counts counts;
static struct err err;

/* In memory shared with the server. */
static struct {
	char answer[256];
	unsigned int requests;
	size_t bytes; /* of the last body, which begins with: */
	unsigned char body[1 << 18];
	char head[256]; /* of the last request */
} * server;
static pid_t server_pid;

/* The time between two tries. */
unsigned int sleep(unsigned int seconds)
{
	(void)seconds;
	return 0;
}

/* --- the server --- */

static void answer_one(int fd)
{
	static char request[1 << 20];
	size_t n = 0, need = 1;
	ssize_t got;

	while (n < need && (got = read(fd, request + n, sizeof(request) - 1 - n)) > 0) {
		char *end, *length;

		request[n += got] = 0;
		end = strstr(request, "\r\n\r\n");
		length = strcasestr(request, "\r\nContent-Length:");
		if (!end)
			need = n + 1;
		else
			need = end + 4 - request + (length ? strtoul(length + 17, NULL, 10) : 0);
		server->bytes = end ? n - (end + 4 - request) : 0;
	}
	if (server->bytes && server->bytes < sizeof(server->body))
		memcpy(server->body, request + n - server->bytes, server->bytes);
	snprintf(server->head, sizeof(server->head), "%.*s", (int)strcspn(request, "\r"), request);
	__atomic_add_fetch(&server->requests, 1, __ATOMIC_RELEASE);
	if (write(fd, server->answer, strlen(server->answer)) < 0)
		_exit(1);
	close(fd);
}

static int start_server(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	server = mmap(NULL, sizeof(*server), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&at, &len))
		return -1;
	snprintf(to.url, sizeof(to.url), "http://127.0.0.1:%u/base/", ntohs(at.sin_port));
	server_pid = fork();
	if (!server_pid)
		for (;;)
			answer_one(accept(listener, NULL, NULL));
	close(listener);
	return 0;
}

/* --- the session --- */

static int open_session(void)
{
	sampling_init(&opts);
	opts.source = SOURCE_SIM;
	opts.all = opts.any_period = true;
	opts.event[0].rate = (struct event_rate){ .has_period = true, .period = PERIOD };
	opts.sampler.max_groups = 64;
	opts.sampler.count_ops = true; /* so that the period can change */
	to.interval_s = 1;
	to.duration_s = 1;
	session = session_new();
	return sampling_check(&opts, &err) ?: push_check(&to, &opts, &err)
	       ?: session_open(session, &opts, &err) ?: session_start(session, &err);
}

static struct sampler *sampler(void)
{
	return session_event(session, 0)->sampler;
}

static int fds_before;

static void begin(double interval_s, double duration_s)
{
	to.interval_s = interval_s;
	to.duration_s = duration_s;
	push = push_new(&to, session, &counts);
}

/* No second profile, and one that no test waits for. */
static int set_up(void **state)
{
	(void)state;
	fds_before = open_files();
	memset(&counts, 0, sizeof(counts));
	strcpy(server->answer, OK);
	server->requests = 0;
	begin(INTERVAL_S, 60);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	push_free(push);
	push = NULL;
	return open_files() == fds_before ? 0 : -1;
}

static void begin_again(double interval_s, double duration_s)
{
	push_free(push);
	memset(&counts, 0, sizeof(counts));
	begin(interval_s, duration_s);
}

/* As the loop of `serve`, on a busy CPU. */
static void turn(void)
{
	const double stop = thread_cpu_s() + 0.002;
	struct pollfd fds[PUSH_FDS];
	const int ms = push_prepare(push, fds);

	assert_true(ms >= -1 && ms <= 1000 * INTERVAL_S);
	poll(fds, PUSH_FDS, ms < 0 || ms > 5 ? 5 : ms);
	push_run(push, clock_ns(CLOCK_MONOTONIC));
	while (thread_cpu_s() < stop)
		;
}

/* Until a profile has been taken for a while. */
static void take_some(void)
{
	while (!push_pending(push))
		turn();
	for (int i = 0; i < 5; i++)
		turn();
	assert_true(push_pending(push));
}

/* Until so many profiles have an outcome. */
static void wait_for(__u64 profiles)
{
	const double stop = now_s() + TIMEOUT_S;
	__u64 n;

	do {
		n = 0;
		turn();
		for (int i = 0; i < IBS_PUSH_N; i++)
			n += i == IBS_PUSH_DROPPED ? 0 : counts.profiles[i];
	} while (n < profiles && now_s() < stop);
	assert_int_equal(n, profiles);
}

/* Does the last profile, which is compressed, have this text? */
static bool profile_has(const char *what)
{
	static unsigned char plain[1 << 20];
	z_stream z = { .next_out = plain, .avail_out = sizeof(plain) };
	unsigned char *at = memmem(server->body, server->bytes, "\x1f\x8b\x08", 3);
	bool found;

	assert_non_null(at);
	z.next_in = at;
	z.avail_in = server->body + server->bytes - at;
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	found = memmem(plain, z.total_out, what, strlen(what)) != NULL;
	inflateEnd(&z);
	return found;
}

/* --- outcomes --- */

static void test_delivered(void **state)
{
	struct pollfd fds[PUSH_FDS];
	unsigned int ms;
	double began;

	(void)state;
	prctl(PR_SET_NAME, "a-busy-thread");
	begin_again(INTERVAL_S, 0.1);
	began = now_s();
	assert_int_equal(counts.collectors, 1);
	assert_false(push_pending(push));
	/* the first one begins at once */
	assert_int_equal(push_prepare(push, fds), 0);
	assert_int_equal(fds[1].fd, -1);
	turn();
	assert_true(push_pending(push));
	ms = push_prepare(push, fds);
	assert_in_range(ms, 0, 100);
	assert_true(fds[1].fd >= 0);
	wait_for(1);
	assert_true(now_s() - began >= 0.1);
	assert_int_equal(counts.profiles[IBS_PUSH_DELIVERED], 1);
	assert_true(counts.samples[IBS_PUSH_DELIVERED] > 100);
	assert_int_equal(counts.retries, 0);
	assert_string_equal(push_failure(push), "");
	assert_int_equal(push_given_up(push), 0);
	assert_int_equal(server->requests, 1);
	assert_true(server->bytes > 100);
	assert_memory_equal(server->head, "POST /base/ingest?", 18);
	assert_non_null(strstr(server->head, "name=ibscope"));
	/* with samples of the function that keeps the CPU busy */
	assert_true(profile_has("test_push"));
	assert_true(profile_has("turn"));
	assert_true(profile_has("a-busy-thread"));
	assert_false(profile_has("no such function"));
	/* the next one begins an interval after the first */
	assert_false(push_pending(push));
	ms = push_prepare(push, fds);
	assert_in_range(ms, 1000 * (INTERVAL_S - 100), 1000 * INTERVAL_S);
	assert_int_equal(fds[0].fd, -1);
	push_run(push, 0);
	assert_false(push_pending(push));
}

/* What the server says is kept until it accepts a profile again. */
static void test_refused(void **state)
{
	(void)state;
	begin_again(1, 0.1);
	strcpy(server->answer, REFUSED);
	wait_for(1);
	assert_int_equal(counts.profiles[IBS_PUSH_REFUSED], 1);
	assert_true(counts.samples[IBS_PUSH_REFUSED] > 100);
	assert_non_null(strstr(push_failure(push), "no way"));
	assert_int_equal(server->requests, 1);
	strcpy(server->answer, OK);
	wait_for(2);
	assert_int_equal(counts.profiles[IBS_PUSH_DELIVERED], 1);
	assert_string_equal(push_failure(push), "");
}

static void test_unavailable(void **state)
{
	(void)state;
	begin_again(INTERVAL_S, 0.1);
	strcpy(server->answer, BUSY);
	wait_for(1);
	assert_int_equal(counts.profiles[IBS_PUSH_UNAVAILABLE], 1);
	assert_true(counts.samples[IBS_PUSH_UNAVAILABLE] > 100);
	assert_int_equal(server->requests, PUSH_TRIES);
	assert_int_equal(counts.retries, PUSH_TRIES - 1);
	assert_true(*push_failure(push));
}

/* The process that makes profiles was killed. */
static void test_killed(void **state)
{
	char file[64], list[256] = "";
	const double stop = now_s() + TIMEOUT_S;
	pid_t maker = 0;
	FILE *f;

	(void)state;
	snprintf(file, sizeof(file), "/proc/self/task/%d/children", getpid());
	if (access(file, R_OK)) {
		print_message("this kernel lists no children (CONFIG_PROC_CHILDREN)\n");
		skip();
	}
	begin_again(INTERVAL_S, 0.1);
	/* it would wait for the answer for ever */
	kill(server_pid, SIGSTOP);
	while (!maker && now_s() < stop) {
		char *at = list;

		turn();
		f = fopen(file, "r");
		if (!fgets(list, sizeof(list), f))
			*list = 0;
		fclose(f);
		for (long pid; (pid = strtol(at, &at, 10));)
			maker = pid == server_pid ? maker : pid;
	}
	assert_true(maker > 0);
	kill(maker, SIGKILL);
	wait_for(1);
	kill(server_pid, SIGCONT);
	assert_int_equal(counts.profiles[IBS_PUSH_FAILED], 1);
	assert_true(counts.samples[IBS_PUSH_FAILED] > 0);
	assert_string_equal(push_failure(push),
			    "the process that makes profiles failed (status 0x9)");
}

/* A profile that cannot be complete when the collector exits. */
static void test_unfinished(void **state)
{
	(void)state;
	take_some();
	push_free(push);
	push = NULL;
	assert_int_equal(counts.profiles[IBS_PUSH_UNFINISHED], 1);
	assert_true(counts.samples[IBS_PUSH_UNFINISHED] > 0);
	assert_int_equal(server->requests, 0);
}

/* Before the sampler is closed the profile ends, and is sent. */
static void test_closing(void **state)
{
	(void)state;
	push_closing(push);
	assert_false(push_pending(push));
	take_some();
	push_closing(push);
	assert_true(push_pending(push));
	wait_for(1);
	assert_int_equal(counts.profiles[IBS_PUSH_DELIVERED], 1);
}

/* Samples of one profile have one period: it ends when the governor changes that. */
static void test_period(void **state)
{
	struct pollfd fds[PUSH_FDS];

	(void)state;
	take_some();
	push_prepare(push, fds);
	assert_true(fds[1].fd >= 0);
	if (sampler_set_period(sampler(), 2 * PERIOD, &err))
		fail_msg("%s", err.text);
	push_run(push, clock_ns(CLOCK_MONOTONIC));
	/* it does not take any more samples */
	push_prepare(push, fds);
	assert_int_equal(fds[1].fd, -1);
	wait_for(1);
	assert_int_equal(counts.profiles[IBS_PUSH_DELIVERED], 1);
	assert_int_equal(sampler_set_period(sampler(), PERIOD, &err), 0);
}

/* --- options --- */

static void refused(struct push_opts o, const char *why)
{
	struct sampling_opts s;
	struct err e = { "" };

	sampling_init(&s);
	assert_true(push_check(&o, &s, &e) < 0);
	if (strncmp(e.text, why, strlen(why)))
		fail_msg("%s", e.text);
	assert_false(s.sampler.copies);
	sampling_free(&s);
}

static struct push_opts good(struct push_opts o, struct sampling_opts *s)
{
	struct err e = { "" };

	*s = (struct sampling_opts){};
	if (push_check(&o, s, &e))
		fail_msg("%s: %s", o.url, e.text);
	return o;
}

static void test_options(void **state)
{
	struct sampling_opts s = {};
	struct push_opts o;
	__u32 ring;

	(void)state;
	o = good((struct push_opts){}, &s);
	assert_false(s.sampler.copies);
	o = good((struct push_opts){ .url = "http://h/a/" }, &s);
	assert_string_equal(o.url, "http://h/a");
	assert_string_equal(o.name, "ibscope");
	assert_true(o.interval_s == 60 && o.duration_s == 10);
	assert_true(s.sampler.copies);
	assert_false(s.sampler.stacks);
	ring = s.sampler.ring_bytes;
	assert_true(ring > 0);
	o = good((struct push_opts){ .url = "https://h:1", .stacks = true, .name = "n" }, &s);
	assert_string_equal(o.url, "https://h:1");
	assert_string_equal(o.name, "n");
	assert_true(s.sampler.stacks);
	assert_int_equal(s.sampler.ring_bytes, 2 * ring);
	o = good((struct push_opts){ .url = "http://h", .interval_s = 5 }, &s);
	assert_true(o.duration_s == 5);
	o = good((struct push_opts){ .url = "http://h", .interval_s = 5, .duration_s = 5 }, &s);
	assert_true(o.interval_s == 5);
	refused((struct push_opts){ .url = "http://h", .interval_s = 5, .duration_s = 6 },
		"--push-duration is longer than --push-interval: 6 s, 5 s");
	refused((struct push_opts){ .url = "ftp://h" }, "--push: invalid URL 'ftp://h'");
	refused((struct push_opts){ .url = "http://" }, "--push: invalid URL");
	refused((struct push_opts){ .url = "https://" }, "--push: invalid URL");
	refused((struct push_opts){ .url = "https:///a" }, "--push: invalid URL");
	refused((struct push_opts){ .url = "http://h?a" }, "--push: invalid URL");
	refused((struct push_opts){ .url = "http://a@h" }, "--push: invalid URL");
	refused((struct push_opts){ .stacks = true }, "--stacks: only profiles have call chains");
	refused((struct push_opts){ .interval_s = 1 }, "--push-...: no URL to push to");
	refused((struct push_opts){ .duration_s = 1 }, "--push-...: no URL to push to");
	refused((struct push_opts){ .name = "n" }, "--push-...: no URL to push to");
	refused((struct push_opts){ .credentials = "/c" }, "--push-...: no URL to push to");
	refused((struct push_opts){ .ca = "/c" }, "--push-...: no URL to push to");
	refused((struct push_opts){ .url = "http://h", .ca = "/no/such" },
		"--push-ca: cannot read /no/such: No such file or directory");
	s = (struct sampling_opts){ .sampler.history_bytes = 1 };
	assert_int_equal(push_check(&(struct push_opts){ .url = "http://h" }, &s, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--push and --flight cannot be combined"));
	assert_string_equal(push_format_name(PUSH_PARCA), "parca");
}

/* They are sent over an encrypted connection, or within this machine. */
static void test_credentials(void **state)
{
	static const char *const local[] = { "http://localhost",    "http://localhost:1/a",
					     "http://127.0.0.1:1",  "http://[::1]/",
					     "https://example.com", "https://localhost.example" };
	static const char *const far[] = { "http://localhost.example", "http://127.0.0.10",
					   "http://example.com/localhost", "http://[::11]" };
	struct push_opts o = {};
	struct sampling_opts s;
	char path[128];

	assert_int_equal(new_root(state), 0);
	put_file("/secret", "a:b\n");
	snprintf(path, sizeof(path), "%s/secret", root);
	assert_int_equal(chmod(path, 0600), 0);
	strcpy(o.credentials, path);
	for (size_t i = 0; i < ARRAY_SIZE(local); i++) {
		strcpy(o.url, local[i]);
		good(o, &s);
	}
	for (size_t i = 0; i < ARRAY_SIZE(far); i++) {
		char why[256];

		strcpy(o.url, far[i]);
		snprintf(why, sizeof(why),
			 "--push: %s would send the credentials unencrypted: use https://", far[i]);
		refused(o, why);
	}
	assert_int_equal(chmod(path, 0644), 0);
	strcpy(o.url, "https://h");
	refused(o, "");
	remove_root(state);
}

#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_delivered),
		T(test_refused),
		T(test_unavailable),
		T(test_unfinished),
		T(test_closing),
		T(test_period),
		cmocka_unit_test(test_options),
		cmocka_unit_test(test_credentials),
		T(test_killed), /* last, as the server may answer it later */
	};
	int ret = start_server();

	signal(SIGPIPE, SIG_IGN);
	ret = ret ?: open_session();
	if (ret == -EPERM || ret == -EACCES || ret == -EOPNOTSUPP || ret == -ENOENT) {
		printf("skipped: %s\n", err.text);
		ret = 77;
	} else if (ret) {
		fprintf(stderr, "%s\n", err.text);
		ret = 1;
	} else {
		ret = cmocka_run_group_tests(tests, NULL, NULL);
	}
	session_free(session);
	sampling_free(&opts);
	kill(server_pid, SIGKILL);
	waitpid(server_pid, NULL, 0);
	return ret;
}
