/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the files of the server share. */
#ifndef IBSCOPE_WEB_PRIVATE_H
#define IBSCOPE_WEB_PRIVATE_H

#include "web.h"
#include "web_auth.h"
#include "web_scrape.h"

#include <microhttpd.h>

/* A connection, from its beginning to its end; the oldest is first in the list. */
struct web_conn {
	struct web *web;
	struct web_conn *prev, *next;
	int fd;
	bool loopback;
	bool busy;		   /* a request is complete, and being answered */
	bool used;		   /* one was answered already */
	bool ended;		   /* shut down */
	double since_s;		   /* when that began; CLOCK_MONOTONIC */
	struct web_scrape *scrape; /* what is being sent, or NULL */
};

struct web {
	struct web_opts opts;
	struct web_config config;
	struct web_auth *auth; /* NULL: everybody may read */
	struct web_scrapes *scrapes;
	struct metrics_self self;
	int sockets[WEB_LISTEN_MAX];
	size_t n_sockets;
	struct MHD_Daemon *daemons[WEB_LISTEN_MAX];
	int epoll_fd;
	double next_check_s;
	struct web_conn conns; /* head of the list */
	char log[256];	       /* what libmicrohttpd said last */
};

/* Answers one request; of libmicrohttpd's kind. */
enum MHD_Result web_request(void *arg, struct MHD_Connection *c, const char *url,
			    const char *method, const char *version, const char *upload,
			    size_t *upload_size, void **request);

/* The page, which embeds all that it needs. */
extern const char web_page[];
extern const __u64 web_page_size;

#endif
