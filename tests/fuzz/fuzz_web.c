// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Any text as a header, as edges of histograms and as the file of --web.config.file, by the first
 * byte: no crash, and what is accepted is within its bounds.
 */
#include <ibscope/maps.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/metrics.h"
#include "web/web_server.h"
#include "web/web_config.h"

static void need(int condition)
{
	if (!condition)
		abort();
}

static void check_edges(const char *text)
{
	struct metrics_opts o = {};
	struct err e = {};

	if (metrics_edges_parse(text, &o, &e)) {
		need(*e.text);
		return;
	}
	need(o.n_edges > 0 && o.n_edges <= METRICS_EDGES_MAX);
	for (size_t i = 0; i < o.n_edges; i++) {
		need(ibs_lat_le(ibs_lat_bucket(o.edges[i])) == o.edges[i]);
		need(!i || o.edges[i] > o.edges[i - 1]);
	}
}

static void check_config(const char *text, size_t n)
{
	struct web_config c;
	struct err e = {};

	if (web_config_parse(text, n, "/nonexistent", &c, &e)) {
		need(*e.text);
		return;
	}
	need(!c.cert && !c.key);
	for (size_t i = 0; i < c.n_users; i++)
		need(*c.users[i].name && strlen(c.users[i].hash) == 60);
	web_config_free(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	text = malloc(size); /* to the byte, so that none behind is read */
	need(text != NULL);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	switch (data[0] % 4) {
	case 0:
		need(web_accept(text) <= METRICS_OPENMETRICS2); /* JSON is not negotiated */
		break;
	case 1:
		web_accept_gzip(text);
		break;
	case 2:
		check_edges(text);
		break;
	default:
		check_config(text, size - 1);
	}
	free(text);
	return 0;
}
