// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Flags after a cmpxchg16b that follows an instruction whose flags nothing has read yet: an emulator that
 * computes flags lazily must not let the cmpxchg see something else. Exit status 1 if any are wrong.
 */
#include <stdint.h>
#include <stdio.h>

#define RUNS 100000
/* CF, PF, AF, ZF, SF, IF, OF, and bit 1, which is always set */
#define POSSIBLE 0xad7ULL

int main(void)
{
	static struct {
		uint64_t low, high;
	} __attribute__((aligned(16))) word;
	uint64_t wrong = 0, bits = 0;

	for (uint64_t i = 0; i < RUNS; i++) {
		uint64_t flags, a = 0xffff8d6241e3b960ULL + i * 8, d = 3, low = word.low, high = word.high;

		__asm__ volatile("pushfq\n\tpopfq\n\tjmp 1f\n1:\tsub %[a], %[d]\n\tcmpxchg16b %[word]\n\t"
				 "pushfq\n\tpopq %[flags]\n\txor %[d], %[d]"
				 : [flags] "=&r"(flags), [d] "+r"(d), [word] "+m"(word), "+a"(low), "+d"(high)
				 : [a] "r"(a), "b"(i), "c"(i + 1)
				 : "cc", "memory");
		if (flags & ~POSSIBLE) {
			wrong++;
			bits |= flags & ~POSSIBLE;
		}
	}
	printf("flags: %lu of %d wrong, bits %#lx\n", wrong, RUNS, bits);
	return wrong != 0;
}
