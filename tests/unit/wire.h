/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Messages of protocol buffers, read field by field, and files compressed with gzip. After cmocka.h. */
#ifndef IBSCOPE_TESTS_WIRE_H
#define IBSCOPE_TESTS_WIRE_H

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

struct wire {
	const unsigned char *at, *end;
};

struct wire_field {
	unsigned int number;
	bool is_bytes;		  /* else it is a number */
	unsigned long long value; /* of a number */
	struct wire bytes;
};

static inline unsigned long long wire_number(struct wire *w)
{
	unsigned long long v = 0;
	unsigned int shift = 0;
	unsigned char byte;

	do {
		assert_true(w->at < w->end && shift < 64);
		byte = *w->at++;
		v |= (unsigned long long)(byte & 127) << shift;
		shift += 7;
	} while (byte & 128);
	return v;
}

/* Return: false at the end of the message. */
static inline bool wire_next(struct wire *w, struct wire_field *f)
{
	unsigned long long key, n;

	if (w->at == w->end)
		return false;
	key = wire_number(w);
	n = wire_number(w);
	*f = (struct wire_field){ .number = key >> 3, .is_bytes = (key & 7) == 2 };
	if (!f->is_bytes) {
		assert_int_equal(key & 7, 0);
		f->value = n;
		return true;
	}
	assert_true(n <= (unsigned long long)(w->end - w->at));
	f->bytes = (struct wire){ w->at, w->at + n };
	w->at += n;
	return true;
}

/* What a file has in it; the caller frees it. @fd: stays the caller's */
static inline unsigned char *gunzip(int fd, size_t *n)
{
	const size_t step = 1 << 20;
	unsigned char *data = NULL;
	gzFile f;
	int got;

	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	f = gzdopen(dup(fd), "r");
	assert_non_null(f);
	*n = 0;
	do {
		data = realloc(data, *n + step);
		assert_non_null(data);
		got = gzread(f, data + *n, step);
		assert_true(got >= 0);
		*n += got;
	} while (got);
	assert_false(gzdirect(f));
	assert_int_equal(gzclose(f), Z_OK);
	return data;
}

#endif
