// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "web_private.h"

#include "web_address.h"
#include "clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/*
 * What a client may cost. One that sends a byte now and then has REQUEST_S for its request; when
 * places are short, who has waited longest without a whole request makes room.
 */
#define CONNECTIONS	  512
#define CONNECTIONS_FULL  448
#define CONNECTION_MEMORY (24 << 10)
#define REQUEST_S	  10
#define IDLE_S		  75 /* between two requests */
#define ANSWER_S	  60
#define CHECK_S		  1

#define TLS_PRIORITIES "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

/* --- connections --- */

static void end_connection(struct web_conn *c)
{
	if (c->ended)
		return;
	c->ended = true;
	c->web->self.crowded_out++;
	shutdown(c->fd, SHUT_RDWR);
}

static void make_room(struct web *w)
{
	struct web_conn *worst = NULL;

	if (w->self.connections < CONNECTIONS_FULL)
		return;
	for (struct web_conn *c = w->conns.next; c != &w->conns; c = c->next) {
		if (c->ended)
			continue;
		if (!worst || c->busy < worst->busy ||
		    (c->busy == worst->busy && c->since_s < worst->since_s))
			worst = c;
	}
	if (worst)
		end_connection(worst);
}

static void begin_connection(struct web *w, struct MHD_Connection *connection, void **context)
{
	const union MHD_ConnectionInfo *info;
	struct web_conn *c;

	make_room(w);
	c = calloc(1, sizeof(*c));
	*context = c;
	if (!c)
		return;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	c->fd = info ? info->connect_fd : -1;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	c->loopback = info && web_address_loopback(info->client_addr);
	c->web = w;
	c->since_s = now_s();
	c->next = &w->conns;
	c->prev = w->conns.prev;
	c->prev->next = c->next->prev = c;
	w->self.connections++;
}

static void on_connection(void *arg, struct MHD_Connection *connection, void **context,
			  enum MHD_ConnectionNotificationCode code)
{
	struct web *w = arg;
	struct web_conn *c = *context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		begin_connection(w, connection, context);
	} else if (c) {
		web_scrape_put(w->scrapes, c->scrape);
		c->prev->next = c->next;
		c->next->prev = c->prev;
		free(c);
		*context = NULL;
		w->self.connections--;
	}
}

static void on_completed(void *arg, struct MHD_Connection *connection, void **request,
			 enum MHD_RequestTerminationCode code)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct web_conn *c = info ? info->socket_context : NULL;
	struct web *w = arg;

	(void)request;
	(void)code;
	if (!c)
		return;
	web_scrape_put(w->scrapes, c->scrape);
	c->scrape = NULL;
	c->busy = false;
	c->used = true;
	c->since_s = now_s();
}

static void check_connections(struct web *w, double now)
{
	struct web_scrape *surplus = web_scrapes_surplus(w->scrapes);

	for (struct web_conn *c = w->conns.next; c != &w->conns; c = c->next) {
		double limit = c->busy ? ANSWER_S : c->used ? IDLE_S : REQUEST_S;

		if (now - c->since_s > limit || (surplus && c->scrape == surplus))
			end_connection(c);
	}
}

/* --- starting --- */

int web_check_telemetry_path(const char *path, struct err *err)
{
	if (*path != '/' || !strcmp(path, "/") || !strncmp(path, "/-/", 3) ||
	    !strncmp(path, "/api/", 5) || strpbrk(path, "?#%<>&\"' "))
		return err_set(err, -EINVAL,
			       "'%.200s' cannot be the path of metrics: it begins with '/', is "
			       "none of /, /-/... and /api/..., and needs no escapes",
			       path);
	return 0;
}

static int listen_all(struct web *w, struct err *err)
{
	for (size_t i = 0; i < w->opts.n_listen; i++) {
		char text[128];
		int fd = web_listen(w->opts.listen[i], err);

		if (fd < 0)
			return fd;
		w->sockets[w->n_sockets++] = fd;
		web_address_text(fd, text, sizeof(text));
		log_info("listening on %s://%s%s", w->config.cert ? "https" : "http", text,
			 w->auth ? ", with passwords" : "");
	}
	return 0;
}

