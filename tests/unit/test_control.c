// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The socket of a collector: requests taken apart, clients of all kinds, what is left behind. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "collector/control.h"

static char dir[64], path[96];
static struct control *server;
static unsigned int handled;
static size_t answer_bytes;
static bool serves; /* false: as while requests are on hold */
static uid_t turns[64];

static enum control_result handle(void *arg, const struct control_request *r, FILE *out,
				  struct err *err)
{
	assert_ptr_equal(arg, &handled);
	assert_true(r->pid > 0);
	turns[handled++ % 64] = r->uid;
	if (!strcmp(r->verb, "refuse")) {
		err_set(err, -EINVAL, "because of %s", r->n ? r->line[0].name : "nothing");
		return CONTROL_USAGE;
	}
	if (!strcmp(r->verb, "fail")) {
		err_set(err, -EIO, "it failed");
		fputs("more\n", out);
		return CONTROL_FAILED;
	}
	for (size_t i = 0; i < r->n; i++)
		fprintf(out, "[%s|%s]", r->line[i].name, r->line[i].value ?: "-");
	for (size_t i = 0; i < answer_bytes; i++)
		fputc('x', out);
	return CONTROL_OK;
}

static int open_server(mode_t mode, struct err *err)
{
	const struct control_opts opts = {
		.path = path, .mode = mode, .handle = handle, .arg = &handled
	};

	return control_open(&opts, &server, err);
}

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/ibscope-control-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/run/control.sock", dir);
	handled = 0;
	answer_bytes = 0;
	serves = true;
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	control_close(server);
	server = NULL;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void start(void)
{
	struct err err = {};

	if (open_server(0600, &err))
		fail_msg("%s", err.text);
}

/* As the loop of a collector: so long, or until @done. */
static void serve(double seconds, bool (*done)(void *), void *arg)
{
	double end = now_s() + seconds;

	while (now_s() < end && !(done && done(arg))) {
		struct pollfd fd = { .fd = control_fd(server), .events = POLLIN };
		int ms = control_timeout_ms(server);

		poll(&fd, 1, ms < 0 || ms > 10 ? 10 : ms);
		control_run(server, serves);
	}
}

