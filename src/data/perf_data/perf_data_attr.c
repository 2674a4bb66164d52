// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "perf_data_attr.h"

/* Fields at the start of a sample, each of 8 bytes, in this order. */
static void lay_out_sample(struct perf_attr *a)
{
	const struct {
		__u64 bit;
		__u16 *at;
	} fields[] = {
		{ PERF_SAMPLE_IDENTIFIER, &a->id }, { PERF_SAMPLE_IP, &a->ip },
		{ PERF_SAMPLE_TID, &a->task },	    { PERF_SAMPLE_TIME, &a->time },
		{ PERF_SAMPLE_ADDR, NULL },	    { PERF_SAMPLE_ID, &a->id },
		{ PERF_SAMPLE_STREAM_ID, NULL },    { PERF_SAMPLE_CPU, &a->cpu },
		{ PERF_SAMPLE_PERIOD, NULL },
	};
	__u16 at = sizeof(struct perf_event_header);

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (!(a->attr.sample_type & fields[i].bit))
			continue;
		if (fields[i].at && !*fields[i].at)
			*fields[i].at = at;
		at += sizeof(__u64);
	}
	a->fixed = at;
}

/* The same at the end of other records, the last one first. */
static void lay_out_trailer(struct perf_attr *a)
{
	const struct {
		__u64 bit;
		__u16 *at;
	} fields[] = {
		{ PERF_SAMPLE_IDENTIFIER, &a->end_id }, { PERF_SAMPLE_CPU, &a->end_cpu },
		{ PERF_SAMPLE_STREAM_ID, NULL },	{ PERF_SAMPLE_ID, &a->end_id },
		{ PERF_SAMPLE_TIME, &a->end_time },	{ PERF_SAMPLE_TID, &a->end_task },
	};
	__u16 at = 0;

	if (!a->attr.sample_id_all)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		if (!(a->attr.sample_type & fields[i].bit))
			continue;
		at += sizeof(__u64);
		if (fields[i].at && !*fields[i].at)
			*fields[i].at = at;
	}
	a->trailer = at;
}

static int add_ids(struct perf_attrs *a, const unsigned char *ids, size_t n, struct err *err)
{
	if (n > PERF_IDS_MAX - a->n_ids)
		return err_set(err, -EBADMSG, "more than %d ids of events", PERF_IDS_MAX);
	array_reserve(a->id, a->ids_room, a->n_ids + n);
	for (size_t i = 0; i < n; i++)
		a->id[a->n_ids++] = (struct perf_id){ perf_get64(ids + i * 8), a->n };
	return 0;
}

int perf_attrs_add(struct perf_attrs *a, const void *attr, size_t bytes, const void *ids,
		   size_t n_ids, struct err *err)
{
	struct perf_attr *p;
	int ret;

	if (a->n == PERF_ATTRS_MAX)
		return err_set(err, -EBADMSG, "more than %d events", PERF_ATTRS_MAX);
	if (bytes < PERF_ATTR_SIZE_VER0)
		return err_set(err, -EBADMSG, "an event of %zu bytes, at least %d were ever used",
			       bytes, PERF_ATTR_SIZE_VER0);
	array_reserve(a->attr, a->room, a->n + 1);
	ret = add_ids(a, ids, n_ids, err);
	if (ret)
		return ret;
	p = &a->attr[a->n];
	*p = (struct perf_attr){ .pmu = -1 };
	memcpy(&p->attr, attr, bytes < sizeof(p->attr) ? bytes : sizeof(p->attr));
	lay_out_sample(p);
	lay_out_trailer(p);
	return a->n++;
}

static int by_id(const void *x, const void *y)
{
	const struct perf_id *a = x, *b = y;

	return a->id < b->id ? -1 : a->id > b->id;
}

int perf_attrs_finish(struct perf_attrs *a, struct err *err)
{
	if (!a->n)
		return err_set(err, -ENOENT, "it has no events");
	for (size_t i = 0; i < a->n; i++) {
		const struct perf_attr *p = &a->attr[i];

		if (a->n > 1 &&
		    (!p->id || p->id != a->attr[0].id || p->end_id != a->attr[0].end_id))
			return err_set(err, -EBADMSG,
				       "its %zu events have samples without an id at the same "
				       "place, so samples cannot be assigned to events",
				       a->n);
	}
	if (a->n_ids)
		qsort(a->id, a->n_ids, sizeof(*a->id), by_id);
	return 0;
}

struct perf_attr *perf_attrs_by_id(struct perf_attrs *a, __u64 id)
{
	for (size_t i = 0; i < a->n_ids; i++)
		if (a->id[i].id == id)
			return &a->attr[a->id[i].attr];
	return NULL;
}

/* The kernel assigns ids in sequence, so the ids of a machine's CPUs seldom collide in the cache. */
static struct perf_attr *find(struct perf_attrs *a, __u64 id)
{
	const struct perf_id **cached = &a->cache[id % (ARRAY_SIZE(a->cache))];
	const struct perf_id key = { .id = id };

