// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "push_http.h"

#include "base/json_writer.h"
#include "base/regular.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <math.h>
#include <unistd.h>

#define CONNECT_S	 5L
#define TIMEOUT_S	 20L
#define ANSWER_MAX	 200	    /* maximum bytes of a response in an error */
#define ANSWER_BYTES_MAX (64 << 10) /* read at all */
#define FIRST_WAIT_S	 1

int push_secret_read(const char *path, struct push_secret *out, struct err *err)
{
	struct stat st;
	int fd, ret = 0;
	ssize_t n;

	out->text[0] = 0;
	if (!*path)
		return 0;
	fd = regular_open(path);
	if (fd < 0)
		return err_set(err, fd, "--push-credentials: cannot read %s: %s", path,
			       strerror(-fd));
	n = fstat(fd, &st) ? -1 : read(fd, out->text, sizeof(out->text));
	if (n < 0)
		ret = err_set(err, -errno, "--push-credentials: cannot read %s: %s", path,
			      strerror(errno));
	close(fd);
	ret = ret ?: regular_check_secret(path, &st, "password", err);
	if (ret)
		return ret;
	if (n == sizeof(out->text))
		return err_set(err, -EINVAL, "--push-credentials: %s is too long", path);
	out->text[n] = 0;
	out->text[strcspn(out->text, "\r\n")] = 0;
	if (!strchr(out->text, ':') && strncmp(out->text, "Bearer ", 7))
		return err_set(err, -EINVAL,
			       "--push-credentials: the first line of %s must be USER:PASSWORD or "
			       "'Bearer TOKEN'",
			       path);
	return 0;
}

/* The response of a server, truncated. */
struct answer {
	char text[ANSWER_MAX + 1];
	size_t n;
	size_t bytes; /* of headers and body, kept or not */
};

/* Return: what makes curl go on, or give up a server that sends without end. */
static size_t take(struct answer *a, size_t bytes)
{
	a->bytes += bytes;
	return a->bytes > ANSWER_BYTES_MAX ? 0 : bytes;
}

static size_t keep_answer(char *data, size_t size, size_t n, void *arg)
{
	struct answer *a = arg;
	size_t part = n * size < ANSWER_MAX - a->n ? n * size : ANSWER_MAX - a->n;

	memcpy(a->text + a->n, data, part);
	a->n += part;
	a->text[a->n] = 0;
	return take(a, n * size);
}

static size_t skip_header(char *data, size_t size, size_t n, void *arg)
{
	(void)data;
	return take(arg, n * size);
}

/* One request; request_free() frees it all. */
struct request {
	CURL *curl;
	curl_mime *form;
	struct curl_slist *headers;
	char *json, url[sizeof(((struct push_opts *)0)->url) + 512];
};

static int bad_curl(struct err *err)
{
	return err_set(err, -ENOMEM, "out of memory for an HTTP request");
}

/* NAME{hostname="..."} and times in the query; the profile and the description of its values as a form. */
static int to_pyroscope(struct request *r, const struct push_opts *opts, const struct push_body *b,
			struct err *err)
{
	static const char with[] = "{\"samples\":{\"units\":\"samples\"},"
				   "\"miss_cycles\":{\"units\":\"cycles\"},"
				   "\"remote_miss_cycles\":{\"units\":\"cycles\"},"
				   "\"estimated_ops\":{\"units\":\"ops\"},"
				   "\"dram\":{\"units\":\"samples\"}}";
	static const char without[] = "{\"samples\":{\"units\":\"samples\"},"
				      "\"latency\":{\"units\":\"cycles\"},"
				      "\"remote_latency\":{\"units\":\"cycles\"},"
				      "\"dram\":{\"units\":\"samples\"}}";
	char name[sizeof(opts->name) + 128], *escaped;
	curl_mimepart *part;

	snprintf(name, sizeof(name), "%s{hostname=%s}", opts->name, b->host);
	escaped = curl_easy_escape(r->curl, name, 0);
	if (!escaped)
		return bad_curl(err);
	snprintf(r->url, sizeof(r->url),
		 "%s/ingest?format=pprof&spyName=ibscope&name=%s&from=%.0f&until=%.0f", opts->url,
		 escaped, floor(b->from_s), ceil(b->until_s));
	curl_free(escaped);
	r->form = curl_mime_init(r->curl);
	part = r->form ? curl_mime_addpart(r->form) : NULL;
	if (!part || curl_mime_name(part, "profile") || curl_mime_filename(part, "profile.pb.gz") ||
	    curl_mime_data(part, b->data, b->bytes))
		return bad_curl(err);
	part = curl_mime_addpart(r->form);
	if (!part || curl_mime_name(part, "sample_type_config") ||
	    curl_mime_filename(part, "sample_type_config.json") ||
	    curl_mime_data(part, b->estimates ? with : without, CURL_ZERO_TERMINATED))
		return bad_curl(err);
	curl_easy_setopt(r->curl, CURLOPT_MIMEPOST, r->form);
	return 0;
}

static void put_label(struct json_writer *w, const char *name, const char *value)
{
	json_begin_object(w, NULL);
	json_put_text(w, "name", name);
	json_put_text(w, "value", value);
	json_end(w);
}

/* ProfileStoreService.WriteRaw, in the JSON that Parca accepts. */
static int to_parca(struct request *r, const struct push_opts *opts, const struct push_body *b,
		    struct err *err)
{
	const gnutls_datum_t data = { (unsigned char *)b->data, b->bytes };
	gnutls_datum_t profile; /* base64, as protobuf's JSON has bytes */
	struct json_writer w = {};
	size_t n;

