/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Streams of instructions for a modelled core. */
#ifndef MODEL_STREAM_H
#define MODEL_STREAM_H

#include "core.h"

#define STREAM_OPS 1024 /* of an iteration at most */

struct stream {
	void (*iteration)(struct stream *s);
	uint64_t random, count;	    /* iterations */
	uint64_t seq;		    /* number of the last op */
	uint64_t node, cursor;	    /* state of iterations */
	uint64_t last[MODEL_INSNS]; /* ops of the last iteration that others need, by instruction */
	struct model_op op[STREAM_OPS];
	unsigned int n, next;
};

struct stream_kind {
	const char *name, *what;
	void (*iteration)(struct stream *s);
};

extern const struct stream_kind stream_kinds[];
extern const unsigned int stream_kinds_n;

void stream_init(struct stream *s, const struct stream_kind *kind, uint64_t seed);
const struct model_op *stream_next(struct stream *s);

#endif
