// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recording.h"

#include "recording_columns.h"
#include "recording_events.h"
#include "recording_meta.h"
#include "base/clock.h"

#include <limits.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

/*
 * Higher levels cost more than they save: level 3 makes the file 5 % smaller at 1.7 times the CPU cost,
 * level 9 8 % at 7 times.
 */
#define ZSTD_LEVEL 1

/* Repeat the description after this many bytes, so that a damaged first one does not cost the file. */
#define META_EVERY (4u << 20)

/* A buffer of events or stacks for the next block. */
struct pile {
	unsigned char data[RECORDING_BLOCK_MAX];
	size_t bytes;
	__u32 entries;
};

struct recording {
	int fd;
	bool failed;
	__u32 file;
	__u64 seq, bytes, meta_due, unwritten, lost_allocs;
	char *meta;
	ZSTD_CCtx *zstd;
	__u64 sample_bytes, samples;	     /* written, for an estimate */
	__u64 replaced;			     /* stacks */
	unsigned int events_n;		     /* that have a ledger */
	struct recording_columns columns[2]; /* of ibs_op, of ibs_fetch */
	struct pile events, stacks, copies;
	const char *next_copy; /* of the records to be appended; NULL: they have none */
	size_t copy_stride;
	const __u8 *next_stratum; /* likewise */
	__u8 stack_known[RECORDING_STACK_KEYS / 8];
	unsigned char body[RECORDING_BLOCK_MAX], packed[RECORDING_BLOCK_MAX];
};

static int write_parts(struct recording *r, struct iovec *v, int n)
{
	struct pollfd ready = { .fd = r->fd, .events = POLLOUT };
	ssize_t done;

	while (n) {
		done = writev(r->fd, v, n);
		if (done == -1) {
			if (errno == EAGAIN)
				poll(&ready, 1, -1);
			else if (errno != EINTR)
				return -errno;
			continue;
		}
		r->bytes += done;
		while (n && (size_t)done >= v->iov_len) {
			done -= v->iov_len;
			v++;
			n--;
		}
		if (n) {
			v->iov_base = (char *)v->iov_base + done;
			v->iov_len -= done;
		}
	}
	return 0;
}

static int write_block(struct recording *r, __u16 type, const void *data, size_t bytes,
		       __u32 entries, struct err *err)
{
	struct recording_block h = { .magic = RECORDING_BLOCK_MAGIC,
				     .file = r->file,
				     .seq = r->seq++,
				     .type = type,
				     .bytes = bytes,
				     .raw_bytes = bytes,
				     .entries = entries };
	struct iovec parts[2] = { { &h, sizeof(h) }, { (void *)data, bytes } };
	size_t n;
	int ret;

	if (r->zstd) {
		/* less room than @bytes: data that does not become smaller fails, and stays uncompressed */
		n = ZSTD_compressCCtx(r->zstd, r->packed, bytes - 1, data, bytes, ZSTD_LEVEL);
		if (!ZSTD_isError(n)) {
			h.flags = RECORDING_ZSTD;
			h.bytes = parts[1].iov_len = n;
			parts[1].iov_base = r->packed;
		}
	}
	h.data_crc = recording_crc(parts[1].iov_base, parts[1].iov_len);
	h.head_crc = recording_crc(&h, offsetof(struct recording_block, head_crc));
	ret = write_parts(r, parts, 2);
	if (!ret) {
		if (type == RECORDING_SAMPLES || type == RECORDING_FETCHES) {
			r->samples += entries;
			r->sample_bytes += sizeof(h) + h.bytes;
		}
		return 0;
	}
	r->failed = true;
	r->unwritten++;
	return err_set(err, ret, "cannot write the recording, %llu bytes in: %s", r->bytes,
		       strerror(-ret));
}

static int write_meta(struct recording *r, struct err *err)
{
	r->meta_due = r->bytes + META_EVERY;
	return write_block(r, RECORDING_META, r->meta, strlen(r->meta), 0, err);
}

