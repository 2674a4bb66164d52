// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include <unistd.h>

#include "perf_data_event.h"
#include "perf_data_header.h"
#include "perf_data_order.h"
#include "perf_data_source.h"
#include "trace/trace.h"

/* If the kind or the processor of samples is unknown, search so many bytes for the first samples. */
#define SCAN_BYTES (64ULL << 20)

struct perf_data {
	struct trace trace; /* must be first */
	struct perf_header header;
	struct perf_attrs attrs;
	struct perf_source source;
	struct perf_order order;
	struct perf_convert convert;
	struct trace_pmu *pmu;

	char note[PERF_NOTE_BYTES]; /* the first skipped record */
	__u64 note_offset;
	bool ended, concluded;
	int failed; /* error that ended reading, with `why` */
	struct err why;
};

static bool is_perf_data(const unsigned char *bytes, size_t n)
{
	const __u64 native = PERF_MAGIC, foreign = PERF_MAGIC_FOREIGN;

	return n >= sizeof(native) && (!memcmp(bytes, &native, sizeof(native)) ||
				       !memcmp(bytes, &foreign, sizeof(foreign)) ||
				       !memcmp(bytes, PERF_MAGIC_1, sizeof(native)) ||
				       !memcmp(bytes, PERF_MAGIC_1_FOREIGN, sizeof(native)));
}

static void perf_data_close(struct trace *t)
{
	struct perf_data *d = (struct perf_data *)t;

	perf_source_free(&d->source);
	perf_order_clear(&d->order);
	perf_attrs_free(&d->attrs);
	perf_header_free(&d->header);
	free(d->pmu);
	close(d->source.fd);
	free(d);
}

static void damaged(struct perf_data *d, const struct perf_record *rec, const char *what)
{
	d->trace.end.skipped_blocks++;
	d->trace.end.skipped_bytes += rec->size;
	if (*d->note && d->note_offset <= rec->offset)
		return;
	d->note_offset = rec->offset;
	snprintf(d->note, sizeof(d->note), "record of type %u at offset %llu: %s", rec->type,
		 rec->offset, what);
}

/* Learn from one of the first samples. Return: true if trace_info is complete. */
static bool learn(struct perf_data *d, const struct perf_record *rec)
{
	struct perf_attr *a = perf_attrs_of_sample(&d->attrs, rec);
	struct perf_sample_body body;

	if (a && a->kind != PERF_ATTR_OTHER && perf_sample_body(a, rec, &body)) {
		enum perf_attr_kind guess = perf_guess_kind(&body);

		if (a->kind == PERF_ATTR_UNKNOWN)
			a->kind = guess;
		if (guess == a->kind && guess != PERF_ATTR_OTHER && !d->trace.info.cpu.caps) {
			d->trace.info.cpu.caps = perf_get32(body.raw) & ~PERF_RAW_NO_CTL;
			d->trace.info.full_registers = !(perf_get32(body.raw) & PERF_RAW_NO_CTL);
		}
	}
	if (!d->trace.info.cpu.caps)
		return false;
	for (size_t i = 0; i < d->attrs.n; i++)
		if (d->attrs.attr[i].kind == PERF_ATTR_UNKNOWN)
			return false;
	return true;
}

static bool has_ibs(const struct perf_data *d)
{
	for (size_t i = 0; i < d->attrs.n; i++)
		if (d->attrs.attr[i].kind != PERF_ATTR_OTHER)
			return true;
	return false;
}

static int finish_events(struct perf_data *d, struct err *err)
{
	int ret = perf_attrs_finish(&d->attrs, err);

	if (!ret)
		perf_header_name_events(&d->header, &d->attrs);
	return ret;
}

/*
 * Read until trace_info is complete: in a pipe, parts of it are in records, and some are only in samples.
 * Stops at damage, which is reported when it is read again.
 */
static int scan(struct perf_data *d, struct err *err)
{
	struct perf_record rec;
	struct err why = { 0 };
	bool known = !d->header.pipe;
	__u64 limit = d->header.begin + SCAN_BYTES;
	int ret = known ? finish_events(d, err) : 0, got;

	if (ret)
		return ret;
	while ((!known || has_ibs(d)) && d->source.at < limit) {
		got = perf_source_next(&d->source, &rec, &why);
		if (got <= 0)
			break;
		if (rec.type == PERF_RECORD_HEADER_BUILD_ID)
			perf_build_ids_add(&d->header.build_ids, &rec);
		if (!known && rec.type == PERF_RECORD_SAMPLE) {
			ret = finish_events(d, err);
			if (ret)
				return ret;
			known = true;
		}
		if (!known) {
			ret = perf_header_record(&d->header, &rec, &d->attrs, &d->trace.info, err);
			if (ret)
				return ret;
		} else if (rec.type == PERF_RECORD_SAMPLE && learn(d, &rec)) {
			break;
		}
	}
	perf_source_rewind(&d->source);
	if (known)
		return 0;
	if (!d->attrs.n && *why.text)
		return err_set(err, -EBADMSG, "%s", why.text);
	return finish_events(d, err);
}

