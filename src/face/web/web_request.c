// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "base/clock.h"
#include "base/std.h"
#include "web_server.h"

#include "page_hashes.h"

#define PIECE 65536 /* piece size of a text that is generated while it is sent */
#define TEXT  "text/plain; charset=utf-8"
/* The page loads nothing, and may connect only to us. */
#define PAGE_POLICY                                                   \
	"default-src 'none'; style-src 'sha256-" WEB_CSS_SHA256 "'; " \
	"script-src 'sha256-" WEB_JS_SHA256 "'; "                     \
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

struct request {
	struct web *web;
	struct web_conn *conn;
	struct MHD_Connection *mhd;
};

/* Queue a response, and release it. */
static enum MHD_Result answer(const struct request *r, unsigned int status, const char *type,
			      struct MHD_Response *response)
{
	enum MHD_Result ret;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	ret = MHD_queue_response(r->mhd, status, response);
	MHD_destroy_response(response);
	return ret;
}

static enum MHD_Result answer_text(const struct request *r, unsigned int status, const char *text)
{
	char line[sizeof(((struct err *)NULL)->text) + 1];
	int n = snprintf(line, sizeof(line), "%s\n", text);

	return answer(r, status, TEXT,
		      MHD_create_response_from_buffer(n, line, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result answer_refusal(const struct request *r, unsigned int status,
				      const char *header, const char *value, const char *text)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_PERSISTENT);

	if (response)
		MHD_add_response_header(response, header, value);
	return answer(r, status, TEXT, response);
}

/* --- texts of counters --- */

/* A text that is generated while it is sent, from @at on. */
struct stream {
	const struct metrics *metrics;
	enum metrics_format format;
	struct metrics_cursor cursor;
	struct metrics_buf buf;
	size_t at;
};

static ssize_t read_stream(void *arg, uint64_t pos, char *to, size_t max)
{
	struct stream *s = arg;
	size_t n;

	(void)pos;
	if (s->at == s->buf.n) {
		s->at = s->buf.n = 0;
		metrics_text(s->metrics, s->format, &s->cursor, &s->buf);
	}
	if (!s->buf.n)
		return MHD_CONTENT_READER_END_OF_STREAM;
	n = s->buf.n - s->at < max ? s->buf.n - s->at : max;
	memcpy(to, s->buf.s + s->at, n);
	s->at += n;
	return n;
}

static void free_stream(void *arg)
{
	struct stream *s = arg;

	free(s->buf.s);
	free(s);
}

/* With a content length: it is then sent in larger pieces, without chunks. */
static struct MHD_Response *stream_response(const struct web_scrape *scrape,
					    enum metrics_format format, size_t size)
{
	struct stream *s = xcalloc(1, sizeof(*s));

