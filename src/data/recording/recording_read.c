// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recording.h"

#include "recording_ahead.h"
#include "recording_blocks.h"
#include "recording_columns.h"
#include "recording_copies.h"
#include "recording_events.h"
#include "recording_meta.h"
#include "trace/trace.h"

#include <linux/perf_event.h>
#include <unistd.h>

struct stack {
	__u64 *addresses; /* malloc()ed */
	__u64 generation; /* of the reader when the chain was read */
	unsigned int n;
};

/* The samples of a block; `next` is the next one to return. */
struct samples {
	struct recording_columns *columns;
	unsigned int next;
	__u64 offset;
	unsigned int pmu; /* their event; trace_info.n_pmus: unknown */
};

struct reader {
	struct trace trace; /* must be first */
	struct recording_blocks blocks;
	struct trace_pmu pmu[TRACE_EVENTS];
	struct trace_topology topology;
	struct memory_range memory[MEMORY_RANGES];
	bool ended;	 /* the writer ended cleanly */
	__u64 unwritten; /* blocks that it could not write */
	struct ibs_cpu cpu;

	struct samples op, fetch;
	struct recording_ahead *ahead; /* NULL: none; see AHEAD_BYTES */
	bool tried_ahead;
	bool may_pair; /* the last block was ibs_op: the next may have fetches of the same time */

	/* events of a block, to be merged with samples by time */
	unsigned char *events;		 /* malloc()ed */
	size_t events_bytes, next_event; /* offset after `event` */
	bool has_event;
	struct trace_event event;
	__u64 alloc_stack[TRACE_STACK_MAX]; /* of the event that was returned last */
	__u64 events_offset;

	struct stack *stacks; /* by key */
	size_t n_stacks;
	__u64 replaced;	  /* replacements seen so far */
	__u64 generation; /* chains of earlier generations are invalid */
	__u64 stack[2 * (TRACE_STACK_MAX + 2)];
	__u64 top[IBS_STACK_TOP];
	struct recording_copies copies;
};

static bool recording_magic(const unsigned char *bytes, size_t n)
{
	static const __u32 block = RECORDING_BLOCK_MAGIC;
	const size_t magic = sizeof(RECORDING_FILE_MAGIC) - 1;

	if (n >= 4 && !memcmp(bytes, RECORDING_FILE_MAGIC, n < magic ? n : magic))
		return true;
	/* the head of the file may be damaged */
	return n >= sizeof(struct recording_file_head) + sizeof(block) &&
	       !memcmp(bytes + sizeof(struct recording_file_head), &block, sizeof(block));
}

static void free_stacks(struct reader *r)
{
	for (size_t i = 0; i < r->n_stacks; i++)
		free(r->stacks[i].addresses);
	free(r->stacks);
	r->stacks = NULL;
	r->n_stacks = 0;
}

static void recording_close_reader(struct trace *t)
{
	struct reader *r = (struct reader *)t;

	recording_ahead_free(r->ahead);
	recording_blocks_close(&r->blocks);
	free_stacks(r);
	recording_copies_free(&r->copies);
	free(r->op.columns);
	free(r->fetch.columns);
	free(r->events);
	close(r->blocks.fd);
	free(r);
}

/* These return NULL, or what is wrong with a block that has a correct checksum. */
static const char *take_meta(struct reader *r, const unsigned char *data, size_t bytes)
{
	const char *wrong;

	if (bytes > RECORDING_JSON_MAX)
		return "the description of the recording is too long";
	wrong = recording_meta_decode((const char *)data, bytes, &r->trace.info, r->pmu,
				      &r->topology, r->memory);
	if (wrong)
		return wrong;
	r->cpu = (struct ibs_cpu){ .caps = r->trace.info.cpu.caps,
				   .quirks = r->trace.info.cpu.quirks };
	/* before version 1.4 all samples are of ibs_op, whatever the name of the event */
	r->op.pmu = trace_event_of(&r->trace.info, true) % r->trace.info.n_pmus;
	r->fetch.pmu = trace_event_of(&r->trace.info, false);
	return NULL;
}

