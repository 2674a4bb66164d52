/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The server, as its files share it. */
#ifndef IBSCOPE_WEB_SERVER_H
#define IBSCOPE_WEB_SERVER_H

#include "web_auth.h"
#include "web_opts.h"
#include "web_scrape.h"
#include "web_tls.h"

#include <microhttpd.h>

/* Why a connection is suspended. */
enum web_wait {
	WEB_RUNS,
	WEB_WAITS_AUTH, /* for its password to be checked */
	WEB_WAITS_TURN, /* for the next web_run() */
};

/* A connection, from its beginning to its end; the oldest is first in the list. */
struct web_conn {
	struct web *web;
	struct web_conn *prev, *next;
	struct MHD_Connection *mhd;
	struct web_tls *tls; /* NULL: none */
	struct sockaddr_storage addr;
	int fd;
	bool loopback;	     /* the client is on this machine */
	bool local_loopback; /* it came to an address of this machine's loopback */
	bool busy;	     /* a request is complete, and being answered */
	bool used;	     /* one was answered already */
	bool ended;	     /* shut down */
	enum web_wait wait;
	bool checked, right; /* the password of the request */
	double since_s;	     /* when that began; CLOCK_MONOTONIC */
	struct web_scrape *scrape; /* what is being sent, or NULL */
};

struct web {
	struct web_opts opts;
	struct web_config *config; /* NULL: none */
	struct web_auth *auth; /* NULL: everybody may read */
	struct web_tls *tls;   /* NULL: plain HTTP */
	struct web_scrapes *scrapes;
	struct metrics_self self;
	int sockets[WEB_LISTEN_MAX];
	size_t n_sockets;
	struct MHD_Daemon *daemons[WEB_LISTEN_MAX];
	int epoll_fd;
	double next_check_s, next_config_s;
	double turn_ends_s;    /* CPU time of the thread after which requests wait for the next turn */
	unsigned int n_turns;  /* connections that wait for one */
	struct web_conn conns; /* head of the list */
	struct err reload_err; /* of the last reload; empty: it worked */
	char log[256];	       /* the last message of libmicrohttpd */
};

/* Suspend the connection; the request is handed to web_request() again when it is resumed. */
void web_suspend(struct web_conn *c, enum web_wait why);

/* Has this turn of web_run() taken its time? */
bool web_turn_is_over(const struct web *w);

/* Answer one request; called by libmicrohttpd. */
enum MHD_Result web_request(void *arg, struct MHD_Connection *c, const char *url,
			    const char *method, const char *version, const char *upload,
			    size_t *upload_size, void **request);

/* The page, which embeds all that it needs. */
extern const char web_page[];
extern const __u64 web_page_size;

#endif
