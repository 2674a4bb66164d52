// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "metrics_history.h"
#include "base/clock.h"
#include "base/std.h"
#include "base/u64_map.h"
#include "history_piece.h"
#include "history_row.h"
#include "metrics_base.h"

#include <math.h>

#define EPOCHS \
	12 /* of the whole length: names are written again in each, and the oldest one goes at once */
#define ROWS_START 64
#define ROWS_MIN   8 /* fewer are not tried */
#define ROWS_MAX   65536
#define SILENT_S   3 /* a collector that updated nothing for so long has ended or stands still */

struct metrics_history {
	struct metrics_history_opts opts;
	size_t keep;  /* intervals */
	size_t quota; /* bytes of one */
	size_t epoch; /* intervals in one */
	struct history_piece *first, *last;
	size_t n, bytes; /* of pieces */
	double seconds;
	__u64 number; /* of the last piece */
	struct metrics_base base[METRICS_EVENTS];
	double opened_s;
	double base_s;	/* time of the base; NAN: there is none */
	size_t rows;	/* at most so many groups have a row */
	__u64 left_out; /* groups with samples that had none in the last interval */
	/* a gap that goes on */
	double gap_s, gap_end_s; /* gap_s is NAN if there is none */
	char gap[160];
	/* ids of the groups whose names are in the pieces of this epoch, by hash of the labels */
	struct u64_map ids;
	__u32 next_id;
	char *about; /* what the pieces of this epoch count, as history_about() has it */
	struct base_work work;
};

struct metrics_history *metrics_history_open(const struct metrics_history_opts *opts)
{
	struct metrics_history *h = xcalloc(1, sizeof(*h));

	h->opts = *opts;
	h->opts.bytes = opts->bytes ?: HISTORY_MAX;
	h->keep = ceil(opts->length_s / opts->interval_s);
	h->epoch = h->keep / EPOCHS + 1;
	h->quota = h->opts.bytes / (h->keep + h->epoch);
	h->rows = ROWS_START;
	h->base_s = h->gap_s = NAN;
	h->opened_s = clock_ns(CLOCK_BOOTTIME) / 1e9;
	return h;
}

void metrics_history_close(struct metrics_history *h)
{
	if (!h)
		return;
	history_piece_put(h->first);
	for (int i = 0; i < METRICS_EVENTS; i++)
		base_drop(&h->base[i]);
	u64_map_free(&h->ids);
	free(h->about);
	free(h);
}

double metrics_history_seconds(const struct metrics_history *h)
{
	return h->seconds;
}

size_t metrics_history_bytes(const struct metrics_history *h)
{
	size_t bytes = sizeof(*h) + h->bytes + h->ids.size * sizeof(*h->ids.slots);

	for (int i = 0; i < METRICS_EVENTS; i++)
		bytes += base_bytes(&h->base[i]);
	return bytes;
}

/* --- pieces --- */

static size_t piece_bytes(const struct history_piece *p)
{
	return sizeof(*p) + p->n;
}

static void drop_first(struct metrics_history *h)
{
	struct history_piece *p = h->first;

	h->first = p->next;
	h->n--;
	h->bytes -= piece_bytes(p);
	h->seconds -= p->seconds;
	if (h->first)
		h->first->users++;
	else
		h->last = NULL;
	history_piece_put(p);
}

static __u64 epoch_of(const struct metrics_history *h, __u64 number)
{
	return number / h->epoch;
}

/* Names are written once in an epoch, so that epochs go as a whole, but never the newest one. */
static void drop_oldest(struct metrics_history *h)
{
	while (h->first && (h->n > h->keep + h->epoch || h->bytes > h->opts.bytes)) {
		const __u64 epoch = h->first->epoch;

		if (epoch == h->last->epoch)
			return;
		while (h->first && h->first->epoch == epoch)
			drop_first(h);
	}
}

static void begin_piece(struct metrics_history *h)
{
	if (epoch_of(h, h->number) != epoch_of(h, h->number + 1)) {
		u64_map_free(&h->ids);
		free(h->about);
		h->about = NULL;
	}
	h->number++;
}

static void add_piece(struct metrics_history *h, struct history_piece *p, double seconds)
{
	p->number = h->number;
	p->epoch = epoch_of(h, h->number);
	p->seconds = seconds;
	if (h->last)
		h->last->next = p;
	else
		h->first = p;
	h->last = p;
	h->n++;
	h->bytes += piece_bytes(p);
	h->seconds += seconds;
	drop_oldest(h);
}

/* --- the JSON of an interval --- */