static int write_pile(struct recording *r, __u16 type, struct pile *p, struct err *err)
{
	int ret = p->entries ? write_block(r, type, p->data, p->bytes, p->entries, err) : 0;

	p->bytes = p->entries = 0;
	return ret;
}

/* Readers rely on this order: samples come after their stacks and earlier events. */
static int write_buffered(struct recording *r, struct err *err)
{
	int ret;

	ret = write_pile(r, RECORDING_COPIES, &r->copies, err);
	if (!ret)
		ret = write_pile(r, RECORDING_STACKS, &r->stacks, err);
	if (!ret)
		ret = write_pile(r, RECORDING_EVENTS, &r->events, err);
	for (int fetch = 0; fetch < 2; fetch++) {
		struct recording_columns *c = &r->columns[fetch];

		if (!ret && c->n)
			ret = write_block(r, fetch ? RECORDING_FETCHES : RECORDING_SAMPLES, r->body,
					  recording_columns_encode(c, r->body), c->n, err);
		c->n = 0;
	}
	if (!ret && r->bytes >= r->meta_due)
		ret = write_meta(r, err);
	return ret;
}

static int refused(struct err *err)
{
	return err_set(err, -EIO, "writing the recording failed before");
}

static unsigned int major_of(const struct trace_info *info)
{
	return trace_has_strata(info)	   ? RECORDING_MAJOR_STRATA
	       : trace_copies_stacks(info) ? RECORDING_MAJOR_COPIES
					   : RECORDING_MAJOR;
}

int recording_create(const struct recording_opts *opts, struct recording **out, struct err *err)
{
	struct recording_file_head head = { .magic = RECORDING_FILE_MAGIC,
					    .byte_order = RECORDING_BYTE_ORDER,
					    .major = major_of(opts->info),
					    .minor = RECORDING_MINOR,
					    .block_head_bytes = sizeof(struct recording_block) };
	struct iovec part = { &head, sizeof(head) };
	struct recording *r = xcalloc(1, sizeof(*r));
	int ret;

	r->fd = opts->fd;
	if (getrandom(&r->file, sizeof(r->file), GRND_NONBLOCK) != sizeof(r->file))
		r->file = clock_ns(CLOCK_REALTIME) ^ getpid();
	r->meta = recording_meta_encode(opts->info);
	r->events_n = opts->info->n_pmus;
	if (opts->compress)
		r->zstd = ZSTD_createCCtx();
	if (opts->compress && !r->zstd)
		out_of_memory();
	head.file = r->file;
	head.crc = recording_crc(&head, offsetof(struct recording_file_head, crc));
	ret = write_parts(r, &part, 1);
	if (ret)
		err_set(err, ret, "cannot write the recording: %s", strerror(-ret));
	else
		ret = write_meta(r, err);
	if (ret)
		recording_close(r);
	else
		*out = r;
	return ret;
}

/*
 * Add the next rows from @row on, at most *@n. A batch has one set of columns, so it ends at a row that
 * needs another set.
 */
static int next_rows(struct recording *r, struct recording_columns *c, __u32 columns,
		     unsigned int *row, unsigned int *n, struct err *err)
{
	int ret = 0;

	if (c->n && (c->n == RECORDING_WRITTEN || c->present != columns))
		ret = write_buffered(r, err);
	c->present = columns;
	*row = c->n;
	if (*n > RECORDING_WRITTEN - *row)
		*n = RECORDING_WRITTEN - *row;
	if (!ret)
		c->n += *n;
	return ret;
}

#define COLUMN(NAME)	       (1u << RECORDING_COLUMN_##NAME)
#define SET(c, NAME, i, value) ((c)->v[RECORDING_COLUMN_##NAME][i] = (value))

#define COMMON_COLUMNS (COLUMN(TIME) | COLUMN(CGROUP) | COLUMN(TGID) | COLUMN(TID) | COLUMN(CPU))
#define RECORD_COLUMNS                                                                \
	(COMMON_COLUMNS | COLUMN(REG1) | COLUMN(REG2) | COLUMN(REG3) | COLUMN(REG4) | \
	 COLUMN(REG5) | COLUMN(REG6))
