// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "control.h"
#include "control_listen.h"
#include "base/clock.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * Limits for clients. If all places are taken, the client that has been longest in its state loses
 * its place after CROWDED_S; new clients wait in the kernel.
 */
#define CLIENTS	  8
#define NEWCOMERS 64 /* accepted in a call; most of a flood are one user's, and dropped at once */
#define CROWDED_S 0.5
#define REQUEST_S 5
#define ANSWER_S  10
#define RETRY_S	  1 /* after accept() has failed */

enum client_state {
	CLIENT_NONE,
	CLIENT_SENDS,	 /* the request */
	CLIENT_WAITS,	 /* for its turn */
	CLIENT_RECEIVES, /* the answer */
};

struct client {
	enum client_state state;
	int fd;
	double since_s; /* in that state */
	char *in;	/* CONTROL_REQUEST bytes and a NUL */
	size_t n_in;
	size_t line; /* of `in`: where the last line begins */
	bool begun;  /* an earlier line is not blank */
	bool too_long;
	char *out;
	size_t n_out, sent;
	struct ucred who;
	int pidfd; /* of who.pid, or -1 */
	int file;  /* that it passed, or -1 */
};

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

_Static_assert(CONTROL_PATH_MAX + sizeof(CONTROL_NEW) == sizeof(((struct control_place *)0)->path),
	       "CONTROL_PATH_MAX does not fit");

/* A user and the number of the last request that was served for them. */
struct served {
	uid_t uid;
	__u64 n; /* 0: none */
};

struct control {
	struct control_opts opts;
	struct control_place place;
	int epoll_fd;
	bool paused; /* accepts no clients until paused_until_s */
	double paused_until_s;
	bool crowded; /* or until a place is free */
	struct client client[CLIENTS];
	struct served served[CLIENTS]; /* the users who were served last */
	__u64 n_served;
};

/* --- clients --- */

static void drop(struct client *c)
{
	close(c->fd);
	if (c->pidfd >= 0)
		close(c->pidfd);
	if (c->file >= 0)
		close(c->file);
	free(c->in);
	free(c->out);
	memset(c, 0, sizeof(*c));
}

static void watch(struct control *s, struct client *c, unsigned int events)
{
	struct epoll_event e = { .events = events, .data.ptr = c };

	epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, c->fd, &e);
}

static void enter(struct control *s, struct client *c, enum client_state state)
{
	c->state = state;
	c->since_s = now_s();
	watch(s, c, state == CLIENT_SENDS ? EPOLLIN : state == CLIENT_RECEIVES ? EPOLLOUT : 0);
}

/* A blank line after a nonblank one ends a request. */
static bool is_complete(struct client *c, size_t from)
{
	for (size_t i = from; i < c->n_in; i++) {
		bool blank;

		if (c->in[i] != '\n')
			continue;
		blank = i == c->line || (i == c->line + 1 && c->in[c->line] == '\r');
		if (blank && c->begun) {
			c->n_in = i;
			return true;
		}
		c->begun |= !blank;
		c->line = i + 1;
	}
	return false;
}

/* Keep the last file that a client passed. */
static void keep_file(struct client *c, struct msghdr *m)
{
	struct cmsghdr *h = CMSG_FIRSTHDR(m);

	if (!h || h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS ||
	    h->cmsg_len != CMSG_LEN(sizeof(int)))
		return;
	if (c->file >= 0)
		close(c->file);
	memcpy(&c->file, CMSG_DATA(h), sizeof(int));
}

/* The kernel closes files for which there is no room in the message. */
static ssize_t receive(const struct control *s, struct client *c, char *to, size_t room)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} passed;
	struct iovec part = { to, room };
	struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };
	ssize_t n;

	if (s->opts.takes_files) {
		m.msg_control = &passed;
		m.msg_controllen = CMSG_LEN(sizeof(int));
	}
	n = recvmsg(c->fd, &m, MSG_CMSG_CLOEXEC);
	if (n >= 0)
		keep_file(c, &m);
	return n;
}

static void take_request(struct control *s, struct client *c)
{
	size_t room = CONTROL_REQUEST - c->n_in, before = c->n_in;
	char beyond;
	ssize_t n = receive(s, c, room ? c->in + c->n_in : &beyond, room ?: 1);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			drop(c);
		return;
	}
	if (!n && !c->n_in) {
		drop(c); /* the client only tested whether the socket is served */
		return;
	}
	if (n && !room)
		c->too_long = true;
	else
		c->n_in += n;
	if (!n || c->too_long || is_complete(c, before))
		enter(s, c, CLIENT_WAITS);
}

