/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Readings, shared by all clients: however many ask, the counters are read at most once a second, and
 * for a small part of the time only if there are many groups.
 */
#ifndef IBSCOPE_WEB_SCRAPE_H
#define IBSCOPE_WEB_SCRAPE_H

#include "metrics/metrics.h"

struct web_scrape {
	struct metrics *metrics;
	unsigned int users;
	size_t bytes; /* of memory */
	struct web_flat {
		char *text;	    /* NULL: not written yet */
		size_t n;	    /* bytes; known for plain text even if it is not kept */
		bool big;	    /* too long to be kept */
	} flat[METRICS_FORMATS][2]; /* plain, gzip */
	struct web_scrape *older;
};

struct web_scrapes;

/* Counts of readings are kept in @self. */
int web_scrapes_open(const char *pin_dir, const struct metrics_opts *opts,
		     struct metrics_self *self, struct web_scrapes **out);

/**
 * web_scrape_get() - the latest reading; a new one if that is too old
 *
 * Without a collector, or if its counters cannot be read, it has the metrics of this process alone.
 *
 * Return: NULL with @err if there is no memory; release it with web_scrape_put().
 */
struct web_scrape *web_scrape_get(struct web_scrapes *all, struct err *err);
void web_scrape_put(struct web_scrapes *all, struct web_scrape *s); /* accepts NULL */

/**
 * web_scrape_flat() - the whole text
 *
 * Return: it belongs to @s. If its text is NULL, it is too long to be kept, or there is no memory:
 * write it as it is sent.
 */
const struct web_flat *web_scrape_flat(struct web_scrape *s, enum metrics_format format, bool gzip);

/* The oldest reading before the latest, if these use too much memory; else NULL. */
struct web_scrape *web_scrapes_surplus(struct web_scrapes *all);

/**
 * web_scrapes_ready() - check that a collector is running and its counters can be read
 *
 * Return: 0, or a negative errno with @err.
 */
int web_scrapes_ready(struct web_scrapes *all, struct err *err);

void web_scrapes_close(struct web_scrapes *all); /* accepts NULL; no reading is in use */

#endif
