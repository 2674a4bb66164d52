// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ibs_sim SEED CAPS CPU:N...: what `hist --source sim --by src,op` must count for the first N samples
 * of each CPU, worked out in user space. One line a count: src op bucket-edge|- samples, and
 * src op sum cycles.
 */
#include "counts/snapshot.h"

#include <ibscope/sim.h>
#include <stdio.h>
#include <stdlib.h>

static __u64 no_lat[IBS_SRC_N][IBS_OP_KIND_N], sum[IBS_SRC_N][IBS_OP_KIND_N];
static __u64 bucket[IBS_SRC_N][IBS_OP_KIND_N][IBS_LAT_BUCKETS];

int main(int argc, char **argv)
{
	struct ibs_cpu cpu = {};
	__u64 seed;

	if (argc < 4)
		return 2;
	seed = strtoull(argv[1], NULL, 0);
	cpu.caps = strtoul(argv[2], NULL, 0);
	for (int i = 3; i < argc; i++) {
		unsigned long long n;
		unsigned int c;

		if (sscanf(argv[i], "%u:%llu", &c, &n) != 2)
			return 2;
		for (__u64 k = 0; k < n; k++) {
			__u64 r[IBS_OP_REG_FIXED];
			__u32 op, src, lat;

			ibs_sim_op(seed, c, k, cpu.caps, r);
			op = ibs_op_kind(r[IBS_OP_DATA], r[IBS_OP_DATA3]);
			src = ibs_op_src(cpu, r);
			if (!ibs_op_metric_valid(IBS_METRIC_DC_MISS_LAT, cpu.caps,
						 r[IBS_OP_DATA3])) {
				no_lat[src][op]++;
				continue;
			}
			lat = ibs_op_metric(IBS_METRIC_DC_MISS_LAT, r, r[IBS_OP_DATA3]);
			bucket[src][op][ibs_lat_bucket(lat)]++;
			sum[src][op] += lat;
		}
	}
	for (int s = 0; s < IBS_SRC_N; s++) {
		for (int o = 0; o < IBS_OP_KIND_N; o++) {
			if (no_lat[s][o])
				printf("%s %s - %llu\n", src_name(s), op_kind_name(o),
				       no_lat[s][o]);
			if (sum[s][o])
				printf("%s %s sum %llu\n", src_name(s), op_kind_name(o), sum[s][o]);
			for (int b = 0; b < IBS_LAT_BUCKETS; b++)
				if (bucket[s][o][b])
					printf("%s %s %u %llu\n", src_name(s), op_kind_name(o),
					       ibs_lat_le(b), bucket[s][o][b]);
		}
	}
	return 0;
}