static void give_answer(struct client *c)
{
	ssize_t n = send(c->fd, c->out + c->sent, c->n_out - c->sent, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	c->sent += n > 0 ? n : 0;
	if (n < 0 || c->sent == c->n_out)
		drop(c);
}

/* Its request was not handled, so it may send it again. */
static void displace(struct client *c)
{
	if (c->state == CLIENT_SENDS)
		send(c->fd, CONTROL_BUSY, strlen(CONTROL_BUSY), MSG_NOSIGNAL | MSG_DONTWAIT);
	drop(c);
}

static struct client *free_place(struct control *s)
{
	struct client *oldest = NULL;

	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *c = &s->client[i];

		if (c->state == CLIENT_NONE)
			return c;
		if (c->state != CLIENT_WAITS && (!oldest || c->since_s < oldest->since_s))
			oldest = c;
	}
	if (!oldest || now_s() - oldest->since_s < CROWDED_S)
		return NULL;
	displace(oldest);
	return oldest;
}

static void watch_newcomers(struct control *s, bool on)
{
	struct epoll_event e = { .events = on ? EPOLLIN : 0, .data.ptr = s };

	epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, s->place.fd, &e);
	s->paused = !on;
}

static void pause_accept(struct control *s, double seconds, bool crowded)
{
	watch_newcomers(s, false);
	s->paused_until_s = now_s() + seconds;
	s->crowded = crowded;
}

/* Seconds until connections are accepted again. */
static double pause_left_s(const struct control *s)
{
	if (!s->paused)
		return INFINITY;
	for (size_t i = 0; s->crowded && i < CLIENTS; i++)
		if (s->client[i].state == CLIENT_NONE)
			return 0;
	return fmax(s->paused_until_s - now_s(), 0);
}

/* True if the user of a new client has all the connections allowed. */
static bool user_is_at_limit(const struct control *s, const struct client *new)
{
	unsigned int n = 0;

	for (size_t i = 0; i < CLIENTS; i++)
		n += s->client[i].state != CLIENT_NONE && s->client[i].who.uid == new->who.uid;
	return s->opts.per_user && n >= s->opts.per_user;
}

/* Return: whether there may be another one to accept. */
static bool take_client(struct control *s, struct client *c)
{
	struct epoll_event e = { .data.ptr = c };
	socklen_t len = sizeof(c->who), pidfd_len = sizeof(c->pidfd);
	int fd = accept4(s->place.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			pause_accept(s, RETRY_S, false);
		return false;
	}
	c->fd = fd;
	c->file = -1;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &c->pidfd, &pidfd_len))
		c->pidfd = -1;
	c->in = xrealloc(NULL, CONTROL_REQUEST + 1);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c->who, &len) || user_is_at_limit(s, c) ||
	    epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &e)) {
		drop(c);
		return true;
	}
	enter(s, c, CLIENT_SENDS);
	take_request(s, c); /* most clients have already sent it */
	return true;
}

static void take_clients(struct control *s)
{
	for (size_t i = 0; i < NEWCOMERS; i++) {
		struct client *c = free_place(s);

		if (!c) {
			pause_accept(s, CROWDED_S, true);
			return;
		}
		if (!take_client(s, c))
			return;
	}
}

/* --- requests --- */

static enum control_result handle(struct control *s, struct client *c, FILE *out, struct err *err)
{
	struct control_request *r = xrealloc(NULL, sizeof(*r));
	enum control_result result = CONTROL_USAGE;

	c->in[c->n_in] = 0;
	if (c->too_long) {
		err_set(err, -EINVAL, "the request exceeds %d bytes", CONTROL_REQUEST);
	} else if (!control_parse(c->in, c->n_in, r, err)) {
		r->uid = c->who.uid;
		r->pid = c->who.pid;
		r->pidfd = c->pidfd;
		r->file = c->file;
		r->connection = c->fd;
		result = s->opts.handle(s->opts.arg, r, out, err);
	}
	free(r);
	return result;
}

static void serve(struct control *s, struct client *c)
{
	static const char *const first[] = {
		[CONTROL_OK] = "ok",
		[CONTROL_USAGE] = "error usage",
		[CONTROL_FAILED] = "error failed",
	};
	struct err err = { "" };
	enum control_result result;
	char *text;
	size_t n;
	FILE *body = xmemopen(&text, &n), *whole;

	result = handle(s, c, body, &err);
	xmemclose(body);
	if (result == CONTROL_HANDED_OVER) {
		free(text);
		drop(c);
		return;
	}
	whole = xmemopen(&c->out, &c->n_out);
	fprintf(whole, "%s\n", first[result]);
	if (result != CONTROL_OK)
		fprintf(whole, "%s\n", err.text);
	fwrite(text, 1, n, whole);
	xmemclose(whole);
	free(text);
	if (!c->out) {
		drop(c);
		return;
	}
	free(c->in);
	c->in = NULL;
	enter(s, c, CLIENT_RECEIVES);
	give_answer(c);
}

