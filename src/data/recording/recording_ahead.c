// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recording_ahead.h"

#include "base/parallel.h"

#include <unistd.h>
#include <zstd.h>

struct recording_ahead {
	int fd;
	struct parallel_worker *worker;

	/* of the worker until its job is done */
	__u64 at;
	struct recording_block head;
	bool ok; /* that block is decoded */
	ZSTD_DCtx *zstd;
	struct recording_columns *columns;
	unsigned char stored[RECORDING_BLOCK_MAX], raw[RECORDING_BLOCK_MAX];
};

/* The reader tries again what is read only in part. */
static bool load(struct recording_ahead *a)
{
	return pread(a->fd, a->stored, a->head.bytes, a->at) == (ssize_t)a->head.bytes &&
	       a->head.data_crc == recording_crc(a->stored, a->head.bytes);
}

static bool decode(struct recording_ahead *a)
{
	const struct recording_block *h = &a->head;
	const bool packed = h->flags & RECORDING_ZSTD;

	if (h->flags & ~RECORDING_ZSTD || !load(a))
		return false;
	if (packed ? ZSTD_decompressDCtx(a->zstd, a->raw, h->raw_bytes, a->stored, h->bytes) !=
			     h->raw_bytes
		   : h->raw_bytes != h->bytes)
		return false;
	return !recording_columns_decode(a->columns, h->entries, packed ? a->raw : a->stored,
					 h->raw_bytes);
}

static void work(void *arg)
{
	struct recording_ahead *a = arg;

	a->ok = decode(a);
}

struct recording_ahead *recording_ahead_new(int fd)
{
	struct parallel_worker *worker = parallel_worker_new();
	struct recording_ahead *a;

	if (!worker)
		return NULL;
	a = xcalloc(1, sizeof(*a));
	*a = (struct recording_ahead){ .fd = fd, .worker = worker, .zstd = ZSTD_createDCtx() };
	a->columns = xcalloc(1, sizeof(*a->columns));
	if (!a->zstd)
		out_of_memory();
	return a;
}

void recording_ahead_begin(struct recording_ahead *a, __u64 at, const struct recording_block *head)
{
	parallel_wait(a->worker);
	a->at = at;
	a->head = *head;
	parallel_begin(a->worker, work, a);
}

bool recording_ahead_take(struct recording_ahead *a, __u64 at, const struct recording_block *head,
			  struct recording_columns **columns)
{
	struct recording_columns *decoded = a->columns;
	bool ok;

	parallel_wait(a->worker);
	ok = a->ok && a->at == at && !memcmp(&a->head, head, sizeof(*head));
	a->ok = false;
	if (!ok)
		return false;
	a->columns = *columns;
	*columns = decoded;
	return true;
}

void recording_ahead_free(struct recording_ahead *a)
{
	if (!a)
		return;
	parallel_worker_free(a->worker);
	ZSTD_freeDCtx(a->zstd);
	free(a->columns);
	free(a);
}
