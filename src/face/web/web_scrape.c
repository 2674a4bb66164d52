// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "web_server.h"
#include "base/std.h"

#include "base/clock.h"
#include "base/trusted_dir.h"
#include "status/reading.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>
#include <zlib.h>

#define EVERY_S 1
/*
 * After a reading, wait for this multiple of its duration before the next. Map lookups lose samples for about
 * a tenth of their time, on one CPU: this keeps the loss below 0.1 %.
 */
#define RESTS_MAPPED   3
#define RESTS_LOOK_UPS 50
#define RESTS_MAX_S    15
#define FLAT_MAX \
	(8       \
	 << 20) /* keeps the text of a thousand groups of low detail, instead of generating it again */
#define SURPLUS_MAX  (8 << 20)
#define GZIP_LEVEL   1
#define GZIP_PIECE   32768
#define GZIP_HISTORY (15 + 16) /* the largest window, with a gzip header */

struct web_scrapes {
	const char *pin_dir;
	int dir_fd; /* keeps the directory reachable without privileges; -1: missing */
	const struct metrics_opts *opts;
	struct metrics_self *self;
	struct pinned *pinned;
	struct web_scrape *latest; /* and older ones that are in use */
	double until_s;		   /* no new reading before this time; CLOCK_MONOTONIC */
	int failed;		   /* result of the latest reading */
	struct err err;
	double ready_until_s; /* no new check before this time */
	int ready;
	struct err ready_err;
};

struct web_scrapes *web_scrapes_open(const char *pin_dir, const struct metrics_opts *opts,
				     struct metrics_self *self)
{
	struct web_scrapes *all = xcalloc(1, sizeof(*all));

	all->pin_dir = pin_dir;
	all->dir_fd = -1;
	all->opts = opts;
	all->self = self;
	return all;
}

static void set_dir(struct web_scrapes *all, int fd)
{
	if (all->dir_fd >= 0)
		close(all->dir_fd);
	all->dir_fd = fd;
}

/*
 * Open the directory of the pins, which may have been removed and created again. If privileges were dropped and
 * a parent directory is inaccessible, use the open one. Refuse a directory that other users could have created
 * or written to.
 */
static int find_dir(struct web_scrapes *all, struct err *err)
{
	int fd = open(all->pin_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 || errno == ENOENT) {
		set_dir(all, fd);
		if (fd < 0 || trusted_dir_check(all->pin_dir, true, err) != -EPERM)
			return 0;
		set_dir(all, -1);
		return -EPERM;
	}
	if (all->dir_fd < 0)
		return err_set(
			err, -errno,
			"cannot open %s: %s; let user %u search the directories above it, or "
			"start `ibscope serve` first and the exporter as root after it",
			all->pin_dir, strerror(errno), getuid());
	if (!fstat(all->dir_fd, &st) && !st.st_nlink)
		return err_set(err, -ESTALE,
			       "%s was removed, and user %u cannot open a new one: restart the "
			       "exporter",
			       all->pin_dir, getuid());
	return 0;
}