struct interval {
	double begin_s, end_s;
	bool partial; /* the collector did not run all the time */
	unsigned int n_events;
	char *about; /* NULL: as in the interval before */
	struct base_event event[METRICS_EVENTS];
	/* names that are new in this epoch */
	struct new_name {
		__u64 hash;
		__u32 id;
		const char *json;
	} * names;
	size_t n_names, names_room;
	__u64 left_out;
};

static __u32 id_of(struct metrics_history *h, struct interval *in, const struct base_event *e,
		   size_t i)
{
	const __u64 hash = e->rank[i].hash;
	const __u32 id = u64_map_get(&h->ids, hash);

	if (id != U64_MAP_NONE)
		return id;
	for (size_t k = 0; k < in->n_names; k++)
		if (in->names[k].hash == hash)
			return in->names[k].id;
	array_reserve(in->names, in->names_room, in->n_names + 1);
	in->names[in->n_names++] =
		(struct new_name){ hash, ++h->next_id, e->groups->group[e->rank[i].group].json };
	return h->next_id;
}

/* Rows of at most @rows groups, and of the rest. Return: false if they have more than the whole. */
static bool put_rows(struct metrics_history *h, struct json_writer *w, struct interval *in,
		     unsigned int event, size_t rows)
{
	const struct base_event *e = &in->event[event];
	const struct metrics_base *base = &h->base[event];
	const bool fetch = e->groups->fetch;
	struct base_work *work = &h->work;
	__u64 done = 0;

	if (!base_rest(base, e, work))
		return false;
	json_begin_array(w, "groups");
	for (size_t i = 0; i < e->n_active && done < rows; i++) {
		const int got = base_take(base, e, i, work);

		if (got < 0)
			return false;
		if (!got)
			continue;
		history_put_row(w, id_of(h, in, e, i), &work->now, fetch);
		done++;
	}
	if (work->rest.samples)
		history_put_row(w, 0, &work->rest, fetch);
	json_end(w);
	in->left_out += e->n_active - done;
	return true;
}

static bool put_event(struct metrics_history *h, struct json_writer *w, struct interval *in,
		      unsigned int event, size_t rows)
{
	struct ledger ledger;

	if (!base_ledger(&h->base[event], &in->event[event], &ledger))
		return false;
	ledger_put(w, &ledger);
	return put_rows(h, w, in, event, rows);
}

/* The text of the interval, which the caller frees. Return: NULL if the groups have more than the whole. */
static char *interval_text(struct metrics_history *h, struct interval *in, size_t rows, size_t *n)
{
	char *text;
	struct json_writer w = { .f = xmemopen(&text, n), .precision = 12 };
	bool ok = true;

	in->n_names = 0;
	in->left_out = 0;
	json_begin_object(&w, NULL);
	json_put_u64(&w, "number", h->number);
	json_put_double(&w, "begin_s", in->begin_s);
	json_put_double(&w, "end_s", in->end_s);
	json_put_bool(&w, "partial", in->partial);
	if (in->about)
		json_put_raw(&w, "collector", in->about);
	for (unsigned int event = 0; ok && event < in->n_events; event++) {
		if (event)
			json_begin_object(&w, "fetch");
		ok = put_event(h, &w, in, event, rows);
		if (event)
			json_end(&w);
	}
	json_put_u64(&w, "left_out", in->left_out);
	json_begin_array(&w, "names");
	for (size_t i = 0; i < in->n_names; i++) {
		json_begin_object(&w, NULL);
		json_put_u64(&w, "id", in->names[i].id);
		if (*in->names[i].json)
			json_put_raw(&w, NULL, in->names[i].json);
		json_end(&w);
	}
	json_end(&w);
	json_end(&w);
	xmemclose(w.f);
	if (!ok) {
		free(text);
		return NULL;
	}
	return text;
}

/* With as many rows as the quota allows. */
static struct history_piece *interval_piece(struct metrics_history *h, struct interval *in)
{
	size_t rows = h->rows, n;

	for (;;) {
		char *text = interval_text(h, in, rows, &n);
		struct history_piece *p;

		if (!text) { /* the groups do not add up, but the whole increased */
			rows = 0;
			text = interval_text(h, in, rows, &n);
		}
		p = history_piece_new(text, n);
		free(text);
		if (piece_bytes(p) <= h->quota || !rows) {
			/* more the next time, in case they are quieter */
			if (rows && in->left_out && rows < ROWS_MAX)
				h->rows = rows + rows / 4 + 1;
			return p;
		}
		rows = rows <= ROWS_MIN ? 0 : rows * .9 * h->quota / piece_bytes(p);
		history_piece_put(p);
	}
}

