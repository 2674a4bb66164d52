/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Fixed-width types, and macros for code shared by kernel and user space. */
#ifndef IBSCOPE_TYPES_H
#define IBSCOPE_TYPES_H

#include <linux/types.h>
#include <stdbool.h>

/* <linux/stddef.h> defines it as a mere hint. */
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))

/* Exactly one access, for words that another CPU or user space writes concurrently. */
#undef READ_ONCE
#undef WRITE_ONCE
#define READ_ONCE(x)	 (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))

#ifdef __clang__
#define IBS_UNROLL _Pragma("unroll")
#else
#define IBS_UNROLL
#endif

#define IBS_BIT(n) (1ULL << (n))

/* Bits @lo .. @lo + @width - 1 of @v, right-aligned; @width < 64. */
static __always_inline __u64 ibs_bits(__u64 v, unsigned int lo, unsigned int width)
{
	return (v >> lo) & (IBS_BIT(width) - 1);
}

#endif
