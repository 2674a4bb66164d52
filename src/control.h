/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests to a running process over a unix socket, one a connection. A request is lines of text, a
 * verb and then "name = value" or "name" alone, up to an empty line or the end of what is sent:
 *
 *	set
 *	min-lat = 200
 *
 * The answer is a line, "ok", "error usage" or "error failed", and then text: of an error its reason
 * first. Who may ask is for the mode of the socket's file to say.
 */
#ifndef IBSCOPE_CONTROL_H
#define IBSCOPE_CONTROL_H

#include "err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#define CONTROL_PATH	"/run/ibscope/control.sock"
#define CONTROL_PATH_MAX 103 /* characters of a socket's path: while it is made it has four more */
#define CONTROL_REQUEST (64 << 10) /* bytes */
#define CONTROL_LINES	256

struct control_line {
	const char *name;  /* not empty */
	const char *value; /* NULL: the line has no '=' */
};

struct control_request {
	const char *verb;
	struct control_line line[CONTROL_LINES];
	size_t n;
	/* of who asked, when it connected */
	uid_t uid;
	pid_t pid;
};

enum control_result {
	CONTROL_OK,
	CONTROL_USAGE, /* the request is wrong */
	CONTROL_FAILED,
};

/**
 * control_parse() - take a request apart
 * @text: @n bytes and a NUL behind them; is changed, and @out points into it
 *
 * Blank at the ends of names and values is left out; so are lines that begin with '#'.
 *
 * Return: 0, or -EINVAL with @err.
 */
int control_parse(char *text, size_t n, struct control_request *out, struct err *err);

/* The answer's text goes to @out; if there is an error, @err comes before it. */
typedef enum control_result control_handler(void *arg, const struct control_request *r, FILE *out,
					    struct err *err);

/* --- whoever is asked --- */

struct control_opts {
	const char *path;
	mode_t mode; /* of the socket */
	control_handler *handle;
	void *arg;
};

struct control;

/**
 * control_open() - listen
 *
 * The directory is made (0755) if only that one is missing. A socket to which nobody listens any
 * more is replaced; nothing else is.
 *
 * Return: 0; or a negative errno with @err:
 * -EADDRINUSE somebody listens there
 * -EEXIST     it is no socket; nor is PATH.new, where it is until it listens
 * -EBUSY      another process has locked the directory, and still had after half a second
 */
int control_open(const struct control_opts *opts, struct control **out, struct err *err);

/* For poll(): readable when control_run() has something to do, as it has after control_timeout_ms(). */
int control_fd(const struct control *c);
int control_timeout_ms(const struct control *c); /* -1: never */

/* Goes on with all connections without waiting for any, and handles one request at most. */
void control_run(struct control *c);

/* Removes the socket. Accepts NULL. */
void control_close(struct control *c);

/* --- whoever asks --- */

struct control_answer {
	enum control_result result;
	char *text; /* NUL behind @n bytes; the caller's to free */
	size_t n;
};

/**
 * control_ask() - send a request and wait for the answer
 *
 * Return: 0 with *out; or a negative errno with @err, which says what to do: -ENOENT and -ECONNREFUSED
 * nobody listens, -EACCES the file's mode forbids it, -ETIMEDOUT no answer in half a minute.
 */
int control_ask(const char *path, const char *request, size_t n, struct control_answer *out,
		struct err *err);

#endif
