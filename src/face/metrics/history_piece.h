/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Intervals as compressed pieces of JSON, and the text that they make together. */
#ifndef IBSCOPE_HISTORY_PIECE_H
#define IBSCOPE_HISTORY_PIECE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

struct metrics_history_text;

/*
 * An interval as JSON, as blocks of a deflate stream of its own that end at a byte: pieces one after the other, with
 * a header before them, are a gzip file.
 */
struct history_piece {
	struct history_piece *next; /* its user is this piece */
	unsigned int users;
	__u64 number, epoch;
	double seconds; /* 0: a gap */
	__u32 n_text;	/* bytes of the JSON, and their CRC */
	__u32 crc;
	__u32 n;
	unsigned char data[];
};

/* Compress @text. It has one user. */
struct history_piece *history_piece_new(const char *text, size_t n);

/* Decompress it to piece->n_text bytes. */
void history_piece_text(const struct history_piece *p, char *out);

/* Take a user away: without users it is freed, and with it those after it that have no other. */
void history_piece_put(struct history_piece *p);

/* Texts before and after the pieces, which a text takes over. */
struct history_frame {
	char *head, *tail;
};

/* @first: the first piece of the text, or NULL; a comma follows each piece, and a tail must not begin with one */
struct metrics_history_text *history_text_new(struct history_piece *first,
					      struct history_frame frame, bool gzip);

#endif
