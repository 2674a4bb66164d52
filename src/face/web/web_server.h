/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The server, shared by the files of this room. */
#ifndef IBSCOPE_WEB_SERVER_H
#define IBSCOPE_WEB_SERVER_H

#include "web.h"
#include "web_config.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <sys/socket.h>

/* Why a connection is suspended. */
enum web_wait {
	WEB_RUNS,
	WEB_WAITS_AUTH, /* until its password is checked */
	WEB_WAITS_TURN, /* until the next web_run() */
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
	bool local_loopback; /* connected to a loopback address of this machine */
	bool busy;	     /* a complete request is being answered */
	bool used;	     /* a request was answered before */
	bool ended;	     /* shut down */
	enum web_wait wait;
	bool checked, right;	   /* the password of the request */
	double since_s;		   /* start of the current state; CLOCK_MONOTONIC */
	struct web_scrape *scrape; /* what is being sent, or NULL */
};

struct web {
	struct web_opts opts;
	struct web_config *config; /* NULL: none */
	struct web_auth *auth;	   /* NULL: no passwords */
	struct web_tls *tls;	   /* NULL: plain HTTP */
	struct web_scrapes *scrapes;
	struct metrics_self self;
	struct metrics_history *history; /* NULL: none */
	double next_history_s;
	int sockets[WEB_LISTEN_MAX];
	size_t n_sockets;
	struct MHD_Daemon *daemons[WEB_LISTEN_MAX];
	int epoll_fd;
	double next_check_s, next_config_s;
	double turn_ends_s; /* CPU time of the thread after which requests wait for the next turn */
	unsigned int n_turns;	/* connections in WEB_WAITS_TURN */
	unsigned int idle_runs; /* see pause_ms() */
	struct web_conn conns;	/* head of the list */
	struct err reload_err;	/* of the last reload; empty: it worked */
	char log[256];		/* the last message of libmicrohttpd */
};

/* Answer one request; called by libmicrohttpd. */
enum MHD_Result web_request(void *arg, struct MHD_Connection *c, const char *url,
			    const char *method, const char *version, const char *upload,
			    size_t *upload_size, void **request);

/* --- addresses (web_address.c) --- */

/**
 * web_listen() - open a listening socket
 * @text: HOST:PORT, [IPV6]:PORT or :PORT, for all addresses of both families; port 0 is any
 *
 * Return: the socket, non-blocking; or a negative errno with @err.
 */
int web_listen(const char *text, struct err *err);

/* Check the syntax of an address, without resolving names. Return: 0, or -EINVAL with @err. */
int web_check_address(const char *text, struct err *err);

/* The address of a socket, as web_listen() reads it. */
void web_address_text(int fd, char *out, size_t size);

bool web_address_loopback(const struct sockaddr *addr);

/*
 * Is the value of a Host header a name of this machine that no foreign DNS can make resolve to it: localhost, an IP
 * address, its own name, or one of @listen?
 */
bool web_host_is_local(const char *host, const struct web_opts *listen);

/* --- headers (web_headers.c) --- */

/**
 * web_accept() - choose the format for a client
 * @accept: the header Accept, or NULL
 *
 * OpenMetrics 2.0.0 if the client names that version and prefers it, or has no preference; 1.0.0 if it
 * asks for that (or 0.0.1, or no version) and prefers it to text, or has no preference; otherwise text.
 */
enum metrics_format web_accept(const char *accept);

/* Whether Accept-Encoding allows gzip; it may be NULL. */
bool web_accept_gzip(const char *accept_encoding);

/**
 * web_strict_check() - check a request whose header is complete
 * @method, @url, @version: as passed by libmicrohttpd
 *
 * Refuses requests that HTTP/1.1 forbids and libmicrohttpd accepts, since a proxy may read them differently.
 *
 * Return: NULL, or the reason to refuse the request.
 */
const char *web_strict_check(struct MHD_Connection *c, const char *method, const char *url,
			     const char *version);

/*
 * Readings, shared by all clients: the counters are read at most once per second, and with many groups only for
 * a small part of the time, however many clients ask.
 */

struct web_scrape {
	struct metrics *metrics;
	unsigned int users;
	size_t bytes; /* of memory */
	struct web_flat {
		char *text;	    /* NULL: not generated yet */
		size_t n;	    /* bytes; known for plain text even if it is not kept */
		bool big;	    /* too long to keep */
	} flat[METRICS_FORMATS][2]; /* plain, gzip */
	struct web_scrape *older;
};

