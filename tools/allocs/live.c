// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "live.h"

#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TABLE_BITS 18 /* buckets, of 16 MiB that exist as far as they are used */
#define BUCKET	   8  /* addresses in a cache line */
#define TRIES	   4  /* buckets where an address may be */

uint32_t live_pieces[1u << LIVE_BITS];

struct bucket {
	uintptr_t address[BUCKET]; /* 0: free */
} __attribute__((aligned(64)));

static struct bucket *table;

static struct bucket *get_table(void)
{
	struct bucket *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE), *expected = NULL;
	const size_t bytes = sizeof(*t) << TABLE_BITS;

	if (t)
		return t;
	/* not by mmap(), which is ours */
	t = (struct bucket *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE,
				     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (t == MAP_FAILED)
		return NULL;
	if (__atomic_compare_exchange_n(&table, &expected, t, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return t;
	syscall(SYS_munmap, t, bytes);
	return expected;
}

/* Replace @from in one of the buckets of @p. */
static bool replace(const void *p, uintptr_t from, uintptr_t to)
{
	struct bucket *t = get_table();
	const uint64_t first = ((uint64_t)(uintptr_t)p >> 4) * 0x9e3779b97f4a7c15ull;

	for (uint64_t i = 0; t && i < TRIES; i++) {
		struct bucket *b = &t[((first >> 32) + i) & ((1u << TABLE_BITS) - 1)];

		for (int k = 0; k < BUCKET; k++) {
			uintptr_t is = __atomic_load_n(&b->address[k], __ATOMIC_RELAXED);

			if (is == from &&
			    __atomic_compare_exchange_n(&b->address[k], &is, to, false,
							__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
				return true;
		}
	}
	return false;
}

static void count(const void *p, uint32_t n)
{
	__atomic_fetch_add(live_piece(p), n, __ATOMIC_RELAXED);
}

void live_mark(const void *p)
{
	count(p, 1);
}

bool live_add(const void *p)
{
	if (!replace(p, 0, (uintptr_t)p))
		return false;
	count(p, 1);
	return true;
}

bool live_remove(const void *p)
{
	if (!p || !replace(p, (uintptr_t)p, 0))
		return false;
	count(p, -1);
	return true;
}