	if (!*cached || (*cached)->id != id) {
		const struct perf_id *p =
			a->n_ids ? bsearch(&key, a->id, a->n_ids, sizeof(key), by_id) : NULL;

		if (!p)
			return NULL;
		*cached = p;
	}
	return &a->attr[(*cached)->attr];
}

struct perf_attr *perf_attrs_of_sample(struct perf_attrs *a, const struct perf_record *rec)
{
	if (a->n == 1)
		return a->attr;
	if (rec->size < a->attr->id + sizeof(__u64))
		return NULL;
	return find(a, perf_get64(rec->data + a->attr->id));
}

/* perf writes records of its own making, whose sample_id is all zero. */
struct perf_attr *perf_attrs_of_other(struct perf_attrs *a, const struct perf_record *rec)
{
	struct perf_attr *p;

	if (a->n == 1 || !a->attr->end_id)
		return a->attr;
	if (rec->size < sizeof(struct perf_event_header) + a->attr->end_id)
		return NULL;
	p = find(a, perf_get64(rec->data + rec->size - a->attr->end_id));
	return p ? p : a->attr;
}

void perf_attrs_free(struct perf_attrs *a)
{
	free(a->attr);
	free(a->id);
	*a = (struct perf_attrs){ 0 };
}

static bool skip(struct perf_bytes *b, __u64 n)
{
	return n <= b->n && perf_take(b, n);
}

static bool skip_words(struct perf_bytes *b, __u64 n)
{
	return n <= b->n / sizeof(__u64) && skip(b, n * sizeof(__u64));
}

static bool skip_read(struct perf_bytes *b, __u64 format)
{
	unsigned int times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			     !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	unsigned int each = 1 + !!(format & PERF_FORMAT_ID) + !!(format & PERF_FORMAT_LOST);
	__u64 n;

	if (!(format & PERF_FORMAT_GROUP))
		return skip_words(b, times + each);
	return perf_take64(b, &n) && skip_words(b, times) && n <= b->n / sizeof(__u64) &&
	       skip_words(b, n * each);
}

static bool skip_branches(struct perf_bytes *b, __u64 type)
{
	__u64 n;

	if (!perf_take64(b, &n) || n > b->n / sizeof(__u64))
		return false;
	if ((type & PERF_SAMPLE_BRANCH_HW_INDEX) && !skip_words(b, 1))
		return false;
	return skip_words(b, n * 3) && (!(type & PERF_BRANCH_COUNTERS) || skip_words(b, n));
}

static bool skip_regs(struct perf_bytes *b, __u64 mask)
{
	__u64 abi;

	if (!perf_take64(b, &abi))
		return false;
	return abi == PERF_SAMPLE_REGS_ABI_NONE || skip_words(b, __builtin_popcountll(mask));
}

static bool skip_user_stack(struct perf_bytes *b)
{
	__u64 n;

	return perf_take64(b, &n) && (!n || (skip(b, n) && skip_words(b, 1)));
}

/* Skip the fields between the raw record and the cgroup. */
static bool skip_to_cgroup(struct perf_bytes *b, const struct perf_event_attr *attr)
{
	const __u64 type = attr->sample_type;
	const unsigned int words = !!(type & PERF_SAMPLE_WEIGHT_TYPE) +
				   !!(type & PERF_SAMPLE_DATA_SRC) +
				   !!(type & PERF_SAMPLE_TRANSACTION);

	return (!(type & PERF_SAMPLE_BRANCH_STACK) || skip_branches(b, attr->branch_sample_type)) &&
	       (!(type & PERF_SAMPLE_REGS_USER) || skip_regs(b, attr->sample_regs_user)) &&
	       (!(type & PERF_SAMPLE_STACK_USER) || skip_user_stack(b)) && skip_words(b, words) &&
	       (!(type & PERF_SAMPLE_REGS_INTR) || skip_regs(b, attr->sample_regs_intr)) &&
	       skip_words(b, !!(type & PERF_SAMPLE_PHYS_ADDR));
}

bool perf_sample_body(const struct perf_attr *a, const struct perf_record *rec,
		      struct perf_sample_body *out)
{
	const struct perf_event_attr *attr = &a->attr;
	struct perf_bytes b = { rec->data, rec->size };
	__u64 n;

	*out = (struct perf_sample_body){ 0 };
	if (!perf_take(&b, a->fixed) ||
	    ((attr->sample_type & PERF_SAMPLE_READ) && !skip_read(&b, attr->read_format)))
		return false;
	if (attr->sample_type & PERF_SAMPLE_CALLCHAIN) {
		if (!perf_take64(&b, &n))
			return false;
		out->stack = b.p;
		out->n_stack = n;
		if (!skip_words(&b, n))
			return false;
	}
	if (attr->sample_type & PERF_SAMPLE_RAW) {
		if (!perf_take32(&b, &out->raw_bytes))
			return false;
		out->raw = perf_take(&b, out->raw_bytes);
		if (!out->raw)
			return false;
	}
	if (!(attr->sample_type & PERF_SAMPLE_CGROUP))
		return true;
	return skip_to_cgroup(&b, attr) && perf_take64(&b, &out->cgroup);
}
