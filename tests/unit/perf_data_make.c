// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * perf_data_make N [z]: a perf.data of N samples of four CPUs, in rounds, on stdout; compressed.
 * To measure how fast one is read; small ones are seeds of the fuzzer.
 */
#include "perf_data_build.h"

enum { CPUS = 4, PER_CPU = 500 };

int main(int argc, char **argv)
{
	unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, done = 0;
	bool z = argc > 2 && argv[2][0] == 'z';
	struct build o = build_default();
	struct bytes b = { 0 };

	if (!n) {
		fprintf(stderr, "usage: perf_data_make SAMPLES [z] > FILE\n");
		return 2;
	}
	build_begin(&b, &o);
	comm(&b, 101, "made", 0);
	for (unsigned long round = 0; done < n; round++) {
		for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
			for (unsigned int i = 0; i < PER_CPU && done < n; i++, done++)
				sample(&b, OP_ID, 1000000 + round * 1000000 + i * 2000 + cpu, cpu);
		}
		finished_round(&b);
	}
	if (z)
		compress_from(&b, b.data, 50000, PERF_RECORD_COMPRESSED);
	build_end(&b, &o);
	return fwrite(b.p, 1, b.n, stdout) != b.n;
}
