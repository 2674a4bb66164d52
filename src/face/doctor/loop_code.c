// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "loop_code.h"

#include "base/std.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* clang-format off */
#define TIMED  ".byte 0x0f, 0x1f, 0x87; .long 0x01b5c0df\n"
#define BRANCH ".byte 0x0f, 0x1f, 0x87; .long 0x01b5c0db\n"

/* Each in lines of its own. Where a loop begins its address is known as NAME_begin. */
#define LOOP(name, body)                                                                           \
	extern void *name##_code(void *at, size_t rounds);                                         \
	extern const char name##_begin[];                                                          \
	asm(".pushsection .text\n.balign 64\n.type " #name "_code, @function\n"                    \
	    #name "_code:\n" #name "_begin:\n" body                                                \
	    "dec %rsi\njnz " #name "_begin\nmov %rdi, %rax\nret\n"                                \
	    ".size " #name "_code, . - " #name "_code\n.popsection\n")

LOOP(chase, ".rept 8\nmov (%rdi), %rax\n" TIMED "mov %rax, %rdi\n.endr\n");
LOOP(stores, ".rept 8\nmov %rax, (%rdi)\n" TIMED ".endr\n");
LOOP(branches, "or $1, %eax\n.rept 8\n" BRANCH ".byte 0x75, 0\n.endr\n");
LOOP(sharing, "mov (%rdi), %rax\n" TIMED "inc %eax\nmov %rax, (%rdi)\n" TIMED "pause\n");
LOOP(clocks, ".rept 64\nadd $1, %rax\n.endr\n");

const struct loop_code loop_chase = { chase_code, chase_begin, 13, 0, LOOP_UNROLLED };
const struct loop_code loop_stores = { stores_code, stores_begin, 10, 0, LOOP_UNROLLED };
/* "or $1, %eax" has 3 bytes */
const struct loop_code loop_branches = { branches_code, branches_begin + 3, 9, 7, LOOP_UNROLLED };
const struct loop_code loop_sharing = { sharing_code, sharing_begin, 10, 0, 1 };
/* clang-format on */

void loop_clocks(size_t n)
{
	clocks_code(NULL, n / 64 ?: 1);
}

/* A permutation that is one circle (Sattolo): next[i] follows i. */
static void make_order(uint32_t *next, size_t n)
{
	uint64_t seed = 1;

	for (size_t i = 0; i < n; i++)
		next[i] = i;
	for (size_t i = n - 1; i > 0; i--) {
		size_t k =
			(seed = seed * 6364136223846793005u + 1442695040888963407u) % (i << 16) >>
			16;
		uint32_t was = next[i];

		next[i] = next[k];
		next[k] = was;
	}
}

void loop_circle(char *at, size_t n, size_t stride)
{
	uint32_t *next = xcalloc(n, sizeof(*next));

	make_order(next, n);
	for (size_t i = 0; i < n; i++)
		*(void **)(at + i * stride) = at + next[i] * stride;
	free(next);
}

void *loop_jumps_make(size_t lines)
{
	static const unsigned char timed[] = { 0x0f, 0x1f, 0x87, 0xdd, 0xc0, 0xb5, 0x01 };
	/* dec %rsi; jnz ..., ret */
	static const unsigned char last[] = { 0x48, 0xff, 0xce, 0x0f, 0x85, 0, 0, 0, 0, 0xc3 };
	const size_t bytes = lines * LOOP_LINE;
	unsigned char *code =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t *next = xcalloc(lines, sizeof(*next));

	if (code == MAP_FAILED) {
		free(next);
		return NULL;
	}
	make_order(next, lines);
	for (size_t i = 0; i < lines; i++) {
		unsigned char *line = code + i * LOOP_LINE, *p = line + sizeof(timed);
		int32_t to;

		memcpy(line, timed, sizeof(timed));
		if (next[i]) {
			*p++ = 0xe9;
		} else { /* back to the first line */
			memcpy(p, last, sizeof(last));
			p += 5;
		}
		to = (int32_t)(next[i] * LOOP_LINE) - (int32_t)(p + 4 - code);
		memcpy(p, &to, sizeof(to));
	}
	free(next);
	if (mprotect(code, bytes, PROT_READ | PROT_EXEC)) {
		const int error = errno;

		munmap(code, bytes);
		errno = error;
		return NULL;
	}
	return code;
}

void loop_jumps_free(void *code, size_t lines)
{
	if (code)
		munmap(code, lines * LOOP_LINE);
}
