// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "code_dump.h"
#include "code_dump_private.h"

#include "naming_wire.h"

#include <elf.h>
#include <unistd.h>

#define VERSION		1
#define HEADER_MAX	4096
#define ARCH_TIMESTAMPS 1 /* flag: times are those of the processor's counter */

struct header {
	__u32 magic, version, size, machine, pad, pid;
	__u64 time, flags;
};

enum { LOAD, MOVE, DEBUG_INFO, CLOSE };

struct record {
	__u32 kind, size;
	__u64 time;
};

struct load {
	struct record head;
	__u32 pid, tid;
	__u64 vma, addr, size, index;
};

struct move {
	struct record head;
	__u32 pid, tid;
	__u64 vma, old_addr, new_addr, size, index;
};

/* Of a record, what may be kept. */
union head {
	struct record record;
	struct load load;
	struct move move;
};

struct reader {
	struct code_dump *dump;
	struct u64_map name_of; /* by index of the code */
	char *why;
	size_t why_size;
	int fd;
	__u64 at; /* of `byte` in the file, which may change at any time */
	size_t n;
	unsigned char byte[1 << 16];
};

void code_dump_free(struct code_dump *d)
{
	if (!d)
		return;
	intern_free(&d->names);
	free(d->event);
	free(d->bound);
	free(d->first);
	free(d->piece);
	free(d);
}

/* Return: how many of @want bytes there are at an offset, at most what the buffer has. */
static size_t read_at(struct reader *r, __u64 at, size_t want, const unsigned char **out)
{
	ssize_t n;

	if (at < r->at || at + want > r->at + r->n) {
		r->at = at;
		r->n = 0;
		while (r->n < sizeof(r->byte) &&
		       (n = pread(r->fd, r->byte + r->n, sizeof(r->byte) - r->n, at + r->n)) > 0)
			r->n += n;
	}
	*out = r->byte + (at - r->at);
	return r->n - (at - r->at) < want ? r->n - (at - r->at) : want;
}

static bool add(struct reader *r, __u64 time, __u64 start, __u64 size, __u32 name)
{
	struct code_dump *d = r->dump;

	if (!size || start + size < start)
		return true;
	if (d->n == CODE_DUMP_EVENTS) {
		snprintf(r->why, r->why_size, "it has more than %d pieces of code",
			 CODE_DUMP_EVENTS);
		return false;
	}
	array_reserve(d->event, d->room, d->n + 1);
	d->event[d->n] = (struct code_event){ time, start, start + size, name, d->n };
	d->n++;
	return true;
}

/* Return: false if there are too many. */
static bool keep_name(struct reader *r, const char *text, size_t len, __u32 *out)
{
	struct code_dump *d = r->dump;
	char name[NAMING_TEXT_MAX];

	snprintf(name, sizeof(name), "%.*s", (int)len, text);
	*out = len ? intern_find(&d->names, name) : NO_CODE;
	if (!len || *out != INTERN_NONE)
		return true;
	d->name_bytes += len + 1;
	if (d->name_bytes > CODE_DUMP_NAMES) {
		snprintf(r->why, r->why_size, "its names have more than %u MiB",
			 CODE_DUMP_NAMES >> 20);
		return false;
	}
	*out = intern_get(&d->names, name);
	return true;
}

/* @text: of @bytes, in which the name ends or is cut */
static bool take_load(struct reader *r, const struct load *l, const char *text, size_t bytes)
{
	__u32 name;

	if (!keep_name(r, text, strnlen(text, bytes), &name))
		return false;
	u64_map_put(&r->name_of, l->index, name);
	return add(r, l->head.time, l->addr, l->size, name);
}

static bool take_move(struct reader *r, const struct move *m)
{
	__u32 name = u64_map_get(&r->name_of, m->index);

	return add(r, m->head.time, m->old_addr, m->size, NO_CODE) &&
	       add(r, m->head.time, m->new_addr, m->size, name);
}

/* @n: bytes of the record that there are */
static bool take(struct reader *r, const unsigned char *bytes, size_t n)
{
	union head h = {};

	memcpy(&h, bytes, n < sizeof(h) ? n : sizeof(h));
	if (h.record.kind == LOAD && n > sizeof(h.load))
		return take_load(r, &h.load, (const char *)bytes + sizeof(h.load),
				 n - sizeof(h.load));
	return h.record.kind != MOVE || n < sizeof(h.move) || take_move(r, &h.move);
}

/* Return: where the records begin; 0 if it is no dump of this kind. */
static __u64 read_header(struct reader *r)
{
	const unsigned char *bytes;
	struct header h = {};

	memcpy(&h, r->byte, read_at(r, 0, sizeof(h), &bytes));
	/* CPython 3.13 does not say for which machine */
	if (h.magic != CODE_DUMP_MAGIC || (h.machine && h.machine != EM_X86_64))
		snprintf(r->why, r->why_size, "not a jitdump of x86-64");
	else if (h.version != VERSION || h.size < sizeof(h) || h.size > HEADER_MAX)
		snprintf(r->why, r->why_size, "jitdump of an unknown version");
	else if (h.flags & ARCH_TIMESTAMPS)
		snprintf(r->why, r->why_size,
			 "its times are of the processor, not of CLOCK_MONOTONIC");
	else
		return h.size;
	return 0;
}

static bool read_records(struct reader *r, __u64 at)
{
	const size_t most = sizeof(struct load) + NAMING_TEXT_MAX;
	const unsigned char *bytes;
	struct record head;
	size_t want, n;

	for (unsigned int i = 0; i < CODE_DUMP_RECORDS; i++) {
		if (read_at(r, at, sizeof(head), &bytes) < sizeof(head))
			return true;
		memcpy(&head, bytes, sizeof(head));
		if (head.kind == CLOSE)
			return true;
		if (head.size < sizeof(head)) {
			snprintf(r->why, r->why_size, "a record has a length of %u", head.size);
			return false;
		}
		want = head.size < most ? head.size : most;
		n = head.kind == LOAD || head.kind == MOVE ? read_at(r, at, want, &bytes) : 0;
		/* what is not complete is the last record */
		if (n == want && !take(r, bytes, n))
			return false;
		at += head.size;
	}
	snprintf(r->why, r->why_size, "it has more than %d records", CODE_DUMP_RECORDS);
	return false;
}

struct code_dump *code_dump_read(int fd, char *why, size_t size)
{
	struct code_dump *d = xcalloc(1, sizeof(*d));
	struct reader *r = xcalloc(1, sizeof(*r));
	__u64 at;
	bool ok;

	r->dump = d;
	r->why = why;
	r->why_size = size;
	r->fd = fd;
	at = read_header(r);
	ok = at && read_records(r, at);
	u64_map_free(&r->name_of);
	free(r);
	if (ok && code_dump_divide(d, why, size))
		return d;
	code_dump_free(d);
	return NULL;
}