#define REG_COLUMNS(n) (((1u << (n)) - 1) << RECORDING_COLUMN_REG0)
#define FETCH_COLUMNS  (COMMON_COLUMNS | REG_COLUMNS(IBS_FETCH_REG_N))
#define RAW_COLUMNS    (COMMON_COLUMNS | COLUMN(RAW_BYTES) | COLUMN(RAW_CAPS))
#define EXTRA_COLUMNS                                                                  \
	(COLUMN(KERNEL_STACK) | COLUMN(USER_STACK) | COLUMN(REPLACED) | COLUMN(SLAB) | \
	 COLUMN(CALLERS) | COLUMN(TOP0) | COLUMN(TOP1) | COLUMN(TOP2) | COLUMN(TOP3))

static void set_row(struct recording_columns *c, unsigned int i, const struct ibs_record *r)
{
	SET(c, TIME, i, r->time);
	SET(c, CGROUP, i, r->cgroup_id);
	SET(c, TGID, i, r->tgid);
	SET(c, TID, i, r->tid);
	SET(c, CPU, i, ibs_record_cpu(r));
	if (ibs_record_is_fetch(r)) {
		__u64 regs[IBS_FETCH_REG_N];

		ibs_record_fetch_regs(r, regs);
		for (unsigned int k = 0; k < IBS_FETCH_REG_N; k++)
			c->v[RECORDING_COLUMN_REG0 + k][i] = regs[k];
		return;
	}
	SET(c, REG1, i, r->ip);
	SET(c, REG2, i, ibs_record_data(r));
	SET(c, REG3, i, ibs_record_data2(r));
	SET(c, REG4, i, r->data3);
	SET(c, REG5, i, r->addr);
	SET(c, REG6, i, r->phys);
}

static void set_raw_row(struct recording_columns *c, unsigned int i, const struct ibs_record_raw *r)
{
	SET(c, TIME, i, r->time);
	SET(c, CGROUP, i, r->cgroup_id);
	SET(c, TGID, i, r->tgid);
	SET(c, TID, i, r->tid);
	SET(c, CPU, i, r->cpu);
	SET(c, RAW_BYTES, i, r->bytes);
	SET(c, RAW_CAPS, i, r->caps);
	for (unsigned int k = 0; k < IBS_OP_REG_N; k++)
		c->v[RECORDING_COLUMN_REG0 + k][i] = r->regs[k];
}

static bool is_fetch(const struct ibs_record *records, const struct ibs_record_raw *raw, size_t i)
{
	return raw ? raw[i].fetch : records && ibs_record_is_fetch(&records[i]);
}

static __u32 columns_of(bool fetch, bool raw, bool extra)
{
	__u32 columns = fetch ? FETCH_COLUMNS : RECORD_COLUMNS;

	if (raw)
		columns = RAW_COLUMNS | REG_COLUMNS(fetch ? (int)IBS_FETCH_REG_N : IBS_OP_REG_N);
	return columns | (extra ? EXTRA_COLUMNS : 0);
}

/* Room for @bytes, which is less than a block. */
static int make_room(struct recording *r, struct pile *p, size_t bytes, struct err *err)
{
	return p->bytes + bytes > sizeof(p->data) ? write_buffered(r, err) : 0;
}

static void pile_up(struct pile *p, const void *data, size_t bytes)
{
	if (bytes)
		memcpy(p->data + p->bytes, data, bytes);
	p->bytes += bytes;
}

void recording_copies(struct recording *r, const char *copies, size_t stride)
{
	r->next_copy = copies;
	r->copy_stride = stride;
}

void recording_strata(struct recording *r, const __u8 *strata)
{
	r->next_stratum = strata;
}