/* Blocks are useless without a description; it is repeated, so look for the next one. */
static int find_meta(struct reader *r, struct err *err)
{
	const struct recording_damage *d = &r->blocks.damage;
	const unsigned char *data;
	struct recording_block h;
	const char *wrong;
	__u64 offset;
	int ret;

	while ((ret = recording_blocks_peek(&r->blocks, &h, &offset, err)) > 0) {
		ret = recording_blocks_take(&r->blocks, &data, err);
		if (ret < 0)
			return ret;
		if (!ret || h.type != RECORDING_META)
			continue;
		wrong = take_meta(r, data, h.raw_bytes);
		if (!wrong) {
			recording_blocks_rewind(&r->blocks);
			return 0;
		}
		recording_blocks_reject(&r->blocks, wrong);
	}
	if (ret < 0)
		return ret;
	if (!*d->reason)
		return err_set(err, -EINVAL,
			       "it ends at offset %llu, before the description of the recording",
			       r->blocks.size);
	return err_set(err, -EINVAL,
		       "offset %llu: %s; without an intact description of the recording, nothing "
		       "can be read",
		       d->offset, d->reason);
}

static int recording_open_reader(int fd, __u64 offset, __u64 bytes, struct trace **out,
				 struct err *err)
{
	struct reader *r = xcalloc(1, sizeof(*r));
	int ret = recording_blocks_open(fd, offset, bytes, &r->blocks, err);

	r->op.columns = xcalloc(1, sizeof(*r->op.columns));
	r->fetch.columns = xcalloc(1, sizeof(*r->fetch.columns));
	ret = ret ?: find_meta(r, err);
	r->trace.total = r->blocks.size;
	if (ret)
		recording_close_reader(&r->trace);
	else
		*out = &r->trace;
	return ret;
}

/* Advance to the next event of the block, all of which were checked. */
static void advance_event(struct reader *r)
{
	size_t bytes;

	do {
		r->has_event = false;
		while (r->trace.skips_allocs && r->next_event < r->events_bytes &&
		       (bytes = recording_event_skips_alloc(r->events + r->next_event)))
			r->next_event += bytes;
		if (r->next_event >= r->events_bytes)
			return;
		r->has_event = recording_event_decode(r->events + r->next_event,
						      r->events_bytes - r->next_event, &r->event,
						      &bytes) > 0;
		r->next_event += bytes;
	} while (!r->has_event);
	r->event.offset = r->events_offset;
}

static const char *take_events(struct reader *r, const unsigned char *data, size_t bytes)
{
	if (!bytes || !recording_events_ok(data, bytes))
		return "the block holds no events";
	r->events = xrealloc(r->events, bytes);
	memcpy(r->events, data, bytes);
	r->events_bytes = bytes;
	r->next_event = 0;
	advance_event(r);
	return NULL;
}

/* After a lost replacement, older chains may be wrong. */
static void count_replaced(struct reader *r, __u64 replaced, __u64 expected)
{
	r->generation += replaced != expected;
	r->replaced = replaced;
}

static void take_stack(struct reader *r, const struct recording_stack *s, const void *addresses)
{
	struct stack *to;

	array_reserve_zero(r->stacks, r->n_stacks, (size_t)s->key + 1);
	to = &r->stacks[s->key];
	count_replaced(r, s->replaced, r->replaced + !!(s->flags & RECORDING_REPLACES));
	free(to->addresses);
	*to = (struct stack){ xmemdup(addresses, s->n * sizeof(__u64)), r->generation, s->n };
}

static const char *take_stacks(struct reader *r, const unsigned char *data, size_t bytes)
{
	struct recording_stack s;

	while (bytes) {
		if (bytes < sizeof(s))
			return "the block ends inside a call chain";
		memcpy(&s, data, sizeof(s));
		data += sizeof(s);
		bytes -= sizeof(s);
		if (s.key < 0 || s.key >= RECORDING_STACK_KEYS || s.n > TRACE_STACK_MAX ||
		    s.n * sizeof(__u64) > bytes)
			return "the block holds no call chains";
		take_stack(r, &s, data);
		data += s.n * sizeof(__u64);
		bytes -= s.n * sizeof(__u64);
	}
	return NULL;
}

/* @wrong: why the columns cannot be used, or NULL */
static const char *take_columns(struct reader *r, struct samples *s, const char *wrong,
				__u64 offset)
{
	const __u32 raw = 1u << RECORDING_COLUMN_RAW_BYTES | 1u << RECORDING_COLUMN_RAW_CAPS;
	const struct trace_info *info = &r->trace.info;

	if (!wrong && (s->columns->present & raw) && (s->columns->present & raw) != raw)
		wrong = "it lacks a column";
	if (!wrong && (s->pmu == info->n_pmus ||
		       (s->columns->present & 1u << RECORDING_COLUMN_STRATUM &&
			!recording_columns_strata_ok(s->columns, info, info->pmu[s->pmu].op))))
		wrong = "the description of the recording has no event of these samples";
	s->next = 0;
	s->offset = offset;
	if (wrong)
		s->columns->n = 0;
	else if (s->columns->present & 1u << RECORDING_COLUMN_REPLACED)
		count_replaced(r, s->columns->v[RECORDING_COLUMN_REPLACED][0], r->replaced);
	return wrong;
}