static void set_pmu(struct trace_pmu *p, const struct perf_attr *a)
{
	*p = (struct trace_pmu){
		.op = a->kind == PERF_ATTR_OP,
		.freq = a->attr.freq,
		.physical = true,
		.stacks = a->attr.sample_type & PERF_SAMPLE_CALLCHAIN,
		.period = a->attr.sample_period,
		.config = a->attr.config,
		.config1 = a->attr.config1,
	};
	snprintf(p->name, sizeof(p->name), "%s",
		 *a->name ? a->name
		 : p->op  ? "ibs_op"
			  : "ibs_fetch");
	p->filtered = trace_event_filtered(p->name) ||
		      (p->op ? p->config >> 16 & 1 || p->config1 & 0x1fff
			     : p->config >> 59 & 1 || p->config1 & 0x7ff);
}

static int no_pmus(const struct perf_data *d, struct err *err)
{
	const struct perf_attr *a = d->attrs.attr;

	for (size_t i = 0; i < d->attrs.n; i++)
		if (a[i].kind == PERF_ATTR_UNKNOWN)
			return err_set(err, -EINVAL,
				       "it was not completed, and has no IBS sample that would "
				       "show which of its events are IBS");
	return err_set(err, -EINVAL,
		       "it has no raw IBS samples, its first event is %s; record with "
		       "`perf record -e ibs_op// --raw-samples`",
		       *a->name ? a->name : "not named");
}

/* Leave out events without a name, if no sample of their PMU was found. */
static int set_pmus(struct perf_data *d, struct err *err)
{
	d->pmu = xcalloc(d->attrs.n, sizeof(*d->pmu));
	/* missing if perf was killed */
	d->convert.lost_by_event = d->header.pipe || !d->header.cut;
	for (size_t i = 0; i < d->attrs.n; i++) {
		struct perf_attr *a = &d->attrs.attr[i];

		if (a->kind != PERF_ATTR_OP && a->kind != PERF_ATTR_FETCH)
			continue;
		if (!(a->attr.read_format & PERF_FORMAT_LOST))
			d->convert.lost_by_event = false;
		a->pmu = d->trace.info.n_pmus;
		set_pmu(&d->pmu[d->trace.info.n_pmus++], a);
	}
	d->trace.info.pmu = d->pmu;
	return d->trace.info.n_pmus ? 0 : no_pmus(d, err);
}

static void set_cpu(struct perf_data *d)
{
	const struct perf_header *h = &d->header;
	__u32 caps = d->trace.info.cpu.caps;

	d->trace.info.has_cpu = h->has_cpu;
	cpu_info_set(&d->trace.info.cpu, h->vendor, h->family, h->model, caps);
	d->trace.info.cpu.stepping = h->stepping;
	memcpy(d->trace.info.cpu.name, h->cpu_name, sizeof(d->trace.info.cpu.name));
	d->convert.quirks = d->trace.info.cpu.quirks;
	d->convert.build_ids = &h->build_ids;
}

static int prepare(struct perf_data *d, struct err *err)
{
	struct perf_source *s = &d->source;
	struct trace_info *info = &d->trace.info;
	int ret = perf_header_read(s->fd, &d->header, &d->attrs, info, err);

	if (ret)
		return ret;
	s->begin = d->header.begin;
	s->end = d->trace.total = d->header.end;
	s->cut = d->header.cut;
	perf_source_rewind(s);
	ret = scan(d, err);
	if (ret)
		return ret;
	d->trace.info.format = "perf.data";
	d->trace.info.source = d->trace.info.simulated ? "sim" : "ibs";
	d->trace.info.full_registers |= !d->trace.info.cpu.caps; /* of no samples */
	set_cpu(d);
	return set_pmus(d, err);
}

static int perf_data_open(int fd, __u64 offset, __u64 bytes, struct trace **out, struct err *err)
{
	struct perf_data *d = xcalloc(1, sizeof(*d));
	int ret;

	(void)offset;
	(void)bytes;
	d->source.fd = fd;
	ret = prepare(d, err);
	if (ret) {
		perf_data_close(&d->trace);
		return ret == -EBADMSG || ret == -ENOENT ? -EINVAL : ret;
	}
	*out = &d->trace;
	return 0;
}

