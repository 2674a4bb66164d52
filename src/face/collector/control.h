/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests to a running process over a unix socket, one per connection. A request is a verb on a
 * line, then lines of "name = value" or "name" alone, up to an empty line or the end of the stream:
 *
 *	set
 *	min-lat = 200
 *
 * The answer is a line "ok", "error usage" or "error failed", then text, which begins with the
 * reason of an error; or "error busy" alone, if others took the place of a client that had not sent
 * all of its request. The mode of the socket decides who may send requests.
 */
#ifndef IBSCOPE_CONTROL_H
#define IBSCOPE_CONTROL_H

#include "base/err.h"
#include "rows/snapshot_json.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#define CONTROL_PATH	 "/run/ibscope/control.sock"
#define USERS_PATH	 "/run/ibscope/users.sock" /* by convention: --user-socket */
#define CONTROL_BUSY	 "error busy\n"		   /* not handled: the client sends it again */
#define CONTROL_PATH_MAX 103	    /* characters; the temporary name has four more */
#define CONTROL_REQUEST	 (64 << 10) /* bytes */
#define CONTROL_LINES	 256

struct control_line {
	const char *name;  /* not empty */
	const char *value; /* NULL: the line has no '=' */
};

struct control_request {
	const char *verb;
	struct control_line line[CONTROL_LINES];
	size_t n;
	/* of the client, when it connected */
	uid_t uid;
	pid_t pid;
	int pidfd;	/* of `pid`; -1: not available before v6.5 */
	int file;	/* that the client passed with it, for opts.takes_files; -1: none */
	int connection; /* to answer there, see CONTROL_HANDED_OVER */
};

enum control_result {
	CONTROL_OK,
	CONTROL_USAGE, /* wrong request */
	CONTROL_FAILED,
	CONTROL_HANDED_OVER, /* another process has the connection, and answers */
};

/**
 * control_parse() - parse a request
 * @text: @n bytes followed by a NUL; modified, and @out points into it
 *
 * Names and values are trimmed; lines that begin with '#' are comments.
 *
 * Return: 0, or -EINVAL with @err.
 */
int control_parse(char *text, size_t n, struct control_request *out, struct err *err);

/* Write the answer to @out; it is preceded by the text of @err. */
typedef enum control_result control_handler(void *arg, const struct control_request *r, FILE *out,
					    struct err *err);

/* --- server --- */

struct control_opts {
	const char *path;
	mode_t mode;	       /* of the socket */
	unsigned int per_user; /* connections of one uid at a time; 0: no limit */
	bool takes_files;      /* a client may pass a file; else the kernel closes it */
	control_handler *handle;
	void *arg;
};

struct control;

/**
 * control_open() - listen on a socket
 *
 * Creates the directory with mode 0755 if only its last component is missing, and PATH.lock in it.
 * Replaces a socket that nobody listens on any more, but nothing else.
 *
 * Return: 0; or a negative errno with @err:
 * -EADDRINUSE another process listens there
 * -EEXIST     it is not a socket; or PATH.new is not, the temporary name before it listens
 * -EPERM      other users could replace the socket
 * -EBUSY      another collector has held PATH.lock for half a second
 */
int control_open(const struct control_opts *opts, struct control **out, struct err *err);

/* Poll it for reading; then, or after control_timeout_ms(), call control_run(). */
int control_fd(const struct control *c);
int control_timeout_ms(const struct control *c); /* -1: never */

/**
 * control_run() - serve all connections without blocking
 * @serves: false: accept and read only
 *
 * Handles at most one request; users take turns. A request whose client has left is dropped.
 */
void control_run(struct control *c, bool serves);

/* Removes the socket. Accepts NULL. */
void control_close(struct control *c);

/* Remove the socket of a collector that was killed; one that somebody listens on stays. */
void control_clear(const char *path);

/* --- client --- */

struct control_answer {
	enum control_result result;
	char *text; /* @n bytes and a NUL; freed by the caller */
	size_t n;
};

/**
 * control_ask() - send a request and wait for the answer
 *
 * Return: 0 with *out; or a negative errno with @err: -ENOENT and -ECONNREFUSED nobody listens, -EACCES
 * the mode of the socket forbids it, -ETIMEDOUT no answer within half a minute.
 */
int control_ask(const char *path, const char *request, size_t n, struct control_answer *out,
		struct err *err);

/**
 * control_dump() - let a collector write the samples of its flight recorder to a file
 * @file: opened here, with the rights of the caller; replaced if the dump succeeds. "-": standard output
 *
 * Return: 0 with *out, or a negative errno with @err, as control_ask().
 */
int control_dump(const char *path, const char *file, struct control_answer *out, struct err *err);

#define CONTROL_SNAPSHOTS 2

/**
 * control_ask_snapshots() - ask a collector's socket for users: one snapshot per event
 * @slots: as for snapshot_parse(), one per event
 *
 * Return: their number, to be freed with snapshot_read_free(); or a negative errno with @err, as of
 * control_ask(), or -EPROTO.
 */
int control_ask_snapshots(const char *path, struct u64_map slots[CONTROL_SNAPSHOTS],
			  struct snapshot_read out[CONTROL_SNAPSHOTS], struct err *err);

/**
 * orphan_stop() - end sampling that no collector governs
 * @remove: also remove the counters, and the directory
 *
 * Return: 0; or a negative errno with @err: -EBUSY a collector is running; -ENOENT there is nothing.
 */
int orphan_stop(const char *dir, bool remove, struct err *err);

#endif