/* Write samples whose copies fill a block: those to come belong to the next one. */
static int make_room_for_copy(struct recording *r, struct err *err)
{
	return r->next_copy
		       ? make_room(r, &r->copies, sizeof(struct recording_copy) + IBS_COPY_MAX, err)
		       : 0;
}

/* Keep the copy of the record in a row. */
static void take_copy(struct recording *r, struct recording_columns *c, unsigned int row)
{
	const struct ibs_user_copy *from = (const void *)r->next_copy;
	struct recording_copy head = { .time = c->v[RECORDING_COLUMN_TIME][row],
				       .tid = c->v[RECORDING_COLUMN_TID][row],
				       .bytes = from->bytes,
				       .flags = from->flags & IBS_COPY_CUT ? RECORDING_CUT : 0 };

	r->next_copy += r->copy_stride;
	c->v[RECORDING_COLUMN_COPY][row] = 0;
	if (!(from->flags & IBS_COPY_REGS) || from->bytes > IBS_COPY_MAX)
		return;
	memcpy(head.regs, from->regs, sizeof(head.regs));
	pile_up(&r->copies, &head, sizeof(head));
	pile_up(&r->copies, from + 1, from->bytes);
	c->v[RECORDING_COLUMN_COPY][row] = ++r->copies.entries;
}

/* One of @records and @raw. */
static int add_samples(struct recording *r, const struct ibs_record *records,
		       const struct ibs_record_raw *raw, const struct ibs_record_extra *extra,
		       size_t n, struct err *err)
{
	unsigned int row, rows, i;
	int ret;

	if (r->failed)
		return refused(err);
	for (; n; n -= rows) {
		const bool fetch = is_fetch(records, raw, 0);
		const __u32 columns = columns_of(fetch, raw, extra) |
				      (r->next_copy ? COLUMN(COPY) : 0) |
				      (r->next_stratum ? COLUMN(STRATUM) : 0);
		struct recording_columns *c = &r->columns[fetch];

		for (rows = 1; rows < n && rows < RECORDING_WRITTEN && !r->next_copy; rows++)
			if (is_fetch(records, raw, rows) != fetch)
				break;
		ret = make_room_for_copy(r, err);
		ret = ret ?: next_rows(r, c, columns, &row, &rows, err);
		if (ret)
			return ret;
		for (i = row; raw && i < row + rows; i++)
			set_raw_row(c, i, raw++);
		for (i = row; records && i < row + rows; i++)
			set_row(c, i, records++);
		if (r->next_copy)
			take_copy(r, c, row);
		for (i = row; r->next_stratum && i < row + rows; i++)
			SET(c, STRATUM, i, *r->next_stratum++);
		for (i = row; extra && i < row + rows; i++, extra++) {
			SET(c, KERNEL_STACK, i, (__u32)extra->kernel);
			SET(c, USER_STACK, i, (__u32)extra->user);
			SET(c, REPLACED, i, r->replaced);
			SET(c, SLAB, i, extra->slab);
			SET(c, CALLERS, i, (__u32)extra->callers);
			for (unsigned int k = 0; k < IBS_STACK_TOP; k++)
				c->v[RECORDING_COLUMN_TOP0 + k][i] = extra->top[k];
		}
	}
	r->next_copy = NULL;
	r->next_stratum = NULL;
	return 0;
}

int recording_samples(struct recording *r, const struct ibs_record *records,
		      const struct ibs_record_extra *extra, size_t n, struct err *err)
{
	return add_samples(r, records, NULL, extra, n, err);
}

int recording_samples_raw(struct recording *r, const struct ibs_record_raw *records,
			  const struct ibs_record_extra *extra, size_t n, struct err *err)
{
	return add_samples(r, NULL, records, extra, n, err);
}

