// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "web_scrape.h"

#include "clock.h"
#include "metrics_collector.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define EVERY_S 1
/*
 * So many times as long as a reading took there is none. Look-ups lose samples for about a tenth of
 * the time, on one CPU: so they stay below 0.1 % of all.
 */
#define RESTS_MAPPED   3
#define RESTS_LOOK_UPS 50
#define RESTS_MAX_S    15
#define FLAT_MAX       (1 << 20)
#define SURPLUS_MAX    (8 << 20)
#define GZIP_LEVEL     1
#define GZIP_HISTORY   (15 + 16) /* the largest, and the header of gzip */

struct web_scrapes {
	const char *pin_dir;
	const struct metrics_opts *opts;
	struct metrics_self *self;
	struct pinned *pinned;
	struct web_scrape *latest; /* and older ones that are in use */
	double until_s;		   /* no other reading before; CLOCK_MONOTONIC */
	int failed;		   /* how the latest reading ended */
	struct err err;
	double ready_until_s; /* and no other look at the collector */
	int ready;
	struct err ready_err;
};

int web_scrapes_open(const char *pin_dir, const struct metrics_opts *opts,
		     struct metrics_self *self, struct web_scrapes **out)
{
	struct web_scrapes *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->pin_dir = pin_dir;
	all->opts = opts;
	all->self = self;
	*out = all;
	return 0;
}

/* Waiting for a processor loses no samples. */
static double thread_cpu_s(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) / 1e9;
}

static int open_pinned(struct web_scrapes *all, struct err *err)
{
	if (all->pinned && pinned_current(all->pinned, all->pin_dir))
		return 0;
	pinned_close(all->pinned);
	all->pinned = NULL;
	return pinned_open(all->pin_dir, &all->pinned, err);
}

static void drop(struct web_scrapes *all, struct web_scrape *s)
{
	struct web_scrape **p = &all->latest;

	while (*p != s)
		p = &(*p)->older;
	*p = s->older;
	for (int f = 0; f < METRICS_FORMATS; f++) {
		free(s->flat[f][0].text);
		free(s->flat[f][1].text);
	}
	metrics_free(s->metrics);
	free(s);
}

/* No counters, but what is the matter is told as metrics: the exporter itself is well. */
static int read_none(struct web_scrapes *all, struct metrics **out, struct err *err)
{
	all->self->mapped = false;
	return metrics_read_none(err->text, all->self, out);
}

static int read_now(struct web_scrapes *all, struct metrics **out, struct err *err)
{
	int ret = open_pinned(all, err);

	if (ret)
		return ret == -ENOMEM ? ret : read_none(all, out, err);
	all->self->mapped = pinned_mapped(all->pinned);
	ret = metrics_read_pinned(all->pinned, all->opts, all->self, out, err);
	if (ret) { /* it may be the end of these counters */
		pinned_close(all->pinned);
		all->pinned = NULL;
	}
	return ret;
}

static struct web_scrape *read_new(struct web_scrapes *all, struct err *err)
{
	struct web_scrape *s = calloc(1, sizeof(*s));
	double begin = now_s(), cpu_s = thread_cpu_s();
	int ret;

	if (!s) {
		err_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	/* before, so that both need not be held */
	if (all->latest && !all->latest->users)
		drop(all, all->latest);
	all->self->reads++;
	ret = read_now(all, &s->metrics, err);
	cpu_s = (thread_cpu_s() - cpu_s) * (all->self->mapped ? RESTS_MAPPED : RESTS_LOOK_UPS);
	all->until_s = fmax(begin + EVERY_S, now_s() + fmin(cpu_s, RESTS_MAX_S));
	all->failed = ret;
	if (ret) {
		all->self->read_errors++;
		all->err = *err;
		free(s);
		return NULL;
	}
	s->bytes = sizeof(*s) + metrics_bytes(s->metrics);
	s->older = all->latest;
	all->latest = s;
	return s;
}

struct web_scrape *web_scrape_get(struct web_scrapes *all, struct err *err)
{
	struct web_scrape *s = all->latest;

	if (now_s() >= all->until_s) {
		s = read_new(all, err);
	} else if (all->failed) {
		*err = all->err;
		return NULL;
	}
	if (s)
		s->users++;
	return s;
}

void web_scrape_put(struct web_scrapes *all, struct web_scrape *s)
{
	if (s && !--s->users && s != all->latest)
		drop(all, s);
}

struct web_scrape *web_scrapes_surplus(struct web_scrapes *all)
{
	struct web_scrape *s = all->latest ? all->latest->older : NULL, *last = NULL;
	size_t bytes = 0;