	s->metrics = scrape->metrics;
	s->format = format;
	return MHD_create_response_from_callback(size, PIECE, read_stream, s, free_stream);
}

static const char *header(const struct request *r, const char *name)
{
	return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

/* On one machine, CPU time costs more than bytes. */
static bool wants_gzip(const struct request *r)
{
	return !r->conn->loopback && web_accept_gzip(header(r, MHD_HTTP_HEADER_ACCEPT_ENCODING));
}

static enum MHD_Result answer_counters(const struct request *r, enum metrics_format format,
				       const char *type)
{
	bool gzip = wants_gzip(r);
	struct MHD_Response *response;
	struct web_scrape *scrape;
	const struct web_flat *flat;

	scrape = web_scrape_get(r->web->scrapes);
	r->conn->scrape = scrape; /* released at the end of the request */
	flat = web_scrape_flat(scrape, format, gzip);
	if (gzip && !flat->text) {
		gzip = false;
		flat = web_scrape_flat(scrape, format, false);
	}
	if (flat->text)
		response = MHD_create_response_from_buffer(flat->n, flat->text,
							   MHD_RESPMEM_PERSISTENT);
	else
		response = stream_response(scrape, format, flat->n);
	if (response && gzip)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	if (response)
		MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept, Accept-Encoding");
	return answer(r, MHD_HTTP_OK, type, response);
}

static enum MHD_Result metrics(const struct request *r)
{
#define OPENMETRICS(version) "application/openmetrics-text; version=" version "; charset=utf-8"
	static const char *const types[METRICS_FORMATS] = {
		[METRICS_TEXT] = "text/plain; version=0.0.4; charset=utf-8",
		[METRICS_OPENMETRICS] = OPENMETRICS("1.0.0"),
		[METRICS_OPENMETRICS2] = OPENMETRICS("2.0.0"),
	};
	enum metrics_format format = web_accept(header(r, MHD_HTTP_HEADER_ACCEPT));

	r->web->self.scrapes++;
	return answer_counters(r, format, types[format]);
}

static enum MHD_Result snapshot(const struct request *r)
{
	return answer_counters(r, METRICS_JSON, "application/json");
}

static ssize_t read_history(void *arg, uint64_t pos, char *to, size_t max)
{
	const size_t n = metrics_history_text_read(arg, to, max);

	(void)pos;
	return n ? (ssize_t)n : MHD_CONTENT_READER_END_OF_STREAM;
}

static void free_history(void *arg)
{
	metrics_history_text_close(arg);
}

/* The number in ?after=, or 0 if it is none: then the answer is all of it. */
static __u64 history_after(const struct request *r)
{
	const char *text = MHD_lookup_connection_value(r->mhd, MHD_GET_ARGUMENT_KIND, "after");
	unsigned long long n;

	return text && *text >= '0' && *text <= '9' && sscanf(text, "%19llu", &n) == 1 ? n : 0;
}

static enum MHD_Result history(const struct request *r)
{
	const bool gzip = wants_gzip(r);
	struct metrics_history_text *t =
		metrics_history_text_open(r->web->history, history_after(r), gzip);
	struct MHD_Response *response = MHD_create_response_from_callback(
		metrics_history_text_size(t), PIECE, read_history, t, free_history);

	if (!response) {
		metrics_history_text_close(t);
		return MHD_NO;
	}
	if (gzip)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept-Encoding");
	return answer(r, MHD_HTTP_OK, "application/json", response);
}

/* --- the rest --- */

static enum MHD_Result healthy(const struct request *r)
{
	return answer_text(r, MHD_HTTP_OK, "OK");
}

static enum MHD_Result ready(const struct request *r)
{
	struct err err = { "" };

	if (web_scrapes_ready(r->web->scrapes, &err))
		return answer_text(r, MHD_HTTP_SERVICE_UNAVAILABLE, err.text);
	return answer_text(r, MHD_HTTP_OK, "ready: the collector is running");
}

/* The page, which is self-contained. */
extern const char web_page[];
extern const __u64 web_page_size;
__asm__(".section .rodata\n"
	".global web_page, web_page_size\n"
	"web_page: .incbin \"" WEB_PAGE_FILE "\"\n"
	"web_page_end: .balign 8\n"
	"web_page_size: .quad web_page_end - web_page\n"
	".previous\n");

static enum MHD_Result page(const struct request *r)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		web_page_size, (void *)web_page, MHD_RESPMEM_PERSISTENT);

	if (response) {
		MHD_add_response_header(response, "Content-Security-Policy", PAGE_POLICY);
		MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	}
	return answer(r, MHD_HTTP_OK, "text/html; charset=utf-8", response);
}

static enum MHD_Result route(const struct request *r, const char *url)
{
	static const struct {
		const char *path;
		enum MHD_Result (*run)(const struct request *r);
	} routes[] = {
		{ "/", page },
		{ "/-/healthy", healthy },
		{ "/-/ready", ready },
		{ "/api/history.json", history },
		{ "/api/snapshot.json", snapshot },
	};

	if (!strcmp(url, r->web->opts.telemetry_path))
		return metrics(r);
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (!strcmp(url, routes[i].path))
			return routes[i].run(r);
	return answer_text(r, MHD_HTTP_NOT_FOUND, "not found; see /");
}

