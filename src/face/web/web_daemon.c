// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "web.h"
#include "base/std.h"

#include "base/clock.h"
#include "web_server.h"

#include <math.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

/*
 * Limits for clients. A request that arrives byte by byte must be complete after REQUEST_S; if there are too
 * many connections, the one that has waited longest without a complete request is closed.
 */
#define CONNECTIONS	  512
#define CONNECTIONS_FULL  448
#define CONNECTION_MEMORY (24 << 10)
#define REQUEST_S	  10
#define IDLE_S		  75 /* between two requests */
#define ANSWER_S	  60
#define CHECK_S		  1

#define TURN_S 0.05 /* CPU time */

/* --- connections --- */

static void resume(struct web_conn *c)
{
	c->web->n_turns -= c->wait == WEB_WAITS_TURN;
	if (c->wait == WEB_WAITS_AUTH)
		web_auth_cancel(c->web->auth, c);
	if (c->wait != WEB_RUNS)
		MHD_resume_connection(c->mhd);
	c->wait = WEB_RUNS;
}

static void resume_all(struct web *w, enum web_wait why)
{
	for (struct web_conn *c = w->conns.next; c != &w->conns; c = c->next)
		if (c->wait == why)
			resume(c);
}

static void end_connection(struct web_conn *c)
{
	if (c->ended)
		return;
	resume(c);
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

static void free_config(struct web_config *c)
{
	if (c)
		web_config_free(c);
	free(c);
}

/* Use a new configuration and take ownership of it. If that fails, the old one stays in use. */
static int apply(struct web *w, struct web_config *config, struct err *err)
{
	struct web_tls *tls = NULL;
	struct web_auth *auth = NULL;
	int ret = 0;

	if (w->daemons[0] && !config->cert != !w->tls)
		ret = err_set(err, -EINVAL, "switching TLS on or off needs a restart");
	if (!ret && config->cert)
		ret = web_tls_open(config, &tls, err);
	if (!ret && config->n_users && !(auth = web_auth_open(config)))
		ret = err_set(err, -errno, "no random bytes: %s", strerror(errno));
	if (ret) {
		web_tls_put(tls);
		free_config(config);
		return ret;
	}
	resume_all(w, WEB_WAITS_AUTH); /* check their passwords again */
	web_auth_close(w->auth);
	web_tls_put(w->tls);
	free_config(w->config);
	w->auth = auth;
	w->tls = tls;
	w->config = config;
	return 0;
}

static int read_config(struct web *w, struct err *err)
{
	struct web_config *config = xcalloc(1, sizeof(*config));
	int ret = web_config_read(w->opts.config_file, config, err);

	if (ret) {
		free(config);
		return ret;
	}
	ret = apply(w, config, err);
	if (ret)
		err_prefix(err, "%s", w->opts.config_file);
	return ret;
}

/* Read the configuration again if one of its files has changed. */
static void reload(struct web *w)
{
	struct err err = { "" };
	double now = now_s();
	int ret;

	if (!*w->opts.config_file || now < w->next_config_s)
		return;
	w->next_config_s = now + CHECK_S;
	if (!w->config || !web_config_changed(w->config))
		return;
	ret = read_config(w, &err);
	if (!ret) {
		log_info("reloaded %s", w->opts.config_file);
		w->reload_err = err;
		return;
	}
	if (strcmp(err.text, w->reload_err.text)) { /* log it once, not for each connection */
		w->self.config_errors++;
		log_error("%s; the old certificates and passwords stay in use", err.text);
	}
	w->reload_err = err;
}

static void begin_connection(struct web *w, struct MHD_Connection *connection, void **context)
{
	const union MHD_ConnectionInfo *info;
	struct sockaddr_storage local = {};
	socklen_t n = sizeof(local);
	struct web_conn *c;

	make_room(w);
	reload(w);
	c = xcalloc(1, sizeof(*c));
	*context = c;
	c->mhd = connection;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	c->fd = info ? info->connect_fd : -1;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	if (info) {
		bool v6 = info->client_addr->sa_family == AF_INET6;

		memcpy(&c->addr, info->client_addr,
		       v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	}
	c->loopback = web_address_loopback((struct sockaddr *)&c->addr);
	c->local_loopback = !getsockname(c->fd, (struct sockaddr *)&local, &n) &&
			    web_address_loopback((struct sockaddr *)&local);
	c->web = w;
	info = w->tls ? MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)
		      : NULL;
	if (info) {
		c->tls = web_tls_get(w->tls);
		web_tls_begin(c->tls, info->tls_session);
	}
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
		web_tls_put(c->tls);
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
	c->busy = c->checked = c->right = false;
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

int web_add_listen(void *ctx, const char *arg, struct err *err)
{
	struct web_opts *o = ctx;

	if (o->n_listen == WEB_LISTEN_MAX)
		return err_set(err, -EINVAL, "--web.listen-address: more than %d addresses",
			       WEB_LISTEN_MAX);
	if (strlen(arg) >= sizeof(o->listen[0]))
		return err_set(err, -EINVAL, "--web.listen-address: longer than %zu characters",
			       sizeof(o->listen[0]) - 1);
	strcpy(o->listen[o->n_listen++], arg);
	return web_check_address(arg, err);
}

int web_check_telemetry_path(const char *path, struct err *err)
{
	if (*path != '/' || !strcmp(path, "/") || !strncmp(path, "/-/", 3) ||
	    !strncmp(path, "/api/", 5) || strpbrk(path, "?#%<>&\"' "))
		return err_set(err, -EINVAL,
			       "invalid path '%.200s': must begin with '/', need no escapes, and "
			       "differ from /, /-/... and /api/...",
			       path);
	return 0;
}

int web_check_config(const char *path, struct err *err)
{
	struct web_config c;
	struct web_tls *tls = NULL;
	int ret = web_config_read(path, &c, err);

	if (ret)
		return ret;
	ret = c.cert ? web_tls_open(&c, &tls, err) : 0;
	if (ret)
		err_prefix(err, "%s", path);
	web_tls_put(tls);
	web_config_free(&c);
	return ret;
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
		log_info("listening on %s://%s%s", w->tls ? "https" : "http", text,
			 w->auth ? ", password required" : "");
	}
	return 0;
}

int web_listen_all(const struct web_opts *opts, struct web **out, struct err *err)
{
	struct web *w = xcalloc(1, sizeof(*w));
	int ret;

	w->epoll_fd = -1;
	w->conns.next = w->conns.prev = &w->conns;
	w->opts = *opts;
	if (!*opts->telemetry_path)
		strcpy(w->opts.telemetry_path, "/metrics");
	ret = opts->n_listen ? 0 : web_add_listen(&w->opts, WEB_LISTEN_DEFAULT, err);
	ret = ret ?: web_check_telemetry_path(w->opts.telemetry_path, err);
	if (!ret && *opts->config_file)
		ret = read_config(w, err);
	if (w->opts.history.length_s)
		w->history = metrics_history_open(&w->opts.history);
	w->scrapes = web_scrapes_open(w->opts.pin_dir, &w->opts.metrics, &w->self);
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
	struct MHD_OptionItem extra[] = {
#if MHD_VERSION >= 0x00097701
		{ MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1, NULL },
#else
		{ MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL },
#endif
		{ w->tls ? MHD_OPTION_HTTPS_CERT_CALLBACK2 : MHD_OPTION_END, 0,
		  (void *)web_tls_certificate },
		{ MHD_OPTION_END },
	};

	return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME |
					(w->tls ? MHD_USE_TLS : 0),
				0, NULL, NULL, web_request, w, MHD_OPTION_EXTERNAL_LOGGER, on_log,
				w, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				(unsigned int)CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				(size_t)CONNECTION_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT,
				(unsigned int)IDLE_S, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
				w, MHD_OPTION_NOTIFY_COMPLETED, on_completed, w, MHD_OPTION_ARRAY,
				extra, MHD_OPTION_END);
}

