// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gzip_out.h"

#include "base/array.h"
#include "base/parallel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#define PART_BYTES (256 << 10)

struct gzip_out {
	gzFile gz;
	int error;		     /* negative errno; 0: none */
	struct parallel_queue queue; /* of bytes */
};

/* zlib leaves errno at 0 where it ran out of memory. */
static int last_error(void)
{
	return errno ? -errno : -ENOMEM;
}

static void compress_part(void *ctx, const void *data, size_t n)
{
	struct gzip_out *o = ctx;

	errno = 0;
	if (!o->error && gzwrite(o->gz, data, n) != (int)n)
		o->error = last_error();
}

struct gzip_out *gzip_out_new(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	gzFile gz = copy < 0 ? NULL : gzdopen(copy, "wb");
	struct gzip_out *o;

	if (!gz) {
		if (copy >= 0)
			close(copy);
		return NULL;
	}
	o = xcalloc(1, sizeof(*o));
	o->gz = gz;
	o->queue = (struct parallel_queue){
		.item = 1, .room = PART_BYTES, .work = compress_part, .ctx = o
	};
	return o;
}

void gzip_out_put(struct gzip_out *o, const void *data, size_t n)
{
	parallel_queue_put(&o->queue, data, n);
}

int gzip_out_close(struct gzip_out *o)
{
	int error;

	parallel_queue_flush(&o->queue);
	errno = 0;
	if (gzclose(o->gz) != Z_OK && !o->error)
		o->error = last_error();
	error = o->error;
	parallel_queue_free(&o->queue);
	free(o);
	return error;
}
