// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "gzip_out.h"

#include "base/array.h"
#include "base/parallel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define PART_BYTES (256 << 10)

struct gzip_out {
	struct parallel_worker *worker;
	unsigned char *waiting; /* not given to the worker yet */
	size_t n_waiting;

	/* of the worker until its job is done */
	gzFile gz;
	unsigned char *part;
	size_t n_part;
	int error; /* negative errno; 0: none */
};

/* zlib leaves errno at 0 where it ran out of memory. */
static int last_error(void)
{
	return errno ? -errno : -ENOMEM;
}

struct gzip_out *gzip_out_new(int fd)
{
	struct gzip_out *o = xcalloc(1, sizeof(*o));
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	o->gz = copy < 0 ? NULL : gzdopen(copy, "wb");
	if (!o->gz) {
		if (copy >= 0)
			close(copy);
		free(o);
		return NULL;
	}
	o->waiting = xcalloc(1, PART_BYTES);
	o->part = xcalloc(1, PART_BYTES);
	return o;
}

static void compress_part(void *arg)
{
	struct gzip_out *o = arg;

	if (!o->n_part || o->error)
		return;
	errno = 0;
	if (gzwrite(o->gz, o->part, o->n_part) != (int)o->n_part)
		o->error = last_error();
}

static void flush(struct gzip_out *o)
{
	unsigned char *done;

	parallel_wait(o->worker);
	done = o->part;
	o->part = o->waiting;
	o->n_part = o->n_waiting;
	o->waiting = done;
	o->n_waiting = 0;
	parallel_begin(o->worker, compress_part, o);
}

void gzip_out_put(struct gzip_out *o, const void *data, size_t n)
{
	const unsigned char *from = data;

	while (n > PART_BYTES - o->n_waiting) {
		size_t fits = PART_BYTES - o->n_waiting;

		memcpy(o->waiting + o->n_waiting, from, fits);
		o->n_waiting += fits;
		from += fits;
		n -= fits;
		if (!o->worker)
			o->worker = parallel_worker_new();
		flush(o);
	}
	if (n)
		memcpy(o->waiting + o->n_waiting, from, n);
	o->n_waiting += n;
}

int gzip_out_close(struct gzip_out *o)
{
	int error;

	flush(o);
	parallel_wait(o->worker);
	errno = 0;
	if (gzclose(o->gz) != Z_OK && !o->error)
		o->error = last_error();
	error = o->error;
	parallel_worker_free(o->worker);
	free(o->waiting);
	free(o->part);
	free(o);
	return error;
}