int web_listen_all(const struct web_opts *opts, struct web **out, struct err *err)
{
	struct web *w = calloc(1, sizeof(*w));
	int ret = 0;

	if (!w)
		return err_set(err, -ENOMEM, "out of memory");
	w->epoll_fd = -1;
	w->conns.next = w->conns.prev = &w->conns;
	w->opts = *opts;
	w->opts.telemetry_path = opts->telemetry_path ?: "/metrics";
	if (!opts->n_listen)
		w->opts.listen[w->opts.n_listen++] = WEB_LISTEN_DEFAULT;
	ret = web_check_telemetry_path(w->opts.telemetry_path, err);
	if (!ret && opts->config_file)
		ret = web_config_read(opts->config_file, &w->config, err);
	if (!ret && w->config.n_users && web_auth_open(&w->config, &w->auth))
		ret = err_set(err, -ENOMEM, "out of memory");
	if (!ret && web_scrapes_open(w->opts.pin_dir, &w->opts.metrics, &w->self, &w->scrapes))
		ret = err_set(err, -ENOMEM, "out of memory");
	ret = ret ?: listen_all(w, err);
	if (ret) {
		web_close(w);
		return ret;
	}
	if (web_scrapes_ready(w->scrapes, err))
		log_warn("%s", err->text);
	*out = w;
	return 0;
}

static void on_log(void *arg, const char *fmt, va_list ap)
{
	struct web *w = arg;

	vsnprintf(w->log, sizeof(w->log), fmt, ap);
	w->log[strcspn(w->log, "\n")] = 0;
	log_debug("libmicrohttpd: %s", w->log);
}

static struct MHD_Daemon *start_daemon(struct web *w, int fd)
{
	struct MHD_OptionItem tls[] = {
		{ MHD_OPTION_HTTPS_MEM_CERT, 0, w->config.cert },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0, w->config.key },
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)TLS_PRIORITIES },
		{ MHD_OPTION_END },
	};
	struct MHD_OptionItem none[] = { { MHD_OPTION_END } };

	return MHD_start_daemon(
		MHD_USE_EPOLL | MHD_USE_ERROR_LOG | (w->config.cert ? MHD_USE_TLS : 0), 0, NULL,
		NULL, web_request, w, MHD_OPTION_EXTERNAL_LOGGER, on_log, w,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned int)CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)CONNECTION_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)IDLE_S,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, w, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, w, MHD_OPTION_ARRAY, w->config.cert ? tls : none, MHD_OPTION_END);
}

int web_start(struct web *w, struct err *err)
{
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll_fd < 0)
		return err_set(err, -errno, "epoll: %s", strerror(errno));
	for (size_t i = 0; i < w->n_sockets; i++) {
		struct epoll_event e = { .events = EPOLLIN };
		const union MHD_DaemonInfo *info;

		w->daemons[i] = start_daemon(w, w->sockets[i]);
		if (!w->daemons[i])
			return err_set(err, -EIO, "the HTTP server does not start%s: %s",
				       w->config.cert
					       ? "; are cert_file and key_file a pair of PEM "
						 "files?"
					       : "",
				       w->log);
		w->sockets[i] = -1; /* its own now */
		info = MHD_get_daemon_info(w->daemons[i], MHD_DAEMON_INFO_EPOLL_FD);
		if (!info || epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, info->epoll_fd, &e))
			return err_set(err, -EIO, "epoll: %s", strerror(errno));
	}
	return 0;
}

/* --- running --- */

int web_fd(const struct web *w)
{
	return w->epoll_fd;
}

int web_timeout_ms(const struct web *w)
{
	double ms = w->self.connections ? fmax(w->next_check_s - now_s(), 0) * 1000 : -1;

	for (size_t i = 0; i < w->n_sockets; i++) {
		MHD_UNSIGNED_LONG_LONG t;

		if (w->daemons[i] && MHD_get_timeout(w->daemons[i], &t) == MHD_YES &&
		    (ms < 0 || t < ms))
			ms = t;
	}
	return ceil(ms);
}

void web_run(struct web *w)
{
	double now = now_s();

	for (size_t i = 0; i < w->n_sockets; i++)
		MHD_run(w->daemons[i]);
	if (now >= w->next_check_s) {
		check_connections(w, now);
		w->next_check_s = now + CHECK_S;
	}
}

void web_close(struct web *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n_sockets; i++) {
		if (w->daemons[i])
			MHD_stop_daemon(w->daemons[i]);
		if (w->sockets[i] >= 0)
			close(w->sockets[i]);
	}
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	web_scrapes_close(w->scrapes);
	web_auth_close(w->auth);
	web_config_free(&w->config);
	free(w);
}
