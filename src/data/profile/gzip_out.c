// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gzip_out.h"

#include "base/array.h"
#include "base/parallel.h"

#include <asm/types.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

/*
 * Each part is compressed alone, after a copy of what comes before it as far as deflate looks back. Parts do not
 * depend on the number of threads, so neither does the file.
 */
#define PART_BYTES (256u << 10)
#define LOOK_BACK  (32u << 10)
#define SLOTS	   PARALLEL_MAX
#define LEVEL	   3 /* half the time of 6, and a sixth more bytes */

struct part {
	struct parallel_worker *worker;
	z_stream z;
	unsigned char *data, *out; /* PART_BYTES; `room` */
	size_t n, before, room, n_out;
	unsigned char back[LOOK_BACK]; /* `before` bytes */
	bool last, ok;
	uLong crc;
};

struct gzip_out {
	int fd;
	int error;	     /* negative errno; 0: none */
	unsigned int n;	     /* slots in use */
	__u64 next, written; /* parts begun, and written */
	uLong crc;
	__u32 bytes; /* modulo 2^32 */
	struct part *part[SLOTS];
};

static void compress_part(void *arg)
{
	struct part *p = arg;
	z_stream *z = &p->z;
	int flush = p->last ? Z_FINISH : Z_SYNC_FLUSH;

	p->crc = crc32(0, p->data, p->n);
	p->ok = deflateReset(z) == Z_OK &&
		(!p->before || deflateSetDictionary(z, p->back, p->before) == Z_OK);
	z->next_in = p->data;
	z->avail_in = p->n;
	z->next_out = p->out;
	z->avail_out = p->room;
	p->ok = p->ok && deflate(z, flush) == (p->last ? Z_STREAM_END : Z_OK) && !z->avail_in &&
		z->avail_out;
	p->n_out = p->room - z->avail_out;
}

static void free_part(struct part *p)
{
	if (!p)
		return;
	parallel_worker_free(p->worker);
	deflateEnd(&p->z);
	free(p->data);
	free(p->out);
	free(p);
}

static struct part *new_part(void)
{
	struct part *p = xcalloc(1, sizeof(*p));

	p->data = xcalloc(PART_BYTES, 1);
	if (deflateInit2(&p->z, LEVEL, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		out_of_memory();
	p->room = deflateBound(&p->z, PART_BYTES) + 16; /* with the mark of a flush */
	p->out = xcalloc(p->room, 1);
	p->worker = parallel_worker_new();
	return p;
}

static void write_bytes(struct gzip_out *o, const void *data, size_t n)
{
	const unsigned char *p = data;

	while (n && !o->error) {
		ssize_t done = write(o->fd, p, n);

		if (done < 0 && errno != EINTR)
			o->error = -errno;
		if (done > 0) {
			p += done;
			n -= done;
		}
	}
}

/* Write the earliest part that is not yet. */
static void write_part(struct gzip_out *o)
{
	struct part *p = o->part[o->written++ % o->n];

	parallel_wait(p->worker);
	if (!p->ok && !o->error)
		o->error = -ENOMEM;
	o->crc = crc32_combine(o->crc, p->crc, p->n);
	o->bytes += p->n;
	write_bytes(o, p->out, p->n_out);
}

/* The part that is filled now. */
static struct part *filling(const struct gzip_out *o)
{
	return o->part[o->next % o->n];
}

static void begin_part(struct gzip_out *o, bool last)
{
	struct part *p = filling(o), *after;

	p->last = last;
	parallel_begin(p->worker, compress_part, p);
	o->next++;
	if (o->next - o->written == o->n)
		write_part(o);
	if (last)
		return;
	if (!filling(o))
		o->part[o->next % o->n] = new_part();
	after = filling(o);
	after->before = p->n < LOOK_BACK ? p->n : LOOK_BACK;
	memcpy(after->back, p->data + p->n - after->before, after->before);
	after->n = 0;
}

struct gzip_out *gzip_out_new(int fd)
{
	static const unsigned char head[10] = { 0x1f, 0x8b, Z_DEFLATED, [9] = 3 /* Unix */ };
	struct gzip_out *o = xcalloc(1, sizeof(*o));

	o->fd = fd;
	o->n = parallel_count() + 1;
	o->n = o->n < SLOTS ? o->n : SLOTS;
	o->crc = crc32(0, NULL, 0);
	o->part[0] = new_part();
	write_bytes(o, head, sizeof(head));
	return o;
}

void gzip_out_put(struct gzip_out *o, const void *data, size_t n)
{
	const unsigned char *from = data;

	while (n) {
		struct part *p = filling(o);
		size_t fits = PART_BYTES - p->n < n ? PART_BYTES - p->n : n;

		memcpy(p->data + p->n, from, fits);
		p->n += fits;
		from += fits;
		n -= fits;
		if (p->n == PART_BYTES)
			begin_part(o, false);
	}
}

int gzip_out_close(struct gzip_out *o)
{
	unsigned char tail[8];
	int error;

	begin_part(o, true);
	while (o->written < o->next)
		write_part(o);
	for (unsigned int i = 0; i < 4; i++) {
		tail[i] = o->crc >> 8 * i;
		tail[4 + i] = o->bytes >> 8 * i;
	}
	write_bytes(o, tail, sizeof(tail));
	error = o->error;
	for (unsigned int i = 0; i < o->n; i++)
		free_part(o->part[i]);
	free(o);
	return error;
}
