/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Readings that clients share: the counters are read at most once a second, however many ask, and
 * for a small part of the time only, if there are very many.
 */
#ifndef IBSCOPE_WEB_SCRAPE_H
#define IBSCOPE_WEB_SCRAPE_H

#include "metrics.h"

struct web_scrape {
	struct metrics *metrics;
	unsigned int users;
	size_t bytes; /* of memory */
	struct web_flat {
		char *text;	    /* NULL: not made yet */
		size_t n;	    /* bytes; if it is too big and not zipped, too */
		bool big;	    /* the text is too long to be kept */
	} flat[METRICS_FORMATS][2]; /* plain, gzip */
	struct web_scrape *older;
};

struct web_scrapes;

/* @self is read for each reading, and its counts of readings are kept there. */
int web_scrapes_open(const char *pin_dir, const struct metrics_opts *opts,
		     struct metrics_self *self, struct web_scrapes **out);

/**
 * web_scrape_get() - the latest reading, made if it is too old
 *
 * When there is no collector, it is one that says so.
 *
 * Return: NULL with @err if what is there cannot be read; end its use with web_scrape_put().
 */
struct web_scrape *web_scrape_get(struct web_scrapes *all, struct err *err);
void web_scrape_put(struct web_scrapes *all, struct web_scrape *s); /* accepts NULL */

/**
 * web_scrape_flat() - a whole text
 *
 * Return: it belongs to @s. Without a text it is too long to be kept, or there is no memory: then it
 * is to be written as it is sent.
 */
const struct web_flat *web_scrape_flat(struct web_scrape *s, enum metrics_format format, bool gzip);

/* The oldest of the readings before the latest, if all have too much memory; else NULL. */
struct web_scrape *web_scrapes_surplus(struct web_scrapes *all);

/**
 * web_scrapes_ready() - is there a collector whose counters can be read?
 *
 * Return: 0, or a negative errno with @err telling why not.
 */
int web_scrapes_ready(struct web_scrapes *all, struct err *err);

void web_scrapes_close(struct web_scrapes *all); /* accepts NULL; no reading is in use */

#endif