/* A smaller recording is read before another thread would have begun. */
#define AHEAD_BYTES (1u << 20)

static bool has_samples(const struct recording_block *h)
{
	return h->type == RECORDING_SAMPLES || h->type == RECORDING_FETCHES;
}

static struct samples *samples_of(struct reader *r, const struct recording_block *h)
{
	return h->type == RECORDING_SAMPLES ? &r->op : &r->fetch;
}

static __u64 data_at(const struct reader *r, __u64 offset)
{
	return r->blocks.base + offset + sizeof(struct recording_block);
}

/* Have the block after this one decoded. */
static void begin_ahead(struct reader *r)
{
	struct recording_block h;
	__u64 offset;

	if (!r->tried_ahead && r->trace.total >= AHEAD_BYTES)
		r->ahead = recording_ahead_new(r->blocks.fd);
	r->tried_ahead = true;
	if (r->ahead && recording_blocks_next(&r->blocks, &h, &offset) && has_samples(&h))
		recording_ahead_begin(r->ahead, data_at(r, offset), &h);
}

static const char *take_ledger(struct reader *r, const unsigned char *data, size_t bytes, bool end)
{
	int has = -EINVAL;

	if (bytes <= RECORDING_JSON_MAX)
		has = recording_ledger_decode((const char *)data, bytes, &r->trace.end,
					      &r->unwritten);
	if (has < 0)
		return "the block holds no ledger";
	r->trace.end.has_ledger |= has;
	r->ended |= end;
	return NULL;
}

static const char *take_data(struct reader *r, const struct recording_block *h,
			     const unsigned char *data, __u64 offset)
{
	struct samples *s = samples_of(r, h);

	switch (h->type) {
	case RECORDING_SAMPLES:
	case RECORDING_FETCHES:
		return take_columns(
			r, s, recording_columns_decode(s->columns, h->entries, data, h->raw_bytes),
			offset);
	case RECORDING_EVENTS:
		r->events_offset = offset;
		return take_events(r, data, h->raw_bytes);
	case RECORDING_STACKS:
		return take_stacks(r, data, h->raw_bytes);
	case RECORDING_COPIES:
		return recording_copies_take(&r->copies, data, h->raw_bytes)
			       ? NULL
			       : "the block holds no copies of stacks";
	case RECORDING_LEDGER:
	case RECORDING_END:
		return take_ledger(r, data, h->raw_bytes, h->type == RECORDING_END);
	default:
		return NULL;
	}
}

/* Return: a negative errno with @err if it cannot be read. */
static int take_block(struct reader *r, const struct recording_block *h, __u64 offset,
		      struct err *err)
{
	const bool skips =
		(has_samples(h) || h->type == RECORDING_COPIES) && r->trace.skips_samples;
	struct samples *s = samples_of(r, h);
	/* by another thread */
	const bool decoded = !skips && r->ahead && has_samples(h) &&
			     recording_ahead_take(r->ahead, data_at(r, offset), h, &s->columns);
	const unsigned char *data;
	const char *wrong;
	int ret;

	if (decoded)
		ret = recording_blocks_pass(&r->blocks, err);
	else
		ret = recording_blocks_take(&r->blocks, skips ? NULL : &data, err);
	if (skips || (decoded ? ret : ret <= 0))
		return ret;
	r->may_pair = h->type == RECORDING_SAMPLES;
	wrong = decoded ? take_columns(r, s, NULL, offset) : take_data(r, h, data, offset);
	if (wrong)
		recording_blocks_reject(&r->blocks, wrong);
	return ret;
}

/* A column's value, 0 if the column is missing. */
static __u64 value(const struct recording_columns *c, unsigned int column, unsigned int i)
{
	return c->present & 1u << column ? c->v[column][i] : 0;
}
#define VALUE(c, NAME, i) value(c, RECORDING_COLUMN_##NAME, i)

static void emit_record(const struct reader *r, const struct samples *s, unsigned int i,
			struct trace_event *ev)
{
	const struct recording_columns *c = s->columns;
	const bool fetch = s == &r->fetch;
	struct ibs_record rec = {
		.time = VALUE(c, TIME, i),
		.cgroup_id = VALUE(c, CGROUP, i),
		.tgid = VALUE(c, TGID, i),
		.tid = VALUE(c, TID, i),
		.ip = VALUE(c, REG1, i),
	};
	__u64 data = fetch ? 0 : VALUE(c, REG2, i), data2 = fetch ? 0 : VALUE(c, REG3, i);

