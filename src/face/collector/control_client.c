// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "control.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/output_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define ANSWER_S    30
#define ANSWER_ROOM 4096 /* bytes per receive call */
#define ANSWER_MAX  (16 << 20)

/* Why connect() failed, and what to do. */
static int explain(const char *path, int error, struct err *err)
{
	struct stat st;

	switch (error) {
	case ENOENT:
		return err_set(err, -error,
			       "no collector is running: no socket %s; use --control for "
			       "another one",
			       path);
	case ECONNREFUSED:
		return err_set(err, -error,
			       "no collector is running: nobody listens on %s any more", path);
	case EACCES:
	case EPERM:
		if (!stat(path, &st))
			return err_set(
				err, -EACCES,
				"permission denied on %s, which belongs to uid %u and gid %u "
				"and has mode %03o: try as root, or start the collector with "
				"--control-mode 0660",
				path, st.st_uid, st.st_gid, st.st_mode & 0777);
		return err_set(err, -EACCES, "permission denied on a directory of %s", path);
	case EAGAIN:
		return err_set(err, -ETIMEDOUT, "the collector at %s is too busy; try again", path);
	default:
		return err_set(err, -error, "cannot connect to %s: %s", path, strerror(error));
	}
}

static int connect_to(const char *path, struct err *err)
{
	const struct timeval limit = { .tv_sec = ANSWER_S };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd, error;

	if (strlen(path) >= sizeof(addr.sun_path))
		return err_set(err, -ENAMETOOLONG,
			       "%s: the path of a socket can have at most %zu characters", path,
			       sizeof(addr.sun_path) - 1);
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, -errno, "cannot create a socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	error = errno;
	close(fd);
	return explain(path, error, err);
}

/* @file: to pass along, or -1 */
static ssize_t send_part(int fd, const char *text, size_t n, int file)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} passed = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
			       .cmsg_level = SOL_SOCKET,
			       .cmsg_type = SCM_RIGHTS } };
	struct iovec part = { (char *)text, n };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

	if (file >= 0) {
		memcpy(CMSG_DATA(&passed.head), &file, sizeof(int));
		m.msg_control = &passed;
		m.msg_controllen = sizeof(passed.bytes);
	}
	return sendmsg(fd, &m, MSG_NOSIGNAL);
}

/* If the request is too long, the answer comes before everything is sent. */
static void send_all(int fd, const char *text, size_t n, int file)
{
	while (n) {
		ssize_t sent = send_part(fd, text, n, file);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			return;
		file = -1;
		text += sent;
		n -= sent;
	}
	shutdown(fd, SHUT_WR);
}

static int receive(int fd, struct control_answer *out, struct err *err)
{
	size_t room = 0;

	for (;;) {
		ssize_t n;

		array_reserve(out->text, room, out->n + ANSWER_ROOM);
		n = recv(fd, out->text + out->n, room - out->n - 1, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return err_set(
				err, -ETIMEDOUT,
				"failed: no answer from the collector within %d s; it drops "
				"the request, unless it is handling it already: see `ibscope "
				"ctl status`",
				ANSWER_S);
		if (n < 0 && !out->n)
			return err_set(err, -errno, "no answer from the collector: %s",
				       strerror(errno));
		if (n <= 0)
			break;
		out->n += n;
		if (out->n > ANSWER_MAX)
			return err_set(err, -EPROTO, "the answer exceeds %d MiB", ANSWER_MAX >> 20);
	}
	out->text[out->n] = 0;
	return 0;
}

/* Parse the first line, and remove it. */
static int read_result(struct control_answer *out, struct err *err)
{
	static const struct {
		const char *line;
		enum control_result result;
	} rows[] = {
		{ "ok\n", CONTROL_OK },
		{ "error usage\n", CONTROL_USAGE },
		{ "error failed\n", CONTROL_FAILED },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t n = strlen(rows[i].line);

		if (strncmp(out->text, rows[i].line, n))
			continue;
		out->result = rows[i].result;
		out->n -= n;
		memmove(out->text, out->text + n, out->n + 1);
		return 0;
	}
	if (!strcmp(out->text, CONTROL_BUSY))
		return err_set(err, -EBUSY, "the collector has too many clients; try again");
	return err_set(err, -EPROTO, "%s",
		       out->n ? "invalid answer: the collector has another version"
			      : "the collector closed the connection without an answer");
}

static int ask_once(const char *path, const char *request, size_t n, int file,
		    struct control_answer *out, struct err *err)
{
	int ret, fd = connect_to(path, err);

	memset(out, 0, sizeof(*out));
	if (fd < 0)
		return fd;
	send_all(fd, request, n, file);
	ret = receive(fd, out, err) ?: read_result(out, err);
	close(fd);
	if (ret) {
		free(out->text);
		memset(out, 0, sizeof(*out));
	}
	return ret;
}

/* @file: passed with the request; -1: none. A request that a crowd displaced was not handled: send it again. */
static int ask_with(const char *path, const char *request, size_t n, int file,
		    struct control_answer *out, struct err *err)
{
	const double end = now_s() + ANSWER_S;
	int ret;

	do
		ret = ask_once(path, request, n, file, out, err);
	while (ret == -EBUSY && now_s() < end);
	return ret;
}

int control_ask(const char *path, const char *request, size_t n, struct control_answer *out,
		struct err *err)
{
	return ask_with(path, request, n, -1, out, err);
}

int control_dump(const char *path, const char *file, struct control_answer *out, struct err *err)
{
	struct output_file to;
	int ret = output_file_begin(&to, "-o", file, err), ended;

	if (ret)
		return ret;
	ret = ask_with(path, "dump\n", strlen("dump\n"), to.fd, out, err);
	ended = output_file_end(&to, ret ?: out->result == CONTROL_OK ? 0 : -EIO, err);
	if (ret || out->result != CONTROL_OK || !ended)
		return ret;
	free(out->text);
	return ended;
}

int control_ask_snapshots(const char *path, struct u64_map slots[CONTROL_SNAPSHOTS],
			  struct snapshot_read out[CONTROL_SNAPSHOTS], struct err *err)
{
	struct control_answer answer;
	int n = 0, ret = control_ask(path, "snapshot\n", strlen("snapshot\n"), &answer, err);
	char *text = ret ? NULL : answer.text;

	if (ret)
		return ret;
	if (answer.result != CONTROL_OK)
		ret = err_set(err, -EIO, "%.*s", (int)strcspn(text, "\n"), text);
	while (!ret && n < CONTROL_SNAPSHOTS && (!n || (text && *text))) {
		ret = snapshot_parse(&text, &slots[n], &out[n], err);
		n += !ret;
	}
	while (ret && n > 0)
		snapshot_read_free(&out[--n]);
	free(answer.text);
	return ret ?: n;
}
