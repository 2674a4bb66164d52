// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Bytes of code. They are asked for in chunks, since a sample's code is near that of others. */
#include "naming.h"
#include "naming_private.h"

struct code_chunk {
	const struct object *object; /* NULL: none */
	__u64 offset;
	size_t n;
	unsigned char code[CODE_CHUNK];
};

static size_t get_code(struct object *o, enum naming_op op, __u64 at, unsigned char *buf,
		       size_t size)
{
	struct naming_request *q = &o->naming->request;
	const struct naming_reply *r = &o->naming->reply;
	const char *texts[NAMING_TEXTS];

	*q = (struct naming_request){ .op = op, .object = o->number, .a = at, .size = size };
	if (!naming_ask(o, texts) || r->data_len > size)
		return 0;
	memcpy(buf, r->text, r->data_len);
	return r->data_len;
}

/* A chunk lies in one segment of the file, or it ends with that. */
static const struct code_chunk *chunk_at(struct object *o, __u64 offset)
{
	const __u64 words[] = { (uintptr_t)o, offset };
	struct naming *n = o->naming;
	struct code_chunk *c;

	n->chunk = n->chunk ?: xcalloc(CODE_CHUNKS, sizeof(*n->chunk));
	c = &n->chunk[words_hash(words, 2) % CODE_CHUNKS];
	if (c->object != o || c->offset != offset) {
		c->n = get_code(o, NAMING_CODE, offset, c->code, CODE_CHUNK);
		c->object = o;
		c->offset = offset;
	}
	return c;
}

size_t object_code(struct object *o, __u64 offset, unsigned char *buf, size_t size)
{
	const __u64 in = offset % CODE_CHUNK;
	const struct code_chunk *c = size <= CODE_CHUNK - in ? chunk_at(o, offset - in) : NULL;

	if (!c || in + size > c->n) /* it crosses a chunk, or a segment begins or ends here */
		return get_code(o, NAMING_CODE, offset, buf, size);
	memcpy(buf, c->code + in, size);
	return size;
}

size_t object_read(struct object *o, __u64 addr, unsigned char *buf, size_t size)
{
	size_t done = 0, n;

	do {
		size_t want = size - done < NAMING_TEXT_MAX ? size - done : NAMING_TEXT_MAX;

		n = get_code(o, NAMING_READ, addr + done, buf + done, want);
		done += n;
	} while (n && done < size);
	return done;
}

void object_forget_code(const struct object *o)
{
	struct code_chunk *chunk = o->naming->chunk;

	for (size_t i = 0; chunk && i < CODE_CHUNKS; i++)
		if (chunk[i].object == o)
			chunk[i].object = NULL;
}