enum verdict { LET_IN, WAIT, REFUSE, BUSY };

static enum verdict check_user(const struct request *r)
{
	static const enum verdict verdicts[] = { [WEB_AUTH_YES] = LET_IN,
						 [WEB_AUTH_NO] = REFUSE,
						 [WEB_AUTH_WAIT] = WAIT,
						 [WEB_AUTH_BUSY] = BUSY };
	enum web_auth_result result = WEB_AUTH_NO;
	char *password = NULL, *user;

	if (!r->web->auth || r->conn->right)
		return LET_IN;
	if (r->conn->checked)
		return REFUSE;
	user = MHD_basic_auth_get_username_password(r->mhd, &password);
	if (user && password)
		result = web_auth_check(r->web->auth, (const struct sockaddr *)&r->conn->addr, user,
					password, r->conn);
	if (password)
		explicit_bzero(password, strlen(password));
	MHD_free(password);
	MHD_free(user);
	return verdicts[result];
}

/* When the connection is resumed, web_request() gets the request again. */
static void suspend(const struct request *r, enum web_wait why)
{
	r->conn->wait = why;
	r->web->n_turns += why == WEB_WAITS_TURN;
	MHD_suspend_connection(r->conn->mhd);
}

/* Answer a complete request, or let it wait. */
static enum MHD_Result handle(const struct request *r, const char *url)
{
	if (thread_cpu_s() > r->web->turn_ends_s) {
		suspend(r, WEB_WAITS_TURN);
		return MHD_YES;
	}
	switch (check_user(r)) {
	case LET_IN:
		return route(r, url);
	case WAIT:
		suspend(r, WEB_WAITS_AUTH);
		return MHD_YES;
	case BUSY:
		return answer_refusal(r, MHD_HTTP_TOO_MANY_REQUESTS, MHD_HTTP_HEADER_RETRY_AFTER,
				      "5",
				      "too many passwords from this address are being checked\n");
	default:
		return answer_refusal(r, MHD_HTTP_UNAUTHORIZED, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
				      "Basic realm=\"ibscope\", charset=\"UTF-8\"",
				      "user name and password required\n");
	}
}

/*
 * DNS rebinding: a foreign web page can make its own name resolve to our loopback address, and the browser
 * would then let it read our responses. But the browser sends that name in Host.
 */
static bool is_foreign(const struct request *r)
{
	const char *host = header(r, MHD_HTTP_HEADER_HOST);

	return r->conn->local_loopback && host && !web_host_is_local(host, &r->web->opts);
}

/* Refuse a request, if necessary. @why: result of web_strict_check() */
static enum MHD_Result refuse(const struct request *r, const char *method, const char *why)
{
	if (why)
		return answer_refusal(r, MHD_HTTP_BAD_REQUEST, MHD_HTTP_HEADER_CONNECTION, "close",
				      why);
	if (is_foreign(r))
		return answer_refusal(r, MHD_HTTP_MISDIRECTED_REQUEST, MHD_HTTP_HEADER_CONNECTION,
				      "close",
				      "unknown host name: use localhost, an IP address or this "
				      "machine's name\n");
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return answer_refusal(r, MHD_HTTP_METHOD_NOT_ALLOWED, MHD_HTTP_HEADER_ALLOW,
				      "GET, HEAD", "only GET and HEAD are supported\n");
	return MHD_YES;
}

enum MHD_Result web_request(void *arg, struct MHD_Connection *c, const char *url,
			    const char *method, const char *version, const char *upload,
			    size_t *upload_size, void **request)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct request r = { .web = arg, .mhd = c, .conn = info ? info->socket_context : NULL };

	(void)upload;
	if (!r.conn || r.conn->ended || *upload_size)
		return MHD_NO;
	r.conn->busy = true;
	r.conn->since_s = now_s();
	/* the first call comes before the end of the request; refused requests get no second call */
	if (!*request) {
		*request = r.conn;
		return refuse(&r, method, web_strict_check(c, method, url, version));
	}
	return handle(&r, url);
}