	rec.data3 = fetch ? VALUE(c, REG0, i) : VALUE(c, REG4, i);
	rec.addr = fetch ? VALUE(c, REG3, i) : VALUE(c, REG5, i);
	rec.phys = fetch ? VALUE(c, REG2, i) : VALUE(c, REG6, i);
	rec.packed =
		ibs_record_pack(data, data2, VALUE(c, CPU, i)) | (fetch ? IBS_RECORD_FETCH : 0);
	recording_sample(&rec, r->cpu, ev);
	*(fetch ? &ev->sample.fetch.present : &ev->sample.op.present) &=
		c->present >> RECORDING_COLUMN_REG0;
	ev->sample.has_ip &= !!(c->present & 1u << RECORDING_COLUMN_REG1);
}

static void emit_raw(const struct reader *r, const struct samples *s, unsigned int i,
		     struct trace_event *ev)
{
	const struct recording_columns *c = s->columns;
	struct ibs_record_raw rec = {
		.time = VALUE(c, TIME, i),
		.cgroup_id = VALUE(c, CGROUP, i),
		.tgid = VALUE(c, TGID, i),
		.tid = VALUE(c, TID, i),
		.cpu = VALUE(c, CPU, i),
		.bytes = VALUE(c, RAW_BYTES, i),
		.caps = VALUE(c, RAW_CAPS, i),
		.fetch = s == &r->fetch,
	};

	for (unsigned int k = 0; k < IBS_OP_REG_N; k++)
		rec.regs[k] = value(c, RECORDING_COLUMN_REG0 + k, i);
	/* an incomplete record counts as a sample without registers */
	recording_sample_raw(&rec, r->cpu.quirks, ev);
}

static void add_stack(struct reader *r, const struct recording_columns *c, unsigned int column,
		      __u64 mark, unsigned int i, struct trace_sample *s)
{
	const bool has_op = column == RECORDING_COLUMN_CALLERS;
	__s32 key = c->present & 1u << column ? (__s32)c->v[column][i] : -1;
	const struct stack *from;

	/* no room in the map, or another chain in its place */
	s->chain_lost |= key == -EEXIST || key == -ENOMEM;
	if (has_op && key == -EFAULT) { /* the walk found no caller */
		r->stack[s->n_stack++] = mark;
		r->stack[s->n_stack++] = s->ip;
		s->stack = r->stack;
	}
	if (key < 0 || (size_t)key >= r->n_stacks)
		return;
	from = &r->stacks[key];
	if (!from->n || from->generation != r->generation)
		return;
	r->stack[s->n_stack++] = mark;
	if (has_op)
		r->stack[s->n_stack++] = s->ip;
	memcpy(r->stack + s->n_stack, from->addresses, from->n * sizeof(*r->stack));
	s->n_stack += from->n;
	s->stack = r->stack;
}

/* A chain of user space alone belongs to the kernel's function that its task was in. */
static void add_stacks(struct reader *r, const struct recording_columns *c, unsigned int i,
		       struct trace_sample *s)
{
	add_stack(r, c, RECORDING_COLUMN_KERNEL_STACK, PERF_CONTEXT_KERNEL, i, s);
	if (!s->n_stack && s->kernel && (__s32)VALUE(c, USER_STACK, i) >= 0 &&
	    c->present & 1u << RECORDING_COLUMN_CALLERS) {
		r->stack[s->n_stack++] = PERF_CONTEXT_KERNEL;
		r->stack[s->n_stack++] = s->ip;
		s->stack = r->stack;
	}
	add_stack(r, c, RECORDING_COLUMN_USER_STACK, PERF_CONTEXT_USER, i, s);
	add_stack(r, c, RECORDING_COLUMN_CALLERS, PERF_CONTEXT_USER, i, s);
	if (!(c->present & 1u << RECORDING_COLUMN_TOP0))
		return;
	for (unsigned int k = 0; k < IBS_STACK_TOP; k++)
		r->top[k] = value(c, RECORDING_COLUMN_TOP0 + k, i);
	s->top = r->top;
}