static void keep_names(struct metrics_history *h, const struct interval *in)
{
	if (in->about) {
		free(h->about);
		h->about = xstrdup(in->about);
	}
	for (size_t i = 0; i < in->n_names; i++)
		u64_map_put(&h->ids, in->names[i].hash, in->names[i].id);
}

/* --- gaps --- */

/* @number: 0: it goes on */
static void put_gap(struct json_writer *w, const struct metrics_history *h, __u64 number)
{
	json_begin_object(w, NULL);
	if (number)
		json_put_u64(w, "number", number);
	json_put_double(w, "begin_s", h->gap_s);
	json_put_double(w, "end_s", h->gap_end_s);
	json_put_text(w, "gap", h->gap);
	json_end(w);
}

/* A gap is written when it ends; until then it is at the end of each text. */
static void end_gap(struct metrics_history *h)
{
	char *text;
	size_t n;
	struct json_writer w = { .precision = 12 };

	if (isnan(h->gap_s))
		return;
	begin_piece(h);
	w.f = xmemopen(&text, &n);
	put_gap(&w, h, h->number);
	xmemclose(w.f);
	add_piece(h, history_piece_new(text, n), 0);
	free(text);
	h->gap_s = NAN;
}

static void add_gap(struct metrics_history *h, double begin_s, double end_s, const char *why)
{
	if (!isnan(h->gap_s) && strncmp(h->gap, why, sizeof(h->gap) - 1))
		end_gap(h);
	if (isnan(h->gap_s))
		h->gap_s = begin_s;
	h->gap_end_s = end_s;
	snprintf(h->gap, sizeof(h->gap), "%s", why);
}

/* --- a reading --- */

static double time_of(const struct metrics *m)
{
	return m->facts.reading[0].time_ns / 1e9;
}

static void keep_base(struct metrics_history *h, const struct metrics *m)
{
	for (unsigned int i = 0; i < METRICS_EVENTS; i++) {
		struct base_event e;

		if (i >= m->facts.n_events) {
			base_drop(&h->base[i]);
			continue;
		}
		base_event_init(&e, m, i, &h->base[i]);
		base_keep(&h->base[i], &e);
		base_event_free(&e);
	}
	h->base_s = time_of(m);
}

/* True if the collector has not run for a while, and nothing samples without it. */
static bool is_over(const struct metrics *m, double before_s)
{
	const struct ibs_meta *meta = &m->facts.reading[0].meta;

	return meta->status.time_ns / 1e9 < before_s &&
	       (!meta->outlives || collector_lease_s(meta) <= 0); /* NAN: it has no end */
}

/* Nothing was counted since the base because nothing sampled; NULL: something did. */
static const char *why_silent(const struct metrics_history *h, const struct metrics *m)
{
	const struct ibs_meta *meta = &m->facts.reading[0].meta;

	for (unsigned int i = 0; i < m->facts.n_events; i++)
		if (m->facts.reading[i].ledger.seen != h->base[i].ledger.seen)
			return NULL;
	if (!meta->pid || is_over(m, fmin(h->base_s, time_of(m) - SILENT_S)))
		return "the collector is not running";
	return status_stopped(&meta->status) ? "sampling is stopped" : NULL;
}

static bool same_events(const struct metrics_history *h, const struct metrics *m)
{
	for (unsigned int i = 0; i < METRICS_EVENTS; i++)
		if (h->base[i].any != (i < m->facts.n_events))
			return false;
	return true;
}

static bool only_increased(struct metrics_history *h, const struct interval *in)
{
	struct ledger ledger;
	bool ok = true;

	for (unsigned int i = 0; i < in->n_events; i++)
		ok = ok && base_rest(&h->base[i], &in->event[i], &h->work) &&
		     base_ledger(&h->base[i], &in->event[i], &ledger);
	return ok;
}