	for (; s; s = s->older) {
		bytes += s->bytes;
		last = s;
	}
	return bytes > SURPLUS_MAX ? last : NULL;
}

/* What is written so far. */
struct buffer {
	char *s;
	size_t n, room;
};

static char *want(struct buffer *b, size_t more)
{
	if (b->n + more > b->room) {
		size_t room = 2 * b->room + more;
		char *s = realloc(b->s, room);

		if (!s)
			return NULL;
		b->s = s;
		b->room = room;
	}
	return b->s + b->n;
}

/* A text that is too long for @b is only counted. */
static int write_plain(const struct metrics *m, enum metrics_format format, struct buffer *b,
		       size_t *total)
{
	struct metrics_cursor c = {};
	char counted[METRICS_ROOM];
	bool fits = true;
	size_t n;

	*total = 0;
	do {
		char *to = fits ? want(b, METRICS_ROOM) : NULL;

		fits = to && b->n <= FLAT_MAX;
		/* cppcheck-suppress legacyUninitvar */
		n = metrics_text(m, format, &c, fits ? to : counted, METRICS_ROOM);
		b->n += fits ? n : 0;
		*total += n;
	} while (n);
	return fits ? 0 : -E2BIG;
}

static int deflate_some(z_stream *z, struct buffer *b, int flush)
{
	int ret;

	do {
		char *to = want(b, METRICS_ROOM);

		if (!to)
			return -ENOMEM;
		z->next_out = (Bytef *)to;
		z->avail_out = METRICS_ROOM;
		ret = deflate(z, flush);
		b->n += METRICS_ROOM - z->avail_out;
	} while (ret == Z_OK && (z->avail_in || !z->avail_out || flush == Z_FINISH));
	return ret == Z_OK || ret == Z_STREAM_END || ret == Z_BUF_ERROR ? 0 : -EIO;
}

static int write_gzip(const struct metrics *m, enum metrics_format format, struct buffer *b,
		      size_t *total)
{
	char text[2 * METRICS_ROOM];
	struct metrics_cursor c = {};
	z_stream z = {};
	int ret = 0;
	size_t n;

	if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_HISTORY, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	do {
		n = metrics_text(m, format, &c, text, sizeof(text));
		z.next_in = (Bytef *)text;
		z.avail_in = n;
		ret = deflate_some(&z, b, n ? Z_NO_FLUSH : Z_FINISH);
	} while (n && !ret);
	deflateEnd(&z);
	*total = b->n;
	return ret;
}

const struct web_flat *web_scrape_flat(struct web_scrape *s, enum metrics_format format, bool gzip)
{
	struct web_flat *flat = &s->flat[format][gzip];
	struct buffer b = {};

	if (flat->text || flat->big)
		return flat;
	if ((gzip ? write_gzip : write_plain)(s->metrics, format, &b, &flat->n)) {
		free(b.s);
		flat->big = true;
		return flat;
	}
	flat->text = realloc(b.s, b.n) ?: b.s;
	s->bytes += b.n;
	return flat;
}

static int look(struct web_scrapes *all, struct err *err)
{
	struct ibs_meta meta;
	int ret = open_pinned(all, err);

	if (ret)
		return ret;
	pinned_meta(all->pinned, &meta);
	if (!metrics_collector_alive(&meta, &meta.status))
		return err_set(err, -ESRCH,
			       "the collector does not run; its counters are kept, and grow no "
			       "more");
	if (all->failed) /* nobody else may ask for another reading */
		web_scrape_put(all, web_scrape_get(all, err));
	*err = all->err;
	return all->failed;
}

int web_scrapes_ready(struct web_scrapes *all, struct err *err)
{
	double now = now_s();

	if (now >= all->ready_until_s) {
		all->ready = look(all, &all->ready_err);
		all->ready_until_s = now + EVERY_S;
	}
	*err = all->ready_err;
	return all->ready;
}

void web_scrapes_close(struct web_scrapes *all)
{
	if (!all)
		return;
	while (all->latest)
		drop(all, all->latest);
	pinned_close(all->pinned);
	free(all);
}
