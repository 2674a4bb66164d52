// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* System calls are made directly: mmap() and munmap() are ours. */
#include "ring.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILES 100 /* most files of a process id, which begins two after each exec */

/* A file in memory. Its ring is mapped twice in a row, so that each event is in one piece. */
struct ring {
	struct ibscope_alloc_file *file;
	unsigned char *data;
	uint64_t bytes;
};

static const char *directory; /* NULL: nothing is noted */
static uint64_t threshold;
static bool has_own_malloc;

static struct ring rings[2];   /* small, large */
static struct ring *current;   /* NULL: none yet */
static unsigned char state[2]; /* of rings: 0: not tried, 1: somebody tries, or failed; 2: open */

static uint64_t unwritten; /* events that were lost while another thread opened the first ring */

void ring_init(const char *dir, uint64_t bytes, bool own_malloc)
{
	directory = dir;
	threshold = bytes;
	has_own_malloc = own_malloc;
}

static int create(void)
{
	char path[512];

	for (int i = 0; i < FILES; i++) {
		const int n = snprintf(path, sizeof(path), "%s/" IBSCOPE_ALLOC_FILE "%d.%d",
				       directory, (int)getpid(), i);
		int fd;

		if (n < 0 || (size_t)n >= sizeof(path))
			return -1;
		fd = (int)syscall(SYS_openat, AT_FDCWD, path,
				  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0)
			return fd;
	}
	return -1;
}

static void *map(void *at, uint64_t bytes, int prot, int flags, int fd)
{
	void *p = (void *)syscall(SYS_mmap, at, bytes, prot, flags, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* Map the head, and the ring twice behind it. */
static bool map_file(struct ring *r, int fd)
{
	const int prot = PROT_READ | PROT_WRITE;
	const uint64_t all = IBSCOPE_ALLOC_HEAD + 2 * r->bytes;
	unsigned char *at = map(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (!at)
		return false;
	r->file = (struct ibscope_alloc_file *)at;
	r->data = at + IBSCOPE_ALLOC_HEAD;
	if (map(at, IBSCOPE_ALLOC_HEAD + r->bytes, prot, MAP_SHARED | MAP_FIXED, fd) &&
	    (void *)syscall(SYS_mmap, r->data + r->bytes, r->bytes, prot, MAP_SHARED | MAP_FIXED,
			    fd, (long)IBSCOPE_ALLOC_HEAD) != MAP_FAILED)
		return true;
	syscall(SYS_munmap, at, all);
	r->file = NULL;
	return false;
}

/* The inode of our PID namespace, by which the reader knows whether it has the same process ids; 0: unknown. */
static uint64_t own_namespace(void)
{
	char text[64];
	const ssize_t n = readlink("/proc/self/ns/pid", text, sizeof(text) - 1);
	const char *number;

	text[n < 0 ? 0 : n] = 0;
	number = strchr(text, '[');
	return number ? strtoull(number + 1, NULL, 10) : 0;
}

static bool open_ring(struct ring *r, uint64_t bytes)
{
	const int fd = directory ? create() : -1;
	bool ok;

	if (fd < 0)
		return false;
	r->bytes = bytes;
	/* allocate it now, so that no write faults later */
	ok = !syscall(SYS_fallocate, fd, 0, 0L, (long)(IBSCOPE_ALLOC_HEAD + bytes)) &&
	     map_file(r, fd);
	syscall(SYS_close, fd);
	if (!ok)
		return false;
	r->file->ring_bytes = bytes;
	r->file->bytes = threshold;
	r->file->own_malloc = has_own_malloc;
	r->file->pid_namespace = own_namespace();
	__atomic_store_n(&r->file->magic, IBSCOPE_ALLOC_MAGIC, __ATOMIC_RELEASE);
	return true;
}

/* Open a ring for all threads. One thread opens it; the others keep using the old one, if any. */
static void begin_ring(int large)
{
	unsigned char expected = 0;

	if (!__atomic_compare_exchange_n(&state[large], &expected, 1, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	if (!open_ring(&rings[large], large ? IBSCOPE_ALLOC_LARGE : IBSCOPE_ALLOC_SMALL))
		return;
	__atomic_store_n(&state[large], 2, __ATOMIC_RELEASE);
	__atomic_store_n(&current, &rings[large], __ATOMIC_RELEASE);
}

static struct ring *get_ring(void)
{
	if (!__atomic_load_n(&current, __ATOMIC_ACQUIRE))
		begin_ring(0);
	return __atomic_load_n(&current, __ATOMIC_ACQUIRE);
}

void ring_open(void)
{
	get_ring();
}

void ring_lose(void)
{
	struct ring *r = get_ring();

	__atomic_fetch_add(r ? &r->file->lost : &unwritten, 1, __ATOMIC_RELAXED);
}

/* Return: false if there is no room. */
static bool reserve(struct ring *r, uint64_t bytes, uint64_t *position)
{
	uint64_t at = __atomic_load_n(&r->file->written, __ATOMIC_RELAXED);

	do {
		const uint64_t used = at - __atomic_load_n(&r->file->read, __ATOMIC_ACQUIRE);

		if (used > r->bytes || r->bytes - used < bytes)
			return false;
	} while (!__atomic_compare_exchange_n(&r->file->written, &at, at + bytes, true,
					      __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	*position = at;
	return true;
}

void ring_put(struct ibscope_alloc_event *e, const uint64_t *stack)
{
	const uint64_t bytes = sizeof(*e) + e->n_stack * sizeof(*stack);
	struct ibscope_alloc_event *to;
	struct ring *r = get_ring();
	uint64_t position;

	if (!r) {
		__atomic_fetch_add(&unwritten, 1, __ATOMIC_RELAXED);
		return;
	}
	if (__atomic_load_n(&unwritten, __ATOMIC_RELAXED))
		__atomic_fetch_add(&r->file->lost,
				   __atomic_exchange_n(&unwritten, 0, __ATOMIC_RELAXED),
				   __ATOMIC_RELAXED);
	/* a process that has filled half of its small ring is one of those that allocate much */
	if (r == &rings[0] &&
	    __atomic_load_n(&r->file->written, __ATOMIC_RELAXED) > IBSCOPE_ALLOC_SMALL / 2) {
		begin_ring(1);
		r = get_ring();
	}
	if (!reserve(r, bytes, &position)) {
		__atomic_fetch_add(&r->file->lost, 1, __ATOMIC_RELAXED);
		return;
	}
	e->check = ibscope_alloc_check(e, stack, position);
	to = (struct ibscope_alloc_event *)(r->data + position % r->bytes);
	to->time_ns = e->time_ns;
	to->addr = e->addr;
	to->size = e->size;
	to->tid = e->tid;
	to->kind = e->kind;
	to->n_stack = e->n_stack;
	if (e->n_stack)
		memcpy(to + 1, stack, e->n_stack * sizeof(*stack));
	__atomic_store_n(&to->check, e->check, __ATOMIC_RELEASE);
}

void ring_forked(void)
{
	for (int i = 0; i < 2; i++) {
		if (rings[i].file)
			syscall(SYS_munmap, rings[i].file, IBSCOPE_ALLOC_HEAD + 2 * rings[i].bytes);
		rings[i] = (struct ring){ .file = NULL };
		state[i] = 0;
	}
	current = NULL;
	unwritten = 0;
}
