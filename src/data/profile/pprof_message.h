/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages of protocol buffers. */
#ifndef IBSCOPE_PPROF_MESSAGE_H
#define IBSCOPE_PPROF_MESSAGE_H

#include "base/std.h"

/* A message that is being made. */
struct message {
	unsigned char *data;
	size_t n, room;
};

static inline void put_varint(struct message *m, __u64 v)
{
	array_reserve(m->data, m->room, m->n + 10);
	for (; v >= 0x80; v >>= 7)
		m->data[m->n++] = v | 0x80;
	m->data[m->n++] = v;
}

static inline void put_number(struct message *m, unsigned int field, __u64 v)
{
	put_varint(m, field << 3);
	put_varint(m, v);
}

static inline void put_bytes(struct message *m, unsigned int field, const void *data, size_t n)
{
	put_varint(m, field << 3 | 2);
	put_varint(m, n);
	array_reserve(m->data, m->room, m->n + n);
	memcpy(m->data + m->n, data, n);
	m->n += n;
}

#endif