static void emit_sample(struct reader *r, struct samples *s, struct trace_event *ev)
{
	const __u32 task = 1u << RECORDING_COLUMN_TGID | 1u << RECORDING_COLUMN_TID;
	const struct recording_columns *c = s->columns;
	const __u32 present = c->present;
	unsigned int i = s->next++;

	if (present & 1u << RECORDING_COLUMN_RAW_BYTES)
		emit_raw(r, s, i, ev);
	else
		emit_record(r, s, i, ev);
	ev->offset = s->offset;
	ev->sample.pmu = present & 1u << RECORDING_COLUMN_STRATUM
				 ? c->v[RECORDING_COLUMN_STRATUM][i]
				 : s->pmu;
	ev->sample.has_time = present & 1u << RECORDING_COLUMN_TIME;
	ev->sample.has_task = (present & task) == task;
	ev->sample.has_cpu = present & 1u << RECORDING_COLUMN_CPU;
	ev->sample.slab =
		present & 1u << RECORDING_COLUMN_SLAB ? c->v[RECORDING_COLUMN_SLAB][i] : 0;
	add_stacks(r, c, i, &ev->sample);
	ev->sample.copy = recording_copies_find(&r->copies, VALUE(c, COPY, i), ev);
}

/* The string in *ev lives until the block is replaced, after all its events were returned. */
static int emit_event(struct reader *r, struct trace_event *ev)
{
	*ev = r->event;
	if (ev->kind == TRACE_ALLOC) {
		memcpy(r->alloc_stack, (const void *)ev->alloc.stack,
		       ev->alloc.n_stack * sizeof(*r->alloc_stack));
		ev->alloc.stack = r->alloc_stack;
	}
	advance_event(r);
	return 1;
}

static __u64 next_time(const struct samples *s)
{
	return VALUE(s->columns, TIME, s->next);
}

/* Or of an unknown one: without the columns both are 0. */
static bool is_of_first_thread(const struct samples *s)
{
	return VALUE(s->columns, TID, s->next) == VALUE(s->columns, TGID, s->next);
}

/* The block with the earliest next sample; NULL if there are none. */
static struct samples *earliest(struct reader *r)
{
	const bool op = r->op.next < r->op.columns->n, fetch = r->fetch.next < r->fetch.columns->n;

	if (op && fetch)
		return next_time(&r->fetch) < next_time(&r->op) ? &r->fetch : &r->op;
	return op ? &r->op : fetch ? &r->fetch : NULL;
}

static int recording_next(struct trace *t, struct trace_event *ev, struct err *err)
{
	struct reader *r = (struct reader *)t;
	struct recording_block h;
	struct samples *s;
	__u64 offset;
	int ret;

	for (;;) {
		s = earliest(r);
		if (s && !r->may_pair && r->has_event && r->event.time <= next_time(s))
			return emit_event(r, ev);
		if (s && !r->may_pair && t->skips_first_threads && is_of_first_thread(s)) {
			s->next++;
			continue;
		}
		if (s && !r->may_pair) {
			emit_sample(r, s, ev);
			return 1;
		}
		ret = recording_blocks_peek(&r->blocks, &h, &offset, err);
		t->done = r->blocks.at < t->total ? r->blocks.at : t->total;
		if (ret < 0)
			return ret;
		if (r->may_pair && (!ret || h.type != RECORDING_FETCHES)) {
			r->may_pair = false;
			continue;
		}
		/* remaining events are later than the samples after them */
		if (r->has_event && (!ret || h.type == RECORDING_EVENTS))
			return emit_event(r, ev);
		if (!ret) {
			recording_blocks_describe_end(&r->blocks, r->ended, r->unwritten, &t->end);
			return 0;
		}
		ret = take_block(r, &h, offset, err);
		if (ret < 0)
			return ret;
		if (!t->skips_samples)
			begin_ahead(r);
	}
}

/* Records with all registers have these columns, too. */
static bool recording_ahead_hint(const struct trace *t, unsigned int n, struct trace_hint *out)
{
	const struct reader *r = (const struct reader *)t;
	const struct samples *s = r->op.next < r->op.columns->n ? &r->op : &r->fetch;
	const unsigned int i = s->next + n;

	if (i >= s->columns->n)
		return false;
	*out = (struct trace_hint){ .ip = VALUE(s->columns, REG1, i),
				    .tgid = VALUE(s->columns, TGID, i),
				    .tid = VALUE(s->columns, TID, i) };
	return true;
}

static void recording_rewind(struct trace *t)
{
	struct reader *r = (struct reader *)t;

	recording_blocks_rewind(&r->blocks);
	free_stacks(r);
	recording_copies_free(&r->copies);
	t->end = (struct trace_end){};
	r->ended = r->has_event = false;
	r->unwritten = r->replaced = 0;
	r->may_pair = false;
	r->op.columns->n = r->op.next = r->fetch.columns->n = r->fetch.next = 0;
	r->events_bytes = r->next_event = 0;
}

const struct trace_format recording_format = {
	.magic = recording_magic,
	.open = recording_open_reader,
	.next = recording_next,
	.ahead = recording_ahead_hint,
	.rewind = recording_rewind,
	.close = recording_close_reader,
};
