// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "diff_http.h"

#include "base/array.h"

#include <curl/curl.h>
#include <errno.h>
#include <string.h>

#define CONNECT_S  5L
#define TIMEOUT_S  60L
#define ANSWER_MAX (256UL << 20) /* bytes, decompressed */

static size_t keep(char *data, size_t size, size_t n, void *arg)
{
	struct diff_answer *a = arg;

	if (n * size > ANSWER_MAX - a->n) {
		a->too_long = true;
		return 0;
	}
	array_reserve(a->text, a->room, a->n + n * size + 1);
	memcpy(a->text + a->n, data, n * size);
	a->n += n * size;
	a->text[a->n] = 0;
	return n * size;
}

static void set_options(CURL *curl, const char *url, const char *fields, struct diff_answer *a)
{
	curl_easy_setopt(curl, CURLOPT_URL, url);
	if (fields)
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, fields);
	curl_easy_setopt(curl, CURLOPT_ACCEPT_ENCODING, "");
	/* follow no redirects: send credentials only to the given server */
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_S);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT, TIMEOUT_S);
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "ibscope/" IBSCOPE_VERSION);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, a);
}

/* Proxies call JSON what they like, but a page for people is none. */
static bool is_json(const char *type, const struct diff_answer *a)
{
	const char *text = a->text ?: "";

	text += strspn(text, " \t\r\n");
	return !type || strstr(type, "json") || *text == '{';
}

/* An answer that was received. */
static int check_answer(CURL *curl, const char *url, const struct diff_answer *a, struct err *err)
{
	const char *type = NULL;
	long status = 0;

	curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	curl_easy_getinfo(curl, CURLINFO_CONTENT_TYPE, &type);
	if (status != 200 && status != 400 && status != 422) /* those have an error in JSON */
		return err_set(err, -EIO, "%s: the server answers %ld", url, status);
	if (!is_json(type, a))
		return err_set(err, -EBADMSG, "%s: the server answers with %.80s, not with JSON",
			       url, type);
	return 0;
}

int diff_http(const char *url, const char *fields, const char *shorter, struct diff_answer *a,
	      struct err *err)
{
	char why[CURL_ERROR_SIZE] = "";
	CURL *curl = curl_easy_init();
	CURLcode code;
	int ret;

	if (!curl)
		return err_set(err, -ENOMEM, "out of memory for an HTTP request");
	set_options(curl, url, fields, a);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
	code = curl_easy_perform(curl);
	if (a->too_long)
		ret = err_set(err, -EFBIG, "%s: the answer is longer than %lu MiB; choose %s", url,
			      ANSWER_MAX >> 20, shorter);
	else if (code)
		ret = err_set(err, -EIO, "%s: %s", url, *why ? why : curl_easy_strerror(code));
	else
		ret = check_answer(curl, url, a, err);
	curl_easy_cleanup(curl);
	return ret;
}