/* Return: false if a counter decreased. */
static bool add_interval(struct metrics_history *h, const struct metrics *m)
{
	const struct ibs_meta *meta = &m->facts.reading[0].meta;
	struct interval in = { .begin_s = h->base_s,
			       .end_s = time_of(m),
			       .n_events = m->facts.n_events };
	struct history_piece *p = NULL;

	in.partial =
		!meta->pid || h->base[0].starts != meta->starts || is_over(m, in.end_s - SILENT_S);
	for (unsigned int i = 0; i < in.n_events; i++)
		base_event_init(&in.event[i], m, i, &h->base[i]);
	if (only_increased(h, &in)) {
		end_gap(h);
		begin_piece(h);
		in.about = history_about(m);
		if (h->about && !strcmp(in.about, h->about)) {
			free(in.about);
			in.about = NULL;
		}
		p = interval_piece(h, &in);
		keep_names(h, &in);
		h->left_out = in.left_out;
		add_piece(h, p, in.end_s - in.begin_s);
		for (unsigned int i = 0; i < in.n_events; i++)
			base_keep(&h->base[i], &in.event[i]);
		h->base_s = in.end_s;
	}
	for (unsigned int i = 0; i < in.n_events; i++)
		base_event_free(&in.event[i]);
	free(in.names);
	free(in.about);
	return p;
}

static void add_unread(struct metrics_history *h, const char *why)
{
	const double begin_s = isnan(h->gap_s) ? h->base_s : h->gap_end_s;

	for (int i = 0; i < METRICS_EVENTS; i++)
		base_drop(&h->base[i]);
	h->base_s = NAN;
	if (!isnan(begin_s))
		add_gap(h, begin_s, clock_ns(CLOCK_BOOTTIME) / 1e9, why);
}

bool metrics_history_add(struct metrics_history *h, const struct metrics *m)
{
	const char *why;

	if (m->facts.state != METRICS_READ) {
		add_unread(h, m->why);
		return true;
	}
	if (time_of(m) <= h->base_s)
		return false;
	if (isnan(h->base_s)) {
		if (!isnan(h->gap_s))
			h->gap_end_s = time_of(m);
	} else if ((why = same_events(h, m) ? why_silent(h, m) : "other events are sampled")) {
		add_gap(h, h->base_s, time_of(m), why);
	} else if (add_interval(h, m)) {
		return true;
	} else {
		add_gap(h, h->base_s, time_of(m), "the counters began again");
	}
	keep_base(h, m);
	return true;
}

/* --- the text --- */

static void put_words(struct json_writer *w, const char *key, const char *const *words)
{
	json_begin_array(w, key);
	for (; *words; words++)
		json_put_text(w, NULL, *words);
	json_end(w);
}

static char *head_text(const struct metrics_history *h, __u64 after)
{
	static const char *const source[] = { "samples",     "valid",	"sum", "estimated",
					      "miss_cycles", "buckets", NULL };
	static const char *const tlb[] = { "l2_hit",  "l2_miss",       "l2_hit_ops", "l2_miss_ops",
					   "refills", "refill_cycles", NULL };
	char *text;
	size_t n;
	struct json_writer w = { .f = xmemopen(&text, &n), .precision = 15 };

	json_begin_object(&w, NULL);
	json_put_double(&w, "opened_s", h ? h->opened_s : 0);
	json_put_u64(&w, "after", after);
	json_put_double(&w, "length_s", h ? h->opts.length_s : 0);
	json_put_double(&w, "interval_s", h ? h->opts.interval_s : 0);
	json_put_double(&w, "kept_s", h ? h->seconds : 0);
	json_put_u64(&w, "bytes", h ? metrics_history_bytes(h) : 0);
	json_put_u64(&w, "bytes_limit", h ? h->opts.bytes + METRICS_EVENTS * METRICS_BASE_MAX : 0);
	json_put_u64(&w, "left_out", h ? h->left_out : 0);
	json_put_double(&w, "now_s", clock_ns(CLOCK_BOOTTIME) / 1e9);
	put_words(&w, "source_members", source);
	put_words(&w, "tlb_members", tlb);
	json_begin_array(&w, "intervals");
	/* not json_finish(): intervals follow */
	xmemclose(w.f);
	return text;
}

static char *tail_text(const struct metrics_history *h, bool any)
{
	char *text;
	size_t n;
	struct json_writer w = { .f = xmemopen(&text, &n), .precision = 12 };

	if (h && !isnan(h->gap_s)) {
		if (any)
			fputc(',', w.f);
		put_gap(&w, h, 0);
	}
	fputs("]}\n", w.f);
	xmemclose(w.f);
	return text;
}

struct metrics_history_text *metrics_history_text_open(struct metrics_history *h, __u64 after,
						       bool gzip)
{
	struct history_piece *p = h ? h->first : NULL;

	/* who has an interval that is gone, or of another history, gets all of them */
	if (!p || after < p->number || after > h->number)
		after = 0;
	while (p && p->number <= after)
		p = p->next;
	return history_text_new(p, (struct history_frame){ head_text(h, after), tail_text(h, p) },
				gzip);
}
