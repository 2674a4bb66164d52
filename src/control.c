// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "control.h"

#include "clock.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/*
 * What clients may cost. When all places are taken, who has had one for a while and has still not
 * sent a whole request makes room; newcomers wait in the kernel meanwhile.
 */
#define CLIENTS	  8
#define WAITING	  64
#define CROWDED_S 0.5
#define REQUEST_S 5
#define ANSWER_S  10
#define NEW	  ".new" /* of the file until it is put in its place */
#define RETRY_S	  1	 /* after a failure to take a connection */

/* Half a second in all. */
#define LOCK_TRIES   50
#define LOCK_WAIT_US 10000

enum client_state {
	CLIENT_NONE,
	CLIENT_SENDS,	 /* its request */
	CLIENT_WAITS,	 /* to be served */
	CLIENT_RECEIVES, /* the answer */
};

struct client {
	enum client_state state;
	int fd;
	double since_s; /* in that state */
	char *in;	/* CONTROL_REQUEST bytes and a NUL */
	size_t n_in;
	size_t line; /* of `in`: where the last line begins */
	bool begun;  /* some line before it is not blank */
	bool too_long;
	char *out;
	size_t n_out, sent;
	struct ucred who;
};

_Static_assert(CONTROL_PATH_MAX + sizeof(NEW) == sizeof(((struct sockaddr_un *)0)->sun_path),
	       "CONTROL_PATH_MAX is not what fits");

struct control {
	struct control_opts opts;
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int listen_fd, epoll_fd;
	bool bound; /* the file is there, and this one: */
	dev_t dev;
	ino_t ino;
	bool deaf; /* newcomers are left alone until then: */
	double deaf_until_s;
	bool crowded; /* or until there is a place */
	struct client client[CLIENTS];
};

/* --- clients --- */

static void drop(struct client *c)
{
	close(c->fd);
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

/* An empty line behind some other ends a request. */
static bool ends(struct client *c, size_t from)
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

static void take_request(struct control *s, struct client *c)
{
	size_t room = CONTROL_REQUEST - c->n_in, before = c->n_in;
	char beyond;
	ssize_t n = recv(c->fd, room ? c->in + c->n_in : &beyond, room ?: 1, 0);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			drop(c);
		return;
	}
	if (!n && !c->n_in) {
		drop(c); /* somebody only looked whether we listen */
		return;
	}
	if (n && !room)
		c->too_long = true;
	else
		c->n_in += n;
	if (!n || c->too_long || ends(c, before))
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
	drop(oldest);
	return oldest;
}

static void watch_newcomers(struct control *s, bool on)
{
	struct epoll_event e = { .events = on ? EPOLLIN : 0, .data.ptr = s };

	epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, s->listen_fd, &e);
	s->deaf = !on;
}

static void be_deaf(struct control *s, double seconds, bool crowded)
{
	watch_newcomers(s, false);
	s->deaf_until_s = now_s() + seconds;
	s->crowded = crowded;
}

/* Seconds until newcomers are let in again. */
static double deaf_s(const struct control *s)
{
	if (!s->deaf)
		return INFINITY;
	for (size_t i = 0; s->crowded && i < CLIENTS; i++)
		if (s->client[i].state == CLIENT_NONE)
			return 0;
	return fmax(s->deaf_until_s - now_s(), 0);
}

/* Return: is there room for another one? */
static bool take_client(struct control *s, struct client *c)
{
	struct epoll_event e = { .data.ptr = c };
	socklen_t len = sizeof(c->who);
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0) {
		if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			be_deaf(s, RETRY_S, false);
		return false;
	}
	c->fd = fd;
	c->in = malloc(CONTROL_REQUEST + 1);
	if (!c->in || getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &c->who, &len) ||
	    epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &e)) {
		drop(c);
		return true;
	}
	enter(s, c, CLIENT_SENDS);
	take_request(s, c); /* most have sent it by now */
	return true;
}

static void take_clients(struct control *s)
{
	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *c = free_place(s);

		if (!c) {
			be_deaf(s, CROWDED_S, true);
			return;
		}
		if (!take_client(s, c))
			return;
	}
}

/* --- requests --- */

static enum control_result handle(struct control *s, struct client *c, FILE *out, struct err *err)
{
	struct control_request *r = malloc(sizeof(*r));
	enum control_result result = CONTROL_USAGE;

	if (!r) {
		err_set(err, -ENOMEM, "out of memory");
		return CONTROL_FAILED;
	}
	c->in[c->n_in] = 0;
	if (c->too_long) {
		err_set(err, -EINVAL, "a request has at most %d bytes", CONTROL_REQUEST);
	} else if (!control_parse(c->in, c->n_in, r, err)) {
		r->uid = c->who.uid;
		r->pid = c->who.pid;
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
	char *text = NULL;
	size_t n = 0;
	FILE *body = open_memstream(&text, &n), *whole;

	if (!body) {
		drop(c);
		return;
	}
	result = handle(s, c, body, &err);
	fclose(body);
	whole = open_memstream(&c->out, &c->n_out);
	if (whole) {
		fprintf(whole, "%s\n", first[result]);
		if (result != CONTROL_OK)
			fprintf(whole, "%s\n", err.text);
		fwrite(text, 1, n, whole);
		fclose(whole);
	}
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

static struct client *next_to_serve(struct control *s)
{
	struct client *first = NULL;

	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *c = &s->client[i];

		if (c->state == CLIENT_WAITS && (!first || c->since_s < first->since_s))
			first = c;
	}
	return first;
}

/* --- listening --- */

static void make_directory(const char *path)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	mode_t old = umask(0);
	char *slash;

