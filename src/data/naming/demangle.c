// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

/* What perf and gdb print for a frame. DMGL_NO_RECURSE_LIMIT must not be in it: names may be hostile. */
#define OPTIONS DMGL_NO_OPTS

struct output {
	char *buf;
	size_t size, n;
	jmp_buf full;
};

/*
 * A short name may have a readable form of gigabytes, and no return value stops libiberty. It has no memory that would
 * be lost, except for a Rust identifier outside ASCII.
 */
static void put(const char *text, size_t n, void *arg)
{
	struct output *o = arg;

	if (n >= o->size - o->n)
		longjmp(o->full, 1);
	memcpy(o->buf + o->n, text, n);
	o->n += n;
}

bool demangle(const char *name, char *buf, size_t size)
{
	struct output o = { .buf = buf, .size = size };

	if (strnlen(name, DEMANGLE_MAX + 1) > DEMANGLE_MAX || setjmp(o.full))
		return false;
	/* legacy names of Rust are names of C++, too */
	if (!rust_demangle_callback(name, OPTIONS, put, &o)) {
		o.n = 0;
		if (!cplus_demangle_v3_callback(name, OPTIONS, put, &o))
			return false;
	}
	buf[o.n] = 0;
	return o.n;
}