static int open_pinned(struct web_scrapes *all, struct err *err)
{
	int ret = find_dir(all, err);

	if (!ret && all->pinned && pinned_current(all->pinned, all->dir_fd, all->pin_dir))
		return 0;
	pinned_close(all->pinned);
	all->pinned = NULL;
	return ret ?: pinned_open_at(all->dir_fd, all->pin_dir, &all->pinned, err);
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

/* Log a failure when it begins or changes, and its end. */
static void log_failure(struct web_scrapes *all, int ret, const struct err *err)
{
	const bool failed = ret && ret != -ENOENT;

	if (failed && (!all->failed || strcmp(all->err.text, err->text)))
		log_error("%s", err->text);
	else if (!failed && all->failed)
		log_info("the counters can be read again");
	all->failed = failed ? ret : 0;
	all->err = *err;
}

/* Missing pins are not a failure: a collector may start later. */
static struct metrics *read_now(struct web_scrapes *all)
{
	struct metrics *m;
	const bool coarse = all->self->coarse;
	struct err err = { "" };
	int ret = open_pinned(all, &err);

	all->self->mapped = !ret && pinned_mapped(all->pinned);
	all->self->failing = false;
	if (!ret)
		ret = metrics_read_pinned(all->pinned, all->opts, all->self, &m, &err);
	log_failure(all, ret, &err);
	if (all->self->coarse && !coarse)
		log_info("all buckets of all groups take more than %d MiB: histograms have only "
			 "the exported edges from now on",
			 METRICS_FINE_MAX >> 20);
	if (!ret)
		return m;
	pinned_close(all->pinned); /* the pins may have been replaced */
	all->pinned = NULL;
	all->self->failing = all->failed;
	all->self->read_errors += all->self->failing;
	return metrics_read_nothing(all->failed ? METRICS_FAILED : METRICS_NONE, err.text,
				    all->self);
}

static struct web_scrape *read_new(struct web_scrapes *all)
{
	struct web_scrape *s = xcalloc(1, sizeof(*s));
	double begin = now_s(), cpu_s = thread_cpu_s();

	/* free the old one first, so that only one is in memory */
	if (all->latest && !all->latest->users)
		drop(all, all->latest);
	all->self->reads++;
	s->metrics = read_now(all);
	cpu_s = (thread_cpu_s() - cpu_s) * (all->self->mapped ? RESTS_MAPPED : RESTS_LOOK_UPS);
	all->until_s = fmax(begin + EVERY_S, now_s() + fmin(cpu_s, RESTS_MAX_S));
	s->bytes = sizeof(*s) + metrics_bytes(s->metrics);
	s->older = all->latest;
	all->latest = s;
	return s;
}

struct web_scrape *web_scrape_get(struct web_scrapes *all)
{
	struct web_scrape *s = all->latest;

	if (!s || now_s() >= all->until_s)
		s = read_new(all);
	s->users++;
	return s;
}

double web_scrapes_due_s(const struct web_scrapes *all)
{
	return all->until_s;
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

/* If the text is too long to keep, only count its bytes. */
static int write_plain(const struct metrics *m, enum metrics_format format, struct metrics_buf *b,
		       size_t *total)
{
	struct metrics_cursor c = {};
	bool more, fits = true;

	*total = 0;
	do {
		size_t before = b->n;

		more = metrics_text(m, format, &c, b);
		*total += b->n - before;
		fits = fits && b->n <= FLAT_MAX;
		b->n = fits ? b->n : 0;
	} while (more);
	return fits ? 0 : -E2BIG;
}

static int deflate_some(z_stream *z, struct metrics_buf *b, int flush)
{
	int ret;

	do {
		array_reserve(b->s, b->room, b->n + GZIP_PIECE);
		z->next_out = (Bytef *)b->s + b->n;
		z->avail_out = GZIP_PIECE;
		ret = deflate(z, flush);
		b->n += GZIP_PIECE - z->avail_out;
	} while (ret == Z_OK && (z->avail_in || !z->avail_out || flush == Z_FINISH));
	return ret == Z_OK || ret == Z_STREAM_END || ret == Z_BUF_ERROR ? 0 : -EIO;
}

static int write_gzip(const struct metrics *m, enum metrics_format format, struct metrics_buf *b,
		      size_t *total)
{
	struct metrics_buf text = {};
	struct metrics_cursor c = {};
	z_stream z = {};
	int ret = 0;
	bool more;

	if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_HISTORY, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		out_of_memory();
	do {
		text.n = 0;
		more = metrics_text(m, format, &c, &text);
		z.next_in = (Bytef *)text.s;
		z.avail_in = text.n;
		ret = deflate_some(&z, b, more ? Z_NO_FLUSH : Z_FINISH);
	} while (more && !ret);
	deflateEnd(&z);
	free(text.s);
	*total = b->n;
	return ret;
}

const struct web_flat *web_scrape_flat(struct web_scrape *s, enum metrics_format format, bool gzip)
{
	struct web_flat *flat = &s->flat[format][gzip];
	struct metrics_buf b = {};

	if (flat->text || flat->big)
		return flat;
	if ((gzip ? write_gzip : write_plain)(s->metrics, format, &b, &flat->n)) {
		free(b.s);
		flat->big = true;
		return flat;
	}
	flat->text = xrealloc(b.s, b.n);
	s->bytes += b.n;
	return flat;
}

static int check_ready(struct web_scrapes *all, struct err *err)
{
	struct ibs_meta meta;
	int ret = open_pinned(all, err);

	if (ret)
		return ret;
	pinned_meta(all->pinned, &meta);
	if (!collector_alive(&meta))
		return err_set(err, -ESRCH, "%s",
			       collector_orphaned(&meta)
				       ? "the collector was killed, and sampling continues "
					 "without a governor: start it again, or run `ibscope "
					 "ctl stop`"
				       : "the collector is not running; its counters are kept and "
					 "do not change");
	if (meta.pins_missing)
		return err_set(err, -ENOENT,
			       "%u pins are missing: readers and the next collector do not find "
			       "all counters; the log of the collector gives the reason",
			       meta.pins_missing);
	if (all->failed) /* other clients may not trigger another reading */
		web_scrape_put(all, web_scrape_get(all));
	*err = all->err;
	return all->failed;
}

int web_scrapes_ready(struct web_scrapes *all, struct err *err)
{
	double now = now_s();

	if (now >= all->ready_until_s) {
		all->ready = check_ready(all, &all->ready_err);
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
	set_dir(all, -1);
	free(all);
}