/* Return: 1 if @ev is one. */
static int convert(struct perf_data *d, size_t attr, const struct perf_record *rec, __u64 time,
		   struct trace_event *ev)
{
	switch (perf_convert(&d->convert, &d->attrs.attr[attr], rec, time, ev)) {
	case PERF_CONVERTED:
		return 1;
	case PERF_DAMAGED:
		damaged(d, rec, "what is in it does not fit its size");
		return 0;
	default:
		return 0;
	}
}

/* Return: the event that the record belongs to, or NULL if the record is ignored. */
static struct perf_attr *attr_of(struct perf_data *d, const struct perf_record *rec)
{
	struct perf_attr *a;

	if (rec->type != PERF_RECORD_SAMPLE) {
		a = perf_attrs_of_other(&d->attrs, rec);
		if (!a)
			damaged(d, rec, "it is too short");
		return a;
	}
	a = perf_attrs_of_sample(&d->attrs, rec);
	if (!a) {
		damaged(d, rec, "a sample of an event that the header does not have");
		return NULL;
	}
	if (a->pmu < 0) {
		d->trace.end.other_samples++;
		return NULL;
	}
	return a;
}

/* Convert a record of the file. Return: 1 if it is an event, else 0. */
static int take(struct perf_data *d, const struct perf_record *rec, struct trace_event *ev)
{
	struct perf_attr *a;
	__u64 time;

	if (rec->type == PERF_RECORD_FINISHED_ROUND) {
		perf_order_round(&d->order);
		return 0;
	}
	if (rec->type == PERF_RECORD_HEADER_BUILD_ID) {
		if (!perf_build_ids_add(&d->header.build_ids, rec))
			damaged(d, rec, "no build id with a path");
		return 0;
	}
	if (!perf_is_event(rec))
		return 0;
	a = attr_of(d, rec);
	if (!a)
		return 0;
	if (!perf_record_time(a, rec, &time)) {
		damaged(d, rec, "it is too short");
		return 0;
	}
	/* records that perf synthesized from /proc have no time, and apply from the start */
	if (!time || time == ~0ULL)
		return convert(d, a - d->attrs.attr, rec, 0, ev);
	perf_order_add(&d->order, time, a - d->attrs.attr, rec);
	return 0;
}

/* The file has ended, but records may still be held back. */
static void end_reading(struct perf_data *d, int ret)
{
	d->ended = true;
	d->failed = ret;
	perf_order_finish(&d->order);
}

static void conclude(struct perf_data *d)
{
	const char *notes[] = { d->header.note, d->note, d->failed ? d->why.text : "", NULL };
	char torn[PERF_NOTE_BYTES];
	__u64 left = perf_source_unread(&d->source);
	size_t at = 0;

	if (d->concluded)
		return;
	d->concluded = true;
	d->trace.end.skipped_bytes += left;
	if (left && !d->failed) {
		snprintf(torn, sizeof(torn), "the last record, at offset %llu, is cut off",
			 d->source.at);
		notes[2] = torn;
	}
	for (size_t i = 0; notes[i]; i++) {
		if (*notes[i] && at < sizeof(d->trace.end.missing))
			at += snprintf(d->trace.end.missing + at, sizeof(d->trace.end.missing) - at,
				       "%s%s", at ? "; " : "", notes[i]);
	}
	d->trace.end.whole = !at;
}

static int perf_data_next(struct trace *t, struct trace_event *ev, struct err *err)
{
	struct perf_data *d = (struct perf_data *)t;
	struct perf_record rec;
	__u64 time;
	size_t attr;
	int ret;

	for (;;) {
		if (perf_order_take(&d->order, &rec, &time, &attr)) {
			if (convert(d, attr, &rec, time, ev))
				return 1;
			continue;
		}
		if (d->ended)
			break;
		ret = perf_source_next(&d->source, &rec, &d->why);
		t->done = d->source.at;
		if (ret <= 0)
			end_reading(d, ret);
		else if (take(d, &rec, ev))
			return 1;
	}
	conclude(d);
	if (d->failed && err)
		*err = d->why;
	return d->failed;
}

static void perf_data_rewind(struct trace *t)
{
	struct perf_data *d = (struct perf_data *)t;

	perf_source_rewind(&d->source);
	perf_order_clear(&d->order);
	t->end = (struct trace_end){};
	*d->note = 0;
	d->ended = d->concluded = false;
	d->failed = 0;
}

const struct trace_format perf_data_format = {
	.magic = is_perf_data,
	.open = perf_data_open,
	.next = perf_data_next,
	.rewind = perf_data_rewind,
	.close = perf_data_close,
};