/*
 * A client that left has been told, or believes, that its request failed. One that only ended its
 * own direction waits for the answer, and its socket has no POLLHUP.
 */
static bool has_left(const struct client *c)
{
	struct pollfd p = { .fd = c->fd };

	return poll(&p, 1, 0) > 0 && p.revents & (POLLHUP | POLLERR);
}

/* When the user was last served, as a number of requests; 0: longer ago than others. */
static __u64 last_served(const struct control *s, uid_t uid)
{
	for (size_t i = 0; i < CLIENTS; i++)
		if (s->served[i].n && s->served[i].uid == uid)
			return s->served[i].n;
	return 0;
}

static void note_served(struct control *s, uid_t uid)
{
	struct served *place = s->served;

	for (size_t i = 0; i < CLIENTS; i++) {
		struct served *p = &s->served[i];

		if (p->n && p->uid == uid) {
			place = p;
			break;
		}
		if (p->n < place->n)
			place = p;
	}
	*place = (struct served){ uid, ++s->n_served };
}

/* Users take turns, so that a flood by one of them delays another by one request. */
static struct client *next_to_serve(struct control *s)
{
	struct client *first = NULL;
	__u64 first_served = 0;

	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *c = &s->client[i];
		__u64 served;

		if (c->state == CLIENT_WAITS && has_left(c))
			drop(c);
		if (c->state != CLIENT_WAITS)
			continue;
		served = last_served(s, c->who.uid);
		if (first && (served > first_served ||
			      (served == first_served && c->since_s >= first->since_s)))
			continue;
		first = c;
		first_served = served;
	}
	return first;
}

/* --- listening --- */

static int open_socket(struct control *s, struct err *err)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = s };
	int ret = control_listen(&s->place, s->opts.mode, err);

	if (ret)
		return ret;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0 || epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->place.fd, &e))
		return err_set(err, -errno, "epoll: %s", strerror(errno));
	return 0;
}

int control_open(const struct control_opts *opts, struct control **out, struct err *err)
{
	struct control *s;
	int ret;

	if (*opts->path != '/' || strlen(opts->path) > CONTROL_PATH_MAX ||
	    strpbrk(opts->path, "\r\n"))
		return err_set(err, -EINVAL,
			       "invalid path '%.200s': must be absolute and have %d characters at "
			       "most",
			       opts->path, CONTROL_PATH_MAX);
	s = xcalloc(1, sizeof(*s));
	s->opts = *opts;
	strcpy(s->place.path, opts->path);
	s->opts.path = s->place.path;
	s->place.fd = s->epoll_fd = -1;
	ret = open_socket(s, err);
	if (ret) {
		control_close(s);
		return ret;
	}
	*out = s;
	return 0;
}

/* --- running --- */

int control_fd(const struct control *s)
{
	return s->epoll_fd;
}

static double limit_s(const struct client *c)
{
	return c->state == CLIENT_SENDS ? REQUEST_S : ANSWER_S;
}

int control_timeout_ms(const struct control *s)
{
	double now = now_s(), left = pause_left_s(s);

	for (size_t i = 0; i < CLIENTS; i++) {
		const struct client *c = &s->client[i];

		if (c->state == CLIENT_WAITS)
			return 0;
		if (c->state != CLIENT_NONE)
			left = fmin(left, c->since_s + limit_s(c) - now);
	}
	return isinf(left) ? -1 : ceil(fmax(left, 0) * 1000);
}

static void take_events(struct control *s)
{
	struct epoll_event e[CLIENTS + 1];
	int n = epoll_wait(s->epoll_fd, e, CLIENTS + 1, 0);
	bool new_clients = !pause_left_s(s);

	if (new_clients)
		watch_newcomers(s, true);
	for (int i = 0; i < n; i++) {
		struct client *c = e[i].data.ptr;

		if (e[i].data.ptr == s)
			new_clients = true;
		else if (c->state == CLIENT_SENDS)
			take_request(s, c);
		else if (c->state == CLIENT_RECEIVES)
			give_answer(c);
	}
	if (new_clients) /* last, since it may reassign places that have events */
		take_clients(s);
}

void control_run(struct control *s, bool serves)
{
	struct client *next;

	take_events(s);
	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *c = &s->client[i];

		if ((c->state == CLIENT_SENDS || c->state == CLIENT_RECEIVES) &&
		    now_s() - c->since_s >= limit_s(c))
			drop(c);
	}
	next = serves ? next_to_serve(s) : NULL;
	if (!next)
		return;
	note_served(s, next->who.uid);
	serve(s, next);
}

void control_close(struct control *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < CLIENTS; i++)
		if (s->client[i].state != CLIENT_NONE)
			drop(&s->client[i]);
	control_leave(&s->place);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	free(s);
}

void control_clear(const char *path)
{
	control_remove(path);
}
