/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* For functions that allocate or free by others than malloc and its family: what the library notes of them. */
#ifndef IBSCOPE_ALLOCS_NOTING_H
#define IBSCOPE_ALLOCS_NOTING_H

#include <ibscope/alloc_file.h>

#include <stddef.h>
#include <stdint.h>

/* Call it before an allocation. Return: what it is noted as; 0: it is not. */
enum ibscope_alloc_kind noting_begin(size_t size);

/* Call it after that. @frame: where a walk begins */
void noting_end(enum ibscope_alloc_kind kind, void *p, size_t size, const uintptr_t *frame);

/* Call it before memory is freed. */
void noting_free(void *p);

/* Call these before and after memory gets another size, and another place perhaps. @p: NULL: it stays as it was */
struct noting_move {
	enum ibscope_alloc_kind kind;
	uint64_t time; /* 0: it was not noted */
};
struct noting_move noting_move_begin(const void *old, enum ibscope_alloc_kind kind);
void noting_move_end(const struct noting_move *m, const void *old, void *p, size_t size,
		     const uintptr_t *frame);

#endif