	if (gnutls_base64_encode2(&data, &profile))
		out_of_memory();
	w.f = xmemopen(&r->json, &n);
	json_begin_object(&w, NULL);
	json_begin_array(&w, "series");
	json_begin_object(&w, NULL);
	json_begin_object(&w, "labels");
	json_begin_array(&w, "labels");
	put_label(&w, "__name__", opts->name);
	put_label(&w, "instance", b->host);
	json_end(&w);
	json_end(&w);
	json_begin_array(&w, "samples");
	json_begin_object(&w, NULL);
	json_put_text(&w, "rawProfile", (const char *)profile.data);
	json_finish(&w);
	xmemclose(w.f);
	gnutls_free(profile.data);
	r->headers = curl_slist_append(NULL, "Content-Type: application/json");
	if (!r->headers)
		return bad_curl(err);
	snprintf(r->url, sizeof(r->url), "%s/profiles/writeraw", opts->url);
	curl_easy_setopt(r->curl, CURLOPT_HTTPHEADER, r->headers);
	curl_easy_setopt(r->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(r->json));
	curl_easy_setopt(r->curl, CURLOPT_POSTFIELDS, r->json);
	return 0;
}

static void set_secret(CURL *curl, const char *secret)
{
	bool bearer = !strncmp(secret, "Bearer ", 7);

	if (!*secret)
		return;
	curl_easy_setopt(curl, CURLOPT_HTTPAUTH, bearer ? CURLAUTH_BEARER : CURLAUTH_BASIC);
	curl_easy_setopt(curl, bearer ? CURLOPT_XOAUTH2_BEARER : CURLOPT_USERPWD,
			 secret + 7 * bearer);
}

static int request_open(struct request *r, const struct push_opts *opts, const struct push_body *b,
			struct err *err)
{
	struct push_secret secret;
	int ret = push_secret_read(opts->credentials, &secret, err);

	if (ret)
		return ret;
	r->curl = curl_easy_init();
	if (!r->curl)
		return bad_curl(err);
	ret = opts->format == PUSH_PARCA ? to_parca(r, opts, b, err)
					 : to_pyroscope(r, opts, b, err);
	if (ret)
		return ret;
	curl_easy_setopt(r->curl, CURLOPT_URL, r->url);
	/* follow no redirects: send credentials only to the given server */
	curl_easy_setopt(r->curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(r->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(r->curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	curl_easy_setopt(r->curl, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
	curl_easy_setopt(r->curl, CURLOPT_TIMEOUT, TIMEOUT_S);
	curl_easy_setopt(r->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(r->curl, CURLOPT_USERAGENT, "ibscope/" IBSCOPE_VERSION);
	if (*opts->ca)
		curl_easy_setopt(r->curl, CURLOPT_CAINFO, opts->ca);
	set_secret(r->curl, secret.text);
	return 0;
}

static void request_free(struct request *r)
{
	curl_mime_free(r->form);
	curl_slist_free_all(r->headers);
	curl_easy_cleanup(r->curl);
	free(r->json);
}

/* Return: 0; -EAGAIN if it may succeed later; or another errno. */
static int try_once(struct request *r, const char *url, struct err *err)
{
	char why[CURL_ERROR_SIZE] = "";
	struct answer answer = { "" };
	long status = 0;
	CURLcode code;

	curl_easy_setopt(r->curl, CURLOPT_ERRORBUFFER, why);
	curl_easy_setopt(r->curl, CURLOPT_WRITEFUNCTION, keep_answer);
	curl_easy_setopt(r->curl, CURLOPT_WRITEDATA, &answer);
	curl_easy_setopt(r->curl, CURLOPT_HEADERFUNCTION, skip_header);
	curl_easy_setopt(r->curl, CURLOPT_HEADERDATA, &answer);
	code = curl_easy_perform(r->curl);
	curl_easy_getinfo(r->curl, CURLINFO_RESPONSE_CODE, &status);
	/* even if the connection failed later: do not post an accepted profile again */
	if (status / 100 == 2)
		return 0;
	if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
		return err_set(err, -EPERM,
			       "%s: %s; --push-ca names the certificates that are trusted", url,
			       *why ? why : curl_easy_strerror(code));
	if (code && !(status && answer.bytes > ANSWER_BYTES_MAX))
		return err_set(err, -EAGAIN, "%s: %s", url, *why ? why : curl_easy_strerror(code));
	answer.text[strcspn(answer.text, "\r\n")] = 0;
	return err_set(err, status == 408 || status == 429 || status >= 500 ? -EAGAIN : -EPROTO,
		       "%s answers %ld%s%s", url, status, *answer.text ? ": " : "", answer.text);
}

int push_post(const struct push_opts *opts, const struct push_body *body, __u32 *retries,
	      struct err *err)
{
	unsigned int wait_s = FIRST_WAIT_S;
	struct request r = { NULL };
	int ret;

	if (curl_global_init(CURL_GLOBAL_DEFAULT))
		return bad_curl(err);
	ret = request_open(&r, opts, body, err);
	for (int i = 1; !ret; i++) {
		ret = try_once(&r, opts->url, err);
		if (ret != -EAGAIN || i == PUSH_TRIES)
			break;
		sleep(wait_s);
		wait_s *= 4;
		++*retries;
		ret = 0;
	}
	request_free(&r);
	curl_global_cleanup();
	return ret;
}