	strcpy(dir, path);
	slash = strrchr(dir, '/');
	if (slash > dir) {
		*slash = 0;
		mkdir(dir, 0755);
	}
	umask(old);
}

/*
 * Held while a socket is put into its directory, against those that do so at this moment: both would
 * find the place free. Return: to be closed; or a negative errno with @err.
 */
static int lock_directory(const char *path, struct err *err)
{
	char dir[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int fd, ret = -EWOULDBLOCK;

	strcpy(dir, path);
	strrchr(dir, '/')[1] = 0;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "cannot open the directory of %s: %s", path,
			       strerror(errno));
	for (int i = 0; i < LOCK_TRIES && ret == -EWOULDBLOCK; i++) {
		if (!flock(fd, LOCK_EX | LOCK_NB))
			return fd;
		ret = -errno;
		usleep(LOCK_WAIT_US);
	}
	close(fd);
	if (ret == -EWOULDBLOCK)
		return err_set(err, -EBUSY,
			       "another process has locked %s: try again, or see fuser -v %s", dir,
			       dir);
	return err_set(err, ret, "cannot lock %s: %s", dir, strerror(-ret));
}

/* Of one that was killed before it could put its socket in its place. */
static int remove_leftover(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, -EEXIST, "%s is there, and no socket", path);
	if (unlink(path))
		return err_set(err, -errno, "cannot remove %s: %s", path, strerror(errno));
	return 0;
}

/* Return: 0 if the place is free, or held by a socket nobody listens to; or -errno with @err. */
static int check_place(const char *path, const struct sockaddr_un *addr, struct err *err)
{
	struct stat st;
	int fd, ret;

	if (lstat(path, &st))
		return errno == ENOENT ? 0 : err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return err_set(err, -EEXIST, "%s is there, and no socket", path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
	ret = connect(fd, (struct sockaddr *)addr, sizeof(*addr)) ? errno : 0;
	close(fd);
	if (ret == ECONNREFUSED || ret == ENOENT)
		return 0;
	return err_set(err, -EADDRINUSE, "another process listens at %s", path);
}

/* It is put in its place when it listens, with the mode that it is to have. */
static int bind_at(struct control *s, struct err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX }, fresh = addr;
	struct stat st;
	mode_t old;
	int ret;

	strcpy(addr.sun_path, s->path);
	snprintf(fresh.sun_path, sizeof(fresh.sun_path), "%.*s" NEW,
		 (int)(sizeof(fresh.sun_path) - sizeof(NEW)), s->path);
	ret = check_place(s->path, &addr, err) ?: remove_leftover(fresh.sun_path, err);
	if (ret)
		return ret;
	old = umask(~s->opts.mode & 0777);
	ret = bind(s->listen_fd, (struct sockaddr *)&fresh, sizeof(fresh)) ? -errno : 0;
	umask(old);
	if (ret)
		return err_set(err, ret, "cannot make the socket %s: %s", s->path, strerror(-ret));
	if (listen(s->listen_fd, WAITING) || lstat(fresh.sun_path, &st) ||
	    rename(fresh.sun_path, s->path)) {
		ret = err_set(err, -errno, "cannot make the socket %s: %s", s->path,
			      strerror(errno));
		unlink(fresh.sun_path);
		return ret;
	}
	s->bound = true;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	return 0;
}

static int open_socket(struct control *s, struct err *err)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = s };
	int ret, lock;

	s->listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->listen_fd < 0 || s->epoll_fd < 0)
		return err_set(err, -errno, "cannot make a socket: %s", strerror(errno));
	make_directory(s->path);
	lock = lock_directory(s->path, err);
	if (lock < 0)
		return lock;
	ret = bind_at(s, err);
	close(lock);
	if (!ret && epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, s->listen_fd, &e))
		ret = err_set(err, -errno, "epoll: %s", strerror(errno));
	return ret;
}

int control_open(const struct control_opts *opts, struct control **out, struct err *err)
{
	struct control *s;
	int ret;

	if (*opts->path != '/' || strlen(opts->path) > CONTROL_PATH_MAX ||
	    strpbrk(opts->path, "\r\n"))
		return err_set(err, -EINVAL,
			       "'%.200s' is no absolute path of at most %d characters", opts->path,
			       CONTROL_PATH_MAX);
	s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(err, -ENOMEM, "out of memory");
	s->opts = *opts;
	strcpy(s->path, opts->path);
	s->opts.path = s->path;
	s->listen_fd = s->epoll_fd = -1;
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
	double now = now_s(), left = deaf_s(s);

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
	bool new_clients = !deaf_s(s);

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
	if (new_clients) /* last: it may give away places that events were for */
		take_clients(s);
}

void control_run(struct control *s)
{
	struct client *next;

	take_events(s);
	for (size_t i = 0; i < CLIENTS; i++) {
		struct client *c = &s->client[i];

		if ((c->state == CLIENT_SENDS || c->state == CLIENT_RECEIVES) &&
		    now_s() - c->since_s >= limit_s(c))
			drop(c);
	}
	next = next_to_serve(s);
	if (next)
		serve(s, next);
}

void control_close(struct control *s)
{
	struct stat st;

	if (!s)
		return;
	for (size_t i = 0; i < CLIENTS; i++)
		if (s->client[i].state != CLIENT_NONE)
			drop(&s->client[i]);
	if (s->bound && !lstat(s->path, &st) && st.st_dev == s->dev && st.st_ino == s->ino)
		unlink(s->path);
	if (s->listen_fd >= 0)
		close(s->listen_fd);
	if (s->epoll_fd >= 0)
		close(s->epoll_fd);
	free(s);
}
