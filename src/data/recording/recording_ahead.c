// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "recording_ahead.h"

#include "base/parallel.h"

#include <pthread.h>
#include <unistd.h>
#include <zstd.h>

enum state { IDLE, BEGUN, DONE, ENDS };

struct recording_ahead {
	int fd;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	enum state state;

	/* of the thread while BEGUN, else of the caller */
	__u64 at;
	struct recording_block head;
	bool ok;
	ZSTD_DCtx *zstd;
	struct recording_columns *columns;
	unsigned char stored[RECORDING_BLOCK_MAX], raw[RECORDING_BLOCK_MAX];
};

static bool load(struct recording_ahead *a)
{
	size_t have = 0;
	ssize_t n;

	while (have < a->head.bytes) {
		n = pread(a->fd, a->stored + have, a->head.bytes - have, a->at + have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		have += n;
	}
	return a->head.data_crc == recording_crc(a->stored, a->head.bytes);
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

static void *work(void *arg)
{
	struct recording_ahead *a = arg;

	pthread_mutex_lock(&a->mutex);
	while (a->state != ENDS) {
		if (a->state != BEGUN) {
			pthread_cond_wait(&a->changed, &a->mutex);
			continue;
		}
		pthread_mutex_unlock(&a->mutex);
		a->ok = decode(a);
		pthread_mutex_lock(&a->mutex);
		a->state = DONE;
		pthread_cond_broadcast(&a->changed);
	}
	pthread_mutex_unlock(&a->mutex);
	return NULL;
}

struct recording_ahead *recording_ahead_new(int fd)
{
	struct recording_ahead *a;

	if (parallel_count() < 2)
		return NULL;
	a = xcalloc(1, sizeof(*a));
	a->fd = fd;
	a->columns = xcalloc(1, sizeof(*a->columns));
	a->zstd = ZSTD_createDCtx();
	if (!a->zstd)
		out_of_memory();
	pthread_mutex_init(&a->mutex, NULL);
	pthread_cond_init(&a->changed, NULL);
	if (parallel_thread(&a->thread, work, a))
		return a;
	ZSTD_freeDCtx(a->zstd);
	free(a->columns);
	free(a);
	return NULL;
}

static void await(struct recording_ahead *a)
{
	while (a->state == BEGUN)
		pthread_cond_wait(&a->changed, &a->mutex);
}

static void set_state(struct recording_ahead *a, enum state state)
{
	pthread_mutex_lock(&a->mutex);
	await(a);
	a->state = state;
	pthread_cond_broadcast(&a->changed);
	pthread_mutex_unlock(&a->mutex);
}

void recording_ahead_begin(struct recording_ahead *a, __u64 at, const struct recording_block *head)
{
	set_state(a, IDLE);
	a->at = at;
	a->head = *head;
	set_state(a, BEGUN);
}

bool recording_ahead_take(struct recording_ahead *a, __u64 at, const struct recording_block *head,
			  struct recording_columns **columns)
{
	struct recording_columns *decoded = a->columns;
	bool done;

	pthread_mutex_lock(&a->mutex);
	await(a);
	done = a->state == DONE && a->ok;
	a->state = IDLE;
	pthread_mutex_unlock(&a->mutex);
	if (!done || a->at != at || memcmp(&a->head, head, sizeof(*head)) != 0)
		return false;
	a->columns = *columns;
	*columns = decoded;
	return true;
}

void recording_ahead_free(struct recording_ahead *a)
{
	if (!a)
		return;
	set_state(a, ENDS);
	pthread_join(a->thread, NULL);
	pthread_mutex_destroy(&a->mutex);
	pthread_cond_destroy(&a->changed);
	ZSTD_freeDCtx(a->zstd);
	free(a->columns);
	free(a);
}
