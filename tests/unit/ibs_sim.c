// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * ibs_sim op|fetch SEED CAPS CPU:N...: what `hist --source sim --by src,op`, or of ibs_fetch `--by
 * fetch,itlb`, must count for the first N samples of each CPU, worked out in user space. One line a
 * count: src op bucket-edge|- samples, and src op sum cycles.
 */
#include "rows/rows.h"

#include <ibscope/sim.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __u64 no_lat[IBS_LAYOUT_ENTRIES], sum[IBS_LAYOUT_ENTRIES];
static __u64 bucket[IBS_LAYOUT_ENTRIES][IBS_LAT_BUCKETS];

static void count(unsigned int pair, bool valid, __u32 lat)
{
	if (valid) {
		bucket[pair][ibs_lat_bucket(lat)]++;
		sum[pair] += lat;
	} else {
		no_lat[pair]++;
	}
}

static void draw(bool fetch, __u64 seed, unsigned int c, __u64 k, struct ibs_cpu cpu)
{
	__u64 r[IBS_OP_REG_FIXED], data3;

	if (fetch) {
		ibs_sim_fetch(seed, c, k, r);
		count(IBS_LAYOUT_IDX(ibs_fetch_itlb(cpu, *r), ibs_fetch_class(cpu, *r)),
		      ibs_fetch_metric_valid(IBS_METRIC_FETCH_LAT, cpu, *r),
		      ibs_fetch_metric(IBS_METRIC_FETCH_LAT, r, *r));
		return;
	}
	ibs_sim_op(seed, c, k, cpu.caps, r);
	data3 = r[IBS_OP_DATA3];
	count(IBS_LAYOUT_IDX(ibs_op_kind(r[IBS_OP_DATA], data3), ibs_op_src(cpu, r)),
	      ibs_op_metric_valid(IBS_METRIC_DC_MISS_LAT, cpu.caps, data3),
	      ibs_op_metric(IBS_METRIC_DC_MISS_LAT, r, data3));
}

int main(int argc, char **argv)
{
	struct ibs_cpu cpu = {};
	bool fetch;
	__u64 seed;

	if (argc < 5)
		return 2;
	fetch = !strcmp(argv[1], "fetch");
	seed = strtoull(argv[2], NULL, 0);
	cpu.caps = strtoul(argv[3], NULL, 0);
	for (int i = 4; i < argc; i++) {
		unsigned long long n;
		unsigned int c;

		if (sscanf(argv[i], "%u:%llu", &c, &n) != 2)
			return 2;
		for (__u64 k = 0; k < n; k++)
			draw(fetch, seed, c, k, cpu);
	}
	for (unsigned int p = 0; p < IBS_LAYOUT_ENTRIES; p++) {
		const struct series s = { .op = p & 7, .src = p >> 3 };
		const char *src, *op;

		if (!no_lat[p] && !sum[p])
			continue;
		src = series_label(&s, fetch ? LABEL_FETCH : LABEL_SRC);
		op = series_label(&s, fetch ? LABEL_ITLB : LABEL_OP);
		if (no_lat[p])
			printf("%s %s - %llu\n", src, op, no_lat[p]);
		if (sum[p])
			printf("%s %s sum %llu\n", src, op, sum[p]);
		for (int b = 0; b < IBS_LAT_BUCKETS; b++)
			if (bucket[p][b])
				printf("%s %s %u %llu\n", src, op, ibs_lat_le(b), bucket[p][b]);
	}
	return 0;
}
