/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* USDT probes of otel_memory, as <sys/sdt.h> makes them, with a semaphore. */
#ifndef IBSCOPE_TESTS_USDT_PROBE_H
#define IBSCOPE_TESTS_USDT_PROBE_H

#define SEMAPHORE(name) \
	unsigned short otel_memory_##name##_semaphore __attribute__((section(".probes"), used))

#define PROBE(name, args, ...)                                                                   \
	__asm__ volatile("990: nop\n"                                                            \
			 ".pushsection .note.stapsdt,\"\",\"note\"\n"                            \
			 ".balign 4\n"                                                           \
			 ".4byte 992f-991f, 994f-993f, 3\n"                                      \
			 "991: .asciz \"stapsdt\"\n"                                             \
			 "992: .balign 4\n"                                                      \
			 "993: .8byte 990b, _.stapsdt.base, otel_memory_" #name "_semaphore\n"   \
			 ".asciz \"otel_memory\"\n"                                              \
			 ".asciz \"" #name "\"\n"                                                \
			 ".asciz \"" args "\"\n"                                                 \
			 "994: .balign 4\n"                                                      \
			 ".popsection\n"                                                         \
			 ".ifndef _.stapsdt.base\n"                                              \
			 ".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
			 ".weak _.stapsdt.base\n"                                                \
			 ".hidden _.stapsdt.base\n"                                              \
			 "_.stapsdt.base: .space 1\n"                                            \
			 ".size _.stapsdt.base, 1\n"                                             \
			 ".popsection\n"                                                         \
			 ".endif\n" ::__VA_ARGS__)

#endif
