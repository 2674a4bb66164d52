/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Marks regions of a program; `ibscope report --by region` groups samples by them:
 *
 *	ibscope_region_begin("solve");
 *	...
 *	ibscope_region_end();
 *
 * Regions nest, and belong to the thread that begins them. `ibscope record -- PROGRAM` collects them;
 * without it a call only tests a variable. There is nothing to link. Needs GCC or Clang, and in C
 * a dialect with POSIX names, such as -std=gnu11. See ibscope-regions(7).
 *
 * A process writes events to a ring in a file, and never waits: the collector detects which events
 * were overwritten before it read them.
 */
#ifndef IBSCOPE_REGION_H
#define IBSCOPE_REGION_H

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define IBSCOPE_REGION_DIR    "IBSCOPE_REGIONS"	  /* environment variable with the directory */
#define IBSCOPE_REGION_MAGIC  0x31474552534249ull /* "IBSREG1" */
#define IBSCOPE_REGION_NAMES  256 /* the last one covers all names that find no room */
#define IBSCOPE_REGION_TEXT   60  /* size of a name with its final 0; longer names are cut */
#define IBSCOPE_REGION_EVENTS (1u << 15)
#define IBSCOPE_REGION_FILES  100 /* per process, which creates one after each exec */

enum ibscope_region_kind {
	IBSCOPE_REGION_BEGIN = 1, /* `value` is the index of a name */
	IBSCOPE_REGION_END = 2,
	IBSCOPE_REGION_OMP_BEGIN = 3, /* `value` is an address in the function */
	IBSCOPE_REGION_OMP_END = 4,
};

struct ibscope_region_event {
	uint32_t check; /* ibscope_region_check() */
	uint32_t tid;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t value;
	uint32_t team;	 /* OpenMP: thread that began the team */
	uint16_t number; /* OpenMP: thread number in the team */
	uint16_t kind;
};

struct ibscope_region_name {
	uint32_t state; /* 0: free, 1: being written, 2: complete */
	char text[IBSCOPE_REGION_TEXT];
};

struct ibscope_region_file {
	uint64_t magic;
	uint64_t
		n; /* events begun so far; the last IBSCOPE_REGION_EVENTS of them are in `event` */
	struct ibscope_region_name name[IBSCOPE_REGION_NAMES];
	struct ibscope_region_event event[IBSCOPE_REGION_EVENTS];
};

/* Checksum that detects partly written events, and an older event in the same place. */
static inline uint32_t ibscope_region_check(const struct ibscope_region_event *e, uint64_t n)
{
	uint64_t kind = (uint64_t)e->team << 32 | (uint32_t)e->number << 16 | e->kind;
	uint64_t sum = (n + 1) * 0xd6e8feb86659fd93ull + e->tid;

	sum = (sum ^ sum >> 32 ^ e->time_ns) * 0x9e3779b97f4a7c15ull;
	sum = (sum ^ sum >> 32 ^ e->value) * 0xbf58476d1ce4e5b9ull;
	sum = (sum ^ sum >> 32 ^ kind) * 0x94d049bb133111ebull;
	return (uint32_t)(sum >> 32);
}

#ifdef __cplusplus
extern "C" {
#endif

#define IBSCOPE_REGION_NONE ((struct ibscope_region_file *)-1)

/* NULL: not opened yet. Shared by all files of a program that include this header. */
__attribute__((weak)) struct ibscope_region_file *ibscope_region_file_ = NULL;

/* A child creates its own file. */
static inline void ibscope_region_forked_(void)
{
	if (ibscope_region_file_ && ibscope_region_file_ != IBSCOPE_REGION_NONE)
		munmap(ibscope_region_file_, sizeof(*ibscope_region_file_));
	ibscope_region_file_ = NULL;
}

static inline struct ibscope_region_file *ibscope_region_map_(void)
{
	const size_t size = sizeof(struct ibscope_region_file);
	const char *dir = getauxval(AT_SECURE) ? NULL : getenv(IBSCOPE_REGION_DIR);
	char path[4096];
	void *map = MAP_FAILED;
	int fd = -1;

	for (int i = 0; dir && fd < 0 && i < IBSCOPE_REGION_FILES; i++) {
		int n = snprintf(path, sizeof(path), "%s/%d.%d", dir, (int)getpid(), i);

		if (n < 0 || (size_t)n >= sizeof(path))
			break;
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	}
	if (fd < 0)
		return IBSCOPE_REGION_NONE;
	/* allocate the blocks now, so that no write fails later */
	if (!posix_fallocate(fd, 0, (off_t)size))
		map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED) {
		unlink(path);
		return IBSCOPE_REGION_NONE;
	}
	__atomic_store_n((uint64_t *)map, IBSCOPE_REGION_MAGIC, __ATOMIC_RELEASE);
	return (struct ibscope_region_file *)map;
}