int web_start(struct web *w, struct err *err)
{
	w->next_history_s = now_s();
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (w->epoll_fd < 0)
		return err_set(err, -errno, "epoll: %s", strerror(errno));
	for (size_t i = 0; i < w->n_sockets; i++) {
		struct epoll_event e = { .events = EPOLLIN };
		const union MHD_DaemonInfo *info;

		w->daemons[i] = start_daemon(w, w->sockets[i]);
		if (!w->daemons[i])
			return err_set(err, -EIO, "cannot start the HTTP server: %s", w->log);
		w->sockets[i] = -1; /* the daemon closes it */
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

#define IDLE_RUNS    3	  /* without a pause: what a client has sent may be buffered */
#define ANSWER_RUNS  1000 /* the same while an answer is sent, a piece in each */
#define PAUSE_MAX_MS 50	  /* data that arrives ends the pause */

static bool answers_any(const struct web *w)
{
	for (const struct web_conn *c = w->conns.next; c != &w->conns; c = c->next)
		if (c->busy)
			return true;
	return false;
}

/*
 * While a TLS handshake waits for the rest of a message, libmicrohttpd wants to run again at once: ten bytes
 * of a stranger would take a CPU for REQUEST_S. So if nothing arrives, the runs become rare.
 */
static unsigned int pause_ms(const struct web *w)
{
	const unsigned int free_runs = answers_any(w) ? ANSWER_RUNS : IDLE_RUNS;

	if (!w->tls || w->idle_runs < free_runs)
		return 0;
	return w->idle_runs - free_runs < 6 ? 1U << (w->idle_runs - free_runs) : PAUSE_MAX_MS;
}

static void note_idle_run(struct web *w)
{
	struct epoll_event e;

	if (epoll_wait(w->epoll_fd, &e, 1, 0) <= 0)
		w->idle_runs++;
	else if (w->idle_runs > IDLE_RUNS)
		w->idle_runs = IDLE_RUNS;
}

int web_timeout_ms(const struct web *w)
{
	double auth_s = w->auth ? web_auth_wait_s(w->auth, now_s()) : -1;
	double ms = w->self.connections ? fmax(w->next_check_s - now_s(), 0) * 1000 : -1;

	if (w->n_turns)
		return 0;
	if (w->history && (ms < 0 || ms > (w->next_history_s - now_s()) * 1000))
		ms = fmax(w->next_history_s - now_s(), 0) * 1000;
	if (auth_s >= 0 && (ms < 0 || auth_s * 1000 < ms))
		ms = auth_s * 1000;
	for (size_t i = 0; i < w->n_sockets; i++) {
		MHD_UNSIGNED_LONG_LONG t;

		if (w->daemons[i] && MHD_get_timeout(w->daemons[i], &t) == MHD_YES &&
		    (ms < 0 || t < ms))
			ms = fmax(t, pause_ms(w));
	}
	return ceil(ms);
}

static void check_password(struct web *w, double now)
{
	bool right;
	struct web_conn *c = w->auth ? web_auth_step(w->auth, now, &right) : NULL;

	if (!c)
		return;
	w->self.passwords_checked++;
	w->self.passwords_wrong += !right;
	c->checked = true;
	c->right = right;
	resume(c);
}

/* Whether anybody reads or not; a reading that is not older than a second will do. */
static void add_to_history(struct web *w, double now)
{
	const double every_s = w->opts.history.interval_s;
	struct web_scrape *s;

	if (!w->history || now < w->next_history_s)
		return;
	s = web_scrape_get(w->scrapes);
	if (metrics_history_add(w->history, s->metrics))
		w->next_history_s = fmax(w->next_history_s + every_s, now + every_s / 2);
	else /* it has that one */
		w->next_history_s = fmax(web_scrapes_due_s(w->scrapes), now + every_s / 10);
	web_scrape_put(w->scrapes, s);
	w->self.history_s = metrics_history_seconds(w->history);
	w->self.history_bytes = metrics_history_bytes(w->history);
}

void web_run(struct web *w)
{
	double now = now_s();

	add_to_history(w, now);
	check_password(w, now);
	w->turn_ends_s = thread_cpu_s() + TURN_S;
	resume_all(w, WEB_WAITS_TURN);
	note_idle_run(w);
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
	resume_all(w, WEB_WAITS_AUTH); /* libmicrohttpd requires it */
	resume_all(w, WEB_WAITS_TURN);
	for (size_t i = 0; i < w->n_sockets; i++) {
		if (w->daemons[i])
			MHD_stop_daemon(w->daemons[i]);
		if (w->sockets[i] >= 0)
			close(w->sockets[i]);
	}
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	web_scrapes_close(w->scrapes);
	metrics_history_close(w->history);
	web_auth_close(w->auth);
	web_tls_put(w->tls);
	free_config(w->config);
	free(w);
}
