// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#include "crc.h"

#include <zlib.h>

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

/*
 * Bits are polynomials over GF(2), the first bit of memory the highest power. The remainder of a
 * long one is that of a shorter one, in which 16 bytes have moved 64 bytes on: each of its halves
 * is multiplied with what x to that power leaves, and added to the bytes there.
 */
#define LANES 4 /* of 16 bytes, so that multiplications need not wait for each other */
#define STEP  (LANES * sizeof(__m128i))

/* x^n mod P, as the multiplication of reflected numbers wants it: one bit further up. */
static __u64 power(unsigned int n)
{
	__u32 r = 1u << 31; /* 1 */

	while (n--)
		r = r >> 1 ^ (r & 1 ? 0xedb88320 : 0);
	return (__u64)r << 1;
}

__attribute__((target("pclmul"))) static __m128i fold(__m128i v, __m128i by)
{
	return _mm_xor_si128(_mm_clmulepi64_si128(v, by, 0x00), _mm_clmulepi64_si128(v, by, 0x11));
}

static __m128i load(const unsigned char *p)
{
	return _mm_loadu_si128((const __m128i *)p);
}

/* @bytes: at least STEP */
__attribute__((target("pclmul"))) static __u32 crc_folded(const unsigned char *p, size_t bytes)
{
	const __m128i far = _mm_set_epi64x(power(STEP * 8 - 32), power(STEP * 8 + 32));
	const __m128i near = _mm_set_epi64x(power(128 - 32), power(128 + 32));
	__m128i lane[LANES], all;
	unsigned char rest[sizeof(all)];

	for (int i = 0; i < LANES; i++)
		lane[i] = load(p + i * sizeof(all));
	/* as all do it: what comes first is inverted */
	lane[0] = _mm_xor_si128(lane[0], _mm_cvtsi32_si128(-1));
	for (p += STEP, bytes -= STEP; bytes >= STEP; p += STEP, bytes -= STEP)
#pragma GCC unroll 4
		for (int i = 0; i < LANES; i++)
			lane[i] = _mm_xor_si128(fold(lane[i], far), load(p + i * sizeof(all)));
	all = lane[0];
	for (int i = 1; i < LANES; i++)
		all = _mm_xor_si128(fold(all, near), lane[i]);
	memcpy(rest, &all, sizeof(rest));
	return crc32_z(crc32_z(~0u, rest, sizeof(rest)), p, bytes);
}

__u32 crc_of(const void *data, size_t bytes)
{
	if (bytes >= 4 * STEP && __builtin_cpu_supports("pclmul"))
		return crc_folded(data, bytes);
	return crc32_z(0, data, bytes);
}

#else

__u32 crc_of(const void *data, size_t bytes)
{
	return crc32_z(0, data, bytes);
}

#endif