static inline struct ibscope_region_file *ibscope_region_open_(void)
{
	struct ibscope_region_file *expected = NULL, *f = ibscope_region_map_();

	if (__atomic_compare_exchange_n(&ibscope_region_file_, &expected, f, 0, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		if (f == IBSCOPE_REGION_NONE)
			return NULL;
		pthread_atfork(NULL, NULL, ibscope_region_forked_);
		return f;
	}
	/* another thread was first: this file stays without events */
	if (f != IBSCOPE_REGION_NONE)
		munmap(f, sizeof(*f));
	return expected == IBSCOPE_REGION_NONE ? NULL : expected;
}

/* The file to write events to; NULL: none. */
static inline struct ibscope_region_file *ibscope_region_file(void)
{
	struct ibscope_region_file *f = __atomic_load_n(&ibscope_region_file_, __ATOMIC_ACQUIRE);

	if (f == IBSCOPE_REGION_NONE)
		return NULL;
	return f ? f : ibscope_region_open_();
}

static inline void ibscope_region_put_(struct ibscope_region_file *f, uint16_t kind, uint64_t value,
				       uint32_t team, uint16_t number)
{
	struct ibscope_region_event *to, e;
	struct timespec t;
	uint64_t n;

	memset(&e, 0, sizeof(e));
	clock_gettime(CLOCK_MONOTONIC, &t);
	e.time_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	e.value = value;
	e.tid = (uint32_t)syscall(SYS_gettid);
	e.team = team;
	e.kind = kind;
	e.number = number;
	n = __atomic_fetch_add(&f->n, 1, __ATOMIC_RELAXED);
	e.check = ibscope_region_check(&e, n);
	to = &f->event[n % IBSCOPE_REGION_EVENTS];
	*to = e;
}

/* Index of a name, which is added if new. */
static inline uint64_t ibscope_region_name_(struct ibscope_region_file *f, const char *text)
{
	const uint64_t other = IBSCOPE_REGION_NAMES - 1;
	uint64_t hash = 0;
	size_t bytes;

	for (bytes = 0; bytes < IBSCOPE_REGION_TEXT - 1 && text[bytes]; bytes++)
		hash = (hash ^ (unsigned char)text[bytes]) * 0x100000001b3ull;
	hash ^= hash >> 32;
	for (uint64_t i = 0; i < other; i++) {
		const uint64_t at = (hash + i) % other;
		struct ibscope_region_name *name = &f->name[at];
		uint32_t state = 0;

		if (__atomic_compare_exchange_n(&name->state, &state, 1, 0, __ATOMIC_ACQUIRE,
						__ATOMIC_ACQUIRE)) {
			memcpy(name->text, text, bytes);
			__atomic_store_n(&name->state, 2, __ATOMIC_RELEASE);
			return at;
		}
		/* an entry being written may be the same name: then it gets two entries */
		if (state == 2 && !strncmp(name->text, text, bytes) && !name->text[bytes])
			return at;
	}
	return other;
}

/* Begin a region of this thread. @name: cut after 59 bytes; at most 255 different per process. */
static inline void ibscope_region_begin(const char *name)
{
	struct ibscope_region_file *f = ibscope_region_file();

	if (f)
		ibscope_region_put_(f, IBSCOPE_REGION_BEGIN, ibscope_region_name_(f, name), 0, 0);
}

/* End the region that this thread began last. */
static inline void ibscope_region_end(void)
{
	struct ibscope_region_file *f = ibscope_region_file();

	if (f)
		ibscope_region_put_(f, IBSCOPE_REGION_END, 0, 0, 0);
}

#ifdef __cplusplus
}
#endif

#endif