struct web_scrapes;

/* @self: counts of readings are kept there. */
struct web_scrapes *web_scrapes_open(const char *pin_dir, const struct metrics_opts *opts,
				     struct metrics_self *self);

/**
 * web_scrape_get() - get the latest reading, or a new one if it is too old
 *
 * Without a collector, or if its counters cannot be read, it has only the metrics of this process.
 *
 * Release it with web_scrape_put().
 */
struct web_scrape *web_scrape_get(struct web_scrapes *all);
void web_scrape_put(struct web_scrapes *all, struct web_scrape *s); /* accepts NULL */

/* When web_scrape_get() reads again: CLOCK_MONOTONIC. */
double web_scrapes_due_s(const struct web_scrapes *all);

/**
 * web_scrape_flat() - get the whole text
 *
 * Return: owned by @s. If its text is NULL, it is too long to keep, or memory is exhausted: generate it while it
 * is sent.
 */
const struct web_flat *web_scrape_flat(struct web_scrape *s, enum metrics_format format, bool gzip);

/* The oldest reading except the latest, if readings use too much memory; else NULL. */
struct web_scrape *web_scrapes_surplus(struct web_scrapes *all);

/**
 * web_scrapes_ready() - check that a collector is running and its counters can be read
 *
 * Return: 0, or a negative errno with @err.
 */
int web_scrapes_ready(struct web_scrapes *all, struct err *err);

void web_scrapes_close(struct web_scrapes *all); /* accepts NULL; no reading is in use */

/*
 * Passwords. Checking one takes a bcrypt hash, which is expensive on purpose, so clients that guess passwords must
 * neither keep the CPU busy nor block others: requests wait in a queue, one hash at a time, addresses in turn. A
 * correct password is remembered as a keyed hash and not checked by bcrypt again.
 */

struct web_auth;

/* @config must outlive it. Return: NULL if the kernel gives no random bytes. */
struct web_auth *web_auth_open(const struct web_config *config);

enum web_auth_result {
	WEB_AUTH_YES,
	WEB_AUTH_NO,
	WEB_AUTH_WAIT, /* wait for web_auth_step() */
	WEB_AUTH_BUSY, /* too many requests of this address are waiting */
};

/* Maximum number of waiting requests per address. */
#define WEB_AUTH_QUEUE 64

/*
 * Hashing takes at most half of the time, and at most a quarter for each address; of IPv6, a /64
 * counts as one address.
 */
#define WEB_AUTH_REST	      1
#define WEB_AUTH_ADDRESS_REST 3

/**
 * web_auth_check() - check a password, or queue the request
 * @addr: of the client
 * @who:  the request, for web_auth_step() and web_auth_cancel()
 */
enum web_auth_result web_auth_check(struct web_auth *a, const struct sockaddr *addr,
				    const char *user, const char *password, void *who);

/**
 * web_auth_step() - hash the password of the next request
 *
 * Return: the request, with *right; NULL if none is due.
 */
void *web_auth_step(struct web_auth *a, double now, bool *right);

/* Seconds until web_auth_step() has something to do; below 0: no request waits. */
double web_auth_wait_s(const struct web_auth *a, double now);

/* Remove a request from the queue. */
void web_auth_cancel(struct web_auth *a, const void *who);

void web_auth_close(struct web_auth *a); /* accepts NULL; no request may wait */

/* Certificates and TLS parameters, which can be replaced while connections use the old ones. */

struct web_tls;

/* @c must have a certificate. Return: 0, or -EINVAL with @err. */
int web_tls_open(const struct web_config *c, struct web_tls **out, struct err *err);

/* Freed with its last user. @t may be NULL. */
struct web_tls *web_tls_get(struct web_tls *t);
void web_tls_put(struct web_tls *t);

/* Call before the handshake of a session; gnutls_db_get_ptr() of the session must return @t. */
void web_tls_begin(struct web_tls *t, gnutls_session_t session);

/* Of type gnutls_certificate_retrieve_function3. */
int web_tls_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
			gnutls_pcert_st **certs, unsigned int *n_certs, gnutls_ocsp_data_st **ocsp,
			unsigned int *n_ocsp, gnutls_privkey_t *key, unsigned int *flags);

#endif
