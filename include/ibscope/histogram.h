/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Latency buckets of 16-bit cycles: exact up to 8, then eight equal steps per octave, so that no
 * bucket is wider than 1/8 of its lower edge. An upper edge belongs to its bucket (Prometheus
 * `le`), and every multiple of 128 that hardware ldlat supports (128 .. 2048) is an edge.
 */
#ifndef IBSCOPE_HISTOGRAM_H
#define IBSCOPE_HISTOGRAM_H

#include <ibscope/types.h>

#define IBS_LAT_MAX	65535u
#define IBS_LAT_BUCKETS 113

/**
 * ibs_lat_bucket() - bucket of a latency
 * @cycles: at most IBS_LAT_MAX
 *
 * Return: 0 .. IBS_LAT_BUCKETS - 1.
 */
static __always_inline __u32 ibs_lat_bucket(__u32 cycles)
{
	__u32 x = cycles - 1, shift;

	if (cycles <= 8)
		return cycles;
	/*
	 * floor(log2(x)) - 3: BPF has no count-leading-zeros before v4. A comparison with a
	 * constant takes two instructions, half the cost of shifting by halves.
	 */
	if (x < 128)
		shift = x < 32 ? x >= 16 : 2 + (x >= 64);
	else if (x < 2048)
		shift = x < 512 ? 4 + (x >= 256) : 6 + (x >= 1024);
	else if (x < 32768)
		shift = x < 8192 ? 8 + (x >= 4096) : 10 + (x >= 16384);
	else
		shift = 12;
	return shift * 8 + (x >> shift) + 1;
}

/**
 * ibs_lat_le() - inclusive upper edge of a bucket, in cycles
 * @bucket: below IBS_LAT_BUCKETS
 *
 * The last edge is IBS_LAT_MAX: the hardware field saturates there.
 */
static inline __u32 ibs_lat_le(__u32 bucket)
{
	__u32 shift, le;

	if (bucket <= 8)
		return bucket;
	shift = (bucket - 9) / 8;
	le = (9 + (bucket - 9) % 8) << shift;
	return le > IBS_LAT_MAX ? IBS_LAT_MAX : le;
}

#endif
