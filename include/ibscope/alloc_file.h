/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What libibscope-alloc.so writes in each process of the command and `ibscope record --allocs` reads: events in a ring in
 * a file. A process never waits: an event that finds no room is counted as lost.
 */
#ifndef IBSCOPE_ALLOC_FILE_H
#define IBSCOPE_ALLOC_FILE_H

#include <stdint.h>

#define IBSCOPE_ALLOC_BYTES \
	"IBSCOPE_ALLOC_BYTES"	     /* environment: note all allocations of so many bytes */
#define IBSCOPE_ALLOC_FILE  "alloc." /* file names begin so; the directory is IBSCOPE_REGION_DIR's */
#define IBSCOPE_ALLOC_MAGIC 0x31434c4c41534249ull /* "IBSALLC1" */
#define IBSCOPE_ALLOC_HEAD  4096u		  /* offset of the ring */
#define IBSCOPE_ALLOC_STACK 64			  /* most return addresses of an event */

/* Rings: most processes allocate little, so that each begins with a small one. */
#define IBSCOPE_ALLOC_SMALL (1u << 17)
#define IBSCOPE_ALLOC_LARGE (1u << 22)

/*
 * Of allocations smaller than the size from which all are noted, one is noted in so many times that size: with 4 KiB, one in
 * 512 KiB.
 */
#define IBSCOPE_ALLOC_INTERVAL 128

enum ibscope_alloc_kind {
	IBSCOPE_ALLOC_CERTAIN = 1, /* by malloc and its family, and large enough */
	IBSCOPE_ALLOC_SAMPLED = 2, /* smaller, and chosen */
	IBSCOPE_ALLOC_MAPPED = 3,
	IBSCOPE_ALLOC_FREED = 4, /* one that was noted; size: 0 */
	IBSCOPE_ALLOC_UNMAPPED = 5,
};

/* The stack follows: n_stack return addresses, innermost first. */
struct ibscope_alloc_event {
	uint64_t check;	  /* ibscope_alloc_check() */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t addr, size;
	uint32_t tid; /* in the PID namespace of the process */
	uint16_t kind, n_stack;
};

struct ibscope_alloc_file {
	uint64_t magic;
	uint64_t ring_bytes;
	uint64_t bytes;		/* IBSCOPE_ALLOC_BYTES as the process understood it */
	uint64_t pid_namespace; /* inode; 0: unknown */
	uint32_t
		own_malloc; /* the program's malloc is not a library's, so that it cannot be noted */
	uint32_t zero[23];
	/* written by threads of the process, with atomic operations */
	uint64_t written __attribute__((aligned(64))); /* bytes of events begun so far */
	uint64_t lost;				       /* events that found no room */
	/* written by the reader */
	uint64_t read __attribute__((aligned(64))); /* bytes: their place may be used again */
};

/* A checksum that an event has only when it is complete, and only at this position. */
static inline uint64_t ibscope_alloc_check(const struct ibscope_alloc_event *e,
					   const uint64_t *stack, uint64_t position)
{
	uint64_t task = (uint64_t)e->tid << 32 | (uint32_t)e->kind << 16 | e->n_stack;
	uint64_t sum = (position + 1) * 0xd6e8feb86659fd93ull + e->time_ns;

	sum = (sum ^ sum >> 32 ^ e->addr) * 0x9e3779b97f4a7c15ull;
	sum = (sum ^ sum >> 32 ^ e->size) * 0xbf58476d1ce4e5b9ull;
	sum = (sum ^ sum >> 32 ^ task) * 0x94d049bb133111ebull;
	for (uint16_t i = 0; i < e->n_stack; i++)
		sum = (sum << 7 | sum >> 57) + stack[i];
	return sum ^ sum >> 32;
}

#endif