static int client(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	strcpy(addr.sun_path, path);
	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

/* What a client has got; ended: there is no more. */
struct got {
	int fd;
	bool ended;
	size_t n;
	char text[4096];
};

static bool got_all(void *arg)
{
	struct got *g = arg;

	for (;;) {
		ssize_t n = recv(g->fd, g->text + g->n, sizeof(g->text) - 1 - g->n, 0);

		if (n < 0 && errno == EAGAIN)
			return false;
		if (n <= 0) {
			g->ended = true;
			return true;
		}
		g->n += n;
		g->text[g->n] = 0;
	}
}

static void expect(const char *request, size_t n, bool end, const char *answer)
{
	struct got g = { .fd = client() };

	assert_int_equal(send(g.fd, request, n, MSG_NOSIGNAL), n);
	if (end)
		shutdown(g.fd, SHUT_WR);
	serve(3, got_all, &g);
	close(g.fd);
	if (!g.ended || strcmp(g.text, answer))
		fail_msg("'%.*s' had the answer '%s'%s", (int)n, request, g.text,
			 g.ended ? "" : ", and no end");
}

static void test_requests(void **state)
{
	static const struct {
		const char *request, *answer;
	} ended[] = {
		{ "show\n", "ok\n" },
		{ "show", "ok\n" },
		{ "show\na = 1\nb", "ok\n[a|1][b|-]" },
		{ "show\r\na=1\r\n\r\n", "ok\n[a|1]" },
		{ "\n\n  show  \n", "ok\n" },
		{ "show\n# no\n\t a b \t=\t c = d \n", "ok\n[a b|c = d]" },
		{ "show\na=\n", "ok\n[a|]" },
		{ "refuse\nx\n", "error usage\nbecause of x\n" },
		{ "fail\n", "error failed\nit failed\nmore\n" },
		{ "\n", "error usage\nmissing verb; `help` lists them\n" },
		{ "show\n=3\n", "error usage\n'= 3': missing name before '='\n" },
		{ "show\na=\x1b[1m\n",
		  "error usage\ninvalid character 0x1b at byte 8 of the request\n" },
	};

	(void)state;
	start();
	for (size_t i = 0; i < sizeof(ended) / sizeof(ended[0]); i++)
		expect(ended[i].request, strlen(ended[i].request), true, ended[i].answer);
	expect("show\n\0\n", 7, true,
	       "error usage\ninvalid character 0 at byte 6 of the request\n");
	/* an empty line is an end, too, and what follows is of no account */
	expect("show\na=1\n\n", 10, false, "ok\n[a|1]");
	expect("\n\nshow\na=1\n\nb=1\n", 17, false, "ok\n[a|1]");
	expect("show\r\na=1\r\n\r\n", 13, false, "ok\n[a|1]");
	/* who says nothing is not answered */
	expect("", 0, true, "");
}

static void test_byte_by_byte(void **state)
{
	const char *request = "show\na = 1\nb\n\n";
	struct got g;

	(void)state;
	start();
	g = (struct got){ .fd = client() };
	for (const char *p = request; *p; p++) {
		assert_int_equal(send(g.fd, p, 1, MSG_NOSIGNAL), 1);
		serve(0.005, NULL, NULL);
	}
	serve(3, got_all, &g);
	close(g.fd);
	assert_string_equal(g.text, "ok\n[a|1][b|-]");
}

static void test_limits(void **state)
{
	size_t big = CONTROL_REQUEST;
	char *text = malloc(big + 2), *p, answer[8 * CONTROL_LINES], *a = stpcpy(answer, "ok\n");

	(void)state;
	start();
	assert_non_null(text);
	p = stpcpy(text, "show\n");
	for (int i = 0; i < CONTROL_LINES; i++) {
		p = stpcpy(p, "a\n");
		a = stpcpy(a, "[a|-]");
	}
	expect(text, p - text, true, answer);
	/* one line more */
	p = stpcpy(p, "a\n");
	expect(text, p - text, true, "error usage\nthe request has more than 256 lines\n");
	/* as long as may be, and a byte longer */
	memset(text, 'a', big + 1);
	memcpy(text, "refuse\n", 7);
	text[7] = 'b';
	text[8] = '\n';
	text[9] = '#';
	expect(text, big, true, "error usage\nbecause of b\n");
	expect(text, big + 1, true, "error usage\nthe request exceeds 65536 bytes\n");
	free(text);
}

static bool has_handled(void *arg)
{
	return handled == *(unsigned int *)arg;
}

/* Good ones are served while places are held by those that send nothing, or never read. */
static void test_slow_clients(void **state)
{
	int slow[100];
	unsigned int before;
	double began;

	(void)state;
	start();
	for (int i = 0; i < 30; i++) {
		slow[i] = client();
		if (i % 2)
			assert_int_equal(send(slow[i], "show\n", 5, MSG_NOSIGNAL), 5);
	}
	began = now_s();
	expect("show\n\n", 6, false, "ok\n");
	assert_true(now_s() - began < 2.5);
	for (int i = 0; i < 30; i++)
		close(slow[i]);
	serve(0.1, NULL, NULL);
	answer_bytes = 4 << 20;
	before = handled;
	for (int i = 0; i < 4; i++) {
		slow[i] = client();
		assert_int_equal(send(slow[i], "show\n\n", 6, MSG_NOSIGNAL), 6);
	}
	before += 4;
	serve(10, has_handled, &before);
	assert_int_equal(handled, before);
	answer_bytes = 0;
	began = now_s();
	expect("show\n\n", 6, false, "ok\n");
	assert_true(now_s() - began < 0.5);
	for (int i = 0; i < 4; i++)
		close(slow[i]);
}

/* Who loses the place learns that the request was not handled. */
static void test_displaced(void **state)
{
	struct got first = {};
	int fd[9];

	(void)state;
	start();
	for (int i = 0; i < 9; i++) {
		fd[i] = client();
		assert_int_equal(send(fd[i], "show\n", 5, MSG_NOSIGNAL), 5);
		if (!i)
			serve(0.05, NULL, NULL);
	}
	first.fd = fd[0];
	serve(10, got_all, &first);
	assert_true(first.ended);
	assert_int_equal(first.n, strlen(CONTROL_BUSY));
	assert_memory_equal(first.text, CONTROL_BUSY, first.n);
	assert_int_equal(handled, 0);
	for (int i = 0; i < 9; i++)
		close(fd[i]);
}

static int client_of(uid_t uid)
{
	int fd;

	assert_int_equal(seteuid(uid), 0);
	fd = client();
	assert_int_equal(seteuid(0), 0);
	assert_int_equal(send(fd, "show\n\n", 6, MSG_NOSIGNAL), 6);
	return fd;
}

/*
 * One user has six requests when three others come; nothing is served in the meantime, and the
 * connections of a flood are accepted all the same.
 */
static void test_turns(void **state)
{
	static const uid_t from[] = { 1, 1, 1, 1, 1, 1, 2, 3 };
	static const uid_t want[] = { 1, 2, 3, 1, 1, 1, 1, 1 };
	int fd[8], flood[200];
	struct err err = {};

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(chmod(dir, 0755), 0);
	if (open_server(0666, &err))
		fail_msg("%s", err.text);
	serves = false;
	for (int i = 0; i < 8; i++) {
		fd[i] = client_of(from[i]);
		serve(0.01, NULL, NULL);
	}
	assert_int_equal(handled, 0);
	for (int i = 0; i < 200; i++)
		flood[i] = client(); /* does not block, and does not fail */
	serves = true;
	serve(0.3, NULL, NULL);
	assert_true(handled >= 8);
	assert_memory_equal(turns, want, sizeof(want));
	for (int i = 0; i < 8; i++)
		close(fd[i]);
	for (int i = 0; i < 200; i++)
		close(flood[i]);
}

static void test_time_limit(void **state)
{
	struct got g;
	double began = now_s();

	(void)state;
	start();
	g = (struct got){ .fd = client() };
	assert_int_equal(send(g.fd, "show\n", 5, MSG_NOSIGNAL), 5);
	serve(8, got_all, &g);
	assert_true(g.ended && !g.n);
	assert_in_range((now_s() - began) * 10, 45, 70);
	assert_int_equal(control_timeout_ms(server), -1);
	close(g.fd);
}

static void test_garbage(void **state)
{
	char *text = malloc(1 << 20);
	unsigned int before;
	struct got g;

	(void)state;
	start();
	assert_non_null(text);
	for (int i = 0; i < 1 << 20; i++)
		text[i] = (i * 2654435761u) >> 13;
	g = (struct got){ .fd = client() };
	for (size_t at = 0; at < 1 << 20;) {
		ssize_t n = send(g.fd, text + at, (1 << 20) - at, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			break;
		at += n > 0 ? n : 0;
		serve(0.01, NULL, NULL);
	}
	serve(3, got_all, &g);
	assert_true(g.ended);
	assert_memory_equal(g.text, "error usage\n", 12);
	close(g.fd);
	free(text);
	/* gone before the answer: what it asked for is not done */
	before = handled;
	for (int i = 0; i < 20; i++) {
		int fd = client();

		assert_int_equal(send(fd, "show\n\n", 6, MSG_NOSIGNAL), 6);
		close(fd);
	}
	serve(0.3, NULL, NULL);
	assert_int_equal(handled, before);
	expect("show\n\n", 6, false, "ok\n");
}

static bool has_ended(void *arg)
{
	siginfo_t info = {};

	return !waitid(P_PID, *(pid_t *)arg, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid;
}

/* control_ask() in a process of its own; its exit status says whether that was @want. */
static void ask(const char *request, int ret, enum control_result result, const char *want)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		struct control_answer a;
		struct err err = {};
		int got = control_ask(path, request, strlen(request), &a, &err);
		bool ok = got == ret;

		if (ok && ret)
			ok = strstr(err.text, want);
		else if (ok)
			ok = a.result == result && !strcmp(a.text, want);
		if (!ok)
			fprintf(stderr, "%d, '%s', '%s'\n", got, err.text, got ? "" : a.text);
		free(a.text);
		_exit(!ok);
	}
	if (server)
		serve(10, has_ended, &pid);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

/* A collector that is crowded twice, and then answers. */
static void test_asking_again(void **state)
{
	static const char *const answers[] = { CONTROL_BUSY, CONTROL_BUSY, "ok\nfine\n" };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), status;
	pid_t pid;

	(void)state;
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/other", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(fd, 1), 0);
	pid = fork();
	if (!pid) {
		struct control_answer a;
		struct err err = {};
		int got = control_ask(addr.sun_path, "show\n\n", 6, &a, &err);

		_exit(got || a.result != CONTROL_OK || strcmp(a.text, "fine\n"));
	}
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		int from = accept(fd, NULL, NULL);
		char request[16];

		assert_true(from >= 0);
		/* the first loses its place before anything is read */
		if (i)
			assert_int_equal(recv(from, request, sizeof(request), MSG_WAITALL), 6);
		assert_true(send(from, answers[i], strlen(answers[i]), MSG_NOSIGNAL) > 0);
		close(from);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	close(fd);
	unlink(addr.sun_path);
}

static void test_asking(void **state)
{
	char *long_one;

	(void)state;
	ask("show\n", -ENOENT, 0, "no collector is running");
	start();
	ask("show\na=1\n", 0, CONTROL_OK, "[a|1]");
	ask("refuse\n", 0, CONTROL_USAGE, "because of nothing\n");
	ask("fail\n", 0, CONTROL_FAILED, "it failed\nmore\n");
	long_one = malloc(1 << 20);
	assert_non_null(long_one);
	memset(long_one, 'a', 1 << 20);
	long_one[(1 << 20) - 1] = 0;
	ask(long_one, 0, CONTROL_USAGE, "the request exceeds 65536 bytes\n");
	free(long_one);
}

static mode_t mode_of(const char *p)
{
	struct stat st;

	assert_int_equal(lstat(p, &st), 0);
	return st.st_mode;
}

static pid_t removes_soon(const char *file)
{
	pid_t pid = fork();

	if (!pid) {
		usleep(100000);
		_exit(unlink(file) != 0);
	}
	return pid;
}

static void test_file(void **state)
{
	struct err err = {};
	struct control *first;
	char parent[96], fresh[128], lock[128];
	mode_t old = umask(077);
	pid_t pid;
	int fd;

	(void)state;
	assert_int_equal(open_server(0660, &err), 0);
	assert_int_equal(umask(old), 077);
	snprintf(parent, sizeof(parent), "%s/run", dir);
	assert_int_equal(mode_of(parent), S_IFDIR | 0755);
	assert_int_equal(mode_of(path), S_IFSOCK | 0660);
	/* in use */
	first = server;
	assert_int_equal(open_server(0600, &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, "another process listens"));
	assert_int_equal(mode_of(path), S_IFSOCK | 0660);
	server = first;
	expect("show\n\n", 6, false, "ok\n");
	control_close(server);
	server = NULL;
	assert_int_equal(access(path, F_OK), -1);
	/* of a dead one */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	{
		struct sockaddr_un addr = { .sun_family = AF_UNIX };

		strcpy(addr.sun_path, path);
		assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	}
	close(fd);
	ask("show\n", -ECONNREFUSED, 0, "nobody listens");
	assert_int_equal(open_server(0600, &err), 0);
	assert_int_equal(mode_of(path), S_IFSOCK | 0600);
	expect("show\n\n", 6, false, "ok\n");
	/* what another one has put there since is not removed */
	unlink(path);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	control_close(server);
	server = NULL;
	assert_int_equal(mode_of(path), S_IFREG | 0600);
	/* and is not replaced */
	assert_int_equal(open_server(0600, &err), -EEXIST);
	assert_int_equal(mode_of(path), S_IFREG | 0600);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(open_server(0600, &err), -EEXIST);
	assert_int_equal(unlink(path), 0);
	/* nor is what has the name that it has until it listens */
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	fd = open(fresh, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(open_server(0600, &err), -EEXIST);
	assert_non_null(strstr(err.text, fresh));
	assert_int_equal(mode_of(fresh), S_IFREG | 0600);
	assert_int_equal(unlink(fresh), 0);
	/* two at a time would both find the place free */
	snprintf(lock, sizeof(lock), "%s.lock", path);
	assert_int_equal(access(lock, F_OK), -1); /* not left behind */
	fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(open_server(0600, &err), -EBUSY);
	assert_non_null(strstr(err.text, lock));
	assert_int_equal(access(path, F_OK), -1);
	/* but a file that was removed locks nobody out, and who waited for it takes the next */
	pid = removes_soon(lock);
	assert_int_equal(open_server(0600, &err), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(access(lock, F_OK), -1);
	control_close(server);
	server = NULL;
	close(fd);
	/* but any user can hold a lock of the directory */
	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	start();
	control_close(server);
	server = NULL;
	close(fd);
	assert_int_equal(access(lock, F_OK), -1);
	/* a planted link is not followed */
	assert_int_equal(symlink("/etc/passwd", lock), 0);
	assert_int_equal(open_server(0600, &err), -ELOOP);
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(rmdir(parent), 0);
	/* one directory only is made */
	snprintf(path, sizeof(path), "%s/a/b/c", dir);
	assert_int_equal(open_server(0600, &err), -ENOENT);
}

/* The socket of a killed collector is removed, but neither one that is in use nor anything else. */
static void test_cleared(void **state)
{
	char lock[128];
	pid_t pid;
	int fd;

	(void)state;
	start();
	control_clear(path);
	expect("show\n\n", 6, false, "ok\n");
	control_close(server);
	server = NULL;
	control_clear(path); /* there is none */
	pid = fork();
	if (!pid) {
		struct err err;

		_exit(open_server(0600, &err) != 0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(mode_of(path), S_IFSOCK | 0600);
	control_clear(path);
	assert_int_equal(access(path, F_OK), -1);
	snprintf(lock, sizeof(lock), "%s.lock", path);
	assert_int_equal(access(lock, F_OK), -1);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
	control_clear(path);
	assert_int_equal(mode_of(path), S_IFREG | 0600);
	assert_int_equal(unlink(path), 0);
}

static void refuses_dir(const char *named)
{
	struct err err = {};

	assert_int_equal(open_server(0600, &err), -EPERM);
	if (!strstr(err.text, named))
		fail_msg("'%s' does not name %s", err.text, named);
	assert_int_equal(access(path, F_OK), -1);
}

static void test_unsafe_directories(void **state)
{
	char parent[96], real[160];

	(void)state;
	snprintf(parent, sizeof(parent), "%s/run", dir);
	assert_int_equal(mkdir(parent, 0700), 0);
	assert_int_equal(chmod(parent, 0757), 0);
	refuses_dir(parent);
	/* the sticky bit does not keep others from being there first */
	assert_int_equal(chmod(parent, 01777), 0);
	refuses_dir(parent);
	assert_int_equal(chmod(parent, 0700), 0);
	/* nor is a directory above it to be writable */
	assert_int_equal(chmod(dir, 0777), 0);
	refuses_dir(dir);
	assert_int_equal(chmod(dir, 01777), 0);
	start();
	control_close(server);
	server = NULL;
	/* the target of a link counts */
	snprintf(real, sizeof(real), "%s/real", parent);
	assert_int_equal(mkdir(real, 0700), 0);
	assert_int_equal(chmod(real, 0777), 0);
	snprintf(path, sizeof(path), "%s/link/s", dir);
	snprintf(parent, sizeof(parent), "%s/link", dir);
	assert_int_equal(symlink("run/real", parent), 0);
	refuses_dir("/run/real");
	assert_int_equal(chmod(real, 0700), 0);
	start();
	if (getuid())
		return;
	control_close(server);
	server = NULL;
	assert_int_equal(chown(real, 65534, 65534), 0);
	refuses_dir("/run/real belongs to uid 65534");
}

static void test_paths(void **state)
{
	static const char *const bad[] = { "", "run/control", "/a\nb" };
	struct err err;
	char text[200];

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	*text = '/';
	for (size_t i = 0; i <= sizeof(bad) / sizeof(bad[0]); i++) {
		const struct control_opts opts = { .path = i < sizeof(bad) / sizeof(bad[0]) ? bad[i]
											    : text,
						   .mode = 0600 };

		err.text[0] = 0;
		assert_int_equal(control_open(&opts, &server, &err), -EINVAL);
		assert_true(*err.text);
	}
	strcpy(path, "/dev/null/x");
	assert_true(open_server(0600, &err) < 0);
}

static void test_closed_to_others(void **state)
{
	pid_t pid;
	int status;

	(void)state;
	if (getuid()) {
		print_message("only root can become another user\n");
		skip();
	}
	chmod(dir, 0755);
	start();
	pid = fork();
	if (!pid) {
		struct control_answer a;
		struct err err = {};

		if (setgid(65534) || setuid(65534))
			_exit(2);
		_exit(control_ask(path, "show\n", 5, &a, &err) != -EACCES ||
		      !strstr(err.text, "mode 600"));
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(handled, 0);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_requests),
		TEST(test_byte_by_byte),
		TEST(test_limits),
		TEST(test_slow_clients),
		TEST(test_displaced),
		TEST(test_turns),
		TEST(test_time_limit),
		TEST(test_garbage),
		TEST(test_asking),
		TEST(test_asking_again),
		TEST(test_file),
		TEST(test_cleared),
		TEST(test_paths),
		TEST(test_unsafe_directories),
		TEST(test_closed_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