int recording_event(struct recording *r, const struct trace_event *ev, struct err *err)
{
	const char *strings[RECORDING_STRINGS];
	size_t fixed, len[RECORDING_STRINGS], bytes, stack;
	struct recording_event e;
	unsigned int n;
	int ret;

	if (r->failed)
		return refused(err);
	fixed = bytes = recording_event_encode(ev, &e, strings, &n);
	if (!fixed)
		return err_set(err, -EINVAL, "an event of kind %d cannot be recorded", ev->kind);
	stack = ev->kind == TRACE_ALLOC ? e.alloc.n_stack * sizeof(__u64) : 0;
	bytes += stack;
	for (unsigned int i = 0; i < n; i++) {
		len[i] = strnlen(strings[i], RECORDING_STRING_MAX - 1);
		bytes += len[i] + 1;
	}
	ret = make_room(r, &r->events, bytes, err);
	if (ret)
		return ret;
	e.bytes = bytes;
	pile_up(&r->events, &e, fixed);
	if (stack)
		pile_up(&r->events, ev->alloc.stack, stack);
	for (unsigned int i = 0; i < n; i++) {
		pile_up(&r->events, strings[i], len[i]);
		pile_up(&r->events, "", 1);
	}
	r->events.entries++;
	return 0;
}

void recording_lost_allocs(struct recording *r, __u64 n)
{
	r->lost_allocs = n;
}

int recording_stack(struct recording *r, __s32 key, const __u64 *addresses, size_t n,
		    struct err *err)
{
	struct recording_stack s = { .key = key, .n = n };
	bool known;
	int ret = 0;

	if (r->failed)
		return refused(err);
	if (key < 0 || key >= RECORDING_STACK_KEYS || n > TRACE_STACK_MAX)
		return err_set(err, -EINVAL,
			       "call chain %d of %zu addresses: keys go from 0 to %d, and a chain "
			       "has at most %d addresses",
			       key, n, RECORDING_STACK_KEYS - 1, TRACE_STACK_MAX);
	/* buffered samples may refer to the chain that this one replaces */
	known = r->stack_known[key / 8] & 1 << key % 8;
	if (known && (r->columns[0].n || r->columns[1].n))
		ret = write_buffered(r, err);
	if (!ret)
		ret = make_room(r, &r->stacks, sizeof(s) + n * sizeof(*addresses), err);
	if (ret)
		return ret;
	r->stack_known[key / 8] |= 1 << key % 8;
	s.flags = known ? RECORDING_REPLACES : 0;
	s.replaced = r->replaced += known;
	pile_up(&r->stacks, &s, sizeof(s));
	pile_up(&r->stacks, addresses, n * sizeof(*addresses));
	r->stacks.entries++;
	return 0;
}

static int write_ledger(struct recording *r, __u16 type, const struct ledger *ledgers,
			struct err *err)
{
	char *text = recording_ledger_encode(ledgers, r->events_n, r->unwritten, r->lost_allocs);
	int ret;

	ret = write_block(r, type, text, strlen(text), 0, err);
	free(text);
	return ret;
}

int recording_flush(struct recording *r, const struct ledger *ledgers, struct err *err)
{
	int ret;

	if (r->failed)
		return refused(err);
	ret = write_buffered(r, err);
	if (!ret && ledgers)
		ret = write_ledger(r, RECORDING_LEDGER, ledgers, err);
	return ret;
}

__u64 recording_bytes(const struct recording *r)
{
	__u64 samples = r->columns[0].n + r->columns[1].n;

	samples *= r->samples ? r->sample_bytes / r->samples : sizeof(struct ibs_record);
	return r->bytes + r->events.bytes + r->stacks.bytes + r->copies.bytes + samples;
}

int recording_finish(struct recording *r, const struct ledger *ledgers, struct err *err)
{
	int ret = 0, end;

	/* try to write the end block even after a failure: it has the number of missing blocks */
	if (!r->failed)
		ret = write_buffered(r, err);
	if (!ret && !r->failed)
		ret = write_meta(r, err);
	end = write_ledger(r, RECORDING_END, ledgers, ret ? NULL : err);
	return ret ? ret : end;
}

void recording_close(struct recording *r)
{
	if (!r)
		return;
	ZSTD_freeCCtx(r->zstd);
	free(r->meta);
	free(r);
}
