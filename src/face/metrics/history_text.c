// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Pieces are compressed once, for all clients; who takes no gzip gets them decompressed while they are sent. */
#include "history_piece.h"
#include "metrics_history.h"
#include "metrics_private.h"
#include "base/std.h"

#include <endian.h>
#include <zlib.h>

#define LEVEL 6

struct history_piece *history_piece_new(const char *text, size_t n)
{
	struct history_piece *p;
	z_stream z = {};
	size_t room;

	if (deflateInit2(&z, LEVEL, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		out_of_memory();
	room = deflateBound(&z, n) + 16; /* with the empty block that ends at a byte */
	p = xcalloc(1, sizeof(*p) + room);
	z.next_in = (Bytef *)text;
	z.avail_in = n;
	z.next_out = p->data;
	z.avail_out = room;
	deflate(&z, Z_FULL_FLUSH);
	p->n = room - z.avail_out;
	deflateEnd(&z);
	p->users = 1;
	p->n_text = n;
	p->crc = crc32(0, (const Bytef *)text, n);
	return xrealloc(p, sizeof(*p) + p->n);
}

void history_piece_text(const struct history_piece *p, char *out)
{
	z_stream z = { .next_in = (Bytef *)p->data, .avail_in = p->n };

	z.next_out = (Bytef *)out;
	z.avail_out = p->n_text;
	if (inflateInit2(&z, -15) != Z_OK)
		out_of_memory();
	inflate(&z, Z_SYNC_FLUSH);
	inflateEnd(&z);
}

void history_piece_put(struct history_piece *p)
{
	while (p && !--p->users) {
		struct history_piece *next = p->next;

		free(p);
		p = next;
	}
}

/* --- a text of them --- */

#define STORED_MAX 65535 /* bytes of a block that is not compressed */

enum stage { HEAD, PIECE, COMMA, TAIL, END };

struct metrics_history_text {
	bool gzip;
	enum stage stage;
	size_t at, size; /* in the stage; of the whole */
	struct metrics_buf head, tail;
	struct history_piece *piece; /* the next to send */
	struct history_piece *last;
	char *text; /* of one that was decompressed */
};

static void put_stored(struct metrics_buf *b, const char *text, size_t n)
{
	do {
		const size_t part = n < STORED_MAX ? n : STORED_MAX;
		const unsigned char header[] = { 0, part, part >> 8, ~part, ~part >> 8 };

		buf_put(b, header, sizeof(header));
		buf_put(b, text, part);
		text += part;
		n -= part;
	} while (n);
}

static const unsigned char stored_comma[] = { 0, 1, 0, 0xfe, 0xff, ',' };
static const unsigned char plain_comma[] = { ',' };

/* The frame as a gzip file has it, and the CRC of all together. */
static void frame_gzip(struct metrics_history_text *t, const struct history_frame *frame)
{
	static const unsigned char header[] = { 0x1f, 0x8b, 8, [9] = 255 };
	static const unsigned char last_block[] = { 1, 0, 0, 0xff, 0xff }; /* empty */
	const Bytef *head = (const Bytef *)frame->head, *tail = (const Bytef *)frame->tail;
	const size_t n_head = strlen(frame->head), n_tail = strlen(frame->tail);
	__u32 crc = crc32(0, head, n_head), n = n_head + n_tail, sums[2];

	buf_put(&t->head, header, sizeof(header));
	put_stored(&t->head, frame->head, n_head);
	for (const struct history_piece *p = t->piece; p; p = p == t->last ? NULL : p->next) {
		crc = crc32_combine(crc, p->crc, p->n_text);
		n += p->n_text;
		if (p == t->last)
			continue;
		crc = crc32(crc, plain_comma, 1);
		n++;
	}
	sums[0] = htole32(crc32(crc, tail, n_tail));
	sums[1] = htole32(n);
	put_stored(&t->tail, frame->tail, n_tail);
	buf_put(&t->tail, last_block, sizeof(last_block));
	buf_put(&t->tail, sums, sizeof(sums));
}

static size_t comma_size(const struct metrics_history_text *t)
{
	return t->gzip ? sizeof(stored_comma) : sizeof(plain_comma);
}

struct metrics_history_text *history_text_new(struct history_piece *first,
					      struct history_frame frame, bool gzip)
{
	struct metrics_history_text *t = xcalloc(1, sizeof(*t));

	t->gzip = gzip;
	t->piece = t->last = first;
	while (t->last && t->last->next)
		t->last = t->last->next;
	if (first)
		first->users++;
	if (gzip) {
		frame_gzip(t, &frame);
		free(frame.head);
		free(frame.tail);
	} else {
		t->head = (struct metrics_buf){ frame.head, strlen(frame.head) };
		t->tail = (struct metrics_buf){ frame.tail, strlen(frame.tail) };
	}
	t->size = t->head.n + t->tail.n;
	for (const struct history_piece *p = first; p; p = p == t->last ? NULL : p->next)
		t->size += (gzip ? p->n : p->n_text) + (p == t->last ? 0 : comma_size(t));
	return t;
}

size_t metrics_history_text_size(const struct metrics_history_text *t)
{
	return t->size;
}

/* Until the call ends, so that slow clients take no memory. */
static const void *inflate_piece(struct metrics_history_text *t)
{
	t->text = xrealloc(t->text, t->piece->n_text);
	history_piece_text(t->piece, t->text);
	return t->text;
}

static const void *stage_bytes(struct metrics_history_text *t, size_t *n)
{
	switch (t->stage) {
	case HEAD:
		*n = t->head.n;
		return t->head.s;
	case PIECE:
		*n = !t->piece ? 0 : t->gzip ? t->piece->n : t->piece->n_text;
		return !*n ? NULL : t->gzip ? t->piece->data : inflate_piece(t);
	case COMMA:
		*n = comma_size(t);
		return t->gzip ? stored_comma : plain_comma;
	default:
		*n = t->tail.n;
		return t->tail.s;
	}
}

static void next_piece(struct metrics_history_text *t)
{
	struct history_piece *next = t->piece->next;

	next->users++;
	history_piece_put(t->piece);
	t->piece = next;
}

static void next_stage(struct metrics_history_text *t)
{
	t->at = 0;
	if (t->stage == PIECE && t->piece && t->piece != t->last) {
		t->stage = COMMA;
	} else if (t->stage == COMMA) {
		next_piece(t);
		t->stage = PIECE;
	} else {
		t->stage = t->stage == HEAD ? PIECE : t->stage == PIECE ? TAIL : END;
	}
}

size_t metrics_history_text_read(struct metrics_history_text *t, char *to, size_t max)
{
	size_t done = 0;

	while (done < max && t->stage != END) {
		size_t n, part;
		const char *s = stage_bytes(t, &n);

		part = n - t->at < max - done ? n - t->at : max - done;
		if (part)
			memcpy(to + done, s + t->at, part);
		done += part;
		t->at += part;
		if (t->at == n)
			next_stage(t);
	}
	free(t->text);
	t->text = NULL;
	return done;
}

void metrics_history_text_close(struct metrics_history_text *t)
{
	history_piece_put(t->piece);
	free(t->head.s);
	free(t->tail.s);
	free(t);
}
